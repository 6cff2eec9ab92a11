//! `webdyno check` on real servers: the healthy are not accused, and of each planted fault the name is said.

mod running;
mod tool;

use running::{Group, Running, can_run};
use serde_json::Value;
use std::fmt::Write;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use testkit::own::{Snapshot, changed, snapshot};
use tool::far::wait_until;
use tool::{Finished, Tool, remains_of};

/// One check at a time: each wants the machine for itself.
static TURN: Mutex<()> = Mutex::new(());

fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A server with what is wrong with it, and what must be said of it.
struct Case {
    name: &'static str,
    needs: &'static [&'static str],
    start: fn() -> Option<Running>,
    page: &'static str,
    /// Idle connections of others.
    held: usize,
    /// The step that must be named; `None` for a server that must not be accused.
    fault: Option<&'static str>,
    /// The directive that it is about.
    directive: Option<&'static str>,
    /// Whether an ordinary user sees enough for it.
    for_users: bool,
}

const PREFORK: &[&str] = &["apache2", "mod_php"];
const EVENT: &[&str] = &["apache2", "php-fpm"];
const NGINX: &[&str] = &["nginx"];
const NGINX_FPM: &[&str] = &["nginx", "php-fpm"];
const CGI: &str = "StartServers 20\nLoadModule cgi_module /usr/lib/apache2/modules/mod_cgi.so\n\
                   <Location /memory.cgi>\n Options +ExecCGI\n SetHandler cgi-script\n</Location>\n";
const MAX: Option<&str> = Some("MaxRequestWorkers");

