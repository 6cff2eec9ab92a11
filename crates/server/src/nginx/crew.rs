//! The worker processes of a running nginx: that all are there, and what the kernel says of them.

use super::lines::Planned;
use crate::ServerError;
use crate::control::{Logs, POLL};
use crate::lossy::read_lossy;
use crate::running::online;
use model::plan::Directive;
use model::trial::EffectiveSettings;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// Its workers.
#[derive(Debug)]
pub(super) struct Crew {
    /// Their numbers.
    pub(super) workers: Vec<u32>,
}

/// How to look for them.
pub(super) struct Muster<'a> {
    /// Processes of the server that may be some of them.
    pub(super) workers: &'a dyn Fn() -> Vec<u32>,
    pub(super) still_awaited: &'a mut dyn FnMut() -> Result<(), ServerError>,
    /// When it was started, or told to begin anew.
    pub(super) since: Instant,
    /// How long it may take from then on.
    pub(super) timeout: Duration,
    pub(super) logs: &'a Logs,
}

impl Crew {
    /// Waits until there are as many as `worker_processes` says.
    pub(super) fn wait(muster: &mut Muster<'_>, worker_processes: Option<&str>) -> Result<Crew, ServerError> {
        let asked = match worker_processes {
            Some("auto") => cpus(),
            Some(number) => number.parse().unwrap_or(1),
            None => 1,
        };
        loop {
            let workers: Vec<u32> = (muster.workers)().into_iter().filter(|pid| is_worker(*pid)).collect();
            let running = workers.len() as u64;
            if running == asked {
                return Ok(Crew { workers });
            }
            (muster.still_awaited)()?;
            if muster.since.elapsed() >= muster.timeout {
                return Err(ServerError::Children { server: super::SERVER, running, asked, log: muster.logs.brief() });
            }
            std::thread::sleep(POLL);
        }
    }

    /// The plan's directives that the kernel says otherwise of.
    pub(super) fn differs<'a>(&self, planned: &'a [Planned]) -> Vec<(&'a Directive, String)> {
        let asked = planned.iter().find(|it| it.name == "worker_rlimit_nofile").and_then(|it| it.lines.first());
        let Some((line, files)) = asked.zip(self.workers.first().and_then(|pid| open_files(*pid))) else {
            return vec![];
        };
        let says = line.text.trim().trim_end_matches(';').split_ascii_whitespace().nth(1);
        if says == Some(files.as_str()) { vec![] } else { vec![(line, format!("its workers may open {files} files"))] }
    }

    /// Settings with how many `auto` is.
    pub(super) fn counted(&self, mut settings: EffectiveSettings) -> EffectiveSettings {
        let processes = settings.values.entry("worker_processes".to_owned()).or_insert_with(|| "1".to_owned());
        if processes == "auto" {
            *processes = format!("auto ({})", self.workers.len());
        }
        settings
    }
}

/// Whether a process is a worker that takes connections; caches have processes, too, and one that ends says so.
fn is_worker(pid: u32) -> bool {
    let title = read_lossy(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    title.trim_end_matches('\0') == "nginx: worker process"
}

/// CPUs that are online, counted where nginx does by way of the C library: in containers /proc/stat may say otherwise.
fn cpus() -> u64 {
    online(Path::new("/sys")).map_or(1, u64::from)
}

fn open_files(pid: u32) -> Option<String> {
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
    limits.lines().find_map(|line| Some(line.strip_prefix("Max open files")?.split_whitespace().next()?.to_owned()))
}
