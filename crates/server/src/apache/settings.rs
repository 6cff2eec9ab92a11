//! What a running Apache says is in force, put beside what its configuration asks for.
//!
//! Three pages and one observation: mod_status' scoreboard has one slot per worker Apache may have; mod_info has the time-outs and the
//! directives as they were read; and whether a connection stays open is seen on a connection. Knows nothing of the plan.

use super::check::canonical;
use super::render::{INFO, STATUS};
use crate::probe::{Ask, ProbeError, Reply, get};
use model::plan::Mpm;
use model::trial::EffectiveSettings;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Apache's own default.
const THREADS_PER_CHILD: u64 = 25;

/// What a running instance says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) status: Status,
    /// Such as `Apache/2.4.62 (Debian)`.
    version: String,
    timeout: String,
    keep_alive_timeout: String,
    keep_alive: bool,
    directives: Vec<InForce>,
}

/// mod_status' page for machines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Status {
    /// Name of its processing module.
    pub(crate) mpm: String,
    /// Workers Apache may have.
    pub(crate) slots: u64,
    taken: u64,
    alive: u64,
    processes: Option<u64>,
}

/// A directive outside all sections, as mod_info shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InForce {
    pub(crate) name: String,
    pub(crate) value: String,
    /// Where it stands.
    pub(crate) file: PathBuf,
    pub(crate) line: usize,
}

/// A directive that Apache does not follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Difference<'a> {
    pub(crate) asked: &'a InForce,
    pub(crate) effective: String,
}

/// How many processes there should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Crew {
    /// As asked for.
    pub(crate) asked: u64,
    /// As the worker limit allows.
    pub(crate) started: u64,
    /// As many as Apache keeps when there is nothing to do.
    pub(crate) kept: u64,
}

/// Where a server tells of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pages {
    pub(crate) address: SocketAddr,
    /// Path of mod_status.
    pub(crate) status: String,
    /// Path of mod_info.
    pub(crate) info: String,
}

impl Pages {
    /// Those of an instance whose configuration we wrote.
    pub(crate) fn usual(address: SocketAddr) -> Pages {
        Pages { address, status: STATUS.to_owned(), info: INFO.to_owned() }
    }

    /// Asks a running instance; four requests, each with `patience`, and as long as somebody waits for it.
    pub(crate) fn ask(&self, patience: Duration, is_awaited: &mut dyn FnMut() -> bool) -> Result<Told, String> {
        let mut page = |path: &str, ask| {
            let failed = |error: ProbeError| format!("GET {path}: {error}");
            let reply = get(self.address, None, path, ask, patience, is_awaited).map_err(failed)?;
            if reply.status == 200 {
                return Ok(reply);
            }
            let todo = match reply.status {
                // Most likely a directive that is meant for visitors.
                300..=499 => {
                    "; limit the directive that answers so (Require, RewriteRule or Redirect, perhaps) to some paths"
                }
                _ => "",
            };
            Err(format!("GET {path}: status {}{todo}", reply.status))
        };
        let (status, info) = (format!("{}?auto", self.status), &self.info);
        let stays_open = page(&status, Ask::ToStay)?.stays_open;
        let mut text = |path: &str| page(path, Ask::Once)?.text().map_err(|error| format!("GET {path}: {error}"));
        let (server, config) = (format!("{info}?server"), format!("{info}?config"));
        Told::parse(&text(&status)?, &text(&server)?, &text(&config)?, stays_open)
    }

    /// Asks only how many workers there are.
    pub(crate) fn ask_status(
        &self,
        patience: Duration,
        is_awaited: &mut dyn FnMut() -> bool,
    ) -> Result<Status, String> {
        let reply = get(self.address, None, &format!("{}?auto", self.status), Ask::Once, patience, is_awaited);
        Status::parse(&reply.and_then(Reply::text).map_err(|error| error.to_string())?)
    }
}

