//! The seconds of all workers put together, in order and without gaps.
//!
//! A second is given out when every worker is past it. One in which nothing ended is given out too: a stall is a row of zeros,
//! not a hole.

use crate::sink::Part;
use model::latency::Latency;
use model::load::{Counts, LoadInterval};
use model::{Nanos, SECOND};
use std::collections::BTreeMap;

/// Gathers parts.
pub(crate) struct Collector<'a> {
    origin: Nanos,
    on_interval: &'a mut dyn FnMut(&LoadInterval),
    // The second each worker fills now.
    workers: Vec<u64>,
    unfinished: BTreeMap<u64, Filling>,
    finished: Vec<LoadInterval>,
    total: Latency,
}

/// A second that is not complete.
#[derive(Default)]
struct Filling {
    counts: Counts,
    // Grows as far as what is merged into it, so a second takes the space its latencies need.
    total: Latency,
}

impl<'a> Collector<'a> {
    /// Waits for parts of `workers` workers whose seconds are counted from `origin`.
    pub(crate) fn new(workers: usize, origin: Nanos, on_interval: &'a mut dyn FnMut(&LoadInterval)) -> Collector<'a> {
        let (unfinished, finished, total) = (BTreeMap::new(), Vec::new(), Latency::new());
        Collector { origin, on_interval, workers: vec![0; workers], unfinished, finished, total }
    }

    /// Takes one part, and gives out the seconds that are complete with it.
    pub(crate) fn add(&mut self, part: &Part) {
        let filling = self.unfinished.entry(part.second).or_default();
        filling.counts.merge(&part.counts);
        filling.total.merge(&part.total);
        self.total.merge(&part.total);
        self.workers[part.worker] = part.next;
        let slowest = self.workers.iter().copied().min().unwrap_or(0);
        // A worker that has finished says it is past everything; the last seconds wait for `finish`, which knows their length.
        if slowest < u64::MAX {
            self.give_out(slowest);
        }
    }

    /// Gives out what is left, the last interval cut at `ended_ns`: all of them, and all latencies together.
    pub(crate) fn finish(mut self, ended_ns: Nanos) -> (Vec<LoadInterval>, Latency) {
        // Parts of seconds that began after the end are empty: a worker waited for a connection that then was not needed.
        let begun = ended_ns.saturating_sub(self.origin).div_ceil(SECOND);
        let filled = self.unfinished.iter().rev().find(|(_, filling)| filling.counts != Counts::default());
        let end = begun.max(filled.map_or(0, |(&second, _)| second + 1));
        if end > self.finished.len() as u64 {
            self.give_out(end - 1);
            let length_ns = ended_ns.saturating_sub(self.origin + (end - 1) * SECOND).min(SECOND);
            self.give_out_one(end - 1, length_ns);
        }
        (self.finished, self.total)
    }

    fn give_out(&mut self, end: u64) {
        for second in self.finished.len() as u64..end {
            self.give_out_one(second, SECOND);
        }
    }

    fn give_out_one(&mut self, second: u64, length_ns: Nanos) {
        let Filling { counts, total } = self.unfinished.remove(&second).unwrap_or_default();
        let start_ns = self.origin + second * SECOND;
        let interval = LoadInterval { start_ns, length_ns, counts, total: total.pack() };
        (self.on_interval)(&interval);
        self.finished.push(interval);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parts as (worker, second, next, good) for two workers; then what was given out while they came, and in the end, each
    /// as good answers per interval, with the last one's length in milliseconds.
    fn check(parts: &[(usize, u64, u64, u64)], ended_ms: u64, live: &[u64], all: &[u64], last_ms: u64) {
        let mut seen = Vec::new();
        let mut on_interval = |interval: &LoadInterval| seen.push(interval.counts.good);
        let mut collector = Collector::new(2, 0, &mut on_interval);
        for &(worker, second, next, good) in parts {
            let counts = Counts { good, ..Counts::default() };
            collector.add(&Part { worker, second, next, counts, total: Latency::new() });
        }
        let before_end: Vec<_> = collector.finished.iter().map(|interval| interval.counts.good).collect();
        let (intervals, _) = collector.finish(ended_ms * 1_000_000);
        assert_eq!(before_end, live);
        assert_eq!(seen, all);
        assert_eq!(intervals.iter().map(|interval| interval.counts.good).collect::<Vec<_>>(), all);
        assert_eq!(intervals.last().map_or(0, |interval| interval.length_ns / 1_000_000), last_ms);
    }

    const OVER: u64 = u64::MAX;

    #[test]
    fn a_second_waits_for_the_slowest_worker() {
        check(&[(0, 0, 1, 5), (1, 0, 1, 7), (0, 1, OVER, 1), (1, 1, OVER, 2)], 1500, &[12], &[12, 3], 500);
        check(&[(0, 0, 1, 5), (0, 1, 2, 6), (1, 0, OVER, 7), (0, 2, OVER, 1)], 2250, &[12, 6], &[12, 6, 1], 250);
    }

    #[test]
    fn a_stall_is_a_row_of_zeros() {
        check(&[(0, 0, 3, 5), (1, 0, 3, 5), (0, 3, OVER, 1), (1, 3, OVER, 0)], 3100, &[10, 0, 0], &[10, 0, 0, 1], 100);
    }

    #[test]
    fn nothing_is_invented_behind_the_end() {
        check(&[(0, 0, 1, 5), (1, 0, 1, 5), (0, 1, OVER, 0), (1, 1, OVER, 0)], 999, &[10], &[10], 1000);
        check(&[(0, 0, OVER, 0), (1, 0, OVER, 0)], 0, &[], &[], 0);
    }
}
