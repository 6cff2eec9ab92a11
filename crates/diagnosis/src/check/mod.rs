//! What a check of a running server shows beyond the diagnosis of its windows: what fits into memory, who holds workers, and the one
//! next step.
//!
//! [`Seen`] extracts it once, `steps` is the table of what to do about it.

mod change;
mod steps;

pub use change::Change;
pub use steps::{Advice, STEPS, Step};

use crate::evidence::{Evidence, Size, Whose};
use crate::{Diagnosis, judge};
use model::check::{Check, Kind, Limit, Pool, PoolQueue, WorkerMemory};
use model::load::{LoadResult, Quantile};
use model::reading::{Column, Reading};
use model::run::Run;
use model::trial::{Outcome, Trial};

/// Part of the memory that is left alone when workers are counted.
const SPARE: f64 = 0.1;
/// How far from a limit the number of requests worked on at once may be to be that limit.
const ABOUT: f64 = 0.25;
/// Part of a limit that is worked on at once at least where it holds something back.
const WORKED_ON: f64 = 0.5;
/// Clock ticks per second in /proc, the same on every Linux.
const TICKS_PER_SECOND: f64 = 100.0;
/// A pool that makes the answers needs a clock tick for so many of them at least: 10 µs for each, a fifth of what the emptiest page takes.
const ANSWERS_PER_TICK: u64 = 1000;
/// Part of the looks at which a queue is found full, from which it is full too often.
const OFTEN_FULL: f64 = 0.1;
/// A page starts a program for each request when one is there at this part of the looks or more while two or more requests are under way.
const AT_WORK: f64 = 0.5;
/// Each request has one to itself when all together took this part of the largest for each, or more: looks rarely meet all at their largest.
const ONE_EACH: f64 = 1.0 / 3.0;
/// Bytes in a KiB of /proc/meminfo.
const KIB: f64 = 1024.0;

/// A check, judged.
#[derive(Debug, Clone)]
pub struct Checked {
    /// What limited it where most was asked of it; `None` when nothing was measured.
    pub diagnosis: Option<Diagnosis>,
    /// What to do next.
    pub step: Advice,
    /// What else is wrong, in the table's order.
    pub others: Vec<Advice>,
    /// What a worker takes and how many fit, for those that were seen.
    pub fits: Vec<Fit>,
    /// CPUs that neither the server nor the generator kept busy, but somebody did.
    pub other_cores: Option<f64>,
}

/// How many workers memory holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// The pool they are of; the server's own when it is empty.
    pub pool: String,
    /// What they hold now.
    pub held: WorkerMemory,
    /// Bytes of one that works on a request, the most seen, with the program that is started for it.
    pub cost: f64,
    /// Bytes of such a program, the most seen, what it shares with others like it included; 0 where none is started.
    pub program: f64,
    /// Bytes that workers of this kind can have, with a tenth of all memory to spare.
    pub room: f64,
    /// All the memory there is, and whose it is.
    pub memory: Size,
    /// How many fit at that cost.
    pub workers: f64,
    /// How many fit if each shares with others all that it may: more than that surely do not.
    pub most: f64,
    /// How many are allowed.
    pub limit: Option<Limit>,
}

