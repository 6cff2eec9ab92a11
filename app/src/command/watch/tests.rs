//! Our rows against those of dstat 0.7.2, dstat 0.8.0 and dool 1.3.8, over the same files of /proc: `app/tests/watch/`.
//!
//! `first` is what the programs found when they started and `second` what they found a second later; the texts and CSV files
//! beside them are what they then printed. Where the real dstat is installed, a test lets it print it again.

use super::meant::{Meant, meant};
use crate::flags::watch::{Layout, parse};
use model::SECOND;
use model::reading::Reading;
use monitor::Reader;
use report::watch::{Compat, Screen, Sight, Start, Tick, csv, vmstat};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/watch")
}

/// A directory that stands for /proc, with /sys beside it.
struct Fake {
    dir: tempfile::TempDir,
}

impl Fake {
    fn new() -> Fake {
        let fake = Fake { dir: tempfile::tempdir().unwrap() };
        fake.becomes("first");
        for disk in ["sda", "vda", "dm-0/slaves/sda1"] {
            std::fs::create_dir_all(fake.sys().join("block").join(disk)).unwrap();
        }
        fake
    }

    fn proc(&self) -> PathBuf {
        self.dir.path().join("proc")
    }

    fn sys(&self) -> PathBuf {
        self.dir.path().join("sys")
    }

    /// Writes the files of an instant over those of the one before, so that whoever has them open reads the new text.
    fn becomes(&self, instant: &str) {
        copy(&fixtures().join(instant), &self.proc());
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            std::fs::write(to, std::fs::read(entry.path()).unwrap()).unwrap();
        }
    }
}

/// Both instants, a second apart, as the flags want them read.
struct Watched {
    meant: Meant,
    screen: Screen,
    looks: [(Reading, Vec<u64>); 2],
}

impl Watched {
    fn new(compat: &str, words: &str) -> Watched {
        let words: Vec<String> = ["--compat", compat]
            .into_iter()
            // Those of dool that only say what we do anyway.
            .chain(words.split_whitespace().filter(|word| *word != "--ascii"))
            .map(str::to_owned)
            .collect();
        let flags = parse(&words).unwrap();
        let fake = Fake::new();
        let meant = meant(&flags, &fake.proc(), &fake.sys(), false);
        let mut reader = Reader::open(&meant.watch);
        let mut looks = [reader.read(), {
            fake.becomes("second");
            reader.read()
        }];
        looks[1].0.at_ns = looks[0].0.at_ns + SECOND;
        let screen = Screen::new(&meant.shown, meant.style, "");
        Watched { meant, screen, looks }
    }

    fn tick(&self, row: usize) -> Tick<'_> {
        let sight = |row: usize| Sight { reading: &self.looks[row].0, devices: &self.looks[row].1 };
        Tick {
            from: row.checked_sub(1).map(sight),
            to: sight(row),
            roster: &self.meant.watch.devices,
            page_bytes: 4096,
            epoch: 0.0,
            clock: "",
        }
    }

    fn row(&self, row: usize) -> String {
        self.screen.row(&self.tick(row), true, None)
    }
}

/// What the program prints into a pipe, as far as it is rows.
fn printed(compat: &str, words: &str) -> String {
    let watched = Watched::new(compat, words);
    let screen = &watched.screen;
    let (headings, rows) = (screen.headings(true, true), [watched.row(0), watched.row(1)]);
    match watched.meant.layout {
        Layout::Modules(Compat::Dool) => format!("\n{headings}{}\n{}\n", rows[0], rows[1]),
        // With colours it takes the pipe for a terminal.
        _ if watched.meant.style.colour => {
            format!("\x1b[7l{headings}{}{}{}\n\x1b[0;0m", rows[0], screen.start(Start::Below), rows[1])
        }
        _ => format!("{headings}{}\n{}\n", rows[0], rows[1]),
    }
}

