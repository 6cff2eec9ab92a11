//! Processes of this machine as /proc shows them to everybody, and the memory of one as far as it may be seen.

use super::PROC;
use crate::lossy::read_lossy;
use model::check::{Measure, WorkerMemory};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// One process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    pub(crate) parent: u32,
    /// The session it is in: a daemon's own, or that of a terminal.
    pub(crate) session: u32,
    pub(crate) name: String,
    pub(crate) threads: u64,
    /// User and system time in clock ticks, that of children it has waited for included.
    pub(crate) ticks: u64,
    /// When it started, in clock ticks since the machine did.
    pub(crate) started: u64,
}

impl Process {
    /// Whether it is still there, and no other that got its number.
    pub(crate) fn still_runs(&self) -> bool {
        read(Path::new(PROC), self.pid).is_some_and(|now| now.started == self.started)
    }
}

/// All that are alive.
pub(crate) fn all(proc_root: &Path) -> Vec<Process> {
    let entries = fs::read_dir(proc_root).into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut found: Vec<Process> = pids.filter_map(|pid| read(proc_root, pid)).collect();
    found.sort_unstable_by_key(|process| process.pid);
    found
}

/// One of them; `None` when it has gone or waits to be reaped.
pub(crate) fn read(proc_root: &Path, pid: u32) -> Option<Process> {
    parse(pid, &read_lossy(proc_root.join(pid.to_string()).join("stat")).ok()?)
}

/// `pid (name) state parent ...`: proc(5).
fn parse(pid: u32, stat: &str) -> Option<Process> {
    let (start, rest) = stat.rsplit_once(')')?;
    let (_, name) = start.split_once('(')?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    if matches!(*fields.first()?, "Z" | "X") {
        return None;
    }
    let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
    Some(Process {
        pid,
        parent: u32::try_from(number(1)?).ok()?,
        session: u32::try_from(number(3)?).unwrap_or(0),
        name: name.to_owned(),
        threads: number(17)?,
        ticks: (11..=14).map(number).sum::<Option<u64>>()?,
        started: number(19)?,
    })
}

/// Those below a root, it included.
pub(crate) fn tree(all: &[Process], root: u32) -> Vec<&Process> {
    let mut members = BTreeSet::from([root]);
    loop {
        let more: Vec<u32> = all
            .iter()
            .filter(|process| members.contains(&process.parent) && !members.contains(&process.pid))
            .map(|process| process.pid)
            .collect();
        if more.is_empty() {
            return all.iter().filter(|process| members.contains(&process.pid)).collect();
        }
        members.extend(more);
    }
}

/// Of some processes those whose parent is none of them.
pub(crate) fn roots(all: &[Process], of: &BTreeSet<u32>) -> Vec<u32> {
    let is_root = |process: &&Process| of.contains(&process.pid) && !of.contains(&process.parent);
    all.iter().filter(is_root).map(|process| process.pid).collect()
}

