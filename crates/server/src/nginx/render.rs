//! A whole private configuration as text, and which of its lines stand in the plan.
//!
//! A plan gives directives as they stand in the manual, each for itself: `worker_processes 2`, `worker_connections 512`,
//! `keepalive_timeout 0`, `location /x { ... }`. Where nginx wants them is known here. A plan may also write the blocks `events { ... }`,
//! `http { ... }` and `server { ... }` itself; they become part of ours. Where nginx takes a directive only once, the variant's
//! replaces the common one, and either replaces ours.

use crate::account::Account;
use crate::php;
use model::plan::Directive;
use std::net::SocketAddr;
use std::path::{Component, Path};

/// Where a directive belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Context {
    Main,
    Events,
    Http,
    Server,
}

/// What stands outside every block.
const MAIN: [&str; 17] = [
    "debug_points",
    "env",
    "load_module",
    "lock_file",
    "pcre_jit",
    "ssl_engine",
    "stream",
    "thread_pool",
    "timer_resolution",
    "user",
    "worker_cpu_affinity",
    "worker_priority",
    "worker_processes",
    "worker_rlimit_core",
    "worker_rlimit_nofile",
    "worker_shutdown_timeout",
    "working_directory",
];
const EVENTS: [&str; 7] = [
    "accept_mutex",
    "accept_mutex_delay",
    "debug_connection",
    "multi_accept",
    "use",
    "worker_aio_requests",
    "worker_connections",
];
/// What only a server or a location has; all else may stand in `http`.
const SERVER: [&str; 8] = ["if", "location", "return", "rewrite", "server_name", "set", "stub_status", "try_files"];
/// What may stand several times in one block, each adding to the others.
const SEVERAL: [&str; 24] = [
    "access_log",
    "add_header",
    "allow",
    "debug_connection",
    "deny",
    "env",
    "error_log",
    "error_page",
    "geo",
    "if",
    "include",
    "limit_conn",
    "limit_conn_zone",
    "limit_req",
    "limit_req_zone",
    "load_module",
    "location",
    "log_format",
    "map",
    "proxy_set_header",
    "rewrite",
    "set",
    "split_clients",
    "upstream",
];
/// What a private instance must have its own way, and why.
const OURS: [(&str, &str); 4] = [
    ("daemon", "a private instance stays in the foreground"),
    ("listen", "a private instance listens on a port of its own"),
    ("master_process", "webdyno looks at the workers below their master"),
    ("pid", "a private instance has a file of its own"),
];

/// Directives whose first argument is a file or folder to write to.
const FILES: [&str; 10] = [
    "access_log",
    "client_body_temp_path",
    "error_log",
    "fastcgi_cache_path",
    "fastcgi_temp_path",
    "lock_file",
    "proxy_cache_path",
    "proxy_temp_path",
    "scgi_temp_path",
    "uwsgi_temp_path",
];

/// What PHP is told of a request, as in nginx's own `fastcgi_params`.
const FASTCGI: [(&str, &str); 14] = [
    ("QUERY_STRING", "$query_string"),
    ("REQUEST_METHOD", "$request_method"),
    ("CONTENT_TYPE", "$content_type"),
    ("CONTENT_LENGTH", "$content_length"),
    ("SCRIPT_NAME", "$fastcgi_script_name"),
    ("REQUEST_URI", "$request_uri"),
    ("DOCUMENT_URI", "$document_uri"),
    ("DOCUMENT_ROOT", "$document_root"),
    ("SERVER_PROTOCOL", "$server_protocol"),
    ("REMOTE_ADDR", "$remote_addr"),
    ("REMOTE_PORT", "$remote_port"),
    ("SERVER_ADDR", "$server_addr"),
    ("SERVER_PORT", "$server_port"),
    ("SERVER_NAME", "$server_name"),
];

/// What goes into a configuration.
#[derive(Debug, Clone)]
pub(crate) struct Parts<'a> {
    pub(crate) root: &'a Path,
    /// Where it listens.
    pub(crate) address: SocketAddr,
    /// Whom workers run as; `None` when nobody else can be chosen.
    pub(crate) account: Option<&'a Account>,
    pub(crate) types: &'a Path,
    pub(crate) document_root: &'a Path,
    pub(crate) php: Option<&'a php::Prepared>,
    /// Where to tell counters.
    pub(crate) status: Option<&'a Path>,
    pub(crate) common: &'a [Directive],
    pub(crate) variant: &'a [Directive],
}

/// A configuration that remembers where its lines come from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Rendered {
    /// The text.
    pub(crate) text: String,
    /// For each line of it, what of the plan stands there.
    lines: Vec<Option<Directive>>,
}

impl Rendered {
    /// The directive of the plan on a line of the text, from 1.
    pub(crate) fn planned_at(&self, line: usize) -> Option<&Directive> {
        self.lines.get(line.checked_sub(1)?)?.as_ref()
    }

