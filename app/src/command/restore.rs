//! `webdyno restore`: what a killed run left behind is put back.

use crate::exit::Exit;
use std::io::Write;

pub(crate) fn run() -> anyhow::Result<Exit> {
    let restored = host::restore(&super::state_dir())?;
    let mut out = std::io::stdout().lock();
    if restored.is_empty() {
        writeln!(out, "Nothing was left behind.")?;
    }
    for sentence in restored {
        writeln!(out, "{sentence}")?;
    }
    Ok(Exit::Done)
}
