//! Our rows against those of dstat 0.7.2, dstat 0.8.0 and dool 1.3.8, over the same files of /proc: `app/tests/watch/`.
//!
//! `first` is what the programs found when they started and `second` what they found a second later; the texts and CSV files
//! beside them are what they then printed. `oracle` lets the programs that are installed print it again.

#[path = "oracle.rs"]
mod oracle;

use super::beat::Moment;
use super::meant::{Meant, meant};
use super::place::Terminal;
use super::rows::{Machine, Rows, Seen, Size, Wall};
use crate::flags::watch::{Layout, Name, parse};
use model::SECOND;
use model::process::Processes;
use model::reading::Look;
use monitor::{Reader, processes};
use std::path::{Path, PathBuf};

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

/// What a terminal that is none can do.
const PIPE: Terminal = Terminal { updates: false, colour: false };

/// What the flags mean over the files of the first instant.
fn meant_by(name: Name, words: &[&str], terminal: Terminal) -> (Fake, Meant) {
    let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
    let fake = Fake::new();
    let meant = meant(name, &parse(name, &words).unwrap(), terminal, &fake.proc(), &fake.sys()).unwrap();
    (fake, meant)
}

/// Both instants, a second apart, as the flags want them read.
struct Watched {
    meant: Meant,
    looks: [Look; 2],
    processes: [Option<Processes>; 2],
}

impl Watched {
    fn new(compat: &str, words: &str) -> Watched {
        let words: Vec<&str> = ["--compat", compat].into_iter().chain(words.split_whitespace()).collect();
        let (fake, meant) = meant_by(Name::Dstat, &words, PIPE);
        let mut reader = Reader::open(&meant.watch);
        let mut looks = Vec::new();
        let mut all = Vec::new();
        for (second, instant) in ["first", "second"].into_iter().enumerate() {
            fake.becomes(instant);
            let mut look = reader.read();
            look.reading.at_ns = SECOND * second as u64;
            looks.push(look);
            let files = meant.process_files.as_ref();
            let read =
                |files: &Vec<_>| Processes { at_ns: SECOND * second as u64, ..processes(&fake.proc(), files, &[]) };
            all.push(files.map(read));
        }
        Watched { meant, looks: looks.try_into().unwrap(), processes: all.try_into().unwrap() }
    }

    /// What goes to the screen, and what into the file behind the names of host and user.
    fn drawn(&self) -> (String, String) {
        let mut rows = Rows::new(&self.meant, MACHINE, "");
        let (mut text, mut file) = (rows.opening().to_owned(), rows.csv_headings());
        for (look, processes) in self.looks.iter().zip(&self.processes) {
            let seen = seen(look, processes.as_ref());
            file += &rows.csv_line(seen, WALL);
            text += &rows.draw(seen, FINAL, WALL, None, None).text;
        }
        (text + rows.ending(), file)
    }
}

/// That of the files.
const MACHINE: Machine = Machine { page_bytes: 4096, cpus: 2 };

fn seen<'a>(look: &'a Look, processes: Option<&'a Processes>) -> Seen<'a> {
    Seen { look, processes }
}

const FINAL: Moment = Moment { fixed: true, late_s: None };
const WALL: Wall<'_> = Wall { epoch: 0.0, clock: "" };

/// What the program prints into a pipe.
fn printed(compat: &str, words: &str) -> String {
    Watched::new(compat, words).drawn().0
}

/// What a real program printed: words and text.
fn recorded(compat: &str) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(fixtures().join(format!("{compat}.txt"))).unwrap();
    let cases = text.split("# end\n").filter_map(|case| case.strip_prefix("# ")?.split_once('\n'));
    // Version 0.7.2 asks every pipe not to wrap its lines.
    cases
        .map(|(words, text)| {
            (
                words.to_owned(),
                if text.contains("\x1b[1;") || text.contains("\x1b[38;") {
                    text.to_owned()
                } else {
                    text.replace("\x1b[7l", "")
                },
            )
        })
        .collect()
}

fn check_recorded(compat: &str, record: &str) {
    let cases = recorded(record);
    assert!(cases.len() > 4, "{record}");
    for (words, expected) in cases {
        assert_eq!(printed(compat, &words), expected, "{compat} {words}");
    }
}

#[test]
fn rows_are_those_of_dstat_0_7_2() {
    check_recorded("dstat-0.7.2", "dstat-0.7.2");
}

#[test]
fn rows_are_those_of_dstat_0_8() {
    check_recorded("dstat-0.8", "dstat-0.8");
}

#[test]
fn rows_are_those_of_dool() {
    check_recorded("dool", "dool");
}

