//! The one door to a real Apache with the module: a private instance in a folder of its own, with pages that are an oracle.

use crate::client::{Answer, Client};
use crate::oracle::Event;
use rustix::process::Signal;
use serde_json::Value;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, ErrorKind};
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use testkit::skip::{not_here, skipped};

/// As long as anything may take on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
const MODULES: &str = "/usr/lib/apache2/modules";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mpm {
    Prefork,
    Worker,
    Event,
}

impl Mpm {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Mpm::Prefork => "prefork",
            Mpm::Worker => "worker",
            Mpm::Event => "event",
        }
    }

    /// Several processes from the start, so that permits are shared between processes, and workers for 12 requests and more.
    fn sizes(self) -> &'static str {
        match self {
            Mpm::Prefork => {
                "StartServers 12\nMinSpareServers 1\nMaxSpareServers 12\nServerLimit 24\nMaxRequestWorkers 12\n"
            }
            Mpm::Worker | Mpm::Event => {
                "ServerLimit 4\nStartServers 2\nThreadLimit 8\nThreadsPerChild 8\nMaxRequestWorkers 16\nMinSpareThreads 8\nMaxSpareThreads 16\n"
            }
        }
    }

    /// Processes for requests that there are from the start.
    pub(crate) fn processes(self) -> usize {
        match self {
            Mpm::Prefork => 12,
            Mpm::Worker | Mpm::Event => 2,
        }
    }

    /// Workers in them.
    fn workers(self) -> usize {
        if self == Mpm::Prefork { self.processes() } else { self.processes() * 8 }
    }
}

/// A running server, ended when dropped.
pub(crate) struct Server {
    pub(crate) port: u16,
    httpd: Running,
    /// Held to be ended with it, and before the folder goes.
    _fpm: Option<Running>,
    /// Where programs are started by mod_cgid.
    has_cgid: bool,
    folder: tempfile::TempDir,
}

/// A program in a process group of its own that ends, with all it started, when dropped.
struct Running {
    child: Child,
    ended: bool,
}

impl Running {
    fn start(command: &mut Command) -> Running {
        Running { child: command.process_group(0).spawn().expect("it starts"), ended: false }
    }

    /// Asks it to end, and makes it after a while.
    fn end(&mut self) {
        // Its number may be somebody else's by then.
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        let group = rustix::process::Pid::from_child(&self.child);
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = rustix::process::kill_process(group, Signal::TERM);
        }
        let end = Instant::now() + Duration::from_secs(5);
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = rustix::process::kill_process_group(group, Signal::KILL);
        let _ = self.child.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

/// What the server is told beside its own.
pub(crate) struct Told<'a> {
    pub(crate) mpm: Mpm,
    /// Directives of the main server; FOLDER and PORT are replaced. Where they say what is logged they say all of it, and where they load
    /// mod_cgi it is what starts programs under threads, too.
    pub(crate) text: &'a str,
    /// Who runs the PHP.
    pub(crate) php: Php,
    /// Files below the folder. `proc/meminfo` and `proc/pressure`, where both are there, are what the server reads of the machine's memory.
    pub(crate) files: &'a [(&'a str, &'a str)],
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Php {
    None,
    Module,
    Fpm,
}

/// Where the module and the pages are, built once; `None`, and it is said, where they cannot be.
struct Built {
    module: PathBuf,
    probe: PathBuf,
}

fn built() -> Option<&'static Built> {
    static BUILT: OnceLock<Option<Built>> = OnceLock::new();
    BUILT.get_or_init(build).as_ref()
}

fn build() -> Option<Built> {
    if !crate::tool::is_root() {
        not_here("needs root: servers change to their own account");
        return None;
    }
    for needed in ["/usr/sbin/apache2", "/usr/bin/apxs", "/usr/bin/make"] {
        if !Path::new(needed).exists() {
            skipped(&format!("there is no {needed}"));
            return None;
        }
    }
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let source = here.join("../modules/mod_admission");
    make(&source, &[]);
    let probe = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mod-admission-probe");
    fs::create_dir_all(&probe).expect("a folder");
    make(&here.join("tests/mod_admission/probe"), &[format!("OUT={}", probe.display())]);
    Some(Built { module: source.join("build/mod_admission.so"), probe })
}

