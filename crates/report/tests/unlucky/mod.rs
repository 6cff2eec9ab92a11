//! Runs in which things fail: nothing that was measured may vanish, and nothing may look better for it.

use super::fixture::run;
use super::terminal;
use model::latency::Latency;
use model::load::{Counts, Failure};
use model::run::Run;
use model::trial::{Outcome, Trial};
use report::view::CellView;
use report::{Language, View, html, json, markdown};

const CANDIDATE: &str = "10, limit 4";

/// The fixed run with six blocks and all of it complete.
fn six_blocks() -> Run {
    let mut run = run();
    run.trials.retain(|trial| trial.block < 3);
    let more: Vec<Trial> = run.trials.iter().map(|trial| Trial { block: trial.block + 3, ..trial.clone() }).collect();
    run.trials.extend(more);
    run
}

/// The trial as it is when every request is answered with `status`.
fn fail(trial: &mut Trial, status: u16) {
    let load = trial.load.as_mut().unwrap();
    let ended = load.counts.good;
    load.counts = Counts {
        good: 0,
        failed: [(Failure::Status, ended)].into(),
        statuses: [(status, ended)].into(),
        ..load.counts.clone()
    };
    (load.total, load.first_byte) = (Latency::new(), Latency::new());
    load.examples = [(Failure::Status, format!("HTTP/1.1 {status}"))].into();
}

/// The view of `cell` after every trial of it in a block that `fails` answered 500 to everything.
fn with_failures(cell: &str, fails: fn(u32) -> bool) -> (View, CellView) {
    let mut run = six_blocks();
    run.trials.iter_mut().filter(|trial| trial.cell == cell && fails(trial.block)).for_each(|trial| fail(trial, 500));
    let view = View::of(&run, Language::English);
    let cell = view.cells.iter().find(|cell| cell.name == CANDIDATE).unwrap().clone();
    (view, cell)
}

/// The candidate's verdict, its ratio rounded and its blocks without an answer, after blocks of `cell` failed totally.
#[track_caller]
fn check(cell: &str, fails: fn(u32) -> bool, expected: &str) {
    let (_, cell) = with_failures(cell, fails);
    let seen = cell.comparison.map(|c| format!("{} {:.0} {}/{}", c.verdict.id, c.ratio, c.blocks, c.blocks_unanswered));
    assert_eq!(seen.as_deref().unwrap_or("none"), expected);
}

#[test]
fn total_failures_are_not_left_out() {
    check(CANDIDATE, |_| false, "verdict-better 7 6/0");
    check(CANDIDATE, |block| block < 2, "verdict-inconclusive 7 4/2");
    check("10 at once", |block| block < 2, "verdict-inconclusive 7 4/2");
    check(CANDIDATE, |_| true, "verdict-worse 0 0/6");
    check("10 at once", |_| true, "none");
    let (view, cell) = with_failures(CANDIDATE, |block| block < 2);
    let warnings: Vec<_> = cell.comparison.unwrap().warnings.into_iter().map(|warning| warning.text).collect();
    assert!(warnings[0].starts_with("In 2 of 6 blocks one of the two gave no good answer at all."), "{warnings:?}");
    assert_eq!((cell.trials_used, cell.failures.len()), (6, 1));
    let page = html::render(&view);
    super::page::well_formed(&page);
    assert!(page.contains(&warnings[0]) && markdown::render(&view).contains(&warnings[0]));
    let (view, _) = with_failures(CANDIDATE, |_| true);
    let page = html::render(&view);
    super::page::well_formed(&page);
    assert_eq!(page.matches("<i class=\"point\" style").count(), 3, "a ratio of 0 has no place on a logarithmic axis");
}

#[test]
fn a_run_of_nothing_but_404_says_so() {
    let mut run = run();
    run.trials.iter_mut().filter(|trial| trial.load.is_some()).for_each(|trial| fail(trial, 404));
    let drawn = terminal(&run, Language::English, 200);
    assert!(drawn.contains("status other than 2xx (404: "), "{drawn}");
    assert!(drawn.contains("(HTTP/1.1 404)"), "{drawn}");
    assert!(drawn.contains("The baseline “10 at once” gave no good answer in any trial that counts"), "{drawn}");
    assert!(drawn.contains("1 at a time: too many failures for the rate to mean much"), "{drawn}");
    let failed = drawn.lines().find(|line| line.starts_with("failed")).unwrap();
    assert!(!failed.contains('–') && !failed.contains(" 0"), "{failed}");
    super::page::well_formed(&html::render(&View::of(&run, Language::Japanese)));
}

