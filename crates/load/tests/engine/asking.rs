//! What is asked for: methods and bodies, templates, cookies, bodies that wait, logs, and answers without a body.

use crate::{check, friendly, spec};
use model::SECOND;
use model::load::Failure;
use model::plan::{Body, LOGGED_PATH, LoadSpec, Log, Pace, Recording, RequestSpec};
use std::sync::Arc;
use std::time::Duration;
use testkit::scripted::{Scripted, Step, answer};

fn request(method: &str, path: &str, body: Option<&str>) -> RequestSpec {
    RequestSpec { method: method.to_owned(), body: body.map(Body::written), ..RequestSpec::get(path) }
}

fn headers(fields: &[(&str, &str)]) -> Vec<(String, String)> {
    fields.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// The first lines of all requests that a server has read, in the order in which it read them, and their bodies.
fn seen(server: &Scripted) -> Vec<(String, String)> {
    let line = |head: &str| head.lines().next().unwrap_or_default().to_owned();
    server.all_requests().iter().map(|(head, body)| (line(head), body.clone())).collect()
}

#[test]
fn methods_and_bodies_are_sent() {
    for (method, body) in [("POST", Some("a=1&b=2")), ("PUT", Some("x")), ("POST", None), ("DELETE", None)] {
        let server = friendly();
        let load = LoadSpec { mix: vec![request(method, "/p", body)], requests: Some(3), ..spec() };
        let result = check(server.address(), &load);
        let expected = (format!("{method} /p HTTP/1.1"), body.unwrap_or_default().to_owned());
        assert_eq!((result.counts.good, seen(&server)), (3, vec![expected; 3]));
        let bytes: usize = server.all_requests().iter().map(|(head, body)| head.len() + body.len()).sum();
        assert_eq!(result.counts.bytes_out, bytes as u64);
    }
}

#[test]
fn what_is_given_as_bytes_is_sent_as_it_is() {
    for (method, wire) in [
        ("GET", "GET /x HTTP/1.1\r\nhost:h\r\nX:  odd \r\n\r\n"),
        ("PUT", "PUT  /${counter} HTTP/1.0\r\nContent-Length: 5\r\n\r\n${n}\n"),
        ("no token", "no token\r\n\r\n"),
    ] {
        let server = friendly();
        let one = RequestSpec { wire: Some(wire.as_bytes().into()), ..request(method, "/shown", None) };
        // Nothing that a load adds to its requests is added to these.
        let load = LoadSpec { mix: vec![one], requests: Some(3), cookies: true, ..spec() };
        let result = check(server.address(), &load);
        assert_eq!((result.counts.good, result.counts.bytes_out), (3, 3 * wire.len() as u64));
        let sent: Vec<String> = server.all_requests().iter().map(|(head, body)| format!("{head}{body}")).collect();
        assert_eq!(sent, vec![wire; 3]);
    }
    // Its method says what its answer is like.
    let server = Scripted::always(vec![Step::Send(b"HTTP/1.1 200 X\r\nContent-Length: 9\r\n\r\n".to_vec())]);
    let wire = b"HEAD / HTTP/1.1\r\n\r\n".as_slice();
    let one = RequestSpec { wire: Some(wire.into()), ..request("HEAD", "/", None) };
    let result = check(server.address(), &LoadSpec { mix: vec![one], requests: Some(3), ..spec() });
    assert_eq!((result.counts.good, result.counts.connects), (3, 1));
}

#[test]
fn a_mix_comes_by_weight_and_by_seed() {
    let mix = vec![
        RequestSpec { weight: 3, ..request("GET", "/a", None) },
        RequestSpec { weight: 1, ..request("POST", "/b", Some("${counter}")) },
        RequestSpec { weight: 0, ..request("GET", "/never", None) },
    ];
    let sent = |seed| {
        let server = friendly();
        let load = LoadSpec { mix: mix.clone(), requests: Some(400), seed, ..spec() };
        assert_eq!(check(server.address(), &load).counts.good, 400);
        seen(&server)
    };
    let one = sent(11);
    let posts = one.iter().filter(|(line, _)| line.starts_with("POST /b ")).count();
    assert!((75..125).contains(&posts), "{posts}");
    assert!(one.iter().all(|(line, _)| !line.contains("never")));
    assert_eq!(one, sent(11));
    assert_ne!(one, sent(12));
}

#[test]
fn templates_are_filled_in_for_each_request() {
    let server = friendly();
    let one = RequestSpec {
        headers: headers(&[("X-Id", "${hex:8}")]),
        ..request("POST", "/${counter}?r=${random:5-5}", Some("n=${counter}, $${kept}"))
    };
    // Several workers share the numbers, and none comes twice.
    let load = LoadSpec { mix: vec![one], requests: Some(40), connections: 4, threads: Some(2), ..spec() };
    assert_eq!(check(server.address(), &load).counts.good, 40);
    let mut numbers: Vec<u64> = seen(&server)
        .iter()
        .map(|(line, body)| {
            let number = line.strip_prefix("POST /").unwrap().split_once("?r=5 ").unwrap().0;
            assert_eq!(body, &format!("n={number}, ${{kept}}"));
            number.parse().unwrap()
        })
        .collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), 40);
    let ids: std::collections::BTreeSet<String> =
        server.all_requests().iter().map(|(head, _)| head.split("X-Id: ").nth(1).unwrap()[..8].to_owned()).collect();
    assert_eq!(ids.len(), 40);
}

