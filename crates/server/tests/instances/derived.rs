//! Private instances with the configuration of an Apache that is laid out as Debian does.

use crate::stage::{Stage, ask, ask_as, processes_of};
use server::ServerError;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use testkit::debian::Debian;
use testkit::own::{Own, changed, free_port};
use testkit::skip::skipped;

pub(crate) const TESTS: &[testkit::suite::Test] = &[
    ("derived_serves_the_same", derived_serves_the_same),
    ("derived_touches_nothing_of_the_machines", derived_touches_nothing_of_the_machines),
    ("derived_variants_have_the_last_word", derived_variants_have_the_last_word),
    ("derived_keeps_tls", derived_keeps_tls),
    ("derived_names_what_is_wrong", derived_names_what_is_wrong),
    ("derived_loads_what_is_missing", derived_loads_what_is_missing),
];

/// A stage, and an Apache in a folder of its own: Debian's configuration does not bear blanks in its paths.
struct Scene {
    stage: Stage,
    debian: Debian,
    folder: tempfile::TempDir,
}

impl Scene {
    /// What is wrong, with the stage's folder called `DIR` and Apache's `MACHINE`.
    fn told(&self, error: &ServerError) -> String {
        self.stage.told(error).replace(&*self.folder.path().to_string_lossy(), "MACHINE")
    }
}

fn scene() -> Option<Scene> {
    let folder = tempfile::Builder::new().prefix("debian-").tempdir_in("/tmp").unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let debian = Debian::new(folder.path());
    if debian.is_none() {
        skipped("there is no Debian apache2");
    }
    Some(Scene { stage: Stage::new(), debian: debian?, folder })
}

fn keys(debian: &Debian, more: &str) -> String {
    format!("from = \"{}\"\n{more}", debian.main().display())
}

/// A second site on a port of its own, by two names, with a piped log; the first has an alias of another name.
fn two_ports(debian: &Debian) -> u16 {
    let (second, folder) = (free_port(), debian.folder());
    for site in ["b", "c"] {
        fs::create_dir(folder.join(site)).unwrap();
        fs::write(folder.join(site).join("index.html"), format!("site {site}\n")).unwrap();
    }
    debian.write("ports.conf", &format!("Listen 0.0.0.0:{}\n<IfModule mpm_prefork_module>\nListen {second}\n</IfModule>\n<IfModule mpm_event_module>\nListen {second}\n</IfModule>\n", debian.port));
    let host = |name: &str| {
        let folder = folder.join(name);
        format!(
            "<VirtualHost *:{second}>\nServerName {name}.example\nDocumentRoot '{0}'\n<Directory '{0}'>\nRequire all granted\n</Directory>\n\
             CustomLog '|/usr/bin/tee {1}/piped.log' combined\nErrorLog {1}/{name}.log\n</VirtualHost>\n",
            folder.display(),
            folder.parent().unwrap().join("log").display()
        )
    };
    debian.write("sites-enabled/second.conf", &(host("b") + &host("c")));
    second
}

fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").map_or("", |(_, body)| body)
}

fn derived_serves_the_same() {
    let Some(scene) = scene() else { return };
    let Scene { stage, debian, .. } = &scene;
    let second = two_ports(debian);
    let check = |more: &str, expected: &str| {
        let running = stage.start(&stage.plan("apache", &keys(debian, more), ""), &[]).unwrap();
        let host = running.host.clone().unwrap_or_else(|| "x".to_owned());
        assert!(running.address.ip().is_loopback() && ![debian.port, second].contains(&running.address.port()));
        let answer = ask_as(running.address, &host);
        assert_eq!((body(&answer), answer.starts_with("HTTP/1.1 200 ")), (expected, true));
        running
    };
    debian.write("conf-enabled/secret.conf", "SetEnv DATABASE_PASSWORD hidden\n");
    let running = check("", "the first site\n");
    assert!(!format!("{:?}", running.settings).contains("hidden"), "{:?}", running.settings);
    assert!(running.settings.server.starts_with("Apache/"), "{:?}", running.settings);
    assert_eq!(running.settings.values["KeepAliveTimeout"], "5", "Debian's own");
    drop(running);
    check(&format!("port = {second}"), "site b\n");
    let running = check(&format!("port = {second}\nhost = \"c.example\""), "site c\n");
    assert!(
        running.notes.iter().any(|note| note.contains("pipes to a program (1) are files here")),
        "{:?}",
        running.notes
    );
}

