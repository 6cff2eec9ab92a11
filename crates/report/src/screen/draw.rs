//! The view on a grid of letters, as large as it may be.

use super::fit::{Room, fit};
use super::{ListView, LiveView, MarkView, RateView, TimesView};
use crate::load::{BarView, FactView};
use crate::text::layout::{width, wrap};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::widgets::{LineGauge, Sparkline, SparklineBar, Widget};

/// From so many columns on there are two of parts beside each other.
const WIDE: u16 = 72;
/// Columns between them.
const GAP: u16 = 2;
/// From so many rows on there are all lines above the parts.
const HIGH: u16 = 16;
/// From so many rows on there are lines above and below the parts at all.
const LOW: u16 = 6;
/// Failures, steps and notes that are shown before anything else gets more room.
const FEW: u16 = 4;

pub(crate) const STRONG: Style = Style::new().add_modifier(Modifier::BOLD);
pub(crate) const QUIET: Style = Style::new().add_modifier(Modifier::DIM);
pub(crate) const WARNING: Style = Style::new().fg(Color::Yellow);
// Blue, as most colour-blind readers tell it from red.
pub(crate) const BAR: Style = Style::new().fg(Color::Blue);
const BAD: Style = Style::new().fg(Color::Red);

impl Widget for &LiveView {
    fn render(self, area: Rect, buffer: &mut Buffer) {
        let area = area.intersection(buffer.area);
        if area.is_empty() {
            return;
        }
        let mut rest = area;
        if area.height >= LOW {
            self.head(row(&mut rest), buffer);
        }
        if area.height >= HIGH {
            put(&self.asked, row(&mut rest), QUIET, buffer);
        }
        self.progress(row(&mut rest), buffer);
        if area.height >= LOW {
            rest.height -= 1;
            put(&self.keys, Rect { y: rest.bottom(), height: 1, ..rest }, QUIET, buffer);
        }
        if rest.width < WIDE {
            return stack(&self.one_column(rest.width), rest, buffer);
        }
        // What is on the right has longer lines.
        let left = (u32::from(rest.width - GAP) * 12 / 25) as u16;
        let right = rest.width - GAP - left;
        stack(&self.left_column(left), Rect { width: left, ..rest }, buffer);
        stack(&self.right_column(right), Rect { x: rest.x + left + GAP, width: right, ..rest }, buffer);
    }
}

impl LiveView {
    /// Whom it goes to, and at the right what goes on.
    fn head(&self, area: Rect, buffer: &mut Buffer) {
        let doing = (width(&self.doing) as u16).min(area.width);
        let target = area.width.saturating_sub(doing + GAP);
        put(&self.target, Rect { width: target, ..area }, STRONG, buffer);
        put(&self.doing, Rect { x: area.right() - doing, width: doing, ..area }, STRONG, buffer);
    }

    fn progress(&self, area: Rect, buffer: &mut Buffer) {
        let Some(done) = self.done else { return put(&self.clock, area, Style::new(), buffer) };
        let gauge = LineGauge::default().ratio(done.clamp(0.0, 1.0)).label(clipped(&self.clock, area.width.into()));
        gauge.filled_symbol("█").unfilled_symbol("░").filled_style(BAR).unfilled_style(QUIET).render(area, buffer);
    }

