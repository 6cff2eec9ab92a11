//! The parent's side: start a sampler, look at its readings while it runs, end it and take them all.

use crate::appointments::now;
use crate::ring::{Ring, Slept};
use crate::watch::Watch;
use model::reading::{Look, Reading, Readings};
use model::{Nanos, SECOND};
use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, WaitId, WaitIdOptions};
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A sampler process. It ends when this value is dropped, and by itself when this process dies.
#[derive(Debug)]
pub struct Sampler {
    ring: Ring,
    pid: u32,
    child: Mutex<Child>,
    taken: Mutex<Taken>,
}

/// What was taken out of the ring so far.
#[derive(Debug, Default)]
struct Taken {
    rows: Vec<Reading>,
    /// The index of the row that comes next.
    next: u64,
    /// Rows that were overwritten before they were taken.
    lost: u64,
}

/// What a follower of the readings has not seen yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct News {
    /// The looks, in order.
    pub looks: Vec<Look>,
    /// From where on to ask next.
    pub next: u64,
    /// Looks that were overwritten before they were asked for; they are not among `looks`.
    pub lost: u64,
}

/// What a wait for the next reading ended with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Awaited {
    /// There is one.
    Look,
    /// There is none yet: the time is over, or a signal came.
    Nothing,
    /// There will be none: the sampler has ended.
    Ended,
}

