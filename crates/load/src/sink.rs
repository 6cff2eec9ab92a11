//! What becomes of a finished request: counted into histograms, or kept as it is.
//!
//! Every worker has a sink of its own, so nothing in one is shared or locked. A sink is the only place that counts.

use model::latency::Latency;
use model::load::{Counts, Failure, OpenLoop, Unanswered};
use model::{Nanos, SECOND};
use std::sync::mpsc::Sender;

/// One request, from its start to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// When it was due: in an open loop what its latency counts from, in a closed one the same as its start.
    pub due_ns: Nanos,
    /// When it began: with the first try to connect, or with writing on an open connection.
    pub start_ns: Nanos,
    /// How long connecting took, if a connection was opened for it.
    pub connect_ns: Option<Nanos>,
    /// How long TLS took to come up behind that, if it did.
    pub handshake_ns: Option<Nanos>,
    /// When the kernel had taken all of it, if there is a [`Witness`] to tell; of several sent together, when it had taken all.
    pub written_ns: Option<Nanos>,
    /// When the first byte of the answer was there.
    pub first_byte_ns: Option<Nanos>,
    /// When it was over: last byte, failure, or the end of the load.
    pub end_ns: Nanos,
    /// How it ended.
    pub ending: Ending,
    /// What of a complete answer counts.
    pub answer: Option<Answered>,
    /// Whether it was sent a second time, because a kept connection ended without a byte of an answer to the first.
    pub retried: bool,
    /// Bytes received.
    pub bytes_in: u64,
    /// Bytes sent.
    pub bytes_out: u64,
}

/// A complete answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answered {
    /// Its status.
    pub status: u16,
    /// Bytes of its content, without the framing of chunks.
    pub body_bytes: u64,
    /// Whether its connection can carry another request.
    pub reusable: bool,
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// A complete 2xx answer of the expected length.
    Good,
    /// Any other end of its own.
    Failed(Failure),
    /// Not at all: the load was over first.
    InFlight,
    /// Its user gave up on it or asked again.
    Abandoned,
    /// It never began: no connection was free for it until the load was over.
    Unsent,
}

impl Record {
    /// A request that was due and never began until `end_ns`.
    pub(crate) fn unsent(due_ns: Nanos, end_ns: Nanos) -> Record {
        Record {
            due_ns,
            start_ns: end_ns,
            connect_ns: None,
            handshake_ns: None,
            written_ns: None,
            first_byte_ns: None,
            end_ns,
            ending: Ending::Unsent,
            answer: None,
            retried: false,
            bytes_in: 0,
            bytes_out: 0,
        }
    }
}

/// Somebody who sees one worker's requests as they end, beside what the engine counts itself. It is called between requests, so
/// whatever it does the next one waits for.
pub trait Witness: Send {
    /// Whether there is somebody: if so, [`Record::written_ns`] is known.
    const IS_THERE: bool = true;

    /// Whether the heads of all answers are shown, to [`Witness::head`].
    fn wants_heads(&self) -> bool {
        false
    }

    /// The beginning of an answer, at least its head up to [`KEPT_OF_HEADS`] bytes; its record comes next.
    fn head(&mut self, _: &[u8]) {}

    /// A request is over, or can no longer begin.
    fn saw(&mut self, record: &Record);

    /// Whether the load has to end now, for all workers; asked when there is nothing else to do.
    fn is_enough(&self) -> bool {
        false
    }
}

/// The most of an answer that [`Witness::head`] is shown.
pub const KEPT_OF_HEADS: usize = 8 * 1024;

/// Nobody.
impl Witness for () {
    const IS_THERE: bool = false;

    fn saw(&mut self, _: &Record) {}
}

/// Takes one worker's records.
pub(crate) trait Sink: Send {
    /// What is left when the load is over.
    type Summary: Send;

    /// Whether it wants to know when requests were written.
    const TIMES_WRITES: bool = false;

    /// Whether it wants to see the heads of all answers.
    fn wants_heads(&self) -> bool {
        false
    }

