//! Groups for an ordinary user under cgroup v2: his own systemd makes a scope and delegates it to him, and webdyno moves into it.
//!
//! The whole of webdyno moves, because the kernel lets nobody but root bring a process into a delegated group from outside of it. `systemd-run
//! --scope` becomes the program it is told to run, so process id, terminal, folder and environment stay. Within the scope webdyno goes into a
//! group of its own, for a group whose children have controllers may hold no process. systemd removes the scope after its last process.

use super::hierarchies::{Hierarchies, of_v2};
use crate::HostError;
use crate::process::Identity;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Names the scope to the webdyno in it.
const NAME: &str = "WEBDYNO_SCOPE";
/// The group in the scope that webdyno itself is in.
const SELF: &str = "self";

/// A scope that could be entered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    found: Hierarchies,
    /// `systemd-run`.
    program: PathBuf,
    /// Where the user's systemd is to be talked to.
    runtime: PathBuf,
}

impl Scope {
    /// What can be limited in it.
    #[must_use]
    pub fn hierarchies(&self) -> &Hierarchies {
        &self.found
    }

    /// Runs `exe` again with these arguments, in a new scope and in the place of this process. Returns only when that is refused.
    #[must_use]
    pub fn enter(&self, exe: &Path, args: impl IntoIterator<Item = OsString>) -> HostError {
        // No two processes have both in common.
        let started = Identity::of(std::process::id()).map_or(0, |own| own.start_time);
        let name = format!("webdyno-{}-{started}.scope", std::process::id());
        // In the place of this process, systemd-run's failure would be taken for the run's.
        match self.command(&format!("try-{name}"), exe).arg("--version").stdin(Stdio::null()).output() {
            Ok(tried) if tried.status.success() => {}
            Ok(tried) => {
                let said = String::from_utf8_lossy(&tried.stderr);
                return refused(&format!("systemd makes no scope for this user: {}", said.trim().replace('\n', "; ")));
            }
            Err(error) => return HostError::io("run", &self.program)(error),
        }
        HostError::io("run", &self.program)(self.command(&name, exe).args(args).env(NAME, &name).exec())
    }

    /// `exe` in a scope.
    fn command(&self, name: &str, exe: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command.args(["--user", "--scope", "--quiet", "--collect", "--property=Delegate=yes"]);
        command.arg(format!("--unit={name}")).arg("--").arg(exe).env("XDG_RUNTIME_DIR", &self.runtime);
        command
    }

    /// The one that the systemd of user `uid` would make; `unified` is the root of the hierarchy.
    pub(super) fn of_user(unified: &Path, uid: u32, runtime: PathBuf, path: &[PathBuf]) -> Result<Scope, HostError> {
        let Some(program) = path.iter().map(|dir| dir.join("systemd-run")).find(|program| program.exists()) else {
            return Err(refused("there is no systemd-run, which would make a scope for this user"));
        };
        let manager = unified.join(format!("user.slice/user-{uid}.slice/user@{uid}.service"));
        if !manager.is_dir() || !runtime.join("systemd/private").exists() {
            return Err(refused(&format!(
                "this user has no systemd of their own running, which would make a scope for them (log in by ssh or at a console, or start it \
                 as root: `loginctl enable-linger {uid}`)"
            )));
        }
        let controllers = fs::read_to_string(manager.join("cgroup.controllers")).unwrap_or_default();
        let found = of_v2(manager, &controllers, Some(uid)).ok_or(HostError::NotDelegated {
            what: "memory",
            controller: "memory",
            uid,
        })?;
        Ok(Scope { found, program, runtime })
    }
}

fn refused(why: &str) -> HostError {
    HostError::NotRoot(format!("only root may confine a server here: {why}"))
}

/// The scope that systemd would make for this user.
pub(super) fn of_this_user(unified: &Path) -> Result<Scope, HostError> {
    if let Some(name) = env::var_os(NAME) {
        return Err(HostError::NoConfinement(format!(
            "systemd has made no group for {}: see `journalctl --user`, or run webdyno as root",
            Path::new(&name).display()
        )));
    }
    let uid = rustix::process::geteuid().as_raw();
    let runtime = env::var_os("XDG_RUNTIME_DIR").map_or_else(|| format!("/run/user/{uid}").into(), PathBuf::from);
    let path: Vec<PathBuf> = env::split_paths(&env::var_os("PATH").unwrap_or_default()).collect();
    Scope::of_user(unified, uid, runtime, &path)
}

