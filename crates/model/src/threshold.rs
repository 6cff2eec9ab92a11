//! What a load is expected to come to: `p99 < 200ms`, `failed < 1%`, `rate >= 500/s`; and whether it did.
//!
//! What cannot be known counts as missed and is told apart from what is known to be missed. Nothing here makes sentences of it.

mod parse;

pub use parse::ThresholdError;

use crate::load::LoadResult;
use crate::statistic::{Found, Part, Statistic};
use serde::{Deserialize, Serialize};

/// One expectation, as it was written and as it is meant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Threshold {
    /// As it was written, without blanks around it.
    pub text: String,
    /// What is looked at.
    pub metric: Metric,
    /// How it is compared.
    pub operator: Operator,
    /// What it is compared with, in the metric's unit.
    pub limit: f64,
}

/// A number that a load came to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Metric {
    /// A time, in microseconds.
    Time(Part, Statistic),
    /// Something that happened so many times within a second of the window.
    PerSecond(Flow),
    /// How many requests came to this.
    Count(Fate),
    /// The same as a share of all that could have come to it, in percent.
    Percent(Fate),
}

/// What is counted by the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// Good answers: the throughput.
    Good,
    /// Requests sent, whatever became of them.
    Sent,
    /// Bytes received, heads and bodies.
    Bytes,
}

/// What becomes of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Failed, for any cause.
    Failed,
    /// Due, and no connection was free for it until the end; in open loops only.
    Unsent,
    /// Sent, and without an answer at the end.
    InFlight,
    /// Sent a second time.
    Retried,
    /// Answered with a status in this range.
    Status {
        /// First status.
        from: u16,
        /// Last status.
        to: u16,
    },
}

/// How numbers are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// `<`
    Below,
    /// `<=`
    AtMost,
    /// `>`
    Above,
    /// `>=`
    AtLeast,
    /// `=`
    Equal,
    /// `!=`
    Not,
}

/// The unit a metric's numbers are in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Microseconds.
    Us,
    /// Requests or answers per second.
    PerSecond,
    /// Bytes per second.
    BytesPerSecond,
    /// Requests.
    Count,
    /// Hundredths.
    Percent,
}

/// What became of an expectation.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// The expectation.
    pub threshold: Threshold,
    /// Whether it was met.
    pub met: Met,
    /// The number it was judged by; `None` when there was none.
    pub found: Option<Found>,
}

/// Whether an expectation was met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Met {
    /// It was.
    Yes,
    /// It was not.
    No,
    /// That is not known, which counts as missed.
    Unknown(Why),
}

/// Why it is not known whether an expectation was met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// Nothing of the kind was measured.
    NothingMeasured,
    /// Too few values for such a percentile.
    TooFew {
        /// Values there were.
        have: u64,
        /// Values it needs.
        needed: u64,
    },
    /// The number is known only to be more than something that the expectation allows.
    CutOff,
    /// Only a load with a timetable has such a number.
    ClosedLoop,
    /// Only single requests have such a number: of users it is they who arrive.
    Users,
    /// Only a load of users has such a number.
    NoUsers,
}

impl Threshold {
    /// Reads `METRIC OPERATOR VALUE`, such as `p99 < 200ms`.
    ///
    /// # Errors
    /// When it is not such an expression; in one line that says what would be.
    pub fn parse(text: &str) -> Result<Threshold, ThresholdError> {
        parse::threshold(text)
    }

    /// Holds a load to it.
    #[must_use]
    pub fn judge(&self, load: &LoadResult) -> Judged {
        let found = self.metric.of(load);
        let met = match found {
            Err(why) => Met::Unknown(why),
            Ok(Found::Exactly(value)) if self.operator.holds(value, self.limit) => Met::Yes,
            Ok(Found::Exactly(_)) => Met::No,
            Ok(Found::MoreThan(bound)) => self.operator.holds_above(bound, self.limit),
        };
        // A percentile of too few values is still what was found; it is only not to be judged by.
        let found = found.ok().or_else(|| match (met, self.metric) {
            (Met::Unknown(Why::TooFew { .. }), Metric::Time(part, statistic)) => load.statistic(part, statistic),
            _ => None,
        });
        Judged { threshold: self.clone(), met, found }
    }
}

impl Judged {
    /// Whether it counts as met; what is unknown does not.
    #[must_use]
    pub fn is_met(&self) -> bool {
        self.met == Met::Yes
    }
}

