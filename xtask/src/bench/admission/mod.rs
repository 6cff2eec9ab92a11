//! `cargo xtask bench admission`: what mod_admission costs, and what it keeps a server from, on a real Apache.
//!
//! Instructions are counted by callgrind and need no calm machine; what is compared by time are plans, run and judged by webdyno itself
//! in interleaved blocks. The module is built from this checkout into a temporary folder.

mod apache;
mod handoff;
mod instructions;
mod memory;
mod plans;

use super::machine::{self, Moment};
use super::report::{Heading, Section};
use super::server::Folder;
use super::{Files, Shared};
use crate::root;
use crate::signals::HeldSignals;
use anyhow::{Context, bail};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// What was typed after `bench admission`.
#[derive(clap::Args)]
pub(super) struct Flags {
    /// Cases to measure [default: instructions and hand-off, which need no calm machine]
    #[arg(value_enum, value_name = "CASE")]
    cases: Vec<Case>,
    /// Repetitions of what is counted or timed here
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..))]
    repeats: u64,
    /// Permits passed on in the queue's storm [default: 10000000, with --quick 100000]
    #[arg(long)]
    hand_offs: Option<u64>,
    /// Requests between the two looks at the memory of children [default: 1000000, with --quick 10000]
    #[arg(long)]
    requests: Option<u64>,
    /// Clients of the case beside-the-best
    #[arg(long, default_value = plans::BESIDE_THE_BEST_CLIENTS[0], value_parser = plans::BESIDE_THE_BEST_CLIENTS)]
    clients: String,
    #[command(flatten)]
    shared: Shared,
}

/// Something to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Case {
    /// User instructions per request, with the module and without
    Instructions,
    /// How long a permit takes from one process to the next, and whether a waiter is ever forgotten
    HandOff,
    /// Memory of the server's children before and after many requests, with each limiter; needs libapache2-mod-qos; mod_mruby as
    /// plans/admission/overhead-mruby.toml says
    Memory,
    /// CPU time per request beside mod_qos and mod_lua, in 300 blocks, against its goal: plans/admission/overhead.toml; needs the package
    /// libapache2-mod-qos
    Overhead,
    /// The same of mod_admission alone, in 400 blocks, against the same goal: plans/admission/overhead-own.toml
    OverheadOwn,
    /// The memory cliff with each means against it: plans/admission/memory-cliff.toml; needs libapache2-mod-qos, too
    Overload,
    /// The goals of that in fewer cells and more blocks, for the p99 of files: plans/admission/files-beside.toml
    FilesBeside,
    /// The same with 10, 50 and 200 clients and MaxRequestWorkers 3 to 8, and which of these is the best: plans/admission/worker-limits.toml
    WorkerLimits,
    /// The best of these beside mod_admission in more blocks, with --clients: plans/admission/beside-the-best.toml
    BesideTheBest,
}

impl Case {
    fn heading(self) -> Heading {
        let (name, about) = match self {
            Case::Instructions => {
                ("instructions", "user instructions per request of one connection, limits never reached")
            }
            Case::HandOff => ("hand-off", "a permit from one process to the next, and many of them among threads"),
            Case::Memory => {
                ("memory", "memory of the children of a server before and after many requests, with each limiter")
            }
            Case::Overhead => {
                ("overhead", "CPU time per request with limits that are never reached, phpinfo, 100 connections")
            }
            Case::OverheadOwn => ("overhead-own", "the same of mod_admission alone, in more blocks"),
            Case::Overload => ("overload", "programs whose memory does not fit, and files beside them"),
            Case::FilesBeside => ("files-beside", "files beside programs whose memory does not fit, in more blocks"),
            Case::WorkerLimits => (
                "worker-limits",
                "programs whose memory does not fit, with each MaxRequestWorkers that may be the best",
            ),
            Case::BesideTheBest => (
                "beside-the-best",
                "programs whose memory does not fit, with the best MaxRequestWorkers, and files beside them",
            ),
        };
        Heading { name, about }
    }
}

/// What all cases work with.
struct Stand {
    folder: Folder,
    signals: HeldSignals,
    /// The built module.
    module: PathBuf,
}

