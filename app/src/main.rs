//! The one binary `webdyno`: which command was asked for, and the exit code it ends with.
//!
//! `run` is the table of contents. The processes that webdyno starts of itself come first, because they must not be slowed
//! down or surprised by what users type.

mod base64;
mod command;
mod exit;
mod flags;
mod interrupt;
mod plan_file;
mod progress;
mod say;
mod screen;
mod usage;

use clap::Parser;
use exit::Exit;
use flags::{Command, Flags};
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    match own_process(&args) {
        Some(code) => ExitCode::from(code),
        None => ab_words(&args).map_or_else(|| run(&args), command::ab::run).into(),
    }
}

/// What was typed to ab, be it the first word or the name we were called by. Its command line is none of clap's.
fn ab_words(args: &[OsString]) -> Option<&[OsString]> {
    let (name, words) = args.split_first()?;
    if Path::new(name).file_name()? == "ab" {
        return Some(words);
    }
    words.split_first().filter(|(first, _)| *first == "ab").map(|(_, rest)| rest)
}

/// The processes webdyno starts of itself; not for users, so not in the help.
fn own_process(args: &[OsString]) -> Option<u8> {
    let rest = args.get(2..).unwrap_or_default();
    match args.get(1)?.to_str()? {
        "@guardian" => Some(host::guardian_main(rest)),
        "@launch" => Some(host::launcher_main(rest)),
        "@sampler" => Some(monitor::sampler_main(rest)),
        _ => None,
    }
}

fn run(args: &[OsString]) -> Exit {
    let flags = match Flags::try_parse_from(args) {
        Ok(flags) => flags,
        Err(error) => {
            match usage::complaint(&error, args) {
                Some(line) => say::tell(line),
                None => drop(error.print()),
            }
            // Help and version were asked for; without a word, the help is a reminder.
            return if error.use_stderr() { Exit::Usage } else { Exit::Done };
        }
    };
    let result = match flags.command {
        Command::Run(flags) => command::run::run(&flags),
        Command::Load(flags) => command::load::run(&flags),
        Command::Ab(flags) => return command::ab::run(&flags.words),
        Command::Report(flags) => command::report::run(&flags),
        Command::Import(flags) => command::import::run(&flags),
        Command::Runs(flags) => command::runs::run(&flags),
        Command::Restore(flags) => command::restore::run(&flags),
        Command::Serve(flags) => return Exit::Code(server::serve_main(&flags.args)),
    };
    result.unwrap_or_else(|error| {
        say::tell(say::with_causes(&error));
        exit::of(&error)
    })
}
