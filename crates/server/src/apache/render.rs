//! A whole private configuration as text, and which of its lines stand in the plan.
//!
//! Ours first, then the plan's common directives, then the variant's: where Apache takes the last word, the plan has it.

use super::install::Module;
use crate::account::Account;
use crate::php;
use model::plan::{Directive, Mpm};
use std::net::SocketAddr;
use std::path::Path;

/// Where mod_status answers.
pub(crate) const STATUS: &str = "/server-status";
/// Where mod_info answers.
pub(crate) const INFO: &str = "/server-info";
/// The socket between Apache and its CGI daemon, as Apache makes it: relative to `DefaultRuntimeDir`, not to the root.
const SCRIPT_SOCKET: &str = "cgisock";

/// What goes into a configuration.
#[derive(Debug, Clone)]
pub(crate) struct Parts<'a> {
    pub(crate) root: &'a Path,
    /// Where it listens.
    pub(crate) address: SocketAddr,
    /// Whom workers run as; `None` when nobody else can be chosen.
    pub(crate) account: Option<&'a Account>,
    pub(crate) mpm: Mpm,
    pub(crate) modules: &'a [Module],
    pub(crate) types: &'a Path,
    pub(crate) document_root: &'a Path,
    pub(crate) scripts: Option<&'a Path>,
    pub(crate) php: Option<&'a php::Prepared>,
    pub(crate) common: &'a [Directive],
    pub(crate) variant: &'a [Directive],
}

/// A configuration that remembers where its lines come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rendered {
    /// The text.
    pub(crate) text: String,
    /// The plan's directives in the order of their lines.
    pub(crate) planned: Vec<Directive>,
    // Lines before the first planned one.
    ours: usize,
}

impl Rendered {
    /// A configuration with the plan's directives behind it.
    pub(crate) fn of(mut text: String, common: &[Directive], variant: &[Directive]) -> Rendered {
        let ours = text.lines().count();
        let planned: Vec<Directive> = common.iter().chain(variant).cloned().collect();
        for directive in &planned {
            text.push_str(&directive.text);
            text.push('\n');
        }
        Rendered { text, planned, ours }
    }

    /// The directive of the plan on a line of the text, from 1.
    pub(crate) fn planned_at(&self, line: usize) -> Option<&Directive> {
        self.planned.get(line.checked_sub(self.ours + 1)?)
    }
}

/// Writes it.
pub(crate) fn render(parts: &Parts<'_>) -> Rendered {
    Rendered::of(ours(parts), parts.common, parts.variant)
}

fn ours(parts: &Parts<'_>) -> String {
    let mut lines = vec![
        format!("ServerRoot {}", quoted(parts.root)),
        format!("ServerName {}", parts.address.ip()),
        format!("Listen {}", parts.address),
        "PidFile run/httpd.pid".to_owned(),
        // Mutexes and the CGI daemon's socket follow it, so instances cannot meet.
        "DefaultRuntimeDir run".to_owned(),
        "ErrorLog logs/error.log".to_owned(),
        "LogLevel warn".to_owned(),
    ];
    lines.extend(parts.modules.iter().map(|m| format!("LoadModule {} {}", m.symbol, quoted(&m.file))));
    lines.extend(parts.account.map(|account| format!("User {}\nGroup {}", account.name, account.group)));
    lines.push(format!("TypesConfig {}", quoted(parts.types)));
    lines.push("<Directory />\nAllowOverride None\nRequire all denied\n</Directory>".to_owned());
    let root = quoted(parts.document_root);
    lines.push(format!("DocumentRoot {root}\n<Directory {root}>\nRequire all granted\n</Directory>"));
    if let Some(scripts) = parts.scripts {
        // Prefork's mod_cgi forks by itself.
        if parts.mpm != Mpm::Prefork {
            lines.push(format!("ScriptSock {SCRIPT_SOCKET}"));
        }
        // mod_alias wants both sides to end alike.
        lines.push(format!("ScriptAlias /cgi-bin/ {}", quoted(&scripts.join(""))));
        lines.push(format!("<Directory {}>\nOptions +ExecCGI\nRequire all granted\n</Directory>", quoted(scripts)));
    }
    lines.extend(parts.php.map(of_php));
    // It is asked only before it is measured, and only by us, even when something included listens elsewhere.
    for (path, handler) in [(STATUS, "server-status"), (INFO, "server-info")] {
        lines.push(format!("<Location {path}>\nSetHandler {handler}\nRequire local\n</Location>"));
    }
    lines.join("\n") + "\n"
}

