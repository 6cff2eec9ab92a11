//! Where the time of a trial's requests went: what the client, the server's log and the kernel told of the same window, put together.
//!
//! The three share the machine's clock. Each request is found in the log by its times; which of the processes and threads worked on it is
//! known by the numbers in the log, and in PHP-FPM's; of programs that end, by time alone where the log has another's.

mod held;
mod log;

use self::held::{Held, Stay, stays};
use self::log::{Behind, Line, behind, lines};
use crate::ExperimentError;
use load::{Ending, Record, Witness, monotonic_ns};
use model::Nanos;
use model::accounts::{Accounts, Delays, EndedTold, Front, Looks, ServerTold, Told, WorkersTold};
use model::load::LoadResult;
use model::plan::{FPM_LATENCY_LOG, LATENCY_LOG, Mpm, PhpWay, ServerSpec};
use model::reading::{Column, Readings};
use monitor::{Accountant, Books, Doing, EndedProcess};
use server::Running;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// By how much times of the server and of the client may contradict each other: a server's clock that counts milliseconds, and the
/// instant at which either is read.
const SLACK_NS: i64 = 2_000_000;
/// What a request took of the server at least, for a clock that counts milliseconds shows many as nothing.
const LEAST_NS: f64 = 10_000.0;
/// Of how many requests one is among the slowest.
const SLOWEST: usize = 100;

/// What a trial says whose server wrote no time of its own.
const NO_LOG: &str =
    "no latency budget: the server logged no time of its own; does a directive of the plan switch access logs off?";

/// One good request by the client's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Request {
    due_ns: Nanos,
    start_ns: Nanos,
    connect_ns: Nanos,
    end_ns: Nanos,
    status: u16,
}

impl Request {
    fn total_ns(self) -> Nanos {
        self.end_ns.saturating_sub(self.due_ns)
    }

    fn connected_ns(self) -> Nanos {
        self.start_ns + self.connect_ns
    }
}

/// Keeps the good requests of one worker of the load.
#[derive(Default)]
pub(crate) struct Keeper(Vec<Request>);

impl Witness for Keeper {
    fn saw(&mut self, record: &Record) {
        if record.ending == Ending::Good {
            let connect_ns = record.connect_ns.unwrap_or(0) + record.handshake_ns.unwrap_or(0);
            let Record { due_ns, start_ns, end_ns, .. } = *record;
            let status = record.answer.map_or(0, |answer| answer.status);
            self.0.push(Request { due_ns, start_ns, connect_ns, end_ns, status });
        }
    }
}

/// An error where the kernel tells us nothing.
pub(crate) fn available() -> Result<(), ExperimentError> {
    monitor::may_account().map_err(|error| refused(&error))
}

fn refused(error: &std::io::Error) -> ExperimentError {
    ExperimentError::Missing(format!(
        "latency_budget: the kernel does not tell us its accounts of processes ({error}): it takes root, outside of any container, and a \
         kernel with CONFIG_TASKSTATS; or leave latency_budget out"
    ))
}

/// Begins to read the accounts of a server.
pub(crate) fn open(running: &Running) -> Result<Accountant, ExperimentError> {
    Accountant::start(Path::new("/proc"), &running.roots(), running.address.port()).map_err(|error| refused(&error))
}

/// The logs of the server in that folder, and of PHP-FPM; empty where there is none.
pub(crate) struct Logs {
    server: Vec<u8>,
    fpm: Vec<u8>,
}

impl Logs {
    pub(crate) fn read(folder: &Path) -> Logs {
        Logs { server: read(folder, LATENCY_LOG), fpm: read(folder, FPM_LATENCY_LOG) }
    }
}

fn read(folder: &Path, log: &str) -> Vec<u8> {
    std::fs::read(folder.join(log)).unwrap_or_default()
}

/// Threads by the process and the address that the log has of each.
pub(crate) type Threads = BTreeMap<(u32, u64), u32>;

/// What makes accounts worth less, a sentence each.
pub(crate) fn doubts(accounts: &Accounts) -> impl Iterator<Item = String> + use<> {
    let lost = "latency budget: the kernel could not tell us of all processes that ended, and their time is missing";
    without_log(accounts).into_iter().chain(accounts.lost_ends.then(|| lost.to_owned()))
}

