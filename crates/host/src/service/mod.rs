//! A server of the machine's own that reads its configuration again, or starts again as it was started.
//!
//! What Apache's control script does is done here without it, so that the guardian can do it too: test, then signal the process that the pid
//! file names; for a full restart end it and start it with the words, environment and limits that it had. A service of systemd's is
//! restarted by systemd.

mod start;

use crate::call::{Ear, call, run};
use crate::process::Identity;
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use start::Start;
pub use start::{variables, words_of_nginx};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const LOOK_AGAIN: Duration = Duration::from_millis(5);
/// How long a server may take to end: httpd itself ends what is stuck in it after ten seconds.
const END: Duration = Duration::from_secs(15);
/// How long it may take to write its pid down once it is in the background.
const START: Duration = Duration::from_secs(10);
/// How long a start that somebody else has under way is waited for, each time.
const ANOTHER: Duration = Duration::from_secs(4);
/// How long none must be seen, as one look can miss it: while it goes into the background, or becomes another program.
const UNSEEN: Duration = Duration::from_millis(150);
/// How long after a server was told to end it is told again, once: an nginx that has only just begun may see a signal only with the next
/// one, and each that it gets puts off the moment in which it kills a worker that is stuck.
const TELL_AGAIN: Duration = Duration::from_millis(500);
/// How long it may take to read its configuration, which may ask for names of hosts.
const READ: Duration = Duration::from_secs(60);
/// How long systemd may take for a restart: its own limits for an end and for a start (90 s each), and a little more.
const SYSTEMD: Duration = Duration::from_secs(200);
/// How long after a graceful restart workers may take to come.
const NEW_WORKERS: Duration = Duration::from_secs(2);

/// A running server of the machine's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Service {
    /// What it is called in sentences, such as its main configuration file.
    pub name: String,
    /// The program.
    pub program: PathBuf,
    /// Arguments before `-t` that name its configuration.
    pub args: Vec<OsString>,
    /// Environment of its configuration, for the test.
    pub env: Vec<(OsString, OsString)>,
    /// Where it writes its pid.
    pub pid_file: PathBuf,
    /// Which server it is. Journals of before know Apache only.
    #[serde(default)]
    pub style: Style,
    /// How it is started; `None` when it cannot be.
    start: Option<Start>,
    /// Why it cannot be: what follows its name in a sentence.
    #[serde(default)]
    held: Option<String>,
}

/// Which server it is: what has it begin anew, and how it is started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Style {
    /// Apache: USR1, and the words that it was started with.
    #[default]
    Apache,
    /// nginx: HUP, and the words that are in its title.
    Nginx,
}

/// How much of a server begins anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Restart {
    /// It reads its configuration; requests under way are finished by the old workers.
    Graceful,
    /// It ends and starts again.
    Full,
}

impl Style {
    /// The signal that has it read its configuration again and begin new workers, while those of before finish what they have.
    fn again(self) -> Signal {
        match self {
            Style::Apache => Signal::USR1,
            Style::Nginx => Signal::HUP,
        }
    }
}

impl Service {
    /// The server that runs with a configuration.
    ///
    /// # Errors
    /// When none does, in one sentence.
    pub fn of_running(
        style: Style,
        name: &str,
        program: &Path,
        args: Vec<OsString>,
        env: Vec<(OsString, OsString)>,
        pid_file: &Path,
    ) -> Result<Service, String> {
        let (name, program, pid_file) = (name.to_owned(), program.to_owned(), pid_file.to_owned());
        let mut service = Service { name, program, args, env, pid_file, style, start: None, held: None };
        let pid = service.pid().ok_or_else(|| {
            format!(
                "no server runs with {} (by its pid file {}); start it first",
                service.name,
                service.pid_file.display()
            )
        })?;
        match start::of(pid, style, &service.program) {
            Ok(start) => service.start = Some(start),
            Err(why) => service.held = Some(why),
        }
        Ok(service)
    }

