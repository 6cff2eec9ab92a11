//! A fixed run drawn in every form, compared with what it looked like before; and runs that are not as they should be.

#![allow(clippy::unwrap_used, reason = "helpers of tests; clippy.toml excepts only test functions")]

mod asked;
mod beside;
mod between;
mod fixture;
mod held;
mod imported;
mod one_load;
mod page;
mod recommended;
mod unlucky;

use expect_test::{Expect, ExpectFile, expect, expect_file};
use fixture::{PLAN, head, run};
use model::plan::{Cell, End, Ending, ServerSpec, Url};
use model::reading::{Column, Reading};
use model::run::{Run, RunEnd};
use model::status::{FpmStatus, ServerStatus, WebStatus};
use model::trial::Logged;
use report::text::{Colour, Look};
use report::{Language, View, json, markdown, text};
use serde_json::Value;
use std::collections::BTreeSet;

fn check(drawn: &str, expected: &ExpectFile) {
    expected.assert_eq(drawn);
}

fn terminal(run: &Run, language: Language, width: usize) -> String {
    let drawn = text::render(&View::of(run, language), Look { width, colour: Colour::None });
    for line in drawn.lines() {
        assert!(unicode_width::UnicodeWidthStr::width(line) <= width, "too wide: {line}");
    }
    drawn
}

#[test]
fn on_a_terminal() {
    let run = run();
    check(&terminal(&run, Language::English, 80), &expect_file!["golden/en-80.txt"]);
    check(&terminal(&run, Language::English, 56), &expect_file!["golden/en-56.txt"]);
    check(&terminal(&run, Language::Japanese, 80), &expect_file!["golden/ja-80.txt"]);
    check(&terminal(&run, Language::Japanese, 56), &expect_file!["golden/ja-56.txt"]);
}

#[test]
fn of_a_server_elsewhere_this_machine_tells_nothing() {
    let at = |address: &str| {
        let mut run = run();
        let url = Url { url: "http://www.example.com/".into(), address: address.into(), ..Url::default() };
        run.head.plan.server = ServerSpec::Url(url);
        let view = View::of(&run, Language::English);
        let diagnosed = view.cells.iter().any(|cell| cell.diagnosis.is_some());
        (view.run.placement.id, diagnosed, view.noise.unwrap().sentences[0].id.clone())
    };
    let found = |placement: &str, diagnosed| (placement.to_owned(), diagnosed, "noise-split-found".to_owned());
    assert_eq!(at("192.0.2.1:80"), found("placement-elsewhere", false));
    assert_eq!(at("127.0.0.1:80"), found("placement-shared", true));
}

/// Without a group memory is what processes have resident, and the table says so where there are several.
#[test]
fn resident_memory_is_called_so() {
    let said = |change: fn(Column, u64) -> Option<u64>| {
        let mut run = run();
        for row in run.trials.iter_mut().flat_map(|trial| &mut trial.readings.rows) {
            let mut other = Reading::empty(row.at_ns);
            for &column in Column::ALL {
                if let Some(value) = row.get(column).and_then(|value| change(column, value)) {
                    other.set(column, value);
                }
            }
            other.set(Column::TreeRss, 300 << 20);
            *row = other;
        }
        View::of(&run, Language::English).metrics.notes.iter().any(|note| note.id == "metrics-resident-note")
    };
    let without_group = |column, value| (column != Column::GroupAnon).then_some(value);
    let of_one = |column, value| match column {
        Column::GroupAnon => None,
        Column::TreeProcesses => Some(1),
        _ => Some(value),
    };
    assert_eq!([said(|_, value| Some(value)), said(without_group), said(of_one)], [false, true, false]);
}

#[test]
fn what_the_server_told_is_shown() {
    let mut run = run();
    for trial in &mut run.trials {
        let Some(load) = &trial.load else { continue };
        let look = |at_ns, limit_reached| ServerStatus {
            at_ns,
            took_ns: 1,
            web: Some(WebStatus::Apache { places: [('.', 9), ('_', 1), ('W', 4), ('K', 2)].into(), served: None }),
            fpm: Some(FpmStatus { active: 2, queue: Some(7), limit_reached, ..FpmStatus::default() }),
        };
        trial.status = vec![look(0, 1), look(load.started_ns, 1), look(load.ended_ns, 4)];
        trial.settings.values.insert("pm.max_children".to_owned(), "2".to_owned());
    }
    let drawn = terminal(&run, Language::English, 200);
    for part in [
        "workers at work 4 of 7, held by kept connections 2",
        "processes at work 2 of 2, requests waiting for one 7; pm.max_children was reached ",
    ] {
        assert!(drawn.contains(part), "{drawn}");
    }
    assert!(markdown::render(&View::of(&run, Language::Japanese)).contains("PHP-FPM: 2 プロセス中 2 が処理中"));
}

