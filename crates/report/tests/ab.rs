//! ab's report, drawn by us, against the real ab: its numbers go in, and what comes out must be its bytes.

#![allow(clippy::unwrap_used, reason = "helpers of tests; clippy.toml excepts only test functions")]

mod real_ab;

use jiff::Timestamp;
use jiff::tz::{Offset, TimeZone};
use real_ab::{Ran, number};
use report::ab::html::Attributes;
use report::ab::text::Show;
use report::ab::{
    AbCounts, AbFacts, AbTls, AbView, Arithmetic, Record, Whom, csv, gnuplot, html, progress, text, trouble,
};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use testkit::openssl::OpensslServer;
use testkit::scripted::{Refusing, Scripted, Step, Turn, answer};

/// What the server does.
#[derive(Debug, Clone, Copy)]
enum Server {
    Plain,
    Named,
    KeptAlive,
    Lengths,
    Delays,
    Mute,
    Resets,
    Missing,
    Truncates,
    Chunked,
}

impl Server {
    fn start(self) -> Scripted {
        Scripted::start(move |turn| self.steps(turn))
    }

    fn steps(self, turn: Turn) -> Vec<Step> {
        let send = |text: &str| vec![Step::Send(text.as_bytes().to_vec()), Step::Close];
        match self {
            Server::Plain => send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"),
            Server::Named => send("HTTP/1.0 200 OK\r\nServer: Apache/2.4.66 (Debian)\r\n\r\nhello"),
            Server::KeptAlive => {
                vec![Step::Send(
                    b"HTTP/1.1 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 5\r\n\r\nhello".to_vec(),
                )]
            }
            Server::Lengths => send(&format!("HTTP/1.0 200 OK\r\n\r\n{}", "x".repeat(turn.total as usize % 3))),
            Server::Delays => {
                let mut steps = vec![Step::Wait(Duration::from_millis([0, 3, 11][turn.total as usize % 3]))];
                steps.extend(send("HTTP/1.0 200 OK\r\n\r\nhello"));
                steps
            }
            Server::Mute => vec![Step::Close],
            Server::Resets => vec![Step::Reset],
            Server::Missing => vec![Step::Send(answer(404, "gone")), Step::Close],
            Server::Truncates => send("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nhello"),
            Server::Chunked => send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
        }
    }
}

/// Everything that ab prints on its way and at its end, drawn by us from its numbers.
fn check(server: Server, options: &str) {
    let scripted = server.start();
    let options: Vec<&str> = options.split_whitespace().collect();
    let url = format!("http://{}/a?b", scripted.address());
    let Some(ran) = real_ab::run(&options, &url) else { return };
    compare(&ran, &options, "127.0.0.1", None);
}

fn compare(ran: &Ran, options: &[&str], host: &str, proxy: Option<(&str, i32)>) {
    let has = |option: &str| options.contains(&option);
    assert!(ran.status.success(), "{options:?}: {}", ran.err);
    let show = Show { percentiles: !has("-d"), confidence: !has("-S") };
    let asked: u64 = options.iter().position(|option| *option == "-n").map_or(1, |at| number(options[at + 1]));
    let beat = progress::heartbeat(asked, has("-q"));
    let view = real_ab::view(&ran.out, show);
    let mut out = progress::banner(false).to_owned() + &progress::benchmarking(host, proxy, beat);
    if beat.is_none() {
        out += progress::DONE;
    }
    out += &text::render(&view, show);
    assert_eq!(out, ran.out, "{options:?}");
    assert_eq!(heard(beat, view.counts.complete), ran.err, "{options:?}");
}

/// What ab prints on standard error when all goes well.
fn heard(beat: Option<u64>, done: u64) -> String {
    let Some(beat) = beat else { return String::new() };
    let beats = (1..=done / beat).map(|nth| progress::completed(nth * beat)).collect::<String>();
    beats + &progress::finished(done)
}

