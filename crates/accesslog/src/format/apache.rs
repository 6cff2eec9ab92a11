//! Apache's LogFormat: `%h`, `%>s`, `%!200,304{Referer}i`, `%{usec}t`.

use super::{Field, FormatError, Layout, NoQuery, Rank, Unit};
use crate::entry::{Moment, Resolution};
use crate::time::Fragment;

/// Directives whose content no reader needs, of httpd's own modules.
const SKIPPED: &str = "AcCdeEfFIkKlLMnopPQRSuxX";

/// Reads a format whose quotes are already off.
pub(super) fn read(text: &str, layout: &mut Layout) -> Result<(), FormatError> {
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        rest = &rest[first.len_utf8()..];
        match first {
            '%' => rest = directive(rest, layout)?,
            '\\' => rest = shielded(rest, layout),
            _ => layout.literal(first.encode_utf8(&mut [0; 4])),
        }
    }
    Ok(())
}

/// What httpd and its configuration make of a backslash.
fn shielded<'a>(rest: &'a str, layout: &mut Layout) -> &'a str {
    let (known, text) = match rest.as_bytes().first() {
        Some(b'n') => (1, "\n"),
        Some(b't') => (1, "\t"),
        Some(b'"') => (1, "\""),
        Some(b'\\') => (1, "\\"),
        _ => (0, "\\"),
    };
    layout.literal(text);
    &rest[known..]
}

/// Reads one directive behind its `%`, and gives what is left.
fn directive<'a>(text: &'a str, layout: &mut Layout) -> Result<&'a str, FormatError> {
    let unknown = |length: usize| FormatError::Directive(format!("%{}", text.get(..length).unwrap_or(text)));
    if let Some(rest) = text.strip_prefix('%') {
        layout.literal("%");
        return Ok(rest);
    }
    let mut rest = text;
    // The status of the first of several internal answers is worth less than that of the last.
    let (mut argument, mut rank) = (None, 1);
    loop {
        let Some(next) = rest.chars().next() else { return Err(unknown(text.len())) };
        rest = &rest[next.len_utf8()..];
        match next {
            '!' | ',' | '0'..='9' | '<' => {}
            '>' => rank = 0,
            '{' => {
                let (inner, behind) = rest.split_once('}').ok_or_else(|| unknown(text.len()))?;
                (argument, rest) = (Some(inner), behind);
            }
            // Two letters: time to the first byte, or a trailer field.
            '^' => match ["FB", "FU", "ti", "to"].iter().find_map(|name| rest.strip_prefix(name)) {
                Some(behind) => {
                    layout.field(Field::Skipped);
                    return Ok(behind);
                }
                None => return Err(unknown(text.len() - rest.len() + 2)),
            },
            'q' => {
                layout.query(NoQuery::Nothing);
                return Ok(rest);
            }
            't' => {
                time(argument, layout)?;
                return Ok(rest);
            }
            letter => {
                let field = field(letter, argument.unwrap_or_default(), rank)?;
                layout.field(field.ok_or_else(|| unknown(text.len() - rest.len()))?);
                return Ok(rest);
            }
        }
    }
}

/// The field of a letter, `None` when there is no such directive.
fn field(letter: char, argument: &str, status: Rank) -> Result<Option<Field>, FormatError> {
    Ok(Some(match letter {
        'a' | 'h' => Field::Client,
        'B' | 'b' => Field::Bytes(0),
        'O' => Field::Bytes(1),
        'D' => Field::Duration(Unit::Micro),
        'T' => Field::Duration(match argument {
            "" | "s" => Unit::Second,
            "ms" => Unit::Milli,
            "us" => Unit::Micro,
            _ => return Err(FormatError::Unit(argument.to_owned())),
        }),
        'H' => Field::Version,
        'm' => Field::Method,
        'r' => Field::Request,
        's' => Field::Status(status),
        'U' => Field::Path,
        'V' => Field::Host(1),
        'v' => Field::Host(2),
        'i' if argument.eq_ignore_ascii_case("Referer") => Field::Referer,
        'i' if argument.eq_ignore_ascii_case("User-Agent") => Field::UserAgent,
        'i' if argument.eq_ignore_ascii_case("Host") => Field::Host(0),
        'i' => Field::Skipped,
        _ if SKIPPED.contains(letter) => Field::Skipped,
        _ => return Ok(None),
    }))
}

/// `%t` and `%{FORMAT}t`.
fn time(argument: Option<&str>, layout: &mut Layout) -> Result<(), FormatError> {
    let argument = argument.unwrap_or_default();
    let (of, pattern) = match (argument.strip_prefix("begin:"), argument.strip_prefix("end:")) {
        (Some(pattern), _) => (Moment::Start, pattern),
        (None, Some(pattern)) => (Moment::End, pattern),
        (None, None) => (Moment::Start, argument),
    };
    let fragment = match pattern {
        // The brackets are a mark of their own: names of users before them may hold spaces.
        "" => {
            layout.literal("[");
            layout.field(Field::Time(Fragment::Clf, of));
            layout.literal("]");
            return Ok(());
        }
        "sec" => Fragment::Epoch(Resolution::Second),
        "msec" => Fragment::Epoch(Resolution::Milli),
        "usec" => Fragment::Epoch(Resolution::Micro),
        "msec_frac" => Fragment::Fraction(Resolution::Milli),
        "usec_frac" => Fragment::Fraction(Resolution::Micro),
        _ => Fragment::strftime(pattern)
            .map_err(|conversion| FormatError::Time { pattern: pattern.to_owned(), conversion })?,
    };
    layout.field(Field::Time(fragment, of));
    Ok(())
}
