//! Why a server could not be run, each as one sentence for whoever wrote the plan.

use crate::control::Logs;
use host::HostError;
use std::fmt::{self, Display, Formatter};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A key of the plan's `[server]`, or of a service's, that turned out wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanKey {
    /// The plan.
    pub plan: Box<Path>,
    /// Whose it is, when it is not the server's under test.
    pub service: Option<Box<str>>,
    /// Line in it, from 1.
    pub line: usize,
    /// The key.
    pub key: &'static str,
}

/// A folder that an account may not enter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closed {
    /// The folder.
    pub folder: PathBuf,
    /// Its permissions.
    pub mode: u32,
    /// Who may not.
    pub account: String,
}

impl Display for PlanKey {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let PlanKey { plan, service, line, key } = self;
        match service {
            None => write!(f, "{}:{line}: server.{key}", plan.display()),
            Some(name) => write!(f, "{}:{line}: service.{name}.{key}", plan.display()),
        }
    }
}

impl Display for Closed {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Closed { folder, mode, account } = self;
        let folder = folder.display();
        write!(
            f,
            "{account}, as whom the server runs, may not enter {folder} (mode {mode:04o}); allow it with chmod o+x"
        )
    }
}

/// The server could not be run as the plan says.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The server refuses, warns about or does not follow a line of the plan.
    #[error("{}:{line}: {directive}: {message} ({server})", plan.display())]
    Directive {
        /// The plan.
        plan: PathBuf,
        /// Line in it, from 1.
        line: usize,
        /// The line's text.
        directive: String,
        /// What the server says.
        message: String,
        /// Which server.
        server: &'static str,
    },
    /// The server refuses the configuration, and no line of the plan can be named.
    #[error("{}: variant `{variant}`: {message} ({server})", plan.display())]
    Configuration {
        /// The plan.
        plan: PathBuf,
        /// The variant.
        variant: String,
        /// What the server says.
        message: String,
        /// Which server.
        server: &'static str,
    },
    /// Apache is not installed.
    #[error("no Apache here ({0}); install the package apache2 (Debian, Ubuntu) or httpd (RHEL, Fedora)")]
    NoProgram(String),
    /// A module's file is missing.
    #[error("no Apache module `{module}` in {}; install the package that has it, or remove it from the plan's `modules`", folder.display())]
    NoModule {
        /// Its name in the plan.
        module: String,
        /// Where it was looked for.
        folder: PathBuf,
    },
    /// The machine's own configuration cannot be used.
    #[error("{at}: {why}")]
    Machine {
        /// What names it.
        at: PlanKey,
        /// What is wrong and what to do.
        why: String,
    },
    /// The configuration is no longer the one that the run began with.
    #[error("{} changed while webdyno measured: the run ends, and that change is kept", file.display())]
    Changed {
        /// The file.
        file: PathBuf,
    },
    /// The running server reads its configuration again, or was started again, and not by us.
    #[error(
        "somebody had the server of {} read its configuration again while webdyno measured, so it did not run with the plan's: the run ends",
        main.display()
    )]
    Reread {
        /// Its main file.
        main: PathBuf,
    },
    /// The command of a server of the user's own cannot be run.
    #[error("{at}: {why}")]
    Command {
        /// What names it.
        at: PlanKey,
        /// What is wrong and what to do.
        why: String,
    },
    /// PHP cannot be run as the plan wants.
    #[error("{at}: {why}")]
    NoPhp {
        /// What asks for it.
        at: PlanKey,
        /// What is missing and what to do.
        why: String,
    },
    /// The machine's own configuration cannot be read, and no plan names it: a sentence.
    #[error("{0}")]
    Unread(String),
    /// nginx is not installed.
    #[error("no nginx here ({0}); install the package nginx")]
    NoNginx(String),
    /// A server run by root needs an account for its workers.
    #[error("{server} needs an account to run as, and none of {} exists; its package makes one", names.join(", "))]
    NoAccount {
        /// Which server.
        server: &'static str,
        /// The accounts that were looked for.
        names: &'static [&'static str],
    },
    /// A folder the plan wants served cannot be.
    #[error("{at}: {} {why}; make it, or name another", folder.display())]
    NoFolder {
        /// What names it.
        at: PlanKey,
        /// The folder.
        folder: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The server's account may not enter a folder of the plan.
    #[error("{at}: {closed}, or use another folder")]
    Unreadable {
        /// What names it.
        at: PlanKey,
        /// The folder on the way that is closed.
        closed: Closed,
    },
    /// The server's account may not enter the folder of its own instance.
    #[error("the instance's own folder: {0}, or set TMPDIR to another folder")]
    OwnFolder(Closed),
    /// The path of Apache's socket would not fit into an address.
    #[error("the path {} is too long for a socket in it (at most {most} bytes); set TMPDIR to a shorter one", folder.display())]
    LongPath {
        /// The instance's folder.
        folder: PathBuf,
        /// The longest that fits.
        most: usize,
    },
    /// A server that is only a URL is not there, or not ready.
    #[error("{at}: {asked}: {why}")]
    NotThere {
        /// What names it.
        at: PlanKey,
        /// Whom or what was asked for.
        asked: String,
        /// What came of it and what to do.
        why: String,
    },
    /// Somebody else listens there.
    #[error("{0} is in use by another program; stop it or listen elsewhere")]
    PortInUse(SocketAddr),
    /// The user wants to end, and nobody waits until it is ready.
    #[error("interrupted")]
    Interrupted,
    /// It ended before it was ready.
    #[error("{server} ended before it was ready; its log ends with: {log}")]
    Died {
        /// Which server.
        server: &'static str,
        /// The end of its log, in one line.
        log: String,
    },
    /// Apache runs without the process that starts CGI programs for it: they would never be answered.
    #[error(
        "Apache's daemon for CGI programs did not start; mend what its log names, or take the prefork MPM, which needs none: {0}"
    )]
    CgiDaemon(String),
    /// It runs and does not answer as it should.
    #[error("{server} was not ready after {seconds:.1} s: {asked}: {why}; its log ends with: {log}")]
    NotReady {
        /// Which server.
        server: &'static str,
        /// How long it was waited for.
        seconds: f64,
        /// What was asked, such as `GET /`.
        asked: String,
        /// What came instead of a good answer.
        why: String,
        /// The end of its log, in one line.
        log: String,
    },
    /// It runs, and refuses what it should answer when it is ready.
    #[error(
        "{at}: GET {path} is answered with status {status} and goes on so; name a path that the server answers with 2xx; \
         its log ends with: {log}"
    )]
    WrongReady {
        /// What names the path, or leaves it to the default.
        at: PlanKey,
        /// What was asked for.
        path: String,
        /// What came, again and again.
        status: u16,
        /// The end of its log, in one line.
        log: String,
    },
    /// It answers and does not say what is in force.
    #[error("{server} does not tell its settings: {why}")]
    NoSettings {
        /// Which server.
        server: &'static str,
        /// What is missing, and what to do.
        why: String,
    },
    /// Fewer processes run than the settings ask for.
    #[error(
        "only {running} of {asked} worker processes of {server} came up: ask for fewer, or see in its log why no more can start; it ends with: {log}"
    )]
    Children {
        /// Which server.
        server: &'static str,
        /// So many.
        running: u64,
        /// Instead of.
        asked: u64,
        /// The end of its log, in one line.
        log: String,
    },
    /// A server beside the one under test could not be run.
    #[error("service `{name}`: {error}")]
    Service {
        /// Its name in the plan.
        name: String,
        /// Why.
        error: Box<ServerError>,
    },
    /// A program that was asked something did not end.
    #[error(
        "`{call}` had not ended after {} s and was killed{}; run it yourself to see what it waits for, such as a password, a name server \
         or a file on a network",
        patience.as_secs_f64(),
        if said.is_empty() { String::new() } else { format!(" (it said: {said})") }
    )]
    Hangs {
        /// The program and its arguments.
        call: String,
        /// How long it was waited for.
        patience: Duration,
        /// The last line of its complaints; empty when there was none.
        said: String,
    },
    /// A file of the instance cannot be made or read.
    #[error("cannot {what} {}: {source}{}", path.display(), host::want_of_room(source))]
    Io {
        /// What was tried.
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// The machine refuses.
    #[error(transparent)]
    Host(#[from] HostError),
}

impl ServerError {
    /// For `map_err`: an I/O error with what was tried on which path.
    pub(crate) fn io<'a>(what: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> ServerError + 'a {
        move |source| ServerError::Io { what, path: path.to_owned(), source }
    }

    /// With the end of the log of a server that does not tell its settings: that is where it says why.
    pub(crate) fn with_log(self, logs: &Logs) -> ServerError {
        match self {
            ServerError::NoSettings { server, why } => {
                ServerError::NoSettings { server, why: format!("{why}; its log ends with: {}", logs.brief()) }
            }
            other => other,
        }
    }
}

impl ServerError {
    /// Whether no further trial can be made, rather than this one only.
    #[must_use]
    pub fn ends_the_run(&self) -> bool {
        match self {
            // Without a journal nothing may be changed.
            ServerError::Changed { .. }
            | ServerError::Reread { .. }
            // Nobody here starts it again.
            | ServerError::NotThere { .. }
            | ServerError::Host(HostError::Changed(..) | HostError::Io { .. } | HostError::Taken { .. }) => true,
            ServerError::Io { source, .. } => !host::want_of_room(source).is_empty(),
            ServerError::Service { error, .. } => error.ends_the_run(),
            _ => false,
        }
    }

    /// The same of a server that stands beside the one under test.
    #[must_use]
    pub fn of_service(mut self, name: &str) -> ServerError {
        match &mut self {
            ServerError::Machine { at, .. }
            | ServerError::Command { at, .. }
            | ServerError::NoPhp { at, .. }
            | ServerError::NoFolder { at, .. }
            | ServerError::Unreadable { at, .. }
            | ServerError::WrongReady { at, .. } => at.service = Some(name.into()),
            _ => return ServerError::Service { name: name.to_owned(), error: Box::new(self) },
        }
        self
    }
}
