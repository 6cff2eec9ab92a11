//! An import for a terminal: the reports, how far the groups are apart, and what does not add up.

use super::{ImportView, SlipView};
use crate::text::page::Page;
use crate::text::paint::Tone;
use crate::text::{Look, layout};
use abtext::Weight;

/// Draws a view for a terminal; every line ends with a line break.
#[must_use]
pub fn render(view: &ImportView, look: Look) -> String {
    let mut page = Page::new(view.language, look);
    page.paragraph("", Tone::Strong, &format!("ab  {}", view.id));
    page.paragraph("", Tone::Plain, &view.about.text);
    page.line("");
    let table = layout::table(&view.table, page.width, page.paint, &[]);
    page.out.push_str(&table);
    view.table.notes.iter().for_each(|note| page.paragraph("", Tone::Quiet, &note.text));
    page.origins(view);
    page.compared(view);
    page.slips("section-wrong", Weight::Wrong, view);
    page.slips("section-doubtful", Weight::Doubt, view);
    page.slips("section-notes", Weight::Note, view);
    page.line("");
    let made = [("taken", view.taken.as_str().into()), ("version", view.version.as_str().into())];
    let made = page.words.say("import-made-line", &made);
    page.paragraph("", Tone::Quiet, &made.text);
    page.out
}

impl Page {
    /// Where each report stands and who wrote it.
    fn origins(&mut self, view: &ImportView) {
        self.section("section-origins");
        for report in view.groups.iter().flat_map(|group| &group.reports) {
            let (first, last) = (report.report.first_line(), report.report.last_line());
            let place = format!("{}: {}:{first}-{last}", report.name, view.short(&report.source));
            let command = report.report.command.as_ref().map(|command| command.written.as_str());
            let parts: Vec<&str> = [place.as_str(), report.family.text.as_str()].into_iter().chain(command).collect();
            self.paragraph("  ", Tone::Quiet, &parts.join(" · "));
        }
    }

    fn compared(&mut self, view: &ImportView) {
        if view.compared.is_empty() {
            return;
        }
        self.section("section-comparison");
        for compared in &view.compared {
            self.paragraph("  ", Tone::Plain, &compared.sentence.text);
            compared.worth.iter().for_each(|sentence| self.paragraph("    ", Tone::Warning, &sentence.text));
        }
        view.limits.iter().for_each(|sentence| self.paragraph("  ! ", Tone::Warning, &sentence.text));
    }

    fn slips(&mut self, section: &str, weight: Weight, view: &ImportView) {
        let of_weight: Vec<&SlipView> = view.slips.iter().filter(|slip| slip.weight == weight).collect();
        if of_weight.is_empty() {
            return;
        }
        self.section(section);
        let tone = if weight == Weight::Note { Tone::Quiet } else { Tone::Warning };
        for slip in of_weight {
            self.paragraph("  ", tone, &format!("{}:{}: {}", view.short(&slip.source), slip.line, slip.sentence.text));
        }
    }
}
