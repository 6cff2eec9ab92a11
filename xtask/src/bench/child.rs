//! A child process pinned to a CPU: what it cost, and its end, which never comes later than ours.

use crate::signals::HeldSignals;
use anyhow::{Context, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, set_parent_process_death_signal};
use rustix::thread::{CpuSet, sched_setaffinity};
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

/// How often somebody who watches a child looks at it.
const LOOK: Duration = Duration::from_millis(20);

/// How often a wait asks whether Ctrl-C has come.
const ASK: Duration = Duration::from_millis(250);

/// A running child, leader of its own process group. Dropping it kills the group.
pub(super) struct Child {
    pid: Pid,
    end: OwnedFd,
    started: Instant,
    runs: bool,
}

/// What an ended child took, with the children it waited for itself.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cost {
    pub(super) status: ExitStatus,
    pub(super) user: Duration,
    pub(super) system: Duration,
    pub(super) wall: Duration,
    /// The kernel's `ru_maxrss` in KiB: never below what this program had resident when it forked.
    pub(super) largest_kib: u64,
}

impl Child {
    /// Starts `command`, on one CPU when that is given.
    pub(super) fn start(command: &mut Command, cpu: Option<usize>) -> anyhow::Result<Child> {
        let prepare = move || {
            if let Some(cpu) = cpu {
                let mut set = CpuSet::new();
                set.set(cpu);
                sched_setaffinity(None, &set)?;
            }
            // Not KILL: nginx must have time to end its worker.
            set_parent_process_death_signal(Some(Signal::TERM))?;
            Ok(())
        };
        // SAFETY: bare system calls on values of the stack; nothing is allocated, locked or freed between fork and exec.
        unsafe { command.process_group(0).pre_exec(prepare) };
        let started = Instant::now();
        let child = command.spawn().with_context(|| format!("cannot start {}", command.get_program().display()))?;
        let pid = Pid::from_child(&child);
        let end = pidfd_open(pid, PidfdFlags::empty()).context("cannot watch a child (Linux 5.3 is needed)")?;
        Ok(Child { pid, end, started, runs: true })
    }

    pub(super) fn pid(&self) -> Pid {
        self.pid
    }

    /// Waits for the end; `look` sees the process every few milliseconds while it runs.
    ///
    /// # Errors
    /// When it takes longer than `limit`, or Ctrl-C comes. It is killed then.
    pub(super) fn wait(
        mut self,
        limit: Duration,
        signals: &HeldSignals,
        mut look: Option<&mut dyn FnMut(Pid)>,
    ) -> anyhow::Result<Cost> {
        let pause = if look.is_some() { LOOK } else { ASK };
        while !self.ended_within(pause)? {
            if signals.came() {
                bail!("interrupted");
            }
            if self.started.elapsed() > limit {
                bail!("did not end within {} s", limit.as_secs());
            }
            if let Some(look) = &mut look {
                look(self.pid);
            }
        }
        self.reap()
    }

    /// Whether it has ended by now.
    pub(super) fn ended(&self) -> anyhow::Result<bool> {
        self.ended_within(Duration::ZERO)
    }

    fn ended_within(&self, pause: Duration) -> anyhow::Result<bool> {
        let pause = Timespec { tv_sec: pause.as_secs() as i64, tv_nsec: i64::from(pause.subsec_nanos()) };
        match poll(&mut [PollFd::new(&self.end, PollFlags::IN)], Some(&pause)) {
            Ok(ready) => Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error).context("cannot wait for a child"),
        }
    }

    fn reap(&mut self) -> anyhow::Result<Cost> {
        let mut status = 0;
        // SAFETY: numbers only, for which zero is a value.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: both pointers are to locals of the right type, and nobody else waits for this child.
        while unsafe { libc::wait4(self.pid.as_raw_nonzero().get(), &raw mut status, 0, &raw mut usage) } < 0 {
            let error = std::io::Error::last_os_error();
            if error.kind() != std::io::ErrorKind::Interrupted {
                return Err(error).context("cannot wait for a child");
            }
        }
        let wall = self.started.elapsed();
        self.runs = false;
        let time = |it: libc::timeval| Duration::new(it.tv_sec as u64, it.tv_usec as u32 * 1000);
        Ok(Cost {
            status: ExitStatus::from_raw(status),
            user: time(usage.ru_utime),
            system: time(usage.ru_stime),
            wall,
            largest_kib: usage.ru_maxrss as u64,
        })
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.runs {
            // Fails only when the group is gone already.
            let _ = kill_process_group(self.pid, Signal::KILL);
            let _ = self.reap();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a shell that runs `script` ends by itself within a second, and with which code.
    fn check(script: &str, expected: Result<Option<i32>, &str>) {
        let signals = HeldSignals::begin().unwrap();
        let child = Child::start(Command::new("sh").args(["-c", script]), None);
        let ended = child.unwrap().wait(Duration::from_secs(1), &signals, None);
        assert_eq!(
            ended.map(|cost| cost.status.code()).map_err(|error| error.to_string()).as_ref().map_err(|e| &**e),
            expected.as_ref().map_err(|e| *e)
        );
    }

    #[test]
    fn a_child_ends_or_is_ended() {
        check("exit 3", Ok(Some(3)));
        check("sleep 60 & sleep 60", Err("did not end within 1 s"));
    }
}
