//! The colours of dstat's screen, as escape sequences: none, its own sixteen, or dool's 256.
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

/// Escape sequences by the names that dstat has for them; `dark_` is the normal intensity.
struct Palette {
    black: &'static str,
    white: &'static str,
    red: &'static str,
    dark_red: &'static str,
    blue: &'static str,
    dark_blue: &'static str,
    /// The same, underlined.
    blue_underlined: &'static str,
    green: &'static str,
    dark_green: &'static str,
    yellow: &'static str,
    dark_yellow: &'static str,
    gray: &'static str,
    dark_gray: &'static str,
    magenta: &'static str,
    dark_magenta: &'static str,
    cyan: &'static str,
    dark_cyan: &'static str,
    dark_cyan_underlined: &'static str,
    white_on_red: &'static str,
}

/// What every terminal with colours has.
const SIXTEEN: Palette = Palette {
    black: "\x1b[0;30m",
    white: "\x1b[1;37m",
    red: "\x1b[1;31m",
    dark_red: "\x1b[0;31m",
    blue: "\x1b[1;34m",
    dark_blue: "\x1b[0;34m",
    blue_underlined: "\x1b[1;34m\x1b[4m",
    green: "\x1b[1;32m",
    dark_green: "\x1b[0;32m",
    yellow: "\x1b[1;33m",
    dark_yellow: "\x1b[0;33m",
    gray: "\x1b[0;37m",
    dark_gray: "\x1b[1;30m",
    magenta: "\x1b[1;35m",
    dark_magenta: "\x1b[0;35m",
    cyan: "\x1b[1;36m",
    dark_cyan: "\x1b[0;36m",
    dark_cyan_underlined: "\x1b[0;36m\x1b[4m",
    white_on_red: "\x1b[1;37m\x1b[41m",
};

/// Those that dool takes of 256; its dark cyan is a magenta.
const MANY: Palette = Palette {
    black: "\x1b[38;5;0m",
    white: "\x1b[38;5;15m",
    red: "\x1b[38;5;9m",
    dark_red: "\x1b[38;5;88m",
    blue: "\x1b[38;5;51m",
    dark_blue: "\x1b[38;5;39m",
    blue_underlined: "\x1b[38;5;51m\x1b[4m",
    green: "\x1b[38;5;83m",
    dark_green: "\x1b[38;5;28m",
    yellow: "\x1b[38;5;227m",
    dark_yellow: "\x1b[38;5;214m",
    gray: "\x1b[38;5;7m",
    dark_gray: "\x1b[38;5;239m",
    magenta: "\x1b[38;5;13m",
    dark_magenta: "\x1b[38;5;5m",
    cyan: "\x1b[38;5;14m",
    dark_cyan: "\x1b[38;5;5m",
    dark_cyan_underlined: "\x1b[38;5;5m\x1b[4m",
    white_on_red: "\x1b[38;5;15m\x1b[41m",
};

const RESET: &str = "\x1b[0;0m";

fn on_dark(of: &Palette) -> Theme {
    Theme {
        title: of.dark_blue,
        subtitle: of.blue_underlined,
        frame: of.dark_blue,
        subframe: of.dark_blue,
        error: of.white_on_red,
        input: of.dark_gray,
        reset: RESET,
        fixed: Shades {
            sizes: [of.red, of.yellow, of.green, of.blue, of.cyan, of.white, of.dark_red, of.dark_green],
            text: of.gray,
            unit: of.dark_gray,
            done: of.white,
        },
        passing: Shades {
            sizes: [of.dark_red, of.dark_yellow, of.dark_green, of.dark_blue, of.dark_cyan, of.gray, of.red, of.green],
            text: of.dark_gray,
            unit: of.dark_gray,
            done: of.gray,
        },
    }
}

fn on_white(of: &Palette, sixth: &'static str, sixth_passing: &'static str) -> Theme {
    Theme {
        subtitle: of.dark_cyan_underlined,
        fixed: Shades {
            sizes: [of.dark_red, of.dark_magenta, of.dark_green, of.dark_blue, of.dark_cyan, sixth, of.red, of.green],
            text: of.black,
            unit: of.black,
            done: of.black,
        },
        passing: Shades {
            sizes: [of.red, of.magenta, of.green, of.blue, of.cyan, sixth_passing, of.dark_red, of.dark_green],
            text: of.dark_gray,
            unit: of.dark_gray,
            done: of.dark_gray,
        },
        ..on_dark(of)
    }
}

impl Theme {
    /// No escape sequence at all.
    pub(super) fn plain() -> Theme {
        PLAIN
    }

    /// What a version of dstat draws on a dark or a white background; `few` for dool with no more than sixteen colours.
    pub(super) fn coloured(compat: Compat, white_background: bool, few: bool) -> Theme {
        let of = if compat == Compat::Dool && !few { &MANY } else { &SIXTEEN };
        match (compat, white_background) {
            (Compat::Dstat07 | Compat::Dstat08, false) => on_dark(of),
            (Compat::Dstat07, true) => on_white(of, of.gray, of.white),
            (Compat::Dstat08, true) => on_white(of, of.black, of.dark_gray),
            (Compat::Dool, true) => Theme { subframe: of.dark_cyan, ..on_white(of, of.black, of.dark_gray) },
            (Compat::Dool, false) => {
                let dark = on_dark(of);
                Theme { subframe: of.blue, fixed: Shades { unit: of.gray, ..dark.fixed.clone() }, ..dark }
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
