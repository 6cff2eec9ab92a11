//! The suspects that the numbers clear, and why: one table, one line per reason.
//!
//! A verdict convinces when it also says why it is not what it looks like. The first document had to: idle 0 and a load average of 16
//! looked like a shortage of CPU, and were not.

use crate::Finding;
use crate::cause::Cause;
use crate::evidence::Evidence;
use crate::number::{Numbers, Quantity};
use crate::rules::swaps_mostly;
use crate::thresholds::{IOWAIT_QUIET, MOSTLY_WAITING, NO_IDLE, RECLAIM};

/// A suspect and a reason to clear it.
pub struct Clearance {
    /// The message that says why.
    pub id: &'static str,
    /// The suspect.
    pub suspect: Cause,
    /// The numbers that clear it, given what was found; `None` when there is nothing to clear.
    pub when: fn(&Evidence, &[Cause]) -> Option<Numbers>,
}

/// The table. A line whose suspect was found is not asked.
pub const CLEARED: &[Clearance] = &[
    // "CPU time is used up, but by the kernel looking for memory, not by the application."
    Clearance { id: "not-cpu-reclaim", suspect: Cause::CpuBound, when: cpu_reclaims },
    // "Idle is 0, but the CPU worked only 30 % of the time; the rest waited."
    Clearance { id: "not-cpu-waiting", suspect: Cause::CpuBound, when: cpu_waits },
    // "Neither idle 0 nor a high load average is a shortage of CPU: both count tasks that wait for memory or a disk."
    Clearance { id: "not-cpu-load-average", suspect: Cause::CpuBound, when: load_average_misleads },
    // "The disk is busy with swap; a faster one would only thrash faster."
    Clearance { id: "not-disk-swap", suspect: Cause::DiskBound, when: disk_swaps },
    // "The CPU was idle while a disk was waited for; that alone shows no slow disk."
    Clearance { id: "not-disk-iowait", suspect: Cause::DiskBound, when: iowait_alone },
    // "Swap is in use, but nothing is read back: harmless."
    Clearance { id: "not-memory-swap-resident", suspect: Cause::MemoryThrash, when: swap_rests },
];

/// Every suspect that is cleared beside `causes`. A trial that says nothing about the server clears nobody.
#[must_use]
pub fn findings(evidence: &Evidence, causes: &[Cause]) -> Vec<Finding> {
    if causes.contains(&Cause::HostDisturbed) {
        return Vec::new();
    }
    let finding = |line: &Clearance| {
        let numbers = (line.when)(evidence, causes)?;
        Some(Finding { id: line.id, cause: line.suspect, numbers, doubts: Vec::new(), leads_to: None })
    };
    CLEARED.iter().filter(|line| !causes.contains(&line.suspect)).filter_map(finding).collect()
}

fn cpu_reclaims(e: &Evidence, causes: &[Cause]) -> Option<Numbers> {
    let cpu = e.cpu.host?;
    let short = causes.iter().any(|cause| matches!(cause, Cause::MemoryThrash | Cause::FileCacheThrash));
    (short && cpu.system >= RECLAIM).then(|| e.cpu.shares())
}

fn cpu_waits(e: &Evidence, causes: &[Cause]) -> Option<Numbers> {
    let cpu = e.cpu.host?;
    let waited = cpu.iowait >= IOWAIT_QUIET || causes.contains(&Cause::MemoryThrash);
    (waited && cpu.busy() < MOSTLY_WAITING).then(|| e.cpu.shares())
}

/// Only beside thrash: elsewhere a high load average may be an echo of the minute before. And only where one of the two is there to
/// mislead.
fn load_average_misleads(e: &Evidence, causes: &[Cause]) -> Option<Numbers> {
    let no_idle = e.cpu.host.is_some_and(|cpu| cpu.idle < NO_IDLE);
    let high = e.cpu.load_average.is_some_and(|load| load > e.cpu.host_cpus);
    (causes.contains(&Cause::MemoryThrash) && (no_idle || high)).then(|| {
        e.cpu.shares().with(Quantity::LoadAverage, e.cpu.load_average).with(Quantity::HostCpus, e.cpu.host_cpus)
    })
}

fn disk_swaps(e: &Evidence, causes: &[Cause]) -> Option<Numbers> {
    (swaps_mostly(e) && causes.contains(&Cause::MemoryThrash)).then(|| {
        e.disk
            .numbers()
            .with(Quantity::SwapIn, e.memory.swap_in)
            .with(Quantity::SwapOut, e.memory.swap_out)
            .with(Quantity::CpuIowait, e.cpu.host.map(|cpu| cpu.iowait))
    })
}

fn iowait_alone(e: &Evidence, causes: &[Cause]) -> Option<Numbers> {
    let high = e.cpu.host.is_some_and(|cpu| cpu.iowait >= IOWAIT_QUIET);
    (high && !causes.contains(&Cause::MemoryThrash)).then(|| e.cpu.shares().and(e.disk.numbers()))
}

/// Swap held without refaults of the group or, where those are not known, without the host reading from swap.
fn swap_rests(e: &Evidence, causes: &[Cause]) -> Option<Numbers> {
    let held = !causes.contains(&Cause::OutOfMemory) && e.memory.swap_peak.is_some_and(|size| size.bytes > 0.0);
    let read_back = e.memory.refault_per_request.or(e.memory.swap_in)?;
    (held && read_back == 0.0).then(|| e.memory.swap_numbers().with(Quantity::SwapIn, e.memory.swap_in))
}
