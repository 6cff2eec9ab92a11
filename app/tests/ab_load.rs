//! `webdyno ab` and the real ab load the same server in the same way: what they print, how they end and what the server was
//! asked must be the same, up to the times. Where they differ on purpose both sides stand here, and in
//! `docs/compatibility/ab.md`.

#![allow(clippy::unwrap_used, reason = "helpers of tests; clippy.toml excepts only test functions")]

mod tool;

use std::process::{Command, Stdio};
use std::time::Duration;
use testkit::scripted::{Refusing, Scripted, Step, Turn, answer};
use tool::{Finished, Tool};

/// What a server does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Server {
    /// A length, and closes.
    Plain,
    /// HTTP/1.0 without a length: closing ends the body.
    UntilClose,
    /// Named, and kept open when asked for.
    KeptAlive,
    /// Kept open in ab's own spelling, closed after every third answer.
    ClosesNowAndThen,
    /// Bodies of 0, 1 and 2 bytes in turn.
    Lengths,
    /// Answers after 0, 3 and 11 ms in turn.
    Delays,
    /// Every answer in three pieces.
    Pieces,
    /// 404 with a body.
    Missing,
    /// 302 without one.
    Moved,
    /// 200 and 503 in turn.
    Overloaded,
    /// No content.
    NoContent,
    /// 100 kB.
    Large,
    /// Chunks.
    Chunked,
    /// Kept open by HTTP/1.1's own rule, without a word about it.
    KeptSilently,
    /// Closes without a word.
    Mute,
    /// Resets each connection.
    Resets,
    /// Answers, and resets every third connection.
    ResetsNowAndThen,
    /// Fewer bytes than it announced.
    Truncates,
    /// Two answers, then nothing.
    Stalls,
}

impl Server {
    fn start(self) -> Scripted {
        Scripted::start(move |turn| self.steps(turn))
    }

