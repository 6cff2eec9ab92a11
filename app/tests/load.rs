//! `webdyno load`: what is typed is what a server gets, and mistakes are one line.
//!
//! What a load counts is tested where it is made; here a scripted server says what arrived.

mod tool;

use std::io::Write;
use testkit::scripted::{Scripted, Step, answer};
use tool::{Finished, Tool};

/// A server that answers every request alike.
fn friendly() -> Scripted {
    Scripted::always(vec![Step::Send(answer(200, "OK"))])
}

/// Loads that server with what was typed, one request after the other, without a preflight.
fn load(tool: &Tool, server: &Scripted, path: &str, typed: &[&str]) -> Finished {
    let url = format!("http://{}{path}", server.address());
    let mut args = vec!["load", "--plain", "--no-probe", "--preflight", "0", "-c", "1", "--seed", "5"];
    args.extend(typed);
    args.push(&url);
    tool.run(&args)
}

/// The first request that arrives: its head's first line, whether it has such fields, and its body.
#[track_caller]
fn check(path: &str, typed: &[&str], line: &str, fields: &[&str], body: &str) {
    let server = friendly();
    let finished = load(&Tool::new(), &server, path, &[&["-n", "1"], typed].concat());
    assert_eq!(finished.code, 0, "{finished:?}");
    let requests = server.all_requests();
    let (head, received) = requests.first().expect("a request arrived");
    assert_eq!((head.lines().next(), received.as_str()), (Some(line), body));
    for field in fields {
        let field = field.replace("SERVER", &server.address().to_string());
        assert!(head.contains(&format!("\r\n{field}\r\n")), "no `{field}` in {head}");
    }
}

/// What is typed makes no sense: one line that says all of that.
#[track_caller]
fn check_refused(tool: &Tool, typed: &[&str], says: &[&str]) {
    let finished = tool.run(&[&["load", "--plain"], typed].concat());
    assert_eq!((finished.code, finished.err.lines().count()), (2, 1), "{finished:?}");
    for expected in says {
        assert!(finished.err.contains(expected), "no `{expected}` in {finished:?}");
    }
}

#[test]
fn one_request_is_what_was_typed() {
    check("/a?b=c", &[], "GET /a?b=c HTTP/1.1", &["Host: SERVER"], "");
    check("/", &["-m", "DELETE"], "DELETE / HTTP/1.1", &[], "");
    check(
        "/",
        &["-b", "a=1", "-H", "Content-Type: t/x"],
        "POST / HTTP/1.1",
        &["Content-Type: t/x", "Content-Length: 3"],
        "a=1",
    );
    check("/", &["-m", "PUT", "-b", "-"], "PUT / HTTP/1.1", &["Content-Length: 1"], "-");
    check("/${counter}?${hex:4}", &[], "GET /1?679a HTTP/1.1", &[], "");
    check("/", &["-b", "n=${counter}"], "POST / HTTP/1.1", &["Content-Length: 3"], "n=1");
    check("/", &["--user", "me:pw"], "GET / HTTP/1.1", &["Authorization: Basic bWU6cHc="], "");
    check("/", &["--cookie", "a=1", "--cookie", "b=2"], "GET / HTTP/1.1", &["Cookie: a=1; b=2"], "");
    check("/", &["--cookies", "--cookie", "a=1"], "GET / HTTP/1.1", &["Cookie: a=1"], "");
}

#[test]
fn a_body_comes_from_a_file() {
    let tool = Tool::new();
    let file = tool.path("body");
    std::fs::write(&file, "x=${random:7-7}").expect("a file");
    check("/", &["--body-file", file.to_str().expect("UTF-8")], "POST / HTTP/1.1", &["Content-Length: 3"], "x=7");
    // What is no text is sent as it is.
    std::fs::write(&file, b"\xff${x}").expect("a file");
    check(
        "/",
        &["--body-file", file.to_str().expect("UTF-8")],
        "POST / HTTP/1.1",
        &["Content-Length: 5"],
        "\u{fffd}${x}",
    );
}

