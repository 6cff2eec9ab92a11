//! `--tree apache`: which process is the server's first one now. A server that has ended is looked for until it is there again.
//!
//! The look at all processes takes milliseconds, so it happens only while there is no server, and never in the sampler.

use super::feed::Feed;
use crate::say::tell;
use anyhow::Context;
use monitor::{Known, RootError, root_of, started, ticks_since_boot};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Between two looks.
const ROUND: Duration = Duration::from_secs(1);
/// A server that is being started or stopped has several masters for a moment; they are told when they last.
const MOMENT: u32 = 3;

/// A thread that looks for a server until it is dropped.
pub(super) struct Seeker {
    over: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Seeker {
    /// Starts it; `root` is the server's first process, if there is one.
    pub(super) fn start(
        feed: &Arc<Feed>,
        server: Known,
        root: Option<u32>,
        proc_root: &Path,
    ) -> anyhow::Result<Seeker> {
        let (over, told) = channel();
        let (feed, mut search) = (Arc::clone(feed), Search::new(server, root, proc_root.to_owned()));
        let look = move || {
            while told.recv_timeout(ROUND) == Err(RecvTimeoutError::Timeout) {
                let Found { root, lines } = search.look();
                if let Some(root) = root {
                    feed.follow_root(root);
                }
                lines.iter().for_each(tell);
            }
        };
        let thread = std::thread::Builder::new().name("seeker".to_owned()).spawn(look);
        let thread = thread.context("cannot start the thread that looks for the server")?;
        Ok(Seeker { over: Some(over), thread: Some(thread) })
    }
}

impl Drop for Seeker {
    fn drop(&mut self) {
        drop(self.over.take());
        // It is over after a look at most.
        self.thread.take().map(JoinHandle::join);
    }
}

/// What a look came to.
#[derive(Debug, Default, PartialEq, Eq)]
struct Found {
    /// The server is another process now, or none.
    root: Option<Option<u32>>,
    /// What is to be told.
    lines: Vec<String>,
}

/// A process that cannot be taken for another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Process {
    pid: u32,
    /// Clock ticks after the machine's start.
    started: u64,
}

/// What is known of a server.
struct Search {
    server: Known,
    proc_root: PathBuf,
    root: Option<Process>,
    /// The user knows that it runs. One that does not outlive its first second, as what starts a daemon, is not worth a line.
    told: bool,
    /// It has run before.
    again: bool,
    /// When it was last seen to run, in clock ticks after the machine's start.
    seen: u64,
    /// Looks in a row that found several masters.
    several: u32,
}

impl Search {
    fn new(server: Known, root: Option<u32>, proc_root: PathBuf) -> Search {
        // One that has gone since it was found will be found to have gone.
        let root = root.map(|pid| Process { pid, started: started(&proc_root, pid).unwrap_or(0) });
        let is_there = root.is_some();
        Search { server, proc_root, root, told: is_there, again: is_there, seen: 0, several: 0 }
    }

    fn look(&mut self) -> Found {
        let mut lines = Vec::new();
        let before = self.root.take();
        if let Some(root) = before.filter(|root| started(&self.proc_root, root.pid) == Some(root.started)) {
            (self.root, self.several) = (before, 0);
            self.seen = ticks_since_boot(&self.proc_root).unwrap_or(0);
            lines.extend(self.runs(root.pid));
            return Found { root: None, lines };
        }
        let name = self.server.name();
        if std::mem::take(&mut self.told) {
            lines.push(format!("--tree {name}: {name} has ended; dashes until it runs again"));
        }
        self.root = self.find(&mut lines);
        let root = (before != self.root).then(|| self.root.map(|root| root.pid));
        Found { root, lines }
    }

    fn runs(&mut self, pid: u32) -> Option<String> {
        let (name, when) = (self.server.name(), if self.again { "again" } else { "now" });
        self.again = true;
        (!std::mem::replace(&mut self.told, true))
            .then(|| format!("--tree {name}: {name} runs {when}, as process {pid}"))
    }

