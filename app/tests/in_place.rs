//! Plans about an Apache that is there already: its running server changed in place, and instances derived from its configuration. It
//! stands in a folder of the test's own, laid out and started as Debian does.

mod tool;

use rustix::process::{Pid, Signal, kill_process};
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Child;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use testkit::debian::{Debian, Snapshot, changed};
use testkit::skip::{long_results, not_here, skipped};
use tool::{Finished, Tool, is_root, remains, remains_of};

/// How long after a kill nothing may be left.
const GRACE: Duration = Duration::from_secs(5);
/// A setting of the kernel that changes nothing for anybody within seconds.
const SETTING: &str = "net.ipv4.tcp_keepalive_probes";

/// Tests that change the kernel's setting do so one after another.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A running Apache and a tool to point at it.
struct Scene {
    tool: Tool,
    debian: Debian,
    before: Snapshot,
    _folder: tempfile::TempDir,
}

impl Scene {
    /// `None`, with the reason said, where there is no Debian Apache or no root.
    fn new() -> Option<Scene> {
        Scene::with(|_| {})
    }

    fn with(prepare: impl FnOnce(&Debian)) -> Option<Scene> {
        if !is_root() {
            not_here("no root");
            return None;
        }
        let folder = tempfile::Builder::new().prefix("debian-").tempdir_in("/tmp").expect("a folder");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("our own folder");
        let Some(debian) = Debian::new(folder.path()) else {
            skipped("there is no Debian apache2");
            return None;
        };
        prepare(&debian);
        debian.start();
        let before = debian.snapshot();
        Some(Scene { tool: Tool::new(), debian, before, _folder: folder })
    }

    /// A plan with short trials; `server` and `rest` are parts of it.
    fn plan(&self, server: &str, rest: &str) -> String {
        let main = self.debian.main();
        self.tool.plan(&format!(
            "blocks = 2\naa = false\n[server]\nkind = \"apache\"\nfrom = \"{}\"\n{server}\n{rest}\n[load.a]\npath = \"/\"\nconnections = 2\n\
             requests = 50\n[cooldown]\nlimit = \"0s\"\n",
            main.display()
        ))
    }

    fn args<'a>(&'a self, plan: &'a str, main: &'a str) -> [&'a str; 5] {
        ["run", plan, "--plain", "--i-operate", main]
    }

    fn run(&self, plan: &str) -> Finished {
        self.tool.run(&self.args(plan, &self.debian.main().to_string_lossy()))
    }

    fn spawn(&self, plan: &str) -> Child {
        self.tool.spawn(&self.args(plan, &self.debian.main().to_string_lossy()))
    }

    /// What is not as it was: files, the server's answer, what a run leaves behind.
    fn left(&self) -> Vec<String> {
        let mut found = changed(&self.before, &self.debian.snapshot());
        match answer(self.debian.port) {
            Some(answer) if answer.contains("the first site") && !answer.contains("Connection: close") => {}
            answer => found.push(format!("the server answers {answer:?}")),
        }
        let claims = fs::read_dir("/run").into_iter().flatten().flatten();
        let claims = claims.filter(|entry| entry.file_name().to_string_lossy().starts_with("webdyno-in-place-"));
        let of_this = |path: &PathBuf| {
            let text = fs::read_to_string(path).unwrap_or_default();
            self.tool.run_ids().iter().any(|id| text.starts_with(id.as_str()))
        };
        found.extend(
            claims.map(|entry| entry.path()).filter(of_this).map(|path| format!("{} is there", path.display())),
        );
        found
    }

    #[track_caller]
    fn check_given_back(&self) {
        let ended = Instant::now();
        let mut left = self.left();
        // A worker of before may answer once more.
        while !left.is_empty() && ended.elapsed() < GRACE {
            std::thread::sleep(Duration::from_millis(20));
            left = self.left();
        }
        assert_eq!(left, Vec::<String>::new());
        assert_eq!(remains(&self.tool), Vec::<String>::new());
    }
}

/// Two variants that differ in what needs a graceful restart, and one that needs a full one.
const VARIANTS: &str = "[variant.as-is]\n[variant.close]\ndirectives = \"KeepAlive Off\"\n[variant.few]\ndirectives = '''\nServerLimit 20\n\
                        MaxRequestWorkers 20\nThreadsPerChild 20\nKeepAlive Off\n'''\n";
