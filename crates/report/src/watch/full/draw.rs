//! The view on a grid of letters, as large as it may be: panels in one column or two, each with its numbers and its chart.

use super::{FullView, PanelView};
use crate::screen::draw::{BAR, QUIET, STRONG, WARNING, clipped, heading, put, row};
use crate::text::layout::{width, wrap};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style};
use ratatui::widgets::Widget;

/// From so many columns on there are two of panels.
const WIDE: u16 = 72;
/// Columns between them.
const GAP: u16 = 2;
/// From so many rows on there are lines above and below the panels.
const LOW: u16 = 6;
/// A panel has its heading and a line at least.
const LEAST: u16 = 2;
/// A chart of more rows says no more.
const CHART: u16 = 10;
/// What stands on a chart's first colour; told apart from it by colour-blind readers, too.
const SECOND: Style = Style::new().fg(Color::Yellow);
const ALARM: Style = Style::new().fg(Color::Red);

impl Widget for &FullView {
    fn render(self, area: Rect, buffer: &mut Buffer) {
        let mut rest = area.intersection(buffer.area);
        if rest.is_empty() {
            return;
        }
        if rest.height >= LOW {
            self.head(row(&mut rest), buffer);
            rest.height -= 1;
            put(&self.keys, Rect { y: rest.bottom(), height: 1, ..rest }, QUIET, buffer);
        }
        if rest.height >= LOW {
            self.notes.first().into_iter().for_each(|note| put(note, row(&mut rest), WARNING, buffer));
        }
        if !self.help.is_empty() {
            return self.help(rest, buffer);
        }
        if rest.width < WIDE {
            return stack(&self.panels.iter().collect::<Vec<_>>(), rest, buffer);
        }
        // Every second panel, so that those that matter most stand at the top of both columns.
        let side = |which: usize| self.panels.iter().skip(which).step_by(2).collect::<Vec<_>>();
        let left = (rest.width - GAP) / 2;
        let right = rest.width - GAP - left;
        stack(&side(0), Rect { width: left, ..rest }, buffer);
        stack(&side(1), Rect { x: rest.x + left + GAP, width: right, ..rest }, buffer);
    }
}

impl FullView {
    fn head(&self, area: Rect, buffer: &mut Buffer) {
        let state = (width(&self.state) as u16).min(area.width);
        put(&self.host, Rect { width: area.width.saturating_sub(state + GAP), ..area }, STRONG, buffer);
        put(&self.state, Rect { x: area.right() - state, width: state, ..area }, STRONG, buffer);
    }

    fn help(&self, mut area: Rect, buffer: &mut Buffer) {
        let mut lines = self.help.iter();
        lines.next().into_iter().for_each(|title| heading(title, row(&mut area), buffer));
        let columns = area.width.into();
        for line in lines.flat_map(|line| wrap(line, columns)) {
            put(&line, row(&mut area), Style::new(), buffer);
        }
    }
}

/// Draws as many panels below each other as there is room for.
fn stack(panels: &[&PanelView], area: Rect, buffer: &mut Buffer) {
    let most: Vec<u16> = panels.iter().map(|panel| 1 + panel.lines(area.width).len() as u16 + CHART).collect();
    let mut rest = area;
    for (panel, rows) in panels.iter().zip(shares(&most, area.height)) {
        let mine = Rect { height: rows.min(rest.height), ..rest };
        rest = Rect { y: mine.bottom(), height: rest.height - mine.height, ..rest };
        panel.draw(mine, buffer);
    }
}

/// Rows of each panel: as evenly as can be, none more than it has a use for; the last ones are left out when there are too few.
fn shares(most: &[u16], height: u16) -> Vec<u16> {
    let shown = most.len().min((height / LEAST).into());
    let mut rows = vec![LEAST; shown];
    let mut left = height - LEAST * shown as u16;
    while left > 0 {
        let Some(at) = (0..shown).filter(|&at| rows[at] < most[at]).min_by_key(|&at| rows[at]) else { break };
        rows[at] += 1;
        left -= 1;
    }
    rows
}

/// A number on a line: which it is, and where it begins.
type Placed = (usize, u16);

impl PanelView {
    fn pieces(&self) -> impl Iterator<Item = &String> {
        self.drawn.iter().chain(&self.others)
    }

