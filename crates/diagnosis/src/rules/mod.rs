//! The causes: one table, one line each, in the order of precedence.
//!
//! A line says when its cause is present, by which numbers and thresholds, which later lines it makes meaningless, what it brings
//! about, and where that is known from. The rules stand by what they look at in `memory`, `workers`, `work` and `around`; what several of
//! them ask is here. Thresholds have a file of their own.

mod around;
mod memory;
mod table;
mod work;
mod workers;

use crate::Finding;
use crate::cause::Cause;
use crate::doubts;
use crate::evidence::{Evidence, Whose};
use crate::number::{Limit, Numbers, Quantity};
use crate::thresholds::{
    AT_ONCE_LEAST, CPU_FULL, CPU_ROOM, CPU_WAITED_FOR, FIT_IN_SIGHT, IOWAIT_QUIET, MEMORY_QUIET, NO_THREAD,
    OTHERS_BUSY, OWN_PART, RUN_QUEUE, THREAD_WAIT,
};
use memory::stalls;
pub(crate) use memory::swaps_mostly;
pub use table::RULES;

/// One cause: when it is present, with which numbers, and which later lines it makes meaningless.
pub struct Rule {
    /// The cause.
    pub cause: Cause,
    /// The numbers that show it; `None` when it is not there or not known.
    pub when: fn(&Evidence) -> Option<Numbers>,
    /// What its numbers are held against, where that is one number for all servers. Any of them may be what decides.
    pub limits: &'static [(Quantity, Limit)],
    /// Whether it is concluded from means, or from what else is ruled out, and not seen as such.
    pub concluded: bool,
    /// Later causes that must not be named beside it, because the numbers that show them are its effect.
    pub excludes: &'static [Cause],
    /// The causes it brings about.
    pub leads_to: &'static [Cause],
    /// Where the rule and its thresholds are from.
    pub source: &'static str,
}

/// The line of a cause; `None` for those that stand for the want of one.
#[must_use]
pub fn of(cause: Cause) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.cause == cause)
}

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
        doubts: doubts::of(evidence, rule, &numbers),
        numbers,
        leads_to: rule.leads_to.iter().copied().find(|cause| present.contains(cause)),
    };
    let mut findings: Vec<Finding> = fired.into_iter().map(finding).collect();
    if findings.is_empty() {
        let cause = Cause::Unexplained;
        let numbers = overview(evidence);
        findings.push(Finding { id: cause.id(), cause, numbers, doubts: Vec::new(), leads_to: None });
    }
    findings
}

// ---- what several rules ask -----------------------------------------------------------------------------------------

/// Whether there is a throughput to explain: where most requests fail, or none is answered, that is what is wrong.
fn mostly_answers(e: &Evidence) -> bool {
    let some = e.offered.good > 0 || !e.offered.ours;
    some && e.offered.failed <= e.offered.good
}

/// Use of the CPUs the server may run on, 0 to 1, stolen time included: by the server, or by anyone when the host is full and the
/// server asks for its part of it.
pub(crate) fn cpu_used(e: &Evidence) -> Option<f64> {
    let stolen = e.cpu.host.map_or(0.0, |cpu| cpu.steal);
    // PHP-FPM of the machine's own is not held to the server's CPUs.
    let of_own = |cores: f64| (cores - e.cpu.behind_cores) / e.cpu.server_cpus;
    let used = |cores: f64| (of_own(cores).max(cores / e.cpu.host_cpus) + stolen).min(1.0);
    let server = e.cpu.server_cores.map(used);
    let host = e.cpu.host.map(|cpu| cpu.busy() + stolen);
    let (Some(server), Some(host)) = (server, host) else { return server.or(host) };
    if e.behind {
        // A plan's services are pinned as the server is, and not held to its quota. What they do is not told from what others do; the
        // generator is neither.
        let held = |(server, others)| server - e.cpu.behind_cores + others;
        let cores = e.cpu.server_cores.zip(e.cpu.other_cores).map(held);
        return Some(cores.map_or(server, |cores| server.max((cores / e.cpu.pinned_cpus + stolen).min(1.0))));
    }
    let own_cpus = e.cpu.server_cpus < e.cpu.host_cpus;
    let of_server = server < OWN_PART || (own_cpus && host < CPU_FULL);
    Some(if of_server { server } else { server.max(host) })
}

