//! What ab prints about a load: its report as text and as HTML, its files for a spreadsheet and for gnuplot, its lines on the way.
//!
//! [`AbView::of`] turns what was counted ([`AbFacts`]) and every single request ([`Records`]) into the numbers of ab's report;
//! [`text`], [`html`] and [`csv`] draw them letter for letter as ab 2.3 (httpd 2.4) does, and [`gnuplot`] writes the requests
//! themselves. Which numbers: [`Arithmetic`]. Nothing here is translated, because scripts read it.
//! What differs from ab, and why, stands in `docs/compatibility/ab.md`.

mod arithmetic;
pub mod csv;
pub mod gnuplot;
pub mod html;
pub mod progress;
mod ranks;
mod records;
pub mod text;
mod times;
pub mod trouble;
pub mod verdict;

pub use arithmetic::Arithmetic;
pub use records::{Part, Record, Records};
pub use times::{HtmlRow, Row, Times, Unsteady};

use std::io;

/// What was counted in a load, by ab's names for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AbFacts {
    /// Who was asked, and for what.
    pub whom: Whom,
    /// The length of the first answer's body; `None` when lengths may vary (`-l`).
    pub document_bytes: Option<u64>,
    /// Connections at a time.
    pub concurrency: u32,
    /// From just before the first connection until the last answer, in microseconds.
    pub took_us: u64,
    /// The counters.
    pub counts: AbCounts,
}

/// The first lines of the report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Whom {
    /// What the first answer calls its server; may be empty.
    pub software: String,
    /// The URL's host.
    pub host: String,
    /// The port.
    pub port: u16,
    /// What TLS came to; `None` without TLS.
    pub tls: Option<AbTls>,
    /// The URL's path with its query.
    pub path: String,
}

/// What TLS came to, in OpenSSL's words; a line that is `None` is not printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AbTls {
    /// Such as `TLSv1.3,TLS_AES_256_GCM_SHA384,2048,256`: version, suite, bits of the server's key and of the session's.
    pub protocol: Option<String>,
    /// Such as `X25519 253 bits`.
    pub temp_key: Option<String>,
    /// The name that was asked for (SNI).
    pub server_name: Option<String>,
}

/// ab's counters. Those of failures are taken as they come: who counts decides whether a request can fail twice.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AbCounts {
    /// Requests that ended, in whatever way.
    pub complete: u64,
    /// Of those, failed.
    pub failed: u64,
    /// Failed while connecting.
    pub connect: u64,
    /// Failed while receiving.
    pub receive: u64,
    /// Answers of another length than the first one.
    pub length: u64,
    /// Failed in another way.
    pub exceptions: u64,
    /// Requests that could not be sent.
    pub write_errors: u64,
    /// Answers that were not 2xx; ab does not call them failed.
    pub non_2xx: u64,
    /// Answers on connections that stayed open; `None` when that was not asked for (`-k`).
    pub kept_alive: Option<u64>,
    /// Bytes of answers.
    pub received_bytes: u64,
    /// Bytes of requests, heads included; `None` when they had no body.
    pub sent_bytes: Option<u64>,
    /// Bytes of answers' bodies.
    pub body_bytes: u64,
}

/// Everything that ab prints about a load.
#[derive(Debug, Clone, PartialEq)]
pub struct AbView {
    /// Who was asked, and for what.
    pub whom: Whom,
    /// The length of the first answer's body; `None` is `Variable`.
    pub document_bytes: Option<u64>,
    /// Connections at a time.
    pub concurrency: u32,
    /// Length of the load.
    pub seconds: f64,
    /// The counters.
    pub counts: AbCounts,
    /// What follows from counters and length; `None` for a load that took no time.
    pub rates: Option<Rates>,
    /// What follows from the single requests; `None` without any.
    pub times: Option<Times>,
}

/// What follows from the counters and the length of the load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rates {
    /// Completed requests per second.
    pub per_second: f64,
    /// "Time per request", first line: concurrency times length over requests. Not a time that was measured.
    pub ms_each: f64,
    /// "Time per request", second line: length over requests.
    pub ms_across: f64,
    /// KiB received per second.
    pub received_kib: f64,
    /// KiB sent, and sent and received, per second; only when requests had a body.
    pub sent_kib: Option<(f64, f64)>,
}

impl AbView {
    /// The view of a load.
    ///
    /// # Errors
    /// When the records cannot be read again.
    pub fn of(facts: &AbFacts, records: &dyn Records, arithmetic: Arithmetic) -> io::Result<AbView> {
        let AbFacts { whom, document_bytes, concurrency, took_us, counts } = facts;
        let seconds = *took_us as f64 / 1e6;
        Ok(AbView {
            whom: whom.clone(),
            document_bytes: *document_bytes,
            concurrency: *concurrency,
            seconds,
            counts: counts.clone(),
            rates: Rates::of(counts, *concurrency, seconds),
            times: Times::of(records, arithmetic)?,
        })
    }
}

impl Rates {
    fn of(counts: &AbCounts, concurrency: u32, seconds: f64) -> Option<Rates> {
        let (done, received) = (counts.complete as f64, counts.received_bytes);
        let kib = |bytes: u64| bytes as f64 / 1024.0 / seconds;
        (seconds > 0.0).then(|| Rates {
            per_second: done / seconds,
            ms_each: f64::from(concurrency) * seconds * 1000.0 / done,
            ms_across: seconds * 1000.0 / done,
            received_kib: kib(received),
            sent_kib: counts.sent_bytes.map(|sent| (kib(sent), kib(received + sent))),
        })
    }
}
