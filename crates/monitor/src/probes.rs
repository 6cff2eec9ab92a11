//! The sources of a reading, one file each.
//!
//! A probe fills its columns of a row and leaves the others alone. Everything it needs is opened once; reading allocates
//! nothing and writes nothing. What cannot be opened costs one note and leaves its columns absent; the others go on.

mod accept;
mod cpu;
mod devices;
mod disk;
mod group;
mod itself;
mod kernel;
mod memory;
mod net;
mod psi;
mod tables;
mod tree;
mod tree_thread;

use crate::source::{Buffer, Source};
use crate::watch::Watch;
pub(crate) use devices::Devices;
pub use devices::present;
use model::reading::Reading;
use std::path::Path;

/// One source of counters.
pub(crate) trait Probe {
    /// Fills the probe's columns; those it cannot have now stay as they are.
    fn read(&mut self, row: &mut Reading, buffer: &mut Buffer);
}

/// Every probe of a watch, and what could not be opened.
pub(crate) struct Probes {
    probes: Vec<Box<dyn Probe>>,
    buffer: Buffer,
    /// One sentence for each source that is missing.
    pub(crate) notes: Vec<String>,
}

impl Probes {
    /// Opens everything the watch asks for.
    pub(crate) fn open(watch: &Watch) -> Self {
        let mut probes = Probes::none();
        cpu::open(&mut probes, &watch.proc_root);
        memory::open(&mut probes, &watch.proc_root);
        disk::open(&mut probes, &watch.proc_root, &watch.sys_root);
        net::open(&mut probes, &watch.proc_root);
        kernel::open(&mut probes, &watch.proc_root);
        psi::open_host(&mut probes, &watch.proc_root);
        group::open(&mut probes, &watch.group);
        accept::open(&mut probes, watch.port);
        itself::open(&mut probes);
        tables::open(&mut probes, &watch.proc_root, &watch.tables);
        // Last, because it is the one that may take long: everything else is read by then.
        tree_thread::open(&mut probes, watch);
        probes
    }

    /// Reads every probe into a row.
    pub(crate) fn read(&mut self, row: &mut Reading) {
        for probe in &mut self.probes {
            probe.read(row, &mut self.buffer);
        }
    }

    /// Reads single devices into the numbers of a row.
    pub(crate) fn read_devices(&mut self, devices: &mut Devices, numbers: &mut [u64]) {
        devices.read(&mut self.buffer, numbers);
    }

    fn none() -> Self {
        Probes { probes: Vec::new(), buffer: Buffer::new(), notes: Vec::new() }
    }

    fn add(&mut self, probe: impl Probe + 'static) {
        self.probes.push(Box::new(probe));
    }

    /// Keeps a file open and gives its text to `parse` at every reading.
    fn keep(&mut self, path: &Path, parse: impl FnMut(&[u8], &mut Reading) + 'static) {
        // Read once now: some files open well and refuse to be read, such as pressure switched off at boot.
        let source = Source::open(path).and_then(|source| source.read(&mut self.buffer).map(|_| ()).map(|()| source));
        match source {
            Ok(source) => self.add(Kept { source, parse }),
            Err(error) => self.missing(path, error),
        }
    }

    fn missing(&mut self, path: &Path, error: rustix::io::Errno) {
        self.notes.push(format!("{} cannot be read ({error}): its columns are absent", path.display()));
    }
}

/// A file that stays open, and what its text means.
struct Kept<P> {
    source: Source,
    parse: P,
}

impl<P: FnMut(&[u8], &mut Reading)> Probe for Kept<P> {
    fn read(&mut self, row: &mut Reading, buffer: &mut Buffer) {
        // A file that fails later, as those of a removed group do, leaves its columns absent in that row.
        if let Ok(text) = self.source.read(buffer) {
            (self.parse)(text, row);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::reading::{ABSENT, Column};
    use testkit::fake_proc::FakeTree;

    /// What a probe opened by `open` makes of a tree of files: every column it fills, in the order of the columns.
    pub(super) fn check(files: &[(&str, &str)], open: impl Fn(&mut Probes, &Path), expected: &[(Column, u64)]) {
        let dir = tempfile::tempdir().unwrap();
        let tree = FakeTree::new(dir.path());
        files.iter().for_each(|(path, text)| tree.file(path, text));
        let mut probes = Probes::none();
        open(&mut probes, dir.path());
        let mut row = Reading::empty(0);
        probes.read(&mut row);
        let filled: Vec<_> = Column::ALL
            .iter()
            .map(|&column| (column, row.values[column as usize]))
            .filter(|&(_, value)| value != ABSENT)
            .collect();
        assert_eq!(filled, expected, "notes: {:?}", probes.notes);
    }

    #[test]
    fn a_missing_file_costs_its_columns_and_one_note() {
        let dir = tempfile::tempdir().unwrap();
        let tree = FakeTree::new(dir.path());
        tree.file("loadavg", "0.52 1.00 12.34 1/79 1234\n");
        let mut probes = Probes::none();
        cpu::open(&mut probes, dir.path());
        let mut row = Reading::empty(0);
        probes.read(&mut row);
        assert_eq!(row.get(Column::Load1), Some(52));
        assert_eq!(row.get(Column::CpuUser), None);
        assert_eq!(probes.notes.len(), 1, "{:?}", probes.notes);
        assert!(probes.notes[0].contains("/stat cannot be read (No such file"), "{:?}", probes.notes);
    }

    #[test]
    fn the_live_kernel_fills_every_host_column() {
        let mut probes = Probes::open(&Watch::default());
        let mut row = Reading::empty(0);
        probes.read(&mut row);
        let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap();
        let total: u64 = meminfo.lines().next().unwrap().split_whitespace().nth(1).unwrap().parse().unwrap();
        assert_eq!(row.get(Column::MemTotal), Some(total));
        // How columns begin, and how the note begins that excuses them.
        let sources = [
            ("cpu.", "/proc/stat cannot"),
            ("sys.", "/proc/stat cannot"),
            ("load.", "/proc/loadavg cannot"),
            ("mem.", "/proc/meminfo cannot"),
            ("swap.", "/proc/meminfo cannot"),
            ("sys.uptime", "/proc/uptime cannot"),
            ("vm.", "/proc/vmstat cannot"),
            ("sockets.", "/proc/net/sockstat cannot"),
            ("fs.files", "/proc/sys/fs/file-nr cannot"),
            ("fs.inodes", "/proc/sys/fs/inode-nr cannot"),
            ("disk.", "/proc/diskstats cannot"),
            ("disk.", "no disk was found"),
            ("net.", "/proc/net/dev cannot"),
            ("tcp.retransmits", "/proc/net/snmp cannot"),
            ("tcp.listen", "/proc/net/netstat cannot"),
            ("tcp.time_wait", "/proc/net/sockstat cannot"),
            ("psi.cpu.", "/proc/pressure/cpu cannot"),
            ("psi.memory.", "/proc/pressure/memory cannot"),
            ("psi.io.", "/proc/pressure/io cannot"),
        ];
        let noted = |start: &str| probes.notes.iter().any(|note| note.starts_with(start));
        let absent = |column: &&Column| {
            let of_host = sources.iter().filter(|(prefix, _)| column.name().starts_with(prefix));
            let notes: Vec<bool> = of_host.map(|(_, note)| noted(note)).collect();
            !notes.is_empty() && !notes.contains(&true) && row.get(**column).is_none()
        };
        let absent: Vec<_> = Column::ALL.iter().filter(absent).collect();
        assert!(absent.is_empty(), "absent without a note of theirs: {absent:?} {:?}", probes.notes);
    }
}
