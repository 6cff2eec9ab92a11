//! Swap: how much there is, and a temporary file of it; `reset` empties what there is.
//!
//! The header is written here rather than by mkswap, which a small machine may lack: it is one page with a signature.

mod reset;

pub use reset::may_reset_swap;
pub(crate) use reset::{on, reset};

use crate::HostError;
use crate::folder::{fresh_name, temporary_place};
use crate::handle::Host;
use crate::journal::Undo;
use crate::kernel;
use crate::mounts::{Mount, mounts, unescape};
use rustix::fs::{FallocateFlags, fallocate, statvfs};
use rustix::io::Errno;
use rustix::param::page_size;
use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// File systems whose files can be swapped to. Others have no fixed place on a disk: tmpfs, overlay, zfs, network;
/// btrfs could, with a file made in a special way.
const SUITABLE: [&str; 5] = ["ext4", "xfs", "ext3", "ext2", "f2fs"];
/// What must stay free on the disk.
const RESERVE: u64 = 512 << 20;
/// Where the kernel tells its areas.
const SWAPS: &str = "/proc/swaps";

/// Bytes of swap on this machine.
#[must_use]
pub fn swap_total() -> u64 {
    meminfo("SwapTotal").unwrap_or(0)
}

/// Bytes of swap that nothing occupies.
#[must_use]
pub fn swap_free() -> u64 {
    meminfo("SwapFree").unwrap_or(0)
}

/// Whether this user may add swap at all.
///
/// # Errors
/// [`HostError::NotRoot`] when not.
pub fn may_make_swap() -> Result<(), HostError> {
    let root = rustix::process::geteuid().is_root();
    if root { Ok(()) } else { Err(HostError::NotRoot("only root may make a swap file".to_owned())) }
}

/// Whether a swap file of `bytes` has a place to lie.
///
/// # Errors
/// [`HostError::NoSwap`] with why each place cannot have it.
pub fn room_for_swap(bytes: u64) -> Result<(), HostError> {
    folder_for(pages_of(bytes)).map(|_| ())
}

/// Pages of this machine's that a swap file of `bytes` has: the header takes one, and the rest shall be as much as was asked for.
fn pages_of(bytes: u64) -> u64 {
    bytes.div_ceil(page_size() as u64) + 1
}

fn folder_for(pages: u64) -> Result<PathBuf, HostError> {
    place(&[temporary_place(), "/var/tmp".into()], pages.saturating_mul(page_size() as u64))
}

/// Adds a swap file of `bytes`.
pub(crate) fn make(host: &Host, bytes: u64) -> Result<(), HostError> {
    may_make_swap()?;
    let (page, pages) = (page_size() as u64, pages_of(bytes));
    let file = folder_for(pages)?.join(fresh_name(host.run()));
    let remove = host.record(Undo::RemoveFile { path: file.clone() })?;
    if let Err(error) = write(&file, pages, page) {
        host.put_back(remove)?;
        return Err(HostError::io("write the swap file", &file)(error));
    }
    let off = host.record(Undo::SwapOff { file: file.clone() })?;
    if let Err(error) = turn(&file, Turn::On { priority: None }) {
        host.put_back(off)?;
        host.put_back(remove)?;
        return Err(HostError::NoSwap(format!(
            "the kernel does not swap to {}: {error}; add swap yourself, on a disk of its own",
            file.display()
        )));
    }
    Ok(())
}

/// Takes a swap file out of use, if memory can take what is in it. `Ok(None)` when it is not in use.
pub(crate) fn off(file: &Path) -> Result<Option<String>, String> {
    let Some(used) = used_bytes(&swaps()?, file) else { return Ok(None) };
    let available = meminfo("MemAvailable").unwrap_or(u64::MAX);
    if used > available {
        return Err(format!(
            "the swap file {} holds {} MiB and only {} MiB of memory are available to take it: end something first",
            file.display(),
            used >> 20,
            available >> 20
        ));
    }
    turn(file, Turn::Off)
        .map_err(|error| format!("cannot take the swap file {} out of use: {error}", file.display()))?;
    Ok(Some(format!("took the swap file {} out of use", file.display())))
}

/// Whether the kernel swaps to that file.
pub(crate) fn is_swapped_to(file: &Path) -> Result<bool, String> {
    Ok(used_bytes(&swaps()?, file).is_some())
}

/// The text of `/proc/swaps`; none of a kernel that cannot swap at all.
fn swaps() -> Result<String, String> {
    match kernel::text(SWAPS) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        text => text.map_err(|error| format!("cannot read {SWAPS}: {error}")),
    }
}

/// A value of `/proc/meminfo` in bytes.
pub(crate) fn meminfo(key: &str) -> Option<u64> {
    meminfo_value(&fs::read_to_string("/proc/meminfo").ok()?, key)
}

/// A value of a text of meminfo's form, in bytes.
pub(crate) fn meminfo_value(text: &str, key: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    value.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib << 10)
}

#[derive(Clone, Copy)]
enum Turn {
    /// Where no priority is given, the kernel puts it behind the others.
    On {
        priority: Option<u16>,
    },
    Off,
}

/// Marks a priority in the flags of `swapon`, whose lowest bits it is.
const PREFER: libc::c_int = 0x8000;

