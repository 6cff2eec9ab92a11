//! `webdyno load --find-rate`: the search that the flags mean, what is said while it goes on, and how the process ends by it.

use crate::exit::Exit;
use crate::flags::load::LoadFlags;
use model::plan::{Arrivals, LoadSpec};
use model::search::{Held, Miss, RateSearch, Step};
use std::fmt::Write;

/// The search that the flags ask for, if they do.
pub(super) fn meant(flags: &LoadFlags) -> Option<RateSearch> {
    let goals = flags.search.find_rate.clone();
    (!goals.is_empty()).then_some(RateSearch {
        goals,
        precision: flags.search.precision,
        start: flags.rate,
        arrivals: if flags.poisson { Arrivals::Poisson } else { Arrivals::Even },
    })
}

/// What a dry run says of it.
pub(super) fn outline(search: &RateSearch, spec: &LoadSpec) -> String {
    let length_ns = RateSearch::step_ns(spec);
    let (length, rate) = (units::short_duration(length_ns as f64), |rate: f64| units::si(rate).print(rate));
    let mut out = match search.start {
        Some(start) => format!("a search that begins at {}/s\n", rate(start)),
        None => "a short closed loop first, to learn where to begin\n".to_owned(),
    };
    let goals: Vec<&str> = search.goals.iter().map(|goal| goal.text.as_str()).collect();
    let floor = rate(search.floor(length_ns));
    // Writing to memory does not fail.
    let _ = write!(
        out,
        "then steps of {length} each, at a constant rate of their own: sustained while {}, 99 % of what is due is answered well and \
         nothing remains unsent\nhalved while they miss, times 1.5 while they hold, then the middle between the two until they are \
         within {} %; the last that held is tried twice\nnothing below {floor}/s, where there would be too few requests to judge by\n",
        goals.join(" and "),
        percent(search.precision),
    );
    out
}

/// A share in percent as it was typed: what is a hair more or less in binary is not shown.
fn percent(share: f64) -> f64 {
    (share * 1e8).round() / 1e6
}

/// A line on a step that is over.
pub(crate) fn step(step: &Step) -> String {
    let rate = units::si(step.rate).print(step.rate);
    let good = units::si(step.good).print(step.good);
    let what = match step.held {
        Held::Yes => "held",
        Held::No => "missed",
        Held::Generator => "missed, and the load generator may be why",
    };
    let why: Vec<String> = step.misses.iter().map(miss).collect();
    let why = if why.is_empty() { String::new() } else { format!(" ({})", why.join("; ")) };
    format!("step {}: {rate}/s {what}: {good}/s answered well{why}", step.number)
}

fn miss(miss: &Miss) -> String {
    match miss {
        Miss::Goal(judged) => judged.threshold.text.clone(),
        Miss::Behind { due, good, late: 0 } => format!("{good} good answers to {due} that were due"),
        Miss::Behind { due, good, late } => format!("{good} good answers to {due} that were due, {late} after the end"),
        Miss::Unsent(n) => format!("{n} unsent"),
        Miss::Stopped(_) => "ended early".to_owned(),
        Miss::Generator(_) => "the generator was at its limit".to_owned(),
    }
}

/// How the process ends by what was found.
pub(crate) fn exit(answer: model::search::Answer) -> Exit {
    match answer {
        model::search::Answer::Found { .. } => Exit::Done,
        model::search::Answer::Nothing { .. } => Exit::Worse,
        model::search::Answer::AtLeast { .. } | model::search::Answer::Open { .. } => Exit::Inconclusive,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_precision_is_printed_as_it_was_typed() {
        for typed in [0.1, 0.3, 2.3, 5.0, 7.0, 12.5, 29.0, 50.0] {
            assert_eq!(percent(typed / 100.0).to_string(), typed.to_string());
        }
    }
}