    /// The beginning of an answer.
    fn head(&mut self, _: &[u8]) {}

    /// Whether the load has to end.
    fn is_enough(&self) -> bool {
        false
    }

    /// A request is over, or can no longer begin.
    fn record(&mut self, record: &Record);

    /// A request that had a free connection began so long after it was due.
    fn begun_late(&mut self, late_ns: Nanos);

    /// The clock shows `now`, and every record to come ends at or after it. Answers when it wants to be told again.
    fn tick(&mut self, now: Nanos) -> Nanos;

    /// The window ends at `at`, which nobody knew before.
    fn closes(&mut self, _at: Nanos) {}

    /// The load is over.
    fn finish(self) -> Self::Summary;
}

/// Keeps every record.
#[derive(Default)]
pub(crate) struct Records(Vec<Record>);

impl Sink for Records {
    type Summary = Vec<Record>;

    fn record(&mut self, record: &Record) {
        self.0.push(*record);
    }

    fn begun_late(&mut self, _: Nanos) {}

    fn tick(&mut self, _: Nanos) -> Nanos {
        Nanos::MAX
    }

    fn finish(self) -> Vec<Record> {
        self.0
    }
}

/// Counts into histograms; what belongs to a second is sent away when the second is over.
pub(crate) struct Histograms<W> {
    witness: W,
    seconds: Sender<Part>,
    worker: usize,
    origin: Nanos,
    // Where the window ends, if that is known.
    closes_ns: Nanos,
    // The second now being filled, counted from the origin, and what is in it.
    second: u64,
    counts: Counts,
    total: Latency,
    whole: Whole,
}

/// What one worker counted in one second.
pub(crate) struct Part {
    /// Which worker.
    pub(crate) worker: usize,
    /// Which second, counted from the origin.
    pub(crate) second: u64,
    /// The second it fills next: whatever lies between stayed empty.
    pub(crate) next: u64,
    /// What ended in it.
    pub(crate) counts: Counts,
    /// Latencies of the good answers that ended in it.
    pub(crate) total: Latency,
}

/// What one worker counted over the whole load and not by the second.
pub(crate) struct Whole {
    /// Start to first byte, of good answers.
    pub(crate) first_byte: Latency,
    /// Time to connect, of connections opened.
    pub(crate) connect: Latency,
    /// Time for TLS to come up, of connections that did.
    pub(crate) handshake: Latency,
    /// What only an open loop counts.
    pub(crate) open: Option<OpenLoop>,
    /// Requests without an answer.
    pub(crate) unanswered: Unanswered,
    /// What ended after the window.
    pub(crate) late: Counts,
    /// Requests cut off.
    pub(crate) in_flight: u64,
    /// Time in flight, of all requests.
    pub(crate) in_flight_ns: Nanos,
    /// Start of the first request.
    pub(crate) first_start_ns: Option<Nanos>,
}

impl<W> Histograms<W> {
    /// An empty sink for the seconds from `origin` to `closes_ns`, of an open loop if it comes with such an account.
    pub(crate) fn new(
        worker: usize,
        (origin, closes_ns): (Nanos, Nanos),
        open: Option<OpenLoop>,
        seconds: Sender<Part>,
        witness: W,
    ) -> Histograms<W> {
        let whole = Whole {
            first_byte: Latency::preallocated(),
            connect: Latency::preallocated(),
            handshake: Latency::preallocated(),
            open,
            unanswered: Unanswered::preallocated(),
            late: Counts::default(),
            in_flight: 0,
            in_flight_ns: 0,
            first_start_ns: None,
        };
        let (counts, total) = (Counts::default(), Latency::preallocated());
        Histograms { witness, seconds, worker, origin, closes_ns, second: 0, counts, total, whole }
    }

