//! The machine that a benchmark ran on, as far as it matters to the numbers.

use crate::root;
use std::fs;
use std::process::Command;

/// What can change while a benchmark runs.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Moment {
    load_average: String,
    /// Ticks of all CPUs, and those of them that the host took away.
    ticks: u64,
    stolen: u64,
}

impl Moment {
    pub(super) fn now() -> Moment {
        let (ticks, stolen) = parse_ticks(&read("/proc/stat")).unwrap_or((0, 0));
        Moment { load_average: first_words(&read("/proc/loadavg"), 3), ticks, stolen }
    }
}

/// Names and values; `placement` says who ran on which CPU.
pub(super) fn facts(placement: &str, before: &Moment, after: &Moment) -> Vec<(String, String)> {
    let cpu_info = read("/proc/cpuinfo");
    let model = cpu_info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let count = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let guest = if cpu_info.contains(" hypervisor") { ", a virtual machine" } else { "" };
    let memory = read("/proc/meminfo").lines().find_map(|line| Some(first_words(line.strip_prefix("MemTotal:")?, 2)));
    let ticks = after.ticks.saturating_sub(before.ticks).max(1);
    let stolen = 100.0 * after.stolen.saturating_sub(before.stolen) as f64 / ticks as f64;
    let facts = [
        ("CPU", format!("{}, {count} CPUs{guest}", model.map_or("unknown", |(_, name)| name.trim()))),
        ("memory", memory.unwrap_or_else(|| "unknown".to_owned())),
        ("kernel", read("/proc/sys/kernel/osrelease")),
        ("congestion control", read("/proc/sys/net/ipv4/tcp_congestion_control")),
        ("placement", placement.to_owned()),
        ("load average before", before.load_average.clone()),
        ("load average after", after.load_average.clone()),
        ("taken by the host", format!("{stolen:.1} % of CPU time")),
        ("commit", commit()),
    ];
    facts.map(|(name, value)| (name.to_owned(), value)).to_vec()
}

/// The day that a result is of, in UTC.
pub(crate) fn today() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%d").to_string()
}

/// Day, commit and machine in one line, for a page that has no table of facts.
pub(crate) fn in_a_line() -> String {
    let count = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let kernel = read("/proc/sys/kernel/osrelease");
    let load = first_words(&read("/proc/loadavg"), 1);
    format!("{}, commit {}, {count} CPUs, Linux {kernel}; load average before it {load}.", today(), commit())
}

/// That of the checkout this program was built from, and whether files of it were changed since.
pub(super) fn commit() -> String {
    let git = |args: &[&str]| {
        let output =
            Command::new("git").current_dir(root()).args(args).output().ok().filter(|it| it.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let changed = git(&["status", "--porcelain", "--untracked-files=no"]).is_some_and(|changes| !changes.is_empty());
    let changed = if changed { ", with changes" } else { "" };
    git(&["rev-parse", "--short=12", "HEAD"]).map_or_else(|| "unknown".to_owned(), |id| format!("{id}{changed}"))
}

fn read(path: &str) -> String {
    fs::read_to_string(path).map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned())
}

fn first_words(text: &str, count: usize) -> String {
    text.split_whitespace().take(count).collect::<Vec<_>>().join(" ")
}

/// All ticks and the stolen ones, of /proc/stat. Those of guests are in user time already.
fn parse_ticks(stat: &str) -> Option<(u64, u64)> {
    let line = stat.lines().find(|line| line.starts_with("cpu "))?;
    let ticks: Vec<u64> = line.split_whitespace().skip(1).take(8).filter_map(|word| word.parse().ok()).collect();
    Some((ticks.iter().sum(), *ticks.get(7)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(stat: &str, expected: Option<(u64, u64)>) {
        assert_eq!(parse_ticks(stat), expected, "{stat}");
    }

    #[test]
    fn stolen_time() {
        check("cpu  1 2 3 4 5 6 7 8 100 100\ncpu0 1 1\n", Some((36, 8)));
        check("cpu  1 2 3\n", None);
        check("", None);
    }
}
