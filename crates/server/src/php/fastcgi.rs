//! One question in FastCGI, to ask a pool for its status page: for that, never for load.

use crate::running::Door;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

// Kinds of records, from the FastCGI specification 1.0.
const BEGIN: u8 = 1;
const END: u8 = 3;
const PARAMS: u8 = 4;
const STDIN: u8 = 5;
const STDOUT: u8 = 6;
/// Nobody tells more about a pool than this.
const MOST: usize = 64 * 1024;

/// The body of the answer to a GET of `path`; every step takes `patience` at most.
pub(super) fn get(door: &Door, path: &str, patience: Duration) -> io::Result<String> {
    match door {
        Door::File(socket) => {
            let stream = UnixStream::connect(socket)?;
            stream.set_read_timeout(Some(patience))?;
            stream.set_write_timeout(Some(patience))?;
            answer(stream, path)
        }
        Door::Address(address) => {
            let stream = TcpStream::connect_timeout(address, patience)?;
            stream.set_read_timeout(Some(patience))?;
            stream.set_write_timeout(Some(patience))?;
            answer(stream, path)
        }
    }
}

fn answer(mut stream: impl Read + Write, path: &str) -> io::Result<String> {
    stream.write_all(&question(path))?;
    let mut out = Vec::new();
    loop {
        let mut head = [0; 8];
        stream.read_exact(&mut head)?;
        let mut content = vec![0; usize::from(u16::from_be_bytes([head[4], head[5]])) + usize::from(head[6])];
        stream.read_exact(&mut content)?;
        content.truncate(content.len() - usize::from(head[6]));
        match head[1] {
            STDOUT => out.extend(content),
            END => break,
            _ => {}
        }
        if out.len() > MOST {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
    let text = String::from_utf8_lossy(&out).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").ok_or(io::ErrorKind::InvalidData)?;
    // No status is 200.
    match head.lines().find_map(|line| line.strip_prefix("Status:")) {
        Some(status) if !status.trim().starts_with("200") => Err(io::Error::other(format!("status{status}"))),
        _ => Ok(body.to_owned()),
    }
}

fn question(path: &str) -> Vec<u8> {
    let mut params = Vec::new();
    let told = [("SCRIPT_NAME", path), ("SCRIPT_FILENAME", path), ("REQUEST_METHOD", "GET"), ("REQUEST_URI", path)];
    for (name, value) in told {
        // Lengths below 128 are one byte.
        params.extend([name.len() as u8, value.len() as u8]);
        params.extend(name.bytes().chain(value.bytes()));
    }
    // A responder, and the connection is closed after the answer.
    let begin = [0, 1, 0, 0, 0, 0, 0, 0];
    [record(BEGIN, &begin), record(PARAMS, &params), record(PARAMS, &[]), record(STDIN, &[])].concat()
}

fn record(kind: u8, content: &[u8]) -> Vec<u8> {
    let length = (content.len() as u16).to_be_bytes();
    let mut record = vec![1, kind, 0, 1, length[0], length[1], 0, 0];
    record.extend(content);
    record
}
