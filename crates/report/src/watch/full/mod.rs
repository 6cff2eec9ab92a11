//! The full screen of a watch: what goes on now, and charts of the minutes before, in panels.
//!
//! Looks come in; [`Painter::view`] makes numbers and words of them, a [`FullView`], which is a widget: drawing it computes nothing
//! but where things go. Which looks are shown, live ones or those of a recording, and which one is the last of them, is for the
//! caller to say. Nothing here knows a terminal, a clock or a store.
//!
//! # Layout
//! - `history`: looks as columns of charts.
//! - `words`: panels, worded.
//! - `draw`: the view on a grid of letters.

mod draw;
mod history;
#[cfg(test)]
mod tests;
mod words;

use model::Nanos;
use model::reading::Look;
use model::run::HostFacts;

pub use words::{Painter, first_needed};

/// Columns that a chart has at most.
pub const COLUMNS: usize = 240;

/// Lengths of a column, in seconds: what zooming goes through.
pub const ZOOMS: [Nanos; 6] = [1, 2, 5, 10, 30, 60];

/// What is to be shown.
#[derive(Debug, Clone, Copy)]
pub struct Scene<'a> {
    /// Looks, ascending in time; the last one is what is shown as now.
    pub looks: &'a [Look],
    /// Bytes of a page of memory.
    pub page_bytes: u64,
    /// The machine.
    pub host: &'a HostFacts,
    /// Time between two looks that was asked for.
    pub period_ns: Nanos,
    /// The time of the last look, as text.
    pub when: &'a str,
    /// What goes on.
    pub state: State,
    /// What must be known.
    pub notes: &'a [String],
    /// The keys are to be explained.
    pub help: bool,
    /// Time in a column of a chart.
    pub column_ns: Nanos,
}

/// What goes on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum State {
    /// The newest look is shown.
    Live,
    /// An older look is shown, so long before the newest.
    Back(Nanos),
    /// A recording goes by, so many times as fast as it was.
    Playing(f64),
    /// A recording stands still.
    Stopped,
    /// A recording has come to its end.
    Over,
}

/// What is shown now, ready to be drawn.
#[derive(Debug, Clone)]
pub struct FullView {
    /// The machine.
    pub host: String,
    /// The time, and what goes on.
    pub state: String,
    /// What keys do.
    pub keys: String,
    /// What must be known; the most urgent first.
    pub notes: Vec<String>,
    /// Panels, those that matter most first.
    pub panels: Vec<PanelView>,
    /// The keys, explained; their heading first. Nothing when nobody asked.
    pub help: Vec<String>,
}

/// One panel.
#[derive(Debug, Clone)]
pub struct PanelView {
    /// Its heading.
    pub title: String,
    /// What the whole height of its chart stands for.
    pub scale: String,
    /// The numbers that the chart has in its two colours.
    pub drawn: Vec<String>,
    /// Others.
    pub others: Vec<String>,
    /// The chart: two shares of its height, one above the other, for each column, the newest last. `None` where nothing is known.
    pub chart: Vec<Option<[f64; 2]>>,
    /// Something in it is not as it should be.
    pub alarm: bool,
}
