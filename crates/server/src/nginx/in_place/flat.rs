//! A configuration of several files as one, which may lie anywhere: to be tested before anything is changed.

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

/// Writes it: `tree` is what the main file says, `texts` are all files.
pub(super) fn flatten(main: &Path, tree: &[Statement], texts: &BTreeMap<PathBuf, String>) -> Flat {
    let mut flat = Flat::default();
    Writer { flat: &mut flat, texts, folder: main.parent().unwrap_or(Path::new("/")) }.file(main, tree);
    flat
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
}

impl Writer<'_> {
    /// A whole file, of which these are the outermost statements.
    fn file(&mut self, path: &Path, statements: &[Statement]) {
        let text = self.texts.get(path).map_or("", String::as_str);
        let mut from = 0;
        self.statements(path, text, statements, &mut from);
        self.piece(path, text, from, text.len());
        if !self.flat.text.ends_with('\n') {
            self.flat.text.push('\n');
        }
    }

    fn statements(&mut self, path: &Path, text: &str, statements: &[Statement], from: &mut usize) {
        for statement in statements {
            let beside = BESIDE.contains(&statement.name.as_str());
            if statement.is("include") {
                self.piece(path, text, *from, statement.span.start);
                for of_file in statement.inside.chunk_by(|a, b| a.file == b.file) {
                    self.flat.text.push('\n');
                    self.file(&of_file[0].file, of_file);
                }
                *from = statement.span.end;
            } else if let (true, Some(first)) = (beside, statement.args.first()) {
                self.piece(path, text, *from, statement.span.start);
                let keeps = first.contains([':', '$']) || Path::new(first).is_absolute();
                let changed = if keeps {
                    text[statement.span.clone()].to_owned()
                } else {
                    let absolute = format!("\"{}\"", self.folder.join(first).display());
                    [&[statement.name.clone(), absolute], &statement.args[1..]].concat().join(" ") + ";"
                };
                self.flat.push(path, statement.line, &changed);
                *from = statement.span.end;
            } else {
                self.statements(path, text, &statement.inside, from);
            }
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
        let flat = flatten(&at("m.conf"), &tree, &texts);
        let shown: Vec<String> = (1..)
            .zip(flat.text.lines())
            .filter(|(_, text)| !text.trim().is_empty())
            .map(|(line, text)| {
                let (file, line) = flat.origin(line).unwrap();
                format!("{}:{line} {}", file.file_name().unwrap().to_string_lossy(), text.trim())
            })
            .map(|line| line.replace(&*folder.path().to_string_lossy(), "DIR"))
            .collect();
        assert_eq!(
            shown,
            [
                "m.conf:1 a;",
                "m.conf:2 http {",
                "1:1 server {",
                "1:2 ssl_certificate \"DIR/x.pem\";",
                "1:3 ssl_certificate_key \"DIR/cert\";",
                "1:4 auth_basic_user_file \"DIR/.ht\"; }",
                "2:1 c;",
                "2:2 d;",
                "m.conf:4 b;",
                "m.conf:5 }",
            ]
        );
    }
}
