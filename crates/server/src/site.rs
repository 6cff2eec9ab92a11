//! What a private instance serves: folders of the plan that its workers may enter, or a small site of our own.

use crate::account::Account;
use crate::{Closed, PlanKey, ServerError};
use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

const PAGE: &str = "<!doctype html>\n<title>webdyno</title>\n<p>A small page.\n";

/// A folder of the plan, canonical, and open to the workers.
fn served(at: PlanKey, folder: &Path, worker: &Account) -> Result<PathBuf, ServerError> {
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
fn small_site(dir: &Path) -> Result<PathBuf, ServerError> {
    let (site, page) = (dir.join("www"), dir.join("www/index.html"));
    folder(&site, 0o755)?;
    fs::write(&page, PAGE).map_err(ServerError::io("write", &page))?;
    fs::set_permissions(&page, fs::Permissions::from_mode(0o644)).map_err(ServerError::io("open", &page))?;
    Ok(site)
}

/// The folder on the way to this one that the account may not enter.
fn closed_to(account: &Account, folder: &Path) -> Result<Option<Closed>, ServerError> {
    account.closed_folder(folder).map_err(ServerError::io("look at", folder))
}

/// Where a private instance stands, and whom its workers run as.
pub(crate) struct Grounds {
    /// Its own folder, canonical: how an instance is recognised.
    pub(crate) dir: PathBuf,
    /// The account to run as; `None` when nobody else can be chosen, because only root can, and root must.
    pub(crate) account: Option<Account>,
    worker: Account,
}

impl Grounds {
    /// Makes `dir` with these folders in it, open to the first of the accounts that there is.
    pub(crate) fn prepare(
        dir: &Path,
        folders: &[&str],
        server: &'static str,
        accounts: &'static [&'static str],
    ) -> Result<Grounds, ServerError> {
        let (account, worker) = if rustix::process::geteuid().is_root() {
            let etc = Path::new("/etc");
            let account = Account::first_of(accounts, etc).map_err(ServerError::io("read accounts of", etc))?;
            let account = account.ok_or(ServerError::NoAccount { server, names: accounts })?;
            (Some(account.clone()), account)
        } else {
            (None, Account::own())
        };
        folder(dir, 0o711)?;
        let dir = dir.canonicalize().map_err(ServerError::io("resolve", dir))?;
        for name in folders {
            folder(&dir.join(name), 0o711)?;
        }
        Ok(Grounds { dir, account, worker })
    }

    /// Whether the workers may enter the instance's own folder.
    pub(crate) fn check(&self) -> Result<(), ServerError> {
        closed_to(&self.worker, &self.dir)?.map_or(Ok(()), |closed| Err(ServerError::OwnFolder(closed)))
    }

    /// A folder of the plan, canonical, and open to the workers.
    pub(crate) fn served(&self, at: PlanKey, folder: &Path) -> Result<PathBuf, ServerError> {
        served(at, folder, &self.worker)
    }

    /// What is served at `/`: a folder of the plan, or a small page of our own.
    pub(crate) fn document_root(&self, at: PlanKey, folder: Option<&Path>) -> Result<PathBuf, ServerError> {
        folder.map_or_else(|| small_site(&self.dir), |folder| self.served(at, folder))
    }
}

/// The machine's configuration may have secrets that others may not read.
pub(crate) fn write_for_us(file: &Path, text: &str) -> Result<(), ServerError> {
    let opened = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(file);
    opened.and_then(|mut file| file.write_all(text.as_bytes())).map_err(ServerError::io("write", file))
}
