//! How long a permit takes from the process that gives it back to the one that waits for it, and whether anybody is ever forgotten: the
//! module's own tests, which need no server, run for long.

use super::Stand;
use crate::bench::cases::Limit;
use crate::bench::report::{Heading, Judgement, Raw, Section, table};
use crate::bench::statistics::median;
use anyhow::{Context, bail};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Children killed at random moments before hand-offs are timed.
const KILLS: u64 = 50;
/// Hand-offs that are timed in one repetition.
const TIMED: u64 = 50_000;
/// The most that the median may be.
const GOAL_US: f64 = 200.0;

pub(super) fn measure(stand: &Stand, heading: Heading, repeats: usize, hand_offs: u64) -> anyhow::Result<Section> {
    let storm = stand.test_program("test_storm")?;
    let queue = stand.test_program("test_queue")?;
    let mut section =
        Section { heading, body: Vec::new(), judgements: Vec::new(), commands: Vec::new(), raw: Vec::new() };
    let (mut rows, mut medians) = (Vec::new(), Vec::new());
    for repetition in 1..=repeats {
        let (well, said) = run(&storm, &[KILLS, TIMED])?;
        if !well {
            bail!("test_storm failed: {said}");
        }
        let (middle, p99) = parse(&said).with_context(|| format!("not what test_storm says: {said}"))?;
        rows.push(vec![repetition.to_string(), format!("{middle:.1}"), format!("{p99:.1}")]);
        medians.push(middle);
        let raw = |(measure, value)| Raw { tool: "test_storm".to_owned(), repetition, position: 1, measure, value };
        section.raw.extend([("median us", middle), ("p99 us", p99)].map(raw));
    }
    section.body.push(format!(
        "Two processes pass one permit to and fro, {TIMED} times in each repetition; from the moment before it is given back to the one in which \
         the other has it. Before that, {KILLS} processes that hold and wait for permits are killed at random moments."
    ));
    section.body.push(table(&["repetition", "median us", "p99 us"], &rows));
    let started = Instant::now();
    // A test that fails is a result of its own; what one that was broken off has said is none.
    let (well, said) = run(&queue, &[hand_offs])?;
    section.body.push(format!(
        "{hand_offs} permits passed on among threads in a queue, first in first out, as many last in first out, and a tenth of that in an adaptive \
         one, each waiter woken by nothing but the hand-off: {} s, and the test's own word:",
        started.elapsed().as_secs()
    ));
    section.body.push(format!("```text\n{}\n```", said.trim()));
    let found = median(&medians).ok_or_else(|| "no repetition".to_owned());
    section.judgements.push(Judgement {
        what: "median of a hand-off, in microseconds".to_owned(),
        found,
        limit: Limit::Below(GOAL_US),
    });
    section.judgements.push(Judgement {
        what: "failed checks of the storm".to_owned(),
        found: failed(&said).filter(|&failed| well || failed > 0.0).ok_or_else(|| broken_off(well).to_owned()),
        limit: Limit::AtMost(0.0),
    });
    section.commands.push(format!("test_storm {KILLS} {TIMED}"));
    section.commands.push(format!("test_queue {hand_offs}"));
    Ok(section)
}

/// Whether a test program ended well, and what it said.
fn run(program: &Path, numbers: &[u64]) -> anyhow::Result<(bool, String)> {
    let ran = Command::new(program).args(numbers.iter().map(u64::to_string)).stdin(Stdio::null()).output();
    let ran = ran.with_context(|| format!("cannot run {}", program.display()))?;
    let said = [ran.stdout, ran.stderr].concat();
    Ok((ran.status.success(), String::from_utf8_lossy(&said).into_owned()))
}

/// Why a test program does not say how many of its checks failed.
fn broken_off(ended_well: bool) -> &'static str {
    if ended_well { "the test does not say" } else { "the test was broken off before its end: run it by itself" }
}

/// How many checks of a test program failed.
fn failed(said: &str) -> Option<f64> {
    said.lines().find_map(|line| line.strip_suffix(" failed")?.rsplit(' ').next()?.parse().ok())
}

/// Median and p99 in microseconds.
fn parse(said: &str) -> Option<(f64, f64)> {
    let line = said.lines().find(|line| line.contains("hand-off between two processes"))?;
    let after = |word: &str| line.split_once(word)?.1.split_whitespace().next()?.parse().ok();
    Some((after("median ")?, after("p99 ")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_storm_says() {
        let said = "storm: 50 kills\nstorm: hand-off between two processes: median 8.9 us, p99 31.0 us (5000)\nok\n";
        assert_eq!(parse(said), Some((8.9, 31.0)));
        assert_eq!(parse("ok\n"), None);
        assert_eq!(failed("queue: 10 permits\nqueue: 74 checks, 2 failed\nqueue.c:77\n"), Some(2.0));
    }
}
