//! What a sampler is to read, how often, and where the world is.
//!
//! Plain data, handed to the sampler process as JSON; it does not look whether the files exist.

use crate::ring::Shape;
use model::device::Roster;
use model::{Nanos, SECOND};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What to read and how often.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watch {
    /// Time between two readings, in nanoseconds; at least a millisecond.
    pub period_ns: Nanos,
    /// Time between two readings while memory is short, a whole part of `period_ns`; `None` to keep the period in any case. The
    /// readings between the appointments say so in [`SamplerExtra`](model::reading::Column::SamplerExtra).
    #[serde(default)]
    pub storm_period_ns: Option<Nanos>,
    /// How many readings there is room for until they are collected; the earliest are overwritten after that, and a note says so.
    /// One takes about 1 KB of locked memory.
    pub capacity: usize,
    /// Which of the host's own columns are wanted; those of the others are absent.
    #[serde(default = "all_parts")]
    pub parts: Vec<Part>,
    /// The control group of the server.
    pub group: GroupDirs,
    /// Groups that the roster names, and where they are.
    #[serde(default)]
    pub groups: Vec<NamedGroup>,
    /// The root of the server's process tree.
    pub root_pid: Option<u32>,
    /// Roots of further trees that belong to the server and are not below its own, such as PHP's processes: their processes count
    /// with it, and none of them is one of its workers.
    #[serde(default)]
    pub beside_pids: Vec<u32>,
    /// The same of trees that are held neither to its CPUs nor to its group: their CPU time is told apart, too.
    #[serde(default)]
    pub behind_pids: Vec<u32>,
    /// Whether another root may be named later ([`Sampler::follow`](crate::Sampler::follow)), or a first one. Columns of a tree
    /// whose root is not there are absent then, and those of one whose only root has gone are 0.
    #[serde(default)]
    pub root_may_change: bool,
    /// Whether those of the tree that wait for a file lock are counted. The kernel makes whoever reads its table of locks wait for
    /// some milliseconds.
    #[serde(default = "yes")]
    pub lock_waiters: bool,
    /// How often the memory that the processes of the tree share is looked at, in nanoseconds; `None` for never. It is dear, some
    /// milliseconds for a large process, and holds up its page faults meanwhile: ten seconds is often enough.
    #[serde(default)]
    pub shares_period_ns: Option<Nanos>,
    /// The TCP port on which the server listens.
    pub port: Option<u16>,
    /// Whether the connections of that port are counted on which bytes wait, on their way or to be read: the kernel walks all of its
    /// connections for it.
    #[serde(default)]
    pub waiting: bool,
    /// Whether the load has CPUs of its own, on which such a walk may be done behind all others when it is dear.
    #[serde(default)]
    pub apart: bool,
    /// TCP ports of servers that stand behind it: who waits there, and whom they have accepted.
    #[serde(default)]
    pub ports_behind: Vec<u16>,
    /// The accept queues of all listening sockets: the fullest, and those of the ports in the roster.
    #[serde(default)]
    pub listeners: bool,
    /// Tables of the kernel that are counted line by line, which is dear when they are long.
    pub tables: Vec<Table>,
    /// Single devices whose own numbers are wanted.
    pub devices: Roster,
    /// Where the proc file system is.
    pub proc_root: PathBuf,
    /// Where the sys file system is.
    pub sys_root: PathBuf,
}

/// Columns of the host that are read together, because they stand in the same file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// /proc/stat: CPU time, interrupts, context switches, forks, runnable and blocked processes.
    Cpu,
    /// /proc/loadavg.
    Load,
    /// /proc/meminfo: memory and swap.
    Memory,
    /// /proc/vmstat: paging in and out, faults, refaults, allocations.
    Paging,
    /// /proc/diskstats: all whole disks together.
    Disks,
    /// /proc/net/dev: all interfaces together, and the loopback.
    Interfaces,
    /// /proc/net/snmp and netstat: retransmits, overflows of accept queues.
    Tcp,
    /// /proc/net/sockstat: sockets by protocol, TIME_WAIT.
    Sockets,
    /// /proc/uptime.
    Uptime,
    /// /proc/sys/fs: open files and inodes.
    Files,
    /// /proc/pressure.
    Pressure,
}

impl Part {
    /// Every part, in the order in which they are read.
    pub const ALL: [Part; 11] = [
        Part::Cpu,
        Part::Load,
        Part::Memory,
        Part::Paging,
        Part::Disks,
        Part::Interfaces,
        Part::Tcp,
        Part::Sockets,
        Part::Uptime,
        Part::Files,
        Part::Pressure,
    ];
}

fn yes() -> bool {
    true
}

fn all_parts() -> Vec<Part> {
    Part::ALL.to_vec()
}

/// A table of the kernel with a line for each of something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Table {
    /// TCP sockets by state.
    Tcp,
    /// UDP sockets by state.
    Udp,
    /// Raw sockets.
    Raw,
    /// Unix sockets by kind and state.
    Unix,
    /// File locks.
    Locks,
    /// System V queues, semaphores and segments.
    Ipc,
}

/// A control group by the name that a roster has for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedGroup {
    /// The name.
    pub name: String,
    /// Its directories.
    pub dirs: GroupDirs,
}

/// The directories of one control group; one that is `None` leaves its columns absent. Under cgroup v2 all that are given name
/// the same directory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupDirs {
    /// The memory controller: v1, or v2.
    pub memory: Option<PathBuf>,
    /// The cpuacct controller (v1).
    pub cpuacct: Option<PathBuf>,
    /// The cpu controller: v1 for throttling, or v2.
    pub cpu: Option<PathBuf>,
    /// The unified (v2) directory, for pressure; it may exist beside v1 controllers.
    pub unified: Option<PathBuf>,
}

impl Watch {
    /// How large a ring it needs.
    pub(crate) fn shape(&self) -> Shape {
        Shape { capacity: self.capacity, devices: self.devices.numbers() }
    }
}

impl Default for Watch {
    /// The host alone, once a second, an hour of it.
    fn default() -> Self {
        Watch {
            period_ns: SECOND,
            storm_period_ns: None,
            capacity: 3600,
            parts: all_parts(),
            group: GroupDirs::default(),
            groups: Vec::new(),
            root_pid: None,
            beside_pids: Vec::new(),
            behind_pids: Vec::new(),
            root_may_change: false,
            lock_waiters: true,
            shares_period_ns: None,
            port: None,
            waiting: false,
            apart: false,
            ports_behind: Vec::new(),
            listeners: false,
            tables: Vec::new(),
            devices: Roster::default(),
            proc_root: PathBuf::from("/proc"),
            sys_root: PathBuf::from("/sys"),
        }
    }
}
