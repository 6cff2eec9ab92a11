//! What a load did: counts, latencies and the generator's own account of itself.
//!
//! A failure is never throughput. Requests still in flight when the load stopped are reported as such, not as failures and not
//! as answers. The self-check is derived here, so that every reader of a stored load comes to the same doubts.

use crate::latency::{Latency, Packed};
use crate::plan::{Arrivals, LoadSpec, Log, Pace, TlsVersion};
use crate::run::HostFacts;
use crate::statistic::Statistic;
use crate::{Nanos, SECOND};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Why a request did not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// Nobody listens: the connection was refused.
    Refused,
    /// The connection was reset.
    Reset,
    /// No complete answer within the request's own time.
    Timeout,
    /// The server closed before the answer was complete.
    ClosedEarly,
    /// The answer was not HTTP.
    BadResponse,
    /// A complete answer whose body length differs from the first good one's.
    LengthDiffers,
    /// A complete answer with a status other than 2xx; [`Counts::statuses`] tells which.
    Status,
    /// A proxy opened no tunnel to the server: it refused, or did not know how.
    Proxy,
    /// TLS could not come up or go on: a certificate that is not trusted, no version in common.
    Tls,
    /// A complete answer of which something did not hold that was asked of it: [`crate::plan::Check`].
    Check,
    /// This machine could not send: no free port, no file descriptor.
    Local,
}

/// How many requests ended how.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Complete answers of the expected length that are 2xx, or what the load's checks ask for.
    pub good: u64,
    /// Failures by cause.
    pub failed: BTreeMap<Failure, u64>,
    /// Complete answers by HTTP status, good ones included.
    pub statuses: BTreeMap<u16, u64>,
    /// Bytes received: heads and bodies.
    pub bytes_in: u64,
    /// Bytes sent.
    pub bytes_out: u64,
    /// Connections opened.
    pub connects: u64,
    /// Requests sent a second time, on a new connection, because a kept one ended without a byte of an answer. Each is counted
    /// above once, as it ended, and its latency goes from its first start. A few are idle connections that the server closed;
    /// many are a server that reads requests and dies of them.
    #[serde(default)]
    pub retries: u64,
}

impl Counts {
    /// All failures together.
    #[must_use]
    pub fn failures(&self) -> u64 {
        self.failed.values().sum()
    }

    /// Adds `other`.
    pub fn merge(&mut self, other: &Counts) {
        self.good += other.good;
        self.bytes_in += other.bytes_in;
        self.bytes_out += other.bytes_out;
        self.connects += other.connects;
        self.retries += other.retries;
        for (&cause, &n) in &other.failed {
            *self.failed.entry(cause).or_default() += n;
        }
        for (&status, &n) in &other.statuses {
            *self.statuses.entry(status).or_default() += n;
        }
    }
}

/// What happened within about one second of the load.
#[derive(Debug, Clone)]
pub struct LoadInterval {
    /// When the interval began.
    pub start_ns: Nanos,
    /// How long it lasted.
    pub length_ns: Nanos,
    /// What ended in it.
    pub counts: Counts,
    /// Total latencies of the good answers that ended in it.
    pub total: Packed,
}

/// Why a load ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadEnd {
    /// All requests asked for were made.
    Requests,
    /// The time asked for was over.
    Duration,
    /// Somebody stopped it: a guard or the user.
    Stopped,
}

/// The generator's account of itself.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Generator {
    /// Worker threads used.
    pub threads: u32,
    /// CPU time of those threads during the window.
    pub cpu_ns: Nanos,
    /// CPUs the threads were allowed to run on; empty when not restricted.
    pub cpus: Vec<u32>,
    /// The other machine that they ran on, if they did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub away: Option<Away>,
}

/// A load that was sent by another machine than the one that kept its time.
///
/// All instants of the load are those of this machine's clock: the other clock's, less `offset_ns`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Away {
    /// How it was reached: `ssh:user@host`.
    pub from: String,
    /// What it is.
    pub host: HostFacts,
    /// Its monotonic clock less ours, when the load began.
    pub offset_ns: i64,
    /// Instants are off by no more than this, all to the same side: half of the shortest round trip, and by how much the clocks
    /// went apart from the load's beginning to its end. Lengths of time are the other clock's own, and not concerned.
    pub uncertainty_ns: Nanos,
    /// The shortest round trip of a message between the two.
    pub round_trip_ns: Nanos,
}

