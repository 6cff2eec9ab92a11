//! `webdyno ab` against the real ab: every command line that ab refuses, byte for byte on both outputs and in the exit code.

#![allow(clippy::unwrap_used, reason = "helpers of tests; clippy.toml excepts only test functions")]

mod tool;

use std::process::{Command, Stdio};
use tool::{Finished, Tool};

/// What ab says and how it ends; `None` where there is no ab.
fn real(words: &[&str]) -> Option<Finished> {
    let mut command = Command::new("ab");
    command.args(words).env("LC_ALL", "C").stdin(Stdio::null());
    let Ok(output) = command.output() else {
        testkit::skip::skipped("ab is not installed (apache2-utils)");
        return None;
    };
    Some(Finished::of(&output))
}

/// Our answer and ab's are the same.
fn check(words: &[&str]) {
    let Some(expected) = real(words) else { return };
    let ours = Tool::new().run(&[&["ab"], words].concat());
    assert_eq!((ours.out, ours.err, ours.code), (expected.out, expected.err, expected.code), "ab {words:?}");
}

/// Some words, split at blanks.
fn check_line(line: &str) {
    check(&line.split_whitespace().collect::<Vec<_>>());
}

#[test]
fn ab_speaks_of_itself() {
    for line in ["-h", "-V", "-w -V", "-x a=b -V", "-V -h", "-h -V", "-kh", "-kV", "-n 5 -h", "-hn", "-k -h --foo"] {
        check_line(line);
    }
}

#[test]
fn wrong_numbers_of_words_are_refused_as_by_ab() {
    for line in [
        "",
        "-k",
        "-n 1",
        "--",
        "-- a/ b/",
        "a/ b/",
        "http://h/ -n 1",
        "-n 1 http://h/ -c 1",
        "-k -- -q a/",
        "a/ --",
        "-w",
        "-t 1",
    ] {
        check_line(line);
    }
    check(&["", ""]);
}

#[test]
fn options_that_ab_cannot_read_are_refused_as_by_ab() {
    for line in [
        "-n",
        "-z",
        "-k -c",
        "-kn",
        "-Q",
        "-Q a",
        "-Qk a/",
        "-kQz a/",
        "-a -b -c",
        "-:",
        "-: a/ b/",
        "-1 a",
        "-Q a/ b/",
        "-j http://h",
        "-f",
        "-Z",
        "-E",
        "-W 4 http://h/",
        "-R 1 a/",
        "-",
        "-k -",
        "-k-",
        "-kn2-",
        "-D a",
        "-qQ a",
    ] {
        check_line(line);
    }
}

#[test]
fn numbers_that_ab_cannot_use_are_refused_as_by_ab() {
    for line in [
        "-n 0 http://h/",
        "-n -1 http://h/",
        "-n x http://h/",
        "-n 2147483648 http://h/",
        "-n 99999999999999999999 a/",
        "-n 0 -h",
        "-c 2 http://h/",
        "-n 5 -c 6 http://h/",
        "-c -1 http://h/",
        "-n 300000 -c 200001 http://h/",
        "-t 1 -c 50001 http://h/",
        "-t 1 -n 3 -c 4 http://h/",
        "-c 99999999999 http://h/",
        "-c 2 h",
        "-n 1 -c 200001 h/",
        "-c 2147483648 h/",
    ] {
        check_line(line);
    }
    check(&["-n", "", "http://h/"]);
    check(&["-n", " ", "http://h/"]);
}

#[test]
fn no_connections_at_all_end_where_ab_ends() {
    for line in ["-c 0", "-c x -n 10", "-c 0 -n 200", "-c 0 -n 200 -q", "-c 0 -w", "-c 0 -X 127.0.0.1:1"] {
        check_line(&format!("{line} http://127.0.0.1:1/"));
    }
}

