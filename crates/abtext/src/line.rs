//! What one line is: figures of ab, a line of ab without any, a command, or something else.

use crate::clean::{is_decoration, without_decoration};
use crate::command::Command;
use crate::field::{CAUSES, Field, Kind, LABELS, ROWS, Row, Stat};
use crate::number::Number;

/// A line, by what it means.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Line {
    /// Nothing stands in it.
    Blank,
    /// A report begins, or its test does.
    Begins(Option<Found>),
    /// Somebody calls ab.
    Command(Command),
    /// Figures.
    Figures(Vec<Found>),
    /// A rate in words like ab's, without ab's unit: what an author made of reports.
    Stated(Number),
    /// A row of an author's table of reports: the same figure of several, with its unit behind each.
    Row(Field, Vec<Number>),
    /// ab prints such a line; no figure stands in it.
    Known,
    /// ab prints no such line.
    Other,
}

/// One figure of a line.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Found {
    pub(crate) field: Field,
    pub(crate) written: String,
    pub(crate) number: Option<Number>,
    pub(crate) glued: bool,
}

/// Beginnings of lines of ab that hold no figure.
const KNOWN: &[&str] = &[
    "Copyright ",
    "Licensed to The Apache",
    "This is ApacheBench",
    "Completed ",
    "Finished ",
    "Send request ",
    "Connection Times (ms)",
    "min ",
    "Percentage of the requests",
    "WARNING: ",
    "ERROR: ",
    "deviation apart.",
    "These results are",
    "..done",
    "done",
];

/// What a line is; `number` counts lines from 1.
pub(crate) fn read(line: &str, number: usize) -> Line {
    // A blank line may have a number, and some authors leave out lines with a colon.
    if line.trim().is_empty() || is_decoration(line) {
        return Line::Blank;
    }
    if let Some(command) = Command::find(line, number) {
        return Line::Command(command);
    }
    let text = without_decoration(line);
    if let Some(rest) = strip(text, "This is ApacheBench, Version ") {
        let version = rest.split(' ').next().unwrap_or_default();
        return Line::Begins(Some(Found::text(Field::Version, version)));
    }
    if let Some(rest) = strip(text, "Benchmarking ") {
        return if rest.contains("(be patient") { Line::Begins(None) } else { Line::Other };
    }
    let figures = labelled(text).or_else(|| causes(line)).or_else(|| percentile(line)).or_else(|| further_rate(line));
    match figures.or_else(|| times(text)).or_else(|| row(text)) {
        Some(line) => line,
        None if KNOWN.iter().any(|known| strip(text, known).is_some()) => Line::Known,
        None => Line::Other,
    }
}

impl Found {
    fn text(field: Field, text: &str) -> Found {
        Found { field, written: text.trim().to_owned(), number: None, glued: false }
    }

    fn number(field: Field, written: &str) -> Option<Found> {
        let number = Some(Number::parse(written)?);
        Some(Found { field, written: written.to_owned(), number, glued: false })
    }
}

/// What follows a beginning, whatever its case.
fn strip<'a>(text: &'a str, beginning: &str) -> Option<&'a str> {
    let head = text.get(..beginning.len())?;
    head.eq_ignore_ascii_case(beginning).then(|| &text[beginning.len()..])
}

/// A label and its value.
fn labelled(text: &str) -> Option<Line> {
    let (field, kind, rest) =
        LABELS.iter().find_map(|&(label, field, kind)| strip(text, label).map(|rest| (field, kind, rest.trim())))?;
    if kind == Kind::Text {
        return Some(Line::Figures(vec![Found::text(field, rest)]));
    }
    if field == Field::DocumentLength && rest == "Variable" {
        return Some(Line::Figures(vec![Found::text(field, rest)]));
    }
    // A unit may cling to its number where a page lost the blank between them.
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '-').unwrap_or(rest.len());
    let (written, unit) = rest.split_at(end);
    // Words of another language right behind it make it a sentence, not a figure.
    if unit.starts_with(|c: char| !c.is_ascii()) {
        return Some(Line::Other);
    }
    let Some(mut found) = Found::number(field, written) else { return Some(Line::Other) };
    match field {
        Field::Rate if !unit.contains("#/sec") => return found.number.map(Line::Stated),
        Field::Mean if unit.contains("across") => found.field = Field::Across,
        _ => {}
    }
    Some(Line::Figures(vec![found]))
}