/// What two sides agreed on in TLS.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsFacts {
    /// The version.
    pub version: TlsVersion,
    /// The suite, by IANA's name as rustls has it: `TLS13_AES_256_GCM_SHA384`.
    pub suite: String,
    /// The group in which the session's key was agreed on, such as `X25519`.
    pub group: Option<String>,
    /// Bits of the key in the server's certificate, if it is of RSA or on one of NIST's curves.
    pub key_bits: Option<u32>,
}

/// One load, complete: what the engine hands over and the store keeps.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LoadResult {
    /// Connections asked for.
    pub connections: u32,
    /// First request's start.
    pub started_ns: Nanos,
    /// End of the window: last answer, or the moment the load was stopped.
    pub ended_ns: Nanos,
    /// Why it ended.
    pub end: LoadEnd,
    /// All counts.
    pub counts: Counts,
    /// What of these an open loop was still waited for when its window was over. They are answers, but no throughput of the window.
    #[serde(default)]
    pub late: Counts,
    /// About one entry per second, in order; their counts add up to `counts`. Stored beside the rest, as are the histograms.
    #[serde(skip)]
    pub intervals: Vec<LoadInterval>,
    /// Latency of good answers: from the start (connect included when the request had to connect) to the last byte.
    #[serde(skip)]
    pub total: Latency,
    /// Requests that never got their answer: how long they had waited for it.
    #[serde(skip)]
    pub unanswered: Unanswered,
    /// Latency of good answers from the start to the first byte.
    #[serde(skip)]
    pub first_byte: Latency,
    /// Time to connect, of every connection that was opened.
    #[serde(skip)]
    pub connect: Latency,
    /// Requests begun and neither answered nor failed at the end.
    pub in_flight: u64,
    /// Sum over all requests, cut off ones included, of the time they were in flight.
    pub in_flight_ns: Nanos,
    /// Length of the first good body.
    pub body_bytes: Option<u64>,
    /// One example per kind of failure, as text: what was received or what the kernel said.
    pub examples: BTreeMap<Failure, String>,
    /// One example, as text, of how a kept connection ended before its request was sent again ([`Counts::retries`]).
    #[serde(default)]
    pub retry_example: Option<String>,
    /// Time for the TLS handshake, of every connection that made one.
    #[serde(skip)]
    pub handshake: Latency,
    /// What the first answer calls its server (`Server`), if it came and does.
    #[serde(default)]
    pub software: Option<String>,
    /// What TLS came to on the first connection that it came up on.
    #[serde(default)]
    pub tls: Option<TlsFacts>,
    /// What only a load with a timetable has.
    #[serde(default)]
    pub open: Option<OpenLoop>,
    /// What only a load of users has.
    #[serde(default)]
    pub sessions: Option<Sessions>,
    /// The generator's own account.
    pub generator: Generator,
}

/// What is known of requests that never got their answer: each time would have been longer than the one that is counted here.
///
/// They are those that timed out and those that their users abandoned. In an open loop they are also those that were in flight
/// or unsent when it ended: it had waited for them as long as for all others. A closed loop ends whenever it likes, and what is
/// in flight then is cut off by that alone, as likely a fast one as a slow one.
#[derive(Debug, Clone, Default)]
pub struct Unanswered {
    /// Of [`LoadResult::total`].
    pub latency: Latency,
    /// Of [`LoadResult::first_byte`]. Where there was a first byte, and nothing good behind it, this is when it came.
    pub first_byte: Latency,
    /// Of [`OpenLoop::service`]; nothing else has it.
    pub service: Latency,
}

impl Unanswered {
    /// An empty account with room for every value, so that recording never allocates.
    #[must_use]
    pub fn preallocated() -> Unanswered {
        let [latency, first_byte, service] = [(); 3].map(|()| Latency::preallocated());
        Unanswered { latency, first_byte, service }
    }

    /// Adds `other`.
    pub fn merge(&mut self, other: &Unanswered) {
        self.latency.merge(&other.latency);
        self.first_byte.merge(&other.first_byte);
        self.service.merge(&other.service);
    }
}