    /// The directives of the plan that are in force, in the order of their lines.
    pub(crate) fn planned(&self) -> impl Iterator<Item = &Directive> {
        self.lines.iter().flatten()
    }

    fn push(&mut self, text: &str, planned: Option<&Directive>) {
        // nginx counts lines, and a directive of ours may have several.
        for line in text.lines() {
            self.text.push_str(line);
            self.text.push('\n');
            self.lines.push(planned.cloned());
        }
    }
}

/// A directive with its block, if it has one: lines of the plan that belong together.
#[derive(Debug, Clone)]
struct Statement {
    context: Context,
    name: String,
    lines: Vec<Directive>,
}

/// Writes it; or says which line of the plan cannot be, and why.
pub(crate) fn render(parts: &Parts<'_>) -> Result<Rendered, (Directive, String)> {
    let common = statements(parts.common, parts.root)?;
    let variant = statements(parts.variant, parts.root)?;
    let replaced = |statement: &Statement| {
        let once = !SEVERAL.contains(&statement.name.as_str());
        once && variant.iter().any(|by| by.context == statement.context && by.name == statement.name)
    };
    let planned: Vec<Statement> =
        common.into_iter().filter(|statement| !replaced(statement)).chain(variant.iter().cloned()).collect();
    let mut rendered = Rendered::default();
    for context in [Context::Main, Context::Events, Context::Http, Context::Server] {
        if let Some(opening) = opening(context) {
            rendered.push(opening, None);
        }
        for (name, line) in ours(context, parts) {
            if !planned.iter().any(|statement| statement.name == name) {
                rendered.push(&line, None);
            }
        }
        for line in planned.iter().filter(|statement| statement.context == context).flat_map(|it| &it.lines) {
            rendered.push(&line.text, Some(line));
        }
        if context == Context::Events {
            rendered.push("}", None);
        }
    }
    rendered.push("}\n}", None);
    Ok(rendered)
}

fn opening(context: Context) -> Option<&'static str> {
    match context {
        Context::Main => None,
        Context::Events => Some("events {"),
        Context::Http => Some("http {"),
        Context::Server => Some("server {"),
    }
}

/// Our lines of a block, each with the name of a directive that the plan may have instead.
fn ours(context: Context, parts: &Parts<'_>) -> Vec<(&'static str, String)> {
    let within = |name: &str| quoted(&parts.root.join(name));
    match context {
        Context::Main => {
            let mut lines = vec![
                ("daemon", "daemon off;".to_owned()),
                ("pid", format!("pid {};", within("run/nginx.pid"))),
                ("error_log", format!("error_log {} warn;", within("logs/error.log"))),
            ];
            let user = parts.account.map(|account| ("user", format!("user {} {};", account.name, account.group)));
            lines.extend(user);
            lines
        }
        Context::Events => Vec::new(),
        Context::Http => {
            let mut lines = vec![
                ("types", format!("include {};", quoted(parts.types))),
                ("default_type", "default_type application/octet-stream;".to_owned()),
                ("access_log", format!("access_log {};", within("logs/access.log"))),
                ("root", format!("root {};", quoted(parts.document_root))),
            ];
            if parts.php.is_some() {
                lines.push(("index", "index index.php index.html;".to_owned()));
            }
            lines.extend(parts.status.map(|socket| ("", of_status(socket))));
            for name in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"] {
                lines.push(("", format!("{name}_temp_path {};", within(&format!("run/{name}")))));
            }
            lines
        }
        Context::Server => {
            let mut lines = vec![
                ("listen", format!("listen {};", parts.address)),
                ("server_name", format!("server_name {};", parts.address.ip())),
            ];
            lines.extend(parts.php.and_then(of_php).map(|php| ("", php)));
            lines
        }
    }
}

/// A door of its own for the counters, which nobody else comes through.
fn of_status(socket: &Path) -> String {
    let listen = quoted_text(&format!("unix:{}", socket.display()));
    format!("server {{\nlisten {listen};\naccess_log off;\nlocation / {{\nstub_status;\n}}\n}}")
}

/// As packages have it: files that end in `.php` and exist are passed on.
fn of_php(php: &php::Prepared) -> Option<String> {
    let to = format!("fastcgi_pass {};", quoted_text(&format!("unix:{}", php.socket()?.display())));
    let params: Vec<String> = FASTCGI.iter().map(|(name, value)| format!("fastcgi_param {name} {value};")).collect();
    let params = params.join("\n");
    Some(format!(
        "location ~ \\.php$ {{\ntry_files $fastcgi_script_name =404;\n{to}\n\
         fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;\n{params}\n}}\n\
         location = {} {{\nallow 127.0.0.1;\ndeny all;\naccess_log off;\n{to}\nfastcgi_param SCRIPT_FILENAME {};\n{params}\n}}",
        php::PAGE,
        quoted(&php::asked_page(php))
    ))
}

