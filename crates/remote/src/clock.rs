//! How far apart two clocks are, and how well that is known.
//!
//! A message goes there and back. The other clock was read somewhere between the two, and nobody knows where; halfway it is off by
//! half of the round trip at most (Cristian 1989). Of several the shortest says most.

use model::Nanos;
use model::load::LoadResult;

/// One message there and back: when it was sent, what the other clock showed, and when the answer was here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exchange {
    pub(crate) sent_ns: Nanos,
    pub(crate) there_ns: Nanos,
    pub(crate) back_ns: Nanos,
}

/// The other clock less ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Offset {
    pub(crate) offset_ns: i64,
    pub(crate) round_trip_ns: Nanos,
}

impl Exchange {
    fn round_trip(&self) -> Nanos {
        self.back_ns.saturating_sub(self.sent_ns)
    }
}

impl Offset {
    /// What the shortest of them says; `None` without any.
    pub(crate) fn of(exchanges: &[Exchange]) -> Option<Offset> {
        let best = exchanges.iter().min_by_key(|exchange| exchange.round_trip())?;
        let round_trip_ns = best.round_trip();
        let offset_ns = signed(best.there_ns) - signed(best.sent_ns + round_trip_ns / 2);
        Some(Offset { offset_ns, round_trip_ns })
    }

    /// How far instants of a load may be off that are told by this offset, when a later look found `after`.
    pub(crate) fn uncertainty(&self, after: &Offset) -> Nanos {
        // Each look may be off by half of its own round trip: an instant near the end lies as the second one says.
        let half = self.round_trip_ns.max(after.round_trip_ns).div_ceil(2);
        // What lies between two looks that are each unsure is no drift for certain; taken as one, it is on the safe side.
        half + self.offset_ns.abs_diff(after.offset_ns)
    }

    /// An instant of the other clock in ours.
    pub(crate) fn ours(&self, there_ns: Nanos) -> Nanos {
        there_ns.saturating_add_signed(-self.offset_ns)
    }

    /// A load in our time.
    pub(crate) fn bring_home(&self, load: &mut LoadResult) {
        load.started_ns = self.ours(load.started_ns);
        load.ended_ns = self.ours(load.ended_ns);
    }
}

fn signed(ns: Nanos) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(exchanges: &[(Nanos, Nanos, Nanos)], expected: Option<(i64, Nanos)>) {
        let exchanges: Vec<_> =
            exchanges.iter().map(|&(sent_ns, there_ns, back_ns)| Exchange { sent_ns, there_ns, back_ns }).collect();
        assert_eq!(Offset::of(&exchanges).map(|offset| (offset.offset_ns, offset.round_trip_ns)), expected);
    }

    #[test]
    fn the_shortest_round_trip_decides() {
        check(&[], None);
        check(&[(100, 1050, 200)], Some((900, 100)));
        check(&[(100, 1190, 200), (300, 1205, 310)], Some((900, 10)));
        // A clock that is behind ours.
        check(&[(5000, 10, 5020)], Some((-5000, 20)));
    }

    #[test]
    fn instants_come_home_within_the_uncertainty_wherever_the_time_went() {
        let truth = -123_456_789_i64;
        for (there, back) in [(0, 40), (40, 0), (13, 27)] {
            let sent_ns = 1_000_000_000;
            let at = Exchange {
                sent_ns,
                there_ns: (sent_ns + there).saturating_add_signed(truth),
                back_ns: sent_ns + there + back,
            };
            let offset = Offset::of(&[at]).unwrap();
            let instant = 2_000_000_000_u64;
            let off = offset.ours(instant.saturating_add_signed(truth)).abs_diff(instant);
            assert!(off <= offset.uncertainty(&offset), "{off}");
            assert_eq!(offset.uncertainty(&Offset { offset_ns: offset.offset_ns + 7, ..offset }), 27);
            let slower = Offset { offset_ns: offset.offset_ns + 7, round_trip_ns: 100 };
            assert_eq!(offset.uncertainty(&slower), 57);
        }
    }
}
