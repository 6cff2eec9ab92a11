//! What did not go as planned: failures by cause, trials that ended otherwise, and what webdyno and its sampler noted.
//!
//! A note that many trials share is said once, with the trials counted.

use crate::language::Catalogue;
use crate::view::series::outcome;
use crate::view::{CellView, TroubleView};
use model::run::Run;
use model::trial::Outcome;

pub(crate) fn trouble(run: &Run, cells: &[CellView], words: &Catalogue) -> Vec<TroubleView> {
    failures(cells, words).chain(unplanned(run, words)).chain(notes(run, words)).collect()
}

fn failures(cells: &[CellView], words: &Catalogue) -> impl Iterator<Item = TroubleView> {
    cells.iter().flat_map(|cell| {
        cell.failures.iter().map(|failure| {
            let mut text = format!("{}: {} × {}", cell.name, failure.count, failure.cause.text);
            if let Some(example) = &failure.example {
                text = words.say("with-detail", &[("text", text), ("detail", example.clone())]).text;
            }
            TroubleView { text, serious: true }
        })
    })
}

fn unplanned(run: &Run, words: &Catalogue) -> impl Iterator<Item = TroubleView> {
    run.trials.iter().filter(|trial| trial.outcome != Outcome::Complete).map(|trial| {
        let block = (trial.block + 1).to_string();
        let which = words.say("trial-of", &[("block", block), ("cell", trial.cell.clone())]);
        TroubleView { text: format!("{}: {}", which.text, outcome(trial, words).text), serious: true }
    })
}

fn notes(run: &Run, words: &Catalogue) -> impl Iterator<Item = TroubleView> {
    let mut counted: Vec<(String, usize)> = Vec::new();
    for trial in &run.trials {
        let sampler = trial.readings.notes.iter().map(|note| words.say("note-sampler", &[("note", note.clone())]).text);
        for note in trial.notes.iter().cloned().chain(sampler) {
            match counted.iter_mut().find(|(known, _)| *known == note) {
                Some((_, trials)) => *trials += 1,
                None => counted.push((note, 1)),
            }
        }
    }
    let made = run.trials.len();
    counted.into_iter().map(move |(note, n)| {
        let text =
            words.say("note-in-trials", &[("n", n.to_string()), ("made", made.to_string()), ("note", note)]).text;
        TroubleView { text, serious: false }
    })
}
