//! Starts a server so that it can be ended for certain: in its own session, inside its group from its first instruction.
//!
//! The run starts `@launch`, notes its process id in the journal, and only then sends the orders; without orders the launcher
//! ends. So there is no moment at which a server runs that the journal does not know. The launcher becomes the server by exec:
//! its process id is the server's root.

use crate::handle::Host;
use crate::journal::Undo;
use crate::pipe;
use crate::process::{Members, Session, ended_with, name_of};
use crate::stop::{Root, Stop};
use crate::undo::PATIENCE;
use crate::{Group, HostError};
use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, setsid, umask, waitid};
use rustix::thread::{CpuSet, sched_setaffinity};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, Write};
use std::os::fd::{BorrowedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long a launcher may take from its orders to exec: entering a group that is short of memory can take a while.
const START: Duration = Duration::from_secs(10);
/// What the launcher says just before exec; anything behind it is why exec failed.
const EXEC: &[u8] = b"exec\n";
/// For a server whose launch names no PATH of its own.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What to start and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    /// The program.
    pub program: PathBuf,
    /// Its arguments, without its own name.
    pub args: Vec<OsString>,
    /// Its whole environment, apart from a plain `PATH` when it names none.
    pub env: Vec<(OsString, OsString)>,
    /// Its working directory.
    pub dir: PathBuf,
    /// The CPUs it may use; empty means all that the run may use.
    pub cpus: Vec<u32>,
    /// File that its standard output is appended to.
    pub stdout: PathBuf,
    /// File that its standard error is appended to; may be the same.
    pub stderr: PathBuf,
}

/// A started server. Dropping it ends it at once; [`Child::terminate`] lets it finish first.
#[derive(Debug)]
pub struct Child {
    /// Process id of the server's root, which is its session's leader too. It stays the server's until this value is gone.
    pub pid: u32,
    process: std::process::Child,
    session: Session,
    groups: Vec<PathBuf>,
    entry: u64,
    /// How it is asked to end, with the entry for that, where there is one.
    stop: Option<(Stop, u64)>,
    host: Host,
}

/// What the launcher reads; a line that is cut short is no order.
#[derive(Serialize, Deserialize)]
struct Orders {
    launch: Launch,
    groups: Vec<PathBuf>,
}

impl Child {
    /// Whether the root process lives.
    pub fn is_alive(&mut self) -> bool {
        // Looked at and not collected: as long as the dead root is not collected, its number is not given away.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        self.raw_pid().is_some_and(|pid| matches!(waitid(WaitId::Pid(pid), options), Ok(None)))
    }

    /// What the root process ended with: its own exit code, or 128 and the signal that killed it, as a shell counts.
    /// `None` while it lives.
    pub fn exit_code(&mut self) -> Option<i32> {
        ended_with(self.raw_pid()?)
    }

    /// Asks the root to end in the way that it was started with, by a command also when it has ended, and then ends whatever is left of its
    /// session and group; says in half a sentence what had to be ended by force. Without such a way as [`Child::terminate`] does with `grace`.
    ///
    /// # Errors
    /// When something would not end.
    pub fn stop(mut self, grace: Duration) -> Result<Option<String>, HostError> {
        let Some((stop, _)) = self.stop.clone() else { return self.terminate(grace).map(|()| None) };
        let reaches = stop.by.reaches(|| self.is_alive());
        let forced = if reaches { stop.ask(&mut self, stop.within).err() } else { None };
        self.end().map(|()| forced)
    }

