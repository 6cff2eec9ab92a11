//! What three clocks say of a reading, and of the time between two: when it was, whether the date was set, whether the machine slept.
//!
//! Rates are over CLOCK_MONOTONIC, which nobody sets and which stands still while the machine is suspended, as do the kernel's counters.
//! The clock on the wall and CLOCK_BOOTTIME, which goes on meanwhile, are kept beside it in every reading and are never divided by.

use crate::reading::{Column, Reading, Span};
use crate::run::Anchor;
use crate::{Nanos, SECOND};

/// Less is not told. A time server pulls a clock by at most half a millisecond in a second; who reads three clocks may be interrupted between two.
const WORTH_TELLING: Nanos = SECOND / 2;

/// What happened to time between two readings, beside its passing.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Jumps {
    /// Seconds for which the machine was suspended: nothing ran, and no rate is over them.
    pub suspended_s: Option<f64>,
    /// Seconds by which the clock on the wall was set forward, or back if negative.
    pub set_by_s: Option<f64>,
}

impl Reading {
    /// When it was taken, by both clocks, that on the wall as it stood then. `None` for readings of a webdyno that did not keep it.
    #[must_use]
    pub fn anchor(&self) -> Option<Anchor> {
        let wall_ns = i64::try_from(self.get(Column::WallNs)?).ok()?;
        Some(Anchor { mono_ns: self.at_ns, wall_ns })
    }

    /// The same as seconds since 1970.
    #[must_use]
    pub fn epoch_s(&self) -> Option<f64> {
        self.anchor().map(|anchor| anchor.epoch_s(self.at_ns))
    }
}

impl Span<'_> {
    /// What happened to time between the two.
    #[must_use]
    pub fn jumps(&self) -> Jumps {
        let went = |column| Some(self.to.get(column)?.wrapping_sub(self.from.get(column)?).cast_signed());
        let ran = self.to.at_ns.wrapping_sub(self.from.at_ns).cast_signed();
        let slept = went(Column::BootNs).map(|passed| passed.saturating_sub(ran));
        // A machine that wakes up sets its date forward by what it slept.
        let set = went(Column::WallNs).map(|passed| passed.saturating_sub(ran).saturating_sub(slept.unwrap_or(0)));
        let told = |by: i64| (by.unsigned_abs() >= WORTH_TELLING).then_some(by as f64 / 1e9);
        Jumps { suspended_s: slept.and_then(told).filter(|&s| s > 0.0), set_by_s: set.and_then(told) }
    }
}

impl Jumps {
    /// Each as a few words, such as `suspended 20.0s` and `clock set by +3600.0s`; `gap` stands between a number and its unit.
    #[must_use]
    pub fn words(&self, gap: &str) -> Vec<String> {
        let suspended = self.suspended_s.map(|seconds| format!("suspended {seconds:.1}{gap}s"));
        let set = self.set_by_s.map(|seconds| format!("clock set by {seconds:+.1}{gap}s"));
        suspended.into_iter().chain(set).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The three clocks in milliseconds: monotonic, boot time, wall.
    fn reading([at, boot, wall]: [u64; 3]) -> Reading {
        let mut reading = Reading::empty(at * 1_000_000);
        reading.set(Column::BootNs, boot * 1_000_000);
        reading.set(Column::WallNs, wall * 1_000_000);
        reading
    }

    fn check(from: [u64; 3], to: [u64; 3], expected: &[&str]) {
        let (from, to) = (reading(from), reading(to));
        let span = Span { from: &from, to: &to };
        assert_eq!(span.jumps().words(""), expected);
        // Whatever the others say.
        assert_eq!(span.seconds(), (to.at_ns - from.at_ns) as f64 / 1e9);
    }

    const WALL: u64 = 1_763_000_000_000;

    #[test]
    fn time_that_only_passes_says_nothing() {
        check([5000, 5000, WALL], [6000, 6000, WALL + 1000], &[]);
        // A clock that is pulled, and a reader that was interrupted between two clocks.
        check([5000, 9000, WALL], [6000, 10_010, WALL + 1480], &[]);
    }

    #[test]
    fn a_clock_that_is_set_shows_by_how_much() {
        check([5000, 5000, WALL], [6000, 6000, WALL + 3_601_000], &["clock set by +3600.0s"]);
        check([5000, 5000, WALL], [6000, 6000, WALL - 3_599_000], &["clock set by -3600.0s"]);
        // Back to when there were no clocks.
        check([5000, 5000, WALL], [6000, 6000, 0], &["clock set by -1763000001.0s"]);
    }

    #[test]
    fn a_machine_that_slept_shows_for_how_long() {
        check([5000, 5000, WALL], [6000, 26_000, WALL + 21_000], &["suspended 20.0s"]);
        // It slept, and nobody told its clock.
        check([5000, 65_000, WALL], [6000, 86_000, WALL + 1000], &["suspended 20.0s", "clock set by -20.0s"]);
    }

    #[test]
    fn old_readings_have_one_clock() {
        let (from, to) = (Reading::empty(0), reading([1000, 1000, WALL]));
        assert_eq!(Span { from: &from, to: &to }.jumps(), Jumps::default());
        assert_eq!((from.epoch_s(), to.epoch_s()), (None, Some(1_763_000_000.0)));
    }
}
