//! How the time of a check is divided: windows of the climb, windows of what is kept, and readings in each.

use crate::others::LONG_REST;
use model::{Nanos, SECOND};

/// A window of the climb has this part of the whole, as it may take a dozen of them.
const CLIMB_PART: u64 = 24;
/// A window of those that the answer rests on.
const HOLD_PART: u64 = 20;
/// The longest window, and the shortest.
const LONGEST: Nanos = 3 * SECOND;
const SHORTEST: Nanos = SECOND / 5;
/// So many windows the answer rests on.
pub(super) const HOLDS: u32 = 5;
/// So many it rests on at least: an interval needs two.
const LEAST_HOLDS: u32 = 2;
/// So many times a page must be answered in a window, one after the other.
const ANSWERS: u64 = 3;
/// However slow a page is, so many windows fit.
const LEAST_PARTS: u64 = 8;
/// Readings in a window, and the least time between two.
const READINGS: u64 = 10;
const CLOSEST: Nanos = SECOND / 50;

/// The part of the whole that looks take when the last window is over.
const LAST_LOOKS_PART: u64 = 60;

/// What is left when the last window is over: others are counted while nothing is sent, and all is put down.
pub(super) fn end_of(budget: Nanos) -> Nanos {
    LONG_REST.as_nanos() as Nanos + budget / LAST_LOOKS_PART
}

/// The lengths that follow from the time there is and the time that a page takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lengths {
    pub(super) climb: Nanos,
    pub(super) hold: Nanos,
    pub(super) reading: Nanos,
}

impl Lengths {
    pub(super) fn of(budget: Nanos, page: Nanos) -> Lengths {
        let least = (page * ANSWERS).min(budget / LEAST_PARTS).max(SHORTEST);
        let part = |parts: u64| (budget / parts).clamp(SHORTEST, LONGEST).max(least);
        let climb = part(CLIMB_PART);
        Lengths { climb, hold: part(HOLD_PART), reading: (climb / READINGS).clamp(CLOSEST, SECOND / 5) }
    }

    /// What the windows after the climb take at least: two that are kept, and one above them.
    pub(super) fn after(&self) -> Nanos {
        self.hold * u64::from(LEAST_HOLDS + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_climb_and_what_follows_fit_into_the_time() {
        let check = |budget_s: u64, page_ms: u64, steps: u64| {
            let budget = budget_s * SECOND;
            let lengths = Lengths::of(budget, page_ms * 1_000_000);
            let after = if steps > 3 { lengths.hold * u64::from(HOLDS + 1) } else { lengths.after() };
            let end = end_of(budget);
            assert!(lengths.climb * steps + after <= budget - end, "{lengths:?}");
            // Others are counted for so long, and everything is looked at once more.
            assert!(end > LONG_REST.as_nanos() as Nanos, "{end}");
            assert!(lengths.climb >= 3 * page_ms * 1_000_000 && lengths.reading * 5 <= lengths.climb);
        };
        check(60, 1, 12);
        check(60, 500, 12);
        check(5, 1, 12);
        check(60, 2000, 3);
        assert_eq!(Lengths::of(8 * SECOND, 5 * SECOND).hold, SECOND);
    }
}
