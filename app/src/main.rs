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
use flags::watch::Name;
use flags::{Command, Flags};
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    match own_process(&args) {
        Some(code) => ExitCode::from(code),
        None => {
            let exit = in_the_place_of_another(&args).unwrap_or_else(|| run(&args));
            ExitCode::from(if say::is_lost() { exit.unsaid() } else { exit })
        }
    }
}

/// What stands in the place of ab or dstat, be it by its first word or by the name we were called by. Their command lines are none
/// of clap's.
fn in_the_place_of_another(args: &[OsString]) -> Option<Exit> {
    let (name, words) = args.split_first()?;
    match Path::new(name).file_name()?.to_str() {
        Some("ab") => return Some(command::ab::run(words)),
        Some("dstat") => return Some(command::watch::run(Name::Dstat, words)),
        _ => {}
    }
    let (first, rest) = words.split_first()?;
    match first.to_str() {
        Some("ab") => Some(command::ab::run(rest)),
        Some("watch") => Some(command::watch::run(Name::Webdyno, rest)),
        _ => None,
    }
}

/// The processes webdyno starts of itself; not for users, so not in the help.
fn own_process(args: &[OsString]) -> Option<u8> {
    let rest = args.get(2..).unwrap_or_default();
    match args.get(1)?.to_str()? {
        "@generator" => Some(command::away::serve()),
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
                // What cannot be told on standard error cannot be told.
                None if error.use_stderr() => error.print().unwrap_or_default(),
                None => error.print().unwrap_or_else(|error| say::not_written(&error)),
            }
            // Help and version were asked for; without a word, the help is a reminder.
            return if error.use_stderr() { Exit::Usage } else { Exit::Done };
        }
    };
    let result = match flags.command {
        Command::Check(flags) => command::check::run(&flags),
        Command::Run(flags) => command::run::run(&flags),
        Command::Load(flags) => command::load::run(&flags),
        Command::Ab(flags) => return command::ab::run(&flags.words),
        Command::Watch(flags) => return command::watch::run(Name::Webdyno, &flags.words),
        Command::Report(flags) => command::report::run(&flags),
        Command::Compare(flags) => command::compare::run(&flags),
        Command::Import(flags) => command::import::run(&flags),
        Command::Runs(flags) => command::runs::run(&flags),
        Command::Restore(flags) => command::restore::run(&flags),
        Command::Admission(flags) => command::admission::run(&flags),
        Command::Doctor(flags) => command::doctor::run(&flags),
        Command::Serve(flags) => return Exit::Code(server::serve_main(&flags.args)),
    };
    result.unwrap_or_else(|error| {
        say::tell(say::with_causes(&error));
        exit::of(&error)
    })
}
