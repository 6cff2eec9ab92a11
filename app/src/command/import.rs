//! `webdyno import`: what ab printed in the past is read, held against itself, compared, shown, and kept.

use super::id::{fresh_seed, now, run_id};
use super::report::{Form, show_import, store_path};
use crate::exit::Exit;
use crate::flags::ImportFlags;
use crate::plan_file::unreadable;
use abtext::Document;
use anyhow::{Context, anyhow, bail, ensure};
use model::import::{Group, Import, Pick, Source};
use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;
use store::Store;

/// Stands for standard input.
const STDIN: &str = "-";

/// The longest text that is taken in: thousands of reports.
const LONGEST: u64 = 16 << 20;

/// More reports than this are no comparison.
const MOST: usize = 1000;

pub(crate) fn run(flags: &ImportFlags) -> anyhow::Result<Exit> {
    let mut gathered = Gathered::default();
    for typed in &flags.files {
        gathered.add(&Asked::of(typed)?)?;
    }
    let (sources, groups) = (gathered.sources, gathered.groups);
    let anchor = now();
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let import = Import { id: run_id(anchor, fresh_seed()), anchor, version, sources, groups };
    show_import(&import, Form::of(flags.json), &flags.lang);
    // The result is out; that it could not be kept is said after it.
    Store::open(&store_path(&flags.store)?)?.save_import(&import)?;
    Ok(Exit::Done)
}

/// One argument: `FILE`, `NAME=FILE`, `FILE#1,3`.
#[derive(Debug, PartialEq, Eq)]
struct Asked {
    name: Option<String>,
    path: String,
    /// Reports of the file, from 1; all when there are none.
    numbers: Vec<usize>,
}

/// What the arguments come to.
#[derive(Default)]
struct Gathered {
    sources: Vec<Source>,
    documents: Vec<Document>,
    groups: Vec<Group>,
    taken: BTreeSet<(usize, usize)>,
}

impl Asked {
    fn of(typed: &str) -> anyhow::Result<Asked> {
        Asked::read(typed, |path| path == STDIN || Path::new(path).exists())
    }

    /// A file that is there is meant by its name, whatever signs stand in it.
    fn read(typed: &str, is_there: impl Fn(&str) -> bool) -> anyhow::Result<Asked> {
        if is_there(typed) {
            return Ok(Asked { name: None, path: typed.to_owned(), numbers: vec![] });
        }
        let (name, rest) = match typed.split_once('=') {
            Some((name, rest)) if !name.is_empty() => (Some(name.to_owned()), rest),
            _ => (None, typed),
        };
        let (path, numbers) = match rest.rsplit_once('#').filter(|_| !is_there(rest)) {
            Some((path, list)) => (path, numbers(list).with_context(|| format!("`{typed}`"))?),
            None => (rest, vec![]),
        };
        ensure!(!path.is_empty(), "`{typed}` names no file; give NAME=FILE, or NAME=- for standard input");
        Ok(Asked { name, path: path.to_owned(), numbers })
    }
}

fn numbers(list: &str) -> anyhow::Result<Vec<usize>> {
    let number = |part: &str| part.parse().ok().filter(|number| *number > 0);
    let numbers: Option<Vec<usize>> = list.split(',').map(number).collect();
    numbers.ok_or_else(|| anyhow!("`{list}` is no list of reports such as 1,2; the first is 1"))
}

impl Gathered {
    fn add(&mut self, asked: &Asked) -> anyhow::Result<()> {
        let source = self.source(&asked.path)?;
        let reports = &self.documents[source].reports;
        let several = reports.len() > 1;
        let wanted = if asked.numbers.is_empty() { (1..=reports.len()).collect() } else { asked.numbers.clone() };
        let mut picks = Vec::new();
        for number in wanted {
            let Some(report) = reports.get(number - 1) else {
                bail!("{}: there is no report {number}; the last is {}", asked.path, reports.len());
            };
            picks.push((number, Pick { source, line: report.first_line() }));
        }
        let sum = self.taken.len() + picks.len();
        ensure!(sum <= MOST, "{}: {sum} reports are too many to compare; pick some, as in FILE#1,2", asked.path);
        for (number, pick) in picks {
            ensure!(
                self.taken.insert((pick.source, pick.line)),
                "{}: report {number} is named twice; a run counts once",
                asked.path
            );
            match &asked.name {
                Some(name) => self.group(name).picks.push(pick),
                // Without a name nobody said that two reports are about one setting.
                None => {
                    let name = self.own_name(&asked.path, several.then_some(number));
                    self.groups.push(Group { name, picks: vec![pick] });
                }
            }
        }
        Ok(())
    }

