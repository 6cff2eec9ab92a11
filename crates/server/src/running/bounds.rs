//! What the groups around a server leave it of the machine, where they are none of ours: those of its service or of a container.

use super::{cpus, group};
use model::trial::Share;
use std::path::{Path, PathBuf};

/// What a server may have, and the groups of it alone that can be watched for it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Bounds {
    /// What it may have.
    pub share: Share,
    /// The group that limits its memory.
    pub memory: Option<PathBuf>,
    /// The group that limits its CPU time.
    pub cpu: Option<PathBuf>,
    /// The group that tells how long it waits, of cgroup v2.
    pub unified: Option<PathBuf>,
}

/// Looks below these roots. What the group of `us` is part of is not watched: its numbers would be the load generator's as well. Nor are, of
/// cgroup v2, groups around its own, whose CPU time is that of others, too.
pub(super) fn of(proc_root: &Path, sys_root: &Path, pid: u32, us: u32) -> Bounds {
    let groups = |pid: u32, controller: &str| group::around(proc_root, sys_root, pid, controller).unwrap_or_default();
    let is_its = |controller: &str, directory: &PathBuf| {
        let (own, v2) = groups(pid, controller);
        !groups(us, controller).0.contains(directory) && (!v2 || own.first() == Some(directory))
    };
    let memory = group::of(proc_root, sys_root, pid);
    let limit = memory.as_ref().map(|group| group.limit);
    let memory = memory.filter(|group| is_its("memory", &group.directory));
    let share = Share { cpus: cpus::of(proc_root, sys_root, pid), memory: limit, is_watched: memory.is_some() };
    Bounds {
        share,
        cpu: cpus::limiting(proc_root, sys_root, pid).filter(|directory| is_its("cpu", directory)),
        unified: memory.as_ref().filter(|group| group.v2).map(|group| group.directory.clone()),
        memory: memory.map(|group| group.directory),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Of process 7, with process 8 as ourselves.
    fn check(groups: [&str; 2], files: &[(&str, &str)], share: Share, watched: [Option<&str>; 3]) {
        let folder = tempfile::tempdir().unwrap();
        let put = |name: String, text: &str| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        for (pid, group) in [7, 8].into_iter().zip(groups) {
            put(format!("proc/{pid}/cgroup"), group);
            put(format!("proc/{pid}/status"), "Cpus_allowed_list:\t0-7\n");
        }
        put("sys/devices/system/cpu/online".to_owned(), "0-7\n");
        files.iter().for_each(|(name, text)| put(format!("sys/fs/cgroup/{name}"), text));
        let found = of(&folder.path().join("proc"), &folder.path().join("sys"), 7, 8);
        let at = |name: &str| folder.path().join("sys/fs/cgroup").join(name);
        let [memory, cpu, unified] = watched.map(|name| name.map(at));
        assert_eq!(found, Bounds { share, memory, cpu, unified });
    }

    #[test]
    fn of_a_service_of_its_own() {
        let files = [("a.service/memory.max", "500"), ("a.service/cpu.max", "200000 100000")];
        let share = Share { cpus: Some(2.0), memory: Some(500), is_watched: true };
        check(["0::/a.service\n", "0::/user.slice\n"], &files, share, [Some("a.service"); 3]);
        let files = [("memory/a/memory.limit_in_bytes", "500"), ("cpu/a/cpu.cfs_quota_us", "-1")];
        let share = Share { cpus: None, memory: Some(500), is_watched: true };
        check(
            ["4:memory:/a/b\n3:cpu,cpuacct:/a\n", "4:memory:/\n3:cpu:/\n"],
            &files,
            share,
            [Some("memory/a"), None, None],
        );
    }

    #[test]
    fn what_is_not_its_alone_is_known_and_not_watched() {
        let files = [("box/memory.max", "500"), ("box/cpu.max", "100000 100000")];
        let share = Share { cpus: Some(1.0), memory: Some(500), is_watched: false };
        // A container that we are in as well; a slice with other services.
        check(["0::/box\n", "0::/box\n"], &files, share, [None; 3]);
        check(["0::/box/a.service\n", "0::/\n"], &files, share, [None; 3]);
        check(["0::/\n", "0::/\n"], &[], Share::default(), [None; 3]);
    }
}
