//! A response parser that takes bytes in any pieces and keeps none of the body.
//!
//! Heads, chunk sizes and trailers are lines; a line is looked at only when it is complete, so how the bytes were cut cannot
//! change the result. A line that lies in one piece is read where it lies; otherwise its parts are gathered in a buffer that
//! is kept for the next time.

use crate::head::{Framing, Head};
use crate::request::Method;

/// The most bytes that the head of an answer may have, interim heads included; the trailer section may have as many again.
pub const MAX_HEAD: usize = 64 * 1024;

/// A complete answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// Final status, 200 to 999: interim answers (1xx) are skipped.
    pub status: u16,
    /// Bytes of content, without the chunks' own framing.
    pub body_bytes: u64,
    /// Whether the connection may carry another request, as far as the answer is concerned.
    pub reusable: bool,
}

/// What became of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fed {
    /// How many bytes of the piece belong to this answer. Fewer than all only when the answer is complete.
    pub used: usize,
    /// The answer, once it is complete.
    pub answer: Option<Answer>,
}

/// Bytes that are not an HTTP/1 response. After one, call [`Parser::reset`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ResponseError {
    /// Something else talks there.
    #[error("the answer does not begin with HTTP/")]
    NotHttp,
    /// HTTP, but not one that is text.
    #[error("the answer is neither HTTP/1.0 nor HTTP/1.1")]
    Version,
    /// No three-digit status.
    #[error("the status line is malformed")]
    StatusLine,
    /// The server wants to speak something else from now on.
    #[error("status 101, although no other protocol was asked for")]
    SwitchedProtocols,
    /// No colon, a bad name, or a folded line where it matters.
    #[error("a header field is malformed")]
    Field,
    /// Not a number, too large, or several that differ.
    #[error("Content-Length is not one number")]
    ContentLength,
    /// No size, or no line end behind the data.
    #[error("a chunk is malformed")]
    Chunk,
    /// Head, trailers or a chunk's line beyond their limits.
    #[error("the head is longer than {MAX_HEAD} bytes, or a chunk's first line longer than {MAX_CHUNK_LINE}")]
    TooLong,
}

/// Parses the answers of one connection, one after the other.
#[derive(Debug)]
pub struct Parser {
    method: Method,
    state: State,
    head: Head,
    body_bytes: u64,
    // Bytes of lines so far, of those that share a limit.
    spent: usize,
    // The beginning of a line whose end has not come.
    partial: Vec<u8>,
}

impl Parser {
    /// A parser for answers to requests of one method.
    #[must_use]
    pub fn new(method: Method) -> Parser {
        Parser { method, state: State::StatusLine, head: Head::default(), body_bytes: 0, spent: 0, partial: Vec::new() }
    }

    /// Forgets an unfinished answer; for the next connection.
    pub fn reset(&mut self) {
        self.begin();
        self.partial.clear();
    }

    /// Takes the next bytes of the connection. When the answer is complete the parser is ready for the next one, whose first
    /// bytes may be in the same piece, behind [`Fed::used`].
    ///
    /// # Errors
    /// When the bytes so far are not the beginning of an HTTP/1 response.
    pub fn feed(&mut self, piece: &[u8]) -> Result<Fed, ResponseError> {
        let mut used = 0;
        while used < piece.len() {
            let rest = &piece[used..];
            let complete = match self.state {
                State::Body(Framed::UntilClose) => {
                    used += self.take_body(rest, u64::MAX);
                    false
                }
                State::Body(Framed::Length(left)) => {
                    let taken = self.take_body(rest, left);
                    used += taken;
                    self.state = State::Body(Framed::Length(left - taken as u64));
                    left == taken as u64
                }
                State::Body(Framed::Chunk(left)) => {
                    let taken = self.take_body(rest, left);
                    used += taken;
                    let left = left - taken as u64;
                    self.state = if left == 0 { State::ChunkEnd } else { State::Body(Framed::Chunk(left)) };
                    false
                }
                State::StatusLine | State::Field | State::ChunkSize | State::ChunkEnd | State::Trailer => {
                    let (taken, complete) = self.take_line(rest)?;
                    used += taken;
                    complete
                }
            };
            if complete {
                return Ok(Fed { used, answer: Some(self.complete()) });
            }
        }
        Ok(Fed { used, answer: None })
    }

    /// The peer closed: the answer, if closing is how its body ends; `None` when something is missing.
    pub fn close(&mut self) -> Option<Answer> {
        (self.state == State::Body(Framed::UntilClose)).then(|| self.complete())
    }

    fn begin(&mut self) {
        (self.state, self.head, self.body_bytes, self.spent) = (State::StatusLine, Head::default(), 0, 0);
    }

