//! What workers held, in words and in figures: the figures of forty workers with pages of 8 MB, as they were once measured.

use crate::fixture;
use expect_test::expect;
use model::plan::ServerSpec;
use model::reading::Column;
use model::run::Run;
use model::threshold::Threshold;
use model::trial::Share;
use model::workers::{Crew, Held, WorkersHeld};
use report::view::WorkersView;
use report::{Language, View, json, markdown, text};
use std::fmt::Write as _;
use std::path::PathBuf;

fn held(resident: u64, proportional: u64, own: u64) -> Held {
    Held { resident: resident << 10, proportional: proportional << 10, own: own << 10, swapped: 0 }
}

/// A run in whose cell with a limit of 4 forty workers were seen; in its last block only after the load. Its pages are the workers' own.
fn run() -> Run {
    let mut run = fixture::run();
    scripts_of(&mut run).take();
    run.head.plan.confine.as_mut().unwrap().memory = Some(1 << 30);
    for trial in run.trials.iter_mut().filter(|trial| trial.cell == "10, limit 4") {
        let Some(load) = &trial.load else { continue };
        let mut workers = vec![held(23_131, 10_607, 10_298); 39];
        workers.push(held(23_944, 10_700, 10_392));
        let crew = Crew { name: "apache2".into(), threads: 1, workers, others: vec![held(20_000, 6_467, 5_000)] };
        let late = u64::from(trial.block == 3);
        let at_ns = load.ended_ns - 1 + 2 * late;
        trial.workers = Some(WorkersHeld { at_ns, took_ns: 8_400_000, crews: vec![crew], unread: 0 });
        trial.settings.values.insert("memory_limit".to_owned(), "64M".to_owned());
    }
    run
}

/// Where a run's Apache has programs that it starts for each request.
fn scripts_of(run: &mut Run) -> &mut Option<PathBuf> {
    let ServerSpec::Apache(apache) = &mut run.head.plan.server else { panic!("an Apache") };
    &mut apache.scripts
}

fn of_cell(view: &View) -> &WorkersView {
    let with: Vec<_> = view.cells.iter().filter(|cell| !cell.workers.is_empty()).collect();
    assert_eq!((with.len(), with[0].name.as_str(), with[0].workers.len()), (1, "10, limit 4", 1));
    &with[0].workers[0]
}

