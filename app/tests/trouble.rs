//! Trouble with real servers that a plan or the machine makes: what is clamped, what cannot start, what only a full restart brings, who
//! may not, and what changes meanwhile. One clear line each, the right exit code, nothing lost and nothing left.

mod tool;

use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use testkit::debian::Debian;
use testkit::own::Own;
use tool::scene::Scene;
use tool::{Finished, Tool, is_root, remains};

/// Directives that Apache's threads do not run with as they are written, and what is said of them.
const CLAMPED: [(&str, &str); 6] = [
    ("ThreadsPerChild 0", "ThreadsPerChild of 0 not allowed, increasing to 1"),
    ("MaxRequestWorkers 5000", "would exceed ServerLimit of"),
    ("MaxClients abc", "MaxRequestWorkers of 0 is less than ThreadsPerChild"),
    ("ServerLimit 999999", "exceeds compile-time limit of 20000 servers"),
    ("ThreadsPerChild 100", "exceeds ThreadLimit of 64 threads"),
    ("MaxConnectionsPerChild -1", "takes a whole number; Apache would read something else"),
];

/// The same of processes.
const CLAMPED_OF_PREFORK: [(&str, &str); 4] = [
    ("StartServers 0", "StartServers of 0 not allowed, increasing to 1"),
    ("MaxRequestWorkers 5000", "exceeds ServerLimit value of"),
    ("MaxClients abc", "MaxRequestWorkers of 0 not allowed, increasing to 1"),
    ("MaxConnectionsPerChild -1", "takes a whole number; Apache would read something else"),
];

#[track_caller]
fn check(finished: &Finished, code: i32, says: &[&str]) {
    let last = finished.err.lines().last().unwrap_or_default();
    assert_eq!(finished.code, code, "{finished:?}");
    assert!(
        last.starts_with("webdyno: ") && says.iter().all(|part| last.contains(part)),
        "no {says:?} in {finished:?}"
    );
}

fn apache_is_here() -> bool {
    let here = Path::new("/usr/sbin/apache2").exists();
    if !here {
        testkit::skip::skipped("no Apache httpd");
    }
    here
}

/// A private Apache of two variants, of which the second is `directives`.
fn private(directives: &str) -> String {
    format!(
        "blocks = 2\naa = false\n[server]\nkind = \"apache\"\nmpm = \"event\"\n[load.a]\npath = \"/\"\nconnections = 1\nrequests = 5\n\
         [cooldown]\nlimit = \"0s\"\n[variant.good]\n[variant.bad]\ndirectives = '''\n{directives}\n'''\n"
    )
}

#[test]
fn what_apache_would_clamp_is_refused() {
    if !apache_is_here() {
        return;
    }
    let tool = Tool::new();
    for (directive, why) in CLAMPED {
        let ended = tool.run(&["run", &tool.plan(&private(directive)), "--plain"]);
        check(&ended, 2, &[&format!("plan.toml:15: {directive}: "), why]);
        assert_eq!(ended.err.lines().count(), 1, "{ended:?}");
    }
    assert_eq!(remains(&tool), Vec::<String>::new());
}

#[test]
fn what_apache_would_clamp_is_refused_in_place_and_all_is_given_back() {
    let Some(scene) = Scene::<Debian>::new() else { return };
    let prefork = fs::exists("/etc/apache2/mods-enabled/mpm_prefork.load").unwrap_or(false);
    let clamped = if prefork { &CLAMPED_OF_PREFORK[..] } else { &CLAMPED };
    for (directive, why) in clamped {
        let variants = format!("[variant.good]\n[variant.bad]\ndirectives = '''\n{directive}\n'''");
        check(&scene.run(&scene.plan("in_place = true", &variants)), 2, &[&format!(": {directive}: "), why]);
        scene.check_given_back();
    }
}

#[test]
fn a_variant_that_passes_the_test_and_cannot_start() {
    if !apache_is_here() {
        return;
    }
    // A folder is no file to write a log to, which only shows when it is opened.
    let tool = Tool::new();
    let ended = tool.run(&["run", &tool.plan(&private("ErrorLog logs")), "--plain"]);
    check(&ended, 4, &["Apache ended before it was ready; its log ends with: ", "could not open error log file"]);
    assert_eq!(remains(&tool), Vec::<String>::new());
}

/// What takes effect only when the server starts anew brings a full restart, also back, and is in force meanwhile.
#[test]
fn a_listen_backlog_needs_a_full_restart() {
    let Some(scene) = Scene::<Debian>::new() else { return };
    let variants = "[variant.as-is]\n[variant.short]\ndirectives = \"ListenBacklog 7\"";
    let pid = scene.own.pid();
    let ended = scene.run(&scene.plan("in_place = true", variants));
    assert!([0, 1, 3].contains(&ended.code), "{ended:?}");
    assert_ne!(scene.own.pid(), pid);
    // The kernel had it: how many may wait is stored with the trials.
    let id = scene.tool.run_ids().pop().expect("a run");
    let told = scene.tool.run(&["report", &id]).out;
    assert!(told.contains("ListenBacklog 7: short"), "{told}");
    scene.check_given_back();
}

