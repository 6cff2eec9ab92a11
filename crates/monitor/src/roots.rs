//! Which process is the root of a server's tree: the master of Apache, nginx or PHP-FPM, found by its name.

use crate::text::{number, stat};
use std::path::Path;

/// A server whose processes are known by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// `apache2` or `httpd`.
    Apache,
    /// `nginx`.
    Nginx,
    /// `php-fpm`, with or without a version.
    PhpFpm,
}

impl Known {
    /// The server of that name, as it is typed: `apache`, `nginx`, `php-fpm`.
    #[must_use]
    pub fn named(name: &str) -> Option<Known> {
        match name {
            "apache" => Some(Known::Apache),
            "nginx" => Some(Known::Nginx),
            "php-fpm" => Some(Known::PhpFpm),
            _ => None,
        }
    }

    /// As it is typed.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Known::Apache => "apache",
            Known::Nginx => "nginx",
            Known::PhpFpm => "php-fpm",
        }
    }

    /// Whether a process of that name, as the kernel has it, is one of its.
    fn has(self, comm: &str) -> bool {
        match self {
            Known::Apache => matches!(comm, "apache2" | "httpd"),
            Known::Nginx => comm == "nginx",
            Known::PhpFpm => comm
                .strip_prefix("php-fpm")
                .is_some_and(|version| version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')),
        }
    }
}

/// Why there is no root.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RootError {
    /// No such process.
    #[error("no {0} runs here; start it first, or name a process by its number")]
    None(&'static str),
    /// More than one master.
    #[error("{} processes are masters of {server}: {}; name one by its number", masters.len(), list(masters))]
    Several {
        /// The server.
        server: &'static str,
        /// Number and command line of each.
        masters: Vec<(u32, String)>,
    },
    /// The processes cannot be listed.
    #[error("{0} cannot be listed: {1}")]
    Proc(String, String),
}

fn list(masters: &[(u32, String)]) -> String {
    masters.iter().map(|(pid, words)| format!("{pid} ({words})")).collect::<Vec<_>>().join(", ")
}

/// The process whose descendants are the server: one of its name whose parent is not.
pub fn root_of(proc_root: &Path, server: Known) -> Result<u32, RootError> {
    let error = |error: std::io::Error| RootError::Proc(proc_root.display().to_string(), error.to_string());
    let entries = std::fs::read_dir(proc_root).map_err(error)?;
    let mut ours: Vec<(u32, u32)> = Vec::new();
    for entry in entries.flatten() {
        let pid = number(entry.file_name().as_encoded_bytes()).and_then(|pid| u32::try_from(pid).ok());
        // One that has ended since the listing is none of them.
        let found = pid.and_then(|pid| Some((pid, name_and_parent(&std::fs::read(entry.path().join("stat")).ok()?)?)));
        if let Some((pid, (name, parent))) = found
            && server.has(&name)
        {
            ours.push((pid, parent));
        }
    }
    ours.sort_unstable();
    let masters: Vec<u32> =
        ours.iter().filter(|(_, parent)| !ours.iter().any(|(pid, _)| pid == parent)).map(|&(pid, _)| pid).collect();
    match masters[..] {
        [] => Err(RootError::None(server.name())),
        [pid] => Ok(pid),
        _ => {
            let masters = masters.into_iter().map(|pid| (pid, words(proc_root, pid))).collect();
            Err(RootError::Several { server: server.name(), masters })
        }
    }
}

/// When a process was started, in clock ticks after the machine; `None` when there is no such process, or it only waits to be reaped.
/// Together with its number, no other process has it.
#[must_use]
pub fn started(proc_root: &Path, pid: u32) -> Option<u64> {
    let text = std::fs::read(proc_root.join(pid.to_string()).join("stat")).ok()?;
    name_and_parent(&text)?;
    stat(&text)?.1.nth(19).and_then(number)
}

/// Clock ticks since the machine's start, a hundred in a second, as they are counted in [`started`].
#[must_use]
pub fn ticks_since_boot(proc_root: &Path) -> Option<u64> {
    let text = std::fs::read_to_string(proc_root.join("uptime")).ok()?;
    let seconds: f64 = text.split_ascii_whitespace().next()?.parse().ok()?;
    Some((seconds * 100.0) as u64)
}

