//! Full disks, wherever a run writes, and a store that is damaged meanwhile: one clear line, the right exit code, what was measured before kept, nothing left.

mod tool;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use testkit::debian::Debian;
use testkit::own::Own;
use tool::scene::Scene;
use tool::small_disk::SmallDisk;
use tool::{Finished, Tool, remains};

const EMBEDDED: &str = "blocks = 3\naa = false\n[server]\nkind = \"embedded\"\ndirectives = \"Workers 2\"\n[load.a]\npath = \"/\"\n\
                        connections = 2\nduration = \"1s\"\n[cooldown]\nlimit = \"0s\"\n";

/// An Apache that logs as much as it answers.
const APACHE: &str = "blocks = 3\naa = false\n[server]\nkind = \"apache\"\nmpm = \"event\"\ndirectives = '''\nCustomLog logs/access.log \
                      \"%r %{User-Agent}i PADDING\"\n'''\n[load.a]\npath = \"/\"\nconnections = 2\nduration = \"2s\"\n[cooldown]\nlimit = \"0s\"\n";

fn disk(tool: &Tool, kib: u32) -> Option<SmallDisk> {
    SmallDisk::new(&tool.path("disk"), kib)
}

/// A run with that in its environment, to be waited for.
fn run_with(tool: &Tool, plan: &str, name: &str, value: &Path) -> Command {
    let mut command = tool.command(&["run", &tool.plan(plan), "--plain"]);
    command.env(name, value).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Fills the disk as soon as a line of progress says `from`, and lets the run end.
fn filled(child: Child, from: &str, disk: &SmallDisk) -> Finished {
    meanwhile(child, from, || disk.fill())
}

/// Has something happen as soon as a line of progress says `from`, and lets the run end.
fn meanwhile(mut child: Child, from: &str, what: impl FnOnce()) -> Finished {
    let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains(from)), "it never said `{from}`");
    what();
    let said: Vec<String> = lines.collect();
    let finished = Finished::of(&child.wait_with_output().expect("it ends"));
    Finished { err: said.join("\n"), ..finished }
}

/// The last line of what it said begins and ends so.
#[track_caller]
fn check(finished: &Finished, code: i32, says: &[&str]) {
    let last = finished.err.lines().last().unwrap_or_default();
    assert_eq!(finished.code, code, "{finished:?}");
    assert!(
        last.starts_with("webdyno: ") && says.iter().all(|part| last.contains(part)),
        "no {says:?} in {finished:?}"
    );
}

#[test]
fn the_disk_of_the_runs_folder_is_full_before() {
    let tool = Tool::new();
    let Some(disk) = disk(&tool, 512) else { return };
    disk.fill();
    let apache = APACHE.replace("PADDING", "x");
    for plan in [EMBEDDED, &apache] {
        let ended = Finished::of(&run_with(&tool, plan, "TMPDIR", &disk.path("")).output().expect("webdyno runs"));
        if ended.err.contains("no Apache here") {
            continue;
        }
        check(
            &ended,
            5,
            &["disk of the run's folder ", "is full: make room there, or set TMPDIR to a folder on another disk"],
        );
        assert_eq!(disk.names(), Vec::<String>::new());
    }
    assert_eq!(remains(&tool), Vec::<String>::new());
}

#[test]
fn a_servers_logs_fill_the_disk() {
    let tool = Tool::new();
    let Some(disk) = disk(&tool, 1024) else { return };
    // About ten requests fill it.
    let plan = APACHE.replace("PADDING", &"x".repeat(7000));
    let ended = Finished::of(&run_with(&tool, &plan, "TMPDIR", &disk.path("")).output().expect("webdyno runs"));
    if ended.err.contains("no Apache here") {
        return testkit::skip::skipped("no Apache httpd");
    }
    check(&ended, 5, &["disk of the run's folder ", "is full: make room there"]);
    assert_eq!((disk.names(), remains(&tool)), (Vec::new(), Vec::new()));
    let told = tool.run(&["runs"]).out;
    assert!(told.contains("is full"), "{told}");
}

#[test]
fn the_store_fills_up_between_two_trials() {
    let tool = Tool::new();
    let Some(disk) = disk(&tool, 4096) else { return };
    let store = disk.path("store.sqlite");
    let child = run_with(&tool, EMBEDDED, "WEBDYNO_STORE", &store).spawn().expect("webdyno starts");
    let ended = filled(child, "block 1", &disk);
    check(&ended, 6, &["store.sqlite: disk full", "make room there or give --store FILE on another disk"]);
    assert_eq!(remains(&tool), Vec::<String>::new());
    disk.free();
    // What was measured before is there, and can be gone on with.
    let store = store.to_str().expect("UTF-8");
    let told = tool.run(&["report", "--store", store]);
    assert!(told.out.contains("1/1"), "{told:?}");
    let resumed = tool.run(&["run", "--resume", "latest", "--store", store, "--plain"]);
    assert!(resumed.code == 0 && resumed.out.contains("3/3"), "{resumed:?}");
}

