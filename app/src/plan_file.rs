//! Reading a plan's file: what is not one is said with what to do about it.

use anyhow::{anyhow, bail};
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
        ErrorKind::NotFound => anyhow!("there is no plan {shown}; {}", instead(Path::new(USUAL))),
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

/// What else to try: the plans in a folder, or what a plan is.
fn instead(folder: &Path) -> String {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut plans: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    plans.retain(|path| path.extension().is_some_and(|ending| ending == "toml"));
    // The one that is written to be the first comes first.
    plans.sort_by_key(|path| (path.file_stem().is_none_or(|name| name != "first-look"), path.clone()));
    let names: Vec<_> = plans.iter().map(|path| path.display().to_string()).collect();
    match names.as_slice() {
        [] => "give the path of a plan, which is a TOML file".to_owned(),
        [one] => format!("{one} is one"),
        [first, rest @ ..] => format!("{first} is one to begin with, and there is {}", rest.join(", ")),
    }
}
