//! Loads that another machine sends, through a real sshd between two network namespaces.

mod tool;

use rustix::process::{Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::MetadataExt;
use tool::far::{Far, NEAR, done, wait_until};

/// A plan of two variants, each asked so often in each of two blocks.
fn plan(scene: &Far, load: &str) -> String {
    scene.tool.plan(&format!(
        "blocks = 2\naa = false\n[server]\nkind = \"embedded\"\n[variant.a]\ndirectives = \"Workers 4\"\n\
         [variant.b]\ndirectives = \"Workers 16\"\n[cooldown]\nlimit = \"0s\"\n[load]\nfrom = \"ssh:far\"\n\
         [load.l]\npath = \"/\"\nconnections = 4\n{load}\n"
    ))
}

fn trials(scene: &Far) -> Vec<Value> {
    let id = scene.tool.run_ids().pop().expect("a run");
    let text = scene.tool.run(&["report", &id, "--json"]).out;
    let report: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    report["cells"].as_array().expect("cells").clone()
}

#[test]
fn a_plan_is_carried_out_from_another_machine() {
    let Some(scene) = Far::new("") else { return };
    let plan = plan(&scene, "requests = 300");
    let ran = scene.run(&["run", &plan, "--plain"]);
    assert!([0, 1, 3].contains(&ran.code), "{ran:?}");
    assert!(ran.out.contains("load sent by ssh:far ("), "{ran:?}");
    // Every request that was asked for, and none else.
    assert_eq!(ran.err.matches(", 0 failed").count(), 4, "{ran:?}");
    for cell in trials(&scene) {
        assert_eq!(cell["counts"]["good"].as_u64().or(cell["good"].as_u64()), Some(600), "{cell:#}");
    }
    // Nothing is left there but the program.
    wait_until("the generator ends", || scene.generators().is_empty());
    let cached = scene.cached();
    assert_eq!(cached.len(), 1, "{cached:?}");
    let before = fs::metadata(&cached[0]).unwrap().ino();
    // It is not copied again, unless it is not what it was.
    assert!([0, 1, 3].contains(&scene.run(&["run", &plan, "--plain"]).code));
    assert_eq!(fs::metadata(&cached[0]).unwrap().ino(), before);
    fs::write(&cached[0], "#!/bin/sh\necho something else\n").unwrap();
    assert!([0, 1, 3].contains(&scene.run(&["run", &plan, "--plain"]).code));
    assert_ne!(fs::metadata(&cached[0]).unwrap().ino(), before);
}

#[test]
fn one_load_comes_over_a_narrow_cable() {
    let Some(scene) = Far::new("") else { return };
    // The program goes there before the cable is narrow.
    let url = format!("http://{NEAR}:8080/");
    let load = |more: &[&str]| {
        let args = ["load", &url, "--from", "ssh:far", "--i-operate", NEAR, "--no-store", "--plain", "--json"];
        scene.run(&[&args[..], more].concat())
    };
    let nobody = load(&["-n", "5"]);
    assert_eq!((nobody.code, nobody.err.contains("nobody listens there")), (4, true), "{nobody:?}");
    let mut server = scene.spawn(&["serve", "--listen", &format!("{NEAR}:8080")]);
    wait_until("the server listens", || load(&["-n", "1"]).code == 0);
    scene.limit("1mbit");
    let loaded = load(&["-n", "200", "-c", "3"]);
    server.kill().expect("our own child");
    server.wait().expect("our own child");
    assert_eq!(loaded.code, 0, "{loaded:?}");
    let view: Value = serde_json::from_str(&loaded.out).expect("JSON");
    let away = &view["generator"]["away"];
    assert_eq!(away["from"], "ssh:far", "{view:#}");
    assert_eq!(view["counts"]["good"], 200, "{view:#}");
    // One clock in truth: what separates them is what is not known.
    let (offset, uncertainty) = (away["offset_ns"].as_i64().unwrap(), away["uncertainty_ns"].as_u64().unwrap());
    assert!(offset.unsigned_abs() <= uncertainty, "{away:#}");
    // What was received does not fit through the cable in less, after the first 16 KiB that it takes at once.
    let bytes = view["rate"]["bytes_in_per_s"].as_f64().unwrap() * view["window_s"].as_f64().unwrap();
    let least = (bytes - 16.0 * 1024.0) * 8.0 / 1e6;
    assert!(least > 0.0 && view["window_s"].as_f64().unwrap() > least, "{view:#}");
}

#[test]
fn whoever_is_killed_nothing_goes_on() {
    let Some(scene) = Far::new("") else { return };
    let plan = plan(&scene, "duration = \"60s\"");
    // The near end.
    let mut run = scene.spawn(&["run", &plan, "--plain"]);
    wait_until("the load is sent", || !scene.generators().is_empty());
    run.kill().expect("our own child");
    run.wait().expect("our own child");
    wait_until("the generator ends with it", || scene.generators().is_empty());
    // The far end.
    let run = scene.spawn(&["run", &plan, "--plain"]);
    wait_until("the load is sent", || !scene.generators().is_empty());
    for pid in scene.generators() {
        kill_process(pid, Signal::KILL).expect("root may");
    }
    let ended = tool::Finished::of(&run.wait_with_output().expect("our own child"));
    assert_eq!(ended.code, 5, "{ended:?}");
    assert!(ended.err.contains("webdyno: ssh:far: "), "{ended:?}");
    // What stays there is the program, for the next time.
    assert!(scene.cached().iter().all(|path| path.file_name().unwrap().to_string_lossy().starts_with("generator-")));
}

#[test]
fn what_is_in_the_way_is_one_clear_line() {
    let Some(scene) = Far::new("") else { return };
    let url = format!("http://{NEAR}:8080/");
    let load = |machine: &str| {
        let from = format!("ssh:{machine}");
        scene.run(&["load", &url, "--from", &from, "--i-operate", NEAR, "--no-store", "--plain"])
    };
    let check = |machine: &str, code: i32, part: &str| {
        let told = load(machine);
        assert_eq!((told.code, told.err.lines().count()), (code, 1), "{told:?}");
        assert!(told.err.starts_with(&format!("webdyno: ssh:{machine}: ")) && told.err.contains(part), "{told:?}");
    };
    check("stranger", 5, "does not let us in");
    check("unknown", 5, "does not know its host key");
    check("nowhere.invalid", 5, "this must work first: ssh nowhere.invalid true");
    let loopback = scene.run(&["load", "http://127.0.0.1:8080/", "--from", "ssh:far", "--no-store"]);
    assert!(loopback.code == 2 && loopback.err.contains("each machine's own"), "{loopback:?}");
    let not_ours = scene.run(&["load", &url, "--from", "ssh:far", "--no-store"]);
    assert!(not_ours.code == 2 && not_ours.err.contains("--i-operate 10.77.0.1"), "{not_ours:?}");
    let no_ssh = scene
        .command(&["load", &url, "--from", "ssh:far", "--i-operate", NEAR, "--no-store"])
        .env("WEBDYNO_SSH", "/nonexistent/ssh")
        .output()
        .unwrap();
    let no_ssh = tool::Finished::of(&no_ssh);
    assert!(no_ssh.code == 5 && no_ssh.err.contains("openssh-client"), "{no_ssh:?}");
}

#[test]
fn a_far_machine_without_a_place_for_it_says_so() {
    let Some(scene) = Far::new("") else { return };
    let url = format!("http://{NEAR}:8080/");
    let folders = ["cache", "far-tmp"].map(|name| scene.tool.path(name).display().to_string());
    let check = |options: &str, part: &str| {
        for folder in &folders {
            assert!(done(&["mount", "-t", "tmpfs", "-o", options, "none", folder]), "{options}");
        }
        let told = scene.run(&["load", &url, "--from", "ssh:far", "--i-operate", NEAR, "--no-store", "--plain"]);
        let left = scene.cached();
        for folder in &folders {
            assert!(done(&["umount", folder]));
        }
        assert_eq!((told.code, told.err.lines().count()), (5, 1), "{told:?}");
        assert!(told.err.contains(part), "{told:?}");
        assert!(left.is_empty(), "{left:?}");
    };
    check("noexec,size=1m", "without execution (noexec)");
    check("ro", "cannot be written");
    check("size=1m", "No space left on device; make room for");
}

#[test]
fn a_far_machine_of_another_kind_is_refused() {
    // What the other machine is, its own uname says.
    let folder = tempfile::tempdir().unwrap();
    let uname = folder.path().join("uname");
    fs::write(&uname, "#!/bin/sh\n[ \"$1\" = -m ] && echo sparc64 || echo Linux\n").unwrap();
    assert!(done(&["chmod", "755", &uname.display().to_string()]));
    let Some(scene) = Far::new(&format!("PATH={}:/usr/bin:/bin", folder.path().display())) else { return };
    let told = scene.run(&["load", &format!("http://{NEAR}/"), "--from", "ssh:far", "--i-operate", NEAR, "--no-store"]);
    assert_eq!(told.code, 5, "{told:?}");
    assert!(told.err.contains("ssh:far: that is a Linux sparc64 machine"), "{told:?}");
    assert!(scene.cached().is_empty());
}