const CASES: &[Case] = &[
    Case {
        name: "prefork, healthy",
        needs: PREFORK,
        start: || Some(Running::prefork("", None)),
        page: "work.php",
        held: 0,
        fault: None,
        directive: None,
        for_users: true,
    },
    Case {
        name: "prefork, healthy, no answer like the other",
        needs: PREFORK,
        start: || Some(Running::prefork("", None)),
        page: "varied.php",
        held: 0,
        fault: None,
        directive: None,
        for_users: true,
    },
    Case {
        name: "prefork, limit too low",
        needs: PREFORK,
        start: || Some(Running::prefork("MaxClients 4\n", None)),
        page: "wait.php",
        held: 0,
        fault: Some("step-raise"),
        directive: Some("MaxClients (= MaxRequestWorkers)"),
        for_users: true,
    },
    Case {
        name: "prefork, limit too high for 300 MB",
        needs: PREFORK,
        start: || Some(Running::prefork("", Some(Group::new()?))),
        page: "memory.php",
        held: 0,
        fault: Some("step-memory"),
        directive: MAX,
        for_users: true,
    },
    Case {
        name: "prefork, a program of 20 MB for each request in 300 MB",
        needs: PREFORK,
        start: || Some(Running::prefork(CGI, Some(Group::new()?))),
        page: "memory.cgi",
        held: 0,
        // The group holds some ten of them; that none was killed is asked of each case.
        fault: Some("step-memory"),
        directive: MAX,
        for_users: true,
    },
    Case {
        name: "prefork, connections held",
        needs: PREFORK,
        start: || Some(Running::prefork("StartServers 10\nMaxRequestWorkers 10\nKeepAliveTimeout 100\n", None)),
        page: "wait.php",
        held: 8,
        fault: Some("step-keep-alive"),
        directive: Some("KeepAlive"),
        for_users: true,
    },
    Case {
        name: "prefork, all workers held",
        needs: PREFORK,
        start: || Some(Running::prefork("StartServers 5\nMaxRequestWorkers 5\nKeepAliveTimeout 100\n", None)),
        page: "wait.php",
        held: 5,
        fault: Some("step-held-all"),
        directive: Some("KeepAlive"),
        // Without an answer nobody says what server it is.
        for_users: false,
    },
    Case {
        name: "prefork, full accept queue",
        needs: PREFORK,
        start: || Some(Running::prefork("StartServers 8\nMaxRequestWorkers 8\nListenBacklog 1\n", None)),
        page: "wait.php",
        held: 0,
        fault: Some("step-backlog"),
        directive: Some("ListenBacklog"),
        for_users: true,
    },
    Case {
        name: "event + FPM, healthy",
        needs: EVENT,
        start: || Some(Running::event("", 50, None)),
        page: "work.php",
        held: 0,
        fault: None,
        directive: None,
        for_users: true,
    },
    Case {
        name: "event + FPM, connections held do no harm",
        needs: EVENT,
        start: || Some(Running::event("KeepAliveTimeout 100\n", 50, None)),
        page: "work.php",
        held: 20,
        fault: None,
        directive: None,
        for_users: true,
    },
    Case {
        name: "event + FPM, pool too small",
        needs: EVENT,
        start: || Some(Running::event("", 3, None)),
        page: "wait.php",
        held: 0,
        fault: Some("step-raise-pool"),
        directive: Some("pm.max_children"),
        for_users: true,
    },
    Case {
        name: "event + FPM, full queue of the pool",
        needs: EVENT,
        start: || Some(Running::event_with("", "pm = static\npm.max_children = 1\nlisten.backlog = 1", None)),
        page: "wait.php",
        held: 0,
        fault: Some("step-pool-queue"),
        directive: Some("listen.backlog"),
        for_users: true,
    },
    Case {
        name: "event + FPM, limit too low",
        needs: EVENT,
        start: || Some(Running::event("StartServers 1\nThreadsPerChild 4\nMaxRequestWorkers 4\n", 50, None)),
        page: "wait.php",
        held: 0,
        fault: Some("step-raise"),
        directive: MAX,
        for_users: true,
    },
    Case {
        name: "event + FPM, pool too large for 300 MB",
        needs: EVENT,
        start: || Some(Running::event("", 200, Some(Group::new()?))),
        page: "memory.php",
        held: 0,
        fault: Some("step-pool-memory"),
        directive: Some("pm.max_children"),
        for_users: true,
    },
    Case {
        name: "event + FPM, full accept queue",
        needs: EVENT,
        start: || {
            let directives = "StartServers 1\nThreadsPerChild 4\nMaxRequestWorkers 4\nListenBacklog 1\n";
            Some(Running::event(directives, 50, None))
        },
        page: "wait.php",
        held: 0,
        fault: Some("step-backlog"),
        directive: Some("ListenBacklog"),
        for_users: true,
    },
    Case {
        name: "nginx, healthy",
        needs: NGINX,
        start: || Some(Running::nginx("worker_processes auto;", "worker_connections 768;", "")),
        page: "",
        held: 20,
        fault: None,
        directive: None,
        for_users: true,
    },
    Case {
        name: "nginx, too few connections",
        needs: NGINX,
        start: || Some(Running::nginx("worker_processes 1;", "worker_connections 8;", "")),
        page: "",
        held: 0,
        fault: Some("step-connections"),
        directive: Some("worker_connections"),
        for_users: true,
    },
    Case {
        name: "nginx, full accept queue",
        needs: NGINX,
        start: || Some(Running::nginx("worker_processes 1;", "worker_connections 768;", "backlog=1")),
        page: "long.txt",
        held: 0,
        fault: Some("step-backlog"),
        directive: Some("listen ... backlog"),
        for_users: true,
    },
    Case {
        name: "nginx + FPM through an upstream, pool too small",
        needs: NGINX_FPM,
        start: || Some(Running::nginx_fpm(3)),
        page: "wait.php",
        held: 0,
        fault: Some("step-raise-pool"),
        directive: Some("pm.max_children"),
        for_users: true,
    },
];

fn case(name: &str) -> &'static Case {
    CASES.iter().find(|case| case.name == name).expect("a case")
}

/// Who runs webdyno.
#[derive(Debug, Clone, Copy)]
enum By {
    Root,
    Nobody,
}

/// The steps of a machine that others use: no place to look at a server.
const OF_OTHERS: [&str; 2] = ["step-host-disturbed", "step-others"];

/// What a check of it says; `None` where it cannot be started here, or where others have this machine for as long as it is checked again.
fn said(case: &Case, by: By, budget: &str) -> Option<(Value, Finished)> {
    for _ in 0..6 {
        let said = said_once(case, by, budget)?;
        if !OF_OTHERS.iter().any(|id| said.0["step"]["sentence"]["id"] == *id) {
            return Some(said);
        }
    }
    testkit::skip::not_here(&format!("{}: others have this machine", case.name));
    None
}

fn said_once(case: &Case, by: By, budget: &str) -> Option<(Value, Finished)> {
    if !can_run(case.needs) {
        return None;
    }
    let running = (case.start)()?;
    let held: Vec<TcpStream> = running.hold(case.held);
    let tool = Tool::new();
    let url = running.url(case.page);
    let args = ["check", &url, "--budget", budget, "--json", "--no-store"];
    let finished = match by {
        By::Root => tool.run(&args),
        By::Nobody => tool.run_as_nobody(&args),
    };
    drop(held);
    assert_eq!(running.kills(), 0, "{}: the check did harm", case.name);
    let said = serde_json::from_str(&finished.out).unwrap_or_else(|error| panic!("{error}: {finished:?}"));
    Some((said, finished))
}

