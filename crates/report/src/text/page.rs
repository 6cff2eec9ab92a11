//! A text that grows downwards in a given number of columns: lines, paragraphs, sections.

use super::Look;
use super::layout;
use super::paint::{Paint, Tone};
use crate::escape::plain;
use crate::language::{Catalogue, Language, Sentence};
use crate::view::{DiagnosisView, FindingView, HostView, TroubleView};

/// The narrowest page; what is narrower cannot be read.
const NARROWEST: usize = 40;

/// The text so far, and how to add to it.
pub(crate) struct Page {
    pub(crate) width: usize,
    pub(crate) paint: Paint,
    pub(crate) words: Catalogue,
    pub(crate) out: String,
}

impl Page {
    pub(crate) fn new(language: Language, Look { width, colour }: Look) -> Page {
        let (paint, words) = (Paint { colour }, Catalogue::of(language));
        Page { width: width.max(NARROWEST), paint, words, out: String::new() }
    }

    pub(crate) fn line(&mut self, text: &str) {
        self.out.push_str(text.trim_end());
        self.out.push('\n');
    }

    /// A paragraph; its first line begins with `lead`, the others are indented by as much.
    pub(crate) fn paragraph(&mut self, lead: &str, tone: Tone, text: &str) {
        let indent = layout::width(lead);
        for (index, line) in layout::wrap(&plain(text), self.width.saturating_sub(indent)).iter().enumerate() {
            let lead = if index == 0 { lead.to_owned() } else { " ".repeat(indent) };
            let line = self.paint.tone(tone, line);
            self.line(&format!("{lead}{line}"));
        }
    }

    pub(crate) fn section(&mut self, id: &str) {
        let title = self.words.word(id);
        let title = self.paint.tone(Tone::Strong, &title);
        self.line("");
        self.line(&title);
    }

    pub(crate) fn sentences(&mut self, section: &str, tone: Tone, sentences: &[Sentence]) {
        if sentences.is_empty() {
            return;
        }
        self.section(section);
        sentences.iter().for_each(|sentence| self.paragraph("  ! ", tone, &sentence.text));
    }

    /// The findings of a diagnosis below its headline.
    pub(crate) fn findings(&mut self, diagnosis: &DiagnosisView) {
        self.evidence(&diagnosis.primary);
        for sentence in diagnosis.primary.how_sure() {
            self.paragraph("      ", Tone::Quiet, &sentence.text);
        }
        for (lead, findings) in [("    + ", &diagnosis.contributing), ("    - ", &diagnosis.ruled_out)] {
            for finding in findings {
                self.paragraph(lead, Tone::Plain, &finding.told.text);
                self.evidence(finding);
            }
        }
    }

    /// The numbers of a finding, and what follows from it.
    fn evidence(&mut self, finding: &FindingView) {
        let numbers: Vec<_> =
            finding.new_evidence().map(|number| format!("{} {}", number.label, number.text)).collect();
        if !numbers.is_empty() {
            self.paragraph("      ", Tone::Quiet, &self.words.list(&numbers));
        }
        for sentence in finding.new_effect().into_iter().chain(&finding.advice) {
            self.paragraph("      ", Tone::Plain, &sentence.text);
        }
    }

    pub(crate) fn trouble(&mut self, trouble: &[TroubleView]) {
        if trouble.is_empty() {
            return;
        }
        self.section("section-trouble");
        for trouble in trouble {
            let tone = if trouble.serious { Tone::Warning } else { Tone::Quiet };
            self.paragraph("  ", tone, &trouble.text);
        }
    }

    pub(crate) fn host(&mut self, host: &HostView) {
        let host = self.words.say(
            "host-line",
            &[
                ("name", host.name.as_str().into()),
                ("cpus", host.cpus.into()),
                ("memory", units::short_bytes(host.memory_bytes).into()),
                ("swap", units::short_bytes(host.swap_bytes).into()),
                ("kernel", host.kernel.as_str().into()),
            ],
        );
        self.paragraph("", Tone::Quiet, &host.text);
    }
}
