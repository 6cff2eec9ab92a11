//! Where looks come from: the sampler, and another one when it ends. Several threads follow it, each at its own pace, so that a
//! terminal that takes nothing holds up neither a recording nor whoever collects metrics.

use crate::say::tell;
use anyhow::Context;
use model::reading::Look;
use monitor::{Awaited, Sampler, Watch};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A sampler that ended before so many looks, and as soon as this, will not do better the next time.
const HOPEFUL: u64 = 3;
const BRIEF: Duration = Duration::from_secs(5);

/// The sampler of a watch.
pub(super) struct Feed {
    watch: Watch,
    program: PathBuf,
    current: Mutex<Current>,
}

/// A sampler, and the how manieth it is.
#[derive(Clone)]
struct Current {
    number: u64,
    sampler: Arc<Sampler>,
    /// The first process of the tree that is looked at.
    root: Option<u32>,
    since: Instant,
}

impl Current {
    fn new(number: u64, sampler: Sampler, root: Option<u32>) -> Current {
        Current { number, sampler: Arc::new(sampler), root, since: Instant::now() }
    }
}

/// How far somebody is who follows.
pub(super) struct Following {
    feed: Arc<Feed>,
    current: Current,
    /// The look that comes next.
    next: u64,
}

/// What came.
pub(super) enum Heard {
    /// Looks, after so many others that were overwritten before they could be had.
    Looks {
        /// In their order.
        looks: Vec<Look>,
        /// How many are missing before them.
        lost: u64,
    },
    /// Nothing yet.
    Nothing,
    /// Another sampler goes on.
    Anew,
}

impl Feed {
    /// Starts the sampler.
    pub(super) fn start(watch: &Watch) -> anyhow::Result<Arc<Feed>> {
        let program = std::env::current_exe().context("cannot tell where this program is")?;
        let current = Mutex::new(Current::new(0, start(&program, watch)?, watch.root_pid));
        Ok(Arc::new(Feed { watch: watch.clone(), program, current }))
    }

    /// What the sampler was refused and what it could not open, one sentence each.
    pub(super) fn notes(&self) -> Vec<String> {
        self.current().sampler.notes()
    }

    /// The newest look.
    pub(super) fn latest(&self) -> Option<Look> {
        let sampler = Arc::clone(&self.current().sampler);
        sampler.latest_look()
    }

    /// Follows it from the first look that there still is.
    pub(super) fn follow(self: &Arc<Feed>) -> Following {
        Following { feed: Arc::clone(self), current: self.current().clone(), next: 0 }
    }

    /// From now on the process tree below that root is looked at; none if `None`.
    pub(super) fn follow_root(&self, root: Option<u32>) {
        let mut current = self.current();
        current.root = root;
        current.sampler.follow(root);
    }

    /// Replaces a sampler that has ended, unless somebody else has. The counters went on meanwhile.
    fn renew(&self, ended: &Current, looks: u64) -> anyhow::Result<Current> {
        let mut current = self.current();
        if current.number == ended.number {
            let why = ended.sampler.stop().ok().and_then(|mut notes| notes.pop());
            let why = why.unwrap_or_else(|| "the sampler has ended".to_owned());
            if is_hopeless(looks, ended.since.elapsed()) {
                return Err(std::io::Error::other(why).into());
            }
            tell(format!("{why}; another one goes on"));
            let root = current.root;
            let sampler = start(&self.program, &Watch { root_pid: root, ..self.watch.clone() })?;
            *current = Current::new(ended.number + 1, sampler, root);
        }
        Ok(current.clone())
    }

    fn current(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Following {
    /// Waits for looks, so long at most.
    pub(super) fn hear(&mut self, patience: Duration) -> anyhow::Result<Heard> {
        match self.current.sampler.wait(self.next, patience) {
            Awaited::Look => Ok(self.news()),
            Awaited::Nothing => Ok(Heard::Nothing),
            Awaited::Ended => {
                self.current = self.feed.renew(&self.current, self.next)?;
                self.next = 0;
                Ok(Heard::Anew)
            }
        }
    }

    /// What there is by now.
    pub(super) fn news(&mut self) -> Heard {
        let news = self.current.sampler.looks_from(self.next);
        self.next = news.next;
        Heard::Looks { looks: news.looks, lost: news.lost }
    }
}

fn start(program: &Path, watch: &Watch) -> anyhow::Result<Sampler> {
    // What keeps it from starting is the environment's fault, and so tells the exit code.
    Sampler::start(program, watch).map_err(|error| std::io::Error::other(error).into())
}

/// Whether there is no sense in another sampler. With a row a minute, one that had a minute was no failure for want of looks.
fn is_hopeless(looks: u64, lived: Duration) -> bool {
    looks < HOPEFUL && lived < BRIEF
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sampler_that_lived_for_a_while_is_replaced() {
        let check = |looks, seconds, expected| assert_eq!(is_hopeless(looks, Duration::from_secs(seconds)), expected);
        check(1, 0, true);
        check(2, 2, true);
        check(3, 3, false);
        check(1, 50, false);
    }
}
