//! What a plan says of a server that is there already, and what it cannot say then: nothing of such a server is changed, limited, ended
//! or told of services.

use super::cells::Made;
use super::source::Source;
use super::{ConfineText, PlanError, Written};
use crate::plan::{ServerSpec, Url};
use std::num::NonZeroU16;
use std::ops::Range;
use std::path::PathBuf;
use toml::Spanned;

/// Whose certificates are believed.
pub(super) struct Trust {
    pub(super) insecure: Option<Spanned<bool>>,
    pub(super) cacert: Option<Spanned<PathBuf>>,
}

/// The server. Where it is, is found out when the plan is run.
pub(super) fn url_meant(
    source: &Source<'_>,
    written: Option<&Spanned<String>>,
    kind: Range<usize>,
    ready: Option<Range<usize>>,
    trust: &Trust,
) -> Result<Url, PlanError> {
    let at = |place: Range<usize>, what: &str| source.at(place, "server.url", what);
    let written =
        written.ok_or_else(|| at(kind, "say where the server is, such as url = \"http://127.0.0.1:8080/\""))?;
    objection(written.get_ref()).map_or(Ok(()), |what| Err(at(written.span(), what)))?;
    let url = written.get_ref().clone();
    let insecure = trust.insecure.as_ref().filter(|wanted| *wanted.get_ref());
    let is_https = url.starts_with("https://");
    if let Some(ready) = ready.filter(|_| is_https) {
        return Err(source.at(ready, "server.ready", "behind https a connection is enough; remove the line"));
    }
    match (insecure, &trust.cacert) {
        (Some(insecure), _) if !is_https => {
            Err(source.at(insecure.span(), "server.insecure", "is for https; remove the line"))
        }
        (None, Some(file)) if !is_https => {
            Err(source.at(file.span(), "server.cacert", "is for https; remove the line"))
        }
        (Some(_), Some(file)) => {
            let what = "whoever believes any certificate needs no authorities; give `insecure` or `cacert`";
            Err(source.at(file.span(), "server.cacert", what))
        }
        (insecure, cacert) => {
            let cacert = cacert.as_ref().map(|file| source.path(file.get_ref()));
            Ok(Url { url, insecure: insecure.is_some(), cacert, ..Url::default() })
        }
    }
}

/// What is wrong with a URL that stands for a server.
fn objection(url: &str) -> Option<&'static str> {
    let Some(rest) = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://")) else {
        return Some("must begin with http:// or https://, such as \"http://127.0.0.1:8080/\"");
    };
    let authority = rest.strip_suffix('/').unwrap_or(rest);
    if authority.contains('@') {
        return Some("names and passwords do not belong here; put `Authorization` into the `headers` of the loads");
    }
    if authority.contains(['/', '?', '#']) {
        return Some("names the server only; each load has a `path` of its own");
    }
    let bad = |c: char| c.is_whitespace() || c.is_control() || c == '\\';
    if authority.is_empty() || authority.starts_with(':') || authority.contains(bad) {
        return Some("must name a host, such as \"http://127.0.0.1:8080/\"");
    }
    // The colons of an IPv6 address stand in brackets.
    let port = authority.rsplit_once(':').map(|(_, port)| port).filter(|port| !port.ends_with(']'));
    if port.is_some_and(|port| port.parse::<NonZeroU16>().is_err()) {
        return Some("write http://HOST[:PORT]/, with a port of 1 to 65535");
    }
    None
}

/// Refuses what can be said only of a server that webdyno controls, where it does not.
pub(super) fn refuse_control(source: &Source<'_>, written: &Written) -> Result<(), PlanError> {
    let server = &written.server;
    if !server.is_url() {
        return Ok(());
    }
    let first = |span: Option<Range<usize>>, key: &'static str, what: &'static str| Some((span?, key, what));
    let (line, table) = ("the line", "the table");
    let services = written.service.values().map(Spanned::span).min_by_key(|span| span.start);
    let variants = written.variant.values().map(Spanned::span).min_by_key(|span| span.start);
    let keys = [
        first(server.directives.as_ref().map(Spanned::span), "server.directives", line),
        first(server.files.first().map(Spanned::span), "server.files", line),
        first(server.sysctl.values().next().map(Spanned::span), "server.sysctl", line),
        first(server.ending.as_ref().map(Spanned::span), "server.ending", line),
        first(server.ending_after.as_ref().map(Spanned::span), "server.ending_after", line),
        first(server.keep.as_ref().map(Spanned::span), "server.keep", line),
        first(services, "service", table),
        first(written.confine.as_ref().and_then(ConfineText::place), "confine", table),
        first(written.memory.place(), "memory", table),
        first(variants, "variant", table),
    ];
    let Some((span, key, what)) = keys.into_iter().flatten().min_by_key(|(span, ..)| span.start) else { return Ok(()) };
    let what = match key {
        "variant" => {
            "nothing is changed about a server of `kind = \"url\"`, so it has no variants; remove the table, and compare loads".to_owned()
        }
        _ => format!(
            "webdyno leaves a server of `kind = \"url\"` as it is; remove {what}, or choose a kind that it controls, such as \"apache\" \
             with `in_place`"
        ),
    };
    Err(source.at(span, key, &what))
}