/// `(Connect: 0, Receive: 0, Length: 11, Exceptions: 0)`, with the causes that a version knows.
fn causes(line: &str) -> Option<Line> {
    let (before, rest) = line.split_once('(')?;
    let list = rest.trim_end().strip_suffix(')')?;
    let of = |part: &str| {
        let (name, count) = part.split_once(':')?;
        let (_, field) = CAUSES.iter().find(|(label, _)| label.eq_ignore_ascii_case(name.trim()))?;
        Found::number(*field, count.trim())
    };
    let found: Option<Vec<Found>> = list.split(',').map(of).collect();
    found.filter(|_| is_decoration(before)).map(Line::Figures)
}

/// `  50%    117` and ` 100%  12182 (longest request)`; the sign or the blanks behind `100` may be lost.
fn percentile(line: &str) -> Option<Line> {
    let longest = ["(longest request)", "(last request)"].iter().find_map(|end| line.trim_end().strip_suffix(end));
    let figures = longest.unwrap_or(line).trim_end();
    let (percent, value, glued) = match figures.split_once('%') {
        Some((percent, value)) => (percent, value.trim_start(), false),
        None => {
            longest?;
            let (before, last) = figures.rsplit_once(' ').unwrap_or(("", figures));
            match last.strip_prefix("100").filter(|value| !value.is_empty() && !before.ends_with("100")) {
                // Blanks are never all lost between two figures when one of them stands alone.
                Some(value) if is_decoration(before) => ("100", value, true),
                _ => (before, last, false),
            }
        }
    };
    let (before, percent) = percent.trim_end().rsplit_once(' ').unwrap_or(("", percent.trim_end()));
    let percent: u8 = percent.parse().ok().filter(|percent| *percent <= 100)?;
    let mut found = Found::number(Field::Percentile(percent), value)?;
    found.glued = glued;
    if glued {
        found.written = format!("100{value}");
    }
    is_decoration(before).then(|| Line::Figures(vec![found]))
}

/// `                        1.23 kb/s sent`, below the transfer rate.
fn further_rate(line: &str) -> Option<Line> {
    let mut words = line.split_whitespace().rev();
    let (direction, unit, written) = (words.next()?, words.next()?, words.next()?);
    let field = match (unit, direction) {
        ("kb/s", "sent") => Field::SentRate,
        ("kb/s", "total") => Field::TotalRate,
        _ => return None,
    };
    words.all(is_decoration).then(|| Some(Line::Figures(vec![Found::number(field, written)?])))?
}

/// A row of the table of times: five columns, or three when ab was asked for no deviations.
fn times(text: &str) -> Option<Line> {
    const FIVE: [Stat; 5] = [Stat::Min, Stat::Mean, Stat::Sd, Stat::Median, Stat::Max];
    const THREE: [Stat; 3] = [Stat::Min, Stat::Mean, Stat::Max];
    let (row, rest) = ROWS.iter().find_map(|(label, row)| Some((*row, strip(text, label)?)))?;
    let words: Vec<&str> = rest.split_whitespace().collect();
    let stats: &[Stat] = match words.len() {
        5 => &FIVE,
        3 => &THREE,
        2 => return glued_times(row, text),
        _ => return None,
    };
    let found: Option<Vec<Found>> =
        stats.iter().zip(&words).map(|(stat, word)| Found::number(Field::Times(row, *stat), word)).collect();
    found.map(Line::Figures)
}

/// `Requests per second195.2 [#/sec]120.3 [#/sec]`: a table's row, whose borders a page lost.
fn row(text: &str) -> Option<Line> {
    const ROWS: [(&str, Field, &[&str]); 2] = [
        ("Requests per second", Field::Rate, &["[#/sec]", "#/sec", "req/s"]),
        ("Time per request", Field::Across, &["[ms]", "ms"]),
    ];
    let (field, units, mut rest) =
        ROWS.iter().find_map(|(label, field, units)| Some((*field, *units, strip(text, label)?.trim())))?;
    let mut numbers = Vec::new();
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, behind) = rest.split_at(end);
        numbers.push(Number::parse(number)?);
        rest = units.iter().find_map(|unit| behind.trim_start().strip_prefix(unit))?.trim_start();
    }
    (numbers.len() > 1).then_some(Line::Row(field, numbers))
}

