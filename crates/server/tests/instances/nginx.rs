//! The machine's own nginx.

use crate::stage::{Stage, ask, eventually, processes_of};
use server::Running;
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use testkit::skip::skipped;

pub(crate) const TESTS: &[testkit::suite::Test] = &[
    ("nginx_serves_with_the_settings_of_the_plan", nginx_serves_with_the_settings_of_the_plan),
    ("nginx_names_the_line_it_refuses", nginx_names_the_line_it_refuses),
    ("nginx_warnings_are_failures_unless_allowed", nginx_warnings_are_failures_unless_allowed),
    ("nginx_instances_do_not_meet", nginx_instances_do_not_meet),
    ("nginx_leaves_no_process", nginx_leaves_no_process),
    ("nginx_that_refuses_the_ready_path", nginx_that_refuses_the_ready_path),
    ("nginx_writes_its_own_log", nginx_writes_its_own_log),
];

/// The stage, if there is an nginx to put on it.
fn stage() -> Option<Stage> {
    if !Path::new("/usr/sbin/nginx").exists() {
        skipped("there is no nginx");
        return None;
    }
    Some(Stage::new())
}

/// Keys of a plan whose directives begin on its line 4.
fn keys(directives: &str) -> String {
    format!("directives = \"\"\"\n{directives}\n\"\"\"")
}

fn started(stage: &Stage, directives: &str, variant: &str) -> Running {
    stage.start(&stage.plan("nginx", &keys(directives), variant), &[]).unwrap()
}

/// Both ways to be told: beforehand and at the start.
fn refused(stage: &Stage, directives: &str, variant: &str) -> String {
    let plan = stage.plan("nginx", &keys(directives), variant);
    let at_start = stage.told(&stage.start(&plan, &[]).unwrap_err());
    let before = stage.told(&stage.control(&plan).check(&stage.place(), &plan.variants[0]).unwrap_err());
    assert_eq!(before, at_start);
    at_start
}

fn nginx_serves_with_the_settings_of_the_plan() {
    let Some(stage) = stage() else { return };
    let running = started(
        &stage,
        "worker_processes 1;\nkeepalive_timeout 0\nlocation /made {\n  return 200 made;\n}",
        "directives = \"worker_processes 3\\nadd_header X-Variant yes\"",
    );
    assert!(running.settings.server.starts_with("nginx/"), "{}", running.settings.server);
    let value = |name: &str| running.settings.values.get(name).map(String::as_str);
    assert_eq!((value("worker_processes"), value("keepalive_timeout")), (Some("3"), Some("0")));
    let page = ask(running.address, "GET /");
    assert!(page.contains("A small page") && page.contains("X-Variant: yes"), "{page}");
    assert!(ask(running.address, "GET /made").ends_with("made"));
    eventually("three workers", || processes_of(stage.dir.path()).len() == 1 && workers(running.pid.unwrap()) == 3);
    running.stop().unwrap();
}

/// Direct children of a process.
fn workers(master: u32) -> usize {
    let children = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let stat = fs::read_to_string(entry.ok()?.path().join("stat")).ok()?;
        let parent = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse::<u32>().ok()?;
        (parent == master).then_some(())
    });
    children.count()
}

fn nginx_names_the_line_it_refuses() {
    let Some(stage) = stage() else { return };
    let check = |directives: &str, variant: &str, expected: &str| {
        assert_eq!(refused(&stage, directives, &format!("directives = \"{variant}\"")), expected);
    };
    check(
        "sendfile maybe",
        "",
        "DIR/plan.toml:4: sendfile maybe;: invalid value \"maybe\" in \"sendfile\" directive, it must be \"on\" or \"off\" (nginx)",
    );
    check(
        "sendfile on\nkeepalive_time_out 5",
        "",
        "DIR/plan.toml:5: keepalive_time_out 5;: unknown directive \"keepalive_time_out\" (nginx)",
    );
    check(
        "",
        "listen 80;",
        "DIR/plan.toml:11: listen 80;: a private instance listens on a port of its own; remove the line (nginx)",
    );
    check("location /x {", "", "DIR/plan.toml:4: location /x {: a block that began before does not end (nginx)");
}

fn nginx_warnings_are_failures_unless_allowed() {
    let Some(stage) = stage() else { return };
    let directives = "server_names_hash_bucket_size 64\nlocation /a { ssi_types text/html; }";
    let told = refused(&stage, directives, "");
    assert!(told.contains("plan.toml:5: ") && told.contains("duplicate MIME type \"text/html\""), "{told}");
    let running = started(&stage, directives, "allow_warnings = [\"duplicate MIME type\"]");
    assert!(ask(running.address, "GET /").contains("A small page"));
}

fn nginx_instances_do_not_meet() {
    let Some(stage) = stage() else { return };
    let (one, other) = (started(&stage, "return 200 one", ""), started(&stage, "return 200 other", ""));
    assert_ne!(one.address, other.address);
    assert!(ask(one.address, "GET /").ends_with("one") && ask(other.address, "GET /").ends_with("other"));
    // What others listen on is left alone.
    assert!(TcpListener::bind(one.address).is_err());
}

fn nginx_leaves_no_process() {
    let Some(stage) = stage() else { return };
    let running = started(&stage, "worker_processes 2", "");
    let pid = running.pid.unwrap();
    assert!(workers(pid) > 0);
    drop(running);
    eventually("nothing is left", || processes_of(stage.dir.path()).is_empty() && workers(pid) == 0);
}

fn nginx_that_refuses_the_ready_path() {
    let Some(stage) = stage() else { return };
    let plan = stage.plan("nginx", "ready = \"/nowhere\"", "");
    let told = stage.told(&stage.start(&plan, &[]).unwrap_err());
    assert!(
        told.starts_with("DIR/plan.toml:3: server.ready: ") && told.contains("/nowhere") && told.contains("404"),
        "{told}"
    );
}

fn nginx_writes_its_own_log() {
    let Some(stage) = stage() else { return };
    let plan = stage.plan("nginx", &keys("access_log logs/mine.log"), "");
    let running = stage.start(&plan, &[]).unwrap();
    let _ = ask(running.address, "GET /");
    // Beside the configuration, which its master names.
    let command = fs::read_to_string(format!("/proc/{}/cmdline", running.pid.unwrap())).unwrap();
    let (_, folder) = command.split_once("-p ").unwrap();
    let logs = Path::new(folder.split_once(" -c ").unwrap().0).join("logs");
    running.stop().unwrap();
    let lines = fs::read_to_string(logs.join("mine.log")).unwrap();
    // Readiness and the request, and none of it in ours.
    assert_eq!(lines.lines().count(), 2, "{lines}");
    assert!(!logs.join("access.log").exists());
}
