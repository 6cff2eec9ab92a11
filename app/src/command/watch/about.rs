//! What `--cgroup` and `--tree` are about: the directories of a group, the first process of a server.
//!
//! Looked up once, at the start. What cannot be found is an error, because nobody asks for a group to see nothing; only a server that is
//! named may be started later.

use anyhow::{Context, bail, ensure};
use monitor::{GroupDirs, Known, RootError, root_of};
use std::path::{Component, Path, PathBuf};

/// What is typed for the group in which this very program runs: in a container mostly that with the container's limits.
const OWN: &str = ".";

/// The directories of a group, named by its path below a hierarchy (`system.slice/apache2.service`), by a whole path into one, or by [`OWN`].
pub(super) fn group(typed: &str, proc_root: &Path) -> anyhow::Result<GroupDirs> {
    let text = |name: &str| std::fs::read_to_string(proc_root.join(name)).unwrap_or_default();
    // Those that something else is mounted over are listed, too.
    let mounts: Vec<Mount> = text("self/mountinfo").lines().filter_map(Mount::of).filter(Mount::is_seen).collect();
    ensure!(!mounts.is_empty(), "--cgroup {typed}: no control groups are to be seen here");
    let below = mounts.iter().filter_map(|mount| Path::new(typed).strip_prefix(&mount.point).ok());
    // The longest mount point is the one meant: others may be above it.
    let name = below.min_by_key(|rest| rest.as_os_str().len());
    let name = name.unwrap_or_else(|| Path::new(typed.trim_start_matches('/')));
    let own = if typed == OWN { text("self/cgroup") } else { String::new() };
    let of = |has: &dyn Fn(&Mount) -> bool| {
        let mount = mounts.iter().find(|mount| has(mount))?;
        let name = if typed == OWN { mount.own(&own)? } else { name.to_owned() };
        let dir = mount.point.join(&name);
        // A way up leads to directories that are no groups.
        let is_below = !name.components().any(|part| part == Component::ParentDir);
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
        ensure!(typed != OWN, "--cgroup .: the group of this program is not to be seen below {}", points.join(", "));
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
    /// The group that is seen at the mount point.
    root: PathBuf,
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
        let mut mount = mount.split(' ').skip(3).map(PathBuf::from);
        let (root, point) = (mount.next()?, mount.next()?);
        let controllers = kind.nth(1).filter(|_| !unified).unwrap_or_default();
        Some(Mount { root, point, unified, controllers: controllers.split(',').map(str::to_owned).collect() })
    }

    fn is_seen(&self) -> bool {
        self.point.is_dir()
    }

    /// The path below the mount point of the group that /proc/self/cgroup names: `4:memory:/web`, `0::/web`. Both it and the mounts' roots
    /// are told from where the reader's namespace begins. `None` when that group is not below the mount.
    fn own(&self, cgroup: &str) -> Option<PathBuf> {
        let is_ours = |controllers: &str| {
            if self.unified {
                controllers.is_empty()
            } else {
                controllers.split(',').any(|it| self.controllers.iter().any(|own| own == it))
            }
        };
        let mut lines = cgroup.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'));
        let (_, path) = lines.find(|(controllers, _)| is_ours(controllers))?;
        Path::new(path).strip_prefix(&self.root).ok().map(Path::to_owned)
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
        let hidden = unseen(proc_root);
        ensure!(proc_root.join(pid.to_string()).is_dir(), "--tree {typed}: there is no such process{hidden}");
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

/// What is said of a process that was not found where others cannot be seen: every /proc has a first process.
pub(super) fn unseen(proc_root: &Path) -> &'static str {
    let hides = !proc_root.join("1").exists() && proc_root.join("self/stat").exists();
    if hides { " (here /proc shows only processes of one's own: hidepid)" } else { "" }
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
            fake.process(FakeProcess { pid, parent, name, state: 'S', ticks: [0; 4], threads: 1, resident_pages: 1 });
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
        let (hidden, of_one) =
            (tempfile::tempdir().unwrap(), " (here /proc shows only processes of one's own: hidepid)");
        FakeTree::new(hidden.path()).file("self/stat", "");
        assert!(tree("99", hidden.path()).unwrap_err().to_string().ends_with(of_one));
        check("cat", Err("--tree takes the number of a process, apache, nginx or php-fpm, not \"cat\""));
    }

    /// A /proc whose mounts are these below a directory, and groups in them.
    fn groups(mounts: &[(&str, &str)], dirs: &[&str]) -> tempfile::TempDir {
        groups_in("/", mounts, dirs)
    }

    /// The same, where `root` is what is mounted.
    fn groups_in(root: &str, mounts: &[(&str, &str)], dirs: &[&str]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let line = |(point, kind): &(&str, &str)| {
            format!("32 31 0:29 {root} {} rw,relatime shared:9 - {kind}\n", dir.path().join(point).display())
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

    /// With a namespace of groups and without one, as container runtimes have it.
    #[test]
    fn the_own_group_is_that_of_each_hierarchy() {
        let mounts = [("cg/memory", "cgroup cgroup rw,memory"), ("cg/unified", "cgroup2 cgroup2 rw")];
        let own = |root: &str, cgroup: &str| {
            let dir = groups_in(root, &mounts, &["cg/memory/in", "cg/unified"]);
            FakeTree::new(dir.path()).file("proc/self/cgroup", cgroup);
            let found = group(".", &dir.path().join("proc")).map_err(|error| error.to_string())?;
            let below = |found: Option<PathBuf>| {
                found.map(|found| found.strip_prefix(dir.path()).unwrap().display().to_string()).unwrap_or_default()
            };
            Ok((below(found.memory), below(found.unified)))
        };
        let check = |root: &str, cgroup: &str, memory: &str, unified: &str| {
            let expected: Result<_, String> = Ok((memory.to_owned(), unified.to_owned()));
            assert_eq!(own(root, cgroup), expected, "{root} {cgroup}");
        };
        check("/", "4:memory:/\n0::/\n", "cg/memory", "cg/unified");
        check("/docker/7", "4:cpu,memory:/docker/7/in\n0::/docker/7\n", "cg/memory/in", "cg/unified");
        // Somewhere else in one of them.
        check("/docker/7", "4:memory:/docker/7\n0::/docker/70\n", "cg/memory", "");
        let refusal = own("/../..", "4:memory:/\n0::/\n").unwrap_err();
        assert!(refusal.starts_with("--cgroup .: the group of this program is not to be seen below "), "{refusal}");
    }

    #[test]
    fn a_group_where_none_are_to_be_seen() {
        let dir = groups(&[("cg", "cgroup2 cgroup2 rw")], &[]);
        for typed in [".", "/", "web"] {
            let refusal = group(typed, &dir.path().join("proc")).unwrap_err().to_string();
            assert_eq!(refusal, format!("--cgroup {typed}: no control groups are to be seen here"));
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
