//! The cells side by side, printed: the table that ends the first document, with its rows in that order, and what was compared.

use crate::language::{Catalogue, Sentence};
use crate::view::{CellView, LatencyView};
use model::plan::Role;

/// The cells as columns of printed figures.
#[derive(Debug, Clone, Default)]
pub struct Table {
    /// Names of the cells.
    pub heads: Vec<String>,
    /// The rows, one kind of figure each.
    pub rows: Vec<Row>,
    /// What must be known to read them.
    pub notes: Vec<Sentence>,
}

/// One kind of figure over all cells, in one scale.
#[derive(Debug, Clone)]
pub struct Row {
    /// Which.
    pub kind: RowKind,
    /// Its name, with its unit.
    pub label: String,
    /// One printed figure per cell.
    pub figures: Vec<String>,
}

/// The kinds of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowKind {
    /// Length of the window.
    Time,
    /// Good answers per second.
    Rate,
    /// A latency.
    Latency,
    /// Failures.
    Failed,
    /// Requests that are neither good answers nor failures.
    Uncounted,
    /// Trials that count, of those made.
    Trials,
    /// Ratio to the baseline.
    Ratio,
    /// Interval of the ratio.
    Interval,
    /// Verdict.
    Verdict,
}

/// Stands where there is no figure.
pub(crate) const NOTHING: &str = "–";

/// A ratio with the digits that a difference of 1 % needs near 1 and three significant digits elsewhere.
///
/// Beyond a factor of a million, as the ends of an interval of two trials may lie, it says no more than that.
pub(crate) fn ratio(value: f64) -> String {
    let decimals = match value {
        0.0 => 0,
        x if x < 1e-6 => return "<0.000001".to_owned(),
        x if x > 1e6 => return ">1000000".to_owned(),
        x if x < 1e-4 => 6,
        x if x >= 99.95 => 0,
        x if x >= 9.995 => 1,
        x if x >= 1.9995 => 2,
        x if x >= 0.1 => 3,
        _ => 4,
    };
    format!("{value:.decimals$}")
}

/// A percentage with the digits it needs, such as `95` or `99.9`.
pub(crate) fn percent(share: f64) -> String {
    let value = (share * 1e4).round() / 1e2;
    format!("{value}")
}

/// `compared` is whether the cells' own comparisons are what the plan asks for.
pub(crate) fn of(cells: &[CellView], compared: bool, confidence: f64, words: &Catalogue) -> Table {
    let mut rows = vec![
        plain(RowKind::Time, words, "row-time", cells, |cell| cell.window_s),
        plain(RowKind::Rate, words, "row-rate", cells, |cell| cell.good_per_s),
    ];
    rows.extend(latencies(cells, words));
    let row = |kind, id: &str, figure: &dyn Fn(&CellView) -> String| Row {
        kind,
        label: words.word(id),
        figures: cells.iter().map(figure).collect(),
    };
    let counted = |cell: &CellView, n: u64| if cell.trials_used == 0 { NOTHING.to_owned() } else { n.to_string() };
    rows.push(row(RowKind::Failed, "row-failed", &|cell| counted(cell, cell.failed())));
    let mut notes = Vec::new();
    if cells.iter().any(|cell| cell.trials_used > 0) {
        notes.push(words.say("table-note", &[]));
    }
    if cells.iter().any(|cell| cell.latency.as_ref().is_some_and(|latency| latency.unanswered > 0)) {
        notes.push(words.say("unanswered-note", &[]));
    }
    for (id, note, count) in [
        ("row-in-flight", "in-flight-note", (|cell| cell.in_flight) as fn(&CellView) -> u64),
        ("row-retries", "retries-note", |cell| cell.retries),
        ("row-abandoned", "abandoned-note", |cell| cell.abandoned),
    ] {
        if cells.iter().any(|cell| count(cell) > 0) {
            rows.push(row(RowKind::Uncounted, id, &|cell| counted(cell, count(cell))));
            notes.push(words.say(note, &[]));
        }
    }
    rows.push(row(RowKind::Trials, "row-trials", &|cell| format!("{}/{}", cell.trials_used, cell.trials_made)));
    if cells.len() > 1 && compared {
        let baseline = words.word("role-baseline");
        let of_comparison = |cell: &CellView, figure: fn(&crate::view::ComparisonView) -> Option<String>| {
            cell.comparison.as_ref().and_then(figure).unwrap_or_else(|| NOTHING.to_owned())
        };
        rows.push(row(RowKind::Ratio, "row-ratio", &|cell| match cell.role {
            Role::Baseline => baseline.clone(),
            _ => of_comparison(cell, |c| Some(format!("×{}", ratio(c.ratio)))),
        }));
        rows.push(Row {
            kind: RowKind::Interval,
            label: words.say("row-interval", &[("confidence", percent(confidence).into())]).text,
            figures: cells
                .iter()
                .map(|cell| of_comparison(cell, |c| Some(format!("{}–{}", ratio(c.low?), ratio(c.high?)))))
                .collect(),
        });
        rows.push(row(RowKind::Verdict, "row-verdict", &|cell| of_comparison(cell, |c| Some(c.verdict.text.clone()))));
    }
    Table { heads: heads(cells), rows, notes }
}

