//! The rules of ARCHITECTURE.md that a machine can check, each one function from the tree's text to violations.
//!
//! Architecture, not taste: which crate may know which, what may print, what must be written down. Reads files only and
//! starts nothing. A document that holds a rule's data (the table of crates, of dependencies, of plan keys) is read as the
//! source of that rule, so it cannot differ from what is checked.

mod documents;
mod locales;
mod manifests;
mod markdown;
mod sources;
mod tree;

use std::fmt;
use std::path::{Path, PathBuf};
use tree::Tree;

/// A rule that does not hold somewhere.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Violation {
    /// Relative to the root.
    file: PathBuf,
    /// From 1.
    line: usize,
    /// What is wrong and what to do.
    what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file.display(), self.line, self.what)
    }
}

fn violation(file: &Path, line: usize, what: impl Into<String>) -> Violation {
    Violation { file: file.to_owned(), line, what: what.into() }
}

type Rule = fn(&Tree) -> Vec<Violation>;

const RULES: [Rule; 15] = [
    manifests::edges,
    manifests::names,
    manifests::lints,
    manifests::no_git,
    manifests::only_used,
    documents::dependencies,
    documents::plan_keys,
    documents::causes,
    sources::opening,
    sources::no_printing,
    sources::lints_stay_on,
    sources::no_drawers,
    sources::nothing_unfinished,
    sources::nothing_ignored,
    locales::same_ids,
];

/// Checks the whole checkout; the error counts what was found, after it was printed.
pub(crate) fn run() -> anyhow::Result<()> {
    let found = check(&crate::root())?;
    found.iter().for_each(|violation| println!("{violation}"));
    anyhow::ensure!(found.is_empty(), "{} violations of ARCHITECTURE.md", found.len());
    Ok(())
}

fn check(root: &Path) -> anyhow::Result<Vec<Violation>> {
    let tree = Tree::read(root)?;
    let mut found: Vec<Violation> = RULES.iter().flat_map(|rule| rule(&tree)).collect();
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests;
