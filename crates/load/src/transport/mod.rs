//! Whom to reach and over what: a socket that is being connected or is, and the bytes through it.
//!
//! Nothing here waits: what cannot be done now answers [`Errno::AGAIN`]. Which readiness to wait for is the connection's.

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType};
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// TCP over IPv4 or IPv6.
    Tcp(SocketAddr),
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
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// One way to a server.
pub(crate) struct Stream {
    socket: OwnedFd,
    is_tcp: bool,
}

impl Stream {
    /// Begins to connect. The first write tells whether it is connected.
    pub(crate) fn connect(address: &Address) -> Result<Stream, Errno> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = |family| rustix::net::socket_with(family, SocketType::STREAM, flags, None);
        let (socket, done) = match address {
            Address::Tcp(address) => {
                let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
                let socket = socket(family)?;
                let done = rustix::net::connect(&socket, address);
                (socket, done)
            }
            Address::Unix(path) => {
                let socket = socket(AddressFamily::UNIX)?;
                let done = rustix::net::connect(&socket, &SocketAddrUnix::new(path)?);
                (socket, done)
            }
        };
        match done {
            Ok(()) | Err(Errno::INPROGRESS) => Ok(Stream { socket, is_tcp: matches!(address, Address::Tcp(_)) }),
            Err(errno) => Err(errno),
        }
    }

    /// Takes what the kernel takes now.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        rustix::net::send(&self.socket, bytes, SendFlags::NOSIGNAL)
    }

    /// Gives what the kernel has now; 0 bytes are the end.
    pub(crate) fn receive(&mut self, buffer: &mut [u8]) -> Result<usize, Errno> {
        rustix::net::recv(&self.socket, buffer, RecvFlags::empty()).map(|(_, length)| length)
    }

    /// Throws away what the kernel has now, at most as much as `buffer` would hold, and says how much it was; 0 bytes are the
    /// end. TCP does so without copying; the content of `buffer` means nothing afterwards.
    pub(crate) fn discard(&mut self, buffer: &mut [u8]) -> Result<usize, Errno> {
        let flags = if self.is_tcp { RecvFlags::TRUNC } else { RecvFlags::empty() };
        rustix::net::recv(&self.socket, buffer, flags).map(|(_, length)| length)
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
