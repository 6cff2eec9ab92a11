//! What `--cgroup` and `--tree` are about: the directories of a group, the first process of a server.
//!
//! Looked up once, at the start. What cannot be found is an error, because nobody asks for a group to see nothing.

use anyhow::{bail, ensure};
use monitor::GroupDirs;
use std::path::{Path, PathBuf};

/// The directories of a group, named by its path below a hierarchy (`system.slice/apache2.service`) or by a whole path into one.
pub(super) fn group(typed: &str, proc_root: &Path) -> anyhow::Result<GroupDirs> {
    let text = std::fs::read_to_string(proc_root.join("self/mountinfo")).unwrap_or_default();
    let mounts: Vec<Mount> = text.lines().filter_map(Mount::of).collect();
    ensure!(!mounts.is_empty(), "--cgroup {typed}: this machine has no control groups");
    let below = mounts.iter().filter_map(|mount| Path::new(typed).strip_prefix(&mount.point).ok());
    // The longest mount point is the one meant: others may be above it.
    let name = below.min_by_key(|rest| rest.as_os_str().len());
    let name = name.unwrap_or_else(|| Path::new(typed.trim_start_matches('/')));
    let of = |has: &dyn Fn(&Mount) -> bool| {
        let dir = mounts.iter().find(|mount| has(mount))?.point.join(name);
        dir.is_dir().then_some(dir)
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

/// The first process of a server: by its number, or the only one of a name that no other of the name has started.
pub(super) fn tree(typed: &str, proc_root: &Path) -> anyhow::Result<u32> {
    if let Ok(pid) = typed.parse::<u32>() {
        ensure!(proc_root.join(typed).is_dir(), "--tree {typed}: there is no such process");
        return Ok(pid);
    }
    let called: Vec<Process> = processes(proc_root).filter(|process| is_called(&process.name, typed)).collect();
    let first = |process: &&Process| !called.iter().any(|other| other.pid == process.parent);
    let roots: Vec<String> = called.iter().filter(first).map(|process| process.pid.to_string()).collect();
    match roots.as_slice() {
        [] => bail!("--tree {typed}: no process is called so; give the number of one"),
        [pid] => Ok(pid.parse()?),
        several => bail!("--tree {typed}: there are several ({}); give the number of one", several.join(", ")),
    }
}

/// Servers go by other names on other systems.
fn is_called(name: &str, typed: &str) -> bool {
    match typed {
        "apache" => ["apache2", "httpd"].contains(&name),
        "php-fpm" => name.starts_with("php-fpm"),
        // The kernel keeps fifteen bytes of a name.
        _ => name == typed || (typed.len() > 15 && typed.as_bytes().get(..15) == Some(name.as_bytes())),
    }
}

struct Process {
    pid: u32,
    parent: u32,
    name: String,
}

fn processes(proc_root: &Path) -> impl Iterator<Item = Process> {
    let entries = std::fs::read_dir(proc_root).into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let text = std::fs::read(entry.path().join("stat")).ok()?;
        let text = String::from_utf8_lossy(&text);
        // The name may hold blanks and parentheses.
        let (head, rest) = text.rsplit_once(')')?;
        let name = head.split_once('(')?.1.to_owned();
        let parent = rest.split_whitespace().nth(1)?.parse().ok()?;
        Some(Process { pid, parent, name })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::fake_proc::{FakeProcess, FakeTree};

    fn process(pid: u32, parent: u32, name: &'static str) -> FakeProcess<'static> {
        FakeProcess { pid, parent, name, state: 'S', ticks: [0; 4], resident_pages: 1 }
    }

    #[test]
    fn servers_by_number_and_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let fake = FakeTree::new(dir.path());
        [
            process(1, 0, "init"),
            process(20, 1, "apache2"),
            process(21, 20, "apache2"),
            process(22, 21, "sh (apache2"),
            process(30, 1, "nginx"),
            process(31, 30, "nginx"),
            process(40, 1, "nginx"),
            process(50, 1, "php-fpm8.2"),
        ]
        .into_iter()
        .for_each(|process| fake.process(process));
        let check = |typed: &str, expected: Result<u32, &str>| {
            let found = tree(typed, dir.path()).map_err(|error| error.to_string());
            assert_eq!(found, expected.map_err(str::to_owned));
        };
        check("apache", Ok(20));
        check("php-fpm", Ok(50));
        check("22", Ok(22));
        check("99", Err("--tree 99: there is no such process"));
        check("lighttpd", Err("--tree lighttpd: no process is called so; give the number of one"));
        let error = tree("nginx", dir.path()).unwrap_err().to_string();
        assert!(error.contains("there are several (") && error.contains("30") && error.contains("40"), "{error}");
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
        let web = Some(dir.path().join("cg/web"));
        let expected = GroupDirs { memory: web.clone(), cpuacct: web.clone(), cpu: web.clone(), unified: web.clone() };
        for typed in ["web", "/web", &web.unwrap().display().to_string()] {
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
        for typed in ["a/b".to_owned(), memory.display().to_string(), cpu.display().to_string()] {
            assert_eq!(group(&typed, &dir.path().join("proc")).unwrap(), expected, "{typed}");
        }
        let error = group("c", &dir.path().join("proc")).unwrap_err().to_string();
        assert!(error.starts_with("--cgroup c: there is no such group; groups are directories below "), "{error}");
    }
}
