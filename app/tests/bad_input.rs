//! Bad input and trouble: one clear line each, the right exit code, nothing left running or changed.

mod tool;

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
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
    check_in(&Tool::new(), plan, code, says)
}

/// The same, in a folder that holds more than the plan.
fn check_in(tool: &Tool, plan: &str, code: i32, says: &[&str]) -> Finished {
    let finished = check_typed(tool, &["run", &tool.plan(plan), "--plain"], code, says);
    assert_eq!(tool::remains(tool), Vec::<String>::new());
    finished
}

/// What is typed must end with that code and say all of that in one line.
fn check_typed(tool: &Tool, args: &[&str], code: i32, says: &[&str]) -> Finished {
    let finished = tool.run(args);
    assert_eq!(finished.code, code, "{finished:?}");
    assert_eq!(finished.err.lines().count(), 1, "{finished:?}");
    assert!(finished.err.starts_with("webdyno"), "{finished:?}");
    for expected in says {
        assert!(finished.err.contains(expected), "no `{expected}` in {finished:?}");
    }
    assert!(!finished.err.contains("(os error"), "{finished:?}");
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
fn a_doctor_says_what_is_missing_and_what_to_do() {
    let tool = Tool::new();
    let told = tool.run(&["doctor", "--json"]);
    assert_eq!(told.code, 0, "{}", told.err);
    let findings: serde_json::Value = serde_json::from_str(&told.out).expect("JSON");
    let states: Vec<_> =
        findings.as_array().expect("a list").iter().map(|it| it["state"].as_str().expect("a state")).collect();
    assert!(
        states.len() > 10 && states.iter().all(|state| ["ok", "limited", "missing"].contains(state)),
        "{}",
        told.out
    );
    // Nothing was made by asking.
    assert!(!tool.path("store.sqlite").exists() && !tool.path("state").exists());
    if rustix::process::geteuid().is_root() {
        let told = tool.run_as_nobody(&["doctor"]);
        assert_eq!(told.code, 0, "{}", told.err);
        assert!(told.out.contains("missing  groups       only root may confine a server"), "{}", told.out);
        let store = told.out.lines().find(|line| line.contains(" store ")).unwrap_or_default();
        assert!(store.starts_with("ok"), "a home of its own: {}", told.out);
        // Whoever may read a configuration can have a copy of it measured, whatever only root may open of it.
        for (main, program, topic) in [
            ("/etc/apache2/apache2.conf", "/usr/sbin/apache2", "own Apache"),
            ("/etc/nginx/nginx.conf", "/usr/sbin/nginx", "own nginx"),
        ] {
            let is_here = [main, program].iter().all(|path| std::path::Path::new(path).exists());
            let says = format!("can be measured as a private copy: from = \"{main}\"");
            let said = told.out.lines().find(|line| line.contains(topic)).unwrap_or_default();
            assert!(!is_here || said.contains(&says), "{}", told.out);
        }
    }
}

#[test]
fn a_plan_with_a_mistake() {
    check(
        &EMBEDDED.replace("connections", "conections"),
        2,
        &["plan.toml:7", "load.a.conections", "did you mean `connections`?"],
    );
    check(&EMBEDDED.replace("= 10", "= \"ten\""), 2, &["plan.toml:8", "load.a.requests", "must be a whole number"]);
    let duration = EMBEDDED.replace("requests = 10", "duration = 300");
    check(&duration, 2, &["plan.toml:8", "load.a.duration", "\"300s\""]);
    check(&EMBEDDED.replace("\"embedded\"", "\"iis\""), 2, &["plan.toml:3", "unknown value `iis`", "`apache`"]);
    check(&EMBEDDED.replace("Workers 2", "Wrokers 2"), 2, &["plan.toml:4", "Wrokers"]);
    check(&EMBEDDED.replace("Workers 2", "Workers many"), 2, &["plan.toml:4", "Workers"]);
}

#[test]
fn what_is_typed_wrong() {
    let check = |args: &[&str], says: &[&str]| {
        let finished = check_typed(&Tool::new(), args, 2, says);
        assert!(finished.out.is_empty(), "{finished:?}");
    };
    check(&["run", "--pla", "x"], &["'--pla'", "did you mean '--plain'?", "try `webdyno run --help`"]);
    check(&["run"], &["<PLAN> is missing", "try `webdyno run --help`"]);
    check(&["rum"], &["'rum'", "did you mean 'run'?", "try `webdyno --help`"]);
    check(&["run", "x", "--seed", "many"], &["--seed `many` is not a whole number"]);
    check(&["report", "--lang", "fr"], &["'fr'", "[possible values: en, ja]"]);
    check(&["run", "x", "--make-swap", "0"], &["--make-swap must be more than 0"]);
    check(&["serve", "--workers", "none"], &["--workers: `none` is not a number from 1 to 1000"]);
}

#[test]
fn help_is_an_answer() {
    let tool = Tool::new();
    for (args, code) in [(vec!["--help"], 0), (vec!["run", "--help"], 0), (vec!["serve", "--help"], 0), (vec![], 2)] {
        let finished = tool.run(&args);
        assert_eq!(finished.code, code, "{finished:?}");
        let text = if code == 0 { &finished.out } else { &finished.err };
        assert!(text.contains("Usage: webdyno"), "{finished:?}");
        assert_eq!(text.lines().find(|line| line.chars().count() > 100), None, "{args:?}");
    }
    assert_eq!(tool.run(&["--version"]).out, format!("webdyno {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn a_plan_that_is_none() {
    let tool = Tool::new();
    let path = |name: &str| tool.path(name).to_str().expect("UTF-8").to_owned();
    check_typed(
        &tool,
        &["run", &path("nowhere.toml")],
        2,
        &["there is no plan", "nowhere.toml; give the path of a plan"],
    );
    let plan = tool.plan(EMBEDDED);
    check_typed(&tool, &["run", &path("")], 2, &["is a folder; ", &format!("{plan} is one")]);
    std::fs::write(tool.path("program"), b"name = 1\n\x7fELF\xff").expect("a file");
    check_typed(&tool, &["run", &path("program")], 2, &["program:2: this is not UTF-8 text"]);
    // Where the plans that come with webdyno are, they are offered.
    let check = |name: &str, says: &str| {
        let mut command = tool.command(&["run", name]);
        let output = command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).output().expect("webdyno runs");
        let finished = Finished::of(&output);
        assert!(finished.err.contains(&format!("there is no plan {name}; {says}")), "{finished:?}");
    };
    check("nowhere.toml", "plans/first-look.toml is one to begin with, and there are ");
    check("plans/kepalive.toml", "did you mean plans/keepalive.toml?");
    check("plans/wordpress", "did you mean plans/php/wordpress.toml?");
}

#[test]
fn a_scale_that_the_plan_does_not_have() {
    let tool = Tool::new();
    let check = |plan: &str, says: &str| {
        check_typed(
            &tool,
            &["run", &tool.plan(plan), "--scale", "huge"],
            2,
            &[&format!("webdyno: --scale huge: {says}")],
        );
    };
    check(EMBEDDED, "the plan has no scales; leave the flag out");
    check(
        &format!("{EMBEDDED}[parameters]\nn = 1\n[scale.full]\nn = 2\n"),
        "the plan has no such scale; there is `full`",
    );
}

#[test]
fn a_folder_that_cannot_be_served() {
    if !apache_is_here() {
        return;
    }
    let tool = Tool::new();
    let plan = |line: &str| APACHE.replace("MaxRequestWorker 4\n", "").replace("mpm =", &format!("{line}\nmpm ="));
    check_in(&tool, &plan("scripts = \"nowhere\""), 2, &["plan.toml:4: server.scripts: ", "nowhere does not exist"]);
    let file = plan("document_root = \"plan.toml\"");
    check_in(&tool, &file, 2, &["plan.toml:4: server.document_root: ", "plan.toml is not a folder"]);
    if !tool::is_root() {
        return testkit::skip::not_here("only root's Apache runs as somebody else");
    }
    std::fs::DirBuilder::new().mode(0o700).create(tool.path("closed")).expect("a folder");
    let closed = plan("document_root = \"closed\"");
    check_in(&tool, &closed, 2, &["plan.toml:4: server.document_root: ", "closed (mode 0700)", "chmod o+x"]);
}

#[test]
fn a_build_step_that_fails() {
    check(&format!("[[build]]\ncommand = [\"false\"]\n{EMBEDDED}"), 2, &["plan.toml:1", "`false` failed"]);
    // What a step leaves behind on its way goes with the run: its temporary files lie in the run's own folder.
    let own = "[[build]]\ncommand = [\"sh\", \"-c\", \"test \\\"$TMPDIR\\\" = ${run} && echo own && false\"]\n";
    check(&format!("{own}{EMBEDDED}"), 2, &["failed (exit code 1): own"]);
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
fn a_port_that_is_taken() {
    if apache_is_here() {
        let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = taken.local_addr().expect("its address").to_string();
        let plan = APACHE.replace("MaxRequestWorker 4", &format!("Listen {address}"));
        check(&plan, 5, &[&address, "is in use by another program; stop it or listen elsewhere"]);
    }
}

#[test]
fn a_server_that_never_becomes_ready() {
    if !apache_is_here() {
        return;
    }
    let tool = Tool::new();
    let folder = tool.tmp();
    let script = folder.parent().expect("the tool's folder").join("scripts/broken");
    std::fs::create_dir(script.parent().expect("scripts")).expect("a folder");
    std::fs::write(&script, "#!/bin/sh\necho disk on fire >&2\n").expect("a script");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).expect("our own script");
    let plan = APACHE
        .replace("MaxRequestWorker 4\n", "")
        .replace("mpm", "scripts = \"scripts\"\nready = \"/cgi-bin/broken\"\nmpm");
    let says = ["Apache was not ready after 20.", "GET /cgi-bin/broken: status 500", "log ends with: ", "disk on fire"];
    check_in(&tool, &plan, 4, &says);
}

#[test]
fn a_ready_path_that_is_not_there() {
    if apache_is_here() {
        let began = Instant::now();
        let plan = APACHE.replace("MaxRequestWorker 4\n", "").replace("mpm", "ready = \"/none\"\nmpm");
        check(&plan, 2, &["plan.toml:4: server.ready: GET /none is answered with status 404", "name a path"]);
        assert!(began.elapsed() < Duration::from_secs(15), "it was waited for to the end: {:?}", began.elapsed());
    }
}

/// What a variant refuses is told before anything is measured, unless the plan means it.
#[test]
fn a_path_that_a_variant_refuses() {
    let says = ["variant `as-is` answers `GET /none` of load `a` with status 404: correct `path`", "\"status = 404\""];
    let missing = EMBEDDED.replace("path = \"/\"", "path = \"/none\"");
    let refused = check(&missing, 2, &says);
    assert!(!refused.err.contains("block"), "nothing was measured: {refused:?}");
    let meant = |status: u16| missing.replace("requests", &format!("checks = [\"status = {status}\"]\nrequests"));
    check(&meant(200), 2, &["`GET /none`", "with status 404: the load's `checks` ask for another one"]);
    let tool = Tool::new();
    let ran = tool.run(&["run", &tool.plan(&format!("blocks = 2\naa = false\n{}", meant(404))), "--plain"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    // Each of a mix is asked for.
    let mix = EMBEDDED.replace("path = \"/\"\n", "")
        + "[[load.a.request]]\npath = \"/\"\nweight = 1000\n[[load.a.request]]\npath = \"/none\"\n";
    check(&mix, 2, &["`GET /none`", "with status 404"]);
}

#[test]
fn a_second_signal_is_answered_and_obeyed_at_once() {
    let tool = Tool::new();
    let plan = EMBEDDED.replace("requests = 10", "duration = \"60s\"");
    let mut child = tool.spawn(&["run", &tool.plan(&plan), "--plain"]);
    let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.starts_with("run ")), "the run did not begin");
    let ids = tool.run_ids();
    let pid = rustix::process::Pid::from_child(&child);
    // Two of one kind could be delivered as one.
    for signal in [rustix::process::Signal::INT, rustix::process::Signal::TERM] {
        rustix::process::kill_process(pid, signal).expect("our own child");
    }
    let last = lines.last().unwrap_or_default();
    assert_eq!(Finished::of(&child.wait_with_output().expect("webdyno ends")).code, 130);
    assert!(last.starts_with("webdyno: stopping now"), "{last}");
    let began = Instant::now();
    while !tool::remains_of(&tool, &ids).is_empty() {
        assert!(began.elapsed() < Duration::from_secs(30), "{:?}", tool::remains_of(&tool, &ids));
        std::thread::yield_now();
    }
}

#[test]
fn a_dry_run_says_that_no_disk_holds_the_swap() {
    if !tool::is_root() {
        return testkit::skip::not_here("only root may add swap");
    }
    let tool = Tool::new();
    let swap = ["run", &tool.plan(EMBEDDED), "--make-swap", "999T"];
    let says = "no place for a swap file of 1047527424 MiB (";
    let real = tool.run(&swap);
    assert!(real.code == 5 && real.err.starts_with(&format!("webdyno: {says}")), "{real:?}");
    let dry = tool.run(&[&swap[..], &["--dry-run"]].concat());
    let begins = format!("webdyno: the run itself will be refused: {says}");
    assert!(dry.code == 0 && dry.err.starts_with(&begins) && dry.err.lines().count() == 1, "{dry:?}");
    assert!(dry.err.ends_with("; point TMPDIR at a folder on a real disk; this dry run goes on\n"), "{dry:?}");
}

#[test]
fn a_dry_run_says_that_the_run_needs_root() {
    if !tool::is_root() {
        return testkit::skip::not_here("only root can become nobody");
    }
    let tool = Tool::new();
    let plan = tool.plan(EMBEDDED);
    let swap = ["run", &plan, "--make-swap", "1M"];
    let real = tool.run_as_nobody(&swap);
    assert_eq!((real.code, real.err.as_str()), (5, "webdyno: only root may make a swap file: run webdyno as root\n"));
    let dry = tool.run_as_nobody(&[&swap[..], &["--dry-run"]].concat());
    let note = "webdyno: the run itself will be refused: only root may make a swap file: run webdyno as root; this dry run goes on\n";
    assert_eq!((dry.code, dry.err.as_str()), (0, note));
    assert!(dry.out.contains("a temporary swap file of 1"), "{dry:?}");
    // Whatever is wrong besides comes after it.
    let mistaken = tool.plan(&EMBEDDED.replace("Workers 2", "Workers many"));
    let both = tool.run_as_nobody(&["run", &mistaken, "--make-swap", "1M", "--dry-run"]);
    assert!(both.code == 2 && both.err.starts_with(note) && both.err.lines().count() == 2, "{both:?}");
}

#[test]
fn what_a_killed_run_left_can_be_looked_at_first() {
    let tool = Tool::new();
    let left = tool.path("webdyno-dead-1");
    std::fs::write(&left, "").expect("a file");
    std::fs::DirBuilder::new().mode(0o700).create(tool.path("state")).expect("a folder");
    let head = serde_json::json!({"head": {"run": "dead", "owner": {"pid": 1, "start_time": 0}, "boot": ""}});
    let change = serde_json::json!({"change": {"id": 0, "undo": {"remove_file": {"path": left}}}});
    std::fs::write(tool.path("state/dead.journal"), format!("{head}\n{change}\n")).expect("a journal");
    let file = left.display();
    for (args, expected) in [
        (vec!["restore", "--dry-run"], format!("would delete the file {file}\n")),
        (vec!["restore", "--dry-run"], format!("would delete the file {file}\n")),
        (vec!["restore"], format!("deleted the file {file}\n")),
        (vec!["restore", "--dry-run"], "Nothing was left behind.\n".to_owned()),
    ] {
        let finished = tool.run(&args);
        assert_eq!((finished.code, finished.out), (0, expected), "{args:?}");
    }
    assert!(!left.exists());
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
    let none = "there are no runs yet; make one with `webdyno run PLAN`";
    let listed = tool.run(&["runs"]);
    assert_eq!((listed.code, listed.out), (0, format!("{none}\n")));
    assert_eq!(tool.run(&["runs", "--json"]).out, "[]\n");
    check_typed(&tool, &["report", "2020"], 6, &["there is no store here yet"]);
    check_typed(&tool, &["runs", "--store", "/nowhere/store"], 6, &["there is no store here yet"]);
    drop(store::Store::open(&tool.path("store.sqlite")).expect("an empty store"));
    assert_eq!(tool.run(&["runs"]).out, format!("{none}\n"));
    check_typed(&tool, &["report"], 2, &[none]);
    let made = tool.run(&["run", &tool.plan(EMBEDDED), "--quick"]);
    assert!(matches!(made.code, 0 | 3), "{made:?}");
    check_typed(&tool, &["report", "2020"], 2, &["no run `2020`; `webdyno runs` lists them"]);
    assert!(matches!(tool.run(&["report", "latest"]).code, 0 | 3));
}
