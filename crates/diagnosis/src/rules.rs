//! The causes: one table, one line each, in the order of precedence.
//!
//! A line says when its cause is present, which later lines it makes meaningless and what it brings about. Thresholds have a file
//! of their own.

use crate::Finding;
use crate::cause::Cause;
use crate::evidence::{Evidence, Pressure, Whose};
use crate::number::{Numbers, Quantity};
use crate::thresholds::{
    BOTH_WAYS, CPU_FULL, CPU_ROOM, CPU_WAITED_FOR, DISK_BUSY, DISK_FULL, DISK_OVER_MEMORY, DISK_SWAP_SHARE, FAILURES,
    FIT_IN_SIGHT, GENERATOR_FULL, HELD_PART, HOST_PLENTY, IOWAIT_QUIET, LOCKED, LONGEST_GAP, MAJOR_FAULTS,
    MEMORY_QUIET, ONE_CORE, OWN_PART, READ_BACK_PART, REFAULT_PER_REQUEST, SINGLE_CORE, THRASH_FULL, THRASH_SOME,
    THRASH_USER, UNWATCHED,
};
use model::trial::Stop;

/// One cause: when it is present, with which numbers, and which later lines it makes meaningless.
pub struct Rule {
    /// The cause.
    pub cause: Cause,
    /// The numbers that show it; `None` when it is not there or not known.
    pub when: fn(&Evidence) -> Option<Numbers>,
    /// Later causes that must not be named beside it, because the numbers that show them are its effect.
    pub excludes: &'static [Cause],
    /// The causes it brings about.
    pub leads_to: &'static [Cause],
}

/// The table. The first line that fires is the primary cause, the others contribute.
///
/// A host that swaps for others comes before all, because what it shows is not the server's doing. Memory follows because a thrashing
/// server looks busy, slow at its disk and short of workers, all at once. The lock comes before the CPU because its single worker
/// fills a machine of one CPU. Offered concurrency comes before the CPU because fewer
/// requests than CPUs cannot fill a server's CPUs, whoever else does. The monitor's own state comes last: it weakens what was
/// found, and is the answer only when nothing was.
pub const RULES: &[Rule] = &[
    Rule {
        cause: Cause::HostDisturbed,
        when: host_disturbed,
        excludes: &[
            Cause::MemoryThrash,
            Cause::WorkerLimitTooHigh,
            Cause::FileCacheThrash,
            Cause::AcceptQueueOverflow,
            Cause::DiskBound,
            Cause::LockSerialised,
            Cause::WorkerLimitTooLow,
            Cause::WorkerLimitReached,
            Cause::WorkerLimitRight,
            Cause::OfferedConcurrency,
            Cause::CpuBound,
            Cause::OneCoreBusy,
        ],
        leads_to: &[Cause::FailuresDominate],
    },
    Rule {
        cause: Cause::MemoryThrash,
        when: memory_thrash,
        excludes: &[
            Cause::DiskBound,
            Cause::WorkerLimitTooLow,
            Cause::WorkerLimitReached,
            Cause::WorkerLimitRight,
            Cause::OfferedConcurrency,
            Cause::CpuBound,
            Cause::OneCoreBusy,
        ],
        leads_to: &[Cause::AcceptQueueOverflow, Cause::FailuresDominate],
    },
    Rule { cause: Cause::OutOfMemory, when: out_of_memory, excludes: &[], leads_to: &[Cause::FailuresDominate] },
    Rule {
        cause: Cause::WorkerLimitTooHigh,
        when: worker_limit_too_high,
        excludes: &[],
        leads_to: &[Cause::MemoryThrash, Cause::OutOfMemory],
    },
    Rule {
        cause: Cause::FileCacheThrash,
        when: file_cache_thrash,
        excludes: &[
            Cause::WorkerLimitTooLow,
            Cause::WorkerLimitReached,
            Cause::WorkerLimitRight,
            Cause::CpuBound,
            Cause::OneCoreBusy,
        ],
        leads_to: &[Cause::AcceptQueueOverflow, Cause::DiskBound, Cause::FailuresDominate],
    },
    Rule {
        cause: Cause::AcceptQueueOverflow,
        when: accept_queue_overflow,
        excludes: &[Cause::OfferedConcurrency],
        leads_to: &[Cause::FailuresDominate],
    },
    Rule {
        cause: Cause::DiskBound,
        when: disk_bound,
        excludes: &[Cause::WorkerLimitTooLow, Cause::OfferedConcurrency],
        leads_to: &[],
    },
    Rule {
        cause: Cause::LockSerialised,
        when: lock_serialised,
        excludes: &[
            Cause::WorkerLimitTooLow,
            Cause::WorkerLimitReached,
            Cause::WorkerLimitRight,
            Cause::OfferedConcurrency,
        ],
        leads_to: &[Cause::OneCoreBusy],
    },
    Rule {
        cause: Cause::KeepAliveHeld,
        when: keep_alive_held,
        excludes: &[
            Cause::WorkerLimitTooLow,
            Cause::WorkerLimitReached,
            Cause::WorkerLimitRight,
            Cause::OfferedConcurrency,
            Cause::OneCoreBusy,
        ],
        leads_to: &[Cause::AcceptQueueOverflow],
    },
    Rule {
        cause: Cause::WorkerLimitTooLow,
        when: worker_limit_too_low,
        excludes: &[Cause::OfferedConcurrency, Cause::OneCoreBusy],
        leads_to: &[Cause::AcceptQueueOverflow],
    },
    Rule {
        cause: Cause::WorkerLimitReached,
        when: worker_limit_reached,
        excludes: &[Cause::OfferedConcurrency],
        leads_to: &[],
    },
    Rule {
        cause: Cause::WorkerLimitRight,
        when: worker_limit_right,
        excludes: &[Cause::OfferedConcurrency],
        leads_to: &[],
    },
    Rule {
        cause: Cause::FailuresDominate,
        when: failures_dominate,
        excludes: &[Cause::OfferedConcurrency],
        leads_to: &[],
    },
    Rule {
        cause: Cause::OfferedConcurrency,
        when: offered_concurrency,
        excludes: &[Cause::CpuBound],
        leads_to: &[Cause::OneCoreBusy],
    },
    Rule { cause: Cause::CpuBound, when: cpu_bound, excludes: &[Cause::OneCoreBusy], leads_to: &[] },
    Rule { cause: Cause::GeneratorSaturated, when: generator_saturated, excludes: &[], leads_to: &[] },
    Rule { cause: Cause::OneCoreBusy, when: one_core_busy, excludes: &[], leads_to: &[] },
    Rule { cause: Cause::MonitorUnfit, when: monitor_unfit, excludes: &[], leads_to: &[] },
];