impl Told {
    fn parse(status: &str, server: &str, config: &str, keep_alive: bool) -> Result<Told, String> {
        let server = plain(&server.replace("</dt>", "\n"));
        let after = |label: &str| server.split_once(label).map(|(_, rest)| rest);
        let number = |label: &str| {
            let digits = after(label)?.trim_start().split(|c: char| !c.is_ascii_digit()).next()?;
            Some(digits.to_owned()).filter(|digits| !digits.is_empty())
        };
        let missing = |what: &str| format!("{INFO}?server has no {what}");
        let daemons = number("Max Daemons:").and_then(|digits| digits.parse::<u64>().ok());
        let mut told = Told {
            status: Status::parse(status)?,
            version: after("Server Version:")
                .and_then(|rest| rest.lines().next())
                .map(|version| version.trim().to_owned())
                .ok_or_else(|| missing("version"))?,
            timeout: number("connection:").ok_or_else(|| missing("timeout"))?,
            keep_alive_timeout: number("keep-alive:").ok_or_else(|| missing("keep-alive timeout"))?,
            keep_alive,
            directives: directives(config),
        };
        if told.status.mpm.eq_ignore_ascii_case("prefork") {
            // After a graceful restart with a lower limit the scoreboard still shows places above it. Where there are threads, this counts
            // the processes that run.
            told.status.slots = told.status.slots.min(daemons.unwrap_or(u64::MAX));
        }
        Ok(told)
    }

    /// Whether it is the instance with this configuration that answers, and not another Apache.
    pub(crate) fn is_of(&self, file: &Path) -> bool {
        self.directives.first().is_some_and(|first| first.file == file)
    }

    /// The last directive of that name: the one in force.
    pub(crate) fn directive(&self, name: &str) -> Option<&InForce> {
        self.directives.iter().rfind(|d| canonical(&d.name).eq_ignore_ascii_case(name))
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.directive(name)?.value.trim_matches('"').parse().ok()
    }

    /// Threads of a process.
    fn threads(&self, mpm: Mpm) -> u64 {
        if mpm == Mpm::Prefork { 1 } else { self.number("ThreadsPerChild").unwrap_or(THREADS_PER_CHILD).max(1) }
    }

    /// How many processes there should be with these settings and Apache's defaults.
    pub(crate) fn crew(&self, mpm: Mpm) -> Crew {
        let (threads, prefork) = (self.threads(mpm), mpm == Mpm::Prefork);
        let (default, spare, default_spare) =
            if prefork { (5, "MaxSpareServers", 10) } else { (3, "MaxSpareThreads", 250) };
        let asked = self.number("StartServers").unwrap_or(default);
        let started = asked.min((self.status.slots / threads).max(1));
        let kept = started.min((self.number(spare).unwrap_or(default_spare) / threads).max(1));
        Crew { asked, started, kept }
    }

    /// How many processes `status` shows.
    pub(crate) fn processes(&self, status: &Status, mpm: Mpm) -> u64 {
        match mpm {
            Mpm::Prefork => status.taken,
            // Only event counts its processes.
            Mpm::Worker | Mpm::Event => status.processes.unwrap_or(status.alive.div_ceil(self.threads(mpm))),
        }
    }

    /// What is in force. `processes` is what was seen, and stands where the configuration says `StartServers`.
    pub(crate) fn settings(&self, processes: u64) -> EffectiveSettings {
        // `SetEnv A 1` and `SetEnv B 2` stand together; of `Timeout 1` and `Timeout 2` the last one does.
        let subject = |value: &'_ str| value.split_once(' ').map(|(subject, _)| subject.to_owned());
        let mut last: Vec<(&str, &str)> = Vec::new();
        for InForce { name, value, .. } in &self.directives {
            let name = canonical(name);
            last.retain(|(known, of)| *known != name || subject(of) != subject(value));
            last.push((name, value));
        }
        let mut values: BTreeMap<String, String> = BTreeMap::new();
        for (name, value) in last {
            values
                .entry(name.to_owned())
                .and_modify(|v| *v = format!("{v}; {value}"))
                .or_insert_with(|| value.to_owned());
        }
        values.insert("MPM".to_owned(), self.status.mpm.clone());
        values.insert("StartServers".to_owned(), processes.to_string());
        values.extend(self.measured().map(|(name, value)| (name.to_owned(), value)));
        EffectiveSettings { server: self.version.clone(), values, worker_limit: Some(self.status.slots) }
    }