/// The same where there are no threads.
const VARIANTS_OF_PREFORK: &str = "[variant.as-is]\n[variant.close]\ndirectives = \"KeepAlive Off\"\n[variant.few]\ndirectives = '''\n\
                                   ServerLimit 20\nMaxRequestWorkers 20\nKeepAlive Off\n'''\n";

fn variants() -> &'static str {
    let prefork = fs::exists("/etc/apache2/mods-enabled/mpm_prefork.load").unwrap_or(false);
    if prefork { VARIANTS_OF_PREFORK } else { VARIANTS }
}

/// What the site at a port answers to a request that would keep the connection.
fn answer(port: u16) -> Option<String> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()?;
    stream.set_read_timeout(Some(GRACE)).ok()?;
    stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").ok()?;
    let mut got = Vec::new();
    let mut piece = [0; 4096];
    while !got.ends_with(b"site\n") {
        match stream.read(&mut piece) {
            Ok(read) if read > 0 => got.extend_from_slice(&piece[..read]),
            _ => break,
        }
    }
    Some(String::from_utf8_lossy(&got).into_owned())
}

#[test]
fn a_run_in_place_gives_everything_back() {
    let Some(scene) = Scene::new() else { return };
    let plan = scene.plan("in_place = true", variants());
    let refused = scene.tool.run(&["run", &plan, "--plain"]);
    assert_eq!(refused.code, 2, "{}", refused.err);
    let main = scene.debian.main();
    assert!(refused.err.contains(&format!("say so once: --i-operate {}", main.display())), "{}", refused.err);
    let dry = scene.tool.run(&["run", &plan, "--dry-run"]);
    assert!(dry.code == 0 && dry.out.contains("in place: the running server of"), "{}{}", dry.out, dry.err);
    scene.check_given_back();
    let pid = scene.debian.pid();
    let ended = scene.run(&plan);
    assert!([0, 1, 3].contains(&ended.code), "{}{}", ended.out, ended.err);
    assert!(ended.out.contains("KeepAlive Off: close; few"), "{}", ended.out);
    assert!(ended.out.contains("MaxRequestWorkers 20: few"), "{}", ended.out);
    scene.check_given_back();
    assert_ne!(scene.debian.pid(), pid, "ServerLimit needed a full restart");
    // Said once, it is remembered.
    let again = scene.tool.run(&[
        "run",
        &scene.plan("in_place = true", "[variant.close]\ndirectives = \"KeepAlive Off\""),
        "--plain",
    ]);
    assert!([0, 1, 3].contains(&again.code), "{}{}", again.out, again.err);
    let pid = scene.debian.pid();
    scene.check_given_back();
    assert_eq!(scene.debian.pid(), pid, "a graceful restart keeps the process");
}

#[test]
fn a_main_file_without_folders_gets_a_line_and_loses_it() {
    let prepare = |debian: &Debian| {
        let text = fs::read_to_string(debian.main()).expect("a file");
        let one = |text: &str, name: &str| {
            let mut files: Vec<_> =
                fs::read_dir(debian.etc().join(name)).expect("a folder").flatten().map(|entry| entry.path()).collect();
            files.sort();
            let lines: Vec<String> = files.iter().map(|file| format!("Include {}", file.display())).collect();
            let (before, after) = text.split_once(&format!("IncludeOptional {name}/*.conf")).expect("Debian's line");
            format!("{before}{}{after}", lines.join("\n"))
        };
        let text = ["mods-enabled", "conf-enabled", "sites-enabled"].iter().fold(text, |text, name| one(&text, name));
        debian.write("apache2.conf", &text);
        fs::set_permissions(debian.main(), fs::Permissions::from_mode(0o640)).expect("our own file");
    };
    let Some(scene) = Scene::with(prepare) else { return };
    let ended = scene.run(&scene.plan("in_place = true", variants()));
    assert!([0, 1, 3].contains(&ended.code), "{}{}", ended.out, ended.err);
    assert!(ended.out.contains("KeepAlive Off: close; few"), "{}", ended.out);
    scene.check_given_back();
}

