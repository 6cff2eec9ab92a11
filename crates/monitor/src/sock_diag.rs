//! Sockets of TCP, and socket files that listen, asked of the kernel over netlink (sock_diag).
//!
//! /proc/net/tcp has the same and walks every connection of the host to print it: hundreds of times dearer, and dearest when there are many
//! connections. The kernel is asked here for the sockets of one state and, where it can tell them apart cheaply, of one port only.

use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink};
use std::cmp::Ordering;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;

/// A socket to the kernel that answers questions about sockets.
pub(crate) struct SockDiag {
    kernel: OwnedFd,
    sequence: u32,
}

/// Which sockets are asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Question {
    pub(crate) state: State,
    /// The port at this end; any if it is 0. Some kernels take it as a hint only.
    pub(crate) local: u16,
    /// The port at the other end; any if it is 0.
    pub(crate) remote: u16,
    /// Whether what came and went on a connection is asked for as well. The kernel waits then for whoever writes to it just now, so
    /// the sampler does not.
    pub(crate) info: bool,
}

/// The states that are asked for (net/tcp_states.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Established = 1,
    Listen = 10,
}

/// One socket, as the kernel tells it: an inet_diag_msg and its attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Told<'b>(&'b [u8]);

// Layouts of linux/netlink.h, linux/inet_diag.h and linux/tcp.h. The question is the older one of the two that kernels know, because its
// answer has the sockets of both address families; the newer one needs a question, and a walk of the kernel's tables, for each.
const HEADER: usize = 16;
const REQUEST: usize = HEADER + 60;
const TCPDIAG_GETSOCK: u16 = 18;
const FLAGS_REQUEST_DUMP: u16 = 0x1 | 0x300;
const TYPE_ERROR: u16 = 2;
const TYPE_DONE: u16 = 3;
/// INET_DIAG_INFO, and the bit that asks for it.
const INFO: u16 = 2;
const ASK_FOR_INFO: u8 = 1 << (INFO - 1);
// Of linux/unix_diag.h: a unix_diag_req, a unix_diag_msg, UNIX_DIAG_NAME and UNIX_DIAG_RQLEN, and the bits that ask for them.
const BY_FAMILY: u16 = 20;
const UNIX_REQUEST: usize = HEADER + 24;
const UNIX_MESSAGE: usize = 16;
const UNIX_NAME: u16 = 0;
const UNIX_QUEUE: u16 = 4;
const UNIX_SHOW: u32 = 0x1 | 0x10;
/// An inet_diag_msg, and offsets in it.
const MESSAGE: usize = 72;
const LOCAL: usize = 4;
const REMOTE: usize = 6;
const SOURCE: usize = 8;
const PEER: usize = 24;
const RQUEUE: usize = 56;
const WQUEUE: usize = 60;
const INODE: usize = 68;
/// Offsets in a tcp_info: since data was sent, since it was received, in milliseconds; segments with data that came and that went, which
/// Linux tells since 4.6.
const SENT: usize = 44;
const RECEIVED: usize = 52;
/// The largest segments that are in use: over loopback, and over an Ethernet with jumbo frames.
const SEGMENT_HERE: u32 = 65_535;
const SEGMENT: u32 = 9_000;
const SEGMENTS_IN: usize = 152;
const SEGMENTS_OUT: usize = 156;

impl SockDiag {
    /// Opens the socket to the kernel.
    pub(crate) fn open() -> Result<SockDiag, Errno> {
        let kernel = rustix::net::socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            Some(netlink::SOCK_DIAG),
        )?;
        Ok(SockDiag { kernel, sequence: 0 })
    }

    /// Has the kernel tell the sockets that are asked for; `room` holds one datagram of its answer. Allocates nothing.
    pub(crate) fn ask(
        &mut self,
        question: Question,
        room: &mut [u8],
        tell: &mut dyn FnMut(Told<'_>),
    ) -> Result<(), Errno> {
        self.exchange(&mut question.bytes(), room, &mut |kind, body| {
            if kind == TCPDIAG_GETSOCK && body.len() >= MESSAGE {
                tell(Told(body));
            }
        })
    }

    /// The same of socket files that listen: how many connections wait there, how many may, and the path, without the zero at its end.
    pub(crate) fn ask_files(&mut self, room: &mut [u8], tell: &mut dyn FnMut(u64, u64, &[u8])) -> Result<(), Errno> {
        self.exchange(&mut question_of_files(), room, &mut |kind, body| {
            let found = attribute(body, UNIX_MESSAGE, UNIX_QUEUE).zip(attribute(body, UNIX_MESSAGE, UNIX_NAME));
            if let Some((queue, name)) = found.filter(|(queue, _)| kind == BY_FAMILY && queue.len() >= 8) {
                tell(word(queue, 0).into(), word(queue, 4).into(), name.strip_suffix(&[0]).unwrap_or(name));
            }
        })
    }

    /// Sends a question, whose number is written into it, and has each message of the answer told.
    fn exchange(
        &mut self,
        question: &mut [u8],
        room: &mut [u8],
        tell: &mut dyn FnMut(u16, &[u8]),
    ) -> Result<(), Errno> {
        self.sequence = self.sequence.wrapping_add(1);
        question[8..12].copy_from_slice(&self.sequence.to_ne_bytes());
        rustix::net::send(&self.kernel, question, SendFlags::empty())?;
        loop {
            // An answer is ready as soon as the question was sent, so there is never anything to wait for.
            let length = match rustix::net::recv(&self.kernel, &mut *room, RecvFlags::DONTWAIT) {
                Err(Errno::INTR) => continue,
                result => result?.1.min(room.len()),
            };
            if walk(&room[..length], self.sequence, tell)? {
                return Ok(());
            }
        }
    }
}

