//! A server that is there already, as a package installs it, in a folder of a test's own: what tests of runs about it need of any.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// For what takes milliseconds on a quiet machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A server that is there already. Dropping it stops it.
pub trait Own: Sized {
    /// Its kind in a plan.
    const KIND: &'static str;

    /// Lays it out in `folder`; `None` where the machine has none to copy. Nothing is started.
    fn new(folder: &Path) -> Option<Self>;

    /// The folder of its configuration.
    fn etc(&self) -> PathBuf;

    /// Its main file.
    fn main(&self) -> PathBuf;

    /// The port of its first site, which says `the first site` and keeps connections.
    fn port(&self) -> u16;

    /// The pid that it wrote down.
    fn pid(&self) -> Option<u32>;

    /// Starts it and waits until it listens.
    fn start(&self);

    /// Stops it, if it runs.
    fn stop(&self);

    /// The configuration as it is now.
    ///
    /// # Panics
    /// When it cannot be read.
    fn snapshot(&self) -> Snapshot {
        snapshot(&self.etc())
    }
}

/// What must be the same again: by path its mode, owner, group, time of change in nanoseconds, and content or target.
pub type Snapshot = BTreeMap<PathBuf, (u32, u32, u32, i128, Vec<u8>)>;

/// A folder and everything in it as it is now.
///
/// # Panics
/// When it cannot be read.
#[must_use]
pub fn snapshot(folder: &Path) -> Snapshot {
    let mut found = Snapshot::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten() {
            let path = entry.expect("an entry").path();
            // What goes while we look, because it is just being given back, is not there.
            let Some(facts) = facts(&path) else { continue };
            if path.is_dir() && !path.is_symlink() {
                folders.push(path.clone());
            }
            found.insert(path, facts);
        }
        found.extend(facts(&folder).map(|facts| (folder, facts)));
    }
    found
}

/// Waits for something that takes milliseconds on a quiet machine; `log` is shown when it does not come.
///
/// # Panics
/// When it does not.
pub fn eventually(what: &str, log: &Path, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !condition() {
        let log = fs::read_to_string(log).unwrap_or_default();
        assert!(Instant::now() < end, "not in {PATIENCE:?}: {what}\n{log}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// What of a configuration is not as it was, one sentence each.
#[must_use]
pub fn changed(before: &Snapshot, after: &Snapshot) -> Vec<String> {
    let gone =
        before.keys().filter(|path| !after.contains_key(*path)).map(|path| format!("{} is gone", path.display()));
    let other = after.iter().filter_map(|(path, now)| {
        let name = path.display();
        let Some(then) = before.get(path) else { return Some(format!("{name} is new")) };
        let what = if then.4 != now.4 { "content" } else { "mode, owner or time" };
        (then != now).then(|| {
            format!(
                "{name} has another {what}: {:?} {:?}",
                (then.0, then.1, then.2, then.3),
                (now.0, now.1, now.2, now.3)
            )
        })
    });
    gone.chain(other).collect()
}

/// A port that was free just now.
///
/// # Panics
/// When there is none.
#[must_use]
pub fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    listener.local_addr().expect("an address").port()
}

/// `None` for what is not there.
fn facts(path: &Path) -> Option<(u32, u32, u32, i128, Vec<u8>)> {
    let is_there = |error: std::io::Error| assert_eq!(error.kind(), ErrorKind::NotFound, "{}", path.display());
    let facts = path.symlink_metadata().map_err(is_there).ok()?;
    let content = if facts.is_symlink() {
        fs::read_link(path).map_err(is_there).ok()?.into_os_string().into_encoded_bytes()
    } else if facts.is_dir() {
        Vec::new()
    } else {
        fs::read(path).map_err(is_there).ok()?
    };
    let changed = i128::from(facts.mtime()) * 1_000_000_000 + i128::from(facts.mtime_nsec());
    Some((facts.mode(), facts.uid(), facts.gid(), changed, content))
}
