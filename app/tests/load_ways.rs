//! `webdyno load` by other ways than the URL's: addresses given for a name, and https through a proxy, which is a real Apache.

mod tool;

use serde_json::Value;
use std::fs;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use testkit::scripted::{Refusing, Scripted, Step, answer};
use tool::{Finished, Tool};

/// Loads with what was typed, which ends with that code; gives what was said.
#[track_caller]
fn check(typed: &[&str], code: i32) -> Finished {
    let common = ["load", "--plain", "--no-probe", "--seed", "5", "--preflight", "0"];
    let finished = Tool::new().run(&[&common[..], typed].concat());
    assert_eq!(finished.code, code, "{finished:?}");
    finished
}

/// What was typed makes no sense: one line that says all of that.
#[track_caller]
fn check_refused(typed: &[&str], says: &[&str]) {
    let finished = check(typed, 2);
    assert_eq!(finished.err.lines().count(), 1, "{finished:?}");
    for expected in says {
        assert!(finished.err.contains(expected), "no `{expected}` in {finished:?}");
    }
}

#[test]
fn addresses_given_for_a_name_take_turns() {
    let one = Scripted::always(vec![Step::Send(answer(200, "OK"))]);
    let other = one.beside(vec![Step::Send(answer(200, "OK"))]);
    let port = one.address().port();
    let (url, resolve) =
        (format!("http://there.example:{port}/x"), format!("there.example:{port}:127.0.0.1,127.0.0.2"));
    check(&["-n", "6", "-c", "1", "--close", "--resolve", &resolve, &url], 0);
    assert_eq!((one.accepted(), other.accepted()), (3, 3));
    for server in [&one, &other] {
        let head = server.last_request();
        assert!(head.starts_with("GET /x ") && head.contains(&format!("\r\nHost: there.example:{port}\r\n")), "{head}");
    }
    // The first answers come from all of them.
    let typed =
        ["load", "--plain", "--no-probe", "--preflight", "4", "-n", "4", "-c", "1", "--resolve", &resolve, &url];
    assert_eq!(Tool::new().run(&typed).code, 0);
    assert_eq!((one.accepted(), other.accepted()), (3 + 3, 3 + 2));
    let dry = check(&["--dry-run", "--resolve", &resolve, &url], 0);
    assert!(dry.out.contains(&format!("to 127.0.0.1:{port}, 127.0.0.2:{port} in turn\n")), "{dry:?}");
}

#[test]
fn connect_to_comes_first_and_resolve_says_where_that_is() {
    let server = Scripted::always(vec![Step::Send(answer(200, "OK"))]);
    let port = server.address().port();
    let there = format!("back.example:{port}");
    let resolve = format!("{there}:127.0.0.1");
    check(&["-n", "1", "-c", "1", "--connect-to", &there, "--resolve", &resolve, "http://there.example/"], 0);
    assert!(server.last_request().contains("\r\nHost: there.example\r\n"), "{}", server.last_request());
    // To a proxy it is the proxy's name that has an address.
    let proxy = format!("http://{there}");
    check(&["-n", "1", "-c", "1", "--proxy", &proxy, "--resolve", &resolve, "http://localhost/"], 0);
    assert!(server.last_request().starts_with("GET http://localhost/ "), "{}", server.last_request());
}

