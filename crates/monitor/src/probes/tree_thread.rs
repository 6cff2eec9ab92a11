//! The probe that looks at the process tree, and the thread that does what may take long.
//!
//! Looking at the tree opens files of processes that come and go, and opening may wait for memory when the host has none. So the
//! thread that keeps the appointments asks another one for that, waits a bounded time, and otherwise goes on without the tree: those columns
//! are then absent in that row, and the rest of it is on time. A look that has nothing to open, as nearly all of a calm server have, costs
//! no change of threads.

use super::shares::{self, Members};
use super::tree::{COLUMNS, Root, Tree};
use super::{Probe, Probes};
use crate::appointments::{now, timespec};
use crate::ring::RootOrder;
use crate::source::Buffer;
use crate::watch::Watch;
use model::Nanos;
use model::reading::{Column, Reading};
use rustix::thread::futex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Stack of the thread; all it keeps there is a row.
const STACK: usize = 128 * 1024;

/// Starts the thread, if there is a tree to look at.
pub(super) fn open(probes: &mut Probes, watch: &Watch) {
    let pid = watch.root_pid;
    let (beside, behind) = (watch.beside_pids.clone(), watch.behind_pids.clone());
    let root = Root { pid, beside, behind, may_change: watch.root_may_change };
    if pid.is_none() && !root.may_change {
        return;
    }
    let members = shares::open(probes, watch);
    let tree = Tree::open(&watch.proc_root, root, watch.lock_waiters, &mut probes.notes).and_then(|mut tree| {
        // The first look is at every process of the host; the thread shall not begin with that. Where there is no server yet, it is
        // at our own tree, so that all the room that the server's will need has been touched.
        if pid.is_none() {
            tree.follow_root(Some(std::process::id()));
        }
        tree.begin();
        tree.finish(&mut Reading::empty(0))?;
        if pid.is_none() {
            tree.follow_root(None);
        }
        members.iter().for_each(|members| members.are(tree.members()));
        Ok(tree)
    });
    let opened = tree.map_err(std::io::Error::from).and_then(|tree| {
        let shared = Arc::new(Shared::of(tree));
        let (theirs, them) = (Arc::clone(&shared), members.clone());
        // It lives as long as the process, which ends by returning from its main function.
        let thread = std::thread::Builder::new().name("tree".to_owned()).stack_size(STACK);
        thread.spawn(move || answer(&theirs, them.as_ref())).map(|_| shared)
    });
    match opened {
        Ok(shared) => {
            let patience = watch.period_ns / 2;
            probes.tree = Some(Asker { shared, patience, members, order: RootOrder::default(), is_storm: false });
        }
        Err(error) => {
            probes.notes.push(format!("the process tree cannot be watched ({error}): its columns are absent"));
        }
    }
}

/// Questions and answers are counted; the thread takes the tree only while the counts differ, the asker only while they are equal.
struct Shared {
    asked: AtomicU32,
    answered: AtomicU32,
    tree: Mutex<Seen>,
}

/// The tree, and what the last question about it found.
struct Seen {
    tree: Tree,
    row: Reading,
}

impl Shared {
    fn of(tree: Tree) -> Shared {
        let row = Reading::empty(0);
        Shared { asked: AtomicU32::new(0), answered: AtomicU32::new(0), tree: Mutex::new(Seen { tree, row }) }
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.tree.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) struct Asker {
    shared: Arc<Shared>,
    /// How long a reading waits for the tree.
    patience: Nanos,
    members: Option<Members>,
    /// Whom the tree follows.
    order: RootOrder,
    is_storm: bool,
}

impl Asker {
    /// Takes over who is to be followed.
    pub(super) fn follow(&mut self, order: RootOrder) {
        if order != self.order && self.is_idle() {
            self.order = order;
            self.shared.lock().tree.follow_root(order.pid());
            self.members.iter().for_each(Members::begin_anew);
        }
    }

    /// Whether memory is short. Then even reading an open file may take long: the memory of a process that ends meanwhile is given
    /// back by whoever looks at it last.
    pub(super) fn storm(&mut self, is_storm: bool) {
        self.is_storm = is_storm;
    }

    /// Whether the thread is through with what it was asked, so that the tree is ours.
    fn is_idle(&self) -> bool {
        self.shared.answered.load(Ordering::Acquire) == self.shared.asked.load(Ordering::Relaxed)
    }

    /// Looks at the tree; false when the thread had no answer in time.
    fn look(&mut self, row: &mut Reading) -> bool {
        if !self.is_idle() {
            // Still at an earlier question: its answer would be about another instant.
            return false;
        }
        let mut seen = self.shared.lock();
        if seen.tree.begin() && !self.is_storm {
            seen.finish(self.members.as_ref());
        } else {
            drop(seen);
            if !self.ask() {
                return false;
            }
            seen = self.shared.lock();
        }
        COLUMNS.iter().for_each(|&column| row.set(column, seen.row.values[column as usize]));
        true
    }

