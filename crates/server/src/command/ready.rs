//! Waiting for a server of the user's own that is asked by a command, such as `mariadb-admin ping`: as often as it takes, until it ends well.

use crate::control::{Logs, POLL, Starting};
use crate::{PlanKey, ServerError};
use host::{Host, HostError, Launch};
use std::time::Duration;

/// Between the end of one try and the next.
const PAUSE: Duration = Duration::from_millis(100);

impl Starting<'_> {
    /// Waits until the command ends with 0. Each try is in the host's journal, so that a run that is killed leaves none.
    pub(super) fn wait_until_told(&mut self, host: &Host, ask: &Launch, at: &PlanKey) -> Result<(), ServerError> {
        let words: Vec<_> = std::iter::once(ask.program.to_string_lossy())
            .chain(ask.args.iter().map(|word| word.to_string_lossy()))
            .collect();
        let asked = words.join(" ");
        loop {
            self.still_awaited()?;
            let mut tried = host.spawn(ask, None).map_err(|error| match error {
                HostError::Launch { why, .. } => {
                    ServerError::Command { at: at.clone(), why: format!("`{asked}` cannot be run: {why}") }
                }
                error => error.into(),
            })?;
            let code = loop {
                match tried.exit_code() {
                    Some(code) => break Some(code),
                    None if self.left().is_zero() || self.still_awaited().is_err() => break None,
                    None => std::thread::sleep(POLL),
                }
            };
            drop(tried);
            if code == Some(0) {
                return Ok(());
            }
            self.still_awaited()?;
            if self.left().is_zero() {
                let why = code.map_or_else(|| "did not end".to_owned(), |code| format!("ended with exit code {code}"));
                let said = Logs(vec![ask.stdout.clone()]).brief();
                let (server, seconds) = (self.server, self.since.elapsed().as_secs_f64());
                let why = format!("{why}: {said}");
                return Err(ServerError::NotReady { server, seconds, asked, why, log: self.logs.brief() });
            }
            std::thread::sleep(PAUSE.min(self.left()));
        }
    }
}
