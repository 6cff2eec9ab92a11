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
    let goal = "Goal: the upper end of the interval for mod_admission's CPU time (per answer, below) under 1.015 times that without a limiter.";
    Ok(run(stand, heading, flags, "plans/admission/overhead.toml", &[], goal)?.0)
}

pub(super) fn overload(stand: &Stand, heading: Heading, flags: &Flags) -> anyhow::Result<Section> {
    let goal = "Goals: as many answers of the programs as 0.95 times those of the best MaxRequestWorkers; nothing read back from swap; the files' p99 at \
                most 1.5 times that beside as many programs with nobody waiting, and at least 20 times lower than with MaxRequestWorkers 4.";
    Ok(run(stand, heading, flags, "plans/admission/memory-cliff.toml", &["--make-swap", "1G"], goal)?.0)
}

/// The least that mod_admission may get of the programs' answers with the best MaxRequestWorkers.
const OF_THE_BEST: f64 = 0.95;

pub(super) fn worker_limits(stand: &Stand, heading: Heading, flags: &Flags) -> anyhow::Result<Section> {
    let goal = "Goal: as many answers of the programs as 0.95 times those of the best MaxRequestWorkers, which is the one against which the ratio is \
                the lowest. Each interval is one of the plan's family of contrasts.";
    let plan = "plans/admission/worker-limits.toml";
    let (mut section, store, webdyno) = run(stand, heading, flags, plan, &["--make-swap", "1G"], goal)?;
    let mut command = Command::new(webdyno);
    let said = command.args(["report", "latest", "--json", "--store"]).arg(store).stdin(Stdio::null()).output();
    let report = serde_json::from_slice(&said.context("cannot run webdyno")?.stdout).context("no report of the run")?;
    let found = best(&report);
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
    Ok(section)
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

/// Of the contrasts of a report the lowest for each number of clients, with which the cells' names begin.
fn best(report: &Value) -> Vec<Best> {
    let mut found: Vec<Best> = Vec::new();
    for contrast in report["contrasts"].as_array().into_iter().flatten() {
        let comparison = &contrast["comparison"];
        let against = contrast["against"][0].as_str().and_then(|name| name.split_once(", "));
        let (Some(ratio), Some((clients, against))) = (comparison["ratio"].as_f64(), against) else { continue };
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
        let contrast = |against: &str, ratio: f64| serde_json::json!({"of": ["50, mod_admission"], "against": [against], "comparison": {"ratio": ratio, "low": 0.9, "high": null}});
        let none = serde_json::json!({"against": ["50, MaxRequestWorkers 3"], "comparison": null});
        let contrasts = [
            contrast("50, MaxRequestWorkers 4", 1.02),
            none,
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
    fn headings_are_lowered() {
        assert_eq!(lowered("## Cells"), "#### Cells");
        assert_eq!(lowered("| a |"), "| a |");
    }
}
