//! The newest look as OpenMetrics text: counters as the kernel has them (`_total`), levels, and devices by label.
//!
//! Base units are seconds and bytes. Whoever collects it derives rates, over the time that passed between two collections.

use super::catalogue::{KINDS, Quantity, Unit, kind_name, of_device, quantity};
use crate::openmetrics::{Kind, Page, number};
use model::device::Roster;
use model::reading::{ABSENT, Column, Look};
use model::{reading, run::HostFacts};

/// What is told beside the look.
#[derive(Debug, Clone, Copy)]
pub struct About<'a> {
    /// The machine.
    pub host: &'a HostFacts,
    /// Version of webdyno.
    pub version: &'a str,
    /// Which devices the numbers are of.
    pub roster: &'a Roster,
    /// Bytes of a page of memory.
    pub page_bytes: u64,
    /// When the look was taken, in seconds since 1970.
    pub epoch: f64,
}

const MODES: &str = "webdyno_cpu_seconds";

/// Draws a look as OpenMetrics text, its end mark included. What the kernel does not tell is left out.
#[must_use]
pub fn render(look: &Look, about: About<'_>) -> String {
    let mut page = Page::default();
    page.family("webdyno_watch", Kind::Info, "", "What watches which machine.");
    let host = about.host;
    let labels = [("version", about.version), ("host", host.name.as_str()), ("kernel", &host.kernel)];
    page.sample("webdyno_watch_info", &labels, "1");
    let help = "When the numbers were read, in seconds since 1970.";
    page.lone("webdyno_watch_read_seconds", Kind::Gauge, "seconds", help, &number(about.epoch));
    cpu(&mut page, look);
    for &column in Column::ALL.iter().filter(|column| quantity(**column).group != "cpu") {
        if let Some(value) = look.reading.get(column) {
            lone(&mut page, column, value, about.page_bytes);
        }
    }
    devices(&mut page, look, about);
    page.end()
}

/// CPU time by what it went to, so that all of it is a sum over one label.
fn cpu(page: &mut Page, look: &Look) {
    let modes: Vec<_> = Column::ALL
        .iter()
        .filter_map(|&column| Some((quantity(column), look.reading.get(column)?)))
        .filter(|(quantity, _)| quantity.group == "cpu")
        .collect();
    if modes.is_empty() {
        return;
    }
    page.family(MODES, Kind::Counter, "seconds", "CPU time over all CPUs, from /proc/stat.");
    for (Quantity { name, unit, .. }, value) in modes {
        page.sample(&format!("{MODES}_total"), &[("mode", &name)], &written(value, unit, 0));
    }
}

fn lone(page: &mut Page, column: Column, value: u64, page_bytes: u64) {
    let Quantity { group, name, unit } = quantity(column);
    let kind = if column.kind() == reading::Kind::Counter { Kind::Counter } else { Kind::Gauge };
    let converted = if unit.is_base() { String::new() } else { " Here in base units.".to_owned() };
    let help = format!("{}{converted}", column.about());
    page.lone(&with_unit(&group, &name, unit), kind, unit.suffix(), &help, &written(value, unit, page_bytes));
}

fn with_unit(group: &str, name: &str, unit: Unit) -> String {
    match unit.suffix() {
        "" => format!("webdyno_{group}_{name}"),
        suffix => format!("webdyno_{group}_{name}_{suffix}"),
    }
}

/// Families of their own: a sum over a label must not count the machine's totals again.
fn devices(page: &mut Page, look: &Look, about: About<'_>) {
    for kind in KINDS {
        let names: Vec<&str> = about
            .roster
            .devices
            .iter()
            .filter(|device| device.kind == kind)
            .map(|device| device.name.as_str())
            .collect();
        if names.is_empty() {
            continue;
        }
        for (at, (own, unit, grows)) in of_device(kind).into_iter().enumerate() {
            let family = with_unit("device", &format!("{}_{own}", kind_name(kind)), unit);
            let (metric, end) = if grows { (Kind::Counter, "_total") } else { (Kind::Gauge, "") };
            page.family(
                &family,
                metric,
                unit.suffix(),
                &format!("The same of each {} that is watched.", kind_name(kind)),
            );
            for name in &names {
                let value = about.roster.of(kind, name, &look.devices).map(|numbers| numbers[at]);
                if let Some(value) = value.filter(|&value| value != ABSENT) {
                    let value = written(value, unit, about.page_bytes);
                    page.sample(&format!("{family}{end}"), &[(kind_name(kind), name)], &value);
                }
            }
        }
    }
}

/// Whole numbers stay whole: a counter of bytes has more digits than a floating-point number.
fn written(value: u64, unit: Unit, page_bytes: u64) -> String {
    let times = |factor: u64| (u128::from(value) * u128::from(factor)).to_string();
    match unit {
        Unit::Count => value.to_string(),
        Unit::Bytes(each) => times(each),
        Unit::Pages => times(page_bytes),
        Unit::Hundredths | Unit::Seconds(_) => number(unit.of(value as f64, page_bytes)),
    }
}
