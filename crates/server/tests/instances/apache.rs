//! The machine's own Apache, with the memory CGI built from its source.

use crate::stage::{PATIENCE, Stage, ask, eventually, processes_of};
use model::plan::Confinement;
use rustix::fs::{FlockOperation, flock};
use server::{Running, ServerError};
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;
use testkit::skip::{not_here, skipped};

pub(crate) const TESTS: &[testkit::suite::Test] = &[
    ("apache_names_the_line_it_refuses", apache_names_the_line_it_refuses),
    ("apache_keeps_to_itself", apache_keeps_to_itself),
    ("apache_warnings_are_failures_unless_allowed", apache_warnings_are_failures_unless_allowed),
    ("apache_needs_what_the_plan_names", apache_needs_what_the_plan_names),
    ("apache_folders_must_be_open", apache_folders_must_be_open),
    ("apache_that_is_never_ready", apache_that_is_never_ready),
    ("apache_that_refuses_the_ready_path", apache_that_refuses_the_ready_path),
    ("apache_that_does_not_tell_its_settings", apache_that_does_not_tell_its_settings),
    ("apache_that_hangs", apache_that_hangs),
    ("apache_that_dies_early", apache_that_dies_early),
    ("apache_port_in_use", apache_port_in_use),
    ("apache_goes_on_to_another_port", apache_goes_on_to_another_port),
    ("apache_prefork_runs_memhog", apache_prefork_runs_memhog),
    ("apache_event_runs_memhog", apache_event_runs_memhog),
    ("apache_worker_counts_its_threads", apache_worker_counts_its_threads),
    ("apache_tells_what_is_in_force", apache_tells_what_is_in_force),
    ("apache_has_all_its_children", apache_has_all_its_children),
    ("apache_loads_php", apache_loads_php),
    ("apache_is_pinned", apache_is_pinned),
    ("apache_lives_in_its_group", apache_lives_in_its_group),
    ("apache_instances_do_not_meet", apache_instances_do_not_meet),
    ("apache_leaves_no_process", apache_leaves_no_process),
    ("memhog_is_built_where_asked", memhog_is_built_where_asked),
    ("memhog_runs_alone", memhog_runs_alone),
    ("memhog_locks", memhog_locks),
    ("memhog_without_memory_says_so", memhog_without_memory_says_so),
];

/// The stage, if there is an Apache to put on it.
fn stage() -> Option<Stage> {
    let found = ["/usr/sbin/apache2", "/usr/sbin/httpd"].iter().any(|path| Path::new(path).exists());
    if !found {
        skipped("there is no apache2");
        return None;
    }
    Some(Stage::new())
}

/// Builds and installs the memory CGI below the stage, as its README says; returns the folder.
fn memhog(stage: &Stage) -> PathBuf {
    let (source, scripts) = (stage.dir.path().join("memhog"), stage.dir.path().join("cgi-bin"));
    fs::create_dir(&source).unwrap();
    for name in ["memhog.c", "Makefile"] {
        fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sites/memhog").join(name), source.join(name))
            .unwrap();
    }
    let output = Command::new("make")
        .args(["install", "CFLAGS=-O2 -Werror", &format!("PREFIX={}", scripts.display())])
        .current_dir(&source)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let installed: Vec<_> = fs::read_dir(&scripts).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(installed, ["memhog"], "alone");
    scripts
}

/// Keys of a plan with scripts; the plan's directives begin on its line 6.
fn keys(mpm: &str, scripts: &Path, directives: &str) -> String {
    format!("mpm = \"{mpm}\"\nscripts = \"{}\"\ndirectives = \"\"\"\n{directives}\n\"\"\"", scripts.display())
}

/// Both ways to be told: beforehand and at the start.
fn refused(stage: &Stage, keys: &str, variant: &str) -> String {
    let plan = stage.plan("apache", keys, variant);
    let at_start = stage.told(&stage.start(&plan, &[]).unwrap_err());
    let before = stage.told(&stage.control(&plan).check(&stage.place(), &plan.variants[0]).unwrap_err());
    assert_eq!(before, at_start);
    at_start
}

