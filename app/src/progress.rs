//! Live progress on standard error: one moving line on a terminal, one line per trial elsewhere.

use crate::command::load::search;
use crate::say::{count, say};
use experiment::{Event, Phase, Slot};
use indicatif::{ProgressBar, ProgressStyle};
use model::load::{Failure, LoadInterval, LoadResult};
use model::trial::{Outcome, Preflight, Stop, Trial};
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Draws events as they come.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    trials: usize,
    interrupted: Arc<AtomicBool>,
    told: bool,
}

impl Progress {
    /// A moving line when standard error is a terminal and the user did not ask for plain output.
    pub(crate) fn new(plain: bool, interrupted: Arc<AtomicBool>) -> Progress {
        let moving = !plain && std::io::stderr().is_terminal();
        Progress { bar: moving.then(bar), trials: 0, interrupted, told: false }
    }

    pub(crate) fn show(&mut self, event: &Event<'_>) {
        if self.interrupted.load(Ordering::Relaxed) && !self.told {
            self.told = true;
            self.line("ending after this trial's clean-up; press Ctrl-C again to leave at once");
        }
        match event {
            Event::Building(command) => self.status(&format!("building: {}", command.join(" "))),
            Event::Started { head, trials } => {
                self.trials = *trials;
                if let Some(bar) = &self.bar {
                    bar.set_length(*trials as u64);
                }
                let trials = count(*trials as u64, "trial");
                self.line(&format!("run {} ({trials}, seed {})", head.id, head.seed));
            }
            Event::Searching { head } => self.line(&format!("run {} (a search, seed {})", head.id, head.seed)),
            Event::Pilot { blocks, most, metric, resolvable } => {
                self.line(&pilot_text(*blocks, *most, metric, *resolvable));
            }
            Event::Looked { blocks, decided, settled, next } => {
                self.line(&looked_text(*blocks, *decided, *settled, *next));
            }
            Event::BudgetSpent { blocks, longer } => {
                let why = match longer {
                    Some(one) => {
                        let one = units::short_duration(one.as_nanos() as f64);
                        format!("one takes {one}, longer than the budget, and is made whole")
                    }
                    None => "another would probably end too late".to_owned(),
                };
                self.line(&format!("the time is spent: blocks made: {blocks} ({why})"));
            }
            Event::Step(step) => self.line(&search::step(step)),
            Event::Trial { slot, phase } => self.status(&format!("{}: {}", slot.cell, phase_name(*phase))),
            Event::Remark(what) => self.line(&format!("note: {what}")),
            Event::Preflight(found) => self.line(&preflight_text(found)),
            // What there is too little room for on a line.
            Event::Sending(_) | Event::Reading(_) | Event::Visits { .. } => {}
            Event::Interval { slot, interval } => self.status(&format!("{}: {}", slot.cell, interval_text(interval))),
            Event::Ended { slot, trial } => {
                self.line(&ended(slot, trial, self.trials));
                if let Some(bar) = &self.bar {
                    bar.set_position(slot.number as u64 + 1);
                }
            }
        }
    }

    /// Removes the moving line.
    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    /// What goes on now; only a moving line shows it.
    fn status(&self, text: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(text.to_owned());
        }
    }

    /// What stays.
    fn line(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| say(text)),
            None => say(text),
        }
    }
}

fn bar() -> ProgressBar {
    let bar = ProgressBar::new(0);
    let style = ProgressStyle::with_template("{spinner} {pos}/{len} [{elapsed}] {wide_msg}")
        .unwrap_or_else(|_| ProgressStyle::default_spinner());
    bar.set_style(style);
    bar.enable_steady_tick(Duration::from_millis(120));
    bar
}

fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::CoolDown => "waiting for the host to calm down",
        Phase::Start => "starting the server",
        Phase::Preflight => "sending the first requests one at a time",
        Phase::WarmUp => "warming up",
        Phase::Measure => "measuring",
    }
}

fn pilot_text(blocks: u32, most: u32, metric: &str, resolvable: Option<f64>) -> String {
    match resolvable {
        Some(ratio) => {
            let percent = 100.0 * (ratio - 1.0);
            let of = if metric == "goodput" { String::new() } else { format!(" in {metric}") };
            format!(
                "pilot: after {blocks} blocks, {most} would show a difference of {percent:.1} %{of} with 80 % chance"
            )
        }
        None => format!("pilot: after {blocks} blocks nothing is known of the noise"),
    }
}

fn looked_text(blocks: u32, decided: bool, settled: bool, next: Option<u32>) -> String {
    match (decided, next) {
        (true, _) => format!("after {blocks} blocks everything is decided"),
        (false, _) if settled => {
            format!("after {blocks} blocks the rest cannot be decided: there are trials without a good answer")
        }
        (false, Some(next)) => {
            format!("after {blocks} blocks not everything is decided; the next look is after {next}")
        }
        (false, None) => format!("after {blocks} blocks not everything is decided, and that was the last look"),
    }
}

