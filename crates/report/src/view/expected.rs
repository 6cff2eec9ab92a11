//! What the plan expects of a load, and in how many trials of a cell it came true.

use crate::language::{Catalogue, Sentence};
use crate::load::held;
use model::plan::Cell;
use model::run::Run;
use model::threshold::Threshold;
use serde::Serialize;

/// An expectation, and what became of it.
#[derive(Debug, Clone, Serialize)]
pub struct ExpectedView {
    /// As it was written.
    pub threshold: String,
    /// Trials in which it was met. What is not known counts as missed.
    pub trials_met: usize,
    /// Trials that were judged.
    pub trials: usize,
    /// The same in words.
    pub sentence: Sentence,
}

impl ExpectedView {
    /// Whether it was met in every trial, and there was one.
    #[must_use]
    pub fn is_met(&self) -> bool {
        self.trials > 0 && self.trials_met == self.trials
    }
}

/// One view for each expectation of the cell's load.
pub(crate) fn of_cell(run: &Run, cell: &Cell, words: &Catalogue) -> Vec<ExpectedView> {
    run.head.plan.load(cell).expect.iter().map(|threshold| view(run, cell, threshold, words)).collect()
}

fn view(run: &Run, cell: &Cell, threshold: &Threshold, words: &Catalogue) -> ExpectedView {
    let judged: Vec<_> = run.measured(&cell.name).map(|(_, load)| threshold.judge(load)).collect();
    let trials = judged.len();
    let missed: Vec<_> = judged.into_iter().filter(|judged| !judged.is_met()).collect();
    let mut arguments = vec![("threshold", threshold.text.as_str().into()), ("trials", trials.into())];
    let sentence = match missed.first() {
        None if trials == 0 => words.say("expected-unmeasured", &arguments[..1]),
        None => words.say("expected-met", &arguments),
        Some(first) => {
            arguments.push(("missed", missed.len().into()));
            arguments.push(("example", held::view(first.clone(), words).sentence.text.into()));
            words.say("expected-missed", &arguments[1..])
        }
    };
    ExpectedView { threshold: threshold.text.clone(), trials_met: trials - missed.len(), trials, sentence }
}
