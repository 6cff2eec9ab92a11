//! Each plan of the articles, run three times with `--quick`: a verdict of one run must not be another's opposite, and what is not decided
//! must say how much more it takes. And once with `--budget 10m`, after which it ends in a verdict or says the same.
//! `cargo xtask test --long long_check_agreement_front` asks one plan, and `long_check_ten_minutes_front` the other.

mod tool;

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use testkit::skip::long_results;
use tool::{Tool, is_root, shipped};

const RUNS: usize = 3;
const OPEN: &str = "verdict-inconclusive";

/// What one run found of one question.
struct Finding {
    verdict: String,
    shown: String,
    /// Undecided, with no word on how much more would decide it.
    is_silent: bool,
    /// It is of the baseline's second copy: what it finds is noise, and nothing that a run says of the plan.
    is_noise: bool,
}

/// A question of a report, named by its cells, load and metric, and what each run found.
type Answers = BTreeMap<String, Vec<Finding>>;

/// What the runs claim of a question that another run could deny: anything but that it is not decided.
fn claims(found: &[Finding]) -> BTreeSet<&str> {
    found.iter().filter(|one| !one.is_noise).map(|one| one.verdict.as_str()).filter(|id| *id != OPEN).collect()
}

/// One comparison, or one metric of it.
fn finding(comparison: &Value) -> Option<Finding> {
    let verdict = comparison["verdict"]["id"].as_str()?.to_owned();
    let number = |name: &str| comparison[name].as_f64().unwrap_or(f64::NAN);
    let said = comparison["verdict"]["text"].as_str().unwrap_or_default();
    let (low, high) = (number("low"), number("high"));
    let interval = if low.is_nan() { "no interval".to_owned() } else { format!("{low:.3} to {high:.3}") };
    // Only the comparison itself has a sentence, which tells it; its metrics have a number where it can be told.
    let sentence = comparison["sentence"]["text"].as_str();
    let told = sentence.and_then(|text| text.split_once("still needed")?.1.split_once(": ")?.1.split_once(')'));
    let is_silent = verdict == OPEN && sentence.is_some() && told.is_none();
    let blocks = comparison["more_blocks"].as_u64().map(|blocks| blocks.to_string());
    let more = blocks.or(told.map(|(blocks, _)| blocks.to_owned()));
    let more = more.map_or_else(String::new, |blocks| format!(", {blocks} more"));
    let shown = format!("{:.3} ({interval}) {said}{more}", number("ratio"));
    Some(Finding { verdict, shown, is_silent, is_noise: false })
}

/// Trials of a run without a lost line, from which on it says that none are lost: of an end that loses some by chance, one shows nothing.
const PROOF: usize = 3;

/// Whether a cell's log had a line for each answer, as far as it can be told.
fn lines(logged: &Value) -> Option<Finding> {
    let [answers, least, most] = ["answers", "lost_least", "lost_most"].map(|name| logged[name].as_u64());
    let (least, most) = least.zip(most)?;
    let trials = logged["trials"].as_array().map_or(0, Vec::len);
    let verdict = match (least, most) {
        (0, 0) if trials >= PROOF => "none",
        (0, _) => OPEN,
        _ => "lost",
    };
    let shown = format!("{least} to {most} of {}: {verdict}", answers.unwrap_or_default());
    Some(Finding { verdict: verdict.to_owned(), shown, is_silent: false, is_noise: false })
}

fn collect(answers: &mut Answers, what: &str, of: &Value) {
    for one in of.as_array().into_iter().flatten() {
        let name = format!("{what}{}", one["name"].as_str().unwrap_or_default());
        // Whether the baseline differs from itself is nothing to be decided by more blocks.
        let is_again = one["role"] == "again";
        let mut add = |metric: &str, found: &Value| {
            if let Some(mut finding) = finding(found) {
                finding.is_silent &= !is_again;
                finding.is_noise = is_again;
                answers.entry(format!("{name}: {metric}")).or_default().push(finding);
            }
        };
        add("throughput", &one["comparison"]);
        for metric in one["metrics"].as_array().into_iter().flatten() {
            add(metric["metric"].as_str().unwrap_or_default(), metric);
        }
        if let Some(lost) = lines(&one["logged"]) {
            answers.entry(format!("{name}: lines lost")).or_default().push(lost);
        }
    }
}

