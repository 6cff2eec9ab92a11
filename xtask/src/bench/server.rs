//! The server of every measurement: an nginx of our own, one worker on one CPU, and its own count of what it served.

use super::child::Child;
use super::tools::Ports;
use crate::signals::HeldSignals;
use anyhow::{Context, bail};
use std::fmt::Write as _;
use std::fs;
use std::io::{Read, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long it may take to start, or to be rid of the connections of a tool that has ended.
const PATIENCE: Duration = Duration::from_secs(10);

/// A port that was free may be taken before nginx has it.
const ATTEMPTS: usize = 3;

const SMALL: &str = "The quick brown fox jumps over the lazy dog.";

/// A private nginx. Dropping it ends it.
pub(super) struct Nginx {
    process: Child,
    ports: Ports,
}

/// What nginx says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Status {
    /// Connections, the one that asked included.
    pub(super) active: u64,
    /// Requests so far, the one that asked included.
    pub(super) requests: u64,
}

impl Nginx {
    /// Starts `program` on `cpu`, with everything it writes under `folder`.
    pub(super) fn start(program: &Path, folder: &Path, cpu: usize, signals: &HeldSignals) -> anyhow::Result<Nginx> {
        write_site(folder)?;
        let mut last = None;
        for _ in 0..ATTEMPTS {
            match Nginx::try_start(program, folder, cpu, signals) {
                Ok(nginx) => return Ok(nginx),
                Err(error) => last = Some(error),
            }
        }
        Err(last.context("nginx was never started")?)
    }

    fn try_start(program: &Path, folder: &Path, cpu: usize, signals: &HeldSignals) -> anyhow::Result<Nginx> {
        let ports = free_ports()?;
        let config = folder.join("nginx.conf");
        fs::write(&config, configuration(folder, ports, worker_connections())).context("cannot write nginx.conf")?;
        let errors = folder.join("nginx-errors.txt");
        let mut command = Command::new(program);
        command.arg("-p").arg(folder).arg("-c").arg(&config).arg("-e").arg(&errors);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(fs::File::create(folder.join("nginx-stderr.txt"))?);
        let nginx = Nginx { process: Child::start(&mut command, Some(cpu))?, ports };
        let until = Instant::now() + PATIENCE;
        while nginx.status().is_err() {
            if signals.came() {
                bail!("interrupted");
            }
            if Instant::now() > until {
                let said = fs::read_to_string(&errors).unwrap_or_default();
                bail!("nginx does not answer; it says: {}", said.lines().last().unwrap_or("nothing"));
            }
            sleep(Duration::from_millis(10));
        }
        Ok(nginx)
    }

    pub(super) fn ports(&self) -> Ports {
        self.ports
    }

    /// Asks nginx; the question counts as a request.
    pub(super) fn status(&self) -> anyhow::Result<Status> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.ports.plain));
        let mut stream = TcpStream::connect_timeout(&address, PATIENCE).context("cannot ask nginx")?;
        stream.set_read_timeout(Some(PATIENCE)).context("cannot ask nginx")?;
        stream.write_all(b"GET /status HTTP/1.0\r\n\r\n").context("cannot ask nginx")?;
        let mut text = String::new();
        stream.read_to_string(&mut text).context("nginx does not say what it served")?;
        parse_status(&text).with_context(|| format!("not what nginx says of itself: {text:?}"))
    }

    /// Its status once nobody else is connected.
    pub(super) fn quiet(&self) -> anyhow::Result<Status> {
        let until = Instant::now() + PATIENCE;
        loop {
            let status = self.status()?;
            if status.active <= 1 || Instant::now() > until {
                return Ok(status);
            }
            sleep(Duration::from_millis(20));
        }
    }

    /// CPU time of the worker so far, when the kernel tells.
    pub(super) fn cpu(&self) -> Option<Duration> {
        let master = self.process.pid().as_raw_nonzero();
        let children = fs::read_to_string(format!("/proc/{master}/task/{master}/children")).ok()?;
        let worker: u32 = children.split_whitespace().next()?.parse().ok()?;
        let scheduled = fs::read_to_string(format!("/proc/{worker}/schedstat")).ok()?;
        Some(Duration::from_nanos(scheduled.split_whitespace().next()?.parse().ok()?))
    }
}

