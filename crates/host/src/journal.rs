//! What was changed and how to undo it, on disk before the change is made.
//!
//! One file per run, JSON lines: a head, then changes and the numbers of those undone since. Each line is written and synced before
//! the change it names, so a line torn by a crash names a change that was never made. The owner holds an flock
//! on the file for as long as it lives; a journal that can be locked belongs to a dead run. This file only remembers; `undo` acts.

use crate::HostError;
use crate::files::Lent;
use crate::process::{Identity, Namespace, Session};
use crate::service::{Restart, Service};
use crate::stop::Stop;
use rustix::fs::FlockOperation;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// How the name of a journal ends.
pub(crate) const ENDING: &str = "journal";
/// Where the kernel tells which boot this is.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// How to undo a change. Each can be carried out twice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Undo {
    /// End a server: all processes of its session.
    KillSession(Session),
    /// Ask a server to end as its plan says, before that.
    AskToEnd {
        /// Its session.
        session: Session,
        /// How.
        stop: Box<Stop>,
    },
    /// End what lives in the directories of one group, and remove them.
    RemoveGroup {
        /// One per hierarchy.
        paths: Vec<PathBuf>,
    },
    /// Take the memory controller away again from the children of a cgroup v2 directory.
    DisableMemory {
        /// The directory.
        parent: PathBuf,
    },
    /// The same for another controller.
    DisableController {
        /// The directory.
        parent: PathBuf,
        /// Its name: `cpu`, `io`.
        controller: String,
    },
    /// Take a swap file out of use.
    SwapOff {
        /// The file.
        file: PathBuf,
    },
    /// Take a swap area of the machine's into use again.
    SwapOn {
        /// The file or device.
        file: PathBuf,
        /// Its priority; one below 0 is the kernel's to give.
        priority: i32,
    },
    /// Delete a file of the run's own name.
    RemoveFile {
        /// The file.
        path: PathBuf,
    },
    /// Delete a folder of the run's own name with all that is in it.
    RemoveTree {
        /// The folder.
        path: PathBuf,
    },
    /// Give a file of others its content back.
    GiveBack(Lent),
    /// Give a setting of the kernel its value back.
    Sysctl {
        /// Its name, with dots.
        name: String,
        /// What it was.
        value: String,
        /// What the run may set it to; another value is somebody else's. Empty when it is not known.
        #[serde(default)]
        ours: Vec<String>,
    },
    /// After files were given back, run a command that has somebody read them.
    Tell {
        /// Program and arguments.
        command: Vec<String>,
        /// Whether it has not worked yet: then nothing hangs on it.
        #[serde(default)]
        unproven: bool,
    },
    /// After that, have a server of the machine's run with its own configuration.
    Restart {
        /// The server.
        service: Box<Service>,
        /// How much of it begins anew.
        how: Restart,
    },
    /// After that, let others work on a server.
    Unclaim {
        /// The file that keeps them from it.
        path: PathBuf,
    },
}

impl Undo {
    /// Changes are undone newest first, but for those that have others read what was given back: they come after it.
    pub(crate) fn turn(&self) -> u8 {
        match self {
            Undo::Tell { .. } => 1,
            Undo::Restart { .. } => 2,
            Undo::Unclaim { .. } => 3,
            _ => 0,
        }
    }
}

/// Whose journal it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Head {
    /// Identifier of the run, part of every name it makes.
    pub(crate) run: String,
    /// The process that runs it.
    pub(crate) owner: Identity,
    /// The kernel's own id of this boot: processes, groups and swap do not survive it.
    pub(crate) boot: String,
    /// Where the numbers of processes in it mean these. Journals of before do not know it.
    #[serde(default)]
    pub(crate) namespace: Namespace,
}

/// An open and locked journal.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    file: File,
    replay: Replay,
}

/// What the lines of a journal amount to.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Replay {
    /// `None` when the owner was killed before it had written one, and so before it had changed anything.
    pub(crate) head: Option<Head>,
    /// What is not undone yet, by number.
    pub(crate) pending: BTreeMap<u64, Undo>,
    /// Whole lines that mean nothing to this version, counted from 1.
    pub(crate) unknown: Vec<usize>,
    /// The number of the next change.
    next: u64,
    /// Bytes of whole lines; a torn rest is cut off.
    whole: u64,
}

