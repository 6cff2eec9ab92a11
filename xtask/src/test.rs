//! `cargo xtask test`: every check there is, one step after the other, and one line at the end that says how many passed.
//!
//! A failed step does not stop the others, so that one run shows all there is to mend.

use crate::summary::{self, Counts};
use crate::{cargo, root, setup, tidy};
use anyhow::Context;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// What was typed after `test`.
#[derive(clap::Args)]
pub(crate) struct Flags {
    /// First install what the tests need, as with CI=true
    #[arg(long)]
    setup: bool,
    /// Run the long checks instead; what they find goes into docs/results/
    #[arg(long)]
    long: bool,
    /// Only build, and run only the tests whose name contains one of these
    filter: Vec<String>,
}

/// One check: its name and what it does.
struct Step {
    name: &'static str,
    action: Action,
}

enum Action {
    /// Something of our own; an error is its failure.
    Call(fn() -> anyhow::Result<()>),
    /// A program whose exit code tells.
    Program(Command),
    /// Cargo's tests, whose summary lines are counted.
    Tests(Command),
}

/// How a step went.
struct Done {
    name: &'static str,
    took: Duration,
    counts: Counts,
}

/// Runs the steps that were asked for.
pub(crate) fn run(flags: &Flags) -> anyhow::Result<ExitCode> {
    let installs = flags.setup || std::env::var_os("CI").is_some_and(|value| value == "true");
    let missing = if installs { Vec::new() } else { setup::missing() };
    if !missing.is_empty() {
        println!("missing, and skipped with the tests that need it; `cargo xtask setup` installs it:");
        missing.iter().for_each(|line| println!("  {line}"));
    }
    let skips = std::env::temp_dir().join(format!("webdyno-skipped-{}.txt", std::process::id()));
    let mut steps = if installs { vec![Step { name: "setup", action: Action::Call(install) }] } else { Vec::new() };
    steps.extend(if flags.long { long_steps(&flags.filter)? } else { daily_steps(&flags.filter) });
    let done: Vec<Done> = steps.into_iter().map(|step| step.run(&skips)).collect();
    let skipped = fs::read_to_string(&skips).unwrap_or_default();
    // Absent when nothing was skipped.
    let _ = fs::remove_file(&skips);
    Ok(conclude(&done, &skipped))
}

fn install() -> anyhow::Result<()> {
    setup::run(&setup::Flags::default())
}

fn daily_steps(filter: &[String]) -> Vec<Step> {
    let test = |name, args: &[&str]| {
        let mut command = cargo(&[&["test", "--workspace", "--no-fail-fast"], args].concat());
        command.arg("--").args(filter);
        Step { name, action: Action::Tests(command) }
    };
    let build = program("build", cargo(&["build", "--workspace", "--all-targets"]));
    if !filter.is_empty() {
        return vec![build, test("tests", &["--all-targets"])];
    }
    let mut rustdoc = cargo(&["doc", "--workspace", "--no-deps", "--document-private-items"]);
    rustdoc.env("RUSTDOCFLAGS", "-D warnings");
    let mut steps = vec![
        Step { name: "tidy", action: Action::Call(tidy::run) },
        program("fmt", cargo(&["fmt", "--all", "--check"])),
        program("clippy", cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])),
        build,
    ];
    // The README's first command as it stands there, but for the measuring.
    steps.push(program("README", cargo(&["run", "--", "run", "plans/first-look.toml", "--dry-run"])));
    steps.extend(c_folders().map(|folder| program("C", make(&folder))));
    steps.extend([test("tests", &["--all-targets"]), test("doc tests", &["--doc"]), program("rustdoc", rustdoc)]);
    steps
}

