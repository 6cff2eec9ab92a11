//! The files of a v2 group, and the controllers that its parent must lend it.

use super::limit::{Limit, Of, set};
use super::{PERIOD_US, quota_us};
use crate::HostError;
use crate::handle::Host;
use crate::journal::Undo;
use model::plan::Confinement;
use std::fs::{self, DirEntry};
use std::io;
use std::path::{Path, PathBuf};

/// What to write.
pub(super) fn limits(confine: &Confinement, disks: &[String], exists: impl Fn(&str) -> bool) -> Vec<Limit> {
    let mut limits = Vec::new();
    if let Some(memory) = confine.memory {
        limits.push(Limit::new(Of::Memory, "memory.max", memory.to_string()));
        // Absent from kernels that know no swap, and then there is none to limit.
        if exists("memory.swap.max") {
            limits.push(Limit::new(Of::Memory, "memory.swap.max", confine.swap.to_string()));
        }
    }
    if let Some(thousandths) = confine.cpu_thousandths {
        limits.push(Limit::new(Of::Cpu, "cpu.max", format!("{} {PERIOD_US}", quota_us(thousandths))));
    }
    let io = confine.io;
    let rates = [("rbps", io.read), ("wbps", io.write), ("riops", io.read_ops), ("wiops", io.write_ops)];
    let rates: Vec<String> = rates.iter().filter_map(|(name, rate)| Some(format!("{name}={}", (*rate)?))).collect();
    if !rates.is_empty() {
        let rates = rates.join(" ");
        limits.extend(disks.iter().map(|disk| Limit::new(Of::Io, "io.max", format!("{disk} {rates}"))));
    }
    limits
}

/// Lets the children of `parent` have a controller, unless they do already, as below systemd.
pub(super) fn lend(host: &Host, parent: &Path, controller: &str) -> Result<(), HostError> {
    if is_lent(parent, controller) {
        return Ok(());
    }
    let parent_of = parent.to_owned();
    host.record(match controller {
        "memory" => Undo::DisableMemory { parent: parent_of },
        _ => Undo::DisableController { parent: parent_of, controller: controller.to_owned() },
    })?;
    set(&control(parent), &format!("+{controller}")).map_err(|error| {
        HostError::NoConfinement(format!(
            "a server cannot be confined by the {controller} controller: {error}; boot with systemd, or run outside this container"
        ))
    })
}

/// Takes it away again, unless there are other groups by now: limits and protections of theirs would vanish with it, and a controller
/// that is left enabled does no harm.
pub(crate) fn take_back(parent: &Path, controller: &str) -> Result<Option<String>, String> {
    if !is_lent(parent, controller) || has_groups(parent) {
        return Ok(None);
    }
    set(&control(parent), &format!("-{controller}")).map_err(|error| error.to_string())?;
    Ok(Some(format!("took the {controller} controller back from the groups in {}", parent.display())))
}

fn control(parent: &Path) -> PathBuf {
    parent.join("cgroup.subtree_control")
}

/// Whether the children of `parent` have a controller.
pub(crate) fn is_lent(parent: &Path, controller: &str) -> bool {
    fs::read_to_string(control(parent)).is_ok_and(|text| text.split_whitespace().any(|name| name == controller))
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
    use model::plan::IoLimits;

    #[test]
    fn swap_is_counted_alone() {
        let confine = Confinement { memory: Some(100), swap: 50, ..Confinement::default() };
        let check = |exists: bool, expected: &[(&str, &str)]| {
            let limits = limits(&confine, &[], |_| exists);
            let seen: Vec<(&str, &str)> = limits.iter().map(|limit| (limit.file, limit.value.as_str())).collect();
            assert_eq!(seen, expected);
        };
        check(true, &[("memory.max", "100"), ("memory.swap.max", "50")]);
        check(false, &[("memory.max", "100")]);
    }

    /// Writes all limits to plain files, which stand in for the kernel's, and reads them back.
    #[test]
    fn time_and_disks_have_one_file_each() {
        let dir = tempfile::tempdir().unwrap();
        for file in ["cpu.max", "io.max"] {
            fs::write(dir.path().join(file), "").unwrap();
        }
        let io = IoLimits { read: Some(1 << 20), write: Some(2 << 20), read_ops: Some(3), write_ops: Some(4) };
        let confine = Confinement { cpu_thousandths: Some(250), io, ..Confinement::default() };
        let held: Vec<String> = limits(&confine, &["254:0".to_owned()], |_| true)
            .iter()
            .map(|limit| {
                let (file, held) = limit.apply(dir.path()).unwrap();
                format!("{file}: {held}")
            })
            .collect();
        assert_eq!(held, ["cpu.max: 25000 100000", "io.max: 254:0 rbps=1048576 wbps=2097152 riops=3 wiops=4"]);
        let absent = Limit::new(Of::Cpu, "cpu.weight", "1").apply(dir.path()).unwrap_err().to_string();
        assert!(absent.starts_with("cannot write "), "{absent}");
        assert!(!dir.path().join("cpu.weight").exists());
    }

    /// Undoes the enabling in a directory, with or without a child; plain files stand in for the kernel's.
    fn check(controller: &str, enabled: &str, child: Option<&str>, expected: &str) {
        let dir = tempfile::tempdir().unwrap();
        if let Some(name) = child {
            fs::create_dir(dir.path().join(name)).unwrap();
            for (file, text) in [("memory.max", "max\n"), ("memory.low", "1048576\n"), ("memory.swap.max", "0\n")] {
                fs::write(dir.path().join(name).join(file), text).unwrap();
            }
        }
        fs::write(control(dir.path()), enabled).unwrap();
        let told = take_back(dir.path(), controller).unwrap();
        let after = fs::read_to_string(control(dir.path())).unwrap();
        assert_eq!((after.as_str(), told.is_some()), (expected, enabled != expected));
    }

    #[test]
    fn a_controller_is_taken_back_unless_there_are_other_groups() {
        check("memory", "memory ", None, "-memory");
        check("memory", "memory ", Some("system.slice"), "memory ");
        check("memory", "cpu io", None, "cpu io");
        check("cpu", "cpu ", None, "-cpu");
    }
}
