//! Trouble with real servers that a plan or the machine makes: what is clamped, what cannot start, what only a full restart brings, who
//! may not, and what changes meanwhile. One clear line each, the right exit code, nothing lost and nothing left.

mod tool;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use testkit::debian::Debian;
use testkit::nginx::Nginx;
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
fn private(mpm: &str, directives: &str) -> String {
    format!(
        "blocks = 2\naa = false\n[server]\nkind = \"apache\"\nmpm = \"{mpm}\"\n[load.a]\npath = \"/\"\nconnections = 1\nrequests = 5\n\
         [cooldown]\nlimit = \"0s\"\n[variant.good]\n[variant.bad]\ndirectives = '''\n{directives}\n'''\n"
    )
}

#[test]
fn what_apache_would_clamp_is_refused() {
    if !apache_is_here() {
        return;
    }
    let tool = Tool::new();
    for (mpm, clamped) in [("event", &CLAMPED[..]), ("worker", &CLAMPED), ("prefork", &CLAMPED_OF_PREFORK)] {
        for (directive, why) in clamped {
            let ended = tool.run(&["run", &tool.plan(&private(mpm, directive)), "--plain"]);
            check(&ended, 2, &[&format!("plan.toml:15: {directive}: "), why]);
            assert_eq!(ended.err.lines().count(), 1, "{mpm}: {ended:?}");
        }
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
    let ended = tool.run(&["run", &tool.plan(&private("event", "ErrorLog logs")), "--plain"]);
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

/// Who makes a page answers with how, and as whom.
const WHO: [(&str, &str); 2] = [
    ("scripts/who", "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\nby cgi as %s.\\n' \"$(id -u)\"\n"),
    ("site/who.php", "<?php echo 'by ', PHP_SAPI, ' as ', fileowner('/proc/self'), \".\\n\";"),
];

/// A private server that passes the page `path` to a program or to PHP: every answer is that one's.
fn check_made(is_root: bool, server: &str, path: &str, by: &str) {
    if !self::is_root() {
        return testkit::skip::not_here("only root can become nobody");
    }
    let tool = Tool::new();
    tool.tmp();
    let open = |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("our own");
    for (name, text) in WHO {
        let file = tool.path(name);
        let folder = file.parent().expect("a folder");
        fs::create_dir(folder).expect("a folder");
        fs::write(&file, text).expect("a file");
        [folder, &file].into_iter().for_each(open);
    }
    let account = if is_root { "" } else { "65534." };
    let plan = tool.plan(&format!(
        "blocks = 2\naa = false\n[server]\nready = \"{path}\"\n{server}\n[load.a]\npath = \"{path}\"\nconnections = 2\nrequests = 10\n\
         checks = [\"body contains by {by} as {account}\"]\n[cooldown]\nlimit = \"0s\"\n"
    ));
    open(Path::new(&plan));
    let words = ["run", &plan, "--json"];
    let ended = if is_root { tool.run(&words) } else { tool.run_as_nobody(&words) };
    if ended.err.contains("install the package") {
        return testkit::skip::skipped(ended.err.trim_end());
    }
    let report: Value = serde_json::from_str(&ended.out).unwrap_or_else(|error| panic!("{error}: {ended:?}"));
    assert_eq!((&report["cells"][0]["good"], ended.code), (&20.into(), 0), "{ended:?}");
    assert_eq!(remains(&tool), Vec::<String>::new());
}

macro_rules! made {
    ($($test:ident $is_root:literal $server:literal $path:literal $by:literal;)*) => {
        $(#[test] fn $test() { check_made($is_root, $server, $path, $by); })*
    };
}

made! {
    cgi_of_an_ordinary_user false "kind = 'apache'\nmpm = 'prefork'\nscripts = 'scripts'" "/cgi-bin/who" "cgi";
    cgid_of_an_ordinary_user_with_worker false "kind = 'apache'\nmpm = 'worker'\nscripts = 'scripts'" "/cgi-bin/who" "cgi";
    cgid_of_an_ordinary_user_with_event false "kind = 'apache'\nmpm = 'event'\nscripts = 'scripts'" "/cgi-bin/who" "cgi";
    cgid_of_root_with_worker true "kind = 'apache'\nmpm = 'worker'\nscripts = 'scripts'" "/cgi-bin/who" "cgi";
    mod_php_of_an_ordinary_user false "kind = 'apache'\nmpm = 'prefork'\nphp = 'module'\ndocument_root = 'site'" "/who.php" "apache2handler";
    fpm_of_an_ordinary_user_behind_apache false "kind = 'apache'\nmpm = 'event'\nphp = 'fpm'\ndocument_root = 'site'" "/who.php" "fpm-fcgi";
    fpm_of_an_ordinary_user_behind_nginx false "kind = 'nginx'\nphp = 'fpm'\ndocument_root = 'site'" "/who.php" "fpm-fcgi";
}

/// Instances are derived one after the other: all must be of the same configuration. `change` is what somebody else does meanwhile, to that file.
fn check_changing<O: Own>(prepare: fn(&O), close: &str, change: fn(&O), file: &str) {
    let Some(mut scene) = Scene::<O>::with(prepare) else { return };
    let plan = scene.plan("", &format!("[variant.as-is]\n[variant.close]\ndirectives = \"{close}\""));
    let text = fs::read_to_string(&plan).expect("a plan").replace("requests = 50", "duration = \"300ms\"");
    fs::write(&plan, text.replace("blocks = 2", "blocks = 50")).expect("a plan");
    let mut child = scene.spawn(&plan);
    let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("block 1")), "no trial ended");
    change(&scene.own);
    scene.before = scene.own.snapshot();
    let said: Vec<String> = lines.collect();
    assert_eq!(child.wait().expect("it ends").code(), Some(5), "{said:?}");
    let expected = format!("{file} changed while webdyno measured: the run ends, and that change is kept");
    assert!(said.iter().any(|line| line.ends_with(&expected)), "{said:?}");
    // What was measured before is kept.
    let told = scene.tool.run(&["report"]);
    assert!(told.out.contains("trials"), "{told:?}");
    scene.check_given_back();
}

#[test]
fn a_configuration_of_apache_that_changes_while_instances_are_derived_from_it() {
    let five = |debian: &Debian| debian.site(debian.port, "www", "KeepAliveTimeout 5\n");
    let six = |debian: &Debian| debian.site(debian.port, "www", "KeepAliveTimeout 6\n");
    check_changing(five, "KeepAlive Off", six, "000-default.conf");
}

#[test]
fn a_configuration_of_nginx_that_changes_while_instances_are_derived_from_it() {
    let five = |nginx: &Nginx| nginx.site("\tkeepalive_requests 5;\n");
    let six = |nginx: &Nginx| nginx.site("\tkeepalive_requests 6;\n");
    check_changing(five, "keepalive_timeout 0", six, "/default");
    // A file that nobody named before.
    let new = |nginx: &Nginx| nginx.write("conf.d/new.conf", "# Somebody else's.\n");
    check_changing(five, "keepalive_timeout 0", new, "conf.d/new.conf");
}