/// The long checks: the tests named `long_check_...`, one at a time, on the program as users build it.
fn long_steps(filter: &[String]) -> anyhow::Result<Vec<Step>> {
    let date = Command::new("date").args(["-u", "+%Y-%m-%d"]).output().context("cannot run date")?;
    let folder = root().join("docs/results").join(String::from_utf8_lossy(&date.stdout).trim());
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let mut command = cargo(&["test", "--release", "--workspace", "--all-targets", "--no-fail-fast", "--"]);
    // The filter comes first: a test program with a main of its own may look at nothing else.
    if filter.is_empty() {
        command.arg("long_check_");
    } else {
        command.args(filter);
    }
    command.args(["--test-threads=1", "--nocapture"]).env("WEBDYNO_LONG", &folder);
    Ok(vec![Step { name: "long checks", action: Action::Tests(command) }])
}

fn program(name: &'static str, command: Command) -> Step {
    Step { name, action: Action::Program(command) }
}

/// The folders under `sites/` with something to compile.
fn c_folders() -> impl Iterator<Item = PathBuf> {
    let folders = fs::read_dir(root().join("sites")).into_iter().flatten().flatten();
    folders.map(|entry| entry.path()).filter(|folder| folder.join("Makefile").exists())
}

fn make(folder: &Path) -> Command {
    let mut make = Command::new("make");
    // `-B`: warnings, which each Makefile turns into errors, show only when something is compiled.
    make.args(["-B", "-C"]).arg(folder).stdin(Stdio::null());
    make
}

impl Step {
    fn run(self, skips: &Path) -> Done {
        println!("\n== {}", self.name);
        let began = Instant::now();
        let result = match self.action {
            Action::Call(call) => call().map(|()| Counts { passed: 1, ..Counts::default() }),
            Action::Program(mut command) => status(&mut command),
            Action::Tests(mut command) => tests(command.env("WEBDYNO_SKIPS", skips)),
        };
        let counts = result.unwrap_or_else(|error| {
            println!("error: {error:#}");
            Counts { failed: 1, ..Counts::default() }
        });
        Done { name: self.name, took: began.elapsed(), counts }
    }
}

fn status(command: &mut Command) -> anyhow::Result<Counts> {
    let status = command.status().with_context(|| format!("cannot run {}", command.get_program().display()))?;
    anyhow::ensure!(status.success(), "{status}");
    Ok(Counts { passed: 1, ..Counts::default() })
}

/// Runs `cargo test`, passes its output on and counts its summary lines.
fn tests(command: &mut Command) -> anyhow::Result<Counts> {
    let mut child = command.stdout(Stdio::piped()).spawn().context("cannot run cargo")?;
    let output = child.stdout.take().context("cargo has no standard output")?;
    let mut counts = Counts::default();
    let mut out = std::io::stdout();
    for line in BufReader::new(output).split(b'\n') {
        let line = line.context("cannot read what cargo says")?;
        out.write_all(&line).and_then(|()| out.write_all(b"\n")).context("cannot write")?;
        if let Some(more) = summary::counts(&String::from_utf8_lossy(&line)) {
            counts.add(more);
        }
    }
    let status = child.wait().context("cannot wait for cargo")?;
    if counts.ignored > 0 {
        println!(
            "error: {} ignored tests; let them run, or skip with a reason (crates/testkit/src/skip.rs)",
            counts.ignored
        );
        counts.failed += counts.ignored;
    }
    // A test program that does not compile, or dies, has no summary line.
    if !status.success() && counts.failed == 0 {
        counts.failed = 1;
    }
    Ok(counts)
}

/// Prints the summary; its last line is for machines.
fn conclude(done: &[Done], skipped: &str) -> ExitCode {
    let mut all = Counts::default();
    println!("\n== summary");
    for Done { name, took, counts } in done {
        let how = if counts.failed > 0 { "FAILED" } else { "ok" };
        println!("{how:6}  {name:12} {:7.1} s  {} passed, {} failed", took.as_secs_f64(), counts.passed, counts.failed);
        all.add(*counts);
    }
    if !skipped.is_empty() {
        println!("skipped:");
        skipped.lines().for_each(|line| println!("  {line}"));
    }
    println!("{} passed, {} failed", all.passed, all.failed);
    if all.failed > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
