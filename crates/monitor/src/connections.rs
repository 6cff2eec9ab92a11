//! Who is connected to a port of this machine, asked of the kernel: no worker of the server is taken, and no privilege is needed.
//!
//! Only established connections are asked for. Which of them are our own is told by the sockets that this process has open.

use crate::sock_diag::{Question, SockDiag, State};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::net::SocketAddr;

/// A connection as the server has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connection {
    /// Who is at the other end.
    pub peer: SocketAddr,
    /// Whether the server has accepted it; it waits at the door otherwise.
    pub accepted: bool,
    /// Milliseconds since the server did all that was asked of it there; `None` where the kernel does not tell, and while it owes an
    /// answer.
    pub idle_ms: Option<u32>,
}

/// A way to ask the kernel.
pub struct Connections {
    kernel: SockDiag,
    room: Vec<u8>,
}

/// One socket as the kernel tells it.
struct Socket {
    here: SocketAddr,
    peer: SocketAddr,
    inode: u32,
    idle_ms: Option<u32>,
}

impl Connections {
    /// Opens the socket to the kernel.
    ///
    /// # Errors
    /// When the kernel has no sock_diag, or does not let us ask.
    pub fn open() -> std::io::Result<Connections> {
        Ok(Connections { kernel: SockDiag::open()?, room: vec![0; 64 * 1024] })
    }

    /// Those that others have to the server at `port`: our own are left out.
    ///
    /// # Errors
    /// When the kernel does not answer.
    pub fn of_others(&mut self, port: u16) -> std::io::Result<Vec<Connection>> {
        // Ours come and go meanwhile: one that was there before or after is ours.
        let mut ours = self.our_ends(port)?;
        let there = self.ask(port, 0)?;
        ours.extend(self.our_ends(port)?);
        let others = there.into_iter().filter(|socket| !ours.contains(&socket.peer));
        let told =
            |socket: Socket| Connection { peer: socket.peer, accepted: socket.inode != 0, idle_ms: socket.idle_ms };
        Ok(others.map(told).collect())
    }

    /// This end of this process's own connections to `port`.
    fn our_ends(&mut self, port: u16) -> std::io::Result<BTreeSet<SocketAddr>> {
        let mut inodes = BTreeSet::new();
        for file in std::fs::read_dir("/proc/self/fd")?.flatten() {
            let link = std::fs::read_link(file.path()).unwrap_or_default();
            let inode =
                link.to_str().and_then(|link| link.strip_prefix("socket:[")?.strip_suffix(']')?.parse::<u32>().ok());
            inodes.extend(inode);
        }
        let there = self.ask(0, port)?;
        Ok(there.iter().filter(|socket| inodes.contains(&socket.inode)).map(|socket| socket.here).collect())
    }

    /// Established sockets with these ports; 0 is any.
    fn ask(&mut self, local: u16, remote: u16) -> Result<Vec<Socket>, Errno> {
        let mut found = Vec::new();
        let question = Question { state: State::Established, local, remote, info: true };
        self.kernel.ask(question, &mut self.room, &mut |told| {
            found.push(Socket { here: told.here(), peer: told.peer(), inode: told.inode(), idle_ms: told.idle_ms() });
        })?;
        // The kernel takes the ports as a hint in some versions.
        found.retain(|socket| {
            (local == 0 || socket.here.port() == local) && (remote == 0 || socket.peer.port() == remote)
        });
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener, TcpStream, UdpSocket};
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    /// Addresses of this machine: loopback, and the one that a packet to far away would bear.
    fn addresses() -> Vec<IpAddr> {
        let far = || {
            let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
            // Nothing is sent: the kernel only chooses a route.
            socket.connect("198.51.100.77:9").ok()?;
            Some(socket.local_addr().ok()?.ip())
        };
        [Some(Ipv4Addr::LOCALHOST.into()), far()].into_iter().flatten().collect()
    }

    #[test]
    fn our_own_connections_are_not_others_whatever_the_address() {
        for ip in addresses() {
            for bound in [ip, Ipv6Addr::UNSPECIFIED.into()] {
                let Ok(listener) = TcpListener::bind((bound, 0)) else { continue };
                let port = listener.local_addr().unwrap().port();
                let _ours = TcpStream::connect((ip, port)).unwrap();
                let _accepted = listener.accept().unwrap();
                assert_eq!(Connections::open().unwrap().of_others(port).unwrap(), [], "{ip} at {bound}");
            }
        }
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
        assert!(accepted[0].idle_ms.is_some());
    }

    #[test]
    fn who_waits_for_an_answer_is_not_idle() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut kernel = Connections::open().unwrap();
        let mut idle = || kernel.ask(port, 0).unwrap()[0].idle_ms;
        let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        // Whoever says nothing asks for nothing.
        assert!(idle().is_some());
        let mut word = [0; 4];
        for turn in 0..5 {
            // In several pieces, as long requests come.
            client.set_nodelay(true).unwrap();
            b"ask?".iter().for_each(|byte| client.write_all(&[*byte]).unwrap());
            server.read_exact(&mut word).unwrap();
            assert_eq!(idle(), None, "asked, turn {turn}");
            server.write_all(b"yes!").unwrap();
            client.read_exact(&mut word).unwrap();
            // The client may take its time to say that it has it; and the kernel's clock goes on.
            let end = Instant::now() + Duration::from_secs(20);
            while idle().is_none_or(|ms| ms < 20) {
                assert!(Instant::now() < end, "answered, turn {turn}");
                std::thread::yield_now();
            }
        }
        // Nor is one whose answer is still on its way, however long that takes.
        server.set_nonblocking(true).unwrap();
        while server.write(&[0; 4096]).is_ok() {}
        assert_eq!(idle(), None);
    }
}
