//! What the two ends tell each other.

use crate::sent::Sent;
use load::monotonic_ns;
use model::Nanos;
use model::load::{Counts, LoadResult};
use model::run::HostFacts;
use model::trial::Preflight;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// Two programs that understand each other have the same: the version, and how messages are written.
pub(crate) fn language() -> String {
    format!("{} 1", env!("CARGO_PKG_VERSION"))
}

/// What JSON is no good for.
pub(crate) type Blobs = Vec<Vec<u8>>;

/// From the near end. Bytes behind it belong to its load.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Order {
    /// Tell the time, and know that we are here.
    Ping(u64),
    /// Make room for a load, and say what may run short.
    Prepare(Box<Sent>),
    /// Send so few requests, one at a time, and say what came back.
    Look(Box<Sent>),
    /// Carry out a load.
    Load(Box<Sent>),
    /// End it now.
    Stop,
}

/// From the far end.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Answer {
    /// The first message.
    Hello(Box<Hello>),
    /// To that ping, at that time of the other clock.
    Pong(u64, Nanos),
    /// There is room; this is worth noting.
    Ready(Vec<String>),
    /// What the first requests met.
    Looked(Preflight),
    /// A second of the load is complete; its latencies are behind it.
    Interval(Interval),
    /// The load is over; its histograms are behind it.
    Done(Box<LoadResult>),
    /// The order cannot be carried out.
    Refused(String),
}

/// Who speaks.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Hello {
    /// As [`language`].
    pub(crate) language: String,
    /// What the machine is.
    pub(crate) host: HostFacts,
    /// The address by which it sees us.
    pub(crate) sees: Option<IpAddr>,
}

/// All of a second but its latencies.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Interval {
    pub(crate) start_ns: Nanos,
    pub(crate) length_ns: Nanos,
    pub(crate) counts: Counts,
}

/// Something that came, and when.
#[derive(Debug)]
pub(crate) struct Heard<T> {
    pub(crate) at_ns: Nanos,
    pub(crate) what: T,
}

impl<T> Heard<T> {
    /// It came just now.
    pub(crate) fn now(what: T) -> Heard<T> {
        Heard { at_ns: monotonic_ns(), what }
    }
}
