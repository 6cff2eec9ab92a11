//! What a server's processes hold right now, read from /proc. It costs the time that the kernel takes to walk their pages, and page
//! faults of a process wait meanwhile: for now and then, not for once a second.

use crate::running::processes::{Process, all, kib, read, tree};
use model::workers::{Crew, Held};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The processes below each root, by root, and how many of them this user may not see.
#[must_use]
pub fn workers_held(proc_root: &Path, roots: &[u32]) -> (Vec<Crew>, u64) {
    let everybody = all(proc_root);
    let mut unread = 0;
    let mut hold = |pid: u32| {
        let held = held(proc_root, pid);
        // One that has ended meanwhile is not one that may not be seen.
        unread += u64::from(held.is_none() && read(proc_root, pid).is_some());
        held
    };
    let crew = |root: &u32| {
        let name = everybody.iter().find(|process| process.pid == *root)?.name.clone();
        let workers = workers(&everybody, *root);
        let (ours, others): (Vec<&Process>, Vec<&Process>) =
            tree(&everybody, *root).into_iter().partition(|process| workers.contains(&process.pid));
        let threads = ours.iter().map(|process| process.threads).max().unwrap_or(0);
        let workers: Vec<Held> = ours.iter().filter_map(|process| hold(process.pid)).collect();
        let others = others.iter().filter_map(|process| hold(process.pid)).collect();
        (!workers.is_empty()).then_some(Crew { name, threads, workers, others })
    };
    (roots.iter().filter_map(crew).collect(), unread)
}

/// The children of a root that are called as it is: loggers are not. Among workers with threads, the one without is Apache's mod_cgid.
fn workers(everybody: &[Process], root: u32) -> BTreeSet<u32> {
    let name = everybody.iter().find(|process| process.pid == root).map(|process| process.name.as_str());
    let alike = || everybody.iter().filter(|child| child.parent == root && Some(child.name.as_str()) == name);
    let threads = alike().any(|child| child.threads > 1);
    let found: BTreeSet<u32> = alike().filter(|child| child.threads > 1 || !threads).map(|child| child.pid).collect();
    if found.is_empty() { BTreeSet::from([root]) } else { found }
}

fn held(proc_root: &Path, pid: u32) -> Option<Held> {
    let text = fs::read_to_string(proc_root.join(pid.to_string()).join("smaps_rollup")).ok()?;
    let of = |label: &str| kib(&text, label);
    Some(Held {
        resident: of("Rss:")?,
        proportional: of("Pss:")?,
        own: of("Private_Clean:")? + of("Private_Dirty:")?,
        // Not on kernels without swap.
        swapped: of("SwapPss:").unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process: number, parent, name, threads, and KiB resident, proportional, own and swapped where they may be seen.
    type Process<'a> = (u32, u32, &'a str, u64, Option<[u64; 4]>);

    /// A /proc of processes.
    fn check(processes: &[Process<'_>], roots: &[u32], expected: &[(&str, u64, &[u64], &[u64])]) {
        let folder = tempfile::tempdir().unwrap();
        for (pid, parent, name, threads, kib) in processes {
            let own = folder.path().join(pid.to_string());
            fs::create_dir(&own).unwrap();
            let stat =
                format!("{pid} ({name}) S {parent} 1 1 0 -1 4194624 1 2 3 4 10 20 30 40 20 0 {threads} 0 555 1 2\n");
            fs::write(own.join("stat"), stat).unwrap();
            let Some([resident, proportional, private, swapped]) = kib else { continue };
            let rollup = format!(
                "55a0-7ffd ---p 00000000 00:00 0                          [rollup]\nRss:    {resident} kB\nPss:    {proportional} kB\n\
                 Pss_Dirty:    7 kB\nPss_Anon:    7 kB\nShared_Clean:    9 kB\nShared_Dirty:    9 kB\nPrivate_Clean:    1 kB\n\
                 Private_Dirty:    {} kB\nReferenced:    9 kB\nSwap:    99 kB\nSwapPss:    {swapped} kB\nLocked:    0 kB\n",
                private - 1
            );
            fs::write(own.join("smaps_rollup"), rollup).unwrap();
        }
        let (crews, unread) = workers_held(folder.path(), roots);
        let own = |held: &[Held]| held.iter().map(|held| held.own >> 10).collect::<Vec<_>>();
        let seen: Vec<_> = crews
            .iter()
            .map(|crew| (crew.name.as_str(), crew.threads, own(&crew.workers), own(&crew.others)))
            .collect();
        let expected: Vec<_> = expected
            .iter()
            .map(|(name, threads, workers, others)| (*name, *threads, workers.to_vec(), others.to_vec()))
            .collect();
        assert_eq!(seen, expected);
        assert_eq!(unread, processes.iter().filter(|process| process.4.is_none()).count() as u64);
        for held in crews.iter().flat_map(|crew| &crew.workers) {
            assert_eq!((held.resident, held.proportional, held.swapped), (90 << 10, 50 << 10, 3 << 10));
        }
    }

    fn kib(own: u64) -> Option<[u64; 4]> {
        Some([90, 50, own, 3])
    }

    #[test]
    fn workers_of_prefork_with_a_logger_a_program_and_a_pool_beside() {
        let processes = [
            (10, 1, "apache2", 1, kib(10)),
            (11, 10, "rotatelogs", 1, kib(11)),
            (12, 10, "apache2", 1, kib(12)),
            (13, 10, "apache2", 1, None),
            (14, 12, "page.cgi", 1, kib(14)),
            (20, 1, "php-fpm8.2", 1, kib(20)),
            (21, 20, "php-fpm8.2", 1, kib(21)),
            (30, 1, "apache2", 1, kib(30)),
        ];
        let expected: [(&str, u64, &[u64], &[u64]); 2] =
            [("apache2", 1, &[12], &[10, 11, 14]), ("php-fpm8.2", 1, &[21], &[20])];
        check(&processes, &[10, 20, 99], &expected);
    }

    #[test]
    fn the_process_that_starts_programs_is_no_worker_of_event() {
        let processes = [
            (10, 1, "apache2", 1, kib(10)),
            (11, 10, "apache2", 1, kib(11)),
            (12, 10, "apache2", 27, kib(12)),
            (13, 10, "apache2", 27, kib(13)),
        ];
        check(&processes, &[10], &[("apache2", 27, &[12, 13], &[10, 11])]);
    }

    #[test]
    fn a_server_of_one_process_is_its_own_worker() {
        check(&[(10, 1, "node", 11, kib(10))], &[10], &[("node", 11, &[10], &[])]);
    }

    #[test]
    fn real_processes_hold_no_more_than_is_resident() {
        let (crews, unread) = workers_held(Path::new("/proc"), &[std::process::id()]);
        let held = crews[0].workers[0];
        assert_eq!(unread, 0);
        assert!(0 < held.own && held.own <= held.proportional && held.proportional <= held.resident, "{held:?}");
    }
}
