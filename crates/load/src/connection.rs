//! One connection and the requests on it: connect, write, read.
//!
//! It moves bytes and keeps times. Which request comes next, what counts as good and when to give up are the worker's.

mod receiving;
mod sending;

pub(crate) use receiving::Inbox;

use crate::checks::{Checks, Seen};
use crate::exchange::Exchange;
use crate::jar::Jar;
use crate::machine::monotonic_ns;
use crate::requests::Requests;
use crate::sink::{Ending, Record};
use crate::transport::{Dialer, Stream, StreamError};
use crate::why::Why;
use http1::{Answer, Asked, Parser};
use model::Nanos;
use model::load::{Failure, TlsFacts};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::cell::{Cell, OnceCell, RefCell};
use std::net::SocketAddr;

/// What all connections of a worker share.
pub(crate) struct Line<'a> {
    /// How to connect.
    pub(crate) dialer: Dialer<'a>,
    /// What can be asked.
    pub(crate) requests: &'a Requests,
    /// What answers are held to, if anybody looks at them.
    pub(crate) checks: Option<Checks>,
    /// The cookies that are kept, if they are: for each connection, or for each user's together.
    pub(crate) jars: RefCell<Vec<Jar>>,
    /// How many connections have one jar.
    pub(crate) sharing: usize,
    /// Whether the connection carries the next request.
    pub(crate) keep_alive: bool,
    /// Requests in flight on a connection.
    pub(crate) depth: usize,
    /// Where readiness is told.
    pub(crate) epoll: OwnedFd,
    /// Whether the moment is kept at which a request was written.
    pub(crate) times_writes: bool,
    /// Of which answers the first bytes are kept as they came.
    pub(crate) heads: Cell<Heads>,
    /// What TLS came to on the first connection.
    pub(crate) tls: OnceCell<TlsFacts>,
}

/// Of which answers the first bytes are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heads {
    /// Of those that begin before the first one is complete.
    First,
    /// Of all.
    All,
    /// Of none any more.
    Nobodys,
}

/// A connection, open or not, and its requests.
pub(crate) struct Connection {
    // Tells it apart from the worker's others in `Line::epoll`.
    token: u64,
    stream: Option<Stream>,
    // What the stream is registered for.
    interest: EventFlags,
    // Since when it is being connected, if it is.
    connecting: Option<Nanos>,
    // Whom to, of several servers.
    server: Option<SocketAddr>,
    // Whether requests wait for a handshake.
    handshaking: bool,
    // When it was connected.
    connected_ns: Nanos,
    // Whether the stream has carried an answer.
    answered: bool,
    /// Since when it is in its worker's queue of those with room, if it is.
    pub(crate) free_since: Option<Nanos>,
    /// Failures since the last complete answer.
    pub(crate) failures: u32,
    /// Whether it rests after one.
    pub(crate) rests: bool,
    parser: Parser,
    // What is seen of its answers, if anybody looks.
    seen: Option<Box<Seen>>,
    // The first bytes of the answer that is being received, if they are kept.
    head: Vec<u8>,
    // Requests accepted and not written whole, in their order.
    out: Vec<u8>,
    // How much of that is sent.
    sent: usize,
    // Why the server took no more, where its answer may still come.
    refusal: Option<Errno>,
    // Whether the body of its request waits until the server asks for it.
    body_waits: bool,
    // Of the requests in flight, how many of the youngest wait for an answer before they are sent again.
    holds_back: usize,
    // The requests in flight: `waiting` of them in the order they were sent, the first one in `oldest`, around the end.
    exchanges: Box<[Exchange]>,
    oldest: usize,
    waiting: usize,
}

/// How far a connection has come.
pub(crate) enum Progress {
    /// It waits for the kernel, or for work.
    Pending,
    /// The oldest request's answer is complete.
    Answered {
        /// What was received.
        answer: Answer,
        /// When its last byte was there.
        at: Nanos,
    },
    /// It is over; no request on it will be answered.
    Broken {
        /// Why; apart, because it is large, and every answer would carry room for it about.
        why: Box<Why>,
        /// When that was known.
        at: Nanos,
    },
}

impl Progress {
    /// It is over.
    #[cold]
    pub(crate) fn broken(why: Why, at: Nanos) -> Progress {
        Progress::Broken { why: Box::new(why), at }
    }
}

impl Connection {
    /// A connection that is not open.
    pub(crate) fn new(token: u64, line: &Line<'_>) -> Connection {
        Connection {
            token,
            stream: None,
            interest: EventFlags::empty(),
            connecting: None,
            server: None,
            handshaking: false,
            connected_ns: 0,
            answered: false,
            free_since: None,
            failures: 0,
            rests: false,
            parser: Parser::new(Asked::Content),
            seen: line.checks.as_ref().map(|checks| Box::new(checks.nothing_seen())),
            head: Vec::new(),
            out: Vec::new(),
            sent: 0,
            refusal: None,
            body_waits: false,
            holds_back: 0,
            exchanges: vec![Exchange::default(); line.depth].into_boxed_slice(),
            oldest: 0,
            waiting: 0,
        }
    }

