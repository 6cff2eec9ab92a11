//! What the plan expects of a load, and in how many trials of a cell it came true.

use crate::language::{Catalogue, Sentence};
use crate::load::held;
use crate::view::CellView;
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

/// An expectation of a load that is not the one in question.
pub(crate) fn of_load(threshold: &str, load: &str, words: &Catalogue) -> String {
    let load = words.say("quoted", &[("text", load.into())]).text;
    words.say("recommend-beside", &[("metric", threshold.into()), ("load", load.into())]).text
}

/// Which settings do all that is expected, in each of their cells and of each load beside, and which do not; nothing of a plan that has
/// one of them.
pub(crate) fn by_setting(run: &Run, cells: &[CellView], words: &Catalogue) -> Vec<Sentence> {
    let plan = &run.head.plan;
    let list = |items: Vec<String>| items.join(&words.word("list-separator"));
    let quoted = |name: &str| words.say("quoted", &[("text", name.into())]).text;
    let beside: Vec<(&str, Run)> = plan.beside.iter().map(|load| (load.name.as_str(), run.beside(load))).collect();
    let of_cell = |cell: &CellView| -> Vec<(bool, String)> {
        let own = cell.expected.iter().map(|it| (it.is_met(), it.threshold.clone()));
        let beside = beside.iter().flat_map(|(load, seen)| {
            let expected = seen.head.plan.cell(&cell.name).map(|cell| of_cell(seen, cell, words)).unwrap_or_default();
            expected.into_iter().map(|it| (it.is_met(), of_load(&it.threshold, load, words)))
        });
        own.chain(beside).collect()
    };
    let (mut met, mut missed) = (Vec::new(), Vec::new());
    for variant in &plan.variants {
        let cells = cells.iter().filter(|cell| cell.variant == variant.name);
        let asked: Vec<(&str, Vec<(bool, String)>)> = cells
            .map(|cell| (cell.name.as_str(), of_cell(cell)))
            .filter(|(_, expected)| !expected.is_empty())
            .collect();
        let is_any = !asked.is_empty();
        let misses = asked.into_iter().filter_map(|(cell, expected)| {
            let missed: Vec<String> =
                expected.into_iter().filter(|(is_met, _)| !is_met).map(|(_, text)| text).collect();
            (!missed.is_empty()).then(|| format!("{cell}: {}", list(missed)))
        });
        let misses: Vec<String> = misses.collect();
        if !misses.is_empty() {
            let arguments = [("text", quoted(&variant.name).into()), ("detail", list(misses).into())];
            missed.push(words.say("with-detail", &arguments).text);
        } else if is_any {
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
