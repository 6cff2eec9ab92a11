//! `webdyno run --start`: the server of a variant, kept for other programs, and gone when it is ended, killed or dies.

mod tool;

use std::io::{BufRead, BufReader, Read};
use std::process::Child;
use std::time::{Duration, Instant};
use tool::{Tool, remains};

const PLAN: &str = "[server]\nkind = \"embedded\"\n[variant.\"two workers\"]\ndirectives = \"Workers 2\"\n[variant.one]\ndirectives = \"Workers 1\"\n[load.l]\npath = \"/\"\nconnections = 1\nrequests = 1\n";
/// As long as anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// The lines up to the last one that comes before the server is ended.
fn said(child: &mut Child) -> Vec<String> {
    let out = BufReader::new(child.stdout.take().expect("piped"));
    let mut lines = Vec::new();
    for line in out.lines() {
        lines.push(line.expect("text"));
        if lines.last().is_some_and(|line| line.starts_with("Ctrl-C")) {
            break;
        }
    }
    lines
}

fn started(tool: &Tool, variant: &str) -> (Child, String, i32) {
    let mut child = tool.spawn(&["run", &tool.plan(PLAN), "--start", variant]);
    let lines = said(&mut child);
    let url = lines[0].strip_prefix("listening on ").expect("where it listens").to_owned();
    let pid = lines[1].strip_prefix("process ").expect("its process").parse().expect("a number");
    (child, url, pid)
}

/// What it said on standard error, and its code.
fn ended(mut child: Child) -> (i32, String) {
    let mut err = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut err).expect("text");
    (child.wait().expect("it ends").code().unwrap_or(-1), err)
}

fn signal(pid: i32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(pid).expect("a process");
    rustix::process::kill_process(pid, signal).expect("it is ours");
}

fn nothing_remains(tool: &Tool) {
    let since = Instant::now();
    while !remains(tool).is_empty() {
        assert!(since.elapsed() < PATIENCE, "{:?}", remains(tool));
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_variant_is_kept_until_the_user_ends_it() {
    let tool = Tool::new();
    let (child, url, _) = started(&tool, "two workers");
    let answered = tool.run(&["ab", "--no-store", "-n", "3", &format!("{url}/@settings")]);
    assert!(answered.out.contains("Complete requests:      3\n"), "{answered:?}");
    signal(child.id() as i32, rustix::process::Signal::INT);
    assert_eq!(ended(child).0, 0);
    nothing_remains(&tool);
    assert_eq!(tool.run(&["runs", "--json"]).out.trim(), "[]", "nothing is stored");
}

#[test]
fn a_server_that_dies_is_told() {
    let tool = Tool::new();
    let (child, _, pid) = started(&tool, "one");
    signal(pid, rustix::process::Signal::KILL);
    let (code, err) = ended(child);
    assert_eq!(code, 4, "{err}");
    assert!(err.contains("the server died while it was kept"), "{err}");
    nothing_remains(&tool);
}

#[test]
fn a_kill_leaves_no_server() {
    let tool = Tool::new();
    let (mut child, ..) = started(&tool, "one");
    child.kill().expect("it is ours");
    child.wait().expect("it ends");
    nothing_remains(&tool);
}

#[test]
fn a_variant_that_is_not_there_is_named() {
    let tool = Tool::new();
    let ended = tool.run(&["run", &tool.plan(PLAN), "--start", "three"]);
    assert_eq!(ended.code, 2);
    let said = "webdyno: --start: the plan has no variant `three` in a cell; its variants are `two workers`, `one`\n";
    assert_eq!(ended.err, said);
    let ended = tool.run(&["run", &tool.plan(PLAN), "--start", "one", "--dry-run"]);
    assert_eq!(ended.code, 2, "{}", ended.err);
}
