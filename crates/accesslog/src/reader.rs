//! Lines in, entries out, and an account of the lines that could not be used.

use crate::entry::{Entry, NoRequest};
use crate::format::Format;
use crate::line;
use std::collections::BTreeMap;
use std::fmt;

/// Reads the lines of one log.
#[derive(Debug, Clone)]
pub struct Reader {
    format: Format,
    tally: Tally,
}

/// What was read so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    lines: u64,
    entries: u64,
    troubles: BTreeMap<Trouble, (u64, u64)>,
}

/// What is wrong with a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trouble {
    /// Nothing stands in it.
    Blank,
    /// It is not written in the log's format.
    OtherFormat,
    /// It is an entry without a readable time.
    NoTime,
    /// It is an entry, and there is a reason why it holds no request.
    NoRequest(NoRequest),
}

/// All lines with the same trouble.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Troubles {
    /// What is wrong.
    pub trouble: Trouble,
    /// With how many lines.
    pub lines: u64,
    /// Number of the first of them, from 1.
    pub first_line: u64,
}

impl Reader {
    /// Begins at line 1.
    #[must_use]
    pub fn new(format: Format) -> Reader {
        Reader { format, tally: Tally::default() }
    }

    /// What the next line says, with or without its line end. `None` for a line that is blank or of another format; an entry
    /// may still lack its time or its request.
    pub fn read<'a>(&mut self, line: &'a [u8]) -> Option<Entry<'a>> {
        self.tally.lines += 1;
        let Some(entry) = line::read(&self.format, line) else {
            let is_blank = line.trim_ascii().is_empty();
            self.tally.count(if is_blank { Trouble::Blank } else { Trouble::OtherFormat });
            return None;
        };
        self.tally.entries += 1;
        if let Err(why) = &entry.request {
            self.tally.count(Trouble::NoRequest(*why));
        }
        if entry.time.is_none() {
            self.tally.count(Trouble::NoTime);
        }
        Some(entry)
    }

    /// The format that lines are read in.
    #[must_use]
    pub fn format(&self) -> &Format {
        &self.format
    }

    /// What was read so far.
    #[must_use]
    pub fn tally(&self) -> &Tally {
        &self.tally
    }
}

impl Tally {
    /// All lines.
    #[must_use]
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// Lines that gave an entry.
    #[must_use]
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// What was wrong with lines, each kind once.
    #[must_use]
    pub fn troubles(&self) -> Vec<Troubles> {
        let troubles = self.troubles.iter();
        troubles.map(|(&trouble, &(lines, first_line))| Troubles { trouble, lines, first_line }).collect()
    }

    fn count(&mut self, trouble: Trouble) {
        self.troubles.entry(trouble).or_insert((0, self.lines)).0 += 1;
    }
}

impl fmt::Display for Troubles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = if self.lines == 1 { "line" } else { "lines" };
        write!(f, "{} {lines} {}, first in line {}", self.lines, self.trouble, self.first_line)
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Blank => f.write_str("with nothing in it"),
            Trouble::OtherFormat => f.write_str("of another format"),
            Trouble::NoTime => f.write_str("without a time"),
            Trouble::NoRequest(why) => why.fmt(f),
        }
    }
}
