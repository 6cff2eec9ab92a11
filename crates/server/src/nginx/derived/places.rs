//! Files, folders and sockets of a copy's own, each for one of the machine's.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A socket's path may have 107 bytes.
const SOCKET_MOST: usize = 107;
/// Places for logs that are no files of anybody's.
const STREAMS: [&str; 5] = ["off", "stderr", "/dev/null", "/dev/stdout", "/dev/stderr"];

/// What the name of a copy's socket ends with.
pub(super) const SOCKET: &str = "socket";
/// Where workers may make files.
pub(super) const BY_NAME: &str = "logs/by-name";

/// What stands where.
#[derive(Debug)]
pub(super) struct Places {
    /// The instance's folder.
    dir: PathBuf,
    /// What relative names are below.
    prefix: PathBuf,
    known: BTreeMap<PathBuf, PathBuf>,
    /// Logs that the machine's server sends elsewhere.
    sent: Vec<String>,
}

impl Places {
    pub(super) fn new(dir: &Path, prefix: &Path) -> Places {
        Places { dir: dir.to_owned(), prefix: prefix.to_owned(), known: BTreeMap::new(), sent: Vec::new() }
    }

    /// A log; `is_main` is the one that is looked into when something goes wrong.
    pub(super) fn log(&mut self, name: &str, said: &str, is_main: bool) -> String {
        if STREAMS.contains(&said) || said.starts_with("memory:") {
            return said.to_owned();
        }
        if said.starts_with("syslog:") {
            if !self.sent.iter().any(|known| known == said) {
                self.sent.push(said.to_owned());
            }
            return self.own(Path::new(said), "logs", name);
        }
        let main = self.dir.join("logs/error.log");
        if is_main && !self.known.values().any(|own| *own == main) {
            self.known.insert(self.prefix.join(said), main);
        }
        if said.contains('$') {
            // The name is another for each request, and workers open it, who may not write beside the others.
            let file = said.trim_matches('/').replace('/', "-");
            return self.dir.join(BY_NAME).join(file).to_string_lossy().into_owned();
        }
        self.own(&self.prefix.join(said), "logs", name)
    }

    /// A file or folder that is no log.
    pub(super) fn state(&mut self, name: &str, said: &str) -> String {
        self.own(&self.prefix.join(said), "run", name)
    }

    /// A socket to listen on; `None` where its path would be too long.
    pub(super) fn socket(&mut self, said: &str) -> Option<String> {
        let number = self.known.len();
        let own = self.dir.join("run").join(format!("{number}.{SOCKET}"));
        let own = self.known.entry(said.into()).or_insert(own).to_string_lossy().into_owned();
        Some(own).filter(|own| own.len() <= SOCKET_MOST)
    }

    /// The socket of the copy's for one of the machine's own server.
    pub(super) fn known_socket(&self, said: &str) -> Option<String> {
        self.known.get(Path::new(said)).map(|own| own.to_string_lossy().into_owned())
    }

    /// How many logs are sent elsewhere by the machine's own.
    pub(super) fn sent(&self) -> usize {
        self.sent.len()
    }

    fn own(&mut self, path: &Path, folder: &str, name: &str) -> String {
        if path.starts_with(&self.dir) {
            return path.to_string_lossy().into_owned();
        }
        let number = self.known.len();
        let file = path.file_name().filter(|_| path.is_absolute()).map_or(name.into(), |file| file.to_string_lossy());
        let own = self.dir.join(folder).join(format!("{number}-{file}"));
        self.known.entry(path.to_owned()).or_insert(own).to_string_lossy().into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_its_own() {
        let mut places = Places::new(Path::new("/d"), Path::new("/p"));
        let mut log = |said: &str, is_main: bool, expected: &str| {
            assert_eq!(places.log("access_log", said, is_main), expected, "{said}");
        };
        log("/var/log/a.log", false, "/d/logs/0-a.log");
        log("logs/error.log", true, "/d/logs/error.log");
        log("/p/logs/error.log", false, "/d/logs/error.log");
        log("/var/log/shop/error.log", true, "/d/logs/2-error.log");
        log("/var/log/a.log", false, "/d/logs/0-a.log");
        log("/var/log/$host/a.log", false, "/d/logs/by-name/var-log-$host-a.log");
        log("syslog:server=unix:/dev/log,nohostname", false, "/d/logs/3-access_log");
        log("off", false, "off");
        log("/d/logs/mine", false, "/d/logs/mine");
        assert_eq!(places.sent(), 1);
        assert_eq!(places.state("proxy_cache_path", "/var/cache/x"), "/d/run/4-x");
        assert_eq!(places.socket("/run/n.sock").as_deref(), Some("/d/run/5.socket"));
        assert_eq!(places.known_socket("/run/n.sock").as_deref(), Some("/d/run/5.socket"));
        assert_eq!(places.known_socket("/run/php.sock"), None);
        let long = format!("/{}", "x".repeat(100));
        assert_eq!(Places::new(Path::new(&long), Path::new("/p")).socket("/run/n.sock"), None);
    }
}
