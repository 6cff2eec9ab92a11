//! One request on its way, and the record of it.

use crate::sink::{Answered, Ending, Record};
use http1::Answer;
use model::Nanos;

/// One request: which one, its times and its bytes.
#[derive(Default, Clone)]
pub(crate) struct Exchange {
    /// Which kind it is of.
    pub(crate) kind: usize,
    /// Its number, which with its kind says all that is in it.
    pub(crate) serial: u64,
    /// When it was due.
    pub(crate) due_ns: Nanos,
    /// When it began.
    pub(crate) start_ns: Nanos,
    /// How long connecting took, if a connection was opened for it.
    pub(crate) connect_ns: Option<Nanos>,
    /// How long TLS took to come up, if it did for it.
    pub(crate) handshake_ns: Option<Nanos>,
    /// When it was written, if anybody wants to know.
    pub(crate) written_ns: Option<Nanos>,
    /// When the first byte of its answer was there.
    pub(crate) first_byte_ns: Option<Nanos>,
    /// Whether it was sent again.
    pub(crate) retried: bool,
    /// Bytes of its answer so far.
    pub(crate) bytes_in: u64,
    /// Bytes of it.
    pub(crate) bytes_out: u64,
}

impl Exchange {
    /// The request as it stands, ended so at `end_ns`, if all of it has left.
    pub(crate) fn record(&self, ending: Ending, answer: Option<Answer>, end_ns: Nanos) -> Record {
        let Exchange {
            due_ns,
            start_ns,
            connect_ns,
            handshake_ns,
            written_ns,
            first_byte_ns,
            retried,
            bytes_in,
            bytes_out,
            ..
        } = *self;
        let answer =
            answer.map(|Answer { status, body_bytes, reusable, .. }| Answered { status, body_bytes, reusable });
        Record {
            due_ns,
            start_ns,
            connect_ns,
            handshake_ns,
            written_ns,
            first_byte_ns,
            end_ns,
            ending,
            answer,
            retried,
            bytes_in,
            bytes_out,
        }
    }
}
