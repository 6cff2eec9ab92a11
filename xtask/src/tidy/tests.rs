//! Each rule lets a small sound tree pass and catches the one thing that is put wrong in it.

use expect_test::{Expect, expect};
use std::fs;

/// A workspace of a library, the binary and testkit, in which every rule holds.
const SOUND: [(&str, &str); 16] = [
    (
        "Cargo.toml",
        r#"[workspace.dependencies]
serde = "1"

[workspace.lints.rust]
missing_docs = "warn"

[workspace.lints.clippy]
dbg_macro = "warn"
print_stderr = "warn"
print_stdout = "warn"
todo = "warn"
undocumented_unsafe_blocks = "warn"
unimplemented = "warn"
unwrap_used = "warn"
"#,
    ),
    (
        "ARCHITECTURE.md",
        "| crate | may use | what |\n|---|---|---|\n| `app` | `model` | x |\n| `model` | nothing | x |\n| `diagnosis` | | x |\n| `testkit` | | x |\n",
    ),
    ("docs/decisions/dependencies.md", "| crate | why |\n|---|---|\n| `serde` | to store |\n"),
    (
        "docs/plan-reference.md",
        "## Top level\n| key | x |\n|---|---|\n| `name` | x |\n\n## `[load.NAME]`\n\n| key | x |\n|---|---|\n| `path` | x |\n",
    ),
    ("docs/diagnosis.md", "| cause | x |\n|---|---|\n| `cause-cpu` | x |\n"),
    ("crates/diagnosis/src/cause.rs", "//! Causes.\ncauses! {\n    Cpu \"cause-cpu\" \"CPU.\";\n}\n"),
    ("crates/diagnosis/Cargo.toml", "[package]\nname = \"diagnosis\"\n[lints]\nworkspace = true\n"),
    ("locales/en.ftl", "hello = Hello { $name }\nbye =\n    Good\n    bye\n    .title = Bye\n"),
    ("locales/ja.ftl", "# a = comment\nhello = { $name }\nbye = x\n    .title = Bye\n"),
    (
        "app/Cargo.toml",
        "[package]\nname = \"webdyno\"\n[lints]\nworkspace = true\n[dependencies]\nmodel.workspace = true\n",
    ),
    ("app/src/main.rs", "//! The binary.\nuse model::X;\nfn main() {}\n"),
    (
        "crates/model/Cargo.toml",
        "[package]\nname = \"model\"\n[lints]\nworkspace = true\n[dependencies]\nserde.workspace = true\n[dev-dependencies]\ntestkit.workspace = true\n",
    ),
    (
        "crates/model/src/lib.rs",
        "//! Nouns.\nuse serde::Serialize;\n#[cfg(test)]\nmod tests {\n    use testkit;\n    fn t() { println!(); }\n}\n",
    ),
    (
        "crates/model/src/plan/text.rs",
        "//! Plans.\n#[serde(deny_unknown_fields)]\nstruct Written {\n    name: Option<String>,\n    load: BTreeMap<String, LoadText>,\n}\n\n#[serde(deny_unknown_fields)]\nstruct LoadText {\n    path: String,\n}\n",
    ),
    ("crates/testkit/Cargo.toml", "[package]\nname = \"testkit\"\n[lints]\nworkspace = true\n"),
    ("crates/testkit/src/lib.rs", "//! For tests.\n"),
];