#[test]
fn templates_are_pipelined_too() {
    let server = friendly();
    let load = LoadSpec {
        mix: vec![request("GET", "/${counter}", None)],
        requests: Some(50),
        connections: 1,
        pipeline: 8,
        ..spec()
    };
    assert_eq!(check(server.address(), &load).counts.good, 50);
    let expected: Vec<_> = (1..=50).map(|n| (format!("GET /{n} HTTP/1.1"), String::new())).collect();
    assert_eq!(seen(&server), expected);
}

#[test]
fn a_retry_sends_the_same_bytes() {
    // The second request of each connection is read and left without an answer.
    let server = Scripted::start(|turn| match turn.nth {
        0 => vec![Step::Send(answer(200, "abc"))],
        _ => vec![Step::Close],
    });
    let load = LoadSpec { mix: vec![request("GET", "/${counter}/${hex:20}", None)], requests: Some(10), ..spec() };
    let result = check(server.address(), &load);
    assert_eq!((result.counts.good, result.counts.retries), (10, 9));
    let mut lines: Vec<_> = seen(&server).into_iter().map(|(line, _)| line).collect();
    assert_eq!(lines.len(), 19);
    lines.dedup();
    assert_eq!(lines.len(), 10, "{lines:?}");
}

#[test]
fn a_post_is_not_sent_twice() {
    let server = Scripted::start(|turn| match turn.nth {
        0 => vec![Step::Send(answer(200, "abc"))],
        _ => vec![Step::Close],
    });
    let load = LoadSpec { mix: vec![request("POST", "/", Some("${counter}"))], requests: Some(10), ..spec() };
    let counts = check(server.address(), &load).counts;
    assert_eq!((counts.good, counts.retries, counts.failed[&Failure::ClosedEarly]), (5, 0, 5));
}

/// An answer that sets cookies.
fn setting(fields: &[&str]) -> Vec<Step> {
    let fields: String = fields.iter().map(|field| format!("Set-Cookie: {field}\r\n")).collect();
    vec![Step::Send(format!("HTTP/1.1 200 X\r\n{fields}Content-Length: 0\r\n\r\n").into_bytes())]
}

#[test]
fn each_connection_keeps_its_cookies() {
    let server = Scripted::start(|turn| match turn.nth {
        0 => setting(&[&format!("id={}; Path=/; HttpOnly", turn.connection), "gone=1"]),
        1 => setting(&["gone=; Max-Age=0", "late=x; Expires=Fri, 31 Dec 9999 23:59:59 GMT"]),
        _ => vec![Step::Send(answer(200, ""))],
    });
    let one = RequestSpec { headers: headers(&[("Cookie", "own=1; id=none")]), ..RequestSpec::get("/") };
    let load = LoadSpec { mix: vec![one], requests: Some(6), cookies: true, ..spec() };
    assert_eq!(check(server.address(), &load).counts.good, 6);
    let cookies: Vec<_> = server
        .all_requests()
        .iter()
        .map(|(head, _)| head.split("Cookie: ").nth(1).unwrap().lines().next().unwrap().to_owned())
        .collect();
    let last = "own=1; id=0; late=x";
    assert_eq!(cookies, ["own=1; id=none", "own=1; id=0; gone=1", last, last, last, last]);
}

