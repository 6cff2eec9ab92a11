//! The file by which a running server is told other limits, and other files that decide over it.

use crate::server::{Mpm, Server, module_file};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Where such files are believed: in a folder that only root can write, as are all above it.
pub(crate) struct Control {
    folder: tempfile::TempDir,
}

impl Control {
    /// `None`, and the reason is said, where there is no server that could read it.
    pub(crate) fn new() -> Option<Control> {
        module_file()?;
        let folder = tempfile::Builder::new().prefix("webdyno-admission-").tempdir_in("/run").expect("a folder");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("our own folder");
        Some(Control { folder })
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("admission.control")
    }

    pub(crate) fn write(&self, text: &str) {
        self.put("admission.control", text);
    }

    /// By rename, as an editor does.
    pub(crate) fn put(&self, name: &str, text: &str) {
        let new = self.folder.path().join("new");
        fs::write(&new, text).expect("a file");
        fs::set_permissions(&new, fs::Permissions::from_mode(0o644)).expect("our own file");
        fs::rename(new, self.folder.path().join(name)).expect("our own folder");
    }

    pub(crate) fn server(&self, mpm: Mpm, text: &str) -> Option<Server> {
        Server::start(mpm, &format!("AdmissionControlFile {}\n{text}", self.path().display()))
    }
}
