//! One number out of one of a load's distributions: which there are, what is known of it, and how many values it needs.
//!
//! Requests that never got an answer belong to the latencies too. What they make uncertain comes out as more than something
//! ([`Found::MoreThan`]), never as the number of those that were lucky.

use crate::latency::Latency;
use crate::load::{LoadResult, Quantile, percentile_of};
use serde::{Deserialize, Serialize};

/// A distribution of times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// To the last byte: from when the request was due in an open loop, from its start in a closed one.
    Latency,
    /// To the last byte, from when the request was really sent; in open loops only.
    Service,
    /// To the first byte, from where the latency counts.
    FirstByte,
    /// To connect.
    Connect,
    /// For the TLS handshake.
    Handshake,
    /// From a user's click to the last byte of the page and all that belongs to it; in loads of users only.
    Page,
}

/// A number that stands for a distribution.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Statistic {
    /// Smallest.
    Min,
    /// Arithmetic mean.
    Mean,
    /// At or below it lie so many percent, between 0 and 100.
    Percentile(f64),
    /// Largest.
    Max,
}

/// What is known of a number.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Found {
    /// This much.
    Exactly(f64),
    /// More than this: some requests had no answer yet.
    MoreThan(f64),
}

impl Part {
    /// Every part.
    pub const ALL: [Part; 6] =
        [Part::Latency, Part::Page, Part::Service, Part::FirstByte, Part::Connect, Part::Handshake];

    /// Its name in thresholds and in reports for programs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Part::Latency => "latency",
            Part::Service => "service",
            Part::FirstByte => "first_byte",
            Part::Connect => "connect",
            Part::Handshake => "handshake",
            Part::Page => "page",
        }
    }
}

impl Statistic {
    /// How many values it takes before it means something: with fewer, the true percentile may lie above all of them, with a
    /// probability of more than 5 %. There is then no upper limit to it that deserves 95 % confidence.
    #[must_use]
    pub fn needs(self) -> u64 {
        match self {
            // All n values lie below the percentile with probability (percent / 100)^n.
            Statistic::Percentile(percent) => (0.05_f64.ln() / (percent / 100.0).ln()).ceil() as u64,
            Statistic::Min | Statistic::Mean | Statistic::Max => 1,
        }
    }

    /// Its name, such as `p99.9`.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Statistic::Min => "min".to_owned(),
            Statistic::Mean => "mean".to_owned(),
            Statistic::Percentile(percent) => format!("p{percent}"),
            Statistic::Max => "max".to_owned(),
        }
    }
}

impl Found {
    /// The number: itself or what it is more than.
    #[must_use]
    pub fn value(self) -> f64 {
        match self {
            Found::Exactly(value) | Found::MoreThan(value) => value,
        }
    }
}

impl LoadResult {
    /// The values of a part that are known; `None` where the load has no such part.
    #[must_use]
    pub fn part(&self, part: Part) -> Option<&Latency> {
        match part {
            Part::Latency => Some(&self.total),
            Part::Service => self.open.as_ref().map(|open| &open.service),
            Part::FirstByte => Some(&self.first_byte),
            Part::Connect => Some(&self.connect),
            Part::Handshake => Some(&self.handshake),
            Part::Page => self.sessions.as_ref().map(|sessions| &sessions.page),
        }
    }

    /// How many requests or connections a part counts, those included whose value is known only to be more than something.
    #[must_use]
    pub fn values_of(&self, part: Part) -> u64 {
        let cut_off = self.cut_off(part).map_or(0, Latency::len);
        self.part(part).map_or(0, Latency::len) + cut_off
    }

    /// A statistic of a part, in microseconds; `None` without any value. Whether it has the values it needs is not asked.
    #[must_use]
    pub fn statistic(&self, part: Part, statistic: Statistic) -> Option<Found> {
        let known = self.part(part)?;
        match (self.cut_off(part), statistic) {
            (Some(cut_off), Statistic::Percentile(percent)) => percentile_of(known, cut_off, percent).map(found),
            (Some(cut_off), Statistic::Max) => percentile_of(known, cut_off, 100.0).map(found),
            (Some(cut_off), Statistic::Min) => {
                let lowest = cut_off.range_us().map(|(min, _)| min);
                match (known.range_us().map(|(min, _)| min), lowest) {
                    (Some(known), Some(cut_off)) if cut_off < known => Some(Found::MoreThan(cut_off as f64)),
                    (Some(known), _) => Some(Found::Exactly(known as f64)),
                    (None, cut_off) => cut_off.map(|us| Found::MoreThan(us as f64)),
                }
            }
            (Some(cut_off), Statistic::Mean) => {
                let mut all = known.clone();
                all.merge(cut_off);
                all.mean_us().map(Found::MoreThan)
            }
            (None, Statistic::Percentile(percent)) => known.percentile_us(percent).map(|us| Found::Exactly(us as f64)),
            (None, Statistic::Min) => known.range_us().map(|(min, _)| Found::Exactly(min as f64)),
            (None, Statistic::Max) => known.range_us().map(|(_, max)| Found::Exactly(max as f64)),
            (None, Statistic::Mean) => known.mean_us().map(Found::Exactly),
        }
    }

    /// The values of a part that are known only to be more than something, if there are any.
    #[must_use]
    pub fn cut_off(&self, part: Part) -> Option<&Latency> {
        let cut_off = match part {
            Part::Latency => Some(&self.unanswered.latency),
            Part::Service => Some(&self.unanswered.service),
            Part::FirstByte => Some(&self.unanswered.first_byte),
            Part::Page => self.sessions.as_ref().map(|sessions| &sessions.page_at_least),
            Part::Connect | Part::Handshake => None,
        };
        cut_off.filter(|cut_off| !cut_off.is_empty())
    }
}

fn found(quantile: Quantile) -> Found {
    match quantile {
        Quantile::Exactly(us) => Found::Exactly(us as f64),
        Quantile::MoreThan(us) => Found::MoreThan(us as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(percent: f64, needs: u64) {
        assert_eq!(Statistic::Percentile(percent).needs(), needs, "p{percent}");
        let all_below = |n: u64| (percent / 100.0).powf(n as f64);
        assert!(all_below(needs) <= 0.05 && all_below(needs - 1) > 0.05, "p{percent}");
    }

    #[test]
    fn a_rare_percentile_needs_many_values() {
        check(50.0, 5);
        check(90.0, 29);
        check(95.0, 59);
        check(99.0, 299);
        check(99.9, 2995);
        check(99.99, 29_956);
    }
}
