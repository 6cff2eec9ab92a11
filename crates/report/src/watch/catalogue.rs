//! What programs are told of a watch: each column of a reading by a group, a name and a base unit.
//!
//! Most names are those of the store; a column that is added later gets its own name as it is, and counts something.

use model::device::DeviceKind;
use model::reading::Column;

/// A column, or a number of a device, for programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Quantity {
    /// What it belongs to.
    pub(super) group: String,
    /// What it is, within its group; without its unit.
    pub(super) name: String,
    /// What it is counted in.
    pub(super) unit: Unit,
}

/// What is stored, in terms of a base unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    /// A number of something.
    Count,
    /// Hundredths of a number.
    Hundredths,
    /// So many bytes each.
    Bytes(u64),
    /// Pages of memory.
    Pages,
    /// Pieces of a second, so many of them in one.
    Seconds(u64),
}

/// Clock ticks in a second, as the kernel counts CPU time for programs on every architecture of today.
const TICKS: Unit = Unit::Seconds(100);
const NANOSECONDS: Unit = Unit::Seconds(1_000_000_000);
const MICROSECONDS: Unit = Unit::Seconds(1_000_000);
const MILLISECONDS: Unit = Unit::Seconds(1000);
const KIB: Unit = Unit::Bytes(1024);
const SECTORS: Unit = Unit::Bytes(512);

impl Unit {
    /// The end of a name in base units; empty for a plain number.
    pub(super) fn suffix(self) -> &'static str {
        match self {
            Unit::Count | Unit::Hundredths => "",
            Unit::Bytes(_) | Unit::Pages => "bytes",
            Unit::Seconds(_) => "seconds",
        }
    }

    /// A stored number in the base unit.
    pub(super) fn of(self, value: f64, page_bytes: u64) -> f64 {
        match self {
            Unit::Count => value,
            Unit::Hundredths => value / 100.0,
            Unit::Bytes(each) => value * each as f64,
            Unit::Pages => value * page_bytes as f64,
            Unit::Seconds(pieces) => value / pieces as f64,
        }
    }

    /// Whether a stored number is one of the base unit.
    pub(super) fn is_base(self) -> bool {
        matches!(self, Unit::Count | Unit::Bytes(1))
    }
}

/// What a column is for programs.
pub(super) fn quantity(column: Column) -> Quantity {
    let own = column.name();
    let (group, name) = own.split_once('.').unwrap_or(("other", own));
    let (group, name) = match renamed(column) {
        Some(better) => better,
        None => (long(group), name),
    };
    // The unit is told apart from the name, and it is another one.
    let name = name.strip_suffix("_ns").unwrap_or(name);
    Quantity { group: group.to_owned(), name: name.replace('.', "_"), unit: unit(column) }
}

/// Groups with names that say what they are.
fn long(group: &str) -> &str {
    match group {
        "sys" => "system",
        "mem" => "memory",
        "psi" => "pressure",
        "load" => "loadavg",
        "fs" => "files",
        "accept" => "accept_queue",
        "group" => "cgroup",
        other => other,
    }
}

