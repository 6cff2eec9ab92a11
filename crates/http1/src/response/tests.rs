//! Responses as bytes, and what the parser makes of them however they are cut.

use super::*;
use expect_test::{Expect, expect};
use proptest::prelude::*;

/// Feeds `pieces` and then closes: every answer, then the error, or what closing says of the rest.
fn outcome<'a>(method: Method, pieces: impl Iterator<Item = &'a [u8]>) -> String {
    let mut parser = Parser::new(method);
    let mut told = Vec::new();
    for piece in pieces {
        let mut rest = piece;
        while !rest.is_empty() {
            match parser.feed(rest) {
                Ok(Fed { used, answer }) => {
                    assert!(used > 0 && used <= rest.len() && (answer.is_some() || used == rest.len()));
                    told.extend(answer.map(tell));
                    rest = &rest[used..];
                }
                Err(error) => {
                    told.push(error.to_string());
                    return told.join("; ");
                }
            }
        }
    }
    let clean = parser.state == State::StatusLine && parser.spent == 0;
    match parser.close() {
        Some(answer) => told.push(tell(answer) + " by closing"),
        None if clean => {}
        None => told.push("incomplete".to_owned()),
    }
    told.join("; ")
}

fn tell(answer: Answer) -> String {
    let then = if answer.reusable { "open" } else { "shut" };
    format!("{} {} {then}", answer.status, answer.body_bytes)
}

fn check(response: &str, expected: &Expect) {
    check_as(Method::Get, response, expected);
}

/// The one door: the response as a whole, cut in two at every byte, and byte by byte, must give the same.
fn check_as(method: Method, response: &str, expected: &Expect) {
    let bytes = response.as_bytes();
    let whole = outcome(method, std::iter::once(bytes));
    for at in 0..bytes.len() {
        let (a, b) = bytes.split_at(at);
        assert_eq!(outcome(method, [a, b].into_iter()), whole, "cut at {at}");
    }
    assert_eq!(outcome(method, bytes.chunks(1)), whole, "byte by byte");
    expected.assert_eq(&whole);
}

#[test]
fn length_decides_and_answers_follow_one_another() {
    check("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", &expect!["200 3 open"]);
    check(
        "HTTP/1.1 200\r\ncontent-length:3\r\n\r\nabcHTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n",
        &expect!["200 3 open; 404 0 open"],
    );
    check("HTTP/1.1 200 OK\nContent-Length: 1\n\nx", &expect!["200 1 open"]);
    check("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", &expect!["incomplete"]);
    check("HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\nContent-Length: 2\r\n\r\nab", &expect!["200 2 open"]);
}

#[test]
fn chunks_with_extensions_and_trailers() {
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    check(
        &format!("{head}3;a=\"b\"\r\nabc\r\n10 \r\n0123456789abcdef\r\n0\r\nX-Sum: 1\r\n\r\n"),
        &expect!["200 19 open"],
    );
    check(&format!("{head}0\r\n\r\n"), &expect!["200 0 open"]);
    check(&format!("{head}3\r\nabcX\r\n"), &expect!["a chunk is malformed"]);
    check(&format!("{head}\r\n"), &expect!["a chunk is malformed"]);
    check(&format!("{head}-1\r\n"), &expect!["a chunk is malformed"]);
    check(&format!("{head}10000000000000000\r\n"), &expect!["a chunk is malformed"]);
    check(&format!("{head}5\r\nab"), &expect!["incomplete"]);
    check(&format!("{head}0\r\n"), &expect!["incomplete"]);
    check(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: Chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
        &expect!["200 1 open"],
    );
    check("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip\r\n\r\nxyz", &expect!["200 3 shut by closing"]);
    // Both a length and a coding: the coding counts, and the connection is not used again.
    check(
        "HTTP/1.1 200 OK\r\nContent-Length: 7\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
        &expect!["200 1 shut"],
    );
}

#[test]
fn closing_ends_a_body_without_length() {
    check("HTTP/1.1 200 OK\r\n\r\nabc", &expect!["200 3 shut by closing"]);
    check("HTTP/1.1 200 OK\r\n\r\n", &expect!["200 0 shut by closing"]);
    check("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\nabc", &expect!["200 3 shut by closing"]);
    check("HTTP/1.1 200 OK\r\n", &expect!["incomplete"]);
    check("", &expect![""]);
}

#[test]
fn versions_differ_in_what_closes() {
    let with = |version: &str, field: &str, expected| {
        check(&format!("HTTP/{version} 200 OK\r\nContent-Length: 0\r\n{field}\r\n"), &expected);
    };
    with("1.0", "", expect!["200 0 shut"]);
    with("1.0", "Connection: Keep-Alive\r\n", expect!["200 0 open"]);
    with("1.0", "Keep-Alive: timeout=5\r\n", expect!["200 0 shut"]);
    with("1.1", "Connection: close\r\n", expect!["200 0 shut"]);
    with("1.1", "Connection: foo , CLOSE\r\n", expect!["200 0 shut"]);
    with("1.1", "Connection: keep-alive, close\r\n", expect!["200 0 shut"]);
    with("1.1", "X-Connection: close\r\n", expect!["200 0 open"]);
}

