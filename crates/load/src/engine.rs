//! Threads, from a specification to a result.
//!
//! The calling thread starts the workers and then collects their seconds; it sends nothing itself.

use crate::checks::Checks;
use crate::collect::Collector;
use crate::connection::{Heads, Line};
use crate::crowd::Crowd;
use crate::jar::Jar;
use crate::machine::{OpenFiles, Pinned, monotonic_ns};
use crate::pacer::{Calls, Pacer, Part};
use crate::requests::Requests;
use crate::sink::{Histograms, Record, Records, Sink, Whole, Witness};
use crate::stop::{Allowance, Budget, Gate, Halt, StopRule};
use crate::transport::{Address, Dialer, TlsClient, Tunnel, Writes};
use crate::worker::{Expectation, Finished, Habits, Share, Worker};
use model::latency::Latency;
use model::load::{Generator, LoadEnd, LoadInterval, LoadResult, OpenLoop, Sessions};
use model::plan::{CheckError, LoadSpec, Pace, TemplateError};
use model::{Nanos, SECOND};
use rustix::event::epoll;
use std::cell::{Cell, OnceCell, RefCell};
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::panic::resume_unwind;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;

/// Whom to load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Where to connect.
    pub address: Address,
    /// Content of the `Host` field, with the port unless it is the scheme's own.
    pub host: String,
    /// Addresses of this machine to connect from, in turn; empty leaves it to the kernel.
    pub local: Vec<IpAddr>,
    /// Through the proxy at that address, a tunnel to the server; only below TLS.
    pub tunnel: Option<Tunnel>,
    /// Bytes of the sockets' buffers, each way; absent leaves them to the kernel.
    pub buffers: Option<usize>,
}

impl Target {
    /// A server at an address, reached as the kernel likes.
    #[must_use]
    pub fn new(address: impl Into<Address>, host: &str) -> Target {
        Target { address: address.into(), host: host.to_owned(), local: Vec::new(), tunnel: None, buffers: None }
    }
}

/// The caller's hand on a running load.
pub struct Control<'a> {
    /// Set to end the load; it is over within 20 ms.
    pub stop: &'a AtomicBool,
    /// Told each second when it is complete, on the calling thread.
    pub on_interval: &'a mut dyn FnMut(&LoadInterval),
}

/// A load that could not be started.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The request cannot be written.
    #[error("load {name}: {source}")]
    Request {
        /// The load.
        name: String,
        /// What is wrong with it.
        source: http1::RequestError,
    },
    /// A template in it is not known.
    #[error("load {name}: {source}")]
    Template {
        /// The load.
        name: String,
        /// What is wrong with it.
        source: TemplateError,
    },
    /// A check makes no sense.
    #[error("load {name}: {source}")]
    Check {
        /// The load.
        name: String,
        /// What is wrong with it.
        source: CheckError,
    },
    /// The load comes from a store, which keeps no long bodies.
    #[error("load {0}: a body is not there; read it from its file again")]
    NoBody(String),
    /// Nothing can be sent behind a body that waits.
    #[error(
        "load {0}: a request with Expect: 100-continue waits for an answer before its body; leave the pipeline out"
    )]
    PipelinedWait(String),
    /// There is no request, or none is ever chosen.
    #[error("load {0}: there is nothing to ask for; give at least one request with a weight above 0")]
    NothingToAsk(String),
    /// Nobody would send anything.
    #[error("load {0}: connections is 0; set it to at least 1")]
    NoConnections(String),
    /// It would never end.
    #[error("load {0}: neither requests nor duration is set, so it would never end; set one of them")]
    Endless(String),
    /// The CPUs asked for are not there.
    #[error("cannot run the load on CPUs {cpus:?}: {source}; choose among the CPUs this process may use")]
    Pin {
        /// The CPUs asked for.
        cpus: Vec<u32>,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// Certificates, keys or names that cannot be used.
    #[error("TLS: {0}")]
    Tls(String),
    /// The kernel refused something the engine needs before the first request.
    #[error("cannot start the load: no {what}: {source}")]
    Kernel {
        /// What was asked of it.
        what: &'static str,
        /// What it said.
        source: std::io::Error,
    },
}

