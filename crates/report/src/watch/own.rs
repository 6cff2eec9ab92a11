//! The modules that dstat has not: what a web server's administrator misses in it. Same shape as dstat's, in every layout.
//!
//! `docs/watch.md` tells what each column means.

use super::cell::{Format, Kind};
use super::figures::{Numbers, Sight, Tick};
use super::{Module, TOTAL};
use model::device::DeviceKind;
use model::reading::Column as C;

const BYTES: Format = Format::new(Kind::Decimal, 5, 1024.0);
const COUNT: Format = Format::new(Kind::Whole, 5, 1000.0);
const PERCENT: Format = Format::new(Kind::Percent, 3, 34.0);
const FEW: Format = Format::new(Kind::Whole, 3, 10.0);
/// More than one CPU can be used up: 187.
const CPU: Format = Format::new(Kind::Decimal, 4, 34.0);
const TENTHS: Format = Format::new(Kind::Decimal, 5, 1000.0);

/// Columns by name, and how they are written.
type Columns = &'static [(&'static str, Format)];

fn columns(module: Module) -> Columns {
    match module {
        Module::Cgroup => {
            &[("mem", BYTES), ("limit", BYTES), ("swap", BYTES), ("cpu", CPU), ("mfl", PERCENT), ("ifl", PERCENT)]
        }
        Module::DiskQueue => &[("await", TENTHS), ("queue", TENTHS), ("util", CPU)],
        Module::Listen => &[("que", COUNT), ("lim", COUNT)],
        Module::Psi => &[("cpu", PERCENT), ("mem", PERCENT), ("mfl", PERCENT), ("io", PERCENT), ("ifl", PERCENT)],
        Module::RunQueue => &[("run", FEW), ("blk", FEW), ("stl", PERCENT)],
        Module::TcpTrouble => &[("ovf", COUNT), ("drp", COUNT), ("rtx", COUNT), ("tim", COUNT)],
        Module::Tree => &[
            ("prc", FEW),
            ("bsy", FEW),
            ("idl", FEW),
            ("rss", BYTES),
            ("pss", BYTES),
            ("uss", BYTES),
            ("swap", BYTES),
            ("cpu", CPU),
        ],
        // All others are dstat's.
        _ => &[],
    }
}

pub(super) fn nicks(module: Module) -> Vec<&'static str> {
    columns(module).iter().map(|(nick, _)| *nick).collect()
}

pub(super) fn format(module: Module, column: usize) -> Format {
    columns(module).get(column).map_or(COUNT, |(_, format)| *format)
}

/// The title of a module that has one.
pub(super) fn title(module: Module) -> &'static str {
    match module {
        Module::Psi => "pressure",
        Module::RunQueue => "run queue",
        Module::TcpTrouble => "tcp trouble",
        // The others have one for each thing they are about.
        _ => "",
    }
}

pub(super) fn device_title(module: Module, device: &str) -> String {
    match module {
        Module::Cgroup => format!("group {}", device.trim_end_matches('/').rsplit('/').next().unwrap_or(device)),
        Module::DiskQueue => format!("queue/{device}"),
        Module::Listen if device == TOTAL => "accept".to_owned(),
        Module::Listen => format!("accept/{device}"),
        _ => format!("tree {device}"),
    }
}

pub(super) fn of_machine(tick: &Tick<'_>, module: Module) -> Numbers {
    let gauge = |column| tick.gauge(column);
    match module {
        Module::Cgroup => vec![
            gauge(C::GroupUsage),
            gauge(C::GroupLimit),
            gauge(C::GroupSwap),
            since_the_row_before(tick, C::GroupCpuNs).map(percent_of_a_cpu),
            since_the_row_before(tick, C::GroupPsiMemFull).map(percent_of_time),
            since_the_row_before(tick, C::GroupPsiIoFull).map(percent_of_time),
        ],
        Module::Psi => [C::PsiCpuSome, C::PsiMemSome, C::PsiMemFull, C::PsiIoSome, C::PsiIoFull]
            .map(|column| tick.rate(column).map(percent_of_time))
            .to_vec(),
        Module::RunQueue => vec![gauge(C::Runnable).map(|all| all - 1.0), gauge(C::Blocked), stolen(tick)],
        Module::TcpTrouble => vec![
            tick.rate(C::TcpListenOverflows),
            tick.rate(C::TcpListenDrops),
            tick.rate(C::TcpRetransmits),
            gauge(C::TcpTimeWait),
        ],
        Module::Tree => {
            let (workers, busy) = (gauge(C::TreeWorkers), gauge(C::TreeBusyWorkers));
            vec![
                gauge(C::TreeProcesses),
                busy,
                workers.zip(busy).map(|(workers, busy)| workers - busy),
                gauge(C::TreeRss),
                gauge(C::TreePss),
                gauge(C::TreeUss),
                gauge(C::TreeSwap),
                // Ticks of processes that left without being waited for are gone, and may be more than those that came. Those of a server
                // that was started again begin anew.
                since_the_row_before(tick, C::TreeCpuTicks)
                    .filter(|_| same_root(tick))
                    .map(|ticks| ticks * 100.0 / CLOCK_TICKS),
            ]
        }
        _ => Vec::new(),
    }
}