/// Three columns without a blank between the last two, because a time has five digits: the columns' places tell them apart.
fn glued_times(row: Row, text: &str) -> Option<Line> {
    let column = |stat, from: usize, to: usize| {
        let written = text.get(from..to.min(text.trim_end().len()))?;
        Found::number(Field::Times(row, stat), written.trim())
    };
    let (mean, mut max) = (column(Stat::Mean, 18, 23)?, column(Stat::Max, 23, usize::MAX)?);
    max.glued = true;
    Some(Line::Figures(vec![column(Stat::Min, 12, 17)?, mean, max]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clean::plain;

    fn check(line: &str, expected: &str) {
        let seen = match read(&plain(line), 7) {
            Line::Figures(found) => {
                let shown = |f: &Found| {
                    let glued = if f.glued { " glued" } else { "" };
                    match f.number {
                        Some(number) => format!("{} {}{glued}", f.field, number.value),
                        None => format!("{} `{}`", f.field, f.written),
                    }
                };
                found.iter().map(shown).collect::<Vec<_>>().join(", ")
            }
            Line::Row(field, numbers) => format!("{field} {:?}", numbers.iter().map(|n| n.value).collect::<Vec<_>>()),
            Line::Stated(number) => format!("stated {}", number.value),
            Line::Command(command) => command.written,
            other => format!("{other:?}"),
        };
        assert_eq!(seen, expected, "{line}");
    }

    #[test]
    fn labels_and_their_figures() {
        check("Time taken for tests:   12.72722 seconds", "seconds 12.72722");
        check("  12. Requests per second:    835.20 [#/sec] (mean)", "rate 835.2");
        check("Requests per second: 826.355 (平均)", "stated 826.355");
        check("  1. Requests per second(スループット):", "Other");
        check("  • Requests per second: 1秒間に処理された", "Other");
        check(
            "Time per request:       1.197 [ms] (mean, across all concurrent requests)",
            "time_per_request.across 1.197",
        );
        check("Time per request:1.197[ms] (mean)", "time_per_request.mean 1.197");
        check("Document Length:        Variable", "document_length `Variable`");
        check("Server Software:", "software ``");
        check("Transfer rate:          12.34 kb/s received", "transfer_rate 12.34");
        check("                        0.87 kb/s total", "total_rate 0.87");
        check("Ｓｅｒｖｅｒ　Ｐｏｒｔ：　８０", "port 80");
    }

    #[test]
    fn failures_by_cause() {
        check(
            "   (Connect: 0, Receive: 0, Length: 11, Exceptions: 2)",
            "failed.connect 0, failed.receive 0, failed.length 11, failed.exceptions 2",
        );
        check("   (Connect: 0, Length: 1, Exceptions: 0)", "failed.connect 0, failed.length 1, failed.exceptions 0");
        check("(Connect: 0, Weather: 1)", "Other");
    }

    #[test]
    fn percentiles_with_and_without_their_sign() {
        check("  50%    117", "p50 117");
        check("  28. 50%    117", "p50 117");
        check("28 50% 117", "p50 117");
        check(" 100%  66433 (longest request)", "p100 66433");
        check("  73. 10012182 (longest request)", "p100 12182 glued");
        check("10012182 (longest request)", "p100 12182 glued");
        check("100 12182 (longest request)", "p100 12182");
        check(" 100%    100 (last request)", "p100 100");
        check("50% of all", "Other");
        check("約 50% 3", "Other");
        check("(longest request)", "Other");
    }

    #[test]
    fn rows_of_times() {
        check(
            "Connect:        0   12  11.3     10      74",
            "connect.min 0, connect.mean 12, connect.sd 11.3, connect.median 10, connect.max 74",
        );
        check("Total:          1     9   12", "total.min 1, total.mean 9, total.max 12");
        check("Total:          1     912345", "total.min 1, total.mean 9, total.max 12345 glued");
        check("Total: 5", "Other");
        check("Total: 1 912345", "Other");
    }

    #[test]
    fn tables_that_lost_their_borders() {
        check("Requests per second195.2 [#/sec]120.3 [#/sec]", "rate [195.2, 120.3]");
        check("Time per request5.123 ms8.321 ms", "time_per_request.across [5.123, 8.321]");
        check("Time per request 5.123 [ms]  8.321 [ms] 9 ms", "time_per_request.across [5.123, 8.321, 9.0]");
        check("Requests per second195.2 [#/sec]", "Other");
        check("Requests per second from 10 to 12", "Other");
        check("Requests per second", "Other");
    }

    #[test]
    fn lines_without_figures() {
        check("", "Blank");
        check("  4.  ", "Blank");
        check(":", "Blank");
        check("Completed 1000 requests", "Known");
        check("              min  mean[+/-sd] median   max", "Known");
        check("Benchmarking localhost (be patient)", "Begins(None)");
        check("Benchmarking is fun", "Other");
        check("# ab -n 10 http://h/", "ab -n 10 http://h/");
        check("約4.5%低下する", "Other");
    }
}