    /// Has the thread finish the look; false when it was not done in time.
    fn ask(&self) -> bool {
        let Shared { asked, answered, .. } = &*self.shared;
        let before = asked.load(Ordering::Relaxed);
        let question = before.wrapping_add(1);
        asked.store(question, Ordering::Release);
        // Waking and waiting fail only by being interrupted or too late, and the loop looks for itself.
        let _ = futex::wake(asked, futex::Flags::PRIVATE, 1);
        let deadline = now() + self.patience;
        while answered.load(Ordering::Acquire) != question {
            let left = deadline.saturating_sub(now());
            if left == 0 {
                return false;
            }
            let _ = futex::wait(answered, futex::Flags::PRIVATE, before, Some(&timespec(left)));
        }
        true
    }
}

impl Probe for Asker {
    fn read(&mut self, row: &mut Reading, _buffer: &mut Buffer) {
        let has_ended = self.look(row) && row.get(Column::TreeProcesses).is_none();
        if let Some(members) = self.members.as_ref().filter(|_| !has_ended) {
            members.tell(row);
        }
    }
}

impl Seen {
    /// Ends the look that was begun; without what it was to find if it fails.
    fn finish(&mut self, members: Option<&Members>) {
        self.row = Reading::empty(0);
        // One that fails has filled nothing.
        let _ = self.tree.finish(&mut self.row);
        members.into_iter().for_each(|members| members.are(self.tree.members()));
    }
}

fn answer(shared: &Shared, members: Option<&Members>) {
    let Shared { asked, answered, .. } = shared;
    let mut answer = 0;
    loop {
        while asked.load(Ordering::Acquire) == answer {
            let _ = futex::wait(asked, futex::Flags::PRIVATE, answer, None);
        }
        shared.lock().finish(members);
        answer = answer.wrapping_add(1);
        answered.store(answer, Ordering::Release);
        let _ = futex::wake(answered, futex::Flags::PRIVATE, 1);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::read;
    use super::*;
    use model::SECOND;
    use std::time::{Duration, Instant};
    use testkit::fake_proc::{FakeProcess, FakeTree};

    #[test]
    fn a_tree_that_ends_leaves_nothing_of_what_was_shared_in_the_same_row() {
        let dir = tempfile::tempdir().unwrap();
        let fake = FakeTree::new(dir.path());
        fake.process(FakeProcess {
            pid: 100,
            parent: 1,
            name: "httpd",
            state: 'S',
            ticks: [1; 4],
            threads: 1,
            resident_pages: 9,
        });
        fake.file("100/smaps_rollup", "Pss:  500 kB\nPrivate_Clean: 30 kB\nPrivate_Dirty: 200 kB\nSwap: 50 kB\n");
        let watch = Watch {
            // Nothing in this test waits for so long.
            period_ns: 1000 * SECOND,
            parts: Vec::new(),
            root_pid: Some(100),
            root_may_change: true,
            shares_period_ns: Some(1000 * SECOND),
            proc_root: dir.path().to_owned(),
            ..Watch::default()
        };
        let mut probes = Probes::open(&watch);
        let deadline = Instant::now() + Duration::from_secs(60);
        while read(&mut probes).get(Column::TreePss) != Some(500 << 10) {
            assert!(Instant::now() < deadline, "{:?}", probes.notes);
            std::thread::yield_now();
        }
        assert_eq!(read(&mut probes).get(Column::TreeRoot), Some(100));
        fake.remove(100);
        let row = read(&mut probes);
        let of_tree = Column::ALL.iter().filter(|column| column.name().starts_with("tree."));
        let told: Vec<_> = of_tree.filter(|&&column| row.get(column).is_some()).collect();
        assert!(told.is_empty(), "{told:?}");
    }

    #[test]
    fn the_thread_is_asked_only_for_what_may_take_long() {
        let dir = tempfile::tempdir().unwrap();
        let fake = FakeTree::new(dir.path());
        std::os::unix::fs::symlink(std::process::id().to_string(), dir.path().join("self")).unwrap();
        fake.process(FakeProcess {
            pid: 100,
            parent: 1,
            name: "httpd",
            state: 'S',
            ticks: [1; 4],
            threads: 1,
            resident_pages: 9,
        });
        fake.file("loadavg", "0.52 1.00 12.34 1/79 100\n");
        let watch = Watch {
            period_ns: 1000 * SECOND,
            parts: Vec::new(),
            root_pid: Some(100),
            proc_root: dir.path().to_owned(),
            ..Watch::default()
        };
        let mut probes = Probes::open(&watch);
        let asked_by_a_look = |probes: &mut Probes| {
            let asked = |probes: &Probes| probes.tree.as_ref().unwrap().shared.asked.load(Ordering::Relaxed);
            let before = asked(probes);
            assert_eq!(read(probes).get(Column::TreeProcesses), Some(1), "{:?}", probes.notes);
            asked(probes) - before
        };
        assert_eq!(asked_by_a_look(&mut probes), 1, "numbers that were given out just before the first look");
        assert_eq!(asked_by_a_look(&mut probes), 0, "nobody is new");
        fake.file("loadavg", "0.52 1.00 12.34 1/79 101\n");
        assert_eq!(asked_by_a_look(&mut probes), 1, "somebody is new");
        assert_eq!(asked_by_a_look(&mut probes), 1, "and was not seen yet");
        assert_eq!(asked_by_a_look(&mut probes), 0, "he has gone");
        probes.storm(true);
        assert_eq!(asked_by_a_look(&mut probes), 1, "memory is short");
    }
}
