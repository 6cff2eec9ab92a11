//! nginx's configuration as the server would read it: words and blocks, with the files that are included.

use super::files::{Files, expand};
use crate::nginx::{What, tokens};
use model::check::Setting;
use std::path::{Path, PathBuf};

/// Directives that say how much the server can do at once. `backlog` stands in `listen`.
const WANTED: [&str; 9] = [
    "worker_processes",
    "worker_connections",
    "worker_rlimit_nofile",
    "keepalive_timeout",
    "keepalive_requests",
    "multi_accept",
    "limit_conn",
    "limit_req",
    "access_log",
];
/// Blocks whose directives hold for the whole server.
const WHOLE: [&str; 2] = ["events", "http"];
/// No include goes deeper.
const DEEPEST: usize = 32;

/// What a configuration says.
#[derive(Debug, Default)]
pub(super) struct Read {
    pub(super) settings: Vec<Setting>,
    /// Where it passes requests to by FastCGI; of an `upstream` the servers in it.
    pub(super) fcgi: Vec<String>,
}

/// The configuration that the title or the command line of a master names: `nginx: master process nginx -c FILE -p DIR`.
pub(super) fn file_of(words: &[String]) -> (Option<PathBuf>, Option<PathBuf>) {
    let words: Vec<&str> = words.iter().flat_map(|word| word.split_ascii_whitespace()).collect();
    let after = |flag: &str| {
        let at = words.iter().position(|word| word.starts_with(flag))?;
        let value =
            if words[at].len() > flag.len() { Some(&words[at][flag.len()..]) } else { words.get(at + 1).copied() };
        value.map(PathBuf::from)
    };
    (after("-c"), after("-p"))
}

/// Reads a configuration from its first file on; names in it are relative to that file's folder.
pub(super) fn read(file: &Path, files: &mut Files) -> Read {
    let folder = file.parent().unwrap_or(Path::new("/")).to_owned();
    let mut reader = Reader { files, folder, blocks: Vec::new(), upstreams: Vec::new(), read: Read::default() };
    reader.file(file, 0);
    // They may stand behind whoever names them.
    let Reader { upstreams, mut read, .. } = reader;
    read.fcgi = read.fcgi.iter().flat_map(|to| servers(to, &upstreams)).collect();
    read
}

/// What the name of an `upstream` stands for; anything else stands for itself.
fn servers(to: &str, upstreams: &[(String, String)]) -> Vec<String> {
    let inside: Vec<String> =
        upstreams.iter().filter(|(name, _)| name.eq_ignore_ascii_case(to)).map(|(_, server)| server.clone()).collect();
    if inside.is_empty() { vec![to.to_owned()] } else { inside }
}

/// `unix:/run/php.sock` without its first word.
fn without_scheme(place: &str) -> String {
    place.trim_start_matches("unix:").to_owned()
}

struct Reader<'a> {
    files: &'a mut Files,
    folder: PathBuf,
    /// Heads of the blocks around.
    blocks: Vec<Vec<String>>,
    /// Each server of each `upstream`, by its name.
    upstreams: Vec<(String, String)>,
    read: Read,
}

