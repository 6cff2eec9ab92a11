//! What can be typed. Flags keep their meaning over all commands; each says its own help next to its type.

pub(crate) mod ab;
pub(crate) mod admission;
pub(crate) mod check;
pub(crate) mod load;
pub(crate) mod watch;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use model::Nanos;
use std::ffi::OsString;
use std::path::PathBuf;

/// A dynamometer for web servers: how much a server can take, what holds it back, and which settings are better.
#[derive(Debug, Parser)]
#[command(name = "webdyno", version, max_term_width = 110, after_help = EXIT_CODES)]
pub(crate) struct Flags {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 done (better or equivalent), 1 worse, \
an expectation missed or something to mend, 2 bad usage or plan, 3 inconclusive, \
4 the server could not be run, 5 the environment refuses (root, swap, port, disk), 6 store, 130 interrupted (results kept).";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Check a server that runs already: what it takes, what limits it, what to do next, within a minute
    Check(Box<check::CheckFlags>),
    /// Carry out a plan: measure every cell in randomised blocks, compare, diagnose
    Run(RunFlags),
    /// Load a server that is there already, and say what it did
    Load(Box<load::LoadFlags>),
    /// Stand in for ab: its options, its report, its exit codes
    #[command(disable_help_flag = true)]
    Ab(Words),
    /// Watch this machine and its web server in dstat's columns, and lose no second
    #[command(disable_help_flag = true)]
    Watch(Words),
    /// See and change what mod_admission does in the Apache that runs here
    Admission(admission::AdmissionFlags),
    /// Show a stored run again
    Report(ReportFlags),
    /// Compare two stored runs, which nobody interleaved
    Compare(CompareFlags),
    /// Read what ab printed in the past: check its arithmetic, compare, keep it
    Import(ImportFlags),
    /// List the stored runs
    Runs(RunsFlags),
    /// Put back what a killed run left behind
    Restore(RestoreFlags),
    /// Say what this machine allows, and how to allow the rest
    Doctor(DoctorFlags),
    /// Webdyno's own small server, with honest workloads
    #[command(disable_help_flag = true)]
    Serve(ServeFlags),
}

/// `webdyno run`.
#[derive(Debug, Args)]
#[command(after_help = RUNS, disable_help_flag = true)]
pub(crate) struct RunFlags {
    /// The plan, a TOML file (docs/plan-reference.md)
    #[arg(required_unless_present = "resume")]
    pub(crate) plan: Option<PathBuf>,

    /// Use the parameters of the plan's [scale.NAME]
    #[arg(long, value_name = "NAME", help_heading = WHAT)]
    pub(crate) scale: Option<String>,
    /// Few blocks, half the load, and no further block that would probably end after two minutes (--budget allows for more): to see that a
    /// plan works, not to decide by it
    #[arg(long, help_heading = WHAT)]
    pub(crate) quick: bool,
    /// Run until everything is decided, or until this much time is spent: up to 24 blocks, however many the plan has. The first block is
    /// made whole, however long it takes
    #[arg(long, value_name = "TIME", value_parser = load::time, help_heading = WHAT)]
    pub(crate) budget: Option<Nanos>,
    /// Seed of the order of trials; printed with every run
    #[arg(long, value_name = "N", value_parser = whole_number, help_heading = WHAT)]
    pub(crate) seed: Option<u64>,
    /// Go on with a run that was interrupted, or whose time was spent: its identifier, a unique beginning of one, or `latest`. Not
    /// one that sends cookies, passwords or long bodies: these are not stored
    #[arg(long, value_name = "ID", conflicts_with_all = ["plan", "scale", "quick", "seed"], help_heading = WHAT)]
    pub(crate) resume: Option<String>,

    /// Check the plan and say what would be done
    #[arg(long, conflicts_with_all = ["json", "markdown"], help_heading = INSTEAD)]
    pub(crate) dry_run: bool,
    /// Only start the server of this variant, say where it listens, and keep it until Ctrl-C: for curl, ab and the like. Nothing is
    /// measured
    #[arg(long, value_name = "VARIANT", help_heading = INSTEAD,
          conflicts_with_all = ["resume", "dry_run", "budget", "seed", "quick", "json", "markdown", "html"])]
    pub(crate) start: Option<String>,

    /// Make a temporary swap file of this size and remove it afterwards (root)
    #[arg(long, value_name = "SIZE", value_parser = size, help_heading = MAY)]
    pub(crate) make_swap: Option<u64>,
    /// Main configuration file of the server that a plan with `in_place` changes, or host of the server that is only a `url` to it: you
    /// say that it is yours to change, or to load; said once, and not needed for this machine's loopback
    #[arg(long, value_name = "FILE|HOST", help_heading = MAY)]
    pub(crate) i_operate: Vec<String>,

    /// No live progress on the terminal
    #[arg(long, help_heading = SHOW)]
    pub(crate) plain: bool,
    #[command(flatten, next_help_heading = SHOW)]
    pub(crate) show: ShowFlags,

    #[command(flatten, next_help_heading = GENERAL)]
    pub(crate) store: StoreFlag,
    /// Print help
    #[arg(short, long, action = ArgAction::Help, help_heading = GENERAL)]
    help: (),
}

const WHAT: &str = "What to run";
const INSTEAD: &str = "Instead of running it";
const MAY: &str = "What it may change";
const SHOW: &str = "Output";
/// What other commands take, too, below what a command with many flags has of its own.
const GENERAL: &str = "General";