/// Refuses cells that differ by settings of such a server.
pub(super) fn refuse_settings(source: &Source<'_>, server: &ServerSpec, made: &Made) -> Result<(), PlanError> {
    let set = made.variants.iter().flat_map(|variant| &variant.directives).next();
    let Some(directive) = set.filter(|_| server.url().is_some()) else { return Ok(()) };
    let (key, instead) = match made.sweep {
        Some(_) => ("sweep", "sweep over `connections`"),
        None => ("factors", "let the levels differ by `load` or `connections`"),
    };
    Err(PlanError {
        file: source.file.to_owned(),
        line: Some(directive.line),
        key: Some(key.to_owned()),
        what: format!("a server of `kind = \"url\"` is left as it is; {instead}"),
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Options, parse};
    use expect_test::{Expect, expect};
    use std::path::Path;

    /// The cells of a plan of such a server, or what is wrong with it.
    fn told(server: &str, more: &str) -> String {
        let text = format!(
            "[server]\nkind = \"url\"\n{server}\n[load.few]\npath = \"/\"\nconnections = 15\nrequests = 1\n{more}\n"
        );
        match parse(&text, Path::new("p.toml"), &Options::default()) {
            Err(error) => error.to_string(),
            Ok((plan, _)) => plan.cells.iter().map(|cell| format!("{}\n", cell.name)).collect(),
        }
    }

    fn check(server: &str, more: &str, expected: &Expect) {
        expected.assert_eq(&told(server, more));
    }

    /// What is said of a line or a table that needs control of the server.
    fn left_alone(what: &str) -> String {
        format!(
            "webdyno leaves a server of `kind = \"url\"` as it is; remove the {what}, or choose a kind that it controls, such as \"apache\" with `in_place`"
        )
    }

    const HERE: &str = "url = \"http://127.0.0.1:8080/\"";
    const MANY: &str = "[load.many]\npath = \"/\"\nconnections = 100\nrequests = 1";

    #[test]
    fn loads_are_compared() {
        check(
            HERE,
            MANY,
            &expect![[r#"
                few
                few (A/A)
                many
            "#]],
        );
        let factors = format!("{MANY}\n[factors.clients]\nfew = {{ load = \"few\" }}\nmany = {{ load = \"many\" }}");
        check(
            &format!("{HERE}\nready = \"/up\""),
            &factors,
            &expect![[r#"
            few
            few (A/A)
            many
        "#]],
        );
        check(
            HERE,
            "[sweep]\nover = \"connections\"\nvalues = [1, 2]",
            &expect![[r#"
            connections 1
            connections 1 (A/A)
            connections 2
        "#]],
        );
        let guarded = "[warmup]\nrequests = 3\n[guards]\nfailures = 0.5\n[placement]\nsplit = false\n[load]\nfrom = \"ssh:other\"";
        check(
            "url = \"https://www.example.com\"",
            guarded,
            &expect![[r#"
                as-is
                as-is (A/A)
            "#]],
        );
    }

    #[test]
    fn a_url_names_a_server() {
        let url = |url: &str, expected: &Expect| check(&format!("url = \"{url}\""), "", expected);
        check(
            "",
            "",
            &expect![[r#"p.toml:2: server.url: say where the server is, such as url = "http://127.0.0.1:8080/""#]],
        );
        url(
            "127.0.0.1",
            &expect![[
                r#"p.toml:3: server.url: must begin with http:// or https://, such as "http://127.0.0.1:8080/""#
            ]],
        );
        url(
            "http://127.0.0.1\\\\x/",
            &expect![[r#"p.toml:3: server.url: must name a host, such as "http://127.0.0.1:8080/""#]],
        );
        for port in ["99999", "0", "x", ""] {
            url(
                &format!("http://127.0.0.1:{port}/"),
                &expect!["p.toml:3: server.url: write http://HOST[:PORT]/, with a port of 1 to 65535"],
            );
        }
        for good in ["http://[::1]", "http://[::1]:8080/", "https://a.example:8443"] {
            url(
                good,
                &expect![[r#"
                as-is
                as-is (A/A)
            "#]],
            );
        }
        url("http:///", &expect![[r#"p.toml:3: server.url: must name a host, such as "http://127.0.0.1:8080/""#]]);
        url(
            "http://a.example/page",
            &expect!["p.toml:3: server.url: names the server only; each load has a `path` of its own"],
        );
        url(
            "http://a.example?q",
            &expect!["p.toml:3: server.url: names the server only; each load has a `path` of its own"],
        );
        url(
            "http://me:secret@a.example/",
            &expect![
                "p.toml:3: server.url: names and passwords do not belong here; put `Authorization` into the `headers` of the loads"
            ],
        );
        check(
            &format!("{HERE}\nready = [\"true\"]"),
            "",
            &expect![[
                r#"p.toml:4: server.ready: only `kind = "command"` has a command here; give a path that it answers"#
            ]],
        );
        check(
            &format!("{HERE}\ncacert = \"ca.pem\""),
            "",
            &expect!["p.toml:4: server.cacert: is for https; remove the line"],
        );
        check(
            &format!("{HERE}\ninsecure = true"),
            "",
            &expect!["p.toml:4: server.insecure: is for https; remove the line"],
        );
        check(
            "url = \"https://a.example/\"\nready = \"/up\"",
            "",
            &expect!["p.toml:4: server.ready: behind https a connection is enough; remove the line"],
        );
        let both = "url = \"https://a.example/\"\ninsecure = true\ncacert = \"ca.pem\"";
        check(
            both,
            "",
            &expect![
                "p.toml:5: server.cacert: whoever believes any certificate needs no authorities; give `insecure` or `cacert`"
            ],
        );
    }

    #[test]
    fn what_needs_control_is_refused() {
        let refused = |line: &str| told(&format!("{HERE}\n{line}"), "");
        for (key, value) in [
            ("directives", "\"Workers 2\""),
            ("files", "[{ path = \"/etc/a\", append = \"x\" }]"),
            ("sysctl", "{ \"net.core.somaxconn\" = \"1\" }"),
            ("ending", "\"stop\""),
            ("keep", "true"),
        ] {
            let wanted = format!("p.toml:4: server.{key}: {}", left_alone("line"));
            assert_eq!(refused(&format!("{key} = {value}")), wanted);
        }
        let server = |line: &str, expected: &Expect| expected.assert_eq(&refused(line));
        server(
            "mpm = \"event\"",
            &expect![[r#"p.toml:4: server.mpm: only `kind = "apache"` has it; remove the line"#]],
        );
        server(
            "in_place = true",
            &expect![[
                r#"p.toml:4: server.in_place: only `kind = "apache"` or `kind = "nginx"` has it; remove the line"#
            ]],
        );
        server(
            "command = [\"true\"]",
            &expect![[r#"p.toml:4: server.command: only `kind = "command"` has it; remove the line"#]],
        );
    }

    #[test]
    fn tables_that_need_control_are_refused() {
        for (key, line, text) in [
            ("service", 8, "[service.a]\nkind = \"embedded\""),
            ("confine", 9, "[confine]\nmemory = \"1G\""),
            ("memory", 9, "[memory]\nreset_swap = true"),
        ] {
            assert_eq!(told(HERE, text), format!("p.toml:{line}: {key}: {}", left_alone("table")));
        }
        let table = |table: &str, expected: &Expect| check(HERE, table, expected);
        table(
            "[variant.a]",
            &expect![[
                r#"p.toml:8: variant: nothing is changed about a server of `kind = "url"`, so it has no variants; remove the table, and compare loads"#
            ]],
        );
        table(
            "[access_log]\nfile = \"logs/a\"",
            &expect![
                "p.toml:9: access_log.file: logs are counted of an Apache or nginx that the run starts itself; remove the table"
            ],
        );
        table(
            "[sweep]\nover = \"Workers\"\nvalues = [1, 2]",
            &expect![[r#"p.toml:9: sweep: a server of `kind = "url"` is left as it is; sweep over `connections`"#]],
        );
        table(
            "[factors.a]\noff = \"\"\non = \"KeepAlive On\"",
            &expect![[
                r#"p.toml:10: factors: a server of `kind = "url"` is left as it is; let the levels differ by `load` or `connections`"#
            ]],
        );
    }

    #[test]
    fn the_url_is_of_this_kind_alone() {
        let text = |kind: &str, table: &str| {
            format!(
                "[server]\nkind = \"embedded\"\n[{table}]\nkind = \"{kind}\"\nurl = \"http://a/\"\n\
                 [load.a]\npath = \"/\"\nconnections = 1\nrequests = 1\n"
            )
        };
        let refused = |text: &str, expected: &Expect| {
            expected.assert_eq(&parse(text, Path::new("p.toml"), &Options::default()).unwrap_err().to_string());
        };
        for kind in ["apache", "nginx", "embedded"] {
            let text = text(kind, "server").replacen("[server]\nkind = \"embedded\"\n", "", 1);
            refused(&text, &expect![[r#"p.toml:3: server.url: only `kind = "url"` has it; remove the line"#]]);
        }
        refused(
            &text("url", "service.a"),
            &expect!["p.toml:3: service.a.kind: a service is started by webdyno; leave a server out that runs already"],
        );
    }
}
