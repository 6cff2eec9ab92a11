//! An Apache as RHEL has it: a program built with the paths of RHEL's layout below a root (`cargo xtask setup --redhat`), and a
//! configuration laid out as RHEL's package does, started as its control script does. There is one root, so one at a time.

use crate::own::{Own, PATIENCE, eventually, free_port};
use std::fs;
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// Where it is built, below cargo's target folder.
pub const BELOW: &str = "redhat/root";

/// Modules, as RHEL's `conf.modules.d/00-base.conf` loads them.
const BASE: [&str; 10] =
    ["alias", "authz_core", "authz_host", "dir", "env", "headers", "log_config", "mime", "setenvif", "unixd"];

/// The server. Dropping it stops it.
pub struct RedHat {
    root: PathBuf,
    port: u16,
}

impl RedHat {
    /// Its program.
    #[must_use]
    pub fn program(&self) -> PathBuf {
        self.root.join("usr/sbin/httpd")
    }

    /// Calls the control script.
    ///
    /// # Panics
    /// When there is none.
    pub fn control(&self, word: &str) -> Output {
        Command::new(self.root.join("usr/sbin/apachectl")).arg(word).output().expect("the control script")
    }

    fn is_alive(&self) -> bool {
        self.pid().is_some_and(|pid| {
            let exe = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
            exe == self.program()
        })
    }

    fn log(&self) -> PathBuf {
        self.root.join("var/log/httpd/error_log")
    }
}

impl Own for RedHat {
    const KIND: &'static str = "apache";

    /// `folder` is cargo's target folder.
    fn new(folder: &Path) -> Option<RedHat> {
        let root = folder.join(BELOW);
        if !root.join("usr/sbin/httpd").exists() {
            return None;
        }
        let server = RedHat { root: root.canonicalize().expect("it is there"), port: free_port() };
        let root = &server.root;
        // What an earlier test left.
        let _ = fs::remove_dir_all(server.etc());
        for name in [
            "etc/httpd/conf",
            "etc/httpd/conf.d",
            "etc/httpd/conf.modules.d",
            "run/httpd",
            "var/log/httpd",
            "var/run",
            "var/www/html",
        ] {
            fs::create_dir_all(root.join(name)).expect("our own folder");
        }
        for (link, to) in [("modules", "usr/lib64/httpd/modules"), ("logs", "var/log/httpd"), ("run", "run/httpd")] {
            symlink(root.join(to), server.etc().join(link)).expect("our own folder");
        }
        let load = |name: &&str| format!("LoadModule {name}_module modules/mod_{name}.so\n");
        let write = |name: &str, text: &str| fs::write(server.etc().join(name), text).expect("our own file");
        write("conf.modules.d/00-base.conf", &BASE.iter().map(load).collect::<String>());
        write("conf.modules.d/00-mpm.conf", &load(&"mpm_prefork"));
        write("conf/mime.types", "text/html html\n");
        write("conf.d/welcome.conf", "<LocationMatch \"^/+$\">\n    Options -Indexes\n</LocationMatch>\n");
        write(
            "conf/httpd.conf",
            &format!(
                "ServerRoot \"{0}/etc/httpd\"\nListen 127.0.0.1:{1}\nInclude conf.modules.d/*.conf\nUser www-data\nGroup www-data\nServerName localhost\n\
                 <Directory />\n    AllowOverride none\n    Require all denied\n</Directory>\nDocumentRoot \"{0}/var/www/html\"\n\
                 <Directory \"{0}/var/www/html\">\n    Require all granted\n</Directory>\n<IfModule dir_module>\n    DirectoryIndex index.html\n</IfModule>\n\
                 ErrorLog \"logs/error_log\"\nLogLevel warn mpm_prefork:notice\n<IfModule log_config_module>\n    LogFormat \"%h %l %u %t \\\"%r\\\" %>s %b\" common\n\
                 \x20   CustomLog \"logs/access_log\" common\n</IfModule>\n<IfModule mime_module>\n    TypesConfig /etc/mime.types\n</IfModule>\n\
                 EnableSendfile on\nIncludeOptional conf.d/*.conf\n",
                root.display(),
                server.port
            ),
        );
        fs::write(root.join("var/www/html/index.html"), "the first site\n").expect("our own file");
        Some(server)
    }

    fn etc(&self) -> PathBuf {
        self.root.join("etc/httpd")
    }

    fn main(&self) -> PathBuf {
        self.etc().join("conf/httpd.conf")
    }

    fn port(&self) -> u16 {
        self.port
    }

    fn pid(&self) -> Option<u32> {
        // As it is built in.
        fs::read_to_string(self.root.join("var/run/httpd.pid")).ok()?.trim().parse().ok()
    }

    fn start(&self) {
        let _ = fs::remove_file(self.log());
        let output = self.control("start");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let listens = || TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_ok();
        eventually("it listens", &self.log(), || self.is_alive() && listens());
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
}

impl Drop for RedHat {
    fn drop(&mut self) {
        self.stop();
    }
}
