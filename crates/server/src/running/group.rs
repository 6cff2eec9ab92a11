//! The memory group a process lives in, if that, or one around it, has a limit.

use crate::lossy::read_lossy;
use model::check::MemoryGroup;
use std::fs;
use std::path::{Path, PathBuf};

/// A v1 limit of this size or more is none.
const UNLIMITED: u64 = 1 << 60;

/// Looks below `sys_root`, usually /sys.
pub(super) fn of(proc_root: &Path, sys_root: &Path, pid: u32) -> Option<MemoryGroup> {
    let (groups, v2) = around(proc_root, sys_root, pid, "memory")?;
    // The nearest one with a limit: what is inside cannot have more.
    let limited = |directory: PathBuf| {
        let limit = limit(&directory, v2)?;
        Some(MemoryGroup { used: used(&directory, v2), directory, v2, limit })
    };
    groups.into_iter().find_map(limited)
}

/// The groups of a controller that a process lives in, from the inside out, and whether they are of cgroup v2. The outermost has a limit only
/// within a container, which sees its own group there.
pub(super) fn around(proc_root: &Path, sys_root: &Path, pid: u32, controller: &str) -> Option<(Vec<PathBuf>, bool)> {
    let text = read_lossy(proc_root.join(pid.to_string()).join("cgroup")).ok()?;
    let path_of = |controller: &str| {
        text.lines().find_map(|line| {
            let (_, rest) = line.split_once(':')?;
            let (controllers, path) = rest.split_once(':')?;
            controllers.split(',').any(|one| one == controller).then(|| path.trim_start_matches('/').to_owned())
        })
    };
    let root = sys_root.join("fs/cgroup");
    let v1 = path_of(controller).map(|path| (root.join(controller), path, false));
    let (mount, path, v2) = v1.or_else(|| path_of("").map(|path| (root, path, true)))?;
    let inside = |group: &&Path| group.starts_with(&mount);
    Some((mount.join(path).ancestors().take_while(inside).map(Path::to_owned).collect(), v2))
}

fn limit(directory: &Path, v2: bool) -> Option<u64> {
    let file = if v2 { "memory.max" } else { "memory.limit_in_bytes" };
    let limit = fs::read_to_string(directory.join(file)).ok()?.trim().parse().ok()?;
    (limit < UNLIMITED).then_some(limit)
}

/// What cannot be dropped: pages of no file.
pub(super) fn used(directory: &Path, v2: bool) -> Option<u64> {
    let text = fs::read_to_string(directory.join("memory.stat")).ok()?;
    let label = if v2 { "anon " } else { "total_rss " };
    text.lines().find_map(|line| line.strip_prefix(label))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(cgroup: &str, files: &[(&str, &str)], expected: Option<(&str, u64, u64)>) {
        let folder = tempfile::tempdir().unwrap();
        let put = |name: String, text: &str| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put("proc/7/cgroup".to_owned(), cgroup);
        files.iter().for_each(|(name, text)| put(format!("sys/fs/cgroup/{name}"), text));
        let found = of(&folder.path().join("proc"), &folder.path().join("sys"), 7);
        let told = found.map(|group| {
            let directory = group.directory.strip_prefix(folder.path().join("sys/fs/cgroup")).unwrap();
            (directory.display().to_string(), group.limit, group.used.unwrap())
        });
        assert_eq!(told, expected.map(|(directory, limit, used)| (directory.to_owned(), limit, used)));
    }

    #[test]
    fn the_nearest_limit_counts() {
        let v2 = [
            ("a.slice/memory.max", "1000\n"),
            ("a.slice/memory.stat", "file 3\nanon 70\n"),
            ("a.slice/b/memory.max", "max\n"),
        ];
        check("0::/a.slice/b\n", &v2, Some(("a.slice", 1000, 70)));
        let v1 = [("memory/x/memory.limit_in_bytes", "500"), ("memory/x/memory.stat", "rss 1\ntotal_rss 9\n")];
        check("5:cpu,cpuacct:/\n4:memory:/x\n0::/\n", &v1, Some(("memory/x", 500, 9)));
        check("4:memory:/x\n", &[("memory/x/memory.limit_in_bytes", "9223372036854771712")], None);
        // A container, in whose own view its group is the outermost, of either version.
        check("0::/\n", &[("memory.max", "5"), ("memory.stat", "anon 1\n")], Some(("", 5, 1)));
        let v1 = [("memory/memory.limit_in_bytes", "500"), ("memory/memory.stat", "total_rss 9\n")];
        check("4:memory:/docker/7\n", &v1, Some(("memory", 500, 9)));
        check("0::/\n", &[], None);
    }
}
