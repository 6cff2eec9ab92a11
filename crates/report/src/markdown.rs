//! The report for a pull request or a wiki: headings, one table, lists. Renders as it should on GitHub and in plain viewers.

use crate::escape::Markdown;
use crate::language::Catalogue;
use crate::view::table::Table;
use crate::view::{FindingView, LimitView, View};

/// Draws a view as Markdown.
#[must_use]
pub fn render(view: &View) -> String {
    let mut page = Page { words: Catalogue::of(view.language), out: String::new() };
    page.head(view);
    page.list("section-warnings", view.warnings.iter().map(|warning| Markdown(&warning.text).to_string()));
    page.table(&view.table);
    page.list("section-comparison", comparisons(view).into_iter());
    page.contrasts(view);
    page.sweep(view);
    for (heading, table) in [("section-metrics", &view.metrics), ("section-logged", &view.logged)] {
        if !table.rows.is_empty() {
            page.heading(heading);
            page.table(table);
        }
    }
    page.beside(view);
    for (heading, table) in [("section-budget", &view.budget), ("section-budget-slowest", &view.budget_of_slowest)] {
        if !table.rows.is_empty() {
            page.heading(heading);
            page.table(table);
        }
    }
    page.diagnoses(view);
    page.recommendation(view);
    page.settings(view);
    page.list("section-trouble", view.trouble.iter().map(|trouble| Markdown(&trouble.text).to_string()));
    page.plan(view);
    page.out
}

struct Page {
    words: Catalogue,
    out: String,
}

impl Page {
    fn line(&mut self, text: &str) {
        self.out.push_str(text);
        self.out.push('\n');
    }

    fn heading(&mut self, id: &str) {
        let heading = format!("\n## {}\n", self.words.word(id));
        self.line(&heading);
    }

    fn list(&mut self, heading: &str, items: impl ExactSizeIterator<Item = String>) {
        if items.len() > 0 {
            self.heading(heading);
            items.for_each(|item| self.line(&format!("- {item}")));
        }
    }

    fn head(&mut self, view: &View) {
        let run = &view.run;
        self.line(&format!("# {}", Markdown(&run.plan)));
        self.line("");
        if !run.about.is_empty() {
            self.line(&format!("{}\n", Markdown(&run.about)));
        }
        let confinement = run.confinement.as_ref().map(|sentence| sentence.text.as_str());
        let facts = [
            Some(run.id.as_str()),
            Some(run.began.as_str()),
            Some(&run.end.text),
            run.server.as_deref(),
            Some(&run.placement.text),
            confinement,
        ];
        let facts: Vec<String> = facts.into_iter().flatten().map(|fact| Markdown(fact).to_string()).collect();
        self.line(&facts.join(" · "));
    }

    fn table(&mut self, table: &Table) {
        let row = |first: &str, rest: &[String]| {
            let cells: Vec<String> = std::iter::once(first)
                .chain(rest.iter().map(String::as_str))
                .map(|c| Markdown(c).to_string())
                .collect();
            format!("| {} |", cells.join(" | "))
        };
        self.line("");
        self.line(&row("", &table.heads));
        self.line(&format!("|---|{}", "---:|".repeat(table.heads.len())));
        for line in &table.rows {
            self.line(&row(line.label.trim(), &line.figures));
        }
        table.notes.iter().for_each(|note| self.line(&format!("\n{}", Markdown(&note.text))));
    }

    fn contrasts(&mut self, view: &View) {
        let none = self.words.word("contrast-none");
        let mut items = Vec::new();
        for contrast in &view.contrasts {
            let comparison = contrast.comparison.as_ref();
            let told = comparison.map_or(none.as_str(), |comparison| comparison.sentence.text.as_str());
            let sides = contrast.sides.iter().map(|sides| format!(" ({})", Markdown(&sides.text))).collect::<String>();
            items.push(format!("**{}**{sides}: {}", Markdown(&contrast.name), Markdown(told)));
            let warnings = comparison.into_iter().flat_map(|comparison| &comparison.warnings);
            items.extend(contrast.aliases.iter().chain(warnings).map(|it| format!("⚠ {}", Markdown(&it.text))));
        }
        if items.is_empty() {
            return;
        }
        let design = view.design.iter().flat_map(|design| &design.sentences);
        let told = design.chain(view.about_comparisons());
        items.extend(told.map(|sentence| Markdown(&sentence.text).to_string()));
        self.list("section-contrasts", items.into_iter());
        if view.answers.rows.len() > 3 {
            self.table(&view.answers);
        }
    }

