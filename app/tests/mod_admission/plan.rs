//! A variant of `webdyno run` can have the module like any other: its directives are the server's.

use crate::client::Client;
use crate::server::{PATIENCE, module_file, wait};
use crate::tool::{Tool, remains};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::time::Instant;

const PLAN: &str = r#"
blocks = 2
aa = false
[server]
kind = "apache"
mpm = "event"
document_root = "SITE"
[cooldown]
limit = "10ms"
[variant.free]
[variant.limited]
directives = """
LoadModule admission_module MODULE
AdmissionEngine on
AdmissionGroup files limit=1 handler=any hold=response
AdmissionUse files
<Location /admission-status>
SetHandler admission-status
</Location>
"""
[load.l]
path = "/index.html"
connections = 4
requests = 40
"#;

/// The plan, with a site of one file: of a size that takes a while to send, so that four who ask at once meet.
fn plan(tool: &Tool, module: &Path) -> String {
    let site = tool.tmp().with_file_name("site");
    std::fs::create_dir(&site).expect("a folder");
    std::fs::write(site.join("index.html"), "x".repeat(4_000_000)).expect("a file");
    tool.plan(&PLAN.replace("SITE", &site.display().to_string()).replace("MODULE", &module.display().to_string()))
}

#[test]
fn a_variant_uses_the_module() {
    let Some(module) = module_file() else { return };
    let tool = Tool::new();
    let plan = plan(&tool, module);
    let mut child = tool.spawn(&["run", &plan, "--start", "limited"]);
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines().map_while(Result::ok);
    let listening = lines.find_map(|line| line.strip_prefix("listening on http://127.0.0.1:").map(str::to_owned));
    let port = listening.and_then(|text| text.trim_end_matches('/').parse().ok()).expect("where it listens");
    assert_eq!(Client::to(port).get("/index.html").status, 200);
    let group = || {
        let status = Client::to(port).get("/admission-status?json");
        let status: serde_json::Value = serde_json::from_str(&status.body).expect("JSON");
        status["groups"][0].clone()
    };
    // A client may have its answer a moment before the handler is done.
    wait("nothing is held", || group()["held"] == 0);
    let group = group();
    assert_eq!((&group["name"], &group["limit"]), (&"files".into(), &1.into()));
    assert!(group["counts"]["admitted"].as_u64().is_some_and(|count| count >= 1), "{group}");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("our own child");
    assert_eq!(child.wait().expect("our own child").code(), Some(0));
    let ended = Instant::now();
    wait("nothing is left", || remains(&tool).is_empty() || ended.elapsed() > PATIENCE);
    assert_eq!(remains(&tool), Vec::<String>::new());
}

/// Measured as any variant is: with the limit, some are turned away, and the report says so.
#[test]
fn a_run_compares_with_and_without() {
    let Some(module) = module_file() else { return };
    let tool = Tool::new();
    let run = tool.run(&["run", &plan(&tool, module), "--seed", "1", "--json"]);
    let report: serde_json::Value =
        serde_json::from_str(&run.out).unwrap_or_else(|error| panic!("{error}: {}", run.err));
    let cells = report["cells"].as_array().expect("cells");
    let good = |name: &str| cells.iter().find(|cell| cell["name"] == name).and_then(|cell| cell["good"].as_u64());
    assert_eq!(good("free"), Some(80), "{report}");
    assert!(good("limited").is_some_and(|good| (2..80).contains(&good)), "{report}");
    assert_eq!(remains(&tool), Vec::<String>::new());
}
