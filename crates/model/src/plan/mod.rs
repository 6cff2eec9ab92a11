//! What will happen: a plan, checked. An invalid mix has no value of these types.
//!
//! [`parse`] turns what the user wrote into a [`Plan`] or into one [`PlanError`] that names file, line and key.

mod body;
mod changes;
mod check;
mod design;
mod ending;
mod load;
mod log;
mod memory;
mod origin;
mod php;
mod servers;
mod services;
mod stages;
mod template;
mod text;

pub use body::Body;
pub use changes::{Changes, Edit, FileChange, Sysctl};
pub use check::{Check, CheckError, Comparison, Test, accepts, decides_status};
pub use design::{Alias, Contrast, Design, Effect, Factor, Over, Part, Sweep, SweepPoint};
pub use ending::{AccessLog, End, Ending};
pub use load::{
    Arrivals, ClientCertificate, HttpVersion, LoadSpec, Pace, RequestSpec, SECRET, SessionSpec, Stage, Timetable,
    TlsSpec, TlsVersion, Verify, is_secret,
};
pub use log::{LeftOut, Log, Recording};
pub use memory::{MemoryState, PageCache};
pub use origin::Origin;
pub use php::{Php, PhpSetting, PhpSettings, PhpWay};
pub use servers::{Apache, CommandServer, Embedded, Existing, Mpm, Nginx, Ready, ServerSpec, Stop, StopSignal, Url};
pub use services::{Mention, Servers, Service, ServiceChange, fill_in, mentions};
pub use stages::{StagesError, stages};
pub use template::{LOGGED_PATH, Piece, TemplateError, check_template, pieces};
pub use text::{FPM_LATENCY_LOG, LATENCY_LOG, Options, PlanError, ReadFile, parse, parse_mix};

use crate::Nanos;
use crate::search::RateSearch;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// What a plan writes where the run's own temporary folder is meant: in build commands, folders and directives.
pub const RUN_FOLDER: &str = "${run}";

/// A server, its variants, the loads, the cells made of them, and how often and how carefully to run them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Short name, from the file.
    pub name: String,
    /// One sentence on what it finds out.
    pub about: String,
    /// The file it came from.
    #[serde(serialize_with = "as_text")]
    pub file: PathBuf,
    /// Commands to run before anything is measured, in order.
    pub build: Vec<Build>,
    /// The server under test.
    pub server: ServerSpec,
    /// Servers that stand beside it, or take its place for some variants.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<Service>,
    /// What is changed on the machine for every variant.
    #[serde(default)]
    pub changes: Changes,
    /// Limits the server lives in.
    pub confine: Option<Confinement>,
    /// In what state memory is when a trial begins.
    #[serde(default)]
    pub memory: MemoryState,
    /// Pin server and generator to different CPUs when there are two.
    pub split: bool,
    /// Changes to the server.
    pub variants: Vec<Variant>,
    /// How their servers are ended, where they say nothing of it.
    #[serde(default)]
    pub end: End,
    /// The log that is counted when a server has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access_log: Option<AccessLog>,
    /// What is sent.
    pub loads: Vec<LoadSpec>,
    /// What is sent beside it in every trial, paced, without an end of its own, and reported by itself.
    #[serde(default)]
    pub beside: Vec<LoadSpec>,
    /// The machine that sends it, if it is another one than the server's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// What is compared; the baseline is one of them, and a second copy of it is the A/A cell when asked for.
    pub cells: Vec<Cell>,
    /// The questions that the plan asks, when they are others than how each cell compares with the baseline.
    #[serde(default)]
    pub contrasts: Vec<Contrast>,
    /// The factors that the cells are combinations of, if they are.
    #[serde(default)]
    pub design: Option<Design>,
    /// The number that grows from cell to cell, if one does.
    #[serde(default)]
    pub sweep: Option<Sweep>,
    /// Instead of repeating the one cell as it is, search for the highest rate that it sustains.
    #[serde(default)]
    pub search: Option<RateSearch>,
    /// How often every cell is run; the most, when the run may end earlier.
    pub blocks: u32,
    /// The run is looked at now and then, and ends as soon as every question has an answer.
    #[serde(default)]
    pub until_decided: bool,
    /// No block begins that would probably end later than so long after the first one began.
    #[serde(default)]
    pub budget_ns: Option<Nanos>,
    /// Take accounts of where the time of requests goes, in every trial.
    #[serde(default)]
    pub latency_budget: bool,
    /// Seed of the order, when the plan fixes it.
    pub seed: Option<u64>,
    /// Not counted, before each trial's window.
    pub warmup: Warmup,
    /// The longest wait for the host to calm down before a trial.
    pub cooldown_ns: Nanos,
    /// What ends a trial early.
    pub guards: Guards,
    /// Confidence of the printed intervals, such as 0.95.
    pub confidence: f64,
    /// Differences smaller than this are of no interest, as a ratio minus 1, such as 0.02.
    pub margin: f64,
}

