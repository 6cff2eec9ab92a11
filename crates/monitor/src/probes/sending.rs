//! Connections of the server's port whose bytes wait on their way: for the network, or for a client that does not take them.

use super::{Probe, Probes};
use crate::sock_diag::{Question, SockDiag, State};
use crate::source::Buffer;
use model::reading::{Column, Reading};
use rustix::io::Errno;

/// Opens the socket to the kernel, if there is a port to be asked for. Where the kernel does not tell, the column is absent: the
/// accept queue, asked for in the same way, has said so.
pub(super) fn open(probes: &mut Probes, port: Option<u16>) {
    let Some(port) = port else { return };
    if let Ok(kernel) = SockDiag::open() {
        probes.add(Sending { kernel, port });
    }
}

struct Sending {
    kernel: SockDiag,
    port: u16,
}

impl Probe for Sending {
    fn read(&mut self, row: &mut Reading, buffer: &mut Buffer) {
        if let Ok(sending) = self.ask(buffer) {
            row.set(Column::TcpSending, sending);
        }
    }
}

impl Sending {
    fn ask(&mut self, buffer: &mut Buffer) -> Result<u64, Errno> {
        let (mut sending, port) = (0, self.port);
        let question = Question { state: State::Established, local: port, remote: 0, info: false };
        self.kernel.ask(question, buffer.bytes(), &mut |told| {
            sending += u64::from(told.local() == port && told.is_held_back());
        })?;
        Ok(sending)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn an_answer_that_nobody_takes_waits_to_be_sent() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let mut sending = Sending { kernel: SockDiag::open().unwrap(), port: address.port() };
        let mut buffer = Buffer::new();
        let _quiet = (TcpStream::connect(address).unwrap(), listener.accept().unwrap());
        let _slow = TcpStream::connect(address).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        assert_eq!(sending.ask(&mut buffer).unwrap(), 0);
        // Until the client's room and our own are full.
        server.set_nonblocking(true).unwrap();
        while server.write(&[0; 65_536]).is_ok() {}
        assert_eq!(sending.ask(&mut buffer).unwrap(), 1);
    }

    #[test]
    fn an_answer_that_arrived_and_is_not_acknowledged_waits_for_nothing() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let mut sending = Sending { kernel: SockDiag::open().unwrap(), port: address.port() };
        let client = TcpStream::connect(address).unwrap();
        rustix::net::sockopt::set_tcp_quickack(&client, false).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        server.write_all(&[0; 1000]).unwrap();
        assert_eq!(sending.ask(&mut Buffer::new()).unwrap(), 0);
    }
}
