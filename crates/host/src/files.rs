//! Files of others that a run puts other content in: php.ini, a pool of PHP-FPM, an Apache's drop-in.
//!
//! The file itself is never written to. It is linked under a second name, which keeps its bytes, owner, mode, times and attributes; then
//! another is laid over it, by a bind mount. Mounts end with the machine, so that a boot finds the file as it was. Where one is not allowed,
//! or not found by all, the other takes its place instead, by one rename, and giving back is one rename the other way. Who changes the file
//! meanwhile keeps the change.

mod over;

use crate::HostError;
use crate::claim::claim;
use crate::handle::Host;
use crate::journal::{Head, Undo};
use crate::undo::marker;
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_OMIT};
use serde::{Deserialize, Serialize};
use std::fs::{self, File, Metadata, OpenOptions};
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
    /// What lies over the file, whole from the first; `None` where nothing is to.
    #[serde(default)]
    over: Option<PathBuf>,
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
            // What the run itself has laid there takes the file's place, which is what this one gives back.
            let own = format!(".{}", marker(host.run()));
            let settle = || match over::take_off(&path, |name| name.starts_with(&own))? {
                Some(name) => fs::rename(folder.join(name), &path),
                None => Ok(()),
            };
            settle().map_err(HostError::io("replace", &path))?;
        }
        let lent = Lent {
            // No program that reads all of a folder by an ending of names takes one of these.
            kept: before.as_ref().map(|_| folder.join(format!(".{name}"))),
            fresh: folder.join(format!(".{name}-new")),
            over: contents.map(|_| folder.join(format!(".{name}-over"))),
            ours: contents.map(|contents| {
                // Where there was nothing, an empty file bears the mount.
                let empty = before.is_none().then(|| mark(b""));
                contents.iter().map(|content| mark(content)).chain(empty).collect()
            }),
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
        let path = &self.lent.path;
        self.check()?;
        let change = || {
            self.lent.uncover()?;
            self.lent.bring_back()?;
            content.map_or(Ok(()), |content| self.lay(&self.write(content)?))?;
            sync_folder(path)
        };
        change().map_err(HostError::io("write", path))
    }

    /// Whether what was put there would outlive the machine: it took the file's place, because nothing could be laid over that.
    #[must_use]
    pub fn outlives_the_machine(&self) -> bool {
        self.lent.is_replaced()
    }

    /// Whether nobody else has changed it.
    ///
    /// # Errors
    /// When somebody has.
    pub fn check(&self) -> Result<(), HostError> {
        let Lent { path, kept, .. } = &self.lent;
        match self.lent.now() {
            Ok(Now::Others) => Err(HostError::Changed(path.clone(), kept.as_ref().map(|_| aside(path, "before")))),
            // It comes back to its own place.
            Ok(Now::Missing) if kept.is_some() => Err(HostError::Changed(path.clone(), None)),
            Ok(_) => Ok(()),
            Err(error) => Err(HostError::io("read", path)(error)),
        }
    }

    /// Gives it back now.
    ///
    /// # Errors
    /// When that is not possible.
    pub fn give_back(self) -> Result<(), HostError> {
        self.host.put_back(self.entry)
    }

    fn write(&self, content: &[u8]) -> io::Result<File> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&self.lent.fresh)?;
        file.write_all(content)?;
        if let Some((user, group)) = self.owner {
            // By the file and not by its name, which the folder's owner may have given to another meanwhile.
            fchown(&file, Some(user), Some(group))?;
        }
        file.set_permissions(fs::Permissions::from_mode(self.mode))?;
        file.sync_all()?;
        Ok(file)
    }

    /// Makes everybody find what was written under the file's name.
    fn lay(&self, written: &File) -> io::Result<()> {
        let Lent { path, fresh, over, .. } = &self.lent;
        let Some(over) = over else { return fs::rename(fresh, path) };
        fs::rename(fresh, over)?;
        self.lent.cover(over, written).or_else(|_| fs::rename(over, path))
    }
}

impl Lent {
    /// Whether the run's content has the file's own place, and does not lie over it.
    fn is_replaced(&self) -> bool {
        let is_laid = self.over.as_ref().is_some_and(|over| over.symlink_metadata().is_ok());
        !is_laid && matches!(self.now(), Ok(Now::Ours))
    }

    /// Whether there is anything to give back yet, or still.
    fn is_there(&self) -> bool {
        self.kept.as_ref().is_none_or(|kept| kept.symlink_metadata().is_ok())
    }

