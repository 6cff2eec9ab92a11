//! Raw counters of the host at one instant, and what two of them say.
//!
//! A [`Reading`] is a row of unsigned numbers exactly as the kernel gave them, one per [`Column`]; [`ABSENT`] where the kernel
//! had nothing. A [`Span`] is two readings; every rate is derived from one. A column is added by one line at the end of the table
//! below: what is stored has the names of its columns, so old readings stay readable and have new columns absent.

use crate::Nanos;
use serde::{Deserialize, Serialize};

/// The value of a column that could not be read.
pub const ABSENT: u64 = u64::MAX;

/// Whether two readings of a column are subtracted or the later one stands for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Grows; a rate is a difference over time.
    Counter,
    /// A level.
    Gauge,
}

macro_rules! columns {
    ($($variant:ident $name:literal $kind:ident $about:literal;)*) => {
        /// What a reading holds. Names are what the store and every export call the column.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(usize)]
        pub enum Column { $(#[doc = $about] $variant),* }

        impl Column {
            /// Where CPU time goes, in the order of /proc/stat.
            pub const CPU_TIME: [Column; 8] = [
                Column::CpuUser,
                Column::CpuNice,
                Column::CpuSystem,
                Column::CpuIdle,
                Column::CpuIowait,
                Column::CpuIrq,
                Column::CpuSoftirq,
                Column::CpuSteal,
            ];

            /// Every column, in the order of a reading's values.
            pub const ALL: &'static [Column] = &[$(Column::$variant),*];

            /// The column's name in the store.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Column::$variant => $name),* }
            }

            /// Where it comes from, and in what unit it is stored: one sentence.
            #[must_use]
            pub fn about(self) -> &'static str {
                match self { $(Column::$variant => $about),* }
            }

            /// Counter or gauge.
            #[must_use]
            pub fn kind(self) -> Kind {
                match self { $(Column::$variant => Kind::$kind),* }
            }
        }
    };
}

