//! What a server was told to write into each line: Apache's LogFormat, nginx's log_format, or one of the usual names.
//!
//! A format becomes a list of [`Piece`]s: a field and the text that follows it. How a line is cut by them stands in
//! [`crate::line`]. Fields that no reader needs are kept as places to skip.

mod apache;
mod nginx;
mod quoting;

use crate::entry::Moment;
use crate::escape::Escapes;
use crate::time::Fragment;

/// A log's format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Format {
    pub(crate) text: String,
    /// What stands before the first field.
    pub(crate) lead: Vec<u8>,
    pub(crate) pieces: Vec<Piece>,
    pub(crate) escapes: Escapes,
    pub(crate) behind: Behind,
}

/// A format that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// Nothing in it names a field.
    #[error(
        "`{0}` is no log format: write common, combined or vhost_combined, or the server's own, such as \"%h %t\" (Apache) or \"$remote_addr $msec\" (nginx)"
    )]
    NoField(String),
    /// A directive of Apache that does not exist, or whose end is missing.
    #[error("Apache's log format has no directive `{0}`")]
    Directive(String),
    /// A unit of `%{UNIT}T` that does not exist.
    #[error("`%{{{0}}}T` has no such unit: s, ms or us")]
    Unit(String),
    /// A conversion of strftime that cannot be read back.
    #[error(
        "`%{{{pattern}}}t` cannot be read back because of `%{conversion}`; use %z for the zone, digits for the rest"
    )]
    Time {
        /// All of it.
        pattern: String,
        /// The letter in question.
        conversion: char,
    },
    /// An `escape=` of nginx that does not exist.
    #[error("`escape={0}` is not known: default, json or none")]
    Escape(String),
}

/// A field, and the text between it and the next one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) field: Field,
    pub(crate) until: Vec<u8>,
}

/// What a field says. Where several may say the same, the lowest rank is believed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Field {
    Skipped,
    Client,
    Host(Rank),
    /// Method, target and version.
    Request,
    Method,
    /// Path and query as the client wrote them.
    Target,
    /// The path alone, decoded by the server.
    Path,
    /// `Path` with the query behind it, if there is one.
    PathAndQuery(NoQuery),
    Query,
    Version,
    Status(Rank),
    Bytes(Rank),
    Duration(Unit),
    Time(Fragment, Moment),
    Referer,
    UserAgent,
}

/// 0 is the best.
pub(crate) type Rank = u8;

/// The unit of a duration, the coarsest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Unit {
    Second,
    Milli,
    Micro,
}

/// What stands behind a path that has no query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoQuery {
    Nothing,
    /// nginx writes an empty `$args` as `-`.
    Dash,
}

/// What may stand behind the last piece of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Behind {
    Nothing,
    /// Further fields after a space.
    Fields,
}

const COMMON: &str = r#"%h %l %u %t "%r" %>s %b"#;
const COMBINED: &str = r#"%h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-Agent}i""#;
const VHOST_COMBINED: &str = r#"%v:%p %h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-Agent}i""#;
const NGINX_COMBINED: &str = r#"$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent""#;

impl Format {
    /// Reads a format: `common`, `combined` or `vhost_combined`, after whose fields a line may have more; or what stands in the
    /// server's configuration, with or without its quotes and the directive's name. `%` makes it Apache's, `$` nginx's.
    ///
    /// # Errors
    /// When it names no field, or one that Apache does not have. Variables of nginx may be anything.
    pub fn parse(text: &str) -> Result<Format, FormatError> {
        let named = match text.trim() {
            "common" => COMMON,
            "combined" => COMBINED,
            "vhost_combined" => VHOST_COMBINED,
            _ => return Format::written(text),
        };
        Ok(Format { behind: Behind::Fields, text: text.trim().to_owned(), ..Format::written(named)? })
    }

    /// Recognises `common`, `combined`, `vhost_combined` and nginx's `combined` by a log's first lines, of which some may be
    /// damaged. Further fields behind them do no harm. `None` when it is none of these.
    pub fn guess<'a>(lines: impl IntoIterator<Item = &'a [u8]>) -> Option<Format> {
        let lines: Vec<&[u8]> = lines.into_iter().filter(|line| !line.trim_ascii().is_empty()).collect();
        let known = |text| Format::parse(text).ok();
        let richest_first = [known("vhost_combined")?, known("combined")?, known("common")?];
        let fitting = |format: &Format| lines.iter().filter(|line| crate::line::cut(format, line).is_some()).count();
        let counts = richest_first.each_ref().map(fitting);
        let most = counts.into_iter().max().filter(|most| *most > 0 && *most * 2 > lines.len())?;
        let best = counts.iter().position(|count| *count * 5 >= most * 4)?;
        if best == 1 && nginx::wrote(&lines) {
            let format = Format::written(NGINX_COMBINED).ok()?;
            return Some(Format { behind: Behind::Fields, ..format });
        }
        richest_first.into_iter().nth(best)
    }

    /// The format as it was given, or the name of the one that was recognised.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    fn written(text: &str) -> Result<Format, FormatError> {
        let found = quoting::strip(text)?;
        let syntax = found.syntax.or_else(|| {
            let fields = |(at, mark): (usize, char)| match (mark, found.text[at..].chars().nth(1)) {
                ('%', Some(next)) if next != '%' && next != ' ' => Some(Syntax::Apache),
                ('$', Some(next)) if next == '{' || next == '_' || next.is_ascii_alphabetic() => Some(Syntax::Nginx),
                _ => None,
            };
            found.text.char_indices().find_map(fields)
        });
        let mut layout = Layout::default();
        match syntax {
            Some(Syntax::Apache) => apache::read(&found.text, &mut layout)?,
            Some(Syntax::Nginx) => nginx::read(&found.text, found.escapes, &mut layout),
            None => {}
        }
        if layout.pieces.is_empty() {
            return Err(FormatError::NoField(text.to_owned()));
        }
        let Layout { lead, pieces } = layout;
        let escapes = if found.escapes == quoting::Style::None { Escapes::None } else { Escapes::Written };
        Ok(Format { text: text.to_owned(), lead, pieces, escapes, behind: Behind::Nothing })
    }
}

/// Whose directives a format has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Syntax {
    Apache,
    Nginx,
}

/// A format in the making.
#[derive(Default)]
struct Layout {
    lead: Vec<u8>,
    pieces: Vec<Piece>,
}

impl Layout {
    fn literal(&mut self, text: &str) {
        let end = self.pieces.last_mut().map_or(&mut self.lead, |piece| &mut piece.until);
        end.extend(text.as_bytes());
    }

    fn field(&mut self, field: Field) {
        self.pieces.push(Piece { field, until: Vec::new() });
    }

    /// A query; behind a path the two are one field, because a decoded path may hold anything.
    fn query(&mut self, without: NoQuery) {
        match self.pieces.last_mut() {
            Some(Piece { field: field @ Field::Path, until }) if until.is_empty() || until == b"?" => {
                *field = Field::PathAndQuery(without);
                until.clear();
            }
            Some(_) | None => self.field(Field::Query),
        }
    }
}

#[cfg(test)]
mod tests;
