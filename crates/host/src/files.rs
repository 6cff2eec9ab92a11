//! Files of others that a run puts other content in: php.ini, a pool of PHP-FPM, an Apache's drop-in.
//!
//! The file itself is never written to. It is linked under a second name, which keeps its bytes, owner, mode, times and attributes; then
//! another file takes its place, by one rename. Giving back is one rename the other way. Who changes the file meanwhile keeps the change.

use crate::HostError;
use crate::claim::claim;
use crate::handle::Host;
use crate::journal::{Head, Undo};
use crate::undo::marker;
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_OMIT};
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

/// A file that a run may put other content in, as the journal knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Lent {
    path: PathBuf,
    /// The second name of what was there; `None` when there was nothing.
    kept: Option<PathBuf>,
    /// What new content is written to, before it takes the file's place.
    fresh: PathBuf,
    /// Marks of all contents that the run may put there; `None` for a file of the run's own name.
    ours: Option<Vec<Mark>>,
    /// When the folder was changed last, in seconds and nanoseconds.
    folder_changed: (i64, i64),
}

/// What tells contents apart.
type Mark = (u64, u64);

/// A file that can be given other content, and back its own. It gets back its own when the run ends, however it ends.
#[derive(Debug)]
pub struct Borrowed {
    lent: Lent,
    /// Mode and owner for new content.
    mode: u32,
    owner: Option<(u32, u32)>,
    host: Host,
    entry: u64,
}

/// Whose content a file has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Now {
    /// What was there before.
    Before,
    /// What the run put there.
    Ours,
    /// Nothing.
    Missing,
    /// What somebody else put there.
    Others,
}

impl Borrowed {
    /// Keeps other runs from the file, journals and links it. `contents` are all that it will get; `None` only for a file of the run's own name.
    pub(crate) fn new(host: &Host, path: &Path, contents: Option<&[Vec<u8>]>) -> Result<Borrowed, HostError> {
        let path = match path.canonicalize() {
            Err(error) if error.kind() == ErrorKind::NotFound => path.to_owned(),
            found => found.map_err(HostError::io("find", path))?,
        };
        let folder = path.parent().unwrap_or(Path::new("/"));
        let facts = fs::metadata(folder).map_err(HostError::io("read", folder))?;
        let name = host.fresh_name();
        let before = match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            found => Some(found.map_err(HostError::io("read", &path))?),
        };
        if before.as_ref().is_some_and(|before| !before.is_file()) {
            return Err(HostError::io("replace", &path)(io::Error::other("it is no file")));
        }
        if contents.is_some() {
            // Two runs would take each other's content for the file's own.
            claim(host, &path)?;
        }
        let lent = Lent {
            // No program that reads all of a folder by an ending of names takes one of these two.
            kept: before.as_ref().map(|_| folder.join(format!(".{name}"))),
            fresh: folder.join(format!(".{name}-new")),
            ours: contents.map(|contents| contents.iter().map(|content| mark(content)).collect()),
            folder_changed: (facts.mtime(), facts.mtime_nsec()),
            path,
        };
        let entry = host.record(Undo::GiveBack(lent.clone()))?;
        let made = lent.kept.as_ref().map_or(Ok(()), |kept| fs::hard_link(&lent.path, kept));
        if let Err(error) = made {
            host.put_back(entry)?;
            return Err(HostError::io("keep a second name of", &lent.path)(error));
        }
        let mode = before.as_ref().map_or(0o644, |before| before.mode() & 0o7777);
        let owner = before.as_ref().map(|before| (before.uid(), before.gid()));
        Ok(Borrowed { lent, mode, owner, host: host.clone(), entry })
    }

    /// Where it lies.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.lent.path
    }

    /// The same for content that only `owner` (user and group) may read, or, without one, whoever runs this.
    #[must_use]
    pub fn private_to(self, owner: Option<(u32, u32)>) -> Borrowed {
        Borrowed { mode: 0o600, owner: owner.or(self.owner), ..self }
    }

    /// Puts content there, or what was there before.
    ///
    /// # Errors
    /// When it cannot be written, or when somebody else has changed the file.
    pub fn put(&self, content: Option<&[u8]>) -> Result<(), HostError> {
        let Lent { path, fresh, kept, .. } = &self.lent;
        self.check()?;
        let failed = HostError::io("write", path);
        let done = match (content, kept) {
            (Some(content), _) => self.write(content).and_then(|()| fs::rename(fresh, path)),
            (None, Some(_)) if self.lent.now().is_ok_and(|now| now == Now::Before) => Ok(()),
            (None, Some(kept)) => fs::hard_link(kept, fresh).and_then(|()| fs::rename(fresh, path)),
            (None, None) => missing_is_fine(fs::remove_file(path)),
        };
        done.and_then(|()| sync_folder(path)).map_err(failed)
    }

    /// Whether nobody else has changed it.
    ///
    /// # Errors
    /// When somebody has.
    pub fn check(&self) -> Result<(), HostError> {
        match self.lent.now() {
            Ok(Now::Others) => Err(HostError::Changed(self.lent.path.clone())),
            Ok(Now::Missing) if self.lent.kept.is_some() => Err(HostError::Changed(self.lent.path.clone())),
            Ok(_) => Ok(()),
            Err(error) => Err(HostError::io("read", &self.lent.path)(error)),
        }
    }

    /// Gives it back now.
    ///
    /// # Errors
    /// When that is not possible.
    pub fn give_back(self) -> Result<(), HostError> {
        self.host.put_back(self.entry)
    }

    fn write(&self, content: &[u8]) -> io::Result<()> {
        let fresh = &self.lent.fresh;
        missing_is_fine(fs::remove_file(fresh))?;
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(fresh)?;
        file.write_all(content)?;
        if let Some((user, group)) = self.owner {
            // By the file and not by its name, which the folder's owner may have given to another meanwhile.
            fchown(&file, Some(user), Some(group))?;
        }
        file.set_permissions(fs::Permissions::from_mode(self.mode))?;
        file.sync_all()
    }
}

