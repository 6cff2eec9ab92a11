//! The files of a v2 group, and the memory controller that its parent must lend it.

use super::set;
use crate::HostError;
use crate::handle::Host;
use crate::journal::Undo;
use model::plan::Confinement;
use std::fs::{self, DirEntry};
use std::io;
use std::path::{Path, PathBuf};

/// What to write into which file.
pub(super) fn settings(confine: &Confinement, exists: impl Fn(&str) -> bool) -> Vec<(&'static str, String)> {
    let mut settings = vec![("memory.max", confine.memory.to_string())];
    // Absent from kernels that know no swap, and then there is none to limit.
    if exists("memory.swap.max") {
        settings.push(("memory.swap.max", confine.swap.to_string()));
    }
    settings
}

/// Lets the children of `parent` have a memory controller, unless they do already, as below systemd.
pub(super) fn enable_memory(host: &Host, parent: &Path) -> Result<(), HostError> {
    if is_lent(parent) {
        return Ok(());
    }
    host.record(Undo::DisableMemory { parent: parent.to_owned() })?;
    set(&control(parent), "+memory").map_err(|error| {
        HostError::NoConfinement(format!(
            "a server cannot be confined to a memory group: {error}; boot with systemd, or run outside this container"
        ))
    })
}

/// Takes it away again, unless there are other groups by now: limits and protections of theirs would vanish with it, and a controller
/// that is left enabled does no harm.
pub(crate) fn disable_memory(parent: &Path) -> Result<Option<String>, String> {
    if !is_lent(parent) || has_groups(parent) {
        return Ok(None);
    }
    set(&control(parent), "-memory").map_err(|error| error.to_string())?;
    Ok(Some(format!("took the memory controller back from the groups in {}", parent.display())))
}

fn control(parent: &Path) -> PathBuf {
    parent.join("cgroup.subtree_control")
}

/// Whether the children of `parent` have a memory controller.
pub(crate) fn is_lent(parent: &Path) -> bool {
    fs::read_to_string(control(parent)).is_ok_and(|text| text.split_whitespace().any(|name| name == "memory"))
}

/// Whether a group lies below `parent`; one that cannot be looked at counts.
fn has_groups(parent: &Path) -> bool {
    let is_file =
        |entry: io::Result<DirEntry>| entry.and_then(|entry| entry.file_type()).is_ok_and(|kind| !kind.is_dir());
    !fs::read_dir(parent).is_ok_and(|mut entries| entries.all(is_file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn swap_is_counted_alone() {
        let confine = Confinement { memory: 100, swap: 50 };
        let check = |exists: bool, expected: &[(&str, String)]| assert_eq!(settings(&confine, |_| exists), expected);
        check(true, &[("memory.max", "100".to_owned()), ("memory.swap.max", "50".to_owned())]);
        check(false, &[("memory.max", "100".to_owned())]);
    }

    /// Undoes the enabling in a directory, with or without a child; plain files stand in for the kernel's.
    fn check(enabled: &str, child: Option<&str>, expected: &str) {
        let dir = tempfile::tempdir().unwrap();
        if let Some(name) = child {
            fs::create_dir(dir.path().join(name)).unwrap();
            for (file, text) in [("memory.max", "max\n"), ("memory.low", "1048576\n"), ("memory.swap.max", "0\n")] {
                fs::write(dir.path().join(name).join(file), text).unwrap();
            }
        }
        fs::write(control(dir.path()), enabled).unwrap();
        let told = disable_memory(dir.path()).unwrap();
        let after = fs::read_to_string(control(dir.path())).unwrap();
        assert_eq!((after.as_str(), told.is_some()), (expected, enabled != expected));
    }

    #[test]
    fn the_controller_is_taken_back_unless_there_are_other_groups() {
        check("memory ", None, "-memory");
        check("memory ", Some("system.slice"), "memory ");
        check("cpu io", None, "cpu io");
    }
}