#[test]
fn a_user_in_the_url_is_one() {
    let server = friendly();
    let url = format!("http://me:p%77@{}/", server.address());
    let finished = Tool::new().run(&["load", "--plain", "-n", "1", "--preflight", "0", "-c", "1", &url]);
    assert_eq!(finished.code, 0, "{finished:?}");
    assert!(server.last_request().contains("\r\nAuthorization: Basic bWU6cHc=\r\n"), "{}", server.last_request());
}

#[test]
fn a_mix_comes_from_a_file() {
    let tool = Tool::new();
    let mix = tool.path("mix.toml");
    std::fs::write(tool.path("order"), "o=${counter}").expect("a file");
    let text = "[[request]]\npath = \"/a\"\n[[request]]\nmethod = \"POST\"\npath = \"/b\"\nbody_file = \"order\"\nheaders = { X-A = \"own\" }\n";
    std::fs::write(&mix, text).expect("a file");
    let server = friendly();
    let mix = mix.to_str().expect("UTF-8");
    let finished = load(&tool, &server, "", &["-n", "40", "--mix", mix, "-H", "X-A: common"]);
    assert_eq!(finished.code, 0, "{finished:?}");
    for (nth, (head, body)) in server.all_requests().iter().enumerate() {
        if head.starts_with("POST /b ") {
            assert!(head.contains("\r\nX-A: own\r\n") && *body == format!("o={}", nth + 1), "{head}{body}");
        } else {
            assert!(head.starts_with("GET /a ") && head.contains("\r\nX-A: common\r\n"), "{head}");
        }
    }
    let posts = server.all_requests().iter().filter(|(head, _)| head.starts_with("POST")).count();
    assert!((10..30).contains(&posts), "{posts}");
}

#[test]
fn a_mix_with_a_mistake_names_its_line() {
    let tool = Tool::new();
    let path = tool.path("mix.toml");
    let mix = path.to_str().expect("UTF-8");
    let check = |text: &str, says: &[&str]| {
        std::fs::write(&path, text).expect("a file");
        check_refused(&tool, &["--mix", mix, "localhost"], says);
    };
    check("[[request]]\npath = \"/\"\nwieght = 1\n", &["mix.toml:3: request.wieght", "did you mean `weight`?"]);
    check("[[request]]\nmethod = \"GET\"\n", &["mix.toml:1", "`path` is missing"]);
    check("", &["give at least one [[request]]"]);
    check("[[request]]\npath = \"/${x}\"\n", &["mix.toml:2: request.path", "`${x}` is not known", "${counter}"]);
    check(
        "[[request]]\npath = \"/\"\nbody_file = \"no\"\n",
        &["mix.toml:3: request.body_file", "there is no such file"],
    );
    check("[[request]]\npath = \"/\"\nweight = 0\n", &["mix.toml:1", "none would ever be sent"]);
    check_refused(&tool, &["--mix", mix, "localhost/x"], &["--mix takes the paths from its file", "`/x`"]);
    check_refused(&tool, &["--mix", "nowhere", "localhost"], &["nowhere: there is no such file; check its name"]);
}

