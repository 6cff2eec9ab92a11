//! The report as one HTML page: readable without scripts, nothing fetched, light or dark as the reader's system is, printable.
//!
//! Every text that comes from a plan, a server or a log passes through `Html` of `escape.rs`. Style and script stand in `web/`.

mod charts;
mod plot;

use crate::escape::Html;
use crate::language::{Catalogue, Sentence};
use crate::view::{CellView, FindingView, RowKind, Table, TrialView, View};
use stats::Verdict;
use std::fmt::Write as _;

const STYLE: &str = include_str!("../../../../web/report.css");
const SCRIPT: &str = include_str!("../../../../web/report.js");

/// Draws a view as a complete HTML document.
#[must_use]
pub fn render(view: &View) -> String {
    let page = Page { view, words: Catalogue::of(view.language) };
    let sections = [
        page.header(),
        page.warnings(),
        page.section("section-table", &page.table(&view.table, &view.cells)),
        page.section("section-comparison", &page.comparison()),
        page.section("section-contrasts", &page.contrasts()),
        page.section("section-sweep", &page.sweep()),
        page.section("section-metrics", &page.further(&view.metrics)),
        page.section("section-beside", &page.beside()),
        page.section("section-logged", &page.further(&view.logged)),
        page.section("section-budget", &page.further(&view.budget)),
        page.section("section-budget-slowest", &page.further(&view.budget_of_slowest)),
        page.section("section-diagnosis", &page.diagnoses()),
        page.section("section-recommendation", &page.recommendation()),
        page.section("section-latency", &page.latency()),
        page.section("section-trials", &page.trials()),
        page.section("section-settings", &page.settings()),
        page.section("section-trouble", &page.trouble()),
        page.section("section-plan", &page.plan()),
    ];
    format!(
        "<!DOCTYPE html>\n<html lang=\"{}\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n\
         <title>{} – webdyno</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n{}<script>\n{SCRIPT}</script>\n</body>\n</html>\n",
        view.language.tag(),
        Html(&view.run.plan),
        sections.concat()
    )
}

struct Page<'a> {
    view: &'a View,
    words: Catalogue,
}