    fn group(&mut self, name: &str) -> &mut Group {
        let at = self.groups.iter().position(|group| group.name == name).unwrap_or_else(|| {
            self.groups.push(Group { name: name.to_owned(), picks: vec![] });
            self.groups.len() - 1
        });
        &mut self.groups[at]
    }

    /// What a report is called that nobody named: its file, without the folders where that is enough, and its number there.
    fn own_name(&self, path: &str, number: Option<usize>) -> String {
        let numbered = |name: &str| number.map_or_else(|| name.to_owned(), |number| format!("{name}#{number}"));
        let file = Path::new(path).file_name().and_then(|name| name.to_str()).unwrap_or(path);
        let short = numbered(if path == STDIN { "stdin" } else { file });
        if self.groups.iter().any(|group| group.name == short) { numbered(path) } else { short }
    }

    /// A text, read once however often it is named.
    fn source(&mut self, path: &str) -> anyhow::Result<usize> {
        if let Some(at) = self.sources.iter().position(|source| source.name == path) {
            return Ok(at);
        }
        let text = text(path)?;
        let shown = if path == STDIN { "standard input" } else { path };
        self.documents.push(abtext::read(&text).with_context(|| shown.to_owned())?);
        self.sources.push(Source { name: path.to_owned(), text });
        Ok(self.sources.len() - 1)
    }
}

/// A text; what in it is no UTF-8 belongs to the words around ab's, which are ASCII.
fn text(path: &str) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    let read = if path == STDIN {
        std::io::stdin().lock().take(LONGEST + 1).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(LONGEST + 1).read_to_end(&mut bytes))
    };
    read.map_err(|error| anyhow!(unreadable(Path::new(path), &error)))?;
    ensure!(bytes.len() as u64 <= LONGEST, "{path}: longer than {}; cut it", units::short_bytes(LONGEST));
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(typed: &str, expected: Result<(Option<&str>, &str, &[usize]), &str>) {
        let is_there = |path: &str| ["a.txt", "n=1.txt", "c#.txt", STDIN].contains(&path);
        match (Asked::read(typed, is_there), expected) {
            (Ok(asked), expected) => {
                assert_eq!(Ok((asked.name.as_deref(), asked.path.as_str(), asked.numbers.as_slice())), expected);
            }
            (Err(error), expected) => assert_eq!(Err(format!("{error:#}").as_str()), expected, "{typed}"),
        }
    }

    #[test]
    fn names_files_and_reports() {
        check("a.txt", Ok((None, "a.txt", &[])));
        check("-", Ok((None, "-", &[])));
        check("plain=a.txt#1,2", Ok((Some("plain"), "a.txt", &[1, 2])));
        check("並列 10=-#3", Ok((Some("並列 10"), "-", &[3])));
        check("n=1.txt", Ok((None, "n=1.txt", &[])));
        check("x=c#.txt", Ok((Some("x"), "c#.txt", &[])));
        check("x=c#.txt#2", Ok((Some("x"), "c#.txt", &[2])));
        check("=a.txt", Ok((None, "=a.txt", &[])));
        check("x=", Err("`x=` names no file; give NAME=FILE, or NAME=- for standard input"));
        check("x=a.txt#0", Err("`x=a.txt#0`: `0` is no list of reports such as 1,2; the first is 1"));
        check("a.txt#one", Err("`a.txt#one`: `one` is no list of reports such as 1,2; the first is 1"));
    }
}
