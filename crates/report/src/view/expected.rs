//! What the plan expects of a load, and in how many trials of a cell it came true.

use crate::language::{Catalogue, Sentence};
use crate::load::held;
use crate::view::CellView;
use model::plan::{Cell, Plan, Role, Variant};
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

/// Which settings do all that is expected, in each of their cells, and which do not; nothing of a plan that has one of them.
pub(crate) fn by_setting(plan: &Plan, cells: &[CellView], words: &Catalogue) -> Vec<Sentence> {
    let list = |items: Vec<String>| items.join(&words.word("list-separator"));
    let quoted = |name: &str| words.say("quoted", &[("text", name.into())]).text;
    let asked = |variant: &Variant| {
        let of_variant = |cell: &&CellView| cell.variant == variant.name && cell.role != Role::Again;
        cells.iter().filter(of_variant).filter(|cell| !cell.expected.is_empty()).collect::<Vec<_>>()
    };
    let (mut met, mut missed) = (Vec::new(), Vec::new());
    for variant in &plan.variants {
        let cells = asked(variant);
        let misses = cells.iter().filter(|cell| cell.missed().next().is_some());
        let misses: Vec<String> =
            misses.map(|cell| format!("{}: {}", cell.name, list(cell.missed().collect()))).collect();
        if !misses.is_empty() {
            let arguments = [("text", quoted(&variant.name).into()), ("detail", list(misses).into())];
            missed.push(words.say("with-detail", &arguments).text);
        } else if !cells.is_empty() {
            met.push(quoted(&variant.name));
        }
    }
    if met.len() + missed.len() < 2 {
        return Vec::new();
    }
    let lists = [("recommend-expected-met", met), ("recommend-expected-missed", missed)];
    let said = lists.into_iter().filter(|(_, names)| !names.is_empty());
    said.map(|(id, names)| words.say(id, &[("list", list(names).into())])).collect()
}
