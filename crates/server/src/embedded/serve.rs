//! `webdyno serve`: a small real web server whose workers hold a connection from accept to close.
//!
//! A worker is a thread that accepts only when it is free, so the limit needs no counting: with N workers the N+1st connection
//! stays in the kernel's accept queue, exactly as with Apache's prefork. Answers come from hyper. Logs nothing.

use super::options::{Asked, HELP, KeepAlive, Options};
use super::work::{NoWork, Work, burn, touch};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::process::{Resource, getrlimit, setrlimit};
use std::convert::Infallible;
use std::ffi::OsString;
use std::future::poll_fn;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::task::Poll;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};

/// The server's name, as `/@settings` tells it.
const NAME: &str = concat!("webdyno/", env!("CARGO_PKG_VERSION"));
/// How long an idle connection holds its worker; Apache's own default.
const IDLE: Duration = Duration::from_secs(5);
/// Connections that may wait to be accepted; Apache's own default, and the kernel caps it at `net.core.somaxconn`.
const BACKLOG: i32 = 511;
/// A worker needs little: the workloads keep nothing on the stack.
const STACK: usize = 256 << 10;
const PAGE: &str = "<!doctype html>\n<title>webdyno</title>\n<p>A small page.\n";

const USAGE: u8 = 2;
const CANNOT_RUN: u8 = 4;
const REFUSED: u8 = 5;

// Bodies up to this size are parts of one block, as a server would send a cached file.
const SHARED: usize = 64 << 10;
static BLOCK: LazyLock<Bytes> = LazyLock::new(|| Bytes::from(vec![b'x'; SHARED]));

/// How a worker serves.
#[derive(Clone, Copy)]
struct Manner<'a> {
    workers: u32,
    keep_alive: KeepAlive,
    served: &'a AtomicU64,
}

/// Requests of one worker, on a cache line of its own: two workers that count do not meet.
#[derive(Default)]
#[repr(align(128))]
struct Served(AtomicU64);

/// Why it does not serve.
struct Failure {
    code: u8,
    what: String,
}

/// Runs `webdyno serve` until a signal ends it; `args` follow the command word. Returns the exit code.
#[must_use]
pub fn serve_main(args: &[OsString]) -> u8 {
    serve(args, &mut io::stdout(), &mut io::stderr())
}

fn serve(args: &[OsString], out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    let done = match Options::from_flags(args) {
        Ok(Asked::Help) => out.write_all(HELP.as_bytes()).map_err(cannot("cannot write the help")),
        Ok(Asked::Serve(options)) => run(&options, out),
        Err(what) => Err(Failure { code: USAGE, what: format!("{what}; see webdyno serve --help") }),
    };
    let Err(failure) = done else { return 0 };
    // The exit code still tells it when nobody can be told in words.
    let _ = writeln!(err, "webdyno serve: {}", failure.what);
    failure.code
}

/// Listens, says where, and serves until SIGTERM or SIGINT.
fn run(options: &Options, out: &mut dyn Write) -> Result<(), Failure> {
    let listener = Arc::new(listen(options.listen)?);
    let address = listener.local_addr().map_err(cannot("cannot read the port"))?;
    allow_many_files();
    let served: Arc<[Served]> = (0..options.workers).map(|_| Served::default()).collect();
    if let Some(socket) = &options.count {
        tell_count(socket, Arc::clone(&served))?;
    }
    let runtime = single_threaded().map_err(cannot("cannot start the event loop"))?;
    // Before the address is told, so that whoever reads it may already end the server.
    let (mut terminate, mut interrupt) = {
        let _inside = runtime.enter();
        let listen_for = |kind| signal(kind).map_err(cannot("cannot wait for signals"));
        (listen_for(SignalKind::terminate())?, listen_for(SignalKind::interrupt())?)
    };
    for number in 0..options.workers {
        let (listener, served) = (Arc::clone(&listener), Arc::clone(&served));
        let worker = single_threaded().map_err(cannot("cannot start all workers"))?;
        let (workers, keep_alive) = (options.workers, options.keep_alive);
        std::thread::Builder::new()
            .name(format!("worker-{number}"))
            .stack_size(STACK)
            .spawn(move || {
                let served = &served[number as usize].0;
                work(&listener, &worker, Manner { workers, keep_alive, served });
            })
            .map_err(cannot("cannot start all workers"))?;
    }
    writeln!(out, "listening on {address}").and_then(|()| out.flush()).map_err(cannot("cannot write the address"))?;
    runtime.block_on(poll_fn(|context| {
        let ended = terminate.poll_recv(context).is_ready() || interrupt.poll_recv(context).is_ready();
        if ended { Poll::Ready(()) } else { Poll::Pending }
    }));
    // The workers end with the process: a signal interrupts their requests, as it does Apache's.
    Ok(())
}

