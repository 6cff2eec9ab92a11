//! Where journals lie, and what is done about those whose run and guardian were both killed.

use crate::HostError;
use crate::journal::{ENDING, Journal, Locked};
use crate::undo::{PATIENCE, undo_all};
use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Between two looks at a journal that is held.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// The folder for journals: `/var/lib/webdyno` for root, else `$XDG_STATE_HOME/webdyno`, else `~/.local/state/webdyno`. Each is on a disk:
/// a swap file survives a crash of the machine, so the journal that names it must. Only who has no home gets `/tmp/webdyno-UID`.
#[must_use]
pub fn state_dir() -> PathBuf {
    let user = rustix::process::geteuid();
    if user.is_root() {
        return "/var/lib/webdyno".into();
    }
    state_home(|name| std::env::var_os(name))
        .map_or_else(|| format!("/tmp/webdyno-{}", user.as_raw()).into(), |home| home.join("webdyno"))
}

/// Undoes the journals in `state_dir` whose run is dead and leaves those of living runs and working guardians alone. Each returned
/// sentence tells of one thing that was put back.
///
/// # Errors
/// [`HostError::NotPutBack`] when something could not be put back; it tells what could as well, and no later run needs to wait for it.
/// Another one when the folder is not fit to be obeyed.
pub fn restore(state_dir: &Path) -> Result<Vec<String>, HostError> {
    let (mut put_back, mut failed) = (vec![], vec![]);
    for path in journals(state_dir)? {
        // One that cannot be read or deleted keeps none of the others from being undone.
        let mut journal = match take_over(&path, PATIENCE) {
            Ok(Some(journal)) => journal,
            Ok(None) => continue,
            Err(error) => {
                failed.push(error.to_string());
                continue;
            }
        };
        let outcome = undo_all(&mut journal, PATIENCE);
        if outcome.failed.is_empty() {
            failed.extend(journal.remove().err().map(|error| error.to_string()));
        }
        put_back.extend(outcome.put_back);
        failed.extend(outcome.failed);
    }
    if failed.is_empty() { Ok(put_back) } else { Err(HostError::NotPutBack { put_back, failed }) }
}

/// The journal of a dead run. One that somebody holds although its owner is dead is waited for: its guardian is at work, or a process that
/// the owner was just about to start has not become another program yet, and nobody would come after it.
fn take_over(path: &Path, patience: Duration) -> Result<Option<Journal>, HostError> {
    let deadline = Instant::now() + patience;
    loop {
        let journal = Journal::take_over(path, Locked::Leave)?;
        if journal.is_some() || !path.exists() || Journal::owner_lives(path) {
            return Ok(journal);
        }
        if Instant::now() > deadline {
            let run = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            return Err(HostError::StillAtIt(run));
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// The journals in `state_dir`, which must be fit to be obeyed; none when there is no such folder.
pub(crate) fn journals(state_dir: &Path) -> Result<Vec<PathBuf>, HostError> {
    let entries = match fs::read_dir(state_dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(vec![]),
        entries => entries.map_err(HostError::io("list", state_dir))?,
    };
    check_owner(state_dir)?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == ENDING));
    paths.sort();
    Ok(paths)
}

/// Makes the folder for journals if need be.
pub(crate) fn prepare(state_dir: &Path) -> Result<(), HostError> {
    DirBuilder::new().recursive(true).mode(0o700).create(state_dir).map_err(HostError::io("create", state_dir))?;
    check_owner(state_dir)
}

/// Where a user keeps the state of programs. The XDG base directory specification: a relative path there is to be ignored.
fn state_home(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let absolute = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))
}