/// What a check shows, extracted once.
pub struct Seen<'a> {
    pub(crate) run: &'a Run,
    pub(crate) check: &'a Check,
    /// Where most was asked of it.
    pub(crate) evidence: Option<Evidence>,
    pub(crate) diagnosis: Option<&'a Diagnosis>,
    /// The pool that is at its limit, and that limit: what the diagnosis says of workers is then said of this pool's.
    pub(crate) pool: Option<(&'a Pool, Limit)>,
    /// The pool whose queue is full, and that queue: the server waits there, or is turned away.
    pub(crate) queue: Option<(&'a Pool, PoolQueue)>,
    pub(crate) fits: &'a [Fit],
    /// Seconds that one request takes alone.
    pub(crate) alone: Option<f64>,
    pub(crate) cpus: u64,
}

/// The windows of a cell.
pub fn windows<'a>(run: &'a Run, cell: &'a str) -> impl Iterator<Item = (&'a Trial, &'a LoadResult)> + 'a {
    run.measured(cell)
}

/// Judges a run that is a check; `None` when it is none.
#[must_use]
pub fn check(run: &Run) -> Option<Checked> {
    let check = run.head.check.as_deref()?;
    let fits = fits(run, check);
    let alone = alone(run, check);
    let pressed = pressed(run);
    let at_once = pressed.and_then(|(_, load)| Some(alone? * load.goodput()));
    let pool = at_once.and_then(|at_once| pool_at_limit(run, check, at_once));
    let queue = full_queue(check);
    let evidence = pressed.map(|(trial, load)| {
        let mut e = evidence(run, trial, load, &fits, at_once, pool.as_ref());
        if queue.is_some() {
            // The server's own fills up behind it, and is not to blame.
            (e.workers.overflows, e.workers.turned_away) = (None, None);
            (e.workers.queue_most, e.workers.queue_limit) = (None, None);
        }
        e
    });
    let diagnosis = evidence.as_ref().map(judge);
    let other_cores = evidence.as_ref().and_then(|e| e.cpu.other_cores);
    let seen = Seen {
        run,
        check,
        evidence,
        diagnosis: diagnosis.as_ref(),
        pool,
        queue,
        fits: &fits,
        alone,
        cpus: u64::from(run.head.host.cpus.max(1)),
    };
    let mut found = steps::found(&seen);
    let step = found.remove(0);
    let others = found.into_iter().filter(|other| other.is_fault).collect();
    Some(Checked { diagnosis, step, others, fits, other_cores })
}

/// The window in which most was asked of the server; of those with answers, if there are any: a short window behind a crowd may have none,
/// and so says nothing. Of several, the median by what it brought, the better of two: a pause of the machine falls into one of them.
fn pressed(run: &Run) -> Option<(&Trial, &LoadResult)> {
    let asked = |load: &LoadResult| (load.counts.good > 0, load.connections);
    let measured = || run.trials.iter().filter_map(|trial| Some((trial, trial.measured()?)));
    let most = measured().map(|(_, load)| asked(load)).max()?;
    let mut windows: Vec<_> = measured().filter(|(_, load)| asked(load) == most).collect();
    windows.sort_by(|(_, a), (_, b)| a.goodput().total_cmp(&b.goodput()));
    windows.get(windows.len() / 2).copied()
}

/// The evidence of one window of a check, with what only a check knows.
fn evidence(
    run: &Run,
    trial: &Trial,
    load: &LoadResult,
    fits: &[Fit],
    at_once: Option<f64>,
    pool: Option<&(&Pool, Limit)>,
) -> Evidence {
    let cell = run.head.plan.cell(&trial.cell).unwrap_or_else(|| run.head.plan.baseline());
    let mut e = Evidence::of(&run.head, cell, trial, load);
    let check = run.head.check.as_deref();
    let door = trial.door.unwrap_or_default();
    let seconds = load.seconds();
    if let Some(ticks) = door.ticks.filter(|_| seconds > 0.0) {
        let cores = ticks as f64 / TICKS_PER_SECOND / seconds;
        let generator = load.generator.cpu_ns as f64 / 1e9 / seconds;
        e.cpu.server_cores = Some(cores);
        e.cpu.other_cores = e.cpu.host.map(|cpu| (cpu.busy() * e.cpu.host_cpus - cores - generator).max(0.0));
    }
    if let Some(check) = check {
        e.grouped |= check.running.group.is_some();
        e.bounded = Some(e.grouped);
        e.cpu.server_cpus = check.running.cpus.unwrap_or(e.cpu.server_cpus).min(e.cpu.server_cpus);
    }
    let whose = pool.map_or("", |(pool, _)| &pool.name);
    if let Some(fit) = fits.iter().find(|fit| fit.pool == whose) {
        e.memory.cost = Some(fit.cost);
        e.memory.base = Some(fit.memory.bytes - fit.room - fit.memory.bytes * SPARE);
        // So that the diagnosis and the step count the same number of workers.
        e.memory.spare = fit.memory.bytes * SPARE;
        e.memory.limit = Some(fit.memory);
    }
    // Answers that visitors take slowly are no matter of ours.
    (e.network.sending, e.network.stuck) = (None, None);
    // Overflows come in bursts, when a window begins: the one that is judged need not have had one itself.
    e.workers.overflows = overflows(run).max(e.workers.overflows);
    // Visitors come in bursts, too, so each is one too many.
    (e.workers.turned_away, e.workers.each_counts) = (None, true);
    let kind = check.map_or(Kind::Other, |check| check.running.kind);
    if !is_plausible(&e, kind, at_once) {
        e.workers.limit = None;
    }
    if let Some((_, limit)) = pool {
        // Those who wait for PHP-FPM do not stand at the server's own door.
        e.workers.limit = Some(limit.value as f64);
        (e.workers.busy, e.workers.queue) = (None, None);
    }
    e
}

/// Connections that were turned away in all windows together; `None` if the kernel did not tell.
fn overflows(run: &Run) -> Option<u64> {
    let grown = |trial: &Trial| {
        let mut counts = trial.readings.rows.iter().filter_map(|row| row.get(Column::TcpListenOverflows));
        let first = counts.next()?;
        Some(counts.next_back().unwrap_or(first).saturating_sub(first))
    };
    run.trials.iter().filter_map(grown).reduce(u64::saturating_add)
}

/// Whether a limit can be what holds it back: it has as many processes as are allowed, and works on about as many requests. A server
/// that still starts processes, or gets no CPU for those it has, has a queue at its door as well.
fn is_plausible(e: &Evidence, kind: Kind, at_once: Option<f64>) -> bool {
    let Some((limit, free)) = e.workers.limit.zip(e.workers.free_limit()) else { return true };
    let all = kind != Kind::ApachePrefork || e.workers.most.is_none_or(|most| most >= limit);
    all && at_once.is_none_or(|at_once| at_once >= free * WORKED_ON)
}

/// A pool that works on about as many requests at once as it may. That two numbers are alike shows nothing of a pool that has to do with
/// other pages: it must have had all its workers, and they must have worked.
fn pool_at_limit<'a>(run: &Run, check: &'a Check, at_once: f64) -> Option<(&'a Pool, Limit)> {
    if check.page.as_ref().is_some_and(|page| page.is_static) {
        return None;
    }
    let answers: u64 = run.trials.iter().filter_map(Trial::measured).map(|load| load.counts.good).sum();
    let worked = |pool: &Pool, limit: &Limit| {
        let seen = check.work.iter().find(|(name, _)| *name == pool.name);
        seen.is_none_or(|(_, work)| work.most >= limit.value && work.ticks >= answers / ANSWERS_PER_TICK)
    };
    let at_limit =
        |pool: &Pool| pool.limit().filter(|limit| is_about(at_once, limit.value as f64) && worked(pool, limit));
    check.running.pools.iter().find_map(|pool| Some((pool, at_limit(pool)?)))
}

