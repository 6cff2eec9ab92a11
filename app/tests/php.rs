//! Pages of PHP in processes of Apache: what those hold, and pages that answer 200 with an error inside. On the machine's real Apache.

mod tool;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use tool::{Finished, PATIENCE, Tool, is_root, nothing_remains, open_plans, remains, shipped};

/// Three cells in two blocks: a page that fits its memory_limit, and one that does not, with and without somebody who looks into it.
const PLAN: &str = r#"
blocks = 2
aa = false
baseline = "whole"

[server]
kind = "apache"
mpm = "prefork"
document_root = "SITES/php"
ready = "/page.php"
php = "module"
directives = """
StartServers 3
MinSpareServers 3
MaxSpareServers 3
MaxRequestWorkers 3
SetEnv MEMORY 20
SetEnv PASSES 1
"""

[cooldown]
limit = "10ms"

[variant.enough]
ini = { memory_limit = "40M" }

[variant.short]
ini = { memory_limit = "12M" }

[load.checked]
path = "/app.php"
connections = 2
requests = 12
timeout = "300s"
checks = ["body contains </html>"]
expect = ["failed = 0"]

[load.unchecked]
path = "/app.php"
connections = 2
requests = 12
timeout = "300s"
expect = ["failed = 0"]

[[cell]]
name = "whole"
variant = "enough"
load = "checked"

[[cell]]
name = "broken"
variant = "short"
load = "checked"

[[cell]]
name = "broken, nobody looks"
variant = "short"
load = "unchecked"
"#;

fn can_run_php() -> bool {
    let modules = std::fs::read_dir("/usr/lib/apache2/modules").into_iter().flatten().flatten();
    let mut php = modules.filter(|file| file.file_name().to_string_lossy().starts_with("libphp"));
    if php.next().is_none() {
        testkit::skip::skipped("no mod_php");
        return false;
    }
    if !is_root() {
        testkit::skip::not_here("needs root: workers change to their own account");
        return false;
    }
    true
}

#[test]
fn workers_are_looked_at_and_a_broken_page_is_found_by_a_check() {
    if !can_run_php() {
        return;
    }
    let tool = Tool::new();
    let sites = open_plans(&tool).with_file_name("sites").display().to_string();
    let run = tool.run(&["run", &tool.plan(&PLAN.replace("SITES", &sites)), "--seed", "1", "--json"]);
    let report: Value = serde_json::from_str(&run.out).unwrap_or_else(|error| panic!("{error}: {}", run.err));
    let cell = |name: &str| {
        let found = report["cells"].as_array().and_then(|cells| cells.iter().find(|cell| cell["name"] == name));
        found.unwrap_or_else(|| panic!("{name}: {report}")).clone()
    };
    for (name, good, met) in [("whole", 24, 2), ("broken", 0, 0), ("broken, nobody looks", 24, 2)] {
        let cell = cell(name);
        assert_eq!(
            (&cell["good"], &cell["expected"][0]["trials_met"]),
            (&Value::from(good), &Value::from(met)),
            "{cell}"
        );
    }
    let broken = cell("broken");
    assert_eq!(
        (&broken["failures"][0]["cause"]["id"], &broken["failures"][0]["count"]),
        (&"failure-check".into(), &24.into())
    );
    let whole = cell("whole");
    let workers = &whole["workers"][0];
    let bytes = |what: &str| workers[what]["largest_bytes"].as_f64().unwrap_or_default();
    // A part of what the page took is given back when it ends.
    let page = f64::from(20 << 20);
    assert!(page / 4.0 < bytes("own") && bytes("own") < page * 6.0, "{workers}");
    assert!(bytes("proportional") <= bytes("resident") && bytes("resident") < page * 6.0, "{workers}");
    assert_eq!((&workers["name"], &workers["workers"], &workers["looks"]), (&"apache2".into(), &3.0.into(), &2.into()));
    let fit = &workers["fit"];
    assert_eq!((&fit["planned"], &fit["limit_bytes"]), (&false.into(), &(40 << 20).into()));
    let (memory, shared) =
        (fit["memory_bytes"].as_f64().unwrap_or(0.0), workers["shared_bytes"].as_f64().unwrap_or(0.0));
    assert_eq!(fit["workers"].as_f64(), Some(((memory - shared) / bytes("own")).floor()));
    assert_eq!(remains(&tool), Vec::<String>::new());
}