    fn left_column(&self, columns: u16) -> Vec<Part<'_>> {
        let [failures, steps, notes] = self.lists([1, 2, 4], columns);
        vec![self.rate(0), failures, steps, self.bars(3), notes]
    }

    fn right_column(&self, columns: u16) -> Vec<Part<'_>> {
        vec![self.times(0), self.facts(1), self.visitor(2, columns)]
    }

    fn one_column(&self, columns: u16) -> Vec<Part<'_>> {
        let [failures, steps, notes] = self.lists([2, 3, 7], columns);
        let (rate, times, facts) = (self.rate(0), self.times(1), self.facts(4));
        vec![rate, times, failures, steps, facts, self.bars(5), self.visitor(6, columns), notes]
    }

    /// Failures, steps and notes.
    fn lists(&self, ranks: [u8; 3], columns: u16) -> [Part<'_>; 3] {
        [
            Part::list(&self.failures, WARNING, ranks[0], columns),
            Part::list(&self.steps, Style::new(), ranks[1], columns),
            Part::list(&self.notes, WARNING, ranks[2], columns),
        ]
    }

    fn rate(&self, rank: u8) -> Part<'_> {
        let lines = self.rate.lines.len() as u16;
        let room = Room { rank, needed: true, elastic: true, least: 1 + lines, good: 4 + lines, most: 9 + lines };
        Part { title: &self.rate.title, room, body: Body::Rate(&self.rate) }
    }

    fn times(&self, rank: u8) -> Part<'_> {
        let all = 2 + self.times.rows.len() as u16;
        let room = Room { rank, needed: true, elastic: false, least: 3, good: all, most: all };
        Part { title: &self.times.title, room, body: Body::Times(&self.times) }
    }

    fn visitor(&self, rank: u8, columns: u16) -> Part<'_> {
        Part::list(&self.visitor, Style::new(), rank, columns)
    }

    /// Fewer bars would be another distribution, so there are all or none.
    fn bars(&self, rank: u8) -> Part<'_> {
        let bars = &self.histogram.bars;
        let rows = 1 + bars.len() as u16;
        Part { title: &self.histogram.title, room: Room::of(rank, rows, rows, bars.len()), body: Body::Bars(bars) }
    }

    fn facts(&self, rank: u8) -> Part<'_> {
        let facts = &self.machine.facts;
        let rows = 1 + facts.len() as u16;
        Part { title: &self.machine.title, room: Room::of(rank, 2, rows, facts.len()), body: Body::Facts(facts) }
    }
}

impl Room {
    /// Of a part that may be left out, and is when there is nothing in it.
    fn of(rank: u8, least: u16, most: u16, count: usize) -> Room {
        if count == 0 {
            return Room { rank, needed: false, elastic: false, least: 0, good: 0, most: 0 };
        }
        Room { rank, needed: false, elastic: true, least, good: most, most }
    }
}

/// A part of the screen: a heading and what is below it.
struct Part<'a> {
    title: &'a str,
    room: Room,
    body: Body<'a>,
}