#[test]
fn forty_workers_in_every_form() {
    let run = run();
    for (language, expected) in [
        (
            Language::English,
            expect![[r#"
                Memory of apache2's worker processes (40 of them, median and largest): resident 22.6 MiB and 23.4 MiB, their share of it (PSS) 10.4 MiB and 10.4 MiB, nobody else's (USS, what is swapped out included) 10.1 MiB and 10.1 MiB; 18.4 MiB are shared or held by the rest of the server (looks: 4, one took 8.40 ms; 1 of them after the load)
                99 workers like the largest fit into the 1.00 GiB that the plan gives: (1.00 GiB - 18.4 MiB) / 10.1 MiB; dividing by the 23.4 MiB of resident memory would say 43
                if each page took all of memory_limit (64.0 MiB): 15"#]],
        ),
        (
            Language::Japanese,
            expect![[r#"
                apache2 のワーカープロセス 40 個のメモリー（中央値と最大）: 常駐 22.6 MiB と 23.4 MiB、按分 (PSS) 10.4 MiB と 10.4 MiB、占有 (USS、スワップ分を含む) 10.1 MiB と 10.1 MiB。共有分とサーバーの残り 18.4 MiB（4 回の観測、1 回 8.40 ms、うち 1 回は負荷の後）
                計画のメモリー 1.00 GiB には最大のワーカーと同じものが 99 個収まる: (1.00 GiB - 18.4 MiB) / 10.1 MiB。常駐メモリー 23.4 MiB で割ると 43 個になる
                どのページも memory_limit (64.0 MiB) まで使う場合は 15 個"#]],
        ),
    ] {
        let view = View::of(&run, language);
        let told: Vec<&str> = of_cell(&view).sentences.iter().map(|sentence| sentence.text.as_str()).collect();
        expected.assert_eq(&told.join("\n"));
        let look = text::Look { width: 2000, colour: text::Colour::None };
        for drawn in [text::render(&view, look), markdown::render(&view), report::html::render(&view)] {
            for sentence in &told {
                // What Markdown gives a meaning is escaped there.
                let plain = drawn.replace('\\', "").replace("&#39;", "'");
                assert!(plain.contains(sentence), "{sentence}\nis not in\n{drawn}");
            }
        }
    }
    let view = View::of(&run, Language::English);
    let workers = of_cell(&view);
    let fit = workers.fit.as_ref().unwrap();
    let numbers = [fit.workers, fit.workers_by_resident, fit.workers_by_limit.unwrap()];
    assert_eq!((numbers, fit.planned, workers.looks, workers.looks_after), ([99, 43, 15], true, 4, 1));
    let document: serde_json::Value = serde_json::from_str(&json::render(&view)).unwrap();
    let cells = document["cells"].as_array().unwrap();
    let told = cells.iter().find_map(|cell| cell.pointer("/workers/0/own/largest_bytes")).unwrap();
    assert_eq!(told.as_f64(), Some(f64::from(10_392 << 10)));
}

#[test]
fn without_a_limit_it_is_what_was_available() {
    let mut run = run();
    run.head.plan.confine = None;
    for trial in &mut run.trials {
        trial.settings.values.remove("memory_limit");
        trial.readings.rows.iter_mut().for_each(|row| row.set(Column::MemAvailable, 500_000));
    }
    let view = View::of(&run, Language::English);
    let workers = of_cell(&view);
    let fit = workers.fit.as_ref().unwrap();
    // What was available, and what the server had of it.
    let memory = (500_000 + 39 * 10_607 + 10_700 + 6_467) << 10;
    assert_eq!((fit.memory_bytes, fit.planned, fit.limit_bytes), (f64::from(memory), false, None));
    assert_eq!(fit.workers, (memory as u64 - workers.shared_bytes as u64) / (10_392 << 10));
    assert!(workers.sentences[1].text.contains("that were available to the server"), "{:?}", workers.sentences);
    // A service or a container around it may leave it less.
    let share = Share { memory: Some(100 << 20), ..Share::default() };
    run.trials.iter_mut().for_each(|trial| trial.share = Some(share));
    let view = View::of(&run, Language::English);
    assert_eq!(of_cell(&view).fit.as_ref().unwrap().memory_bytes, f64::from(100 << 20));
}

#[test]
fn threads_share_a_worker_so_their_number_says_nothing() {
    let mut run = run();
    let crews = run.trials.iter_mut().filter_map(|trial| trial.workers.as_mut()).flat_map(|held| &mut held.crews);
    crews.for_each(|crew| crew.threads = 27);
    let view = View::of(&run, Language::English);
    assert!(of_cell(&view).fit.is_none());
    assert_eq!(of_cell(&view).sentences.len(), 1);
}

#[test]
fn programs_have_their_memory_to_themselves_so_workers_say_nothing() {
    let mut run = run();
    *scripts_of(&mut run) = Some("/scripts".into());
    let view = View::of(&run, Language::English);
    assert!(of_cell(&view).fit.is_none());
    assert_eq!(of_cell(&view).sentences.len(), 1);
}

#[test]
fn what_the_plan_expects_is_held_against_every_trial() {
    let mut run = run();
    let expect = ["rate > 5/s", "max < 1ms", "service.p99 < 1s"].map(|text| Threshold::parse(text).unwrap());
    for load in &mut run.head.plan.loads {
        load.expect = expect.to_vec();
    }
    let mut told = String::new();
    for language in [Language::English, Language::Japanese] {
        let view = View::of(&run, language);
        let drawn = text::render(&view, text::Look { width: 2000, colour: text::Colour::None });
        for cell in view.cells.iter().filter(|cell| ["10, limit 4", "10 at once"].contains(&cell.name.as_str())) {
            for expected in &cell.expected {
                assert_eq!(expected.is_met, expected.trials_met == 4);
                assert!(drawn.contains(&expected.sentence.text), "{drawn}");
                let _ = writeln!(
                    told,
                    "{}: {}/{} {}",
                    cell.name, expected.trials_met, expected.trials, expected.sentence.text
                );
            }
        }
    }
    expect![[r#"
        10 at once: 4/4 met in all 4 trials: rate > 5/s
        10 at once: 0/4 missed: max < 1ms (found: 1.89 s); trials with this: 4 of 4
        10 at once: 0/4 not known, so missed: service.p99 < 1s (only a load that sends at a rate of its own has such a number; give it one, such as -r 100/s); trials with this: 4 of 4
        10, limit 4: 4/4 met in all 4 trials: rate > 5/s
        10, limit 4: 0/4 missed: max < 1ms (found: 281 ms); trials with this: 4 of 4
        10, limit 4: 0/4 not known, so missed: service.p99 < 1s (only a load that sends at a rate of its own has such a number; give it one, such as -r 100/s); trials with this: 4 of 4
        10 at once: 4/4 4 回の試行すべてで達成: rate > 5/s
        10 at once: 0/4 4 回の試行のうち 4 回で未達: max < 1ms（実測 1.89 s）
        10 at once: 0/4 4 回の試行のうち 4 回で不明のため未達: service.p99 < 1s（レートを指定した負荷にしかない値です。-r 100/s のように指定してください）
        10, limit 4: 4/4 4 回の試行すべてで達成: rate > 5/s
        10, limit 4: 0/4 4 回の試行のうち 4 回で未達: max < 1ms（実測 281 ms）
        10, limit 4: 0/4 4 回の試行のうち 4 回で不明のため未達: service.p99 < 1s（レートを指定した負荷にしかない値です。-r 100/s のように指定してください）
    "#]].assert_eq(&told);
}
