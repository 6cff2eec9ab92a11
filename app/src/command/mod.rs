//! One file per command.

pub(crate) mod report;
pub(crate) mod restore;
pub(crate) mod run;
pub(crate) mod runs;

use std::path::PathBuf;

/// Where journals live: `$WEBDYNO_STATE_DIR`, else the host's usual place.
fn state_dir() -> PathBuf {
    std::env::var_os("WEBDYNO_STATE_DIR").map_or_else(host::state_dir, PathBuf::from)
}