/// Columns whose own names say too little without their neighbours.
fn renamed(column: Column) -> Option<(&'static str, &'static str)> {
    use Column as C;
    Some(match column {
        C::SwapIn => ("swap", "in"),
        C::SwapOut => ("swap", "out"),
        C::MajorFaults => ("vm", "major_faults"),
        C::MinorFaults => ("vm", "faults"),
        C::ScanDirect => ("vm", "direct_scan"),
        C::RefaultAnon => ("vm", "refault_anon"),
        C::RefaultFile => ("vm", "refault_file"),
        C::OomKills => ("vm", "oom_kills"),
        C::PageAllocations => ("vm", "allocated"),
        C::PageFrees => ("vm", "freed"),
        C::PagedIn => ("vm", "paged_in"),
        C::PagedOut => ("vm", "paged_out"),
        C::DiskReadSectors => ("disk", "read"),
        C::DiskWriteSectors => ("disk", "written"),
        C::DiskIoMs => ("disk", "busy"),
        C::DiskWeightedMs => ("disk", "weighted"),
        C::DiskReadMs => ("disk", "reading"),
        C::DiskWriteMs => ("disk", "writing"),
        C::ListenQueue => ("listen", "fullest_queue"),
        C::ListenLimit => ("listen", "fullest_limit"),
        C::NetRxBytes => ("net", "received"),
        C::NetTxBytes => ("net", "sent"),
        C::LoopbackBytes => ("net", "loopback"),
        C::MemReclaimable => ("memory", "reclaimable"),
        C::GroupUsage => ("cgroup", "memory"),
        C::GroupOomKills => ("cgroup", "oom_kills"),
        C::GroupMajorFaults => ("cgroup", "major_faults"),
        C::GroupRefaultAnon => ("cgroup", "refault_anon"),
        C::GroupRefaultFile => ("cgroup", "refault_file"),
        C::GroupCpuNs => ("cgroup", "cpu"),
        C::GroupCpuUserNs => ("cgroup", "cpu_user"),
        C::GroupCpuSystemNs => ("cgroup", "cpu_system"),
        C::GroupThrottledNs => ("cgroup", "throttled"),
        C::GroupPsiCpuSome => ("cgroup", "pressure_cpu_some"),
        C::GroupPsiMemSome => ("cgroup", "pressure_memory_some"),
        C::GroupPsiMemFull => ("cgroup", "pressure_memory_full"),
        C::GroupPsiIoSome => ("cgroup", "pressure_io_some"),
        C::GroupPsiIoFull => ("cgroup", "pressure_io_full"),
        C::TreeCpuTicks => ("tree", "cpu"),
        C::TreeCpuNs => ("tree", "cpu_time"),
        C::TreeBehindCpuNs => ("tree", "behind_cpu_time"),
        C::TreeSharesAgeNs => ("tree", "shares_age"),
        C::TreeSharesCostNs => ("tree", "shares_cost"),
        C::AcceptQueue => ("accept_queue", "length"),
        C::SamplerLateNs => ("sampler", "late"),
        C::WallNs => ("sampler", "wall"),
        C::BootNs => ("sampler", "boot"),
        C::SamplerCostNs => ("sampler", "cost"),
        C::FilesOpen => ("files", "open"),
        C::Inodes => ("files", "inodes"),
        C::InodesFree => ("files", "free_inodes"),
        _ => return None,
    })
}

fn unit(column: Column) -> Unit {
    let (name, about) = (column.name(), column.about());
    // Sentences about columns say their unit; the tests hold this list against them.
    let told = [
        ("clock ticks", TICKS),
        (", KiB", KIB),
        (", pages", Unit::Pages),
        ("512-byte sectors", SECTORS),
        ("times 100", Unit::Hundredths),
        (", us.", MICROSECONDS),
        (", ns.", NANOSECONDS),
        (", ms", MILLISECONDS),
        (" ms:", MILLISECONDS),
        (", bytes", Unit::Bytes(1)),
        ("Resident bytes", Unit::Bytes(1)),
        ("Bytes of", Unit::Bytes(1)),
    ];
    match column {
        Column::Uptime => Unit::Seconds(100),
        Column::NetRxBytes | Column::NetTxBytes | Column::LoopbackBytes => Unit::Bytes(1),
        // Pages that were read again are told one by one by memory.stat, too.
        Column::GroupRefaultAnon | Column::GroupRefaultFile => Unit::Pages,
        _ if name.ends_with("_ns") => NANOSECONDS,
        _ => told.iter().find(|(words, _)| about.contains(words)).map_or(Unit::Count, |(_, unit)| *unit),
    }
}