#[test]
fn the_text_is_the_one_of_ab() {
    check(Server::Plain, "");
    check(Server::Plain, "-n 7 -c 3");
    check(Server::Plain, "-n 20 -c 4 -d");
    check(Server::Plain, "-n 20 -S");
    check(Server::Plain, "-n 20 -S -d");
    check(Server::Named, "-n 5 -l");
    check(Server::Named, "-n 5 -i");
    check(Server::Plain, "-n 5 -k");
    check(Server::KeptAlive, "-n 5 -k");
    check(Server::KeptAlive, "-n 40 -c 4 -k -l -d");
    check(Server::Lengths, "-n 9");
    check(Server::Lengths, "-n 9 -l");
    check(Server::Lengths, "-n 9 -S -q");
    check(Server::Delays, "-n 31 -c 2");
    check(Server::Delays, "-n 30 -c 5");
    check(Server::Delays, "-n 2");
    check(Server::Mute, "-n 4");
    check(Server::Mute, "-n 4 -k -l");
    check(Server::Resets, "-n 4 -r");
    check(Server::Resets, "-n 4 -r -S");
    check(Server::Missing, "-n 6");
    check(Server::Missing, "-n 6 -m DELETE");
    check(Server::Truncates, "-n 6");
    check(Server::Chunked, "-n 6");
    check(Server::Chunked, "-n 6 -H X-A:1 -C a=b -A u:p -T x/y");
    check(Server::Plain, "-t 1 -n 8");
}

#[test]
fn requests_with_a_body_tell_what_was_sent() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("body");
    std::fs::write(&file, "a=1&b=2").unwrap();
    let file = file.to_str().unwrap();
    check(Server::Plain, &format!("-n 3 -p {file}"));
    check(Server::Plain, &format!("-n 3 -S -u {file} -T text/x"));
    check(Server::Lengths, &format!("-n 8 -c 2 -k -d -p {file} -m PATCH"));
    check_html(Server::Lengths, &format!("-n 8 -p {file} -w"), &Attributes::default());
}

#[test]
fn more_than_150_requests_are_heard_of() {
    check(Server::Plain, "-n 150");
    check(Server::Plain, "-n 151");
    check(Server::Plain, "-n 151 -q");
    check(Server::KeptAlive, "-n 1250 -c 3 -k");
    check(Server::Mute, "-n 200 -d");
}

fn check_html(server: Server, options: &str, attributes: &Attributes) {
    let scripted = server.start();
    let options: Vec<&str> = options.split_whitespace().collect();
    let Some(ran) = real_ab::run(&options, &format!("http://{}/a?b", scripted.address())) else { return };
    let view = real_ab::html_view(&ran.out);
    let beat = progress::heartbeat(view.counts.complete, options.contains(&"-q"));
    let done = if beat.is_none() { progress::DONE } else { "" };
    let out = format!("{}{done}{}", progress::banner(true), html::render(&view, attributes));
    assert_eq!(out, ran.out, "{options:?}");
    assert_eq!((ran.csv, ran.gnuplot), (String::new(), String::new()), "with -w ab writes no files");
}

#[test]
fn the_html_is_the_one_of_ab() {
    let plain = Attributes::default();
    check_html(Server::Plain, "-w", &plain);
    check_html(Server::Named, "-w -n 4 -l", &plain);
    check_html(Server::Lengths, "-w -n 9 -c 2", &plain);
    check_html(Server::Resets, "-w -n 4 -r", &plain);
    check_html(Server::Missing, "-w -n 4 -S -d", &plain);
    check_html(Server::KeptAlive, "-w -n 6 -k", &plain);
    check_html(Server::Delays, "-w -n 31 -c 2", &plain);
    check_html(Server::Plain, "-w -n 160", &plain);
    check_html(Server::Plain, "-w -n 160 -q", &plain);
    let cell = |cell: &str| Attributes { cell: cell.to_owned(), ..Attributes::default() };
    check_html(Server::Plain, "-z align=left", &cell("align=left"));
    let all = Attributes { table: "a=1".to_owned(), row: "b=2".to_owned(), cell: "c=3".to_owned() };
    check_html(Server::Plain, "-x a=1 -y b=2 -z c=3", &all);
}

#[test]
fn a_proxy_is_named() {
    let scripted = Server::Named.start();
    let (proxy, port) = (scripted.address().ip().to_string(), scripted.address().port());
    let place = format!("{proxy}:{port}");
    let options = ["-n", "3", "-X", place.as_str()];
    let Some(ran) = real_ab::run(&options, "http://example.invalid:81/x") else { return };
    compare(&ran, &options, "example.invalid", Some((&proxy, i32::from(port))));
}