#[test]
fn what_cannot_be_sent_is_refused() {
    let tool = Tool::new();
    let check = |typed: &[&str], says: &[&str]| check_refused(&tool, &[typed, &["localhost"]].concat(), says);
    check(&["--close", "--pipeline", "2"], &["--pipeline with --close", "leave one of them out"]);
    check(&["-m", "GE T"], &["\"GE T\"", "one word"]);
    check(&["-m", "CONNECT"], &["CONNECT opens a tunnel"]);
    check(&["--body-file", "nowhere"], &["--body-file nowhere: there is no such file; check its name and folder"]);
    check(&["--body-file", "/"], &["--body-file /: this is a folder"]);
    check(&["-b", "x", "--body-file", "y"], &["cannot be used with"]);
    check(&["-b", "${x}"], &["`${x}` is not known: there is ${counter}, ${random:1-1000} and ${hex:16}"]);
    check(&["-H", "Expect: 100-continue"], &["Expect", "with a body"]);
    check(&["-H", "X-A"], &["-H takes a header field"]);
    check(&["-H", "Content-Length: 3"], &["\"Content-Length\" cannot be set"]);
    check(&["--user", "me"], &["NAME:PASSWORD"]);
    check(&["--user", "a:b", "-H", "authorization: x"], &["-H Authorization says the same as --user"]);
    check(&["--cookie", "a"], &["--cookie takes NAME=VALUE"]);
    check(&["--check", "bdy = 1"], &["--check: `bdy = 1` is no check"]);
    check(&["--check", "body matches ("], &["`(` is not a regular expression"]);
    check(&["--replay", "nowhere"], &["there is no log nowhere"]);
    check(&["--speed", "2"], &["--replay"]);
    check_refused(&tool, &["http://${counter}/"], &["not in the host"]);
    check_refused(&tool, &["http://me:secret@local host/"], &["`http://***@local host/` is not a URL"]);
}

#[test]
fn secrets_are_sent_and_neither_stored_nor_shown() {
    let tool = Tool::new();
    let server = friendly();
    let mut typed = vec!["-n", "2", "--user", "me:s3cret-1", "--cookie", "k=s3cret-2"];
    let fields = [
        "Proxy-Authorization: s3cret-3",
        "X-Api-Key: s3cret-4",
        "X-Auth-Token:s3cret-5",
        "api_key: s3cret-6",
        "X-Client-Secret: s3cret-7",
        "X-Session: s3cret-8",
        "X-Credential: s3cret-9",
        "X-Password: s3cret-10",
    ];
    fields.iter().for_each(|field| typed.extend(["-H", field]));
    let finished = load(&tool, &server, "/", &typed);
    assert_eq!(finished.code, 0, "{finished:?}");
    assert!((2..=10).all(|n| server.last_request().contains(&format!("s3cret-{n}"))), "{}", server.last_request());
    // A name and a password in the URL, and in the proxy's.
    let host = server.address();
    let (url, proxy) =
        (format!("http://s3cret-11:s3cret-12@{host}/"), format!("--proxy=http://s3cret-13:s3cret-14@{host}"));
    let common = ["load", "--plain", "--preflight", "0", "-n", "1", "-c", "1", &url, "--json"];
    let through = tool.run(&[&common[..], &[&proxy]].concat());
    assert!(through.code == 0 && server.last_request().contains("Proxy-Authorization: Basic "), "{through:?}");
    let shown =
        [tool.run(&["runs"]), tool.run(&["runs", "--json"]), tool.run(&["report"]), tool.run(&["report", "--json"])];
    // Of basic authentication the encoded form is as good as the plain one.
    for secret in ["s3cret", "bWU6czNjcmV0LTE=", "czNjcmV0"] {
        assert!(!format!("{finished:?}{through:?}{shown:?}").contains(secret));
        for name in ["store.sqlite", "store.sqlite-wal"] {
            let bytes = std::fs::read(tool.path(name)).unwrap_or_default();
            assert!(!bytes.windows(secret.len()).any(|part| part == secret.as_bytes()), "{secret} in {name}");
        }
    }
    let stored = std::fs::read(tool.path("store.sqlite")).expect("a store");
    assert!(stored.windows(9).any(|part| part == b"--user **"), "the command line is there");
    let dry = tool.run(&["load", "--dry-run", "http://me:s3cret@localhost/"]);
    assert!(dry.code == 0 && !dry.out.contains("s3cret"), "{dry:?}");
}

