//! A configuration of several files as one, which may lie anywhere: to be tested before anything is changed, or to run beside its original.

use crate::nginx::machine::tree::Statement;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Directives whose first argument is a file that nginx looks for beside its main file.
const BESIDE: [&str; 28] = [
    "auth_basic_user_file",
    "auth_jwt_key_file",
    "geoip_city",
    "geoip_country",
    "grpc_ssl_certificate",
    "grpc_ssl_certificate_key",
    "grpc_ssl_crl",
    "grpc_ssl_password_file",
    "grpc_ssl_trusted_certificate",
    "proxy_ssl_certificate",
    "proxy_ssl_certificate_key",
    "proxy_ssl_crl",
    "proxy_ssl_password_file",
    "proxy_ssl_trusted_certificate",
    "ssl_certificate",
    "ssl_certificate_key",
    "ssl_client_certificate",
    "ssl_crl",
    "ssl_dhparam",
    "ssl_password_file",
    "ssl_session_ticket_key",
    "ssl_stapling_file",
    "ssl_trusted_certificate",
    "uwsgi_ssl_certificate",
    "uwsgi_ssl_certificate_key",
    "uwsgi_ssl_crl",
    "uwsgi_ssl_password_file",
    "uwsgi_ssl_trusted_certificate",
];

/// One text, and where each of its lines comes from.
#[derive(Debug, Default)]
pub(super) struct Flat {
    pub(super) text: String,
    /// File and line, from 1.
    origins: Vec<(PathBuf, usize)>,
}

/// What becomes of a directive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Becomes {
    Same,
    Gone,
    /// The same with other words behind its name.
    Saying(Vec<String>),
    /// Of a block: the same with further lines at its end.
    With(String),
}

/// Decides it, by the directive and the name of the block around it, if there is one.
pub(super) type Change<'a> = dyn FnMut(&Statement, Option<&str>) -> Becomes + 'a;

/// Writes it: `tree` is what the main file says, `texts` are all files, `head` are lines that come before them.
pub(super) fn flatten(
    main: &Path,
    tree: &[Statement],
    texts: &BTreeMap<PathBuf, String>,
    head: &str,
    change: &mut Change<'_>,
) -> Flat {
    let mut flat = Flat::default();
    flat.push(Path::new(""), 1, head);
    Writer { flat: &mut flat, texts, folder: main.parent().unwrap_or(Path::new("/")), change }.file(main, tree, None);
    flat
}

/// A directive as text, its words in quotes.
fn text_of(name: &str, args: &[String]) -> String {
    let quoted = |word: &String| format!(" \"{}\"", word.replace('\\', "\\\\").replace('"', "\\\""));
    format!("{name}{};", args.iter().map(quoted).collect::<String>())
}

impl Flat {
    /// Where a line, from 1, comes from.
    pub(super) fn origin(&self, line: usize) -> Option<&(PathBuf, usize)> {
        self.origins.get(line.checked_sub(1)?)
    }

    /// Adds a piece of a file that begins on a line of it.
    fn push(&mut self, file: &Path, line: usize, piece: &str) {
        let begun = self.text.matches('\n').count();
        // A line belongs to whoever has the first word on it.
        self.origins.truncate(if self.text.ends_with('\n') { begun } else { begun + 1 });
        self.origins.resize(self.origins.len().max(begun), (file.to_owned(), line));
        self.text.push_str(piece);
        for (at, _) in piece.split('\n').enumerate().skip(self.origins.len() - begun) {
            self.origins.push((file.to_owned(), line + at));
        }
    }
}

struct Writer<'a> {
    flat: &'a mut Flat,
    texts: &'a BTreeMap<PathBuf, String>,
    folder: &'a Path,
    change: &'a mut Change<'a>,
}

