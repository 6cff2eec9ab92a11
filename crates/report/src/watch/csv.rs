//! The file of `--output`, as dstat writes it: who, when and how, two lines of headings, and one line for each final row.
//!
//! Every module is in it, also those that do not fit on the screen. Numbers are neither rounded nor given units.

use super::cell::{Cell, Kind};
use super::draw::{Block, Screen};
use super::module::Title;
use super::number::Halves;
use super::{Compat, Tick};

/// Who wrote the file, and when.
#[derive(Debug, Clone, Copy)]
pub struct Origin<'a> {
    /// The name of the host.
    pub host: &'a str,
    /// The name of the user.
    pub user: &'a str,
    /// What was typed behind the name of the program.
    pub words: &'a str,
    /// The date, as `20 Nov 2026 21:34:17 UTC`.
    pub date: &'a str,
    /// Rows are added to a file that has some already.
    pub appended: bool,
}

/// The lines before the headings.
#[must_use]
pub fn opening(compat: Compat, origin: &Origin<'_>) -> String {
    let Origin { host, user, words, date, appended } = origin;
    let (name, program, author, home) = match compat {
        Compat::Dstat07 => {
            ("Dstat 0.7.2", "dstat", "Dag Wieers <dag@wieers.com>", "http://dag.wieers.com/home-made/dstat/")
        }
        Compat::Dstat08 => {
            ("Dstat 0.8.0", "dstat", "Dag Wieers <dag@wieers.com>", "http://dag.wieers.com/home-made/dstat/")
        }
        Compat::Dool => ("dool 1.3.8", "dool", "Scott Baker", "https://github.com/scottchiefbaker/dool/"),
    };
    let mut out = if *appended {
        "\n\n".to_owned()
    } else {
        format!("\"{name} CSV output\"\n\"Author:\",\"{author}\",,,,\"URL:\",\"{home}\"\n")
    };
    out += &format!("\"Host:\",{},,,,\"User:\",{}\n", quoted(host), quoted(user));
    out += &format!("\"Cmdline:\",{},,,,\"Date:\",{}\n", quoted(&format!("{program} {words}")), quoted(date));
    if compat == Compat::Dstat07 {
        out.push('\n');
    }
    out
}

/// The two lines of headings; `epoch` for a last column that dstat has not: when each row was taken.
#[must_use]
pub fn headings(screen: &Screen, epoch: bool) -> String {
    let line = |of: fn(&Screen, &Block) -> String| {
        let mut fields: Vec<_> = screen.blocks().iter().map(|block| of(screen, block)).collect();
        if epoch {
            fields.push("\"epoch\"".to_owned());
        }
        fields.join(",") + "\n"
    };
    line(titles) + &line(nicks)
}

/// One row.
#[must_use]
pub fn row(screen: &Screen, tick: &Tick<'_>, epoch: bool) -> String {
    let mut fields = Vec::new();
    for block in screen.blocks() {
        let bits = screen.style().compat == Compat::Dool && screen.style().bits;
        for (at, cell) in tick.cells(&block.shown, screen.style().compat).into_iter().flatten().enumerate() {
            let formats = &block.layout.formats;
            let in_bits = bits && formats.get(at % formats.len()).is_some_and(|format| format.kind == Kind::Bytes);
            fields.push(match cell {
                Cell::Text(text) => text,
                Cell::Top(shown) if shown.csv.contains([',', '"', '\n']) => quoted(&shown.csv),
                Cell::Top(shown) => shown.csv,
                Cell::Number(None) => String::new(),
                Cell::Number(Some(value)) => number(if in_bits { value * 8.0 } else { value }, screen.style().compat),
            });
        }
    }
    if epoch {
        fields.push(format!("{:.3}", tick.epoch));
    }
    fields.join(",") + "\n"
}

fn titles(_: &Screen, block: &Block) -> String {
    let rest = ",".repeat(block.layout.nicks.len().saturating_sub(1));
    match &block.layout.title {
        Title::One(title) => {
            // dstat has one heading over several swaps, too.
            let columns = block.layout.nicks.len() * block.lists();
            format!("{}{}", quoted(title), ",".repeat(columns.saturating_sub(1)))
        }
        Title::Each(titles) => {
            titles.iter().map(|title| format!("{}{rest}", quoted(title))).collect::<Vec<_>>().join(",")
        }
    }
}

fn nicks(screen: &Screen, block: &Block) -> String {
    let nicks = &block.layout.nicks;
    let fields: Vec<String> = match &block.layout.title {
        Title::Each(titles) if titles.len() > 1 && screen.style().compat != Compat::Dstat07 => {
            titles.iter().flat_map(|title| nicks.iter().map(move |nick| quoted(&format!("{title}:{nick}")))).collect()
        }
        _ => (0..block.lists()).flat_map(|_| nicks.iter().map(|nick| quoted(nick))).collect(),
    };
    fields.join(",")
}

/// A number as the version's Python prints it.
fn number(value: f64, compat: Compat) -> String {
    let halves = if compat == Compat::Dstat07 { Halves::Away } else { Halves::Even };
    if value != halves.round(value) {
        format!("{value:.3}")
    } else if compat != Compat::Dstat07 {
        format!("{value:.0}")
    } else if value.abs() < 1e12 {
        format!("{value:.1}")
    } else {
        // Python 2 shows twelve digits of a float.
        let (digits, exponent) =
            format!("{value:.11e}").split_once('e').map_or((String::new(), String::new()), |(d, e)| {
                (d.trim_end_matches('0').trim_end_matches('.').to_owned(), e.to_owned())
            });
        format!("{digits}e+{exponent:0>2}")
    }
}

/// A text between quotes; those within are doubled, which dstat forgets.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_both_pythons() {
        let check = |value, compat, expected: &str| assert_eq!(number(value, compat), expected);
        check(8746.0, Compat::Dstat08, "8746");
        check(0.3242, Compat::Dstat08, "0.324");
        check(8746.0, Compat::Dstat07, "8746.0");
        check(0.0, Compat::Dstat07, "0.0");
        check(34.8125, Compat::Dstat07, "34.812");
        check(1_234_567_890_123.0, Compat::Dstat07, "1.23456789012e+12");
        check(1e12, Compat::Dstat07, "1e+12");
    }

    #[test]
    fn quotes_in_names_do_not_end_a_field() {
        assert_eq!(quoted("a\"b"), "\"a\"\"b\"");
    }
}
