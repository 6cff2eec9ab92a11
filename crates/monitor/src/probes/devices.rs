//! The numbers of single devices: CPUs, disks, interfaces, swaps and interrupts that a roster names.
//!
//! A device that is not there, or no more, has absent numbers until it comes back. Which devices there are is told by [`present`].

use super::{Probes, listeners};
use crate::text::{fields, lines, number};
use model::device::{DeviceKind, Roster};
use model::reading::ABSENT;
use std::path::Path;

/// One device.
struct Wanted {
    kind: DeviceKind,
    name: Vec<u8>,
    /// Where its first number stands.
    at: usize,
}

type Parse = fn(&[u8], &[Wanted], &mut [u64]);

/// A file, the kinds of devices it tells of, and how.
const FILES: [(&str, &[DeviceKind], Parse); 4] = [
    ("stat", &[DeviceKind::Cpu, DeviceKind::Interrupt], stat),
    ("diskstats", &[DeviceKind::Disk], diskstats),
    ("net/dev", &[DeviceKind::Interface], dev),
    ("swaps", &[DeviceKind::Swap], swaps),
];

/// Opens the files that the roster needs.
pub(super) fn open(probes: &mut Probes, proc_root: &Path, roster: &Roster) {
    for (file, kinds, parse) in FILES {
        let placed = roster.placed().filter(|(_, device)| kinds.contains(&device.kind));
        let wanted: Vec<Wanted> = placed
            .map(|(at, device)| Wanted { kind: device.kind, name: device.name.clone().into_bytes(), at })
            .collect();
        if !wanted.is_empty() {
            probes.keep_for_look(&proc_root.join(file), move |text, look| parse(text, &wanted, &mut look.devices));
        }
    }
}

/// The devices of a kind that there are now, in the order of the kernel.
#[must_use]
pub fn present(proc_root: &Path, kind: DeviceKind) -> Vec<String> {
    if kind == DeviceKind::Listener {
        return listeners::ports().iter().map(u16::to_string).collect();
    }
    let Some((file, _, _)) = FILES.iter().find(|(_, kinds, _)| kinds.contains(&kind)) else { return Vec::new() };
    let Ok(text) = std::fs::read(proc_root.join(file)) else { return Vec::new() };
    let name = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
    match kind {
        DeviceKind::Cpu => lines(&text).filter_map(cpu_of).map(name).collect(),
        DeviceKind::Disk => lines(&text).filter_map(|line| fields(line).nth(2)).map(name).collect(),
        DeviceKind::Interface => lines(&text).filter_map(interface_of).map(|(found, _)| name(found)).collect(),
        DeviceKind::Swap => lines(&text).filter_map(swap_of).map(|(found, _)| name(found)).collect(),
        DeviceKind::Interrupt => {
            let all = lines(&text).filter_map(interrupts_of).flat_map(Iterator::enumerate);
            all.filter(|(_, count)| number(count).is_some_and(|count| count > OFTEN))
                .map(|(at, _)| at.to_string())
                .collect()
        }
        // Told above; and groups are named, not found.
        DeviceKind::Listener | DeviceKind::Group => Vec::new(),
    }
}

/// An interrupt that came more often than this is of interest, dstat says.
const OFTEN: u64 = 10;

/// `cpu12 ...`, but not `cpu ...`.
fn cpu_of(line: &[u8]) -> Option<&[u8]> {
    fields(line).next()?.strip_prefix(b"cpu").filter(|name| !name.is_empty())
}

/// `eth0: 1 2 3`, where kernels before 2.6.39 left no blank.
fn interface_of(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = line.iter().rposition(|&byte| byte == b':')?;
    Some((line[..colon].trim_ascii(), &line[colon + 1..]))
}

/// `/swap file 720000 1200 -2`, the heading left out.
fn swap_of(line: &[u8]) -> Option<(&[u8], [u64; 2])> {
    let mut fields = fields(line);
    let name = fields.next()?;
    let mut sizes = fields.skip(1).map(number);
    Some((name, [sizes.next()??, sizes.next()??]))
}

/// The counts of the single interrupts, behind their sum.
fn interrupts_of(line: &[u8]) -> Option<impl Iterator<Item = &[u8]>> {
    line.starts_with(b"intr ").then(|| fields(line).skip(2))
}

fn stat(text: &[u8], wanted: &[Wanted], numbers: &mut [u64]) {
    for line in lines(text) {
        if let Some(name) = cpu_of(line) {
            set(wanted, DeviceKind::Cpu, name, numbers, |at| fields(line).nth(1 + at).and_then(number));
        } else if interrupts_of(line).is_some() {
            for device in wanted.iter().filter(|device| device.kind == DeviceKind::Interrupt) {
                let at = number(&device.name).and_then(|at| usize::try_from(at).ok());
                let count = at.and_then(|at| interrupts_of(line)?.nth(at)).and_then(number);
                numbers[device.at] = count.unwrap_or(ABSENT);
            }
        }
    }
}

/// Positions in a line, in the order of [`DeviceKind::Disk`].
const DISK: [usize; 8] = [3, 5, 7, 9, 6, 10, 12, 13];

