//! What to do next with a running server: one table, one line each, in the order of precedence.
//!
//! First what does harm or hides everything else, then what a setting holds back, then what no setting helps against.

use super::change::{Change, of_backlog, of_limit, of_pool_backlog, of_setting};
use super::{Fit, Seen, guarded, is_about};
use crate::cause::Cause;
use crate::evidence::Evidence;
use crate::number::{Numbers, Quantity};
use crate::thresholds::{CPU_ROOM, HELD_PART};
use model::check::{Door, Kind, Limit, Summit};
use model::load::Failure;

/// One thing to do: when, and what it says.
pub struct Step {
    /// The message that says it.
    pub id: &'static str,
    /// Whether something is wrong; otherwise it is as it should be, or not the server's doing.
    pub is_fault: bool,
    /// What it is about; `None` when it is not called for.
    pub when: fn(&Seen<'_>) -> Option<Change>,
}

/// A step that is called for.
#[derive(Debug, Clone, PartialEq)]
pub struct Advice {
    /// The message that says it.
    pub id: &'static str,
    /// Whether something is wrong.
    pub is_fault: bool,
    /// What it is about.
    pub change: Change,
}

/// A queue at the door that holds no more than this is too short for any burst.
const SHORT_QUEUE: f64 = 64.0;
/// Part of the CPUs that is used by nobody who is known, from which the server is not seen for itself.
const BEYOND: f64 = 0.5;
/// A limit is raised by no more than this at once.
const MOST_RAISED: f64 = 4.0;

/// The table.
pub const STEPS: &[Step] = &[
    Step { id: "step-held-all", is_fault: true, when: held_all },
    Step { id: "step-redirect", is_fault: true, when: redirect },
    Step { id: "step-status", is_fault: true, when: status },
    Step { id: "step-silent", is_fault: true, when: silent },
    Step { id: "step-memory", is_fault: true, when: own_memory },
    Step { id: "step-pool-memory", is_fault: true, when: pool_memory },
    Step { id: "step-host-disturbed", is_fault: false, when: host_disturbed },
    Step { id: "step-thrash", is_fault: true, when: thrash },
    Step { id: "step-memory-small", is_fault: true, when: memory_small },
    Step { id: "step-keep-alive", is_fault: true, when: keep_alive },
    Step { id: "step-connections", is_fault: true, when: connections },
    Step { id: "step-others", is_fault: false, when: others },
    Step { id: "step-backlog", is_fault: true, when: backlog },
    Step { id: "step-pool-queue", is_fault: true, when: pool_queue },
    Step { id: "step-raise-pool", is_fault: true, when: raise_pool },
    Step { id: "step-raise", is_fault: true, when: raise },
    Step { id: "step-queue-full", is_fault: true, when: queue_full },
    Step { id: "step-processes-ending", is_fault: true, when: processes_ending },
    Step { id: "step-processes", is_fault: true, when: processes },
    Step { id: "step-threads", is_fault: true, when: threads },
    Step { id: "step-failures", is_fault: true, when: failures },
    Step { id: "step-lock", is_fault: true, when: lock },
    Step { id: "step-disk", is_fault: false, when: disk },
    Step { id: "step-generator", is_fault: false, when: generator },
    Step { id: "step-cpu", is_fault: false, when: cpu },
    Step { id: "step-limit-right", is_fault: false, when: limit_right },
    Step { id: "step-limit-reached", is_fault: false, when: limit_reached },
    Step { id: "step-time", is_fault: false, when: time },
    Step { id: "step-files", is_fault: false, when: files },
    Step { id: "step-ceiling", is_fault: false, when: ceiling },
    Step { id: "step-beyond", is_fault: false, when: beyond },
    Step { id: "step-not-found", is_fault: false, when: not_found },
];

/// All that are called for, in the table's order; at least one, as the last line always is.
pub(super) fn found(seen: &Seen<'_>) -> Vec<Advice> {
    let advice = |step: &Step| Some(Advice { id: step.id, is_fault: step.is_fault, change: (step.when)(seen)? });
    STEPS.iter().filter_map(advice).collect()
}

// ---- the steps, in the table's order ----------------------------------------------------------------------------------

/// Nothing answered, and as many connections as there are workers lay idle.
fn held_all(seen: &Seen<'_>) -> Option<Change> {
    let limit = seen.limit()?;
    let door = seen.check.before?;
    let all = holds(seen, door) && door.idle >= limit.value;
    (seen.check.summit == Summit::NoAnswer && all).then(|| {
        seen.about("KeepAlive", "On").showing(
            Numbers::default()
                .with(Quantity::HeldWorkers, door.idle as f64)
                .with(Quantity::WorkerLimit, limit.value as f64),
        )
    })
}

/// The page is elsewhere.
fn redirect(seen: &Seen<'_>) -> Option<Change> {
    let page = seen.check.page.as_ref().filter(|page| (300..400).contains(&page.status))?;
    Some(Change { from: Some(page.status.to_string()), to: Some(page.location.clone()?), ..Change::default() })
}

fn status(seen: &Seen<'_>) -> Option<Change> {
    // What the server says when it is turned away there.
    let of_queue = |status: u16| seen.queue.is_some() && (502..=504).contains(&status);
    let page = seen.check.page.as_ref().filter(|page| !(200..300).contains(&page.status) && !of_queue(page.status))?;
    redirect(seen).is_none().then(|| Change { from: Some(page.status.to_string()), ..Change::default() })
}

fn silent(seen: &Seen<'_>) -> Option<Change> {
    let unexplained = held_all(seen).is_none() && seen.queue.is_none();
    (seen.check.summit == Summit::NoAnswer && unexplained).then(Change::default)
}

fn own_memory(seen: &Seen<'_>) -> Option<Change> {
    too_many(seen.fits.iter().find(|fit| fit.pool.is_empty())?)
}

fn pool_memory(seen: &Seen<'_>) -> Option<Change> {
    seen.fits.iter().filter(|fit| !fit.pool.is_empty()).find_map(too_many)
}

/// Nobody can tell what a server could do that is not let. Where the CPUs had room for more, it was let.
fn others(seen: &Seen<'_>) -> Option<Change> {
    let host = seen.evidence.as_ref().and_then(|e| e.cpu.host);
    let room = host.is_some_and(|cpu| cpu.busy() + cpu.steal < CPU_ROOM);
    (crowded(seen) && !room).then(|| seen.asked())
}

fn host_disturbed(seen: &Seen<'_>) -> Option<Change> {
    seen.shows(Cause::HostDisturbed)
}

fn thrash(seen: &Seen<'_>) -> Option<Change> {
    let change = memory_short(seen)?;
    let largest = seen.fits.iter().filter(|fit| fit.limit.is_some()).max_by_key(|fit| fit.held.total)?;
    Some(of_limit(largest.limit.as_ref()?).showing(change.numbers))
}

/// The same of a server that has no such limit.
fn memory_small(seen: &Seen<'_>) -> Option<Change> {
    memory_short(seen).filter(|_| thrash(seen).is_none())
}

fn keep_alive(seen: &Seen<'_>) -> Option<Change> {
    let limit = seen.limit().filter(|_| held_all(seen).is_none())?;
    // Before anything was sent counts as well, as what was held then may have been let go since; but only where no worker was free:
    // while some are, nobody waits.
    let before = seen.check.before.filter(|&door| holds(seen, door) && door.others >= limit.value);
    let many = before.is_some_and(|door| door.idle as f64 >= HELD_PART * limit.value as f64);
    let caused = seen.shows(Cause::KeepAliveHeld);
    let numbers = match &caused {
        Some(change) => change.numbers.clone(),
        None => Numbers::default()
            .with(Quantity::HeldWorkers, before.map(|door| door.idle as f64))
            .with(Quantity::WorkerLimit, limit.value as f64),
    };
    (caused.is_some() || many).then(|| seen.about("KeepAlive", "On").showing(numbers))
}

/// nginx closes what it has no connection for.
fn connections(seen: &Seen<'_>) -> Option<Change> {
    let limit = seen.limit().filter(|_| seen.check.running.kind == Kind::Nginx)?;
    let cut_off = |trial: &&model::trial::Trial| {
        let Some(load) = &trial.load else { return false };
        let cut: u64 =
            [Failure::Reset, Failure::ClosedEarly].iter().filter_map(|cause| load.counts.failed.get(cause)).sum();
        // Some of its connections are for listening and for what is behind it.
        cut > 0 && u64::from(load.connections) * 2 >= limit.value
    };
    let trial = seen.run.trials.iter().find(cut_off)?;
    let load = trial.load.as_ref()?;
    let numbers = Numbers::default()
        .with(Quantity::Connections, f64::from(load.connections))
        .with(Quantity::Failures, load.counts.failures() as f64)
        .with(Quantity::WorkerLimit, limit.value as f64);
    let each = limit.setting.as_ref().and_then(|setting| setting.value.parse::<u64>().ok()).unwrap_or(512);
    Some(Change { to: Some((each * 4).max(1024).to_string()), ..of_limit(&limit) }.showing(numbers))
}

/// The queue overflowed, and is too short for any burst.
fn backlog(seen: &Seen<'_>) -> Option<Change> {
    let change = seen.own_overflow()?;
    let queue = seen.evidence.as_ref()?.workers.queue_limit?;
    (queue <= SHORT_QUEUE).then(|| of_backlog(seen, queue).showing(change.numbers))
}

/// The queue before a pool is full: a longer one where it is too short for any burst or no more workers fit, else more workers.
fn pool_queue(seen: &Seen<'_>) -> Option<Change> {
    let (pool, queue) = seen.queue?;
    let (most, limit) = (queue.most as f64, queue.limit as f64);
    let numbers = Numbers::default().with(Quantity::AcceptQueueMost, most).with(Quantity::AcceptQueueLimit, limit);
    let fit = seen.fits.iter().find(|fit| fit.pool == pool.name);
    let cpu = seen.cpu_used().filter(|&used| used < CPU_ROOM);
    let more = pool.limit().filter(|_| limit > SHORT_QUEUE).zip(cpu).and_then(|(limit, cpu)| {
        let to = raised(&limit, cpu, fit)?;
        Some(Change { to: Some(to.to_string()), ..of_limit(&limit) })
    });
    Some(more.unwrap_or_else(|| of_pool_backlog(seen, pool, limit)).showing(numbers))
}

fn raise_pool(seen: &Seen<'_>) -> Option<Change> {
    let (pool, limit) = seen.pool.as_ref()?;
    if pool_queue(seen).is_some_and(|change| change.name.as_ref() == Some(&limit.called())) {
        return None;
    }
    let cpu = seen.cpu_used().filter(|&used| used < CPU_ROOM)?;
    let found = seen.shows(Cause::WorkerLimitTooLow);
    if found.is_none() && !seen.more_was_asked(limit.value) {
        return None;
    }
    let fit = seen.fits.iter().find(|fit| fit.pool == pool.name);
    let to = raised(limit, cpu, fit)?;
    let numbers = limit_numbers(limit, fit).with(Quantity::AtOnce, seen.at_once()).with(Quantity::CpuUsed, cpu);
    Some(Change { to: Some(to.to_string()), ..of_limit(limit) }.showing(numbers))
}

/// Requests wait while CPU and memory have room.
fn raise(seen: &Seen<'_>) -> Option<Change> {
    // What waits for a pool waits for no worker of the server's own.
    let limit = seen.limit().filter(|_| seen.check.running.kind.is_apache())?;
    if seen.pool.is_some() || seen.queue.is_some() {
        return None;
    }
    let cpu = seen.cpu_used().filter(|&used| used < CPU_ROOM)?;
    let at_once = seen.at_once();
    // Where connections are taken in that no worker has time for, no queue shows at the door.
    let by_law =
        at_once.is_some_and(|at_once| is_about(at_once, limit.value as f64)) && seen.more_was_asked(limit.value);
    let found = seen.shows(Cause::WorkerLimitTooLow);
    if found.is_none() && !by_law {
        return None;
    }
    let fit = seen.fits.iter().find(|fit| fit.pool.is_empty());
    let to = raised(&limit, cpu, fit)?;
    let numbers = limit_numbers(&limit, fit)
        .and(found.map(|change| change.numbers).unwrap_or_default())
        .with(Quantity::CpuUsed, cpu)
        .with(Quantity::AtOnce, at_once);
    Some(Change { to: Some(to.to_string()), ..of_limit(&limit) }.showing(numbers))
}

/// A queue that is not short overflowed.
fn queue_full(seen: &Seen<'_>) -> Option<Change> {
    let change = seen.own_overflow()?;
    let queue = seen.evidence.as_ref()?.workers.queue_limit?;
    (queue > SHORT_QUEUE).then(|| of_backlog(seen, queue).showing(change.numbers))
}

/// Processes end faster than they are begun.
fn processes_ending(seen: &Seen<'_>) -> Option<Change> {
    let change = seen.shows(Cause::ProcessesEnding)?;
    Some(Change { to: Some("0".to_owned()), ..seen.about("MaxConnectionsPerChild", "0") }.showing(change.numbers))
}

/// One process does all while CPUs lie idle.
fn processes(seen: &Seen<'_>) -> Option<Change> {
    let running = &seen.check.running;
    let one =
        running.kind == Kind::Nginx && running.is_read() && running.worker_processes(seen.cpus) == 1 && seen.cpus > 1;
    let change = seen.shows(Cause::OneCoreBusy).filter(|_| one)?;
    Some(Change { to: Some("auto".to_owned()), ..seen.about("worker_processes", "1") }.showing(change.numbers))
}

/// Threads of a server whose settings are not known; where they are, or where it is a pool behind it that is waited for, that was said.
fn threads(seen: &Seen<'_>) -> Option<Change> {
    let unknown = !seen.check.running.kind.is_apache() && seen.pool.is_none() && seen.queue.is_none();
    seen.shows(Cause::TooFewThreads).filter(|_| unknown)
}

fn failures(seen: &Seen<'_>) -> Option<Change> {
    let failing =
        seen.run.trials.iter().rev().find_map(|trial| trial.load.as_ref().filter(|load| load.counts.failures() > 0))?;
    let ended = seen.check.summit == Summit::Failures || guarded(seen.run);
    let numbers = Numbers::default()
        .with(Quantity::Connections, f64::from(failing.connections))
        .with(Quantity::Failures, failing.counts.failures() as f64);
    ended.then(|| Change::default().showing(numbers))
}

fn lock(seen: &Seen<'_>) -> Option<Change> {
    seen.shows(Cause::LockSerialised)
}

fn disk(seen: &Seen<'_>) -> Option<Change> {
    seen.shows(Cause::DiskBound)
}

fn generator(seen: &Seen<'_>) -> Option<Change> {
    seen.is(Cause::GeneratorSaturated)
}

fn cpu(seen: &Seen<'_>) -> Option<Change> {
    let e = seen.evidence.as_ref()?;
    let change = seen.shows(Cause::CpuBound).or_else(|| seen.shows(Cause::OneCoreBusy).filter(|_| seen.cpus == 1))?;
    let each = e.cpu.server_cores.filter(|_| e.offered.goodput > 0.0).map(|cores| cores / e.offered.goodput);
    let numbers =
        change.numbers.with(Quantity::CpuPerAnswer, each).with(Quantity::GeneratorShare, e.offered.generator_share);
    Some(Change::default().showing(numbers))
}

fn limit_right(seen: &Seen<'_>) -> Option<Change> {
    Some(of_limit(&seen.met()?).showing(seen.shows(Cause::WorkerLimitRight)?.numbers))
}

fn limit_reached(seen: &Seen<'_>) -> Option<Change> {
    Some(of_limit(&seen.met()?).showing(seen.shows(Cause::WorkerLimitReached)?.numbers))
}

fn time(seen: &Seen<'_>) -> Option<Change> {
    matches!(seen.check.summit, Summit::Time | Summit::Interrupted).then(|| seen.asked())
}

fn files(seen: &Seen<'_>) -> Option<Change> {
    (seen.check.summit == Summit::Files).then(|| seen.asked())
}

fn ceiling(seen: &Seen<'_>) -> Option<Change> {
    (seen.check.summit == Summit::Ceiling).then(|| seen.asked())
}

/// What uses the CPUs is neither the server nor known to be others': a database behind it, or somebody whom nobody sees from here.
fn beyond(seen: &Seen<'_>) -> Option<Change> {
    let e = seen.evidence.as_ref()?;
    let share = e.cpu.other_cores? / e.cpu.host_cpus;
    (share >= BEYOND && !crowded(seen)).then(|| seen.asked())
}

fn not_found(seen: &Seen<'_>) -> Option<Change> {
    Some(seen.asked())
}

// ---- what several steps ask -------------------------------------------------------------------------------------------

impl Seen<'_> {
    /// The server's own limit.
    fn limit(&self) -> Option<Limit> {
        self.check.running.limit(self.cpus)
    }