/// Runs a case and compares; the server is named in any case.
fn check(name: &str, by: By) {
    let _turn = turn();
    let case = case(name);
    let Some((said, finished)) = said(case, by, "5s") else { return };
    assert_eq!(judged(case, &said), Ok(()), "{name}, {by:?}: {said:#}");
    assert_eq!(finished.code == 1, case.fault.is_some(), "{name}: {finished:?}");
}

/// Whether the right thing is said.
fn judged(case: &Case, said: &Value) -> Result<(), String> {
    let step = &said["step"];
    let id = step["sentence"]["id"].as_str().unwrap_or("none");
    match case.fault {
        None if step["is_fault"] == true => Err(format!("accused: {id}")),
        Some(fault) if fault != id => Err(format!("{id} instead of {fault}")),
        _ if case.directive.is_some_and(|directive| step["directive"] != directive) => {
            Err(format!("{} instead of {:?}", step["directive"], case.directive))
        }
        // Nor may anything be named beside it that is not wrong.
        _ if !stray(case, said).is_empty() => Err(format!("also {:?}", stray(case, said))),
        _ if !case.name.contains("all workers") && said["running"]["root"].is_null() => Err("nobody found".to_owned()),
        _ => Ok(()),
    }
}

/// Whether it kept what it promises, by its own clock. Only where it has the machine for itself is that asked.
fn in_time(said: &Value) -> Result<(), String> {
    let time = said["took_s"].as_f64().ok_or("no word on the time")?;
    if time <= 60.0 { Ok(()) } else { Err(format!("over 60 s: {time:.1} s")) }
}

/// What is named beside the step and is not what was planted. A queue of one that overflows has workers too few behind it; a server that may
/// do too little is asked for more than its queue holds; one process of nginx with few connections may still fill a CPU.
fn stray<'a>(case: &Case, said: &'a Value) -> Vec<&'a str> {
    let bears: &[&str] = match case.fault {
        Some("step-backlog") => {
            &["step-processes", "step-raise", "step-raise-pool", "step-failures", "step-connections"]
        }
        Some("step-pool-queue") => &["step-raise-pool", "step-failures"],
        // Requests that wait behind held workers until the check is over have failed.
        Some("step-keep-alive") => &["step-raise", "step-queue-full", "step-failures"],
        Some("step-memory" | "step-pool-memory") => &["step-raise", "step-queue-full"],
        Some("step-connections") => &["step-failures", "step-processes"],
        Some(_) => &["step-queue-full"],
        None => &[],
    };
    let others = said["others"].as_array().into_iter().flatten();
    let ids = others.filter_map(|other| other["sentence"]["id"].as_str());
    ids.filter(|id| !bears.contains(id)).collect()
}

