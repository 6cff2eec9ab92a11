//! One run at a time works on a server: a file that only one can make, in a folder that does not outlive this boot.
//!
//! It is made before anything is changed and removed after everything was given back, by whoever gives it back. What a run adds to the
//! server's configuration counts only as long as it is there, so that after a crash of the machine it counts no more.

use crate::HostError;
use crate::handle::Host;
use crate::journal::{Head, Undo};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// In memory, so that a boot empties them; the first for root.
const FOLDERS: [&str; 2] = ["/run", "/dev/shm"];

/// Makes the file for a server that is told from others by `what`, such as its main configuration file.
pub(crate) fn claim(host: &Host, what: &Path) -> Result<PathBuf, HostError> {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    let mark = what.as_os_str().as_encoded_bytes().iter().fold(0xcbf2_9ce4_8422_2325, step);
    let places = FOLDERS.map(|folder| Path::new(folder).join(format!("webdyno-in-place-{mark:016x}")));
    for place in &places {
        if let Ok(text) = fs::read_to_string(place) {
            return Err(taken(what, place, &text));
        }
    }
    let is_root = rustix::process::geteuid().is_root();
    let place = places[usize::from(!is_root)].clone();
    let entry = host.record(Undo::Unclaim { path: place.clone() })?;
    // Written under a name of the run's and then linked: nobody finds it without knowing whose it is, and only one link can be made.
    let own = place.with_extension(host.run());
    let made = fs::write(&own, format!("{}\n{}\n", host.run(), std::process::id()))
        .and_then(|()| fs::hard_link(&own, &place))
        .and_then(|()| fs::remove_file(&own));
    match made {
        Ok(()) => Ok(place),
        Err(error) => {
            host.put_back(entry)?;
            let text = fs::read_to_string(&place).unwrap_or_default();
            let raced = error.kind() == ErrorKind::AlreadyExists;
            Err(if raced { taken(what, &place, &text) } else { HostError::io("make", &place)(error) })
        }
    }
}

fn taken(what: &Path, place: &Path, text: &str) -> HostError {
    let mut lines = text.lines();
    let run = lines.next().unwrap_or("unknown").to_owned();
    let alive = lines.next().is_some_and(|pid| Path::new("/proc").join(pid).exists() && !pid.is_empty());
    HostError::ServerTaken { server: what.to_owned(), run, alive, place: place.to_owned() }
}

/// Removes it, if it is this run's.
pub(crate) fn unclaim(path: &Path, head: &Head) -> Result<Option<String>, String> {
    let failed = |error: std::io::Error| format!("cannot delete {}: {error}", path.display());
    match fs::remove_file(path.with_extension(&head.run)) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    if is_of(path, head) {
        fs::remove_file(path).map_err(failed)?;
    }
    // A file of ours that nobody has seen is no news.
    Ok(None)
}

fn is_of(path: &Path, head: &Head) -> bool {
    fs::read_to_string(path).is_ok_and(|text| text.lines().next() == Some(&head.run))
}