/// Everything the table finds, in its order; at least one: [`Cause::Unexplained`] when no line fires.
#[must_use]
pub fn findings(evidence: &Evidence) -> Vec<Finding> {
    let mut excluded: Vec<Cause> = Vec::new();
    let mut fired: Vec<(&Rule, Numbers)> = Vec::new();
    for rule in RULES {
        if excluded.contains(&rule.cause) {
            continue;
        }
        if let Some(numbers) = (rule.when)(evidence) {
            excluded.extend(rule.excludes);
            fired.push((rule, numbers));
        }
    }
    let present: Vec<Cause> = fired.iter().map(|(rule, _)| rule.cause).collect();
    let finding = |(rule, numbers): (&Rule, Numbers)| Finding {
        id: rule.cause.id(),
        cause: rule.cause,
        numbers,
        leads_to: rule.leads_to.iter().copied().find(|cause| present.contains(cause)),
    };
    let mut findings: Vec<Finding> = fired.into_iter().map(finding).collect();
    if findings.is_empty() {
        let cause = Cause::Unexplained;
        findings.push(Finding { id: cause.id(), cause, numbers: overview(evidence), leads_to: None });
    }
    findings
}

// ---- the rules, in the table's order --------------------------------------------------------------------------------

/// With a group, the guard that watches the host's swap-in counts what the group reads back as the server's. Without one, a server
/// can only be short of memory when the host is: where plenty is available, somebody else has a limit and runs into it.
fn host_disturbed(e: &Evidence) -> Option<Numbers> {
    let disturbed = if e.grouped {
        e.stopped == Some(Stop::HostSwapIn)
    } else {
        let plenty = e.memory.host_available.is_some_and(|available| available >= HOST_PLENTY);
        plenty && (thrashing(e) || stalls(e))
    };
    disturbed.then(|| e.memory.traffic())
}

