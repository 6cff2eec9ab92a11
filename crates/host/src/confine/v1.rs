//! The files of v1 groups, one directory for each controller.

use super::limit::{Limit, Of};
use super::{PERIOD_US, quota_us};
use model::plan::Confinement;

/// What to write, in this order: the limit of memory alone may never exceed that of memory and swap together.
pub(super) fn limits(confine: &Confinement, disks: &[String], exists: impl Fn(&str) -> bool) -> Vec<Limit> {
    let mut limits = confine.memory.map_or_else(Vec::new, |memory| of_memory(memory, confine.swap, exists));
    if let Some(thousandths) = confine.cpu_thousandths {
        limits.push(Limit::new(Of::Cpu, "cpu.cfs_period_us", PERIOD_US.to_string()));
        limits.push(Limit::new(Of::Cpu, "cpu.cfs_quota_us", quota_us(thousandths).to_string()));
    }
    let io = confine.io;
    let of_disks = [
        ("blkio.throttle.read_bps_device", io.read),
        ("blkio.throttle.write_bps_device", io.write),
        ("blkio.throttle.read_iops_device", io.read_ops),
        ("blkio.throttle.write_iops_device", io.write_ops),
    ];
    for (file, rate) in of_disks {
        limits.extend(
            rate.into_iter()
                .flat_map(|rate| disks.iter().map(move |disk| Limit::new(Of::Io, file, format!("{disk} {rate}")))),
        );
    }
    limits
}

fn of_memory(memory: u64, swap: u64, exists: impl Fn(&str) -> bool) -> Vec<Limit> {
    let mut limits = vec![Limit::new(Of::Memory, "memory.limit_in_bytes", memory.to_string())];
    if exists("memory.memsw.limit_in_bytes") {
        let both = memory.saturating_add(swap).to_string();
        limits.push(Limit::new(Of::Memory, "memory.memsw.limit_in_bytes", both));
    } else if swap == 0 {
        // Kernels booted without swapaccount=1 cannot limit swap, but they can be told not to begin.
        limits.push(Limit::new(Of::Memory, "memory.swappiness", "0"));
    }
    limits
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::plan::IoLimits;

    #[track_caller]
    fn check(confine: &Confinement, accounted: bool, expected: &[(&str, &str)]) {
        let disks = ["254:0".to_owned(), "8:0".to_owned()];
        let limits = limits(confine, &disks, |file| accounted && file.contains("memsw"));
        let seen: Vec<(&str, &str)> = limits.iter().map(|limit| (limit.file, limit.value.as_str())).collect();
        assert_eq!(seen, expected);
    }

    #[test]
    fn swap_is_counted_together_with_memory() {
        let limit = ("memory.limit_in_bytes", "100");
        let confine = |swap| Confinement { memory: Some(100), swap, ..Confinement::default() };
        check(&confine(50), true, &[limit, ("memory.memsw.limit_in_bytes", "150")]);
        check(&confine(0), true, &[limit, ("memory.memsw.limit_in_bytes", "100")]);
        check(&confine(50), false, &[limit]);
        check(&confine(0), false, &[limit, ("memory.swappiness", "0")]);
    }

    #[test]
    fn time_is_a_quota_and_every_disk_has_its_line() {
        let io = IoLimits { read: Some(1 << 20), write_ops: Some(7), ..IoLimits::default() };
        check(
            &Confinement { cpu_thousandths: Some(1500), io, ..Confinement::default() },
            true,
            &[
                ("cpu.cfs_period_us", "100000"),
                ("cpu.cfs_quota_us", "150000"),
                ("blkio.throttle.read_bps_device", "254:0 1048576"),
                ("blkio.throttle.read_bps_device", "8:0 1048576"),
                ("blkio.throttle.write_iops_device", "254:0 7"),
                ("blkio.throttle.write_iops_device", "8:0 7"),
            ],
        );
    }
}
