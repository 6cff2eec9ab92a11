//! An nginx as Debian installs one, in a folder of a test's own: a copy of /etc/nginx with port, logs and pid file of its own, started by
//! nginx itself and stopped by a signal.

use crate::own::{Own, PATIENCE, eventually, free_port};
use std::fs;
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const PROGRAM: &str = "/usr/sbin/nginx";
const ETC: &str = "/etc/nginx";

/// The copy. Dropping it stops the server.
pub struct Nginx {
    folder: PathBuf,
    port: u16,
}

impl Nginx {
    /// Writes one of the configuration's files.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.etc().join(name), text).expect("our own file");
    }

    /// Writes the first site anew, with what else it says.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn site(&self, more: &str) {
        let (port, www) = (self.port, self.folder.join("www"));
        let text = format!(
            "server {{\n\tlisten 127.0.0.1:{port} default_server;\n\troot {};\n\tindex index.html;\n\tserver_name _;\n\
             \tlocation / {{\n\t\ttry_files $uri $uri/ =404;\n\t}}\n{more}}}\n",
            www.display()
        );
        self.write("sites-available/default", &text);
    }

    /// Its own folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Has it read its configuration again.
    ///
    /// # Panics
    /// When it cannot be told.
    pub fn signal(&self, name: &str) {
        let told = Command::new(PROGRAM).arg("-c").arg(self.main()).args(["-s", name]).status();
        assert!(told.is_ok_and(|status| status.success()), "nginx -s {name}");
    }

    /// Numbers of its worker processes; none when it does not run.
    #[must_use]
    pub fn workers(&self) -> Vec<u32> {
        let Some(pid) = self.pid() else { return Vec::new() };
        let listed = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        listed.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
    }

    fn is_alive(&self) -> bool {
        self.pid().is_some_and(|pid| {
            let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&command).contains(&*self.etc().to_string_lossy())
        })
    }

    fn log(&self) -> PathBuf {
        self.folder.join("log/error.log")
    }
}

impl Own for Nginx {
    const KIND: &'static str = "nginx";

    fn new(folder: &Path) -> Option<Nginx> {
        if !Path::new(PROGRAM).exists() || !Path::new(ETC).join("sites-enabled").exists() {
            return None;
        }
        for name in ["run", "log", "www"] {
            fs::create_dir_all(folder.join(name)).expect("a folder");
            fs::set_permissions(folder.join(name), fs::Permissions::from_mode(0o755)).expect("our own folder");
        }
        let nginx = Nginx { folder: folder.to_owned(), port: free_port() };
        let copied = Command::new("cp").arg("-a").arg(ETC).arg(nginx.etc()).status();
        assert!(copied.is_ok_and(|status| status.success()), "room for a copy");
        let moved = |text: String, from: &str, to: &str| text.replace(from, &folder.join(to).to_string_lossy());
        let main = fs::read_to_string(nginx.main()).expect("a file");
        let main = [("/run/nginx.pid", "run/nginx.pid"), ("/var/log/nginx", "log"), ("/etc/nginx", "nginx")]
            .iter()
            .fold(main, |text, (from, to)| moved(text, from, to));
        nginx.write("nginx.conf", &main);
        // A link that leads out of the copy.
        let link = nginx.etc().join("sites-enabled/default");
        fs::remove_file(&link).expect("our own file");
        symlink(nginx.etc().join("sites-available/default"), &link).expect("our own folder");
        nginx.write("conf.d/own.conf", "limit_conn_zone $binary_remote_addr zone=own:1m;\n");
        fs::set_permissions(nginx.etc().join("conf.d/own.conf"), fs::Permissions::from_mode(0o640)).expect("our own");
        fs::write(folder.join("www/index.html"), "the first site\n").expect("our own file");
        nginx.site("");
        Some(nginx)
    }

    fn etc(&self) -> PathBuf {
        self.folder.join("nginx")
    }

    fn main(&self) -> PathBuf {
        self.etc().join("nginx.conf")
    }

    fn port(&self) -> u16 {
        self.port
    }

    fn pid(&self) -> Option<u32> {
        fs::read_to_string(self.folder.join("run/nginx.pid")).ok()?.trim().parse().ok()
    }

    fn start(&self) {
        let output = Command::new(PROGRAM).arg("-c").arg(self.main()).output().expect("nginx");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let listens = || TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_ok();
        eventually("it listens", &self.log(), || self.is_alive() && listens() && !self.workers().is_empty());
    }

    fn stop(&self) {
        if !self.is_alive() {
            return;
        }
        self.signal("stop");
        let end = Instant::now() + PATIENCE;
        while self.is_alive() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        self.stop();
    }
}