    /// Its main process, if it lives.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.process().map(|process| process.pid)
    }

    fn process(&self) -> Option<Identity> {
        let pid: u32 = fs::read_to_string(&self.pid_file).ok()?.trim().parse().ok()?;
        let process = Identity::of(pid)?;
        // The file may be left over, and the number somebody else's by now.
        let exe = fs::read_link(format!("/proc/{pid}/exe")).ok()?;
        let exe = exe.to_string_lossy();
        let program = self.program.canonicalize().unwrap_or_else(|_| self.program.clone());
        // An updated program's old file is gone.
        (exe.strip_suffix(" (deleted)").unwrap_or(&exe) == program.to_string_lossy()).then_some(process)
    }

    /// Its processes but the main one; none where the kernel does not list them.
    #[must_use]
    pub fn workers(&self) -> Vec<u32> {
        self.pid().map(workers).unwrap_or_default()
    }

    /// Whether a full restart is possible, else why not.
    ///
    /// # Errors
    /// Who holds it.
    pub fn can_start(&self) -> Result<(), String> {
        if self.start.is_some() {
            return Ok(());
        }
        Err(format!("the server of {} {}", self.name, self.held.as_deref().unwrap_or(start::FOREGROUND)))
    }

    /// Tests the configuration.
    ///
    /// # Errors
    /// What the server says against it, in one line.
    pub fn test(&self) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("cannot run {}: {error}", self.program.display());
        let ear = Ear::new().map_err(failed)?;
        let mut command = call(&self.program);
        command.args(&self.args).arg("-t").env_clear().envs(self.env.iter().map(|(name, value)| (name, value)));
        let status = run(command.stderr(ear.end().map_err(failed)?), READ)?;
        if status.success() { Ok(()) } else { Err(ear.line()) }
    }

    /// Has it begin anew, with a configuration that was tested. A server that does not run is started.
    ///
    /// # Errors
    /// When it does not run afterwards.
    pub fn restart(&self, mut how: Restart) -> Result<(), String> {
        if self.process().is_none() && self.wait_for_another()? {
            // It may have read what was given back meanwhile, or not.
            how = Restart::Full;
        }
        match (self.process(), how) {
            (Some(process), Restart::Graceful) => self.begin_workers(process),
            (Some(_), Restart::Full) if matches!(self.start, Some(Start::Unit(_))) => self.begin(),
            (Some(process), Restart::Full) => {
                self.can_start()?;
                self.end(process)?;
                self.begin()
            }
            (None, _) => {
                self.can_start()?;
                self.begin()
            }
        }
    }

    /// Waits while somebody has a start of it under way, as the call of a run that was killed; whether one had. A second start beside it
    /// would find the address in use, or with `reuseport` be a second server.
    fn wait_for_another(&self) -> Result<bool, String> {
        let Some(start) = &self.start else { return Ok(false) };
        let began = Instant::now();
        let (mut seen, mut last) = (false, began);
        while last.elapsed() < UNSEEN {
            if began.elapsed() > ANOTHER {
                return Err(format!(
                    "somebody else is starting the server of {}: a process of the same words began less than a minute ago and has \
                     written no pid; try again when it has",
                    self.name
                ));
            }
            if start.is_under_way()? {
                (seen, last) = (true, Instant::now());
            }
            // Its pid is the last that it writes.
            if self.process().is_some() {
                return Ok(true);
            }
            std::thread::sleep(LOOK_AGAIN);
        }
        Ok(seen)
    }

    fn end(&self, process: Identity) -> Result<(), String> {
        self.tell(process, Signal::TERM, "to end")?;
        let (deadline, again) = (Instant::now() + END, Instant::now() + TELL_AGAIN);
        let mut told_again = false;
        while process.lives() {
            if Instant::now() > deadline {
                return Err(format!("process {}, the server of {}, would not end", process.pid, self.name));
            }
            if !told_again && Instant::now() > again {
                told_again = true;
                // It may have ended just now.
                let _ = self.tell(process, Signal::TERM, "to end");
            }
            std::thread::sleep(LOOK_AGAIN);
        }
        Ok(())
    }

    /// Tells it to read its configuration, and waits until it has: until it has workers that it had not. That none come is no failure; it
    /// may have none. One that ends of it, over a log that it cannot open or because it had only just begun, is started again.
    fn begin_workers(&self, process: Identity) -> Result<(), String> {
        let before = workers(process.pid);
        self.tell(process, self.style.again(), "to read its configuration")?;
        let deadline = Instant::now() + NEW_WORKERS;
        while process.lives() {
            if workers(process.pid).iter().any(|worker| !before.contains(worker)) || Instant::now() > deadline {
                return Ok(());
            }
            std::thread::sleep(LOOK_AGAIN);
        }
        let ended = format!("the server of {} ended when it was told to read its configuration", self.name);
        match self.can_start() {
            Ok(()) => self.begin().map_err(|why| format!("{ended}; {why}")),
            Err(why) => Err(format!("{ended} (its log says why); {why}")),
        }
    }

    fn tell(&self, process: Identity, signal: Signal, what: &str) -> Result<(), String> {
        process.signal(signal).map_err(|why| {
            format!("process {}, the server of {}, cannot be told {what}: {why}", process.pid, self.name)
        })
    }

    fn begin(&self) -> Result<(), String> {
        let Some(start) = &self.start else { return self.can_start() };
        let patience = match start {
            Start::Command { .. } => READ,
            Start::Unit(unit) => {
                // Whether the limit can be lifted or not, systemd says what it thinks of the restart.
                let _ = run(&mut systemctl(&start::no_limit(unit)), SYSTEMD);
                SYSTEMD
            }
        };
        let failed = |why: String| format!("the server of {} does not start: {why}", self.name);
        let ear = Ear::new().map_err(|error| failed(error.to_string()))?;
        let status = run(start.command().stderr(ear.end().map_err(|error| failed(error.to_string()))?), patience);
        let status = status.map_err(failed)?;
        if !status.success() {
            let said = ear.line();
            return Err(failed(if said.is_empty() {
                format!("its log says why ({status})")
            } else {
                format!("{said} ({status})")
            }));
        }
        let deadline = Instant::now() + START;
        while self.pid().is_none() {
            if Instant::now() > deadline {
                return Err(failed("it writes no pid file; its log says why".to_owned()));
            }
            std::thread::sleep(LOOK_AGAIN);
        }
        Ok(())
    }
}

