//! [`Host`]: what a run may change, and the promise that it is given back.
//!
//! It only puts the pieces in order: first the guardian, then the journal, then each entry before its change.

use crate::claim;
use crate::confine;
use crate::files::Borrowed;
use crate::folder;
use crate::guardian::Guardian;
use crate::journal::{Journal, Undo};
use crate::launch;
use crate::restore::prepare;
use crate::service::{Restart, Service};
use crate::stop::Stop;
use crate::swap;
use crate::sysctl::BorrowedSysctl;
use crate::undo::{PATIENCE, carry_out, tell, undo_all};
use crate::{Child, Group, HostError, Launch};
use model::plan::Confinement;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The machine, as far as one run changes it. Clones are handles to the same run; when the last one is dropped, or
/// [`Host::close`] is called, everything is given back.
#[derive(Debug, Clone)]
pub struct Host {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    exe: PathBuf,
    run: String,
    /// `None` once everything was given back.
    watched: Mutex<Option<Watched>>,
    folder: Mutex<Option<PathBuf>>,
}

#[derive(Debug)]
struct Watched {
    journal: Journal,
    guardian: Guardian,
}

/// A server of the machine's is to begin anew when its configuration was given back.
#[derive(Debug)]
#[must_use]
pub struct Due(u64);

impl Host {
    /// Starts a guardian for this run and begins its journal. What dead runs have left is for [`restore()`](crate::restore()) to put back.
    /// `exe` is this program, which is run again as guardian and launcher; `run` becomes part of every name made, so it may hold only
    /// letters, digits, `-` and `_`.
    ///
    /// # Errors
    /// When `run` is under way already, or when no guardian can be started.
    pub fn open(exe: &Path, state_dir: &Path, run: &str) -> Result<Host, HostError> {
        check_name(run)?;
        prepare(state_dir)?;
        // First of all, so that not even an empty journal is left by a run that is killed while it begins.
        let guardian = Guardian::start(exe, &Journal::place(state_dir, run))?;
        let journal = match Journal::create(state_dir, run) {
            Ok(journal) => journal,
            Err(error) => {
                guardian.dismiss();
                return Err(error);
            }
        };
        let watched = Mutex::new(Some(Watched { journal, guardian }));
        let (exe, run) = (exe.to_owned(), run.to_owned());
        Ok(Host { shared: Arc::new(Shared { exe, run, watched, folder: Mutex::new(None) }) })
    }

    /// The run's private folder, made when first asked for: below `$TMPDIR` or `/tmp`, passable for the server's user (0711).
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn temporary_dir(&self) -> Result<PathBuf, HostError> {
        let mut known = locked(&self.shared.folder);
        if known.is_none() {
            *known = Some(folder::make(self)?);
        }
        Ok(known.clone().expect("made above"))
    }

    /// Adds `bytes` of swap in a temporary file on a real disk. Needs root.
    ///
    /// # Errors
    /// When the kernel, the file systems or the free space do not allow it.
    pub fn make_swap(&self, bytes: u64) -> Result<(), HostError> {
        swap::make(self, bytes)
    }

    /// Empties the machine's swap areas: takes those that hold something out of use, and into use again as they were. Says how many bytes came
    /// back into memory. Needs root.
    ///
    /// # Errors
    /// When memory could not take what is in them, or the kernel refuses.
    pub fn reset_swap(&self) -> Result<u64, HostError> {
        swap::reset(self)
    }

    /// Makes a group that a server can be confined to.
    ///
    /// # Errors
    /// When this machine or user does not allow it, with how to; when a group of that name exists in this run.
    pub fn group(&self, name: &str, confine: &Confinement) -> Result<Group, HostError> {
        check_name(name)?;
        confine::create(self, name, confine)
    }

    /// Starts a server in its own session, inside `group` if there is one.
    ///
    /// # Errors
    /// When it cannot be executed, or may not be where or as asked for.
    pub fn spawn(&self, launch: &Launch, group: Option<&Group>) -> Result<Child, HostError> {
        launch::spawn(self, launch, group, None)
    }

