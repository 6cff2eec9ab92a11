//! What the plan expects of a load, and in how many trials of a cell it came true.

use crate::language::{Catalogue, Sentence};
use crate::load::held;
use crate::view::beside;
use model::plan::{Cell, Variant};
use model::run::Run;
use serde::Serialize;
use std::collections::BTreeSet;
use verdicts::Expected;

/// An expectation, and what became of it.
#[derive(Debug, Clone, Serialize)]
pub struct ExpectedView {
    /// As it was written.
    pub threshold: String,
    /// Trials in which it was met. What is not known counts as missed.
    pub trials_met: usize,
    /// Trials that were judged.
    pub trials: usize,
    /// Whether it was met in every trial, and there was one.
    #[serde(skip)]
    pub is_met: bool,
    /// The same in words.
    pub sentence: Sentence,
}

/// One view for each expectation of the cell's load.
pub(crate) fn of_cell(run: &Run, cell: &Cell, words: &Catalogue) -> Vec<ExpectedView> {
    let own = Expected::of_cell(run, cell).into_iter().filter(|expected| !expected.is_beside());
    own.map(|expected| view(&expected, words)).collect()
}

fn view(expected: &Expected<'_>, words: &Catalogue) -> ExpectedView {
    let (threshold, trials, met) = (expected.threshold.text.as_str(), expected.judged.len(), expected.met());
    let mut arguments = vec![("threshold", threshold.into()), ("trials", trials.into())];
    let sentence = match expected.judged.iter().find(|judged| !judged.is_met()) {
        None if trials == 0 => words.say("expected-unmeasured", &arguments[..1]),
        None => words.say("expected-met", &arguments),
        Some(first) => {
            arguments.push(("missed", (trials - met).into()));
            arguments.push(("example", held::view(first.clone(), words).sentence.text.into()));
            words.say("expected-missed", &arguments[1..])
        }
    };
    ExpectedView { threshold: threshold.to_owned(), trials_met: met, trials, is_met: expected.is_met(), sentence }
}

/// Which settings do all that is expected, in each of their cells and of each load beside, and which do not; nothing of a plan that has
/// one of them, nor of a setting that was not measured. Where settings met different loads, those of each that does all are named.
pub(crate) fn by_setting(run: &Run, words: &Catalogue) -> Vec<Sentence> {
    let told = |missed: &Expected<'_>| match missed.is_beside() {
        true => beside::of_load(&missed.threshold.text, &missed.load.name, words),
        false => missed.threshold.text.clone(),
    };
    let (mut met, mut missed) = (Vec::new(), Vec::new());
    let of_variant = |variant: &'_ Variant| Expected::of_variants(run, &[variant.name.as_str()]);
    let loads = |expected: &[Expected<'_>]| -> BTreeSet<String> {
        expected.iter().map(|expected| expected.load.name.clone()).collect()
    };
    let asked: BTreeSet<BTreeSet<String>> = run
        .head
        .plan
        .variants
        .iter()
        .map(|variant| loads(&of_variant(variant)))
        .filter(|asked| !asked.is_empty())
        .collect();
    for variant in &run.head.plan.variants {
        let (setting, expected) = (words.quoted(&variant.name), of_variant(variant));
        // Of what no trial was made for nothing is known.
        let misses: Vec<&Expected<'_>> =
            expected.iter().filter(|expected| expected.met() < expected.judged.len()).collect();
        let of_cells = misses.chunk_by(|one, next| one.cell.name == next.cell.name).map(|missed| {
            let told: Vec<String> = missed.iter().map(|missed| told(missed)).collect();
            format!("{}: {}", missed[0].cell.name, words.list(&told))
        });
        let of_cells: Vec<String> = of_cells.collect();
        if !of_cells.is_empty() {
            let arguments = [("text", setting.into()), ("detail", words.list(&of_cells).into())];
            missed.push(words.say("with-detail", &arguments).text);
        } else if !expected.is_empty() && expected.iter().all(Expected::is_met) {
            let of_loads: Vec<String> = loads(&expected).into_iter().collect();
            let arguments = [("text", setting.as_str().into()), ("detail", words.list(&of_loads).into())];
            met.push(if asked.len() > 1 { words.say("with-detail", &arguments).text } else { setting });
        }
    }
    if met.len() + missed.len() < 2 {
        return Vec::new();
    }
    let lists = [("recommend-expected-met", met), ("recommend-expected-missed", missed)];
    let said = lists.into_iter().filter(|(_, names)| !names.is_empty());
    said.map(|(id, names)| words.say(id, &[("list", words.list(&names).into())])).collect()
}
