//! The end of a server that is ours, in each of the ways that a plan may ask for.
//!
//! What is known of a server's signals stands here. Which lines are in its logs afterwards is not looked at.

use crate::apache::{INFO, STATUS};
use crate::control::{GRACE, Hold, POLL};
use crate::php::PAGE;
use crate::probe::{Ask, get};
use crate::{Running, ServerError};
use host::Child;
use model::plan::{CommandServer, End, Ending, Ready, ServerSpec};
use rustix::process::Signal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long processes may take to end by themselves, such as a program that logs are piped to and that still reads.
/// Apache itself gives its processes some 10 s.
const PATIENCE: Duration = Duration::from_secs(30);

/// How the end of a server went.
#[derive(Debug)]
pub struct Ended {
    /// Whether all of it ended as the plan wanted, so that nothing is missing in its logs by webdyno's doing.
    pub by_itself: bool,
    /// What is worth knowing of it, one sentence each.
    pub notes: Vec<String>,
}

impl Ended {
    fn spoil(&mut self, why: String) {
        self.by_itself = false;
        self.notes.push(why);
    }
}

/// The signal for the server's root process. `None` where the ending is none of one signal.
fn signal(server: &ServerSpec, ending: Ending) -> Option<Signal> {
    match (server, ending) {
        (_, Ending::Kill) => None,
        (_, Ending::Stop) => Some(Signal::TERM),
        (ServerSpec::Apache(_), Ending::GracefulStop) => Some(Signal::WINCH),
        (ServerSpec::Apache(_), Ending::Graceful) => Some(Signal::USR1),
        (ServerSpec::Apache(_), Ending::Restart) | (ServerSpec::Nginx(_), Ending::Graceful) => Some(Signal::HUP),
        (ServerSpec::Nginx(_), Ending::GracefulStop) => Some(Signal::QUIT),
        _ => None,
    }
}

/// Whether it is webdyno itself that asks a server of ours for this path and query: whether it is ready, and what is in force.
#[must_use]
pub fn asks_for(server: &ServerSpec, target: &str) -> bool {
    let ready = match server {
        ServerSpec::Apache(apache) => apache.ready.as_str(),
        ServerSpec::Nginx(nginx) => nginx.ready.as_str(),
        ServerSpec::Command(CommandServer { ready: Ready::Path(path), .. }) => path.as_str(),
        ServerSpec::Command(_) | ServerSpec::Embedded(_) | ServerSpec::Url(_) => "/",
    };
    let path = target.split('?').next().unwrap_or_default();
    target == ready || [STATUS, INFO, PAGE].contains(&path)
}

impl Running {
    /// Begins the end of it, where that is a restart, while it still works; hand what comes of it to [`Running::end`].
    ///
    /// # Errors
    /// When the machine does not tell its processes.
    pub fn begin_anew(&self, server: &ServerSpec, ending: Ending) -> Result<Vec<u32>, ServerError> {
        let Some(Hold::Child(child)) = &self.hold else { return Ok(Vec::new()) };
        let before = child.processes()?.into_iter().filter(|pid| *pid != child.pid).collect();
        if let Some(signal) = signal(server, ending) {
            child.tell(signal);
        }
        Ok(before)
    }

    /// Ends it as the plan says, and waits until nothing of it is left, so that whoever wanted to write has written. `before` are
    /// the processes of before a restart that was begun already. Once `interrupted` is set nobody waits for that any more.
    ///
    /// # Errors
    /// When something would not end.
    pub fn end(
        mut self,
        server: &ServerSpec,
        end: End,
        before: Option<Vec<u32>>,
        interrupted: &AtomicBool,
    ) -> Result<Ended, ServerError> {
        let mut ended = Ended { by_itself: true, notes: Vec::new() };
        let mut last = end.how;
        if end.how.goes_on() {
            let before = before.map_or_else(|| self.begin_anew(server, end.how), Ok)?;
            self.until_anew(server, &before, &mut ended, interrupted)?;
            last = Ending::GracefulStop;
        }
        let Some(Hold::Child(child)) = self.hold.take() else { return Ok(ended) };
        match signal(server, last) {
            None => child.kill()?,
            Some(signal) => {
                child.tell(signal);
                let told = Instant::now();
                let mut forced = child.wait_for_end(PATIENCE, interrupted)?;
                forced.sort_unstable();
                forced.dedup();
                if !forced.is_empty() {
                    let (names, seconds) = (forced.join(", "), told.elapsed().as_secs());
                    ended.spoil(format!(
                        "{seconds} s after the server was told to end, {names} had not, and was ended by force"
                    ));
                }
            }
        }
        self.beside.drain(..).try_for_each(|child| Ok::<(), ServerError>(child.terminate(GRACE)?))?;
        Ok(ended)
    }

    /// Waits until the processes of before are gone and others answer: a signal that comes while a server begins anew may be lost.
    fn until_anew(
        &self,
        server: &ServerSpec,
        before: &[u32],
        ended: &mut Ended,
        interrupted: &AtomicBool,
    ) -> Result<(), ServerError> {
        let Some(Hold::Child(child)) = &self.hold else { return Ok(()) };
        let is_awaited = || !interrupted.load(Ordering::Relaxed);
        let began = Instant::now();
        let left = |child: &Child| -> Result<usize, ServerError> {
            let now = child.processes()?;
            Ok(before.iter().filter(|pid| now.contains(pid)).count())
        };
        while left(child)? > 0 && began.elapsed() < PATIENCE && is_awaited() {
            std::thread::sleep(POLL);
        }
        if left(child)? > 0 {
            let seconds = began.elapsed().as_secs();
            ended.spoil(format!(
                "{seconds} s after the server was told to begin anew, processes of before had not ended"
            ));
        }
        if self.tls {
            // As when it was started: behind TLS nothing is asked for.
            return Ok(());
        }
        let path = match server {
            ServerSpec::Apache(apache) => &apache.ready,
            ServerSpec::Nginx(nginx) => &nginx.ready,
            _ => return Ok(()),
        };
        let host = self.host.as_deref();
        if let Err(error) = get(self.address, host, path, Ask::Once, PATIENCE, &mut || is_awaited()) {
            ended.spoil(format!("the server did not answer after it was told to begin anew: {error}"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::plan::{Options, parse};
    use std::path::Path;

    fn server(keys: &str) -> ServerSpec {
        let text = format!("[server]\n{keys}\n[load.a]\npath = \"/a\"\nconnections = 1\nrequests = 1\n");
        parse(&text, Path::new("p.toml"), &Options::default()).unwrap().0.server
    }

    #[test]
    fn every_ending_that_a_plan_may_ask_for_has_a_signal() {
        for keys in
            ["kind = \"apache\"", "kind = \"nginx\"", "kind = \"embedded\"", "kind = \"command\"\ncommand = [\"x\"]"]
        {
            let server = server(keys);
            for &ending in server.endings() {
                assert_eq!(signal(&server, ending).is_none(), ending == Ending::Kill, "{keys} {}", ending.name());
            }
        }
    }

    #[test]
    fn our_own_requests_are_known() {
        let apache = server("kind = \"apache\"\nready = \"/up?now\"");
        let check = |target: &str, expected: bool| assert_eq!(asks_for(&apache, target), expected, "{target}");
        check("/up?now", true);
        check("/up", false);
        check("/server-status?auto", true);
        check("/server-info?server", true);
        check("/server-status-page", false);
    }
}