#[test]
fn what_does_not_come_into_force_ends_the_run_in_place() {
    let Some(scene) = Scene::with(|debian| debian.site(debian.port, "www", "KeepAliveTimeout 5\n")) else { return };
    let check = |directives: &str, code: i32, why: &str| {
        let plan = scene
            .plan("in_place = true", &format!("[variant.as-is]\n[variant.x]\ndirectives = '''\n{directives}\n'''"));
        let ended = scene.run(&plan);
        assert_eq!(ended.code, code, "{}{}", ended.out, ended.err);
        assert!(ended.err.lines().last().is_some_and(|line| line.contains(why)), "{}", ended.err);
        scene.check_given_back();
    };
    check("KeepAliv Off", 2, "plan.toml:10: KeepAliv Off: Invalid command 'KeepAliv'");
    check("MaxRequestWorkers four", 2, "plan.toml:10: MaxRequestWorkers four: AH00182: WARNING");
    check("Timeout x", 2, "takes a whole number; Apache would read something else");
    check("KeepAliveTimeout 2", 2, "the virtual host that answers has its own at ");
    check("PidFile x", 2, "is the machine's own, by which it is controlled; remove the line");
    check("CustomLog /var/log/apache2/webdyno-test common", 2, "would leave a file behind; write to ${run}/other.log");
    // Apache accepts it and cannot start with it.
    check(&format!("Listen 127.0.0.1:{}", scene.debian.port), 4, "could not bind to address 127.0.0.1:");
}

#[test]
fn two_runs_do_not_meet_on_one_server() {
    let Some(scene) = Scene::new() else { return };
    let long = scene.plan("in_place = true", variants()).replace("plan.toml", "long.toml");
    fs::write(
        &long,
        fs::read_to_string(scene.tool.path("plan.toml"))
            .expect("a plan")
            .replace("requests = 50", "duration = \"60s\""),
    )
    .expect("a plan");
    let mut first = scene.spawn(&long);
    let mut lines = BufReader::new(first.stderr.take().expect("piped")).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.starts_with("run ")), "it did not begin");
    let other = Tool::new();
    let main = scene.debian.main();
    let second = other.run(&[
        "run",
        &scene.tool.plan(&fs::read_to_string(&long).expect("a plan")),
        "--plain",
        "--i-operate",
        &main.to_string_lossy(),
    ]);
    assert_eq!(second.code, 5, "{}{}", second.out, second.err);
    assert!(second.err.contains("works on the server of") && second.err.contains("let it end first"), "{}", second.err);
    kill_process(Pid::from_child(&first), Signal::INT).expect("our own child");
    lines.for_each(drop);
    assert_eq!(first.wait().expect("it ends").code(), Some(130));
    scene.check_given_back();
}

#[test]
fn who_changes_the_configuration_meanwhile_keeps_the_change() {
    let Some(mut scene) = Scene::new() else { return };
    let plan = scene.plan("in_place = true", variants());
    let text = fs::read_to_string(&plan)
        .expect("a plan")
        .replace("requests = 50", "duration = \"300ms\"")
        .replace("blocks = 2", "blocks = 50");
    fs::write(&plan, text).expect("a plan");
    let mut child = scene.spawn(&plan);
    let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("block 1")), "no trial ended");
    let ports = format!("Listen {}\n# The administrator's own line.\n", scene.debian.port);
    scene.debian.write("ports.conf", &ports);
    let said: Vec<String> = lines.collect();
    assert_eq!(child.wait().expect("it ends").code(), Some(5), "{said:?}");
    let expected = "ports.conf changed while webdyno measured: the run ends, and that change is kept";
    assert!(said.iter().any(|line| line.ends_with(expected)), "{said:?}");
    assert_eq!(fs::read_to_string(scene.debian.etc().join("ports.conf")).expect("a file"), ports);
    let own = scene.debian.etc().join("ports.conf");
    scene.before.insert(own.clone(), scene.debian.snapshot()[&own].clone());
    scene.check_given_back();
}

