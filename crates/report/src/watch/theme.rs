//! The colours of dstat's screen, as escape sequences: none, its own sixteen, or dool's.
//!
//! A row that is not final yet, because the delay has not passed, is drawn in darker ones.

use super::Compat;

/// What surrounds and colours text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Theme {
    pub(super) title: &'static str,
    pub(super) subtitle: &'static str,
    pub(super) frame: &'static str,
    /// Between the devices of one module.
    pub(super) subframe: &'static str,
    pub(super) error: &'static str,
    /// After a row, for what the user types.
    pub(super) input: &'static str,
    pub(super) reset: &'static str,
    fixed: Shades,
    passing: Shades,
}

/// The colours of numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shades {
    /// By size.
    pub(super) sizes: [&'static str; 8],
    pub(super) text: &'static str,
    /// Units, and a plain zero.
    pub(super) unit: &'static str,
    /// A percentage that is complete.
    pub(super) done: &'static str,
}

const NO_SHADES: Shades = Shades { sizes: [""; 8], text: "", unit: "", done: "" };

const PLAIN: Theme = Theme {
    title: "",
    subtitle: "",
    frame: "",
    subframe: "",
    error: "",
    input: "",
    reset: "",
    fixed: NO_SHADES,
    passing: NO_SHADES,
};

/// Sixteen colours by name; `DARK_` is the normal intensity.
mod sixteen {
    pub(super) const BLACK: &str = "\x1b[0;30m";
    pub(super) const DARK_RED: &str = "\x1b[0;31m";
    pub(super) const DARK_GREEN: &str = "\x1b[0;32m";
    pub(super) const DARK_YELLOW: &str = "\x1b[0;33m";
    pub(super) const DARK_BLUE: &str = "\x1b[0;34m";
    pub(super) const DARK_MAGENTA: &str = "\x1b[0;35m";
    pub(super) const DARK_CYAN: &str = "\x1b[0;36m";
    pub(super) const GRAY: &str = "\x1b[0;37m";
    pub(super) const DARK_GRAY: &str = "\x1b[1;30m";
    pub(super) const RED: &str = "\x1b[1;31m";
    pub(super) const GREEN: &str = "\x1b[1;32m";
    pub(super) const YELLOW: &str = "\x1b[1;33m";
    pub(super) const BLUE: &str = "\x1b[1;34m";
    pub(super) const MAGENTA: &str = "\x1b[1;35m";
    pub(super) const CYAN: &str = "\x1b[1;36m";
    pub(super) const WHITE: &str = "\x1b[1;37m";
}

const RESET: &str = "\x1b[0;0m";

fn on_dark() -> Theme {
    use sixteen::{
        BLUE, CYAN, DARK_BLUE, DARK_CYAN, DARK_GRAY, DARK_GREEN, DARK_RED, DARK_YELLOW, GRAY, GREEN, RED, WHITE, YELLOW,
    };
    Theme {
        title: DARK_BLUE,
        subtitle: "\x1b[1;34m\x1b[4m",
        frame: DARK_BLUE,
        subframe: DARK_BLUE,
        error: "\x1b[1;37m\x1b[41m",
        input: DARK_GRAY,
        reset: RESET,
        fixed: Shades {
            sizes: [RED, YELLOW, GREEN, BLUE, CYAN, WHITE, DARK_RED, DARK_GREEN],
            text: GRAY,
            unit: DARK_GRAY,
            done: WHITE,
        },
        passing: Shades {
            sizes: [DARK_RED, DARK_YELLOW, DARK_GREEN, DARK_BLUE, DARK_CYAN, GRAY, RED, GREEN],
            text: DARK_GRAY,
            unit: DARK_GRAY,
            done: GRAY,
        },
    }
}

fn on_white(sixth: &'static str, sixth_passing: &'static str) -> Theme {
    use sixteen::{
        BLACK, BLUE, CYAN, DARK_BLUE, DARK_CYAN, DARK_GRAY, DARK_GREEN, DARK_MAGENTA, DARK_RED, GREEN, MAGENTA, RED,
    };
    Theme {
        subtitle: "\x1b[0;36m\x1b[4m",
        fixed: Shades {
            sizes: [DARK_RED, DARK_MAGENTA, DARK_GREEN, DARK_BLUE, DARK_CYAN, sixth, RED, GREEN],
            text: BLACK,
            unit: BLACK,
            done: BLACK,
        },
        passing: Shades {
            sizes: [RED, MAGENTA, GREEN, BLUE, CYAN, sixth_passing, DARK_RED, DARK_GREEN],
            text: DARK_GRAY,
            unit: DARK_GRAY,
            done: DARK_GRAY,
        },
        ..on_dark()
    }
}

impl Theme {
    /// No escape sequence at all.
    pub(super) fn plain() -> Theme {
        PLAIN
    }

    /// What a version of dstat draws on a dark or a white background.
    pub(super) fn coloured(compat: Compat, white_background: bool) -> Theme {
        match (compat, white_background) {
            (Compat::Dstat07 | Compat::Dstat08, false) => on_dark(),
            (Compat::Dstat07, true) => on_white(sixteen::GRAY, sixteen::WHITE),
            (Compat::Dstat08, true) => on_white(sixteen::BLACK, sixteen::DARK_GRAY),
            (Compat::Dool, true) => Theme { subframe: sixteen::DARK_CYAN, ..Theme::coloured(Compat::Dstat08, true) },
            // dool's sixteen colours; its 256 are one more theme of the same shape.
            (Compat::Dool, false) => {
                let dark = on_dark();
                Theme { subframe: sixteen::BLUE, fixed: Shades { unit: sixteen::GRAY, ..dark.fixed.clone() }, ..dark }
            }
        }
    }

    /// Ends a colour: of a row that may still change, dstat goes on in the colour of text.
    pub(super) fn plain_text(&self, fixed: bool) -> &'static str {
        if fixed { self.reset } else { self.fixed.text }
    }

    /// The colours of a row; a row that may still change has darker ones.
    pub(super) fn shades(&self, fixed: bool) -> &Shades {
        if fixed { &self.fixed } else { &self.passing }
    }
}
