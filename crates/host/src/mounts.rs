//! What is mounted where, from `/proc/self/mountinfo`.

use crate::kernel;
use rustix::thread::{CapabilitySet, capabilities};
use std::ffi::OsString;
use std::fmt::Display;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// One mounted file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mount {
    /// Its number, as `/proc/PID/fdinfo` has it, too.
    pub(crate) id: u64,
    /// The file system's device, `major:minor`.
    pub(crate) device: String,
    /// What of the file system is mounted: a folder, or a single file.
    pub(crate) root: PathBuf,
    /// Where.
    pub(crate) point: PathBuf,
    /// Its type: `ext4`, `cgroup2`.
    pub(crate) kind: String,
    /// Options of the file system itself; for cgroup v1 they name the controllers.
    pub(crate) options: Vec<String>,
}

/// Whether this process may mount anything, by what the kernel asks for (capabilities(7)); where more is in the way, a mount fails.
#[must_use]
pub fn may_mount() -> bool {
    capabilities(None).is_ok_and(|held| held.effective.contains(CapabilitySet::SYS_ADMIN))
}

/// All mounts, in the order they were made; none when the kernel does not tell.
pub(crate) fn mounts() -> Vec<Mount> {
    mounts_of("self").unwrap_or_default()
}

/// The mounts in a text of mountinfo's form.
pub(crate) fn parse(text: &str) -> Vec<Mount> {
    text.lines().filter_map(mount).collect()
}

/// The mounts that a process has, by its number or `self`.
///
/// # Errors
/// When they cannot be read; the process may have ended.
pub(crate) fn mounts_of(process: impl Display) -> io::Result<Vec<Mount>> {
    Ok(parse(&kernel::text(format!("/proc/{process}/mountinfo"))?))
}

/// Whether something is mounted on `path` or below.
pub(crate) fn any_below(mounts: &[Mount], path: &Path) -> bool {
    mounts.iter().any(|mount| mount.point.starts_with(path))
}

/// A path as the kernel's tables write it: blanks and backslashes as three octal digits.
pub(crate) fn unescape(text: &str) -> PathBuf {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, tail @ ..] = rest {
        let octal = tail.get(..3).and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        match (first, octal) {
            (b'\\', Some(byte)) => {
                bytes.push(byte);
                rest = &tail[3..];
            }
            _ => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    PathBuf::from(OsString::from_vec(bytes))
}

fn mount(line: &str) -> Option<Mount> {
    // "36 35 98:0 /root /point options [optional fields] - type source super-options"
    let (left, right) = line.split_once(" - ")?;
    let mut left = left.split(' ');
    let id = left.next()?.parse().ok()?;
    let device = left.nth(1)?.to_owned();
    let (root, point) = (unescape(left.next()?), unescape(left.next()?));
    let mut right = right.split(' ');
    let kind = right.next()?.to_owned();
    let options = right.nth(1)?.split(',').map(str::to_owned).collect();
    Some(Mount { id, device, root, point, kind, options })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: Option<(&str, &str, &[&str])>) {
        let mount = mount(line);
        let seen = mount.as_ref().map(|mount| {
            (mount.point.to_str().unwrap(), mount.kind.as_str(), mount.options.iter().map(String::as_str).collect())
        });
        assert_eq!(seen, expected.map(|(point, kind, options)| (point, kind, options.to_vec())), "{line}");
    }

    #[test]
    fn lines_of_mountinfo() {
        check(
            "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory",
            Some(("/sys/fs/cgroup/memory", "cgroup", &["rw", "memory"])),
        );
        check(r"1 2 0:3 / /a\040b\134c rw - tmpfs none rw,size=1k", Some(("/a b\\c", "tmpfs", &["rw", "size=1k"])));
        check("1 2 0:3 / /a rw", None);
        check("", None);
    }

    #[test]
    fn a_single_file_is_mounted() {
        let mount = mount(r"43 27 254:0 /etc/.new//deleted /etc/php.ini rw - ext4 /dev/vda rw").unwrap();
        assert_eq!((mount.id, mount.device.as_str()), (43, "254:0"));
        assert_eq!((mount.root, mount.point), ("/etc/.new//deleted".into(), "/etc/php.ini".into()));
    }

    #[test]
    fn below_means_whole_components() {
        let mounts = parse("1 2 0:3 / /tmp/webdyno-1/data rw - tmpfs none rw");
        assert!(any_below(&mounts, Path::new("/tmp/webdyno-1")) && !any_below(&mounts, Path::new("/tmp/webdyno-")));
    }
}
