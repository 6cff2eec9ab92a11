//! nginx's own counters (stub_status), told on a socket or port of their own: no connection of the measured port is taken for them.

use super::program::Built;
use model::status::WebStatus;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with, sockopt};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

/// A server that does not answer in this time does not tell.
const PATIENCE: Duration = Duration::from_millis(500);
/// The page has about 100 bytes.
const MOST: u64 = 4096;
/// Whom a port is asked by: an address that no load comes from, so that what the configuration grants each address is the load's alone.
const OURS: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// Where a server tells its counters.
#[derive(Debug)]
pub(crate) enum StubStatus {
    /// A private instance's own socket.
    Socket(PathBuf),
    /// A port of this machine, and the path there.
    Port(SocketAddr, String),
}

impl StubStatus {
    /// The counters now; `None` when it does not tell.
    pub(crate) fn look(&self) -> Option<WebStatus> {
        let page = match self {
            StubStatus::Socket(socket) => {
                let stream = UnixStream::connect(socket).ok()?;
                stream.set_read_timeout(Some(PATIENCE)).ok()?;
                stream.set_write_timeout(Some(PATIENCE)).ok()?;
                asked(stream, "/")?
            }
            StubStatus::Port(address, path) => {
                let stream = connected(*address).ok()?;
                stream.set_read_timeout(Some(PATIENCE)).ok()?;
                asked(stream, path)?
            }
        };
        parse(page.split_once("\r\n\r\n")?.1)
    }
}

/// A server on a port of its own, whose answer says which version of the configuration is in force. What limits requests or asks who we are
/// comes after `return`; before counters it would come first.
pub(super) fn telling(built: &Built, port: u16, token: &str) -> String {
    let open: String = [
        (built.has("access"), "allow all;\n"),
        (built.has("auth_basic"), "auth_basic off;\n"),
        (built.has_more("auth_request"), "auth_request off;\n"),
    ]
    .into_iter()
    .filter_map(|(is_there, line)| is_there.then_some(line))
    .collect();
    let status = format!("location = /webdyno-{token}/status {{\nstub_status;\n{open}}}\n");
    let status = if built.has_status { &*status } else { "" };
    format!(
        "server {{\nlisten 127.0.0.1:{port};\nserver_name webdyno.invalid;\naccess_log off;\nlocation = /webdyno-{token} {{\nreturn 204;\n}}\n{status}}}"
    )
}

/// A connection that comes from an address of ours.
fn connected(to: SocketAddr) -> io::Result<TcpStream> {
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // Which holds for connecting, too.
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, Some(PATIENCE))?;
    bind(&socket, &SocketAddr::from((OURS, 0)))?;
    connect(&socket, &to)?;
    Ok(socket.into())
}

fn asked(mut stream: impl Read + Write, path: &str) -> Option<String> {
    stream.write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes()).ok()?;
    let mut page = String::new();
    stream.take(MOST).read_to_string(&mut page).ok()?;
    Some(page)
}

fn parse(page: &str) -> Option<WebStatus> {
    let numbers: Vec<u64> = page.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [active, accepts, _handled, requests, reading, writing, waiting] = numbers[..] else { return None };
    Some(WebStatus::Nginx { active, accepts, requests, reading, writing, waiting })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_counters() {
        let page = "Active connections: 291 \nserver accepts handled requests\n 16 15 31 \nReading: 6 Writing: 179 Waiting: 106 \n";
        let expected =
            WebStatus::Nginx { active: 291, accepts: 16, requests: 31, reading: 6, writing: 179, waiting: 106 };
        assert_eq!(parse(page), Some(expected));
        assert_eq!(parse("<html>404</html>"), None);
    }
}