#[test]
fn colour_adds_nothing_but_colour() {
    let view = View::of(&run(), Language::English);
    let coloured = text::render(&view, Look { width: 80, colour: Colour::Ansi });
    assert!(coloured.contains("\x1b[1;34mbetter\x1b[0m"));
    let mut bare = String::new();
    let mut rest = coloured.as_str();
    while let Some((before, after)) = rest.split_once("\x1b[") {
        bare.push_str(before);
        rest = after.split_once('m').unwrap().1;
    }
    assert_eq!(bare + rest, text::render(&view, Look { width: 80, colour: Colour::None }));
}

#[test]
fn as_markdown() {
    check(&markdown::render(&View::of(&run(), Language::English)), &expect_file!["golden/en.md"]);
    check(&markdown::render(&View::of(&run(), Language::Japanese)), &expect_file!["golden/ja.md"]);
}

/// Every path of keys with the kinds of values that stand there.
fn paths(value: &Value, at: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| paths(value, &format!("{at}.{key}"), found)),
        Value::Array(items) => items.iter().for_each(|value| paths(value, &format!("{at}[]"), found)),
        Value::Null => drop(found.insert(format!("{at} null"))),
        Value::Bool(_) => drop(found.insert(format!("{at} bool"))),
        Value::Number(_) => drop(found.insert(format!("{at} number"))),
        Value::String(_) => drop(found.insert(format!("{at} string"))),
    }
}

#[test]
fn as_json() {
    let document: Value = serde_json::from_str(&json::render(&View::of(&run(), Language::English))).unwrap();
    let mut found = BTreeSet::new();
    paths(&document, "", &mut found);
    let listed: String = found.iter().map(|path| format!("{path}\n")).collect();
    check(&listed, &expect_file!["golden/json-paths.txt"]);
    let few = &document["cells"][3];
    let summary = |pointer: &str| few.pointer(pointer).unwrap().clone();
    assert_eq!(document["schema_version"], 1);
    assert_eq!(summary("/comparison/verdict/id"), "verdict-better");
    assert!(summary("/comparison/ratio").as_f64().unwrap() > 5.0);
    assert_eq!(summary("/trials_used"), 4);
}

/// The ids of the limits found, cell by cell, with what contributed.
fn limits(run: &Run, expected: &Expect) {
    let view = View::of(run, Language::English);
    let limit = |cell: &report::view::CellView| {
        let Some(found) = &cell.diagnosis else { return format!("{}: nothing\n", cell.name) };
        let others: String = found.contributing.iter().map(|finding| format!(" + {}", finding.title.id)).collect();
        format!("{}: {}{others}\n", cell.name, found.primary.title.id)
    };
    expected.assert_eq(&view.cells.iter().map(limit).collect::<String>());
}

