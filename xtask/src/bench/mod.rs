//! `cargo xtask bench load`: `webdyno load` beside a bare loop in C and the load generators that people use.
//! `cargo xtask bench monitor`: `webdyno watch` beside dstat and its kin.
//! `cargo xtask bench admission`: what the Apache module mod_admission costs, and what it keeps a server from.
//!
//! Every figure is of one batch on one machine: CPU time from the kernel, requests by the server's own count.
//! It says what it could not measure, and judges only the goals in `cases` and `monitor`.

mod admission;
mod cases;
mod child;
mod instructions;
pub(crate) mod machine;
mod memory;
mod monitor;
mod programs;
mod report;
mod rounds;
mod server;
mod simulation;
mod stand;
mod statistics;
mod syscalls;
mod tools;

use anyhow::Context;
use cases::{CASES, Case, Kind};
use clap::Subcommand;
use machine::Moment;
use report::Section;
use stand::Stand;
use std::fs;
use std::path::{Path, PathBuf};

/// A published result has at least as many repetitions.
const PUBLISHED: usize = 7;

/// What was typed after `bench`.
#[derive(clap::Args)]
pub(crate) struct Flags {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Compare `webdyno load` with a bare loop in C, wrk, ab, h2load, oha and hey
    Load(LoadFlags),
    /// Judge thousands of simulated plans of known truth by our rules and those of benchstat and hyperfine
    Statistics(simulation::Flags),
    /// Compare `webdyno watch` with dstat, dool, vmstat, sar and atop
    Monitor(monitor::Flags),
    /// Measure mod_admission on a real Apache: instructions, hand-offs, memory; CPU time and overload by plans
    Admission(admission::Flags),
}

#[derive(clap::Args)]
struct LoadFlags {
    /// Cases to measure; all when none is named
    #[arg(value_parser = cases::by_name, value_name = "CASE")]
    cases: Vec<Case>,
    /// Repetitions, at least 7 for a published result [default: 7, with --quick 2]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    repeats: Option<u64>,
    /// Seconds of each run [default: 2, with --quick 1]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: Option<u32>,
    #[command(flatten)]
    shared: Shared,
}

/// What all benchmarks can be told.
#[derive(clap::Args)]
struct Shared {
    /// Only see that everything works
    #[arg(long)]
    quick: bool,
    /// Folder for the result [default: bench in cargo's target folder]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Measure with this webdyno instead of building one
    #[arg(long, value_name = "PROGRAM")]
    webdyno: Option<PathBuf>,
}

impl Shared {
    /// The webdyno that was named, wherever a benchmark goes.
    fn webdyno(&self) -> anyhow::Result<Option<PathBuf>> {
        self.webdyno.as_deref().map(fs::canonicalize).transpose().context("no such webdyno")
    }
}

/// How much is measured.
#[derive(Debug, Clone, Copy)]
struct Extent {
    repeats: usize,
    seconds: u32,
    quick: bool,
}

/// Measures what was asked for.
pub(crate) fn run(flags: &Flags) -> anyhow::Result<()> {
    match &flags.what {
        What::Load(flags) => load(flags),
        What::Statistics(flags) => simulation::run(flags, &programs::target()),
        What::Monitor(flags) => monitor::run(flags),
        What::Admission(flags) => admission::run(flags),
    }
}

fn load(flags: &LoadFlags) -> anyhow::Result<()> {
    let extent = extent(flags);
    let cases = if flags.cases.is_empty() { CASES.to_vec() } else { flags.cases.clone() };
    let files = Files::choose("load", "`webdyno load` and its peers", flags.shared.out.as_deref())?;
    let webdyno = flags.shared.webdyno()?;
    let stand = Stand::set_up(webdyno.as_deref())?;
    let before = Moment::now();
    let versions = stand.programs.versions();
    let mut sections = Vec::new();
    for case in cases {
        sections.push(measure(&stand, case, extent)?);
        // After every case, so that an interrupted benchmark leaves what it found.
        let placement = format!("nginx on CPU {}, the client on CPU {}", stand.cpus.server, stand.cpus.client);
        let mut facts = machine::facts(&placement, &before, &Moment::now());
        facts.extend(method(extent));
        facts.extend(versions.iter().cloned());
        files.write(&facts, &warnings(extent), &sections)?;
    }
    println!("{}\n{}", files.markdown.display(), files.csv.display());
    Ok(())
}

