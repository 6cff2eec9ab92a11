//! `webdyno runs`: what is in the store, newest first.

use super::report::{NO_RUNS, store_path};
use crate::exit::Exit;
use crate::flags::RunsFlags;
use crate::say::{count, print};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use model::run::RunEnd;
use serde_json::json;
use store::{Kind, RunSummary, Store};

pub(crate) fn run(flags: &RunsFlags) -> anyhow::Result<Exit> {
    let path = store_path(&flags.store)?;
    // Nothing was ever measured; a store that was asked for by name must be there.
    let runs =
        if flags.store.path.is_none() && !path.exists() { vec![] } else { Store::open_existing(&path)?.runs()? };
    let text = match runs.as_slice() {
        runs if flags.json => as_json(runs),
        [] => format!("{NO_RUNS}\n"),
        runs => as_text(runs),
    };
    print(&text);
    Ok(Exit::Done)
}

fn as_text(runs: &[RunSummary]) -> String {
    let plans = runs.iter().map(|run| run.plan.chars().count()).max().unwrap_or(0);
    runs.iter()
        .map(|run| {
            let began = began(run).to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string();
            let (id, plan) = (&run.id, &run.plan);
            match run.kind {
                Kind::Run => format!("{id}  {began}  {plan:plans$}  {:>3} trials  {}\n", run.trials, end(&run.end)),
                Kind::Import => format!("{id}  {began}  {plan:plans$}  imported from ab\n"),
                Kind::Watch => format!("{id}  {began}  {plan:plans$}  {}\n", recorded(run)),
            }
        })
        .collect()
}

fn as_json(runs: &[RunSummary]) -> String {
    let runs: Vec<_> = runs
        .iter()
        .map(|run| {
            json!({
                "id": run.id,
                "kind": match run.kind {
                    Kind::Run => "run",
                    Kind::Import => "import",
                    Kind::Watch => "recording",
                },
                "plan": run.plan,
                "began": began(run).to_string(),
                "trials": run.trials,
                "end": run.end,
                "recorded": run.recorded.map(|extent| json!({
                    "looks": extent.looks,
                    "length_s": extent.length_ns() as f64 / 1e9,
                    "bytes": extent.bytes,
                })),
            })
        })
        .collect();
    format!("{:#}\n", serde_json::Value::Array(runs))
}

/// How much there is of a recording.
fn recorded(run: &RunSummary) -> String {
    let extent = run.recorded.unwrap_or_default();
    let length = units::short_duration(extent.length_ns() as f64);
    format!("recording, {} over {length}, {}", count(extent.looks, "reading"), units::short_bytes(extent.bytes))
}

fn began(run: &RunSummary) -> Timestamp {
    Timestamp::from_nanosecond(i128::from(run.anchor.wall_ns)).unwrap_or_default()
}

fn end(end: &RunEnd) -> String {
    match end {
        RunEnd::Unfinished => "unfinished".to_owned(),
        RunEnd::Complete => "complete".to_owned(),
        RunEnd::Interrupted => "interrupted".to_owned(),
        RunEnd::Failed(why) => format!("failed: {why}"),
    }
}
