//! A run's place for one test: a host, a folder per instance, plans as text, a plain HTTP client.

use host::{Group, Host};
use model::plan::{Options, Plan, parse};
use server::{Control, Place, Running, ServerError, control};
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// For what takes milliseconds on a quiet machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// One run on this machine, in a folder with a blank in its name.
pub(crate) struct Stage {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) host: Host,
    exe: PathBuf,
    pub(crate) ready_timeout: Duration,
}

impl Stage {
    pub(crate) fn new() -> Stage {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let exe = std::env::current_exe().unwrap();
        let dir = tempfile::Builder::new().prefix("server test-").tempdir_in("/tmp").unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let run = format!("t{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let host = Host::open(&exe, &dir.path().join("state"), &run).unwrap();
        Stage { dir, host, exe, ready_timeout: PATIENCE }
    }

    /// A plan of these parts, called `plan.toml` in the stage's folder. `[server]` is line 1, `kind` line 2, `keys` begin on line 3.
    pub(crate) fn plan(&self, kind: &str, keys: &str, variant: &str) -> Plan {
        let text = format!(
            "[server]\nkind = \"{kind}\"\n{keys}\n[load.a]\npath = \"/\"\nconnections = 1\nrequests = 1\n[variant.v]\n{variant}\n"
        );
        parse(&text, &self.dir.path().join("plan.toml"), &Options::default()).unwrap().0
    }

    pub(crate) fn control(&self, plan: &Plan) -> Box<dyn Control> {
        control(&plan.server, &plan.file)
    }

    /// An empty folder for an instance, by a path that is not the canonical one.
    pub(crate) fn place(&self) -> PathBuf {
        tempfile::Builder::new().prefix("instance-").tempdir_in(self.dir.path().join("state/..")).unwrap().keep()
    }

    pub(crate) fn start(&self, plan: &Plan, cpus: &[u32]) -> Result<Running, ServerError> {
        self.start_in(None, plan, cpus)
    }

    pub(crate) fn start_in(&self, group: Option<&Group>, plan: &Plan, cpus: &[u32]) -> Result<Running, ServerError> {
        let dir = self.place();
        let ready_timeout = self.ready_timeout;
        let listen = std::net::Ipv4Addr::LOCALHOST.into();
        let (exe, interrupted) = (self.exe.as_path(), &AtomicBool::new(false));
        let place = Place { host: &self.host, group, dir: &dir, listen, cpus, exe, ready_timeout, interrupted };
        self.control(plan).start(&place, &plan.variants[0])
    }

    /// What is wrong, without the stage's folder and with it called `DIR`.
    pub(crate) fn told(&self, error: &ServerError) -> String {
        error.to_string().replace(&*self.dir.path().to_string_lossy(), "DIR")
    }
}

/// The whole answer to a request on a connection of its own. HTTP/1.0, so that bodies come without chunks: Apache no longer passes on
/// the Content-Length of a CGI program.
pub(crate) fn ask(address: SocketAddr, request: &str) -> String {
    ask_of("test", address, request)
}

/// What a host of that name answers at `/`.
pub(crate) fn ask_as(address: SocketAddr, host: &str) -> String {
    ask_of(host, address, "GET /")
}

fn ask_of(host: &str, address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(format!("{request} HTTP/1.0\r\nHost: {host}\r\n\r\n").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Sends `GET /path` or the like as HTTP/1.1.
pub(crate) fn send(stream: &mut TcpStream, request: &str, connection: &str) {
    stream
        .write_all(format!("{request} HTTP/1.1\r\nHost: test\r\nConnection: {connection}\r\n\r\n").as_bytes())
        .unwrap();
}

/// Polls until `condition` holds.
pub(crate) fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < end, "not in {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Processes that name `folder` in their command line, with their parent and the user they run as.
pub(crate) fn processes_of(folder: &Path) -> Vec<(u32, u32, u32)> {
    let number = |status: &str, key: &str| -> u32 {
        let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap();
        line.split_whitespace().next().unwrap().parse().unwrap()
    };
    let needle = folder.to_string_lossy().into_owned();
    fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok())
        .filter_map(|pid| {
            let command = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
            let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
            // The guardian names its journal.
            let ours =
                String::from_utf8_lossy(&command).contains(&needle) && !command.windows(9).any(|w| w == b"@guardian");
            ours.then(|| (pid, number(&status, "PPid:"), number(&status, "Uid:")))
        })
        .collect()
}