/// What is to be said where the server logged nothing.
fn without_log(accounts: &Accounts) -> Option<String> {
    (accounts.all.requests > 0 && accounts.all.server.is_none()).then(|| NO_LOG.to_owned())
}

/// Who works on requests in a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Crew {
    /// The thread that the log names has a request, not its whole process.
    by_thread: bool,
    /// The process that the log names does all of a request, one at a time, and starts what programs that takes.
    one_by_one: bool,
}

impl Crew {
    pub(crate) fn of(server: &ServerSpec) -> Crew {
        let ServerSpec::Apache(apache) = server else { return Crew { by_thread: false, one_by_one: false } };
        let by_thread = apache.mpm != Mpm::Prefork;
        let one_by_one = !by_thread && apache.php.as_ref().is_none_or(|php| php.way == PhpWay::Module);
        Crew { by_thread, one_by_one }
    }

    /// The threads that the log of such a server in that folder names, which must live.
    pub(crate) fn threads(self, folder: &Path) -> Threads {
        let mut named: BTreeMap<u32, BTreeSet<u64>> = BTreeMap::new();
        let log = if self.by_thread { read(folder, LATENCY_LOG) } else { Vec::new() };
        for line in lines(&log, 0) {
            named.entry(line.pid).or_default().extend(line.thread);
        }
        let of = |(pid, names)| {
            monitor::threads_named(pid, &names).into_iter().map(move |(name, thread)| ((pid, name), thread))
        };
        named.into_iter().flat_map(of).collect()
    }
}

/// The kernel's accounts are of all that the server worked on; the mean is of good answers. Of what others took (failures, lines that are
/// nobody's) no more is known than how long the server was at them: who was turned away at once took next to nothing of it.
fn only_of_answers(all: &mut Told, answers_ns: f64, others_ns: f64) {
    let share = if answers_ns > 0.0 { answers_ns / (answers_ns + others_ns) } else { 1.0 };
    let of = |count: u64| (count as f64 * share).round() as u64;
    let ended = &mut all.ended;
    (ended.processes, ended.elapsed_ns) = (of(ended.processes), of(ended.elapsed_ns));
    ended.delays = ended.delays.times(share);
    ended.cpu_by_parents_ns = ended.cpu_by_parents_ns.map(of);
    if let Some(workers) = &mut all.workers {
        workers.delays = workers.delays.times(share);
        if let Some(front) = &mut workers.front {
            (front.on_cpu_ns, front.cpu_wait_ns) = (of(front.on_cpu_ns), of(front.cpu_wait_ns));
        }
    }
}

/// All that was seen of a window.
pub(crate) struct Observed {
    requests: Vec<Request>,
    window: (Nanos, Nanos),
    /// What the wall's clock shows less what ours does.
    wall_ns: i64,
    books: Books,
    threads: Threads,
    turned_away: u64,
}

impl Observed {
    pub(crate) fn new(load: &LoadResult, kept: Vec<Keeper>, books: Books, threads: Threads) -> Observed {
        let mut requests: Vec<Request> = kept.into_iter().flat_map(|keeper| keeper.0).collect();
        requests.sort_unstable_by_key(|request| request.end_ns);
        let wall_ns = wall_less_monotonic();
        Observed { requests, window: (load.started_ns, load.ended_ns), wall_ns, books, threads, turned_away: 0 }
    }

    /// The same, with how many connections the machine turned away at accept queues meanwhile.
    pub(crate) fn with_turned_away(self, readings: &Readings) -> Observed {
        let (from, to) = self.window;
        let counts = |rows: &mut dyn Iterator<Item = &model::reading::Reading>| {
            rows.next().and_then(|row| row.get(Column::TcpListenDrops))
        };
        let before = counts(&mut readings.rows.iter().rev().filter(|row| row.at_ns <= from));
        let after = counts(&mut readings.rows.iter().filter(|row| row.at_ns >= to));
        let turned_away = before.zip(after).map_or(0, |(before, after)| after.saturating_sub(before));
        // The counter is that of all queues of the machine; ours turned nobody away unless it was full.
        Observed { turned_away: if self.books.queue_was_full { turned_away } else { 0 }, ..self }
    }

