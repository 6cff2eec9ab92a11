//! What the server's control group used, was refused and lost: cgroup v1 files now, v2 files when the directory is a v2 one.
//!
//! Of v1's memory.stat the `total_` lines are taken: they include groups below, as the usage does and as all of v2 does.

use super::{Probes, psi};
use crate::text::{Key, key, key_numbers, number};
use crate::watch::GroupDirs;
use model::reading::{Column, Reading};
use std::path::Path;

/// v1 says "no limit" by a number just below 2^63.
const UNLIMITED: u64 = 1 << 62;

/// Whether a column is wanted.
pub(super) type Wants<'a> = &'a dyn Fn(Column) -> bool;

/// Opens the files of every directory that was given, as far as they tell of a column that is wanted.
pub(super) fn open(probes: &mut Probes, dirs: &GroupDirs, wants: Wants<'_>) {
    let mut files = Files { probes, wants };
    match dirs.memory.as_deref() {
        Some(dir) if is_v2(dir) => memory_v2(&mut files, dir),
        Some(dir) => memory_v1(&mut files, dir),
        None => {}
    }
    match dirs.cpuacct.as_deref().filter(|dir| !is_v2(dir)) {
        Some(dir) => {
            files.single(&dir.join("cpuacct.usage"), Column::GroupCpuNs);
            files.single(&dir.join("cpuacct.usage_user"), Column::GroupCpuUserNs);
            files.single(&dir.join("cpuacct.usage_sys"), Column::GroupCpuSystemNs);
        }
        None => cpu_time_v2(&mut files, dirs),
    }
    match dirs.cpu.as_deref() {
        Some(dir) if is_v2(dir) => {
            let time = Key { name: "throttled_usec", column: Column::GroupThrottledNs, times: 1000 };
            files.table(&dir.join("cpu.stat"), throttling(time));
        }
        Some(dir) => {
            files.table(&dir.join("cpu.stat"), throttling(key("throttled_time", Column::GroupThrottledNs)));
        }
        None => {}
    }
    if let Some(dir) = &dirs.unified {
        psi::open_group(files.probes, dir, wants);
    }
}

/// What both versions tell of a limit of CPU time, and the time under the name that each has for it.
fn throttling(time: Key) -> [Key; 3] {
    [key("nr_periods", Column::GroupPeriods), key("nr_throttled", Column::GroupThrottledPeriods), time]
}

fn memory_v1(files: &mut Files<'_>, dir: &Path) {
    files.single(&dir.join("memory.usage_in_bytes"), Column::GroupUsage);
    files.keep(&dir.join("memory.limit_in_bytes"), &[Column::GroupLimit], |text, row| {
        let limit = number(text.trim_ascii()).filter(|&limit| limit < UNLIMITED);
        limit.into_iter().for_each(|limit| row.set(Column::GroupLimit, limit));
    });
    let stat = [
        key("total_rss", Column::GroupAnon),
        key("total_cache", Column::GroupFile),
        key("total_swap", Column::GroupSwap),
        key("total_pgmajfault", Column::GroupMajorFaults),
        key("total_workingset_refault_anon", Column::GroupRefaultAnon),
        key("total_workingset_refault_file", Column::GroupRefaultFile),
    ];
    files.table(&dir.join("memory.stat"), stat);
    files.single(&dir.join("memory.failcnt"), Column::GroupLimitHits);
    files.table(&dir.join("memory.oom_control"), [key("oom_kill", Column::GroupOomKills)]);
}

fn memory_v2(files: &mut Files<'_>, dir: &Path) {
    files.single(&dir.join("memory.current"), Column::GroupUsage);
    // "max" is no number, so an unlimited group has no limit.
    files.single(&dir.join("memory.max"), Column::GroupLimit);
    let stat = [
        key("anon", Column::GroupAnon),
        key("file", Column::GroupFile),
        key("pgmajfault", Column::GroupMajorFaults),
        // Before 5.9 there is one number, of files.
        key("workingset_refault", Column::GroupRefaultFile),
        key("workingset_refault_anon", Column::GroupRefaultAnon),
        key("workingset_refault_file", Column::GroupRefaultFile),
    ];
    files.table(&dir.join("memory.stat"), stat);
    files.single(&dir.join("memory.swap.current"), Column::GroupSwap);
    let events = [key("max", Column::GroupLimitHits), key("oom_kill", Column::GroupOomKills)];
    files.table(&dir.join("memory.events"), events);
}

/// Every v2 directory tells CPU time, even beside v1 controllers.
fn cpu_time_v2(files: &mut Files<'_>, dirs: &GroupDirs) {
    let candidates = [&dirs.cpuacct, &dirs.cpu, &dirs.unified, &dirs.memory];
    let Some(dir) = candidates.into_iter().flatten().find(|dir| is_v2(dir)) else { return };
    let usec = |name, column| Key { name, column, times: 1000 };
    let stat = [
        usec("usage_usec", Column::GroupCpuNs),
        usec("user_usec", Column::GroupCpuUserNs),
        usec("system_usec", Column::GroupCpuSystemNs),
    ];
    files.table(&dir.join("cpu.stat"), stat);
}

fn is_v2(dir: &Path) -> bool {
    dir.join("cgroup.controllers").exists()
}

/// The files of a group that tell of a column that is wanted.
struct Files<'a> {
    probes: &'a mut Probes,
    wants: Wants<'a>,
}

