//! What follows from a run: taken, kept, open, and what it says of prices and of what was expected.

use crate::asked::run;
use crate::beside::with_static;
use crate::fixture;
use crate::terminal;
use expect_test::{Expect, expect};
use model::latency::Latency;
use model::load::Failure;
use model::plan::{Arrivals, Cell, Pace, Timetable};
use model::run::Run;
use model::trial::{Logged, Trial};
use report::{Language, View, html, json, markdown};

/// The section, without what it holds for.
fn check(run: &Run, language: Language, expected: &Expect) {
    let drawn = terminal(run, language, 100);
    let heading = if language == Language::Japanese { "\n推奨\n" } else { "\nRecommendation\n" };
    let section = drawn.split_once(heading).map_or("", |(_, rest)| rest.split("\n\n").next().unwrap_or(rest));
    let lines = section.lines().map(|line| line.strip_prefix("  ").unwrap_or(line));
    let scope = ["For this page mix", "適用範囲"];
    let lines: Vec<&str> = lines.take_while(|line| !scope.iter().any(|it| line.starts_with(it))).collect();
    expected.assert_eq(&lines.join("\n"));
}

const VARIANTS: &str = "aa = false\n[variant.usual]\n[variant.few]\ndirectives = \"Workers 2\"\n[variant.many]\ndirectives = \"Workers 9\"\n";

fn rates(usual: f64, few: f64, many: f64) -> impl Fn(&Cell) -> f64 {
    move |cell| match cell.variant.as_str() {
        "few" => few,
        "many" => many,
        _ => usual,
    }
}

/// So many good answers, each after what its place says.
fn answer(trial: &mut Trial, good: u64, us: impl Fn(u64) -> u64) {
    let load = trial.load.as_mut().expect("it was measured");
    load.counts.good = good;
    load.total = Latency::new();
    (0..good).for_each(|place| load.total.record(us(place)));
}

