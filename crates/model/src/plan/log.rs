//! An access log to be replayed: what is told of it, and the requests themselves, which no store keeps.

use crate::Nanos;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// A log whose requests a load sends again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Log {
    /// The log's file.
    #[serde(serialize_with = "super::as_text")]
    pub file: PathBuf,
    /// Its format, by name or as the server's configuration writes it.
    pub format: String,
    /// How many times faster than it was; 1 is as it was.
    pub speed: f64,
    /// All its lines.
    pub lines: u64,
    /// Lines whose requests are sent.
    pub used: u64,
    /// From the first of these to the last, at that speed.
    pub span_ns: Nanos,
    /// The other lines, by reason.
    pub left_out: Vec<LeftOut>,
    /// The requests in order. A log that comes from a store has none.
    #[serde(skip)]
    pub recording: Arc<Recording>,
}

/// Lines of a log that are not sent, all for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// What is wrong with them, such as `without a request`.
    pub why: String,
    /// How many they are.
    pub lines: u64,
    /// The number of the first of them, from 1.
    pub first_line: u64,
}

/// Requests and when they came: 12 bytes for each, and every different target once.
#[derive(Clone, Default, PartialEq)]
pub struct Recording {
    at_ns: Vec<Nanos>,
    asked: Vec<u32>,
    targets: Vec<Target>,
    text: String,
}

/// One target: which of the load's kinds of requests it belongs to, and where its text ends.
#[derive(Clone, Copy, PartialEq)]
struct Target {
    kind: u32,
    end: usize,
}

impl Recording {
    /// Room for so many requests.
    #[must_use]
    pub fn with_capacity(requests: usize) -> Recording {
        Recording { at_ns: Vec::with_capacity(requests), asked: Vec::with_capacity(requests), ..Recording::default() }
    }

    /// Adds a target, which begins with `/`, of a kind of request; it gets the next number from 0.
    pub fn add_target(&mut self, kind: u32, target: &str) {
        self.text.push_str(target);
        self.targets.push(Target { kind, end: self.text.len() });
    }

    /// Adds a request for a target that was added, not before the ones already there.
    pub fn add(&mut self, at_ns: Nanos, target: u32) {
        debug_assert!((target as usize) < self.targets.len() && self.at_ns.last().is_none_or(|&last| last <= at_ns));
        self.at_ns.push(at_ns);
        self.asked.push(target);
    }

    /// How many requests there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.at_ns.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.at_ns.is_empty()
    }

    /// When a request came, counted from the first one.
    #[must_use]
    pub fn at_ns(&self, index: usize) -> Option<Nanos> {
        self.at_ns.get(index).copied()
    }

    /// Which kind of request it is of, and its target.
    #[must_use]
    pub fn asked(&self, index: usize) -> Option<(usize, &str)> {
        let number = *self.asked.get(index)? as usize;
        let Target { kind, end } = *self.targets.get(number)?;
        let begin = number.checked_sub(1).map_or(0, |before| self.targets[before].end);
        Some((kind as usize, &self.text[begin..end]))
    }
}

/// Millions of requests are of no use to a reader.
impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} requests for {} targets", self.at_ns.len(), self.targets.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_come_back_in_order() {
        let mut recording = Recording::with_capacity(3);
        recording.add_target(0, "/a");
        recording.add_target(1, "/");
        [(0, 1), (5, 0), (5, 1)].into_iter().for_each(|(at, target)| recording.add(at, target));
        let all: Vec<_> = (0..4).map(|i| Some((recording.at_ns(i)?, recording.asked(i)?))).collect();
        assert_eq!(all, [Some((0, (1, "/"))), Some((5, (0, "/a"))), Some((5, (1, "/"))), None]);
        assert_eq!(format!("{recording:?}"), "3 requests for 2 targets");
    }
}
