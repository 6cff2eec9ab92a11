//! The programs that watch a machine, and how they are asked for the same: data, and where they are.

use super::super::cases::Limit;
use super::super::programs::{build_webdyno, need, output, target};
use super::super::report::Heading;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program that watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Watcher {
    Webdyno,
    Dstat,
    Dool,
    Vmstat,
    Sar,
    Atop,
}

impl Watcher {
    pub(super) const ALL: [Watcher; 6] =
        [Watcher::Webdyno, Watcher::Dstat, Watcher::Dool, Watcher::Vmstat, Watcher::Sar, Watcher::Atop];

    pub(super) fn name(self) -> &'static str {
        match self {
            Watcher::Webdyno => "webdyno",
            Watcher::Dstat => "dstat",
            Watcher::Dool => "dool",
            Watcher::Vmstat => "vmstat",
            Watcher::Sar => "sar",
            Watcher::Atop => "atop",
        }
    }
}

/// Something to measure.
#[derive(Debug, Clone, Copy)]
pub(super) struct Case {
    pub(super) heading: Heading,
    pub(super) watchers: &'static [Watcher],
    /// What webdyno shows, beside the tree.
    modules: &'static str,
    /// Processes in a tree that is watched; none when 0.
    pub(super) processes: u32,
    pub(super) goals: &'static [Goal],
}

/// A figure that must not be too large.
#[derive(Debug, Clone, Copy)]
pub(super) struct Goal {
    pub(super) what: What,
    pub(super) limit: Limit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// Microseconds of CPU time per tick.
    Tick,
    /// The same by that of another program.
    RatioTo(Watcher),
    /// Memory of the sampler in MiB.
    Resident,
}

const fn at_most(what: What, limit: f64) -> Goal {
    Goal { what, limit: Limit::AtMost(limit) }
}

const RESIDENT: Goal = Goal { what: What::Resident, limit: Limit::Below(12.0) };

const COLUMNS: &str = "-cmsdlnr";
const EVERYTHING: &str = "-cmsdlnr --psi --tcp-trouble --listen --cgroup /";

pub(super) const CASES: [Case; 3] = [
    Case {
        heading: Heading { name: "columns", about: "the columns of `-cmsdlnr`, or what comes near them" },
        watchers: &Watcher::ALL,
        modules: COLUMNS,
        processes: 0,
        goals: &[
            at_most(What::Tick, 300.0),
            at_most(What::RatioTo(Watcher::Dstat), 0.35),
            at_most(What::RatioTo(Watcher::Dool), 0.45),
            RESIDENT,
        ],
    },
    Case {
        heading: Heading { name: "server", about: "the same with cgroup, TCP, pressure and a tree of 12 processes" },
        watchers: &[Watcher::Webdyno],
        modules: EVERYTHING,
        processes: 12,
        goals: &[at_most(What::Tick, 600.0), RESIDENT],
    },
    Case {
        heading: Heading { name: "processes-256", about: "the same with a tree of 256 processes" },
        watchers: &[Watcher::Webdyno],
        modules: EVERYTHING,
        processes: 256,
        goals: &[at_most(What::Tick, 4000.0), RESIDENT],
    },
];

/// The case of that name.
pub(super) fn case_by_name(name: &str) -> Result<Case, String> {
    let names = || CASES.map(|case| case.heading.name).join(", ");
    CASES.into_iter().find(|case| case.heading.name == name).ok_or_else(|| format!("the cases are {}", names()))
}

/// What makes `watcher` watch for so many ticks of a second.
pub(super) fn arguments(watcher: Watcher, case: &Case, root: Option<i32>, ticks: u32) -> Vec<String> {
    let text = match watcher {
        Watcher::Webdyno => {
            let tree = root.map(|root| format!("--tree {root}")).unwrap_or_default();
            format!("watch {} {tree} 1 {ticks}", case.modules)
        }
        Watcher::Dstat | Watcher::Dool => format!("{COLUMNS} 1 {ticks}"),
        Watcher::Vmstat => format!("1 {}", ticks + 1),
        Watcher::Sar => format!("-u -r -S -q -b -d -n DEV 1 {ticks}"),
        // Into a file, as atop is used for recording.
        Watcher::Atop => format!("-w {ticks}-ticks.raw 1 {ticks}"),
    };
    text.split_whitespace().map(str::to_owned).collect()
}

/// The command as it is typed.
pub(super) fn shown(watcher: Watcher, words: &[String]) -> String {
    format!("{} {}", watcher.name(), words.join(" "))
}

/// The programs that are here, and why the others are not.
pub(super) struct Watchers(Vec<(Watcher, Result<Vec<PathBuf>, String>)>);

