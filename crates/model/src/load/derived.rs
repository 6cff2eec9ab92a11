//! What follows from the facts of a load: rates, percentiles, and the doubts that it raises about itself.

use super::{Counts, Failure, LoadEnd, LoadResult};
use crate::SECOND;
use crate::latency::Latency;
use crate::plan::{Arrivals, LoadSpec, Log, Pace};
use crate::statistic::Statistic;
use serde::{Deserialize, Serialize};

/// A percentile of latencies of which some are known only to be longer than something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantile {
    /// This many microseconds.
    Exactly(u64),
    /// More than this many microseconds.
    MoreThan(u64),
}

/// A doubt about the load itself, found by [`LoadResult::doubts`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum LoadDoubt {
    /// N = X * R is off by more than 5 %: the requests in flight are not explained by the good answers and their latencies.
    ///
    /// By Little's law the two agree when every request counts. So what this finds is time spent in requests that did not
    /// count: cut off at the end or failed.
    LittleOff {
        /// N: mean number of requests in flight, of all requests.
        achieved: f64,
        /// X * R, computed from good answers.
        computed: f64,
    },
    /// Fewer requests were in flight than asked for.
    ConcurrencyMissed {
        /// Requests at once that were asked for: connections times the depth of the pipeline.
        asked: f64,
        /// Mean number of requests in flight.
        achieved: f64,
    },
    /// The generator used nearly all the CPU time its threads can have.
    GeneratorSaturated {
        /// Share of its threads' time, 0 to 1.
        share: f64,
    },
    /// So few requests per connection that beginning and draining weigh heavily.
    FewWaves {
        /// Requests per connection.
        waves: f64,
    },
    /// An open loop sent less than 99 % of what its timetable asked for, in the time it asked for.
    RateMissed {
        /// Requests per second that were due.
        asked: f64,
        /// Requests per second that were sent.
        achieved: f64,
    },
    /// The generator began more than 1 % of the requests over a millisecond late although a connection was free for them; more
    /// than so many as few requests can tell.
    LateGenerator {
        /// So many percent, as in [`LoadResult::late_percentile`],
        percent: f64,
        /// were begun no later than this, in microseconds.
        late_us: u64,
    },
    /// In some second a fifth or more of what ended was answered by 403 or 429, and did not count: a firewall, or a limit per
    /// client, takes the load for an attack.
    TurnedAway {
        /// Such answers of the whole load.
        answers: u64,
        /// Their share in the worst second, 0 to 1.
        share: f64,
    },
}

/// Below so many requests per connection a load is mostly its own beginning and end.
const FEW_WAVES: f64 = 5.0;
/// From so many on, beginning and end weigh less than the tolerances of the self-check.
const STEADY_WAVES: f64 = 20.0;

/// An open loop that sends less than this share of its arrivals missed its rate.
const RATE_ACHIEVED: f64 = 0.99;
/// A generator that is later than this, in microseconds, shows in what it measures.
pub(super) const LATE_US: u64 = 1000;

/// The statuses by which firewalls and limits per client refuse,
const REFUSALS: [u16; 2] = [403, 429];
/// and what share of a second's answers is a burst of them: that of the guard against failures.
const BURST_SHARE: f64 = 0.2;
/// Fewer in a second are no burst.
const BURST_ANSWERS: u64 = 10;

/// Neighbouring values of a histogram with three significant digits differ by no more than a thousandth, twice that here.
const PRECISION: f64 = 1.002;