/// As packages of PHP have it: files are passed on by their ending.
fn of_php(php: &php::Prepared) -> String {
    let handler = match php.socket() {
        None => "application/x-httpd-php".to_owned(),
        Some(socket) => format!("\"proxy:unix:{}|fcgi://localhost\"", socket.display()),
    };
    let (page, folder) = (quoted(&php::asked_page(php)), quoted(&php.folder));
    format!(
        "DirectoryIndex index.php index.html\n<FilesMatch \"\\.php$\">\nSetHandler {handler}\n</FilesMatch>\n\
         Alias {} {page}\n<Directory {folder}>\nRequire local\n</Directory>",
        php::PAGE
    )
}

/// A path as one argument: in quotes, the only characters that end them escaped.
pub(crate) fn quoted(path: &Path) -> String {
    format!("\"{}\"", path.to_string_lossy().replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn check(mpm: Mpm, scripts: Option<&str>, expected: &Expect) {
        let directive = |text: &str, line| Directive { text: text.into(), line };
        let account = Account { name: "www-data".into(), group: "www-data".into(), uid: 33, gids: vec![33] };
        let modules = [Module { symbol: "env_module".into(), file: "/m/mod_env.so".into() }];
        let rendered = render(&Parts {
            root: Path::new("/run/a \"b\""),
            address: ([127, 0, 0, 1], 18101).into(),
            account: (mpm == Mpm::Prefork).then_some(&account),
            mpm,
            modules: &modules,
            types: Path::new("/etc/mime.types"),
            document_root: Path::new("/srv/www"),
            scripts: scripts.map(Path::new),
            php: None,
            common: &[directive("StartServers 12", 31), directive("  SetEnv A b", 33)],
            variant: &[directive("MaxRequestWorkers 4", 40)],
        });
        let lines = rendered.text.lines().enumerate().map(|(i, line)| {
            let place = rendered.planned_at(i + 1).map_or("--".to_owned(), |d| d.line.to_string());
            format!("{place} {line}\n")
        });
        expected.assert_eq(&lines.collect::<String>());
        assert_eq!(rendered.planned_at(0), None);
        assert_eq!(rendered.planned_at(rendered.text.lines().count() + 1), None);
    }

    #[test]
    fn a_whole_configuration() {
        check(
            Mpm::Prefork,
            Some("/srv/bin"),
            &expect![[r#"
                -- ServerRoot "/run/a \"b\""
                -- ServerName 127.0.0.1
                -- Listen 127.0.0.1:18101
                -- PidFile run/httpd.pid
                -- DefaultRuntimeDir run
                -- ErrorLog logs/error.log
                -- LogLevel warn
                -- LoadModule env_module "/m/mod_env.so"
                -- User www-data
                -- Group www-data
                -- TypesConfig "/etc/mime.types"
                -- <Directory />
                -- AllowOverride None
                -- Require all denied
                -- </Directory>
                -- DocumentRoot "/srv/www"
                -- <Directory "/srv/www">
                -- Require all granted
                -- </Directory>
                -- ScriptAlias /cgi-bin/ "/srv/bin/"
                -- <Directory "/srv/bin">
                -- Options +ExecCGI
                -- Require all granted
                -- </Directory>
                -- <Location /server-status>
                -- SetHandler server-status
                -- Require local
                -- </Location>
                -- <Location /server-info>
                -- SetHandler server-info
                -- Require local
                -- </Location>
                31 StartServers 12
                33   SetEnv A b
                40 MaxRequestWorkers 4
            "#]],
        );
    }

    #[test]
    fn threads_need_a_cgi_daemon() {
        check(
            Mpm::Event,
            Some("/srv/bin"),
            &expect![[r#"
                -- ServerRoot "/run/a \"b\""
                -- ServerName 127.0.0.1
                -- Listen 127.0.0.1:18101
                -- PidFile run/httpd.pid
                -- DefaultRuntimeDir run
                -- ErrorLog logs/error.log
                -- LogLevel warn
                -- LoadModule env_module "/m/mod_env.so"
                -- TypesConfig "/etc/mime.types"
                -- <Directory />
                -- AllowOverride None
                -- Require all denied
                -- </Directory>
                -- DocumentRoot "/srv/www"
                -- <Directory "/srv/www">
                -- Require all granted
                -- </Directory>
                -- ScriptSock cgisock
                -- ScriptAlias /cgi-bin/ "/srv/bin/"
                -- <Directory "/srv/bin">
                -- Options +ExecCGI
                -- Require all granted
                -- </Directory>
                -- <Location /server-status>
                -- SetHandler server-status
                -- Require local
                -- </Location>
                -- <Location /server-info>
                -- SetHandler server-info
                -- Require local
                -- </Location>
                31 StartServers 12
                33   SetEnv A b
                40 MaxRequestWorkers 4
            "#]],
        );
    }
}