    /// The limit of workers that the diagnosis speaks of. Of nginx it is never its own: connections are no workers.
    fn met(&self) -> Option<Limit> {
        let own = || self.limit().filter(|_| self.check.running.kind.is_apache());
        self.pool.as_ref().map(|(_, limit)| limit.clone()).or_else(own)
    }

    /// The numbers of a cause that was found, as the first or beside another.
    fn shows(&self, cause: Cause) -> Option<Change> {
        let diagnosis = self.diagnosis?;
        let mut all = std::iter::once(&diagnosis.primary).chain(&diagnosis.contributing);
        all.find(|finding| finding.cause == cause).map(|finding| Change::default().showing(finding.numbers.clone()))
    }

    /// The same of the server's own queue.
    fn own_overflow(&self) -> Option<Change> {
        self.shows(Cause::AcceptQueueOverflow).filter(|_| self.queue.is_none())
    }

    /// The same only of the first.
    fn is(&self, cause: Cause) -> Option<Change> {
        self.shows(cause).filter(|_| self.diagnosis.is_some_and(|diagnosis| diagnosis.primary.cause == cause))
    }

    /// A directive of its own, or its default.
    fn about(&self, name: &str, default: &str) -> Change {
        match self.check.running.setting(name) {
            Some(setting) => of_setting(setting),
            None => Change { name: Some(name.to_owned()), from: Some(default.to_owned()), ..Change::default() },
        }
    }

