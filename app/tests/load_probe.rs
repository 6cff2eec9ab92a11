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