/// The name and the parent of a process that has not ended; one that waits to be reaped has.
fn name_and_parent(text: &[u8]) -> Option<(String, u32)> {
    let (name, mut fields) = stat(text)?;
    let alive = !matches!(fields.next()?, b"Z" | b"X");
    let parent = number(fields.next()?).and_then(|parent| u32::try_from(parent).ok())?;
    alive.then(|| (String::from_utf8_lossy(name).into_owned(), parent))
}

fn words(proc_root: &Path, pid: u32) -> String {
    let line = std::fs::read(proc_root.join(pid.to_string()).join("cmdline")).unwrap_or_default();
    let words: Vec<_> =
        line.split(|&byte| byte == 0).filter(|word| !word.is_empty()).map(String::from_utf8_lossy).collect();
    if words.is_empty() { "no command line".to_owned() } else { words.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::fake_proc::{FakeProcess, FakeTree};

    fn check(processes: &[(u32, u32, &str, char)], server: Known, expected: Result<u32, &str>) {
        let dir = tempfile::tempdir().unwrap();
        let tree = FakeTree::new(dir.path());
        tree.file("self/stat", "not a number");
        tree.file("20/cmdline", "/usr/sbin/apache2\0-k\0start\0");
        for &(pid, parent, name, state) in processes {
            tree.process(FakeProcess { pid, parent, name, state, ticks: [0; 4], threads: 1, resident_pages: 1 });
        }
        assert_eq!(root_of(dir.path(), server).map_err(|error| error.to_string()), expected.map_err(str::to_owned));
    }

    #[test]
    fn the_master_of_a_name() {
        let apache = [(1, 0, "init", 'S'), (20, 1, "apache2", 'S'), (21, 20, "apache2", 'S'), (9, 21, "sh", 'S')];
        check(&apache, Known::Apache, Ok(20));
        check(&apache, Known::Nginx, Err("no nginx runs here; start it first, or name a process by its number"));
        let fpm = [(30, 1, "php-fpm8.2", 'S'), (31, 30, "php-fpm8.2", 'S'), (32, 1, "php-fpm-monitor", 'S')];
        check(&fpm, Known::PhpFpm, Ok(30));
        let dead = [(20, 1, "httpd", 'Z'), (40, 1, "httpd", 'S')];
        check(&dead, Known::Apache, Ok(40));
    }

    #[test]
    fn several_masters_are_named() {
        let two = [(20, 1, "apache2", 'S'), (21, 20, "apache2", 'S'), (70, 1, "apache2", 'S')];
        let expected = "2 processes are masters of apache: 20 (/usr/sbin/apache2 -k start), 70 (no command line); \
            name one by its number";
        check(&two, Known::Apache, Err(expected));
    }

    #[test]
    fn when_a_process_was_started() {
        let dir = tempfile::tempdir().unwrap();
        let tree = FakeTree::new(dir.path());
        tree.file("uptime", "12.34 99.00\n");
        let process = |pid, state| FakeProcess {
            pid,
            parent: 1,
            name: "a b) (c",
            state,
            ticks: [0; 4],
            threads: 1,
            resident_pages: 1,
        };
        tree.process(process(7, 'S'));
        tree.process(process(8, 'Z'));
        tree.file("9/stat", "9 (cut) S 1 0");
        let found = [7, 8, 9, 10].map(|pid| started(dir.path(), pid));
        assert_eq!((found, ticks_since_boot(dir.path())), ([Some(4242), None, None, None], Some(1234)));
        let ours = started(Path::new("/proc"), std::process::id());
        assert!(ours.is_some() && ours <= ticks_since_boot(Path::new("/proc")), "{ours:?}");
    }

    #[test]
    fn names_as_they_are_typed() {
        for name in ["apache", "nginx", "php-fpm"] {
            assert_eq!(Known::named(name).map(Known::name), Some(name));
        }
        assert_eq!(Known::named("httpd"), None);
    }
}
