//! `webdyno load` in trouble, through the real binary: the exit code, one clear line, correct counts, and what was measured kept.

mod tool;

use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use testkit::scripted::{Refusing, Scripted, Step, answer};
use tool::{Finished, Tool};

/// Nobody could be loaded: no report, and one line that says all of that.
#[track_caller]
fn check_refused(finished: &Finished, code: i32, says: &[&str]) {
    assert_eq!((finished.code, finished.err.lines().count(), finished.out.as_str()), (code, 1, ""), "{finished:?}");
    assert!(finished.err.starts_with("webdyno: ") && !finished.err.contains("(os error"), "{finished:?}");
    for expected in says {
        assert!(finished.err.contains(expected), "no `{expected}` in {finished:?}");
    }
}

fn load(url: &str, typed: &[&str]) -> Finished {
    Tool::new().run(&[&["load", "--plain", "--no-probe", "-c", "1", url], typed].concat())
}

/// A load that went on in spite of trouble: its counts by name, which together are all that was asked for.
#[track_caller]
fn check_counts(address: SocketAddr, requests: u64, good: u64, failed: &[(&str, u64)]) {
    let (tool, n) = (Tool::new(), requests.to_string());
    let url = format!("http://{address}/");
    let finished =
        tool.run(&["load", "--plain", "--json", "--no-probe", "--preflight", "0", "-c", "1", "-n", &n, &url]);
    // Without a good answer it says too little.
    assert_eq!(finished.code, if good == 0 { 3 } else { 0 }, "{finished:?}");
    let found: Value = serde_json::from_str(&finished.out).expect("JSON");
    assert_eq!(found["counts"]["good"], good, "{}", finished.out);
    let told: Vec<(&str, u64)> = found["counts"]["failed"]
        .as_object()
        .expect("failures")
        .iter()
        .map(|(cause, n)| (cause.as_str(), n.as_u64().unwrap_or_default()))
        .collect();
    assert_eq!(told, failed);
    assert_eq!(tool.run(&["report", "--json"]).out, finished.out, "kept in the store");
}

/// A listener that hands every connection to this, one after the other.
fn listen(serve: impl Fn(TcpStream) + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || listener.incoming().flatten().for_each(serve));
    address
}

#[test]
fn nobody_is_there() {
    check_refused(&load("http://no-such-host.invalid/", &[]), 4, &["cannot find the host `no-such-host.invalid`"]);
    let refusing = Refusing::start();
    let told = ["no answer from 127.0.0.1:", "nobody listens there; start the server or correct the port"];
    check_refused(&load(&format!("http://{}/", refusing.address()), &["--preflight", "2"]), 4, &told);
}

#[test]
fn nobody_waits_ten_times_for_a_silent_server() {
    let silent = Scripted::always(vec![Step::Hang]);
    let finished = load(&format!("http://{}/", silent.address()), &["--timeout", "1s"]);
    check_refused(&finished, 4, &["no answer from 127.0.0.1:", " to 1 request: "]);
    assert_eq!(silent.accepted(), 1);
    // What was answered before is worth a load.
    let half = Scripted::start(|turn| match turn.total {
        2 => vec![Step::Hang],
        _ => vec![Step::Send(answer(200, "abc"))],
    });
    let finished = load(&format!("http://{}/", half.address()), &["--timeout", "1s", "-n", "4", "--no-store"]);
    assert_eq!((finished.code, half.requests()), (0, 3 + 4), "{finished:?}");
}

#[test]
fn tls_and_plain_do_not_understand_each_other() {
    // A plain server says so in plain words.
    let plain = listen(|mut stream| {
        let _ = stream.read(&mut [0; 512]);
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
    });
    check_refused(&load(&format!("https://{plain}/"), &["--insecure"]), 4, &["no answer", "TLS failed"]);
    // A TLS server answers with an alert.
    let alert = b"\x15\x03\x01\x00\x02\x02\x46".to_vec();
    let server = Scripted::always(vec![Step::Send(alert), Step::Close]);
    let told = ["what answers there does not speak HTTP/1; is it HTTPS"];
    check_refused(&load(&format!("http://{}/", server.address()), &[]), 4, &told);
}