fn started(stage: &Stage, keys: &str, variant: &str) -> Running {
    stage.start(&stage.plan("apache", keys, variant), &[]).unwrap()
}

// ---- what is refused -------------------------------------------------------------------------------------------------

fn apache_names_the_line_it_refuses() {
    let Some(stage) = stage() else { return };
    let check = |directives: &str, variant: &str, expected: &str| {
        let keys = format!("mpm = \"prefork\"\ndirectives = \"\"\"\nKeepAlive On\n{directives}\n\"\"\"");
        let variant = format!("directives = \"{variant}\"");
        assert_eq!(refused(&stage, &keys, &variant), expected);
    };
    check(
        "MaxRequestWorker 4",
        "",
        "DIR/plan.toml:6: MaxRequestWorker 4: Invalid command 'MaxRequestWorker', perhaps misspelled or defined by a module not included in the server configuration (Apache)",
    );
    check("\nKeepAlive Maybe", "", "DIR/plan.toml:7: KeepAlive Maybe: KeepAlive must be On or Off (Apache)");
    // The variant's lines come after: load 8 to 11, variant 12.
    check(
        "",
        "<IfModule x>",
        "DIR/plan.toml:13: <IfModule x>: Expected </IfModule> before end of configuration (Apache)",
    );
    check("", "User nosuch", "DIR/plan.toml:13: User nosuch: AH00543: apache2: bad user name nosuch (Apache)");
    check(
        "",
        "Include /nonexistent.conf",
        "DIR/plan.toml:13: Include /nonexistent.conf: Could not open configuration file /nonexistent.conf: No such file or directory (Apache)",
    );
}

fn apache_keeps_to_itself() {
    let Some(stage) = stage() else { return };
    let check = |directive: &str, why: &str| {
        let told = refused(&stage, "mpm = \"prefork\"", &format!("directives = \"{directive}\""));
        assert_eq!(told, format!("DIR/plan.toml:9: {directive}: {why} (Apache)"));
    };
    let pid_file = stage.dir.path().join("apache2.pid");
    fs::write(&pid_file, "1\n").unwrap();
    let ours = "every instance has its own, so that none meets the Apache installed here; remove the line";
    let told = refused(&stage, "", &format!("directives = \"PidFile '{}'\"", pid_file.display()));
    assert_eq!(told, format!("DIR/plan.toml:9: PidFile 'DIR/apache2.pid': {ours} (Apache)"));
    assert_eq!(fs::read_to_string(&pid_file).unwrap(), "1\n");
    check("ServerRoot /etc/apache2", ours);
    check(
        "CustomLog /var/log/apache2/access.log common",
        "would write outside the instance's folder; name a file in it, such as logs/other.log",
    );
    check("Listen 8081", "others could reach it; listen on 127.0.0.1:PORT, or remove the line: a free port is found");
    // What stays inside is fine, and the status pages are for this machine.
    let running = started(&stage, "directives = \"CustomLog logs/access.log common\"", "");
    assert!(ask(running.address, "GET /server-status").starts_with("HTTP/1.1 200 "));
}

fn apache_warnings_are_failures_unless_allowed() {
    let Some(stage) = stage() else { return };
    let check = |directive: &str, expected: &str| {
        let told = refused(&stage, "mpm = \"prefork\"", &format!("directives = \"{directive}\""));
        assert_eq!(told, expected);
    };
    check(
        "MaxRequestWorkers four",
        "DIR/plan.toml:9: MaxRequestWorkers four: AH00182: WARNING: MaxRequestWorkers of 0 not allowed, increasing to 1. (Apache)",
    );
    check(
        "MaxRequestWorkers 300",
        "DIR/plan.toml:9: MaxRequestWorkers 300: AH00180: WARNING: MaxRequestWorkers of 300 exceeds ServerLimit value of 256 servers, decreasing MaxRequestWorkers to 256. To increase, please see the ServerLimit directive. (Apache)",
    );
    // Apache takes these without a word.
    for directive in ["Timeout x", "MaxRequestsPerChild x"] {
        check(
            directive,
            &format!("DIR/plan.toml:9: {directive}: takes a whole number; Apache would read something else (Apache)"),
        );
    }
    // To be content with a warning is not to be content with whatever comes of it.
    let variant = "directives = \"MaxRequestWorkers 300\"\nallow_warnings = [\"exceeds ServerLimit\"]";
    let plan = stage.plan("apache", "mpm = \"prefork\"", variant);
    assert_eq!(
        stage.told(&stage.start(&plan, &[]).unwrap_err()),
        "DIR/plan.toml:9: MaxRequestWorkers 300: MaxRequestWorkers 256 is in force instead (Apache)"
    );
    let variant = "directives = \"MaxRequestWorkers 300\"\nallow_warnings = [\"exceeds ServerLimit\", \"256 is in force instead\"]";
    let running = started(&stage, "mpm = \"prefork\"", variant);
    assert_eq!(running.settings.worker_limit, Some(256));
    assert_eq!(running.notes, ["MaxRequestWorkers 300 was asked for, MaxRequestWorkers 256 is in force instead"]);
}

