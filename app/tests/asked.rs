//! Plans that ask more than "each against the baseline", and runs compared afterwards, by the whole tool.

#![allow(clippy::unwrap_used, reason = "helpers of tests; clippy.toml excepts only test functions")]

mod tool;

use serde_json::Value;
use tool::Tool;

const SHORT: &str = "[warmup]\nduration = \"50ms\"\n[cooldown]\nlimit = \"0s\"\n";
const LOAD: &str =
    "[server]\nkind = \"embedded\"\n[load.l]\npath = \"/sleep/4ms\"\nconnections = 8\nduration = \"200ms\"\n";

fn json(tool: &Tool, args: &[&str]) -> Value {
    let ran = tool.run(args);
    serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {}{}", ran.out, ran.err))
}

#[test]
fn factors_are_measured_and_their_effects_told() {
    let tool = Tool::new();
    let factors = "[factors.workers]\nfew = \"Workers 1\"\nmany = \"Workers 8\"\n[factors.keep]\nkept = \"\"\nnew = \"KeepAlive Off\"\n\
                   [factors.clients]\none = { connections = 1 }\neight = { connections = 8 }\n[design]\ngenerators = [\"clients = workers * keep\"]\n";
    let plan = tool.plan(&format!("blocks = 2\n{LOAD}{factors}{SHORT}"));
    let report = json(&tool, &["run", &plan, "--seed", "1", "--json"]);
    let names: Vec<&str> =
        report["cells"].as_array().unwrap().iter().filter_map(|cell| cell["name"].as_str()).collect();
    assert_eq!(
        names,
        ["few, kept, eight", "few, kept, eight (A/A)", "few, new, one", "many, kept, one", "many, new, eight"]
    );
    assert_eq!(report["design"]["resolution"], 3);
    let told: Vec<String> = report["contrasts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| format!("{}: {}", it["name"].as_str().unwrap(), it["aliases"]["text"].as_str().unwrap()))
        .collect();
    assert_eq!(
        told,
        [
            "workers: Cannot be told from: keep × clients.",
            "keep: Cannot be told from: workers × clients.",
            "clients: Cannot be told from: workers × keep."
        ]
    );
    assert!(report["contrasts"][0]["comparison"]["blocks"] == 2, "{}", report["contrasts"][0]);
}

#[test]
fn a_sweep_is_measured_and_drawn() {
    let tool = Tool::new();
    let plan = tool
        .plan(&format!("blocks = 2\naa = false\n{LOAD}[sweep]\nover = \"Workers\"\nvalues = [1, 2, 4, 8]\n{SHORT}"));
    let page = tool.path("page.html");
    let ran = tool.run(&["run", &plan, "--html", page.to_str().unwrap()]);
    assert!(ran.out.contains("Throughput against the number"), "{}{}", ran.out, ran.err);
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("aria-label=\"r/s against Workers\""), "the picture");
    let sweep = &json(&tool, &["report", "--json"])["sweep"];
    assert_eq!((sweep["over"].as_str(), sweep["points"].as_array().map(Vec::len)), (Some("Workers"), Some(4)));
    assert!(sweep["law"]["sigma_interval"].is_null(), "two blocks give no interval: {}", sweep["law"]);
}

