//! The programs themselves, over the files of `app/tests/watch`: what they print now is what was recorded.
//!
//! The files lie over /proc in a mount namespace, and are replaced as soon as a program's first row has come out of its pipe:
//! it looks at them for that row, and again a second later.

use super::{Fake, fixtures, printed, recorded};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};

/// Cases at a time: each waits for a second to pass, and takes a tenth of one.
const AT_ONCE: usize = 4;

const TRIES: usize = 2;

/// A real program.
struct Program {
    words: Vec<String>,
    /// Sets a colour back where it has been told to use none.
    resets: bool,
}

fn dstat() -> Option<Program> {
    if !can_mount() {
        return None;
    }
    if Command::new("dstat").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
        testkit::skip::skipped("dstat is not installed");
        return None;
    }
    Some(Program { words: vec!["dstat".to_owned()], resets: false })
}

fn dool() -> Option<Program> {
    if !can_mount() {
        return None;
    }
    let main = dool_main();
    if !main.exists() {
        testkit::skip::skipped(&format!("{} is not there: dool is not installed", main.display()));
        return None;
    }
    // Not by the first python3 of the path, which may be anyone's.
    Some(Program { words: vec!["/usr/bin/python3".to_owned(), main.display().to_string()], resets: true })
}

/// Where `cargo xtask setup` puts it: into cargo's target folder, in which this test was built.
fn dool_main() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.ancestors().nth(3).unwrap_or(Path::new("/")).join("dool/dool/__main__.py")
}

fn can_mount() -> bool {
    if !rustix::process::geteuid().is_root() {
        testkit::skip::not_here("not root: files cannot be laid over /proc");
        return false;
    }
    let fake = Fake::new();
    let tried = Command::new("unshare").args(["-m", "mount", "--bind"]).arg(fake.proc()).arg("/proc").output();
    let can = tried.as_ref().is_ok_and(|output| output.status.success());
    if !can {
        testkit::skip::not_here(&format!("no mount namespace: {tried:?}"));
    }
    can
}

/// What a program prints when it finds the time to: a machine that stands still for a second makes it leave out a row.
fn print(program: &Program, words: &str, more: &[&str]) -> String {
    let printed = || print_once(program, words, more);
    (0..TRIES).map(|_| printed()).find(|text| !text.contains("missed ")).unwrap_or_else(printed)
}

fn print_once(program: &Program, words: &str, more: &[&str]) -> String {
    let fake = Fake::new();
    let mut child = Command::new("unshare")
        .args(["-m", "sh", "-c", "mount --bind \"$0\" /proc && exec \"$@\""])
        .arg(fake.proc())
        .args(&program.words)
        .args(words.split_whitespace())
        .args(more)
        .args(["1", "2"])
        .env("TZ", "UTC")
        .env_remove("DSTAT_OPTS")
        // What Python deprecates is no matter of ours.
        .env("PYTHONWARNINGS", "ignore")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = child.stdout.take().unwrap();
    let mut printed = String::new();
    while !has_a_row(&tidy(program, &printed)) && read_some(&mut pipe, &mut printed) {}
    fake.becomes("second");
    while read_some(&mut pipe, &mut printed) {}
    let output = child.wait_with_output().unwrap();
    assert!(output.stderr.is_empty(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
    tidy(program, &printed)
}

/// Whether there is something behind the two lines of headings.
fn has_a_row(printed: &str) -> bool {
    printed.trim_start_matches('\n').splitn(3, '\n').nth(2).is_some_and(|row| !row.is_empty())
}

fn read_some(pipe: &mut ChildStdout, printed: &mut String) -> bool {
    let mut piece = [0; 4096];
    let mut length = pipe.read(&mut piece).unwrap();
    let more = length > 0;
    // Frames of dool are of several bytes.
    while more && std::str::from_utf8(&piece[..length]).is_err_and(|error| error.error_len().is_none()) {
        length += pipe.read(&mut piece[length..=length]).unwrap();
    }
    printed.push_str(std::str::from_utf8(&piece[..length]).unwrap());
    more
}

fn tidy(program: &Program, printed: &str) -> String {
    if program.resets { printed.replace("\x1b[0;0m", "").replace("\x1b[7l", "") } else { printed.to_owned() }
}

fn check(program: &Program, record: &str) {
    let cases = recorded(record);
    for several in cases.chunks(AT_ONCE) {
        std::thread::scope(|scope| {
            for (words, expected) in several {
                scope.spawn(move || assert_eq!(&print(program, words, &[]), expected, "{record} {words}"));
            }
        });
    }
}

#[test]
fn dstat_itself_prints_what_was_recorded() {
    let Some(dstat) = dstat() else { return };
    check(&dstat, "dstat-0.8");
}

#[test]
fn dstat_itself_prints_the_processes_that_were_recorded() {
    let Some(dstat) = dstat() else { return };
    let cpus = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    if cpus.trim() != "0-1" {
        testkit::skip::not_here(&format!("CPU {} online: what was recorded are shares of two CPUs", cpus.trim()));
        return;
    }
    check(&dstat, "dstat-0.8-top");
}

#[test]
fn vmstat_itself_prints_our_rows() {
    if !can_mount() {
        return;
    }
    // Older ones read other files, and round in other ways.
    let version = Command::new("vmstat").arg("-V").output().map(|output| output.stdout).unwrap_or_default();
    if !version.starts_with(b"vmstat from procps-ng 4") {
        testkit::skip::not_here("vmstat is not that of procps-ng 4");
        return;
    }
    let vmstat = Program { words: vec!["vmstat".to_owned()], resets: false };
    let (real, ours) = (print(&vmstat, "", &[]), printed("vmstat", ""));
    let (real, ours): (Vec<_>, Vec<_>) = (real.lines().collect(), ours.lines().collect());
    assert_eq!(real[..2], ours[..2]);
    // Its first row divides by the time of all CPUs together: see docs/compatibility/dstat.md.
    let levels = |row: &str| row.split_whitespace().take(6).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(levels(real[2]), levels(ours[2]));
    // It does not look at the memory again within what it takes for the same second.
    let all_but_memory = |row: &str| {
        let fields: Vec<_> = row.split_whitespace().map(str::to_owned).collect();
        [&fields[..2], &fields[6..]].concat()
    };
    assert_eq!(all_but_memory(real[3]), all_but_memory(ours[3]));
}

#[test]
fn dool_itself_prints_what_was_recorded() {
    let Some(dool) = dool() else { return };
    check(&dool, "dool");
}

#[test]
fn dool_itself_prints_the_colours_that_were_recorded() {
    let Some(dool) = dool() else { return };
    check(&Program { resets: false, ..dool }, "dool-colour");
}

#[test]
fn dool_itself_writes_the_csv_file_that_was_recorded() {
    let Some(dool) = dool() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("out.csv");
    let words = "--nocolor --ascii --bytes -cmsdlnry -i -C 0,total --lock";
    print(&dool, words, &["--output", &file.display().to_string(), "--display"]);
    let rows = |text: String| text.split_once("\"Cmdline:\"").unwrap().1.split_once('\n').unwrap().1.to_owned();
    let expected = std::fs::read_to_string(fixtures().join("dool.csv")).unwrap();
    assert_eq!(rows(std::fs::read_to_string(file).unwrap()), rows(expected));
}
