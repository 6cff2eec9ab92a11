//! A load beside the cells' own: reported and compared by itself, in every form.

use crate::fixture::run;
use crate::{page, terminal};
use expect_test::expect_file;
use model::SECOND;
use model::latency::Latency;
use model::load::{Counts, LoadResult, OpenLoop};
use model::plan::{Arrivals, Contrast, LoadSpec, Pace, Timetable};
use model::run::Run;
use model::trial::Beside;
use report::{Language, View, json, markdown};
use serde_json::Value;

/// Static files at 50 a second while the CGI works: slow where memory thrashes, slower where four workers are all there are.
pub(crate) fn with_static() -> Run {
    let mut run = run();
    let pace = Pace::Timetable(Timetable::constant(50.0, Arrivals::Even));
    run.head.plan.beside = vec![LoadSpec { pace, connections: 16, ..LoadSpec::of("static", "/index.html") }];
    for trial in &mut run.trials {
        let Some(own) = &trial.load else { continue };
        let usual_us = match trial.cell.as_str() {
            "10, limit 4" => 900_000,
            cell if cell.starts_with("10 at once") => 250_000,
            _ => 2_000,
        };
        let good = 50 * (own.ended_ns - own.started_ns) / SECOND;
        let mut total = Latency::new();
        // No two blocks are alike, and no two answers.
        (0..good).for_each(|i| total.record(usual_us * (90 + i % 20) / 100 * (100 + u64::from(trial.block)) / 100));
        let load = LoadResult {
            connections: 16,
            started_ns: own.started_ns,
            ended_ns: own.ended_ns,
            counts: Counts { good, ..Counts::default() },
            first_byte: total.clone(),
            total,
            in_flight_ns: good * usual_us * 1000,
            open: Some(OpenLoop { arrived: good, ..OpenLoop::default() }),
            ..LoadResult::empty()
        };
        trial.beside = vec![Beside { name: "static".to_owned(), load }];
    }
    run
}

fn p99<'a>(document: &'a Value, cell: &str) -> &'a Value {
    let cells = document["beside"][0]["cells"].as_array().unwrap();
    let cell = cells.iter().find(|it| it["name"] == cell).unwrap();
    cell["metrics"].as_array().unwrap().iter().find(|it| it["metric"] == "p99").unwrap()
}

#[test]
fn it_is_told_by_itself_in_every_form() {
    let run = with_static();
    for (language, golden) in [
        (Language::English, expect_file!["../golden/beside-en.txt"]),
        (Language::Japanese, expect_file!["../golden/beside-ja.txt"]),
    ] {
        let drawn = terminal(&run, language, 100);
        let (before, part) = drawn.split_once("static, ").or_else(|| drawn.split_once("static: ")).unwrap();
        let heading = before.trim_end().rsplit('\n').next().unwrap();
        let part: String = part.split("\n\n").take(3).map(|part| format!("{part}\n\n")).collect();
        golden.assert_eq(&format!("{heading}\n{part}"));
        let view = View::of(&run, language);
        let html = report::html::render(&view);
        page::well_formed(&html);
        assert!(html.contains("<section id=\"section-beside\">"));
        assert!(markdown::render(&view).matches("| 16 |").count() == 0 && markdown::render(&view).contains("static"));
    }
}

#[test]
fn its_numbers_are_its_own_and_change_nothing_else() {
    let run = with_static();
    let document: Value = serde_json::from_str(&json::render(&View::of(&run, Language::English))).unwrap();
    // The baseline is slow by thrashing, four workers starve it, and behind a lock it is as alone.
    let of =
        |cell: &str| (p99(&document, cell)["verdict"]["id"].clone(), p99(&document, cell)["ratio"].as_f64().unwrap());
    let (starved, lower) = (of("10, limit 4"), of("1 at a time"));
    assert_eq!((starved.0.as_str(), lower.0.as_str()), (Some("verdict-worse"), Some("verdict-better")));
    assert!((3.5..3.7).contains(&starved.1) && lower.1 < 0.01, "{starved:?} {lower:?}");
    let beside = &document["beside"][0];
    assert_eq!((&beside["name"], beside["cells"].as_array().unwrap().len()), (&Value::from("static"), 5));
    assert!(beside["cells"].as_array().unwrap().iter().all(|cell| cell["diagnosis"].is_null()));
    assert!(beside["cells"][1]["metrics"].as_array().unwrap().iter().all(|it| it["metric"] != "memory-peak"));
    // Without it the cells are what they were; what meets the server's limit, all loads do.
    let without: Value =
        serde_json::from_str(&json::render(&View::of(&crate::fixture::run(), Language::English))).unwrap();
    assert!(without.get("beside").is_none());
    for (with, without) in document["cells"].as_array().unwrap().iter().zip(without["cells"].as_array().unwrap()) {
        for key in ["good_per_s", "latency", "comparison", "metrics", "failures"] {
            assert_eq!(with[key], without[key], "{key}");
        }
    }
}

#[test]
fn the_plans_questions_are_asked_of_it_too() {
    let mut run = with_static();
    let side = |cell: &str| [cell.to_owned()];
    run.head.plan.contrasts = vec![Contrast::of_means("few workers", &side("10, limit 4"), &side("10 at once"), 0.02)];
    let document: Value = serde_json::from_str(&json::render(&View::of(&run, Language::English))).unwrap();
    let asked = &document["beside"][0]["contrasts"][0];
    assert_eq!(asked["name"], "few workers");
    let p99 = asked["metrics"].as_array().unwrap().iter().find(|it| it["metric"] == "p99").unwrap();
    assert!(p99["ratio"].as_f64().unwrap() > 3.5, "{p99}");
}
