//! What an independent visitor saw beside a load: counted apart, and shown beside what the load itself saw.

use super::times;
use super::{ProbeView, TimesView, VisitorSecond};
use crate::language::{Catalogue, Sentence};
use crate::view::{Row, RowKind, Table, cells};
use model::latency::Latency;
use model::load::{Counts, LoadInterval, LoadResult};
use model::statistic::{Part, Statistic};

/// Of a visitor who came at all.
pub(super) fn view(seen: Option<&LoadResult>, load: &LoadResult, words: &Catalogue) -> Option<ProbeView> {
    let seen = seen?;
    let visits = seen.open.as_ref().map_or_else(|| seen.sent(), |open| open.arrived);
    if visits == 0 {
        return None;
    }
    let latency = times::view(seen, Part::Latency)?;
    let table = table(&latency, times::view(load, Part::Latency).as_ref(), words);
    Some(ProbeView {
        visits,
        unanswered: visits.saturating_sub(seen.counts.good + seen.counts.failures()),
        counts: seen.counts.clone(),
        failures: cells::failures(&seen.counts, &seen.examples, words),
        sentences: sentences(visits, seen, &latency, words),
        connect: times::view(seen, Part::Connect).filter(|times| times.count > 0),
        latency,
        table,
    })
}

/// What a visitor saw in a second of the load. The two count their seconds from moments apart by as much as a thread takes to
/// start, so one of the visitor's belongs to that of the load which has its middle; the last one to the last.
pub(super) fn second(seen: &LoadResult, load: &LoadResult, of: &LoadInterval) -> VisitorSecond {
    let end_ns = of.start_ns + of.length_ns;
    let is_last = load.intervals.last().is_none_or(|last| last.start_ns == of.start_ns);
    let is_first = load.intervals.first().is_none_or(|first| first.start_ns == of.start_ns);
    let belongs = |theirs: &&LoadInterval| {
        let middle = theirs.start_ns + theirs.length_ns / 2;
        (middle >= of.start_ns || is_first) && (middle < end_ns || is_last)
    };
    let (mut counts, mut latency) = (Counts::default(), Latency::new());
    for theirs in seen.intervals.iter().filter(belongs) {
        counts.merge(&theirs.counts);
        latency.merge(&theirs.total.unpack());
    }
    VisitorSecond {
        good: counts.good,
        failed: counts.failures(),
        mean_us: latency.mean_us(),
        max_us: latency.range_us().map(|(_, max)| max),
    }
}

fn sentences(visits: u64, seen: &LoadResult, latency: &TimesView, words: &Catalogue) -> Vec<Sentence> {
    let failed = seen.counts.failures();
    let unanswered = visits.saturating_sub(seen.counts.good + failed);
    let arguments = [("n", visits.into()), ("good", seen.counts.good.into()), ("failed", failed.into())];
    let mut told = vec![words.say("probe-visits", &arguments)];
    if unanswered > 0 {
        told.push(words.say("probe-unanswered", &[("n", unanswered.into())]));
    }
    let mut percentiles =
        latency.statistics.iter().filter(|(statistic, _)| matches!(statistic, Statistic::Percentile(_)));
    let rarest = percentiles.rfind(|(_, found)| found.is_some()).map(|(statistic, _)| statistic.name());
    let (values, latency_of) = (latency.count + latency.cut_off, words.say("probe-connects", &[]));
    if values > 0 {
        told.push(match rarest {
            Some(name) => words.say("probe-few", &[("n", values.into()), ("percentile", name.into())]),
            None => words.say("probe-too-few", &[("n", values.into())]),
        });
        told.push(latency_of);
    }
    told
}

/// The visitor's latencies and the load's, in one scale: they are there to be compared.
fn table(visitor: &TimesView, load: Option<&TimesView>, words: &Catalogue) -> Table {
    if visitor.count + visitor.cut_off == 0 {
        return Table::default();
    }
    let scale = times::scale(visitor);
    let unit = || [("unit", scale.unit.into())];
    let columns: Vec<&TimesView> = std::iter::once(visitor).chain(load).collect();
    let heads = ["probe-visitor", "probe-load"].iter().take(columns.len());
    let row = |(index, (statistic, found)): (usize, &(Statistic, _))| {
        let of = |one: &&TimesView| times::figure(one.statistics.get(index).and_then(|(_, found)| *found), scale);
        Option::is_some(found).then(|| Row {
            kind: RowKind::Latency,
            label: times::label(*statistic, words),
            figures: columns.iter().map(of).collect(),
        })
    };
    Table {
        heads: heads.map(|id| words.say(id, &unit()).text).collect(),
        rows: visitor.statistics.iter().enumerate().filter_map(row).collect(),
        notes: Vec::new(),
    }
}
