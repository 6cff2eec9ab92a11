//! `webdyno watch --tree apache` through the real binary, over a real Apache that is started, ended and started again, in a PID
//! namespace of its own: other servers of the machine are none of the test's business.

mod tool;

use serde_json::Value;
use std::io::Write;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};
use tool::{Tool, is_root};

const CONFIGURATION: &str = "
ServerRoot \"FOLDER\"
ServerName test.invalid
PidFile \"FOLDER/pid\"
ErrorLog \"FOLDER/error\"
Listen 127.0.0.1:PORT
LoadModule mpm_prefork_module /usr/lib/apache2/modules/mod_mpm_prefork.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
User www-data
Group www-data
DefaultRuntimeDir \"FOLDER\"
StartServers 3
MinSpareServers 3
MaxSpareServers 3
";

/// A shell that is the first process of a PID namespace, with a /proc of its own.
struct Space {
    shell: Child,
    input: Option<ChildStdin>,
}

impl Space {
    fn new(mut command: Command) -> Space {
        let mut shell = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("a namespace");
        let input = shell.stdin.take();
        Space { shell, input }
    }

    fn tell(&mut self, line: &str) {
        writeln!(self.input.as_mut().expect("a pipe"), "{line}").expect("the shell listens");
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        // The shell ends with its input, and everything else in the namespace with the shell.
        drop(self.input.take());
        self.shell.wait().expect("our own child");
    }
}

/// The rows so far.
fn rows(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.split_inclusive('\n')
        .filter(|line| line.ends_with('\n'))
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

/// Waits for a row, from the `from`-th one on; its number.
fn until(file: &Path, from: usize, what: &str, is: impl Fn(&Value) -> bool) -> usize {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let rows = rows(file);
        if let Some(at) = rows.iter().skip(from).position(&is) {
            return from + at;
        }
        assert!(Instant::now() < deadline, "no row in which {what}: {:?}", rows.last());
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn until_said(file: &Path, words: &str) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !std::fs::read_to_string(file).unwrap_or_default().contains(words) {
        assert!(Instant::now() < deadline, "nobody said: {words}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn is_whole(row: &Value) -> bool {
    row["tree"]["workers"] == 3
}

#[test]
fn a_server_is_found_when_it_comes_and_when_it_comes_again() {
    if !is_root() {
        return testkit::skip::not_here("no server is watched across its restart: a PID namespace needs root");
    }
    let apache = "/usr/sbin/apache2";
    if !Path::new(apache).exists() {
        return testkit::skip::skipped("no server is watched across its restart: there is no apache2");
    }
    let tool = Tool::new();
    let folder = tool.tmp().display().to_string();
    // Nobody else has it while Apache does not: another test may take it in between, and Apache would be started in vain.
    let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port").port();
    let text = CONFIGURATION.replace("FOLDER", &folder).replace("PORT", &port.to_string());
    std::fs::write(format!("{folder}/conf"), text).expect("a file");
    let (out, err) = (tool.path("rows"), tool.path("said"));
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "--mount-proc", "--kill-child", "sh"]).stderr(Stdio::null());
    for (name, value) in tool.command(&[]).get_envs() {
        value.map(|value| command.env(name, value));
    }
    let mut space = Space::new(command);
    let program = env!("CARGO_BIN_EXE_webdyno");
    let (to, also) = (out.display(), err.display());
    space.tell(&format!("{program} watch --tree apache --record --json 1 > {to} 2> {also} & watch=$!"));
    let none = until(&out, 0, "there is no server", |row| row["tree"].is_null());
    let mut at = none;
    let mut roots = Vec::new();
    for runs in ["apache runs now, as process", "apache runs again, as process"] {
        space.tell(&format!("{apache} -f {folder}/conf -k start"));
        at = until(&out, at, "the server runs", is_whole);
        roots.push(rows(&out)[at]["tree"]["root"].clone());
        until_said(&err, runs);
        space.tell(&format!("kill -TERM $(cat {folder}/pid)"));
        at = until(&out, at, "it has ended", |row| row["tree"].is_null());
    }
    // A shell has what runs in the background ignore Ctrl-C.
    space.tell("kill -TERM $watch; wait $watch; exit");
    assert!(space.shell.wait().expect("our own child").success());
    assert_ne!(roots[0], roots[1]);
    let said = std::fs::read_to_string(&err).expect("what it said");
    let count = |what: &str| said.lines().filter(|line| line.contains(what)).count();
    assert_eq!(count("no apache runs here yet; dashes until one does"), 1, "{said}");
    assert_eq!((count("apache runs now, as process"), count("apache runs again, as process")), (1, 1), "{said}");
    assert_eq!(count("apache has ended; dashes until it runs again"), 2, "{said}");
    // The recording has the same, and CPU time is told from the second row of each server on.
    let shown = tool.run(&["watch", "--replay", "latest", "--tree", "apache"]).out;
    let shown: Vec<Vec<&str>> = shown.lines().skip(2).map(|row| row.split_whitespace().collect()).collect();
    let gone = |row: &Vec<&str>| row.iter().all(|&number| number == "-");
    assert!(gone(&shown[none]) && gone(&shown[at]), "{shown:?}");
    for pair in shown.windows(2).filter(|pair| gone(&pair[0]) && !gone(&pair[1])) {
        assert_eq!(pair[1].last(), Some(&"-"), "{shown:?}");
    }
}
