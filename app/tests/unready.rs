//! Ctrl-C while a server or a service is waited for that does not become ready, or does not begin anew: the run ends at once, with everything given back.

mod tool;

use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};
use testkit::debian::Debian;
use tool::far::wait_until;
use tool::scene::Scene;
use tool::{Finished, Tool, remains};

/// It takes a tenth of a second where nobody else wants the CPUs; servers are waited for for 20 s, services and what a command starts for 60 s.
const AT_ONCE: Duration = Duration::from_secs(8);

const LOAD: &str = "[load.a]\npath = \"/\"\nconnections = 1\nrequests = 5\n[cooldown]\nlimit = \"0s\"\n";

/// Presses Ctrl-C, and says how it ended.
#[track_caller]
fn interrupted(child: Child) -> Finished {
    let pressed = Instant::now();
    kill_process(Pid::from_child(&child), Signal::INT).expect("our own child");
    let ended = Finished::of(&child.wait_with_output().expect("it ends"));
    assert!(pressed.elapsed() < AT_ONCE, "{:?} after Ctrl-C: {ended:?}", pressed.elapsed());
    assert_eq!(ended.code, 130, "{ended:?}");
    ended
}

/// Begins what the arguments and the plan say, and presses Ctrl-C once the file that the plan's server makes is there.
#[track_caller]
fn check(tool: &Tool, plan: &str, args: &[&str], begun: &Path) {
    let _ = fs::remove_file(begun);
    let child = tool.spawn(&[&["run", &tool.plan(plan), "--plain"], args].concat());
    wait_until("it is waited for", || begun.exists());
    let ended = interrupted(child);
    assert_eq!(ended.err, "", "nothing went wrong");
    assert_eq!(remains(tool), Vec::<String>::new());
    assert_eq!(tool.run(&["runs", "--json"]).out.trim(), "[]", "nothing was measured");
}

/// A folder with a program that Apache runs for `/cgi-bin/hang`, which makes a file and never answers; and that file.
fn hang(tool: &Tool) -> (PathBuf, PathBuf) {
    let open = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("our own");
    tool.tmp();
    let (scripts, made) = (tool.path("scripts"), tool.path("made"));
    for folder in [&scripts, &made] {
        fs::create_dir(folder).expect("a folder");
    }
    open(&scripts, 0o755);
    open(&made, 0o777);
    let begun = made.join("begun");
    let program = scripts.join("hang");
    fs::write(&program, format!("#!/bin/sh\n: > '{}'\nexec sleep 1000\n", begun.display())).expect("a program");
    open(&program, 0o755);
    (scripts, begun)
}

fn apache_is_here() -> bool {
    let here = Path::new("/usr/sbin/apache2").exists();
    if !here {
        testkit::skip::skipped("no Apache httpd");
    }
    here
}

#[test]
fn a_server_that_never_listens() {
    let tool = Tool::new();
    let begun = tool.path("begun");
    let server = format!(
        "[server]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", \": > '{}'; exec sleep 1000\"]\n{LOAD}",
        begun.display()
    );
    check(&tool, &server, &[], &begun);
    check(&tool, &server, &["--start", "as-is"], &begun);
}

#[test]
fn an_apache_that_takes_the_request_and_never_answers() {
    if !apache_is_here() {
        return;
    }
    let tool = Tool::new();
    let (_, begun) = hang(&tool);
    let server = format!("[server]\nkind = \"apache\"\nscripts = \"scripts\"\nready = \"/cgi-bin/hang\"\n{LOAD}");
    check(&tool, &server, &[], &begun);
}

#[test]
fn a_service_whose_command_never_says_that_it_is_ready() {
    let tool = Tool::new();
    let begun = tool.path("begun");
    for ready in ["exit 1", "exec sleep 1000"] {
        for keep in ["", "keep = true\n"] {
            let plan = format!(
                "[server]\nkind = \"embedded\"\n[service.db]\nkind = \"command\"\ncommand = [\"sleep\", \"1000\"]\n{keep}\
                 ready = [\"sh\", \"-c\", \": > '{}'; {ready}\"]\n{LOAD}",
                begun.display()
            );
            check(&tool, &plan, &[], &begun);
        }
    }
}

/// The machine's own server has its configuration again, and goes on.
#[test]
fn a_server_in_place() {
    let Some(scene) = Scene::<Debian>::new() else { return };
    let (scripts, begun) = hang(&scene.tool);
    let plan = scene.plan(
        "in_place = true\nready = \"/cgi-bin/hang\"",
        &format!(
            "[variant.close]\ndirectives = '''\nKeepAlive Off\n<IfModule !cgi_module>\n<IfModule !cgid_module>\n\
             LoadModule cgi_module /usr/lib/apache2/modules/mod_cgi.so\n</IfModule>\n</IfModule>\n\
             ScriptAlias /cgi-bin/ {}/\n<Directory {0}>\nRequire all granted\n</Directory>\n'''",
            scripts.display()
        ),
    );
    let child = scene.spawn(&plan);
    wait_until("it is waited for", || begun.exists());
    interrupted(child);
    scene.check_given_back();
}

/// A server that was told to begin anew, and whose worker is held by a page that does not end.
#[test]
fn a_server_that_does_not_begin_anew() {
    if !apache_is_here() {
        return;
    }
    let tool = Tool::new();
    let (_, begun) = hang(&tool);
    let document = tool.path("site");
    fs::create_dir(&document).expect("a folder");
    fs::set_permissions(&document, fs::Permissions::from_mode(0o755)).expect("our own");
    fs::write(document.join("index.html"), "here\n").expect("a page");
    fs::set_permissions(document.join("index.html"), fs::Permissions::from_mode(0o644)).expect("our own");
    let plan = tool.plan(
        "blocks = 2\naa = false\n[server]\nkind = \"apache\"\nmpm = \"prefork\"\nscripts = \"scripts\"\ndocument_root = \"site\"\n\
         ending = \"graceful\"\n[load.a]\npath = \"/cgi-bin/hang\"\nconnections = 1\nduration = \"500ms\"\ntimeout = \"400ms\"\n\
         [cooldown]\nlimit = \"0s\"\n",
    );
    let child = tool.spawn(&["run", &plan, "--plain"]);
    wait_until("the server is asked", || begun.exists());
    wait_until("it is told to begin anew", || logs(&tool.tmp()).contains("requested, doing restart"));
    let ended = interrupted(child);
    assert!(ended.out.contains("as-is"), "what was measured is kept: {ended:?}");
    assert_eq!(remains(&tool), Vec::<String>::new());
}

/// What is in all error logs of the servers that a run has in its folder now.
fn logs(tmp: &Path) -> String {
    let folders = |path: &Path| fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    let servers = folders(tmp).flat_map(|run| folders(&run).collect::<Vec<_>>());
    servers.filter_map(|server| fs::read_to_string(server.join("logs/error.log")).ok()).collect()
}
