//! Services in, the servers of each variant or one sentence out.

use crate::plan::{Options, parse};
use expect_test::{Expect, expect};
use std::path::Path;

const HEAD: &str = "[load.a]\npath = \"/\"\nconnections = 1\nrequests = 1\n[server]\nkind = \"embedded\"\n";

/// For each variant: the server's kind and directives, and what stands beside it in the order of starting.
#[track_caller]
fn check(text: &str, expected: &Expect) {
    let options = Options { quick: true, ..Options::default() };
    let shown = match parse(&format!("{HEAD}{text}"), Path::new("plans/t.toml"), &options) {
        Err(error) => error.to_string(),
        Ok((plan, _)) => {
            let shown = plan.variants.iter().map(|variant| {
                let kind = serde_json::to_value(plan.server_of(variant)).unwrap()["kind"].clone();
                let beside: Vec<String> = plan
                    .services_of(variant)
                    .map(|service| {
                        let change = variant.servers.changes.get(&service.name).cloned().unwrap_or_default();
                        let lines: Vec<_> = change.directives.into_iter().map(|line| line.text).collect();
                        let after = change.kill_after_ns.map(|ns| format!(" killed at {ns}")).unwrap_or_default();
                        format!("{}{after} {lines:?}", service.name)
                    })
                    .collect();
                format!("{}: {kind} {beside:?}\n", variant.name)
            });
            shown.collect()
        }
    };
    expected.assert_eq(&shown);
}

const TWO: &str = "[service.a]\nkind = \"embedded\"\n[service.b]\nkind = \"embedded\"\n";

#[test]
fn a_variant_has_the_services_that_it_names() {
    check(
        TWO,
        &expect![[r#"
        as-is: "embedded" ["a []", "b []"]
    "#]],
    );
    check(
        &format!(
            "{TWO}keep = true\n[service.n]\nkind = \"nginx\"\n[variant.all]\n[variant.none]\nservices = []\n[variant.n]\nserver = \"n\"\nservices = [\"a\"]\nservice.a.directives = \"Workers 2\"\nservice.a.kill_after = \"3s\"\n"
        ),
        &expect![[r#"
            all: "embedded" ["b []", "a []"]
            none: "embedded" []
            n: "nginx" ["a killed at 1500000000 [\"Workers 2\"]"]
        "#]],
    );
}

#[test]
fn services_are_told_where_those_before_them_are() {
    let proxy = "[service.n]\nkind = \"nginx\"\ndirectives = \"return 200 ${service.b.port}\"\n";
    check(
        &format!("{TWO}{proxy}"),
        &expect![[r#"
        as-is: "embedded" ["a []", "b []", "n []"]
    "#]],
    );
    check(
        &format!("{proxy}{TWO}"),
        &expect![
            "plans/t.toml:9: service: ${service.b.port}: the service is not running when this is read: it stands behind, or is left out (variant `as-is`)"
        ],
    );
    check(
        &format!("{TWO}{proxy}keep = true\n"),
        &expect![
            "plans/t.toml:13: service: ${service.b.port}: the service is not running when this is read: it stands behind, or is left out (variant `as-is`)"
        ],
    );
    check(
        &format!("{TWO}[variant.v]\nservices = [\"a\"]\ndirectives = \"Workers ${{service.b.port}}\"\n"),
        &expect![
            "plans/t.toml:13: service: ${service.b.port}: the service is not running when this is read: it stands behind, or is left out (variant `v`)"
        ],
    );
    check(
        &TWO.replacen("\"embedded\"\n", "\"command\"\ncommand = [\"x\", \"${service.c.port}\"]\n", 1),
        &expect!["plans/t.toml:9: service: ${service.c.port}: there is no such service (variant `as-is`)"],
    );
    check(
        &format!("{TWO}[variant.v]\ndirectives = \"Workers ${{service.b.host}}\"\n"),
        &expect![
            "plans/t.toml:12: service: ${service.b.host}: of a service there is `address`, `port` and `folder` (variant `v`)"
        ],
    );
}

#[test]
fn what_cannot_be_is_told() {
    check(
        "[service.a]\nkind = \"apache\"\nmpm = \"odd\"\n",
        &expect!["plans/t.toml:9: service.a.mpm: unknown value `odd`; there is `prefork`, `worker`, `event`"],
    );
    check(
        "[service.a]\nkind = \"command\"\n",
        &expect!["plans/t.toml:8: service.a.command: give the program and its arguments"],
    );
    check(
        "[service.a]\nkind = \"apache\"\nin_place = true\n",
        &expect!["plans/t.toml:9: service.a.in_place: only [server] has it; remove the line"],
    );
    check(
        "[service.\"a b\"]\nkind = \"embedded\"\n",
        &expect!["plans/t.toml:7: service.a b: the name may have letters, digits, - and _"],
    );
    check(
        "[service.a]\nkind = \"apache\"\nready = [\"true\"]\n",
        &expect![[
            r#"plans/t.toml:9: service.a.ready: only `kind = "command"` has a command here; give a path that it answers"#
        ]],
    );
    check(
        &format!("{TWO}[variant.v]\nserver = \"c\"\n"),
        &expect!["plans/t.toml:12: variant.server: no service `c`; there is `a`, `b`"],
    );
    check(
        &format!("{TWO}[variant.v]\nserver = \"a\"\nservices = [\"a\"]\n"),
        &expect!["plans/t.toml:13: variant.services: `a` is this variant's server; it is not beside itself"],
    );
    check(
        &format!("{TWO}keep = true\n[variant.v]\nserver = \"b\"\n"),
        &expect![
            "plans/t.toml:13: variant.server: it is kept for the whole run, and a server under test is started for each trial; remove its `keep`"
        ],
    );
    check(
        &format!("{TWO}keep = true\n[variant.v.service.b]\nkill_after = \"1s\"\n"),
        &expect![
            "plans/t.toml:12: variant.service.b: it is kept for the whole run, so no variant can change it; remove its `keep`"
        ],
    );
    check(
        &format!("{TWO}[variant.v]\nservices = [\"a\"]\nservice.b.directives = \"Workers 2\"\n"),
        &expect!["plans/t.toml:9: service: variant `v` changes `b` and is not measured with it"],
    );
    check(
        "keep = true\n",
        &expect![[r#"
        as-is: "embedded" []
    "#]],
    );
}
