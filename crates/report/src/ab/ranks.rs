//! Exact order statistics of any number of requests, by counting instead of sorting.
//!
//! The first pass over the records counts values by their upper sixteen bits. It tells in which bucket a rank lies, and the second
//! pass counts the lower sixteen bits there. So the k-th smallest of ten million values takes two passes and a few megabytes,
//! and is exact to the microsecond.

use super::records::{Part, Records};
use std::io;

const BUCKETS: usize = 1 << 16;
const NONE: u16 = u16::MAX;

/// What the first pass tells about one part of all requests.
pub(super) struct Counted {
    counts: Vec<u32>,
    /// Smallest value, microseconds.
    pub(super) min: u32,
    /// Greatest value.
    pub(super) max: u32,
    /// Sum of all values.
    pub(super) sum: u64,
}

/// What the second pass tells: the values asked for, and the sum of squares around a point.
pub(super) struct Found {
    /// In the order of the ranks asked for.
    pub(super) values: Vec<u32>,
    /// Sum of squared distances from the point.
    pub(super) squares: f64,
}

/// What to look for in one part: ranks from 0, all below the number of records, and the point to measure distances from.
pub(super) struct Wanted {
    pub(super) ranks: Vec<u64>,
    pub(super) around: f64,
}

/// The first pass: all four parts.
pub(super) fn count(records: &dyn Records) -> io::Result<[Counted; 4]> {
    let mut all = Part::ALL.map(|_| Counted { counts: vec![0; BUCKETS], min: u32::MAX, max: 0, sum: 0 });
    records.visit(&mut |piece| {
        for (part, counted) in Part::ALL.into_iter().zip(&mut all) {
            piece.iter().for_each(|record| counted.add(part.of(record)));
        }
    })?;
    Ok(all)
}

/// The second pass: all four parts again.
pub(super) fn find(records: &dyn Records, counted: &[Counted; 4], wanted: &[Wanted; 4]) -> io::Result<[Found; 4]> {
    let mut all = [0, 1, 2, 3].map(|i| Search::of(&counted[i], &wanted[i]));
    records.visit(&mut |piece| {
        for (part, search) in Part::ALL.into_iter().zip(&mut all) {
            piece.iter().for_each(|record| search.add(part.of(record)));
        }
    })?;
    Ok(all.map(Search::found))
}

impl Counted {
    fn add(&mut self, value: u32) {
        self.counts[(value >> 16) as usize] += 1;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.sum += u64::from(value);
    }

    /// The bucket of a rank, and the rank within it.
    fn bucket(&self, rank: u64) -> (usize, u64) {
        locate(&self.counts, rank)
    }

    /// How many values have these upper bits.
    pub(super) fn in_bucket(&self, upper: u16) -> u64 {
        u64::from(self.counts[usize::from(upper)])
    }
}

/// One part during the second pass.
struct Search {
    around: f64,
    squares: f64,
    /// For each bucket its place in `fine`, or [`NONE`].
    slots: Vec<u16>,
    fine: Vec<Vec<u32>>,
    /// Bucket and rank within it.
    places: Vec<(usize, u64)>,
}

impl Search {
    fn of(counted: &Counted, wanted: &Wanted) -> Search {
        let places: Vec<(usize, u64)> = wanted.ranks.iter().map(|rank| counted.bucket(*rank)).collect();
        let (mut slots, mut fine) = (vec![NONE; BUCKETS], Vec::new());
        for (bucket, _) in &places {
            if slots[*bucket] == NONE {
                slots[*bucket] = fine.len() as u16;
                fine.push(vec![0; BUCKETS]);
            }
        }
        Search { around: wanted.around, squares: 0.0, slots, fine, places }
    }

    fn add(&mut self, value: u32) {
        let distance = f64::from(value) - self.around;
        self.squares += distance * distance;
        let slot = self.slots[(value >> 16) as usize];
        if slot != NONE {
            self.fine[usize::from(slot)][(value & 0xffff) as usize] += 1;
        }
    }

    fn found(self) -> Found {
        let value = |(bucket, rank): &(usize, u64)| {
            let (lower, _) = locate(&self.fine[usize::from(self.slots[*bucket])], *rank);
            ((*bucket as u32) << 16) | lower as u32
        };
        Found { values: self.places.iter().map(value).collect(), squares: self.squares }
    }
}

/// Where the cumulated counts pass a rank, and how much of the rank is left there.
fn locate(counts: &[u32], rank: u64) -> (usize, u64) {
    let mut left = rank;
    for (at, n) in counts.iter().enumerate() {
        match left.checked_sub(u64::from(*n)) {
            Some(rest) => left = rest,
            None => return (at, left),
        }
    }
    (counts.len() - 1, 0)
}

#[cfg(test)]
mod tests {
    use super::super::Record;
    use super::*;

    /// Every rank of all four parts, against sorting.
    fn check(records: &[Record]) {
        let counted = count(&records).unwrap();
        let ranks: Vec<u64> = (0..records.len() as u64).collect();
        let wanted = Part::ALL.map(|_| Wanted { ranks: ranks.clone(), around: 1.0 });
        let found = find(&records, &counted, &wanted).unwrap();
        for (i, part) in Part::ALL.into_iter().enumerate() {
            let mut sorted: Vec<u32> = records.iter().map(|record| part.of(record)).collect();
            sorted.sort_unstable();
            assert_eq!(found[i].values, sorted, "{part:?}");
            assert_eq!((counted[i].min, counted[i].max), (sorted[0], sorted[sorted.len() - 1]));
            assert_eq!(counted[i].sum, sorted.iter().map(|value| u64::from(*value)).sum::<u64>());
        }
    }

    #[test]
    fn ranks_are_those_of_sorting() {
        let record = |total_us, connect_us, wait_us| Record { start_ms: 0, connect_us, total_us, wait_us };
        check(&[record(0, 0, 0)]);
        check(&[record(u32::MAX, 1, 65_535), record(65_536, 65_536, 65_536), record(7, 9, 0)]);
        // A long walk through numbers that look random: 64-bit linear congruential, Knuth's constants.
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 32) as u32
        };
        let many = (0..2_000).map(|_| record(next() >> (next() & 31), next() & 0xfff, next() & 0x1ffff));
        check(&many.collect::<Vec<_>>());
    }
}