fn apache_needs_what_the_plan_names() {
    let Some(stage) = stage() else { return };
    let told = refused(&stage, "modules = [\"headers\", \"nosuch\"]", "");
    assert!(told.starts_with("no Apache module `nosuch` in /usr/") && told.contains("install the package"), "{told}");
    assert_eq!(
        refused(&stage, "program = \"no/httpd\"", ""),
        "no Apache here (DIR/no/httpd is not a program); install the package apache2 (Debian, Ubuntu) or httpd (RHEL, Fedora)"
    );
    assert_eq!(
        refused(&stage, "document_root = \"nowhere\"", ""),
        "DIR/plan.toml:3: server.document_root: DIR/nowhere does not exist; make it, or name another"
    );
    fs::write(stage.dir.path().join("file"), "").unwrap();
    let plan = stage.plan("apache", "mpm = \"event\"\nscripts = \".\"", "");
    let deep = stage.place().join("d".repeat(80));
    let told = stage.told(&stage.control(&plan).check(&deep, &plan.variants[0]).unwrap_err());
    assert!(told.contains("is too long for a socket in it"), "{told}");
    let told = refused(&stage, "scripts = \"file\"", "");
    assert_eq!(told, "DIR/plan.toml:3: server.scripts: DIR/file is not a folder; make it, or name another");
}

fn apache_folders_must_be_open() {
    let Some(stage) = stage() else { return };
    if !rustix::process::geteuid().is_root() {
        return not_here("only root's Apache runs as somebody else");
    }
    let site = stage.dir.path().join("closed/site");
    fs::create_dir_all(&site).unwrap();
    fs::write(site.join("index.html"), "open\n").unwrap();
    let closed = site.parent().unwrap();
    fs::set_permissions(closed, fs::Permissions::from_mode(0o700)).unwrap();
    let keys = "document_root = \"closed/site\"";
    let told = refused(&stage, keys, "");
    assert!(told.starts_with("DIR/plan.toml:3: server.document_root: "), "{told}");
    assert!(
        told.ends_with(", as whom the server runs, may not enter DIR/closed (mode 0700); allow it with chmod o+x, or use another folder"),
        "{told}"
    );
    fs::set_permissions(closed, fs::Permissions::from_mode(0o711)).unwrap();
    assert!(ask(started(&stage, keys, "").address, "GET /").ends_with("\r\n\r\nopen\n"));
}

// ---- what goes wrong later -------------------------------------------------------------------------------------------

fn apache_that_is_never_ready() {
    let Some(mut stage) = stage() else { return };
    stage.ready_timeout = Duration::from_millis(700);
    let scripts = stage.dir.path().join("scripts");
    fs::create_dir(&scripts).unwrap();
    let script = scripts.join("broken");
    fs::write(&script, "#!/bin/sh\necho disk on fire >&2\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let plan = stage.plan("apache", &(keys("prefork", &scripts, "") + "\nready = \"/cgi-bin/broken\""), "");
    let told = stage.told(&stage.start(&plan, &[]).unwrap_err());
    assert!(told.starts_with("Apache was not ready after "), "{told}");
    assert!(told.contains(" s: GET /cgi-bin/broken: status 500; its log ends with: "), "{told}");
    assert!(told.contains("disk on fire"), "{told}");
    assert!(!told.contains('\n'), "one line: {told}");
    assert_eq!(processes_of(stage.dir.path()), []);
}