/// Why there is no sampler.
#[derive(Debug, thiserror::Error)]
pub enum MonitorError {
    /// The watch asks for what cannot be.
    #[error(
        "a watch needs a period of at least 1 ms and room for at least 2 readings, not {period_ns} ns and {capacity}"
    )]
    Watch {
        /// What was asked for.
        period_ns: Nanos,
        /// What was asked for.
        capacity: usize,
    },
    /// The rate of a storm has no grid in common with that of the watch.
    #[error("the period in a storm must be a whole part of {period_ns} ns and at least 1 ms, not {storm_period_ns} ns")]
    StormPeriod {
        /// The period of the watch.
        period_ns: Nanos,
        /// What was asked for.
        storm_period_ns: Nanos,
    },
    /// Paths that are no text.
    #[error("a watch must be plain text to be handed to the sampler: {0}")]
    Orders(#[from] serde_json::Error),
    /// No shared memory.
    #[error("no shared memory for {capacity} readings: {source}; ask for fewer")]
    Memory {
        /// Room asked for.
        capacity: usize,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// The program could not be started.
    #[error("{} could not be started as the sampler: {source}", exe.display())]
    Start {
        /// The program.
        exe: PathBuf,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// It started and gave up.
    #[error("the sampler gave up: {0}")]
    GaveUp(String),
    /// It started and did nothing.
    #[error("the sampler gave no reading within {} s; is the host short of memory?", READY.as_secs())]
    Silent,
    /// It could not be waited for.
    #[error("the sampler could not be ended: {0}")]
    End(std::io::Error),
}

/// The shortest period.
const SHORTEST: Nanos = SECOND / 1000;
/// How long the first reading may take.
const READY: Duration = Duration::from_secs(10);
/// How long a sampler may take to end before it is killed.
const ENDING: Duration = Duration::from_secs(3);
/// How long a wait for a reading goes on before it looks whether the sampler still lives: nobody rings the bell for a death. More
/// than the second between two readings, so that whoever waits for the next one is not woken just before it.
const LIFE: Nanos = SECOND * 5 / 4;

impl Sampler {
    /// Starts `exe @sampler` and waits until its first reading exists.
    pub fn start(exe: &Path, watch: &Watch) -> Result<Sampler, MonitorError> {
        let Watch { period_ns, capacity, .. } = *watch;
        if period_ns < SHORTEST || capacity < 2 {
            return Err(MonitorError::Watch { period_ns, capacity });
        }
        if let Some(storm_period_ns) = watch.storm_period_ns
            && (storm_period_ns < SHORTEST || !period_ns.is_multiple_of(storm_period_ns))
        {
            return Err(MonitorError::StormPeriod { period_ns, storm_period_ns });
        }
        let orders = serde_json::to_string(watch)?;
        let memory = |source: rustix::io::Errno| MonitorError::Memory { capacity, source: source.into() };
        let (ring, file) = Ring::create(watch.shape()).map_err(memory)?;
        let mut child = Command::new(exe)
            .arg("@sampler")
            .arg(orders)
            .stdin(Stdio::piped())
            .stdout(file)
            .stderr(Stdio::piped())
            // Ctrl-C in the terminal is for the parent, which still wants the readings.
            .process_group(0)
            .spawn()
            .map_err(|source| MonitorError::Start { exe: exe.to_owned(), source })?;
        let stderr = child.stderr.take();
        // From here on it is ended when this function gives up.
        let sampler = Sampler { ring, pid: child.id(), child: Mutex::new(child), taken: Mutex::default() };
        let complaint = stderr.map(complaint).transpose()?.unwrap_or_default();
        if sampler.ring.published() > 0 {
            return Ok(sampler);
        }
        let status = sampler.end().map_err(MonitorError::End)?;
        let said = complaint.trim();
        Err(MonitorError::GaveUp(if said.is_empty() { how_it_ended(status) } else { said.to_owned() }))
    }

    /// From its next reading on it looks at the process tree below that root instead of the one before; at none if `None`. For a
    /// watch whose [`root_may_change`](Watch::root_may_change).
    pub fn follow(&self, root: Option<u32>) {
        self.ring.order_root(root);
    }

    /// The number of the sampler process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// What the sampler was refused and what it could not open, one sentence each.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        self.ring.notes()
    }

    /// The newest reading.
    #[must_use]
    pub fn latest(&self) -> Option<Reading> {
        self.newest(Ring::reading)
    }

    /// The newest look.
    #[must_use]
    pub fn latest_look(&self) -> Option<Look> {
        self.newest(Ring::look)
    }

    fn newest<T>(&self, copy: impl Fn(&Ring, u64) -> Option<T>) -> Option<T> {
        // A row is gone only when the ring was written round while it was copied; then there is a newer one.
        (0..3).find_map(|_| copy(&self.ring, self.ring.published().checked_sub(1)?))
    }

    /// The readings taken after that instant, in order; for a look at a trial that is still running.
    #[must_use]
    pub fn rows_after(&self, at_ns: Nanos) -> Vec<Reading> {
        let ring = &self.ring;
        let published = ring.published();
        let newest_first = (ring.earliest(published)..published).rev().map_while(|index| ring.reading(index));
        let mut rows: Vec<_> = newest_first.take_while(|row| row.at_ns > at_ns).collect();
        rows.reverse();
        rows
    }

    /// The looks from the one with that number on; the first ever taken has number 0. Followers each keep their own `next`.
    #[must_use]
    pub fn looks_from(&self, next: u64) -> News {
        let published = self.ring.published();
        let looks: Vec<_> =
            (self.ring.earliest(published).max(next)..published).filter_map(|index| self.ring.look(index)).collect();
        let lost = published.saturating_sub(next) - looks.len() as u64;
        News { looks, next: published.max(next), lost }
    }

    /// Sleeps until there is a look of that number, at most so long. It costs the sampler nothing but a call to the kernel; the
    /// end of a sampler is noticed within 1.25 s, or at the end of the wait.
    #[must_use]
    pub fn wait(&self, next: u64, timeout: Duration) -> Awaited {
        let deadline = now().saturating_add(u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX));
        loop {
            if self.ring.published() > next {
                return Awaited::Look;
            }
            let left = deadline.saturating_sub(now());
            let slept = self.ring.wait(next, left.min(LIFE));
            if self.ring.published() > next {
                return Awaited::Look;
            }
            // Asked after the wait, and the ring once more after that: what it published before its end is not to be overlooked.
            if self.has_ended() && self.ring.published() <= next {
                return Awaited::Ended;
            }
            if left == 0 || slept == Slept::Interrupted {
                return Awaited::Nothing;
            }
        }
    }

    /// Whether the process is gone; it is left to be reaped by `end`.
    fn has_ended(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        // One that cannot be waited for has been reaped.
        pid.is_none_or(|pid| !matches!(rustix::process::waitid(WaitId::Pid(pid), options), Ok(None)))
    }

    /// Takes what is new out of the ring, so that the ring need not hold a whole watch; call it well within the ring's length.
    pub fn collect(&self) {
        let mut guard = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let Taken { rows, next, lost } = &mut *guard;
        let published = self.ring.published();
        let kept = rows.len();
        rows.extend((self.ring.earliest(published).max(*next)..published).filter_map(|index| self.ring.reading(index)));
        *lost += (published - *next) - (rows.len() - kept) as u64;
        *next = published;
    }

    /// Has one last reading taken, ends the sampler and returns every reading that was collected or that the ring still holds.
    ///
    /// A sampler that was killed is no error: what it read before is returned, with a note.
    pub fn finish(self) -> Result<Readings, MonitorError> {
        let mut notes = self.stop()?;
        self.collect();
        let Taken { rows, lost, .. } = std::mem::take(&mut *self.taken.lock().unwrap_or_else(PoisonError::into_inner));
        if lost > 0 {
            notes.push(format!("{lost} readings were overwritten before they were collected"));
        }
        Ok(Readings { rows, notes })
    }

    /// Has one last reading taken and ends the sampler; what the ring holds can still be looked at. Returns its notes, with one
    /// more when it did not end as it should have.
    pub fn stop(&self) -> Result<Vec<String>, MonitorError> {
        let early = self.child().try_wait().map_err(MonitorError::End)?;
        let status = self.end().map_err(MonitorError::End)?;
        let mut notes = self.ring.notes();
        if early.is_some() {
            notes.push(format!("the sampler {} before it was told to: readings stop there", how_it_ended(status)));
        } else if !status.success() {
            notes.push(format!("the sampler {} when told to end: its last reading is missing", how_it_ended(status)));
        }
        Ok(notes)
    }

    fn child(&self) -> MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes the life line and waits; kills a sampler that does not hear.
    fn end(&self) -> std::io::Result<ExitStatus> {
        let mut child = self.child();
        drop(child.stdin.take());
        let deadline = Instant::now() + ENDING;
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(status);
            }
            if Instant::now() >= deadline {
                child.kill()?;
                return child.wait();
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        // Nothing can be done about a failure here, and the sampler sees the end of its life line in any case.
        let _ = self.end();
    }
}

/// What the sampler says until it closes its standard error: nothing when it is ready.
fn complaint(mut stderr: ChildStderr) -> Result<String, MonitorError> {
    let deadline = Instant::now() + READY;
    let mut text = Vec::new();
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = rustix::event::Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        match rustix::event::poll(&mut [PollFd::new(&stderr, PollFlags::IN)], Some(&timeout)) {
            Ok(0) => return Err(MonitorError::Silent),
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(MonitorError::End(error.into())),
        }
        let mut piece = [0; 512];
        match stderr.read(&mut piece).map_err(MonitorError::End)? {
            0 => return Ok(String::from_utf8_lossy(&text).into_owned()),
            count => text.extend_from_slice(&piece[..count]),
        }
    }
}

fn how_it_ended(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal), _) => format!("was ended by signal {signal}"),
        (None, Some(code)) => format!("ended with exit code {code}"),
        (None, None) => "ended".to_owned(),
    }
}
