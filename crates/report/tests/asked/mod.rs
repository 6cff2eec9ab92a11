//! Plans that ask more than how each cell compares with the baseline: named contrasts, factors, a sweep.

use super::fixture::{Seeded, head};
use super::{check, terminal};
use expect_test::{expect, expect_file};
use model::SECOND;
use model::latency::Latency;
use model::load::{Counts, Failure, LoadResult};
use model::plan::Cell;
use model::run::{Run, RunEnd};
use model::trial::{EffectiveSettings, Outcome, Trial};
use report::{Language, View, html, json, markdown};

const SERVER: &str = "[server]\nkind = \"embedded\"\n[load.l]\npath = \"/\"\nconnections = 8\nduration = \"10s\"\n";

/// A run of a plan in which each cell answers as many requests as `rate` says, a little more or less from trial to trial.
pub(crate) fn run(plan: &str, rate: impl Fn(&Cell) -> f64) -> Run {
    let mut head = head(&format!("{plan}\n{SERVER}"));
    head.end = RunEnd::Complete;
    let mut random = Seeded(9);
    let cells = head.plan.cells.clone();
    let blocks = head.plan.blocks;
    let places = (0..blocks).flat_map(|block| cells.iter().enumerate().map(move |(place, cell)| (block, place, cell)));
    let trials =
        places.map(|(block, place, cell)| trial(block, place as u32, cell, rate(cell) * random.near_one(0.02)));
    let trials = trials.collect();
    Run { head, trials }
}

/// A trial of one second in which so many answers came, each after the time that eight connections then wait.
fn trial(block: u32, position: u32, cell: &Cell, rate: f64) -> Trial {
    let good = rate.round() as u64;
    let mut total = Latency::new();
    (0..good).for_each(|_| total.record((8e6 / rate) as u64));
    let load = LoadResult {
        connections: 8,
        started_ns: SECOND,
        ended_ns: 2 * SECOND,
        counts: Counts { good, ..Counts::default() },
        first_byte: total.clone(),
        total,
        in_flight_ns: 8 * SECOND,
        ..LoadResult::empty()
    };
    Trial {
        block,
        position,
        cell: cell.name.clone(),
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
        readings: model::reading::Readings::default(),
        notes: vec![],
        status: Vec::new(),
        around: None,
        accounts: None,
        log_tail: String::new(),
        logged: None,
    }
}

const FACTORS: &str = "[factors.workers]\ntwo = \"Workers 2\"\neight = \"Workers 8\"\n[factors.keep]\nopen = \"\"\nclose = \"KeepAlive Off\"\n\
                       [factors.logs]\nnone = \"\"\nmany = \"Workers 9\"\n[design]\ngenerators = [\"logs = workers * keep\"]\n";

/// Eight workers give 30 % more, closed connections cost 10 %.
fn by_factors(cell: &Cell) -> f64 {
    let more = if cell.name.starts_with("eight") { 1.3 } else { 1.0 };
    1000.0 * more * if cell.name.contains("close") { 0.9 } else { 1.0 }
}

