//! Lines of access logs counted against answers, on real servers: what each way to end one makes of lines that wait in buffers.

#![allow(clippy::unwrap_used, reason = "helpers of tests; clippy.toml excepts only test functions")]

mod tool;

use serde_json::Value;
use std::path::Path;
use tool::{Finished, Tool, remains};

const LOAD: &str = "[load.a]\npath = \"/?load\"\nconnections = 4\nkeep_alive = false\nrequests = 400\n[warmup]\nrequests = 5\n\
                    [cooldown]\nlimit = \"0s\"\n";

const APACHE: &str = "kind = \"apache\"\nmpm = \"prefork\"\ndirectives = '''\nStartServers 4\nMaxSpareServers 8\nMaxRequestWorkers 8\n\
                      LogFormat \"%h %l %u %t \\\"%r\\\" %>s %b\" common\n'''\n[access_log]\nfile = \"logs/access*\"\nformat = \"common\"\n";

const FILE: &str = "CustomLog logs/access.log common";
const PIPE: &str = "CustomLog \\\"|/bin/cat\\\" common";

/// Blocks of the plans.
const TRIALS: u64 = 2;
/// The most workers that a server has.
const WORKERS: u64 = 8;

/// The counts of a cell's log.
struct Counts<'a>(&'a Value);

impl Counts<'_> {
    fn number(&self, name: &str) -> u64 {
        self.0[name].as_u64().unwrap_or_else(|| panic!("{name}: {}", self.0))
    }

    /// Each answer has a line, and each line its answer.
    #[track_caller]
    fn whole(&self) {
        assert_eq!((self.number("lines"), self.number("lost_most")), (self.number("answers"), 0), "{}", self.0);
    }

    /// A worker that is ended at once may just have answered: its line is not in any buffer yet.
    #[track_caller]
    fn whole_but_for_the_last(&self) {
        assert!(self.number("lost_least") <= TRIALS * WORKERS, "{}", self.0);
    }

    /// What was not written before is lost, but for what a last line took along.
    #[track_caller]
    fn lost_with_the_buffers(&self) {
        let trials = self.0["trials"].as_array().unwrap();
        let unwritten: u64 = trials.iter().map(|trial| trial["unwritten"].as_u64().unwrap()).sum();
        let lost = (self.number("lost_least"), self.number("lost_most"));
        assert!(lost.0 == lost.1 && lost.0 > TRIALS * WORKERS && lost.0 <= unwritten, "{}", self.0);
    }
}

/// Runs a plan with these variants, each of directives and an ending, and gives its report.
fn run(tool: &Tool, server: &str, variants: &[(&str, &str, &str)]) -> Value {
    let variants: String = variants
        .iter()
        .map(|(name, directives, ending)| format!("[variant.{name}]\ndirectives = \"{directives}\"\n{ending}\n"))
        .collect();
    let plan = tool.plan(&format!("blocks = 2\naa = false\n[server]\n{server}{variants}{LOAD}"));
    let ran = tool.run(&["run", &plan, "--seed", "1", "--json"]);
    serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {}{}", ran.out, ran.err))
}

#[track_caller]
fn counts<'a>(report: &'a Value, name: &str) -> Counts<'a> {
    let cell = report["cells"].as_array().unwrap().iter().find(|cell| cell["name"] == name).unwrap();
    assert_eq!((&cell["trials_used"], &cell["failures"]), (&2.into(), &Value::Array(vec![])), "{report:#}");
    Counts(&cell["logged"])
}

#[test]
fn apache_keeps_or_loses_what_waits_in_its_buffers() {
    if !Path::new("/usr/sbin/apache2").exists() {
        return testkit::skip::skipped("no apache2");
    }
    let tool = Tool::new();
    let buffered = format!("BufferedLogs On\\n{FILE}");
    let report = run(
        &tool,
        APACHE,
        &[
            ("file", FILE, "ending = \"kill\""),
            ("stop", &buffered, "ending = \"stop\""),
            ("graceful-stop", &buffered, "ending = \"graceful-stop\""),
            ("graceful", &buffered, "ending = \"graceful\""),
            ("restart", &buffered, "ending = \"restart\"\nending_after = \"1ms\""),
            ("kill", &buffered, "ending = \"kill\""),
            ("none", "", ""),
        ],
    );
    counts(&report, "file").whole_but_for_the_last();
    counts(&report, "stop").whole_but_for_the_last();
    for name in ["graceful-stop", "graceful"] {
        let counts = counts(&report, name);
        assert_eq!(counts.0["ending"], name);
        counts.whole();
    }
    counts(&report, "kill").lost_with_the_buffers();
    // Requests that the restart cut off failed or were sent once more.
    let restarted = report["cells"].as_array().unwrap().iter().find(|cell| cell["name"] == "restart").unwrap();
    Counts(&restarted["logged"]).whole_but_for_the_last();
    let none = counts(&report, "none");
    assert_eq!((&none.0["writes"], none.number("answers")), (&false.into(), 810));
    let told = tool.run(&["report"]).out;
    assert!(told.contains("Access logs") && told.contains("server ended by"), "{told}");
    let told = tool.run(&["report", "--lang", "ja", "--markdown"]).out;
    assert!(told.contains("## アクセスログ") && told.contains("緩やかな再起動"), "{told}");
    assert_eq!(remains(&tool), Vec::<String>::new());
}

#[test]
fn a_program_that_still_reads_is_waited_for() {
    if !Path::new("/usr/sbin/apache2").exists() {
        return testkit::skip::skipped("no apache2");
    }
    let tool = Tool::new();
    // What cat writes to its output stands in the folder's logs/stdout.
    let server = APACHE.replace("logs/access*", "logs/stdout");
    let report = run(&tool, &server, &[("pipe", PIPE, "ending = \"graceful-stop\"")]);
    counts(&report, "pipe").whole();
    assert_eq!(remains(&tool), Vec::<String>::new());
}