/// The scope this process was started in by [`Scope::enter`], if it was. Goes into its own group there, unless it has before.
pub(super) fn own(unified: &Path) -> Result<Option<Hierarchies>, HostError> {
    let Some(name) = env::var_os(NAME) else { return Ok(None) };
    let cgroup = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let Some(inside) = below(&cgroup, Path::new(&name)) else { return Ok(None) };
    let root = unified.join(inside);
    let own = root.join(SELF);
    if !own.exists() {
        fs::create_dir(&own).map_err(HostError::io("create", &own))?;
        super::limit::set(&own.join("cgroup.procs"), &std::process::id().to_string())?;
    }
    let controllers = fs::read_to_string(root.join("cgroup.controllers")).unwrap_or_default();
    Ok(of_v2(root, &controllers, Some(rustix::process::geteuid().as_raw())))
}

/// Where the scope lies below the root of the v2 hierarchy, by a text of `/proc/self/cgroup`; `None` when the process is not in it.
fn below(cgroup: &str, scope: &Path) -> Option<PathBuf> {
    let path = Path::new(cgroup.lines().find_map(|line| line.strip_prefix("0::/"))?);
    path.ancestors().find(|ancestor| ancestor.file_name() == Some(scope.as_os_str())).map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scope_is_found_from_within() {
        let check = |cgroup: &str, expected: Option<&str>| {
            assert_eq!(below(cgroup, Path::new("webdyno-1-2.scope")), expected.map(PathBuf::from), "{cgroup}");
        };
        check("0::/user.slice/a.slice/webdyno-1-2.scope\n", Some("user.slice/a.slice/webdyno-1-2.scope"));
        check("0::/a.slice/webdyno-1-2.scope/self\n", Some("a.slice/webdyno-1-2.scope"));
        check("1:cpu:/webdyno-1-2.scope\n0::/user.slice/session-1.scope\n", None);
        check("0::/webdyno-1-20.scope\n", None);
        check("", None);
    }

    /// What a user is told where `there` exists below the roots of groups, of his run-time folder and of programs.
    fn check(there: &[&str], controllers: &str, expected: Result<&[&str], &str>) {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for file in there {
            fs::create_dir_all(at(file).parent().unwrap()).unwrap();
            fs::write(at(file), controllers).unwrap();
        }
        let scope = Scope::of_user(&at("groups"), 1000, at("run"), &[at("nothing"), at("bin")]);
        let seen = scope.map(|scope| scope.hierarchies().limits()).map_err(|error| error.to_string());
        match (&seen, expected) {
            (Err(seen), Err(part)) => assert!(seen.contains(part), "{seen}"),
            (seen, expected) => assert_eq!(seen.as_deref(), Ok(expected.unwrap()), "{there:?}"),
        }
    }

    #[test]
    fn a_user_is_told_what_is_missing() {
        let (program, talk) = ("bin/systemd-run", "run/systemd/private");
        let manager = "groups/user.slice/user-1000.slice/user@1000.service/cgroup.controllers";
        check(&[], "", Err("there is no systemd-run"));
        check(&[program, manager], "memory", Err("`loginctl enable-linger 1000`"));
        check(&[program, talk], "memory", Err("`loginctl enable-linger 1000`"));
        check(&[program, talk, manager], "pids", Err("systemd does not delegate the memory controller"));
        check(&[program, talk, manager], "cpu memory pids", Ok(&["memory", "CPU time"]));
        check(&[program, talk, manager], "cpu io memory", Ok(&["memory", "CPU time", "disk traffic"]));
    }

    #[test]
    fn a_scope_that_is_refused_is_no_run_that_failed() {
        let found = of_v2("/sys/fs/cgroup".into(), "memory", Some(1000)).unwrap();
        // It does not know the options either.
        let scope = Scope { found, program: "/bin/ls".into(), runtime: "/run".into() };
        let said = scope.enter(Path::new("/nonexistent/webdyno"), []).to_string();
        assert!(said.contains("systemd makes no scope for this user: ") && said.contains("--user"), "{said}");
        let absent = Scope { program: "/nonexistent/systemd-run".into(), ..scope };
        let said = absent.enter(Path::new("/nonexistent/webdyno"), []).to_string();
        assert!(said.starts_with("cannot run /nonexistent/systemd-run"), "{said}");
    }
}
