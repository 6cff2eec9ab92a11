//! The distributions of a load: their statistics, the table that puts them side by side, and the histogram of latencies.

use super::{BarView, TimesView};
use crate::language::{Catalogue, Sentence};
use crate::view::table::NOTHING;
use crate::view::{Row, RowKind, Table};
use model::latency::Latency;
use model::load::LoadResult;
use model::statistic::{Found, Part, Statistic};

/// What is shown of every distribution, in this order.
pub(super) const STATISTICS: [Statistic; 10] = [
    Statistic::Min,
    Statistic::Mean,
    Statistic::Percentile(50.0),
    Statistic::Percentile(75.0),
    Statistic::Percentile(90.0),
    Statistic::Percentile(95.0),
    Statistic::Percentile(99.0),
    Statistic::Percentile(99.9),
    Statistic::Percentile(99.99),
    Statistic::Max,
];

pub(super) fn views(load: &LoadResult) -> Vec<TimesView> {
    Part::ALL.into_iter().filter(|&part| load.values_of(part) > 0).filter_map(|part| view(load, part)).collect()
}

pub(super) fn view(load: &LoadResult, part: Part) -> Option<TimesView> {
    let (known, values) = (load.part(part)?, load.values_of(part));
    let supported = |statistic: Statistic| load.statistic(part, statistic).filter(|_| values >= statistic.needs());
    Some(TimesView {
        part,
        count: known.len(),
        cut_off: values - known.len(),
        sum_us: known.mean_us().unwrap_or(0.0) * known.len() as f64,
        statistics: STATISTICS.map(|statistic| (statistic, supported(statistic))).to_vec(),
        buckets: known.buckets().collect(),
    })
}

/// Distributions as columns, each in its own scale; a statistic that none of them supports has no row.
pub(super) fn table(load: &LoadResult, times: &[TimesView], words: &Catalogue) -> Table {
    let scales: Vec<units::Scale> = times.iter().map(scale).collect();
    let heads =
        times.iter().zip(&scales).map(|(one, scale)| words.say(head(one.part), &[("unit", scale.unit.into())]).text);
    let row = |(index, statistic): (usize, &Statistic)| {
        let of = |one: &TimesView| one.statistics.get(index).and_then(|(_, found)| *found);
        let figures = times.iter().zip(&scales).map(|(one, scale)| figure(of(one), *scale));
        let any = times.iter().any(|one| of(one).is_some());
        any.then(|| Row { kind: RowKind::Latency, label: label(*statistic, words), figures: figures.collect() })
    };
    let rows = STATISTICS.iter().enumerate().filter_map(row).collect();
    Table { heads: heads.collect(), rows, notes: notes(load, times, words) }
}

/// By the median: the largest value would hide what is usual.
pub(super) fn scale(times: &TimesView) -> units::Scale {
    let middle = Statistic::Percentile(50.0);
    let of = |wanted: Statistic| times.statistics.iter().find(|(one, _)| *one == wanted).and_then(|(_, found)| *found);
    let typical = of(middle).or_else(|| of(Statistic::Mean)).map_or(1000.0, Found::value);
    // A sum of microseconds has no digits below them.
    units::duration_scale((typical * 1e3).max(1e3))
}

pub(super) fn figure(found: Option<Found>, scale: units::Scale) -> String {
    match found {
        None => NOTHING.to_owned(),
        Some(Found::Exactly(us)) => scale.print(us * 1e3),
        Some(Found::MoreThan(us)) => format!("> {}", scale.print(us * 1e3)),
    }
}

fn head(part: Part) -> &'static str {
    match part {
        Part::Latency => "part-latency",
        Part::Service => "part-service",
        Part::FirstByte => "part-first-byte",
        Part::Connect => "part-connect",
        Part::Handshake => "part-handshake",
        Part::Page => "part-page",
    }
}

pub(crate) fn label(statistic: Statistic, words: &Catalogue) -> String {
    match statistic {
        Statistic::Min => words.word("statistic-min"),
        Statistic::Mean => words.word("statistic-mean"),
        Statistic::Max => words.word("statistic-max"),
        Statistic::Percentile(_) => statistic.name(),
    }
}

fn notes(load: &LoadResult, times: &[TimesView], words: &Catalogue) -> Vec<Sentence> {
    let Some(latency) = times.first().filter(|one| one.part == Part::Latency) else { return Vec::new() };
    let of_whom = match (&load.open, &load.sessions) {
        (_, Some(_)) => "latency-of-users",
        (Some(_), None) => "latency-of-open",
        (None, None) => "latency-of-closed",
    };
    let mut notes = vec![words.say(of_whom, &[])];
    if latency.cut_off > 0 {
        notes.push(words.say("latency-more-than", &[("n", latency.cut_off.into())]));
    }
    let rarest = latency.statistics.iter().find(|(_, found)| found.is_none()).map(|(statistic, _)| {
        let arguments = [("percentile", statistic.name().into()), ("needed", statistic.needs().into())];
        words.say("latency-too-few", &arguments)
    });
    notes.extend(rarest);
    notes
}

/// Bars of the histogram.
const BARS: u32 = 10;

/// Latencies in bars of equal width on a logarithmic axis: the largest of each, and how many are in it.
pub(crate) fn bars(latency: &Latency) -> Vec<(String, u64)> {
    let Some((min, max)) = latency.range_us() else { return Vec::new() };
    let (low, high) = (min.max(1) as f64, max.max(1) as f64);
    let bars = if high > low { BARS } else { 1 };
    let edge =
        |bar: u32| if bar == bars { f64::MAX } else { low * (high / low).powf(f64::from(bar) / f64::from(bars)) };
    let mut buckets = latency.buckets().peekable();
    let mut counted = Vec::new();
    for bar in 1..=bars {
        let mut count = 0;
        while let Some((_, n)) = buckets.next_if(|&(us, _)| us as f64 <= edge(bar)) {
            count += n;
        }
        counted.push((format!("<= {}", units::short_duration(edge(bar).min(high) * 1e3)), count));
    }
    counted
}

/// Latencies of good answers in bars, then the requests that had no answer.
pub(super) fn histogram(load: &LoadResult, words: &Catalogue) -> Vec<BarView> {
    let mut counted = bars(&load.total);
    if let Some(cut_off) = load.cut_off(Part::Latency) {
        counted.push((words.word("bar-unanswered"), cut_off.len()));
    }
    let all: u64 = counted.iter().map(|(_, count)| count).sum();
    counted
        .into_iter()
        .map(|(label, count)| BarView { label, count, share: count as f64 / all.max(1) as f64 })
        .collect()
}
