//! Runs made of a few numbers per trial, and what comes out of them.

use super::*;
use expect_test::{Expect, expect};
use model::SECOND;
use model::latency::{Latency, Packed};
use model::load::{Counts, LoadInterval, LoadResult};
use model::plan::{Options, parse};
use model::reading::{Column, Reading, Readings};
use model::run::{Anchor, HostFacts, RunEnd, RunHead};
use model::trial::{EffectiveSettings, Outcome, Trial};
use std::path::Path;

mod between;
mod choice;
mod sweep;

const PLAN: &str = "baseline = \"a\"\n[server]\nkind = \"embedded\"\n[variant.a]\n[variant.b]\n[variant.c]\n\
                    [load.l]\npath = \"/\"\nconnections = 1\nduration = \"1s\"\n";

/// Good answers of each trial in one second, by cell; `a` is the baseline and `a (A/A)` its copy.
fn run(extra: &str, cells: &[(&str, &[u64])]) -> Run {
    let plan = parse(&format!("{extra}\n{PLAN}"), Path::new("t.toml"), &Options::default()).unwrap().0;
    let trials = cells.iter().flat_map(|(cell, goods)| {
        goods.iter().enumerate().map(move |(block, good)| trial(cell, u32::try_from(block).unwrap(), *good))
    });
    let head = RunHead {
        id: "r".into(),
        plan,
        plan_text: String::new(),
        seed: 1,
        anchor: Anchor::default(),
        host: HostFacts::default(),
        version: String::new(),
        end: RunEnd::Complete,
        server_cpus: vec![],
        load_cpus: vec![],
        check: None,
    };
    Run { head, trials: trials.collect() }
}

fn trial(cell: &str, block: u32, good: u64) -> Trial {
    let mut total = Latency::new();
    (0..good).for_each(|i| total.record(100 + i));
    let load = LoadResult {
        connections: 1,
        started_ns: SECOND,
        ended_ns: 2 * SECOND,
        counts: Counts { good, ..Counts::default() },
        total,
        ..LoadResult::empty()
    };
    Trial {
        block,
        position: 0,
        cell: cell.to_owned(),
        rate: None,
        outcome: Outcome::Complete,
        began_ns: 0,
        settings: EffectiveSettings::default(),
        share: None,
        preflight: None,
        load: Some(load),
        probe: None,
        beside: Vec::new(),
        door: None,
        workers: None,
        others: None,
        readings: Readings::default(),
        notes: vec![],
        status: Vec::new(),
        around: None,
        accounts: None,
        log_tail: String::new(),
        logged: None,
    }
}

const BASE: [u64; 6] = [1000, 1010, 990, 1005, 995, 1000];
const SAME: [u64; 6] = [1002, 1008, 991, 1004, 996, 1001];
const MORE: [u64; 6] = [1100, 1112, 1088, 1106, 1093, 1101];

fn check(run: &Run, expected: &Expect) {
    let verdicts = Verdicts::of(run, Metric::Goodput);
    let line = |cell: &Cell| {
        let Compared { comparison: c, unanswered, .. } = verdicts.compared(cell)?;
        let interval = c.interval.map_or("-".to_owned(), |i| format!("{:.3} to {:.3}", i.low, i.high));
        let material = if c.material { ", material" } else { "" };
        Some(format!("{}: {:.3} ({interval}) {:?}{material}, {unanswered} unanswered\n", cell.name, c.ratio, c.verdict))
    };
    let lines: String = run.head.plan.cells.iter().filter_map(line).collect();
    let refused: String = verdicts.refused().iter().map(|(cell, why)| format!("{cell}: {why}\n")).collect();
    let decided = match standing(run) {
        Standing { decided: true, .. } => "decided",
        Standing { settled: true, .. } => "settled",
        Standing { .. } => "not decided",
    };
    expected.assert_eq(&format!("{lines}{refused}{decided}\n"));
}