/// A path as one argument: in quotes, the only characters that mean something there escaped.
fn quoted(path: &Path) -> String {
    quoted_text(&path.to_string_lossy())
}

fn quoted_text(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('$', "\\$"))
}

/// Why an instance in `dir` must not have a line, wherever it stands. As with Apache, it keeps a mistake from doing harm and is no wall.
fn objection(text: &str, dir: &Path) -> Option<String> {
    let mut words = text.split([' ', '\t', ';', '{', '}']).filter(|word| !word.is_empty());
    let name = words.next()?;
    if let Some((_, why)) = OURS.iter().find(|(ours, _)| *ours == name) {
        return Some(format!("{why}; remove the line"));
    }
    let value = words.next()?.trim_matches(['"', '\'']);
    let path = Path::new(value.strip_prefix("memory:").map_or(value, |_| "stderr"));
    let goes_up = path.components().any(|part| part == Component::ParentDir);
    let stays = path == Path::new("/dev/null")
        || value.starts_with("syslog:")
        || !goes_up && (path.is_relative() || path.starts_with(dir));
    (FILES.contains(&name) && !stays)
        .then(|| "would write outside the instance's folder; name a file in it, such as logs/other.log".to_owned())
}

/// Takes the plan's lines apart: which belong together, and where.
fn statements(lines: &[Directive], dir: &Path) -> Result<Vec<Statement>, (Directive, String)> {
    let mut found: Vec<Statement> = Vec::new();
    // Blocks of the plan that are part of ours, and the depth within the current statement.
    let (mut around, mut depth) = (vec![None], 0_usize);
    for directive in lines {
        let text = without_comment(&directive.text);
        let name = text.split([' ', '\t', ';', '{']).find(|word| !word.is_empty()).unwrap_or_default();
        let (opened, closed) = braces(text);
        if depth == 0 && matches!((text, closed), ("}", 1)) {
            if around.len() == 1 {
                return Err((directive.clone(), "there is no block to end here".to_owned()));
            }
            around.pop();
            continue;
        }
        if let Some(why) = objection(text, dir) {
            return Err((directive.clone(), why));
        }
        if depth == 0 && text.is_empty() {
            continue;
        }
        if depth == 0 {
            if let Some(block) = block(name).filter(|_| opened > closed) {
                around.push(Some(block));
                continue;
            }
            let context = around.last().copied().flatten().unwrap_or_else(|| belongs(name));
            found.push(Statement { context, name: name.to_owned(), lines: Vec::new() });
        }
        depth = (depth + opened)
            .checked_sub(closed)
            .ok_or_else(|| (directive.clone(), "there is no block to end here".to_owned()))?;
        let ended = depth > 0 || text.is_empty() || text.ends_with([';', '{', '}']);
        // As in a list of settings, where nobody misses it.
        let text = if ended { directive.text.clone() } else { format!("{text};") };
        if let Some(statement) = found.last_mut() {
            statement.lines.push(Directive { text, line: directive.line });
        }
    }
    match (depth, around.len(), lines.last()) {
        (0, 1, _) | (_, _, None) => Ok(found),
        (_, _, Some(last)) => Err((last.clone(), "a block that began before does not end".to_owned())),
    }
}

/// Blocks of a plan that are part of ours.
fn block(name: &str) -> Option<Context> {
    match name {
        "events" => Some(Context::Events),
        "http" => Some(Context::Http),
        "server" => Some(Context::Server),
        _ => None,
    }
}

fn belongs(name: &str) -> Context {
    if MAIN.contains(&name) {
        Context::Main
    } else if EVENTS.contains(&name) {
        Context::Events
    } else if SERVER.contains(&name) {
        Context::Server
    } else {
        Context::Http
    }
}

fn without_comment(text: &str) -> &str {
    let mut quote = None;
    for (at, letter) in text.char_indices() {
        match (quote, letter) {
            (None, '#') => return text[..at].trim(),
            (None, '"' | '\'') => quote = Some(letter),
            (Some(open), _) if open == letter => quote = None,
            _ => {}
        }
    }
    text.trim()
}

