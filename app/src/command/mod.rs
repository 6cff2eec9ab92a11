//! One file per command.

pub(crate) mod ab;
pub(crate) mod admission;
pub(crate) mod away;
pub(crate) mod check;
pub(crate) mod compare;
pub(crate) mod doctor;
pub(crate) mod id;
pub(crate) mod import;
pub(crate) mod load;
pub(crate) mod report;
pub(crate) mod restore;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod watch;

use anyhow::Context;
use std::ffi::OsString;
use std::path::PathBuf;

/// Where journals live: `$WEBDYNO_STATE_DIR`, else the host's usual place. Absolute, because the guardian works elsewhere.
fn state_dir() -> anyhow::Result<PathBuf> {
    let folder = std::env::var_os("WEBDYNO_STATE_DIR").map_or_else(host::state_dir, PathBuf::from);
    std::path::absolute(&folder).with_context(|| format!("cannot find {}", folder.display()))
}

/// The command that goes to other machines: `$WEBDYNO_SSH`, else `ssh`.
fn ssh() -> OsString {
    std::env::var_os("WEBDYNO_SSH").filter(|ssh| !ssh.is_empty()).unwrap_or_else(|| "ssh".into())
}