/// What limited each cell first, as far as a run says it: by cell, what it was called in each run.
type Causes = BTreeMap<String, Vec<String>>;

fn read_causes(causes: &mut Causes, report: &Value) {
    for cell in report["cells"].as_array().into_iter().flatten() {
        let name = cell["name"].as_str().unwrap_or_default().to_owned();
        let cause = cell["diagnosis"]["primary"]["title"]["id"].as_str().unwrap_or("none");
        causes.entry(name).or_default().push(cause.trim_start_matches("cause-").to_owned());
    }
}

/// Everything that a report judges.
fn read(answers: &mut Answers, report: &Value) {
    collect(answers, "", &report["cells"]);
    collect(answers, "", &report["contrasts"]);
    for load in report["beside"].as_array().into_iter().flatten() {
        let name = format!("{}, ", load["name"].as_str().unwrap_or_default());
        collect(answers, &name, &load["cells"]);
        collect(answers, &name, &load["contrasts"]);
    }
}

/// Where the results of a plan go; `None` where it cannot be asked here.
fn results(more: &[&str]) -> Option<PathBuf> {
    let results = long_results()?;
    let can_confine = is_root() && host::hierarchies().is_ok();
    // Who makes swap confines a server to little memory.
    if more.contains(&"--make-swap") && !can_confine {
        testkit::skip::not_here("needs root and a memory control group");
        return None;
    }
    Some(results)
}

/// Runs a plan: its report, and what it took.
fn asked(plan: &str, flags: &[&str]) -> (Value, Duration) {
    let tool = Tool::new();
    let began = Instant::now();
    let ran = tool.run(&[&["run", &shipped(plan), "--json"], flags].concat());
    assert!(matches!(ran.code, 0 | 1 | 3), "{ran:?}");
    let report = serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    (report, began.elapsed())
}

/// What a run recommends.
fn recommended(report: &Value) -> String {
    let choices = report["recommendation"]["choices"].as_array().into_iter().flatten();
    let said: Vec<_> = choices.filter_map(|choice| choice["sentence"]["text"].as_str()).collect();
    if said.is_empty() { "no recommendation".to_owned() } else { said.join(" ") }
}

/// The choices that a run leaves open without a word on how much more would decide them.
fn silent_choices(report: &Value) -> Vec<String> {
    let choices = report["recommendation"]["choices"].as_array().into_iter().flatten();
    let is_silent = |choice: &&Value| {
        let details = choice["details"].as_array().into_iter().flatten();
        let mut ids = details.filter_map(|detail| detail["id"].as_str());
        ids.any(|id| id == "recommend-more-unknown")
    };
    choices.filter(is_silent).map(|choice| choice["sentence"]["text"].to_string()).collect()
}

/// A plan's name in the name of a file, with its scale where one was asked for.
fn file_name(plan: &str, more: &[&str]) -> String {
    let plan = plan.trim_end_matches(".toml").replace('/', "-");
    match more {
        ["--scale", scale] => format!("{plan}-{scale}"),
        _ => plan,
    }
}

