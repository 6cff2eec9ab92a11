//! What a private instance serves: folders of the plan that its workers may enter, or a small site of our own.

use crate::account::Account;
use crate::{Closed, PlanKey, ServerError};
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

const PAGE: &str = "<!doctype html>\n<title>webdyno</title>\n<p>A small page.\n";

/// A folder of the plan, canonical, and open to the workers.
pub(crate) fn served(at: PlanKey, folder: &Path, worker: &Account) -> Result<PathBuf, ServerError> {
    let unfit = |why: String| ServerError::NoFolder { at: at.clone(), folder: folder.to_owned(), why };
    let canonical = folder.canonicalize().map_err(|error| {
        unfit(match error.kind() {
            ErrorKind::NotFound => "does not exist".to_owned(),
            kind => format!("cannot be used: {kind}"),
        })
    })?;
    if !canonical.is_dir() {
        return Err(unfit("is not a folder".to_owned()));
    }
    match closed_to(worker, &canonical)? {
        Some(closed) => Err(ServerError::Unreadable { at, closed }),
        None => Ok(canonical),
    }
}

/// Makes a folder, or opens an existing one.
pub(crate) fn folder(path: &Path, mode: u32) -> Result<(), ServerError> {
    fs::DirBuilder::new().recursive(true).mode(mode).create(path).map_err(ServerError::io("make", path))?;
    // Not left to the umask: the workers are somebody else.
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(ServerError::io("open", path))
}

/// A page to serve when the plan names none.
pub(crate) fn small_site(dir: &Path) -> Result<PathBuf, ServerError> {
    let (site, page) = (dir.join("www"), dir.join("www/index.html"));
    folder(&site, 0o755)?;
    fs::write(&page, PAGE).map_err(ServerError::io("write", &page))?;
    fs::set_permissions(&page, fs::Permissions::from_mode(0o644)).map_err(ServerError::io("open", &page))?;
    Ok(site)
}

/// The folder on the way to this one that the account may not enter.
pub(crate) fn closed_to(account: &Account, folder: &Path) -> Result<Option<Closed>, ServerError> {
    account.closed_folder(folder).map_err(ServerError::io("look at", folder))
}