/// The pool before which the queue was full most often, if it was so often.
fn full_queue(check: &Check) -> Option<(&Pool, PoolQueue)> {
    let of = |pool: &'_ Pool| check.queues.iter().find(|(name, _)| *name == pool.name).map(|(_, queue)| *queue);
    let full = check.running.pools.iter().filter_map(|pool| Some((pool, of(pool)?)));
    full.filter(|(_, queue)| queue.share() >= OFTEN_FULL).max_by(|a, b| a.1.share().total_cmp(&b.1.share()))
}

/// Whether so many requests at once are what a limit allows.
pub(crate) fn is_about(found: f64, limit: f64) -> bool {
    (found / limit - 1.0).abs() <= ABOUT
}

/// Seconds that a request takes when it is alone.
fn alone(run: &Run, check: &Check) -> Option<f64> {
    let (first, _) = check.climb.first().filter(|(_, connections)| *connections == 1)?;
    match windows(run, first).next()?.1.percentile(50.0)? {
        Quantile::Exactly(us) => Some(us as f64 / 1e6),
        Quantile::MoreThan(_) => None,
    }
}

/// What fits, of the server's own workers and of those of each pool.
fn fits(run: &Run, check: &Check) -> Vec<Fit> {
    // Both before anything was sent: at work they change from one moment to the next, and then workers of ours would count as somebody
    // else's memory.
    let before = before_all(run);
    let Some((used, memory)) = before.and_then(|reading| in_use(check, reading)) else { return Vec::new() };
    let programs = programs(run, check, used);
    let cpus = u64::from(run.head.host.cpus.max(1));
    let fit = |(pool, held): &(String, WorkerMemory)| {
        let of_pool = check.running.pools.iter().find(|known| known.name == *pool);
        let own = pool.is_empty();
        // Only a process for each request grows with their number, or threads of one.
        let grows = !own || check.running.kind.is_apache();
        let limit = if own { check.running.limit(cpus) } else { of_pool.and_then(Pool::limit) };
        let threads = if own { check.running.threads_per_child() } else { 1 };
        let program = programs.filter(|_| own);
        let worker = held.largest as f64 / threads as f64;
        let cost = worker + program.map_or(0.0, |program| program.largest);
        // What each took for certain.
        let least = (worker - held.inherited as f64 / threads as f64).max(program.map_or(0.0, |program| program.each));
        let at_rest = if own { check.running.workers } else { of_pool.and_then(|pool| pool.workers) };
        let room = memory.bytes * (1.0 - SPARE) - (used - at_rest.map_or(0.0, |held| held.total as f64)).max(0.0);
        (grows && cost > 0.0 && check.running.kind != Kind::Apache).then(|| Fit {
            pool: pool.clone(),
            held: *held,
            cost,
            program: program.map_or(0.0, |program| program.largest),
            room,
            memory,
            workers: (room / cost).floor().max(0.0),
            most: (room / least.max(f64::MIN_POSITIVE)).floor().max(0.0),
            limit,
        })
    };
    check.after.iter().filter_map(fit).collect()
}

