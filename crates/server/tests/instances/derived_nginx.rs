//! Private instances with the configuration of an nginx that is there.

use crate::stage::{Stage, ask, ask_as, eventually, processes_of};
use server::ServerError;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use testkit::nginx::Nginx;
use testkit::own::{Own, changed, free_port, snapshot};
use testkit::skip::{not_here, skipped};

pub(crate) const TESTS: &[testkit::suite::Test] = &[
    ("derived_nginx_serves_the_same", derived_nginx_serves_the_same),
    ("derived_nginx_has_everything_of_its_own", derived_nginx_has_everything_of_its_own),
    ("derived_nginx_touches_nothing_of_the_machines", derived_nginx_touches_nothing_of_the_machines),
    ("derived_nginx_of_this_machine", derived_nginx_of_this_machine),
    ("derived_nginx_variants_take_the_place_of_what_is_there", derived_nginx_variants_take_the_place_of_what_is_there),
    ("derived_nginx_keeps_tls", derived_nginx_keeps_tls),
    ("derived_nginx_asks_nobody_for_a_password", derived_nginx_asks_nobody_for_a_password),
    ("derived_nginx_names_what_is_wrong", derived_nginx_names_what_is_wrong),
    ("derived_nginx_tells_whatever_visitors_may", derived_nginx_tells_whatever_visitors_may),
];

/// A stage, and an nginx in a folder of its own.
struct Scene {
    stage: Stage,
    nginx: Nginx,
    folder: tempfile::TempDir,
}

fn scene() -> Option<Scene> {
    let folder = tempfile::Builder::new().prefix("nginx-").tempdir_in("/tmp").unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let nginx = Nginx::new(folder.path());
    if nginx.is_none() {
        skipped("there is no Debian nginx");
    }
    Some(Scene { stage: Stage::new(), nginx: nginx?, folder })
}

impl Scene {
    fn keys(&self, more: &str) -> String {
        format!("from = \"{}\"\n{more}", self.nginx.main().display())
    }

    fn start(&self, more: &str, variant: &str) -> Result<server::Running, ServerError> {
        self.stage.start(&self.stage.plan("nginx", &self.keys(more), variant), &[])
    }

    /// What is wrong, with the stage's folder called `DIR` and nginx's `MACHINE`.
    fn told(&self, error: &ServerError) -> String {
        self.stage.told(error).replace(&*self.folder.path().to_string_lossy(), "MACHINE")
    }
}

fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").map_or("", |(_, body)| body)
}

/// Arguments of a copy's master: its folder by the main file, which is `conf/nginx.conf` in it.
fn folder_of(pid: u32) -> PathBuf {
    let command = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap();
    let (_, behind) = command.split_once(" -c ").unwrap();
    let (file, _) = behind.split_once("/conf/nginx.conf").unwrap();
    PathBuf::from(file)
}

fn copy_of(pid: u32) -> String {
    fs::read_to_string(folder_of(pid).join("conf/nginx.conf")).unwrap()
}

/// A second site on a port of its own, by two names, in files that a glob finds.
fn two_ports(nginx: &Nginx) -> u16 {
    let second = free_port();
    for name in ["b", "c"] {
        let text = format!(
            "server {{\nlisten 0.0.0.0:{second};\nserver_name {name}.example;\nlocation / {{\nreturn 200 'site {name} $kind\\n';\n}}\n}}\n"
        );
        nginx.write(&format!("sites-enabled/shop-{name}"), &text);
    }
    nginx.write(
        "conf.d/map.conf",
        "map $host $kind {\n  default other;\n  access_log surprising;\n  c.example mapped;\n}\n",
    );
    second
}

