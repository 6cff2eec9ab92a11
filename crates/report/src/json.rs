//! The report for programs: the view as it is, under a schema version.
//!
//! Names carry their unit (`window_s`, `median_us`, `memory_bytes`); a sentence is `{"id", "text"}`, where the id is stable and
//! the text is for people. Within one version fields are only added; renaming or removing one raises the version.
//!
//! `run`: the head, with `host` and the plan's text. `cells[]`: `name`, `role` (`baseline`, `again` or `candidate`), `variant`,
//! `directives`, `load`, `trials_used` of `trials_made`, `window_s`, `good_per_s`, `latency` (microseconds, with `percentiles`;
//! `p99_us` is `null` below 299 answers), `connect_median_us`, `first_byte_median_us`, `failures[]`, `in_flight`, `retries`, `abandoned`,
//! `comparison` (`ratio`, `low`, `high`, `blocks`, `blocks_unanswered`, `verdict`), `metrics[]`
//! (`metric`, `unit`, `value`, `ratio`, `low`, `high`, `blocks`, `verdict`), `diagnosis` (`headline`, `primary`,
//! `contributing`, `ruled_out`, each with `leads_to`, `confidence`, `confirm`, `advice`, `source` and `evidence[]` of
//! `name`, `value`, `text`, `limit`), `latency_budget` when the plan asks
//! (`mean` and `slowest`, each with `mean_us`, `parts[]` of `part`, `us`, `remainder_us`, `left_out_us`), `doubts[]`, and where an access log was counted `logged` (`ending`, `answers`,
//! `lines`, `lost_least`, `lost_most`, and `trials[]` of the same). `settings[]`: one
//! value per cell. `contrasts[]`, when the plan asks by name
//! or by factors: `name`, `is_interaction`, `of`, `against`, `aliases`, `comparison`, `metrics[]`, and `design` with `factors[]`,
//! `generators`, `resolution`. `sweep`: `over`, `points[]` (`value`, `good_per_s`, `low`, `high`, `by_law_per_s`, `left_out`), `law` (`sigma`,
//! `kappa`, `peak`, each with an interval, `knee`, `miss`), `cliff`. `noise`: `sd` and the shares of `restart`, `window`, `request`.
//! `beside[]`, when loads ran beside the cells' own: `name`, `load`, `cells[]` and `contrasts[]` as above, of that load and without a
//! `diagnosis`. `trials[]`: with `panels[]` of series as `[seconds, value]`. `warnings[]` and `noise_floor`: sentences.

use crate::view::View;
use serde::Serialize;

/// The schema's version.
pub const SCHEMA_VERSION: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    schema_version: u32,
    #[serde(flatten)]
    view: &'a View,
}

/// Draws a view as one JSON object, indented, with a line break at its end.
///
/// # Panics
/// Never: every key of a view is text, and numbers that JSON cannot hold become `null`.
#[must_use]
pub fn render(view: &View) -> String {
    pretty(&Document { schema: "webdyno-report", schema_version: SCHEMA_VERSION, view })
}

/// A document as indented lines with an end of line.
pub(crate) fn pretty(document: &impl Serialize) -> String {
    let mut text = serde_json::to_string_pretty(document).expect("a view has only text as keys");
    text.push('\n');
    text
}