#[test]
fn urls_that_ab_cannot_read_are_refused_as_by_ab() {
    for line in [
        "h",
        "http://h",
        "http://h:80",
        "https://h",
        "/",
        "http:///x",
        "8080/",
        ":80/",
        "h:0/",
        "h:65536/",
        "h:99999999999/",
        "[::1/",
        "[::1]x/",
        "[::1%lo]:80/",
        "[::1%]/",
        "[x]/",
        "[]/",
        "[1.2.3.4]/",
        "[::1]:0/",
        "[::1]:/",
        "-k -- h",
    ] {
        // What ab would load is not for this test.
        if !["12345:6/:"].contains(&line) {
            check_line(line);
        }
    }
    check(&[""]);
}

#[test]
fn mixed_methods_and_unreadable_bodies_are_refused_as_by_ab() {
    let folder = tempfile::tempdir().unwrap();
    let body = folder.path().join("body");
    std::fs::write(&body, "x").unwrap();
    let body = body.to_str().unwrap();
    for line in [
        "-i -p BODY http://h/",
        "-p BODY -i http://h/",
        "-p BODY -u BODY http://h/",
        "-u BODY -p BODY http://h/",
        "-p BODY -p BODY http://h/",
        "-u BODY -u BODY http://h/",
        "-i -i http://h/",
        "-m PATCH -p BODY http://h/",
        "-m PATCH -u BODY http://h/",
        "-m PATCH -i http://h/",
        "-p /nonexistent http://h/",
        "-u /nonexistent/x http://h/",
        "-p /etc http://h/",
        "-i -p /nonexistent http://h/",
        "-p /nonexistent -n 0 h",
        "-n 0 -p /nonexistent h",
        "-p /etc/hostname/x h",
        "-p BODY h",
        "-p BODY -m PATCH -i h/",
    ] {
        check_line(&line.replace("BODY", body));
    }
    check(&["-p", "", "http://h/"]);
}

#[test]
fn credentials_that_are_too_long_are_refused_as_by_ab() {
    let long = "x".repeat(766);
    check(&["-A", &long, "http://h/"]);
    check(&["-P", &long, "http://h/"]);
    check(&["-P", &format!(" \t{long}"), "-h"]);
    // Shorter ones are not, so that the next mistake is the one that counts.
    check(&["-A", &format!("   {}", &long[1..]), "http://h"]);
}

/// Numbers that look random, always the same: 64-bit linear congruential, Knuth's constants.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }

    fn one_of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }
}

/// Command lines without sense, all of which end in a URL that is none: a load never begins.
#[test]
fn whatever_is_typed_is_refused_as_by_ab() {
    const OPTIONS: [&str; 44] = [
        "n", "c", "t", "s", "b", "T", "p", "u", "v", "l", "r", "k", "V", "h", "w", "i", "I", "x", "y", "z", "C", "H",
        "P", "A", "g", "X", "d", "e", "S", "q", "B", "m", "Z", "f", "E", "a", "F", "j", "0", ":", "?", "n3", "c2", "-",
    ];
    const VALUES: [&str; 16] = [
        "1",
        "2",
        "0",
        "-1",
        "x",
        "",
        "200",
        "5x",
        " 7",
        "+3",
        "a=b",
        "/dev/null",
        "/nonexistent",
        "-k",
        "--",
        "Host: x",
    ];
    const URLS: [&str; 8] = ["h", "http://h", "[::1/", "h:0/", "", "-", "h h", "http:///"];
    let mut dice = Dice(4);
    for _ in 0..400 {
        let mut words: Vec<String> = Vec::new();
        for _ in 0..dice.below(5) {
            let bundle: String = (0..=dice.below(3)).map(|_| dice.one_of(&OPTIONS)).collect();
            match dice.below(3) {
                0 => words.push(format!("-{bundle}{}", dice.one_of(&VALUES))),
                1 => words.extend([format!("-{bundle}"), dice.one_of(&VALUES).to_owned()]),
                _ => words.push(format!("-{bundle}")),
            }
        }
        // A word with two dashes and more is the one thing that is ours.
        words.retain(|word| !word.starts_with("--") || word == "--");
        words.push(dice.one_of(&URLS).to_owned());
        check(&words.iter().map(String::as_str).collect::<Vec<_>>());
    }
}

