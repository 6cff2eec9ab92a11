//! Files of /proc that are cut, garbled or of another kernel: nothing panics, and what comes whole again is read whole again.

#![allow(clippy::unwrap_used, reason = "helpers of tests; clippy.toml excepts only test functions")]

use model::device::{Device, DeviceKind, Roster};
use model::reading::{Column, Look, Reading};
use monitor::{Reader, Table, Watch, present};
use proptest::prelude::*;
use testkit::fake_proc::FakeTree;

/// One text for every file that is read, in the order of an arm of a machine.
const FILES: [(&str, &str); 24] = [
    (
        "stat",
        "cpu  11 2 33 44 5 6 7 8 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\nintr 99 0 11 22\nctxt 5\nprocesses 6\nprocs_running 1\nprocs_blocked 0\n",
    ),
    ("loadavg", "0.52 1.00 12.34 1/79 1234\n"),
    ("uptime", "83456.78 160000.10\n"),
    ("meminfo", "MemTotal: 1020432 kB\nMemFree: 288976 kB\nCached: 5 kB\nSwapTotal: 7 kB\nSwapFree: 6 kB\n"),
    ("vmstat", "pswpin 1\npswpout 2\npgalloc_dma32 3\npgalloc_normal 4\npgfree 5\npgfault 6\npgmajfault 7\n"),
    ("diskstats", "   8       0 sda 100 9 2000 5 300 8 4000 7 2 600 700\n"),
    ("net/dev", "Inter-| Receive\n face |bytes\n  eth0: 10 1 0 0 0 0 0 0 20 2 0 0 0 0 0 0\n"),
    ("net/snmp", "Tcp: RetransSegs\nTcp: 1\n"),
    ("net/netstat", "TcpExt: ListenOverflows ListenDrops\nTcpExt: 1 2\n"),
    ("net/sockstat", "sockets: used 15\nTCP: inuse 1 orphan 0 tw 77\n"),
    ("net/tcp", "sl\n 0: a b 0A 1\n"),
    ("net/tcp6", "sl\n 0: a b 01 1\n"),
    ("net/udp", "sl\n 0: a b 07 1\n"),
    ("net/udp6", "sl\n"),
    ("net/raw", "sl\n 0: a b 07 1\n"),
    ("net/unix", "Num\n0: 2 0 0 0001 01 5 /run/a\n"),
    ("locks", "1: POSIX  ADVISORY  WRITE 812 fd:00:1837 0 EOF\n"),
    ("swaps", "Filename Type Size Used Priority\n/swap file 7 1 -2\n"),
    ("sys/fs/file-nr", "1504 0 9\n"),
    ("sys/fs/inode-nr", "71210 912\n"),
    ("sysvipc/msg", "key\n"),
    ("sysvipc/sem", "key\n 0\n"),
    ("sysvipc/shm", "key\n 0\n 1\n"),
    ("pressure/memory", "some avg10=0.00 avg60=0.00 avg300=0.00 total=20\nfull avg10=0.00 total=10\n"),
];

const KINDS: [(DeviceKind, &str); 5] = [
    (DeviceKind::Cpu, "0"),
    (DeviceKind::Disk, "sda"),
    (DeviceKind::Interface, "eth0"),
    (DeviceKind::Swap, "/swap"),
    (DeviceKind::Interrupt, "2"),
];

struct World {
    dir: tempfile::TempDir,
    reader: Reader,
}

impl World {
    fn new() -> World {
        let dir = tempfile::tempdir().unwrap();
        let tree = FakeTree::new(dir.path());
        tree.file("block/sda/size", "1");
        FILES.iter().for_each(|(path, text)| tree.file(path, text));
        let device = |(kind, name): (DeviceKind, &str)| Device { kind, name: name.to_owned() };
        let watch = Watch {
            tables: vec![Table::Tcp, Table::Udp, Table::Raw, Table::Unix, Table::Locks, Table::Ipc],
            devices: Roster { devices: KINDS.map(device).to_vec() },
            proc_root: dir.path().to_owned(),
            sys_root: dir.path().to_owned(),
            ..Watch::default()
        };
        World { reader: Reader::open(&watch), dir }
    }

    fn write(&self, path: &str, bytes: &[u8]) {
        std::fs::write(self.dir.path().join(path), bytes).unwrap();
    }

    /// What is read of the files; not when, nor what the reader suffered itself, nor what its disk was busiest with.
    fn read(&mut self) -> (Vec<Option<u64>>, Vec<u64>) {
        let Look { reading, devices } = self.reader.read();
        let of_files = |row: &Reading, column: Column| match column {
            Column::SamplerFaults | Column::DiskIoMs => None,
            column => row.get(column),
        };
        (Column::ALL.iter().map(|&column| of_files(&reading, column)).collect(), devices)
    }
}

/// Bytes as they might come from a kernel of another day: numbers, signs, blanks, line ends, or anything.
fn odd() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..300),
        "[0-9a-zA-Z:. \\n\\t/-]{0,300}".prop_map(String::into_bytes),
        "(cpu|cpu0|intr|sda|eth0:|TCP:|some|/swap) ( [0-9]{0,25}){0,20}\\n".prop_map(String::into_bytes),
    ]
}

#[test]
fn every_cut_of_every_file() {
    let mut world = World::new();
    let whole = world.read();
    for (path, text) in FILES {
        for length in 0..text.len() {
            world.write(path, &text.as_bytes()[..length]);
            world.read();
        }
        world.write(path, text.as_bytes());
        assert_eq!(world.read(), whole, "{path}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn anything_in_any_file(texts in prop::collection::vec(odd(), FILES.len())) {
        let mut world = World::new();
        let whole = world.read();
        for ((path, _), text) in FILES.iter().zip(&texts) {
            world.write(path, text);
        }
        let (_, numbers) = world.read();
        prop_assert_eq!(numbers.len(), whole.1.len());
        for (kind, _) in KINDS {
            let _ = present(world.dir.path(), kind);
        }
        for (path, text) in FILES {
            world.write(path, text.as_bytes());
        }
        prop_assert_eq!(world.read(), whole);
    }
}
