//! What is measured by time: plans that webdyno runs in interleaved blocks and judges by its own statistics. The report is kept as it is.

use super::{Flags, Stand};
use crate::bench::cases::Limit;
use crate::bench::programs::build_webdyno;
use crate::bench::report::{Heading, Judgement, Section, table};
use crate::root;
use anyhow::{Context, bail};
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Exit codes of a run that measured everything, whatever its verdicts are.
const MEASURED: [i32; 3] = [0, 1, 3];

pub(super) fn overhead(stand: &Stand, heading: Heading, flags: &Flags) -> anyhow::Result<Section> {
    let goal = "Goal: the upper end of the interval for mod_admission's CPU time (per answer, below) under 1.015 times that without a limiter. \
                All of these stand beside each other, so each interval is one of five, and wider than that of the case overhead-own.";
    overhead_of(stand, heading, flags, OVERHEAD_PLANS[0], goal)
}

pub(super) fn overhead_own(stand: &Stand, heading: Heading, flags: &Flags) -> anyhow::Result<Section> {
    let goal = "Goal: the upper end of the interval for mod_admission's CPU time (per answer, below) under 1.015 times that without a limiter.";
    overhead_of(stand, heading, flags, OVERHEAD_PLANS[1], goal)
}

fn overhead_of(stand: &Stand, heading: Heading, flags: &Flags, plan: &str, goal: &str) -> anyhow::Result<Section> {
    let ran = run(stand, heading, flags, plan, &[], goal)?;
    let report = report_of(&ran)?;
    let mut section = ran.0;
    section.judgements.extend(judgements(&report, &OVERHEAD));
    Ok(section)
}

/// Beside the other limiters, and alone.
const OVERHEAD_PLANS: [&str; 2] = ["plans/admission/overhead.toml", "plans/admission/overhead-own.toml"];

pub(super) fn overload(stand: &Stand, heading: Heading, flags: &Flags) -> anyhow::Result<Section> {
    let goal = "Goals: as many answers of the programs as 0.95 times those of MaxRequestWorkers 4 (the case worker-limits has the best); nothing read back from swap; the files' p99 at \
                most 1.5 times that beside as many programs with nobody waiting, and at least 20 times lower than with MaxRequestWorkers 4. Judged are \
                the estimates; the intervals are below.";
    overload_of(stand, heading, flags, "plans/admission/memory-cliff.toml", goal)
}

pub(super) fn files_beside(stand: &Stand, heading: Heading, flags: &Flags) -> anyhow::Result<Section> {
    let goal = "The goals of the case overload, in cells that its questions need and twice as many blocks: a p99 differs much from trial to trial. \
                Judged are the estimates; the intervals are below.";
    overload_of(stand, heading, flags, "plans/admission/files-beside.toml", goal)
}

fn overload_of(stand: &Stand, heading: Heading, flags: &Flags, plan: &str, goal: &str) -> anyhow::Result<Section> {
    let ran = run(stand, heading, flags, plan, &["--make-swap", "1G"], goal)?;
    let report = report_of(&ran)?;
    let mut section = ran.0;
    section.judgements.extend(judgements(&report, &OVERLOAD));
    section.judgements.extend(WITHOUT_SWAP.map(|cell| without_swap(&report, cell)));
    Ok(section)
}

fn without_swap(report: &Value, cell: &str) -> Judgement {
    let what = format!("{cell}: most read back from swap between two readings, MiB/s,");
    Judgement { what, found: most_read_back(report, cell), limit: Limit::AtMost(0.0) }
}

/// The cells of which nothing may be read back from swap.
const WITHOUT_SWAP: [&str; 2] = ["10, mod_admission", "200, event, mod_admission"];