fn check_ten_minutes(plan: &str, more: &[&str]) {
    let Some(results) = results(more) else { return };
    let (report, took) = asked(plan, &[&["--budget", "10m", "--seed", "1"], more].concat());
    let (mut answers, mut causes) = (Answers::new(), Causes::new());
    read(&mut answers, &report);
    read_causes(&mut causes, &report);
    let (mut rows, mut decided, mut questions, mut wrong) = (String::new(), 0, 0, silent_choices(&report));
    for (question, found) in &answers {
        for one in found {
            questions += usize::from(!one.is_noise);
            decided += usize::from(!one.is_noise && one.verdict != OPEN);
            if one.is_silent {
                wrong.push(format!("{question}: undecided, and not how much more it takes"));
            }
            let _ = writeln!(rows, "| {question} | {} |", one.shown);
        }
    }
    let limits: String = causes.iter().fold(String::new(), |mut limits, (cell, found)| {
        let _ = writeln!(limits, "| {cell} | {} |", found.join(" | "));
        limits
    });
    let open = report["recommendation"]["choices"].as_array().into_iter().flatten();
    let details = open.flat_map(|choice| choice["details"].as_array().into_iter().flatten());
    let details: String = details.filter_map(|detail| Some(format!("- {}\n", detail["text"].as_str()?))).collect();
    let asked = [&[plan], more].concat().join(" ");
    let page = format!(
        "# plans/{asked} with ten minutes\n\n`webdyno run plans/{asked} --budget 10m --seed 1`, in {:.0} s, {} blocks. Of {questions} questions \
         {decided} were decided.\n\n{}\n\n{details}\n| what | ratio (interval), and how many blocks more would probably decide it |\n|---|---|\n{rows}\n\
         What limited each cell first:\n\n| cell | cause |\n|---|---|\n{limits}",
        took.as_secs_f64(),
        report["run"]["blocks"],
        recommended(&report),
    );
    std::fs::write(results.join(format!("ten-minutes-{}.md", file_name(plan, more))), page)
        .expect("room for the result");
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(questions > 0, "nothing was judged");
}

fn check(plan: &str, more: &[&str]) {
    let Some(results) = results(more) else { return };
    let (mut answers, mut causes) = (Answers::new(), Causes::new());
    let mut advice = String::new();
    for seed in 1..=RUNS {
        let (report, took) = asked(plan, &[&["--quick", "--seed", &seed.to_string()], more].concat());
        read(&mut answers, &report);
        read_causes(&mut causes, &report);
        let said = recommended(&report);
        let _ = writeln!(advice, "{seed}. In {:.0} s: {said}", took.as_secs_f64());
    }
    let (mut wrong, mut rows) = (Vec::new(), String::new());
    let (mut decided, mut opposed) = (0, 0);
    for (question, found) in &answers {
        let claimed = claims(found);
        let agree = claimed.len() <= 1;
        decided += usize::from(!claimed.is_empty());
        opposed += usize::from(!agree);
        if !agree {
            wrong.push(format!("{question}: {claimed:?}"));
        }
        if found.iter().any(|one| one.is_silent) {
            wrong.push(format!("{question}: undecided, and not how much more it takes"));
        }
        let shown: Vec<_> = found.iter().map(|one| one.shown.as_str()).collect();
        let agreed = match agree {
            _ if found.iter().all(|one| one.is_noise) => "noise",
            true => "yes",
            false => "**no**",
        };
        let _ = writeln!(rows, "| {question} | {} | {agreed} |", shown.join(" | "));
    }
    let mut limits = String::new();
    for (cell, found) in &causes {
        let agree = found.iter().collect::<BTreeSet<_>>().len() <= 1;
        let _ = writeln!(limits, "| {cell} | {} | {} |", found.join(" | "), if agree { "yes" } else { "**no**" });
    }
    let asked = [&[plan], more].concat().join(" ");
    let page = format!(
        "# Three runs of plans/{asked}\n\n`webdyno run plans/{asked} --quick --seed 1` to {RUNS}. Of {} questions {decided} were decided by one run or \
         more; about {opposed} runs disagree.\n\nRecommended:\n\n{advice}\n| what | run 1 | run 2 | run 3 | agree |\n|---|---|---|---|---|\n{rows}\n\
         What limited each cell first:\n\n| cell | run 1 | run 2 | run 3 | agree |\n|---|---|---|---|---|\n{limits}",
        answers.len(),
    );
    std::fs::write(results.join(format!("agreement-{}.md", file_name(plan, more))), page).expect("room for the result");
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(!answers.is_empty(), "nothing was judged");
}

macro_rules! plans {
    ($($three:ident $ten:ident $plan:literal $($more:literal)*;)*) => { $(
        #[test]
        fn $three() { check($plan, &[$($more),*]); }
        #[test]
        fn $ten() { check_ten_minutes($plan, &[$($more),*]); }
    )* };
}