fn turn(file: &Path, turn: Turn) -> io::Result<()> {
    let path = CString::new(file.as_os_str().as_bytes())?;
    let result = match turn {
        // SAFETY: the path is a terminated string that lives through the call; the kernel checks everything else.
        Turn::On { priority } => unsafe {
            libc::swapon(path.as_ptr(), priority.map_or(0, |priority| PREFER | libc::c_int::from(priority)))
        },
        // SAFETY: as above.
        Turn::Off => unsafe { libc::swapoff(path.as_ptr()) },
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The first of `folders` that can hold a swap file of `bytes`, or why none can.
fn place(folders: &[PathBuf], bytes: u64) -> Result<PathBuf, HostError> {
    let mounts = mounts();
    let mut reasons = vec![];
    for folder in folders {
        let Ok(folder) = folder.canonicalize() else { continue };
        let kind = file_system(&mounts, &folder);
        let free = statvfs(&folder).map_or(0, |found| found.f_bavail * found.f_frsize);
        if !SUITABLE.contains(&kind) {
            reasons.push(format!("{} lies on {kind}, which cannot hold it", folder.display()));
        } else if free < bytes.saturating_add(RESERVE) {
            reasons.push(format!("{} has {} MiB free", folder.display(), free >> 20));
        } else {
            return Ok(folder);
        }
    }
    let (size, reserve) = (bytes >> 20, RESERVE >> 20);
    Err(HostError::NoSwap(format!(
        "no place for a swap file of {size} MiB ({reserve} MiB must stay free): {}; point TMPDIR at a folder on a real disk",
        reasons.join("; ")
    )))
}

/// The type of the file system that `path` lies on.
fn file_system<'a>(mounts: &'a [Mount], path: &Path) -> &'a str {
    let above = mounts.iter().filter(|mount| path.starts_with(&mount.point));
    // Of several on one point the last covers the others.
    above.max_by_key(|mount| mount.point.components().count()).map_or("an unknown file system", |mount| &mount.kind)
}

/// Makes the file without holes and puts the header in.
fn write(path: &Path, pages: u64, page: u64) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    match fallocate(&file, FallocateFlags::empty(), 0, pages * page) {
        Err(Errno::OPNOTSUPP) => fill(&mut file, pages, page)?,
        result => result?,
    }
    let last_page = u32::try_from(pages - 1).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))?;
    file.write_all_at(&header(last_page, page), 0)?;
    file.sync_all()
}

fn fill(file: &mut File, pages: u64, page: u64) -> io::Result<()> {
    let zeros = vec![0; page as usize];
    (0..pages).try_for_each(|_| file.write_all(&zeros))
}

/// The first page, as `union swap_header` in the kernel's `include/linux/swap.h`: version and last page behind 1024 bytes left to
/// boot loaders, the signature at the very end. No label, no UUID, no bad pages.
fn header(last_page: u32, page: u64) -> Vec<u8> {
    const SIGNATURE: &[u8] = b"SWAPSPACE2";
    let mut header = vec![0; page as usize];
    header[1024..1028].copy_from_slice(&1u32.to_ne_bytes());
    header[1028..1032].copy_from_slice(&last_page.to_ne_bytes());
    let end = header.len();
    header[end - SIGNATURE.len()..].copy_from_slice(SIGNATURE);
    header
}

/// How much of a swap file is in use, from a text of `/proc/swaps`' form; `None` when it is not swapped to.
fn used_bytes(swaps: &str, file: &Path) -> Option<u64> {
    let line =
        swaps.lines().skip(1).find(|line| line.split_whitespace().next().is_some_and(|name| unescape(name) == file))?;
    line.split_whitespace().nth(3)?.parse::<u64>().ok().map(|kib| kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mounts::parse;

    #[test]
    fn only_the_file_itself_counts_as_swap() {
        let swaps = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n\
            /swap                               file\t\t65532\t\t12\t\t-2\n\
            /my\\040swap                         file\t\t65532\t\t0\t\t-3\n";
        let check = |file: &str, expected| assert_eq!(used_bytes(swaps, Path::new(file)), expected, "{file}");
        check("/swap", Some(12 << 10));
        check("/my swap", Some(0));
        check("/swa", None);
        check("Filename", None);
    }

    #[test]
    fn meminfo_is_in_kibibytes() {
        let text = "MemTotal:       24684096 kB\nSwapTotal:             0 kB\nHugePages_Total:       3\n";
        let check = |key, expected| assert_eq!(meminfo_value(text, key), expected, "{key}");
        check("MemTotal", Some(24_684_096 << 10));
        check("SwapTotal", Some(0));
        check("Swap", None);
        check("HugePages_Total", None);
    }

    #[test]
    fn the_deepest_and_last_mount_is_the_one() {
        let mounts =
            parse("1 0 8:1 / / rw - ext4 a rw\n2 1 0:3 / /tmp rw - tmpfs b rw\n3 2 0:4 / /tmp rw - xfs c rw\n");
        let check = |path: &str, expected| assert_eq!(file_system(&mounts, Path::new(path)), expected, "{path}");
        check("/tmp/x", "xfs");
        check("/tmpx", "ext4");
        check("/", "ext4");
    }

    #[test]
    fn a_place_is_refused_with_its_reason() {
        let refused = |folder: &str, bytes| place(&[folder.into()], bytes).unwrap_err().to_string();
        assert!(refused("/proc", 1).contains("/proc lies on proc, which cannot hold it"));
        let free = refused("/tmp", u64::MAX >> 1);
        assert!(free.contains("MiB free") || free.contains("cannot hold it"), "{free}");
    }

    #[test]
    fn the_header_is_where_the_kernel_looks() {
        let header = header(16_384, 4096);
        assert_eq!((header.len(), &header[4086..]), (4096, &b"SWAPSPACE2"[..]));
        assert_eq!(header[1024..1032], [1u32.to_ne_bytes(), 16_384u32.to_ne_bytes()].concat());
        assert!(header[1032..4086].iter().chain(&header[..1024]).all(|&byte| byte == 0));
    }
}
