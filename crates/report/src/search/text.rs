//! A search for a terminal: the answer, what to doubt, and the steps.

use super::SearchView;
use crate::text::page::Page;
use crate::text::paint::Tone;
use crate::text::{Look, layout};
use model::search::Answer;

/// Draws a view for a terminal; every line ends with a line break.
#[must_use]
pub fn render(view: &SearchView, look: Look) -> String {
    let mut page = Page::new(view.language, look);
    page.paragraph("", Tone::Strong, &format!("{}  {}", view.target, view.id));
    page.paragraph("", Tone::Plain, &view.sent.text);
    page.section("section-search");
    let tone = match view.answer {
        Answer::Found { .. } => Tone::Good,
        Answer::Nothing { .. } => Tone::Bad,
        Answer::AtLeast { .. } | Answer::Open { .. } => Tone::Warning,
    };
    for (index, sentence) in view.sentences.iter().enumerate() {
        page.paragraph("  ", if index == 0 { tone } else { Tone::Plain }, &sentence.text);
    }
    page.sentences("section-warnings", Tone::Warning, &view.doubts);
    if !view.table.rows.is_empty() {
        page.section("section-steps");
        let table = layout::table(&view.table, page.width, page.paint, &[]);
        page.out.push_str(&table);
    }
    if let Some(closed) = view.closed {
        let note = page.words.say("search-closed", &[("rate", super::number(closed).into())]);
        page.paragraph("", Tone::Quiet, &note.text);
    }
    page.line("");
    page.host(&view.host);
    let arguments = [
        ("began", view.began.as_str().into()),
        ("version", view.version.as_str().into()),
        ("seed", view.seed.to_string().into()),
        ("end", view.end.text.as_str().into()),
    ];
    let made = page.words.say("load-made-line", &arguments);
    page.paragraph("", Tone::Quiet, &made.text);
    page.out
}