fn memory_thrash(e: &Evidence) -> Option<Numbers> {
    thrashing(e).then(|| e.memory.traffic())
}

fn out_of_memory(e: &Evidence) -> Option<Numbers> {
    let kills = e.memory.oom_kills.filter(|&kills| kills > 0)?;
    Some(Numbers::default().with(Quantity::OomKills, kills as f64).and(e.memory.swap_numbers()).and(failures(e)))
}

/// Only beside its effect: that memory would not hold all workers is no harm while they do not all work.
fn worker_limit_too_high(e: &Evidence) -> Option<Numbers> {
    let harm = thrashing(e) || e.memory.oom_kills.is_some_and(|kills| kills > 0);
    let fit = e.memory.workers_that_fit()?;
    // A server without a limit accepts whatever is offered.
    let accepted = e.workers.limit.unwrap_or(e.offered.connections);
    (harm && accepted > fit).then(|| worker_numbers(e).and(room(e)))
}

fn file_cache_thrash(e: &Evidence) -> Option<Numbers> {
    let files = e.memory.read_back().is_some_and(|(_, files)| files >= READ_BACK_PART);
    (stalls(e) && files).then(|| e.memory.rereading())
}

fn accept_queue_overflow(e: &Evidence) -> Option<Numbers> {
    // The counter is the host's. A queue longer than all our connections together is not the one that overflowed.
    let ours = e.workers.queue_limit.is_none_or(|limit| e.offered.connections > limit);
    let turned_away = ours && e.workers.overflows.is_some_and(|n| n > 0);
    // The kernel's test is "more than", so a full queue holds one more than its limit.
    let brim_full = e.workers.queue_most.zip(e.workers.queue_limit).is_some_and(|(most, limit)| most > limit);
    (turned_away || brim_full).then(|| {
        worker_numbers(e)
            .with(Quantity::ListenOverflows, e.workers.overflows.map(|n| n as f64))
            .with(Quantity::AcceptQueueMost, e.workers.queue_most)
            .with(Quantity::AcceptQueueLimit, e.workers.queue_limit)
    })
}

fn disk_bound(e: &Evidence) -> Option<Numbers> {
    let waited = match e.disk.pressure {
        Some(io) => {
            let memory = e.memory.pressure.filter(|memory| memory.whose == io.whose).map_or(0.0, |memory| memory.full);
            io.full >= DISK_FULL && memory < io.full * DISK_OVER_MEMORY
        }
        None => e.disk.busy.is_some_and(|busy| busy >= DISK_BUSY) && e.disk.queue.is_some_and(|queue| queue > 1.0),
    };
    (waited && !swaps_mostly(e)).then(|| e.disk.numbers().and(e.cpu.shares()))
}

fn lock_serialised(e: &Evidence) -> Option<Numbers> {
    let waiters = e.workers.lock_waiters.filter(|_| mostly_answers(e))?;
    let others = e.in_work() - 1.0;
    (waiters >= 1.0 && waiters >= LOCKED * others)
        .then(|| worker_numbers(e).with(Quantity::LockWaiters, waiters).and(e.cpu.of_server()))
}

/// Waiting at the door while workers have nothing to do but to wait for clients that say nothing.
fn keep_alive_held(e: &Evidence) -> Option<Numbers> {
    let (held, limit) = e.workers.held.zip(e.workers.limit)?;
    let many = held >= 1.0 && held >= HELD_PART * limit;
    (many && limit_reached(e)).then(|| worker_limit_numbers(e))
}

fn worker_limit_too_low(e: &Evidence) -> Option<Numbers> {
    let room = cpu_used(e)? < CPU_ROOM && !memory_is_full(e);
    (limit_reached(e) && room).then(|| worker_limit_numbers(e))
}

fn worker_limit_reached(e: &Evidence) -> Option<Numbers> {
    let between = cpu_used(e).is_none_or(|used| used >= CPU_ROOM) && !cpu_is_full(e);
    (limit_reached(e) && between && !memory_is_full(e)).then(|| worker_limit_numbers(e))
}

fn worker_limit_right(e: &Evidence) -> Option<Numbers> {
    (limit_reached(e) && (cpu_is_full(e) || memory_is_full(e))).then(|| worker_limit_numbers(e))
}

fn failures_dominate(e: &Evidence) -> Option<Numbers> {
    (e.offered.failed_share() >= FAILURES).then(|| failures(e).with(Quantity::Goodput, e.offered.goodput))
}