#[test]
fn nginx_keeps_or_loses_what_waits_in_its_buffer() {
    if !Path::new("/usr/sbin/nginx").exists() {
        return testkit::skip::skipped("no nginx");
    }
    let tool = Tool::new();
    let server = "kind = \"nginx\"\n[access_log]\nfile = \"logs/access.log\"\n";
    let buffered = "access_log logs/access.log combined buffer=64k";
    let report = run(
        &tool,
        server,
        &[
            ("stop", buffered, "ending = \"stop\""),
            ("quit", buffered, "ending = \"graceful-stop\""),
            ("reload", buffered, "ending = \"graceful\""),
            ("kill", buffered, "ending = \"kill\""),
            ("plain", "", "ending = \"kill\""),
        ],
    );
    ["stop", "quit", "reload"].iter().for_each(|name| counts(&report, name).whole());
    counts(&report, "plain").whole_but_for_the_last();
    // The buffer holds more than there is.
    let killed = counts(&report, "kill");
    assert_eq!((killed.number("lines"), killed.number("lost_least")), (0, killed.number("answers")), "{}", killed.0);
    assert_eq!(remains(&tool), Vec::<String>::new());
}

/// A variant's own server may be one whose log is not counted: it ends in its own way.
#[test]
fn a_command_beside_it_ends_as_its_own_stop_says() {
    if !Path::new("/usr/sbin/nginx").exists() {
        return testkit::skip::skipped("no nginx");
    }
    let tool = Tool::new();
    let told = tool.path("told");
    let stop = format!("echo asked >> {}; kill $(cat ${{folder}}/pid)", told.display());
    let server = "echo $$ > ${folder}/pid; exec python3 -m http.server --bind ${address} ${port}";
    let plan = format!(
        "blocks = 2\naa = false\n[server]\nkind = \"nginx\"\n[access_log]\nfile = \"logs/access.log\"\n[service.own]\nkind = \"command\"\n\
         command = [\"sh\", \"-c\", \"{server}\"]\nstop = [\"sh\", \"-c\", \"{stop}\"]\n\
         [variant.nginx]\n[variant.own]\nserver = \"own\"\n{LOAD}"
    );
    let ran = tool.run(&["run", &tool.plan(&plan), "--seed", "1", "--json"]);
    let report: Value =
        serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {}{}", ran.out, ran.err));
    counts(&report, "nginx").whole();
    let own = report["cells"].as_array().unwrap().iter().find(|cell| cell["name"] == "own").unwrap();
    assert_eq!((&own["trials_used"], &own["logged"]), (&2.into(), &Value::Null), "{own:#}");
    // In each trial, and in a rehearsal beside.
    let asked = std::fs::read_to_string(&told).unwrap().lines().count();
    assert!(asked >= 2, "{asked}");
    assert_eq!(remains(&tool), Vec::<String>::new());
}

#[track_caller]
fn check_refused(tool: &Tool, text: &str, expected: &str) {
    let ran: Finished = tool.run(&["run", &tool.plan(text), "--dry-run"]);
    assert_eq!((ran.code, ran.err.lines().count()), (2, 1), "{ran:?}");
    assert!(ran.err.contains(expected), "{}", ran.err);
}

#[test]
fn what_cannot_be_counted_or_ended_so_is_said() {
    let tool = Tool::new();
    let load = "[load.a]\npath = \"/\"\nconnections = 1\nrequests = 1\n";
    let of = |server: &str, rest: &str| format!("[server]\nkind = \"{server}\"\n{rest}\n{load}");
    let log = "[access_log]\nfile = \"logs/access.log\"";
    check_refused(&tool, &of("nginx", log), "plan.toml:4: access_log.file: lines are told apart by what was asked for");
    check_refused(&tool, &of("embedded", log), "access_log.file: logs are counted of an Apache or nginx");
    // What a variant's own server is asked for counts as well.
    let own =
        format!("{log}\n[service.own]\nkind = \"nginx\"\nready = \"/up\"\n[variant.a]\nserver = \"own\"\n[variant.b]");
    let own = of("nginx", &own).replace("path = \"/\"", "path = \"/up\"");
    check_refused(
        &tool,
        &own,
        "plan.toml:4: access_log.file: lines are told apart by what was asked for, and `/up` is",
    );
    check_refused(
        &tool,
        &of("nginx", &log.replace("logs/", "../")),
        "access_log.file: give a file in the server's own",
    );
    check_refused(&tool, &of("nginx", "ending = \"restart\""), "server.ending: this server can be ended by `stop`");
    check_refused(&tool, &of("nginx", "ending_after = \"1s\""), "server.ending_after: needs `ending`");
    let stopped = "ending = \"stop\"\nending_after = \"1s\"";
    check_refused(&tool, &of("nginx", stopped), "server.ending_after: only after `graceful` and `restart`");
    let in_place = "in_place = true\nending = \"stop\"";
    check_refused(&tool, &of("nginx", in_place), "server.ending: a server that is not started for the run");
    check_refused(&tool, &of("nginx", "ending = \"explode\""), "server.ending: ");
    if !Path::new("/usr/sbin/nginx").exists() {
        return testkit::skip::skipped("no nginx");
    }
    let other = of("nginx", &format!("{log}\nformat = \"%!\"")).replace("\"/\"", "\"/?a\"");
    check_refused(&tool, &other, "plan.toml:5: access_log.format: ");
}