fn derived_nginx_serves_the_same() {
    let Some(scene) = scene() else { return };
    let second = two_ports(&scene.nginx);
    let check = |more: &str, expected: &str| {
        let running = scene.start(more, "").unwrap();
        let host = running.host.clone().unwrap_or_else(|| "x".to_owned());
        assert!(running.address.ip().is_loopback() && ![scene.nginx.port(), second].contains(&running.address.port()));
        let answer = ask_as(running.address, &host);
        assert_eq!((body(&answer), answer.contains(" 200 ")), (expected, true));
        running
    };
    let running = check("", "the first site\n");
    assert!(running.settings.server.starts_with("nginx/"), "{:?}", running.settings);
    assert_eq!(running.settings.values["worker_connections"], "768", "Debian's own");
    assert!(running.settings.values["worker_processes"].starts_with("auto ("), "{:?}", running.settings);
    assert!(running.status.look().web.is_some(), "{:?}", running.status);
    drop(running);
    check(&format!("port = {second}"), "site b other\n");
    check(&format!("port = {second}\nhost = \"c.example\""), "site c mapped\n");
}

/// Each address has one connection, which a load has; nobody else may come, and who comes is asked for a password, and by another page.
fn derived_nginx_tells_whatever_visitors_may() {
    let Some(scene) = scene() else { return };
    scene.nginx.site(
        "\tlocation = /ready {\n\t\treturn 204;\n\t}\n\tlocation = /index.html {\n\t\tauth_basic off;\n\t\tauth_request off;\n\t\tlimit_rate 1;\n\t}\n",
    );
    let lines = "directives = '''\nlimit_conn own 1\nallow 127.0.0.1\ndeny all\nauth_basic closed\nauth_basic_user_file /none\nauth_request /none\n'''";
    let running = scene.start("ready = \"/ready\"", lines).unwrap();
    let mut held = TcpStream::connect(running.address).unwrap();
    held.write_all(b"GET /index.html HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    held.read_exact(&mut [0; 1]).unwrap();
    assert!(ask(running.address, "GET /other").contains(" 503 "));
    let told = running.status.look().web;
    assert_eq!(told.as_ref().and_then(|web| web.busy()), Some(1), "{told:?}");
}

/// Sockets, caches, logs by syslog, relative names, listeners that lead back to the same server.
fn derived_nginx_has_everything_of_its_own() {
    let Some(scene) = scene() else { return };
    let Scene { nginx, folder, .. } = &scene;
    let (inner, proxied, of_stream) = (free_port(), free_port(), free_port());
    let at = |name: &str| folder.path().join(name).display().to_string();
    nginx.write(
        "conf.d/more.conf",
        &format!(
            "proxy_cache_path {0} levels=1:2 keys_zone=c:1m use_temp_path=off;\nproxy_temp_path {1};\n\
             server {{\nlisten unix:{2};\nerror_log syslog:server=127.0.0.1:9 warn;\nlocation / {{\nreturn 200 'by socket\\n';\n}}\n}}\n\
             server {{\nlisten 127.0.0.1:{inner};\naccess_log {3}/$host-own.log;\nroot {4};\nlocation / {{\nreturn 200 'inner\\n';\n}}\n}}\n\
             server {{\nlisten {proxied} proxy_protocol;\nreturn 200 proxied;\n}}\n\
             upstream same {{\nserver unix:{2};\n}}\n",
            at("cache"),
            at("temp"),
            at("run/n.sock"),
            at("log"),
            at("www"),
        ),
    );
    nginx.site(&format!(
        "location /inner/ {{\nproxy_pass http://127.0.0.1:{inner}/;\nproxy_cache c;\nproxy_cache_valid 1m;\n}}\n\
         location /socket/ {{\nproxy_pass http://unix:{0}:/;\n}}\nlocation /same/ {{\nproxy_pass http://same/;\n}}\n\
         location /auth/ {{\nauth_basic x;\nauth_basic_user_file secret.htpasswd;\n}}\n\
         location /store/ {{\nproxy_store {0}.store;\nproxy_pass http://same/;\n}}\n",
        at("run/n.sock")
    ));
    nginx.write("secret.htpasswd", "a:{PLAIN}b\n");
    // A part that there need not be: it is left out before nginx reads it.
    let main = fs::read_to_string(nginx.main()).unwrap();
    nginx.write("nginx.conf", &format!("{main}stream {{ server {{ listen 127.0.0.1:{of_stream}; return x; }} }}\n"));
    let before = snapshot(folder.path());
    let running = scene.start(&format!("port = {}", nginx.port()), "").unwrap();
    let answer = |path: &str| ask(running.address, &format!("GET {path}"));
    assert_eq!(body(&answer("/inner/")), "inner\n");
    assert_eq!(body(&answer("/socket/")), "by socket\n");
    assert_eq!(body(&answer("/same/")), "by socket\n");
    assert_eq!(body(&answer("/store/")), "by socket\n");
    assert!(answer("/auth/").contains(" 401 "), "{}", answer("/auth/"));
    let own = folder_of(running.pid.unwrap());
    let names = |name: &str| -> Vec<String> {
        let entries = fs::read_dir(own.join(name)).unwrap().map(|entry| entry.unwrap().file_name());
        entries.map(|name| name.to_string_lossy().into_owned()).collect()
    };
    assert!(names("run").iter().any(|name| name.ends_with("-cache")), "{:?}", names("run"));
    assert!(names("run").iter().any(|name| name.ends_with("-temp")), "{:?}", names("run"));
    let by_name = fs::read_dir(own.join("logs/by-name")).unwrap().count();
    assert_eq!(by_name, 1, "workers write a log whose name is another for each request");
    let socket = names("run").into_iter().find(|name| name.ends_with(".socket")).unwrap();
    let mut stream = UnixStream::connect(own.join("run").join(socket)).unwrap();
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    let mut told = String::new();
    stream.read_to_string(&mut told).unwrap();
    assert_eq!(body(&told), "by socket\n");
    // Nobody listens where the machine's own would.
    for port in [inner, proxied, of_stream, nginx.port()] {
        assert!(TcpListener::bind(("127.0.0.1", port)).is_ok(), "{port}");
    }
    let notes = running.notes.join("; ");
    for note in [
        "the copy has no stream",
        "the copy has no listeners with proxy_protocol",
        "the copy has no ..._store",
        "sends to syslog (1) are files here",
    ] {
        assert!(notes.contains(note), "{note}: {notes}");
    }
    running.stop().unwrap();
    assert_eq!(changed(&before, &snapshot(folder.path())), Vec::<String>::new());
}

fn derived_nginx_touches_nothing_of_the_machines() {
    let Some(scene) = scene() else { return };
    let Scene { stage, nginx, .. } = &scene;
    two_ports(nginx);
    nginx.start();
    let (before, pid) = (nginx.snapshot(), nginx.pid());
    let sizes = |name: &str| -> Vec<(std::ffi::OsString, u64)> {
        let entries = fs::read_dir(nginx.folder().join(name)).unwrap().map(Result::unwrap);
        let mut found: Vec<_> = entries.map(|entry| (entry.file_name(), entry.metadata().unwrap().len())).collect();
        found.sort();
        found
    };
    let files = ["log", "run"].map(sizes);
    let running = scene.start("", "directives = \"worker_processes 2\"").unwrap();
    assert!(ask(running.address, "GET /").contains(" 200 "));
    assert_eq!(running.settings.values["worker_processes"], "2");
    running.stop().unwrap();
    assert_eq!(changed(&before, &nginx.snapshot()), Vec::<String>::new());
    assert_eq!((nginx.pid(), nginx.workers().is_empty()), (pid, false));
    assert_eq!(["log", "run"].map(sizes), files);
    eventually("nothing is left", || processes_of(&stage.dir.path().join("instance-")).is_empty());
}

/// The configuration that the package brought.
fn derived_nginx_of_this_machine() {
    let (etc, logs) = (Path::new("/etc/nginx"), Path::new("/var/log/nginx"));
    if !etc.join("nginx.conf").exists() || !Path::new("/usr/sbin/nginx").exists() {
        return skipped("there is no nginx");
    }
    let stage = Stage::new();
    // Its documents are its own; that it begins is what counts.
    let plan = stage.plan("nginx", "from = \"/etc/nginx/nginx.conf\"", "");
    let sizes = || -> Vec<(PathBuf, u64, u32, i64)> {
        let entries = fs::read_dir(logs).into_iter().flatten().map(|entry| entry.unwrap());
        let facts = |entry: fs::DirEntry| {
            let facts = entry.metadata().unwrap();
            (entry.path(), facts.len(), facts.uid(), facts.mtime())
        };
        let mut found: Vec<_> = entries.map(facts).collect();
        found.sort();
        found
    };
    let before = (snapshot(etc), sizes());
    let running = match stage.start(&plan, &[]) {
        Ok(running) => running,
        // Somebody's own, which answers nothing at / or that we may not read.
        Err(error) => return not_here(&format!("this machine's nginx: {error}")),
    };
    let files = fs::read_dir(format!("/proc/{}/fd", running.pid.unwrap())).unwrap();
    let open: Vec<PathBuf> = files.filter_map(|file| fs::read_link(file.unwrap().path()).ok()).collect();
    for theirs in ["/var/log", "/var/lib/nginx", "/run", "/etc"] {
        assert!(!open.iter().any(|file| file.starts_with(theirs)), "{theirs}: {open:?}");
    }
    running.stop().unwrap();
    assert_eq!(changed(&before.0, &snapshot(etc)), Vec::<String>::new());
    assert_eq!(sizes(), before.1);
}

fn derived_nginx_variants_take_the_place_of_what_is_there() {
    let Some(scene) = scene() else { return };
    let start = |variant: &str| scene.start("", variant);
    let running = start(
        "directives = \"worker_connections 100\\nkeepalive_timeout 3\\naccess_log /var/log/nginx/access.log combined buffer=64k\"",
    )
    .unwrap();
    let value = |name: &str| running.settings.values[name].clone();
    assert_eq!((value("worker_connections"), value("keepalive_timeout")), ("100".to_owned(), "3".to_owned()));
    let copy = copy_of(running.pid.unwrap());
    assert_eq!(copy.matches("worker_connections").count(), 1, "{copy}");
    assert!(copy.contains("/logs/") && !copy.contains("access_log \"/var/log"), "{copy}");
    drop(running);
    let port = scene.nginx.port();
    let running = start(&format!(
        "directives = \"\"\"\nserver {{\nlisten 127.0.0.1:{port} default_server backlog=77\nlocation /more {{\nreturn 200 more;\n}}\n}}\n\"\"\""
    ))
    .unwrap();
    assert!(ask(running.address, "GET /more").ends_with("more"));
    assert!(copy_of(running.pid.unwrap()).contains("\"backlog=77\""));
    drop(running);
    scene.nginx.site("keepalive_timeout 9;\n");
    let told = |variant: &str| scene.told(&start(variant).unwrap_err());
    assert_eq!(
        told("directives = \"keepalive_timeout 1\""),
        "DIR/plan.toml:10: keepalive_timeout 1;: the server that answers has its own at MACHINE/nginx/sites-enabled/default:9: \
         keepalive_timeout 9; change it there, or write `server {`, the line and `}` (nginx)"
    );
    assert_eq!(
        told("directives = \"pid /x\""),
        "DIR/plan.toml:10: pid /x: a copy has it its own way; remove the line (nginx)"
    );
    assert_eq!(
        told("directives = \"sendfile maybe\""),
        "DIR/plan.toml:10: sendfile maybe;: invalid value \"maybe\" in \"sendfile\" directive, it must be \"on\" or \"off\" (nginx)"
    );
}

fn derived_nginx_keeps_tls() {
    let Some(scene) = scene() else { return };
    let secure = free_port();
    let certificates =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../app/tests/certificates").canonicalize().unwrap();
    // By a name beside the main file.
    for name in ["server.pem", "server.key"] {
        fs::copy(certificates.join(name), scene.nginx.etc().join(name)).unwrap();
    }
    scene.nginx.site(&format!("listen {secure} ssl;\nssl_certificate server.pem;\nssl_certificate_key server.key;\n"));
    let plain = scene.start("", "").unwrap();
    assert!(!plain.tls && ask(plain.address, "GET /").ends_with("the first site\n"));
    drop(plain);
    let running = scene.start(&format!("port = {secure}"), "").unwrap();
    assert!(running.tls);
    let request = scene.stage.dir.path().join("request");
    fs::write(&request, "GET / HTTP/1.0\r\n\r\n").unwrap();
    let client = ["s_client", "-quiet", "-connect"];
    let output = std::process::Command::new("openssl")
        .args(client)
        .arg(running.address.to_string())
        .stdin(fs::File::open(request).unwrap())
        .output();
    let Ok(output) = output else { return skipped("there is no openssl") };
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("the first site"), "{said} {}", String::from_utf8_lossy(&output.stderr));
}

