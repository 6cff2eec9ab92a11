//! One line, cut by a format and read.
//!
//! A field ends where the text that follows it in the format begins. Fields that hold that text themselves, such as a user's
//! name with a space, make the rest of the line not fit; then the next place is tried. The number of tries is bounded.

use crate::entry::{Entry, Moment, NoRequest, Request};
use crate::escape::{Escapes, is_absent, text, undo};
use crate::format::{Behind, Field, Format, NoQuery, Piece, Rank, Unit};
use crate::request;
use crate::time::{self, Fragment};
use std::borrow::Cow;

/// More places than any true line has to be tried at.
const MOST_TRIES: u32 = 2_000;

/// The line's fields as written, one for each piece of the format; `None` when it is not a line of this format.
pub(crate) fn cut<'a>(format: &Format, line: &'a [u8]) -> Option<Vec<&'a [u8]>> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let body = line.strip_prefix(format.lead.as_slice())?;
    let mut cutting = Cutting { format, tries: MOST_TRIES, found: Vec::with_capacity(format.pieces.len()) };
    cutting.fits(body).then_some(cutting.found)
}

/// What the line says; `None` when it is not a line of this format.
pub(crate) fn read<'a>(format: &Format, line: &'a [u8]) -> Option<Entry<'a>> {
    let found = cut(format, line)?;
    let fields = Fields { format, found: &found };
    let (request, named) = match fields.request() {
        Ok((request, host)) => (Ok(request), host),
        Err(why) => (Err(why), None),
    };
    Some(Entry {
        time: time::assemble(&fields.times()),
        client: fields.text(|field| (*field == Field::Client).then_some(0)),
        request,
        status: fields.number(status).and_then(|status| u16::try_from(status).ok()).filter(|s| (100..1000).contains(s)),
        bytes: fields.number(bytes),
        duration_ns: fields.duration_ns(),
        host: named.or_else(|| fields.text(host)),
        referer: fields.text(|field| (*field == Field::Referer).then_some(0)),
        user_agent: fields.text(|field| (*field == Field::UserAgent).then_some(0)),
    })
}

struct Cutting<'f, 'a> {
    format: &'f Format,
    tries: u32,
    found: Vec<&'a [u8]>,
}

impl<'a> Cutting<'_, 'a> {
    /// Whether the pieces that are left fit `rest`; then they are found.
    fn fits(&mut self, rest: &'a [u8]) -> bool {
        let format = self.format;
        let Some((piece, later)) = format.pieces[self.found.len()..].split_first() else {
            return rest.is_empty() || (format.behind == Behind::Fields && rest[0] == b' ');
        };
        let until = piece.until.as_slice();
        if !until.is_empty() {
            let mut from = 0;
            while let Some(end) = position(&rest[from..], until).map(|at| from + at) {
                from = end + 1;
                let is_end = !(until[0] == b'"' && is_escaped(&rest[..end], format.escapes));
                if is_end && self.try_one(piece, rest, end) {
                    return true;
                }
                if self.tries == 0 {
                    return false;
                }
            }
            return false;
        }
        if later.is_empty() {
            let word = rest.iter().position(|byte| *byte == b' ').filter(|_| format.behind == Behind::Fields);
            return self.try_one(piece, rest, word.unwrap_or(rest.len()));
        }
        // Nothing in between: as much as the field can hold, or less.
        let most = rest.iter().position(|byte| !could_hold(&piece.field, *byte)).unwrap_or(rest.len());
        (0..=most).rev().any(|end| self.try_one(piece, rest, end))
    }

    fn try_one(&mut self, piece: &Piece, rest: &'a [u8], end: usize) -> bool {
        if self.tries == 0 {
            return false;
        }
        self.tries -= 1;
        if !accepts(&piece.field, &rest[..end]) {
            return false;
        }
        self.found.push(&rest[..end]);
        if self.fits(&rest[end + piece.until.len()..]) {
            return true;
        }
        self.found.pop();
        false
    }
}

fn position(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).position(|part| part == wanted)
}

/// Whether the byte behind `text` has an escaping backslash before it.
fn is_escaped(text: &[u8], escapes: Escapes) -> bool {
    escapes == Escapes::Written && text.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1
}

/// Whether a field can be written so.
fn accepts(field: &Field, written: &[u8]) -> bool {
    let all = |is: fn(&u8) -> bool| is_absent(written) || written.iter().all(is);
    match field {
        Field::Status(_) | Field::Bytes(_) => all(u8::is_ascii_digit),
        Field::Duration(_) => all(|byte| byte.is_ascii_digit() || *byte == b'.'),
        Field::Time(fragment, _) => is_absent(written) || fragment.accepts(written),
        Field::Client | Field::Host(_) | Field::Method | Field::Version => all(|byte| *byte != b' '),
        Field::Skipped
        | Field::Request
        | Field::Target
        | Field::Path
        | Field::PathAndQuery(_)
        | Field::Query
        | Field::Referer
        | Field::UserAgent => true,
    }
}

/// Whether a field can have this byte when another field follows at once.
fn could_hold(field: &Field, byte: u8) -> bool {
    match field {
        Field::Status(_) | Field::Bytes(_) => byte.is_ascii_digit() || byte == b'-',
        Field::Host(_) => byte != b' ' && byte != b'/',
        Field::Method => byte.is_ascii_alphabetic() || byte == b'-',
        _ => true,
    }
}