const RUNS: &str = "Examples:
  webdyno run plans/first-look.toml            a first comparison, in under a minute
  webdyno run --dry-run plans/first-look.toml  what it would send and change
  webdyno run --resume latest --budget 10m     ten minutes more for the last run";

/// `webdyno report`.
#[derive(Debug, Args)]
pub(crate) struct ReportFlags {
    /// Identifier of the run, a unique beginning of one, or `latest`
    #[arg(default_value = store::LATEST)]
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) store: StoreFlag,
    #[command(flatten)]
    pub(crate) show: ShowFlags,
}

/// `webdyno compare`.
#[derive(Debug, Args)]
#[command(after_help = COMPARES)]
pub(crate) struct CompareFlags {
    /// What is compared with: a run by its identifier, a unique beginning of one, or `latest`; several with commas between
    #[arg(value_name = "A")]
    pub(crate) first: String,
    /// What is compared
    #[arg(value_name = "B")]
    pub(crate) second: String,
    /// Compare them although they ran on different machines, or with other loads
    #[arg(long)]
    pub(crate) anyway: bool,
    /// JSON on standard output instead of the table
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: StoreFlag,
    #[command(flatten)]
    pub(crate) lang: LangFlag,
}

const COMPARES: &str = "Examples:
  webdyno compare 20261120-235840 latest    yesterday's run and the last one, cell by cell
  webdyno compare 7f3a,81c0 9e2d,a0b1       two loads before a change and two after it

The runs were not interleaved, so their intervals allow for what machines drift: small differences do not show
(docs/statistics.md). Two settings are compared best in one plan.";

/// `webdyno import`.
#[derive(Debug, Args)]
#[command(after_help = IMPORTS)]
pub(crate) struct ImportFlags {
    /// Texts with reports of ab; `-` is standard input
    #[arg(required = true, value_name = "[NAME=]FILE[#N,N]")]
    pub(crate) files: Vec<String>,
    /// JSON on standard output instead of the table
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: StoreFlag,
    #[command(flatten)]
    pub(crate) lang: LangFlag,
}

const IMPORTS: &str = "Examples:
  webdyno import old.txt                         every report in it, the others compared with the first
  webdyno import off=a.txt off=b.txt on=c.txt    two runs of one setting against one of another
  webdyno import off=page.txt#1,2 on=page.txt#5,6
                                                 reports of one text by their number";

/// `webdyno runs`.
#[derive(Debug, Args)]
pub(crate) struct RunsFlags {
    /// One JSON array instead of a table
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: StoreFlag,
}

/// `webdyno restore`.
#[derive(Debug, Args)]
pub(crate) struct RestoreFlags {
    /// Say what would be put back, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// `webdyno doctor`.
#[derive(Debug, Args)]
pub(crate) struct DoctorFlags {
    /// JSON on standard output
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: StoreFlag,
}

/// `webdyno serve`: its arguments are the server's own.
#[derive(Debug, Args)]
pub(crate) struct ServeFlags {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) args: Vec<OsString>,
}

/// `webdyno ab` and `webdyno watch`: words that are read by ab's and by dstat's own rules ([`ab::parse`], [`watch::parse`]).
#[derive(Debug, Args)]
pub(crate) struct Words {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) words: Vec<OsString>,
}

/// Where runs are kept.
#[derive(Debug, Default, Args)]
pub(crate) struct StoreFlag {
    /// The store to use [default: $WEBDYNO_STORE, else store.sqlite in the user's data directory]
    #[arg(long = "store", value_name = "FILE")]
    pub(crate) path: Option<PathBuf>,
}

/// How a run is shown.
#[derive(Debug, Args)]
pub(crate) struct ShowFlags {
    /// JSON on standard output instead of the table
    #[arg(long, conflicts_with = "markdown")]
    pub(crate) json: bool,
    /// Markdown on standard output instead of the table
    #[arg(long)]
    pub(crate) markdown: bool,
    /// Where the HTML page goes [default: reports/ID.html beside the store; none with --json or --markdown]
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) lang: LangFlag,
}

/// Which language to speak.
#[derive(Debug, Default, Args)]
pub(crate) struct LangFlag {
    /// Language of the report [default: from LC_ALL, LC_MESSAGES, LANG]
    #[arg(long, value_enum)]
    pub(crate) lang: Option<Lang>,
}

/// Languages of reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Lang {
    En,
    Ja,
}

/// A size that is worth making.
fn size(text: &str) -> Result<u64, String> {
    match units::bytes(text) {
        Ok(0) => Err("must be more than 0".to_owned()),
        size => size.map_err(|error| error.to_string()),
    }
}

fn whole_number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("`{text}` is not a whole number from 0 to {}", u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn what_other_commands_take_too_comes_last() {
        for name in ["run", "load"] {
            let mut all = Flags::command();
            let help = all.find_subcommand_mut(name).unwrap().render_help().to_string();
            let (own, rest) = help.split_once("\nGeneral:\n").unwrap();
            let (general, _) = rest.split_once("\n\nExamples:\n").unwrap();
            assert!(general.contains("--store <FILE>") && general.ends_with("Print help"), "{help}");
            assert!(!own.contains("Options:") && !general.contains(":\n"), "{help}");
        }
    }
}