#[test]
fn cookies_of_the_load_may_hold_templates_beside_those_of_the_server() {
    let server = Scripted::always(setting(&["id=7"]));
    let one = RequestSpec { headers: headers(&[("Cookie", "n=${counter}; id=none")]), ..RequestSpec::get("/") };
    let load = LoadSpec { mix: vec![one], requests: Some(3), cookies: true, ..spec() };
    assert_eq!(check(server.address(), &load).counts.good, 3);
    let expected = ["n=1; id=none", "n=2; id=7", "n=3; id=7"];
    for ((head, _), expected) in server.all_requests().iter().zip(expected) {
        assert!(head.contains(&format!("\r\nCookie: {expected}\r\n")), "{head}");
    }
}

/// One POST that waits for a 100 before its body.
fn waiting(requests: u64) -> LoadSpec {
    let one = RequestSpec {
        headers: headers(&[("Expect", "100-continue")]),
        ..request("POST", "/", Some("body ${counter}"))
    };
    LoadSpec { mix: vec![one], requests: Some(requests), ..spec() }
}

fn interim(status: u16) -> Step {
    Step::Send(format!("HTTP/1.1 {status} X\r\n\r\n").into_bytes())
}

#[test]
fn a_body_waits_until_it_is_asked_for() {
    let server = Scripted::always(vec![interim(103), interim(100), Step::ReadBody, Step::Send(answer(200, "abc"))]);
    let result = check(server.address(), &waiting(5));
    assert_eq!((result.counts.good, result.counts.connects), (5, 1));
    let bodies: Vec<_> = seen(&server).into_iter().map(|(_, body)| body).collect();
    assert_eq!(bodies, ["body 1", "body 2", "body 3", "body 4", "body 5"]);
    let bytes: usize = server.all_requests().iter().map(|(head, body)| head.len() + body.len()).sum();
    assert_eq!(result.counts.bytes_out, bytes as u64);
}

#[test]
fn a_body_that_nobody_asks_for_is_sent_after_a_second() {
    let server = Scripted::always(vec![Step::ReadBody, Step::Send(answer(200, "abc"))]);
    let result = check(server.address(), &waiting(1));
    assert_eq!((result.counts.good, result.counts.retries), (1, 0));
    assert!(result.seconds() >= 1.0, "{}", result.seconds());
    assert_eq!(seen(&server)[0].1, "body 1");
}

#[test]
fn a_body_waits_no_longer_when_its_request_is_sent_again() {
    // The second request is closed upon without a byte, as by a server that found the connection idle for too long.
    let server = Scripted::start(|turn| match (turn.connection, turn.nth) {
        (0, 0) => vec![interim(100), Step::ReadBody, Step::Send(answer(200, "abc"))],
        (0, _) => vec![Step::Close],
        _ => vec![Step::ReadBody, Step::Send(answer(200, "abc"))],
    });
    let load = waiting(2);
    let one = RequestSpec { method: "PUT".to_owned(), ..load.mix[0].clone() };
    let result = check(server.address(), &LoadSpec { mix: vec![one], ..load });
    assert_eq!((result.counts.good, result.counts.retries), (2, 1));
}

#[test]
fn a_final_answer_in_place_of_a_100_ends_the_connection() {
    let server = Scripted::always(vec![Step::Send(answer(200, "abc")), Step::Hang]);
    let result = check(server.address(), &waiting(4));
    assert_eq!((result.counts.good, result.counts.connects, server.accepted()), (4, 4, 4));
    assert!(seen(&server).iter().all(|(_, body)| body.is_empty()));
}

#[test]
fn answers_without_a_body_are_whole() {
    let head = |line: &str, length| {
        vec![Step::Send(format!("HTTP/1.1 {line}\r\nContent-Length: {length}\r\n\r\n").into_bytes())]
    };
    // What a HEAD or a 304 says of a length is that of another answer.
    for (method, steps, status) in [
        ("HEAD", head("200 OK", 1000), 200),
        ("GET", head("304 Not Modified", 1000), 304),
        ("GET", vec![Step::Send(b"HTTP/1.1 204 No Content\r\n\r\n".to_vec())], 204),
        ("GET", [vec![interim(103), interim(102)], head("200 OK", 0)].concat(), 200),
    ] {
        let server = Scripted::always(steps);
        let load = LoadSpec { mix: vec![request(method, "/", None)], requests: Some(20), ..spec() };
        let counts = check(server.address(), &load).counts;
        assert_eq!((counts.statuses[&status], counts.connects), (20, 1), "{method} {status}");
        assert_eq!(counts.good, if status == 304 { 0 } else { 20 }, "{method} {status}");
    }
}

