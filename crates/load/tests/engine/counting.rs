//! How many requests and connections there are, and that both sides agree on it.

use crate::{check, check_until, friendly, spec};
use model::SECOND;
use model::load::LoadEnd;
use model::plan::{Arrivals, HttpVersion, LoadSpec, Pace, RequestSpec, Timetable};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use testkit::scripted::{Scripted, Step, answer};

#[test]
fn requests_come_out_exactly() {
    for (requests, connections, threads) in [(1, 1, 1), (40, 10, 1), (1000, 7, 3), (5000, 50, 4), (3, 20, 4)] {
        let server = friendly();
        let result = check(
            server.address(),
            &LoadSpec { requests: Some(requests), connections, threads: Some(threads), ..spec() },
        );
        assert_eq!((result.counts.good, server.requests(), result.in_flight), (requests, requests, 0));
        assert_eq!((result.end.clone(), result.generator.threads), (LoadEnd::Requests, threads));
        assert_eq!(result.counts.connects, server.accepted());
        assert!(server.accepted() <= u64::from(connections).min(requests));
    }
}

#[test]
fn every_connection_gets_a_request_before_any_gets_a_second() {
    // More than are begun at once, of a server that answers the first ones meanwhile.
    let (server, connections) = (friendly(), 600);
    let load = LoadSpec { requests: Some(600), connections, threads: Some(1), ..spec() };
    let result = check(server.address(), &load);
    assert_eq!((result.counts.good, result.counts.connects), (600, 600), "{:?} {:?}", result.counts, result.examples);
}

#[test]
fn no_requests_is_a_load_too() {
    let server = friendly();
    let result = check(server.address(), &LoadSpec { requests: Some(0), connections: 3, ..spec() });
    assert_eq!((result.counts.good, server.accepted(), result.end), (0, 0, LoadEnd::Requests));
}

#[test]
fn threads_are_never_more_than_connections() {
    let result = check(friendly().address(), &LoadSpec { threads: Some(8), connections: 2, ..spec() });
    assert_eq!(result.generator.threads, 2);
}

#[test]
fn without_keep_alive_every_request_opens_a_connection() {
    for http in [HttpVersion::Http10, HttpVersion::Http11] {
        let server = friendly();
        let load = LoadSpec { requests: Some(200), connections: 5, keep_alive: false, http, ..spec() };
        let result = check(server.address(), &load);
        assert_eq!((result.counts.good, result.counts.connects, server.accepted()), (200, 200, 200));
        assert_eq!(server.last_request().contains("Connection: close"), http == HttpVersion::Http11);
    }
}

#[test]
fn a_server_that_announces_closing_is_believed() {
    let body = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc".to_vec();
    // It closes, or it leaves that to the client.
    for then in [Step::Close, Step::Hang] {
        let server = Scripted::always(vec![Step::Send(body.clone()), then]);
        let result = check(server.address(), &LoadSpec { requests: Some(50), connections: 2, ..spec() });
        assert_eq!((result.counts.good, result.counts.connects, server.requests()), (50, 50, 50));
    }
}

#[test]
fn bytes_behind_an_answer_end_the_connection() {
    let server = Scripted::always(vec![Step::Send([answer(200, "abc"), b"xyz".to_vec()].concat())]);
    let result = check(server.address(), &LoadSpec { requests: Some(10), ..spec() });
    assert_eq!((result.counts.good, result.counts.connects), (10, 10));
}

#[test]
fn http_1_0_keeps_a_connection_when_both_say_so() {
    let kept = b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 3\r\n\r\nabc".to_vec();
    let server = Scripted::always(vec![Step::Send(kept)]);
    let load = LoadSpec { requests: Some(20), http: HttpVersion::Http10, ..spec() };
    assert_eq!(check(server.address(), &load).counts.connects, 1);
    assert!(server.last_request().contains("\r\nConnection: keep-alive\r\n"));
    let closed = Scripted::always(vec![Step::Send(b"HTTP/1.0 200 OK\r\n\r\nabc".to_vec()), Step::Close]);
    let result = check(closed.address(), &load);
    assert_eq!((result.counts.good, result.counts.connects, result.body_bytes), (20, 20, Some(3)));
}

#[test]
fn the_request_is_the_one_asked_for() {
    let server = friendly();
    let headers = vec![("X-A".to_owned(), "1".to_owned())];
    check(server.address(), &LoadSpec { mix: vec![RequestSpec { headers, ..RequestSpec::get("/p?q") }], ..spec() });
    let expected = format!(
        "GET /p?q HTTP/1.1\r\nHost: {}\r\nX-A: 1\r\nUser-Agent: webdyno/{}\r\n\r\n",
        server.address(),
        env!("CARGO_PKG_VERSION")
    );
    assert_eq!(server.last_request(), expected);
}

#[test]
fn bytes_are_counted_however_they_come() {
    let body = "x".repeat(300_000);
    let whole = answer(200, &body);
    let length = whole.len() as u64;
    let (first, rest) = whole.split_at(20);
    let pieces = [first, b"", &rest[..100_000], &rest[100_000..]].map(|piece| Step::Send(piece.to_vec())).to_vec();
    let server = Scripted::always(pieces);
    let result = check(server.address(), &LoadSpec { requests: Some(10), connections: 2, ..spec() });
    assert_eq!((result.counts.good, result.counts.bytes_in, result.body_bytes), (10, 10 * length, Some(300_000)));
    assert_eq!(result.counts.bytes_out, 10 * server.last_request().len() as u64);
}