    /// Puts all of it together.
    pub(crate) fn accounts(&self, logs: &Logs, crew: Crew) -> Accounts {
        let (lines, behind) = (lines(&logs.server, self.wall_ns), behind(&logs.fpm, self.wall_ns));
        let found = in_log(&self.requests, &lines);
        let front = |line: &Line| {
            if crew.by_thread { self.threads.get(&(line.pid, line.thread?)).copied() } else { Some(line.pid) }
        };
        let stays = stays(&lines, &behind, front);
        let held = Held::by_task(stays.iter().flatten());
        let mut all = told(&self.requests, &found, &lines);
        all.queued_ns = queued(&self.books.queue, self.window);
        all.turned_away = self.turned_away;
        let programs = self.programs(crew.one_by_one.then_some(&lines));
        all.ended = self.ended(&programs);
        // It is told of all together: where some are left out, nothing is known of the others.
        all.ended.cpu_by_parents_ns = self.books.cpu_by_parents_ns.filter(|_| programs.len() == self.books.ended.len());
        let unheld_ns = unheld(&found, &lines, &stays);
        all.workers = Some(WorkersTold { unheld_ns, ..self.workers(&lines, &behind, (&stays, &held)) });
        let others = others(&lines, &found, self.window);
        let lines_left = others.len() as u64;
        let took = |of: &mut dyn Iterator<Item = &Line>| of.map(|line| line.own_ns as f64 + LEAST_NS).sum::<f64>();
        only_of_answers(
            &mut all,
            took(&mut found.iter().flatten().map(|&at| &lines[at])),
            took(&mut others.into_iter()),
        );
        Accounts {
            slowest: self.slowest(&found, &lines, &programs, (&stays, &held)),
            all,
            lines_left,
            lost_ends: self.books.lost,
        }
    }

    /// Processes that ended; where lines of the log tell who works on requests, only those that these started: not those of a backend that
    /// the server keeps beside them.
    fn programs(&self, lines: Option<&Vec<Line>>) -> Vec<&EndedProcess> {
        let ended = &self.books.ended;
        let Some(lines) = lines else { return ended.iter().collect() };
        let parents: BTreeMap<u32, u32> = ended.iter().map(|process| (process.pid, process.parent)).collect();
        let workers: BTreeSet<u32> = lines.iter().map(|line| line.pid).collect();
        let is_of_worker = |process: &&EndedProcess| {
            let above = |pid: &u32| parents.get(pid).copied();
            // Numbers may come again, so that a chain could go in circles.
            std::iter::successors(Some(process.parent), above).take(32).any(|pid| workers.contains(&pid))
        };
        ended.iter().filter(is_of_worker).collect()
    }

    /// The workers that the logs name, and what was seen of each in its requests.
    fn workers(
        &self,
        lines: &[Line],
        behind: &[Behind],
        (stays, held): (&[Vec<Stay>], &BTreeMap<u32, Held>),
    ) -> WorkersTold {
        let of = |pids: BTreeSet<u32>| {
            let mut delays = Delays::default();
            for series in pids.iter().filter_map(|pid| self.books.workers.get(pid)) {
                delays += series.last().map_or(Delays::default(), |last| last.1.since(series[0].1));
            }
            delays
        };
        let mut delays = of(lines.iter().map(|line| line.pid).collect());
        let front = Some(self.front(delays, stays.iter().flatten()));
        delays += of(behind.iter().map(|behind| behind.pid).collect());
        let blocked = self.looks(|_, pid| u64::from(self.books.workers.contains_key(&pid)));
        let in_requests = Some(self.looks_in(held));
        WorkersTold { delays, front, blocked, look_ns: self.books.look_ns, in_requests, unheld_ns: 0 }
    }

