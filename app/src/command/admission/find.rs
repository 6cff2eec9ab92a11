//! Where servers tell of their admission, and what they tell.

use super::plain;
use crate::say::{tell, with_causes};
use anyhow::{Context, ensure};
use model::admission::{Admission, VERSION};
use report::admission::is_stale;
use serde_json::Value;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Below a server's run-time folder.
const STATUS: &str = "admission/status.json";
/// Folders with run-time folders of servers. `/var/run` is a link to `/run` nearly everywhere.
const RUN: [&str; 2] = ["run", "var/run"];
/// How run-time folders begin; Debian names those of further instances `apache2-NAME`.
const SERVERS: [&str; 2] = ["apache2", "httpd"];
/// The run-time folder of an httpd that was built from its source.
const BUILT: &str = "usr/local/apache2/logs";

/// A longer status is none.
const MOST: u64 = 16 << 20;

/// A server's status.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub(crate) file: PathBuf,
    pub(crate) status: Admission,
    /// The same with what this version does not know.
    pub(crate) facts: Value,
}

/// Nobody tells anything.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct NoServer(String);

/// The status of that file, or of every server in the usual places.
pub(crate) fn all(file: Option<&Path>) -> anyhow::Result<Vec<Found>> {
    if let Some(file) = file {
        return Ok(vec![read(file)?]);
    }
    let files = usual(Path::new("/"));
    if files.is_empty() {
        let what = "no server here tells of its admission: there is no admission/status.json below /run/apache2, /run/httpd or their \
                    like; is mod_admission loaded and the server running? (--file PATH names one elsewhere)";
        return Err(NoServer(what.to_owned()).into());
    }
    told_well(&files)
}

/// Of several servers, one that tells nothing sensible does not keep the others from being seen.
fn told_well(files: &[PathBuf]) -> anyhow::Result<Vec<Found>> {
    let mut found = Vec::new();
    let mut errors = Vec::new();
    for file in files {
        match read(file) {
            Ok(one) => found.push(one),
            Err(error) => errors.push(error),
        }
    }
    if found.is_empty() && !errors.is_empty() {
        return Err(errors.remove(0));
    }
    errors.iter().for_each(|error| tell(with_causes(error)));
    Ok(found)
}

/// The one that is meant.
pub(crate) fn one(file: Option<&Path>) -> anyhow::Result<Found> {
    the_one(all(file)?, now())
}

/// A server that was stopped leaves its status behind: those that run come first.
fn the_one(found: Vec<Found>, clock: f64) -> anyhow::Result<Found> {
    let (gone, alive): (Vec<Found>, Vec<Found>) = found.into_iter().partition(|found| is_stale(&found.status, clock));
    let mut found = if alive.is_empty() { gone } else { alive };
    let files: Vec<String> = found.iter().map(|found| found.file.display().to_string()).collect();
    ensure!(found.len() == 1, "several servers tell of their admission: name one by --file: {}", files.join(", "));
    Ok(found.remove(0))
}

/// Reads one. The file is replaced as a whole each second, so that it is never seen half written.
pub(crate) fn read(file: &Path) -> anyhow::Result<Found> {
    let Some((text, _)) = plain::read(file, MOST)? else {
        let what = format!("{} is not there; is mod_admission loaded and the server running?", file.display());
        return Err(NoServer(what).into());
    };
    let facts: Value =
        serde_json::from_str(&text).with_context(|| format!("{} is no status of mod_admission", file.display()))?;
    let version = facts.get("version").and_then(Value::as_u64);
    ensure!(
        version == Some(u64::from(VERSION)),
        "{} is of another version of mod_admission's status ({}) than this webdyno reads ({VERSION})",
        file.display(),
        version.map_or_else(|| "none".to_owned(), |version| version.to_string()),
    );
    ensure!(
        facts.get("budget") != Some(&Value::Null),
        "{} is of a server that limits nothing: no group is configured, or there was no shared memory (ADM0010 in its error log)",
        file.display(),
    );
    let status = serde_json::from_value(facts.clone())
        .with_context(|| format!("{} is no status of mod_admission", file.display()))?;
    Ok(Found { file: file.to_owned(), status, facts })
}