/// All trials are made and kept, and only their report fails: that is said, and is not what an interrupt before the first one is.
#[test]
fn the_store_is_damaged_between_two_trials() {
    let tool = Tool::new();
    let store = tool.path("store.sqlite");
    let child = run_with(&tool, EMBEDDED, "WEBDYNO_STORE", &store).spawn().expect("webdyno starts");
    let ended = meanwhile(child, "block 1", || {
        let connection = rusqlite::Connection::open(&store).expect("a store");
        connection.busy_timeout(Duration::from_secs(10)).expect("a time");
        assert_eq!(connection.execute("UPDATE run SET head = '{'", []).expect("a run"), 1);
    });
    check(&ended, 6, &["store.sqlite: what is stored cannot be read"]);
    assert_eq!(remains(&tool), Vec::<String>::new());
}

#[test]
fn the_journal_cannot_be_written() {
    let tool = Tool::new();
    let Some(disk) = disk(&tool, 256) else { return };
    disk.fill();
    let state = disk.path("state");
    let ended = Finished::of(&run_with(&tool, EMBEDDED, "WEBDYNO_STATE_DIR", &state).output().expect("webdyno runs"));
    check(&ended, 5, &["cannot write ", ".journal: No space left on device; make room there"]);
    assert_eq!((remains(&tool), fs::read_dir(&state).expect("a folder").count()), (Vec::new(), 0));
}

#[test]
fn the_journals_disk_fills_up_between_two_trials() {
    let tool = Tool::new();
    let Some(disk) = disk(&tool, 256) else { return };
    let plan = EMBEDDED.replace("blocks = 3", "blocks = 100").replace("\"1s\"", "\"20ms\"");
    let child = run_with(&tool, &plan, "WEBDYNO_STATE_DIR", &disk.path("state")).spawn().expect("webdyno starts");
    let ended = filled(child, "block 1", &disk);
    check(&ended, 5, &["cannot write ", ".journal: No space left on device; make room there"]);
    assert_eq!(fs::read_dir(disk.path("state")).expect("a folder").count(), 0);
    assert_eq!(remains(&tool), Vec::<String>::new());
    let told = tool.run(&["report"]);
    assert!(told.out.contains("trials"), "what was measured is kept: {told:?}");
}

/// What a run in place will change stands in the journal before it begins: nothing needs room there later.
#[test]
fn the_journals_disk_fills_up_while_a_server_is_changed_in_place() {
    let Some(scene) = Scene::<Debian>::new() else { return };
    let Some(disk) = disk(&scene.tool, 256) else { return };
    let ini = scene.tool.path("php.ini");
    fs::write(&ini, "memory_limit = 1M\n").expect("a file");
    let variants = format!(
        "[variant.as-is]\n[variant.close]\ndirectives = \"KeepAlive Off\"\n[[variant.close.files]]\npath = \"{}\"\nappend = \"; more\\n\"",
        ini.display()
    );
    let plan = fs::read_to_string(scene.plan("in_place = true", &variants)).expect("a plan");
    let mut command = run_with(&scene.tool, &plan, "WEBDYNO_STATE_DIR", &disk.path("state"));
    let child = command.args(["--i-operate", &scene.own.main().to_string_lossy()]).spawn().expect("webdyno starts");
    let ended = filled(child, "block 1", &disk);
    assert!(matches!(ended.code, 0 | 1 | 3), "{ended:?}");
    assert_eq!(fs::read_to_string(&ini).expect("a file"), "memory_limit = 1M\n");
    assert_eq!(fs::read_dir(disk.path("state")).expect("a folder").count(), 0);
    scene.check_given_back();
}

/// Nothing can be written beside the configuration: it stays as it is, and the server as it runs.
#[test]
fn the_configurations_disk_is_full() {
    if !tool::is_root() {
        return testkit::skip::not_here("no root");
    }
    let tool = Tool::new();
    tool.tmp();
    let Some(disk) = disk(&tool, 2048) else { return };
    let Some(scene) = Scene::<Debian>::at(&disk.path(""), |_| {}) else { return };
    let plan = scene.plan("in_place = true", "[variant.close]\ndirectives = \"KeepAlive Off\"");
    let pid = scene.own.pid();
    disk.fill();
    let ended = scene.run(&plan);
    check(&ended, 5, &["cannot write ", "No space left on device; make room there"]);
    assert_eq!(scene.own.pid(), pid);
    scene.check_given_back();
}
