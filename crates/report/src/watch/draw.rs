//! Headings and rows as text, with frames and colours; which modules fit, and what goes between two rows.
//!
//! It neither computes a number nor writes to a terminal.

use super::cell::Cell;
use super::module::{Layout, Title};
use super::theme::Theme;
use super::{Compat, Module, Shown, Style, Tick};

/// Modules side by side, drawn in a style.
#[derive(Debug, Clone)]
pub struct Screen {
    style: Style,
    theme: Theme,
    blocks: Vec<Block>,
}

/// A module and how it looks.
#[derive(Debug, Clone)]
pub(super) struct Block {
    pub(super) shown: Shown,
    pub(super) layout: Layout,
    visible: bool,
}

/// Where a row begins on a screen whose last row is still changing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// At the very beginning.
    First,
    /// Under the row before, which is final.
    Below,
    /// Over the row before.
    Over,
}

/// Lines that a terminal must have for headings to be repeated.
const ROWS_FOR_HEADINGS: u64 = 6;

impl Screen {
    /// Modules in the order given; `clock` is a text as wide as the times of day will be.
    #[must_use]
    pub fn new(shown: &[Shown], style: Style, clock: &str) -> Screen {
        let block =
            |shown: &Shown| Block { layout: shown.layout(style.compat, clock), shown: shown.clone(), visible: true };
        Screen { style, theme: style.theme(), blocks: shown.iter().map(block).collect() }
    }

    /// Hides the modules that do not fit into so many characters; a narrow one may fit behind one that did not.
    pub fn fit(&mut self, columns: usize) {
        let mut used = 0;
        for block in &mut self.blocks {
            let with = used + block.width() + 1;
            block.visible = with <= columns;
            if block.visible {
                used = with;
            }
        }
    }

    /// Characters that a row takes.
    #[must_use]
    pub fn width(&self) -> usize {
        let more = usize::from(self.is_trimmed());
        self.visible().map(|block| block.width() + 1).sum::<usize>().saturating_sub(1) + more
    }

    /// Whether a module is hidden.
    #[must_use]
    pub fn is_trimmed(&self) -> bool {
        self.blocks.iter().any(|block| !block.visible)
    }

    /// Whether the headings are due again. `row` counts final rows from 0, of which the first always has them, `lines` are those
    /// of the terminal, and with `updates` the row before stays on the screen while this one changes.
    #[must_use]
    pub fn headings_due(row: u64, lines: u64, updates: bool) -> bool {
        row == 0 || (lines >= ROWS_FOR_HEADINGS && row.is_multiple_of(lines - if updates { 1 } else { 2 }))
    }

    /// The two lines of headings; `first` when none were drawn before, `fixed` unless the row below may still change.
    #[must_use]
    pub fn headings(&self, first: bool, fixed: bool) -> String {
        let theme = &self.theme;
        let between_titles = match (self.style.compat, self.style.ascii) {
            (Compat::Dstat07 | Compat::Dstat08, _) => " ",
            (Compat::Dool, true) => "|",
            (Compat::Dool, false) if first => "┬",
            (Compat::Dool, false) => "┼",
        };
        let line = |text: &dyn Fn(&Block) -> String, between: &str| {
            let blocks: Vec<String> = self.visible().map(text).collect();
            let more = if self.is_trimmed() { format!("{}>", theme.title) } else { String::new() };
            format!("{}{more}\n", blocks.join(&format!("{}{between}", theme.frame)))
        };
        line(&|block| self.title(block, fixed), between_titles) + &line(&|block| self.nicks(block, fixed), self.pipe())
    }

    /// A row without its line end; `fixed` unless it may still change. `marks` say what is odd about it, such as that it came late.
    #[must_use]
    pub fn row(&self, tick: &Tick<'_>, fixed: bool, marks: &[String]) -> String {
        let theme = &self.theme;
        let blocks: Vec<String> = self.visible().map(|block| self.cells(block, tick, fixed)).collect();
        let mut row = blocks.join(&format!("{}{}", theme.frame, self.pipe()));
        if self.is_trimmed() {
            row += &format!("{}>", theme.frame);
        }
        row += theme.input;
        for mark in marks {
            row += &format!(" {}{mark}{}", theme.error, theme.input);
        }
        row
    }

    /// What goes before a row, or before its headings, on a screen whose last row is still changing.
    #[must_use]
    pub fn start(&self, start: Start) -> String {
        let reset = self.theme.reset;
        match (start, self.style.compat) {
            (Start::First, _) => String::new(),
            (Start::Below, Compat::Dstat07) => format!("\n{reset}\x1b[2K\x1b7"),
            (Start::Below, Compat::Dstat08) => format!("\n{reset}\x1b[2K\x1b[s"),
            (Start::Below, Compat::Dool) => format!("\n{reset}\x1b[2K"),
            (Start::Over, Compat::Dstat07) => "\x1b8".to_owned(),
            (Start::Over, Compat::Dstat08) => "\x1b[u".to_owned(),
            (Start::Over, Compat::Dool) => "\x1b[2K\x1b[0G".to_owned(),
        }
    }