fn derived_touches_nothing_of_the_machines() {
    let Some(scene) = scene() else { return };
    let Scene { stage, debian, .. } = &scene;
    two_ports(debian);
    debian.start();
    let (before, pid) = (debian.snapshot(), debian.pid());
    let sizes = |name: &str| -> Vec<(std::ffi::OsString, u64)> {
        let entries = fs::read_dir(debian.folder().join(name)).unwrap().map(Result::unwrap);
        let mut found: Vec<_> = entries.map(|entry| (entry.file_name(), entry.metadata().unwrap().len())).collect();
        found.sort();
        found
    };
    let files = ["log", "run", "lock"].map(sizes);
    let running = stage.start(&stage.plan("apache", &keys(debian, ""), ""), &[]).unwrap();
    assert!(ask(running.address, "GET /").starts_with("HTTP/1.1 200 "));
    running.stop().unwrap();
    assert_eq!(changed(&before, &debian.snapshot()), Vec::<String>::new());
    assert_eq!((debian.pid(), debian.is_alive()), (pid, true));
    assert_eq!(["log", "run", "lock"].map(sizes), files);
    assert_eq!(processes_of(&stage.dir.path().join("instance-")), []);
}

fn derived_variants_have_the_last_word() {
    let Some(scene) = scene() else { return };
    let Scene { stage, debian, .. } = &scene;
    let start = |variant: &str| stage.start(&stage.plan("apache", &keys(debian, ""), variant), &[]);
    // Debian's own value stands in an <IfModule> of the processing module.
    let running = start("directives = \"MaxRequestWorkers 50\"").unwrap();
    assert_eq!(running.settings.values["MaxRequestWorkers"], "50");
    let own = if running.settings.values["MPM"] == "prefork" { "mpm_prefork_module" } else { "mpm_event_module" };
    let running =
        start(&format!("directives = \"\"\"\n<IfModule {own}>\nMaxRequestWorkers 75\n</IfModule>\n\"\"\"")).unwrap();
    assert_eq!(running.settings.values["MaxRequestWorkers"], "75");
    drop(running);
    debian.site(debian.port, "www", "KeepAlive On\n");
    let told = |error: &ServerError| scene.told(error);
    assert_eq!(
        told(&start("directives = \"KeepAlive Off\"").unwrap_err()),
        "DIR/plan.toml:10: KeepAlive Off: the virtual host that answers has its own at \
         MACHINE/apache2/sites-enabled/000-default.conf:8: KeepAlive On; change it there (Apache)"
    );
    let running = start("directives = \"KeepAlive Off\"\nallow_warnings = [\"KeepAlive Off\"]").unwrap();
    assert!(
        running.notes.iter().any(|note| note.starts_with("KeepAlive Off: the virtual host")),
        "{:?}",
        running.notes
    );
    assert_eq!(
        told(&start("directives = \"MaxRequestWorkers four\"").unwrap_err()),
        "DIR/plan.toml:10: MaxRequestWorkers four: AH00182: WARNING: MaxRequestWorkers of 0 not allowed, increasing to 1. (Apache)"
    );
    assert!(told(&start("directives = \"Listen 127.0.0.1:80\\nPidFile x\"").unwrap_err()).contains("PidFile x"));
}

