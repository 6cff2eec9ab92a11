//! What a run says while it goes on.

use crate::schedule::Slot;
use model::load::LoadInterval;
use model::plan::LoadSpec;
use model::reading::Reading;
use model::run::RunHead;
use model::search::Step;
use model::trial::{Preflight, Trial};
use std::time::Duration;

/// One piece of progress.
#[derive(Debug)]
pub enum Event<'a> {
    /// A build step begins.
    Building(&'a [String]),
    /// Everything is checked; trials follow.
    Started {
        /// The run's head, as stored.
        head: &'a RunHead,
        /// How many trials there will be.
        trials: usize,
    },
    /// Everything is checked; a search for a rate begins, in as many trials as it takes.
    Searching {
        /// The run's head, as stored.
        head: &'a RunHead,
    },
    /// So many blocks are enough to know the noise of a run that may go on to the most.
    Pilot {
        /// Blocks made.
        blocks: u32,
        /// Blocks there can be.
        most: u32,
        /// What decides the run, as reports call it for programs: `goodput`, `p99` or `p50`.
        metric: &'static str,
        /// The smallest difference in it that those will show, as a ratio above 1; `None` when nothing is known of the noise.
        resolvable: Option<f64>,
    },
    /// The run was looked at, to see whether every question has an answer.
    Looked {
        /// Blocks made.
        blocks: u32,
        /// Whether they all have.
        decided: bool,
        /// Whether no further block can change that.
        settled: bool,
        /// Blocks at the next look; `None` after the last one.
        next: Option<u32>,
    },
    /// Another block would take more time than the run may take.
    BudgetSpent {
        /// Blocks made.
        blocks: u32,
        /// How long one takes, when not even one fits into the time there is: the first is made whole all the same.
        longer: Option<Duration>,
    },
    /// A step of a search is over and stored.
    Step(&'a Step),
    /// A trial enters its next phase.
    Trial {
        /// Which trial.
        slot: &'a Slot,
        /// What it does now.
        phase: Phase,
    },
    /// Something to know before the load goes on: a sentence.
    Remark(&'a str),
    /// What single requests before a load showed.
    Preflight(&'a Preflight),
    /// What is sent from now on: the warm-up, or what is measured.
    Sending(&'a LoadSpec),
    /// The host's counters, about once a second while something is sent.
    Reading(&'a Reading),
    /// About a second of the measured load.
    Interval {
        /// Which trial.
        slot: &'a Slot,
        /// What happened.
        interval: &'a LoadInterval,
    },
    /// About a second of what an independent visitor saw beside the measured load.
    Visits {
        /// What the visitor does.
        visitor: &'a LoadSpec,
        /// What happened.
        interval: &'a LoadInterval,
    },
    /// A trial is over and stored.
    Ended {
        /// Which trial.
        slot: &'a Slot,
        /// What was observed.
        trial: &'a Trial,
    },
}

/// What a trial is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Waiting for the host to calm down.
    CoolDown,
    /// Starting the server and waiting until it is ready.
    Start,
    /// Sending a few requests one at a time, to see what comes back.
    Preflight,
    /// Sending what is not counted.
    WarmUp,
    /// Measuring.
    Measure,
}
