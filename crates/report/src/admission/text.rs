//! A server's admission for a terminal.

use super::AdmissionView;
use crate::text::page::Page;
use crate::text::paint::Tone;
use crate::text::{Look, layout};

/// Draws a view for a terminal; every line ends with a line break.
#[must_use]
pub fn render(view: &AdmissionView, look: Look) -> String {
    let mut page = Page::new(view.language, look);
    page.paragraph("", Tone::Strong, &view.server.text);
    page.paragraph("", Tone::Quiet, &view.file.text);
    view.alarms.iter().for_each(|alarm| page.paragraph("! ", Tone::Warning, &alarm.text));
    view.room.iter().for_each(|sentence| page.paragraph("", Tone::Plain, &sentence.text));
    page.line("");
    if !view.table.heads.is_empty() {
        let table = layout::table(&view.table, page.width, page.paint, &[]);
        page.out.push_str(&table);
    }
    view.table.notes.iter().for_each(|note| page.paragraph("", Tone::Quiet, &note.text));
    if !view.entries.is_empty() {
        page.section("admission-entries");
        view.entries.iter().for_each(|entry| page.paragraph("  ", Tone::Plain, &entry.text));
    }
    page.out
}