/// An open loop's account: requests came by a timetable, and each one's latency counts from when it was due.
///
/// Every arrival is good, failed, in flight at the end, or unsent.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct OpenLoop {
    /// Requests that became due.
    pub arrived: u64,
    /// Requests of these that no connection was free for until the end.
    pub unsent: u64,
    /// Latency of good answers from when they were really sent, as a closed loop would count.
    #[serde(skip)]
    pub service: Latency,
    /// How late the generator itself began requests that had a free connection when they became due.
    #[serde(skip)]
    pub lateness: Latency,
}

impl OpenLoop {
    /// Adds `other`.
    pub fn merge(&mut self, other: &OpenLoop) {
        self.arrived += other.arrived;
        self.unsent += other.unsent;
        self.service.merge(&other.service);
        self.lateness.merge(&other.lateness);
    }
}

/// What became of users.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Sessions {
    /// Users who came.
    pub users: u64,
    /// Users who meant to come and found no connections free until the end.
    pub turned_away: u64,
    /// Pages that arrived with all that belongs to them.
    pub pages: u64,
    /// Pages of which something failed.
    pub incomplete: u64,
    /// Users who gave up on a page and left.
    pub gave_up: u64,
    /// Times that a page was asked for again before it was there.
    pub reloads: u64,
    /// Requests abandoned on their way by users who gave up or reloaded. They are neither answers nor failures.
    pub abandoned: u64,
    /// Times that a user came back for another page.
    pub returned: u64,
    /// From the click, or from when the user meant to come, to the last byte of everything; of pages that arrived.
    #[serde(skip)]
    pub page: Latency,
    /// The same of pages that users gave up on, of which something timed out, that were still awaited at the end, or that whoever
    /// was turned away never asked for: they would have taken longer.
    #[serde(skip)]
    pub page_at_least: Latency,
    /// How long after it was due a page was asked for, though connections were free: the generator's own delay.
    #[serde(skip)]
    pub lateness: Latency,
}

impl Sessions {
    /// Adds `other`.
    pub fn merge(&mut self, other: &Sessions) {
        self.users += other.users;
        self.turned_away += other.turned_away;
        self.pages += other.pages;
        self.incomplete += other.incomplete;
        self.gave_up += other.gave_up;
        self.reloads += other.reloads;
        self.abandoned += other.abandoned;
        self.returned += other.returned;
        self.page.merge(&other.page);
        self.page_at_least.merge(&other.page_at_least);
        self.lateness.merge(&other.lateness);
    }
}

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
}

/// Below so many requests per connection a load is mostly its own beginning and end.
const FEW_WAVES: f64 = 5.0;
/// From so many on, beginning and end weigh less than the tolerances of the self-check.
const STEADY_WAVES: f64 = 20.0;

/// An open loop that sends less than this share of its arrivals missed its rate.
const RATE_ACHIEVED: f64 = 0.99;
/// A generator that is later than this, in microseconds, shows in what it measures.
const LATE_US: u64 = 1000;

/// Neighbouring values of a histogram with three significant digits differ by no more than a thousandth, twice that here.
const PRECISION: f64 = 1.002;

impl LoadResult {
    /// A load of one thread before anything came of it.
    #[must_use]
    pub fn empty() -> LoadResult {
        LoadResult {
            connections: 0,
            started_ns: 0,
            ended_ns: 0,
            end: LoadEnd::Duration,
            counts: Counts::default(),
            late: Counts::default(),
            intervals: Vec::new(),
            total: Latency::new(),
            unanswered: Unanswered::default(),
            first_byte: Latency::new(),
            connect: Latency::new(),
            in_flight: 0,
            in_flight_ns: 0,
            body_bytes: None,
            examples: BTreeMap::new(),
            retry_example: None,
            handshake: Latency::new(),
            software: None,
            tls: None,
            open: None,
            sessions: None,
            generator: Generator { threads: 1, cpu_ns: 0, cpus: Vec::new(), away: None },
        }
    }

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

    /// Requests sent per second of the window. All are sent within it, however long their answers take.
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
        self.rate_missed(spec).into_iter().chain(self.concurrency_missed(spec)).chain(self.self_check(spec)).collect()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Timetable;
    use std::sync::Arc;