/// A path that is not there will not appear by waiting; one that is not there yet may.
fn apache_that_refuses_the_ready_path() {
    let Some(stage) = stage() else { return };
    let plan = stage.plan("apache", "ready = \"/none\"", "");
    let told = stage.told(&stage.start(&plan, &[]).unwrap_err());
    assert!(
        told.starts_with("DIR/plan.toml:3: server.ready: GET /none is answered with status 404 and goes on so"),
        "{told}"
    );
    let plan = stage.plan("apache", "document_root = \".\"", "");
    let told = stage.told(&stage.start(&plan, &[]).unwrap_err());
    assert!(told.starts_with("DIR/plan.toml:2: server.ready: GET / is answered with status 40"), "{told}");
    assert_eq!(processes_of(stage.dir.path()), []);
}

fn apache_that_does_not_tell_its_settings() {
    let Some(stage) = stage() else { return };
    let closed = "directives = \"\"\"\n<Location /server-status>\nRequire all denied\n</Location>\n\"\"\"";
    let told = stage.told(&stage.start(&stage.plan("apache", "", closed), &[]).unwrap_err());
    let expected = "Apache does not tell its settings: GET /server-status?auto: status 403; limit the directive that answers so \
                    (Require, RewriteRule or Redirect, perhaps) to some paths; its log ends with: ";
    assert!(told.starts_with(expected) && told.contains("client denied by server configuration"), "{told}");
}

/// A server that takes the connection and never answers must not be waited for longer than agreed.
fn apache_that_hangs() {
    let Some(mut stage) = stage() else { return };
    stage.ready_timeout = Duration::from_secs(2);
    let scripts = stage.dir.path().join("scripts");
    fs::create_dir(&scripts).unwrap();
    let script = scripts.join("hang");
    fs::write(&script, "#!/bin/sh\nexec sleep 100\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let plan = stage.plan("apache", &(keys("event", &scripts, "") + "\nready = \"/cgi-bin/hang\""), "");
    let told = stage.told(&stage.start(&plan, &[]).unwrap_err());
    assert!(told.starts_with("Apache was not ready after ") && told.contains("no whole answer within"), "{told}");
    assert_eq!(processes_of(stage.dir.path()), []);
}

fn apache_that_dies_early() {
    let Some(stage) = stage() else { return };
    // A folder where a file should be: fine for -t, not for writing to.
    let plan = stage.plan("apache", "directives = \"ErrorLog logs\"", "");
    let told = stage.told(&stage.start(&plan, &[]).unwrap_err());
    assert!(told.starts_with("Apache ended before it was ready; its log ends with: "), "{told}");
    assert!(told.contains("could not open error log file"), "{told}");
}

fn apache_port_in_use() {
    let Some(stage) = stage() else { return };
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let plan = stage.plan("apache", &format!("directives = \"Listen {address}\""), "");
    let error = stage.start(&plan, &[]).unwrap_err();
    assert!(matches!(error, ServerError::PortInUse(told) if told == address), "{error}");
}