macro_rules! cases {
    ($($test:ident $by:ident $name:literal;)*) => { $(#[test] fn $test() { check($name, By::$by); })* };
}

cases! {
    prefork_that_is_well Root "prefork, healthy";
    prefork_with_answers_of_any_length Root "prefork, healthy, no answer like the other";
    prefork_that_may_do_too_little Root "prefork, limit too low";
    prefork_that_may_do_too_little_seen_by_a_user Nobody "prefork, limit too low";
    prefork_that_may_do_too_much Root "prefork, limit too high for 300 MB";
    prefork_with_programs_that_memory_does_not_hold Root "prefork, a program of 20 MB for each request in 300 MB";
    prefork_with_such_programs_seen_by_a_user Nobody "prefork, a program of 20 MB for each request in 300 MB";
    prefork_with_held_connections Root "prefork, connections held";
    prefork_with_all_workers_held Root "prefork, all workers held";
    prefork_with_a_full_queue Root "prefork, full accept queue";
    event_that_is_well Root "event + FPM, healthy";
    event_with_a_pool_too_small Root "event + FPM, pool too small";
    event_with_a_pool_whose_queue_is_full Root "event + FPM, full queue of the pool";
    event_that_may_do_too_little Root "event + FPM, limit too low";
    event_with_a_pool_too_large Root "event + FPM, pool too large for 300 MB";
    nginx_that_is_well Nobody "nginx, healthy";
    nginx_with_too_few_connections Root "nginx, too few connections";
    nginx_with_a_full_queue Root "nginx, full accept queue";
    nginx_with_a_pool_too_small Root "nginx + FPM through an upstream, pool too small";
    nginx_with_a_pool_too_small_seen_by_a_user Nobody "nginx + FPM through an upstream, pool too small";
}

/// Every case with all the time a check takes, as root and as an ordinary user.
#[test]
fn long_check_check_names_every_fault() {
    let Some(results) = testkit::skip::long_results() else { return };
    let mut page = "# `webdyno check` on servers that are well and on servers with one planted fault\n\n\
                    | server | by | what was said | directive | to | answers/s | time | right |\n|---|---|---|---|---|---|---|---|\n"
        .to_owned();
    let mut wrong = Vec::new();
    for case in CASES {
        for by in [By::Root, By::Nobody] {
            if matches!(by, By::Nobody) && !case.for_users {
                continue;
            }
            // What cannot be judged now is told in the page, and the others are judged all the same.
            let Some((said, _)) = said(case, by, "60s") else {
                let _ = writeln!(
                    page,
                    "| {} | {by:?} | - | - | - | - | - | not judged: not to be had here now |",
                    case.name
                );
                continue;
            };
            let judged = judged(case, &said).and_then(|()| in_time(&said));
            let step = &said["step"];
            let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
            let rate = said["answer"]["good_per_s"].as_f64().map_or("-".to_owned(), |rate| format!("{rate:.0}"));
            let time = said["took_s"].as_f64().map_or("-".to_owned(), |time| format!("{time:.1} s"));
            let right = judged.as_ref().map_or_else(Clone::clone, |()| "yes".to_owned());
            let _ = writeln!(
                page,
                "| {} | {by:?} | {} | {} | {} | {rate} | {time} | {right} |",
                case.name,
                text(&step["sentence"]["id"]),
                text(&step["directive"]),
                text(&step["to"]),
            );
            wrong.extend(judged.err().map(|why| format!("{}, {by:?}: {why}", case.name)));
        }
    }
    std::fs::write(results.join("check.md"), page).expect("room for the result");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Workers that all wait for what is behind them are at work: no idle connection holds them, and KeepAlive has nothing to do with it.
#[test]
fn workers_that_are_stuck_are_not_held() {
    let _turn = turn();
    if !can_run(PREFORK) {
        return;
    }
    let running = Running::prefork("StartServers 4\nMaxRequestWorkers 4\n", None);
    let waiting = running.wait_for("stuck.php", 4);
    let finished = Tool::new().run(&["check", &running.url("wait.php"), "--budget", "5s", "--json", "--no-store"]);
    drop(waiting);
    let said: Value = serde_json::from_str(&finished.out).unwrap_or_else(|error| panic!("{error}: {finished:?}"));
    assert_eq!((finished.code, &said["step"]["sentence"]["id"]), (1, &Value::from("step-silent")), "{said:#}");
    assert_eq!(said["connected_before"]["others"], 4, "{said:#}");
}

/// Workers of Apache wait in connect(2) at a queue that is full, and nobody is answered: no answer tells of it.
#[test]
fn a_pool_that_is_stuck_with_a_full_queue() {
    let _turn = turn();
    if !can_run(EVENT) {
        return;
    }
    let running = Running::event_with("", "pm.max_children = 3\nlisten.backlog = 1", None);
    // Three are worked on, two wait in the queue, the others before it.
    let visitors = running.wait_for("stuck.php", 8);
    let url = running.url("wait.php");
    let said = Tool::new().run(&["check", &url, "--budget", "8s", "--json", "--no-store"]);
    drop(visitors);
    let told: Value = serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {said:?}"));
    assert_eq!(told["step"]["sentence"]["id"], "step-pool-queue", "{told:#}");
    assert_eq!(told["step"]["directive"], "listen.backlog", "{told:#}");
}

/// A visitor brings his cookie back: what a check leaves behind is a session for a connection, not one for a request.
#[test]
fn sessions_are_those_of_connections() {
    let _turn = turn();
    if !can_run(PREFORK) {
        return;
    }
    let running = Running::prefork("", None);
    let finished = Tool::new().run(&["check", &running.url("session.php"), "--budget", "5s", "--json", "--no-store"]);
    let said: Value = serde_json::from_str(&finished.out).unwrap_or_else(|error| panic!("{error}: {finished:?}"));
    // Beside ours are the test's own request and those that Apache wakes its processes with.
    let log = running.log();
    let of_others = |line: &&str| line.ends_with(" test") || line.contains("internal dummy connection");
    let answered: Vec<&str> = log.lines().filter(|line| line.starts_with("200 ") && !of_others(line)).collect();
    assert!(answered.iter().all(|line| line.contains(" webdyno/")), "the requests bear our name");
    let (answers, sessions) = (answered.len(), running.sessions());
    assert!(sessions > 0 && sessions * 2 < answers, "{sessions} sessions of {answers} answers: {said:#}");
    assert_eq!(said["page"]["sets_cookie"], true, "{said:#}");
}

/// A server that closes each connection after a few requests has many from us, and none of them is somebody else's; those at another door of
/// this machine are.
#[test]
fn connections_that_the_server_closes_are_not_taken_for_others() {
    let _turn = turn();
    if !can_run(PREFORK) {
        return;
    }
    let running = Running::prefork("MaxKeepAliveRequests 20\n", None);
    let url = running.url("");
    let is_told = || {
        let finished = Tool::new().run(&["check", &url, "--budget", "5s", "--json", "--no-store"]);
        let said: Value = serde_json::from_str(&finished.out).unwrap_or_else(|error| panic!("{error}: {finished:?}"));
        let told = said["doubts"].as_array().into_iter().flatten().any(|doubt| doubt["id"] == "check-foreign-opened");
        (told, said)
    };
    let (told, said) = is_told();
    assert!(!told, "{said:#}");
    let door = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = door.local_addr().expect("an address");
    let (told, said) = std::thread::scope(|scope| {
        let checking = scope.spawn(is_told);
        while !checking.is_finished() {
            drop(TcpStream::connect(address).and_then(|_| door.accept()));
        }
        checking.join().expect("it is told")
    });
    assert!(told, "{said:#}");
}

/// A server's files, those that it writes to itself left out; and when each was touched last, by whatever means.
fn files(of: &Path) -> (Snapshot, Vec<(PathBuf, u64, i64, i64)>) {
    let mut files = snapshot(of);
    files.retain(|path, _| path.extension().is_none_or(|ending| ending != "log"));
    let touched = |path: &PathBuf| {
        let facts = fs::symlink_metadata(path).expect("it is there");
        (path.clone(), facts.ino(), facts.ctime(), facts.ctime_nsec())
    };
    let touched = files.keys().map(touched).collect();
    (files, touched)
}

/// Checks a server that has as many processes as it may have, and looks for all that could be left of it; `kept` is what lies in its user's home then.
fn check_trace(running: &Running, page: &str, (processes, words): (usize, &[&str]), kept: &[&str]) {
    wait_until("all its processes are there", || running.processes().len() == processes);
    let tool = Tool::new();
    let home = tool.path("home");
    fs::create_dir(&home).expect("a folder");
    let folder = running.path("");
    let (before, tree) = (files(Path::new(&folder)), running.processes());
    let url = running.url(page);
    let mut command = tool.command(&[&["check", &url, "--budget", "2s", "--json"], words].concat());
    command.env_remove("WEBDYNO_STORE").env_remove("XDG_DATA_HOME").env("HOME", &home).current_dir(&home);
    let finished = Finished::of(&command.output().expect("webdyno runs"));
    let said: Value = serde_json::from_str(&finished.out).unwrap_or_else(|error| panic!("{error}: {finished:?}"));
    assert!(said["windows"].as_array().is_some_and(|windows| windows.len() > 1), "it was loaded: {said:#}");
    let after = files(Path::new(&folder));
    assert_eq!(changed(&before.0, &after.0), Vec::<String>::new());
    assert_eq!(before.1, after.1);
    assert_eq!(tree, running.processes());
    let is_known = |line: &str| ["webdyno/", "test", "internal dummy connection"].iter().any(|who| line.contains(who));
    assert!(running.log().lines().all(is_known), "{}", running.log());
    let of_tool = snapshot(&tool.path(""));
    let found: Vec<_> = of_tool.keys().filter(|path| path.is_file()).collect();
    assert_eq!(found, kept.iter().map(|name| home.join(name)).collect::<Vec<_>>().iter().collect::<Vec<_>>());
    let id = said["id"].as_str().expect("an id").to_owned();
    assert_eq!(remains_of(&tool, &[id]), Vec::<String>::new());
}

/// The server's files and processes are as they were; what is kept is in the user's store, or nowhere.
#[test]
fn a_check_leaves_no_trace_but_its_requests() {
    let _turn = turn();
    if can_run(PREFORK) {
        let four = "StartServers 4\nServerLimit 4\nMaxRequestWorkers 4\nMinSpareServers 1\nMaxSpareServers 5\n";
        let stored = [".local/share/webdyno/store.sqlite"];
        check_trace(&Running::prefork(four, None), "work.php", (5, &[]), &stored);
    }
    if can_run(NGINX) {
        let two = Running::nginx("worker_processes 2;", "worker_connections 768;", "");
        check_trace(&two, "long.txt", (3, &["--no-store"]), &[]);
    }
}

/// Of a server that nobody knows only the answers are told, and the store shows it again.
#[test]
fn a_server_that_nobody_knows() {
    let _turn = turn();
    let server = testkit::scripted::Scripted::always(vec![testkit::scripted::Step::Send(
        b"HTTP/1.1 200 OK\r\nServer: own/1\r\nContent-Length: 2\r\n\r\nok".to_vec(),
    )]);
    let (tool, url) = (Tool::new(), format!("http://{}/", server.address()));
    let finished = tool.run(&["check", &url, "--budget", "2s"]);
    assert!(finished.out.contains("own/1") && finished.out.contains("The next step"), "{finished:?}");
    assert_eq!(tool.run(&["report"]).out, finished.out, "kept in the store");
    let japanese = tool.run(&["report", "--lang", "ja"]);
    assert!(japanese.out.contains("次にすること"), "{japanese:?}");
    assert_eq!(tool.run(&["report", "--markdown"]).code, 2);
    let dry = tool.run(&["check", &url, "--dry-run"]);
    assert!(dry.code == 0 && dry.out.contains("within 60.0 s"), "{dry:?}");
}

/// Who may have few open files has fewer connections tried, and hears it.
#[test]
fn a_check_that_may_have_few_files() {
    let _turn = turn();
    let server = testkit::scripted::Scripted::always(vec![testkit::scripted::Step::Send(
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".to_vec(),
    )]);
    let (tool, url) = (Tool::new(), format!("http://{}/", server.address()));
    let command = tool.command(&["check", &url, "--budget", "2s", "--no-store"]);
    let mut few = Command::new("/bin/sh");
    few.args(["-c", "ulimit -n 100 && exec \"$0\" \"$@\""]).arg(command.get_program()).args(command.get_args());
    few.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?)))).env_remove("NO_COLOR");
    let finished = Finished::of(&few.output().expect("a shell"));
    let said = finished.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("this process may have 100 open files: no more than "), "{finished:?}");
}

