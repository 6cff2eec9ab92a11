//! Requests as text, and what is refused.

use super::*;
use expect_test::{Expect, expect};

const GET: Request<'_> = Request {
    method: Method::GET,
    target: "/",
    version: Version::Http11,
    after: After::KeepOpen,
    host: "here:8080",
    headers: &[],
    body: None,
};

/// The one door: the request as text, line ends as bars and `(waits)` where the body waits for a 100, or the error.
fn check(request: Request<'_>, headers: &[(&str, &str)], expected: &Expect) {
    let headers: Vec<_> = headers.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
    let request = Request { headers: &headers, ..request };
    let text = match request.to_bytes() {
        Ok(bytes) => {
            let head = request.to_head().unwrap();
            assert_eq!([&head, request.body.unwrap_or_default()].concat(), bytes);
            let (head, body) = bytes.split_at(head.len());
            let head = std::str::from_utf8(head).unwrap().replace("\r\n", "|");
            let waits = if request.waits_for_continue() { "(waits)" } else { "" };
            format!("{head}{waits}{}", body.escape_ascii())
        }
        Err(error) => error.to_string(),
    };
    expected.assert_eq(&text);
}

fn method(name: &str) -> Method<'_> {
    Method::new(name).unwrap()
}

#[test]
fn each_version_states_what_differs_from_its_default() {
    use After::{Close, KeepOpen};
    use Version::{Http10, Http11};
    let check = |version, after, expected| check(Request { version, after, ..GET }, &[], &expected);
    check(Http10, KeepOpen, expect!["GET / HTTP/1.0|Host: here:8080|Connection: keep-alive||"]);
    check(Http10, Close, expect!["GET / HTTP/1.0|Host: here:8080||"]);
    check(Http11, KeepOpen, expect!["GET / HTTP/1.1|Host: here:8080||"]);
    check(Http11, Close, expect!["GET / HTTP/1.1|Host: here:8080|Connection: close||"]);
}

#[test]
fn fields_are_added_and_host_is_replaced() {
    check(GET, &[("X-A", "1"), ("host", "there")], &expect!["GET / HTTP/1.1|X-A: 1|host: there||"]);
    check(Request { host: "[::1]:8080", ..GET }, &[], &expect!["GET / HTTP/1.1|Host: [::1]:8080||"]);
}

