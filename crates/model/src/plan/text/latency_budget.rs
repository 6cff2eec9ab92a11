//! What `latency_budget = true` asks of a plan's server and machine, written into the plan: a log of the server's own time, and the
//! kernel's delay accounting.

use super::PlanError;
use super::source::Source;
use crate::plan::{Changes, Directive, LoadSpec, Origin, Php, PhpSetting, PhpWay, ServerSpec, Sysctl, Variant};
use std::ops::Range;
use toml::Spanned;

/// Where the server's log of its own time is, from the instance's folder.
pub const LATENCY_LOG: &str = "logs/latency-budget.log";
/// Where PHP-FPM's is.
pub const FPM_LATENCY_LOG: &str = "logs/latency-budget-fpm.log";
/// The kernel's setting without which processes have no accounts of their delays.
const ACCOUNTING: &str = "kernel.task_delayacct";

/// What else of the plan matters for it.
pub(super) struct Others<'a> {
    pub(super) variants: &'a [(Variant, Range<usize>)],
    pub(super) origin: Option<&'a Origin>,
    /// Loads that are sent beside the measured one.
    pub(super) beside: &'a [LoadSpec],
}

/// Whether it is wanted; adds to the plan what it takes.
pub(super) fn budget_meant(
    source: &Source<'_>,
    written: &Option<Spanned<bool>>,
    others: &Others<'_>,
    server: &mut ServerSpec,
    changes: &mut Changes,
) -> Result<bool, PlanError> {
    let Some(written) = written.as_ref().filter(|wanted| *wanted.get_ref()) else { return Ok(false) };
    let at = |what: &str| Err(source.at(written.span(), "latency_budget", what));
    let line = source.line(written.span().start);
    if !others.beside.is_empty() {
        return at(
            "the server's log does not tell the requests of loads beside the measured one from its own; leave them out",
        );
    }
    if others.origin.is_some() {
        return at("the clocks of two machines differ by too much for it; leave [load] from out");
    }
    if others.variants.iter().any(|(variant, _)| variant.servers.server.is_some()) {
        return at("only [server] gets the log that it needs; leave out variants with a `server` of their own");
    }
    let directive = |text: String| Directive { text, line };
    match server {
        ServerSpec::Apache(apache) if apache.existing.is_none() => {
            // Also of virtual hosts that have a log of their own.
            let format = "%{begin:usec}t %D %P %>s %{tid}P %{remote}p %R";
            apache.directives.push(directive(format!("GlobalLog {LATENCY_LOG} \"{format}\"")));
            apache.php.iter_mut().for_each(|php| log_of_fpm(php, line));
        }
        ServerSpec::Nginx(nginx) if nginx.existing.is_none() => {
            let is_log = |directive: &Directive| directive.text.contains("access_log");
            // Else this one would take the place of the log that an instance has by default.
            let of_variants = others.variants.iter().any(|(variant, _)| variant.directives.iter().any(is_log));
            if of_variants {
                return at(
                    "a variant sets access_log, and the log that this needs would be one more for it than for others",
                );
            }
            let usual =
                (!nginx.directives.iter().any(is_log)).then(|| directive("access_log logs/access.log".to_owned()));
            nginx.directives.extend(usual);
            let format = "log_format webdyno_latency '$msec $request_time $pid $status - $remote_port $upstream_addr'";
            nginx.directives.push(directive(format.to_owned()));
            nginx.directives.push(directive(format!("access_log {LATENCY_LOG} webdyno_latency")));
            nginx.php.iter_mut().for_each(|php| log_of_fpm(php, line));
        }
        _ => {
            return at("it needs the log of an Apache or nginx that webdyno starts from a configuration of its own: \
                 kind = \"apache\" or \"nginx\", without `from` and `in_place`");
        }
    }
    changes.sysctl.entry(ACCOUNTING.to_owned()).or_insert(Sysctl { value: "1".to_owned(), line });
    Ok(true)
}

