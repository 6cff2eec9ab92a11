//! One connection and the requests on it: connect, write, read, and what the kernel or the server said when it went wrong.
//!
//! It moves bytes and keeps times. Which request comes next, what counts as good and when to give up are the worker's.

use crate::checks::{Checks, Seen, Watching};
use crate::jar::Jar;
use crate::machine::monotonic_ns;
use crate::requests::{Requests, Rest};
use crate::sink::{Answered, Ending, KEPT_OF_HEADS, Record};
use crate::transport::{Dialer, Stream, StreamError, TunnelError};
use http1::{Answer, Asked, Memo, Parser, ResponseError};
use model::Nanos;
use model::load::{Failure, TlsFacts};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::cell::{Cell, OnceCell, RefCell};
use std::fmt;
use std::net::SocketAddr;
use std::ops::Range;

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

/// Why a connection gave no answer; its text is an example for a human.
#[derive(Debug)]
pub(crate) enum Why {
    /// The kernel said so, before the connection was there or after.
    Kernel { errno: Errno, connecting: bool, to: Option<SocketAddr> },
    /// TLS could not go on.
    Tls(Box<rustls::Error>),
    /// A proxy opened no tunnel.
    Tunnel(TunnelError),
    /// The server closed after so many bytes.
    Closed { after: u64 },
    /// TLS was closed below itself after so many bytes of an answer that says no length.
    CutOff { after: u64 },
    /// What was received is not HTTP; its beginning.
    Malformed { error: ResponseError, piece: [u8; PIECE], length: usize },
    /// The request's own time was over, with so many bytes received.
    Late { after: u64 },
}

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

    /// Gathers a request that is like no other.
    fn put_together(&mut self, line: &Line<'_>, place: usize) {
        let Exchange { kind, serial, .. } = self.exchanges[place];
        let (before, jars) = (self.out.len(), line.jars.borrow());
        let jar = jars.get(self.jar(line));
        self.body_waits = line.requests.write(kind, serial, jar, &mut self.out) == Rest::Body;
        self.exchanges[place].bytes_out = (self.out.len() - before) as u64;
    }

    /// The place of its jar.
    fn jar(&self, line: &Line<'_>) -> usize {
        // Tokens are indices into the worker's connections.
        self.token as usize / line.sharing
    }

    /// The number of the request whose body waits, if one does.
    pub(crate) fn body_waits(&self) -> Option<u64> {
        self.body_waits.then(|| self.oldest().serial)
    }

    /// Sends the body that waited: the server asked for it, or took too long to.
    pub(crate) fn send_body(&mut self, line: &Line<'_>) -> Progress {
        self.body_waits = false;
        let Exchange { kind, serial, .. } = *self.oldest();
        let before = self.out.len();
        line.requests.write_body(kind, serial, &mut self.out);
        self.exchanges[self.oldest].bytes_out += (self.out.len() - before) as u64;
        if self.connecting.is_some() { Progress::Pending } else { self.write(line) }
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

    /// Whether a handshake has come to its end.
    fn is_shaken(&mut self, line: &Line<'_>) -> bool {
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

    /// Writes what is left of the requests. On a connection that is being opened, the first write tells whether it is open: one
    /// call less than asking.
    fn write(&mut self, line: &Line<'_>) -> Progress {
        let Some(stream) = &mut self.stream else { return self.failed(StreamError::Kernel(Errno::NOTCONN)) };
        let mut end = stream.flush();
        while end.is_ok() && self.sent < self.out.len() {
            match stream.send(&self.out[self.sent..]) {
                Ok(sent) => self.sent += sent,
                Err(StreamError::Kernel(Errno::INTR)) => {}
                Err(error) => end = Err(error),
            }
        }
        // Without a way to the server nothing that is left can ever be sent. With one, reading tells more than an error of writing.
        let not_now = end.as_ref().is_err_and(StreamError::is_not_now);
        let is_lost = self.connecting.is_some() && end.is_err() && !not_now;
        // What waits for a handshake waits for the server to speak.
        let blocked = !is_lost && (stream.is_blocked() || (not_now && !stream.is_handshaking()));
        if let (Some(since), true) = (self.connecting, stream.is_connected()) {
            line.dialer.reached.set(true);
            self.connected_ns = monotonic_ns();
            self.exchanges[self.oldest].connect_ns = Some(self.connected_ns.saturating_sub(since));
            self.connecting = None;
        }
        self.let_go_of_sent(line);
        match end {
            // Until it is connected there is nothing to read.
            _ if blocked && self.connecting.is_some() => self.wait_for(line, EventFlags::OUT),
            _ if blocked => self.wait_for(line, EventFlags::IN | EventFlags::OUT),
            Err(error) if !not_now => self.not_taken(line, error),
            _ => self.wait_for(line, EventFlags::IN),
        }
    }

    /// Frees what is sent, at the latest when it is half of all.
    fn let_go_of_sent(&mut self, line: &Line<'_>) {
        let left = self.out.len() - self.sent;
        if left == 0 {
            if line.times_writes && !self.out.is_empty() {
                self.note_written();
            }
            self.out.clear();
            self.sent = 0;
        } else if self.sent >= left {
            // Requests in flight behind one another may never be through with it.
            self.out.drain(..self.sent);
            self.sent = 0;
        }
    }

    fn note_written(&mut self) {
        let now = monotonic_ns();
        for n in 0..self.waiting {
            let place = (self.oldest + n) % self.exchanges.len();
            self.exchanges[place].written_ns.get_or_insert(now);
        }
    }

    /// The server takes no more of a request. It may have answered before it closed, as to a body that it finds too large, and
    /// what it said is still to be read.
    fn not_taken(&mut self, line: &Line<'_>, error: StreamError) -> Progress {
        match error {
            StreamError::Kernel(errno @ (Errno::PIPE | Errno::CONNRESET)) if self.connecting.is_none() => {
                self.refusal = Some(errno);
                self.wait_for(line, EventFlags::IN)
            }
            error => self.failed(error),
        }
    }

    /// Reads once. What is left makes epoll tell again, so one connection with a large body cannot hold up the others.
    fn read(&mut self, line: &Line<'_>, inbox: &mut Inbox) -> Progress {
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

    /// What was seen of the answer that is complete, if somebody looked.
    pub(crate) fn seen(&self) -> Option<&Seen> {
        self.seen.as_deref()
    }

    /// What was kept of the last answer's body, if any was.
    pub(crate) fn into_body(self) -> Vec<u8> {
        self.seen.map(|seen| seen.into_body()).unwrap_or_default()
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

impl Exchange {
    /// The request as it stands, ended so at `end_ns`, if all of it has left.
    fn record(&self, ending: Ending, answer: Option<Answer>, end_ns: Nanos) -> Record {
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

impl Why {
    /// The failure it counts as.
    pub(crate) fn cause(&self) -> Failure {
        match *self {
            // A unix socket whose queue is full says AGAIN to a connect that does not wait.
            Why::Kernel { errno: Errno::CONNREFUSED, .. }
            | Why::Kernel { errno: Errno::AGAIN, connecting: true, .. } => Failure::Refused,
            Why::Kernel { errno: Errno::TIMEDOUT, .. } | Why::Late { .. } => Failure::Timeout,
            Why::Kernel { errno: Errno::CONNRESET | Errno::PIPE, .. } | Why::Kernel { connecting: false, .. } => {
                Failure::Reset
            }
            // EADDRNOTAVAIL, EMFILE, ENETUNREACH and their like: the request never left this machine.
            Why::Kernel { connecting: true, .. } => Failure::Local,
            Why::Tls(_) => Failure::Tls,
            Why::Tunnel(_) => Failure::Proxy,
            Why::Closed { .. } | Why::CutOff { .. } => Failure::ClosedEarly,
            Why::Malformed { .. } => Failure::BadResponse,
        }
    }

    /// Whether there was no way to the server.
    pub(crate) fn is_on_the_way(&self) -> bool {
        matches!(self, Why::Kernel { connecting: true, .. })
    }

    fn malformed(error: ResponseError, received: &[u8]) -> Why {
        let mut piece = [0; PIECE];
        let length = received.len().min(PIECE);
        piece[..length].copy_from_slice(&received[..length]);
        Why::Malformed { error, piece, length }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::Kernel { errno, connecting: true, to: None } => {
                write!(f, "while connecting: {}", std::io::Error::from(*errno))
            }
            Why::Kernel { errno, connecting: true, to: Some(server) } => {
                write!(f, "while connecting to {server}: {}", std::io::Error::from(*errno))
            }
            Why::Kernel { errno, connecting: false, .. } => write!(f, "{}", std::io::Error::from(*errno)),
            Why::Tls(error) => write!(f, "TLS: {error}"),
            Why::Tunnel(error) => error.fmt(f),
            Why::Closed { after } => write!(f, "the server closed after {after} bytes of the answer"),
            Why::CutOff { after } => write!(
                f,
                "the server closed after {after} bytes of an answer without a length, and without TLS saying that this is its end"
            ),
            Why::Malformed { error, piece, length } => {
                write!(f, "{error}: \"{}\"", piece[..*length].escape_ascii())
            }
            Why::Late { after } => write!(f, "no complete answer in time, {after} bytes of it were there"),
        }
    }
}

/// How much of a malformed answer is shown.
const PIECE: usize = 80;

/// Bytes read at once. A body of 64 kB in one call; larger gains little and leaves the cache.
const READ_BUFFER: usize = 128 * 1024;

/// Bytes read at once when a long body is expected behind them.
const HEAD_BUFFER: usize = 4 * 1024;

/// From such a body on, copying it costs more than one more call.
const LONG: u64 = 16 * 1024;

/// So much of a body is left to the kernel to throw away; less is copied by the way.
const SKIP_FROM: usize = 4 * 1024;
