//! What one line of a log says. Whatever was not logged, or was logged as `-`, is `None`.

use std::borrow::Cow;
use std::fmt;

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The logged time, and whether it is that of the request's start or end.
    pub time: Option<Timestamp>,
    /// Address or name of the peer.
    pub client: Option<Cow<'a, str>>,
    /// What was asked for, or why the line does not say.
    pub request: Result<Request<'a>, NoRequest>,
    /// The answer's status.
    pub status: Option<u16>,
    /// Bytes of the answer: its body when the format logs that, else with its head.
    pub bytes: Option<u64>,
    /// How long the server was busy with the request, in nanoseconds.
    pub duration_ns: Option<u64>,
    /// The host that was asked: from an absolute target, else from the Host field, else the server's own name.
    pub host: Option<Cow<'a, str>>,
    /// The Referer field.
    pub referer: Option<Cow<'a, str>>,
    /// The User-Agent field.
    pub user_agent: Option<Cow<'a, str>>,
}

/// A moment as precise as it was logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timestamp {
    /// Nanoseconds since 1970 in UTC. A time that was logged without its zone is taken for UTC.
    pub ns: i64,
    /// How precise it is: the true moment lies less than this after `ns`.
    pub resolution: Resolution,
    /// Of which moment of the request.
    pub of: Moment,
}

/// How precise a time is, the coarsest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resolution {
    /// One second.
    Second,
    /// One millisecond.
    Milli,
    /// One microsecond.
    Micro,
}

/// A moment in the life of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// The server had read the request line: Apache's `%t`.
    Start,
    /// The answer was sent and the line written: all times of nginx, and Apache's `%{end:...}t`.
    End,
}

/// A request that could be sent again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request<'a> {
    /// As written, such as `GET`.
    pub method: Cow<'a, str>,
    /// Path and query as written, beginning with `/`; or `*` of OPTIONS, or host and port of CONNECT.
    ///
    /// Bytes that are not UTF-8, and what only the decoded path was logged of, are percent-encoded.
    pub target: Cow<'a, str>,
    /// `None` when the format does not log it.
    pub version: Option<Version>,
}

/// The version that a request line names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// A request line without a version.
    Http09,
    /// HTTP/1.0.
    Http10,
    /// HTTP/1.1.
    Http11,
    /// HTTP/2.
    Http2,
    /// HTTP/3.
    Http3,
}

/// Why a line holds no request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoRequest {
    /// The format logs no request line, and no method with a target.
    NotLogged,
    /// The client sent none: it closed, or waited too long.
    Empty,
    /// A TLS handshake on a port without TLS.
    Tls,
    /// Bytes of some other protocol, or HTTP/2 where HTTP/1 was expected.
    NotHttp,
    /// Text that is not a request line.
    Malformed,
}

impl Entry<'_> {
    /// When the request started: the logged time, less the duration when that time is the end.
    /// Without a duration the end has to do.
    #[must_use]
    pub fn start_ns(&self) -> Option<i64> {
        let time = self.time?;
        Some(time.ns.saturating_sub(i64::try_from(self.since_start_ns()).unwrap_or(i64::MAX)))
    }

    /// How long before the logged time the request started, in nanoseconds.
    #[must_use]
    pub fn since_start_ns(&self) -> u64 {
        match self.time {
            Some(Timestamp { of: Moment::End, .. }) => self.duration_ns.unwrap_or(0),
            Some(Timestamp { of: Moment::Start, .. }) | None => 0,
        }
    }
}

impl Resolution {
    /// Its length in nanoseconds.
    #[must_use]
    pub fn ns(self) -> u64 {
        match self {
            Resolution::Second => 1_000_000_000,
            Resolution::Milli => 1_000_000,
            Resolution::Micro => 1_000,
        }
    }
}

impl fmt::Display for NoRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NoRequest::NotLogged => "whose format logs no request",
            NoRequest::Empty => "without a request",
            NoRequest::Tls => "with a TLS handshake on a plain port",
            NoRequest::NotHttp => "with another protocol than HTTP/1",
            NoRequest::Malformed => "with a malformed request",
        })
    }
}