columns! {
    CpuUser "cpu.user" Counter "/proc/stat, clock ticks over all CPUs.";
    CpuNice "cpu.nice" Counter "/proc/stat, clock ticks.";
    CpuSystem "cpu.system" Counter "/proc/stat, clock ticks.";
    CpuIdle "cpu.idle" Counter "/proc/stat, clock ticks.";
    CpuIowait "cpu.iowait" Counter "/proc/stat, clock ticks; idle time while a disk was waited for, not work.";
    CpuIrq "cpu.irq" Counter "/proc/stat, clock ticks.";
    CpuSoftirq "cpu.softirq" Counter "/proc/stat, clock ticks.";
    CpuSteal "cpu.steal" Counter "/proc/stat, clock ticks.";
    Interrupts "sys.interrupts" Counter "/proc/stat intr.";
    ContextSwitches "sys.context_switches" Counter "/proc/stat ctxt.";
    Forks "sys.forks" Counter "/proc/stat processes.";
    Runnable "sys.runnable" Gauge "/proc/stat procs_running, the reader included.";
    Blocked "sys.blocked" Gauge "/proc/stat procs_blocked.";
    Load1 "load.1m" Gauge "/proc/loadavg times 100.";
    Load5 "load.5m" Gauge "/proc/loadavg times 100.";
    Load15 "load.15m" Gauge "/proc/loadavg times 100.";
    MemTotal "mem.total" Gauge "/proc/meminfo, KiB.";
    MemFree "mem.free" Gauge "/proc/meminfo, KiB.";
    MemAvailable "mem.available" Gauge "/proc/meminfo, KiB.";
    MemBuffers "mem.buffers" Gauge "/proc/meminfo, KiB.";
    MemCached "mem.cached" Gauge "/proc/meminfo, KiB.";
    MemReclaimable "mem.sreclaimable" Gauge "/proc/meminfo SReclaimable, KiB.";
    MemShmem "mem.shmem" Gauge "/proc/meminfo, KiB.";
    MemDirty "mem.dirty" Gauge "/proc/meminfo, KiB.";
    MemWriteback "mem.writeback" Gauge "/proc/meminfo, KiB.";
    MemAnon "mem.anon" Gauge "/proc/meminfo AnonPages, KiB.";
    SwapTotal "swap.total" Gauge "/proc/meminfo, KiB.";
    SwapFree "swap.free" Gauge "/proc/meminfo, KiB.";
    SwapIn "vm.pswpin" Counter "/proc/vmstat, pages.";
    SwapOut "vm.pswpout" Counter "/proc/vmstat, pages.";
    MajorFaults "vm.pgmajfault" Counter "/proc/vmstat.";
    ScanDirect "vm.pgscan_direct" Counter "/proc/vmstat, pages.";
    RefaultAnon "vm.workingset_refault_anon" Counter "/proc/vmstat, pages.";
    RefaultFile "vm.workingset_refault_file" Counter "/proc/vmstat, pages.";
    OomKills "vm.oom_kill" Counter "/proc/vmstat.";
    DiskReads "disk.reads" Counter "/proc/diskstats, whole devices, completed reads.";
    DiskWrites "disk.writes" Counter "/proc/diskstats, whole devices, completed writes.";
    DiskReadSectors "disk.read_sectors" Counter "/proc/diskstats, 512-byte sectors.";
    DiskWriteSectors "disk.write_sectors" Counter "/proc/diskstats, 512-byte sectors.";
    DiskInFlight "disk.in_flight" Gauge "/proc/diskstats, operations under way.";
    DiskIoMs "disk.io_ms" Counter "/proc/diskstats io_ticks, ms: what the busiest device of each interval between readings grew by, summed.";
    DiskWeightedMs "disk.weighted_ms" Counter "/proc/diskstats, ms times operations.";
    NetRxBytes "net.rx_bytes" Counter "/proc/net/dev, all interfaces but lo, bonds and VLANs.";
    NetTxBytes "net.tx_bytes" Counter "/proc/net/dev, all interfaces but lo, bonds and VLANs.";
    NetDrops "net.drops" Counter "/proc/net/dev, both directions, all interfaces but lo, bonds and VLANs.";
    LoopbackBytes "net.lo_bytes" Counter "/proc/net/dev, lo, received.";
    TcpRetransmits "tcp.retransmits" Counter "/proc/net/snmp RetransSegs.";
    TcpListenOverflows "tcp.listen_overflows" Counter "/proc/net/netstat ListenOverflows.";
    TcpListenDrops "tcp.listen_drops" Counter "/proc/net/netstat ListenDrops.";
    TcpTimeWait "tcp.time_wait" Gauge "/proc/net/sockstat tw.";
    PsiCpuSome "psi.cpu.some" Counter "/proc/pressure/cpu, us.";
    PsiMemSome "psi.memory.some" Counter "/proc/pressure/memory, us.";
    PsiMemFull "psi.memory.full" Counter "/proc/pressure/memory, us.";
    PsiIoSome "psi.io.some" Counter "/proc/pressure/io, us.";
    PsiIoFull "psi.io.full" Counter "/proc/pressure/io, us.";
    GroupUsage "group.memory" Gauge "The server's group: memory.usage_in_bytes or memory.current, bytes.";
    GroupLimit "group.limit" Gauge "memory.limit_in_bytes or memory.max, bytes; absent when unlimited.";
    GroupAnon "group.anon" Gauge "memory.stat rss or anon, bytes.";
    GroupFile "group.file" Gauge "memory.stat cache or file, bytes.";
    GroupSwap "group.swap" Gauge "memory.stat swap or memory.swap.current, bytes.";
    GroupLimitHits "group.limit_hits" Counter "memory.failcnt or memory.events max.";
    GroupOomKills "group.oom_kill" Counter "memory.oom_control oom_kill or memory.events oom_kill.";
    GroupMajorFaults "group.pgmajfault" Counter "memory.stat pgmajfault.";
    GroupRefaultAnon "group.workingset_refault_anon" Counter "memory.stat, pages read back from swap.";
    GroupRefaultFile "group.workingset_refault_file" Counter "memory.stat, pages of files read again.";
    GroupCpuNs "group.cpu_ns" Counter "cpuacct.usage or cpu.stat usage_usec, ns.";
    GroupCpuUserNs "group.cpu_user_ns" Counter "cpuacct.usage_user or cpu.stat user_usec, ns.";
    GroupCpuSystemNs "group.cpu_system_ns" Counter "cpuacct.usage_sys or cpu.stat system_usec, ns.";
    GroupThrottledNs "group.throttled_ns" Counter "cpu.stat throttled time, ns.";
    GroupPsiCpuSome "group.psi.cpu.some" Counter "cpu.pressure of the group, us.";
    GroupPsiMemSome "group.psi.memory.some" Counter "memory.pressure of the group, us.";
    GroupPsiMemFull "group.psi.memory.full" Counter "memory.pressure of the group, us.";
    GroupPsiIoSome "group.psi.io.some" Counter "io.pressure of the group, us.";
    GroupPsiIoFull "group.psi.io.full" Counter "io.pressure of the group, us.";
    TreeProcesses "tree.processes" Gauge "Processes of the server, its root included.";
    TreeWorkers "tree.workers" Gauge "Direct children of the server's root process.";
    TreeBusyWorkers "tree.busy_workers" Gauge "Direct children that have a child of their own (a CGI under way) or are runnable or in disk sleep.";
    TreeRunning "tree.running" Gauge "Processes of the server in state R.";
    TreeDiskSleep "tree.disk_sleep" Gauge "Processes of the server in state D; absent where none is and most have several threads, of which the first is seen alone.";
    TreeLockWaiters "tree.lock_waiters" Gauge "Processes of the server that wait for a file lock, from /proc/locks.";
    TreeRss "tree.rss" Gauge "Resident bytes summed over the server's processes; shared pages are counted more than once.";
    TreeRssLargest "tree.rss_largest" Gauge "Resident bytes of the largest process.";
    TreeCpuTicks "tree.cpu_ticks" Gauge "User and system clock ticks of the processes, dead ones included until they are waited for, and of their waited-for children; falls when one leaves for good.";
    AcceptQueue "accept.queue" Gauge "Connections waiting to be accepted on the server's port.";
    AcceptLimit "accept.limit" Gauge "The most that may wait there: of several sockets those on which somebody waits, or the largest.";
    SamplerLateNs "sampler.late_ns" Gauge "How long after its appointed time this reading began, ns.";
    SamplerCostNs "sampler.cost_ns" Gauge "How long this reading took, ns.";
    SamplerFaults "sampler.major_faults" Counter "Major faults of the sampler itself.";
    Uptime "sys.uptime" Gauge "/proc/uptime times 100.";
    MinorFaults "vm.pgfault" Counter "/proc/vmstat, minor and major faults together.";
    PageAllocations "vm.pgalloc" Counter "/proc/vmstat pgalloc_*, pages of all zones.";
    PageFrees "vm.pgfree" Counter "/proc/vmstat, pages.";
    PagedIn "vm.pgpgin" Counter "/proc/vmstat, KiB.";
    PagedOut "vm.pgpgout" Counter "/proc/vmstat, KiB.";
    SocketsUsed "sockets.used" Gauge "/proc/net/sockstat, sockets of every family.";
    SocketsTcp "sockets.tcp" Gauge "/proc/net/sockstat TCP inuse.";
    SocketsUdp "sockets.udp" Gauge "/proc/net/sockstat UDP inuse.";
    SocketsRaw "sockets.raw" Gauge "/proc/net/sockstat RAW inuse.";
    SocketsFrag "sockets.frag" Gauge "/proc/net/sockstat FRAG inuse.";
    FilesOpen "fs.files" Gauge "/proc/sys/fs/file-nr, open files of the host.";
    Inodes "fs.inodes" Gauge "/proc/sys/fs/inode-nr, inodes in memory.";
    InodesFree "fs.free_inodes" Gauge "/proc/sys/fs/inode-nr, inodes in memory that are not in use.";
    IpcQueues "ipc.queues" Gauge "/proc/sysvipc/msg, lines.";
    IpcSemaphores "ipc.semaphores" Gauge "/proc/sysvipc/sem, lines.";
    IpcSegments "ipc.segments" Gauge "/proc/sysvipc/shm, lines.";
    LocksPosix "locks.posix" Gauge "/proc/locks.";
    LocksFlock "locks.flock" Gauge "/proc/locks.";
    LocksRead "locks.read" Gauge "/proc/locks.";
    LocksWrite "locks.write" Gauge "/proc/locks.";
    TcpListening "tcp.state.listen" Gauge "/proc/net/tcp and tcp6, state 0A.";
    TcpEstablished "tcp.state.established" Gauge "/proc/net/tcp and tcp6, state 01.";
    TcpHandshakes "tcp.state.handshake" Gauge "/proc/net/tcp and tcp6, states 02, 03 and 09 as dstat counts them.";
    TcpWaiting "tcp.state.time_wait" Gauge "/proc/net/tcp and tcp6, state 06.";
    TcpClosing "tcp.state.closing" Gauge "/proc/net/tcp and tcp6, states 04, 05, 07, 08 and 0B.";
    UdpListening "udp.listening" Gauge "/proc/net/udp and udp6, state 07.";
    UdpConnected "udp.connected" Gauge "/proc/net/udp and udp6, state 01.";
    RawSockets "raw.sockets" Gauge "/proc/net/raw, lines.";
    UnixDatagram "unix.datagram" Gauge "/proc/net/unix.";
    UnixStream "unix.stream" Gauge "/proc/net/unix.";
    UnixListening "unix.listening" Gauge "/proc/net/unix, streams that listen.";
    UnixConnected "unix.connected" Gauge "/proc/net/unix, streams that are connected.";
    TreePss "tree.pss" Gauge "Resident bytes of the server's processes, each shared page divided among those that share it (smaps_rollup); taken every few seconds, never while memory is short.";
    TreeUss "tree.uss" Gauge "Resident bytes that a process of the server shares with nobody, summed (smaps_rollup Private_Clean and Private_Dirty).";
    TreeSwap "tree.swap" Gauge "Bytes of the server's processes in swap (smaps_rollup; while memory is short VmSwap of status).";
    TreeSharesAgeNs "tree.shares_age_ns" Gauge "How old tree.pss and tree.uss are, ns.";
    TreeSharesCostNs "tree.shares_cost_ns" Gauge "CPU time that looking at them took, ns: it is not in sampler.cost_ns.";
    SamplerStorm "sampler.storm" Gauge "1 while memory is short and readings come faster, else 0; absent when no faster rate was asked for.";
    SamplerExtra "sampler.extra" Gauge "1 when this reading was taken between the appointments of the watch, for the sake of a storm, else 0.";
    DiskReadMs "disk.read_ms" Counter "/proc/diskstats, whole devices, ms that completed reads took.";
    DiskWriteMs "disk.write_ms" Counter "/proc/diskstats, whole devices, ms that completed writes took.";
    ListenQueue "listen.queue" Gauge "Connections waiting to be accepted by the listening TCP socket whose queue is fullest.";
    ListenLimit "listen.limit" Gauge "The most that may wait there.";
    TcpPassiveOpens "tcp.passive_opens" Counter "/proc/net/snmp PassiveOpens: connections that came in.";
    TcpActiveOpens "tcp.active_opens" Counter "/proc/net/snmp ActiveOpens: connections that went out.";
    TreeRoot "tree.root" Gauge "Number of the server's first process; two readings with different ones are of two servers. Absent while there is none.";
    WallNs "sampler.wall_ns" Gauge "CLOCK_REALTIME when this reading began: ns since 1970.";
    BootNs "sampler.boot_ns" Gauge "CLOCK_BOOTTIME when this reading began, ns: it goes on while the machine is suspended, when the clock of readings stands still.";
    GroupPeriods "group.cpu_periods" Counter "cpu.stat nr_periods: periods in which the group had something to do under its CPU limit.";
    GroupThrottledPeriods "group.cpu_throttled" Counter "cpu.stat nr_throttled: those in which its CPU time was used up before they ended.";
    TcpOutSegments "tcp.out_segments" Counter "/proc/net/snmp OutSegs: segments sent, without those that were sent again.";
    NetLinkNs "link.full_ns" Counter "/proc/net/dev and /sys/class/net/*/speed: time that the fullest direction of any interface with a device behind it needed at its full speed for what went over it in each interval between readings, summed, ns; absent when no such interface tells a speed.";
    TcpSending "tcp.sending" Gauge "Connections of the server's port that hold more bytes than the other end may have without saying so, from sock_diag; not in every reading where connections are many.";
    TcpUnread "tcp.unread" Gauge "Connections of the server's port that it has accepted and on which bytes lie that it has not read, from sock_diag; not in every reading where connections are many.";
    TreeCpuNs "tree.cpu_ns" Gauge "As tree.cpu_ticks in ns, by the kernel's clock of each process; of waited-for children only ticks are told.";
    TreeProgramLargest "tree.program_largest" Gauge "Resident bytes of the largest process that is neither a first process of the server's nor a child of one and is another program than its parent, such as a CGI.";
    TreeBehindCpuNs "tree.behind_cpu_ns" Gauge "What of tree.cpu_ns is of trees that are held neither to the server's CPUs nor to its group, such as that of the machine's own PHP-FPM; absent where there is none.";
    BehindQueue "behind.queue" Gauge "Connections waiting to be accepted on the ports of servers that stand behind the server, summed; absent where there are none, and not in every reading where connections are many.";
    BehindAccepted "behind.accepted" Gauge "Connections that they have accepted there, summed, from sock_diag; in the same readings.";
}