/// The medians of a request's parts, each in its own scale.
pub(crate) fn phases(cells: &[CellView], words: &Catalogue) -> Table {
    type Figure = fn(&CellView) -> Option<u64>;
    let parts: [(&str, Figure); 3] = [
        ("row-connect", |cell| cell.connect_median_us),
        ("row-first-byte", |cell| cell.first_byte_median_us),
        ("row-last-byte", |cell| cell.latency.as_ref().and_then(|latency| latency.median_us)),
    ];
    let rows = parts.into_iter().map(|(id, median)| {
        let medians: Vec<Option<f64>> = cells.iter().map(|cell| Some(median(cell)? as f64 * 1e3)).collect();
        latency_row(words, id, medians.iter().flatten().copied().reduce(f64::max), &medians)
    });
    Table { heads: heads(cells), rows: rows.collect(), notes: vec![words.say("phases-note", &[])] }
}

pub(crate) fn heads(cells: &[CellView]) -> Vec<String> {
    cells.iter().map(|cell| cell.name.clone()).collect()
}

/// A row of plain numbers. Its smallest above 0 keeps three digits, as it is the one a collapse is read from; thousands need no
/// fractions.
fn plain(
    kind: RowKind,
    words: &Catalogue,
    id: &str,
    cells: &[CellView],
    value: impl Fn(&CellView) -> Option<f64>,
) -> Row {
    let values: Vec<_> = cells.iter().map(value).collect();
    let largest = values.iter().flatten().copied().fold(0.0, f64::max);
    let smallest = values.iter().flatten().copied().filter(|value| *value > 0.0).fold(largest, f64::min);
    let scale = units::si(if largest < 1000.0 { smallest } else { largest });
    Row { kind, label: words.word(id), figures: values.into_iter().map(|value| print(value, scale)).collect() }
}

fn print(value: Option<f64>, scale: units::Scale) -> String {
    value.map_or_else(|| NOTHING.to_owned(), |value| scale.print(value))
}

/// The latency rows share one scale, chosen by the largest median: the largest maximum would hide what is usual.
fn latencies(cells: &[CellView], words: &Catalogue) -> Vec<Row> {
    type Figure = fn(&LatencyView) -> Option<f64>;
    let figures: [(&str, Figure); 5] = [
        ("row-min", |l| l.min_us.map(|us| us as f64)),
        ("row-mean", |l| l.mean_us),
        ("row-median", |l| l.median_us.map(|us| us as f64)),
        ("row-p99", |l| l.p99_us.map(|us| us as f64)),
        ("row-max", |l| l.max_us.map(|us| us as f64)),
    ];
    let medians = cells.iter().filter_map(|cell| cell.latency.as_ref()).filter_map(|l| Some(l.median_us? as f64 * 1e3));
    let largest = medians.reduce(f64::max);
    let in_ns = |cell: &CellView, figure: Figure| Some(figure(cell.latency.as_ref()?)? * 1e3);
    let row = |(id, figure): (&str, Figure)| {
        latency_row(words, id, largest, &cells.iter().map(|cell| in_ns(cell, figure)).collect::<Vec<_>>())
    };
    figures.into_iter().map(row).collect()
}

/// A row of nanoseconds in the scale of the `largest`; milliseconds when there is nothing to choose by.
fn latency_row(words: &Catalogue, id: &str, largest: Option<f64>, ns: &[Option<f64>]) -> Row {
    let scale = units::duration_scale(largest.unwrap_or(1e6));
    Row {
        kind: RowKind::Latency,
        label: words.say(id, &[("unit", scale.unit.into())]).text,
        figures: ns.iter().map(|&value| print(value, scale)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(values: &[f64], expected: &str) {
        assert_eq!(values.iter().map(|&value| ratio(value)).collect::<Vec<_>>().join(" "), expected);
    }

    #[test]
    fn ratios_show_what_matters() {
        check(&[0.012_34, 0.135, 0.987_6, 1.0, 1.024_9], "0.0123 0.135 0.988 1.000 1.025");
        check(&[2.0, 7.346, 10.94, 123.4, 0.0], "2.00 7.35 10.9 123 0");
        check(&[0.000_1, 0.000_04, 1e-300, 1e6, 5.7e16], "0.0001 0.000040 <0.000001 1000000 >1000000");
        assert_eq!((percent(0.95), percent(0.999), percent(0.9875)), ("95".into(), "99.9".into(), "98.75".into()));
    }
}