    /// A load of `good` answers of `latency_us` over ten seconds with that mean number in flight, with no doubts of its own.
    fn load(connections: u32, in_flight: f64, good: u64, latency_us: u64) -> LoadResult {
        let mut total = Latency::new();
        (0..good).for_each(|_| total.record(latency_us));
        LoadResult {
            connections,
            started_ns: SECOND,
            ended_ns: 11 * SECOND,
            counts: Counts { good, ..Counts::default() },
            first_byte: total.clone(),
            total,
            in_flight_ns: (in_flight * 10.0 * SECOND as f64) as Nanos,
            generator: Generator { threads: 2, cpu_ns: SECOND, cpus: vec![1], away: None },
            ..LoadResult::empty()
        }
    }

    #[track_caller]
    fn check(load: &LoadResult, expected: &[&str]) {
        check_of(load, &LoadSpec::of("l", "/"), expected);
    }

    #[track_caller]
    fn check_of(load: &LoadResult, spec: &LoadSpec, expected: &[&str]) {
        let kinds: Vec<_> = load
            .doubts(spec)
            .iter()
            .map(|doubt| match doubt {
                LoadDoubt::LittleOff { .. } => "little",
                LoadDoubt::ConcurrencyMissed { .. } => "concurrency",
                LoadDoubt::GeneratorSaturated { .. } => "generator",
                LoadDoubt::FewWaves { .. } => "waves",
                LoadDoubt::RateMissed { .. } => "rate",
                LoadDoubt::LateGenerator { .. } => "late",
            })
            .collect();
        assert_eq!(kinds, expected);
    }

    /// Ten seconds of an open loop in which requests of 10 ms were sent and so many were not, and the pace it was meant to have.
    fn open(sent: u64, unsent: u64, rate: f64, arrivals: Arrivals) -> (LoadResult, LoadSpec) {
        let mut load = load(1000, sent as f64 / 1000.0, sent, 10_000);
        load.open =
            Some(OpenLoop { arrived: sent + unsent, unsent, service: load.total.clone(), ..OpenLoop::default() });
        (load, LoadSpec { pace: Pace::Timetable(Timetable::constant(rate, arrivals)), ..LoadSpec::of("l", "/") })
    }

    #[test]
    fn an_open_loop_is_held_to_its_rate() {
        let check = |sent, unsent, expected: &[&str]| {
            let (load, spec) = open(sent, unsent, 1000.0, Arrivals::Even);
            check_of(&load, &spec, expected);
        };
        check(10_000, 0, &[]);
        check(9_950, 50, &[]);
        check(9_850, 150, &["rate"]);
        check(0, 0, &[]);
        let (mut load, spec) = open(10_000, 0, 1000.0, Arrivals::Even);
        let open = load.open.as_mut().unwrap();
        (0..9_899).for_each(|_| open.lateness.record(100));
        (0..101).for_each(|_| open.lateness.record(5_000));
        check_of(&load, &spec, &["late"]);
    }

    #[test]
    fn a_generator_is_late_by_what_its_requests_can_tell() {
        // So many requests in time, so many 5 ms late.
        let check = |in_time, late, expected: Option<(f64, bool)>| {
            let (mut load, spec) = open(1000, 0, 100.0, Arrivals::Even);
            let lateness = &mut load.open.as_mut().unwrap().lateness;
            (0..in_time).for_each(|_| lateness.record(100));
            (0..late).for_each(|_| lateness.record(5_000));
            let found = load.late_percentile().map(|(percent, late_us)| (percent, late_us > LATE_US));
            assert_eq!(found, expected);
            check_of(&load, &spec, if expected.is_some_and(|(_, late)| late) { &["late"] } else { &[] });
        };
        // One of a hundred is no 99th percentile; one of twenty of sixty is a 95th.
        check(98, 2, Some((95.0, false)));
        check(57, 3, Some((95.0, false)));
        check(56, 4, Some((95.0, true)));
        check(295, 4, Some((99.0, true)));
        check(10, 18, Some((50.0, true)));
        check(0, 4, None);
    }

