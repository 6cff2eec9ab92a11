//! Waiting until a server of the machine's has begun anew.

use crate::ServerError;
use crate::control::{Logs, POLL};
use crate::probe::{Ask, get_while};
use crate::selinux::hint;
use host::Service;
use std::net::SocketAddr;
use std::path::Path;
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
}

impl Wait<'_> {
    /// Until a GET of the path is answered with 2xx.
    pub(crate) fn until_answered(
        &self,
        address: SocketAddr,
        host: Option<&str>,
        path: &str,
    ) -> Result<(), ServerError> {
        loop {
            let why = match get_while(address, host, path, Ask::Once, TRY, &mut || self.service.pid().is_some()) {
                Ok(reply) if (200..300).contains(&reply.status) => return Ok(()),
                Ok(reply) => format!("status {}", reply.status),
                Err(error) => error.to_string(),
            };
            self.still_alive()?;
            if self.since.elapsed() >= self.timeout {
                let (seconds, path) = (self.since.elapsed().as_secs_f64(), path.to_owned());
                let log = self.logs.brief() + hint(Path::new("/"));
                return Err(ServerError::NotReady { server: self.server, seconds, path, why, log });
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
            if left == 0 {
                return;
            }
            if Instant::now() > end {
                notes.push(format!("{left} processes of before the restart still finished requests"));
                return;
            }
            std::thread::sleep(POLL);
        }
    }

    /// An error once it has ended.
    pub(crate) fn still_alive(&self) -> Result<(), ServerError> {
        if self.service.pid().is_some() { Ok(()) } else { Err(self.died()) }
    }

    /// What is said then.
    pub(crate) fn died(&self) -> ServerError {
        ServerError::Died { server: self.server, log: self.logs.brief() + hint(Path::new("/")) }
    }
}
