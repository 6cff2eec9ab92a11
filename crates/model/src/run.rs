//! One execution of a plan: its head and its trials.

use crate::Nanos;
use crate::check::Check;
use crate::load::LoadResult;
use crate::plan::{Cell, LoadSpec, Plan};
use crate::reading::Readings;
use crate::trial::{Outcome, Stop, Trial};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The machine a run was made on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostFacts {
    /// Host name.
    pub name: String,
    /// Kernel release.
    pub kernel: String,
    /// CPUs online.
    pub cpus: u32,
    /// CPU model, as /proc/cpuinfo names it.
    pub cpu_model: String,
    /// Bytes of memory.
    pub memory: u64,
    /// Bytes of swap.
    pub swap: u64,
    /// Whether the kernel tells pressure (PSI).
    pub psi: bool,
    /// `v1`, `v2`, `hybrid` or `none`.
    pub cgroups: String,
}

/// The one pair of instants that ties the monotonic clock to wall time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Anchor {
    /// Monotonic.
    pub mono_ns: Nanos,
    /// Nanoseconds since 1970-01-01T00:00:00Z.
    pub wall_ns: i64,
}

/// How the run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind", content = "why")]
pub enum RunEnd {
    /// Still going on, or killed.
    Unfinished,
    /// All blocks done.
    Complete,
    /// Ctrl-C; what was measured is kept.
    Interrupted,
    /// Stopped by an error.
    Failed(String),
}

/// The head of a run: everything that is needed to read its trials years later.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunHead {
    /// Identifier in the store: a short word that sorts by time, such as `20261120-235840-7f3a`.
    pub id: String,
    /// What was meant.
    pub plan: Plan,
    /// What was written, with parameters filled in.
    pub plan_text: String,
    /// Seed of the order of trials.
    pub seed: u64,
    /// When it began.
    pub anchor: Anchor,
    /// Where.
    pub host: HostFacts,
    /// Version of webdyno.
    pub version: String,
    /// How it ended.
    pub end: RunEnd,
    /// CPUs the server was pinned to, then the generator's; empty when shared.
    pub server_cpus: Vec<u32>,
    /// CPUs the generator was pinned to; empty when shared.
    pub load_cpus: Vec<u32>,
    /// What a check saw of the server, if it is one.
    #[serde(default)]
    pub check: Option<Box<Check>>,
}

/// A run as the store gives it back.
#[derive(Debug, Clone)]
pub struct Run {
    /// Its head.
    pub head: RunHead,
    /// Its trials, in the order they were made.
    pub trials: Vec<Trial>,
}

impl Run {
    /// The trials of one cell that were measured, with their loads, in order.
    pub fn measured<'a>(&'a self, cell: &'a str) -> impl Iterator<Item = (&'a Trial, &'a LoadResult)> + 'a {
        let of_cell = self.trials.iter().filter(move |trial| trial.cell == cell);
        of_cell.filter_map(|trial| Some((trial, trial.measured()?)))
    }

    /// The run as a load saw it that ran beside those of the cells: the same cells and trials, with that load in place of the cells' own.
    /// Readings and what the server told are left out: they are not of this load alone.
    #[must_use]
    pub fn beside(&self, spec: &LoadSpec) -> Run {
        let Plan { cells, .. } = &self.head.plan;
        let cells = cells.iter().map(|cell| Cell { load: spec.name.clone(), ..cell.clone() }).collect();
        let plan = Plan { loads: vec![spec.clone()], beside: Vec::new(), cells, ..self.head.plan.clone() };
        let trial = |trial: &Trial| Trial {
            load: trial.beside.iter().find(|beside| beside.name == spec.name).map(|beside| beside.load.clone()),
            block: trial.block,
            position: trial.position,
            cell: trial.cell.clone(),
            rate: trial.rate,
            outcome: trial.outcome.clone(),
            began_ns: trial.began_ns,
            settings: trial.settings.clone(),
            share: trial.share,
            preflight: None,
            probe: None,
            beside: Vec::new(),
            door: None,
            workers: None,
            others: None,
            readings: Readings::default(),
            status: Vec::new(),
            around: None,
            accounts: None,
            logged: None,
            notes: Vec::new(),
            log_tail: String::new(),
        };
        Run { head: RunHead { plan, ..self.head.clone() }, trials: self.trials.iter().map(trial).collect() }
    }

    /// Blocks of which every trial was made; those that were interrupted and left as they were are none.
    #[must_use]
    pub fn whole_blocks(&self) -> u32 {
        self.whole().count() as u32
    }

    /// How long a whole block took, from the beginning of its first trial to the end of its last load, in nanoseconds: the mean. A pause in
    /// which the run was left interrupted lies between two blocks. `None` when there is no whole block with a load.
    #[must_use]
    pub fn block_ns(&self) -> Option<f64> {
        let lasted = |block: Vec<&Trial>| {
            let began = block.iter().map(|trial| trial.began_ns).min()?;
            let ended = block.iter().filter_map(|trial| Some(trial.load.as_ref()?.ended_ns)).max()?;
            ended.checked_sub(began)
        };
        let lasted: Vec<Nanos> = self.whole().filter_map(lasted).collect();
        (!lasted.is_empty()).then(|| lasted.iter().sum::<Nanos>() as f64 / lasted.len() as f64)
    }

    /// The trials of each block of which every trial was made.
    fn whole(&self) -> impl Iterator<Item = Vec<&Trial>> {
        let mut blocks = BTreeMap::<u32, Vec<&Trial>>::new();
        let interrupted = |trial: &&Trial| matches!(trial.outcome, Outcome::EndedEarly(Stop::Interrupted));
        for trial in self.trials.iter().filter(|trial| !interrupted(trial)) {
            blocks.entry(trial.block).or_default().push(trial);
        }
        blocks.into_values().filter(|trials| trials.len() == self.head.plan.cells.len())
    }
}