/// Journals are obeyed, so nobody else may write them: `/tmp/webdyno-1000` could have been made by anyone.
fn check_owner(state_dir: &Path) -> Result<(), HostError> {
    let found = fs::symlink_metadata(state_dir).map_err(HostError::io("read", state_dir))?;
    let own = found.uid() == rustix::process::geteuid().as_raw();
    if found.is_dir() && own && found.mode() & 0o022 == 0 {
        Ok(())
    } else {
        Err(HostError::StateDir(state_dir.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::Undo;
    use std::os::unix::fs::PermissionsExt;

    /// A state directory with the journal of a dead run that made `path`.
    fn left_behind(dir: &Path, run: &str, path: &Path) {
        let mut journal = Journal::create(dir, run).unwrap();
        journal.record(Undo::RemoveFile { path: path.to_owned() }).unwrap();
        journal.abandon();
    }

    #[test]
    fn the_dead_are_cleaned_up_after_and_the_living_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        ["webdyno-dead-1", "webdyno-alive-1"].iter().for_each(|name| fs::write(at(name), "").unwrap());
        left_behind(dir.path(), "dead", &at("webdyno-dead-1"));
        let mut alive = Journal::create(dir.path(), "alive").unwrap();
        alive.record(Undo::RemoveFile { path: at("webdyno-alive-1") }).unwrap();
        // Killed before it wrote its head.
        fs::write(at("young.journal"), "{\"head\":").unwrap();

        let expected = [format!("deleted the file {}", at("webdyno-dead-1").display())];
        assert_eq!(restore(dir.path()).unwrap(), expected);
        let names = |ending: &str| {
            let names =
                fs::read_dir(dir.path()).unwrap().flatten().map(|entry| entry.file_name().into_string().unwrap());
            names.filter(|name| name.ends_with(ending)).collect::<Vec<_>>()
        };
        assert_eq!((names(".journal"), names("-1")), (vec!["alive.journal".into()], vec!["webdyno-alive-1".into()]));
        assert_eq!(restore(dir.path()).unwrap(), [""; 0]);
        assert_eq!(restore(&at("nowhere")).unwrap(), [""; 0]);
    }

    #[test]
    fn a_journal_that_is_held_for_a_moment_after_its_owner_died_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let made = dir.path().join("webdyno-dead-1");
        fs::write(&made, "").unwrap();
        left_behind(dir.path(), "dead", &made);
        let path = dir.path().join("dead.journal");
        // Its owner is this test, which lives; nobody has begun when this one has.
        let text = fs::read_to_string(&path).unwrap();
        let start = crate::process::Identity::of(std::process::id()).unwrap().start_time;
        fs::write(&path, text.replace(&format!("\"start_time\":{start}"), "\"start_time\":1")).unwrap();
        let held = fs::File::open(&path).unwrap();
        rustix::fs::flock(&held, rustix::fs::FlockOperation::LockExclusive).unwrap();
        let impatient = take_over(&path, Duration::ZERO).unwrap_err().to_string();
        assert_eq!(impatient, "the guardian of the run dead is still at it");
        let restoring = std::thread::spawn({
            let dir = dir.path().to_owned();
            move || restore(&dir).unwrap()
        });
        // Whether it looks before or after, it finds what was left.
        drop(held);
        assert_eq!(restoring.join().unwrap(), [format!("deleted the file {}", made.display())]);
        assert!(!made.exists() && !path.exists());
    }

    #[test]
    fn what_cannot_be_put_back_keeps_its_journal() {
        let dir = tempfile::tempdir().unwrap();
        left_behind(dir.path(), "dead", Path::new("/tmp/precious"));
        let error = restore(dir.path()).unwrap_err().to_string();
        assert!(error.contains("/tmp/precious does not bear the name of the run dead"), "{error}");
        assert!(dir.path().join("dead.journal").exists());
    }

    #[test]
    fn one_bad_journal_keeps_none_of_the_others() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        // A folder can be opened by nobody, not even by root, as a file to write to.
        fs::create_dir(at("a.journal")).unwrap();
        for run in ["b", "c"] {
            let file = at(&format!("webdyno-{run}-1"));
            fs::write(&file, "").unwrap();
            left_behind(dir.path(), run, &file);
        }
        let HostError::NotPutBack { put_back, failed } = restore(dir.path()).unwrap_err() else {
            panic!("it tells both what was put back and what was not")
        };
        let deleted = |run: &str| format!("deleted the file {}", at(&format!("webdyno-{run}-1")).display());
        assert_eq!(put_back, [deleted("b"), deleted("c")]);
        assert_eq!(failed, [format!("cannot open {}: Is a directory (os error 21)", at("a.journal").display())]);
        assert!(!at("b.journal").exists() && !at("c.journal").exists());
    }

    #[test]
    fn journals_are_kept_on_a_disk() {
        let check = |variables: &[(&str, &str)], expected: Option<&str>| {
            let found = state_home(|name| variables.iter().find(|(n, _)| *n == name).map(|(_, v)| OsString::from(v)));
            assert_eq!(found, expected.map(PathBuf::from), "{variables:?}");
        };
        let home = ("HOME", "/home/k");
        check(&[home], Some("/home/k/.local/state"));
        check(&[home, ("XDG_STATE_HOME", "/state"), ("XDG_RUNTIME_DIR", "/run/user/1")], Some("/state"));
        check(&[home, ("XDG_STATE_HOME", "state")], Some("/home/k/.local/state"));
        check(&[home, ("XDG_STATE_HOME", "")], Some("/home/k/.local/state"));
        check(&[("HOME", "")], None);
        check(&[], None);
    }

    #[test]
    fn a_folder_others_can_write_to_is_not_obeyed() {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
        assert!(matches!(restore(dir.path()), Err(HostError::StateDir(_))));
        assert!(matches!(prepare(dir.path()), Err(HostError::StateDir(_))));
    }
}