/// Has it run again with what its configuration says now. `has_ended` says that the one that the run told has, with its boot or container.
pub(crate) fn give_back(service: &Service, how: Restart, has_ended: bool) -> Result<Option<String>, String> {
    if has_ended && service.pid().is_none() {
        // Whether it starts is the machine's affair.
        return Ok(None);
    }
    let how = if has_ended { Restart::Graceful } else { how };
    // A server that runs is better than one that would end over a mistake that somebody made meanwhile.
    service.test().map_err(|why| {
        format!("the server of {} was left as it is, since its configuration is refused now: {why}", service.name)
    })?;
    service.restart(how)?;
    Ok(Some(format!("the server of {} runs with its own configuration again", service.name)))
}

/// Its processes but the main one; none where the kernel does not list them.
fn workers(pid: u32) -> Vec<u32> {
    let listed = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    listed.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

fn systemctl(words: &[&str]) -> Command {
    let mut command = call(Path::new("systemctl"));
    command.args(words);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_else_is_taken_for_the_server() {
        let dir = tempfile::tempdir().unwrap();
        let pid_file = dir.path().join("pid");
        let of =
            |program: &str| Service::of_running(Style::Apache, "x.conf", Path::new(program), vec![], vec![], &pid_file);
        assert!(of("/bin/sh").unwrap_err().starts_with("no server runs with x.conf"));
        fs::write(&pid_file, format!("{}\n", std::process::id())).unwrap();
        assert!(of("/bin/sh").is_err(), "this test is no shell");
        let this = std::env::current_exe().unwrap();
        assert_eq!(of(this.to_str().unwrap()).unwrap().pid(), Some(std::process::id()));
    }
}
