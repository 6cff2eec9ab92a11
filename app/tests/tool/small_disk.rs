//! A disk of a test's own that is soon full.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A mounted file system of that size; unmounted when dropped.
pub(crate) struct SmallDisk {
    at: PathBuf,
}

impl SmallDisk {
    /// Of so many KiB at a new folder; `None`, with the reason said, where nothing may be mounted.
    pub(crate) fn new(at: &Path, kib: u32) -> Option<SmallDisk> {
        fs::create_dir(at).expect("a folder");
        let options = format!("size={kib}k,mode=755");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "webdyno-test"]).arg(at).output();
        if mounted.is_ok_and(|output| output.status.success()) {
            return Some(SmallDisk { at: at.to_owned() });
        }
        testkit::skip::not_here("nothing may be mounted");
        None
    }

    /// Leaves no byte free.
    pub(crate) fn fill(&self) {
        let mut file = fs::OpenOptions::new().create(true).append(true).open(self.at.join("fill")).expect("a file");
        while file.write_all(&[0; 4096]).is_ok() {}
    }

    /// What `fill` took is free again.
    pub(crate) fn free(&self) {
        fs::remove_file(self.at.join("fill")).expect("our own file");
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.at.join(name)
    }

    /// What is in it.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.at).expect("a folder").flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).filter(|name| name != "fill").collect()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // What is still open there keeps it no longer than that.
        let _ = Command::new("umount").arg("-l").arg(&self.at).status();
    }
}