pub(crate) fn make(folder: &Path, words: &[String]) {
    let made = make_target("all", folder, words);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

/// One after the other: another process of these tests may be at it.
pub(crate) fn make_target(target: &str, folder: &Path, words: &[String]) -> Output {
    let turn = File::create(Path::new(env!("CARGO_TARGET_TMPDIR")).join("mod-admission-build")).expect("a file");
    turn.lock().expect("its turn");
    let mut make = Command::new("make");
    make.arg("-C").arg(folder).arg(target).args(words).stdin(Stdio::null()).output().expect("make runs")
}

/// The file of the module, where it can be built here.
pub(crate) fn module_file() -> Option<&'static Path> {
    built().map(|built| built.module.as_path())
}

/// A program behind a proxy, as `/behind`, with directives of its place. The backend is the server itself, whose second door counts nobody; a
/// connection to it that was kept would take one of its processes.
pub(crate) fn behind(more: &str) -> String {
    format!("<Location /behind>\n{more}ProxyPass http://127.0.0.1:PORT/page.cgi disablereuse=On\n</Location>\n")
}

impl Server {
    /// `None`, and the reason is said, where it cannot be.
    pub(crate) fn start(mpm: Mpm, text: &str) -> Option<Server> {
        Server::told(&Told { mpm, text, php: Php::None, files: &[] })
    }

    pub(crate) fn told(told: &Told<'_>) -> Option<Server> {
        let mut laid_out = LaidOut::new(told)?;
        laid_out.fpm();
        // Another test may take the port between its choice and the start.
        let end = Instant::now() + PATIENCE;
        loop {
            let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port").port();
            laid_out.configuration(told, port);
            let child = Running::start(&mut laid_out.httpd(&["-D", "FOREGROUND"]));
            let server = match laid_out.into_server(told, port, child) {
                Ok(server) => server,
                Err(back) => {
                    laid_out = back;
                    assert!(Instant::now() < end, "no server: {}", laid_out.log());
                    continue;
                }
            };
            wait("the server answers", || server.try_get("/index.html").is_some_and(|answer| answer.status == 200));
            server.wait_cgid(None);
            return Some(server);
        }
    }

    /// Which of mod_cgid's daemons takes programs: its socket, once that belongs to the account that asks there.
    fn cgid(&self) -> Option<(u64, i64, i64)> {
        let socket = fs::metadata(self.path(&format!("run/cgisock.{}", self.pid()))).ok()?;
        (socket.uid() != 0).then(|| (socket.ino(), socket.ctime(), socket.ctime_nsec()))
    }

    /// Until there is one, and another than that of before a restart. A server answers before it, and programs with 503.
    fn wait_cgid(&self, before: Option<(u64, i64, i64)>) {
        if self.has_cgid {
            wait("mod_cgid has a daemon", || self.cgid().is_some_and(|now| Some(now) != before));
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn put(&self, name: &str, text: &str) {
        put(self.folder.path(), name, text);
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.path("error.log")).unwrap_or_default()
    }

    /// The last lines of a file.
    pub(crate) fn end_of(&self, name: &str) -> String {
        let text = fs::read_to_string(self.path(name)).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(300)..].join("\n")
    }

