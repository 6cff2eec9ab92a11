//! Exit codes, decided in one place.

use crate::command::admission::find::NoServer;
use crate::command::load::NoSuchHost;
use crate::command::watch::NoPort;
use experiment::{ExperimentError, PageError};
use host::HostError;
use load::{FetchError, LoadError};
use report::Verdict;
use server::ServerError;
use std::process::ExitCode;
use store::StoreError;

/// How webdyno ends; the numbers are part of its contract (`docs/guide.md`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Better, equivalent, or nothing to judge.
    Done,
    /// Worse.
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

impl Exit {
    /// The same when what was to be printed did not get out: a code must not stand for an answer that nobody has.
    pub(crate) fn unsaid(self) -> Exit {
        match self {
            Exit::Done | Exit::Worse | Exit::Inconclusive => Exit::Environment,
            // The other programs' word for trouble.
            Exit::Code(0) => Exit::Code(1),
            // Trouble that was told already.
            Exit::Usage | Exit::Server | Exit::Environment | Exit::Store | Exit::Interrupted | Exit::Code(_) => self,
        }
    }
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

/// The exit of a comparison. Whoever tries several settings wants to know whether one is better, so one is enough; after that
/// doubt counts more than a clear "no better".
pub(crate) fn of_verdicts(verdicts: impl IntoIterator<Item = Verdict>) -> Exit {
    let weight = |verdict: &Verdict| match verdict {
        Verdict::Better => 3,
        Verdict::Inconclusive { .. } => 2,
        Verdict::Equivalent => 1,
        Verdict::Worse => 0,
    };
    match verdicts.into_iter().max_by_key(weight) {
        None | Some(Verdict::Better | Verdict::Equivalent) => Exit::Done,
        Some(Verdict::Inconclusive { .. }) => Exit::Inconclusive,
        Some(Verdict::Worse) => Exit::Worse,
    }
}

/// The exit of an error, by what is to blame.
pub(crate) fn of(error: &anyhow::Error) -> Exit {
    match error.downcast_ref::<ExperimentError>() {
        Some(ExperimentError::Plan { .. } | ExperimentError::Refused(_)) => Exit::Usage,
        Some(ExperimentError::Server(error)) => of_server(error),
        Some(ExperimentError::Load(error)) => of_load(error),
        Some(ExperimentError::NoAnswer { .. } | ExperimentError::Died(_)) => Exit::Server,
        Some(ExperimentError::Store(_)) => Exit::Store,
        Some(_) => Exit::Environment,
        None if error.is::<NoSuchHost>() || error.is::<NoServer>() || is_no_page(error) => Exit::Server,
        None if error.is::<StoreError>() => Exit::Store,
        None if error.is::<NoPort>() => Exit::Environment,
        None if error.is::<HostError>() || error.is::<std::io::Error>() => Exit::Environment,
        // A plan that makes no sense, a file that is not there.
        None => Exit::Usage,
    }
}

fn is_no_page(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(PageError::Fetch { why: FetchError::Failed(_), .. } | PageError::Status { .. }))
}

fn of_load(error: &LoadError) -> Exit {
    match error {
        LoadError::Pin { .. } | LoadError::Kernel { .. } => Exit::Environment,
        // Everything else was asked for.
        _ => Exit::Usage,
    }
}

fn of_server(error: &ServerError) -> Exit {
    match error {
        ServerError::Service { error, .. } => of_server(error),
        ServerError::Directive { .. }
        | ServerError::Configuration { .. }
        | ServerError::Machine { .. }
        | ServerError::NoFolder { .. }
        | ServerError::Unreadable { .. }
        | ServerError::WrongReady { .. } => Exit::Usage,
        ServerError::PortInUse { .. }
        | ServerError::OwnFolder(_)
        | ServerError::Changed { .. }
        | ServerError::Reread { .. }
        | ServerError::Io { .. } => Exit::Environment,
        ServerError::Host(error) if !matches!(error, HostError::Service(_)) => Exit::Environment,
        _ => Exit::Server,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_better_setting_is_enough_and_doubt_comes_before_no() {
        const OPEN: Verdict = Verdict::Inconclusive { more_blocks: Some(3) };
        let check = |verdicts: &[Verdict], expected| assert_eq!(of_verdicts(verdicts.iter().copied()), expected);
        check(&[], Exit::Done);
        check(&[Verdict::Worse, OPEN, Verdict::Better, Verdict::Equivalent], Exit::Done);
        check(&[Verdict::Equivalent, OPEN, Verdict::Worse], Exit::Inconclusive);
        check(&[Verdict::Worse, Verdict::Equivalent], Exit::Done);
        check(&[Verdict::Worse, Verdict::Worse], Exit::Worse);
    }
}
