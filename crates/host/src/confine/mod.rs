//! Groups: a server confined to an amount of memory, so that a big machine can stand in for a small one.
//!
//! This file finds the hierarchies and makes and removes directories; [`v1`] and [`v2`] know the files in them. Groups are made at
//! the top of each hierarchy, for v2 allows no controller below a directory that holds processes. Only the memory
//! controller is used: a v1 `cpu` group would give the server one share against each process outside, which is a change of its own.

mod v1;
mod v2;

use crate::HostError;
use crate::handle::Host;
use crate::journal::Undo;
use crate::mounts::{Mount, mounts};
use crate::process::Members;
use crate::undo::marker;
use model::plan::Confinement;
use rustix::fs::{Access, access};
use rustix::io::Errno;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub(crate) use v2::{disable_memory, is_lent};

/// A directory is busy for a moment after its last process has ended.
const BUSY: Duration = Duration::from_secs(5);

/// Where groups can be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hierarchies {
    /// Which kind of cgroup has the memory controller.
    pub version: Version,
    /// Root of the hierarchy that has it.
    pub memory: PathBuf,
    /// Root of the v1 hierarchy that accounts CPU time; v2 does so by itself.
    pub cpuacct: Option<PathBuf>,
    /// Root of the v2 hierarchy, which tells pressure per group even when it has no controllers.
    pub unified: Option<PathBuf>,
}

/// The two generations of cgroups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// One hierarchy per controller.
    V1,
    /// One hierarchy for all.
    V2,
}

/// The directories of one group, to read its counters from. With v2 all are the same one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GroupPaths {
    /// Holds `memory.*`.
    pub memory: Option<PathBuf>,
    /// Holds `cpuacct.*` (v1) or `cpu.stat` (v2).
    pub cpuacct: Option<PathBuf>,
    /// Holds `cpu.stat`; none with v1, where nothing is throttled.
    pub cpu: Option<PathBuf>,
    /// Holds `*.pressure`.
    pub unified: Option<PathBuf>,
}

/// A group. Dropping it ends what lives in it and removes it.
#[derive(Debug)]
pub struct Group {
    /// Its name within the run.
    pub name: String,
    paths: GroupPaths,
    entry: u64,
    host: Host,
}

impl Group {
    /// Its directories.
    #[must_use]
    pub fn paths(&self) -> &GroupPaths {
        &self.paths
    }

    /// Ends what lives in it and removes it.
    ///
    /// # Errors
    /// When a process would not end or the kernel keeps a directory busy.
    pub fn remove(self) -> Result<(), HostError> {
        self.host.put_back(self.entry)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // What fails stays in the journal, and is reported when the host is closed.
        let _ = self.host.put_back(self.entry);
    }
}

impl GroupPaths {
    /// Each directory once.
    pub(crate) fn all(&self) -> Vec<PathBuf> {
        let mut all: Vec<PathBuf> = vec![];
        for path in [&self.memory, &self.cpuacct, &self.cpu, &self.unified].into_iter().flatten() {
            if !all.contains(path) {
                all.push(path.clone());
            }
        }
        all
    }
}

/// Where this user can make groups on this machine.
///
/// # Errors
/// [`HostError::NotRoot`] when only for root, [`HostError::NoConfinement`] when nowhere; both say how to allow it.
pub fn hierarchies() -> Result<Hierarchies, HostError> {
    let nowhere = |why: &str| HostError::NoConfinement(format!("a server cannot be confined to a memory group: {why}"));
    let controllers = |root: &Path| fs::read_to_string(root.join("cgroup.controllers")).unwrap_or_default();
    let found = find(&mounts(), controllers).ok_or_else(|| {
        nowhere("no memory controller is mounted here: boot with cgroup_enable=memory, or run outside this container")
    })?;
    match access(&found.memory, Access::WRITE_OK | Access::EXEC_OK) {
        Ok(()) => Ok(found),
        Err(Errno::ROFS) => {
            Err(nowhere("groups are mounted read-only, as in a container: run outside it, or privileged"))
        }
        Err(_) => Err(HostError::NotRoot("only root may confine a server to a memory group".to_owned())),
    }
}

/// Makes a group.
pub(crate) fn create(host: &Host, name: &str, confine: &Confinement) -> Result<Group, HostError> {
    let found = hierarchies()?;
    if found.version == Version::V2 {
        v2::enable_memory(host, &found.memory)?;
    }
    let paths = found.paths(&format!("{}{name}", marker(host.run())));
    let all = paths.all();
    if let Some(taken) = all.iter().find(|path| path.exists()) {
        return Err(HostError::io("create", taken)(io::ErrorKind::AlreadyExists.into()));
    }
    let entry = host.record(Undo::RemoveGroup { paths: all.clone() })?;
    // From here on an early return removes it again.
    let group = Group { name: name.to_owned(), paths, entry, host: host.clone() };
    for path in &all {
        fs::create_dir(path).map_err(HostError::io("create", path))?;
    }
    let memory = group.paths.memory.as_deref().unwrap_or(&found.memory);
    let exists = |file: &str| memory.join(file).exists();
    let settings = match found.version {
        Version::V1 => v1::settings(confine, exists),
        Version::V2 => v2::settings(confine, exists),
    };
    for (file, value) in settings {
        set(&memory.join(file), &value)?;
    }
    Ok(group)
}

