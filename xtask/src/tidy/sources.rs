//! Rules about Rust files and those of the modules in C, and about words that no file may hold.

use super::manifests::has_word;
use super::tree::Tree;
use super::{Violation, violation};
use std::path::Path;

/// Every Rust file opens with what it is for, and every file of a module in C.
pub(super) fn opening(tree: &Tree) -> Vec<Violation> {
    let rust = tree.rust().filter(|(_, text)| !text.starts_with("//! ")).map(|(file, _)| (file, "//!"));
    let c = tree.c_of_modules().filter(|(_, text)| !text.starts_with("/*\n * ")).map(|(file, _)| (file, "/*"));
    rust.chain(c)
        .map(|(file, with)| {
            let what = format!("open with `{with}`: what the file is for and what it deliberately does not do");
            violation(file, 1, what)
        })
        .collect()
}

/// Only `xtask` prints by macro: the macros end the program when nobody listens any more.
pub(super) fn no_printing(tree: &Tree) -> Vec<Violation> {
    const MACROS: [&str; 5] = ["println", "eprintln", "print", "eprint", "dbg"];
    tree.product_code()
        .filter_map(|line| {
            let prints =
                MACROS.iter().find(|name| has_word(&line.text.replace('!', "\u{0}!"), &format!("{name}\u{0}!")))?;
            Some(violation(
                line.file,
                line.number,
                format!("`{prints}!` ends webdyno when its output is closed; return the text, take a writer, or in `app` use `say`"),
            ))
        })
        .collect()
}

/// The product does not switch off the lints that the rules lean on.
pub(super) fn lints_stay_on(tree: &Tree) -> Vec<Violation> {
    const LINTS: [&str; 6] = ["unwrap_used", "print_stdout", "print_stderr", "dbg_macro", "todo", "unimplemented"];
    tree.product_code()
        .filter_map(|line| {
            let lint = LINTS.iter().find(|lint| has_word(line.text, &format!("clippy::{lint}")))?;
            Some(violation(line.file, line.number, format!("`{lint}` stays on outside tests; mend what it found")))
        })
        .collect()
}

/// No folder and no module is a drawer for what has no name.
pub(super) fn no_drawers(tree: &Tree) -> Vec<Violation> {
    const DRAWERS: [&str; 6] = ["util", "utils", "common", "helper", "helpers", "misc"];
    const WHAT: &str = "a drawer; name it after the one thing it holds";
    let is_drawer =
        |name: Option<&std::ffi::OsStr>| DRAWERS.iter().any(|drawer| name.is_some_and(|name| name == *drawer));
    let folders = tree.folders.iter().filter(|folder| is_drawer(folder.file_name()));
    let files = tree.rust().filter(|(file, _)| is_drawer(file.file_stem())).map(|(file, _)| file);
    let modules = tree.rust().flat_map(|(file, text)| {
        text.lines().enumerate().filter_map(move |(i, line)| {
            let (_, name) = line.split_once("mod ")?;
            let name = name.strip_suffix(" {")?;
            DRAWERS.contains(&name).then(|| violation(file, i + 1, WHAT))
        })
    });
    folders.map(|folder| folder.as_path()).chain(files).map(|path| violation(path, 1, WHAT)).chain(modules).collect()
}

/// Nothing in the tree says that it is unfinished: what is not done belongs into an issue.
pub(super) fn nothing_unfinished(tree: &Tree) -> Vec<Violation> {
    // Written apart, or this file would hold them.
    let marks = ["TO-DO", "FIX-ME", "X-XX", "HA-CK", "TB-D", "WI-P"].map(|mark| mark.replace('-', ""));
    tree.files()
        .flat_map(|(file, text)| text.lines().enumerate().map(move |(i, line)| (file, i + 1, line)))
        .filter(|(_, _, line)| marks.iter().any(|mark| has_word(line, mark)))
        .map(|(file, number, _)| {
            violation(file, number, "a mark of unfinished work; finish it, or open an issue instead")
        })
        .collect()
}

/// No test is left out by an attribute: it runs, or it says why it cannot.
pub(super) fn nothing_ignored(tree: &Tree) -> Vec<Violation> {
    // Written apart, or this file would look as if it had them.
    let [attribute, example] = ["#[", "```"].map(|before| format!("{before}{}", "ignore"));
    let is_ignored = |line: &str| line.trim_start().starts_with(&attribute) || line.trim_end().ends_with(&example);
    let lines = |(file, text): (&'_ Path, &'_ str)| -> Vec<Violation> {
        let ignored = text.lines().enumerate().filter(|(_, line)| is_ignored(line));
        ignored.map(|(i, _)| violation(file, i + 1, "let it run, or use testkit's `skip` or `long_results`")).collect()
    };
    tree.rust().flat_map(lines).collect()
}
