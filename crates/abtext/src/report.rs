//! One report of ab: its figures, where they stood, and what follows from them without any doubt.

use crate::command::Command;
use crate::field::{Field, Row, Stat};
use crate::number::{Number, Range};
use crate::slip::{self, Slip};

/// One report.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Report {
    /// Its figures, in the order of the text.
    pub figures: Vec<Figure>,
    /// The command that made it, where the text shows one that agrees with it.
    pub command: Option<Command>,
    /// Lines between its first and its last that are none of ab's.
    pub skipped: usize,
    /// The first of them.
    pub first_skipped: Option<usize>,
}

/// One figure, as it was written.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// Which.
    pub field: Field,
    /// Line it stands in, from 1.
    pub line: usize,
    /// Its digits or its words.
    pub written: String,
    /// The number, when it is one.
    pub number: Option<Number>,
    /// Whether it had to be cut out of two figures without a blank between them.
    pub glued: bool,
}

/// Which ab wrote a report, as far as its layout tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// 2.0.40 to Apache 2.2: microseconds behind the point, without their zeros; whole KiB in the transfer rate.
    Microseconds,
    /// 2.3 of Apache 2.2 and the first 2.4: three digits behind the point, `Write errors:` always.
    Milliseconds,
    /// 2.3 of today's Apache 2.4: `Write errors:` only where there are some.
    Today,
    /// The one that will follow: `Number of workers:`.
    Trunk,
}

/// The seconds that a test took.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Seconds {
    /// How long, as exactly as the figure tells.
    pub range: Range,
    /// Whether they had to be read with the zeros that ab left out.
    pub unpadded: bool,
}

impl Report {
    /// A figure of it.
    #[must_use]
    pub fn figure(&self, field: Field) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.field == field)
    }

    /// A figure's number.
    #[must_use]
    pub fn number(&self, field: Field) -> Option<Number> {
        self.figure(field)?.number
    }

    /// A figure's value.
    #[must_use]
    pub fn value(&self, field: Field) -> Option<f64> {
        self.number(field).map(|number| number.value)
    }

    /// A figure's words.
    #[must_use]
    pub fn text(&self, field: Field) -> Option<&str> {
        self.figure(field).map(|figure| figure.written.as_str())
    }

    /// Its first line.
    #[must_use]
    pub fn first_line(&self) -> usize {
        self.figures.first().map_or(0, |figure| figure.line)
    }

    /// Its last line.
    #[must_use]
    pub fn last_line(&self) -> usize {
        self.figures.last().map_or(0, |figure| figure.line)
    }

    /// Which ab wrote it; `None` where none leaves out what this one does.
    #[must_use]
    pub fn family(&self) -> Option<Family> {
        let has = |field| self.figure(field).is_some();
        let old = |version: &str| version.starts_with("2.0") || version.starts_with("1.");
        if !slip::missing(self).is_empty() {
            return None;
        }
        let three_digits = self.number(Field::Seconds).is_none_or(|seconds| seconds.decimals == 3);
        Some(match () {
            () if has(Field::Workers) || has(Field::ConcurrencyAchieved) => Family::Trunk,
            () if self.text(Field::Version).is_some_and(old) || !three_digits => Family::Microseconds,
            () if self.value(Field::WriteErrors) == Some(0.0) => Family::Milliseconds,
            () => Family::Today,
        })
    }

    /// How long the test took: as printed, or with the zeros that old versions left out where only those fit the other figures.
    #[must_use]
    pub fn seconds(&self) -> Option<Seconds> {
        let figure = self.figure(Field::Seconds)?;
        let printed = Seconds { range: figure.number?.range(), unpadded: false };
        let Some(padded) = with_zeros(&figure.written) else { return Some(printed) };
        let padded = Seconds { range: padded, unpadded: true };
        let fits = |seconds: Seconds| slip::formulas_that_fit(self, seconds.range);
        Some(if fits(padded) > fits(printed) { padded } else { printed })
    }

    /// Requests that neither failed nor were answered with another status than 2xx. The two counts overlap in what ab does not
    /// tell; this takes the overlap for as large as it can be, so it may be too many.
    #[must_use]
    pub fn good(&self) -> Option<f64> {
        let complete = self.value(Field::Complete)?;
        let count = |field| self.value(field).unwrap_or(0.0);
        Some((complete - count(Field::Failed).max(count(Field::NonSuccess))).max(0.0))
    }

    /// Good requests per second: the one number that this run is worth in a comparison.
    #[must_use]
    pub fn good_per_second(&self) -> Option<f64> {
        let (good, complete) = (self.good()?, self.value(Field::Complete).filter(|complete| *complete > 0.0)?);
        Some(self.per_second(complete)? * good / complete)
    }

    /// Complete requests per second: by the seconds, or by ab's rate where that is told with more digits and agrees.
    fn per_second(&self, complete: f64) -> Option<f64> {
        let printed = self.number(Field::Rate).filter(|rate| rate.value > 0.0);
        let Some(seconds) = self.seconds() else { return Some(printed?.value) };
        let computed = seconds.range.positive()?.under(complete);
        let blur = |range: Range| (range.high - range.low) / range.middle();
        let better = printed.filter(|rate| rate.range().meets(computed) && blur(rate.range()) < blur(seconds.range));
        let by_seconds =
            Some(seconds.range.middle()).filter(|seconds| *seconds > 0.0).map(|seconds| complete / seconds);
        better.map(|rate| rate.value).or(by_seconds)
    }

    /// What was asked for: the path, or the address that the command names.
    #[must_use]
    pub fn subject(&self) -> Option<&str> {
        self.text(Field::Path).or_else(|| self.command.as_ref()?.url.as_deref())
    }

    /// Whether connections were to be kept.
    #[must_use]
    pub fn keep_alive(&self) -> bool {
        self.figure(Field::KeepAlive).is_some() || self.command.as_ref().is_some_and(|command| command.keep_alive)
    }

    /// A figure of the table of times.
    #[must_use]
    pub fn time(&self, row: Row, stat: Stat) -> Option<f64> {
        self.value(Field::Times(row, stat))
    }

    /// What in it does not add up, and what its numbers do not tell.
    #[must_use]
    pub fn slips(&self) -> Vec<Slip> {
        slip::of(self)
    }
}

/// `12.72722` as 12 seconds and 72722 microseconds, which is what `%ld.%03ld` makes of them.
fn with_zeros(written: &str) -> Option<Range> {
    let (whole, micros) = written.split_once('.').filter(|(_, micros)| (3..6).contains(&micros.len()))?;
    let low = whole.parse::<f64>().ok()? + micros.parse::<f64>().ok()? / 1e6;
    Some(Range { low, high: low + 1e-6 })
}