/// A command that makes something the plan needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Build {
    /// Program and arguments.
    pub command: Vec<String>,
    /// Folder to run it in: the plan's own.
    #[serde(serialize_with = "as_text")]
    pub directory: PathBuf,
    /// Line in the plan, for messages.
    pub line: usize,
}

/// Old names of directives that Apache still takes and does not use in its messages.
const ALIASES: [(&str, &str); 2] =
    [("MaxClients", "MaxRequestWorkers"), ("MaxRequestsPerChild", "MaxConnectionsPerChild")];

/// The name Apache's messages use for a directive.
#[must_use]
pub fn canonical(name: &str) -> &str {
    ALIASES.iter().find(|(alias, _)| alias.eq_ignore_ascii_case(name)).map_or(name, |(_, now)| now)
}

/// One line of a server's own configuration language and where the plan says it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Directive {
    /// The line as the server reads it.
    pub text: String,
    /// Line in the plan.
    pub line: usize,
}

/// A named change to the server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variant {
    /// Its name.
    pub name: String,
    /// Directives added after the common ones.
    pub directives: Vec<Directive>,
    /// Parts of configuration warnings that are accepted; any other warning is a failure.
    pub allow_warnings: Vec<String>,
    /// What is changed on the machine for it, beside what is changed for all.
    #[serde(default)]
    pub changes: Changes,
    /// Settings of PHP, beside those for all.
    #[serde(default)]
    pub php: PhpSettings,
    /// How its server is ended, when not as all are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<End>,
    /// What the kernel has of files when its window begins, when not as for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_cache: Option<PageCache>,
    /// The servers that it is measured with, where they are others than the plan's.
    #[serde(default, skip_serializing_if = "Servers::is_empty")]
    pub servers: Servers,
}

/// Limits of the group the server lives in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    /// Bytes of memory; all there is when absent.
    pub memory: Option<u64>,
    /// Bytes of swap that the host must have free, for the server to move to; 0 when it shall have none. Says nothing without `memory`.
    pub swap: u64,
    /// CPU time in thousandths of a CPU: 500 is half a CPU.
    #[serde(default)]
    pub cpu_thousandths: Option<u64>,
    /// What may be read from and written to each disk.
    #[serde(default)]
    pub io: IoLimits,
}

/// What a group may do to each disk of the machine, per second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IoLimits {
    /// Bytes read.
    pub read: Option<u64>,
    /// Bytes written.
    pub write: Option<u64>,
    /// Operations that read.
    pub read_ops: Option<u64>,
    /// Operations that write.
    pub write_ops: Option<u64>,
}

impl IoLimits {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == IoLimits::default()
    }
}

impl Confinement {
    /// CPUs' worth of time.
    #[must_use]
    pub fn cpus(&self) -> Option<f64> {
        self.cpu_thousandths.map(|thousandths| thousandths as f64 / 1000.0)
    }
}

/// One variant under one load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// Its name, unique in the plan.
    pub name: String,
    /// Name of the variant.
    pub variant: String,
    /// Name of the load.
    pub load: String,
    /// Its part in the comparison.
    pub role: Role,
}

/// A cell's part in the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The others are compared with it.
    Baseline,
    /// A second copy of the baseline: what it differs by is noise.
    Again,
    /// Everything else.
    Candidate,
}

/// What is sent before the window and not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Warmup {
    /// Nothing.
    None,
    /// So many requests, one at a time.
    Requests(u64),
    /// The trial's own load for so long.
    Duration(Nanos),
}

/// What ends a trial early, or stops it from harming the host.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Guards {
    /// Time spent thrashing (memory pressure of the server's group, full) after which the trial ends.
    pub thrash_ns: Nanos,
    /// The longest window.
    pub time_ns: Nanos,
    /// Share of failures, over 3 s, at which the trial ends.
    pub failures: f64,
    /// Share of the host's memory that must stay available.
    pub host_memory: f64,
    /// Whether trouble of the host ends the trial: too little memory, swapping in by itself, or nobody to see it.
    #[serde(default = "guarded")]
    pub host: bool,
}

/// Before this could be said, all trials were.
fn guarded() -> bool {
    true
}

impl Guards {
    /// Nothing ends the trial but its own end.
    pub const NONE: Guards =
        Guards { thrash_ns: Nanos::MAX, time_ns: Nanos::MAX, failures: 2.0, host_memory: 0.0, host: false };
}