fn preflight_text(found: &Preflight) -> String {
    let statuses: Vec<_> = found.statuses.iter().map(|(status, count)| format!("{count} x {status}")).collect();
    let failed: u64 = found.failed.values().sum();
    let range = |(least, most): (u64, u64), print: fn(u64) -> String| {
        if least == most { print(least) } else { format!("{} to {}", print(least), print(most)) }
    };
    let mut text =
        format!("preflight: {}", if statuses.is_empty() { "no answer".to_owned() } else { statuses.join(", ") });
    if failed > 0 {
        text.push_str(&format!(", {failed} failed"));
    }
    if let Some(bytes) = found.bytes {
        text.push_str(&format!(", {} bytes", range(bytes, |n| n.to_string())));
    }
    if let Some(total) = found.total_us {
        text.push_str(&format!(", {}", range(total, |us| units::short_duration(us as f64 * 1e3))));
    }
    text
}

fn interval_text(interval: &LoadInterval) -> String {
    let seconds = interval.length_ns as f64 / 1e9;
    let rate = if seconds > 0.0 { interval.counts.good as f64 / seconds } else { 0.0 };
    let median = interval
        .total
        .unpack()
        .percentile_us(50.0)
        .map_or_else(String::new, |us| format!(", median {}", units::short_duration(us as f64 * 1e3)));
    let failed = interval.counts.failures();
    let failed = if failed > 0 { format!(", {failed} failed") } else { String::new() };
    format!("{} requests/s{median}{failed}", units::si(rate).print(rate))
}

fn ended(slot: &Slot, trial: &Trial, trials: usize) -> String {
    let width = trials.to_string().len();
    let head = format!("{:width$}/{trials}  block {}  {}", slot.number + 1, slot.block + 1, slot.cell);
    let result = trial.load.as_ref().map_or_else(String::new, |load| {
        let median = load
            .total
            .percentile_us(50.0)
            .map_or_else(|| "no answer".to_owned(), |us| format!("median {}", units::short_duration(us as f64 * 1e3)));
        let rate = load.goodput();
        format!("{} requests/s, {median}, {}", units::si(rate).print(rate), failed(load))
    });
    match &trial.outcome {
        Outcome::Complete => format!("{head}: {result}"),
        Outcome::EndedEarly(stop) if result.is_empty() => format!("{head}: ended early: {}", stop_name(*stop)),
        Outcome::EndedEarly(stop) => format!("{head}: {result}; ended early: {}", stop_name(*stop)),
        Outcome::Invalid(why) => format!("{head}: invalid: {why}"),
    }
}

/// How many failed, and an example of what most of them failed by, where they are many: of a plan's own mistake one trial is enough.
fn failed(load: &LoadResult) -> String {
    let failures = load.counts.failures();
    let commonest = load.counts.failed.iter().max_by_key(|(_, count)| **count).map(|(cause, _)| *cause);
    let example = commonest.filter(|_| failures > load.counts.good).and_then(|cause| load.examples.get(&cause));
    let way_out = match commonest {
        Some(Failure::LengthDiffers) => "; where the page may change, write same_length = false",
        _ => "",
    };
    example.map_or_else(|| format!("{failures} failed"), |example| format!("{failures} failed ({example}{way_out})"))
}

fn stop_name(stop: Stop) -> &'static str {
    match stop {
        Stop::Thrash => "the server thrashed longer than the plan allows",
        Stop::Failures => "too many requests failed",
        Stop::HostSwapIn => "the host itself began to swap in",
        Stop::HostMemory => "the host ran out of available memory",
        Stop::TimeLimit => "its time limit",
        Stop::Unwatched => "the sampler fell silent",
        Stop::Interrupted => "interrupted",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_that_failed_says_by_what() {
        let check = |good: u64, causes: &[(Failure, u64)], expected: &str| {
            let mut load = LoadResult::empty();
            load.counts.good = good;
            load.counts.failed = causes.iter().copied().collect();
            load.examples = causes.iter().map(|(cause, _)| (*cause, "an example".to_owned())).collect();
            assert_eq!(failed(&load), expected);
        };
        check(9, &[], "0 failed");
        check(9, &[(Failure::Timeout, 9)], "9 failed");
        check(9, &[(Failure::Timeout, 9), (Failure::Status, 1)], "10 failed (an example)");
        let way_out = "; where the page may change, write same_length = false";
        check(9, &[(Failure::Timeout, 1), (Failure::LengthDiffers, 30)], &format!("31 failed (an example{way_out})"));
    }
}
