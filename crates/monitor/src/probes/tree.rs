//! The server's processes: how many, how busy, how large, and how many wait for a file lock.
//!
//! Descendants are found by the parent that every process names in its stat file. The kernel's `children` files would need a walk
//! over all threads of all processes and are not reliable while children come and go, as those of a CGI server do. Instead every
//! process of the host is looked at once, and after that only those that may belong to the server: a process of another tree
//! cannot join ours. Listing the host's processes is the dearest part; new ones are found without it, by the numbers that were
//! given out since the last time: see `newcomers`. cmdline, smaps and io are never read: reading them can wait for the very process
//! that is stuck.
//!
//! This opens files, and reading /proc/locks makes the kernel wait some milliseconds for its CPUs (a grace period,
//! no CPU time), so it runs in a thread of its own: see `tree_thread`.

use super::newcomers::Newcomers;
use crate::source::{Buffer, Source};
use crate::text::{fields, lines, number};
use model::reading::{Column, Reading};
use rustix::fs::{Mode, OFlags, RawDir, SeekFrom};
use rustix::io::Errno;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;

/// What a scan fills.
pub(super) const COLUMNS: [Column; 9] = [
    Column::TreeProcesses,
    Column::TreeWorkers,
    Column::TreeBusyWorkers,
    Column::TreeRunning,
    Column::TreeDiskSleep,
    Column::TreeLockWaiters,
    Column::TreeRss,
    Column::TreeRssLargest,
    Column::TreeCpuTicks,
];

/// Processes for which there is room from the start.
pub(super) const ROOM: usize = 4096;

/// The process tree under one root.
pub(super) struct Tree {
    root: u32,
    /// It was there, and has gone: another process may have its number by now.
    root_has_gone: bool,
    proc: OwnedFd,
    locks: Option<Source>,
    page_size: u64,
    listing: Box<[MaybeUninit<u8>]>,
    buffer: Buffer,
    /// All processes of the host at the last scan, ascending.
    listed: Vec<u32>,
    /// Those known to be of other trees, ascending.
    foreign: Vec<u32>,
    /// Those that belong to the server, and new ones of which it is not known yet, ascending.
    followed: Vec<Process>,
    newcomers: Newcomers,
}

struct Process {
    pid: u32,
    /// Its stat file; once the process has gone it can no longer be read, even when the number is given to another.
    file: OwnedFd,
    stat: Stat,
    side: Side,
    has_child: bool,
    waits_for_lock: bool,
    /// It was found by its number, not in the listing: it may be a mere thread.
    is_guess: bool,
}

/// What of a stat file is used.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Stat {
    parent: u32,
    state: u8,
    ticks: u64,
    resident_pages: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Ours,
    Foreign,
    /// Its parent appeared after the processes were listed: the next scan will tell.
    Unknown,
}

impl Process {
    /// Whether it is one of ours and still runs: a dead one that waits to be reaped does nothing.
    fn counts(&self) -> bool {
        self.side == Side::Ours && !matches!(self.stat.state, b'Z' | b'X')
    }
}

