//! Over TLS: what it comes to, how answers end, and requests that leave slowly. The server here is a script over rustls.

use crate::{friendly, spec};
use load::{Control, Record, Target};
use model::load::{Failure, LoadResult, TlsFacts};
use model::plan::{Body, LoadSpec, RequestSpec, TlsSpec, TlsVersion, Verify};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use testkit::scripted::answer;

type Stream = StreamOwned<ServerConnection, TcpStream>;

fn certificates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../app/tests/certificates")
}

/// A server that hands every connection to this, each on a thread of its own. The client may leave at any time.
fn serve(each: impl Fn(&mut Stream) -> io::Result<()> + Send + Sync + 'static) -> SocketAddr {
    let chain = CertificateDer::pem_file_iter(certificates().join("server.pem"))
        .expect("the certificate")
        .collect::<Result<_, _>>()
        .expect("a certificate");
    let key = PrivateKeyDer::from_pem_file(certificates().join("server.key")).expect("the key");
    let config =
        ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key).expect("they belong together");
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let address = listener.local_addr().expect("an address");
    let (config, each) = (Arc::new(config), Arc::new(each));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let session = ServerConnection::new(Arc::clone(&config)).expect("a session");
            let (mut stream, each) = (StreamOwned::new(session, stream), Arc::clone(&each));
            std::thread::spawn(move || each(&mut stream));
        }
    });
    address
}

/// Reads a request with so long a body.
fn read_request(stream: &mut Stream, body: usize) -> io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        head.extend(byte);
    }
    stream.read_exact(&mut vec![0; body])
}

fn tls() -> TlsSpec {
    TlsSpec {
        server_name: "server.example".to_owned(),
        verify: Verify::File(certificates().join("authority.pem")),
        version: None,
        suites: Vec::new(),
        client: None,
        resume: true,
    }
}

fn run(address: SocketAddr, spec: &LoadSpec) -> LoadResult {
    let mut control = Control { stop: &AtomicBool::new(false), on_interval: &mut |_| {} };
    load::run(spec, &Target::new(address, "server.example"), &[], &mut control).expect("the load starts")
}

/// What TLS comes to under such a specification.
fn facts(version: Option<TlsVersion>, suites: &[&str]) -> LoadResult {
    let address = serve(|stream| {
        loop {
            read_request(stream, 0)?;
            stream.write_all(b"HTTP/1.1 200 OK\r\nServer: a script/1\r\nContent-Length: 0\r\n\r\n")?;
        }
    });
    let suites = suites.iter().map(|&suite| suite.to_owned()).collect();
    let load =
        LoadSpec { tls: Some(TlsSpec { version, suites, ..tls() }), requests: Some(6), connections: 2, ..spec() };
    let result = run(address, &load);
    assert_eq!((result.counts.good, result.handshake.len()), (6, 2), "{:?}", result.examples);
    assert_eq!(result.software.as_deref(), Some("a script/1"));
    result
}

#[test]
fn what_tls_came_to_is_told() {
    let group = || Some("X25519".to_owned());
    let facts = |version, suites: &[&str]| facts(version, suites).tls.expect("TLS came up");
    let found = facts(Some(TlsVersion::Tls12), &["TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"]);
    let suite = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256".to_owned();
    assert_eq!(found, TlsFacts { version: TlsVersion::Tls12, suite, group: group(), key_bits: Some(256) });
    let found = facts(None, &["TLS13_CHACHA20_POLY1305_SHA256"]);
    assert_eq!((found.version, found.suite.as_str()), (TlsVersion::Tls13, "TLS13_CHACHA20_POLY1305_SHA256"));
    assert_eq!(found.key_bits, Some(256));
    // Of several the server takes one that it has, and without any of them all are there.
    let found = facts(None, &["TLS13_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"]);
    assert_eq!(found.suite, "TLS13_AES_128_GCM_SHA256");
    assert_eq!(facts(None, &[]).version, TlsVersion::Tls13);
}

