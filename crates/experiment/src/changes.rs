//! What a plan changes on the machine beside its server: files of others and settings of the kernel, each variant its own. The host's
//! journal gives all of it back.

use crate::ExperimentError;
use host::{Borrowed, BorrowedSysctl, Host};
use model::plan::{Changes, Edit, FileChange, Plan, Variant};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// All files and settings that some variant changes.
pub(crate) struct Changer<'a> {
    host: &'a Host,
    files: Vec<(Borrowed, Planned)>,
    sysctl: Vec<(String, BorrowedSysctl)>,
    /// Whose content the files have by now.
    now: Mutex<Option<String>>,
}

/// A file and what it becomes.
struct Planned {
    path: PathBuf,
    /// By variant; none where the file stays as it is.
    contents: BTreeMap<String, Vec<u8>>,
    reload: Vec<Vec<String>>,
}

/// Finds out what would be wrong with the changes; changes nothing.
pub(crate) fn check(plan: &Plan) -> Result<(), ExperimentError> {
    planned(plan).map(|_| ())
}

impl<'a> Changer<'a> {
    /// Journals everything; what the machine refuses it refuses now.
    pub(crate) fn take(plan: &Plan, host: &'a Host) -> Result<Changer<'a>, ExperimentError> {
        let mut files = Vec::new();
        for file in planned(plan)? {
            let contents: Vec<Vec<u8>> = file.contents.values().cloned().collect();
            files.push((host.borrow_file(&file.path, Some(&contents))?, file));
        }
        let mut values: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, setting) in plan.variants.iter().flat_map(|variant| of(plan, variant).sysctl) {
            values.entry(name).or_default().push(setting.value);
        }
        let borrow = |(name, values): (String, Vec<String>)| Ok((name.clone(), host.borrow_sysctl(&name, &values)?));
        let sysctl = values.into_iter().map(borrow).collect::<Result<_, ExperimentError>>()?;
        Ok(Changer { host, files, sysctl, now: Mutex::new(None) })
    }

    /// Makes the changes of a variant, and undoes those of the one before.
    pub(crate) fn apply(&self, plan: &Plan, variant: &Variant) -> Result<(), ExperimentError> {
        let mut now = self.now.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        for (file, _) in &self.files {
            file.check()?;
        }
        if now.as_ref() == Some(&variant.name) {
            return Ok(());
        }
        let wanted = of(plan, variant);
        for (name, setting) in &self.sysctl {
            setting.put(wanted.sysctl.get(name).map(|sysctl| sysctl.value.as_str()))?;
        }
        let mut tell: Vec<&Vec<String>> = Vec::new();
        for (file, planned) in &self.files {
            let content = planned.contents.get(&variant.name);
            let before = now.as_ref().and_then(|before| planned.contents.get(before));
            if content != before {
                file.put(content.map(Vec::as_slice))?;
                tell.extend(planned.reload.iter().filter(|command| !tell.contains(command)).collect::<Vec<_>>());
            }
        }
        *now = Some(variant.name.clone());
        tell.into_iter().try_for_each(|command| Ok(self.host.tell(command)?))
    }

    /// A sentence for each file whose change a crash of the machine would leave behind.
    pub(crate) fn notes(&self) -> impl Iterator<Item = String> {
        let replaced = self.files.iter().map(|(file, _)| file).filter(|file| file.outlives_the_machine());
        replaced.map(|file| {
            format!(
                "{}: nothing could be mounted over it, so it was changed itself; after a crash of the machine it stays so until \
                 `webdyno restore` or the next run",
                file.path().display()
            )
        })
    }
}

/// What is changed for a variant.
fn of(plan: &Plan, variant: &Variant) -> Changes {
    plan.changes.and(&variant.changes)
}

/// Every file that some variant changes, with what it becomes for each.
fn planned(plan: &Plan) -> Result<Vec<Planned>, ExperimentError> {
    let mut files: Vec<Planned> = Vec::new();
    for variant in &plan.variants {
        for file in of(plan, variant).files {
            let content = content(&file).map_err(|what| wrong(plan, &file, what))?;
            let index = files.iter().position(|known| known.path == file.path).unwrap_or_else(|| {
                files.push(Planned { path: file.path.clone(), contents: BTreeMap::new(), reload: Vec::new() });
                files.len() - 1
            });
            files[index].contents.insert(variant.name.clone(), content);
            if !file.reload.is_empty() && !files[index].reload.contains(&file.reload) {
                files[index].reload.push(file.reload);
            }
        }
    }
    Ok(files)
}

fn wrong(plan: &Plan, file: &FileChange, what: String) -> ExperimentError {
    ExperimentError::Plan { file: plan.file.clone(), line: file.line, key: "files", what }
}

fn content(file: &FileChange) -> Result<Vec<u8>, String> {
    let read = |path: &Path| std::fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()));
    match &file.edit {
        Edit::Content(content) => Ok(content.clone().into_bytes()),
        Edit::Copy(from) => read(from),
        Edit::Change { replace, append } => {
            let text = String::from_utf8(read(&file.path)?);
            let mut text = text.map_err(|_| format!("{} is no text; use `content` or `copy`", file.path.display()))?;
            for (old, new) in replace {
                if !text.contains(old) {
                    return Err(format!("{} does not say `{old}`; nothing would be replaced", file.path.display()));
                }
                text = text.replace(old, new);
            }
            if !append.is_empty() {
                let line_break = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
                text = format!("{text}{line_break}{append}");
            }
            Ok(text.into_bytes())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_edited() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("php.ini");
        std::fs::write(&path, "a = 1\nb = 2").unwrap();
        let check = |edit: Edit, expected: Result<&str, &str>| {
            let file = FileChange { path: path.clone(), edit, reload: Vec::new(), line: 1 };
            let got = content(&file).map(|bytes| String::from_utf8(bytes).unwrap());
            let got = got.map_err(|why| why.replace(&*dir.path().to_string_lossy(), "DIR"));
            assert_eq!(got, expected.map(str::to_owned).map_err(str::to_owned));
        };
        let change = |replace: &[(&str, &str)], append: &str| Edit::Change {
            replace: replace.iter().map(|(old, new)| ((*old).to_owned(), (*new).to_owned())).collect(),
            append: append.to_owned(),
        };
        check(change(&[("a = 1", "a = 9")], "c = 3\n"), Ok("a = 9\nb = 2\nc = 3\n"));
        check(change(&[("x", "y")], ""), Err("DIR/php.ini does not say `x`; nothing would be replaced"));
        check(Edit::Content("all".into()), Ok("all"));
        check(Edit::Copy(dir.path().join("none")), Err("cannot read DIR/none: No such file or directory (os error 2)"));
    }
}
