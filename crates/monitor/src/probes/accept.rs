//! Connections that wait to be accepted on the server's port.

use super::{Probe, Probes};
use crate::sock_diag::{Question, SockDiag, State};
use crate::source::Buffer;
use model::reading::{Column, Reading};
use rustix::io::Errno;

/// Opens the socket to the kernel.
pub(super) fn open(probes: &mut Probes, port: Option<u16>) {
    let Some(port) = port else { return };
    let opened = AcceptQueue::open(port).and_then(|mut queue| queue.ask(&mut probes.buffer).map(|_| queue));
    match opened {
        Ok(queue) => probes.add(queue),
        Err(error) => probes.notes.push(format!(
            "the kernel does not tell the accept queue ({error} from sock_diag): its columns are absent"
        )),
    }
}

struct AcceptQueue {
    kernel: SockDiag,
    port: u16,
}

/// The same queue, looked at outside a sampler.
pub(crate) struct AcceptLook(AcceptQueue, Buffer);

impl AcceptLook {
    pub(crate) fn open(port: u16) -> Result<AcceptLook, Errno> {
        Ok(AcceptLook(AcceptQueue::open(port)?, Buffer::new()))
    }

    /// How many connections wait now, and how many may.
    pub(crate) fn look(&mut self) -> Option<(u64, u64)> {
        let queues = self.0.ask(&mut self.1).ok()?;
        (queues.sockets > 0).then_some((queues.waiting, queues.limit))
    }
}

/// A socket that listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Listening {
    pub(super) port: u16,
    pub(super) waiting: u64,
    pub(super) limit: u64,
}

/// Over the sockets that listen on the port: how many connections wait, and how many may. The limits count of those sockets on which
/// somebody waits: what a second one for IPv6 has room for is of no use to who comes over IPv4. Where nobody waits, the largest.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Queues {
    sockets: u32,
    waiting: u64,
    limit: u64,
}

impl Probe for AcceptQueue {
    fn read(&mut self, row: &mut Reading, buffer: &mut Buffer) {
        if let Ok(queues) = self.ask(buffer)
            && queues.sockets > 0
        {
            row.set(Column::AcceptQueue, queues.waiting);
            row.set(Column::AcceptLimit, queues.limit);
        }
    }
}

impl AcceptQueue {
    fn open(port: u16) -> Result<Self, Errno> {
        Ok(AcceptQueue { kernel: SockDiag::open()?, port })
    }

    fn ask(&mut self, buffer: &mut Buffer) -> Result<Queues, Errno> {
        let (mut queues, port, mut largest) = (Queues::default(), self.port, 0);
        listening(&mut self.kernel, port, buffer, &mut |socket| {
            if socket.port == port {
                queues.sockets += 1;
                queues.waiting += socket.waiting;
                queues.limit += if socket.waiting > 0 { socket.limit } else { 0 };
                largest = largest.max(socket.limit);
            }
        })?;
        if queues.waiting == 0 {
            queues.limit = largest;
        }
        Ok(queues)
    }
}

/// Has the kernel tell every socket that listens on a port, or on any if it is 0.
pub(super) fn listening(
    kernel: &mut SockDiag,
    port: u16,
    buffer: &mut Buffer,
    tell: &mut dyn FnMut(Listening),
) -> Result<(), Errno> {
    let question = Question { state: State::Listen, local: port, remote: 0, info: false };
    kernel.ask(question, buffer.bytes(), &mut |told| {
        tell(Listening { port: told.local(), waiting: told.waiting(), limit: told.limit() });
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
    use std::time::{Duration, Instant};

    /// Waits for it: the kernel may queue a connection a little after its client was told that it stands.
    fn until(port: u16, expected: Queues) {
        let deadline = Instant::now() + Duration::from_secs(10);
        let (mut queue, mut buffer) = (AcceptQueue::open(port).unwrap(), Buffer::new());
        loop {
            let found = queue.ask(&mut buffer).unwrap();
            if found == expected {
                return;
            }
            assert!(Instant::now() < deadline, "{found:?} instead of {expected:?}");
        }
    }

    fn check(address: SocketAddr) {
        let listener = TcpListener::bind(address).unwrap();
        // A smaller backlog by listening again: the standard library asks for 4096 at most.
        rustix::net::listen(&listener, 3).unwrap();
        let address = listener.local_addr().unwrap();
        let port = address.port();
        until(port, Queues { sockets: 1, waiting: 0, limit: 3 });
        let waiting: Vec<_> = (0..2).map(|_| TcpStream::connect(address).unwrap()).collect();
        until(port, Queues { sockets: 1, waiting: 2, limit: 3 });
        // The kernel lets in one more than the limit.
        let full: Vec<_> = (0..2).map(|_| TcpStream::connect(address).unwrap()).collect();
        until(port, Queues { sockets: 1, waiting: 4, limit: 3 });
        listener.accept().unwrap();
        until(port, Queues { sockets: 1, waiting: 3, limit: 3 });
        drop((listener, waiting, full));
        until(port, Queues::default());
    }

    #[test]
    fn only_the_socket_that_is_come_to_has_room() {
        let v4 = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = v4.local_addr().unwrap();
        let Ok(v6) = TcpListener::bind((Ipv6Addr::LOCALHOST, address.port())) else {
            return testkit::skip::not_here("no IPv6, or its port is taken");
        };
        rustix::net::listen(&v4, 3).unwrap();
        rustix::net::listen(&v6, 5).unwrap();
        until(address.port(), Queues { sockets: 2, waiting: 0, limit: 5 });
        let _all: Vec<_> = (0..4).map(|_| TcpStream::connect(address).unwrap()).collect();
        until(address.port(), Queues { sockets: 2, waiting: 4, limit: 3 });
        let _another = TcpStream::connect(v6.local_addr().unwrap()).unwrap();
        until(address.port(), Queues { sockets: 2, waiting: 5, limit: 8 });
    }

    #[test]
    fn the_queue_of_a_listener() {
        check((Ipv4Addr::LOCALHOST, 0).into());
    }

    #[test]
    fn the_queue_of_a_listener_on_v6() {
        match TcpListener::bind((Ipv6Addr::LOCALHOST, 0)) {
            Ok(_) => check((Ipv6Addr::LOCALHOST, 0).into()),
            Err(error) => testkit::skip::not_here(&format!("no IPv6 ({error})")),
        }
    }
}
