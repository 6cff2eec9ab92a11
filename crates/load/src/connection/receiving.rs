//! The way back: what the server sends, as far as an answer is complete, broken off, or better thrown away.

use super::{Connection, Heads, Line, Progress};
use crate::checks::Watching;
use crate::machine::monotonic_ns;
use crate::sink::KEPT_OF_HEADS;
use crate::transport::{Stream, StreamError};
use crate::why::Why;
use http1::{Answer, Memo};
use model::Nanos;
use rustix::io::Errno;
use std::ops::Range;

/// What was read last and not looked at yet, and what answers were like. One for all connections of a worker: each leaves it
/// empty.
pub(crate) struct Inbox {
    bytes: Vec<u8>,
    unread: Range<usize>,
    at: Nanos,
    memo: Memo,
    // Whether answers are so long that most of their bytes are better thrown away than read.
    long: bool,
}

impl Inbox {
    /// An empty one.
    pub(crate) fn new() -> Inbox {
        Inbox { bytes: vec![0; READ_BUFFER], unread: 0..0, at: 0, memo: Memo::default(), long: false }
    }

    /// Whether everything was looked at.
    pub(crate) fn is_empty(&self) -> bool {
        self.unread.is_empty()
    }

    /// Forgets what nobody asked for.
    pub(crate) fn clear(&mut self) {
        self.unread = 0..0;
    }
}

impl Connection {
    /// Reads once. What is left makes epoll tell again, so one connection with a large body cannot hold up the others.
    pub(super) fn read(&mut self, line: &Line<'_>, inbox: &mut Inbox) -> Progress {
        // Within TLS nothing is saved by it, and what stayed behind in the session nobody would tell of.
        let may_skip = !self.wants_body(line) && self.stream.as_ref().is_some_and(Stream::discards);
        let skip = usize::try_from(self.parser.discardable()).unwrap_or(usize::MAX);
        if may_skip && skip >= SKIP_FROM && !self.is_idle() {
            return self.skip(skip, inbox);
        }
        // Of a long answer only the head is wanted, the rest is skipped.
        let room = if inbox.long && may_skip { HEAD_BUFFER } else { READ_BUFFER };
        let length = match self.receive(&mut inbox.bytes[..room]) {
            Ok(length) => length,
            Err(progress) => return progress,
        };
        inbox.at = monotonic_ns();
        inbox.unread = 0..length;
        if length == 0 {
            return match (self.ended(inbox), self.refusal) {
                (Progress::Broken { .. }, Some(errno)) => self.failed(StreamError::Kernel(errno)),
                (progress, _) => progress,
            };
        }
        if self.is_idle() {
            // Bytes that nobody asked for; the worker closes the connection on them.
            return Progress::Pending;
        }
        match self.parse(line, inbox) {
            // The head is there, and the body behind it.
            Progress::Pending if room == HEAD_BUFFER && length == room => self.skip_body(inbox),
            Progress::Pending if self.stream.as_ref().is_some_and(Stream::is_ended) => self.read(line, inbox),
            progress => progress,
        }
    }

    /// Whether somebody looks at the next bytes of content.
    fn wants_body(&self, line: &Line<'_>) -> bool {
        matches!((&self.seen, &line.checks), (Some(seen), Some(checks)) if checks.want_body(seen))
    }

    /// Skips what may be skipped by now.
    fn skip_body(&mut self, inbox: &mut Inbox) -> Progress {
        match usize::try_from(self.parser.discardable()).unwrap_or(usize::MAX) {
            0 => Progress::Pending,
            most => self.skip(most, inbox),
        }
    }

    /// Has the kernel throw away bytes that nobody looks at.
    fn skip(&mut self, most: usize, inbox: &mut Inbox) -> Progress {
        let Some(stream) = &mut self.stream else { return self.failed(StreamError::Kernel(Errno::NOTCONN)) };
        let room = most.min(READ_BUFFER);
        let length = match stream.discard(&mut inbox.bytes[..room]) {
            Ok(length) => length,
            Err(error) => return self.not_now(error),
        };
        inbox.at = monotonic_ns();
        if length == 0 {
            return self.ended(inbox);
        }
        self.exchanges[self.oldest].bytes_in += length as u64;
        self.parser.discarded(length as u64).map_or(Progress::Pending, |answer| self.complete(answer, inbox))
    }

