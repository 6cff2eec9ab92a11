//! Reading a plan's file: what is not one is said with what to do about it.

use anyhow::{anyhow, bail};
use model::mistyped;
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Where plans usually lie, seen from where the user usually is.
const USUAL: &str = "plans";

/// The plan's text.
pub(crate) fn read(path: &Path) -> anyhow::Result<String> {
    let shown = path.display();
    if path.is_dir() {
        bail!("{shown} is a folder; {}", instead(path));
    }
    let bytes = std::fs::read(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => anyhow!("there is no plan {shown}; {}", beside(path)),
        ErrorKind::PermissionDenied => anyhow!("you may not read the plan {shown}; check who owns it and its folders"),
        kind => anyhow!("cannot read the plan {shown}: {kind}; {}", instead(Path::new(USUAL))),
    })?;
    String::from_utf8(bytes).map_err(|error| {
        let good = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..good].iter().filter(|&&byte| byte == b'\n').count() + 1;
        anyhow!("{shown}:{line}: this is not UTF-8 text; a plan is a TOML file, saved as UTF-8")
    })
}

/// The text of a file with requests, for `--mix`.
pub(crate) fn read_requests(path: &Path) -> anyhow::Result<String> {
    let bytes = read_body(path).map_err(|what| anyhow!("--mix {what}"))?;
    String::from_utf8(bytes).map_err(|_| anyhow!("{}: this is not UTF-8 text; it must be a TOML file", path.display()))
}

/// The content of a file that is sent as a body, or one sentence why not.
pub(crate) fn read_body(path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| unreadable(path, &error))
}

/// Why a file cannot be read, and what to do.
pub(crate) fn unreadable(path: &Path, error: &std::io::Error) -> String {
    let shown = path.display();
    match error.kind() {
        ErrorKind::NotFound => format!("{shown}: there is no such file; check its name and folder"),
        ErrorKind::PermissionDenied => format!("{shown}: you may not read it; check who owns it and its folders"),
        ErrorKind::IsADirectory => format!("{shown}: this is a folder; name a file in it"),
        kind => format!("{shown}: cannot be read: {kind}"),
    }
}

/// What else to try: the plan that was probably meant, or the plans of the folder that a missing one was looked for in, if there are any, else
/// those where they usually lie.
fn beside(missing: &Path) -> String {
    let is_there = |folder: &&Path| plans(folder).next().is_some();
    let folder = missing.parent().filter(is_there).unwrap_or(Path::new(USUAL));
    let here: Vec<PathBuf> = plans(folder).collect();
    let mut inner: Vec<PathBuf> = folders(folder).flat_map(|inner| plans(&inner).collect::<Vec<_>>()).collect();
    inner.sort();
    // A plan of PHP or nginx lies one folder further down.
    let meant = [here, inner].into_iter().find_map(|plans| {
        mistyped::meant(stem(missing), &plans, ALIKE, |path| stem(path)).map(|meant| meant.display().to_string())
    });
    meant.map_or_else(|| instead(folder), |meant| format!("did you mean {meant}?"))
}

/// Plans that are named on one line, at most, beside the first.
const MOST_NAMED: usize = 8;

/// From how much on a plan's name is another one mistyped: of many names one is always somewhat like any word.
const ALIKE: f64 = 0.8;

/// A plan's name without its folder and its ending.
fn stem(path: &Path) -> &str {
    path.file_stem().and_then(OsStr::to_str).unwrap_or_default()
}

fn folders(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_dir())
}

/// The files of a folder that may be plans.
fn plans(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|ending| ending == "toml"))
}

/// What else to try: the plans in a folder, or what a plan is.
fn instead(folder: &Path) -> String {
    let mut plans: Vec<PathBuf> = plans(folder).collect();
    // The one that is written to be the first comes first.
    plans.sort_by_key(|path| (path.file_stem().is_none_or(|name| name != "first-look"), path.clone()));
    let begins = plans.first().is_some_and(|path| path.file_stem().is_some_and(|name| name == "first-look"));
    let names: Vec<_> = plans.iter().map(|path| path.display().to_string()).collect();
    match names.as_slice() {
        [] => "give the path of a plan, which is a TOML file".to_owned(),
        [one] => format!("{one} is one"),
        [first, rest @ ..] if rest.len() > MOST_NAMED => {
            let others = format!("{} others in {}", rest.len(), folder.display());
            if begins {
                format!("{first} is one to begin with, and there are {others}")
            } else {
                format!("there are {first} and {others}")
            }
        }
        _ if !begins => format!("there is {}", names.join(", ")),
        [first, rest @ ..] => format!("{first} is one to begin with, and there is {}", rest.join(", ")),
    }
}
