//! What speaks against being sure of a finding: one table, one line per reason.
//!
//! How sure one is, is how few of them there are. Each is a fact about the window or about the rule, never about the number's size alone.

use crate::cause::Cause;
use crate::evidence::Evidence;
use crate::number::{Numbers, Quantity};
use crate::rules::Rule;
use crate::thresholds::{CPU_FULL, FEW_READINGS, LONGEST_GAP, NEAR, OTHERS_BUSY, THREAD_WAIT, UNWATCHED};
use serde::{Serialize, Serializer};

/// How sure a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    /// Several things speak against it.
    Possible,
    /// One thing does.
    Likely,
    /// Nothing does.
    Sure,
}

impl Confidence {
    /// All of them.
    pub const ALL: [Confidence; 3] = [Confidence::Possible, Confidence::Likely, Confidence::Sure];

    /// Beside so many doubts.
    #[must_use]
    pub fn beside(doubts: usize) -> Confidence {
        match doubts {
            0 => Confidence::Sure,
            1 => Confidence::Likely,
            _ => Confidence::Possible,
        }
    }

    /// Its message in the catalogue.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Confidence::Possible => "confidence-possible",
            Confidence::Likely => "confidence-likely",
            Confidence::Sure => "confidence-sure",
        }
    }
}

impl Serialize for Confidence {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.id())
    }
}

/// A reason not to be sure.
pub struct Doubt {
    /// The message that says it.
    pub id: &'static str,
    /// Whether there is this reason, for what a rule found.
    pub when: fn(&Evidence, &Rule, &Numbers) -> bool,
}

/// The reason that only several trials can give.
pub const TRIALS_DISAGREE: &str = "unsure-trials-disagree";

/// The table.
pub const DOUBTS: &[Doubt] = &[
    Doubt { id: "unsure-concluded", when: |_, rule, _| rule.concluded },
    Doubt { id: "unsure-near", when: |_, rule, numbers| is_near(rule, numbers) },
    Doubt { id: "unsure-short", when: is_short },
    Doubt { id: "unsure-blind", when: is_blind },
    Doubt { id: "unsure-host-numbers", when: is_of_the_host },
    Doubt { id: "unsure-others", when: others_took_part },
    Doubt { id: "unsure-longer", when: takes_longer },
    Doubt { id: "unsure-behind", when: may_wait_behind },
    Doubt { id: "unsure-fewer", when: holds_fewer },
];

/// The reasons against what a rule found.
#[must_use]
pub(crate) fn of(evidence: &Evidence, rule: &Rule, numbers: &Numbers) -> Vec<&'static str> {
    DOUBTS.iter().filter(|doubt| (doubt.when)(evidence, rule, numbers)).map(|doubt| doubt.id).collect()
}

/// Every message of a reason.
pub fn ids() -> impl Iterator<Item = &'static str> {
    DOUBTS.iter().map(|doubt| doubt.id).chain([TRIALS_DISAGREE])
}

/// Whether every threshold that was crossed was crossed by little. Counts from one on are no matter of degree.
fn is_near(rule: &Rule, numbers: &Numbers) -> bool {
    let crossed = rule.limits.iter().filter_map(|&(quantity, limit)| {
        let value = numbers.get(quantity).filter(|&value| limit.holds(value))?;
        let (more, less) = (value.max(limit.value()), value.min(limit.value()));
        Some(limit.value() != 1.0 && more < less * NEAR)
    });
    let crossed: Vec<bool> = crossed.collect();
    !crossed.is_empty() && !crossed.contains(&false)
}

fn is_short(e: &Evidence, rule: &Rule, _: &Numbers) -> bool {
    rule.cause != Cause::MonitorUnfit && e.observed.readings < FEW_READINGS
}

fn is_blind(e: &Evidence, rule: &Rule, _: &Numbers) -> bool {
    let gaps = e.observed.unwatched > UNWATCHED || e.observed.gap_share > LONGEST_GAP;
    rule.cause != Cause::MonitorUnfit && gaps
}

/// The whole host's numbers stand in for the server's.
fn is_of_the_host(e: &Evidence, rule: &Rule, numbers: &Numbers) -> bool {
    let of_host = [Cause::MemoryThrash, Cause::FileCacheThrash, Cause::DiskBound, Cause::PressureBuilding];
    // A CPU that is not full by its use is so by the run queue, which is the host's.
    let by_run_queue = [Cause::CpuBound, Cause::WorkerLimitRight].contains(&rule.cause)
        && numbers.get(Quantity::RunQueue).is_some()
        && numbers.get(Quantity::CpuUsed).is_some_and(|used| used < CPU_FULL);
    // What was sent again, and how full a link is, is counted for the whole host even of a server with a group.
    e.offered.ours && (rule.cause == Cause::Network || by_run_queue || (!e.grouped && of_host.contains(&rule.cause)))
}

/// Whether the typical answer takes several times what the fastest did though nothing is used up: it may wait inside the server for what
/// nobody sees from outside, such as a thread or a lock of its own.
fn takes_longer(e: &Evidence, rule: &Rule, _: &Numbers) -> bool {
    rule.cause == Cause::OfferedConcurrency && e.offered.longer.is_some_and(|longer| longer >= THREAD_WAIT)
}

/// Whether more workers might only wait for what stands behind them.
fn may_wait_behind(e: &Evidence, rule: &Rule, _: &Numbers) -> bool {
    let nobody_does = e.workers.behind.is_some_and(|behind| behind.queue < 1.0);
    rule.cause == Cause::WorkerLimitTooLow && e.behind && !nobody_does
}

/// Whether memory does not hold as many workers as a limit lets in that is called right: no more would help, and fewer might.
fn holds_fewer(e: &Evidence, rule: &Rule, _: &Numbers) -> bool {
    let fewer =
        e.workers.binding_limit().zip(e.memory.workers_that_fit()).is_some_and(|(limit, fit)| limit > fit * NEAR);
    rule.cause == Cause::WorkerLimitRight && fewer
}

/// Whether others were at the server, or kept CPUs busy that a verdict about CPUs rests on.
fn others_took_part(e: &Evidence, rule: &Rule, _: &Numbers) -> bool {
    let of_cpus = [
        Cause::CpuBound,
        Cause::OneCoreBusy,
        Cause::WorkerLimitRight,
        Cause::WorkerLimitReached,
        Cause::GeneratorSaturated,
    ];
    let busy = e.cpu.other_cores.is_some_and(|cores| cores >= OTHERS_BUSY);
    let asked = e.foreign.is_some() && rule.cause != Cause::ForeignTraffic;
    asked || (e.offered.ours && busy && of_cpus.contains(&rule.cause))
}