    fn cpu_used(&self) -> Option<f64> {
        crate::rules::cpu_used(self.evidence.as_ref()?)
    }

    /// Requests worked on at once where most was asked for (Little's law).
    fn at_once(&self) -> Option<f64> {
        Some(self.evidence.as_ref()?.offered.goodput * self.alone?)
    }

    /// Whether there was a window in which clearly more was asked for, and it brought nothing.
    fn more_was_asked(&self, limit: u64) -> bool {
        let asked = self.evidence.as_ref().map_or(0.0, |e: &Evidence| e.offered.connections);
        self.check.summit == Summit::Plateau && asked >= limit as f64 * 1.5
    }

    fn asked(&self) -> Change {
        let numbers = self.evidence.as_ref().map_or_else(Numbers::default, |e| {
            Numbers::default()
                .with(Quantity::Connections, e.offered.connections)
                .with(Quantity::CpuUsed, crate::rules::cpu_used(e))
        });
        Change::default().showing(numbers)
    }
}

/// Whether others used the CPUs for what has nothing to do with the server.
fn crowded(seen: &Seen<'_>) -> bool {
    seen.check.others.as_ref().is_some_and(|others| others.crowd().is_some())
}

/// More are allowed than fit.
fn too_many(fit: &Fit) -> Option<Change> {
    let limit = fit.limit.as_ref().filter(|limit| limit.value as f64 > fit.most)?;
    let to = rounded(fit.workers.max(1.0));
    let numbers = limit_numbers(limit, Some(fit))
        .with(Quantity::MemoryRoom, fit.room)
        .with(Quantity::AllWorkers, limit.value as f64 * fit.cost);
    Some(Change { to: Some(to.to_string()), ..of_limit(limit) }.showing(numbers))
}

