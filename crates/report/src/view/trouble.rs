//! What did not go as planned: failures by cause, trials that ended otherwise, and what webdyno and its sampler noted.
//!
//! A note that many trials share is said once, with the trials counted. A note that touches no result stands with its trial only.

use crate::language::Catalogue;
use crate::view::judged::Judged;
use crate::view::series::{load_outcome, outcome};
use crate::view::{CellView, TroubleView};
use diagnosis::{Cause, Diagnosis};
use model::run::Run;
use model::trial::{Outcome, Stop, Trial};

pub(crate) fn trouble(run: &Run, judged: &Judged, cells: &[CellView], words: &Catalogue) -> Vec<TroubleView> {
    failures(cells, words).chain(unplanned(run, words)).chain(noted(run, judged, words)).collect()
}

fn failures(cells: &[CellView], words: &Catalogue) -> impl Iterator<Item = TroubleView> {
    cells.iter().flat_map(|cell| {
        cell.failures.iter().map(|failure| {
            let mut text = format!("{}: {} × {}", cell.name, failure.count, failure.cause.text);
            if let Some(example) = &failure.example {
                text = words.say("with-detail", &[("text", text.into()), ("detail", example.as_str().into())]).text;
            }
            TroubleView { text, serious: true }
        })
    })
}

fn unplanned(run: &Run, words: &Catalogue) -> impl Iterator<Item = TroubleView> {
    run.trials.iter().filter(|trial| trial.outcome != Outcome::Complete).map(|trial| {
        let which = words.say("trial-of", &[("block", (trial.block + 1).into()), ("cell", trial.cell.as_str().into())]);
        TroubleView { text: format!("{}: {}", which.text, outcome(trial, words).text), serious: true }
    })
}

/// What did not go as planned in a load that is no trial among others, and the notes that touch its result.
pub(crate) fn of_load(trial: &Trial, diagnosis: Option<&Diagnosis>, words: &Catalogue) -> Vec<TroubleView> {
    let unplanned = (trial.outcome != Outcome::Complete).then(|| load_outcome(trial, words).text);
    let notes = notes(trial, words).filter(|note| note.matters(trial, diagnosis)).map(|note| note.text);
    let serious = unplanned.into_iter().map(|text| TroubleView { text, serious: true });
    serious.chain(notes.map(|text| TroubleView { text, serious: false })).collect()
}

/// The notes that touch a result, each once with the trials that share it.
fn noted(run: &Run, judged: &Judged, words: &Catalogue) -> impl Iterator<Item = TroubleView> {
    let mut counted: Vec<(String, usize)> = Vec::new();
    for (index, trial) in run.trials.iter().enumerate() {
        for note in notes(trial, words).filter(|note| note.matters(trial, judged.trial(index))) {
            match counted.iter_mut().find(|(known, _)| *known == note.text) {
                Some((_, trials)) => *trials += 1,
                None => counted.push((note.text, 1)),
            }
        }
    }
    let made = run.trials.len();
    counted.into_iter().map(move |(note, n)| {
        let arguments = [("n", n.into()), ("trials", made.into()), ("note", note.into())];
        TroubleView { text: words.say("note-in-trials", &arguments).text, serious: false }
    })
}

/// A note of a trial.
pub(crate) struct Note {
    /// The note, worded.
    pub(crate) text: String,
    /// The precaution it is about.
    refused: Option<&'static Precaution>,
}

impl Note {
    /// Whether it touches the trial's result.
    fn matters(&self, trial: &Trial, diagnosis: Option<&Diagnosis>) -> bool {
        self.refused.is_none_or(|refused| (refused.matters)(trial, diagnosis))
    }
}

/// Everything that was noted in a trial.
pub(crate) fn notes(trial: &Trial, words: &Catalogue) -> impl Iterator<Item = Note> {
    let sampler = trial.readings.notes.iter().map(|stored| {
        let refused = PRECAUTIONS.iter().find(|precaution| stored.starts_with(precaution.stored));
        let note = refused.map_or_else(|| stored.clone(), |precaution| words.word(precaution.id));
        Note { text: words.say("note-sampler", &[("note", note.into())]).text, refused }
    });
    trial.notes.iter().map(|note| Note { text: note.clone(), refused: None }).chain(sampler)
}

/// Something the sampler asks of the kernel for itself and is refused on many machines, in every trial. That alone says nothing
/// about a result, so the refusal is trouble only where the harm it may do can be seen.
struct Precaution {
    /// How the sampler's note of the refusal begins.
    stored: &'static str,
    /// The message that says it.
    id: &'static str,
    /// Whether the trial shows the harm.
    matters: fn(&Trial, Option<&Diagnosis>) -> bool,
}

const PRECAUTIONS: [Precaution; 3] = [
    Precaution {
        stored: "protection from the out-of-memory killer was refused",
        id: "note-killable",
        matters: |trial, diagnosis| readings_suffered(trial, diagnosis) || memory_ran_short(trial, diagnosis),
    },
    Precaution { stored: "locked memory was refused", id: "note-not-locked", matters: readings_suffered },
    Precaution { stored: "real-time priority", id: "note-no-priority", matters: readings_suffered },
];

fn found(diagnosis: Option<&Diagnosis>, causes: &[Cause]) -> bool {
    diagnosis.is_some_and(|diagnosis| diagnosis.causes().any(|cause| causes.contains(&cause)))
}

/// Whether readings are missing or came late.
fn readings_suffered(trial: &Trial, diagnosis: Option<&Diagnosis>) -> bool {
    trial.outcome == Outcome::EndedEarly(Stop::Unwatched) || found(diagnosis, &[Cause::MonitorUnfit])
}

/// Whether the kernel killed for memory, or may have been about to.
fn memory_ran_short(trial: &Trial, diagnosis: Option<&Diagnosis>) -> bool {
    trial.outcome == Outcome::EndedEarly(Stop::HostMemory)
        || found(diagnosis, &[Cause::OutOfMemory, Cause::MemoryThrash, Cause::HostDisturbed])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stored notes are plain text, so what they begin with is all that ties them to who writes them.
    #[test]
    fn the_sampler_still_says_it_so() {
        let sampler = include_str!("../../../monitor/src/privileges.rs");
        let unsaid = PRECAUTIONS.iter().find(|precaution| !sampler.contains(precaution.stored));
        assert!(unsaid.is_none(), "{:?}", unsaid.map(|precaution| precaution.stored));
    }
}
