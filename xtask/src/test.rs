//! `cargo xtask test`: every check there is, one step after the other, and one line at the end that says how many passed.
//!
//! A failed step does not stop the others, so that one run shows all there is to mend.

use crate::bench::machine;
use crate::summary::{Counts, Seen};
use crate::{cargo, root, setup, tidy};
use anyhow::Context;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant, SystemTime};

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
    Tests(Suite),
}

/// A call of `cargo test`.
struct Suite {
    /// What cargo is told, up to `--`.
    cargo: Vec<String>,
    /// What the test programs are told.
    programs: Vec<String>,
    /// Where long checks put what they find.
    results: Option<Results>,
}

/// A folder for pages, and what each says under its title of the day, the commit and the machine.
struct Results {
    folder: PathBuf,
    made: String,
}

/// More failed tests than these are not asked again: something is broken.
const ASKED_AGAIN: usize = 8;

/// How a step went.
struct Done {
    name: &'static str,
    took: Duration,
    counts: Counts,
    /// The tests that failed beside the others and passed alone.
    flaky: Vec<String>,
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
        let cargo =
            [&["test", "--workspace", "--no-fail-fast"], args].concat().into_iter().map(str::to_owned).collect();
        Step { name, action: Action::Tests(Suite { cargo, programs: filter.to_vec(), results: None }) }
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
    steps.push(Step { name: "module", action: Action::Call(module) });
    steps.extend([test("tests", &["--all-targets"]), test("doc tests", &["--doc"]), program("rustdoc", rustdoc)]);
    steps
}

