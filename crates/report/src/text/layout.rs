//! Text in a given number of terminal columns: widths, line breaking for English and Japanese, and the table.

use super::paint::{Paint, Tone};
use crate::escape::plain;
use crate::view::{Row, RowKind, Table};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Columns between the columns of a table.
const GAP: usize = 2;

/// The narrowest column a cell's name is broken into.
const NARROWEST: usize = 9;

/// The narrowest column of cells' names: where names take more lines than figures, nothing is won.
const SHORTEST_NAME: usize = 20;

/// Columns a text takes.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// Breaks a text into lines of at most `width` columns: at blanks, beside wide characters, and within a word only when it is
/// longer than a line. A line begins with no closing mark and ends with no opening one.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.split('\n') {
        let mut line = String::new();
        for piece in pieces(paragraph) {
            let blank = piece == " ";
            if line.width() + piece.width() <= width {
                if !(blank && line.is_empty()) {
                    line.push_str(&piece);
                }
                continue;
            }
            if !line.trim_end().is_empty() {
                lines.push(std::mem::take(&mut line).trim_end().to_owned());
            }
            if !blank {
                line = cut(&piece, width, &mut lines);
            }
        }
        lines.push(line.trim_end().to_owned());
    }
    lines
}

/// Marks and small kana that no line begins with.
const CLING: &str = "、。，．・：；？！」』）】ー々ぁぃぅぇぉっゃゅょァィゥェォッャュョ〜–×,.;:!?)]%";

/// Brackets that no line ends with.
const OPEN: &str = "「『（【([";

/// What must stay together: a word with the marks that cling to it, a number with its unit, a blank, or one wide character with
/// its marks.
fn pieces(text: &str) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    let mut before = ' ';
    for c in text.chars() {
        let wide = |c: char| c.width() == Some(2);
        let joined = match (before, c) {
            (' ', _) => pieces.last().is_some_and(|last| last.len() > 1 && last.ends_with(' ')),
            (_, ' ') => before.is_ascii_digit(),
            _ => OPEN.contains(before) || CLING.contains(c) || !(wide(before) || wide(c)),
        };
        match pieces.last_mut() {
            Some(last) if joined => last.push(c),
            _ => pieces.push(c.to_string()),
        }
        before = c;
    }
    pieces
}

/// Cuts what is longer than a line into full lines; the rest is returned.
fn cut(piece: &str, width: usize, lines: &mut Vec<String>) -> String {
    let mut line = String::new();
    for c in piece.chars() {
        if line.width() + c.width().unwrap_or(0) > width {
            lines.push(std::mem::take(&mut line));
        }
        line.push(c);
    }
    line
}

/// Pads on the right what takes `width` columns, colour not counted.
fn left(text: &str, width: usize, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(width)))
}

/// Pads on the left what takes `width` columns, colour not counted.
fn right(text: &str, width: usize, columns: usize) -> String {
    format!("{}{text}", " ".repeat(columns.saturating_sub(width)))
}

/// The table with its cells as columns when that fits, else as rows, else with some lines for each.
/// `verdicts` are the tones of the cells' verdicts.
pub(crate) fn table(table: &Table, columns: usize, paint: Paint, verdicts: &[Tone]) -> String {
    let heads = table.heads.iter().map(|head| plain(head)).collect();
    let sheet = Sheet { table: &Table { heads, ..table.clone() }, paint, verdicts };
    if let Some(widths) = column_widths(sheet.table, columns) {
        return sheet.cells_as_columns(&widths);
    }
    match row_widths(sheet.table, columns) {
        Some(widths) => sheet.cells_as_rows(&widths),
        None => sheet.cells_in_lines(columns),
    }
}

/// The width of the cells' names and of each kind of figure, when a cell takes a row.
fn row_widths(table: &Table, columns: usize) -> Option<Vec<usize>> {
    let labels: Vec<String> = table.rows.iter().map(|row| row.label.trim().to_owned()).collect();
    let of_row = |(row, label): (&Row, &String)| {
        let figures = row.figures.iter().map(|figure| figure.width()).max().unwrap_or(0);
        figures.max(longest_piece(label))
    };
    let mut figures: Vec<usize> = table.rows.iter().zip(&labels).map(of_row).collect();
    let left = columns.checked_sub(figures.iter().sum::<usize>() + GAP * figures.len())?;
    let longest = table.heads.iter().map(|head| head.width()).max().unwrap_or(0);
    let readable = table.heads.iter().map(|head| longest_piece(head)).max().unwrap_or(0).max(SHORTEST_NAME);
    let names = longest.min(left);
    if names < readable.min(longest) {
        return None;
    }
    widen(&mut figures, &labels, left - names);
    Some(std::iter::once(names).chain(figures).collect())
}

/// Columns of what is not broken in a text.
fn longest_piece(text: &str) -> usize {
    pieces(text).iter().map(|piece| piece.width()).max().unwrap_or(0)
}

/// The width of the labels and of each cell's column, when all of them fit.
fn column_widths(table: &Table, columns: usize) -> Option<Vec<usize>> {
    let labels = table.rows.iter().map(|row| row.label.width()).max().unwrap_or(0);
    let mut widths = vec![labels];
    for (index, head) in table.heads.iter().enumerate() {
        let figures = table.rows.iter().map(|row| row.figures[index].width()).max().unwrap_or(0);
        widths.push(figures.max(longest_piece(head)).max(NARROWEST));
    }
    let needed = widths.iter().sum::<usize>() + GAP * table.heads.len();
    widen(&mut widths[1..], &table.heads, columns.checked_sub(needed)?);
    Some(widths)
}