#[test]
fn whom_a_load_reaches_is_who_must_be_operated() {
    // By its name a host is not this machine; what is connected to is.
    let mine = check(&["--dry-run", "--resolve", "shop.example:80:127.0.0.1,[::1]", "http://shop.example/"], 0);
    assert!(mine.out.contains("127.0.0.1:80, [::1]:80 in turn"), "{mine:?}");
    let others = ["--resolve", "localhost:80:192.0.2.1,[2001:db8::1]", "http://localhost/", "--dry-run"];
    check_refused(&others, &["192.0.2.1,2001:db8::1 are not this machine", "--i-operate 192.0.2.1,2001:db8::1"]);
    check_refused(&[&others[..], &["--i-operate", "192.0.2.1"]].concat(), &["type --i-operate 192.0.2.1,2001:db8::1,"]);
    check(&[&others[..], &["--i-operate", "192.0.2.1,2001:db8::1"]].concat(), 0);
    check_refused(&["--connect-to", "192.0.2.1", "http://localhost/"], &["192.0.2.1 is not this machine"]);
    // A proxy elsewhere is loaded as well.
    let proxy = ["--proxy", "http://192.0.2.1:3128", "--dry-run", "https://shop.example/"];
    check_refused(&proxy, &["--i-operate 192.0.2.1,shop.example"]);
    let dry = check(&[&proxy[..], &["--i-operate", "192.0.2.1,shop.example"]].concat(), 0);
    assert!(dry.out.contains("shop.example through the proxy at 192.0.2.1:3128, by a tunnel (CONNECT)\n"), "{dry:?}");
}

#[test]
fn ways_that_lead_nowhere_are_one_line() {
    check_refused(&["--resolve", "a:80", "http://a/"], &["--resolve `a:80` is not HOST:PORT:ADDRESS"]);
    check_refused(&["--resolve", "a:80:b", "http://a/"], &["`b` is not an address"]);
    check_refused(
        &["--resolve", "localhost:80:127.0.0.1", "https://localhost/"],
        &["--resolve is for localhost:80, and the load connects to localhost:443"],
    );
    check_refused(&["--proxy", "https://localhost:1", "http://localhost/"], &["spoken to in plain HTTP"]);
    check_refused(&["--proxy", "http://localhost:1", "--unix", "/x", "http://localhost/"], &["cannot be used with"]);
}

#[test]
fn users_ask_a_proxy_for_whole_urls_too() {
    let html = "<link rel=stylesheet href=a.css><img src=/b.png>";
    let proxy = Scripted::always(vec![Step::Send(answer(200, html))]);
    let through = format!("http://{}", proxy.address());
    let page = [
        "--page",
        "--return",
        "0",
        "-c",
        "2",
        "--browser-connections",
        "2",
        "--proxy",
        &through,
        "http://localhost:81/dir/",
    ];
    check(&[&["-d", "100ms"], &page[..]].concat(), 0);
    let asked = proxy.all_requests();
    for target in ["/dir/", "/dir/a.css", "/b.png"] {
        let line = format!("GET http://localhost:81{target} HTTP/1.1\r\n");
        assert!(asked.iter().any(|(head, _)| head.starts_with(&line)), "no {line}");
    }
    // A dry run does not even fetch the page.
    let before = proxy.requests();
    let dry = check(&[&["--dry-run"], &page[..]].concat(), 0);
    assert!(
        dry.out.contains("users with 2 connections each, 1 at once at most; the page is fetched once before"),
        "{dry:?}"
    );
    assert_eq!(proxy.requests(), before);
}

/// A private Apache: a page over TLS at two addresses, and a proxy that lets those with a password go there.
struct Apache {
    process: Child,
    folder: tempfile::TempDir,
    tls: u16,
    proxy: u16,
    nobody: Refusing,
}

const MODULES: &str = "/usr/lib/apache2/modules";
const PAGE: &str = "<link rel=stylesheet href=a.css><img src=/b.png>";

impl Apache {
    fn start() -> Option<Apache> {
        if !Path::new(MODULES).join("mod_proxy_connect.so").exists() {
            testkit::skip::skipped("no Apache with mod_proxy_connect");
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("our own folder");
        let ([tls, proxy], nobody) = (free_ports(), Refusing::start());
        for (name, text) in
            [("index.html", PAGE), ("a.css", "a"), ("b.png", "b"), ("users", "me:{SHA}GpHWL3ymc5liWkNopqtdSjuqYHM=\n")]
        {
            fs::write(folder.path().join(name), text).expect("a file");
        }
        let file = folder.path().join("httpd.conf");
        fs::write(&file, configuration(folder.path(), tls, proxy, nobody.address().port())).expect("a configuration");
        let process = Command::new("/usr/sbin/apache2")
            .args(["-D", "FOREGROUND", "-f"])
            .arg(&file)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("Apache starts");
        let apache = Apache { process, folder, tls, proxy, nobody };
        apache.wait_until_it_listens();
        Some(apache)
    }

    fn wait_until_it_listens(&self) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while TcpStream::connect((Ipv4Addr::LOCALHOST, self.proxy)).is_err() {
            assert!(Instant::now() < deadline, "Apache does not listen: {}", self.read("error.log"));
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.folder.path().join(name)).unwrap_or_default()
    }