    /// Whether another request may begin on it.
    pub(crate) fn has_room(&self) -> bool {
        self.waiting < self.exchanges.len() && self.holds_back == 0
    }

    /// Whether another request may begin on it now.
    pub(crate) fn is_free(&self) -> bool {
        self.has_room() && !self.rests
    }

    /// Whether no request is in flight on it.
    pub(crate) fn is_idle(&self) -> bool {
        self.waiting == 0
    }

    /// The request that is answered next.
    pub(crate) fn oldest(&self) -> &Exchange {
        &self.exchanges[self.oldest]
    }

    /// The place of the request that is answered next, among those of this connection.
    pub(crate) fn oldest_place(&self) -> usize {
        self.oldest
    }

    /// The request in a place of this connection.
    pub(crate) fn exchange(&self, place: usize) -> &Exchange {
        &self.exchanges[place]
    }

    /// Begins a request of a kind; gives its place. It goes out with the next [`Connection::flush`] at the latest.
    pub(crate) fn begin(
        &mut self,
        line: &Line<'_>,
        kind: usize,
        serial: u64,
        due_ns: Nanos,
        start_ns: Nanos,
    ) -> (usize, Progress) {
        let place = (self.oldest + self.waiting) % self.exchanges.len();
        let exchange = &mut self.exchanges[place];
        *exchange = Exchange { kind, serial, due_ns, start_ns, ..Exchange::default() };
        let Some(bytes) = line.requests.kind(kind).fixed() else {
            self.waiting += 1;
            self.put_together(line, place);
            return (place, Progress::Pending);
        };
        exchange.bytes_out = bytes.len() as u64;
        self.waiting += 1;
        // Several requests to be sent together are gathered, one alone is written from where it lies.
        let alone = line.depth == 1 && self.out.is_empty() && self.connecting.is_none();
        let progress = match &mut self.stream {
            Some(stream) if alone => match stream.send(bytes) {
                Ok(sent) if sent == bytes.len() && !stream.is_blocked() => {
                    exchange.written_ns = line.times_writes.then(monotonic_ns);
                    Progress::Pending
                }
                Ok(sent) => {
                    self.out.extend_from_slice(&bytes[sent..]);
                    self.wait_for(line, EventFlags::IN | EventFlags::OUT)
                }
                Err(StreamError::Kernel(Errno::AGAIN | Errno::INTR)) => {
                    self.out.extend_from_slice(bytes);
                    self.wait_for(line, EventFlags::IN | EventFlags::OUT)
                }
                Err(error) => {
                    self.out.extend_from_slice(bytes);
                    self.not_taken(line, error)
                }
            },
            _ => {
                self.out.extend_from_slice(bytes);
                Progress::Pending
            }
        };
        (place, progress)
    }

    /// The place of its jar.
    fn jar(&self, line: &Line<'_>) -> usize {
        // Tokens are indices into the worker's connections.
        self.token as usize / line.sharing
    }

    /// Sends what was gathered, over a new connection if there is none.
    pub(crate) fn flush(&mut self, line: &Line<'_>) -> Progress {
        if self.out.is_empty() || self.connecting.is_some() {
            return Progress::Pending;
        }
        if self.stream.is_some() {
            return self.write(line);
        }
        self.connecting = Some(monotonic_ns());
        let dialled = line.dialer.dial();
        self.server = line.dialer.last();
        match dialled {
            Ok((stream, since)) => {
                self.connecting = Some(since);
                self.handshaking = stream.is_handshaking();
                self.stream = Some(stream);
                // On loopback the connection is there already, which saves waiting for it.
                self.write(line)
            }
            Err(error) => self.failed(error),
        }
    }

    /// Begins all its requests again on a new connection; their times go on from their first start. The others are not sent
    /// before the oldest is answered: the pipeline may be what the server closed upon (RFC 9112 section 9.3.2).
    pub(crate) fn retry(&mut self, line: &Line<'_>) -> Progress {
        self.close();
        for n in 0..self.waiting {
            let place = (self.oldest + n) % self.exchanges.len();
            let exchange = &mut self.exchanges[place];
            (exchange.retried, exchange.bytes_out) = (true, 0);
        }
        self.holds_back = self.waiting - 1;
        self.put_together(line, self.oldest);
        self.flush(line)
    }

    /// Gathers what was held back, as there is an answer now.
    pub(crate) fn catch_up(&mut self, line: &Line<'_>) {
        for n in self.waiting - self.holds_back..self.waiting {
            self.put_together(line, (self.oldest + n) % self.exchanges.len());
        }
        self.holds_back = 0;
    }

    /// Begins all its requests again at the next of several addresses, if there was no way to the one it was to go to and none has
    /// been reached so far.
    pub(crate) fn elsewhere(&mut self, line: &Line<'_>) -> Option<Progress> {
        if self.connecting.is_none() || !line.dialer.turns_elsewhere() {
            return None;
        }
        self.close();
        for n in 0..self.waiting {
            self.put_together(line, (self.oldest + n) % self.exchanges.len());
        }
        Some(self.flush(line))
    }

