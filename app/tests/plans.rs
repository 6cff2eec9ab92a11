//! Every plan that comes with webdyno is taken by it: the parser, and the real server that it is about, asked by `--dry-run`.

#![allow(clippy::unwrap_used, reason = "helpers of tests; clippy.toml excepts only test functions")]

mod tool;

use std::path::{Path, PathBuf};
use testkit::skip::{not_here, skipped};
use tool::{Tool, open_plans, remains};

/// Plan files below a folder, sorted.
fn plans_in(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(plans_in(&path));
        } else if path.extension().is_some_and(|ending| ending == "toml") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// No scale, and those that a plan names.
fn scales(text: &str) -> Vec<Option<&str>> {
    let named = text.lines().filter_map(|line| line.strip_prefix("[scale.")?.strip_suffix(']'));
    std::iter::once(None).chain(named.map(Some)).collect()
}

/// Why a plan cannot be looked at whole on this machine, if that is all that the tool complained about.
fn absent(text: &str, complaint: &str) -> Option<fn(&str)> {
    if complaint.contains("install the package") {
        return Some(skipped);
    }
    // No distribution has it.
    if complaint.contains("no mod_mruby here") {
        return Some(not_here);
    }
    // The machine's own server does not run while tests do.
    let in_place = text.contains("\nin_place = true") && complaint.contains("no server runs with");
    let small = text.contains("\n[confine]") && complaint.contains("cgroup");
    (in_place || small).then_some(not_here)
}

#[test]
fn every_shipped_plan_is_taken() {
    let tool = Tool::new();
    let folder = open_plans(&tool);
    let plans = plans_in(&folder);
    assert!(plans.len() >= 10, "{plans:?}");
    for plan in &plans {
        let text = std::fs::read_to_string(plan).unwrap();
        for scale in scales(&text) {
            let mut args = vec!["run", plan.to_str().unwrap(), "--dry-run", "--seed", "1"];
            args.extend(scale.into_iter().flat_map(|scale| ["--scale", scale]));
            if text.contains("\nswap = ") {
                args.extend(["--make-swap", "4G"]);
            }
            let ran = tool.run(&args);
            let name = plan.strip_prefix(&folder).unwrap().display();
            if ran.code == 0 {
                assert!(ran.out.contains("block 1: "), "{name} {scale:?}: {ran:?}");
                continue;
            }
            assert_eq!(ran.err.lines().count(), 1, "{name} {scale:?}: {ran:?}");
            match absent(&text, &ran.err) {
                Some(say) => say(&format!("{name}: {}", ran.err.trim_end())),
                None => panic!("{name} {scale:?}: {ran:?}"),
            }
        }
    }
    assert_eq!(remains(&tool), Vec::<String>::new());
}
