//! A private Apache with the modules that Debian enables by itself, its access log and PHP, as an ordinary user, and a client for it that
//! sends one request after the other on one connection.

use super::Stand;
use crate::bench::child::{Child, Cost};
use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long it may take to start, under valgrind too.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long it may live: a million requests on a busy machine take a while.
const LIFE: Duration = Duration::from_secs(3600);

/// What Debian enables with apache2 and libapache2-mod-php; what is compiled in or not there is left out.
const MODULES: [&str; 20] = [
    "mpm_prefork",
    "authz_core",
    "access_compat",
    "alias",
    "auth_basic",
    "authn_core",
    "authn_file",
    "authz_host",
    "authz_user",
    "autoindex",
    "deflate",
    "dir",
    "env",
    "filter",
    "mime",
    "negotiation",
    "reqtimeout",
    "setenvif",
    "status",
    "unixd",
];

const PHPINFO: &str = "<?php\nphpinfo();\n";

/// A running server. Dropping it ends it.
pub(super) struct Apache {
    process: Child,
    port: u16,
}

impl Apache {
    /// Starts it in one process (`-X`), below `wrap`, with these directives at the end of its configuration. `name` is its folder's.
    pub(super) fn alone(stand: &Stand, name: &str, directives: &str, wrap: &[String]) -> anyhow::Result<Apache> {
        Apache::start(stand, name, directives, wrap, "-X")
    }

    /// Starts it as a server with children.
    pub(super) fn with_children(stand: &Stand, name: &str, directives: &str) -> anyhow::Result<Apache> {
        Apache::start(stand, name, directives, &[], "-DFOREGROUND")
    }

    fn start(stand: &Stand, name: &str, directives: &str, wrap: &[String], mode: &str) -> anyhow::Result<Apache> {
        let folder = stand.folder.path().join(name);
        for part in ["site", "run"] {
            fs::create_dir_all(folder.join(part)).with_context(|| format!("cannot write into {}", folder.display()))?;
        }
        fs::write(folder.join("site/index.html"), format!("<p>{}</p>\n", "A file of a few hundred bytes. ".repeat(8)))?;
        fs::write(folder.join("site/info.php"), PHPINFO)?;
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("cannot bind a port")?.local_addr()?.port();
        fs::write(folder.join("httpd.conf"), configuration(&folder, port)? + directives)?;
        let program = ["/usr/sbin/apache2", "/usr/sbin/httpd"].into_iter().find(|path| Path::new(path).exists());
        let program = program.context("no Apache here; install the package apache2")?;
        let words: Vec<String> = wrap.iter().cloned().chain([program.to_owned()]).collect();
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).arg(mode).arg("-f").arg(folder.join("httpd.conf"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(fs::File::create(folder.join("stderr.txt"))?);
        if let Some((user, group)) = account() {
            command.uid(user).gid(group);
        }
        // What the server writes, callgrind's file above all, is then written by who may.
        for path in [folder.clone(), folder.join("run")] {
            owned_by_the_server(&path)?;
        }
        let apache = Apache { process: Child::start(&mut command, None)?, port };
        let until = Instant::now() + PATIENCE;
        while apache.ask("/index.html", 1).is_err() {
            if stand.signals.came() {
                bail!("interrupted");
            }
            if apache.process.ended()? || Instant::now() > until {
                let said = fs::read_to_string(folder.join("error.log")).unwrap_or_default();
                let said = said + &fs::read_to_string(folder.join("stderr.txt")).unwrap_or_default();
                bail!("Apache does not answer; it says: {}", said.lines().last().unwrap_or("nothing"));
            }
            sleep(Duration::from_millis(50));
        }
        Ok(apache)
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn pid(&self) -> Pid {
        self.process.pid()
    }

    /// Sends so many requests for `path` on one connection, and reads the answers whole.
    pub(super) fn ask(&self, path: &str, requests: u64) -> anyhow::Result<()> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nUser-Agent: webdyno\r\n\r\n");
        let mut answer = Vec::new();
        let mut piece = vec![0; 1 << 16];
        for _ in 0..requests {
            stream.write_all(request.as_bytes())?;
            answer.clear();
            while !is_whole(&answer) {
                let read = stream.read(&mut piece)?;
                if read == 0 {
                    bail!("the connection ended within an answer");
                }
                answer.extend_from_slice(&piece[..read]);
            }
            if !answer.starts_with(b"HTTP/1.1 200 ") {
                bail!("{path}: {}", String::from_utf8_lossy(&answer).lines().next().unwrap_or_default());
            }
        }
        Ok(())
    }

    /// Asks it to end, and waits for that.
    pub(super) fn end(self, stand: &Stand) -> anyhow::Result<Cost> {
        kill_process(self.process.pid(), Signal::TERM).context("cannot end Apache")?;
        self.process.wait(LIFE, &stand.signals, None)
    }
}

/// Who the server runs as when we are root: it would change to that account by itself, but only after callgrind had made its file.
fn account() -> Option<(u32, u32)> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").ok()?;
    ["www-data", "apache", "nobody"].iter().find_map(|name| {
        let mut fields = users.lines().find(|line| line.split(':').next() == Some(name))?.split(':').skip(2);
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    })
}

