//! An Apache as Debian installs one, in a folder of a test's own: a copy of /etc/apache2 with ports, logs and pid file of its own,
//! started and stopped by Debian's own control script.

use crate::own::{Own, PATIENCE, eventually, free_port};
use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

const CONTROL: &str = "/usr/sbin/apachectl";
const ETC: &str = "/etc/apache2";

/// The copy. Dropping it stops the server.
pub struct Debian {
    folder: PathBuf,
    /// The port of the first site.
    pub port: u16,
}

impl Debian {
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

    /// Whether its main process lives.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.pid().is_some_and(|pid| {
            let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&command).contains(&*self.etc().to_string_lossy())
        })
    }
}

impl Own for Debian {
    const KIND: &'static str = "apache";

    fn new(folder: &Path) -> Option<Debian> {
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

    fn etc(&self) -> PathBuf {
        self.folder.join("apache2")
    }

    fn main(&self) -> PathBuf {
        self.etc().join("apache2.conf")
    }

    fn start(&self) {
        let output = self.control("start");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let listens = || std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_ok();
        // It logs that last of all.
        let log = || fs::read_to_string(self.folder.join("log/error.log")).unwrap_or_default();
        eventually("it listens", &self.folder.join("log/error.log"), || {
            self.is_alive() && listens() && log().contains("resuming normal operations")
        });
    }

    fn stop(&self) {
        if !self.is_alive() {
            return;
        }
        self.control("stop");
        let end = Instant::now() + PATIENCE;
        while self.is_alive() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn pid(&self) -> Option<u32> {
        fs::read_to_string(self.folder.join("run/apache2.pid")).ok()?.trim().parse().ok()
    }

    fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Debian {
    fn drop(&mut self) {
        self.stop();
    }
}