#[test]
fn what_is_typed_need_not_be_text() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let (tool, server) = (Tool::new(), friendly());
    let url = format!("http://{}/", server.address());
    let typed = ["load", "--plain", "--no-probe", "--preflight", "0", "-n", "1", "-c", "1", &url];
    let run = |flag: &str, value: &OsStr| {
        Finished::of(&tool.command(&typed).arg(flag).arg(value).output().expect("webdyno runs"))
    };
    // A path may be anything.
    let body = tool.path("body").into_os_string();
    let body = [body.as_bytes(), b"\xff"].concat();
    std::fs::write(OsStr::from_bytes(&body), "b0dy").expect("a file");
    let finished = run("--body-file", OsStr::from_bytes(&body));
    assert_eq!((finished.code, server.all_requests()[0].1.as_str()), (0, "b0dy"), "{finished:?}");
    let again = tool.run(&["report"]);
    assert!(again.code == 0 && again.out.contains("POST /"), "{again:?}");
    // What has to be text is refused in one line.
    for (flag, value) in [("-H", &b"X-A: \xff"[..]), ("--proxy", b"\xff"), ("--lang", b"\xff"), ("--user", b"a:\xff")] {
        let finished = run(flag, OsStr::from_bytes(value));
        assert_eq!((finished.code, finished.err.lines().count()), (2, 1), "{finished:?}");
        assert!(finished.err.starts_with("webdyno: ") && !finished.err.contains("panicked"), "{finished:?}");
    }
    assert_eq!(server.requests(), 1);
}

#[test]
fn a_proxy_is_asked_for_whole_urls() {
    let proxy = friendly();
    let through = format!("http://me:pw@{}", proxy.address());
    let args = ["load", "--plain", "-n", "1", "--preflight", "0", "-c", "1", "--proxy", &through];
    let finished = Tool::new().run(&[&args[..], &["http://localhost:81/x?y"]].concat());
    assert_eq!(finished.code, 0, "{finished:?}");
    let head = proxy.last_request();
    assert!(head.starts_with("GET http://localhost:81/x?y HTTP/1.1\r\nHost: localhost:81\r\n"), "{head}");
    assert!(head.contains("\r\nProxy-Authorization: Basic bWU6cHc=\r\n"), "{head}");
    // A proxy on this machine reaches others.
    let finished = Tool::new().run(&[&args[..], &["http://example.test/"]].concat());
    assert_eq!(finished.code, 2, "{finished:?}");
    assert!(finished.err.contains("--i-operate example.test"), "{finished:?}");
}

#[test]
fn a_body_waits_for_the_server() {
    let interim = Step::Send(b"HTTP/1.1 100 Continue\r\n\r\n".to_vec());
    let server = Scripted::always(vec![interim, Step::ReadBody, Step::Send(answer(200, "OK"))]);
    let finished = load(&Tool::new(), &server, "/", &["-n", "2", "-b", "later", "-H", "Expect: 100-continue"]);
    assert_eq!((finished.code, server.accepted()), (0, 1), "{finished:?}");
    assert!(server.all_requests().iter().all(|(_, body)| body == "later"));
}

const LOG: &str = r#"10.0.0.1 - - [21/Nov/2026:03:20:40 +0000] "GET /a?b HTTP/1.1" 200 6 "-" "x"
10.0.0.1 - - [21/Nov/2026:03:20:40 +0000] "POST /form HTTP/1.1" 200 6 "-" "x"

10.0.0.1 - - [21/Nov/2026:03:20:41 +0000] "HEAD /c HTTP/1.1" 200 - "-" "x"
10.0.0.1 - - [21/Nov/2026:03:20:41 +0000] "-" 408 - "-" "-"
10.0.0.1 - - [21/Nov/2026:03:20:42 +0000] "GET /d HTTP/1.0" 200 6 "-" "x"
"#;