/// How many columns a reading has.
pub const COLUMNS: usize = Column::ALL.len();

/// Raw counters at one instant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// When it was taken.
    pub at_ns: Nanos,
    /// One value per column, [`ABSENT`] where there was none.
    pub values: [u64; COLUMNS],
}

impl Reading {
    /// A reading with nothing in it.
    #[must_use]
    pub fn empty(at_ns: Nanos) -> Self {
        Reading { at_ns, values: [ABSENT; COLUMNS] }
    }

    /// The value of a column, unless it is absent.
    #[must_use]
    pub fn get(&self, column: Column) -> Option<u64> {
        let value = self.values[column as usize];
        (value != ABSENT).then_some(value)
    }

    /// Sets a column.
    pub fn set(&mut self, column: Column, value: u64) {
        self.values[column as usize] = value;
    }
}

/// Everything that was read at one instant: the host's columns, and the numbers of the single devices that were asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// The columns.
    pub reading: Reading,
    /// The numbers of the devices, in the order of the [`Roster`](crate::device::Roster) of the watch.
    pub devices: Vec<u64>,
}

impl Look {
    /// A look at which nothing was seen, with room for so many numbers of devices.
    #[must_use]
    pub fn empty(at_ns: Nanos, devices: usize) -> Self {
        Look { reading: Reading::empty(at_ns), devices: vec![ABSENT; devices] }
    }