    /// `status path group result` of each request that was logged.
    pub(crate) fn access(&self) -> Vec<String> {
        fs::read_to_string(self.path("access.log")).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    pub(crate) fn client(&self) -> Client {
        Client::to(self.port)
    }

    /// Until all workers have begun, for a client that asks again on its connection: event closes one whose next request finds no thread
    /// that waits for work, and on a busy machine the first thread of a process may serve it before the others have run at all.
    pub(crate) fn wait_all_begun(&self, mpm: Mpm) {
        let workers = || -> usize {
            let told = self.get("/server-status?auto").body;
            let of = |name| told.lines().find_map(|line| line.strip_prefix(name)?.parse::<usize>().ok()).unwrap_or(0);
            of("BusyWorkers: ") + of("IdleWorkers: ")
        };
        wait("all workers have begun", || workers() == mpm.workers());
    }

    pub(crate) fn try_get(&self, path: &str) -> Option<Answer> {
        Client::try_to(self.port)?.request("GET", path, "127.0.0.1")
    }

    /// One request on a connection of its own.
    pub(crate) fn get(&self, path: &str) -> Answer {
        self.try_get(path).unwrap_or_else(|| panic!("no answer to {path}: {}", self.log()))
    }

    /// A request whose answer may take a while.
    pub(crate) fn send(&self, path: &str) -> Pending {
        let (port, path) = (self.port, path.to_owned());
        Pending(std::thread::spawn(move || Client::try_to(port)?.request("GET", &path, "127.0.0.1")))
    }

    /// A gate, held until it is opened or dropped.
    pub(crate) fn gate(&self, name: &str) -> Gate {
        let path = self.path("gates").join(name);
        let file = File::create(&path).expect("a gate");
        file.lock().expect("nobody else holds it");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("our own file");
        Gate(file)
    }

    pub(crate) fn events(&self) -> Vec<Event> {
        crate::oracle::read(&self.path("log"))
    }

    pub(crate) fn started(&self) -> usize {
        self.events().iter().filter(|event| event.word == "start").count()
    }

    pub(crate) fn wait_started(&self, count: usize) {
        wait(&format!("{count} pages have begun"), || self.started() >= count);
    }

    /// Asks for a page so many times, each when the one before has begun.
    pub(crate) fn send_in_turn(&self, path: &str, times: usize) -> Vec<Pending> {
        let before = self.started();
        let one = |n| {
            let one = self.send(path);
            self.wait_started(before + n);
            one
        };
        (1..=times).map(one).collect()
    }

    /// What the status page says.
    pub(crate) fn status(&self) -> Value {
        let answer = self.get("/admission-status?json");
        serde_json::from_str(&answer.body).unwrap_or_else(|error| panic!("{error}: {answer:?}"))
    }

    pub(crate) fn group(&self, name: &str) -> Value {
        let status = self.status();
        let named = |groups: &Value| groups.as_array()?.iter().find(|group| group["name"] == name).cloned();
        named(&status["groups"]).unwrap_or_else(|| panic!("no group {name}: {status}"))
    }

    pub(crate) fn number(&self, group: &str, pointer: &str) -> u64 {
        let group = self.group(group);
        group.pointer(pointer).and_then(Value::as_u64).unwrap_or_else(|| panic!("no {pointer}: {group}"))
    }

    pub(crate) fn wait_number(&self, group: &str, pointer: &str, value: u64) {
        wait(&format!("{group} {pointer} is {value}: {}", self.group(group)), || self.number(group, pointer) == value);
    }

    /// Until nothing is held and nobody waits, in any group: a client may have its answer a moment before the handler is done.
    pub(crate) fn wait_idle(&self) {
        wait(&format!("nothing is held: {}", self.status()), || is_idle(&self.status()));
    }

    /// The parent of all its processes.
    pub(crate) fn pid(&self) -> i32 {
        self.httpd.child.id() as i32
    }

    /// Its processes, the controller apart.
    pub(crate) fn workers(&self) -> Vec<i32> {
        let controller = self.controller();
        self.children().into_iter().filter(|&child| Some(child) != controller).collect()
    }

    fn children(&self) -> Vec<i32> {
        // The kernel's own list (`task/PID/children`) may leave one out while others end.
        let parent_of = |pid: i32| -> Option<i32> {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
        };
        let all = fs::read_dir("/proc").into_iter().flatten().flatten();
        let all = all.filter_map(|one| one.file_name().to_str()?.parse().ok());
        all.filter(|&pid| parent_of(pid) == Some(self.pid())).collect()
    }

    /// How many processes take connections.
    pub(crate) fn takers(&self) -> usize {
        let socket = self.socket();
        self.children().into_iter().filter(|&process| has_open(process, &socket)).count()
    }

    /// The socket that it listens at, as `/proc/PID/fd` calls it.
    fn socket(&self) -> PathBuf {
        let here = format!("{:08X}:{:04X}", u32::from_ne_bytes([127, 0, 0, 1]), self.port);
        // Those that listen come first, before tens of thousands of connections.
        let lines = BufReader::new(File::open("/proc/net/tcp").expect("a network")).lines().map_while(Result::ok);
        let number = lines.filter(|line| line.contains(&here)).find_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            (fields[1] == here && fields[3] == "0A").then(|| fields[9].to_owned())
        });
        format!("socket:[{}]", number.unwrap_or_else(|| panic!("it does not listen: {}", self.log()))).into()
    }

    /// The process beside the workers, as far as it has written its status yet and lives.
    pub(crate) fn controller(&self) -> Option<i32> {
        let status: Value =
            serde_json::from_str(&fs::read_to_string(self.path("run/admission/status.json")).ok()?).ok()?;
        let pid = i32::try_from(status["pid"].as_i64()?).ok()?;
        self.children().contains(&pid).then_some(pid)
    }

    /// The same, as soon as there is one.
    pub(crate) fn wait_controller(&self) -> i32 {
        let mut found = None;
        wait("there is a controller", || {
            found = self.controller();
            found.is_some()
        });
        found.expect("it was there")
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(self.pid(), signal);
    }

    /// Restarts gracefully; returns when the new generation serves.
    pub(crate) fn graceful(&self) {
        self.restart(Signal::USR1);
    }

    pub(crate) fn restart(&self, signal: Signal) {
        let resumed = || self.log().matches("resuming normal operations").count();
        // A server answers a moment before it says so for the first time.
        wait("it has begun", || resumed() > 0);
        let (before, cgid, mut old) = (resumed(), self.cgid(), self.children());
        self.signal(signal);
        wait("the server has restarted", || {
            // A graceful one may find httpd about to make a child that it owes since the last. All that are there before it goes on are of
            // before; after the other kind it makes new ones first.
            let there = if signal == Signal::USR1 { self.children() } else { Vec::new() };
            let restarted = resumed() > before;
            if !restarted {
                old.extend(there);
            }
            restarted
        });
        // One that was told to end and had no CPU since takes one connection more, in which it knows what it knew.
        let socket = self.socket();
        wait("no process of before takes connections", || old.iter().all(|&process| !has_open(process, &socket)));
        wait("it answers", || self.try_get("/index.html").is_some());
        self.wait_cgid(cgid);
    }

    /// Its own last words where it cannot start.
    pub(crate) fn refused(mpm: Mpm, text: &str, files: &[(&str, &str)]) -> Option<String> {
        let told = Told { mpm, text, php: Php::None, files };
        let laid_out = LaidOut::new(&told)?;
        laid_out.configuration(&told, 1);
        let output = laid_out.httpd(&["-t"]).stderr(Stdio::piped()).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned() + &laid_out.log();
        Some(if output.status.success() { format!("TAKEN: {said}") } else { said })
    }
}

