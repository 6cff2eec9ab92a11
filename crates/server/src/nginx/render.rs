//! A whole private configuration as text, and which of its lines stand in the plan.
//!
//! A plan gives directives as they stand in the manual, each for itself: `worker_processes 2`, `worker_connections 512`,
//! `keepalive_timeout 0`, `location /x { ... }`. Where nginx wants them is known here. A plan may also write the blocks `events { ... }`,
//! `http { ... }` and `server { ... }` itself; they become part of ours. Where nginx takes a directive only once, the variant's
//! replaces the common one, and either replaces ours.

use super::lines::{Context, FILES, planned};
use crate::account::Account;
use crate::php;
use model::plan::Directive;
use std::net::SocketAddr;
use std::path::{Component, Path};

/// What a private instance must have its own way, and why.
const OURS: [(&str, &str); 4] = [
    ("daemon", "a private instance stays in the foreground"),
    ("listen", "a private instance listens on a port of its own"),
    ("master_process", "webdyno looks at the workers below their master"),
    ("pid", "a private instance has a file of its own"),
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

/// Writes it; or says which line of the plan cannot be, and why.
pub(crate) fn render(parts: &Parts<'_>) -> Result<Rendered, (Directive, String)> {
    let planned = planned(parts.common, parts.variant, &|text| objection(text, parts.root))?;
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
