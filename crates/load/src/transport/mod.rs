//! Whom to reach and over what: a socket that is being connected or is, perhaps with TLS above it, and the bytes through it.
//!
//! Nothing here waits: what cannot be done now answers [`Errno::AGAIN`]. Which readiness to wait for is the connection's.

mod tls;
mod tunnel;

pub use tls::check_authorities;
pub(crate) use tls::{StreamError, TlsClient};
pub use tunnel::Tunnel;
pub(crate) use tunnel::TunnelError;

use crate::machine::monotonic_ns;
use model::Nanos;
use model::load::TlsFacts;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, sockopt};
use std::cell::Cell;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// TCP over IPv4 or IPv6.
    Tcp(SocketAddr),
    /// Several servers behind one name: each new connection goes to the next of them. There is at least one.
    InTurn(Vec<SocketAddr>),
    /// Several addresses of one server, of which connections go to the first that can be reached. There is at least one.
    FirstOf(Vec<SocketAddr>),
    /// A socket in the file system.
    Unix(PathBuf),
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Address {
        Address::Tcp(address)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(address) => address.fmt(f),
            Address::InTurn(addresses) | Address::FirstOf(addresses) => {
                let all: Vec<String> = addresses.iter().map(SocketAddr::to_string).collect();
                f.write_str(&all.join(", "))
            }
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl Address {
    /// The addresses that connections go to; none for a socket in the file system.
    #[must_use]
    pub fn all(&self) -> &[SocketAddr] {
        match self {
            Address::Tcp(address) => std::slice::from_ref(address),
            Address::InTurn(addresses) | Address::FirstOf(addresses) => addresses,
            Address::Unix(_) => &[],
        }
    }

    /// Whether all of that is this machine.
    #[must_use]
    pub fn is_here(&self) -> bool {
        self.all().iter().all(|address| address.ip().is_loopback())
    }
}

/// How connections are made.
pub(crate) struct Dialer<'a> {
    pub(crate) address: &'a Address,
    /// Where from, in turn; empty leaves it to the kernel.
    pub(crate) local: &'a [IpAddr],
    /// Whose turn it is, of several addresses.
    pub(crate) turn: Cell<usize>,
    /// Whether a connection has been made.
    pub(crate) reached: Cell<bool>,
    /// Bytes of the socket's buffers, each way; `None` leaves them to the kernel.
    pub(crate) buffers: Option<usize>,
    /// What is asked of a proxy first, below TLS.
    pub(crate) tunnel: Option<&'a Tunnel>,
    pub(crate) tls: Option<TlsClient>,
    /// How small writes leave.
    pub(crate) writes: Writes,
}

/// How small writes leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Writes {
    /// As the kernel does by itself: one that follows another waits for its acknowledgement. Fine while each waits for an answer.
    Gathered,
    /// At once.
    AtOnce,
}

/// One way to a server. An enum, so that the loop is not generic over what few loads use.
pub(crate) enum Stream {
    /// Bytes as they are.
    Plain(Socket),
    /// Bytes within TLS.
    Tls(Box<tls::TlsStream>),
}

/// A socket that never waits.
pub(crate) struct Socket {
    fd: OwnedFd,
    is_tcp: bool,
    // Whether the kernel has taken a byte, which it does only when it is connected.
    has_sent: bool,
}