fn derived_keeps_tls() {
    let Some(scene) = scene() else { return };
    let Scene { stage, debian, .. } = &scene;
    if !debian.etc().join("mods-available/ssl.load").exists() {
        return skipped("there is no mod_ssl");
    }
    for name in ["ssl.load", "ssl.conf", "socache_shmcb.load"] {
        let _ = symlink(format!("../mods-available/{name}"), debian.etc().join("mods-enabled").join(name));
    }
    let (secure, www) = (free_port(), debian.folder().join("www"));
    let certificates =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../app/tests/certificates").canonicalize().unwrap();
    debian
        .write("ports.conf", &format!("<IfModule ssl_module>\nListen {secure}\n</IfModule>\nListen {}\n", debian.port));
    debian.write(
        "sites-enabled/tls.conf",
        &format!(
            "<VirtualHost _default_:{secure}>\nDocumentRoot '{0}'\nSSLEngine on\nSSLCertificateFile '{1}/server.pem'\n\
             SSLCertificateKeyFile '{1}/server.key'\n<Directory '{0}'>\nRequire all granted\n</Directory>\n</VirtualHost>\n",
            www.display(),
            certificates.display()
        ),
    );
    let start = |more: &str| stage.start(&stage.plan("apache", &keys(debian, more), ""), &[]).unwrap();
    let plain = start("");
    assert!(!plain.tls && ask(plain.address, "GET /").ends_with("the first site\n"));
    drop(plain);
    let running = start(&format!("port = {secure}"));
    assert!(running.tls);
    let client = ["s_client", "-quiet", "-connect"];
    let output = std::process::Command::new("openssl")
        .args(client)
        .arg(running.address.to_string())
        .stdin(
            fs::File::open({
                let request = stage.dir.path().join("request");
                fs::write(&request, "GET / HTTP/1.0\r\n\r\n").unwrap();
                request
            })
            .unwrap(),
        )
        .output();
    let Ok(output) = output else { return skipped("there is no openssl") };
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("the first site"), "{said} {}", String::from_utf8_lossy(&output.stderr));
}

fn derived_names_what_is_wrong() {
    let Some(scene) = scene() else { return };
    let Scene { stage, debian, .. } = &scene;
    let told = |more: &str, variant: &str| {
        let plan = stage.plan("apache", &keys(debian, more), variant);
        let error = stage.control(&plan).check(&stage.place(), &plan.variants[0]).unwrap_err();
        scene.told(&error)
    };
    let main = "MACHINE/apache2/apache2.conf";
    assert_eq!(
        told("port = 1", ""),
        format!("DIR/plan.toml:4: server.port: {main} listens on no such port; there is {}", debian.port)
    );
    debian.write("conf-enabled/broken.conf", "KeepAlive On\nKeepAliv On\n");
    let broken = told("", "");
    assert!(broken.starts_with(&format!("DIR/plan.toml:3: server.from: Apache refuses {main}: AH00526: Syntax error on line 2 of MACHINE/apache2/conf-enabled/broken.conf: Invalid command 'KeepAliv'")), "{broken}");
    fs::remove_file(debian.etc().join("conf-enabled/broken.conf")).unwrap();
    let nowhere = stage.plan("apache", "from = \"none.conf\"", "");
    let error = stage.control(&nowhere).check(&stage.place(), &nowhere.variants[0]).unwrap_err();
    assert_eq!(
        stage.told(&error),
        "DIR/plan.toml:3: server.from: cannot read DIR/none.conf: No such file or directory (os error 2)"
    );
    // What it warns about anyway is no mistake of the plan's, and is said.
    debian.write("conf-enabled/warns.conf", "MaxRequestWorkers 4000\nServerLimit 100\n");
    let plan = stage.plan("apache", &keys(debian, ""), "directives = \"KeepAliveTimeout 3\"");
    let running = stage.start(&plan, &[]).unwrap();
    assert!(
        running.notes.iter().any(|note| note.starts_with("Apache warns of the machine's configuration: AH")),
        "{:?}",
        running.notes
    );
    assert_eq!(running.settings.values["KeepAliveTimeout"], "3");
}

/// Without mod_status and mod_info the pages that tell what is in force would be missing.
fn derived_loads_what_is_missing() {
    let Some(scene) = scene() else { return };
    let Scene { stage, debian, .. } = &scene;
    for name in ["status.load", "status.conf", "info.load", "info.conf"] {
        let _ = fs::remove_file(debian.etc().join("mods-enabled").join(name));
    }
    let running =
        stage.start(&stage.plan("apache", &keys(debian, ""), "directives = \"MaxRequestWorkers 60\""), &[]).unwrap();
    assert_eq!((running.settings.worker_limit, running.settings.values["ExtendedStatus"].as_str()), (Some(60), "Off"));
    // The site's own paths are its own.
    assert!(ask(running.address, "GET /server-status").starts_with("HTTP/1.1 404 "));
}