/// Nine times somebody takes the port after Apache has tested its configuration and before it listens.
fn apache_goes_on_to_another_port() {
    let Some(stage) = stage() else { return };
    let programs = ["/usr/sbin/apache2", "/usr/sbin/httpd"];
    let real = programs.into_iter().find(|path| Path::new(path).exists()).unwrap();
    let (program, asked, taken) =
        (stage.dir.path().join("apache"), stage.dir.path().join("asked"), stage.dir.path().join("taken"));
    for pipe in [&asked, &taken] {
        assert!(Command::new("mkfifo").arg(pipe).status().unwrap().success());
    }
    let script = format!(
        "#!/bin/sh\nif [ \"$1\" = -t ]; then\nsed -n 's/^Listen 127.0.0.1://p' \"$3\" > '{}'\ncat '{}'\nfi\nexec {real} \"$@\"\n",
        asked.display(),
        taken.display()
    );
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let taker = std::thread::spawn(move || {
        let mut held = Vec::new();
        loop {
            let port: u16 = fs::read_to_string(&asked).unwrap().trim().parse().unwrap();
            if held.len() == 9 {
                fs::write(&taken, "").unwrap();
                return (held, port);
            }
            held.push(TcpListener::bind(("127.0.0.1", port)).unwrap());
            fs::write(&taken, "").unwrap();
        }
    });
    let running = started(&stage, "mpm = \"prefork\"\nprogram = \"apache\"", "");
    let (held, last) = taker.join().unwrap();
    assert_eq!(running.address.port(), last);
    let mut ports: Vec<u16> = held.iter().map(|listener| listener.local_addr().unwrap().port()).chain([last]).collect();
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap();
    let range: Vec<u16> = range.split_whitespace().map(|end| end.parse().unwrap()).collect();
    // Unless an administrator has given clients nearly all ports.
    if range[0] > 2048 {
        assert!(ports.iter().all(|port| *port < range[0] || *port > range[1]), "{ports:?} may be a client's");
    }
    ports.sort_unstable();
    ports.dedup();
    assert_eq!(ports.len(), 10, "each another one");
}

// ---- what runs -------------------------------------------------------------------------------------------------------

fn check_memhog(running: &Running) {
    let check = |path: &str, status: u16, body: &str| {
        let answer = ask(running.address, &format!("GET /cgi-bin/{path}"));
        let (head, got) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{path}: {answer}");
        assert_eq!(got, body, "{path}");
        assert!(head.contains("\r\nContent-Type: text/plain"), "{head}");
    };
    check("memhog", 200, "OK\n");
    check("memhog?bytes=1M&passes=3", 200, "OK\n");
    check("memhog/lock?bytes=4096", 200, "OK\n");
    check("memhog?bytes=much", 400, "memhog: bytes: must be a whole number, K, M or G may follow, and not too large\n");
    check("memhog/else", 404, "memhog: /else: only /lock is known\n");
}

fn apache_prefork_runs_memhog() {
    let Some(stage) = stage() else { return };
    let scripts = memhog(&stage);
    let variant = "directives = \"MaxRequestWorkers 4\"";
    let running = started(&stage, &keys("prefork", &scripts, "StartServers 12\nSetEnv MEMHOG_BYTES 2M"), variant);
    check_memhog(&running);
    let settings = &running.settings;
    assert_eq!(settings.worker_limit, Some(4));
    for (name, value) in
        [("MPM", "prefork"), ("MaxRequestWorkers", "4"), ("StartServers", "4"), ("SetEnv", "MEMHOG_BYTES 2M")]
    {
        assert_eq!(settings.values.get(name).map(String::as_str), Some(value), "{settings:?}");
    }
    assert_eq!(running.notes, ["StartServers 12 was asked for, 4 run: MaxRequestWorkers 4 allows no more"]);
    running.stop().unwrap();
}

fn apache_event_runs_memhog() {
    let Some(stage) = stage() else { return };
    let scripts = memhog(&stage);
    let running = started(&stage, &keys("event", &scripts, "SetEnv MEMHOG_BYTES 2M"), "");
    check_memhog(&running);
    assert_eq!(running.settings.worker_limit, Some(400));
    assert_eq!(running.settings.values["MPM"], "event");
    assert_eq!(running.settings.values["StartServers"], "3");
    assert_eq!(running.notes, [""; 0]);
}

fn apache_worker_counts_its_threads() {
    let Some(stage) = stage() else { return };
    let directives = "directives = \"\"\"\nStartServers 2\nThreadsPerChild 5\nMaxRequestWorkers 10\nTimeout 7\n\"\"\"";
    let running = started(&stage, "mpm = \"worker\"", directives);
    assert_eq!(running.settings.worker_limit, Some(10));
    for (name, value) in [("MPM", "worker"), ("StartServers", "2"), ("Timeout", "7"), ("ThreadsPerChild", "5")] {
        assert_eq!(running.settings.values[name], value);
    }
}