/// The last reading before anything was sent, or the first; of those that tell of programs, if any does.
fn before_all(run: &Run) -> Option<&Reading> {
    let trial = run.trials.iter().find(|trial| !trial.readings.rows.is_empty())?;
    let began = trial.load.as_ref().map_or(0, |load| load.started_ns);
    let rows = &trial.readings.rows;
    let before = || rows.iter().rev().filter(|row| row.at_ns < began);
    before().find(|row| row.get(Column::TreeProgramLargest).is_some()).or(before().next()).or(rows.first())
}

/// Programs that are started for requests.
#[derive(Debug, Clone, Copy)]
struct Programs {
    /// Bytes of the largest, what it shares with others like it included.
    largest: f64,
    /// Bytes that each of the most requests at once took, by what all took.
    each: f64,
}

/// Whether each request starts one, with `used` bytes in use before anything was sent; `None` too where programs of the server's run
/// without any request, and where few run at once (a lock, a limit of their own): there workers that wait take no such memory.
fn programs(run: &Run, check: &Check, used: f64) -> Option<Programs> {
    let is_made = check.page.as_ref().is_none_or(|page| !page.is_static);
    before_all(run)?.get(Column::TreeProgramLargest).filter(|&bytes| bytes == 0 && is_made)?;
    let loads = run.trials.iter().filter_map(|trial| Some((trial, trial.load.as_ref()?)));
    let most = loads.clone().map(|(_, load)| load.connections).max()?;
    let rows = |least: u32| {
        let some = loads.clone().filter(move |(_, load)| load.connections >= least);
        some.flat_map(|(trial, load)| {
            trial.readings.rows.iter().filter(|row| (load.started_ns..=load.ended_ns).contains(&row.at_ns))
        })
    };
    let seen: Vec<u64> = rows(2).filter_map(|row| row.get(Column::TreeProgramLargest)).collect();
    let at_work = seen.iter().filter(|bytes| **bytes > 0).count();
    let largest = seen.iter().max().copied()? as f64;
    let taken = rows(most).filter_map(|row| Some(in_use(check, row)?.0 - used)).fold(0.0, f64::max);
    let each = taken / f64::from(most);
    let is_so = at_work as f64 >= seen.len() as f64 * AT_WORK && each >= largest * ONE_EACH;
    (is_so && largest > 0.0).then_some(Programs { largest, each })
}

/// Bytes in use that nobody can drop, and all there are: the group's, else the host's.
fn in_use(check: &Check, reading: &Reading) -> Option<(f64, Size)> {
    if let Some(group) = &check.running.group {
        let swap = reading.get(Column::GroupSwap).unwrap_or(0);
        let used = reading.get(Column::GroupAnon).or(group.used)? + swap;
        return Some((used as f64, Size { whose: Whose::Group, bytes: group.limit as f64 }));
    }
    let total = reading.get(Column::MemTotal)?;
    let used = total.saturating_sub(reading.get(Column::MemAvailable)?);
    Some((used as f64 * KIB, Size { whose: Whose::Host, bytes: total as f64 * KIB }))
}

/// Whether a guard ended one of its windows.
pub(crate) fn guarded(run: &Run) -> bool {
    run.trials.iter().any(|trial| matches!(trial.outcome, Outcome::EndedEarly(_)))
}