/// What a real program printed: words and text.
fn recorded(compat: &str) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(fixtures().join(format!("{compat}.txt"))).unwrap();
    let cases = text.split("# end\n").filter_map(|case| case.strip_prefix("# ")?.split_once('\n'));
    // Version 0.7.2 asks every pipe not to wrap its lines.
    cases
        .map(|(words, text)| {
            (words.to_owned(), if text.contains("\x1b[1;") { text.to_owned() } else { text.replace("\x1b[7l", "") })
        })
        .collect()
}

fn check_recorded(compat: &str) {
    let cases = recorded(compat);
    assert!(cases.len() > 8, "{compat}");
    for (words, expected) in cases {
        assert_eq!(printed(compat, &words), expected, "{compat} {words}");
    }
}

#[test]
fn rows_are_those_of_dstat_0_7_2() {
    check_recorded("dstat-0.7.2");
}

#[test]
fn rows_are_those_of_dstat_0_8() {
    check_recorded("dstat-0.8");
}

#[test]
fn rows_are_those_of_dool() {
    check_recorded("dool");
}

#[test]
fn csv_files_are_those_of_the_programs() {
    for (compat, words) in [
        ("dstat-0.7.2", "-cmsdlnry -i -C 0,total --lock"),
        ("dstat-0.8", "-cmsdlnry -i -C 0,total --lock"),
        ("dool", "--nocolor --bytes -cmsdlnry -i -C 0,total --lock"),
    ] {
        let expected = std::fs::read_to_string(fixtures().join(format!("{compat}.csv"))).unwrap();
        let rows = expected.split_once("\"Cmdline:\"").and_then(|(_, rest)| rest.split_once('\n')).unwrap().1;
        let watched = Watched::new(compat, words);
        let ours = [
            csv::headings(&watched.screen, false),
            csv::row(&watched.screen, &watched.tick(0), false),
            csv::row(&watched.screen, &watched.tick(1), false),
        ];
        assert_eq!(ours.concat(), rows.trim_start_matches('\n'), "{compat}");
    }
}

#[test]
fn vmstat_has_its_own_columns() {
    let watched = Watched::new("vmstat", "");
    assert_eq!(watched.meant.layout, Layout::Vmstat);
    let headings: Vec<_> = vmstat::HEADINGS.lines().map(str::len).collect();
    let row = vmstat::row(&watched.tick(1));
    // Of the second heading's length, apart from what is wider than its column.
    assert_eq!(row, "12  3  70656  48844    430  49631  616 71112   616 66560 12345 36099 22 48 10 18  2");
    assert_eq!(headings, [81, 81]);
}

#[test]
fn what_is_not_there_is_noted() {
    let words: Vec<String> = ["-c", "-n", "-N", "eth9"].map(str::to_owned).to_vec();
    let fake = Fake::new();
    let meant = meant(&parse(&words).unwrap(), &fake.proc(), &fake.sys(), false);
    assert_eq!(meant.shown.len(), 1);
    assert_eq!(meant.notes, ["no net is there to be shown"]);
}

/// Runs the real dstat over the files, which lie over /proc in a world of its own; `None` where that cannot be.
fn dstat(words: &str) -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        testkit::skip::not_here("not root: files cannot be laid over /proc");
        return None;
    }
    if Command::new("dstat").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
        testkit::skip::skipped("dstat is not installed");
        return None;
    }
    let fake = Fake::new();
    let child = Command::new("unshare")
        .args(["-m", "sh", "-c", "mount --bind \"$0\" /proc && exec dstat \"$@\""])
        .arg(fake.proc())
        .args(words.split_whitespace())
        .args(["1", "2"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Between its two readings, which are a second apart.
    std::thread::sleep(Duration::from_millis(600));
    fake.becomes("second");
    let output = child.wait_with_output().unwrap();
    if !output.status.success() && output.stdout.is_empty() {
        testkit::skip::not_here(&format!("no mount namespace: {}", String::from_utf8_lossy(&output.stderr)));
        return None;
    }
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn dstat_itself_prints_what_was_recorded() {
    for (words, expected) in recorded("dstat-0.8") {
        let Some(real) = dstat(&words) else { return };
        assert_eq!(real, expected, "dstat {words}");
    }
}
