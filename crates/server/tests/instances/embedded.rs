//! The embedded server as a process.

use crate::stage::{PATIENCE, Stage, ask, eventually, send};
use server::Running;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

pub(crate) const TESTS: &[testkit::suite::Test] = &[
    ("embedded_answers_every_path", embedded_answers_every_path),
    ("embedded_counts_what_it_served", embedded_counts_what_it_served),
    ("embedded_work_takes_what_it_says", embedded_work_takes_what_it_says),
    ("embedded_tells_what_is_in_force", embedded_tells_what_is_in_force),
    ("embedded_refuses_other_directives", embedded_refuses_other_directives),
    ("embedded_connections_wait_in_the_accept_queue", embedded_connections_wait_in_the_accept_queue),
    ("embedded_lets_idle_connections_go", embedded_lets_idle_connections_go),
    ("serve_explains_itself", serve_explains_itself),
    ("serve_ends_on_signals", serve_ends_on_signals),
];

fn start(stage: &Stage, directives: &str) -> Running {
    let plan = stage.plan("embedded", &format!("directives = \"\"\"\n{directives}\n\"\"\""), "");
    stage.start(&plan, &[]).unwrap()
}

fn embedded_answers_every_path() {
    let stage = Stage::new();
    let running = start(&stage, "Workers 2");
    let check = |request: &str, status: u16, body: &str| {
        let answer = ask(running.address, request);
        assert!(answer.starts_with(&format!("HTTP/1.0 {status} ")), "{request}: {answer}");
        let (head, got) = answer.split_once("\r\n\r\n").unwrap();
        assert_eq!(got, body, "{request}");
        if !request.starts_with("HEAD") {
            assert!(head.to_ascii_lowercase().contains(&format!("content-length: {}", body.len())), "{head}");
        }
    };
    check("GET /", 200, "<!doctype html>\n<title>webdyno</title>\n<p>A small page.\n");
    check("HEAD /", 200, "");
    check("GET /?a=b", 200, "<!doctype html>\n<title>webdyno</title>\n<p>A small page.\n");
    check("GET /static/0", 200, "");
    check("GET /static/10K", 200, &"x".repeat(10 << 10));
    check("GET /static/65537", 200, &"x".repeat(65537));
    check("GET /cpu/100us", 200, "OK\n");
    check("GET /sleep/1ms", 200, "OK\n");
    check("GET /memory/1M", 200, "OK\n");
    check("GET /nothing", 404, "no such path; see webdyno serve --help\n");
    check("GET /static/x", 400, "`x` is not a size: write a whole number and K, M or G\n");
    check("GET /sleep/5", 400, "`5` is not a duration: write a whole number and us, ms or s\n");
    check("POST /", 405, "only GET and HEAD\n");
    running.stop().unwrap();
}

fn embedded_counts_what_it_served() {
    let stage = Stage::new();
    let running = start(&stage, "Workers 2");
    let served = || running.status.look().web.unwrap().served().unwrap();
    let before = served();
    (0..5).for_each(|_| drop(ask(running.address, "GET /")));
    let mut one = TcpStream::connect(running.address).unwrap();
    let mut two = TcpStream::connect(running.address).unwrap();
    send(&mut one, "GET /sleep/30s", "close");
    send(&mut two, "GET /sleep/30s", "close");
    // Told although both workers are held.
    eventually("all are counted", || served() == before + 7);
    running.stop().unwrap();
}

fn embedded_work_takes_what_it_says() {
    let stage = Stage::new();
    let running = start(&stage, "Workers 2");
    let cpu = || -> u64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", running.pid.unwrap())).unwrap();
        let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    };
    let memory = |key: &str| -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", running.pid.unwrap())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    };
    // Ticks of 10 ms.
    let before = cpu();
    ask(running.address, "GET /cpu/300ms");
    let burnt = cpu() - before;
    assert!((28..45).contains(&burnt), "{burnt} ticks for 300 ms");
    let (before, began) = (cpu(), Instant::now());
    ask(running.address, "GET /sleep/300ms");
    assert!(began.elapsed() >= Duration::from_millis(300));
    assert!(cpu() - before <= 2, "sleeping costs nothing");
    assert!(memory("VmHWM:") < 20 << 10, "{} kB before", memory("VmHWM:"));
    // Of a size that an allocator likes to keep for the next time.
    for _ in 0..6 {
        ask(running.address, "GET /memory/20M");
        assert!(memory("VmRSS:") < 16 << 10, "{} kB are still there", memory("VmRSS:"));
    }
    assert!(memory("VmHWM:") > 20 << 10, "{} kB after", memory("VmHWM:"));
}

fn embedded_tells_what_is_in_force() {
    let stage = Stage::new();
    let running = start(&stage, "Workers 3\nKeepAlive On\n\nkeepalive off");
    let settings = &running.settings;
    assert!(settings.server.starts_with("webdyno/"), "{settings:?}");
    assert_eq!(settings.worker_limit, Some(3));
    let values: Vec<_> = settings.values.iter().map(|(name, value)| format!("{name} {value}")).collect();
    assert_eq!(values, ["KeepAlive Off", "KeepAliveTimeout 5", "Workers 3"]);
    assert_eq!(running.log_tail(), "");
    // It closes by itself, although it was asked to stay.
    let mut stream = TcpStream::connect(running.address).unwrap();
    send(&mut stream, "GET /static/2", "keep-alive");
    let mut answer = String::new();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with("\r\n\r\nxx"), "{answer}");
}

