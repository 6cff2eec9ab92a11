//! Whether a running server may be changed by this user.

use crate::HostError;
use rustix::process::geteuid;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// An error when the server that wrote its number into `pid_file` is another account's. Nothing is said of one that does not run.
///
/// # Errors
/// [`HostError::NotRoot`].
pub fn may_change(pid_file: &Path) -> Result<(), HostError> {
    let refused = |what: &str| Err(HostError::NotRoot(format!("{what}, and only root may change it")));
    let pid = match fs::read_to_string(pid_file) {
        Ok(text) => text.trim().to_owned(),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            return refused(&format!("the server of {} is another account's", pid_file.display()));
        }
        Err(_) => return Ok(()),
    };
    let owner = fs::metadata(format!("/proc/{pid}")).map(|facts| facts.uid());
    match owner {
        Ok(uid) if uid != geteuid().as_raw() && !geteuid().is_root() && !pid.is_empty() => {
            refused(&format!("the server (process {pid}) is another account's"))
        }
        _ => Ok(()),
    }
}