/// Whether to wait for a locked journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Locked {
    /// Until its owner lets go.
    Wait,
    /// Not at all: it is in good hands.
    Leave,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Head(Head),
    Change { id: u64, undo: Undo },
    Done(u64),
}

impl Head {
    /// Whether the machine was booted since.
    ///
    /// # Errors
    /// When it does not tell, which is no sign of another boot.
    pub(crate) fn is_of_another_boot(&self) -> Result<bool, String> {
        Ok(self.boot != boot_id().map_err(|error| error.to_string())?)
    }

    /// Whether numbers of processes mean others here than there: a container was started anew, or shares the journal's folder.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub(crate) fn is_of_another_namespace(&self) -> Result<bool, String> {
        Ok(Namespace::own()?.differs_from(self.namespace))
    }
}

impl Journal {
    /// Where the journal of `run` lies.
    pub(crate) fn place(dir: &Path, run: &str) -> PathBuf {
        dir.join(format!("{run}.{ENDING}"))
    }

    /// A new journal for `run`, owned by this process.
    pub(crate) fn create(dir: &Path, run: &str) -> Result<Journal, HostError> {
        let path = Journal::place(dir, run);
        let owner = Identity::of(std::process::id()).ok_or_else(|| HostError::Io {
            what: "read",
            path: "/proc/self/stat".into(),
            source: io::ErrorKind::NotFound.into(),
        })?;
        // Without it the journal is as those of before.
        let namespace = Namespace::own().unwrap_or_default();
        let head = Head { run: run.to_owned(), owner, boot: boot_id()?, namespace };
        loop {
            let file = match OpenOptions::new().read(true).append(true).create_new(true).mode(0o600).open(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    let head = fs::read(&path).ok().and_then(|bytes| replay(&bytes).head);
                    let pid = head.map_or(0, |head| head.owner.pid);
                    return Err(HostError::AlreadyRunning { run: run.to_owned(), pid });
                }
                file => file.map_err(HostError::io("create", &path))?,
            };
            // A `restore` at this very moment may lock and delete the still empty file; then there is nothing to hold on to.
            lock(&file, Locked::Wait).map_err(HostError::io("lock", &path))?;
            if file.metadata().map_err(HostError::io("read", &path))?.nlink() == 0 {
                continue;
            }
            let mut journal = Journal { path, file, replay: Replay::default() };
            let begun = journal.append(&Line::Head(head));
            if begun.is_err() {
                // Nothing stands in it, and nobody will need it.
                let _ = fs::remove_file(&journal.path);
            }
            return begun.map(|()| journal);
        }
    }

    /// The journal of a run that is over. `None` when its owner lives (with [`Locked::Leave`]) or somebody else has removed it.
    pub(crate) fn take_over(path: &Path, locked: Locked) -> Result<Option<Journal>, HostError> {
        let mut file = match OpenOptions::new().read(true).append(true).open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file.map_err(HostError::io("open", path))?,
        };
        match lock(&file, locked) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            result => result.map_err(HostError::io("lock", path))?,
        }
        if file.metadata().map_err(HostError::io("read", path))?.nlink() == 0 {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(HostError::io("read", path))?;
        let replay = replay(&bytes);
        file.set_len(replay.whole).map_err(HostError::io("shorten", path))?;
        Ok(Some(Journal { path: path.to_owned(), file, replay }))
    }

    /// What the journal of a run that is over says, which is left as it is. `None` when its owner lives or it is gone.
    pub(crate) fn look(path: &Path) -> Result<Option<Replay>, HostError> {
        let mut file = match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file.map_err(HostError::io("open", path))?,
        };
        match lock(&file, Locked::Leave) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            result => result.map_err(HostError::io("lock", path))?,
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(HostError::io("read", path))?;
        Ok(Some(replay(&bytes)))
    }

    /// Whether the process whose journal lies there, and is locked, lives; a journal that nobody has begun to write has none. One of
    /// another pid namespace cannot be looked for: who holds the lock there is taken for it.
    pub(crate) fn owner_lives(path: &Path) -> bool {
        let head = fs::read(path).ok().and_then(|bytes| replay(&bytes).head);
        head.is_some_and(|head| {
            head.is_of_another_namespace().unwrap_or(false) || Identity::of(head.owner.pid) == Some(head.owner)
        })
    }

    /// Where it lies.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What is known from its lines.
    pub(crate) fn replay(&self) -> &Replay {
        &self.replay
    }

    /// Remembers how to undo a change that is about to be made; returns its number.
    pub(crate) fn record(&mut self, undo: Undo) -> Result<u64, HostError> {
        let id = self.replay.next;
        let line = Line::Change { id, undo };
        self.append(&line)?;
        Ok(id)
    }

    /// Remembers more on how to undo change `id`: of two lines with one number the later one counts.
    pub(crate) fn amend(&mut self, id: u64, undo: Undo) -> Result<(), HostError> {
        self.append(&Line::Change { id, undo })
    }

    /// Remembers that change `id` is undone.
    pub(crate) fn done(&mut self, id: u64) -> Result<(), HostError> {
        self.append(&Line::Done(id))
    }

    /// Deletes the journal of a run that has given everything back.
    pub(crate) fn remove(self) -> Result<(), HostError> {
        fs::remove_file(&self.path).map_err(HostError::io("delete", &self.path))
    }

    fn append(&mut self, line: &Line) -> Result<(), HostError> {
        let mut bytes =
            serde_json::to_vec(line).map_err(io::Error::from).map_err(HostError::io("describe", &self.path))?;
        bytes.push(b'\n');
        if let Err(error) = self.file.write_all(&bytes).and_then(|()| self.file.sync_data()) {
            // A full disk can take half a line, and the next one must not be glued to it.
            let _ = self.file.set_len(self.replay.whole);
            return Err(HostError::io("write", &self.path)(error));
        }
        self.replay.take(line);
        self.replay.whole += bytes.len() as u64;
        Ok(())
    }

    /// As if its owner had ended: nobody holds its lock. Merely dropped it would be held for another moment by a program that another test
    /// is about to start.
    #[cfg(test)]
    pub(crate) fn abandon(self) {
        rustix::fs::flock(&self.file, FlockOperation::Unlock).unwrap();
    }
}