#[test]
fn without_descriptors_it_is_one_line_with_the_number() {
    let tool = Tool::new();
    let webdyno = tool.command(&["load", "--plain", "-c", "500", "http://127.0.0.1:9/"]);
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 128 && exec \"$@\"", "sh"]).arg(webdyno.get_program()).args(webdyno.get_args());
    command.envs(webdyno.get_envs().filter_map(|(key, value)| Some((key, value?))));
    let finished = Finished::of(&command.output().expect("sh starts"));
    check_refused(&finished, 5, &["connections take", "may have 128", "ulimit -n "]);
}

#[test]
fn answers_cut_off_are_failures_and_the_others_count() {
    let partial = b"HTTP/1.1 200 X\r\nContent-Length: 9\r\n\r\nabc".to_vec();
    let server = Scripted::start(move |turn| match turn.total % 5 {
        3 => vec![Step::Send(partial.clone()), Step::Reset],
        _ => vec![Step::Send(answer(200, "abc"))],
    });
    check_counts(server.address(), 20, 16, &[("reset", 4)]);
}

/// A socket on a port that others may share, on which nobody listens yet.
fn bound(address: SocketAddr) -> TcpListener {
    // What is started must not have it too, or it would listen on.
    let flags = SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, None).expect("a socket");
    sockopt::set_socket_reuseport(&socket, true).expect("a port can be shared");
    rustix::net::bind(&socket, &address).expect("the port");
    TcpListener::from(socket)
}

#[test]
fn a_server_that_starts_again_is_loaded_on() {
    // The second one holds the port from the beginning, so that nobody else gets it in between.
    let first = bound(([127, 0, 0, 1], 0).into());
    let address = first.local_addr().expect("an address");
    let again = bound(address);
    rustix::net::listen(&first, 16).expect("a bound socket can listen");
    let serve = |stream: TcpStream, requests: usize| {
        let (mut reader, mut writer) = (BufReader::new(stream.try_clone().expect("a descriptor")), stream);
        for _ in 0..requests {
            let mut line = String::new();
            while reader.read_line(&mut line).is_ok_and(|n| n > 2) {
                line.clear();
            }
            // A client that has left is not waited for, there may be the next.
            if line.is_empty() || writer.write_all(&answer(200, "abc")).is_err() {
                return;
            }
        }
    };
    std::thread::spawn(move || {
        serve(first.accept().expect("a client").0, 10);
        drop(first);
        rustix::net::listen(&again, 16).expect("a bound socket can listen");
        again.incoming().flatten().for_each(|stream| serve(stream, usize::MAX));
    });
    let tool = Tool::new();
    let url = format!("http://{address}/");
    let typed =
        ["load", "--plain", "--json", "--no-probe", "--preflight", "0", "-c", "1", "-r", "50/s", "-n", "60", &url];
    let finished = tool.run(&typed);
    let found: Value = serde_json::from_str(&finished.out).expect("JSON");
    let number = |pointer: &str| found.pointer(pointer).and_then(Value::as_u64).unwrap_or_default();
    let failed: u64 = found["counts"]["failed"].as_object().expect("failures").values().filter_map(Value::as_u64).sum();
    assert!(finished.code == 0 && number("/counts/good") >= 40, "{finished:?}");
    assert_eq!(number("/counts/good") + failed + number("/in_flight") + number("/open/unsent"), 60, "{finished:?}");
    assert!(number("/counts/connects") >= 2);
}

