//! What can be typed after `webdyno admission`.

use super::LangFlag;
use super::load::time;
use clap::{Args, Subcommand};
use model::Nanos;
use std::path::PathBuf;

/// `webdyno admission`.
#[derive(Debug, Args)]
pub(crate) struct AdmissionFlags {
    #[command(subcommand)]
    pub(crate) command: AdmissionCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AdmissionCommand {
    /// What is held, what waits and what was turned away
    Status(StatusFlags),
    /// Change limits, queues and modes of the running server, by its control file
    Set(SetFlags),
    /// The same as status, each second
    Watch(WatchFlags),
}

/// Which server.
#[derive(Debug, Args)]
pub(crate) struct FileFlag {
    /// The server's status.json [default: those of the servers that run here, below /run/apache2, /run/httpd and the like]
    #[arg(long, value_name = "PATH")]
    pub(crate) file: Option<PathBuf>,
}

/// `webdyno admission status`.
#[derive(Debug, Args)]
#[command(after_help = STATUS_CODES)]
pub(crate) struct StatusFlags {
    #[command(flatten)]
    pub(crate) file: FileFlag,
    /// Also the single files, hosts and clients that hold permits or have requests waiting
    #[arg(long)]
    pub(crate) entries: bool,
    /// JSON on standard output instead of the table
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) lang: LangFlag,
}

const STATUS_CODES: &str = "Exit codes: 0 a server tells its status, 4 none does, or what it told is older than 5 s.";

/// `webdyno admission set`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SetFlags {
    /// The group; `memory` is the memory budget, `queue-workers` the workers that may wait, `*` all groups
    pub(crate) name: String,
    /// What to change: limit, queue, timeout, order, status, cost, mode, min, max
    #[arg(value_name = "KEY=VALUE", required_unless_present = "reset", conflicts_with = "reset")]
    pub(crate) words: Vec<String>,
    /// Remove what the control file says of it: the configuration is in force again, and what lines for `*` say
    #[arg(long)]
    pub(crate) reset: bool,
    #[command(flatten)]
    pub(crate) file: FileFlag,
    /// Say how the control file would change, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

const EXAMPLES: &str = "Examples:
  webdyno admission set php limit=8 queue=20      eight at once, twenty may wait
  webdyno admission set uploads mode=observe      only count what would be rejected
  webdyno admission set memory limit=800M         the memory budget
  webdyno admission set '*' mode=off              let everything through
  webdyno admission set php --reset               as configured, but for lines of `*`

Exit codes: 0 in force, 2 refused, 4 no server took it within 3 s, 5 the control file cannot be written.";

/// `webdyno admission watch`.
#[derive(Debug, Args)]
pub(crate) struct WatchFlags {
    #[command(flatten)]
    pub(crate) file: FileFlag,
    /// Also the single files, hosts and clients (not with --plain)
    #[arg(long)]
    pub(crate) entries: bool,
    /// A row for each group instead of the table, one below the other; so it is, too, where there is no terminal
    #[arg(long)]
    pub(crate) plain: bool,
    /// End after so many looks
    #[arg(short = 'n', value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,
    /// End after this time
    #[arg(short = 'd', value_name = "TIME", value_parser = time)]
    pub(crate) duration: Option<Nanos>,
    #[command(flatten)]
    pub(crate) lang: LangFlag,
}
