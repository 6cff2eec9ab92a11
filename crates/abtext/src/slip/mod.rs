//! What does not add up in a report, and what its numbers do not tell, each as a value.
//!
//! A check knows how exact a printed figure is by its last digit, and says nothing where the digits leave room for both.

mod counts;
mod headers;
mod rates;
mod times;

pub(crate) use counts::missing;
pub use headers::headers;
pub(crate) use rates::formulas_that_fit;

use crate::field::{Field, Row};
use crate::number::{Number, Range};
use crate::report::Report;

/// One inconsistency, or one thing that must be known.
#[derive(Debug, Clone, PartialEq)]
pub struct Slip {
    /// Line it is about, from 1.
    pub line: usize,
    /// What it is.
    pub what: What,
}

/// How much a slip weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// ab's own way of printing; what was meant is known.
    Note,
    /// The figures are what ab prints, and easily taken for something else.
    Doubt,
    /// Figures that cannot all be true.
    Wrong,
}

/// How ab computes a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Formula {
    /// Complete requests / seconds.
    Rate,
    /// Connections * seconds / complete requests, in milliseconds.
    Mean,
    /// Seconds / complete requests, in milliseconds.
    Across,
    /// Bytes received / 1024 / seconds.
    Transfer,
    /// The same with the bytes / 1024 cut to a whole number, as old versions do.
    WholeTransfer,
}

/// What a slip is.
#[derive(Debug, Clone, PartialEq)]
pub enum What {
    /// Microseconds were printed without their zeros.
    UnpaddedSeconds {
        /// As printed.
        written: String,
        /// What it means.
        seconds: f64,
    },
    /// A figure is not what its formula gives.
    Differs {
        /// Which.
        field: Field,
        /// As printed.
        printed: Number,
        /// By which formula.
        formula: Formula,
        /// What it should be, as exactly as the other figures tell.
        expected: Range,
        /// The formula that it does follow, if it is another one.
        follows: Option<Formula>,
    },
    /// The transfer rate was computed from whole KiB.
    WholeKilobytes {
        /// As printed.
        printed: f64,
        /// From every byte.
        exact: f64,
    },
    /// Failures and their causes differ in number.
    FailureSum {
        /// `Failed requests:`.
        failed: f64,
        /// All causes together.
        causes: f64,
    },
    /// Lines that every ab prints are not there, although lines before and after them are.
    Missing {
        /// Their figures.
        fields: Vec<Field>,
    },
    /// Failures are in ab's rate.
    FailuresInRate {
        /// ab's rate.
        printed: f64,
        /// Good requests per second.
        good_rate: f64,
        /// How many were good, at most.
        good: f64,
        /// Complete requests.
        complete: f64,
    },
    /// Connections were to be kept, and none was.
    KeepAliveUnused {
        /// Complete requests.
        complete: f64,
    },
    /// Bodies do not add up to answers of the one length.
    BodyBytes {
        /// Answers that the bytes amount to.
        answers: f64,
        /// Complete requests.
        complete: f64,
        /// Whether answers in flight when ab stopped can explain it.
        in_flight: bool,
    },
    /// More bytes of bodies than bytes.
    BodiesExceedTotal {
        /// Bytes of bodies.
        html: f64,
        /// Bytes in all.
        total: f64,
    },
    /// `-t` ended at 50000 requests instead of its time.
    Capped,
    /// Every connection had a single request: all came at once.
    OneWave {
        /// Complete requests.
        complete: f64,
    },
    /// Few requests per connection.
    FewWaves {
        /// How many.
        waves: f64,
    },
    /// On average other than the asked number of requests were under way.
    Little {
        /// Rate times mean time.
        in_flight: f64,
        /// Connections asked for.
        asked: f64,
    },
    /// A row of times is out of order.
    RowOrder {
        /// Which.
        row: Row,
    },
    /// Parts of the time do not add up to it.
    PartsDiffer {
        /// Means of connecting and processing together.
        parts: f64,
        /// Mean of the total.
        total: f64,
    },
    /// A percentile is below a lower one.
    PercentileFalls {
        /// Which.
        percent: u8,
    },
    /// The percentile and the table of times disagree.
    PercentileDiffers {
        /// 50 or 100.
        percent: u8,
        /// By the percentiles.
        listed: f64,
        /// By the table of times.
        table: f64,
        /// Whether it is ab's own error with an odd number of requests.
        odd: bool,
    },
    /// A few requests took very much longer than the middle one.
    Skewed {
        /// Milliseconds of the middle one.
        median: f64,
        /// Mean of all.
        mean: f64,
        /// Of the longest.
        max: f64,
    },
    /// Two figures stood without a blank between them.
    Glued {
        /// As written.
        written: String,
        /// The second of them.
        value: f64,
    },
    /// Heads of answers differ in length between reports about one thing.
    HeaderBytes {
        /// Bytes per complete request of each report about it, by its place among those asked about, from 0.
        per_answer: Vec<(usize, f64)>,
        /// Whether answers in flight when ab stopped can explain it.
        in_flight: bool,
    },
    /// A rate and a time of one test, in a table of the author's, do not belong together.
    TableDiffers {
        /// Requests per second.
        rate: f64,
        /// Milliseconds per request.
        time: f64,
        /// Requests per second of one connection by that time.
        gives: f64,
    },
    /// A percentage in the text that no pair of the rates gives.
    Claim {
        /// As written.
        written: String,
        /// The difference that is nearest, in percent.
        nearest: f64,
        /// Of the rate in this line ...
        line: usize,
        /// ... to the rate in this one.
        base: usize,
    },
}

impl Slip {
    /// How much it weighs.
    #[must_use]
    pub fn weight(&self) -> Weight {
        match &self.what {
            What::UnpaddedSeconds { .. } | What::WholeKilobytes { .. } | What::Glued { .. } => Weight::Note,
            What::BodyBytes { in_flight, .. } | What::HeaderBytes { in_flight, .. } if *in_flight => Weight::Note,
            What::PercentileDiffers { odd: true, .. } => Weight::Note,
            // Which rates a sentence is about is for people to say.
            What::Claim { .. }
            | What::TableDiffers { .. }
            | What::BodyBytes { .. }
            | What::HeaderBytes { .. }
            | What::FailuresInRate { .. }
            | What::KeepAliveUnused { .. }
            | What::Capped
            | What::OneWave { .. }
            | What::FewWaves { .. }
            | What::Little { .. }
            | What::Skewed { .. } => Weight::Doubt,
            What::Differs { .. }
            | What::FailureSum { .. }
            | What::Missing { .. }
            | What::BodiesExceedTotal { .. }
            | What::RowOrder { .. }
            | What::PartsDiffer { .. }
            | What::PercentileFalls { .. }
            | What::PercentileDiffers { .. } => Weight::Wrong,
        }
    }
}

impl Formula {
    /// The formula in letters: n complete requests, c connections, t seconds, b bytes.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Formula::Rate => "n / t",
            Formula::Mean => "1000 c t / n",
            Formula::Across => "1000 t / n",
            Formula::Transfer => "b / 1024 / t",
            Formula::WholeTransfer => "int(b / 1024) / t",
        }
    }
}

/// Everything about one report, in the order of its lines.
pub(crate) fn of(report: &Report) -> Vec<Slip> {
    let mut found = Vec::new();
    rates::check(report, &mut found);
    counts::check(report, &mut found);
    times::check(report, &mut found);
    found.sort_by_key(|slip| slip.line);
    found
}

/// The line of a figure, else the report's first.
fn line_of(report: &Report, field: Field) -> usize {
    report.figure(field).map_or(report.first_line(), |figure| figure.line)
}