/// The fields of one line, by what they say.
struct Fields<'f, 'a> {
    format: &'f Format,
    found: &'f [&'a [u8]],
}

impl<'a> Fields<'_, 'a> {
    fn all(&self) -> impl Iterator<Item = (&Field, &'a [u8])> {
        self.format.pieces.iter().map(|piece| &piece.field).zip(self.found.iter().copied())
    }

    /// The field of the best rank that is not absent.
    fn best(&self, rank: impl Fn(&Field) -> Option<Rank>) -> Option<&'a [u8]> {
        let ranked = self.all().filter_map(|(field, written)| Some((rank(field)?, written)));
        ranked.filter(|(_, written)| !is_absent(written)).min_by_key(|(rank, _)| *rank).map(|(_, written)| written)
    }

    fn text(&self, rank: impl Fn(&Field) -> Option<Rank>) -> Option<Cow<'a, str>> {
        text(self.best(rank)?, self.format.escapes)
    }

    fn number(&self, rank: impl Fn(&Field) -> Option<Rank>) -> Option<u64> {
        std::str::from_utf8(self.best(rank)?).ok()?.parse().ok()
    }

    fn times(&self) -> Vec<(&Fragment, Moment, &'a [u8])> {
        let time = |(field, written)| match field {
            &Field::Time(ref fragment, of) => Some((fragment, of, written)),
            _ => None,
        };
        self.all().filter_map(time).collect()
    }

    /// The finest of the durations.
    fn duration_ns(&self) -> Option<u64> {
        let durations = self.all().filter_map(|(field, written)| match field {
            Field::Duration(unit) => Some((*unit, duration_ns(*unit, written)?)),
            _ => None,
        });
        durations.max_by_key(|(unit, _)| *unit).map(|(_, ns)| ns)
    }

    /// The request line, or else what its parts say.
    fn request(&self) -> Result<(Request<'a>, Option<Cow<'a, str>>), NoRequest> {
        let undo = |written| undo(written, self.format.escapes);
        let first = |wanted: &Field| self.all().find(|(field, _)| *field == wanted).map(|(_, written)| written);
        if let Some(line) = first(&Field::Request) {
            return request::of_line(&undo(line));
        }
        let (Some(method), Some(target)) = (first(&Field::Method), self.target()) else {
            return Err(NoRequest::NotLogged);
        };
        let version = first(&Field::Version).filter(|written| !is_absent(written)).and_then(request::version);
        request::of_parts(undo(method), target, version)
    }

    /// The target as written, or else of the path and query.
    fn target(&self) -> Option<Cow<'a, [u8]>> {
        let undo = |written| undo(written, self.format.escapes);
        let whole = self.all().find(|(field, _)| **field == Field::Target);
        if let Some((_, written)) = whole {
            return Some(undo(written));
        }
        let query = self.all().find(|(field, _)| **field == Field::Query).map(|(_, written)| written);
        self.all().find_map(|(field, written)| {
            let bytes = undo(written);
            let (path, query) = match field {
                Field::Path => (bytes, query.filter(|query| !is_absent(query)).map(undo)),
                Field::PathAndQuery(without) => split(bytes, *without),
                _ => return None,
            };
            if is_absent(&path) {
                return Some(Cow::Borrowed(b"-".as_slice()));
            }
            let mut target = request::encode_path(&path).into_bytes();
            if let Some(query) = query {
                target.push(b'?');
                target.extend(query.strip_prefix(b"?").unwrap_or(&query));
            }
            Some(Cow::Owned(target))
        })
    }
}

/// Path and query that were written without anything in between.
fn split(bytes: Cow<'_, [u8]>, without: NoQuery) -> (Cow<'_, [u8]>, Option<Cow<'_, [u8]>>) {
    match (bytes.iter().position(|byte| *byte == b'?'), without) {
        (Some(at), _) => (Cow::Owned(bytes[..at].to_vec()), Some(Cow::Owned(bytes[at + 1..].to_vec()))),
        (None, NoQuery::Dash) if bytes.len() > 1 && bytes.ends_with(b"-") => {
            (Cow::Owned(bytes[..bytes.len() - 1].to_vec()), None)
        }
        (None, _) => (bytes, None),
    }
}

fn status(field: &Field) -> Option<Rank> {
    if let Field::Status(rank) = field { Some(*rank) } else { None }
}

fn bytes(field: &Field) -> Option<Rank> {
    if let Field::Bytes(rank) = field { Some(*rank) } else { None }
}

fn host(field: &Field) -> Option<Rank> {
    if let Field::Host(rank) = field { Some(*rank) } else { None }
}

/// A number with or without decimals; digits beyond the nanosecond are dropped.
fn duration_ns(unit: Unit, written: &[u8]) -> Option<u64> {
    let factor: u64 = match unit {
        Unit::Second => 1_000_000_000,
        Unit::Milli => 1_000_000,
        Unit::Micro => 1_000,
    };
    let mut parts = written.splitn(2, |byte| *byte == b'.');
    let whole: u64 = std::str::from_utf8(parts.next()?).ok()?.parse().ok()?;
    let mut more = 0;
    let mut place = factor;
    for digit in parts.next().unwrap_or_default() {
        place /= 10;
        more += u64::from(char::from(*digit).to_digit(10)?) * place;
    }
    whole.checked_mul(factor)?.checked_add(more)
}