/// Interrupts a load when the server has had so many requests and such a line was said; it ends with 130, and the store has the
/// run with so many trials.
#[track_caller]
fn check_interrupted(server: &Scripted, typed: &[&str], after: (&str, u64), trials: u64) {
    for signal in [Signal::INT, Signal::TERM] {
        let tool = Tool::new();
        let url = format!("http://{}/", server.address());
        let before = server.requests();
        let mut command = tool.command(&[&["load", "--plain", "-c", "2", &url], typed].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("webdyno starts");
        let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines().map_while(Result::ok);
        assert!(after.0.is_empty() || lines.any(|line| line.starts_with(after.0)), "no `{}`", after.0);
        let deadline = Instant::now() + Duration::from_secs(60);
        while server.requests() < before + after.1 {
            assert!(Instant::now() < deadline, "{} requests", server.requests() - before);
            std::thread::yield_now();
        }
        kill_process(Pid::from_child(&child), signal).expect("our own child");
        lines.for_each(drop);
        let ended = Finished::of(&child.wait_with_output().expect("webdyno ends"));
        assert_eq!(ended.code, 130, "{}", ended.out);
        let runs: Value = serde_json::from_str(&tool.run(&["runs", "--json"]).out).expect("JSON");
        assert_eq!((runs.as_array().map(Vec::len), &runs[0]["trials"]), (Some(1), &trials.into()), "{runs}");
    }
}

#[test]
fn ctrl_c_ends_every_phase_and_keeps_what_was_measured() {
    let friendly = Scripted::always(vec![Step::Send(answer(200, "abc"))]);
    let hanging = Scripted::always(vec![Step::Hang]);
    check_interrupted(&hanging, &["-d", "10min"], ("", 1), 1);
    check_interrupted(&friendly, &["-d", "10min", "--warmup", "10min"], ("run ", 20), 1);
    check_interrupted(&friendly, &["-d", "10min"], ("run ", 20), 1);
    // An answer that never comes is not waited for.
    check_interrupted(&hanging, &["-d", "10min", "--preflight", "0"], ("run ", 1), 1);
    check_interrupted(&friendly, &["-d", "10min", "-r", "50/s", "--find-rate", "max < 1min"], ("run ", 20), 1);
    // The preflight, the first step and a visitor are no more than 65 requests: the second step is under way.
    check_interrupted(&friendly, &["-d", "1s", "-r", "50/s", "--find-rate", "failed = 0"], ("step 1", 80), 2);
}

#[test]
fn a_measurement_that_was_interrupted_is_shown() {
    let (tool, server) = (Tool::new(), Scripted::always(vec![Step::Send(answer(200, "abc"))]));
    let url = format!("http://{}/", server.address());
    let child = tool.spawn(&["load", "--plain", "-c", "1", "-d", "10min", "--preflight", "0", &url]);
    while server.requests() < 50 {
        std::thread::yield_now();
    }
    kill_process(Pid::from_child(&child), Signal::INT).expect("our own child");
    let ended = Finished::of(&child.wait_with_output().expect("webdyno ends"));
    assert_eq!(ended.code, 130, "{ended:?}");
    assert!(ended.out.contains("interrupted; what was measured until then is shown"), "{}", ended.out);
    assert!(ended.out.contains("good answers"), "{}", ended.out);
}

#[test]
fn odd_first_answers_are_said_before_the_load() {
    let moved = b"HTTP/1.1 301 X\r\nLocation: https://h/new\r\nContent-Length: 0\r\n\r\n".to_vec();
    let server = Scripted::start(move |turn| match turn.total {
        1 => vec![Step::Send(answer(200, "longer"))],
        _ => vec![Step::Send(moved.clone())],
    });
    let finished = load(&format!("http://{}/", server.address()), &["-n", "3", "--preflight", "3"]);
    let says =
        "note: the answer has status 301, which counts as failed; it points to https://h/new, which is not followed";
    assert!(finished.err.lines().any(|line| line == says), "{finished:?}");
    assert!(finished.err.contains("note: answers differ in size: "), "{finished:?}");
    assert!(finished.out.contains("failed"), "the load goes on: {finished:?}");
}

#[test]
fn whom_one_operates_is_said_once() {
    let (tool, proxy) = (Tool::new(), Scripted::always(vec![Step::Send(answer(200, "abc"))]));
    // A proxy on this machine reaches others.
    let through = format!("http://{}", proxy.address());
    let check = |typed: &[&str], code: i32, says: &str| {
        let common = ["load", "--plain", "-n", "1", "-c", "1", "--proxy", &through, "http://example.test/"];
        let finished = tool.run(&[&common[..], typed].concat());
        assert!(finished.code == code && finished.err.contains(says), "{finished:?}");
    };
    check(&[], 2, "example.test is not this machine; if you operate it, say so once: --i-operate example.test");
    check(&["--i-operate", "other.test"], 2, "type --i-operate example.test,");
    check(&["--i-operate", "example.test", "--dry-run"], 0, "");
    check(&[], 2, "say so once");
    check(&["--i-operate", "example.test"], 0, "run ");
    check(&[], 0, "run ");
    assert_eq!(proxy.requests(), 4);
}

#[test]
fn a_proxy_elsewhere_and_what_is_behind_it_are_advised_together() {
    let check = |named: &str| {
        let typed = ["load", "--dry-run", "--proxy", "http://192.0.2.1:1", "--i-operate", named, "http://192.0.2.9/"];
        let finished = Tool::new().run(&typed);
        check_refused(&finished, 2, &["type --i-operate 192.0.2.1,192.0.2.9, if"]);
    };
    check("192.0.2.1");
    check("192.0.2.9");
    check("192.0.2.5");
}

#[test]
fn what_cannot_be_kept_is_shown_all_the_same() {
    let server = Scripted::always(vec![Step::Wait(Duration::from_millis(50)), Step::Send(answer(200, "abc"))]);
    let url = format!("http://{}/", server.address());
    let check = |typed: &[&str], code: i32, shown: &str| {
        let (tool, before) = (Tool::new(), server.requests());
        // A write that is refused shall be an error as on a full disk, and no signal.
        let program = tool.command(&[typed, &[&url]].concat());
        let mut command = Command::new("sh");
        command.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""]).arg(program.get_program()).args(program.get_args());
        command.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("webdyno starts");
        while server.requests() < before + 3 {
            std::thread::yield_now();
        }
        // The store is open by now. From here on no file of this process may grow.
        let nothing = Rlimit { current: Some(0), maximum: Some(0) };
        prlimit(Some(Pid::from_child(&child)), Resource::Fsize, nothing).expect("our own child");
        let finished = Finished::of(&child.wait_with_output().expect("webdyno ends"));
        assert_eq!(finished.code, code, "{finished:?}");
        assert!(finished.out.contains(shown) && finished.err.contains("store"), "{finished:?}");
    };
    let load = ["load", "--plain", "--no-probe", "--preflight", "0", "-c", "1", "-n", "20"];
    check(&load, 6, "good answers");
    check(&["ab", "-n", "20"], 0, "Complete requests:      20");
}

