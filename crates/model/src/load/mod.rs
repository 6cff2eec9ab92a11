//! What a load did: counts, latencies and the generator's own account of itself.
//!
//! A failure is never throughput. Requests still in flight when the load stopped are reported as such, not as failures and not
//! as answers. The self-check is derived here, so that every reader of a stored load comes to the same doubts.

mod derived;

use crate::Nanos;
use crate::latency::{Latency, Packed};
use crate::plan::TlsVersion;
use crate::run::HostFacts;
pub use derived::{LoadDoubt, Quantile, percentile_of};
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
}

#[cfg(test)]
mod tests;
