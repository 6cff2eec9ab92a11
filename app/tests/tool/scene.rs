//! A server that is there already, in a folder of a test's own, laid out and started as Debian does; and a tool to point at it.

use super::{Finished, Tool, is_root, remains};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};
use testkit::own::{Own, Snapshot, changed};
use testkit::skip::{not_here, skipped};

/// How long after a kill nothing may be left.
pub(crate) const GRACE: Duration = Duration::from_secs(5);
/// A setting of the kernel that changes nothing for anybody within seconds.
pub(crate) const SETTING: &str = "net.ipv4.tcp_keepalive_probes";

/// A running server and a tool to point at it.
pub(crate) struct Scene<O: Own> {
    pub(crate) tool: Tool,
    pub(crate) own: O,
    pub(crate) before: Snapshot,
    _folder: Option<tempfile::TempDir>,
}

impl<O: Own> Scene<O> {
    /// `None`, with the reason said, where there is no such server of Debian's or no root.
    pub(crate) fn new() -> Option<Scene<O>> {
        Scene::with(|_| {})
    }

    pub(crate) fn with(prepare: impl FnOnce(&O)) -> Option<Scene<O>> {
        if !is_root() {
            not_here("no root");
            return None;
        }
        let folder = tempfile::Builder::new().prefix("debian-").tempdir_in("/tmp").expect("a folder");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("our own folder");
        let scene = Scene::at(folder.path(), prepare)?;
        Some(Scene { _folder: Some(folder), ..scene })
    }

    /// In a folder that there is already.
    pub(crate) fn at(folder: &Path, prepare: impl FnOnce(&O)) -> Option<Scene<O>> {
        let Some(own) = O::new(folder) else {
            skipped(&format!("there is no Debian {}", O::KIND));
            return None;
        };
        prepare(&own);
        Some(Scene::around(own))
    }

    /// A server that is laid out, started now.
    pub(crate) fn around(own: O) -> Scene<O> {
        own.start();
        let before = own.snapshot();
        Scene { tool: Tool::new(), own, before, _folder: None }
    }

    /// A plan with short trials; `server` and `rest` are parts of it.
    pub(crate) fn plan(&self, server: &str, rest: &str) -> String {
        let main = self.own.main();
        self.tool.plan(&format!(
            "blocks = 2\naa = false\n[server]\nkind = \"{}\"\nfrom = \"{}\"\n{server}\n{rest}\n[load.a]\npath = \"/\"\nconnections = 2\n\
             requests = 50\n[cooldown]\nlimit = \"0s\"\n",
            O::KIND,
            main.display()
        ))
    }

