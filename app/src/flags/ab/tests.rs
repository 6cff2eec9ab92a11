//! Command lines that ab accepts: what they mean, and the request that the real ab sends for them.

use super::*;
use std::process::Command;
use testkit::scripted::{Scripted, Step};

fn words(typed: &str) -> Vec<OsString> {
    typed.split_whitespace().map(OsString::from).collect()
}

fn flags(typed: &str) -> AbFlags {
    parse(&words(typed), &|file| Ok(file.as_bytes().to_vec())).unwrap_or_else(|said| panic!("{typed}: {}", said.err))
}

#[test]
fn the_last_number_counts() {
    let check = |typed: &str, requests: u32, by_time: bool, seconds: Option<i32>| {
        let flags = flags(&format!("{typed} http://h/"));
        assert_eq!((flags.requests, flags.requests_by_time, flags.seconds), (requests, by_time, seconds), "{typed}");
    };
    check("", 1, false, None);
    check("-n 10", 10, false, None);
    check("-n 10 -t 1", 50_000, true, Some(1));
    check("-t 1 -n 10", 10, false, Some(1));
    check("-t1 -n2 -t3", 50_000, true, Some(3));
    check("-t x", 50_000, true, Some(0));
}

#[test]
fn methods_mix_only_in_one_order() {
    let check = |typed: &str, method: &str, body: Option<&str>| {
        let flags = flags(&format!("{typed} http://h/"));
        assert_eq!((flags.method.name(), flags.body.as_deref()), (method, body.map(str::as_bytes)), "{typed}");
    };
    check("", "GET", None);
    check("-i", "HEAD", None);
    check("-p file", "POST", Some("file"));
    check("-u file", "PUT", Some("file"));
    check("-p file -m PATCH", "PATCH", Some("file"));
    check("-i -m X", "X", None);
    check("-m A -m B", "B", None);
}

#[test]
fn options_are_kept() {
    let all = flags(
        "-kqrldSI -v 3 -s 5 -b 9000 -B 127.0.0.2 -g G -e E -C a=1 -C b=2 -H HOST:x -x t -Z ECDHE-RSA-AES128-GCM-SHA256 \
         -f tls1.2 -E pem -X p:81 -X q https://h/",
    );
    assert!(all.keep_alive && all.go_on && all.output.quiet && all.output.any_length);
    assert_eq!(all.output.show, text::Show { percentiles: false, confidence: false });
    assert_eq!((all.output.verbosity, all.wait_seconds, all.window), (3, 5, 9000));
    assert_eq!((all.local.as_deref(), all.cookie.as_deref()), (Some("127.0.0.2"), Some("b=2")));
    assert_eq!((all.output.gnuplot.as_deref(), all.output.csv.as_deref()), (Some("G"), Some("E")));
    assert_eq!(all.output.html, Some(Attributes { table: "t".to_owned(), ..Attributes::default() }));
    // The port of a proxy outlives the next one typed without.
    assert_eq!(all.proxy, Some(("q".to_owned(), 81)));
    assert_eq!((all.tls.protocol, all.tls.certificate.as_deref()), (Protocol::Tls12, Some("pem")));
    assert_eq!(all.tls.offered.iter().map(|suite| suite.openssl).collect::<Vec<_>>(), ["ECDHE-RSA-AES128-GCM-SHA256"]);
    assert_eq!((all.tls.server_name, all.typed.host.as_deref()), (None, Some("x")));
    assert_eq!(flags("https://h/").tls.server_name.as_deref(), Some("h"));
    assert_eq!(flags("-H Host:x https://h/").tls.server_name.as_deref(), Some("x"));
    assert_eq!(flags("-f TLS1.1 http://h/").tls.offered, []);
}

#[test]
fn long_options_stand_among_the_short_ones() {
    let long = flags("-n 10 --rate 5/s -c2 --expect=p99<1s --strict --json -k --expect failed=0 http://h/");
    let texts: Vec<&str> = long.extras.expect.iter().map(|threshold| threshold.text.as_str()).collect();
    assert_eq!((long.extras.rate, texts), (Some(5.0), vec!["p99<1s", "failed=0"]));
    assert!(long.extras.strict && long.extras.json && long.keep_alive);
    assert_eq!((long.requests, long.concurrency), (10, 2));
    assert!(!flags("http://h/").extras.strict);
}

#[test]
fn an_option_that_ab_does_not_have_is_complained_of() {
    let complained = flags("-k -Q http://h/");
    assert_eq!((complained.complaint.as_str(), complained.keep_alive), ("ab: illegal option -- Q\n", true));
}

