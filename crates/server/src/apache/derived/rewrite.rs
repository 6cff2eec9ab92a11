//! The machine's configuration with everything that it shares with the machine's own server replaced: ports, logs, pid file, locks, caches.
//!
//! Everything else stays as Apache read it. What a module of somebody else's writes elsewhere by directives that are not known here it
//! writes there still.

use crate::apache::machine::Machine;
use crate::apache::machine::ports::moved;
use crate::apache::machine::tree::{Line, Place, words};
use crate::apache::render::quoted;
use crate::own::Door;
use std::path::{Path, PathBuf};

/// What the instance has of its own, or must not do a second time.
const DROPPED: [&str; 9] = [
    "PidFile",
    "ScoreBoardFile",
    "LockFile",
    "NameVirtualHost",
    "CoreDumpDirectory",
    "ChrootDir",
    "HeartbeatAddress",
    "HeartbeatListen",
    "Listen",
];
/// Whom workers run as; only root can choose.
const ACCOUNT: [&str; 2] = ["User", "Group"];
/// Directives whose first argument is a log: a file, or `|` and a program.
const LOGS: [&str; 11] = [
    "CookieLog",
    "CustomLog",
    "ErrorLog",
    "ForensicLog",
    "GlobalLog",
    "JkLogFile",
    "ScriptLog",
    "SecAuditLog",
    "SecDebugLog",
    "TransferLog",
    "RewriteLog",
];
/// Places for logs that are no files.
const STREAMS: [&str; 3] = ["/dev/null", "/dev/stdout", "/dev/stderr"];
/// Directives whose first argument is a socket or file that a server makes for itself.
const STATE: [&str; 6] =
    ["DavLockDB", "FcgidProcessTableFile", "JkShmFile", "PerfLogFile", "ScriptSock", "WSGISocketPrefix"];
/// Directives whose first argument is a folder that workers write to.
const FOLDERS: [&str; 4] = ["CacheRoot", "FastCgiIpcDir", "FcgidIPCDir", "SecDataDir"];
/// Directives whose first argument may be `shmcb:/file(size)`.
const SHARED: [&str; 4] = ["AuthnCacheSOCache", "CacheSocache", "SSLSessionCache", "SSLStaplingCache"];

/// What is asked for.
pub(super) struct Wanted<'a> {
    pub(super) machine: &'a Machine,
    pub(super) doors: &'a [Door],
    /// A port for each door, and one more for the pages that tell what is in force.
    pub(super) ports: &'a [u16],
    /// The instance's folder.
    pub(super) dir: &'a Path,
    pub(super) is_root: bool,
    /// What those pages are.
    pub(super) control: &'a str,
}

/// The configuration as text, and where each of its lines comes from.
#[derive(Debug, Default)]
pub(super) struct Rewritten {
    pub(super) text: String,
    places: Vec<Option<Place>>,
    /// Folders that workers write to.
    pub(super) folders: Vec<PathBuf>,
    /// Logs that were elsewhere, each once: what was said, and the file of ours.
    logs: Vec<(String, PathBuf)>,
    /// How many of them went to a program.
    pub(super) piped: usize,
}

/// Writes it.
pub(super) fn rewrite(wanted: &Wanted<'_>) -> Rewritten {
    let mut made = Rewritten::default();
    made.head(wanted);
    for line in &wanted.machine.lines {
        if let Some(text) = made.line(line, wanted) {
            made.add(&text, Some(&line.place));
        }
    }
    wanted.control.lines().for_each(|line| made.add(line, None));
    made
}

impl Rewritten {
    /// Where a line of the text, from 1, stands in the machine's configuration.
    pub(super) fn place(&self, line: usize) -> Option<&Place> {
        self.places.get(line.checked_sub(1)?)?.as_ref()
    }

    fn add(&mut self, text: &str, place: Option<&Place>) {
        self.text.push_str(text);
        self.text.push('\n');
        self.places.push(place.cloned());
    }

    fn head(&mut self, wanted: &Wanted<'_>) {
        let Wanted { machine, doors, ports, dir, .. } = wanted;
        let lines = [
            format!("ServerRoot {}", quoted(&machine.server_root)),
            // The configuration's own takes its place, if it has one.
            "ServerName 127.0.0.1".to_owned(),
            format!("DefaultRuntimeDir {}", quoted(&dir.join("run"))),
            format!("PidFile {}", quoted(&dir.join("run/httpd.pid"))),
            format!("ErrorLog {}", quoted(&dir.join("logs/error.log"))),
        ];
        lines.iter().for_each(|line| self.add(line, None));
        for file in &machine.load_files {
            self.add(&format!("LoadFile {}", quoted(file)), None);
        }
        for module in &machine.modules {
            self.add(&format!("LoadModule {} {}", module.symbol, quoted(&module.file)), None);
        }
        for (door, port) in doors.iter().zip(*ports) {
            self.add(format!("Listen 127.0.0.1:{port} {}", door.protocol).trim_end(), None);
        }
    }

