//! One run at a time works on a server, a file or a setting of the machine's: a file that only one can make, in a folder that does not
//! outlive this boot.
//!
//! It is made before anything is changed and removed after everything was given back, by whoever gives it back. What a run adds to a
//! server's configuration counts only as long as it is there, so that after a crash of the machine it counts no more.

use crate::HostError;
use crate::files::mark;
use crate::handle::Host;
use crate::journal::{Head, Undo};
use crate::mounts::mounts;
use crate::process::Identity;
use rustix::fs::OFlags;
use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Where it may lie; the first only for root.
const FOLDERS: [&str; 2] = ["/run", "/dev/shm"];
/// File systems that are emptied by a boot, or by a new start of a container.
const IN_MEMORY: [&str; 3] = ["tmpfs", "ramfs", "devtmpfs"];
/// No claim is longer: a path, of which no byte need be a letter.
const LONGEST: u64 = 3 * 4096 + 1024;

/// Something that one run at a time works on.
#[derive(Debug)]
struct Thing<'a> {
    /// What tells it from others.
    key: OsString,
    /// What a human calls it.
    called: &'a Path,
}

/// Makes the file for what is told from others by `what`, such as a server's main configuration file. Several claims of one run are one.
pub(crate) fn claim(host: &Host, what: &Path) -> Result<PathBuf, HostError> {
    Thing { key: what.into(), called: what }.claim(host)
}

/// Makes the file for where the server of the main file `main` takes connections.
pub(crate) fn claim_door(host: &Host, at: SocketAddr, main: &Path) -> Result<(), HostError> {
    Thing { key: key_of(at), called: main }.claim(host).map(drop)
}

/// An error when another run than `own` works on what is told from others by `what`. Nothing is claimed.
///
/// # Errors
/// When it does, or was killed and has not given it back.
pub fn not_taken(what: &Path, own: Option<&Host>) -> Result<(), HostError> {
    // As who claims a server has it.
    let what = what.canonicalize().unwrap_or_else(|_| what.to_owned());
    Thing { key: what.clone().into(), called: &what }.claimed(own).map(drop)
}

/// The same of the server that takes connections to an address of this machine's.
///
/// # Errors
/// As [`not_taken`].
pub fn door_not_taken(at: SocketAddr, own: Option<&Host>) -> Result<(), HostError> {
    let at = SocketAddr::new(at.ip().to_canonical(), at.port());
    // One that listens on all addresses of the newer kind mostly does so on those of the older, too.
    let all_older = at.is_ipv4().then_some(Ipv4Addr::UNSPECIFIED.into());
    let all: [Option<IpAddr>; 3] = [Some(at.ip()), all_older, Some(Ipv6Addr::UNSPECIFIED.into())];
    let mut doors = all.into_iter().flatten().map(|ip| SocketAddr::new(ip, at.port()));
    let called = PathBuf::from(at.to_string());
    doors.try_for_each(|door| Thing { key: key_of(door), called: &called }.claimed(own).map(drop))
}

/// An address is another server's in each network namespace.
fn key_of(at: SocketAddr) -> OsString {
    let mut key = fs::read_link("/proc/self/ns/net").unwrap_or_default().into_os_string();
    key.push(format!(" {at}"));
    key
}

impl Thing<'_> {
    /// Where its claim may lie.
    fn places(&self) -> [PathBuf; 2] {
        let (hash, _) = mark(self.key.as_encoded_bytes());
        FOLDERS.map(|folder| Path::new(folder).join(format!("webdyno-in-place-{hash:016x}")))
    }

    /// The run's own claim, if there is one; an error when there is another's.
    fn claimed(&self, own: Option<&Host>) -> Result<Option<PathBuf>, HostError> {
        for place in self.places() {
            match read(&place) {
                Some(text) if own.is_some_and(|host| text.lines().next() == Some(host.run())) => {
                    return Ok(Some(place));
                }
                Some(text) => return Err(taken(self.called, &place, &text)),
                None => {}
            }
        }
        Ok(None)
    }

    fn claim(&self, host: &Host) -> Result<PathBuf, HostError> {
        if let Some(own) = self.claimed(Some(host))? {
            return Ok(own);
        }
        let is_root = rustix::process::geteuid().is_root();
        let [first, second] = self.places();
        // A container may have /run on its disk.
        let place = if is_root && (in_memory(FOLDERS[0]) || !in_memory(FOLDERS[1])) { first } else { second };
        let entry = host.record(Undo::Unclaim { path: place.clone() })?;
        // Written under a name of the run's and then linked: nobody finds it without knowing whose it is, and only one link can be made.
        let own = place.with_extension(host.run());
        let made = write(&own, host.run(), self.called)
            .and_then(|()| fs::hard_link(&own, &place))
            .and_then(|()| fs::remove_file(&own));
        match made {
            Ok(()) => Ok(place),
            Err(error) => {
                host.put_back(entry)?;
                let text = read(&place).unwrap_or_default();
                let raced = error.kind() == ErrorKind::AlreadyExists;
                Err(if raced { taken(self.called, &place, &text) } else { HostError::io("make", &place)(error) })
            }
        }
    }
}

