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
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Where it may lie; the first only for root.
const FOLDERS: [&str; 2] = ["/run", "/dev/shm"];
/// File systems that are emptied by a boot, or by a new start of a container.
const IN_MEMORY: [&str; 3] = ["tmpfs", "ramfs", "devtmpfs"];
/// No claim is longer.
const LONGEST: u64 = 4096;

/// Part of the name of every claim.
const NAME: &str = "webdyno-in-place-";

/// Makes the file for what is told from others by `what`, such as a server's main configuration file. Several claims of one run are one.
pub(crate) fn claim(host: &Host, what: &Path) -> Result<PathBuf, HostError> {
    let places = places(what);
    if let Some(own) = claimed(what, &places, Some(host.run()))? {
        return Ok(own.clone());
    }
    let is_root = rustix::process::geteuid().is_root();
    let [first, second] = &places;
    // A container may have /run on its disk.
    let place = if is_root && (in_memory(FOLDERS[0]) || !in_memory(FOLDERS[1])) { first } else { second }.clone();
    let entry = host.record(Undo::Unclaim { path: place.clone() })?;
    // Written under a name of the run's and then linked: nobody finds it without knowing whose it is, and only one link can be made.
    let own = place.with_extension(host.run());
    let made = write(&own, host.run()).and_then(|()| fs::hard_link(&own, &place)).and_then(|()| fs::remove_file(&own));
    match made {
        Ok(()) => Ok(place),
        Err(error) => {
            host.put_back(entry)?;
            let text = read(&place).unwrap_or_default();
            let raced = error.kind() == ErrorKind::AlreadyExists;
            Err(if raced { taken(what, &place, &text) } else { HostError::io("make", &place)(error) })
        }
    }
}

/// An error when another run than `own` works on what is told from others by `what`. Nothing is claimed.
///
/// # Errors
/// When it does, or was killed and has not given it back.
pub fn not_taken(what: &Path, own: Option<&Host>) -> Result<(), HostError> {
    // As who claims a server has it.
    let what = what.canonicalize().unwrap_or_else(|_| what.to_owned());
    claimed(&what, &places(&what), own.map(Host::run)).map(drop)
}

/// Whether any run has claimed anything on this machine: a short look, before longer ones.
#[must_use]
pub fn anybody_works() -> bool {
    let is_claim = |entry: &fs::DirEntry| entry.file_name().as_encoded_bytes().starts_with(NAME.as_bytes());
    FOLDERS
        .iter()
        .filter_map(|folder| fs::read_dir(folder).ok())
        .any(|folder| folder.flatten().any(|entry| is_claim(&entry)))
}

/// Where the claim may lie.
fn places(what: &Path) -> [PathBuf; 2] {
    let (hash, _) = mark(what.as_os_str().as_encoded_bytes());
    FOLDERS.map(|folder| Path::new(folder).join(format!("{NAME}{hash:016x}")))
}

/// The claim of the run `own`, if there is one; an error when there is another's.
fn claimed<'a>(what: &Path, places: &'a [PathBuf], own: Option<&str>) -> Result<Option<&'a PathBuf>, HostError> {
    for place in places {
        match read(place) {
            Some(text) if own.is_some() && text.lines().next() == own => return Ok(Some(place)),
            Some(text) => return Err(taken(what, place, &text)),
            None => {}
        }
    }
    Ok(None)
}

/// The run, and the process that carries it out.
fn write(own: &Path, run: &str) -> io::Result<()> {
    let pid = std::process::id();
    let start = Identity::of(pid).map_or(0, |identity| identity.start_time);
    // In a folder of everybody's, a link of that name may lead anywhere.
    let mut file = OpenOptions::new().write(true).create_new(true).open(own)?;
    // Whatever the umask: everybody who would load the server reads it.
    file.set_permissions(fs::Permissions::from_mode(0o644))?;
    writeln!(file, "{run}\n{pid}\n{start}")
}

/// What a claim says. Something else of that name, which anybody could have put into a folder of everybody's, is none.
fn read(place: &Path) -> Option<String> {
    let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW).bits();
    let file = OpenOptions::new().read(true).custom_flags(i32::try_from(flags).ok()?).open(place).ok()?;
    file.metadata().ok().filter(fs::Metadata::is_file)?;
    let mut text = String::new();
    file.take(LONGEST).read_to_string(&mut text).ok()?;
    Some(text)
}

fn in_memory(folder: &str) -> bool {
    let mounts = mounts();
    let holds = mounts.iter().filter(|mount| Path::new(folder).starts_with(&mount.point));
    // The deepest, and of those in one place the last.
    let mount = holds.max_by_key(|mount| mount.point.components().count());
    mount.is_some_and(|mount| IN_MEMORY.contains(&mount.kind.as_str()))
}

fn taken(what: &Path, place: &Path, text: &str) -> HostError {
    let mut lines = text.lines();
    let run = lines.next().unwrap_or("unknown").to_owned();
    let pid = lines.next().and_then(|pid| pid.parse().ok());
    let start_time = lines.next().and_then(|start| start.parse().ok());
    let alive = match (pid, start_time) {
        (Some(pid), Some(start_time)) => Identity { pid, start_time }.lives(),
        (Some(pid), None) => Identity::of(pid).is_some(),
        _ => false,
    };
    HostError::Taken { what: what.to_owned(), run, alive, place: place.to_owned() }
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
        write(&own, "r1").unwrap();
        let text = read(&own).unwrap();
        let said = |text: &str| taken(Path::new("/x"), &own, text).to_string();
        assert_eq!(said(&text), "the run r1 works on /x; let it end first");
        // The number of its process is another's by now.
        let reused = text.lines().take(2).map(|line| format!("{line}\n")).collect::<String>() + "1\n";
        assert!(
            said(&reused).starts_with("the run r1 was killed while it worked on /x; `webdyno restore` gives it back")
        );
        let pipe = dir.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        assert_eq!(read(&pipe), None);
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(dir.path().join("precious"), &link).unwrap();
        assert!(write(&link, "r1").is_err() && !dir.path().join("precious").exists());
    }
}