/// A log of these requests, so many milliseconds after its beginning.
fn logged(requests: &[(u64, &str, &str)]) -> LoadSpec {
    let mut recording = Recording::default();
    for (n, &(at_ms, method, target)) in requests.iter().enumerate() {
        recording.add_target(u32::from(method == "HEAD"), target);
        recording.add(at_ms * 1_000_000, u32::try_from(n).expect("few requests"));
    }
    let span_ns = requests.last().map_or(0, |&(at_ms, ..)| at_ms * 1_000_000);
    let used = requests.len() as u64;
    let log = Log {
        file: "access.log".into(),
        format: "common".to_owned(),
        speed: 1.0,
        lines: used,
        used,
        span_ns,
        left_out: Vec::new(),
        recording: Arc::new(recording),
    };
    let mix = ["GET", "HEAD"].map(|method| request(method, LOGGED_PATH, None)).to_vec();
    LoadSpec { mix, log: Some(log), pace: Pace::Logged, requests: None, same_length: false, ..spec() }
}

const LOG: [(u64, &str, &str); 5] =
    [(0, "GET", "/a"), (20, "HEAD", "/b?c"), (20, "GET", "/"), (150, "GET", "/a"), (300, "GET", "/end")];

#[test]
fn a_log_is_replayed_at_its_own_times() {
    for threads in [1, 2] {
        let server = Scripted::start(|turn| match turn.total {
            // The one HEAD may be the second or the third.
            1 | 2 => vec![Step::Send(answer(200, ""))],
            _ => vec![Step::Send(answer(200, "abc"))],
        });
        let load = LoadSpec { connections: 4, threads: Some(threads), ..logged(&LOG) };
        let result = check(server.address(), &load);
        let open = result.open.as_ref().unwrap();
        assert_eq!((result.counts.good, open.arrived, open.unsent), (5, 5, 0));
        assert!((0.29..2.0).contains(&result.seconds()), "{}", result.seconds());
        let mut lines: Vec<_> = seen(&server).into_iter().map(|(line, _)| line).collect();
        // Those of the same moment may come in either order.
        lines[1..3].sort_unstable();
        let expected = ["GET /a", "GET /", "HEAD /b?c", "GET /a", "GET /end"];
        assert_eq!(lines, expected.map(|line| format!("{line} HTTP/1.1")));
    }
}

#[test]
fn a_replay_can_be_cut() {
    let server = friendly();
    let only = logged(&LOG[2..]);
    let first = check(server.address(), &LoadSpec { requests: Some(2), ..only.clone() });
    assert_eq!((first.counts.good, server.requests()), (2, 2));
    let early = check(server.address(), &LoadSpec { duration_ns: Some(SECOND / 5), ..only });
    assert_eq!((early.counts.good, server.requests()), (2, 4));
}

#[test]
fn a_log_in_a_closed_loop_begins_again() {
    let server = friendly();
    let load = LoadSpec { pace: Pace::WhenFree, requests: Some(7), ..logged(&[LOG[0], LOG[2], LOG[4]]) };
    assert_eq!(check(server.address(), &load).counts.good, 7);
    let lines: String =
        seen(&server).into_iter().map(|(line, _)| line.replace("GET ", "").replace("HTTP/1.1", "")).collect();
    assert_eq!(lines, "/a / /end /a / /end /a ");
}

#[test]
fn an_answer_counts_from_when_its_request_was_logged() {
    // One connection, and an answer that takes longer than the distance between requests.
    let server = Scripted::always(vec![Step::Wait(Duration::from_millis(60)), Step::Send(answer(200, "abc"))]);
    let result = check(server.address(), &logged(&[(0, "GET", "/a"), (1, "GET", "/b"), (2, "GET", "/c")]));
    let (_, longest) = result.total.range_us().unwrap();
    assert!(longest >= 170_000, "{longest}");
}
