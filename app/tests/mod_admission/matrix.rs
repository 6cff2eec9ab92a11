//! Each processing module with each way to run a program: never more at once than the limit, who finds no room is turned away at once and
//! kept, and all is given back.

use crate::client::Answer;
use crate::oracle::{Killed, most_at_once};
use crate::server::{Mpm, Php, Server, Told, answered, behind, wait};
use std::path::Path;
use std::process::{Command, Stdio};
use testkit::skip::skipped;

const GROUP: &str = "AdmissionGroup two limit=2\nAdmissionUse two\n";

#[track_caller]
fn check_turned_away(answer: &Answer) {
    assert_eq!(answer.status, 503, "{answer:?}");
    let retry: u64 = answer.header("Retry-After").and_then(|value| value.parse().ok()).expect("seconds");
    assert!((1..=120).contains(&retry), "{answer:?}");
    assert_eq!(answer.header("Cache-Control"), Some("no-store"));
}

/// HEAD holds a permit as long as its handler runs, too.
fn check_head(server: &Server, page: &str) {
    let gate = server.gate("head");
    let path = format!("{page}?gate=head&id=head");
    std::thread::scope(|scope| {
        let head = scope.spawn(|| server.client().request("HEAD", &path, "127.0.0.1"));
        server.wait_number("two", "/held", 1);
        gate.open();
        assert_eq!(head.join().expect("no panic").expect("an answer").status, 200);
    });
    server.wait_idle();
}

/// Five at a page for two: two are in it, three are turned away while these are, and then again.
fn check(mpm: Mpm, php: Php, text: &str, page: &str) {
    let Some(server) = Server::told(&Told { mpm, php, text, files: &[] }) else { return };
    for round in [0, 1] {
        let gate = server.gate(&format!("round{round}"));
        let ask = |n: usize| server.send(&format!("{page}?gate=round{round}&id={round}-{n}"));
        let pending: Vec<_> = (0..5).map(ask).collect();
        wait(&format!("two hold and three are answered: {}", server.status()), || {
            answered(&pending) == 3
                && server.number("two", "/held") == 2
                && server.started() == if round == 0 { 2 } else { 5 }
        });
        // With the permits taken, files are served, and HEAD is a request like others.
        assert_eq!(server.get("/index.html").body, "hello\n");
        let head = server.client().request("HEAD", page, "127.0.0.1").expect("an answer");
        check_turned_away(&head);
        gate.open();
        let answers: Vec<Answer> = pending.into_iter().map(|one| one.answer()).collect();
        assert_eq!(answers.iter().filter(|answer| answer.status == 200).count(), 2, "{answers:?}");
        answers.iter().filter(|answer| answer.status != 200).for_each(check_turned_away);
        server.wait_idle();
        assert_eq!(server.get(&format!("{page}?id={round}-after")).status, 200);
        server.wait_idle();
    }
    check_head(&server, page);
    let events = server.events();
    assert_eq!(most_at_once(&events, &Killed::new()), 2, "{events:?}");
    let count = |name: &str| server.number("two", &format!("/counts/{name}"));
    assert_eq!([count("admitted"), count("rejected"), count("open"), count("reaped")], [7, 8, 0, 0]);
}

#[test]
fn prefork_cgi() {
    check(Mpm::Prefork, Php::None, GROUP, "/page.cgi");
}

#[test]
fn prefork_php() {
    check(Mpm::Prefork, Php::Module, GROUP, "/page.php");
}

#[test]
fn prefork_in_process() {
    check(Mpm::Prefork, Php::None, GROUP, "/page.probe");
}

#[test]
fn worker_cgid() {
    check(Mpm::Worker, Php::None, GROUP, "/page.cgi");
}

#[test]
fn worker_in_process() {
    check(Mpm::Worker, Php::None, GROUP, "/page.probe");
}

#[test]
fn event_cgid() {
    check(Mpm::Event, Php::None, GROUP, "/page.cgi");
}

