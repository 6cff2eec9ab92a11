//! The way through a proxy to a server that speaks TLS: CONNECT, asked before the first byte of TLS (RFC 9110 section 9.3.6).
//!
//! What the proxy answers is never an answer of the server. Only the tunnel is asked for here; requests without TLS go to a proxy
//! as whole URLs and need none.

use super::{Socket, StreamError};
use http1::{After, Asked, Memo, Method, Parser, Request, RequestError, Version};
use rustix::io::Errno;
use std::fmt;
use std::sync::Arc;

/// What is asked of a proxy on every connection. Its `Debug` tells nothing of it, as a password may be in it.
#[derive(Clone, PartialEq, Eq)]
pub struct Tunnel {
    request: Arc<[u8]>,
}

/// Why there is no tunnel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TunnelError {
    /// The proxy answered with this status.
    Refused(u16),
    /// It closed before its answer was complete.
    Closed,
    /// What it sent is not HTTP.
    NotHttp,
    /// It sent bytes behind its answer, where only the server may speak, and only when spoken to.
    TooMuch,
}

/// A tunnel that is being opened.
pub(super) struct Opening {
    request: Arc<[u8]>,
    sent: usize,
    parser: Parser,
    memo: Memo,
}

impl Tunnel {
    /// A tunnel to `host`, which has its port behind it, asked for with these fields.
    ///
    /// # Errors
    /// When one of them cannot be sent.
    pub fn to(host: &str, headers: &[(String, String)]) -> Result<Tunnel, RequestError> {
        let request = Request {
            method: Method::CONNECT,
            target: host,
            version: Version::Http11,
            after: After::KeepOpen,
            host,
            headers,
            body: None,
        };
        Ok(Tunnel { request: request.to_bytes()?.into() })
    }

    pub(super) fn open(&self) -> Box<Opening> {
        // To the end of the head, whatever it says of a body: a refusal's page is of no use.
        let parser = Parser::new(Asked::Head);
        Box::new(Opening { request: Arc::clone(&self.request), sent: 0, parser, memo: Memo::default() })
    }
}

impl fmt::Debug for Tunnel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tunnel")
    }
}

impl Opening {
    /// Does what can be done now; says whether the tunnel is there.
    pub(super) fn go_on(&mut self, socket: &mut Socket) -> Result<bool, StreamError> {
        while self.is_unsent() {
            match socket.send(&self.request[self.sent..]) {
                Ok(sent) => self.sent += sent,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(false),
                Err(errno) => return Err(StreamError::Kernel(errno)),
            }
        }
        let mut buffer = [0; PIECE];
        loop {
            match socket.receive(&mut buffer) {
                Ok(0) => return Err(StreamError::Tunnel(TunnelError::Closed)),
                Ok(length) => {
                    if self.hear(&buffer[..length]).map_err(StreamError::Tunnel)? {
                        return Ok(true);
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(false),
                Err(errno) => return Err(StreamError::Kernel(errno)),
            }
        }
    }

    /// Whether some of the request is still to be sent.
    pub(super) fn is_unsent(&self) -> bool {
        self.sent < self.request.len()
    }

    /// Takes what the proxy said; whether that opens the tunnel.
    fn hear(&mut self, mut piece: &[u8]) -> Result<bool, TunnelError> {
        while !piece.is_empty() {
            let fed = self.parser.feed(piece, &mut self.memo).map_err(|_| TunnelError::NotHttp)?;
            piece = &piece[fed.used..];
            match fed.answer {
                None => {}
                Some(answer) if !(200..300).contains(&answer.status) => {
                    return Err(TunnelError::Refused(answer.status));
                }
                Some(_) if piece.is_empty() => return Ok(true),
                Some(_) => return Err(TunnelError::TooMuch),
            }
        }
        Ok(false)
    }
}

impl fmt::Display for TunnelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TunnelError::Refused(status) => {
                let meaning = match status {
                    401 | 407 => ": it wants a name and a password it knows",
                    403 | 405 => ": it does not let us go there",
                    502..=504 => ": it does not reach the server",
                    _ => "",
                };
                write!(f, "the proxy answered CONNECT with status {status}{meaning}")
            }
            TunnelError::Closed => f.write_str("the proxy closed the connection when asked for a tunnel"),
            TunnelError::NotHttp => f.write_str("the proxy answered CONNECT with what is not HTTP"),
            TunnelError::TooMuch => f.write_str("the proxy sent bytes of its own behind its answer, into the tunnel"),
        }
    }
}

/// Bytes of the proxy's answer that are read at once.
const PIECE: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    /// What follows from what a proxy says, whole and byte by byte.
    #[track_caller]
    fn check(said: &str, expected: Result<bool, TunnelError>) {
        let tunnel = Tunnel::to("there.example:443", &[]).unwrap();
        assert_eq!(tunnel.open().hear(said.as_bytes()), expected, "{said:?}");
        let mut opening = tunnel.open();
        let piecemeal = said.bytes().map(|byte| opening.hear(&[byte])).find(|heard| *heard != Ok(false));
        // What comes behind the answer in a piece of its own is not looked at here.
        if expected != Err(TunnelError::TooMuch) {
            assert_eq!(piecemeal.unwrap_or(Ok(false)), expected, "{said:?}");
        }
    }

    #[test]
    fn proxies_open_tunnels_or_do_not() {
        check("HTTP/1.1 200 Connection established\r\n\r\n", Ok(true));
        check("HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n", Ok(true));
        check("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", Ok(true));
        check("HTTP/1.1 200 OK\r\n", Ok(false));
        check("HTTP/1.1 407 Who\r\nContent-Length: 100\r\n\r\n", Err(TunnelError::Refused(407)));
        check("SSH-2.0-x\r\n\r\n", Err(TunnelError::NotHttp));
        check("HTTP/1.1 200 OK\r\n\r\nhello", Err(TunnelError::TooMuch));
    }

    #[test]
    fn a_tunnel_is_asked_for_by_host_and_port_and_keeps_its_secrets() {
        let headers = [("Proxy-Authorization".to_owned(), "Basic bWU6cHc=".to_owned())];
        let tunnel = Tunnel::to("there.example:443", &headers).unwrap();
        let expected = "CONNECT there.example:443 HTTP/1.1\r\nHost: there.example:443\r\nProxy-Authorization: Basic bWU6cHc=\r\n\r\n";
        assert_eq!(std::str::from_utf8(&tunnel.request).unwrap(), expected);
        assert_eq!(format!("{tunnel:?}"), "Tunnel");
    }
}
