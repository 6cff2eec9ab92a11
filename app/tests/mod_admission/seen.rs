//! What people and programs see of a running server: its status in each format, mod_status, the access log, `webdyno admission`.

use crate::control::Control;
use crate::server::{Gate, Mpm, Pending, Php, Server, Told, module_file, wait};
use crate::tool::Tool;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

const ONE: &str = "AdmissionGroup one limit=1 queue=2 timeout=60s\nAdmissionUse one\nExtendedStatus On\n";

/// One is in the page, one waits.
fn busy(server: &Server) -> (Gate, Vec<Pending>) {
    let gate = server.gate("g");
    let held = server.send("/page.probe?gate=g");
    server.wait_started(1);
    let waits = server.send("/page.probe?id=waits");
    server.wait_number("one", "/waiting", 1);
    (gate, vec![held, waits])
}

/// A page that had to wait can say so: it has the variables before it runs. One that had not has none.
#[test]
fn a_page_knows_that_it_waited() {
    let told = "<!--#echo var=\"ADMISSION_GROUP\" --> <!--#echo var=\"ADMISSION_RESULT\" -->";
    let text = "AdmissionGroup one limit=1 queue=2 timeout=60s key=server handler=any\nAdmissionUse one\n\
                Header set X-Admission \"%{ADMISSION_RESULT}e\" env=ADMISSION_RESULT\n";
    for mpm in [Mpm::Prefork, Mpm::Worker] {
        let files = [("www/told.shtml", told)];
        let Some(server) = Server::told(&Told { mpm, php: Php::None, text, files: &files }) else { return };
        let gate = server.gate("g");
        let held = server.send("/page.probe?gate=g");
        server.wait_started(1);
        let waits = server.send("/told.shtml");
        server.wait_number("one", "/waiting", 1);
        gate.open();
        let waited = waits.answer();
        assert_eq!((waited.body.trim(), waited.header("X-Admission")), ("one queued", Some("queued")), "{mpm:?}");
        assert_eq!(held.answer().status, 200);
        server.wait_idle();
        let at_once = server.get("/told.shtml");
        assert_eq!((at_once.body.trim(), at_once.header("X-Admission")), ("(none) (none)", None), "{mpm:?}");
    }
}

#[test]
fn pages_show_who_holds_and_who_waits() {
    for mpm in [Mpm::Prefork, Mpm::Event] {
        let Some(server) = Server::start(mpm, ONE) else { return };
        let (gate, pending) = busy(&server);
        let page = server.get("/admission-status");
        assert!(page.header("Content-Type").is_some_and(|kind| kind.starts_with("text/html")), "{page:?}");
        assert!(
            page.body.contains("<h1>Admission for 127.0.0.1</h1>") && page.body.contains("/www/page.probe"),
            "{}",
            page.body
        );
        assert_eq!(server.get("/admission-status?refresh=2").header("Refresh"), Some("2"));
        let text = server.get("/admission-status?prometheus").body;
        let sample = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
        for (name, value) in [("admission_held{", "1"), ("admission_waiting{", "1"), ("admission_limit{", "1")] {
            let found =
                text.lines().find(|line| line.starts_with(name) && line.contains("\"one\"")).unwrap_or_default();
            assert!(found.ends_with(&format!(" {value}")), "{name}: {found}: {text}");
        }
        assert!(!sample("# TYPE admission_held gauge").is_empty(), "{text}");
        assert_eq!(server.client().request("POST", "/admission-status", "x").expect("an answer").status, 405);
        assert!(server.get("/server-status").body.contains("<h2>Admission</h2>"));
        let short = server.get("/server-status?auto").body;
        assert!(
            short.lines().any(|line| line.to_lowercase().starts_with("admission") && line.contains("one")),
            "{short}"
        );
        // What the controller writes is the same for who may read the folder.
        wait("it is written", || {
            let text = std::fs::read_to_string(server.path("run/admission/status.json")).unwrap_or_default();
            let status: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
            let group = &status["groups"][0];
            (&group["held"], &group["waiting"]) == (&1.into(), &1.into())
        });
        gate.open();
        assert!(pending.into_iter().all(|one| one.answer().status == 200));
        wait("both are logged", || server.access().iter().filter(|line| line.contains("page.probe")).count() == 2);
        let log = server.access();
        assert!(
            log.iter().any(|line| line.ends_with("one admit")) && log.iter().any(|line| line.ends_with("one queued")),
            "{log:?}"
        );
        assert!(log.iter().any(|line| line.ends_with("/server-status - -")), "{log:?}");
    }
}

