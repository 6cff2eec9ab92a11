//! From single requests to the numbers of ab's tables.

use super::arithmetic::{Arithmetic, round_ms};
use super::ranks::{self, Counted, Found, Wanted};
use super::records::{Part, Records};
use std::io;

/// The percentiles of the table.
const PERCENTS: [u64; 9] = [50, 66, 75, 80, 90, 95, 98, 99, 100];

/// The tables of a load with at least one request.
#[derive(Debug, Clone, PartialEq)]
pub struct Times {
    /// Connect, Processing, Waiting, Total.
    pub rows: [Row; 4],
    /// Parts whose mean and median lie too far apart, with how far; never any when reckoned rightly, because there the
    /// distance between mean and median cannot exceed the standard deviation.
    pub doubts: Vec<(Part, Unsteady)>,
    /// Percent and milliseconds; empty for a single request, whose percentiles ab does not print.
    pub percentiles: Vec<(u64, u64)>,
    /// Microseconds that 0 to 100 percent do not exceed; `None` where ab looks behind the last value.
    pub served_us: Vec<Option<u32>>,
    /// Connect, Processing, Total of the HTML report.
    pub html: [HtmlRow; 3],
}

/// A row of "Connection Times", in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row {
    /// Shortest.
    pub min: u64,
    /// Mean.
    pub mean: u64,
    /// Standard deviation of a sample.
    pub sd: f64,
    /// Median.
    pub median: u64,
    /// Longest.
    pub max: u64,
}

/// How far mean and median lie apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsteady {
    /// More than a standard deviation.
    Beyond,
    /// More than two.
    FarBeyond,
}

/// A row of the HTML report, in milliseconds. Where ab subtracts, a number can be below zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HtmlRow {
    /// Shortest.
    pub min: i64,
    /// Mean.
    pub mean: i64,
    /// Longest.
    pub max: i64,
}

impl Times {
    pub(super) fn of(records: &dyn Records, arithmetic: Arithmetic) -> io::Result<Option<Times>> {
        let n = records.count();
        if n == 0 {
            return Ok(None);
        }
        let counted = ranks::count(records)?;
        let wanted = [0, 1, 2, 3].map(|i| wanted(Part::ALL[i], &counted[i], n, arithmetic));
        let found = ranks::find(records, &counted, &wanted)?;
        let rows = [0, 1, 2, 3].map(|i| row(&counted[i], &found[i], n, arithmetic));
        let total = &found[3].values[2..];
        Ok(Some(Times {
            doubts: doubts(&rows, arithmetic),
            percentiles: percentiles(total, n),
            served_us: served(&total[PERCENTS.len()..], n, arithmetic),
            html: html(&rows, &counted, n, arithmetic),
            rows,
        }))
    }
}

/// The median's two ranks; of the whole also those of the table and of the CSV file, in this order.
fn wanted(part: Part, counted: &Counted, n: u64, arithmetic: Arithmetic) -> Wanted {
    let mut ranks = arithmetic.median(n).to_vec();
    if part == Part::Total {
        ranks.extend(PERCENTS.iter().map(|percent| arithmetic.percentile(*percent, n)));
        ranks.extend((0..=100).filter_map(|percent| arithmetic.csv(percent, n)));
    }
    Wanted { ranks, around: arithmetic.centre_us(counted.sum, n) }
}

fn row(counted: &Counted, found: &Found, n: u64, arithmetic: Arithmetic) -> Row {
    let sd_us = if n > 1 { (found.squares / (n - 1) as f64).sqrt() } else { 0.0 };
    Row {
        min: round_ms(u64::from(counted.min)),
        mean: arithmetic.mean_ms(counted.sum, n),
        sd: sd_us / 1000.0,
        median: arithmetic.median_ms([found.values[0], found.values[1]]),
        max: round_ms(u64::from(counted.max)),
    }
}

fn doubts(rows: &[Row; 4], arithmetic: Arithmetic) -> Vec<(Part, Unsteady)> {
    let doubt = |row: &Row| match row.mean.abs_diff(row.median) as f64 {
        apart if apart > 2.0 * row.sd => Some(Unsteady::FarBeyond),
        apart if apart > row.sd => Some(Unsteady::Beyond),
        _ => None,
    };
    match arithmetic {
        Arithmetic::Strict => {
            Part::ALL.into_iter().zip(rows).filter_map(|(part, row)| Some((part, doubt(row)?))).collect()
        }
        Arithmetic::Right => Vec::new(),
    }
}

fn percentiles(values: &[u32], n: u64) -> Vec<(u64, u64)> {
    if n < 2 {
        return Vec::new();
    }
    PERCENTS.into_iter().zip(values).map(|(percent, us)| (percent, round_ms(u64::from(*us)))).collect()
}