/// The most that the host read back from swap between two readings of the cell's trials, MiB/s. The report draws it where anything was moved to
/// swap or back; where it was not, the group's memory in swap says that somebody looked.
fn most_read_back(report: &Value, cell: &str) -> Result<f64, String> {
    let trials = report["trials"].as_array().into_iter().flatten().filter(|trial| trial["cell"] == cell);
    let panels = trials.flat_map(|trial| trial["panels"].as_array().into_iter().flatten());
    let series: Vec<&Value> = panels.flat_map(|panel| panel["series"].as_array().into_iter().flatten()).collect();
    let of = |id: &str| series.iter().filter(|one| one["label"]["id"] == *id).copied().collect::<Vec<_>>();
    if of("series-group-swap").is_empty() {
        return Err(format!("the report has no swap of the server's group for {cell}"));
    }
    let points = of("series-swap-in").into_iter().flat_map(|one| one["points"].as_array().into_iter().flatten());
    Ok(points.filter_map(|point| point[1].as_f64()).fold(0.0, f64::max))
}

/// A number of a report that has to reach something.
struct Goal {
    what: &'static str,
    /// The load beside the cells' own that it is of; `None`: their own.
    beside: Option<&'static str>,
    /// The cell or the contrast.
    question: &'static str,
    /// `throughput`, or as the report's `metrics` say.
    metric: &'static str,
    /// `ratio`, `low` or `high`.
    figure: &'static str,
    limit: Limit,
}

const OVERHEAD: [Goal; 1] = [Goal {
    what: "mod_admission's CPU time for an answer, upper end,",
    beside: None,
    question: "mod_admission",
    metric: "cpu-per-answer",
    figure: "high",
    limit: Limit::Below(1.015),
}];

const OF_PROGRAMS: Goal = Goal {
    what: "answers of the programs, of those with MaxRequestWorkers 4,",
    beside: None,
    question: "the programs, against MaxRequestWorkers 4",
    metric: "throughput",
    figure: "ratio",
    limit: Limit::AtLeast(OF_THE_BEST),
};

const OF_FILES: Goal = Goal { beside: Some("static"), metric: "p99", ..OF_PROGRAMS };

/// A goal of the files beside the programs.
const fn of_files(what: &'static str, question: &'static str, limit: Limit) -> Goal {
    Goal { what, question, limit, ..OF_FILES }
}

const SLOWER: Limit = Limit::AtMost(1.5);
const QUICKER: Limit = Limit::AtMost(0.05);

const FILES_BESIDE_THE_BEST: [Goal; 2] = [
    of_files("the files' p99, of that beside nobody who waits,", "against nobody waiting", SLOWER),
    of_files("the files' p99, of that with MaxRequestWorkers 4,", "against MaxRequestWorkers 4", QUICKER),
];

const OVERLOAD: [Goal; 6] = [
    OF_PROGRAMS,
    Goal { what: "the same of two hundred clients,", question: "two hundred", ..OF_PROGRAMS },
    of_files("the files' p99, of that beside nobody who waits,", "the files, against nobody waiting", SLOWER),
    of_files("the same of two hundred clients,", "the files of two hundred, against nobody waiting", SLOWER),
    of_files("the files' p99, of that with MaxRequestWorkers 4,", OF_PROGRAMS.question, QUICKER),
    of_files("the same of two hundred clients,", "two hundred", QUICKER),
];

impl Goal {
    fn found(&self, report: &Value) -> Result<f64, String> {
        let named = |list: &Value, name: &str| list.as_array()?.iter().find(|one| one["name"] == name).cloned();
        let of = match self.beside {
            None => Some(report.clone()),
            Some(load) => named(&report["beside"], load),
        };
        let asked =
            of.and_then(|of| named(&of["contrasts"], self.question).or_else(|| named(&of["cells"], self.question)));
        let number = asked.and_then(|asked| {
            let metrics = asked["metrics"].as_array()?;
            let of_metric = match self.metric {
                "throughput" => &asked["comparison"],
                metric => metrics.iter().find(|one| one["metric"] == metric)?,
            };
            of_metric[self.figure].as_f64()
        });
        number.ok_or_else(|| format!("the report has no {} of {} for {}", self.figure, self.metric, self.question))
    }
}

