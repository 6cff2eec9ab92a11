//! Counters of single devices at the instant of a reading: CPUs, disks, interfaces, swaps, interrupts.
//!
//! A [`Roster`] says which devices are looked at and where the numbers of each stand in a row; it stays the same for a whole
//! watch. Rows are unsigned numbers exactly as the kernel gave them, [`ABSENT`] where the kernel had nothing.

use crate::reading::ABSENT;
use serde::{Deserialize, Serialize};

/// Kinds of devices, and in which order their numbers stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeviceKind {
    /// One CPU: clock ticks of user, nice, system, idle, iowait, irq, softirq, steal.
    Cpu,
    /// One line of /proc/diskstats: reads, sectors read, writes, sectors written, ms of reads, ms of writes, ms busy, ms times
    /// operations under way.
    Disk,
    /// One interface: bytes received, bytes sent.
    Interface,
    /// One swap: its size and what is used of it, KiB.
    Swap,
    /// One interrupt: how often it came.
    Interrupt,
    /// One TCP port that is listened on: connections waiting to be accepted, and how many may.
    Listener,
    /// One control group beyond the server's: memory used, its limit and swap, bytes; CPU time, ns; time in which all of it waited
    /// for memory and for disks, us.
    Group,
}

impl DeviceKind {
    /// How many numbers there are of one device.
    #[must_use]
    pub fn numbers(self) -> usize {
        match self {
            DeviceKind::Cpu | DeviceKind::Disk => 8,
            DeviceKind::Interface | DeviceKind::Swap | DeviceKind::Listener => 2,
            DeviceKind::Group => 6,
            DeviceKind::Interrupt => 1,
        }
    }
}

/// One device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// What it is.
    pub kind: DeviceKind,
    /// Its name as the kernel has it: `0` for cpu0, `sda1`, `eth0`, `/dev/dm-0`, `24`, a port.
    pub name: String,
}

/// The devices of a watch, in the order of their numbers in a row.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Roster {
    /// The devices.
    pub devices: Vec<Device>,
}

impl Roster {
    /// How many numbers a row has.
    #[must_use]
    pub fn numbers(&self) -> usize {
        self.devices.iter().map(|device| device.kind.numbers()).sum()
    }

    /// A row in which nothing is known.
    #[must_use]
    pub fn empty_row(&self) -> Vec<u64> {
        vec![ABSENT; self.numbers()]
    }

    /// The devices with the position of their first number.
    pub fn placed(&self) -> impl Iterator<Item = (usize, &Device)> {
        self.devices.iter().scan(0, |next, device| {
            let at = *next;
            *next += device.kind.numbers();
            Some((at, device))
        })
    }

    /// The numbers of a device in a row; `None` when the roster has no such device, or the row is of another roster.
    #[must_use]
    pub fn of<'r>(&self, kind: DeviceKind, name: &str, row: &'r [u64]) -> Option<&'r [u64]> {
        let (at, _) = self.placed().find(|(_, device)| device.kind == kind && device.name == name)?;
        row.get(at..at + kind.numbers())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_one_device_after_the_other() {
        let device = |kind, name: &str| Device { kind, name: name.to_owned() };
        let roster = Roster {
            devices: vec![
                device(DeviceKind::Interface, "lo"),
                device(DeviceKind::Interrupt, "9"),
                device(DeviceKind::Swap, "a"),
            ],
        };
        let row = [1, 2, 3, 4, 5];
        assert_eq!(roster.numbers(), row.len());
        assert_eq!(roster.of(DeviceKind::Swap, "a", &row), Some(&[4, 5][..]));
        assert_eq!(roster.of(DeviceKind::Interrupt, "9", &row), Some(&[3][..]));
        assert_eq!(roster.of(DeviceKind::Disk, "a", &row), None);
        assert_eq!(roster.of(DeviceKind::Swap, "a", &row[..4]), None);
        assert_eq!(roster.empty_row(), [ABSENT; 5]);
    }
}