impl LoadError {
    /// What is wrong, without the load's name: for where there is only one.
    #[must_use]
    pub fn reason(&self) -> String {
        match self {
            LoadError::Request { source, .. } => source.to_string(),
            LoadError::Template { source, .. } => source.to_string(),
            LoadError::Check { source, .. } => source.to_string(),
            other => other.to_string(),
        }
    }
}

/// Whether a load could be started, as far as that follows from what it asks for.
///
/// # Errors
/// When it could not.
pub fn check(spec: &LoadSpec, target: &Target) -> Result<(), LoadError> {
    Engine::new(spec, target, &[], &AtomicBool::new(false))?.dialer(0).map(drop)
}

/// Runs a load to its end and counts. Threads are pinned to `cpus`, unless there are none.
///
/// # Errors
/// When the load cannot be started. What goes wrong later is a failure in the result.
pub fn run(spec: &LoadSpec, target: &Target, cpus: &[u32], control: &mut Control<'_>) -> Result<LoadResult, LoadError> {
    run_until(spec, target, cpus, control, &AtomicBool::new(false))
}

/// As [`run`], and `interrupted` ends the load as well: a flag that others set, of which the caller need not hear first.
///
/// # Errors
/// As [`run`].
pub fn run_until(
    spec: &LoadSpec,
    target: &Target,
    cpus: &[u32],
    control: &mut Control<'_>,
    interrupted: &AtomicBool,
) -> Result<LoadResult, LoadError> {
    run_witnessed(spec, target, cpus, control, interrupted, &|| ()).map(|(result, _)| result)
}

/// As [`run_until`], with a witness beside each worker, who comes back at the end.
///
/// # Errors
/// As [`run`].
pub fn run_witnessed<W: Witness>(
    spec: &LoadSpec,
    target: &Target,
    cpus: &[u32],
    control: &mut Control<'_>,
    interrupted: &AtomicBool,
    witness: &(dyn Fn() -> W + Sync),
) -> Result<(LoadResult, Vec<W>), LoadError> {
    let (mut engine, dialers) = Engine::ready(spec, target, cpus, control.stop)?;
    engine.halt.also = Some(interrupted);
    counted(&engine, dialers, control, witness)
}

/// As [`run_until`], for a load with a timetable that lasts until `closed` is set. From then on nothing is due, and what is on its way is
/// waited for as at the end of any timetable.
///
/// # Errors
/// As [`run`].
pub fn run_until_closed(
    spec: &LoadSpec,
    target: &Target,
    cpus: &[u32],
    control: &mut Control<'_>,
    interrupted: &AtomicBool,
    closed: &AtomicBool,
) -> Result<LoadResult, LoadError> {
    let endless = LoadSpec { duration_ns: Some(EVER), ..spec.clone() };
    let (mut engine, dialers) = Engine::ready(&endless, target, cpus, control.stop)?;
    engine.halt.also = Some(interrupted);
    engine.halt.closed = Some(closed);
    counted(&engine, dialers, control, &|| ()).map(|(result, _)| result)
}

/// Drives an engine and counts.
fn counted<W: Witness>(
    engine: &Engine<'_>,
    dialers: Vec<Dialer<'_>>,
    control: &mut Control<'_>,
    witness: &(dyn Fn() -> W + Sync),
) -> Result<(LoadResult, Vec<W>), LoadError> {
    let mut collector = Collector::new(engine.threads as usize, engine.origin, control.on_interval);
    let (sender, seconds) = mpsc::channel();
    let window = (engine.origin, engine.closes_ns());
    let sinks = (0..engine.threads as usize)
        .map(|i| {
            let (open, sender) = (engine.open_account(), sender.clone());
            move || Histograms::new(i, window, open, sender, witness())
        })
        .collect();
    // From here on only workers hold senders, so the seconds end with the last worker.
    drop(sender);
    let workers = engine.drive(dialers, sinks, || seconds.iter().for_each(|part| collector.add(&part)))?;
    Ok(engine.result(workers, collector))
}

