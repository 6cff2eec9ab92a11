//! Rules about documents that must keep up with the code.

use super::manifests::dependencies as dependencies_of_members;
use super::tree::{Tree, entries, line};
use super::{Violation, markdown, violation};
use std::collections::BTreeSet;
use std::path::Path;

const DEPENDENCIES: &str = "docs/decisions/dependencies.md";
const PLAN_REFERENCE: &str = "docs/plan-reference.md";
const PLAN_TEXT: &str = "crates/model/src/plan/text.rs";
/// The parts of it that know keys of their own.
const PLAN_PARTS: [&str; 13] = [
    "crates/model/src/plan/text/cells.rs",
    "crates/model/src/plan/text/changes.rs",
    "crates/model/src/plan/text/confine.rs",
    "crates/model/src/plan/text/contrasts.rs",
    "crates/model/src/plan/text/ending.rs",
    "crates/model/src/plan/text/factors.rs",
    "crates/model/src/plan/text/load.rs",
    "crates/model/src/plan/text/memory.rs",
    "crates/model/src/plan/text/php.rs",
    "crates/model/src/plan/text/server.rs",
    "crates/model/src/plan/text/services.rs",
    "crates/model/src/plan/text/sweep.rs",
    "crates/model/src/plan/text/users.rs",
];
const DIAGNOSIS: &str = "docs/diagnosis.md";
const CAUSES: &str = "crates/diagnosis/src/cause.rs";

/// The table of dependencies has a row with a reason for every external crate, and no other row.
pub(super) fn dependencies(tree: &Tree) -> Vec<Violation> {
    let Some((file, text)) = tree.file(DEPENDENCIES) else {
        return vec![violation(Path::new(DEPENDENCIES), 1, "missing; it says why each external crate is here")];
    };
    let ours: BTreeSet<&str> = tree.members().map(|member| member.name).collect();
    let used = dependencies_of_members(tree).into_iter().map(|dependency| (dependency.manifest, dependency.entry));
    let root = tree.file("Cargo.toml").into_iter().flat_map(|(file, text)| {
        entries(text, "workspace.dependencies").unwrap_or_default().into_iter().map(move |entry| (file, entry))
    });
    let external: Vec<_> = root.chain(used).filter(|(_, entry)| !ours.contains(entry.key.as_str())).collect();
    let mut found = Vec::new();
    let mut known = BTreeSet::new();
    for row in markdown::rows(text, "crate") {
        for name in markdown::code_words(row.cells[0]) {
            if !external.iter().any(|(_, entry)| entry.key == name) {
                found.push(violation(file, row.line, format!("nothing uses `{name}` any more; remove the row")));
            }
            if row.cells.get(1).is_none_or(|why| why.is_empty()) {
                found.push(violation(file, row.line, format!("say why `{name}` is here")));
            }
            known.insert(name.to_owned());
        }
    }
    for (manifest, entry) in external {
        if known.insert(entry.key.clone()) {
            found.push(violation(manifest, entry.line, format!("`{}` has no row in {DEPENDENCIES}", entry.key)));
        }
    }
    found
}

/// The reference of plans has a row for every key that the parser knows, under its table's heading, and no other row.
pub(super) fn plan_keys(tree: &Tree) -> Vec<Violation> {
    let (Some((source, code)), Some((file, text))) = (tree.file(PLAN_TEXT), tree.file(PLAN_REFERENCE)) else {
        return vec![violation(
            Path::new(PLAN_REFERENCE),
            1,
            format!("missing, or {PLAN_TEXT} is; they belong together"),
        )];
    };
    let rows = markdown::rows(text, "key");
    let written: Vec<(&str, &str, usize)> = rows
        .iter()
        .flat_map(|row| markdown::code_words(row.cells[0]).map(|key| (table(row.heading), key, row.line)))
        .collect();
    let mut known: Vec<_> = keys(code).into_iter().map(|key| (source, key)).collect();
    for (source, code) in PLAN_PARTS.iter().filter_map(|part| tree.file(part)) {
        known.extend(keys(code).into_iter().map(|key| (source, key)));
    }
    let mut found = Vec::new();
    for (source, (table, key, line)) in &known {
        if !written.iter().any(|(t, k, _)| t == table && k == key) {
            let what = format!("`{key}` of `{}` is not in {PLAN_REFERENCE}", shown(table));
            found.push(violation(source, *line, what));
        }
    }
    for (table, key, line) in written {
        if !known.iter().any(|(_, (t, k, _))| t == table && k == key) {
            let what = format!("a plan has no key `{key}` in `{}`; see {PLAN_TEXT}", shown(table));
            found.push(violation(file, line, what));
        }
    }
    found
}