/// Whether a WordPress and its database can be run here.
fn can_run_wordpress() -> bool {
    let needed = [
        "/usr/share/wordpress/wp-load.php",
        "/usr/share/wordpress/wp-content/themes/twentytwentythree",
        "/usr/sbin/mariadbd",
    ];
    if let Some(missing) = needed.iter().find(|path| !std::path::Path::new(path).exists()) {
        testkit::skip::skipped(&format!("no {missing}"));
        return false;
    }
    can_run_php() && ["gd", "mysqli"].iter().all(|extension| tool::has_php(extension))
}

/// The first part of the plan that comes along, with two blocks of three of its cells.
fn wordpress() -> String {
    let sites = format!("{}/../sites", env!("CARGO_MANIFEST_DIR"));
    let whole = std::fs::read_to_string(shipped("php/wordpress-memory.toml")).expect("the plan");
    let common = whole.split("[[cell]]").next().expect("a part").replace("../../sites", &sites);
    let cell = |name: &str, variant: &str, load: &str| {
        format!("[[cell]]\nname = \"{name}\"\nvariant = \"{variant}\"\nload = \"{load}\"\n")
    };
    common.replace("blocks = 6\n", "blocks = 2\naa = false\n")
        + &cell("front page, 128M", "64M", "front")
        + &cell("upload, 64M", "64M", "upload")
        + &cell("upload, 80M", "80M", "upload")
}

#[test]
fn the_front_page_of_a_wordpress_passes_where_an_upload_does_not() {
    if !can_run_wordpress() {
        return;
    }
    let tool = Tool::new();
    let run = tool.run(&["run", &tool.plan(&wordpress()), "--seed", "1", "--json"]);
    let report: Value = serde_json::from_str(&run.out).unwrap_or_else(|error| panic!("{error}: {}", run.err));
    let cells = report["cells"].as_array().expect("cells");
    let good: Vec<_> = cells.iter().map(|cell| (&cell["good"], &cell["expected"][0]["trials_met"])).collect();
    let (all, both, none) = (Value::from(24), Value::from(2), Value::from(0));
    assert_eq!(good, [(&all, &both), (&none, &none), (&all, &both)], "{report}");
    // Neither the site nor its database is left.
    assert_eq!(remains(&tool), Vec::<String>::new());
}

/// A site and its database that are cut off between the first trial and the last: by Ctrl-C, and by a kill, after which the guardian has to
/// know of both.
#[test]
fn nothing_of_a_wordpress_is_left_by_a_run_that_is_cut_off() {
    if !can_run_wordpress() {
        return;
    }
    for signal in [Signal::INT, Signal::KILL] {
        let tool = Tool::new();
        let mut child = tool.spawn(&["run", &tool.plan(&wordpress()), "--seed", "1", "--plain"]);
        let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines().map_while(Result::ok);
        assert!(lines.any(|line| line.contains("block 1")), "no trial ended");
        let there = remains(&tool);
        assert!(there.iter().any(|what| what.contains("mariadbd")), "{there:?}");
        kill_process(Pid::from_child(&child), signal).expect("our own child");
        let rest: Vec<String> = lines.collect();
        let ended = Finished::of(&child.wait_with_output().expect("it ends"));
        assert_eq!(ended.code, if signal == Signal::INT { 130 } else { -1 }, "{rest:?} {ended:?}");
        nothing_remains(&tool, PATIENCE);
    }
}
