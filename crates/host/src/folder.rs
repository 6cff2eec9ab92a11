//! The run's private folder for everything the server needs: configuration, logs, sockets.

use crate::HostError;
use crate::handle::Host;
use crate::journal::Undo;
use crate::undo::marker;
use rustix::rand::{GetRandomFlags, getrandom};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Makes the folder: readable for this user only, passable for all, since a server gives up root for a user of its own.
pub(crate) fn make(host: &Host) -> Result<PathBuf, HostError> {
    let path = temporary_place().join(fresh_name(host.run()));
    let entry = host.record(Undo::RemoveTree { path: path.clone() })?;
    let made = fs::create_dir(&path).and_then(|()| fs::set_permissions(&path, Permissions::from_mode(0o711)));
    if let Err(error) = made {
        host.put_back(entry)?;
        return Err(HostError::io("create", &path)(error));
    }
    Ok(path)
}

/// `$TMPDIR`, unless one of the folders above it keeps other users out; then, and without it, `/tmp`.
pub(crate) fn temporary_place() -> PathBuf {
    let wished = std::env::var_os("TMPDIR").map(PathBuf::from).and_then(|path| path.canonicalize().ok());
    wished.filter(|path| passable(path)).unwrap_or_else(|| "/tmp".into())
}

/// A name of the run's that nobody can have taken before: `webdyno-<run>-1f3a90c2`.
pub(crate) fn fresh_name(run: &str) -> String {
    let mut bytes = [0; 4];
    // Should the kernel have no randomness, the run's own id is unique enough.
    let _ = getrandom(&mut bytes[..], GetRandomFlags::empty());
    format!("{}{:08x}", marker(run), u32::from_ne_bytes(bytes))
}

/// Whether an ordinary account may still write where a folder is; yes where nobody can tell.
#[must_use]
pub fn has_room(folder: &Path) -> bool {
    rustix::fs::statvfs(folder).map_or(true, |facts| {
        // A file system without a size has no end either.
        let blocks = facts.f_blocks == 0 || facts.f_bavail > 0;
        blocks && (facts.f_files == 0 || facts.f_favail > 0)
    })
}

/// 128 random bits in hexadecimal, for what nobody may guess.
///
/// # Errors
/// When the kernel has no randomness.
pub fn secret() -> Result<String, HostError> {
    let mut bytes = [0; 16];
    let failed = |errno: rustix::io::Errno| HostError::io("ask for randomness", Path::new("getrandom"))(errno.into());
    // As few bytes as these come whole.
    getrandom(&mut bytes[..], GetRandomFlags::empty()).map_err(failed)?;
    Ok(format!("{:032x}", u128::from_ne_bytes(bytes)))
}

fn passable(path: &Path) -> bool {
    path.ancestors().all(|part| fs::metadata(part).is_ok_and(|found| found.permissions().mode() & 0o001 != 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_folder_above_counts() {
        let dir = tempfile::tempdir_in("/tmp").unwrap();
        let (outer, inner) = (dir.path().join("outer"), dir.path().join("outer/inner"));
        fs::create_dir_all(&inner).unwrap();
        let check = |mode, expected| {
            fs::set_permissions(&outer, Permissions::from_mode(mode)).unwrap();
            assert_eq!(passable(&inner), expected, "{mode:o}");
        };
        fs::set_permissions(dir.path(), Permissions::from_mode(0o711)).unwrap();
        check(0o711, true);
        check(0o700, false);
    }
}