/// Files of others and kernel settings, for a server that is not even the machine's.
#[test]
fn files_and_settings_are_part_of_a_variant() {
    if !is_root() {
        return not_here("no root");
    }
    let _alone = alone();
    let Some(before) = setting() else { return not_here("the kernel setting cannot be read") };
    let tool = Tool::new();
    let (ini, new, told) = (tool.path("php.ini"), tool.path("extra.ini"), tool.path("told"));
    fs::write(&ini, "memory_limit = 64M\n").expect("a file");
    fs::set_permissions(&ini, fs::Permissions::from_mode(0o640)).expect("our own file");
    std::os::unix::fs::chown(&ini, Some(65534), Some(65534)).expect("root may");
    let facts = |path: &PathBuf| {
        use std::os::unix::fs::MetadataExt;
        let facts = fs::metadata(path).expect("a file");
        (
            facts.ino(),
            facts.mode(),
            facts.uid(),
            facts.gid(),
            facts.mtime(),
            facts.mtime_nsec(),
            fs::read_to_string(path).expect("a file"),
        )
    };
    let as_it_was = facts(&ini);
    let seen = tool.path("seen");
    let script = format!(
        "cat '{0}' '{1}' /proc/sys/{2} >> '{3}' 2>/dev/null; exec {4} serve --listen 127.0.0.1:$PORT",
        ini.display(),
        new.display(),
        SETTING.replace('.', "/"),
        seen.display(),
        env!("CARGO_BIN_EXE_webdyno")
    );
    let plan = tool.plan(&format!(
        "blocks = 2\naa = false\n[server]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", \"\"\"{script}\"\"\"]\n\
         [variant.as-is]\n[[variant.more.files]]\npath = \"{}\"\nreplace = {{ \"64M\" = \"128M\" }}\nappend = \"; more\\n\"\n\
         reload = [\"sh\", \"-c\", \"echo told >> '{}'\"]\n[[variant.more.files]]\npath = \"{}\"\ncontent = \"extra\\n\"\n\
         [variant.more.sysctl]\n\"{SETTING}\" = \"8\"\n\
         [load.a]\npath = \"/\"\nconnections = 2\nrequests = 50\n[cooldown]\nlimit = \"0s\"\n",
        ini.display(),
        told.display(),
        new.display()
    ));
    let ended = tool.run(&["run", &plan, "--plain"]);
    if ended.err.contains("only root may change it") || ended.err.contains("Read-only") {
        return not_here("kernel settings cannot be changed here");
    }
    assert!([0, 1, 3].contains(&ended.code), "{}{}", ended.out, ended.err);
    let seen = fs::read_to_string(seen).expect("the server has looked");
    assert!(seen.contains(&format!("memory_limit = 64M\n{before}\n")), "{seen}");
    assert!(seen.contains("memory_limit = 128M\n; more\nextra\n8\n"), "{seen}");
    assert_eq!((facts(&ini), new.exists(), setting()), (as_it_was, false, Some(before)));
    assert!(fs::read_to_string(told).expect("told").lines().count() >= 3, "at each change, and at the end");
    assert_eq!(remains(&tool), Vec::<String>::new());
    // What cannot be done is said before anything is done.
    let text = fs::read_to_string(&plan).expect("a plan");
    let wrong = |from: &str, to: &str, expected: &str| {
        let text = text.replace(from, to);
        let ended = tool.run(&["run", &tool.plan(&text), "--plain"]);
        assert!(ended.err.contains(expected), "{}", ended.err);
    };
    wrong("\"64M\" =", "\"65M\" =", "does not say `65M`; nothing would be replaced");
    wrong(SETTING, "net.ipv4.no_such", "net.ipv4.no_such: this kernel has no such setting");
}

fn setting() -> Option<String> {
    Some(fs::read_to_string(format!("/proc/sys/{}", SETTING.replace('.', "/"))).ok()?.trim().to_owned())
}

// ---- killed ----------------------------------------------------------------------------------------------------------

/// What became of a run that was killed.
struct Killed {
    after: Duration,
    /// The guardian, too.
    both: bool,
    gone: Duration,
    left: Vec<String>,
}

