//! Groups: a server confined to an amount of memory, of CPU time and of disk traffic, so that a big machine can stand in for a small one.
//!
//! This file finds the hierarchies and makes and removes directories; [`v1`] and [`v2`] know the files in them. Groups are made at
//! the top of each hierarchy, for v2 allows no controller below a directory that holds processes; an ordinary user's are made in a
//! [`scope`] that systemd delegates to him. Only the memory
//! controller is used unless more is asked for: a v1 `cpu` group gives the server one share against each process outside, which is a
//! change of its own.

mod disks;
mod limit;
mod scope;
mod v1;
mod v2;

use self::disks::disks;
use self::limit::Of;
use crate::HostError;
use crate::handle::Host;
use crate::journal::Undo;
use crate::mounts::{Mount, mounts};
use crate::process::Members;
use crate::undo::marker;
use model::plan::Confinement;
use rustix::fs::{Access, access};
use rustix::io::Errno;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub use scope::Scope;
pub(crate) use v2::{is_lent, take_back};

/// The time that a quota of CPU time is a part of: the kernel's own default.
const PERIOD_US: u64 = 100_000;
/// A directory is busy for a moment after its last process has ended.
const BUSY: Duration = Duration::from_secs(5);

/// Where groups can be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hierarchies {
    /// Which kind of cgroup has the memory controller.
    pub version: Version,
    /// Root of the hierarchy that has it.
    pub memory: PathBuf,
    /// Root of the hierarchy that limits CPU time, where there is one.
    pub cpu: Option<PathBuf>,
    /// Root of the hierarchy that limits disk traffic, where there is one.
    pub io: Option<PathBuf>,
    /// Root of the v1 hierarchy that accounts CPU time; v2 does so by itself.
    pub cpuacct: Option<PathBuf>,
    /// Root of the v2 hierarchy, which tells pressure per group even when it has no controllers.
    pub unified: Option<PathBuf>,
    /// The ordinary user to whom systemd has delegated it.
    pub user: Option<u32>,
}

/// How a server can be confined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// By this process.
    Here(Hierarchies),
    /// By this program once it is in a scope.
    Scope(Scope),
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
    /// Holds `cpu.stat`; with v1 only where CPU time is limited.
    pub cpu: Option<PathBuf>,
    /// Holds `blkio.*` (v1) or `io.*` (v2); only where disk traffic is limited.
    pub io: Option<PathBuf>,
    /// Holds `*.pressure`.
    pub unified: Option<PathBuf>,
}

/// A group. Dropping it ends what lives in it and removes it.
#[derive(Debug)]
pub struct Group {
    /// Its name within the run.
    pub name: String,
    paths: GroupPaths,
    limits: Vec<(String, String)>,
    entry: u64,
    host: Host,
}

impl Group {
    /// Its directories.
    #[must_use]
    pub fn paths(&self) -> &GroupPaths {
        &self.paths
    }

    /// Its limits as the kernel holds them: file and content.
    #[must_use]
    pub fn limits(&self) -> &[(String, String)] {
        &self.limits
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
        for path in [&self.memory, &self.cpuacct, &self.cpu, &self.io, &self.unified].into_iter().flatten() {
            if !all.contains(path) {
                all.push(path.clone());
            }
        }
        all
    }
}

/// Where this process can make groups.
///
/// # Errors
/// [`HostError::NotRoot`] when only root can, [`HostError::NoConfinement`] when nobody; both say how to allow it.
pub fn hierarchies() -> Result<Hierarchies, HostError> {
    let found = mounted()?;
    match (access(&found.memory, Access::WRITE_OK | Access::EXEC_OK), found.version) {
        (Ok(()), _) => Ok(found),
        (Err(Errno::ROFS), _) => {
            Err(nowhere("groups are mounted read-only, as in a container: run outside it, or privileged"))
        }
        (Err(_), Version::V2) => scope::own(&found.memory)?.ok_or_else(|| reserved("in a group of the machine's")),
        (Err(_), Version::V1) => Err(reserved(
            "under cgroup v1; with v2 (boot with systemd.unified_cgroup_hierarchy=1) systemd lets users, too",
        )),
    }
}