/// A wrong address is told by the first requests: nothing is measured.
#[test]
fn a_page_that_is_not_there() {
    let _turn = turn();
    for (head, step, to) in [
        ("404 Not Found\r\n", "step-status", Value::Null),
        ("301 Moved\r\nLocation: https://x.example/\r\n", "step-redirect", Value::from("https://x.example/")),
    ] {
        let answer = format!("HTTP/1.1 {head}Content-Length: 2\r\n\r\nno");
        let server = testkit::scripted::Scripted::always(vec![testkit::scripted::Step::Send(answer.into_bytes())]);
        let finished = Tool::new().run(&["check", &format!("http://{}/", server.address()), "--json", "--no-store"]);
        let said: Value = serde_json::from_str(&finished.out).unwrap_or_else(|error| panic!("{error}: {finished:?}"));
        let told = (finished.code, &said["step"]["sentence"]["id"], &said["step"]["to"], &said["summit"]);
        assert_eq!(told, (1, &Value::from(step), &to, &Value::from("refused")), "{said:#}");
        assert_eq!(said["windows"], serde_json::json!([]), "{said:#}");
    }
}

/// What cannot be done is one line and an exit code.
#[test]
fn what_cannot_be_checked() {
    let tool = Tool::new();
    let refused = |args: &[&str], code: i32, says: &str| {
        let finished = tool.run(&[&["check"], args].concat());
        assert_eq!((finished.code, finished.err.lines().count(), finished.out.as_str()), (code, 1, ""), "{finished:?}");
        assert!(finished.err.contains(says), "{finished:?}");
    };
    let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port").port();
    refused(&[&format!("127.0.0.1:{port}")], 4, "nobody listens there");
    refused(&["http://192.0.2.1/"], 2, "--i-operate 192.0.2.1");
    refused(&["http://localhost/", "--budget", "1s"], 2, "not a time from 2s to 10m");
    refused(&["ftp://localhost/"], 2, "not ftp");
}
