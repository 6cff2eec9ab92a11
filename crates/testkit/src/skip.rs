//! Tests that cannot run where they are, and tests that take too long for every day.
//!
//! `cargo test` hides what a passing test prints, so a test that gives up says it twice: on standard error, past the
//! capture, and as a line of the file that `cargo xtask test` names and lists at its end.
//! Nothing here decides whether something is present: the test looks and tells.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Names the file that collects what was skipped.
const COLLECTED: &str = "WEBDYNO_SKIPS";

/// Names the folder for the results of long checks; set only by `cargo xtask test --long`.
const LONG: &str = "WEBDYNO_LONG";

/// How long the processes of a server that was ended may take to be gone for good, and how often that is looked at.
const MOUNTS_GO: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Says that the calling test gives up because of something `cargo xtask setup` could have installed. Return after it.
///
/// # Panics
/// With the environment variable `CI=true`: there the setup has run, so what is missing is a mistake.
pub fn skipped(why: &str) {
    assert!(
        std::env::var_os("CI").is_none_or(|value| value != "true"),
        "nothing may be missing with CI=true: {why}; run `cargo xtask setup`"
    );
    tell(why);
}

/// Says that the calling test gives up because this machine cannot show it at all: no root, no cgroup, no swap.
/// Never fails, since no installation helps. Return after it.
pub fn not_here(why: &str) {
    tell(why);
}

/// The folder where a long check writes what it found, as `NAME.md`; `None` on every day's run, which lists the check as skipped.
/// A long check's name begins with `long_check_`: that is how `cargo xtask test --long` finds it.
#[must_use]
pub fn long_results() -> Option<PathBuf> {
    let folder = std::env::var_os(LONG).map(PathBuf::from);
    if folder.is_none() {
        tell("takes minutes, run `cargo xtask test --long`");
    }
    folder
}

/// Whether a file can be laid over another here, and whoever else lives has the same mounts and will find it; says so otherwise.
///
/// # Panics
/// When there is no temporary folder.
#[must_use]
pub fn can_mount() -> bool {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let [over, below] = ["over", "below"].map(|name| folder.path().join(name));
    [&over, &below].iter().for_each(|path| std::fs::write(path, "").expect("a file"));
    let tried = rustix::mount::mount_bind(&over, &below);
    let tried = tried.and_then(|()| rustix::mount::unmount(&below, rustix::mount::UnmountFlags::DETACH));
    let below = below.strip_prefix("/").unwrap_or(&below);
    // Those of a server that the test before this one ended are there until the kernel is done with its processes.
    let deadline = Instant::now() + MOUNTS_GO;
    while tried.is_ok() && namespaces_that_see(below) > 1 && Instant::now() < deadline {
        std::thread::sleep(LOOK_AGAIN);
    }
    match tried {
        Err(error) => not_here(&format!("nothing can be mounted: {error}")),
        Ok(()) if namespaces_that_see(below) > 1 => not_here("other processes have mounts of their own"),
        Ok(()) => return true,
    }
    false
}

/// How many different mounts processes have that see a path of ours; a thread of the kernel's does not.
fn namespaces_that_see(path: &Path) -> usize {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten().map(|process| process.path());
    let seeing = processes.filter(|process| process.join("root").join(path).exists());
    let namespaces: BTreeSet<PathBuf> =
        seeing.filter_map(|process| std::fs::read_link(process.join("ns/mnt")).ok()).collect();
    namespaces.len()
}

fn tell(why: &str) {
    let package = std::env::var("CARGO_PKG_NAME").unwrap_or_default();
    let thread = std::thread::current();
    let line = format!("{package}: {}: {why}\n", thread.name().unwrap_or("unnamed test"));
    // Unlike `eprintln!`, a direct write is not captured. Nothing is lost when standard error is closed.
    let _ = std::io::stderr().write_all(format!("skipped: {line}").as_bytes());
    if let Some(file) = std::env::var_os(COLLECTED) {
        // One write of one line to a file opened for appending does not mix with those of other tests.
        OpenOptions::new()
            .create(true)
            .append(true)
            .open(&file)
            .and_then(|mut file| file.write_all(line.as_bytes()))
            .unwrap_or_else(|error| panic!("cannot write to {}: {error}", file.display()));
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    /// Runs the test `inner` below in a process of its own, whose environment we may choose.
    fn check(ci: &str, what: &str, expected: (bool, &str)) {
        let folder = std::env::temp_dir().join(format!("webdyno-skip-{}-{ci}-{what}", std::process::id()));
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "skip::tests::inner"])
            .env("WEBDYNO_SKIP_TEST", what)
            .env("CI", ci)
            .env("CARGO_PKG_NAME", "testkit")
            .env(super::COLLECTED, &folder)
            .env_remove(super::LONG)
            .output()
            .unwrap();
        let collected = std::fs::read_to_string(&folder).unwrap_or_default();
        let _ = std::fs::remove_file(&folder);
        assert_eq!((output.status.success(), collected.as_str()), expected, "CI={ci} {what}");
    }

    #[test]
    fn inner() {
        match std::env::var("WEBDYNO_SKIP_TEST").as_deref() {
            Ok("skipped") => super::skipped("no apache2"),
            Ok("not_here") => super::not_here("no root"),
            Ok("long") => assert!(super::long_results().is_none()),
            _ => {}
        }
    }

    #[test]
    fn only_ci_insists() {
        check("false", "skipped", (true, "testkit: skip::tests::inner: no apache2\n"));
        check("true", "skipped", (false, ""));
        check("true", "not_here", (true, "testkit: skip::tests::inner: no root\n"));
        check("true", "long", (true, "testkit: skip::tests::inner: takes minutes, run `cargo xtask test --long`\n"));
    }
}
