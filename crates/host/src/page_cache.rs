//! What the kernel keeps of files in memory: forgotten or fetched, file by file, or forgotten for the whole host.
//!
//! Nothing here needs to be given back: what is forgotten is read again by whoever wants it. What somebody has mapped stays.

use crate::HostError;
use crate::swap::meminfo;
use rustix::fs::{Advice, fadvise};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Where the kernel is told to forget.
const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// Lets the kernel forget the contents of those files, and of the files in those folders. Says how many bytes they have.
///
/// # Errors
/// When one of them cannot be read.
pub fn forget(paths: &[PathBuf]) -> Result<u64, HostError> {
    each(paths, |file, length| {
        // What is not on the disk yet cannot be forgotten.
        file.sync_data()?;
        fadvise(file, 0, None, Advice::DontNeed)?;
        Ok(length)
    })
}

/// Reads those files, and the files in those folders, so that the kernel has them in memory. Says how many bytes.
///
/// # Errors
/// When one of them cannot be read, or when they are more than there is memory for.
pub fn fetch(paths: &[PathBuf]) -> Result<u64, HostError> {
    let bytes = each(paths, |_, length| Ok(length))?;
    let available = meminfo("MemAvailable").unwrap_or(0);
    if bytes > available {
        return Err(HostError::NoMemory(format!(
            "the files to be read have {} MiB, and {} MiB of memory are available to keep them; name fewer in `files` of [memory]",
            bytes >> 20,
            available >> 20
        )));
    }
    each(paths, |mut file, _| io::copy(&mut file, &mut io::sink()))
}

/// Lets the kernel forget all that it can of all files on this host. Needs root.
///
/// # Errors
/// When this user may not.
pub fn forget_all() -> Result<(), HostError> {
    rustix::fs::sync();
    fs::write(DROP_CACHES, "1").map_err(HostError::io("write", Path::new(DROP_CACHES)))
}

/// Whether this user may have all of them forgotten.
///
/// # Errors
/// [`HostError::NotRoot`] when not.
pub fn may_forget_all() -> Result<(), HostError> {
    let root = rustix::process::geteuid().is_root();
    if root { Ok(()) } else { Err(HostError::NotRoot("only root may drop the caches of the whole host".to_owned())) }
}

/// Does something to every file, with its length; links within folders are not followed. What goes away meanwhile is gone.
fn each(paths: &[PathBuf], work: impl Fn(&File, u64) -> io::Result<u64>) -> Result<u64, HostError> {
    let mut bytes = 0;
    let mut left: Vec<(PathBuf, bool)> = paths.iter().map(|path| (path.clone(), true)).collect();
    while let Some((path, named)) = left.pop() {
        let gone = |error: &io::Error| !named && error.kind() == io::ErrorKind::NotFound;
        match one(&path, named, &mut left, &work) {
            Err(error) if gone(&error) => {}
            done => bytes += done.map_err(HostError::io("read", &path))?,
        }
    }
    Ok(bytes)
}

fn one(
    path: &Path,
    named: bool,
    left: &mut Vec<(PathBuf, bool)>,
    work: &impl Fn(&File, u64) -> io::Result<u64>,
) -> io::Result<u64> {
    let found = if named { fs::metadata(path)? } else { fs::symlink_metadata(path)? };
    if found.is_dir() {
        for entry in fs::read_dir(path)? {
            left.push((entry?.path(), false));
        }
    }
    if found.is_file() { work(&File::open(path)?, found.len()) } else { Ok(0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    /// How many pages of a file are in memory.
    fn pages_held(path: &Path) -> usize {
        let file = File::open(path).unwrap();
        let length = file.metadata().unwrap().len() as usize;
        // SAFETY: a mapping of a file that nobody makes shorter, only asked about and given back.
        unsafe {
            let at = libc::mmap(std::ptr::null_mut(), length, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0);
            assert_ne!(at, libc::MAP_FAILED);
            let mut pages = vec![0_u8; length.div_ceil(4096)];
            assert_eq!(libc::mincore(at, length, pages.as_mut_ptr()), 0);
            libc::munmap(at, length);
            pages.iter().filter(|page| **page & 1 == 1).count()
        }
    }

    #[test]
    fn files_are_fetched_and_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("deep/er");
        fs::create_dir_all(&deep).unwrap();
        fs::write(deep.join("a"), vec![7; 1 << 20]).unwrap();
        fs::write(folder.path().join("b"), vec![7; 1 << 20]).unwrap();
        std::os::unix::fs::symlink("/proc/kmsg", folder.path().join("elsewhere")).unwrap();
        let paths = [folder.path().to_owned()];
        assert_eq!(forget(&paths).unwrap(), 2 << 20);
        if pages_held(&deep.join("a")) > 0 {
            return testkit::skip::not_here("this file system keeps its files in memory");
        }
        assert_eq!(fetch(&paths).unwrap(), 2 << 20);
        assert_eq!((pages_held(&deep.join("a")), pages_held(&folder.path().join("b"))), (256, 256));
        assert_eq!(forget(&[folder.path().join("b")]).unwrap(), 1 << 20);
        assert_eq!((pages_held(&deep.join("a")), pages_held(&folder.path().join("b"))), (256, 0));
    }

    #[test]
    fn what_is_not_there_is_named() {
        let why = forget(&["/nowhere/at/all".into()]).unwrap_err().to_string();
        assert!(why.starts_with("cannot read /nowhere/at/all: "), "{why}");
    }
}
