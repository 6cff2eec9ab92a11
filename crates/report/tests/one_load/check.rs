//! A check of a running server, drawn for a terminal and for programs.

use super::{check_against, scene};
use expect_test::{ExpectFile, expect_file};
use model::check::{
    Check, Door, Found, Kind, Measure, MemoryGroup, Page, Pool, Running, Setting, Summit, Unseen, WorkerMemory,
};
use model::plan::{ServerSpec, Url};
use model::run::Run;
use model::trial::{Outcome, Stop};
use report::check::{CheckView, json, text};
use report::text::{Colour, Look};
use report::{CheckView as View, Language};
use serde_json::Value;

fn setting(name: &str, written: &str, value: &str, line: usize) -> Setting {
    let file = "/etc/apache2/mods-enabled/mpm_prefork.conf".into();
    Setting { name: name.into(), written: written.into(), value: value.into(), file, line, section: None }
}

/// A climb of four steps, and three windows that the answer rests on.
fn run() -> Run {
    let mut run = scene::closed();
    run.head.plan.server =
        ServerSpec::Url(Url { url: "http://localhost/".into(), address: "127.0.0.1:80".into(), ..Url::default() });
    let (cell, load, trial) = (run.head.plan.cells[0].clone(), run.head.plan.loads[0].clone(), run.trials[0].clone());
    let steps = [("hold", 8), ("c1", 1), ("c2", 2), ("c4", 4), ("c8", 8)];
    run.head.plan.cells =
        steps.map(|(name, _)| model::plan::Cell { name: name.into(), load: name.into(), ..cell.clone() }).into();
    run.head.plan.loads = steps
        .map(|(name, connections)| model::plan::LoadSpec { name: name.into(), connections, ..load.clone() })
        .into();
    let made = ["c1", "c2", "c4", "c8", "hold", "hold", "hold"].iter().zip([400, 200, 133, 110, 100, 101, 99]);
    run.trials = made
        .map(|(&name, length)| {
            let mut trial = trial.clone();
            let load = trial.load.as_mut().unwrap();
            load.connections = steps.iter().find(|(step, _)| *step == name).unwrap().1;
            load.ended_ns = load.started_ns + length * model::SECOND / 5;
            trial.cell = name.to_owned();
            trial.door = Some(Door { others: 3, idle: 1, others_opened: 2, ticks: Some(400), ..Door::default() });
            trial
        })
        .collect();
    let held =
        WorkerMemory { measure: Measure::Unshared, workers: 8, largest: 12 << 20, total: 90 << 20, inherited: 0 };
    let running = Running {
        kind: Kind::ApachePrefork,
        server: Some("Apache/2.4.62 (Debian)".into()),
        found: Found::Socket,
        root: Some(812),
        processes: 9,
        threads: 9,
        file: Some("/etc/apache2/apache2.conf".into()),
        settings: vec![
            setting("MaxRequestWorkers", "MaxClients", "150", 5),
            setting("KeepAlive", "KeepAlive", "On", 9),
        ],
        workers: Some(held),
        group: Some(MemoryGroup { directory: "/g".into(), v2: true, limit: 300 << 20, used: Some(120 << 20) }),
        unseen: vec![Unseen::File("/etc/apache2/secret.conf: Permission denied".into()), Unseen::Shares],
        ..Running::default()
    };
    run.head.check = Some(Box::new(Check {
        budget_ns: 60 * model::SECOND,
        took_ns: 41 * model::SECOND,
        running,
        page: Some(Page {
            status: 200,
            bytes: 12_400,
            time_us: 24_000,
            encoding: Some("gzip".into()),
            ..Page::default()
        }),
        before: Some(Door { others: 1, idle: 1, ..Door::default() }),
        after: vec![(String::new(), held)],
        work: vec![],
        queues: vec![],
        others: None,
        summit: Summit::Memory,
        climb: vec![("c1".into(), 1), ("c2".into(), 2), ("c4".into(), 4), ("c8".into(), 8)],
    }));
    let mut row = model::reading::Reading::empty(0);
    row.set(model::reading::Column::GroupAnon, 120 << 20);
    row.set(model::reading::Column::AcceptLimit, 511);
    run.trials.last_mut().unwrap().readings.rows.push(row);
    run
}