impl Stand {
    fn set_up() -> anyhow::Result<Stand> {
        let signals = HeldSignals::begin()?;
        let folder = Folder::make()?;
        let module = make(&folder, &["all"], "mod_admission.so")?;
        Ok(Stand { folder, signals, module })
    }

    /// Builds one of the module's own test programs.
    fn test_program(&self, name: &str) -> anyhow::Result<PathBuf> {
        let target = self.folder.path().join("build/test").join(name);
        make(&self.folder, &[&target.display().to_string()], &format!("test/{name}"))
    }
}

/// Has the module's Makefile make something outside of the checkout; where `product` is then.
fn make(folder: &Folder, targets: &[&str], product: &str) -> anyhow::Result<PathBuf> {
    let build = folder.path().join("build");
    let mut command = Command::new("make");
    command.arg("-s").arg("-C").arg(root().join("modules/mod_admission")).arg(format!("BUILD={}", build.display()));
    let made = command.args(targets).stdin(Stdio::null()).output().context("cannot run make")?;
    if !made.status.success() {
        let said = String::from_utf8_lossy(&made.stderr);
        bail!(
            "mod_admission was not built (it needs the package apache2-dev): {}",
            said.lines().next().unwrap_or("make failed")
        );
    }
    Ok(build.join(product))
}

/// Measures what was asked for.
pub(super) fn run(flags: &Flags) -> anyhow::Result<()> {
    let cases = if flags.cases.is_empty() { vec![Case::Instructions, Case::HandOff] } else { flags.cases.clone() };
    let files = Files::choose("admission", "mod_admission", flags.shared.out.as_deref())?;
    let stand = Stand::set_up()?;
    let before = Moment::now();
    let mut sections: Vec<Section> = Vec::new();
    for case in cases {
        sections.push(measure(&stand, case, flags)?);
        // After every case, so that an interrupted benchmark leaves what it found.
        let facts = machine::facts("wherever the kernel puts them; plans as they say", &before, &Moment::now());
        files.write(&[facts, versions()].concat(), &warnings(flags), &sections)?;
    }
    println!("{}\n{}", files.markdown.display(), files.csv.display());
    Ok(())
}

fn measure(stand: &Stand, case: Case, flags: &Flags) -> anyhow::Result<Section> {
    let heading = case.heading();
    let many = |given: Option<u64>, all, quick| given.unwrap_or(if flags.shared.quick { quick } else { all });
    match case {
        Case::Instructions => instructions::measure(stand, heading, flags.repeats as usize, flags.shared.quick),
        Case::HandOff => {
            handoff::measure(stand, heading, flags.repeats as usize, many(flags.hand_offs, 10_000_000, 100_000))
        }
        Case::Memory => memory::measure(stand, heading, many(flags.requests, 1_000_000, 10_000)),
        Case::Overhead => plans::overhead(stand, heading, flags),
        Case::OverheadOwn => plans::overhead_own(stand, heading, flags),
        Case::Overload => plans::overload(stand, heading, flags),
        Case::FilesBeside => plans::files_beside(stand, heading, flags),
        Case::WorkerLimits => plans::worker_limits(stand, heading, flags),
        Case::BesideTheBest => plans::beside_the_best(stand, heading, flags),
    }
}

fn versions() -> Vec<(String, String)> {
    let of = |name: &str, package: &str| {
        let version = super::programs::output("dpkg-query", &["-W", "-f=${Version}\n", package]);
        (name.to_owned(), version)
    };
    vec![
        of("Apache", "apache2-bin"),
        of("PHP", "libapache2-mod-php[0-9]*"),
        of("mod_qos", "libapache2-mod-qos"),
        of("valgrind", "valgrind"),
        (
            "mod_mruby with http-access-limiter".to_owned(),
            "in no distribution; plans/admission/overhead-mruby.toml measures one that was built".to_owned(),
        ),
    ]
}

fn warnings(flags: &Flags) -> Vec<String> {
    let why = "Not to be published: --quick only shows that everything works.";
    if flags.shared.quick { vec![why.to_owned()] } else { Vec::new() }
}
