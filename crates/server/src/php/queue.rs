//! How many connections wait to be accepted on a unix socket, asked of the kernel over netlink (sock_diag). FPM itself knows that of TCP
//! sockets only.

use crate::lossy::read_lossy;
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink};
use std::os::fd::OwnedFd;
use std::path::Path;

// Layouts of linux/netlink.h, linux/sock_diag.h and linux/unix_diag.h.
const HEADER: usize = 16;
const REQUEST: usize = HEADER + 24;
const ANSWER: usize = HEADER + 16;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const FLAG_REQUEST: u16 = 1;
const AF_UNIX: u8 = 1;
const SHOW_QUEUE: u32 = 0x10;
const ATTRIBUTE_QUEUE: u16 = 4;
/// `__SO_ACCEPTCON` of /proc/net/unix: it listens.
const LISTENS: &str = "00010000";

/// A listening unix socket.
#[derive(Debug)]
pub(super) struct Queue {
    kernel: OwnedFd,
    inode: u32,
}

/// Who waits there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Waiting {
    /// Connections.
    pub(super) now: u64,
    /// How many there may be.
    pub(super) limit: u64,
}

impl Queue {
    /// The socket that listens at `path`; `None` when there is none, or the kernel does not tell of it.
    pub(super) fn of(path: &Path) -> Option<Queue> {
        let inode = inode(&read_lossy("/proc/net/unix").ok()?, path.to_str()?)?;
        let flags = SocketFlags::CLOEXEC;
        let kernel =
            rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, Some(netlink::SOCK_DIAG)).ok()?;
        let queue = Queue { kernel, inode };
        queue.ask().ok()?;
        Some(queue)
    }

    /// Who waits now.
    pub(super) fn ask(&self) -> Result<Waiting, Errno> {
        rustix::net::send(&self.kernel, &request(self.inode), SendFlags::empty())?;
        let mut answer = [0; 512];
        let received = rustix::net::recv(&self.kernel, &mut answer[..], RecvFlags::DONTWAIT)?.1;
        parse(&answer[..received.min(answer.len())]).ok_or(Errno::NOENT)
    }
}

fn request(inode: u32) -> [u8; REQUEST] {
    let mut request = [0; REQUEST];
    request[0..4].copy_from_slice(&(REQUEST as u32).to_ne_bytes());
    request[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    request[6..8].copy_from_slice(&FLAG_REQUEST.to_ne_bytes());
    request[HEADER] = AF_UNIX;
    request[HEADER + 4..HEADER + 8].copy_from_slice(&u32::MAX.to_ne_bytes());
    request[HEADER + 8..HEADER + 12].copy_from_slice(&inode.to_ne_bytes());
    request[HEADER + 12..HEADER + 16].copy_from_slice(&SHOW_QUEUE.to_ne_bytes());
    // No cookie.
    request[HEADER + 16..].fill(0xff);
    request
}

fn parse(answer: &[u8]) -> Option<Waiting> {
    let short = |at: usize| Some(u16::from_ne_bytes(answer.get(at..at + 2)?.try_into().ok()?));
    let word = |at: usize| Some(u32::from_ne_bytes(answer.get(at..at + 4)?.try_into().ok()?));
    if short(4)? != SOCK_DIAG_BY_FAMILY {
        return None;
    }
    let mut at = ANSWER;
    loop {
        let length = usize::from(short(at)?);
        if short(at + 2)? == ATTRIBUTE_QUEUE {
            return Some(Waiting { now: word(at + 4)?.into(), limit: word(at + 8)?.into() });
        }
        at += length.max(4).next_multiple_of(4);
    }
}

/// From /proc/net/unix: `0000000000000000: 00000002 00000000 00010000 0001 01 12345 /run/x.sock`.
fn inode(table: &str, path: &str) -> Option<u32> {
    table.lines().find_map(|line| {
        let before = line.strip_suffix(path)?.strip_suffix(' ')?;
        let mut fields = before.split_whitespace();
        let flags = fields.nth(3)?;
        (flags == LISTENS).then(|| fields.nth(2)?.parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

    #[test]
    fn waiting_connections_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("with a blank");
        assert!(Queue::of(&path).is_none());
        // Somebody else's, whose name is no text.
        let odd = [path.as_os_str().as_bytes(), b"\xff"].concat();
        let _odd = UnixListener::bind_addr(&SocketAddr::from_abstract_name(odd).unwrap()).unwrap();
        let listener = UnixListener::bind(&path).unwrap();
        let Some(queue) = Queue::of(&path) else { return testkit::skip::not_here("the kernel has no unix_diag") };
        assert_eq!(queue.ask().unwrap().now, 0);
        let clients: Vec<UnixStream> = (0..3).map(|_| UnixStream::connect(&path).unwrap()).collect();
        let waiting = queue.ask().unwrap();
        assert!(waiting.now == 3 && waiting.limit >= 3, "{waiting:?}");
        let accepted = listener.accept().unwrap();
        assert_eq!(queue.ask().unwrap().now, 2);
        drop((clients, accepted));
    }
}
