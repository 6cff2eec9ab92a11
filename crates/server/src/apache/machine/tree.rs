//! A configuration as Apache itself reads it: includes followed, conditions decided, macros and variables filled in.
//!
//! `apache2 -t -D DUMP_CONFIG` prints it, with file and line of each directive. Only what Apache carries out while it reads is missing:
//! `LoadModule`, `Define`, `ServerRoot`, `DefaultRuntimeDir` and the conditions themselves.

use std::path::{Path, PathBuf};

/// A directive, or the beginning or end of a section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    /// As it is written, without the blanks before it.
    pub(crate) text: String,
    pub(crate) place: Place,
    /// How many sections it is inside of; a section's own two lines are outside of it.
    pub(crate) depth: usize,
}

/// Where a directive stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) file: PathBuf,
    /// From 1.
    pub(crate) line: usize,
}

/// A `<VirtualHost>` and what is directly in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VirtualHost<'a> {
    /// As written: `*:80`, `10.0.0.1`, `[::1]:443`.
    pub(crate) addresses: Vec<&'a str>,
    pub(crate) lines: Vec<&'a Line>,
}

impl Line {
    /// The directive's name; of a section with its `<`.
    pub(crate) fn name(&self) -> &str {
        self.text.split_whitespace().next().unwrap_or_default()
    }

    pub(crate) fn is(&self, name: &str) -> bool {
        self.name().eq_ignore_ascii_case(name)
    }

    /// Everything behind the name.
    pub(crate) fn arguments(&self) -> &str {
        self.text[self.name().len()..].trim_start()
    }

    /// The first argument, without its quotes.
    pub(crate) fn argument(&self) -> String {
        words(self.arguments()).into_iter().next().unwrap_or_default()
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.file.display(), self.line)
    }
}

/// Arguments as Apache takes them apart: by blanks, unless quoted; a backslash in quotes escapes a quote or a backslash.
pub(crate) fn words(arguments: &str) -> Vec<String> {
    let (mut found, mut rest) = (Vec::new(), arguments.trim_start());
    while let Some(first) = rest.chars().next() {
        let mut word = String::new();
        if matches!(first, '"' | '\'') {
            let mut chars = rest.char_indices().skip(1).peekable();
            let mut end = rest.len();
            while let Some((at, c)) = chars.next() {
                match (c, chars.peek()) {
                    ('\\', Some(&(_, next))) if next == first || next == '\\' => {
                        word.push(next);
                        chars.next();
                    }
                    _ if c == first => {
                        end = at + 1;
                        break;
                    }
                    _ => word.push(c),
                }
            }
            rest = &rest[end..];
        } else {
            let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
            word.push_str(&rest[..end]);
            rest = &rest[end..];
        }
        found.push(word);
        rest = rest.trim_start();
    }
    found
}

/// Reads what `DUMP_CONFIG` prints.
pub(crate) fn parse(dump: &str) -> Vec<Line> {
    let (mut lines, mut place, mut depth) = (Vec::new(), Place::default(), 0_usize);
    for text in dump.lines().map(str::trim).filter(|text| !text.is_empty()) {
        if let Some(file) = text.strip_prefix("# In file: ") {
            place.file = Path::new(file).to_owned();
        } else if let Some(number) = text.strip_prefix('#').and_then(|rest| rest.trim().strip_suffix(':')?.parse().ok())
        {
            place.line = number;
        } else {
            if text.starts_with("</") {
                depth = depth.saturating_sub(1);
            }
            lines.push(Line { text: text.to_owned(), place: place.clone(), depth });
            if text.starts_with('<') && !text.starts_with("</") {
                depth += 1;
            }
        }
    }
    lines
}

/// The virtual hosts, in order.
pub(crate) fn virtual_hosts(lines: &[Line]) -> Vec<VirtualHost<'_>> {
    let mut found: Vec<VirtualHost<'_>> = Vec::new();
    let mut inside = false;
    for line in lines {
        if line.is("<VirtualHost") && line.depth == 0 {
            inside = true;
            let addresses =
                line.arguments().trim_end_matches('>').split_whitespace().map(|word| word.trim_matches('"'));
            found.push(VirtualHost { addresses: addresses.collect(), lines: Vec::new() });
        } else if inside && line.depth == 0 {
            inside = false;
        } else if let (true, 1, Some(host)) = (inside, line.depth, found.last_mut()) {
            host.lines.push(line);
        }
    }
    found
}

impl VirtualHost<'_> {
    pub(crate) fn speaks_tls(&self) -> bool {
        speaks_tls(self.lines.iter().copied())
    }

    /// Whether a request for that name is its own.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        let names = self.lines.iter().filter(|line| line.is("ServerName") || line.is("ServerAlias"));
        names.flat_map(|line| words(line.arguments())).any(|known| {
            let known = known.split_once("://").map_or(known.as_str(), |(_, rest)| rest).to_owned();
            let known = known.split(':').next().unwrap_or_default();
            match known.strip_prefix('*') {
                Some(ending) => name.to_ascii_lowercase().ends_with(&ending.to_ascii_lowercase()),
                None => known.eq_ignore_ascii_case(name),
            }
        })
    }
}

/// Whether directives at one level switch TLS on.
pub(crate) fn speaks_tls<'a>(lines: impl DoubleEndedIterator<Item = &'a Line>) -> bool {
    lines.rev().find(|line| line.is("SSLEngine")).is_some_and(|line| line.argument().eq_ignore_ascii_case("on"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUMP: &str = "# In file: /a.conf\n#   2:\nListen 80\n#   9:\nLogFormat \"%v \\\"x\\\"\" y\n# In file: /b.conf\n#   1:\n\
<VirtualHost *:80 [::1]:81>\n  #   2:\n  ServerName a.b:80\n  #  3:\n  ServerAlias *.c d\n  # 4:\n  <Directory />\n    # 5:\n    \
Require all denied\n  </Directory>\n  #  12:\n  SSLEngine off\n  #  13:\n  SSLEngine On\n</VirtualHost>\n# 20:\nKeepAlive On\n";

    #[test]
    fn a_dump_is_read() {
        let lines = parse(DUMP);
        let shown: Vec<String> =
            lines.iter().map(|line| format!("{} {} {}", line.place, line.depth, line.text)).collect();
        assert_eq!(shown[0], "/a.conf:2 0 Listen 80");
        assert_eq!(shown[2], "/b.conf:1 0 <VirtualHost *:80 [::1]:81>");
        assert_eq!(
            shown[5..8],
            ["/b.conf:4 1 <Directory />", "/b.conf:5 2 Require all denied", "/b.conf:5 1 </Directory>"]
        );
        assert_eq!(shown.last().unwrap(), "/b.conf:20 0 KeepAlive On");
        let hosts = virtual_hosts(&lines);
        assert_eq!((hosts.len(), hosts[0].addresses.clone()), (1, vec!["*:80", "[::1]:81"]));
        assert!(hosts[0].speaks_tls());
        for (name, expected) in [("a.b", true), ("A.B", true), ("x.c", true), ("d", true), ("b", false), ("c", false)] {
            assert_eq!(hosts[0].is_called(name), expected, "{name}");
        }
    }

    #[test]
    fn arguments_are_taken_apart() {
        let check = |text: &str, expected: &[&str]| assert_eq!(words(text), expected, "{text}");
        check(r#""|/x \"a b\"" common  env=!y"#, &[r#"|/x "a b""#, "common", "env=!y"]);
        check(r"a\b 'c d'", &[r"a\b", "c d"]);
        check(r#""open"#, &["open"]);
        check("", &[]);
    }
}