fn apache_tells_what_is_in_force() {
    let Some(stage) = stage() else { return };
    let running = started(&stage, "mpm = \"prefork\"\ndirectives = \"MaxClients 9\"", "directives = \"KeepAlive Off\"");
    assert!(running.settings.server.starts_with("Apache/2."), "{:?}", running.settings);
    assert_eq!(running.settings.worker_limit, Some(9));
    for (name, value) in
        [("KeepAlive", "Off"), ("KeepAliveTimeout", "5"), ("Timeout", "60"), ("MaxRequestWorkers", "9")]
    {
        assert_eq!(running.settings.values[name], value);
    }
    assert!(ask(running.address, "GET /").contains("A small page"));
    // The last request of a connection is no sign of KeepAlive Off.
    let running = started(&stage, "directives = \"KeepAlive On\"", "directives = \"MaxKeepAliveRequests 1\"");
    assert_eq!(running.settings.values["KeepAlive"], "On");
    // Something in the configuration that overrules the directive is not hidden by it.
    let plan = stage.plan(
        "apache",
        "modules = [\"headers\"]\ndirectives = \"\"\"\nKeepAlive On\nBrowserMatch ^$ nokeepalive\n\"\"\"",
        "",
    );
    let told = stage.told(&stage.start(&plan, &[]).unwrap_err());
    assert_eq!(told, "DIR/plan.toml:5: KeepAlive On: KeepAlive Off is in force instead (Apache)");
}

fn apache_has_all_its_children() {
    let Some(stage) = stage() else { return };
    let running = started(&stage, "mpm = \"prefork\"", "directives = \"StartServers 12\"");
    assert_eq!(
        running.notes,
        ["StartServers 12 is above MaxSpareServers: Apache ends idle processes, one a second, down to 10"]
    );
    running.stop().unwrap();
    let directives = "directives = \"\"\"\nStartServers 12\nMaxSpareServers 12\n\"\"\"";
    let running = started(&stage, "mpm = \"prefork\"", directives);
    assert_eq!(running.settings.values["StartServers"], "12");
    assert_eq!(running.notes, [""; 0]);
    let children = |running: &Running| {
        let processes = processes_of(stage.dir.path());
        processes
            .into_iter()
            .filter(|(_, parent, _)| *parent == running.pid.unwrap())
            .map(|(_, _, user)| user)
            .collect::<Vec<_>>()
    };
    assert_eq!(children(&running).len(), 12);
    if rustix::process::geteuid().is_root() {
        // A child is there a moment before it has given up root.
        eventually("workers are not root", || children(&running).iter().all(|user| *user != 0));
    }
}

fn apache_loads_php() {
    let Some(stage) = stage() else { return };
    let folders = ["/usr/lib/apache2/modules", "/usr/lib64/httpd/modules"].map(fs::read_dir);
    let names = folders.into_iter().flatten().flatten().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let php = names.into_iter().find_map(|name| {
        let php = name.strip_prefix("lib").or(name.strip_prefix("mod_"))?.strip_suffix(".so")?;
        php.starts_with("php").then(|| php.to_owned())
    });
    let Some(php) = php else { return skipped("there is no libapache2-mod-php") };
    let site = stage.dir.path().join("site");
    fs::create_dir(&site).unwrap();
    fs::write(site.join("sum.php"), "<?php echo 19 + 23;").unwrap();
    let keys = |mpm: &str| {
        let handler = "<FilesMatch \\.php$>\nSetHandler application/x-httpd-php\n</FilesMatch>";
        format!(
            "mpm = \"{mpm}\"\nmodules = [\"{php}\"]\ndocument_root = \"site\"\nready = \"/sum.php\"\ndirectives = '''\n{handler}\n'''"
        )
    };
    let running = started(&stage, &keys("prefork"), "");
    assert!(ask(running.address, "GET /sum.php").ends_with("\r\n\r\n42"));
    let plan = stage.plan("apache", &keys("event"), "");
    if let Err(error) = stage.control(&plan).check(&stage.place(), &plan.variants[0]) {
        let told = stage.told(&error);
        assert!(told.starts_with("DIR/plan.toml: variant `v`: ") && told.contains("threadsafe"), "{told}");
        assert!(!told.contains('\n'), "one line: {told}");
    }
}

