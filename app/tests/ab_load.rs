//! `webdyno ab` and the real ab load the same server in the same way: what they print, how they end and what the server was
//! asked must be the same, up to the times. Where they differ on purpose both sides stand here, and in
//! `docs/compatibility/ab.md`.

#![allow(clippy::unwrap_used, reason = "helpers of tests; clippy.toml excepts only test functions")]

mod tool;

use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use testkit::openssl::OpensslServer;
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
    /// The head alone of something that has 5 bytes.
    HeadOnly,
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
            Server::HeadOnly => send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\n"),
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
    let Some((mut theirs, ours)) = both(server, options) else { return };
    if options.contains("-c") {
        // With several, ab opens some that it never uses.
        assert!(ours.connections <= theirs.connections, "{server:?} {options}");
        theirs.connections = ours.connections;
    }
    assert!(ours == theirs, "{server:?} {options}: ours\n{ours:#?}\nab's\n{theirs:#?}");
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
    check(Server::ClosesNowAndThen, "-n 9 -k");
    check(Server::Plain, "-n 9 -k");
    check(Server::UntilClose, "-n 9 -c 3 -k");
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
    check(Server::HeadOnly, "-n 3 -i");
    check(Server::HeadOnly, "-n 4 -c 2 -i -l");
}

#[test]
fn times_and_numbers_end_a_load_as_they_do_in_ab() {
    check(Server::Plain, "-t 9 -n 8");
    check(Server::Plain, "-n 8 -t 0 -n 3");
    check(Server::Plain, "-n 3 -s -1");
    // As ab, unless the answer is there when it looks for the first time.
    let scripted = Server::Plain.start();
    let said = Tool::new().run(&["ab", "-n", "3", "-s", "0", &format!("http://{}/", scripted.address())]);
    let late = "apr_pollset_poll: The timeout specified has expired (70007)\n";
    assert_eq!((said.err.as_str(), said.code), (late, 119), "{}", said.out);
}

