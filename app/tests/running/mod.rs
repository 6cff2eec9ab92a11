//! Servers that run already when webdyno comes: Apache and nginx laid out like Debian's, PHP-FPM, each private and on a port that was
//! free.
#![allow(dead_code, reason = "every test file uses a part of it")]

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const MODULES: &str = "/usr/lib/apache2/modules";
const PATIENCE: Duration = Duration::from_secs(20);

/// What keeps a worker of nginx busy: a long text that it compresses as hard as it can.
const COMPRESSING: &str = "\tgzip on;\n\tgzip_comp_level 9;\n\tgzip_types text/plain;\n\tdefault_type text/plain;\n";

/// Pages: a file, one that works, one that works ten times as much, one that waits, one that takes 12 MB, one that is of another length each time,
/// one that opens a session for everybody who brings none, one that does not end while a test lasts, a program that takes 20 MB for each request.
const PAGES: [(&str, &str); 9] = [
    ("index.html", "hello\n"),
    ("work.php", "<?php $x = 0; for ($i = 0; $i < 100000; $i++) $x += $i; echo $x;"),
    ("hard.php", "<?php $x = 0; for ($i = 0; $i < 1000000; $i++) $x += $i; echo $x;"),
    ("wait.php", "<?php usleep(20000); echo \"done\\n\";"),
    ("memory.php", "<?php $s = str_repeat('x', 12 << 20); usleep(10000); echo strlen($s);"),
    (
        "varied.php",
        "<?php usleep(2000); for ($i = 0; $i < 50000; $i++) ; echo bin2hex(random_bytes(random_int(1, 999)));",
    ),
    (
        "memory.cgi",
        "#!/usr/bin/perl\nmy $x = 'x' x (20 << 20);\nselect(undef, undef, undef, 0.05);\nprint \"Content-Type: text/plain\\n\\n\", length($x), \"\\n\";\n",
    ),
    ("stuck.php", "<?php sleep(100);"),
    (
        "session.php",
        "<?php session_save_path(__DIR__ . '/../sessions'); session_start(); $_SESSION['n'] = 1 + ($_SESSION['n'] ?? 0); echo 'ok';",
    ),
];

/// A server, ended when dropped.
pub(crate) struct Running {
    folder: tempfile::TempDir,
    pub(crate) port: u16,
    children: Vec<Child>,
    group: Option<Group>,
}

/// A group with 300 MB of memory, removed when dropped.
pub(crate) struct Group {
    directory: PathBuf,
}

/// Whether everything is here; says so otherwise.
pub(crate) fn can_run(programs: &[&str]) -> bool {
    if !crate::tool::is_root() {
        testkit::skip::not_here("needs root: servers change to their own account");
        return false;
    }
    let missing: Vec<&&str> = programs.iter().filter(|program| program_of(program).is_none()).collect();
    if !missing.is_empty() {
        testkit::skip::skipped(&format!("there is no {missing:?}"));
    }
    missing.is_empty()
}

fn program_of(name: &str) -> Option<PathBuf> {
    if name == "mod_php" {
        return php_module();
    }
    let is_named = |path: &PathBuf| {
        let found = path.file_name().and_then(|found| found.to_str()).and_then(|found| found.strip_prefix(name));
        found.is_some_and(|version| version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))
    };
    fs::read_dir("/usr/sbin").ok()?.flatten().map(|entry| entry.path()).find(is_named)
}

fn php_module() -> Option<PathBuf> {
    let is_php = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("libphp"));
    fs::read_dir(MODULES).ok()?.flatten().map(|entry| entry.path()).find(is_php)
}

impl Group {
    /// `None`, and it is said, where groups cannot be made.
    pub(crate) fn new() -> Option<Group> {
        let Ok(found) = host::hierarchies() else {
            testkit::skip::not_here("needs a memory control group");
            return None;
        };
        let directory = found.memory.join(format!("webdyno-test-check-{}", std::process::id()));
        fs::create_dir(&directory).expect("a group");
        let file = if found.version == host::Version::V1 { "memory.limit_in_bytes" } else { "memory.max" };
        fs::write(directory.join(file), "314572800").expect("a limit");
        Some(Group { directory })
    }

