//! `[sweep]`: one cell for each value of a number.

use super::cells::{Made, Placed};
use super::source::Source;
use super::{PlanError, names};
use crate::plan::{Cell, Directive, LoadSpec, Over, Pace, Role, Sweep, SweepPoint, Variant};
use serde::Deserialize;
use toml::Spanned;

/// What stands in directives where the value is meant.
const VALUE: &str = "${value}";
/// The word that means the connections of the load.
const CONNECTIONS: &str = "connections";
/// More cells than this nobody waits for.
const MOST: usize = 64;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SweepText {
    over: Spanned<String>,
    values: Option<Spanned<Vec<u64>>>,
    from: Option<Spanned<u64>>,
    to: Option<Spanned<u64>>,
    steps: Option<Spanned<u64>>,
    #[serde(default)]
    even: bool,
    directives: Option<Spanned<String>>,
    variant: Option<Spanned<String>>,
    load: Option<Spanned<String>>,
}

/// The cells of a sweep; `setting` is how the server is told the value of one.
pub(super) fn made(
    source: &Source<'_>,
    text: &Spanned<SweepText>,
    setting: fn(&str, u64) -> String,
    variants: &[Placed<Variant>],
    loads: &[LoadSpec],
) -> Result<Made, PlanError> {
    let (place, text) = (text.span(), text.get_ref());
    let values = text.values(source, &place)?;
    let only = |list: Vec<&String>, wanted: Option<&Spanned<String>>, key: &str| {
        let known = || names(list.iter().copied());
        match wanted {
            Some(name) => list.iter().position(|it| *it == name.get_ref()).ok_or_else(|| {
                let kind = key.trim_start_matches("sweep.");
                source.at(name.span(), key, &format!("no {kind} `{}`; there is {}", name.get_ref(), known()))
            }),
            None if list.len() == 1 => Ok(0),
            None => Err(source.at(place.clone(), key, &format!("say which: {}", known()))),
        }
    };
    let variant =
        &variants[only(variants.iter().map(|(it, _)| &it.name).collect(), text.variant.as_ref(), "sweep.variant")?].0;
    let load = &loads[only(loads.iter().map(|it| &it.name).collect(), text.load.as_ref(), "sweep.load")?];
    let of_load = text.over.get_ref() == CONNECTIONS;
    if of_load && (load.pace != Pace::WhenFree || load.session.is_some()) {
        let what = "the load has a timetable, so its connections are only a limit; sweep over those of a load without `rate` and `stages`";
        return Err(source.at(text.over.span(), "sweep.over", what));
    }
    if let (true, Some(needless)) = (of_load, &text.directives) {
        let what = "the connections of the load are no directive; remove the line";
        return Err(source.at(needless.span(), "sweep.directives", what));
    }
    let steps = values.iter().map(|&value| {
        if of_load {
            let connections = u32::try_from(value).map_err(|_| {
                source.at(place.clone(), "sweep", &format!("{value} connections are more than a load can have"))
            })?;
            let name = format!("{} {value}", load.name);
            return Ok((
                variant.clone(),
                LoadSpec { name, connections, ..load.clone() },
                format!("{CONNECTIONS} {value}"),
            ));
        }
        let mut changed = variant.clone();
        changed.directives.extend(text.directives(source, setting, value)?);
        let label = format!("{} {value}", text.over.get_ref());
        changed.name.clone_from(&label);
        Ok((changed, load.clone(), label))
    });
    let steps: Vec<(Variant, LoadSpec, String)> = steps.collect::<Result<_, _>>()?;
    let over = if of_load { Over::Connections } else { Over::Setting(text.over.get_ref().clone()) };
    let points = values.iter().zip(&steps).map(|(&value, (.., label))| SweepPoint { value, cell: label.clone() });
    let points = points.collect();
    let cell = |(variant, load, label): &(Variant, LoadSpec, String)| {
        let cell =
            Cell { name: label.clone(), variant: variant.name.clone(), load: load.name.clone(), role: Role::Candidate };
        (cell, text.over.span())
    };
    let cells = steps.iter().map(cell).collect();
    let (mut variants, mut loads): (Vec<_>, Vec<_>) =
        steps.into_iter().map(|(variant, load, _)| (variant, load)).unzip();
    variants.dedup_by(|a, b| a.name == b.name);
    loads.dedup_by(|a, b| a.name == b.name);
    Ok(Made { variants, loads, cells, contrasts: vec![], design: None, sweep: Some(Sweep { over, points }) })
}