#[test]
fn colours_are_those_of_dool() {
    check_recorded("dool", "dool-colour");
}

#[test]
fn processes_on_top_are_those_of_dstat_0_8() {
    check_recorded("dstat-0.8", "dstat-0.8-top");
}

#[test]
fn processes_on_top_in_the_file() {
    let file = Watched::new("dstat-0.8", "--top-cpu --top-io-adv").drawn().1;
    let rows: Vec<_> = file.lines().skip(2).collect();
    assert_eq!(rows[0].split('\t').next(), Some("mysqld / 0%,Top: mysqld"));
    assert_eq!(rows[1], "perl / 39%,Top: /usr/bin/perl\t123456779.0\t0.0\t39.5".replace("/usr/bin/", ""));
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
        let ours = Watched::new(compat, words).drawn().1;
        assert_eq!(ours, rows.trim_start_matches('\n'), "{compat}");
    }
}

#[test]
fn vmstat_has_its_own_columns() {
    let watched = Watched::new("vmstat", "");
    assert_eq!(watched.meant.layout, Layout::Vmstat);
    let text = watched.drawn().0;
    let lines: Vec<_> = text.lines().collect();
    assert_eq!((lines[0].len(), lines[1].len(), lines.len()), (80, 80, 4));
    // Of the second heading's length, apart from what is wider than its column.
    assert_eq!(lines[3], "12  3  70656  48844    430  49631  616 71112   616 66560 12345 36099 21 52  9 18  1");
}

#[test]
fn what_is_not_there_is_noted() {
    let (_fake, meant) = meant_by(Name::Dstat, &["-c", "-n", "-N", "eth9"], PIPE);
    assert_eq!(meant.shown.len(), 1);
    assert_eq!(meant.notes, ["no net is there to be shown"]);
}

#[test]
fn a_device_that_is_named_wrongly_is_noted_without_its_module_as_well() {
    let (_fake, meant) = meant_by(Name::Webdyno, &["-N", "eth9"], PIPE);
    assert_eq!(meant.notes, ["no net is there to be shown"]);
}

/// A row that was held up has no processes. The next one is over the time since they were looked at last.
#[test]
fn rows_without_processes_are_empty_and_make_nothing_of_the_next_one() {
    let watched = Watched::new("dstat-0.8", "--top-cpu");
    let [first, second] = &watched.looks;
    let [before, after] = watched.processes.each_ref().map(Option::as_ref);
    let drawn = |seen_at: [(&Look, Option<&Processes>); 3]| {
        let mut rows = Rows::new(&watched.meant, MACHINE, "");
        seen_at.map(|(look, processes)| rows.draw(seen(look, processes), FINAL, WALL, None, None).text)
    };
    let [_, _, usual] = drawn([(first, before), (first, before), (second, after)]);
    let [_, empty, next] = drawn([(first, before), (first, None), (second, after)]);
    assert_eq!((empty.trim(), &next), ("", &usual));
    // Nobody has looked before: what passed since the machine was started is no row's.
    let [_, empty, later] = drawn([(first, None), (first, before), (second, after)]);
    assert_eq!((empty.trim(), &later), ("", &usual));
}

#[test]
fn processes_are_looked_at_for_the_newest_row_alone() {
    let is = |look_ms: u64, newest_ms: u64| super::is_held_up(look_ms * 1_000_000, newest_ms * 1_000_000, SECOND);
    assert_eq!([is(5000, 5000), is(5000, 5400), is(5000, 5950), is(5000, 9000)], [false, false, true, true]);
}

/// What a terminal of so many lines and columns is sent for looks at these moments.
fn on_a_terminal(words: &[&str], looks: &[(Moment, Size)]) -> Vec<String> {
    let (_fake, meant) = meant_by(Name::Dstat, words, Terminal { updates: true, colour: false });
    let look = Reader::open(&meant.watch).read();
    let mut rows = Rows::new(&meant, MACHINE, "");
    let drawn = looks.iter().map(|&(moment, size)| rows.draw(seen(&look, None), moment, WALL, Some(size), None).text);
    // What is there, not what it says.
    let outline = |text: String| text.lines().map(|line| line.replace(|c: char| c.is_ascii_digit(), "")).collect();
    let lines: Vec<Vec<String>> = drawn.map(outline).collect();
    lines.into_iter().map(|lines| lines.iter().map(|line| kind(line)).collect::<Vec<_>>().join("+")).collect()
}

