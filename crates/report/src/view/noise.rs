//! The noise of a run, and what makes it: what to do for less of it.

use crate::language::{Catalogue, Sentence};
use crate::view::NoiseView;
use model::run::Run;
use verdicts::{Spread, spread};

/// Where the noise comes from; `None` when it cannot be told.
pub(crate) fn view(run: &Run, words: &Catalogue) -> Option<NoiseView> {
    let found = spread(run)?;
    let sentences = vec![split(&found, words), advice(&found, words)];
    let Spread { sd, restart, window, request } = found;
    Some(NoiseView { sd, restart, window, request, sentences })
}

fn split(found: &Spread, words: &Catalogue) -> Sentence {
    let share = |share: f64| format!("{:.0}", share * 100.0);
    let mut arguments = vec![
        ("sd", format!("{:.2}", found.sd * 100.0).into()),
        ("restart", share(found.restart).into()),
        ("request", share(found.request).into()),
    ];
    match found.window {
        None => words.say("noise-split-short", &arguments),
        Some(window) => {
            arguments.push(("window", share(window).into()));
            words.say("noise-split", &arguments)
        }
    }
}

fn advice(found: &Spread, words: &Catalogue) -> Sentence {
    let window = found.window.unwrap_or(0.0);
    match () {
        () if found.request >= found.restart.max(window) => words.say("noise-of-requests", &[]),
        () if window >= found.restart => words.say("noise-of-windows", &[]),
        () if found.window.is_none() => words.say("noise-of-either", &[]),
        () => words.say("noise-of-restarts", &[]),
    }
}
