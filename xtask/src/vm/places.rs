//! Where everything of the virtual machine lies: in `vm`, below the folder that cargo builds into, and nowhere else.

use crate::root;
use std::fs;
use std::path::{Path, PathBuf};

/// The folder and the files in it.
#[derive(Debug, Clone)]
pub(super) struct Places {
    folder: PathBuf,
}

impl Places {
    /// Those of this checkout.
    pub(super) fn here() -> Places {
        Places::in_folder(&target().join("vm"))
    }

    /// Those of a folder.
    pub(super) fn in_folder(folder: &Path) -> Places {
        Places { folder: folder.to_owned() }
    }

    /// All the others are in it.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Debian's kernel, as QEMU loads it.
    pub(super) fn kernel(&self) -> PathBuf {
        self.folder.join("kernel")
    }

    /// What the kernel finds its disks with.
    pub(super) fn initrd(&self) -> PathBuf {
        self.folder.join("initrd")
    }

    /// The root file system; a running machine writes to a copy that vanishes with it.
    pub(super) fn disk(&self) -> PathBuf {
        self.folder.join("root.img")
    }

    /// The disk for swap, likewise.
    pub(super) fn swap(&self) -> PathBuf {
        self.folder.join("swap.img")
    }

    /// The key that opens the guest.
    pub(super) fn key(&self) -> PathBuf {
        self.folder.join("key")
    }

    /// The key the guest shows.
    pub(super) fn guest_key(&self) -> PathBuf {
        self.folder.join("guest_key")
    }

    /// The guest's key as ssh wants to have known it.
    pub(super) fn known_hosts(&self) -> PathBuf {
        self.folder.join("known_hosts")
    }

    /// What the kernel and systemd said in the last machine.
    pub(super) fn console(&self) -> PathBuf {
        self.folder.join("console.log")
    }

    /// Locked while a machine runs, and names its port.
    pub(super) fn running(&self) -> PathBuf {
        self.folder.join("running")
    }

    /// Where QEMU keeps what the guest writes; deleted as soon as opened.
    pub(super) fn scratch(&self) -> PathBuf {
        self.folder.join("scratch")
    }

    /// The recipe the machine was built by; written last.
    pub(super) fn made(&self) -> PathBuf {
        self.folder.join("made.txt")
    }

    /// Why no machine can be started: not built, or by another recipe. `None` when one can.
    pub(super) fn unfit(&self, recipe: &str) -> Option<String> {
        match fs::read_to_string(self.made()) {
            Ok(made) if made == recipe => None,
            Ok(_) => Some("the virtual machine was built by an older recipe: run `cargo xtask vm build`".to_owned()),
            Err(_) => Some(
                "the virtual machine was not built: run `cargo xtask setup --vm` and `cargo xtask vm build`".to_owned(),
            ),
        }
    }

    /// Bytes that the folder occupies on the disk; sparse files count as what they hold.
    pub(super) fn bytes(&self) -> u64 {
        use std::os::unix::fs::MetadataExt;
        let files = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        files.filter_map(|file| file.metadata().ok()).map(|found| found.blocks() * 512).sum()
    }
}

/// The program as users build it.
pub(super) fn webdyno() -> PathBuf {
    target().join("release/webdyno")
}

/// The monitor's example that prints raw readings.
pub(super) fn record() -> PathBuf {
    target().join("release/examples/record")
}

/// The folder that cargo builds into.
fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |folder| root().join(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_of_another_recipe_is_not_started() {
        let folder = tempfile::tempdir().unwrap();
        let places = Places::in_folder(folder.path());
        assert!(places.unfit("one").is_some_and(|why| why.contains("not built")));
        fs::write(places.made(), "one").unwrap();
        assert_eq!(places.unfit("one"), None);
        assert!(places.unfit("two").is_some_and(|why| why.contains("older recipe")));
    }
}