    fn complete(&mut self) -> Answer {
        let reusable = self.head.reusable(self.method);
        let answer = Answer { status: self.head.status, body_bytes: self.body_bytes, reusable };
        self.begin();
        answer
    }

    fn take_body(&mut self, rest: &[u8], left: u64) -> usize {
        let taken = usize::try_from(left).map_or(rest.len(), |left| left.min(rest.len()));
        self.body_bytes = self.body_bytes.saturating_add(taken as u64);
        taken
    }

    /// Takes a line, or what there is of it: how many bytes, and whether the answer is complete with it.
    fn take_line(&mut self, rest: &[u8]) -> Result<(usize, bool), ResponseError> {
        self.check_beginning(rest)?;
        let Some(end) = rest.iter().position(|&b| b == b'\n') else {
            self.spend(rest.len())?;
            self.partial.extend_from_slice(rest);
            return Ok((rest.len(), false));
        };
        self.spend(end + 1)?;
        let complete = if self.partial.is_empty() {
            self.line(without_cr(&rest[..end]))?
        } else {
            let mut line = std::mem::take(&mut self.partial);
            line.extend_from_slice(&rest[..end]);
            let complete = self.line(without_cr(&line));
            line.clear();
            self.partial = line;
            complete?
        };
        Ok((end + 1, complete))
    }

    /// Finds at the first byte that it is not HTTP: what speaks something else may never send a line end.
    fn check_beginning(&self, rest: &[u8]) -> Result<(), ResponseError> {
        const BEGINNING: &[u8] = b"HTTP/";
        if self.state == State::StatusLine && self.partial.len() < BEGINNING.len() {
            let missing = &BEGINNING[self.partial.len()..];
            let compared = missing.len().min(rest.len());
            if missing[..compared] != rest[..compared] {
                return Err(ResponseError::NotHttp);
            }
        }
        Ok(())
    }

    fn spend(&mut self, bytes: usize) -> Result<(), ResponseError> {
        self.spent += bytes;
        let limit = match self.state {
            State::ChunkSize | State::ChunkEnd => MAX_CHUNK_LINE,
            _ => MAX_HEAD,
        };
        if self.spent > limit { Err(ResponseError::TooLong) } else { Ok(()) }
    }

    /// A complete line without its end; says whether the answer is complete with it.
    fn line(&mut self, line: &[u8]) -> Result<bool, ResponseError> {
        match self.state {
            State::StatusLine => {
                self.head = Head::status_line(line)?;
                self.state = State::Field;
            }
            State::Field if line.is_empty() => return Ok(self.head_complete()),
            State::Field => self.head.field(line)?,
            State::ChunkSize => {
                let size = chunk_size(line).ok_or(ResponseError::Chunk)?;
                self.spent = 0;
                self.state = if size == 0 { State::Trailer } else { State::Body(Framed::Chunk(size)) };
            }
            State::ChunkEnd if line.is_empty() => {
                self.spent = 0;
                self.state = State::ChunkSize;
            }
            State::ChunkEnd => return Err(ResponseError::Chunk),
            // Trailers say nothing about framing (RFC 9110 section 6.5.1); they are passed over.
            State::Trailer => return Ok(line.is_empty()),
            State::Body(_) => {}
        }
        Ok(false)
    }

    fn head_complete(&mut self) -> bool {
        if self.head.is_interim() {
            // What interim heads have spent stays spent: an endless row of them has an end.
            self.state = State::StatusLine;
            return false;
        }
        self.spent = 0;
        self.state = match self.head.framing(self.method) {
            Framing::Length(0) => return true,
            Framing::Length(length) => State::Body(Framed::Length(length)),
            Framing::UntilClose => State::Body(Framed::UntilClose),
            Framing::Chunked => State::ChunkSize,
        };
        false
    }
}

const MAX_CHUNK_LINE: usize = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    StatusLine,
    Field,
    ChunkSize,
    ChunkEnd,
    Trailer,
    Body(Framed),
}

/// Content, and how much of it is to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framed {
    Length(u64),
    Chunk(u64),
    UntilClose,
}

// A single LF is accepted as a line end: RFC 9112 section 2.2.
fn without_cr(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

// Hexadecimal digits, then perhaps an extension behind a semicolon: RFC 9112 section 7.1.
fn chunk_size(line: &[u8]) -> Option<u64> {
    let digits = line.split(|&b| b == b';').next()?.trim_ascii_end();
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |sum, &digit| {
        let digit = char::from(digit).to_digit(16)?;
        sum.checked_mul(16)?.checked_add(u64::from(digit))
    })
}

#[cfg(test)]
mod tests;
