//! `webdyno restore`: what a killed run left behind is put back.

use crate::exit::Exit;
use std::io::Write;

pub(crate) fn run() -> anyhow::Result<Exit> {
    let restored = host::restore(&super::state_dir())?;
    let text = if restored.is_empty() { "Nothing was left behind.".to_owned() } else { restored.join("\n") };
    // Whoever closed the pipe has seen enough.
    let _ = writeln!(std::io::stdout(), "{text}");
    Ok(Exit::Done)
}