/// Each metric is a question of its own, and the baseline's second copy none.
#[test]
fn a_metric_says_how_many_blocks_it_needs() {
    let variants = "[variant.usual]\n[variant.same]\n[variant.less]\n";
    let rate = |cell: &Cell| if cell.variant == "less" { 900.0 } else { 1000.0 };
    let drawn = terminal(&run(variants, rate), Language::English, 100);
    let section = drawn.split_once("Other numbers").map_or("", |(_, rest)| rest);
    let lines: Vec<&str> = section.lines().skip(1).take(8).collect();
    expect![[r#"
                                   usual  usual (A/A)          same         less
        ────────────────────────────────────────────────────────────────────────
        median (ms)                 8.02         8.04          7.91         8.91
          ratio                 baseline       ×1.003        ×0.986       ×1.112
          95 % interval                –  0.982–1.025   0.970–1.000  1.088–1.135
          verdict                      –   equivalent  inconclusive        worse
          blocks still needed          –            –            26            –
        p99 (ms)                    8.02         8.04          7.91         8.91"#]]
    .assert_eq(&lines.join("\n"));
}

#[test]
fn factors_have_effects_and_aliases() {
    let run = run(FACTORS, by_factors);
    check(&terminal(&run, Language::English, 80), &expect_file!["../golden/factors-en-80.txt"]);
    let view = View::of(&run, Language::English);
    let ratios: Vec<String> =
        view.contrasts.iter().map(|it| format!("{} {:.2}", it.name, it.comparison.as_ref().unwrap().ratio)).collect();
    expect!["workers 1.30, keep 0.91, logs 1.00"].assert_eq(&ratios.join(", "));
    assert!(markdown::render(&view).contains("Cannot be told from: keep × logs"), "{}", markdown::render(&view));
    let page = html::render(&view);
    assert!(page.contains("<section id=\"section-contrasts\">") && page.contains("Resolution III"), "{page}");
    let document: serde_json::Value = serde_json::from_str(&json::render(&view)).unwrap();
    assert_eq!(document["design"]["resolution"], 3);
    assert_eq!(document["contrasts"][0]["comparison"]["verdict"]["id"], "verdict-better");
}

#[test]
fn what_factors_do_together_is_no_side() {
    let plan = "[factors.a]\nx = \"\"\ny = \"Workers 2\"\n[factors.b]\no = \"\"\np = \"Workers 3\"\n";
    // Each alone does nothing; together they halve throughput.
    let run = run(plan, |cell| if cell.name == "y, p" { 500.0 } else { 1000.0 });
    let view = View::of(&run, Language::English);
    let said = |name: &str| {
        let contrast = view.contrasts.iter().find(|it| it.name == name).unwrap();
        (contrast.is_interaction, contrast.comparison.as_ref().unwrap().verdict.id.clone())
    };
    assert_eq!(said("a × b"), (true, "interaction-less".to_owned()));
    assert_eq!(said("a"), (false, "verdict-worse".to_owned()));
    // Its latency is higher, and for that too more is more and not better.
    let beside = &view.contrasts.iter().find(|it| it.name == "a × b").unwrap().metrics[0];
    assert_eq!((beside.metric, beside.verdict.id.as_str()), ("p50", "interaction-more"));
}

const NAMED: &str = "[variant.a]\n[variant.b]\n[variant.c]\n[[contrast]]\nname = \"the new ones\"\nof = [\"b\", \"c\"]\nagainst = \"a\"\n\
                     [[contrast]]\nname = \"c or b\"\nof = \"c\"\nagainst = \"b\"\nmargin = 0.1\n";

#[test]
fn named_contrasts_are_the_family() {
    let all = run(NAMED, |cell| if cell.name.starts_with('a') { 1000.0 } else { 1100.0 });
    check(&terminal(&all, Language::English, 80), &expect_file!["../golden/contrasts-en-80.txt"]);
    check(&terminal(&all, Language::Japanese, 80), &expect_file!["../golden/contrasts-ja-80.txt"]);
    // The band of a question is its own margin's.
    let page = html::render(&View::of(&all, Language::English));
    let width =
        |band: &str| -> f64 { band.split("width:").nth(1).unwrap().split('%').next().unwrap().parse().unwrap() };
    let bands: Vec<f64> = page.split("<i class=\"band\" style=").skip(1).map(width).collect();
    let [again, new_ones, c_or_b] = bands[..] else { panic!("{bands:?}") };
    assert!(again == new_ones && c_or_b > 3.0 * again, "{bands:?}");
    // A cell that never answers is the worse side; one on the other side leaves nothing to compare with.
    let silent = |name: &'static str| run(NAMED, move |cell| if cell.name == name { 0.0 } else { 1000.0 });
    let verdicts = |run: &Run| {
        let view = View::of(run, Language::English);
        let verdict = |it: &report::view::ContrastView| {
            it.comparison.as_ref().map_or("none".to_owned(), |c| c.verdict.id.clone())
        };
        view.contrasts.iter().map(verdict).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(verdicts(&silent("c")), "verdict-worse verdict-worse");
    assert_eq!(verdicts(&silent("b")), "verdict-worse none");
}

const SWEEP: &str = "aa = false\n[sweep]\nover = \"connections\"\nvalues = [1, 2, 4, 8, 16, 32, 64, 128]\n";

fn connections(cell: &Cell) -> f64 {
    cell.name.rsplit(' ').next().unwrap().parse().unwrap()
}

/// 100 a second for one, 5 % contention, 0.1 % coherence: the peak is at 31.
fn by_law(cell: &Cell) -> f64 {
    let n = connections(cell);
    100.0 * n / (1.0 + 0.05 * (n - 1.0) + 0.001 * n * (n - 1.0))
}

#[test]
fn a_sweep_has_a_law() {
    let run = run(SWEEP, by_law);
    check(&terminal(&run, Language::English, 80), &expect_file!["../golden/sweep-en-80.txt"]);
    let view = View::of(&run, Language::English);
    let sweep = view.sweep.as_ref().unwrap();
    let law = sweep.law.as_ref().unwrap();
    let (low, high) = law.peak_interval.unwrap();
    assert!(low < 30.8 && 30.8 < high && law.miss < 0.02 && law.knee.is_some() && sweep.cliff.is_none(), "{law:?}");
    assert!(html::render(&view).contains("aria-label=\"r/s against connections\""));
    assert!(markdown::render(&view).contains("The knee is at connections"));
}

#[test]
fn a_cliff_is_said_apart_and_left_out() {
    let mut run = run(SWEEP, |cell| by_law(cell) * if connections(cell) > 40.0 { 0.1 } else { 1.0 });
    let seen = |run: &Run| {
        let view = View::of(run, Language::English).sweep.unwrap();
        let left_out: Vec<String> =
            view.points.iter().filter_map(|it| Some(format!("{} {}", it.value, it.left_out.as_ref()?.id))).collect();
        format!("{} | {:?}", left_out.join(", "), view.cliff.map(|cliff| (cliff.before, cliff.behind)))
    };
    expect!["64 sweep-left-behind, 128 sweep-left-behind | Some((32, 64))"].assert_eq(&seen(&run));
    // Blocks that do not agree on a fall make none: half of them do not see it.
    let mut noisy = run.clone();
    for trial in noisy.trials.iter_mut().filter(|trial| trial.block % 2 == 0 && trial.cell.ends_with("64")) {
        trial.load.as_mut().unwrap().counts.good *= 10;
    }
    expect![" | None"].assert_eq(&seen(&noisy));
    let of = |run: &Run, value: &str| run.trials.iter().position(|trial| trial.cell.ends_with(value)).unwrap();
    let (failing, silent) = (of(&run, " 2"), of(&run, " 4"));
    run.trials[failing].load.as_mut().unwrap().counts.failed = [(Failure::Status, 100)].into();
    run.trials[silent].load.as_mut().unwrap().counts.good = 0;
    expect!["2 sweep-left-failed, 4 sweep-left-silent, 64 sweep-left-behind, 128 sweep-left-behind | Some((32, 64))"]
        .assert_eq(&seen(&run));
    let few = View::of(&run, Language::English).sweep.unwrap();
    assert!(few.law.is_some(), "1, 8, 16 and 32 are left");
}

/// All values lie behind the peak, or the peak may lie behind the last one: nobody should read that throughput still grows.
#[test]
fn a_curve_that_falls_is_not_said_to_grow() {
    let of = |values: &str| {
        let plan = format!("aa = false\n[sweep]\nover = \"connections\"\nvalues = [{values}]\n");
        let sweep = View::of(&run(&plan, by_law), Language::English).sweep.unwrap();
        let said = |it: &report::Sentence| it.id.starts_with("sweep-peak") || it.id == "sweep-no-peak";
        sweep.sentences.iter().find(|it| said(it)).map(|it| it.id.clone()).unwrap()
    };
    assert_eq!(of("64, 96, 128, 192, 256"), "sweep-peak-unsure");
    assert_eq!(of("1, 2, 4, 8, 16"), "sweep-no-peak");
    assert_eq!(of("1, 2, 4, 8, 16, 32, 64, 128"), "sweep-peak");
}

/// A run that was to go on until it is decided, and stopped where a trial without good answers forbids that.
#[test]
fn what_cannot_be_decided_any_more_is_said() {
    let plan = "until_decided = true\naa = false\n[variant.a]\n[variant.b]\n";
    let mut run = run(plan, |_| 1000.0);
    run.trials.retain(|trial| trial.block < 6);
    let ended = |run: &Run| View::of(run, Language::English).judging.last().unwrap().id.clone();
    let silent = run.trials.iter().position(|trial| trial.block == 1 && trial.cell == "b").unwrap();
    run.trials[silent].load.as_mut().unwrap().counts.good = 0;
    assert_eq!(ended(&run), "judged-settled");
    // A block that was cut off and left as it was is not counted.
    let blocks = |run: &Run| View::of(run, Language::English).run.blocks;
    assert_eq!(blocks(&run), 6);
    run.trials.pop();
    assert_eq!(blocks(&run), 5);
}

#[test]
fn a_sweep_over_a_setting_has_no_knee() {
    let plan = "aa = false\nblocks = 3\n[sweep]\nover = \"Workers\"\nvalues = [1, 2, 4, 8]\n";
    let view = View::of(&run(plan, by_law), Language::English).sweep.unwrap();
    let ids: Vec<&str> = view.sentences.iter().map(|sentence| sentence.id.as_str()).collect();
    assert_eq!(ids, ["sweep-law-alone", "sweep-few-blocks"]);
    assert_eq!(view.law.unwrap().knee, None);
}
