//! The seam between an experiment and a server: check, start, and a [`Running`] server that ends when it is dropped.
//!
//! What is common to all servers lives here: waiting until ready, the log's end, stopping. How one is configured does not.

use crate::apache::{ApacheControl, DerivedControl, InPlaceControl, Scoreboard};
use crate::command::CommandControl;
use crate::embedded::EmbeddedControl;
use crate::nginx::{self, NginxControl};
use crate::own::Watch;
use crate::php::{self, Master};
use crate::probe::{Ask, ProbeError, Reply, get};
use crate::running::processes::Process;
use crate::selinux;
use crate::status::{StatusSource, WebSource};
use crate::url::UrlControl;
use crate::{PlanKey, ServerError};
use host::{Child, Group, Host, Service};
use model::plan::{Directive, ServerSpec, Variant};
use model::trial::EffectiveSettings;
use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long a server may take to end by itself before it is killed.
pub(crate) const GRACE: Duration = Duration::from_secs(3);
/// Between two looks at something that is about to happen.
pub(crate) const POLL: Duration = Duration::from_millis(10);
/// One try of the readiness request ends after this share of the whole wait: a worker that hangs must not use up all of it.
const TRIES: u32 = 3;
/// A refusal that goes on for so long will not turn into an answer: a server that is only slow to start answers 5xx or nothing.
const STEADY: Duration = Duration::from_secs(2);
/// Bytes of a log's end worth keeping.
const LOG_TAIL: u64 = 4096;
/// Lines of it that fit into an error message.
const LOG_LINES: usize = 3;
/// Lines above these among which the reason is looked for.
const REASON_LINES: usize = 12;

/// How one kind of server is controlled.
pub trait Control {
    /// Finds what is wrong with the variant without starting anything; `dir` is an empty folder for its files.
    ///
    /// # Errors
    /// What [`Control::start`] would say about the same variant, as far as it can be known beforehand.
    fn check(&self, dir: &Path, variant: &Variant) -> Result<(), ServerError>;

    /// Starts a fresh instance with the variant's settings and waits until it is ready.
    ///
    /// # Errors
    /// When it cannot be started, does not become ready, or runs with other settings than the plan's.
    fn start(&self, place: &Place<'_>, variant: &Variant) -> Result<Running, ServerError>;
}

/// Where and in what limits a server is started.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// The machine.
    pub host: &'a Host,
    /// Limits, if any.
    pub group: Option<&'a Group>,
    /// An empty folder for this instance alone. Every folder above it must be open (o+x) to the server's account.
    pub dir: &'a Path,
    /// The address of this machine to listen on.
    pub listen: IpAddr,
    /// CPUs to run on; empty means all.
    pub cpus: &'a [u32],
    /// This program, for servers that are part of it.
    pub exe: &'a Path,
    /// The longest wait for a server that does not become ready.
    pub ready_timeout: Duration,
    /// Set when nobody waits for it any more.
    pub interrupted: &'a AtomicBool,
}

/// A server that is ready. Dropping it ends it and everything it started.
#[derive(Debug)]
pub struct Running {
    /// Where it listens.
    pub address: SocketAddr,
    /// The name to ask for, which chooses among virtual hosts; the address when absent.
    pub host: Option<String>,
    /// Whether it speaks TLS there.
    pub tls: bool,
    /// Its root process; `None` of a server that is not ours and runs elsewhere, or whose processes may not be seen.
    pub pid: Option<u32>,
    /// What is in force, as the server tells it.
    pub settings: EffectiveSettings,
    /// What is worth knowing about how it runs, one sentence each.
    pub notes: Vec<String>,
    /// Where to ask how it fares while it works.
    pub status: StatusSource,
    // Processes that it needs and that are not its children: PHP's. They end after it.
    pub(crate) beside: Vec<Child>,
    // Roots of the machine's own PHP-FPM, which is neither started nor ended with it.
    pub(crate) behind: Vec<u32>,
    // `None` only while it is being stopped.
    pub(crate) hold: Option<Hold>,
    // What says how it is asked to end, where the plan does.
    pub(crate) stop_key: Option<PlanKey>,
    logs: Logs,
}

