//! Servers that a command starts: a small one in Python, which every machine of ours has, and one of node's.

use crate::stage::{Stage, ask, eventually, processes_of};
use std::fs;
use std::path::Path;
use testkit::skip::skipped;

pub(crate) const TESTS: &[testkit::suite::Test] = &[
    ("a_command_is_told_its_port_and_settings", a_command_is_told_its_port_and_settings),
    ("a_command_that_cannot_be_run_is_named", a_command_that_cannot_be_run_is_named),
    ("a_command_that_ends_says_what_it_said", a_command_that_ends_says_what_it_said),
    ("node_with_its_workers_is_a_command", node_with_its_workers_is_a_command),
];

/// Answers what it was told: its arguments and the variable COLOUR.
const SCRIPT: &str = "\
import http.server, os, sys
class Told(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        text = ' '.join(sys.argv[2:] + [os.environ['COLOUR'], os.getcwd()]).encode()
        self.send_response(200)
        self.send_header('Content-Length', str(len(text)))
        self.end_headers()
        self.wfile.write(text)
http.server.HTTPServer(('127.0.0.1', int(sys.argv[1])), Told).serve_forever()
";

/// Answers who does it, by so many workers as it was told.
const CLUSTER: &str = "\
const cluster = require('cluster'), http = require('http');
if (cluster.isMaster) {
    for (let n = 0; n < +process.env.WORKERS; n++) cluster.fork();
} else {
    http.createServer((_, answer) => answer.end(String(process.ppid))).listen(+process.env.PORT, process.env.ADDRESS);
}
";

fn stage() -> Option<Stage> {
    if !Path::new("/usr/bin/python3").exists() {
        skipped("there is no python3");
        return None;
    }
    let stage = Stage::new();
    fs::write(stage.dir.path().join("told.py"), SCRIPT).unwrap();
    Some(stage)
}

const COMMAND: &str = "command = [\"/usr/bin/python3\", \"told.py\", \"${port}\", \"-w${WORKERS}\"]";

fn a_command_is_told_its_port_and_settings() {
    let Some(stage) = stage() else { return };
    let keys = format!("{COMMAND}\ndirectives = \"\"\"\nCOLOUR=red\nWORKERS=1\n\"\"\"");
    let plan = stage.plan("command", &keys, "directives = \"WORKERS=4\"");
    let running = stage.start(&plan, &[]).unwrap();
    let folder = stage.dir.path().canonicalize().unwrap();
    let answer = ask(running.address, "GET /");
    assert!(answer.ends_with(&format!("-w4 red {}", folder.display())), "{answer}");
    assert_eq!(running.settings.server, "python3");
    assert_eq!(running.settings.values["WORKERS"], "4");
    let pid = running.pid.unwrap();
    running.stop().unwrap();
    eventually("it is gone", || {
        !Path::new(&format!("/proc/{pid}")).exists() && processes_of(stage.dir.path()).is_empty()
    });
}

fn a_command_that_cannot_be_run_is_named() {
    let Some(stage) = stage() else { return };
    let check = |keys: &str, variant: &str, expected: &str| {
        let plan = stage.plan("command", keys, variant);
        let at_start = stage.told(&stage.start(&plan, &[]).unwrap_err());
        let before = stage.told(&stage.control(&plan).check(&stage.place(), &plan.variants[0]).unwrap_err());
        assert_eq!((before.as_str(), at_start.as_str()), (expected, expected));
    };
    check(
        "command = [\"nosuch\", \"${port}\"]",
        "",
        "DIR/plan.toml:3: server.command: nosuch is no program in PATH; install it, or name its path",
    );
    check(
        "command = [\"bin/nosuch\", \"${port}\"]",
        "",
        "DIR/plan.toml:3: server.command: DIR/bin/nosuch is no program; install it, or correct the path",
    );
    check(
        "command = [\"./told.py\", \"${port}\"]",
        "",
        "DIR/plan.toml:3: server.command: DIR/./told.py may not be run; allow it with chmod +x",
    );
    check(
        COMMAND,
        "",
        "DIR/plan.toml:3: server.command: ${WORKERS} is neither a setting of `v` nor ${port}, ${address} or ${folder}; write WORKERS=value among its directives",
    );
    check(
        COMMAND,
        "directives = \"WORKERS 4\"",
        "DIR/plan.toml:9: WORKERS 4: is no setting; write NAME=value (the server's command)",
    );
}

fn a_command_that_ends_says_what_it_said() {
    let Some(stage) = stage() else { return };
    let plan =
        stage.plan("command", "command = [\"/usr/bin/python3\", \"-c\", \"raise SystemExit('no luck today')\"]", "");
    let told = stage.told(&stage.start(&plan, &[]).unwrap_err());
    assert!(told.contains("no luck today"), "{told}");
}

/// One process that starts others, which all go with it.
fn node_with_its_workers_is_a_command() {
    let Some(node) = ["/usr/bin/node", "/usr/bin/nodejs"].into_iter().find(|path| Path::new(path).exists()) else {
        return skipped("there is no node");
    };
    let stage = Stage::new();
    fs::write(stage.dir.path().join("cluster.js"), CLUSTER).unwrap();
    let script = stage.dir.path().join("cluster.js");
    let keys = format!("command = [\"{node}\", \"{}\"]\ndirectives = \"WORKERS=2\"", script.display());
    let running = stage.start(&stage.plan("command", &keys, "directives = \"WORKERS=3\""), &[]).unwrap();
    let answer = ask(running.address, "GET /");
    assert!(answer.ends_with(&format!("\r\n\r\n{}", running.pid.unwrap())), "{answer}");
    eventually("all workers are there", || processes_of(stage.dir.path()).len() == 1 + 3);
    running.stop().unwrap();
    eventually("all are gone", || processes_of(stage.dir.path()).is_empty());
}