/// Puts the values that were found back into their rows.
fn served(values: &[u32], n: u64, arithmetic: Arithmetic) -> Vec<Option<u32>> {
    let mut values = values.iter().copied();
    (0..=100).map(|percent| arithmetic.csv(percent, n).and_then(|_| values.next())).collect()
}

/// ab adds up rounded milliseconds here, and takes the shortest connecting from the shortest whole for the shortest processing.
fn html(rows: &[Row; 4], counted: &[Counted; 4], n: u64, arithmetic: Arithmetic) -> [HtmlRow; 3] {
    let signed = |ms: u64| i64::try_from(ms).unwrap_or(i64::MAX);
    let measured = |row: &Row| HtmlRow { min: signed(row.min), mean: signed(row.mean), max: signed(row.max) };
    let [connect, processing, _, total] = rows;
    match arithmetic {
        Arithmetic::Right => [connect, processing, total].map(measured),
        Arithmetic::Strict => {
            let mean = |counted: &Counted| signed(round_ms(counted.sum) / n);
            let connect = HtmlRow { mean: mean(&counted[0]), ..measured(connect) };
            let total = HtmlRow { mean: mean(&counted[3]), ..measured(total) };
            let rest =
                HtmlRow { min: total.min - connect.min, mean: total.mean - connect.mean, max: total.max - connect.max };
            [connect, rest, total]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Record;
    use super::*;

    /// Requests of which only the whole matters, in microseconds.
    fn totals(us: &[u32]) -> Vec<Record> {
        us.iter().map(|us| Record { total_us: *us, ..Record::default() }).collect()
    }

    fn times(records: &[Record], arithmetic: Arithmetic) -> Times {
        Times::of(&records, arithmetic).unwrap().unwrap()
    }

    #[test]
    fn nothing_has_no_times() {
        assert_eq!(Times::of(&totals(&[]), Arithmetic::Right).unwrap(), None);
    }

    #[test]
    fn one_request_has_no_percentiles_and_no_deviation() {
        for arithmetic in [Arithmetic::Strict, Arithmetic::Right] {
            let times = times(&totals(&[1499]), arithmetic);
            assert_eq!(times.rows[3], Row { min: 1, mean: 1, sd: 0.0, median: 1, max: 1 });
            assert_eq!((times.percentiles, times.doubts), (vec![], vec![]));
            assert_eq!(times.served_us[50], (arithmetic == Arithmetic::Right).then_some(1499));
        }
    }

    #[test]
    fn doubts_come_only_from_rounding() {
        let check = |us: &[u32], expected: &[(Part, Unsteady)]| {
            assert_eq!(times(&totals(us), Arithmetic::Strict).doubts, expected, "{us:?}");
            assert_eq!(times(&totals(us), Arithmetic::Right).doubts, [], "{us:?}");
        };
        // The upper of two values that differ by 0.2 ms rounds to 1 ms, the mean to 0.
        check(&[350, 550], &[(Part::Processing, Unsteady::FarBeyond), (Part::Total, Unsteady::FarBeyond)]);
        check(&[350, 351], &[]);
        // Only ab's median for three: (1000 + 9000) / 2 is nowhere near the middle, and still within one deviation.
        check(&[1000, 1000, 9000], &[]);
        // Between one deviation and two: 1 ms apart, deviation 0.6 ms.
        check(&[0, 850], &[(Part::Processing, Unsteady::Beyond), (Part::Total, Unsteady::Beyond)]);
    }

    #[test]
    fn processing_in_html_is_subtracted_or_measured() {
        let record = |connect_us, total_us| Record { connect_us, total_us, ..Record::default() };
        let records = vec![record(9_000, 10_000), record(1_000, 12_000)];
        let row = |min, mean, max| HtmlRow { min, mean, max };
        // The longest connecting is not that of the longest request: 12 - 9 = 3 ms was nobody's processing time.
        assert_eq!(times(&records, Arithmetic::Strict).html, [row(1, 5, 9), row(9, 6, 3), row(10, 11, 12)]);
        assert_eq!(times(&records, Arithmetic::Right).html, [row(1, 5, 9), row(1, 6, 11), row(10, 11, 12)]);
    }

    #[test]
    fn the_mean_in_html_is_of_rounded_milliseconds() {
        let check = |arithmetic, expected| assert_eq!(times(&totals(&[900; 10]), arithmetic).html[2].mean, expected);
        check(Arithmetic::Strict, 0);
        check(Arithmetic::Right, 1);
    }
}
