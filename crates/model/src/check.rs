//! What `webdyno check` found: the server that was running already, and what its door looked like. Facts, no verdicts.
//!
//! What is derived from a configuration (the limit that follows from several directives and their defaults) is a method, so that
//! a better reading applies to what was stored before.

use crate::Nanos;
use crate::others::Others;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Everything a check saw beside its loads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// The time it could take.
    pub budget_ns: Nanos,
    /// The time it took, from its first look to its last; 0 where it was not noted.
    #[serde(default)]
    pub took_ns: Nanos,
    /// Who answers, before anything was sent.
    pub running: Running,
    /// What single requests showed.
    pub page: Option<Page>,
    /// Who was connected before anything was sent; `None` where the kernel does not tell or the server is elsewhere.
    pub before: Option<Door>,
    /// What workers hold after the load, and the most that one of them held at work: the server's own under no name, and those of
    /// each pool by its own.
    pub after: Vec<(String, WorkerMemory)>,
    /// What pools of PHP-FPM did while something was sent, by their names; empty where nobody looked.
    #[serde(default)]
    pub work: Vec<(String, PoolWork)>,
    /// What waited for pools of PHP-FPM, by their names; empty where nobody looked.
    #[serde(default)]
    pub queues: Vec<(String, PoolQueue)>,
    /// Programs that used the CPUs beside server and load, from the first window to the last.
    #[serde(default)]
    pub others: Option<Others>,
    /// Why the climb went no higher.
    pub summit: Summit,
    /// Concurrencies of the climb by the names of their cells, in order.
    pub climb: Vec<(String, u32)>,
}

/// Why a climb went no higher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Summit {
    /// More at once brought no more answers.
    Plateau,
    /// More at once brought far fewer answers.
    Cliff,
    /// Requests failed.
    Failures,
    /// The next step could have used up the memory.
    Memory,
    /// A guard of the load stopped it.
    Guard,
    /// As many connections as a check opens at most.
    Ceiling,
    /// As many connections as this process may have open files for.
    Files,
    /// The time was over.
    Time,
    /// Nothing answered.
    NoAnswer,
    /// The page is refused, or only points elsewhere: nothing else was asked for.
    Refused,
    /// The user ended it.
    Interrupted,
}

/// A server that was running before anybody asked.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Running {
    /// Which server it is.
    pub kind: Kind,
    /// What it calls itself in its answers (`Server`).
    pub server: Option<String>,
    /// How its processes were found.
    pub found: Found,
    /// The first of its processes.
    pub root: Option<u32>,
    /// Its processes, the first included, and their threads.
    pub processes: u64,
    /// Threads of all of them.
    pub threads: u64,
    /// Its configuration.
    pub file: Option<PathBuf>,
    /// Directives as they were read, in order; what comes later wins.
    pub settings: Vec<Setting>,
    /// What its workers hold.
    pub workers: Option<WorkerMemory>,
    /// Pools of PHP-FPM that it passes requests to.
    pub pools: Vec<Pool>,
    /// The memory group it lives in, if that has a limit.
    pub group: Option<MemoryGroup>,
    /// CPUs that it may use, whole or in part, where that is less than all: a quota of its group or one around it, or the CPUs it is bound to.
    #[serde(default)]
    pub cpus: Option<f64>,
    /// The most connections that the kernel lets wait at any door of this machine (net.core.somaxconn).
    #[serde(default)]
    pub somaxconn: Option<u64>,
    /// What could not be seen.
    pub unseen: Vec<Unseen>,
}

/// Which server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Apache: a process for each request.
    ApachePrefork,
    /// Apache: threads.
    ApacheWorker,
    /// Apache: threads, idle connections without one.
    ApacheEvent,
    /// Apache; how it works is not known.
    Apache,
    /// nginx.
    Nginx,
    /// Another one.
    #[default]
    Other,
}

impl Kind {
    /// Whether it is an Apache.
    #[must_use]
    pub fn is_apache(self) -> bool {
        matches!(self, Kind::ApachePrefork | Kind::ApacheWorker | Kind::ApacheEvent | Kind::Apache)
    }

