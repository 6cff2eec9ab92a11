//! Loads beside the cells' own: on the embedded server, on a real Apache whose CGI takes more memory than there is, and refused.

mod tool;

use serde_json::Value;
use std::process::Command;
use tool::{Finished, Tool, alone, is_root, open_plans, remains, shipped};

/// Eight connections that ask for something slow, and beside them somebody who wants a small file.
const PLAN: &str = r#"
blocks = 2
[server]
kind = "embedded"
[variant."2 workers"]
directives = "Workers 2"
[variant."16 workers"]
directives = "Workers 16"
[load.slow]
path = "/sleep/4ms"
connections = 8
duration = "500ms"
keep_alive = false
[load.static]
beside = true
path = "/static/100"
rate = "200/s"
connections = 16
keep_alive = false
[cooldown]
limit = "0s"
"#;

/// Each load would have room for its connections, but not both.
#[test]
fn more_connections_than_open_files_are_refused_before_anything_starts() {
    let tool = Tool::new();
    let plan =
        tool.plan(&PLAN.replace("connections = 8", "connections = 90").replace("connections = 16", "connections = 90"));
    for more in ["--plain", "--dry-run"] {
        let webdyno = tool.command(&["run", &plan, more]);
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -n 160 && exec \"$@\"", "sh"]).arg(webdyno.get_program()).args(webdyno.get_args());
        command.envs(webdyno.get_envs().filter_map(|(key, value)| Some((key, value?))));
        let ended = Finished::of(&command.output().expect("sh starts"));
        assert_eq!((ended.code, ended.err.lines().count()), (5, 1), "{ended:?}");
        assert!(ended.err.contains("180 connections take") && ended.err.contains("lower `connections`"), "{ended:?}");
    }
    assert_eq!(remains(&tool), Vec::<String>::new());
}

fn report(out: &str) -> Value {
    serde_json::from_str(out).expect("JSON")
}

/// The cells of the only load beside, each with its name.
fn beside(report: &Value) -> impl Iterator<Item = (&str, &Value)> {
    assert_eq!(report["beside"].as_array().map(Vec::len), Some(1), "{report}");
    let cells = report["beside"][0]["cells"].as_array().expect("cells");
    cells.iter().map(|cell| (cell["name"].as_str().expect("a name"), cell))
}

#[test]
fn it_is_sent_in_every_trial_and_reported_by_itself() {
    let _alone = alone();
    let tool = Tool::new();
    let run = tool.run(&["run", &tool.plan(PLAN), "--seed", "1", "--json"]);
    let told = report(&run.out);
    let names: Vec<&str> = beside(&told).map(|(name, _)| name).collect();
    assert_eq!(names, ["2 workers", "2 workers (A/A)", "16 workers"]);
    for (name, cell) in beside(&told) {
        assert_eq!((cell["trials_used"].as_u64(), cell["trials_made"].as_u64()), (Some(2), Some(2)), "{name}");
        assert!(cell["good"].as_u64().is_some_and(|good| good > 0), "{name}: {cell}");
        assert_eq!(cell["failures"].as_array().map(Vec::len), Some(0), "{name}: {cell}");
    }
    let again = tool.run(&["report", "--json"]);
    assert_eq!(report(&again.out), told, "redrawn from the store");
    let text = tool.run(&["report", "--lang", "en"]);
    assert!(text.out.contains("Beside the cells' own loads") && text.out.contains("GET /static/100"), "{}", text.out);
    let rows =
        tool.run(&["watch", "-cm", "--compat", "dstat-0.7.2", "--replay", told["run"]["id"].as_str().expect("an id")]);
    assert_eq!(
        (rows.code, rows.out.matches("----total-cpu-usage---- ------memory-usage-----").count()),
        (0, 6),
        "{rows:?}"
    );
    assert!(rows.err.contains("trial 6 of 6, block 2: "), "{}", rows.err);
    assert!(told["trials"].as_array().is_some_and(|trials| trials.len() == 6), "it makes no cells");
    // What it sent is nobody else's.
    assert!(!text.out.contains("somebody else"), "{}", text.out);
    assert_eq!(remains(&tool), Vec::<String>::new());
}