/// What came of the goals of a run.
fn judgements(report: &Value, goals: &[Goal]) -> impl Iterator<Item = Judgement> {
    goals.iter().map(|goal| Judgement { what: goal.what.to_owned(), found: goal.found(report), limit: goal.limit })
}

/// What webdyno says of a run.
fn report_of((_, store, webdyno): &Ran) -> anyhow::Result<Value> {
    let mut command = Command::new(webdyno);
    let said = command.args(["report", "latest", "--json", "--store"]).arg(store).stdin(Stdio::null()).output();
    serde_json::from_slice(&said.context("cannot run webdyno")?.stdout).context("no report of the run")
}

/// The least that mod_admission may get of the programs' answers with the best MaxRequestWorkers.
const OF_THE_BEST: f64 = 0.95;

pub(super) fn worker_limits(stand: &Stand, heading: Heading, flags: &Flags) -> anyhow::Result<Section> {
    let goal = "Goal: as many answers of the programs as 0.95 times those of the best MaxRequestWorkers, which is the one against which the ratio is \
                the lowest. Each interval is one of the plan's family of contrasts.";
    Ok(against_the_best(stand, heading, flags, "plans/admission/worker-limits.toml", &[], goal)?.0)
}

const BESIDE_THE_BEST_PLAN: &str = "plans/admission/beside-the-best.toml";

/// The numbers of clients that the plan is for: the first is its own, the others are its scales.
pub(super) const BESIDE_THE_BEST_CLIENTS: [&str; 4] = ["10", "50", "100", "200"];

pub(super) fn beside_the_best(stand: &Stand, heading: Heading, flags: &Flags) -> anyhow::Result<Section> {
    let goal = "Goals: as many answers of the programs as 0.95 times those of the better of MaxRequestWorkers 4 and 5, which the case worker-limits \
                found to be the best; nothing read back from swap; the files' p99 at most 1.5 times that beside as many programs with nobody \
                waiting, and at least 20 times lower than with MaxRequestWorkers 4. Judged are the estimates; the intervals are below.";
    let scale = ["--scale", &flags.clients];
    let scale: &[&str] = if flags.clients == BESIDE_THE_BEST_CLIENTS[0] { &[] } else { &scale };
    let (mut section, report) = against_the_best(stand, heading, flags, BESIDE_THE_BEST_PLAN, scale, goal)?;
    section.judgements.extend(judgements(&report, &FILES_BESIDE_THE_BEST));
    section.judgements.push(without_swap(&report, &format!("{}, mod_admission", flags.clients)));
    Ok(section)
}

/// The page of a run whose contrasts compare mod_admission with numbers of workers, for one number of clients and more; with what webdyno says
/// of it. `scale` are the words that choose other sizes of the plan, none for its own.
fn against_the_best(
    stand: &Stand,
    heading: Heading,
    flags: &Flags,
    plan: &str,
    scale: &[&str],
    goal: &str,
) -> anyhow::Result<(Section, Value)> {
    let ran = run(stand, heading, flags, plan, &[scale, &["--make-swap", "1G"]].concat(), goal)?;
    let report = report_of(&ran)?;
    let found = best(&report);
    let mut section = ran.0;
    let row = |best: &Best| {
        let end = |end: Option<f64>| end.map_or_else(|| "?".to_owned(), |end| format!("{end:.3}"));
        let interval = format!("{} to {}", end(best.low), end(best.high));
        vec![best.clients.clone(), best.against.clone(), format!("{:.3}", best.ratio), interval]
    };
    let head = ["clients", "the best", "mod_admission's answers, of those", "interval"];
    section.body.insert(1, table(&head, &found.iter().map(row).collect::<Vec<_>>()));
    if found.is_empty() {
        bail!("{plan}: no contrast was measured");
    }
    section.judgements.extend(found.into_iter().map(|best| Judgement {
        what: format!("{} clients, mod_admission's answers of those with {} (the best),", best.clients, best.against),
        found: Ok(best.ratio),
        limit: Limit::AtLeast(OF_THE_BEST),
    }));
    Ok((section, report))
}