    /// Whether an idle kept connection occupies a worker.
    #[must_use]
    pub fn holds_workers(self) -> bool {
        matches!(self, Kind::ApachePrefork | Kind::ApacheWorker)
    }
}

/// How the processes of a server were found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Found {
    /// They hold the listening socket.
    Socket,
    /// Only by their name: who holds the socket was not to be seen.
    Name,
    /// Not at all.
    #[default]
    Not,
}

/// What could not be seen, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "what", content = "why")]
pub enum Unseen {
    /// Which process holds the listening socket: only root sees it.
    Owner,
    /// The server is not on this machine.
    Elsewhere,
    /// A part of the configuration: the file, and what the kernel said.
    File(String),
    /// The configuration was changed after the server had started; whether it was read again is not known.
    Changed(String),
    /// What a worker shares with nobody: only root sees it.
    Shares,
    /// Who works on requests that are passed on by FastCGI: no pool was found at these places.
    Pool(String),
}

/// A directive as it was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// Its name, as the server's manual has it today.
    pub name: String,
    /// Its name as the file has it.
    pub written: String,
    /// Its value.
    pub value: String,
    /// Where it stands.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: usize,
    /// The section it stands in, if it does not hold for the whole server.
    pub section: Option<String>,
}

/// How bytes of a worker were counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// What it shares with nobody (USS), and what of it is in swap.
    Unshared,
    /// Resident without pages of files (`RssAnon`): what it shares with its parent is counted in each.
    Anonymous,
}

/// What workers hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerMemory {
    /// How it was counted.
    pub measure: Measure,
    /// Workers that were looked at.
    pub workers: u64,
    /// Bytes of the largest.
    pub largest: u64,
    /// Bytes of all.
    pub total: u64,
    /// Bytes of each that may be its parent's, too: what the parent holds, where the measure counts that in each.
    #[serde(default)]
    pub inherited: u64,
}

/// A pool of PHP-FPM.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pool {
    /// Its name.
    pub name: String,
    /// Where it listens.
    pub listen: String,
    /// Its directives.
    pub settings: Vec<Setting>,
    /// The first process of PHP-FPM.
    pub root: u32,
    /// What its workers hold.
    pub workers: Option<WorkerMemory>,
}

/// What a pool did in all windows together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolWork {
    /// The most workers that it had at once.
    pub most: u64,
    /// Clock ticks that they used.
    pub ticks: u64,
}

/// The queue before a pool, in the window in which it was full most often.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolQueue {
    /// Connections that may wait; when it is full there is one more.
    pub limit: u64,
    /// The most that waited.
    pub most: u64,
    /// How often somebody looked.
    pub looks: u64,
    /// How often it was full then.
    pub full: u64,
}

/// A group whose memory has a limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryGroup {
    /// Its directory.
    pub directory: PathBuf,
    /// Whether it is of cgroup v2.
    pub v2: bool,
    /// Bytes it may have.
    pub limit: u64,
    /// Bytes its processes had before the load, without what the kernel can drop.
    pub used: Option<u64>,
}

/// What one request showed of the page.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page {
    /// Status.
    pub status: u16,
    /// Bytes of the answer, its head included.
    pub bytes: u64,
    /// From the first byte sent to the last one received, in microseconds; the shortest of all.
    pub time_us: u64,
    /// Its `Content-Type`.
    pub content_type: Option<String>,
    /// Its `Content-Encoding`, if it was compressed.
    pub encoding: Option<String>,
    /// Where it points to.
    pub location: Option<String>,
    /// Whether it can be a file: it tells when it was changed, sets no cookie, and names no program.
    pub is_static: bool,
    /// Whether the server kept the connection for another request.
    pub stays_open: bool,
    /// Whether it sets a cookie; the load sends it back then, as browsers do, each connection its own.
    #[serde(default)]
    pub sets_cookie: bool,
}

/// Connections at the server's port.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Door {
    /// Connections that somebody else has and the server accepted, the most seen at once.
    pub others: u64,
    /// Those of them on which nothing had moved for a while, the median of all looks.
    pub idle: u64,
    /// Connections that came in on this host and were not ours.
    pub others_opened: u64,
    /// How often somebody looked.
    #[serde(default)]
    pub looks: u64,
    /// Connections of others on which something had just moved, the sum over all looks.
    #[serde(default)]
    pub active: u64,
    /// Clock ticks that the server and PHP-FPM behind it used, where their processes are known.
    pub ticks: Option<u64>,
}