#[test]
fn an_interrupted_trial_is_left_out() {
    let mut run = six_blocks();
    let cut = run.trials.iter_mut().find(|trial| trial.cell == CANDIDATE).unwrap();
    cut.outcome = Outcome::EndedEarly(model::trial::Stop::Interrupted);
    let view = View::of(&run, Language::English);
    assert_eq!((view.cells[3].trials_used, view.cells[3].trials_made), (5, 6));
}

/// The run with only its first trials.
fn cut_after(trials: usize) -> Run {
    let mut run = run();
    run.head.end = model::run::RunEnd::Interrupted;
    run.trials.truncate(trials);
    run
}

#[track_caller]
fn warned_of_blocks(run: &Run, expected: &[&str]) {
    let warnings = View::of(run, Language::English).warnings;
    let said: Vec<_> = warnings.iter().map(|warning| &warning.text).filter(|text| text.contains("block")).collect();
    assert_eq!(said, expected);
}

/// Every interval of a run that was interrupted in the middle of a block rests on blocks of its own.
#[test]
fn few_blocks_are_said_of_those_that_have_few() {
    warned_of_blocks(&cut_after(5), &["Only one block could be compared: no interval can be given."]);
    let normal = "rests on the assumption of normal noise.";
    let all = "Only 2 blocks could be compared: the intervals rest on the assumption of normal noise.";
    warned_of_blocks(&cut_after(10), &[all]);
    let rest = "“10 at once (A/A)”, “10, limit 4”, “10, lock”";
    let one = format!("Only one block could be compared for {rest}: no interval can be given for that.");
    let two = format!("Only 2 blocks could be compared for “1 at a time”: an interval from so few {normal}");
    warned_of_blocks(&cut_after(7), &[&one, &two]);
    let mut six = six_blocks();
    six.trials.retain(|trial| trial.cell != CANDIDATE || trial.block < 2);
    let two = format!("Only 2 blocks could be compared for “10, limit 4”: an interval from so few {normal}");
    warned_of_blocks(&six, &[&two]);
}

/// What is concluded of a cell that gave `factor` times the baseline's answers in every other block, and as much less in the rest.
fn scattered(cell: &str, factor: f64) -> String {
    let mut run = six_blocks();
    for trial in run.trials.iter_mut().filter(|trial| trial.cell == cell || trial.cell == "10 at once") {
        let factor = if trial.block % 2 == 0 { factor } else { 1.0 / factor };
        let load = trial.load.as_mut().unwrap();
        load.counts.good = if trial.cell == cell { (10_000.0 * factor) as u64 } else { 10_000 };
        load.ended_ns = load.started_ns + 100 * model::SECOND;
    }
    let view = View::of(&run, Language::English);
    let cell = view.cells.into_iter().find(|view| view.name == cell).unwrap();
    cell.comparison.unwrap().sentence.text.rsplit_once("blocks): ").unwrap().1.to_owned()
}

#[test]
fn missing_blocks_are_counted_where_that_helps() {
    assert_eq!(scattered(CANDIDATE, 1.04), "inconclusive (blocks still needed: about 51).");
    assert_eq!(scattered(CANDIDATE, 1.1), "inconclusive (blocks still needed: more than 100).");
    assert_eq!(scattered("10 at once (A/A)", 1.04), "inconclusive.");
}

/// What the kernel refuses the sampler stands with the trial, and among what went wrong only where harm can be seen.
#[test]
fn a_refused_precaution_is_trouble_where_it_did_harm() {
    let mut run = run();
    let refused =
        ["protection from the out-of-memory killer was refused (EACCES)", "locked memory was refused (EPERM)"];
    run.trials.iter_mut().for_each(|trial| trial.readings.notes = refused.map(str::to_owned).to_vec());
    let sampler = |run: &Run, language| -> Vec<String> {
        let trouble = View::of(run, language).trouble.into_iter().map(|trouble| trouble.text);
        trouble.filter(|text| text.contains("計測プロセス") || text.contains("the sampler says")).collect()
    };
    let said = sampler(&run, Language::Japanese);
    let japanese =
        "OOM killer からの保護が拒否されたため、メモリーが枯渇すると計測プロセスも強制終了されるおそれがあります";
    assert_eq!(said, [format!("全 20 試行中 8 試行: 計測プロセスからの報告: {japanese}")]);
    assert_eq!(View::of(&run, Language::English).trials[0].notes.len(), 2, "with the trial stands everything");
    run.trials.retain(|trial| trial.cell == CANDIDATE);
    assert_eq!(sampler(&run, Language::English), Vec::<String>::new());
    run.trials[0].outcome = Outcome::EndedEarly(model::trial::Stop::Unwatched);
    let said = sampler(&run, Language::English);
    assert_eq!(said.len(), 2, "{said:?}");
}

