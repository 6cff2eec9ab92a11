//! What the TOML parser complains about, in the words of somebody who writes plans, with the key read off the line it points at.

use super::source::Source;
use super::{PlanError, names};
use crate::mistyped;
use toml::de::Error;

impl Source<'_> {
    /// TOML's own message, translated.
    pub(super) fn toml_error(&self, error: &Error) -> PlanError {
        let line = error.span().map_or(1, |span| self.line(span.start));
        let of = |key, what| PlanError { file: self.file.to_owned(), line: Some(line), key, what };
        let message = error.message().trim().replace('\n', ", ");
        // A table that is missing altogether is reported at an empty place, and then no key is to blame.
        if error.span().is_none_or(|span| span.is_empty())
            && let Some(table) = quoted(&message, "missing field ")
        {
            return of(None, format!("the table `{table}` is missing"));
        }
        let text = self.text.lines().nth(line - 1).unwrap_or_default();
        let table = self
            .text
            .lines()
            .take(line)
            .filter_map(|l| l.trim().strip_prefix('[').map(|l| l.trim_matches(['[', ']']).to_owned()))
            .last();
        let key = text.split_once('=').map(|(key, _)| key.trim().to_owned()).filter(|key| !key.is_empty());
        let key = match (table, key) {
            (Some(table), Some(key)) => Some(format!("{table}.{key}")),
            (table, key) => key.or(table),
        };
        of(key, in_plain_words(&message))
    }
}

fn in_plain_words(message: &str) -> String {
    if let Some(key) = quoted(message, "unknown field ") {
        return unknown("key", key, message);
    }
    if let Some(value) = quoted(message, "unknown variant ") {
        return unknown("value", value, message);
    }
    if let Some(key) = quoted(message, "missing field ") {
        return format!("the key `{key}` is missing");
    }
    let wrong = message.strip_prefix("invalid type: ").or_else(|| message.strip_prefix("invalid value: "));
    match (message, wrong.and_then(|wrong| wrong.split_once(", expected "))) {
        (_, Some((found, wanted))) => {
            // Of the right kind and out of bounds.
            let out_of_bounds = message.starts_with("invalid value");
            format!("must be {}, not {}", wanted_in_words(wanted, out_of_bounds), found_in_words(found))
        }
        // What an enumeration says when it gets a number.
        ("wanted string or table", None) => "must be text in quotes".to_owned(),
        // After the sentence the parser lists what its grammar would take next, which helps nobody.
        _ => message.split(", expected ").next().unwrap_or(message).to_owned(),
    }
}

fn wanted_in_words(wanted: &str, out_of_bounds: bool) -> String {
    let up_to = |most: u64| if out_of_bounds { format!(" from 0 to {most}") } else { String::new() };
    match wanted {
        "u32" => format!("a whole number{}", up_to(u64::from(u32::MAX))),
        // TOML itself ends there.
        "u64" => format!("a whole number{}", up_to(i64::MAX as u64)),
        "f64" => "a number".to_owned(),
        "a string" | "path string" => "text in quotes".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a sequence" => "a list in [ ]".to_owned(),
        "a map" => "a table".to_owned(),
        structure if structure.starts_with("struct ") => "a table".to_owned(),
        other => other.to_owned(),
    }
}

fn found_in_words(found: &str) -> &str {
    match found {
        "sequence" => "a list",
        "map" => "a table",
        // `integer `3``: the value speaks for itself.
        _ => found.find(['`', '"']).map_or(found, |at| &found[at..]),
    }
}

/// A name that is not known, with the one that was probably meant, or all that there are.
fn unknown(kind: &str, name: &str, message: &str) -> String {
    let known: Vec<String> = message
        .split_once(", expected ")
        .map(|(_, known)| known.split('`').skip(1).step_by(2).map(str::to_owned).collect())
        .unwrap_or_default();
    match mistyped::meant(name, &known, mistyped::ALIKE, |known| known) {
        Some(nearest) => format!("unknown {kind} `{name}`; did you mean `{nearest}`?"),
        None if known.is_empty() => format!("unknown {kind} `{name}`"),
        None => format!("unknown {kind} `{name}`; there is {}", names(known.iter())),
    }
}

/// What stands in backquotes right behind `words`.
fn quoted<'a>(message: &'a str, words: &str) -> Option<&'a str> {
    message.strip_prefix(words)?.strip_prefix('`')?.split('`').next()
}
