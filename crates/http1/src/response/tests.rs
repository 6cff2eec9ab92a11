//! Responses as bytes, and what the parser makes of them however they are cut.

use super::*;
use expect_test::{Expect, expect};
use proptest::prelude::*;

/// Feeds `pieces` and then closes: every answer, then the error, or what closing says of the rest.
fn outcome<'a>(asked: Asked, memo: &mut Memo, pieces: impl Iterator<Item = &'a [u8]>) -> String {
    let mut parser = Parser::new(asked);
    let mut told = Vec::new();
    for piece in pieces {
        let mut rest = piece;
        while !rest.is_empty() {
            match parser.feed(rest, memo) {
                Ok(Fed { used, answer, .. }) => {
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
    let clean = parser.is_between();
    match parser.close() {
        Some(answer) => told.push(tell(answer) + " by closing"),
        None if clean => {}
        None => told.push("incomplete".to_owned()),
    }
    told.join("; ")
}

fn tell(answer: Answer) -> String {
    let Answer { status, interim, body_bytes, reusable } = answer;
    let then = if reusable { "open" } else { "shut" };
    let after = if interim > 0 { format!(" after {interim}") } else { String::new() };
    format!("{status} {body_bytes} {then}{after}")
}

fn check(response: &str, expected: &Expect) {
    check_as(Asked::Content, response, expected);
}

/// The one door: the response as a whole, cut in two at every byte, and byte by byte, must give the same, and so must all of
/// it again with a memo of what came before.
fn check_as(asked: Asked, response: &str, expected: &Expect) {
    let bytes = response.as_bytes();
    let whole = outcome(asked, &mut Memo::default(), std::iter::once(bytes));
    let mut memo = Memo::default();
    for at in 0..=bytes.len() {
        let (a, b) = bytes.split_at(at);
        assert_eq!(outcome(asked, &mut Memo::default(), [a, b].into_iter()), whole, "cut at {at}");
        assert_eq!(outcome(asked, &mut memo, [a, b].into_iter()), whole, "cut at {at}, with a memo");
    }
    assert_eq!(outcome(asked, &mut memo, bytes.chunks(1)), whole, "byte by byte");
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
    check(&format!("{head}4\r\nabc\r\n0\r\n\r\n"), &expect!["a chunk is malformed"]);
    check(&format!("{head}3\nabc\r\n"), &expect!["a chunk is malformed"]);
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
    check_as(Asked::Head, "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n", &expect!["200 0 open"]);
    check_as(Asked::Head, "HTTP/1.1 200 OK\r\n\r\n", &expect!["200 0 open"]);
    check(
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
        &expect!["200 1 open after 2"],
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
    for value in ["a\rb", "\ra", "a\r", "a\0b", "\0"] {
        check(&format!("HTTP/1.1 200 OK\r\nX: {value}\r\n"), &expect!["a header field is malformed"]);
        check(&format!("HTTP/1.1 200 OK\r\nX: y\r\n {value}\r\n"), &expect!["a header field is malformed"]);
    }
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
    let cut =
        |response: &str, size: usize| outcome(Asked::Content, &mut Memo::default(), response.as_bytes().chunks(size));
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

/// One parser and one memo: feeds each piece as a whole and tells what each gave, with what may be discarded then.
fn check_feeding(asked: Asked, pieces: &[&str], expected: &Expect) {
    let (mut parser, mut memo) = (Parser::new(asked), Memo::default());
    let mut told = Vec::new();
    for piece in pieces {
        let fed = parser.feed(piece.as_bytes(), &mut memo).unwrap();
        let interim = fed.interim.map(|status| format!("interim {status}"));
        let discardable = (parser.discardable() > 0).then(|| format!("discardable {}", parser.discardable()));
        let used = (fed.used < piece.len()).then(|| format!("used {}", fed.used));
        let parts: Vec<_> = [interim, fed.answer.map(tell), used, discardable].into_iter().flatten().collect();
        told.push(parts.join(", "));
    }
    expected.assert_eq(&told.join("; "));
}

#[test]
fn interim_answers_are_counted_and_told() {
    let ok = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx";
    let go = "HTTP/1.1 100 Continue\r\n\r\n";
    let hints = "HTTP/1.1 103 Hints\r\nLink: </a>\r\n\r\n";
    let feed = |pieces: &[&str], expected| check_feeding(Asked::Content, pieces, &expected);
    feed(&[go, ok], expect!["interim 100; 200 1 open after 1"]);
    feed(&["HTTP/1.1 100 Con", "tinue\r\n\r\n", ok, ok], expect!["; interim 100; 200 1 open after 1; 200 1 open"]);
    feed(&[hints, go, hints, ok], expect!["interim 103; interim 100; interim 103; 200 1 open after 3"]);
    feed(&[&[go, hints, ok].concat(), ok], expect!["interim 100, 200 1 open after 2; 200 1 open"]);
    feed(
        &[&[hints, go, ok, go].concat(), go, ok],
        expect!["interim 100, 200 1 open after 2, used 98; interim 100; 200 1 open after 1"],
    );
    feed(&[&[hints, hints].concat(), ok], expect!["interim 103; 200 1 open after 2"]);
}

#[test]
fn content_may_be_discarded() {
    let feed = |pieces: &[&str], expected| check_feeding(Asked::Content, pieces, &expected);
    let length = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n";
    feed(
        &["HTTP/1.1 200 OK\r\n", "Content-Length: 3\r\n\r\n", "a", "bc"],
        expect!["; discardable 3; discardable 2; 200 3 open"],
    );
    feed(&[length, "abc", length, "abc"], expect!["discardable 3; 200 3 open; discardable 3; 200 3 open"]);
    feed(
        &[
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            "10\r\n",
            "0123",
            "456789abcdef",
            "\r\n0\r\n",
            "\r\n",
        ],
        expect!["; discardable 16; discardable 12; ; ; 200 16 open"],
    );
    feed(
        &["HTTP/1.1 200 OK\r\n\r\n", "x"],
        expect!["discardable 18446744073709551615; discardable 18446744073709551615"],
    );

    let mut memo = Memo::default();
    let mut parser = Parser::new(Asked::Content);
    parser.feed(length.as_bytes(), &mut memo).unwrap();
    assert_eq!((parser.discarded(1), parser.discarded(0), parser.discardable()), (None, None, 2));
    assert_eq!(parser.discarded(2).map(tell).as_deref(), Some("200 3 open"));
    assert_eq!((parser.discardable(), parser.is_between()), (0, true));
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n";
    parser.feed(chunked.as_bytes(), &mut memo).unwrap();
    assert_eq!((parser.discarded(5), parser.discardable()), (None, 0));
    let fed = parser.feed(b"\r\n0\r\n\r\n", &mut memo).unwrap();
    assert_eq!(fed.answer.map(tell).as_deref(), Some("200 5 open"));
    parser.feed(b"HTTP/1.0 200 OK\r\n\r\nabc", &mut memo).unwrap();
    assert_eq!((parser.discarded(1000), parser.discardable()), (None, u64::MAX));
    assert_eq!(parser.close().map(tell).as_deref(), Some("200 1003 shut"));
}

#[test]
fn a_tunnel_has_no_body() {
    let check = |response, expected| check_as(Asked::Tunnel, response, &expected);
    check("HTTP/1.0 200 Connection established\r\n\r\n", expect!["200 0 open"]);
    check(
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n",
        expect!["200 0 open"],
    );
    check("HTTP/1.1 407 No\r\nContent-Length: 2\r\n\r\nno", expect!["407 2 open"]);
    check("HTTP/1.1 503 No\r\n\r\nno", expect!["503 2 shut by closing"]);
    check_feeding(Asked::Tunnel, &["HTTP/1.1 200 OK\r\n\r\n\x16\x03\x01"], &expect!["200 0 open, used 19"]);
}

#[test]
fn each_answer_may_answer_something_else() {
    let (mut parser, mut memo) = (Parser::new(Asked::Head), Memo::default());
    let answers = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    let first = parser.feed(answers.as_bytes(), &mut memo).unwrap();
    assert_eq!(first.answer.map(tell).as_deref(), Some("200 0 open"));
    // The same head, from the memo, now has a body.
    parser.expect(Asked::Content);
    let second = parser.feed(&answers.as_bytes()[first.used..], &mut memo).unwrap();
    assert_eq!(second.answer.map(tell).as_deref(), Some("200 2 open"));
    assert_eq!(first.used + second.used, answers.len());
}

/// Writes down what it sees.
struct Notes<const FIELDS: bool>(String);

impl<const F: bool> Observe for Notes<F> {
    const FIELDS: bool = F;

    fn field(&mut self, name: &[u8], value: &[u8]) {
        self.0 += &format!("{}={}|", name.escape_ascii(), value.escape_ascii());
    }

    fn body(&mut self, bytes: &[u8]) {
        self.0 += &bytes.escape_ascii().to_string();
    }
}

/// What an observer sees of the response; of the same response again with the same memo; and however it is cut.
fn check_seen<const FIELDS: bool>(response: &str, expected: &Expect) {
    let mut memo = Memo::default();
    let mut seen = |size: usize| {
        let (mut parser, mut notes) = (Parser::new(Asked::Content), Notes::<FIELDS>(String::new()));
        for piece in response.as_bytes().chunks(size) {
            let fed = parser.feed_to(piece, &mut memo, &mut notes).unwrap();
            assert_eq!(fed.used, piece.len());
        }
        notes.0
    };
    let whole = seen(response.len());
    for size in 1..=response.len() {
        assert_eq!(seen(size), whole, "in pieces of {size}");
    }
    expected.assert_eq(&whole);
}

#[test]
fn whoever_looks_sees_every_answer() {
    let chunked = "HTTP/1.1 103 Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nSet-Cookie: \ta=b; c \r\nX:\r\n  more\r\n\
                   Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\nX-Sum: 1\r\n\r\n";
    check_seen::<true>(chunked, &expect!["Set-Cookie=a=b; c|X=|=more|Transfer-Encoding=chunked|abcde"]);
    check_seen::<false>(chunked, &expect!["abcde"]);
    let length = "HTTP/1.1 200 OK\r\nServer: x\r\nContent-Length: 3\r\n\r\nabc";
    check_seen::<true>(length, &expect!["Server=x|Content-Length=3|abc"]);
    check_seen::<false>(length, &expect!["abc"]);
}

#[test]
fn a_memo_is_only_of_whole_heads() {
    let ok = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    let kept = |pieces: &[&str]| {
        let (mut parser, mut memo) = (Parser::new(Asked::Content), Memo::default());
        for piece in pieces {
            let _ = parser.feed(piece.as_bytes(), &mut memo);
        }
        memo.recall(ok.as_bytes()).is_some()
    };
    assert!(kept(&[ok]));
    assert!(kept(&[ok, &ok[..9], &ok[9..]]));
    assert!(!kept(&[]));
    assert!(!kept(&[&ok[..9], &ok[9..]]));
    assert!(!kept(&["HTTP/1.1 100 Go\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"]));
    assert!(!kept(&[ok, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx"]));
    assert!(kept(&[ok, "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"]));
}

#[test]
fn reset_forgets_an_unfinished_answer() {
    let (mut parser, mut memo) = (Parser::new(Asked::Content), Memo::default());
    for unfinished in ["HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\na", "HTT", "HTTP/1.1 100 Go\r\n\r\nHTTP/1.1 2"] {
        parser.feed(unfinished.as_bytes(), &mut memo).unwrap();
        parser.reset();
    }
    let fed = parser.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", &mut memo).unwrap();
    assert_eq!(fed.answer.map(tell).as_deref(), Some("200 1 open"));
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
        asked in prop::sample::select(vec![Asked::Content, Asked::Head, Asked::Tunnel]),
    ) {
        let whole = outcome(asked, &mut Memo::default(), std::iter::once(&bytes[..]));
        let mut memo = Memo::default();
        for size in [size, bytes.len().max(1), bytes.len().max(1), size] {
            prop_assert_eq!(outcome(asked, &mut memo, bytes.chunks(size)), &whole[..]);
        }
    }
}