/// The run, the process that carries it out, and what it works on.
fn write(own: &Path, run: &str, called: &Path) -> io::Result<()> {
    let pid = std::process::id();
    let start = Identity::of(pid).map_or(0, |identity| identity.start_time);
    // In a folder of everybody's, a link of that name may lead anywhere.
    let mut file = OpenOptions::new().write(true).create_new(true).open(own)?;
    // Whatever the umask: everybody who would load the server reads it.
    file.set_permissions(fs::Permissions::from_mode(0o644))?;
    writeln!(file, "{run}\n{pid}\n{start}\n{}", called.display())
}

/// What a claim says. Something else of that name, which anybody could have put into a folder of everybody's, is none.
fn read(place: &Path) -> Option<String> {
    let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW).bits();
    let file = OpenOptions::new().read(true).custom_flags(i32::try_from(flags).ok()?).open(place).ok()?;
    file.metadata().ok().filter(fs::Metadata::is_file)?;
    let mut text = String::new();
    file.take(LONGEST).read_to_string(&mut text).ok()?;
    let is_id = |run: &&str| !run.is_empty() && run.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    text.lines().next().filter(is_id)?;
    Some(text)
}

fn in_memory(folder: &str) -> bool {
    let mounts = mounts();
    let holds = mounts.iter().filter(|mount| Path::new(folder).starts_with(&mount.point));
    // The deepest, and of those in one place the last.
    let mount = holds.max_by_key(|mount| mount.point.components().count());
    mount.is_some_and(|mount| IN_MEMORY.contains(&mount.kind.as_str()))
}

fn taken(called: &Path, place: &Path, text: &str) -> HostError {
    let mut lines = text.lines();
    let run = lines.next().unwrap_or("unknown").to_owned();
    let pid = lines.next().and_then(|pid| pid.parse().ok());
    let start_time = lines.next().and_then(|start| start.parse().ok());
    let alive = match (pid, start_time) {
        (Some(pid), Some(start_time)) => Identity { pid, start_time }.lives(),
        (Some(pid), None) => Identity::of(pid).is_some(),
        _ => false,
    };
    // It knows better than who comes by another way.
    let told = lines.next().map(|told| PathBuf::from(told.replace(char::is_control, "?")));
    HostError::Taken { what: told.unwrap_or_else(|| called.to_owned()), run, alive, place: place.to_owned() }
}

/// Removes it, if it is this run's.
pub(crate) fn unclaim(path: &Path, head: &Head) -> Result<Option<String>, String> {
    let failed = |error: io::Error| format!("cannot delete {}: {error}", path.display());
    match fs::remove_file(path.with_extension(&head.run)) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    if read(path).is_some_and(|text| text.lines().next() == Some(&head.run)) {
        fs::remove_file(path).map_err(failed)?;
    }
    // A file of ours that nobody has seen is no news.
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_tells_who_works_and_nothing_else_is_taken_for_one() {
        let dir = tempfile::tempdir().unwrap();
        let own = dir.path().join("claim");
        write(&own, "r1", Path::new("/x\u{1b}")).unwrap();
        let text = read(&own).unwrap();
        let said = |text: &str| taken(Path::new("/x?"), &own, text).to_string();
        assert_eq!(said(&text), "the run r1 works on /x?; let it end first");
        // The number of its process is another's by now.
        let reused = text.lines().take(2).map(|line| format!("{line}\n")).collect::<String>() + "1\n";
        assert!(
            said(&reused)
                .starts_with("the run r1 was killed while it worked on /x?; `webdyno restore`, by who ran it, ")
        );
        let pipe = dir.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        assert_eq!(read(&pipe), None);
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(dir.path().join("precious"), &link).unwrap();
        fs::write(dir.path().join("text"), "\u{1b}[2J\n1\n").unwrap();
        assert_eq!(read(&dir.path().join("text")), None);
        assert!(write(&link, "r1", Path::new("/x")).is_err() && !dir.path().join("precious").exists());
    }
}
