//! The server's processes: how many, how busy, how large, and how many wait for a file lock.
//!
//! Descendants are found by the parent that every process names in its stat file. The kernel's `children` files would need a walk
//! over all threads of all processes and are not reliable while children come and go, as those of a CGI server do. Instead every
//! process of the host is looked at once, and after that only those that may belong to the server: a process of another tree
//! cannot join ours. Listing the host's processes is the dearest part; new ones are found without it, by the numbers that were
//! given out since the last time: see `newcomers`. cmdline, smaps and io are never read: reading them can wait for the very process
//! that is stuck.
//!
//! New processes' files must be opened, and reading /proc/locks makes the kernel wait some milliseconds for its CPUs (a grace period,
//! no CPU time), so a look has two parts: `begin` says whether the rest may wait for anything, and the rest then runs in a thread of its own:
//! see `tree_thread`.

mod clock;
mod files;
mod find;

use super::newcomers::Newcomers;
use crate::source::{Buffer, Source};
use crate::text::lines;
use files::{Stat, is_process, lock_waiter, parse_stat};
use model::reading::{Column, Reading};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;

/// What a scan fills.
pub(super) const COLUMNS: [Column; 13] = [
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
    Column::TreeCpuNs,
    Column::TreeProgramLargest,
    Column::TreeBehindCpuNs,
];

/// A clock tick of /proc, the same on every Linux.
const TICK_NS: u64 = 10_000_000;

/// Processes for which there is room from the start.
pub(super) const ROOM: usize = 4096;

/// The process tree under one root.
pub(super) struct Tree {
    root: Option<u32>,
    /// Roots of further trees that belong to the same server.
    beside: Vec<u32>,
    /// The same, of those that run wherever they like.
    behind: Vec<u32>,
    /// It was there, and has gone: another process may have its number by now.
    root_has_gone: bool,
    /// Another root may be named later.
    root_may_change: bool,
    proc: OwnedFd,
    /// Whether a number in `proc` is the number of that process here, so that its clock can be asked.
    has_clocks: bool,
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
    /// How the look that was begun finds new processes.
    search: Search,
}

/// How new processes are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Search {
    /// There are none.
    Nobody,
    /// By the numbers that were given out.
    Numbers,
    /// By a listing of the host's.
    Listing,
}

/// The first process of a tree.
#[derive(Debug, Clone)]
pub(super) struct Root {
    /// Its number, if it is there already.
    pub(super) pid: Option<u32>,
    /// Further trees that count with it.
    pub(super) beside: Vec<u32>,
    /// The same, of those that run wherever they like.
    pub(super) behind: Vec<u32>,
    /// Whether there may be another one later: [`Tree::follow_root`].
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
    /// It was found by its number, not in the listing: it may be a mere thread.
    is_guess: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Ours,
    /// Ours, and of a tree that runs wherever it likes.
    Behind,
    Foreign,
    /// Its parent appeared after the processes were listed: the next scan will tell.
    Unknown,
}

impl Process {
    /// Whether it is one of ours and still runs.
    fn counts(&self) -> bool {
        self.is_ours() && self.runs()
    }

    fn is_ours(&self) -> bool {
        matches!(self.side, Side::Ours | Side::Behind)
    }

    fn ticks(&self) -> u64 {
        self.stat.own_ticks.saturating_add(self.stat.child_ticks)
    }