/// Gives a file or folder of ours to the account that the server runs as.
pub(super) fn owned_by_the_server(path: &Path) -> anyhow::Result<()> {
    let Some((user, group)) = account() else { return Ok(()) };
    chown(path, Some(user), Some(group)).with_context(|| format!("cannot give {} away", path.display()))
}

/// The line that loads a module of Apache's; none where it is compiled in or not there.
pub(super) fn load(name: &str) -> anyhow::Result<String> {
    let file = modules_folder()?.join(format!("mod_{name}.so"));
    Ok(if file.exists() { format!("LoadModule {name}_module {}\n", file.display()) } else { String::new() })
}

fn configuration(folder: &Path, port: u16) -> anyhow::Result<String> {
    let modules = modules_folder()?;
    let php = fs::read_dir(&modules)?.flatten().map(|entry| entry.path()).find(|path| {
        path.file_name()
            .and_then(|name| name.to_str())
            .is_some_and(|name| name.starts_with("libphp") && name.ends_with(".so"))
    });
    let php = php.context("no PHP for Apache here; install the package libapache2-mod-php")?;
    let loaded = MODULES.into_iter().map(load).collect::<anyhow::Result<String>>()?;
    Ok(format!(
        "{loaded}LoadModule php_module {php}
ServerRoot {folder}
DefaultRuntimeDir {folder}/run
PidFile {folder}/run/pid
Listen 127.0.0.1:{port}
ServerName localhost
ErrorLog {folder}/error.log
LogFormat \"%h %l %u %t \\\"%r\\\" %>s %O \\\"%{{Referer}}i\\\" \\\"%{{User-Agent}}i\\\"\" combined
CustomLog {folder}/access.log combined
TypesConfig /etc/mime.types
KeepAlive On
MaxKeepAliveRequests 0
KeepAliveTimeout 600
RequestReadTimeout header=0 body=0
DocumentRoot {folder}/site
DirectoryIndex index.html
<Directory />
Options FollowSymLinks
AllowOverride None
Require all denied
</Directory>
<Directory {folder}/site>
Options Indexes FollowSymLinks
Require all granted
</Directory>
<FilesMatch \"^\\.ht\">
Require all denied
</FilesMatch>
<FilesMatch \"\\.php$\">
SetHandler application/x-httpd-php
</FilesMatch>
",
        php = php.display(),
        folder = folder.display(),
    ))
}

fn modules_folder() -> anyhow::Result<PathBuf> {
    let folders = ["/usr/lib/apache2/modules", "/usr/lib64/httpd/modules", "/etc/httpd/modules"];
    folders.into_iter().map(PathBuf::from).find(|path| path.is_dir()).context("no folder of Apache's modules here")
}

/// Makes a file of ours readable for the server's account.
pub(super) fn open_to_all(path: &Path) -> anyhow::Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
        .with_context(|| format!("cannot open {}", path.display()))
}

/// Whether these bytes are a whole answer: by its `Content-Length`, or the last one of its chunks.
fn is_whole(answer: &[u8]) -> bool {
    let Some(end) = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n") else { return false };
    let head = String::from_utf8_lossy(&answer[..end]).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
    match length {
        Some(length) => answer.len() - end - 4 >= length,
        None => answer.ends_with(b"\r\n0\r\n\r\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(answer: &str, expected: bool) {
        assert_eq!(is_whole(answer.as_bytes()), expected, "{answer:?}");
    }

    #[test]
    fn where_an_answer_ends() {
        check("HTTP/1.1 200 OK\r\nContent-Le", false);
        check("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no", false);
        check("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", true);
        check("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n", false);
        check("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", true);
    }
}
