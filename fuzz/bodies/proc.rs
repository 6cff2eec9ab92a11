//! Whatever the files of /proc and of a control group hold, a reader of them does not panic, gives a row of the same shape,
//! reads the same files twice alike, and is not confused for ever: once they are whole again it reads what it read before.
//!
//! A fuzz target and the tests of `monitor` both run this; it knows only what `monitor` shows to everybody.

use model::device::{Device, DeviceKind, Roster};
use model::reading::{Column, Look, Span};
use monitor::{GroupDirs, Reader, Table, Watch, present};
use std::path::{Path, PathBuf};

/// A line that begins a file has its path behind this.
const FILE: &str = "== ";
/// As a path: the files behind it are those of a second later.
const THEN: &str = "then";

/// Single devices that are looked at.
const DEVICES: [(DeviceKind, &str); 8] = [
    (DeviceKind::Cpu, "0"),
    (DeviceKind::Cpu, "1"),
    (DeviceKind::Disk, "sda"),
    (DeviceKind::Disk, "sda1"),
    (DeviceKind::Interface, "eth0"),
    (DeviceKind::Interface, "eth1"),
    (DeviceKind::Swap, "/swapfile"),
    (DeviceKind::Interrupt, "2"),
];

/// A control group, below the root.
const GROUP: &str = "g";

/// The files that are read, and nothing outside of the world may be written.
const PATHS: [&str; 41] = [
    "stat",
    "loadavg",
    "uptime",
    "meminfo",
    "vmstat",
    "diskstats",
    "swaps",
    "locks",
    "net/dev",
    "net/snmp",
    "net/netstat",
    "net/sockstat",
    "net/tcp",
    "net/tcp6",
    "net/udp",
    "net/udp6",
    "net/raw",
    "net/unix",
    "sys/fs/file-nr",
    "sys/fs/inode-nr",
    "sysvipc/msg",
    "sysvipc/sem",
    "sysvipc/shm",
    "pressure/cpu",
    "pressure/memory",
    "pressure/io",
    "g/memory.usage_in_bytes",
    "g/memory.limit_in_bytes",
    "g/memory.failcnt",
    "g/memory.oom_control",
    "g/memory.stat",
    "g/memory.events",
    "g/memory.current",
    "g/memory.max",
    "g/memory.swap.current",
    "g/cpuacct.usage",
    "g/cpu.stat",
    "g/cpu.pressure",
    "g/memory.pressure",
    "g/io.pressure",
    "g/cgroup.controllers",
];

/// Directories that stand for /proc, /sys and a control group, emptied for each look.
pub(crate) struct World {
    root: PathBuf,
}

/// The files of two instants: path and text.
#[derive(Debug, Default, Clone)]
pub(crate) struct Instants<'t>([Vec<(&'t str, &'t [u8])>; 2]);

/// Takes a text of the corpus apart; what stands before the first file says where the others are from.
pub(crate) fn instants(text: &[u8]) -> Instants<'_> {
    let mut instants = Instants::default();
    let (mut instant, mut begin, mut path) = (0, 0, None);
    let mut at = 0;
    for line in text.split_inclusive(|&byte| byte == b'\n') {
        if let Some(next) = line.strip_prefix(FILE.as_bytes()) {
            keep(&mut instants.0[instant], path, &text[begin..at]);
            path = std::str::from_utf8(next).ok().map(str::trim_end);
            begin = at + line.len();
            if path == Some(THEN) {
                instant = 1;
            }
        }
        at += line.len();
    }
    keep(&mut instants.0[instant], path, &text[begin..]);
    instants
}

fn keep<'t>(files: &mut Vec<(&'t str, &'t [u8])>, path: Option<&str>, text: &'t [u8]) {
    if let Some(known) = PATHS.into_iter().find(|known| path == Some(known)) {
        files.push((known, text));
    }
}

