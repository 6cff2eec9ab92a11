//! One execution of a cell, as it was observed.

use crate::Nanos;
use crate::accounts::Accounts;
use crate::check::Door;
use crate::load::{Failure, LoadResult};
use crate::others::Others;
use crate::reading::Readings;
use crate::status::{Around, ServerStatus};
use crate::workers::WorkersHeld;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What the running server said its settings are: not what was written. Keys are directive names in the server's own spelling.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EffectiveSettings {
    /// The server's own name and version, such as `Apache/2.4.62 (Debian)`.
    pub server: String,
    /// Directive to effective value.
    pub values: BTreeMap<String, String>,
    /// Requests the server can work on at once: workers, or workers times threads; `None` when it has no such limit.
    pub worker_limit: Option<u64>,
}

/// How a trial ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind", content = "why")]
pub enum Outcome {
    /// As planned.
    Complete,
    /// Stopped by a guard before its end; what was measured until then counts.
    EndedEarly(Stop),
    /// Nothing in it counts: the server died or never became ready.
    Invalid(String),
}

/// Why a guard stopped a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// The server's group thrashed longer than the plan allows.
    Thrash,
    /// Too many failures for too long.
    Failures,
    /// The host itself began to swap in.
    HostSwapIn,
    /// The host itself ran out of available memory.
    HostMemory,
    /// The trial's own time limit.
    TimeLimit,
    /// The sampler fell silent, so nobody would have seen the host in trouble.
    Unwatched,
    /// The user pressed Ctrl-C.
    Interrupted,
}

/// A few requests, one at a time, before a load: what it will be made of.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Preflight {
    /// How many were sent.
    pub requests: u64,
    /// Complete answers by status.
    pub statuses: BTreeMap<u16, u64>,
    /// Requests without a complete answer, by cause.
    pub failed: BTreeMap<Failure, u64>,
    /// Bytes of the smallest and of the largest complete answer, heads included.
    pub bytes: Option<(u64, u64)>,
    /// Shortest and longest time to a complete answer, in microseconds.
    pub total_us: Option<(u64, u64)>,
}

/// A load that ran beside a cell's own.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Beside {
    /// Its name in the plan.
    pub name: String,
    /// What came of it.
    pub load: LoadResult,
}

/// An access log, counted when the server had ended, and what it should hold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Logged {
    /// Complete answers that the clients of the load and of its warm-up got.
    pub answered: u64,
    /// Requests of theirs without one, and those sent twice: the server may have logged each or not.
    pub unsure: u64,
    /// Files of the log's name.
    pub files: u64,
    /// Lines about requests of the load and its warm-up.
    pub lines: u64,
    /// Of them, those that were written before the server was told to end.
    pub early: u64,
    /// Lines about other requests, such as those that ask whether the server is ready.
    pub others: u64,
    /// Lines that could not be read, such as one that is cut off.
    pub unread: u64,
}

impl Logged {
    /// Answers without a line: at least so many, and at most so many.
    #[must_use]
    pub fn lost(&self) -> (u64, u64) {
        (self.answered.saturating_sub(self.lines), (self.answered + self.unsure).saturating_sub(self.lines))
    }
}

/// What a server may have of the machine that is in no group of ours: by its service, or by the container that it or we are in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// CPUs, whole or in part, if not all.
    pub cpus: Option<f64>,
    /// Bytes of memory, if anything limits it.
    pub memory: Option<u64>,
    /// Whether the readings are of the group that limits its memory.
    pub is_watched: bool,
}

/// One execution of a cell: facts, no verdicts.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Trial {
    /// Block, from 0.
    pub block: u32,
    /// Position in the block, from 0.
    pub position: u32,
    /// Name of the cell.
    pub cell: String,
    /// The rate it tried, when it is a step of a search for one.
    #[serde(default)]
    pub rate: Option<f64>,
    /// How it ended.
    pub outcome: Outcome,
    /// When preparing it began.
    pub began_ns: Nanos,
    /// What was in force.
    pub settings: EffectiveSettings,
    /// What it could have of the machine; `None` in a group of ours, and where its processes were not seen.
    #[serde(default)]
    pub share: Option<Share>,
    /// What single requests showed before the load, if any were sent.
    #[serde(default)]
    pub preflight: Option<Preflight>,
    /// The measured load; `None` when the server never became ready. A trial whose server died keeps it as evidence.
    pub load: Option<LoadResult>,
    /// What an independent visitor saw beside it, one request now and then on a new connection each; none of it is in the load.
    #[serde(default)]
    pub probe: Option<LoadResult>,
    /// What came of the loads beside it, in the order of the plan.
    #[serde(default)]
    pub beside: Vec<Beside>,
    /// Who else was at the server's door meanwhile, where somebody looked.
    #[serde(default)]
    pub door: Option<Door>,
    /// What the server's processes held near the end of the window, where that could be seen.
    #[serde(default)]
    pub workers: Option<WorkersHeld>,
    /// Programs that used the CPUs beside server and load, where somebody looked.
    #[serde(default)]
    pub others: Option<Others>,
    /// Host readings from before the warm-up to after the load.
    #[serde(skip)]
    pub readings: Readings,
    /// What the server told of itself meanwhile, about once a second.
    #[serde(default)]
    pub status: Vec<ServerStatus>,
    /// What it told at both ends of the measured window.
    #[serde(default)]
    pub around: Option<Around>,
    /// What became of its access log, where that was counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logged: Option<Logged>,
    /// Where the time of its requests went, when the plan asked for it.
    #[serde(default)]
    pub accounts: Option<Accounts>,
    /// What webdyno had to say while running it, one sentence each: "waited 10 s for the host to calm down".
    pub notes: Vec<String>,
    /// The end of the server's error log.
    pub log_tail: String,
}

impl Trial {
    /// The load it measured, be it without a single good answer; `None` when the trial is invalid or was interrupted.
    ///
    /// A server that answers nothing but failures was measured too: leaving that out would praise it by what is left.
    #[must_use]
    pub fn measured(&self) -> Option<&LoadResult> {
        match self.outcome {
            Outcome::Invalid(_) | Outcome::EndedEarly(Stop::Interrupted) => None,
            Outcome::Complete | Outcome::EndedEarly(_) => self.load.as_ref(),
        }
    }
}
