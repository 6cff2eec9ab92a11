//! The noise of a run, and what makes it: what to do for less of it.

use crate::language::{Catalogue, Sentence};
use model::run::Run;
use serde::Serialize;
use verdicts::{Spread, spread};

/// Where the noise of a run comes from.
#[derive(Debug, Clone, Serialize)]
pub struct NoiseView {
    /// Standard deviation of ln throughput from trial to trial of a cell, what the blocks share taken out.
    pub sd: f64,
    /// The share of its variance that starting the server anew makes; with that of the seconds when `window` is `null`.
    pub restart: f64,
    /// The share of the seconds within a window; `null` when windows are too short to tell.
    pub window: Option<f64>,
    /// The share of single requests; when `window` is `null`, the most that it can be.
    pub request: f64,
    /// The same in words, and what to do for less noise.
    pub sentences: Vec<Sentence>,
}

/// Where the noise comes from; `None` when it cannot be told.
pub(crate) fn view(run: &Run, words: &Catalogue) -> Option<NoiseView> {
    let found = spread(run)?;
    // A server that is not ours is not started at all.
    let starts = run.head.plan.server.url().is_none();
    let sentences = vec![split(&found, starts, words), advice(&found, words)];
    let Spread { sd, restart, window, request } = found;
    Some(NoiseView { sd, restart, window, request, sentences })
}

fn split(found: &Spread, starts: bool, words: &Catalogue) -> Sentence {
    let share = |share: f64| format!("{:.0}", share * 100.0);
    let mut arguments = vec![
        ("sd", format!("{:.2}", found.sd * 100.0).into()),
        ("restart", share(found.restart).into()),
        ("request", share(found.request).into()),
    ];
    match found.window {
        None if found.restart < 0.005 => words.say("noise-split-requests", &arguments),
        None => words.say(if starts { "noise-split-short" } else { "noise-split-short-found" }, &arguments),
        Some(window) => {
            arguments.push(("window", share(window).into()));
            words.say(if starts { "noise-split" } else { "noise-split-found" }, &arguments)
        }
    }
}

fn advice(found: &Spread, words: &Catalogue) -> Sentence {
    let window = found.window.unwrap_or(0.0);
    match () {
        () if found.window.is_none() => words.say("noise-of-either", &[]),
        () if found.request >= found.restart.max(window) => words.say("noise-of-requests", &[]),
        () if window >= found.restart => words.say("noise-of-windows", &[]),
        () => words.say("noise-of-restarts", &[]),
    }
}