/// A line in a word.
fn kind(line: &str) -> &'static str {
    match line {
        _ if line.contains("load-avg") => "titles",
        _ if line.contains("m   m  m") => "names",
        "" => "down",
        _ if line.contains("\x1b[u") => "over",
        _ if line.contains(" late ") => "late row",
        _ => "row",
    }
}

#[test]
fn a_terminal_sees_each_row_change_until_it_is_final() {
    let size = Size { lines: 24, columns: 80 };
    let update = Moment { fixed: false, late_s: None };
    let seen =
        on_a_terminal(&["-l", "3"], &[(FINAL, size), (update, size), (update, size), (FINAL, size), (update, size)]);
    assert_eq!(seen, ["titles+names+row", "down+row", "over", "over", "down+row"]);
}

#[test]
fn headings_return_and_follow_the_width() {
    let size = Size { lines: 6, columns: 80 };
    let mut seen = on_a_terminal(&["-l", "--noupdate"], &[(FINAL, size); 6]);
    assert_eq!(seen, ["titles+names+row", "row", "row", "row", "titles+names+row", "row"]);
    seen = on_a_terminal(&["-l", "--noupdate", "--noheaders"], &[(FINAL, size); 6]);
    assert_eq!(seen, ["titles+names+row", "row", "row", "row", "row", "row"]);
    let narrow = Size { lines: 24, columns: 20 };
    seen = on_a_terminal(&["-l", "-m", "--noupdate"], &[(FINAL, size), (FINAL, narrow), (FINAL, narrow)]);
    assert_eq!(seen, ["titles+names+row", "titles+names+row", "row"]);
}

#[test]
fn headings_over_a_row_that_still_changes_are_not_drawn_over() {
    let (_fake, meant) = meant_by(Name::Dstat, &["-l", "3"], Terminal { updates: true, colour: false });
    let look = Reader::open(&meant.watch).read();
    let mut rows = Rows::new(&meant, MACHINE, "");
    let open = Moment { fixed: false, late_s: None };
    let mut draw =
        |moment, columns| rows.draw(seen(&look, None), moment, WALL, Some(Size { lines: 24, columns }), None).text;
    draw(FINAL, 80);
    // Another width as a row begins, and while one changes.
    for columns in [70, 60] {
        let refitted = draw(open, columns);
        let (headings, row) = refitted.rsplit_once('\n').unwrap();
        assert!(headings.contains("load-avg") && row.starts_with("\x1b[2K\x1b[s"), "{refitted:?}");
        assert!(draw(open, columns).starts_with("\x1b[u"));
    }
}

#[test]
fn a_port_on_which_nobody_listens_yet_is_shown() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let (_fake, meant) = meant_by(Name::Webdyno, &["--listen", "-L", &format!("{free},total,x")], PIPE);
    assert_eq!(meant.shown[0].devices, [free.as_str(), "total"]);
    assert_eq!(meant.notes, [format!("nobody listens on port {free} yet: dashes until then")]);
}

#[test]
fn what_is_late_is_marked() {
    let size = Size { lines: 24, columns: 80 };
    let late = Moment { fixed: true, late_s: Some(3.04) };
    assert_eq!(on_a_terminal(&["-l", "--noupdate"], &[(FINAL, size), (late, size)]), ["titles+names+row", "late row"]);
}

#[test]
fn modules_that_do_not_fit_are_left_out_with_a_word() {
    let (_fake, meant) = meant_by(Name::Dstat, &["-l", "-m"], PIPE);
    let look = Reader::open(&meant.watch).read();
    let mut rows = Rows::new(&meant, MACHINE, "");
    let narrow = Some(Size { lines: 24, columns: 20 });
    let drawn = rows.draw(seen(&look, None), FINAL, WALL, narrow, None);
    assert!(drawn.trimmed && drawn.text.contains('>') && !drawn.text.contains("used"), "{}", drawn.text);
    // Once; and the file has them all.
    let line = rows.csv_line(seen(&look, None), WALL);
    let again = rows.draw(seen(&look, None), FINAL, WALL, narrow, None);
    assert_eq!((again.trimmed, line.split(',').count()), (false, 7));
}

#[test]
fn our_own_file_tells_when_a_row_was_taken() {
    let (_fake, meant) = meant_by(Name::Webdyno, &["-l", "-T"], PIPE);
    let look = Reader::open(&meant.watch).read();
    let rows = Rows::new(&meant, MACHINE, "");
    let wall = Wall { epoch: 1_700_000_000.125, clock: "" };
    assert!(rows.csv_headings().ends_with(",\"epoch\"\n"));
    assert!(rows.csv_line(seen(&look, None), wall).ends_with(",1700000000.125\n"));
}
