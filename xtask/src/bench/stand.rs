//! The test stand: one server on its CPU, one client at a time on another, and both counts of what went between them.

use super::child::{Child, Cost};
use super::programs::{Programs, need};
use super::server::{Folder, Nginx};
use super::tools::{Tally, Tool, Until, Work, arguments, tally};
use crate::signals::HeldSignals;
use anyhow::{Context, bail};
use rustix::process::Pid;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// How much longer than asked a client may take before it is ended; under valgrind everything takes long.
const GRACE: Duration = Duration::from_secs(60);

/// Requests per second below which a client that runs for a count is given up.
const SLOWEST: u64 = 2000;

/// Everything that is started for measuring. Dropped in this order.
pub(super) struct Stand {
    nginx: Nginx,
    pub(super) programs: Programs,
    pub(super) cpus: Cpus,
    folder: Folder,
    signals: HeldSignals,
}

/// Who runs where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cpus {
    pub(super) server: usize,
    pub(super) client: usize,
}

/// One client from its start to its end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Run {
    pub(super) user: Duration,
    pub(super) system: Duration,
    pub(super) wall: Duration,
    pub(super) largest_kib: u64,
    /// Requests by the server's count.
    pub(super) served: u64,
    /// What the client says.
    pub(super) tally: Option<Tally>,
    pub(super) server_cpu: Option<Duration>,
}

/// A program that runs the client: `strace` or `valgrind`.
#[derive(Default)]
pub(super) struct Wrap {
    pub(super) words: Vec<String>,
}

impl Stand {
    pub(super) fn set_up(webdyno: Option<&Path>) -> anyhow::Result<Stand> {
        let signals = HeldSignals::begin()?;
        let cpus = cpus()?;
        more_open_files();
        let folder = Folder::make()?;
        let programs = Programs::find(folder.path(), webdyno);
        let nginx = need("nginx", "cargo xtask setup").map_err(anyhow::Error::msg)?;
        let nginx = Nginx::start(&nginx, folder.path(), cpus.server, &signals)?;
        Ok(Stand { nginx, programs, cpus, folder, signals })
    }

    /// Where wrapped programs may write.
    pub(super) fn scratch(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Connections to the server at this moment, the one that asks included.
    pub(super) fn connected(&self) -> Option<u64> {
        self.nginx.status().ok().map(|status| status.active)
    }

    /// The command as it will be run, with our own folder and the places of programs left out.
    pub(super) fn shown(&self, tool: Tool, work: &Work, wrap: &Wrap) -> Option<String> {
        let mut words = wrap.words.clone();
        words.push(tool.name().to_owned());
        words.extend(arguments(tool, work, self.nginx.ports()).ok()?);
        let quoted = words.iter().map(|word| if word.contains(' ') { format!("'{word}'") } else { word.clone() });
        Some(quoted.collect::<Vec<_>>().join(" ").replace(&self.folder.path().display().to_string(), "."))
    }

    /// Lets `tool` do `work`. The inner error says why there is no result; the outer one ends the benchmark.
    pub(super) fn run(
        &self,
        tool: Tool,
        work: &Work,
        wrap: &Wrap,
        look: Option<&mut dyn FnMut(Pid)>,
    ) -> anyhow::Result<Result<Run, String>> {
        let (program, words) = match (self.programs.path(tool), arguments(tool, work, self.nginx.ports())) {
            (Err(why), _) => return Ok(Err(why.to_owned())),
            (_, Err(why)) => return Ok(Err(why.to_owned())),
            (Ok(program), Ok(words)) => (program, words),
        };
        let mut command = match wrap.words.split_first() {
            None => Command::new(program),
            Some((wrapper, rest)) => {
                let mut command = Command::new(wrapper);
                command.args(rest).arg(program);
                command
            }
        };
        let (output, errors) = (self.scratch("output"), self.scratch("errors"));
        let create = |path: &Path| fs::File::create(path).with_context(|| format!("cannot write {}", path.display()));
        command.args(words).current_dir(self.folder.path()).stdin(Stdio::null());
        command.stdout(create(&output)?).stderr(create(&errors)?);
        let before = self.nginx.quiet()?;
        let server_before = self.nginx.cpu();
        let ended =
            Child::start(&mut command, Some(self.cpus.client)).and_then(|it| it.wait(limit(work), &self.signals, look));
        if self.signals.came() {
            bail!("interrupted");
        }
        let server_cpu = self.nginx.cpu().zip(server_before).map(|(after, before)| after.saturating_sub(before));
        let after = self.nginx.quiet()?;
        let text = fs::read_to_string(&output).unwrap_or_default();
        let said = fs::read_to_string(&errors).unwrap_or_default();
        let cost = match ended {
            Err(error) => return Ok(Err(format!("{error:#}"))),
            Ok(cost) if !cost.status.success() => return Ok(Err(failure(&cost, &said, &text))),
            Ok(cost) => cost,
        };
        // Asking nginx is a request too.
        let served = (after.requests - before.requests).saturating_sub(1);
        if served == 0 {
            return Ok(Err("nginx saw no request of it".to_owned()));
        }
        let Cost { user, system, wall, largest_kib, .. } = cost;
        Ok(Ok(Run { user, system, wall, largest_kib, served, tally: tally(tool, &text), server_cpu }))
    }
}

/// How long a client may take.
fn limit(work: &Work) -> Duration {
    GRACE
        + match work.until {
            Until::Seconds(seconds) => Duration::from_secs(seconds.into()),
            Until::Requests(requests) => Duration::from_secs(requests / SLOWEST),
        }
}

/// How a client failed, in one line.
fn failure(cost: &Cost, errors: &str, output: &str) -> String {
    let said = errors.lines().chain(output.lines()).map(str::trim).find(|line| !line.is_empty());
    format!("{}: {}", cost.status, said.unwrap_or("it says nothing"))
}

/// The first CPU for the server and the last for the client, of those we may use.
fn cpus() -> anyhow::Result<Cpus> {
    let set = rustix::thread::sched_getaffinity(None).context("cannot tell which CPUs are ours")?;
    let mut ours = (0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu));
    match (ours.next(), ours.next_back()) {
        (Some(server), Some(client)) => Ok(Cpus { server, client }),
        _ => bail!("server and client need a CPU each, and there is only one"),
    }
}

/// As many open files as we may have: ten thousand connections need them, in our children.
fn more_open_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // Refused, the cases with many connections say so themselves.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}