    /// Asks the root to end (SIGTERM), waits for it for at most `grace`, then ends whatever is left of its session and group.
    ///
    /// # Errors
    /// When something would not end.
    pub fn terminate(mut self, grace: Duration) -> Result<(), HostError> {
        if let Some(pid) = self.raw_pid().filter(|_| self.is_alive()) {
            // It can only fail by having ended meanwhile, which is what is wanted.
            let _ = kill_process(pid, Signal::TERM);
        }
        let deadline = Instant::now() + grace;
        while self.is_alive() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(2));
        }
        self.end()
    }

    /// Sends the root a signal, and nobody else.
    pub fn tell(&self, signal: Signal) {
        if let Some(pid) = self.raw_pid() {
            // It can only fail by having ended meanwhile, which whoever asks next will see.
            let _ = kill_process(pid, signal);
        }
    }

    /// The processes that live of its session.
    ///
    /// # Errors
    /// When the machine does not say.
    pub fn processes(&self) -> Result<Vec<u32>, HostError> {
        Members::Session(self.session)
            .list()
            .map_err(|why| HostError::NotPutBack { put_back: vec![], failed: vec![why] })
    }

    /// Waits for at most `patience`, and not once `interrupted` is set, until the root and everything of its session have ended by
    /// themselves, and ends what is left by force; gives the names of those.
    ///
    /// # Errors
    /// When something would not end.
    pub fn wait_for_end(mut self, patience: Duration, interrupted: &AtomicBool) -> Result<Vec<String>, HostError> {
        let deadline = Instant::now() + patience;
        let left = loop {
            let left = self.processes()?;
            let is_over = || interrupted.load(Ordering::Relaxed) || Instant::now() >= deadline;
            if left.is_empty() && !self.is_alive() || is_over() {
                break left.into_iter().map(name_of).collect();
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        self.end()?;
        Ok(left)
    }

    /// Ends all of it at once, by force.
    ///
    /// # Errors
    /// When something would not end.
    pub fn kill(mut self) -> Result<(), HostError> {
        self.end()
    }

    fn end(&mut self) -> Result<(), HostError> {
        self.host.put_back(self.entry)?;
        if let Some((_, entry)) = self.stop.take() {
            // Nobody is left to be asked.
            self.host.forget(entry)?;
        }
        for dir in &self.groups {
            Members::Group(dir)
                .end(PATIENCE)
                .map_err(|why| HostError::NotPutBack { put_back: vec![], failed: vec![why] })?;
        }
        // The root is dead by now. Should it not be (the host was closed and could not end it), then nobody is to wait for ever.
        let _ = self.process.try_wait();
        Ok(())
    }

    fn raw_pid(&self) -> Option<Pid> {
        i32::try_from(self.pid).ok().and_then(Pid::from_raw)
    }
}

impl Root for Child {
    fn signal(&mut self, signal: Signal) {
        self.tell(signal);
    }

    fn is_gone(&mut self) -> bool {
        if self.is_alive() {
            return false;
        }
        // Others of its session are known by the number that it is about to lose.
        let session = self.session.renewed();
        if session != self.session {
            self.session = session;
            if self.host.amend(self.entry, Undo::KillSession(session)).is_err() {
                // On a full disk it keeps the number. Only a command that waits until it is not found any more waits in vain.
                return true;
            }
        }
        // The number may be given away from now on, unless others of its session live: nobody is sent anything by it any more.
        matches!(self.process.try_wait(), Ok(Some(_)))
    }

    fn run(&mut self, launch: &Launch) -> Result<Box<dyn FnMut() -> Option<i32>>, String> {
        // In the journal, as everything is that runs: nothing is left of it when the run is killed.
        let mut asking = self.host.spawn(launch, None).map_err(|error| error.to_string())?;
        Ok(Box::new(move || asking.exit_code()))
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // What fails stays in the journal, and is reported when the host is closed.
        let _ = self.end();
    }
}

/// Starts a server, inside `group` if there is one.
pub(crate) fn spawn(
    host: &Host,
    launch: &Launch,
    group: Option<&Group>,
    stop: Option<&Stop>,
) -> Result<Child, HostError> {
    let failed = |why: String| HostError::Launch { program: launch.program.clone(), why };
    let groups = group.map(|group| group.paths().all()).unwrap_or_default();
    let orders = Orders { launch: launch.clone(), groups: groups.clone() };
    let mut orders = serde_json::to_vec(&orders).map_err(|error| failed(error.to_string()))?;
    orders.push(b'\n');

    let mut process = Command::new(host.exe())
        .arg("@launch")
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(HostError::io("run", host.exe()))?;
    let pid = process.id();
    let mut go = process.stdin.take().expect("piped above");
    let mut status = process.stdout.take().expect("piped above");
    let recorded = match Session::of(pid) {
        Some(session) => host.record(Undo::KillSession(session)).and_then(|entry| {
            // The newest is undone first: it is asked to end before it is ended.
            let ask = |stop: &Stop| host.record(Undo::AskToEnd { session, stop: Box::new(stop.clone()) });
            Ok((session, entry, stop.map(|stop| Ok((stop.clone(), ask(stop)?))).transpose()?))
        }),
        None => Err(failed(format!("/proc does not show process {pid}"))),
    };
    let (session, entry, stop) = match recorded {
        Ok(recorded) => recorded,
        Err(error) => {
            drop(go);
            let _ = process.wait();
            return Err(error);
        }
    };
    // From here on an early return ends the launcher.
    let child = Child { pid, process, session, groups, entry, stop, host: host.clone() };
    let said = go.write_all(&orders).and_then(|()| {
        drop(go);
        pipe::receive(&mut status, Instant::now() + START, |_| false)
    });
    match said.map_err(|error| failed(format!("its launcher did not answer: {error}")))?.as_slice() {
        EXEC => Ok(child),
        [] => Err(failed("its launcher was killed".to_owned())),
        said => Err(failed(String::from_utf8_lossy(said.strip_prefix(EXEC).unwrap_or(said)).trim().to_owned())),
    }
}

/// The launcher itself: `@launch`, started by a run and by nobody else. Returns only when it has not become the server.
#[must_use]
pub fn launcher_main(_args: &[OsString]) -> u8 {
    let Ok(mut status) = fcntl_dupfd_cloexec(io::stdout(), 3).map(File::from) else { return 1 };
    let mut line = Vec::new();
    // The session comes before the orders, so that whoever reads the journal finds the session from then on.
    let read = setsid().map_err(io::Error::from).and_then(|_| io::stdin().lock().read_until(b'\n', &mut line));
    let why = match read {
        Err(error) => format!("no session of its own: {error}"),
        // The run died before it gave orders.
        Ok(_) if !line.ends_with(b"\n") => return 0,
        Ok(_) => match serde_json::from_slice(&line) {
            Ok(orders) => become_server(&orders, &mut status),
            Err(error) => error.to_string(),
        },
    };
    let _ = status.write_all(why.as_bytes());
    1
}

/// Returns only when that is refused, with the reason.
fn become_server(orders: &Orders, status: &mut File) -> String {
    let launch = &orders.launch;
    match prepare(orders) {
        Err(why) => why,
        Ok((stdout, stderr)) => {
            if let Err(error) = status.write_all(EXEC) {
                return error.to_string();
            }
            let mut command = Command::new(&launch.program);
            dress(&mut command, launch);
            let error = command.stdin(Stdio::null()).stdout(stdout).stderr(stderr).exec();
            // exec does not tell a missing working directory from a missing program.
            match launch.dir.is_dir() {
                true => error.to_string(),
                false => format!("its working directory {} does not exist", launch.dir.display()),
            }
        }
    }
}

/// Gives a command what a launch says of it, but for CPUs and files to write to.
pub(crate) fn dress(command: &mut Command, launch: &Launch) {
    command
        .args(&launch.args)
        .env_clear()
        .env("PATH", PATH)
        .envs(launch.env.iter().map(|(name, value)| (name, value)))
        .current_dir(&launch.dir);
}

fn prepare(orders: &Orders) -> Result<(File, File), String> {
    let launch = &orders.launch;
    for dir in &orders.groups {
        enter(dir).map_err(|error| format!("cannot enter the group {}: {error}", dir.display()))?;
    }
    pin(&launch.cpus)?;
    umask(rustix::fs::Mode::WGRP | rustix::fs::Mode::WOTH);
    let append = |path: &Path| {
        let opened = OpenOptions::new().append(true).create(true).open(path);
        opened.map_err(|error| format!("cannot write to {}: {error}", path.display()))
    };
    let files = (append(&launch.stdout)?, append(&launch.stderr)?);
    reset_signals();
    close_files_on_exec();
    Ok(files)
}

fn enter(dir: &Path) -> io::Result<()> {
    let mut procs = OpenOptions::new().write(true).open(dir.join("cgroup.procs"))?;
    procs.write_all(std::process::id().to_string().as_bytes())
}

fn pin(cpus: &[u32]) -> Result<(), String> {
    if cpus.is_empty() {
        return Ok(());
    }
    let mut set = CpuSet::new();
    for &cpu in cpus {
        if cpu as usize >= CpuSet::MAX_CPU {
            return Err(format!("there is no CPU {cpu}"));
        }
        set.set(cpu as usize);
    }
    sched_setaffinity(None, &set).map_err(|error| format!("cannot be pinned to the CPUs {cpus:?}: {error}"))
}

/// Ignored and blocked signals are inherited by exec: a server started below `nohup` could otherwise not be hung up.
pub(crate) fn reset_signals() {
    for signal in 1..=libc::SIGRTMAX() {
        // SAFETY: SIG_DFL runs no code of ours; the kernel refuses it for the signals that cannot be changed.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    // SAFETY: an all-zero signal set is a valid value, made empty before it is read, and the old mask is not asked for.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
}

/// Whatever the run was started with must not be held open by the server.
fn close_files_on_exec() {
    let Ok(entries) = fs::read_dir("/proc/self/fd") else { return };
    let open: Vec<RawFd> = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for fd in open.into_iter().filter(|&fd| fd > 2) {
        // SAFETY: the borrow lasts for this call only; a number closed meanwhile (the listed directory's) is answered with EBADF.
        let fd = unsafe { BorrowedFd::borrow_raw(fd) };
        let _ = fcntl_setfd(fd, FdFlags::CLOEXEC);
    }
}