/// Who started it in a terminal or a container alone can start it again, should a variant end it.
#[test]
fn a_server_that_only_somebody_else_can_start() {
    let Some(scene) = Scene::<Debian>::new() else { return };
    scene.own.stop();
    let etc = scene.own.etc();
    let script = format!(". '{0}/envvars'; exec /usr/sbin/apache2 -d '{0}' -DFOREGROUND", etc.display());
    // In a process group of its own, which it ends as a whole.
    let start = || Command::new("sh").args(["-c", &script]).process_group(0).stderr(Stdio::null()).spawn().expect("sh");
    let mut apache = start();
    let began = Instant::now();
    while !scene.answer().contains("the first site") {
        assert!(began.elapsed() < Duration::from_secs(20), "it does not begin");
        // Somebody else on this machine may have been given the port meanwhile.
        if apache.try_wait().expect("our own child").is_some() {
            apache = start();
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let refused =
        scene.run(&scene.plan("in_place = true", "[variant.as-is]\n[variant.few]\ndirectives = \"ListenBacklog 7\""));
    let left = scene.left();
    // A signal that it gives on to its own children.
    kill_process(Pid::from_child(&apache), Signal::TERM).expect("our own child");
    apache.wait().expect("our own child");
    check(&refused, 2, &["server.in_place: the server of ", "who alone can start it again", "measure a copy instead"]);
    assert_eq!((left, remains(&scene.tool)), (Vec::new(), Vec::new()));
}

#[test]
fn only_root_changes_the_machines_own_server() {
    let Some(scene) = Scene::<Debian>::new() else { return };
    let plan = scene.plan("in_place = true", "[variant.close]\ndirectives = \"KeepAlive Off\"");
    for path in [scene.tool.path(""), plan.clone().into()] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("our own");
    }
    let main = scene.own.main();
    let ended = scene.tool.run_as_nobody(&["run", &plan, "--plain", "--i-operate", &main.to_string_lossy()]);
    check(
        &ended,
        5,
        &["the server (process ", "is another account's, and only root may change it: run webdyno as root"],
    );
    scene.check_given_back();
}

#[test]
fn a_main_file_that_is_not_there() {
    let Some(scene) = Scene::<Debian>::new() else { return };
    let plan = scene.plan("in_place = true", "[variant.as-is]");
    let text = fs::read_to_string(&plan).expect("a plan").replace("apache2.conf", "apache3.conf");
    fs::write(&plan, text).expect("a plan");
    let dry = scene.tool.run(&["run", &plan, "--dry-run"]);
    check(&dry, 2, &["plan.toml:5: server.from: cannot read ", "apache3.conf"]);
    let ended = scene.run(&plan);
    check(&ended, 2, &["cannot read ", "apache3.conf"]);
    assert!(!ended.err.contains("install"), "{ended:?}");
}

/// What is not the machine's own needs no root.
#[test]
fn an_ordinary_user_has_private_servers() {
    if !is_root() {
        return testkit::skip::not_here("only root can become nobody");
    }
    let servers = [
        ("/usr/sbin/apache2", "apache", "mpm = \"prefork\"", "KeepAlive Off"),
        ("/usr/sbin/apache2", "apache", "mpm = \"worker\"", "KeepAlive Off"),
        ("/usr/sbin/apache2", "apache", "mpm = \"event\"", "KeepAlive Off"),
        ("/usr/sbin/nginx", "nginx", "", "keepalive_timeout 0"),
    ];
    for (program, kind, keys, directive) in servers {
        if !Path::new(program).exists() {
            testkit::skip::skipped(&format!("no {kind}"));
            continue;
        }
        let tool = Tool::new();
        tool.tmp();
        let plan = tool.plan(&format!(
            "blocks = 2\naa = false\n[server]\nkind = \"{kind}\"\n{keys}\n[load.a]\npath = \"/\"\nconnections = 2\nrequests = 20\n\
             [cooldown]\nlimit = \"0s\"\n[variant.as-is]\n[variant.close]\ndirectives = \"{directive}\"\n"
        ));
        fs::set_permissions(&plan, fs::Permissions::from_mode(0o644)).expect("our own");
        let ended = tool.run_as_nobody(&["run", &plan, "--plain"]);
        assert!([0, 1, 3].contains(&ended.code), "{kind} {keys}: {ended:?}");
        assert!(ended.out.contains("close"), "{kind} {keys}: {ended:?}");
        assert_eq!(remains(&tool), Vec::<String>::new());
    }
}

/// Instances are derived one after the other: all must be of the same configuration.
#[test]
fn a_configuration_that_changes_while_instances_are_derived_from_it() {
    let Some(mut scene) = Scene::<Debian>::with(|debian| debian.site(debian.port, "www", "KeepAliveTimeout 5\n"))
    else {
        return;
    };
    let plan = scene.plan("", "[variant.as-is]\n[variant.close]\ndirectives = \"KeepAlive Off\"");
    let text = fs::read_to_string(&plan).expect("a plan").replace("requests = 50", "duration = \"300ms\"");
    fs::write(&plan, text.replace("blocks = 2", "blocks = 50")).expect("a plan");
    let mut child = scene.spawn(&plan);
    let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("block 1")), "no trial ended");
    scene.own.site(scene.own.port, "www", "KeepAliveTimeout 6\n");
    scene.before = scene.own.snapshot();
    let said: Vec<String> = lines.collect();
    assert_eq!(child.wait().expect("it ends").code(), Some(5), "{said:?}");
    let expected = "000-default.conf changed while webdyno measured: the run ends, and that change is kept";
    assert!(said.iter().any(|line| line.ends_with(expected)), "{said:?}");
    // What was measured before is kept.
    let told = scene.tool.run(&["report"]);
    assert!(told.out.contains("trials"), "{told:?}");
    scene.check_given_back();
    assert!(is_root());
}
