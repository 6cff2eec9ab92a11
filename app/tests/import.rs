//! `webdyno import`: old reports of ab and those of the ab that is installed, through the real binary.

mod tool;

use serde_json::Value;
use std::io::Write;
use std::process::{Command, Stdio};
use testkit::scripted::{Scripted, Step, Turn};
use tool::{Finished, Tool};

const LOGGING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/abtext/tests/data/5-logging.txt");

fn with_stdin(tool: &Tool, args: &[&str], text: &str) -> Finished {
    let mut command = tool.command(args);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("webdyno starts");
    child.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("it reads");
    Finished::of(&child.wait_with_output().expect("webdyno ends"))
}

#[test]
fn six_reports_of_one_page_in_three_groups() {
    let tool = Tool::new();
    let args =
        [("plain", "1,2"), ("cronolog", "3,4"), ("buffered", "5,6")].map(|(name, n)| format!("{name}={LOGGING}#{n}"));
    let imported = tool.run(&["import", &args[0], &args[1], &args[2]]);
    assert_eq!((imported.code, imported.err.as_str()), (0, ""), "{imported:?}");
    for told in [
        "5-logging.txt:132: “12.72722” means 12.072722 s",
        "buffered: 1.059 times the good requests per second of plain (+5.91 %).",
        "95 % interval 0.993 to 1.130 (Welch's t, runs: 2 and 2, p = 0.061).",
        "The order of the runs was not randomised.",
        "5-logging.txt:249: “1 %” stands here",
    ] {
        assert!(imported.out.contains(told), "no `{told}` in {}", imported.out);
    }
    let listed = tool.run(&["runs"]).out;
    assert!(listed.contains("plain, cronolog, buffered  imported from ab"), "{listed}");
    let runs: Value = serde_json::from_str(&tool.run(&["runs", "--json"]).out).expect("JSON");
    assert_eq!((&runs[0]["kind"], &runs[0]["trials"]), (&"import".into(), &0.into()));
    // Shown again, it is the same: the texts are in the store, not the files.
    let id = runs[0]["id"].as_str().expect("an id");
    assert_eq!(tool.run(&["report", id]).out, imported.out);
    let japanese = tool.run(&["report", "latest", "--lang", "ja"]).out;
    assert!(japanese.contains("実行の順は無作為ではありません"), "{japanese}");
    let json: Value = serde_json::from_str(&tool.run(&["report", "--json"]).out).expect("JSON");
    assert_eq!(
        (&json["schema"], json["groups"][2]["reports"].as_array().map(Vec::len)),
        (&"webdyno-import".into(), Some(2))
    );
    let refused = tool.run(&["report", "--markdown"]);
    assert_eq!((refused.code, refused.err.as_str()), (2, "webdyno: an import is shown as text or --json only\n"));
}

/// What docs/import.md shows is what comes out.
#[test]
fn the_page_on_imports_is_right() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let page = std::fs::read_to_string(format!("{root}/docs/import.md")).expect("the page");
    let (_, example) = page.split_once("```\n$ webdyno ").expect("an example");
    let (typed, shown) = example.split_once("\n```").and_then(|(all, _)| all.split_once('\n')).expect("an output");
    let args: Vec<&str> = typed.split(' ').collect();
    let tool = Tool::new();
    let mut command = tool.command(&args);
    let output = command.current_dir(format!("{root}/crates/abtext/tests/data")).output().expect("webdyno runs");
    let printed = Finished::of(&output);
    for line in shown.lines().filter(|line| *line != "...") {
        assert!(printed.out.lines().any(|other| other == line), "no `{line}` in {printed:?}");
    }
}

#[test]
fn standard_input_and_several_files() {
    let tool = Tool::new();
    let text = std::fs::read_to_string(LOGGING).expect("a sample");
    let both = with_stdin(&tool, &["import", "old=-#1,2", &format!("new={LOGGING}#5"), "--json"], &text);
    let json: Value = serde_json::from_str(&both.out).expect("JSON");
    assert_eq!(json["groups"][0]["reports"][0]["source"], "-");
    assert_eq!(json["comparisons"][0]["numbers"]["spread"], Value::Null);
    // Without names every report stands for itself.
    let all = with_stdin(&tool, &["import", "-", "--json"], &text);
    let json: Value = serde_json::from_str(&all.out).expect("JSON");
    let names: Vec<_> = json["groups"].as_array().into_iter().flatten().map(|group| group["name"].clone()).collect();
    assert_eq!(names, ["stdin#1", "stdin#2", "stdin#3", "stdin#4", "stdin#5", "stdin#6"]);
    let limits = json["limits"].as_array().into_iter().flatten();
    assert!(limits.into_iter().any(|limit| limit["id"] == "import-one-run-each"), "{json}");
}

#[test]
fn a_store_that_refuses_costs_no_result() {
    let tool = Tool::new();
    let no_store = tool.path("notes.txt");
    std::fs::write(&no_store, "not a store at all, but some notes").expect("a file");
    let no_store = no_store.to_str().expect("UTF-8");
    let shown = tool.run(&["import", LOGGING, "--store", no_store]);
    assert_eq!(
        (shown.code, shown.err),
        (6, format!("webdyno: {no_store}: not a webdyno store; give another file with --store FILE\n"))
    );
    assert!(shown.out.contains("5-logging.txt:132: “12.72722” means 12.072722 s"), "{}", shown.out);
}

