//! The files of a v2 group, and the memory controller that its parent must lend it.

use super::set;
use crate::HostError;
use crate::handle::Host;
use crate::journal::Undo;
use model::plan::Confinement;
use std::fs;
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
    if is_enabled(parent) {
        return Ok(());
    }
    host.record(Undo::DisableMemory { parent: parent.to_owned() })?;
    set(&control(parent), "+memory").map_err(|error| {
        HostError::NoConfinement(format!(
            "a server cannot be confined to a memory group: {error}; boot with systemd, or run outside this container"
        ))
    })
}

/// Takes it away again, unless somebody else has come to use it: their limits would vanish with it.
pub(crate) fn disable_memory(parent: &Path) -> Result<Option<String>, String> {
    if !is_enabled(parent) || children_are_limited(parent) {
        return Ok(None);
    }
    set(&control(parent), "-memory").map_err(|error| error.to_string())?;
    Ok(Some(format!("took the memory controller back from the groups in {}", parent.display())))
}

fn control(parent: &Path) -> PathBuf {
    parent.join("cgroup.subtree_control")
}

fn is_enabled(parent: &Path) -> bool {
    fs::read_to_string(control(parent)).is_ok_and(|text| text.split_whitespace().any(|name| name == "memory"))
}

fn children_are_limited(parent: &Path) -> bool {
    let read = |child: &Path, file| fs::read_to_string(child.join(file)).unwrap_or_default();
    let limited = |child: &Path| {
        let passes_it_on = read(child, "cgroup.subtree_control").split_whitespace().any(|name| name == "memory");
        passes_it_on || !matches!(read(child, "memory.max").trim(), "" | "max")
    };
    fs::read_dir(parent).is_ok_and(|children| children.flatten().any(|child| limited(&child.path())))
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

    /// Undoes the enabling in a directory whose one child has `limit`; plain files stand in for the kernel's.
    fn check(enabled: &str, limit: &str, expected: &str) {
        let dir = tempfile::tempdir().unwrap();
        let child = dir.path().join("child");
        fs::create_dir(&child).unwrap();
        fs::write(child.join("memory.max"), limit).unwrap();
        fs::write(control(dir.path()), enabled).unwrap();
        let told = disable_memory(dir.path()).unwrap();
        let after = fs::read_to_string(control(dir.path())).unwrap();
        assert_eq!((after.as_str(), told.is_some()), (expected, enabled != expected));
    }

    #[test]
    fn the_controller_is_taken_back_unless_others_use_it() {
        check("memory ", "max\n", "-memory");
        check("memory ", "1048576\n", "memory ");
        check("cpu io", "max\n", "cpu io");
    }
}
