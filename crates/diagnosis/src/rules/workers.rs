//! The door, the workers behind it, and what they wait for.

use super::memory::stalls;
use super::{
    at_once, cpu_is_full, cpu_used, is_calm, memory_is_full, mostly_answers, offered, room, run_queue, thread_wait,
    worker_numbers,
};
use crate::evidence::{Behind, Evidence};
use crate::number::{Numbers, Quantity};
use crate::thresholds::{
    ALONE, ALONE_WORK, AT_ONCE_LEAST, AT_ONCE_PART, CPU_FULL, CPU_ROOM, CPU_WAITED_FOR, ENDING, GENERATOR_FULL,
    HELD_PART, HELD_TIME, LOCKED, MISSING, NEAR_LIMIT, NOBODY_BUSY, OVERFLOWS, SHUT_TIME, SINGLE_CORE, THREAD_WAIT,
    WAIT_BEHIND,
};

pub(super) fn accept_queue_overflow(e: &Evidence) -> Option<Numbers> {
    // The counter is the host's. A queue longer than all our connections together is not the one that overflowed; one behind it may be.
    let behind = e.workers.behind.is_some_and(|behind| behind.queue >= 1.0);
    let ours = behind || e.workers.queue_limit.is_none_or(|limit| e.offered.connections > limit);
    let each = e.workers.each_counts && e.workers.overflows.is_some_and(|n| n > 0);
    let turned_away = ours && (each || e.workers.turned_away.is_some_and(|part| part >= OVERFLOWS));
    // The kernel's test is "more than", so a full queue holds one more than its limit. Where it counts whom it turns away, one look at a full
    // queue says nothing more; most of them do.
    let seen = if e.workers.overflows.is_some() { e.workers.queue } else { e.workers.queue_most };
    let brim_full = seen.zip(e.workers.queue_limit).is_some_and(|(queue, limit)| queue > limit);
    (turned_away || brim_full).then(|| {
        worker_numbers(e)
            .with(Quantity::ListenOverflows, e.workers.overflows.map(|n| n as f64))
            .with(Quantity::TurnedAway, e.workers.turned_away)
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
    let others = e.offered.generator_share < GENERATOR_FULL && !stalls(e) && mostly_answers(e);
    let room = cpu_used(e)? < CPU_ROOM;
    // Who is seen to wait there does so, however busy a CPU is that is not full; a queue at a door of which no more is known may be its doing.
    let seen = || waits_behind(e).filter(|_| !cpu_is_full(e));
    let guessed = || waits_at_the_next_door(e).filter(|_| room);
    let numbers = few_at_once(e).filter(|_| room).or_else(seen).or_else(guessed).filter(|_| others)?;
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

/// Most of the requests have come through the server, and wait at the doors of those behind it; or some of them do, and the others for these.
fn waits_behind(e: &Evidence) -> Option<Numbers> {
    let behind = e.workers.behind?;
    let for_others = behind.queue >= 1.0 && passes_on(e, behind) && is_most(e, behind.queue + behind.held);
    (is_most(e, behind.queue) || for_others).then(|| offered(e).and(behind.numbers()))
}

/// As many connections as most of the requests wait at another door of the host, and none at the server's own, where servers stand behind it
/// of which no more is known.
fn waits_at_the_next_door(e: &Evidence) -> Option<Numbers> {
    let queue = e.workers.queue_elsewhere.filter(|_| e.behind && e.workers.behind.is_none())?;
    let most = queue >= WAIT_BEHIND && queue >= AT_ONCE_PART * e.offered.concurrency;
    most.then(|| offered(e).with(Quantity::FullestQueue, queue))
}

/// Most of the requests wait inside the server: no server behind it has one of them in work or at its door.
pub(super) fn held_in_front(e: &Evidence) -> Option<Numbers> {
    let behind = e.workers.behind.filter(|&behind| passes_on(e, behind) && is_most(e, behind.held))?;
    // Whom a backend turned away waits in front to come again.
    let turned_away = e.workers.overflows.is_some_and(|n| n > 0);
    let room = cpu_used(e).is_some() && !cpu_is_full(e) && is_calm(e) && !turned_away;
    (room && mostly_answers(e)).then(|| {
        let held = Numbers::default().with(Quantity::HeldInFront, behind.held).with(Quantity::CpuUsed, cpu_used(e));
        worker_numbers(e).and(offered(e)).and(behind.numbers()).and(held)
    })
}

/// Whether requests that are nowhere else wait in the server to be passed on. It passes some on; it does not work on them side by side by
/// itself; and neither it nor the client is so busy that answers wait for it.
fn passes_on(e: &Evidence, behind: Behind) -> bool {
    let worked_on = e.offered.alone.is_some_and(|alone| at_once(e, alone) > AT_ONCE_PART * e.offered.own_concurrency);
    let at_ease = e.cpu.server_cores.is_some_and(|cores| cores < NOBODY_BUSY);
    behind.accepted >= 1.0 && !worked_on && at_ease && e.offered.generator_share < NOBODY_BUSY
}

/// Whether so many are most of the cell's own requests in flight, and wait for longer than it takes to pass one on (Little's law).
fn is_most(e: &Evidence, waiting: f64) -> bool {
    let wait = waiting / e.offered.goodput;
    waiting >= WAIT_BEHIND
        && waiting >= AT_ONCE_PART * e.offered.own_concurrency
        && wait.is_finite()
        && wait >= THREAD_WAIT
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
    // Those who hold them come in bursts, as visitors do, and so do those who wait.
    let shut = e.workers.shut.filter(|shut| shut.part >= SHUT_TIME)?;
    let waited = e.workers.queued.is_some_and(|queued| queued >= HELD_TIME);
    let rest = cpu_used(e)? < CPU_ROOM && e.offered.generator_share < GENERATOR_FULL;
    (waited && rest).then(|| worker_limit_numbers(e).with(Quantity::HeldWorkers, shut.kept))
}

pub(super) fn worker_limit_too_low(e: &Evidence) -> Option<Numbers> {
    // Of a client that can do no more, more workers are given nothing to do.
    let room = cpu_used(e)? < CPU_ROOM && !memory_is_full(e) && e.offered.generator_share < GENERATOR_FULL;
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
    let ending = e.workers.ending?;
    let many = ending.rate >= ENDING * ending.most && ending.least <= (1.0 - MISSING) * ending.most;
    let waits = e.workers.queue.is_some_and(|queue| queue >= 1.0);
    // While none of them is there nothing works, so the CPU is busy for a part of the time only, however full it is then.
    let room = cpu_used(e)? < CPU_FULL && !memory_is_full(e);
    (many && waits && room && mostly_answers(e)).then(|| {
        worker_numbers(e)
            .with(Quantity::ConnectionsEach, ending.after)
            .with(Quantity::ProcessesEnding, ending.rate)
            .with(Quantity::LeastWorkers, ending.least)
            .with(Quantity::CpuUsed, cpu_used(e))
    })
}

/// Nobody at the door finds a worker, and the limit is not why: those that there may be are not there yet.
pub(super) fn workers_starting(e: &Evidence) -> Option<Numbers> {
    let more = e.workers.limit.zip(e.workers.busy).is_some_and(|(limit, busy)| busy < limit) && !limit_reached(e);
    let waits = e.workers.ready.is_some_and(|ready| ready < 1.0) && e.workers.queue.is_some_and(|queue| queue >= 1.0);
    let of_pool = e.workers.pool.is_some_and(|pool| pool.is_starting());
    let room = cpu_used(e).is_some() && !cpu_is_full(e) && !memory_is_full(e);
    ((more && waits || of_pool) && room && mostly_answers(e)).then(|| worker_limit_numbers(e))
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
    // A timetable has more connections than it uses at a time, and a look at the door meets now and then who has just come.
    let near = e.offered.concurrency >= NEAR_LIMIT * limit;
    let queue = e.workers.queue.map_or(e.offered.concurrency > limit, |queue| queue >= 1.0 && near);
    busy || queue
}

fn worker_limit_numbers(e: &Evidence) -> Numbers {
    worker_numbers(e)
        .and(room(e))
        .with(Quantity::CpuUsed, cpu_used(e))
        .with(Quantity::CpuPressure, e.cpu.pressure)
        .with(Quantity::RunQueue, run_queue(e))
}