/// How many requests are worked on at once, and what says so.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    /// The number.
    pub value: u64,
    /// Which directive it is, as the manual calls it.
    pub name: &'static str,
    /// The one that stands in a file, if one does.
    pub setting: Option<Setting>,
}

/// Apache's own defaults (mpm_common.h, prefork.c, event.c).
const PREFORK_SERVERS: u64 = 256;
const THREADED_SERVERS: u64 = 16;
const THREADS_PER_CHILD: u64 = 25;
const THREAD_LIMIT: u64 = 64;
/// nginx's own default.
const WORKER_CONNECTIONS: u64 = 512;

impl Running {
    /// The directive of that name that holds for the whole server, the last one.
    #[must_use]
    pub fn setting(&self, name: &str) -> Option<&Setting> {
        self.settings.iter().rfind(|setting| setting.name == name && setting.section.is_none())
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.setting(name)?.value.parse().ok()
    }

    /// Whether the configuration could be read.
    #[must_use]
    pub fn is_read(&self) -> bool {
        self.file.is_some()
    }

    /// Requests it works on at once at most, on a machine of so many CPUs: of nginx the connections it can have.
    #[must_use]
    pub fn limit(&self, cpus: u64) -> Option<Limit> {
        if !self.is_read() {
            return None;
        }
        match self.kind {
            Kind::Nginx => {
                let value =
                    self.worker_processes(cpus) * self.number("worker_connections").unwrap_or(WORKER_CONNECTIONS);
                Some(Limit { value, name: "worker_connections", setting: self.setting("worker_connections").cloned() })
            }
            Kind::Other | Kind::Apache => None,
            Kind::ApachePrefork | Kind::ApacheEvent | Kind::ApacheWorker => {
                let threads = self.threads_per_child();
                let asked = self.number("MaxRequestWorkers").unwrap_or(u64::MAX).min(self.ceiling());
                let setting = self.setting("MaxRequestWorkers").cloned();
                Some(Limit { value: (asked / threads * threads).max(threads), name: "MaxRequestWorkers", setting })
            }
        }
    }

    /// The most that `MaxRequestWorkers` can be set to without `ServerLimit`.
    #[must_use]
    pub fn ceiling(&self) -> u64 {
        let default = if self.kind == Kind::ApachePrefork { PREFORK_SERVERS } else { THREADED_SERVERS };
        self.number("ServerLimit").unwrap_or(default) * self.threads_per_child()
    }

    /// Threads of one process that work on requests.
    #[must_use]
    pub fn threads_per_child(&self) -> u64 {
        match self.kind {
            Kind::ApacheEvent | Kind::ApacheWorker => {
                let limit = self.number("ThreadLimit").unwrap_or(THREAD_LIMIT);
                self.number("ThreadsPerChild").unwrap_or(THREADS_PER_CHILD).clamp(1, limit.max(1))
            }
            _ => 1,
        }
    }

    /// nginx's worker processes.
    #[must_use]
    pub fn worker_processes(&self, cpus: u64) -> u64 {
        match self.setting("worker_processes").map(|setting| setting.value.as_str()) {
            Some("auto") => cpus.max(1),
            Some(number) => number.parse().unwrap_or(1),
            None => 1,
        }
    }

    /// Whether connections are kept open after an answer, as far as the configuration says so.
    #[must_use]
    pub fn keeps_alive(&self) -> bool {
        match self.kind {
            Kind::Nginx => self.setting("keepalive_timeout").is_none_or(|setting| !setting.value.starts_with('0')),
            _ => self.setting("KeepAlive").is_none_or(|setting| !setting.value.eq_ignore_ascii_case("off")),
        }
    }
}

impl Page {
    /// Whether it is refused, or points elsewhere, by what does not pass by itself as trouble and haste of a server may (5xx, 408, 429).
    #[must_use]
    pub fn is_refused(&self) -> bool {
        (300..500).contains(&self.status) && ![408, 429].contains(&self.status)
    }
}