/// Runs a load to its end and gives back every request, in the order they ended. For tests and for short loads: each takes
/// about 100 bytes.
///
/// # Errors
/// As [`run`].
pub fn records(spec: &LoadSpec, target: &Target, cpus: &[u32], stop: &AtomicBool) -> Result<Vec<Record>, LoadError> {
    let (engine, dialers) = Engine::ready(spec, target, cpus, stop)?;
    let sinks = (0..engine.threads).map(|_| Records::default).collect();
    let workers = engine.drive(dialers, sinks, || {})?;
    let mut records: Vec<_> = workers.into_iter().flat_map(|worker| worker.summary).collect();
    records.sort_by_key(|record| record.end_ns);
    Ok(records)
}

/// What the threads of one load share.
pub(crate) struct Engine<'a> {
    spec: &'a LoadSpec,
    target: &'a Target,
    requests: Requests,
    checks: Option<Checks>,
    cpus: &'a [u32],
    threads: u32,
    rule: StopRule,
    budget: Budget,
    halt: Halt<'a>,
    gate: Gate,
    // Of each kind of request.
    body_bytes: Vec<OnceLock<u64>>,
    // Seconds and the deadline are counted from here.
    origin: Nanos,
}

impl<'a> Engine<'a> {
    pub(crate) fn new(
        spec: &'a LoadSpec,
        target: &'a Target,
        cpus: &'a [u32],
        stop: &'a AtomicBool,
    ) -> Result<Engine<'a>, LoadError> {
        let rule = StopRule::of(spec);
        if spec.connections == 0 {
            return Err(LoadError::NoConnections(spec.name.clone()));
        }
        if !rule.ends() {
            return Err(LoadError::Endless(spec.name.clone()));
        }
        let threads = threads(spec, cpus);
        let requests = Requests::new(spec, &target.host)?;
        let checks = Checks::of(spec).map_err(|source| LoadError::Check { name: spec.name.clone(), source })?;
        Ok(Engine {
            spec,
            target,
            cpus,
            threads,
            rule,
            budget: Budget::new(rule, threads),
            halt: Halt { asked: stop, also: None, broken: AtomicBool::new(false), closed: None },
            gate: Gate::default(),
            body_bytes: (0..requests.len()).map(|_| OnceLock::new()).collect(),
            requests,
            checks,
            origin: monotonic_ns(),
        })
    }

    /// Answers are looked at in that way in place of the load's own.
    pub(crate) fn looking(self, checks: Checks) -> Engine<'a> {
        Engine { checks: Some(checks), ..self }
    }

    /// An engine whose clock begins when all that takes time is done: certificates are read, and names checked.
    pub(crate) fn ready(
        spec: &'a LoadSpec,
        target: &'a Target,
        cpus: &'a [u32],
        stop: &'a AtomicBool,
    ) -> Result<(Engine<'a>, Vec<Dialer<'a>>), LoadError> {
        let engine = Engine::new(spec, target, cpus, stop)?;
        let dialers = (0..engine.threads).map(|i| engine.dialer(i)).collect::<Result<_, _>>()?;
        Ok((Engine { origin: monotonic_ns(), ..engine }, dialers))
    }

    /// Runs one worker per sink, and `meanwhile` on the calling thread.
    pub(crate) fn drive<S: Sink>(
        &self,
        dialers: Vec<Dialer<'a>>,
        sinks: Vec<impl FnOnce() -> S + Send>,
        meanwhile: impl FnOnce(),
    ) -> Result<Vec<Finished<S::Summary>>, LoadError> {
        let _room = OpenFiles::room_for(self.spec.connections);
        let epolls =
            (0..self.threads).map(|_| epoll::create(epoll::CreateFlags::CLOEXEC)).collect::<Result<Vec<_>, _>>();
        let epolls = epolls.map_err(|source| LoadError::Kernel { what: "epoll instance", source: source.into() })?;
        let parts = (0..self.threads).zip(dialers).zip(epolls).zip(sinks);
        thread::scope(|scope| {
            // Threads inherit the CPUs of the one that starts them.
            let pinned = Pinned::to(self.cpus)?;
            let mut running = Vec::new();
            for (((i, dialer), epoll), sink) in parts {
                // A worker is made by its own thread: then no cache line that it writes is another one's, because the allocator
                // gives each thread memory of its own.
                let work = move || self.worker(i, dialer, epoll, sink()).run();
                match thread::Builder::new().name("load".to_owned()).spawn_scoped(scope, work) {
                    Ok(thread) => running.push(thread),
                    Err(source) => {
                        self.halt.broken.store(true, Ordering::Relaxed);
                        return Err(LoadError::Kernel { what: "further thread", source });
                    }
                }
            }
            drop(pinned);
            meanwhile();
            Ok(running.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic))).collect())
        })
    }

    fn worker<S: Sink>(&self, i: u32, dialer: Dialer<'a>, epoll: OwnedFd, sink: S) -> Worker<'_, S> {
        let spec = self.spec;
        let connections = self.connections(i);
        let sharing = spec.session.as_ref().map_or(1, |session| session.connections.max(1));
        let keep_cookies = self.checks.as_ref().is_some_and(Checks::keep_cookies);
        let jars = if keep_cookies { connections / sharing } else { 0 };
        let line = Line {
            dialer,
            requests: &self.requests,
            checks: self.checks.clone(),
            jars: RefCell::new((0..jars).map(|_| Jar::default()).collect()),
            sharing: sharing as usize,
            keep_alive: spec.keep_alive,
            depth: spec.pipeline.max(1) as usize,
            epoll,
            times_writes: S::TIMES_WRITES,
            heads: Cell::new(if sink.wants_heads() { Heads::All } else { Heads::First }),
            tls: OnceCell::new(),
        };
        let expectation =
            Expectation { timeout_ns: spec.timeout_ns, same_length: spec.same_length, body_bytes: &self.body_bytes };
        let (pacer, deadline) = self.pacer(i);
        let habits = Habits {
            first: u64::from(i),
            stride: u64::from(self.threads),
            busy_poll: spec.busy_poll,
            rests: spec.rests,
        };
        let gate = (spec.first_alone && !spec.is_open()).then_some(&self.gate);
        let closes_ns = self.closes_ns();
        let crowd = spec.session.as_ref().map(|session| {
            let seed = spec.seed.wrapping_add(u64::from(i));
            Crowd::new(session, self.requests.len(), connections, closes_ns, seed)
        });
        let halt = &self.halt;
        let share = Share { connections, expectation, pacer, crowd, habits, halt, gate, deadline };
        Worker::new(line, share, sink)
    }

    /// How many connections a worker has.
    fn connections(&self, worker: u32) -> u32 {
        // Each user's connections belong together, so they are divided among workers as users.
        let each = self.spec.session.as_ref().map_or(1, |session| session.connections.max(1));
        // The first workers take one connection more each when they do not divide evenly.
        let units = (self.spec.connections / each).max(1);
        (units / self.threads + u32::from(worker < units % self.threads)) * each
    }

    fn dialer(&self, worker: u32) -> Result<Dialer<'a>, LoadError> {
        let tls = self.spec.tls.as_ref().map(TlsClient::new).transpose()?;
        // Both write again before there is an answer.
        let writes = if tls.is_some() || self.spec.pipeline > 1 { Writes::AtOnce } else { Writes::Gathered };
        let Target { address, local, tunnel, buffers, .. } = self.target;
        // Each worker goes on where the connections of those before it end, so that addresses are used evenly.
        let before: u32 = (0..worker).map(|i| self.connections(i)).sum();
        // Except where it is one server's: there each looks for the first that can be reached.
        let turn = if matches!(address, Address::FirstOf(_)) { 0 } else { before as usize };
        Ok(Dialer {
            address,
            local,
            turn: Cell::new(turn),
            reached: Cell::new(false),
            buffers: *buffers,
            tunnel: tunnel.as_ref(),
            tls,
            writes,
        })
    }

    /// Where the window ends, if time ends it.
    fn closes_ns(&self) -> Nanos {
        self.rule.deadline(self.origin)
    }

    /// One worker's pacer, and the moment after which nothing counts for it.
    fn pacer(&self, worker: u32) -> (Pacer<'_>, Nanos) {
        let part = Part { worker, of: self.threads };
        let length = self.rule.duration_ns.unwrap_or(Nanos::MAX);
        let calls = match (&self.spec.pace, &self.spec.log) {
            (Pace::Timetable(table), _) => {
                Calls::new(table, part, self.origin, length, self.rule.requests, self.spec.seed)
            }
            (Pace::Logged, Some(log)) => Calls::logged(&log.recording, part, self.origin, length, self.rule.requests),
            (Pace::WhenFree, _) | (Pace::Logged, None) => {
                let (allowance, end) = (Allowance::of(&self.budget), self.rule.deadline(self.origin));
                let (until, deadline) = if self.spec.drains { (end, Nanos::MAX) } else { (Nanos::MAX, end) };
                return (Pacer::WhenFree { allowance, until }, deadline);
            }
        };
        (Pacer::Timetable(calls), Nanos::MAX)
    }

    /// An empty account, for an open loop.
    fn open_account(&self) -> Option<OpenLoop> {
        // Of users it is they who arrive, not their requests.
        (self.spec.is_open() && self.spec.session.is_none()).then(|| OpenLoop {
            service: Latency::preallocated(),
            lateness: Latency::preallocated(),
            ..OpenLoop::default()
        })
    }

    fn result<W>(&self, workers: Vec<Finished<(Whole, W)>>, collector: Collector<'_>) -> (LoadResult, Vec<W>) {
        let ended_ns = workers.iter().map(|worker| worker.ended_ns).max().unwrap_or(self.origin);
        let open = self.spec.is_open();
        let last_ns = workers.iter().map(|worker| worker.last_ns).max().unwrap_or(ended_ns);
        let (intervals, total) = collector.finish(last_ns);
        let mut result = LoadResult {
            connections: self.spec.connections,
            // A timetable's window begins with the table, a closed loop's with its first request.
            started_ns: if open { self.origin } else { ended_ns },
            ended_ns,
            end: end(&workers),
            intervals,
            total,
            body_bytes: self.body_bytes.first().and_then(OnceLock::get).copied(),
            open: self.open_account().map(|_| OpenLoop::default()),
            sessions: self.spec.session.as_ref().map(|_| Sessions::default()),
            generator: Generator { threads: self.threads, cpu_ns: 0, cpus: self.cpus.to_vec(), away: None },
            ..LoadResult::empty()
        };
        for interval in &result.intervals {
            result.counts.merge(&interval.counts);
        }
        let mut witnesses = Vec::with_capacity(workers.len());
        for Finished {
            summary: (summary, witness), cpu_ns, examples, retry_example, sessions, software, tls, ..
        } in workers
        {
            witnesses.push(witness);
            result.software = result.software.or(software);
            result.tls = result.tls.or(tls);
            if let (Some(sum), Some(part)) = (&mut result.sessions, &sessions) {
                sum.merge(part);
            }
            result.started_ns = summary.first_start_ns.map_or(result.started_ns, |start| result.started_ns.min(start));
            result.first_byte.merge(&summary.first_byte);
            result.connect.merge(&summary.connect);
            result.handshake.merge(&summary.handshake);
            if let (Some(sum), Some(part)) = (&mut result.open, &summary.open) {
                sum.merge(part);
            }
            result.unanswered.merge(&summary.unanswered);
            result.late.merge(&summary.late);
            result.in_flight += summary.in_flight;
            result.in_flight_ns += summary.in_flight_ns;
            result.generator.cpu_ns += cpu_ns;
            examples.into_iter().for_each(|(cause, example)| {
                result.examples.entry(cause).or_insert(example);
            });
            result.retry_example = result.retry_example.or(retry_example);
        }
        (result, witnesses)
    }
}

