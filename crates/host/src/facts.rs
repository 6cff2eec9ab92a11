//! What is to be said of the machine in the head of a run.

use crate::kernel;
use crate::mounts::{Mount, parse};
use crate::swap::meminfo_value;
use model::run::HostFacts;
use std::path::Path;

/// This machine. What the kernel does not tell is 0 or empty.
#[must_use]
pub fn facts() -> HostFacts {
    read(Path::new("/"))
}

/// The machine whose `/proc` and `/sys` lie below `root`.
fn read(root: &Path) -> HostFacts {
    let text = |file: &str| kernel::text(root.join(file)).unwrap_or_default().trim().to_owned();
    let (meminfo, cpuinfo) = (text("proc/meminfo"), text("proc/cpuinfo"));
    // ARM names no model; what it is built for is better than nothing.
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    HostFacts {
        name: text("proc/sys/kernel/hostname"),
        kernel: text("proc/sys/kernel/osrelease"),
        cpus: count(&text("sys/devices/system/cpu/online")),
        cpu_model: model.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.trim().to_owned()),
        memory: meminfo_value(&meminfo, "MemTotal").unwrap_or(0),
        swap: meminfo_value(&meminfo, "SwapTotal").unwrap_or(0),
        // With psi=0 the files exist and reading them fails.
        psi: !text("proc/pressure/memory").is_empty(),
        cgroups: cgroups(&parse(&text("proc/self/mountinfo"))).to_owned(),
    }
}

/// How many numbers a list such as `0-3,8` names.
fn count(list: &str) -> u32 {
    let numbers = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(last.parse::<u32>().ok()?.checked_sub(first.parse().ok()?)? + 1)
    };
    list.split(',').filter_map(numbers).sum()
}

fn cgroups(mounts: &[Mount]) -> &'static str {
    let mounted = |kind: &str| mounts.iter().any(|mount| mount.kind == kind);
    match (mounted("cgroup"), mounted("cgroup2")) {
        (true, true) => "hybrid",
        (true, false) => "v1",
        (false, true) => "v2",
        (false, false) => "none",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn lists_of_cpus() {
        let check = |list, expected| assert_eq!(count(list), expected, "{list}");
        check("0-3,8", 5);
        check("0", 1);
        check("0-1,4-7", 6);
        check("", 0);
    }

    #[test]
    fn a_machine_is_read_from_its_files() {
        let root = tempfile::tempdir().unwrap();
        let put = |file: &str, text: &[u8]| {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put("proc/sys/kernel/hostname", b"web1\n");
        put("proc/sys/kernel/osrelease", b"6.1.0\n");
        put("sys/devices/system/cpu/online", b"0-1\n");
        put("proc/cpuinfo", b"processor\t: 0\nmodel name\t: Some CPU @ 2.0GHz\nprocessor\t: 1\n");
        put("proc/meminfo", b"MemTotal: 1024 kB\nSwapTotal: 512 kB\n");
        // The first in Latin-1.
        put(
            "proc/self/mountinfo",
            b"25 23 0:21 / /caf\xe9 rw - ext4 a rw\n26 23 0:22 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
        );
        let facts = read(root.path());
        assert_eq!((facts.name.as_str(), facts.kernel.as_str(), facts.cpus), ("web1", "6.1.0", 2));
        assert_eq!(facts.cpu_model, "Some CPU @ 2.0GHz");
        assert_eq!((facts.memory, facts.swap, facts.psi, facts.cgroups.as_str()), (1 << 20, 512 << 10, false, "v2"));
    }

    #[test]
    fn this_machine_has_memory_and_cpus() {
        let facts = facts();
        assert!(facts.cpus > 0 && facts.memory > 0 && !facts.kernel.is_empty(), "{facts:?}");
    }
}