/// Has PHP-FPM tell which process had a request, and how long. Nothing else than a request's second is told of its end.
fn log_of_fpm(php: &mut Php, line: usize) {
    if php.way != PhpWay::Fpm {
        return;
    }
    let format = "%{%s}T %{micro}d %p %s %{REMOTE_PORT}e";
    for (name, value) in [("access.log", FPM_LATENCY_LOG), ("access.format", format)] {
        let setting = PhpSetting { value: value.to_owned(), key: "latency_budget".to_owned(), line };
        php.settings.pool.insert(name.to_owned(), setting);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Options, parse};
    use expect_test::{Expect, expect};
    use std::path::Path;

    /// What stands in the plan because of it.
    fn check(server: &str, load: &str, expected: &Expect) {
        let text = format!(
            "latency_budget = true\n[server]\n{server}\n[load]\n{load}\n[load.a]\npath = \"/\"\nconnections = 1\nrequests = 1\n"
        );
        let shown = match parse(&text, Path::new("p.toml"), &Options::default()) {
            Err(error) => error.to_string(),
            Ok((plan, _)) => {
                let directives = match &plan.server {
                    super::ServerSpec::Apache(apache) => &apache.directives,
                    super::ServerSpec::Nginx(nginx) => &nginx.directives,
                    _ => panic!("no server with directives"),
                };
                let settings =
                    plan.changes.sysctl.iter().map(|(name, it)| format!("{}: {name} = {}\n", it.line, it.value));
                directives.iter().map(|it| format!("{}: {}\n", it.line, it.text)).chain(settings).collect()
            }
        };
        expected.assert_eq(&shown);
    }

    #[test]
    fn what_it_takes() {
        check(
            "kind = \"apache\"",
            "",
            &expect![[r#"
            1: GlobalLog logs/latency-budget.log "%{begin:usec}t %D %P %>s %{tid}P %{remote}p %R"
            1: kernel.task_delayacct = 1
        "#]],
        );
        check(
            "kind = \"nginx\"",
            "",
            &expect![[r#"
            1: access_log logs/access.log
            1: log_format webdyno_latency '$msec $request_time $pid $status - $remote_port $upstream_addr'
            1: access_log logs/latency-budget.log webdyno_latency
            1: kernel.task_delayacct = 1
        "#]],
        );
        // A log of the plan's own is the only one beside ours.
        check(
            "kind = \"nginx\"\ndirectives = \"access_log off\"",
            "",
            &expect![[r#"
            4: access_log off
            1: log_format webdyno_latency '$msec $request_time $pid $status - $remote_port $upstream_addr'
            1: access_log logs/latency-budget.log webdyno_latency
            1: kernel.task_delayacct = 1
        "#]],
        );
        let own = "kind = \"apache\"\nsysctl = { \"kernel.task_delayacct\" = \"1\" }";
        check(
            own,
            "",
            &expect![[r#"
            1: GlobalLog logs/latency-budget.log "%{begin:usec}t %D %P %>s %{tid}P %{remote}p %R"
            4: kernel.task_delayacct = 1
        "#]],
        );
    }

    #[test]
    fn where_it_cannot_be() {
        check(
            "kind = \"embedded\"",
            "",
            &expect![[
                r#"p.toml:1: latency_budget: it needs the log of an Apache or nginx that webdyno starts from a configuration of its own: kind = "apache" or "nginx", without `from` and `in_place`"#
            ]],
        );
        check(
            "kind = \"apache\"\nin_place = true",
            "",
            &expect![[
                r#"p.toml:1: latency_budget: it needs the log of an Apache or nginx that webdyno starts from a configuration of its own: kind = "apache" or "nginx", without `from` and `in_place`"#
            ]],
        );
        check(
            "kind = \"nginx\"",
            "from = \"ssh:other\"",
            &expect![
                "p.toml:1: latency_budget: the clocks of two machines differ by too much for it; leave [load] from out"
            ],
        );
    }
}