/// Runnable tasks for each CPU that the server may run on, without the one that counts them and one for each other CPU, where they are so many
/// that a CPU is waited for: what stands in where the server's group does not tell how long its tasks wait. `None` beside others who are busy,
/// as the kernel counts those of the whole host.
fn run_queue(e: &Evidence) -> Option<f64> {
    let alone = e.cpu.other_cores.is_none_or(|cores| cores < OTHERS_BUSY);
    let tasks = e.cpu.runnable.filter(|_| e.cpu.pressure.is_none() && alone)?;
    let elsewhere = 1.0 + e.cpu.host_cpus - e.cpu.server_cpus;
    Some((tasks - elsewhere).max(0.0) / e.cpu.server_cpus).filter(|&queue| queue >= RUN_QUEUE)
}

fn cpu_is_full(e: &Evidence) -> bool {
    let waited_for = run_queue(e).is_some() || e.cpu.pressure.is_some_and(|waited| waited >= CPU_WAITED_FOR);
    cpu_used(e).is_some_and(|used| used >= CPU_FULL || (used >= CPU_ROOM && waited_for))
}

/// Requests that are worked on at once, of pages that take so long alone (Little's law).
fn at_once(e: &Evidence, alone: f64) -> f64 {
    e.offered.goodput * alone
}

/// Whether nothing was waited for that is slower than a CPU.
fn is_calm(e: &Evidence) -> bool {
    e.cpu.host.is_none_or(|cpu| cpu.iowait < IOWAIT_QUIET) && !stalls(e)
}

/// Seconds for which a request waits for a thread of the server's own before anybody reads it (Little's law), where it is long for many of
/// them and some are worked on meanwhile. Whoever has a thread to spare accepts and reads at once. Only of a load that is alone, as what
/// another one has sent is not told from it, and its answers are not counted here.
fn thread_wait(e: &Evidence) -> Option<f64> {
    // A limit that is known says itself who waits for it at the door.
    let at_door = e.workers.queue.filter(|_| e.workers.limit.is_none()).unwrap_or(0.0);
    let waiting = e.workers.unread.unwrap_or(0.0) + at_door;
    let in_flight = e.offered.concurrency;
    let many = waiting >= 1.0 && waiting >= NO_THREAD * in_flight && in_flight - waiting >= AT_ONCE_LEAST;
    let is_alone = e.offered.connections <= e.offered.own_connections;
    let wait = waiting / e.offered.goodput;
    (is_alone && many && wait.is_finite() && wait >= THREAD_WAIT).then_some(wait)
}

/// Whether one more worker would be too many for memory: the server already waits for it, or as many workers as are allowed,
/// all at their largest, leave no room for another. That they rarely are at their largest together is the margin, not a reason to
/// allow more.
fn memory_is_full(e: &Evidence) -> bool {
    let waits = e.memory.pressure.is_some_and(|p| p.whose == Whose::Group && p.full >= MEMORY_QUIET);
    let held = e.workers.binding_limit().zip(e.memory.workers_that_fit()).is_some_and(|(limit, fit)| fit <= limit);
    waits || held
}

/// What was asked for; of what is only watched, nobody knows.
fn offered(e: &Evidence) -> Numbers {
    asked(e).with(Quantity::Concurrency, e.offered.ours.then_some(e.offered.concurrency))
}

fn asked(e: &Evidence) -> Numbers {
    Numbers::default().with(Quantity::Connections, e.offered.ours.then_some(e.offered.connections))
}

fn failures(e: &Evidence) -> Numbers {
    Numbers::default()
        .with(Quantity::Failures, e.offered.failed as f64)
        .with(Quantity::FailedShare, e.offered.failed_share())
}

fn worker_numbers(e: &Evidence) -> Numbers {
    e.workers.numbers().and(asked(e))
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