/// Not at the terminal of these tests either, if they have one.
fn derived_nginx_asks_nobody_for_a_password() {
    let Some(scene) = scene() else { return };
    let certificates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../app/tests/certificates");
    fs::copy(certificates.join("server.pem"), scene.nginx.etc().join("server.pem")).unwrap();
    let locked = std::process::Command::new("openssl")
        .args(["pkcs8", "-topk8", "-passout", "pass:secret", "-in"])
        .arg(certificates.join("server.key"))
        .arg("-out")
        .arg(scene.nginx.etc().join("locked.key"))
        .output();
    let Ok(locked) = locked else { return skipped("there is no openssl") };
    assert!(locked.status.success(), "{}", String::from_utf8_lossy(&locked.stderr));
    let port = free_port();
    scene.nginx.site(&format!("listen {port} ssl;\nssl_certificate server.pem;\nssl_certificate_key locked.key;\n"));
    let told = scene.told(&scene.start("", "").unwrap_err());
    assert!(told.starts_with("DIR/plan.toml:3: server.from: ") && told.contains("locked.key"), "{told}");
}

fn derived_nginx_names_what_is_wrong() {
    let Some(scene) = scene() else { return };
    let Scene { stage, nginx, .. } = &scene;
    let told = |more: &str| {
        let plan = stage.plan("nginx", &scene.keys(more), "");
        scene.told(&stage.control(&plan).check(&stage.place(), &plan.variants[0]).unwrap_err())
    };
    let main = "MACHINE/nginx/nginx.conf";
    assert_eq!(
        told("port = 1"),
        format!("DIR/plan.toml:4: server.port: {main} listens on no such port; there is {}", nginx.port())
    );
    nginx.write("conf.d/broken.conf", "keepalive_timeout 5;\nkeepaliv 5;\n");
    assert_eq!(
        told(""),
        "DIR/plan.toml:3: server.from: unknown directive \"keepaliv\" in MACHINE/nginx/conf.d/broken.conf:2"
    );
    nginx.write("conf.d/broken.conf", "include none.conf;\n");
    assert_eq!(
        told(""),
        "DIR/plan.toml:3: server.from: cannot read MACHINE/nginx/none.conf: No such file or directory (os error 2)"
    );
    nginx.write("conf.d/broken.conf", "include conf.d/broken.conf;\n");
    assert_eq!(
        told(""),
        "DIR/plan.toml:3: server.from: MACHINE/nginx/conf.d/broken.conf: files include each other in a circle"
    );
    // What it warns about anyway is no mistake of the plan's, and is said.
    nginx.write("conf.d/broken.conf", "ssi_types text/html;\n");
    let running = scene.start("", "directives = \"keepalive_timeout 3\"").unwrap();
    let warned = "nginx warns of the machine's configuration: duplicate MIME type \"text/html\"";
    assert!(running.notes.iter().any(|note| note == warned), "{:?}", running.notes);
}
