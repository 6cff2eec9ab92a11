//! A sentence that exists in one language exists in all of them, with the same variables.

use super::tree::Tree;
use super::{Violation, violation};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Messages and terms by id, attributes as `id.attribute`.
type Messages<'a> = BTreeMap<String, Message<'a>>;

#[derive(Default)]
struct Message<'a> {
    line: usize,
    variables: BTreeSet<&'a str>,
}

/// All files under `locales/` have the same ids, once each, and a message uses the same `$variables` in all of them.
pub(super) fn same_ids(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut catalogues: Vec<(&Path, Messages<'_>)> = Vec::new();
    for (file, text) in tree.files().filter(|(file, _)| file.extension().is_some_and(|kind| kind == "ftl")) {
        catalogues.push((file, messages(file, text, &mut found)));
    }
    for (file, messages) in &catalogues {
        for (other, theirs) in catalogues.iter().filter(|(other, _)| other != file) {
            for (id, message) in messages {
                match theirs.get(id) {
                    None => {
                        found.push(violation(
                            file,
                            message.line,
                            format!("`{id}` is not in {}; add it", other.display()),
                        ));
                    }
                    Some(their) => {
                        for variable in message.variables.difference(&their.variables) {
                            let what = format!("`{id}` does not tell `${variable}`, as {} does", file.display());
                            found.push(violation(other, their.line, what));
                        }
                    }
                }
            }
        }
    }
    found
}

fn messages<'a>(file: &Path, text: &'a str, found: &mut Vec<Violation>) -> Messages<'a> {
    let mut messages = Messages::new();
    let mut message = "";
    let mut current = String::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.starts_with('#')) {
        if let Some(id) = id(line) {
            current = match id.trim_start().strip_prefix('.') {
                Some(attribute) => format!("{message}.{attribute}"),
                None => {
                    message = id;
                    id.to_owned()
                }
            };
            if messages.contains_key(&current) {
                found.push(violation(file, index + 1, format!("`{current}` stands here twice; remove one")));
            }
            messages.insert(current.clone(), Message { line: index + 1, ..Message::default() });
        }
        if let Some(message) = messages.get_mut(&current) {
            message.variables.extend(variables(line));
        }
    }
    messages
}

/// What a line such as `hello = ...`, `-brand = ...` or `    .title = ...` names; continuation lines name nothing.
fn id(line: &str) -> Option<&str> {
    let id = line.split_once('=')?.0.trim_end();
    let name =
        if line.starts_with(' ') { id.trim_start().strip_prefix('.')? } else { id.strip_prefix('-').unwrap_or(id) };
    let is_id = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
    is_id.then_some(id)
}

fn variables(line: &str) -> impl Iterator<Item = &str> {
    line.split('$').skip(1).map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_').unwrap_or(rest.len());
        &rest[..end]
    })
}
