//! Whom a load may go to: this machine, or a host of which the user says, or once said, that they operate it.

use super::super::report::store_path;
use crate::flags::load::LoadFlags;
use anyhow::bail;
use load::{Address, Target};
use std::net::ToSocketAddrs;
use store::Store;
use url::{Host, Url};

/// Lets a load to this machine pass, and one to a host that the user operates, which is remembered.
pub(super) fn allowed(flags: &LoadFlags, target: &Target, url: &Url) -> anyhow::Result<()> {
    let Address::Tcp(address) = &target.address else { return Ok(()) };
    let host = url.host_str().unwrap_or_default();
    // A proxy passes on what it is sent.
    let is_near = flags.way.proxy.is_none() || is_this_machine(url);
    if address.ip().is_loopback() && is_near {
        return Ok(());
    }
    match &flags.i_operate {
        Some(named) if named == host => remember(flags, host),
        Some(named) => {
            bail!("--i-operate {named}: the URL's host is {host}; type --i-operate {host}, if you operate that")
        }
        None if is_remembered(flags, host)? => Ok(()),
        None => bail!("{host} is not this machine; if you operate it, say so once: --i-operate {host}"),
    }
}

/// By its address, or by a name all of whose addresses are this machine's.
fn is_this_machine(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => (name, 0).to_socket_addrs().is_ok_and(|mut found| {
            let first = found.next();
            first.is_some_and(|first| first.ip().is_loopback()) && found.all(|address| address.ip().is_loopback())
        }),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

fn remember(flags: &LoadFlags, host: &str) -> anyhow::Result<()> {
    if !flags.dry_run && !flags.no_store {
        Store::open(&store_path(&flags.store)?)?.remember_operated(host)?;
    }
    Ok(())
}

fn is_remembered(flags: &LoadFlags, host: &str) -> anyhow::Result<bool> {
    let path = store_path(&flags.store)?;
    // Nothing is made for the sake of asking.
    Ok(path.exists() && Store::open_existing(&path)?.is_operated(host)?)
}
