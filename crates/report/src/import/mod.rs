//! What ab printed elsewhere, as `webdyno import` shows it: its figures side by side, what does not add up, and how far the groups
//! are apart, in words that claim no more than the runs support.
//!
//! [`ImportView::of`] reads the stored texts anew each time. `text` draws it for a terminal, `json` for programs.

mod compared;
pub mod json;
mod slips;
mod table;
pub mod text;

use crate::language::{Catalogue, Language, Sentence};
use crate::view::{Table, run};
use abtext::{Document, Family, Report, Weight};
use model::import::{Import, Pick, Source};

pub use compared::ComparedView;

/// An import, read and worded.
#[derive(Debug, Clone)]
pub struct ImportView {
    /// The language of every sentence in it.
    pub language: Language,
    /// Identifier in the store.
    pub id: String,
    /// When it was taken in, UTC.
    pub taken: String,
    /// Version of webdyno that took it in.
    pub version: String,
    /// What must be known before anything else.
    pub about: Sentence,
    /// The texts' names.
    pub sources: Vec<String>,
    /// The groups, the baseline first.
    pub groups: Vec<GroupView>,
    /// The reports, printed.
    pub table: Table,
    /// Every other group against the first.
    pub compared: Vec<ComparedView>,
    /// What holds for all comparisons.
    pub limits: Vec<Sentence>,
    /// What does not add up and what must be known, the worst first.
    pub slips: Vec<SlipView>,
}

/// Runs of one setting.
#[derive(Debug, Clone)]
pub struct GroupView {
    /// What the user calls it.
    pub name: String,
    /// Its reports.
    pub reports: Vec<ReportView>,
}

/// One report.
#[derive(Debug, Clone)]
pub struct ReportView {
    /// Group, and number where it has several.
    pub name: String,
    /// The text it stands in.
    pub source: String,
    /// What was read.
    pub report: Report,
    /// Which ab wrote it.
    pub family: Sentence,
}

/// One thing to know, and where it stands.
#[derive(Debug, Clone)]
pub struct SlipView {
    /// The text.
    pub source: String,
    /// Its line.
    pub line: usize,
    /// How much it weighs.
    pub weight: Weight,
    /// In words.
    pub sentence: Sentence,
}

impl ImportView {
    /// A text's name without its folders, when no other is called so.
    #[must_use]
    pub fn short<'a>(&self, source: &'a str) -> &'a str {
        let last = |source: &'a str| source.rsplit('/').next().unwrap_or(source);
        let others = self.sources.iter().filter(|other| other.as_str() != source);
        let unique =
            others.filter(|other| other.ends_with(&format!("/{}", last(source))) || *other == last(source)).count()
                == 0;
        if unique { last(source) } else { source }
    }

    /// Reads an import again and words what is found.
    #[must_use]
    pub fn of(import: &Import, language: Language) -> ImportView {
        let words = Catalogue::of(language);
        let read = |source: &Source| abtext::read(&source.text).unwrap_or_default();
        let documents: Vec<Document> = import.sources.iter().map(read).collect();
        let mut lost = Vec::new();
        let groups: Vec<GroupView> =
            import.groups.iter().map(|group| group_view(group, import, &documents, &words, &mut lost)).collect();
        let compared = compared::against_first(&groups, &words);
        let reports = groups.iter().map(|group| group.reports.len()).sum::<usize>();
        ImportView {
            language,
            id: import.id.clone(),
            taken: run::began(import.anchor.wall_ns),
            version: import.version.clone(),
            sources: import.sources.iter().map(|source| source.name.clone()).collect(),
            about: words.say("import-about", &[("n", reports.into())]),
            table: table::of(&groups, &words),
            limits: compared::limits(&compared, &words),
            slips: slips::of(import, &documents, &groups, lost, &words),
            compared,
            groups,
        }
    }
}

fn group_view(
    group: &model::import::Group,
    import: &Import,
    documents: &[Document],
    words: &Catalogue,
    lost: &mut Vec<SlipView>,
) -> GroupView {
    let mut reports = Vec::new();
    for (index, pick) in group.picks.iter().enumerate() {
        let source = import.sources.get(pick.source).map_or_else(String::new, |source| source.name.clone());
        let name = if group.picks.len() == 1 { group.name.clone() } else { format!("{} {}", group.name, index + 1) };
        match find(documents, *pick) {
            Some(report) => {
                reports.push(ReportView { name, source, family: family(report, words), report: report.clone() });
            }
            None => {
                let sentence = words.say("import-lost", &[]);
                lost.push(SlipView { source, line: pick.line, weight: Weight::Wrong, sentence });
            }
        }
    }
    GroupView { name: group.name.clone(), reports }
}

/// The report that a line belongs to.
fn find(documents: &[Document], pick: Pick) -> Option<&Report> {
    let holds = |report: &&Report| (report.first_line()..=report.last_line()).contains(&pick.line);
    documents.get(pick.source)?.reports.iter().find(holds)
}

fn family(report: &Report, words: &Catalogue) -> Sentence {
    let id = match report.family() {
        Some(Family::Microseconds) => "import-family-microseconds",
        Some(Family::Milliseconds) => "import-family-milliseconds",
        Some(Family::Today) => "import-family-today",
        Some(Family::Trunk) => "import-family-trunk",
        None => "import-family-none",
    };
    words.say(id, &[])
}

/// A number with as many digits as it needs, at most `decimals` behind the point.
fn number(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}