impl LoadResult {
    /// Length of the window in seconds.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.ended_ns.saturating_sub(self.started_ns) as f64 / SECOND as f64
    }

    /// Good answers per second of the window; 0 for an empty window. Those that came after it are not among them.
    #[must_use]
    pub fn goodput(&self) -> f64 {
        self.per_second(self.good_in_time())
    }

    /// Bytes received per second of the window, likewise.
    #[must_use]
    pub fn bytes_in_rate(&self) -> f64 {
        self.per_second(self.counts.bytes_in.saturating_sub(self.late.bytes_in))
    }

    /// Requests sent per second of the window, however long their answers take. All were due within it; those that the generator itself
    /// was late with at its end are sent behind it.
    #[must_use]
    pub fn sent_rate(&self) -> f64 {
        self.per_second(self.sent())
    }

    /// Bytes sent per second of the window, likewise.
    #[must_use]
    pub fn bytes_out_rate(&self) -> f64 {
        self.per_second(self.counts.bytes_out)
    }

    /// Good answers within the window.
    #[must_use]
    pub fn good_in_time(&self) -> u64 {
        self.counts.good.saturating_sub(self.late.good)
    }

    fn per_second(&self, n: u64) -> f64 {
        let seconds = self.seconds();
        if seconds > 0.0 { n as f64 / seconds } else { 0.0 }
    }

    /// Mean number of requests in flight over the window.
    #[must_use]
    pub fn concurrency(&self) -> f64 {
        let window = self.ended_ns.saturating_sub(self.started_ns);
        if window == 0 { 0.0 } else { self.in_flight_ns as f64 / window as f64 }
    }

    /// The smallest latency in microseconds that `percent` of the requests did not exceed; `None` without any.
    ///
    /// Requests without an answer enter with the latency they had reached. As they would have taken longer, the percentile lies
    /// between the one of all those values and the one in which they are infinite (Kaplan and Meier's bounds, for cut off
    /// values that may each be anywhere above). Where the two agree to the histogram's own precision it is known.
    #[must_use]
    pub fn percentile(&self, percent: f64) -> Option<Quantile> {
        percentile_of(&self.total, &self.unanswered.latency, percent)
    }

    /// How long after they were due requests or pages were asked for, though connections were free; `None` where nothing is due
    /// at a time of its own.
    #[must_use]
    pub fn lateness(&self) -> Option<&Latency> {
        let of_users = || self.sessions.as_ref().map(|sessions| &sessions.lateness);
        self.open.as_ref().map(|open| &open.lateness).or_else(of_users).filter(|lateness| !lateness.is_empty())
    }

    /// The rarest percentile of [`LoadResult::lateness`] that there are values enough for, up to the 99th: which, and what it is
    /// in microseconds.
    #[must_use]
    pub fn late_percentile(&self) -> Option<(f64, u64)> {
        let lateness = self.lateness()?;
        let supported = |percent: &f64| lateness.len() >= Statistic::Percentile(*percent).needs();
        let percent = [99.0, 95.0, 90.0, 50.0].into_iter().find(supported)?;
        Some((percent, lateness.percentile_us(percent)?))
    }

    /// Requests begun: answered, failed, abandoned by their users, or in flight at the end.
    #[must_use]
    pub fn sent(&self) -> u64 {
        let abandoned = self.sessions.as_ref().map_or(0, |sessions| sessions.abandoned);
        self.counts.good + self.counts.failures() + abandoned + self.in_flight
    }

    /// All doubts about this load, which `spec` asked for.
    #[must_use]
    pub fn doubts(&self, spec: &LoadSpec) -> Vec<LoadDoubt> {
        let pace = self.rate_missed(spec).into_iter().chain(self.concurrency_missed(spec));
        pace.chain(self.turned_away()).chain(self.self_check(spec)).collect()
    }

    /// Whether somebody in front of the pages refused, for a second at least.
    fn turned_away(&self) -> Option<LoadDoubt> {
        // What a check expects is no refusal.
        let failed = |counts: &Counts| {
            [Failure::Status, Failure::Check].iter().filter_map(|cause| counts.failed.get(cause)).sum::<u64>()
        };
        let of_status =
            |counts: &Counts, status: u16| counts.statuses.get(&status).copied().unwrap_or(0).min(failed(counts));
        let ended = |counts: &Counts| counts.good + counts.failures();
        let seconds = || self.intervals.iter().map(|interval| &interval.counts).filter(|&counts| ended(counts) > 0);
        let shares = |status: u16| seconds().map(move |counts| of_status(counts, status) as f64 / ended(counts) as f64);
        // A page that is forbidden to everybody is so all the time.
        let forbidden = |status: u16| {
            let (least, most) = shares(status).fold((1.0_f64, 0.0_f64), |(a, b), x| (a.min(x), b.max(x)));
            status == 403 && least > most / 2.0
        };
        let refusals: Vec<u16> = REFUSALS.into_iter().filter(|&status| !forbidden(status)).collect();
        let refused =
            |counts: &Counts| refusals.iter().map(|&status| of_status(counts, status)).sum::<u64>().min(failed(counts));
        let bursts = seconds().filter(|&counts| refused(counts) >= BURST_ANSWERS);
        let share = bursts.map(|counts| refused(counts) as f64 / ended(counts) as f64).fold(0.0, f64::max);
        (share >= BURST_SHARE).then(|| LoadDoubt::TurnedAway { answers: refused(&self.counts), share })
    }

    /// A closed loop keeps each of its connections as full as its pipeline allows.
    fn concurrency_missed(&self, spec: &LoadSpec) -> Option<LoadDoubt> {
        let ended = (self.counts.good + self.counts.failures()) as f64;
        let asked = f64::from(self.connections) * f64::from(spec.pipeline.max(1));
        let achieved = self.concurrency();
        let closed = self.open.is_none() && self.sessions.is_none();
        let missed = closed && achieved < 0.9 * asked && ended / asked >= STEADY_WAVES;
        missed.then_some(LoadDoubt::ConcurrencyMissed { asked, achieved })
    }

    /// Requests per second that the timetable had for an open loop: of those that became due, over the time they were due in.
    ///
    /// `None` also for a log of which only a number of requests was sent: what is kept of it does not tell when those were due.
    #[must_use]
    pub fn asked_rate(&self, spec: &LoadSpec) -> Option<f64> {
        let arrived = self.open.as_ref()?.arrived;
        // A number of requests ends with its last answer, which may be long after it was due.
        let seconds = match (&self.end, &spec.pace) {
            (_, Pace::WhenFree) => return None,
            (LoadEnd::Duration | LoadEnd::Stopped, _) => self.seconds(),
            // By chance there may be more than the whole table is expected to have.
            (LoadEnd::Requests, Pace::Timetable(table)) => {
                table.reached(arrived as f64).unwrap_or(table.length_ns()) as f64 / SECOND as f64
            }
            (LoadEnd::Requests, Pace::Logged) => logged_seconds(spec.log.as_ref()?, arrived)?,
        };
        (seconds > 0.0).then(|| arrived as f64 / seconds)
    }

    /// Whether an open loop fell behind its timetable, by more than chance explains.
    fn rate_missed(&self, spec: &LoadSpec) -> Option<LoadDoubt> {
        let (open, asked) = (self.open.as_ref()?, self.asked_rate(spec)?);
        let (own_time, chance) = match (self.end == LoadEnd::Requests, &spec.pace) {
            (true, pace) => {
                let by_chance = matches!(pace, Pace::Timetable(table) if table.arrivals == Arrivals::Poisson);
                let chance = if by_chance { 4.0 / (open.arrived as f64).sqrt() } else { 0.0 };
                // The end may be one request's own time, be it the one that timed out.
                let longest = |times: &Latency| times.range_us().map_or(0, |(_, max)| max);
                (longest(&open.service).max(longest(&self.unanswered.latency)) as f64 / 1e6, chance)
            }
            (false, _) => (0.0, 0.0),
        };
        let achieved = self.sent() as f64 / (self.seconds() - own_time);
        let missed = achieved > 0.0 && achieved < asked * (RATE_ACHIEVED - chance);
        missed.then_some(LoadDoubt::RateMissed { asked, achieved })
    }

    /// Share of the CPU time its threads could have had that the generator spent computing, 0 to 1.
    #[must_use]
    pub fn generator_share(&self) -> f64 {
        let threads = f64::from(self.generator.threads);
        let at_once =
            if self.generator.cpus.is_empty() { threads } else { threads.min(self.generator.cpus.len() as f64) };
        let available = self.seconds() * SECOND as f64 * at_once;
        // What it used after the window is counted, too.
        if available > 0.0 { (self.generator.cpu_ns as f64 / available).min(1.0) } else { 0.0 }
    }

    /// The doubts this load, which `spec` asked for, raises about itself.
    ///
    /// Little's law uses good answers only, so it is not computed when more than 1 % failed or any timed out: a single timeout can
    /// be longer than all the rest. Nor is it when more than 5 % came after the window, as it holds for what neither grows nor
    /// shrinks.
    ///
    /// A generator that asks the kernel again and again uses all its CPU time, whatever it does; there only its lateness tells.
    #[must_use]
    pub fn self_check(&self, spec: &LoadSpec) -> Vec<LoadDoubt> {
        let mut doubts = Vec::new();
        let asked = f64::from(self.connections);
        let ended = self.counts.good + self.counts.failures();
        if ended == 0 {
            return doubts;
        }
        let waves = ended as f64 / asked;
        // An open loop uses the connections it needs.
        let closed = self.open.is_none() && self.sessions.is_none();
        if closed && waves < FEW_WAVES && self.connections > 1 {
            doubts.push(LoadDoubt::FewWaves { waves });
        }
        let achieved = self.concurrency();
        let abandoned = self.sessions.as_ref().is_some_and(|sessions| sessions.abandoned > 0);
        if self.counts.failures() * 100 <= ended
            && !abandoned
            && self.late.good * 20 <= self.counts.good
            && !self.counts.failed.contains_key(&Failure::Timeout)
            && let Some(mean) = self.open.as_ref().map_or(&self.total, |open| &open.service).mean_us()
        {
            let computed = self.goodput() * mean / 1e6;
            if (computed / achieved - 1.0).abs() > 0.05 && waves >= STEADY_WAVES {
                doubts.push(LoadDoubt::LittleOff { achieved, computed });
            }
        }
        let share = self.generator_share();
        if share > 0.9 && !spec.busy_poll {
            doubts.push(LoadDoubt::GeneratorSaturated { share });
        }
        let late = self.late_percentile().filter(|&(_, late_us)| late_us > LATE_US);
        doubts.extend(late.map(|(percent, late_us)| LoadDoubt::LateGenerator { percent, late_us }));
        doubts
    }
}

