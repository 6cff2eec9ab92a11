//! `webdyno load` over TLS, Unix sockets and other ways to a real nginx.

mod tool;

use serde_json::Value;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tool::{Finished, Tool};

/// A private nginx with one page, which ends when it is dropped.
struct Nginx {
    process: Child,
    folder: tempfile::TempDir,
    plain: u16,
    tls: u16,
    strict: u16,
}

impl Nginx {
    /// Listens without TLS, with it, with it for clients with a certificate only, and on a socket file.
    fn start() -> Option<Nginx> {
        if !Path::new("/usr/sbin/nginx").exists() {
            testkit::skip::skipped("no nginx");
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let [plain, tls, strict] = free_ports();
        let certificates = certificate("");
        let dir = folder.path().display();
        let tls_lines = format!(
            "ssl_certificate {0}/server.pem; ssl_certificate_key {0}/server.key; ssl_protocols TLSv1.2 TLSv1.3; \
             ssl_session_cache shared:s:1m;",
            certificates.display()
        );
        let temporary =
            ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(|n| format!("{n}_temp_path {dir}/{n};"));
        let text = format!(
            "daemon off; worker_processes 1; pid {dir}/pid; error_log {dir}/error.log; events {{ worker_connections 512; }}\n\
             http {{ {} log_format seen '$ssl_protocol $ssl_session_reused $ssl_server_name $server_port $remote_addr $http_host'; \
             access_log {dir}/access.log seen; keepalive_requests 3;\n\
             server {{ listen 127.0.0.1:{plain}; listen [::1]:{plain}; listen unix:{dir}/socket; location / {{ return 200 OK; }} }}\n\
             server {{ listen 127.0.0.1:{tls} ssl; {tls_lines} location / {{ return 200 OK; }} }}\n\
             server {{ listen 127.0.0.1:{strict} ssl; {tls_lines} ssl_client_certificate {}/authority.pem; \
             ssl_verify_client on; location / {{ return 200 OK; }} }}\n}}\n",
            temporary.join(" "),
            certificates.display()
        );
        let file = folder.path().join("nginx.conf");
        std::fs::write(&file, text).expect("a configuration");
        let process = Command::new("/usr/sbin/nginx")
            .arg("-c")
            .arg(&file)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("nginx starts");
        let nginx = Nginx { process, folder, plain, tls, strict };
        nginx.wait_until_it_listens();
        Some(nginx)
    }

    fn wait_until_it_listens(&self) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while TcpStream::connect((Ipv4Addr::LOCALHOST, self.strict)).is_err() {
            assert!(Instant::now() < deadline, "nginx does not listen: {}", self.read("error.log"));
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(name)).unwrap_or_default()
    }

    fn https(&self) -> String {
        format!("https://localhost:{}/", self.tls)
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // Asked to end, it also ends its workers.
        if let Some(pid) = rustix::process::Pid::from_raw(self.process.id().cast_signed()) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        let _ = self.process.wait();
    }
}

/// Ports that were free a moment ago.
fn free_ports() -> [u16; 3] {
    let listeners =
        [0; 3].map(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).expect("loopback has a free port"));
    listeners.map(|listener| listener.local_addr().expect("a bound socket has an address").port())
}

fn certificate(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/certificates").join(name)
}

fn path(name: &str) -> String {
    certificate(name).to_str().expect("UTF-8").to_owned()
}

/// Nine requests over one connection at a time; nginx closes each after the third.
fn load(typed: &[&str]) -> Finished {
    let common = ["load", "-n", "9", "-c", "1", "--preflight", "0", "--plain", "--json"];
    Tool::new().run(&[common.as_slice(), typed].concat())
}

/// All nine are good; gives the report.
#[track_caller]
fn check_good(typed: &[&str]) -> Value {
    let finished = load(typed);
    let report: Value = serde_json::from_str(&finished.out).unwrap_or_else(|error| panic!("{error}: {finished:?}"));
    assert_eq!((finished.code, &report["counts"]["good"]), (0, &Value::from(9)), "{finished:?}");
    assert_eq!(report["counts"]["connects"], 3);
    report
}

/// All nine fail of TLS, and the example says why.
#[track_caller]
fn check_tls_fails(typed: &[&str], why: &str) {
    let finished = load(typed);
    let report: Value = serde_json::from_str(&finished.out).unwrap_or_else(|error| panic!("{error}: {finished:?}"));
    assert_eq!(report["counts"]["failed"]["tls"], 9, "{finished:?}");
    assert!(finished.out.contains(why), "no `{why}` in {}", report["failures"]);
}

#[test]
fn certificates_are_checked_unless_told_otherwise() {
    let Some(nginx) = Nginx::start() else { return };
    let (https, authority) = (nginx.https(), path("authority.pem"));
    check_tls_fails(&[&https], "UnknownIssuer");
    let report = check_good(&["--cacert", &authority, &https]);
    assert!(report["handshake_us"]["mean"].as_f64().is_some_and(|us| us > 0.0), "{}", report["handshake_us"]);
    check_good(&["--insecure", &https]);
    check_tls_fails(&["--cacert", &authority, "--sni", "other.example", &https], "other.example");
    check_good(&["--cacert", &authority, "--sni", "server.example", &https]);
    assert!(nginx.read("access.log").contains(" server.example "), "{}", nginx.read("access.log"));
}

