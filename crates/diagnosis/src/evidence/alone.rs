//! What a page takes alone, as the first second of a load shows it, and what it takes later.
//!
//! A closed loop begins with all of its requests at once. A server that works on them one after the other, or a few at a time, answers
//! the first as if it were alone; each later one has waited for those before it, and from then on all of them do. Where some are let
//! past the others, as by threads that go on with the connection they have, the fastest never wait, and only the typical one does.

use model::latency::Latency;
use model::load::LoadResult;
use model::plan::{LoadSpec, Pace};

/// Part of the typical latency below which no answer came after the first second: where some did, pages differ by themselves.
const ALWAYS_LATER: f64 = 0.5;
/// Part of the typical latency that is most of it.
const MOST: f64 = 0.5;

/// Seconds that answers take.
pub(super) struct Paces {
    /// The fastest of the first second.
    first: f64,
    /// The typical one after it.
    typical: f64,
    /// The fastest after it.
    least_later: f64,
}

impl Paces {
    /// `None` where requests differ or come by a timetable.
    pub(super) fn of(spec: &LoadSpec, load: &LoadResult) -> Option<Paces> {
        let same = spec.mix.len() == 1 && spec.log.is_none() && spec.session.is_none() && spec.pipeline == 1;
        if !same || spec.pace != Pace::WhenFree {
            return None;
        }
        let (first, later) = load.intervals.split_first()?;
        let (least, _) = first.total.unpack().range_us()?;
        let mut all = Latency::new();
        later.iter().for_each(|interval| all.merge(&interval.total.unpack()));
        let (typical, (least_later, _)) = (all.percentile_us(50.0)?, all.range_us()?);
        let [first, typical, least_later] = [least, typical, least_later].map(|us| us as f64 / 1e6);
        Some(Paces { first, typical, least_later })
    }

    /// What a page takes alone; `None` where answers were as fast later.
    pub(super) fn alone(&self) -> Option<f64> {
        (self.least_later >= ALWAYS_LATER * self.typical).then_some(self.first)
    }

    /// How much longer the typical answer takes than the fastest, where that is most of what it takes.
    pub(super) fn longer(&self) -> Option<f64> {
        let longer = self.typical - self.first;
        (longer > MOST * self.typical).then_some(longer)
    }
}