    /// Processes killed in it.
    fn kills(&self) -> u64 {
        let text = |name: &str| fs::read_to_string(self.directory.join(name)).unwrap_or_default();
        let all = text("memory.oom_control") + &text("memory.events");
        all.lines().find_map(|line| line.strip_prefix("oom_kill ")).map_or(0, |n| n.trim().parse().expect("a number"))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let end = Instant::now() + PATIENCE;
        while fs::remove_dir(&self.directory).is_err() && Instant::now() < end {
            std::thread::yield_now();
        }
    }
}

impl Running {
    /// Apache prefork with mod_php; `directives` come last.
    pub(crate) fn prefork(directives: &str, group: Option<Group>) -> Running {
        let mut running = Running::new(group);
        let php = php_module().expect("mod_php");
        let load = format!("LoadModule php_module {}\n", php.display());
        running.put("mods-enabled/php.load", &load);
        running.put(
            "mods-enabled/php.conf",
            "<FilesMatch \".+\\.php$\">\n SetHandler application/x-httpd-php\n</FilesMatch>\n",
        );
        let mpm = "<IfModule mpm_prefork_module>\n\tStartServers 5\n\tMinSpareServers 5\n\tMaxSpareServers 10\n\tMaxRequestWorkers 150\n</IfModule>\n";
        running.put("mods-enabled/mpm_prefork.conf", mpm);
        running.apache("prefork", directives);
        running
    }

    /// Apache event with PHP-FPM behind it, of so many workers.
    pub(crate) fn event(directives: &str, children: u32, group: Option<Group>) -> Running {
        Running::event_with(directives, &format!("pm.max_children = {children}"), group)
    }

    /// The same, with these lines in the pool's file.
    pub(crate) fn event_with(directives: &str, pool: &str, group: Option<Group>) -> Running {
        let mut running = Running::new(group);
        running.fpm(&running.path("php.sock"), pool);
        for module in ["proxy", "proxy_fcgi"] {
            let load = format!("LoadModule {module}_module {MODULES}/mod_{module}.so\n");
            running.put(&format!("mods-enabled/{module}.load"), &load);
        }
        let socket = running.path("php.sock");
        let handler = format!(
            "<FilesMatch \".+\\.php$\">\n SetHandler \"proxy:unix:{socket}|fcgi://localhost\"\n</FilesMatch>\n"
        );
        running.put("conf-enabled/php-fpm.conf", &handler);
        running.apache("event", directives);
        running
    }

    /// PHP-FPM that listens there, a socket file or an address, with these lines in its pool's file.
    fn fpm(&mut self, listen: &str, pool: &str) {
        let folder = self.folder.path().display().to_string();
        let pool = format!(
            "[www]\nuser = www-data\ngroup = www-data\nlisten = {listen}\nlisten.mode = 0666\npm = dynamic\n\
             {pool}\npm.start_servers = 2\npm.min_spare_servers = 1\npm.max_spare_servers = 3\n"
        );
        self.put("fpm/pool.d/www.conf", &pool);
        self.put(
            "fpm/php-fpm.conf",
            &format!("[global]\nerror_log = {folder}/fpm.log\ninclude={folder}/fpm/pool.d/*.conf\n"),
        );
        let fpm = program_of("php-fpm").expect("php-fpm");
        let file = self.path("fpm/php-fpm.conf");
        self.start(&fpm, &["--nodaemonize", "--fpm-config", &file]);
        wait("PHP-FPM listens", || Path::new(listen).exists() || TcpStream::connect(listen).is_ok());
    }

    /// nginx with files; `listen` are words behind the port.
    pub(crate) fn nginx(top: &str, events: &str, listen: &str) -> Running {
        let mut running = Running::new(None);
        running.start_nginx((top, events, listen), "");
        running
    }

    /// nginx with PHP-FPM behind it, of so many workers, by the name of an upstream and a link that names no version, as distributions have
    /// them.
    pub(crate) fn nginx_fpm(children: u32) -> Running {
        Running::nginx_fpm_with(&format!("pm.max_children = {children}"))
    }

    /// The same, with these lines in the pool's file.
    pub(crate) fn nginx_fpm_with(pool: &str) -> Running {
        let mut running = Running::new(None);
        running.fpm(&running.path("php.sock"), pool);
        let link = running.folder.path().join("php-fpm.sock");
        std::os::unix::fs::symlink(running.path("php.sock"), &link).expect("a link");
        running.nginx_before(&format!("unix:{}", link.display()))
    }