fn extent(flags: &LoadFlags) -> Extent {
    let (repeats, seconds) = if flags.shared.quick { (2, 1) } else { (PUBLISHED, 2) };
    let repeats = flags.repeats.map_or(repeats, |repeats| repeats as usize);
    Extent { repeats, seconds: flags.seconds.unwrap_or(seconds), quick: flags.shared.quick }
}

fn measure(stand: &Stand, case: Case, extent: Extent) -> anyhow::Result<Section> {
    match case.kind {
        Kind::Cpu(shape) | Kind::DropIn(shape) => rounds::closed(stand, case, shape, extent),
        Kind::HalfRate(shape) => rounds::half_rate(stand, case, shape, extent),
        Kind::Syscalls => syscalls::measure(stand, case, extent),
        Kind::Memory => memory::measure(stand, case, extent),
        Kind::Instructions => instructions::measure(stand, case, extent),
    }
}

/// Where the result goes: two new files, named after the day.
struct Files {
    title: String,
    markdown: PathBuf,
    csv: PathBuf,
}

impl Files {
    /// Names for a result of `what`; `title` is the page's, without the day.
    fn choose(what: &str, title: &str, out: Option<&Path>) -> anyhow::Result<Files> {
        let folder = out.map_or_else(|| programs::target().join("bench"), Path::to_owned);
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let day = machine::today();
        let name = |n: u32| if n == 1 { format!("{day}-{what}") } else { format!("{day}-{what}-{n}") };
        let free = |n: &u32| !folder.join(name(*n)).with_extension("md").exists();
        let name = name((1..).find(free).unwrap_or(1));
        let at = |extension| folder.join(format!("{name}.{extension}"));
        Ok(Files { title: format!("{title}, {day}"), markdown: at("md"), csv: at("csv") })
    }

    fn write(&self, facts: &[(String, String)], warnings: &[String], sections: &[Section]) -> anyhow::Result<()> {
        let text = report::markdown(&self.title, warnings, facts, sections);
        fs::write(&self.markdown, text).with_context(|| format!("cannot write {}", self.markdown.display()))?;
        let text = report::csv(sections);
        fs::write(&self.csv, text).with_context(|| format!("cannot write {}", self.csv.display()))
    }
}

fn warnings(extent: Extent) -> Vec<String> {
    let few = extent.repeats < PUBLISHED;
    let why = format!("Not to be published: {} repetitions, and it takes {PUBLISHED}.", extent.repeats);
    let mut warnings = if few { vec![why] } else { Vec::new() };
    if extent.quick {
        warnings.push("Not to be published: --quick only shows that everything works.".to_owned());
    }
    warnings
}

/// How the numbers came about.
fn method(extent: Extent) -> Vec<(String, String)> {
    let interval = interval(extent.repeats);
    let facts = [
        (
            "repetitions",
            format!("{} of {} s, all tools in turn, every other time backwards", extent.repeats, extent.seconds),
        ),
        (
            "CPU per request",
            "user + system time of the client from wait4, by the requests that nginx counted; the sum is exact, the split is the \
             kernel's guess"
                .to_owned(),
        ),
        ("ratio", "median of the ratios within each repetition".to_owned()),
        ("95 % interval", interval),
        ("busy", "CPU time by wall time of the client from its start to its end".to_owned()),
    ];
    facts.map(|(name, value)| (name.to_owned(), value)).to_vec()
}

/// How an interval of so many repetitions came about.
fn interval(repeats: usize) -> String {
    match statistics::rank(repeats) {
        None => format!("none of {repeats} repetitions: it takes 6"),
        Some((rank, confidence)) => format!(
            "of the median, whatever the distribution: from ratio {rank} to ratio {} of {repeats} in order; {:.1} % confidence",
            repeats + 1 - rank,
            confidence * 100.0
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, expected: Result<&str, &str>) {
        let found = cases::by_name(name).map(|case| case.name);
        match expected {
            Ok(name) => assert_eq!(found.as_deref(), Ok(name)),
            Err(part) => assert!(found.as_ref().is_err_and(|why| why.contains(part)), "{found:?}"),
        }
    }

    #[test]
    fn cases_by_name() {
        check("tls-100", Ok("tls-100"));
        check("tls", Err("the cases are keep-alive-100, "));
    }
}