    /// Lays `over`, which is open as `written`, over the file.
    fn cover(&self, over: &Path, written: &File) -> io::Result<()> {
        let Some(kept) = &self.kept else {
            match File::create_new(&self.path) {
                // It has borne another.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                made => made?.set_permissions(fs::Permissions::from_mode(0o644))?,
            }
            return over::cover(&self.path, over, written, |below| below.is_file() && below.len() == 0);
        };
        // What took the file's place would come back instead of the file.
        let before = fs::symlink_metadata(kept)?;
        over::cover(&self.path, over, written, |below| is_same(below, &before))
    }

    /// Takes off what lies over the file, and says whether something did.
    fn take_off(&self) -> io::Result<bool> {
        let Some(over) = &self.over else { return Ok(false) };
        Ok(over::take_off(&self.path, |name| over.ends_with(name))?.is_some())
    }

    /// Has what lies over the file take its place instead. That takes it off for all others, too, who may have got it by mounts of their own.
    fn uncover(&self) -> io::Result<()> {
        let Some(over) = &self.over else { return Ok(()) };
        if self.take_off()? || self.now()? != Now::Others {
            return missing_is_fine(fs::rename(over, &self.path));
        }
        missing_is_fine(fs::remove_file(over))
    }

    /// Puts there what was there before, and keeps its second name.
    fn bring_back(&self) -> io::Result<()> {
        let Lent { path, kept, fresh, .. } = self;
        missing_is_fine(fs::remove_file(fresh))?;
        match kept {
            Some(_) if self.now()? == Now::Before => Ok(()),
            Some(kept) => fs::hard_link(kept, fresh).and_then(|()| fs::rename(fresh, path)),
            None => missing_is_fine(fs::remove_file(path)),
        }
    }

    /// What somebody else wrote into what lay over the file, when the machine's end took it off before anybody looked.
    fn written_into(&self) -> Option<&Path> {
        let (over, ours) = (self.over.as_ref()?, self.ours.as_ref()?);
        let is_ours = |content: Vec<u8>| ours.contains(&mark(&content));
        let is_on_top =
            || fs::metadata(over).is_ok_and(|over| fs::metadata(&self.path).is_ok_and(|top| is_same(&over, &top)));
        (!fs::read(over).map_or(true, is_ours) && !is_on_top()).then_some(over)
    }

    fn now(&self) -> io::Result<Now> {
        let facts = match fs::symlink_metadata(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Now::Missing),
            facts => facts?,
        };
        let before = self.kept.as_ref().and_then(|kept| fs::symlink_metadata(kept).ok());
        if before.is_some_and(|before| is_same(&before, &facts)) {
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
    for own in lent.kept.iter().chain([&lent.fresh]).chain(&lent.over) {
        bears_the_name(own, head)?;
    }
    if lent.ours.is_none() {
        bears_the_name(&lent.path, head)?;
    }
    let before = lent.now().map_err(failed)?;
    let mut kept_beside = None;
    // Not before it was linked: what lies there then is another's.
    if lent.is_there() {
        if let Some(edited) = lent.written_into() {
            let beside = aside(&lent.path, "edited");
            fs::rename(edited, &beside).map_err(failed)?;
            let (name, beside) = (lent.path.display(), beside.display());
            kept_beside = Some(format!("what somebody else wrote to {name} meanwhile is in {beside}"));
        }
        lent.uncover().map_err(failed)?;
    }
    missing_is_fine(fs::remove_file(&lent.fresh)).map_err(failed)?;
    let name = lent.path.display();
    // A boot may have done so.
    let gave_back = || (before != Now::Before).then(|| format!("gave back the file {name}"));
    let said = match (lent.now().map_err(failed)?, &lent.kept) {
        // Given back before, or never linked.
        _ if !lent.is_there() => None,
        (Now::Before, Some(kept)) => {
            fs::remove_file(kept).map_err(failed)?;
            gave_back()
        }
        (Now::Ours | Now::Missing, Some(kept)) => {
            fs::rename(kept, &lent.path).map_err(failed)?;
            gave_back()
        }
        (Now::Others, Some(kept)) => {
            let aside = aside(&lent.path, "before");
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
    let said: Vec<String> = kept_beside.into_iter().chain(said).collect();
    Ok((!said.is_empty()).then(|| said.join("; ")))
}

fn is_same(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// A name beside a file for another content of it, that nothing has yet.
fn aside(path: &Path, what: &str) -> PathBuf {
    let plain = format!("{}.{what}-webdyno", path.display());
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
    if lent.written_into().is_some() {
        return Some(format!("would keep beside {name} what somebody else wrote to it meanwhile"));
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
mod tests;