#[test]
fn tls_is_told() {
    for (server, options) in [
        (&["-tls1_3"][..], &["-n", "3"][..]),
        (&["-tls1_2"], &["-n", "2", "-H", "Host: example.invalid"]),
        (&["-tls1_2"], &["-n", "2", "-I", "-H", "Host: example.invalid"]),
    ] {
        let certificates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../app/tests/certificates");
        let folder = tempfile::tempdir().unwrap();
        let Some(server) = OpensslServer::start(&certificates, folder.path(), &[&["-www"], server].concat()) else {
            return testkit::skip::skipped("openssl is not installed");
        };
        let Some(ran) = real_ab::run(options, &format!("https://{}/", server.address())) else { return };
        assert!(ran.out.contains("SSL/TLS Protocol:       TLSv1."), "{}", ran.out);
        assert_eq!(ran.out.contains("TLS Server Name:"), options.contains(&"-H") && !options.contains(&"-I"));
        compare(&ran, options, "127.0.0.1", None);
    }
}

/// With `-v`, ab tells what it sends and what it receives.
fn check_verbose(server: Server, verbosity: i32, code: &str) {
    let scripted = server.start();
    let level = verbosity.to_string();
    let Some(ran) = real_ab::run(&["-v", &level], &format!("http://{}/a", scripted.address())) else { return };
    let Step::Send(received) = &server.steps(Turn { connection: 0, nth: 0, total: 0 })[0] else { panic!("{server:?}") };
    let status = progress::status(code, verbosity).unwrap_or_default();
    let told = match verbosity {
        ..2 => status,
        _ => {
            let sent = progress::request_header("GET", &scripted.last_request());
            sent + &progress::received_header(std::str::from_utf8(received).unwrap()) + &status
        }
    };
    let show = Show::default();
    let expected = [
        progress::banner(false),
        &progress::benchmarking("127.0.0.1", None, None),
        &told,
        progress::DONE,
        &text::render(&real_ab::view(&ran.out, show), show),
    ];
    assert_eq!(expected.concat(), ran.out, "-v {verbosity}");
}

#[test]
fn what_is_sent_and_received_is_told_as_by_ab() {
    check_verbose(Server::Named, 1, "200");
    check_verbose(Server::Named, 2, "200");
    check_verbose(Server::Named, 3, "200");
    check_verbose(Server::Missing, 1, "404");
    check_verbose(Server::Missing, 2, "404");
    check_verbose(Server::Missing, 4, "404");
}

/// A load that ab does not finish: after its first lines only what the ending says.
fn check_trouble(place: &str, options: &[&str], ending: &trouble::Ending) {
    let Some(ran) = real_ab::run(options, &format!("http://{place}/")) else { return };
    let host = place.rsplit_once(':').map_or(place, |(host, _)| host);
    let opening = progress::banner(false).to_owned() + &progress::benchmarking(host, None, None);
    let real = (ran.out.as_str(), ran.err.as_str(), ran.status.code());
    assert_eq!((&*format!("{opening}{}", ending.out), ending.err.as_str(), Some(i32::from(ending.code))), real);
}

#[test]
fn endings_without_a_report_are_those_of_ab() {
    let refusing = Refusing::start();
    let refused = trouble::refused("apr_socket_recv", (111, "Connection refused"), 0);
    check_trouble(&refusing.address().to_string(), &["-n", "3"], &refused);
    let resetting = Server::Resets.start();
    let reset = trouble::refused("apr_socket_recv", (104, "Connection reset by peer"), 0);
    check_trouble(&resetting.address().to_string(), &["-n", "3"], &reset);
    let stalling = Scripted::start(|turn| if turn.total < 2 { Server::Plain.steps(turn) } else { vec![Step::Hang] });
    let late = trouble::refused("apr_pollset_poll", trouble::TIMED_OUT, 2);
    check_trouble(&stalling.address().to_string(), &["-n", "3", "-s", "1"], &late);
    let unknown = (trouble::unresolved(-2), "Name or service not known");
    let unknown = trouble::refused("apr_sockaddr_info_get() for h..invalid", unknown, 0);
    check_trouble("h..invalid", &[], &unknown);
}

