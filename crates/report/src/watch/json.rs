//! A row of a watch for programs: one JSON object on one line, described by `docs/schemas/watch.schema.json`.
//!
//! Names carry their unit. Counters come as rates over the time that really passed since the row before (`_per_s`; `_percent` of
//! that time for counters of time, of all CPU time for those of CPUs), levels as they are. What is not known is `null`, and so
//! are all rates of the first row. Within one schema version fields are only added.

use super::Tick;
use super::catalogue::{KINDS, Quantity, Unit, kind_name, of_device, quantity};
use model::device::DeviceKind;
use model::reading::{Column, Kind};
use serde::Serialize;
use serde_json::{Map, Number, Value, json};
use std::collections::BTreeMap;

/// The schema's version.
pub const SCHEMA_VERSION: u32 = 1;
const SCHEMA: &str = "webdyno-watch";

type Group = BTreeMap<String, Option<Number>>;

#[derive(Serialize)]
struct Row<'a> {
    schema: &'static str,
    schema_version: u32,
    epoch_s: Option<Number>,
    monotonic_s: Option<Number>,
    elapsed_s: Option<Number>,
    notes: &'a [String],
    #[serde(flatten)]
    groups: BTreeMap<String, Option<Group>>,
    devices: BTreeMap<&'static str, BTreeMap<&'a str, Group>>,
}

/// Draws a row, with its line break. `notes` are what must be known from this row on, such as what the sampler was refused.
///
/// # Panics
/// Never: every key of a row is text.
#[must_use]
pub fn row(tick: &Tick<'_>, notes: &[String]) -> String {
    let elapsed = tick.from.map(|from| tick.to.reading.at_ns.saturating_sub(from.reading.at_ns) as f64 / 1e9);
    let row = Row {
        schema: SCHEMA,
        schema_version: SCHEMA_VERSION,
        epoch_s: number(tick.epoch),
        monotonic_s: number(tick.to.reading.at_ns as f64 / 1e9),
        elapsed_s: elapsed.and_then(number),
        notes,
        groups: groups(tick),
        devices: devices(tick),
    };
    let mut line = serde_json::to_string(&row).expect("a row has only text as keys");
    line.push('\n');
    line
}

fn groups(tick: &Tick<'_>) -> BTreeMap<String, Option<Group>> {
    let mut groups: BTreeMap<String, Group> = BTreeMap::new();
    for &column in Column::ALL {
        let (group, name) = field(column);
        groups.entry(group).or_default().insert(name, value(tick, column).and_then(number));
    }
    // A group of which nothing was read is not watched.
    let watched =
        |group: &str| Column::ALL.iter().any(|&c| quantity(c).group == group && tick.to.reading.get(c).is_some());
    groups.into_iter().map(|(name, group)| (name.clone(), watched(&name).then_some(group))).collect()
}

/// The group of a column, and its name there.
fn field(column: Column) -> (String, String) {
    let Quantity { group, name, unit } = quantity(column);
    let name = match column {
        _ if is_queue(group.as_str(), &name) => format!("{name}_queue"),
        _ => with_unit(&name, unit, column.kind() == Kind::Counter),
    };
    (group, name)
}

/// Operations times time, over time: how many there were under way on average, and no share of the time that passed.
fn is_queue(group: &str, name: &str) -> bool {
    group == "disk" && ["weighted", "reading", "writing"].contains(&name)
}

fn with_unit(name: &str, unit: Unit, grows: bool) -> String {
    match (unit, grows) {
        (Unit::Count | Unit::Hundredths, false) => name.to_owned(),
        (Unit::Count | Unit::Hundredths, true) => format!("{name}_per_s"),
        (Unit::Bytes(_) | Unit::Pages, false) => format!("{name}_bytes"),
        (Unit::Bytes(_) | Unit::Pages, true) => format!("{name}_bytes_per_s"),
        (Unit::Seconds(_), false) => format!("{name}_s"),
        (Unit::Seconds(_), true) => format!("{name}_percent"),
    }
}

fn value(tick: &Tick<'_>, column: Column) -> Option<f64> {
    let unit = quantity(column).unit;
    if column.kind() == Kind::Gauge {
        return tick.gauge(column).map(|value| unit.of(value, tick.page_bytes));
    }
    // Averages since the machine started are no rates of a row.
    tick.from?;
    let grown = |column| tick.growth(column).filter(|&grown| grown >= 0.0);
    if Column::CPU_TIME.contains(&column) {
        return share(grown(column)?, Column::CPU_TIME.iter().filter_map(|&column| grown(column)));
    }
    let rate = unit.of(tick.rate(column).filter(|&rate| rate >= 0.0)?, tick.page_bytes);
    Some(match unit {
        Unit::Seconds(_) if !is_queue(&quantity(column).group, &quantity(column).name) => 100.0 * rate,
        _ => rate,
    })
}

/// A part of a sum in percent.
fn share(part: f64, parts: impl Iterator<Item = f64>) -> Option<f64> {
    let sum: f64 = parts.sum();
    (sum > 0.0).then(|| 100.0 * part / sum)
}