fn limit_numbers(limit: &Limit, fit: Option<&Fit>) -> Numbers {
    let numbers = Numbers::default().with(Quantity::WorkerLimit, limit.value as f64);
    let Some(fit) = fit else { return numbers };
    numbers.with(Quantity::WorkerCost, fit.cost).with(Quantity::WorkersThatFit, fit.workers)
}

/// As much higher as the CPU has room for and memory holds; `None` when that is not higher at all.
fn raised(limit: &Limit, cpu: f64, fit: Option<&Fit>) -> Option<u64> {
    let now = limit.value as f64;
    let times = (0.9 / cpu.max(0.01)).clamp(2.0, MOST_RAISED);
    let most = fit.map_or(f64::INFINITY, |fit| fit.workers);
    let to = rounded((now * times).min(most));
    (to as f64 > now).then_some(to)
}

/// Downwards, to two digits.
fn rounded(value: f64) -> u64 {
    let step = 10_f64.powf((value.max(1.0).log10().floor() - 1.0).max(0.0));
    ((value / step).floor() * step).max(1.0) as u64
}

/// What is said of memory when it does not hold what is worked on.
fn memory_short(seen: &Seen<'_>) -> Option<Change> {
    [Cause::MemoryThrash, Cause::OutOfMemory, Cause::FileCacheThrash].into_iter().find_map(|cause| seen.shows(cause))
}

fn holds(seen: &Seen<'_>, door: Door) -> bool {
    seen.check.running.kind.holds_workers() && seen.check.running.keeps_alive() && door.idle > 0
}