impl Dialer<'_> {
    /// Begins to connect; says when. The first write tells whether it is connected.
    pub(crate) fn dial(&self) -> Result<(Stream, Nanos), StreamError> {
        // Keys are made before the clock runs: they are no part of the way to the server.
        let session = self.tls.as_ref().map(TlsClient::session).transpose().map_err(StreamError::Tls)?;
        let since = monotonic_ns();
        let socket = self.connect().map_err(StreamError::Kernel)?;
        if self.writes == Writes::AtOnce && socket.is_tcp {
            sockopt::set_tcp_nodelay(&socket.fd, true).map_err(StreamError::Kernel)?;
        }
        let stream = match session {
            None => Stream::Plain(socket),
            Some(session) => Stream::Tls(Box::new(tls::TlsStream::new(socket, session, self.tunnel))),
        };
        Ok((stream, since))
    }

    /// Whom the last one went to, of several.
    pub(crate) fn last(&self) -> Option<SocketAddr> {
        let Address::InTurn(all) = self.address else { return None };
        all.get(self.turn.get().wrapping_sub(1) % all.len().max(1)).copied()
    }

    /// Goes on to the next of several addresses of one server: there is no way to this one, and none has been reached. False when
    /// there is none left.
    pub(crate) fn turns_elsewhere(&self) -> bool {
        let Address::FirstOf(all) = self.address else { return false };
        let another = !self.reached.get() && self.turn.get() + 1 < all.len();
        self.turn.set(self.turn.get() + usize::from(another));
        another
    }

    fn connect(&self) -> Result<Socket, Errno> {
        if let Address::Unix(path) = self.address {
            return Socket::unix(path, self.buffers);
        }
        let turn = self.turn.get();
        if !matches!(self.address, Address::FirstOf(_)) {
            self.turn.set(turn.wrapping_add(1));
        }
        let all = self.address.all();
        let address = all.get(turn % all.len().max(1)).ok_or(Errno::DESTADDRREQ)?;
        // Once round the servers before the next address of our own, so that each pair of them has its turn.
        let local = self.local.get(turn / all.len() % self.local.len().max(1)).copied();
        Socket::tcp(address, local, self.buffers)
    }
}

impl Stream {
    /// Takes what can be taken now.
    #[inline]
    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<usize, StreamError> {
        match self {
            Stream::Plain(socket) => socket.send(bytes).map_err(StreamError::Kernel),
            Stream::Tls(stream) => stream.send(bytes),
        }
    }

    /// Sends on what was taken and could not leave.
    pub(crate) fn flush(&mut self) -> Result<(), StreamError> {
        match self {
            Stream::Plain(_) => Ok(()),
            Stream::Tls(stream) => stream.flush(),
        }
    }

    /// Gives what is there now; 0 bytes are the end.
    #[inline]
    pub(crate) fn receive(&mut self, buffer: &mut [u8]) -> Result<usize, StreamError> {
        match self {
            Stream::Plain(socket) => socket.receive(buffer).map_err(StreamError::Kernel),
            Stream::Tls(stream) => stream.receive(buffer),
        }
    }

    /// Throws away what is there now, at most as much as `buffer` would hold, and says how much it was; 0 bytes are the end. TCP
    /// does so without copying; the content of `buffer` means nothing afterwards.
    pub(crate) fn discard(&mut self, buffer: &mut [u8]) -> Result<usize, StreamError> {
        match self {
            Stream::Plain(socket) => socket.discard(buffer).map_err(StreamError::Kernel),
            Stream::Tls(stream) => stream.receive(buffer),
        }
    }

    /// Whether throwing away is cheaper than reading.
    #[inline]
    pub(crate) fn discards(&self) -> bool {
        matches!(self, Stream::Plain(socket) if socket.is_tcp)
    }

    /// Whether something was taken that could not leave yet.
    #[inline]
    pub(crate) fn is_blocked(&self) -> bool {
        match self {
            Stream::Plain(_) => false,
            Stream::Tls(stream) => stream.is_blocked(),
        }
    }

    /// Bytes that were taken and may not have left.
    #[inline]
    pub(crate) fn held(&self) -> usize {
        match self {
            Stream::Plain(_) => 0,
            Stream::Tls(stream) => stream.held(),
        }
    }

    /// Whether it ended in a way that may be a cut.
    pub(crate) fn is_cut_off(&self) -> bool {
        match self {
            Stream::Plain(_) => false,
            Stream::Tls(stream) => stream.is_cut_off(),
        }
    }