#[test]
fn the_four_rows_are_told_apart() {
    limits(
        &run(),
        &expect![[r#"
        1 at a time: cause-offered-concurrency + cause-one-core-busy
        10 at once: cause-memory-thrash + cause-worker-limit-too-high
        10 at once (A/A): cause-memory-thrash + cause-worker-limit-too-high
        10, limit 4: cause-worker-limit-right + cause-cpu-bound
        10, lock: cause-lock-serialised + cause-one-core-busy
    "#]],
    );
    let drawn = terminal(&run(), Language::English, 200);
    assert!(drawn.contains("Idle 0 and a high load average are not a shortage of CPU"));
    let drawn = terminal(&run(), Language::Japanese, 200);
    assert!(drawn.contains("idle が 0 でロードアベレージが高くても、CPU 不足ではない"));
}

#[test]
fn a_run_without_trials() {
    let run = Run { head: head(PLAN), trials: vec![] };
    let run = Run { head: model::run::RunHead { end: RunEnd::Interrupted, ..run.head }, ..run };
    check(&terminal(&run, Language::English, 80), &expect_file!["golden/empty-en-80.txt"]);
    check(&terminal(&run, Language::Japanese, 80), &expect_file!["golden/empty-ja-80.txt"]);
    let view = View::of(&run, Language::English);
    assert!(view.cells.iter().all(|cell| cell.comparison.is_none() && cell.diagnosis.is_none()));
    assert!(markdown::render(&view).contains("0 of 20 trials"));
    page::well_formed(&report::html::render(&view));
    serde_json::from_str::<Value>(&json::render(&view)).unwrap();
}

#[test]
fn a_single_block_has_no_interval() {
    let mut run = run();
    run.trials.retain(|trial| trial.block == 0);
    let drawn = terminal(&run, Language::English, 200);
    assert!(drawn.contains("Only one block could be compared: no interval can be given."), "{drawn}");
    assert!(drawn.contains("no interval from a single block"), "{drawn}");
    page::well_formed(&report::html::render(&View::of(&run, Language::Japanese)));
}

#[test]
fn redrawn_from_the_store_it_is_the_same() {
    let run = run();
    let folder = tempfile::tempdir().unwrap();
    let mut store = store::Store::open(&folder.path().join("store.sqlite")).unwrap();
    store.begin(&run.head).unwrap();
    run.trials.iter().for_each(|trial| store.save_trial(&run.head.id, trial).unwrap());
    store.finish(&run.head.id, &run.head.end).unwrap();
    let again = store.load("latest").unwrap();
    for language in Language::ALL {
        let (before, after) = (View::of(&run, language), View::of(&again, language));
        assert_eq!(json::render(&before), json::render(&after));
        assert_eq!(report::html::render(&before), report::html::render(&after));
    }
}

/// A store of the first format, written once and kept: what was measured then must be readable for good.
#[test]
fn an_old_store_is_still_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.sqlite");
    std::fs::copy(concat!(env!("CARGO_MANIFEST_DIR"), "/../store/tests/fixtures/v1.sqlite"), &path).unwrap();
    let run = store::Store::open(&path).unwrap().load("latest").unwrap();
    let drawn = terminal(&run, Language::English, 200);
    assert!(drawn.contains("10, limit 4: the worker limit is reached"), "{drawn}");
    page::well_formed(&report::html::render(&View::of(&run, Language::Japanese)));
}

#[test]
fn lines_lost_from_access_logs_are_told() {
    let mut run = run();
    let logged =
        |answered, unsure, early, lines| Logged { answered, unsure, files: 1, early, lines, ..Logged::default() };
    run.head.plan.variants[1].end = Some(End { how: Ending::Restart, after_ns: None });
    for trial in &mut run.trials {
        let block = u64::from(trial.block);
        trial.logged = Some(match trial.cell.as_str() {
            "1 at a time" => logged(4000, 0, 3700 + block, 4000),
            "10 at once" => logged(4000, 5, 3700, 3748),
            "10, limit 4" => Logged { unread: 1, ..logged(4000, 0, 3500, 3600 + 10 * block) },
            _ => Logged { answered: 4000, ..Logged::default() },
        });
    }
    let of_section = |drawn: &str, heading: &str| {
        let from = drawn.find(heading).unwrap();
        drawn[from..].split("\n\n").next().unwrap().to_owned()
    };
    let drawn = terminal(&run, Language::English, 160);
    expect![[r#"
        Access logs
                                1 at a time  10 at once  10 at once (A/A)  10, limit 4   10, lock
        ─────────────────────────────────────────────────────────────────────────────────────────
        server ended by                stop        stop              stop      restart       stop
        answers                       16000       16000             16000        16000      12000
        lines of them                 16000       14992                 –        14460          –
        answers without a line            0   1008–1028                 –         1540          –
        in a trial                        0     252–257                 –      370–400          –
        not yet written before      297–300         300                 –          500          –
        unreadable lines                  0           0                 –            4          –
        Answers are counted by the clients, warm-up included, lines in the log after the server's end. “Not yet written before” is how many answers of a trial had no
        line when the load was over: they were still in the server's buffers or on their way.
        Unreadable lines are not counted as lines of an answer: they are cut off, or not of the format that the plan says.
        Where two numbers stand, some requests were cut off by the end of the load, failed, or were sent again: the server may have logged each of them or not. A load
        of so many requests leaves none.
        A dash stands where there was no file of the log's name."#]].assert_eq(&of_section(&drawn, "Access logs"));
    let drawn = terminal(&run, Language::Japanese, 160);
    expect![[r#"
        アクセスログ
                              1 at a time  10 at once  10 at once (A/A)  10, limit 4   10, lock
        ───────────────────────────────────────────────────────────────────────────────────────
        サーバーの終わらせ方         停止        停止              停止       再起動       停止
        応答                        16000       16000             16000        16000      12000
        ログの行                    16000       14992                 –        14460          –
        行のない応答                    0   1008–1028                 –         1540          –
        1 試行あたり                    0     252–257                 –      370–400          –
        終了前に未記録            297–300         300                 –          500          –
        読めない行                      0           0                 –            4          –
        応答はクライアント側で（ウォームアップも含めて）数え、行はサーバーが終わった後のログで数えます。「終了前に未記録」は、負荷が終わった時点でまだ行のなかった応答の
        数です。サーバーのバッファーか、書き込みの途中にありました。
        途中で切れた行や、プランにある書式と違う行は、応答の行として数えません。
        数が 2 つあるところでは、負荷の終わりで打ち切られた、失敗した、または再送されたリクエストがあり、サーバーがそれぞれを記録したかどうかは分かりません。リクエスト
        数を決めた負荷なら、そのようなものは残りません。
        ログの名前のファイルがなかったところは – です。"#]].assert_eq(&of_section(&drawn, "アクセスログ"));
    let told = json::render(&View::of(&run, Language::English));
    let told: Value = serde_json::from_str(&told).unwrap();
    expect![[r#"{"answers":16000,"ending":"stop","lines":14992,"lost_least":1008,"lost_most":1028,"trials":[{"answers":4000,"block":1,"lines":3748,"lost_least":252,"lost_most":257,"unwritten":300},{"answers":4000,"block":2,"lines":3748,"lost_least":252,"lost_most":257,"unwritten":300},{"answers":4000,"block":3,"lines":3748,"lost_least":252,"lost_most":257,"unwritten":300},{"answers":4000,"block":4,"lines":3748,"lost_least":252,"lost_most":257,"unwritten":300}],"unread":0,"writes":true}"#]].assert_eq(&told["cells"][1]["logged"].to_string());
    assert!(markdown::render(&View::of(&run, Language::English)).contains("## Access logs"));
    assert!(report::html::render(&View::of(&run, Language::English)).contains("Access logs"));
}

/// Lines of the settings that differ, as a terminal shows them.
fn settings(run: &Run) -> String {
    let drawn = terminal(run, Language::English, 300);
    let (_, after) = drawn.split_once("Effective settings that differ\n").unwrap_or_default();
    after.lines().take_while(|line| line.starts_with("  ")).map(|line| format!("{}\n", line.trim())).collect()
}

#[test]
fn another_server_has_none_of_the_settings() {
    let mut run = run();
    for trial in run.trials.iter_mut().filter(|trial| trial.cell == "10, lock") {
        trial.settings.server = "haproxy".into();
        trial.settings.values = [("BACK".to_owned(), "127.0.0.1:9".to_owned())].into();
    }
    assert_eq!(
        settings(&run),
        "MaxRequestWorkers 256: 1 at a time; 10 at once; 10 at once (A/A)\nMaxRequestWorkers 4: 10, limit 4\n"
    );
}

/// Of many cells those of which the same was found are told of together, with the range of their numbers; of few each by itself.
#[test]
fn many_cells_that_are_alike_are_told_of_together() {
    let mut run = run();
    let names = |run: &Run| -> Vec<String> {
        let view = View::of(run, Language::English);
        view.limits.into_iter().map(|limit| limit.who).collect()
    };
    let each: Vec<String> = run.head.plan.cells.iter().map(|cell| cell.name.clone()).collect();
    assert_eq!(names(&run), each);
    let of = run.head.plan.cell("10, limit 4").unwrap().clone();
    for number in 1..=4 {
        let name = format!("copy {number}");
        run.head.plan.cells.push(Cell { name: name.clone(), ..of.clone() });
        for mut trial in run.trials.clone().into_iter().filter(|trial| trial.cell == of.name) {
            trial.cell = name.clone();
            trial.load.as_mut().unwrap().ended_ns -= number * model::SECOND / 10;
            run.trials.push(trial);
        }
    }
    let drawn = terminal(&run, Language::English, 100);
    let (_, limits) = drawn.split_once("What limited each cell").unwrap();
    let (_, after) = limits.split_once("  10, limit 4").unwrap();
    let told: Vec<&str> = after.lines().take_while(|line| !line.is_empty()).collect();
    expect![[r#"
        ; copy 1; copy 2; copy 3; copy 4: the worker limit is reached, and right: more workers
          would not help
              asked concurrency 10, use of the server's CPUs 99.0 % (limit: 90.0 % or more), group's CPU
              pressure (some) 0 %, group's memory limit 200 MiB, memory before the load 14.7 MiB, memory per
              request 44.4 MiB, workers that fit 4, worker limit 4, most workers 4, busy workers 4, accept
              queue 6
              Leave it. To answer more, use less CPU or memory per request, or get more of it.
              How sure: likely, because the thresholds were crossed by little.
              To confirm: With twice the limit the rate stays, and latency or memory rises.
            + CPU-bound: the CPUs the server may use are busy with work
              requests in flight 10 to 10.5, CPU user 18.1 %, CPU system 80.9 %, CPU idle 1.00 %, CPU iowait
              0 %, CPU steal 0 %, CPU use (user + system) 99.0 %, CPUs of the server 2, CPUs the server kept
              busy 1.97, CPUs others kept busy 0, runnable tasks 0
              Use less CPU per request (cache, opcode cache, fewer modules), or get more CPUs. No limit
              needs to be raised.
            ! 10, limit 4: Little's law is off in 1 of 4 trials: on average 10.0 were in flight, rate times
              latency of good answers gives 9.41, -5.9 %. Time may have gone into requests that did not
              count.
            ! copy 1: Little's law is off in 1 of 4 trials: on average 10.1 were in flight, rate times
              latency of good answers gives 9.52, -5.9 %. Time may have gone into requests that did not
              count.
            ! copy 2: Little's law is off in 1 of 4 trials: on average 10.2 were in flight, rate times
              latency of good answers gives 9.63, -5.9 %. Time may have gone into requests that did not
              count.
            ! copy 3: Little's law is off in 1 of 4 trials: on average 10.3 were in flight, rate times
              latency of good answers gives 9.74, -5.9 %. Time may have gone into requests that did not
              count.
            ! copy 4: Little's law is off in 1 of 4 trials: on average 10.5 were in flight, rate times
              latency of good answers gives 9.85, -5.9 %. Time may have gone into requests that did not
              count.
          10, lock: serialised by a lock: about one request is worked on at a time
              asked concurrency 10, group's CPU pressure (some) 0 %, CPUs of the server 2, CPUs the server
              kept busy 1.02, CPUs others kept busy 0, worker limit 256, most workers 12, busy workers 10,
              accept queue 0, processes waiting for a lock 9
              Hold the lock for less, or split it. More workers or CPUs do not help.
              How sure: sure.
              To confirm: /proc/locks names the file and who waits for it (-> lines).
            + as a result: about one CPU is busy
              CPU user 11.1 %, CPU system 39.9 %, CPU idle 49.0 %, CPU iowait 0 %, CPU steal 0 %, CPU use
              (user + system) 51.0 %
              Use more workers or processes, or look for what runs in one thread."#]]
    .assert_eq(&told.join("\n"));
}

/// The baseline and its copy are the same: what differs between them is of the instance, also in a run of one block.
#[test]
fn what_a_copy_has_otherwise_is_no_setting() {
    let mut run = run();
    run.trials.retain(|trial| trial.block == 0);
    for (port, trial) in (8000..).zip(&mut run.trials) {
        trial.settings.values.insert("Listen".to_owned(), format!("127.0.0.1:{port}"));
        let other = if trial.cell == "10, limit 4" { "On" } else { "Off" };
        trial.settings.values.insert("KeepAlive".to_owned(), other.to_owned());
    }
    let told = settings(&run);
    assert!(told.contains("KeepAlive On: 10, limit 4") && !told.contains("Listen"), "{told}");
}

/// One trial of each cell cannot tell a port from a setting: what the variants say is shown, and nothing else.
#[test]
fn what_trials_made_once_have_otherwise_is_no_setting() {
    let mut run = run();
    run.trials.retain(|trial| trial.block == 0 && trial.cell != "10 at once (A/A)");
    for (port, trial) in (8000..).zip(&mut run.trials) {
        trial.settings.values.insert("Listen".to_owned(), format!("127.0.0.1:{port}"));
    }
    assert_eq!(
        settings(&run),
        "MaxRequestWorkers 256: 1 at a time; 10 at once; 10, lock\nMaxRequestWorkers 4: 10, limit 4\n"
    );
}

#[test]
fn requests_that_users_abandoned_are_counted() {
    let mut run = run();
    assert!(!terminal(&run, Language::English, 200).contains("abandoned"));
    for trial in run.trials.iter_mut().filter(|trial| trial.cell == "10, lock") {
        let sessions = model::load::Sessions { abandoned: 7, ..Default::default() };
        if let Some(load) = &mut trial.load {
            load.sessions = Some(sessions);
        }
    }
    let drawn = terminal(&run, Language::English, 200);
    let row = drawn.lines().find(|line| line.starts_with("abandoned")).expect("a row");
    assert_eq!(row.split_whitespace().collect::<Vec<_>>(), ["abandoned", "0", "0", "0", "0", "21"], "{drawn}");
}
