//! An Apache as Debian installs one, in a folder of a test's own: a copy of /etc/apache2 with ports, logs and pid file of its own,
//! started and stopped by Debian's own control script.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

const CONTROL: &str = "/usr/sbin/apachectl";
const ETC: &str = "/etc/apache2";
/// For what takes milliseconds on a quiet machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// The copy. Dropping it stops the server.
pub struct Debian {
    folder: PathBuf,
    /// The port of the first site.
    pub port: u16,
}

/// What must be the same again: by path its mode, owner, group, time of change in nanoseconds, and content or target.
pub type Snapshot = BTreeMap<PathBuf, (u32, u32, u32, i128, Vec<u8>)>;

impl Debian {
    /// Copies the tree into `folder`; `None` where there is no Debian Apache. Nothing is started.
    ///
    /// # Panics
    /// When the folder cannot be written.
    #[must_use]
    pub fn new(folder: &Path) -> Option<Debian> {
        if !Path::new(CONTROL).exists() || !Path::new(ETC).join("envvars").exists() {
            return None;
        }
        for name in ["run", "lock", "log", "www"] {
            fs::create_dir_all(folder.join(name)).expect("a folder");
            fs::set_permissions(folder.join(name), fs::Permissions::from_mode(0o755)).expect("our own folder");
        }
        let etc = folder.join("apache2");
        let copied = Command::new("cp").arg("-a").arg(ETC).arg(&etc).status();
        assert!(copied.is_ok_and(|status| status.success()), "room for a copy");
        let debian = Debian { folder: folder.to_owned(), port: free_port() };
        let names = [("RUN_DIR", "run"), ("LOCK_DIR", "lock"), ("LOG_DIR", "log"), ("PID_FILE", "run/apache2.pid")];
        let own = names.map(|(name, place)| format!("export APACHE_{name}='{}'\n", folder.join(place).display()));
        let envvars = fs::read_to_string(etc.join("envvars")).expect("a file") + &own.concat();
        fs::write(etc.join("envvars"), envvars).expect("our own file");
        fs::write(folder.join("www/index.html"), "the first site\n").expect("our own file");
        debian.write("ports.conf", &format!("Listen {}\n", debian.port));
        debian.site(debian.port, "www", "");
        Some(debian)
    }

    /// Writes one of the configuration's files.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.etc().join(name), text).expect("our own file");
    }

    /// Writes the first site anew: its port, the folder it serves, and what else it says.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn site(&self, port: u16, www: &str, more: &str) {
        let www = self.folder.join(www);
        let text = format!(
            "<VirtualHost *:{port}>\nDocumentRoot '{0}'\nErrorLog ${{APACHE_LOG_DIR}}/error.log\nCustomLog ${{APACHE_LOG_DIR}}/access.log combined\n\
             <Directory '{0}'>\nRequire all granted\n</Directory>\n{more}</VirtualHost>\n",
            www.display()
        );
        self.write("sites-available/000-default.conf", &text);
    }

    /// Its own folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Its /etc/apache2.
    #[must_use]
    pub fn etc(&self) -> PathBuf {
        self.folder.join("apache2")
    }

    /// Its main file.
    #[must_use]
    pub fn main(&self) -> PathBuf {
        self.etc().join("apache2.conf")
    }

    /// Calls the control script.
    ///
    /// # Panics
    /// When there is none.
    pub fn control(&self, word: &str) -> Output {
        let mut command = Command::new(CONTROL);
        // Where systemd is, the script would have it start a service of that name.
        command.arg(word).env("APACHE_CONFDIR", self.etc()).env("APACHE_STARTED_BY_SYSTEMD", "1");
        command.output().expect("the control script")
    }

    /// Starts it and waits until it listens.
    ///
    /// # Panics
    /// When it does not.
    pub fn start(&self) {
        let output = self.control("start");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let listens = || std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_ok();
        // It logs that last of all.
        let log = || fs::read_to_string(self.folder.join("log/error.log")).unwrap_or_default();
        self.eventually("it listens", || self.is_alive() && listens() && log().contains("resuming normal operations"));
    }

    /// Stops it, if it runs.
    pub fn stop(&self) {
        if !self.is_alive() {
            return;
        }
        self.control("stop");
        let end = Instant::now() + PATIENCE;
        while self.is_alive() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The pid that it wrote down.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        fs::read_to_string(self.folder.join("run/apache2.pid")).ok()?.trim().parse().ok()
    }

    /// Whether its main process lives.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.pid().is_some_and(|pid| {
            let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&command).contains(&*self.etc().to_string_lossy())
        })
    }

    /// The configuration as it is now.
    ///
    /// # Panics
    /// When it cannot be read.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let mut found = Snapshot::new();
        let mut folders = vec![self.etc()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).into_iter().flatten() {
                let path = entry.expect("an entry").path();
                // What goes while we look, because it is just being given back, is not there.
                let Some(facts) = facts(&path) else { continue };
                if path.is_dir() && !path.is_symlink() {
                    folders.push(path.clone());
                }
                found.insert(path, facts);
            }
            found.extend(facts(&folder).map(|facts| (folder, facts)));
        }
        found
    }

    /// Waits until something is so.
    ///
    /// # Panics
    /// When it is not after a while, with the server's log.
    pub fn eventually(&self, what: &str, mut condition: impl FnMut() -> bool) {
        let end = Instant::now() + PATIENCE;
        while !condition() {
            let log = fs::read_to_string(self.folder.join("log/error.log")).unwrap_or_default();
            assert!(Instant::now() < end, "not in {PATIENCE:?}: {what}\n{log}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Debian {
    fn drop(&mut self) {
        self.stop();
    }
}

/// What of a configuration is not as it was, one sentence each.
#[must_use]
pub fn changed(before: &Snapshot, after: &Snapshot) -> Vec<String> {
    let gone =
        before.keys().filter(|path| !after.contains_key(*path)).map(|path| format!("{} is gone", path.display()));
    let other = after.iter().filter_map(|(path, now)| {
        let name = path.display();
        let Some(then) = before.get(path) else { return Some(format!("{name} is new")) };
        let what = if then.4 != now.4 { "content" } else { "mode, owner or time" };
        (then != now).then(|| {
            format!(
                "{name} has another {what}: {:?} {:?}",
                (then.0, then.1, then.2, then.3),
                (now.0, now.1, now.2, now.3)
            )
        })
    });
    gone.chain(other).collect()
}

/// A port that was free just now.
///
/// # Panics
/// When there is none.
#[must_use]
pub fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    listener.local_addr().expect("an address").port()
}

/// `None` for what is not there.
fn facts(path: &Path) -> Option<(u32, u32, u32, i128, Vec<u8>)> {
    let is_there = |error: std::io::Error| assert_eq!(error.kind(), ErrorKind::NotFound, "{}", path.display());
    let facts = path.symlink_metadata().map_err(is_there).ok()?;
    let content = if facts.is_symlink() {
        fs::read_link(path).map_err(is_there).ok()?.into_os_string().into_encoded_bytes()
    } else if facts.is_dir() {
        Vec::new()
    } else {
        fs::read(path).map_err(is_there).ok()?
    };
    let changed = i128::from(facts.mtime()) * 1_000_000_000 + i128::from(facts.mtime_nsec());
    Some((facts.mode(), facts.uid(), facts.gid(), changed, content))
}
