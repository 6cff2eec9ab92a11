//! Every way a request can fail, and that it is counted as that and as nothing else.

use crate::{check, friendly, spec};
use load::{Ending, LoadError};
use model::SECOND;
use model::load::Failure;
use model::plan::{Body, LoadSpec, RequestSpec};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::AtomicBool;
use testkit::scripted::{Refusing, Scripted, Step, Turn, answer};

/// Five requests on two connections to `address` all fail with one cause, and the example tells of it.
fn all_fail(address: SocketAddr, spec: &LoadSpec, cause: Failure, example: &str) {
    let result = check(address, &LoadSpec { requests: Some(5), connections: 2, ..spec.clone() });
    assert_eq!(result.counts.good, 0);
    assert_eq!(result.counts.failed.into_iter().collect::<Vec<_>>(), [(cause, 5)]);
    let text = &result.examples[&cause];
    assert!(text.contains(example), "{text}");
}

fn send(bytes: &[u8]) -> Step {
    Step::Send(bytes.to_vec())
}

#[test]
fn nobody_listens() {
    all_fail(Refusing::start().address(), &spec(), Failure::Refused, "refused");
}

#[test]
fn the_connection_is_reset() {
    all_fail(Scripted::always(vec![Step::Reset]).address(), &spec(), Failure::Reset, "reset");
    let half = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc";
    // The client may find the reset before it has read what came first; either way it is a reset.
    all_fail(Scripted::always(vec![send(half), Step::Reset]).address(), &spec(), Failure::Reset, "reset");
}

#[test]
fn no_answer_in_time() {
    let spec = LoadSpec { timeout_ns: SECOND / 20, ..spec() };
    let silent = Scripted::always(vec![Step::Hang]);
    all_fail(silent.address(), &spec, Failure::Timeout, "0 bytes");
    let half = Scripted::always(vec![send(b"HTTP/1.1 200 OK\r\n"), Step::Hang]);
    all_fail(half.address(), &spec, Failure::Timeout, "17 bytes");
}

#[test]
fn the_server_closes_early() {
    let closing = Scripted::always(vec![Step::Close]);
    all_fail(closing.address(), &spec(), Failure::ClosedEarly, "after 0 bytes");
    assert_eq!(closing.requests(), 5, "a request on a new connection is not sent again");
    let half = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc";
    all_fail(
        Scripted::always(vec![send(half), Step::Close]).address(),
        &spec(),
        Failure::ClosedEarly,
        "after 41 bytes",
    );
}

#[test]
fn the_answer_is_not_http() {
    let ssh = Scripted::always(vec![send(b"SSH-2.0-x\r\n"), Step::Hang]);
    all_fail(ssh.address(), &spec(), Failure::BadResponse, "\"SSH-2.0-x\\r\\n\"");
}

#[test]
fn the_status_is_not_2xx() {
    all_fail(Scripted::always(vec![send(&answer(503, "sorry"))]).address(), &spec(), Failure::Status, "503");
    let mixed = Scripted::start(|turn| vec![send(&answer([200, 404, 201][turn.total as usize % 3], "abc"))]);
    let result = check(mixed.address(), &LoadSpec { requests: Some(30), ..spec() });
    assert_eq!(result.counts.statuses.into_iter().collect::<Vec<_>>(), [(200, 10), (201, 10), (404, 10)]);
    assert_eq!((result.counts.good, result.counts.failed[&Failure::Status]), (20, 10));
    assert_eq!((result.counts.connects, mixed.accepted()), (1, 1), "a complete answer keeps the connection");
}

#[test]
fn the_length_differs() {
    // The first answer is an error page, which sets no length.
    let varying = || {
        Scripted::start(|turn| {
            vec![match turn.total {
                0 => send(&answer(500, "a page about an error")),
                n if n % 2 == 1 => send(&answer(200, "abc")),
                _ => send(&answer(200, "abcd")),
            }]
        })
    };
    let strict = LoadSpec { requests: Some(9), ..spec() };
    let result = check(varying().address(), &strict);
    assert_eq!(
        result.counts.failed.into_iter().collect::<Vec<_>>(),
        [(Failure::LengthDiffers, 4), (Failure::Status, 1)]
    );
    assert_eq!((result.counts.good, result.body_bytes), (4, Some(3)));
    assert_eq!(result.examples[&Failure::LengthDiffers], "a body of 4 bytes, where the first good one had 3");
    let lenient = check(varying().address(), &LoadSpec { same_length: false, ..strict });
    assert_eq!((lenient.counts.good, lenient.body_bytes), (8, Some(3)));
}

#[test]
fn this_machine_cannot_send() {
    // The kernel connects no TCP socket to the broadcast address, whatever the routes.
    let broadcast = SocketAddr::from((Ipv4Addr::BROADCAST, 80));
    all_fail(broadcast, &spec(), Failure::Local, "while connecting");
}

#[test]
fn a_dead_server_is_not_spun_on() {
    let dead = Refusing::start();
    let result = check(dead.address(), &LoadSpec { requests: None, duration_ns: Some(SECOND * 3 / 10), ..spec() });
    // Pauses of 4, 8, 16, 32, 64 and 128 ms fit into 300 ms. A slow machine only makes fewer.
    assert!((1..=7).contains(&result.counts.failures()), "{:?}", result.counts);
}

