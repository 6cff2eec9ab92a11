//! Two runs that nobody interleaved.

use super::*;

fn differences(first: &Run, second: &Run) -> Vec<Difference> {
    between(Side(std::slice::from_ref(first)), Side(std::slice::from_ref(second))).unwrap().differences
}

/// Kernels keep some of the memory for themselves, and each a little more or less.
#[test]
fn a_machine_with_a_little_less_memory_is_the_same() {
    let first = run("", &[("a", &BASE), ("b", &MORE)]);
    let check = |memory: u64, forbidden: bool| {
        let (mut first, mut second) = (first.clone(), first.clone());
        (first.head.host.memory, second.head.host.memory) = (24_000 << 20, memory << 20);
        let found = differences(&first, &second);
        assert_eq!(found.iter().any(|it| it.what.forbids()), forbidden, "{memory}: {found:?}");
        assert_eq!(
            found,
            differences(&second, &first)
                .into_iter()
                .map(|it| Difference { first: it.second, second: it.first, ..it })
                .collect::<Vec<_>>()
        );
    };
    check(24_000, false);
    check(23_900, false);
    check(24_100, false);
    check(16_000, true);
}

/// What was changed from one run to the next is said, wherever the plan says it.
#[test]
fn settings_that_differ_are_said() {
    let of = |server: &str, variant: &str| {
        let text = format!(
            "[server]\nkind = \"apache\"\nmpm = \"event\"\ndocument_root = \".\"\n{server}\n[variant.a]\n{variant}\n[load.l]\npath = \"/\"\nconnections = 1\nduration = \"1s\"\n"
        );
        let mut run = run("", &[("a", &BASE)]);
        run.head.plan = parse(&text, Path::new("t.toml"), &Options::default()).unwrap().0;
        run
    };
    let check = |first: (&str, &str), second: (&str, &str), expected: &Expect| {
        let found = differences(&of(first.0, first.1), &of(second.0, second.1));
        let line = |it: &Difference| format!("{:?}: {} / {}\n", it.what, it.first, it.second);
        expected.assert_eq(&found.iter().map(line).collect::<String>());
    };
    let workers = |n: u32| format!("directives = \"\"\"\nTimeout 5\nMaxRequestWorkers {n}\n\"\"\"");
    check(
        (&workers(4), ""),
        (&workers(8), ""),
        &expect![[r#"
        Configuration: MaxRequestWorkers 4 / MaxRequestWorkers 8
    "#]],
    );
    let fpm = |n: u32| format!("php = \"fpm\"\n[server.fpm]\nmax_children = {n}");
    check(
        (&fpm(4), ""),
        (&fpm(8), ""),
        &expect![[r#"
        Configuration: php.settings.pool.pm.max_children = 4 / php.settings.pool.pm.max_children = 8
    "#]],
    );
    let ini = |of: &str| format!("[variant.a.ini]\nmemory_limit = \"{of}\"");
    check(
        (&fpm(4), &ini("64M")),
        (&fpm(4), &ini("128M")),
        &expect![[r#"
        Settings("a"): ini.memory_limit = 64M / ini.memory_limit = 128M
    "#]],
    );
    check(
        ("[server.sysctl]\n\"net.core.somaxconn\" = \"8\"", ""),
        ("", "directives = \"KeepAlive Off\""),
        &expect![[r#"
            Configuration: net.core.somaxconn = 8 / 
            Settings("a"):  / KeepAlive Off
        "#]],
    );
    check(
        ("ending = \"restart\"\nending_after = \"500ms\"", "ending = \"stop\""),
        ("", "ending = \"kill\""),
        &expect![[r#"
            Configuration: ending = restart; ending_after = 0.5 s / ending = stop
            Settings("a"): ending = stop / ending = kill
        "#]],
    );
}

/// Each `webdyno load` throws dice of its own; the question is the same.
#[test]
fn two_loads_with_seeds_of_their_own_ask_one_question() {
    let with = |seed: u64| {
        let mut run = run("", &[("a", &BASE)]);
        run.head.plan.loads[0].seed = seed;
        run
    };
    assert_eq!(differences(&with(1), &with(2)), vec![]);
    let mut other = with(2);
    other.head.plan.loads[0].connections += 1;
    assert!(differences(&with(1), &other).iter().any(|it| it.what.forbids()));
}

/// Swapped bytes at the right distance have the same fingerprint; another load stays another load.
#[test]
fn a_load_that_differs_is_said_whatever_its_fingerprint() {
    let with = |body: &str| {
        let mut run = run("", &[("a", &BASE)]);
        run.head.plan.loads[0].mix[0].body = Some(model::plan::Body::written(body));
        run
    };
    let middle = "x".repeat(12);
    let found = differences(&with(&format!("a{middle}b")), &with(&format!("b{middle}a")));
    let hidden = |it: &Difference| it.what == Differs::Load("a".to_owned()) && it.first == it.second;
    assert!(found.iter().any(hidden), "{found:?}");
}

#[test]
fn what_is_sent_beside_a_cells_own_load_belongs_to_it() {
    let mut with = run("", &[("a", &BASE)]);
    with.head.plan.beside = vec![model::plan::LoadSpec::of("static", "/logo.png")];
    let found = differences(&run("", &[("a", &BASE)]), &with);
    let load = found.iter().find(|it| it.what == Differs::Load("a".to_owned())).expect("another load");
    assert!(load.second.contains(" beside GET /logo.png") && !load.first.contains(" beside "), "{load:?}");
}