impl Replay {
    fn take(&mut self, line: &Line) {
        match line {
            Line::Head(head) => self.head = Some(head.clone()),
            Line::Change { id, undo } => {
                self.pending.insert(*id, undo.clone());
                self.next = self.next.max(id + 1);
            }
            Line::Done(id) => {
                self.pending.remove(id);
            }
        }
    }
}

/// The kernel's id of this boot; empty when hidden, and then all boots are one.
fn boot_id() -> Result<String, HostError> {
    match fs::read_to_string(BOOT_ID) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) => {
            Ok(String::new())
        }
        text => Ok(text.map_err(HostError::io("read", Path::new(BOOT_ID)))?.trim().to_owned()),
    }
}

/// What a journal's bytes amount to. A torn last line is as if it had never been begun.
fn replay(bytes: &[u8]) -> Replay {
    let mut replay = Replay::default();
    for (index, line) in bytes.split_inclusive(|&byte| byte == b'\n').enumerate() {
        let Some(text) = line.strip_suffix(b"\n") else { break };
        match serde_json::from_slice(text) {
            Ok(line) => replay.take(&line),
            Err(_) => replay.unknown.push(index + 1),
        }
        replay.whole += line.len() as u64;
    }
    replay
}

fn lock(file: &File, locked: Locked) -> io::Result<()> {
    let operation = match locked {
        Locked::Wait => FlockOperation::LockExclusive,
        Locked::Leave => FlockOperation::NonBlockingLockExclusive,
    };
    loop {
        match rustix::fs::flock(file, operation) {
            Err(Errno::INTR) => {}
            result => return Ok(result?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stop::StopBy;
    use model::plan::StopSignal;
    use proptest::prelude::*;

    fn file(n: usize) -> Undo {
        Undo::RemoveFile { path: format!("/tmp/webdyno-run-{n}").into() }
    }

    /// Writes `steps` (`Some(n)` a change, `None` the newest one undone) and reads the file cut off after each of `cuts`, modulo
    /// its length: exactly the steps whose lines are whole must have happened.
    fn check(steps: &[Option<usize>], cuts: impl Iterator<Item = usize>) {
        let dir = tempfile::tempdir().unwrap();
        let mut journal = Journal::create(dir.path(), "run").unwrap();
        let mut expected = vec![(journal.replay.whole, journal.replay.pending.clone())];
        for step in steps {
            match (step, journal.replay.pending.keys().next_back().copied()) {
                (Some(n), _) => drop(journal.record(file(*n)).unwrap()),
                (None, Some(id)) => journal.done(id).unwrap(),
                (None, None) => {}
            }
            expected.push((journal.replay.whole, journal.replay.pending.clone()));
        }
        let bytes = fs::read(&journal.path).unwrap();
        assert_eq!(replay(&bytes), journal.replay);
        for cut in cuts.map(|cut| cut % (bytes.len() + 1)) {
            let torn = replay(&bytes[..cut]);
            let whole = expected.iter().rev().find(|(length, _)| *length <= cut as u64);
            assert_eq!(torn.pending, whole.map(|(_, pending)| pending.clone()).unwrap_or_default());
            assert_eq!((torn.head.is_some(), torn.unknown.len()), (whole.is_some(), 0));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn a_crash_leaves_a_prefix(
            steps in prop::collection::vec(prop::option::weighted(0.6, 0usize..50), 0..12),
            cuts in prop::collection::vec(0usize..4000, 40),
        ) {
            check(&steps, cuts.into_iter());
        }
    }

    #[test]
    fn every_cut_of_a_short_journal() {
        check(&[Some(1), Some(2), None, Some(3)], 0..700);
    }

    #[test]
    fn whoever_takes_over_goes_on_behind_the_last_whole_line() {
        let dir = tempfile::tempdir().unwrap();
        let mut journal = Journal::create(dir.path(), "run").unwrap();
        journal.record(file(1)).unwrap();
        let path = journal.path.clone();
        journal.abandon();
        let torn = [fs::read(&path).unwrap(), b"{\"change\":{\"id\":1,".to_vec()].concat();
        fs::write(&path, torn).unwrap();
        let mut journal = Journal::take_over(&path, Locked::Leave).unwrap().unwrap();
        assert_eq!(journal.record(file(2)).unwrap(), 1);
        let again = replay(&fs::read(&path).unwrap());
        assert_eq!(again.pending, BTreeMap::from([(0, file(1)), (1, file(2))]));
        assert_eq!(again, journal.replay);
    }

    #[test]
    fn every_kind_of_undo_is_read_back() {
        let leader = Identity { pid: 12, start_time: 34 };
        let undos = [
            Undo::KillSession(Session { leader, forks: 5 }),
            Undo::AskToEnd {
                session: Session { leader, forks: 5 },
                stop: Box::new(Stop {
                    by: StopBy::Signal(StopSignal::Quit),
                    within: std::time::Duration::from_secs(9),
                }),
            },
            Undo::RemoveGroup { paths: vec!["/a".into(), "/b".into()] },
            Undo::DisableMemory { parent: "/c".into() },
            Undo::DisableController { parent: "/c".into(), controller: "cpu".into() },
            Undo::SwapOff { file: "/d".into() },
            Undo::SwapOn { file: "/dev/d".into(), priority: -2 },
            Undo::RemoveFile { path: "/e".into() },
            Undo::RemoveTree { path: "/f".into() },
        ];
        let dir = tempfile::tempdir().unwrap();
        let mut journal = Journal::create(dir.path(), "run").unwrap();
        let ids: Vec<u64> = undos.iter().map(|undo| journal.record(undo.clone()).unwrap()).collect();
        let seen = replay(&fs::read(&journal.path).unwrap());
        assert_eq!(seen.pending, ids.into_iter().zip(undos).collect());
        assert_eq!(seen.head.unwrap().owner.pid, std::process::id());
    }

    #[test]
    fn lines_of_another_version_are_counted_and_the_rest_is_used() {
        let good = serde_json::to_string(&Line::Change { id: 7, undo: file(7) }).unwrap();
        let seen = replay(format!("{{\"change\":{{\"id\":6,\"undo\":\"reboot\"}}}}\n{good}\n").as_bytes());
        assert_eq!((seen.unknown, seen.pending), (vec![1], BTreeMap::from([(7, file(7))])));
    }

    #[test]
    fn a_living_owner_keeps_others_away() {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::create(dir.path(), "run").unwrap();
        assert!(Journal::take_over(journal.path(), Locked::Leave).unwrap().is_none());
        let again = Journal::create(dir.path(), "run").unwrap_err().to_string();
        assert_eq!(again, format!("the run run is under way already, in process {}", std::process::id()));
        let path = journal.path().to_owned();
        journal.abandon();
        assert!(Journal::take_over(&path, Locked::Leave).unwrap().is_some());
        Journal::take_over(&path, Locked::Wait).unwrap().unwrap().remove().unwrap();
        assert!(Journal::take_over(&path, Locked::Wait).unwrap().is_none());
    }
}
