//! Servers beside the one under test: told to it, changed by variants, killed in mid-run, and gone afterwards whatever happens.

mod tool;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};
use tool::{Finished, PATIENCE, Tool, nothing_remains, open_plans, remains};

/// Two plain windows, of which nothing is waited for.
const HEAD: &str = "blocks = 2\naa = false\n[cooldown]\nlimit = \"0s\"\n";
const LOAD: &str = "[load.a]\npath = \"/static/10\"\nconnections = 2\nrequests = 20\n";
/// webdyno's own small server by another one.
const NGINX: &str = "kind = \"nginx\"\nready = \"/static/10\"\n";

fn has(program: &str, package: &str) -> bool {
    let here = ["/usr/sbin", "/usr/bin", "/bin"].iter().any(|folder| Path::new(folder).join(program).exists());
    if !here {
        testkit::skip::skipped(&format!("no {program} (package {package})"));
    }
    here
}

#[track_caller]
fn check(finished: &Finished, code: i32, says: &[&str]) {
    let last = finished.err.lines().last().unwrap_or_default();
    assert_eq!(finished.code, code, "{finished:?}");
    assert!(says.iter().all(|part| last.contains(part)), "no {says:?} in {finished:?}");
}

/// Every trial of the only run as it is stored.
fn trials(tool: &Tool) -> Vec<serde_json::Value> {
    let id = tool.run_ids().pop().expect("a run");
    let told = tool.run(&["report", &id, "--json"]).out;
    let run: serde_json::Value = serde_json::from_str(&told).expect("JSON");
    run["trials"].as_array().expect("trials").clone()
}

#[test]
fn a_variant_measures_a_service_or_what_stands_before_it() {
    if !has("nginx", "nginx") {
        return;
    }
    let tool = Tool::new();
    let plan = format!(
        "{HEAD}{LOAD}[server]\n{NGINX}directives = \"\"\"\naccess_log off;\n\
         location / {{ proxy_pass http://${{service.app.address}}:${{service.app.port}}; }}\n\"\"\"\n\
         [service.app]\nkind = \"embedded\"\n\
         [service.other]\nkind = \"embedded\"\ndirectives = \"Workers 3\"\n\
         [variant.\"behind nginx\"]\nservices = [\"app\"]\nservice.app.directives = \"Workers 2\"\n\
         [variant.direct]\nserver = \"app\"\nservices = []\ndirectives = \"Workers 5\"\n"
    );
    let ended = tool.run(&["run", &tool.plan(&plan), "--plain"]);
    assert!([0, 1, 3].contains(&ended.code), "{ended:?}");
    let report = tool.run(&["report", "latest"]).out;
    for told in ["app: Workers 2: behind nginx", "Workers 5: direct"] {
        assert!(report.contains(told), "no {told} in {report}");
    }
    assert!(!report.contains("other: Workers"), "{report}");
    assert_eq!(remains(&tool), Vec::<String>::new());
}

#[test]
fn a_backend_is_killed_in_mid_run() {
    if !has("nginx", "nginx") {
        return;
    }
    let tool = Tool::new();
    let server = |name: &str| format!("server ${{service.{name}.address}}:${{service.{name}.port}} fail_timeout=1h;");
    let plan = format!(
        "{HEAD}[server]\n{NGINX}directives = \"\"\"\naccess_log off;\nupstream both {{ {} {} }}\n\
         location / {{ proxy_pass http://both; }}\n\"\"\"\n\
         [service.a]\nkind = \"embedded\"\n[service.b]\nkind = \"embedded\"\n\
         [variant.whole]\n[variant.dies.service.b]\nkill_after = \"200ms\"\n\
         [load.a]\npath = \"/static/10\"\nconnections = 2\nduration = \"3s\"\n",
        server("a"),
        server("b")
    );
    let ended = tool.run(&["run", &tool.plan(&plan), "--plain"]);
    assert!([0, 1, 3].contains(&ended.code), "{ended:?}");
    for trial in trials(&tool) {
        let said = trial["notes"].to_string();
        // On a machine that is so busy that the window is over first, that is said.
        let told = ["the service `b` was killed ", "the window was over before the service `b` was to be killed"];
        assert_eq!(told.iter().any(|it| said.contains(it)), trial["cell"] == "dies", "{trial}");
    }
    assert!(trials(&tool).iter().any(|trial| trial["notes"].to_string().contains(" was killed ")), "in one at least");
    assert_eq!(remains(&tool), Vec::<String>::new());
}