    /// The same, where PHP-FPM is reached by TCP.
    pub(crate) fn nginx_fpm_by_tcp(pool: &str) -> Running {
        let mut running = Running::new(None);
        let at = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a free port").to_string();
        running.fpm(&at, pool);
        running.nginx_before(&at)
    }

    /// nginx, too, which passes pages of PHP there.
    fn nginx_before(mut self, fpm: &str) -> Running {
        self.put("sites-enabled/php-fpm", &format!("upstream php-fpm {{\n\tserver {fpm} weight=5;\n}}\n"));
        let location = "\tlocation ~ \\.php$ {\n\t\tinclude /etc/nginx/fastcgi_params;\n\
                        \t\tfastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;\n\t\tfastcgi_pass php-fpm;\n\t}\n";
        self.start_nginx(("worker_processes auto;", "worker_connections 768;", ""), location);
        self
    }

    fn start_nginx(&mut self, (top, events, listen): (&str, &str, &str), locations: &str) {
        let folder = self.folder.path().display().to_string();
        let port = self.port;
        let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .iter()
            .map(|name| format!("\t{name}_temp_path {folder}/{name};\n"))
            .collect();
        let main = format!(
            "user www-data;\ndaemon off;\n{top}\npid {folder}/nginx.pid;\nerror_log {folder}/error.log;\nevents {{\n\t{events}\n}}\n\
             http {{\n\tkeepalive_timeout 65;\n\taccess_log {folder}/access.log;\n{temporary}{COMPRESSING}\tinclude {folder}/sites-enabled/*;\n}}\n"
        );
        self.put("nginx.conf", &main);
        let lines: String = (0..5_000_u64).map(|n| format!("{} line\n", n * 2_654_435_761 % 4_294_967_296)).collect();
        self.put("www/long.txt", &lines);
        let site = format!("server {{\n\tlisten 127.0.0.1:{port} {listen};\n\troot {folder}/www;\n{locations}}}\n");
        self.put("sites-enabled/default", &site);
        let file = self.path("nginx.conf");
        self.start(Path::new("/usr/sbin/nginx"), &["-c", &file]);
        self.ready();
    }

    fn new(group: Option<Group>) -> Running {
        let folder = tempfile::tempdir().expect("a folder");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("our own folder");
        let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a free port").port();
        let running = Running { folder, port, children: Vec::new(), group };
        for (name, text) in PAGES {
            running.put(&format!("www/{name}"), text);
        }
        let sessions = running.folder.path().join("sessions");
        fs::create_dir(&sessions).expect("a folder");
        fs::set_permissions(&sessions, fs::Permissions::from_mode(0o777)).expect("our own folder");
        running
    }

    fn apache(&mut self, mpm: &str, directives: &str) {
        let folder = self.folder.path().display().to_string();
        let port = self.port;
        let main = format!(
            "ServerRoot \"{folder}\"\nServerName 127.0.0.1\nDefaultRuntimeDir {folder}\nPidFile {folder}/apache.pid\nTimeout 300\n\
             KeepAlive On\nMaxKeepAliveRequests 100\nKeepAliveTimeout 5\nUser www-data\nGroup www-data\nErrorLog {folder}/error.log\n\
             IncludeOptional mods-enabled/*.load\nIncludeOptional mods-enabled/*.conf\nInclude ports.conf\n\
             <Directory />\n\tRequire all denied\n</Directory>\n<Directory {folder}/www>\n\tRequire all granted\n</Directory>\n\
             IncludeOptional conf-enabled/*.conf\nIncludeOptional sites-enabled/*.conf\n"
        );
        self.put("apache2.conf", &main);
        self.put("ports.conf", &format!("Listen 127.0.0.1:{port}\n"));
        self.put(
            &format!("mods-enabled/mpm_{mpm}.load"),
            &format!("LoadModule mpm_{mpm}_module {MODULES}/mod_mpm_{mpm}.so\n"),
        );
        for module in ["authz_core", "mime", "dir"] {
            let load = format!("LoadModule {module}_module {MODULES}/mod_{module}.so\n");
            self.put(&format!("mods-enabled/{module}.load"), &load);
        }
        self.put("mods-enabled/mime.conf", "TypesConfig /etc/mime.types\n");
        self.put("conf-enabled/tuning.conf", directives);
        let site = format!(
            "<VirtualHost *:{port}>\n\tDocumentRoot {folder}/www\n\tCustomLog {folder}/access.log \"%>s %{{User-Agent}}i\"\n</VirtualHost>\n"
        );
        self.put("sites-enabled/000-default.conf", &site);
        let file = self.path("apache2.conf");
        self.start(Path::new("/usr/sbin/apache2"), &["-d", &folder, "-f", &file, "-D", "FOREGROUND"]);
        self.ready();
    }

