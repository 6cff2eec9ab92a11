//! Ways to a server: several addresses in turn, and a tunnel through a proxy, which here is a script.

use crate::{friendly, spec};
use load::{Address, Control, Ending, Record, Target, Tunnel};
use model::SECOND;
use model::load::{Failure, LoadResult};
use model::plan::{Arrivals, Body, LoadSpec, Pace, RequestSpec, Timetable, TlsSpec, Verify};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::AtomicBool;
use testkit::scripted::{Refusing, Scripted, Step, answer};

fn run(target: &Target, spec: &LoadSpec) -> LoadResult {
    let mut control = Control { stop: &AtomicBool::new(false), on_interval: &mut |_| {} };
    load::run(spec, target, &[], &mut control).expect("the load starts")
}

/// How many connections each of three servers gets.
#[track_caller]
fn check_turns(spec: &LoadSpec, expected: [u64; 3]) {
    let servers = [friendly(), friendly(), friendly()];
    let address = Address::InTurn(servers.iter().map(Scripted::address).collect());
    let result = run(&Target::new(address, "there.example"), spec);
    assert_eq!((result.counts.good, result.counts.failures()), (spec.requests.unwrap_or_default(), 0));
    assert_eq!(servers.each_ref().map(Scripted::accepted), expected);
    assert!(servers.iter().all(|server| server.last_request().contains("\r\nHost: there.example\r\n")));
}

#[test]
fn of_several_servers_it_is_said_which_is_not_there() {
    let (server, dead) = (friendly(), Refusing::start());
    let target = Target::new(Address::InTurn(vec![server.address(), dead.address()]), "there.example");
    let result = run(&target, &LoadSpec { connections: 1, requests: Some(4), keep_alive: false, ..spec() });
    assert_eq!((result.counts.good, result.counts.failed.get(&Failure::Refused)), (2, Some(&2)));
    let example = &result.examples[&Failure::Refused];
    assert!(example.starts_with(&format!("while connecting to {}: ", dead.address())), "{example}");
}

#[test]
fn servers_behind_one_name_have_their_turns() {
    check_turns(&LoadSpec { connections: 1, requests: Some(7), keep_alive: false, ..spec() }, [3, 2, 2]);
    // A timetable gives every connection work; workers do not all begin with the first server.
    let pace = Pace::Timetable(Timetable::constant(20_000.0, Arrivals::Even));
    let all = LoadSpec { requests: Some(60), connections: 6, threads: Some(2), pace, ..spec() };
    check_turns(&all, [2, 2, 2]);
    check_turns(&LoadSpec { threads: Some(3), connections: 3, ..all }, [1, 1, 1]);
}

#[test]
fn of_several_addresses_of_one_server_the_first_that_can_be_reached_is_taken() {
    let (dead, first, second) = (Refusing::start(), friendly(), friendly());
    let first_of = |all: &[SocketAddr]| Target::new(Address::FirstOf(all.to_vec()), "there.example");
    for threads in [1, 2] {
        let before = first.accepted();
        let load = LoadSpec { connections: 4, threads: Some(threads), requests: Some(40), keep_alive: false, ..spec() };
        let result = run(&first_of(&[dead.address(), first.address(), second.address()]), &load);
        assert_eq!((result.counts.good, result.counts.failures(), result.counts.retries), (40, 0, 0));
        assert_eq!((first.accepted() - before, second.accepted()), (40, 0));
    }
    let load = LoadSpec { requests: Some(3), ..spec() };
    let result = run(&first_of(&[dead.address(), Refusing::start().address()]), &load);
    assert_eq!(result.counts.failed.get(&Failure::Refused), Some(&3));
}

#[test]
fn whoever_was_reached_is_not_left_for_another_address() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback has a free port");
    let (address, other) = (listener.local_addr().expect("an address"), friendly());
    // It is gone before the first answer is there.
    let served = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("the client comes");
        drop(listener);
        let _ = stream.read(&mut [0; 1000]).expect("a request");
        stream.write_all(&answer(200, "abc")).expect("the client waits");
    });
    let target = Target::new(Address::FirstOf(vec![address, other.address()]), "there.example");
    let result = run(&target, &LoadSpec { requests: Some(3), keep_alive: false, ..spec() });
    served.join().expect("the server is done");
    assert_eq!((result.counts.good, result.counts.failed.get(&Failure::Refused)), (1, Some(&2)));
    assert_eq!(other.accepted(), 0);
}

