//! The machine's nginx: where its program is, and what was built into it.

use crate::ServerError;
use crate::program::{self, ask, asking, is_program};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Where it is when an ordinary user's PATH does not say so.
const FOLDERS: [&str; 4] = ["/usr/sbin", "/usr/local/sbin", "/usr/local/nginx/sbin", "/opt/nginx/sbin"];

/// Finds the program: the one given, else by name along `path` (as in `$PATH`) and in the usual folders.
pub(crate) fn find(program: Option<&Path>, path: &OsStr) -> Result<PathBuf, ServerError> {
    match program {
        Some(program) if is_program(program) => Ok(program.to_owned()),
        Some(program) => Err(ServerError::NoNginx(format!("{} is not a program", program.display()))),
        None => program::find(&["nginx"], path, &FOLDERS)
            .ok_or_else(|| ServerError::NoNginx("it is not in PATH or /usr/sbin".to_owned())),
    }
}

/// What was built into the program.
#[derive(Debug, Clone)]
pub(crate) struct Built {
    /// Its own name and version, such as `nginx/1.22.1`.
    pub(crate) version: String,
    /// Whether it can tell counters.
    pub(crate) has_status: bool,
    pub(super) prefix: PathBuf,
    pub(super) pid_file: PathBuf,
    pub(super) error_log: PathBuf,
    /// What it was built with.
    arguments: String,
}

impl Built {
    /// Asks it.
    pub(crate) fn of(program: &Path) -> Result<Built, ServerError> {
        let output = ask(asking(program).arg("-V"))?;
        Ok(Built::parse(&String::from_utf8_lossy(&output.stderr)))
    }

    fn parse(said: &str) -> Built {
        let value = |name: &str| said.split_ascii_whitespace().find_map(|word| word.strip_prefix(name));
        let prefix = PathBuf::from(value("--prefix=").unwrap_or("/usr/local/nginx"));
        let place = |name: &str, otherwise: &str| prefix.join(value(name).unwrap_or(otherwise));
        let first = said.lines().next().unwrap_or_default().trim();
        Built {
            version: first.strip_prefix("nginx version: ").unwrap_or(first).to_owned(),
            has_status: said.contains("http_stub_status_module"),
            pid_file: place("--pid-path=", "logs/nginx.pid"),
            error_log: place("--error-log-path=", "logs/error.log"),
            arguments: said.to_owned(),
            prefix,
        }
    }

    /// Whether it has the part of `http` of that name, which is not there unless it was asked for.
    pub(super) fn has_more(&self, part: &str) -> bool {
        self.arguments.contains(&format!("--with-http_{part}_module"))
    }

    /// Whether it has the part of `http` of that name, which is there unless it was left out.
    pub(super) fn has(&self, part: &str) -> bool {
        !self.arguments.contains(&format!("--without-http_{part}_module"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_built_in() {
        let said = "nginx version: nginx/1.22.1\nbuilt with OpenSSL\nconfigure arguments: --prefix=/p --pid-path=/run/n.pid \
                    --with-http_stub_status_module --without-http_scgi_module\n";
        let built = Built::parse(said);
        assert_eq!((built.version.as_str(), built.has_status), ("nginx/1.22.1", true));
        assert_eq!((built.pid_file, built.error_log), ("/run/n.pid".into(), "/p/logs/error.log".into()));
        let built = Built::parse(said);
        assert!(!built.has("scgi") && built.has("fastcgi"));
        assert!(!built.has_more("auth_request") && built.has_more("stub_status"));
    }
}
