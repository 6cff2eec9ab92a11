//! Files whose bytes nobody promised to be text: names of processes that the kernel cut inside a letter, comments in a code of their time.
//!
//! Only for what is looked at. What is written back is kept as bytes.

use std::io;
use std::path::Path;

/// What a file says, with a sign in the place of each byte that belongs to no letter.
pub(crate) fn read_lossy(path: impl AsRef<Path>) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&std::fs::read(path)?).into_owned())
}
