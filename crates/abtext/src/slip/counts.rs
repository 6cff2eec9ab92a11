//! Counts held against each other: failures, bytes, connections, and the lines that are not there.

use super::{Slip, What, line_of};
use crate::field::{ALWAYS, CAUSES, Field};
use crate::report::Report;

/// Below so many requests per connection, start and end of the test weigh heavily.
const WAVES: f64 = 10.0;

/// The number of requests at which `-t` stops although its time is not over.
const CAP: f64 = 50_000.0;

pub(super) fn check(report: &Report, found: &mut Vec<Slip>) {
    let mut push = |field: Field, what: Option<What>| {
        found.extend(what.map(|what| Slip { line: line_of(report, field), what }));
    };
    let missing = missing(report);
    push(Field::Concurrency, (!missing.is_empty()).then_some(What::Missing { fields: missing }));
    push(Field::Failed, failure_sum(report));
    push(Field::Rate, failures_in_rate(report));
    push(Field::KeepAlive, keep_alive_unused(report));
    push(Field::Html, body_bytes(report));
    push(Field::Transferred, bodies_exceed_total(report));
    push(Field::Complete, capped(report));
    push(Field::Complete, waves(report));
}

/// What every ab prints between lines that are there.
pub(crate) fn missing(report: &Report) -> Vec<Field> {
    let has = |field: &Field| report.figure(*field).is_some();
    let (Some(first), Some(last)) = (ALWAYS.iter().position(has), ALWAYS.iter().rposition(has)) else { return vec![] };
    let mut missing: Vec<Field> = ALWAYS[first..=last].iter().copied().filter(|field| !has(field)).collect();
    let asked = report.command.as_ref().is_some_and(|command| command.keep_alive);
    if asked && !has(&Field::KeepAlive) && has(&Field::Complete) && has(&Field::TransferRate) {
        missing.push(Field::KeepAlive);
    }
    missing
}

fn failure_sum(report: &Report) -> Option<What> {
    let failed = report.value(Field::Failed)?;
    let causes: Vec<f64> = CAUSES.iter().filter_map(|(_, field)| report.value(*field)).collect();
    let sum: f64 = causes.iter().sum();
    let differ = !causes.is_empty() && (sum - failed).abs() >= 1.0;
    differ.then_some(What::FailureSum { failed, causes: sum })
}

fn failures_in_rate(report: &Report) -> Option<What> {
    let (good, complete) = (report.good()?, report.value(Field::Complete)?);
    let printed = report.value(Field::Rate)?;
    let good_rate = report.good_per_second()?;
    (good < complete).then_some(What::FailuresInRate { printed, good_rate, good, complete })
}

fn keep_alive_unused(report: &Report) -> Option<What> {
    let complete = report.value(Field::Complete)?;
    (complete > 0.0 && report.value(Field::KeepAlive)? == 0.0).then_some(What::KeepAliveUnused { complete })
}

/// Whether requests failed, so that answers are of several lengths.
pub(super) fn failed(report: &Report) -> bool {
    [Field::Failed, Field::NonSuccess].iter().any(|field| report.value(*field).is_some_and(|count| count > 0.0))
}

fn body_bytes(report: &Report) -> Option<What> {
    let length = report.value(Field::DocumentLength).filter(|length| *length > 0.0)?;
    let (html, complete) = (report.value(Field::Html)?, report.value(Field::Complete)?);
    let answers = html / length;
    if failed(report) || (answers - complete).abs() < 1e-9 {
        return None;
    }
    let most = report.value(Field::Concurrency).unwrap_or(1.0);
    let in_flight = answers > complete && answers <= complete + most;
    Some(What::BodyBytes { answers, complete, in_flight })
}

fn bodies_exceed_total(report: &Report) -> Option<What> {
    let (html, total) = (report.value(Field::Html)?, report.value(Field::Transferred)?);
    (html > total).then_some(What::BodiesExceedTotal { html, total })
}

fn capped(report: &Report) -> Option<What> {
    let command = report.command.as_ref()?;
    let capped = command.timed && command.requests.is_none() && report.value(Field::Complete) == Some(CAP);
    capped.then_some(What::Capped)
}

fn waves(report: &Report) -> Option<What> {
    let complete = report.value(Field::Complete)?;
    let connections = report.value(Field::Concurrency).filter(|connections| *connections > 1.0)?;
    let waves = complete / connections;
    match waves {
        waves if waves <= 1.0 => Some(What::OneWave { complete }),
        waves if waves < WAVES => Some(What::FewWaves { waves }),
        _ => None,
    }
}
