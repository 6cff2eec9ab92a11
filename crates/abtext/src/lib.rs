//! What ab printed, as text: its reports, every figure in them, and what does not add up.
//!
//! [`read`] takes a text as people keep it: what ab printed, several of them, or an article around them, with wide letters and
//! line numbers. It gives [`Report`]s, whose [`Report::slips`] are inconsistencies as values. From ab 2.0.40 on.
//!
//! Nothing here opens a file, prints, or measures. A table made by `ab -w` is not read.
//!
//! ```
//! let text = "Concurrency Level:      50
//! Time taken for tests:   12.72722 seconds
//! Complete requests:      10000
//! Failed requests:        0
//! Requests per second:    828.31 [#/sec] (mean)";
//! let document = abtext::read(text).unwrap();
//! let seconds = document.reports[0].seconds().unwrap();
//! assert!(seconds.unpadded && (seconds.range.low - 12.072_722).abs() < 1e-9);
//! ```

mod claims;
mod clean;
mod command;
mod document;
mod field;
#[doc(hidden)]
pub mod fuzz;
mod line;
mod number;
mod report;
mod slip;

pub use command::Command;
pub use document::{Document, NotAb, Stated, read};
pub use field::{Field, Row, Stat};
pub use number::{Number, Range};
pub use report::{Family, Figure, Report, Seconds};
pub use slip::{Formula, Slip, Weight, What, headers};