    /// What becomes of a line; `None` when nothing is left of it.
    fn line(&mut self, line: &Line, wanted: &Wanted<'_>) -> Option<String> {
        let name = line.name();
        let is = |known: &[&str]| known.iter().any(|known| known.eq_ignore_ascii_case(name));
        if is(&DROPPED) || is(&ACCOUNT) && !wanted.is_root {
            None
        } else if is(&["<VirtualHost"]) {
            let addresses = words(line.arguments().trim_end_matches('>'));
            let moved: Vec<String> =
                addresses.iter().flat_map(|address| moved(address, wanted.doors, wanted.ports)).collect();
            Some(format!("<VirtualHost {}>", moved.join(" ")))
        } else if is(&LOGS) {
            Some(self.with_first(line, |made, log| made.log(name, log, wanted.dir)))
        } else if is(&STATE) {
            Some(self.with_first(line, |_, file| in_run(file, wanted.dir)))
        } else if is(&FOLDERS) {
            Some(self.with_first(line, |made, folder| {
                let own = PathBuf::from(in_run(folder, wanted.dir));
                made.folders.push(own.clone());
                own.to_string_lossy().into_owned()
            }))
        } else if is(&SHARED) || is(&["Mutex"]) {
            let mutex = is(&["Mutex"]);
            Some(self.with_first(line, |_, shared| moved_shared(shared, mutex, wanted.dir)))
        } else {
            Some(line.text.clone())
        }
    }

    /// The line with another first argument.
    fn with_first(&mut self, line: &Line, new: impl FnOnce(&mut Rewritten, &str) -> String) -> String {
        let arguments = line.arguments();
        let Some(first) = words(arguments).into_iter().next() else { return line.text.clone() };
        let new = new(self, &first);
        let rest = behind_first(arguments);
        format!("{} {} {rest}", line.name(), quoted(Path::new(&new))).trim_end().to_owned()
    }

    /// A log of the instance's own for one of the machine's.
    fn log(&mut self, name: &str, log: &str, dir: &Path) -> String {
        if STREAMS.contains(&log) {
            return log.to_owned();
        }
        if let Some((_, own)) = self.logs.iter().find(|(known, _)| known == log) {
            return own.to_string_lossy().into_owned();
        }
        let number = self.logs.len();
        let piped = log.starts_with('|');
        self.piped += usize::from(piped);
        let end = match Path::new(log).file_name() {
            Some(name) if !piped && !log.starts_with("syslog") => name.to_string_lossy().into_owned(),
            _ => name.to_ascii_lowercase(),
        };
        // The one that is looked into when something goes wrong.
        let main =
            name.eq_ignore_ascii_case("ErrorLog") && !self.logs.iter().any(|(_, own)| own.ends_with("error.log"));
        let own = dir.join("logs").join(if main { "error.log".to_owned() } else { format!("{number}-{end}") });
        self.logs.push((log.to_owned(), own.clone()));
        own.to_string_lossy().into_owned()
    }
}

/// What follows the first argument, as it is written.
fn behind_first(arguments: &str) -> &str {
    let end = match arguments.chars().next() {
        Some(quote @ ('"' | '\'')) => {
            let mut escaped = false;
            let closing = arguments.char_indices().skip(1).find(|&(_, c)| {
                let ends = c == quote && !escaped;
                escaped = c == '\\' && !escaped;
                ends
            });
            closing.map_or(arguments.len(), |(at, _)| at + 1)
        }
        _ => arguments.find(char::is_whitespace).unwrap_or(arguments.len()),
    };
    arguments[end..].trim_start()
}

fn in_run(path: &str, dir: &Path) -> String {
    let name = Path::new(path).file_name().unwrap_or_default();
    dir.join("run").join(name).to_string_lossy().into_owned()
}

/// `shmcb:/run/x(512000)` with another file, `file:/run/lock` with another folder; what names no path stays.
fn moved_shared(text: &str, is_folder: bool, dir: &Path) -> String {
    let Some((kind, rest)) = text.split_once(':').filter(|(_, rest)| rest.contains('/') || is_folder) else {
        return text.to_owned();
    };
    if is_folder {
        return format!("{kind}:{}", dir.join("run").display());
    }
    let (path, size) = rest.find('(').map_or((rest, ""), |at| rest.split_at(at));
    format!("{kind}:{}{size}", in_run(path, dir))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shared_is_replaced() {
        let check = |text: &str, expected: &str| {
            assert_eq!(moved_shared(text, text.starts_with("file:"), Path::new("/d")), expected);
        };
        check("shmcb:/var/run/ssl_scache(512000)", "shmcb:/d/run/ssl_scache(512000)");
        check("shmcb", "shmcb");
        check("memcache:localhost", "memcache:localhost");
        check("file:/var/lock", "file:/d/run");
        assert_eq!(behind_first(r#""|/x \"a b\"" common env=!y"#), "common env=!y");
        assert_eq!(behind_first("a b"), "b");
        assert_eq!(behind_first("a"), "");
    }

    #[test]
    fn logs_are_kept_apart() {
        let mut made = Rewritten::default();
        let mut check =
            |name: &str, log: &str, expected: &str| assert_eq!(made.log(name, log, Path::new("/d")), expected);
        check("CustomLog", "/var/log/access.log", "/d/logs/0-access.log");
        check("ErrorLog", "/var/log/error.log", "/d/logs/error.log");
        check("ErrorLog", "/var/log/shop/error.log", "/d/logs/2-error.log");
        check("ErrorLog", "syslog:local1", "/d/logs/3-errorlog");
        check("CustomLog", "/var/log/access.log", "/d/logs/0-access.log");
        check("TransferLog", "|/usr/bin/rotatelogs /x 5", "/d/logs/4-transferlog");
        check("CustomLog", "/dev/null", "/dev/null");
        assert_eq!(made.piped, 1);
    }
}
