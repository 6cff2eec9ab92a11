//! Apache's configuration as the server would read it: files with what they include, conditions, variables.
//!
//! `-D DUMP_CONFIG` needs mod_info and `-t` needs what only root may open, so the files are read as they are. What is in sections of
//! hosts and folders is told with its section; only a few directives are of interest.

use super::files::{Files, expand};
use super::program::Program;
use model::check::{Kind, Setting};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Directives that say how much the server can do at once, and those that pass requests on.
const WANTED: [&str; 20] = [
    "MaxRequestWorkers",
    "ServerLimit",
    "ThreadsPerChild",
    "ThreadLimit",
    "StartServers",
    "MinSpareServers",
    "MaxSpareServers",
    "MinSpareThreads",
    "MaxSpareThreads",
    "AsyncRequestWorkerFactor",
    "MaxConnectionsPerChild",
    "KeepAlive",
    "KeepAliveTimeout",
    "MaxKeepAliveRequests",
    "ListenBacklog",
    "Timeout",
    "Listen",
    "ExtendedStatus",
    "HostnameLookups",
    "EnableSendfile",
];
/// Built in everywhere, or asked for as if they were.
const BUILT_IN: [&str; 8] = [
    "core.c",
    "http_core.c",
    "mod_so.c",
    "so_module",
    "log_config_module",
    "mod_log_config.c",
    "unixd_module",
    "mod_unixd.c",
];
/// No include goes deeper.
const DEEPEST: usize = 32;

/// How a server was started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Started {
    pub(super) file: Option<PathBuf>,
    pub(super) root: Option<PathBuf>,
    /// `-D` words.
    pub(super) defines: Vec<String>,
    /// `-c` and `-C` lines.
    pub(super) lines: Vec<String>,
}

/// What its configuration says.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) settings: Vec<Setting>,
    pub(super) kind: Kind,
    /// Where it passes requests to by FastCGI, as far as the text says.
    pub(super) fcgi: Vec<String>,
}

impl Started {
    /// From the words of its command line.
    pub(super) fn of(words: &[String]) -> Started {
        let mut started = Started::default();
        for (flag, value) in flags(words) {
            match flag {
                'f' => started.file = Some(value.into()),
                'd' => started.root = Some(value.into()),
                'D' => started.defines.push(value),
                _ => started.lines.push(value),
            }
        }
        started
    }
}

/// What a command line says of the configuration: `-f`, `-d`, `-D`, `-c` and `-C`, each with its value.
pub(crate) fn flags(words: &[String]) -> Vec<(char, String)> {
    let mut flags = Vec::new();
    let mut rest = words.iter().skip(1);
    while let Some(word) = rest.next() {
        let Some(flag) = word.strip_prefix('-').and_then(|flag| flag.chars().next()) else { continue };
        if !"fdDcC".contains(flag) {
            continue;
        }
        // The value may follow at once.
        let value = match &word[2..] {
            "" => rest.next().cloned().unwrap_or_default(),
            value => value.to_owned(),
        };
        flags.push((flag, value));
    }
    flags
}

/// Reads a configuration from its first file on.
pub(super) fn read(
    file: &Path,
    root: &Path,
    started: &Started,
    program: &Program,
    variables: BTreeMap<String, String>,
    files: &mut Files,
) -> Read {
    let mut reader = Reader {
        files,
        root: root.to_owned(),
        variables,
        defined: started.defines.iter().cloned().collect(),
        modules: BUILT_IN.iter().map(|&name| name.to_owned()).collect(),
        settings: Vec::new(),
        fcgi: Vec::new(),
        sockets: Vec::new(),
        sections: Vec::new(),
        program,
    };
    program.built_in.iter().for_each(|symbol| reader.load(symbol));
    for line in &started.lines {
        reader.line(line, Path::new("command line"), 1, 0);
    }
    reader.file(file, 0);
    let has = |name: &str| reader.modules.contains(name);
    let kind = match () {
        () if has("mpm_prefork_module") => Kind::ApachePrefork,
        () if has("mpm_event_module") => Kind::ApacheEvent,
        () if has("mpm_worker_module") => Kind::ApacheWorker,
        () => Kind::Apache,
    };
    // <Proxy> may stand behind whoever names it.
    let fcgi = reader.fcgi.iter().map(|to| reader.reached(to)).collect();
    Read { settings: reader.settings, kind, fcgi }
}