impl Page<'_> {
    fn word(&self, id: &str) -> String {
        Html(&self.words.word(id)).to_string()
    }

    /// A section with its heading; nothing when it has no content.
    fn section(&self, id: &str, content: &str) -> String {
        if content.is_empty() {
            return String::new();
        }
        format!("<section id=\"{id}\">\n<h2>{}</h2>\n{content}\n</section>\n", self.word(id))
    }

    fn header(&self) -> String {
        let run = &self.view.run;
        let mut out = format!("<header>\n<h1>{}</h1>\n", Html(&run.plan));
        if !run.about.is_empty() {
            let _ = writeln!(out, "<p class=\"about\">{}</p>", Html(&run.about));
        }
        let began = format!("<time datetime=\"{0}\">{0}</time>", Html(&run.began));
        let placement = run.confinement.iter().fold(Html(&run.placement.text).to_string(), |text, confinement| {
            format!("{text}<br>{}", Html(&confinement.text))
        });
        let facts = [
            ("label-server", run.server.as_ref().map(|server| Html(server).to_string())),
            ("label-placement", Some(placement)),
            ("label-began", Some(began)),
            ("label-run", Some(format!("{} <span>{}</span>", Html(&run.id), Html(&run.end.text)))),
        ];
        out.push_str("<dl class=\"facts\">");
        for (label, text) in facts {
            if let Some(text) = text {
                let _ = write!(out, "<div><dt>{}</dt><dd>{text}</dd></div>", self.word(label));
            }
        }
        out.push_str("</dl>\n</header>\n");
        out
    }

    fn warnings(&self) -> String {
        if self.view.warnings.is_empty() {
            return String::new();
        }
        let heading = self.word("section-warnings");
        format!("<aside aria-label=\"{heading}\">\n<h2>{heading}</h2>\n{}</aside>\n", items(&self.view.warnings))
    }

    /// A table whose columns are those cells, or something else when there are none.
    fn table(&self, table: &Table, cells: &[CellView]) -> String {
        let corner = if cells.is_empty() { String::new() } else { self.word("label-cell") };
        let mut out = format!("<div class=\"wide\"><table>\n<thead><tr><th scope=\"col\">{corner}</th>");
        for (column, head) in table.heads.iter().enumerate() {
            let badge = cells.get(column).map(|cell| self.badge(cell)).unwrap_or_default();
            let _ = write!(out, "<th scope=\"col\">{}{badge}</th>", Html(head));
        }
        out.push_str("</tr></thead>\n<tbody>\n");
        for row in &table.rows {
            let kind = format!("{:?}", row.kind).to_ascii_lowercase();
            let _ = write!(out, "<tr class=\"{kind}\"><th scope=\"row\">{}</th>", Html(&row.label));
            for (column, figure) in row.figures.iter().enumerate() {
                let cell = cells.get(column).filter(|_| row.kind == RowKind::Verdict);
                let class = cell.map(verdict_class).unwrap_or_default();
                let _ = write!(out, "<td{class}>{}</td>", Html(figure));
            }
            out.push_str("</tr>\n");
        }
        out.push_str("</tbody></table></div>");
        for note in &table.notes {
            let _ = write!(out, "<p class=\"caption\">{}</p>", Html(&note.text));
        }
        out
    }

    /// A table beside that of the results, if there is anything in it.
    fn further(&self, table: &Table) -> String {
        if table.rows.is_empty() { String::new() } else { self.table(table, &self.view.cells) }
    }

    /// The loads beside the cells' own: tables and distributions.
    fn beside(&self) -> String {
        let mut out = String::new();
        for beside in &self.view.beside {
            let _ = write!(out, "<p>{}</p>", Html(&beside.load.text));
            for (table, cells) in beside.tables() {
                out.push_str(&self.table(table, cells));
            }
            out.push_str(&charts::latency(&beside.cells, &self.words));
            let doubts: String = beside
                .doubts()
                .map(|(cell, doubt)| format!("<li><b>{}</b>: {}</li>", Html(cell), Html(&doubt.text)))
                .collect();
            if !doubts.is_empty() {
                let _ = write!(out, "<ul class=\"sentences\">{doubts}</ul>");
            }
        }
        out
    }

    /// The distributions, and where the time of a request goes; nothing without a good answer.
    fn latency(&self) -> String {
        let mut out = charts::latency(&self.view.cells, &self.words);
        if !out.is_empty() {
            out.push_str(&self.table(&self.view.phases, &self.view.cells));
        }
        out
    }

    fn badge(&self, cell: &CellView) -> String {
        let id = match cell.role {
            model::plan::Role::Baseline => "role-baseline",
            model::plan::Role::Again => "role-again",
            model::plan::Role::Candidate => return String::new(),
        };
        format!(" <span class=\"badge\">{}</span>", self.word(id))
    }

    fn comparison(&self) -> String {
        if !self.view.contrasts.is_empty() {
            return String::new();
        }
        let margin = self.view.run.margin;
        let compared = self.view.cells.iter().map(|cell| (cell.name.as_str(), cell.comparison.as_ref()));
        let rows = compared.filter_map(|(name, comparison)| Some((name, comparison?, margin)));
        let mut out = charts::forest(self.view, &rows.collect::<Vec<_>>(), &self.words);
        if out.is_empty() {
            return out;
        }
        out.push_str("<ul class=\"sentences\">");
        for cell in &self.view.cells {
            let Some(comparison) = &cell.comparison else { continue };
            let _ = write!(out, "<li><b>{}</b>: {}", Html(&cell.name), Html(&comparison.sentence.text));
            if !comparison.warnings.is_empty() {
                out.push_str(&items(&comparison.warnings));
            }
            out.push_str("</li>");
        }
        out.push_str("</ul>");
        out.push_str(&captions(self.view.about_comparisons()));
        out
    }

    /// The plan's questions, answered, below the noise that they stand out of.
    fn contrasts(&self) -> String {
        let view = self.view;
        let again =
            view.cells.iter().filter_map(|cell| Some((cell.name.as_str(), cell.comparison.as_ref()?, view.run.margin)));
        let asked = view.contrasts.iter().filter_map(|it| Some((it.name.as_str(), it.comparison.as_ref()?, it.margin)));
        if view.contrasts.is_empty() {
            return String::new();
        }
        let mut out = charts::forest(view, &again.chain(asked).collect::<Vec<_>>(), &self.words);
        out.push_str("<ul class=\"sentences\">");
        for contrast in &view.contrasts {
            let comparison = contrast.comparison.as_ref();
            let none = self.words.word("contrast-none");
            let told = comparison.map_or(none.as_str(), |comparison| comparison.sentence.text.as_str());
            let sides = contrast.sides.iter().map(|sides| format!(" ({})", Html(&sides.text))).collect::<String>();
            let _ = write!(out, "<li><b>{}</b>{sides}: {}", Html(&contrast.name), Html(told));
            let warnings = comparison.into_iter().flat_map(|comparison| &comparison.warnings);
            let warnings: Vec<Sentence> = contrast.aliases.iter().chain(warnings).cloned().collect();
            if !warnings.is_empty() {
                out.push_str(&items(&warnings));
            }
            out.push_str("</li>");
        }
        out.push_str("</ul>");
        let design = view.design.iter().flat_map(|design| &design.sentences);
        out.push_str(&captions(design.chain(view.about_comparisons())));
        if view.answers.rows.len() > 3 {
            out.push_str(&self.table(&view.answers, &[]));
        }
        out
    }

    /// Throughput against what grows: a picture, the table, what it means.
    fn sweep(&self) -> String {
        let Some(sweep) = &self.view.sweep else { return String::new() };
        let sentences: String =
            sweep.sentences.iter().map(|sentence| format!("<li>{}</li>", Html(&sentence.text))).collect();
        let (picture, table) = (charts::sweep(sweep, &self.words), self.table(&sweep.table, &[]));
        format!("{picture}<ul class=\"sentences\">{sentences}</ul>{table}")
    }

    fn diagnoses(&self) -> String {
        let cards: String = self.view.cells.iter().map(|cell| self.card(cell)).collect();
        format!("<div class=\"cards\">{cards}</div>")
    }

    fn recommendation(&self) -> String {
        let paragraph = |(is_detail, sentence): (bool, &Sentence)| {
            let class = if is_detail { " class=\"detail\"" } else { "" };
            format!("<p{class}>{}</p>", Html(&sentence.text))
        };
        self.view.recommendation.told().map(paragraph).collect()
    }

    fn card(&self, cell: &CellView) -> String {
        let mut out = format!("<article><div class=\"who\"><h3>{}{}</h3>", Html(&cell.name), self.badge(cell));
        let _ = write!(out, "<p class=\"load\">{}</p>", Html(&cell.load.text));
        if !cell.directives.is_empty() {
            let _ = write!(out, "<pre>{}</pre>", Html(&cell.directives.join("\n")));
        }
        out.push_str("</div><div class=\"found\">");
        match (&cell.same_as_baseline, &cell.diagnosis) {
            (Some(sentence), _) => {
                let _ = write!(out, "<p class=\"limit\">{}</p>", Html(&sentence.text));
            }
            (None, None) => {
                let _ = write!(out, "<p class=\"limit\">{}</p>", self.word("no-diagnosis"));
            }
            (None, Some(diagnosis)) => {
                let _ = write!(out, "<p class=\"limit\">{}</p>", Html(&diagnosis.headline.text));
                out.push_str(&evidence(&diagnosis.primary));
                for sentence in diagnosis.primary.how_sure() {
                    let _ = write!(out, "<p class=\"caption\">{}</p>", Html(&sentence.text));
                }
                for finding in &diagnosis.contributing {
                    let _ = write!(out, "<p class=\"also\">{}</p>{}", Html(&finding.told.text), evidence(finding));
                }
                if !diagnosis.ruled_out.is_empty() {
                    let _ = write!(out, "<h4>{}</h4>", self.word("label-ruled-out"));
                    for finding in &diagnosis.ruled_out {
                        let _ = write!(out, "<p>{}</p>{}", Html(&finding.title.text), evidence(finding));
                    }
                }
            }
        }
        for told in cell.beside_limit() {
            let _ = write!(out, "<p class=\"told\">{}</p>", Html(&told.text));
        }
        if !cell.doubts.is_empty() {
            let _ = write!(out, "<div class=\"doubts\">{}</div>", items(&cell.doubts));
        }
        out.push_str("</div></article>");
        out
    }

    fn trials(&self) -> String {
        if self.view.trials.is_empty() {
            return String::new();
        }
        let mut out = format!("<p class=\"caption\">{}</p>", self.word("trials-caption"));
        for cell in &self.view.cells {
            let _ = write!(out, "<h3>{}{}</h3>", Html(&cell.name), self.badge(cell));
            self.view
                .trials
                .iter()
                .filter(|trial| trial.cell == cell.name)
                .for_each(|trial| out.push_str(&self.trial(trial)));
        }
        out
    }

    fn trial(&self, trial: &TrialView) -> String {
        let mut facts = vec![Html(&trial.outcome.text).to_string()];
        facts.extend(trial.good_per_s.map(|rate| format!("{} r/s", units::si(rate).print(rate))));
        facts.extend(trial.median_us.map(|us| units::short_duration(us as f64 * 1e3)));
        facts.extend(trial.limit.as_ref().map(|limit| Html(&limit.text).to_string()));
        if trial.typical {
            facts.push(format!("<span class=\"badge\">{}</span>", self.word("label-typical")));
        }
        let which = self.words.say("block-n", &[("block", trial.block.into())]);
        let mut out = format!(
            "<details class=\"trial\"{}><summary><b>{}</b> {}</summary>",
            if trial.typical { " open" } else { "" },
            Html(&which.text),
            facts.join(" · ")
        );
        out.push_str(&charts::panels(trial, &self.words));
        let notes: String = trial.notes.iter().map(|note| format!("<li>{}</li>", Html(note))).collect();
        if !notes.is_empty() {
            let _ = write!(out, "<h4>{}</h4><ul>{notes}</ul>", self.word("label-notes"));
        }
        if let Some(log) = &trial.log_tail {
            let _ = write!(out, "<h4>{}</h4><pre>{}</pre>", self.word("label-log"), Html(log.trim_end()));
        }
        out.push_str("</details>");
        out
    }

    fn settings(&self) -> String {
        if self.view.settings.is_empty() {
            return String::new();
        }
        let heads: String =
            self.view.cells.iter().map(|cell| format!("<th scope=\"col\">{}</th>", Html(&cell.name))).collect();
        let mut out = format!("<div class=\"wide\"><table><thead><tr><th></th>{heads}</tr></thead><tbody>");
        for setting in &self.view.settings {
            let _ = write!(out, "<tr><th scope=\"row\"><code>{}</code></th>", Html(&setting.name));
            for value in setting.shown() {
                let _ = write!(out, "<td>{}</td>", Html(value.unwrap_or_default()));
            }
            out.push_str("</tr>");
        }
        out.push_str("</tbody></table></div>");
        out
    }

    fn trouble(&self) -> String {
        let items: String =
            self.view.trouble.iter().map(|trouble| format!("<li>{}</li>", Html(&trouble.text))).collect();
        if items.is_empty() { items } else { format!("<ul>{items}</ul>") }
    }

    fn plan(&self) -> String {
        let run = &self.view.run;
        let host = &run.host;
        let line = self.words.say(
            "host-line",
            &[
                ("name", host.name.as_str().into()),
                ("cpus", host.cpus.into()),
                ("memory", units::short_bytes(host.memory_bytes).into()),
                ("swap", units::short_bytes(host.swap_bytes).into()),
                ("kernel", host.kernel.as_str().into()),
            ],
        );
        let facts = [
            ("label-host", format!("{}<br>{}", Html(&line.text), Html(&host.cpu_model))),
            ("label-version", Html(&run.version).to_string()),
            ("label-seed", run.seed.to_string()),
        ];
        let facts: String = facts
            .iter()
            .map(|(label, text)| format!("<div><dt>{}</dt><dd>{text}</dd></div>", self.word(label)))
            .collect();
        format!(
            "<dl class=\"facts\">{facts}</dl><details><summary>{}</summary><pre class=\"plan\">{}</pre></details>",
            self.word("label-plan"),
            Html(&run.plan_text)
        )
    }
}

