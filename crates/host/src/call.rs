//! Calls of other programs: tests of a configuration, control programs, commands of the plan. Each has a deadline and no terminal.

use crate::launch::reset_signals;
use rustix::fs::{MemfdFlags, OFlags, fcntl_setfl, memfd_create};
use rustix::process::{Pid, Signal, kill_process_group};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// Memory that a program writes to. A pipe would be held open by a server that it leaves in the background.
#[derive(Debug)]
pub(crate) struct Ear(File);

impl Ear {
    /// Empty memory.
    pub(crate) fn new() -> io::Result<Ear> {
        let memory = memfd_create("said", MemfdFlags::CLOEXEC)?;
        // A log at /dev/stderr is this memory opened once more, with a place of its own to write at.
        fcntl_setfl(&memory, OFlags::APPEND)?;
        Ok(Ear(memory.into()))
    }

    /// The end that is written to.
    pub(crate) fn end(&self) -> io::Result<Stdio> {
        Ok(self.0.try_clone()?.into())
    }

    /// What was written.
    fn bytes(mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        // What cannot be read is not said.
        let _ = self.0.seek(SeekFrom::Start(0)).and_then(|_| self.0.read_to_end(&mut bytes));
        bytes
    }

    /// The same as text.
    pub(crate) fn text(self) -> String {
        String::from_utf8_lossy(&self.bytes()).into_owned()
    }

    /// The same in one line.
    pub(crate) fn line(self) -> String {
        self.text().lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
    }
}

/// What a program says when it is called.
#[derive(Debug)]
pub struct Said {
    /// What it ended with; `None` when it had not ended in time.
    pub status: Option<ExitStatus>,
    /// What it wrote to its standard output until then.
    pub stdout: Vec<u8>,
    /// And to its standard error.
    pub stderr: Vec<u8>,
}

/// A call that reads and prints nothing yet, in a session of its own: Ctrl-C at the terminal is for us, and what would ask there for a
/// password, such as sudo, says so at once instead of being stopped for it.
#[must_use]
pub fn call(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // SAFETY: between fork and exec only calls are made that are safe there: setsid, signal and sigprocmask.
    unsafe {
        command.pre_exec(|| {
            // A new process leads no group, so it cannot be refused.
            libc::setsid();
            // The guardian ignores signals, and what it starts would, too.
            reset_signals();
            Ok(())
        });
    }
    command
}

/// Runs what [`call`] made for what it says. What has not ended within `patience` is ended, with all of its session that has not left its
/// group.
///
/// # Errors
/// When it cannot be run.
pub fn ask(command: &mut Command, patience: Duration) -> io::Result<Said> {
    let (stdout, stderr) = (Ear::new()?, Ear::new()?);
    let status = end_of(command.stdout(stdout.end()?).stderr(stderr.end()?), patience)?;
    Ok(Said { status, stdout: stdout.bytes(), stderr: stderr.bytes() })
}

/// Runs what [`call`] made until it ends.
///
/// # Errors
/// When it cannot be run, or has not ended within `patience`; then it is ended as by [`ask`].
pub(crate) fn run(command: &mut Command, patience: Duration) -> Result<ExitStatus, String> {
    let ended = end_of(command, patience);
    let program = command.get_program().to_string_lossy();
    let ended = ended.map_err(|error| format!("cannot run {program}: {error}"))?;
    ended.ok_or_else(|| format!("{program} has not ended within {} s", patience.as_secs()))
}

/// What it ends with; `None` when it had to be ended.
fn end_of(command: &mut Command, patience: Duration) -> io::Result<Option<ExitStatus>> {
    let mut called = Called::start(command)?;
    let deadline = Instant::now() + patience;
    loop {
        let status = called.0.try_wait()?;
        if status.is_some() || Instant::now() > deadline {
            return Ok(status);
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// What [`call`] made, under way. Dropping it ends it, with all of its session that has not left its group.
#[derive(Debug)]
pub(crate) struct Called(Child);

impl Called {
    /// Starts it.
    pub(crate) fn start(command: &mut Command) -> io::Result<Called> {
        command.spawn().map(Called)
    }

    /// Its first process, whose number is its own until this is dropped.
    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.0)
    }
}

impl Drop for Called {
    fn drop(&mut self) {
        if !matches!(self.0.try_wait(), Ok(Some(_))) {
            // It leads a group of its number; until it is waited for, nobody else has that.
            let _ = kill_process_group(self.pid(), Signal::KILL);
            let _ = self.0.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_ends_in_time_and_has_no_terminal() {
        let shell = |script: &str| {
            let mut command = call(Path::new("/bin/sh"));
            command.args(["-c", script]);
            command
        };
        let ear = Ear::new().unwrap();
        let status = run(
            shell("(: </dev/tty) 2>/dev/null || echo no terminal; exit 3").stdout(ear.end().unwrap()),
            Duration::from_secs(60),
        );
        assert_eq!((status.map(|status| status.code()), ear.line().as_str()), (Ok(Some(3)), "no terminal"));
        let ear = Ear::new().unwrap();
        let late = run(shell("echo $$; sleep 1000; true").stdout(ear.end().unwrap()), Duration::ZERO);
        assert_eq!(late.map(|status| status.code()), Err("/bin/sh has not ended within 0 s".to_owned()));
        if let Ok(pid) = ear.line().parse() {
            assert!(crate::process::Identity::of(pid).is_none(), "it goes on");
        }
        assert!(
            run(&mut call(Path::new("/none")), Duration::ZERO).is_err_and(|why| why.starts_with("cannot run /none: "))
        );
    }

    #[test]
    fn what_is_said_is_kept_in_order() {
        let script = "echo a; echo b >>/proc/self/fd/1; echo c; echo d >&2";
        let said = ask(call(Path::new("/bin/sh")).args(["-c", script]), Duration::from_secs(60)).unwrap();
        assert!(said.status.is_some_and(|status| status.success()));
        assert_eq!((said.stdout.as_slice(), said.stderr.as_slice()), (&b"a\nb\nc\n"[..], &b"d\n"[..]));
    }
}
