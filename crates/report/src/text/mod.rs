//! The report for a terminal: the table, the comparisons in words, what limited each cell, and what to doubt.
//!
//! Widths are those of a terminal, where most Japanese characters take two columns. The table has the cells as columns, as the
//! first document's does, when that fits the width, and as rows otherwise.

mod layout;
mod paint;

use crate::escape::plain;
use crate::language::{Catalogue, Sentence};
use crate::view::{CellView, FindingView, View};
use paint::{Paint, Tone};
use std::collections::BTreeMap;

/// How a terminal is to be written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Columns.
    pub width: usize,
    /// Whether letters may be coloured.
    pub colour: Colour,
}

/// Whether letters are coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// With ANSI sequences.
    Ansi,
    /// Not at all.
    None,
}

/// Draws a view for a terminal; every line ends with a line break.
#[must_use]
pub fn render(view: &View, look: Look) -> String {
    let mut page = Page {
        width: look.width.max(40),
        paint: Paint { colour: look.colour },
        words: Catalogue::of(view.language),
        out: String::new(),
    };
    page.head(view);
    page.sentences("section-warnings", Tone::Warning, &view.warnings);
    page.table(view);
    page.comparisons(view);
    page.diagnoses(view);
    page.settings(view);
    page.trouble(view);
    page.footer(view);
    page.out
}

/// The text so far, and how to add to it.
struct Page {
    width: usize,
    paint: Paint,
    words: Catalogue,
    out: String,
}

impl Page {
    fn line(&mut self, text: &str) {
        self.out.push_str(text.trim_end());
        self.out.push('\n');
    }

    /// A paragraph; its first line begins with `lead`, the others are indented by as much.
    fn paragraph(&mut self, lead: &str, tone: Tone, text: &str) {
        let indent = layout::width(lead);
        for (index, line) in layout::wrap(&plain(text), self.width.saturating_sub(indent)).iter().enumerate() {
            let lead = if index == 0 { lead.to_owned() } else { " ".repeat(indent) };
            let line = self.paint.tone(tone, line);
            self.line(&format!("{lead}{line}"));
        }
    }

    fn section(&mut self, id: &str) {
        let title = self.words.word(id);
        let title = self.paint.tone(Tone::Strong, &title);
        self.line("");
        self.line(&title);
    }

    fn sentences(&mut self, section: &str, tone: Tone, sentences: &[Sentence]) {
        if sentences.is_empty() {
            return;
        }
        self.section(section);
        sentences.iter().for_each(|sentence| self.paragraph("  ! ", tone, &sentence.text));
    }

    fn head(&mut self, view: &View) {
        let run = &view.run;
        self.paragraph("", Tone::Strong, &format!("{}  {}", run.plan, run.id));
        if !run.about.is_empty() {
            self.paragraph("", Tone::Plain, &run.about);
        }
        let confinement = run.confinement.as_ref().map(|sentence| sentence.text.as_str());
        let facts = [run.server.as_deref(), Some(run.placement.text.as_str()), confinement];
        self.paragraph("", Tone::Quiet, &facts.into_iter().flatten().collect::<Vec<_>>().join(" · "));
    }

    fn table(&mut self, view: &View) {
        self.line("");
        let verdicts: Vec<Tone> = view.cells.iter().map(verdict_tone).collect();
        let table = layout::table(&view.table, self.width, self.paint, &verdicts);
        self.out.push_str(&table);
        view.table.notes.iter().for_each(|note| self.paragraph("", Tone::Quiet, &note.text));
    }

    fn comparisons(&mut self, view: &View) {
        let compared = || view.cells.iter().filter_map(|cell| Some((cell, cell.comparison.as_ref()?)));
        if compared().next().is_none() {
            return;
        }
        self.section("section-comparison");
        for (cell, comparison) in compared() {
            self.paragraph("  ", Tone::Plain, &format!("{}: {}", cell.name, comparison.sentence.text));
            comparison.warnings.iter().for_each(|warning| self.paragraph("    ! ", Tone::Warning, &warning.text));
        }
        if let Some(noise) = &view.noise_floor {
            self.paragraph("  ", Tone::Quiet, &noise.text);
        }
    }