    fn sweep(&mut self, view: &View) {
        let Some(sweep) = &view.sweep else { return };
        self.heading("section-sweep");
        sweep.sentences.iter().for_each(|sentence| self.line(&format!("- {}", Markdown(&sentence.text))));
        self.table(&sweep.table);
    }

    fn beside(&mut self, view: &View) {
        for beside in &view.beside {
            self.heading("section-beside");
            self.line(&Markdown(&beside.load.text).to_string());
            beside.tables().for_each(|(table, _)| self.table(table));
            for (cell, doubt) in beside.doubts() {
                self.line(&format!("\n⚠ **{}**: {}", Markdown(cell), Markdown(&doubt.text)));
            }
        }
    }

    fn diagnoses(&mut self, view: &View) {
        self.heading("section-diagnosis");
        for limit in &view.limits {
            self.line(&format!("- **{}**: {}", Markdown(&limit.who), Markdown(&limit.headline)));
            self.limit(limit);
        }
    }

    fn limit(&mut self, limit: &LimitView) {
        if let Some(diagnosis) = &limit.diagnosis {
            self.evidence(&diagnosis.primary, "  - ");
            for sentence in diagnosis.primary.how_sure() {
                self.line(&format!("  - {}", Markdown(&sentence.text)));
            }
            for finding in diagnosis.contributing.iter().chain(&diagnosis.ruled_out) {
                self.line(&format!("  - {}", Markdown(&finding.told.text)));
                self.evidence(finding, "    - ");
            }
        }
        limit.beside.iter().for_each(|told| self.line(&format!("  - {}", Markdown(told))));
        limit.doubts.iter().for_each(|doubt| self.line(&format!("  - ⚠ {}", Markdown(doubt))));
    }

    /// The numbers of a finding, and what follows from it.
    fn evidence(&mut self, finding: &FindingView, lead: &str) {
        let numbers: Vec<_> =
            finding.new_evidence().map(|number| format!("{} {}", number.label, number.text)).collect();
        if !numbers.is_empty() {
            let numbers = self.words.list(&numbers);
            self.line(&format!("{lead}{}", Markdown(&numbers)));
        }
        for sentence in finding.new_effect().into_iter().chain(&finding.advice) {
            self.line(&format!("{lead}{}", Markdown(&sentence.text)));
        }
    }

    fn recommendation(&mut self, view: &View) {
        let mut told = view.recommendation.told().peekable();
        if told.peek().is_none() {
            return;
        }
        self.heading("section-recommendation");
        for (is_detail, sentence) in told {
            let lead = if is_detail { "  - " } else { "- " };
            self.line(&format!("{lead}{}", Markdown(&sentence.text)));
        }
    }

    fn settings(&mut self, view: &View) {
        if view.settings.is_empty() {
            return;
        }
        self.heading("section-settings");
        let names: String = view.cells.iter().map(|cell| format!(" {} |", Markdown(&cell.name))).collect();
        self.line(&format!("| |{names}"));
        self.line(&format!("|---|{}", "---|".repeat(view.cells.len())));
        for setting in &view.settings {
            let values: String =
                setting.shown().map(|value| format!(" {} |", Markdown(value.unwrap_or_default()))).collect();
            self.line(&format!("| {} |{values}", Markdown(&setting.name)));
        }
    }

    fn plan(&mut self, view: &View) {
        let run = &view.run;
        self.heading("section-plan");
        let host = &run.host;
        let cpus = format!("{} × {}", host.cpus, host.cpu_model);
        let facts = [host.name.as_str(), cpus.as_str(), host.kernel.as_str()].map(|fact| Markdown(fact).to_string());
        let seed = self.words.word("label-seed");
        self.line(&format!("{} · webdyno {} · {seed} {}\n", facts.join(" · "), Markdown(&run.version), run.seed));
        // A fence longer than any run of backquotes in the text cannot be closed by it.
        let longest = run.plan_text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
        let fence = "`".repeat(longest.max(2) + 1);
        self.line(&format!("{fence}toml\n{}\n{fence}", run.plan_text.trim_end()));
    }
}

fn comparisons(view: &View) -> Vec<String> {
    let mut items = Vec::new();
    if !view.contrasts.is_empty() {
        return items;
    }
    for cell in &view.cells {
        let Some(comparison) = &cell.comparison else { continue };
        items.push(format!("**{}**: {}", Markdown(&cell.name), Markdown(&comparison.sentence.text)));
        items.extend(comparison.warnings.iter().map(|warning| format!("⚠ {}", Markdown(&warning.text))));
    }
    items.extend(view.about_comparisons().map(|sentence| Markdown(&sentence.text).to_string()));
    items
}
