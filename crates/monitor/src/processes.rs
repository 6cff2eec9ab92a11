//! Counters of every process of the machine, read in this very process.
//!
//! Reading all of /proc costs milliseconds where there are many processes, and some of its files wait for whoever changes what
//! they tell of: nothing for the sampler, which must not be late. Whoever asks for it here pays for it.

use crate::appointments::now;
use crate::text::{fields, lines, number, stat};
use model::process::{ProcessNumbers, Processes};
use std::path::Path;

/// Files of a process that are read besides its `stat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessFile {
    /// `io`: bytes read and written. For processes of others it takes root.
    Io,
    /// `schedstat`: time on a CPU and waiting for one.
    Sched,
    /// `oom_score`.
    OomScore,
}

/// Reads every process but those in `except`; one that ends meanwhile is left out.
#[must_use]
pub fn processes(proc_root: &Path, files: &[ProcessFile], except: &[u32]) -> Processes {
    let at_ns = now();
    let entries = std::fs::read_dir(proc_root).into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let wanted = pids.filter(|pid| !except.contains(pid));
    let list = wanted.filter_map(|pid| process(&proc_root.join(pid.to_string()), pid, files)).collect();
    Processes { at_ns, list }
}

fn process(folder: &Path, pid: u32, files: &[ProcessFile]) -> Option<ProcessNumbers> {
    let mut numbers = of_stat(&std::fs::read(folder.join("stat")).ok()?, pid)?;
    for file in files {
        let (name, parse): (&str, fn(&[u8], &mut ProcessNumbers)) = match file {
            ProcessFile::Io => ("io", io),
            ProcessFile::Sched => ("schedstat", sched),
            ProcessFile::OomScore => ("oom_score", oom_score),
        };
        if let Ok(text) = std::fs::read(folder.join(name)) {
            parse(&text, &mut numbers);
        }
    }
    Some(numbers)
}

fn of_stat(text: &[u8], pid: u32) -> Option<ProcessNumbers> {
    let (name, fields) = stat(text)?;
    let name = String::from_utf8_lossy(name).into_owned();
    let after: Vec<&[u8]> = fields.collect();
    let at = |position: usize| after.get(position).copied().and_then(number);
    Some(ProcessNumbers {
        pid,
        name: base(&name).to_owned(),
        ticks: at(11)?.saturating_add(at(12)?),
        child_ticks: at(13)?.saturating_add(at(14)?),
        resident_pages: at(21)?,
        ..ProcessNumbers::default()
    })
}

/// A path without its folders; `ksoftirqd/1` is none.
fn base(name: &str) -> &str {
    if name.starts_with(['/', '.']) { name.rsplit('/').next().unwrap_or(name) } else { name }
}

fn io(text: &[u8], numbers: &mut ProcessNumbers) {
    for line in lines(text) {
        let mut fields = fields(line);
        let place = match fields.next() {
            Some(b"rchar:") => &mut numbers.chars_read,
            Some(b"wchar:") => &mut numbers.chars_written,
            Some(b"read_bytes:") => &mut numbers.bytes_read,
            Some(b"write_bytes:") => &mut numbers.bytes_written,
            _ => continue,
        };
        *place = fields.next().and_then(number).unwrap_or(0);
    }
}

fn sched(text: &[u8], numbers: &mut ProcessNumbers) {
    let mut fields = fields(text).map(|field| number(field).unwrap_or(0));
    if let (Some(run), Some(wait), Some(slices)) = (fields.next(), fields.next(), fields.next()) {
        (numbers.run_ns, numbers.wait_ns, numbers.slices) = (run, wait, slices);
    }
}

fn oom_score(text: &[u8], numbers: &mut ProcessNumbers) {
    numbers.oom_score = fields(text).next().and_then(number).unwrap_or(0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::fake_proc::{FakeProcess, FakeTree};

    const ALL: [ProcessFile; 3] = [ProcessFile::Io, ProcessFile::Sched, ProcessFile::OomScore];

    #[test]
    fn every_number_of_a_process() {
        let dir = tempfile::tempdir().unwrap();
        let fake = FakeTree::new(dir.path());
        fake.process(FakeProcess {
            pid: 7,
            parent: 1,
            name: "Web (a) x",
            state: 'S',
            ticks: [1, 20, 300, 4000],
            threads: 1,
            resident_pages: 55,
        });
        fake.file("7/io", "rchar: 1\nwchar: 2\nsyscr: 9\nread_bytes: 3\nwrite_bytes: 4\ncancelled_write_bytes: 9\n");
        fake.file("7/schedstat", "11 22 33\n");
        fake.file("7/oom_score", "666\n");
        fake.file("8/stat", "cut off (8");
        fake.file("meminfo", "MemTotal: 1 kB\n");
        let expected = ProcessNumbers {
            pid: 7,
            name: "Web (a) x".to_owned(),
            ticks: 21,
            child_ticks: 4300,
            resident_pages: 55,
            chars_read: 1,
            chars_written: 2,
            bytes_read: 3,
            bytes_written: 4,
            run_ns: 11,
            wait_ns: 22,
            slices: 33,
            oom_score: 666,
        };
        assert_eq!(processes(dir.path(), &ALL, &[]).list, [expected]);
        assert_eq!(processes(dir.path(), &ALL, &[7]).list, []);
        assert_eq!(processes(dir.path(), &[], &[]).list[0].oom_score, 0);
    }

    #[test]
    fn the_live_machine() {
        let own = std::process::id();
        let all = processes(Path::new("/proc"), &ALL, &[]);
        assert!(all.of(own).is_some_and(|process| process.resident_pages > 0 && process.chars_read > 0), "{all:?}");
        assert!(processes(Path::new("/proc"), &[], &[own]).of(own).is_none());
    }

    #[test]
    fn names_of_paths() {
        assert_eq!(base("/usr/bin/perl"), "perl");
        assert_eq!(base("ksoftirqd/1"), "ksoftirqd/1");
    }
}