fn apache_is_pinned() {
    let Some(stage) = stage() else { return };
    let mut running = stage.start(&stage.plan("apache", "mpm = \"prefork\"", ""), &[0]).unwrap();
    assert!(running.is_alive());
    for (pid, ..) in processes_of(stage.dir.path()) {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        assert!(status.contains("\nCpus_allowed_list:\t0\n"), "{status}");
    }
    running.stop().unwrap();
}

fn apache_lives_in_its_group() {
    let Some(stage) = stage() else { return };
    let scripts = memhog(&stage);
    let group = match stage.host.group("lab", &Confinement { memory: Some(64 << 20), ..Confinement::default() }) {
        Ok(group) => group,
        Err(error) => return not_here(&error.to_string()),
    };
    let plan = stage.plan("apache", &keys("prefork", &scripts, "SetEnv MEMHOG_BYTES 16M"), "");
    let running = stage.start_in(Some(&group), &plan, &[]).unwrap();
    for (pid, ..) in processes_of(stage.dir.path()) {
        let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
        assert!(groups.lines().any(|line| line.contains("memory") && line.contains("lab")), "{groups}");
    }
    // The limit is the group's, and only the request pays for it.
    assert!(ask(running.address, "GET /cgi-bin/memhog").ends_with("\r\n\r\nOK\n"));
    let answer = ask(running.address, "GET /cgi-bin/memhog?bytes=200M");
    assert!(host::swap_free() > 0 || answer.starts_with("HTTP/1.1 500 "), "{answer}");
    assert!(ask(running.address, "GET /cgi-bin/memhog").ends_with("\r\n\r\nOK\n"));
    running.stop().unwrap();
    group.remove().unwrap();
}

fn apache_instances_do_not_meet() {
    let Some(stage) = stage() else { return };
    let scripts = memhog(&stage);
    let keys = keys("event", &scripts, "SetEnv MEMHOG_BYTES 1M");
    let (one, other) = (started(&stage, &keys, ""), started(&stage, &keys, ""));
    assert_ne!(one.address, other.address);
    one.stop().unwrap();
    assert!(ask(other.address, "GET /cgi-bin/memhog").ends_with("\r\n\r\nOK\n"));
}

fn apache_leaves_no_process() {
    let Some(stage) = stage() else { return };
    let scripts = memhog(&stage);
    for mpm in ["prefork", "event"] {
        let keys = keys(mpm, &scripts, "");
        let running = started(&stage, &keys, "");
        assert!(processes_of(stage.dir.path()).len() > 3, "{mpm}");
        running.stop().unwrap();
        assert_eq!(processes_of(stage.dir.path()), [], "{mpm} stopped");
        drop(started(&stage, &keys, ""));
        assert_eq!(processes_of(stage.dir.path()), [], "{mpm} dropped");
    }
    let mut running = started(&stage, "mpm = \"prefork\"", "");
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(running.pid.unwrap().cast_signed()).unwrap(),
        rustix::process::Signal::KILL,
    )
    .unwrap();
    eventually("its death is noticed", || !running.is_alive());
    assert!(running.log_tail().contains("resuming normal operations"), "{}", running.log_tail());
    running.stop().unwrap();
    assert_eq!(processes_of(stage.dir.path()), [], "killed");
}

// ---- memhog ----------------------------------------------------------------------------------------------------------

fn memhog_is_built_where_asked() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sites/memhog");
    let folders = tempfile::Builder::new().prefix("server-test-").tempdir_in("/tmp").unwrap();
    let bin = folders.path().join("a/b");
    let make = || {
        let mut command = Command::new("sh");
        command.args(["-c", "umask 077; exec make -B -s \"BIN=$1\"", "make"]).arg(&bin).current_dir(&source);
        command.spawn().unwrap()
    };
    // Two at once, and everybody's server may run what they make.
    for mut make in [make(), make()] {
        assert!(make.wait().unwrap().success());
    }
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    assert_eq!((mode(&bin), mode(&bin.join("memhog"))), (0o755, 0o755));
    let made: Vec<_> = fs::read_dir(&bin).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(made, ["memhog"], "alone");
    let output = Command::new(bin.join("memhog")).env("MEMHOG_BYTES", "1").output().unwrap();
    assert!(output.stdout.ends_with(b"OK\n"));
}