impl World {
    /// A world in a directory of the caller's, which it may empty.
    pub(crate) fn new(root: &Path) -> World {
        for disk in ["sda", "sr0", "nvme0n1", "dm-0/slaves/sda1", "vda"] {
            std::fs::create_dir_all(root.join("sys/block").join(disk)).expect("a directory");
        }
        for path in PATHS {
            let parent = root.join("proc").join(path).parent().map(Path::to_owned);
            std::fs::create_dir_all(parent.expect("it is below the root")).expect("a directory");
        }
        World { root: root.to_owned() }
    }

    fn write(&self, files: &[(&str, &[u8])]) {
        files.iter().for_each(|(path, text)| std::fs::write(self.root.join("proc").join(path), text).expect("room"));
    }

    fn empty(&self) {
        for path in PATHS {
            // Most are not there.
            let _ = std::fs::remove_file(self.root.join("proc").join(path));
        }
    }

    fn watch(&self) -> Watch {
        let device = |(kind, name): (DeviceKind, &str)| Device { kind, name: name.to_owned() };
        let group = Some(self.root.join("proc").join(GROUP));
        let v1_only = group.clone().filter(|group| !group.join("cgroup.controllers").exists());
        Watch {
            tables: vec![Table::Tcp, Table::Udp, Table::Raw, Table::Unix, Table::Locks, Table::Ipc],
            devices: Roster { devices: DEVICES.map(device).to_vec() },
            group: GroupDirs { memory: group.clone(), cpuacct: v1_only, cpu: group.clone(), unified: group },
            proc_root: self.root.join("proc"),
            sys_root: self.root.join("sys"),
            ..Watch::default()
        }
    }

    /// What is read at the first instant and at the second, and the notes.
    pub(crate) fn looks(&self, instants: &Instants<'_>) -> ([Look; 2], Vec<String>) {
        self.empty();
        self.write(&instants.0[0]);
        let mut reader = Reader::open(&self.watch());
        let first = reader.read();
        self.write(&instants.0[1]);
        let second = reader.read();
        ([first, second], reader.notes().to_vec())
    }
}

/// Holds a reader to its promises on this text.
///
/// # Panics
/// When it breaks one.
pub(crate) fn check(world: &World, text: &[u8]) {
    let instants = instants(text);
    world.empty();
    world.write(&instants.0[0]);
    let watch = world.watch();
    let mut reader = Reader::open(&watch);
    let mut notes = reader.notes().to_vec();
    notes.sort();
    notes.dedup();
    assert_eq!(notes.len(), reader.notes().len(), "a thing is told twice: {:?}", reader.notes());
    let whole = of_files(&reader.read());
    assert_eq!(whole.1.len(), watch.devices.numbers());
    assert_eq!(of_files(&reader.read()), whole, "the same files again");
    for (kind, _) in DEVICES {
        assert_eq!(present(&watch.proc_root, kind), present(&watch.proc_root, kind), "{kind:?}");
    }
    let before = reader.read();
    for cut in [1, 2, 3] {
        let cut: Vec<_> = instants.0[0].iter().map(|(path, text)| (*path, &text[..text.len() * cut / 4])).collect();
        world.write(&cut);
        assert_eq!(reader.read().devices.len(), whole.1.len());
    }
    world.write(&instants.0[1]);
    let after = reader.read();
    let span = Span { from: &before.reading, to: &after.reading };
    for &column in Column::ALL {
        let grown = span.delta(column).unwrap_or(0);
        assert!(grown <= after.reading.get(column).unwrap_or(0), "{column:?} grew by more than it is: {grown}");
    }
    // Written over, so that whoever has them open reads the new text.
    world.write(&instants.0[0]);
    assert_eq!(of_files(&reader.read()), whole, "whole again");
}

/// What is read of the files; not when, nor what the reader suffered itself, nor what its disk was busiest with.
fn of_files(look: &Look) -> (Vec<Option<u64>>, Vec<u64>) {
    let of_files = |column: Column| match column {
        Column::SamplerFaults | Column::DiskIoMs => None,
        column => look.reading.get(column),
    };
    (Column::ALL.iter().map(|&column| of_files(column)).collect(), look.devices.clone())
}
