//! The head of a response, one line at a time: only what decides where its body ends and whether the connection stays.
//!
//! Every other field is checked for form and forgotten.

use crate::request::Asked;
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

    /// Reads `Name: value`, or a folded continuation of the line before, which has no name; gives both parts back.
    #[inline]
    pub(crate) fn field<'a>(&mut self, line: &'a [u8]) -> Result<(&'a [u8], &'a [u8]), ResponseError> {
        // The first byte that cannot belong to a name has to be the colon.
        let (name, rest) = line.split_at(token_length(line));
        let Some((&first, value)) = rest.split_first() else { return Err(ResponseError::Field) };
        // Others may take them for a line's end, and who keeps the value passes them on: RFC 9110 section 5.5.
        if memchr::memchr2(b'\r', b'\0', value).is_some() {
            return Err(ResponseError::Field);
        }
        match first {
            b':' if !name.is_empty() => {}
            // Folding is obsolete (RFC 9112 section 5.2). Where it cannot change the framing it does no harm.
            b' ' | b'\t' if name.is_empty() && !self.last_field_mattered => return Ok((name, value)),
            _ => return Err(ResponseError::Field),
        }
        self.last_field_mattered = true;
        match name.len() {
            14 if is_called(name, b"Content-Length") => self.content_length(value)?,
            17 if is_called(name, b"Transfer-Encoding") => self.transfer_encoding(value),
            10 if is_called(name, b"Connection") => self.connection(value),
            _ => self.last_field_mattered = false,
        }
        Ok((name, value))
    }

    /// Whether this is a 1xx head, which another one follows.
    pub(crate) fn is_interim(&self) -> bool {
        self.status < 200
    }

    /// Where the body ends (RFC 9112 section 6.3), and whether the connection may carry another request after it (sections
    /// 9.3 and 6.1).
    pub(crate) fn end(&self, asked: Asked) -> (Framing, bool) {
        if asked == Asked::Tunnel && (200..300).contains(&self.status) {
            // A tunnel is open whatever the proxy says of its own connections.
            return (Framing::Length(0), true);
        }
        let persistent = !self.says_close && (self.minor >= 1 || self.says_keep_alive);
        // A server that gives both a length and a coding, or a coding in HTTP/1.0, is not to be trusted with where the next
        // answer begins.
        let coding_is_sound =
            self.transfer_coding == Coding::Absent || (self.content_length.is_none() && self.minor >= 1);
        let framing = match (self.transfer_coding, self.content_length) {
            _ if asked == Asked::Head || matches!(self.status, 204 | 304) => Framing::Length(0),
            (Coding::Chunked, _) => Framing::Chunked,
            (Coding::Other, _) | (Coding::Absent, None) => Framing::UntilClose,
            (Coding::Absent, Some(length)) => Framing::Length(length),
        };
        (framing, persistent && coding_is_sound && framing != Framing::UntilClose)
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

/// Whether a byte may stand in a method or a field name: RFC 9110 section 5.6.2.
pub(crate) fn is_token(byte: u8) -> bool {
    TOKEN[usize::from(byte)]
}

/// Names are the same in upper and lower case; nearly all servers write them as here.
#[inline]
fn is_called<const N: usize>(name: &[u8], called: &[u8; N]) -> bool {
    name == called || name.eq_ignore_ascii_case(called)
}

/// How many bytes at the beginning may stand in a field name; four at a time, because this is most of the work of a head.
fn token_length(line: &[u8]) -> usize {
    let mut length = 0;
    while let Some(&[a, b, c, d]) = line.get(length..).and_then(<[u8]>::first_chunk) {
        if !(is_token(a) & is_token(b) & is_token(c) & is_token(d)) {
            break;
        }
        length += 4;
    }
    while line.get(length).is_some_and(|&b| is_token(b)) {
        length += 1;
    }
    length
}

const TOKEN: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = b'!';
    while byte <= b'~' {
        table[byte as usize] = byte.is_ascii_alphanumeric();
        byte += 1;
    }
    let mut others: &[u8] = b"!#$%&'*+-.^_`|~";
    while let [first, rest @ ..] = others {
        table[*first as usize] = true;
        others = rest;
    }
    table
};

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