    #[test]
    fn a_number_of_requests_that_took_too_long_missed_its_rate() {
        let check = |rate, arrivals, expected: &[&str]| {
            let (load, spec) = open(10_000, 0, rate, arrivals);
            check_of(&LoadResult { end: LoadEnd::Requests, ..load }, &spec, expected);
        };
        // All were sent, but ten seconds are twice as long as 10 000 requests should have taken.
        check(2000.0, Arrivals::Even, &["rate"]);
        check(2000.0, Arrivals::Poisson, &["rate"]);
        check(1000.0, Arrivals::Even, &[]);
        check(1020.0, Arrivals::Even, &["rate"]);
        check(1020.0, Arrivals::Poisson, &[]);
        // Half of the ten seconds went by until the last of them timed out.
        let (load, spec) = open(10_000, 0, 2000.0, Arrivals::Even);
        let mut load = LoadResult { end: LoadEnd::Requests, ..load };
        load.unanswered.latency.record(5_000_000);
        load.counts.failed.insert(Failure::Timeout, 1);
        check_of(&load, &spec, &[]);
    }

    #[test]
    fn chance_may_exceed_a_table() {
        let stages = vec![crate::plan::Stage { length_ns: 10 * SECOND, from: 990.0, to: 990.0 }];
        let (load, spec) = open(10_000, 0, 1000.0, Arrivals::Poisson);
        let pace = Pace::Timetable(Timetable { stages, arrivals: Arrivals::Poisson });
        let asked = LoadResult { end: LoadEnd::Requests, ..load }.asked_rate(&LoadSpec { pace, ..spec });
        assert_eq!(asked, Some(1000.0));
    }

    #[test]
    fn a_replay_is_held_to_its_log() {
        // 1001 requests from the first to the last of so many seconds, replayed in ten.
        let of_log = |span_s: u64| {
            let (load, spec) = open(1001, 0, 1.0, Arrivals::Even);
            let log = Log {
                file: "access.log".into(),
                format: "common".to_owned(),
                speed: 1.0,
                lines: 1001,
                used: 1001,
                span_ns: span_s * SECOND,
                left_out: vec![],
                recording: Arc::default(),
            };
            let load = LoadResult { end: LoadEnd::Requests, ..load };
            (load, LoadSpec { pace: Pace::Logged, log: Some(log), ..spec })
        };
        let check = |(load, spec): (LoadResult, LoadSpec), asked: Option<f64>, expected: &[&str]| {
            assert_eq!(load.asked_rate(&spec).map(f64::round), asked);
            check_of(&load, &spec, expected);
        };
        check(of_log(10), Some(100.0), &[]);
        check(of_log(8), Some(125.0), &["rate"]);
        check(of_log(0), None, &[]);
        // Half of the ten seconds were the last one's own time.
        let (mut slow, spec) = of_log(5);
        slow.unanswered.latency.record(5_000_000);
        slow.counts.failed.insert(Failure::Timeout, 1);
        check((slow, spec), Some(200.0), &[]);
        // Of a part of a log nobody knows when it was due, unless time cut it.
        let (mut part, spec) = of_log(8);
        part.open.as_mut().unwrap().arrived = 1000;
        check((part.clone(), spec.clone()), None, &[]);
        check((LoadResult { end: LoadEnd::Duration, ..part }, spec), Some(100.0), &[]);
    }

    #[test]
    fn what_came_after_the_window_is_in_no_rate() {
        let (mut load, spec) = open(10_000, 0, 1000.0, Arrivals::Even);
        load.counts.bytes_in = 50_000;
        load.late = Counts { good: 4_000, bytes_in: 20_000, ..Counts::default() };
        assert_eq!((load.good_in_time(), load.goodput(), load.bytes_in_rate()), (6_000, 600.0, 3_000.0));
        // All of them were sent in time.
        assert_eq!(load.sent_rate(), 1000.0);
        // Twice the latency for such a number in flight: where requests pile up Little's law says nothing.
        load.connections = 100;
        (0..10_000).for_each(|_| load.open.as_mut().unwrap().service.record(200_000));
        check_of(&load, &spec, &[]);
        load.late.good = 100;
        check_of(&load, &spec, &["little"]);
    }

    #[test]
    fn a_sound_load_raises_no_doubt() {
        // 10 in flight, 1000 answers a second of 10 ms each: N = X R.
        check(&load(10, 10.0, 10_000, 10_000), &[]);
        assert!((load(10, 10.0, 10_000, 10_000).goodput() - 1000.0).abs() < 1e-9);
    }