/// Runs the plan and kills webdyno at a random moment, and its guardian, too, if `both`; then `webdyno restore` does its work.
fn kill(scene: &Scene, plan: &str, below_ms: u64, both: bool) -> Killed {
    let after = random_moment(below_ms);
    let mut child = scene.spawn(plan);
    // The moment itself is what is tested, so here time is waited for and not an event.
    std::thread::sleep(after);
    if both {
        for pid in guardians(scene) {
            // One that has ended is dead, too.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
    child.kill().expect("our own child");
    child.wait().expect("our own child");
    let killed = Instant::now();
    if both {
        scene.tool.run(&["restore"]);
    }
    let found = || {
        let mut found = scene.left();
        found.extend(remains_of(&scene.tool, &["20".to_owned()]));
        found
    };
    let mut left = found();
    while !left.is_empty() && killed.elapsed() < GRACE {
        std::thread::sleep(Duration::from_millis(20));
        left = found();
    }
    Killed { after, both, gone: killed.elapsed(), left }
}

fn guardians(scene: &Scene) -> Vec<Pid> {
    let state = scene.tool.path("state").to_string_lossy().into_owned();
    let processes = fs::read_dir("/proc").expect("/proc").flatten();
    let ours = |pid: &i32| {
        let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let command = String::from_utf8_lossy(&command).into_owned();
        command.contains("@guardian") && command.contains(&state)
    };
    processes
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(ours)
        .filter_map(Pid::from_raw)
        .collect()
}

fn random_moment(below_ms: u64) -> Duration {
    let mut bytes = [0; 8];
    rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty()).expect("randomness");
    Duration::from_millis(u64::from_ne_bytes(bytes) % below_ms)
}

/// So many kills, as a table, and how many of them left something.
fn kills(title: &str, scene: &Scene, plan: &str, count: u32) -> (String, usize) {
    let mut page = format!(
        "# {title}\n\n| # | after | guardian | all given back within | left 5 s later |\n|---|---|---|---|---|\n"
    );
    let mut bad = 0;
    for number in 1..=count {
        // Most of what can go wrong goes wrong while the server begins anew.
        let killed = kill(scene, plan, if number % 2 == 0 { 800 } else { 2500 }, number % 5 == 0);
        bad += usize::from(!killed.left.is_empty());
        let guardian = if killed.both { "killed, too; `webdyno restore`" } else { "" };
        let (after, gone) = (killed.after.as_secs_f64(), killed.gone.as_secs_f64());
        let _ = writeln!(page, "| {number} | {after:.2} s | {guardian} | {gone:.2} s | {} |", killed.left.join("; "));
    }
    let _ = writeln!(page, "\n{bad} of {count} left something.");
    (page, bad)
}

fn plan_in_place(scene: &Scene) -> String {
    let text = format!("{}[variant.few.sysctl]\n\"{SETTING}\" = \"8\"\n", variants());
    scene.plan("in_place = true", if setting().is_some() { &text } else { variants() })
}

#[test]
fn a_killed_run_in_place_is_given_back() {
    let Some(scene) = Scene::new() else { return };
    let _alone = alone();
    let before = setting();
    let (page, bad) = kills("killed in place", &scene, &plan_in_place(&scene), 5);
    assert_eq!((bad, setting()), (0, before), "{page}");
}

#[test]
fn a_killed_private_run_leaves_nothing() {
    let Some(scene) = Scene::new() else { return };
    let (page, bad) = kills("killed, private", &scene, &scene.plan("", variants()), 5);
    assert_eq!(bad, 0, "{page}");
}

#[test]
fn long_check_kills_in_place() {
    let Some(results) = long_results() else { return };
    let Some(scene) = Scene::new() else { return };
    let _alone = alone();
    let before = setting();
    let (page, bad) =
        kills("100 runs in place, each killed with -9 at a random moment", &scene, &plan_in_place(&scene), 100);
    fs::write(results.join("kills-in-place.md"), &page).expect("the results");
    assert_eq!((bad, setting()), (0, before), "{page}");
}

#[test]
fn long_check_kills_private() {
    let Some(results) = long_results() else { return };
    let Some(scene) = Scene::new() else { return };
    let (page, bad) =
        kills("300 private runs, each killed with -9 at a random moment", &scene, &scene.plan("", variants()), 300);
    fs::write(results.join("kills-private.md"), &page).expect("the results");
    assert_eq!(bad, 0, "{page}");
}
