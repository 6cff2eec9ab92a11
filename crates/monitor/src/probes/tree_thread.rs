//! The thread that looks at the process tree, and the probe that asks it.
//!
//! Looking at the tree opens files of processes that come and go, and opening may wait for memory when the host has none. So the
//! thread that keeps the appointments asks, waits a bounded time, and otherwise goes on without the tree: those columns are then
//! absent in that row, and the rest of it is on time.

use super::shares::{self, Members};
use super::tree::{COLUMNS, Root, Tree};
use super::{Probe, Probes};
use crate::appointments::{now, timespec};
use crate::ring::RootOrder;
use crate::source::Buffer;
use crate::watch::Watch;
use model::Nanos;
use model::reading::{ABSENT, Column, Reading};
use rustix::thread::futex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Stack of the thread; all it keeps there is a row.
const STACK: usize = 128 * 1024;

/// Starts the thread, if there is a tree to look at.
pub(super) fn open(probes: &mut Probes, watch: &Watch) {
    let pid = watch.root_pid;
    let root = Root { pid, beside: watch.beside_pids.clone(), may_change: watch.root_may_change };
    if pid.is_none() && !root.may_change {
        return;
    }
    let members = shares::open(probes, watch);
    let shares = members.clone();
    let handoff = Arc::new(Handoff::default());
    let tree = Tree::open(&watch.proc_root, root, watch.lock_waiters, &mut probes.notes).and_then(|mut tree| {
        // The first look is at every process of the host; the thread shall not begin with that. Where there is no server yet, it is
        // at our own tree, so that all the room that the server's will need has been touched.
        if pid.is_none() {
            tree.follow_root(Some(std::process::id()));
        }
        tree.scan(&mut Reading::empty(0))?;
        if pid.is_none() {
            tree.follow_root(None);
        }
        members.iter().for_each(|members| members.are(tree.members()));
        Ok(tree)
    });
    let opened = tree.map_err(std::io::Error::from).and_then(|tree| {
        let theirs = Arc::clone(&handoff);
        // It lives as long as the process, which ends by returning from its main function.
        std::thread::Builder::new()
            .name("tree".to_owned())
            .stack_size(STACK)
            .spawn(move || answer(tree, &theirs, members.as_ref()))
    });
    match opened {
        Ok(_) => probes.tree = Some(Asker { handoff, patience: watch.period_ns / 2, shares }),
        Err(error) => {
            probes.notes.push(format!("the process tree cannot be watched ({error}): its columns are absent"));
        }
    }
}

/// Questions and answers are counted; the values belong to the asker while both counts are equal, else to the thread.
#[derive(Default)]
struct Handoff {
    asked: AtomicU32,
    answered: AtomicU32,
    /// Who is to be followed, as the parent says it.
    root: AtomicU64,
    values: [AtomicU64; COLUMNS.len()],
}

pub(super) struct Asker {
    handoff: Arc<Handoff>,
    /// How long a reading waits for the tree.
    patience: Nanos,
    shares: Option<Members>,
}

impl Asker {
    /// Takes over who is to be followed.
    pub(super) fn follow(&self, order: RootOrder) {
        self.handoff.root.store(order.0, Ordering::Relaxed);
    }

    /// False when there was no answer in time.
    fn ask(&self, row: &mut Reading) -> bool {
        let Handoff { asked, answered, values, .. } = &*self.handoff;
        let before = asked.load(Ordering::Relaxed);
        if answered.load(Ordering::Acquire) != before {
            // Still at an earlier question: its answer would be about another instant.
            return false;
        }
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
        COLUMNS.iter().zip(values).for_each(|(&column, value)| row.set(column, value.load(Ordering::Relaxed)));
        true
    }
}

impl Probe for Asker {
    fn read(&mut self, row: &mut Reading, _buffer: &mut Buffer) {
        let has_ended = self.ask(row) && row.get(Column::TreeProcesses).is_none();
        if let Some(shares) = self.shares.as_ref().filter(|_| !has_ended) {
            shares.tell(row);
        }
    }
}

fn answer(mut tree: Tree, handoff: &Handoff, members: Option<&Members>) {
    let Handoff { asked, answered, root, values } = handoff;
    let mut answer = 0;
    let mut followed = RootOrder::default();
    loop {
        while asked.load(Ordering::Acquire) == answer {
            let _ = futex::wait(asked, futex::Flags::PRIVATE, answer, None);
        }
        let order = RootOrder(root.load(Ordering::Relaxed));
        if order != followed {
            followed = order;
            tree.follow_root(order.pid());
            members.into_iter().for_each(Members::begin_anew);
        }
        let mut row = Reading::empty(0);
        if tree.scan(&mut row).is_err() {
            row = Reading::empty(0);
        }
        members.into_iter().for_each(|members| members.are(tree.members()));
        for (value, &column) in values.iter().zip(&COLUMNS) {
            value.store(row.get(column).unwrap_or(ABSENT), Ordering::Relaxed);
        }
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
        fake.process(FakeProcess { pid: 100, parent: 1, name: "httpd", state: 'S', ticks: [1; 4], resident_pages: 9 });
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
}
