//! Who is connected to a port of this machine, asked of the kernel over netlink (sock_diag): no worker of the server is taken, and
//! no privilege is needed.
//!
//! Only established connections are asked for. Which of them are our own is told by the sockets that this process has open.

use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;

/// A connection as the server has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connection {
    /// Who is at the other end.
    pub peer: SocketAddr,
    /// Whether the server has accepted it; it waits at the door otherwise.
    pub accepted: bool,
    /// Milliseconds since data came or went, where the kernel tells.
    pub quiet_ms: Option<u32>,
}

/// A way to ask the kernel.
pub struct Connections {
    kernel: OwnedFd,
    sequence: u32,
    buffer: Vec<u8>,
}

/// One socket as the kernel tells it.
struct Socket {
    local: u16,
    peer: SocketAddr,
    inode: u32,
    quiet_ms: Option<u32>,
}

// Layouts of linux/netlink.h, linux/sock_diag.h, linux/inet_diag.h and linux/tcp.h.
const HEADER: usize = 16;
const REQUEST: usize = HEADER + 56;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const FLAGS_REQUEST_DUMP: u16 = 0x1 | 0x300;
const TYPE_ERROR: u16 = 2;
const TYPE_DONE: u16 = 3;
const ESTABLISHED: u32 = 1;
/// INET_DIAG_INFO, and the bit that asks for it.
const INFO: u16 = 2;
const ASK_FOR_INFO: u8 = 1 << (INFO - 1);
const MESSAGE: usize = 72;
const INODE: usize = 68;
/// Offsets in a tcp_info: since data was sent, since it was received, in milliseconds.
const SENT: usize = 44;
const RECEIVED: usize = 52;

impl Connections {
    /// Opens the socket to the kernel.
    ///
    /// # Errors
    /// When the kernel has no sock_diag, or does not let us ask.
    pub fn open() -> std::io::Result<Connections> {
        let kernel = rustix::net::socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            Some(netlink::SOCK_DIAG),
        )?;
        Ok(Connections { kernel, sequence: 0, buffer: vec![0; 64 * 1024] })
    }

    /// Those that others have to the server at `port`: our own are left out.
    ///
    /// # Errors
    /// When the kernel does not answer.
    pub fn of_others(&mut self, port: u16) -> std::io::Result<Vec<Connection>> {
        // Ours come and go meanwhile: one that was there before or after is ours.
        let mut ours = self.our_ports(port)?;
        let there = self.ask(port, 0)?;
        ours.extend(self.our_ports(port)?);
        let others =
            there.into_iter().filter(|socket| !(socket.peer.ip().is_loopback() && ours.contains(&socket.peer.port())));
        let told =
            |socket: Socket| Connection { peer: socket.peer, accepted: socket.inode != 0, quiet_ms: socket.quiet_ms };
        Ok(others.map(told).collect())
    }

    /// The local ports of this process's own connections to `port`.
    fn our_ports(&mut self, port: u16) -> std::io::Result<BTreeSet<u16>> {
        let mut inodes = BTreeSet::new();
        for file in std::fs::read_dir("/proc/self/fd")?.flatten() {
            let link = std::fs::read_link(file.path()).unwrap_or_default();
            let inode =
                link.to_str().and_then(|link| link.strip_prefix("socket:[")?.strip_suffix(']')?.parse::<u32>().ok());
            inodes.extend(inode);
        }
        let there = self.ask(0, port)?;
        Ok(there.iter().filter(|socket| inodes.contains(&socket.inode)).map(|socket| socket.local).collect())
    }

    /// Established sockets with these ports; 0 is any.
    fn ask(&mut self, local: u16, remote: u16) -> Result<Vec<Socket>, Errno> {
        let mut found = Vec::new();
        for family in [libc::AF_INET as u8, libc::AF_INET6 as u8] {
            self.sequence = self.sequence.wrapping_add(1);
            rustix::net::send(&self.kernel, &request(family, local, remote, self.sequence), SendFlags::empty())?;
            loop {
                // An answer is ready as soon as the question was sent, so there is never anything to wait for.
                let length = match rustix::net::recv(&self.kernel, self.buffer.as_mut_slice(), RecvFlags::DONTWAIT) {
                    Err(Errno::INTR) => continue,
                    result => result?.1.min(self.buffer.len()),
                };
                if walk(&self.buffer[..length], self.sequence, &mut found)? {
                    break;
                }
            }
        }
        // The kernel takes the ports as a hint in some versions.
        found.retain(|socket| (local == 0 || socket.local == local) && (remote == 0 || socket.peer.port() == remote));
        Ok(found)
    }
}

