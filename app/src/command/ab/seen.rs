//! What ab counts, counted while the load goes on: every request as it ends.

use super::kept::AT_A_TIME;
use crate::say::say_part;
use load::{Answered, Ending, Record, Witness};
use model::Nanos;
use model::load::Failure;
use report::ab;
use report::ab::{AbCounts, progress};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::Sender;

/// So many failures in a row, with no answer between them, end a load that shall not go on in spite of them.
const IN_A_ROW: u32 = 10;

/// A worker tells the others that it has answers no more often than this; what is asked of it are seconds.
const TOLD_EVERY: Nanos = 10_000_000;

/// Requests that are added to the common count at a time, so that workers seldom touch it.
const COUNTED_AT_A_TIME: u64 = 64;

/// What all workers' counting has in common.
pub(super) struct Watch {
    /// When the load began.
    pub(super) origin_ns: Nanos,
    /// Whether answers may differ in length (`-l`).
    pub(super) any_length: bool,
    /// Whether connections are meant to be kept (`-k`).
    pub(super) keep_alive: bool,
    /// Whether requests have a body.
    pub(super) has_body: bool,
    /// Whether it goes on when answers break off (`-r`).
    pub(super) go_on: bool,
    /// `-v`.
    pub(super) verbosity: i32,
    /// Whether standard output is for JSON alone.
    pub(super) json: bool,
    /// Whether requests come by a timetable.
    pub(super) is_open: bool,
    /// Every how many requests one hears of it.
    pub(super) beat: Option<u64>,
    /// Requests that ended, as far as workers have said.
    pub(super) done: AtomicU64,
    /// Whether there was any answer.
    pub(super) answered: AtomicBool,
    /// About when the last answer came to any worker: see [`TOLD_EVERY`].
    pub(super) last_answer_ns: AtomicU64,
    /// Failures since the last answer to any worker.
    pub(super) failures_in_a_row: AtomicU32,
    /// Length of the first answer's body.
    pub(super) document: OnceLock<u64>,
    /// The first thing at which ab would have ended.
    pub(super) fatal: OnceLock<Fatal>,
}

impl Watch {
    /// Counters at their beginning: of what is not asked for nothing is counted.
    pub(super) fn nothing(&self) -> AbCounts {
        AbCounts {
            kept_alive: self.keep_alive.then_some(0),
            sent_bytes: self.has_body.then_some(0),
            ..AbCounts::default()
        }
    }
}

/// What ends ab.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fatal {
    /// A connection was refused.
    Refused,
    /// This machine could not connect.
    Local,
    /// A connection was reset.
    Reset,
    /// The time of `-s` has passed.
    TimedOut,
}

/// One worker's counting.
pub(super) struct Seen<'a> {
    watch: &'a Watch,
    hatch: Sender<Vec<ab::Record>>,
    records: Vec<ab::Record>,
    counts: AbCounts,
    // Of the requests counted, those that are not in the common count yet.
    unsaid: u64,
    // When it last told the others that it has answers.
    told_ns: Nanos,
    enough: bool,
}