    #[test]
    fn each_doubt_has_its_reason() {
        check(&load(10, 10.0, 10_000, 5_000), &["little"]);
        check(&load(20, 10.0, 10_000, 10_000), &["concurrency"]);
        check(&load(10, 10.0, 40, 2_500_000), &["waves"]);
        let mut busy = load(10, 10.0, 10_000, 10_000);
        busy.generator.cpu_ns = 10 * SECOND;
        check(&busy, &["generator"]);
        check_of(&busy, &LoadSpec { busy_poll: true, ..LoadSpec::of("l", "/") }, &[]);
        busy.generator.cpus = vec![0, 1];
        check(&busy, &[]);
        let mut timed_out = load(10, 10.0, 10_000, 5_000);
        timed_out.counts.failed.insert(Failure::Timeout, 1);
        check(&timed_out, &[]);
    }

    /// Percentiles of good answers of 1 to 1000 ms, one each, beside requests that had waited so long (in ms) without one.
    #[track_caller]
    fn check_percentiles(at_least_ms: &[u64], expected: &[(f64, Quantile)]) {
        let mut load = load(1, 1.0, 0, 0);
        (1..=1000).for_each(|ms| load.total.record(ms * 1000));
        at_least_ms.iter().for_each(|ms| load.unanswered.latency.record(ms * 1000));
        for &(percent, expected) in expected {
            let found = load.percentile(percent).unwrap();
            let us = |quantile| match quantile {
                Quantile::Exactly(us) | Quantile::MoreThan(us) => us,
            };
            let close = us(found).abs_diff(us(expected)) <= us(expected) / 500;
            let same_kind = std::mem::discriminant(&found) == std::mem::discriminant(&expected);
            assert!(close && same_kind, "p{percent}: {found:?}, not {expected:?}");
        }
    }

    #[test]
    fn a_percentile_among_requests_without_an_answer_is_more_than() {
        use Quantile::{Exactly, MoreThan};
        check_percentiles(&[], &[(50.0, Exactly(500_000)), (100.0, Exactly(1_000_000))]);
        // One request that had waited longer than all others changes nothing below it.
        check_percentiles(&[2000], &[(50.0, Exactly(501_000)), (99.0, Exactly(991_000)), (100.0, MoreThan(2_000_000))]);
        // As many cut off early as answered: the middle may be anywhere above what it would be if they had ended at once.
        check_percentiles(&[1; 1000], &[(40.0, MoreThan(1000)), (75.0, MoreThan(500_000))]);
    }

    #[test]
    fn a_pipeline_is_kept_full_too() {
        let spec = |pipeline| LoadSpec { pipeline, ..LoadSpec::of("test", "/") };
        // Ten connections with 9.5 requests in flight are full; with room for four on each they are not.
        assert_eq!(load(10, 9.5, 10_000, 9_500).doubts(&spec(1)), []);
        let doubts = load(10, 9.5, 10_000, 9_500).doubts(&spec(4));
        assert!(matches!(doubts[..], [LoadDoubt::ConcurrencyMissed { asked: 40.0, .. }]), "{doubts:?}");
    }

    #[test]
    fn littles_doubt_tells_the_two_numbers_it_compared() {
        // 10 asked for, 9.5 in flight, and good answers for 5 of them: the others hung until they were cut off.
        let doubts = load(10, 9.5, 10_000, 5_000).self_check(&LoadSpec::of("l", "/"));
        let [LoadDoubt::LittleOff { achieved, computed }] = doubts[..] else { panic!("{doubts:?}") };
        assert!((achieved - 9.5).abs() < 0.01 && (computed - 5.0).abs() < 0.01, "{achieved} {computed}");
    }

    #[test]
    fn retries_are_merged_and_absent_from_old_runs() {
        let mut counts: Counts = serde_json::from_str(
            r#"{"good":1,"failed":{"reset":2},"statuses":{"200":1},"bytes_in":3,"bytes_out":4,"connects":5}"#,
        )
        .unwrap();
        assert_eq!(counts.retries, 0);
        counts.merge(&Counts { retries: 2, ..counts.clone() });
        assert_eq!((counts.good, counts.retries), (2, 2));
        let mut stored = serde_json::to_value(load(1, 1.0, 1, 1)).unwrap();
        for field in ["retry_example", "late"] {
            stored.as_object_mut().unwrap().remove(field);
        }
        let old = serde_json::from_value::<LoadResult>(stored).unwrap();
        assert_eq!((old.retry_example, old.late), (None, Counts::default()));
    }
}
