//! When the next reading is due, on the monotonic clock, and whether there is to be one.
//!
//! Appointments lie on a fixed grid: lateness never shifts them. After a time in which the process could not run there is one
//! reading, as soon as it can, for the earliest appointment missed; the others of that time are let go, because counters are
//! cumulative and a second reading at the same instant says nothing.

use model::{Nanos, SECOND};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime, timerfd_create,
    timerfd_settime,
};
use std::os::fd::{BorrowedFd, OwnedFd};

/// The grid, and where in it we are.
pub(crate) struct Appointments {
    timer: OwnedFd,
    next: Nanos,
    period: Nanos,
}

/// The monotonic clock.
pub(crate) fn now() -> Nanos {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * SECOND + time.tv_nsec as u64
}

impl Appointments {
    /// One every `period` after `start`.
    pub(crate) fn every(period: Nanos, start: Nanos) -> Result<Self, Errno> {
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?;
        let next = start + period;
        let grid = Itimerspec { it_interval: timespec(period), it_value: timespec(next) };
        timerfd_settime(&timer, TimerfdTimerFlags::ABSTIME, &grid)?;
        Ok(Appointments { timer, next, period })
    }

    /// Waits for the next appointment and returns when it was due; `None` once the other end of `life` is closed.
    pub(crate) fn wait(&mut self, life: BorrowedFd<'_>) -> Result<Option<Nanos>, Errno> {
        loop {
            // No event is asked for on `life`: a closed other end is always told, and nothing else can happen to it.
            let mut fds = [PollFd::new(&self.timer, PollFlags::IN), PollFd::from_borrowed_fd(life, PollFlags::empty())];
            match rustix::event::poll(&mut fds, None) {
                Err(Errno::INTR) => continue,
                result => result?,
            };
            if !fds[1].revents().is_empty() {
                return Ok(None);
            }
            let mut expirations = [0; 8];
            match rustix::io::read(&self.timer, &mut expirations) {
                Err(Errno::INTR) => continue,
                result => result?,
            };
            let due = self.next;
            self.next += u64::from_ne_bytes(expirations) * self.period;
            return Ok(Some(due));
        }
    }
}

/// Nanoseconds as the kernel wants them.
pub(crate) fn timespec(time: Nanos) -> Timespec {
    Timespec { tv_sec: (time / SECOND) as i64, tv_nsec: (time % SECOND) as _ }
}
