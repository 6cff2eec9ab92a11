//! Where the time of requests went, of servers that work on several at once: on the machine's real Apache, nginx and PHP-FPM.

mod tool;

use serde_json::Value;
use tool::{Tool, alone, is_root, open_plans, remains};

/// A page that sleeps for 5 ms, and a file, by FPM with two processes.
const PLAN: &str = r#"
blocks = 2
aa = false
latency_budget = true

[server]
SERVER
document_root = "SITES/php"
ready = "/page.php"
php = "fpm"

[server.fpm]
pm = "static"
max_children = 2

[cooldown]
limit = "10ms"

[load.page]
path = "/page.php"
connections = 4
keep_alive = false
duration = "1s"

[load.file]
path = "/style.css"
connections = 4
keep_alive = false
duration = "1s"
"#;

/// Who had each of the slowest requests is known by thread and by process of FPM: their parts are told, as those of all.
fn check(server: &str) {
    let _alone = alone();
    if tool::apache_with_fpm().is_none() {
        return;
    }
    if !is_root() {
        return testkit::skip::not_here("needs root, as the kernel's accounts are root's");
    }
    if let Err(error) = monitor::may_account() {
        return testkit::skip::not_here(&format!("the kernel tells no delays here ({error})"));
    }
    let tool = Tool::new();
    let plans = open_plans(&tool);
    let sites = plans.parent().expect("a folder").join("sites");
    std::fs::write(sites.join("php/style.css"), "p { color: black }\n".repeat(200)).expect("a file");
    let text = PLAN.replace("SERVER", server).replace("SITES", &sites.display().to_string());
    let run = tool.run(&["run", &tool.plan(&text), "--json"]);
    let report: Value = serde_json::from_str(&run.out).unwrap_or_else(|error| panic!("{error}: {run:?}"));
    for cell in report["cells"].as_array().expect("cells") {
        let is_page = cell["name"] == "page";
        for split in ["mean", "slowest"] {
            let budget = &cell["latency_budget"][split];
            let part = |name: &str| {
                let part = budget["parts"].as_array()?.iter().find(|part| part["part"] == name)?;
                part["us"].as_f64()
            };
            // nginx's clock counts milliseconds: a file takes none.
            assert!((server.contains("nginx") && !is_page) || part("on-cpu") > Some(0.0), "{split}: {cell}");
            // It sleeps for 5 ms of them, and two at once wait for a process of FPM.
            assert!(!is_page || part("lock") > Some(2500.0), "{split}: {cell}");
        }
    }
    assert_eq!(remains(&tool), Vec::<String>::new());
}

#[test]
fn threads_of_apache_and_processes_of_fpm() {
    check("kind = \"apache\"\nmpm = \"event\"");
}

#[test]
fn processes_of_nginx_and_of_fpm() {
    if !std::path::Path::new("/usr/sbin/nginx").exists() {
        return testkit::skip::skipped("no nginx");
    }
    check("kind = \"nginx\"");
}