/// A log is replayed, and what arrives and what is said of it are these.
#[track_caller]
fn check_replay(log: &[u8], typed: &[&str], arrives: &[&str], says: &str) {
    let tool = Tool::new();
    let file = tool.path("access.log");
    std::fs::write(&file, log).expect("a log");
    let server = Scripted::always(vec![Step::Send(answer(200, ""))]);
    let replay = ["--speed", "20", "--replay", file.to_str().expect("UTF-8")];
    let finished = load(&tool, &server, "", &[&replay, typed].concat());
    assert_eq!(finished.code, 0, "{finished:?}");
    let lines: Vec<_> = server
        .all_requests()
        .iter()
        .map(|(head, _)| head.split(" HTTP/").next().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(lines, arrives);
    let said = finished.err.lines().next().unwrap_or_default().replace(file.to_str().expect("UTF-8"), "LOG");
    assert!(said.starts_with(says), "{said}");
}

#[test]
fn a_log_is_replayed() {
    let used = "replaying LOG (combined): 3 of 6 lines, over ";
    check_replay(LOG.as_bytes(), &[], &["GET /a?b", "HEAD /c", "GET /d"], used);
    check_replay(LOG.as_bytes(), &["-n", "2"], &["GET /a?b", "HEAD /c"], used);
    let all = ["GET /a?b", "POST /form", "HEAD /c", "GET /d"];
    check_replay(LOG.as_bytes(), &["--unsafe-methods"], &all, "replaying LOG (combined): 4 of 6 lines, over ");
    let own = "1795231240.500 GET /x\n1795231240.250 GET /y\n";
    check_replay(
        own.as_bytes(),
        &["--log-format", "$msec $request_method $request_uri"],
        &["GET /y", "GET /x"],
        "replaying LOG (the format given): 2 of 2 lines, over 12.5 ms",
    );
}

#[test]
fn a_replay_says_what_it_leaves_out() {
    let tool = Tool::new();
    let server = friendly();
    let file = tool.path("access.log");
    std::fs::write(&file, LOG).expect("a log");
    let file = file.to_str().expect("UTF-8");
    let finished = load(&tool, &server, "", &["--replay", file, "--speed", "20"]);
    let said = finished.err.lines().next().unwrap_or_default();
    for expected in [
        "1 with POST (first in line 2)",
        "1 with nothing in them (first in line 3)",
        "1 without a request (first in line 5)",
        "--unsafe-methods sends those",
    ] {
        assert!(said.contains(expected), "no `{expected}` in {said}");
    }
}

#[test]
fn a_packed_log_is_a_log() {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packer.write_all(LOG.as_bytes()).expect("memory");
    let packed = packer.finish().expect("memory");
    check_replay(&packed, &[], &["GET /a?b", "HEAD /c", "GET /d"], "replaying LOG (combined): 3 of 6 lines");
}

#[test]
fn a_log_that_is_none() {
    let tool = Tool::new();
    let path = tool.path("log");
    let log = path.to_str().expect("UTF-8");
    let check = |text: &str, typed: &[&str], says: &[&str]| {
        std::fs::write(&path, text).expect("a file");
        check_refused(&tool, &[&["--replay", log], typed].concat(), says);
    };
    check("", &["localhost"], &["is empty"]);
    check("hello\nyou\n", &["localhost"], &["not one that can be guessed; give --log-format"]);
    check(LOG, &["--log-format", "%{parsec}T", "localhost"], &["--log-format", "no such unit"]);
    check(LOG, &["--log-format", "%h", "localhost"], &["nothing in the log", "of another format (first in line 1)"]);
    check(LOG, &["--speed", "0", "localhost"], &["--speed", "above 0"]);
    check(LOG, &["localhost/x"], &["--replay takes the paths from its file"]);
    check(LOG, &["-r", "5/s", "localhost"], &["cannot be used with"]);
    check_refused(&tool, &["--replay", "/", "localhost"], &["/ is a folder"]);
}