    /// Whether a kept connection ended without a byte of a further answer. Most often the server closed it, idle, just when the
    /// next request was written; but it may as well have read the request and died of it. What is idempotent may be sent again
    /// by itself either way (RFC 9112 section 9.3.1), and that it was is counted. The new connection has not answered yet, so
    /// a request is repeated only as often as one before it was answered; without a pipeline that is once.
    pub(crate) fn may_retry(&self, why: &Why, line: &Line<'_>) -> bool {
        let closed = matches!(why.cause(), Failure::Reset | Failure::ClosedEarly);
        let mut waiting = (0..self.waiting).map(|n| &self.exchanges[(self.oldest + n) % self.exchanges.len()]);
        closed
            && self.answered
            && waiting.all(|exchange| exchange.first_byte_ns.is_none() && line.requests.kind(exchange.kind).idempotent)
    }

    /// Goes on after the kernel told that it can.
    pub(crate) fn advance(&mut self, line: &Line<'_>, inbox: &mut Inbox, ready: EventFlags) -> Progress {
        if self.connecting.is_some() || ready.contains(EventFlags::OUT) {
            let progress = self.write(line);
            if !matches!(progress, Progress::Pending) || !ready.contains(EventFlags::IN) {
                return progress;
            }
        }
        let progress = self.read(line, inbox);
        if self.handshaking && self.is_shaken(line) && matches!(progress, Progress::Pending) {
            // The requests waited for it.
            return self.write(line);
        }
        // Reading can make TLS want to write.
        match (&progress, &self.stream) {
            (Progress::Pending, Some(stream)) if stream.is_blocked() => {
                self.wait_for(line, EventFlags::IN | EventFlags::OUT)
            }
            _ => progress,
        }
    }

    /// The first bytes of its last answer, if they were kept.
    pub(crate) fn take_head(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.head)
    }

    /// Bytes of its oldest request that have not left.
    fn unsent(&self) -> u64 {
        let held = self.stream.as_ref().map_or(0, Stream::held);
        let unsent = (self.out.len() - self.sent + held) as u64;
        if unsent == 0 {
            return 0;
        }
        // They leave in their order, so what the younger ones do not account for is the oldest one's.
        let behind = (1..self.waiting).map(|n| (self.oldest + n) % self.exchanges.len());
        let younger: u64 = behind.map(|place| self.exchanges[place].bytes_out).sum();
        unsent.saturating_sub(younger).min(self.oldest().bytes_out)
    }

    /// Its oldest request as it stands, ended so at `end_ns`.
    pub(crate) fn record(&self, ending: Ending, answer: Option<Answer>, end_ns: Nanos) -> Record {
        let record = self.oldest().record(ending, answer, end_ns);
        Record { bytes_out: record.bytes_out - self.unsent(), ..record }
    }

    /// Its oldest request is over.
    pub(crate) fn forget_oldest(&mut self) {
        self.oldest = (self.oldest + 1) % self.exchanges.len();
        self.waiting -= 1;
    }

    /// Closes the socket, which also takes it out of epoll.
    pub(crate) fn close(&mut self) {
        self.stream = None;
        self.interest = EventFlags::empty();
        self.connecting = None;
        self.handshaking = false;
        self.answered = false;
        self.out.clear();
        self.sent = 0;
        self.refusal = None;
        self.body_waits = false;
        self.holds_back = 0;
        self.parser.reset();
    }

    /// What was seen of the answer that is complete, if somebody looked.
    pub(crate) fn seen(&self) -> Option<&Seen> {
        self.seen.as_deref()
    }

    /// What was kept of the last answer's body, if any was.
    pub(crate) fn into_body(self) -> Vec<u8> {
        self.seen.map(|seen| seen.into_body()).unwrap_or_default()
    }

    /// Registers for another kind of readiness, which on a kept connection never happens: it stays registered for reading.
    fn wait_for(&mut self, line: &Line<'_>, interest: EventFlags) -> Progress {
        if self.interest == interest {
            return Progress::Pending;
        }
        let Some(stream) = &self.stream else { return self.failed(StreamError::Kernel(Errno::NOTCONN)) };
        let data = EventData::new_u64(self.token);
        let done = if self.interest.is_empty() {
            epoll::add(&line.epoll, stream, data, interest)
        } else {
            epoll::modify(&line.epoll, stream, data, interest)
        };
        self.interest = interest;
        match done {
            Ok(()) => Progress::Pending,
            Err(errno) => self.failed(StreamError::Kernel(errno)),
        }
    }

    fn failed(&self, error: StreamError) -> Progress {
        let why = match error {
            StreamError::Kernel(errno) => Why::Kernel { errno, connecting: self.connecting.is_some(), to: self.server },
            StreamError::Tls(error) => Why::Tls(Box::new(error)),
            StreamError::Tunnel(error) => Why::Tunnel(error),
        };
        Progress::broken(why, monotonic_ns())
    }
}
