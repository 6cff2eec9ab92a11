//! An import for programs: `docs/schemas/import.schema.json` describes it; within one version fields are only added.

use super::{ComparedView, GroupView, ImportView, ReportView, SlipView};
use crate::json::pretty;
use crate::language::Sentence;
use abtext::{Figure, Weight};
use serde::Serialize;

/// The schema's version.
pub const SCHEMA_VERSION: u32 = 1;

/// Draws a view as one JSON object, indented, with a line break at its end.
///
/// # Panics
/// Never: every key is text, and numbers that JSON cannot hold become `null`.
#[must_use]
pub fn render(view: &ImportView) -> String {
    pretty(&Document::of(view))
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    schema_version: u32,
    id: &'a str,
    imported: &'a str,
    webdyno: &'a str,
    measured_by: &'static str,
    about: &'a Sentence,
    groups: Vec<Group<'a>>,
    comparisons: &'a [ComparedView],
    limits: &'a [Sentence],
    slips: Vec<Slip<'a>>,
}

#[derive(Serialize)]
struct Group<'a> {
    name: &'a str,
    reports: Vec<Report<'a>>,
}

#[derive(Serialize)]
struct Report<'a> {
    name: &'a str,
    source: &'a str,
    first_line: usize,
    last_line: usize,
    written_by: &'a Sentence,
    command: Option<&'a str>,
    seconds: Option<f64>,
    good: Option<f64>,
    good_per_s: Option<f64>,
    lines_skipped: usize,
    figures: Vec<Written<'a>>,
}

#[derive(Serialize)]
struct Written<'a> {
    name: String,
    line: usize,
    written: &'a str,
    value: Option<f64>,
}

#[derive(Serialize)]
struct Slip<'a> {
    source: &'a str,
    line: usize,
    weight: &'static str,
    #[serde(flatten)]
    sentence: &'a Sentence,
}

impl<'a> Document<'a> {
    fn of(view: &'a ImportView) -> Document<'a> {
        Document {
            schema: "webdyno-import",
            schema_version: SCHEMA_VERSION,
            id: &view.id,
            imported: &view.taken,
            webdyno: &view.version,
            measured_by: "ab",
            about: &view.about,
            groups: view.groups.iter().map(group).collect(),
            comparisons: &view.compared,
            limits: &view.limits,
            slips: view.slips.iter().map(slip).collect(),
        }
    }
}

fn group(view: &GroupView) -> Group<'_> {
    Group { name: &view.name, reports: view.reports.iter().map(report).collect() }
}

fn report(view: &ReportView) -> Report<'_> {
    let report = &view.report;
    Report {
        name: &view.name,
        source: &view.source,
        first_line: report.first_line(),
        last_line: report.last_line(),
        written_by: &view.family,
        command: report.command.as_ref().map(|command| command.written.as_str()),
        seconds: report.seconds().map(|seconds| seconds.range.middle()),
        good: report.good(),
        good_per_s: report.good_per_second(),
        lines_skipped: report.skipped,
        figures: report.figures.iter().map(written).collect(),
    }
}

fn written(figure: &Figure) -> Written<'_> {
    let value = figure.number.map(|number| number.value);
    Written { name: figure.field.name(), line: figure.line, written: &figure.written, value }
}

fn slip(view: &SlipView) -> Slip<'_> {
    let weight = match view.weight {
        Weight::Wrong => "wrong",
        Weight::Doubt => "doubt",
        Weight::Note => "note",
    };
    Slip { source: &view.source, line: view.line, weight, sentence: &view.sentence }
}