impl Files<'_> {
    /// A file with a number for each of several names.
    fn table<const N: usize>(&mut self, path: &Path, keys: [Key; N]) {
        let columns: Vec<_> = keys.iter().map(|key| key.column).collect();
        self.keep(path, &columns, move |text, row| key_numbers(text, &keys, row));
    }

    /// A file that holds one number.
    fn single(&mut self, path: &Path, column: Column) {
        self.keep(path, &[column], move |text, row| {
            number(text.trim_ascii()).into_iter().for_each(|value| row.set(column, value));
        });
    }

    fn keep(&mut self, path: &Path, columns: &[Column], parse: impl FnMut(&[u8], &mut Reading) + 'static) {
        if columns.iter().any(|&column| (self.wants)(column)) {
            self.probes.keep(path, parse);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::check;
    use super::*;

    fn dirs(root: &Path, memory: &str, cpuacct: &str, cpu: &str, unified: &str) -> GroupDirs {
        let dir = |name: &str| (!name.is_empty()).then(|| root.join(name));
        GroupDirs { memory: dir(memory), cpuacct: dir(cpuacct), cpu: dir(cpu), unified: dir(unified) }
    }

    const V1: [(&str, &str); 9] = [
        ("m/memory.usage_in_bytes", "1000\n"),
        ("m/memory.limit_in_bytes", "209715200\n"),
        (
            "m/memory.stat",
            "cache 1\nrss 2\nswap 3\nhierarchical_memory_limit 4\ntotal_cache 70\ntotal_rss 80\ntotal_rss_huge 9\n\
             total_swap 60\ntotal_swapcached 6\ntotal_pgmajfault 5\ntotal_workingset_refault_anon 41\n\
             total_workingset_refault_file 42\n",
        ),
        ("m/memory.failcnt", "17\n"),
        ("m/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n"),
        ("a/cpuacct.usage", "300\n"),
        ("a/cpuacct.usage_user", "200\n"),
        ("a/cpuacct.usage_sys", "100\n"),
        ("c/cpu.stat", "nr_periods 4\nnr_throttled 3\nthrottled_time 55\n"),
    ];

    #[test]
    fn cgroup_v1() {
        use Column::*;
        check(
            &V1,
            |probes, root| open(probes, &dirs(root, "m", "a", "c", ""), &|_| true),
            &[
                (GroupUsage, 1000),
                (GroupLimit, 209_715_200),
                (GroupAnon, 80),
                (GroupFile, 70),
                (GroupSwap, 60),
                (GroupLimitHits, 17),
                (GroupOomKills, 2),
                (GroupMajorFaults, 5),
                (GroupRefaultAnon, 41),
                (GroupRefaultFile, 42),
                (GroupCpuNs, 300),
                (GroupCpuUserNs, 200),
                (GroupCpuSystemNs, 100),
                (GroupThrottledNs, 55),
                (GroupPeriods, 4),
                (GroupThrottledPeriods, 3),
            ],
        );
    }

    #[test]
    fn v1_without_a_limit_has_none() {
        let files = [("m/memory.limit_in_bytes", "9223372036854771712\n")];
        check(&files, |probes, root| open(probes, &dirs(root, "m", "", "", ""), &|_| true), &[]);
    }

    #[test]
    fn cgroup_v2() {
        use Column::*;
        let files = [
            ("g/cgroup.controllers", "cpu io memory\n"),
            ("g/memory.current", "1000\n"),
            ("g/memory.max", "max\n"),
            ("g/memory.swap.current", "60\n"),
            (
                "g/memory.stat",
                "anon 80\nfile 70\nfile_mapped 1\npgmajfault 5\nworkingset_refault_anon 41\nworkingset_refault_file 42\n",
            ),
            ("g/memory.events", "low 0\nhigh 0\nmax 17\noom 3\noom_kill 2\noom_group_kill 0\n"),
            ("g/cpu.stat", "usage_usec 3\nuser_usec 2\nsystem_usec 1\nnr_throttled 9\nthrottled_usec 7\n"),
        ];
        check(
            &files,
            |probes, root| open(probes, &dirs(root, "g", "", "g", "g"), &|_| true),
            &[
                (GroupUsage, 1000),
                (GroupAnon, 80),
                (GroupFile, 70),
                (GroupSwap, 60),
                (GroupLimitHits, 17),
                (GroupOomKills, 2),
                (GroupMajorFaults, 5),
                (GroupRefaultAnon, 41),
                (GroupRefaultFile, 42),
                (GroupCpuNs, 3000),
                (GroupCpuUserNs, 2000),
                (GroupCpuSystemNs, 1000),
                (GroupThrottledNs, 7000),
                (GroupThrottledPeriods, 9),
            ],
        );
    }

    #[test]
    fn beside_v1_memory_the_unified_directory_tells_cpu_time() {
        let files = [("u/cgroup.controllers", ""), ("u/cpu.stat", "usage_usec 3\nuser_usec 2\nsystem_usec 1\n")];
        check(
            &files,
            |probes, root| open(probes, &dirs(root, "", "", "", "u"), &|_| true),
            &[(Column::GroupCpuNs, 3000), (Column::GroupCpuUserNs, 2000), (Column::GroupCpuSystemNs, 1000)],
        );
    }

    #[test]
    fn only_what_is_wanted_is_read() {
        use Column::*;
        let open = |probes: &mut Probes, root: &Path| {
            open(probes, &dirs(root, "m", "a", "c", ""), &|column| {
                matches!(column, GroupUsage | GroupSwap | GroupCpuNs)
            });
            let names: Vec<_> = probes.files.iter().filter_map(|file| file.path.file_name()?.to_str()).collect();
            assert_eq!(names, ["memory.usage_in_bytes", "memory.stat", "cpuacct.usage"]);
        };
        let of_stat = [(GroupAnon, 80), (GroupFile, 70), (GroupSwap, 60)];
        let later = [(GroupMajorFaults, 5), (GroupRefaultAnon, 41), (GroupRefaultFile, 42), (GroupCpuNs, 300)];
        check(&V1, open, &[&[(GroupUsage, 1000)][..], &of_stat, &later].concat());
    }
}
