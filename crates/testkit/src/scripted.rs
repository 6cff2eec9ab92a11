//! A server on port 0 that does to each request exactly what a script says, and counts what it saw.
//!
//! It writes its own HTTP and reads requests as far as their empty line, and the body behind it by its `Content-Length`: it
//! is the oracle that clients are tested against, so it shares no code with them. One thread per connection; it stops when it is dropped.

use rustix::net::{AddressFamily, SocketFlags, SocketType};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// A running scripted server.
pub struct Scripted {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

/// Which request a script is asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// Connections accepted before this one.
    pub connection: u64,
    /// Requests read on this connection before this one.
    pub nth: u64,
    /// Requests read on all connections before this one.
    pub total: u64,
}

/// One thing the server does. After the last step of a request it reads the next request of the connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Sends bytes, in one piece as far as the kernel goes along.
    Send(Vec<u8>),
    /// Does nothing for so long: a slow server, or a gap between two pieces.
    Wait(Duration),
    /// Closes in the ordinary way.
    Close,
    /// Closes with a reset.
    Reset,
    /// Sends nothing more and waits until the client leaves.
    Hang,
    /// Reads the body of a request that has `Expect: 100-continue`; all others are read before the first step.
    ReadBody,
}

/// A port on this host that is taken and refuses every connection, for as long as the value lives.
pub struct Refusing {
    address: SocketAddr,
    _socket: OwnedFd,
}

impl Scripted {
    /// Starts a server on a free port of 127.0.0.1 that asks `script` what to do with each request.
    ///
    /// # Panics
    /// When loopback has no free port.
    pub fn start(script: impl Fn(Turn) -> Vec<Step> + Send + Sync + 'static) -> Scripted {
        Scripted::listen((Ipv4Addr::LOCALHOST, 0).into(), script)
    }

    /// Another server on this one's port, at 127.0.0.2, that does the same with every request.
    ///
    /// # Panics
    /// When somebody has taken that port there.
    #[must_use]
    pub fn beside(&self, steps: Vec<Step>) -> Scripted {
        Scripted::listen((Ipv4Addr::new(127, 0, 0, 2), self.address.port()).into(), move |_| steps.clone())
    }

