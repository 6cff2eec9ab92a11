//! A client of HTTP/1.1 that keeps its connection and looks at the bytes itself.

use crate::server::PATIENCE;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::time::Duration;

#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(':'));
        lines.filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()).next()
    }

    fn closes(&self) -> bool {
        self.header("Connection").is_some_and(|value| value.eq_ignore_ascii_case("close"))
    }
}

/// One connection.
pub(crate) struct Client {
    stream: TcpStream,
    /// Read and not used yet.
    rest: Vec<u8>,
    /// The server said that this was the last answer.
    pub(crate) closed: bool,
}

impl Client {
    pub(crate) fn to(port: u16) -> Client {
        Client::try_to(port).expect("it listens")
    }

    pub(crate) fn try_to(port: u16) -> Option<Client> {
        let stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
        stream.set_read_timeout(Some(PATIENCE * 3)).ok()?;
        Some(Client { stream, rest: Vec::new(), closed: false })
    }

    /// How long for an answer.
    pub(crate) fn waits(&mut self, time: Duration) {
        self.stream.set_read_timeout(Some(time)).expect("our own socket");
    }

    /// Somebody who can take little at a time: what the server has to say stays with it until it is read.
    pub(crate) fn narrow(port: u16) -> Client {
        Client::by(port, |socket| {
            rustix::net::sockopt::set_socket_recv_buffer_size(socket, 2048).expect("a small buffer");
        })
    }

    /// Somebody with another address than all the others here have.
    pub(crate) fn of(address: [u8; 4], port: u16) -> Client {
        Client::by(port, |socket| {
            rustix::net::bind(socket, &SocketAddr::from((address, 0))).expect("an address of ours");
        })
    }

    fn by(port: u16, prepare: impl FnOnce(&OwnedFd)) -> Client {
        use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with};
        // Not inherited: a server that another test starts would keep the connection of a client that has left.
        let socket =
            socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None).expect("a socket");
        prepare(&socket);
        connect(&socket, &SocketAddr::from(([127, 0, 0, 1], port))).expect("it listens");
        let stream = TcpStream::from(socket);
        stream.set_read_timeout(Some(PATIENCE * 3)).expect("our own socket");
        Client { stream, rest: Vec::new(), closed: false }
    }

    #[track_caller]
    pub(crate) fn get(&mut self, path: &str) -> Answer {
        self.request("GET", path, "127.0.0.1").expect("an answer")
    }

    pub(crate) fn request(&mut self, method: &str, path: &str, host: &str) -> Option<Answer> {
        self.begin(method, path, host)?;
        self.answer(method == "HEAD")
    }

    /// Asks, and does not wait.
    pub(crate) fn begin(&mut self, method: &str, path: &str, host: &str) -> Option<()> {
        write!(self.stream, "{method} {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").ok()
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("it reads");
    }

    /// `None` when the connection ends before the answer does.
    pub(crate) fn answer(&mut self, headers_only: bool) -> Option<Answer> {
        let end = loop {
            if let Some(at) = position(&self.rest, b"\r\n\r\n") {
                break at;
            }
            self.more()?;
        };
        let head = String::from_utf8_lossy(&self.rest[..end]).into_owned();
        self.rest.drain(..end + 4);
        let status = head.split(' ').nth(1)?.parse().ok()?;
        let mut answer = Answer { status, head, body: String::new() };
        self.closed = answer.closes();
        if headers_only {
            return Some(answer);
        }
        let body = if answer.header("Transfer-Encoding").is_some() {
            self.chunks()?
        } else {
            let length = answer.header("Content-Length").and_then(|length| length.parse().ok());
            self.bytes(length)?
        };
        answer.body = String::from_utf8_lossy(&body).into_owned();
        Some(answer)
    }

    fn more(&mut self) -> Option<()> {
        let mut piece = [0; 65536];
        match self.stream.read(&mut piece) {
            Ok(read) if read > 0 => self.rest.extend_from_slice(&piece[..read]),
            _ => return None,
        }
        Some(())
    }

    /// So many bytes, or all to the end of the connection.
    fn bytes(&mut self, length: Option<usize>) -> Option<Vec<u8>> {
        while length.is_none_or(|length| self.rest.len() < length) {
            if self.more().is_none() {
                return length.is_none().then(|| std::mem::take(&mut self.rest));
            }
        }
        Some(self.rest.drain(..length.unwrap_or(0)).collect())
    }

    fn chunks(&mut self) -> Option<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            while position(&self.rest, b"\r\n").is_none() {
                self.more()?;
            }
            let end = position(&self.rest, b"\r\n")?;
            let length = usize::from_str_radix(std::str::from_utf8(&self.rest[..end]).ok()?, 16).ok()?;
            self.rest.drain(..end + 2);
            let chunk = self.bytes(Some(length + 2))?;
            body.extend_from_slice(&chunk[..length]);
            if length == 0 {
                return Some(body);
            }
        }
    }
}

fn position(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}
