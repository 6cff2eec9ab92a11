//! The files of a v2 group, and the controllers that its parent must lend it.

use super::limit::{Limit, Of, set};
use super::{PERIOD_US, quota_us};
use crate::HostError;
use crate::handle::Host;
use crate::journal::Undo;
use model::plan::Confinement;
use rustix::io::Errno;
use std::fs;
use std::os::unix::fs::PermissionsExt;
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

/// Takes it away again, unless another group has come to use it: its limits and protections would vanish, and a controller that is left
/// enabled does no harm.
pub(crate) fn take_back(parent: &Path, controller: &str) -> Result<Option<String>, String> {
    if !is_lent(parent, controller) || is_used(parent, controller) {
        return Ok(None);
    }
    match set(&control(parent), &format!("-{controller}")) {
        Ok(()) => Ok(Some(format!("took the {controller} controller back from the groups in {}", parent.display()))),
        // A group has lent it to groups of its own; or this one is gone, as systemd removes a scope in which nothing runs any more.
        Err(HostError::Io { source, .. })
            if matches!(Errno::from_io_error(&source), Some(Errno::BUSY | Errno::NOENT | Errno::NODEV)) =>
        {
            Ok(None)
        }
        Err(error) => Err(error.to_string()),
    }
}

fn control(parent: &Path) -> PathBuf {
    parent.join("cgroup.subtree_control")
}

/// Whether the children of `parent` have a controller.
pub(crate) fn is_lent(parent: &Path, controller: &str) -> bool {
    fs::read_to_string(control(parent)).is_ok_and(|text| text.split_whitespace().any(|name| name == controller))
}

/// Whether a group below `parent` has a setting of the controller that is not the kernel's own; what cannot be looked at counts.
fn is_used(parent: &Path, controller: &str) -> bool {
    let Ok(entries) = fs::read_dir(parent) else { return true };
    entries.map_while(Result::ok).filter(|entry| entry.path().is_dir()).any(|group| {
        let Ok(files) = fs::read_dir(group.path()) else { return true };
        files.flatten().any(|file| {
            let name = file.file_name().to_string_lossy().into_owned();
            let of_controller = name.split_once('.').is_some_and(|(first, _)| first == controller);
            let settable = file.metadata().is_ok_and(|found| found.permissions().mode() & 0o600 == 0o600);
            of_controller
                && settable
                && !fs::read_to_string(file.path()).is_ok_and(|text| is_default(&name, text.trim()))
        })
    })
}

/// Whether a file of a group says what it says in a new group. Files that are not known count as set.
fn is_default(name: &str, text: &str) -> bool {
    match name {
        "cpu.weight" => text == "100",
        "cpu.max" => text.starts_with("max "),
        "cpu.uclamp.min" => text == "0.00",
        "cpu.idle" | "cpu.max.burst" | "cpu.weight.nice" | "memory.low" | "memory.min" | "memory.oom.group" => {
            text == "0"
        }
        "cpu.uclamp.max" | "memory.high" | "memory.max" | "memory.swap.high" | "memory.swap.max"
        | "memory.zswap.max" => text == "max",
        "memory.zswap.writeback" => text == "1",
        "io.bfq.weight" | "io.weight" => text == "default 100",
        "io.latency" | "io.max" => text.is_empty(),
        "io.prio.class" => text == "no-change",
        // Watched or reset by being written to.
        "memory.peak" | "memory.swap.peak" => true,
        _ => name.ends_with(".pressure"),
    }
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

    /// Undoes the enabling in a directory, where a group may have set things; plain files stand in for the kernel's.
    fn check(controller: &str, enabled: &str, group: Option<&[(&str, &str)]>, expected: &str) {
        let dir = tempfile::tempdir().unwrap();
        for (file, text) in group.unwrap_or_default() {
            fs::create_dir_all(dir.path().join("system.slice")).unwrap();
            fs::write(dir.path().join("system.slice").join(file), text).unwrap();
        }
        fs::write(control(dir.path()), enabled).unwrap();
        let told = take_back(dir.path(), controller).unwrap();
        let after = fs::read_to_string(control(dir.path())).unwrap();
        assert_eq!((after.as_str(), told.is_some()), (expected, enabled != expected), "{group:?}");
    }

    #[test]
    fn a_controller_is_taken_back_unless_others_use_it() {
        check("memory", "memory ", None, "-memory");
        check("memory", "cpu io", None, "cpu io");
        check("cpu", "cpu ", None, "-cpu");
        let protected: &[(&str, &str)] =
            &[("memory.max", "max\n"), ("memory.low", "1048576\n"), ("cpu.weight", "100\n")];
        check("memory", "memory cpu", Some(protected), "memory cpu");
        check("cpu", "cpu ", Some(protected), "-cpu");
        let plain: &[(&str, &str)] = &[("cpu.max", "max 100000\n"), ("cpu.pressure", "some"), ("io.max", "")];
        check("cpu", "cpu ", Some(plain), "-cpu");
        check("io", "io ", Some(plain), "-io");
        check("cpu", "cpu", Some(&[("cpu.max", "50000 100000\n")]), "cpu");
        check("io", "io", Some(&[("io.max", "254:0 rbps=1")]), "io");
        check("cpu", "cpu", Some(&[("cpu.of_tomorrow", "")]), "cpu");
    }
}