impl Tree {
    /// Opens the directory of processes and, if lock waiters are wanted, the table of locks; a missing table is told as a note.
    pub(super) fn open(
        proc_root: &Path,
        root: u32,
        lock_waiters: bool,
        notes: &mut Vec<String>,
    ) -> Result<Self, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let locks = proc_root.join("locks");
        let proc = rustix::fs::open(proc_root, flags, Mode::empty())?;
        let mut open_locks = || {
            let note = |error: &Errno| format!("{} cannot be read ({error}): lock waiters are absent", locks.display());
            Source::open(&locks).inspect_err(|error| notes.push(note(error))).ok()
        };
        let locks = if lock_waiters { open_locks() } else { None };
        Ok(Tree {
            root,
            root_has_gone: false,
            proc,
            locks,
            page_size: rustix::param::page_size() as u64,
            listing: vec![MaybeUninit::new(1); 32 * 1024].into_boxed_slice(),
            buffer: Buffer::new(),
            listed: Vec::with_capacity(ROOM),
            foreign: Vec::with_capacity(ROOM),
            followed: Vec::with_capacity(ROOM),
            newcomers: Newcomers::open(proc_root),
        })
    }

    /// Looks at the tree now and fills its columns; an error leaves them as they were.
    pub(super) fn scan(&mut self, row: &mut Reading) -> Result<(), Errno> {
        let had_root = find(&self.followed, self.root).is_some();
        let unknown = self.unknown();
        if self.newcomers.begin(&mut self.buffer, unknown) {
            self.follow_numbers()?;
        } else {
            self.list()?;
            self.follow_listed()?;
        }
        self.read_followed();
        self.root_has_gone |= had_root && find(&self.followed, self.root).is_none();
        self.take_sides();
        self.forget_foreign();
        self.forget_threads();
        self.find_parents();
        let locks_known = self.find_lock_waiters();
        self.fill(row, locks_known);
        Ok(())
    }

    /// Whether there is a process of which the last scan could not tell whose it is.
    fn unknown(&self) -> bool {
        self.followed.iter().any(|process| process.side == Side::Unknown)
    }

    /// The processes of the tree at the last scan.
    pub(super) fn members(&self) -> impl Iterator<Item = u32> {
        self.followed.iter().filter(|process| process.counts()).map(|process| process.pid)
    }

    fn list(&mut self) -> Result<(), Errno> {
        self.listed.clear();
        rustix::fs::seek(&self.proc, SeekFrom::Start(0))?;
        let mut entries = RawDir::new(&self.proc, &mut self.listing);
        while let Some(entry) = entries.next() {
            let pid = number(entry?.file_name().to_bytes()).and_then(|pid| u32::try_from(pid).ok());
            self.listed.extend(pid);
        }
        self.listed.sort_unstable();
        let Tree { listed, foreign, followed, .. } = self;
        // Numbers are given out in turn, so one that is free now cannot be back before the next scan.
        foreign.retain(|pid| listed.binary_search(pid).is_ok());
        followed.retain(|process| listed.binary_search(&process.pid).is_ok());
        Ok(())
    }

    /// Looks at the processes that were listed and are not known.
    fn follow_listed(&mut self) -> Result<(), Errno> {
        let known = self.followed.len();
        for index in 0..self.listed.len() {
            let pid = self.listed[index];
            if self.foreign.binary_search(&pid).is_err() && find(&self.followed[..known], pid).is_none() {
                self.follow(pid, false)?;
            }
        }
        self.followed.sort_unstable_by_key(|process| process.pid);
        let listed = &self.listed;
        self.newcomers.end(|pid| listed.binary_search(&pid).is_err());
        Ok(())
    }

    /// Looks at the numbers that were given out since the last scan. Whoever had one before has gone.
    fn follow_numbers(&mut self) -> Result<(), Errno> {
        for index in 0..self.newcomers.numbers().len() {
            let pid = self.newcomers.numbers()[index];
            if let Ok(index) = self.foreign.binary_search(&pid) {
                self.foreign.remove(index);
            }
            self.followed.retain(|process| process.pid != pid);
            self.follow(pid, true)?;
        }
        self.followed.sort_unstable_by_key(|process| process.pid);
        let followed = &self.followed;
        self.newcomers.end(|pid| find(followed, pid).is_none());
        Ok(())
    }

    /// Opens the stat file of a process and follows it at the end of the list.
    fn follow(&mut self, pid: u32, is_guess: bool) -> Result<(), Errno> {
        match open_file(&self.proc, pid, "stat") {
            Ok(file) => self.followed.push(Process {
                pid,
                file,
                stat: Stat::default(),
                side: Side::Unknown,
                has_child: false,
                waits_for_lock: false,
                is_guess,
            }),
            // We are short of something, and could not open those of the server either.
            Err(error @ (Errno::MFILE | Errno::NFILE | Errno::NOMEM)) => return Err(error),
            // It has gone, or is not ours to be seen (/proc with `hidepid`).
            Err(_) => {}
        }
        Ok(())
    }

    fn read_followed(&mut self) {
        let Tree { followed, buffer, .. } = self;
        followed.retain_mut(|process| match buffer.fill(&process.file).ok().and_then(parse_stat) {
            Some(stat) => {
                process.stat = stat;
                process.side = Side::Unknown;
                process.has_child = false;
                process.waits_for_lock = false;
                true
            }
            None => false,
        });
    }

    /// Hands sides down from parents to children until nothing changes: a child may have the smaller number.
    fn take_sides(&mut self) {
        let mut changed = true;
        while changed {
            changed = false;
            for index in 0..self.followed.len() {
                if self.followed[index].side == Side::Unknown {
                    self.followed[index].side = self.side_of(&self.followed[index]);
                    changed |= self.followed[index].side != Side::Unknown;
                }
            }
        }
    }

    fn side_of(&self, process: &Process) -> Side {
        let parent = process.stat.parent;
        if process.pid == self.root && !self.root_has_gone {
            Side::Ours
        } else if parent == 0 || self.foreign.binary_search(&parent).is_ok() {
            Side::Foreign
        } else {
            find(&self.followed, parent).map_or(Side::Unknown, |index| self.followed[index].side)
        }
    }

    fn forget_foreign(&mut self) {
        let Tree { followed, foreign, .. } = self;
        foreign.extend(followed.iter().filter(|process| process.side == Side::Foreign).map(|process| process.pid));
        foreign.sort_unstable();
        followed.retain(|process| process.side != Side::Foreign);
    }

    /// A number may be that of a thread, whose files look like those of a process: those that seem to be ours are asked, once.
    fn forget_threads(&mut self) {
        let Tree { proc, followed, buffer, .. } = self;
        followed.retain_mut(|process| {
            let is_asked = std::mem::take(&mut process.is_guess);
            !is_asked || is_process(proc, process.pid, buffer)
        });
    }

    fn find_parents(&mut self) {
        for index in 0..self.followed.len() {
            if self.followed[index].counts()
                && let Some(parent) = find(&self.followed, self.followed[index].stat.parent)
            {
                self.followed[parent].has_child = true;
            }
        }
    }

    fn find_lock_waiters(&mut self) -> bool {
        let Tree { locks, buffer, followed, .. } = self;
        let Some(text) = locks.as_ref().and_then(|locks| locks.read(buffer).ok()) else { return false };
        for pid in lines(text).filter_map(lock_waiter) {
            if let Some(index) = find(followed, pid) {
                followed[index].waits_for_lock = true;
            }
        }
        true
    }

    fn fill(&self, row: &mut Reading, locks_known: bool) {
        let ours = || self.followed.iter().filter(|process| process.counts());
        let count = |is: &dyn Fn(&Process) -> bool| ours().filter(|process| is(process)).count() as u64;
        let worker = |process: &Process| process.stat.parent == self.root;
        let occupied = |process: &Process| process.has_child || matches!(process.stat.state, b'R' | b'D');
        row.set(Column::TreeProcesses, count(&|_| true));
        row.set(Column::TreeWorkers, count(&worker));
        row.set(Column::TreeBusyWorkers, count(&|process| worker(process) && occupied(process)));
        row.set(Column::TreeRunning, count(&|process| process.stat.state == b'R'));
        row.set(Column::TreeDiskSleep, count(&|process| process.stat.state == b'D'));
        if locks_known {
            row.set(Column::TreeLockWaiters, count(&|process| process.waits_for_lock));
        }
        let resident = || ours().map(|process| process.stat.resident_pages.saturating_mul(self.page_size));
        row.set(Column::TreeRss, resident().fold(0, u64::saturating_add));
        row.set(Column::TreeRssLargest, resident().max().unwrap_or(0));
        // With the dead: what they used is their parent's only once they are reaped, and a sum without them would fall and then jump.
        let all_ours = self.followed.iter().filter(|process| process.side == Side::Ours);
        row.set(Column::TreeCpuTicks, all_ours.map(|process| process.stat.ticks).fold(0, u64::saturating_add));
    }
}

