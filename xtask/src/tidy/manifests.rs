//! Rules about `Cargo.toml`: who may depend on whom, and under which lints.

use super::tree::{Entry, Member, Tree, entries};
use super::{Violation, markdown, violation};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const ARCHITECTURE: &str = "ARCHITECTURE.md";

/// The crate that only tests may use.
const TESTKIT: &str = "testkit";

/// The tables of a manifest that name dependencies, and whether they are for tests only.
const DEPENDENCIES: [(&str, bool); 3] =
    [("dependencies", false), ("build-dependencies", false), ("dev-dependencies", true)];

/// Lints that the rules of ARCHITECTURE.md lean on.
const NEEDED_LINTS: [(&str, &str); 8] = [
    ("rust", "missing_docs"),
    ("clippy", "dbg_macro"),
    ("clippy", "print_stderr"),
    ("clippy", "print_stdout"),
    ("clippy", "todo"),
    ("clippy", "undocumented_unsafe_blocks"),
    ("clippy", "unimplemented"),
    ("clippy", "unwrap_used"),
];

/// A dependency of a member, one of ours or not.
pub(super) struct Dependency<'a> {
    pub(super) member: &'a str,
    pub(super) manifest: &'a Path,
    pub(super) for_tests: bool,
    pub(super) entry: Entry,
}

/// Everything that members depend on; a manifest that cannot be read contributes nothing (see [`names`]).
pub(super) fn dependencies(tree: &Tree) -> Vec<Dependency<'_>> {
    let mut found = Vec::new();
    for Member { name, manifest, text } in tree.members() {
        for (table, for_tests) in DEPENDENCIES {
            for entry in entries(text, table).unwrap_or_default() {
                found.push(Dependency { member: name, manifest, for_tests, entry });
            }
        }
    }
    found
}

/// Only the edges in the table of ARCHITECTURE.md exist, and the table knows every crate. `testkit` is for tests, of any crate.
/// `anyhow` is for `app` and `xtask`.
pub(super) fn edges(tree: &Tree) -> Vec<Violation> {
    let Some((file, text)) = tree.file(ARCHITECTURE) else {
        return vec![violation(Path::new(ARCHITECTURE), 1, "missing; it holds the table of crates and their edges")];
    };
    let mut allowed: BTreeMap<&str, (usize, BTreeSet<&str>)> = BTreeMap::new();
    for row in markdown::rows(text, "crate") {
        let [name, uses, ..] = row.cells.as_slice() else { continue };
        for name in markdown::code_words(name) {
            allowed.insert(name, (row.line, markdown::code_words(uses).collect()));
        }
    }
    let members: Vec<Member<'_>> = tree.members().collect();
    let mut found = Vec::new();
    for (name, (line, uses)) in &allowed {
        for word in uses.iter().chain([name]).filter(|word| members.iter().all(|member| member.name != **word)) {
            found.push(violation(file, *line, format!("there is no crate `{word}`; correct the table")));
        }
    }
    for member in members.iter().filter(|member| !allowed.contains_key(member.name)) {
        found.push(violation(member.manifest, 1, format!("`{}` is not in the table of {ARCHITECTURE}", member.name)));
    }
    for Dependency { member, manifest, for_tests, entry } in dependencies(tree) {
        let key = entry.key.as_str();
        if key == "anyhow" && !matches!(member, "app" | "xtask") {
            found.push(violation(
                manifest,
                entry.line,
                "`anyhow` is for `app` and `xtask`; a library has its own error type",
            ));
        }
        let is_edge = allowed.get(member).is_some_and(|(_, uses)| uses.contains(key));
        if !members.iter().any(|member| member.name == key) || is_edge || (for_tests && key == TESTKIT) {
            continue;
        }
        let what = if key == TESTKIT {
            format!("`{TESTKIT}` is for tests; move it to [dev-dependencies]")
        } else {
            format!("`{member}` may not depend on `{key}`; {ARCHITECTURE} lists the edges")
        };
        found.push(violation(manifest, entry.line, what));
    }
    found
}

/// A manifest is TOML, and a crate is called like its folder.
pub(super) fn names(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    for Member { name, manifest, text } in tree.members() {
        match entries(text, "package") {
            Err((line, what)) => found.push(violation(manifest, line, what)),
            Ok(package) => {
                for entry in package.iter().filter(|entry| entry.key == "name" && name != "app") {
                    if entry.text.as_deref() != Some(name) {
                        found.push(violation(manifest, entry.line, format!("name it like its folder, `{name}`")));
                    }
                }
            }
        }
    }
    found
}

/// The workspace's lints are on, in every crate.
pub(super) fn lints(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    for Member { manifest, text, .. } in tree.members() {
        let lints = entries(text, "lints").unwrap_or_default();
        if !lints.iter().any(|entry| entry.key == "workspace") {
            found.push(violation(manifest, 1, "write `[lints]` and `workspace = true`"));
        }
    }
    let Some((file, text)) = tree.file("Cargo.toml") else {
        return found;
    };
    for (table, lint) in NEEDED_LINTS {
        let lints = entries(text, &format!("workspace.lints.{table}")).unwrap_or_default();
        match lints.iter().find(|entry| entry.key == lint) {
            Some(entry) if entry.text.as_deref() == Some("allow") => {
                found.push(violation(file, entry.line, format!("`{lint}` must warn")));
            }
            Some(_) => {}
            None => found.push(violation(file, 1, format!("[workspace.lints.{table}] must have `{lint}`"))),
        }
    }
    found
}

/// Everything comes from the registry, at a version the lock file pins.
pub(super) fn no_git(tree: &Tree) -> Vec<Violation> {
    let from_root = tree.file("Cargo.toml").into_iter().flat_map(|(file, text)| {
        let tables = ["workspace.dependencies", "patch.crates-io"];
        let entries = tables.into_iter().flat_map(|table| entries(text, table).unwrap_or_default());
        entries.map(move |entry| (file, entry))
    });
    from_root
        .chain(dependencies(tree).into_iter().map(|dependency| (dependency.manifest, dependency.entry)))
        .filter(|(_, entry)| entry.inner.iter().any(|key| key == "git"))
        .map(|(file, entry)| violation(file, entry.line, "no `git =`; use a release from the registry"))
        .collect()
}

/// A crate names only dependencies that its code names too, and the workspace only those that a crate names.
pub(super) fn only_used(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    let dependencies = dependencies(tree);
    for Dependency { member, manifest, entry, .. } in &dependencies {
        let word = entry.key.replace('-', "_");
        let folder = manifest.parent().unwrap_or(manifest);
        if !tree.rust().any(|(path, text)| path.starts_with(folder) && has_word(text, &word)) {
            found.push(violation(manifest, entry.line, format!("`{member}` does not use `{}`; remove it", entry.key)));
        }
    }
    let Some((file, text)) = tree.file("Cargo.toml") else {
        return found;
    };
    for entry in entries(text, "workspace.dependencies").unwrap_or_default() {
        if !dependencies.iter().any(|dependency| dependency.entry.key == entry.key) {
            found.push(violation(file, entry.line, format!("no crate uses `{}`; remove it", entry.key)));
        }
    }
    found
}

/// Whether `text` has `word` with no letter, digit or underscore beside it.
pub(super) fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word)
        .any(|(at, _)| !text[..at].ends_with(is_part) && !text[at + word.len()..].starts_with(is_part))
}
