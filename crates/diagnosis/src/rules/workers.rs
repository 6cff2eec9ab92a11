//! The door, the workers behind it, and what they wait for.

use super::memory::stalls;
use super::{
    at_once, cpu_is_full, cpu_used, is_calm, memory_is_full, mostly_answers, offered, room, run_queue, thread_wait,
    worker_numbers,
};
use crate::evidence::Evidence;
use crate::number::{Numbers, Quantity};
use crate::thresholds::{
    ALONE, ALONE_WORK, AT_ONCE_LEAST, AT_ONCE_PART, CPU_FULL, CPU_ROOM, CPU_WAITED_FOR, ENDING, GENERATOR_FULL,
    HELD_PART, LOCKED, NEAR_LIMIT, SINGLE_CORE, THREAD_WAIT,
};

pub(super) fn accept_queue_overflow(e: &Evidence) -> Option<Numbers> {
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

pub(super) fn lock_serialised(e: &Evidence) -> Option<Numbers> {
    let waiters = e.workers.lock_waiters.filter(|_| mostly_answers(e))?;
    let others = e.in_work() - 1.0;
    (waiters >= 1.0 && waiters >= LOCKED * others)
        .then(|| worker_numbers(e).with(Quantity::LockWaiters, waiters).and(e.cpu.of_server()))
}

/// Requests wait for something that is none of this machine's own resources, and lets them in a few at a time.
pub(super) fn backend_serialised(e: &Evidence) -> Option<Numbers> {
    let room = cpu_used(e)? < CPU_ROOM && e.offered.generator_share < GENERATOR_FULL && !stalls(e);
    let numbers = few_at_once(e).or_else(|| waits_behind(e)).filter(|_| room && mostly_answers(e))?;
    Some(worker_numbers(e).and(numbers).with(Quantity::CpuUsed, cpu_used(e)))
}

/// Many requests in work, few worked on at once (Little's law), and neither the CPUs nor the disks nor a lock of files are why. Only of
/// pages that take their time by waiting.
fn few_at_once(e: &Evidence) -> Option<Numbers> {
    let (alone, cores) = e.offered.alone.zip(e.cpu.server_cores)?;
    let at_once = at_once(e, alone);
    let waits = alone >= ALONE && cores <= ALONE_WORK * at_once;
    // Who waits at the server's own door, or for one of its threads, is not in work yet.
    let inside = e.offered.concurrency - e.workers.queue.unwrap_or(0.0) - e.workers.unread.unwrap_or(0.0);
    let in_work = e.in_work().min(inside);
    let few = at_once >= AT_ONCE_LEAST && at_once <= AT_ONCE_PART * in_work;
    (waits && few).then(|| {
        Numbers::default()
            .with(Quantity::AtOnce, at_once)
            .with(Quantity::PageAlone, alone)
            .with(Quantity::FullestQueue, e.workers.queue_elsewhere.filter(|&queue| queue >= 1.0))
    })
}

/// Most of the requests have come through the server and are not accepted by those behind it.
fn waits_behind(e: &Evidence) -> Option<Numbers> {
    let inside = inside_and_behind(e)?;
    is_most(e, inside).then(|| behind_numbers(e))
}

/// Most of the requests wait inside the server: no server behind it has one of them in work or at its door.
pub(super) fn held_in_front(e: &Evidence) -> Option<Numbers> {
    let held = inside_and_behind(e)? - e.workers.queue_behind?;
    let room = cpu_used(e)? < CPU_ROOM && e.offered.generator_share < GENERATOR_FULL && !stalls(e);
    (is_most(e, held) && room && mostly_answers(e)).then(|| {
        worker_numbers(e).and(behind_numbers(e)).with(Quantity::HeldInFront, held).with(Quantity::CpuUsed, cpu_used(e))
    })
}

/// Requests of the cell's own load that wait neither at the server's door nor to be read or sent, and that no server behind it has accepted.
/// Connections that those have of others, or keep for later, make it less, never more. Of pages that are known to be worked on side by side it
/// is not asked: the server itself has them.
fn inside_and_behind(e: &Evidence) -> Option<f64> {
    let accepted = e.workers.accepted_behind?;
    let in_flight = e.offered.own_concurrency;
    let worked_on = e.offered.alone.is_some_and(|alone| at_once(e, alone) > AT_ONCE_PART * in_flight);
    let seen = [e.workers.queue, e.workers.unread, e.network.sending].into_iter().flatten().sum::<f64>();
    (!worked_on).then_some(in_flight - accepted - seen)
}

/// Whether so many are most of what is in flight, and wait for longer than it takes to pass a request on (Little's law).
fn is_most(e: &Evidence, waiting: f64) -> bool {
    let wait = waiting / e.offered.goodput;
    waiting >= 2.0 && waiting >= AT_ONCE_PART * e.offered.own_concurrency && wait.is_finite() && wait >= THREAD_WAIT
}

fn behind_numbers(e: &Evidence) -> Numbers {
    offered(e)
        .with(Quantity::QueueBehind, e.workers.queue_behind)
        .with(Quantity::AcceptedBehind, e.workers.accepted_behind)
}

/// Waiting at the door while workers have nothing to do but to wait for clients that say nothing.
pub(super) fn keep_alive_held(e: &Evidence) -> Option<Numbers> {
    let limit = e.workers.limit?;
    let many = |held: f64| held >= 1.0 && held >= HELD_PART * limit;
    // Of others, as a check has seen them: no request of ours finds a worker there.
    if e.workers.held.is_some_and(many) {
        return more_is_asked(e).then(|| worker_limit_numbers(e));
    }
    // As the server tells it: whoever asks without a pause is never seen to rest for long.
    let kept = e.workers.kept.filter(|&kept| many(kept))?;
    let all = e.workers.busy.is_some_and(|busy| busy >= limit) && e.workers.queue.is_some_and(|queue| queue >= 1.0);
    let rest = cpu_used(e)? < CPU_ROOM && e.offered.generator_share < GENERATOR_FULL;
    (all && rest).then(|| worker_limit_numbers(e).with(Quantity::HeldWorkers, kept))
}

pub(super) fn worker_limit_too_low(e: &Evidence) -> Option<Numbers> {
    let room = cpu_used(e)? < CPU_ROOM && !memory_is_full(e);
    (limit_reached(e) && room).then(|| worker_limit_numbers(e))
}

pub(super) fn worker_limit_reached(e: &Evidence) -> Option<Numbers> {
    let between = cpu_used(e).is_none_or(|used| used >= CPU_ROOM) && !cpu_is_full(e);
    (limit_reached(e) && between && !memory_is_full(e)).then(|| worker_limit_numbers(e))
}

pub(super) fn worker_limit_right(e: &Evidence) -> Option<Numbers> {
    (limit_reached(e) && (cpu_is_full(e) || memory_is_full(e))).then(|| worker_limit_numbers(e))
}

/// Requests wait at the door while a good part of the processes has ended and is not begun anew yet.
pub(super) fn processes_ending(e: &Evidence) -> Option<Numbers> {
    let (ending, processes) = e.workers.ending.zip(e.workers.most)?;
    let many = processes >= 1.0 && ending.rate >= ENDING * processes;
    let waits = e.workers.queue.is_some_and(|queue| queue >= 1.0);
    // While none of them is there nothing works, so the CPU is busy for a part of the time only, however full it is then.
    let room = cpu_used(e)? < CPU_FULL && !memory_is_full(e);
    (many && waits && room && mostly_answers(e)).then(|| {
        worker_numbers(e)
            .with(Quantity::ConnectionsEach, ending.after)
            .with(Quantity::ProcessesEnding, ending.rate)
            .with(Quantity::CpuUsed, cpu_used(e))
    })
}

/// Nobody at the door finds a worker, and the limit is not why: those that there may be are not there yet.
pub(super) fn workers_starting(e: &Evidence) -> Option<Numbers> {
    let more = e.workers.limit.zip(e.workers.busy).is_some_and(|(limit, busy)| busy < limit) && !limit_reached(e);
    let waits = e.workers.ready.is_some_and(|ready| ready < 1.0) && e.workers.queue.is_some_and(|queue| queue >= 1.0);
    let room = cpu_used(e).is_some() && !cpu_is_full(e) && !memory_is_full(e);
    (more && waits && room && mostly_answers(e)).then(|| worker_limit_numbers(e))
}

/// The server begins its workers one after another, and has begun few of those that it may have.
fn far_from_limit(e: &Evidence) -> bool {
    let all_busy = e.workers.ready.is_some_and(|ready| ready < 1.0);
    all_busy && e.workers.limit.zip(e.workers.busy).is_some_and(|(limit, busy)| busy < NEAR_LIMIT * limit)
}

/// Nobody reads them, though there is a CPU to do it on: no thread is free. All of them may wait for something else; a backend that can be
/// told from them comes first, and so does a limit that is known.
pub(super) fn too_few_threads(e: &Evidence) -> Option<Numbers> {
    let wait = thread_wait(e)?;
    // One CPU's worth of work is a server that cannot use two, which has a name of its own.
    let single = e.cpu.server_cores.is_some_and(|cores| SINGLE_CORE.contains(&cores));
    let room = cpu_used(e)? < CPU_ROOM && !may_wait_for_a_cpu(e) && !memory_is_full(e) && is_calm(e);
    (room && !single && e.offered.generator_share < GENERATOR_FULL && mostly_answers(e)).then(|| {
        worker_numbers(e)
            .and(offered(e))
            .with(Quantity::Unread, e.workers.unread)
            .with(Quantity::ThreadWait, wait)
            .with(Quantity::CpuUsed, cpu_used(e))
            .with(Quantity::CpuPressure, e.cpu.pressure)
    })
}

/// Whether a thread that is free may have to wait for a CPU before it reads. Where nobody tells, whatever others do may be done on the server's
/// CPUs.
fn may_wait_for_a_cpu(e: &Evidence) -> bool {
    let crowd = |(server, others): (f64, f64)| (server + others) / e.cpu.server_cpus >= CPU_ROOM;
    match e.cpu.pressure {
        Some(waited) => waited >= CPU_WAITED_FOR,
        None => {
            e.cpu.host.is_some_and(|cpu| cpu.busy() + cpu.steal >= CPU_ROOM)
                || e.cpu.server_cores.zip(e.cpu.other_cores).is_some_and(crowd)
        }
    }
}

/// Whether the limit is why requests wait: more is asked for than there may be workers, and about as many are there.
fn limit_reached(e: &Evidence) -> bool {
    more_is_asked(e) && !far_from_limit(e)
}

/// Whether more is asked for than there are workers, and it shows: a queue at the door or all workers busy. Without a view of
/// either, more requests in flight than workers is the same thing.
fn more_is_asked(e: &Evidence) -> bool {
    if let Some(limit) = e.workers.full_pool().and_then(|pool| pool.limit) {
        return limit < e.offered.connections && mostly_answers(e);
    }
    let limit = e.workers.free_limit().filter(|&limit| limit < e.offered.connections && mostly_answers(e));
    let Some(limit) = limit else { return false };
    let busy = e.workers.busy.is_some_and(|busy| busy >= limit);
    let queue = e.workers.queue.map_or(e.offered.concurrency > limit, |queue| queue >= 1.0);
    busy || queue
}

fn worker_limit_numbers(e: &Evidence) -> Numbers {
    worker_numbers(e)
        .and(room(e))
        .with(Quantity::CpuUsed, cpu_used(e))
        .with(Quantity::CpuPressure, e.cpu.pressure)
        .with(Quantity::RunQueue, run_queue(e))
}
