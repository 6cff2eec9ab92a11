//! Requests that leave slowly: what has left counts as sent, and an answer that comes before the rest ends the connection.

use crate::{check, spec};
use load::{Ending, Record};
use model::load::Failure;
use model::plan::{Body, LoadSpec, RequestSpec};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::AtomicBool;
use testkit::scripted::{Refusing, Scripted, Step, answer};

/// More than the kernel takes at once.
const BODY: usize = 16 << 20;

fn put(body: usize) -> RequestSpec {
    RequestSpec { method: "PUT".to_owned(), body: Some(Body::written("x".repeat(body))), ..RequestSpec::get("/") }
}

/// Who reads 1000 bytes of each connection and answers, and then reads no further. Keeps connections for as long as their client.
fn hasty() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback has a free port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        let mut kept: Vec<TcpStream> = Vec::new();
        for mut stream in listener.incoming().flatten() {
            stream.read_exact(&mut [0; 1000]).expect("so much comes");
            stream.write_all(&answer(200, "abc")).expect("the client is there");
            kept.push(stream);
        }
    });
    address
}

fn records(address: SocketAddr, spec: &LoadSpec) -> Vec<Record> {
    load::records(spec, &crate::target(address), &[], &AtomicBool::new(false)).expect("the load starts")
}

#[test]
fn an_answer_before_the_request_has_left_ends_the_connection() {
    let load = LoadSpec { mix: vec![put(BODY)], requests: Some(4), ..spec() };
    let counts = check(hasty(), &load).counts;
    assert_eq!((counts.good, counts.failures(), counts.connects), (4, 0, 4));
    let records = records(hasty(), &load);
    assert!(records.iter().all(|r| r.answer.is_some_and(|answer| !answer.reusable)), "{records:?}");
    assert!(records.iter().all(|r| (1000..BODY as u64).contains(&r.bytes_out)), "{records:?}");
}

#[test]
fn what_was_behind_it_in_a_pipeline_is_sent_again() {
    let load = LoadSpec { mix: vec![put(BODY)], requests: Some(4), pipeline: 2, ..spec() };
    let counts = check(hasty(), &load).counts;
    assert_eq!((counts.good, counts.failures(), counts.connects), (4, 0, 4));
}

#[test]
fn a_pipeline_of_large_requests_stays_on_its_connection() {
    // Each answer comes when its request was read, while the next one is on its way.
    let server = Scripted::always(vec![Step::Send(answer(200, "abc"))]);
    let load = LoadSpec { mix: vec![put(BODY / 4)], requests: Some(9), pipeline: 3, ..spec() };
    let counts = check(server.address(), &load).counts;
    assert_eq!((counts.good, counts.connects, counts.retries), (9, 1, 0));
    let bytes: usize = server.all_requests().iter().map(|(head, body)| head.len() + body.len()).sum();
    assert_eq!(counts.bytes_out, bytes as u64);
}

#[test]
fn what_never_left_was_not_sent() {
    let refused = records(Refusing::start().address(), &LoadSpec { mix: vec![put(1000)], ..spec() });
    assert_eq!(refused.iter().map(|r| r.bytes_out).collect::<Vec<_>>(), [0]);
    // What was sent in vain was sent.
    let closing = Scripted::always(vec![Step::Close]);
    let closed = records(closing.address(), &spec());
    assert_eq!((closed.len(), closed[0].ending), (1, Ending::Failed(Failure::ClosedEarly)));
    assert_eq!(closed[0].bytes_out, closing.last_request().len() as u64);
}
