//! Where servers tell of their admission, and what they tell.

use anyhow::{Context, ensure};
use model::admission::{Admission, VERSION};
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
    files.iter().map(|file| read(file)).collect()
}

/// The one that is meant.
pub(crate) fn one(file: Option<&Path>) -> anyhow::Result<Found> {
    let mut found = all(file)?;
    let files: Vec<String> = found.iter().map(|found| found.file.display().to_string()).collect();
    ensure!(found.len() == 1, "several servers tell of their admission: name one by --file: {}", files.join(", "));
    Ok(found.remove(0))
}

/// Reads one. The file is replaced as a whole each second, so that it is never seen half written.
pub(crate) fn read(file: &Path) -> anyhow::Result<Found> {
    let text = match fs::read_to_string(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let what = format!("{} is not there; is mod_admission loaded and the server running?", file.display());
            return Err(NoServer(what).into());
        }
        text => text.with_context(|| format!("cannot read {}", file.display()))?,
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
