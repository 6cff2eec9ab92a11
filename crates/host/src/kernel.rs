//! What the kernel tells in files.

use std::fs;
use std::io;
use std::path::Path;

/// The text of one. Names in it may be of any bytes, and that of a program is cut after 15 of them, within a letter if need be: what is no
/// UTF-8 is replaced, so that nobody is hidden by a name.
pub(crate) fn text(file: impl AsRef<Path>) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&fs::read(file)?).into_owned())
}