/// How a server is held.
#[derive(Debug)]
pub(crate) enum Hold {
    /// It is ours, and ends with this.
    Child(Box<Child>),
    /// It is the machine's own, and goes on.
    Service {
        /// The server.
        service: Box<Service>,
        /// Its configuration, which nobody else may change meanwhile.
        watch: Arc<Watch>,
        /// What it answers with 2xx as long as it runs with what webdyno had it read, where that is not in its files.
        told: Option<(SocketAddr, String)>,
    },
    /// It was there before, and stays as it is.
    Found {
        /// Its root process as it was found, if it was.
        root: Option<Process>,
    },
}

/// A server that was asked to end as the plan says, and had to be ended by force.
#[derive(Debug)]
pub struct Forced {
    /// What says how it ends.
    at: PlanKey,
    /// What had not ended, in half a sentence.
    why: String,
    /// The end of its log and of what its stop command said, in one line.
    log: String,
}

impl Forced {
    /// A sentence on it.
    #[must_use]
    pub fn note(&self) -> String {
        let Forced { at, why, log } = self;
        let whose = at.service.as_ref().map_or("the server".to_owned(), |name| format!("the service `{name}`"));
        format!("{whose} {why}, and was ended by force; its log ends with: {log}")
    }

    /// The same as the plan's mistake.
    #[must_use]
    pub fn mistake(self) -> ServerError {
        let Forced { at, why, log } = self;
        let why = format!("the server {why}; correct it, or raise `stop_within`; its log ends with: {log}");
        ServerError::Command { at, why }
    }

    /// The same of a server that stands beside the one under test.
    #[must_use]
    pub fn of_service(mut self, name: &str) -> Forced {
        self.at.service = Some(name.into());
        self
    }
}

/// The control of a plan's server. `plan` is named in messages.
#[must_use]
pub fn control(spec: &ServerSpec, plan: &Path) -> Box<dyn Control> {
    match spec {
        ServerSpec::Apache(apache) => match &apache.existing {
            None => Box::new(ApacheControl { spec: apache.clone(), plan: plan.to_owned() }),
            Some(existing) if existing.in_place => Box::new(InPlaceControl::new(apache, existing, plan)),
            Some(existing) => Box::new(DerivedControl::new(apache, existing, plan)),
        },
        ServerSpec::Nginx(nginx) => match &nginx.existing {
            None => Box::new(NginxControl { spec: nginx.clone(), plan: plan.to_owned() }),
            Some(existing) if existing.in_place => Box::new(nginx::InPlaceControl::new(nginx, existing, plan)),
            Some(existing) => Box::new(nginx::DerivedControl::new(nginx, existing, plan)),
        },
        ServerSpec::Command(command) => Box::new(CommandControl { spec: command.clone(), plan: plan.to_owned() }),
        ServerSpec::Embedded(embedded) => Box::new(EmbeddedControl { spec: embedded.clone(), plan: plan.to_owned() }),
        ServerSpec::Url(url) => Box::new(UrlControl::new(url, plan)),
    }
}

impl Running {
    /// Whether its root process lives.
    pub fn is_alive(&mut self) -> bool {
        match &mut self.hold {
            Some(Hold::Child(child)) => child.is_alive() && self.beside.iter_mut().all(Child::is_alive),
            Some(Hold::Service { service, .. }) => service.pid() == self.pid,
            // Where its processes are not seen, only answers tell.
            Some(Hold::Found { root, .. }) => root.as_ref().is_none_or(Process::still_runs),
            None => false,
        }
    }

    /// The end of what it wrote to its logs; empty when it wrote nothing.
    #[must_use]
    pub fn log_tail(&self) -> String {
        self.logs.tail()
    }

    /// Asks it to end, waits as long as the plan says or else a little, and ends what is left by force, which is told where the plan says how
    /// it ends. The machine's own goes on.
    ///
    /// # Errors
    /// When something would not end, or when somebody has changed the configuration of the machine's own.
    pub fn stop(mut self) -> Result<Option<Forced>, ServerError> {
        match self.hold.take() {
            Some(Hold::Child(child)) => {
                let forced = child.stop(GRACE)?.zip(self.stop_key.take());
                let forced = forced.map(|(why, at)| Forced { at, why, log: self.logs.brief() });
                self.beside.drain(..).try_for_each(|child| child.terminate(GRACE))?;
                Ok(forced)
            }
            Some(Hold::Service { watch, service, told }) => {
                watch.check()?;
                let Some((address, path)) = told else { return Ok(None) };
                match get(address, None, &path, Ask::Once, GRACE, &mut || true) {
                    answer if may_be_ours(&answer) => Ok(None),
                    _ => Err(ServerError::Reread { main: service.name.clone().into() }),
                }
            }
            Some(Hold::Found { .. }) | None => Ok(None),
        }
    }