/// `webdyno admission` on a real server: what it is told, the server does.
#[test]
fn the_command_tells_and_sets() {
    let Some(control) = Control::new() else { return };
    let Some(server) = control.server(Mpm::Event, ONE) else { return };
    let tool = Tool::new();
    let file = server.path("run/admission/status.json").display().to_string();
    wait("it is written", || server.controller().is_some());
    let (gate, pending) = busy(&server);
    wait("it is written", || {
        let said = tool.run(&["admission", "status", "--file", &file, "--json"]);
        let status: serde_json::Value = serde_json::from_str(&said.out).unwrap_or_default();
        said.code == 0 && status.to_string().contains("\"waiting\":1")
    });
    let said = tool.run(&["admission", "status", "--file", &file, "--entries"]);
    assert!(said.code == 0 && said.out.contains("one") && said.out.contains("page.probe"), "{said:?}");
    let set = |words: &[&str]| tool.run(&[&["admission", "set", "one", "--file", &file], words].concat());
    let said = set(&["limit=2"]);
    assert!(said.code == 2 && said.err.contains("is not there yet"), "{said:?}");
    control.write("");
    let said = set(&["limit=2"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(server.number("one", "/limit"), 2);
    // Who waited was admitted by it.
    server.wait_number("one", "/waiting", 0);
    let said = set(&["limit=zero"]);
    assert_eq!((said.code, server.number("one", "/limit")), (2, 2), "{said:?}");
    let said = set(&["--reset"]);
    assert_eq!((said.code, server.number("one", "/limit")), (0, 1), "{said:?}");
    // A controller that begins anew goes on counting, and what it finds is not taken for an answer.
    for limit in 3..6 {
        server.graceful();
        let said = set(&[&format!("limit={limit}")]);
        assert_eq!((said.code, server.number("one", "/limit")), (0, limit), "{said:?}");
    }
    // What only the server can judge.
    let said = set(&["min=9", "max=8"]);
    assert_eq!((said.code, server.number("one", "/limit")), (2, 5), "{said:?}");
    assert_eq!(std::fs::read_to_string(control.path()).expect("our own file"), "one limit=5\n");
    gate.open();
    assert!(pending.into_iter().all(|one| one.answer().status == 200));
}

/// Rows of a server that works: `webdyno admission watch`, and behind those of `webdyno watch --tree`, which finds it by its first process.
#[test]
fn watching_shows_the_groups() {
    if module_file().is_none() {
        return;
    }
    // Such a name is one that instances of Debian's apache2 have.
    let run = tempfile::Builder::new().prefix("apache2-webdyno-test-").tempdir_in("/run").expect("a folder");
    std::fs::set_permissions(run.path(), std::fs::Permissions::from_mode(0o755)).expect("our own folder");
    let text = format!("{ONE}AdmissionRuntimeDir {}/admission\n", run.path().display());
    let Some(server) = Server::start(Mpm::Event, &text) else { return };
    let (gate, pending) = busy(&server);
    let file = run.path().join("admission/status.json");
    wait("it is written", || {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        let status: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        status["groups"][0]["waiting"] == 1
    });
    let tool = Tool::new();
    let said = tool.run(&["admission", "watch", "-n", "2", "--file", &file.display().to_string()]);
    let rows: Vec<Vec<&str>> = said.out.lines().map(|line| line.split_whitespace().collect()).collect();
    assert!(said.code == 0 && rows.len() == 3, "{said:?}");
    assert_eq!(rows[0][..7], ["time", "group", "mode", "limit", "held", "full", "waiting"], "{said:?}");
    for row in &rows[1..] {
        assert_eq!(row[1..7], ["one", "enforce", "1", "1", "1", "1"], "{said:?}");
    }
    let watched = |pid: i32| tool.run(&["watch", "--tree", &pid.to_string(), "1", "2"]);
    let said = watched(server.pid());
    assert!(said.code == 0 && said.out.contains("one 1/1 +1"), "{said:?}");
    // Another process of it is not the server.
    let said = watched(server.workers()[0]);
    assert!(said.code == 0 && !said.out.contains("one 1/1"), "{said:?}");
    gate.open();
    assert!(pending.into_iter().all(|one| one.answer().status == 200));
}

/// By the name of its program, as one writes it: in a PID namespace, where no other server has that name.
#[test]
fn a_server_that_is_watched_by_name_shows_its_groups() {
    let Some(module) = module_file() else { return };
    let run = tempfile::Builder::new().prefix("apache2-webdyno-test-").tempdir_in("/run").expect("a folder");
    std::fs::set_permissions(run.path(), std::fs::Permissions::from_mode(0o755)).expect("our own folder");
    let folder = run.path().display();
    // A network namespace has all ports.
    let text = format!(
        "ServerName test.invalid\nPidFile {folder}/pid\nErrorLog {folder}/error\nDefaultRuntimeDir {folder}\nListen 80\n\
         LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so\n\
         LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so\n\
         LoadModule admission_module {}\nUser www-data\nGroup www-data\n\
         AdmissionEngine on\nAdmissionRuntimeDir {folder}/admission\nAdmissionGroup one limit=4\nAdmissionUse one\n",
        module.display()
    );
    std::fs::write(run.path().join("conf"), text).expect("our own folder");
    let script = "/usr/sbin/apache2 -f $1/conf -k start || exit 99\n\
                  until grep -q '\"one\"' $1/admission/status.json; do sleep 0.05; done\n\
                  exec \"$2\" watch --tree apache 1 2";
    let tool = Tool::new();
    let mut command = std::process::Command::new("timeout");
    command.args([
        "--signal=KILL",
        "60",
        "unshare",
        "--pid",
        "--net",
        "--fork",
        "--mount-proc",
        "--kill-child",
        "sh",
        "-c",
        script,
        "sh",
    ]);
    command.arg(run.path()).arg(env!("CARGO_BIN_EXE_webdyno"));
    for (name, value) in tool.command(&[]).get_envs() {
        value.map(|value| command.env(name, value));
    }
    let said = command.output().expect("it runs");
    let shown = String::from_utf8_lossy(&said.stdout);
    let rows = shown.lines().filter(|row| row.ends_with("one 0/4")).count();
    assert!(said.status.success() && rows == 2, "{said:?}");
}

/// What a SetEnv says under the module's names, as a `.htaccess` may, is not what the log hears of a request in a group.
#[test]
fn nobody_else_says_what_became_of_a_request() {
    let text = "AdmissionGroup one limit=1\nAdmissionUse one\nSetEnv ADMISSION_RESULT forged\nSetEnv ADMISSION_GROUP another\n";
    for mpm in [Mpm::Prefork, Mpm::Event] {
        let Some(server) = Server::start(mpm, text) else { return };
        let gate = server.gate("g");
        let held = server.send("/page.cgi?gate=g");
        server.wait_number("one", "/held", 1);
        assert_eq!(server.get("/page.cgi").status, 503);
        gate.open();
        assert_eq!(held.answer().status, 200);
        let logged = |line: &str| server.access().iter().any(|one| one == line);
        wait("both are logged", || logged("503 /page.cgi one reject") && logged("200 /page.cgi?gate=g one admit"));
    }
}

/// A handler behind Action is part of the page it is for: one permit, whatever either is called, and though the program's own folder says
/// where it really is.
#[test]
fn an_action_is_one_page() {
    let rewritten = ("www/programs/.htaccess", "RewriteEngine on\nRewriteRule ^alias(.*)$ /page.cgi$1\n");
    let files = [("www/page.told", "x"), ("www/a page.told", "x"), rewritten];
    for (mpm, key, program) in [
        (Mpm::Prefork, "server", "/page.cgi"),
        (Mpm::Event, "file", "/page.cgi"),
        (Mpm::Worker, "file", "/programs/alias"),
        (Mpm::Prefork, "file", "/programs/alias"),
    ] {
        let text = format!(
            "LoadModule actions_module /usr/lib/apache2/modules/mod_actions.so\nAdmissionGroup one limit=1 key={key} queue=1 timeout=60s\n\
             AdmissionUse one\nLogFormat \"%U %{{ADMISSION_GROUP}}e %{{ADMISSION_RESULT}}e %{{ADMISSION_LIMIT}}e\" told\nCustomLog FOLDER/access.log told\n\
             Action told {program}\nAddHandler told .told\n"
        );
        let told = Told { mpm, php: Php::None, text: &text, files: &files };
        let Some(server) = Server::told(&told) else { return };
        for page in ["/page.told", "/page.told", "/a%20page.told"] {
            assert_eq!(server.get(&format!("{page}?id=acted")).body, "done acted\n", "{page} {}", server.log());
            server.wait_idle();
        }
        let counts = [server.number("one", "/counts/admitted"), server.number("one", "/counts/bypass")];
        assert_eq!(counts, [3, 3], "{key} {program}");
        // The log asks the program's request; what it hears is what became of the page.
        let gate = server.gate("g");
        let held = server.send("/page.told?gate=g");
        server.wait_number("one", "/held", 1);
        let queued = server.send("/page.told");
        server.wait_number("one", "/waiting", 1);
        gate.open();
        assert!([held, queued].into_iter().all(|one| one.answer().status == 200));
        let logged =
            |end: &str| server.access().iter().filter(|line| line.contains(".told ") && line.ends_with(end)).count();
        wait("they are logged", || [logged(" one admit 1"), logged(" one queued 1")] == [4, 1]);
    }
}

/// How long a request waited stands in the log, and 0 where it did not.
#[test]
fn a_wait_is_logged() {
    let text = "AdmissionGroup one limit=1 queue=1 timeout=60s\nAdmissionUse one\n\
                LogFormat \"%q %{ADMISSION_RESULT}e %{ADMISSION_WAIT_US}e\" waited\nCustomLog FOLDER/access.log waited\n";
    for mpm in [Mpm::Prefork, Mpm::Event] {
        let Some(server) = Server::start(mpm, text) else { return };
        let gate = server.gate("g");
        let held = server.send("/page.probe?gate=g");
        server.wait_number("one", "/held", 1);
        let queued = server.send("/page.probe");
        server.wait_number("one", "/waiting", 1);
        let began = Instant::now();
        wait("a while", || began.elapsed() >= Duration::from_millis(100));
        let least = began.elapsed().as_micros();
        gate.open();
        assert!([held, queued].into_iter().all(|one| one.answer().status == 200));
        let waits =
            |line: &String| line.strip_prefix("- queued ").or(line.strip_prefix(" queued "))?.parse::<u128>().ok();
        let at_once = |line: &String| line == "?gate=g admit 0";
        wait("both are logged", || {
            let lines = server.access();
            lines.iter().any(|line| waits(line).is_some()) && lines.iter().any(at_once)
        });
        let waited = server.access().iter().find_map(waits).unwrap_or_default();
        assert!(waited >= least, "{waited} {least}");
    }
}

/// A request that is simply admitted has its variables for whoever can ask for them when it is logged, and only for those.
#[test]
fn whoever_asks_is_told() {
    let host = "<VirtualHost *:PORT>\nDocumentRoot FOLDER/www\nLogFormat \"%U %{admission_result}e %{ADMISSION_LIMIT}e\" own\n\
                CustomLog FOLDER/access.log own\n</VirtualHost>\n";
    let condition = "LogFormat \"%U asked\" plain\nCustomLog FOLDER/access.log plain env=ADMISSION_WAIT_US\n";
    let expression = "CustomLog FOLDER/access.log \"%U asked\" \"expr=reqenv('ADMISSION_HELD') == '0'\"\n";
    let pipe = "CustomLog \"|$exec cat >>FOLDER/access.log\" \"%U %{ADMISSION_GROUP}e\"\n";
    let debug = "LoadModule log_debug_module /usr/lib/apache2/modules/mod_log_debug.so\nCustomLog /dev/null %U\nLogLevel log_debug:info\n\
                 LogMessage \"%{REQUEST_URI} %{reqenv:ADMISSION_GROUP}\"\n";
    let script = "LoadModule lua_module /usr/lib/apache2/modules/mod_lua.so\nCustomLog /dev/null %U\nLuaHookLog FOLDER/log.lua tell\n";
    let lua =
        "function tell(r) r:err(r.uri .. ' ' .. (r.subprocess_env['ADMISSION_RESULT'] or '-')) return apache2.OK end\n";
    for (text, expected) in [
        (host, "/page.probe admit 4"),
        (condition, "/page.probe asked"),
        (expression, "/page.probe asked"),
        (pipe, "/page.probe one"),
        (debug, "/page.probe one"),
        (script, "/page.probe admit"),
    ] {
        let text = format!("AdmissionGroup one limit=4\nAdmissionUse one\n{text}");
        let told = Told { mpm: Mpm::Event, php: Php::None, text: &text, files: &[("log.lua", lua)] };
        let Some(server) = Server::told(&told) else { return };
        assert_eq!(server.get("/page.probe").status, 200);
        wait(expected, || {
            let mut lines = server.access();
            lines.extend(server.log().lines().map(str::to_owned));
            lines.iter().any(|line| line.contains(expected))
        });
    }
}
