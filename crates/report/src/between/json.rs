//! Two runs for programs: the view as it is, under a schema version; within one version fields are only added.
//!
//! `first[]` and `second[]`: the runs of each side. `cells[]`: `first` and `second` (names), `metrics[]` (`metric`, `first`, `second`,
//! `first_trials`, `second_trials`, `ratio`, `low`, `high`, `verdict`; ratios are second over first), `sentence`, `verdict` (of
//! throughput). `warnings[]` and `rule[]`: sentences. `walk`, `trend`, `drift_trials`: what the intervals allow for.

use super::BetweenView;
use crate::json::pretty;
use serde::Serialize;

/// The schema's version.
pub const SCHEMA_VERSION: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    schema_version: u32,
    #[serde(flatten)]
    view: &'a BetweenView,
}

/// Draws a view as one JSON object, indented, with a line break at its end.
///
/// # Panics
/// Never: every key is text, and numbers that JSON cannot hold become `null`.
#[must_use]
pub fn render(view: &BetweenView) -> String {
    pretty(&Document { schema: "webdyno-compare", schema_version: SCHEMA_VERSION, view })
}