    /// Ends it at once, as if it had crashed. The machine's own goes on.
    pub fn kill(mut self) {
        drop(self.hold.take());
    }

    /// A server that was there before and is ready: where it listens, by what name, and whether by TLS.
    pub(crate) fn held(
        hold: Hold,
        (address, host, tls): (SocketAddr, Option<String>, bool),
        pid: impl Into<Option<u32>>,
        settings: EffectiveSettings,
        notes: Vec<String>,
    ) -> Running {
        let (status, beside, behind, logs) = (StatusSource::default(), Vec::new(), Vec::new(), Logs(Vec::new()));
        let (hold, stop_key) = (Some(hold), None);
        Running { address, host, tls, pid: pid.into(), settings, notes, status, beside, behind, hold, stop_key, logs }
    }

    /// The first processes of everything that works for it, as far as they are known: its own, then those beside it.
    #[must_use]
    pub fn roots(&self) -> Vec<u32> {
        self.held_roots().into_iter().chain(self.behind.iter().copied()).collect()
    }

    /// The same without the machine's own PHP-FPM: those that its limits hold.
    #[must_use]
    pub fn held_roots(&self) -> Vec<u32> {
        self.pid.into_iter().chain(self.beside()).collect()
    }

    /// The roots of the processes that were started for it and are not its children.
    #[must_use]
    pub fn beside(&self) -> Vec<u32> {
        self.beside.iter().map(|child| child.pid).collect()
    }

    /// The roots of the machine's own PHP-FPM to which it passes requests: they work for it, and no limit or choice of CPUs of its holds them.
    #[must_use]
    pub fn behind(&self) -> &[u32] {
        &self.behind
    }

    /// The same, with PHP-FPM of the machine's own behind it, by its roots.
    pub(crate) fn with_behind(mut self, mut roots: Vec<u32>) -> Running {
        // One master may have several pools.
        roots.sort_unstable();
        roots.dedup();
        self.behind = roots;
        self
    }

    /// The same, told of by Apache's scoreboard, where that can be read.
    pub(crate) fn with_scoreboard(self) -> Running {
        let scoreboard = self.pid.and_then(Scoreboard::of).map(WebSource::Apache);
        self.with_status(scoreboard)
    }

    /// The same, told of by this source.
    pub(crate) fn with_status(mut self, source: Option<WebSource>) -> Running {
        self.status.web = source;
        self
    }

    /// The same, told of by the pool of the machine's own PHP-FPM to which it passes requests.
    pub(crate) fn with_pool_behind(mut self) -> Running {
        let php::Behind { roots, status, values, note } = self.pid.map(php::Behind::of).unwrap_or_default();
        self.status.fpm = status;
        self.settings.values.extend(values);
        self.notes.extend(note);
        self.with_behind(roots)
    }

    /// The same, with PHP's processes beside it.
    pub(crate) fn with_php(mut self, master: Option<Master>) -> Running {
        if let Some(Master { child, log, status }) = master {
            self.beside.push(child);
            self.status.fpm = Some(status);
            self.logs.0.push(log.clone());
            self.notes.extend(php::complaints(&Logs(vec![log]).tail()));
        }
        self
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(Hold::Child(child)) = self.hold.take() {
            // What would not end stands in the host's journal.
            let _ = child.stop(GRACE);
        }
    }
}

/// A status that refuses what is asked for, as it came again and again.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Refusal(Option<(u16, Instant)>);

impl Refusal {
    /// Takes note of one that is not 2xx.
    pub(crate) fn came(&mut self, status: u16) {
        let same = self.0.filter(|(before, _)| *before == status);
        self.0 = (300..500).contains(&status).then(|| same.unwrap_or((status, Instant::now())));
    }

    /// It, once it has come for long enough.
    pub(crate) fn steady(self) -> Option<u16> {
        self.0.filter(|(_, since)| since.elapsed() >= STEADY).map(|(status, _)| status)
    }
}

/// Whether a server may still run with what answers with 2xx: one that is slow says nothing against it.
fn may_be_ours(answer: &Result<Reply, ProbeError>) -> bool {
    match answer {
        Ok(reply) => (200..300).contains(&reply.status),
        Err(error) => matches!(error, ProbeError::Late(_)),
    }
}

