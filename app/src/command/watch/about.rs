//! What `--cgroup` and `--tree` are about: the directories of a group, the first process of a server.
//!
//! Looked up once, at the start. What cannot be found is an error, because nobody asks for a group to see nothing; only a server that is
//! named may be started later.

use anyhow::{Context, bail, ensure};
use monitor::{GroupDirs, Known, RootError, root_of};
use std::path::{Component, Path, PathBuf};

/// The directories of a group, named by its path below a hierarchy (`system.slice/apache2.service`) or by a whole path into one.
pub(super) fn group(typed: &str, proc_root: &Path) -> anyhow::Result<GroupDirs> {
    let text = std::fs::read_to_string(proc_root.join("self/mountinfo")).unwrap_or_default();
    let mounts: Vec<Mount> = text.lines().filter_map(Mount::of).collect();
    ensure!(!mounts.is_empty(), "--cgroup {typed}: this machine has no control groups");
    let below = mounts.iter().filter_map(|mount| Path::new(typed).strip_prefix(&mount.point).ok());
    // The longest mount point is the one meant: others may be above it.
    let name = below.min_by_key(|rest| rest.as_os_str().len());
    let name = name.unwrap_or_else(|| Path::new(typed.trim_start_matches('/')));
    // A way up leads to directories that are no groups.
    let is_below = !name.components().any(|part| part == Component::ParentDir);
    let of = |has: &dyn Fn(&Mount) -> bool| {
        let dir = mounts.iter().find(|mount| has(mount))?.point.join(name);
        (is_below && dir.is_dir()).then_some(dir)
    };
    let unified = of(&|mount| mount.unified);
    // What no v1 hierarchy has is v2's.
    let v1 = |controller: &str| {
        let is_v1 = mounts.iter().any(|mount| mount.controllers.iter().any(|known| known == controller));
        if is_v1 { of(&|mount| mount.controllers.iter().any(|known| known == controller)) } else { unified.clone() }
    };
    let dirs = GroupDirs { memory: v1("memory"), cpuacct: v1("cpuacct"), cpu: v1("cpu"), unified: unified.clone() };
    if dirs == GroupDirs::default() {
        let points: Vec<_> = mounts.iter().map(|mount| mount.point.display().to_string()).collect();
        bail!("--cgroup {typed}: there is no such group; groups are directories below {}", points.join(", "));
    }
    Ok(dirs)
}

/// One sentence about what a group does not tell, because it is not in every hierarchy.
pub(super) fn lacks(typed: &str, dirs: &GroupDirs) -> Option<String> {
    let parts = [(&dirs.memory, "memory"), (&dirs.cpuacct, "CPU time"), (&dirs.unified, "pressure")];
    let missing: Vec<_> = parts.iter().filter(|(dir, _)| dir.is_none()).map(|(_, what)| *what).collect();
    (!missing.is_empty())
        .then(|| format!("--cgroup {typed}: no such group in the hierarchy of {}: dashes", missing.join(", of ")))
}

/// A hierarchy of groups.
struct Mount {
    point: PathBuf,
    /// v2.
    unified: bool,
    /// v1.
    controllers: Vec<String>,
}

impl Mount {
    /// `32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu`
    fn of(line: &str) -> Option<Mount> {
        let (mount, kind) = line.split_once(" - ")?;
        let mut kind = kind.split(' ');
        let unified = match kind.next()? {
            "cgroup" => false,
            "cgroup2" => true,
            _ => return None,
        };
        let point = PathBuf::from(mount.split(' ').nth(4)?);
        let controllers = kind.nth(1).filter(|_| !unified).unwrap_or_default();
        Some(Mount { point, unified, controllers: controllers.split(',').map(str::to_owned).collect() })
    }
}

/// What a process tree begins with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tree {
    /// The number of its first process; `None` while there is none.
    pub(super) root: Option<u32>,
    /// The server that was named, whose first process may be another one later; `None` for a tree that was named by a number.
    pub(super) server: Option<Known>,
}

