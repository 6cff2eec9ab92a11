//! `webdyno runs`: what is in the store.

use super::report::store_path;
use crate::exit::Exit;
use crate::flags::RunsFlags;
use std::io::Write;
use store::Store;

pub(crate) fn run(flags: &RunsFlags) -> anyhow::Result<Exit> {
    let runs = Store::open_existing(&store_path(&flags.store)?)?.runs()?;
    let text = if flags.json { report::runs::json(&runs) } else { report::runs::text(&runs) };
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
    Ok(Exit::Done)
}
