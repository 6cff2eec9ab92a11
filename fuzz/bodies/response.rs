//! Whatever a server sends and however it is cut, the response parser gives one result: with a memo or without, whether
//! content is fed or thrown away, whether somebody looks or not. It never panics and keeps its promises on the way.
//!
//! A fuzz target and the tests of `http1` both run this; it knows only what `http1` shows to everybody.

use http1::{Answer, Asked, Memo, Nobody, Observe, Parser, ResponseError};

/// What came of all the bytes.
#[derive(Debug, PartialEq)]
pub(crate) struct Outcome {
    /// Every complete answer, and where it ended.
    pub(crate) answers: Vec<(usize, Answer)>,
    /// Why it is not HTTP.
    pub(crate) error: Option<ResponseError>,
    /// Whether nothing was missing when the server closed.
    pub(crate) complete: bool,
}

/// What becomes of content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    /// It is fed.
    Fed,
    /// It is thrown away where that is allowed.
    Discarded,
}

/// Holds the parser to its promises on these bytes.
///
/// # Panics
/// When it breaks one.
pub(crate) fn check(bytes: &[u8]) {
    for asked in [Asked::Content, Asked::Head, Asked::Tunnel] {
        let whole = parse(bytes, asked, bytes.len(), Content::Fed, &mut Memo::default(), &mut Nobody);
        let mut seen = Seen::default();
        assert_eq!(parse(bytes, asked, bytes.len(), Content::Fed, &mut Memo::default(), &mut seen), whole, "when seen");
        let mut memo = Memo::default();
        for size in [bytes.len(), bytes.len(), ANY, 1, ANY] {
            assert_eq!(parse(bytes, asked, size, Content::Fed, &mut memo, &mut Nobody), whole, "with a memo, {size}");
            assert_eq!(
                parse(bytes, asked, size, Content::Discarded, &mut memo, &mut Nobody),
                whole,
                "discarded, {size}"
            );
            let mut again = Seen::default();
            assert_eq!(parse(bytes, asked, size, Content::Fed, &mut memo, &mut again), whole, "when seen, {size}");
            assert_eq!(again, seen, "what is seen, {size}");
        }
        if whole.error.is_none() {
            let content: u64 = whole.answers.iter().map(|(_, answer)| answer.body_bytes).sum();
            assert!(content <= seen.body.len() as u64, "more content than was seen: {whole:?}");
        }
    }
}

/// As a size: pieces of any size, which follow from the bytes.
pub(crate) const ANY: usize = 0;

/// Parses `bytes` in pieces of `size`, then closes.
///
/// # Panics
/// When the parser breaks a promise.
pub(crate) fn parse<O: Observe>(
    bytes: &[u8],
    asked: Asked,
    size: usize,
    content: Content,
    memo: &mut Memo,
    observer: &mut O,
) -> Outcome {
    let mut parser = Parser::new(asked);
    let mut outcome = Outcome { answers: Vec::new(), error: None, complete: true };
    let mut cuts = Cuts::of(bytes, size);
    let (mut at, mut told) = (0, 0);
    while at < bytes.len() {
        let piece = &bytes[at..bytes.len().min(at + cuts.next())];
        let skipped = if content == Content::Discarded { parser.discardable().min(piece.len() as u64) } else { 0 };
        let (used, answer) = if skipped > 0 {
            (usize::try_from(skipped).expect("no more than the piece"), parser.discarded(skipped))
        } else {
            match parser.feed_to(piece, memo, observer) {
                Ok(fed) => {
                    assert!(fed.used > 0 && fed.used <= piece.len(), "used {} of {}", fed.used, piece.len());
                    assert!(fed.answer.is_some() || fed.used == piece.len(), "bytes left without an answer");
                    if let Some(interim) = fed.interim {
                        assert!((100..200).contains(&interim) && interim != 101, "interim {interim}");
                        told += 1;
                    }
                    (fed.used, fed.answer)
                }
                Err(error) => {
                    after_error(&mut parser, piece, memo);
                    return Outcome { error: Some(error), complete: false, ..outcome };
                }
            }
        };
        at += used;
        outcome.complete = answer.is_some();
        if let Some(answer) = answer {
            assert!(answer.status >= 200 && answer.status < 1000, "status {}", answer.status);
            assert!((told > 0) == (answer.interim > 0) && told <= answer.interim, "{told} told of {}", answer.interim);
            assert_eq!(parser.discardable(), 0, "nothing of the next answer is there");
            outcome.answers.push((at, answer));
            told = 0;
        }
    }
    if let Some(last) = parser.close() {
        assert!(!last.reusable, "what was closed is not used again");
        outcome.answers.push((at, last));
        outcome.complete = true;
    }
    outcome
}

/// Whatever is fed after an error does no harm, and a reset makes the parser as good as new.
fn after_error(parser: &mut Parser, piece: &[u8], memo: &mut Memo) {
    let _ = parser.feed(piece, memo);
    let _ = parser.close();
    parser.reset();
    parser.expect(Asked::Content);
    let fed = parser.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", memo).expect("a good answer");
    let expected = Answer { status: 200, interim: 0, body_bytes: 1, reusable: true };
    assert_eq!((fed.used, fed.answer), (39, Some(expected)));
}

/// Everything an observer is shown.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    fields: Vec<u8>,
    body: Vec<u8>,
}

impl Observe for Seen {
    const FIELDS: bool = true;

    fn field(&mut self, name: &[u8], value: &[u8]) {
        assert!(!name.contains(&b':') && !value.iter().any(|byte| b"\r\n\0".contains(byte)), "a field is one line");
        for part in [name, b":", value, b"\n"] {
            self.fields.extend_from_slice(part);
        }
    }

    fn body(&mut self, bytes: &[u8]) {
        self.body.extend_from_slice(bytes);
    }
}

/// Sizes of pieces: all the same, or any that follow from the bytes, so that a file needs nothing beside its bytes.
struct Cuts {
    size: usize,
    state: u64,
}

impl Cuts {
    fn of(bytes: &[u8], size: usize) -> Cuts {
        // FNV-1a; never 0, from which the next numbers would not leave.
        let hash = bytes
            .iter()
            .fold(0xcbf2_9ce4_8422_2325, |hash: u64, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        Cuts { size, state: hash | 1 }
    }

    fn next(&mut self) -> usize {
        if self.size != ANY {
            return self.size;
        }
        // Xorshift.
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        // Mostly small, sometimes a whole head.
        1 + (self.state >> 32) as usize % if self.state & 3 == 0 { 400 } else { 20 }
    }
}
