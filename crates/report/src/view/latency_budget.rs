//! What the mean latency of a cell, and that of its slowest requests, went to.

use super::table::{Row, RowKind, Table};
use super::{CellView, table};
use crate::language::{Catalogue, Sentence};
use model::accounts::{Budget, Part, Told};
use model::plan::Cell;
use model::run::Run;
use serde::Serialize;

/// Latencies, split.
#[derive(Debug, Clone, Serialize)]
pub struct LatencyBudgetView {
    /// The mean of all good answers.
    pub mean: SplitView,
    /// The mean of the slowest 1 % of each trial.
    pub slowest: Option<SplitView>,
    /// The most of it in words.
    pub sentence: Sentence,
}

/// A mean, split: the parts and the remainder make it up.
#[derive(Debug, Clone, Serialize)]
pub struct SplitView {
    /// Requests that it is the mean of.
    pub requests: u64,
    /// The mean by the client's clock.
    pub mean_us: f64,
    /// What it went to, in the order of a request's life.
    pub parts: Vec<PartView>,
    /// What no part has.
    pub remainder_us: f64,
    /// What was counted beyond the mean and taken off the waits.
    pub left_out_us: f64,
    /// Making room in memory, on a CPU or not; it is in other parts, too.
    pub reclaim_in_all_us: f64,
    /// Whether the lock part was counted, and is not what nothing else explains.
    pub lock_is_counted: bool,
}

/// One part.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct PartView {
    /// Its name, as in the latency budget's own list of parts.
    pub part: &'static str,
    /// Microseconds of an answer's latency, on average.
    pub us: f64,
}

/// The budget of a cell; `None` where its trials took no accounts.
pub(super) fn view(run: &Run, cell: &Cell, words: &Catalogue) -> Option<LatencyBudgetView> {
    let (mut all, mut slowest) = (Told::default(), Told::default());
    for trial in run.trials.iter().filter(|trial| trial.cell == cell.name && trial.measured().is_some()) {
        let accounts = trial.accounts.as_ref()?;
        all.merge(&accounts.all);
        slowest.merge(&accounts.slowest);
    }
    let mean = Budget::of(&all)?;
    Some(LatencyBudgetView {
        sentence: sentence(&mean, cell, words),
        slowest: Budget::of(&slowest).as_ref().map(split),
        mean: split(&mean),
    })
}

fn split(budget: &Budget) -> SplitView {
    SplitView {
        requests: budget.requests,
        mean_us: budget.mean_us,
        parts: Part::ALL.iter().map(|&part| PartView { part: part.name(), us: budget.part(part) }).collect(),
        remainder_us: budget.remainder_us,
        left_out_us: budget.left_out_us,
        reclaim_in_all_us: budget.reclaim_in_all_us,
        lock_is_counted: budget.lock_is_counted,
    }
}

/// `Of 6.70 s, 97.1 ms is CPU; most, 3.10 s, is swap-in.`
fn sentence(budget: &Budget, cell: &Cell, words: &Catalogue) -> Sentence {
    let most = Part::ALL.into_iter().max_by(|one, two| budget.part(*one).total_cmp(&budget.part(*two)));
    let most = most.unwrap_or(Part::OnCpu);
    let arguments = [
        ("cell", cell.name.as_str().into()),
        ("mean", printed(budget.mean_us).into()),
        ("cpu", printed(budget.part(Part::OnCpu)).into()),
        ("part", words.word(label(most)).into()),
        ("most", printed(budget.part(most)).into()),
        ("unknown", format!("{:.1}", budget.unknown() * 100.0).into()),
    ];
    words.say("budget-sentence", &arguments)
}

fn label(part: Part) -> &'static str {
    match part {
        Part::Unsent => "budget-part-unsent",
        Part::Connect => "budget-part-connect",
        Part::AcceptQueue => "budget-part-accept-queue",
        Part::CpuWait => "budget-part-cpu-wait",
        Part::OnCpu => "budget-part-on-cpu",
        Part::Reclaim => "budget-part-reclaim",
        Part::Swap => "budget-part-swap",
        Part::Disk => "budget-part-disk",
        Part::Lock => "budget-part-lock",
        Part::Sending => "budget-part-sending",
    }
}

fn printed(us: f64) -> String {
    units::short_duration(us * 1e3)
}

/// The means of all cells, printed; without rows where there is none.
pub(super) fn means(cells: &[CellView], words: &Catalogue) -> Table {
    let split = |cell: &CellView| cell.latency_budget.as_ref().map(|budget| budget.mean.clone());
    let mut table = of(cells, &split, words);
    if !table.rows.is_empty() {
        table.notes.extend(cells.iter().filter_map(|cell| Some(cell.latency_budget.as_ref()?.sentence.clone())));
        table.notes.push(words.say("budget-note", &[]));
        if cells.iter().filter_map(split).any(|split| !split.lock_is_counted) {
            table.notes.push(words.say("budget-lock-note", &[]));
        }
    }
    table
}

/// The same of the slowest.
pub(super) fn slowest(cells: &[CellView], words: &Catalogue) -> Table {
    let mut table = of(cells, &|cell| cell.latency_budget.as_ref()?.slowest.clone(), words);
    if !table.rows.is_empty() {
        table.notes.push(words.say("budget-slowest-note", &[]));
    }
    table
}

fn of(cells: &[CellView], split: &dyn Fn(&CellView) -> Option<SplitView>, words: &Catalogue) -> Table {
    let splits: Vec<Option<SplitView>> = cells.iter().map(split).collect();
    let row = |id: &str, figure: &dyn Fn(&SplitView) -> f64| {
        let figures: Vec<Option<f64>> = splits.iter().map(|split| split.as_ref().map(figure)).collect();
        let print = |us: &Option<f64>| match us {
            None => table::NOTHING.to_owned(),
            Some(us) if *us < 0.05 => "0".to_owned(),
            Some(us) => printed(*us),
        };
        let is_there = figures.iter().flatten().any(|us| *us >= 0.05);
        is_there.then(|| Row {
            kind: RowKind::Latency,
            label: words.word(id),
            figures: figures.iter().map(print).collect(),
        })
    };
    let mut rows: Vec<Row> = row("budget-mean", &|split| split.mean_us).into_iter().collect();
    for (index, part) in Part::ALL.into_iter().enumerate() {
        rows.extend(row(label(part), &|split| split.parts[index].us));
    }
    rows.extend(row("budget-remainder", &|split| split.remainder_us));
    rows.extend(row("budget-left-out", &|split| split.left_out_us));
    rows.extend(row("budget-reclaim-in-all", &|split| split.reclaim_in_all_us));
    Table { heads: table::heads(cells), rows, notes: Vec::new() }
}
