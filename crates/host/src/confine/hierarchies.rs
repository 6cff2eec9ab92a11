//! Where groups can be made: the hierarchies that are mounted, and which of them this user may use.

use super::GroupPaths;
use super::scope::{self, Scope};
use crate::HostError;
use crate::mounts::{Mount, mounts};
use model::plan::Confinement;
use rustix::fs::{Access, access};
use rustix::io::Errno;
use std::fs;
use std::path::{Path, PathBuf};

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

    pub(super) fn paths(&self, name: &str, confine: &Confinement) -> GroupPaths {
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
pub(super) fn of_v2(root: PathBuf, controllers: &str, user: Option<u32>) -> Option<Hierarchies> {
    let has = |controller: &str| controllers.split_whitespace().any(|name| name == controller);
    let (cpu, io) = (has("cpu").then(|| root.clone()), has("io").then(|| root.clone()));
    let (version, unified) = (Version::V2, Some(root.clone()));
    has("memory").then_some(Hierarchies { version, memory: root, cpu, io, cpuacct: None, unified, user })
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