#[test]
fn a_body_is_announced() {
    let with = |name, body, headers: &[_], expected| {
        check(Request { method: method(name), body, ..GET }, headers, &expected);
    };
    with(
        "POST",
        Some(&b"a=1&b=2"[..]),
        &[("Content-Type", "text/x")],
        expect!["POST / HTTP/1.1|Host: here:8080|Content-Length: 7|Content-Type: text/x||a=1&b=2"],
    );
    with(
        "PUT",
        Some(b"\0\xff\r\n"),
        &[],
        expect![[r#"PUT / HTTP/1.1|Host: here:8080|Content-Length: 4||\x00\xff\r\n"#]],
    );
    with("POST", None, &[], expect!["POST / HTTP/1.1|Host: here:8080|Content-Length: 0||"]);
    with("DELETE", None, &[], expect!["DELETE / HTTP/1.1|Host: here:8080||"]);
    with("DELETE", Some(b""), &[], expect!["DELETE / HTTP/1.1|Host: here:8080|Content-Length: 0||"]);
    with("GET", Some(b"x"), &[], expect!["GET / HTTP/1.1|Host: here:8080|Content-Length: 1||x"]);
    with("TRACE", Some(b"x"), &[], expect!["a TRACE request has no body; remove the body or choose another method"]);
}

#[test]
fn a_body_can_wait_for_a_100() {
    let with = |version, body, value, expected| {
        check(Request { method: Method::POST, version, body, ..GET }, &[("expect", value)], &expected);
    };
    with(
        Version::Http11,
        Some(&b"abc"[..]),
        "100-continue",
        expect!["POST / HTTP/1.1|Host: here:8080|Content-Length: 3|expect: 100-continue||(waits)abc"],
    );
    with(
        Version::Http11,
        Some(b""),
        "100-continue",
        expect!["the header field Expect can only be 100-continue, in HTTP/1.1 and with a body that is not empty"],
    );
    with(
        Version::Http11,
        None,
        "100-continue",
        expect!["the header field Expect can only be 100-continue, in HTTP/1.1 and with a body that is not empty"],
    );
    with(
        Version::Http10,
        Some(b"abc"),
        "100-continue",
        expect!["the header field Expect can only be 100-continue, in HTTP/1.1 and with a body that is not empty"],
    );
    with(
        Version::Http11,
        Some(b"abc"),
        "200",
        expect!["the header field Expect can only be 100-continue, in HTTP/1.1 and with a body that is not empty"],
    );
}

#[test]
fn any_token_is_a_method() {
    for (name, asked) in [
        ("GET", Asked::Content),
        ("HEAD", Asked::Head),
        ("head", Asked::Content),
        ("CONNECT", Asked::Tunnel),
        ("PROPFIND", Asked::Content),
        ("M-SEARCH", Asked::Content),
    ] {
        assert_eq!((method(name).name(), method(name).asked()), (name, asked));
    }
    for name in ["", "GET ", "G\r\nT", "GÉT", "G/T"] {
        assert_eq!(Method::new(name), Err(RequestError::Method(name.to_owned())));
    }
    expect![[r#"the method "G T" must be one word of letters, digits and hyphens, such as GET"#]]
        .assert_eq(&RequestError::Method("G T".to_owned()).to_string());
}

#[test]
fn a_target_has_the_form_its_method_asks_for() {
    let with = |name, target, expected| check(Request { method: method(name), target, ..GET }, &[], &expected);
    with("GET", "/?q=1", expect!["GET /?q=1 HTTP/1.1|Host: here:8080||"]);
    with("GET", "http://there/x", expect!["GET http://there/x HTTP/1.1|Host: here:8080||"]);
    with("GET", "HTTPS://[::1]:8443", expect!["GET HTTPS://[::1]:8443 HTTP/1.1|Host: here:8080||"]);
    with("OPTIONS", "*", expect!["OPTIONS * HTTP/1.1|Host: here:8080||"]);
    with("CONNECT", "there:443", expect!["CONNECT there:443 HTTP/1.1|Host: here:8080||"]);
    with("CONNECT", "[::1]:443", expect!["CONNECT [::1]:443 HTTP/1.1|Host: here:8080||"]);
    with(
        "GET",
        "/a b",
        expect![[
            r#"the target "/a b" must begin with /, or with http:// for a proxy, and hold neither spaces nor control characters; write %20 for a space"#
        ]],
    );
    with(
        "GET",
        "index.html",
        expect![[
            r#"the target "index.html" must begin with /, or with http:// for a proxy, and hold neither spaces nor control characters; write %20 for a space"#
        ]],
    );
    for target in ["", "a", "*", "http://", "http:///x", "ftp://there/", "//\t", "/\n", "/\u{7f}", "there:443"] {
        let request = Request { target, ..GET };
        assert_eq!(request.to_bytes(), Err(RequestError::Target(target.to_owned())));
    }
    with("CONNECT", "/", expect![[r#"CONNECT asks for host:port, such as example.com:443, not for "/""#]]);
    for target in ["there", "there:", ":443", "there:65536", "there:+80", "http://there:80", "a b:80", "*"] {
        let request = Request { method: Method::CONNECT, target, ..GET };
        assert_eq!(request.to_bytes(), Err(RequestError::ConnectTarget(target.to_owned())));
    }
}

#[test]
fn fields_that_would_break_the_request_apart_are_refused() {
    for (name, value) in [("X-A", "1\r\nX-B: 2"), ("X A", "1"), ("", "1"), ("X-A:", "1"), ("X-A", "\0")] {
        let headers = [(name.to_owned(), value.to_owned())];
        assert_eq!(Request { headers: &headers, ..GET }.to_bytes(), Err(RequestError::Field(name.to_owned())));
    }
    assert_eq!(Request { host: "a\nb", ..GET }.to_bytes(), Err(RequestError::Field("Host".to_owned())));
    check(
        GET,
        &[("X A", "1")],
        &expect![[
            r#"the header field "X A" is malformed: a name of letters, digits and hyphens, a value on one line"#
        ]],
    );
    check(
        GET,
        &[("content-length", "5")],
        &expect![[r#"the header field "content-length" cannot be set: it follows from keep-alive and from the body"#]],
    );
    check(
        Request { body: Some(b"x"), ..GET },
        &[("Transfer-Encoding", "chunked")],
        &expect![[
            r#"the header field "Transfer-Encoding" cannot be set: it follows from keep-alive and from the body"#
        ]],
    );
}