#[test]
fn tables_in_html_come_to_the_same() {
    for options in
        ["-w", "-w -n 9 -c 2 -k", "-n 9 -k -x border=1 -y a=b -z align=left", "-w -n 160 -k", "-w -n 3 -S -d -l"]
    {
        check(if options.contains("-k") { Server::KeptAlive } else { Server::Plain }, options);
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

/// Where webdyno differs on purpose: what stands in ab's output or is its exit code, and what in ours.
#[track_caller]
fn differ(server: Server, options: &str, in_theirs: &[&str], in_ours: &[&str]) {
    let Some((theirs, ours)) = both(server, options) else { return };
    for (who, came, expected) in [("ab", theirs, in_theirs), ("webdyno", ours, in_ours)] {
        let all = format!("{}\n{}\nexit {}\nconnections {}\n", came.out, came.err, came.code, came.connections);
        for part in expected {
            assert!(all.contains(part), "{server:?} {options}: {part:?} is not in what {who} says:\n{all}");
        }
    }
}

const FAILED_0: &str = "Failed requests:        0\n";

#[test]
fn a_server_that_resets_now_and_then_does_not_end_a_load() {
    let reset = "apr_socket_recv: Connection reset by peer (104)\n";
    differ(
        Server::ResetsNowAndThen,
        "-n 9",
        &[reset, "Total of 2 requests completed", "exit 104\n"],
        &[
            "Complete requests:      9\n",
            "Failed requests:        3\n",
            "(Connect: 0, Receive: 3, Length: 0, Exceptions: 0)",
            reset,
            "exit 104\n",
        ],
    );
}

#[test]
fn a_failure_counts_once() {
    differ(
        Server::Resets,
        "-n 4 -r",
        &["Complete requests:      4\n", "Failed requests:        8\n", "exit 0\n"],
        &["Complete requests:      4\n", "Failed requests:        4\n", "Receive: 4", "exit 0\n"],
    );
}

#[test]
fn an_answer_that_never_came_is_a_failure() {
    differ(
        Server::Mute,
        "-n 4",
        &["Complete requests:      4\n", FAILED_0, "exit 0\n"],
        &["Failed requests:        4\n", "Receive: 4", "exit 0\n"],
    );
}

#[test]
fn an_answer_that_broke_off_is_a_failure() {
    differ(
        Server::Truncates,
        "-n 4",
        &["Document Length:        5 bytes", FAILED_0, "HTML transferred:       20 bytes"],
        &[
            "Document Length:        0 bytes",
            "Failed requests:        4\n",
            "Receive: 4",
            "HTML transferred:       0 bytes",
        ],
    );
}

#[test]
fn chunks_are_taken_apart() {
    differ(
        Server::Chunked,
        "-n 3",
        &["Document Length:        15 bytes", "HTML transferred:       45 bytes"],
        &["Document Length:        5 bytes", "HTML transferred:       15 bytes"],
    );
}

#[test]
fn a_connection_is_kept_by_the_rules_of_the_protocol() {
    let late = "apr_pollset_poll: The timeout specified has expired (70007)\n";
    differ(
        Server::KeptSilently,
        "-n 6 -k -s 1",
        &[late, "exit 119\n"],
        &["Keep-Alive requests:    6\n", FAILED_0, "exit 0\n", "connections 1\n"],
    );
    // Whoever does not close what it was not asked to keep is not waited for: the answer is complete.
    differ(
        Server::KeptAlive,
        "-n 6 -s 1",
        &[late, "exit 119\n"],
        &["Complete requests:      6\n", FAILED_0, "exit 0\n", "connections 6\n"],
    );
    // HTTP/1.1 stays open without saying so.
    differ(Server::Missing, "-n 6 -k", &["Keep-Alive requests:    0\n"], &["Keep-Alive requests:    6\n"]);
}

#[test]
fn a_server_that_falls_silent_costs_no_report() {
    let late = "apr_pollset_poll: The timeout specified has expired (70007)\n";
    differ(
        Server::Stalls,
        "-n 9 -s 1",
        &[late, "Total of 2 requests completed", "exit 119\n"],
        &["Complete requests:      3\n", "Failed requests:        1\n", late, "exit 119\n"],
    );
    // ab looks at the time only when something happens.
    differ(
        Server::Stalls,
        "-t 1 -s 2",
        &[late, "exit 119\n"],
        &["Time taken for tests: 0 seconds", "Complete requests:      2\n", FAILED_0, "exit 0\n"],
    );
}

#[test]
fn one_connection_that_is_stuck_is_one_failure() {
    let server = |turn: Turn| if turn.total == 3 { vec![Step::Hang] } else { Server::Delays.steps(turn) };
    let scripted = Scripted::start(server);
    let words = words("-n 300 -c 2 -s 1 -q", format!("http://{}/", scripted.address()));
    let came = ours(&words.iter().map(String::as_str).collect::<Vec<_>>(), &scripted);
    assert!(came.out.contains("Complete requests:      300\nFailed requests:        1\n"), "{}", came.out);
    assert_eq!(came.code, 119, "{}", came.err);
}

#[test]
fn one_stuck_connection_of_one_thread_or_of_a_slow_timetable_ends_nothing() {
    // The connection that is stuck is all that one of the threads has, and then all that is on its way.
    for (options, stuck, complete) in
        [("-n 300 -c 2 -s 1 -q --threads 2", 20, 300), ("-n 3 -c 3 -s 1 --rate 0.9", 1, 3)]
    {
        let scripted = Scripted::start(
            move |turn| {
                if turn.total == stuck { vec![Step::Hang] } else { Server::Delays.steps(turn) }
            },
        );
        let words = words(options, format!("http://{}/", scripted.address()));
        let came = ours(&words.iter().map(String::as_str).collect::<Vec<_>>(), &scripted);
        let expected = format!("Complete requests:      {complete}\nFailed requests:        1\n");
        assert!(came.out.contains(&expected) && came.code == 119, "{options}: {}\n{}", came.out, came.err);
    }
}

#[test]
fn a_senseless_time_is_no_limit() {
    differ(Server::Plain, "-t -4 -n 5", &["connections 1\n"], &["Complete requests:      5\n", "exit 0\n"]);
}

/// A server of openssl's that sends a file.
fn openssl(folder: &Path, options: &[&str]) -> Option<OpensslServer> {
    let certificates = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/certificates");
    std::fs::write(folder.join("a"), "hello").unwrap();
    let server = OpensslServer::start(&certificates, folder, &[&["-WWW"], options].concat());
    if server.is_none() {
        testkit::skip::skipped("openssl is not installed");
    }
    server
}

/// Over TLS.
#[track_caller]
fn check_tls(server: &[&str], options: &str) {
    let folder = tempfile::tempdir().unwrap();
    let Some(server) = openssl(folder.path(), server) else { return };
    let words = words(options, format!("https://{}/a", server.address()));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let Ok(output) = Command::new("ab").args(&words).env("LC_ALL", "C").output() else { return };
    let theirs = Finished::of(&output);
    let ours = Tool::new().run(&[&["ab"], words.as_slice()].concat());
    assert_eq!(
        (without_times(&ours.out), ours.err, ours.code),
        (without_times(&theirs.out), theirs.err, theirs.code),
        "{options}"
    );
}

#[test]
fn tls_comes_to_the_same() {
    check_tls(&[], "");
    check_tls(&[], "-n 5 -c 2");
    check_tls(&[], "-n 3 -k");
    check_tls(&["-tls1_2"], "-n 3");
    check_tls(&["-tls1_2"], "-n 3 -Z ECDHE-ECDSA-AES128-GCM-SHA256");
    check_tls(&["-tls1_2"], "-n 2 -f TLS1.2 -H Host:example.invalid");
    check_tls(&[], "-n 2 -f TLS1.3");
    check_tls(&[], "-n 2 -I -H Host:example.invalid");
    check_tls(&["-groups", "P-256"], "-n 2");
    check_tls(&["-groups", "P-384"], "-n 2");
    check_tls(&[], "-w -n 2");
}

#[test]
fn tls_that_does_not_come_up_is_a_failure() {
    let folder = tempfile::tempdir().unwrap();
    // Its certificate has a key on a curve, and none of RSA.
    let Some(server) = openssl(folder.path(), &["-tls1_2"]) else { return };
    let url = format!("https://{}/a", server.address());
    let ours = Tool::new().run(&["ab", "-n", "3", "-Z", "ECDHE-RSA-AES128-GCM-SHA256", &url]);
    let failed = "Failed requests:        3\n   (Connect: 0, Receive: 0, Length: 0, Exceptions: 3)\n";
    assert!(ours.out.contains(failed) && ours.code == 0, "{ours:?}");
}

#[test]
fn a_proxy_is_asked_for_the_whole_url() {
    for options in ["-n 3 -X PROXY", "-n 4 -c 2 -k -X PROXY -P me:secret"] {
        let came = |load: &dyn Fn(&[&str], &Scripted) -> Option<Came>| {
            let scripted = Server::KeptAlive.start();
            let options = options.replace("PROXY", &scripted.address().to_string());
            let options = if options.contains("-k") { options } else { format!("{options} -k") };
            let words = words(&options, "http://localhost:81/x?y".to_owned());
            load(&words.iter().map(String::as_str).collect::<Vec<_>>(), &scripted)
        };
        let Some(theirs) = came(&real) else { return };
        let ours = came(&|words, server| Some(ours(words, server))).unwrap();
        assert_eq!(
            (&ours.out, &ours.err, ours.code, &ours.asked),
            (&theirs.out, &theirs.err, theirs.code, &theirs.asked)
        );
    }
}

#[test]
fn others_servers_are_not_loaded_unasked() {
    let said = Tool::new().run(&["ab", "-n", "1", "http://192.0.2.1/"]);
    let line = "webdyno: 192.0.2.1 is not this machine; if you operate it, say so once: --i-operate 192.0.2.1\n";
    assert_eq!((said.err.as_str(), said.code), (line, 1));
}

#[test]
fn files_are_written_as_by_ab() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let scripted = Server::Delays.start();
    let url = format!("http://{}/", scripted.address());
    let tool = Tool::new();
    std::fs::write(file("e"), "what stood here before, and is longer than nothing\n".repeat(200)).unwrap();
    let said = tool.run(&["ab", "-n", "40", "-c", "4", "-e", &file("e"), "-g", &file("g"), &url]);
    assert_eq!((said.err.as_str(), said.code), ("", 0));
    let csv = std::fs::read_to_string(file("e")).unwrap();
    let rows: Vec<(u32, f64)> = csv
        .lines()
        .skip(1)
        .map(|line| line.split_once(',').unwrap())
        .map(|(percent, ms)| (percent.parse().unwrap(), ms.parse().unwrap()))
        .collect();
    assert!(csv.starts_with("Percentage served,Time in ms\n0,") && rows.len() == 101, "{csv}");
    assert!(rows.windows(2).all(|pair| pair[0].0 + 1 == pair[1].0 && pair[0].1 <= pair[1].1), "{csv}");
    let gnuplot = std::fs::read_to_string(file("g")).unwrap();
    assert_eq!(gnuplot.lines().count(), 41, "{gnuplot}");
    // What is there stays when there is nothing to write, and nothing new is left.
    let refusing = Refusing::start();
    for path in [file("e"), file("new")] {
        let said = tool.run(&["ab", "-e", &path, &format!("http://{}/", refusing.address())]);
        assert_eq!(said.code, 111);
    }
    assert!(std::fs::read_to_string(file("e")).unwrap() == csv && !Path::new(&file("new")).exists());
    // Pipes and devices take it, too.
    let said = tool.run(&["ab", "-n", "5", "-e", "/dev/stdout", "-g", "/dev/null", &url]);
    assert!(said.out.contains("\n100,") && said.err.is_empty() && said.code == 0, "{said:?}");
    // JSON takes the place of the report, not of the files.
    let said = tool.run(&["ab", "-n", "5", "--json", "-v", "3", "-e", &file("j"), &url]);
    assert!(serde_json::from_str::<serde_json::Value>(&said.out).is_ok(), "{said:?}");
    assert!(said.err.contains("LOG: header received:") && said.code == 0, "{said:?}");
    assert_eq!(std::fs::read_to_string(file("j")).unwrap().lines().count(), 102);
    // What cannot be written is found before the first request.
    let (before, nowhere) = (scripted.requests(), file("no/folder"));
    for (option, what) in [("-e", "CSV"), ("-g", "gnuplot")] {
        let said = tool.run(&["ab", option, &nowhere, &url]);
        let line = format!("Cannot open {what} output file: No such file or directory\n");
        assert_eq!((said.err, said.code, scripted.requests()), (line, 1, before));
    }
}

#[test]
fn a_load_can_be_kept_judged_and_read_by_programs() {
    let scripted = Server::KeptAlive.start();
    let url = format!("http://{}/", scripted.address());
    let tool = Tool::new();
    let said =
        tool.run(&["ab", "-k", "-n", "60", "-c", "3", "--json", "--expect", "failed = 0", "-A", "me:s3cret", &url]);
    let json: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((json["counts"]["good"].as_u64(), said.err.as_str(), said.code), (Some(60), "", 0), "{}", said.out);
    let missed = tool.run(&["ab", "-k", "-n", "60", "--expect", "rate > 1000000", &url]);
    assert!(missed.code == 1 && missed.err.contains("webdyno ab: missed: rate > 1000000"), "{}", missed.err);
    let verdict = tool.run(&["ab", "-k", "-n", "60", "--verdict", &url]).out;
    assert!(verdict.contains(" 100%  ") && verdict.contains("Neither was measured."), "{verdict}");
    let open = tool.run(&["ab", "-k", "-n", "60", "--rate", "1000", "--strict", &url]);
    assert!(open.out.contains("Complete requests:      60\n") && open.code == 0, "{}", open.err);
    let listed = tool.run(&["runs", "--json"]).out;
    let runs: Vec<serde_json::Value> = serde_json::from_str(&listed).unwrap();
    assert_eq!(runs.len(), 4, "{listed}");
    let kept = std::fs::read(tool.path("store.sqlite")).unwrap();
    assert!(!kept.windows(6).any(|bytes| bytes == b"s3cret"), "the store keeps no password");
    let encoded = b"bWU6czNjcmV0";
    assert!(!kept.windows(encoded.len()).any(|bytes| bytes == encoded), "nor its other form");
}

#[test]
fn an_answer_before_the_body_was_read_counts() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let serving = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut head = BufReader::new(stream.try_clone().unwrap());
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            head.read_line(&mut line).unwrap();
        }
        stream.write_all(b"HTTP/1.0 413 Too Large\r\nContent-Length: 0\r\n\r\n").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        // Until the client has had enough.
        let _ = std::io::copy(&mut head, &mut std::io::sink());
    });
    let folder = tempfile::tempdir().unwrap();
    let body = folder.path().join("body");
    std::fs::write(&body, vec![b'x'; 30_000_000]).unwrap();
    let ours = Tool::new().run(&["ab", "-p", body.to_str().unwrap(), &url]);
    assert!(ours.out.contains("Non-2xx responses:      1\n") && ours.out.contains(FAILED_0), "{ours:?}");
    assert!(!ours.out.contains("Write errors") && ours.code == 0, "{ours:?}");
    serving.join().unwrap();
}