fn request(family: u8, local: u16, remote: u16, sequence: u32) -> [u8; REQUEST] {
    let mut request = [0; REQUEST];
    request[0..4].copy_from_slice(&(REQUEST as u32).to_ne_bytes());
    request[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    request[6..8].copy_from_slice(&FLAGS_REQUEST_DUMP.to_ne_bytes());
    request[8..12].copy_from_slice(&sequence.to_ne_bytes());
    request[HEADER] = family;
    request[HEADER + 1] = libc::IPPROTO_TCP as u8;
    request[HEADER + 2] = ASK_FOR_INFO;
    request[HEADER + 4..HEADER + 8].copy_from_slice(&(1u32 << ESTABLISHED).to_ne_bytes());
    request[HEADER + 8..HEADER + 10].copy_from_slice(&local.to_be_bytes());
    request[HEADER + 10..HEADER + 12].copy_from_slice(&remote.to_be_bytes());
    request
}

/// Takes the sockets of one datagram; true when it is the last of its answer.
fn walk(mut datagram: &[u8], sequence: u32, found: &mut Vec<Socket>) -> Result<bool, Errno> {
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
            SOCK_DIAG_BY_FAMILY if body.len() >= MESSAGE => found.push(socket(body)),
            _ => {}
        }
    }
    Ok(false)
}

fn socket(body: &[u8]) -> Socket {
    let port = |at: usize| u16::from_be_bytes([body[at], body[at + 1]]);
    let peer: IpAddr = if i32::from(body[0]) == libc::AF_INET {
        Ipv4Addr::new(body[24], body[25], body[26], body[27]).into()
    } else {
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&body[24..40]);
        Ipv6Addr::from(bytes).to_canonical()
    };
    Socket {
        local: port(4),
        peer: SocketAddr::new(peer, port(6)),
        inode: word(body, INODE),
        quiet_ms: quiet(&body[MESSAGE..]),
    }
}

/// The attributes behind a message: length, type, content, and again at the next multiple of four.
fn quiet(mut attributes: &[u8]) -> Option<u32> {
    while attributes.len() >= 4 {
        let length = usize::from(u16::from_ne_bytes([attributes[0], attributes[1]])).clamp(4, attributes.len());
        let kind = u16::from_ne_bytes([attributes[2], attributes[3]]);
        let content = &attributes[4..length];
        if kind == INFO && content.len() >= RECEIVED + 4 {
            return Some(word(content, SENT).min(word(content, RECEIVED)));
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
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::process::{Command, Stdio};

    #[test]
    fn our_own_connections_are_not_others() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let _ours = TcpStream::connect(address).unwrap();
        let _accepted = listener.accept().unwrap();
        assert_eq!(Connections::open().unwrap().of_others(address.port()).unwrap(), []);
    }

    #[test]
    fn those_of_another_process_are_and_whether_they_were_accepted_is_told() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        // A shell holds the connection until its input ends.
        let script = format!("exec 3<>/dev/tcp/127.0.0.1/{port}; echo there; read x");
        let mut other =
            Command::new("bash").args(["-c", &script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut said = [0; 6];
        other.stdout.as_mut().unwrap().read_exact(&mut said).unwrap();
        let mut kernel = Connections::open().unwrap();
        let waiting = kernel.of_others(port).unwrap();
        let (stream, peer) = listener.accept().unwrap();
        let accepted = kernel.of_others(port).unwrap();
        other.stdin.take().unwrap().write_all(b"\n").unwrap();
        other.wait().unwrap();
        drop(stream);
        let told = |found: &[Connection]| found.iter().map(|one| (one.peer, one.accepted)).collect::<Vec<_>>();
        assert_eq!((told(&waiting), told(&accepted)), (vec![(peer, false)], vec![(peer, true)]));
        assert!(accepted[0].quiet_ms.is_some());
    }
}
