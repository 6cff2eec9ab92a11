//! PHP as distributions ship it: mod_php below prefork, and FPM behind every module of Apache and behind nginx.

use crate::stage::{Stage, ask, eventually, processes_of};
use server::{Running, ServerError};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use testkit::skip;

pub(crate) const TESTS: &[testkit::suite::Test] = &[
    ("mod_php_runs_below_prefork", mod_php_runs_below_prefork),
    ("fpm_runs_behind_every_module_and_nginx", fpm_runs_behind_every_module_and_nginx),
    ("a_full_pool_tells_itself", a_full_pool_tells_itself),
    ("what_php_refuses_names_the_line", what_php_refuses_names_the_line),
    ("a_dead_pool_is_a_dead_server", a_dead_pool_is_a_dead_server),
];

const PAGE: &str = "<?php echo PHP_SAPI, ' ', ini_get('memory_limit'), ' ', 6 * 7, ' ', get_current_user();\n";

/// Whether PHP can be tested in this way.
fn is_here(way: &str) -> bool {
    let known = |folder: &str, start: &str| {
        fs::read_dir(folder)
            .is_ok_and(|files| files.flatten().any(|file| file.file_name().to_string_lossy().starts_with(start)))
    };
    let found = match way {
        "module" => known("/usr/lib/apache2/modules", "libphp"),
        _ => known("/usr/sbin", "php-fpm"),
    };
    if !found {
        skip::skipped(&format!("no PHP ({way}) here"));
    }
    found
}

/// A stage with a page of PHP, and the plan's keys for it.
fn stage(keys: &str) -> (Stage, String) {
    let stage = Stage::new();
    let site = stage.dir.path().join("site");
    fs::create_dir(&site).unwrap();
    fs::write(site.join("page.php"), PAGE).unwrap();
    fs::write(site.join("plain.html"), "plain").unwrap();
    fs::write(site.join("slow.php"), "<?php usleep(300000); echo 'slow';\n").unwrap();
    for (path, mode) in [("", 0o755), ("page.php", 0o644), ("plain.html", 0o644), ("slow.php", 0o644)] {
        fs::set_permissions(site.join(path), fs::Permissions::from_mode(mode)).unwrap();
    }
    (stage, format!("document_root = \"site\"\nready = \"/page.php\"\n{keys}"))
}

fn values(running: &Running, names: &[&str]) -> Vec<String> {
    names.iter().map(|name| running.settings.values.get(*name).cloned().unwrap_or_default()).collect()
}

/// Runs a page of PHP under `kind` with these keys, and looks at what is in force.
fn check(kind: &str, way: &str, keys: &str, variant: &str, told: &[(&str, &str)]) {
    if !is_here(way) {
        return;
    }
    let (stage, keys) = stage(&format!("{keys}php = \"{way}\"\n"));
    let plan = stage.plan(kind, &keys, variant);
    let running = stage.start(&plan, &[]).unwrap_or_else(|error| panic!("{kind} {way}: {error}"));
    let sapi = if way == "fpm" { "fpm-fcgi" } else { "apache2handler" };
    let answer = ask(running.address, "GET /page.php");
    let body = answer.rsplit("\r\n\r\n").next().unwrap();
    assert!(body.starts_with(&format!("{sapi} ")) && body.contains(" 42 "), "{answer}");
    assert!(ask(running.address, "GET /plain.html").ends_with("plain"));
    assert!(ask(running.address, "GET /none.php").starts_with("HTTP/1.1 404"));
    let (names, expected): (Vec<&str>, Vec<&str>) = told.iter().copied().unzip();
    assert_eq!(values(&running, &names), expected, "{:?}", running.settings.values);
    assert_eq!(running.notes, [""; 0]);
    assert_eq!(running.beside().len(), usize::from(way == "fpm"));
    let beside = running.beside();
    running.stop().unwrap();
    assert!(beside.iter().all(|pid| !Path::new(&format!("/proc/{pid}")).exists()), "{beside:?}");
    assert_eq!(processes_of(stage.dir.path()), []);
}