/// The files in the usual places, each once.
pub(crate) fn usual(root: &Path) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for run in RUN {
        let entries = fs::read_dir(root.join(run)).into_iter().flatten().flatten();
        let of_a_server =
            |name: &str| SERVERS.iter().any(|server| name == *server || name.starts_with(&format!("{server}-")));
        let mut found: Vec<PathBuf> = entries
            .filter(|entry| entry.file_name().to_str().is_some_and(of_a_server))
            .map(|entry| entry.path())
            .collect();
        found.sort();
        folders.append(&mut found);
    }
    folders.push(root.join(BUILT));
    let mut seen = Vec::new();
    let mut files = Vec::new();
    for file in folders.into_iter().map(|folder| folder.join(STATUS)) {
        // A folder that we may not look into is left to `read`, which says so.
        let there = match fs::metadata(&file) {
            Ok(_) => true,
            Err(error) => error.kind() == ErrorKind::PermissionDenied,
        };
        let same = fs::canonicalize(&file).unwrap_or_else(|_| file.clone());
        if there && !seen.contains(&same) {
            seen.push(same);
            files.push(file);
        }
    }
    files
}

/// Seconds since 1970.
pub(crate) fn now() -> f64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_places_are_looked_at_once_each() {
        let root = tempfile::tempdir().unwrap();
        let place = |folder: &str| {
            let folder = root.path().join(folder).join("admission");
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("status.json"), "{}").unwrap();
        };
        ["run/apache2", "run/apache2-blog", "run/apache2x", "run/httpd", "usr/local/apache2/logs"]
            .into_iter()
            .for_each(place);
        fs::create_dir_all(root.path().join("var")).unwrap();
        std::os::unix::fs::symlink("../run", root.path().join("var/run")).unwrap();
        let found = usual(root.path());
        let found: Vec<_> =
            found.iter().map(|file| file.strip_prefix(root.path()).unwrap().display().to_string()).collect();
        let expected = ["run/apache2", "run/apache2-blog", "run/httpd", "usr/local/apache2/logs"];
        assert_eq!(found, expected.map(|folder| format!("{folder}/admission/status.json")));
        assert_eq!(usual(&root.path().join("nowhere")), Vec::<PathBuf>::new());
    }

    fn golden(folder: &Path, name: &str, written: f64) -> PathBuf {
        let text = include_str!("../../../../modules/mod_admission/tests/golden/status.json");
        let mut facts: Value = serde_json::from_str(text).unwrap();
        facts["written"] = written.into();
        let file = folder.join(name);
        fs::write(&file, facts.to_string()).unwrap();
        file
    }

    #[test]
    fn a_bad_server_does_not_hide_a_good_one() {
        let folder = tempfile::tempdir().unwrap();
        let good = golden(folder.path(), "good", 100.0);
        let bad = folder.path().join("bad");
        fs::write(&bad, "{").unwrap();
        let found = told_well(&[bad.clone(), good.clone()]).unwrap();
        assert_eq!(found.iter().map(|found| &found.file).collect::<Vec<_>>(), [&good]);
        assert!(told_well(&[bad]).is_err());
    }

    #[test]
    fn a_server_that_limits_nothing_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = golden(folder.path(), "none", 100.0);
        let mut facts: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        facts["budget"] = Value::Null;
        fs::write(&file, facts.to_string()).unwrap();
        assert!(read(&file).unwrap_err().to_string().contains("limits nothing"));
    }

    #[test]
    fn a_server_that_runs_is_meant_before_one_that_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str, written: f64| read(&golden(folder.path(), name, written)).unwrap();
        let (old, new, also) = (at("old", 10.0), at("new", 100.0), at("also", 99.0));
        assert_eq!(the_one(vec![old.clone(), new.clone()], 101.0).unwrap().file, new.file);
        assert_eq!(the_one(vec![old.clone()], 101.0).unwrap().file, old.file);
        let error = the_one(vec![old, new, also], 101.0).unwrap_err().to_string();
        assert!(error.contains("several servers") && !error.contains("old"), "{error}");
    }

    #[test]
    fn what_is_no_status_is_told_in_a_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("status.json");
        let check = |text: &str, expected: &str| {
            fs::write(&file, text).unwrap();
            let error = format!("{:#}", read(&file).unwrap_err());
            assert!(error.contains(expected), "{error}");
        };
        check("{", "is no status of mod_admission");
        check("{\"version\":2}", "is of another version of mod_admission's status (2) than this webdyno reads (1)");
        check("{\"version\":1}", "is no status of mod_admission: missing field");
        fs::remove_file(&file).unwrap();
        assert!(read(&file).unwrap_err().is::<NoServer>());
    }
}
