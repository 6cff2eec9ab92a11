//! What the rules say about a run: comparisons of cells and diagnoses of trials. No words yet.

use crate::language::{Catalogue, Sentence};
use crate::view::table::ratio;
use diagnosis::Diagnosis;
use model::plan::{Cell, Role};
use model::run::Run;
use model::trial::Trial;
use stats::{Better, Comparison, Criteria, Pairs};
use std::collections::BTreeMap;

/// A run's verdicts.
pub(crate) struct Judged {
    /// By the cell's name; the baseline has none.
    comparisons: BTreeMap<String, Comparison>,
    /// By the position of the trial in the run; `None` for trials without a load.
    trials: Vec<Option<Diagnosis>>,
}

impl Judged {
    pub(crate) fn of(run: &Run) -> Judged {
        let plan = &run.head.plan;
        let again = plan.cells.iter().find(|cell| cell.role == Role::Again).and_then(|cell| compared(run, cell));
        let comparisons = plan.cells.iter().filter_map(|cell| {
            let comparison = compared(run, cell)?;
            let comparison = match &again {
                Some(again) if cell.role == Role::Candidate => stats::against_noise(comparison, again),
                _ => comparison,
            };
            Some((cell.name.clone(), comparison))
        });
        let diagnosed = |trial: &Trial| {
            let cell = plan.cell(&trial.cell)?;
            trial.load.as_ref()?;
            Some(diagnosis::diagnose(&run.head, cell, trial))
        };
        Judged { comparisons: comparisons.collect(), trials: run.trials.iter().map(diagnosed).collect() }
    }

    /// A cell against the baseline.
    pub(crate) fn comparison(&self, cell: &Cell) -> Option<&Comparison> {
        self.comparisons.get(&cell.name)
    }

    /// Every comparison made.
    pub(crate) fn comparisons(&self) -> impl Iterator<Item = &Comparison> {
        self.comparisons.values()
    }

    /// What limited the trial at this position in the run.
    pub(crate) fn trial(&self, index: usize) -> Option<&Diagnosis> {
        self.trials.get(index)?.as_ref()
    }

    /// What limited a cell, over its trials that count.
    pub(crate) fn cell(&self, run: &Run, cell: &Cell) -> Option<Diagnosis> {
        let of_cell =
            run.trials.iter().zip(&self.trials).filter(|(trial, _)| trial.cell == cell.name && trial.counts());
        let found: Vec<Diagnosis> = of_cell.filter_map(|(_, diagnosis)| diagnosis.clone()).collect();
        (!found.is_empty()).then(|| diagnosis::over_trials(&found))
    }

    /// What the A/A cell says about noise.
    pub(crate) fn noise_floor(&self, run: &Run, words: &Catalogue) -> Option<Sentence> {
        let cell = run.head.plan.cells.iter().find(|cell| cell.role == Role::Again)?;
        let again = self.comparison(cell)?;
        let (interval, floor) = (again.interval?, stats::noise_floor(again)?);
        Some(words.say(
            "noise-floor",
            &[
                ("ratio", ratio(again.ratio)),
                ("low", ratio(interval.low)),
                ("high", ratio(interval.high)),
                ("floor", ratio(floor)),
            ],
        ))
    }
}

/// ln of good answers per second, paired by the blocks in which both cells have a trial that counts.
fn compared(run: &Run, cell: &Cell) -> Option<Comparison> {
    let plan = &run.head.plan;
    let baseline = plan.baseline();
    if cell.name == baseline.name {
        return None;
    }
    let sample = |name: &str| -> BTreeMap<u32, f64> {
        let logarithm = |trial: &Trial| Some((trial.block, trial.load.as_ref()?.goodput().ln()));
        run.usable(name).filter_map(logarithm).collect()
    };
    let (of_baseline, of_cell) = (sample(&baseline.name), sample(&cell.name));
    let (baseline, other): (Vec<f64>, Vec<f64>) =
        of_baseline.iter().filter_map(|(block, base)| Some((*base, *of_cell.get(block)?))).unzip();
    let criteria = Criteria::new(Better::Higher, plan.confidence, plan.margin).ok()?;
    stats::compare(Pairs { baseline: &baseline, other: &other }, &criteria).ok()
}
