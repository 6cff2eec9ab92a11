//! One socket and the request on it: connect, write, read, and what the kernel or the server said when it went wrong.
//!
//! It moves bytes and keeps times. Which request comes next, what counts as good and when to give up are the worker's.

use crate::machine::monotonic_ns;
use crate::sink::{Ending, Record};
use http1::{Answer, Asked, Memo, Parser, ResponseError};
use model::Nanos;
use model::load::Failure;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use std::fmt;
use std::net::SocketAddr;

/// What all connections of a worker share.
pub(crate) struct Line {
    /// Whom to connect to.
    pub(crate) address: SocketAddr,
    /// The request's bytes.
    pub(crate) request: Vec<u8>,
    /// Whether the connection carries the next request.
    pub(crate) keep_alive: bool,
    /// Where readiness is told.
    pub(crate) epoll: OwnedFd,
}

/// A connection, open or not, and its request.
pub(crate) struct Connection {
    // Tells it apart from the worker's others in `Line::epoll`.
    token: u64,
    socket: Option<OwnedFd>,
    // What the socket is registered for.
    interest: EventFlags,
    phase: Phase,
    // Whether the socket carried an answer before this request.
    reused: bool,
    parser: Parser,
    request: Exchange,
}

/// How far a request has come.
pub(crate) enum Progress {
    /// Its connection waits for the kernel.
    Pending,
    /// The answer is complete.
    Answered {
        /// What was received.
        answer: Answer,
        /// When its last byte was there.
        at: Nanos,
    },
    /// There will be no answer on this connection.
    Broken {
        /// Why.
        why: Why,
        /// When that was known.
        at: Nanos,
    },
}

/// Why a connection gave no answer; its text is an example for a human.
#[derive(Debug)]
pub(crate) enum Why {
    /// The kernel said so, before the connection was there or after.
    Kernel { errno: Errno, connecting: bool },
    /// The server closed after so many bytes.
    Closed { after: u64 },
    /// What was received is not HTTP; its beginning, in a fixed space so that failing allocates nothing.
    Malformed { error: ResponseError, piece: [u8; PIECE], length: usize },
    /// The request's own time was over, with so many bytes received.
    Late { after: u64 },
}

impl Connection {
    /// A connection that is not open.
    pub(crate) fn new(token: u64) -> Connection {
        let interest = EventFlags::empty();
        let (socket, phase, parser) = (None, Phase::Connecting, Parser::new(Asked::Content));
        Connection { token, socket, interest, phase, reused: false, parser, request: Exchange::default() }
    }

    /// Begins a request, on the open connection or on a new one.
    pub(crate) fn begin(&mut self, line: &Line, start_ns: Nanos) -> Progress {
        self.request = Exchange { start_ns, ..Exchange::default() };
        self.reused = self.socket.is_some();
        if self.reused {
            self.phase = Phase::Writing { written: 0 };
            return self.write(line);
        }
        self.open(line)
    }

    /// Begins the same request again on a new connection; its time goes on from its first start.
    pub(crate) fn retry(&mut self, line: &Line) -> Progress {
        self.close();
        self.reused = false;
        self.request.retried = true;
        self.open(line)
    }

    /// Whether a kept connection ended without a byte of an answer. Most often the server closed it, idle, just when this
    /// request was written; but it may as well have read the request and died of it. A GET may be sent again by itself either
    /// way (RFC 9112 section 9.3.1), and that it was is counted. The new connection is not a reused one, so this is true at
    /// most once per request.
    pub(crate) fn may_retry(&self, why: &Why) -> bool {
        let closed = matches!(why.cause(), Failure::Reset | Failure::ClosedEarly);
        closed && self.reused && self.request.first_byte_ns.is_none()
    }

    /// Goes on after the kernel told that it can. `buffer` is where it reads into, `memo` what other connections received.
    pub(crate) fn advance(&mut self, line: &Line, buffer: &mut [u8], memo: &mut Memo) -> Progress {
        match self.phase {
            Phase::Reading => self.read(buffer, memo),
            Phase::Connecting | Phase::Writing { .. } => self.write(line),
        }
    }

    /// The request as it stands, ended so at `end_ns`.
    pub(crate) fn record(&self, ending: Ending, status: Option<u16>, end_ns: Nanos) -> Record {
        let Exchange { start_ns, connect_ns, first_byte_ns, retried, bytes_in, bytes_out, .. } = self.request;
        Record { start_ns, connect_ns, first_byte_ns, end_ns, ending, status, retried, bytes_in, bytes_out }
    }

    /// When the request began.
    pub(crate) fn start_ns(&self) -> Nanos {
        self.request.start_ns
    }

    /// Bytes of the answer received so far.
    pub(crate) fn received(&self) -> u64 {
        self.request.bytes_in
    }

    /// Closes the socket, which also takes it out of epoll.
    pub(crate) fn close(&mut self) {
        self.socket = None;
        self.interest = EventFlags::empty();
        self.parser.reset();
    }

    fn open(&mut self, line: &Line) -> Progress {
        self.phase = Phase::Connecting;
        self.request.connect_start_ns = monotonic_ns();
        match self.connect(line) {
            Ok(()) => Progress::Pending,
            Err(errno) => self.kernel_said(errno),
        }
    }