impl Drop for Server {
    #[allow(clippy::print_stderr, reason = "what the server knew stands beside the failure that it explains")]
    fn drop(&mut self) {
        let failed = std::thread::panicking();
        let asked = failed.then(|| {
            let mut client = Client::try_to(self.port)?;
            client.waits(Duration::from_secs(2));
            client.request("GET", "/admission-status?json", "127.0.0.1")
        });
        self.httpd.end();
        if let Some(status) = asked {
            let [errors, answers, pages] = ["error.log", "access.log", "log"].map(|name| self.end_of(name));
            let status = status.map_or("no answer".to_owned(), |answer| answer.body);
            eprintln!("errors:\n{errors}\nanswers:\n{answers}\npages:\n{pages}\nstatus: {status}");
        }
    }
}

/// A lock for which pages wait.
pub(crate) struct Gate(File);

impl Gate {
    pub(crate) fn open(self) {
        drop(self);
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

/// A request that is under way.
pub(crate) struct Pending(std::thread::JoinHandle<Option<Answer>>);

impl Pending {
    pub(crate) fn try_answer(self) -> Option<Answer> {
        self.0.join().expect("no panic")
    }

    #[track_caller]
    pub(crate) fn answer(self) -> Answer {
        self.try_answer().expect("an answer")
    }

    pub(crate) fn is_answered(&self) -> bool {
        self.0.is_finished()
    }
}

/// How many of them are answered.
pub(crate) fn answered(pending: &[Pending]) -> usize {
    pending.iter().filter(|one| one.is_answered()).count()
}

fn has_open(process: i32, socket: &Path) -> bool {
    let open = match fs::read_dir(format!("/proc/{process}/fd")) {
        Err(error) if error.kind() != ErrorKind::PermissionDenied => return false,
        open => open.expect("root may look"),
    };
    open.flatten().filter_map(|file| fs::read_link(file.path()).ok()).any(|link| link == socket)
}

fn is_idle(status: &Value) -> bool {
    let zero = |group: &Value| group["held"] == 0 && group["waiting"] == 0;
    let groups = status["groups"].as_array().expect("groups");
    groups.iter().all(zero) && zero(&status["budget"]) && zero(&status["queue_workers"])
}

pub(crate) fn kill(pid: i32, signal: Signal) {
    if let Some(pid) = rustix::process::Pid::from_raw(pid) {
        // It may have ended by itself.
        let _ = rustix::process::kill_process(pid, signal);
    }
}

#[track_caller]
pub(crate) fn wait(what: &str, is_so: impl FnMut() -> bool) {
    assert!(within(PATIENCE, is_so), "not within {PATIENCE:?}: {what}");
}

/// Whether something comes to be so within a time.
pub(crate) fn within(time: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + time;
    while !is_so() {
        if Instant::now() >= end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    true
}

fn put(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
    fs::write(&path, text).expect("a file");
}

mod laid_out;
use laid_out::LaidOut;