#[test]
fn what_cannot_be_judged_is_said() {
    let mut run = run();
    run.head.plan.confidence = 0.2;
    let drawn = terminal(&run, Language::English, 200);
    assert!(
        drawn.contains("“10, lock” could not be compared: confidence 0.2 does not lie between 0.5 and 1"),
        "{drawn}"
    );
}

#[test]
fn requests_in_flight_and_sent_again_are_shown() {
    let mut run = run();
    assert!(!terminal(&run, Language::English, 200).contains("in flight at end"));
    let load = run.trials[0].load.as_mut().unwrap();
    (load.in_flight, load.counts.retries) = (300, 40);
    (0..5).for_each(|_| load.connect.record(90));
    let drawn = terminal(&run, Language::English, 200);
    let row = |name: &str| drawn.lines().find(|line| line.starts_with(name)).unwrap_or(&drawn).to_owned();
    assert!(row("in flight at end").contains("300"), "{drawn}");
    assert!(row("sent again").contains("40"), "{drawn}");
    assert!(drawn.contains("Many requests were still in flight when the load ended: 300, with "), "{drawn}");
    assert!(drawn.contains("Many requests were sent again, because a kept connection ended"), "{drawn}");
    let document: serde_json::Value = serde_json::from_str(&json::render(&View::of(&run, Language::English))).unwrap();
    assert_eq!((&document["cells"][0]["in_flight"], &document["cells"][0]["retries"]), (&300.into(), &40.into()));
    assert_eq!(document["cells"][0]["connect_median_us"], 90);
    let load = run.trials[0].load.as_mut().unwrap();
    (load.in_flight, load.counts.retries) = (10, 1);
    assert!(!terminal(&run, Language::English, 200).contains("Many requests"), "a few are usual");
}

#[test]
fn a_percentile_of_few_answers_is_not_given() {
    let mut run = run();
    run.trials.retain(|trial| trial.block == 0);
    let mut of = |answers: u64| {
        let load = run.trials[0].load.as_mut().unwrap();
        load.total = Latency::new();
        (1..=answers).for_each(|ms| load.total.record(ms * 1000));
        let latency = View::of(&run, Language::English).cells[0].latency.clone().unwrap();
        let percents: Vec<f64> = latency.percentiles.iter().map(|point| point.percent).collect();
        (latency.min_us, latency.median_us.is_some(), latency.p99_us.is_some(), percents)
    };
    assert_eq!(of(4), (Some(1000), false, false, vec![0.0, 1.0, 5.0, 10.0, 25.0, 100.0]));
    let upto = |percents: &[f64]| [&[0.0, 1.0, 5.0, 10.0, 25.0, 50.0, 75.0, 80.0, 90.0, 95.0][..], percents].concat();
    assert_eq!(of(298), (Some(1000), true, false, upto(&[97.5, 100.0])));
    assert_eq!(of(299), (Some(1000), true, true, upto(&[97.5, 99.0, 100.0])));
}

#[test]
fn the_smallest_latency_is_unknown_when_one_was_cut_off_below_it() {
    let mut run = run();
    run.trials.retain(|trial| trial.block == 0);
    let mut of = |cut_off_us: u64| {
        let load = run.trials[0].load.as_mut().unwrap();
        load.total = Latency::new();
        (10..=20).for_each(|ms| load.total.record(ms * 1000));
        load.unanswered.latency = Latency::new();
        load.unanswered.latency.record(cut_off_us);
        View::of(&run, Language::English).cells[0].latency.as_ref().unwrap().min_us
    };
    assert_eq!((of(10_100), of(9_900)), (Some(10_000), None));
}

#[test]
fn trials_that_disagree_are_counted() {
    let mut run = run();
    let (one, ten) = (run.trials[0].clone(), run.trials[1].clone());
    assert_eq!((one.cell.as_str(), ten.cell.as_str()), ("1 at a time", "10 at once"));
    run.trials[0] = Trial { cell: one.cell, ..ten };
    let view = View::of(&run, Language::English);
    let said = "the client asked for no more at once (in 3 of 4 trials)";
    assert!(terminal(&run, Language::English, 200).contains(said));
    assert!(markdown::render(&view).contains(said) && html::render(&view).contains(said));
}