    fn args<'a>(&'a self, plan: &'a str, main: &'a str) -> [&'a str; 5] {
        ["run", plan, "--plain", "--i-operate", main]
    }

    pub(crate) fn run(&self, plan: &str) -> Finished {
        self.tool.run(&self.args(plan, &self.own.main().to_string_lossy()))
    }

    pub(crate) fn spawn(&self, plan: &str) -> Child {
        self.tool.spawn(&self.args(plan, &self.own.main().to_string_lossy()))
    }

    /// What is not as it was: files, the server's answer, what a run leaves behind.
    pub(crate) fn left(&self) -> Vec<String> {
        let mut found = changed(&self.before, &self.own.snapshot());
        match answer(self.own.port()) {
            Some(answer) if answer.contains("the first site") && !answer.contains("Connection: close") => {}
            answer => found.push(format!("the server answers {answer:?}")),
        }
        found.extend(self.claims().iter().map(|path| format!("{} is there", path.display())));
        found
    }

    /// What keeps other runs from its server.
    pub(crate) fn claims(&self) -> Vec<PathBuf> {
        let ids = self.tool.run_ids();
        // The second where the first is no memory.
        let claims =
            ["/run", "/dev/shm"].into_iter().flat_map(|folder| fs::read_dir(folder).into_iter().flatten().flatten());
        let claims = claims.filter(|entry| entry.file_name().to_string_lossy().starts_with("webdyno-in-place-"));
        let of_this = |path: &PathBuf| {
            let text = fs::read_to_string(path).unwrap_or_default();
            text.is_empty() || ids.iter().any(|id| text.starts_with(id.as_str()))
        };
        claims.map(|entry| entry.path()).filter(of_this).collect()
    }

    /// While a run has the server in place: whoever else would load, check or copy it is refused, root or not.
    #[track_caller]
    pub(crate) fn check_others_are_refused(&self) {
        let other = Tool::new();
        let (url, main) = (format!("http://127.0.0.1:{}/", self.own.port()), self.own.main());
        let load = "[load.a]\npath = \"/\"\nconnections = 1\nrequests = 5\n";
        let plan = |name: &str, server: &str| {
            let path = other.path(name);
            fs::write(&path, format!("[server]\n{server}\n{load}")).expect("a plan");
            path.to_string_lossy().into_owned()
        };
        let looked_at = plan("url.toml", &format!("kind = \"url\"\nurl = \"{url}\""));
        let copied = plan("copy.toml", &format!("kind = \"{}\"\nfrom = \"{}\"", O::KIND, main.display()));
        let said = format!("works on {}; let it end first\n", main.display());
        let refused = |words: &[&str], code: i32| {
            for ended in [other.run(words), other.run_as_nobody(words)] {
                assert!(ended.code == code && ended.err.ends_with(&said), "{words:?}: {} {}", ended.code, ended.err);
            }
        };
        refused(&["load", "-n", "5", "-c", "1", &url], 5);
        refused(&["ab", "-n", "5", "-c", "1", &url], 1);
        refused(&["check", "--budget", "10s", &url], 5);
        refused(&["run", &looked_at, "--plain"], 5);
        refused(&["run", &copied, "--plain"], 5);
        refused(&["run", &copied, "--dry-run"], 5);
        // Of everybody else's servers nothing is to be said.
        let mut serving = other.spawn(&["serve", "--listen", "127.0.0.1:0"]);
        let line = BufReader::new(serving.stdout.take().expect("piped")).lines().next().expect("a line").expect("text");
        let url = format!("http://{}/", line.rsplit(' ').next().expect("an address"));
        let words = ["load", "-n", "5", "-c", "1", "--no-store", &url];
        for ended in [other.run(&words), other.run_as_nobody(&words)] {
            assert_eq!(ended.code, 0, "{}{}", ended.out, ended.err);
        }
        serving.kill().and_then(|()| serving.wait()).expect("our own child");
    }

    /// What the site answers to a request that would keep the connection.
    pub(crate) fn answer(&self) -> String {
        answer(self.own.port()).unwrap_or_default()
    }

    #[track_caller]
    pub(crate) fn check_given_back(&self) {
        let ended = Instant::now();
        let mut left = self.left();
        // A worker of before may answer once more.
        while !left.is_empty() && ended.elapsed() < GRACE {
            std::thread::sleep(Duration::from_millis(20));
            left = self.left();
        }
        assert_eq!(left, Vec::<String>::new());
        assert_eq!(remains(&self.tool), Vec::<String>::new());
    }
}

/// Two variants that differ in what needs a graceful restart, and one that needs a full one.
const VARIANTS: &str = "[variant.as-is]\n[variant.close]\ndirectives = \"KeepAlive Off\"\n[variant.few]\ndirectives = '''\nServerLimit 20\n\
                        MaxRequestWorkers 20\nThreadsPerChild 20\nKeepAlive Off\n'''\n";
/// The same where there are no threads.
const VARIANTS_OF_PREFORK: &str = "[variant.as-is]\n[variant.close]\ndirectives = \"KeepAlive Off\"\n[variant.few]\ndirectives = '''\n\
                                   ServerLimit 20\nMaxRequestWorkers 20\nKeepAlive Off\n'''\n";

/// For nginx: two that differ in what needs a reload, in two files, and one that needs a full restart, in four.
pub(crate) const VARIANTS_OF_NGINX: &str = "[variant.as-is]\n[variant.close]\ndirectives = \"keepalive_timeout 0\"\n[variant.few]\n\
                                            directives = '''\nworker_processes 1\nworker_connections 64\nkeepalive_timeout 0\n\
                                            limit_conn_zone $server_name zone=own:1m\nlimit_conn own 50\nserver {\nserver_name other\n}\n'''\n";

/// Variants for the processing module that there is.
pub(crate) fn variants() -> &'static str {
    let prefork = fs::exists("/etc/apache2/mods-enabled/mpm_prefork.load").unwrap_or(false);
    if prefork { VARIANTS_OF_PREFORK } else { VARIANTS }
}

/// What the site at a port answers to a request that would keep the connection.
fn answer(port: u16) -> Option<String> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()?;
    stream.set_read_timeout(Some(GRACE)).ok()?;
    stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").ok()?;
    let mut got = Vec::new();
    let mut piece = [0; 4096];
    while !got.ends_with(b"site\n") {
        match stream.read(&mut piece) {
            Ok(read) if read > 0 => got.extend_from_slice(&piece[..read]),
            _ => break,
        }
    }
    Some(String::from_utf8_lossy(&got).into_owned())
}

/// What the kernel has for it now.
pub(crate) fn setting() -> Option<String> {
    Some(fs::read_to_string(format!("/proc/sys/{}", SETTING.replace('.', "/"))).ok()?.trim().to_owned())
}
