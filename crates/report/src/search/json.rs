//! A search for programs: `docs/schemas/search.schema.json` describes it; within one version fields are only added.

use super::{SearchView, StepView};
use crate::json::pretty;
use crate::language::Sentence;
use crate::load::json::Threshold;
use crate::view::HostView;
use model::search::{Answer, Held};
use serde::Serialize;

/// The schema's version.
pub const SCHEMA_VERSION: u32 = 1;

/// Draws a view as one JSON object, indented, with a line break at its end.
///
/// # Panics
/// Never: every key is text, and numbers that JSON cannot hold become `null`.
#[must_use]
pub fn render(view: &SearchView) -> String {
    pretty(&Document::of(view))
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    schema_version: u32,
    id: &'a str,
    target: &'a str,
    began: &'a str,
    end: &'a Sentence,
    webdyno: &'a str,
    host: &'a HostView,
    sent: &'a Sentence,
    seed: u64,
    goals: Vec<&'a str>,
    precision: f64,
    answer: &'static str,
    held_per_s: Option<f64>,
    missed_per_s: Option<f64>,
    sentences: &'a [Sentence],
    doubts: &'a [Sentence],
    contradictions_per_s: &'a [f64],
    closed_loop_per_s: Option<f64>,
    steps: Vec<Step<'a>>,
}

#[derive(Serialize)]
struct Step<'a> {
    number: u32,
    asked_per_s: f64,
    good_per_s: f64,
    held: Held,
    goals: Vec<Threshold<'a>>,
    misses: &'a [Sentence],
}

impl<'a> Document<'a> {
    fn of(view: &'a SearchView) -> Document<'a> {
        let (answer, held, missed) = match view.answer {
            Answer::Found { rate, missed } => ("found", Some(rate), Some(missed)),
            Answer::AtLeast { rate, generator } => ("at_least", Some(rate), Some(generator)),
            Answer::Nothing { lowest } => ("nothing", None, Some(lowest)),
            Answer::Open { held, missed } => ("open", held, missed),
        };
        Document {
            schema: "webdyno-search",
            schema_version: SCHEMA_VERSION,
            id: &view.id,
            target: &view.target,
            began: &view.began,
            end: &view.end,
            webdyno: &view.version,
            host: &view.host,
            sent: &view.sent,
            seed: view.seed,
            goals: view.search.goals.iter().map(|goal| goal.text.as_str()).collect(),
            precision: view.search.precision,
            answer,
            held_per_s: held,
            missed_per_s: missed,
            sentences: &view.sentences,
            doubts: &view.doubts,
            contradictions_per_s: &view.contradictions,
            closed_loop_per_s: view.closed,
            steps: view.steps.iter().map(Step::of).collect(),
        }
    }
}

impl<'a> Step<'a> {
    fn of(view: &'a StepView) -> Step<'a> {
        Step {
            number: view.step.number,
            asked_per_s: view.step.rate,
            good_per_s: view.step.good,
            held: view.step.held,
            goals: view.goals.iter().map(Threshold::of).collect(),
            misses: &view.misses,
        }
    }
}