    /// Forgets what was seen, without giving up the room for it.
    pub fn clear(&mut self, at_ns: Nanos) {
        self.reading = Reading::empty(at_ns);
        self.devices.fill(ABSENT);
    }

    /// When it was taken.
    #[must_use]
    pub fn at_ns(&self) -> Nanos {
        self.reading.at_ns
    }
}

/// The readings of one trial, ascending in time, and what the sampler had to say of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Readings {
    /// The rows.
    pub rows: Vec<Reading>,
    /// What was refused or missing, one sentence each: "locked memory refused", "no PSI".
    pub notes: Vec<String>,
}

/// Two readings, the earlier first.
#[derive(Debug, Clone, Copy)]
pub struct Span<'a> {
    /// The earlier.
    pub from: &'a Reading,
    /// The later.
    pub to: &'a Reading,
}

impl Span<'_> {
    /// Real time between the two, in seconds.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.to.at_ns.saturating_sub(self.from.at_ns) as f64 / 1e9
    }

    /// How much a counter grew; 0 when it went backwards, as per-CPU counters may.
    #[must_use]
    pub fn delta(&self, column: Column) -> Option<u64> {
        Some(self.to.get(column)?.saturating_sub(self.from.get(column)?))
    }

    /// Growth per second of real time.
    #[must_use]
    pub fn rate(&self, column: Column) -> Option<f64> {
        let seconds = self.seconds();
        (seconds > 0.0).then(|| self.delta(column).map(|d| d as f64 / seconds)).flatten()
    }

    /// Share of the elapsed time, 0 to 1, of a counter of microseconds such as PSI's totals.
    #[must_use]
    pub fn share_of_time(&self, column: Column) -> Option<f64> {
        self.rate(column).map(|us_per_second| (us_per_second / 1e6).min(1.0))
    }

    /// Shares of all CPU time, 0 to 1; `None` when no tick passed.
    #[must_use]
    pub fn cpu(&self) -> Option<CpuShares> {
        use Column::{CpuIdle, CpuIowait, CpuIrq, CpuNice, CpuSoftirq, CpuSteal, CpuSystem, CpuUser};
        let ticks = |column| self.delta(column).unwrap_or(0) as f64;
        let user = ticks(CpuUser) + ticks(CpuNice);
        let system = ticks(CpuSystem) + ticks(CpuIrq) + ticks(CpuSoftirq);
        let (idle, iowait, steal) = (ticks(CpuIdle), ticks(CpuIowait), ticks(CpuSteal));
        let sum = user + system + idle + iowait + steal;
        (sum > 0.0).then(|| CpuShares {
            user: user / sum,
            system: system / sum,
            idle: idle / sum,
            iowait: iowait / sum,
            steal: steal / sum,
        })
    }
}

