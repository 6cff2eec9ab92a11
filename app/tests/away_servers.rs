//! Real servers of a plan that another machine loads, and the ends of a line that nobody closes.

mod tool;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};
use testkit::debian::Debian;
use testkit::nginx::Nginx;
use testkit::own::Own;
use tool::far::{Far, NEAR, done, wait_until};
use tool::scene::Scene;
use tool::{Finished, remains};

/// How long an end waits that hears nothing, and some time more.
const SILENCE: Duration = Duration::from_secs(90);

/// A plan of a server of that kind, with a variant that closes connections.
fn plan(kind: &str, close: &str, load: &str) -> String {
    format!(
        "blocks = 2\naa = false\n[server]\nkind = \"{kind}\"\n[variant.as-is]\n[variant.close]\ndirectives = \"{close}\"\n\
         [cooldown]\nlimit = \"0s\"\n[load]\nfrom = \"ssh:far\"\n[load.l]\npath = \"/\"\nconnections = 4\n{load}\n"
    )
}

/// What is left of runs; the far machine's own sshd has nothing to do with them.
fn left(scene: &Far) -> Vec<String> {
    remains(&scene.tool).into_iter().filter(|found| !found.contains("sshd")).collect()
}

#[test]
fn private_apache_and_nginx_are_reached_from_another_machine() {
    let Some(scene) = Far::new("") else { return };
    let servers =
        [("/usr/sbin/apache2", "apache", "KeepAlive Off"), ("/usr/sbin/nginx", "nginx", "keepalive_timeout 0")];
    for (program, kind, close) in servers {
        if !Path::new(program).exists() {
            testkit::skip::skipped(&format!("there is no {kind}"));
            continue;
        }
        let ran = scene.run(&["run", &scene.tool.plan(&plan(kind, close, "requests = 300")), "--plain", "--json"]);
        assert!([0, 1, 3].contains(&ran.code), "{ran:?}");
        let report: Value = serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
        for cell in report["cells"].as_array().expect("cells") {
            assert_eq!(cell["good"].as_u64(), Some(600), "{cell:#}");
        }
        let told = scene.tool.run(&["report"]).out;
        assert!(told.contains("load sent by ssh:far ("), "{told}");
        // The other machine's requests are the load's own.
        assert!(!told.contains("Somebody else used"), "{told}");
    }
    assert_eq!(left(&scene), Vec::<String>::new());
}

/// The machine's own server is loaded from a machine whose clock is a thousand seconds ahead.
#[test]
fn a_server_in_place_is_loaded_from_another_machine() {
    let Some(far) = Far::older(1000) else { return };
    far.enter();
    let Some(scene) = Scene::<Debian>::new() else { return };
    let plan = scene.plan("in_place = true", "[variant.as-is]\n[variant.close]\ndirectives = \"KeepAlive Off\"");
    let text = fs::read_to_string(&plan).expect("a plan").replace("[load.a]", "[load]\nfrom = \"ssh:far\"\n[load.a]");
    fs::write(&plan, text.replace("requests = 50", "duration = \"2s\"")).expect("a plan");
    let main = scene.own.main().display().to_string();
    let run = |words: &[&str]| {
        let mut command = scene.tool.command(words);
        Finished::of(&command.env("WEBDYNO_SSH", far.way()).output().expect("webdyno runs"))
    };
    let ran = run(&["run", &plan, "--json", "--i-operate", &main]);
    let report: Value = serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    assert!([0, 1, 3].contains(&ran.code), "{ran:?}");
    for cell in report["cells"].as_array().expect("cells") {
        assert!(cell["good"].as_u64().is_some_and(|good| good > 10), "{cell:#}");
        // What was read here while it was loaded from there.
        let evidence = cell["diagnosis"]["primary"]["evidence"].as_array().into_iter().flatten();
        let cores = evidence.filter(|one| one["name"] == "server-cores").find_map(|one| one["value"].as_f64());
        assert!(cores.is_some_and(|cores| cores > 0.0), "{cell:#}");
    }
    scene.check_given_back();
    let told = scene.tool.run(&["report"]).out;
    assert!(told.contains("load sent by ssh:far (") && !told.contains("Somebody else used"), "{told}");
    // One load tells how far apart the clocks are.
    let url = format!("http://{NEAR}:{}/", scene.own.port());
    let words = ["load", &url, "--from", "ssh:far", "--i-operate", NEAR, "--no-store", "--plain", "--json", "-n", "50"];
    let loaded = run(&words);
    let view: Value = serde_json::from_str(&loaded.out).unwrap_or_else(|error| panic!("{error}: {loaded:?}"));
    let away = &view["generator"]["away"];
    let (offset, uncertainty) = (away["offset_ns"].as_i64().unwrap(), away["uncertainty_ns"].as_u64().unwrap());
    assert!(offset.abs_diff(1_000_000_000_000) <= uncertainty, "{away:#}");
    assert_eq!(left(&far), Vec::<String>::new());
}