/// A server that was started and is not known to be ready. Dropping it ends it, at once.
#[derive(Debug)]
pub(crate) struct Starting<'a> {
    pub(crate) child: Child,
    pub(crate) address: SocketAddr,
    /// The name to ask for, when it is not the address.
    pub(crate) host: Option<String>,
    pub(crate) logs: Logs,
    pub(crate) server: &'static str,
    pub(crate) since: Instant,
    pub(crate) timeout: Duration,
    pub(crate) interrupted: &'a AtomicBool,
}

impl Starting<'_> {
    /// Waits until a GET of `path` is answered with 2xx. With `key`, which names the path in the plan, a steady refusal is its mistake.
    pub(crate) fn wait_until_ready(&mut self, path: &str, key: Option<&PlanKey>) -> Result<(), ServerError> {
        let whole_try = (self.timeout / TRIES).max(Duration::from_secs(1));
        let mut why = None;
        let mut refusal = Refusal::default();
        loop {
            self.still_awaited()?;
            let patience = self.left().min(whole_try);
            let (address, host) = (self.address, self.host.clone());
            match get(address, host.as_deref(), path, Ask::Once, patience, &mut || self.still_awaited().is_ok()) {
                Ok(reply) if (200..300).contains(&reply.status) => return Ok(()),
                Ok(reply) => {
                    why = Some(format!("status {}", reply.status));
                    refusal.came(reply.status);
                }
                // No further try will make it a path.
                Err(error @ ProbeError::Request(_)) => return Err(self.not_ready(path, error.to_string())),
                // The last try is cut short; what an earlier one saw says more.
                Err(ProbeError::Late(_)) if why.is_some() && patience < whole_try => {}
                Err(error) => (why, refusal) = (Some(error.to_string()), Refusal::default()),
            }
            self.still_awaited()?;
            if let (Some(key), Some(status)) = (key, refusal.steady()) {
                let (path, log) = (path.to_owned(), self.logs.brief());
                return Err(ServerError::WrongReady { at: key.clone(), path, status, log });
            }
            if self.left().is_zero() {
                return Err(self.not_ready(path, why.unwrap_or_default()));
            }
            std::thread::sleep(POLL);
        }
    }

    /// An error once the server has ended, or nobody waits for it any more.
    pub(crate) fn still_awaited(&mut self) -> Result<(), ServerError> {
        if self.interrupted.load(Ordering::Relaxed) {
            return Err(ServerError::Interrupted);
        }
        if self.child.is_alive() {
            return Ok(());
        }
        Err(ServerError::Died { server: self.server, log: self.logs.brief() + selinux::hint(Path::new("/")) })
    }

    /// Why an answer did not come: that it has ended, or that nobody waits any more, says more than what is seen of that from here.
    pub(crate) fn or_ended(&mut self, error: ServerError) -> ServerError {
        self.still_awaited().err().unwrap_or_else(|| error.with_log(&self.logs))
    }

    /// What is left of the time to become ready.
    pub(crate) fn left(&self) -> Duration {
        self.timeout.saturating_sub(self.since.elapsed())
    }

    /// It is ready, and this is in force.
    pub(crate) fn running(self, settings: EffectiveSettings, notes: Vec<String>) -> Running {
        let Starting { child, address, host, logs, .. } = self;
        let (pid, hold) = (Some(child.pid), Some(Hold::Child(Box::new(child))));
        let (status, beside, stop_key) = (StatusSource::default(), Vec::new(), None);
        let behind = Vec::new();
        Running { address, host, tls: false, pid, settings, notes, status, beside, behind, hold, stop_key, logs }
    }

    fn not_ready(&self, path: &str, why: String) -> ServerError {
        let seconds = self.since.elapsed().as_secs_f64();
        let log = self.logs.brief() + selinux::hint(Path::new("/"));
        ServerError::NotReady { server: self.server, seconds, asked: format!("GET {path}"), why, log }
    }
}

/// The files a server complains in, in the order to read them.
#[derive(Debug, Clone)]
pub(crate) struct Logs(pub(crate) Vec<PathBuf>);

impl Logs {
    /// The end of all of them.
    pub(crate) fn tail(&self) -> String {
        self.0.iter().map(|path| file_tail(path).unwrap_or_default()).collect()
    }

