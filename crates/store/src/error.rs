//! What can go wrong with a store, each as one line: which file, what, and what to do.

use crate::schema;
use rusqlite::ErrorCode;
use std::path::{Path, PathBuf};

/// A store that could not be opened, read or written.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", path.display())]
pub struct StoreError {
    /// The store's file.
    pub(crate) path: PathBuf,
    // Not a source: it stands in the sentence already.
    pub(crate) problem: Problem,
}

/// What is wrong, and what to do.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Problem {
    #[error("cannot make the folder of the store: {0}; give --store FILE")]
    Folder(std::io::Error),
    #[error("no place for the store: neither WEBDYNO_STORE, XDG_DATA_HOME nor HOME is set; give --store FILE")]
    Homeless,
    #[error("there is no store here yet; make a run with `webdyno run PLAN`, or give --store FILE")]
    Absent,
    #[error("not a webdyno store; give another file with --store FILE")]
    NotAStore,
    #[error("the store has version {found}, this webdyno knows {}; use a newer webdyno", schema::VERSION)]
    Newer { found: i64 },
    #[error("disk full, nothing of this was saved; make room there or give --store FILE on another disk")]
    Full,
    #[error("its folder is closed to you: {0}; check who owns it, or give --store FILE")]
    Closed(std::io::Error),
    #[error("the store can only be read, not written; check who owns it, or give --store FILE")]
    ReadOnly,
    #[error("cannot be opened; check that it is a file and that you may read and write it, or give --store FILE")]
    CannotOpen,
    #[error(
        "the disk does not take what is written, or does not give what is stored ({0}); look into the kernel's log (dmesg) and at the disk, or give --store FILE on another one"
    )]
    Disk(String),
    #[error("another webdyno is writing to the store; try again")]
    Busy,
    #[error("no run `{0}`; `webdyno runs` lists them")]
    NoRun(String),
    #[error("the store holds no run yet; make one with `webdyno run PLAN`")]
    Empty,
    #[error("more than one run begins with `{wanted}`: {}; give more of the id", ids.join(", "))]
    Ambiguous { wanted: String, ids: Vec<String> },
    #[error("`{0}` was imported, so it is no run of webdyno; `webdyno report {0}` shows it")]
    Imported(String),
    #[error("`{0}` is a recording of a watch, no run; `webdyno watch --replay {0}` shows it")]
    Recorded(String),
    #[error("`{0}` is no recording of a watch; `webdyno report {0}` shows it")]
    NotRecorded(String),
    #[error("the store holds no recording yet; `webdyno watch --record` makes one")]
    NoRecording,
    #[error("`{0}` is of a kind that this webdyno does not know; use a newer webdyno")]
    UnknownKind(String),
    #[error("a run `{0}` is already there")]
    Taken(String),
    #[error("what is stored cannot be read: {0}")]
    Damaged(String),
    #[error("cannot pack what is to be stored: {0}")]
    Pack(std::io::Error),
    #[error("{0}")]
    Sqlite(rusqlite::Error),
}

/// With less room than this, what SQLite calls an error of the disk is want of room: it makes files beside the store's, and does not tell
/// why it could not.
const ROOM: u64 = 256 << 10;

impl StoreError {
    pub(crate) fn new(path: &Path, problem: Problem) -> StoreError {
        let is_full =
            matches!(problem, Problem::Disk(_) | Problem::CannotOpen) && room(path).is_some_and(|room| room < ROOM);
        StoreError { path: path.to_owned(), problem: if is_full { Problem::Full } else { problem } }
    }
}

/// Bytes that may still be written where the store is.
fn room(path: &Path) -> Option<u64> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    rustix::fs::statvfs(folder).ok().map(|facts| facts.f_bavail.saturating_mul(facts.f_frsize))
}

impl From<rusqlite::Error> for Problem {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => Problem::NotAStore,
            Some(ErrorCode::DiskFull) => Problem::Full,
            Some(ErrorCode::ReadOnly) => Problem::ReadOnly,
            Some(ErrorCode::CannotOpen) => Problem::CannotOpen,
            Some(ErrorCode::SystemIoFailure) => Problem::Disk(error.to_string()),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Problem::Busy,
            Some(ErrorCode::DatabaseCorrupt) => Problem::Damaged("the file is damaged; restore it from a copy".into()),
            _ => Problem::Sqlite(error),
        }
    }
}
