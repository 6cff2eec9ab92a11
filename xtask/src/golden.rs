//! `cargo xtask golden`: accept what the tests print now as what they shall print, and show how much that changes.

use anyhow::Context;
use std::process::{Command, ExitCode};

/// Runs all tests with `UPDATE_EXPECT=1`, then `git diff --stat`. Whether the changes are right is for the reader of `git diff`.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    let passed = crate::cargo(&["test", "--workspace", "--no-fail-fast"])
        .env("UPDATE_EXPECT", "1")
        .status()
        .context("cannot run cargo")?
        .success();
    Command::new("git")
        .args(["diff", "--stat"])
        .current_dir(crate::root())
        .status()
        .context("cannot run git; the expected outputs are rewritten all the same")?;
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