    fn https(&self) -> String {
        format!("https://localhost:{}/", self.tls)
    }

    /// The flag for the proxy, with or without who asks.
    fn through(&self, user: &str) -> String {
        format!("--proxy=http://{user}127.0.0.1:{}", self.proxy)
    }
}

fn configuration(folder: &Path, tls: u16, proxy: u16, nobody: u16) -> String {
    let folder = folder.display();
    let modules: String = [
        "mpm_event",
        "authn_core",
        "authn_file",
        "authz_core",
        "authz_user",
        "auth_basic",
        "dir",
        "proxy",
        "proxy_connect",
        "proxy_http",
        "ssl",
    ]
    .iter()
    .map(|name| format!("LoadModule {name}_module {MODULES}/mod_{name}.so\n"))
    .collect();
    let certificates = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/certificates");
    format!(
        "ServerRoot {folder}\nDefaultRuntimeDir {folder}\nPidFile {folder}/pid\nErrorLog {folder}/error.log\nServerName localhost\n\
         User www-data\nGroup www-data\nMutex pthread\n{modules}\
         Listen 127.0.0.1:{tls}\nListen 127.0.0.2:{tls}\nListen 127.0.0.1:{proxy}\nDocumentRoot {folder}\nDirectoryIndex index.html\n\
         LogFormat \"%p %A %{{Proxy-Authorization}}i %{{Host}}i %U %{{SSL_TLS_SNI}}x\" seen\nCustomLog {folder}/access.log seen\n\
         MaxKeepAliveRequests 3\n\
         <VirtualHost *:{tls}>\nSSLEngine on\nSSLCertificateFile {certificates}/server.pem\n\
         SSLCertificateKeyFile {certificates}/server.key\n</VirtualHost>\n\
         <VirtualHost *:{proxy}>\nProxyRequests On\nAllowCONNECT {tls} {nobody}\n<Proxy *>\nAuthType Basic\nAuthName p\n\
         AuthUserFile {folder}/users\nRequire valid-user\n</Proxy>\n</VirtualHost>\n"
    )
}

impl Drop for Apache {
    fn drop(&mut self) {
        // Asked to end, it also ends its workers.
        if let Some(pid) = rustix::process::Pid::from_raw(self.process.id().cast_signed()) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        let _ = self.process.wait();
    }
}

/// Ports that were free a moment ago.
fn free_ports() -> [u16; 2] {
    let listeners =
        [0; 2].map(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).expect("loopback has a free port"));
    listeners.map(|listener| listener.local_addr().expect("a bound socket has an address").port())
}

fn json(finished: &Finished) -> Value {
    serde_json::from_str(&finished.out).unwrap_or_else(|error| panic!("{error}: {finished:?}"))
}