/// Gives what is left to the names that are broken most.
fn widen(widths: &mut [usize], names: &[String], left: usize) {
    for _ in 0..left {
        let lines = |(&column, name): (&usize, &String)| (wrap(name, column).len(), name.width());
        match widths.iter().zip(names).map(lines).enumerate().rev().max_by_key(|(_, lines)| *lines) {
            Some((index, (2.., _))) => widths[index] += 1,
            _ => break,
        }
    }
}

/// A table about to be drawn.
struct Sheet<'a> {
    table: &'a Table,
    paint: Paint,
    verdicts: &'a [Tone],
}

impl Sheet<'_> {
    fn cells_as_columns(&self, widths: &[usize]) -> String {
        let mut out = String::new();
        let mut push = |line: &str| {
            out.push_str(line.trim_end());
            out.push('\n');
        };
        self.head(self.table.heads.iter().map(String::as_str), widths).iter().for_each(|line| push(line));
        for row in &self.table.rows {
            let mut line = left(&row.label, row.label.width(), widths[0]);
            for (index, &columns) in widths[1..].iter().enumerate() {
                line.push_str(&" ".repeat(GAP));
                line.push_str(&right(&self.figure(row, index), row.figures[index].width(), columns));
            }
            push(&line);
        }
        out
    }

    fn cells_as_rows(&self, widths: &[usize]) -> String {
        let mut lines = self.head(self.table.rows.iter().map(|row| row.label.trim()), widths);
        for (index, head) in self.table.heads.iter().enumerate() {
            // A name that is broken has the figures beside its last line.
            let mut names = wrap(head, widths[0]);
            let last = names.pop().unwrap_or_default();
            lines.extend(names.iter().map(|name| self.paint.tone(Tone::Strong, name)));
            let mut line = left(&self.paint.tone(Tone::Strong, &last), last.width(), widths[0]);
            for (row, &columns) in self.table.rows.iter().zip(&widths[1..]) {
                line.push_str(&" ".repeat(GAP));
                line.push_str(&right(&self.figure(row, index), row.figures[index].width(), columns));
            }
            lines.push(line);
        }
        lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
    }

    /// The names of columns, broken into their widths, and the line below them.
    fn head<'n>(&self, names: impl Iterator<Item = &'n str>, widths: &[usize]) -> Vec<String> {
        let names: Vec<Vec<String>> = names.zip(&widths[1..]).map(|(name, &columns)| wrap(name, columns)).collect();
        let height = names.iter().map(Vec::len).max().unwrap_or(0);
        let line = |level: usize| {
            let mut line = " ".repeat(widths[0]);
            for (name, &columns) in names.iter().zip(&widths[1..]) {
                // Names of different height all end on the line above the figures.
                let text = (level + name.len()).checked_sub(height).map_or("", |i| name[i].as_str());
                line.push_str(&" ".repeat(GAP));
                line.push_str(&right(&self.paint.tone(Tone::Strong, text), text.width(), columns));
            }
            line
        };
        let below = "─".repeat(widths.iter().sum::<usize>() + GAP * names.len());
        (0..height).map(line).chain([below]).collect()
    }

    /// One block per cell: its name on a line, its figures below, as many on a line as fit.
    fn cells_in_lines(&self, columns: usize) -> String {
        let mut out = String::new();
        for (index, head) in self.table.heads.iter().enumerate() {
            for line in wrap(head, columns) {
                out.push_str(&self.paint.tone(Tone::Strong, &line));
                out.push('\n');
            }
            let mut taken = 0;
            for row in &self.table.rows {
                let needed = GAP + row.label.width() + 1 + row.figures[index].width();
                let starts_anew = matches!(row.kind, RowKind::Failed | RowKind::Ratio);
                if taken > 0 && (starts_anew || taken + needed > columns) {
                    out.push('\n');
                    taken = 0;
                }
                out.push_str(&format!("{}{} {}", " ".repeat(GAP), row.label, self.figure(row, index)));
                taken += needed;
            }
            out.push('\n');
        }
        out
    }

    fn figure(&self, row: &Row, index: usize) -> String {
        let tone = match row.kind {
            RowKind::Verdict => self.verdicts.get(index).copied().unwrap_or(Tone::Plain),
            _ => Tone::Plain,
        };
        self.paint.tone(tone, &row.figures[index])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, columns: usize, expected: &[&str]) {
        let lines = wrap(text, columns);
        assert_eq!(lines, expected);
        assert!(lines.iter().all(|line| width(line) <= columns.max(2)), "{lines:?}");
    }

    #[test]
    fn lines_break_where_readers_expect() {
        check("a load average is not a CPU", 10, &["a load", "average is", "not a CPU"]);
        check("メモリー不足を示しています。", 12, &["メモリー不足", "を示していま", "す。"]);
        check("CPU 使用率は user と system", 12, &["CPU 使用率は", "user と", "system"]);
        check("MaxRequestWorkers", 6, &["MaxReq", "uestWo", "rkers"]);
        check("大きい（約 7 倍）です", 8, &["大きい", "（約", "7 倍）で", "す"]);
        check("", 10, &[""]);
        check("one\ntwo", 10, &["one", "two"]);
        check("a limit of 200 MiB", 14, &["a limit of", "200 MiB"]);
        check("メジャーフォールト", 6, &["メ", "ジャー", "フォー", "ルト"]);
    }
}