/// Its words; servers put a title in their place, which is then the one word.
pub(crate) fn words(proc_root: &Path, pid: u32) -> Vec<String> {
    let line = fs::read(proc_root.join(pid.to_string()).join("cmdline")).unwrap_or_default();
    let words = line.split(|&byte| byte == 0).filter(|word| !word.is_empty());
    words.map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

/// What workers hold: without what they share where that may be seen of all, else resident without files.
pub(crate) fn memory(proc_root: &Path, workers: &[u32]) -> Option<WorkerMemory> {
    let of = |bytes: fn(&Path, u32) -> Option<u64>| -> Option<Vec<u64>> {
        // One that has gone meanwhile, or waits to be reaped, is none of them; one that may not be seen spoils it.
        let one = |&pid: &u32| match bytes(proc_root, pid) {
            None if read(proc_root, pid).is_none() => None,
            bytes => Some(bytes),
        };
        workers.iter().filter_map(one).collect()
    };
    let measured = of(unshared).map(|bytes| (Measure::Unshared, bytes));
    let (measure, bytes) = measured.or_else(|| Some((Measure::Anonymous, of(anonymous)?)))?;
    let inherited = if measure == Measure::Anonymous { inherited(proc_root, workers) } else { 0 };
    Some(WorkerMemory { inherited, ..WorkerMemory::of(measure, &bytes)? })
}

/// What the parent of those of these that are its copies holds; memory is shared by fork alone, and a logger beside them is a program of
/// its own.
fn inherited(proc_root: &Path, workers: &[u32]) -> u64 {
    let of = |&worker: &u32| {
        let worker = read(proc_root, worker)?;
        let parent = read(proc_root, worker.parent).filter(|parent| parent.name == worker.name)?;
        anonymous(proc_root, parent.pid)
    };
    workers.iter().find_map(of).unwrap_or(0)
}

fn unshared(proc_root: &Path, pid: u32) -> Option<u64> {
    let text = fs::read_to_string(proc_root.join(pid.to_string()).join("smaps_rollup")).ok()?;
    Some(kib(&text, "Private_Clean:")? + kib(&text, "Private_Dirty:")? + kib(&text, "Swap:").unwrap_or(0))
}

fn anonymous(proc_root: &Path, pid: u32) -> Option<u64> {
    let text = read_lossy(proc_root.join(pid.to_string()).join("status")).ok()?;
    Some(kib(&text, "RssAnon:")? + kib(&text, "VmSwap:").unwrap_or(0))
}

/// Bytes of a line such as `RssAnon:  1234 kB`.
pub(crate) fn kib(text: &str, label: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(label))?;
    Some(line.split_ascii_whitespace().next()?.parse::<u64>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: u32, parent: u32) -> Process {
        Process { pid, parent, session: 0, name: "a".into(), threads: 1, ticks: 0, started: 0 }
    }

    #[test]
    fn a_stat_line_with_an_awkward_name() {
        let stat = "7 (a) b)) S 1 7 7 0 -1 4194624 1 2 3 4 10 20 30 40 20 0 3 0 555 1 2";
        let expected =
            Process { name: "a) b)".into(), session: 7, threads: 3, ticks: 100, started: 555, ..process(7, 1) };
        assert_eq!(parse(7, stat), Some(expected));
        assert_eq!(parse(7, "7 (a) Z 1 7 7 0 -1 4194624 1 2 3 4 10 20 30 40 20 0 3 0 555"), None);
    }

    #[test]
    fn trees_and_roots() {
        let all = [process(3, 1), process(4, 9), process(5, 4), process(9, 3)];
        let pids = |found: Vec<&Process>| found.iter().map(|process| process.pid).collect::<Vec<_>>();
        assert_eq!(pids(tree(&all, 9)), [4, 5, 9]);
        assert_eq!(roots(&all, &[4, 5, 9].into()), [9]);
    }

    #[test]
    fn a_worker_that_has_ended_spoils_nothing() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let (proc, own) = (Path::new("/proc"), std::process::id());
        while read(proc, child.id()).is_some() {
            std::thread::yield_now();
        }
        // Nobody has waited for it: its folder is still there.
        assert!(proc.join(child.id().to_string()).exists());
        let held = memory(proc, &[own, child.id(), u32::MAX]).unwrap();
        child.wait().unwrap();
        assert_eq!((held.measure, held.workers), (Measure::Unshared, 1));
    }

    #[test]
    fn what_a_fork_may_share_is_its_parents() {
        let proc = tempfile::tempdir().unwrap();
        for (pid, name, parent, anon) in
            [(7, "apache2", 1, 5000), (8, "apache2", 7, 6000), (9, "memory.cgi", 8, 20_000)]
        {
            let own = proc.path().join(pid.to_string());
            fs::create_dir(&own).unwrap();
            let stat = format!("{pid} ({name}) S {parent} 7 7 0 -1 4194624 1 2 3 4 10 20 30 40 20 0 3 0 555 1 2");
            fs::write(own.join("stat"), stat).unwrap();
            // The kernel cuts long names, if need be inside a letter.
            let (cut, held) = (&b"Name:\t\xe3\x82\n"[..], format!("RssAnon:\t{anon} kB\nVmSwap:\t100 kB\n"));
            fs::write(own.join("status"), [cut, held.as_bytes()].concat()).unwrap();
        }
        let of =
            |workers: &[u32]| memory(proc.path(), workers).map(|held| (held.measure, held.largest, held.inherited));
        assert_eq!(of(&[8]), Some((Measure::Anonymous, 6100 << 10, 5100 << 10)));
        // A program that was started shares nothing with who started it; nor is the parent of one that is gone known.
        assert_eq!(of(&[9]), Some((Measure::Anonymous, 20_100 << 10, 0)));
        assert_eq!(of(&[9, 8]), Some((Measure::Anonymous, 20_100 << 10, 5100 << 10)));
        assert_eq!(of(&[10]), None);
    }

    #[test]
    fn this_process_holds_something() {
        let held = memory(Path::new("/proc"), &[std::process::id()]).unwrap();
        assert!(held.workers == 1 && held.largest == held.total && held.largest > 64 << 10, "{held:?}");
    }
}