pub(super) fn of_device(tick: &Tick<'_>, module: Module, device: &str) -> Numbers {
    match module {
        Module::DiskQueue => disk_queue(tick, device),
        Module::Listen if device == TOTAL => vec![tick.gauge(C::ListenQueue), tick.gauge(C::ListenLimit)],
        Module::Listen => [0, 1].map(|at| tick.device_gauge(DeviceKind::Listener, device, at)).to_vec(),
        Module::Cgroup if tick.roster.of(DeviceKind::Group, device, tick.to.devices).is_some() => group(tick, device),
        // The first group is the server's, which has columns.
        _ => of_machine(tick, module),
    }
}

fn group(tick: &Tick<'_>, name: &str) -> Numbers {
    let gauge = |number| tick.device_gauge(DeviceKind::Group, name, number);
    let rate = |number| tick.device_rate(DeviceKind::Group, name, number).filter(|_| tick.from.is_some());
    vec![
        gauge(0),
        gauge(1),
        gauge(2),
        rate(3).map(percent_of_a_cpu),
        rate(4).map(percent_of_time),
        rate(5).map(percent_of_time),
    ]
}

/// Of a counter of nanoseconds a second.
fn percent_of_a_cpu(ns_per_second: f64) -> f64 {
    ns_per_second / 1e7
}

/// USER_HZ, which is the same on every architecture that Linux servers have.
const CLOCK_TICKS: f64 = 100.0;

/// Of a counter of microseconds a second; what passes 100 is the kernel's rounding.
fn percent_of_time(us_per_second: f64) -> f64 {
    (us_per_second / 1e4).min(100.0)
}

/// Groups and processes are younger than the machine: its uptime says nothing about them in the first row.
fn since_the_row_before(tick: &Tick<'_>, column: C) -> Option<f64> {
    tick.from?;
    tick.rate(column)
}

/// Whether the process tree is that of the row before. Recordings of earlier versions do not tell, and follow one alone.
fn same_root(tick: &Tick<'_>) -> bool {
    let root = |sight: &Sight<'_>| sight.reading.get(C::TreeRoot);
    tick.from.as_ref().is_none_or(|from| root(from) == root(&tick.to))
}

/// Percent of all CPU time that the hypervisor gave to others.
fn stolen(tick: &Tick<'_>) -> Option<f64> {
    let ticks = [C::CpuSteal, C::CpuUser, C::CpuNice, C::CpuSystem, C::CpuIdle, C::CpuIowait, C::CpuIrq, C::CpuSoftirq];
    let grown = ticks.map(|column| tick.growth(column).map(|ticks| ticks.max(0.0)));
    let sum: f64 = grown.iter().flatten().sum();
    grown[0].filter(|_| sum > 0.0).map(|steal| 100.0 * steal / sum)
}