impl Writer<'_> {
    /// A whole file, of which these are the outermost statements.
    fn file(&mut self, path: &Path, statements: &[Statement], within: Option<&str>) {
        let text = self.texts.get(path).map_or("", String::as_str);
        let mut from = 0;
        self.statements((path, text), statements, within, &mut from);
        self.piece(path, text, from, text.len());
        if !self.flat.text.ends_with('\n') {
            self.flat.text.push('\n');
        }
    }

    fn statements(
        &mut self,
        (path, text): (&Path, &str),
        statements: &[Statement],
        within: Option<&str>,
        from: &mut usize,
    ) {
        for statement in statements {
            if statement.is("include") {
                self.piece(path, text, *from, statement.span.start);
                for of_file in statement.inside.chunk_by(|a, b| a.file == b.file) {
                    self.flat.text.push('\n');
                    self.file(&of_file[0].file, of_file, within);
                }
                *from = statement.span.end;
                continue;
            }
            let becomes = match (self.change)(statement, within) {
                Becomes::Same => self.moved(statement),
                becomes => becomes,
            };
            if let Becomes::Gone | Becomes::Saying(_) = becomes {
                self.piece(path, text, *from, statement.span.start);
                *from = statement.span.end;
            } else {
                self.statements((path, text), &statement.inside, Some(&statement.name), from);
            }
            match (becomes, statement.end) {
                (Becomes::Saying(args), _) => {
                    self.flat.push(path, statement.line, &text_of(&statement.name, &args));
                }
                (Becomes::With(lines), Some(end)) => {
                    self.piece(path, text, *from, end);
                    self.flat.push(Path::new(""), 1, &format!("\n{lines}\n"));
                    *from = end;
                }
                _ => {}
            }
        }
    }

    /// A file is looked for beside another main file now.
    fn moved(&self, statement: &Statement) -> Becomes {
        match statement.args.first().filter(|_| BESIDE.contains(&statement.name.as_str())) {
            Some(first) if !first.contains([':', '$']) && Path::new(first).is_relative() => {
                let absolute = self.folder.join(first).to_string_lossy().into_owned();
                Becomes::Saying([&[absolute], &statement.args[1..]].concat())
            }
            _ => Becomes::Same,
        }
    }

    fn piece(&mut self, path: &Path, text: &str, from: usize, to: usize) {
        let line = text[..from].matches('\n').count() + 1;
        self.flat.push(path, line, &text[from..to]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nginx::machine::tree::parse;

    #[test]
    fn files_become_one() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("s")).unwrap();
        let files = [
            ("m.conf", "a;\nhttp {\n  include s/*; include none*;\n  b;\n}\n"),
            ("s/1", "server {\n ssl_certificate x.pem;\n ssl_certificate_key cert;\n auth_basic_user_file '.ht'; }"),
            ("s/2", "c;\nd;\n"),
        ];
        for (name, text) in files {
            std::fs::write(at(name), text).unwrap();
        }
        let texts: BTreeMap<PathBuf, String> = files.map(|(name, text)| (at(name), text.to_owned())).into();
        let tree = parse(&at("m.conf"), &texts).unwrap();
        let mut change = |it: &Statement, within: Option<&str>| match (it.name.as_str(), within) {
            ("b", Some("http")) => Becomes::Saying(vec!["x \"y\"".to_owned(), "z".to_owned()]),
            ("c", Some("http")) => Becomes::Gone,
            ("server", _) => Becomes::With("own;".to_owned()),
            _ => Becomes::Same,
        };
        let flat = flatten(&at("m.conf"), &tree, &texts, "head;\n", &mut change);
        let shown: Vec<String> = (1..)
            .zip(flat.text.lines())
            .filter(|(_, text)| !text.trim().is_empty())
            .map(|(line, text)| {
                let (file, line) = flat.origin(line).unwrap();
                let name = file.file_name().map(std::ffi::OsStr::to_string_lossy).unwrap_or_default();
                format!("{name}:{line} {}", text.trim())
            })
            .map(|line| line.replace(&*folder.path().to_string_lossy(), "DIR"))
            .collect();
        assert_eq!(
            shown,
            [
                ":1 head;",
                "m.conf:1 a;",
                "m.conf:2 http {",
                "1:1 server {",
                "1:2 ssl_certificate \"DIR/x.pem\";",
                "1:3 ssl_certificate_key \"DIR/cert\";",
                "1:4 auth_basic_user_file \"DIR/.ht\";",
                ":2 own;",
                "1:4 }",
                "2:2 d;",
                "m.conf:4 b \"x \\\"y\\\"\" \"z\";",
                "m.conf:5 }",
            ]
        );
    }
}