    /// Those who take requests first, by their accounts and by all stays.
    fn front<'s>(&self, Delays { on_cpu_ns, cpu_wait_ns, .. }: Delays, stays: impl Iterator<Item = &'s Stay>) -> Front {
        let held = Held::by_task(stays.filter(|stay| stay.is_front));
        Front { on_cpu_ns, cpu_wait_ns, runnable: self.looks_in(&held).runnable }
    }

    /// What was seen of each in its requests, once for each that it had.
    fn looks_in(&self, held: &BTreeMap<u32, Held>) -> Looks {
        self.looks(|at, task| held.get(&task).map_or(0, |held| held.at(at as i64)))
    }

    fn ended(&self, processes: &[&EndedProcess]) -> EndedTold {
        let mut ended = EndedTold { processes: processes.len() as u64, ..EndedTold::default() };
        for process in processes {
            ended.elapsed_ns += process.elapsed_ns;
            ended.delays += process.delays;
        }
        let lives: BTreeMap<u32, &&EndedProcess> = processes.iter().map(|process| (process.pid, process)).collect();
        ended.looks = self.looks(|at, pid| u64::from(lives.get(&pid).is_some_and(|it| at <= it.at_ns)));
        ended
    }

    /// What was seen, each look as often as it counts.
    fn looks(&self, counts: impl Fn(Nanos, u32) -> u64) -> Looks {
        let mut looks = Looks::default();
        for (at, task, what) in &self.books.looks {
            *match what {
                Doing::Runnable => &mut looks.runnable,
                Doing::Reclaim => &mut looks.reclaim,
                Doing::Swap => &mut looks.swap,
                Doing::Disk => &mut looks.disk,
                Doing::Other => &mut looks.other,
            } += counts(*at, *task);
        }
        looks
    }

    /// The accounts of a process, or of a thread of one that has several.
    fn series(&self, task: u32) -> &[(Nanos, Delays)] {
        let books = &self.books;
        books.threads.get(&task).or_else(|| books.workers.get(&task)).map_or(&[], Vec::as_slice)
    }

    /// The slowest requests by themselves: each with its line, its program, and what those who had it did meanwhile.
    fn slowest(
        &self,
        found: &[Option<usize>],
        lines: &[Line],
        programs: &[&EndedProcess],
        (stays, held): (&[Vec<Stay>], &BTreeMap<u32, Held>),
    ) -> Told {
        let mut order: Vec<usize> = (0..self.requests.len()).collect();
        order.sort_by_key(|&index| std::cmp::Reverse(self.requests[index].total_ns()));
        order.truncate(self.requests.len().div_ceil(SLOWEST));
        let requests: Vec<Request> = order.iter().map(|&index| self.requests[index]).collect();
        let found: Vec<Option<usize>> = order.iter().map(|&index| found[index]).collect();
        let of: Vec<&Line> = found.iter().flatten().map(|&index| &lines[index]).collect();
        let mut told = told(&requests, &found, lines);
        let processes: Vec<&EndedProcess> = of.iter().filter_map(|line| program_of(line, programs)).collect();
        told.ended = self.ended(&processes);
        told.turned_away = self.turned_away;
        let of: Vec<Stay> = found.iter().flatten().flat_map(|&index| stays[index].iter().copied()).collect();
        let (mut delays, mut of_front) = (Delays::default(), Delays::default());
        for stay in &of {
            let its = held[&stay.task].share(self.series(stay.task), stay);
            delays += its;
            of_front += if stay.is_front { its } else { Delays::default() };
        }
        let looks = self.looks_in(&Held::by_task(of.iter()));
        let front = Some(self.front(of_front, of.iter()));
        let (look_ns, unheld_ns) = (self.books.look_ns, unheld(&found, lines, stays));
        let in_requests = Some(looks);
        told.workers = Some(WorkersTold { delays, front, blocked: looks, look_ns, in_requests, unheld_ns });
        told
    }
}

/// What the wall's clock shows less what ours does. Between the two looks anybody may take the CPU: the closest of some pairs counts.
fn wall_less_monotonic() -> i64 {
    let pair = |_| {
        let before = monotonic_ns();
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let length = monotonic_ns() - before;
        (length, wall.as_nanos() as i64 - (before + length / 2) as i64)
    };
    (0..50).map(pair).min().map_or(0, |(_, offset)| offset)
}

