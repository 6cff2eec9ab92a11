//! The sources of a reading, one file each.
//!
//! A probe fills its columns of a row and leaves the others alone. Everything it needs is opened once; reading allocates
//! nothing and writes nothing. What cannot be opened costs one note and leaves its columns absent; the others go on.

mod accept;
mod aside;
mod behind;
mod cpu;
mod devices;
mod disk;
mod group;
mod groups;
mod itself;
mod kernel;
mod link;
mod listeners;
mod memory;
mod net;
mod newcomers;
mod psi;
mod shares;
mod tables;
mod tree;
mod tree_thread;
mod waiting;

use crate::ring::RootOrder;
use crate::source::{Buffer, Source};
use crate::watch::{Part, Watch};
pub(crate) use accept::AcceptLook;
pub use devices::present;
use groups::Group;
use listeners::Listeners;
use model::reading::{Look, Reading};
use std::path::{Path, PathBuf};
use tree_thread::Asker;

/// One source of counters that is more than a file.
pub(crate) trait Probe {
    /// Fills the probe's columns; those it cannot have now stay as they are.
    fn read(&mut self, row: &mut Reading, buffer: &mut Buffer);
}

/// Every source of a watch, and what could not be opened.
pub(crate) struct Probes {
    files: Vec<Kept>,
    others: Vec<Box<dyn Probe>>,
    listeners: Option<Listeners>,
    groups: Vec<Group>,
    tree: Option<Asker>,
    buffer: Buffer,
    /// One sentence for each source that is missing.
    pub(crate) notes: Vec<String>,
}

impl Probes {
    /// Opens everything the watch asks for.
    pub(crate) fn open(watch: &Watch) -> Self {
        let mut probes = Probes::none();
        let proc_root = &watch.proc_root;
        for part in Part::ALL.into_iter().filter(|part| watch.parts.contains(part)) {
            match part {
                Part::Cpu => cpu::open_stat(&mut probes, proc_root),
                Part::Load => cpu::open_loadavg(&mut probes, proc_root),
                Part::Memory => memory::open_meminfo(&mut probes, proc_root),
                Part::Paging => memory::open_vmstat(&mut probes, proc_root),
                Part::Disks => disk::open(&mut probes, proc_root, &watch.sys_root),
                Part::Interfaces => {
                    net::open_dev(&mut probes, proc_root);
                    link::open(&mut probes, proc_root, &watch.sys_root);
                }
                Part::Tcp => net::open_tcp(&mut probes, proc_root),
                Part::Sockets => net::open_sockstat(&mut probes, proc_root),
                Part::Uptime => kernel::open_uptime(&mut probes, proc_root),
                Part::Files => kernel::open_files(&mut probes, proc_root),
                Part::Pressure => psi::open_host(&mut probes, proc_root),
            }
        }
        devices::open(&mut probes, proc_root, &watch.devices);
        group::open(&mut probes, &watch.group, &|_| true);
        groups::open(&mut probes, watch);
        accept::open(&mut probes, watch.port);
        let waiting = waiting::open(watch.port.filter(|_| watch.waiting));
        let of_connections = waiting.into_iter().chain(behind::open(&watch.ports_behind)).collect();
        aside::open(&mut probes, of_connections, watch.period_ns, watch.apart && aside::may_be_behind());
        listeners::open(&mut probes, watch);
        itself::open(&mut probes);
        tables::open(&mut probes, proc_root, &watch.tables);
        tree_thread::open(&mut probes, watch);
        probes
    }

    /// Reads everything into a look.
    pub(crate) fn read(&mut self, look: &mut Look) {
        for file in &mut self.files {
            file.read(look, &mut self.buffer);
        }
        for group in &mut self.groups {
            group.read(look, &mut self.buffer);
        }
        if let Some(listeners) = &mut self.listeners {
            listeners.read(look, &mut self.buffer);
        }
        for probe in &mut self.others {
            probe.read(&mut look.reading, &mut self.buffer);
        }
        // Last, because it is the one that may take long: everything else is read by then.
        if let Some(tree) = &mut self.tree {
            tree.read(&mut look.reading, &mut self.buffer);
        }
    }

    /// From now on the tree below that process is looked at, if a tree is.
    pub(crate) fn follow(&mut self, root: RootOrder) {
        if let Some(tree) = &mut self.tree {
            tree.follow(root);
        }
    }

    /// Whether memory is short from now on.
    pub(crate) fn storm(&mut self, is_storm: bool) {
        if let Some(tree) = &mut self.tree {
            tree.storm(is_storm);
        }
    }

