//! The text of the checkout, read once: Rust files, manifests, and the documents that hold rules.

use anyhow::Context;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use toml::de::DeTable;

/// What the rules look at.
pub(super) struct Tree {
    /// Every other file the rules know, by path from the root; absent files are absent here.
    files: BTreeMap<PathBuf, String>,
    /// Every folder of the project's own, by path from the root.
    pub(super) folders: Vec<PathBuf>,
}

/// A member of the workspace.
pub(super) struct Member<'a> {
    /// Its folder's name: how ARCHITECTURE.md calls it.
    pub(super) name: &'a str,
    pub(super) manifest: &'a Path,
    pub(super) text: &'a str,
}

/// A line of Rust that is neither a comment nor part of a test.
pub(super) struct CodeLine<'a> {
    pub(super) file: &'a Path,
    pub(super) number: usize,
    pub(super) text: &'a str,
}

/// Never looked into: not ours, not text, or, like `fuzz`, a workspace of its own.
const OUTSIDE: [&str; 3] = ["target", "fuzz", ".git"];

const KINDS: [&str; 10] = ["rs", "toml", "md", "ftl", "c", "h", "js", "css", "html", "sh"];

impl Tree {
    pub(super) fn read(root: &Path) -> anyhow::Result<Tree> {
        let mut tree = Tree { files: BTreeMap::new(), folders: Vec::new() };
        tree.add(root, Path::new(""))?;
        Ok(tree)
    }

    fn add(&mut self, root: &Path, folder: &Path) -> anyhow::Result<()> {
        let full = root.join(folder);
        for entry in fs::read_dir(&full).with_context(|| format!("cannot list {}", full.display()))? {
            let entry = entry.with_context(|| format!("cannot list {}", full.display()))?;
            let path = folder.join(entry.file_name());
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                if !OUTSIDE.iter().any(|name| path == Path::new(name)) {
                    self.add(root, &path)?;
                    self.folders.push(path);
                }
            } else if path.extension().is_some_and(|kind| KINDS.iter().any(|known| kind == *known)) {
                let text =
                    fs::read_to_string(entry.path()).with_context(|| format!("cannot read {}", path.display()))?;
                self.files.insert(path, text);
            }
        }
        Ok(())
    }

    /// The text of a file that may be missing.
    pub(super) fn file(&self, path: &str) -> Option<(&Path, &str)> {
        self.files.get_key_value(Path::new(path)).map(|(path, text)| (path.as_path(), text.as_str()))
    }

    /// All files, in order of path.
    pub(super) fn files(&self) -> impl Iterator<Item = (&Path, &str)> {
        self.files.iter().map(|(path, text)| (path.as_path(), text.as_str()))
    }

    /// All Rust files.
    pub(super) fn rust(&self) -> impl Iterator<Item = (&Path, &str)> {
        self.files().filter(|(path, _)| path.extension().is_some_and(|kind| kind == "rs"))
    }

    /// All C files of the modules for servers.
    pub(super) fn c_of_modules(&self) -> impl Iterator<Item = (&Path, &str)> {
        let is_c = |path: &Path| path.extension().is_some_and(|kind| kind == "c" || kind == "h");
        self.files().filter(move |(path, _)| path.starts_with("modules") && is_c(path))
    }

    /// `app`, `xtask` and the crates.
    pub(super) fn members(&self) -> impl Iterator<Item = Member<'_>> {
        self.files().filter_map(|(manifest, text)| {
            let folder = manifest.parent().filter(|_| manifest.ends_with("Cargo.toml"))?;
            let is_member = match folder.parent()?.to_str()? {
                "" => matches!(folder.to_str(), Some("app" | "xtask")),
                parent => parent == "crates",
            };
            let name = folder.file_name()?.to_str()?;
            is_member.then_some(Member { name, manifest, text })
        })
    }

    /// The Rust code that users run: no comments, no tests, neither `testkit` nor `xtask`.
    pub(super) fn product_code(&self) -> impl Iterator<Item = CodeLine<'_>> {
        self.rust()
            .filter(|(path, _)| !path.starts_with("xtask") && !path.starts_with("crates/testkit") && !is_test(path))
            .flat_map(|(file, text)| {
                let tests = text.find("\n#[cfg(test)]\nmod ").unwrap_or(text.len());
                text[..tests].lines().enumerate().map(move |(i, text)| CodeLine { file, number: i + 1, text })
            })
            .filter(|line| !line.text.trim_start().starts_with("//"))
    }
}

/// Whether a whole file is tests.
fn is_test(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == "tests") || path.file_stem().is_some_and(|stem| stem == "tests")
}

/// The line, from 1, of a byte offset.
pub(super) fn line(text: &str, offset: usize) -> usize {
    text.as_bytes()[..offset.min(text.len())].iter().filter(|byte| **byte == b'\n').count() + 1
}

/// A key of a table of a manifest and what it is set to.
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) line: usize,
    /// Keys of the value, when it is a table.
    pub(super) inner: Vec<String>,
    /// The value, when it is text.
    pub(super) text: Option<String>,
}

/// The entries of a table such as `workspace.lints.clippy`; none when the table is missing.
///
/// # Errors
/// When the text is not TOML.
pub(super) fn entries(text: &str, table: &str) -> Result<Vec<Entry>, (usize, String)> {
    let parsed = DeTable::parse(text)
        .map_err(|error| (line(text, error.span().map_or(0, |span| span.start)), error.message().to_owned()))?;
    let mut at = parsed.get_ref();
    for part in table.split('.') {
        match at.get(part).and_then(|value| value.get_ref().as_table()) {
            Some(inner) => at = inner,
            None => return Ok(Vec::new()),
        }
    }
    let entry = |(key, value): (&toml::Spanned<toml::de::DeString<'_>>, &toml::Spanned<toml::de::DeValue<'_>>)| Entry {
        key: key.get_ref().to_string(),
        line: line(text, key.span().start),
        inner: value
            .get_ref()
            .as_table()
            .map(|t| t.keys().map(|key| key.get_ref().to_string()).collect())
            .unwrap_or_default(),
        text: value.get_ref().as_str().map(str::to_owned),
    };
    Ok(at.iter().map(entry).collect())
}