#[test]
fn https_goes_through_a_tunnel() {
    let Some(apache) = Apache::start() else { return };
    let (https, through) = (apache.https(), apache.through("me:pw@"));
    let closed = ["-n", "9", "-c", "1", "--json", "--insecure", &through, &https];
    // Apache ends each connection after the third request, so three tunnels are opened.
    let found = json(&check(&closed, 0));
    assert_eq!((&found["counts"]["good"], &found["counts"]["connects"]), (&9.into(), &3.into()), "{found}");
    let mean = |name: &str| found[name]["mean"].as_f64().unwrap_or_default();
    assert!(mean("connect_us") > 0.0 && mean("handshake_us") > 0.0, "{found}");
    let open = ["-r", "50/s", "-n", "20", "-c", "4", "--json", "--insecure", &through, &https];
    assert_eq!(json(&check(&open, 0))["counts"]["good"], 20);
    let piped = ["-n", "30", "-c", "1", "--pipeline", "3", "--json", "--insecure", &through, &https];
    assert_eq!(json(&check(&piped, 0))["counts"]["good"], 30);
    // With the first answers, a visitor, and the proxy's password only for the proxy.
    let typed =
        ["load", "--plain", "-c", "2", "-d", "500ms", "--probe", "100ms", "--json", "--insecure", &through, &https];
    let found = json(&Tool::new().run(&typed));
    assert!(found["probe"]["good"].as_u64() > Some(0) && found["counts"]["failed"] == serde_json::json!({}), "{found}");
    let seen = apache.read("access.log");
    let at_server = format!("{} 127.0.0.1 - localhost:{} /", apache.tls, apache.tls);
    assert!(seen.lines().any(|line| line.starts_with(&at_server)), "{seen}");
    assert!(
        seen.lines().filter(|line| line.contains("Basic")).all(|line| !line.starts_with(&apache.tls.to_string())),
        "{seen}"
    );
}

#[test]
fn addresses_given_for_a_name_change_nothing_about_tls() {
    let Some(apache) = Apache::start() else { return };
    let there = format!("server.example:{}", apache.tls);
    let authority = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/certificates/authority.pem");
    let resolve = format!("{there}:127.0.0.1,127.0.0.2");
    let typed = ["-n", "12", "-c", "1", "--json", "--pipeline", "3", "--cacert", authority, "--resolve", &resolve];
    let found = json(&check(&[&typed[..], &[&format!("https://{there}/")]].concat(), 0));
    assert_eq!(found["counts"]["good"], 12, "{found}");
    let seen = apache.read("access.log");
    for address in ["127.0.0.1", "127.0.0.2"] {
        let line = format!("{} {address} - {there} /index.html server.example", apache.tls);
        assert!(seen.lines().any(|seen| seen == line), "no `{line}` in {seen}");
    }
}

#[test]
fn users_go_through_a_proxy() {
    let Some(apache) = Apache::start() else { return };
    let through = apache.through("me:pw@");
    let page = ["--page", "--insecure", "--return", "0", "-c", "6", "-d", "300ms", "--json", &through];
    let tunnelled = json(&check(&[&page[..], &[&apache.https()]].concat(), 0));
    assert!(tunnelled["sessions"]["pages"].as_u64() > Some(0), "{tunnelled}");
    let seen = apache.read("access.log");
    assert!(seen.contains("/a.css") && seen.contains("/b.png"), "{seen}");
}

#[test]
fn a_proxy_that_refuses_says_so_with_its_status() {
    let Some(apache) = Apache::start() else { return };
    let nobody = format!("https://localhost:{}/", apache.nobody.address().port());
    let (known, unknown) = (apache.through("me:pw@"), apache.through(""));
    for (through, url, status) in [
        (&unknown, apache.https(), "status 407: it wants a name and a password"),
        (&apache.through("me:wrong@"), apache.https(), "status 407: it wants a name and a password"),
        (&known, "https://localhost:9/".to_owned(), "status 403: it does not let us go there"),
        (&known, nobody, "status 503: it does not reach the server"),
    ] {
        let found = json(&check(&["-n", "3", "-c", "1", "--json", "--insecure", through, &url], 3));
        assert_eq!((&found["counts"]["failed"]["proxy"], &found["counts"]["good"]), (&3.into(), &0.into()), "{found}");
        assert_eq!(found["counts"]["statuses"], serde_json::json!({}));
        assert!(found.to_string().contains(status), "no `{status}` in {found}");
        let first = Tool::new().run(&["load", "--plain", "--insecure", through, &url]);
        assert_eq!((first.code, first.err.lines().count()), (4, 1), "{first:?}");
        assert!(first.err.contains("no answer from") && first.err.contains(status), "{first:?}");
    }
}
