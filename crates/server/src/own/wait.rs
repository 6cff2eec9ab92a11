//! Waiting until a server of the machine's has begun anew.

use crate::control::{Logs, POLL, Refusal};
use crate::probe::{Ask, get};
use crate::selinux::hint;
use crate::{PlanKey, ServerError};
use host::Service;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long a try to reach the server may take while it begins anew.
const TRY: Duration = Duration::from_secs(2);

/// Waiting for a server that begins anew.
pub(crate) struct Wait<'a> {
    pub(crate) service: &'a Service,
    pub(crate) server: &'static str,
    /// When it was told to.
    pub(crate) since: Instant,
    /// How long it may take from then on.
    pub(crate) timeout: Duration,
    pub(crate) logs: Logs,
    /// Set when nobody waits for it any more.
    pub(crate) interrupted: &'a AtomicBool,
}

impl Wait<'_> {
    /// Until a GET of the path is answered with 2xx. With `key`, which names the path in the plan, a steady refusal is its mistake.
    pub(crate) fn until_answered(
        &self,
        address: SocketAddr,
        host: Option<&str>,
        path: &str,
        key: Option<&PlanKey>,
    ) -> Result<(), ServerError> {
        let mut refusal = Refusal::default();
        loop {
            let why = match get(address, host, path, Ask::Once, TRY, &mut || self.still_awaited().is_ok()) {
                Ok(reply) if (200..300).contains(&reply.status) => return Ok(()),
                Ok(reply) => {
                    refusal.came(reply.status);
                    format!("status {}", reply.status)
                }
                Err(error) => {
                    refusal = Refusal::default();
                    error.to_string()
                }
            };
            self.still_awaited()?;
            if let (Some(key), Some(status)) = (key, refusal.steady()) {
                let (path, log) = (path.to_owned(), self.logs.brief());
                return Err(ServerError::WrongReady { at: key.clone(), path, status, log });
            }
            if self.since.elapsed() >= self.timeout {
                let (seconds, asked) = (self.since.elapsed().as_secs_f64(), format!("GET {path}"));
                let log = self.logs.brief() + hint(Path::new("/"));
                return Err(ServerError::NotReady { server: self.server, seconds, asked, why, log });
            }
            std::thread::sleep(POLL);
        }
    }

    /// Processes of before finish what they have; that some take longer is said.
    pub(crate) fn until_gone(&self, before: &[u32], notes: &mut Vec<String>) {
        let end = Instant::now() + TRY;
        loop {
            let now = self.service.workers();
            let left = before.iter().filter(|pid| now.contains(pid)).count();
            if left == 0 || self.interrupted.load(Ordering::Relaxed) {
                return;
            }
            if Instant::now() > end {
                notes.push(format!("{left} processes of before the restart still finished requests"));
                return;
            }
            std::thread::sleep(POLL);
        }
    }

    /// An error once it has ended, or nobody waits for it any more.
    pub(crate) fn still_awaited(&self) -> Result<(), ServerError> {
        if self.interrupted.load(Ordering::Relaxed) {
            return Err(ServerError::Interrupted);
        }
        if self.service.pid().is_some() { Ok(()) } else { Err(self.died()) }
    }

    /// Why an answer did not come: that it has ended, or that nobody waits any more, says more than what is seen of that from here.
    pub(crate) fn or_ended(&self, error: ServerError) -> ServerError {
        self.still_awaited().err().unwrap_or_else(|| error.with_log(&self.logs))
    }

    /// What is said of one that has ended.
    pub(crate) fn died(&self) -> ServerError {
        ServerError::Died { server: self.server, log: self.logs.brief() + hint(Path::new("/")) }
    }
}
