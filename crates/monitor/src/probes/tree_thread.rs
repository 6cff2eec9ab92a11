//! The thread that looks at the process tree, and the probe that asks it.
//!
//! Looking at the tree opens files of processes that come and go, and opening may wait for memory when the host has none. So the
//! thread that keeps the appointments asks, waits a bounded time, and otherwise goes on without the tree: those columns are then
//! absent in that row, and the rest of it is on time.

use super::shares::{self, Members};
use super::tree::{COLUMNS, Tree};
use super::{Probe, Probes};
use crate::appointments::{now, timespec};
use crate::source::Buffer;
use crate::watch::Watch;
use model::Nanos;
use model::reading::{ABSENT, Reading};
use rustix::thread::futex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Stack of the thread; all it keeps there is a row.
const STACK: usize = 128 * 1024;

/// Starts the thread, if there is a tree to look at.
pub(super) fn open(probes: &mut Probes, watch: &Watch) {
    let Some(root) = watch.root_pid else { return };
    let members = shares::open(probes, watch);
    let handoff = Arc::new(Handoff::default());
    let tree = Tree::open(&watch.proc_root, root, watch.lock_waiters, &mut probes.notes).and_then(|mut tree| {
        // The first look is at every process of the host; the thread shall not begin with that.
        tree.scan(&mut Reading::empty(0))?;
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
        Ok(_) => probes.add(Asker { handoff, patience: watch.period_ns / 2 }),
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
    values: [AtomicU64; COLUMNS.len()],
}

struct Asker {
    handoff: Arc<Handoff>,
    /// How long a reading waits for the tree.
    patience: Nanos,
}

impl Probe for Asker {
    fn read(&mut self, row: &mut Reading, _buffer: &mut Buffer) {
        let Handoff { asked, answered, values } = &*self.handoff;
        let before = asked.load(Ordering::Relaxed);
        if answered.load(Ordering::Acquire) != before {
            // Still at an earlier question: its answer would be about another instant.
            return;
        }
        let question = before.wrapping_add(1);
        asked.store(question, Ordering::Release);
        // Waking and waiting fail only by being interrupted or too late, and the loop looks for itself.
        let _ = futex::wake(asked, futex::Flags::PRIVATE, 1);
        let deadline = now() + self.patience;
        while answered.load(Ordering::Acquire) != question {
            let left = deadline.saturating_sub(now());
            if left == 0 {
                return;
            }
            let _ = futex::wait(answered, futex::Flags::PRIVATE, before, Some(&timespec(left)));
        }
        COLUMNS.iter().zip(values).for_each(|(&column, value)| row.set(column, value.load(Ordering::Relaxed)));
    }
}

fn answer(mut tree: Tree, handoff: &Handoff, members: Option<&Members>) {
    let Handoff { asked, answered, values } = handoff;
    let mut answer = 0;
    loop {
        while asked.load(Ordering::Acquire) == answer {
            let _ = futex::wait(asked, futex::Flags::PRIVATE, answer, None);
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
