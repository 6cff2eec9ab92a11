//! A configuration as nginx reads it: directives with their blocks, includes followed, each with its place in its file.

use crate::nginx::tokens::{What, tokens};
use crate::running::expand;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// No include goes deeper.
const DEEPEST: usize = 32;
/// No configuration includes files more often; what would does so in a circle.
const MOST_INCLUDED: usize = 10_000;

/// A directive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Statement {
    pub(crate) name: String,
    pub(crate) args: Vec<String>,
    pub(crate) file: PathBuf,
    /// From 1.
    pub(crate) line: usize,
    /// All of it, in bytes of the file.
    pub(crate) span: Range<usize>,
    /// Of a block what is in it, and where its last brace stands; of an `include` what the files say.
    pub(crate) inside: Vec<Statement>,
    pub(crate) end: Option<usize>,
}

impl Statement {
    pub(crate) fn is(&self, name: &str) -> bool {
        self.name == name
    }

    pub(crate) fn value(&self) -> String {
        self.args.join(" ")
    }

    /// `FILE:LINE`.
    pub(crate) fn place(&self) -> String {
        format!("{}:{}", self.file.display(), self.line)
    }
}

/// Statements at one level, those of included files among them; the includes themselves are none.
pub(crate) fn level(statements: &[Statement]) -> Vec<&Statement> {
    let mut found = Vec::new();
    for statement in statements {
        if statement.is("include") {
            found.extend(level(&statement.inside));
        } else {
            found.push(statement);
        }
    }
    found
}

/// All statements, whatever block they are in.
pub(crate) fn everywhere(statements: &[Statement]) -> Vec<&Statement> {
    statements.iter().flat_map(|statement| std::iter::once(statement).chain(everywhere(&statement.inside))).collect()
}

/// Reads a configuration from its main file on. `texts` are its files; names of included files are relative to the main one's folder.
///
/// # Errors
/// Where blocks do not end or includes go in a circle, in one sentence.
pub(crate) fn parse(main: &Path, texts: &BTreeMap<PathBuf, String>) -> Result<Vec<Statement>, String> {
    let folder = main.parent().unwrap_or(Path::new("/"));
    Reader { folder, texts, read: Cell::new(0) }.file(main, 0)
}

struct Reader<'a> {
    folder: &'a Path,
    texts: &'a BTreeMap<PathBuf, String>,
    /// How many files so far, each as often as it is included.
    read: Cell<usize>,
}

impl Reader<'_> {
    fn file(&self, path: &Path, depth: usize) -> Result<Vec<Statement>, String> {
        let Some(text) = self.texts.get(path) else { return Ok(Vec::new()) };
        if depth > DEEPEST || self.read.replace(self.read.get() + 1) > MOST_INCLUDED {
            return Err(format!("{}: files include each other in a circle", path.display()));
        }
        // The blocks that are open, the file itself being the first.
        let mut open: Vec<Vec<Statement>> = vec![Vec::new()];
        let mut heads: Vec<Statement> = Vec::new();
        let mut words: Vec<String> = Vec::new();
        let mut first = (0, 0);
        let unbalanced = |line: usize| format!("{}:{line}: it is not clear which block ends here", path.display());
        for token in tokens(text) {
            let statement = |words: &mut Vec<String>, end: usize| {
                let mut said = std::mem::take(words).into_iter();
                let name = said.next()?;
                let (file, span) = (path.to_owned(), first.1..end);
                Some(Statement { name, args: said.collect(), file, line: first.0, span, inside: vec![], end: None })
            };
            match token.what {
                What::Word(word) => {
                    if words.is_empty() {
                        first = (token.line, token.span.start);
                    }
                    words.push(word);
                }
                What::End => {
                    let Some(mut found) = statement(&mut words, token.span.end) else { continue };
                    if found.is("include") {
                        found.inside = self.included(&found, depth)?;
                    }
                    open.last_mut().ok_or_else(|| unbalanced(token.line))?.push(found);
                }
                What::Open => {
                    heads.push(statement(&mut words, token.span.end).ok_or_else(|| unbalanced(token.line))?);
                    open.push(Vec::new());
                }
                What::Close => {
                    // What has no semicolon is no directive, such as the pairs of somebody's own language.
                    words.clear();
                    let mut head = heads.pop().ok_or_else(|| unbalanced(token.line))?;
                    head.inside = open.pop().unwrap_or_default();
                    (head.span.end, head.end) = (token.span.end, Some(token.span.start));
                    open.last_mut().ok_or_else(|| unbalanced(token.line))?.push(head);
                }
            }
        }
        match (heads.last(), open.pop()) {
            (Some(head), _) => Err(format!("{}: the block that begins here does not end", head.place())),
            (None, found) => Ok(found.unwrap_or_default()),
        }
    }

    fn included(&self, statement: &Statement, depth: usize) -> Result<Vec<Statement>, String> {
        let paths = statement.args.iter().flat_map(|pattern| expand(&self.folder.join(pattern), false));
        let read: Vec<Vec<Statement>> = paths.map(|path| self.file(&path, depth + 1)).collect::<Result<_, _>>()?;
        Ok(read.into_iter().flatten().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<&[&str], &str>) {
        let main = Path::new("/m.conf");
        let read = parse(main, &BTreeMap::from([(main.to_owned(), text.to_owned())]));
        let shown = read.map(|read| {
            let all = everywhere(&read);
            all.iter().map(|it| format!("{}|{}|{}", it.place(), it.name, &text[it.span.clone()])).collect::<Vec<_>>()
        });
        assert_eq!(shown, expected.map(|all| all.iter().map(ToString::to_string).collect()).map_err(str::to_owned));
    }

    #[test]
    fn statements_have_their_places() {
        check(
            "user a;\nevents {\n  use \"epoll\"; }\n# x {\nhttp{ map $a $b { ~x 'y;' ; } }",
            Ok(&[
                "/m.conf:1|user|user a;",
                "/m.conf:2|events|events {\n  use \"epoll\"; }",
                "/m.conf:3|use|use \"epoll\";",
                "/m.conf:5|http|http{ map $a $b { ~x 'y;' ; } }",
                "/m.conf:5|map|map $a $b { ~x 'y;' ; }",
                "/m.conf:5|~x|~x 'y;' ;",
            ]),
        );
        check("a;\n}", Err("/m.conf:2: it is not clear which block ends here"));
        check("a;\nhttp { b;", Err("/m.conf:2: the block that begins here does not end"));
        check("a { include m.conf; include m.conf; }", Err("/m.conf: files include each other in a circle"));
    }

    #[test]
    fn includes_are_followed() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let texts = [("m.conf", "http { include s/*; b; }"), ("s/1", "server { include x; }"), ("x", "c;")];
        std::fs::create_dir(at("s")).unwrap();
        for (name, text) in texts {
            std::fs::write(at(name), text).unwrap();
        }
        let texts = texts.map(|(name, text)| (at(name), text.to_owned())).into();
        let read = parse(&at("m.conf"), &texts).unwrap();
        let http = level(&read[0].inside);
        assert_eq!(http.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["server", "b"]);
        assert_eq!(level(&http[0].inside)[0].place(), format!("{}:1", at("x").display()));
    }
}