impl Reader<'_> {
    fn file(&mut self, path: &Path, depth: usize) {
        if depth > DEEPEST {
            return;
        }
        let Some(text) = self.files.text(path) else { return };
        let outer = self.blocks.len();
        let (mut words, mut first_line) = (Vec::new(), 1);
        for token in tokens(&text) {
            let line = token.line;
            match token.what {
                What::Word(word) => {
                    if words.is_empty() {
                        first_line = line;
                    }
                    words.push(word);
                }
                What::End => self.directive(&std::mem::take(&mut words), path, first_line, depth),
                What::Open => self.blocks.push(std::mem::take(&mut words)),
                What::Close => {
                    words.clear();
                    if self.blocks.len() > outer {
                        self.blocks.pop();
                    }
                }
            }
        }
        self.blocks.truncate(outer);
    }

    fn directive(&mut self, words: &[String], path: &Path, line: usize, depth: usize) {
        let Some((name, values)) = words.split_first() else { return };
        if name == "include" {
            let named = |value: &String| expand(&self.folder.join(value), false);
            let included: Vec<PathBuf> = values.iter().flat_map(named).collect();
            for path in included {
                self.file(&path, depth + 1);
            }
        } else if name == "fastcgi_pass" {
            self.read.fcgi.extend(values.first().map(|value| without_scheme(value)));
        } else if name == "server" {
            // A virtual host is a block, no directive.
            if let (Some([kind, upstream]), [place, ..]) = (self.blocks.last().map(Vec::as_slice), values)
                && kind == "upstream"
            {
                self.upstreams.push((upstream.clone(), without_scheme(place)));
            }
        } else if name == "listen" {
            let backlog = values.iter().find_map(|value| value.strip_prefix("backlog="));
            self.setting(name, &values.join(" "), path, line);
            if let Some(backlog) = backlog {
                self.setting("backlog", backlog, path, line);
            }
        } else if WANTED.contains(&name.as_str()) {
            self.setting(name, &values.join(" "), path, line);
        }
    }

    fn setting(&mut self, name: &str, value: &str, path: &Path, line: usize) {
        let inside =
            self.blocks.iter().filter(|block| !block.first().is_some_and(|name| WHOLE.contains(&name.as_str())));
        let section: Vec<String> = inside.map(|block| block.join(" ")).collect();
        self.read.settings.push(Setting {
            name: name.to_owned(),
            written: name.to_owned(),
            value: value.to_owned(),
            file: path.to_owned(),
            line,
            section: (!section.is_empty()).then(|| section.join(" / ")),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layout_like_debians() {
        let folder = tempfile::tempdir().unwrap();
        let main = "user www-data;\nworker_processes auto;\ninclude modules/*.conf;\nevents {\n\tworker_connections 768; # few\n}\n\
            http {\n\tkeepalive_timeout 65;\n\tlog_format x '$a { \"$b\" }';\n\tinclude sites/*;\n}\n";
        let site = "server {\n\tlisten 80 default_server backlog=4;\n\tset $a \"x${b}y\";\n\tlocation ~ \\.php$ {\n\
            \t\tfastcgi_pass unix:/run/php/x.sock;\n\t\tkeepalive_timeout 0;\n\t}\n}\n";
        std::fs::create_dir(folder.path().join("sites")).unwrap();
        std::fs::write(folder.path().join("nginx.conf"), main).unwrap();
        std::fs::write(folder.path().join("sites/default"), site).unwrap();
        let read = read(&folder.path().join("nginx.conf"), &mut Files::default());
        let told = |setting: &Setting| {
            let name = setting.file.strip_prefix(folder.path()).unwrap().display().to_string();
            let section = setting.section.as_ref().map(|section| format!(" {section}")).unwrap_or_default();
            format!("{}={}@{name}:{}{section}", setting.name, setting.value, setting.line)
        };
        let expected = [
            "worker_processes=auto@nginx.conf:2",
            "worker_connections=768@nginx.conf:5",
            "keepalive_timeout=65@nginx.conf:8",
            "listen=80 default_server backlog=4@sites/default:2 server",
            "backlog=4@sites/default:2 server",
            "keepalive_timeout=0@sites/default:6 server / location ~ .php$",
        ];
        assert_eq!(read.settings.iter().map(told).collect::<Vec<_>>(), expected);
        assert_eq!(read.fcgi, ["/run/php/x.sock"]);
    }

    #[test]
    fn an_upstream_stands_for_its_servers() {
        let folder = tempfile::tempdir().unwrap();
        let main = "http {\n server {\n  location ~ \\.php$ { fastcgi_pass php; }\n  location /a { fastcgi_pass 127.0.0.1:9000; }\n\
            \x20 location /b { fastcgi_pass other:9000; }\n }\n include upstreams.conf;\n}\n";
        let upstreams = "upstream php {\n least_conn;\n server unix:/run/a.sock weight=5;\n server \"127.0.0.1:9001\" backup;\n}\n\
            upstream unused { server unix:/run/b.sock; }\n";
        std::fs::write(folder.path().join("nginx.conf"), main).unwrap();
        std::fs::write(folder.path().join("upstreams.conf"), upstreams).unwrap();
        let read = read(&folder.path().join("nginx.conf"), &mut Files::default());
        assert_eq!(read.fcgi, ["/run/a.sock", "127.0.0.1:9001", "127.0.0.1:9000", "other:9000"]);
    }

    #[test]
    fn the_file_stands_in_the_title() {
        let check = |words: &[&str], expected: (Option<&str>, Option<&str>)| {
            let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
            assert_eq!(file_of(&words), (expected.0.map(PathBuf::from), expected.1.map(PathBuf::from)));
        };
        check(&["nginx: master process nginx -c /a/b.conf -p /c"], (Some("/a/b.conf"), Some("/c")));
        check(&["nginx: master process /usr/sbin/nginx -g daemon on;"], (None, None));
        check(&["nginx", "-c/a"], (Some("/a"), None));
    }
}
