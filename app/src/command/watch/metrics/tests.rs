//! The port as collectors meet it, good ones and bad ones, over real sockets.

use super::*;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::AtomicUsize;

fn loopback() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

fn served() -> Served {
    let mut count = 0;
    let text = move || {
        count += 1;
        format!("webdyno_collected_total {count}\n# EOF\n")
    };
    serve(listen(loopback()).unwrap(), text).unwrap()
}

/// Everything the port says to these bytes, until it closes.
fn told(served: &Served, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(served.address()).unwrap();
    // Refused bytes are no failure of the test: the answer may come, and the end with it, before the last of them.
    let _ = stream.write_all(bytes);
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn check(served: &Served, request: &str, status: &str, body: &str) {
    let answer = told(served, request.as_bytes());
    let (head, found) = answer.split_once("\r\n\r\n").expect("a head");
    assert_eq!((head.lines().next(), found), (Some(format!("HTTP/1.1 {status}").as_str()), body), "{request:?}");
    let length: usize = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).unwrap().parse().unwrap();
    assert!(found.len() == length || request.starts_with("HEAD"), "{head}");
}

#[test]
fn requests_are_answered() {
    let served = served();
    check(&served, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", "200 OK", "webdyno_collected_total 1\n# EOF\n");
    check(&served, "GET /metrics?a=b HTTP/1.0\r\n\r\n", "200 OK", "webdyno_collected_total 2\n# EOF\n");
    check(&served, "HEAD /metrics HTTP/1.1\r\nhost: x\r\n\r\n", "200 OK", "");
    check(&served, "GET / HTTP/1.0\r\n\r\n", "200 OK", "webdyno watch: the metrics are at /metrics\n");
    check(&served, "GET /x HTTP/1.0\r\n\r\n", "404 Not Found", "the metrics are at /metrics\n");
    check(
        &served,
        "POST /metrics HTTP/1.0\r\nContent-Length: 3\r\n\r\nabc",
        "405 Method Not Allowed",
        "only GET and HEAD\n",
    );
    check(&served, "GET /metrics HTTP/1.1\r\n\r\n", "400 Bad Request", "a request of HTTP/1.1 has a Host\n");
    check(&served, "GET /metrics HTTP/2.0\r\n\r\n", "400 Bad Request", "only HTTP/1.0 and HTTP/1.1\n");
    check(&served, "hello\r\n\r\n", "400 Bad Request", "this is no request of HTTP\n");
    let long = format!("GET / HTTP/1.0\r\nX: {}\r\n\r\n", "x".repeat(20_000));
    check(&served, &long, "431 Request Header Fields Too Large", "the head is too long\n");
    let answer = told(&served, b"GET /metrics HTTP/1.0\r\n\r\n");
    assert!(
        answer.contains("Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n"),
        "{answer}"
    );
    assert!(answer.contains(" GMT\r\n") && answer.contains("Connection: close\r\n"), "{answer}");
}

#[test]
fn a_request_may_come_in_pieces() {
    let served = served();
    let mut stream = TcpStream::connect(served.address()).unwrap();
    stream.set_nodelay(true).unwrap();
    for byte in b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" {
        stream.write_all(&[*byte]).unwrap();
    }
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("# EOF\n"), "{answer}");
}

#[test]
fn idle_and_slow_collectors_keep_nobody_out() {
    let large = "x 1\n".repeat(1 << 20) + "# EOF\n";
    let asked = Arc::new(AtomicUsize::new(0));
    let counting = Arc::clone(&asked);
    let text = move || {
        counting.fetch_add(1, Ordering::Relaxed);
        large.clone()
    };
    let served = serve(listen(loopback()).unwrap(), text).unwrap();
    let connect = |bytes: &[u8]| {
        let mut stream = TcpStream::connect(served.address()).unwrap();
        stream.write_all(bytes).unwrap();
        stream
    };
    // Some say nothing, some half a head; some ask and never read.
    let mut bad: Vec<TcpStream> = Vec::new();
    for _ in 0..AT_ONCE {
        bad.extend([connect(b""), connect(b"GET /met"), connect(b"GET /metrics HTTP/1.0\r\n\r\n")]);
    }
    let answer = told(&served, b"GET /metrics HTTP/1.0\r\n\r\n");
    assert!(answer.ends_with("x 1\n# EOF\n") && answer.len() > 4 << 20);
    assert!(asked.load(Ordering::Relaxed) > 1);
    // One that leaves at once ends only itself.
    connect(b"GET /metrics HTTP/1.0\r\n\r\n").shutdown(Shutdown::Both).unwrap();
    assert!(told(&served, b"HEAD / HTTP/1.0\r\n\r\n").starts_with("HTTP/1.1 200 OK"));
}

#[test]
fn a_taken_port_is_one_line() {
    let taken = TcpListener::bind(loopback()).unwrap();
    let address = taken.local_addr().unwrap();
    let refusal = listen(address).err().expect("a refusal");
    let expected =
        format!("cannot serve metrics on {address}: the port is in use; choose another, or 0 for a free one");
    assert_eq!(refusal.to_string(), expected);
}
