//! Bad input and trouble: one clear line each, the right exit code, nothing left running or changed.

mod tool;

use std::io::{BufRead, BufReader};
use std::time::{Duration, Instant};
use tool::{Finished, Tool};

const EMBEDDED: &str = r#"
[server]
kind = "embedded"
directives = "Workers 2"
[load.a]
path = "/"
connections = 2
requests = 10
[cooldown]
limit = "1ms"
"#;

const APACHE: &str = r#"
[server]
kind = "apache"
mpm = "prefork"
directives = """
StartServers 2
MaxRequestWorker 4
"""
[load.a]
path = "/"
connections = 1
requests = 10
"#;

/// The plan must end with that code and say all of that in one line.
fn check(plan: &str, code: i32, says: &[&str]) -> Finished {
    let tool = Tool::new();
    let finished = tool.run(&["run", &tool.plan(plan), "--plain"]);
    assert_eq!(finished.code, code, "{finished:?}");
    let line = finished.err.lines().find(|line| line.starts_with("webdyno: ")).unwrap_or_default();
    for expected in says {
        assert!(line.contains(expected), "no `{expected}` in `{line}` of {finished:?}");
    }
    assert_eq!(tool::remains(&tool), Vec::<String>::new());
    finished
}

fn apache_is_here() -> bool {
    let here = ["/usr/sbin/apache2", "/usr/sbin/httpd"].iter().any(|path| std::path::Path::new(path).exists());
    if !here {
        testkit::skip::skipped("no Apache httpd");
    }
    here
}

#[test]
fn a_plan_with_a_mistake() {
    check(&EMBEDDED.replace("connections", "conections"), 2, &["plan.toml:7", "load.a.conections", "unknown field"]);
    check(&EMBEDDED.replace("= 10", "= \"ten\""), 2, &["plan.toml:8", "load.a.requests", "invalid type"]);
    check(&EMBEDDED.replace("Workers 2", "Wrokers 2"), 2, &["plan.toml:4", "Wrokers"]);
    check(&EMBEDDED.replace("Workers 2", "Workers many"), 2, &["plan.toml:4", "Workers"]);
}

#[test]
fn a_plan_that_is_not_there() {
    let tool = Tool::new();
    let finished = tool.run(&["run", "nowhere.toml"]);
    assert_eq!(finished.code, 2);
    assert!(finished.err.contains("nowhere.toml"), "{}", finished.err);
}

#[test]
fn a_build_step_that_fails() {
    check(&format!("[[build]]\ncommand = [\"false\"]\n{EMBEDDED}"), 2, &["plan.toml:1", "`false` failed"]);
    check(&format!("[[build]]\ncommand = [\"no-such-program\"]\n{EMBEDDED}"), 2, &["no-such-program"]);
}

#[test]
fn a_directive_apache_refuses() {
    if apache_is_here() {
        check(APACHE, 2, &["plan.toml:7", "MaxRequestWorker", "Invalid command"]);
        check(
            &APACHE.replace("MaxRequestWorker 4", "MaxRequestWorkers four"),
            2,
            &["plan.toml:7", "MaxRequestWorkers"],
        );
    }
}

#[test]
fn an_apache_that_is_not_there() {
    let plan = APACHE.replace("kind = \"apache\"", "kind = \"apache\"\nprogram = \"/nowhere/httpd\"");
    check(&plan, 4, &["/nowhere/httpd"]);
}

#[test]
fn a_server_that_never_becomes_ready() {
    if apache_is_here() {
        let plan =
            APACHE.replace("MaxRequestWorker 4", "Redirect 404 /ready").replace("mpm", "ready = \"/ready\"\nmpm");
        check(&plan, 4, &["ready"]);
    }
}

#[test]
fn a_server_that_dies_makes_its_trial_invalid_and_the_run_goes_on() {
    let tool = Tool::new();
    let plan = EMBEDDED.replace("requests = 10", "duration = \"400ms\"");
    let plan = format!("blocks = 2\n{plan}");
    let mut child = tool.spawn(&["run", &tool.plan(&plan), "--plain"]);
    let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.starts_with("run ")), "the run did not begin");
    let began = Instant::now();
    let server = loop {
        if let Some(server) = child_of(child.id(), "serve") {
            break server;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "no server was started");
        std::thread::yield_now();
    };
    let server = rustix::process::Pid::from_raw(server).expect("a process");
    rustix::process::kill_process(server, rustix::process::Signal::KILL).expect("our own server");
    let lines: Vec<String> = lines.collect();
    let finished = Finished::of(&child.wait_with_output().expect("webdyno ends"));
    assert_eq!(lines.iter().filter(|line| line.contains("block")).count(), 4, "{lines:?}");
    assert_eq!(lines.iter().filter(|line| line.contains("invalid: ")).count(), 1, "{lines:?}");
    assert!(finished.out.contains("1/2"), "{finished:?}");
    assert_eq!(tool::remains(&tool), Vec::<String>::new());
}

/// A child process that has that word as an argument.
fn child_of(parent: u32, word: &str) -> Option<i32> {
    std::fs::read_dir("/proc").expect("/proc").flatten().find_map(|process| {
        let stat = std::fs::read_to_string(process.path().join("stat")).ok()?;
        let ppid: u32 = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?;
        let cmdline = std::fs::read(process.path().join("cmdline")).ok()?;
        let found = ppid == parent && cmdline.split(|&b| b == 0).any(|argument| argument == word.as_bytes());
        found.then(|| process.file_name().to_str()?.parse().ok()).flatten()
    })
}

#[test]
fn a_store_from_a_newer_version() {
    let tool = Tool::new();
    let made = tool.run(&["run", &tool.plan(EMBEDDED), "--quick"]);
    assert!(matches!(made.code, 0 | 3), "{made:?}");
    let path = tool.path("store.sqlite");
    // PRAGMA user_version is the four bytes at offset 60 of an SQLite file.
    let mut bytes = std::fs::read(&path).expect("the store");
    bytes[60..64].copy_from_slice(&9999_u32.to_be_bytes());
    std::fs::write(&path, bytes).expect("the store");
    for command in [vec!["runs"], vec!["run", &tool.plan(EMBEDDED)]] {
        let finished = tool.run(&command);
        assert_eq!(finished.code, 6, "{finished:?}");
        assert!(finished.err.contains("9999") && finished.err.contains("newer"), "{}", finished.err);
    }
}

#[test]
fn a_run_that_is_not_in_the_store() {
    let tool = Tool::new();
    let finished = tool.run(&["report", "2020"]);
    assert_eq!(finished.code, 6, "{finished:?}");
    assert_eq!(finished.err.lines().count(), 1, "{}", finished.err);
}
