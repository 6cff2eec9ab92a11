//! The machine's configuration with everything that it shares with the machine's own server replaced: ports, sockets, logs, caches,
//! temporary files.
//!
//! Everything else stays as it is written. What a module of somebody else's writes elsewhere by directives that are not known here it
//! writes there still.

use super::places::Places;
use crate::nginx::flat::{Becomes, Flat, flatten};
use crate::nginx::machine::servers::Listen;
use crate::nginx::machine::tree::{Statement, everywhere, level};
use crate::nginx::program::Built;
use crate::own::Door;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What the copy has of its own, or nobody needs of it.
const DROPPED: [&str; 5] = ["daemon", "google_perftools_profiles", "master_process", "pid", "working_directory"];
const LOGS: [&str; 2] = ["access_log", "error_log"];
/// Parts of `http` with a folder for what does not fit into memory.
const PARTS: [&str; 5] = ["client_body", "fastcgi", "proxy", "scgi", "uwsgi"];
/// Directives by which files are written beside the machine's documents.
const STORES: [&str; 5] = ["dav_methods", "fastcgi_store", "proxy_store", "scgi_store", "uwsgi_store"];
/// Directives whose first argument may lead to a server of the same configuration.
const PASSES: [&str; 6] = ["fastcgi_pass", "grpc_pass", "proxy_pass", "scgi_pass", "server", "uwsgi_pass"];
/// Blocks of directives; what stands in others is none.
const BLOCKS: [&str; 7] = ["events", "http", "if", "limit_except", "location", "server", "upstream"];

/// What is asked for.
pub(super) struct Wanted<'a> {
    pub(super) main: &'a Path,
    pub(super) prefix: &'a Path,
    pub(super) built: &'a Built,
    pub(super) doors: &'a [Door],
    /// A port for each door.
    pub(super) ports: &'a [u16],
    /// The instance's folder.
    pub(super) dir: &'a Path,
    pub(super) is_root: bool,
    /// Lines of `http` by which it tells that it has begun.
    pub(super) telling: &'a str,
}

/// The configuration as one text, and what was not taken over.
pub(super) struct Rewritten {
    pub(super) flat: Flat,
    /// One sentence each.
    pub(super) notes: Vec<String>,
}

/// Why a line of the plan cannot be in a copy.
pub(super) fn objection(text: &str, is_root: bool) -> Option<String> {
    let mut words = text.split([' ', '\t', ';', '{', '}']).filter(|word| !word.is_empty());
    let name = words.next()?;
    let why = match name {
        "daemon" | "master_process" | "pid" => "a copy has it its own way",
        "mail" | "stream" => "a copy has only what is for HTTP",
        "user" if !is_root => "only root chooses whom the workers run as",
        "listen" if words.any(is_closed) => "the load does not speak that",
        _ if STORES.contains(&name) => "a copy writes nothing beside the machine's documents",
        _ => return None,
    };
    Some(format!("{why}; remove the line"))
}

/// Writes it: `tree` is what the main file says, `texts` are all files.
pub(super) fn rewrite(tree: &[Statement], texts: &BTreeMap<PathBuf, String>, wanted: &Wanted<'_>) -> Rewritten {
    let mut rewriter = Rewriter { wanted, places: Places::new(wanted.dir, wanted.prefix), left: BTreeMap::new() };
    // Before anything leads to them.
    for listen in everywhere(tree).into_iter().filter(|it| it.is("listen")) {
        if let Some(path) = listen.args.first().and_then(|first| first.strip_prefix("unix:")) {
            let _ = rewriter.places.socket(path);
        }
    }
    let head = format!("daemon off;\npid \"{}\";\n", wanted.dir.join("run/nginx.pid").display());
    let flat = flatten(wanted.main, tree, texts, &head, &mut |statement, within| rewriter.becomes(statement, within));
    Rewritten { flat, notes: rewriter.notes() }
}

struct Rewriter<'a> {
    wanted: &'a Wanted<'a>,
    places: Places,
    /// What was left out, and how often.
    left: BTreeMap<&'static str, usize>,
}

/// Whether a word of `listen` asks for what the load does not speak.
fn is_closed(word: &str) -> bool {
    matches!(word, "proxy_protocol" | "quic")
}

