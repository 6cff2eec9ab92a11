//! What a page takes alone, as the first second of a load shows it.
//!
//! A closed loop begins with all of its requests at once. A server that works on them one after the other, or a few at a time, answers
//! the first as if it were alone; each later one has waited for those before it, and from then on all of them do.

use model::latency::Latency;
use model::load::LoadResult;
use model::plan::{LoadSpec, Pace};

/// Part of the typical latency below which no answer came after the first second: where some did, pages differ by themselves.
const ALWAYS_LATER: f64 = 0.5;

/// Seconds; `None` where requests differ, come by a timetable, or answers were as fast later.
pub(super) fn alone(spec: &LoadSpec, load: &LoadResult) -> Option<f64> {
    let same = spec.mix.len() == 1 && spec.log.is_none() && spec.session.is_none() && spec.pipeline == 1;
    if !same || spec.pace != Pace::WhenFree {
        return None;
    }
    let (first, later) = load.intervals.split_first()?;
    let (least, _) = first.total.unpack().range_us()?;
    let mut all = Latency::new();
    later.iter().for_each(|interval| all.merge(&interval.total.unpack()));
    let (typical, (least_later, _)) = (all.percentile_us(50.0)?, all.range_us()?);
    let waited = least_later as f64 >= ALWAYS_LATER * typical as f64;
    waited.then_some(least as f64 / 1e6)
}
