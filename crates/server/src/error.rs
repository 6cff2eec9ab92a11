//! Why a server could not be run, each as one sentence for whoever wrote the plan.

use host::HostError;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

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
    /// Apache run by root needs an account for its workers.
    #[error(
        "Apache needs an account to run as, and none of www-data, apache and httpd exists; Apache's package makes one"
    )]
    NoAccount,
    /// A folder the plan wants served does not exist.
    #[error("{}: server.{key}: {} is not a folder: {why}", plan.display(), folder.display())]
    NoFolder {
        /// The plan.
        plan: PathBuf,
        /// The key in it.
        key: &'static str,
        /// The folder.
        folder: PathBuf,
        /// What the kernel says.
        why: io::Error,
    },
    /// The server's account may not enter a folder.
    #[error(
        "{what}: {account}, as whom the server runs, may not enter {} (mode {mode:04o}); allow it with chmod o+x, or use another folder",
        closed.display()
    )]
    Unreadable {
        /// What the folder is for.
        what: String,
        /// The account.
        account: String,
        /// The folder on the way that is closed.
        closed: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// The path of Apache's socket would not fit into an address.
    #[error("the path {} is too long for the CGI daemon's socket (at most {most} bytes); set TMPDIR to a shorter one", folder.display())]
    LongPath {
        /// The instance's folder.
        folder: PathBuf,
        /// The longest that fits.
        most: usize,
    },
    /// Somebody else listens there.
    #[error("{0} is in use by another program; stop it or listen elsewhere")]
    PortInUse(SocketAddr),
    /// It ended before it was ready.
    #[error("{server} ended before it was ready; its log ends with: {log}")]
    Died {
        /// Which server.
        server: &'static str,
        /// The end of its log, in one line.
        log: String,
    },
    /// Apache runs without the process that starts CGI programs for it: they would never be answered.
    #[error("Apache's daemon for CGI programs did not start: {0}")]
    CgiDaemon(String),
    /// It runs and does not answer as it should.
    #[error("{server} was not ready after {seconds:.1} s: GET {path}: {why}; its log ends with: {log}")]
    NotReady {
        /// Which server.
        server: &'static str,
        /// How long it was waited for.
        seconds: f64,
        /// What was asked for.
        path: String,
        /// What came instead of a 2xx.
        why: String,
        /// The end of its log, in one line.
        log: String,
    },
    /// It answers and does not say what is in force.
    #[error("{server} does not tell its settings: {why}")]
    NoSettings {
        /// Which server.
        server: &'static str,
        /// What is missing.
        why: String,
    },
    /// Fewer processes run than the settings ask for.
    #[error("only {running} of {asked} worker processes of Apache came up; its log ends with: {log}")]
    Children {
        /// So many.
        running: u64,
        /// Instead of.
        asked: u64,
        /// The end of its log, in one line.
        log: String,
    },
    /// A file of the instance cannot be made or read.
    #[error("cannot {what} {}: {source}", path.display())]
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
}
