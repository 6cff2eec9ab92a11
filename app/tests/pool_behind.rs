//! A pool of a PHP-FPM that runs already, behind a server that is measured: a copy of its web server, and one in place. It is asked past the web
//! server, on its own socket for that.

mod running;
mod tool;

use running::{Running, can_run};
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use testkit::debian::Debian;
use tool::scene::Scene;
use tool::{Tool, alone, remains};

/// Two windows in which more requests come at once than the pool has processes; of a page that waits.
const LOAD: &str =
    "[load.php]\npath = \"/wait.php\"\nconnections = 8\nduration = \"2500ms\"\n[cooldown]\nlimit = \"0s\"\n";
const PATH: &str = "pm.max_children = 3\npm.status_path = /fares";

/// Where the pool tells its status: a socket file in a folder that everybody may enter.
fn status_socket(tool: &Tool) -> String {
    let folder = tool.path("fpm");
    fs::create_dir_all(&folder).expect("our own folder");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).expect("our own folder");
    tool.tmp();
    folder.join("status.sock").display().to_string()
}

/// A copy of the server with that main file, whose pool told how it fared in every trial, or which note says why it did not.
#[track_caller]
fn check(tool: &Tool, kind: &str, main: &str, note: Option<&str>) {
    let plan = format!(
        "blocks = 2\naa = false\n[server]\nkind = \"{kind}\"\nfrom = \"{main}\"\nready = \"/index.html\"\n{LOAD}"
    );
    let ended = tool.run(&["run", &tool.plan(&plan), "--plain"]);
    assert!([0, 1, 3].contains(&ended.code), "{ended:?}");
    fared(tool, note);
    assert_eq!(remains(tool), Vec::<String>::new());
}

#[track_caller]
fn fared(tool: &Tool, note: Option<&str>) {
    let id = tool.run_ids().pop().expect("a run");
    let told: serde_json::Value = serde_json::from_str(&tool.run(&["report", &id, "--json"]).out).expect("JSON");
    let trials = told["trials"].as_array().expect("trials");
    assert_eq!(trials.len(), 2, "{told}");
    for trial in trials {
        let notes = trial["notes"].as_array().expect("notes").iter().filter_map(|note| note.as_str());
        let of_fpm: Vec<&str> = notes.filter(|note| note.contains("PHP-FPM")).collect();
        assert_eq!(of_fpm, Vec::from_iter(note), "{trial}");
    }
    // Without its breaks of lines.
    let report: Vec<String> = tool.run(&["report", &id]).out.split_whitespace().map(str::to_owned).collect();
    let report = report.join(" ");
    let number = |before: &str| -> Option<f64> {
        let of_pool = report.split_once("PHP-FPM (median, looks: ")?.1;
        of_pool.split_once(before)?.1.split([' ', ',', ';']).next()?.parse().ok()
    };
    let (working, most) = (number("processes at work "), number(" of "));
    assert_eq!((working.is_some(), most), (note.is_none(), note.is_none().then_some(3.0)), "{report}");
    if note.is_none() {
        assert!(working > Some(1.0) && number("requests waiting for one ") >= Some(1.0), "{report}");
        assert!(report.contains("processes of PHP-FPM at most (pm.max_children) 3,"), "{report}");
    }
}

#[test]
fn a_pool_behind_a_copy_of_apache_tells_how_it_fares() {
    if !can_run(&["apache2", "php-fpm"]) {
        return;
    }
    let _alone = alone();
    let tool = Tool::new();
    let pool = format!("{PATH}\npm.status_listen = {}", status_socket(&tool));
    let running = Running::event_with("", &pool, None);
    check(&tool, "apache", &running.path("apache2.conf"), None);
}

#[test]
fn a_pool_behind_a_copy_of_nginx_tells_how_it_fares_by_tcp() {
    if !can_run(&["nginx", "php-fpm"]) {
        return;
    }
    let _alone = alone();
    let tool = Tool::new();
    let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a free port").port();
    let running = Running::nginx_fpm_by_tcp(&format!("{PATH}\npm.status_listen = {port}"));
    check(&tool, "nginx", &running.path("nginx.conf"), None);
}

#[test]
fn a_pool_that_would_tell_by_a_measured_process_is_not_asked() {
    if !can_run(&["apache2", "php-fpm"]) {
        return;
    }
    let _alone = alone();
    let says = |pool: &str, path: &str| {
        let tool = Tool::new();
        let running = Running::event_with("", pool, None);
        let note = format!(
            "PHP-FPM's pool `www` is not asked how it fares: that takes one of its processes unless it has a socket for it; \
             add lines such as {path}`pm.status_listen = {}.status` to {}",
            running.path("php.sock"),
            running.path("fpm/pool.d/www.conf")
        );
        check(&tool, "apache", &running.path("apache2.conf"), Some(&note));
    };
    says(PATH, "");
    says("pm.max_children = 3", "`pm.status_path = /fpm-status` and ");
}