    fn none() -> Self {
        Probes {
            files: Vec::new(),
            others: Vec::new(),
            listeners: None,
            groups: Vec::new(),
            tree: None,
            buffer: Buffer::new(),
            notes: Vec::new(),
        }
    }

    fn add(&mut self, probe: impl Probe + 'static) {
        self.others.push(Box::new(probe));
    }

    /// Keeps a file open and gives its text to `parse` at every reading.
    fn keep(&mut self, path: &Path, mut parse: impl FnMut(&[u8], &mut Reading) + 'static) {
        self.keep_for_look(path, move |text, look| parse(text, &mut look.reading));
    }

    /// The same for those who fill the numbers of devices. A file that several ask for is read once for all of them.
    fn keep_for_look(&mut self, path: &Path, parse: impl FnMut(&[u8], &mut Look) + 'static) {
        if let Some(file) = self.files.iter_mut().find(|file| file.path == path) {
            return file.parsers.push(Box::new(parse));
        }
        // Read once now: some files open well and refuse to be read, such as pressure switched off at boot.
        let source = Source::open(path).and_then(|source| {
            let length = source.fit(&mut self.buffer)?;
            Ok((source, length))
        });
        match source {
            Ok((source, length)) => {
                if length == 0 {
                    // Kept all the same: a device may come.
                    self.notes
                        .push(format!("{} is empty, as containers mask files: its columns are absent", path.display()));
                }
                self.files.push(Kept { path: path.to_owned(), source, parsers: vec![Box::new(parse)] });
            }
            Err(error) => self.missing(path, error),
        }
    }

    fn missing(&mut self, path: &Path, error: rustix::io::Errno) {
        let note = format!("{} cannot be read ({error}): its columns are absent", path.display());
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}

/// A file that stays open, and what its text means.
struct Kept {
    path: PathBuf,
    source: Source,
    parsers: Vec<Parse>,
}

type Parse = Box<dyn FnMut(&[u8], &mut Look)>;

impl Kept {
    fn read(&mut self, look: &mut Look, buffer: &mut Buffer) {
        // A file that fails later, as those of a removed group do, leaves its columns absent in that row.
        if let Ok(text) = self.source.read(buffer) {
            self.parsers.iter_mut().for_each(|parse| parse(text, look));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::reading::{ABSENT, Column};
    use testkit::fake_proc::FakeTree;

    /// The columns now.
    pub(super) fn read(probes: &mut Probes) -> Reading {
        let mut look = Look::empty(0, 0);
        probes.read(&mut look);
        look.reading
    }

    /// What a probe opened by `open` makes of a tree of files: every column it fills, in the order of the columns.
    pub(super) fn check(files: &[(&str, &str)], open: impl Fn(&mut Probes, &Path), expected: &[(Column, u64)]) {
        let dir = tempfile::tempdir().unwrap();
        let tree = FakeTree::new(dir.path());
        files.iter().for_each(|(path, text)| tree.file(path, text));
        let mut probes = Probes::none();
        open(&mut probes, dir.path());
        let row = read(&mut probes);
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
        cpu::open_stat(&mut probes, dir.path());
        cpu::open_loadavg(&mut probes, dir.path());
        let row = read(&mut probes);
        assert_eq!(row.get(Column::Load1), Some(52));
        assert_eq!(row.get(Column::CpuUser), None);
        assert_eq!(probes.notes.len(), 1, "{:?}", probes.notes);
        assert!(probes.notes[0].contains("/stat cannot be read (No such file"), "{:?}", probes.notes);
    }

    #[test]
    fn a_file_that_a_container_masks_costs_one_note() {
        let dir = tempfile::tempdir().unwrap();
        FakeTree::new(dir.path()).file("vmstat", "");
        let mut probes = Probes::none();
        memory::open_vmstat(&mut probes, dir.path());
        assert_eq!(read(&mut probes).get(Column::SwapIn), None);
        let note =
            format!("{}/vmstat is empty, as containers mask files: its columns are absent", dir.path().display());
        assert_eq!(probes.notes, [note]);
        // It is no mask for ever.
        FakeTree::new(dir.path()).file("vmstat", "pswpin 7\n");
        assert_eq!(read(&mut probes).get(Column::SwapIn), Some(7));
    }

    #[test]
    fn the_live_kernel_fills_every_host_column() {
        let mut probes = Probes::open(&Watch::default());
        let row = read(&mut probes);
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