/// How long the timetable of so many requests is that are a whole log: the last one, too, has a distance to a next one.
fn logged_seconds(log: &Log, arrived: u64) -> Option<f64> {
    let distances = log.used.checked_sub(1).filter(|&distances| distances > 0 && arrived == log.used)?;
    Some(log.span_ns as f64 / SECOND as f64 / distances as f64 * arrived as f64)
}

/// A percentile of values that are known and of some that are known only to be more than something: see
/// [`LoadResult::percentile`].
#[must_use]
pub fn percentile_of(known: &Latency, at_least: &Latency, percent: f64) -> Option<Quantile> {
    if at_least.is_empty() {
        return known.percentile_us(percent).map(Quantile::Exactly);
    }
    let mut all = known.clone();
    all.merge(at_least);
    let lowest = all.percentile_us(percent)?;
    // The same rank, counted among those that are known; nothing known stands at a rank beyond them.
    let rank = (percent / 100.0 * all.len() as f64).ceil().max(1.0);
    let count = known.len() as f64;
    let highest = (rank <= count).then(|| known.percentile_us(rank / count * 100.0)).flatten();
    let same = |highest: u64| highest as f64 <= lowest as f64 * PRECISION + 1.0;
    Some(if highest.is_some_and(same) { Quantile::Exactly(lowest) } else { Quantile::MoreThan(lowest) })
}