/// How this user can confine a server: at once, or by going into a scope of the systemd that is his own.
///
/// # Errors
/// As [`hierarchies`], and what keeps systemd from making a scope.
pub fn reach() -> Result<Reach, HostError> {
    let found = mounted()?;
    match hierarchies() {
        Err(HostError::NotRoot(_)) if found.version == Version::V2 => {
            scope::of_this_user(&found.memory).map(Reach::Scope)
        }
        found => found.map(Reach::Here),
    }
}

fn mounted() -> Result<Hierarchies, HostError> {
    let controllers = |root: &Path| fs::read_to_string(root.join("cgroup.controllers")).unwrap_or_default();
    find(&mounts(), controllers).ok_or_else(|| {
        nowhere("no memory controller is mounted here: boot with cgroup_enable=memory, or run outside this container")
    })
}

fn nowhere(why: &str) -> HostError {
    HostError::NoConfinement(format!("a server cannot be confined to a memory group: {why}"))
}

fn reserved(place: &str) -> HostError {
    HostError::NotRoot(format!("only root may confine a server {place}"))
}

/// Makes a group.
pub(crate) fn create(host: &Host, name: &str, confine: &Confinement) -> Result<Group, HostError> {
    let found = hierarchies()?;
    found.allow(confine)?;
    let devices = disks(Path::new("/sys/block"));
    if !confine.io.is_empty() && devices.is_empty() {
        return Err(HostError::NoConfinement(
            "a server's disk traffic cannot be limited: the kernel shows no disk".to_owned(),
        ));
    }
    if found.version == Version::V2 {
        for controller in wanted(confine) {
            v2::lend(host, &found.memory, controller)?;
        }
    }
    let paths = found.paths(&format!("{}{name}", marker(host.run())), confine);
    let all = paths.all();
    if let Some(taken) = all.iter().find(|path| path.exists()) {
        return Err(HostError::io("create", taken)(io::ErrorKind::AlreadyExists.into()));
    }
    let entry = host.record(Undo::RemoveGroup { paths: all.clone() })?;
    // From here on an early return removes it again.
    let mut group = Group { name: name.to_owned(), paths, limits: Vec::new(), entry, host: host.clone() };
    for path in &all {
        fs::create_dir(path).map_err(HostError::io("create", path))?;
    }
    let memory = group.paths.memory.as_deref().unwrap_or(&found.memory);
    let exists = |file: &str| memory.join(file).exists();
    let limits = match found.version {
        Version::V1 => v1::limits(confine, &devices, exists),
        Version::V2 => v2::limits(confine, &devices, exists),
    };
    for limit in limits {
        let dir = match limit.of {
            Of::Memory => memory,
            Of::Cpu => group.paths.cpu.as_deref().unwrap_or(memory),
            Of::Io => group.paths.io.as_deref().unwrap_or(memory),
        };
        let (file, held) = limit.apply(dir)?;
        // Of a file with a line for each disk the last look has all of them.
        group.limits.retain(|(known, _)| *known != file);
        group.limits.push((file, held));
    }
    Ok(group)
}

/// Microseconds of CPU time in each period.
fn quota_us(thousandths: u64) -> u64 {
    (thousandths * PERIOD_US / 1000).max(1000)
}

/// The controllers that a confinement needs, memory's always: what a group holds is measured by it.
fn wanted(confine: &Confinement) -> impl Iterator<Item = &'static str> {
    let cpu = confine.cpu_thousandths.map(|_| "cpu");
    let io = (!confine.io.is_empty()).then_some("io");
    [Some("memory"), cpu, io].into_iter().flatten()
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

impl Reach {
    /// What can be limited.
    #[must_use]
    pub fn hierarchies(&self) -> &Hierarchies {
        match self {
            Reach::Here(found) => found,
            Reach::Scope(scope) => scope.hierarchies(),
        }
    }
}