#[test]
fn cells_are_one_family_and_the_copy_is_none_of_them() {
    let cells: [(&str, &[u64]); 4] = [("a", &BASE), ("a (A/A)", &SAME), ("b", &MORE), ("c", &SAME)];
    check(
        &run("", &cells),
        &expect![[r#"
        a (A/A): 1.000 (0.999 to 1.002) Equivalent, 0 unanswered
        b: 1.100 (1.099 to 1.101) Better, material, 0 unanswered
        c: 1.000 (0.998 to 1.002) Equivalent, 0 unanswered
        decided
    "#]],
    );
    // The same numbers say less when they were looked at up to four times.
    check(
        &run("until_decided = true", &cells),
        &expect![[r#"
        a (A/A): 1.000 (0.998 to 1.003) Equivalent, 0 unanswered
        b: 1.100 (1.098 to 1.102) Better, material, 0 unanswered
        c: 1.000 (0.998 to 1.003) Equivalent, 0 unanswered
        decided
    "#]],
    );
}

#[test]
fn blocks_without_an_answer_forbid_a_verdict() {
    let cells: [(&str, &[u64]); 3] = [("a", &BASE), ("b", &[1100, 0, 1088, 1106, 1093, 1101]), ("c", &[0; 6])];
    check(
        &run("aa = false", &cells),
        &expect![[r#"
            b: 1.100 (1.099 to 1.101) Inconclusive { more_blocks: None }, 1 unanswered
            c: 0.000 (-) Worse, material, 6 unanswered
            settled
        "#]],
    );
    check(
        &run("aa = false", &[("a", &[0; 6]), ("b", &MORE)]),
        &expect![[r#"
            not decided
        "#]],
    );
    // More blocks than these would not help; nor where there is nothing to compare with.
    check(
        &run("aa = false", &[("a", &[0; 6]), ("b", &MORE), ("c", &SAME)]),
        &expect![[r#"
            settled
        "#]],
    );
    check(
        &run("aa = false", &[("a", &BASE), ("b", &[1030, 980, 1020, 1003, 969, 1019]), ("c", &[0; 6])]),
        &expect![[r#"
            b: 1.003 (0.975 to 1.032) Inconclusive { more_blocks: Some(19) }, 0 unanswered
            c: 0.000 (-) Worse, material, 6 unanswered
            not decided
        "#]],
    );
}

#[test]
fn what_the_rest_can_show() {
    let noisy = run("aa = false", &[("a", &BASE), ("b", &[1030, 980, 1020, 1003, 969, 1019])]);
    let at =
        |blocks| Verdicts::resolvable(&noisy, Metric::Goodput, blocks).map(|ratio| (1000.0 * ratio).round() / 1000.0);
    assert_eq!([at(2), at(6), at(24)], [None, Some(1.043), Some(1.018)]);
    assert_eq!(Verdicts::resolvable(&run("", &[("a", &[1000]), ("b", &[900])]), Metric::Goodput, 24), None);
}

/// What two factors do together has twice the noise of what each does, and three questions are a family.
#[test]
fn what_the_rest_can_show_of_unlike_questions() {
    let factors = "[factors.x]\no = \"\"\np = \"Workers 2\"\n[factors.y]\nq = \"\"\nr = \"Workers 3\"\n";
    let load = "[server]\nkind = \"embedded\"\n[load.l]\npath = \"/\"\nconnections = 1\nduration = \"1s\"\n";
    let mut run = run("aa = false", &[]);
    run.head.plan = parse(&format!("aa = false\n{factors}{load}"), Path::new("t.toml"), &Options::default()).unwrap().0;
    for (at, cell) in run.head.plan.cells.clone().iter().enumerate() {
        let good = |block| (10_000.0 * (1.0 + 0.02 * noise("z", block, 7 * at as u64))).round() as u64;
        run.trials.extend((0..60).map(|block| trial(&cell.name, block, good(block))));
    }
    let found = Verdicts::resolvable(&run, Metric::Goodput, 24).unwrap().ln();
    // An interaction has the standard deviation of all four cells, 2 sigma; z is that of 5 % over three.
    let expected = 2.0 * 0.02 * (2.394 + 0.842) / 22.0_f64.sqrt();
    assert!((found / expected - 1.0).abs() < 0.12, "{found}, not {expected}");
}

#[test]
fn other_numbers_of_a_trial() {
    let mut trial = self::trial("a", 0, 500);
    let row = |at_ns, set: &[(Column, u64)]| {
        let mut row = Reading::empty(at_ns);
        set.iter().for_each(|&(column, value)| row.set(column, value));
        row
    };
    let rows = vec![
        row(SECOND / 2, &[(Column::GroupCpuNs, 0), (Column::GroupAnon, 900)]),
        row(SECOND, &[(Column::GroupCpuNs, 1_000_000), (Column::GroupAnon, 700), (Column::GroupSwap, 300)]),
        row(2 * SECOND, &[(Column::GroupCpuNs, 501_000_000), (Column::GroupAnon, 800)]),
        row(3 * SECOND, &[(Column::GroupCpuNs, 900_000_000), (Column::TreeRss, 5000)]),
    ];
    trial.readings = Readings { rows, notes: vec![] };
    let load = trial.load.clone().unwrap();
    let numbers = Metric::ALL.map(|metric| metric.of(&trial, &load));
    // Half a second of CPU time for 500 answers is 1 ms each; memory and what of it is swapped out belong together.
    assert_eq!(numbers, [Some(500.0), Some(349.0), Some(594.0), Some(1000.0), Some(5000.0)]);
    // Without a group by the clocks of its processes, and of old readings by their ticks.
    let without = |trial: &mut Trial, set: &[(Column, [u64; 2])]| {
        let at = |n: usize| set.iter().map(|&(column, values)| (column, values[n])).collect::<Vec<_>>();
        trial.readings.rows = vec![row(SECOND, &at(0)), row(2 * SECOND, &at(1))];
        Metric::CpuPerAnswer.of(trial, &load)
    };
    let (ticks, ns) = ((Column::TreeCpuTicks, [7, 27]), (Column::TreeCpuNs, [70_000_000, 320_000_000]));
    assert_eq!(without(&mut trial, &[ticks, ns]), Some(500.0));
    assert_eq!(without(&mut trial, &[ticks]), Some(400.0));
    // What stands behind it is in no group of its own.
    let (group, behind) = ((Column::GroupCpuNs, [0, 50_000_000]), (Column::TreeBehindCpuNs, [0, 200_000_000]));
    assert_eq!(without(&mut trial, &[ticks, ns, group, behind]), Some(500.0));
    let few = self::trial("a", 0, 50).load.unwrap();
    assert_eq!(Metric::P99.of(&trial, &few), None);
}

/// A run of closed loops whose trials last twenty seconds: the good answers of each second, from the cell, the block and the second.
fn seconds(per_second: impl Fn(&str, u32, u64) -> f64) -> Run {
    let mut run = run("aa = false", &[("a", &BASE), ("b", &BASE), ("c", &BASE)]);
    for trial in &mut run.trials {
        let load = trial.load.as_mut().unwrap();
        let answers = |second: u64| per_second(&trial.cell, trial.block, second).round() as u64;
        load.intervals = (0..20)
            .map(|second| LoadInterval {
                start_ns: (1 + second) * SECOND,
                length_ns: SECOND,
                counts: Counts { good: answers(second), ..Counts::default() },
                total: Packed::default(),
            })
            .collect();
        load.ended_ns = 21 * SECOND;
        load.counts.good = (0..20).map(answers).sum();
        load.total = Latency::new();
        // Latencies of the same length make no noise of their own.
        (0..load.counts.good).for_each(|_| load.total.record(1000));
    }
    run
}

/// The same noise on every machine, of a standard deviation of 1: sums of twelve uniform numbers.
fn noise(cell: &str, block: u32, second: u64) -> f64 {
    let mut state = (u64::from(cell.as_bytes()[0]) << 40) ^ (u64::from(block) << 20) ^ second;
    let mut uniform = || {
        state = (state ^ 0x9e37_79b9_7f4a_7c15)
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / f64::from(u32::MAX >> 1)
    };
    (0..12).map(|_| uniform()).sum::<f64>() - 6.0
}

#[test]
fn noise_is_traced_to_what_makes_it() {
    let shares = |run: &Run| {
        let found = spread(run).unwrap();
        let percent = |share: f64| (share * 100.0).round();
        (percent(found.restart), found.window.map(percent), percent(found.request))
    };
    // 5 % from start to start, and next to nothing within a window; then the other way round.
    let (restart, window, request) = shares(&seconds(|cell, block, _| 1000.0 * (1.0 + 0.05 * noise(cell, block, 99))));
    assert!(restart > 95.0 && window < Some(5.0) && request < 5.0, "{restart} {window:?} {request}");
    let (restart, window, request) =
        shares(&seconds(|cell, block, second| 1000.0 * (1.0 + 0.05 * noise(cell, block, second))));
    assert!(restart < 50.0 && window > Some(50.0) && request < 5.0, "{restart} {window:?} {request}");
    // Seconds are not told from starts where there are none.
    let short = run("aa = false", &[("a", &BASE), ("b", &MORE), ("c", &SAME)]);
    assert_eq!(spread(&short).unwrap().window, None);
    assert_eq!(spread(&run("aa = false", &[("a", &[1000]), ("b", &[900]), ("c", &[900])])), None);
}

/// Connections that wait for each other: latencies differ widely, and what a second gets done does not.
#[test]
fn requests_make_no_more_noise_than_the_seconds_they_are_in() {
    let mut run = seconds(|cell, block, _| 1000.0 * (1.0 + 0.005 * noise(cell, block, 99)));
    for trial in &mut run.trials {
        let load = trial.load.as_mut().unwrap();
        load.total = Latency::new();
        (0..load.counts.good).for_each(|i| load.total.record(if i % 2 == 0 { 100 } else { 10_000 }));
    }
    let found = spread(&run).unwrap();
    assert!(found.restart > 0.95 && found.request < 0.05, "{found:?}");
}

/// What all cells of a block share is no noise of theirs.
#[test]
fn drift_between_blocks_is_taken_out() {
    let drifting = seconds(|_, block, _| 1000.0 * (1.0 + 0.1 * f64::from(block)));
    assert!(spread(&drifting).unwrap().sd < 1e-6);
}

#[test]
fn windows_that_are_not_steady() {
    let found = |per_second: fn(u64) -> f64| {
        let run = seconds(|_, _, second| per_second(second));
        let plan = &run.head.plan;
        unsteady(&plan.loads[0], run.trials[0].load.as_ref().unwrap())
    };
    assert_eq!(found(|_| 1000.0), None);
    let warming = found(|second| if second < 5 { 500.0 } else { 1000.0 });
    assert_eq!(warming, Some(Unsteady::WarmUp { seconds: 5.0, pull: -0.125 }));
    let Some(Unsteady::Drift { share }) = found(|second| 1000.0 + 3.0 * second as f64) else { panic!("a drift") };
    assert!((0.02..0.06).contains(&share), "{share}");
    let mut timetable = seconds(|_, _, second| 1000.0 + 30.0 * second as f64);
    let load = &mut timetable.head.plan.loads[0];
    load.pace = model::plan::Pace::Logged;
    assert_eq!(unsteady(load, timetable.trials[0].load.as_ref().unwrap()), None);
}

#[test]
fn contrasts_have_margins_of_their_own() {
    let asked = "[[contrast]]\nname = \"both\"\nof = [\"b\", \"c\"]\nmargin = 0.5\n[[contrast]]\nname = \"b\"\nof = \"b\"\nagainst = \"c\"\n";
    let mut run = run("aa = false", &[("a", &BASE), ("b", &MORE), ("c", &SAME)]);
    let text = format!("aa = false\n{PLAN}{asked}");
    run.head.plan = parse(&text, Path::new("t.toml"), &Options::default()).unwrap().0;
    let verdicts = Verdicts::of(&run, Metric::Goodput);
    let seen = run.head.plan.contrasts.iter().map(|contrast| {
        let comparison = &verdicts.contrast(contrast).unwrap().comparison;
        format!("{} {:.3} {:?}", contrast.name, comparison.ratio, comparison.verdict)
    });
    expect!["both 1.049 Equivalent; b 1.100 Better"].assert_eq(&seen.collect::<Vec<_>>().join("; "));
    assert!(standing(&run).decided);
    assert!(run.head.plan.cells.iter().all(|cell| verdicts.compared(cell).is_none()));
    assert!(Verdicts::resolvable(&run, Metric::Goodput, 24).is_some());
}

/// Only of throughput none at all is a total failure; of others it is not known.
#[test]
fn a_side_with_too_few_answers_for_a_percentile_is_not_judged() {
    let text = format!("aa = false\n{PLAN}[[contrast]]\nname = \"b\"\nof = \"b\"\nagainst = \"c\"\n");
    let of = |metric, goods: u64| {
        let mut run = run("aa = false", &[("a", &BASE), ("b", &[goods; 6]), ("c", &[400; 6])]);
        run.head.plan = parse(&text, Path::new("t.toml"), &Options::default()).unwrap().0;
        let verdicts = Verdicts::of(&run, metric);
        verdicts.contrast(&run.head.plan.contrasts[0]).map(|it| it.comparison.verdict)
    };
    assert_eq!(of(Metric::P99, 250), None);
    assert_eq!(of(Metric::P99, 350), Some(Verdict::Better));
    assert_eq!(of(Metric::Goodput, 0), Some(Verdict::Worse));
}

/// As many answers as a timetable asks for are no answer: what is asked then is how long they took, the slowest ones first.
#[test]
fn where_a_timetable_asks_for_as_many_latencies_decide() {
    const NOISY: [u64; 6] = [500, 900, 400, 1100, 600, 1000];
    const PACED: &str = "rate = \"400/s\"\n";
    // Of a trial 380 answers take the median's time and 20 that of p99.
    let of = |pace: &str, medians: [u64; 6], p99s: [u64; 6], answers: usize| {
        let mut run = run("aa = false", &[("a", &[400; 6]), ("b", &[400; 6]), ("c", &[400; 6])]);
        let text = format!("aa = false\n{PLAN}{pace}");
        run.head.plan = parse(&text, Path::new("t.toml"), &Options::default()).unwrap().0;
        for trial in &mut run.trials {
            let (block, is_b) = (trial.block as usize, trial.cell == "b");
            let [median, p99] = if is_b { [medians[block], p99s[block]] } else { [MORE[block], 10 * MORE[block]] };
            let total = &mut trial.load.as_mut().unwrap().total;
            *total = Latency::new();
            (0..answers).for_each(|n| total.record(if n % 20 == 0 { p99 } else { median }));
        }
        (standing(&run), decisive(&run))
    };
    let (open, decided) = (Standing { decided: false, settled: false }, Standing { decided: true, settled: true });
    let (ten, slow) = (MORE.map(|us| 10 * us), NOISY.map(|us| 20 * us));
    assert_eq!(of(PACED, MORE, slow, 400), (open, Metric::P99));
    assert_eq!(of(PACED, NOISY, ten, 400), (open, Metric::P99));
    assert_eq!(of(PACED, BASE, ten, 400), (decided, Metric::P99));
    assert_eq!(of(PACED, NOISY, BASE.map(|us| 5 * us), 400), (decided, Metric::P99));
    // Too few answers for a p99, or for anything.
    assert_eq!(of(PACED, NOISY, slow, 100), (open, Metric::Median));
    assert_eq!(of(PACED, BASE, slow, 100), (decided, Metric::Median));
    assert_eq!(of(PACED, NOISY, slow, 0), (decided, Metric::Goodput));
    assert_eq!(of("", NOISY, slow, 400), (decided, Metric::Goodput));
}

/// Medians are whole microseconds, and may be the same in every block.
#[test]
fn what_lies_behind_the_last_digit_is_not_known() {
    let of = |margin: &str, us: [u64; 2]| {
        let mut run = run(&format!("aa = false\nmargin = {margin}"), &[("a", &BASE), ("b", &MORE), ("c", &MORE)]);
        for trial in &mut run.trials {
            let total = &mut trial.load.as_mut().unwrap().total;
            *total = Latency::new();
            (0..400).for_each(|_| total.record(us[usize::from(trial.cell != "a")]));
        }
        let verdicts = Verdicts::of(&run, Metric::Median);
        let comparison = &verdicts.compared(&run.head.plan.cells[1]).unwrap().comparison;
        (comparison.verdict, comparison.material)
    };
    let open = (Verdict::Inconclusive { more_blocks: None }, false);
    assert_eq!(of("0.02", [40, 41]), open);
    assert_eq!(of("0.02", [40, 43]), (Verdict::Worse, true));
    assert_eq!(of("0.02", [40, 40]), open);
    assert_eq!(of("0.06", [40, 40]), (Verdict::Equivalent, false));
    assert_eq!(of("0.02", [20_000, 20_000]), (Verdict::Equivalent, false));
}
