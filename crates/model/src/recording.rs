//! A watch as it is kept: who watched what, and what was seen, in chunks that are complete each for itself.

use crate::Nanos;
use crate::device::Roster;
use crate::process::Processes;
use crate::reading::Look;
use crate::run::{Anchor, HostFacts};
use serde::{Deserialize, Serialize};

/// Everything that is needed to show a recording again years later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordingHead {
    /// Identifier in the store, as that of a run.
    pub id: String,
    /// When it began.
    pub anchor: Anchor,
    /// Where.
    pub host: HostFacts,
    /// Version of webdyno that recorded it.
    pub version: String,
    /// What was typed behind the command, word by word; the screen of a replay when nothing else is asked for.
    pub words: Vec<String>,
    /// Time between two looks that was asked for.
    pub period_ns: Nanos,
    /// Bytes of a page of memory, in which swap is counted.
    pub page_bytes: u64,
    /// Which devices the numbers of a look are of.
    pub roster: Roster,
    /// What the sampler was refused or did not find, one sentence each.
    pub notes: Vec<String>,
    /// The recording that this one goes on from: a long watch is kept in parts.
    #[serde(default)]
    pub continues: Option<String>,
}

/// A few looks, written together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// When its first look was taken, on both clocks; a step of the wall clock, or a time of suspension, shows from chunk to chunk.
    pub anchor: Anchor,
    /// The looks, ascending in time.
    pub looks: Vec<Look>,
    /// Every process at some of these looks, and at which: ascending, and none unless one of them was to be shown.
    pub processes: Vec<(Nanos, Processes)>,
    /// Looks before these that nobody could write.
    pub lost: u64,
    /// What was to be said meanwhile, one sentence each.
    pub notes: Vec<String>,
}

impl Chunk {
    /// Both clocks at the last look that is not after that instant; at the first one where looks do not tell the clock on the wall.
    #[must_use]
    pub fn anchor_at(&self, at_ns: Nanos) -> Anchor {
        let before = &self.looks[..self.looks.partition_point(|look| look.at_ns() <= at_ns)];
        before.last().and_then(|look| look.reading.anchor()).unwrap_or(self.anchor)
    }
}

/// How much there is of a recording.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Extent {
    /// Looks.
    pub looks: u64,
    /// When the first was taken.
    pub from_ns: Nanos,
    /// When the last was taken.
    pub to_ns: Nanos,
    /// Bytes they take in the store.
    pub bytes: u64,
}

impl Extent {
    /// From the first look to the last, in nanoseconds.
    #[must_use]
    pub fn length_ns(&self) -> Nanos {
        self.to_ns.saturating_sub(self.from_ns)
    }
}

/// How long recordings are kept, and how much of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Nanoseconds after its last look that a recording is kept.
    pub age_ns: Nanos,
    /// Bytes that all of them may take together.
    pub bytes: u64,
}

impl Default for Retention {
    /// Thirty days, and a gibibyte.
    fn default() -> Self {
        Retention { age_ns: 30 * 86_400 * crate::SECOND, bytes: 1 << 30 }
    }
}

impl Anchor {
    /// Seconds since 1970 at an instant of the monotonic clock.
    #[must_use]
    pub fn epoch_s(&self, at_ns: Nanos) -> f64 {
        let since = i128::from(at_ns) - i128::from(self.mono_ns);
        (i128::from(self.wall_ns) + since) as f64 / 1e9
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reading::Column;

    #[test]
    fn an_anchor_ties_the_clocks_in_both_directions() {
        let anchor = Anchor { mono_ns: 5_000_000_000, wall_ns: 1_700_000_000_000_000_000 };
        assert_eq!(anchor.epoch_s(6_500_000_000), 1_700_000_001.5);
        assert_eq!(anchor.epoch_s(4_000_000_000), 1_699_999_999.0);
    }

    #[test]
    fn within_a_chunk_the_clock_may_be_set() {
        let anchor = Anchor { mono_ns: 10, wall_ns: 1000 };
        let mut chunk = Chunk {
            anchor,
            looks: vec![Look::empty(10, 0), Look::empty(20, 0)],
            processes: Vec::new(),
            lost: 0,
            notes: Vec::new(),
        };
        assert_eq!(chunk.anchor_at(25), anchor);
        for (look, wall) in chunk.looks.iter_mut().zip([1000, 77]) {
            look.reading.set(Column::WallNs, wall);
        }
        let wall = |at_ns| chunk.anchor_at(at_ns).wall_ns;
        assert_eq!((wall(5), wall(10), wall(19), wall(20), wall(25)), (1000, 1000, 1000, 77, 77));
    }
}
