//! Plans of a server that runs already and that webdyno only talks to: its loads are compared, and it stays as it is.

mod tool;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use testkit::nginx::Nginx;
use testkit::own::Own;
use tool::scene::Scene;
use tool::{Finished, Tool, remains};

/// A server of our own that is none of the tool's.
struct Served {
    child: Child,
    port: u16,
}

impl Served {
    fn start(listen: &str) -> Served {
        let mut command = Command::new(env!("CARGO_BIN_EXE_webdyno"));
        command.args(["serve", "--listen", listen]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("it starts");
        let line = BufReader::new(child.stdout.take().expect("piped")).lines().next().expect("a line").expect("UTF-8");
        let port = line.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
        Served { child, port }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A plan of that server and two loads, of which the second gets four times as much.
fn plan(url: &str, blocks: u32, duration: &str) -> String {
    let load = |name: &str, connections: u32| {
        format!("[load.{name}]\npath = \"/sleep/5ms\"\nconnections = {connections}\nduration = \"{duration}\"\n")
    };
    format!(
        "blocks = {blocks}\naa = false\n[server]\nkind = \"url\"\nurl = \"{url}\"\nready = \"/\"\n{}{}[warmup]\nrequests = 2\n\
         [cooldown]\nlimit = \"0s\"\n",
        load("few", 2),
        load("many", 8)
    )
}

fn json(ran: &Finished) -> Value {
    serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
}

/// The run, and what it says, from the line on that has this in it.
fn begun(tool: &Tool, plan: &str, said: &str) -> (Child, Box<dyn Iterator<Item = String>>) {
    let mut child = tool.spawn(&["run", plan, "--plain"]);
    let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains(said)), "it did not come to `{said}`");
    (child, Box::new(lines))
}

#[test]
fn two_loads_are_compared_and_the_server_stays_as_it_is() {
    let (tool, mut served) = (Tool::new(), Served::start("127.0.0.1:0"));
    let plan = tool.plan(&plan(&served.url(), 3, "400ms"));
    let dry = tool.run(&["run", &plan, "--dry-run"]);
    let whither = format!("to the server at {} (127.0.0.1:{}), of which nothing is started", served.url(), served.port);
    assert!(dry.code == 0 && dry.out.contains(&whither) && dry.out.contains("block 3: "), "{dry:?}");
    let ran = tool.run(&["run", &plan, "--plain", "--json"]);
    let said = json(&ran);
    let many = &said["cells"][1];
    assert_eq!((ran.code, &many["comparison"]["verdict"]["id"]), (0, &Value::from("verdict-better")), "{said:#}");
    assert!(many["comparison"]["ratio"].as_f64().is_some_and(|ratio| ratio > 2.0), "{said:#}");
    // Its processes are this user's, so what it used is known.
    let metrics: Vec<&str> =
        many["metrics"].as_array().expect("a list").iter().filter_map(|metric| metric["metric"].as_str()).collect();
    assert!(metrics.contains(&"cpu-per-answer") && metrics.contains(&"memory-peak"), "{metrics:?}");
    // Nobody can choose his visitors.
    let recommendation = &said["recommendation"];
    assert_eq!(recommendation["choices"], Value::Array(vec![]), "{recommendation:#}");
    assert_eq!(recommendation["notes"][0]["id"], "recommend-nothing", "{recommendation:#}");
    assert_eq!(said["settings"], Value::Array(vec![]), "{said:#}");
    assert!(served.child.try_wait().expect("our own child").is_none());
    for form in [vec!["report"], vec!["report", "--markdown"], vec!["report", "--lang", "ja"]] {
        let shown = tool.run(&form);
        assert!(shown.code == 0 && shown.out.contains("many"), "{shown:?}");
        assert!(!shown.out.contains("MaxRequestWorkers"), "{}", shown.out);
    }
    let again = tool.run(&["run", &plan, "--plain", "--quick"]);
    assert!([0, 3].contains(&again.code), "{again:?}");
    let runs = tool.run_ids();
    let compared = tool.run(&["compare", &runs[1], &runs[0]]);
    assert!([0, 1, 3].contains(&compared.code) && compared.out.contains("few"), "{compared:?}");
    assert_eq!(remains(&tool), Vec::<String>::new());
}

#[test]
fn a_server_of_the_machines_is_left_as_it_is() {
    let Some(scene) = Scene::<Nginx>::new() else { return };
    let (tool, pid) = (&scene.tool, scene.own.pid());
    let text = plan(&format!("http://127.0.0.1:{}/", scene.own.port()), 2, "300ms").replace("/sleep/5ms", "/");
    let ran = tool.run(&["run", &tool.plan(&text), "--plain", "--json"]);
    assert!([0, 1, 3].contains(&ran.code), "{ran:?}");
    assert!(json(&ran)["run"]["server"].as_str().is_some_and(|server| server.starts_with("nginx")), "{}", ran.out);
    assert_eq!(scene.own.pid(), pid);
    scene.check_given_back();
}

#[test]
fn somebody_elses_server_is_refused_unless_it_is_ours_to_load() {
    let tool = Tool::new();
    // An address that nobody has: RFC 5737.
    let plan = tool.plan(&plan("http://192.0.2.1/", 2, "300ms"));
    let expected = format!(
        "webdyno: {plan}:5: server.url: 192.0.2.1 is not this machine; if you operate it, say so once: --i-operate 192.0.2.1\n"
    );
    for more in [None, Some("--dry-run")] {
        let refused = tool.run(&["run", &plan].into_iter().chain(more).collect::<Vec<_>>());
        assert_eq!((refused.code, refused.err.as_str()), (2, expected.as_str()));
    }
    let dry = tool.run(&["run", &plan, "--dry-run", "--i-operate", "192.0.2.1"]);
    assert!(dry.code == 0 && dry.out.contains("to the server at http://192.0.2.1/ (192.0.2.1:80)"), "{dry:?}");
    // A dry run remembers nothing.
    assert_eq!(tool.run(&["run", &plan]).code, 2);
    let started = tool.run(&["run", &plan, "--start", "as-is", "--i-operate", "192.0.2.1"]);
    assert!(started.code == 2 && started.err.contains("runs already, at http://192.0.2.1/"), "{started:?}");
    let loopback = std::fs::read_to_string(&plan).expect("a plan").replace("192.0.2.1", "localhost");
    let away = tool.plan(&format!("{loopback}[load]\nfrom = \"ssh:nobody@192.0.2.7\"\n"));
    let away = tool.run(&["run", &away]);
    assert!(
        away.code == 2 && away.err.contains(":5: server.url: ") && away.err.contains("each machine's own"),
        "{away:?}"
    );
}

#[test]
fn a_server_that_is_not_there_is_one_line() {
    let tool = Tool::new();
    let url = format!("http://127.0.0.1:{}/", testkit::own::free_port());
    let plan = tool.plan(&plan(&url, 2, "300ms"));
    let ran = tool.run(&["run", &plan, "--plain"]);
    let expected = format!(
        "webdyno: {plan}:5: server.url: {url}: nobody listens there; start the server, or correct the address\n"
    );
    assert_eq!((ran.code, ran.err.as_str()), (4, expected.as_str()));
    let named = std::fs::read_to_string(&plan).expect("a plan").replace("127.0.0.1", "nobody.invalid");
    let unknown = tool.run(&["run", &tool.plan(&named)]);
    assert_eq!((unknown.code, unknown.err.lines().count()), (4, 1), "{unknown:?}");
    assert!(unknown.err.contains(":5: server.url: cannot find the host `nobody.invalid`"), "{unknown:?}");
    assert_eq!(remains(&tool), Vec::<String>::new());
}

#[test]
fn what_is_measured_is_kept_when_the_server_is_killed_and_the_run_goes_on() {
    let (tool, served) = (Tool::new(), Served::start("127.0.0.1:0"));
    let listen = format!("127.0.0.1:{}", served.port);
    let plan = tool.plan(&plan(&served.url(), 3, "700ms"));
    let (mut child, lines) = begun(&tool, &plan, "block 1");
    drop(served);
    let last = lines.last().expect("it says why");
    assert_eq!(child.wait().expect("it ends").code(), Some(4), "{last}");
    assert!(last.contains("nobody listens there any more; when the server is back, go on with --resume"), "{last}");
    let cut = json(&tool.run(&["report", "--json"]));
    let used: Vec<bool> =
        cut["trials"].as_array().expect("a list").iter().filter_map(|it| it["used"].as_bool()).collect();
    assert!(used[0] && used.len() < 6, "{cut:#}");

    let _served = Served::start(&listen);
    let resumed = tool.run(&["run", "--resume", "latest", "--plain", "--json"]);
    let said = json(&resumed);
    assert_eq!((resumed.code, &said["run"]["complete"]), (0, &Value::Bool(true)), "{said:#}");
    assert_eq!(remains(&tool), Vec::<String>::new());
}

#[test]
fn an_interrupted_run_goes_on() {
    let (tool, mut served) = (Tool::new(), Served::start("127.0.0.1:0"));
    let plan = tool.plan(&plan(&served.url(), 2, "500ms"));
    let (mut child, _lines) = begun(&tool, &plan, "block 1");
    kill_process(Pid::from_child(&child), Signal::INT).expect("our own child");
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    let resumed = tool.run(&["run", "--resume", "latest", "--plain"]);
    assert!([0, 3].contains(&resumed.code) && resumed.out.contains("many"), "{resumed:?}");
    let whole = tool.run(&["run", "--resume", "latest"]);
    assert!(whole.code == 2 && whole.err.contains("has all its blocks"), "{whole:?}");
    // A load of the same server is none of these.
    let loaded = tool.run(&["load", &served.url(), "-d", "200ms", "--json"]);
    assert_eq!(loaded.code, 0, "{loaded:?}");
    let not_a_run = tool.run(&["run", "--resume", "latest"]);
    assert!(not_a_run.code == 2 && not_a_run.err.contains("is a load, not a run of a plan"), "{not_a_run:?}");
    assert!(served.child.try_wait().expect("our own child").is_none());
    assert_eq!(remains(&tool), Vec::<String>::new());
}