    /// What is known of the times of a request that got no answer, if it says anything of the server's.
    fn note_unanswered(&mut self, record: &Record) {
        let is_open = self.whole.open.is_some();
        let (waited, was_sent) = match record.ending {
            Ending::Failed(Failure::Timeout) | Ending::Abandoned => (true, true),
            Ending::InFlight => (is_open, true),
            Ending::Unsent => (is_open, false),
            Ending::Good | Ending::Failed(_) => (false, true),
        };
        if !waited {
            return;
        }
        let Record { due_ns, start_ns, end_ns, .. } = *record;
        let since = |from: Nanos, at: Nanos| micros(at.saturating_sub(from));
        self.whole.unanswered.latency.record(since(due_ns, end_ns));
        self.whole.unanswered.first_byte.record(since(due_ns, record.first_byte_ns.unwrap_or(end_ns)));
        if is_open && was_sent {
            self.whole.unanswered.service.record(since(start_ns, end_ns));
        }
    }

    /// Where the second now being filled ends.
    fn boundary(&self) -> Nanos {
        self.origin + (self.second + 1) * SECOND
    }

    /// Sends away what was filled, and goes on with the second that `at` lies in.
    fn roll_over(&mut self, at: Nanos) {
        let counts = std::mem::take(&mut self.counts);
        let total = std::mem::replace(&mut self.total, Latency::preallocated());
        self.send(counts, total, at.saturating_sub(self.origin) / SECOND);
    }

    fn send(&mut self, counts: Counts, total: Latency, next: u64) {
        let part = Part { worker: self.worker, second: self.second, next, counts, total };
        // The collector listens until every worker has finished.
        let _ = self.seconds.send(part);
        self.second = next;
    }
}

impl<W: Witness> Sink for Histograms<W> {
    type Summary = (Whole, W);

    const TIMES_WRITES: bool = W::IS_THERE;

    fn wants_heads(&self) -> bool {
        self.witness.wants_heads()
    }

    fn head(&mut self, bytes: &[u8]) {
        self.witness.head(bytes);
    }

    fn is_enough(&self) -> bool {
        self.witness.is_enough()
    }

    fn record(&mut self, record: &Record) {
        self.witness.saw(record);
        let Record { due_ns, start_ns, end_ns, .. } = *record;
        let ended = matches!(record.ending, Ending::Good | Ending::Failed(_));
        // What was cut off ended in no second: it is no reason to begin one.
        if end_ns >= self.boundary() && ended {
            self.roll_over(end_ns);
        }
        let since_due = |at: Nanos| micros(at.saturating_sub(due_ns));
        count(&mut self.counts, record);
        if end_ns >= self.closes_ns && (ended || record.ending == Ending::Abandoned) {
            count(&mut self.whole.late, record);
        }
        if let Some(connect_ns) = record.connect_ns {
            self.whole.connect.record(micros(connect_ns));
        }
        if let Some(handshake_ns) = record.handshake_ns {
            self.whole.handshake.record(micros(handshake_ns));
        }
        match record.ending {
            Ending::Good => {
                self.total.record(since_due(end_ns));
                self.whole.first_byte.record(since_due(record.first_byte_ns.unwrap_or(end_ns)));
            }
            Ending::InFlight => self.whole.in_flight += 1,
            Ending::Failed(_) | Ending::Abandoned | Ending::Unsent => {}
        }
        if let Some(open) = &mut self.whole.open {
            open.arrived += 1;
            match record.ending {
                Ending::Good => open.service.record(micros(end_ns.saturating_sub(start_ns))),
                Ending::Unsent => open.unsent += 1,
                _ => {}
            }
        }
        self.note_unanswered(record);
        // What an open loop waits for behind its window is no part of it.
        self.whole.in_flight_ns += end_ns.min(self.closes_ns).saturating_sub(start_ns);
        // Requests end in another order than they begin in.
        self.whole.first_start_ns = Some(self.whole.first_start_ns.map_or(start_ns, |first| first.min(start_ns)));
    }

    fn begun_late(&mut self, late_ns: Nanos) {
        if let Some(open) = &mut self.whole.open {
            open.lateness.record(micros(late_ns));
        }
    }

