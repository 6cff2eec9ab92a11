//! `webdyno admission` through the real binary, against the status that the module's own tests render and a controller that is a thread
//! of the test. With a real Apache it is tested where the module is.

mod tool;

use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};
use tool::{Finished, Tool};

const GOLDEN: &str = include_str!("../../modules/mod_admission/tests/golden/status.json");

/// Seconds since 1970.
fn now() -> f64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970").as_secs_f64()
}

/// A server's two files in a folder of their own.
struct Server {
    tool: Tool,
    folder: tempfile::TempDir,
}

impl Server {
    fn new() -> Server {
        let server = Server { tool: Tool::new(), folder: tempfile::tempdir().expect("a folder") };
        server.status(|_| {});
        server
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("status.json")
    }

    fn control(&self) -> PathBuf {
        self.folder.path().join("control")
    }

    /// Writes a status of now, as the controller would.
    fn status(&self, change: impl FnOnce(&mut Value)) {
        publish(&self.file(), &self.control(), change);
    }

    fn run(&self, args: &[&str]) -> Finished {
        let file = self.file().display().to_string();
        let all: Vec<&str> = ["admission"].into_iter().chain(args.iter().copied()).chain(["--file", &file]).collect();
        self.tool.run(&all)
    }

    fn set(&self, args: &[&str]) -> Finished {
        self.run(&[&["set"], args].concat())
    }

    /// A controller that takes a new content of the control file, or refuses it.
    fn controller(&self, takes: bool) -> Controller {
        let (file, control) = (self.file(), self.control());
        let end = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&end);
        // Before anybody can change it.
        let mut last = fs::read_to_string(&control).unwrap_or_default();
        let thread = std::thread::spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(20));
                let text = fs::read_to_string(&control).unwrap_or_default();
                if text == last {
                    continue;
                }
                last = text;
                publish(&file, &control, |status| {
                    if takes {
                        status["control_generation"] = 4.into();
                        status["groups"][0]["limit"] = 8.into();
                        status["groups"][0]["configured_limit"] = 8.into();
                    } else {
                        status["control_error"] = "line 1: limit=8: is not between min=1 and max=6".into();
                    }
                });
            }
        });
        Controller { end, thread: Some(thread) }
    }
}

fn publish(file: &Path, control: &Path, change: impl FnOnce(&mut Value)) {
    let mut status: Value = serde_json::from_str(GOLDEN).expect("JSON");
    status["written"] = json!(now());
    status["started"] = json!(now() - 3600.0);
    status["control_file"] = json!(control.display().to_string());
    status["control_error"] = Value::Null;
    change(&mut status);
    let next = file.with_extension("next");
    fs::write(&next, status.to_string()).expect("our own folder");
    fs::rename(next, file).expect("our own folder");
}

