//! Connections to servers that stand behind the server: how many of them wait at their doors, and how many are let in.

use super::Probe;
use super::accept::listening;
use crate::sock_diag::{Question, SockDiag, State};
use crate::source::Buffer;
use model::reading::{Column, Reading};
use rustix::io::Errno;

/// Opens the socket to the kernel, if there is such a server. Where the kernel does not tell, the columns are absent: the server's own
/// accept queue, asked for in the same way, has said so.
pub(super) fn open(ports: &[u16]) -> Option<Box<dyn Probe + Send>> {
    let kernel = (!ports.is_empty()).then(SockDiag::open)?.ok()?;
    Some(Box::new(Behind { kernel, ports: ports.to_vec() }))
}

struct Behind {
    kernel: SockDiag,
    ports: Vec<u16>,
}

/// Over all ports.
#[derive(Debug, Default, PartialEq, Eq)]
struct Found {
    waiting: u64,
    accepted: u64,
}

impl Probe for Behind {
    fn read(&mut self, row: &mut Reading, buffer: &mut Buffer) {
        if let Ok(found) = self.ask(buffer) {
            row.set(Column::BehindQueue, found.waiting);
            row.set(Column::BehindAccepted, found.accepted);
        }
    }
}

impl Behind {
    fn ask(&mut self, buffer: &mut Buffer) -> Result<Found, Errno> {
        let mut found = Found::default();
        for &port in &self.ports {
            listening(&mut self.kernel, port, buffer, &mut |socket| {
                found.waiting += socket.waiting * u64::from(socket.port == port);
            })?;
            let question = Question { state: State::Established, local: port, remote: 0, info: false };
            self.kernel.ask(question, buffer.bytes(), &mut |told| {
                // Whom nobody has accepted yet has no inode; he is one of those who wait.
                found.accepted += u64::from(told.local() == port && told.inode() != 0);
            })?;
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::time::{Duration, Instant};

    /// Waits for it: the kernel may queue a connection a little after its client was told that it stands.
    fn until(behind: &mut Behind, waiting: u64, accepted: u64) {
        let (deadline, expected) = (Instant::now() + Duration::from_secs(10), Found { waiting, accepted });
        loop {
            let found = behind.ask(&mut Buffer::new()).unwrap();
            if found == expected {
                return;
            }
            assert!(Instant::now() < deadline, "{found:?} instead of {expected:?}");
        }
    }

    #[test]
    fn who_waits_and_who_is_let_in_at_two_ports() {
        let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let addresses = listeners.each_ref().map(|listener| listener.local_addr().unwrap());
        let ports = addresses.iter().map(|address| address.port()).collect();
        let mut behind = Behind { kernel: SockDiag::open().unwrap(), ports };
        until(&mut behind, 0, 0);
        let _clients = [0, 0, 1].map(|at: usize| TcpStream::connect(addresses[at]).unwrap());
        let _first = listeners[0].accept().unwrap();
        let second = listeners[1].accept().unwrap();
        until(&mut behind, 1, 2);
        let _third = listeners[0].accept().unwrap();
        until(&mut behind, 0, 3);
        drop(second);
        until(&mut behind, 0, 2);
    }
}
