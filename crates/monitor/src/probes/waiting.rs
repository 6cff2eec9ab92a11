//! Connections of the server's port on which bytes wait: on their way, for the network or for a client that does not take them; or to
//! be read, for a server that has no time for them.

use super::Probe;
use crate::sock_diag::{Question, SockDiag, State};
use crate::source::Buffer;
use model::reading::{Column, Reading};
use rustix::io::Errno;

/// Opens the socket to the kernel, if there is a port to be asked for. Where the kernel does not tell, the columns are absent: the
/// accept queue, asked for in the same way, has said so.
pub(super) fn open(port: Option<u16>) -> Option<Box<dyn Probe + Send>> {
    Some(Box::new(Waiting { port: port?, kernel: SockDiag::open().ok()? }))
}

struct Waiting {
    kernel: SockDiag,
    port: u16,
}

/// How many connections they are.
#[derive(Debug, Default, PartialEq, Eq)]
struct Found {
    sending: u64,
    unread: u64,
}

impl Probe for Waiting {
    fn read(&mut self, row: &mut Reading, buffer: &mut Buffer) {
        if let Ok(found) = self.ask(buffer) {
            row.set(Column::TcpSending, found.sending);
            row.set(Column::TcpUnread, found.unread);
        }
    }
}

impl Waiting {
    fn ask(&mut self, buffer: &mut Buffer) -> Result<Found, Errno> {
        let (mut found, port) = (Found::default(), self.port);
        let question = Question { state: State::Established, local: port, remote: 0, info: false };
        self.kernel.ask(question, buffer.bytes(), &mut |told| {
            if told.local() == port {
                found.sending += u64::from(told.is_held_back());
                found.unread += u64::from(told.is_unread());
            }
        })?;
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    fn opened() -> (TcpListener, Waiting) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        (listener, Waiting { kernel: SockDiag::open().unwrap(), port })
    }

    fn check(waiting: &mut Waiting, sending: u64, unread: u64) {
        assert_eq!(waiting.ask(&mut Buffer::new()).unwrap(), Found { sending, unread });
    }

    #[test]
    fn an_answer_that_nobody_takes_waits_to_be_sent() {
        let (listener, mut waiting) = opened();
        let address = listener.local_addr().unwrap();
        let _quiet = (TcpStream::connect(address).unwrap(), listener.accept().unwrap());
        let _slow = TcpStream::connect(address).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        check(&mut waiting, 0, 0);
        // Until the client's room and our own are full.
        server.set_nonblocking(true).unwrap();
        while server.write(&[0; 65_536]).is_ok() {}
        check(&mut waiting, 1, 0);
    }

    #[test]
    fn an_answer_that_arrived_and_is_not_acknowledged_waits_for_nothing() {
        let (listener, mut waiting) = opened();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        rustix::net::sockopt::set_tcp_quickack(&client, false).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        server.write_all(&[0; 1000]).unwrap();
        check(&mut waiting, 0, 0);
    }

    #[test]
    fn a_request_waits_to_be_read_once_its_connection_is_accepted() {
        let (listener, mut waiting) = opened();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        client.write_all(b"GET /").unwrap();
        // That nobody has accepted it is told by the queue at the door.
        check(&mut waiting, 0, 0);
        let (mut server, _) = listener.accept().unwrap();
        assert_eq!(server.peek(&mut [0; 5]).unwrap(), 5);
        check(&mut waiting, 0, 1);
        server.read_exact(&mut [0; 4]).unwrap();
        check(&mut waiting, 0, 1);
        server.read_exact(&mut [0; 1]).unwrap();
        check(&mut waiting, 0, 0);
    }
}
