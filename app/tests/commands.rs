//! Servers that a command of the plan's starts and that end in a way of their own: gunicorn, node and Tomcat measured, and what becomes of
//! one whatever ends webdyno.

mod tool;

use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};
use tool::{Finished, PATIENCE, PROMISE, Tool, nothing_remains, remains};

/// Two short windows of each variant, of which nothing is waited for.
const HEAD: &str = "blocks = 2\naa = false\n[cooldown]\nlimit = \"0s\"\n";
const LOAD: &str = "[load.pages]\npath = \"/\"\nconnections = 4\nrequests = 200\n";

/// Answers, and ends when it is asked to: once nobody is connected any more it says so in the file `ENDED`.
const NODE: &str = "\
const fs = require('fs'), server = require('http').createServer((request, answer) => {
    answer.end('hello\\n');
    if (request.method !== 'POST') return;
    server.close(() => fs.appendFileSync(process.env.ENDED, 'closed\\n'));
    server.closeIdleConnections();
});
server.listen(+process.env.PORT, process.env.ADDRESS);
";

/// Asks it to.
const NODE_STOP: &str = "\
require('http').request({host: process.env.ADDRESS, port: process.env.PORT, method: 'POST', agent: false}).end();
";

const GUNICORN: &str = "\
import os
def app(environ, start_response):
    start_response('200 OK', [('Content-Type', 'text/plain'), ('Content-Length', '6')])
    return [b'hello\\n']
";

/// gunicorn's settings: its master calls this at its end.
const GUNICORN_ENDS: &str = "\
import os
def on_exit(server):
    with open(os.environ['ENDED'], 'a') as file:
        file.write('closed\\n')
";

/// The port by which it is asked to end is of the same number, on another of loopback's addresses: nobody has to find a second one.
const TOMCAT: &str = r#"<Server address="127.0.0.2" port="${PORT}" shutdown="SHUTDOWN">
  <Service name="Catalina">
    <Connector address="${ADDRESS}" port="${PORT}" maxThreads="${MAX_THREADS}" />
    <Engine name="Catalina" defaultHost="localhost">
      <Host name="localhost" appBase="webapps" />
    </Engine>
  </Service>
</Server>
"#;

/// Of the package: what a web application is without words of its own.
const TOMCAT_WEB: &str = "/usr/share/tomcat10/skel/conf/web.xml";