impl Lent {
    /// Whether there is anything to give back yet, or still.
    fn is_there(&self) -> bool {
        self.kept.as_ref().is_none_or(|kept| kept.symlink_metadata().is_ok())
    }

    fn now(&self) -> io::Result<Now> {
        let facts = match fs::symlink_metadata(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Now::Missing),
            facts => facts?,
        };
        let before = self.kept.as_ref().and_then(|kept| fs::symlink_metadata(kept).ok());
        if before.is_some_and(|before| (before.dev(), before.ino()) == (facts.dev(), facts.ino())) {
            return Ok(Now::Before);
        }
        let Some(ours) = &self.ours else { return Ok(Now::Ours) };
        let content = fs::read(&self.path)?;
        if ours.contains(&mark(&content)) {
            return Ok(Now::Ours);
        }
        // Whoever keeps files as they should be writes the same anew.
        let same = self.kept.as_ref().is_some_and(|kept| fs::read(kept).is_ok_and(|before| before == content));
        Ok(if same { Now::Before } else { Now::Others })
    }
}

/// Gives a file back. `Ok(None)` when there was nothing left to do.
pub(crate) fn give_back(lent: &Lent, head: &Head) -> Result<Option<String>, String> {
    let failed = |error: io::Error| format!("cannot give back {}: {error}", lent.path.display());
    for own in lent.kept.iter().chain([&lent.fresh]) {
        bears_the_name(own, head)?;
    }
    if lent.ours.is_none() {
        bears_the_name(&lent.path, head)?;
    }
    missing_is_fine(fs::remove_file(&lent.fresh)).map_err(failed)?;
    let name = lent.path.display();
    let said = match (lent.now().map_err(failed)?, &lent.kept) {
        // Given back before, or never linked.
        _ if !lent.is_there() => None,
        (Now::Before, Some(kept)) => {
            fs::remove_file(kept).map_err(failed)?;
            None
        }
        (Now::Ours | Now::Missing, Some(kept)) => {
            fs::rename(kept, &lent.path).map_err(failed)?;
            Some(format!("gave back the file {name}"))
        }
        (Now::Others, Some(kept)) => {
            let aside = aside(&lent.path);
            fs::rename(kept, &aside).map_err(failed)?;
            let aside = aside.display();
            Some(format!("{name} was changed by somebody else and stays so; what it was before is in {aside}"))
        }
        (Now::Ours, None) => {
            fs::remove_file(&lent.path).map_err(failed)?;
            Some(format!("deleted the file {name}"))
        }
        (Now::Others, None) => Some(format!("{name} was changed by somebody else and stays")),
        (Now::Before | Now::Missing, None) => None,
    };
    sync_folder(&lent.path).map_err(failed)?;
    // Only the folder's owner and root may; the file itself is back.
    let _ = set_folder_time(lent);
    Ok(said)
}

