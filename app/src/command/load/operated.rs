//! Whom a load may go to, and what a run may change: this machine, or a host of which the user says, or once said, that they operate it.

use super::super::report::store_path;
use crate::flags::StoreFlag;
use crate::flags::load::bare;
use anyhow::bail;
use store::Store;

/// What the user says about hosts, and where it is remembered.
pub(crate) struct Operated<'a> {
    /// The hosts that they say they operate.
    pub(crate) named: &'a [String],
    /// Where what they said is kept.
    pub(crate) store: &'a StoreFlag,
    /// Whether it is kept now.
    pub(crate) remember: bool,
}

/// Lets a load pass whose way leads to nobody but this machine and hosts that the user operates, which are remembered.
pub(crate) fn allowed(said: &Operated<'_>, others: &[String]) -> anyhow::Result<()> {
    let named = |other: &&String| said.named.iter().any(|named| bare(named) == other.as_str());
    let mut missing = Vec::new();
    for other in others.iter().filter(|other| !named(other)) {
        if !is_remembered(said.store, other)? {
            missing.push(other.as_str());
        }
    }
    let missing = missing.join(",");
    match said.named {
        _ if missing.is_empty() => others.iter().filter(named).try_for_each(|other| remember(said, other)),
        [] if missing.contains(',') => {
            bail!("{missing} are not this machine; if you operate them, say so once: --i-operate {missing}")
        }
        [] => bail!("{missing} is not this machine; if you operate it, say so once: --i-operate {missing}"),
        given => {
            let given = given.join(",");
            // What is missing alone would have those forgotten that were named rightly.
            let all = others.iter().filter(|other| named(other) || missing.split(',').any(|one| one == other.as_str()));
            let all = all.map(String::as_str).collect::<Vec<_>>().join(",");
            bail!("--i-operate {given}: what would be loaded is {all}; type --i-operate {all}, if you operate that")
        }
    }
}

/// Lets a run change and restart a server of this machine in place, which the user says that they operate, or once said.
pub(crate) fn in_place(said: &Operated<'_>, main: &str) -> anyhow::Result<()> {
    if said.named.iter().any(|named| named == main) {
        return remember(said, main);
    }
    if is_remembered(said.store, main)? {
        return Ok(());
    }
    bail!(
        "in_place changes the server of {main} and restarts it for every trial, and its visitors share it with the load; if you operate \
         it, say so once: --i-operate {main}"
    )
}

fn remember(said: &Operated<'_>, host: &str) -> anyhow::Result<()> {
    if said.remember {
        Store::open(&store_path(said.store)?)?.remember_operated(host)?;
    }
    Ok(())
}

fn is_remembered(store: &StoreFlag, host: &str) -> anyhow::Result<bool> {
    let path = store_path(store)?;
    // Nothing is made for the sake of asking.
    Ok(path.exists() && Store::open_existing(&path)?.is_operated(host)?)
}