#[test]
fn event_in_process() {
    check(Mpm::Event, Php::None, GROUP, "/page.probe");
}

#[test]
fn prefork_php_fpm() {
    check(Mpm::Prefork, Php::Fpm, GROUP, "/page.php");
}

#[test]
fn worker_php_fpm() {
    check(Mpm::Worker, Php::Fpm, GROUP, "/page.php");
}

#[test]
fn event_php_fpm() {
    check(Mpm::Event, Php::Fpm, GROUP, "/page.php");
}

fn check_behind(mpm: Mpm) {
    let text = format!("AdmissionGroup two limit=2\n{}", behind("AdmissionUse two\n"));
    check(mpm, Php::None, &text, "/behind");
}

#[test]
fn prefork_proxy_http() {
    check_behind(Mpm::Prefork);
}

#[test]
fn worker_proxy_http() {
    check_behind(Mpm::Worker);
}

#[test]
fn event_proxy_http() {
    check_behind(Mpm::Event);
}

/// A certificate and its key; `None`, and the reason is said, where there is nothing to make or use one.
fn certificate() -> Option<String> {
    const MOD_SSL: &str = "/usr/lib/apache2/modules/mod_ssl.so";
    if !Path::new(MOD_SSL).exists() {
        skipped(&format!("there is no {MOD_SSL}"));
        return None;
    }
    let words =
        "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=localhost -keyout - -out -";
    match Command::new("openssl").args(words.split(' ')).output() {
        Ok(made) => {
            assert!(made.status.success(), "{made:?}");
            Some(String::from_utf8(made.stdout).expect("a text"))
        }
        Err(_) => {
            skipped("there is no openssl");
            None
        }
    }
}

/// A server that has TLS, too: on the same port of another address, since whoever chooses that port has both.
fn with_tls(mpm: Mpm, groups: &str, protocols: &str) -> Option<Server> {
    let certificate = certificate()?;
    let text = format!(
        "LoadModule ssl_module /usr/lib/apache2/modules/mod_ssl.so\nListen 127.0.0.2:PORT https\n{groups}\
         <VirtualHost 127.0.0.2:PORT>\nDocumentRoot FOLDER/www\nProtocols {protocols}\nSSLEngine on\n\
         SSLCertificateFile FOLDER/tls.pem\nSSLCertificateKeyFile FOLDER/tls.pem\n</VirtualHost>\n"
    );
    let files = [("tls.pem", certificate.as_str())];
    Server::told(&Told { mpm, php: Php::None, text: &text, files: &files })
}

/// A client by TLS, which says by which protocol and how it was answered.
fn curl(server: &Server, protocol: &str, path: &str) -> Command {
    let mut curl = Command::new("curl");
    curl.args(["-sk", protocol, "-o", "/dev/null", "-w", "%{http_version} %{http_code}"]);
    curl.arg(format!("https://127.0.0.2:{}/{path}", server.port));
    curl
}

/// Who comes by TLS and leaves while he waits is not let in.
#[test]
fn who_leaves_by_tls_is_not_admitted() {
    let groups = "AdmissionGroup one limit=1 queue=10 timeout=60s\nAdmissionUse one\n";
    for mpm in [Mpm::Prefork, Mpm::Worker, Mpm::Event] {
        let Some(server) = with_tls(mpm, groups, "http/1.1") else { return };
        let gate = server.gate("g");
        let first = server.send("/page.probe?id=first&gate=g");
        server.wait_started(1);
        let leaver = curl(&server, "--http1.1", "page.probe?id=leaver").stdout(Stdio::null()).spawn();
        let Ok(mut leaver) = leaver else { return skipped("there is no curl") };
        server.wait_number("one", "/waiting", 1);
        leaver.kill().expect("our own child");
        leaver.wait().expect("our own child");
        server.wait_number("one", "/counts/gone", 1);
        server.wait_number("one", "/waiting", 0);
        gate.open();
        assert_eq!(first.answer().status, 200);
        server.wait_idle();
        assert_eq!(server.started(), 1);
    }
}