fn captions<'a>(sentences: impl Iterator<Item = &'a Sentence>) -> String {
    sentences.map(|sentence| format!("<p class=\"caption\">{}</p>", Html(&sentence.text))).collect()
}

fn items(sentences: &[Sentence]) -> String {
    let items: String = sentences.iter().map(|sentence| format!("<li>{}</li>", Html(&sentence.text))).collect();
    format!("<ul>{items}</ul>\n")
}

/// The numbers of a finding, and what follows from it.
fn evidence(finding: &FindingView) -> String {
    let mut out = String::new();
    if let Some(sentence) = finding.new_effect() {
        let _ = write!(out, "<p class=\"leads\">{}</p>", Html(&sentence.text));
    }
    let new: Vec<_> = finding.new_evidence().collect();
    if !new.is_empty() {
        out.push_str("<dl class=\"evidence\">");
        for number in new {
            let _ = write!(out, "<div><dt>{}</dt><dd>{}</dd></div>", Html(&number.label), Html(&number.text));
        }
        out.push_str("</dl>");
    }
    if let Some(sentence) = &finding.advice {
        let _ = write!(out, "<p class=\"advice\">{}</p>", Html(&sentence.text));
    }
    out
}

fn verdict_class(cell: &CellView) -> String {
    let verdict = cell.comparison.as_ref().and_then(|comparison| comparison.judged);
    verdict.map(|verdict| format!(" class=\"{}\"", class_of(verdict))).unwrap_or_default()
}

/// The style sheet's name for a verdict.
fn class_of(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "v-better",
        Verdict::Worse => "v-worse",
        Verdict::Equivalent => "v-equivalent",
        Verdict::Inconclusive { .. } => "v-inconclusive",
    }
}