impl Metric {
    /// The unit of its numbers.
    #[must_use]
    pub fn unit(self) -> Unit {
        match self {
            Metric::Time(..) => Unit::Us,
            Metric::PerSecond(Flow::Bytes) => Unit::BytesPerSecond,
            Metric::PerSecond(_) => Unit::PerSecond,
            Metric::Count(_) => Unit::Count,
            Metric::Percent(_) => Unit::Percent,
        }
    }

    /// What a load came to, or why that is not known.
    fn of(self, load: &LoadResult) -> Result<Found, Why> {
        match self {
            Metric::Time(part, statistic) => time(load, part, statistic),
            Metric::PerSecond(_) if load.seconds() <= 0.0 => Err(Why::NothingMeasured),
            Metric::PerSecond(flow) => Ok(Found::Exactly(flow.rate(load))),
            Metric::Count(fate) => fate.count(load).map(|n| Found::Exactly(n as f64)),
            Metric::Percent(fate) => match (fate.count(load)?, fate.whole(load)) {
                (_, 0) => Err(Why::NothingMeasured),
                (n, whole) => Ok(Found::Exactly(n as f64 * 100.0 / whole as f64)),
            },
        }
    }
}

fn time(load: &LoadResult, part: Part, statistic: Statistic) -> Result<Found, Why> {
    if load.part(part).is_none() {
        return Err(if part == Part::Page { Why::NoUsers } else { no_timetable(load) });
    }
    let found = load.statistic(part, statistic).ok_or(Why::NothingMeasured)?;
    let (have, needed) = (load.values_of(part), statistic.needs());
    if have < needed { Err(Why::TooFew { have, needed }) } else { Ok(found) }
}

/// Why requests have no times at which they are due.
fn no_timetable(load: &LoadResult) -> Why {
    if load.sessions.is_some() { Why::Users } else { Why::ClosedLoop }
}

impl Flow {
    fn rate(self, load: &LoadResult) -> f64 {
        match self {
            Flow::Good => load.goodput(),
            Flow::Sent => load.sent_rate(),
            Flow::Bytes => load.bytes_in_rate(),
        }
    }
}

impl Fate {
    fn count(self, load: &LoadResult) -> Result<u64, Why> {
        let counts = &load.counts;
        match self {
            Fate::Failed => Ok(counts.failures()),
            Fate::Unsent => load.open.as_ref().map(|open| open.unsent).ok_or_else(|| no_timetable(load)),
            Fate::InFlight => Ok(load.in_flight),
            Fate::Retried => Ok(counts.retries),
            Fate::Status { from, to } => Ok(counts.statuses.range(from..=to).map(|(_, n)| n).sum()),
        }
    }

    /// The requests of which a share is taken: those that ended, or for what happens to others, all there were.
    fn whole(self, load: &LoadResult) -> u64 {
        match self {
            Fate::Failed | Fate::Status { .. } => load.counts.good + load.counts.failures(),
            Fate::Unsent => load.open.as_ref().map_or(0, |open| open.arrived),
            Fate::InFlight | Fate::Retried => load.sent(),
        }
    }
}

impl Operator {
    fn holds(self, value: f64, limit: f64) -> bool {
        match self {
            Operator::Below => value < limit,
            Operator::AtMost => value <= limit,
            Operator::Above => value > limit,
            Operator::AtLeast => value >= limit,
            Operator::Equal => same(value, limit),
            Operator::Not => !same(value, limit),
        }
    }

    /// For a number of which only a bound below it is known.
    fn holds_above(self, bound: f64, limit: f64) -> Met {
        match self {
            _ if bound < limit => Met::Unknown(Why::CutOff),
            Operator::Below | Operator::AtMost | Operator::Equal => Met::No,
            Operator::Above | Operator::AtLeast | Operator::Not => Met::Yes,
        }
    }
}

/// Equal but for how fractions are stored.
fn same(value: f64, limit: f64) -> bool {
    (value - limit).abs() <= limit.abs() * 1e-12
}

impl TryFrom<String> for Threshold {
    type Error = ThresholdError;

    fn try_from(text: String) -> Result<Threshold, ThresholdError> {
        Threshold::parse(&text)
    }
}

impl From<Threshold> for String {
    fn from(threshold: Threshold) -> String {
        threshold.text
    }
}

#[cfg(test)]
mod tests;
