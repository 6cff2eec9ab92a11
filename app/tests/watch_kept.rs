//! What a watch leaves behind and how else it is seen, through the real binary: recordings, JSON lines, a port for metrics.

mod tool;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use tool::{Finished, Tool};

/// A recording of a few seconds; its id, and the rows that were seen meanwhile.
fn recorded(tool: &Tool) -> (String, String) {
    let done = tool.run(&["watch", "--record", "-cmdn", "1", "3"]);
    assert_eq!(done.code, 0, "{done:?}");
    let line = done.err.lines().find(|line| line.contains("recording ")).unwrap_or_else(|| panic!("{done:?}"));
    let id = line.split_whitespace().nth(2).expect("an id").to_owned();
    (id, done.out)
}

#[test]
fn a_replay_shows_the_same_rows() {
    let tool = Tool::new();
    let (id, rows) = recorded(&tool);
    let replayed = tool.run(&["watch", "--replay", &id]);
    assert_eq!((replayed.code, replayed.out.as_str()), (0, rows.as_str()), "{}", replayed.err);
    assert!(replayed.err.starts_with(&format!("webdyno: recording {id} of ")), "{}", replayed.err);
    // In any layout, thinned out, and by the beginning of its id.
    let other = tool.run(&["watch", "--replay", &id[..10], "--compat", "dstat-0.7.2", "-lt", "2"]);
    assert_eq!(other.out.lines().count(), 4, "{other:?}");
    assert!(other.out.starts_with("---load-avg--- ----system----\n"), "{other:?}");
    let thinned = tool.run(&["watch", "--replay=latest", "2", "1"]);
    assert_eq!(thinned.out.lines().count(), 3, "{thinned:?}");
    // How many readings is a matter of the machine: more while memory is short.
    let listed = tool.run(&["runs"]);
    assert!(listed.out.starts_with(&id) && listed.out.contains("-cmdn 1  recording, "), "{listed:?}");
}

#[test]
fn a_replay_knows_what_was_named_and_writes_no_file() {
    let tool = Tool::new();
    let (own, file) = (std::process::id().to_string(), tool.path("rows.csv"));
    let name = file.to_str().expect("a path");
    let done = tool.run(&["watch", "--record", "-m", "--tree", &own, "-l", "--output", name, "1", "2"]);
    assert_eq!((done.code, done.out.lines().count()), (0, 4), "{done:?}");
    let written = std::fs::read_to_string(&file).expect("the file");
    let replayed = tool.run(&["watch", "--replay", "latest"]);
    assert_eq!((replayed.code, replayed.out.as_str()), (0, done.out.as_str()), "{}", replayed.err);
    assert_eq!(std::fs::read_to_string(&file).expect("the file"), written);
}

#[test]
fn a_replay_of_nothing_is_one_line() {
    let tool = Tool::new();
    let check = |args: &[&str], code: i32, expected: &str| {
        let Finished { code: found, out, err } = tool.run(args);
        assert_eq!((found, out.as_str(), err.lines().count()), (code, "", 1), "{err}");
        assert!(err.contains(expected), "{err}");
    };
    check(&["watch", "--replay", "x"], 6, "there is no store here yet");
    assert_eq!(tool.run(&["watch", "--record", "-l", "1", "1"]).code, 0);
    check(&["watch", "--replay", "x"], 6, "no run `x`; `webdyno runs` lists them");
    check(&["watch", "--replay"], 2, "option --replay requires argument");
    check(&["watch", "--replay", "x", "--record"], 2, "--replay shows what was recorded");
    let done = tool.run(&["watch", "--record", "--store", "/proc/none/store", "1", "1"]);
    assert_eq!((done.code, done.out.as_str()), (6, ""), "{done:?}");
    // What the sampler was refused may come before it.
    let last = done.err.lines().last().unwrap_or_default();
    assert!(last.starts_with("webdyno: /proc/none/store: cannot make the folder of the store: "), "{done:?}");
}

