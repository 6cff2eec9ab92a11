//! Runs that are one load, drawn in every form and compared with what they looked like before.

mod check;
mod metrics;
mod scene;
mod search;

use expect_test::{ExpectFile, expect_file};
use model::load::TlsFacts;
use model::plan::{SessionSpec, TlsSpec, TlsVersion, Verify, Warmup};
use model::run::Run;
use model::statistic::Statistic;
use model::threshold::Threshold;
use model::trial::{Outcome, Stop};
use report::load::{LoadView, csv, json, openmetrics, text};
use report::text::{Colour, Look};
use report::{Language, View};
use serde_json::{Value, json};

const EXPECTED: [&str; 9] = [
    "p50 < 50ms",
    "p99 < 40ms",
    "p99.99 < 200ms",
    "service.p99 < 20ms",
    "failed < 1%",
    "status.503 = 0",
    "unsent = 0",
    "rate >= 400/s",
    "handshake.p50 < 5ms",
];

fn view(run: &Run, language: Language) -> LoadView {
    let thresholds: Vec<Threshold> = EXPECTED.iter().map(|text| Threshold::parse(text).unwrap()).collect();
    LoadView::of(run, &thresholds, language).unwrap()
}

fn terminal(run: &Run, language: Language, width: usize) -> String {
    let drawn = text::render(&view(run, language), Look { width, colour: Colour::None });
    for line in drawn.lines() {
        assert!(unicode_width::UnicodeWidthStr::width(line) <= width, "too wide: {line}");
    }
    drawn
}

fn check(drawn: &str, expected: &ExpectFile) {
    expected.assert_eq(drawn);
}

#[test]
fn on_a_terminal() {
    check(&terminal(&scene::closed(), Language::English, 80), &expect_file!["../golden/load-closed-en-80.txt"]);
    check(&terminal(&scene::closed(), Language::Japanese, 80), &expect_file!["../golden/load-closed-ja-80.txt"]);
    check(&terminal(&scene::open(), Language::English, 80), &expect_file!["../golden/load-open-en-80.txt"]);
    check(&terminal(&scene::open(), Language::Japanese, 80), &expect_file!["../golden/load-open-ja-80.txt"]);
    check(&terminal(&scene::open(), Language::English, 56), &expect_file!["../golden/load-open-en-56.txt"]);
    check(&terminal(&scene::refused(), Language::English, 80), &expect_file!["../golden/load-refused-en-80.txt"]);
    for width in [40, 45, 120, 250] {
        terminal(&scene::open(), Language::Japanese, width);
    }
}

#[test]
fn colour_adds_nothing_but_colour() {
    let view = view(&scene::closed(), Language::English);
    let coloured = text::render(&view, Look { width: 80, colour: Colour::Ansi });
    assert!(coloured.contains("\x1b[1;34mmet: p50 < 50ms"), "{coloured}");
    let mut bare = String::new();
    let mut rest = coloured.as_str();
    while let Some((before, after)) = rest.split_once("\x1b[") {
        bare.push_str(before);
        rest = after.split_once('m').unwrap().1;
    }
    assert_eq!(bare + rest, text::render(&view, Look { width: 80, colour: Colour::None }));
}

#[test]
fn as_csv() {
    check(&csv::render(&view(&scene::open(), Language::English)), &expect_file!["../golden/load-open.csv"]);
    for run in [scene::closed(), scene::open(), scene::refused()] {
        let view = view(&run, Language::English);
        let drawn = csv::render(&view);
        let columns = csv::HEAD.split(',').count();
        assert!(drawn.lines().all(|line| line.split(',').count() == columns));
        assert_eq!(drawn.lines().count(), view.seconds.len() + 1);
        let good: u64 = drawn.lines().skip(1).map(|line| line.split(',').nth(2).unwrap().parse::<u64>().unwrap()).sum();
        assert_eq!(good, view.counts.good);
    }
}