/// The part of a refusal that comes from ab and not from OpenSSL; what we say instead is documented.
fn check_first_line(line: &str) {
    let words: Vec<&str> = line.split_whitespace().collect();
    let Some(expected) = real(&words) else { return };
    let ours = Tool::new().run(&[&["ab"], words.as_slice()].concat());
    let first = expected.err.lines().next().unwrap();
    assert!(ours.err.starts_with(first), "ab {line}: {} is not {}", ours.err, expected.err);
    assert_eq!(ours.err.lines().count(), 1, "ab {line}: {}", ours.err);
    assert_eq!((ours.out, ours.code), (expected.out, expected.code), "ab {line}");
}

#[test]
fn suites_that_nobody_has_are_refused_in_one_line() {
    check_first_line("-Z foo https://127.0.0.1:1/");
    check_first_line("-Z TLS_AES_256_GCM_SHA384 https://127.0.0.1:1/");
    check_first_line("-f TLS1.3 -Z ECDHE-RSA-AES128-GCM-SHA256 https://127.0.0.1:1/");
}

/// What ab would accept and webdyno refuses: one line, and the code.
fn check_ours(line: &str, err: &str, code: i32) {
    let ours = Tool::new().run(&[&["ab"], line.split_whitespace().collect::<Vec<_>>().as_slice()].concat());
    assert_eq!((ours.out.as_str(), ours.err.as_str(), ours.code), ("", err, code), "ab {line}");
}

#[test]
fn what_only_webdyno_refuses_is_one_line() {
    let old = |name: &str| format!("ab: {name} is older than what webdyno speaks: TLS1.2 and TLS1.3\n");
    for (typed, name) in
        [("SSL2", "SSL2"), ("ssl3", "SSL3"), ("TLS1", "TLS1"), ("TLS1.1", "TLS1.1"), ("TLS1.0", "TLS1")]
    {
        check_ours(&format!("-f {typed} https://127.0.0.1:1/"), &old(name), 1);
    }
    let unexpected = "ab: unexpected argument '--bogus' found (try `webdyno ab --help`)\n";
    check_ours("--bogus http://h/", unexpected, 22);
    check_ours(
        "--rate",
        "ab: a value is required for '--rate <RATE>' but none was supplied (try `webdyno ab --help`)\n",
        22,
    );
    check_ours("--rate 0 http://h/", "ab: --rate must be more than 0 (try `webdyno ab --help`)\n", 22);
}

#[test]
fn under_the_name_of_ab_it_is_ab() {
    let tool = Tool::new();
    let name = tool.path("ab");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_webdyno"), &name).unwrap();
    let ours = |words: &[&str]| Finished::of(&Command::new(&name).args(words).output().unwrap());
    for words in [&["-V"][..], &["-h"], &["-n", "0", "h"], &["run", "load"]] {
        let Some(expected) = real(words) else { return };
        let ours = ours(words);
        assert_eq!((ours.out, ours.err, ours.code), (expected.out, expected.err, expected.code), "ab {words:?}");
    }
    let help = ours(&["--help"]);
    assert!(help.out.contains("--rate <RATE>") && help.err.is_empty() && help.code == 0, "{help:?}");
}

#[test]
fn a_dry_run_says_what_would_be_sent() {
    let check = |line: &str, out: &str| {
        let ours = Tool::new().run(&[&["ab"], line.split_whitespace().collect::<Vec<_>>().as_slice()].concat());
        assert_eq!((ours.out.as_str(), ours.err.as_str(), ours.code), (out, "", 0), "{line}");
    };
    check(
        "--dry-run -n 10 -c 2 -k http://h:81/x",
        "Would send to h:81, 10 requests, 2 at a time:\n\
         GET /x HTTP/1.0\nConnection: Keep-Alive\nHost: h:81\nUser-Agent: ApacheBench/2.3\nAccept: */*\n\n",
    );
    check(
        "-t 5 -f TLS1.3 -Z TLS_AES_128_GCM_SHA256 --dry-run -p /dev/null https://h/",
        "Would send to h:443, 5 s, 1 at a time:\nTLS of h: TLS_AES_128_GCM_SHA256\n\
         POST / HTTP/1.0\nContent-length: 0\nContent-type: text/plain\nHost: h\nUser-Agent: ApacheBench/2.3\nAccept: */*\n\n\
         and a body of 0 bytes\n",
    );
}