fn devices<'a>(tick: &Tick<'a>) -> BTreeMap<&'static str, BTreeMap<&'a str, Group>> {
    let mut kinds: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
    for device in &tick.roster.devices {
        let (kind, name) = (device.kind, device.name.as_str());
        let grown = |at: usize| tick.from.and(tick.device_growth(kind, name, at)).filter(|&grown| grown >= 0.0);
        let one = |(at, (own, unit, grows)): (usize, (&str, Unit, bool))| {
            let value = match (kind, grows) {
                (DeviceKind::Cpu, _) => {
                    grown(at).and_then(|grown_here| share(grown_here, (0..kind.numbers()).filter_map(grown)))
                }
                (_, true) => grown(at)
                    .and_then(|_| tick.device_rate(kind, name, at))
                    .map(|rate| unit.of(rate, tick.page_bytes) * percent(kind, own, unit)),
                (_, false) => tick.device_level(kind, name, at).map(|level| unit.of(level, tick.page_bytes)),
            };
            (device_field(kind, own, unit, grows), value.and_then(number))
        };
        let group: Group = of_device(kind).into_iter().enumerate().map(one).collect();
        kinds.entry(kind_name(kind)).or_default().insert(name, group);
    }
    kinds
}

fn device_field(kind: DeviceKind, name: &str, unit: Unit, grows: bool) -> String {
    if is_queue(kind_name(kind), name) { format!("{name}_queue") } else { with_unit(name, unit, grows) }
}

/// What a rate of a device is multiplied by.
fn percent(kind: DeviceKind, name: &str, unit: Unit) -> f64 {
    if matches!(unit, Unit::Seconds(_)) && !is_queue(kind_name(kind), name) { 100.0 } else { 1.0 }
}

/// A number with six decimals at most, and none when it is whole; `None` for what JSON cannot hold.
fn number(value: f64) -> Option<Number> {
    let rounded = (value * 1e6).round() / 1e6;
    if rounded.fract() == 0.0 && rounded.abs() < 9e15 {
        Some(Number::from(rounded as i64))
    } else {
        Number::from_f64(rounded)
    }
}

/// The schema of a row, as `docs/schemas/watch.schema.json` holds it.
#[must_use]
pub fn schema() -> Value {
    let mut properties = Map::new();
    for &column in Column::ALL {
        let (group, name) = field(column);
        let group = properties
            .entry(group)
            .or_insert_with(|| json!({"type": ["object", "null"], "properties": {}, "required": []}));
        group["properties"][&name] = json!({"type": ["number", "null"], "description": description(column)});
        if let Some(required) = group["required"].as_array_mut() {
            required.push(name.into());
        }
    }
    let text = json!({"type": "string"});
    for (name, of) in [
        ("schema", json!({"const": SCHEMA})),
        ("schema_version", json!({"const": SCHEMA_VERSION})),
        ("epoch_s", json!({"type": "number", "description": "When it was read: seconds since 1970."})),
        ("monotonic_s", json!({"type": "number", "description": "The same on CLOCK_MONOTONIC, which is never set."})),
        (
            "elapsed_s",
            json!({"type": ["number", "null"], "description": "Since the row before; what rates are divided by. null in the first row, and so are its rates."}),
        ),
        (
            "notes",
            json!({"type": "array", "items": text, "description": "What must be known from this row on, such as what the sampler was refused."}),
        ),
        ("devices", devices_schema()),
    ] {
        properties.insert(name.to_owned(), of);
    }
    let required: Vec<_> = properties.keys().cloned().collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A row of a watch, as webdyno watch --json prints one per line",
        "description": "Rates are over the time that passed since the row before. A group of which nothing is read is null, and so is a number that the kernel does not tell. Within one schema_version properties are only added, so readers skip those they do not know.",
        "type": "object",
        "required": required,
        "properties": properties,
    })
}

fn description(column: Column) -> String {
    let source = column.about();
    match quantity(column).unit {
        _ if Column::CPU_TIME.contains(&column) => format!("Percent of all CPU time. Source: {source}"),
        Unit::Seconds(_) if field(column).1.ends_with("_queue") => {
            format!("Operations under way, on average. Source: {source}")
        }
        Unit::Seconds(_) if column.kind() == Kind::Counter => {
            format!("Percent of the time that passed. Source: {source}")
        }
        _ => format!("Source: {source}"),
    }
}

fn devices_schema() -> Value {
    let mut properties = Map::new();
    for kind in KINDS {
        let mut fields = Map::new();
        for (name, unit, grows) in of_device(kind) {
            fields.insert(device_field(kind, name, unit, grows), json!({"type": ["number", "null"]}));
        }
        let required: Vec<_> = fields.keys().cloned().collect();
        let of_one = json!({"type": "object", "required": required, "properties": fields});
        properties.insert(kind_name(kind).to_owned(), json!({"type": "object", "additionalProperties": of_one}));
    }
    json!({"type": "object", "description": "Single devices that are watched, by kind and name.", "properties": properties})
}