fn find(processes: &[Process], pid: u32) -> Option<usize> {
    processes.binary_search_by_key(&pid, |process| process.pid).ok()
}

fn open_file(proc: &OwnedFd, pid: u32, name: &str) -> Result<OwnedFd, Errno> {
    let mut path = [0u8; 24];
    let length = {
        let mut rest = &mut path[..];
        // Ten digits and the names in use always fit.
        std::io::Write::write_fmt(&mut rest, format_args!("{pid}/{name}")).map_err(|_| Errno::NAMETOOLONG)?;
        24 - rest.len()
    };
    rustix::fs::openat(proc, &path[..length], OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
}

/// Whether that number is a process's and not one of its threads'.
fn is_process(proc: &OwnedFd, pid: u32, buffer: &mut Buffer) -> bool {
    let Ok(file) = open_file(proc, pid, "status") else { return false };
    let Ok(text) = buffer.fill(&file) else { return false };
    let group = lines(text).find_map(|line| line.strip_prefix(b"Tgid:"));
    group.and_then(|number_of| number(number_of.trim_ascii())) == Some(pid.into())
}

/// `pid (name) state parent ...`; the name may hold blanks and parentheses, so fields count from the last `)`.
fn parse_stat(text: &[u8]) -> Option<Stat> {
    let after = text.iter().rposition(|&byte| byte == b')')? + 1;
    let mut fields = fields(&text[after..]);
    let state = *fields.next()?.first()?;
    let parent = u32::try_from(number(fields.next()?)?).ok()?;
    // From here on the field after `skip` others: utime, stime, cutime, cstime, then rss.
    let mut ticks = 0u64;
    for (position, field) in fields.by_ref().take(13).enumerate() {
        if position >= 9 {
            ticks = ticks.saturating_add(number(field)?);
        }
    }
    let resident_pages = number(fields.nth(6)?)?;
    Some(Stat { parent, state, ticks, resident_pages })
}

/// The process of a line such as `1: -> FLOCK  ADVISORY  WRITE 1235 fd:00:123 0 EOF`: one that waits, not one that holds.
fn lock_waiter(line: &[u8]) -> Option<u32> {
    let mut fields = fields(line);
    fields.find(|&field| field == b"->")?;
    number(fields.nth(3)?).and_then(|pid| u32::try_from(pid).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::fake_proc::{FakeProcess, FakeTree};

    const PAGE: u64 = 4096;

    /// What one more scan finds: processes, workers, busy, running, disk sleep, lock waiters, resident pages, largest, ticks.
    fn check(tree: &mut Tree, expected: [u64; 9]) {
        tree.page_size = PAGE;
        let mut row = Reading::empty(0);
        tree.scan(&mut row).unwrap();
        let mut found = COLUMNS.map(|column| row.get(column).unwrap_or(u64::MAX));
        found[6] /= PAGE;
        found[7] /= PAGE;
        assert_eq!(found, expected);
    }

    fn process(pid: u32, parent: u32, state: char) -> FakeProcess<'static> {
        FakeProcess { pid, parent, name: "apache2", state, ticks: [1, 2, 3, 4], resident_pages: u64::from(pid) }
    }

    fn fake() -> (tempfile::TempDir, FakeTree, Tree) {
        let dir = tempfile::tempdir().unwrap();
        let fake = FakeTree::new(dir.path());
        fake.file("locks", "");
        fake.file("self/stat", "not a number");
        fake.process(process(1, 0, 'S'));
        fake.process(process(2, 0, 'S'));
        fake.process(process(50, 1, 'R'));
        fake.process(process(100, 50, 'S'));
        let mut notes = Vec::new();
        let tree = Tree::open(dir.path(), 100, true, &mut notes).unwrap();
        assert!(notes.is_empty());
        (dir, fake, tree)
    }

    #[test]
    fn workers_and_what_they_started() {
        let (_dir, fake, mut tree) = fake();
        check(&mut tree, [1, 0, 0, 0, 0, 0, 100, 100, 10]);
        // A worker idle, one computing, one waiting for a disk, one with a CGI whose name is no help and whose number is small.
        [process(101, 100, 'S'), process(102, 100, 'R'), process(103, 100, 'D'), process(104, 100, 'S')]
            .into_iter()
            .for_each(|process| fake.process(process));
        fake.process(FakeProcess { name: "sh (a) R 1", ..process(60, 104, 'R') });
        fake.process(process(61, 60, 'D'));
        check(&mut tree, [7, 4, 3, 2, 2, 0, 100 + 101 + 102 + 103 + 104 + 60 + 61, 104, 70]);
        // The CGI's child is dead and not yet reaped, and its parent has gone: neither makes a worker busy.
        fake.remove(60);
        fake.process(process(61, 1, 'Z'));
        check(&mut tree, [5, 4, 2, 1, 1, 0, 100 + 101 + 102 + 103 + 104, 104, 50]);
    }

    #[test]
    fn cpu_time_of_the_dead_is_kept_until_their_parent_has_it() {
        let (_dir, fake, mut tree) = fake();
        fake.process(FakeProcess { ticks: [6000, 70, 0, 0], ..process(101, 100, 'R') });
        check(&mut tree, [2, 1, 1, 1, 0, 0, 201, 101, 6080]);
        fake.process(FakeProcess { ticks: [6000, 75, 0, 0], resident_pages: 0, ..process(101, 100, 'Z') });
        check(&mut tree, [1, 0, 0, 0, 0, 0, 100, 100, 6085]);
        fake.remove(101);
        fake.process(FakeProcess { ticks: [1, 2, 3 + 6000, 4 + 75], ..process(100, 50, 'S') });
        check(&mut tree, [1, 0, 0, 0, 0, 0, 100, 100, 6085]);
    }

    #[test]
    fn only_those_who_wait_for_a_lock_count() {
        let (_dir, fake, mut tree) = fake();
        [process(101, 100, 'S'), process(102, 100, 'S'), process(103, 100, 'S')]
            .into_iter()
            .for_each(|process| fake.process(process));
        fake.file(
            "locks",
            "1: FLOCK  ADVISORY  WRITE 101 fd:00:1 0 EOF\n1: -> FLOCK  ADVISORY  WRITE 102 fd:00:1 0 EOF\n\
             1: -> FLOCK  ADVISORY  WRITE 50 fd:00:1 0 EOF\n2: POSIX  ADVISORY  READ 103 fd:00:2 0 EOF\n\
             2:  -> POSIX  ADVISORY  WRITE 102 fd:00:2 0 EOF\n3: -> OFDLCK ADVISORY  WRITE -1 fd:00:2 0 EOF\n",
        );
        check(&mut tree, [4, 3, 0, 0, 0, 1, 406, 103, 40]);
    }

    #[test]
    fn a_number_used_again_is_another_process() {
        let (_dir, fake, mut tree) = fake();
        fake.process(process(200, 1, 'S'));
        check(&mut tree, [1, 0, 0, 0, 0, 0, 100, 100, 10]);
        // The foreign process ends; a scan later its number is a worker's.
        fake.remove(200);
        check(&mut tree, [1, 0, 0, 0, 0, 0, 100, 100, 10]);
        fake.process(process(200, 100, 'R'));
        check(&mut tree, [2, 1, 1, 1, 0, 0, 300, 200, 20]);
    }

    #[test]
    fn a_child_seen_before_its_parent_is_not_lost() {
        let (_dir, fake, mut tree) = fake();
        fake.process(process(300, 299, 'S'));
        check(&mut tree, [1, 0, 0, 0, 0, 0, 100, 100, 10]);
        fake.process(process(299, 100, 'S'));
        check(&mut tree, [3, 1, 1, 0, 0, 0, 699, 300, 30]);
    }

    #[test]
    fn new_ones_are_found_by_their_numbers() {
        let (dir, fake, _) = fake();
        std::os::unix::fs::symlink(std::process::id().to_string(), dir.path().join("own")).unwrap();
        std::fs::remove_dir_all(dir.path().join("self")).unwrap();
        std::fs::rename(dir.path().join("own"), dir.path().join("self")).unwrap();
        let last = |number: u32| fake.file("loadavg", &format!("0.52 1.00 12.34 1/79 {number}\n"));
        let is = |pid: u32, group: u32| fake.file(&format!("{pid}/status"), &format!("Name:\tx\nTgid:\t{group}\n"));
        last(100);
        let mut tree = Tree::open(dir.path(), 100, true, &mut Vec::new()).unwrap();
        check(&mut tree, [1, 0, 0, 0, 0, 0, 100, 100, 10]);
        // One of ours, a thread of ours, one of another tree; and one that nobody was given a number for is not looked for.
        [(101, 101), (102, 101), (103, 103)].into_iter().for_each(|(pid, group)| is(pid, group));
        [process(101, 100, 'R'), process(102, 100, 'R'), process(103, 50, 'S'), process(200, 100, 'S')]
            .into_iter()
            .for_each(|process| fake.process(process));
        last(103);
        check(&mut tree, [2, 1, 1, 1, 0, 0, 201, 101, 20]);
        check(&mut tree, [2, 1, 1, 1, 0, 0, 201, 101, 20]);
        // A number is used again, by one of ours; and one is not seen before the scan after. A listing tells of no threads.
        fake.process(process(103, 100, 'S'));
        [102, 200].into_iter().for_each(|pid| fake.remove(pid));
        last(102);
        check(&mut tree, [2, 1, 1, 1, 0, 0, 201, 101, 20]);
        last(104);
        check(&mut tree, [3, 2, 1, 1, 0, 0, 304, 103, 30]);
        fake.process(process(104, 100, 'S'));
        is(104, 104);
        check(&mut tree, [4, 3, 1, 1, 0, 0, 408, 104, 40]);
    }

    #[test]
    fn a_dead_root_leaves_nothing() {
        let (_dir, fake, mut tree) = fake();
        fake.process(process(101, 100, 'S'));
        check(&mut tree, [2, 1, 0, 0, 0, 0, 201, 101, 20]);
        fake.remove(100);
        fake.process(process(101, 1, 'S'));
        check(&mut tree, [0; 9]);
        // Much later its number is given to somebody else, who has children, too.
        fake.process(process(100, 50, 'S'));
        fake.process(process(102, 100, 'S'));
        check(&mut tree, [0; 9]);
        check(&mut tree, [0; 9]);
    }

    #[test]
    fn one_that_cannot_be_opened_is_in_nobodys_way() {
        let (_dir, fake, mut tree) = fake();
        // A file instead of a folder stands for a refusal, which root never meets.
        fake.file("200", "");
        fake.process(process(201, 100, 'S'));
        check(&mut tree, [2, 1, 0, 0, 0, 0, 301, 201, 20]);
    }

    #[test]
    fn the_table_of_locks_may_be_missing() {
        let dir = tempfile::tempdir().unwrap();
        let fake = FakeTree::new(dir.path());
        fake.process(process(100, 0, 'R'));
        let mut notes = Vec::new();
        let mut tree = Tree::open(dir.path(), 100, true, &mut notes).unwrap();
        check(&mut tree, [1, 0, 0, 1, 0, u64::MAX, 100, 100, 10]);
        assert_eq!(notes.len(), 1, "{notes:?}");
        let mut tree = Tree::open(dir.path(), 100, false, &mut notes).unwrap();
        check(&mut tree, [1, 0, 0, 1, 0, u64::MAX, 100, 100, 10]);
        assert_eq!(notes.len(), 1, "nobody asked for it: {notes:?}");
    }
}
