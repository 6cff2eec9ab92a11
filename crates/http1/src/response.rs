//! A response parser that takes bytes in any pieces and keeps none of the body.
//!
//! Heads, chunk sizes and trailers are lines; a line is looked at only when it is complete, so how the bytes were cut cannot
//! change the result. A line that lies in one piece is read where it lies; otherwise its parts are gathered in a buffer that
//! is kept for the next time.

use crate::head::{Framing, Head};
use crate::memo::Memo;
use crate::observe::{Nobody, Observe};
use crate::request::Asked;

/// The most bytes that the head of an answer may have, interim heads included; the trailer section may have as many again.
pub const MAX_HEAD: usize = 64 * 1024;

/// A complete answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// Final status, 200 to 999.
    pub status: u16,
    /// Heads with a status of 1xx that came before it.
    pub interim: u16,
    /// Bytes of content, without the chunks' own framing.
    pub body_bytes: u64,
    /// Whether the connection may carry another request, as far as the answer is concerned; for a 2xx to `CONNECT` the
    /// connection carries the tunnel, and this is true.
    pub reusable: bool,
}

/// What became of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fed {
    /// How many bytes of the piece belong to this answer. Fewer than all only when the answer is complete.
    pub used: usize,
    /// The answer, once it is complete.
    pub answer: Option<Answer>,
    /// The status of an interim head (1xx) that these bytes completed: 100 if that was among them, which is what a request
    /// with its body held back waits for, else the last.
    pub interim: Option<u16>,
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
    /// No colon, a bad name, a CR or NUL within, or a folded line where it matters.
    #[error("a header field is malformed")]
    Field,
    /// Not a number, too large, or several that differ.
    #[error("Content-Length is not one number")]
    ContentLength,
    /// No size, or no CR LF behind it or behind the data.
    #[error("a chunk is malformed")]
    Chunk,
    /// Head, trailers or a chunk's line beyond their limits.
    #[error("the head is longer than {MAX_HEAD} bytes, or a chunk's first line longer than {MAX_CHUNK_LINE}")]
    TooLong,
}

/// Parses the answers of one connection, one after the other.
#[derive(Debug)]
pub struct Parser {
    asked: Asked,
    state: State,
    head: Head,
    interim: u16,
    // Of the answer whose head is complete.
    reusable: bool,
    body_bytes: u64,
    // Bytes of lines so far, of those that share a limit.
    spent: usize,
    // The beginning of a line whose end has not come.
    partial: Vec<u8>,
}

impl Parser {
    /// A parser for answers to requests of one kind.
    #[must_use]
    pub fn new(asked: Asked) -> Parser {
        let (state, head) = (State::StatusLine, Head::default());
        Parser { asked, state, head, interim: 0, reusable: false, body_bytes: 0, spent: 0, partial: Vec::new() }
    }

