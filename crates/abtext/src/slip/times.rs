//! The table of times and the percentiles, against each other and against the rate.

use super::{Slip, What, line_of};
use crate::field::{Field, Row, Stat};
use crate::number::Range;
use crate::report::Report;

/// Rate times mean time must lie within this share of the connections.
const LITTLE: f64 = 0.1;

/// A longest request of so many medians, or a mean of so many, is not of the same kind as the others.
const LONGEST_MEDIANS: f64 = 100.0;
const MEAN_MEDIANS: f64 = 10.0;

/// What three means may be off by together: old versions cut each to a whole millisecond.
const CUT: f64 = 2.0;

pub(super) fn check(report: &Report, found: &mut Vec<Slip>) {
    for figure in report.figures.iter().filter(|figure| figure.glued) {
        let value = figure.number.map_or(0.0, |number| number.value);
        found.push(Slip { line: figure.line, what: What::Glued { written: figure.written.clone(), value } });
    }
    let mut push = |field: Field, what: Option<What>| {
        found.extend(what.map(|what| Slip { line: line_of(report, field), what }));
    };
    for row in Row::ALL {
        push(Field::Times(row, Stat::Max), row_order(report, row));
    }
    push(Field::Times(Row::Total, Stat::Mean), parts(report));
    push(Field::Times(Row::Total, Stat::Mean), little(report));
    push(Field::Times(Row::Total, Stat::Max), skewed(report));
    push(Field::Percentile(50), differs(report, 50, Stat::Median));
    push(Field::Percentile(100), differs(report, 100, Stat::Max));
    falls(report, found);
}

fn row_order(report: &Report, row: Row) -> Option<What> {
    let time = |stat| report.time(row, stat);
    let (min, max) = (time(Stat::Min)?, time(Stat::Max)?);
    let within = |value: Option<f64>| value.is_none_or(|value| min <= value && value <= max);
    let in_order = min <= max && within(time(Stat::Mean)) && within(time(Stat::Median));
    (!in_order).then_some(What::RowOrder { row })
}

fn parts(report: &Report) -> Option<What> {
    let mean = |row| report.time(row, Stat::Mean);
    let (parts, total) = (mean(Row::Connect)? + mean(Row::Processing)?, mean(Row::Total)?);
    ((parts - total).abs() > CUT).then_some(What::PartsDiffer { parts, total })
}

/// By Little's law, rate times time is how many were under way.
fn little(report: &Report) -> Option<What> {
    let asked = report.value(Field::Concurrency)?;
    let rate =
        report.value(Field::Complete)? / report.seconds().map(|seconds| seconds.range.middle()).filter(|s| *s > 0.0)?;
    let mean = report.time(Row::Total, Stat::Mean)?;
    // Old versions cut the mean to a whole millisecond, today's round it.
    let in_flight = Range { low: mean - 0.5, high: mean + 1.0 }.times(rate / 1000.0);
    let expected = Range { low: asked * (1.0 - LITTLE), high: asked * (1.0 + LITTLE) };
    (!in_flight.meets(expected)).then_some(What::Little { in_flight: mean * rate / 1000.0, asked })
}

fn skewed(report: &Report) -> Option<What> {
    let time = |stat| report.time(Row::Total, stat);
    let (median, mean, max) = (time(Stat::Median)?, time(Stat::Mean)?, time(Stat::Max)?);
    let skewed = median >= 1.0 && (max >= LONGEST_MEDIANS * median || mean >= MEAN_MEDIANS * median);
    skewed.then_some(What::Skewed { median, mean, max })
}

/// Two lines of ab that show the same request.
fn differs(report: &Report, percent: u8, stat: Stat) -> Option<What> {
    let (listed, table) = (report.value(Field::Percentile(percent))?, report.time(Row::Total, stat)?);
    // ab takes the wrong ones of the middle requests when their number is odd.
    let odd = percent == 50 && report.value(Field::Complete).is_some_and(|complete| complete % 2.0 == 1.0);
    ((listed - table).abs() >= 1.0).then_some(What::PercentileDiffers { percent, listed, table, odd })
}

fn falls(report: &Report, found: &mut Vec<Slip>) {
    let mut before: Option<(u8, f64)> = None;
    for figure in &report.figures {
        let (Field::Percentile(percent), Some(number)) = (figure.field, figure.number) else { continue };
        if before.is_some_and(|(lower, value)| lower < percent && number.value < value) {
            found.push(Slip { line: figure.line, what: What::PercentileFalls { percent } });
        }
        before = Some((percent, number.value));
    }
}