/// The numbers of a device for programs, in the order of a row: a name, its unit, and whether it only grows.
pub(super) fn of_device(kind: DeviceKind) -> Vec<(&'static str, Unit, bool)> {
    match kind {
        DeviceKind::Cpu => {
            let modes = ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"];
            modes.map(|mode| (mode, TICKS, true)).to_vec()
        }
        DeviceKind::Disk => {
            vec![
                ("reads", Unit::Count, true),
                ("read", SECTORS, true),
                ("writes", Unit::Count, true),
                ("written", SECTORS, true),
                ("reading", MILLISECONDS, true),
                ("writing", MILLISECONDS, true),
                ("busy", MILLISECONDS, true),
                ("weighted", MILLISECONDS, true),
            ]
        }
        DeviceKind::Interface => vec![("received", Unit::Bytes(1), true), ("sent", Unit::Bytes(1), true)],
        DeviceKind::Swap => vec![("size", KIB, false), ("used", KIB, false)],
        DeviceKind::Interrupt => vec![("interrupts", Unit::Count, true)],
        DeviceKind::Listener => vec![("queue", Unit::Count, false), ("limit", Unit::Count, false)],
        DeviceKind::Group => vec![
            ("memory", Unit::Bytes(1), false),
            ("limit", Unit::Bytes(1), false),
            ("swap", Unit::Bytes(1), false),
            ("cpu", NANOSECONDS, true),
            ("memory_full", MICROSECONDS, true),
            ("io_full", MICROSECONDS, true),
        ],
    }
}

/// Every kind of device, in the order in which they are told.
pub(super) const KINDS: [DeviceKind; 7] = [
    DeviceKind::Cpu,
    DeviceKind::Disk,
    DeviceKind::Interface,
    DeviceKind::Swap,
    DeviceKind::Interrupt,
    DeviceKind::Listener,
    DeviceKind::Group,
];

/// What a kind of device is called.
pub(super) fn kind_name(kind: DeviceKind) -> &'static str {
    match kind {
        DeviceKind::Cpu => "cpu",
        DeviceKind::Disk => "disk",
        DeviceKind::Interface => "interface",
        DeviceKind::Swap => "swap",
        DeviceKind::Interrupt => "interrupt",
        DeviceKind::Listener => "port",
        DeviceKind::Group => "group",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn check(column: Column, expected: &str) {
        let Quantity { group, name, unit } = quantity(column);
        assert_eq!(format!("{group} {name} {unit:?}"), expected);
    }

    #[test]
    fn columns_have_names_and_units() {
        check(Column::CpuUser, "cpu user Seconds(100)");
        check(Column::Load5, "loadavg 5m Hundredths");
        check(Column::MemDirty, "memory dirty Bytes(1024)");
        check(Column::SwapIn, "swap in Pages");
        check(Column::DiskReadSectors, "disk read Bytes(512)");
        check(Column::DiskIoMs, "disk busy Seconds(1000)");
        check(Column::DiskWeightedMs, "disk weighted Seconds(1000)");
        check(Column::PsiMemFull, "pressure memory_full Seconds(1000000)");
        check(Column::GroupUsage, "cgroup memory Bytes(1)");
        check(Column::GroupThrottledNs, "cgroup throttled Seconds(1000000000)");
        check(Column::TreeRss, "tree rss Bytes(1)");
        check(Column::TreeSwap, "tree swap Bytes(1)");
        check(Column::TreeSharesAgeNs, "tree shares_age Seconds(1000000000)");
        check(Column::SamplerLateNs, "sampler late Seconds(1000000000)");
        check(Column::PagedIn, "vm paged_in Bytes(1024)");
        check(Column::Forks, "system forks Count");
        check(Column::TcpListenOverflows, "tcp listen_overflows Count");
        check(Column::Uptime, "system uptime Seconds(100)");
        check(Column::LocksPosix, "locks posix Count");
    }

    #[test]
    fn no_two_columns_share_a_name_and_names_are_plain() {
        let mut seen = HashSet::new();
        for &column in Column::ALL {
            let Quantity { group, name, .. } = quantity(column);
            let plain = |text: &str| text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
            assert!(plain(&group) && plain(&name) && !name.ends_with("_ns"), "{group}.{name}");
            assert!(seen.insert((group, name)), "{}", column.name());
        }
    }

    #[test]
    fn devices_have_as_many_names_as_numbers() {
        for kind in KINDS {
            assert_eq!(of_device(kind).len(), kind.numbers(), "{kind:?}");
        }
    }
}