/// A load was stopped if any worker was, and ran out of time if any worker did.
fn end<T>(workers: &[Finished<T>]) -> LoadEnd {
    let any = |end: &LoadEnd| workers.iter().any(|worker| worker.end == *end);
    [LoadEnd::Stopped, LoadEnd::Duration].into_iter().find(any).unwrap_or(LoadEnd::Requests)
}

/// One thread sends more than most servers answer, so there are more only when connections are many and CPUs are there for
/// them: the CPUs the load is pinned to, or half of the machine's when the server shares them.
fn threads(spec: &LoadSpec, cpus: &[u32]) -> u32 {
    let chosen = spec.threads.unwrap_or_else(|| {
        let all = thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(u32::MAX));
        let available = if cpus.is_empty() { all / 2 } else { u32::try_from(cpus.len()).unwrap_or(u32::MAX) };
        (spec.connections / CONNECTIONS_PER_THREAD).min(available)
    });
    let each = spec.session.as_ref().map_or(1, |session| session.connections.max(1));
    chosen.clamp(1, (spec.connections / each).max(1))
}

const CONNECTIONS_PER_THREAD: u32 = 256;

/// Longer than any load.
const EVER: Nanos = 365 * 86_400 * SECOND;

#[cfg(test)]
mod tests {
    use http1::{After, Method, Request, Version};
    use model::plan::{Options, parse};
    use std::path::Path;

