//! What can be typed after `webdyno check`.

use super::load::{WayFlags, time};
use super::{LangFlag, StoreFlag};
use clap::Args;
use model::Nanos;

/// `webdyno check`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CheckFlags {
    /// The page to ask for: `http[s]://HOST[:PORT]/PATH`; the scheme may be left out
    pub(crate) url: String,
    /// The time all of it may take, from 2s to 10m
    #[arg(long, value_name = "TIME", value_parser = budget, default_value = "60s")]
    pub(crate) budget: Nanos,
    /// Header field to add; may be repeated
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    pub(crate) headers: Vec<String>,
    /// Say that you operate these hosts, so that they may be loaded; needed once unless it is this machine
    #[arg(long, value_name = "HOST", value_delimiter = ',')]
    pub(crate) i_operate: Vec<String>,
    /// Say who answers and what would be sent, and send nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// JSON on standard output instead of the report
    #[arg(long)]
    pub(crate) json: bool,
    /// No progress on the terminal
    #[arg(long)]
    pub(crate) plain: bool,
    #[command(flatten)]
    pub(crate) lang: LangFlag,
    #[command(flatten)]
    pub(crate) store: StoreFlag,
    /// Keep nothing in the store
    #[arg(long, conflicts_with = "path")]
    pub(crate) no_store: bool,
    #[command(flatten)]
    pub(crate) way: WayFlags,
}

const EXAMPLES: &str = "Examples:
  webdyno check http://localhost/                 your own server, within a minute
  sudo webdyno check http://localhost/app.php     the same, with its settings and memory in full
  webdyno check --budget 10s localhost:8080       in a hurry

Exit codes: 0 nothing holds it back but the machine, 1 there is something to mend, 3 it cannot be told, 4 nobody answers,
5 this machine refuses.";

/// Less tells nothing, and more is no check.
fn budget(text: &str) -> Result<Nanos, String> {
    let budget = time(text)?;
    if (2 * model::SECOND..=600 * model::SECOND).contains(&budget) {
        Ok(budget)
    } else {
        Err(format!("`{text}` is not a time from 2s to 10m"))
    }
}