    fn receive(&mut self, buffer: &mut [u8]) -> Result<usize, Progress> {
        match &mut self.stream {
            Some(stream) => stream.receive(buffer).map_err(|error| self.not_now(error)),
            None => Err(self.failed(StreamError::Kernel(Errno::NOTCONN))),
        }
    }

    fn not_now(&self, error: StreamError) -> Progress {
        match error {
            StreamError::Kernel(Errno::AGAIN | Errno::INTR) => Progress::Pending,
            error => self.failed(error),
        }
    }

    /// The server closed its side: for some answers that is their end.
    fn ended(&mut self, inbox: &Inbox) -> Progress {
        let is_cut_off = self.stream.as_ref().is_some_and(Stream::is_cut_off);
        match self.parser.close() {
            Some(_) if is_cut_off => Progress::broken(Why::CutOff { after: self.oldest().bytes_in }, inbox.at),
            Some(answer) if !self.is_idle() => Progress::Answered { answer, at: inbox.at },
            _ => Progress::broken(Why::Closed { after: self.oldest().bytes_in }, inbox.at),
        }
    }

    /// Whether a handshake has come to its end.
    pub(super) fn is_shaken(&mut self, line: &Line<'_>) -> bool {
        let Some(stream) = self.stream.as_ref().filter(|stream| !stream.is_handshaking()) else { return false };
        if line.tls.get().is_none()
            && let Some(facts) = stream.tls_facts()
        {
            let _ = line.tls.set(facts);
        }
        self.handshaking = false;
        self.exchanges[self.oldest].handshake_ns = Some(monotonic_ns().saturating_sub(self.connected_ns));
        true
    }

    /// Looks at what was read and belongs to the next answer.
    pub(crate) fn parse(&mut self, line: &Line<'_>, inbox: &mut Inbox) -> Progress {
        let place = self.jar(line);
        let exchange = &mut self.exchanges[self.oldest];
        let piece = &inbox.bytes[inbox.unread.clone()];
        if exchange.first_byte_ns.is_none() {
            exchange.first_byte_ns = Some(inbox.at);
            self.parser.expect(line.requests.kind(exchange.kind).asked);
            self.head.clear();
            if let Some(seen) = &mut self.seen {
                seen.begin();
            }
        }
        if line.heads.get() != Heads::Nobodys {
            let room = KEPT_OF_HEADS.saturating_sub(self.head.len()).min(piece.len());
            self.head.extend_from_slice(&piece[..room]);
        }
        let fed = match (&mut self.seen, &line.checks) {
            (Some(seen), Some(checks)) => {
                let mut jars = line.jars.borrow_mut();
                let jar = jars.get_mut(place);
                self.parser.feed_to(piece, &mut inbox.memo, &mut Watching { checks, seen, jar })
            }
            _ => self.parser.feed(piece, &mut inbox.memo),
        };
        match fed {
            Ok(fed) => {
                exchange.bytes_in += fed.used as u64;
                inbox.unread.start += fed.used;
                match fed.answer {
                    Some(answer) => self.complete(answer, inbox),
                    None if self.body_waits && fed.interim == Some(100) => self.send_body(line),
                    None => Progress::Pending,
                }
            }
            Err(error) => {
                let why = Why::malformed(error, piece);
                inbox.clear();
                Progress::broken(why, inbox.at)
            }
        }
    }

    fn complete(&mut self, mut answer: Answer, inbox: &mut Inbox) -> Progress {
        self.answered = true;
        // The server does not want all it was promised, and would take the next request for the rest.
        answer.reusable &= !self.body_waits && self.refusal.is_none() && self.unsent() == 0;
        inbox.long = answer.body_bytes >= LONG;
        Progress::Answered { answer, at: inbox.at }
    }
}

/// Bytes read at once. A body of 64 kB in one call; larger gains little and leaves the cache.
const READ_BUFFER: usize = 128 * 1024;

/// Bytes read at once when a long body is expected behind them.
const HEAD_BUFFER: usize = 4 * 1024;

/// From such a body on, copying it costs more than one more call.
const LONG: u64 = 16 * 1024;

/// So much of a body is left to the kernel to throw away; less is copied by the way.
const SKIP_FROM: usize = 4 * 1024;