/// A name beside a file for what it was before, that nothing has yet.
fn aside(path: &Path) -> PathBuf {
    let plain = format!("{}.before-webdyno", path.display());
    let numbered = (2..).map(|n| format!("{plain}-{n}"));
    let free = |name: &String| Path::new(name).symlink_metadata().is_err();
    std::iter::once(plain.clone()).chain(numbered).find(free).unwrap_or(plain).into()
}

/// What giving it back would do.
pub(crate) fn foresee(lent: &Lent) -> Option<String> {
    let name = lent.path.display();
    if !lent.is_there() {
        return None;
    }
    match (lent.now().ok()?, &lent.kept) {
        (Now::Ours | Now::Missing, Some(_)) => Some(format!("would give back the file {name}")),
        (Now::Ours, None) => Some(format!("would delete the file {name}")),
        (Now::Others, _) => Some(format!("would leave {name}, which somebody else has changed")),
        _ => None,
    }
}

fn set_folder_time(lent: &Lent) -> io::Result<()> {
    let Some(folder) = lent.path.parent() else { return Ok(()) };
    let (seconds, nanoseconds) = lent.folder_changed;
    let omit = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
    let changed = Timespec { tv_sec: seconds, tv_nsec: nanoseconds };
    let times = Timestamps { last_access: omit, last_modification: changed };
    Ok(rustix::fs::utimensat(CWD, folder, &times, AtFlags::empty())?)
}

fn sync_folder(path: &Path) -> io::Result<()> {
    let Some(folder) = path.parent() else { return Ok(()) };
    match File::open(folder) {
        // It may be written to by those who may not list it.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            rustix::fs::sync();
            Ok(())
        }
        // With all that was in it.
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        folder => folder?.sync_all(),
    }
}

fn missing_is_fine(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

/// A journal is not trusted with other people's files.
fn bears_the_name(path: &Path, head: &Head) -> Result<(), String> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if name.contains(&marker(&head.run)) {
        return Ok(());
    }
    Err(format!("{} does not bear the name of the run {} and was left alone", path.display(), head.run))
}

