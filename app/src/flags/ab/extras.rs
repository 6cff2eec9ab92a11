//! What ab does not have: webdyno's own long options. To ab any word that begins with two dashes ends the options, so no script
//! written for ab can hold one.

use super::getopt::Getopt;
use crate::command::load::secret::quoted;
use crate::flags::{LangFlag, StoreFlag};
use clap::{ArgAction, CommandFactory, Parser};
use model::threshold::Threshold;

/// Webdyno's own options of `ab`.
#[derive(Debug, Default, Parser)]
#[command(
    name = "ab",
    disable_version_flag = true,
    max_term_width = 110,
    about = "Takes ab's own options (`ab -h`) and prints ab's report; these long options stand among them, before the URL",
    override_usage = "ab [ab's options] [OPTIONS] [http[s]://]hostname[:port]/path"
)]
pub(crate) struct Extras {
    /// Requests per second, whether the server keeps up or not: an open loop
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub(crate) rate: Option<f64>,
    /// What must hold, such as 'p99 < 200ms' or 'failed = 0'; a miss ends with exit code 1; may be repeated
    #[arg(long, value_name = "EXPECTATION", value_parser = threshold)]
    pub(crate) expect: Vec<Threshold>,
    /// Worker threads [default: one, or more for many connections]
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<u32>,
    /// Reckon as ab does, mistakes included (docs/compatibility/ab.md)
    #[arg(long)]
    pub(crate) strict: bool,
    /// Webdyno's own view below ab's report, also when standard output is no terminal
    #[arg(long)]
    pub(crate) verdict: bool,
    /// JSON on standard output instead of ab's report
    #[arg(long)]
    pub(crate) json: bool,
    /// Say what would be sent, and send nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Say that you operate this host, so that it may be loaded; needed once unless it is this machine
    #[arg(long, value_name = "HOST", value_delimiter = ',')]
    pub(crate) i_operate: Vec<String>,
    #[command(flatten)]
    pub(crate) lang: LangFlag,
    #[command(flatten)]
    pub(crate) store: StoreFlag,
    /// Keep nothing in the store
    #[arg(long, conflicts_with = "path")]
    pub(crate) no_store: bool,
}

/// Long options as they were typed, taken out from among ab's.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Words(Vec<String>);

impl Words {
    /// Takes one, and the word behind it when that is its value. One that webdyno does not have is kept for [`Words::meant`] to
    /// refuse: ab would pass over it, and over whatever was meant by it.
    pub(super) fn take(&mut self, name: &str, getopt: &mut Getopt<'_>) {
        self.0.push(format!("--{name}"));
        if !name.contains('=') && takes_value(name) {
            self.0.extend(getopt.word().map(str::to_owned));
        }
    }

    /// They as a shell would take them; there is no secret among them.
    pub(super) fn shown(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|word| quoted(word))
    }

    /// What they mean; the error is clap's.
    pub(super) fn meant(self) -> Result<Extras, clap::Error> {
        Extras::try_parse_from(std::iter::once("ab".to_owned()).chain(self.0))
    }
}

fn takes_value(name: &str) -> bool {
    let command = Extras::command();
    let found = command.get_arguments().find(|argument| argument.get_long() == Some(name));
    found.is_some_and(|argument| matches!(argument.get_action(), ArgAction::Set | ArgAction::Append))
}

fn threshold(text: &str) -> Result<Threshold, String> {
    Threshold::parse(text).map_err(|error| error.to_string())
}

fn rate(text: &str) -> Result<f64, String> {
    match units::rate(text) {
        Ok(rate) if rate > 0.0 => Ok(rate),
        Ok(_) => Err("must be more than 0".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}