/// A load that is interrupted after three answers: its report is text even with `-w`, and nothing says that it is done.
fn check_interrupted(options: &[&str]) {
    let server = Scripted::start(|turn| if turn.total < 3 { Server::Plain.steps(turn) } else { vec![Step::Hang] });
    let mut command = Command::new("ab");
    command.args(options).args(["-n", "9"]).arg(format!("http://{}/", server.address()));
    let Ok(mut child) = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn() else {
        return testkit::skip::skipped("ab is not installed (apache2-utils)");
    };
    while server.requests() < 4 {
        assert_eq!(child.try_wait().unwrap(), None, "it waits for the fourth answer");
        std::thread::sleep(Duration::from_millis(5));
    }
    let interrupted = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(interrupted.success());
    let output = child.wait_with_output().unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    let html = options.contains(&"-w");
    let beginning = if html { String::new() } else { progress::benchmarking("127.0.0.1", None, None) };
    let view = real_ab::view(&out, Show::default());
    assert_eq!(view.counts.complete, 3);
    let expected = format!("{}{beginning}{}", progress::banner(html), text::render(&view, Show::default()));
    assert_eq!((expected.as_str(), Some(1)), (out.as_str(), output.status.code()));
}

#[test]
fn an_interrupted_load_is_told_as_text() {
    check_interrupted(&[]);
    check_interrupted(&["-w"]);
}

#[test]
fn files_that_cannot_be_written_are_told_as_by_ab() {
    for (option, what) in [("-e", "CSV"), ("-g", "gnuplot")] {
        let server = Server::Plain.start();
        let url = format!("http://{}/", server.address());
        let Some(ran) = real_ab::run(&[option, "/nonexistent/file"], &url) else { return };
        let ending = trouble::unwritable(what, "No such file or directory");
        assert_eq!((ran.err, ran.status.code()), (ending.err, Some(i32::from(ending.code))));
    }
}

/// Facts of which only the requests matter.
fn facts(complete: u64) -> AbFacts {
    AbFacts {
        whom: Whom { software: String::new(), host: String::new(), port: 80, tls: None, path: "/".to_owned() },
        document_bytes: None,
        concurrency: 1,
        took_us: 1,
        counts: AbCounts { complete, ..AbCounts::default() },
    }
}

/// Up to a hundred requests, `-e` tells how long each took to the microsecond. From that alone ab's arithmetic must lead to the
/// row, the percentiles and the file that ab printed; one row of the file excepted for each that ab reads behind its end.
fn check_strict(n: u64) {
    let server = Server::Delays.start();
    let count = n.to_string();
    let Some(ran) = real_ab::run(&["-n", &count, "-c", "2"], &format!("http://{}/", server.address())) else { return };
    let served: Vec<(u64, f64)> = ran
        .csv
        .lines()
        .skip(1)
        .map(|row| {
            let (percent, ms) = row.split_once(',').unwrap();
            (number(percent), number(ms))
        })
        .collect();
    let mut totals = vec![None; n as usize];
    for (percent, ms) in &served {
        let rank = match percent {
            0 => 0,
            100 => n - 1,
            _ => (0.5 + n as f64 * *percent as f64 / 100.0) as u64,
        };
        if let Some(total) = totals.get_mut(rank as usize) {
            *total = Some((ms * 1000.0).round() as u32);
        }
    }
    let record = |total: Option<u32>| Record { total_us: total.expect("every rank has a row"), ..Record::default() };
    let records: Vec<Record> = totals.into_iter().map(record).collect();
    let ours = AbView::of(&facts(n), &records, Arithmetic::Strict).unwrap().times.unwrap();
    let theirs = real_ab::view(&ran.out, Show::default()).times.unwrap();
    let sd = |sd: f64| format!("{sd:.1}");
    let (row, expected) = (ours.rows[3], theirs.rows[3]);
    assert_eq!(
        (row.min, row.mean, sd(row.sd), row.median, row.max),
        (expected.min, expected.mean, sd(expected.sd), expected.median, expected.max),
        "n = {n}: {records:?}"
    );
    assert_eq!(ours.percentiles, theirs.percentiles, "n = {n}");
    let drawn = csv::render(&ours);
    for (ours_at, (line, expected)) in drawn.lines().zip(ran.csv.lines()).enumerate() {
        if ours_at == 0 || ours.served_us[ours_at - 1].is_some() {
            assert_eq!(line, expected, "n = {n}");
        }
    }
    assert_eq!(drawn.lines().count(), ran.csv.lines().count());
}

