//! What answers are held to.

use crate::{check, spec};
use model::load::{Failure, LoadResult};
use model::plan::{Check, LoadSpec};
use testkit::scripted::{Scripted, Step, answer};

/// Ten such answers under such checks; the example of what did not hold, or nothing when all is good.
#[track_caller]
fn held(steps: &[Step], checks: &[&str]) -> (LoadResult, Option<String>) {
    let server = Scripted::always(steps.to_vec());
    let checks = checks.iter().map(|text| Check::parse(text).expect("a check")).collect();
    let result = check(server.address(), &LoadSpec { checks, requests: Some(10), connections: 2, ..spec() });
    let failed = result.counts.failed.get(&Failure::Check).copied().unwrap_or(0);
    assert!(failed == 0 || failed == 10, "{:?}", result.counts);
    let example = result.examples.get(&Failure::Check).cloned();
    (result, example)
}

#[track_caller]
fn check_held(steps: &[Step], checks: &[&str], expected: Option<&str>) {
    let (result, example) = held(steps, checks);
    assert_eq!(example.as_deref(), expected);
    assert_eq!(result.counts.good, if expected.is_some() { 0 } else { 10 }, "{:?}", result.counts);
    // A check that fails says nothing about the connection.
    assert_eq!(result.counts.connects, 2);
}

fn with_field(field: &str, body: &str) -> Vec<Step> {
    let text = format!("HTTP/1.1 200 X\r\n{field}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    vec![Step::Send(text.into_bytes())]
}

#[test]
fn statuses_and_lengths() {
    let ok = [Step::Send(answer(200, "abc"))];
    check_held(&ok, &["status = 200", "length = 3", "length >= 3", "length < 4", "length != 0"], None);
    check_held(&ok, &["length > 3"], Some("`length > 3` does not hold: it was 3"));
    check_held(&ok, &["status != 200"], Some("`status != 200` does not hold: it was 200"));
    let unchanged = [Step::Send(b"HTTP/1.1 304 X\r\n\r\n".to_vec())];
    check_held(&unchanged, &["status = 304"], None);
    check_held(&unchanged, &["status <= 304", "length = 0"], None);
}

#[test]
fn without_a_check_of_it_a_status_must_be_2xx() {
    let (result, example) = held(&[Step::Send(answer(500, "abc"))], &["length = 3"]);
    assert_eq!((result.counts.failed[&Failure::Status], example), (10, None));
}

#[test]
fn header_fields() {
    let page = with_field("Content-Type: text/html; charset=utf-8\r\nX-A: 1\r\nx-a: 2", "abc");
    check_held(&page, &["header content-type contains text/html", "header X-A = 2", "header x-a matches ^[12]$"], None);
    let missed = "holds of no field of the answer, whose status was 200";
    check_held(&page, &["header x-a = 3"], Some(&format!("`header x-a = 3` {missed}")));
    check_held(&page, &["header x-b matches ."], Some(&format!("`header x-b matches .` {missed}")));
}

#[test]
fn bodies_in_any_pieces() {
    let [a, b, c] = [b"HTTP/1.1 200 X\r\nContent-Length: 11\r\n\r\nall ", b"is we".as_slice(), b"ll"]
        .map(|piece: &[u8]| Step::Send(piece.to_vec()));
    let pieces = [a, b, c];
    check_held(&pieces, &["body contains is well", "body matches ^all.*ll$", "body = all is well"], None);
    check_held(&pieces, &["body contains OK"], Some("`body contains OK` does not hold of \"all is well\""));
    let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nO\r\n1\r\nK\r\n0\r\n\r\n".to_vec();
    check_held(&[Step::Send(chunked)], &["body = OK"], None);
    check_held(
        &[Step::Send(answer(200, ""))],
        &["body contains OK"],
        Some("`body contains OK` does not hold: there was no body"),
    );
}

#[test]
fn of_a_long_body_the_beginning_is_looked_at() {
    let long = |begin: &str| [Step::Send(answer(200, &format!("{begin}{}", "x".repeat(1_000_000))))];
    check_held(&long("OK"), &["body contains OK"], None);
    check_held(&long(""), &["length = 1000000", "status = 200"], None);
    let undecided = "is undecided: the body has 1000002 bytes, of which the first 262144 are looked at";
    for text in ["body contains NO", "body matches ^OK", "body = OK"] {
        check_held(&long("OK"), &[text], Some(&format!("`{text}` {undecided}")));
    }
}

#[test]
fn the_body_of_one_answer_is_not_that_of_the_next() {
    let server = Scripted::start(|turn| {
        vec![Step::Send(answer(200, if turn.total.is_multiple_of(2) { "OK" } else { "broken" }))]
    });
    let checks = vec![Check::parse("body contains OK").unwrap()];
    for pipeline in [1, 4] {
        let load = LoadSpec { checks: checks.clone(), requests: Some(10), pipeline, same_length: false, ..spec() };
        let counts = check(server.address(), &load).counts;
        assert_eq!((counts.good, counts.failed[&Failure::Check]), (5, 5));
    }
}