    /// The last lines as one line, and before them the first of those not far above that tells of an error: a database says why it cannot
    /// work, and then at length how it ends.
    pub(crate) fn brief(&self) -> String {
        let text = self.tail();
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        if self.0.iter().all(|path| !path.is_absolute()) {
            // `|program`, `syslog`, or nothing, where a machine's own server has no file of the kind.
            "(not in a file but in a pipe or syslog: look there)".to_owned()
        } else if lines.is_empty() {
            "(nothing)".to_owned()
        } else {
            let (before, last) = lines.split_at(lines.len().saturating_sub(LOG_LINES));
            let near = &before[before.len().saturating_sub(REASON_LINES)..];
            let last = last.join(" | ");
            near.iter().position(|line| tells_of_error(line)).map_or(last.clone(), |at| {
                let gap = if at + 1 < near.len() { " | …" } else { "" };
                format!("{}{gap} | {last}", near[at])
            })
        }
    }
}

/// Whether a line is an error's by the words that servers and databases mark theirs with.
fn tells_of_error(line: &str) -> bool {
    let line = line.to_ascii_lowercase();
    ["error]", "error:", "fatal", "emerg]", "alert]", "crit]", "panic:"].iter().any(|word| line.contains(word))
}

/// The end of a file, from the beginning of a line.
fn file_tail(path: &Path) -> std::io::Result<String> {
    let mut file = fs::File::open(path)?;
    let length = file.metadata()?.len();
    let from = length.saturating_sub(LOG_TAIL);
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(LOG_TAIL).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Ok(if from == 0 { text } else { text.split_once('\n').map_or(text.clone(), |(_, rest)| rest.to_owned()) })
}

/// An error that points at a line of the plan.
pub(crate) fn blame(plan: &Path, directive: &Directive, message: String, server: &'static str) -> ServerError {
    let text = directive.text.trim().to_owned();
    ServerError::Directive { plan: plan.to_owned(), line: directive.line, directive: text, message, server }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::TcpListener;

    #[test]
    fn a_log_without_a_file_is_not_called_empty() {
        let folder = tempfile::tempdir().unwrap();
        let check = |path: PathBuf, expected: &str| assert!(Logs(vec![path]).brief().starts_with(expected));
        check(folder.path().join("none"), "(nothing)");
        check("|/usr/bin/logger".into(), "(not in a file");
        check(PathBuf::new(), "(not in a file");
    }

    #[test]
    fn the_reason_of_an_end_is_told_though_other_lines_follow() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("error.log");
        let check = |lines: &[&str], expected: &str| {
            fs::write(&path, lines.join("\n")).unwrap();
            assert_eq!(Logs(vec![path.clone()]).brief(), expected);
        };
        check(&["[Note] a", "[Note] b", "[Note] c", "[Note] d"], "[Note] b | [Note] c | [Note] d");
        check(
            &[
                "[Note] starts",
                "[ERROR] too small",
                "[ERROR] aborted",
                "[Note] shuts down",
                "b",
                "c",
                "[ERROR] Aborting",
            ],
            "[ERROR] too small | … | b | c | [ERROR] Aborting",
        );
        check(&["[ERROR] too small", "a", "b", "c"], "[ERROR] too small | a | b | c");
        let long_ago = [["[ERROR] another day"].as_slice(), &["[Note] a"; REASON_LINES + LOG_LINES]].concat();
        check(&long_ago, "[Note] a | [Note] a | [Note] a");
    }

    #[test]
    fn who_is_slow_is_not_said_to_run_with_something_else() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let ask = |patience| get(address, None, "/", Ask::Once, patience, &mut || true);
        // Nobody takes the connection.
        assert!(may_be_ours(&ask(Duration::from_millis(20))));
        let answers = [("204 No Content", true), ("404 Not Found", false)];
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // The first is the one that waited in vain.
                drop(listener.accept().unwrap());
                for (status, _) in answers {
                    let (mut stream, _) = listener.accept().unwrap();
                    let mut request = [0; 500];
                    let _ = stream.read(&mut request).unwrap();
                    write!(stream, "HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n").unwrap();
                }
            });
            for (status, expected) in answers {
                assert_eq!(may_be_ours(&ask(GRACE)), expected, "{status}");
            }
        });
        drop(listener);
        assert!(!may_be_ours(&ask(GRACE)));
    }
}
