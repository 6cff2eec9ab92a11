//! What the sampler itself suffered: its major faults.
//!
//! Lateness and cost are not here: the loop that takes readings knows them.

use super::{Probe, Probes};
use crate::source::Buffer;
use model::reading::{Column, Reading};
use std::mem::MaybeUninit;

/// Adds the probe; it needs nothing opened.
pub(super) fn open(probes: &mut Probes) {
    probes.add(Itself);
}

struct Itself;

impl Probe for Itself {
    fn read(&mut self, row: &mut Reading, _buffer: &mut Buffer) {
        let mut usage = MaybeUninit::<libc::rusage>::uninit();
        // SAFETY: the call gets room for one `rusage`, and `usage` is read only after it said that it was filled.
        let usage = unsafe {
            if libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) != 0 {
                return;
            }
            usage.assume_init()
        };
        row.set(Column::SamplerFaults, u64::try_from(usage.ru_majflt).unwrap_or(0));
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::read;
    use super::*;

    #[test]
    fn faults_are_those_the_kernel_tells_of_this_process() {
        let faults = || -> u64 {
            let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
            stat.rsplit_once(')').unwrap().1.split_whitespace().nth(9).unwrap().parse().unwrap()
        };
        let mut probes = Probes::none();
        open(&mut probes);
        let before = faults();
        let told = read(&mut probes).get(Column::SamplerFaults).unwrap();
        // This process may have one at any time.
        assert!((before..=faults()).contains(&told), "{before} {told}");
    }
}