/// Braces that open and close blocks: those outside quotes that are no `${name}`.
fn braces(text: &str) -> (usize, usize) {
    let (mut quote, mut before, mut variable) = (None, ' ', false);
    let (mut opened, mut closed) = (0, 0);
    for letter in text.chars() {
        match (quote, letter) {
            (None, '"' | '\'') => quote = Some(letter),
            (None, '{') if before == '$' => variable = true,
            (None, '}') if variable => variable = false,
            (None, '{') => opened += 1,
            (None, '}') => closed += 1,
            (Some(open), _) if open == letter => quote = None,
            _ => {}
        }
        before = letter;
    }
    (opened, closed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn directives(text: &str, first: usize) -> Vec<Directive> {
        text.lines().enumerate().map(|(at, text)| Directive { text: text.to_owned(), line: first + at }).collect()
    }

    fn check(common: &str, variant: &str, expected: &Expect) {
        let (common, variant) = (directives(common, 10), directives(variant, 50));
        let account = Account { name: "www-data".into(), group: "www-data".into(), uid: 33, gids: vec![33] };
        let parts = Parts {
            root: Path::new("/r"),
            address: ([127, 0, 0, 1], 18101).into(),
            account: Some(&account),
            types: Path::new("/etc/nginx/mime.types"),
            document_root: Path::new("/srv/www"),
            php: None,
            status: None,
            common: &common,
            variant: &variant,
        };
        let shown = match render(&parts) {
            Err((directive, why)) => format!("{}: {}: {why}", directive.line, directive.text),
            Ok(rendered) => {
                let line = |(at, line): (usize, &str)| {
                    let place = rendered.planned_at(at + 1).map_or("--".to_owned(), |d| d.line.to_string());
                    format!("{place} {line}\n")
                };
                rendered.text.lines().enumerate().map(line).collect()
            }
        };
        expected.assert_eq(&shown);
    }

    #[test]
    fn each_directive_comes_where_it_belongs() {
        check(
            "worker_processes 1\nworker_connections 512;\nkeepalive_timeout 0  # none\nlocation /x {\n  return 204;\n}",
            "worker_processes auto;",
            &expect![[r#"
                -- daemon off;
                -- pid "/r/run/nginx.pid";
                -- error_log "/r/logs/error.log" warn;
                -- user www-data www-data;
                50 worker_processes auto;
                -- events {
                11 worker_connections 512;
                -- }
                -- http {
                -- include "/etc/nginx/mime.types";
                -- default_type application/octet-stream;
                -- access_log "/r/logs/access.log";
                -- root "/srv/www";
                -- client_body_temp_path "/r/run/client_body";
                -- proxy_temp_path "/r/run/proxy";
                -- fastcgi_temp_path "/r/run/fastcgi";
                -- uwsgi_temp_path "/r/run/uwsgi";
                -- scgi_temp_path "/r/run/scgi";
                12 keepalive_timeout 0;
                -- server {
                -- listen 127.0.0.1:18101;
                -- server_name 127.0.0.1;
                13 location /x {
                14   return 204;
                15 }
                -- }
                -- }
            "#]],
        );
    }

    #[test]
    fn blocks_of_the_plan_are_part_of_ours() {
        check(
            "events {\n  multi_accept on;\n}\nhttp {\n  log_format f '$x {';\n  access_log off;\n  server {\n    root /y;\n  }\n}",
            "limit_conn_zone $binary_remote_addr zone=a:1m;\nuser nobody;",
            &expect![[r#"
                -- daemon off;
                -- pid "/r/run/nginx.pid";
                -- error_log "/r/logs/error.log" warn;
                51 user nobody;
                -- events {
                11   multi_accept on;
                -- }
                -- http {
                -- include "/etc/nginx/mime.types";
                -- default_type application/octet-stream;
                -- client_body_temp_path "/r/run/client_body";
                -- proxy_temp_path "/r/run/proxy";
                -- fastcgi_temp_path "/r/run/fastcgi";
                -- uwsgi_temp_path "/r/run/uwsgi";
                -- scgi_temp_path "/r/run/scgi";
                14   log_format f '$x {';
                15   access_log off;
                50 limit_conn_zone $binary_remote_addr zone=a:1m;
                -- server {
                -- listen 127.0.0.1:18101;
                -- server_name 127.0.0.1;
                17     root /y;
                -- }
                -- }
            "#]],
        );
    }

    #[test]
    fn what_cannot_be() {
        check(
            "listen 80;",
            "",
            &expect!["10: listen 80;: a private instance listens on a port of its own; remove the line"],
        );
        check(
            "location / {\n access_log /var/log/x.log; }",
            "",
            &expect![
                "11:  access_log /var/log/x.log; }: would write outside the instance's folder; name a file in it, such as logs/other.log"
            ],
        );
        check(
            "",
            "access_log \"/r/logs/../../x\"",
            &expect![[
                r#"50: access_log "/r/logs/../../x": would write outside the instance's folder; name a file in it, such as logs/other.log"#
            ]],
        );
        check("location / {", "", &expect!["10: location / {: a block that began before does not end"]);
        check("sendfile on;\n}", "", &expect!["11: }: there is no block to end here"]);
        check("return 200 \"${a}}\"; }", "", &expect![[r#"10: return 200 "${a}}"; }: there is no block to end here"#]]);
    }
}
