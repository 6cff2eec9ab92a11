//! One request and its answer, as far as they have got; never waits.

use report::openmetrics::MEDIA_TYPE;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Instant;

/// A head may have so many bytes.
const HEAD: usize = 8 << 10;
/// So much of what follows a head is thrown away before the connection is closed for it.
const REST: usize = 64 << 10;

/// A connection.
pub(super) struct Exchange {
    stream: TcpStream,
    deadline: Instant,
    stage: Stage,
}

enum Stage {
    /// The head, as far as it came.
    Asked(Vec<u8>),
    /// The answer, and how much of it is sent.
    Answered(Vec<u8>, usize),
    /// All is sent. What still comes is read, or else the kernel would reset the connection and the answer might be lost with it.
    Said(usize),
}

/// What an exchange waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wants {
    /// Bytes.
    Read,
    /// Room for bytes.
    Write,
}

impl Exchange {
    pub(super) fn new(stream: TcpStream, deadline: Instant) -> io::Result<Exchange> {
        stream.set_nonblocking(true)?;
        Ok(Exchange { stream, deadline, stage: Stage::Asked(Vec::new()) })
    }

    pub(super) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    pub(super) fn deadline(&self) -> Instant {
        self.deadline
    }

    pub(super) fn wants(&self) -> Wants {
        if matches!(self.stage, Stage::Answered(..)) { Wants::Write } else { Wants::Read }
    }

    /// Does what can be done now; false when it is over.
    pub(super) fn go_on(&mut self, text: &mut impl FnMut() -> String) -> bool {
        match self.step(text) {
            Ok(goes_on) => goes_on,
            Err(error) => matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
        }
    }

    fn step(&mut self, text: &mut impl FnMut() -> String) -> io::Result<bool> {
        loop {
            match &mut self.stage {
                Stage::Asked(head) => {
                    let mut piece = [0; 2048];
                    let count = self.stream.read(&mut piece)?;
                    if count == 0 {
                        return Ok(false);
                    }
                    head.extend_from_slice(&piece[..count]);
                    if let Some(answer) = answer(head, text) {
                        self.stage = Stage::Answered(answer, 0);
                    }
                }
                Stage::Answered(bytes, sent) => {
                    *sent += self.stream.write(&bytes[*sent..])?;
                    if *sent == bytes.len() {
                        self.stream.shutdown(Shutdown::Write)?;
                        self.stage = Stage::Said(0);
                    }
                }
                Stage::Said(thrown) => {
                    let count = self.stream.read(&mut [0; 2048])?;
                    *thrown += count;
                    if count == 0 || *thrown > REST {
                        return Ok(false);
                    }
                }
            }
        }
    }
}

/// The answer to what came so far; `None` while the head is not complete.
fn answer(came: &[u8], text: &mut impl FnMut() -> String) -> Option<Vec<u8>> {
    let Some(end) = came.windows(4).position(|bytes| bytes == b"\r\n\r\n") else {
        return (came.len() > HEAD)
            .then(|| response("431 Request Header Fields Too Large", "", PLAIN, "the head is too long\n", true));
    };
    if end > HEAD {
        return Some(response("431 Request Header Fields Too Large", "", PLAIN, "the head is too long\n", true));
    }
    let bad = |what: &str| Some(response("400 Bad Request", "", PLAIN, what, true));
    let Ok(head) = std::str::from_utf8(&came[..end]) else { return bad("the head is no text\n") };
    let mut lines = head.split("\r\n");
    let words: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
    let [method, target, version] = words[..] else { return bad("this is no request of HTTP\n") };
    let has_host = lines.filter_map(|line| line.split_once(':')).any(|(name, _)| name.eq_ignore_ascii_case("host"));
    match version {
        "HTTP/1.1" if !has_host => return bad("a request of HTTP/1.1 has a Host\n"),
        "HTTP/1.0" | "HTTP/1.1" => {}
        _ => return bad("only HTTP/1.0 and HTTP/1.1\n"),
    }
    let with_body = match method {
        "GET" => true,
        "HEAD" => false,
        _ => {
            return Some(response(
                "405 Method Not Allowed",
                "Allow: GET, HEAD\r\n",
                PLAIN,
                "only GET and HEAD\n",
                true,
            ));
        }
    };
    Some(match target.split('?').next().unwrap_or_default() {
        "/metrics" => response("200 OK", "", MEDIA_TYPE, &text(), with_body),
        "/" => response("200 OK", "", PLAIN, "webdyno watch: the metrics are at /metrics\n", with_body),
        _ => response("404 Not Found", "", PLAIN, "the metrics are at /metrics\n", with_body),
    })
}

const PLAIN: &str = "text/plain; charset=utf-8";

fn response(status: &str, more: &str, kind: &str, body: &str, with_body: bool) -> Vec<u8> {
    let date = jiff::Timestamp::now().strftime("%a, %d %b %Y %H:%M:%S GMT");
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nDate: {date}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n{more}Cache-Control: no-store\r\nConnection: close\r\n\r\n"
    );
    (head + if with_body { body } else { "" }).into_bytes()
}
