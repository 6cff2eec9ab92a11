//! What servers of the machine's own have in common, whichever they are: where they listen, waiting until they have begun anew, and whether
//! somebody else changes their configuration meanwhile.

mod door;
mod port;
mod wait;
mod watch;

pub(crate) use door::{Door, pick};
pub(crate) use port::free_port;
use std::path::PathBuf;
pub(crate) use wait::Wait;
pub(crate) use watch::{Reads, Watch};

/// The main file of the machine's own configuration, of those that distributions have.
pub(crate) fn usual(files: &[&str]) -> Result<PathBuf, String> {
    files.iter().map(PathBuf::from).find(|file| file.exists()).ok_or_else(|| {
        let usual = files.join(", ");
        format!("the machine's configuration is not where it usually is ({usual}); name it: from = \"FILE\"")
    })
}