#[test]
fn sockets_have_buffers_of_the_size_asked_for() {
    // To a socket file a client sends as much as its own buffer holds, while nobody reads.
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("socket");
    let listener = std::os::unix::net::UnixListener::bind(&path).expect("a socket");
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        for mut stream in listener.incoming().flatten() {
            stream.read_exact(&mut [0; 1000]).expect("so much comes");
            stream.write_all(&answer(200, "abc")).expect("the client is there");
            kept.push(stream);
        }
    });
    let body = Some(Body::written("x".repeat(16 << 20)));
    let one = RequestSpec { method: "PUT".to_owned(), body, ..RequestSpec::get("/") };
    let load = LoadSpec { mix: vec![one], ..spec() };
    let sent = |buffers| {
        let target = Target { buffers, ..Target::new(Address::Unix(path.clone()), "there.example") };
        load::records(&load, &target, &[], &AtomicBool::new(false)).expect("the load starts")[0].bytes_out
    };
    let sizes = [8 << 10, 32 << 10, 96 << 10].map(|bytes| sent(Some(bytes)));
    assert!(sizes.is_sorted_by(|small, large| small < large), "{sizes:?}");
}

/// Two requests over TLS through a proxy that follows a script; what became of them, and what the proxy was asked.
fn through(steps: Vec<Step>) -> (Vec<Record>, LoadResult, Vec<String>) {
    let proxy = Scripted::always(steps);
    let credentials = [("Proxy-Authorization".to_owned(), "Basic bWU6cHc=".to_owned())];
    let tunnel = Tunnel::to("there.example:443", &credentials).expect("a tunnel");
    let target = Target { tunnel: Some(tunnel), ..Target::new(proxy.address(), "there.example") };
    let tls = TlsSpec {
        server_name: "there.example".to_owned(),
        verify: Verify::Nothing,
        version: None,
        suites: Vec::new(),
        client: None,
        resume: true,
    };
    let spec = LoadSpec { tls: Some(tls), requests: Some(2), timeout_ns: SECOND / 2, ..spec() };
    let records = load::records(&spec, &target, &[], &AtomicBool::new(false)).expect("the load starts");
    let result = run(&target, &spec);
    (records, result, proxy.all_requests().into_iter().map(|(head, _)| head).collect())
}

/// Every request fails of that, and none counts as answered or connected.
#[track_caller]
fn check_no_way(steps: Vec<Step>, cause: Failure, example: &str) {
    let (records, result, asked) = through(steps);
    assert!(records.iter().all(|r| r.ending == Ending::Failed(cause) && r.answer.is_none() && r.connect_ns.is_none()));
    assert_eq!((result.counts.failed.get(&cause), result.counts.failures()), (Some(&2), 2), "{:?}", result.counts);
    assert!(result.counts.statuses.is_empty() && result.counts.connects == 0 && result.counts.bytes_in == 0);
    assert_eq!(result.examples[&cause], example);
    assert!(asked.iter().all(|head| {
        head.starts_with("CONNECT there.example:443 HTTP/1.1\r\nHost: there.example:443\r\n")
            && head.contains("\r\nProxy-Authorization: Basic bWU6cHc=\r\n")
    }));
}

#[test]
fn a_proxy_that_refuses_is_no_server_that_answers() {
    let refused = |status: u16| vec![Step::Send(answer(status, "a page for humans"))];
    let says = |status: u16, why: &str| format!("the proxy answered CONNECT with status {status}: {why}");
    let known = says(407, "it wants a name and a password it knows");
    check_no_way(refused(407), Failure::Proxy, &known);
    check_no_way(refused(403), Failure::Proxy, &says(403, "it does not let us go there"));
    check_no_way(refused(502), Failure::Proxy, &says(502, "it does not reach the server"));
    // Whatever piece its answer comes in.
    let halves = answer(407, "").chunks(9).map(|piece| Step::Send(piece.to_vec())).collect();
    check_no_way(halves, Failure::Proxy, &known);
    check_no_way(vec![Step::Close], Failure::Proxy, "the proxy closed the connection when asked for a tunnel");
    check_no_way(
        vec![Step::Send(b"SSH-2.0-x\r\n\r\n".to_vec()), Step::Hang],
        Failure::Proxy,
        "the proxy answered CONNECT with what is not HTTP",
    );
    check_no_way(vec![Step::Hang], Failure::Timeout, "no complete answer in time, 0 bytes of it were there");
}

#[test]
fn behind_the_tunnel_there_is_tls() {
    // What answers there speaks no TLS: the way was there, and the failure is the server's.
    let (_, result, _) = through(vec![Step::Send(b"HTTP/1.1 200 OK\r\n\r\n".to_vec()), Step::Close]);
    assert_eq!(result.counts.failures(), 2);
    assert!(!result.counts.failed.contains_key(&Failure::Proxy), "{:?}", result.examples);
    assert_eq!(result.counts.connects, 2, "the tunnel was there");
}
