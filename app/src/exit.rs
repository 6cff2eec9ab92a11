//! Exit codes, decided in one place.

use experiment::ExperimentError;
use host::HostError;
use model::plan::PlanError;
use server::ServerError;
use std::process::ExitCode;
use store::StoreError;

/// How webdyno ends; the numbers are part of its contract (`docs/guide.md`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Better, equivalent, or nothing to judge.
    Done,
    /// Worse, or a threshold missed.
    Worse,
    /// What was typed or planned makes no sense.
    Usage,
    /// Not enough evidence.
    Inconclusive,
    /// The server could not be run.
    Server,
    /// Root, swap, port, disk: the environment refuses.
    Environment,
    /// The store refuses.
    Store,
    /// Ctrl-C; results are kept.
    Interrupted,
    /// The code of another program's contract.
    Code(u8),
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(match exit {
            Exit::Done => 0,
            Exit::Worse => 1,
            Exit::Usage => 2,
            Exit::Inconclusive => 3,
            Exit::Server => 4,
            Exit::Environment => 5,
            Exit::Store => 6,
            Exit::Interrupted => 130,
            Exit::Code(code) => code,
        })
    }
}

/// The exit of an error, by what is to blame.
pub(crate) fn of(error: &anyhow::Error) -> Exit {
    let experiment = error.downcast_ref::<ExperimentError>();
    if error.is::<PlanError>() || matches!(experiment, Some(ExperimentError::Plan { .. })) {
        Exit::Usage
    } else if error.is::<StoreError>() || matches!(experiment, Some(ExperimentError::Store(_))) {
        Exit::Store
    } else if error.is::<ServerError>() || matches!(experiment, Some(ExperimentError::Server(_))) {
        Exit::Server
    } else if error.is::<HostError>() || experiment.is_some() {
        Exit::Environment
    } else {
        Exit::Usage
    }
}
