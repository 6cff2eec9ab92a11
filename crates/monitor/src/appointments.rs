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
    start: Nanos,
    next: Nanos,
    /// Between the appointments of the watch.
    period: Nanos,
    /// Between those that are kept now: the period, or a whole part of it.
    step: Nanos,
    /// What came together with the last appointment, and is still to be told: an event that was polled does not come again.
    besides: Option<Come>,
}

/// An appointment that has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Due {
    /// When: of those that are missed together, the earliest of the watch.
    pub(crate) at: Nanos,
    /// Whether it lies between the appointments of the watch, with no other missed.
    pub(crate) extra: bool,
}

/// What a wait ended with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Come {
    /// An appointment.
    Due(Due),
    /// The descriptor that is to wake us has its event.
    Alarm,
    /// It will have no more: polling it again would return at once for ever.
    Deaf,
    /// The other end of the life line is closed.
    End,
}

/// The monotonic clock.
pub(crate) fn now() -> Nanos {
    clock(ClockId::Monotonic)
}

/// A clock; 0 where it shows a time before its beginning.
pub(crate) fn clock(id: ClockId) -> Nanos {
    let time = clock_gettime(id);
    u64::try_from(time.tv_sec).map_or(0, |seconds| seconds * SECOND + time.tv_nsec as u64)
}

impl Appointments {
    /// One every `period` after `start`.
    pub(crate) fn every(period: Nanos, start: Nanos) -> Result<Self, Errno> {
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?;
        let appointments = Appointments { timer, start, next: start + period, period, step: period, besides: None };
        appointments.arm()?;
        Ok(appointments)
    }

    /// From `now` on one every `step`, on a grid that has those of the watch in it. An appointment that has come since it was last
    /// waited for is not forgotten for that.
    pub(crate) fn step(&mut self, step: Nanos, now: Nanos) -> Result<(), Errno> {
        self.step = step;
        self.next = following(self.start, step, now.min(self.next - 1));
        self.arm()
    }

    fn arm(&self) -> Result<(), Errno> {
        let grid = Itimerspec { it_interval: timespec(self.step), it_value: timespec(self.next) };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &grid).map(|_| ())
    }

    /// Waits for the next appointment, for the closing of the other end of `life`, or for an event of `alarm`.
    pub(crate) fn wait(&mut self, life: BorrowedFd<'_>, alarm: Option<BorrowedFd<'_>>) -> Result<Come, Errno> {
        if let Some(come) = self.besides.take() {
            return Ok(come);
        }
        loop {
            // No event is asked for on `life`: a closed other end is always told, and nothing else can happen to it.
            let fds = &mut [
                PollFd::new(&self.timer, PollFlags::IN),
                PollFd::from_borrowed_fd(life, PollFlags::empty()),
                PollFd::from_borrowed_fd(alarm.unwrap_or(life), PollFlags::PRI),
            ];
            match rustix::event::poll(fds, None) {
                Err(Errno::INTR) => continue,
                result => result?,
            };
            if !fds[1].revents().is_empty() {
                return Ok(Come::End);
            }
            let alarm = match fds[2].revents() {
                none if none.is_empty() => None,
                PollFlags::PRI => Some(Come::Alarm),
                _ => Some(Come::Deaf),
            };
            if fds[0].revents().is_empty() {
                return Ok(alarm.unwrap_or(Come::Deaf));
            }
            self.besides = alarm;
            let mut expirations = [0; 8];
            match rustix::io::read(&self.timer, &mut expirations) {
                Err(Errno::INTR) => continue,
                result => result?,
            };
            let (missed, come) = (self.next, u64::from_ne_bytes(expirations));
            if come > 1 {
                // Readings that take longer than their period would never wait, and at real-time priority the kernel ends who does not
                // (RLIMIT_RTTIME). A shorter rest would be over before it began.
                let _ = rustix::thread::nanosleep(&Timespec { tv_sec: 0, tv_nsec: 50_000 });
            }
            self.next += come * self.step;
            return Ok(Come::Due(due(self.start, self.period, missed, self.next)));
        }
    }
}

/// The first point of a grid after `now`.
fn following(start: Nanos, step: Nanos, now: Nanos) -> Nanos {
    start + (now.saturating_sub(start) / step + 1) * step
}

/// What is due of the appointments from `from` on and before `to`: the earliest of the watch, whose period that is, else the earliest.
fn due(start: Nanos, period: Nanos, from: Nanos, to: Nanos) -> Due {
    let of_watch = following(start, period, from.saturating_sub(1));
    if of_watch < to { Due { at: of_watch, extra: false } } else { Due { at: from, extra: true } }
}