impl Watchers {
    /// Finds them; `webdyno` stands in for the build of this checkout.
    pub(super) fn find(webdyno: Option<&Path>) -> Watchers {
        let found = |watcher: Watcher| match watcher {
            Watcher::Webdyno => webdyno.map_or_else(build_webdyno, |path| Ok(path.to_owned())).map(|path| vec![path]),
            Watcher::Dool => dool(),
            Watcher::Dstat => need("dstat", "cargo xtask setup").map(|path| vec![path]),
            Watcher::Vmstat | Watcher::Sar | Watcher::Atop => {
                need(watcher.name(), "cargo xtask setup --bench").map(|path| vec![path])
            }
        };
        Watchers(Watcher::ALL.into_iter().map(|watcher| (watcher, found(watcher))).collect())
    }

    /// The command with those words, or why the program is not here.
    pub(super) fn command(&self, watcher: Watcher, words: &[String]) -> Result<Command, String> {
        let program = self.program(watcher)?;
        let mut command = Command::new(&program[0]);
        command.args(&program[1..]).args(words).env("LC_ALL", "C");
        Ok(command)
    }

    fn program(&self, watcher: Watcher) -> Result<&[PathBuf], String> {
        let found = self.0.iter().find(|(found, _)| *found == watcher);
        found
            .map_or_else(|| Err("never looked for".to_owned()), |(_, program)| program.as_deref().map_err(Clone::clone))
    }

    /// Name and version of each.
    pub(super) fn versions(&self) -> Vec<(String, String)> {
        let version = |watcher: Watcher| match (self.program(watcher), watcher) {
            (Err(why), _) => format!("not here: {why}"),
            (Ok(program), Watcher::Sar | Watcher::Atop | Watcher::Vmstat) => output(&program[0], &["-V"]),
            (Ok(program), _) => {
                let words: Vec<&str> =
                    program[1..].iter().filter_map(|word| word.to_str()).chain(["--version"]).collect();
                output(&program[0], &words)
            }
        };
        Watcher::ALL.into_iter().map(|watcher| (watcher.name().to_owned(), version(watcher))).collect()
    }
}

fn dool() -> Result<Vec<PathBuf>, String> {
    let main = target().join("dool/dool/__main__.py");
    let python = need("python3", "cargo xtask setup")?;
    if main.exists() {
        Ok(vec![python, main])
    } else {
        Err("dool is not here; `cargo xtask setup` installs it".to_owned())
    }
}

/// Largest resident memory of a running program; of its sampler when it is webdyno.
pub(super) fn resident_kib(watcher: Watcher, pid: i32) -> Option<u64> {
    let pid = match watcher {
        Watcher::Webdyno => children(pid).into_iter().find(|child| {
            let words = fs::read(format!("/proc/{child}/cmdline")).unwrap_or_default();
            words.split(|byte| *byte == 0).any(|word| word == b"@sampler")
        })?,
        _ => pid,
    };
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// CPU seconds that a program has had, its threads and its children included.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Cpu {
    /// What is shown for every tick.
    pub(super) ticks: f64,
    /// Of webdyno's thread that looks at PSS and USS now and then.
    pub(super) shares: f64,
}

/// The CPU time of a program until now; none when it has ended.
pub(super) fn cpu(pid: i32) -> Option<Cpu> {
    let mut sum = Cpu::default();
    for thread in fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
        let read = |name| fs::read_to_string(thread.path().join(name)).unwrap_or_default();
        let nanoseconds = read("schedstat").split_whitespace().next().and_then(|word| word.parse::<u64>().ok());
        let part = if read("comm").trim() == "shares" { &mut sum.shares } else { &mut sum.ticks };
        *part += nanoseconds.unwrap_or(0) as f64 / 1e9;
    }
    // A zombie has no time any more, but every program that runs has.
    (sum.ticks > 0.0).then(|| {
        children(pid)
            .into_iter()
            .filter_map(cpu)
            .fold(sum, |sum, child| Cpu { ticks: sum.ticks + child.ticks, shares: sum.shares + child.shares })
    })
}

/// The processes whose parent that is.
pub(super) fn children(parent: i32) -> Vec<i32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let has_parent = |pid: &i32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let rest = stat.rsplit_once(") ").map(|(_, rest)| rest.to_owned());
        rest.and_then(|rest| rest.split_whitespace().nth(1)?.parse().ok()) == Some(parent)
    };
    pids.filter(has_parent).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(watcher: Watcher, case: usize, root: Option<i32>, expected: &str) {
        assert_eq!(arguments(watcher, &CASES[case], root, 9).join(" "), expected);
    }

    #[test]
    fn the_same_for_all() {
        check(Watcher::Webdyno, 0, None, "watch -cmsdlnr 1 9");
        check(Watcher::Dool, 0, None, "-cmsdlnr 1 9");
        check(Watcher::Vmstat, 0, None, "1 10");
        check(Watcher::Webdyno, 1, Some(77), "watch -cmsdlnr --psi --tcp-trouble --listen --cgroup / --tree 77 1 9");
    }

    #[test]
    fn cases_by_name() {
        assert_eq!(case_by_name("server").map(|case| case.processes), Ok(12));
        assert!(case_by_name("load").is_err_and(|why| why.contains("processes-256")));
    }
}