/// Nothing was used up: the earlier lines speak for memory, disk and workers, this one for the CPU and the generator.
fn offered_concurrency(e: &Evidence) -> Option<Numbers> {
    let used = cpu_used(e)?;
    // A request keeps about one CPU busy at most, so fewer requests than CPUs leave some to spare, whatever others do with them.
    let fewer_than_cpus = e.offered.connections < e.cpu.server_cpus
        && e.cpu.server_cores.is_none_or(|cores| cores <= e.offered.connections * ONE_CORE.end());
    let calm = e.cpu.host.is_none_or(|cpu| cpu.iowait < IOWAIT_QUIET) && !stalls(e);
    // One CPU's worth of work from several requests is a server that cannot use two.
    let single = e.in_work() > 1.0 && e.cpu.server_cores.is_some_and(|cores| SINGLE_CORE.contains(&cores));
    let idle_generator = e.offered.generator_share < GENERATOR_FULL;
    (idle_generator && calm && !single && (used < CPU_ROOM || fewer_than_cpus))
        .then(|| worker_numbers(e).and(offered(e)).and(e.cpu.of_server()).with(Quantity::CpuUsed, used))
}

fn cpu_bound(e: &Evidence) -> Option<Numbers> {
    cpu_is_full(e).then(|| {
        e.cpu
            .shares()
            .and(e.cpu.of_server())
            .and(offered(e))
            .with(Quantity::CpuUsed, cpu_used(e))
            .with(Quantity::Runnable, e.cpu.runnable)
    })
}

fn generator_saturated(e: &Evidence) -> Option<Numbers> {
    (e.offered.generator_share >= GENERATOR_FULL)
        .then(|| offered(e).with(Quantity::GeneratorShare, e.offered.generator_share).and(e.cpu.of_server()))
}

fn one_core_busy(e: &Evidence) -> Option<Numbers> {
    let cores = e.cpu.server_cores?;
    (e.cpu.server_cpus > 1.0 && ONE_CORE.contains(&cores)).then(|| e.cpu.of_server().and(e.cpu.shares()))
}

fn monitor_unfit(e: &Evidence) -> Option<Numbers> {
    let blind = e.observed.readings < 2;
    let gaps = e.observed.unwatched > UNWATCHED || e.observed.gap_share > LONGEST_GAP;
    (blind || gaps || e.observed.faults > 0).then(|| e.observed.numbers())
}

// ---- what several rules ask -----------------------------------------------------------------------------------------

/// Whether swapped memory is fetched back all the time. Swap in use, or pages leaving for good, is not that.
///
/// Waiting for memory does not tell by itself what came back: pages of files that are read again count as well. Where the kernel
/// does not count the two apart, swap is what is thought of.
fn thrashing(e: &Evidence) -> bool {
    let some = |pressure: Option<Pressure>| pressure.is_some_and(|p| p.some >= THRASH_SOME);
    let swaps = e.memory.read_back().is_none_or(|(swap, _)| swap >= READ_BACK_PART);
    let refaults = e.memory.refault_per_request.is_some_and(|bytes| bytes >= REFAULT_PER_REQUEST);
    let shows = match e.memory.pressure {
        Some(_) => refaults && (some(e.memory.pressure) || some(e.disk.pressure)),
        None => refaults || host_thrashes(e),
    };
    let swapped_in = e.stopped == Some(Stop::HostSwapIn) && !e.grouped;
    swapped_in || shows || (stalls(e) && swaps)
}

/// Whether everything waited for memory so long that little else can be judged; the guard for thrash measures just that.
fn stalls(e: &Evidence) -> bool {
    e.stopped == Some(Stop::Thrash) || e.memory.pressure.is_some_and(|memory| memory.full >= THRASH_FULL)
}

/// The judgement from vmstat alone, for kernels without PSI. Busy CPUs do not speak against it: on fast swap it is the kernel's own
/// reclaim that fills them.
fn host_thrashes(e: &Evidence) -> bool {
    let both_ways = e.memory.swapped_both_ways.is_some_and(|share| share >= BOTH_WAYS);
    let faults = e.memory.major_faults.is_some_and(|(_, rate)| rate >= MAJOR_FAULTS);
    let little_work = e.cpu.host.is_some_and(|cpu| cpu.user < THRASH_USER);
    both_ways && faults && little_work
}