enum Body<'a> {
    Rate(&'a RateView),
    Times(&'a TimesView),
    Lines(Vec<String>, Style),
    Bars(&'a [BarView]),
    Facts(&'a [FactView]),
}

impl<'a> Part<'a> {
    /// A list in so many columns.
    fn list(list: &'a ListView, style: Style, rank: u8, columns: u16) -> Part<'a> {
        let lines: Vec<String> = list.lines.iter().flat_map(|line| wrap(line, columns.into())).collect();
        let count = u16::try_from(lines.len()).unwrap_or(u16::MAX - 1);
        let room = Room { good: 1 + count.min(FEW), ..Room::of(rank, 2, 1 + count, lines.len()) };
        Part { title: &list.title, room, body: Body::Lines(lines, style) }
    }
}

/// Draws as many parts below each other as there is room for.
fn stack(parts: &[Part<'_>], area: Rect, buffer: &mut Buffer) {
    let rooms: Vec<Room> = parts.iter().map(|part| part.room).collect();
    let mut rest = area;
    for (part, rows) in parts.iter().zip(fit(&rooms, area.height)).filter(|(_, rows)| *rows > 0) {
        let mut mine = Rect { height: rows.min(rest.height), ..rest };
        rest = Rect { y: mine.bottom(), height: rest.height - mine.height, ..rest };
        heading(part.title, row(&mut mine), buffer);
        match &part.body {
            Body::Rate(rate) => draw_rate(rate, mine, buffer),
            Body::Times(times) => draw_times(times, mine, buffer),
            Body::Lines(lines, style) => lines.iter().for_each(|line| put(line, row(&mut mine), *style, buffer)),
            Body::Bars(bars) => draw_bars(bars, mine, buffer),
            Body::Facts(facts) => draw_facts(facts, mine, buffer),
        }
    }
}

pub(crate) fn heading(title: &str, area: Rect, buffer: &mut Buffer) {
    let taken = (width(title) as u16 + 1).min(area.width);
    put(title, area, STRONG, buffer);
    put(
        &"─".repeat((area.width - taken).into()),
        Rect { x: area.x + taken, width: area.width - taken, ..area },
        QUIET,
        buffer,
    );
}

fn draw_rate(rate: &RateView, mut area: Rect, buffer: &mut Buffer) {
    rate.lines.iter().for_each(|line| put(line, row(&mut area), Style::new(), buffer));
    let first = rate.history.len().saturating_sub(area.width.into());
    // What is drawn is whole; less than one a second is not nothing.
    let mark = |second: &MarkView| {
        let style = if second.failed { BAD } else { BAR };
        SparklineBar::from(second.good.ceil() as u64).style(style)
    };
    Sparkline::default().data(rate.history[first..].iter().map(mark)).render(area, buffer);
}

/// The table where it fits, else the first of its columns line by line.
fn draw_times(times: &TimesView, mut area: Rect, buffer: &mut Buffer) {
    if usize::from(area.height) <= times.rows.len() {
        let short = times.rows.iter().map(|(label, [figure, _])| format!("{label} {figure}"));
        return filled(short, area.width.into())
            .iter()
            .for_each(|line| put(line, row(&mut area), Style::new(), buffer));
    }
    let labels = times.rows.iter().map(|(label, _)| width(label)).max().unwrap_or(0) as u16;
    let columns = [0, 1].map(|column| {
        let figures = times.rows.iter().map(|(_, figures)| width(&figures[column])).max().unwrap_or(0);
        figures.max(width(&times.heads[column])) as u16
    });
    let mut line = |label: &str, figures: &[String; 2], style: Style| {
        let line = row(&mut area);
        put(label, line, QUIET, buffer);
        let mut end = labels;
        for (figure, column) in figures.iter().zip(columns) {
            end += GAP + column;
            let begin = end.saturating_sub(width(figure) as u16);
            put(figure, Rect { x: line.x + begin, width: line.width.saturating_sub(begin), ..line }, style, buffer);
        }
    };
    line("", &times.heads, QUIET);
    times.rows.iter().for_each(|(label, figures)| line(label, figures, Style::new()));
}

/// Pieces put into lines, as many as go into each.
fn filled(pieces: impl Iterator<Item = String>, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for piece in pieces {
        match lines.last_mut().filter(|line| width(line) + 2 + width(&piece) <= columns) {
            Some(line) => *line = format!("{line}  {piece}"),
            None => lines.push(piece),
        }
    }
    lines
}

/// Bars from the left, what they stand for before them and how many there are behind; what is more than nothing has a bar.
fn draw_bars(bars: &[BarView], mut area: Rect, buffer: &mut Buffer) {
    let labels = bars.iter().map(|bar| width(&bar.label)).max().unwrap_or(0);
    let counts = bars.iter().map(|bar| bar.count.to_string().len()).max().unwrap_or(0);
    let longest = usize::from(area.width).saturating_sub(labels + counts + 2);
    let most = bars.iter().map(|bar| bar.share).fold(f64::MIN_POSITIVE, f64::max);
    for bar in bars {
        let line = row(&mut area);
        let indent = " ".repeat(labels - width(&bar.label));
        put(&format!("{indent}{} {:>counts$}", bar.label, bar.count), line, Style::new(), buffer);
        let columns = (bar.share / most * longest as f64).round() as usize;
        let drawn = "█".repeat(columns.max(usize::from(bar.count > 0)));
        let begin = (labels + counts + 2) as u16;
        let place = Rect { x: line.x.saturating_add(begin), width: line.width.saturating_sub(begin), ..line };
        put(&drawn, place, BAR, buffer);
    }
}

fn draw_facts(facts: &[FactView], mut area: Rect, buffer: &mut Buffer) {
    let labels = facts.iter().map(|fact| width(&fact.label)).max().unwrap_or(0) as u16;
    for fact in facts {
        let line = row(&mut area);
        put(&fact.label, line, QUIET, buffer);
        let begin = labels + GAP;
        let place = Rect { x: line.x.saturating_add(begin), width: line.width.saturating_sub(begin), ..line };
        put(&fact.text, place, Style::new(), buffer);
    }
}

/// Takes the first row; one without height when there is none.
pub(crate) fn row(area: &mut Rect) -> Rect {
    let first = Rect { height: area.height.min(1), ..*area };
    *area = Rect { y: first.bottom(), height: area.height - first.height, ..*area };
    first
}

/// A text on one row; what does not fit is cut, and that shows.
pub(crate) fn put(text: &str, area: Rect, style: Style, buffer: &mut Buffer) {
    if !area.intersection(buffer.area).is_empty() {
        buffer.set_stringn(area.x, area.y, clipped(text, area.width.into()), area.width.into(), style);
    }
}

pub(crate) fn clipped(text: &str, columns: usize) -> String {
    if width(text.trim_end()) <= columns {
        return text.to_owned();
    }
    let mut cut = String::new();
    for c in text.chars() {
        if width(&cut) + width(c.encode_utf8(&mut [0; 4])) >= columns {
            break;
        }
        cut.push(c);
    }
    if columns > 0 {
        cut.push('…');
    }
    cut
}
