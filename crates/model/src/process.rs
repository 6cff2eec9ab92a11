//! Counters of every process at one instant, for the few questions that have one process as their answer.

use crate::Nanos;
use serde::{Deserialize, Serialize};

/// Every process that could be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Processes {
    /// When they were read.
    pub at_ns: Nanos,
    /// In the order of /proc.
    pub list: Vec<ProcessNumbers>,
}

/// One process. What was not asked for, or is not for everyone to read, is 0.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProcessNumbers {
    /// Its number.
    pub pid: u32,
    /// Its name as the kernel has it, without the folders of a path.
    pub name: String,
    /// Clock ticks in user and system mode.
    pub ticks: u64,
    /// Those of its children that have ended and were waited for.
    pub child_ticks: u64,
    /// Resident memory, pages.
    pub resident_pages: u64,
    /// Bytes that it read by system calls, from wherever.
    pub chars_read: u64,
    /// Bytes that it wrote by system calls.
    pub chars_written: u64,
    /// Bytes that disks read for it.
    pub bytes_read: u64,
    /// Bytes that disks wrote for it.
    pub bytes_written: u64,
    /// Time on a CPU, ns.
    pub run_ns: u64,
    /// Time waiting for a CPU, ns.
    pub wait_ns: u64,
    /// How often it was given a CPU.
    pub slices: u64,
    /// What the kernel goes by when memory has run out.
    pub oom_score: u64,
}

impl Processes {
    /// A process by its number.
    #[must_use]
    pub fn of(&self, pid: u32) -> Option<&ProcessNumbers> {
        self.list.iter().find(|process| process.pid == pid)
    }
}
