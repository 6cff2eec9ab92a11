//! When requests begin: as soon as a connection is free, by a timetable, or as they were logged.
//!
//! A timetable is turned inside out. Its rate, added up over time, says how many requests are expected by each instant; the
//! arrivals are points on that count, evenly, in groups or at exponential distances, and the inverse says when each is due. So
//! stages, ramps and chance need no cases of their own, and nothing is ever drawn or kept ahead of its time.

use crate::stop::Allowance;
use model::plan::{Arrivals, Recording, Stage, Timetable};
use model::{Nanos, SECOND};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// When the next request may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    /// Now; it is taken. Its latency counts from when it was due, or from when it begins.
    Now(Option<Nanos>),
    /// Not before then.
    At(Nanos),
    /// There is none any more.
    Never,
}

/// One worker's requests in time.
pub(crate) enum Pacer<'a> {
    /// Closed loop: whenever a connection is free, as long as there are requests left, and not after `until`.
    WhenFree { allowance: Allowance<'a>, until: Nanos },
    /// Open loop.
    Timetable(Calls<'a>),
}

impl<'a> Pacer<'a> {
    /// Asks at `now` for the next request.
    pub(crate) fn next(&mut self, now: Nanos) -> Due {
        match self {
            Pacer::WhenFree { allowance, until } => {
                if now < *until && allowance.take() {
                    Due::Now(None)
                } else {
                    Due::Never
                }
            }
            Pacer::Timetable(calls) => match calls.peek() {
                Some(at) if at <= now => {
                    calls.pop();
                    Due::Now(Some(at))
                }
                Some(at) => Due::At(at),
                None => Due::Never,
            },
        }
    }

    /// Whether a closed loop that drains begins nothing any more.
    pub(crate) fn drains(&self, now: Nanos) -> bool {
        matches!(self, Pacer::WhenFree { until, .. } if now >= *until)
    }

    /// The timetable's, if there is one.
    pub(crate) fn calls(&mut self) -> Option<&mut Calls<'a>> {
        match self {
            Pacer::WhenFree { .. } => None,
            Pacer::Timetable(calls) => Some(calls),
        }
    }
}

/// One worker's share of a timetable's arrivals, in order.
pub(crate) struct Calls<'a> {
    moments: Moments<'a>,
    origin: Nanos,
    end: Nanos,
    left: u64,
    next: Option<Nanos>,
}

/// Which of how many workers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    /// Counted from 0.
    pub(crate) worker: u32,
    /// How many there are.
    pub(crate) of: u32,
}

/// Where a worker's arrivals come from.
enum Moments<'a> {
    /// Rates.
    Table { expected: Expected, points: Points },
    /// What was logged, beginning with `next` and going on in steps.
    Log { recording: &'a Recording, next: usize, step: usize },
}

impl<'a> Calls<'a> {
    /// The part's arrivals of a timetable that begins at `origin` and of which only the first `length` counts, and of all
    /// workers' arrivals only the first `requests`.
    pub(crate) fn new(
        table: &Timetable,
        part: Part,
        origin: Nanos,
        length: Nanos,
        requests: Option<u64>,
        seed: u64,
    ) -> Calls<'a> {
        let points = Points::new(table.arrivals, part, seed);
        let moments = Moments::Table { expected: Expected::new(&table.stages), points };
        Calls::of(moments, part, origin, length, requests)
    }

    /// The part's arrivals of a log, limited likewise.
    pub(crate) fn logged(
        recording: &'a Recording,
        part: Part,
        origin: Nanos,
        length: Nanos,
        requests: Option<u64>,
    ) -> Calls<'a> {
        let all = recording.len() as u64;
        let moments = Moments::Log { recording, next: part.worker as usize, step: part.of as usize };
        Calls::of(moments, part, origin, length, Some(requests.map_or(all, |requests| requests.min(all))))
    }

    fn of(moments: Moments<'a>, part: Part, origin: Nanos, length: Nanos, requests: Option<u64>) -> Calls<'a> {
        let (worker, of) = (u64::from(part.worker), u64::from(part.of));
        let mut calls = Calls {
            moments,
            origin,
            end: origin.saturating_add(length),
            left: requests.map_or(u64::MAX, |n| n / of + u64::from(worker < n % of)),
            next: None,
        };
        calls.pop();
        calls
    }

    /// When the next one is due.
    pub(crate) fn peek(&self) -> Option<Nanos> {
        self.next
    }

    /// Goes on to the one after it.
    pub(crate) fn pop(&mut self) {
        let granted = self.left > 0;
        self.left -= u64::from(granted);
        let at = if granted { self.moments.next() } else { None };
        self.next = at.map(|at| self.origin.saturating_add(at)).filter(|&at| at < self.end);
    }

    /// Takes the next one if it is due before `end`.
    pub(crate) fn take_before(&mut self, end: Nanos) -> Option<Nanos> {
        let at = self.next.filter(|&at| at < end)?;
        self.pop();
        Some(at)
    }

    /// Ends them at `at`, unless they end before. Says whether it did.
    pub(crate) fn end_at(&mut self, at: Nanos) -> bool {
        let sooner = at < self.end;
        if sooner {
            self.end = at;
            self.next = self.next.filter(|&next| next < at);
        }
        sooner
    }

    /// From then on nothing is due any more.
    pub(crate) fn end(&self) -> Nanos {
        self.end
    }

    /// Whether all requests asked for have been taken, be the end of time not reached.
    pub(crate) fn is_complete(&self) -> bool {
        self.next.is_none() && self.left == 0
    }
}