fn check(language: Language, expected: &ExpectFile) {
    let view = View::of(&run(), language).unwrap();
    expected.assert_eq(&text::render(&view, Look { width: 90, colour: Colour::None }));
}

#[test]
fn on_a_terminal() {
    check(Language::English, &expect_file!["../golden/check-en-90.txt"]);
    check(Language::Japanese, &expect_file!["../golden/check-ja-90.txt"]);
    assert!(CheckView::of(&scene::open(), Language::English).is_none());
}

#[test]
fn as_json_it_keeps_to_the_schema() {
    let mut silent = run();
    silent.trials.truncate(1);
    silent.trials[0].load = None;
    silent.trials[0].outcome = Outcome::EndedEarly(Stop::Interrupted);
    let facts = silent.head.check.as_mut().unwrap();
    (facts.page, facts.before, facts.summit) = (None, None, Summit::NoAnswer);
    facts.running.pools =
        vec![Pool { name: "www".into(), listen: "/s".into(), settings: vec![], root: 5, workers: None }];
    for (run, step) in [(run(), "step-memory"), (silent, "step-silent")] {
        let view = CheckView::of(&run, Language::English).unwrap();
        let document: Value = serde_json::from_str(&json::render(&view)).unwrap();
        let schema = include_str!("../../../../docs/schemas/check.schema.json");
        assert_eq!(check_against(schema, &document), Vec::<String>::new());
        assert_eq!(document["step"]["sentence"]["id"], step);
        assert!(view.has_fault());
    }
}

#[test]
fn a_window_without_answers_is_not_judged() {
    let judged = |run: &Run| {
        let document: Value =
            serde_json::from_str(&json::render(&CheckView::of(run, Language::English).unwrap())).unwrap();
        let evidence = document["limit"]["primary"]["evidence"].as_array().unwrap().clone();
        evidence.into_iter().find(|number| number["name"] == "connections").unwrap()["value"].clone()
    };
    let mut run = run();
    assert_eq!(judged(&run), 8.0);
    for load in run.trials.iter_mut().filter_map(|trial| trial.load.as_mut()).filter(|load| load.connections == 8) {
        load.counts.good = 0;
    }
    assert_eq!(judged(&run), 4.0);
}

/// Two of five windows stood still: what the others took is not what the server takes.
#[test]
fn windows_that_stood_still_count() {
    let mut run = run();
    let held = |run: &Run| View::of(run, Language::English).unwrap().answer.unwrap();
    let before = held(&run);
    assert!(before.low.is_some() && before.silent == 0);
    let mut windows = run.trials.iter_mut().filter(|trial| trial.cell == "hold");
    let load = windows.next().and_then(|trial| trial.load.as_mut()).unwrap();
    load.counts.good = 0;
    let after = held(&run);
    assert_eq!((after.low, after.silent, after.windows), (None, 1, 3));
    assert!(after.good_per_s < 0.7 * before.good_per_s, "{after:?}");
    let view = View::of(&run, Language::English).unwrap();
    assert_eq!(view.takes[0].id, "check-takes-silent");
}

#[test]
fn what_was_in_the_way_leaves_it_open() {
    let mut run = run();
    run.trials.iter_mut().for_each(|trial| trial.readings.rows.clear());
    let facts = run.head.check.as_mut().unwrap();
    facts.running = Running::default();
    facts.after.clear();
    let open = |run: &Run, summit| {
        let mut run = run.clone();
        run.head.check.as_mut().unwrap().summit = summit;
        let view = View::of(&run, Language::English).unwrap();
        (view.step.sentence.id.clone(), view.is_open())
    };
    assert_eq!(open(&run, Summit::Time), ("step-time".to_owned(), true));
    assert_eq!(open(&run, Summit::Memory), ("step-not-found".to_owned(), true));
    assert_eq!(open(&run, Summit::Plateau), ("step-not-found".to_owned(), false));
}

/// What a stored check says is drawn again from what the store gives back.
#[test]
fn stored_facts_come_back() {
    let before = run().head.check;
    let text = serde_json::to_string(&before).unwrap();
    assert_eq!(serde_json::from_str::<Option<Box<Check>>>(&text).unwrap(), before);
}