#[test]
fn nothing_happens_before_the_window() {
    // The threads of a closed loop count their seconds from a moment before the first request.
    let mut run = scene::closed();
    let load = run.trials[0].load.as_mut().unwrap();
    load.started_ns += 400_000;
    let (ends, counted) = (load.ended_ns - load.started_ns, load.intervals.len());
    let view = view(&run, Language::English);
    assert_eq!((view.seconds[0].start_s, view.seconds[0].length_s), (0.0, 0.9996));
    assert!((view.seconds[1].start_s - 0.9996).abs() < 1e-9);
    let all: f64 = view.seconds.iter().map(|second| second.length_s).sum();
    assert!((all - ends as f64 / 1e9).abs() < 1e-9 && view.seconds.len() == counted);
    assert!(csv::render(&view).contains("\n0.000,1.000,"), "{}", csv::render(&view));
    assert!(!json::render(&view).contains("-0.0") && !csv::render(&view).contains("-0.0"));
}

#[test]
fn what_a_load_cannot_have_is_said_with_what_it_takes() {
    let check = |run: &Run, expected: &str, says: &str| {
        let view = LoadView::of(run, &[Threshold::parse(expected).unwrap()], Language::English).unwrap();
        let said = &view.thresholds[0].sentence.text;
        assert!(said.starts_with(&format!("not known, so missed: {expected} (")) && said.contains(says), "{said}");
    };
    let mut run = scene::closed();
    check(&run, "page.p95 < 1s", "add --page");
    check(&run, "service.p99 < 1s", "such as -r 100/s");
    check(&scene::open(), "page.p95 < 1s", "add --page");
    run.trials[0].load.as_mut().unwrap().sessions = Some(model::load::Sessions::default());
    check(&run, "service.p99 < 1s", "it is users who come at a rate");
    check(&run, "unsent = 0", "it is users who come at a rate");
}

#[test]
fn users_and_their_pages_are_counted() {
    let mut run = scene::closed();
    let mut users = model::load::Sessions {
        users: 1,
        turned_away: 2,
        pages: 3,
        incomplete: 4,
        gave_up: 5,
        reloads: 6,
        abandoned: 7,
        returned: 8,
        ..model::load::Sessions::default()
    };
    (0..3).for_each(|_| users.page.record(1_000_000));
    (0..9).for_each(|_| users.page_at_least.record(2_000_000));
    run.trials[0].load.as_mut().unwrap().sessions = Some(users);
    let drawn = openmetrics::render(&view(&run, Language::English));
    metrics::check(&drawn);
    for expected in [
        "webdyno_users_total 1",
        "webdyno_users_turned_away_total 2",
        "webdyno_users_gave_up_total 5",
        "webdyno_users_returned_total 8",
        "webdyno_pages_total 3",
        "webdyno_pages_incomplete_total 4",
        "webdyno_pages_unanswered_total 9",
        "webdyno_reloads_total 6",
        "webdyno_abandoned_total 7",
        "webdyno_page_seconds_count 3",
    ] {
        assert!(drawn.lines().any(|line| line == expected), "{expected}: {drawn}");
    }
    let without = openmetrics::render(&view(&scene::closed(), Language::English));
    assert!(!without.contains("webdyno_users") && !without.contains("webdyno_pages"));
}

#[test]
fn a_visitor_has_columns_and_families_of_its_own() {
    let with = view(&scene::closed(), Language::English);
    check(&csv::render(&with), &expect_file!["../golden/load-closed.csv"]);
    check(&openmetrics::render(&with), &expect_file!["../golden/load-closed.metrics.txt"]);
    let good: u64 =
        csv::render(&with).lines().skip(1).map(|row| row.split(',').nth(12).unwrap().parse::<u64>().unwrap()).sum();
    assert_eq!(good, with.probe.as_ref().unwrap().counts.good);
    let drawn = openmetrics::render(&with);
    assert!(drawn.contains(&format!("\nwebdyno_probe_latency_seconds_count {good}\n")), "{drawn}");
    let alone = view(&scene::open(), Language::English);
    assert!(csv::render(&alone).lines().skip(1).all(|row| row.ends_with(",,,")));
    assert!(!openmetrics::render(&alone).contains("probe"));
}

#[test]
fn as_openmetrics() {
    let drawn = openmetrics::render(&view(&scene::open(), Language::English));
    check(&drawn, &expect_file!["../golden/load-open.metrics.txt"]);
    for mut run in [scene::closed(), scene::open(), scene::refused()] {
        run.head.plan.name = "http://h/\"a\\b\n".into();
        metrics::check(&openmetrics::render(&view(&run, Language::Japanese)));
    }
}

