//! nginx's log_format: `$remote_addr`, `${status}`. A name that no reader needs may be any variable.

use super::quoting::Style;
use super::{Field, Layout, NoQuery, Unit};
use crate::entry::Moment;
use crate::time::Fragment;

/// Reads a format whose quotes are already off.
pub(super) fn read(text: &str, escapes: Style, layout: &mut Layout) {
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        rest = &rest[first.len_utf8()..];
        match (first, name(rest)) {
            ('$', Some((name, behind))) => {
                variable(name, escapes, layout);
                rest = behind;
            }
            ('\\', _) if rest.starts_with(['"', '\'']) => {}
            _ => layout.literal(first.encode_utf8(&mut [0; 4])),
        }
    }
}

/// Whether lines in the layout that both servers call combined are nginx's: where they differ, more of them are as nginx
/// writes them.
pub(super) fn wrote(lines: &[&[u8]]) -> bool {
    // An escaped quote and backslash, a request that never came, and no body.
    const NGINX: [&[u8]; 4] = [br"\x22", br"\x5C", br#"] "" "#, br#"" 304 0 ""#];
    const APACHE: [&[u8]; 4] = [br#"\""#, br"\\", br#"] "-" "#, br#" - ""#];
    let count = |marks: [&[u8]; 4]| {
        let has = |line: &[u8], mark: &[u8]| line.windows(mark.len()).any(|part| part == mark);
        lines.iter().flat_map(|line| marks.map(|mark| has(line, mark))).filter(|has| *has).count()
    };
    count(NGINX) > count(APACHE)
}

/// The name behind a `$`, and what follows.
fn name(text: &str) -> Option<(&str, &str)> {
    let (text, closing) = text.strip_prefix('{').map_or((text, ""), |inner| (inner, "}"));
    let end = text.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').unwrap_or(text.len());
    let (name, behind) = text.split_at(end);
    Some((name, behind.strip_prefix(closing)?)).filter(|(name, _)| !name.is_empty())
}

fn variable(name: &str, escapes: Style, layout: &mut Layout) {
    let end = |fragment| Field::Time(fragment, Moment::End);
    layout.field(match name {
        "remote_addr" => Field::Client,
        "request" => Field::Request,
        "request_method" => Field::Method,
        "request_uri" => Field::Target,
        "uri" | "document_uri" => Field::Path,
        // A question mark when there is a query: it is found in the text.
        "is_args" if layout.pieces.last().is_some_and(|piece| piece.field == Field::Path && piece.until.is_empty()) => {
            return;
        }
        "args" | "query_string" => {
            return layout.query(if escapes == Style::Default { NoQuery::Dash } else { NoQuery::Nothing });
        }
        "server_protocol" => Field::Version,
        "status" => Field::Status(0),
        "body_bytes_sent" => Field::Bytes(0),
        "bytes_sent" => Field::Bytes(1),
        "request_time" => Field::Duration(Unit::Second),
        "time_local" => end(Fragment::Clf),
        "time_iso8601" => end(Fragment::Iso8601),
        "msec" => end(Fragment::EpochMillis),
        "http_host" => Field::Host(0),
        "host" => Field::Host(1),
        "server_name" => Field::Host(2),
        "http_referer" => Field::Referer,
        "http_user_agent" => Field::UserAgent,
        _ => Field::Skipped,
    });
}
