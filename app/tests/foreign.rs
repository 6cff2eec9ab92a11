//! Somebody else uses the server while it is measured: the report says so with numbers, and is silent when nobody does.

mod tool;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use testkit::own::Own;
use tool::scene::Scene;
use tool::{Finished, Tool, apache_with_fpm, is_root, open_plans, remains};

/// How the report begins to say so.
const SAID: &str = "Somebody else used the server in ";

/// Asks for the page again and again on a kept connection, and on a new one when that ends, until `leave` is set.
fn visit(port: &dyn Fn() -> Option<u16>, leave: &AtomicBool) {
    while !leave.load(Ordering::Relaxed) {
        let stream = port().and_then(|port| TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok());
        let Some(mut stream) = stream else {
            // Not at full speed: the next server shall be started on this machine.
            thread::sleep(Duration::from_millis(1));
            continue;
        };
        stream.set_read_timeout(Some(Duration::from_secs(5))).expect("a time");
        let mut answer = [0; 4096];
        while !leave.load(Ordering::Relaxed)
            && stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").is_ok()
            && stream.read(&mut answer).is_ok_and(|read| read > 0)
        {}
    }
}

/// Asks a pool of PHP for a page again and again, as a web server would, until `leave` is set.
fn ask_pool(socket: &dyn Fn() -> Option<PathBuf>, script: &Path, leave: &AtomicBool) {
    let request = fastcgi_get(script);
    while !leave.load(Ordering::Relaxed) {
        let stream = socket().and_then(|socket| UnixStream::connect(socket).ok());
        let Some(mut stream) = stream else {
            thread::sleep(Duration::from_millis(1));
            continue;
        };
        stream.set_read_timeout(Some(Duration::from_secs(5))).expect("a time");
        if stream.write_all(&request).is_ok() {
            // It closes the connection after the answer.
            let _ = stream.read_to_end(&mut Vec::new());
        }
    }
}

/// A request by FastCGI: begin as a responder, parameters, an empty body.
fn fastcgi_get(script: &Path) -> Vec<u8> {
    let record = |kind: u8, content: &[u8]| {
        let [high, low] = u16::try_from(content.len()).expect("a short request").to_be_bytes();
        [&[1, kind, 0, 1, high, low, 0, 0], content].concat()
    };
    let pair = |name: &str, value: &str| {
        let length = |text: &str| (u32::try_from(text.len()).expect("short") | 1 << 31).to_be_bytes();
        [&length(name)[..], &length(value), name.as_bytes(), value.as_bytes()].concat()
    };
    let (begin, params, body) = (1, 4, 5);
    let named = [pair("SCRIPT_FILENAME", &script.to_string_lossy()), pair("REQUEST_METHOD", "GET")].concat();
    [record(begin, &[0, 1, 0, 0, 0, 0, 0, 0]), record(params, &named), record(params, &[]), record(body, &[])].concat()
}

/// Lets a run go to its end, with a visitor as soon as a line of its progress says `from`; the visitor leaves when told.
fn visited(mut child: Child, from: &str, visit: impl Fn(&AtomicBool) + Sync) -> Finished {
    let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines().map_while(Result::ok);
    let began = lines.any(|line| line.contains(from));
    assert!(began, "it never said `{from}`");
    let leave = AtomicBool::new(false);
    let said = thread::scope(|scope| {
        scope.spawn(|| visit(&leave));
        let said: Vec<String> = lines.collect();
        leave.store(true, Ordering::Relaxed);
        said
    });
    let output = child.wait_with_output().expect("it ends");
    let finished = Finished::of(&output);
    Finished { err: said.join("\n"), ..finished }
}

/// The sentences that say so.
fn doubts(report: &str) -> Vec<String> {
    let whole = report.split_whitespace().collect::<Vec<_>>().join(" ");
    whole.match_indices(SAID).map(|(at, _)| whole[at..].chars().take(200).collect()).collect()
}

/// What the one sentence says was served, of it the load's, and others'.
fn numbers(said: &[String], report: &str) -> [u64; 3] {
    assert_eq!(said.len(), 1, "{report}");
    assert!(said[0].starts_with(&format!("{SAID}1 of 2 trials: it served ")), "{said:?}");
    let numbers: Vec<u64> = said[0].split([' ', ',']).filter_map(|word| word.parse().ok()).collect();
    let [1, 2, served, ours, others, ..] = numbers[..] else { panic!("{said:?}") };
    [served, ours, others]
}

