//! What cells are compared by beside their throughput: latency, the server's CPU time, its memory. Each is a question of its own, so its
//! intervals hold together over the cells and not over the metrics, and none of them decides a run.

use crate::language::Catalogue;
use crate::view::compared::{missing, missing_shown, verdict_word};
use crate::view::table::{NOTHING, Row, RowKind, Table, heads, percent, ratio};
use crate::view::{CellView, MetricView};
use model::plan::{Cell, Role};
use model::reading::Column;
use model::run::Run;
use verdicts::{Metric, Verdicts};

/// The metrics beside throughput, judged.
pub(crate) struct Others(Vec<(Metric, Verdicts)>);

impl Others {
    pub(crate) fn of(run: &Run) -> Others {
        let beside = Metric::ALL.into_iter().filter(|metric| *metric != Metric::Goodput);
        Others(beside.map(|metric| (metric, Verdicts::of(run, metric))).collect())
    }

    /// Each metric with its verdicts.
    pub(crate) fn each(&self) -> impl Iterator<Item = &(Metric, Verdicts)> {
        self.0.iter()
    }

    /// Every metric that the cell has a number for.
    pub(crate) fn views(&self, run: &Run, cell: &Cell, words: &Catalogue) -> Vec<MetricView> {
        let view = |(metric, verdicts): &(Metric, Verdicts)| {
            let logarithms: Vec<f64> =
                run.measured(&cell.name).filter_map(|(trial, load)| metric.of(trial, load)).map(f64::ln).collect();
            let mean = stats::summarize(&logarithms).ok()?.mean.exp();
            let comparison = verdicts.compared(cell).map(|compared| &compared.comparison);
            Some(MetricView {
                metric: metric.name(),
                unit: unit(*metric),
                value: mean,
                ratio: comparison.map(|it| it.ratio),
                low: comparison.and_then(|it| Some(it.interval?.low)),
                high: comparison.and_then(|it| Some(it.interval?.high)),
                blocks: comparison.map_or(0, |it| it.blocks),
                verdict: comparison.map(|it| verdict_word(it.verdict, words)),
                more_blocks: comparison.filter(|_| cell.role != Role::Again).and_then(missing),
            })
        };
        self.0.iter().filter_map(view).collect()
    }
}

fn unit(metric: Metric) -> &'static str {
    match metric {
        Metric::Goodput => "1/s",
        Metric::Median | Metric::P99 | Metric::CpuPerAnswer => "us",
        Metric::MemoryPeak => "bytes",
    }
}

/// Each metric with what it came to and how that compares; empty when there is nothing to compare.
/// `compared` is whether the cells' own comparisons are what the plan asks for.
pub(crate) fn table(run: &Run, cells: &[CellView], compared: bool, words: &Catalogue) -> Table {
    let confidence = run.head.plan.confidence;
    let known =
        |metric: Metric| cells.iter().any(|cell| of(cell, metric).is_some_and(|it| it.ratio.is_some() || !compared));
    let shown: Vec<Metric> = Metric::ALL.into_iter().filter(|metric| known(*metric)).collect();
    if shown.is_empty() {
        return Table::default();
    }
    let of_memory = shown.contains(&Metric::MemoryPeak);
    let rows: Vec<Row> =
        shown.into_iter().flat_map(|metric| rows(cells, metric, compared, confidence, words)).collect();
    let is_open = compared && cells.iter().flat_map(|cell| &cell.metrics).any(|view| view.more_blocks.is_some());
    let note = if compared { "metrics-note" } else { "metrics-alone-note" };
    let is_resident = of_memory && is_resident(run);
    let notes = [note].into_iter().chain(is_open.then_some("missing-note"));
    let notes = notes.chain(is_resident.then_some("metrics-resident-note"));
    Table { heads: heads(cells), rows, notes: notes.map(|note| words.say(note, &[])).collect() }
}

/// Whether memory is what several processes have resident, as there was no group whose own would be known.
fn is_resident(run: &Run) -> bool {
    let rows = || run.trials.iter().filter(|it| it.measured().is_some()).flat_map(|it| &it.readings.rows);
    let several = rows().any(|row| row.get(Column::TreeProcesses).is_some_and(|count| count > 1));
    several && rows().all(|row| row.get(Column::GroupAnon).is_none())
}

fn of(cell: &CellView, metric: Metric) -> Option<&MetricView> {
    cell.metrics.iter().find(|view| view.metric == metric.name())
}

fn rows(cells: &[CellView], metric: Metric, compared: bool, confidence: f64, words: &Catalogue) -> Vec<Row> {
    let values: Vec<Option<f64>> = cells.iter().map(|cell| Some(of(cell, metric)?.value)).collect();
    if !compared {
        return vec![printed(metric, &values, words)];
    }
    let compared = |cell: &CellView, figure: fn(&MetricView) -> Option<String>| {
        of(cell, metric).and_then(figure).unwrap_or_else(|| NOTHING.to_owned())
    };
    let baseline = words.word("role-baseline");
    let ratio_of = |cell: &CellView| match cell.role {
        Role::Baseline => baseline.clone(),
        Role::Again | Role::Candidate => compared(cell, |view| Some(format!("×{}", ratio(view.ratio?)))),
    };
    let interval = |cell: &CellView| compared(cell, |view| Some(format!("{}–{}", ratio(view.low?), ratio(view.high?))));
    let verdict = |cell: &CellView| compared(cell, |view| Some(view.verdict.as_ref()?.text.clone()));
    let row = |kind, label: String, figure: &dyn Fn(&CellView) -> String| Row {
        kind,
        label: format!("  {label}"),
        figures: cells.iter().map(figure).collect(),
    };
    let confidence = words.say("row-interval", &[("confidence", percent(confidence).into())]).text;
    let more = |cell: &CellView| compared(cell, |view| view.more_blocks.map(missing_shown));
    let is_missing = cells.iter().any(|cell| of(cell, metric).is_some_and(|view| view.more_blocks.is_some()));
    let mut rows = vec![
        printed(metric, &values, words),
        row(RowKind::Ratio, words.word("row-against"), &ratio_of),
        row(RowKind::Interval, confidence, &interval),
        // Not of the kind that is coloured by the verdict on throughput.
        row(RowKind::Interval, words.word("row-verdict"), &verdict),
    ];
    rows.extend(is_missing.then(|| row(RowKind::Interval, words.word("row-missing"), &more)));
    rows
}

/// The numbers themselves, in one scale.
fn printed(metric: Metric, values: &[Option<f64>], words: &Catalogue) -> Row {
    let largest = values.iter().flatten().copied().fold(0.0, f64::max);
    let (unit, figures): (String, Vec<Option<String>>) = match metric {
        Metric::MemoryPeak => (
            String::new(),
            values.iter().map(|value| Some(units::short_bytes(value.as_ref()?.round() as u64))).collect(),
        ),
        _ => {
            let scale = units::duration_scale(largest * 1e3);
            let figures = values.iter().map(|value| Some(scale.print(value.as_ref()? * 1e3))).collect();
            (scale.unit.to_owned(), figures)
        }
    };
    let figures = figures.into_iter().map(|figure| figure.unwrap_or_else(|| NOTHING.to_owned())).collect();
    let label = words.say(&format!("metric-{}", metric.name()), &[("unit", unit.into())]).text;
    Row { kind: RowKind::Failed, label, figures }
}
