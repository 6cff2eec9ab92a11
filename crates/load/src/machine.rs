//! What the engine asks of the kernel apart from sockets: clocks, CPUs and the limit on open files.
//!
//! Both changes made here are taken back when their value is dropped, because servers started later inherit them.

use crate::engine::LoadError;
use model::Nanos;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

/// The clock of every time in this crate: `CLOCK_MONOTONIC`.
#[must_use]
pub fn monotonic_ns() -> Nanos {
    read(ClockId::Monotonic)
}

/// CPU time the calling thread has used.
pub(crate) fn thread_cpu() -> Nanos {
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

/// The soft limit on open files, raised as far as the hard one allows; it comes back when this is dropped.
pub(crate) struct OpenFiles {
    before: Option<Rlimit>,
}

impl OpenFiles {
    /// Makes room for `sockets` and some. Where the hard limit is lower, the connections beyond it fail and say so.
    pub(crate) fn room_for(sockets: u32) -> OpenFiles {
        let limit = getrlimit(Resource::Nofile);
        let needed = u64::from(sockets) + OTHER_FILES;
        if limit.current.is_none_or(|current| current >= needed) {
            return OpenFiles { before: None };
        }
        let raised = limit.maximum.map_or(needed, |maximum| maximum.min(needed));
        let done = setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum: limit.maximum });
        OpenFiles { before: done.ok().map(|()| limit) }
    }
}

impl Drop for OpenFiles {
    fn drop(&mut self) {
        if let Some(before) = self.before.take() {
            // Lowering a soft limit to what it was is always allowed.
            let _ = setrlimit(Resource::Nofile, before);
        }
    }
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
