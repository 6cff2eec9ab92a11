//! Connections that wait to be accepted on the server's port, asked of the kernel over netlink (sock_diag).
//!
//! /proc/net/tcp has the same numbers and walks every connection of the host to print them: hundreds of times dearer, and dearest
//! when there are many connections. The kernel is asked for listening sockets of one port only.

use super::{Probe, Probes};
use crate::source::Buffer;
use model::reading::{Column, Reading};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink};
use std::os::fd::OwnedFd;

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
    kernel: ListenQuestions,
    port: u16,
}

/// A socket to the kernel that is asked for listening sockets.
pub(super) struct ListenQuestions {
    kernel: OwnedFd,
    sequence: u32,
}

/// A socket that listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Listening {
    pub(super) port: u16,
    pub(super) waiting: u64,
    pub(super) limit: u64,
}

/// Summed over the sockets that listen on the port.
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
        Ok(AcceptQueue { kernel: ListenQuestions::open()?, port })
    }

    fn ask(&mut self, buffer: &mut Buffer) -> Result<Queues, Errno> {
        let (mut queues, port) = (Queues::default(), self.port);
        self.kernel.ask(port, buffer, &mut |socket| {
            if socket.port == port {
                queues.sockets += 1;
                queues.waiting += socket.waiting;
                queues.limit += socket.limit;
            }
        })?;
        Ok(queues)
    }
}

impl ListenQuestions {
    pub(super) fn open() -> Result<Self, Errno> {
        let kernel = rustix::net::socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            Some(netlink::SOCK_DIAG),
        )?;
        Ok(ListenQuestions { kernel, sequence: 0 })
    }

    /// Has the kernel tell every socket that listens on a port, or on any if it is 0.
    pub(super) fn ask(&mut self, port: u16, buffer: &mut Buffer, tell: &mut dyn FnMut(Listening)) -> Result<(), Errno> {
        for family in [libc::AF_INET as u8, libc::AF_INET6 as u8] {
            self.sequence = self.sequence.wrapping_add(1);
            rustix::net::send(&self.kernel, &request(family, port, self.sequence), SendFlags::empty())?;
            loop {
                // An answer is ready as soon as the question was sent, so there is never anything to wait for.
                let received = rustix::net::recv(&self.kernel, &mut *buffer.bytes(), RecvFlags::DONTWAIT);
                let length = match received {
                    Err(Errno::INTR) => continue,
                    result => result?.1.min(buffer.bytes().len()),
                };
                if walk(&buffer.bytes()[..length], self.sequence, tell)? {
                    break;
                }
            }
        }
        Ok(())
    }
}

// Layouts of linux/netlink.h, linux/sock_diag.h and linux/inet_diag.h.
const HEADER: usize = 16;
const REQUEST: usize = HEADER + 56;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const FLAGS_REQUEST_DUMP: u16 = 0x1 | 0x300;
const TYPE_ERROR: u16 = 2;
const TYPE_DONE: u16 = 3;
const STATE_LISTEN: u32 = 10;
/// Offsets in an inet_diag_msg.
const PORT: usize = 4;
const RQUEUE: usize = 56;
const WQUEUE: usize = 60;

fn request(family: u8, port: u16, sequence: u32) -> [u8; REQUEST] {
    let mut request = [0; REQUEST];
    request[0..4].copy_from_slice(&(REQUEST as u32).to_ne_bytes());
    request[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    request[6..8].copy_from_slice(&FLAGS_REQUEST_DUMP.to_ne_bytes());
    request[8..12].copy_from_slice(&sequence.to_ne_bytes());
    request[HEADER] = family;
    request[HEADER + 1] = libc::IPPROTO_TCP as u8;
    request[HEADER + 4..HEADER + 8].copy_from_slice(&(1u32 << STATE_LISTEN).to_ne_bytes());
    request[HEADER + 8..HEADER + 10].copy_from_slice(&port.to_be_bytes());
    request
}

/// Tells the sockets of one datagram; true when it is the last of its answer.
fn walk(mut datagram: &[u8], sequence: u32, tell: &mut dyn FnMut(Listening)) -> Result<bool, Errno> {
    while datagram.len() >= HEADER {
        let length = (word(datagram, 0) as usize).clamp(HEADER, datagram.len());
        let (message, rest) = datagram.split_at(length);
        // Messages begin at multiples of four.
        datagram = rest.get(length.next_multiple_of(4) - length..).unwrap_or_default();
        if word(message, 8) != sequence {
            continue;
        }
        let body = &message[HEADER..];
        match u16::from_ne_bytes([message[4], message[5]]) {
            TYPE_DONE => return Ok(true),
            TYPE_ERROR if body.len() >= 4 => {
                return Err(Errno::from_raw_os_error((word(body, 0) as i32).wrapping_neg()));
            }
            SOCK_DIAG_BY_FAMILY if body.len() >= WQUEUE + 4 => tell(Listening {
                port: u16::from_be_bytes([body[PORT], body[PORT + 1]]),
                waiting: word(body, RQUEUE).into(),
                limit: word(body, WQUEUE).into(),
            }),
            _ => {}
        }
    }
    Ok(false)
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
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

    #[test]
    fn a_datagram_cut_anywhere_does_no_harm() {
        let mut message = request(2, 80, 1).to_vec();
        message.resize(HEADER + 72, 0);
        message[0..4].copy_from_slice(&(HEADER as u32 + 72).to_ne_bytes());
        message[HEADER + PORT..HEADER + PORT + 2].copy_from_slice(&80u16.to_be_bytes());
        for length in 0..=message.len() {
            let mut told = Vec::new();
            let _ = walk(&message[..length], 1, &mut |socket| told.push(socket));
            let whole = Listening { port: 80, waiting: 0, limit: 0 };
            let expected = if length >= HEADER + WQUEUE + 4 { vec![whole] } else { Vec::new() };
            assert_eq!(told, expected, "at {length}");
        }
    }
}