#[test]
fn what_is_no_output_of_ab() {
    let tool = Tool::new();
    let path = tool.path("notes.txt");
    std::fs::write(&path, "\n約束\nab is a tool\n").expect("a file");
    let path = path.to_str().expect("UTF-8");
    let check = |args: &[&str], code: i32, says: &str| {
        let finished = tool.run(&[&["import"], args].concat());
        assert_eq!(
            (finished.code, finished.err.as_str(), finished.out.as_str()),
            (code, format!("webdyno: {says}\n").as_str(), "")
        );
    };
    check(&[path], 2, &format!("{path}: line 2: `約束` is nothing that ab prints, and no report of ab follows"));
    check(&["-"], 2, "standard input: no report of ab stands in it; give what ab printed");
    check(&["/nowhere/x"], 2, "/nowhere/x: there is no such file; check its name and folder");
    check(&["/"], 2, "/: this is a folder; name a file in it");
    check(&[&format!("x={LOGGING}#7")], 2, &format!("{LOGGING}: there is no report 7; the last is 6"));
    let twice = format!("{LOGGING}: report 2 is named twice; a run counts once");
    check(&[&format!("x={LOGGING}#2"), &format!("y={LOGGING}#1,2")], 2, &twice);
    check(&["/dev/zero"], 2, "/dev/zero: longer than 16.0 MiB; cut it");
    // Nothing was kept of any of these.
    assert_eq!(tool.run(&["runs", "--json"]).out, "[]\n");
}

fn answer(status: &str, body: usize, headers: &str) -> Vec<u8> {
    let head = format!("HTTP/1.0 {status}\r\nServer: scripted\r\nContent-Length: {body}\r\n{headers}\r\n");
    [head.into_bytes(), vec![b'x'; body]].concat()
}

/// What the installed ab prints about a server, and the ids of the slips found in that.
fn check_ab(server: &Scripted, options: &[&str], expected: &[&str]) {
    let url = format!("http://{}/a?b", server.address());
    let output = Command::new("ab").args(options).arg(&url).stderr(Stdio::null()).output().expect("ab runs");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let tool = Tool::new();
    let finished = with_stdin(&tool, &["import", "-", "--json"], &printed);
    assert_eq!(finished.code, 0, "{finished:?}\n{printed}");
    let json: Value = serde_json::from_str(&finished.out).expect("JSON");
    let report = &json["groups"][0]["reports"][0];
    assert_eq!(
        (&report["written_by"]["id"], &report["lines_skipped"]),
        (&"import-family-today".into(), &0.into()),
        "{printed}"
    );
    let ids: Vec<&str> =
        json["slips"].as_array().into_iter().flatten().filter_map(|slip| slip["id"].as_str()).collect();
    // How long single requests took is this machine's luck, and so is how many were under way.
    let luck = ["slip-skewed", "slip-little", "slip-body-bytes-in-flight", "slip-percentile-odd"];
    let ids: Vec<&str> = ids.into_iter().filter(|id| !luck.contains(id)).collect();
    assert_eq!(ids, expected, "{options:?}\n{printed}");
}

#[test]
fn what_todays_ab_prints() {
    if Command::new("ab").arg("-V").output().is_err() {
        return testkit::skip::skipped("no ab");
    }
    let plain = Scripted::always(vec![Step::Send(answer("200 OK", 100, "")), Step::Close]);
    check_ab(&plain, &["-q", "-n", "200", "-c", "4"], &[]);
    check_ab(&plain, &["-n", "300", "-c", "1", "-S"], &[]);
    check_ab(&plain, &["-q", "-n", "50", "-d"], &[]);
    check_ab(&plain, &["-q", "-n", "1"], &[]);
    check_ab(&plain, &["-q", "-n", "20", "-c", "20"], &["slip-one-wave"]);
    check_ab(&plain, &["-q", "-n", "40", "-c", "10", "-k"], &["slip-few-waves", "slip-keep-alive-unused"]);
    let kept = Scripted::always(vec![Step::Send(answer("200 OK", 10, "Connection: Keep-Alive\r\n"))]);
    check_ab(&kept, &["-q", "-n", "101", "-c", "2", "-k"], &[]);
    check_ab(&kept, &["-q", "-n", "60", "-c", "3", "-k", "-l"], &[]);
    let failing = Scripted::start(|turn: Turn| {
        let bytes = if turn.total % 5 == 4 { answer("503 No", 30, "") } else { answer("200 OK", 100, "") };
        vec![Step::Send(bytes), Step::Close]
    });
    check_ab(&failing, &["-q", "-n", "100", "-c", "2"], &["slip-failures-in-rate"]);
    check_ab(&failing, &["-q", "-n", "100", "-c", "2", "-l"], &["slip-failures-in-rate"]);
    check_ab(&failing, &["-q", "-n", "100", "-c", "2", "-i"], &["slip-failures-in-rate"]);
}