    fn listen(at: SocketAddr, script: impl Fn(Turn) -> Vec<Step> + Send + Sync + 'static) -> Scripted {
        let listener = TcpListener::bind(at).expect("loopback has a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let shared = Arc::new(Shared {
            script: Box::new(script),
            accepted: AtomicU64::new(0),
            requests: AtomicU64::new(0),
            read: Mutex::default(),
            stopped: Mutex::new(false),
            stopping: Condvar::new(),
        });
        let accepting = std::thread::spawn({
            let shared = Arc::clone(&shared);
            move || accept(&listener, &shared)
        });
        Scripted { address, shared, accepting: Some(accepting) }
    }

    /// A server that does the same with every request.
    ///
    /// # Panics
    /// When loopback has no free port.
    pub fn always(steps: Vec<Step>) -> Scripted {
        Scripted::start(move |_| steps.clone())
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Connections accepted so far.
    #[must_use]
    pub fn accepted(&self) -> u64 {
        self.shared.accepted.load(Ordering::SeqCst)
    }

    /// Requests read so far, up to their empty line.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.shared.requests.load(Ordering::SeqCst)
    }

    /// The head of the last request read, as it came.
    #[must_use]
    pub fn last_request(&self) -> String {
        lock(&self.shared.read).last().map(|(head, _)| text(head)).unwrap_or_default()
    }

    /// Head and body of every request so far, in the order in which their heads were read; of the first [`KEPT`] only.
    #[must_use]
    pub fn all_requests(&self) -> Vec<(String, String)> {
        lock(&self.shared.read).iter().map(|(head, body)| (text(head), text(body))).collect()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Requests that are remembered; of more of them only the last one is.
pub const KEPT: usize = 1000;

impl Drop for Scripted {
    fn drop(&mut self) {
        *lock(&self.shared.stopped) = true;
        self.shared.stopping.notify_all();
        // Wakes the accepting thread, which then sees the flag.
        let _ = TcpStream::connect(self.address);
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
    }
}

impl Refusing {
    /// Takes a free port of 127.0.0.1 without listening on it.
    ///
    /// # Panics
    /// When loopback has no free port.
    #[must_use]
    pub fn start() -> Refusing {
        let socket = rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)
            .expect("a socket");
        rustix::net::bind(&socket, &SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).expect("loopback has a free port");
        let address = rustix::net::getsockname(&socket).expect("a bound socket has an address");
        Refusing { address: address.try_into().expect("it was bound to an IPv4 address"), _socket: socket }
    }

    /// The address that refuses.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// An HTTP/1.1 answer with a length.
#[must_use]
pub fn answer(status: u16, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

struct Shared {
    script: Box<dyn Fn(Turn) -> Vec<Step> + Send + Sync>,
    accepted: AtomicU64,
    requests: AtomicU64,
    read: Mutex<Vec<(Vec<u8>, Vec<u8>)>>,
    stopped: Mutex<bool>,
    stopping: Condvar,
}

impl Shared {
    fn is_stopped(&self) -> bool {
        *lock(&self.stopped)
    }

    /// Keeps a head; gives its place.
    fn remember(&self, head: Vec<u8>) -> usize {
        let mut read = lock(&self.read);
        if read.len() >= KEPT {
            read.truncate(KEPT - 1);
        }
        read.push((head, Vec::new()));
        read.len() - 1
    }

    fn wait(&self, length: Duration) {
        let stopped = lock(&self.stopped);
        let _ = self.stopping.wait_timeout_while(stopped, length, |stopped| !*stopped);
    }
}

// A script that panics fails its own test; the lock's content is whole all the same.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    let mut serving = Vec::new();
    for stream in listener.incoming() {
        if shared.is_stopped() {
            break;
        }
        let Ok(stream) = stream else { continue };
        let connection = shared.accepted.fetch_add(1, Ordering::SeqCst);
        let shared = Arc::clone(shared);
        serving.push(std::thread::spawn(move || {
            // The client leaving in the middle is for the client's test to judge.
            let _ = serve(stream, connection, &shared);
        }));
    }
    for thread in serving {
        let _ = thread.join();
    }
}

fn serve(mut stream: TcpStream, connection: u64, shared: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    // How often a waiting thread looks whether the server is being stopped.
    stream.set_read_timeout(Some(Duration::from_millis(20)))?;
    let mut unread = Vec::new();
    for nth in 0.. {
        let Some(head) = read_head(&mut stream, &mut unread, shared)? else { return Ok(()) };
        let (length, waits) = (number_of(&head, "content-length"), asks_to_wait(&head));
        let total = shared.requests.fetch_add(1, Ordering::SeqCst);
        let place = shared.remember(head);
        if !waits {
            let Some(body) = read_body(&mut stream, &mut unread, length, shared)? else { return Ok(()) };
            lock(&shared.read)[place].1 = body;
        }
        for step in (shared.script)(Turn { connection, nth, total }) {
            match step {
                Step::Send(bytes) => stream.write_all(&bytes)?,
                Step::ReadBody => {
                    let Some(body) = read_body(&mut stream, &mut unread, length, shared)? else { return Ok(()) };
                    lock(&shared.read)[place].1 = body;
                }
                Step::Wait(length) => shared.wait(length),
                Step::Close => return Ok(()),
                // A lingering time of zero makes closing send a reset: socket(7).
                Step::Reset => return Ok(rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO))?),
                Step::Hang => {
                    while read_more(&mut stream, &mut unread, shared)? {}
                    return Ok(());
                }
            }
        }
    }
    Ok(())
}