/// How long an operation took from its request to its end (ms), how many were under way (iostat's await and aqu-sz), and percent
/// of the time in which at least one was (util).
fn disk_queue(tick: &Tick<'_>, device: &str) -> Numbers {
    let grown = |column: C, number: usize| match device {
        TOTAL => tick.growth(column),
        _ => tick.device_growth(DeviceKind::Disk, device, number),
    };
    let sum = |one: Option<f64>, other: Option<f64>| one.zip(other).map(|(one, other)| one + other);
    let operations = sum(grown(C::DiskReads, 0), grown(C::DiskWrites, 2));
    let took = sum(grown(C::DiskReadMs, 4), grown(C::DiskWriteMs, 5));
    let each = took.zip(operations).map(|(ms, operations)| if operations > 0.0 { ms / operations } else { 0.0 });
    let of_time = |ms: Option<f64>| Some(ms? / (tick.seconds()? * 1000.0));
    // Of all disks there is only what the busiest one was busy since the sampler's start.
    let busy = grown(C::DiskIoMs, 6).filter(|_| tick.from.is_some() || device != TOTAL);
    let percent = of_time(busy).map(|share| (share * 100.0).min(100.0));
    vec![each, of_time(grown(C::DiskWeightedMs, 7)), percent]
}

#[cfg(test)]
mod tests {
    use super::super::{Compat, Screen, Shown, Sight, Style};
    use super::*;
    use model::SECOND;
    use model::device::{Device, Roster};
    use model::reading::{ABSENT, Look};

    /// The headings and the row of a module, for columns and numbers of a device that had these two values two seconds apart.
    fn check(module: Module, device: &str, columns: &[(C, u64, u64)], numbers: [&[u64]; 2], expected: [&str; 3]) {
        let kind = match module {
            Module::Listen => DeviceKind::Listener,
            Module::Cgroup => DeviceKind::Group,
            _ => DeviceKind::Disk,
        };
        let named = !numbers[0].is_empty();
        let roster = Roster { devices: if named { vec![Device { kind, name: device.to_owned() }] } else { vec![] } };
        let mut looks = numbers.map(|numbers| Look { devices: numbers.to_vec(), ..Look::empty(0, 0) });
        looks[1].reading.at_ns = 2 * SECOND;
        for &(column, first, second) in columns {
            looks[0].reading.set(column, first);
            looks[1].reading.set(column, second);
        }
        let sight = |at: usize| Sight { reading: &looks[at].reading, devices: &looks[at].devices };
        let (from, to) = (Some(sight(0)), sight(1));
        let tick = Tick { from, to, roster: &roster, page_bytes: 4096, epoch: 0.0, clock: "", processes: None };
        let shown = Shown { module, devices: if device.is_empty() { vec![] } else { vec![device.to_owned()] } };
        let screen = Screen::new(&[shown], Style::of(Compat::Dstat08), "");
        let drawn = screen.headings(true, true) + &screen.row(&tick, true, &[]);
        assert_eq!(drawn.lines().collect::<Vec<_>>(), expected, "{module:?} {device}");
    }

    #[test]
    fn pressure_is_a_share_of_the_time() {
        let columns = [(C::PsiCpuSome, 0, 1_000_000), (C::PsiMemSome, 5, 400_005), (C::PsiMemFull, 0, 2_000_900)];
        let expected = ["------pressure-----", "cpu mem mfl  io ifl", " 50  20 100   -   -"];
        check(Module::Psi, "", &columns, [&[], &[]], expected);
    }

    #[test]
    fn accept_queues() {
        let columns = [(C::ListenQueue, 0, 512), (C::ListenLimit, 511, 511)];
        check(Module::Listen, TOTAL, &columns, [&[], &[]], ["---accept--", " que   lim ", " 512   511 "]);
        let expected = ["accept/8080", " que   lim ", "   3   128 "];
        check(Module::Listen, "8080", &[], [&[0, 0], &[3, 128]], expected);
    }

    #[test]
    fn trouble_of_tcp_by_the_second() {
        let columns = [
            (C::TcpListenOverflows, 10, 20),
            (C::TcpListenDrops, 10, 24),
            (C::TcpRetransmits, 7, 7),
            (C::TcpTimeWait, 0, 28_231),
        ];
        let expected = ["------tcp-trouble------", " ovf   drp   rtx   tim ", "   5     7     0    28k"];
        check(Module::TcpTrouble, "", &columns, [&[], &[]], expected);
    }