/// It listens on loopback only, where nobody else comes.
#[test]
fn a_server_in_place_that_no_other_machine_reaches() {
    let Some(far) = Far::new("") else { return };
    far.enter();
    let Some(scene) = Scene::<Nginx>::new() else { return };
    let plan = scene.plan("in_place = true", "[variant.as-is]\n[variant.close]\ndirectives = \"keepalive_timeout 0\"");
    let text = fs::read_to_string(&plan).expect("a plan").replace("[load.a]", "[load]\nfrom = \"ssh:far\"\n[load.a]");
    fs::write(&plan, text).expect("a plan");
    let main = scene.own.main().display().to_string();
    let mut command = scene.tool.command(&["run", &plan, "--plain", "--i-operate", &main]);
    let ran = Finished::of(&command.env("WEBDYNO_SSH", far.way()).output().expect("webdyno runs"));
    assert_eq!((ran.code, ran.err.lines().count()), (4, 1), "{ran:?}");
    let said = format!(
        "webdyno: no answer from {NEAR}:{} to 1 request: the server answers here, and ssh:far is refused;",
        scene.own.port()
    );
    assert!(ran.err.starts_with(&said), "{ran:?}");
    scene.check_given_back();
}

/// A firewall in between that drops what it is not to let through, or says that there is no way.
#[test]
fn a_server_in_place_that_a_firewall_keeps_from_the_other_machine() {
    for (on_the_far_one, rule) in [
        (false, format!("from {NEAR} ipproto tcp sport PORT blackhole")),
        (true, format!("to {NEAR} ipproto tcp dport PORT unreachable")),
    ] {
        let Some(far) = Far::new("") else { return };
        far.enter();
        let Some(scene) = Scene::<Debian>::new() else { return };
        far.block(on_the_far_one, &rule.replace("PORT", &scene.own.port().to_string()));
        let plan = scene.plan("in_place = true", "[variant.as-is]\n[variant.close]\ndirectives = \"KeepAlive Off\"");
        let text = fs::read_to_string(&plan).expect("a plan");
        let from = "[load]\nfrom = \"ssh:far\"\n[load.a]\ntimeout = \"500ms\"";
        fs::write(&plan, text.replace("[load.a]", from)).expect("a plan");
        let main = scene.own.main().display().to_string();
        let mut command = scene.tool.command(&["run", &plan, "--plain", "--i-operate", &main]);
        let ran = Finished::of(&command.env("WEBDYNO_SSH", far.way()).output().expect("webdyno runs"));
        assert_eq!((ran.code, ran.err.lines().count()), (4, 1), "{ran:?}");
        let said = format!(
            "webdyno: no answer from {NEAR}:{} to 1 request: the server answers here, and ssh:far does not get there;",
            scene.own.port()
        );
        assert!(ran.err.starts_with(&said), "{ran:?}");
        scene.check_given_back();
    }
}

/// The two machines of the fourth document, as its plan has them.
#[test]
fn the_fourth_documents_walk_is_a_plan() {
    let Some(scene) = Far::new("") else { return };
    let shipped = tool::shipped("php/limiter.toml");
    let text = fs::read_to_string(&shipped).expect("the plan");
    // A copy that the server's user may enter, wherever this checkout lies.
    let copy = tempfile::tempdir_in("/tmp").expect("a folder");
    fs::set_permissions(copy.path(), fs::Permissions::from_mode(0o755)).expect("our own folder");
    let sites = copy.path().join("sites");
    let from = Path::new(&shipped).parent().expect("its folder").join("../../sites");
    let copied = Command::new("cp").arg("-r").args([&from, &sites]).status();
    assert!(copied.is_ok_and(|status| status.success()), "{} cannot be copied", from.display());
    let opened = Command::new("chmod").args(["-R", "a+rX"]).arg(&sites).status();
    assert!(opened.is_ok_and(|status| status.success()), "{} cannot be opened", sites.display());
    let short = text
        .replace("# from = \"ssh:bench@192.0.2.7\"", "from = \"ssh:far\"")
        .replace("../../sites", &sites.to_string_lossy())
        .replace("until_decided = true\n", "blocks = 2\n")
        .replace("duration = \"1s\"", "duration = \"100ms\"")
        .replace("duration = \"5s\"", "requests = 60");
    assert!(short.contains("ssh:far") && short.contains("requests = 60"), "{short}");
    let ran = scene.run(&["run", &scene.tool.plan(&short), "--plain"]);
    if ran.err.contains("install the package") || ran.err.contains("no Apache") {
        return testkit::skip::skipped("no Apache with PHP and mod_lua");
    }
    assert!([0, 1, 3].contains(&ran.code), "{ran:?}");
    assert!(ran.out.contains("load sent by ssh:far ("), "{ran:?}");
    assert_eq!(ran.err.matches(", 0 failed").count(), ran.err.matches("  block ").count(), "{ran:?}");
    assert_eq!(left(&scene), Vec::<String>::new());
}

