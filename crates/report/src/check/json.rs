//! A check for programs: `docs/schemas/check.schema.json` describes it; within one version fields are only added.

use super::answer::Answer;
use super::{CheckView, StepView, WindowView};
use crate::json::pretty;
use crate::language::Sentence;
use crate::view::{DiagnosisView, HostView};
use model::Nanos;
use model::check::{Door, Page, Running, Summit, WorkerMemory};
use serde::Serialize;
use std::collections::BTreeMap;

/// The schema's version.
pub const SCHEMA_VERSION: u32 = 1;

/// Draws a view as one JSON object, indented, with a line break at its end.
///
/// # Panics
/// Never: every key is text, and numbers that JSON cannot hold become `null`.
#[must_use]
pub fn render(view: &CheckView) -> String {
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
    budget_s: f64,
    took_s: Option<f64>,
    running: &'a Running,
    page: Option<&'a Page>,
    connected_before: Option<Door>,
    workers_after: BTreeMap<&'a str, WorkerMemory>,
    summit: Summit,
    answer: Option<Answer>,
    limit: Option<&'a DiagnosisView>,
    step: &'a StepView,
    others: &'a [StepView],
    sentences: Vec<&'a Sentence>,
    unseen: &'a [Sentence],
    doubts: &'a [Sentence],
    windows: &'a [WindowView],
}

impl<'a> Document<'a> {
    fn of(view: &'a CheckView) -> Document<'a> {
        Document {
            schema: "webdyno-check",
            schema_version: SCHEMA_VERSION,
            id: &view.id,
            target: &view.target,
            began: &view.began,
            end: &view.end,
            webdyno: &view.version,
            host: &view.host,
            budget_s: seconds(view.facts.budget_ns),
            took_s: Some(view.facts.took_ns).filter(|took| *took > 0).map(seconds),
            running: &view.facts.running,
            page: view.facts.page.as_ref(),
            connected_before: view.facts.before,
            workers_after: view.facts.after.iter().map(|(pool, held)| (pool.as_str(), *held)).collect(),
            summit: view.facts.summit,
            answer: view.answer,
            limit: view.limit.as_ref(),
            step: &view.step,
            others: &view.others,
            sentences: view.server.iter().chain(&view.page).chain(&view.takes).collect(),
            unseen: &view.unseen,
            doubts: &view.doubts,
            windows: &view.windows,
        }
    }
}

fn seconds(ns: Nanos) -> f64 {
    ns as f64 / 1e9
}
