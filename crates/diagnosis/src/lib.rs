//! Evidence in, verdicts out: a rule is a value in one table. No I/O.
//!
//! [`diagnose`] reads a trial once ([`Evidence`]), asks every rule of the table whether it fires ([`rules`]), and every line of a
//! second table which suspects are cleared and by what ([`cleared`]). The first cause in the table's order is the primary one;
//! the others contribute. [`over_trials`] does the same for a cell.
//!
//! A finding is an id and numbers. The sentences stand in the catalogue of the report, by that id, so nothing here is prose and
//! an old run can be judged again by better rules.
//!
//! Layout: `cause` what can be found, `number` with which numbers, `evidence` what a trial shows, `rules` and `cleared` the two
//! tables, `thresholds` what they compare with, `agreement` several trials together, `check` what to do next with a running server.

mod agreement;
mod cause;
pub mod check;
pub mod cleared;
pub mod doubts;
pub mod evidence;
mod number;
pub mod rules;
pub mod thresholds;

pub use agreement::over_trials;
pub use cause::Cause;
pub use doubts::Confidence;
pub use evidence::Evidence;
pub use number::{Limit, Number, Numbers, Quantity, Unit};

use model::plan::Cell;
use model::run::RunHead;
use model::trial::{Outcome, Trial};
use serde::Serialize;

/// What limited a trial or a cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Diagnosis {
    /// What limited it most.
    pub primary: Finding,
    /// What else was found, in the table's order; [`Finding::leads_to`] tells which of it brought something else about.
    pub contributing: Vec<Finding>,
    /// Suspects that the numbers clear, and why.
    pub ruled_out: Vec<Finding>,
    /// How many readings this rests on: those of the window, or the fewest of any trial of the cell.
    pub readings: u32,
    /// How many trials came to the same primary cause.
    pub agreement: Agreement,
}

/// `agree` of `of` trials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Agreement {
    /// Trials with the primary cause given.
    pub agree: u32,
    /// Trials that were measured.
    pub of: u32,
}

/// One thing found, with its numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// The message that says it: the cause's own id, or why the cause is ruled out.
    pub id: &'static str,
    /// The cause that is present, or ruled out.
    pub cause: Cause,
    /// The evidence, by name ([`Quantity::name`]).
    pub numbers: Numbers,
    /// What speaks against being sure of it, by message id ([`doubts`]).
    pub doubts: Vec<&'static str>,
    /// The other finding that this one brought about.
    pub leads_to: Option<Cause>,
}

impl Finding {
    /// How sure it is.
    #[must_use]
    pub fn confidence(&self) -> Confidence {
        Confidence::beside(self.doubts.len())
    }

    /// The threshold that this number of it has crossed, where it is one of those that decide.
    #[must_use]
    pub fn limit(&self, quantity: Quantity) -> Option<Limit> {
        // What clears a suspect has numbers of its own.
        let rule = rules::of(self.cause).filter(|rule| rule.cause.id() == self.id)?;
        let value = self.numbers.get(quantity)?;
        let crossed = |(of, limit): &&(Quantity, Limit)| *of == quantity && limit.holds(value);
        rule.limits.iter().find(crossed).map(|(_, limit)| *limit)
    }

    /// Where its rule is from; `None` when it has none.
    #[must_use]
    pub fn source(&self) -> Option<&'static str> {
        rules::of(self.cause).filter(|rule| rule.cause.id() == self.id).map(|rule| rule.source)
    }
}

impl Diagnosis {
    /// The primary cause and the contributing ones, in order.
    pub fn causes(&self) -> impl Iterator<Item = Cause> + '_ {
        std::iter::once(&self.primary).chain(&self.contributing).map(|finding| finding.cause)
    }
}

/// Every message id that a finding can have, for the catalogue's completeness: causes first, then what clears a suspect, then how
/// sure one is and why not more.
pub fn message_ids() -> impl Iterator<Item = &'static str> {
    let found = Cause::ALL.iter().map(|cause| cause.id()).chain(cleared::CLEARED.iter().map(|line| line.id));
    found.chain(doubts::ids()).chain(Confidence::ALL.map(Confidence::id))
}

/// What limited this trial of `cell`.
///
/// # Panics
/// Never when `cell` is one of the head's own plan.
#[must_use]
pub fn diagnose(head: &RunHead, cell: &Cell, trial: &Trial) -> Diagnosis {
    match (&trial.load, &trial.outcome) {
        (Some(load), Outcome::Complete | Outcome::EndedEarly(_)) => judge(&Evidence::of(head, cell, trial, load)),
        _ => not_measured(),
    }
}

/// The verdict on evidence: the two tables applied.
#[must_use]
pub fn judge(evidence: &Evidence) -> Diagnosis {
    let mut findings = rules::findings(evidence);
    let causes: Vec<Cause> = findings.iter().map(|finding| finding.cause).collect();
    let primary = findings.remove(0);
    Diagnosis {
        primary,
        contributing: findings,
        ruled_out: cleared::findings(evidence, &causes),
        readings: evidence.observed.readings,
        agreement: Agreement { agree: 1, of: 1 },
    }
}

/// The diagnosis of a trial without a load to speak of.
fn not_measured() -> Diagnosis {
    let cause = Cause::NotMeasured;
    Diagnosis {
        primary: Finding { id: cause.id(), cause, numbers: Numbers::default(), doubts: Vec::new(), leads_to: None },
        contributing: Vec::new(),
        ruled_out: Vec::new(),
        readings: 0,
        agreement: Agreement { agree: 0, of: 0 },
    }
}

#[cfg(test)]
mod tests;