plans! {
    long_check_agreement_access_log long_check_ten_minutes_access_log "access-log.toml";
    long_check_agreement_admission_walk long_check_ten_minutes_admission_walk "admission/walk.toml";
    long_check_agreement_admission_walk_others long_check_ten_minutes_admission_walk_others "admission/walk-others.toml";
    long_check_agreement_access_log_buffers long_check_ten_minutes_access_log_buffers "access-log-buffers.toml";
    long_check_agreement_access_log_lost long_check_ten_minutes_access_log_lost "access-log-lost.toml";
    long_check_agreement_backend_files long_check_ten_minutes_backend_files "backend-files.toml";
    long_check_agreement_backend_limit long_check_ten_minutes_backend_limit "backend-limit.toml";
    long_check_agreement_backend_limit_persistent long_check_ten_minutes_backend_limit_persistent "backend-limit.toml" "--scale" "persistent";
    long_check_agreement_backend_limit_application long_check_ten_minutes_backend_limit_application "backend-limit.toml" "--scale" "application";
    long_check_agreement_backend_limit_pool long_check_ten_minutes_backend_limit_pool "backend-limit.toml" "--scale" "pool";
    long_check_agreement_backend_where long_check_ten_minutes_backend_where "backend-where.toml";
    long_check_agreement_expires long_check_ten_minutes_expires "expires.toml";
    long_check_agreement_front long_check_ten_minutes_front "front.toml";
    long_check_agreement_keepalive long_check_ten_minutes_keepalive "keepalive.toml";
    long_check_agreement_keepalive_prefork long_check_ten_minutes_keepalive_prefork "keepalive.toml" "--scale" "prefork";
    long_check_agreement_keepalive_event long_check_ten_minutes_keepalive_event "keepalive.toml" "--scale" "event";
    long_check_agreement_keepalive_lasting long_check_ten_minutes_keepalive_lasting "keepalive.toml" "--scale" "lasting";
    long_check_agreement_keepalive_held long_check_ten_minutes_keepalive_held "keepalive-held.toml";
    long_check_agreement_keepalive_held_worker long_check_ten_minutes_keepalive_held_worker "keepalive-held.toml" "--scale" "worker";
    long_check_agreement_keepalive_held_event long_check_ten_minutes_keepalive_held_event "keepalive-held.toml" "--scale" "event";
    long_check_agreement_keepalive_page long_check_ten_minutes_keepalive_page "keepalive-page.toml";
    long_check_agreement_keepalive_quiet long_check_ten_minutes_keepalive_quiet "keepalive-quiet.toml";
    long_check_agreement_keepalive_requests long_check_ten_minutes_keepalive_requests "keepalive-requests.toml";
    long_check_agreement_keepalive_requests_prefork long_check_ten_minutes_keepalive_requests_prefork "keepalive-requests.toml" "--scale" "prefork";
    long_check_agreement_keepalive_requests_worker long_check_ten_minutes_keepalive_requests_worker "keepalive-requests.toml" "--scale" "worker";
    long_check_agreement_memory_cliff long_check_ten_minutes_memory_cliff "memory-cliff.toml" "--make-swap" "2G";
    long_check_agreement_memory_cliff_static long_check_ten_minutes_memory_cliff_static "memory-cliff-static.toml" "--make-swap" "1G";
    long_check_agreement_nginx_access_log long_check_ten_minutes_nginx_access_log "nginx/access-log.toml";
    long_check_agreement_nginx_access_log_lost long_check_ten_minutes_nginx_access_log_lost "nginx/access-log-lost.toml";
    long_check_agreement_nginx_keepalive long_check_ten_minutes_nginx_keepalive "nginx/keepalive.toml";
    long_check_agreement_nginx_expires long_check_ten_minutes_nginx_expires "nginx/expires.toml";
    long_check_agreement_nginx_keepalive_held long_check_ten_minutes_nginx_keepalive_held "nginx/keepalive-held.toml";
    long_check_agreement_nginx_limiter_overhead long_check_ten_minutes_nginx_limiter_overhead "nginx/limiter-overhead.toml";
    long_check_agreement_nginx_limiter_walk long_check_ten_minutes_nginx_limiter_walk "nginx/limiter-walk.toml";
    long_check_agreement_nginx_php_memory long_check_ten_minutes_nginx_php_memory "nginx/php-memory.toml" "--make-swap" "1G";
    long_check_agreement_prefork_worker long_check_ten_minutes_prefork_worker "prefork-worker.toml";
    long_check_agreement_f5 long_check_ten_minutes_f5 "php/f5.toml";
    long_check_agreement_limiter long_check_ten_minutes_limiter "php/limiter.toml";
    long_check_agreement_limiter_overhead long_check_ten_minutes_limiter_overhead "php/limiter-overhead.toml";
    long_check_agreement_limiter_walk long_check_ten_minutes_limiter_walk "php/limiter-walk.toml";
    long_check_agreement_memory_limit long_check_ten_minutes_memory_limit "php/memory-limit.toml";
    long_check_agreement_opcache long_check_ten_minutes_opcache "php/opcache.toml";
    long_check_agreement_pool long_check_ten_minutes_pool "php/pool.toml";
    long_check_agreement_prefork long_check_ten_minutes_prefork "php/prefork.toml" "--make-swap" "2G";
    long_check_agreement_prefork_parts long_check_ten_minutes_prefork_parts "php/prefork-parts.toml";
    long_check_agreement_prefork_visitor long_check_ten_minutes_prefork_visitor "php/prefork-visitor.toml";
    long_check_agreement_wordpress long_check_ten_minutes_wordpress "php/wordpress.toml";
    long_check_agreement_wordpress_memory long_check_ten_minutes_wordpress_memory "php/wordpress-memory.toml";
}