/// The tree of a process, by its number, or of a server, by its name.
pub(super) fn tree(typed: &str, proc_root: &Path) -> anyhow::Result<Tree> {
    if let Ok(pid) = typed.parse::<u32>() {
        ensure!(proc_root.join(pid.to_string()).is_dir(), "--tree {typed}: there is no such process");
        return Ok(Tree { root: Some(pid), server: None });
    }
    let Some(server) = Known::named(typed) else {
        bail!("--tree takes the number of a process, apache, nginx or php-fpm, not {typed:?}");
    };
    let root = match root_of(proc_root, server) {
        Ok(pid) => Some(pid),
        Err(RootError::None(_)) => None,
        Err(error) => return Err(error).with_context(|| format!("--tree {typed}")),
    };
    Ok(Tree { root, server: Some(server) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::fake_proc::{FakeProcess, FakeTree};

    #[test]
    fn servers_by_number_and_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let fake = FakeTree::new(dir.path());
        let process = |pid, parent, name| {
            fake.process(FakeProcess { pid, parent, name, state: 'S', ticks: [0; 4], resident_pages: 1 });
        };
        process(20, 1, "apache2");
        process(21, 20, "apache2");
        let check = |typed: &str, expected: Result<Tree, &str>| {
            let found = tree(typed, dir.path()).map_err(|error| format!("{error:#}"));
            assert_eq!(found, expected.map_err(str::to_owned));
        };
        check("apache", Ok(Tree { root: Some(20), server: Some(Known::Apache) }));
        check("21", Ok(Tree { root: Some(21), server: None }));
        check("99", Err("--tree 99: there is no such process"));
        check("nginx", Ok(Tree { root: None, server: Some(Known::Nginx) }));
        check("cat", Err("--tree takes the number of a process, apache, nginx or php-fpm, not \"cat\""));
    }

    /// A /proc whose mounts are these below a directory, and groups in them.
    fn groups(mounts: &[(&str, &str)], dirs: &[&str]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let line = |(point, kind): &(&str, &str)| {
            format!("32 31 0:29 / {} rw,relatime shared:9 - {kind}\n", dir.path().join(point).display())
        };
        let text: String = mounts.iter().map(line).collect();
        FakeTree::new(dir.path()).file("proc/self/mountinfo", &text);
        dirs.iter().for_each(|group| std::fs::create_dir_all(dir.path().join(group)).unwrap());
        dir
    }

    #[test]
    fn a_group_of_version_2_is_one_directory() {
        let dir = groups(&[("cg", "cgroup2 cgroup2 rw")], &["cg/web"]);
        let web = dir.path().join("cg/web");
        let one = || Some(web.clone());
        let expected = GroupDirs { memory: one(), cpuacct: one(), cpu: one(), unified: one() };
        for typed in ["web", "/web", &web.display().to_string()] {
            assert_eq!(group(typed, &dir.path().join("proc")).unwrap(), expected, "{typed}");
        }
    }

    #[test]
    fn a_group_of_version_1_has_a_directory_for_each_controller() {
        let mounts = [
            ("cg/memory", "cgroup cgroup rw,memory"),
            ("cg/cpu", "cgroup cgroup rw,cpu,cpuacct"),
            ("cg/unified", "cgroup2 cgroup2 rw"),
        ];
        let dir = groups(&mounts, &["cg/memory/a/b", "cg/cpu/a/b"]);
        let (memory, cpu) = (dir.path().join("cg/memory/a/b"), dir.path().join("cg/cpu/a/b"));
        let expected = GroupDirs {
            memory: Some(memory.clone()),
            cpuacct: Some(cpu.clone()),
            cpu: Some(cpu.clone()),
            unified: None,
        };
        assert_eq!(
            lacks("a/b", &expected).as_deref(),
            Some("--cgroup a/b: no such group in the hierarchy of pressure: dashes")
        );
        for typed in ["a/b".to_owned(), memory.display().to_string(), cpu.display().to_string()] {
            assert_eq!(group(&typed, &dir.path().join("proc")).unwrap(), expected, "{typed}");
        }
        let (above, outside) = (format!("{}/../..", memory.display()), "../../proc");
        for typed in ["c", outside, &format!("{above}/../../proc")] {
            let error = group(typed, &dir.path().join("proc")).unwrap_err().to_string();
            let expected = format!("--cgroup {typed}: there is no such group; groups are directories below ");
            assert!(error.starts_with(&expected), "{error}");
        }
    }
}