/// Where the CPU time of a span went; the five add up to 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CpuShares {
    /// User and nice.
    pub user: f64,
    /// System, interrupts included.
    pub system: f64,
    /// Idle with nothing waited for.
    pub idle: f64,
    /// Idle while a disk was waited for. Not work.
    pub iowait: f64,
    /// Taken by the hypervisor.
    pub steal: f64,
}

impl CpuShares {
    /// Time in which a CPU worked: user and system. Never 1 minus idle, which counts waiting for a disk as work.
    #[must_use]
    pub fn busy(&self) -> f64 {
        self.user + self.system
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(at_s: u64, set: &[(Column, u64)]) -> Reading {
        let mut reading = Reading::empty(at_s * crate::SECOND);
        set.iter().for_each(|&(column, value)| reading.set(column, value));
        reading
    }

    #[test]
    fn rates_divide_by_real_time() {
        let (from, to) = (reading(1, &[(Column::SwapOut, 100)]), reading(5, &[(Column::SwapOut, 900)]));
        let span = Span { from: &from, to: &to };
        assert_eq!(span.rate(Column::SwapOut), Some(200.0));
        assert_eq!(span.rate(Column::SwapIn), None);
    }

    #[test]
    fn idle_zero_is_not_busy() {
        // The first document's second run: usr 1, sys 25, wai 74, idl 0.
        let from =
            reading(0, &[(Column::CpuUser, 0), (Column::CpuSystem, 0), (Column::CpuIdle, 0), (Column::CpuIowait, 0)]);
        let to =
            reading(1, &[(Column::CpuUser, 1), (Column::CpuSystem, 25), (Column::CpuIdle, 0), (Column::CpuIowait, 74)]);
        let cpu = Span { from: &from, to: &to }.cpu().unwrap();
        assert!((cpu.busy() - 0.26).abs() < 1e-9 && cpu.idle == 0.0);
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = Column::ALL.iter().map(|c| c.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), COLUMNS);
    }
}