#[test]
fn runs_are_compared_afterwards() {
    let tool = Tool::new();
    let of = |workers: u32, connections: u32| {
        let load = LOAD.replace("connections = 8", &format!("connections = {connections}"));
        let plan = tool
            .plan(&format!("blocks = 2\naa = false\n{load}[variant.a]\ndirectives = \"Workers {workers}\"\n{SHORT}"));
        let report = json(&tool, &["run", &plan, "--json"]);
        report["run"]["id"].as_str().unwrap().to_owned()
    };
    let (one, eight, other) = (of(1, 8), of(8, 8), of(8, 4));
    let compared = json(&tool, &["compare", &one, &eight, "--json"]);
    let ids = |sentences: &Value| -> Vec<String> {
        sentences.as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(&compared["warnings"]), ["between-not-interleaved", "between-settings"]);
    assert_eq!(compared["cells"][0]["metrics"][0]["first_trials"], 2);
    let refused = tool.run(&["compare", &one, &other]);
    assert_eq!(refused.code, 2, "{}", refused.err);
    assert!(refused.err.contains("had another load") && refused.err.contains("--anyway"), "{}", refused.err);
    assert_ne!(tool.run(&["compare", &one, &other, "--anyway"]).code, 2);
    let twice = tool.run(&["compare", &one, &one]);
    assert!(twice.code == 2 && twice.err.contains("stands on both sides"), "{}", twice.err);
    let unknown = tool.run(&["compare", &one, "nothing"]);
    assert!(unknown.code == 2 && unknown.err.contains("no run `nothing`"), "{}", unknown.err);
    let mixed = tool.run(&["compare", &format!("{one},{other}"), &eight]);
    assert!(mixed.code == 2 && mixed.err.contains("cannot be one side"), "{}", mixed.err);
    let sides = tool.run(&["compare", &format!("{one},{eight}"), &other, "--anyway"]);
    assert!(sides.out.contains("trials: 4 and 2"), "{}{}", sides.out, sides.err);
}

#[test]
fn mistakes_point_at_their_place() {
    let tool = Tool::new();
    let said = |rest: &str| tool.run(&["run", "--dry-run", &tool.plan(&format!("{LOAD}{rest}"))]);
    for (rest, what) in [
        ("[[contrast]]\nname = \"x\"\nof = \"y\"\n", "plan.toml:9: contrast.of: no cell `y`"),
        ("[factors.a]\none = \"Workers 1\"\n", "plan.toml:7: factors.a: a factor needs at least two levels"),
        ("[sweep]\nover = \"Workers\"\nvalues = [1]\n", "plan.toml:9: sweep.values: give at least two values"),
        // The server itself says what it does not take, with the line that the sweep wrote.
        ("[sweep]\nover = \"Wrokers\"\nvalues = [1, 2]\n", "plan.toml:8:"),
    ] {
        let ran = said(rest);
        assert!(ran.code == 2 && ran.err.contains(what), "{rest}: {:?} {}", ran.code, ran.err);
    }
}

/// Two loads of one server, one after the other: they are compared in both directions, and a single trial each decides nothing.
#[test]
fn two_loads_are_compared() {
    let tool = Tool::new();
    let server = testkit::scripted::Scripted::always(vec![testkit::scripted::Step::Send(
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".to_vec(),
    )]);
    let url = format!("http://{}/", server.address());
    for _ in 0..2 {
        let loaded = tool.run(&["load", &url, "-c", "2", "-n", "50"]);
        assert_eq!(loaded.code, 0, "{loaded:?}");
    }
    let ids = tool.run_ids();
    let [one, other] = &ids[..] else { panic!("{ids:?}") };
    let ratio = |first: &str, second: &str| {
        let ran = tool.run(&["compare", first, second, "--json"]);
        assert_eq!(ran.code, 3, "{ran:?}");
        let told: Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!(told["warnings"][0]["id"], "between-not-interleaved", "{told:#}");
        assert_eq!((&told["forbidding"], &told["alone"]), (&serde_json::json!([]), &serde_json::json!([])), "{told:#}");
        told["cells"][0]["metrics"][0]["ratio"].as_f64().unwrap()
    };
    let both = ratio(one, other) * ratio(other, one);
    assert!((both - 1.0).abs() < 1e-9, "{both}");
    let run = tool.plan(&format!("blocks = 2\n[variant.a]\n[variant.b]\n{LOAD}{SHORT}"));
    json(&tool, &["run", &run, "--seed", "1", "--json"]);
    let refused = tool.run(&["compare", one, "latest"]);
    assert_eq!((refused.code, refused.err.lines().count()), (2, 1), "{refused:?}");
    assert!(refused.err.contains("have no cell in common: "), "{refused:?}");
}
