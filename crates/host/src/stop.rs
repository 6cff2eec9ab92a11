//! Asks a server to end as its plan says, before what is left of it is ended by force: the run does, and whoever comes after a run that was killed.

use crate::Launch;
use crate::call::{Called, call};
use crate::launch::dress;
use crate::process::{Identity, Members, Session, ended_with};
use model::plan::StopSignal;
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// Between two looks at a server that is about to end.
const LOOK_AGAIN: Duration = Duration::from_millis(2);
/// How long what is left of a command may take to end by force.
const ENDED: Duration = Duration::from_secs(1);

/// How a server is asked to end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    /// By what.
    pub by: StopBy,
    /// For how long it is waited for then.
    pub within: Duration,
}

/// What asks a server to end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopBy {
    /// A signal to its first process.
    Signal(StopSignal),
    /// A command that is started beside it.
    Command(Launch),
}

impl StopBy {
    /// Whether there is somebody to be asked of a server whose first process may have ended: a command may end what that has begun elsewhere,
    /// as a container's client has.
    pub(crate) fn reaches(&self, first_lives: impl FnOnce() -> bool) -> bool {
        matches!(self, StopBy::Command(_)) || first_lives()
    }

    /// It, as a message names it.
    pub(crate) fn words(&self) -> String {
        match self {
            StopBy::Signal(signal) => format!("SIG{}", signal.name()),
            StopBy::Command(launch) => {
                let args = launch.args.iter().map(|word| word.to_string_lossy());
                let words: Vec<_> = std::iter::once(launch.program.to_string_lossy()).chain(args).collect();
                format!("`{}`", words.join(" "))
            }
        }
    }
}

/// A server that is asked to end: by the run that started it, or by who comes after a run that was killed.
pub(crate) trait Root {
    /// Sends its first process a signal.
    fn signal(&mut self, signal: Signal);

    /// Whether its first process has ended. Nobody finds it among the processes then: a command may wait for that.
    fn is_gone(&mut self) -> bool;

    /// Starts a command; what it gives tells, whenever it is called, what the command ended with, and ends it when dropped.
    ///
    /// # Errors
    /// Why it cannot be run.
    fn run(&mut self, launch: &Launch) -> Result<Box<dyn FnMut() -> Option<i32>>, String>;
}

impl Stop {
    /// Asks a server, and waits until its first process has ended, and the command that asked it, too: for `most` at most.
    ///
    /// # Errors
    /// What had not ended by then, in half a sentence.
    pub(crate) fn ask(&self, root: &mut impl Root, most: Duration) -> Result<(), String> {
        let (since, patience) = (Instant::now(), self.within.min(most));
        let mut asking = match &self.by {
            StopBy::Signal(signal) => {
                root.signal(number(*signal));
                None
            }
            StopBy::Command(launch) => Some(root.run(launch).map_err(|why| format!("cannot be asked to end: {why}"))?),
        };
        loop {
            let gone = root.is_gone();
            let code = asking.as_mut().map(|ended_with| ended_with());
            if gone && code.is_none_or(|code| code.is_some()) {
                return Ok(());
            }
            if since.elapsed() >= patience {
                let (seconds, words) = (patience.as_secs_f64(), self.by.words());
                return Err(match code {
                    _ if gone => format!("has ended, but {words} had not after {seconds:.1} s"),
                    Some(Some(code @ 1..)) => format!(
                        "had not ended {seconds:.1} s after it was asked to by {words}, which ended with exit code {code}"
                    ),
                    _ => format!("had not ended {seconds:.1} s after it was asked to by {words}"),
                });
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }
}

/// A command that asks, in nobody's journal. Dropping it ends it, and what it has left in the background, too.
struct Asking(Called);

impl Drop for Asking {
    fn drop(&mut self) {
        if let Some(session) = Session::of(self.0.pid().as_raw_nonzero().get().unsigned_abs()) {
            // There is nobody to tell what does not end.
            let _ = Members::Session(session).end(ENDED);
        }
    }
}

/// The first process of a server whose run was killed.
impl Root for Identity {
    fn signal(&mut self, signal: Signal) {
        // It can only fail by having ended meanwhile, which is what is wanted.
        let _ = Identity::signal(*self, signal);
    }

    fn is_gone(&mut self) -> bool {
        !self.lives()
    }

    fn run(&mut self, launch: &Launch) -> Result<Box<dyn FnMut() -> Option<i32>>, String> {
        let mut command = call(&launch.program);
        dress(&mut command, launch);
        let asking = Asking(Called::start(&mut command).map_err(|error| error.to_string())?);
        Ok(Box::new(move || ended_with(asking.0.pid())))
    }
}

fn number(signal: StopSignal) -> Signal {
    match signal {
        StopSignal::Term => Signal::TERM,
        StopSignal::Int => Signal::INT,
        StopSignal::Quit => Signal::QUIT,
        StopSignal::Hup => Signal::HUP,
        StopSignal::Usr1 => Signal::USR1,
        StopSignal::Usr2 => Signal::USR2,
        StopSignal::Winch => Signal::WINCH,
    }
}