/// Where a program is; says so where it is not.
fn program(paths: &[&'static str], package: &str) -> Option<&'static str> {
    let found = paths.iter().find(|path| Path::new(path).exists()).copied();
    if found.is_none() {
        testkit::skip::skipped(&format!("no {} (package {package})", paths[0]));
    }
    found
}

/// Measures a server of these keys, which has to end by itself after the rehearsal of each variant and after each trial.
#[track_caller]
fn measured(tool: &Tool, keys: &str, variants: &[&str]) {
    let tables: String = variants.iter().zip('a'..).map(|(lines, name)| format!("[variant.{name}]\n{lines}")).collect();
    let plan = format!("{HEAD}[server]\nkind = \"command\"\n{keys}{tables}{LOAD}");
    let ended = tool.run(&["run", &tool.plan(&plan), "--plain"]);
    assert!([0, 1, 3].contains(&ended.code), "{ended:?}");
    let id = tool.run_ids().pop().expect("a run");
    let told: serde_json::Value = serde_json::from_str(&tool.run(&["report", &id, "--json"]).out).expect("JSON");
    let trials = told["trials"].as_array().expect("trials");
    assert_eq!(trials.len(), 2 * variants.len(), "{ended:?}");
    for trial in trials {
        assert!(!trial["notes"].to_string().contains("by force"), "{trial}");
    }
    assert_eq!(remains(tool), Vec::<String>::new());
}

/// How often a server said that it had ended.
fn closed(tool: &Tool) -> usize {
    fs::read_to_string(tool.path("ended")).unwrap_or_default().matches("closed\n").count()
}

#[test]
fn node_ends_when_its_own_program_asks_it() {
    let Some(node) = program(&["/usr/bin/node", "/usr/bin/nodejs"], "nodejs") else { return };
    let tool = Tool::new();
    let [server, stop, ended] = ["server.js", "stop.js", "ended"].map(|name| tool.path(name));
    fs::write(&server, NODE).expect("our own folder");
    fs::write(&stop, NODE_STOP).expect("our own folder");
    let keys = format!(
        "command = [\"{node}\", \"{}\"]\nstop = [\"{node}\", \"{}\"]\nstop_within = \"60s\"\n\
         directives = \"ENDED={}\"\n",
        server.display(),
        stop.display(),
        ended.display()
    );
    measured(&tool, &keys, &["", "directives = \"NODE_OPTIONS=--max-http-header-size=8192\"\n"]);
    assert_eq!(closed(&tool), 2 + 4);
}

#[test]
fn gunicorn_ends_by_its_signal() {
    let Some(gunicorn) = program(&["/usr/bin/gunicorn", "/usr/local/bin/gunicorn"], "gunicorn") else { return };
    let tool = Tool::new();
    fs::write(tool.path("app.py"), GUNICORN).expect("our own folder");
    fs::write(tool.path("ends.py"), GUNICORN_ENDS).expect("our own folder");
    let keys = format!(
        "command = [\"{gunicorn}\", \"--config\", \"ends.py\", \"--workers\", \"${{WORKERS}}\", \"--bind\", \
         \"${{address}}:${{port}}\", \"app:app\"]\nstop = \"TERM\"\nstop_within = \"60s\"\n\
         directives = \"\"\"\nENDED={}\nPYTHONDONTWRITEBYTECODE=1\n\"\"\"\n",
        tool.path("ended").display()
    );
    measured(&tool, &keys, &["directives = \"WORKERS=1\"\n", "directives = \"WORKERS=2\"\n"]);
    assert_eq!(closed(&tool), 2 + 4);
}

#[test]
fn tomcat_ends_by_catalina_stop() {
    let script = ["/usr/share/tomcat10/bin/catalina.sh"];
    let (Some(catalina), Some(web)) = (program(&script, "tomcat10-user"), program(&[TOMCAT_WEB], "tomcat10-user"))
    else {
        return;
    };
    let tool = Tool::new();
    let base = tool.path("tomcat");
    for folder in ["conf", "logs", "temp", "webapps/ROOT"] {
        fs::create_dir_all(base.join(folder)).expect("our own folder");
    }
    fs::write(base.join("conf/server.xml"), TOMCAT).expect("our own folder");
    fs::copy(web, base.join("conf/web.xml")).expect("our own folder");
    fs::write(base.join("webapps/ROOT/index.html"), "hello\n").expect("our own folder");
    let keys = format!(
        "command = [\"{catalina}\", \"run\"]\nstop = [\"{catalina}\", \"stop\"]\nstop_within = \"60s\"\n\
         ready = \"/index.html\"\ndirectives = \"\"\"\nCATALINA_BASE={0}\nCATALINA_OUT={0}/logs/out\n\
         JAVA_OPTS=-Dorg.apache.tomcat.util.digester.PROPERTY_SOURCE=org.apache.tomcat.util.digester.EnvironmentPropertySource\n\"\"\"\n",
        base.display()
    );
    measured(&tool, &keys, &["directives = \"MAX_THREADS=5\"\n"]);
}

/// One that never ends by itself, that says in the file `asked` when it is told to, and that is up when it has said so in `up`.
fn deaf(tool: &Tool, keys: &str) -> String {
    let [asked, up] = ["asked", "up"].map(|name| tool.path(name).display().to_string());
    format!(
        "[server]\nkind = \"command\"\n\
         command = [\"sh\", \"-c\", \"trap 'echo QUIT >> {asked}; exit' QUIT; trap '' TERM; echo $$ > ${{folder}}/pid; \
         touch {up}; while :; do sleep 0.02; done\"]\nready = [\"test\", \"-e\", \"{up}\"]\n{keys}\
         [load.l]\npath = \"/\"\nconnections = 1\nrequests = 1\n"
    )
    .replace("ASKED", &asked)
}

/// Keeps a server of these keys until something ends webdyno.
fn started(tool: &Tool, keys: &str) -> Child {
    let mut child = tool.spawn(&["run", &tool.plan(&deaf(tool, keys)), "--start", "as-is"]);
    let out = BufReader::new(child.stdout.take().expect("piped"));
    assert!(out.lines().map_while(Result::ok).any(|line| line.starts_with("Ctrl-C")), "it is up");
    child
}

fn asked(tool: &Tool) -> String {
    fs::read_to_string(tool.path("asked")).unwrap_or_default()
}

#[test]
fn ctrl_c_ends_it_as_the_plan_says() {
    let check = |keys: &str, expected: &str, noted: &str| {
        let tool = Tool::new();
        let child = started(&tool, keys);
        kill_process(Pid::from_child(&child), Signal::INT).expect("it is ours");
        let ended = Finished::of(&child.wait_with_output().expect("it ends"));
        assert_eq!((ended.code, asked(&tool).as_str()), (0, expected), "{ended:?}");
        assert_eq!(ended.err.contains("was ended by force"), !noted.is_empty(), "{ended:?}");
        assert!(ended.err.contains(noted), "{ended:?}");
        nothing_remains(&tool, PATIENCE);
    };
    check("stop = \"QUIT\"\n", "QUIT\n", "");
    let stop = "echo $STOPS >> ASKED; kill -QUIT $(cat ${folder}/pid)";
    let keys = |stop: &str| format!("stop = [\"sh\", \"-c\", \"{stop}\"]\ndirectives = \"STOPS=now\"\n");
    check(&keys(stop), "now\nQUIT\n", "");
    let said = "the server had not ended 0.3 s after it was asked to by `";
    check(&format!("{}stop_within = \"300ms\"\n", keys("echo no luck; exit 3")), "", said);
}

/// Its command does not end, and the plan would wait for it: the guardian does not.
#[test]
fn after_a_kill_it_is_asked_and_gone_in_time() {
    let tool = Tool::new();
    let keys = "stop = [\"sh\", \"-c\", \"echo asked >> ASKED; sleep 1000\"]\nstop_within = \"10m\"\n";
    let mut child = started(&tool, keys);
    child.kill().expect("it is ours");
    child.wait().expect("it ends");
    nothing_remains(&tool, PROMISE);
    assert_eq!(asked(&tool), "asked\n");
}

/// One that does not become ready is asked to end, too: it may have begun what only that ends.
#[test]
fn one_that_is_not_ready_is_asked_to_end() {
    let tool = Tool::new();
    let plan = deaf(&tool, "stop = \"QUIT\"\n").replace("\"test\", \"-e\"", "\"sleep\", \"1000\"");
    let child = tool.spawn(&["run", &tool.plan(&plan), "--start", "as-is"]);
    let since = Instant::now();
    while !tool.path("up").exists() {
        assert!(since.elapsed() < PATIENCE, "it was not started");
        std::thread::sleep(Duration::from_millis(20));
    }
    kill_process(Pid::from_child(&child), Signal::INT).expect("it is ours");
    let ended = Finished::of(&child.wait_with_output().expect("it ends"));
    assert_eq!((ended.code, asked(&tool).as_str()), (130, "QUIT\n"), "{ended:?}");
    nothing_remains(&tool, PATIENCE);
}

/// One that has ended by itself may have left what only its command ends, as a container's client does: whether it was ready before or not.
/// Only one that found its port taken has left nothing, and its command could reach whoever has that.
#[test]
fn one_that_has_died_is_asked_by_its_command() {
    let check = |server: &str, ready: &str, code: i32, said: &str, expected: &str| {
        let tool = Tool::new();
        let [up, told] = ["up", "asked"].map(|name| tool.path(name).display().to_string());
        let plan = format!(
            "[server]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", \"{}\"]\nready = [{ready}]\n\
             stop = [\"sh\", \"-c\", \"echo asked >> {told}\"]\n\
             [load.l]\npath = \"/\"\nconnections = 1\nrequests = 1\n",
            server.replace("UP", &up)
        );
        let mut child = tool.spawn(&["run", &tool.plan(&plan), "--start", "as-is"]);
        let out = BufReader::new(child.stdout.take().expect("piped"));
        if out.lines().map_while(Result::ok).any(|line| line.starts_with("Ctrl-C")) {
            fs::write(&up, "").expect("our own folder");
        }
        let ended = Finished::of(&child.wait_with_output().expect("it ends"));
        assert_eq!((ended.code, asked(&tool).as_str()), (code, expected), "{ended:?}");
        assert!(ended.err.contains(said), "{ended:?}");
        nothing_remains(&tool, PATIENCE);
    };
    let until_told = "while ! [ -e UP ]; do sleep 0.02; done; exit 3";
    check(until_told, "\"true\"", 4, "the server died while it was kept", "asked\n");
    check("echo no luck; exit 3", "\"false\"", 4, "no luck", "asked\n");
    check("echo address already in use; exit 3", "\"false\"", 5, "is in use by another program", "");
}

#[test]
fn a_stop_that_ends_nothing_is_told_before_anything_is_measured() {
    let Some(python) = program(&["/usr/bin/python3"], "python3") else { return };
    let tool = Tool::new();
    let plan = |within: &str| {
        format!(
            "[server]\nkind = \"command\"\ncommand = [\"{python}\", \"-m\", \"http.server\", \"--bind\", \"${{address}}\", \"${{port}}\"]\n\
             stop = [\"sh\", \"-c\", \"echo no luck >&2; exit 3\"]\nstop_within = \"{within}\"\n\
             [load.l]\npath = \"/\"\nconnections = 1\nrequests = 10\n"
        )
    };
    // The command has ended when the time is over; on a busy machine it may take longer to.
    let is_told = ["0.2", "2.0", "20.0"].into_iter().any(|seconds| {
        let ended = tool.run(&["run", &tool.plan(&plan(&format!("{seconds}s"))), "--plain"]);
        let says = format!("plan.toml:4: server.stop: the server had not ended {seconds} s after it was asked to by `");
        assert!(ended.code == 4 && ended.err.contains(&says), "{ended:?}");
        let why = "`, which ended with exit code 3; correct it, or raise `stop_within`; its log ends with: ";
        [why, "no luck\n"].iter().all(|part| ended.err.contains(part))
    });
    assert!(is_told);
    let plan = plan("10s");
    let absent = plan.replace("\"sh\", ", "\"nosuch\", ");
    let ended = tool.run(&["run", &tool.plan(&absent), "--plain"]);
    assert!(ended.err.contains("plan.toml:4: server.stop: nosuch is no program in PATH; install it"), "{ended:?}");
    assert_eq!(remains(&tool), Vec::<String>::new());
}