struct Controller {
    end: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Controller {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

#[test]
fn a_status_is_a_table_or_the_servers_own_words() {
    let server = Server::new();
    let told = server.run(&["status", "--entries", "--lang", "en"]);
    assert_eq!((told.code, told.err.as_str()), (0, ""), "{told:?}");
    for expected in
        ["process 4242", "Memory budget: 375 MiB of 800 MiB held", "uploads", "/var/www/html/sleep.php: held 4"]
    {
        assert!(told.out.contains(expected), "no `{expected}` in {}", told.out);
    }
    let told = server.run(&["status", "--json"]);
    let facts: Value = serde_json::from_str(&told.out).expect("JSON");
    assert_eq!((&facts["schema"], &facts["servers"][0]["stale"]), (&"webdyno-admission".into(), &false.into()));
    assert_eq!(facts["servers"][0]["status"]["table"]["entries"], 64);
    assert!(server.run(&["status", "--lang", "ja"]).out.contains("メモリー枠"));
}

#[test]
fn a_server_that_is_gone_is_said_to_be() {
    let server = Server::new();
    server.status(|status| status["written"] = json!(now() - 10_800.0));
    let told = server.run(&["status", "--lang", "en"]);
    assert_eq!(told.code, 4, "{told:?}");
    assert!(told.out.contains("! Written 3.0 h ago: the server is gone, or its controller."), "{}", told.out);
    fs::remove_file(server.file()).expect("our own file");
    let told = server.run(&["status"]);
    assert_eq!(told.code, 4, "{told:?}");
    assert!(told.err.contains("is not there; is mod_admission loaded and the server running?"), "{told:?}");
}

#[test]
fn a_limit_is_set_and_in_force() {
    let server = Server::new();
    fs::write(server.control(), "# ours\nphp limit=4 # for now\n").expect("our own file");
    fs::set_permissions(server.control(), fs::Permissions::from_mode(0o640)).expect("our own file");
    let dry = server.set(&["php", "limit=8", "--dry-run"]);
    assert_eq!(dry.code, 0, "{dry:?}");
    assert!(dry.out.ends_with("@@ line 2 @@\n-php limit=4 # for now\n+php limit=8 # for now\n"), "{}", dry.out);
    let controller = server.controller(true);
    let told = server.set(&["php", "limit=8"]);
    assert_eq!((told.code, told.out.as_str()), (0, "php: limit 4 -> 8, in force\n"), "{told:?}");
    drop(controller);
    assert_eq!(fs::read_to_string(server.control()).expect("our own file"), "# ours\nphp limit=8 # for now\n");
    assert_eq!(fs::metadata(server.control()).expect("our own file").mode() & 0o777, 0o640);
    let again = server.set(&["php", "limit=8"]);
    assert_eq!(again.code, 0, "{again:?}");
    assert!(again.out.ends_with("says so already; nothing is changed\n"), "{again:?}");
}

#[test]
fn what_a_server_refuses_or_does_not_take_is_told() {
    let server = Server::new();
    believed(&server.control(), "");
    let refused = server.controller(false);
    let told = server.set(&["php", "limit=8"]);
    drop(refused);
    assert_eq!(told.code, 2, "{told:?}");
    assert!(
        told.err.contains("line 1: limit=8: is not between min=1 and max=6; the values before it stay in force"),
        "{told:?}"
    );
    server.status(|_| {});
    let told = server.set(&["php", "limit=9"]);
    assert_eq!(told.code, 4, "{told:?}");
    assert!(told.err.contains("no server took it within 3 s"), "{told:?}");
}

#[test]
fn mistakes_change_nothing() {
    let server = Server::new();
    let check = |args: &[&str], code: i32, says: &str| {
        let told = server.set(args);
        assert_eq!(told.code, code, "{told:?}");
        assert_eq!(told.err.lines().count(), 1, "{told:?}");
        assert!(told.err.contains(says), "no `{says}` in {told:?}");
        assert!(!server.control().exists());
    };
    check(&["pph", "limit=8"], 2, "there is no group `pph`; the server has php, uploads, never-set, and `memory`");
    check(&["php", "limit=many"], 2, "limit takes a number from 1 to 1000000, or `none`, not `many`");
    check(&["php"], 2, "is missing (try `webdyno admission");
    server.status(|status| status["control_file"] = Value::Null);
    check(&["php", "limit=8"], 2, "add `AdmissionControlFile");
    server.status(|_| {});
    check(&["php", "limit=8"], 2, "control is not there yet; make it, empty: install -m 644 /dev/null /");
}

/// A file that a server would believe, whatever the tester's umask.
fn believed(file: &Path, text: &str) {
    fs::write(file, text).expect("our own file");
    fs::set_permissions(file, fs::Permissions::from_mode(0o644)).expect("our own file");
}

/// Who runs the server names the file, and may be in the wrong hands.
#[test]
fn only_a_control_file_is_changed() {
    let server = Server::new();
    let check = |text: &str, says: &str| {
        believed(&server.control(), text);
        let told = server.set(&["php", "limit=8"]);
        assert_eq!(told.code, 2, "{told:?}");
        assert!(told.err.contains(says), "no `{says}` in {told:?}");
        assert_eq!(fs::read_to_string(server.control()).expect("our own file"), text);
    };
    check("# of sudo\nroot ALL=(ALL:ALL) ALL\n", "line 2 of ");
    check("php limit=4\nphp:x:1000:1000::/home/php:/bin/sh\n", "line 2 of ");
    let real = server.folder.path().join("real");
    fs::rename(server.control(), &real).expect("our own folder");
    believed(&real, "php limit=4\n");
    std::os::unix::fs::symlink("real", server.control()).expect("our own folder");
    let told = server.set(&["php", "limit=8"]);
    assert!(told.code == 2 && told.err.contains("is a symbolic link"), "{told:?}");
    fs::remove_file(server.control()).expect("our own link");
    fs::rename(real, server.control()).expect("our own folder");
    fs::set_permissions(server.control(), fs::Permissions::from_mode(0o666)).expect("our own file");
    let told = server.set(&["php", "limit=8"]);
    assert!(told.code == 2 && told.err.contains("can be written by others"), "{told:?}");
    assert_eq!(fs::read_to_string(server.control()).expect("our own file"), "php limit=4\n");
}

#[test]
fn what_stands_there_already_need_not_be_in_force() {
    let server = Server::new();
    believed(&server.control(), "php limit=8\n");
    server.status(|status| status["control_error"] = "line 1: limit=8: no".into());
    let told = server.set(&["php", "limit=8"]);
    assert!(told.code == 2 && told.err.contains("refuses it: line 1: limit=8: no"), "{told:?}");
    server.status(|status| status["written"] = json!(now() - 60.0));
    let told = server.set(&["php", "limit=8"]);
    assert!(told.code == 4 && told.err.contains("the server is gone"), "{told:?}");
}

#[test]
fn a_refused_change_is_taken_back() {
    let server = Server::new();
    believed(&server.control(), "php limit=4 # for now\n");
    let refused = server.controller(false);
    let told = server.set(&["php", "limit=8"]);
    drop(refused);
    assert!(told.code == 2 && told.err.contains("is as it was"), "{told:?}");
    assert_eq!(fs::read_to_string(server.control()).expect("our own file"), "php limit=4 # for now\n");
}

#[test]
fn a_watch_writes_rows_with_rates() {
    let server = Server::new();
    let (file, control) = (server.file(), server.control());
    let began = now();
    // Ten a second, by the same clock as its time, however long a turn takes.
    let write = move || {
        publish(&file, &control, |status| {
            let written = now();
            status["written"] = json!(written);
            status["started"] = json!(1.0);
            status["groups"][0]["counts"]["rejected"] = json!(1000 + (10.0 * (written - began)) as u64);
        });
    };
    write();
    let over = Arc::new(AtomicBool::new(false));
    let ended = Arc::clone(&over);
    let thread = std::thread::spawn(move || {
        while !ended.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(100));
            write();
        }
    });
    let writer = Controller { end: over, thread: Some(thread) };
    let told = server.run(&["watch", "-n", "3"]);
    drop(writer);
    assert_eq!((told.code, told.err.as_str()), (0, ""), "{told:?}");
    let rows: Vec<&str> = told.out.lines().collect();
    assert_eq!(rows.len(), 1 + 3 * 3, "{}", told.out);
    assert!(rows[0].starts_with("time      group"), "{}", told.out);
    let rejected = |row: &str| row.split_whitespace().nth(9).map(str::to_owned);
    assert_eq!(rejected(rows[1]).as_deref(), Some("–"), "{}", told.out);
    let rate: f64 = rejected(rows[4]).and_then(|rate| rate.parse().ok()).expect("a rate");
    assert!((8.0..=12.0).contains(&rate), "{}", told.out);
}
