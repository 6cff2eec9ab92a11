//! One number or one text of a row: aligned, with its unit, in its colour.
//!
//! Knows how a column is written, not what it means.

use super::number::{Halves, Written, decimal, whole};
use super::theme::Theme;
use super::top::{self, Piece};
use super::{Compat, Force, Style};

/// What kind of number a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Bytes per second, which may be shown as bits.
    Bytes,
    /// A whole number.
    Whole,
    /// A share of 100.
    Percent,
    /// A number with decimals when there is room.
    Decimal,
}

/// How the columns of a module are written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Format {
    pub(super) kind: Kind,
    /// Characters, the unit included.
    pub(super) width: usize,
    /// The step from one unit to the next when it is 1000 or 1024, otherwise from one colour to the next; 0 for no colours.
    pub(super) scale: f64,
}

/// What stands in a cell.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Cell {
    /// A number; `None` when it is not known.
    Number(Option<f64>),
    /// A text as it is.
    Text(String),
    /// A process and what it has.
    Top(top::Shown),
}

const UNITS: [&str; 9] = ["", "k", "M", "G", "T", "P", "E", "Z", "Y"];

impl Format {
    pub(super) const fn new(kind: Kind, width: usize, scale: f64) -> Format {
        Format { kind, width, scale }
    }

    /// A unit follows the number.
    fn has_unit(self) -> bool {
        (self.scale == 1000.0 || self.scale == 1024.0) && self.width >= 4
    }

    /// Draws a cell; `fixed` unless the row may still change.
    pub(super) fn draw(self, cell: &Cell, style: &Style, theme: &Theme, fixed: bool) -> String {
        match cell {
            Cell::Text(text) => format!("{}{text:<width$}", theme.shades(fixed).text, width = self.width),
            Cell::Number(Some(value)) if *value >= 0.0 => {
                self.number(*value, style, theme, fixed).unwrap_or_else(|| self.dash(theme, fixed))
            }
            Cell::Number(_) => self.dash(theme, fixed),
            Cell::Top(shown) => self.pieces(shown, style, theme, fixed),
        }
    }

    /// dstat takes the colours within for a part of the text's length: with them it is never filled up.
    fn pieces(self, shown: &top::Shown, style: &Style, theme: &Theme, fixed: bool) -> String {
        let shades = theme.shades(fixed);
        let draw = |piece: &Piece| match piece {
            Piece::Text(text, width) => {
                let text: String = text.chars().take(*width).collect();
                format!("{text:<width$}")
            }
            Piece::Pid(pid) => format!("{}{pid}", theme.frame),
            Piece::Number(value, format) => format.draw(&Cell::Number(Some(*value)), style, theme, fixed),
            Piece::Unit(unit) => format!("{}{unit}", if *unit == " " { "" } else { shades.unit }),
        };
        let text: String = shown.pieces.iter().map(draw).collect();
        format!("{}{text:<width$}", shades.text, width = self.width)
    }

    /// What is not known, or cannot be: a counter that went backwards.
    fn dash(self, theme: &Theme, fixed: bool) -> String {
        let (width, after) = if self.has_unit() { (self.width - 1, " ") } else { (self.width, "") };
        format!("{}{:>width$}{after}{}", theme.error, "-", theme.plain_text(fixed))
    }

    fn number(self, value: f64, style: &Style, theme: &Theme, fixed: bool) -> Option<String> {
        let halves = if style.compat == Compat::Dstat07 { Halves::Away } else { Halves::Even };
        let as_bits = style.bits && self.kind == Kind::Bytes && self.scale == 1024.0;
        let (value, scale) = if as_bits { (value * 8.0, 1000.0) } else { (value, self.scale) };
        let base = if scale == 1024.0 { 1024.0 } else { 1000.0 };
        let digits = self.width - usize::from(self.has_unit());
        let with_decimals = match style.force {
            Some(force) => force == Force::Decimal,
            None => self.kind == Kind::Decimal,
        };
        let write = if with_decimals { decimal } else { whole };
        let written = write(value, digits, base, halves)?;
        let shades = theme.shades(fixed);
        let colour = if written.text == "0" {
            shades.unit
        } else if scale <= 0.0 {
            shades.text
        } else if self.kind == Kind::Percent && style.compat != Compat::Dstat07 && halves.round(value) >= 100.0 {
            shades.done
        } else if scale == 1000.0 || scale == 1024.0 {
            // dstat takes no percentages in units, so it has no colour for them.
            shades.sizes[written.divided % shades.sizes.len()]
        } else {
            shades.sizes[(value / scale) as usize % shades.sizes.len()]
        };
        let mut text = format!("{colour}{:>digits$}", written.text);
        if self.has_unit() {
            if halves.round(value) == 0.0 {
                text.push(' ');
            } else {
                text += shades.unit;
                text += self.unit(&written, style.compat, as_bits);
            }
        }
        Some(text)
    }

