//! How a server of the machine's was started, read from the kernel: by systemd, or by a command that is repeated for a full restart.

use super::Style;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// What nginx is started with: its own environment cannot be seen from outside.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

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

/// How a running server was started; `None` when whoever started it holds it in the foreground.
pub(super) fn of(pid: u32, style: Style) -> Option<Start> {
    let proc = |name: &str| fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
    if let Some(unit) =
        unit_in(&String::from_utf8_lossy(&proc("cgroup"))).filter(|_| Path::new("/run/systemd/system").exists())
    {
        return Some(Start::Unit(unit));
    }
    let pieces = |bytes: Vec<u8>| -> Vec<OsString> {
        bytes
            .split(|&byte| byte == 0)
            .filter(|piece| !piece.is_empty())
            .map(|piece| OsString::from_vec(piece.to_vec()))
            .collect()
    };
    let words = pieces(proc("cmdline"));
    let (words, env) = match style {
        Style::Apache => (words, pieces(proc("environ")).into_iter().filter_map(pair).collect()),
        // Its title stands where words and environment were.
        Style::Nginx => (words_of_nginx(pid)?, vec![("PATH".into(), PATH.into())]),
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
        return None;
    }
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

/// `NAME=value`.
fn pair(piece: OsString) -> Option<(OsString, OsString)> {
    let bytes = piece.as_bytes();
    let at = bytes.iter().position(|&byte| byte == b'=')?;
    Some((OsString::from_vec(bytes[..at].to_vec()), OsString::from_vec(bytes[at + 1..].to_vec())))
}

/// The words that a master of nginx was started with, as its title repeats them, `nginx: master process nginx -c FILE -g daemon on;`;
/// `None` when it is none. Where its values have blanks is known only of the directives behind `-g`, which end with `;`.
#[must_use]
pub fn words_of_nginx(pid: u32) -> Option<Vec<OsString>> {
    let title = fs::read_to_string(format!("/proc/{pid}/cmdline")).ok()?;
    let exe = fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    words_in_title(title.trim_end_matches('\0'), &exe)
}

fn words_in_title(title: &str, exe: &Path) -> Option<Vec<OsString>> {
    let mut said = title.strip_prefix("nginx: master process ")?.split_ascii_whitespace().skip(1).peekable();
    // An updated program's old file is gone.
    let exe = exe.to_string_lossy();
    let mut words: Vec<OsString> = vec![exe.strip_suffix(" (deleted)").unwrap_or(&exe).into()];
    while let Some(word) = said.next() {
        words.push(word.into());
        if word == "-g" {
            let mut lines = Vec::new();
            while let Some(word) = said.next_if(|word| !word.starts_with('-')) {
                lines.push(word);
            }
            words.push(lines.join(" ").into());
        }
    }
    Some(words)
}

/// The service of `0::/system.slice/apache2.service`.
fn unit_in(cgroup: &str) -> Option<String> {
    let mut paths = cgroup.lines().filter_map(|line| line.splitn(3, ':').nth(2));
    paths.find_map(|path| Some(path.rsplit('/').find(|part| part.ends_with(".service"))?.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_service_is_read_from_its_group() {
        assert_eq!(
            unit_in("12:pids:/\n1:name=systemd:/system.slice/apache2.service\n").as_deref(),
            Some("apache2.service")
        );
        assert_eq!(
            unit_in("0::/system.slice/system-httpd.slice/httpd@a.service\n").as_deref(),
            Some("httpd@a.service")
        );
        assert_eq!(unit_in("0::/user.slice/session-1.scope\n"), None);
    }

    #[test]
    fn the_words_of_nginx_stand_in_its_title() {
        let check = |title: &str, expected: Option<&[&str]>| {
            let words = words_in_title(title, Path::new("/usr/sbin/nginx"));
            let words: Option<Vec<String>> =
                words.map(|words| words.iter().map(|word| word.to_string_lossy().into_owned()).collect());
            assert_eq!(words, expected.map(|words| words.iter().map(ToString::to_string).collect()), "{title}");
        };
        check("nginx: master process nginx", Some(&["/usr/sbin/nginx"]));
        check(
            "nginx: master process /usr/sbin/nginx -g daemon on; master_process on; -c /a/b.conf",
            Some(&["/usr/sbin/nginx", "-g", "daemon on; master_process on;", "-c", "/a/b.conf"]),
        );
        check("nginx: worker process", None);
    }
}