fn memhog_runs_alone() {
    let stage = Stage::new();
    let program = memhog(&stage).join("memhog");
    let check = |env: &[(&str, &str)], status: &str, body: &str| {
        let output = Command::new(&program).env_clear().envs(env.iter().copied()).output().unwrap();
        let length = body.len();
        let expected = format!("{status}Content-Type: text/plain\r\nContent-Length: {length}\r\n\r\n{body}");
        assert_eq!(String::from_utf8(output.stdout).unwrap(), expected, "{env:?}");
        assert!(output.status.success() && output.stderr.is_empty());
    };
    let (bad, broken) = ("Status: 400 Bad Request\r\n", "Status: 500 Internal Server Error\r\n");
    check(&[], "", "OK\n");
    check(&[("QUERY_STRING", "a=b&bytes=64K&passes=2&c"), ("MEMHOG_BYTES", "x")], "", "OK\n");
    check(&[("MEMHOG_BYTES", "0"), ("PATH_INFO", "/lock")], "", "OK\n");
    let wrong =
        |name: &str| format!("memhog: {name}: must be a whole number, K, M or G may follow, and not too large\n");
    for bytes in ["", "-1", "1.5M", "1MB", "99999999999999999999", "9000000000G"] {
        check(&[("QUERY_STRING", &format!("bytes={bytes}"))], bad, &wrong("bytes"));
    }
    check(&[("MEMHOG_BYTES", "lots")], broken, &wrong("MEMHOG_BYTES"));
    check(&[("QUERY_STRING", "bytes=1&passes=10001")], bad, &wrong("passes"));
    check(
        &[("PATH_INFO", "/lock"), ("MEMHOG_LOCK", "/nonexistent/lock")],
        broken,
        "memhog: /nonexistent/lock: No such file or directory\n",
    );
}

fn memhog_locks() {
    let Some(stage) = stage() else { return };
    let scripts = memhog(&stage);
    // Everyone may read it, nobody but its owner may write.
    let program = scripts.join("memhog");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o555)).unwrap();
    let own_file = stage.dir.path().join("lock");
    fs::write(&own_file, "").unwrap();
    fs::set_permissions(&own_file, fs::Permissions::from_mode(0o444)).unwrap();
    let other = format!("SetEnv MEMHOG_BYTES 1M\nSetEnv MEMHOG_LOCK \"{}\"", own_file.display());
    for (directives, locked) in [("SetEnv MEMHOG_BYTES 1M", &program), (other.as_str(), &own_file)] {
        let running = started(&stage, &keys("prefork", &scripts, directives), "");
        let address = running.address;
        let held = fs::File::open(locked).unwrap();
        flock(&held, FlockOperation::LockExclusive).unwrap();
        let (done, answer) = mpsc::channel();
        std::thread::spawn(move || done.send(ask(address, "GET /cgi-bin/memhog/lock")));
        let inode = format!(":{} ", held.metadata().unwrap().ino());
        let waits = |line: &str| line.contains("->") && line.contains(&inode);
        eventually("somebody waits for the lock", || fs::read_to_string("/proc/locks").unwrap().lines().any(waits));
        assert!(answer.try_recv().is_err(), "it waits for {}", locked.display());
        assert!(ask(address, "GET /cgi-bin/memhog").ends_with("\r\n\r\nOK\n"), "without /lock it does not");
        drop(held);
        assert!(answer.recv_timeout(PATIENCE).unwrap().ends_with("\r\n\r\nOK\n"));
    }
}

fn memhog_without_memory_says_so() {
    let Some(stage) = stage() else { return };
    let scripts = memhog(&stage);
    let running = started(&stage, &keys("prefork", &scripts, "RLimitMEM 60000000\nSetEnv MEMHOG_BYTES 200M"), "");
    let answer = ask(running.address, "GET /cgi-bin/memhog");
    assert!(answer.starts_with("HTTP/1.1 500 "), "{answer}");
    assert!(answer.ends_with("\r\n\r\nmemhog: cannot allocate memory: Cannot allocate memory\n"), "{answer}");
}