    fn tick(&mut self, now: Nanos) -> Nanos {
        if now >= self.boundary() {
            self.roll_over(now);
        }
        self.boundary()
    }

    fn closes(&mut self, at: Nanos) {
        self.closes_ns = self.closes_ns.min(at);
    }

    fn finish(mut self) -> (Whole, W) {
        let (counts, total) = (std::mem::take(&mut self.counts), std::mem::take(&mut self.total));
        self.send(counts, total, u64::MAX);
        (self.whole, self.witness)
    }
}

fn count(counts: &mut Counts, record: &Record) {
    counts.retries += u64::from(record.retried);
    counts.bytes_in += record.bytes_in;
    counts.bytes_out += record.bytes_out;
    counts.connects += u64::from(record.connect_ns.is_some());
    if let Some(Answered { status, .. }) = record.answer {
        *counts.statuses.entry(status).or_default() += 1;
    }
    match record.ending {
        Ending::Good => counts.good += 1,
        Ending::Failed(cause) => *counts.failed.entry(cause).or_default() += 1,
        Ending::InFlight | Ending::Abandoned | Ending::Unsent => {}
    }
}

/// The nearest whole microsecond; cutting off would make every latency half a microsecond too short on average.
pub(crate) fn micros(length: Nanos) -> u64 {
    length.saturating_add(500) / 1000
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    const ORIGIN: Nanos = 7 * SECOND + 1;

    /// A good request from `start_ns` to `end_ns`, both counted from the origin.
    fn record(start_ns: Nanos, end_ns: Nanos) -> Record {
        Record {
            due_ns: ORIGIN + start_ns,
            start_ns: ORIGIN + start_ns,
            connect_ns: None,
            handshake_ns: None,
            written_ns: None,
            first_byte_ns: None,
            end_ns: ORIGIN + end_ns,
            ending: Ending::Good,
            answer: Some(Answered { status: 200, body_bytes: 1, reusable: true }),
            retried: false,
            bytes_in: 1,
            bytes_out: 1,
        }
    }

    /// Feeds records without a tick in between; each part that comes out as its second, its good answers, its bytes in.
    fn check(records: &[Record], expected: &[(u64, u64, u64)]) {
        let (sender, parts) = mpsc::channel();
        let mut sink = Histograms::new(0, (ORIGIN, Nanos::MAX), None, sender, ());
        records.iter().for_each(|record| sink.record(record));
        sink.finish();
        let parts: Vec<_> = parts.iter().map(|part| (part.second, part.total.len(), part.counts.bytes_in)).collect();
        assert_eq!(parts, expected);
    }

    #[test]
    fn an_answer_belongs_to_the_second_it_ended_in() {
        let ends = [1, SECOND - 1, SECOND, 2 * SECOND - 1, 2 * SECOND, 5 * SECOND + 3];
        let records = ends.map(|end_ns| record(end_ns - 1, end_ns));
        check(&records, &[(0, 2, 2), (1, 2, 2), (2, 1, 1), (5, 1, 1)]);
        let cut_off = Record { ending: Ending::InFlight, ..record(SECOND - 1, SECOND) };
        check(&[records[0], cut_off], &[(0, 1, 2)]);
    }

    #[test]
    fn latencies_are_the_nearest_microsecond() {
        let nearest = [0, 499, 500, 1_499, 1_500, 1_000_700].map(micros);
        assert_eq!(nearest, [0, 0, 1, 1, 2, 1_001]);
        let (sender, _parts) = mpsc::channel();
        let mut sink = Histograms::new(0, (ORIGIN, Nanos::MAX), None, sender, ());
        sink.record(&Record { connect_ns: Some(1_700), first_byte_ns: Some(ORIGIN + 3_600), ..record(0, 5_800) });
        let total = sink.total.range_us();
        let (whole, ()) = sink.finish();
        assert_eq!([total, whole.first_byte.range_us(), whole.connect.range_us()], [6, 4, 2].map(|us| Some((us, us))));
    }
}
