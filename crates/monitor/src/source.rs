//! A file of the kernel that is opened once and read many times, into a buffer that never grows once the files are open.
//!
//! Keeping the descriptor saves the opening on every reading and, when memory is short, the allocations it needs in the kernel.

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

/// Bytes of a buffer at first. The longest file in use is /proc/stat, whose line of interrupts has a number for every interrupt that the
/// kernel could give out: 132 KB were seen on a machine of eight CPUs.
const BUFFER: usize = 128 * 1024;
/// It is never made larger than this.
const LARGEST: usize = 4 * 1024 * 1024;

/// A piece of less than this has the end of a file in it: there was room for another line, and the kernel's are shorter than that
/// (a line of /proc/stat that is longer comes in one piece with all others).
const LAST_PIECE: usize = 2048;

/// A file that stays open.
pub(crate) struct Source {
    file: OwnedFd,
}

/// Where texts are read to; one for each thread.
pub(crate) struct Buffer(Box<[u8]>);

impl Buffer {
    /// A buffer whose every page has been touched, so that no later reading has to ask the kernel for one.
    pub(crate) fn new() -> Self {
        Buffer(vec![1; BUFFER].into_boxed_slice())
    }

    /// All of it.
    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        &mut self.0
    }

    /// Reads a file, and makes room for it and a third more, so that it may grow while it is kept open; its length now.
    pub(crate) fn fit(&mut self, file: impl AsFd) -> Result<usize, Errno> {
        loop {
            let length = self.fill(&file)?.len();
            if length <= self.0.len() / 4 * 3 || self.0.len() >= LARGEST {
                return Ok(length);
            }
            self.0 = vec![1; self.0.len() * 2].into_boxed_slice();
        }
    }

    /// Reads a file from its beginning; what does not fit is left out.
    pub(crate) fn fill(&mut self, file: impl AsFd) -> Result<&[u8], Errno> {
        let mut length = 0;
        // Files of the kernel come in pieces of about a page, cut between two lines: only a piece far shorter is the last for sure.
        while length < self.0.len() {
            match rustix::io::pread(&file, &mut self.0[length..], length as u64) {
                Ok(count) if count < LAST_PIECE => {
                    length += count;
                    break;
                }
                Ok(count) => length += count,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(&self.0[..length])
    }
}

impl Source {
    /// Opens a file for reading.
    pub(crate) fn open(path: &Path) -> Result<Self, Errno> {
        let file = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Source { file })
    }

    /// Gives its lines now to `take`, one after the other and without their line ends: for files longer than a buffer.
    /// A line longer than the buffer is left out.
    pub(crate) fn each_line(&self, buffer: &mut Buffer, mut take: impl FnMut(&[u8])) -> Result<(), Errno> {
        let bytes = buffer.bytes();
        let (mut kept, mut offset, mut overlong) = (0, 0, false);
        loop {
            let count = match rustix::io::pread(&self.file, &mut bytes[kept..], offset) {
                Ok(0) => break,
                Ok(count) => count,
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error),
            };
            offset += count as u64;
            let filled = kept + count;
            let mut begin = 0;
            while let Some(length) = bytes[begin..filled].iter().position(|&byte| byte == b'\n') {
                if !std::mem::take(&mut overlong) {
                    take(&bytes[begin..begin + length]);
                }
                begin += length + 1;
            }
            kept = filled - begin;
            bytes.copy_within(begin..filled, 0);
            if kept == bytes.len() {
                (kept, overlong) = (0, true);
            }
        }
        if kept > 0 && !overlong {
            take(&bytes[..kept]);
        }
        Ok(())
    }

    /// Makes room for it; its length now.
    pub(crate) fn fit(&self, buffer: &mut Buffer) -> Result<usize, Errno> {
        buffer.fit(&self.file)
    }

    /// Whether it lies on a file system of that kind (`f_type` of statfs(2)).
    pub(crate) fn lies_on(&self, kind: i64) -> bool {
        rustix::fs::fstatfs(&self.file).is_ok_and(|system| system.f_type == kind)
    }

    /// Its text now.
    pub(crate) fn read<'b>(&self, buffer: &'b mut Buffer) -> Result<&'b [u8], Errno> {
        buffer.fill(&self.file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[usize]) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, text).unwrap();
        let mut lengths = Vec::new();
        Source::open(&path).unwrap().each_line(&mut Buffer::new(), |line| lengths.push(line.len())).unwrap();
        assert_eq!(lengths, expected);
    }

    #[test]
    fn lines_are_whole_wherever_the_buffer_ends() {
        check("", &[]);
        check("a\n\nbcd", &[1, 0, 3]);
        let line = "x".repeat(1000);
        check(&format!("{line}\n").repeat(500), &[1000; 500]);
        let long = "y".repeat(BUFFER);
        check(&format!("a\n{long}\nbb\n"), &[1, 2]);
        check(&format!("{}\nbb\n", &long[1..]), &[BUFFER - 1, 2]);
        check(&format!("{long}{long}z"), &[]);
    }
}
