//! How many connections wait at a place to be accepted, a port or a socket file, and how many may: asked of the kernel, without privilege.

use crate::sock_diag::{Question, SockDiag, State};

/// Bytes for one datagram of the kernel's answer.
const ROOM: usize = 64 * 1024;

/// What waits at one place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Queue {
    /// Connections that wait.
    pub waiting: u64,
    /// How many may; one more can be there when it is full.
    pub limit: u64,
}

/// A way to ask the kernel.
pub struct Queues {
    kernel: SockDiag,
    room: Vec<u8>,
}

impl Queues {
    /// Opens the socket to the kernel.
    ///
    /// # Errors
    /// When the kernel has no sock_diag, or does not let us ask.
    pub fn open() -> std::io::Result<Queues> {
        Ok(Queues { kernel: SockDiag::open()?, room: vec![0; ROOM] })
    }

    /// The queue at a place as PHP-FPM names it: `/run/php.sock`, `127.0.0.1:9000`, `9000`. `None` when nobody listens there, or the
    /// kernel does not tell.
    pub fn at(&mut self, place: &str) -> Option<Queue> {
        let mut found: Option<Queue> = None;
        let mut add = |waiting: u64, limit: u64| {
            let queue = found.get_or_insert_default();
            (queue.waiting, queue.limit) = (queue.waiting + waiting, queue.limit + limit);
        };
        if place.starts_with('/') {
            let told = self.kernel.ask_files(&mut self.room, &mut |waiting, limit, path| {
                if path == place.as_bytes() {
                    add(waiting, limit);
                }
            });
            told.ok()?;
        } else {
            let port: u16 = place.rsplit(':').next()?.parse().ok()?;
            let question = Question { state: State::Listen, local: port, remote: 0, info: false };
            let told = self.kernel.ask(question, &mut self.room, &mut |socket| {
                if socket.local() == port {
                    add(socket.waiting(), socket.limit());
                }
            });
            told.ok()?;
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::time::{Duration, Instant};

    /// Waits for it: the kernel may queue a connection of TCP a little after its client was told that it stands.
    fn check(place: &str, expected: u64) {
        let mut queues = Queues::open().unwrap();
        let end = Instant::now() + Duration::from_secs(10);
        loop {
            let queue = queues.at(place).unwrap();
            assert!(queue.limit >= 64, "{queue:?}");
            if queue.waiting == expected {
                return;
            }
            assert!(Instant::now() < end, "{place}: {queue:?} instead of {expected}");
            std::thread::yield_now();
        }
    }

    #[test]
    fn who_waits_is_counted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sock");
        let place = path.to_str().unwrap();
        let mut queues = Queues::open().unwrap();
        assert_eq!(queues.at(place), None);
        let listener = UnixListener::bind(&path).unwrap();
        if queues.at(place).is_none() {
            return testkit::skip::not_here("this kernel does not tell of socket files");
        }
        check(place, 0);
        let _waiting = [UnixStream::connect(&path).unwrap(), UnixStream::connect(&path).unwrap()];
        check(place, 2);
        let _accepted = listener.accept().unwrap();
        check(place, 1);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let _waiting = TcpStream::connect(address).unwrap();
        check(&address.to_string(), 1);
        check(&address.port().to_string(), 1);
        assert_eq!(queues.at("127.0.0.1:nine"), None);
    }
}