/// It ends in its turn, when nothing is measured any more: what its end costs is nobody's in the report.
#[test]
fn one_that_was_to_be_killed_behind_the_window_is_stopped_with_the_others() {
    if !has("python3", "python3") {
        return;
    }
    let tool = Tool::new();
    let ended = tool.path("ended");
    let server = |name: &str, command: &str| {
        format!(
            "kind = \"command\"\ncommand = [\"sh\", \"-c\", \"echo $$ > ${{folder}}/pid; exec {command}\"]\n\
             stop = [\"sh\", \"-c\", \"echo {name} >> {}; kill $(cat ${{folder}}/pid)\"]\nstop_within = \"60s\"\n",
            ended.display()
        )
    };
    let ready = "ready = [\"sh\", \"-c\", \"test -s ${folder}/pid\"]\n";
    let plan = format!(
        "{HEAD}[load.a]\npath = \"/\"\nconnections = 1\nrequests = 10\n\
         [server]\n{}[service.a]\n{}{ready}[service.b]\n{}{ready}\
         [variant.v.service.a]\nkill_after = \"10m\"\n",
        server("server", "python3 -m http.server --bind ${address} ${port}"),
        server("a", "sleep 1000"),
        server("b", "sleep 1000")
    );
    let finished = tool.run(&["run", &tool.plan(&plan), "--plain"]);
    assert!([0, 1, 3].contains(&finished.code), "{finished:?}");
    let order = fs::read_to_string(&ended).expect("they were asked");
    // In the rehearsal and in two trials.
    assert_eq!(order, "server\nb\na\n".repeat(3), "{finished:?}");
    for trial in trials(&tool) {
        let said = trial["notes"].to_string();
        assert!(said.contains("the window was over before the service `a` was to be killed"), "{trial}");
        assert!(!said.contains("by force"), "{trial}");
    }
    assert_eq!(remains(&tool), Vec::<String>::new());
}

#[test]
fn one_that_does_not_start_says_why() {
    let tool = Tool::new();
    let with = |service: &str| {
        format!("{HEAD}{LOAD}[server]\nkind = \"embedded\"\n[service.db]\nkind = \"command\"\n{service}\n")
    };
    let run = |service: &str| tool.run(&["run", &tool.plan(&with(service)), "--plain"]);
    check(
        &run("command = [\"sh\", \"-c\", \"echo no files here >&2; exit 3\"]"),
        4,
        &["service `db`: the server's command ended before it was ready; its log ends with: no files here"],
    );
    let absent = "command = [\"nosuchdb\"]\npackage = \"nosuch-server\"";
    let says = "plan.toml:13: service.db.command: nosuchdb is no program in PATH; ";
    for how in ["--plain", "--dry-run"] {
        let ended = tool.run(&["run", &tool.plan(&with(absent)), how]);
        check(&ended, 4, &[says, "install the package nosuch-server, or name its path"]);
        // A step that cannot be done without the package does not come first; what no package brings, a step may make.
        let fails = "[[build]]\ncommand = [\"false\"]";
        let ended = tool.run(&["run", &tool.plan(&with(&format!("{absent}\n{fails}"))), how]);
        check(&ended, 4, &[says, "install the package nosuch-server"]);
        let ended = tool.run(&["run", &tool.plan(&with(&format!("command = [\"nosuchdb\"]\n{fails}"))), how]);
        check(&ended, 2, &["build: `false` failed"]);
    }
    check(
        &run("command = [\"sleep\", \"1000\"]\nready = [\"nosuch\"]"),
        4,
        &["plan.toml:14: service.db.ready: nosuch is no program"],
    );
    assert_eq!(remains(&tool), Vec::<String>::new());
}