/// One setting, whose own load does what is expected: only what the load beside does decides how the run ends, and its report.
#[test]
fn the_exit_code_hears_what_is_expected_of_it() {
    let tool = Tool::new();
    let alone = PLAN.replace("[variant.\"16 workers\"]\ndirectives = \"Workers 16\"\n", "");
    let own = alone.replace("duration = \"500ms\"", "duration = \"500ms\"\nexpect = [\"rate > 1/s\"]");
    for (expected, code) in [("rate > 1/s", 0), ("rate > 1000000/s", 1)] {
        let plan = own.replace("beside = true", &format!("beside = true\nexpect = [\"{expected}\"]"));
        let run = tool.run(&["run", &tool.plan(&plan), "--json"]);
        let told = report(&run.out);
        let all = if code == 0 { 2 } else { 0 };
        for (name, cell) in beside(&told) {
            assert_eq!(cell["expected"][0]["trials_met"].as_u64(), Some(all), "{name}: {cell}");
        }
        assert_eq!((run.code, tool.run(&["report"]).code), (code, code), "{expected}: {}", run.err);
    }
}

#[test]
fn what_makes_no_sense_is_one_line() {
    let tool = Tool::new();
    for (plan, line) in [
        (
            PLAN.replace(
                "kind = \"embedded\"",
                "kind = \"embedded\"\n[load.x]\nbeside = true\npath = \"/\"\nconnections = 1",
            ),
            "give `rate`",
        ),
        (PLAN.replace("keep_alive = false\n[load.static]", "beside = true\n[load.static]"), "leave it out"),
        (PLAN.replace("blocks = 2", "blocks = 2\nbaseline = \"static\""), "is a load beside, and no cell"),
    ] {
        let run = tool.run(&["run", &tool.plan(&plan)]);
        assert_eq!((run.code, run.err.lines().count()), (2, 1), "{}", run.err);
        assert!(run.err.contains(line), "{}", run.err);
    }
    let dry = tool.run(&["run", &tool.plan(PLAN), "--dry-run"]);
    assert!(
        dry.out.contains("beside every cell, static: GET /static/100 over 16 connections"),
        "{}{}",
        dry.out,
        dry.err
    );
}

/// The shipped plan, shorter.
#[test]
fn static_files_beside_a_cgi_on_apache() {
    let _alone = alone();
    let memory_groups = host::hierarchies().is_ok();
    if !std::path::Path::new("/usr/sbin/apache2").exists() {
        return testkit::skip::skipped("no apache2");
    }
    if !is_root() || !memory_groups {
        return testkit::skip::not_here("needs root and a memory control group");
    }
    let tool = Tool::new();
    let sites = format!("\"{}", open_plans(&tool).with_file_name("sites").display());
    let text = std::fs::read_to_string(shipped("memory-cliff-static.toml")).expect("the plan");
    let text = text.replace("\"10s\"", "\"2s\"").replace("blocks = 6", "blocks = 2").replace("\"../sites", &sites);
    let text = text + "\n[cooldown]\nlimit = \"0s\"\n";
    let run = tool.run(&["run", &tool.plan(&text), "--quick", "--seed", "1", "--make-swap", "1G", "--json"]);
    assert!([0, 1, 3].contains(&run.code), "{}", run.err);
    let told = report(&run.out);
    for (name, cell) in beside(&told) {
        assert_eq!(cell["trials_used"].as_u64(), Some(2), "{name}: {}", run.err);
        assert!(cell["good"].as_u64().is_some_and(|good| good > 0), "{name}: {cell}");
    }
    assert_eq!(beside(&told).count(), 7);
    assert_eq!(remains(&tool), Vec::<String>::new());
}