/// The load may go to where nobody knows the pool, as to one in a container.
#[test]
fn a_pool_beside_a_place_without_one_is_not_asked() {
    if !can_run(&["apache2", "php-fpm"]) {
        return;
    }
    let _alone = alone();
    let tool = Tool::new();
    let pool = format!("{PATH}\npm.status_listen = {}", status_socket(&tool));
    let other = tool.path("no.sock").display().to_string();
    let directives = format!("<Location /other>\nSetHandler \"proxy:unix:{other}|fcgi://localhost\"\n</Location>\n");
    let running = Running::event_with(&directives, &pool, None);
    let note = format!(
        "no pool of PHP-FPM is asked how it fares: requests are passed to where none is found ({other}); \
         which pool the load reaches is not known"
    );
    check(&tool, "apache", &running.path("apache2.conf"), Some(&note));
}

#[test]
fn a_pool_behind_an_apache_in_place_tells_how_it_fares() {
    if !can_run(&["apache2", "php-fpm"]) {
        return;
    }
    let _alone = alone();
    let other = Tool::new();
    let pool = format!("{PATH}\npm.status_listen = {}", status_socket(&other));
    let fpm = Running::event_with("", &pool, None);
    let prepare = |own: &Debian| {
        let modules = ["proxy", "proxy_fcgi"].map(|name| {
            format!(
                "<IfModule !mod_{name}.c>\nLoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so\n</IfModule>\n"
            )
        });
        let handler = format!(
            "<Location /wait.php>\nSetHandler \"proxy:unix:{}|fcgi://localhost\"\nProxyFCGISetEnvIf true SCRIPT_FILENAME {}\n</Location>\n",
            fpm.path("php.sock"),
            fpm.path("www/wait.php")
        );
        own.write("conf-enabled/php.conf", &(modules.concat() + &handler));
    };
    let Some(scene) = Scene::with(prepare) else { return };
    let plan = scene.plan("in_place = true", "[variant.as-is]");
    let (text, page) = (fs::read_to_string(&plan).expect("a plan"), LOAD.split_once("[cool").expect("both").0);
    let (head, tail) = (text.split_once("[load.a]").expect("a load").0, text.split_once("[cooldown]").expect("both").1);
    fs::write(&plan, format!("{head}{page}[cooldown]{tail}")).expect("our own folder");
    let ended = scene.run(&plan);
    assert!([0, 1, 3].contains(&ended.code), "{ended:?}");
    fared(&scene.tool, None);
    assert_eq!(scene.left(), Vec::<String>::new());
}

/// Where PHP uses all of the CPUs no further process of it would help, and whoever has it work beside us is not somebody else on the CPUs.
#[test]
fn a_full_pool_that_uses_the_cpus_is_not_too_small() {
    if !can_run(&["apache2", "php-fpm"]) {
        return;
    }
    let _alone = alone();
    let tool = Tool::new();
    let pool = format!("pm.max_children = 4\npm.status_path = /fares\npm.status_listen = {}", status_socket(&tool));
    let running = Running::event_with("", &pool, None);
    let main = running.path("apache2.conf");
    let judged = |more: &str| {
        let plan = format!(
            "blocks = 2\naa = false\n[server]\nkind = \"apache\"\nfrom = \"{main}\"\nready = \"/index.html\"\n{more}\
             [load.php]\npath = \"/hard.php\"\nconnections = 16\nduration = \"2500ms\"\n[cooldown]\nlimit = \"0s\"\n"
        );
        let ended = tool.run(&["run", &tool.plan(&plan), "--plain", "--json"]);
        assert!([0, 1, 3].contains(&ended.code), "{ended:?}");
        let told: serde_json::Value = serde_json::from_str(&ended.out).expect("JSON");
        let cell = &told["cells"][0];
        let primary = cell["diagnosis"]["primary"]["title"]["id"].as_str().expect("a cause");
        assert!(["cause-cpu-bound", "cause-worker-limit-right"].contains(&primary), "{cell:#}");
        let doubts = cell["doubts"].as_array().into_iter().flatten();
        assert!(doubts.clone().all(|doubt| doubt["id"] != "doubt-others"), "{cell:#}");
    };
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let ended = Ended(&over);
        // Visitors, who keep PHP at work while nothing is sent, too.
        for _ in 0..2 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    running.get("/hard.php").expect("an answer");
                }
            });
        }
        judged("");
        if host::hierarchies().is_ok() {
            judged("[confine]\nmemory = \"200 MB\"\n");
        }
        drop(ended);
    });
    assert_eq!(remains(&tool), Vec::<String>::new());
}

/// Says so when it is dropped, also by a panic.
struct Ended<'a>(&'a AtomicBool);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