#[test]
fn suites_that_do_not_fit_are_refused_or_fail() {
    let with = |suites: &[&str]| {
        let suites = suites.iter().map(|&suite| suite.to_owned()).collect();
        LoadSpec { tls: Some(TlsSpec { suites, ..tls() }), ..spec() }
    };
    let error = load::check(&with(&["TLS_NULL"]), &Target::new(friendly().address(), "h")).unwrap_err();
    assert_eq!(error.reason(), "TLS: `TLS_NULL` is no cipher suite that webdyno has");
    // The server's key is of another kind.
    let result = run(serve(|stream| read_request(stream, 0)), &with(&["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"]));
    assert_eq!((result.counts.failed.get(&Failure::Tls), result.tls), (Some(&1), None), "{:?}", result.examples);
}

#[test]
fn without_tls_nothing_is_said_of_it() {
    let result = run(friendly().address(), &LoadSpec { requests: Some(3), ..spec() });
    assert_eq!((result.counts.good, result.software, result.tls), (3, None, None));
}

/// Two requests to a server that answers so and closes, with the alert that says so or without it.
fn closed_after(text: &'static str, says_so: bool) -> LoadResult {
    let address = serve(move |stream| {
        read_request(stream, 0)?;
        stream.write_all(text.as_bytes())?;
        if says_so {
            stream.conn.send_close_notify();
        }
        stream.flush()?;
        stream.sock.shutdown(std::net::Shutdown::Write)?;
        // Until the client leaves, so that nothing is reset.
        while stream.sock.read(&mut [0; 1024])? > 0 {}
        Ok(())
    });
    run(address, &LoadSpec { tls: Some(tls()), requests: Some(2), ..spec() })
}

#[test]
fn a_body_that_ends_by_closing_needs_the_alert() {
    let endless = "HTTP/1.1 200 OK\r\n\r\nhalf of it?";
    assert_eq!(closed_after(endless, true).counts.good, 2);
    let cut = closed_after(endless, false);
    assert_eq!((cut.counts.good, cut.counts.failed.get(&Failure::ClosedEarly)), (0, Some(&2)), "{:?}", cut.examples);
    assert_eq!(
        cut.examples[&Failure::ClosedEarly],
        "the server closed after 30 bytes of an answer without a length, and without TLS saying that this is its end"
    );
    // Whoever says a length has said where the end is.
    for text in ["HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", "HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nabc"] {
        assert_eq!(closed_after(text, false).counts.good, 2, "{text}");
    }
}

/// Such requests, each with a body of this length, to a server that reads so much of it and answers.
fn slowly(requests: u64, pipeline: u32, body: usize, read: usize) -> (LoadResult, Vec<Record>) {
    let address = serve(move |stream| {
        loop {
            read_request(stream, read)?;
            stream.write_all(&answer(200, "abc"))?;
            stream.flush()?;
            if read < body {
                // It reads no further, and keeps the connection.
                loop {
                    std::thread::park();
                }
            }
        }
    });
    let one =
        RequestSpec { method: "PUT".to_owned(), body: Some(Body::written("x".repeat(body))), ..RequestSpec::get("/") };
    let load = LoadSpec { mix: vec![one], tls: Some(tls()), requests: Some(requests), pipeline, ..spec() };
    let target = Target::new(address, "server.example");
    let records = load::records(&load, &target, &[], &AtomicBool::new(false)).expect("the load starts");
    (run(address, &load), records)
}

#[test]
fn an_answer_before_the_request_has_left_ends_the_session() {
    const BODY: usize = 16 << 20;
    let (result, records) = slowly(3, 1, BODY, 1000);
    assert_eq!((result.counts.good, result.counts.connects), (3, 3), "{:?}", result.examples);
    assert!(records.iter().all(|r| (1000..BODY as u64).contains(&r.bytes_out)), "{records:?}");
}

#[test]
fn a_pipeline_of_large_requests_stays_in_its_session() {
    const BODY: usize = 4 << 20;
    let (result, records) = slowly(6, 2, BODY, BODY);
    assert_eq!((result.counts.good, result.counts.connects, result.counts.retries), (6, 1, 0), "{:?}", result.examples);
    let first = records[0].bytes_out;
    assert!(first > BODY as u64 && records.iter().all(|r| r.bytes_out == first), "{records:?}");
}