impl SweepText {
    /// The values, ascending.
    fn values(&self, source: &Source<'_>, place: &std::ops::Range<usize>) -> Result<Vec<u64>, PlanError> {
        let range = [("from", &self.from), ("to", &self.to), ("steps", &self.steps)];
        let written = range.iter().find_map(|(key, number)| Some((*key, number.as_ref()?)));
        let (mut values, place, key) = match (&self.values, written) {
            (Some(_), Some((key, number))) => {
                return Err(source.at(
                    number.span(),
                    &format!("sweep.{key}"),
                    "`values` says it already; give one or the other",
                ));
            }
            (Some(values), None) => (values.get_ref().clone(), values.span(), "sweep.values"),
            (None, _) => (self.range(source, place)?, place.clone(), "sweep"),
        };
        let at = |what: &str| Err(source.at(place.clone(), key, what));
        values.sort_unstable();
        if let Some(twice) = values.windows(2).find(|pair| pair[0] == pair[1]) {
            return at(&format!("{} stands there twice", twice[0]));
        }
        match values.as_slice() {
            [0, ..] => at("values begin at 1"),
            [] | [_] => at("give at least two values; a curve needs four"),
            many if many.len() > MOST => at(&format!("{} values are too many; at most {MOST}", many.len())),
            _ => Ok(values),
        }
    }

    /// From the first to the last value in so many steps, by equal factors unless evenly; what rounds to the same is one.
    fn range(&self, source: &Source<'_>, place: &std::ops::Range<usize>) -> Result<Vec<u64>, PlanError> {
        let (Some(from), Some(to), Some(steps)) = (&self.from, &self.to, &self.steps) else {
            return Err(source.at(place.clone(), "sweep", "give `values`, or `from`, `to` and `steps`"));
        };
        let (low, high, count) = (*from.get_ref(), *to.get_ref(), *steps.get_ref());
        if low == 0 {
            return Err(source.at(from.span(), "sweep.from", "values begin at 1"));
        }
        if high <= low {
            return Err(source.at(to.span(), "sweep.to", "must be more than `from`"));
        }
        if !(2..=MOST as u64).contains(&count) {
            return Err(source.at(steps.span(), "sweep.steps", &format!("must lie between 2 and {MOST}")));
        }
        let (low, high, last) = (low as f64, high as f64, (count - 1) as f64);
        let value = |step: u64| {
            let share = step as f64 / last;
            let value = if self.even { low + (high - low) * share } else { low * (high / low).powf(share) };
            value.round() as u64
        };
        let mut values: Vec<u64> = (0..count).map(value).collect();
        values.dedup();
        Ok(values)
    }

    /// What the server is told for a value.
    fn directives(
        &self,
        source: &Source<'_>,
        setting: fn(&str, u64) -> String,
        value: u64,
    ) -> Result<Vec<Directive>, PlanError> {
        let Some(text) = &self.directives else {
            let line = source.line(self.over.span().start);
            return Ok(vec![Directive { text: setting(self.over.get_ref(), value), line }]);
        };
        if !text.get_ref().contains(VALUE) {
            let what = format!("it must say where the value stands: {VALUE}");
            return Err(source.at(text.span(), "sweep.directives", &what));
        }
        let filled = |line: Directive| Directive { text: line.text.replace(VALUE, &value.to_string()), ..line };
        Ok(source.directives(Some(text)).into_iter().map(filled).collect())
    }
}
