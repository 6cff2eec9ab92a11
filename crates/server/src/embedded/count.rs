//! How many requests the embedded server has served, told on a unix socket of its own: no worker is taken for it.

use model::status::WebStatus;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A server that does not answer in this time does not tell.
const PATIENCE: Duration = Duration::from_millis(500);
/// A socket's path may have 107 bytes.
const MOST: usize = 107;

/// Where an instance tells it.
#[derive(Debug)]
pub(crate) struct Count {
    socket: PathBuf,
}

impl Count {
    /// In an instance's folder; `None` when that has too long a path for any socket.
    pub(super) fn in_folder(folder: &Path) -> Option<Count> {
        let socket = folder.join("count.sock");
        (socket.as_os_str().as_bytes().len() <= MOST).then_some(Count { socket })
    }

    pub(super) fn socket(&self) -> &Path {
        &self.socket
    }

    /// The count now; `None` when it does not tell.
    pub(crate) fn look(&self) -> Option<WebStatus> {
        let stream = UnixStream::connect(&self.socket).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        let mut told = String::new();
        stream.take(64).read_to_string(&mut told).ok()?;
        Some(WebStatus::Embedded { served: told.strip_prefix("served ")?.trim_end().parse().ok()? })
    }
}