/// Nanoseconds as the kernel wants them.
pub(crate) fn timespec(time: Nanos) -> Timespec {
    Timespec { tv_sec: (time / SECOND) as i64, tv_nsec: (time % SECOND) as _ }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn the_grid() {
        let check = |now, expected| assert_eq!(following(1000, 100, now), expected, "{now}");
        check(1000, 1100);
        check(1099, 1100);
        check(1100, 1200);
        check(3, 1100);
        let check = |from, to, at, extra| assert_eq!(due(1000, 100, from, to), Due { at, extra }, "{from} {to}");
        check(1100, 1110, 1100, false);
        check(1110, 1120, 1110, true);
        check(1110, 1200, 1110, true);
        check(1190, 1210, 1200, false);
        check(1110, 1400, 1200, false);
    }

    #[test]
    fn an_appointment_that_comes_while_the_step_changes_is_kept() {
        let (life, _other) = rustix::pipe::pipe().unwrap();
        let check = |before: Nanos, step: Nanos, late: Nanos| {
            let start = now();
            let mut appointments = Appointments::every(100_000_000, start).unwrap();
            appointments.step(before, start).unwrap();
            // It was due, and nobody has waited for it yet.
            appointments.step(step, start + 100_000_000 + late).unwrap();
            match appointments.wait(life.as_fd(), None).unwrap() {
                Come::Due(due) => assert_eq!((due.at - start, due.extra), (100_000_000, false), "{before} {step}"),
                come => panic!("{come:?}"),
            }
        };
        check(100_000_000, 10_000_000, 1_000_000);
        check(100_000_000, 10_000_000, 25_000_000);
        check(50_000_000, 100_000_000, 1_000_000);
    }

    /// At real-time priority the kernel ends who computes for half a second without waiting once.
    #[test]
    fn who_cannot_keep_pace_waits_all_the_same() {
        let waits = || -> u64 {
            let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
            let waits = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
            waits.unwrap().trim().parse().unwrap()
        };
        let (life, _other) = rustix::pipe::pipe().unwrap();
        let mut appointments = Appointments::every(10_000, now()).unwrap();
        let before = waits();
        for _ in 0..10 {
            let until = now() + 1_000_000;
            while now() < until {}
            appointments.wait(life.as_fd(), None).unwrap();
        }
        assert!(waits() >= before + 10);
    }

    #[test]
    fn an_alarm_that_comes_with_an_appointment_is_told_after_it() {
        let (life, _other) = rustix::pipe::pipe().unwrap();
        // Urgent data has the event that a pressure trigger has.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let to = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (from, _) = listener.accept().unwrap();
        rustix::net::send(&to, b"!", rustix::net::SendFlags::OOB).unwrap();
        let mut appointments = Appointments::every(20_000_000, now() - 19_000_000).unwrap();
        // Long enough for both.
        rustix::event::poll(&mut [PollFd::new(&appointments.timer, PollFlags::IN)], None).unwrap();
        rustix::event::poll(&mut [PollFd::new(&from, PollFlags::PRI)], None).unwrap();
        assert!(matches!(appointments.wait(life.as_fd(), Some(from.as_fd())).unwrap(), Come::Due(_)));
        // The kernel tells a pressure trigger's event to one poll only.
        assert_eq!(appointments.wait(life.as_fd(), None).unwrap(), Come::Alarm);
    }

    #[test]
    fn faster_and_back() {
        let (life, _other) = rustix::pipe::pipe().unwrap();
        let mut appointments = Appointments::every(20_000_000, now()).unwrap();
        let begun = appointments.start;
        let next = |appointments: &mut Appointments| match appointments.wait(life.as_fd(), None).unwrap() {
            Come::Due(due) => due,
            come => panic!("{come:?}"),
        };
        assert!(!next(&mut appointments).extra);
        appointments.step(2_000_000, now()).unwrap();
        let fast: Vec<Due> = (0..20).map(|_| next(&mut appointments)).collect();
        for due in &fast {
            assert_eq!((due.at - begun) % 2_000_000, 0);
        }
        assert!(fast.iter().any(|due| due.extra) && fast.iter().any(|due| !due.extra), "{fast:?}");
        appointments.step(20_000_000, now()).unwrap();
        let slow = next(&mut appointments);
        assert_eq!(((slow.at - begun) % 20_000_000, slow.extra), (0, false));
    }
}