/// A server in place that counts its requests, used in the second of two windows.
fn check_one_window_of<O: Own + Sync>() {
    let Some(scene) = Scene::<O>::new() else { return };
    let plan = || {
        let plan = scene.plan("in_place = true", "[variant.as-is]");
        let text = fs::read_to_string(&plan).expect("a plan").replace("requests = 50", "duration = \"1s\"");
        fs::write(&plan, text).expect("a plan");
        plan
    };
    let quiet = scene.run(&plan());
    assert_eq!(quiet.code, 0, "{}{}", quiet.out, quiet.err);
    assert_eq!(doubts(&quiet.out), Vec::<String>::new(), "{}", quiet.out);
    let visitor = |leave: &AtomicBool| visit(&|| Some(scene.own.port()), leave);
    let loud = visited(scene.spawn(&plan()), "block 1", visitor);
    assert_eq!(loud.code, 0, "{}{}", loud.out, loud.err);
    let said = doubts(&loud.out);
    let [served, ours, others] = numbers(&said, &loud.out);
    assert!(others >= 10 && served > ours && served - ours >= others, "{said:?}");
    let japanese = scene.tool.run(&["report", "--lang", "ja"]).out;
    assert!(japanese.contains("ほかの利用者がサーバーを使っていました"), "{japanese}");
    scene.check_given_back();
}

#[test]
fn an_apache_that_somebody_else_uses_in_one_window() {
    check_one_window_of::<testkit::debian::Debian>();
}

#[test]
fn an_nginx_that_somebody_else_uses_in_one_window() {
    check_one_window_of::<testkit::nginx::Nginx>();
}

/// The web server's own count knows nothing of it.
#[test]
fn a_pool_of_php_that_somebody_else_uses_in_one_window() {
    if !is_root() {
        testkit::skip::not_here("needs root: workers change to their own account");
        return;
    }
    if apache_with_fpm().is_none() {
        return;
    }
    let tool = Tool::new();
    let page = open_plans(&tool).with_file_name("sites").join("php/page.php");
    let plan = tool.plan(&format!(
        "blocks = 2\naa = false\n[server]\nkind = \"apache\"\nmpm = \"event\"\ndocument_root = \"{}\"\nready = \"/page.php\"\n\
         php = \"fpm\"\n[server.fpm]\npm = \"static\"\nmax_children = 3\n[load.a]\npath = \"/page.php\"\nconnections = 2\n\
         duration = \"1s\"\n[cooldown]\nlimit = \"0s\"\n",
        page.parent().expect("a folder").display()
    ));
    let quiet = tool.run(&["run", &plan, "--plain"]);
    assert_eq!(quiet.code, 0, "{}{}", quiet.out, quiet.err);
    assert_eq!(doubts(&quiet.out), Vec::<String>::new(), "{}", quiet.out);
    let tmp = tool.tmp();
    let socket = || found(&tmp, "fpm.sock");
    let loud = visited(tool.spawn(&["run", &plan, "--plain"]), "block 1", |leave| ask_pool(&socket, &page, leave));
    assert_eq!(loud.code, 0, "{}{}", loud.out, loud.err);
    let [served, ours, others] = numbers(&doubts(&loud.out), &loud.out);
    assert!(others >= 10 && served - ours >= others, "{}", loud.out);
    assert_eq!(remains(&tool), Vec::<String>::new());
}

/// A file of that name in some folder below, while the folders come and go.
fn found(below: &Path, name: &str) -> Option<PathBuf> {
    fs::read_dir(below).ok()?.flatten().find_map(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => found(&entry.path(), name),
        _ => Some(entry.path()).filter(|_| entry.file_name() == *name),
    })
}

#[test]
fn a_server_that_does_not_count_is_watched_at_its_door() {
    let tool = Tool::new();
    let told = tool.path("port");
    // The server is given its folder's name through the shell, so that what it leaves behind is found by it.
    let script = format!(
        "echo ${{port}} >{}; exec {} serve --listen 127.0.0.1:${{port}}",
        told.display(),
        env!("CARGO_BIN_EXE_webdyno")
    );
    let plan = tool.plan(&format!(
        "blocks = 2\naa = false\n[server]\nkind = \"command\"\ncommand = ['sh', '-c', '{script}']\n[load.a]\npath = \"/cpu/1ms\"\n\
         connections = 2\nduration = \"4s\"\n[cooldown]\nlimit = \"0s\"\n",
    ));
    let quiet = tool.run(&["run", &plan, "--plain"]);
    assert_eq!(quiet.code, 0, "{}{}", quiet.out, quiet.err);
    assert_eq!(doubts(&quiet.out), Vec::<String>::new(), "{}", quiet.out);
    let port = || fs::read_to_string(&told).ok()?.trim().parse().ok();
    let loud = visited(tool.spawn(&["run", &plan, "--plain"]), "run ", |leave| visit(&port, leave));
    assert_eq!(loud.code, 0, "{}{}", loud.out, loud.err);
    let said = doubts(&loud.out);
    assert!(said.len() == 1 && said[0].contains("beside webdyno's 2 connections, others had "), "{}", loud.out);
    assert_eq!(remains(&tool), Vec::<String>::new());
}