#[test]
fn whoever_does_not_rest_goes_on_at_once() {
    let (dead, stop) = (Refusing::start(), AtomicBool::new(false));
    let pauses = |rests| {
        let load = LoadSpec { rests, requests: Some(6), ..spec() };
        let records = load::records(&load, &crate::target(dead.address()), &[], &stop).expect("the load starts");
        assert!(records.iter().all(|record| record.ending == Ending::Failed(Failure::Refused)), "{records:?}");
        records.windows(2).map(|pair| pair[1].start_ns - pair[0].end_ns).collect::<Vec<_>>()
    };
    // The shortest rest is of 4 ms. A slow machine may make any pause longer, but hardly all of them.
    let (with, without) = (pauses(true), pauses(false));
    assert!(with.iter().all(|&pause| pause >= 4_000_000), "{with:?}");
    assert!(without.iter().any(|&pause| pause < 4_000_000), "{without:?}");
}

#[test]
fn a_good_answer_makes_the_next_pause_short_again() {
    let server =
        Scripted::start(|turn| if turn.total % 2 == 0 { vec![Step::Close] } else { vec![send(&answer(200, "abc"))] });
    let load = LoadSpec { requests: Some(40), keep_alive: false, ..spec() };
    let stop = AtomicBool::new(false);
    let records = load::records(&load, &crate::target(server.address()), &[], &stop).expect("the load starts");
    let failed = |record: &load::Record| record.ending == Ending::Failed(Failure::ClosedEarly);
    let pauses = records.windows(2).filter(|pair| failed(&pair[0])).map(|pair| pair[1].start_ns - pair[0].end_ns);
    // Without an answer in between, all but the first seven pauses would be of 256 ms.
    let later: Vec<_> = pauses.skip(7).collect();
    assert_eq!(later.len(), 13);
    assert!(later.iter().any(|&pause| pause < 128_000_000), "{later:?}");
}

#[test]
fn a_server_that_recovers_is_loaded_again() {
    let server =
        Scripted::start(|turn| if turn.total < 3 { vec![Step::Close] } else { vec![send(&answer(200, "abc"))] });
    let result = check(server.address(), &LoadSpec { requests: Some(100), ..spec() });
    assert_eq!((result.counts.good, result.counts.failed[&Failure::ClosedEarly]), (97, 3));
}

#[test]
fn a_close_between_requests_is_a_reconnect() {
    // Three answers per connection, and no word about closing.
    let server = Scripted::start(|Turn { nth, .. }| match nth {
        2 => vec![send(&answer(200, "abc")), Step::Close],
        _ => vec![send(&answer(200, "abc"))],
    });
    let result = check(server.address(), &LoadSpec { requests: Some(100), ..spec() });
    assert_eq!((result.counts.good, result.counts.failures()), (100, 0));
    assert_eq!((result.counts.connects, server.accepted()), (34, 34));
    assert_eq!(result.counts.retries, 33);
    assert!(result.retry_example.is_some());
}

#[test]
fn a_server_that_dies_of_every_second_request_is_not_silently_asked_again() {
    // It reads the request and closes without a byte, as a worker that crashes does.
    let server = Scripted::start(|Turn { nth, .. }| match nth {
        1 => vec![Step::Close],
        _ => vec![send(&answer(200, "abc"))],
    });
    let result = check(server.address(), &LoadSpec { requests: Some(10), ..spec() });
    assert_eq!((result.counts.good, result.counts.failures(), result.counts.retries), (10, 0, 9));
    assert_eq!(server.requests(), 19, "nine were sent twice");
    assert_eq!(result.retry_example.as_deref(), Some("the server closed after 0 bytes of the answer"));
}

#[test]
fn half_an_answer_on_a_kept_connection_is_a_failure() {
    let server = Scripted::start(|Turn { nth, .. }| match nth {
        1 => vec![send(b"HTTP/1.1 200"), Step::Close],
        _ => vec![send(&answer(200, "abc"))],
    });
    let result = check(server.address(), &LoadSpec { requests: Some(10), ..spec() });
    assert_eq!((result.counts.good, result.counts.failed[&Failure::ClosedEarly]), (5, 5));
    assert_eq!((server.requests(), result.counts.retries), (10, 0), "none was sent twice");
}

#[test]
fn what_cannot_start_says_why() {
    let server = friendly();
    let mut on_interval = |_: &_| {};
    let mut error = |spec: &LoadSpec, cpus: &[u32]| {
        let stop = AtomicBool::new(false);
        let mut control = load::Control { stop: &stop, on_interval: &mut on_interval };
        load::run(spec, &crate::target(server.address()), cpus, &mut control).unwrap_err()
    };
    assert!(matches!(error(&LoadSpec { connections: 0, ..spec() }, &[]), LoadError::NoConnections(_)));
    assert!(matches!(error(&LoadSpec { requests: None, ..spec() }, &[]), LoadError::Endless(_)));
    assert!(matches!(
        error(&LoadSpec { mix: vec![RequestSpec::get("/a b")], ..spec() }, &[]),
        LoadError::Request { .. }
    ));
    assert!(matches!(error(&spec(), &[4096]), LoadError::Pin { .. }));
    assert_eq!(server.accepted(), 0);
}

#[test]
fn an_answer_before_the_request_is_sent_is_an_answer() {
    // It reads the head, refuses the body and closes on the rest of it, which resets the connection.
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback has a free port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(&answer(413, "too large"));
        }
    });
    let body = Body::written("x".repeat(16 << 20));
    let one = RequestSpec { method: "POST".to_owned(), body: Some(body), ..RequestSpec::get("/") };
    let result = check(address, &LoadSpec { mix: vec![one], requests: Some(5), ..spec() });
    assert_eq!(result.counts.failed.into_iter().collect::<Vec<_>>(), [(Failure::Status, 5)], "{:?}", result.examples);
    assert_eq!((result.counts.statuses[&413], result.counts.connects), (5, 5));
}
