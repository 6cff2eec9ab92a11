//! Text to a threshold: which metrics there are, and the unit that each takes.

use super::{Fate, Flow, Metric, Operator, Threshold};
use crate::statistic::{Part, Statistic};

/// Why a text is no threshold; one line that says what is wrong and what would be right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ThresholdError {
    /// No operator in it.
    #[error("`{0}` compares nothing: write a metric, one of < <= > >= = != and a value, such as p99 < 200ms")]
    NoOperator(String),
    /// No such metric.
    #[error(
        "`{0}` is no metric: use p50, p99.9 (any percentile), min, mean or max, also of page., service., first_byte., \
         connect. or handshake.; rate, sent/s or bytes/s; failed, unsent, in_flight, retries, status.503 or status.5xx"
    )]
    NoMetric(String),
    /// A percentile that is none.
    #[error("`p{0}` is no percentile: it lies between 0 and 100, as p99 and p99.9 do; beyond it there is max")]
    NoPercentile(String),
    /// A status that is none.
    #[error("`{0}` is no status: write one from 100 to 599, as in status.503, or a class, as in status.5xx")]
    NoStatus(String),
    /// A value that does not fit the metric.
    #[error("`{value}` is nothing to compare `{metric}` with: write {right}")]
    NoValue {
        /// The metric, as written.
        metric: String,
        /// The value, as written.
        value: String,
        /// What would be right.
        right: &'static str,
    },
}

/// The longer ones first, or `<=` would be read as `<`.
const OPERATORS: [(&str, Operator); 7] = [
    ("<=", Operator::AtMost),
    (">=", Operator::AtLeast),
    ("!=", Operator::Not),
    ("==", Operator::Equal),
    ("<", Operator::Below),
    (">", Operator::Above),
    ("=", Operator::Equal),
];

pub(super) fn threshold(text: &str) -> Result<Threshold, ThresholdError> {
    let text = text.trim();
    let no_operator = || ThresholdError::NoOperator(text.to_owned());
    let at = text.find(['<', '>', '=', '!']).ok_or_else(no_operator)?;
    let (name, rest) = (text[..at].trim(), &text[at..]);
    let (sign, operator) = OPERATORS.into_iter().find(|(sign, _)| rest.starts_with(sign)).ok_or_else(no_operator)?;
    let value = rest[sign.len()..].trim();
    let (metric, limit) = match metric(name)? {
        // The unit decides which of the two is meant.
        Metric::Count(fate) if value.ends_with('%') => (Metric::Percent(fate), percent(name, value)?),
        metric => (metric, limit(metric, name, value)?),
    };
    Ok(Threshold { text: text.to_owned(), metric, operator, limit })
}

fn metric(name: &str) -> Result<Metric, ThresholdError> {
    let flow = |flow| Ok(Metric::PerSecond(flow));
    let fate = |fate| Ok(Metric::Count(fate));
    match name {
        "rate" => return flow(Flow::Good),
        "sent/s" => return flow(Flow::Sent),
        "bytes/s" => return flow(Flow::Bytes),
        "failed" => return fate(Fate::Failed),
        "unsent" => return fate(Fate::Unsent),
        "in_flight" => return fate(Fate::InFlight),
        "retries" => return fate(Fate::Retried),
        _ => {}
    }
    if let Some(wanted) = name.strip_prefix("status.") {
        return status(wanted).map(Metric::Count).ok_or_else(|| ThresholdError::NoStatus(wanted.to_owned()));
    }
    let of = |part: Part, rest: &str| Ok(statistic(rest)?.map(|statistic| Metric::Time(part, statistic)));
    let parted =
        Part::ALL.into_iter().find_map(|part| Some((part, name.strip_prefix(part.name())?.strip_prefix('.')?)));
    let (part, rest) = parted.unwrap_or((Part::Latency, name));
    of(part, rest)?.ok_or_else(|| ThresholdError::NoMetric(name.to_owned()))
}

/// `None` when it is no statistic at all.
fn statistic(name: &str) -> Result<Option<Statistic>, ThresholdError> {
    let Some(percent) = name.strip_prefix('p').filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit())) else {
        return Ok(match name {
            "min" => Some(Statistic::Min),
            "mean" => Some(Statistic::Mean),
            "max" => Some(Statistic::Max),
            _ => None,
        });
    };
    match percent.parse() {
        Ok(value) if 0.0 < value && value < 100.0 && plain(percent) => Ok(Some(Statistic::Percentile(value))),
        _ => Err(ThresholdError::NoPercentile(percent.to_owned())),
    }
}

/// `503` or a class such as `5xx`.
fn status(text: &str) -> Option<Fate> {
    if text.len() != 3 || !text.is_ascii() {
        return None;
    }
    let (from, to) = match text.strip_suffix("xx") {
        Some(class) => class.parse().ok().map(|class: u16| (class * 100, class * 100 + 99))?,
        None => text.parse().ok().map(|status| (status, status))?,
    };
    (100..600).contains(&from).then_some(Fate::Status { from, to })
}

fn limit(metric: Metric, name: &str, value: &str) -> Result<f64, ThresholdError> {
    let wrong = |right| ThresholdError::NoValue { metric: name.to_owned(), value: value.to_owned(), right };
    match metric {
        Metric::Time(..) => {
            let right = "a time with its unit: us, ms, s or min, such as 200ms";
            units::duration_ns(value).map(|ns| ns as f64 / 1e3).map_err(|_| wrong(right))
        }
        Metric::PerSecond(Flow::Bytes) => {
            let right = "bytes per second, such as 500K/s or 10M/s";
            units::bytes(per_second(value)).map(|bytes| bytes as f64).map_err(|_| wrong(right))
        }
        Metric::PerSecond(_) => number(per_second(value)).ok_or_else(|| wrong("a number per second, such as 500/s")),
        Metric::Count(_) | Metric::Percent(_) => {
            let whole = value.parse::<u64>().ok().map(|n| n as f64);
            whole.ok_or_else(|| wrong("a whole number of requests, such as 0, or a share of them, such as 1%"))
        }
    }
}

fn percent(name: &str, value: &str) -> Result<f64, ThresholdError> {
    let share = number(value.trim_end_matches('%').trim_end()).filter(|share| (0.0..=100.0).contains(share));
    let right = "a share from 0% to 100%";
    share.ok_or_else(|| ThresholdError::NoValue { metric: name.to_owned(), value: value.to_owned(), right })
}

fn per_second(value: &str) -> &str {
    value.strip_suffix("/s").unwrap_or(value).trim_end()
}

/// A number as people write it: no sign, no exponent, not infinite.
fn number(text: &str) -> Option<f64> {
    plain(text).then(|| text.parse().ok()).flatten()
}

fn plain(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}