    /// The same of a server that is asked to end by `stop`, also by whoever comes after a run that was killed.
    ///
    /// # Errors
    /// As [`Host::spawn`].
    pub fn spawn_with_stop(&self, launch: &Launch, group: Option<&Group>, stop: &Stop) -> Result<Child, HostError> {
        launch::spawn(self, launch, group, Some(stop))
    }

    /// A file of others, to be given other content: one of `contents`, or any when the file bears [`Host::own_name`].
    ///
    /// # Errors
    /// When it cannot be, or when another run works on it.
    pub fn borrow_file(&self, path: &Path, contents: Option<&[Vec<u8>]>) -> Result<Borrowed, HostError> {
        Borrowed::new(self, path, contents)
    }

    /// A setting of the kernel, by its name with dots, to be given one of `values`.
    ///
    /// # Errors
    /// When there is no such setting, this user may not change it, another run works on it, or the kernel would forget a second one over it.
    pub fn borrow_sysctl(&self, name: &str, values: &[String]) -> Result<BorrowedSysctl, HostError> {
        BorrowedSysctl::new(self, name, values)
    }

    /// What part of the name of a file of the run's own must be.
    #[must_use]
    pub fn own_name(&self) -> String {
        self.fresh_name()
    }

    /// Keeps other runs from what is told from others by `what`, such as a server by its main file; returns a file that is there until all was given back, and not
    /// after this boot.
    ///
    /// # Errors
    /// When another run works on it.
    pub fn claim(&self, what: &Path) -> Result<PathBuf, HostError> {
        claim::claim(self, what)
    }

    /// Keeps whoever would load it from the server of the main file `main`, where it takes connections, until all was given back.
    ///
    /// # Errors
    /// As [`Host::claim`].
    pub fn claim_door(&self, at: SocketAddr, main: &Path) -> Result<(), HostError> {
        claim::claim_door(self, at, main)
    }

    /// Runs a command that has somebody read changed files; it will be run once more when they were given back.
    ///
    /// # Errors
    /// When it fails.
    pub fn tell(&self, command: &[String]) -> Result<(), HostError> {
        let again = |unproven| Undo::Tell { command: command.to_vec(), unproven };
        let tell = || tell(command).map(|_| ()).map_err(HostError::Service);
        if self.is_pending(&again(false)) {
            return tell();
        }
        let first = self.record(again(true))?;
        tell()?;
        self.record(again(false))?;
        self.forget(first)
    }

    /// Has a server of the machine's begin anew; it will once more, as thoroughly, when its configuration was given back.
    ///
    /// # Errors
    /// When it does not run afterwards.
    pub fn restart(&self, service: &Service, how: Restart) -> Result<(), HostError> {
        let _due = self.will_restart(service, how)?;
        service.restart(how).map_err(HostError::Service)
    }

    /// Has a server of the machine's begin anew once its configuration was given back, whoever has it read another one until then: to be
    /// called before the first change of it. Returns what [`Host::will_not_restart`] takes, unless it was to begin anew already.
    ///
    /// # Errors
    /// When it cannot be remembered.
    pub fn will_restart(&self, service: &Service, how: Restart) -> Result<Option<Due>, HostError> {
        let again = |how| Undo::Restart { service: Box::new(service.clone()), how };
        if self.is_pending(&again(Restart::Full)) || self.is_pending(&again(how)) {
            return Ok(None);
        }
        let weaker = self.pending(&again(Restart::Graceful));
        let id = self.record(again(how))?;
        let Some(weaker) = weaker else { return Ok(Some(Due(id))) };
        self.forget(weaker)?;
        Ok(None)
    }

    /// Nothing of its configuration was changed after all: a server that is not to begin anew cannot fail to, as it would on a full disk.
    ///
    /// # Errors
    /// When it cannot be remembered.
    pub fn will_not_restart(&self, due: Option<Due>) -> Result<(), HostError> {
        due.map_or(Ok(()), |Due(id)| self.forget(id))
    }