/// What the real ab sends, against what we would.
fn check_request(options: &[&str], url: impl Fn(&str) -> String) {
    let answer = b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n".to_vec();
    let server = Scripted::always(vec![Step::Send(answer), Step::Close]);
    let place = server.address().to_string();
    let mut typed: Vec<String> = options.iter().map(|option| option.replace("PLACE", &place)).collect();
    typed.push(url(&place));
    let Ok(output) = Command::new("ab").args(&typed).output() else {
        return testkit::skip::skipped("ab is not installed (apache2-utils)");
    };
    let words: Vec<OsString> = typed.iter().map(OsString::from).collect();
    let read = |file: &str| std::fs::read(file).map_err(|error| error.to_string());
    let flags = parse(&words, &read).unwrap_or_else(|said| panic!("{typed:?}: {}", said.err));
    let body = String::from_utf8(flags.body.clone().unwrap_or_default()).unwrap();
    let sent = server.all_requests();
    assert_eq!(sent.first(), Some(&(flags.head(), body)), "{typed:?}");
    assert_eq!(sent.len(), 1);
    let out = String::from_utf8(output.stdout).unwrap();
    assert!(out.starts_with(&flags.opening()), "{typed:?}: {out}");
}

#[test]
fn requests_are_those_of_ab() {
    let plain = |place: &str| format!("http://{place}/a?b=c");
    let folder = tempfile::tempdir().unwrap();
    let body = folder.path().join("body");
    std::fs::write(&body, "a=1&b=2").unwrap();
    let body = body.to_str().unwrap();
    check_request(&[], plain);
    check_request(&[], |place| format!("{place}/"));
    check_request(&["-k"], plain);
    check_request(&["-i", "-q", "-l"], plain);
    check_request(&["-m", "OPTIONS"], plain);
    check_request(&["-C", "a=1", "-C", "b=2"], plain);
    check_request(&["-A", " user:pass", "-P", "proxy:x"], plain);
    check_request(&["-P", "proxy:x", "-A", "user:pass word", "-k"], plain);
    check_request(&["-A", "a", "-A", "ab"], plain);
    check_request(&["-H", "X-A: 1", "-H", "x-b:2", "-C", "c=d"], plain);
    check_request(&["-H", "Host:  other.invalid "], plain);
    check_request(&["-H", "hOST: one", "-H", "Host: two"], plain);
    check_request(&["-H", "accept: text/html", "-H", "USER-AGENT: me"], plain);
    check_request(&["-H", "Accept-Encoding: gzip"], plain);
    check_request(&["-H", "Connection: close", "-k"], plain);
    check_request(&["-p", body], plain);
    check_request(&["-u", body, "-T", "application/json", "-k"], plain);
    check_request(&["-T", "application/json"], plain);
    check_request(&["-p", body, "-m", "PATCH", "-H", "X: y", "-C", "a=b", "-A", "u:p"], plain);
    check_request(&["-p", "/dev/null"], plain);
    check_request(&["-X", "PLACE"], |_| "http://example.invalid:81/x?y".to_owned());
    check_request(&["-X", "PLACE", "-k", "-P", "u:p"], |_| "example.invalid/x".to_owned());
    check_request(&["-H", &format!("X-Long: {}", "x".repeat(8000))], plain);
    check_request(&["-n1", "-c1", "-kv0", "-s", "9"], plain);
    check_request(&["-A", &"x".repeat(765)], plain);
    check_request(&["-t", "1", "-n", "1"], plain);
    check_request(&["-n", "4294967297"], plain);
}

#[test]
fn a_long_head_is_sent_whole() {
    // ab cuts it after 8191 bytes, in the middle of a field, and waits for an answer.
    let typed = ["-H".to_owned(), format!("X-Long: {}", "x".repeat(9000)), "h/".to_owned()].map(OsString::from);
    let head = parse(&typed, &|_| Err(String::new())).map(|flags| flags.head()).unwrap_or_default();
    assert!(head.len() > 9000 && head.ends_with("x\r\nHost: h\r\nUser-Agent: ApacheBench/2.3\r\nAccept: */*\r\n\r\n"));
}

#[test]
fn what_is_not_utf_8_is_refused() {
    use std::os::unix::ffi::OsStringExt;
    let said = parse(&[OsString::from_vec(b"http://h/\xff".to_vec())], &|_| Err(String::new())).unwrap_err();
    assert!(said.err.starts_with("ab: what was typed is not UTF-8\nUsage: ab "), "{}", said.err);
    assert_eq!((said.out.as_str(), said.code), ("", 22));
}
