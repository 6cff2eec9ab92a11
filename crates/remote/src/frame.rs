//! Messages in a stream of bytes: JSON, and behind it what JSON is no good for.
//!
//! A frame is the number of its parts, then each part behind its length, all numbers 32 bits, the lowest byte first. The first
//! part is JSON, the others are bytes as they are.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, ErrorKind, Read, Write};

/// No part is longer: whoever says so is not speaking to us.
const LONGEST: u32 = 1 << 30;
/// No frame has more parts.
const MOST: u32 = 1 << 16;

/// Writes one frame and hands it on.
pub(crate) fn write<M: Serialize>(to: &mut impl Write, message: &M, blobs: &[Vec<u8>]) -> io::Result<()> {
    let json = serde_json::to_vec(message)?;
    let mut head = Vec::with_capacity(8 + json.len());
    number(&mut head, blobs.len() + 1)?;
    number(&mut head, json.len())?;
    head.extend_from_slice(&json);
    for blob in blobs {
        number(&mut head, blob.len())?;
        head.extend_from_slice(blob);
    }
    to.write_all(&head)?;
    to.flush()
}

/// Reads one frame; `None` when there is no further one.
pub(crate) fn read<M: DeserializeOwned>(from: &mut impl Read) -> io::Result<Option<(M, Vec<Vec<u8>>)>> {
    let Some(parts) = first_number(from)? else { return Ok(None) };
    if parts == 0 || parts > MOST {
        return Err(foreign(format!("a frame of {parts} parts")));
    }
    let json = part(from)?;
    let blobs = (1..parts).map(|_| part(from)).collect::<io::Result<_>>()?;
    let message = serde_json::from_slice(&json).map_err(|error| foreign(error.to_string()))?;
    Ok(Some((message, blobs)))
}

fn part(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = [0; 4];
    from.read_exact(&mut bytes)?;
    let length = u32::from_le_bytes(bytes);
    if length > LONGEST {
        return Err(foreign(format!("a part of {length} bytes")));
    }
    // Grows with what really comes, whatever was announced.
    let mut part = Vec::new();
    if from.take(u64::from(length)).read_to_end(&mut part)? < length as usize {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    Ok(part)
}

/// The number that a frame begins with, unless the stream ends before it.
fn first_number(from: &mut impl Read) -> io::Result<Option<u32>> {
    let mut bytes = [0; 4];
    let mut have = 0;
    while have < bytes.len() {
        match from.read(&mut bytes[have..]) {
            Ok(0) if have == 0 => return Ok(None),
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(n) => have += n,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Some(u32::from_le_bytes(bytes)))
}

fn number(to: &mut Vec<u8>, number: usize) -> io::Result<()> {
    let number = u32::try_from(number).ok().filter(|&number| number <= LONGEST);
    let number = number.ok_or_else(|| foreign("more than a frame holds".to_owned()))?;
    to.extend_from_slice(&number.to_le_bytes());
    Ok(())
}

fn foreign(what: String) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_back_one_after_the_other() {
        let mut bytes = Vec::new();
        write(&mut bytes, &"a", &[vec![0, 255], vec![]]).unwrap();
        write(&mut bytes, &"b", &[]).unwrap();
        let mut from = bytes.as_slice();
        assert_eq!(read::<String>(&mut from).unwrap(), Some(("a".to_owned(), vec![vec![0, 255], vec![]])));
        assert_eq!(read::<String>(&mut from).unwrap(), Some(("b".to_owned(), vec![])));
        assert_eq!(read::<String>(&mut from).unwrap(), None);
    }

    #[test]
    fn what_is_cut_short_or_foreign_is_an_error_and_takes_no_memory() {
        let mut bytes = Vec::new();
        write(&mut bytes, &"a", &[vec![7; 9]]).unwrap();
        for end in 1..bytes.len() {
            let error = read::<String>(&mut &bytes[..end]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::UnexpectedEof, "{end}");
        }
        for text in
            ["Welcome to this machine\n", "\x01\0\0\0\u{7f}\u{7f}\u{7f}\u{7f}", "\x01\0\0\0\x01\0\0\0x", "\0\0\0\0"]
        {
            assert_eq!(read::<String>(&mut text.as_bytes()).unwrap_err().kind(), ErrorKind::InvalidData, "{text}");
        }
    }
}