/// FNV-1a and the length: not against an adversary, but against having put something else there ourselves.
pub(crate) fn mark(content: &[u8]) -> Mark {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    (content.iter().fold(0xcbf2_9ce4_8422_2325, step), content.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Identity;

    fn head() -> Head {
        Head { run: "r1".into(), owner: Identity { pid: 1, start_time: 1 }, boot: String::new() }
    }

    fn lent(folder: &Path, existed: bool, ours: Option<&[&str]>) -> Lent {
        let facts = fs::metadata(folder).unwrap();
        Lent {
            path: folder.join(if ours.is_some() { "php.ini" } else { "zz-webdyno-r1-x.conf" }),
            kept: existed.then(|| folder.join(".webdyno-r1-x")),
            fresh: folder.join(".webdyno-r1-x-new"),
            ours: ours.map(|ours| ours.iter().map(|content| mark(content.as_bytes())).collect()),
            folder_changed: (facts.mtime(), facts.mtime_nsec()),
        }
    }

    fn facts(path: &Path) -> (u64, u32, i64, i64, String) {
        let facts = fs::metadata(path).unwrap();
        (facts.ino(), facts.mode(), facts.mtime(), facts.mtime_nsec(), fs::read_to_string(path).unwrap())
    }

    /// A file with something in it, lent at this step of a change, and what giving it back says.
    fn check(step: impl Fn(&Lent), said: Option<&str>, stays: &str) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("php.ini");
        fs::write(&path, "before").unwrap();
        let before = facts(&path);
        let lent = lent(dir.path(), true, Some(&["ours", "also ours"]));
        let folder = (lent.folder_changed.0, lent.folder_changed.1);
        step(&lent);
        let foreseen = foresee(&lent);
        for expected in [said.map(str::to_owned), None] {
            let got =
                give_back(&lent, &head()).unwrap().map(|said| said.replace(&*dir.path().to_string_lossy(), "DIR"));
            assert_eq!(got, expected, "and nothing the second time");
        }
        assert_eq!(foreseen.is_some(), said.is_some());
        assert_eq!(fs::read_to_string(&path).unwrap(), stays);
        if stays == "before" {
            assert_eq!(facts(&path), before);
            assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left");
        }
        let now = fs::metadata(dir.path()).unwrap();
        assert_eq!((now.mtime(), now.mtime_nsec()), folder);
    }

    #[test]
    fn every_step_of_a_change_is_given_back() {
        let link = |lent: &Lent| fs::hard_link(&lent.path, lent.kept.as_ref().unwrap()).unwrap();
        let put = |lent: &Lent, content: &str| {
            fs::write(&lent.fresh, content).unwrap();
            fs::rename(&lent.fresh, &lent.path).unwrap();
        };
        let back = Some("gave back the file DIR/php.ini");
        check(|_| {}, None, "before");
        check(link, None, "before");
        check(
            |lent| {
                link(lent);
                fs::write(&lent.fresh, "ou").unwrap();
            },
            None,
            "before",
        );
        check(
            |lent| {
                link(lent);
                put(lent, "ours");
            },
            back,
            "before",
        );
        check(
            |lent| {
                link(lent);
                put(lent, "also ours");
                fs::write(&lent.fresh, "x").unwrap();
            },
            back,
            "before",
        );
        check(
            |lent| {
                link(lent);
                fs::remove_file(&lent.path).unwrap();
            },
            back,
            "before",
        );
        let others = "DIR/php.ini was changed by somebody else and stays so; what it was before is in DIR/php.ini.before-webdyno";
        check(
            |lent| {
                link(lent);
                put(lent, "ours, and more");
            },
            Some(others),
            "ours, and more",
        );
        let numbered = format!("{others}-2");
        check(
            |lent| {
                link(lent);
                fs::write(format!("{}.before-webdyno", lent.path.display()), "of an earlier accident").unwrap();
                put(lent, "ours, and more");
            },
            Some(&numbered),
            "ours, and more",
        );
    }

    #[test]
    fn the_same_written_anew_is_nobodys_change() {
        let dir = tempfile::tempdir().unwrap();
        let lent = lent(dir.path(), true, Some(&["ours"]));
        let kept = lent.kept.clone().unwrap();
        fs::write(&kept, "before").unwrap();
        fs::write(&lent.path, "before").unwrap();
        assert_eq!(give_back(&lent, &head()), Ok(None));
        assert!(!kept.exists() && fs::read_to_string(&lent.path).unwrap() == "before");
    }

    #[test]
    fn a_file_in_a_folder_of_somebody_elses_is_given_back() {
        if !rustix::process::geteuid().is_root() {
            return testkit::skip::not_here("no root");
        }
        let dir = tempfile::tempdir().unwrap();
        let lent = lent(dir.path(), true, Some(&["ours"]));
        let kept = lent.kept.clone().unwrap();
        for (path, text) in [(&kept, "before"), (&lent.path, "ours")] {
            fs::write(path, text).unwrap();
            std::os::unix::fs::chown(path, Some(65_534), Some(65_534)).unwrap();
        }
        // Everybody may write to it, and only root may list it or set its time.
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o733)).unwrap();
        let given_back = std::thread::scope(|scope| {
            let as_nobody = || {
                let nobody = rustix::process::Uid::from_raw(65_534);
                rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
                give_back(&lent, &head())
            };
            scope.spawn(as_nobody).join().unwrap()
        });
        assert_eq!(given_back, Ok(Some(format!("gave back the file {}", lent.path.display()))));
        assert_eq!(fs::read_to_string(&lent.path).unwrap(), "before");
    }

    #[test]
    fn a_file_that_was_not_there_goes_again() {
        let dir = tempfile::tempdir().unwrap();
        let dropped = lent(dir.path(), false, None);
        assert_eq!(give_back(&dropped, &head()).unwrap(), None);
        fs::write(&dropped.path, "whatever").unwrap();
        assert!(give_back(&dropped, &head()).unwrap().unwrap().starts_with("deleted the file "));
        let other = Lent { path: dir.path().join("precious"), ..dropped };
        fs::write(&other.path, "").unwrap();
        assert!(give_back(&other, &head()).unwrap_err().contains("does not bear the name"));
        let new = lent(dir.path(), false, Some(&["ours"]));
        fs::write(&new.path, "not ours").unwrap();
        assert!(give_back(&new, &head()).unwrap().unwrap().ends_with("was changed by somebody else and stays"));
        fs::write(&new.path, "ours").unwrap();
        assert!(give_back(&new, &head()).unwrap().unwrap().starts_with("deleted the file "));
    }
}
