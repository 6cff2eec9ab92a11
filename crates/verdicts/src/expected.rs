//! What a plan expects of its loads, held against the trials: of one cell, or of a setting in all cells that it has.

use model::load::LoadResult;
use model::plan::{Cell, LoadSpec, Role};
use model::run::Run;
use model::threshold::{Judged, Met, Threshold, Why};
use model::trial::Trial;

/// Something that is expected of a load, and what became of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Expected<'a> {
    /// The cell that was to do it.
    pub cell: &'a Cell,
    /// Its own load, or one beside it.
    pub load: &'a LoadSpec,
    /// What is expected.
    pub threshold: &'a Threshold,
    /// What became of it in each trial that counts.
    pub judged: Vec<Judged>,
}

impl<'a> Expected<'a> {
    /// Of a cell: of its own load, then of those beside it.
    #[must_use]
    pub fn of_cell(run: &'a Run, cell: &'a Cell) -> Vec<Expected<'a>> {
        held(run, cell, &run.measured(&cell.name).collect::<Vec<_>>())
    }

    /// Of a setting that is one of these variants or several: of each cell that has one, whatever its load. The second copy of the baseline
    /// is no other setting and is heard with the first.
    #[must_use]
    pub fn of_variants(run: &'a Run, variants: &[&str]) -> Vec<Expected<'a>> {
        let is_of_one = |cell: &&Cell| cell.role != Role::Again && variants.contains(&cell.variant.as_str());
        let cells = run.head.plan.cells.iter().filter(is_of_one);
        cells.flat_map(|cell| held(run, cell, &measured(run, cell).collect::<Vec<_>>())).collect()
    }

    /// Whether it is of a load beside the cell's own.
    #[must_use]
    pub fn is_beside(&self) -> bool {
        self.load.name != self.cell.load
    }

    /// Trials in which it was met. What is not known counts as missed.
    #[must_use]
    pub fn met(&self) -> usize {
        self.judged.iter().filter(|judged| judged.is_met()).count()
    }

    /// Whether it was met in every trial, and there was one.
    #[must_use]
    pub fn is_met(&self) -> bool {
        !self.judged.is_empty() && self.met() == self.judged.len()
    }
}

/// The trials of a cell that count, those of its second copy included, with their loads.
pub(crate) fn measured<'a>(run: &'a Run, cell: &'a Cell) -> impl Iterator<Item = (&'a Trial, &'a LoadResult)> {
    let copy = run.head.plan.again().filter(|_| cell.role == Role::Baseline);
    [Some(cell), copy].into_iter().flatten().flat_map(move |cell| run.measured(&cell.name))
}

fn held<'a>(run: &'a Run, cell: &'a Cell, trials: &[(&'a Trial, &'a LoadResult)]) -> Vec<Expected<'a>> {
    let plan = &run.head.plan;
    let loads = [plan.load(cell)].into_iter().chain(&plan.beside);
    let each = loads.flat_map(|load| load.expect.iter().map(move |threshold| (load, threshold)));
    each.map(|(load, threshold)| {
        let sent = |(trial, own): &(&'a Trial, &'a LoadResult)| {
            let beside = trial.beside.iter().find(|beside| beside.name == load.name);
            if load.name == cell.load { Some(*own) } else { beside.map(|beside| &beside.load) }
        };
        let judged = |sent: Option<&LoadResult>| sent.map_or_else(|| unknown(threshold), |sent| threshold.judge(sent));
        Expected { cell, load, threshold, judged: trials.iter().map(sent).map(judged).collect() }
    })
    .collect()
}

/// What becomes of an expectation of a load that a trial does not have.
fn unknown(threshold: &Threshold) -> Judged {
    Judged { threshold: threshold.clone(), met: Met::Unknown(Why::NothingMeasured), found: None }
}
