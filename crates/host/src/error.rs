//! What the machine can refuse, each as one sentence.

use std::io;
use std::path::{Path, PathBuf};

/// What delegates to users all that `[confine]` can limit.
const DELEGATE: &str = "Delegate=cpu cpuset io memory pids";

/// The environment refuses something.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// A file or folder cannot be used.
    #[error("cannot {what} {}: {source}{}", path.display(), want_of_room(source))]
    Io {
        /// What was tried.
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// A run or group has a name that cannot stand in a path.
    #[error("{0:?} cannot be a name here: use letters, digits, '-' and '_'")]
    Name(String),
    /// The folder for journals belongs to somebody else, who could make us delete things.
    #[error("{} must be a folder of this user that nobody else can write to: if it is yours and only webdyno's, chmod go-w it; else name another by WEBDYNO_STATE_DIR", .0.display())]
    StateDir(PathBuf),
    /// Another process runs under the same id.
    #[error("the run {run} is under way already, in process {pid}")]
    AlreadyRunning {
        /// Its id.
        run: String,
        /// The process.
        pid: u32,
    },
    /// The guardian did not come up.
    #[error(
        "the guardian process did not start: {0}; nothing was changed; if the machine is short of memory or CPU time, try again when it no longer is"
    )]
    Guardian(String),
    /// Root could do it, and this user cannot; the sentence says what.
    #[error("{0}: run webdyno as root")]
    NotRoot(String),
    /// A server cannot be confined here; the sentence says how to allow it.
    #[error("{0}")]
    NoConfinement(String),
    /// systemd leaves a controller to root.
    #[error(
        "a server's {what} cannot be limited by this user: systemd does not delegate the {controller} controller to them; as root, `systemctl edit \
         user@.service`, write [Service] and {DELEGATE} into it, and `systemctl restart user@{uid}` (which ends what runs there), or run webdyno as root"
    )]
    NotDelegated {
        /// What was to be limited.
        what: &'static str,
        /// By which controller.
        controller: &'static str,
        /// Whose systemd it is.
        uid: u32,
    },
    /// A swap file cannot be made here; the sentence says why.
    #[error("{0}")]
    NoSwap(String),
    /// There is less memory than this takes; the sentence says what to do.
    #[error("{0}")]
    NoMemory(String),
    /// A program could not be started.
    #[error("cannot start {}: {why}", program.display())]
    Launch {
        /// The program.
        program: PathBuf,
        /// What was refused.
        why: String,
    },
    /// Something could not be given back; its journal stays, so that `webdyno restore` can try again.
    #[error("not everything could be put back: {}; try `webdyno restore` later", failed.join("; "))]
    NotPutBack {
        /// What went well nevertheless, one sentence each.
        put_back: Vec<String>,
        /// What did not, one sentence each.
        failed: Vec<String>,
    },
    /// Somebody else has changed a file that the run had changed; the second is where goes what it was before, if there was something.
    #[error(
        "{} was changed by somebody else while webdyno worked with it; that change is kept{}, and the run ends",
        .0.display(),
        .1.as_ref().map_or(String::new(), |before| format!(", what the file was before goes to {}", before.display()))
    )]
    Changed(PathBuf, Option<PathBuf>),
    /// A setting of the kernel cannot be read or written; the sentence says why.
    #[error("{name}: {why}")]
    Sysctl {
        /// Its name, with dots.
        name: String,
        /// What is wrong.
        why: String,
    },
    /// Another run works on the same server, file or setting, or has not given it back yet.
    #[error(
        "the run {run} {} {}; {}",
        if *alive { "works on" } else { "was killed while it worked on" },
        what.display(),
        if *alive { "let it end first".to_owned() } else { format!("`webdyno restore`, by who ran it, gives it back (if no journal of it is left, delete {})", place.display()) }
    )]
    Taken {
        /// What tells the server from others, the file, or where the kernel has the setting.
        what: PathBuf,
        /// The other run.
        run: String,
        /// Whether it goes on.
        alive: bool,
        /// The file that says so.
        place: PathBuf,
    },
    /// A guardian has not given back everything yet.
    #[error("the guardian of the run {0} is still at it")]
    StillAtIt(String),
    /// A server of the machine's would not begin anew; the sentence says why.
    #[error("{0}")]
    Service(String),
    /// The run's [`Host`](crate::Host) was closed, so that nothing more may be changed.
    #[error("this run has given everything back and may change nothing more")]
    Closed,
}

/// What to do about an error that is want of room; nothing about others.
#[must_use]
pub fn want_of_room(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "; make room there",
        _ => "",
    }
}

impl HostError {
    /// For `map_err`: an I/O error with what was tried on which path.
    pub(crate) fn io<'a>(what: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> HostError + 'a {
        move |source| HostError::Io { what, path: path.to_owned(), source }
    }
}