impl Hierarchies {
    /// What can be limited here, in words.
    #[must_use]
    pub fn limits(&self) -> Vec<&'static str> {
        let cpu = self.cpu.as_ref().map(|_| "CPU time");
        let io = self.io.as_ref().map(|_| "disk traffic");
        [Some("memory"), cpu, io].into_iter().flatten().collect()
    }

    /// Whether all limits of a confinement can be had.
    ///
    /// # Errors
    /// The first that cannot, and how to allow it.
    pub fn allow(&self, confine: &Confinement) -> Result<(), HostError> {
        let lacks = |what: &'static str, controller: &'static str| {
            Err(match self.user {
                Some(uid) => HostError::NotDelegated { what, controller, uid },
                None => HostError::NoConfinement(format!(
                    "a server's {what} cannot be limited: there is no {controller} controller here; mount it, run outside this container, or \
                     remove the limit from [confine]"
                )),
            })
        };
        match (self.version, confine.cpu_thousandths, confine.io.is_empty()) {
            (_, Some(_), _) if self.cpu.is_none() => lacks("CPU time", "cpu"),
            (Version::V1, _, false) if self.io.is_none() => lacks("disk traffic", "blkio"),
            (Version::V2, _, false) if self.io.is_none() => lacks("disk traffic", "io"),
            _ => Ok(()),
        }
    }

    fn paths(&self, name: &str, confine: &Confinement) -> GroupPaths {
        let memory = self.memory.join(name);
        let at = |root: &Option<PathBuf>, asked: bool| root.as_ref().filter(|_| asked).map(|root| root.join(name));
        let io = at(&self.io, !confine.io.is_empty());
        match self.version {
            Version::V1 => GroupPaths {
                memory: Some(memory),
                cpuacct: self.cpuacct.as_ref().map(|root| root.join(name)),
                cpu: at(&self.cpu, confine.cpu_thousandths.is_some()),
                io,
                unified: self.unified.as_ref().map(|root| root.join(name)),
            },
            Version::V2 => GroupPaths {
                memory: Some(memory.clone()),
                cpuacct: Some(memory.clone()),
                cpu: Some(memory.clone()),
                io,
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
        let (cpu, io) = (v1("cpu"), v1("blkio"));
        return Some(Hierarchies {
            version: Version::V1,
            memory,
            cpu,
            io,
            cpuacct: v1("cpuacct"),
            unified,
            user: None,
        });
    }
    let root = unified?;
    let known = controllers(&root);
    of_v2(root, &known, None)
}

/// A directory of the v2 hierarchy in which groups are made, with the controllers it has for them.
fn of_v2(root: PathBuf, controllers: &str, user: Option<u32>) -> Option<Hierarchies> {
    let has = |controller: &str| controllers.split_whitespace().any(|name| name == controller);
    let (cpu, io) = (has("cpu").then(|| root.clone()), has("io").then(|| root.clone()));
    let (version, unified) = (Version::V2, Some(root.clone()));
    has("memory").then_some(Hierarchies { version, memory: root, cpu, io, cpuacct: None, unified, user })
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
        let found = find(&parse(V2), |_| "memory cpu".to_owned()).unwrap();
        let half = Confinement { cpu_thousandths: Some(500), ..Confinement::default() };
        assert_eq!(found.paths("webdyno-r-a", &half).all(), [PathBuf::from("/sys/fs/cgroup/webdyno-r-a")]);
        assert_eq!(found.limits(), ["memory", "CPU time"]);
        assert!(found.allow(&half).is_ok());
        let io = model::plan::IoLimits { read: Some(1), ..model::plan::IoLimits::default() };
        let refused = found.allow(&Confinement { io, ..half }).unwrap_err().to_string();
        assert!(
            refused.starts_with("a server's disk traffic cannot be limited: there is no io controller"),
            "{refused}"
        );
        // Where nothing is asked for, v1's other controllers stay out of it.
        let found = find(&parse(V1), |_| String::new()).unwrap();
        let at = |confine: &Confinement| found.paths("g", confine).cpu;
        assert_eq!(at(&Confinement::default()), None);
        assert_eq!(at(&half), Some(PathBuf::from("/sys/fs/cgroup/cpu,cpuacct/g")));
    }
}