    fn connect(&mut self, line: &Line) -> Result<(), Errno> {
        let family = if line.address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
        match rustix::net::connect(&socket, &line.address) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(errno) => return Err(errno),
        }
        epoll::add(&line.epoll, &socket, EventData::new_u64(self.token), EventFlags::OUT)?;
        (self.socket, self.interest) = (Some(socket), EventFlags::OUT);
        Ok(())
    }

    /// Writes what is left of the request. On a connection that is being opened, the first write tells whether it is open: one
    /// call less than asking.
    fn write(&mut self, line: &Line) -> Progress {
        let connected_at = if self.phase == Phase::Connecting { monotonic_ns() } else { 0 };
        loop {
            let written = self.phase.written();
            match self.send(&line.request[written..]) {
                Ok(sent) => {
                    if self.phase == Phase::Connecting {
                        let connect_ns = connected_at.saturating_sub(self.request.connect_start_ns);
                        self.request.connect_ns = Some(connect_ns);
                    }
                    self.request.bytes_out += sent as u64;
                    self.phase = Phase::Writing { written: written + sent };
                    if written + sent == line.request.len() {
                        self.phase = Phase::Reading;
                        return self.wait_for(line, EventFlags::IN);
                    }
                }
                Err(Errno::AGAIN) => return self.wait_for(line, EventFlags::OUT),
                Err(Errno::INTR) => {}
                Err(errno) => return self.kernel_said(errno),
            }
        }
    }

    /// Reads once. What is left makes epoll tell again, so one connection with a large body cannot hold up the others.
    fn read(&mut self, buffer: &mut [u8], memo: &mut Memo) -> Progress {
        let length = match self.receive(buffer) {
            Ok(length) => length,
            Err(Errno::AGAIN | Errno::INTR) => return Progress::Pending,
            Err(errno) => return self.kernel_said(errno),
        };
        let at = monotonic_ns();
        if length == 0 {
            return match self.parser.close() {
                Some(answer) => Progress::Answered { answer, at },
                None => Progress::Broken { why: Why::Closed { after: self.request.bytes_in }, at },
            };
        }
        self.request.first_byte_ns.get_or_insert(at);
        self.request.bytes_in += length as u64;
        match self.parser.feed(&buffer[..length], memo) {
            Ok(fed) => match fed.answer {
                None => Progress::Pending,
                // Bytes behind the answer belong to no request of ours.
                Some(answer) => {
                    let answer = Answer { reusable: answer.reusable && fed.used == length, ..answer };
                    Progress::Answered { answer, at }
                }
            },
            Err(error) => Progress::Broken { why: Why::malformed(error, &buffer[..length]), at },
        }
    }

    /// Registers for another kind of readiness, which on a kept connection never happens: it stays registered for reading.
    fn wait_for(&mut self, line: &Line, interest: EventFlags) -> Progress {
        if self.interest == interest {
            return Progress::Pending;
        }
        let Some(socket) = &self.socket else { return self.kernel_said(Errno::NOTCONN) };
        self.interest = interest;
        match epoll::modify(&line.epoll, socket, EventData::new_u64(self.token), interest) {
            Ok(()) => Progress::Pending,
            Err(errno) => self.kernel_said(errno),
        }
    }

    fn send(&self, bytes: &[u8]) -> Result<usize, Errno> {
        let socket = self.socket.as_ref().ok_or(Errno::NOTCONN)?;
        rustix::net::send(socket, bytes, SendFlags::NOSIGNAL)
    }

    fn receive(&self, buffer: &mut [u8]) -> Result<usize, Errno> {
        let socket = self.socket.as_ref().ok_or(Errno::NOTCONN)?;
        rustix::net::recv(socket, buffer, RecvFlags::empty()).map(|(_, length)| length)
    }

    fn kernel_said(&self, errno: Errno) -> Progress {
        Progress::Broken { why: Why::Kernel { errno, connecting: self.phase == Phase::Connecting }, at: monotonic_ns() }
    }
}

impl Why {
    /// The failure it counts as.
    pub(crate) fn cause(&self) -> Failure {
        match *self {
            Why::Kernel { errno: Errno::CONNREFUSED, .. } => Failure::Refused,
            Why::Kernel { errno: Errno::TIMEDOUT, .. } | Why::Late { .. } => Failure::Timeout,
            Why::Kernel { errno: Errno::CONNRESET | Errno::PIPE, .. } | Why::Kernel { connecting: false, .. } => {
                Failure::Reset
            }
            // EADDRNOTAVAIL, EMFILE, ENETUNREACH and their like: the request never left this machine.
            Why::Kernel { connecting: true, .. } => Failure::Local,
            Why::Closed { .. } => Failure::ClosedEarly,
            Why::Malformed { .. } => Failure::BadResponse,
        }
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
            Why::Kernel { errno, connecting: true } => write!(f, "while connecting: {}", std::io::Error::from(*errno)),
            Why::Kernel { errno, connecting: false } => write!(f, "{}", std::io::Error::from(*errno)),
            Why::Closed { after } => write!(f, "the server closed after {after} bytes of the answer"),
            Why::Malformed { error, piece, length } => {
                write!(f, "{error}: \"{}\"", piece[..*length].escape_ascii())
            }
            Why::Late { after } => write!(f, "no complete answer in time, {after} bytes of it were there"),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Connecting,
    Writing { written: usize },
    Reading,
}

impl Phase {
    fn written(self) -> usize {
        match self {
            Phase::Writing { written } => written,
            Phase::Connecting | Phase::Reading => 0,
        }
    }
}

/// Times and bytes of the request under way.
#[derive(Default)]
struct Exchange {
    start_ns: Nanos,
    connect_start_ns: Nanos,
    connect_ns: Option<Nanos>,
    first_byte_ns: Option<Nanos>,
    retried: bool,
    bytes_in: u64,
    bytes_out: u64,
}

/// How much of a malformed answer is shown.
const PIECE: usize = 80;
