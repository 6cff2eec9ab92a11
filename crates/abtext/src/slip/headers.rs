//! Heads of answers: two tests of one thing should receive heads of one length.

use super::counts::failed;
use super::{Slip, What};
use crate::field::Field;
use crate::number::Range;
use crate::report::Report;

/// Heads per complete request that differ by less than this are one length: a date or a length grows by a digit.
const ALIKE: f64 = 0.5;

/// Heads of different length among reports about one thing; one slip for each thing.
#[must_use]
pub fn headers(reports: &[&Report]) -> Vec<Slip> {
    let mut subjects: Vec<(&str, Vec<Heads>)> = Vec::new();
    for (index, report) in reports.iter().enumerate() {
        let (Some(subject), Some(heads)) = (report.subject(), heads(report, index)) else { continue };
        match subjects.iter_mut().find(|(other, _)| *other == subject) {
            Some((_, all)) => all.push(heads),
            None => subjects.push((subject, vec![heads])),
        }
    }
    subjects.into_iter().filter_map(|(_, all)| differing(&all)).collect()
}

/// What a report's answers had before their bodies.
struct Heads {
    index: usize,
    line: usize,
    /// Bytes per complete request.
    per_answer: f64,
    /// The same, were answers in flight among them when ab stopped.
    possible: Range,
}

fn heads(report: &Report, index: usize) -> Option<Heads> {
    let complete = report.value(Field::Complete).filter(|complete| *complete > 0.0 && !failed(report))?;
    let bytes = report.value(Field::Transferred)? - report.value(Field::Html)?;
    let most = complete + report.value(Field::Concurrency).unwrap_or(1.0);
    let per_answer = bytes / complete;
    let possible = Range { low: bytes / most, high: per_answer };
    (bytes > 0.0).then_some(Heads { index, line: report.first_line(), per_answer, possible })
}

fn differing(all: &[Heads]) -> Option<Slip> {
    let ends =
        |least: f64, most: f64| all.iter().fold((least, most), |(l, m), h| (h.per_answer.min(l), h.per_answer.max(m)));
    let (least, most) = ends(f64::INFINITY, f64::NEG_INFINITY);
    if most - least < ALIKE {
        return None;
    }
    // All have a value in common when the highest of the lower ends does not lie above any upper end.
    let low = all.iter().map(|heads| heads.possible.low).fold(0.0, f64::max);
    let in_flight = all.iter().all(|heads| heads.possible.meets(Range { low, high: f64::MAX }));
    let per_answer = all.iter().map(|heads| (heads.index, heads.per_answer)).collect();
    Some(Slip { line: all.first()?.line, what: What::HeaderBytes { per_answer, in_flight } })
}