impl Question {
    fn bytes(self) -> [u8; REQUEST] {
        let mut bytes = [0; REQUEST];
        bytes[0..4].copy_from_slice(&(REQUEST as u32).to_ne_bytes());
        bytes[4..6].copy_from_slice(&TCPDIAG_GETSOCK.to_ne_bytes());
        bytes[6..8].copy_from_slice(&FLAGS_REQUEST_DUMP.to_ne_bytes());
        if self.info {
            bytes[HEADER + 3] = ASK_FOR_INFO;
        }
        bytes[HEADER + 4..HEADER + 6].copy_from_slice(&self.local.to_be_bytes());
        bytes[HEADER + 6..HEADER + 8].copy_from_slice(&self.remote.to_be_bytes());
        bytes[HEADER + 52..HEADER + 56].copy_from_slice(&(1u32 << self.state as u32).to_ne_bytes());
        bytes
    }
}

fn question_of_files() -> [u8; UNIX_REQUEST] {
    let mut bytes = [0; UNIX_REQUEST];
    bytes[0..4].copy_from_slice(&(UNIX_REQUEST as u32).to_ne_bytes());
    bytes[4..6].copy_from_slice(&BY_FAMILY.to_ne_bytes());
    bytes[6..8].copy_from_slice(&FLAGS_REQUEST_DUMP.to_ne_bytes());
    bytes[HEADER] = libc::AF_UNIX as u8;
    bytes[HEADER + 4..HEADER + 8].copy_from_slice(&(1u32 << State::Listen as u32).to_ne_bytes());
    bytes[HEADER + 12..HEADER + 16].copy_from_slice(&UNIX_SHOW.to_ne_bytes());
    bytes
}

/// Tells the messages of one datagram, each with its type; true when it is the last of its answer.
fn walk(mut datagram: &[u8], sequence: u32, tell: &mut dyn FnMut(u16, &[u8])) -> Result<bool, Errno> {
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
            kind => tell(kind, body),
        }
    }
    Ok(false)
}

impl<'b> Told<'b> {
    /// The port at this end.
    pub(crate) fn local(self) -> u16 {
        self.port(LOCAL)
    }

    /// This end.
    pub(crate) fn here(self) -> SocketAddr {
        SocketAddr::new(self.ip(SOURCE), self.local())
    }

    /// The other end.
    pub(crate) fn peer(self) -> SocketAddr {
        SocketAddr::new(self.ip(PEER), self.port(REMOTE))
    }

    fn ip(self, at: usize) -> IpAddr {
        let body = self.0;
        if i32::from(body[0]) == libc::AF_INET {
            Ipv4Addr::new(body[at], body[at + 1], body[at + 2], body[at + 3]).into()
        } else {
            let mut bytes = [0; 16];
            bytes.copy_from_slice(&body[at..at + 16]);
            Ipv6Addr::from(bytes).to_canonical()
        }
    }

    /// Connections that wait to be accepted, of one that listens.
    pub(crate) fn waiting(self) -> u64 {
        word(self.0, RQUEUE).into()
    }

    /// How many may wait, of one that listens.
    pub(crate) fn limit(self) -> u64 {
        word(self.0, WQUEUE).into()
    }

