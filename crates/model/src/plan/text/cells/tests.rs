//! Cells that are listed, combined from factors or swept over, and what is asked of them.

use crate::plan::{Options, Plan, parse};
use expect_test::{Expect, expect};
use std::path::Path;

const HEAD: &str =
    "aa = false\n[server]\nkind = \"embedded\"\n[load.a]\npath = \"/\"\nconnections = 4\nduration = \"1s\"\n";

fn shown(plan: &Plan) -> String {
    let cell = |cell: &crate::plan::Cell| {
        let directives: Vec<&str> = plan.variant(cell).directives.iter().map(|line| line.text.as_str()).collect();
        let connections = plan.load(cell).connections;
        format!("{}: {}; {connections} connections {:?}\n", cell.name, directives.join("; "), cell.role)
    };
    let contrast = |contrast: &crate::plan::Contrast| {
        let weight = |(cell, weight): (&String, &f64)| format!("{weight:+.2} {cell}");
        let weights: Vec<String> = contrast.weights.iter().map(weight).collect();
        format!("? {} ({}): {}\n", contrast.name, contrast.margin, weights.join(" | "))
    };
    plan.cells.iter().map(cell).chain(plan.contrasts.iter().map(contrast)).collect()
}

fn check(text: &str, expected: &Expect) {
    let found = match parse(&format!("{HEAD}{text}"), Path::new("t.toml"), &Options::default()) {
        Err(error) => error.to_string(),
        Ok((plan, _)) => shown(&plan),
    };
    expected.assert_eq(&found);
}

const THREE: &str = "[variant.a]\n[variant.b]\n[variant.c]\n";