fn interrupt(child: &Child) {
    signal(child, Signal::INT);
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

#[test]
fn ctrl_c_is_heeded_even_where_it_was_ignored() {
    let server = Scripted::start(|turn| if turn.total < 3 { Server::Plain.steps(turn) } else { vec![Step::Hang] });
    let tool = Tool::new();
    let program = tool.command(&["ab", "-n", "9", &format!("http://{}/", server.address())]);
    // What a script starts with `&` begins so.
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' INT; exec \"$0\" \"$@\""]).arg(program.get_program()).args(program.get_args());
    command.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while server.requests() < 4 {
        std::thread::yield_now();
    }
    interrupt(&child);
    let said = Finished::of(&child.wait_with_output().unwrap());
    assert!(said.out.contains("\nComplete requests:      3\n") && said.code == 1, "{said:?}");
}

#[test]
fn ctrl_c_keeps_the_report() {
    for (options, wish) in [("-n 9", Signal::INT), ("-n 900 -w", Signal::INT), ("-n 9", Signal::TERM)] {
        let server = Scripted::start(|turn| if turn.total < 3 { Server::Plain.steps(turn) } else { vec![Step::Hang] });
        let words = words(options, format!("http://{}/", server.address()));
        let words: Vec<&str> = ["ab"].into_iter().chain(words.iter().map(String::as_str)).collect();
        let tool = Tool::new();
        let child = tool.spawn(&words);
        while server.requests() < 4 {
            std::thread::yield_now();
        }
        // As `timeout` does it: the process, then its group.
        signal(&child, wish);
        signal(&child, wish);
        let said = Finished::of(&child.wait_with_output().unwrap());
        let complete = "\nComplete requests:      3\nFailed requests:        0\n";
        assert!(said.out.contains(complete) && said.code == 1, "{said:?}");
        assert!(!said.out.contains("..done") && !said.err.contains("Finished"), "{said:?}");
    }
}