    /// Directives that Apache runs with another value than they say.
    pub(crate) fn differences(&self) -> Vec<Difference<'_>> {
        let differs = |(name, effective): (&str, String)| {
            let asked = self.directive(name)?;
            let value = asked.value.trim_matches('"');
            let same = match (value.parse::<u64>(), effective.parse::<u64>()) {
                (Ok(asked), Ok(effective)) => asked == effective,
                _ => value.eq_ignore_ascii_case(&effective),
            };
            (!same).then_some(Difference { asked, effective })
        };
        self.measured().filter_map(differs).collect()
    }

    /// What is known without believing the configuration.
    fn measured(&self) -> impl Iterator<Item = (&'static str, String)> {
        // mod_info rounds milliseconds down to seconds, so there the configuration knows better.
        let in_ms = self.directive("KeepAliveTimeout").filter(|asked| asked.value.ends_with("ms"));
        let keep_alive_timeout = in_ms.map_or(&self.keep_alive_timeout, |asked| &asked.value);
        [
            ("MaxRequestWorkers", self.status.slots.to_string()),
            ("KeepAlive", if self.keep_alive { "On" } else { "Off" }.to_owned()),
            ("KeepAliveTimeout", keep_alive_timeout.clone()),
            ("Timeout", self.timeout.clone()),
        ]
        .into_iter()
    }
}

impl Status {
    fn parse(page: &str) -> Result<Status, String> {
        let value = |key: &str| {
            let line = page.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
            line.map(str::trim).ok_or_else(|| format!("{STATUS}?auto has no {key}"))
        };
        let number = |key: &str| value(key)?.parse::<u64>().map_err(|_| format!("{STATUS}?auto: {key} is no number"));
        let scoreboard = value("Scoreboard")?;
        Ok(Status {
            mpm: value("ServerMPM")?.to_owned(),
            slots: scoreboard.len() as u64,
            // Those that end after a graceful restart, or ended then and keep their place, are no longer counted.
            taken: scoreboard.bytes().filter(|slot| !b".G".contains(slot)).count() as u64,
            alive: number("BusyWorkers")? + number("IdleWorkers")?,
            processes: number("Processes").ok(),
        })
    }
}

/// The directives outside all sections; what an `<IfModule>` lets through counts as outside, as mod_info shows it.
fn directives(config: &str) -> Vec<InForce> {
    let (mut found, mut file, mut depth) = (Vec::new(), PathBuf::new(), 0_usize);
    for entry in config.split("<dd>").skip(1) {
        let entry = plain(entry.split_once("</dd>").map_or(entry, |(entry, _)| entry));
        let entry = entry.trim();
        if let Some(name) = entry.strip_prefix("In file:") {
            file = Path::new(name.trim()).to_owned();
            continue;
        }
        let Some((line, text)) = entry.split_once(':') else { continue };
        let text = text.trim();
        if text.starts_with("</") {
            depth = depth.saturating_sub(1);
        } else if text.starts_with('<') {
            depth += 1;
        } else if let (0, Ok(line)) = (depth, line.trim().parse()) {
            let (name, value) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
            found.push(InForce { name: name.to_owned(), value: value.trim().to_owned(), file: file.clone(), line });
        }
    }
    found
}

/// HTML without its tags and the entities that mod_info writes.
fn plain(html: &str) -> String {
    let mut text = String::with_capacity(html.len());
    let mut inside = false;
    for c in html.chars() {
        match c {
            '<' => inside = true,
            '>' if inside => inside = false,
            c if !inside => text.push(c),
            _ => {}
        }
    }
    let entities = [("&nbsp;", " "), ("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&amp;", "&")];
    entities.iter().fold(text, |text, (entity, plain)| text.replace(entity, plain))
}

#[cfg(test)]
mod tests;