#[test]
fn opposite_verdicts_are_found() {
    let said = |verdict: &str| {
        let comparison = serde_json::json!({
            "ratio": 1.1, "low": 1.0, "high": 1.2, "verdict": {"id": verdict}, "sentence": {"text": "no more is known"}
        });
        serde_json::json!({"cells": [{"name": "a", "comparison": comparison, "metrics": [
            {"metric": "p99", "ratio": 1.0, "low": 0.9, "high": 1.1, "verdict": {"id": "verdict-inconclusive"}}]}]})
    };
    let mut answers = Answers::new();
    for verdict in ["verdict-better", "verdict-inconclusive"] {
        read(&mut answers, &said(verdict));
    }
    assert_eq!(claims(&answers["a: throughput"]).len(), 1);
    read(&mut answers, &said("verdict-worse"));
    assert_eq!(claims(&answers["a: throughput"]).len(), 2);
    read(&mut answers, &said("interaction-more"));
    assert_eq!(claims(&answers["a: throughput"]).len(), 3);
    let silent: Vec<_> = answers["a: throughput"].iter().map(|one| one.is_silent).collect();
    assert_eq!(silent, [false, true, false, false]);
    let log = |least: u64, most: u64, trials: usize| {
        let logged =
            serde_json::json!({"answers": 9, "lost_least": least, "lost_most": most, "trials": vec![(); trials]});
        serde_json::json!({"cells": [{"name": "a", "logged": logged}]})
    };
    for (least, most, trials) in [(0, 0, 1), (0, 2, 3), (1, 2, 1)] {
        read(&mut answers, &log(least, most, trials));
    }
    assert_eq!(claims(&answers["a: lines lost"]), ["lost"].into());
    assert_eq!(answers["a: lines lost"][2].shown, "1 to 2 of 9: lost");
    read(&mut answers, &log(0, 0, PROOF));
    assert_eq!(claims(&answers["a: lines lost"]), ["lost", "none"].into());
    // A metric has no sentence of its own in which it could be told.
    assert!(answers["a: p99"].iter().all(|one| !one.is_silent));
    let open = serde_json::json!({
        "ratio": 1.1, "low": 1.0, "high": 1.2, "verdict": {"id": OPEN, "text": "inconclusive"},
        "sentence": {"text": "a: 1.1 times (8 blocks): inconclusive (blocks still needed: about 12)."}
    });
    let found = finding(&open).expect("it has a verdict");
    assert_eq!((found.shown.as_str(), found.is_silent), ("1.100 (1.000 to 1.200) inconclusive, about 12 more", false));
}