/// The page on diagnoses has a row for every cause, by its id, and no other row.
pub(super) fn causes(tree: &Tree) -> Vec<Violation> {
    let (Some((source, code)), Some((file, text))) = (tree.file(CAUSES), tree.file(DIAGNOSIS)) else {
        return vec![violation(Path::new(DIAGNOSIS), 1, format!("missing, or {CAUSES} is; they belong together"))];
    };
    let known: Vec<(&str, usize)> = code
        .lines()
        .enumerate()
        .flat_map(|(i, line)| line.split('"').filter(|word| word.starts_with("cause-")).map(move |id| (id, i + 1)))
        .collect();
    let rows = markdown::rows(text, "cause");
    let written: Vec<(&str, usize)> =
        rows.iter().flat_map(|row| markdown::code_words(row.cells[0]).map(|id| (id, row.line))).collect();
    let missing = known.iter().filter(|(id, _)| !written.iter().any(|(other, _)| other == id));
    let stale = written.iter().filter(|(id, _)| !known.iter().any(|(other, _)| other == id));
    missing
        .map(|(id, line)| violation(source, *line, format!("`{id}` is not in {DIAGNOSIS}")))
        .chain(stale.map(|(id, line)| violation(file, *line, format!("there is no cause `{id}`; see {CAUSES}"))))
        .collect()
}

fn shown(table: &str) -> &str {
    if table.is_empty() { "the top level" } else { table }
}

/// The table that a heading such as "`[load.NAME]`: what is sent" is about; empty for the top level.
fn table(heading: &str) -> &str {
    let word = markdown::code_words(heading).next().unwrap_or_default().trim_matches(['[', ']']);
    word.split('.').next().unwrap_or_default()
}

/// `AccessLog` as a plan writes it: `access_log`.
fn as_key(name: &str) -> String {
    let mut key = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !key.is_empty() {
            key.push('_');
        }
        key.push(letter.to_ascii_lowercase());
    }
    key
}

/// Table, key and line of every key that the parser's structures accept: fields of `Written` are the top level, those of
/// `LoadText` the table `load`. Fields that are themselves such a structure are tables, not keys.
fn keys(code: &str) -> Vec<(String, String, usize)> {
    let mut found = Vec::new();
    let mut offset = 0;
    while let Some(at) = code[offset..].find("#[serde(deny_unknown_fields)]\n") {
        let start = offset + at;
        let Some(open) = code[start..].find(" {\n").map(|at| start + at) else { break };
        let end = code[open..].find("\n}").map_or(code.len(), |at| open + at);
        let name = code[start..open].rsplit(' ').next().unwrap_or_default();
        let table = name.strip_suffix("Text").map(as_key).unwrap_or_default();
        let mut renamed = None;
        for (index, text) in code[open..end].lines().enumerate() {
            let text = text.trim().trim_start_matches("pub(super) ");
            if let Some((_, rest)) = text.split_once("rename = \"") {
                renamed = rest.split('"').next();
            } else if let Some((field, kind)) = text.strip_suffix(',').and_then(|text| text.split_once(": ")) {
                let is_table = kind.trim_end_matches('>').ends_with("Text") || renamed.is_some();
                if !is_table {
                    found.push((table.clone(), field.to_owned(), line(code, open) + index));
                }
                renamed = None;
            }
        }
        offset = end;
    }
    found
}
