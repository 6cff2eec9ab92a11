//! The server's processes: how many, how busy, how large, and how many wait for a file lock.
//!
//! Descendants are found by the parent that every process names in its stat file. The kernel's `children` files would need a walk
//! over all threads of all processes and are not reliable while children come and go, as those of a CGI server do. Instead every
//! process of the host is looked at once, and after that only those that may belong to the server: a process of another tree
//! cannot join ours. And the host's processes are listed only when something was forked since the last time, because listing them
//! is the dearest part. cmdline, smaps and io are never read: reading them can wait for the very process that is stuck.
//!
//! This opens files, and reading /proc/locks makes the kernel wait some milliseconds for its CPUs (a grace period,
//! no CPU time), so it runs in a thread of its own: see `tree_thread`.

use crate::source::{Buffer, Source};
use crate::text::{fields, lines, number};
use model::reading::{Column, Reading};
use rustix::fs::{Mode, OFlags, RawDir, SeekFrom};
use rustix::io::Errno;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;

/// What a scan fills.
pub(super) const COLUMNS: [Column; 10] = [
    Column::TreeRoot,
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

/// Scans after which the host's processes are listed in any case, so that numbers which became free are forgotten before others
/// can have them.
const LIST_EVERY: u32 = 8;

/// Processes for which there is room from the start.
pub(super) const ROOM: usize = 4096;

/// The process tree under one root.
pub(super) struct Tree {
    root: Option<u32>,
    /// It was there, and has gone: another process may have its number by now.
    root_has_gone: bool,
    /// Another root may be named later.
    root_may_change: bool,
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
    /// Forks on the host before the last listing, and scans since.
    listed_at: Option<u64>,
    scans: u32,
}

/// The first process of a tree.
#[derive(Debug, Clone, Copy)]
pub(super) struct Root {
    /// Its number, if it is there already.
    pub(super) pid: Option<u32>,
    /// Whether there may be another one later: [`Tree::follow`].
    pub(super) may_change: bool,
}

struct Process {
    pid: u32,
    /// Its stat file; once the process has gone it can no longer be read, even when the number is given to another.
    file: OwnedFd,
    stat: Stat,
    side: Side,
    has_child: bool,
    waits_for_lock: bool,
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
    /// Whether it is one of ours and still runs.
    fn counts(&self) -> bool {
        self.side == Side::Ours && self.runs()
    }

    /// A dead one that waits to be reaped does nothing.
    fn runs(&self) -> bool {
        !matches!(self.stat.state, b'Z' | b'X')
    }
}

impl Tree {
    /// Opens the directory of processes and, if lock waiters are wanted, the table of locks; a missing table is told as a note.
    pub(super) fn open(
        proc_root: &Path,
        root: Root,
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
            root: root.pid,
            root_has_gone: false,
            root_may_change: root.may_change,
            proc,
            locks,
            page_size: rustix::param::page_size() as u64,
            listing: vec![MaybeUninit::new(1); 32 * 1024].into_boxed_slice(),
            buffer: Buffer::new(),
            listed: Vec::with_capacity(ROOM),
            foreign: Vec::with_capacity(ROOM),
            followed: Vec::with_capacity(ROOM),
            listed_at: None,
            scans: 0,
        })
    }

    /// Looks at the tree below that process from now on; at none if `None`. A number that was the root's before is a new one's.
    pub(super) fn follow(&mut self, root: Option<u32>) {
        (self.root, self.root_has_gone) = (root, false);
        // Whose child a process is says nothing about which tree it is of any more.
        self.followed.clear();
        self.foreign.clear();
        self.listed_at = None;
        self.scans = LIST_EVERY;
    }

    /// Looks at the tree now and fills its columns; an error leaves them as they were. `forks` is how many the host has seen, if
    /// that is known: counted before this call, it may only be too low.
    pub(super) fn scan(&mut self, forks: Option<u64>, row: &mut Reading) -> Result<(), Errno> {
        if self.root_may_change && (self.root.is_none() || self.root_has_gone) {
            return Ok(());
        }
        self.scans += 1;
        let had_root = self.find_root().is_some();
        if forks.is_none() || forks != self.listed_at || self.scans >= LIST_EVERY || self.unknown() {
            self.list()?;
            self.follow_new()?;
            (self.listed_at, self.scans) = (forks, 0);
        }
        self.read_followed();
        self.root_has_gone |= had_root && self.find_root().is_none();
        if self.root_may_change && !self.root_runs() {
            self.root_has_gone = true;
            self.followed.clear();
            return Ok(());
        }
        self.take_sides();
        self.forget_foreign();
        self.find_parents();
        let locks_known = self.find_lock_waiters();
        self.fill(row, locks_known);
        Ok(())
    }

    fn find_root(&self) -> Option<&Process> {
        find(&self.followed, self.root?).map(|index| &self.followed[index])
    }

    /// Whether the root is there, and not only waits to be reaped.
    fn root_runs(&self) -> bool {
        !self.root_has_gone && self.find_root().is_some_and(Process::runs)
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

    fn follow_new(&mut self) -> Result<(), Errno> {
        let known = self.followed.len();
        for index in 0..self.listed.len() {
            let pid = self.listed[index];
            if self.foreign.binary_search(&pid).is_ok() || find(&self.followed[..known], pid).is_some() {
                continue;
            }
            match open_stat(&self.proc, pid) {
                Ok(file) => self.followed.push(Process {
                    pid,
                    file,
                    stat: Stat::default(),
                    side: Side::Unknown,
                    has_child: false,
                    waits_for_lock: false,
                }),
                // We are short of something, and could not open those of the server either.
                Err(error @ (Errno::MFILE | Errno::NFILE | Errno::NOMEM)) => return Err(error),
                // It has gone since the listing, or is not ours to be seen (/proc with `hidepid`).
                Err(_) => {}
            }
        }
        self.followed.sort_unstable_by_key(|process| process.pid);
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
        if Some(process.pid) == self.root && !self.root_has_gone {
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
        let worker = |process: &Process| Some(process.stat.parent) == self.root;
        let occupied = |process: &Process| process.has_child || matches!(process.stat.state, b'R' | b'D');
        if let Some(root) = self.root.filter(|_| self.root_runs()) {
            row.set(Column::TreeRoot, root.into());
        }
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

fn open_stat(proc: &OwnedFd, pid: u32) -> Result<OwnedFd, Errno> {
    let mut path = [0u8; 24];
    let length = {
        let mut rest = &mut path[..];
        // Ten digits and five letters always fit.
        std::io::Write::write_fmt(&mut rest, format_args!("{pid}/stat")).map_err(|_| Errno::NAMETOOLONG)?;
        24 - rest.len()
    };
    rustix::fs::openat(proc, &path[..length], OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
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
    use crate::allocations;
    use testkit::fake_proc::{FakeProcess, FakeTree};

    const PAGE: u64 = 4096;
    const NUMBERS: [Column; 9] = [
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
    const ROOT: Root = Root { pid: Some(100), may_change: false };

    /// What one more scan finds: processes, workers, busy, running, disk sleep, lock waiters, resident pages, largest, ticks.
    fn check(tree: &mut Tree, expected: [u64; 9]) {
        tree.page_size = PAGE;
        let mut row = Reading::empty(0);
        tree.scan(None, &mut row).unwrap();
        let mut found = NUMBERS.map(|column| row.get(column).unwrap_or(u64::MAX));
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
        let tree = Tree::open(dir.path(), ROOT, true, &mut notes).unwrap();
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
    fn the_host_is_listed_again_once_something_was_forked() {
        let (_dir, fake, mut tree) = fake();
        let mut processes = |forks| {
            let mut row = Reading::empty(0);
            tree.scan(forks, &mut row).unwrap();
            row.get(Column::TreeProcesses).unwrap()
        };
        assert_eq!(processes(Some(7)), 1);
        fake.process(process(101, 100, 'S'));
        assert_eq!(processes(Some(7)), 1, "nothing was forked");
        assert_eq!(processes(Some(8)), 2);
        // And in any case after a while.
        fake.process(process(102, 100, 'S'));
        let looks = (0..LIST_EVERY).position(|_| processes(Some(8)) == 3);
        assert!(looks.is_some(), "not listed in {LIST_EVERY} scans");
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

    /// What a scan says of the root, of how many processes there are, and of their CPU time.
    fn of_changing(tree: &mut Tree, forks: u64) -> [Option<u64>; 3] {
        let mut row = Reading::empty(0);
        tree.scan(Some(forks), &mut row).unwrap();
        [Column::TreeRoot, Column::TreeProcesses, Column::TreeCpuTicks].map(|column| row.get(column))
    }

    #[test]
    fn another_root_is_followed_from_its_first_process_on() {
        let (dir, fake, _) = fake();
        let mut notes = Vec::new();
        let mut tree = Tree::open(dir.path(), Root { may_change: true, ..ROOT }, false, &mut notes).unwrap();
        fake.process(FakeProcess { ticks: [5000, 0, 0, 0], ..process(101, 100, 'S') });
        assert_eq!(of_changing(&mut tree, 1), [Some(100), Some(2), Some(5010)]);
        // A new server is started; its processes are seen as foreign, and while the old one ends nothing is told.
        fake.process(process(200, 1, 'S'));
        fake.process(process(201, 200, 'S'));
        assert_eq!(of_changing(&mut tree, 2), [Some(100), Some(2), Some(5010)]);
        fake.process(process(100, 50, 'Z'));
        assert_eq!(of_changing(&mut tree, 2), [None; 3]);
        fake.remove(100);
        assert_eq!(of_changing(&mut tree, 2), [None; 3]);
        let before = allocations::so_far();
        tree.follow(Some(200));
        assert_eq!(of_changing(&mut tree, 2), [Some(200), Some(2), Some(20)]);
        assert_eq!(allocations::so_far() - before, 0, "another tree takes the room of the one before");
        // The number of a root that has gone may be that of the next one.
        [200, 201].into_iter().for_each(|pid| fake.remove(pid));
        assert_eq!(of_changing(&mut tree, 2), [None; 3]);
        fake.process(process(200, 1, 'S'));
        assert_eq!(of_changing(&mut tree, 3), [None; 3], "nobody has said that it is the server");
        tree.follow(Some(200));
        assert_eq!(of_changing(&mut tree, 3), [Some(200), Some(1), Some(10)]);
        tree.follow(None);
        assert_eq!(of_changing(&mut tree, 4), [None; 3]);
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
        let mut tree = Tree::open(dir.path(), ROOT, true, &mut notes).unwrap();
        check(&mut tree, [1, 0, 0, 1, 0, u64::MAX, 100, 100, 10]);
        assert_eq!(notes.len(), 1, "{notes:?}");
        let mut tree = Tree::open(dir.path(), ROOT, false, &mut notes).unwrap();
        check(&mut tree, [1, 0, 0, 1, 0, u64::MAX, 100, 100, 10]);
        assert_eq!(notes.len(), 1, "nobody asked for it: {notes:?}");
    }
}