#[test]
fn lines_of_json() {
    let tool = Tool::new();
    let done = tool.run(&["watch", "--json", "1", "2"]);
    assert_eq!(done.code, 0, "{done:?}");
    let lines: Vec<serde_json::Value> =
        done.out.lines().map(|line| serde_json::from_str(line).expect("an object on each line")).collect();
    assert_eq!(lines.len(), 2);
    assert_eq!((&lines[0]["schema"], lines[0]["elapsed_s"].is_null()), (&"webdyno-watch".into(), true));
    assert!(lines[1]["elapsed_s"].as_f64().is_some_and(|elapsed| elapsed > 0.5), "{}", lines[1]);
    assert!(lines[1]["memory"]["total_bytes"].as_u64().is_some_and(|bytes| bytes > 1 << 20));
    let shares =
        lines[1]["cpu"].as_object().expect("shares").values().filter_map(serde_json::Value::as_f64).sum::<f64>();
    assert!((shares - 100.0).abs() < 0.01, "{shares}");
    let (id, _) = recorded(&tool);
    let replayed = tool.run(&["watch", "--replay", &id, "--json"]);
    assert_eq!(replayed.out.lines().count(), 3, "{replayed:?}");
    assert!(replayed.out.contains(r#""devices":{"cpu":{"#), "a recording has every device");
}

#[test]
fn metrics_are_collected_while_rows_go_on() {
    let tool = Tool::new();
    let mut watching = tool
        .command(&["watch", "--metrics", "0", "-l", "1"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("webdyno starts");
    let said = BufReader::new(watching.stderr.take().expect("a pipe"));
    let address = said
        .lines()
        .map_while(Result::ok)
        .find_map(|line| line.split_once("http://")?.1.strip_suffix("/metrics").map(str::to_owned));
    let mut stream = TcpStream::connect(address.expect("an address")).expect("it listens");
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("text");
    watching.kill().expect("our own child");
    watching.wait().expect("our own child");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("# EOF\n"), "{answer}");
    for name in [
        "webdyno_cpu_seconds_total{mode=\"idle\"}",
        "webdyno_memory_free_bytes ",
        "webdyno_device_interface_sent_bytes_total{interface=\"lo\"}",
    ] {
        assert!(answer.contains(name), "{name}: {answer}");
    }
}

#[test]
fn a_port_that_cannot_be_had_is_one_line() {
    let tool = Tool::new();
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("a port").port().to_string();
    let done = tool.run(&["watch", "--metrics", &port, "1", "1"]);
    assert_eq!((done.code, done.out.as_str()), (5, ""), "{done:?}");
    let expected = format!(
        "webdyno: cannot serve metrics on 127.0.0.1:{port}: the port is in use; choose another, or 0 for a free one\n"
    );
    assert!(done.err.ends_with(&expected), "{done:?}");
    let done = tool.run(&["watch", "--metrics", "web1", "1", "1"]);
    assert_eq!(done.code, 2, "{done:?}");
    assert!(done.err.contains("--metrics takes a port"), "{done:?}");
}

#[test]
fn processes_on_top_are_recorded() {
    let tool = Tool::new();
    let options = ["--top-cpu", "--top-mem", "--top-io-adv", "--top-oom", "-l"];
    let done = tool.run(&[&["watch", "--record"], &options[..], &["1", "3"]].concat());
    assert_eq!(done.code, 0, "{done:?}");
    let replayed = tool.run(&["watch", "--replay", "latest"]);
    assert_eq!((replayed.code, replayed.out.as_str()), (0, done.out.as_str()), "{}", replayed.err);
    let widths: Vec<usize> = done.out.lines().skip(2).map(|row| row.trim().len()).collect();
    assert!(widths.len() == 3 && widths.iter().all(|&width| width > 60), "somebody has memory: {}", done.out);
    // Others of them, of which as much is known.
    let other = tool.run(&["watch", "--replay", "latest", "--top-childwait", "--top-cpu-adv", "2"]);
    assert_eq!((other.code, other.out.lines().count()), (0, 4), "{other:?}");
}

#[test]
fn what_cannot_be_kept_is_not_begun() {
    let tool = Tool::new();
    let file = tool.path("no/such/folder/rows");
    let file = file.to_str().expect("a path");
    let check = |args: &[&str], code: i32, expected: &str| {
        let done = tool.run(&[&["watch"], args, &["1", "1"]].concat());
        assert_eq!((done.code, done.out.as_str(), done.err.lines().count()), (code, "", 1), "{done:?}");
        assert!(done.err.contains(expected), "{done:?}");
    };
    check(&["--record", "--metrics", "foo"], 2, "--metrics takes a port");
    assert!(!tool.path("store.sqlite").exists(), "nothing was begun");
    check(&["--output", file], 5, "No such file or directory; give --output a file that can be written");
    check(&["--record", "--store", "/proc/none/store"], 6, "/proc/none/store: cannot make the folder of the store: ");
    check(&["--record", "--store", "/"], 6, "webdyno: /: ");
}

#[test]
fn a_store_on_a_full_disk_is_one_line() {
    if !tool::is_root() {
        return testkit::skip::not_here("no small disk: mounting one needs root");
    }
    let tool = Tool::new();
    let disk = tool.path("disk");
    std::fs::create_dir(&disk).expect("a folder");
    // Of any size between nothing and what a store takes, SQLite fails at another place.
    for kib in [4, 16, 36, 48, 64] {
        let script =
            format!("mount -t tmpfs -o size={kib}k tmpfs \"$1\" && exec \"$2\" watch --record --store \"$1/s\" -l 1 1");
        let program = tool.command(&[]);
        let mut command = std::process::Command::new("unshare");
        command.args(["--mount", "sh", "-c", &script, "sh"]).arg(&disk).arg(program.get_program()).env("LC_ALL", "C");
        let done = Finished::of(&command.output().expect("unshare runs"));
        if done.err.contains("mount") {
            return testkit::skip::not_here("no mount namespace for a small disk");
        }
        assert_eq!(done.code, 6, "{kib} KiB: {done:?}");
        let said: Vec<&str> = done.err.lines().filter(|line| line.contains("disk full")).collect();
        assert_eq!(said.len(), 1, "{kib} KiB: {done:?}");
        assert!(said[0].contains("/disk/s: disk full") && !done.err.contains("I/O"), "{kib} KiB: {done:?}");
    }
}
