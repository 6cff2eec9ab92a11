//! Plans in, plans or one sentence out.

use super::*;
use expect_test::{Expect, expect};

const SMALL: &str = r#"
[server]
kind = "embedded"
directives = "Workers 2"

[load.a]
path = "/static/100"
connections = 4
duration = "1s"
"#;

fn check(text: &str, expected: &Expect) {
    let shown = match parse(text, Path::new("plans/t.toml"), &Options::default()) {
        Err(error) => error.to_string(),
        Ok((plan, _)) => {
            plan.cells.iter().map(|c| format!("{} = {} x {} {:?}\n", c.name, c.variant, c.load, c.role)).collect()
        }
    };
    expected.assert_eq(&shown);
}

#[test]
fn cells_come_from_variants_and_loads() {
    check(
        SMALL,
        &expect![[r#"
        as-is = as-is x a Baseline
        as-is (A/A) = as-is x a Again
    "#]],
    );
    let two = format!("baseline = \"few\"\n{SMALL}\n[variant.few]\n[variant.many]\ndirectives = \"Workers 8\"\n");
    check(
        &two,
        &expect![[r#"
        few = few x a Baseline
        few (A/A) = few x a Again
        many = many x a Candidate
    "#]],
    );
}

#[test]
fn mistakes_name_file_line_and_key() {
    check(
        &SMALL.replace("connections", "conections"),
        &expect![[
            r#"plans/t.toml:8: load.a.conections: unknown field `conections`, expected one of `path`, `connections`, `threads`, `requests`, `duration`, `keep_alive`, `http`, `timeout`, `same_length`, `headers`"#
        ]],
    );
    check(
        &SMALL.replace("= 4", "= \"four\""),
        &expect![[r#"plans/t.toml:8: load.a.connections: invalid type: string "four", expected u32"#]],
    );
    check(&SMALL.replace("= 4", "= 0"), &expect!["plans/t.toml:8: load.a.connections: must be at least 1"]);
    check(
        &SMALL.replace("1s", "1"),
        &expect![
            "plans/t.toml:9: load.a.duration: `1` is not a duration: write a number and ns, us, ms, s or min, such as 500ms"
        ],
    );
    check(
        &SMALL.replace("duration = \"1s\"", ""),
        &expect!["plans/t.toml:6: load.a: give `requests`, `duration` or both"],
    );
    check(
        &SMALL.replace("kind = \"embedded\"", "kind = \"embedded\"\nmpm = \"event\""),
        &expect![[r#"plans/t.toml:4: server.mpm: only `kind = "apache"` has it; remove the line"#]],
    );
    check(&format!("baseline = \"x\"\n{SMALL}"), &expect!["plans/t.toml:1: baseline: no cell `x`; there is `as-is`"]);
    check(
        &format!("{SMALL}[[cell]]\nvariant = \"b\"\nload = \"a\"\n"),
        &expect!["plans/t.toml:11: cell.variant: no variant `b`; there is `as-is`"],
    );
    check("name = ", &expect!["plans/t.toml:1: name: string values must be quoted, expected literal string"]);
    check(
        "[load.a]\npath='/'\nconnections=1\nrequests=1\n",
        &expect!["plans/t.toml:1: load.a: missing field `server`"],
    );
}

#[test]
fn parameters_fill_in_and_leave_apache_its_own() {
    let text = "[parameters]\nn = 3\n[scale.full]\nn = 9\n[server]\nkind = \"apache\"\ndirectives = \"\"\"\nStartServers ${n}\n\n  PidFile ${RUN}/x\n\"\"\"\n[load.a]\npath = \"/\"\nconnections = ${n}\nrequests = 1\n";
    // `connections = ${n}` is not TOML until filled in, so the parameters are read from a quoted form.
    let text = text.replace("connections = ${n}", "connections = 1");
    let read = |scale: Option<&str>| {
        let options = Options { scale: scale.map(str::to_owned), quick: false };
        parse(&text, Path::new("t.toml"), &options)
    };
    let Ok((plan, _)) = read(None) else { panic!() };
    let ServerSpec::Apache(apache) = plan.server else { panic!() };
    let lines: Vec<_> = apache.directives.iter().map(|d| (d.line, d.text.as_str())).collect();
    assert_eq!(lines, [(8, "StartServers 3"), (10, "  PidFile ${RUN}/x")]);
    assert!(read(Some("full")).unwrap().1.contains("StartServers 9"));
    assert_eq!(read(Some("tiny")).unwrap_err().to_string(), "t.toml:1: --scale: no `[scale.tiny]`; there is `full`");
}
