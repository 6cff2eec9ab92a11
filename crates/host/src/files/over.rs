//! A file laid over another by a bind mount, which is gone with the machine at the latest.
//!
//! What lies over what is told by the kernel's table of mounts: it has the name of the file that was laid there.

use crate::mounts::{Mount, mounts, mounts_of};
use crate::process;
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{UnmountFlags, mount_bind, unmount};
use std::collections::BTreeSet;
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind};
use std::path::Path;

/// Lays the file `over`, which is open as `written`, over the file beside it at `path`, if that is as it should be.
///
/// # Errors
/// When it is not, when nothing can be mounted here, or when somebody would still find what lies below. Then nothing lies there.
pub(super) fn cover(path: &Path, over: &Path, written: &File, expected: impl Fn(&Metadata) -> bool) -> io::Result<()> {
    let below = reach(path)?;
    if !expected(&fs::metadata(name_of(&below))?) {
        return Err(ErrorKind::InvalidInput.into());
    }
    if mount_id(&below)?.is_none() {
        // Nobody could tell it from others' then, to take it off.
        return Err(ErrorKind::Unsupported.into());
    }
    // Both by what is open: a name may mean another file by now, in a folder of somebody else's.
    mount_bind(name_of(written), name_of(&below))?;
    let name = name(over);
    if is_found_by_all(&name, path) {
        return Ok(());
    }
    take_off(path, |own| own == name)?;
    Err(ErrorKind::Unsupported.into())
}

/// Takes off what lies over the file at `path`, if it is one of `ours` by its name, which it returns. Who has it open keeps it.
pub(super) fn take_off(path: &Path, ours: impl Fn(&str) -> bool) -> io::Result<Option<String>> {
    let top = match reach(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        top => top?,
    };
    let id = mount_id(&top)?;
    let Some(mount) = mounts_of("self")?.into_iter().find(|mount| Some(mount.id) == id) else { return Ok(None) };
    // The last part may be the kernel's remark that the name was deleted.
    let Some(name) = mount.root.iter().rev().take(2).map(|part| part.to_string_lossy()).find(|part| ours(part)) else {
        return Ok(None);
    };
    unmount(name_of(&top), UnmountFlags::DETACH)?;
    Ok(Some(name.into_owned()))
}

/// Whether the file of the name `over` lies on every way to the file at `path`: its folder may be mounted at other places, too, and processes
/// may have mounts of their own.
fn is_found_by_all(over: &str, path: &Path) -> bool {
    let own = mounts();
    let Some(ours) = own.iter().find(|mount| name(&mount.root) == over) else { return false };
    let below = ours.root.with_file_name(path.file_name().unwrap_or_default());
    let is_found = |mounts: &[Mount]| {
        let there = || mounts.iter().filter(|mount| mount.device == ours.device);
        let ways = there().filter(|mount| below.starts_with(&mount.root)).count();
        there().filter(|mount| mount.root == ours.root).count() >= ways
    };
    let mut asked = BTreeSet::new();
    let mut finds = |pid: u32| {
        // Of one in a chroot the table is shorter. Whose namespace we may not know we ask each.
        let link = |name: &str| fs::read_link(format!("/proc/{pid}/{name}"));
        if link("ns/mnt").and_then(|mounts| Ok(!asked.insert((mounts, link("root")?)))).unwrap_or(false) {
            return true;
        }
        // One that has ended finds nothing any more.
        let has_ended = |error| matches!(Errno::from_io_error(&error), Some(Errno::NOENT | Errno::SRCH | Errno::INVAL));
        mounts_of(pid).map_or_else(has_ended, |mounts| is_found(&mounts))
    };
    is_found(&own) && process::any(|pid| !finds(pid)).is_ok_and(|misses| !misses)
}

/// The number of the mount that a file is open in; kernels before 3.15 do not tell.
fn mount_id(open: &OwnedFd) -> io::Result<Option<u64>> {
    let facts = fs::read_to_string(format!("/proc/self/fdinfo/{}", open.as_raw_fd()))?;
    Ok(facts.lines().find_map(|line| line.strip_prefix("mnt_id:")?.trim().parse().ok()))
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The file of this name itself, not to be read.
fn reach(path: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?)
}

/// A name that leads to what is open, whatever its own names mean by now.
fn name_of(open: &impl AsFd) -> String {
    format!("/proc/self/fd/{}", open.as_fd().as_raw_fd())
}