    fn diagnoses(&mut self, view: &View) {
        self.section("section-diagnosis");
        for cell in &view.cells {
            self.diagnosis(cell);
        }
    }

    fn diagnosis(&mut self, cell: &CellView) {
        let Some(diagnosis) = &cell.diagnosis else {
            let nothing = self.words.word("no-diagnosis");
            self.paragraph("  ", Tone::Plain, &format!("{}: {nothing}", cell.name));
            return;
        };
        if let Some(sentence) = &cell.same_as_baseline {
            self.paragraph("  ", Tone::Plain, &format!("{}: {}", cell.name, sentence.text));
        } else {
            self.paragraph("  ", Tone::Plain, &format!("{}: {}", cell.name, diagnosis.headline.text));
            self.evidence(&diagnosis.primary);
            for (lead, findings) in [("    + ", &diagnosis.contributing), ("    - ", &diagnosis.ruled_out)] {
                for finding in findings {
                    self.paragraph(lead, Tone::Plain, &finding.told.text);
                    self.evidence(finding);
                }
            }
        }
        cell.doubts.iter().for_each(|doubt| self.paragraph("    ! ", Tone::Warning, &doubt.text));
    }

    /// The numbers of a finding, and what follows from it.
    fn evidence(&mut self, finding: &FindingView) {
        let numbers: Vec<_> =
            finding.new_evidence().map(|number| format!("{} {}", number.label, number.text)).collect();
        if !numbers.is_empty() {
            self.paragraph("      ", Tone::Quiet, &numbers.join(&self.words.word("list-separator")));
        }
        for sentence in finding.new_effect().into_iter().chain(&finding.advice) {
            self.paragraph("      ", Tone::Plain, &sentence.text);
        }
    }

    /// Settings by value, each with the cells that have it.
    fn settings(&mut self, view: &View) {
        if view.settings.is_empty() {
            return;
        }
        self.section("section-settings");
        for setting in &view.settings {
            let mut by_value: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
            for (value, cell) in setting.values.iter().zip(&view.cells) {
                by_value.entry(value.as_deref().unwrap_or("–")).or_default().push(&cell.name);
            }
            for (value, cells) in by_value {
                self.paragraph("  ", Tone::Plain, &format!("{} {value}: {}", setting.name, cells.join("; ")));
            }
        }
    }

    fn trouble(&mut self, view: &View) {
        if view.trouble.is_empty() {
            return;
        }
        self.section("section-trouble");
        for trouble in &view.trouble {
            let tone = if trouble.serious { Tone::Warning } else { Tone::Quiet };
            self.paragraph("  ", tone, &trouble.text);
        }
    }

    fn footer(&mut self, view: &View) {
        let run = &view.run;
        let host = self.words.say(
            "host-line",
            &[
                ("name", run.host.name.as_str().into()),
                ("cpus", run.host.cpus.into()),
                ("memory", units::short_bytes(run.host.memory_bytes).into()),
                ("swap", units::short_bytes(run.host.swap_bytes).into()),
                ("kernel", run.host.kernel.as_str().into()),
            ],
        );
        let made = self.words.say(
            "made-line",
            &[
                ("began", run.began.as_str().into()),
                ("version", run.version.as_str().into()),
                ("blocks", run.blocks.into()),
                ("seed", run.seed.to_string().into()),
                ("end", run.end.text.as_str().into()),
            ],
        );
        self.line("");
        self.paragraph("", Tone::Quiet, &host.text);
        self.paragraph("", Tone::Quiet, &made.text);
    }
}

fn verdict_tone(cell: &CellView) -> Tone {
    match cell.comparison.as_ref().map(|comparison| comparison.verdict.id.as_str()) {
        Some("verdict-better") => Tone::Good,
        Some("verdict-worse") => Tone::Bad,
        _ => Tone::Quiet,
    }
}