/// The published schema with nothing allowed that it does not name: what is undescribed is found.
fn strict(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            map.values_mut().for_each(strict);
            if map.get("properties").is_some_and(Value::is_object) && !map.contains_key("additionalProperties") {
                map.insert("additionalProperties".into(), Value::Bool(false));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(strict),
        _ => {}
    }
}

fn check_schema(document: &Value) -> Vec<String> {
    check_against(include_str!("../../../../docs/schemas/load.schema.json"), document)
}

pub(crate) fn check_against(schema: &str, document: &Value) -> Vec<String> {
    let mut schema: Value = serde_json::from_str(schema).unwrap();
    strict(&mut schema);
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    validator.iter_errors(document).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

#[test]
fn as_json_it_keeps_to_the_schema() {
    let mut watched = scene::closed();
    watched.trials[0].readings = crate::fixture::run().trials[0].readings.clone();
    watched.trials[0].outcome = Outcome::EndedEarly(Stop::Failures);
    watched.trials[0].settings.server = "Apache/2.4.62 (Debian)".into();
    for run in [scene::closed(), scene::open(), scene::refused(), watched] {
        let document: Value = serde_json::from_str(&json::render(&view(&run, Language::English))).unwrap();
        assert_eq!(check_schema(&document), Vec::<String>::new());
        let mut broken = document.clone();
        broken["counts"]["good"] = "many".into();
        broken["surprise"] = 1.into();
        assert_eq!(check_schema(&broken).len(), 2);
    }
}

#[test]
fn as_json_it_says_what_was_measured() {
    let run = scene::open();
    let text = json::render(&view(&run, Language::English));
    assert!(text.contains("Authorization") && !text.contains("secret"), "values of header fields may be secrets");
    let document: Value = serde_json::from_str(&text).unwrap();
    let at = |pointer: &str| document.pointer(pointer).unwrap_or_else(|| panic!("{pointer}"));
    let load = run.trials[0].load.as_ref().unwrap();
    assert_eq!((at("/schema"), at("/target")), (&"webdyno-load".into(), &"http://127.0.0.1:8080/".into()));
    assert_eq!(at("/counts/good"), load.counts.good);
    assert_eq!((at("/open/unsent"), at("/in_flight")), (&500.into(), &200.into()));
    assert_eq!(at("/latency_us/p50").as_f64(), load.total.percentile_us(52.6).map(|us| us as f64));
    // 5 % had no answer: the 99th percentile is not known, only that it is more than something.
    assert_eq!(at("/latency_us/p99"), &Value::Null);
    assert!(at("/latency_us/more_than/p99").as_f64().unwrap() > 1e6);
    let counted: u64 = at("/histogram").as_array().unwrap().iter().map(|bucket| bucket[1].as_u64().unwrap()).sum();
    assert_eq!(counted, load.counts.good);
    assert_eq!(at("/thresholds/1/met"), "no");
    assert_eq!(at("/thresholds/2/met"), "unknown");
    assert_eq!(at("/met"), false);
}

#[test]
fn as_json_it_says_what_was_asked_for() {
    let mut run = scene::closed();
    let draw = |run: &Run| {
        let document: Value = serde_json::from_str(&json::render(&view(run, Language::English))).unwrap();
        assert_eq!(check_schema(&document), Vec::<String>::new());
        ["users", "warm_up", "checks", "cookies", "tls"].map(|name| document["load"][name].clone())
    };
    assert_eq!(draw(&run), [Value::Null, Value::Null, json!([]), json!(false), Value::Null]);
    run.head.plan.warmup = Warmup::Duration(2_500_000_000);
    let spec = &mut run.head.plan.loads[0];
    spec.session = Some(SessionSpec {
        connections: 6,
        think_ns: 1_500_000_000,
        returns: 0.25,
        patience_ns: Some(8_000_000_000),
        reload_after_ns: None,
        reloads: 2,
    });
    spec.checks = vec!["status = 200".to_owned().try_into().unwrap()];
    spec.cookies = true;
    spec.tls = Some(TlsSpec {
        server_name: "example.org".to_owned(),
        verify: Verify::File("/secret/ca.pem".into()),
        version: Some(TlsVersion::Tls13),
        suites: vec![],
        client: None,
        resume: true,
    });
    let users = json!({
        "connections": 6, "think_s": 1.5, "returns": 0.25, "patience_s": 8.0, "reload_after_s": null, "reloads": 2
    });
    let tls = json!({
        "server_name": "example.org", "verify": "file", "version": "1.3", "suites": [], "client_certificate": false,
        "resume": true
    });
    let warm_up = json!({ "requests": null, "duration_s": 2.5 });
    assert_eq!(draw(&run), [users, warm_up, json!(["status = 200"]), json!(true), tls]);
    run.head.plan.warmup = Warmup::Requests(3);
    assert_eq!(draw(&run)[1], json!({ "requests": 3, "duration_s": null }));
    run.trials[0].load.as_mut().unwrap().tls = Some(TlsFacts {
        version: TlsVersion::Tls13,
        suite: "TLS13_AES_256_GCM_SHA384".to_owned(),
        group: None,
        key_bits: Some(256),
    });
    draw(&run);
    let document: Value = serde_json::from_str(&json::render(&view(&run, Language::English))).unwrap();
    let agreed = json!({ "version": "1.3", "suite": "TLS13_AES_256_GCM_SHA384", "group": null, "key_bits": 256 });
    assert_eq!(document["tls"], agreed);
}

/// The page that explains all this: what it shows can be typed, and its numbers are ours.
#[test]
fn the_page_on_loads_is_right() {
    let page = include_str!("../../../../docs/load.md");
    let expected = page.split("--expect '").skip(1).map(|rest| rest.split_once('\'').unwrap().0);
    let expected: Vec<Threshold> = expected.map(|text| Threshold::parse(text).unwrap()).collect();
    assert_eq!(expected.len(), 3);
    let needs = |line: &str| {
        let (percentile, needed) = line.strip_prefix("| p")?.strip_suffix(" |")?.split_once(" | ")?;
        Some((percentile.parse().ok()?, needed.parse::<u64>().ok()?))
    };
    let rows: Vec<(f64, u64)> = page.lines().filter_map(needs).collect();
    assert_eq!(rows.len(), 6);
    rows.into_iter().for_each(|(percent, needed)| assert_eq!(Statistic::Percentile(percent).needs(), needed));
    assert!(
        openmetrics::render(&view(&scene::closed(), Language::English)).contains("# TYPE webdyno_probe_visits counter")
    );
    assert!(page.contains("`webdyno_probe_`"));
    let columns: Vec<String> = csv::HEAD.split(',').map(|column| format!("`{column}`")).collect();
    assert!(page.contains(&columns.join(", ")));
}

#[test]
fn redrawn_from_the_store_it_is_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = store::Store::open(&folder.path().join("store.sqlite")).unwrap();
    let run = scene::open();
    store.begin(&run.head).unwrap();
    store.save_trial(&run.head.id, &run.trials[0]).unwrap();
    store.finish(&run.head.id, &run.head.end).unwrap();
    let again = store.load("latest").unwrap();
    let drawn = |run: &Run| json::render(&view(run, Language::English));
    assert_eq!(drawn(&run), drawn(&again));
}

#[test]
fn an_interrupted_load_is_shown() {
    let mut run = scene::closed();
    run.trials[0].outcome = Outcome::EndedEarly(Stop::Interrupted);
    let drawn = terminal(&run, Language::English, 100);
    assert!(drawn.contains("  interrupted; what was measured until then is shown\n"), "{drawn}");
    assert!(drawn.contains("406 per second: 8126 in 20.0 s"), "{drawn}");
}

#[test]
fn only_a_run_that_is_one_load_is_drawn_so() {
    let of = |run: &Run| LoadView::of(run, &[], Language::English);
    assert!(of(&crate::fixture::run()).is_none());
    let run = scene::closed();
    assert!(of(&run).unwrap().met(), "nothing was expected");
    let mut without = run.clone();
    without.trials[0].load = None;
    assert!(of(&without).is_none());
    // The other report draws it too.
    assert_eq!(View::of(&run, Language::English).cells.len(), 1);
}
