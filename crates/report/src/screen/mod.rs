//! The live screen of a load: what has been seen so far, worded and drawn on as much of a terminal as there is.
//!
//! [`Seen`] takes what happens and remembers a bounded part of it. [`Painter::view`] makes numbers and sentences of it, a
//! [`LiveView`], which is a widget: drawing it computes nothing but where things go. Nothing here knows a terminal, a clock or a
//! thread.
//!
//! # Layout
//! - `seen`: what happened.
//! - `words`: what happened, in words.
//! - `machine`: this machine, in words.
//! - `draw`: the view on a grid of letters.
//! - `fit`: which parts there is room for.

pub(crate) mod draw;
mod fit;
mod machine;
mod seen;
#[cfg(test)]
mod tests;
mod words;

use crate::load::{BarView, FactView};

pub use seen::{Doing, Seen};
pub use words::Painter;

/// What is shown now, ready to be drawn.
#[derive(Debug, Clone)]
pub struct LiveView {
    /// Whom the load goes to.
    pub target: String,
    /// What was asked for.
    pub asked: String,
    /// What goes on.
    pub doing: String,
    /// Time, and how much is left.
    pub clock: String,
    /// How much of it is done, from 0 to 1; `None` where nobody knows.
    pub done: Option<f64>,
    /// What keys do.
    pub keys: String,
    /// Good answers per second.
    pub rate: RateView,
    /// How long they took.
    pub times: TimesView,
    /// Failures by cause.
    pub failures: ListView,
    /// Steps of a search, the newest first.
    pub steps: ListView,
    /// Latencies of all good answers by size.
    pub histogram: BarsView,
    /// This machine: the load generator, and the host when the server is here.
    pub machine: FactsView,
    /// What an independent visitor saw.
    pub visitor: ListView,
    /// What must be known.
    pub notes: ListView,
}

/// Good answers per second.
#[derive(Debug, Clone)]
pub struct RateView {
    /// Its heading.
    pub title: String,
    /// Now, on average, asked for; and what was counted.
    pub lines: Vec<String>,
    /// Second by second, the newest last.
    pub history: Vec<MarkView>,
}

/// A second of the history.
#[derive(Debug, Clone, Copy)]
pub struct MarkView {
    /// Good answers per second.
    pub good: f64,
    /// Whether anything failed.
    pub failed: bool,
}

/// Latencies, as a table of two columns.
#[derive(Debug, Clone)]
pub struct TimesView {
    /// Its heading, which says from when latencies count, and their unit.
    pub title: String,
    /// All so far, and the last second.
    pub heads: [String; 2],
    /// Percentiles.
    pub rows: Vec<(String, [String; 2])>,
}

/// Lines below a heading.
#[derive(Debug, Clone)]
pub struct ListView {
    /// The heading.
    pub title: String,
    /// The lines; without any there is nothing to show.
    pub lines: Vec<String>,
}

/// Bars below a heading.
#[derive(Debug, Clone)]
pub struct BarsView {
    /// The heading.
    pub title: String,
    /// The bars; without any there is nothing to show.
    pub bars: Vec<BarView>,
}

/// Facts below a heading.
#[derive(Debug, Clone)]
pub struct FactsView {
    /// The heading.
    pub title: String,
    /// The facts; without any there is nothing to show.
    pub facts: Vec<FactView>,
}