#[test]
fn a_page_is_no_template() {
    let page = r#"<img src="/a?x=${foo}"><img src="/b?${hex:65536}">"#;
    let server = Scripted::always(vec![Step::Send(answer(200, page))]);
    let url = format!("http://{}/", server.address());
    Tool::new().run(&["load", "--plain", "--no-probe", "--preflight", "0", "--page", "-n", "2", "-c", "6", &url]);
    let asked: Vec<String> = server.all_requests().into_iter().map(|(head, _)| head).collect();
    for target in ["GET /a?x=${foo} HTTP", "GET /b?${hex:65536} HTTP"] {
        assert!(asked.iter().any(|head| head.starts_with(target)), "{target} is not among {asked:?}");
    }
}

#[test]
fn a_page_that_does_not_come_is_the_servers_affair() {
    let page = |steps: Vec<Step>| {
        let server = Scripted::always(steps);
        Tool::new().run(&["load", "--plain", "--page", "-n", "2", &format!("http://{}/", server.address())])
    };
    check_refused(&page(vec![Step::Close]), 4, &["cannot fetch the page", "is the server there"]);
    check_refused(&page(vec![Step::Send(answer(404, ""))]), 4, &["was answered with status 404"]);
}

#[test]
fn a_load_without_a_good_answer_says_nothing() {
    let server = Scripted::always(vec![Step::Send(answer(500, "abc"))]);
    let url = format!("http://{}/", server.address());
    assert_eq!(load(&url, &["-n", "20"]).code, 3);
    // Unless that is what was expected.
    assert_eq!(load(&url, &["-n", "20", "--expect", "failed = 20"]).code, 0);
    assert_eq!(load(&url, &["-n", "20", "--expect", "failed = 0"]).code, 1);
}

#[test]
fn a_warm_up_that_was_interrupted_is_told() {
    let (tool, server) = (Tool::new(), Scripted::always(vec![Step::Send(answer(200, "abc"))]));
    let url = format!("http://{}/", server.address());
    let child = tool.spawn(&["load", "--json", "-c", "1", "-n", "9", "--warmup", "10min", "--preflight", "0", &url]);
    while server.requests() < 50 {
        std::thread::yield_now();
    }
    kill_process(Pid::from_child(&child), Signal::INT).expect("our own child");
    let ended = Finished::of(&child.wait_with_output().expect("webdyno ends"));
    let line = "The load ended before anything was measured.";
    assert!(ended.code == 130 && ended.out.is_empty() && ended.err.contains(line), "{ended:?}");
    let again = tool.run(&["report"]);
    assert!(again.code == 3 && again.err.contains(line), "{again:?}");
}
