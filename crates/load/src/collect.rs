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
    unfinished: BTreeMap<u64, LoadInterval>,
    finished: Vec<LoadInterval>,
}

impl<'a> Collector<'a> {
    /// Waits for parts of `workers` workers whose seconds are counted from `origin`.
    pub(crate) fn new(workers: usize, origin: Nanos, on_interval: &'a mut dyn FnMut(&LoadInterval)) -> Collector<'a> {
        let (unfinished, finished) = (BTreeMap::new(), Vec::new());
        Collector { origin, on_interval, workers: vec![0; workers], unfinished, finished }
    }

    /// Takes one part, and gives out the seconds that are complete with it.
    pub(crate) fn add(&mut self, part: &Part) {
        let interval = self.unfinished.entry(part.second).or_insert_with(|| empty(self.origin, part.second));
        interval.counts.merge(&part.counts);
        interval.total.merge(&part.total);
        self.workers[part.worker] = part.next;
        let slowest = self.workers.iter().copied().min().unwrap_or(0);
        // A worker that has finished says it is past everything; the last seconds wait for `finish`, which knows their length.
        if slowest < u64::MAX {
            self.give_out(slowest);
        }
    }

    /// Gives out what is left, the last interval cut at `ended_ns`.
    pub(crate) fn finish(mut self, ended_ns: Nanos) -> Vec<LoadInterval> {
        // Parts of seconds that began after the end are empty: a worker waited for a connection that then was not needed.
        let begun = ended_ns.saturating_sub(self.origin).div_ceil(SECOND);
        let filled = self.unfinished.iter().rev().find(|(_, interval)| interval.counts != Counts::default());
        let end = begun.max(filled.map_or(0, |(&second, _)| second + 1));
        if end > self.finished.len() as u64 {
            let origin = self.origin;
            let last = self.unfinished.entry(end - 1).or_insert_with(|| empty(origin, end - 1));
            last.length_ns = ended_ns.saturating_sub(last.start_ns).min(SECOND);
        }
        self.give_out(end);
        self.finished
    }

    fn give_out(&mut self, end: u64) {
        for second in self.finished.len() as u64..end {
            let interval = self.unfinished.remove(&second).unwrap_or_else(|| empty(self.origin, second));
            (self.on_interval)(&interval);
            self.finished.push(interval);
        }
    }
}

fn empty(origin: Nanos, second: u64) -> LoadInterval {
    // Grows as far as what is merged into it, so a second takes the space its latencies need.
    LoadInterval {
        start_ns: origin + second * SECOND,
        length_ns: SECOND,
        counts: Counts::default(),
        total: Latency::new(),
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
        let intervals = collector.finish(ended_ms * 1_000_000);
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