    #[test]
    fn counters_that_wrap_or_go_backwards_are_dashes_and_make_nothing_larger() {
        let columns = [(C::TcpListenOverflows, u64::from(u32::MAX), 3), (C::TcpListenDrops, u64::MAX - 1, 0)];
        let row = "   -     -     -     - ";
        let expected = ["------tcp-trouble------", " ovf   drp   rtx   tim ", row];
        check(Module::TcpTrouble, "", &columns, [&[], &[]], expected);
        let columns = [
            (C::CpuUser, 0, 10),
            (C::CpuSystem, 0, 10),
            (C::CpuIdle, 0, 80),
            (C::CpuIowait, 5000, 4950),
            (C::CpuIrq, 9, 1),
        ];
        let expected = ["--total-cpu-usage--", "usr sys idl wai stl", " 10  10  80   -   0"];
        check(Module::Cpu, TOTAL, &columns, [&[], &[]], expected);
        let columns = [(C::NetRxBytes, u64::from(u32::MAX), 5), (C::NetTxBytes, 0, 4000)];
        check(Module::Net, TOTAL, &columns, [&[], &[]], ["-net/total-", " recv  send", "   -  2000B"]);
        let numbers: [&[u64]; 2] = [&[9, 9, 9, 9, 9, 9, 9, 9], &[ABSENT; 8]];
        check(Module::Disk, "loop9", &[], numbers, ["-dsk/loop9-", " read  writ", "   -     - "]);
    }

    #[test]
    fn disks_that_wait() {
        let columns = [
            (C::DiskReads, 0, 10),
            (C::DiskWrites, 0, 30),
            (C::DiskReadMs, 0, 100),
            (C::DiskWriteMs, 0, 400),
            (C::DiskWeightedMs, 0, 3000),
            (C::DiskIoMs, 0, 1000),
        ];
        let row = "12.5  1.50  50.0";
        check(Module::DiskQueue, TOTAL, &columns, [&[], &[]], ["--queue/total---", "await queue util", row]);
        let numbers: [&[u64]; 2] = [&[0; 8], &[10, 0, 30, 0, 100, 400, 1000, 3000]];
        check(Module::DiskQueue, "sda", &[], numbers, ["---queue/sda----", "await queue util", row]);
    }

    #[test]
    fn a_group_and_its_limit() {
        let columns = [
            (C::GroupUsage, 0, 800 << 20),
            (C::GroupSwap, 0, 69 << 20),
            (C::GroupCpuNs, 0, 3_000_000_000),
            (C::GroupPsiMemFull, 0, 500_000),
        ];
        let expected =
            ["----------group-web-----------", " mem  limit  swap cpu  mfl ifl", " 800M    -  69.0M  150  25   -"];
        check(Module::Cgroup, "/sys/fs/cgroup/web", &columns, [&[], &[]], expected);
        let second: [u64; 6] = [800 << 20, ABSENT, 69 << 20, 3_000_000_000, 500_000, ABSENT];
        check(Module::Cgroup, "web", &[], [&[0; 6], &second], expected);
    }

    #[test]
    fn a_tree_of_workers() {
        let columns = [
            (C::TreeProcesses, 0, 12),
            (C::TreeWorkers, 0, 10),
            (C::TreeBusyWorkers, 0, 4),
            (C::TreeRss, 0, 300 << 20),
            (C::TreePss, 0, 100 << 20),
            (C::TreeUss, 0, 30 << 20),
            (C::TreeCpuTicks, 100, 400),
        ];
        let expected = [
            "--------------tree-apache2--------------",
            "prc bsy idl  rss   pss   uss   swap cpu ",
            " 12   4   6  300M  100M 30.0M    -   150",
        ];
        check(Module::Tree, "apache2", &columns, [&[], &[]], expected);
        let of = |root| columns.into_iter().chain([(C::TreeRoot, 7, root)]).collect::<Vec<_>>();
        check(Module::Tree, "apache2", &of(7), [&[], &[]], expected);
        // The CPU time of another server says nothing about this one's.
        let row = " 12   4   6  300M  100M 30.0M    -     -";
        check(Module::Tree, "apache2", &of(8), [&[], &[]], [expected[0], expected[1], row]);
    }

    #[test]
    fn who_could_run_and_what_was_stolen() {
        let columns = [(C::Runnable, 1, 13), (C::Blocked, 0, 3), (C::CpuSteal, 0, 30), (C::CpuIdle, 0, 70)];
        check(Module::RunQueue, "", &columns, [&[], &[]], ["-run-queue-", "run blk stl", " 12   3  30"]);
    }
}
