//! Real lines: what Apache 2.4.71 and nginx 1.22.1 wrote about the same odd requests, each in several formats.
//!
//! Each log in `samples/` stands beside its format, as it stood in the configuration. The requests were sent as raw bytes:
//! quotes, backslashes and bytes of Latin-1, absolute targets, a TLS hello, a connection that stays silent. Formats with the
//! request line tell one story, those with its parts another, because then the server had already made sense of it.

use accesslog::{Entry, Format, Reader};
use expect_test::{Expect, expect};
use std::path::Path;

fn sample(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples").join(name);
    std::fs::read(path).expect("the samples are committed")
}

/// What `tell` says of every line of a log, and then what was wrong with some.
fn story(log: &str, tell: impl Fn(&Entry<'_>) -> String) -> String {
    let format = String::from_utf8(sample(&format!("{log}.format"))).expect("text");
    let mut reader = Reader::new(Format::parse(&format).unwrap_or_else(|error| panic!("{log}: {error}")));
    let text = sample(&format!("{log}.log"));
    let lines = text.split_inclusive(|byte| *byte == b'\n');
    let told: String =
        lines.map(|line| reader.read(line).map_or("another format\n".to_owned(), |entry| tell(&entry))).collect();
    let troubles: String = reader.tally().troubles().iter().map(|trouble| format!("{trouble}\n")).collect();
    told + &troubles
}

/// Requests and their status: all the logs tell the same.
fn check(logs: &[&str], expected: &Expect) {
    let requests = |log: &str| {
        story(log, |entry| {
            assert!(entry.time.is_some(), "{log}: {entry:?}");
            let status = entry.status.unwrap_or_default();
            match &entry.request {
                Ok(request) => format!("{} {} {status}\n", request.method, request.target),
                Err(why) => format!("{why:?} {status}\n"),
            }
        })
    };
    let told = requests(logs[0]);
    for log in logs {
        assert_eq!(requests(log), told, "{log}");
    }
    expected.assert_eq(&told);
}

/// Everything else of two lines: the one with odd bytes, and the slow one.
fn check_fields(log: &str, expected: &Expect) {
    let lines: Vec<String> =
        story(log, |entry| format!("{:?}\n", Entry { request: Err(accesslog::NoRequest::NotLogged), ..entry.clone() }))
            .lines()
            .map(|line| line.replace("request: Err(NotLogged), ", "").replace("Timestamp ", ""))
            .collect();
    expected.assert_eq(&format!("{}\n{}\n", lines[8], lines[13]));
}

#[test]
fn apache_with_request_lines() {
    check(
        &["apache-common", "apache-combined", "apache-vhost_combined"],
        &expect![[r#"
        GET / 200
        GET /index.html?q=1&x=%20a 200
        HEAD / 200
        OPTIONS * 200
        OPTIONS / 200
        POST /cart 404
        GET /index.html?from=abs 200
        GET / 200
        GET /a%20b/%C3%BC.html 200
        GET /a%20b/%C3%BC.html?%E9=1 200
        GET /say?"hi"\n 404
        GET /nothing-here 404
        GET / 200
        GET /big.txt 200
        GET / 200
        GET /old 404
        GET / 200
        Tls 400
        NotHttp 400
        Malformed 400
        Malformed 400
        Malformed 200
        Malformed 400
        Empty 408
        CONNECT mail.example:25 405
        GET /cut 400
        GET /index.html?n=0 200
        GET /index.html?n=1 200
        GET /index.html?n=2 200
        1 line without a request, first in line 24
        1 line with a TLS handshake on a plain port, first in line 18
        1 line with another protocol than HTTP/1, first in line 19
        4 lines with a malformed request, first in line 20
    "#]],
    );
}

#[test]
fn apache_with_parts() {
    check(
        &["apache-full", "apache-tabs"],
        &expect![[r#"
        GET /index.html 200
        GET /index.html?q=1&x=%20a 200
        HEAD /index.html 200
        OPTIONS * 200
        OPTIONS /index.html 200
        POST /cart 404
        GET /index.html?from=abs 200
        GET /index.html 200
        GET /a%20b/%C3%BC.html 200
        GET /a%20b/%C3%BC.html?%E9=1 200
        GET /say?"hi"\n 404
        GET /nothing-here 404
        GET /index.html 200
        GET /big.txt 200
        GET /index.html 200
        GET /old 404
        GET /index.html 200
        Empty 400
        NotHttp 400
        GET /a 400
        Malformed 400
        GET /index.html 200
        hello / 400
        Empty 408
        CONNECT /index.html 405
        GET /cut 400
        GET /index.html?n=0 200
        GET /index.html?n=1 200
        GET /index.html?n=2 200
        2 lines without a request, first in line 18
        1 line with another protocol than HTTP/1, first in line 19
        1 line with a malformed request, first in line 21
    "#]],
    );
}

#[test]
fn nginx_with_request_lines() {
    check(
        &["nginx-combined", "nginx-main", "nginx-json", "nginx-none"],
        &expect![[r#"
        GET / 200
        GET /index.html?q=1&x=%20a 200
        HEAD / 200
        OPTIONS * 400
        OPTIONS / 405
        POST /cart 404
        GET /index.html?from=abs 200
        GET / 200
        GET /a%20b/%C3%BC.html 200
        GET /a%20b/%C3%BC.html?%E9=1 200
        GET /say?"hi"\n 404
        GET /nothing-here 404
        GET / 200
        GET /big.txt 200
        GET / 200
        GET /old 404
        GET / 200
        Tls 400
        NotHttp 400
        Malformed 400
        Malformed 400
        Malformed 505
        Malformed 400
        Empty 408
        CONNECT mail.example:25 400
        GET /cut 400
        GET /index.html?n=0 200
        GET /index.html?n=1 200
        GET /index.html?n=2 200
        1 line without a request, first in line 24
        1 line with a TLS handshake on a plain port, first in line 18
        1 line with another protocol than HTTP/1, first in line 19
        4 lines with a malformed request, first in line 20
    "#]],
    );
}

#[test]
fn nginx_with_parts() {
    check(
        &["nginx-timed"],
        &expect![[r#"
        GET / 200
        GET /index.html?q=1&x=%20a 200
        HEAD / 200
        Empty 400
        OPTIONS / 405
        POST /cart 404
        GET /index.html?from=abs 200
        GET / 200
        GET /a%20b/%C3%BC.html 200
        GET /a%20b/%C3%BC.html?%E9=1 200
        GET /say?"hi"\n 404
        GET /nothing-here 404
        GET / 200
        GET /big.txt 200
        GET / 200
        GET /old 404
        GET / 200
        Empty 400
        Empty 400
        Empty 400
        Empty 400
        Empty 505
        Empty 400
        Empty 408
        Empty 400
        GET /cut 400
        GET /index.html?n=0 200
        GET /index.html?n=1 200
        GET /index.html?n=2 200
        9 lines without a request, first in line 4
    "#]],
    );
}

#[test]
fn other_fields() {
    check_fields(
        "apache-common",
        &expect![[r#"
        Entry { time: Some({ ns: 1795231240000000000, resolution: Second, of: Start }), client: Some("127.0.0.1"), status: Some(200), bytes: Some(3), duration_ns: None, host: None, referer: None, user_agent: None }
        Entry { time: Some({ ns: 1795231240000000000, resolution: Second, of: Start }), client: Some("127.0.0.1"), status: Some(200), bytes: Some(30000), duration_ns: None, host: None, referer: None, user_agent: None }
    "#]],
    );
    check_fields(
        "apache-vhost_combined",
        &expect![[r#"
        Entry { time: Some({ ns: 1795231240000000000, resolution: Second, of: Start }), client: Some("127.0.0.1"), status: Some(200), bytes: Some(243), duration_ns: None, host: Some("www.example.org"), referer: None, user_agent: Some("quote\" back\\slash tab\there ü �") }
        Entry { time: Some({ ns: 1795231240000000000, resolution: Second, of: Start }), client: Some("127.0.0.1"), status: Some(200), bytes: Some(30247), duration_ns: None, host: Some("www.example.org"), referer: None, user_agent: Some("Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0") }
    "#]],
    );
    check_fields(
        "apache-full",
        &expect![[r#"
        Entry { time: Some({ ns: 1795231240861740000, resolution: Micro, of: Start }), client: Some("127.0.0.1"), status: Some(200), bytes: Some(3), duration_ns: Some(78000), host: Some("shop.example"), referer: None, user_agent: Some("quote\" back\\slash tab\there ü �") }
        Entry { time: Some({ ns: 1795231240862983000, resolution: Micro, of: Start }), client: Some("127.0.0.1"), status: Some(200), bytes: Some(30000), duration_ns: Some(801969000), host: Some("shop.example"), referer: None, user_agent: Some("Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0") }
    "#]],
    );
    check_fields(
        "nginx-main",
        &expect![[r#"
        Entry { time: Some({ ns: 1795231246000000000, resolution: Second, of: End }), client: Some("127.0.0.1"), status: Some(200), bytes: Some(3), duration_ns: None, host: None, referer: None, user_agent: Some("quote\" back\\slash tab\there ü �") }
        Entry { time: Some({ ns: 1795231246000000000, resolution: Second, of: End }), client: Some("127.0.0.1"), status: Some(200), bytes: Some(30000), duration_ns: None, host: None, referer: None, user_agent: Some("Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0") }
    "#]],
    );
    check_fields(
        "nginx-json",
        &expect![[r#"
        Entry { time: Some({ ns: 1795231246980000000, resolution: Milli, of: End }), client: Some("127.0.0.1"), status: Some(200), bytes: Some(3), duration_ns: Some(0), host: Some("shop.example"), referer: None, user_agent: Some("quote\" back\\slash tab\there ü �") }
        Entry { time: Some({ ns: 1795231246981000000, resolution: Milli, of: End }), client: Some("127.0.0.1"), status: Some(200), bytes: Some(30000), duration_ns: Some(0), host: Some("shop.example"), referer: None, user_agent: Some("Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0") }
    "#]],
    );
    check_fields(
        "nginx-none",
        &expect![[r#"
        Entry { time: Some({ ns: 1795231246000000000, resolution: Second, of: End }), client: Some("127.0.0.1"), status: Some(200), bytes: None, duration_ns: None, host: None, referer: None, user_agent: Some("quote\" back\\slash tab\there ü �") }
        Entry { time: Some({ ns: 1795231246000000000, resolution: Second, of: End }), client: Some("127.0.0.1"), status: Some(200), bytes: None, duration_ns: None, host: None, referer: None, user_agent: Some("Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0") }
    "#]],
    );
    check_fields(
        "nginx-timed",
        &expect![[r#"
        Entry { time: Some({ ns: 1795231246980000000, resolution: Milli, of: End }), client: Some("127.0.0.1"), status: Some(200), bytes: Some(232), duration_ns: Some(0), host: Some("shop.example"), referer: None, user_agent: Some("quote\" back\\slash tab\there ü �") }
        Entry { time: Some({ ns: 1795231246981000000, resolution: Milli, of: End }), client: Some("127.0.0.1"), status: Some(200), bytes: Some(30236), duration_ns: Some(0), host: Some("shop.example"), referer: None, user_agent: Some("Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0") }
    "#]],
    );
}

#[test]
fn formats_are_recognised() {
    let guessed = |log: &str| {
        let log = sample(log);
        Format::guess(log.split(|byte| *byte == b'\n').take(20)).map(|format| format.text().to_owned())
    };
    for name in ["common", "combined", "vhost_combined"] {
        assert_eq!(guessed(&format!("apache-{name}.log")).as_deref(), Some(name));
    }
    for name in ["combined", "main"] {
        assert!(guessed(&format!("nginx-{name}.log")).is_some_and(|text| text.starts_with("$remote_addr")), "{name}");
    }
    for name in ["apache-full", "apache-tabs", "nginx-json", "nginx-timed", "nginx-none"] {
        assert_eq!(guessed(&format!("{name}.log")), None, "{name}");
    }
}
