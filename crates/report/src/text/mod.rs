//! The report for a terminal: the table, the comparisons in words, what limited each cell, and what to doubt.
//!
//! Widths are those of a terminal, where most Japanese characters take two columns. The table has the cells as columns, as the
//! first document's does, when that fits the width; as rows when that does; else each has some lines of its own.

pub(crate) mod layout;
pub(crate) mod page;
pub(crate) mod paint;

use crate::view::{ComparisonView, ContrastView, Table, View};
use page::Page;
use paint::Tone;
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
    let mut page = Page::new(view.language, look);
    page.head(view);
    page.sentences("section-warnings", Tone::Warning, &view.warnings);
    page.table(view);
    page.comparisons(view);
    page.contrasts(view);
    page.sweep(view);
    page.further("section-metrics", &view.metrics);
    page.beside(view);
    page.further("section-logged", &view.logged);
    page.further("section-budget", &view.budget);
    page.further("section-budget-slowest", &view.budget_of_slowest);
    page.diagnoses(view);
    page.settings(view);
    page.trouble(&view.trouble);
    page.recommendation(view);
    page.footer(view);
    page.out
}

impl Page {
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
        let verdicts: Vec<Tone> = view.cells.iter().map(|it| tone(it.comparison.as_ref())).collect();
        let table = layout::table(&view.table, self.width, self.paint, &verdicts);
        self.out.push_str(&table);
        view.table.notes.iter().for_each(|note| self.paragraph("", Tone::Quiet, &note.text));
    }

    fn comparisons(&mut self, view: &View) {
        let compared = || view.cells.iter().filter_map(|cell| Some((cell, cell.comparison.as_ref()?)));
        // Where the plan asks by name, the only cell compared is the A/A cell, and its sentence is below.
        if compared().next().is_none() || !view.contrasts.is_empty() {
            return;
        }
        self.section("section-comparison");
        for (cell, comparison) in compared() {
            self.paragraph("  ", Tone::Plain, &format!("{}: {}", cell.name, comparison.sentence.text));
            comparison.warnings.iter().for_each(|warning| self.paragraph("    ! ", Tone::Warning, &warning.text));
        }
        self.judging(view);
    }

    fn judging(&mut self, view: &View) {
        for sentence in view.about_comparisons() {
            self.paragraph("  ", Tone::Quiet, &sentence.text);
        }
    }

    /// The plan's questions, answered, and what its design cannot tell apart.
    fn contrasts(&mut self, view: &View) {
        if view.contrasts.is_empty() {
            return;
        }
        self.section("section-contrasts");
        for contrast in &view.contrasts {
            let comparison = contrast.comparison.as_ref();
            let none = self.words.word("contrast-none");
            let told = comparison.map_or(none.as_str(), |comparison| comparison.sentence.text.as_str());
            self.paragraph("  ", Tone::Plain, &format!("{}: {told}", self.who(contrast)));
            let warnings = comparison.into_iter().flat_map(|comparison| &comparison.warnings);
            for warning in contrast.aliases.iter().chain(warnings) {
                self.paragraph("    ! ", Tone::Warning, &warning.text);
            }
        }
        for sentence in view.design.iter().flat_map(|design| &design.sentences) {
            self.paragraph("  ", Tone::Quiet, &sentence.text);
        }
        self.judging(view);
        if view.answers.rows.len() > 3 {
            self.line("");
            let verdicts: Vec<Tone> = view.contrasts.iter().map(|it| tone(it.comparison.as_ref())).collect();
            self.out.push_str(&layout::table(&view.answers, self.width, self.paint, &verdicts));
            view.answers.notes.iter().for_each(|note| self.paragraph("", Tone::Quiet, &note.text));
        }
    }

    fn who(&self, contrast: &ContrastView) -> String {
        match &contrast.sides {
            None => contrast.name.clone(),
            Some(sides) => {
                let arguments = [("text", contrast.name.as_str().into()), ("detail", sides.text.as_str().into())];
                self.words.say("with-detail", &arguments).text
            }
        }
    }

    /// Throughput against what grows, and the law of it.
    fn sweep(&mut self, view: &View) {
        let Some(sweep) = &view.sweep else { return };
        self.section("section-sweep");
        self.out.push_str(&layout::table(&sweep.table, self.width, self.paint, &[]));
        sweep.sentences.iter().for_each(|sentence| self.paragraph("  ", Tone::Plain, &sentence.text));
        sweep.table.notes.iter().for_each(|note| self.paragraph("", Tone::Quiet, &note.text));
    }

    /// A table beside that of the results, if there is anything in it.
    fn further(&mut self, heading: &str, table: &Table) {
        if table.rows.is_empty() {
            return;
        }
        self.section(heading);
        self.out.push_str(&layout::table(table, self.width, self.paint, &[]));
        table.notes.iter().for_each(|note| self.paragraph("", Tone::Quiet, &note.text));
    }

    /// The loads beside the cells' own.
    fn beside(&mut self, view: &View) {
        for beside in &view.beside {
            self.section("section-beside");
            self.paragraph("  ", Tone::Plain, &beside.load.text);
            for (table, _) in beside.tables() {
                self.line("");
                self.out.push_str(&layout::table(table, self.width, self.paint, &[]));
            }
            for (cell, doubt) in beside.doubts() {
                self.paragraph("    ! ", Tone::Warning, &format!("{cell}: {}", doubt.text));
            }
        }
    }

    fn diagnoses(&mut self, view: &View) {
        self.section("section-diagnosis");
        for limit in &view.limits {
            self.paragraph("  ", Tone::Plain, &format!("{}: {}", limit.who, limit.headline));
            limit.diagnosis.iter().for_each(|diagnosis| self.findings(diagnosis));
            limit.beside.iter().for_each(|told| self.paragraph("    ", Tone::Quiet, told));
            limit.doubts.iter().for_each(|doubt| self.paragraph("    ! ", Tone::Warning, doubt));
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
            for (value, cell) in setting.shown().zip(&view.cells) {
                if let Some(value) = value {
                    by_value.entry(value).or_default().push(&cell.name);
                }
            }
            for (value, cells) in by_value {
                self.paragraph("  ", Tone::Plain, &format!("{} {value}: {}", setting.name, cells.join("; ")));
            }
        }
    }

    /// What follows, where the reader of a terminal looks first: at the end.
    fn recommendation(&mut self, view: &View) {
        let mut told = view.recommendation.told().peekable();
        if told.peek().is_none() {
            return;
        }
        self.section("section-recommendation");
        for (is_detail, sentence) in told {
            self.paragraph(if is_detail { "    " } else { "  " }, Tone::Plain, &sentence.text);
        }
    }

    fn footer(&mut self, view: &View) {
        let run = &view.run;
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
        self.host(&run.host);
        self.paragraph("", Tone::Quiet, &made.text);
    }
}

fn tone(comparison: Option<&ComparisonView>) -> Tone {
    Tone::of(comparison.and_then(|comparison| comparison.judged))
}