    /// What goes between headings that were drawn over a row and that row, so that the next one is drawn over it and not over them.
    #[must_use]
    pub fn mark(&self) -> &'static str {
        match self.style.compat {
            Compat::Dstat07 => "\x1b[2K\x1b7",
            Compat::Dstat08 => "\x1b[2K\x1b[s",
            Compat::Dool => "",
        }
    }

    /// Every module, hidden or not.
    pub(super) fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    pub(super) fn style(&self) -> &Style {
        &self.style
    }

    fn visible(&self) -> impl Iterator<Item = &Block> {
        self.blocks.iter().filter(|block| block.visible)
    }

    fn has_boxes(&self) -> bool {
        self.style.compat == Compat::Dool && !self.style.ascii
    }

    fn pipe(&self) -> &'static str {
        if self.has_boxes() { "│" } else { "|" }
    }

    fn title(&self, block: &Block, fixed: bool) -> String {
        let theme = &self.theme;
        let dash = if self.has_boxes() { "┄" } else { "-" };
        match &block.layout.title {
            Title::One(title) => {
                format!(
                    "{}{}{}",
                    theme.title,
                    centred(title, block.width()).replace(' ', dash),
                    theme.plain_text(fixed)
                )
            }
            Title::Each(titles) => {
                let width = block.layout.device_width();
                let between = match self.style.colour {
                    true => format!("{}{dash}{}", theme.frame, theme.title),
                    false => " ".to_owned(),
                };
                let titles: Vec<_> = titles.iter().map(|title| centred(title, width).replace(' ', dash)).collect();
                format!("{}{}", theme.title, titles.join(&between))
            }
        }
    }

    fn nicks(&self, block: &Block, fixed: bool) -> String {
        let (theme, layout) = (&self.theme, &block.layout);
        let dool = self.style.compat == Compat::Dool;
        let nicks = layout.nicks.iter().zip(&layout.formats);
        let nicks = nicks.map(|(nick, format)| format!("{}{}", theme.subtitle, centred(nick, format.width)));
        let nicks: Vec<_> = nicks.collect();
        let (between, after, between_devices) = if dool {
            let reset = theme.reset;
            (format!("{reset} {reset}"), "", format!("{} {reset}", theme.subtitle))
        } else {
            let after = theme.plain_text(fixed);
            (format!("{after} "), after, format!("{}:", theme.frame))
        };
        let device = format!("{}{after}", nicks.join(&between));
        let all = vec![device; layout.headed()].join(&between_devices);
        if dool { all + theme.reset } else { all }
    }

    fn cells(&self, block: &Block, tick: &Tick<'_>, fixed: bool) -> String {
        let (theme, formats) = (&self.theme, &block.layout.formats);
        let between = match (self.style.compat, self.style.ascii) {
            (Compat::Dstat07 | Compat::Dstat08, _) => format!("{}:", theme.frame),
            (Compat::Dool, true) => format!("{}:{}", theme.subframe, theme.reset),
            (Compat::Dool, false) => format!("{}┊{}", theme.subframe, theme.reset),
        };
        let device = |cells: &Vec<Cell>| {
            let drawn = cells.iter().zip(formats).map(|(cell, format)| format.draw(cell, &self.style, theme, fixed));
            let cells: Vec<_> = drawn.collect();
            cells.join(" ")
        };
        let devices: Vec<_> = tick.cells(&block.shown, self.style.compat).iter().map(device).collect();
        devices.join(&between)
    }
}

impl Block {
    fn width(&self) -> usize {
        let lists = self.lists();
        lists * self.layout.device_width() + lists.saturating_sub(1)
    }

    /// How many lists of cells there are: one for each device, apart from interrupts, each of which is a column.
    pub(super) fn lists(&self) -> usize {
        let Shown { module, devices } = &self.shown;
        if module.has_devices() && *module != Module::Int { devices.len() } else { 1 }
    }
}

impl Layout {
    /// Characters of the columns of one device.
    fn device_width(&self) -> usize {
        self.formats.iter().map(|format| format.width + 1).sum::<usize>().saturating_sub(1)
    }

    /// How often the columns are named: once for each title.
    fn headed(&self) -> usize {
        match &self.title {
            Title::One(_) => 1,
            Title::Each(titles) => titles.len(),
        }
    }
}

/// A text in the middle of so many characters, as Python's `center` has it; a longer one is cut.
fn centred(text: &str, width: usize) -> String {
    let text: String = text.chars().take(width).collect();
    let padding = width - text.chars().count();
    let left = padding / 2 + (padding & width & 1);
    format!("{:left$}{text}{:right$}", "", "", right = padding - left)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_odd_padding_goes_left_in_an_odd_width() {
        let check = |text, width, expected| assert_eq!(centred(text, width), expected);
        check("used", 5, " used");
        check("1m", 4, " 1m ");
        check("15m", 4, "15m ");
        check("in", 5, "  in ");
        check("inodes", 6, "inodes");
        check("interrupts", 5, "inter");
        check("", 3, "   ");
    }

    #[test]
    fn headings_return_when_the_first_ones_have_left_the_screen() {
        let due = |row, lines, updates| Screen::headings_due(row, lines, updates);
        assert!(due(0, 0, false) && due(0, 25, true));
        assert!(due(24, 25, true) && !due(23, 25, true));
        assert!(due(23, 25, false) && !due(24, 25, false));
        assert!(!due(3, 5, true));
    }
}