#[test]
fn contrasts_compare_means_of_cells() {
    let asked = "[[contrast]]\nname = \"b\"\nof = \"b\"\n[[contrast]]\nname = \"new\"\nof = [\"b\", \"c\"]\nagainst = \"a\"\nmargin = 0.05\n";
    check(
        &format!("{THREE}{asked}"),
        &expect![[r#"
        a: ; 4 connections Baseline
        b: ; 4 connections Candidate
        c: ; 4 connections Candidate
        ? b (0.02): -1.00 a | +1.00 b
        ? new (0.05): -1.00 a | +0.50 b | +0.50 c
    "#]],
    );
}

#[test]
fn contrasts_that_ask_nothing() {
    let asked = |rest: &str| format!("{THREE}[[contrast]]\nname = \"x\"\n{rest}\n");
    check(&asked("of = \"d\""), &expect!["t.toml:13: contrast.of: no cell `d`; there is `a`, `b`, `c`"]);
    check(&asked("of = []"), &expect!["t.toml:13: contrast.of: name at least one cell"]);
    check(
        &asked("of = \"a\""),
        &expect!["t.toml:13: contrast.of: `a` is the baseline; say with `against` what it is compared with"],
    );
    check(
        &asked("of = \"b\"\nagainst = [\"a\", \"b\"]"),
        &expect!["t.toml:14: contrast.against: `b` is on both sides"],
    );
    check(&asked("of = [\"b\", \"b\"]"), &expect!["t.toml:13: contrast.of: `b` is named twice"]);
    check(
        &asked("of = 3"),
        &expect!["t.toml:13: contrast.of: must be the name of a cell, or a list of names, not `3`"],
    );
    check(&asked("of = \"b\"\nmargin = 2"), &expect!["t.toml:14: contrast.margin: must lie between 0 and 1"]);
    check(&asked("against = \"b\""), &expect!["t.toml:11: contrast: the key `of` is missing"]);
    check(
        &format!("{}{}", asked("of = \"b\""), "[[contrast]]\nname = \"x\"\nof = \"c\"\n"),
        &expect!["t.toml:15: contrast.name: two contrasts would be called `x`; choose another name"],
    );
}

const FACTORS: &str = "[factors.workers]\ntwo = \"Workers 2\"\neight = \"Workers 8\"\n[factors.keep]\nopen = \"KeepAlive On\"\nclose = { directives = \"KeepAlive Off\" }\n";

#[test]
fn factors_are_combined() {
    check(
        FACTORS,
        &expect![[r#"
        two, open: Workers 2; KeepAlive On; 4 connections Baseline
        two, close: Workers 2; KeepAlive Off; 4 connections Candidate
        eight, open: Workers 8; KeepAlive On; 4 connections Candidate
        eight, close: Workers 8; KeepAlive Off; 4 connections Candidate
        ? workers (0.02): +0.50 eight, close | +0.50 eight, open | -0.50 two, close | -0.50 two, open
        ? keep (0.02): +0.50 eight, close | -0.50 eight, open | +0.50 two, close | -0.50 two, open
        ? workers × keep (0.02): +1.00 eight, close | -1.00 eight, open | -1.00 two, close | +1.00 two, open
    "#]],
    );
    let third = "[factors.users]\nfew = { connections = 4 }\nmany = { connections = 16 }\n[design]\ngenerators = [\"users = workers * keep\"]\ninteractions = 1\n";
    check(
        &format!("{FACTORS}{third}"),
        &expect![[r#"
        two, open, many: Workers 2; KeepAlive On; 16 connections Baseline
        two, close, few: Workers 2; KeepAlive Off; 4 connections Candidate
        eight, open, few: Workers 8; KeepAlive On; 4 connections Candidate
        eight, close, many: Workers 8; KeepAlive Off; 16 connections Candidate
        ? workers (0.02): +0.50 eight, close, many | +0.50 eight, open, few | -0.50 two, close, few | -0.50 two, open, many
        ? keep (0.02): +0.50 eight, close, many | -0.50 eight, open, few | +0.50 two, close, few | -0.50 two, open, many
        ? users (0.02): +0.50 eight, close, many | -0.50 eight, open, few | -0.50 two, close, few | +0.50 two, open, many
    "#]],
    );
    // Too many are told before anything that doubles with each of them.
    let many: String = (0..30).map(|n| format!("[factors.f{n}]\noff = \"\"\non = \"Workers {n}\"\n")).collect();
    check(
        &format!("{many}[design]\ngenerators = [\"f29 = f0\"]\n"),
        &expect!["t.toml:8: factors: 30 factors are too many; at most 12"],
    );
    // Levels of the same names are told apart by their factors'; a variant brings what it has.
    check(
        "[variant.big]\ndirectives = \"Workers 8\"\n[factors]\na = { off = \"\", on = { variant = \"big\" } }\nb = { off = \"\", on = \"KeepAlive Off\" }\n[design]\ninteractions = 1\n",
        &expect![[r#"
            a off, b off: ; 4 connections Baseline
            a off, b on: KeepAlive Off; 4 connections Candidate
            a on, b off: Workers 8; 4 connections Candidate
            a on, b on: Workers 8; KeepAlive Off; 4 connections Candidate
            ? a (0.02): -0.50 a off, b off | -0.50 a off, b on | +0.50 a on, b off | +0.50 a on, b on
            ? b (0.02): -0.50 a off, b off | +0.50 a off, b on | -0.50 a on, b off | +0.50 a on, b on
        "#]],
    );
}

#[test]
fn designs_that_cannot_be() {
    let with = |rest: &str| format!("{FACTORS}{rest}\n");
    check("[factors.a]\none = \"Workers 2\"\n", &expect!["t.toml:8: factors.a: a factor needs at least two levels"]);
    check(
        "[factors.a]\none = \"Workers 2\"\ntwo = { variant = \"x\" }\n",
        &expect!["t.toml:10: factors.a.two.variant: no variant `x`; there is `as-is`"],
    );
    check(
        "[factors.a]\none = { connections = 0 }\ntwo = { connections = 1 }\n",
        &expect!["t.toml:9: factors.a.one.connections: must be at least 1"],
    );
    check(
        "[factors.a]\none = { connection = 1 }\ntwo = { connections = 1 }\n",
        &expect!["t.toml:9: factors.a.one: unknown key `connection`; did you mean `connections`?"],
    );
    check(
        "[factors.a]\none = 1\ntwo = 2\n",
        &expect!["t.toml:9: factors.a.one: must be the directives of a level, or a table, not `1`"],
    );
    check(
        &with("[design]\ngenerators = [\"keep = workers\"]"),
        &expect![
            "t.toml:15: design.generators: the product needs at least two different factors: otherwise two factors always change together"
        ],
    );
    check(
        &with("[design]\ngenerators = [\"keep = workers * cache\"]"),
        &expect!["t.toml:15: design.generators: no factor `cache`; there is `workers`, `keep`"],
    );
    check(
        &with("[design]\ngenerators = [\"keep\"]"),
        &expect![[
            r#"t.toml:15: design.generators: `keep` must say of what a factor is the product, such as "c = a * b""#
        ]],
    );
    check(
        &with("[design]\ninteractions = 3"),
        &expect![
            "t.toml:15: design.interactions: must lie between 1, for what each factor does alone, and 2, as many as there are"
        ],
    );
    check(
        &with("[[cell]]\nvariant = \"x\"\nload = \"a\""),
        &expect!["t.toml:15: cell: [factors] makes the cells; remove the [[cell]] tables"],
    );
    check(
        &with("[sweep]\nover = \"connections\"\nvalues = [1, 2]"),
        &expect!["t.toml:14: sweep: there are [factors] too; a plan has one or the other"],
    );
    check(
        "[design]\ninteractions = 1\n",
        &expect!["t.toml:8: design: it says how factors are combined, and there are no [factors]"],
    );
    check(
        &with("[load.b]\npath = \"/\"\nconnections = 1\nduration = \"1s\""),
        &expect!["t.toml:8: factors: say which load in [design] or in the levels: `a`, `b`"],
    );
    let many: String =
        (0..7).map(|n| format!("[factors.f{n}]\na{n} = \"Workers 2\"\nb{n} = \"Workers 3\"\n")).collect();
    check(
        &many,
        &expect![
            "t.toml:8: factors: their combinations are 128 cells, and at most 64 are made; a fraction needs `generators` in [design]"
        ],
    );
    check(
        "[factors]\na = { x = \"\", y = \"Workers 2\", z = \"Workers 3\" }\nb = { o = \"\", p = \"KeepAlive Off\" }\nc = { q = { connections = 1 }, r = { connections = 2 } }\n[design]\ngenerators = [\"c = a * b\"]\n",
        &expect!["t.toml:13: design.generators: `a` has 3 levels; fractions are made of factors with two"],
    );
    check(
        "[factors]\na = { x = { connections = 1 }, y = { connections = 2 } }\nb = { o = { connections = 3 }, p = { connections = 4 } }\n",
        &expect!["t.toml:10: factors: two factors choose the load, or two its connections; one of them must do"],
    );
}

#[test]
fn factors_may_change_files_and_the_kernel_once() {
    let variants = "[variant.long]\nsysctl = { \"net.core.somaxconn\" = \"4096\" }\n[variant.short]\nsysctl = { \"net.core.somaxconn\" = \"64\" }\n";
    let twice =
        "[factors]\na = { x = \"\", y = { variant = \"long\" } }\nb = { o = \"\", p = { variant = \"short\" } }\n";
    check(
        &format!("{variants}{twice}"),
        &expect!["t.toml:13: factors: two factors change net.core.somaxconn; let one of them do it"],
    );
    let once = "[factors]\na = { x = { variant = \"short\" }, y = { variant = \"long\" } }\nb = { o = \"\", p = \"Workers 4\" }\n";
    let text = format!("{HEAD}{variants}{once}");
    let plan = parse(&text, Path::new("t.toml"), &Options::default()).unwrap().0;
    let changed = plan.variants.iter().filter(|variant| variant.changes.sysctl.len() == 1).count();
    assert_eq!(changed, 4);
}

#[test]
fn sweeps_have_a_cell_for_each_value() {
    check(
        "[sweep]\nover = \"connections\"\nvalues = [4, 1, 16]\n",
        &expect![[r#"
            connections 1: ; 1 connections Baseline
            connections 4: ; 4 connections Candidate
            connections 16: ; 16 connections Candidate
        "#]],
    );
    check(
        "[sweep]\nover = \"Workers\"\nfrom = 1\nto = 32\nsteps = 6\n",
        &expect![[r#"
        Workers 1: Workers 1; 4 connections Baseline
        Workers 2: Workers 2; 4 connections Candidate
        Workers 4: Workers 4; 4 connections Candidate
        Workers 8: Workers 8; 4 connections Candidate
        Workers 16: Workers 16; 4 connections Candidate
        Workers 32: Workers 32; 4 connections Candidate
    "#]],
    );
    check(
        "[sweep]\nover = \"Workers\"\nfrom = 10\nto = 20\nsteps = 3\neven = true\ndirectives = \"\"\"\nWorkers ${value}\nKeepAlive Off\"\"\"\n",
        &expect![[r#"
            Workers 10: Workers 10; KeepAlive Off; 4 connections Baseline
            Workers 15: Workers 15; KeepAlive Off; 4 connections Candidate
            Workers 20: Workers 20; KeepAlive Off; 4 connections Candidate
        "#]],
    );
}

#[test]
fn sweeps_that_cannot_be() {
    let of = |rest: &str| format!("[sweep]\nover = \"connections\"\n{rest}\n");
    check("[sweep]\nvalues = [1, 2]\n", &expect!["t.toml:8: sweep: the key `over` is missing"]);
    check(&of(""), &expect!["t.toml:8: sweep: give `values`, or `from`, `to` and `steps`"]);
    check(&of("values = [1]"), &expect!["t.toml:10: sweep.values: give at least two values; a curve needs four"]);
    check(&of("values = [0, 1]"), &expect!["t.toml:10: sweep.values: values begin at 1"]);
    check(&of("values = [1, 2, 1]"), &expect!["t.toml:10: sweep.values: 1 stands there twice"]);
    check(
        &of("values = [1, 2]\nto = 3"),
        &expect!["t.toml:11: sweep.to: `values` says it already; give one or the other"],
    );
    check(&of("from = 8\nto = 4\nsteps = 3"), &expect!["t.toml:11: sweep.to: must be more than `from`"]);
    check(&of("from = 1\nto = 4\nsteps = 1"), &expect!["t.toml:12: sweep.steps: must lie between 2 and 64"]);
    check(
        &of("values = [1, 5000000000]"),
        &expect!["t.toml:8: sweep: 5000000000 connections are more than a load can have"],
    );
    check(&of("values = [1, 2]\nload = \"b\""), &expect!["t.toml:11: sweep.load: no load `b`; there is `a`"]);
    check(&of("values = [1, 2]\n[variant.a]\n[variant.b]"), &expect!["t.toml:8: sweep.variant: say which: `a`, `b`"]);
    check(
        &of("values = [1, 2]\ndirectives = \"Workers 2\""),
        &expect!["t.toml:11: sweep.directives: the connections of the load are no directive; remove the line"],
    );
    check(
        "[sweep]\nover = \"Workers\"\nvalues = [1, 2]\ndirectives = \"Workers 2\"\n",
        &expect!["t.toml:11: sweep.directives: it must say where the value stands: ${value}"],
    );
    check(
        "rate = \"10/s\"\n[sweep]\nover = \"connections\"\nvalues = [1, 2]\n",
        &expect![
            "t.toml:10: sweep.over: the load has a timetable, so its connections are only a limit; sweep over those of a load without `rate` and `stages`"
        ],
    );
}