/// What does best beside a cell, and what that cell makes of it.
#[derive(Debug, PartialEq)]
struct Best {
    clients: String,
    against: String,
    ratio: f64,
    low: Option<f64>,
    high: Option<f64>,
}

/// Of the contrasts of a report the lowest for each number of clients, with which the names of both cells begin.
fn best(report: &Value) -> Vec<Best> {
    let mut found: Vec<Best> = Vec::new();
    for contrast in report["contrasts"].as_array().into_iter().flatten() {
        let comparison = &contrast["comparison"];
        let named = |side: &str| contrast[side][0].as_str().and_then(|name| name.split_once(", "));
        let (of, Some((clients, against))) = (named("of"), named("against")) else { continue };
        let Some(ratio) = comparison["ratio"].as_f64().filter(|_| of.is_some_and(|of| of.0 == clients)) else {
            continue;
        };
        let (low, high) = (comparison["low"].as_f64(), comparison["high"].as_f64());
        let this = Best { clients: clients.to_owned(), against: against.to_owned(), ratio, low, high };
        match found.iter_mut().find(|best| best.clients == clients) {
            Some(best) if best.ratio <= ratio => {}
            Some(best) => *best = this,
            None => found.push(this),
        }
    }
    found
}

/// What came of a plan, the store that has it, and the program that ran it.
type Ran = (Section, PathBuf, PathBuf);

fn run(stand: &Stand, heading: Heading, flags: &Flags, plan: &str, more: &[&str], goal: &str) -> anyhow::Result<Ran> {
    let webdyno: PathBuf = flags.shared.webdyno()?.map_or_else(build_webdyno, Ok).map_err(anyhow::Error::msg)?;
    let mut words: Vec<&str> = vec!["run", plan, "--markdown", "--plain", "--lang", "en"];
    words.extend(more);
    if flags.shared.quick {
        words.push("--quick");
    }
    let store = stand.folder.path().join("store.sqlite");
    let mut command = Command::new(&webdyno);
    command.args(&words).arg("--store").arg(&store).current_dir(root()).stdin(Stdio::null());
    let ran = command.stderr(Stdio::inherit()).output().context("cannot run webdyno")?;
    if !ran.status.code().is_some_and(|code| MEASURED.contains(&code)) {
        bail!("{plan}: webdyno ended with {}", ran.status);
    }
    // The report's headings become parts of this page.
    let report = String::from_utf8_lossy(&ran.stdout).lines().map(lowered).collect::<Vec<_>>().join("\n");
    let commands = vec![format!("webdyno {}", words.join(" "))];
    let section =
        Section { heading, body: vec![goal.to_owned(), report], judgements: Vec::new(), commands, raw: Vec::new() };
    Ok((section, store, webdyno))
}

