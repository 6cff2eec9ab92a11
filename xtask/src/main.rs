//! Project automation: `cargo xtask setup | test | golden | bench | vm`.
//!
//! Uses none of the project's crates, so that it works while they do not compile.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command for people and for CI")]

mod bench;
mod golden;
mod redhat;
mod setup;
mod signals;
mod summary;
mod test;
mod tidy;
mod vm;

use clap::{Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;

/// What was typed after `cargo xtask`.
#[derive(Parser)]
#[command(name = "cargo xtask", about = "Build, check and test webdyno")]
struct Flags {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Install what the tests need (Debian and Ubuntu, as root); starts no service
    Setup(setup::Flags),
    /// Check formatting, lints, architecture and documentation, and run every test
    Test(test::Flags),
    /// Run the tests and rewrite the expected outputs they hold; then look at the difference
    Golden,
    /// Measure webdyno beside other tools; `cargo xtask setup --bench` installs them
    Bench(bench::Flags),
    /// A virtual machine of 1 GB and one CPU, for what may starve a whole machine; `cargo xtask setup --vm` installs what it needs
    Vm(vm::Flags),
}

fn main() -> ExitCode {
    let done = match Flags::parse().command {
        Command::Setup(flags) => setup::run(&flags).map(|()| ExitCode::SUCCESS),
        Command::Test(flags) => test::run(&flags),
        Command::Golden => golden::run(),
        Command::Bench(flags) => bench::run(&flags).map(|()| ExitCode::SUCCESS),
        Command::Vm(flags) => vm::run(&flags),
    };
    done.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

/// The root of the checkout this program was built from.
fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().map_or_else(|| here.clone(), PathBuf::from)
}

/// Cargo, as the one that runs us, at the root of the checkout.
fn cargo(args: &[&str]) -> std::process::Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = std::process::Command::new(program);
    command.current_dir(root()).args(args).stdin(std::process::Stdio::null());
    command
}
