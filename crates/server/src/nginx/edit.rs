//! The machine's configuration with a plan's directives in it: which files get which text, and which of its lines stand in the plan.
//!
//! nginx takes most directives once in a block, and has no file that is read last and wins. So what the plan says takes the place of what
//! stands in the same block: it is cut out where it is, whatever file that is, and the plan's lines come at the block's end.

use crate::nginx::lines::{Context, Planned, SEVERAL};
use crate::nginx::machine::Configuration;
use crate::nginx::machine::servers::Listen;
use crate::nginx::machine::tree::{Statement, everywhere, level};
use crate::nginx::tokens::{What, tokens};
use model::plan::Directive;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Files with other text than on the disk.
#[derive(Debug, Clone, Default)]
pub(super) struct Edited {
    files: BTreeMap<PathBuf, Text>,
}

/// A text, and what of the plan stands on each of its lines.
#[derive(Debug, Clone, Default)]
struct Text {
    text: String,
    planned: BTreeMap<usize, Directive>,
    line: usize,
}

/// A line that is added, and what of the plan it is.
type NewLine = (String, Option<Directive>);

/// What becomes of one file.
#[derive(Debug, Default)]
struct Change {
    cuts: Vec<Range<usize>>,
    /// At which byte which lines come.
    inserts: Vec<(usize, Vec<NewLine>)>,
}

/// Where lines of a block go: into which file, and where in it.
type End = (PathBuf, usize);

impl Edited {
    /// The files and what they become.
    pub(super) fn texts(&self) -> impl Iterator<Item = (&Path, &str)> {
        self.files.iter().map(|(path, text)| (path.as_path(), text.text.as_str()))
    }

    /// The directive of the plan on a line of a file, from 1.
    pub(super) fn planned_at(&self, file: &Path, line: usize) -> Option<&Directive> {
        self.files.get(file)?.planned.get(&line)
    }

    /// All files of the configuration as they become.
    pub(super) fn all(&self, configuration: &Configuration) -> BTreeMap<PathBuf, String> {
        let mut texts = configuration.texts.clone();
        texts.extend(self.files.iter().map(|(path, text)| (path.clone(), text.text.clone())));
        texts
    }
}

/// Puts the plan's directives where they belong, those of a server into `server`; `own` comes into `http`. Or says which line of the plan
/// cannot be, and why; of what is no line of the plan's only why.
pub(super) fn edit(
    configuration: &Configuration,
    main: &Path,
    planned: &[Planned],
    server: Option<&Statement>,
    own: &str,
) -> Result<Edited, (Option<Directive>, String)> {
    let mut editor = Editor { configuration, changes: BTreeMap::new(), twice: twice(&configuration.tree) };
    let of_main = level(&configuration.tree);
    let block = |name: &str| of_main.iter().rfind(|it| it.is(name)).copied();
    let end = |block: Option<&Statement>| block.and_then(|block| Some((block.file.clone(), block.end?)));
    let http = block("http").ok_or((None, format!("{} has no http block", main.display())))?;
    let length = configuration.texts.get(main).map_or(0, String::len);
    for statement in planned {
        let (inside, at): (Vec<&Statement>, Option<End>) = match statement.context {
            Context::Main if statement.name == "load_module" => (of_main.clone(), Some((main.to_owned(), 0))),
            Context::Main => (of_main.clone(), Some((main.to_owned(), length))),
            Context::Events => (inside(block("events")), end(block("events"))),
            Context::Http => (level(&http.inside), end(Some(http))),
            Context::Server => (inside(server), end(server)),
        };
        let at = at.ok_or_else(|| {
            let why = "there is no block for it in the machine's configuration".to_owned();
            (statement.lines.first().cloned(), why)
        })?;
        editor.put(statement, &inside, at)?;
    }
    let lines = own.lines().map(|line| (line.to_owned(), None)).collect();
    editor.insert(end(Some(http)).ok_or((None, "the http block has no end".to_owned()))?, lines);
    Ok(editor.done())
}

fn inside(block: Option<&Statement>) -> Vec<&Statement> {
    block.map(|block| level(&block.inside)).unwrap_or_default()
}

struct Editor<'a> {
    configuration: &'a Configuration,
    changes: BTreeMap<PathBuf, Change>,
    /// What is read more than once: files and where in them.
    twice: BTreeSet<(&'a Path, usize)>,
}

impl Editor<'_> {
    fn put(&mut self, planned: &Planned, inside: &[&Statement], at: End) -> Result<(), (Option<Directive>, String)> {
        let refuse = |why: String| (planned.lines.first().cloned(), why);
        let mine = head(planned);
        let replaced: Vec<&&Statement> =
            inside.iter().filter(|it| it.name == planned.name && same(&it.name, &it.args, &mine)).collect();
        if planned.name == "listen" && replaced.is_empty() {
            return Err(refuse(
                "others could reach it; only what the server listens on already can be changed".to_owned(),
            ));
        }
        for statement in replaced {
            if self.twice.contains(&(statement.file.as_path(), statement.span.start)) {
                let why = format!("{} is included more than once, and would change everywhere", statement.place());
                return Err(refuse(why));
            }
            let cuts = &mut self.changes.entry(statement.file.clone()).or_default().cuts;
            if !cuts.contains(&statement.span) {
                cuts.push(statement.span.clone());
            }
        }
        self.insert(at, planned.lines.iter().map(|line| (line.text.clone(), Some(line.clone()))).collect());
        Ok(())
    }

    fn insert(&mut self, (file, at): End, lines: Vec<NewLine>) {
        self.changes.entry(file).or_default().inserts.push((at, lines));
    }

    fn done(self) -> Edited {
        let text = |path: &Path| self.configuration.texts.get(path).map_or("", String::as_str);
        let files = self.changes.into_iter().map(|(path, change)| {
            let changed = change.applied(text(&path));
            (path, changed)
        });
        Edited { files: files.collect() }
    }
}