/// A timetable asks for so many of all of them.
#[test]
fn as_many_answers_that_come_later_are_worse() {
    let mut run = run(VARIANTS, rates(1000.0, 1000.0, 1000.0));
    for trial in &mut run.trials {
        let us = if trial.cell == "few" { 12_000 } else { 8_000 } + 10 * u64::from(trial.block);
        answer(trial, 1000, |_| us);
    }
    let timetable = Timetable::constant(1000.0, Arrivals::Even);
    run.head.plan.loads[0].pace = Pace::Timetable(timetable);
    check(
        &run,
        Language::English,
        &expect![[r#"
        Keep “usual”: no other setting of the plan was found to be better.
          The same, within the plan's margin: “many”.
          Worse: “few”."#]],
    );
}

/// At a rate: the slowest of `few` come at these times, which are no later by the margin, or leave it open; its median is shorter.
fn sooner_at_a_rate(slowest_us: [u64; 6]) -> Run {
    let mut run = run(VARIANTS, rates(1000.0, 1000.0, 1000.0));
    for trial in &mut run.trials {
        let noise = 10 * u64::from(trial.block);
        let few = trial.cell == "few";
        let slowest = if few { slowest_us[trial.block as usize % 6] } else { 80_000 };
        let most = if few { 7000 } else { 8000 } + noise;
        answer(trial, 1000, |place| if place % 50 == 0 { slowest } else { most });
    }
    run.head.plan.loads[0].pace = Pace::Timetable(Timetable::constant(1000.0, Arrivals::Even));
    run
}

/// What is no worse is said where something else decides, and what has been shown where nothing does.
#[test]
fn what_is_shown_is_told_be_it_decided_or_not() {
    let no_later = sooner_at_a_rate([68_000, 80_200, 69_000, 79_000, 71_700, 76_100]);
    check(
        &no_later,
        Language::English,
        &expect![[r#"
            Set “few” instead of “usual”: as many good answers per second, and median ×0.875 (95 % interval
            0.875 to 0.876).
              It sets: Workers 2
              Shown to be no worse, within the margin, though not to be the same: p99 ×0.923 (0.843 to 1.010)."#]],
    );
    check(
        &no_later,
        Language::Japanese,
        &expect![[r#"
            「usual」の代わりに「few」を使う: 1 秒あたりの正常な応答は同等で、中央値が0.875 倍（95 % 信頼区間
            0.875〜0.876）。
              設定: Workers 2
              同等とは判定されていないが、許容差を超えて悪くはならないと判定されたもの: p99 0.923 倍（0.843〜
              1.010）。"#]],
    );
    let wild = sooner_at_a_rate([40_000, 160_000, 50_000, 130_000, 60_000, 99_000]);
    check(
        &wild,
        Language::English,
        &expect![[r#"
            Not decided: “usual” or “few”.
              The same, within the plan's margin: “many”.
              Shown of “few” so far, better: median ×0.875 (0.875 to 0.876).
              The rate is given, so latency decides.
              More than 100 further blocks would be needed to decide it: longer windows, or a calmer machine."#]],
    );
    check(
        &wild,
        Language::Japanese,
        &expect![[r#"
            未決着: 「usual」か「few」。
              同等（差は計画で指定した許容差未満）: 「many」。
              「few」についてこれまでに判定されたもの、改善: 中央値 0.875 倍（0.875〜0.876）。
              レートが決まっているため、応答時間で決めます。
              決着には、あと 100 ブロックを超える測定が必要です。測定時間を延ばすか、静かなマシンで測ってくだ
              さい。"#]],
    );
}

/// No fewer answers that come sooner, and then later.
#[test]
fn no_fewer_and_what_is_shown_for_worse_is_told() {
    let mut run = run(VARIANTS, rates(1000.0, 1000.0, 1000.0));
    let more = [1.19, 0.99, 1.17, 1.01, 1.12, 1.05];
    for trial in &mut run.trials {
        let factor = if trial.cell == "few" { more[trial.block as usize % 6] } else { 1.0 };
        let us = if trial.cell == "few" { 7000 } else { 8000 } + 10 * u64::from(trial.block);
        answer(trial, (1000.0 * factor) as u64, |_| us);
    }
    check(
        &run,
        Language::English,
        &expect![[r#"
        Set “few” instead of “usual”: no fewer good answers per second, within the margin, and
        p99 ×0.875 (95 % interval 0.875 to 0.876).
          It sets: Workers 2
          Shown to be no worse, within the margin, though not to be the same: good answers per second
          ×1.086 (0.983 to 1.200).
          It also brings: median ×0.875 (0.875 to 0.876)."#]],
    );
    check(
        &run,
        Language::Japanese,
        &expect![[r#"
        「usual」の代わりに「few」を使う: 1 秒あたりの正常な応答は許容差を超えて減らず、p99が0.875 倍
        （95 % 信頼区間 0.875〜0.876）。
          設定: Workers 2
          同等とは判定されていないが、許容差を超えて悪くはならないと判定されたもの: 1 秒あたりの正常な応答
          1.086 倍（0.983〜1.200）。
          ほかの利点: 中央値 0.875 倍（0.875〜0.876）。"#]],
    );
    // Fewer or more, nobody knows, and each of them later.
    for trial in run.trials.iter_mut().filter(|trial| trial.cell == "few") {
        let us = 9000 + 10 * u64::from(trial.block);
        answer(trial, if trial.block % 2 == 0 { 1200 } else { 900 }, |_| us);
    }
    check(
        &run,
        Language::English,
        &expect![[r#"
        Not decided: “usual” or “few”.
          The same, within the plan's margin: “many”.
          Shown of “few” so far, worse: median ×1.125 (1.124 to 1.125), p99 ×1.125 (1.124 to 1.125).
          More than 100 further blocks would be needed to decide it: longer windows, or a calmer machine."#]],
    );
    check(
        &run,
        Language::Japanese,
        &expect![[r#"
        未決着: 「usual」か「few」。
          同等（差は計画で指定した許容差未満）: 「many」。
          「few」についてこれまでに判定されたもの、悪化: 中央値 1.125 倍（1.124〜1.125）、p99 1.125 倍
          （1.124〜1.125）。
          決着には、あと 100 ブロックを超える測定が必要です。測定時間を延ばすか、静かなマシンで測ってくだ
          さい。"#]],
    );
}

#[test]
fn one_is_taken_or_none_or_it_is_open() {
    check(
        &run(VARIANTS, rates(1000.0, 900.0, 1300.0)),
        Language::English,
        &expect![[r#"
              Set “many” instead of “usual”: good answers per second ×1.318 (95 % interval 1.292 to 1.343).
                It sets: Workers 9
                It also brings: median ×0.759 (0.745 to 0.774), p99 ×0.759 (0.745 to 0.774)."#]],
    );
    check(
        &run(VARIANTS, rates(1000.0, 1300.0, 1305.0)),
        Language::English,
        &expect![[r#"
            Set “many” instead of “usual”: good answers per second ×1.323 (95 % interval 1.297 to 1.348).
              It sets: Workers 9
              It also brings: median ×0.756 (0.742 to 0.771), p99 ×0.756 (0.742 to 0.771).
              Their intervals overlap with its own: “few”."#]],
    );
    check(
        &run(VARIANTS, rates(1000.0, 900.0, 1000.0)),
        Language::English,
        &expect![[r#"
            Not decided: “usual” or “many”.
              Worse: “few”.
              About 8 blocks more would probably decide it: 16.0 s, by the time that blocks took."#]],
    );
    check(
        &run(VARIANTS, rates(0.0, 0.0, 50.0)),
        Language::English,
        &expect![[r#"
              Set “many” instead of “usual”: it gives 50.3 good answers per second, and “usual” gave none in any
              trial.
                It sets: Workers 9"#]],
    );
    check(
        &run("[variant.only]\n", |_| 100.0),
        Language::English,
        &expect!["The plan has no two settings that met the same load: there is nothing to choose from."],
    );
}

/// A pause in which the run was left as it was is no part of what a block takes.
#[test]
fn a_pause_does_not_make_blocks_longer() {
    let mut run = run(VARIANTS, rates(1000.0, 900.0, 1000.0));
    let told = |run: &Run| {
        let view = View::of(run, Language::English);
        let told: Vec<String> = view.recommendation.told().map(|(_, sentence)| sentence.text.clone()).collect();
        told.into_iter().find(|text| text.contains("by the time that blocks took")).expect("it is not decided")
    };
    let without = told(&run);
    for trial in run.trials.iter_mut().filter(|trial| trial.block > 2) {
        let hour = 3600 * model::SECOND;
        trial.began_ns += hour;
        let load = trial.load.as_mut().unwrap();
        (load.started_ns, load.ended_ns) = (load.started_ns + hour, load.ended_ns + hour);
    }
    assert_eq!(told(&run), without);
}

/// What most requests fail with is no choice, however many good answers it may give.
#[test]
fn what_fails_mostly_is_not_left_to_choose() {
    let mut run = run(VARIANTS, rates(1000.0, 1000.0, 1000.0));
    for trial in &mut run.trials {
        // Now more, now fewer: open for ever.
        let good = if trial.cell == "usual" { 1000 } else { [500, 2000][trial.block as usize % 2] };
        answer(trial, good, |_| 8000);
        if trial.cell == "many" {
            trial.load.as_mut().unwrap().counts.failed = [(Failure::Status, 9000)].into();
        }
    }
    check(
        &run,
        Language::English,
        &expect![[r#"
            Not decided: “usual” or “few”.
              More than 100 further blocks would be needed to decide it: longer windows, or a calmer machine.
              Most requests fail with: “many” (54000 of 61500)."#]],
    );
    check(
        &run,
        Language::Japanese,
        &expect![[r#"
            未決着: 「usual」か「few」。
              決着には、あと 100 ブロックを超える測定が必要です。測定時間を延ばすか、静かなマシンで測ってくだ
              さい。
              半数を超えるリクエストが失敗する設定: 「many」（61500 件中 54000 件）。"#]],
    );
    for trial in run.trials.iter_mut().filter(|trial| trial.cell == "usual") {
        trial.load.as_mut().unwrap().counts.failed = [(Failure::Status, 9000)].into();
    }
    check(
        &run,
        Language::English,
        &expect![[r#"
        Not decided: “usual” or “few”, “many”.
          More than 100 further blocks would be needed to decide it: longer windows, or a calmer machine.
          What limits “usual”: too many failures for the rate to mean much. See which failures they are,
          and the end of the error log, before anything is tuned."#]],
    );
}

/// Nor is it taken, when it is shown to give more.
#[test]
fn what_fails_mostly_is_not_taken() {
    let mut run = run(VARIANTS, rates(1000.0, 1000.0, 2000.0));
    for trial in run.trials.iter_mut().filter(|trial| trial.cell == "many") {
        trial.load.as_mut().unwrap().counts.failed = [(Failure::Status, 9000)].into();
    }
    check(
        &run,
        Language::English,
        &expect![[r#"
        Not decided: “usual” or “few”.
          About 25 blocks more would probably decide it: 50.0 s, by the time that blocks took.
          Most requests fail with: “many” (54000 of 66067)."#]],
    );
    let told = json::render(&View::of(&run, Language::English));
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["recommendation"]["choices"][0]["failing"], serde_json::json!(["many"]));
    // One trial may have been an accident.
    run.trials.retain(|trial| trial.block == 0);
    check(
        &run,
        Language::English,
        &expect![[r#"
        Not decided: “usual” or “few”, “many”.
          One block does not show the noise: 3 more tell how much it takes to decide it."#]],
    );
}

/// Settings that were asked for different loads are named with them.
#[test]
fn what_does_all_is_named_with_what_it_was_asked_for() {
    let mut run = run(VARIANTS, rates(1000.0, 990.0, 1500.0));
    let expect: Vec<model::threshold::Threshold> = vec!["failed = 0".to_owned().try_into().unwrap()];
    run.head.plan.loads[0].expect = expect.clone();
    let other = model::plan::LoadSpec { name: "upload".to_owned(), ..run.head.plan.loads[0].clone() };
    run.head.plan.loads.push(other);
    let few = run.head.plan.cell("few").unwrap().clone();
    run.head.plan.cells.push(Cell { name: "few, upload".to_owned(), load: "upload".to_owned(), ..few });
    for trial in run.trials.clone().into_iter().filter(|trial| trial.cell == "few") {
        run.trials.push(Trial { cell: "few, upload".to_owned(), ..trial });
    }
    let notes = View::of(&run, Language::English).recommendation.notes;
    expect!["Does all that the plan expects, in every trial: “usual” (l), “few” (l, upload), “many” (l)."]
        .assert_eq(&notes[0].text);
}

/// The only page that fails decides, however many answers the others give.
#[test]
fn what_was_expected_goes_first() {
    let mut run = run(VARIANTS, rates(1000.0, 990.0, 1500.0));
    run.head.plan.loads[0].expect = vec!["failed = 0".to_owned().try_into().unwrap()];
    for trial in run.trials.iter_mut().filter(|trial| trial.cell == "many" && trial.block == 1) {
        trial.load.as_mut().unwrap().counts.failed = [(Failure::Check, 9)].into();
    }
    check(
        &run,
        Language::English,
        &expect![[r#"
            Does all that the plan expects, in every trial: “usual”, “few”.
            Misses some of it, in one trial or more: “many” (many: failed = 0).
            Not decided: “usual” or “few”.
              About 8 blocks more would probably decide it: 16.0 s, by the time that blocks took."#]],
    );
    check(
        &run,
        Language::Japanese,
        &expect![[r#"
            どの試行でも計画の期待をすべて満たすもの: 「usual」、「few」。
            満たさない試行のあるもの: 「many」（many: failed = 0）。
            未決着: 「usual」か「few」。
              あと 8 ブロックほどで、おそらく決着します。これまでのブロックの所要時間では 16.0 s です。"#]],
    );
    let view = View::of(&run, Language::English);
    assert!(
        markdown::render(&view).contains("\n- Misses some of it, in one trial or more: “many” (many: failed = 0).\n"),
        "{}",
        markdown::render(&view)
    );
    assert!(html::render(&view).contains("<p>Misses some of it, in one trial or more: “many” (many: failed = 0).</p>"));
}

/// Of a setting that was not measured, as of a run that was broken off, it is not said that it misses anything.
#[test]
fn what_was_not_measured_misses_nothing() {
    let mut run = run(VARIANTS, rates(1000.0, 990.0, 1000.0));
    run.head.plan.loads[0].expect = vec!["failed = 0".to_owned().try_into().unwrap()];
    run.trials.retain(|trial| trial.cell != "many");
    let drawn = terminal(&run, Language::English, 100);
    assert!(drawn.contains("Does all that the plan expects, in every trial: “usual”, “few”."), "{drawn}");
    assert!(!drawn.contains("Misses some of it"), "{drawn}");
}

/// The second copy of the baseline is no setting of its own: what it misses the baseline does, and where it was not measured nothing is missed.
#[test]
fn the_second_copy_is_heard_with_the_first() {
    let notes = |run: &Run| {
        let notes = View::of(run, Language::English).recommendation.notes;
        notes.into_iter().map(|note| note.text).collect::<Vec<_>>()
    };
    let mut run = run(&VARIANTS.replace("aa = false\n", ""), rates(1000.0, 990.0, 1500.0));
    run.head.plan.loads[0].expect = vec!["failed = 0".to_owned().try_into().unwrap()];
    let mut failing = run.clone();
    for trial in failing.trials.iter_mut().filter(|trial| trial.cell == "usual (A/A)" && trial.block == 1) {
        trial.load.as_mut().unwrap().counts.failed = [(Failure::Check, 9)].into();
    }
    assert_eq!(
        notes(&failing),
        [
            "Does all that the plan expects, in every trial: “few”, “many”.",
            "Misses some of it, in one trial or more: “usual” (usual: failed = 0)."
        ]
    );
    run.trials.retain(|trial| trial.cell != "usual (A/A)");
    assert_eq!(notes(&run), ["Does all that the plan expects, in every trial: “usual”, “few”, “many”."]);
}

/// Whichever setting loses lines; and not of requests that may have had no line to lose.
#[test]
fn who_loses_lines_is_told() {
    let mut run = with_static();
    let mut log = |least: u64, unsure: u64| {
        for trial in &mut run.trials {
            let lines = if trial.cell.starts_with("10") { 400 - least } else { 400 };
            trial.logged = Some(Logged { answered: 400, files: 1, lines, unsure, ..Logged::default() });
        }
        View::of(&run, Language::English).recommendation.losing.map(|losing| losing.text)
    };
    let both = "Lines of the access log are lost with: “10 at once” (400 of 1600), “10 at once (A/A)” (400 of 1600), \
                “10, limit 4” (400 of 1600), “10, lock” (300 of 1200).";
    assert_eq!(log(100, 0).as_deref(), Some(both));
    assert_eq!(log(0, 5), None);
}

/// A limit that lets the programs breathe starves the files beside them, and loses lines of the log.
#[test]
fn the_price_is_told() {
    let mut run = with_static();
    for trial in &mut run.trials {
        let lines = if trial.cell == "10, limit 4" { 390 } else { 400 };
        trial.logged = Some(Logged { answered: 400, files: 1, lines, ..Logged::default() });
    }
    check(
        &run,
        Language::English,
        &expect![[r#"
            Set “10, limit 4” instead of “10 at once”: good answers per second ×6.83 (95 % interval 6.55 to
            7.13).
              It sets: MaxRequestWorkers 4
              It also brings: median ×0.151 (0.138 to 0.165), p99 ×0.148 (0.147 to 0.150), CPU per answer
              ×0.500 (0.482 to 0.518), memory ×0.347 (0.343 to 0.351).
              It costs: median of “static” ×3.60 (3.60 to 3.60), p99 of “static” ×3.60 (3.60 to 3.60).
              What limits it then: the worker limit is reached, and right: more workers would not help. Leave
              it. To answer more, use less CPU or memory per request, or get more of it.
            Lines of the access log are lost with: “10, limit 4” (40 of 1600)."#]],
    );
    let document: serde_json::Value = serde_json::from_str(&json::render(&View::of(&run, Language::English))).unwrap();
    let choice = &document["recommendation"]["choices"][0];
    assert_eq!((&choice["advice"], &choice["take"]["lines"][0]), (&"take".into(), &"MaxRequestWorkers 4".into()));
}

/// What the one that stays goes without as well, or more of it, is no price.
#[test]
fn what_both_lack_is_no_price() {
    let mut run = run(VARIANTS, rates(1000.0, 900.0, 1300.0));
    run.head.plan.variants[0].directives = run.head.plan.variants[1].directives.clone();
    for trial in &mut run.trials {
        let failed = if trial.cell == "usual" { 500 } else { 20 };
        trial.load.as_mut().unwrap().counts.failed = [(Failure::Status, failed)].into();
        trial.logged = Some(Logged { answered: 400, ..Logged::default() });
    }
    check(
        &run,
        Language::English,
        &expect![[r#"
        Set “many” instead of “usual”: good answers per second ×1.318 (95 % interval 1.292 to 1.343).
          It sets: Workers 9
          In “usual”, in its place: Workers 2
          It also brings: median ×0.759 (0.745 to 0.774), p99 ×0.759 (0.745 to 0.774)."#]],
    );
    check(
        &run,
        Language::Japanese,
        &expect![[r#"
        「usual」の代わりに「many」を使う: 1 秒あたりの正常な応答が1.318 倍（95 % 信頼区間 1.292〜
        1.343）。
          設定: Workers 9
          「usual」での設定: Workers 2
          ほかの利点: 中央値 0.759 倍（0.745〜0.774）、p99 0.759 倍（0.745〜0.774）。"#]],
    );
}

/// A run of which nothing was measured says nothing.
#[test]
fn nothing_follows_from_nothing() {
    let run = Run { head: fixture::head(fixture::PLAN), trials: vec![] };
    let view = View::of(&run, Language::English);
    assert_eq!(view.recommendation.told().count(), 0);
}
