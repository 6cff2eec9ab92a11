//! Directives of a plan that something else has the last word on: the virtual host which answers, or a file that is read later.

use super::SERVER;
use super::check::canonical;
use super::machine::tree::{Line, VirtualHost};
use super::render::Rendered;
use super::settings::Told;
use crate::ServerError;
use crate::control::blame;
use model::plan::{Directive, Variant};
use std::path::Path;

/// Directives of which a virtual host's own is the only one in force in it.
pub(crate) const SINGLE: [&str; 21] = [
    "CustomLog",
    "DocumentRoot",
    "EnableMMAP",
    "EnableSendfile",
    "ErrorLog",
    "HostnameLookups",
    "KeepAlive",
    "KeepAliveTimeout",
    "LimitRequestFields",
    "LimitRequestFieldSize",
    "LimitRequestLine",
    "LogLevel",
    "MaxKeepAliveRequests",
    "Protocols",
    "RequestReadTimeout",
    "SSLCipherSuite",
    "SSLCompression",
    "SSLProtocol",
    "SSLSessionTickets",
    "Timeout",
    "TransferLog",
];

/// The plan's directives that do not reach the host, each with a sentence.
pub(crate) fn overridden<'a>(
    planned: &'a [Directive],
    host: Option<&'a VirtualHost<'_>>,
) -> impl Iterator<Item = (&'a Directive, String)> {
    planned.iter().filter_map(move |directive| {
        let name = canonical(directive.text.split_whitespace().next()?);
        if !SINGLE.iter().any(|single| single.eq_ignore_ascii_case(name)) {
            return None;
        }
        let own = host?.lines.iter().rfind(|line| canonical(line.name()).eq_ignore_ascii_case(name))?;
        Some((
            directive,
            format!("the virtual host that answers has its own at {}: {}; change it there", own.place, own.text),
        ))
    })
}

/// The plan's directives, in the file `own`, that a later file says otherwise, each with a sentence.
pub(crate) fn overridden_later<'a>(
    planned: &'a [Directive],
    lines: &'a [Line],
    own: &'a Path,
) -> impl Iterator<Item = (&'a Directive, String)> {
    planned.iter().filter_map(move |directive| {
        let name = canonical(directive.text.split_whitespace().next()?);
        let single = SINGLE.iter().chain(&super::check::NUMBERS).any(|single| single.eq_ignore_ascii_case(name));
        let same = |line: &&Line| line.depth == 0 && canonical(line.name()).eq_ignore_ascii_case(name);
        let last = lines.iter().rfind(same).filter(|last| single && last.place.file != own)?;
        Some((directive, format!("{} is read later and says {}; change it there", last.place, last.text)))
    })
}

/// The plan's directives, in `file`, that run with another value, each with a sentence. One of the machine's own is a note.
pub(crate) fn different<'a>(
    told: &Told,
    rendered: &'a Rendered,
    file: &Path,
    notes: &mut Vec<String>,
) -> Vec<(&'a Directive, String)> {
    let mut found = Vec::new();
    for difference in told.differences() {
        let asked = difference.asked;
        let sentence = format!("{} {} is in force instead", asked.name, difference.effective);
        match rendered.planned_at(asked.line).filter(|_| asked.file == file) {
            Some(directive) => found.push((directive, sentence)),
            None => notes.push(format!("{} {} of the machine's configuration: {sentence}", asked.name, asked.value)),
        }
    }
    found
}

/// The first of them is an error, unless the variant allows this very difference; then it is a note.
pub(crate) fn accept(
    found: Vec<(&Directive, String)>,
    variant: &Variant,
    plan: &Path,
    notes: &mut Vec<String>,
) -> Result<(), ServerError> {
    for (directive, sentence) in found {
        let note = format!("{}: {sentence}", directive.text.trim());
        if !variant.allow_warnings.iter().any(|allowed| note.contains(allowed.as_str())) {
            return Err(blame(plan, directive, sentence, SERVER));
        }
        notes.push(note);
    }
    Ok(())
}