/// For each request its line, if it has one, of the status that the client had. Both are in the order of their ends. A server's clock begins while the client waits; it may
/// end after the client's, for a server logs when it has sent all, and may wait for a CPU before it does.
fn in_log(requests: &[Request], lines: &[Line]) -> Vec<Option<usize>> {
    let mut by_begin: Vec<usize> = (0..lines.len()).collect();
    by_begin.sort_by_key(|&line| std::cmp::Reverse(lines[line].begin_ns));
    // Those that have begun and are no request's yet, in the order of their ends.
    let mut free: Vec<usize> = Vec::new();
    let find = |request: &Request| {
        while let Some(line) = by_begin.pop_if(|line| lines[*line].begin_ns <= request.end_ns as i64 + SLACK_NS) {
            free.insert(free.partition_point(|&other| other < line), line);
        }
        // What began before the request was sent is another's; it may be one that failed, which nobody looks for.
        let began = request.connected_ns() as i64 - SLACK_NS;
        let is_its = |line: &Line| line.begin_ns >= began && line.status == request.status;
        let at = free.iter().position(|&line| is_its(&lines[line]))?;
        Some(free.remove(at))
    };
    requests.iter().map(find).collect()
}

/// What client and log say of requests.
fn told(requests: &[Request], found: &[Option<usize>], lines: &[Line]) -> Told {
    let mut told = Told { requests: requests.len() as u64, ..Told::default() };
    let mut server = ServerTold::default();
    for (request, line) in requests.iter().zip(found) {
        told.total_ns += request.total_ns();
        told.unsent_ns += request.start_ns.saturating_sub(request.due_ns);
        told.connect_ns += request.connect_ns;
        if let Some(line) = line.map(|index| &lines[index]) {
            let before_ns = line.begin_ns - request.connected_ns() as i64;
            server.requests += 1;
            server.before_ns += before_ns;
            server.before_kept_ns += if request.connect_ns == 0 { before_ns } else { 0 };
            server.own_ns += line.own_ns;
            server.after_ns += request.end_ns as i64 - line.end_ns();
        }
    }
    told.server = (server.requests > 0).then_some(server);
    told
}

/// For how long requests were in the server by their lines, and nobody is known to have had them.
fn unheld(found: &[Option<usize>], lines: &[Line], stays: &[Vec<Stay>]) -> Nanos {
    let held = |of: &[Stay]| of.iter().map(|stay| stay.to.abs_diff(stay.from)).sum::<u64>();
    found.iter().flatten().map(|&index| lines[index].own_ns.saturating_sub(held(&stays[index]))).sum()
}

/// Lines of the window that are no request's.
fn others<'l>(lines: &'l [Line], found: &[Option<usize>], (from, to): (Nanos, Nanos)) -> Vec<&'l Line> {
    let found: BTreeSet<usize> = found.iter().flatten().copied().collect();
    let within = |line: &Line| line.begin_ns >= from as i64 && line.end_ns() <= to as i64;
    lines.iter().enumerate().filter(|(at, line)| within(line) && !found.contains(at)).map(|(_, line)| line).collect()
}

/// What all connections together waited at the queue: its length over time. `None` where nobody looked.
fn queued(looks: &[(Nanos, u64)], (from, to): (Nanos, Nanos)) -> Option<Nanos> {
    let within: Vec<&(Nanos, u64)> = looks.iter().filter(|(at, _)| (from..=to).contains(at)).collect();
    let mut sum = 0;
    for pair in within.windows(2) {
        sum += pair[0].1 * (pair[1].0 - pair[0].0);
    }
    (within.len() > 1).then_some(sum)
}

/// The program that was run for a line: the one that lived longest in its time, of the line's own process if that started any.
fn program_of<'b>(line: &Line, ended: &[&'b EndedProcess]) -> Option<&'b EndedProcess> {
    let shared = |process: &EndedProcess| {
        let end = (process.at_ns as i64).min(line.end_ns());
        end - (process.at_ns as i64 - process.elapsed_ns as i64).max(line.begin_ns)
    };
    let of_all = || ended.iter().copied().filter(|process| shared(process) > 0);
    let own = of_all().filter(|process| process.parent == line.pid).max_by_key(|process| shared(process));
    // Of a program that did not begin and end with the request it is not known whose it is.
    let slack = SLACK_NS + line.own_ns as i64 / 20;
    own.or_else(|| of_all().find(|process| (shared(process) - line.own_ns as i64).abs() <= slack))
}

#[cfg(test)]
mod tests;