/// The long checks: the tests named `long_check_...`, one at a time, on the program as users build it.
fn long_steps(filter: &[String]) -> anyhow::Result<Vec<Step>> {
    let folder = root().join("docs/results").join(machine::today());
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let results = Results { folder, made: machine::in_a_line() };
    let cargo = ["test", "--release", "--workspace", "--all-targets", "--no-fail-fast"].map(str::to_owned).to_vec();
    // The filter comes first: a test program with a main of its own may look at nothing else.
    let mut programs = if filter.is_empty() { vec!["long_check_".to_owned()] } else { filter.to_vec() };
    programs.extend(["--test-threads=1", "--nocapture"].map(str::to_owned));
    Ok(vec![Step { name: "long checks", action: Action::Tests(Suite { cargo, programs, results: Some(results) }) }])
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

/// Apache's module: built without a warning, its tests in C, and those again under the sanitizers. Without Apache's headers there is none,
/// which is a mistake with CI=true.
fn module() -> anyhow::Result<()> {
    if setup::find_program("apxs").is_none() {
        let must = std::env::var_os("CI").is_some_and(|value| value == "true");
        anyhow::ensure!(!must, "nothing may be missing with CI=true: no apxs (apache2-dev)");
        println!("skipped: no apxs (apache2-dev)");
        return Ok(());
    }
    let mut make = Command::new("make");
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    make.arg(format!("-j{workers}")).arg("-C").arg(root().join("modules/mod_admission"));
    status(make.args(["all", "test", "sanitize"]).stdin(Stdio::null()))
}

impl Step {
    fn run(self, skips: &Path) -> Done {
        println!("\n== {}", self.name);
        let began = Instant::now();
        let result = match self.action {
            Action::Call(call) => call().map(|()| (Counts::one(), Vec::new())),
            Action::Program(mut command) => status(&mut command).map(|()| (Counts::one(), Vec::new())),
            Action::Tests(suite) => suite.run(skips),
        };
        let (counts, flaky) = result.unwrap_or_else(|error| {
            println!("error: {error:#}");
            (Counts { failed: 1, ..Counts::default() }, Vec::new())
        });
        Done { name: self.name, took: began.elapsed(), counts, flaky }
    }
}

fn status(command: &mut Command) -> anyhow::Result<()> {
    let status = command.status().with_context(|| format!("cannot run {}", command.get_program().display()))?;
    anyhow::ensure!(status.success(), "{status}");
    Ok(())
}

impl Suite {
    /// Runs the tests, and the few that failed a second time, alone: beside others a real server may get no CPU for seconds.
    /// What passes then has passed, and is named; what fails again has failed. `docs/decisions/asked-again.md` has the reasons.
    fn run(&self, skips: &Path) -> anyhow::Result<(Counts, Vec<String>)> {
        let began = SystemTime::now();
        let first = tests(self.command(&self.programs).env("WEBDYNO_SKIPS", skips))?;
        if let Some(results) = &self.results {
            results.sign(began)?;
        }
        // A test program that died has a failure without a name.
        let named = u64::try_from(first.failed.len()) == Ok(first.counts.failed);
        if first.failed.is_empty() || !named || first.failed.len() > ASKED_AGAIN || self.results.is_some() {
            return Ok((first.counts, Vec::new()));
        }
        println!("\nasked again, one after the other: {}", first.failed.join(", "));
        let options = ["--exact", "--test-threads=1"].map(str::to_owned);
        let again = tests(self.command(&[&first.failed[..], &options[..]].concat()).env("WEBDYNO_SKIPS", skips))?;
        let counts = first.counts.asked_again(again.counts);
        let flaky = first.failed.into_iter().filter(|name| !again.failed.contains(name));
        Ok((counts, flaky.collect()))
    }

    fn command(&self, programs: &[String]) -> Command {
        let mut command = cargo(&self.cargo.iter().map(String::as_str).collect::<Vec<_>>());
        command.arg("--").args(programs);
        if let Some(results) = &self.results {
            command.env("WEBDYNO_LONG", &results.folder);
        }
        command
    }
}

impl Results {
    /// Says in every page that was written since then how it came to be.
    fn sign(&self, since: SystemTime) -> anyhow::Result<()> {
        for entry in fs::read_dir(&self.folder).with_context(|| format!("cannot read {}", self.folder.display()))? {
            let page = entry.context("cannot read the folder of results")?.path();
            let new = fs::metadata(&page).and_then(|about| about.modified()).is_ok_and(|when| when >= since);
            if !new || page.extension().is_none_or(|extension| extension != "md") {
                continue;
            }
            let text = fs::read_to_string(&page).with_context(|| format!("cannot read {}", page.display()))?;
            let signed = signed(&text, &self.made);
            fs::write(&page, signed).with_context(|| format!("cannot write {}", page.display()))?;
        }
        Ok(())
    }
}

/// The page with a line of its own under its title.
fn signed(page: &str, made: &str) -> String {
    let (title, rest) = page.split_once('\n').unwrap_or((page, ""));
    format!("{title}\n\n{made}\n{rest}")
}

/// Runs `cargo test`, passes its output on, counts its summary lines and keeps the names of what failed.
fn tests(command: &mut Command) -> anyhow::Result<Seen> {
    let mut child = command.stdout(Stdio::piped()).spawn().context("cannot run cargo")?;
    let output = child.stdout.take().context("cargo has no standard output")?;
    let mut seen = Seen::default();
    let mut out = std::io::stdout();
    for line in BufReader::new(output).split(b'\n') {
        let line = line.context("cannot read what cargo says")?;
        out.write_all(&line).and_then(|()| out.write_all(b"\n")).context("cannot write")?;
        seen.line(&String::from_utf8_lossy(&line));
    }
    let Seen { mut counts, failed } = seen;
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
    Ok(Seen { counts, failed })
}

/// Prints the summary; its last line is for machines.
fn conclude(done: &[Done], skipped: &str) -> ExitCode {
    let mut all = Counts::default();
    println!("\n== summary");
    for Done { name, took, counts, .. } in done {
        let how = if counts.failed > 0 { "FAILED" } else { "ok" };
        println!("{how:6}  {name:12} {:7.1} s  {} passed, {} failed", took.as_secs_f64(), counts.passed, counts.failed);
        all.add(*counts);
    }
    let flaky: Vec<&String> = done.iter().flat_map(|step| &step.flaky).collect();
    if !flaky.is_empty() {
        println!("failed beside the others and passed alone; each is a test to mend:");
        flaky.iter().for_each(|name| println!("  {name}"));
    }
    if !skipped.is_empty() {
        println!("skipped:");
        skipped.lines().for_each(|line| println!("  {line}"));
    }
    println!("{} passed, {} failed", all.passed, all.failed);
    if all.failed > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

#[cfg(test)]
mod tests {
    use super::signed;

    #[test]
    fn a_page_says_under_its_title_how_it_came_to_be() {
        assert_eq!(
            signed("# Kills\n\nAll was given back.\n", "2026-11-24."),
            "# Kills\n\n2026-11-24.\n\nAll was given back.\n"
        );
        assert_eq!(signed("# Kills", "2026-11-24."), "# Kills\n\n2026-11-24.\n");
    }
}