#[test]
fn answers_without_a_body() {
    check(
        "HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 304 Same\r\nContent-Length: 8\r\n\r\n",
        &expect!["204 0 open; 304 0 open"],
    );
    check_as(Method::Head, "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n", &expect!["200 0 open"]);
    check_as(Method::Head, "HTTP/1.1 200 OK\r\n\r\n", &expect!["200 0 open"]);
    check(
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
        &expect!["200 1 open"],
    );
    check("HTTP/1.1 100 Continue\r\n\r\n", &expect!["incomplete"]);
}

#[test]
fn what_is_not_http_is_said_so() {
    check("SSH-2.0-OpenSSH", &expect!["the answer does not begin with HTTP/"]);
    check("\x15\x03\x01\0\x02", &expect!["the answer does not begin with HTTP/"]);
    check("HTT\r\n", &expect!["the answer does not begin with HTTP/"]);
    check("HTTP/2 200\r\n", &expect!["the answer is neither HTTP/1.0 nor HTTP/1.1"]);
    check("HTTP/1.1 20 OK\r\n", &expect!["the status line is malformed"]);
    check("HTTP/1.1 2000 OK\r\n", &expect!["the status line is malformed"]);
    check("HTTP/1.1  200 OK\r\n", &expect!["the status line is malformed"]);
    check("HTTP/1.1 099 OK\r\n", &expect!["the status line is malformed"]);
    check("HTTP/x\r\n", &expect!["the status line is malformed"]);
    check("HTTP/1.1 101 Switching\r\n", &expect!["status 101, although no other protocol was asked for"]);
    check("HTTP/1.1 200 OK\r\nno colon\r\n", &expect!["a header field is malformed"]);
    check("HTTP/1.1 200 OK\r\nName : x\r\n", &expect!["a header field is malformed"]);
    check("HTTP/1.1 200 OK\r\n: x\r\n", &expect!["a header field is malformed"]);
    for length in ["x", "+5", "", "5,", "5, 6", "18446744073709551616"] {
        check(
            &format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n"),
            &expect!["Content-Length is not one number"],
        );
    }
}

#[test]
fn folded_lines_are_taken_where_they_do_no_harm() {
    check("HTTP/1.1 200 OK\r\nX-Long: a\r\n  b\r\nContent-Length: 1\r\n\r\nx", &expect!["200 1 open"]);
    check("HTTP/1.1 200 OK\r\nContent-Length:\r\n 1\r\n\r\nx", &expect!["Content-Length is not one number"]);
    check("HTTP/1.1 200 OK\r\nConnection:\r\n close\r\n\r\nx", &expect!["a header field is malformed"]);
}

#[test]
fn lengths_are_bounded() {
    let too_long = "the head is longer than 65536 bytes, or a chunk's first line longer than 4096";
    let cut = |response: &str, size: usize| outcome(Method::Get, response.as_bytes().chunks(size));
    for response in [
        format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(MAX_HEAD)),
        format!("HTTP/1.1 200 OK\r\n{}\r\n", "X: yz\r\n".repeat(MAX_HEAD / 7)),
        "HTTP/1.1 100 Continue\r\n\r\n".repeat(MAX_HEAD / 25 + 1),
        format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;{}\r\n", "x".repeat(4096)),
        format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n{}", "X: yz\r\n".repeat(MAX_HEAD / 7 + 1)),
    ] {
        for size in [1, 100, response.len()] {
            assert_eq!(cut(&response, size), too_long);
        }
    }
}

#[test]
fn reset_forgets_an_unfinished_answer() {
    let mut parser = Parser::new(Method::Get);
    parser.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\na").unwrap();
    parser.reset();
    parser.feed(b"HTT").unwrap();
    parser.reset();
    let fed = parser.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx").unwrap();
    assert_eq!(fed.answer.map(|answer| answer.body_bytes), Some(1));
}

/// Words of the grammar in any order come closer to the parser's edges than random bytes do.
fn nearly_http() -> impl Strategy<Value = Vec<u8>> {
    let words = prop::sample::select(vec![
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.0 200\n",
        "HTTP/1.1 100 Go\r\n",
        "HTTP/1.1 304 No\r\n",
        "Content-Length: 3\r\n",
        "Content-Length: 99999999999999999999\r\n",
        "Transfer-Encoding: chunked\r\n",
        "Connection: close\r\n",
        "\r\n",
        "\r",
        "\n",
        "abc",
        "3\r\n",
        "0\r\n",
        "ffffffffffffffff\r\n",
        "X: y\r\n",
        " fold\r\n",
        ":",
        ";",
        "\0",
    ]);
    prop::collection::vec(words, 0..16).prop_map(|words| words.concat().into_bytes())
}

proptest! {
    #[test]
    fn any_bytes_in_any_pieces_give_one_result(
        bytes in prop_oneof![prop::collection::vec(any::<u8>(), 0..200), nearly_http()],
        size in 1_usize..50,
    ) {
        let whole = outcome(Method::Get, std::iter::once(&bytes[..]));
        prop_assert_eq!(outcome(Method::Get, bytes.chunks(size)), whole);
    }
}