fn diskstats(text: &[u8], wanted: &[Wanted], numbers: &mut [u64]) {
    for line in lines(text) {
        let Some(name) = fields(line).nth(2) else { continue };
        set(wanted, DeviceKind::Disk, name, numbers, |at| fields(line).nth(DISK[at]).and_then(number));
    }
}

/// Positions after the colon, in the order of [`DeviceKind::Interface`].
const INTERFACE: [usize; 2] = [0, 8];

fn dev(text: &[u8], wanted: &[Wanted], numbers: &mut [u64]) {
    for (name, counts) in lines(text).filter_map(interface_of) {
        set(wanted, DeviceKind::Interface, name, numbers, |at| fields(counts).nth(INTERFACE[at]).and_then(number));
    }
}

fn swaps(text: &[u8], wanted: &[Wanted], numbers: &mut [u64]) {
    for (name, sizes) in lines(text).filter_map(swap_of) {
        set(wanted, DeviceKind::Swap, name, numbers, |at| Some(sizes[at]));
    }
}

/// Sets the numbers of a device, if it is wanted.
fn set(wanted: &[Wanted], kind: DeviceKind, name: &[u8], numbers: &mut [u64], value: impl Fn(usize) -> Option<u64>) {
    for device in wanted.iter().filter(|device| device.kind == kind && device.name == name) {
        for at in 0..kind.numbers() {
            numbers[device.at + at] = value(at).unwrap_or(ABSENT);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::device::Device;
    use model::reading::Look;
    use testkit::fake_proc::FakeTree;

    const STAT: &str = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\ncpu1 1 2 3 4\nintr 99 0 11 22 33\nctxt 1\n";
    const DISKSTATS: &str = "   8       0 sda 100 9 2000 5 300 8 4000 7 2 600 700\n   8       1 sda1 1 1\n";
    const DEV: &str = "Inter-| Receive | Transmit\n face |bytes packets\n  eth0: 10 1 0 0 0 0 0 0 20 2 0 0 0 0 0 0\n\
        br0:1:30 1 0 0 0 0 0 0 40 2 0 0 0 0 0 0\n";
    const SWAPS: &str = "Filename\t\t\t\tType\t\tSize\tUsed\tPriority\n/dev/dm-1  partition\t4194300\t70000\t-2\n";

    fn tree() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let tree = FakeTree::new(dir.path());
        [("stat", STAT), ("diskstats", DISKSTATS), ("net/dev", DEV), ("swaps", SWAPS)]
            .iter()
            .for_each(|(path, text)| tree.file(path, text));
        dir
    }

    fn check(kind: DeviceKind, name: &str, expected: &[u64]) {
        let dir = tree();
        let roster = Roster { devices: vec![Device { kind, name: name.to_owned() }] };
        let mut probes = Probes::none();
        open(&mut probes, dir.path(), &roster);
        let mut look = Look::empty(0, roster.numbers());
        probes.read(&mut look);
        assert_eq!(look.devices, expected, "{kind:?} {name} {:?}", probes.notes);
    }

    #[test]
    fn each_kind_by_name() {
        check(DeviceKind::Cpu, "0", &[1, 2, 3, 4, 5, 6, 7, 8]);
        // A kernel with fewer columns.
        check(DeviceKind::Cpu, "1", &[1, 2, 3, 4, ABSENT, ABSENT, ABSENT, ABSENT]);
        check(DeviceKind::Disk, "sda", &[100, 2000, 300, 4000, 5, 7, 600, 700]);
        check(DeviceKind::Disk, "sda1", &[1, ABSENT, ABSENT, ABSENT, ABSENT, ABSENT, ABSENT, ABSENT]);
        check(DeviceKind::Interface, "eth0", &[10, 20]);
        check(DeviceKind::Interface, "br0:1", &[30, 40]);
        check(DeviceKind::Swap, "/dev/dm-1", &[4_194_300, 70_000]);
        check(DeviceKind::Interrupt, "2", &[22]);
        check(DeviceKind::Interrupt, "4", &[ABSENT]);
        check(DeviceKind::Interrupt, "eth2", &[ABSENT]);
        check(DeviceKind::Disk, "sdb", &[ABSENT; 8]);
    }

    #[test]
    fn what_there_is() {
        let dir = tree();
        let check = |kind, expected: &[&str]| assert_eq!(present(dir.path(), kind), expected);
        check(DeviceKind::Cpu, &["0", "1"]);
        check(DeviceKind::Disk, &["sda", "sda1"]);
        check(DeviceKind::Interface, &["eth0", "br0:1"]);
        check(DeviceKind::Swap, &["/dev/dm-1"]);
        check(DeviceKind::Interrupt, &["1", "2", "3"]);
    }

    #[test]
    fn a_file_that_is_missing_costs_one_note() {
        let dir = tempfile::tempdir().unwrap();
        let device = |name: &str| Device { kind: DeviceKind::Disk, name: name.to_owned() };
        let roster = Roster { devices: vec![device("sda"), device("sdb")] };
        let mut probes = Probes::none();
        open(&mut probes, dir.path(), &roster);
        let [note] = &probes.notes[..] else { panic!("{:?}", probes.notes) };
        assert!(note.contains("diskstats cannot be read"), "{note}");
    }
}
