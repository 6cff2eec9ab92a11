//! `webdyno admission`: what mod_admission does in the servers of this machine, and how to change it while they run.
//!
//! Server and webdyno share two files and no code: the status.json that the module's controller writes each second, and the control
//! file that it reads.

mod control;
pub(crate) mod find;
mod plain;
mod set;
mod status;
mod watch;
mod words;

use crate::exit::Exit;
use crate::flags::admission::{AdmissionCommand, AdmissionFlags};

pub(crate) fn run(flags: &AdmissionFlags) -> anyhow::Result<Exit> {
    match &flags.command {
        AdmissionCommand::Status(flags) => status::run(flags),
        AdmissionCommand::Set(flags) => set::run(flags),
        AdmissionCommand::Watch(flags) => watch::run(flags),
    }
}
