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
    assert_eq!(page.matches("<i class=\"point\"").count(), 3, "a ratio of 0 has no place on a logarithmic axis");
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
fn a_hundredth_of_few_answers_is_not_given() {
    let mut run = run();
    run.trials.retain(|trial| trial.block == 0);
    let total = &mut run.trials[0].load.as_mut().unwrap().total;
    *total = Latency::new();
    (1..=99).for_each(|us| total.record(us * 1000));
    let p99 = |run: &Run| View::of(run, Language::English).cells[0].latency.as_ref().unwrap().p99_us;
    assert_eq!(p99(&run), None);
    run.trials[0].load.as_mut().unwrap().total.record(100_000);
    assert!(p99(&run).is_some());
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
