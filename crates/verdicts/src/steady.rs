//! Whether the windows of closed loops were steady, by the seconds in them.

use model::SECOND;
use model::load::LoadResult;
use model::plan::{LoadSpec, Pace};
use stats::steadiness;

/// An interval that is shorter than this share of a second is an end and no second.
const WHOLE: f64 = 0.9;

/// What is not steady about a window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Unsteady {
    /// Its beginning is still warm-up.
    WarmUp {
        /// How long that lasts.
        seconds: f64,
        /// How much it moves the throughput of the window, as a share: -0.05 when it costs 5 %.
        pull: f64,
    },
    /// Throughput drifts, or changes at once.
    Drift {
        /// By how much over the window, as a share.
        share: f64,
    },
}

/// What is not steady about a load that `spec` asked for. A timetable says itself how many requests there are, so only closed loops are
/// judged, from ten whole seconds on.
#[must_use]
pub fn unsteady(spec: &LoadSpec, load: &LoadResult) -> Option<Unsteady> {
    if spec.pace != Pace::WhenFree || spec.session.is_some() {
        return None;
    }
    let found = steadiness(&per_second(load)).ok()??;
    if found.is_steady() {
        return None;
    }
    if found.is_warming_up() {
        return Some(Unsteady::WarmUp { seconds: found.warm_up as f64, pull: found.pull });
    }
    let share = if found.step.abs() > found.drift.abs() { found.step } else { found.drift };
    Some(Unsteady::Drift { share })
}

/// Good answers per second in each whole second of a window.
pub(crate) fn per_second(load: &LoadResult) -> Vec<f64> {
    let seconds = |ns: u64| ns as f64 / SECOND as f64;
    let whole = load.intervals.iter().filter(|interval| seconds(interval.length_ns) >= WHOLE);
    whole.map(|interval| interval.counts.good as f64 / seconds(interval.length_ns)).collect()
}