/// Replaces `old` by `new` in a file of the sound tree (or writes a new file when `old` is empty) and shows what is found.
fn check(file: &str, old: &str, new: &str, expected: &Expect) {
    let folder = tempfile::tempdir().unwrap();
    let write = |file: &str, text: &str| {
        let path = folder.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    SOUND.iter().for_each(|(file, text)| write(file, text));
    match SOUND.iter().find(|(name, _)| *name == file) {
        Some((_, text)) => {
            assert!(text.contains(old), "`{old}` is not in {file}");
            write(file, &text.replacen(old, new, 1));
        }
        None => write(file, new),
    }
    let found: String = super::check(folder.path()).unwrap().iter().map(|violation| format!("{violation}\n")).collect();
    expected.assert_eq(&found);
}

#[test]
fn a_sound_tree_passes() {
    check("docs/any.md", "", "Any.\n", &expect![""]);
    check("xtask/src/main.rs", "", "//! Automation.\nfn main() { println!(); }\n", &expect![""]);
    check("fuzz/src/lib.rs", "", "fn outside() {}\n", &expect![""]);
    check("crates/model/tests/any.rs", "", "//! Tests may.\nfn t() { println!(); }\n", &expect![""]);
}

#[test]
fn this_repository_is_tidy() {
    let found: Vec<String> = super::check(&crate::root()).unwrap().iter().map(ToString::to_string).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn edges_are_those_of_the_table() {
    check(
        "crates/testkit/Cargo.toml",
        "[lints]",
        "[dependencies]\nmodel.workspace = true\n[lints]",
        &expect![[r#"
        crates/testkit/Cargo.toml:4: `testkit` does not use `model`; remove it
        crates/testkit/Cargo.toml:4: `testkit` may not depend on `model`; ARCHITECTURE.md lists the edges
    "#]],
    );
    check(
        "crates/model/Cargo.toml",
        "[dev-dependencies]",
        "",
        &expect![[r#"
        crates/model/Cargo.toml:8: `testkit` is for tests; move it to [dev-dependencies]
    "#]],
    );
    check(
        "crates/model/Cargo.toml",
        "serde.workspace",
        "anyhow = \"1\"\nserde.workspace",
        &expect![[r#"
        crates/model/Cargo.toml:6: `anyhow` has no row in docs/decisions/dependencies.md
        crates/model/Cargo.toml:6: `anyhow` is for `app` and `xtask`; a library has its own error type
        crates/model/Cargo.toml:6: `model` does not use `anyhow`; remove it
    "#]],
    );
    check(
        "ARCHITECTURE.md",
        "| `model` | nothing | x |\n",
        "",
        &expect![[r#"
        crates/model/Cargo.toml:1: `model` is not in the table of ARCHITECTURE.md
    "#]],
    );
    check(
        "ARCHITECTURE.md",
        "nothing",
        "`gone`",
        &expect![[r#"
        ARCHITECTURE.md:4: there is no crate `gone`; correct the table
    "#]],
    );
}

#[test]
fn manifests_are_in_order() {
    check(
        "crates/model/Cargo.toml",
        "name = \"model\"",
        "name = \"nouns\"",
        &expect![[r#"
        crates/model/Cargo.toml:2: name it like its folder, `model`
    "#]],
    );
    check(
        "crates/model/Cargo.toml",
        "name = \"model\"",
        "name = ",
        &expect![[r#"
        Cargo.toml:2: no crate uses `serde`; remove it
        crates/model/Cargo.toml:1: write `[lints]` and `workspace = true`
        crates/model/Cargo.toml:2: string values must be quoted, expected literal string
    "#]],
    );
    check(
        "crates/model/Cargo.toml",
        "[lints]\nworkspace = true\n",
        "",
        &expect![[r#"
        crates/model/Cargo.toml:1: write `[lints]` and `workspace = true`
    "#]],
    );
    check(
        "Cargo.toml",
        "unwrap_used = \"warn\"",
        "unwrap_used = \"allow\"",
        &expect![[r#"
        Cargo.toml:14: `unwrap_used` must warn
    "#]],
    );
    check(
        "Cargo.toml",
        "unwrap_used = \"warn\"\n",
        "",
        &expect![[r#"
        Cargo.toml:1: [workspace.lints.clippy] must have `unwrap_used`
    "#]],
    );
    check(
        "Cargo.toml",
        "serde = \"1\"",
        "serde = { git = \"https://example.org\" }",
        &expect![[r#"
        Cargo.toml:2: no `git =`; use a release from the registry
    "#]],
    );
    check(
        "Cargo.toml",
        "serde = \"1\"",
        "serde = \"1\"\nrand = \"1\"",
        &expect![[r#"
        Cargo.toml:3: `rand` has no row in docs/decisions/dependencies.md
        Cargo.toml:3: no crate uses `rand`; remove it
    "#]],
    );
    check(
        "crates/model/src/lib.rs",
        "use testkit;",
        "",
        &expect![[r#"
        crates/model/Cargo.toml:8: `model` does not use `testkit`; remove it
    "#]],
    );
}

#[test]
fn documents_keep_up() {
    check(
        "docs/decisions/dependencies.md",
        "| `serde` | to store |\n",
        "",
        &expect![[r#"
        Cargo.toml:2: `serde` has no row in docs/decisions/dependencies.md
    "#]],
    );
    check(
        "docs/decisions/dependencies.md",
        "to store",
        "",
        &expect![[r#"
        docs/decisions/dependencies.md:3: say why `serde` is here
    "#]],
    );
    check(
        "docs/decisions/dependencies.md",
        "| `serde`",
        "| `gone` | x |\n| `serde`",
        &expect![[r#"
        docs/decisions/dependencies.md:3: nothing uses `gone` any more; remove the row
    "#]],
    );
    check(
        "docs/plan-reference.md",
        "| `path` | x |\n",
        "",
        &expect![[r#"
        crates/model/src/plan/text.rs:10: `path` of `load` is not in docs/plan-reference.md
    "#]],
    );
    check(
        "docs/plan-reference.md",
        "| `path` | x |\n",
        "| `path` | x |\n| `old` | x |\n",
        &expect![[r#"
        docs/plan-reference.md:11: a plan has no key `old` in `load`; see crates/model/src/plan/text.rs
    "#]],
    );
    check(
        "docs/plan-reference.md",
        "| `name` | x |\n",
        "",
        &expect![[r#"
        crates/model/src/plan/text.rs:4: `name` of `the top level` is not in docs/plan-reference.md
    "#]],
    );
    check(
        "docs/diagnosis.md",
        "| `cause-cpu` | x |",
        "| `cause-old` | x |",
        &expect![[r#"
        crates/diagnosis/src/cause.rs:3: `cause-cpu` is not in docs/diagnosis.md
        docs/diagnosis.md:3: there is no cause `cause-old`; see crates/diagnosis/src/cause.rs
    "#]],
    );
}

#[test]
fn languages_agree() {
    check(
        "locales/ja.ftl",
        "    .title = Bye\n",
        "",
        &expect![[r#"
        locales/en.ftl:5: `bye.title` is not in locales/ja.ftl; add it
    "#]],
    );
    check(
        "locales/ja.ftl",
        "hello = { $name }",
        "hello = x",
        &expect![[r#"
        locales/ja.ftl:2: `hello` does not tell `$name`, as locales/en.ftl does
    "#]],
    );
    check(
        "locales/ja.ftl",
        "bye = x",
        "bye = x\nbye = y",
        &expect![[r#"
        locales/ja.ftl:4: `bye` stands here twice; remove one
    "#]],
    );
}

#[test]
fn sources_are_in_order() {
    check(
        "crates/model/src/x.rs",
        "",
        "use std::fmt;\n",
        &expect![[r#"
        crates/model/src/x.rs:1: open with `//!`: what the file is for and what it deliberately does not do
    "#]],
    );
    check(
        "modules/mod_x/core/x.h",
        "",
        "#ifndef X_H\n",
        &expect![[r#"
        modules/mod_x/core/x.h:1: open with `/*`: what the file is for and what it deliberately does not do
    "#]],
    );
    check("modules/mod_x/x.c", "", "/*\n * x.c: what it is for.\n */\n", &expect![""]);
    check(
        "crates/model/src/lib.rs",
        "use serde",
        "fn f() { eprintln!(\"x\"); }\nuse serde",
        &expect![[r#"
        crates/model/src/lib.rs:2: `eprintln!` ends webdyno when its output is closed; return the text, take a writer, or in `app` use `say`
    "#]],
    );
    check(
        "app/src/main.rs",
        "fn main() {}",
        "fn main() { println!(\"x\"); }",
        &expect![[r#"
        app/src/main.rs:3: `println!` ends webdyno when its output is closed; return the text, take a writer, or in `app` use `say`
    "#]],
    );
    check(
        "crates/model/src/lib.rs",
        "use serde",
        "#![allow(clippy::unwrap_used)]\nuse serde",
        &expect![[r#"
        crates/model/src/lib.rs:2: `unwrap_used` stays on outside tests; mend what it found
    "#]],
    );
    check(
        "crates/model/src/util.rs",
        "",
        "//! Things.\n",
        &expect![[r#"
        crates/model/src/util.rs:1: a drawer; name it after the one thing it holds
    "#]],
    );
    check(
        "crates/model/src/helpers/x.rs",
        "",
        "//! Things.\npub(crate) mod common {\n}\n",
        &expect![[r#"
        crates/model/src/helpers:1: a drawer; name it after the one thing it holds
        crates/model/src/helpers/x.rs:2: a drawer; name it after the one thing it holds
    "#]],
    );
    check(
        "docs/any.md",
        "",
        &format!("Any.\nTO{}: more\n", "DO"),
        &expect![[r#"
        docs/any.md:2: a mark of unfinished work; finish it, or open an issue instead
    "#]],
    );
    check(
        "crates/model/src/x.rs",
        "",
        &format!("//! X.\n    #[{}]\nfn t() {{}}\n", "ignore"),
        &expect![[r#"
        crates/model/src/x.rs:2: let it run, or use testkit's `skip` or `long_results`
    "#]],
    );
}