#[test]
fn strict_arithmetic_is_the_one_of_ab() {
    for n in [2, 3, 4, 5, 10, 31, 50, 51, 99, 100] {
        check_strict(n);
    }
}

#[test]
fn every_line_for_gnuplot_is_the_one_of_ab() {
    let server = Server::Delays.start();
    let Some(ran) = real_ab::run(&["-n", "60", "-c", "2"], &format!("http://{}/", server.address())) else { return };
    let zone = TimeZone::fixed(Offset::constant(9));
    let mut drawn = gnuplot::HEAD.to_owned();
    for line in ran.gnuplot.lines().skip(1) {
        let columns: Vec<i64> = line.split('\t').skip(1).map(number).collect();
        let [second, connect, rest, total, wait] = columns[..] else { panic!("{line}") };
        let mut out = Vec::new();
        let began = Timestamp::from_second(second).unwrap();
        gnuplot::write(&[unrounded(connect, rest, total, wait)], began, &zone, &mut out).unwrap();
        drawn += String::from_utf8(out).unwrap().strip_prefix(gnuplot::HEAD).unwrap();
    }
    assert_eq!(drawn, ran.gnuplot);
    assert_eq!(drawn.lines().count(), 61);
}

/// A request whose parts round to these milliseconds: the whole may differ by one from the sum of its parts.
fn unrounded(connect: i64, rest: i64, total: i64, wait: i64) -> Record {
    let (connect_us, total_us) = match total - connect - rest {
        0 => (connect * 1000, total * 1000),
        1 => (connect * 1000 + 499, total * 1000 - 400),
        -1 => (connect * 1000 - 500, total * 1000 + 400),
        _ => panic!("{connect} + {rest} is far from {total}"),
    };
    let us = |us: i64| u32::try_from(us).unwrap();
    Record { start_ms: 0, connect_us: us(connect_us), total_us: us(total_us), wait_us: us(wait * 1000) }
}

#[test]
fn facts_become_the_whole_report() {
    let record = |connect_us, total_us, wait_us| Record { start_ms: 0, connect_us, total_us, wait_us };
    let facts = AbFacts {
        whom: Whom {
            software: "nginx".to_owned(),
            host: "localhost".to_owned(),
            port: 8443,
            tls: Some(AbTls {
                protocol: Some("TLSv1.3,TLS_AES_256_GCM_SHA384,256,256".to_owned()),
                temp_key: None,
                server_name: Some("localhost".to_owned()),
            }),
            path: "/a".to_owned(),
        },
        document_bytes: Some(5),
        concurrency: 2,
        took_us: 20_480,
        counts: AbCounts {
            complete: 3,
            failed: 1,
            receive: 1,
            kept_alive: Some(2),
            received_bytes: 210,
            sent_bytes: Some(300),
            body_bytes: 15,
            ..AbCounts::default()
        },
    };
    let records = [record(900, 1_600, 400), record(0, 1_400, 1_300), record(0, 16_000, 15_900)];
    let drawn = |arithmetic| text::render(&AbView::of(&facts, &records, arithmetic).unwrap(), Show::default());
    expect_test::expect_file!["golden/ab-right.txt"].assert_eq(&drawn(Arithmetic::Right));
    expect_test::expect_file!["golden/ab-strict.txt"].assert_eq(&drawn(Arithmetic::Strict));
}

#[test]
fn nothing_done_has_neither_speed_nor_times() {
    let view = AbView::of(&facts(0), &Vec::new(), Arithmetic::Right).unwrap();
    let drawn = text::render(&view, Show::default());
    assert!(drawn.ends_with("HTML transferred:       0 bytes\n"), "{drawn}");
    assert!(html::render(&view, &Attributes::default()).ends_with("0.00 kb/s received</td></tr>\n</table>\n"));
}
