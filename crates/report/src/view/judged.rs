//! What the rules say about a run: comparisons of cells and diagnoses of trials. No words yet.

use crate::language::{Catalogue, Sentence};
use crate::view::table::ratio;
use diagnosis::Diagnosis;
use model::plan::{Cell, Role};
use model::run::Run;
use model::trial::Trial;
use stats::{Better, Comparison, Criteria, Pairs, StatsError, Verdict};
use std::collections::BTreeMap;

/// A run's verdicts.
pub(crate) struct Judged {
    /// By the cell's name; the baseline has none.
    comparisons: BTreeMap<String, Compared>,
    /// Cells that could not be compared although both they and the baseline were measured, and why.
    refused: Vec<(String, StatsError)>,
    /// By the position of the trial in the run; `None` for trials without a load.
    trials: Vec<Option<Diagnosis>>,
}

/// A cell against the baseline, and the blocks that no ratio can be made of.
pub(crate) struct Compared {
    pub(crate) comparison: Comparison,
    /// Blocks in which both were measured and one of them gave no good answer at all.
    pub(crate) unanswered: usize,
}

impl Judged {
    pub(crate) fn of(run: &Run) -> Judged {
        let cells = &run.head.plan.cells;
        let (mut comparisons, mut refused) = (BTreeMap::new(), Vec::new());
        for cell in cells {
            match compared(run, cell) {
                Ok(Some(compared)) => drop(comparisons.insert(cell.name.clone(), compared)),
                Ok(None) => {}
                Err(error) => refused.push((cell.name.clone(), error)),
            }
        }
        if let Some(again) = cells.iter().find(|cell| cell.role == Role::Again) {
            let again = comparisons.get(&again.name).map(|again: &Compared| again.comparison.clone());
            for cell in cells.iter().filter(|cell| cell.role == Role::Candidate) {
                if let Some(compared) = comparisons.get_mut(&cell.name) {
                    compared.comparison = stats::against_noise(compared.comparison.clone(), again.as_ref());
                }
            }
        }
        let diagnosed = |trial: &Trial| {
            let cell = run.head.plan.cell(&trial.cell)?;
            trial.load.as_ref()?;
            Some(diagnosis::diagnose(&run.head, cell, trial))
        };
        Judged { comparisons, refused, trials: run.trials.iter().map(diagnosed).collect() }
    }

    /// A cell against the baseline.
    pub(crate) fn compared(&self, cell: &Cell) -> Option<&Compared> {
        self.comparisons.get(&cell.name)
    }

    /// Every comparison made, in the plan's order of cells.
    pub(crate) fn comparisons<'a>(&'a self, run: &'a Run) -> impl Iterator<Item = (&'a Cell, &'a Comparison)> {
        run.head.plan.cells.iter().filter_map(|cell| Some((cell, &self.compared(cell)?.comparison)))
    }

    /// The comparisons that could not be made, by cell.
    pub(crate) fn refused(&self) -> &[(String, StatsError)] {
        &self.refused
    }

    /// What limited the trial at this position in the run.
    pub(crate) fn trial(&self, index: usize) -> Option<&Diagnosis> {
        self.trials.get(index)?.as_ref()
    }

    /// What limited a cell, over its trials that count.
    pub(crate) fn cell(&self, run: &Run, cell: &Cell) -> Option<Diagnosis> {
        let counts = |trial: &Trial| trial.cell == cell.name && trial.measured().is_some();
        let of_cell = run.trials.iter().zip(&self.trials).filter(|(trial, _)| counts(trial));
        let found: Vec<Diagnosis> = of_cell.filter_map(|(_, diagnosis)| diagnosis.clone()).collect();
        (!found.is_empty()).then(|| diagnosis::over_trials(&found))
    }

    /// What the A/A cell says about noise.
    pub(crate) fn noise_floor(&self, run: &Run, words: &Catalogue) -> Option<Sentence> {
        let cell = run.head.plan.cells.iter().find(|cell| cell.role == Role::Again)?;
        let again = &self.compared(cell)?.comparison;
        let (interval, floor) = (again.interval?, stats::noise_floor(again)?);
        Some(words.say(
            "noise-floor",
            &[
                ("ratio", ratio(again.ratio).into()),
                ("low", ratio(interval.low).into()),
                ("high", ratio(interval.high).into()),
                ("floor", ratio(floor).into()),
            ],
        ))
    }
}

/// ln of good answers per second, paired by the blocks in which both cells were measured; `None` when there is no such block.
///
/// A total failure has no logarithm, and leaving its block out would judge a cell by the blocks it survived. So one such block
/// is enough for no verdict, with one exception: a cell that failed totally in every block, of at least two, in which the baseline
/// always answered is worse.
fn compared(run: &Run, cell: &Cell) -> Result<Option<Compared>, StatsError> {
    let plan = &run.head.plan;
    let baseline = plan.baseline();
    if cell.name == baseline.name {
        return Ok(None);
    }
    let goodputs = |name| run.measured(name).map(|(trial, load)| (trial.block, load.goodput())).collect();
    let (of_baseline, of_cell): (BTreeMap<u32, f64>, BTreeMap<u32, f64>) =
        (goodputs(&baseline.name), goodputs(&cell.name));
    let pairs: Vec<(f64, f64)> =
        of_baseline.iter().filter_map(|(block, base)| Some((*base, *of_cell.get(block)?))).collect();
    // Without a single good answer of the baseline there is nothing to compare with.
    if pairs.iter().all(|(base, _)| *base <= 0.0) {
        return Ok(None);
    }
    let (baseline, other): (Vec<f64>, Vec<f64>) =
        pairs.iter().filter(|(base, own)| *base > 0.0 && *own > 0.0).map(|(base, own)| (base.ln(), own.ln())).unzip();
    let unanswered = pairs.len() - baseline.len();
    if pairs.iter().all(|(base, own)| *base > 0.0 && *own <= 0.0) {
        let verdict = if unanswered > 1 { Verdict::Worse } else { Verdict::Inconclusive { more_blocks: None } };
        let comparison = Comparison { ratio: 0.0, interval: None, blocks: 0, verdict, warnings: Vec::new() };
        return Ok(Some(Compared { comparison, unanswered }));
    }
    let criteria = Criteria::new(Better::Higher, plan.confidence, plan.margin)?;
    let mut comparison = stats::compare(Pairs { baseline: &baseline, other: &other }, &criteria)?;
    if unanswered > 0 {
        comparison.verdict = Verdict::Inconclusive { more_blocks: None };
    }
    Ok(Some(Compared { comparison, unanswered }))
}