impl Moments<'_> {
    fn next(&mut self) -> Option<Nanos> {
        match self {
            Moments::Table { expected, points } => expected.reached(points.next()),
            Moments::Log { recording, next, step } => {
                let at = recording.at_ns(*next);
                *next += *step;
                at
            }
        }
    }
}

/// Arrivals as points on the axis of expected arrivals: their mean distance is 1 over all workers.
enum Points {
    /// The next one's number, of so many workers, in groups of so many.
    Even { number: u64, workers: u64, group: u64 },
    /// Each worker is one of several independent sources, which together are again such a source.
    Poisson { last: f64, workers: f64, chance: Box<ChaCha8Rng> },
}

impl Points {
    fn new(arrivals: Arrivals, part: Part, seed: u64) -> Points {
        let even = |group| Points::Even {
            number: u64::from(part.worker),
            workers: u64::from(part.of),
            group: u64::from(group),
        };
        match arrivals {
            Arrivals::Even => even(1),
            Arrivals::Bursts { size } => even(size.max(1)),
            Arrivals::Poisson => {
                let mut chance = Box::new(ChaCha8Rng::seed_from_u64(seed));
                chance.set_stream(u64::from(part.worker));
                Points::Poisson { last: 0.0, workers: f64::from(part.of), chance }
            }
        }
    }

    fn next(&mut self) -> f64 {
        match self {
            Points::Even { number, workers, group } => {
                let point = *number / *group * *group;
                *number += *workers;
                point as f64
            }
            Points::Poisson { last, workers, chance } => {
                *last -= *workers * uniform(chance).ln();
                *last
            }
        }
    }
}

/// The inverse of a timetable's expected arrivals, asked in ascending order.
struct Expected {
    stages: Vec<Stage>,
    // The stage asked about last, and when and with how many expected arrivals it begins.
    stage: usize,
    begins: Nanos,
    before: f64,
}

impl Expected {
    fn new(stages: &[Stage]) -> Expected {
        Expected { stages: stages.to_vec(), stage: 0, begins: 0, before: 0.0 }
    }

    /// When so many arrivals are expected to be exceeded, from the table's beginning; `None` when the table ends before.
    fn reached(&mut self, count: f64) -> Option<Nanos> {
        loop {
            let stage = self.stages.get(self.stage)?;
            let whole = stage.expected(stage.length_ns);
            let within = count - self.before;
            if within < whole {
                return Some(self.begins.saturating_add(within_stage(stage, within)));
            }
            self.before += whole;
            self.begins = self.begins.saturating_add(stage.length_ns);
            self.stage += 1;
        }
    }
}

/// Solves r t + (s / 2) t² = count for t, where r is the rate at the stage's beginning and s its slope, in the form that does not
/// lose digits and also holds for s = 0.
fn within_stage(stage: &Stage, count: f64) -> Nanos {
    if count <= 0.0 && stage.from <= 0.0 {
        return 0;
    }
    let slope = (stage.to - stage.from) / (stage.length_ns as f64 / SECOND as f64);
    let root = (stage.from * stage.from + 2.0 * slope * count).max(0.0).sqrt();
    (2.0 * count / (stage.from + root) * SECOND as f64).round() as Nanos
}