    fn find(&mut self, lines: &mut Vec<String>) -> Option<Process> {
        let process = |pid| Some(Process { pid, started: started(&self.proc_root, pid)? });
        match root_of(&self.proc_root, self.server) {
            Ok(pid) => process(pid),
            Err(error @ RootError::Several { .. }) => {
                let RootError::Several { masters, .. } = &error else { return None };
                // What the server that ended has left behind, such as workers that still answer, is older than the next one.
                let masters = masters.iter().filter_map(|(pid, _)| process(*pid));
                let mut newer = masters.filter(|master| master.started > self.seen);
                if let (Some(one), None) = (newer.next(), newer.next()) {
                    return Some(one);
                }
                self.several += 1;
                if self.several == MOMENT {
                    lines.push(format!("--tree {}: {error}", self.server.name()));
                }
                None
            }
            Err(_) => {
                self.several = 0;
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::fake_proc::FakeTree;

    /// A process of Apache, started so many seconds after the machine.
    fn process(fake: &FakeTree, pid: u32, parent: u32, started_s: u64) {
        let stat = format!("{pid} (apache2) S {parent}{} {started_s}00 0 0\n", " 0".repeat(17));
        fake.file(&format!("{pid}/stat"), &stat);
    }

    fn check(search: &mut Search, root: Option<Option<u32>>, lines: &[&str]) {
        let lines = lines.iter().map(|line| (*line).to_owned()).collect();
        assert_eq!(search.look(), Found { root, lines });
    }

    #[test]
    fn a_server_that_is_started_again_is_found_again() {
        let dir = tempfile::tempdir().unwrap();
        let fake = FakeTree::new(dir.path());
        fake.file("uptime", "50.00 1.00\n");
        process(&fake, 20, 1, 3);
        process(&fake, 21, 20, 4);
        let mut search = Search::new(Known::Apache, Some(20), dir.path().to_owned());
        check(&mut search, None, &[]);
        [20, 21].into_iter().for_each(|pid| fake.remove(pid));
        let gone = "--tree apache: apache has ended; dashes until it runs again";
        check(&mut search, Some(None), &[gone]);
        check(&mut search, None, &[]);
        // What starts the daemon ends as soon as it has.
        process(&fake, 30, 7, 60);
        check(&mut search, Some(Some(30)), &[]);
        fake.remove(30);
        process(&fake, 31, 1, 60);
        check(&mut search, Some(Some(31)), &[]);
        check(&mut search, None, &["--tree apache: apache runs again, as process 31"]);
        check(&mut search, None, &[]);
        // Another one under the same number is another one.
        process(&fake, 31, 1, 90);
        check(&mut search, Some(Some(31)), &[gone]);
        check(&mut search, None, &["--tree apache: apache runs again, as process 31"]);
    }

    #[test]
    fn one_that_is_not_there_yet_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let fake = FakeTree::new(dir.path());
        let mut search = Search::new(Known::Apache, None, dir.path().to_owned());
        check(&mut search, None, &[]);
        process(&fake, 31, 1, 60);
        check(&mut search, Some(Some(31)), &[]);
        check(&mut search, None, &["--tree apache: apache runs now, as process 31"]);
    }

    #[test]
    fn what_the_last_one_left_behind_is_not_the_next_one() {
        let dir = tempfile::tempdir().unwrap();
        let fake = FakeTree::new(dir.path());
        fake.file("uptime", "50.00 1.00\n");
        process(&fake, 20, 1, 3);
        let mut search = Search::new(Known::Apache, Some(20), dir.path().to_owned());
        check(&mut search, None, &[]);
        fake.remove(20);
        process(&fake, 21, 1, 4);
        process(&fake, 22, 1, 4);
        check(&mut search, Some(None), &["--tree apache: apache has ended; dashes until it runs again"]);
        check(&mut search, None, &[]);
        let several = "--tree apache: 2 processes are masters of apache: 21 (no command line), 22 (no command line); \
            name one by its number";
        check(&mut search, None, &[several]);
        check(&mut search, None, &[]);
        process(&fake, 40, 1, 52);
        check(&mut search, Some(Some(40)), &[]);
    }
}