    /// The numbers in lines, as many as go into each.
    fn lines(&self, columns: u16) -> Vec<Vec<Placed>> {
        let mut lines: Vec<Vec<Placed>> = Vec::new();
        let mut end = 0;
        for (at, piece) in self.pieces().enumerate() {
            let length = width(piece) as u16;
            match lines.last_mut().filter(|_| end + GAP + length <= columns) {
                Some(line) => {
                    line.push((at, end + GAP));
                    end += GAP + length;
                }
                None => {
                    lines.push(vec![(at, 0)]);
                    end = length;
                }
            }
        }
        lines
    }

    fn draw(&self, area: Rect, buffer: &mut Buffer) {
        let mut rest = area;
        self.title(row(&mut rest), buffer);
        let mut lines = self.lines(area.width);
        // A chart is worth more than the last of the numbers.
        lines.truncate(usize::from(rest.height.saturating_sub(1).max(1)));
        let pieces: Vec<&String> = self.pieces().collect();
        for line in lines {
            let here = row(&mut rest);
            for (at, begin) in line {
                let style = match at {
                    _ if at >= self.drawn.len() => Style::new(),
                    0 => BAR,
                    _ => SECOND,
                };
                let place = Rect { x: here.x + begin, width: here.width.saturating_sub(begin), ..here };
                put(pieces[at], place, style, buffer);
            }
        }
        chart(&self.chart, rest, buffer);
    }

    /// The heading, and at its right how high the chart is.
    fn title(&self, area: Rect, buffer: &mut Buffer) {
        let scale = clipped(&self.scale, area.width.into());
        let taken = (width(&scale) as u16 + 1).min(area.width);
        heading(&self.title, Rect { width: area.width - taken, ..area }, buffer);
        put(&scale, Rect { x: area.right() - taken + 1, width: taken - 1, ..area }, QUIET, buffer);
        if self.alarm {
            buffer.set_style(Rect { width: (width(&self.title) as u16).min(area.width), ..area }, ALARM);
        }
    }
}

const EIGHTHS: [&str; 9] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];

/// Columns of two colours from the bottom, the newest at the right.
fn chart(columns: &[Option<[f64; 2]>], area: Rect, buffer: &mut Buffer) {
    if area.is_empty() {
        return;
    }
    let shown = columns.len().min(area.width.into());
    let first = area.right() - shown as u16;
    for (x, column) in (first..).zip(&columns[columns.len() - shown..]) {
        let Some([below, above]) = column else {
            buffer.set_stringn(x, area.bottom() - 1, "·", 1, QUIET);
            continue;
        };
        let whole = f64::from(area.height) * 8.0;
        // What is more than nothing shows.
        let eighths = |share: f64| if share > 0.0 { ((share.min(1.0) * whole).round() as u16).max(1) } else { 0 };
        let (split, top) = (eighths(*below), eighths(below + above).max(eighths(*below)));
        for (up, y) in (area.y..area.bottom()).rev().enumerate() {
            let floor = up as u16 * 8;
            let part = |height: u16| usize::from(height.saturating_sub(floor).min(8));
            let (mark, style) = cell(part(split), part(top));
            buffer.set_stringn(x, y, EIGHTHS[mark], 1, style);
        }
    }
}

/// A cell of a column of which so many eighths are of the first colour, and so many of either.
fn cell(first: usize, both: usize) -> (usize, Style) {
    match (first, both) {
        (0, both) => (both, SECOND),
        // The second colour goes on to the top of the cell.
        (first, 8) if first < 8 => (first, BAR.bg(Color::Yellow)),
        // There are no letters of three parts: what there is more of.
        (first, both) if first < both && first * 2 < both => (both, SECOND),
        (_, both) => (both, BAR),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_shared_evenly() {
        let check = |most: &[u16], height, expected: &[u16]| assert_eq!(shares(most, height), expected);
        check(&[13, 13, 13], 21, &[7, 7, 7]);
        check(&[13, 13, 13], 20, &[7, 7, 6]);
        check(&[13, 4, 13], 21, &[9, 4, 8]);
        check(&[13, 13, 13], 5, &[3, 2]);
        check(&[5, 5], 40, &[5, 5]);
        check(&[5], 1, &[]);
    }

    #[test]
    fn cells_have_two_colours() {
        assert_eq!(cell(0, 0).0, 0);
        assert_eq!(cell(8, 8), (8, BAR));
        assert_eq!(cell(3, 8), (3, BAR.bg(Color::Yellow)));
        assert_eq!(cell(1, 5), (5, SECOND));
        assert_eq!(cell(4, 5), (5, BAR));
    }
}