fn mod_php_runs_below_prefork() {
    let (ini, told) = ("[variant.v.ini]\nmemory_limit = \"32M\"\n", [("memory_limit", "32M"), ("MPM", "prefork")]);
    check("apache", "module", "mpm = \"prefork\"\n", ini, &told);
}

fn fpm_runs_behind_every_module_and_nginx() {
    let told = [("pm", "static"), ("pm.max_children", "3"), ("memory_limit", "24M"), ("display_errors", "1")];
    let variant = "[variant.v.fpm]\nmax_children = 3\nadmin = { memory_limit = \"24M\" }\n[variant.v.ini]\ndisplay_errors = true\n[server.fpm]\npm = \"static\"\nmax_children = 9\n[server.ini]\nmemory_limit = \"48M\"\n";
    for keys in ["mpm = \"event\"\n", "mpm = \"worker\"\n", "mpm = \"prefork\"\n"] {
        check("apache", "fpm", keys, variant, &told);
    }
    check("nginx", "fpm", "", variant, &told);
}

/// A pool tells how it fares while all its processes work.
fn a_full_pool_tells_itself() {
    if !is_here("fpm") {
        return;
    }
    let (stage, keys) = stage("php = \"fpm\"\n");
    let plan = stage.plan("apache", &keys, "[server.fpm]\npm = \"static\"\nmax_children = 2\n");
    let running = stage.start(&plan, &[]).unwrap();
    let address = running.address;
    let clients: Vec<_> = (0..8).map(|_| std::thread::spawn(move || ask(address, "GET /slow.php"))).collect();
    let mut queues = true;
    eventually("the pool is full", || {
        let fpm = running.status.look().fpm.unwrap();
        queues = fpm.queue.is_some();
        fpm.active == 2 && fpm.idle == 0 && fpm.queue.is_none_or(|queue| queue > 0)
    });
    assert!(queues || cfg!(not(target_os = "linux")), "the kernel tells no queue");
    for client in clients {
        assert!(client.join().unwrap().ends_with("slow"));
    }
    eventually("the pool is idle", || {
        running.status.look().fpm.is_some_and(|fpm| fpm.active == 0 && fpm.accepted >= 9)
    });
    running.stop().unwrap();
}

/// What FPM or PHP does not take is told with the line of the plan.
fn what_php_refuses_names_the_line() {
    if !is_here("fpm") {
        return;
    }
    let refused = |variant: &str| -> String {
        let (stage, keys) = stage("php = \"fpm\"\n");
        let plan = stage.plan("apache", &keys, variant);
        let error: ServerError = stage.start(&plan, &[]).unwrap_err();
        stage.told(&error)
    };
    let told = refused("[variant.v.fpm]\npm = \"dynamic\"\nmax_children = 2\nmax_spare_servers = 7");
    assert!(told.starts_with("DIR/plan.toml:") && told.contains("fpm.max_spare_servers = 7"), "{told}");
    let told = refused("[variant.v.ini]\nmemory_limitt = \"1M\"");
    assert!(
        told.contains("ini.memory_limitt = 1M: PHP 8") && told.contains("has no setting `memory_limitt`"),
        "{told}"
    );
    let told = refused("[variant.v.ini]\nmemory_limit = \"much\"");
    assert!(told.contains("ini.memory_limit = much: "), "{told}");
}

/// The server ends with its pool: a dead master is a dead server.
fn a_dead_pool_is_a_dead_server() {
    if !is_here("fpm") {
        return;
    }
    let (stage, keys) = stage("php = \"fpm\"\n");
    let mut running = stage.start(&stage.plan("nginx", &keys, ""), &[]).unwrap();
    assert!(running.is_alive());
    let pid = running.beside()[0];
    assert!(std::process::Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap().success());
    eventually("it is dead", || !running.is_alive());
    running.stop().unwrap();
    assert_eq!(processes_of(stage.dir.path()), []);
}
