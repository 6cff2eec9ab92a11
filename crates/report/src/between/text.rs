//! Two runs for a terminal.

use super::{BetweenView, OneRun};
use crate::text::page::Page;
use crate::text::paint::Tone;
use crate::text::{Look, layout};

/// Draws a view for a terminal; every line ends with a line break.
#[must_use]
pub fn render(view: &BetweenView, look: Look) -> String {
    let mut page = Page::new(view.language, look);
    page.side("between-first", &view.first);
    page.side("between-second", &view.second);
    page.sentences("section-warnings", Tone::Warning, &view.warnings);
    page.section("section-between");
    let tones: Vec<Tone> = view.cells.iter().map(|cell| Tone::of(Some(cell.judged))).collect();
    for cell in &view.cells {
        page.paragraph("  ", Tone::Plain, &format!("{}: {}", cell.second, cell.sentence.text));
    }
    view.rule.iter().for_each(|sentence| page.paragraph("  ", Tone::Quiet, &sentence.text));
    if !view.table.rows.is_empty() {
        page.line("");
        page.out.push_str(&layout::table(&view.table, page.width, page.paint, &tones));
        view.table.notes.iter().for_each(|note| page.paragraph("", Tone::Quiet, &note.text));
    }
    page.out
}

impl Page {
    fn side(&mut self, id: &str, runs: &[OneRun]) {
        let label = self.words.word(id);
        for run in runs {
            let facts = [run.plan.as_str(), run.id.as_str(), run.began.as_str()].join("  ");
            self.paragraph(&format!("{label} "), Tone::Strong, &facts);
        }
    }
}
