//! What a server said of itself while it worked, asked about once a second without taking one of the workers that are measured.

use crate::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One look.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerStatus {
    /// When it was asked.
    pub at_ns: Nanos,
    /// How long the answers took.
    pub took_ns: Nanos,
    /// The server's own workers or connections; `None` when it did not tell.
    #[serde(default)]
    pub web: Option<WebStatus>,
    /// PHP's processes; `None` when there are none or they did not tell.
    #[serde(default)]
    pub fpm: Option<FpmStatus>,
}

/// What the web server told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum WebStatus {
    /// Apache's scoreboard: how many places show each of its letters (`_` ready, `W` writing, `K` keep-alive, `.` nobody).
    Apache {
        /// Letter to count.
        places: BTreeMap<char, u64>,
        /// Requests since the start, which stay 0 with `ExtendedStatus Off`; `None` where they were not looked at.
        #[serde(default)]
        served: Option<u64>,
    },
    /// nginx's stub_status, the one connection that asked included.
    Nginx {
        /// Connections.
        active: u64,
        /// Accepted since the start.
        accepts: u64,
        /// Requests since the start.
        requests: u64,
        /// Connections of which a request is read.
        reading: u64,
        /// Connections that are worked for or written to.
        writing: u64,
        /// Connections that are kept open and idle.
        waiting: u64,
    },
    /// webdyno's own small server.
    Embedded {
        /// Requests since the start.
        served: u64,
    },
}

/// A measured window as the server tells it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Around {
    /// Right before the load.
    pub before: ServerStatus,
    /// Right after it.
    pub after: ServerStatus,
    /// Requests of the warm-up that the server may have counted only after the first look: those without an answer when it ended, and
    /// one more of each connection.
    pub left: u64,
}

/// What PHP-FPM told of its pool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FpmStatus {
    /// Processes that work.
    pub active: u64,
    /// Processes that do not.
    pub idle: u64,
    /// Requests that wait for a process, from the kernel; `None` when it does not tell.
    pub queue: Option<u64>,
    /// How many may wait.
    #[serde(default)]
    pub queue_limit: Option<u64>,
    /// Requests accepted since the start.
    pub accepted: u64,
    /// How often since the start the pool wanted more processes than it may have.
    pub limit_reached: u64,
}

impl WebStatus {
    /// Workers of Apache, or connections of nginx, with a request in work; the one that asks is not counted. `None` where nobody tells.
    #[must_use]
    pub fn busy(&self) -> Option<u64> {
        match self {
            WebStatus::Apache { places, .. } => {
                let idle = |letter: &char| matches!(letter, '.' | '_' | 'S' | 'I' | 'G' | 'K');
                Some(places.iter().filter(|(letter, _)| !idle(letter)).map(|(_, count)| count).sum())
            }
            WebStatus::Nginx { reading, writing, .. } => Some((reading + writing).saturating_sub(1)),
            WebStatus::Embedded { .. } => None,
        }
    }

    /// Requests since the start, those that asked for this included; `None` where nobody counts them.
    #[must_use]
    pub fn served(&self) -> Option<u64> {
        match self {
            WebStatus::Apache { served, .. } => served.filter(|&served| served > 0),
            WebStatus::Nginx { requests, .. } => Some(*requests),
            WebStatus::Embedded { served } => Some(*served),
        }
    }

    /// Workers or connections that only wait for a client's next request.
    #[must_use]
    pub fn kept(&self) -> u64 {
        match self {
            WebStatus::Apache { places, .. } => places.get(&'K').copied().unwrap_or(0),
            WebStatus::Nginx { waiting, .. } => *waiting,
            WebStatus::Embedded { .. } => 0,
        }
    }

    /// Workers that would take a request at once; `None` for a server that has no such thing.
    #[must_use]
    pub fn ready(&self) -> Option<u64> {
        match self {
            WebStatus::Apache { places, .. } => Some(places.get(&'_').copied().unwrap_or(0)),
            WebStatus::Nginx { .. } | WebStatus::Embedded { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scoreboard_is_counted() {
        let places = [('.', 200), ('_', 5), ('W', 3), ('R', 1), ('K', 4), ('S', 1), ('C', 2)];
        let status = WebStatus::Apache { places: places.into(), served: None };
        assert_eq!((status.busy(), status.kept(), status.ready()), (Some(6), 4, Some(5)));
    }

    #[test]
    fn nginx_does_not_count_who_asks() {
        let status = WebStatus::Nginx { active: 8, accepts: 9, requests: 10, reading: 1, writing: 3, waiting: 4 };
        assert_eq!((status.busy(), status.kept(), status.ready()), (Some(3), 4, None));
    }
}