/// A line of Markdown, two levels lower if it is a heading.
fn lowered(line: &str) -> String {
    if line.starts_with('#') { format!("##{line}") } else { line.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_is_what_is_hardest_to_beat() {
        let contrast = |against: &str, ratio: f64| serde_json::json!({"of": [if against.starts_with("200") { "200, mod_admission" } else { "50, mod_admission" }], "against": [against], "comparison": {"ratio": ratio, "low": 0.9, "high": null}});
        let none = serde_json::json!({"of": ["50, mod_admission"], "against": ["50, MaxRequestWorkers 3"], "comparison": null});
        let of_others = contrast("4, no limit", 0.5);
        let contrasts = [
            contrast("50, MaxRequestWorkers 4", 1.02),
            none,
            of_others,
            contrast("50, MaxRequestWorkers 5", 0.98),
            contrast("50, MaxRequestWorkers 8", 4.0),
            contrast("200, MaxRequestWorkers 4", 1.0),
        ];
        let found = best(&serde_json::json!({ "contrasts": contrasts }));
        let of = |clients: &str, against: &str, ratio| Best {
            clients: clients.to_owned(),
            against: against.to_owned(),
            ratio,
            low: Some(0.9),
            high: None,
        };
        assert_eq!(found, [of("50", "MaxRequestWorkers 5", 0.98), of("200", "MaxRequestWorkers 4", 1.0)]);
        assert_eq!(best(&serde_json::json!({})), []);
    }

    #[test]
    fn goals_are_found_in_a_report() {
        let metrics = serde_json::json!([{"metric": "p99", "ratio": 0.03, "low": 0.01, "high": 0.1}]);
        let contrast =
            |name: &str| serde_json::json!({"name": name, "comparison": {"ratio": 1.01}, "metrics": metrics});
        let report = serde_json::json!({
            "contrasts": [contrast("two hundred")],
            "beside": [{"name": "static", "contrasts": [contrast("two hundred")]}],
            "cells": [{"name": "mod_admission", "metrics": [{"metric": "cpu-per-answer", "high": 1.012}]}],
        });
        assert_eq!(OVERHEAD[0].found(&report), Ok(1.012));
        assert_eq!((OVERLOAD[1].found(&report), OVERLOAD[5].found(&report)), (Ok(1.01), Ok(0.03)));
        assert!(OVERLOAD[0].found(&report).is_err_and(|why| why.contains("no ratio of throughput")));
    }

    #[test]
    fn what_was_read_back_is_of_the_cells_own_trials() {
        let trial = |cell: &str, label: &str, points: [f64; 2]| {
            let points = points.map(|point| serde_json::json!([0.5, point]));
            serde_json::json!({"cell": cell, "panels": [{"series": [{"label": {"id": label}, "points": points}]}]})
        };
        let trials = [
            trial("a", "series-group-swap", [0.0, 7.0]),
            trial("a", "series-swap-in", [0.0, 3.0]),
            trial("a", "series-swap-in", [5.0, 1.0]),
            trial("a", "series-swap-out", [200.0, 200.0]),
            trial("b", "series-swap-in", [90.0, 9.0]),
            trial("c", "series-group-swap", [0.0, 7.0]),
        ];
        let report = serde_json::json!({ "trials": trials });
        assert_eq!(most_read_back(&report, "a"), Ok(5.0));
        assert_eq!(most_read_back(&report, "c"), Ok(0.0));
        assert!(most_read_back(&report, "b").is_err());
    }

    #[test]
    fn every_goal_is_a_question_of_its_plan() {
        let plan = |name: &str| std::fs::read_to_string(root().join(name)).expect("a plan");
        let variant = format!("[variant.{}]", OVERHEAD[0].question);
        assert!(OVERHEAD_PLANS.iter().all(|name| plan(name).contains(&variant)));
        let asked: [(&str, &[Goal], &[&str]); 3] = [
            ("plans/admission/memory-cliff.toml", &OVERLOAD, &WITHOUT_SWAP),
            ("plans/admission/files-beside.toml", &OVERLOAD, &WITHOUT_SWAP),
            (BESIDE_THE_BEST_PLAN, &FILES_BESIDE_THE_BEST, &["${clients}, mod_admission"]),
        ];
        for (name, goals, cells) in asked {
            let overload = plan(name);
            for goal in goals {
                assert!(overload.contains(&format!("[[contrast]]\nname = \"{}\"", goal.question)), "{}", goal.question);
                assert!(goal.beside.is_none_or(|load| overload.contains(&format!("[load.{load}]"))));
            }
            for cell in cells {
                assert!(overload.contains(&format!("[[cell]]\nname = \"{cell}\"")), "{cell}");
            }
        }
        let beside = plan(BESIDE_THE_BEST_PLAN);
        let [own, scales @ ..] = BESIDE_THE_BEST_CLIENTS;
        assert!(beside.contains(&format!("[parameters]\nclients = {own}\n")));
        assert!(scales.iter().all(|clients| beside.contains(&format!("[scale.{clients}]\nclients = {clients}\n"))));
    }

    #[test]
    fn headings_are_lowered() {
        assert_eq!(lowered("## Cells"), "#### Cells");
        assert_eq!(lowered("| a |"), "| a |");
    }
}