/// A run whose load is under way.
fn under_way(scene: &Far) -> Child {
    let run =
        scene.spawn(&["run", &scene.tool.plan(&plan("embedded", "KeepAlive Off", "duration = \"600s\"")), "--plain"]);
    wait_until("the load is sent", || scene.generators().iter().any(|&generator| is_connected(generator)));
    run
}

/// Whether it has connections beside that of ssh: it is there before the server is.
fn is_connected(generator: Pid) -> bool {
    let table = fs::read_to_string(format!("/proc/{}/net/tcp", generator.as_raw_nonzero())).unwrap_or_default();
    let established = table.lines().filter(|line| line.split_whitespace().nth(3) == Some("01"));
    established.count() > 1
}

#[track_caller]
fn until_no_generator(scene: &Far) {
    let since = Instant::now();
    while !scene.generators().is_empty() {
        assert!(since.elapsed() < SILENCE, "it goes on although nobody is heard");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[track_caller]
fn check_lost(ended: &Finished) {
    assert_eq!(ended.code, 5, "{ended:?}");
    let last = ended.err.lines().last().unwrap_or_default();
    assert!(last.starts_with("webdyno: ssh:far: "), "{ended:?}");
}

/// No connection is closed, and nothing comes through it any more.
#[test]
fn a_cable_that_is_pulled_out_ends_both_sides() {
    let Some(scene) = Far::new("") else { return };
    let run = under_way(&scene);
    scene.pull_out();
    until_no_generator(&scene);
    check_lost(&Finished::of(&run.wait_with_output().expect("our own child")));
    assert_eq!(left(&scene), Vec::<String>::new());
}

/// The near end hangs: the server could still be loaded, and nobody would see it.
#[test]
fn a_generator_that_hears_nothing_ends_by_itself() {
    let Some(scene) = Far::new("") else { return };
    let run = under_way(&scene);
    let pid = Pid::from_child(&run);
    kill_process(pid, Signal::STOP).expect("our own child");
    until_no_generator(&scene);
    kill_process(pid, Signal::CONT).expect("our own child");
    check_lost(&Finished::of(&run.wait_with_output().expect("our own child")));
    assert_eq!(left(&scene), Vec::<String>::new());
}

/// What lies in the cache passes for this program there, and is one of another version.
#[test]
fn a_generator_of_another_version_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (sum, lie) = (folder.path().join("sha256sum"), folder.path().join("lie"));
    fs::write(&sum, format!("#!/bin/sh\n[ -e '{0}' ] && exec cat '{0}'\nexec /usr/bin/sha256sum\n", lie.display()))
        .unwrap();
    assert!(done(&["chmod", "755", &sum.display().to_string()]));
    let Some(scene) = Far::new(&format!("PATH={}:/usr/bin:/bin", folder.path().display())) else { return };
    let plan = scene.tool.plan(&plan("embedded", "KeepAlive Off", "requests = 10"));
    assert!([0, 1, 3].contains(&scene.run(&["run", &plan, "--plain"]).code));
    wait_until("the generator ends", || scene.generators().is_empty());
    let cached = scene.cached().pop().expect("the program");
    let name = cached.file_name().expect("a name").to_string_lossy().into_owned();
    // The same program with another number in it.
    let (ours, theirs) = (concat!(env!("CARGO_PKG_VERSION"), " 1"), "9.9.9 1");
    let mut bytes = fs::read(&cached).expect("the program");
    let places: Vec<usize> = bytes
        .windows(ours.len())
        .enumerate()
        .filter(|(_, found)| *found == ours.as_bytes())
        .map(|(at, _)| at)
        .collect();
    assert!(!places.is_empty() && ours.len() == theirs.len());
    for at in places {
        bytes[at..at + ours.len()].copy_from_slice(theirs.as_bytes());
    }
    fs::write(&cached, bytes).expect("our own file");
    fs::write(&lie, name.trim_start_matches("generator-")).expect("our own file");
    let told = scene.run(&["run", &plan, "--plain"]);
    assert_eq!(told.code, 5, "{told:?}");
    let expected = format!(
        "the generator there is of another version ({theirs}, ours is {ours}); remove webdyno's folder in that account's cache"
    );
    assert!(told.err.contains(&expected), "{told:?}");
    assert_eq!(left(&scene), Vec::<String>::new());
}