/// Ends what lives in the directories of a group and removes them. `Ok(None)` when there are none.
pub(crate) fn remove(paths: &[&Path], patience: Duration) -> Result<Option<String>, String> {
    let mut removed = None;
    for path in paths {
        Members::Group(path).end(patience)?;
        if remove_dir(path).map_err(|error| format!("cannot remove the group {}: {error}", path.display()))? {
            removed = path.file_name();
        }
    }
    Ok(removed.map(|name| format!("removed the group {}", name.to_string_lossy())))
}

impl Hierarchies {
    fn paths(&self, name: &str) -> GroupPaths {
        let memory = self.memory.join(name);
        match self.version {
            Version::V1 => GroupPaths {
                memory: Some(memory),
                cpuacct: self.cpuacct.as_ref().map(|root| root.join(name)),
                cpu: None,
                unified: self.unified.as_ref().map(|root| root.join(name)),
            },
            Version::V2 => GroupPaths {
                memory: Some(memory.clone()),
                cpuacct: Some(memory.clone()),
                cpu: Some(memory.clone()),
                unified: Some(memory),
            },
        }
    }
}

fn find(mounts: &[Mount], controllers: impl Fn(&Path) -> String) -> Option<Hierarchies> {
    let v1 = |controller: &str| {
        let has = |mount: &&Mount| mount.kind == "cgroup" && mount.options.iter().any(|option| option == controller);
        mounts.iter().find(has).map(|mount| mount.point.clone())
    };
    let unified = mounts.iter().find(|mount| mount.kind == "cgroup2").map(|mount| mount.point.clone());
    if let Some(memory) = v1("memory") {
        return Some(Hierarchies { version: Version::V1, memory, cpuacct: v1("cpuacct"), unified });
    }
    let memory = unified.filter(|root| controllers(root).split_whitespace().any(|name| name == "memory"))?;
    Some(Hierarchies { version: Version::V2, unified: Some(memory.clone()), memory, cpuacct: None })
}

/// Writes to a file of the kernel's; never makes one.
fn set(file: &Path, value: &str) -> Result<(), HostError> {
    let written = OpenOptions::new().write(true).open(file).and_then(|mut file| file.write_all(value.as_bytes()));
    written.map_err(HostError::io("write", file))
}

/// Whether there was a directory to remove.
fn remove_dir(path: &Path) -> io::Result<bool> {
    let deadline = Instant::now() + BUSY;
    loop {
        match fs::remove_dir(path) {
            Ok(()) => return Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy && Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mounts::parse;

    const V1: &str = "\
        33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
        35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
    const UNIFIED: &str = "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
    const V2: &str = "26 23 0:22 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n";

    /// Finds hierarchies in `mountinfo`, where v2 has `controllers`, and prints them as `version memory cpuacct unified`.
    fn check(mountinfo: &str, controllers: &str, expected: &str) {
        let show = |path: Option<&PathBuf>| path.map_or("-".to_owned(), |path| path.display().to_string());
        let found = find(&parse(mountinfo), |_| controllers.to_owned()).map_or("none".to_owned(), |found| {
            let (cpuacct, unified) = (show(found.cpuacct.as_ref()), show(found.unified.as_ref()));
            format!("{:?} {} {cpuacct} {unified}", found.version, found.memory.display())
        });
        assert_eq!(found, expected, "{mountinfo}");
    }

    #[test]
    fn the_hierarchy_with_the_memory_controller_is_taken() {
        check(V1, "", "V1 /sys/fs/cgroup/memory /sys/fs/cgroup/cpu,cpuacct -");
        check(
            &format!("{V1}{UNIFIED}"),
            "",
            "V1 /sys/fs/cgroup/memory /sys/fs/cgroup/cpu,cpuacct /sys/fs/cgroup/unified",
        );
        check(V2, "cpuset cpu io memory pids\n", "V2 /sys/fs/cgroup - /sys/fs/cgroup");
        check(V2, "cpu io\n", "none");
        check("", "", "none");
    }

    #[test]
    fn one_directory_is_named_once() {
        let found = find(&parse(V2), |_| "memory".to_owned()).unwrap();
        let paths = found.paths("webdyno-r-a");
        assert_eq!(paths.all(), [PathBuf::from("/sys/fs/cgroup/webdyno-r-a")]);
    }
}
