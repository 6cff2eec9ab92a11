//! nginx's own counters (stub_status), told on a unix socket of its own: no connection of the measured port is taken for them.

use model::status::WebStatus;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

/// A server that does not answer in this time does not tell.
const PATIENCE: Duration = Duration::from_millis(500);
/// The page has about 100 bytes.
const MOST: u64 = 4096;

/// Where an instance tells its counters.
#[derive(Debug)]
pub(crate) struct StubStatus {
    pub(crate) socket: PathBuf,
}

impl StubStatus {
    /// The counters now; `None` when it does not tell.
    pub(crate) fn look(&self) -> Option<WebStatus> {
        let mut stream = UnixStream::connect(&self.socket).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        stream.set_write_timeout(Some(PATIENCE)).ok()?;
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n").ok()?;
        let mut page = String::new();
        stream.take(MOST).read_to_string(&mut page).ok()?;
        parse(page.split_once("\r\n\r\n")?.1)
    }
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