/// HTTP/2 as browsers come to it, by TLS and ALPN: its streams are requests like others.
fn check_tls(mpm: Mpm) {
    let Some(server) = with_tls(mpm, GROUP, "h2 http/1.1") else { return };
    let ask = |path: &str| {
        let output = curl(&server, "--http2", path).output().ok()?;
        Some(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let Some(found) = ask("index.html") else { return skipped("there is no curl") };
    assert_eq!(found, "2 200", "{}", server.log());
    let gate = server.gate("g");
    std::thread::scope(|scope| {
        let ask = &ask;
        let held = ["page.probe?id=0&gate=g", "page.probe?id=1&gate=g"].map(|path| scope.spawn(move || ask(path)));
        server.wait_number("two", "/held", 2);
        assert_eq!(
            ["page.probe", "other.probe", "index.html"].map(ask).map(Option::unwrap_or_default),
            ["2 503", "2 200", "2 200"]
        );
        gate.open();
        for one in held {
            assert_eq!(one.join().expect("no panic").as_deref(), Some("2 200"));
        }
    });
    server.wait_idle();
    assert_eq!([server.number("two", "/counts/admitted"), server.number("two", "/counts/rejected")], [3, 1]);
}

#[test]
fn worker_http2_by_tls() {
    check_tls(Mpm::Worker);
}

#[test]
fn event_http2_by_tls() {
    check_tls(Mpm::Event);
}

/// Who was turned away together does not come back together.
#[test]
fn those_turned_away_come_back_at_different_times() {
    for mpm in [Mpm::Prefork, Mpm::Event] {
        let Some(server) = Server::start(mpm, "AdmissionGroup one limit=1\nAdmissionUse one\n") else { return };
        let gate = server.gate("g");
        let held = server.send("/page.probe?gate=g");
        server.wait_number("one", "/held", 1);
        let mut told = std::collections::BTreeSet::new();
        for _ in 0..50 {
            let answer = server.get("/page.probe");
            check_turned_away(&answer);
            told.insert(answer.header("Retry-After").map(str::to_owned));
        }
        assert!(told.len() >= 3, "{told:?}");
        gate.open();
        assert_eq!(held.answer().status, 200);
    }
}

/// Files are counted where a group asks for them, and are no reason to turn programs away.
#[test]
fn static_files_in_a_group_of_their_own() {
    for mpm in [Mpm::Prefork, Mpm::Worker, Mpm::Event] {
        let groups = "AdmissionGroup files limit=1 handler=static\nAdmissionGroup all limit=3 handler=any key=server\nAdmissionUse files all\n";
        let Some(server) = Server::start(mpm, groups) else { return };
        // One request was the start's own.
        let before = server.number("files", "/counts/admitted");
        let mut client = server.client();
        for _ in 0..3 {
            server.wait_idle();
            assert_eq!(client.get("/index.html").status, 200);
            assert_eq!(client.get("/page.cgi").status, 200);
        }
        assert_eq!(server.number("files", "/counts/admitted"), before + 3);
        assert_eq!(server.number("all", "/counts/admitted"), before + 6);
        server.wait_idle();
    }
}

/// A file without a content type has the default handler, by whose name a group may ask for it.
#[test]
fn a_file_without_a_content_type_has_a_name() {
    let groups = "AdmissionGroup plain limit=1 handler=default-handler\nAdmissionUse plain\n";
    let told = Told { mpm: Mpm::Event, php: Php::None, text: groups, files: &[("www/plain", "x")] };
    let Some(server) = Server::told(&told) else { return };
    let before = server.number("plain", "/counts/admitted");
    assert_eq!(server.get("/plain").status, 200);
    server.wait_idle();
    assert_eq!(server.number("plain", "/counts/admitted"), before + 1);
}
