//! How a server of the machine's was started, read from the kernel: by systemd, or by a command that is repeated for a full restart.

use super::{Style, systemctl};
use crate::call::{Ear, call, run};
use crate::mounts::{Mount, mounts};
use crate::process;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// What nginx is started with: its own environment cannot be seen from outside.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// How long systemd may take to answer a question.
const ASK: Duration = Duration::from_secs(30);

/// What is said of a server that somebody waits for.
pub(super) const FOREGROUND: &str = "runs in the foreground of whoever started it, who alone can start it again";
/// Limits, groups, and then the server itself. No file of ours stays open in it. The soft limit comes first where the hard one goes below
/// what it is now, and last where it goes above.
const SCRIPT: &str = "exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-
{ ulimit -Sn \"$1\"; ulimit -Hn \"$4\"; ulimit -Sn \"$1\"; } 2>/dev/null
umask \"$2\"
{ echo \"$3\" >/proc/self/oom_score_adj; } 2>/dev/null
groups=$5; shift 5
while [ $groups -gt 0 ]; do { echo $$ >\"$1/cgroup.procs\"; } 2>/dev/null; shift; groups=$((groups-1)); done
exec \"$@\"";

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
        /// Soft limit on open files, umask, and how likely the kernel ends it when memory is short, as /proc writes them.
        limits: [String; 3],
        /// Hard limit on open files; journals of before do not know it.
        #[serde(default)]
        hard: String,
        /// The groups that it lives in: who starts it again may be a service of systemd's, which ends with all that is in its group.
        #[serde(default)]
        groups: Vec<PathBuf>,
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

/// How a running server was started by `program`, or why it cannot be started again: what follows its name in a sentence.
pub(super) fn of(pid: u32, style: Style, program: &Path) -> Result<Start, String> {
    let proc = |name: &str| fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
    let unit = unit_in(&String::from_utf8_lossy(&proc("cgroup")));
    if let Some(unit) = unit.filter(|_| Path::new("/run/systemd/system").exists()) {
        match owner(&said_of(&unit), pid) {
            Owner::Unit => return Ok(Start::Unit(unit)),
            Owner::Another => {}
            Owner::Unknown => return Err(format!("is in {unit}, of which systemd does not say whether it is its own")),
        }
    }
    let pieces = |bytes: Vec<u8>| -> Vec<OsString> {
        bytes
            .split(|&byte| byte == 0)
            .filter(|piece| !piece.is_empty())
            .map(|piece| OsString::from_vec(piece.to_vec()))
            .collect()
    };
    let (mut words, env) = match style {
        Style::Apache => (pieces(proc("cmdline")), variables(&proc("environ"))),
        // Its title stands where words and environment were.
        Style::Nginx => (words_of_nginx(pid).unwrap_or_default(), vec![("PATH".into(), PATH.into())]),
    };
    let in_foreground = |word: &OsString| {
        let word = word.to_string_lossy();
        matches!(word.strip_prefix("-D").unwrap_or(&word), "FOREGROUND" | "NO_DETACH" | "DEBUG" | "ONE_PROCESS")
            || word == "-X"
    };
    let told = |word: &OsString| {
        word.to_string_lossy().split_ascii_whitespace().collect::<Vec<_>>().join(" ").contains("daemon off;")
    };
    if words.is_empty() || words.iter().any(|word| in_foreground(word) || style == Style::Nginx && told(word)) {
        return Err(FOREGROUND.to_owned());
    }
    if Path::new(&words[0]).is_relative() {
        // To a folder or a path of searches that is not known any more. It is the same program: the process was told by it.
        words[0] = program.into();
    }
    let dir = fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_else(|_| "/".into());
    let text = |name: &str| String::from_utf8_lossy(&proc(name)).into_owned();
    let files = text("limits").lines().find_map(|line| {
        let mut both = line.strip_prefix("Max open files")?.split_whitespace().map(str::to_owned);
        Some([both.next()?, both.next()?])
    });
    let [soft, hard] = files.unwrap_or_default();
    let umask = text("status").lines().find_map(|line| Some(line.strip_prefix("Umask:")?.trim().to_owned()));
    let limits = [soft, umask.unwrap_or_else(|| "0022".to_owned()), text("oom_score_adj").trim().to_owned()];
    let groups = groups_in(&text("cgroup"), &mounts());
    let start = Start::Command { words, env, dir, limits, hard, groups };
    start.try_words()?;
    Ok(start)
}

impl Start {
    /// Whether its words mean something without what is not known any more: the folder that they were typed in. httpd leaves it.
    fn try_words(&self) -> Result<(), String> {
        let Start::Command { words, env, dir, .. } = self else { return Ok(()) };
        let failed = |error: std::io::Error| format!("cannot be started again as it was: {error}");
        let ear = Ear::new().map_err(failed)?;
        let mut command = call(Path::new(&words[0]));
        command.args(&words[1..]).arg("-t").env_clear().envs(env.iter().map(|(name, value)| (name, value)));
        let status = run(command.current_dir(dir).stderr(ear.end().map_err(failed)?), super::READ)?;
        let said = ear.line();
        if status.success() {
            Ok(())
        } else {
            Err(format!("cannot be started again as it was, from {}: {said}", dir.display()))
        }
    }

    /// Whether somebody starts it just now by the same words: the call, which may still be its shell, and what it has left in the background
    /// until that writes its pid. Each leads a session, which workers do not. Who has run for longer than a start is given,
    /// [`super::READ`], is taken for another: one in a container, say.
    ///
    /// # Errors
    /// When processes cannot be read, which is no proof that there is none.
    pub(super) fn is_under_way(&self) -> Result<bool, String> {
        let Start::Command { words, .. } = self else { return Ok(false) };
        let line: Vec<u8> = words.iter().flat_map(|word| [word.as_bytes(), b"\0"].concat()).collect();
        process::any_young_leader(super::READ, |pid| {
            fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|typed| ends_with_words(&typed, &line))
        })
    }

    /// The call that starts it.
    pub(super) fn command(&self) -> Command {
        match self {
            Start::Unit(unit) => systemctl(&again(unit)),
            Start::Command { words, env, dir, limits, hard, groups } => {
                let mut command = call(Path::new("/bin/sh"));
                // A limit that this user may not set, or a group that has gone, is left as it is.
                command.args(["-c", SCRIPT, "sh"]).args(limits).arg(hard).arg(groups.len().to_string());
                command.args(groups).args(words).env_clear().current_dir(dir);
                command.envs(env.iter().map(|(name, value)| (name, value)));
                command
            }
        }
    }
}

/// Whether the words of a process, each ended by a zero byte, are those or end with them, as a shell's do that is to become it.
fn ends_with_words(typed: &[u8], words: &[u8]) -> bool {
    typed.strip_suffix(words).is_some_and(|before| before.last().is_none_or(|&byte| byte == 0))
}

/// What systemctl is told to start a service anew.
fn again(unit: &str) -> [&str; 2] {
    ["restart", unit]
}

/// What it is told before: systemd lets a service start 5 times in 10 s, restarts counted, and then leaves it stopped. This resets the
/// counter ("the start rate limit counter of all unit types is reset to zero", systemctl(1)).
pub(super) fn no_limit(unit: &str) -> [&str; 2] {
    ["reset-failed", unit]
}

/// The variables of an environment: `NAME=value` pieces, each ended by a zero byte.
#[must_use]
pub fn variables(bytes: &[u8]) -> Vec<(OsString, OsString)> {
    let pair = |piece: &[u8]| {
        let at = piece.iter().position(|&byte| byte == b'=')?;
        Some((OsString::from_vec(piece[..at].to_vec()), OsString::from_vec(piece[at + 1..].to_vec())))
    };
    bytes.split(|&byte| byte == 0).filter_map(pair).collect()
}

/// The words that a master of nginx was started with, as its title repeats them, `nginx: master process nginx -c FILE -g daemon on;`;
/// `None` when it is none. Where its values have blanks is known only of the directives behind `-g`, which end with `;`.
#[must_use]
pub fn words_of_nginx(pid: u32) -> Option<Vec<OsString>> {
    let title = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let exe = fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    words_in_title(&title, &exe)
}

/// All of it as bytes: it is started by them again, whatever a name in them is written in.
fn words_in_title(title: &[u8], exe: &Path) -> Option<Vec<OsString>> {
    // What is left of the room for it is zeros.
    let is_between = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0;
    let said = title.strip_prefix(b"nginx: master process ")?.split(is_between).filter(|word| !word.is_empty());
    let mut said = said.skip(1).peekable();
    // An updated program's old file is gone.
    let exe = exe.as_os_str().as_bytes();
    let mut words = vec![exe.strip_suffix(b" (deleted)").unwrap_or(exe).to_vec()];
    while let Some(word) = said.next() {
        words.push(word.to_vec());
        if word == b"-g" {
            let mut lines = Vec::new();
            while let Some(word) = said.next_if(|word| !word.starts_with(b"-")) {
                lines.push(word);
            }
            words.push(lines.join(&b' '));
        }
    }
    Some(words.into_iter().map(OsString::from_vec).collect())
}

/// The service that a process is directly in, as in `0::/system.slice/apache2.service`. One above it is the service of somebody who has
/// started many things: a user's whole session lies below `user@1000.service`.
fn unit_in(cgroup: &str) -> Option<String> {
    let mut paths = cgroup.lines().filter_map(|line| line.splitn(3, ':').nth(2));
    paths.find_map(|path| Some(path.rsplit('/').next().filter(|last| last.ends_with(".service"))?.to_owned()))
}

/// The directories of the groups that `/proc/PID/cgroup` names.
fn groups_in(cgroup: &str, mounts: &[Mount]) -> Vec<PathBuf> {
    let group = |line: &str| {
        let [_, controllers, path] = line.splitn(3, ':').collect::<Vec<_>>().try_into().ok()?;
        let first = controllers.split(',').next()?;
        let is_it = |mount: &&Mount| match first {
            "" => mount.kind == "cgroup2",
            first => mount.kind == "cgroup" && mount.options.iter().any(|option| option == first),
        };
        // One outside of what is seen from here begins with `/..`.
        let inner = Path::new(path).strip_prefix("/").ok().filter(|inner| !inner.starts_with(".."))?;
        Some(mounts.iter().find(is_it)?.point.join(inner))
    };
    cgroup.lines().filter_map(group).collect()
}

/// What systemd says of a unit.
fn said_of(unit: &str) -> String {
    let Ok((ear, end)) = Ear::new().and_then(|ear| ear.end().map(|end| (ear, end))) else { return String::new() };
    // Without an answer nothing is known, and nothing is said.
    let _ = run(systemctl(&["show", "-p", "MainPID", "-p", "ActiveState", unit]).stdout(end), ASK);
    ear.text()
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
    fn the_words_of_nginx_stand_in_its_title() {
        let check = |title: &[u8], expected: Option<&[&[u8]]>| {
            let words = words_in_title(title, Path::new("/usr/sbin/nginx"));
            let expected = expected.map(|words| words.iter().map(|word| OsString::from_vec(word.to_vec())).collect());
            assert_eq!(words, expected, "{}", title.escape_ascii());
        };
        check(b"nginx: master process nginx\0\0\0", Some(&[b"/usr/sbin/nginx"]));
        check(
            b"nginx: master process /usr/sbin/nginx -g daemon on; master_process on; -c /a/b.conf",
            Some(&[b"/usr/sbin/nginx", b"-g", b"daemon on; master_process on;", b"-c", b"/a/b.conf"]),
        );
        // In Latin-1.
        check(b"nginx: master process nginx -c /caf\xe9.conf", Some(&[b"/usr/sbin/nginx", b"-c", b"/caf\xe9.conf"]));
        check(b"nginx: worker process", None);
    }

    #[test]
    fn words_are_compared_from_their_beginning() {
        let check = |typed: &[u8], expected: bool| {
            assert_eq!(ends_with_words(typed, b"/usr/sbin/apache2\0-k\0start\0"), expected, "{}", typed.escape_ascii());
        };
        check(b"/usr/sbin/apache2\0-k\0start\0", true);
        check(b"/bin/sh\0-c\0exec \"$@\"\0sh\0/usr/sbin/apache2\0-k\0start\0", true);
        check(b"/srv/jail/usr/sbin/apache2\0-k\0start\0", false);
        check(b"/usr/sbin/apache2\0-t\0", false);
        check(b"", false);
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
    fn groups_are_found_where_they_are_mounted() {
        let mounts = crate::mounts::parse(
            "1 0 0:1 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n2 0 0:2 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n\
             3 0 0:3 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd\n",
        );
        let found = groups_in("5:pids:/x\n4:cpu,cpuacct:/a.slice/b\n1:name=systemd:/../c\n0::/\n", &mounts);
        assert_eq!(found, ["/sys/fs/cgroup/cpu/a.slice/b", "/sys/fs/cgroup/unified/"].map(PathBuf::from));
    }

    #[test]
    fn the_limit_of_starts_is_lifted_before_each() {
        assert_eq!(no_limit("apache2.service"), ["reset-failed", "apache2.service"]);
        assert_eq!(again("apache2.service"), ["restart", "apache2.service"]);
    }
}