    fn steps(self, turn: Turn) -> Vec<Step> {
        let send = |text: &str| vec![Step::Send(text.as_bytes().to_vec()), Step::Close];
        let kept = b"HTTP/1.1 200 OK\r\nServer: Apache/2.4.66 (Debian)\r\nConnection: Keep-Alive\r\nContent-Length: 5\r\n\r\nhello";
        let third = turn.total % 3;
        match self {
            Server::Plain => {
                send("HTTP/1.1 200 OK\r\nServer: x\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello")
            }
            Server::UntilClose => send("HTTP/1.0 200 OK\r\nServer: Apache/2.4.66 (Debian)\r\n\r\nhello"),
            Server::KeptAlive => vec![Step::Send(kept.to_vec())],
            Server::ClosesNowAndThen if turn.nth == 2 => {
                send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello")
            }
            Server::ClosesNowAndThen => vec![Step::Send(kept.to_vec())],
            Server::Lengths => send(&format!("HTTP/1.0 200 OK\r\n\r\n{}", "x".repeat(third as usize))),
            Server::Delays => {
                let mut steps = vec![Step::Wait(Duration::from_millis([0, 3, 11][third as usize]))];
                steps.extend(send("HTTP/1.0 200 OK\r\n\r\nhello"));
                steps
            }
            Server::Pieces => {
                let pieces = ["HTTP/1.0 20", "0 OK\r\nA: b\r\n\r", "\nhello"].map(|text| Step::Send(text.into()));
                let mut steps: Vec<Step> = Vec::new();
                for piece in pieces {
                    steps.extend([piece, Step::Wait(Duration::from_millis(2))]);
                }
                steps.push(Step::Close);
                steps
            }
            Server::Missing => vec![Step::Send(answer(404, "gone")), Step::Close],
            Server::Moved => send("HTTP/1.1 302 Found\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n"),
            Server::Overloaded if turn.total % 2 == 1 => send("HTTP/1.0 503 Service Unavailable\r\n\r\nhello"),
            Server::Overloaded => send("HTTP/1.0 200 OK\r\n\r\nhello"),
            Server::NoContent => send("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"),
            Server::Large => send(&format!("HTTP/1.0 200 OK\r\n\r\n{}", "x".repeat(100_000))),
            Server::Chunked => send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
            Server::KeptSilently => vec![Step::Send(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello".to_vec())],
            Server::Mute => vec![Step::Close],
            Server::Resets => vec![Step::Reset],
            Server::ResetsNowAndThen if third == 2 => vec![Step::Reset],
            Server::ResetsNowAndThen => send("HTTP/1.0 200 OK\r\n\r\nhello"),
            Server::Truncates => send("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nhello"),
            Server::Stalls if turn.total < 2 => send("HTTP/1.0 200 OK\r\n\r\nhello"),
            Server::Stalls => vec![Step::Hang],
        }
    }
}

/// What a load came to: what was printed without its times, how it ended, what the server was asked.
#[derive(Debug, PartialEq, Eq)]
struct Came {
    out: String,
    err: String,
    code: i32,
    asked: Vec<(String, String)>,
    connections: u64,
}

impl Came {
    fn of(finished: &Finished, server: &Scripted) -> Came {
        let port = server.address().port().to_string();
        let mut asked = server.all_requests();
        // Of requests that are on their way at the same time nobody knows which the server reads first.
        asked.sort();
        let asked = asked.into_iter().map(|(head, body)| (head.replace(&port, "PORT"), body)).collect();
        let out = without_times(&finished.out.replace(&port, "PORT"));
        Came { out, err: finished.err.clone(), code: finished.code, asked, connections: server.accepted() }
    }
}

/// A report without what is never the same twice: numbers of times and rates, and ab's doubts about them.
fn without_times(out: &str) -> String {
    const TIMES: [&str; 9] = [
        "Time taken for tests:",
        "Requests per second:",
        "Time per request:",
        "Transfer rate:",
        "                        ",
        "Connect: ",
        "Processing: ",
        "Waiting: ",
        "Total: ",
    ];
    let mut lines = Vec::new();
    for line in out.lines() {
        let doubt = ["WARNING: The median", "ERROR: The median", "        These results", "       deviation apart"];
        if doubt.iter().any(|doubt| line.starts_with(doubt)) {
            continue;
        }
        let percent =
            line.trim_start().split('%').next().is_some_and(|n| n.parse::<u32>().is_ok() && line.contains('%'));
        let is_time = percent || TIMES.iter().any(|start| line.starts_with(start));
        let html = ["Time taken", "per second", "Transfer rate", "Connect:", "Processing:", "Total:", " kb/s "];
        let is_time = is_time || (line.contains("<td") && html.iter().any(|part| line.contains(part)));
        lines.push(if is_time { digits_as_one(line) } else { line.to_owned() });
    }
    lines.join("\n")
}

/// Every number as 0, and blanks between words as one: columns are as wide as their numbers.
fn digits_as_one(line: &str) -> String {
    let mut plain = String::new();
    for c in line.chars() {
        match c {
            '0'..='9' | '.' if plain.ends_with('0') => {}
            '0'..='9' => plain.push('0'),
            ' ' if plain.ends_with(' ') => {}
            c => plain.push(c),
        }
    }
    plain
}

/// What the real ab comes to; `None` where there is none.
fn real(words: &[&str], server: &Scripted) -> Option<Came> {
    let Ok(output) = Command::new("ab").args(words).env("LC_ALL", "C").stdin(Stdio::null()).output() else {
        testkit::skip::skipped("ab is not installed (apache2-utils)");
        return None;
    };
    Some(Came::of(&Finished::of(&output), server))
}

fn ours(words: &[&str], server: &Scripted) -> Came {
    Came::of(&Tool::new().run(&[&["ab"], words].concat()), server)
}

fn words(options: &str, url: String) -> Vec<String> {
    options.split_whitespace().map(str::to_owned).chain([url]).collect()
}

/// Both load a fresh server of that kind; gives what each came to.
fn both(server: Server, options: &str) -> Option<(Came, Came)> {
    let came = |load: &dyn Fn(&[&str], &Scripted) -> Option<Came>| {
        let scripted = server.start();
        let words = words(options, format!("http://{}/a?b", scripted.address()));
        load(&words.iter().map(String::as_str).collect::<Vec<_>>(), &scripted)
    };
    Some((came(&real)?, came(&|words, server| Some(ours(words, server)))?))
}

/// Nothing differs but the times.
#[track_caller]
fn check(server: Server, options: &str) {
    let Some((theirs, ours)) = both(server, options) else { return };
    assert_eq!(ours, theirs, "{server:?} {options}");
}

#[test]
fn loads_of_one_connection_come_to_the_same() {
    for server in [
        Server::Plain,
        Server::UntilClose,
        Server::Lengths,
        Server::Delays,
        Server::Pieces,
        Server::Missing,
        Server::Moved,
        Server::Overloaded,
        Server::NoContent,
        Server::Large,
    ] {
        check(server, "");
        check(server, "-n 9");
        check(server, "-n 9 -l -d");
    }
}

#[test]
fn loads_of_several_connections_come_to_the_same() {
    for server in [Server::Plain, Server::UntilClose, Server::Delays, Server::Pieces, Server::Missing, Server::Large] {
        check(server, "-n 30 -c 5");
        check(server, "-n 10 -c 10 -S");
    }
    check(Server::Plain, "-n 450 -c 3");
    check(Server::Plain, "-n 450 -c 3 -q");
}

#[test]
fn kept_connections_come_to_the_same() {
    for options in ["-n 1 -k", "-n 9 -k", "-n 40 -c 4 -k", "-n 9 -k -l -S", "-n 320 -c 2 -k"] {
        check(Server::KeptAlive, options);
    }
    check(Server::KeptAlive, "-n 3");
    check(Server::ClosesNowAndThen, "-n 9 -k");
    check(Server::ClosesNowAndThen, "-n 12 -c 2 -k");
    check(Server::Plain, "-n 9 -k");
    check(Server::UntilClose, "-n 9 -c 3 -k");
    check(Server::Missing, "-n 6 -k");
}

#[test]
fn requests_of_every_kind_come_to_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let body = folder.path().join("body");
    std::fs::write(&body, "a=1&b=2\n").unwrap();
    let empty = folder.path().join("empty");
    std::fs::write(&empty, "").unwrap();
    let (body, empty) = (body.to_str().unwrap(), empty.to_str().unwrap());
    for options in [
        format!("-n 3 -p {body}"),
        format!("-n 3 -p {empty}"),
        format!("-n 3 -u {body} -T text/x"),
        format!("-n 8 -c 2 -k -p {body} -T application/json -d"),
        format!("-n 3 -p {body} -m PATCH -S"),
        "-n 3 -i".to_owned(),
        "-n 3 -m DELETE".to_owned(),
        "-n 3 -m delete".to_owned(),
        "-n 3 -C a=b -C c=d".to_owned(),
        "-n 3 -A user:secret -P other:pass".to_owned(),
        "-n 3 -H X-A:1 -H Accept:text/plain -H host:example.invalid -H User-Agent:me".to_owned(),
        "-n 3 -H Connection:close -H Content-Type:x".to_owned(),
        "-n 3 -b 4096".to_owned(),
        "-n 3 -B 127.0.0.1".to_owned(),
        "-n 3 -Q -k".to_owned(),
    ] {
        check(Server::Plain, &options);
    }
    check(Server::NoContent, "-n 3 -i");
}

#[test]
fn times_and_numbers_end_a_load_as_they_do_in_ab() {
    check(Server::Plain, "-t 9 -n 8");
    check(Server::Plain, "-n 8 -t 0 -n 3");
    check(Server::Plain, "-n 3 -s -1");
    check(Server::Plain, "-n 3 -s 0");
    check(Server::Plain, "-n 3 -t -4 -n 5");
}

#[test]
fn tables_in_html_come_to_the_same() {
    for options in ["-w", "-w -n 9 -c 2", "-n 9 -k -x border=1 -y a=b -z align=left", "-w -n 160", "-w -n 3 -S -d -l"] {
        check(Server::KeptAlive, options);
    }
    check(Server::Missing, "-w -n 4");
}

#[test]
fn verbose_loads_come_to_the_same() {
    for options in ["-v 1", "-v 2 -n 2", "-v 3 -n 2", "-v 4"] {
        check(Server::UntilClose, options);
        check(Server::Missing, options);
    }
}

#[test]
fn endings_without_a_report_are_the_same() {
    check(Server::Resets, "-n 4");
    check(Server::Resets, "-n 9 -c 3");
    let refused = |load: &dyn Fn(&[&str]) -> Option<Finished>| {
        let refusing = Refusing::start();
        let words = words("-n 4 -c 2", format!("http://{}/", refusing.address()));
        load(&words.iter().map(String::as_str).collect::<Vec<_>>())
            .map(|finished| (finished.out, finished.err, finished.code))
    };
    let theirs = refused(&|words| {
        let output = Command::new("ab").args(words).env("LC_ALL", "C").output().ok()?;
        Some(Finished::of(&output))
    });
    let ours = refused(&|words| Some(Tool::new().run(&[&["ab"], words].concat())));
    if theirs.is_some() {
        assert_eq!(ours, theirs);
    }
    for line in [
        "http://h..invalid/",
        "-n 200 http://h..invalid/",
        "-X h..invalid:1 http://x/",
        "-B h..invalid http://127.0.0.1:1/",
    ] {
        let words: Vec<&str> = line.split_whitespace().collect();
        let Ok(output) = Command::new("ab").args(&words).env("LC_ALL", "C").output() else { return };
        let theirs = Finished::of(&output);
        let ours = Tool::new().run(&[&["ab"], words.as_slice()].concat());
        assert_eq!((ours.out, ours.err, ours.code), (theirs.out, theirs.err, theirs.code), "{line}");
    }
}
