//! The kernel's clocks of CPU time: in nanoseconds what `stat` has in whole ticks of 10 ms.
//!
//! A hundred workers that are looked at by ticks twice are known to 4 ms each, which is a twentieth of what all of them do in a second.

/// What the kernel calls `CPUCLOCK_SCHED`: time on a CPU, as the scheduler counts it.
const SCHED: libc::clockid_t = 2;

/// CPU time of a process, all its threads and those that ended included, in ns; `None` when it has gone.
///
/// The number of the clock is made as clock_getcpuclockid(3) makes it. Everybody may read it, and nobody waits for it.
pub(super) fn cpu_ns(pid: u32) -> Option<u64> {
    let clock = (!libc::clockid_t::try_from(pid).ok()? << 3) | SCHED;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes to `time`, which lives through the call; a clock that is not there is an error.
    let failed = unsafe { libc::clock_gettime(clock, &raw mut time) } != 0;
    let seconds = u64::try_from(time.tv_sec).ok().filter(|_| !failed)?;
    Some(seconds * 1_000_000_000 + u64::try_from(time.tv_nsec).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::time::{ClockId, Timespec, clock_gettime};

    #[test]
    fn the_clock_of_a_process_is_its_own() {
        let ns = |time: Timespec| u64::try_from(time.tv_sec * 1_000_000_000 + time.tv_nsec).unwrap();
        let own = || ns(clock_gettime(ClockId::ProcessCPUTime));
        let before = own();
        let seen = cpu_ns(std::process::id()).unwrap();
        assert!((before..=own()).contains(&seen));
        assert_eq!(cpu_ns(u32::MAX), None);
    }
}
