//! The head of a response, one line at a time: only what decides where its body ends and whether the connection stays.
//!
//! Every other field is checked for form and forgotten.

use crate::request::Method;
use crate::response::ResponseError;

/// What the lines seen so far said.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Head {
    pub(crate) status: u16,
    minor: u8,
    content_length: Option<u64>,
    transfer_coding: Coding,
    says_close: bool,
    says_keep_alive: bool,
    // A folded line would go on with a field that matters.
    last_field_mattered: bool,
}

/// Where the body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    Length(u64),
    Chunked,
    UntilClose,
}

/// The last transfer coding named.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Coding {
    #[default]
    Absent,
    Chunked,
    Other,
}

impl Head {
    /// Reads `HTTP/1.x NNN reason`, the reason being optional.
    pub(crate) fn status_line(line: &[u8]) -> Result<Head, ResponseError> {
        let rest = line.strip_prefix(b"HTTP/").ok_or(ResponseError::NotHttp)?;
        let (minor, rest) = match rest {
            [b'1', b'.', minor @ b'0'..=b'9', b' ', rest @ ..] => (minor - b'0', rest),
            [b'0'..=b'9', ..] => return Err(ResponseError::Version),
            _ => return Err(ResponseError::StatusLine),
        };
        let status = match rest {
            [a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9']
            | [a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9', b' ', ..] => {
                [a, b, c].iter().fold(0, |sum, &&digit| sum * 10 + u16::from(digit - b'0'))
            }
            _ => return Err(ResponseError::StatusLine),
        };
        if status == 101 {
            return Err(ResponseError::SwitchedProtocols);
        }
        Ok(Head { status, minor, ..Head::default() })
    }

    /// Reads `Name: value`, or a folded continuation of the line before.
    pub(crate) fn field(&mut self, line: &[u8]) -> Result<(), ResponseError> {
        if line.first().is_some_and(|&b| b == b' ' || b == b'\t') {
            // Folding is obsolete (RFC 9112 section 5.2). Where it cannot change the framing it does no harm.
            return if self.last_field_mattered { Err(ResponseError::Field) } else { Ok(()) };
        }
        let colon = line.iter().position(|&b| b == b':').ok_or(ResponseError::Field)?;
        let (name, value) = (&line[..colon], &line[colon + 1..]);
        if name.is_empty() || !name.iter().all(|&b| is_token(b)) {
            return Err(ResponseError::Field);
        }
        self.last_field_mattered = true;
        if name.eq_ignore_ascii_case(b"content-length") {
            self.content_length(value)?;
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            self.transfer_encoding(value);
        } else if name.eq_ignore_ascii_case(b"connection") {
            self.connection(value);
        } else {
            self.last_field_mattered = false;
        }
        Ok(())
    }

    /// Whether this is a 1xx head, which another one follows.
    pub(crate) fn is_interim(&self) -> bool {
        self.status < 200
    }

    /// Where the body ends: RFC 9112 section 6.3.
    pub(crate) fn framing(&self, method: Method) -> Framing {
        if method == Method::Head || matches!(self.status, 204 | 304) {
            return Framing::Length(0);
        }
        match (self.transfer_coding, self.content_length) {
            (Coding::Chunked, _) => Framing::Chunked,
            (Coding::Other, _) | (Coding::Absent, None) => Framing::UntilClose,
            (Coding::Absent, Some(length)) => Framing::Length(length),
        }
    }

    /// Whether the connection may carry another request after the body: RFC 9112 sections 9.3 and 6.1. A server that gives
    /// both a length and a coding, or a coding in HTTP/1.0, is not to be trusted with where the next answer begins.
    pub(crate) fn reusable(&self, method: Method) -> bool {
        let persistent = !self.says_close && (self.minor >= 1 || self.says_keep_alive);
        let coding_is_sound =
            self.transfer_coding == Coding::Absent || (self.content_length.is_none() && self.minor >= 1);
        persistent && coding_is_sound && self.framing(method) != Framing::UntilClose
    }

    // Several equal lengths are one (RFC 9110 section 8.6), different ones are an error.
    fn content_length(&mut self, value: &[u8]) -> Result<(), ResponseError> {
        for element in value.split(|&b| b == b',') {
            let length = decimal(element.trim_ascii()).ok_or(ResponseError::ContentLength)?;
            if self.content_length.is_some_and(|before| before != length) {
                return Err(ResponseError::ContentLength);
            }
            self.content_length = Some(length);
        }
        Ok(())
    }

    fn transfer_encoding(&mut self, value: &[u8]) {
        for coding in elements(value) {
            let chunked = coding.eq_ignore_ascii_case(b"chunked");
            self.transfer_coding = if chunked { Coding::Chunked } else { Coding::Other };
        }
    }

    fn connection(&mut self, value: &[u8]) {
        for option in elements(value) {
            self.says_close |= option.eq_ignore_ascii_case(b"close");
            self.says_keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
        }
    }
}

/// Whether a byte may stand in a field name: RFC 9110 section 5.6.2.
pub(crate) fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

// The non-empty elements of a comma-separated list.
fn elements(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&b| b == b',').map(<[u8]>::trim_ascii).filter(|element| !element.is_empty())
}

fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |sum, &digit| {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        sum.checked_mul(10)?.checked_add(digit)
    })
}