#[test]
fn chunks_are_counted_without_their_framing() {
    let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n".to_vec();
    let server = Scripted::always(vec![Step::Send(chunked)]);
    let result = check(server.address(), &LoadSpec { requests: Some(10), ..spec() });
    assert_eq!((result.counts.good, result.body_bytes, server.accepted()), (10, Some(3), 1));
}

#[test]
fn whichever_is_reached_first_ends_the_load() {
    let (server, hour) = (friendly(), 3600 * SECOND);
    let both = |requests, duration_ns| LoadSpec { requests: Some(requests), duration_ns: Some(duration_ns), ..spec() };
    assert_eq!(check(server.address(), &both(10, hour)).end, LoadEnd::Requests);
    assert_eq!(check(server.address(), &both(u64::MAX, SECOND / 10)).end, LoadEnd::Duration);
}

#[test]
fn somebody_may_stop_it() {
    let stop = Arc::new(AtomicBool::new(false));
    let server = Scripted::start({
        let stop = Arc::clone(&stop);
        move |turn| {
            stop.fetch_or(turn.total == 100, Ordering::Relaxed);
            vec![Step::Send(answer(200, "abc"))]
        }
    });
    let load =
        LoadSpec { requests: None, duration_ns: Some(3600 * SECOND), connections: 4, threads: Some(2), ..spec() };
    let result = check_until(server.address(), &load, &stop);
    assert_eq!(result.end, LoadEnd::Stopped);
    assert!(result.counts.good >= 97, "{:?}", result.counts);
}

#[test]
fn a_pipeline_is_answered_in_order() {
    let server = friendly();
    for (connections, pipeline) in [(1, 4), (3, 16), (40, 4)] {
        let load = LoadSpec { requests: Some(1000), connections, pipeline, ..spec() };
        let result = check(server.address(), &load);
        let counts = &result.counts;
        assert_eq!((counts.good, counts.failures(), counts.connects), (1000, 0, u64::from(connections)));
    }
    assert_eq!(server.requests(), 3000);
}

#[test]
fn a_pipeline_goes_on_where_the_server_closed() {
    // Five answers to a connection, the last of them says that it closes; what was sent behind it is sent again.
    let last = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc".to_vec();
    let server = Scripted::start(move |turn| {
        if turn.nth < 4 { vec![Step::Send(answer(200, "abc"))] } else { vec![Step::Send(last.clone()), Step::Close] }
    });
    let load = LoadSpec { requests: Some(100), connections: 1, pipeline: 8, ..spec() };
    let result = check(server.address(), &load);
    assert_eq!((result.counts.good, result.counts.failures()), (100, 0));
    // A server that closes with requests unread resets the connection, which may overtake an answer.
    assert!((20..=100).contains(&result.counts.connects), "{:?}", result.counts);
    assert!(result.counts.retries > 0);
}

#[test]
fn after_a_retry_a_pipeline_waits_for_an_answer() {
    use std::io::{ErrorKind, Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let read_heads = |stream: &mut std::net::TcpStream, heads: usize| {
        let mut read = Vec::new();
        while read.windows(4).filter(|window| window == b"\r\n\r\n").count() < heads {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            read.extend(byte);
        }
    };
    let served = std::thread::spawn(move || {
        // One of four is answered, then it closes; it has read all of them, so that the answer is not overtaken by a reset.
        let (mut first, _) = listener.accept().unwrap();
        read_heads(&mut first, 4);
        first.write_all(&answer(200, "abc")).unwrap();
        drop(first);
        let (mut second, _) = listener.accept().unwrap();
        read_heads(&mut second, 1);
        second.set_read_timeout(Some(std::time::Duration::from_millis(200))).unwrap();
        let further = second.read(&mut [0]).map_err(|error| error.kind());
        assert_eq!(further, Err(ErrorKind::WouldBlock), "a further request before the answer");
        second.set_read_timeout(None).unwrap();
        second.write_all(&answer(200, "abc")).unwrap();
        read_heads(&mut second, 2);
        second.write_all(&answer(200, "abc").repeat(2)).unwrap();
        second.read(&mut [0]).unwrap()
    });
    let load = LoadSpec { requests: Some(4), pipeline: 4, ..spec() };
    let counts = check(address, &load).counts;
    assert_eq!((counts.good, counts.failures(), counts.connects, counts.retries), (4, 0, 2, 3));
    assert_eq!(served.join().unwrap(), 0, "nothing behind them");
}

#[test]
fn a_unix_socket_is_a_server_too() {
    use std::io::{Read, Write};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let load = LoadSpec { requests: Some(5), ..spec() };
    let target = load::Target::new(load::Address::Unix(path), "localhost");
    let served = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut buffer = [0; 1000];
        while stream.read(&mut buffer).unwrap() > 0 {
            stream.write_all(&answer(200, "abc")).unwrap();
        }
    });
    let records = load::records(&load, &target, &[], &std::sync::atomic::AtomicBool::new(false)).unwrap();
    assert!(records.len() == 5 && records.iter().all(|record| record.ending == load::Ending::Good), "{records:?}");
    served.join().unwrap();
}

#[test]
fn an_open_loop_keeps_to_the_depth_of_its_pipeline() {
    let server = friendly();
    let pace = Pace::Timetable(Timetable::constant(20_000.0, Arrivals::Bursts { size: 7 }));
    let load = LoadSpec { pace, requests: Some(700), connections: 2, pipeline: 3, ..spec() };
    let result = check(server.address(), &load);
    assert_eq!((result.counts.good, server.requests()), (700, 700));
}