struct Reader<'a> {
    files: &'a mut Files,
    root: PathBuf,
    variables: BTreeMap<String, String>,
    defined: BTreeSet<String>,
    modules: BTreeSet<String>,
    settings: Vec<Setting>,
    fcgi: Vec<String>,
    /// Names of `<Proxy "unix:PATH|fcgi://NAME">` with their socket files.
    sockets: Vec<(String, String)>,
    sections: Vec<Section>,
    program: &'a Program,
}

/// An open section.
struct Section {
    name: String,
    /// Whether what is in it counts.
    counts: bool,
    /// Its head, unless it is a condition.
    head: Option<String>,
}

impl Reader<'_> {
    fn file(&mut self, path: &Path, depth: usize) {
        if depth > DEEPEST {
            return;
        }
        let Some(text) = self.files.text(path) else { return };
        let outer = self.sections.len();
        let mut lines = text.lines().zip(1..);
        while let Some((line, number)) = lines.next() {
            let mut whole = line.to_owned();
            while whole.ends_with('\\') {
                whole.pop();
                let Some((more, _)) = lines.next() else { break };
                whole.push_str(more);
            }
            self.line(whole.trim(), path, number, depth);
        }
        self.sections.truncate(outer);
    }

    fn line(&mut self, line: &str, path: &Path, number: usize, depth: usize) {
        if line.is_empty() || line.starts_with('#') {
            return;
        }
        if let Some(name) = line.strip_prefix("</") {
            let name = name.trim_end_matches('>').trim();
            if self.sections.last().is_some_and(|section| section.name.eq_ignore_ascii_case(name)) {
                self.sections.pop();
            }
            return;
        }
        let line = self.filled_in(line);
        if let Some(head) = line.strip_prefix('<') {
            self.open(head.trim_end_matches('>').trim());
        } else if self.sections.iter().all(|section| section.counts) {
            let (name, value) = line.split_once(char::is_whitespace).unwrap_or((&line, ""));
            self.directive(name, value.trim(), path, number, depth);
        }
    }

    fn open(&mut self, head: &str) {
        let (name, value) = head.split_once(char::is_whitespace).unwrap_or((head, ""));
        let value = value.trim().trim_matches('"');
        let (wanted, asked) = value.strip_prefix('!').map_or((true, value), |rest| (false, rest));
        let holds = match name.to_ascii_lowercase().as_str() {
            "ifmodule" => Some(self.modules.contains(asked)),
            "ifdefine" => Some(self.defined.contains(asked) || self.variables.contains_key(asked)),
            "iffile" => Some(self.root.join(asked).exists()),
            "ifversion" => Some(self.program.is(asked)),
            // Which directives there are depends on what modules bring.
            "ifdirective" | "ifsection" => Some(wanted),
            _ => None,
        };
        if name.eq_ignore_ascii_case("proxy") && self.sections.iter().all(|section| section.counts) {
            self.sockets.extend(socket_of(value));
        }
        let head = holds.is_none().then(|| format!("<{head}>"));
        self.sections.push(Section { name: name.to_owned(), counts: holds.is_none_or(|holds| holds == wanted), head });
    }

    fn directive(&mut self, name: &str, value: &str, path: &Path, number: usize, depth: usize) {
        let plain = value.trim_matches('"');
        match name.to_ascii_lowercase().as_str() {
            "include" | "includeoptional" => {
                for path in expand(&self.root.join(plain), true) {
                    self.file(&path, depth + 1);
                }
            }
            "serverroot" => self.root = PathBuf::from(plain),
            "define" => {
                let (name, value) = plain.split_once(char::is_whitespace).unwrap_or((plain, ""));
                self.defined.insert(name.to_owned());
                self.variables.insert(name.to_owned(), value.trim().trim_matches('"').to_owned());
            }
            "undefine" => {
                self.defined.remove(plain);
                self.variables.remove(plain);
            }
            "loadmodule" => self.load(plain),
            _ => {
                self.fcgi.extend(fcgi_of(value));
                self.setting(name, plain, path, number);
            }
        }
    }

    /// The socket file behind a name, where a `<Proxy>` says one.
    fn reached(&self, to: &str) -> String {
        let socket = self.sockets.iter().find(|(name, _)| name.eq_ignore_ascii_case(to));
        socket.map_or(to, |(_, socket)| socket).to_owned()
    }

    /// `cgi_module modules/mod_cgi.so` is asked for as `cgi_module`, `mod_cgi.c`; a processing module's file as `prefork.c`.
    fn load(&mut self, words: &str) {
        let Some(symbol) = words.split_ascii_whitespace().next() else { return };
        let short = symbol.trim_end_matches("_module");
        self.modules.insert(symbol.to_owned());
        self.modules.insert(format!("mod_{short}.c"));
        self.modules.extend(short.strip_prefix("mpm_").map(|mpm| format!("{mpm}.c")));
    }

    fn setting(&mut self, written: &str, value: &str, path: &Path, line: usize) {
        let now = crate::apache::canonical(written);
        let Some(name) = WANTED.iter().find(|wanted| wanted.eq_ignore_ascii_case(now)) else { return };
        let section = self.sections.iter().rev().find_map(|section| section.head.clone());
        let (written, value) = (written.to_owned(), value.to_owned());
        self.settings.push(Setting { name: (*name).to_owned(), written, value, file: path.to_owned(), line, section });
    }

    /// `${NAME}` where NAME is known; anything else stays.
    fn filled_in(&self, line: &str) -> String {
        let (mut out, mut rest) = (String::new(), line);
        while let Some((before, after)) = rest.split_once("${") {
            out.push_str(before);
            match after.split_once('}').and_then(|(name, after)| Some((self.variables.get(name)?, after))) {
                Some((value, after)) => {
                    out.push_str(value);
                    rest = after;
                }
                None => {
                    out.push_str("${");
                    rest = after;
                }
            }
        }
        out + rest
    }
}

