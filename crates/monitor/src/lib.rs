//! Read the kernel's counters and keep them: the sampler process and its probes.
//!
//! A [`Sampler`] is a process of its own, the same program re-executed with the hidden command `@sampler`, so that a busy
//! generator cannot delay it and a host short of memory cannot page it out. It reads at fixed appointments into a ring shared
//! with its parent; whatever it was refused, and every file that was missing, becomes one sentence in the notes of the readings.
//! It turns nothing into rates and judges nothing: that is for the model and for the diagnosis.
//!
//! Layout: `watch` is what to read, `sampler` the parent's side, `process` the sampler's own side, `ring` what the two share,
//! `reader` the same readings without a process, `appointments` its clock, `storm` when it hurries, `privileges` what it asks of the kernel for itself, `probes` one file per source of counters, `roots` how a server's processes are found, `connections` who is connected to it, `queues` who waits at a place, `sock_diag` how the kernel is asked for sockets, `accounting` what the kernel says of a server's processes beside one load, by `taskstats`,
//! `source` and `text` how a file is kept open and parsed without allocating.

mod accounting;
#[cfg(test)]
mod allocations;
mod appointments;
mod connections;
mod privileges;
mod probes;
mod process;
mod processes;
mod queues;
mod reader;
mod ring;
mod roots;
mod sampler;
mod sock_diag;
mod source;
mod storm;
mod taskstats;
mod text;
mod watch;

pub use accounting::{Accountant, Books, Doing, EndedProcess, may_account, threads_named};
pub use connections::{Connection, Connections};
pub use privileges::is_refusal;
pub use probes::present;
pub use process::sampler_main;
pub use processes::{ProcessFile, processes};
pub use queues::{Queue, Queues};
pub use reader::Reader;
pub use roots::{Known, RootError, root_of, started, ticks_since_boot};
pub use sampler::{Awaited, MonitorError, News, Sampler};
pub use watch::{GroupDirs, NamedGroup, Part, Table, Watch};