#[test]
fn it_is_ready_when_its_command_says_so_and_kept_where_the_plan_does() {
    let tool = Tool::new();
    let (begun, tried) = (tool.path("begun"), tool.path("tried"));
    let run = |keep: &str| {
        let service = format!(
            "command = [\"sh\", \"-c\", \"echo ${{folder}} >> {}; exec sleep 1000\"]\n\
             ready = [\"sh\", \"-c\", \"echo >> {1}; grep -qsxF ${{folder}} {0} && [ $(wc -l < {1}) -gt 2 ]\"]\n{keep}\n",
            begun.display(),
            tried.display()
        );
        let plan = format!(
            "{HEAD}{LOAD}[server]\nkind = \"embedded\"\n[service.db]\nkind = \"command\"\n{service}\n[variant.a]\n[variant.b]\n"
        );
        let ended = tool.run(&["run", &tool.plan(&plan), "--plain"]);
        assert!([0, 1, 3].contains(&ended.code), "{ended:?}");
        let folders = fs::read_to_string(&begun).expect("it was started");
        fs::remove_file(&begun).expect("ours");
        folders.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    // Two rehearsals and four trials, each in a folder of its own.
    let each = run("");
    assert_eq!(each.len(), 6, "{each:?}");
    assert!(each.iter().enumerate().all(|(at, folder)| !each[..at].contains(folder)), "{each:?}");
    assert!(fs::read_to_string(&tried).expect("it was asked").lines().count() >= 3);
    assert_eq!(run("keep = true").len(), 1);
    assert_eq!(remains(&tool), Vec::<String>::new());
}

#[test]
fn one_that_dies_makes_its_trial_invalid() {
    if !has("python3", "python3") {
        return;
    }
    let tool = Tool::new();
    let mark = tool.path("mark");
    // It answers at / and has the service end at /end.
    let script = "import http.server, os, sys\n\
         class Server(http.server.BaseHTTPRequestHandler):\n\
         \x20   def do_GET(self):\n\
         \x20       if self.path == '/end': open(sys.argv[2], 'w').close()\n\
         \x20       self.send_response(204)\n\
         \x20       self.end_headers()\n\
         http.server.HTTPServer(('127.0.0.1', int(sys.argv[1])), Server).serve_forever()\n";
    fs::write(tool.path("server.py"), script).expect("a script");
    let plan = format!(
        "{HEAD}[load.a]\npath = \"/end\"\nconnections = 1\nduration = \"2s\"\n\
         [server]\nkind = \"command\"\ncommand = [\"python3\", \"server.py\", \"${{port}}\", \"{mark}\"]\n\
         [service.db]\nkind = \"command\"\nready = [\"true\"]\n\
         command = [\"sh\", \"-c\", \"rm -f {mark}; while ! [ -e {mark} ]; do sleep 0.01; done; echo out of files >&2\"]\n",
        mark = mark.display()
    );
    let ended = tool.run(&["run", &tool.plan(&plan), "--plain"]);
    // Both of its trials, so nothing can be said.
    assert_eq!(ended.code, 3, "{ended:?}");
    let died = "the service `db` died during the trial; its log ends with: out of files";
    assert!(ended.err.contains(died), "{ended:?}");
    assert_eq!(remains(&tool), Vec::<String>::new());
}

/// A database of MariaDB's below a real page: after a kill neither its processes nor its files are there.
#[test]
fn nothing_of_a_database_is_left_by_a_killed_run() {
    let programs = [("mariadbd", "mariadb-server"), ("apache2", "apache2")];
    if !programs.iter().all(|(program, package)| has(program, package)) || !tool::has_php("mysqli") {
        return;
    }
    let tool = Tool::new();
    let site = open_plans(&tool).with_file_name("sites").join("backend-limit");
    let site = site.to_str().expect("UTF-8");
    let plan = format!(
        "{HEAD}[[build]]\ncommand = [\"sh\", \"{site}/prepare.sh\", \"${{run}}/data\", \"${{run}}/slots\"]\n\
         [service.db]\nkind = \"command\"\n\
         command = [\"sh\", \"{site}/mariadb.sh\", \"${{run}}/data\", \"${{folder}}\", \"${{address}}\", \"${{port}}\"]\n\
         ready = [\"mariadb-admin\", \"--no-defaults\", \"--socket=${{folder}}/mysql.sock\", \"ping\"]\n\
         [server]\nkind = \"apache\"\nmpm = \"prefork\"\nphp = \"module\"\ndocument_root = \"{site}\"\nready = \"/page.php\"\n\
         directives = \"SetEnv DB ${{service.db.folder}}/mysql.sock\"\n\
         [load.a]\npath = \"/page.php\"\nconnections = 4\nduration = \"1min\"\nchecks = [\"body contains in stock\"]\n"
    );
    let mut child = tool.spawn(&["run", &tool.plan(&plan), "--plain"]);
    let has_both =
        |there: &[String]| ["mariadbd", "apache2"].iter().all(|name| there.iter().any(|it| it.contains(name)));
    // The page answers before the load begins, or the run would have ended.
    let mut there = Vec::new();
    let until = Instant::now() + Duration::from_secs(120);
    while !has_both(&there) && Instant::now() < until && child.try_wait().expect("our own child").is_none() {
        std::thread::sleep(Duration::from_millis(50));
        there = remains(&tool);
    }
    child.kill().expect("our own child");
    let ended = Finished::of(&child.wait_with_output().expect("killed"));
    assert!(has_both(&there), "{there:?} {ended:?}");
    nothing_remains(&tool, PATIENCE);
}
