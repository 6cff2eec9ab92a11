//! What a plan may not say of a server that is not webdyno's, and what of it needs more than a reload.

use crate::nginx::lines::FILES;
use crate::nginx::machine::tree::{Statement, everywhere, level};
use model::plan::Directive;
use std::collections::{BTreeMap, BTreeSet};

/// By which it is controlled.
const OURS: [&str; 3] = ["daemon", "master_process", "pid"];
/// A master loads it once.
const FULL: [&str; 1] = ["ssl_engine"];
/// What memory that old and new workers share is made for: a reload with another key or path for the same name is refused ("uses the ... key
/// while previously it used the ... key", "had previously different levels", seen with 1.22.1). All else is taken.
const SHARED: [&str; 6] = [
    "fastcgi_cache_path",
    "limit_conn_zone",
    "limit_req_zone",
    "proxy_cache_path",
    "scgi_cache_path",
    "uwsgi_cache_path",
];

/// What begins the words of them that a reload takes.
const TAKEN: [&str; 9] =
    ["inactive=", "keys_zone=", "loader_", "manager_", "max_size=", "min_free=", "rate=", "use_temp_path=", "zone="];

/// Why a line of a plan must not be, given the configuration.
pub(super) fn objection(text: &str, known: &BTreeSet<String>) -> Option<String> {
    let mut words = text.split([' ', '\t', ';', '{', '}']).filter(|word| !word.is_empty());
    let name = words.next()?;
    if OURS.contains(&name) {
        return Some("is the machine's own, by which it is controlled; remove the line".to_owned());
    }
    let value = words.next()?.trim_matches(['"', '\'']);
    let no_file = matches!(value, "off" | "/dev/null" | "stderr")
        || ["syslog:", "memory:"].iter().any(|it| value.starts_with(it));
    if !FILES.contains(&name) || no_file || known.contains(value) {
        return None;
    }
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    let known = if known.is_empty() { String::new() } else { format!(" ({})", known.join(", ")) };
    Some(format!("would leave a file behind; write to one that the configuration writes to already{known}, or to none"))
}

/// Files and folders that the configuration writes to.
pub(super) fn written(tree: &[Statement]) -> BTreeSet<String> {
    let writes = everywhere(tree).into_iter().filter(|it| FILES.contains(&it.name.as_str()));
    writes.filter_map(|it| it.args.first().cloned()).filter(|path| path != "off").collect()
}

/// The name of a directive that differs between two configurations in a way that needs a full restart.
pub(super) fn needs_full(before: &[Statement], after: &[Statement]) -> Option<String> {
    let (before, after) = (once(before), once(after));
    let other = after
        .iter()
        .find(|(thing, value)| before.get(*thing).map_or(FULL.contains(&thing.0.as_str()), |then| then != *value));
    let gone = || before.keys().find(|thing| FULL.contains(&thing.0.as_str()) && !after.contains_key(thing));
    other.map(|(thing, _)| thing).or_else(gone).map(|(name, _)| name.clone())
}

/// What of a configuration only a full restart changes: by name, and name of the memory, what it is.
fn once(tree: &[Statement]) -> BTreeMap<(String, String), String> {
    let top = level(tree);
    let http = top.iter().filter(|it| it.is("http")).flat_map(|http| level(&http.inside));
    let of_zone = |word: &&String| !TAKEN.iter().any(|part| word.starts_with(part));
    let zone = |it: &Statement| {
        let zones =
            it.args.iter().find_map(|word| word.strip_prefix("keys_zone=").or_else(|| word.strip_prefix("zone=")));
        zones.and_then(|zone| zone.split(':').next()).unwrap_or_default().to_owned()
    };
    let shared = http.filter(|it| SHARED.contains(&it.name.as_str())).map(|it| {
        let what: Vec<&str> = it.args.iter().filter(of_zone).map(String::as_str).collect();
        ((it.name.clone(), zone(it)), what.join(" "))
    });
    let full = top.iter().filter(|it| FULL.contains(&it.name.as_str()));
    shared.chain(full.map(|it| ((it.name.clone(), String::new()), it.value()))).collect()
}

/// The line of the plan that sets a directive, or its first.
pub(super) fn line_of<'a>(name: &str, lines: &'a [Directive]) -> Option<&'a Directive> {
    let sets = |line: &&Directive| line.text.split([' ', '\t', ';']).find(|word| !word.is_empty()) == Some(name);
    lines.iter().find(sets).or(lines.first())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nginx::machine::tree::parse;
    use std::path::Path;

    fn tree(text: &str) -> Vec<Statement> {
        parse(Path::new("/m"), &[("/m".into(), text.to_owned())].into()).unwrap()
    }

    #[test]
    fn some_changes_need_a_full_restart() {
        let zone =
            |key: &str, size: &str| format!("worker_processes 1; http {{ limit_conn_zone {key} zone=a:{size}; }}");
        let check = |before: &str, after: &str, expected: Option<&str>| {
            assert_eq!(needs_full(&tree(before), &tree(after)).as_deref(), expected, "{before} {after}");
        };
        check("", "worker_processes 2; events { worker_connections 9; }", None);
        check(&zone("$a", "1m"), &zone("$a", "2m"), None);
        check(&zone("$a", "1m"), &zone("$b", "1m"), Some("limit_conn_zone"));
        check("", &zone("$a", "1m"), None);
        let cache = |words: &str| format!("http {{ proxy_cache_path /c {words} keys_zone=z:1m; }}");
        let other = cache("levels=1:2 max_size=2m inactive=7m min_free=1m use_temp_path=off loader_files=7");
        check(&cache("levels=1:2 max_size=1m"), &other, None);
        check(&cache("levels=1:2"), &cache("levels=1"), Some("proxy_cache_path"));
        check("ssl_engine x;", "", Some("ssl_engine"));
        check("", "ssl_engine x;", Some("ssl_engine"));
    }

    #[test]
    fn nothing_is_left_behind() {
        let known = written(&tree("error_log /l/e; http { access_log /l/a x; server { access_log off; } }"));
        let check = |text: &str, expected: bool| assert_eq!(objection(text, &known).is_some(), expected, "{text}");
        check("pid /x;", true);
        check("daemon off;", true);
        check("access_log /l/b;", true);
        check("access_log logs/b;", true);
        check("access_log /l/a x buffer=64k;", false);
        check("access_log off;", false);
        check("error_log syslog:server=unix:/dev/log;", false);
        check("worker_processes 2;", false);
    }
}