impl Rewriter<'_> {
    fn becomes(&mut self, statement: &Statement, within: Option<&str>) -> Becomes {
        let (name, first) = (statement.name.as_str(), statement.args.first().map(String::as_str));
        if within.is_some_and(|block| !BLOCKS.contains(&block)) {
            return Becomes::Same;
        }
        match (name, first) {
            ("http", _) if within.is_none() => Becomes::With(self.further(statement)),
            ("events", _) if within.is_none() => Becomes::Same,
            _ if within.is_none() && statement.end.is_some() => self.without(match name {
                "mail" => "mail",
                "stream" => "stream",
                _ => "a block that is neither http nor events",
            }),
            ("server", _) if within == Some("http") => self.server(statement),
            ("listen", Some(_)) => self.listen(statement),
            ("user", _) if !self.wanted.is_root => Becomes::Gone,
            _ if DROPPED.contains(&name) => Becomes::Gone,
            (_, Some("off")) if STORES.contains(&name) => Becomes::Same,
            _ if STORES.contains(&name) => {
                self.without(if name == "dav_methods" { "dav_methods" } else { "..._store" })
            }
            (_, Some(first)) if LOGS.contains(&name) => {
                saying(statement, self.places.log(name, first, name == "error_log" && within.is_none()))
            }
            (_, Some(first)) if is_state(name) => saying(statement, self.places.state(name, first)),
            (_, Some(first)) if PASSES.contains(&name) && statement.end.is_none() => {
                self.inward(first).map_or(Becomes::Same, |to| saying(statement, to))
            }
            _ => Becomes::Same,
        }
    }

    fn without(&mut self, what: &'static str) -> Becomes {
        *self.left.entry(what).or_default() += 1;
        Becomes::Gone
    }

    /// Of a server whose doors are all left out nothing is left: it would listen on port 80. So does one that names none.
    fn server(&mut self, statement: &Statement) -> Becomes {
        let listens: Vec<&Statement> = level(&statement.inside).into_iter().filter(|it| it.is("listen")).collect();
        if listens.is_empty() {
            return match self.moved(&["80".to_owned()]) {
                Some(args) => Becomes::With(format!("listen {};", args.join(" "))),
                None => self.without("listeners with proxy_protocol"),
            };
        }
        if listens.iter().any(|listen| self.moved(&listen.args).is_some()) {
            return Becomes::Same;
        }
        for listen in listens {
            let _ = self.listen(listen);
        }
        Becomes::Gone
    }

    fn listen(&mut self, statement: &Statement) -> Becomes {
        match self.moved(&statement.args) {
            Some(args) => Becomes::Saying(args),
            None => self.without(match statement.args.iter().find(|word| is_closed(word)) {
                Some(word) if word == "quic" => "listeners with quic",
                Some(_) => "listeners with proxy_protocol",
                None => "listeners that lead nowhere here",
            }),
        }
    }

    /// Words of a `listen` for the copy's own port or socket.
    fn moved(&mut self, args: &[String]) -> Option<Vec<String>> {
        let (first, rest) = args.split_first()?;
        let place = match first.strip_prefix("unix:") {
            Some(_) if rest.iter().any(|word| is_closed(word)) => return None,
            Some(path) => format!("unix:{}", self.places.socket(path)?),
            None => {
                let listen = Listen::parse(args)?;
                let door = self.wanted.doors.iter().position(|door| listen.is_of(door))?;
                format!("127.0.0.1:{}", self.wanted.ports.get(door)?)
            }
        };
        let rest = rest.iter().filter(|word| !word.starts_with("ipv6only=")).cloned();
        Some(std::iter::once(place).chain(rest).collect())
    }

    /// What leads to the machine's own server leads to the copy instead: `http://127.0.0.1:8080/x`, `unix:/run/a.sock`.
    fn inward(&self, to: &str) -> Option<String> {
        let (scheme, rest) = to.split_once("://").map_or(("", to), |(scheme, rest)| (scheme, rest));
        let before = &to[..to.len() - rest.len()];
        if let Some(path) = rest.strip_prefix("unix:") {
            let (path, behind) = path.find(':').map_or((path, ""), |at| path.split_at(at));
            return Some(format!("{before}unix:{}{behind}", self.places.known_socket(path)?));
        }
        let (place, behind) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        let usual = if matches!(scheme, "https" | "grpcs") { 443 } else { 80 };
        let (host, port) = match place.rsplit_once(':').filter(|(_, port)| !port.contains(']')) {
            Some((host, port)) => (host, port.parse().ok()?),
            None => (place, usual),
        };
        let host = host.trim_matches(['[', ']']);
        let is_here = matches!(host, "127.0.0.1" | "::1" | "localhost");
        let leads = |door: &Door| {
            door.port == port && door.address.as_deref().is_none_or(|at| at == host || matches!(at, "::" | "localhost"))
        };
        let door = self.wanted.doors.iter().position(leads).filter(|_| is_here)?;
        Some(format!("{before}127.0.0.1:{}{behind}", self.wanted.ports.get(door)?))
    }

    /// What the http block lacks: without these it would write where the program was built to.
    fn further(&self, http: &Statement) -> String {
        let has = |name: &str| level(&http.inside).into_iter().any(|it| it.is(name));
        let within = |name: &str| self.wanted.dir.join(name).display().to_string();
        let mut lines = String::new();
        if !has("access_log") {
            lines += &format!("access_log \"{}\";\n", within("logs/access.log"));
        }
        for part in PARTS.iter().filter(|part| self.wanted.built.has(part)) {
            let name = format!("{part}_temp_path");
            if !has(&name) {
                lines += &format!("{name} \"{}\";\n", within(&format!("run/{part}")));
            }
        }
        lines + self.wanted.telling
    }

    fn notes(&self) -> Vec<String> {
        let left = self.left.iter().map(|(what, times)| match times {
            1 => format!("the copy has no {what}"),
            times => format!("the copy has no {what} ({times})"),
        });
        let sent = self.places.sent();
        let sent =
            (sent > 0).then(|| format!("logs that the machine's server sends to syslog ({sent}) are files here"));
        left.chain(sent).collect()
    }
}

/// Whether a directive's first argument is a file or folder that nginx keeps something in.
fn is_state(name: &str) -> bool {
    name == "lock_file" || name.ends_with("_temp_path") || name.ends_with("_cache_path")
}

/// The same with another first word.
fn saying(statement: &Statement, first: String) -> Becomes {
    let rest = statement.args.iter().skip(1).cloned();
    Becomes::Saying(std::iter::once(first).chain(rest).collect())
}
