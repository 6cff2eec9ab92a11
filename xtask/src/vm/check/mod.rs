//! The long checks that need a machine of their own. Each boots one, and tells what it saw as a page and what was wrong as sentences.
//!
//! `cargo xtask vm check NAME` runs one by hand, `cargo xtask test --long` all of them; nothing else does.

mod admission;
mod clock;
mod confinement;
mod container;
mod dstat;
mod hybrid;
mod in_place;
mod killed;
mod limits;
mod reboot;
mod storm;
mod table;
mod unit;
mod user;

use super::guest::{Guest, Said};
use super::machine::{Engine, Machine};
use super::places::{self, Places};
use crate::{cargo, root};
use anyhow::{Context, bail, ensure};
use std::process::Command;
use std::time::Duration;

/// What a check saw.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Markdown, for docs/results.
    page: String,
    /// One sentence each.
    wrong: Vec<String>,
}

impl Seen {
    fn titled(title: &str) -> Seen {
        Seen { page: format!("# {title}\n"), wrong: Vec::new() }
    }

    /// Notes what should be true.
    fn expect(&mut self, holds: bool, otherwise: impl FnOnce() -> String) {
        if !holds {
            self.wrong.push(otherwise());
        }
    }

    fn say(&mut self, line: impl AsRef<str>) {
        self.page.push_str(line.as_ref());
        self.page.push('\n');
    }
}

/// One long check.
struct Check {
    name: &'static str,
    run: fn(&mut Machine) -> anyhow::Result<Seen>,
    /// What its kernel is told beside the usual.
    boot: &'static str,
}

const CHECKS: [Check; 10] = [
    Check { name: "storm", run: storm::run, boot: "" },
    Check { name: "confinement", run: confinement::run, boot: "" },
    Check { name: "user", run: user::run, boot: "" },
    Check { name: "hybrid", run: hybrid::run, boot: hybrid::BOOT },
    Check { name: "reboot", run: reboot::run, boot: "" },
    Check { name: "unit", run: unit::run, boot: "" },
    Check { name: "clock", run: clock::run, boot: "" },
    Check { name: "container", run: container::run, boot: "" },
    Check { name: "in-place", run: in_place::run, boot: "" },
    Check { name: "admission", run: admission::run, boot: "" },
];

/// The names of all checks.
pub(super) fn names() -> Vec<&'static str> {
    CHECKS.iter().map(|check| check.name).collect()
}

/// Runs some checks, or all, and prints their pages.
pub(super) fn by_hand(places: &Places, engine: Engine, names: &[String]) -> anyhow::Result<()> {
    for args in [["-p", "webdyno", "--bin", "webdyno"], ["-p", "monitor", "--example", "record"]] {
        let status =
            cargo(&[["build", "--release"].as_slice(), &args].concat()).status().context("cannot run cargo")?;
        ensure!(status.success(), "webdyno does not compile; the compiler's own message stands above");
    }
    let mut wrong = Vec::new();
    for check in CHECKS.iter().filter(|check| names.is_empty() || names.iter().any(|name| name == check.name)) {
        let seen = carry_out(places, engine, check)?;
        println!("{}", seen.page);
        wrong.extend(seen.wrong.iter().map(|sentence| format!("{}: {sentence}", check.name)));
    }
    if !wrong.is_empty() {
        bail!("{}", wrong.join("\n"));
    }
    Ok(())
}

fn carry_out(places: &Places, engine: Engine, check: &Check) -> anyhow::Result<Seen> {
    let mut machine = Machine::start(places, engine, check.boot)?;
    furnish(&machine.guest(), places)?;
    let seen = (check.run)(&mut machine)?;
    machine.stop();
    Ok(seen)
}

/// Where ours lies in the guest.
const OURS: &str = "/opt/webdyno";

/// How long something small may take in the guest, while its host is busy as well.
const SHORT: Duration = Duration::from_secs(120);

/// Puts webdyno, its plans and its sites into the guest.
fn furnish(guest: &Guest, places: &Places) -> anyhow::Result<()> {
    guest.sh(&format!("mkdir -p {OURS}"), SHORT)?;
    for program in [places::webdyno(), places::record()] {
        let name = program.file_name().context("a program has a name")?.to_string_lossy().into_owned();
        ensure!(program.exists(), "no {}: `cargo xtask vm check` builds it", program.display());
        // Without what debuggers read it is a fifth, and a fifth of the time.
        let bare = places.folder().join(&name);
        let status = Command::new("strip").arg("-o").arg(&bare).arg(&program).status().context("cannot run strip")?;
        ensure!(status.success(), "cannot strip {}", program.display());
        guest.put(&bare, &format!("{OURS}/{name}"))?;
        std::fs::remove_file(&bare)?;
    }
    for folder in ["plans", "sites"] {
        guest.put(&root().join(folder), &format!("{OURS}/{folder}"))?;
    }
    // A reset takes what is only in the guest's memory.
    guest.sh("sync", SHORT)?;
    Ok(())
}

/// Whatever bears a run's name, in files, swap, groups and processes.
const REMAINS: &str = "\
find / -xdev \\( -path /opt -o -path /etc -o -path /usr \\) -prune -o -name 'webdyno-2*' -print
ls -d /sys/fs/cgroup/webdyno-* 2> /dev/null
ls /var/lib/webdyno/*.journal 2> /dev/null
grep webdyno- /proc/swaps
ps -e -o comm= | grep -x -e webdyno -e memhog
true
";

/// How sentences about what was put back begin.
const PUT_BACK: [&str; 5] = ["deleted the ", "gave back the ", "removed the group", "took the ", "ended "];

/// What is left of runs.
fn remains(guest: &Guest) -> anyhow::Result<Vec<String>> {
    let said = guest.run(REMAINS, SHORT)?;
    ensure!(said.status.success(), "cannot look for what is left: {}", said.err);
    Ok(said.out.lines().map(str::to_owned).collect())
}

/// What webdyno says that it put back.
fn put_back(said: &Said) -> Vec<&str> {
    let lines = said.out.lines().chain(said.err.lines());
    lines.filter(|line| PUT_BACK.iter().any(|verb| line.contains(verb))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs one check in a machine of its own and keeps its page.
    fn check(name: &str) {
        let Some(results) = testkit::skip::long_results() else { return };
        let places = Places::here();
        if let Some(why) = places.unfit(&super::super::recipe::text()) {
            return testkit::skip::not_here(&why);
        }
        let check = CHECKS.iter().find(|check| check.name == name).unwrap();
        let seen = carry_out(&places, Engine::Translated, check).unwrap();
        std::fs::write(results.join(format!("vm-{name}.md")), &seen.page).unwrap();
        assert!(seen.wrong.is_empty(), "{:#?}\n{}", seen.wrong, seen.page);
    }

    #[test]
    fn long_check_vm_storm() {
        check("storm");
    }

    #[test]
    fn long_check_vm_confinement() {
        check("confinement");
    }

    #[test]
    fn long_check_vm_user() {
        check("user");
    }

    #[test]
    fn long_check_vm_hybrid() {
        check("hybrid");
    }

    #[test]
    fn long_check_vm_reboot() {
        check("reboot");
    }

    #[test]
    fn long_check_vm_unit() {
        check("unit");
    }

    #[test]
    fn long_check_vm_clock() {
        check("clock");
    }

    #[test]
    fn long_check_vm_container() {
        check("container");
    }

    #[test]
    fn long_check_vm_in_place() {
        check("in-place");
    }

    #[test]
    fn long_check_vm_admission() {
        check("admission");
    }
}
