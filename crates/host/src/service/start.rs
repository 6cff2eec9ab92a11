//! How a server of the machine's was started, read from the kernel: by systemd, or by a command that is repeated for a full restart.

use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// How a server was started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Start {
    /// As a service of systemd's.
    Unit(String),
    /// By a command that leaves it in the background.
    Command {
        words: Vec<OsString>,
        env: Vec<(OsString, OsString)>,
        dir: PathBuf,
        /// Limit on open files, umask, and how likely the kernel ends it when memory is short, as /proc writes them.
        limits: [String; 3],
    },
}

/// Whose a process is, as systemd sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// The unit is the server's own.
    Unit,
    /// The server is one of many things in it, such as what a timer or a shell has started.
    Another,
    /// systemd does not say.
    Unknown,
}

/// How a running server was started; `None` when whoever started it holds it in the foreground, or nobody says who that was.
pub(super) fn of(pid: u32) -> Option<Start> {
    let proc = |name: &str| fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
    let unit = unit_in(&String::from_utf8_lossy(&proc("cgroup")));
    if let Some(unit) = unit.filter(|_| Path::new("/run/systemd/system").exists()) {
        match owner(&said_of(&unit), pid) {
            Owner::Unit => return Some(Start::Unit(unit)),
            Owner::Another => {}
            Owner::Unknown => return None,
        }
    }
    let pieces = |bytes: Vec<u8>| -> Vec<OsString> {
        bytes
            .split(|&byte| byte == 0)
            .filter(|piece| !piece.is_empty())
            .map(|piece| OsString::from_vec(piece.to_vec()))
            .collect()
    };
    let words = pieces(proc("cmdline"));
    let in_foreground = |word: &OsString| {
        let word = word.to_string_lossy();
        matches!(word.strip_prefix("-D").unwrap_or(&word), "FOREGROUND" | "NO_DETACH" | "DEBUG" | "ONE_PROCESS")
            || word == "-X"
    };
    if words.is_empty() || words.iter().any(in_foreground) {
        return None;
    }
    let env = pieces(proc("environ")).into_iter().filter_map(pair).collect();
    let dir = fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_else(|_| "/".into());
    let text = |name: &str| String::from_utf8_lossy(&proc(name)).into_owned();
    let files = text("limits")
        .lines()
        .find_map(|line| Some(line.strip_prefix("Max open files")?.split_whitespace().next()?.to_owned()));
    let umask = text("status").lines().find_map(|line| Some(line.strip_prefix("Umask:")?.trim().to_owned()));
    let limits = [
        files.unwrap_or_default(),
        umask.unwrap_or_else(|| "0022".to_owned()),
        text("oom_score_adj").trim().to_owned(),
    ];
    Some(Start::Command { words, env, dir, limits })
}

/// What systemctl is told to start a service anew.
pub(super) fn again(unit: &str) -> [&str; 2] {
    ["restart", unit]
}

/// What it is told before: systemd lets a service start 5 times in 10 s, restarts counted, and then leaves it stopped. This resets the
/// counter ("the start rate limit counter of all unit types is reset to zero", systemctl(1)).
pub(super) fn no_limit(unit: &str) -> [&str; 2] {
    ["reset-failed", unit]
}

/// `NAME=value`.
fn pair(piece: OsString) -> Option<(OsString, OsString)> {
    let bytes = piece.as_bytes();
    let at = bytes.iter().position(|&byte| byte == b'=')?;
    Some((OsString::from_vec(bytes[..at].to_vec()), OsString::from_vec(bytes[at + 1..].to_vec())))
}

/// The service that a process is directly in, as in `0::/system.slice/apache2.service`. One above it is the service of somebody who has
/// started many things: a user's whole session lies below `user@1000.service`.
fn unit_in(cgroup: &str) -> Option<String> {
    let mut paths = cgroup.lines().filter_map(|line| line.splitn(3, ':').nth(2));
    paths.find_map(|path| Some(path.rsplit('/').next().filter(|last| last.ends_with(".service"))?.to_owned()))
}

/// What systemd says of a unit.
fn said_of(unit: &str) -> String {
    let output = super::systemctl(&["show", "-p", "MainPID", "-p", "ActiveState", unit]).output();
    output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default()
}

/// A service whose main process is another has only started the server: a restart of it would end that process and all its others. Of a
/// service that an old script starts systemd knows no main process, and says 0.
fn owner(said: &str, pid: u32) -> Owner {
    let value = |name: &str| said.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    match (value("MainPID").and_then(|main| main.parse::<u32>().ok()), value("ActiveState")) {
        (Some(main), _) if main == pid => Owner::Unit,
        (Some(0), Some("active")) => Owner::Unit,
        (Some(_), Some(_)) => Owner::Another,
        _ => Owner::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_service_is_read_from_its_group() {
        let check = |cgroup: &str, expected: Option<&str>| assert_eq!(unit_in(cgroup).as_deref(), expected, "{cgroup}");
        check("12:pids:/\n1:name=systemd:/system.slice/apache2.service\n", Some("apache2.service"));
        check("0::/system.slice/system-httpd.slice/httpd@a.service\n", Some("httpd@a.service"));
        check("0::/user.slice/session-1.scope\n", None);
        // Started at a desktop's terminal.
        check("0::/user.slice/user-1000.slice/user@1000.service/app.slice/vte-spawn-x.scope\n", None);
        check("0::/\n", None);
    }

    #[test]
    fn a_service_that_only_started_the_server_is_left_alone() {
        let check = |said: &str, expected: Owner| assert_eq!(owner(said, 42), expected, "{said}");
        check("MainPID=42\nActiveState=active\n", Owner::Unit);
        check("MainPID=0\nActiveState=active\n", Owner::Unit);
        // cron's, and one that systemd does not know, such as a user's.
        check("MainPID=7\nActiveState=active\n", Owner::Another);
        check("MainPID=0\nActiveState=inactive\n", Owner::Another);
        check("", Owner::Unknown);
    }

    #[test]
    fn the_limit_of_starts_is_lifted_before_each() {
        assert_eq!(no_limit("apache2.service"), ["reset-failed", "apache2.service"]);
        assert_eq!(again("apache2.service"), ["restart", "apache2.service"]);
    }
}