    /// Whether the guardian lives. Without it the run can go on; should it be killed, `webdyno restore` is needed.
    #[must_use]
    pub fn is_guarded(&self) -> bool {
        locked(&self.shared.watched).as_mut().is_some_and(|watched| watched.guardian.is_alive())
    }

    /// Gives everything back, newest first, and sends the guardian home. What fails is left to the guardian, which goes on trying
    /// for a minute, and then to `webdyno restore`.
    ///
    /// # Errors
    /// When something could not be given back, with all of it; or when it was closed before.
    pub fn close(self) -> Result<(), HostError> {
        self.shared.close()
    }

    /// This program.
    pub(crate) fn exe(&self) -> &Path {
        &self.shared.exe
    }

    /// Identifier of the run.
    pub(crate) fn run(&self) -> &str {
        &self.shared.run
    }

    /// A name of the run's that nobody can have taken before.
    pub(crate) fn fresh_name(&self) -> String {
        folder::fresh_name(self.run())
    }

    fn is_pending(&self, undo: &Undo) -> bool {
        self.pending(undo).is_some()
    }

    /// The number of a change that is not undone yet.
    fn pending(&self, undo: &Undo) -> Option<u64> {
        let watched = locked(&self.shared.watched);
        let pending = &watched.as_ref()?.journal.replay().pending;
        pending.iter().find(|(_, other)| *other == undo).map(|(id, _)| *id)
    }

    /// Leaves a change as it is: another entry undoes it.
    pub(crate) fn forget(&self, id: u64) -> Result<(), HostError> {
        locked(&self.shared.watched).as_mut().map_or(Ok(()), |watched| watched.journal.done(id))
    }

    /// Remembers how to undo a change that is about to be made; returns its number.
    pub(crate) fn record(&self, undo: Undo) -> Result<u64, HostError> {
        locked(&self.shared.watched).as_mut().ok_or(HostError::Closed)?.journal.record(undo)
    }

    /// Remembers more on how to undo a change that is not undone yet.
    pub(crate) fn amend(&self, id: u64, undo: Undo) -> Result<(), HostError> {
        locked(&self.shared.watched).as_mut().map_or(Ok(()), |watched| watched.journal.amend(id, undo))
    }

    /// Undoes one change; one that is undone already, or was by [`Host::close`], is fine.
    pub(crate) fn put_back(&self, id: u64) -> Result<(), HostError> {
        // The lock is not held while processes are waited for.
        let found = locked(&self.shared.watched).as_ref().and_then(|watched| {
            let replay = watched.journal.replay();
            replay.pending.get(&id).cloned().zip(replay.head.clone())
        });
        let Some((undo, head)) = found else { return Ok(()) };
        carry_out(&undo, &head, PATIENCE)
            .map_err(|why| HostError::NotPutBack { put_back: vec![], failed: vec![why] })?;
        locked(&self.shared.watched).as_mut().map_or(Ok(()), |watched| watched.journal.done(id))
    }
}

impl Shared {
    fn close(&self) -> Result<(), HostError> {
        let Some(Watched { mut journal, guardian }) = locked(&self.watched).take() else {
            return Err(HostError::Closed);
        };
        let outcome = undo_all(&mut journal, PATIENCE);
        if outcome.failed.is_empty() {
            guardian.dismiss();
            return journal.remove();
        }
        // The guardian waits for the journal's lock.
        drop(journal);
        guardian.take_over();
        Err(HostError::NotPutBack { put_back: outcome.put_back, failed: outcome.failed })
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // Closed before, or there is nobody left to tell; the guardian has what failed.
        let _ = self.close();
    }
}

fn check_name(name: &str) -> Result<(), HostError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !name.is_empty() && name.len() <= 100 && name.chars().all(plain) {
        Ok(())
    } else {
        Err(HostError::Name(name.to_owned()))
    }
}

/// A panic elsewhere must not keep anything from being given back.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