    /// Whether bytes of a connection wait on their way: more of them than the other end may have without saying so, which is a segment,
    /// for up to 0.2 s (delayed acknowledgement, RFC 9293 3.8.6.3). What was not sent once is in the tcp_info alone, for which the kernel
    /// waits while the server writes to the connection: as long as a storm lasts, if what it writes must be read from a disk first.
    pub(crate) fn is_held_back(self) -> bool {
        word(self.0, WQUEUE) > segment(self.ip(SOURCE), self.ip(PEER))
    }

    /// Whether bytes that came lie there unread by the process that accepted it.
    pub(crate) fn is_unread(self) -> bool {
        self.inode() != 0 && word(self.0, RQUEUE) > 0
    }

    /// The number under which processes have it open; 0 while none has.
    pub(crate) fn inode(self) -> u32 {
        word(self.0, INODE)
    }

    /// Milliseconds since it did all that was asked of it; `None` where the kernel does not tell, and while it owes something: an answer
    /// to what came last, or what the other end has not yet received. A connection on which nothing was ever said owes nothing.
    pub(crate) fn idle_ms(self) -> Option<u32> {
        let info = self.info().filter(|info| info.len() >= RECEIVED + 4)?;
        let (sent, received) = (word(info, SENT), word(info, RECEIVED));
        let owes = match sent.cmp(&received) {
            Ordering::Less => false,
            Ordering::Greater => true,
            // Both began with the connection. Where something was sent since, it was most likely the answer to what came in the same
            // tick of the kernel's clock: a request that follows an answer within the tick is not told from that.
            Ordering::Equal => {
                info.len() >= SEGMENTS_OUT + 4 && word(info, SEGMENTS_IN) > 0 && word(info, SEGMENTS_OUT) == 0
            }
        };
        let under_way = word(self.0, RQUEUE) > 0 || word(self.0, WQUEUE) > 0;
        (!owes && !under_way).then_some(sent)
    }

    /// Its tcp_info.
    fn info(self) -> Option<&'b [u8]> {
        attribute(self.0, MESSAGE, INFO)
    }

    fn port(self, at: usize) -> u16 {
        u16::from_be_bytes([self.0[at], self.0[at + 1]])
    }
}

/// Bytes of the largest segment between two ends.
fn segment(here: IpAddr, peer: IpAddr) -> u32 {
    if here == peer || peer.is_loopback() { SEGMENT_HERE } else { SEGMENT }
}

/// An attribute behind a message of so many bytes: length, type, content, and the next one at the next multiple of four.
fn attribute(body: &[u8], message: usize, wanted: u16) -> Option<&[u8]> {
    let mut attributes = body.get(message..)?;
    while attributes.len() >= 4 {
        let length = usize::from(u16::from_ne_bytes([attributes[0], attributes[1]])).clamp(4, attributes.len());
        if u16::from_ne_bytes([attributes[2], attributes[3]]) == wanted {
            return Some(&attributes[4..length]);
        }
        attributes = attributes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    None
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_larger_within_a_machine() {
        let own = IpAddr::from([192, 0, 2, 1]);
        assert_eq!(segment(own, IpAddr::from([192, 0, 2, 2])), SEGMENT);
        assert_eq!(segment(own, own), SEGMENT_HERE);
        assert_eq!(segment(Ipv4Addr::LOCALHOST.into(), IpAddr::from([127, 0, 0, 2])), SEGMENT_HERE);
    }

    #[test]
    fn a_datagram_cut_anywhere_does_no_harm() {
        let question = Question { state: State::Listen, local: 80, remote: 0, info: false };
        let mut message = question.bytes().to_vec();
        message[8] = 1;
        message.resize(HEADER + MESSAGE + 4 + RECEIVED + 4, 0);
        let length = message.len();
        message[0..4].copy_from_slice(&(length as u32).to_ne_bytes());
        message[HEADER + MESSAGE..HEADER + MESSAGE + 2].copy_from_slice(&(RECEIVED as u16 + 8).to_ne_bytes());
        message[HEADER + MESSAGE + 2..HEADER + MESSAGE + 4].copy_from_slice(&INFO.to_ne_bytes());
        for cut in 0..=length {
            let mut told = Vec::new();
            let ended = walk(&message[..cut], 1, &mut |_, body| {
                if body.len() >= MESSAGE {
                    told.push((Told(body).local(), Told(body).idle_ms()));
                }
            });
            let expected = match cut {
                _ if cut == length => vec![(80, Some(0))],
                _ if cut >= HEADER + MESSAGE => vec![(80, None)],
                _ => Vec::new(),
            };
            assert_eq!((ended, told), (Ok(false), expected), "at {cut}");
        }
    }
}
