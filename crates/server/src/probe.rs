//! One blocking GET with a deadline for all of it: for readiness and settings, never for load.

use http1::{After, Asked, Memo, Method, Observe, Parser, Request, RequestError, ResponseError, Version};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// How often to look whether its answer is awaited.
const LOOK: Duration = Duration::from_millis(50);
/// How often while a connection is made: each look begins it anew, and a queue that is full drops what is sent to it.
const LOOK_CONNECTING: Duration = Duration::from_millis(500);
/// The most content that is kept of an answer: no page of settings has more, and of what only has to answer the status is enough.
const MOST: usize = 16 << 20;

/// What a server answered.
#[derive(Debug)]
pub(crate) struct Reply {
    /// Its status.
    pub(crate) status: u16,
    /// Whether the server would take another request on the connection.
    pub(crate) stays_open: bool,
    content: Content,
}

impl Reply {
    /// Its content.
    pub(crate) fn text(self) -> Result<String, ProbeError> {
        let bytes = self.content.0.ok_or(ProbeError::Long)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// What an answer contains; nothing once that is more than is kept.
#[derive(Debug)]
struct Content(Option<Vec<u8>>);

impl Observe for Content {
    const FIELDS: bool = false;

    fn body(&mut self, bytes: &[u8]) {
        match &mut self.0 {
            Some(kept) if kept.len() + bytes.len() <= MOST => kept.extend_from_slice(bytes),
            content => *content = None,
        }
    }
}

/// How the connection is meant to be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ask {
    /// HTTP/1.0, close: the body comes in one piece, without chunks.
    Once,
    /// HTTP/1.1, keep open: to learn whether the server does.
    ToStay,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProbeError {
    #[error("no connection: {0}")]
    Connect(io::Error),
    #[error("no whole answer within {:.1} s", .0.as_secs_f64())]
    Late(Duration),
    #[error("the connection broke: {0}")]
    Broken(io::Error),
    #[error("the connection was closed before the answer was complete")]
    Closed,
    #[error("the answer has more than {} MiB", MOST >> 20)]
    Long,
    #[error("nobody waits for it any more")]
    Unawaited,
    #[error(transparent)]
    Response(#[from] ResponseError),
    #[error(transparent)]
    Request(#[from] RequestError),
}

/// Asks for `path` once; connecting, writing and reading together take `patience` at most. Without a name it is the address that is
/// asked for. Gives up soon after the answer is no longer awaited: the server may have ended, and somebody else hold its port and never answer.
pub(crate) fn get(
    address: SocketAddr,
    host: Option<&str>,
    path: &str,
    ask: Ask,
    patience: Duration,
    is_awaited: &mut dyn FnMut() -> bool,
) -> Result<Reply, ProbeError> {
    let (version, after) = match ask {
        Ask::Once => (Version::Http10, After::Close),
        Ask::ToStay => (Version::Http11, After::KeepOpen),
    };
    let host = host.map_or_else(|| address.to_string(), str::to_owned);
    let request = Request { method: Method::GET, target: path, version, after, host: &host, headers: &[], body: None };
    let request = request.to_bytes()?;
    let end = Instant::now() + patience;
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => ProbeError::Late(patience),
        _ => ProbeError::Broken(error),
    };
    let mut stream = connect(address, end, is_awaited)?;
    stream.set_write_timeout(Some(left(end, patience)?)).map_err(failed)?;
    stream.write_all(&request).map_err(failed)?;
    let (mut parser, mut content, mut piece) = (Parser::new(Asked::Content), Content(Some(Vec::new())), [0; 8192]);
    let answer = loop {
        stream.set_read_timeout(Some(left(end, patience)?.min(LOOK))).map_err(failed)?;
        let read = match stream.read(&mut piece) {
            Ok(0) => break parser.close().ok_or(ProbeError::Closed)?,
            Ok(read) => read,
            Err(error) if matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => {
                if is_awaited() {
                    continue;
                }
                return Err(ProbeError::Unawaited);
            }
            Err(error) => return Err(failed(error)),
        };
        if let Some(answer) = parser.feed_to(&piece[..read], &mut Memo::default(), &mut content)?.answer {
            break answer;
        }
    };
    Ok(Reply { status: answer.status, stays_open: answer.reusable, content })
}

fn connect(address: SocketAddr, end: Instant, is_awaited: &mut dyn FnMut() -> bool) -> Result<TcpStream, ProbeError> {
    loop {
        let left = end.saturating_duration_since(Instant::now());
        match TcpStream::connect_timeout(&address, left.clamp(Duration::from_millis(1), LOOK_CONNECTING)) {
            Err(error) if error.kind() == io::ErrorKind::TimedOut && left > LOOK_CONNECTING => {
                if !is_awaited() {
                    return Err(ProbeError::Unawaited);
                }
            }
            connected => return connected.map_err(ProbeError::Connect),
        }
    }
}

fn left(end: Instant, patience: Duration) -> Result<Duration, ProbeError> {
    let left = end.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(ProbeError::Late(patience)) } else { Ok(left) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    const LATE: &str = "no whole answer within 0.3 s";

    /// A server that sends `pieces` and then closes, or keeps the connection when the last piece is empty.
    fn check(pieces: &'static [&'static str], expected: Result<(u16, &str, bool), &str>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 1024];
            assert!(stream.read(&mut request).unwrap() > 0);
            for piece in pieces {
                stream.write_all(piece.as_bytes()).unwrap();
            }
            if pieces.last().is_some_and(|last| last.is_empty()) {
                // Until the client gives up.
                while stream.read(&mut request).is_ok_and(|read| read > 0) {}
            }
        });
        // Only where there is nothing to come is a short wait enough.
        let late = expected == Err(LATE);
        let patience = if late { Duration::from_millis(300) } else { Duration::from_secs(10) };
        let got = get(address, None, "/", Ask::ToStay, patience, &mut || true);
        server.join().unwrap();
        let got = got.and_then(|r| Ok((r.status, r.stays_open, r.text()?))).map_err(|error| error.to_string());
        assert_eq!(got, expected.map(|(s, b, k)| (s, k, b.to_owned())).map_err(str::to_owned));
    }

    #[test]
    fn answers() {
        check(&["HTTP/1.1 200 OK\r\nContent-Length: 2\r\n", "\r\nO", "K", ""], Ok((200, "OK", true)));
        check(&["HTTP/1.1 403 No\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"], Ok((403, "", false)));
        check(&["HTTP/1.1 200 OK\r\n\r\nall of it"], Ok((200, "all of it", false)));
        check(&["HTTP/1.1 200 OK\r\nContent-Le"], Err("the connection was closed before the answer was complete"));
        check(&["HTTP/1.1 200 OK\r\n", ""], Err(LATE));
        check(&["SSH-2.0\r\n"], Err("the answer does not begin with HTTP/"));
    }

    #[test]
    fn only_content_is_content() {
        const HINT: &str = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n";
        const CHUNKS: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nO\r\n1\r\nK\r\n0\r\n\r\n";
        check(&[HINT, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nOK", ""], Ok((200, "OK", true)));
        check(&[CHUNKS, ""], Ok((200, "OK", true)));
    }

    #[test]
    fn what_is_too_long_is_answered_and_not_kept() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            assert!(stream.read(&mut [0; 1024]).unwrap() > 0);
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
            stream.write_all(&vec![b'x'; MOST + 1]).unwrap();
        });
        let reply = get(address, None, "/", Ask::Once, Duration::from_secs(10), &mut || true).unwrap();
        server.join().unwrap();
        assert_eq!((reply.status, reply.content.0.is_none()), (200, true));
        assert_eq!(reply.text().unwrap_err().to_string(), "the answer has more than 16 MiB");
    }
}