fn embedded_refuses_other_directives() {
    let stage = Stage::new();
    let check = |directives: &str, expected: &str| {
        let plan = stage.plan("embedded", &format!("directives = \"\"\"\nWorkers 2\n{directives}\n\"\"\""), "");
        let error = stage.start(&plan, &[]).unwrap_err();
        assert_eq!(stage.told(&error), expected);
        let error = stage.control(&plan).check(&stage.place(), &plan.variants[0]).unwrap_err();
        assert_eq!(stage.told(&error), expected);
    };
    check(
        "Timeout 3",
        "DIR/plan.toml:5: Timeout 3: no such directive; there is `Workers N` and `KeepAlive On|Off` (webdyno serve)",
    );
    check("Workers 0", "DIR/plan.toml:5: Workers 0: `0` is not a number from 1 to 1000 (webdyno serve)");
}

/// Connections the kernel has made and the server has not accepted.
fn queued(address: SocketAddr) -> u64 {
    let port = format!(":{:04X}", address.port());
    let table = fs::read_to_string("/proc/net/tcp").unwrap();
    let row = table.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
    let listening = row.into_iter().find(|f| f[1].ends_with(&port) && f[3] == "0A").unwrap();
    u64::from_str_radix(listening[4].split_once(':').unwrap().1, 16).unwrap()
}

fn embedded_connections_wait_in_the_accept_queue() {
    let stage = Stage::new();
    let running = start(&stage, "Workers 2");
    eventually("the requests for readiness are over", || queued(running.address) == 0);
    let answered = |stream: &mut TcpStream, patience: Duration| {
        stream.set_read_timeout(Some(patience)).unwrap();
        stream.read(&mut [0; 4096]).is_ok_and(|read| read > 0)
    };
    let mut streams: Vec<TcpStream> = (0..5).map(|_| TcpStream::connect(running.address).unwrap()).collect();
    for stream in &mut streams {
        send(stream, "GET /static/2", "keep-alive");
    }
    assert!(answered(&mut streams[0], PATIENCE) && answered(&mut streams[1], PATIENCE));
    // Both workers are idle now, and still theirs.
    assert_eq!(queued(running.address), 3);
    assert!(!answered(&mut streams[2], Duration::from_millis(200)));
    drop(streams.remove(0));
    assert!(answered(&mut streams[1], PATIENCE), "the third is next");
    assert_eq!(queued(running.address), 2);
    drop(streams.drain(..2));
    assert!(answered(&mut streams[0], PATIENCE) && answered(&mut streams[1], PATIENCE));
    assert_eq!(queued(running.address), 0);
}

fn embedded_lets_idle_connections_go() {
    let stage = Stage::new();
    let running = start(&stage, "Workers 1");
    let mut stream = TcpStream::connect(running.address).unwrap();
    send(&mut stream, "GET /static/2", "keep-alive");
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let (began, mut answer) = (Instant::now(), String::new());
    stream.read_to_string(&mut answer).unwrap();
    let held = began.elapsed();
    assert!((4500..8000).contains(&held.as_millis()), "{held:?}");
}

fn serve_explains_itself() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let check = |args: &[&str], code: i32, out: &str, err: &str| {
        let output = Command::new(std::env::current_exe().unwrap())
            .arg("serve")
            .args(args)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert_eq!(output.status.code(), Some(code), "{args:?}");
        assert!(text(&output.stdout).starts_with(out), "{args:?}: {}", text(&output.stdout));
        assert_eq!(text(&output.stderr), err, "{args:?}");
    };
    check(&["--help"], 0, "A small web server", "");
    check(&["--wrokers", "3"], 2, "", "webdyno serve: there is no `--wrokers`; see webdyno serve --help\n");
    check(
        &["--workers", "none"],
        2,
        "",
        "webdyno serve: --workers: `none` is not a number from 1 to 1000; see webdyno serve --help\n",
    );
    check(
        &["--listen", &address],
        5,
        "",
        &format!("webdyno serve: cannot listen on {address}: it is in use; choose another port, or 0 for a free one\n"),
    );
    check(
        &["--listen", "192.0.2.1:0"],
        4,
        "",
        "webdyno serve: cannot listen on 192.0.2.1:0: Cannot assign requested address (os error 99)\n",
    );
}

fn serve_ends_on_signals() {
    for signal in [rustix::process::Signal::TERM, rustix::process::Signal::INT] {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["serve", "--workers", "200"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let address: SocketAddr = line.trim().strip_prefix("listening on ").unwrap().parse().unwrap();
        let mut busy = TcpStream::connect(address).unwrap();
        send(&mut busy, "GET /sleep/60s", "close");
        rustix::process::kill_process(rustix::process::Pid::from_child(&child), signal).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
}
