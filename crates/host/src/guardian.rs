//! The process that gives everything back when the run is killed.
//!
//! It holds the read end of a pipe whose only write end is the run's: a byte means that the run has cleaned up itself, the end of the
//! pipe that it is dead. It lives in a session of its own and ignores what ends its parent, so that only SIGKILL
//! on both leaves work for `webdyno restore`. It starts before anything is changed and changes nothing but what the journal names.

use crate::HostError;
use crate::journal::{Journal, Locked};
use crate::pipe;
use crate::undo::{Outcome, undo_all};
use rustix::process::setsid;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::RawFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a guardian may take to come up on a busy machine.
const START: Duration = Duration::from_secs(10);
/// How long it may take to go.
const STOP: Duration = Duration::from_secs(5);
/// For each server that takes its time to die: the promise is 5 s for everything.
const PATIENCE: Duration = Duration::from_secs(4);
/// What fails is tried so often before it is left to `webdyno restore`.
const ATTEMPTS: u32 = 16;
/// From the beginning of the first attempt to that of the second; each time the double, up to [`PATIENCE`]. Two that fail at once leave time
/// for a third within what is promised, and systemd, which starts a service five times in ten seconds, is not asked more often.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const READY: &[u8] = b"ready\n";

/// A running guardian, seen from the run.
#[derive(Debug)]
pub(crate) struct Guardian {
    process: Child,
}

impl Guardian {
    /// Starts one for a journal and waits until it watches.
    pub(crate) fn start(exe: &Path, journal: &Path) -> Result<Guardian, HostError> {
        // std opens its pipes close-on-exec, so no other child can hold the write end open.
        let mut process = Command::new(exe)
            .arg("@guardian")
            .arg(journal)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(HostError::io("run", exe))?;
        let mut stdout = process.stdout.take().expect("piped above");
        let mut guardian = Guardian { process };
        let said = pipe::receive(&mut stdout, Instant::now() + START, |said| said == READY);
        match said {
            Ok(said) if said == READY => Ok(guardian),
            Ok(said) => {
                guardian.end();
                let why = if said.is_empty() { "it ended at once".into() } else { String::from_utf8_lossy(&said) };
                Err(HostError::Guardian(why.trim().to_owned()))
            }
            Err(error) => {
                guardian.end();
                Err(HostError::Guardian(error.to_string()))
            }
        }
    }

    /// Whether it still watches.
    pub(crate) fn is_alive(&mut self) -> bool {
        matches!(self.process.try_wait(), Ok(None))
    }

    /// Tells it that nothing is left to do, and waits until it has gone.
    pub(crate) fn dismiss(mut self) {
        if let Some(mut stdin) = self.process.stdin.take() {
            // It may have been killed; then it has gone already.
            let _ = stdin.write_all(b"q");
        }
        let deadline = Instant::now() + STOP;
        while self.is_alive() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(2));
        }
        self.end();
    }

    /// Leaves the journal to it, as if the run had died.
    pub(crate) fn take_over(mut self) {
        drop(self.process.stdin.take());
    }

    fn end(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The guardian itself: `@guardian JOURNAL`, started by a run and by nobody else. Returns the process's exit code.
#[must_use]
pub fn guardian_main(args: &[OsString]) -> u8 {
    let [journal] = args else { return 2 };
    close_inherited_files();
    match watch(Path::new(journal)) {
        Ok(()) => 0,
        Err(error) => {
            // Standard output is the pipe the run reads until it is told "ready".
            let _ = writeln!(io::stdout(), "{error}");
            1
        }
    }
}

fn watch(journal: &Path) -> Result<(), HostError> {
    setsid().map_err(io::Error::from).map_err(HostError::io("make a session for", journal))?;
    ignore_signals();
    // Needs a privilege; without it the guardian is as likely to be chosen as any other small process.
    let _ = fs::write("/proc/self/oom_score_adj", "-1000");
    let mut stdout = io::stdout();
    stdout.write_all(READY).and_then(|()| stdout.flush()).map_err(HostError::io("announce", journal))?;
    let mut byte = [0];
    let orphaned = loop {
        match io::stdin().read(&mut byte) {
            Ok(n) => break n == 0,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break true,
        }
    };
    if orphaned { put_back(journal) } else { Ok(()) }
}

fn put_back(path: &Path) -> Result<(), HostError> {
    let (mut attempts, mut pause) = (0, FIRST_PAUSE);
    loop {
        let began = Instant::now();
        let done = attempt(path);
        attempts += 1;
        if done.is_ok() || attempts == ATTEMPTS {
            return done;
        }
        std::thread::sleep(pause.saturating_sub(began.elapsed()));
        pause = PATIENCE.min(pause * 2);
    }
}

/// From the journal on: what keeps it from being opened or deleted may pass as well. In between `webdyno restore` may have it.
fn attempt(path: &Path) -> Result<(), HostError> {
    let Some(mut journal) = Journal::take_over(path, Locked::Wait)? else { return Ok(()) };
    let Outcome { put_back, failed } = undo_all(&mut journal, PATIENCE);
    if failed.is_empty() { journal.remove() } else { Err(HostError::NotPutBack { put_back, failed }) }
}

/// Keyboard signals and a hang-up are meant for the run; a polite SIGTERM to everything would defeat the guardian's only purpose.
fn ignore_signals() {
    for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP, libc::SIGPIPE, libc::SIGTSTP] {
        // SAFETY: SIG_IGN is a valid disposition for these signals and runs no code of ours.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// Whatever the run was started with (a shell's pipes, a lock) must not be held open by a process that outlives it.
fn close_inherited_files() {
    let Ok(entries) = fs::read_dir("/proc/self/fd") else { return };
    let open: Vec<RawFd> = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for fd in open.into_iter().filter(|&fd| fd > 2) {
        // SAFETY: called first thing in this process, so no object of this program owns a file beyond the standard three.
        // The directory just listed is closed already, which close(2) answers with EBADF.
        unsafe { libc::close(fd) };
    }
}