/// Words of the plan's directive, without its name.
fn head(planned: &Planned) -> Vec<String> {
    let text = planned.lines.first().map_or("", |line| line.text.as_str());
    let words = tokens(text).into_iter().map_while(|token| match token.what {
        What::Word(word) => Some(word),
        _ => None,
    });
    words.skip(1).collect()
}

/// Whether two directives of a name are the same thing said differently.
fn same(name: &str, a: &[String], b: &[String]) -> bool {
    let zone =
        |args: &[String]| args.iter().find_map(|word| Some(word.strip_prefix("zone=")?.split(':').next()?.to_owned()));
    match name {
        // One `off`, or another buffer, is about all logs of the block.
        "access_log" | "error_log" => true,
        "limit_conn_zone" | "limit_req_zone" | "limit_req" => zone(a) == zone(b),
        "limit_conn" | "log_format" | "upstream" => a.first() == b.first(),
        "geo" | "location" | "map" | "split_clients" => a == b,
        "listen" => {
            let place = |args: &[String]| Listen::parse(args).map(|listen| (listen.address, listen.port));
            place(a).is_some() && place(a) == place(b)
        }
        _ => !SEVERAL.contains(&name),
    }
}

/// What is read more than once.
fn twice(tree: &[Statement]) -> BTreeSet<(&Path, usize)> {
    let (mut once, mut twice) = (BTreeSet::new(), BTreeSet::new());
    for statement in everywhere(tree) {
        let place = (statement.file.as_path(), statement.span.start);
        if !once.insert(place) {
            twice.insert(place);
        }
    }
    twice
}

impl Change {
    fn applied(mut self, before: &str) -> Text {
        self.cuts.sort_by_key(|cut| cut.start);
        self.inserts.sort_by_key(|(at, _)| *at);
        let mut text = Text { line: 1, ..Text::default() };
        let (mut from, mut cuts) = (0, self.cuts.into_iter().peekable());
        let end = (before.len(), Vec::new());
        for (at, lines) in self.inserts.into_iter().chain([end]) {
            while let Some(cut) = cuts.next_if(|cut| cut.start < at) {
                text.push(&before[from..cut.start]);
                // Other lines keep their numbers.
                text.push(&"\n".repeat(before[cut.clone()].matches('\n').count()));
                from = cut.end;
            }
            text.push(&before[from..at]);
            from = at;
            lines.into_iter().for_each(|(line, planned)| text.line(&line, planned));
        }
        text
    }
}

impl Text {
    fn push(&mut self, piece: &str) {
        self.text.push_str(piece);
        self.line += piece.matches('\n').count();
    }

    fn line(&mut self, line: &str, planned: Option<Directive>) {
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.push("\n");
        }
        if let Some(planned) = planned {
            self.planned.insert(self.line, planned);
        }
        self.push(&format!("{line}\n"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nginx::lines::planned;
    use crate::nginx::machine::tree::parse;
    use expect_test::{Expect, expect};

    const MAIN: &str = "worker_processes auto;\nevents { worker_connections 768; }\nhttp {\n  access_log /l/a;\n  access_log /l/b x;\n\
        \x20 keepalive_timeout\n    65;\n  server { listen 80; location / { return 200; } }\n}\n";

    fn check(plan: &str, expected: &Expect) {
        let main = Path::new("/m");
        let texts = BTreeMap::from([(main.to_owned(), MAIN.to_owned())]);
        let configuration = Configuration { tree: parse(main, &texts).unwrap(), texts };
        let lines: Vec<Directive> =
            (10..).zip(plan.lines()).map(|(line, text)| Directive { text: text.to_owned(), line }).collect();
        let planned = planned(&lines, &[], &|_| None).unwrap();
        let servers = crate::nginx::machine::servers::servers(&configuration.tree);
        let server = servers.first().map(|server| server.block);
        let shown = match edit(&configuration, main, &planned, server, "# own") {
            Err((line, why)) => format!("{:?}: {why}", line.map(|line| line.line)),
            Ok(edited) => {
                let (file, text) = edited.texts().next().unwrap();
                let line = |(at, line): (usize, &str)| {
                    let place = edited.planned_at(file, at + 1).map_or("--".to_owned(), |it| it.line.to_string());
                    format!("{place} {line}\n")
                };
                text.lines().enumerate().map(line).collect()
            }
        };
        expected.assert_eq(&shown);
    }

    #[test]
    fn the_plan_takes_the_place_of_what_stands_in_the_same_block() {
        check(
            "worker_processes 2\nworker_connections 64\naccess_log off\nkeepalive_timeout 0\nadd_header X y\n\
             server {\nlisten 80 backlog=9\nlocation / {\nreturn 204;\n}\n}",
            &expect![[r#"
                -- 
                -- events {  
                11 worker_connections 64;
                -- }
                -- http {
                --   
                --   
                --   
                -- 
                --   server {   
                16 listen 80 backlog=9;
                17 location / {
                18 return 204;
                19 }
                -- }
                12 access_log off;
                13 keepalive_timeout 0;
                14 add_header X y;
                -- # own
                -- }
                10 worker_processes 2;
            "#]],
        );
    }

    #[test]
    fn no_further_port_is_opened() {
        check(
            "server {\nlisten 81\n}",
            &expect!["Some(11): others could reach it; only what the server listens on already can be changed"],
        );
    }
}
