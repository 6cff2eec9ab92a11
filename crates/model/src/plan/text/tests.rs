//! Plans in, plans or one sentence out.

use super::*;
use crate::plan::{Edit, ServerSpec};
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
        &expect!["plans/t.toml:8: load.a.conections: unknown key `conections`; did you mean `connections`?"],
    );
    check(
        &SMALL.replace("= 4", "= \"four\""),
        &expect![[r#"plans/t.toml:8: load.a.connections: must be a whole number, not "four""#]],
    );
    check(&SMALL.replace("= 4", "= 0"), &expect!["plans/t.toml:8: load.a.connections: must be at least 1"]);
    check(
        &SMALL.replace("1s", "1"),
        &expect![
            "plans/t.toml:9: load.a.duration: `1` is not a duration: write a number and ns, us, ms, s, min, h or d, such as 500ms"
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
    check(
        &SMALL.replace("1s\"", "1s\"\ntimeout = \"0s\""),
        &expect!["plans/t.toml:10: load.a.timeout: must be longer than 0"],
    );
    check(
        &format!("{SMALL}[guards]\ntime = \"0s\"\n"),
        &expect!["plans/t.toml:11: guards.time: must be longer than 0"],
    );
    check("name = ", &expect!["plans/t.toml:1: name: string values must be quoted"]);
    check("[load.a]\npath='/'\nconnections=1\nrequests=1\n", &expect!["plans/t.toml:1: the table `server` is missing"]);
}

#[test]
fn the_parsers_jargon_is_put_in_plain_words() {
    let first = |line: &str, expected: &Expect| check(&format!("{line}{SMALL}"), expected);
    first("blocks = -3", &expect!["plans/t.toml:1: blocks: must be a whole number from 0 to 4294967295, not `-3`"]);
    first("blocks = 2.5", &expect!["plans/t.toml:1: blocks: must be a whole number, not `2.5`"]);
    first("margin = \"x\"", &expect![[r#"plans/t.toml:1: margin: must be a number, not "x""#]]);
    first("aa = \"no\"", &expect![[r#"plans/t.toml:1: aa: must be true or false, not "no""#]]);
    first("name = 3", &expect!["plans/t.toml:1: name: must be text in quotes, not `3`"]);
    first("variant = 3", &expect!["plans/t.toml:1: variant: must be a table, not `3`"]);
    first("build = 3", &expect!["plans/t.toml:1: build: must be a list in [ ], not `3`"]);
    let last = |line: &str, expected: &Expect| check(&format!("{SMALL}{line}\n"), expected);
    last("http = 1.1", &expect!["plans/t.toml:10: load.a.http: must be text in quotes"]);
    last("http = \"2\"", &expect!["plans/t.toml:10: load.a.http: unknown value `2`; there is `1.0`, `1.1`"]);
    last("headers = []", &expect!["plans/t.toml:10: load.a.headers: must be a table, not a list"]);
    last(
        "timeout = 5",
        &expect![[
            r#"plans/t.toml:10: load.a.timeout: a duration is text with a unit: write "5s" if that is what `5` means"#
        ]],
    );
    last(
        "[confine]\nmemory = 200",
        &expect![[
            r#"plans/t.toml:11: confine.memory: a size is text with a unit: write "200M" if that is what `200` means"#
        ]],
    );
    last(
        "[guards]\nzzz = 1",
        &expect![
            "plans/t.toml:11: guards.zzz: unknown key `zzz`; there is `thrash`, `time`, `failures`, `host_memory`"
        ],
    );
    last("[[cell]]\nload = \"a\"", &expect!["plans/t.toml:10: cell: the key `variant` is missing"]);
    check(
        &SMALL.replace("embedded", "embeded"),
        &expect!["plans/t.toml:3: server.kind: unknown value `embeded`; did you mean `embedded`?"],
    );
    check(&format!("server = 3{SMALL}"), &expect!["plans/t.toml:2: server: duplicate key"]);
}

#[test]
fn what_can_turn_out_wrong_later_keeps_its_line() {
    let text =
        "[server]\nscripts = \"a\"\n\nkind = \"apache\"\n[load.a]\npath = \"/\"\nconnections = 1\nrequests = 1\n";
    let (plan, _) = parse(text, Path::new("t.toml"), &Options::default()).unwrap();
    let ServerSpec::Apache(apache) = plan.server else { panic!() };
    assert_eq!((apache.line("scripts"), apache.line("ready")), (2, 4));
}

#[test]
fn a_confidence_must_be_one_that_an_interval_can_have() {
    for good in ["0.51", "0.95", "0.9999"] {
        let text = format!("confidence = {good}\n{SMALL}");
        let plan = parse(&text, Path::new("t.toml"), &Options::default()).unwrap().0;
        assert_eq!(plan.confidence.to_string(), good);
    }
    for bad in ["0.5", "0.99991", "1.0", "0.0", "95.0", "nan"] {
        check(
            &format!("confidence = {bad}\n{SMALL}"),
            &expect!["plans/t.toml:1: confidence: must lie above 0.5 and not above 0.9999; 0.95 is usual"],
        );
    }
}

#[test]
fn what_cannot_be_sent_is_refused_at_its_line() {
    check(
        &format!("{SMALL}headers = {{ X-A = \"1\", connection = \"close\" }}\n"),
        &expect!["plans/t.toml:10: load.a.headers: `connection` follows from keep_alive and from the body; remove it"],
    );
    check(
        &format!("{SMALL}[load.a.headers]\nX-A = \"1\"\nX-B = \"2\\u007f\"\n"),
        &expect![
            "plans/t.toml:12: load.a.headers: `X-B` must be a name of letters, digits and hyphens, with a value on one line"
        ],
    );
    check(
        &SMALL.replace("/static/100", "/static 100"),
        &expect![
            "plans/t.toml:7: load.a.path: must begin with / and contain no blank or control character; write %20 for a blank"
        ],
    );
    check(
        &SMALL.replace("embedded\"", "apache\"\nready = \"status\""),
        &expect![
            "plans/t.toml:4: server.ready: must begin with / and contain no blank or control character; write %20 for a blank"
        ],
    );
}

#[test]
fn no_two_cells_have_one_name() {
    let cell = |name: &str| format!("[[cell]]\nname = \"{name}\"\nvariant = \"as-is\"\nload = \"a\"\n");
    check(
        &[SMALL, &cell("x"), &cell("x")].concat(),
        &expect!["plans/t.toml:15: cell.name: two cells would be called `x`; choose another name"],
    );
    // The second copy of the baseline, before and behind the cell that has its name.
    let expected =
        "cell.name: two cells would be called `x (A/A)`, one of them the baseline's second copy; choose another name";
    for (cells, line) in [([cell("x"), cell("x (A/A)")], 15), ([cell("x (A/A)"), cell("x")], 11)] {
        let text = format!("baseline = \"x\"{SMALL}{}", cells.concat());
        let error = parse(&text, Path::new("t.toml"), &Options::default()).unwrap_err();
        assert_eq!(error.to_string(), format!("t.toml:{line}: {expected}"));
    }
    check(
        &format!("aa = false{SMALL}{}{}", cell("x"), cell("x (A/A)")),
        &expect![[r#"
            x = as-is x a Baseline
            x (A/A) = as-is x a Candidate
        "#]],
    );
    // Names that are made of a variant's and a load's.
    let second = "\n[load.\"b, a\"]\npath = \"/\"\nconnections = 1\nrequests = 1\n";
    check(
        &format!("{SMALL}{second}[variant.c]\n[variant.\"c, b\"]\n"),
        &expect!["plans/t.toml:16: cell.name: two cells would be called `c, b, a`; choose another name"],
    );
}

#[test]
fn parameters_fill_in_and_leave_apache_its_own() {
    let text = "[parameters]\nn = 3\n[scale.full]\nn = 9\n[server]\nkind = \"apache\"\ndirectives = \"\"\"\nStartServers ${n}\n\n  PidFile ${RUN}/x\n\"\"\"\n[load.a]\npath = \"/\"\nconnections = ${n}\nrequests = 1\n";
    // `connections = ${n}` is not TOML until filled in, so the parameters are read from a quoted form.
    let text = text.replace("connections = ${n}", "connections = 1");
    let read = |scale: Option<&str>| {
        let options = Options { scale: scale.map(str::to_owned), ..Options::default() };
        parse(&text, Path::new("t.toml"), &options)
    };
    let Ok((plan, _)) = read(None) else { panic!() };
    let ServerSpec::Apache(apache) = plan.server else { panic!() };
    let lines: Vec<_> = apache.directives.iter().map(|d| (d.line, d.text.as_str())).collect();
    assert_eq!(lines, [(8, "StartServers 3"), (10, "  PidFile ${RUN}/x")]);
    assert!(read(Some("full")).unwrap().1.contains("StartServers 9"));
    let refused = |scale: &str| read(Some(scale)).unwrap_err().to_string();
    assert_eq!(refused("tiny"), "--scale tiny: the plan has no such scale; there is `full`");
    let text = text.replace("n = 9", "m = 9");
    let options = Options { scale: Some("full".to_owned()), ..Options::default() };
    let error = parse(&text, Path::new("t.toml"), &options).unwrap_err().to_string();
    assert_eq!(error, "t.toml:4: scale.full.m: no such name under [parameters]");
    let error = parse(SMALL, Path::new("t.toml"), &options).unwrap_err().to_string();
    assert_eq!(error, "--scale full: the plan has no scales; leave the flag out");
}

#[test]
fn directives_keep_their_lines_in_a_file_from_windows() {
    let text = "[server]\r\nkind = \"embedded\"\r\ndirectives = \"\"\"\r\nWorkers 2\r\nKeepAlive On\r\n\"\"\"\r\n[load.a]\r\npath = \"/\"\r\nconnections = 1\r\nrequests = 1\r\n";
    let (plan, _) = parse(text, Path::new("t.toml"), &Options::default()).unwrap();
    let ServerSpec::Embedded(server) = plan.server else { panic!() };
    let lines: Vec<_> = server.directives.iter().map(|d| (d.line, d.text.as_str())).collect();
    assert_eq!(lines, [(4, "Workers 2"), (5, "KeepAlive On")]);
}

#[test]
fn the_runs_folder_is_filled_in_everywhere() {
    let text = "[[build]]\ncommand = [\"make\", \"BIN=${run}/bin\"]\n[server]\nkind = \"apache\"\nscripts = \"${run}/bin\"\n\
                directives = \"SetEnv A ${run}\"\n[variant.v]\ndirectives = \"SetEnv B ${run}\"\n\
                [load.a]\npath = \"/\"\nconnections = 1\nrequests = 1\n";
    let (plan, _) = parse(text, Path::new("plans/t.toml"), &Options::default()).unwrap();
    let plan = plan.in_folder(Path::new("/tmp/r"));
    let ServerSpec::Apache(apache) = plan.server else { panic!() };
    assert_eq!(plan.build[0].command, ["make", "BIN=/tmp/r/bin"]);
    assert_eq!(apache.scripts.as_deref(), Some(Path::new("/tmp/r/bin")));
    assert_eq!(
        (apache.directives[0].text.as_str(), plan.variants[0].directives[0].text.as_str()),
        ("SetEnv A /tmp/r", "SetEnv B /tmp/r")
    );
}

/// A plan about an Apache that is there, with these keys of its server and this variant.
fn existing(keys: &str, variant: &str) -> String {
    format!(
        "[server]\nkind = \"apache\"\n{keys}\n[variant.v]\n{variant}\n[load.a]\npath = \"/\"\nconnections = 1\nrequests = 1\n"
    )
}

#[test]
fn a_configuration_that_is_there() {
    let text = existing("from = \"own.conf\"\nin_place = true\nport = 443\nhost = \"a.example\"", "");
    let plan = parse(&text, Path::new("plans/t.toml"), &Options::default()).unwrap().0;
    let found = plan.in_place().expect("in place");
    assert_eq!(
        (found.main.as_deref(), found.port, found.host.as_deref()),
        (Some(Path::new("plans/own.conf")), Some(443), Some("a.example"))
    );
    let derived = parse(&existing("from = \"/x\"", ""), Path::new("t.toml"), &Options::default()).unwrap().0;
    assert!(derived.in_place().is_none() && derived.derived().is_some());
    let nginx = existing("from = \"/x\"", "").replace("\"apache\"", "\"nginx\"");
    assert!(parse(&nginx, Path::new("t.toml"), &Options::default()).unwrap().0.derived().is_some());
    let nginx = text.replace("\"apache\"", "\"nginx\"");
    assert!(parse(&nginx, Path::new("t.toml"), &Options::default()).unwrap().0.in_place().is_some());
    let refused = |keys: &str, expected: &str| {
        let error = parse(&existing(keys, ""), Path::new("t.toml"), &Options::default()).unwrap_err().to_string();
        assert_eq!(error, expected);
    };
    refused(
        "port = 80",
        "t.toml:3: server.port: is for the machine's own configuration; add `from` or `in_place`, or remove the line",
    );
    refused(
        "in_place = true\nmpm = \"event\"",
        "t.toml:4: server.mpm: the machine's own configuration says it; remove the line",
    );
    refused("from = \"/x\"\nport = 0", "t.toml:4: server.port: must be a port that the server listens on");
    refused(
        "from = \"/x\"\nhost = \"a b\"",
        "t.toml:4: server.host: must be a name as in URLs, such as www.example.com",
    );
    refused(
        "in_place = true\n[confine]\nmemory = \"1G\"",
        "t.toml:5: confine: the machine's own server stays where it is; remove [confine], or use `from` without `in_place`",
    );
}

#[test]
fn files_and_kernel_settings() {
    let keys = "files = [{ path = \"/etc/a\", append = \"x\" }, { path = \"/etc/b\", content = \"b\" }]\nsysctl = { \"net.core.somaxconn\" = \"1\" }";
    let variant = "files = [{ path = \"/etc/a\", copy = \"a.ini\", reload = [\"true\"] }]\nsysctl = { \"net.core.somaxconn\" = \" 2 \", \"vm.swappiness\" = \"0\" }";
    let plan = parse(&existing(keys, variant), Path::new("plans/t.toml"), &Options::default()).unwrap().0;
    let all = plan.changes.and(&plan.variants[0].changes);
    let files: Vec<_> =
        all.files.iter().map(|file| (file.path.to_str().unwrap(), &file.edit, file.reload.len())).collect();
    assert_eq!(files, [("/etc/b", &Edit::Content("b".into()), 0), ("/etc/a", &Edit::Copy("plans/a.ini".into()), 1)]);
    let settings: Vec<_> = all.sysctl.iter().map(|(name, setting)| (name.as_str(), setting.value.as_str())).collect();
    assert_eq!(settings, [("net.core.somaxconn", "2"), ("vm.swappiness", "0")]);
    let refused = |variant: &str, expected: &str| {
        let error = parse(&existing("", variant), Path::new("t.toml"), &Options::default()).unwrap_err().to_string();
        assert_eq!(error, expected);
    };
    refused(
        "files = [{ path = \"a\", content = \"\" }]",
        "t.toml:5: files.path: give the whole path of the file, from / on",
    );
    refused(
        "files = [{ path = \"/a\" }]",
        "t.toml:5: files.path: say what becomes of it: `content`, `copy`, `replace` or `append`",
    );
    refused(
        "files = [{ path = \"/a\", content = \"\", append = \"b\" }]",
        "t.toml:5: files.path: give `content`, or `copy`, or `replace` and `append`: not several of them",
    );
    refused(
        "files = [{ path = \"/a\", append = \"b\" }, { path = \"/a\", append = \"b\" }]",
        "t.toml:5: files.path: line 5 changes this file already; say all of it there",
    );
    refused("sysctl = { somaxconn = \"\" }", "t.toml:5: sysctl.somaxconn: give its value in one line");
    refused(
        "sysctl = { \"net/core\" = \"1\" }",
        "t.toml:5: sysctl.net/core: write its name with dots, in quotes: \"net.core.somaxconn\"",
    );
}

/// What is said of a plan with PHP: kind of server, its keys, and tables.
fn php(kind: &str, keys: &str, rest: &str, expected: &Expect) {
    let text = SMALL.replace("kind = \"embedded\"", &format!("kind = \"{kind}\"\n{keys}"));
    check(&format!("{text}{rest}\n"), expected);
}

#[test]
fn what_php_cannot_be_is_said_with_its_line() {
    php(
        "apache",
        "php = \"module\"",
        "",
        &expect![[
            r#"plans/t.toml:4: server.php: mod_php, as distributions ship it, wants `mpm = "prefork"`; add that, or use `php = "fpm"`"#
        ]],
    );
    php(
        "nginx",
        "php = \"module\"",
        "",
        &expect![[r#"plans/t.toml:4: server.php: nginx has no PHP inside; use `php = "fpm"`"#]],
    );
    php(
        "apache",
        "ini = { memory_limit = \"1M\" }",
        "",
        &expect![[
            r#"plans/t.toml:4: server.ini: is for PHP; add `php = "fpm"` or `php = "module"` to [server], or remove it"#
        ]],
    );
    php(
        "embedded",
        "php = \"fpm\"",
        "",
        &expect![[r#"plans/t.toml:4: server.php: only `kind = "apache"` or `kind = "nginx"` has it; remove the line"#]],
    );
    php(
        "apache",
        "mpm = \"prefork\"\nphp = \"module\"",
        "[server.fpm]\npm = \"static\"",
        &expect![[
            r#"plans/t.toml:12: server.fpm: mod_php has no pool of processes; remove the table, or use `php = "fpm"`"#
        ]],
    );
    php(
        "apache",
        "php = \"fpm\"",
        "[server.fpm]\nmax_children = 0",
        &expect!["plans/t.toml:12: fpm.max_children: must be at least 1"],
    );
}

#[test]
fn what_further_php_cannot_be_is_said_with_its_line() {
    php(
        "apache",
        "php = \"fpm\"",
        "[server.fpm]\nmax_child = 2",
        &expect!["plans/t.toml:12: server.fpm.max_child: unknown key `max_child`; did you mean `max_children`?"],
    );
    php(
        "apache",
        "php = \"fpm\"",
        "[variant.v.fpm]\nprogram = \"x\"",
        &expect!["plans/t.toml:12: variant.fpm.program: belongs into [server.fpm]: it is the same for all variants"],
    );
    php(
        "apache",
        "php = \"fpm\"",
        "[variant.v.ini]\nopcache.enable = 1",
        &expect![
            "plans/t.toml:12: ini.opcache: give text, a number, or true or false; a name with a dot stands in quotes"
        ],
    );
    php(
        "apache",
        "",
        "[variant.v.fpm]\nmax_children = 2",
        &expect![[r#"plans/t.toml:11: variant.fpm: needs `php = "fpm"` in [server]"#]],
    );
    php(
        "apache",
        "php = \"fpm\"\nini = { a = \"x\\ny\" }",
        "",
        &expect!["plans/t.toml:5: ini.a: a value cannot have quotes, backslashes, line breaks or ${ in it here"],
    );
}

#[test]
fn words_that_php_does_not_know_in_quotes() {
    let keys = "kind = \"apache\"\nphp = \"fpm\"\nini = { error_reporting = \"E_ALL & ~E_NOTICE\" }";
    check(
        &SMALL.replace("kind = \"embedded\"", keys),
        &expect![
            "plans/t.toml:5: ini.error_reporting: give the number, such as 32767 for E_ALL: values are quoted, and PHP knows its words only without quotes"
        ],
    );
}

#[test]
fn limits_that_cannot_be_are_said_with_their_line() {
    let confine = |line: &str, expected: &Expect| check(&format!("{SMALL}[confine]\n{line}\n"), expected);
    confine(
        "cpu = 0.0",
        &expect!["plans/t.toml:11: confine.cpu: is a number of CPUs, at least 0.01, such as 0.5 or 2.0"],
    );
    confine(
        "swap = \"1G\"",
        &expect!["plans/t.toml:11: confine.swap: nobody swaps who has all the memory; give `memory`, too"],
    );
    confine(
        "io_read = \"10\"",
        &expect!["plans/t.toml:11: confine.io_read: must be at least 64K a second: with less, no program would start"],
    );
    confine(
        "io_read = 100",
        &expect![[
            r#"plans/t.toml:11: confine.io_read: a size is text with a unit: write "100M" if that is what `100` means"#
        ]],
    );
    confine(
        "io_write = \"fast\"",
        &expect![
            "plans/t.toml:11: confine.io_write: `fast` is not a size: write a number and K, M, G or T, such as 200M"
        ],
    );
    confine("io_write_ops = \"0/s\"", &expect!["plans/t.toml:11: confine.io_write_ops: must be more than 0"]);
    confine("memory = \"1M\"", &expect!["plans/t.toml:11: confine.memory: no server starts in less than 16M"]);
}

#[test]
fn limits_are_read() {
    let text = format!("{SMALL}[confine]\ncpu = 1.5\nio_read = \"30M/s\"\nio_write_ops = \"2k/s\"\n");
    let (plan, _) = parse(&text, Path::new("t.toml"), &Options::default()).unwrap();
    let confine = plan.confine.unwrap();
    assert_eq!((confine.memory, confine.cpus()), (None, Some(1.5)));
    assert_eq!((confine.io.read, confine.io.write, confine.io.write_ops), (Some(30 << 20), None, Some(2000)));
    let empty = parse(&format!("{SMALL}[confine]\n"), Path::new("t.toml"), &Options::default()).unwrap().0;
    assert_eq!(empty.confine, None);
}

/// Few, short blocks, and two minutes unless somebody says how long; that alone does not make it a run until all is decided.
#[test]
fn quick_is_few_short_blocks_in_two_minutes() {
    let check = |text: &str, options: Options, expected: (u32, Option<Nanos>, bool)| {
        let plan = parse(text, Path::new("t.toml"), &options).expect("a plan").0;
        assert_eq!((plan.blocks, plan.budget_ns, plan.until_decided), expected, "{text}");
        plan.loads[0].duration_ns
    };
    let quick = || Options { quick: true, ..Options::default() };
    assert_eq!(check(SMALL, Options::default(), (6, None, false)), Some(SECOND));
    assert_eq!(check(SMALL, quick(), (3, Some(120 * SECOND), false)), Some(SECOND / 2));
    let within = |budget: &str| format!("budget = \"{budget}\"\n{SMALL}");
    check(&within("10min"), quick(), (3, Some(120 * SECOND), true));
    check(&within("30s"), quick(), (3, Some(30 * SECOND), true));
    check(&within("30s"), Options { budget_ns: Some(600 * SECOND), ..quick() }, (3, Some(600 * SECOND), true));
}

/// A run with a budget is looked at four times, the last time after 24 blocks, however many or few the plan is to have without one.
#[test]
fn a_budget_is_used() {
    let blocks = |text: &str, options: &Options| {
        let plan = parse(text, Path::new("t.toml"), options).map(|plan| plan.0.blocks);
        plan.map_err(|error| error.to_string())
    };
    let budget = Options { budget_ns: Some(SECOND), ..Options::default() };
    let many = format!("blocks = 160\n{SMALL}");
    assert_eq!(blocks(&many, &Options::default()), Ok(160));
    assert_eq!(blocks(&many, &budget), Ok(24));
    assert_eq!(blocks(&format!("blocks = 10\n{SMALL}"), &budget), Ok(24));
    assert_eq!(blocks(SMALL, &budget), Ok(24));
    // A plan that ends early by itself means its blocks.
    let early = format!("blocks = 10\nuntil_decided = true\n{SMALL}");
    assert_eq!((blocks(&early, &budget), blocks(&early, &Options::default())), (Ok(10), Ok(10)));
    let planned = blocks(&format!("budget = \"1h\"\n{many}"), &Options::default());
    assert!(planned.is_err_and(|why| why.contains("at most 24 blocks")));
}