    /// That the plan's parser accepts exactly the requests that can be written: no load fails for its request in mid-run.
    #[track_caller]
    fn check(path: &str, name: &str, value: &str) {
        // Every character as TOML's escape.
        let quoted = |text: &str| -> String { text.chars().map(|c| format!("\\U{:08x}", u32::from(c))).collect() };
        let text = format!(
            "[server]\nkind = \"embedded\"\n[load.l]\npath = \"{}\"\nconnections = 1\nrequests = 1\n\
             headers = {{ \"{}\" = \"{}\" }}\n",
            quoted(path),
            quoted(name),
            quoted(value)
        );
        let parsed = parse(&text, Path::new("t.toml"), &Options::default());
        let headers = [(name.to_owned(), value.to_owned())];
        let request = Request {
            method: Method::GET,
            target: path,
            version: Version::Http11,
            after: After::KeepOpen,
            host: "localhost",
            headers: &headers,
            body: None,
        };
        let written = request.to_bytes();
        assert_eq!(parsed.is_ok(), written.is_ok(), "{path:?} {name:?} {value:?}: {parsed:?} {written:?}");
    }

    #[test]
    fn a_plan_that_parses_can_be_sent() {
        for path in ["/", "/a?b=%20", "/é", "", "a", "/a b", "/a\n", "/\u{7f}"] {
            check(path, "X-A", "1");
        }
        for value in ["", "a b", "a\tb", "é", "a\rb", "a\nb", "\0", "\u{1}", "\u{1f}", "\u{7f}"] {
            check("/", "X-A", value);
        }
        for name in ["Host", "user-agent", "X_A", "a~b", "", "X A", "X:", "É", "X\n"] {
            check("/", name, "1");
        }
        for name in ["Connection", "content-length", "EXPECT", "Keep-Alive", "Transfer-Encoding", "Upgrade", "TE"] {
            check("/", name, "1");
        }
    }
}