/// The next request up to its empty line; `None` when the client has left or the server is stopped.
fn read_head(stream: &mut TcpStream, unread: &mut Vec<u8>, shared: &Shared) -> io::Result<Option<Vec<u8>>> {
    loop {
        if let Some(at) = unread.windows(4).position(|window| window == b"\r\n\r\n") {
            let rest = unread.split_off(at + 4);
            return Ok(Some(std::mem::replace(unread, rest)));
        }
        if !read_more(stream, unread, shared)? {
            return Ok(None);
        }
    }
}

/// So many bytes behind a head; `None` when they do not come.
fn read_body(
    stream: &mut TcpStream,
    unread: &mut Vec<u8>,
    length: usize,
    shared: &Shared,
) -> io::Result<Option<Vec<u8>>> {
    while unread.len() < length {
        if !read_more(stream, unread, shared)? {
            return Ok(None);
        }
    }
    let rest = unread.split_off(length);
    Ok(Some(std::mem::replace(unread, rest)))
}

/// The number in a field of a head; 0 without one.
fn number_of(head: &[u8], name: &str) -> usize {
    let head = text(head).to_ascii_lowercase();
    let field = head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    field.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
}

fn asks_to_wait(head: &[u8]) -> bool {
    text(head).to_ascii_lowercase().contains("\r\nexpect: 100-continue\r\n")
}

/// Waits for more bytes; false when the client has left or the server is stopped.
fn read_more(stream: &mut TcpStream, unread: &mut Vec<u8>, shared: &Shared) -> io::Result<bool> {
    let mut buffer = [0; 4096];
    while !shared.is_stopped() {
        match stream.read(&mut buffer) {
            Ok(n) => {
                unread.extend_from_slice(&buffer[..n]);
                return Ok(n > 0);
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a client that sends two requests at once receives until the server closes.
    fn check(steps: Vec<Step>, expected: Result<&str, io::ErrorKind>) {
        let server = Scripted::always(steps);
        let mut client = TcpStream::connect(server.address()).unwrap();
        client.write_all(b"GET /a HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\n\r\n").unwrap();
        client.shutdown(std::net::Shutdown::Write).unwrap();
        let mut received = String::new();
        let result = client.read_to_string(&mut received).map(|_| received.as_str()).map_err(|error| error.kind());
        assert_eq!(result, expected);
        assert_eq!(server.accepted(), 1);
    }

    #[test]
    fn steps_happen_in_order() {
        let (a, b) = (Step::Send(b"a".to_vec()), Step::Send(b"b".to_vec()));
        check(vec![a.clone(), Step::Wait(Duration::from_millis(1)), b.clone()], Ok("abab"));
        check(vec![a.clone(), Step::Close, b.clone()], Ok("a"));
        check(vec![a.clone(), Step::Hang], Ok("a"));
        check(vec![Step::Reset], Err(io::ErrorKind::ConnectionReset));
    }

    #[test]
    fn turns_are_counted_and_dropping_ends_a_hanging_connection() {
        let server = Scripted::start(|turn| match turn {
            Turn { connection: 0, nth: 0, total: 0 } => vec![Step::Send(b"x".to_vec())],
            Turn { connection: 0, nth: 1, total: 1 } => vec![Step::Send(b"y".to_vec()), Step::Hang],
            _ => vec![Step::Close],
        });
        let mut client = TcpStream::connect(server.address()).unwrap();
        client.write_all(b"GET /1 HTTP/1.1\r\n\r\nGET /2 HTTP/1.1\r\n\r\n").unwrap();
        let mut received = [0; 2];
        client.read_exact(&mut received).unwrap();
        assert_eq!(
            (&received, server.requests(), server.last_request().as_str()),
            (b"xy", 2, "GET /2 HTTP/1.1\r\n\r\n")
        );
        drop(server);
        assert_eq!(client.read(&mut received).unwrap(), 0);
    }

    #[test]
    fn a_taken_port_refuses() {
        let refusing = Refusing::start();
        let error = TcpStream::connect(refusing.address()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }
}
