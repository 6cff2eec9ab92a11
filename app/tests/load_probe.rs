//! `webdyno load` through the real binary: the visitor beside a load, and the search for the highest rate.

mod tool;

use serde_json::Value;
use testkit::scripted::{Scripted, Step, answer};
use tool::{Finished, Tool};

/// Loads a server with what was typed and gives back the report for programs.
#[track_caller]
fn check(server: &Scripted, typed: &[&str], code: i32) -> (Value, Finished) {
    let url = format!("http://{}/", server.address());
    let common = ["load", "--plain", "--json", "--preflight", "0", "--seed", "5", &url];
    let finished = Tool::new().run(&[&common[..], typed].concat());
    assert_eq!(finished.code, code, "{finished:?}");
    (serde_json::from_str(&finished.out).expect("JSON"), finished)
}

fn number(document: &Value, pointer: &str) -> u64 {
    document.pointer(pointer).and_then(Value::as_u64).unwrap_or_else(|| panic!("{pointer} in {document}"))
}

#[test]
fn a_visitor_comes_by_and_is_not_in_the_loads_numbers() {
    let server = Scripted::always(vec![Step::Send(answer(200, "OK"))]);
    let (found, _) = check(&server, &["-c", "1", "-r", "100/s", "-n", "100", "--probe", "100ms"], 0);
    assert_eq!((number(&found, "/counts/good"), number(&found, "/counts/connects")), (100, 1));
    let visits = number(&found, "/probe/visits");
    assert!(visits >= 3 && number(&found, "/probe/good") + number(&found, "/probe/unanswered") == visits, "{found}");
    assert_eq!(number(&found, "/probe/connect_us/count") + 1, server.accepted());
    let (found, _) = check(&server, &["-c", "1", "-n", "5", "--no-probe"], 0);
    assert_eq!(found["probe"], Value::Null);
}

/// A search in short steps against a server that answers 503 to some of the requests, by their number; the answer, and the
/// rates that were asked for.
#[track_caller]
fn check_search(bad: std::ops::Range<u64>, code: i32, answer: &str, rates: &[f64]) {
    let server = Scripted::start(move |turn| {
        vec![Step::Send(if bad.contains(&turn.total) { answer_of(503) } else { answer_of(200) })]
    });
    let typed =
        ["-c", "8", "--no-probe", "-d", "500ms", "-r", "20/s", "--find-rate", "failed = 0", "--precision", "50%"];
    let (found, finished) = check(&server, &typed, code);
    assert_eq!(found["answer"], answer, "{finished:?}");
    let steps = found["steps"].as_array().expect("steps");
    let asked: Vec<f64> = steps.iter().filter_map(|step| step["asked_per_s"].as_f64()).collect();
    assert_eq!(asked, rates);
    assert_eq!(finished.err.lines().filter(|line| line.starts_with("step ")).count(), rates.len(), "{finished:?}");
}

fn answer_of(status: u16) -> Vec<u8> {
    answer(status, "OK")
}

#[test]
fn the_highest_rate_is_found_and_confirmed() {
    // Ten requests, one between the steps, fifteen that fail, and again one and ten.
    check_search(10..26, 0, "found", &[20.0, 30.0, 20.0]);
    check_search(0..u64::MAX, 1, "nothing", &[20.0, 10.0, 5.0, 2.5, 2.1]);
}

#[test]
fn a_search_is_a_run_in_the_store() {
    let (tool, server) = (Tool::new(), Scripted::always(vec![Step::Send(answer_of(503))]));
    let url = format!("http://{}/", server.address());
    let typed =
        ["load", "--plain", "-c", "1", "--no-probe", "-d", "200ms", "-r", "6/s", "--find-rate", "failed = 0", &url];
    let first = tool.run(&typed);
    let again = tool.run(&["report"]);
    assert_eq!((first.code, again.code), (1, 1), "{first:?}");
    assert_eq!(first.out, again.out);
    assert!(first.out.contains("Nothing held: 5.25 per second"), "{}", first.out);
    let dry = Tool::new().run(&[&["load", "--dry-run"], &typed[2..]].concat());
    assert!(dry.code == 0 && dry.out.contains("a search that begins at 6") && dry.out.contains("5.25/s"), "{dry:?}");
}