/// Chance above 0 and at most 1, in the 53 bits that a double holds: its logarithm is finite.
pub(crate) fn uniform(chance: &mut ChaCha8Rng) -> f64 {
    ((chance.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;

    fn stages(stages: &[(Nanos, f64, f64)]) -> Vec<Stage> {
        stages.iter().map(|&(length_ns, from, to)| Stage { length_ns, from, to }).collect()
    }

    /// All arrivals of all workers within `length`, in order, counted from the origin.
    fn arrivals(table: &Timetable, workers: u32, length: Nanos, requests: Option<u64>) -> Vec<Nanos> {
        const ORIGIN: Nanos = 1_000_000_007;
        let mut all = Vec::new();
        for worker in 0..workers {
            let mut calls = Calls::new(table, Part { worker, of: workers }, ORIGIN, length, requests, 42);
            while let Some(at) = calls.peek() {
                all.push(at - ORIGIN);
                calls.pop();
            }
        }
        all.sort_unstable();
        all
    }

    /// Even arrivals of a timetable in milliseconds, the same however many workers share them.
    #[track_caller]
    fn check(table: &[(Nanos, f64, f64)], arrive: Arrivals, length: Nanos, requests: Option<u64>, expected_ms: &[u64]) {
        let table = Timetable { stages: stages(table), arrivals: arrive };
        for workers in [1, 2, 3, 7] {
            let found: Vec<_> =
                arrivals(&table, workers, length, requests).iter().map(|at| (at + MS / 2) / MS).collect();
            assert_eq!(found, expected_ms, "{workers} workers");
        }
    }

    #[test]
    fn even_arrivals_follow_the_rate() {
        let end = Nanos::MAX;
        check(&[(end, 50.0, 50.0)], Arrivals::Even, 100 * MS, None, &[0, 20, 40, 60, 80]);
        check(&[(end, 50.0, 50.0)], Arrivals::Even, end, Some(3), &[0, 20, 40]);
        check(&[(100 * MS, 50.0, 50.0)], Arrivals::Even, end, None, &[0, 20, 40, 60, 80]);
        check(&[(40 * MS, 50.0, 50.0), (end, 100.0, 100.0)], Arrivals::Even, 70 * MS, None, &[0, 20, 40, 50, 60]);
        check(&[(40 * MS, 0.0, 0.0), (end, 100.0, 100.0)], Arrivals::Even, 60 * MS, None, &[40, 50]);
        check(&[(0, 5.0, 5.0), (end, 100.0, 100.0)], Arrivals::Even, 20 * MS, None, &[0, 10]);
    }

    #[test]
    fn a_ramp_speeds_up_and_slows_down() {
        // From 0 to 200 a second within 200 ms: n arrivals after sqrt(n / 500) seconds.
        check(
            &[(200 * MS, 0.0, 200.0)],
            Arrivals::Even,
            Nanos::MAX,
            None,
            &[0, 45, 63, 77, 89, 100, 110, 118, 126, 134, 141, 148, 155, 161, 167, 173, 179, 184, 190, 195],
        );
        check(&[(100 * MS, 100.0, 0.0)], Arrivals::Even, Nanos::MAX, None, &[0, 11, 23, 37, 55]);
    }

    #[test]
    fn what_was_due_before_the_end_is_due_behind_it() {
        let table = Timetable::constant(100.0, Arrivals::Even);
        let calls = Calls::new(&table, Part { worker: 0, of: 1 }, 0, 30 * MS, None, 1);
        let mut late = Pacer::Timetable(calls);
        assert_eq!(late.next(40 * MS), Due::Now(Some(0)));
        // Those that no connection is free for remain unsent.
        let unsent = std::iter::from_fn(|| late.calls()?.take_before(30 * MS));
        assert_eq!(unsent.count(), 2);
        assert_eq!(late.next(40 * MS), Due::Never);
    }

    #[test]
    fn bursts_come_together() {
        let bursts = Arrivals::Bursts { size: 3 };
        check(&[(Nanos::MAX, 100.0, 100.0)], bursts, 90 * MS, None, &[0, 0, 0, 30, 30, 30, 60, 60, 60]);
    }

    /// Kolmogorov and Smirnov: the largest distance between the distances' distribution and the exponential one, against the
    /// critical value for a level of 1 in 1000, sqrt(ln(2 / 0.001) / 2) / sqrt(n). The seed is fixed, so it always passes or never.
    #[test]
    fn poisson_distances_are_exponential() {
        let table = Timetable::constant(2000.0, Arrivals::Poisson);
        for workers in [1, 4] {
            let at = arrivals(&table, workers, 10 * SECOND, None);
            let mut gaps: Vec<f64> =
                at.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / SECOND as f64 * 2000.0).collect();
            gaps.sort_by(f64::total_cmp);
            let n = gaps.len() as f64;
            let distance = gaps.iter().enumerate().fold(0.0_f64, |largest, (i, gap)| {
                let model = 1.0 - (-gap).exp();
                largest.max((model - i as f64 / n).abs()).max(((i + 1) as f64 / n - model).abs())
            });
            assert!(distance < 1.95 / n.sqrt(), "{distance} over {n} distances of {workers} workers");
            assert!((n / 20_000.0 - 1.0).abs() < 0.03, "{n}");
        }
    }
}