    /// In its group, if it has one.
    fn start(&mut self, program: &Path, args: &[&str]) {
        let mut command = match &self.group {
            None => Command::new(program),
            Some(group) => {
                let mut shell = Command::new("sh");
                shell
                    .args(["-c", "echo $$ > \"$0\" && exec \"$@\""])
                    .arg(group.directory.join("cgroup.procs"))
                    .arg(program);
                shell
            }
        };
        let log = fs::File::create(self.folder.path().join("said")).expect("a file");
        // Apache ends its whole process group when it is told to end.
        command.process_group(0);
        let child =
            command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().expect("it starts");
        self.children.push(child);
    }

    fn ready(&self) {
        wait("the server answers", || self.get("/index.html").is_some());
    }

    /// One request on a connection of its own, kept open.
    pub(crate) fn get(&self, path: &str) -> Option<TcpStream> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nUser-Agent: test\r\n\r\n").ok()?;
        let mut answer = [0; 4096];
        let read = stream.read(&mut answer).ok()?;
        answer[..read].starts_with(b"HTTP/1.1 200").then_some(stream)
    }

    /// Connections that were answered once and are idle from now on.
    pub(crate) fn hold(&self, connections: usize) -> Vec<TcpStream> {
        (0..connections).map(|_| self.get("/index.html").expect("an answer")).collect()
    }

    /// Connections of visitors who wait for an answer, every other one on a connection on which another page was answered before.
    pub(crate) fn wait_for(&self, page: &str, connections: usize) -> Vec<TcpStream> {
        let fresh = || TcpStream::connect(("127.0.0.1", self.port)).expect("it listens");
        let used = || self.get("/index.html").expect("an answer");
        let mut streams: Vec<TcpStream> = (0..connections).map(|n| if n % 2 == 0 { fresh() } else { used() }).collect();
        for stream in &mut streams {
            write!(stream, "GET /{page} HTTP/1.1\r\nHost: localhost\r\nUser-Agent: test\r\n\r\n").expect("it listens");
        }
        streams
    }

    fn put(&self, name: &str, text: &str) {
        let path = self.folder.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
        fs::write(&path, text).expect("a file");
        if name.ends_with(".cgi") {
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("our own file");
        }
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    pub(crate) fn url(&self, page: &str) -> String {
        format!("http://127.0.0.1:{}/{page}", self.port)
    }

    /// Its processes, from the first on: each with its parent, group, session, niceness and start, where it may run and which program it is.
    pub(crate) fn processes(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut awaited: Vec<String> = self.children.iter().map(|child| child.id().to_string()).collect();
        while let Some(pid) = awaited.pop() {
            let text = |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
            let stat = text("stat");
            let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
            let kept: Vec<_> = [1, 2, 3, 16, 19].iter().filter_map(|&field| fields.get(field)).collect();
            let status = text("status");
            let cpus = status.lines().find(|line| line.starts_with("Cpus_allowed_list"));
            let program = fs::read_link(format!("/proc/{pid}/exe"));
            found.push(format!("{pid} {kept:?} {cpus:?} {program:?} {}", text("cgroup")));
            awaited.extend(text(&format!("task/{pid}/children")).split_whitespace().map(str::to_owned));
        }
        found.sort();
        found
    }

    /// Lines of the access log.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("access.log")).unwrap_or_default()
    }

    /// Sessions that pages left behind.
    pub(crate) fn sessions(&self) -> usize {
        fs::read_dir(self.folder.path().join("sessions")).expect("our own folder").count()
    }

    /// Processes that were killed for lack of memory.
    pub(crate) fn kills(&self) -> u64 {
        self.group.as_ref().map_or(0, Group::kills)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        for child in self.children.iter_mut().rev() {
            let pid = rustix::process::Pid::from_child(child);
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
            let _ = child.wait();
        }
    }
}

fn wait(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "{what}: not within {PATIENCE:?}");
        std::thread::yield_now();
    }
}
