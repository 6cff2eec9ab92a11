//! A format as it was copied from a configuration: the directive's name, quotes and line breaks come off.

use super::{FormatError, Syntax};

/// What was inside.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) text: String,
    /// Whose it is, when the directive says so.
    pub(super) syntax: Option<Syntax>,
    pub(super) escapes: Style,
}

/// What nginx does with bytes that would break a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    Default,
    Json,
    None,
}

/// Takes off what is not the format itself.
pub(super) fn strip(text: &str) -> Result<Found, FormatError> {
    let text = text.trim();
    let (first, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let mut escapes = Style::Default;
    if first.eq_ignore_ascii_case("LogFormat") {
        let inner = words(rest).into_iter().next().map(|word| word.text).unwrap_or_default();
        return Ok(Found { text: inner, syntax: Some(Syntax::Apache), escapes });
    }
    let is_directive = first == "log_format";
    let body = if is_directive { rest.trim_end().trim_end_matches(';') } else { text.trim_end_matches(';') };
    let mut parts = words(body);
    if is_directive && !parts.is_empty() {
        parts.remove(0);
    }
    if let Some(style) = parts.first().and_then(|part| part.text.strip_prefix("escape=")) {
        escapes = match style {
            "default" => Style::Default,
            "json" => Style::Json,
            "none" => Style::None,
            _ => return Err(FormatError::Escape(style.to_owned())),
        };
        parts.remove(0);
    }
    let all_quoted = !parts.is_empty() && parts.iter().all(|part| part.quoted == Quoted::Yes);
    let is_wrapped = is_directive || all_quoted;
    let inner = match (is_wrapped, escapes) {
        (true, _) => parts.into_iter().map(|part| part.text).collect(),
        (false, Style::Default) => text.to_owned(),
        (false, _) => text.split_once(char::is_whitespace).map_or_else(String::new, |(_, rest)| rest.to_owned()),
    };
    Ok(Found { text: inner, syntax: is_directive.then_some(Syntax::Nginx), escapes })
}

struct Word {
    text: String,
    quoted: Quoted,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Quoted {
    Yes,
    No,
}

/// Words as both servers' configurations have them: quoted by either mark, in which a backslash shields that mark and itself.
/// Quotes inside a bare word belong to it.
fn words(text: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let (word, behind) = match first {
            '"' | '\'' => quoted(&rest[1..], first),
            _ => {
                let (bare, behind) = rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len()));
                (Word { text: bare.to_owned(), quoted: Quoted::No }, behind)
            }
        };
        words.push(word);
        rest = behind.trim_start();
    }
    words
}

/// The word up to its closing mark. Text that stands right behind the mark shows that it was none.
fn quoted(text: &str, mark: char) -> (Word, &str) {
    let mut inner = String::new();
    let mut letters = text.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        if letter == mark {
            let behind = &text[at + 1..];
            let closes = behind.chars().next().is_none_or(|next| next.is_whitespace() || next == ';');
            let quoted = if closes { Quoted::Yes } else { Quoted::No };
            return (Word { text: inner, quoted }, behind);
        }
        let shielded = letters.peek().map(|(_, next)| *next).filter(|next| *next == mark || *next == '\\');
        match shielded {
            Some(next) if letter == '\\' => {
                inner.push(next);
                letters.next();
            }
            _ => inner.push(letter),
        }
    }
    (Word { text: inner, quoted: Quoted::No }, "")
}
