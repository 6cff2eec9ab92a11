//! Somebody else uses the server while it is measured: the report says so with numbers, and is silent when nobody does.

mod tool;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use tool::scene::Scene;
use tool::{Finished, Tool, remains};

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

/// Lets a run go to its end, with a visitor at `port` as soon as a line of its progress says `from`.
fn visited(mut child: Child, from: &str, port: impl Fn() -> Option<u16> + Sync) -> Finished {
    let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines().map_while(Result::ok);
    let began = lines.any(|line| line.contains(from));
    assert!(began, "it never said `{from}`");
    let leave = AtomicBool::new(false);
    let said = thread::scope(|scope| {
        scope.spawn(|| visit(&port, &leave));
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

#[test]
fn an_apache_that_somebody_else_uses_in_one_window() {
    let Some(scene) = Scene::<testkit::debian::Debian>::new() else { return };
    let plan = || {
        let plan = scene.plan("in_place = true", "[variant.as-is]");
        let text = fs::read_to_string(&plan).expect("a plan").replace("requests = 50", "duration = \"1s\"");
        fs::write(&plan, text).expect("a plan");
        plan
    };
    let quiet = scene.run(&plan());
    assert_eq!(quiet.code, 0, "{}{}", quiet.out, quiet.err);
    assert_eq!(doubts(&quiet.out), Vec::<String>::new(), "{}", quiet.out);
    let loud = visited(scene.spawn(&plan()), "block 1", || Some(scene.own.port));
    assert_eq!(loud.code, 0, "{}{}", loud.out, loud.err);
    let said = doubts(&loud.out);
    assert_eq!(said.len(), 1, "{}", loud.out);
    assert!(said[0].starts_with(&format!("{SAID}1 of 2 trials: it served ")), "{said:?}");
    let numbers: Vec<u64> = said[0].split([' ', ',']).filter_map(|word| word.parse().ok()).collect();
    let [1, 2, served, ours, others, ..] = numbers[..] else { panic!("{said:?}") };
    assert!(others >= 10 && served > ours && served - ours >= others, "{said:?}");
    let japanese = scene.tool.run(&["report", "--lang", "ja"]).out;
    assert!(japanese.contains("ほかの利用者がサーバーを使っていました"), "{japanese}");
    scene.check_given_back();
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
    let loud = visited(tool.spawn(&["run", &plan, "--plain"]), "run ", port);
    assert_eq!(loud.code, 0, "{}{}", loud.out, loud.err);
    let said = doubts(&loud.out);
    assert!(said.len() == 1 && said[0].contains("beside webdyno's 2 connections, others had "), "{}", loud.out);
    assert_eq!(remains(&tool), Vec::<String>::new());
}