    /// Whether the server is reached.
    pub(crate) fn is_connected(&self) -> bool {
        match self {
            Stream::Plain(socket) => socket.has_sent,
            Stream::Tls(stream) => stream.is_connected(),
        }
    }

    /// Whether the end has come in a way that the kernel will not tell of.
    pub(crate) fn is_ended(&self) -> bool {
        match self {
            Stream::Plain(_) => false,
            Stream::Tls(stream) => stream.is_ended(),
        }
    }

    /// What TLS came to, once it is up.
    pub(crate) fn tls_facts(&self) -> Option<TlsFacts> {
        match self {
            Stream::Plain(_) => None,
            Stream::Tls(stream) => stream.facts(),
        }
    }

    /// Whether requests wait for a handshake.
    pub(crate) fn is_handshaking(&self) -> bool {
        match self {
            Stream::Plain(_) => false,
            Stream::Tls(stream) => stream.is_handshaking(),
        }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Stream::Plain(socket) => socket.fd.as_fd(),
            Stream::Tls(stream) => stream.socket().fd.as_fd(),
        }
    }
}

impl Socket {
    fn tcp(address: &SocketAddr, local: Option<IpAddr>, buffers: Option<usize>) -> Result<Socket, Errno> {
        let fd = new_socket(if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 }, buffers)?;
        if let Some(local) = local {
            set_port_when_connecting(&fd)?;
            rustix::net::bind(&fd, &SocketAddr::new(local, 0))?;
        }
        begun(rustix::net::connect(&fd, address))?;
        Ok(Socket { fd, is_tcp: true, has_sent: false })
    }

    fn unix(path: &Path, buffers: Option<usize>) -> Result<Socket, Errno> {
        let fd = new_socket(AddressFamily::UNIX, buffers)?;
        begun(rustix::net::connect(&fd, &SocketAddrUnix::new(path)?))?;
        Ok(Socket { fd, is_tcp: false, has_sent: false })
    }

    #[inline]
    fn send(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        let sent = rustix::net::send(&self.fd, bytes, SendFlags::NOSIGNAL)?;
        self.has_sent = true;
        Ok(sent)
    }

    #[inline]
    fn receive(&mut self, buffer: &mut [u8]) -> Result<usize, Errno> {
        rustix::net::recv(&self.fd, buffer, RecvFlags::empty()).map(|(_, length)| length)
    }

    fn discard(&mut self, buffer: &mut [u8]) -> Result<usize, Errno> {
        let flags = if self.is_tcp { RecvFlags::TRUNC } else { RecvFlags::empty() };
        rustix::net::recv(&self.fd, buffer, flags).map(|(_, length)| length)
    }
}

fn new_socket(family: AddressFamily, buffers: Option<usize>) -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    if let Some(bytes) = buffers {
        sockopt::set_socket_send_buffer_size(&socket, bytes)?;
        sockopt::set_socket_recv_buffer_size(&socket, bytes)?;
    }
    Ok(socket)
}

/// Connecting that goes on is no error.
fn begun(done: Result<(), Errno>) -> Result<(), Errno> {
    if done == Err(Errno::INPROGRESS) { Ok(()) } else { done }
}

/// Has binding to an address leave the port to connecting, which may use one port for several servers: ip(7). Otherwise a local
/// address would have no more ports than one server.
fn set_port_when_connecting(socket: &OwnedFd) -> Result<(), Errno> {
    let on: libc::c_int = 1;
    // SAFETY: the option takes an int, which lives until the call returns, and its size is the one given.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_IP,
            libc::IP_BIND_ADDRESS_NO_PORT,
            std::ptr::from_ref(&on).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if done == 0 { Ok(()) } else { Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)) }
}

// For TLS, which asks for the standard library's way.
impl io::Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(self.receive(buffer)?)
    }
}

impl io::Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(self.send(bytes)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
