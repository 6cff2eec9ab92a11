//! A check for a terminal: what it takes and what to do first, then how that was found.

use super::{CheckView, StepView};
use crate::text::page::Page;
use crate::text::paint::Tone;
use crate::text::{Look, layout};
use crate::view::DiagnosisView;
use diagnosis::Cause;

/// Draws a view for a terminal; every line ends with a line break.
#[must_use]
pub fn render(view: &CheckView, look: Look) -> String {
    let mut page = Page::new(view.language, look);
    page.paragraph("", Tone::Strong, &format!("{}  {}", view.target, view.id));
    page.section("section-check-server");
    for sentence in view.server.iter().chain(&view.page) {
        page.paragraph("  ", Tone::Plain, &sentence.text);
    }
    for sentence in &view.unseen {
        page.paragraph("  ? ", Tone::Quiet, &sentence.text);
    }
    page.section("section-check-takes");
    for (index, sentence) in view.takes.iter().enumerate() {
        page.paragraph("  ", if index == 0 { Tone::Strong } else { Tone::Plain }, &sentence.text);
    }
    // That nothing was used up the next step says better.
    let used_up = |limit: &&DiagnosisView| limit.primary.title.id != Cause::OfferedConcurrency.id();
    if let Some(limit) = view.limit.as_ref().filter(used_up) {
        page.section("section-limit");
        page.paragraph("  ", Tone::Plain, &limit.headline.text);
        for finding in &limit.contributing {
            page.paragraph("    + ", Tone::Plain, &finding.told.text);
        }
    }
    page.section("section-check-step");
    step(&mut page, &view.step);
    if !view.others.is_empty() {
        page.section("section-check-others");
        view.others.iter().for_each(|other| step(&mut page, other));
    }
    page.sentences("section-warnings", Tone::Warning, &view.doubts);
    if !view.table.rows.is_empty() {
        page.section("section-check-climb");
        let table = layout::table(&view.table, page.width, page.paint, &[]);
        page.out.push_str(&table);
    }
    page.line("");
    page.host(&view.host);
    let arguments = [
        ("began", view.began.as_str().into()),
        ("version", view.version.as_str().into()),
        ("end", view.end.text.as_str().into()),
    ];
    let made = page.words.say("check-made", &arguments);
    page.paragraph("", Tone::Quiet, &made.text);
    page.out
}

fn step(page: &mut Page, step: &StepView) {
    page.paragraph("  ", if step.is_fault { Tone::Bad } else { Tone::Good }, &step.sentence.text);
    let numbers: Vec<String> = step.evidence.iter().map(|number| format!("{} {}", number.label, number.text)).collect();
    if !numbers.is_empty() {
        page.paragraph("      ", Tone::Quiet, &page.words.list(&numbers));
    }
}
