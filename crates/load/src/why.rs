//! Why a connection gave no answer, for those who count and for a human.

use crate::transport::TunnelError;
use http1::ResponseError;
use model::load::Failure;
use rustix::io::Errno;
use std::fmt;
use std::net::SocketAddr;

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

    /// What was received in place of an answer.
    pub(crate) fn malformed(error: ResponseError, received: &[u8]) -> Why {
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
