//! What a plan says of files and kernel settings that it changes, and what that means.

use super::PlanError;
use super::source::Source;
use crate::plan::{Changes, Edit, FileChange, Sysctl};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Component, PathBuf};
use toml::Spanned;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FilesText {
    path: Spanned<PathBuf>,
    content: Option<String>,
    copy: Option<PathBuf>,
    #[serde(default)]
    replace: BTreeMap<String, String>,
    #[serde(default)]
    append: String,
    #[serde(default)]
    reload: Vec<String>,
}

/// The changes of a server or of a variant.
pub(super) fn changes_meant(
    source: &Source<'_>,
    files: Vec<Spanned<FilesText>>,
    sysctl: BTreeMap<String, Spanned<String>>,
) -> Result<Changes, PlanError> {
    let mut changes = Changes::default();
    for file in files {
        let file = file_meant(source, file)?;
        if let Some(twice) = changes.files.iter().find(|other| other.path == file.path) {
            let what = format!("line {} changes this file already; say all of it there", twice.line);
            return Err(PlanError {
                file: source.file.to_owned(),
                line: Some(file.line),
                key: Some("files.path".to_owned()),
                what,
            });
        }
        changes.files.push(file);
    }
    for (name, value) in sysctl {
        let (key, line) = (format!("sysctl.{name}"), source.line(value.span().start));
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        if name.is_empty() || !name.chars().all(plain) || name.split('.').any(str::is_empty) {
            return Err(source.at(value.span(), &key, "write its name with dots, in quotes: \"net.core.somaxconn\""));
        }
        let text = value.get_ref().trim();
        if text.is_empty() || text.contains('\n') {
            return Err(source.at(value.span(), &key, "give its value in one line"));
        }
        changes.sysctl.insert(name, Sysctl { value: text.to_owned(), line });
    }
    Ok(changes)
}

fn file_meant(source: &Source<'_>, written: Spanned<FilesText>) -> Result<FileChange, PlanError> {
    let file = written.into_inner();
    let at = |what: &str| Err(source.at(file.path.span(), "files.path", what));
    let path = file.path.get_ref();
    if !path.is_absolute() || path.components().any(|part| part == Component::ParentDir) {
        return at("give the whole path of the file, from / on");
    }
    let changed = !file.replace.is_empty() || !file.append.is_empty();
    if file.replace.keys().any(String::is_empty) {
        return at("`replace` needs a text to look for");
    }
    let edit = match (&file.content, &file.copy, changed) {
        (Some(content), None, false) => Edit::Content(content.clone()),
        (None, Some(copy), false) => Edit::Copy(source.path(copy)),
        (None, None, true) => Edit::Change { replace: file.replace.clone(), append: file.append.clone() },
        (None, None, false) => return at("say what becomes of it: `content`, `copy`, `replace` or `append`"),
        _ => return at("give `content`, or `copy`, or `replace` and `append`: not several of them"),
    };
    Ok(FileChange { path: path.clone(), edit, reload: file.reload.clone(), line: source.line(file.path.span().start) })
}