impl<'a> Seen<'a> {
    pub(super) fn new(watch: &'a Watch, hatch: Sender<Vec<ab::Record>>) -> Seen<'a> {
        Seen { watch, hatch, records: Vec::new(), counts: watch.nothing(), unsaid: 0, told_ns: 0, enough: false }
    }

    /// Hands over what is left; gives the counters.
    pub(super) fn finish(mut self) -> AbCounts {
        self.say();
        let records = std::mem::take(&mut self.records);
        // The keeper listens for as long as there are workers.
        let _ = self.hatch.send(records);
        self.counts
    }

    /// Adds to the common count, and says so each time that it has come so far.
    fn say(&mut self) {
        let new = std::mem::take(&mut self.unsaid);
        let before = self.watch.done.fetch_add(new, Ordering::Relaxed);
        let Some(beat) = self.watch.beat else { return };
        (before / beat + 1..=(before + new) / beat).for_each(|nth| say_part(&progress::completed(nth * beat)));
    }

    fn answer(&mut self, Answered { status, body_bytes, reusable }: Answered) {
        if !self.watch.answered.load(Ordering::Relaxed) {
            self.watch.answered.store(true, Ordering::Relaxed);
        }
        let counts = &mut self.counts;
        counts.body_bytes += body_bytes;
        counts.non_2xx += u64::from(!(200..300).contains(&status));
        counts.kept_alive.iter_mut().for_each(|kept| *kept += u64::from(reusable));
        let first = *self.watch.document.get_or_init(|| body_bytes);
        counts.length += u64::from(!self.watch.any_length && body_bytes != first);
    }

    /// A request without an answer that counts.
    fn failure(&mut self, cause: Failure, record: &Record) {
        match cause {
            Failure::Refused | Failure::Local => self.counts.connect += 1,
            // Neither written nor an answer to it: there never was a connection.
            Failure::Timeout if record.written_ns.is_none() => self.counts.connect += 1,
            Failure::Timeout | Failure::Reset | Failure::ClosedEarly => self.counts.receive += 1,
            _ => self.counts.exceptions += 1,
        }
        let fatal = match cause {
            Failure::Refused if !self.watch.go_on => Fatal::Refused,
            Failure::Reset if !self.watch.go_on => Fatal::Reset,
            Failure::Local => Fatal::Local,
            Failure::Timeout => Fatal::TimedOut,
            _ => return,
        };
        let _ = self.watch.fatal.set(fatal);
        let in_a_row = self.watch.failures_in_a_row.fetch_add(1, Ordering::Relaxed) + 1;
        // ab ends when nothing at all has come for so long, and so do we; one connection that is stuck is only a failure. By a
        // timetable there may be nothing else on its way.
        let last_answer_ns = self.watch.last_answer_ns.load(Ordering::Relaxed);
        let all_stuck = fatal == Fatal::TimedOut && !self.watch.is_open && last_answer_ns <= record.start_ns;
        let nothing_yet = !self.watch.answered.load(Ordering::Relaxed);
        self.enough |= nothing_yet || all_stuck || in_a_row > IN_A_ROW;
    }

    /// Lets the other workers know that there are answers.
    fn tell_of_answer(&mut self, at: Nanos) {
        if self.watch.failures_in_a_row.load(Ordering::Relaxed) > 0 {
            self.watch.failures_in_a_row.store(0, Ordering::Relaxed);
        }
        if at >= self.told_ns + TOLD_EVERY {
            self.told_ns = at;
            self.watch.last_answer_ns.fetch_max(at, Ordering::Relaxed);
        }
    }

    fn keep(&mut self, record: &Record) {
        if self.records.capacity() == 0 {
            self.records.reserve_exact(AT_A_TIME);
        }
        self.records.push(times(record, self.watch.origin_ns));
        if self.records.len() == AT_A_TIME {
            let _ = self.hatch.send(std::mem::replace(&mut self.records, Vec::with_capacity(AT_A_TIME)));
        }
    }
}

impl Witness for Seen<'_> {
    fn wants_heads(&self) -> bool {
        self.watch.verbosity >= 2
    }

    fn head(&mut self, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        let code = text.split(' ').nth(1).unwrap_or_default();
        let status = progress::status(code, self.watch.verbosity).unwrap_or_default();
        super::verbose(self.watch.json, &(progress::received_header(&text) + &status));
    }

    fn is_enough(&self) -> bool {
        self.enough
    }

    fn saw(&mut self, record: &Record) {
        let failed = match record.ending {
            Ending::Good => None,
            Ending::Failed(cause) => Some(cause),
            Ending::InFlight | Ending::Abandoned | Ending::Unsent => return,
        };
        self.counts.complete += 1;
        self.counts.received_bytes += record.bytes_in;
        self.counts.sent_bytes.iter_mut().for_each(|sent| *sent += record.bytes_out);
        match (record.answer, failed) {
            (Some(answer), _) => {
                self.tell_of_answer(record.end_ns);
                self.answer(answer);
            }
            (None, Some(cause)) => self.failure(cause, record),
            (None, None) => {}
        }
        self.keep(record);
        self.unsaid += 1;
        if self.unsaid == COUNTED_AT_A_TIME {
            self.say();
        }
    }
}

/// A request's times as ab has them.
fn times(record: &Record, origin_ns: Nanos) -> ab::Record {
    let Record { start_ns, end_ns, .. } = *record;
    let connect_ns = record.connect_ns.unwrap_or(0) + record.handshake_ns.unwrap_or(0);
    // What is written before TLS is up leaves when it is.
    let written_ns = record.written_ns.unwrap_or(start_ns).max(start_ns + connect_ns);
    let micros = |length: Nanos| u32::try_from((length + 500) / 1000).unwrap_or(u32::MAX);
    ab::Record {
        start_ms: u32::try_from(start_ns.saturating_sub(origin_ns) / 1_000_000).unwrap_or(u32::MAX),
        connect_us: micros(connect_ns),
        total_us: micros(end_ns.saturating_sub(start_ns)),
        wait_us: record.first_byte_ns.map_or(0, |at| micros(at.saturating_sub(written_ns))),
    }
}