    fn unit(self, written: &Written, compat: Compat, as_bits: bool) -> &'static str {
        match (written.divided, self.scale == 1024.0) {
            (0, true) if as_bits => "b",
            (0, true) => "B",
            (0, false) => " ",
            (1, true) if compat == Compat::Dool && !as_bits => "K",
            (divided, _) => UNITS.get(divided).copied().unwrap_or("?"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: Format = Format::new(Kind::Bytes, 5, 1024.0);
    const DECIMAL: Format = Format::new(Kind::Decimal, 5, 1024.0);
    const COUNT: Format = Format::new(Kind::Whole, 5, 1000.0);
    const PERCENT: Format = Format::new(Kind::Percent, 3, 34.0);

    fn check(format: Format, value: f64, style: &Style, expected: &str) {
        assert_eq!(format.draw(&Cell::Number(Some(value)), style, &Theme::plain(), true), expected, "{value}");
    }

    #[test]
    fn as_the_documents_show_them() {
        let style = Style::of(Compat::Dstat07);
        check(BYTES, 8746.0, &style, "8746B");
        check(BYTES, 0.0, &style, "   0 ");
        check(BYTES, 4096.0 * 1024.0 * 1024.0, &style, "4096M");
        check(DECIMAL, 34.8 * 1024.0 * 1024.0, &style, "34.8M");
        check(DECIMAL, 479.0 * 1024.0 * 1024.0, &style, " 479M");
        check(Format::new(Kind::Decimal, 5, 1000.0), 0.32, &style, "0.32 ");
        check(Format::new(Kind::Decimal, 5, 1000.0), 235.0, &style, " 235 ");
        check(Format::new(Kind::Decimal, 4, 0.5), 0.01, &style, "0.01");
        check(PERCENT, 100.0, &style, "100");
    }

    #[test]
    fn units_of_each_kind_of_number() {
        let style = Style::of(Compat::Dstat08);
        check(COUNT, 123.0, &style, " 123 ");
        check(COUNT, 12_345.0, &style, "  12k");
        check(BYTES, 12_345.0, &style, "  12k");
        check(BYTES, 12_345.0, &Style { bits: true, ..style }, "  99k");
        check(BYTES, 3.0, &Style { bits: true, ..style }, "  24b");
        check(BYTES, 12_345.0, &Style::of(Compat::Dool), "  12K");
        check(BYTES, 12_345.0, &Style { bits: true, ..Style::of(Compat::Dool) }, "  99k");
        check(BYTES, 12_345.0, &Style { force: Some(Force::Decimal), ..style }, "12.1k");
        check(DECIMAL, 12_345.0, &Style { force: Some(Force::Whole), ..style }, "  12k");
        check(BYTES, 0.4, &Style { force: Some(Force::Decimal), ..style }, "0.40 ");
    }

    #[test]
    fn what_is_not_known_is_a_dash() {
        let draw = |format: Format, cell| format.draw(&cell, &Style::of(Compat::Dstat08), &Theme::plain(), true);
        assert_eq!(draw(BYTES, Cell::Number(None)), "   - ");
        assert_eq!(draw(PERCENT, Cell::Number(Some(-1.0))), "  -");
        assert_eq!(draw(COUNT, Cell::Number(Some(f64::NAN))), "   - ");
        assert_eq!(draw(COUNT, Cell::Number(Some(f64::INFINITY))), "   - ");
    }
}