/// Pages, certificate and the folders for what nginx would buffer.
fn write_site(folder: &Path) -> anyhow::Result<()> {
    let why = || format!("cannot write into {}", folder.display());
    fs::create_dir_all(folder.join("site")).with_context(why)?;
    fs::write(folder.join("site/64k.bin"), vec![b'x'; 64 * 1024]).with_context(why)?;
    let words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=127.0.0.1 \
                 -addext subjectAltName=IP:127.0.0.1 -keyout key.pem -out certificate.pem";
    let made = Command::new("openssl").args(words.split_whitespace()).current_dir(folder).stdin(Stdio::null()).output();
    let made = made.context("cannot run openssl; `cargo xtask setup --bench` installs it")?;
    if !made.status.success() {
        bail!("openssl made no certificate: {}", String::from_utf8_lossy(&made.stderr).trim());
    }
    Ok(())
}

fn configuration(folder: &Path, ports: Ports, connections: u64) -> String {
    let mut text = String::new();
    // As root nginx would give its worker to a user who may not enter our folder.
    if rustix::process::geteuid().is_root() {
        text += "user root;\n";
    }
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .iter()
        .map(|kind| format!("  {kind}_temp_path {}/{kind};\n", folder.display()))
        .collect();
    let Ports { plain, tls } = ports;
    // Writing to a string cannot fail.
    let _ = write!(
        text,
        "daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/nginx-errors.txt;
events {{ worker_connections {connections}; }}
http {{
{temporary}  access_log off;
  keepalive_requests 1000000000;
  keepalive_timeout 1h;
  sendfile on;
  open_file_cache max=10 inactive=1h;
  open_file_cache_valid 1h;
  default_type text/plain;
  ssl_certificate {folder}/certificate.pem;
  ssl_certificate_key {folder}/key.pem;
  ssl_protocols TLSv1.3;
  ssl_prefer_server_ciphers on;
  server {{
    listen 127.0.0.1:{plain} backlog=16384;
    listen 127.0.0.1:{tls} ssl backlog=16384;
    root {folder}/site;
    location = / {{ return 200 \"{SMALL}\"; }}
    location = /status {{ stub_status; }}
  }}
}}
",
        folder = folder.display(),
    );
    text
}

/// As many as the limit of open files allows, and the kernel's backlog makes use of.
fn worker_connections() -> u64 {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
    limit.saturating_sub(64).clamp(512, 16384)
}

/// Two ports that nobody had a moment ago.
fn free_ports() -> anyhow::Result<Ports> {
    let bind = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("cannot bind a port of 127.0.0.1");
    let (plain, tls) = (bind()?, bind()?);
    let port = |listener: &TcpListener| listener.local_addr().map(|address| address.port());
    Ok(Ports { plain: port(&plain)?, tls: port(&tls)? })
}

fn parse_status(text: &str) -> Option<Status> {
    let (_, rest) = text.split_once("Active connections:")?;
    let active = rest.split_whitespace().next()?.parse().ok()?;
    let (_, rest) = rest.split_once("requests")?;
    Some(Status { active, requests: rest.split_whitespace().nth(2)?.parse().ok()? })
}

/// A folder under the system's temporary one, removed when dropped.
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn make() -> anyhow::Result<Folder> {
        let path = std::env::temp_dir().join(format!("webdyno-bench-{}", std::process::id()));
        fs::create_dir(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Folder(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("error: remove {} by hand: {error}", self.0.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<(u64, u64)>) {
        assert_eq!(parse_status(text).map(|status| (status.active, status.requests)), expected);
    }

    #[test]
    fn what_nginx_says() {
        let head = "HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\n\r\n";
        let body =
            "Active connections: 3 \nserver accepts handled requests\n 11306 11305 119530 \nReading: 0 Writing: 1\n";
        check(&format!("{head}{body}"), Some((3, 119_530)));
        check("HTTP/1.1 404 Not Found\r\n\r\n", None);
    }

    #[test]
    fn the_small_page_is_as_small_as_said() {
        assert_eq!(SMALL.len(), 44);
    }
}