#[test]
fn a_plan_of_a_url_believes_whom_it_names() {
    let Some(nginx) = Nginx::start() else { return };
    let tool = Tool::new();
    let run = |trust: &str| {
        let load =
            |name: &str, more: &str| format!("[load.{name}]\npath = \"/\"\nconnections = 1\nrequests = 20\n{more}\n");
        let text = format!(
            "blocks = 2\naa = false\n[server]\nkind = \"url\"\nurl = \"{}\"\n{trust}\n{}{}[cooldown]\nlimit = \"0s\"\n",
            nginx.https(),
            load("kept", ""),
            load("new", "keep_alive = false")
        );
        tool.run(&["run", &tool.plan(&text), "--plain"])
    };
    for trust in [format!("cacert = \"{}\"", path("authority.pem")), "insecure = true".to_owned()] {
        let ran = run(&trust);
        assert!([0, 1, 3].contains(&ran.code) && ran.out.contains("kept"), "{ran:?}");
    }
    assert!(nginx.read("access.log").lines().all(|line| line.starts_with("TLSv1.")), "{}", nginx.read("access.log"));
    let wrong = run("cacert = \"nowhere.pem\"");
    assert!(wrong.code == 2 && wrong.err.contains(":6: server.cacert: TLS: no certificates in "), "{wrong:?}");
    let untrusted = run("");
    assert!(untrusted.code == 4 && untrusted.err.contains("TLS failed; is the certificate trusted"), "{untrusted:?}");
}

#[test]
fn versions_and_resumption_are_as_asked() {
    let Some(nginx) = Nginx::start() else { return };
    let https = nginx.https();
    for (version, told) in [("1.2", "TLSv1.2"), ("1.3", "TLSv1.3")] {
        check_good(&["--insecure", "--tls", version, &https]);
        let log = nginx.read("access.log");
        assert!(log.lines().rev().take(9).all(|line| line.starts_with(told)), "{log}");
    }
    check_good(&["--insecure", "--no-resumption", &https]);
    let log = nginx.read("access.log");
    assert!(log.lines().rev().take(9).all(|line| line.split(' ').nth(1) == Some(".")), "no session reused: {log}");
    check_good(&["--insecure", &https]);
    let log = nginx.read("access.log");
    let reused = log.lines().rev().take(9).filter(|line| line.split(' ').nth(1) == Some("r")).count();
    assert_eq!(reused, 6, "the second and the third connection take up the first one's session: {log}");
}

#[test]
fn a_client_shows_its_certificate() {
    let Some(nginx) = Nginx::start() else { return };
    let strict = format!("https://localhost:{}/", nginx.strict);
    let (certificate, key) = (path("client.pem"), path("client.key"));
    check_good(&["--insecure", "--cert", &certificate, "--key", &key, &strict]);
    let without = load(&["--insecure", &strict]);
    let report: Value = serde_json::from_str(&without.out).expect("a report");
    assert_eq!(report["counts"]["statuses"]["400"], 9, "nginx answers 400 to whoever shows none");
    let mixed_up = load(&["--insecure", "--cert", &key, "--key", &certificate, &strict]);
    assert_eq!((mixed_up.code, mixed_up.err.lines().count()), (2, 1), "{mixed_up:?}");
}

#[test]
fn there_are_other_ways_to_a_server() {
    let Some(nginx) = Nginx::start() else { return };
    let socket = nginx.folder.path().join("socket");
    check_good(&["--unix", socket.to_str().expect("UTF-8"), "http://there.example/"]);
    assert!(nginx.read("access.log").ends_with("there.example\n"), "{}", nginx.read("access.log"));
    check_good(&["--connect-to", &format!("127.0.0.1:{}", nginx.plain), "http://localhost:81/"]);
    assert!(nginx.read("access.log").ends_with("localhost:81\n"), "{}", nginx.read("access.log"));
    check_good(&[&format!("http://[::1]:{}/", nginx.plain)]);
    check_good(&["--local", "127.0.0.2,127.0.0.3", &format!("http://127.0.0.1:{}/", nginx.plain)]);
    let log = nginx.read("access.log");
    let from = |address: &str| log.lines().filter(|line| line.split(' ').nth(4) == Some(address)).count();
    assert_eq!((from("127.0.0.2"), from("127.0.0.3")), (6, 3), "{log}");
}

#[test]
fn speaking_past_each_other_is_one_line() {
    let Some(nginx) = Nginx::start() else { return };
    let plain_to_tls = Tool::new().run(&["load", "-n", "1", "--plain", &format!("http://127.0.0.1:{}/", nginx.tls)]);
    assert!(plain_to_tls.out.contains("400"), "nginx answers 400 to plain HTTP: {plain_to_tls:?}");
    let tls_to_plain = Tool::new().run(&["load", "--plain", &format!("https://localhost:{}/", nginx.plain)]);
    assert_eq!(tls_to_plain.code, 4, "{tls_to_plain:?}");
    assert!(
        tls_to_plain.err.lines().last().is_some_and(|line| line.contains("is it HTTPS at all")),
        "{tls_to_plain:?}"
    );
}
