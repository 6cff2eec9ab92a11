//! `cargo xtask vm`: a virtual machine of 1 GB and one CPU, as the first document's server was, for what may starve a whole machine.
//!
//! `build` makes it from apt's packages, `run` boots it, runs one command in it and ends it, `start` keeps it up until Ctrl-C so
//! that `run` and `copy` use that one, `check` runs the long checks. See docs/vm.md.

mod check;
mod guest;
mod image;
mod initrd;
mod kernels;
mod machine;
mod places;
mod qmp;
mod recipe;

use anyhow::{Context, bail};
use guest::Guest;
use machine::{Engine, Machine};
use places::Places;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus};
use std::time::Duration;

/// What was typed after `vm`.
#[derive(clap::Args)]
pub(crate) struct Flags {
    #[command(subcommand)]
    action: Action,
    /// Let /dev/kvm do the work; where the host itself is a virtual machine that seldom works
    #[arg(long, global = true)]
    kvm: bool,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Make the guest's disks from the packages of this machine's apt (as root); nothing to do when they are there
    Build {
        /// Make them anew
        #[arg(long)]
        anew: bool,
    },
    /// Keep a machine running until Ctrl-C
    Start,
    /// Run a command of the guest's shell, in the machine that `start` runs or else in one that is booted for it
    Run {
        /// Seconds it may take
        #[arg(long, default_value_t = 600)]
        timeout: u64,
        /// The command; several words are joined by blanks
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<String>,
    },
    /// Copy a file or folder into the machine that `start` runs, or out of it: the guest's path begins with `vm:`
    Copy {
        /// From where
        from: String,
        /// To where
        to: String,
    },
    /// Run the long checks that need a machine of their own, or those that are named
    Check {
        /// Names of checks; all if none
        #[arg(value_parser = clap::builder::PossibleValuesParser::new(check::names()))]
        names: Vec<String>,
    },
    /// Boot another kernel with webdyno alone, show what a watch says there, and keep the files it read
    Kernel {
        /// Its packages, as .deb files: the kernel, and its modules where they are apart
        #[arg(required = true)]
        packages: Vec<PathBuf>,
    },
    /// Delete the guest's disks and all that belongs to it
    Remove,
}

/// Does what was typed; `run` gives the guest's exit code.
pub(crate) fn run(flags: &Flags) -> anyhow::Result<ExitCode> {
    let places = Places::here();
    let engine = if flags.kvm { Engine::Kvm } else { Engine::Translated };
    match &flags.action {
        Action::Build { anew } => image::build(&places, *anew)?,
        Action::Start => start(&places, engine)?,
        Action::Run { timeout, command } => {
            let limit = Duration::from_secs(*timeout);
            return in_guest(&places, engine, |guest| guest.show(&command.join(" "), limit)).map(exit_code);
        }
        Action::Copy { from, to } => copy(&places, from, to)?,
        Action::Check { names } => check::by_hand(&places, engine, names)?,
        Action::Kernel { packages } => kernels::run(&places, packages)?,
        Action::Remove => remove(&places)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn start(places: &Places, engine: Engine) -> anyhow::Result<()> {
    let machine = Machine::start(places, engine, "")?;
    println!("{}\nCtrl-C ends it", machine.guest().how());
    machine.wait()
}

/// Does something in the machine that runs, or in one that is booted for it.
fn in_guest<T>(places: &Places, engine: Engine, inside: impl FnOnce(&Guest) -> anyhow::Result<T>) -> anyhow::Result<T> {
    if let Some(guest) = machine::running(places)? {
        return inside(&guest);
    }
    let machine = Machine::start(places, engine, "")?;
    let done = inside(&machine.guest());
    machine.stop();
    done
}

fn copy(places: &Places, from: &str, to: &str) -> anyhow::Result<()> {
    let guest = machine::running(places)?.context("no machine is running: run `cargo xtask vm start` beside this")?;
    match (from.strip_prefix("vm:"), to.strip_prefix("vm:")) {
        (None, Some(to)) => guest.put(Path::new(from), to),
        (Some(from), None) => guest.get(from, Path::new(to)),
        _ => bail!("one of the two paths must be the guest's and begin with `vm:`"),
    }
}

fn remove(places: &Places) -> anyhow::Result<()> {
    if !places.folder().exists() {
        return Ok(());
    }
    let _lock = machine::lock(places)?;
    std::fs::remove_dir_all(places.folder()).with_context(|| format!("cannot remove {}", places.folder().display()))
}

fn exit_code(status: ExitStatus) -> ExitCode {
    status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from)
}