/// `unix:/run/php.sock|fcgi://localhost` or `fcgi://127.0.0.1:9000/` in a value.
fn fcgi_of(value: &str) -> Option<String> {
    let at = value.find("fcgi://")?;
    if let Some((_, path)) = value[..at].rsplit_once("unix:") {
        return Some(path.trim_end_matches('|').to_owned());
    }
    Some(address_of(&value[at..]).to_owned()).filter(|address| !address.is_empty())
}

/// Name and socket file of `unix:/run/php.sock|fcgi://name/`.
fn socket_of(value: &str) -> Option<(String, String)> {
    let (path, url) = value.strip_prefix("unix:")?.split_once('|')?;
    url.starts_with("fcgi://").then(|| (address_of(url).to_owned(), path.to_owned()))
}

/// `name` of `fcgi://name/$1`.
fn address_of(url: &str) -> &str {
    url.trim_start_matches("fcgi://").split(['/', '"', '$', ' ']).next().unwrap_or_default()
}

/// Variables as a shell file sets them that only assigns: `export NAME=value`, Debian's envvars.
pub(super) fn variables(text: &str) -> BTreeMap<String, String> {
    let assigned = |line: &str| {
        let (name, value) = line.trim().trim_start_matches("export ").trim().split_once('=')?;
        let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let value = value.trim_matches(['"', '\'']).replace("$SUFFIX", "");
        (plain && !value.contains('$')).then(|| (name.to_owned(), value))
    };
    text.lines().filter_map(assigned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads files of a folder from `apache2.conf` on; settings as `name=value@file:line section`.
    fn check(files: &[(&str, &str)], words: &[&str], expected: &[&str]) -> Read {
        check_of(&Program::default(), files, words, expected)
    }

    fn check_of(program: &Program, files: &[(&str, &str)], words: &[&str], expected: &[&str]) -> Read {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        let variables = BTreeMap::from([("SUFFIX_DIR".to_owned(), "mods".to_owned())]);
        let file = folder.path().join("apache2.conf");
        let read = read(&file, folder.path(), &Started::of(&words), program, variables, &mut Files::default());
        let told = |setting: &Setting| {
            let name = setting.file.strip_prefix(folder.path()).unwrap_or(&setting.file).display().to_string();
            let section = setting.section.as_ref().map(|section| format!(" {section}")).unwrap_or_default();
            format!("{}={}@{name}:{}{section}", setting.called(), setting.value, setting.line)
        };
        assert_eq!(read.settings.iter().map(told).collect::<Vec<_>>(), expected);
        read
    }

    #[test]
    fn a_layout_like_debians() {
        let main = "# IncludeOptional none\nKeepAlive On\nIncludeOptional ${SUFFIX_DIR}/*.load\nIncludeOptional mods/*.conf\n\
            IncludeOptional sites/*.conf\n";
        let mpm = "<IfModule mpm_prefork_module>\n  StartServers 5\n  MaxClients \\\n   150\n</IfModule>\n\
            <IfModule worker.c>\n  MaxRequestWorkers 400\n</IfModule>\n<IfModule !prefork.c>\nServerLimit 1\n</IfModule>\n";
        let site = "<VirtualHost *:80>\n KeepAlive Off\n <FilesMatch \"\\.php$\">\n  \
            SetHandler \"proxy:unix:/run/php/x.sock|fcgi://localhost\"\n </FilesMatch>\n ProxyPassMatch ^/(.*)$ fcgi://127.0.0.1:9000/$1\n</VirtualHost>\n";
        let files = [
            ("apache2.conf", main),
            ("mods/m.load", "LoadModule mpm_prefork_module x.so\n"),
            ("mods/m.conf", mpm),
            ("sites/a.conf", site),
        ];
        let expected = [
            "KeepAlive=On@apache2.conf:2",
            "StartServers=5@mods/m.conf:2",
            "MaxClients (= MaxRequestWorkers)=150@mods/m.conf:3",
            "KeepAlive=Off@sites/a.conf:2 <VirtualHost *:80>",
        ];
        let read = check(&files, &["apache2"], &expected);
        assert_eq!(read.kind, Kind::ApachePrefork);
        assert_eq!(read.fcgi, ["/run/php/x.sock", "127.0.0.1:9000"]);
    }

    #[test]
    fn a_proxy_says_the_socket_behind_a_name() {
        let main = "<FilesMatch \\.php$>\nSetHandler \"proxy:fcgi://php-fpm\"\n</FilesMatch>\nProxyPassMatch ^/(x)$ fcgi://other/$1\n\
            <Proxy \"unix:/run/php/x.sock|fcgi://PHP-fpm/\">\nProxySet timeout=9\n</Proxy>\n\
            <IfModule none.c>\n<Proxy \"unix:/run/y.sock|fcgi://other\">\n</Proxy>\n</IfModule>\n";
        let read = check(&[("apache2.conf", main)], &[], &[]);
        assert_eq!(read.fcgi, ["/run/php/x.sock", "other"]);
    }

    #[test]
    fn defines_and_words_of_the_command_line() {
        let main = "Define port 80\n<IfDefine STATUS>\nListen ${port}\n</IfDefine>\n<IfDefine !STATUS>\nListen 1\n</IfDefine>\nListen ${no}\n";
        let expected = ["Timeout=3@command line:1", "Listen=80@apache2.conf:3", "Listen=${no}@apache2.conf:8"];
        check(&[("apache2.conf", main)], &["httpd", "-k", "start", "-DSTATUS", "-C", "Timeout 3"], &expected);
        let started = Started::of(&["httpd", "-f/a/b", "-d", "/c"].map(str::to_owned));
        assert_eq!((started.file, started.root), (Some("/a/b".into()), Some("/c".into())));
    }

    #[test]
    fn modules_that_are_built_in_and_versions_choose_sections() {
        let main = "<IfModule mpm_event_module>\nMaxRequestWorkers 75\n</IfModule>\n<IfModule prefork.c>\nMaxRequestWorkers 9\n</IfModule>\n\
            <IfVersion < 2.4>\nTimeout 1\n</IfVersion>\n<IfVersion !< 2.4>\nTimeout 2\n</IfVersion>\n<IfVersion >= 2.4>\nKeepAlive Off\n</IfVersion>\n";
        let program = Program { version: Some([2, 4, 71]), built_in: ["mpm_event_module".to_owned()].into() };
        let expected =
            ["MaxRequestWorkers=75@apache2.conf:2", "Timeout=2@apache2.conf:11", "KeepAlive=Off@apache2.conf:14"];
        let read = check_of(&program, &[("apache2.conf", main)], &["httpd"], &expected);
        assert_eq!(read.kind, Kind::ApacheEvent);
    }

    #[test]
    fn a_file_that_includes_itself_ends() {
        check(
            &[("apache2.conf", "Include apache2.conf\nKeepAlive On\n")],
            &[],
            &["KeepAlive=On@apache2.conf:2"; DEEPEST + 1],
        );
    }

    #[test]
    fn variables_of_a_shell_file() {
        let found = variables("unset HOME\nexport A=/x$SUFFIX\n  B='y'\nexport C=$(date)\n# D=1\n");
        assert_eq!(found, BTreeMap::from([("A".into(), "/x".into()), ("B".into(), "y".into())]));
    }
}