    /// Says what the next answer answers, and all after it until it is said again; between answers.
    pub fn expect(&mut self, asked: Asked) {
        self.asked = asked;
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
    pub fn feed(&mut self, piece: &[u8], memo: &mut Memo) -> Result<Fed, ResponseError> {
        self.feed_to(piece, memo, &mut Nobody)
    }

    /// The same, while somebody looks at the answer.
    ///
    /// # Errors
    /// As [`Parser::feed`]; what was seen until then was seen.
    pub fn feed_to<O: Observe>(
        &mut self,
        piece: &[u8],
        memo: &mut Memo,
        observer: &mut O,
    ) -> Result<Fed, ResponseError> {
        let mut fed = Fed { used: 0, answer: None, interim: None };
        let memo = (!O::FIELDS && self.is_between()).then_some(memo);
        if let Some((head, length)) = memo.as_ref().and_then(|memo| memo.recall(piece)) {
            self.head = head;
            fed.used = length;
            if self.head_complete() {
                return Ok(Fed { answer: Some(self.complete()), ..fed });
            }
            return self.go_on(piece, fed, None, observer);
        }
        self.go_on(piece, fed, memo, observer)
    }

    /// The peer closed: the answer, if closing is how its body ends; `None` when something is missing.
    pub fn close(&mut self) -> Option<Answer> {
        (self.state == State::Body(Framed::UntilClose)).then(|| self.complete())
    }

    /// How many of the next bytes of the connection are content for certain, so that they need not be fed: the caller may let
    /// the kernel throw them away and count them by [`Parser::discarded`]. Without limit where closing ends the body.
    #[must_use]
    pub fn discardable(&self) -> u64 {
        match self.state {
            State::Body(Framed::Length(left) | Framed::Chunk(left)) => left,
            State::Body(Framed::UntilClose) => u64::MAX,
            _ => 0,
        }
    }

    /// Counts bytes that were thrown away instead of fed, never more than [`Parser::discardable`] said: the answer, if it is
    /// complete with them.
    #[must_use]
    pub fn discarded(&mut self, bytes: u64) -> Option<Answer> {
        debug_assert!(bytes <= self.discardable(), "{bytes} of {}", self.discardable());
        self.pass(bytes.min(self.discardable())).then(|| self.complete())
    }

    /// Goes on behind what is used; `memo` takes a final head that begins with the piece.
    fn go_on<O: Observe>(
        &mut self,
        piece: &[u8],
        mut fed: Fed,
        mut memo: Option<&mut Memo>,
        observer: &mut O,
    ) -> Result<Fed, ResponseError> {
        while fed.used < piece.len() {
            let rest = &piece[fed.used..];
            let complete = if let State::Body(_) = self.state {
                let taken = usize::try_from(self.discardable()).map_or(rest.len(), |left| left.min(rest.len()));
                observer.body(&rest[..taken]);
                fed.used += taken;
                self.pass(taken as u64)
            } else {
                let (taken, ended) = self.take_lines(rest, observer)?;
                fed.used += taken;
                match ended {
                    Ended::Line => false,
                    Ended::Interim => {
                        // Its bytes are not those of the final head.
                        memo = None;
                        fed.interim = fed.interim.filter(|&status| status == 100).or(Some(self.head.status));
                        false
                    }
                    Ended::Head => {
                        if let Some(memo) = memo.take() {
                            memo.keep(&piece[..fed.used], self.head);
                        }
                        self.head_complete()
                    }
                    Ended::Answer => true,
                }
            };
            if complete {
                fed.answer = Some(self.complete());
                break;
            }
        }
        Ok(fed)
    }

    /// Whether nothing of the next answer was fed.
    fn is_between(&self) -> bool {
        self.state == State::StatusLine && self.spent == 0
    }

    fn begin(&mut self) {
        (self.state, self.interim, self.body_bytes, self.spent) = (State::StatusLine, 0, 0, 0);
    }

    fn complete(&mut self) -> Answer {
        let Parser { head: Head { status, .. }, interim, body_bytes, reusable, .. } = *self;
        self.begin();
        Answer { status, interim, body_bytes, reusable }
    }

    /// Counts content, no more of it than is to come; says whether the answer is complete with it.
    fn pass(&mut self, bytes: u64) -> bool {
        self.body_bytes = self.body_bytes.saturating_add(bytes);
        let left = self.discardable() - bytes;
        match &mut self.state {
            State::Body(Framed::Length(_)) if left == 0 => return true,
            State::Body(Framed::Chunk(_)) if left == 0 => self.state = State::ChunkEnd,
            State::Body(Framed::Length(length) | Framed::Chunk(length)) => *length = left,
            _ => {}
        }
        false
    }

    /// Takes lines until something ends with one, or what there is of them: how many bytes, and what ended.
    fn take_lines<O: Observe>(&mut self, rest: &[u8], observer: &mut O) -> Result<(usize, Ended), ResponseError> {
        let mut taken = 0;
        while taken < rest.len() {
            let (length, ended) = self.take_line(&rest[taken..], observer)?;
            taken += length;
            if ended != Ended::Line || matches!(self.state, State::Body(_)) {
                return Ok((taken, ended));
            }
        }
        Ok((taken, Ended::Line))
    }

    /// Takes a line, or what there is of it: how many bytes, and what ended with it.
    #[inline]
    fn take_line<O: Observe>(&mut self, rest: &[u8], observer: &mut O) -> Result<(usize, Ended), ResponseError> {
        self.check_beginning(rest)?;
        let Some(end) = memchr::memchr(b'\n', rest) else {
            self.spend(rest.len())?;
            self.partial.extend_from_slice(rest);
            return Ok((rest.len(), Ended::Line));
        };
        self.spend(end + 1)?;
        let ended = if self.partial.is_empty() {
            self.line(&rest[..end], observer)?
        } else {
            let mut line = std::mem::take(&mut self.partial);
            line.extend_from_slice(&rest[..end]);
            let ended = self.line(&line, observer);
            line.clear();
            self.partial = line;
            ended?
        };
        Ok((end + 1, ended))
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

    /// A complete line without its LF.
    #[inline]
    fn line<O: Observe>(&mut self, line: &[u8], observer: &mut O) -> Result<Ended, ResponseError> {
        // A single LF is accepted as the end of a line of a head: RFC 9112 section 2.2. A chunk that is one byte too short
        // would pass by it, so there it is not.
        let with_cr = line;
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        match self.state {
            State::StatusLine => {
                self.head = Head::status_line(line)?;
                self.state = State::Field;
            }
            State::Field if !line.is_empty() => {
                let (name, value) = self.head.field(line)?;
                if O::FIELDS && !self.head.is_interim() {
                    observer.field(name, value.trim_ascii());
                }
            }
            State::Field if self.head.is_interim() => {
                // What interim heads have spent stays spent: an endless row of them has an end.
                self.state = State::StatusLine;
                self.interim = self.interim.saturating_add(1);
                return Ok(Ended::Interim);
            }
            State::Field => return Ok(Ended::Head),
            State::ChunkSize | State::ChunkEnd if line.len() == with_cr.len() => return Err(ResponseError::Chunk),
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
            State::Trailer if line.is_empty() => return Ok(Ended::Answer),
            State::Trailer | State::Body(_) => {}
        }
        Ok(Ended::Line)
    }

    /// The final head is there; says whether the answer is complete with it.
    fn head_complete(&mut self) -> bool {
        self.spent = 0;
        let (framing, reusable) = self.head.end(self.asked);
        self.reusable = reusable;
        self.state = match framing {
            Framing::Length(0) => return true,
            Framing::Length(length) => State::Body(Framed::Length(length)),
            Framing::UntilClose => State::Body(Framed::UntilClose),
            Framing::Chunked => State::ChunkSize,
        };
        false
    }
}

/// What ended with a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    Line,
    Interim,
    Head,
    Answer,
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