impl Pool {
    /// A directive of it.
    #[must_use]
    pub fn setting(&self, name: &str) -> Option<&Setting> {
        self.settings.iter().rfind(|setting| setting.name == name)
    }

    /// Requests it works on at once at most.
    #[must_use]
    pub fn limit(&self) -> Option<Limit> {
        let setting = self.setting("pm.max_children")?;
        Some(Limit { value: setting.value.parse().ok()?, name: "pm.max_children", setting: Some(setting.clone()) })
    }
}

impl PoolQueue {
    /// One more look at it.
    pub fn saw(&mut self, waiting: u64, limit: u64) {
        self.limit = limit;
        self.most = self.most.max(waiting);
        self.looks += 1;
        self.full += u64::from(waiting > limit);
    }

    /// Part of the looks at which it was full.
    #[must_use]
    pub fn share(&self) -> f64 {
        if self.looks == 0 { 0.0 } else { self.full as f64 / self.looks as f64 }
    }

    /// Of two windows that in which it was full more often.
    #[must_use]
    pub fn fuller(self, other: PoolQueue) -> PoolQueue {
        let rank = |queue: &PoolQueue| (queue.share(), queue.most);
        if rank(&other) > rank(&self) { other } else { self }
    }
}

impl Setting {
    /// Its name as the file has it, with today's name where that is another: `MaxClients (= MaxRequestWorkers)`.
    #[must_use]
    pub fn called(&self) -> String {
        if self.written.eq_ignore_ascii_case(&self.name) {
            self.name.clone()
        } else {
            format!("{} (= {})", self.written, self.name)
        }
    }

    /// Where it stands, as `file:line`.
    #[must_use]
    pub fn place(&self) -> String {
        format!("{}:{}", self.file.display(), self.line)
    }
}

impl Limit {
    /// The name an administrator finds in their own file, else the manual's.
    #[must_use]
    pub fn called(&self) -> String {
        self.setting.as_ref().map_or_else(|| self.name.to_owned(), Setting::called)
    }
}

impl WorkerMemory {
    /// Of bytes of each; `None` of none.
    #[must_use]
    pub fn of(measure: Measure, bytes: &[u64]) -> Option<WorkerMemory> {
        let largest = *bytes.iter().max()?;
        Some(WorkerMemory { measure, workers: bytes.len() as u64, largest, total: bytes.iter().sum(), inherited: 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The limit that follows from directives, and what it is called.
    fn check(kind: Kind, directives: &[(&str, &str, &str)], expected: (u64, &str)) {
        let settings = directives
            .iter()
            .map(|&(name, written, value)| Setting {
                name: name.into(),
                written: written.into(),
                value: value.into(),
                file: "f".into(),
                line: 1,
                section: None,
            })
            .collect();
        let running = Running { kind, settings, file: Some("f".into()), ..Running::default() };
        let limit = running.limit(2).unwrap();
        assert_eq!((limit.value, limit.called().as_str()), expected, "{directives:?}");
    }

    #[test]
    fn limits_follow_from_directives_and_defaults() {
        let max = ("MaxRequestWorkers", "MaxClients", "300");
        check(Kind::ApachePrefork, &[], (256, "MaxRequestWorkers"));
        check(Kind::ApachePrefork, &[max], (256, "MaxClients (= MaxRequestWorkers)"));
        check(
            Kind::ApachePrefork,
            &[max, ("ServerLimit", "ServerLimit", "400")],
            (300, "MaxClients (= MaxRequestWorkers)"),
        );
        check(Kind::ApacheEvent, &[], (400, "MaxRequestWorkers"));
        check(Kind::ApacheEvent, &[("MaxRequestWorkers", "MaxRequestWorkers", "60")], (50, "MaxRequestWorkers"));
        check(
            Kind::ApacheEvent,
            &[("MaxRequestWorkers", "maxrequestworkers", "4"), ("ThreadsPerChild", "ThreadsPerChild", "4")],
            (4, "MaxRequestWorkers"),
        );
        check(Kind::Nginx, &[("worker_processes", "worker_processes", "auto")], (1024, "worker_connections"));
        check(Kind::Nginx, &[("worker_connections", "worker_connections", "8")], (8, "worker_connections"));
    }
}
