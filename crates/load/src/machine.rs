//! What the engine asks of the kernel apart from sockets: clocks, waiting, CPUs and the limit on open files.
//!
//! What others could inherit is taken back when its value is dropped.

use crate::engine::LoadError;
use crate::transport::Address;
use model::Nanos;
use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity, set_current_timer_slack};
use rustix::time::{ClockId, Timespec, clock_gettime};
use std::io;
use std::num::NonZeroU64;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The clock of every time in this crate: `CLOCK_MONOTONIC`.
#[must_use]
pub fn monotonic_ns() -> Nanos {
    read(ClockId::Monotonic)
}

/// Whether all of that are addresses of this machine: only those can be listened on.
#[must_use]
pub fn is_ours(address: &Address) -> bool {
    let is_ours = |ip| std::net::UdpSocket::bind((ip, 0)).is_ok();
    !address.all().is_empty() && address.all().iter().all(|address| is_ours(address.ip()))
}

/// CPU time the calling thread has used: unlike time that passes, it does not grow while others have the CPUs.
#[must_use]
pub fn thread_cpu() -> Nanos {
    read(ClockId::ThreadCPUTime)
}

/// The calling thread on some CPUs, and with it the threads it starts; its own CPUs come back when this is dropped.
pub(crate) struct Pinned {
    before: Option<CpuSet>,
}

impl Pinned {
    /// Pins to `cpus`; to nothing when there are none.
    pub(crate) fn to(cpus: &[u32]) -> Result<Pinned, LoadError> {
        if cpus.is_empty() {
            return Ok(Pinned { before: None });
        }
        let error = |source: rustix::io::Errno| LoadError::Pin { cpus: cpus.to_vec(), source: source.into() };
        let mut set = CpuSet::new();
        for &cpu in cpus {
            let cpu = usize::try_from(cpu).ok().filter(|&cpu| cpu < CpuSet::MAX_CPU);
            set.set(cpu.ok_or_else(|| error(rustix::io::Errno::INVAL))?);
        }
        let before = sched_getaffinity(None).map_err(error)?;
        sched_setaffinity(None, &set).map_err(error)?;
        Ok(Pinned { before: Some(before) })
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // These CPUs were allowed a moment ago. If they no longer are, staying where we are is all that is left.
            let _ = sched_setaffinity(None, before);
        }
    }
}

/// A load's part of the files that this process may have open: the soft limit is raised for all loads together, as far as the hard
/// one allows, and the last of them that is dropped brings it back.
pub(crate) struct OpenFiles {
    sockets: u64,
}

/// What the loads that go on now take of a limit that is the whole process's.
struct Taken {
    sockets: u64,
    /// The limit as it was, if it was raised for them.
    before: Option<Rlimit>,
}

static TAKEN: Mutex<Taken> = Mutex::new(Taken { sockets: 0, before: None });

fn taken() -> MutexGuard<'static, Taken> {
    TAKEN.lock().unwrap_or_else(PoisonError::into_inner)
}

impl OpenFiles {
    /// Makes room for `sockets` more and some. Where the hard limit is lower, the connections beyond it fail and say so.
    pub(crate) fn room_for(sockets: u32) -> OpenFiles {
        let (sockets, mut taken) = (u64::from(sockets), taken());
        taken.sockets += sockets;
        let needed = taken.sockets + OTHER_FILES;
        let limit = getrlimit(Resource::Nofile);
        if limit.current.is_some_and(|current| current < needed) {
            let raised = limit.maximum.map_or(needed, |maximum| maximum.min(needed));
            if setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum: limit.maximum }).is_ok() {
                taken.before.get_or_insert(limit);
            }
        }
        OpenFiles { sockets }
    }
}

impl Drop for OpenFiles {
    fn drop(&mut self) {
        let mut taken = taken();
        taken.sockets -= self.sockets;
        if taken.sockets == 0
            && let Some(before) = taken.before.take()
        {
            // Lowering a soft limit to what it was is always allowed.
            let _ = setrlimit(Resource::Nofile, before);
        }
    }
}

/// Waits for readiness, no longer than `nanos`, which the kernel keeps to the nanosecond from Linux 5.11 on and to the millisecond
/// before. Fills `events` up to its capacity.
pub(crate) fn wait_for_events(epoll: &OwnedFd, events: &mut Vec<epoll::Event>, nanos: Nanos) {
    events.clear();
    // A timeout of a day is as good as any longer one.
    let nanos = nanos.min(86_400 * model::SECOND);
    let timeout =
        Timespec { tv_sec: (nanos / model::SECOND).cast_signed(), tv_nsec: (nanos % model::SECOND).cast_signed() };
    if nanos.is_multiple_of(1_000_000) || PRECISE_IS_ABSENT.load(Ordering::Relaxed) {
        // Interrupted by a signal: as good as nothing ready.
        let _ = epoll::wait(epoll, spare_capacity(events), Some(&timeout));
        return;
    }
    let room = libc::c_int::try_from(events.capacity()).unwrap_or(libc::c_int::MAX);
    // SAFETY: the kernel writes at most `room` events, for which the vector has capacity; both types of event are the kernel's
    // own `struct epoll_event`. The time is a kernel timespec of two 64-bit numbers, and no signal mask is given.
    let found = unsafe {
        libc::syscall(
            libc::SYS_epoll_pwait2,
            epoll.as_raw_fd(),
            events.as_mut_ptr(),
            room,
            std::ptr::from_ref(&timeout),
            std::ptr::null::<libc::sigset_t>(),
            0_usize,
        )
    };
    match usize::try_from(found) {
        // SAFETY: so many events were written just now.
        Ok(found) => unsafe { events.set_len(found) },
        Err(_) if Errno::from_io_error(&io::Error::last_os_error()) == Some(Errno::NOSYS) => {
            PRECISE_IS_ABSENT.store(true, Ordering::Relaxed);
        }
        Err(_) => {}
    }
}

/// Whether this kernel cannot wait more precisely than to the millisecond. Only ever set once.
static PRECISE_IS_ABSENT: AtomicBool = AtomicBool::new(false);

/// Has the kernel wake the calling thread when it asked for it, instead of up to 50 microseconds later to spare energy.
pub(crate) fn wake_on_time() {
    // Without it a load is a little late, and says so.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
}

/// Files of this process that are not the load's.
const OTHER_FILES: u64 = 256;

fn read(clock: ClockId) -> Nanos {
    let time = clock_gettime(clock);
    // Neither clock is negative.
    time.tv_sec.cast_unsigned() * model::SECOND + time.tv_nsec.cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pinning_is_taken_back() {
        let before = sched_getaffinity(None).unwrap();
        let cpu = (0..CpuSet::MAX_CPU).find(|&cpu| before.is_set(cpu)).unwrap();
        let pinned = Pinned::to(&[u32::try_from(cpu).unwrap()]).unwrap();
        assert_eq!(sched_getaffinity(None).unwrap().count(), 1);
        drop(pinned);
        assert_eq!(sched_getaffinity(None).unwrap(), before);
        assert!(matches!(Pinned::to(&[9999]), Err(LoadError::Pin { .. })));
    }
}
