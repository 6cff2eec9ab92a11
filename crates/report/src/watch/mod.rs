//! The monitor's screen as dstat, dool and vmstat draw it, to the character: headings, rows, colours and the CSV file.
//!
//! Counters of two instants come in ([`Tick`]), text comes out. Nothing here reads a file, a clock or a terminal: how wide the
//! screen is, what time it is and whether colours are wanted are parameters. What differs from dstat, and why, stands in
//! `docs/compatibility/dstat.md`.

mod catalogue;
mod cell;
pub mod choice;
pub mod csv;
mod draw;
mod explained;
mod figures;
pub mod full;
pub mod json;
mod module;
mod number;
pub mod openmetrics;
mod own;
mod theme;
mod top;
pub mod vmstat;

pub use draw::{Screen, Start};
pub use explained::Explained;
pub use figures::{Sight, Tick};
pub use module::{Module, Shown, TOTAL};
pub use top::{ProcessSpan, Top};

/// Whose screen it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compat {
    /// dstat 0.7.2, as CentOS 7 has it.
    Dstat07,
    /// dstat 0.8.0, as Debian has it under the name of 0.7.4.
    Dstat08,
    /// dool 1.3.
    Dool,
}

/// A way of writing that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Force {
    /// `--integer`: no decimals.
    Whole,
    /// `--float`: decimals wherever there is room.
    Decimal,
}

/// How numbers and frames are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Whose screen it is.
    pub compat: Compat,
    /// Traffic of disks and networks in bits (`--bits`).
    pub bits: bool,
    /// `--integer` or `--float`.
    pub force: Option<Force>,
    /// With colours.
    pub colour: bool,
    /// No more than sixteen of them, where dool has 256 (`--color16`).
    pub few_colours: bool,
    /// The background is white (`--bw`).
    pub white_background: bool,
    /// Frames of ASCII; dool alone has others.
    pub ascii: bool,
}

impl Style {
    /// Without colours, in bytes, in ASCII.
    #[must_use]
    pub fn of(compat: Compat) -> Style {
        Style {
            compat,
            bits: false,
            force: None,
            colour: false,
            few_colours: false,
            white_background: false,
            ascii: true,
        }
    }

    fn theme(&self) -> theme::Theme {
        if self.colour {
            theme::Theme::coloured(self.compat, self.white_background, self.few_colours)
        } else {
            theme::Theme::plain()
        }
    }
}