impl Plan {
    /// The plan with the run's own folder filled in for [`RUN_FOLDER`].
    #[must_use]
    pub fn in_folder(&self, run: &Path) -> Plan {
        let run = run.to_string_lossy();
        let text = |text: &str| text.replace(RUN_FOLDER, &run);
        let path = |path: &PathBuf| PathBuf::from(text(&path.to_string_lossy()));
        let mut plan = self.clone();
        for step in &mut plan.build {
            step.command.iter_mut().for_each(|word| *word = text(word));
        }
        plan.server.fill(&text);
        plan.services.iter_mut().for_each(|service| service.server.fill(&text));
        for variant in &mut plan.variants {
            variant.fill(&text);
        }
        plan.memory.files = plan.memory.files.iter().map(path).collect();
        for changes in plan.variants.iter_mut().map(|variant| &mut variant.changes).chain([&mut plan.changes]) {
            for file in &mut changes.files {
                match &mut file.edit {
                    Edit::Content(content) => *content = text(content),
                    Edit::Copy(from) => *from = path(from),
                    Edit::Change { replace, append } => {
                        replace.values_mut().for_each(|value| *value = text(value));
                        *append = text(append);
                    }
                }
            }
        }
        plan
    }

    /// The cell the others are compared with.
    ///
    /// # Panics
    /// Never for a parsed plan: it has exactly one.
    #[must_use]
    pub fn baseline(&self) -> &Cell {
        self.cells.iter().find(|cell| cell.role == Role::Baseline).expect("a plan has a baseline")
    }

    /// Its second copy, the A/A cell, where the plan has one.
    #[must_use]
    pub fn again(&self) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.role == Role::Again)
    }

    /// A cell by name.
    #[must_use]
    pub fn cell(&self, name: &str) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.name == name)
    }

    /// The variant of a cell.
    ///
    /// # Panics
    /// Never for a cell of this plan.
    #[must_use]
    pub fn variant(&self, cell: &Cell) -> &Variant {
        self.variants.iter().find(|v| v.name == cell.variant).expect("checked when parsed")
    }

    /// How the server of a cell is ended.
    #[must_use]
    pub fn end(&self, cell: &Cell) -> End {
        self.variant(cell).end.unwrap_or(self.end)
    }

    /// What the kernel has of files when the measured window of a variant begins.
    #[must_use]
    pub fn page_cache(&self, variant: &Variant) -> PageCache {
        variant.page_cache.unwrap_or(self.memory.page_cache)
    }

    /// Whether somebody wrote it into a file. What `load`, `ab` and `check` do is a plan as well, made of what was typed: the one load
    /// of theirs is looked at by itself, and nothing of it is compared or taken up again.
    #[must_use]
    pub fn is_written(&self) -> bool {
        !self.file.as_os_str().is_empty()
    }

    /// The configuration that the machine has, where the plan is about one.
    #[must_use]
    pub fn existing(&self) -> Option<&Existing> {
        match &self.server {
            ServerSpec::Apache(apache) => apache.existing.as_ref(),
            ServerSpec::Nginx(nginx) => nginx.existing.as_ref(),
            ServerSpec::Command(_) | ServerSpec::Embedded(_) | ServerSpec::Url(_) => None,
        }
    }

    /// Whether the machine's own running server is changed.
    #[must_use]
    pub fn in_place(&self) -> Option<&Existing> {
        self.existing().filter(|existing| existing.in_place)
    }

    /// Whether a private copy of the machine's own is started.
    #[must_use]
    pub fn derived(&self) -> Option<&Existing> {
        self.existing().filter(|existing| !existing.in_place)
    }

    /// The load of a cell.
    ///
    /// # Panics
    /// Never for a cell of this plan.
    #[must_use]
    pub fn load(&self, cell: &Cell) -> &LoadSpec {
        self.loads.iter().find(|l| l.name == cell.load).expect("checked when parsed")
    }
}

impl Variant {
    /// Every text of it that a server reads becomes what `text` makes of it.
    pub fn fill(&mut self, text: &dyn Fn(&str) -> String) {
        let changes = self.servers.changes.values_mut();
        let lines = changes.flat_map(|change| &mut change.directives).chain(&mut self.directives);
        lines.for_each(|line| line.text = text(&line.text));
        self.php.fill(text);
    }
}

/// A path as it is stored, for humans: one that is no UTF-8 is not refused.
fn as_text<P: AsRef<Path>, S: serde::Serializer>(path: &P, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&path.as_ref().to_string_lossy())
}

fn as_text_if_any<S: serde::Serializer>(path: &Option<PathBuf>, to: S) -> Result<S::Ok, S::Error> {
    path.as_ref().map(|path| path.to_string_lossy()).serialize(to)
}