    /// Its own CPU time, of what has gone meanwhile as far as it was told, and that of its waited-for children, of which only ticks are told.
    fn cpu_ns(&self) -> u64 {
        let own = clock::cpu_ns(self.pid).unwrap_or(self.stat.own_ticks.saturating_mul(TICK_NS));
        own.saturating_add(self.stat.child_ticks.saturating_mul(TICK_NS))
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
            beside: root.beside,
            behind: root.behind,
            root_has_gone: false,
            root_may_change: root.may_change,
            proc,
            has_clocks: is_of_this_namespace(proc_root),
            locks,
            page_size: rustix::param::page_size() as u64,
            listing: vec![MaybeUninit::new(1); 32 * 1024].into_boxed_slice(),
            buffer: Buffer::new(),
            listed: Vec::with_capacity(ROOM),
            foreign: Vec::with_capacity(ROOM),
            followed: Vec::with_capacity(ROOM),
            newcomers: Newcomers::open(proc_root),
            search: Search::Nobody,
        })
    }

    /// Looks at the tree below that process from now on; at none if `None`. A number that was the root's before is a new one's.
    pub(super) fn follow_root(&mut self, root: Option<u32>) {
        (self.root, self.root_has_gone) = (root, false);
        // Whose child a process is says nothing about which tree it is of any more.
        self.followed.clear();
        self.foreign.clear();
        self.newcomers.list_next();
    }

    /// Begins a look: reads which processes are new. True if nothing must be opened for the rest of it.
    pub(super) fn begin(&mut self) -> bool {
        self.search = if self.is_awaited() {
            Search::Nobody
        } else {
            let unknown = self.unknown();
            match self.newcomers.begin(&mut self.buffer, unknown) {
                true if self.newcomers.numbers().is_empty() => Search::Nobody,
                true => Search::Numbers,
                false => Search::Listing,
            }
        };
        self.search == Search::Nobody && self.locks.is_none()
    }

    /// Ends a look that was begun: fills the columns; an error leaves them as they were.
    pub(super) fn finish(&mut self, row: &mut Reading) -> Result<(), Errno> {
        if self.is_awaited() {
            return Ok(());
        }
        let had_root = self.find_root().is_some();
        let found = match self.search {
            Search::Nobody => Ok(()),
            Search::Numbers => self.follow_numbers(),
            Search::Listing => self.list().and_then(|()| self.follow_listed()),
        };
        self.followed.sort_unstable_by_key(|process| process.pid);
        if let Err(error) = found {
            // Those that were not looked at will not be found by their numbers.
            self.newcomers.list_next();
            return Err(error);
        }
        self.newcomers.end(|pid| find(&self.followed, pid).is_none() && self.foreign.binary_search(&pid).is_err());
        self.read_followed();
        self.root_has_gone |= had_root && self.find_root().is_none();
        if self.root_may_change && !self.root_runs() {
            self.root_has_gone = true;
            self.followed.clear();
            return Ok(());
        }
        self.take_sides();
        self.forget_foreign();
        self.forget_threads();
        self.find_parents();
        let locks_known = self.find_lock_waiters();
        self.fill(row, locks_known);
        Ok(())
    }

    /// Whether there is no root yet, or none any more.
    fn is_awaited(&self) -> bool {
        self.root_may_change && (self.root.is_none() || self.root_has_gone)
    }

    fn find_root(&self) -> Option<&Process> {
        find(&self.followed, self.root?).map(|index| &self.followed[index])
    }

    /// Whether a process is a program that a worker has started. One that is still a copy of the worker, or has its memory until it begins
    /// (`vfork`), bears its name.
    fn is_program(&self, process: &Process) -> bool {
        let is_first = |pid: u32| Some(pid) == self.root || self.beside.contains(&pid) || self.behind.contains(&pid);
        let parent = find(&self.followed, process.stat.parent).map(|index| &self.followed[index]);
        let is_deep = !is_first(process.pid) && !is_first(process.stat.parent);
        is_deep && parent.is_some_and(|parent| parent.stat.name != process.stat.name)
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
        let is_root = Some(process.pid) == self.root || self.beside.contains(&process.pid);
        if is_root && !self.root_has_gone {
            Side::Ours
        } else if self.behind.contains(&process.pid) && !self.root_has_gone {
            Side::Behind
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
        let worker = |process: &Process| Some(process.stat.parent) == self.root;
        let occupied = |process: &Process| process.has_child || matches!(process.stat.state, b'R' | b'D');
        if let Some(root) = self.root.filter(|_| self.root_runs()) {
            row.set(Column::TreeRoot, root.into());
        }
        row.set(Column::TreeProcesses, count(&|_| true));
        row.set(Column::TreeWorkers, count(&worker));
        row.set(Column::TreeBusyWorkers, count(&|process| worker(process) && occupied(process)));
        row.set(Column::TreeRunning, count(&|process| process.stat.state == b'R'));
        // Who has threads shows what the first of them does, which in a server is to wait for the others: nobody is seen in the disk then, and
        // may be.
        let asleep = count(&|process| process.stat.state == b'D');
        if asleep > 0 || 2 * count(&|process| process.stat.threads > 1) <= count(&|_| true) {
            row.set(Column::TreeDiskSleep, asleep);
        }
        if locks_known {
            row.set(Column::TreeLockWaiters, count(&|process| process.waits_for_lock));
        }
        let size = |process: &Process| process.stat.resident_pages.saturating_mul(self.page_size);
        row.set(Column::TreeRss, ours().map(size).fold(0, u64::saturating_add));
        row.set(Column::TreeRssLargest, ours().map(size).max().unwrap_or(0));
        row.set(Column::TreeProgramLargest, ours().filter(|it| self.is_program(it)).map(size).max().unwrap_or(0));
        // With the dead: what they used is their parent's only once they are reaped, and a sum without them would fall and then jump.
        let all_ours = || self.followed.iter().filter(|process| process.is_ours());
        row.set(Column::TreeCpuTicks, all_ours().map(Process::ticks).fold(0, u64::saturating_add));
        if self.has_clocks {
            row.set(Column::TreeCpuNs, all_ours().map(Process::cpu_ns).fold(0, u64::saturating_add));
        }
        if !self.behind.is_empty() {
            let used = |it: &Process| if self.has_clocks { it.cpu_ns() } else { it.ticks().saturating_mul(TICK_NS) };
            let behind = all_ours().filter(|process| process.side == Side::Behind).map(used);
            row.set(Column::TreeBehindCpuNs, behind.fold(0, u64::saturating_add));
        }
    }
}

/// Whether that is the directory of processes in which this process has the number that it has for itself.
fn is_of_this_namespace(proc_root: &Path) -> bool {
    let own = std::fs::read_link(proc_root.join("self")).ok();
    own.is_some_and(|own| own.as_os_str().to_str() == Some(&std::process::id().to_string()))
}

fn find(processes: &[Process], pid: u32) -> Option<usize> {
    processes.binary_search_by_key(&pid, |process| process.pid).ok()
}

#[cfg(test)]
mod tests;
