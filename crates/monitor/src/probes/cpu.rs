//! CPU time, what the scheduler did, and the load averages: /proc/stat and /proc/loadavg.
//!
//! Only the sum over all CPUs; the lines of single CPUs are passed over.

use super::Probes;
use crate::text::{fields, key, key_numbers, lines, number};
use model::reading::{Column, Reading};
use std::path::Path;

/// Opens /proc/stat.
pub(super) fn open_stat(probes: &mut Probes, proc_root: &Path) {
    probes.keep(&proc_root.join("stat"), stat);
}

/// Opens /proc/loadavg.
pub(super) fn open_loadavg(probes: &mut Probes, proc_root: &Path) {
    probes.keep(&proc_root.join("loadavg"), loadavg);
}

fn stat(text: &[u8], row: &mut Reading) {
    let Some(all) = lines(text).find(|line| line.starts_with(b"cpu ")) else { return };
    for (column, ticks) in Column::CPU_TIME.into_iter().zip(fields(all).skip(1)) {
        number(ticks).into_iter().for_each(|ticks| row.set(column, ticks));
    }
    // The line of interrupts goes on with one number per interrupt; the first is their sum.
    let keys = [
        key("intr", Column::Interrupts),
        key("ctxt", Column::ContextSwitches),
        key("processes", Column::Forks),
        key("procs_running", Column::Runnable),
        key("procs_blocked", Column::Blocked),
    ];
    key_numbers(text, &keys, row);
}

fn loadavg(text: &[u8], row: &mut Reading) {
    for (column, load) in [Column::Load1, Column::Load5, Column::Load15].into_iter().zip(fields(text)) {
        hundredths(load).into_iter().for_each(|load| row.set(column, load));
    }
}

/// "12.34" as 1234: the kernel always prints two decimals.
pub(super) fn hundredths(text: &[u8]) -> Option<u64> {
    let point = text.iter().position(|&byte| byte == b'.')?;
    let (whole, decimals) = (number(&text[..point])?, &text[point + 1..]);
    if decimals.len() == 2 { whole.checked_mul(100)?.checked_add(number(decimals)?) } else { None }
}

#[cfg(test)]
mod tests {
    use super::super::tests::check;
    use super::*;

    fn open(probes: &mut Probes, proc_root: &Path) {
        open_stat(probes, proc_root);
        open_loadavg(probes, proc_root);
    }

    const STAT: &str = "cpu  101 2 303 4004 55 6 77 8 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\n\
        intr 9000 1 0 22\nctxt 123456\nbtime 1700000000\nprocesses 4711\nprocs_running 3\nprocs_blocked 2\nsoftirq 1 2\n";

    #[test]
    fn the_sum_over_all_cpus_and_the_scheduler() {
        use Column::*;
        check(
            &[("stat", STAT), ("loadavg", "0.52 1.00 12.34 1/79 1234\n")],
            open,
            &[
                (CpuUser, 101),
                (CpuNice, 2),
                (CpuSystem, 303),
                (CpuIdle, 4004),
                (CpuIowait, 55),
                (CpuIrq, 6),
                (CpuSoftirq, 77),
                (CpuSteal, 8),
                (Interrupts, 9000),
                (ContextSwitches, 123_456),
                (Forks, 4711),
                (Runnable, 3),
                (Blocked, 2),
                (Load1, 52),
                (Load5, 100),
                (Load15, 1234),
            ],
        );
    }

    /// As on machines whose kernel could give out very many interrupts.
    #[test]
    fn what_comes_after_a_very_long_line_is_read_too() {
        use Column::*;
        let text = format!("cpu  1\nintr 5{}\nctxt 7\nprocs_blocked 2\n", " 0".repeat(300_000));
        check(&[("stat", &text)], open_stat, &[(CpuUser, 1), (Interrupts, 5), (ContextSwitches, 7), (Blocked, 2)]);
    }

    #[test]
    fn nonsense_fills_nothing() {
        check(&[("stat", "cpu  a -2\nctxt many\n"), ("loadavg", "high 1. 1.234\n")], open, &[]);
    }
}
