//! A text with reports of ab in it: where each begins and ends, and what its author says of them.

use crate::claims;
use crate::clean::plain;
use crate::command::Command;
use crate::field::Field;
use crate::line::{self, Found, Line};
use crate::number::Number;
use crate::report::{Figure, Report};
use crate::slip::Slip;

/// What a text holds.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Document {
    /// Its reports, in order.
    pub reports: Vec<Report>,
    /// Rates that its author states in words like ab's.
    pub stated: Vec<Stated>,
    /// What its author says and the figures do not give.
    pub claims: Vec<Slip>,
    /// First lines of what begins like a report and lacks what makes one.
    pub fragments: Vec<usize>,
}

/// A rate outside every report, such as the mean of two.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stated {
    /// Line it stands in, from 1.
    pub line: usize,
    /// Requests per second.
    pub rate: Number,
}

/// Why a text is none of ab's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAb {
    /// Nothing stands in it that could be doubted.
    #[error("no report of ab stands in it; give what ab printed")]
    Empty,
    /// Nothing of ab stands in it.
    #[error("line {line}: `{text}` is nothing that ab prints, and no report of ab follows")]
    Line {
        /// The first line that was not understood, from 1.
        line: usize,
        /// How it begins.
        text: String,
    },
    /// A report begins in it, and is none.
    #[error(
        "line {line}: this begins like a report of ab, but lacks `Complete requests:`, or both `Time taken for tests:` and `Requests per second:`"
    )]
    Fragment {
        /// Where it begins, from 1.
        line: usize,
    },
}

/// So many lines of something else in a row end a report.
const STRANGE_LINES: usize = 5;

/// What of a line is repeated to the user.
const SHOWN: usize = 60;

/// Reads a text.
///
/// # Errors
/// When no report of ab stands in it.
pub fn read(text: &str) -> Result<Document, NotAb> {
    let mut reader = Reader::default();
    for (index, line) in text.lines().enumerate() {
        reader.line(&plain(line), index + 1);
    }
    reader.end()
}

#[derive(Default)]
struct Reader {
    document: Document,
    report: Report,
    command: Option<Command>,
    /// Strange lines since the report's last figure: how many, and the first.
    strange: (usize, usize),
    not_understood: Option<(usize, String)>,
    /// The last row of rates in a table of the author's, and its line.
    rates: Option<(usize, Vec<Number>)>,
    /// Every line outside reports that somebody wrote, for what it claims.
    prose: Vec<(usize, String)>,
}

impl Reader {
    fn line(&mut self, text: &str, number: usize) {
        match line::read(text, number) {
            Line::Blank | Line::Known => {}
            Line::Begins(version) => {
                // The banner comes first, the line about the host second; both before any other figure.
                if version.is_some() || self.report.figures.iter().any(|figure| figure.field != Field::Version) {
                    self.close();
                }
                self.report.figures.extend(version.map(|found| found.at(number)));
            }
            Line::Command(command) => {
                self.close();
                self.command = Some(command);
            }
            Line::Figures(found) => self.figures(found, text, number),
            Line::Stated(rate) => {
                self.close();
                self.document.stated.push(Stated { line: number, rate });
            }
            Line::Row(field, numbers) => self.row(field, numbers, number),
            Line::Other => self.strange(text, number),
        }
    }

    /// A row of the author's own table. Rates and times below them must be those of one test each.
    fn row(&mut self, field: Field, numbers: Vec<Number>, number: usize) {
        self.close();
        if field == Field::Rate {
            self.document.stated.extend(numbers.iter().map(|&rate| Stated { line: number, rate }));
            self.rates = Some((number, numbers));
            return;
        }
        let Some((line, rates)) = self.rates.take().filter(|(line, _)| number - line <= STRANGE_LINES) else { return };
        let reports = self.document.reports.iter();
        let connections: Vec<f64> =
            reports.filter_map(|report| report.value(Field::Concurrency)).chain([1.0]).collect();
        let told = claims::rates_and_times(&rates, &numbers, &connections);
        self.document.claims.extend(told.into_iter().map(|what| Slip { line, what }));
    }

    fn figures(&mut self, found: Vec<Found>, text: &str, number: usize) {
        let belongs = |field: Field| matches!(field, Field::Percentile(_) | Field::SentRate | Field::TotalRate);
        if self.report.figures.is_empty() && found.iter().any(|found| belongs(found.field)) {
            return self.strange(text, number);
        }
        let again = |found: &Found| found.field == Field::Software || self.report.figure(found.field).is_some();
        if found.iter().any(again) && self.report.figures.iter().any(|figure| figure.field != Field::Version) {
            self.close();
        }
        let (strange, first) = std::mem::take(&mut self.strange);
        if strange > 0 && !self.report.figures.is_empty() {
            self.report.skipped += strange;
            self.report.first_skipped.get_or_insert(first);
        }
        self.report.figures.extend(found.into_iter().map(|found| found.at(number)));
    }

    fn strange(&mut self, text: &str, number: usize) {
        let (count, _) = &mut self.strange;
        *count += 1;
        if *count == 1 {
            self.strange.1 = number;
        }
        if self.strange.0 >= STRANGE_LINES {
            self.close();
        }
        if self.not_understood.is_none() {
            self.not_understood = Some((number, text.trim().chars().take(SHOWN).collect()));
        }
        self.prose.push((number, text.to_owned()));
    }

    /// The report so far is one, or a fragment of one.
    fn close(&mut self) {
        self.strange = (0, 0);
        let mut report = std::mem::take(&mut self.report);
        let Some(first) = report.figures.first().map(|figure| figure.line) else { return };
        let has = |field| report.number(field).is_some();
        if !has(Field::Complete) || !(has(Field::Seconds) || has(Field::Rate)) {
            self.document.fragments.push(first);
            return;
        }
        report.command = self.command.clone().filter(|command| agrees(command, &report));
        self.document.reports.push(report);
    }

    fn end(mut self) -> Result<Document, NotAb> {
        self.close();
        if !self.document.reports.is_empty() {
            let claims = claims::of(&self.document, &self.prose);
            self.document.claims.extend(claims);
            return Ok(self.document);
        }
        match (self.document.fragments.first(), self.not_understood) {
            (Some(&line), Some((strange, _))) if line < strange => Err(NotAb::Fragment { line }),
            (_, Some((line, text))) => Err(NotAb::Line { line, text }),
            (Some(&line), None) => Err(NotAb::Fragment { line }),
            (None, None) => Err(NotAb::Empty),
        }
    }
}

impl Found {
    fn at(self, line: usize) -> Figure {
        Figure { field: self.field, line, written: self.written, number: self.number, glued: self.glued }
    }
}

/// Whether a command can have made a report.
fn agrees(command: &Command, report: &Report) -> bool {
    let same = |asked: Option<u64>, field| {
        let printed = report.value(field);
        asked.is_none() || printed.is_none() || asked.map(|asked| asked as f64) == printed
    };
    let concurrency = same(Some(command.concurrency), Field::Concurrency);
    concurrency && (command.timed || same(command.requests, Field::Complete))
}
