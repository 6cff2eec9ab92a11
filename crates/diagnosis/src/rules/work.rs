//! The CPUs, and who else had them.

use super::{cpu_is_full, cpu_used, offered, run_queue};
use crate::evidence::Evidence;
use crate::number::{Numbers, Quantity};
use crate::thresholds::{ONE_CORE, STOLEN, STOLEN_PART, THROTTLED, THROTTLED_TIME};

pub(super) fn cpu_bound(e: &Evidence) -> Option<Numbers> {
    cpu_is_full(e).then(|| {
        e.cpu
            .shares()
            .and(e.cpu.of_server())
            .and(offered(e))
            .with(Quantity::CpuUsed, cpu_used(e))
            .with(Quantity::Runnable, e.cpu.runnable)
            .with(Quantity::RunQueue, run_queue(e))
    })
}

pub(super) fn one_core_busy(e: &Evidence) -> Option<Numbers> {
    let cores = e.cpu.server_cores?;
    (e.cpu.server_cpus > 1.0 && ONE_CORE.contains(&cores)).then(|| e.cpu.of_server().and(e.cpu.shares()))
}

/// The limit of CPU time that its group has, used up again and again before the period ended.
pub(super) fn throttled(e: &Evidence) -> Option<Numbers> {
    let held_back = match e.cpu.throttled_periods {
        Some(periods) => periods >= THROTTLED,
        None => e.cpu.throttled_time.is_some_and(|time| time >= THROTTLED_TIME),
    };
    held_back.then(|| {
        offered(e)
            .with(Quantity::ThrottledPeriods, e.cpu.throttled_periods)
            .with(Quantity::ThrottledTime, e.cpu.throttled_time)
            .and(e.cpu.of_server())
    })
}

/// Time that this machine asked for and another one had.
pub(super) fn stolen(e: &Evidence) -> Option<Numbers> {
    let cpu = e.cpu.host?;
    let asked_for = cpu.busy() + cpu.steal;
    (cpu.steal >= STOLEN && cpu.steal >= STOLEN_PART * asked_for).then(|| e.cpu.shares().and(e.cpu.of_server()))
}
