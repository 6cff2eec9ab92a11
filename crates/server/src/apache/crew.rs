//! Waiting until all of a server's worker processes exist: what is measured before then is the start.

use super::SERVER;
use super::instance::no_settings;
use super::settings::{Pages, Told};
use crate::ServerError;
use crate::control::{Logs, POLL};
use model::plan::Mpm;
use std::time::{Duration, Instant};

/// From here on prefork ends spare children, one a second.
const SPARE_LOOP: Duration = Duration::from_secs(1);

/// A server that was started and answers.
pub(crate) struct Muster<'a> {
    pub(crate) pages: &'a Pages,
    pub(crate) mpm: Mpm,
    /// When it was started.
    pub(crate) since: Instant,
    /// How long it may take from then on.
    pub(crate) timeout: Duration,
    pub(crate) logs: &'a Logs,
}

impl Muster<'_> {
    /// Waits until all worker processes exist; returns how many there are.
    pub(crate) fn wait(
        &self,
        told: &Told,
        still_awaited: &mut dyn FnMut() -> Result<(), ServerError>,
        notes: &mut Vec<String>,
    ) -> Result<u64, ServerError> {
        let crew = told.crew(self.mpm);
        if crew.started < crew.asked && told.directive("StartServers").is_some() {
            let (asked, started, slots) = (crew.asked, crew.started, told.status.slots);
            notes.push(format!(
                "StartServers {asked} was asked for, {started} run: MaxRequestWorkers {slots} allows no more"
            ));
        }
        if crew.kept < crew.started {
            let (started, kept) = (crew.started, crew.kept);
            let spare = if self.mpm == Mpm::Prefork { "MaxSpareServers" } else { "MaxSpareThreads" };
            notes.push(format!(
                "StartServers {started} is above {spare}: Apache ends idle processes, one a second, down to {kept}"
            ));
        }
        let mut status = told.status.clone();
        loop {
            let running = told.processes(&status, self.mpm);
            if running >= crew.started || (running >= crew.kept && self.since.elapsed() >= SPARE_LOOP) {
                return Ok(running);
            }
            still_awaited()?;
            if self.since.elapsed() >= self.timeout {
                return Err(ServerError::Children {
                    server: SERVER,
                    running,
                    asked: crew.started,
                    log: self.logs.brief(),
                });
            }
            std::thread::sleep(POLL);
            let told = self.pages.ask_status(self.timeout, &mut || still_awaited().is_ok());
            status =
                told.map_err(|why| still_awaited().err().unwrap_or_else(|| no_settings(why).with_log(self.logs)))?;
        }
    }
}