fn cannot(what: &'static str) -> impl FnOnce(io::Error) -> Failure {
    move |error| Failure { code: CANNOT_RUN, what: format!("{what}: {error}") }
}

/// Tells whoever connects how many requests were served, on a thread of its own: no worker is taken for it.
fn tell_count(socket: &Path, served: Arc<[Served]>) -> Result<(), Failure> {
    let listener = UnixListener::bind(socket).map_err(cannot("cannot make the socket for counts"))?;
    let tell = move || {
        for mut stream in listener.incoming().flatten() {
            let all: u64 = served.iter().map(|worker| worker.0.load(Ordering::Relaxed)).sum();
            // Whoever does not wait for the answer does not want it.
            let _ = writeln!(stream, "served {all}");
        }
    };
    let thread = std::thread::Builder::new().name("count".to_owned()).stack_size(STACK).spawn(tell);
    thread.map(|_| ()).map_err(cannot("cannot start a thread"))
}

/// Every worker has an event loop of its own, some descriptors each. Where the hard limit is low too, starting the workers fails and says so.
fn allow_many_files() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = setrlimit(Resource::Nofile, limit);
}

fn listen(address: SocketAddr) -> Result<TcpListener, Failure> {
    let failed = |error: io::Error| {
        let (code, why) = match error.kind() {
            io::ErrorKind::AddrInUse => (REFUSED, "it is in use; choose another port, or 0 for a free one".to_owned()),
            io::ErrorKind::PermissionDenied => (REFUSED, "not permitted; ports below 1024 need root".to_owned()),
            _ => (CANNOT_RUN, error.to_string()),
        };
        Failure { code, what: format!("cannot listen on {address}: {why}") }
    };
    let listener = TcpListener::bind(address).map_err(failed)?;
    // The standard library chooses a backlog; listening again only changes it.
    rustix::net::listen(&listener, BACKLOG).map_err(|error| failed(error.into()))?;
    Ok(listener)
}

fn single_threaded() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

/// One worker: accept, answer until the connection is closed, accept again.
fn work(listener: &TcpListener, runtime: &Runtime, manner: Manner<'_>) {
    loop {
        // The wait is in accept itself, where the kernel wakes one waiter for one connection.
        match listener.accept() {
            // A client that goes away is not the server's concern.
            Ok((stream, _)) => drop(runtime.block_on(converse(stream, manner))),
            // Out of descriptors, most likely: one may come free, and the connection is still queued.
            Err(_) => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}

async fn converse(stream: TcpStream, manner: Manner<'_>) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    stream.set_nonblocking(true)?;
    stream.set_nodelay(true)?;
    let stream = TokioIo::new(tokio::net::TcpStream::from_std(stream)?);
    let service =
        hyper::service::service_fn(move |request| async move { Ok::<_, Infallible>(answer(&request, manner).await) });
    hyper::server::conn::http1::Builder::new()
        .keep_alive(manner.keep_alive == KeepAlive::On)
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE)
        .serve_connection(stream, service)
        .await?;
    Ok(())
}

async fn answer(request: &Request<Incoming>, manner: Manner<'_>) -> Response<Full<Bytes>> {
    manner.served.fetch_add(1, Ordering::Relaxed);
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut refused = text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n");
        refused.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return refused;
    }
    match Work::parse(request.uri().path()) {
        Ok(Work::Page) => typed(StatusCode::OK, "text/html; charset=utf-8", Bytes::from_static(PAGE.as_bytes())),
        Ok(Work::Settings) => {
            let (workers, keep_alive, idle) = (manner.workers, manner.keep_alive.name(), IDLE.as_secs());
            let lines =
                format!("Server: {NAME}\nWorkers: {workers}\nKeepAlive: {keep_alive}\nKeepAliveTimeout: {idle}\n");
            text(StatusCode::OK, lines)
        }
        Ok(Work::Static(bytes)) => {
            let body = if bytes <= SHARED { BLOCK.slice(..bytes) } else { Bytes::from(vec![b'x'; bytes]) };
            typed(StatusCode::OK, "application/octet-stream", body)
        }
        Ok(Work::Cpu(time)) => {
            burn(time);
            text(StatusCode::OK, "OK\n")
        }
        Ok(Work::Sleep(time)) => {
            tokio::time::sleep(time).await;
            text(StatusCode::OK, "OK\n")
        }
        Ok(Work::Memory(bytes)) => match touch(bytes) {
            Ok(()) => text(StatusCode::OK, "OK\n"),
            Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, format!("no memory: {error}\n")),
        },
        Err(NoWork::Unknown) => text(StatusCode::NOT_FOUND, "no such path; see webdyno serve --help\n"),
        Err(NoWork::Quantity(why)) => text(StatusCode::BAD_REQUEST, format!("{why}\n")),
    }
}

fn text(status: StatusCode, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    typed(status, "text/plain; charset=utf-8", body.into())
}

fn typed(status: StatusCode, kind: &'static str, body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