/// Whether swap is most of what the disks are busy with, as far as is known.
pub(crate) fn swaps_mostly(e: &Evidence) -> bool {
    e.disk.swap_share.is_some_and(|share| share >= DISK_SWAP_SHARE)
}

/// Whether there is a throughput to explain: where most requests fail, that is what is wrong.
fn mostly_answers(e: &Evidence) -> bool {
    e.offered.failed <= e.offered.good
}

/// Whether more is asked for than there are workers, and it shows: a queue at the door or all workers busy. Without a view of
/// either, more requests in flight than workers is the same thing.
fn limit_reached(e: &Evidence) -> bool {
    if let Some(limit) = e.workers.full_pool().and_then(|pool| pool.limit) {
        return limit < e.offered.connections && mostly_answers(e);
    }
    let limit = e.workers.free_limit().filter(|&limit| limit < e.offered.connections && mostly_answers(e));
    let Some(limit) = limit else { return false };
    let busy = e.workers.busy.is_some_and(|busy| busy >= limit);
    let queue = e.workers.queue.map_or(e.offered.concurrency > limit, |queue| queue >= 1.0);
    busy || queue
}

/// Use of the CPUs the server may run on, 0 to 1, stolen time included: by the server, or by anyone when the host is full and the
/// server asks for its part of it.
pub(crate) fn cpu_used(e: &Evidence) -> Option<f64> {
    let stolen = e.cpu.host.map_or(0.0, |cpu| cpu.steal);
    let server = e.cpu.server_cores.map(|cores| (cores / e.cpu.server_cpus + stolen).min(1.0));
    let host = e.cpu.host.map(|cpu| cpu.busy() + stolen);
    let (Some(server), Some(host)) = (server, host) else { return server.or(host) };
    let own_cpus = e.cpu.server_cpus < e.cpu.host_cpus;
    let of_server = server < OWN_PART || (own_cpus && host < CPU_FULL);
    Some(if of_server { server } else { server.max(host) })
}

fn cpu_is_full(e: &Evidence) -> bool {
    let waited_for = e.cpu.pressure.is_some_and(|waited| waited >= CPU_WAITED_FOR);
    cpu_used(e).is_some_and(|used| used >= CPU_FULL || (used >= CPU_ROOM && waited_for))
}

/// Whether one more worker would be too many for memory: the server already waits for it, or as many workers as are allowed,
/// all at their largest, leave no room for another. That they rarely are at their largest together is the margin, not a reason to
/// allow more.
fn memory_is_full(e: &Evidence) -> bool {
    let waits = e.memory.pressure.is_some_and(|p| p.whose == Whose::Group && p.full >= MEMORY_QUIET);
    let held = e.workers.binding_limit().zip(e.memory.workers_that_fit()).is_some_and(|(limit, fit)| fit <= limit);
    waits || held
}

fn offered(e: &Evidence) -> Numbers {
    Numbers::default()
        .with(Quantity::Connections, e.offered.connections)
        .with(Quantity::Concurrency, e.offered.concurrency)
}

fn failures(e: &Evidence) -> Numbers {
    Numbers::default()
        .with(Quantity::Failures, e.offered.failed as f64)
        .with(Quantity::FailedShare, e.offered.failed_share())
}

fn worker_numbers(e: &Evidence) -> Numbers {
    e.workers.numbers().with(Quantity::Connections, e.offered.connections)
}

fn worker_limit_numbers(e: &Evidence) -> Numbers {
    worker_numbers(e).and(room(e)).with(Quantity::CpuUsed, cpu_used(e)).with(Quantity::CpuPressure, e.cpu.pressure)
}

/// What memory there is, what a worker takes and, when it is in sight of what was tried, how many fit.
fn room(e: &Evidence) -> Numbers {
    let tried = e.workers.binding_limit().map_or(e.offered.connections, |limit| limit.max(e.offered.connections));
    let fit = e.memory.workers_that_fit().filter(|&fit| fit <= FIT_IN_SIGHT * tried);
    e.memory.room().with(Quantity::WorkersThatFit, fit)
}

fn overview(e: &Evidence) -> Numbers {
    offered(e).and(worker_numbers(e)).and(e.cpu.shares()).and(e.memory.pressures()).with(Quantity::CpuUsed, cpu_used(e))
}
