//! The figures that ab computes from others, computed again.

use super::{Formula, Slip, What, line_of};
use crate::field::Field;
use crate::number::Range;
use crate::report::Report;

/// The figures with the formula each should follow.
const COMPUTED: [(Field, Formula); 4] = [
    (Field::Rate, Formula::Rate),
    (Field::Mean, Formula::Mean),
    (Field::Across, Formula::Across),
    (Field::TransferRate, Formula::Transfer),
];

/// How many of the computed figures fit a length of the test: how one tells which of two readings was meant.
pub(crate) fn formulas_that_fit(report: &Report, seconds: Range) -> usize {
    let fits = |field, formula| Some(value(report, formula, seconds)?.meets(report.number(field)?.range()));
    let either = |field, formula| {
        let whole = formula == Formula::Transfer && fits(field, Formula::WholeTransfer) == Some(true);
        whole || fits(field, formula) == Some(true)
    };
    COMPUTED.iter().filter(|&&(field, formula)| either(field, formula)).count()
}

pub(super) fn check(report: &Report, found: &mut Vec<Slip>) {
    let Some(seconds) = report.seconds() else { return };
    if seconds.unpadded {
        let written = report.text(Field::Seconds).unwrap_or_default().to_owned();
        let what = What::UnpaddedSeconds { written, seconds: seconds.range.low };
        found.push(Slip { line: line_of(report, Field::Seconds), what });
    }
    for (field, formula) in COMPUTED {
        let what = computed(report, field, formula, seconds.range);
        found.extend(what.map(|what| Slip { line: line_of(report, field), what }));
    }
}

fn computed(report: &Report, field: Field, formula: Formula, seconds: Range) -> Option<What> {
    let printed = report.number(field)?;
    let expected = value(report, formula, seconds)?;
    if expected.meets(printed.range()) {
        return None;
    }
    let follows = |other: &Formula| value(report, *other, seconds).is_some_and(|value| value.meets(printed.range()));
    if field == Field::TransferRate && follows(&Formula::WholeTransfer) {
        return Some(What::WholeKilobytes { printed: printed.value, exact: expected.middle() });
    }
    let follows = [Formula::Rate, Formula::Mean, Formula::Across].into_iter().find(follows);
    Some(What::Differs { field, printed, formula, expected, follows })
}

/// What a formula gives; `None` where a figure that it needs is not there.
fn value(report: &Report, formula: Formula, seconds: Range) -> Option<Range> {
    let complete = report.value(Field::Complete).filter(|complete| *complete > 0.0);
    let seconds = seconds.positive()?;
    let bytes = || report.value(Field::Transferred);
    Some(match formula {
        Formula::Rate => seconds.under(complete?),
        Formula::Mean => seconds.times(1000.0 * report.value(Field::Concurrency)? / complete?),
        Formula::Across => seconds.times(1000.0 / complete?),
        Formula::Transfer => seconds.under(bytes()? / 1024.0),
        Formula::WholeTransfer => seconds.under((bytes()? / 1024.0).floor()),
    })
}
