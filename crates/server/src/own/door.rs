//! Where a configuration of the machine's listens, and which of those places a plan means.

use crate::{PlanKey, ServerError};
use host::{Host, HostError};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

/// A place to listen: a port on one address, or on all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Door {
    /// As it is written; `None` is all of them.
    pub(crate) address: Option<String>,
    pub(crate) port: u16,
    /// Whether it is one of the configuration's own. The others are for a virtual host with an address of its own behind a door for all.
    pub(crate) listed: bool,
    /// What `Listen` says behind the port, such as `https`.
    pub(crate) protocol: String,
    pub(crate) tls: bool,
}

impl Door {
    /// Keeps whoever would load the server of `main` from all of its doors.
    pub(crate) fn claim_all(doors: &[Door], main: &Path, host: &Host) -> Result<(), HostError> {
        let places = doors.iter().filter_map(|door| Some(SocketAddr::new(door.ip()?, door.port)));
        places.collect::<BTreeSet<_>>().into_iter().try_for_each(|at| host.claim_door(at, main))
    }

    /// Where it listens, by what stands for all addresses if there; `None` of a name that only a resolver knows.
    fn ip(&self) -> Option<IpAddr> {
        match self.address.as_deref() {
            None => Some(Ipv6Addr::UNSPECIFIED.into()),
            Some("localhost") => Some(Ipv4Addr::LOCALHOST.into()),
            Some(address) => address.parse().ok().map(|ip: IpAddr| ip.to_canonical()),
        }
    }

    /// Where the load goes: loopback, or the one address of this machine that the server of `main` listens on.
    pub(crate) fn here(&self, main: &Path, server: &'static str) -> Result<SocketAddr, ServerError> {
        let ip: IpAddr = match self.address.as_deref() {
            None | Some("localhost") => Ipv4Addr::LOCALHOST.into(),
            Some(address) => address.parse().map_err(|_| {
                let why = format!(
                    "{} listens on {address}, which is no address; choose another port of it by `port`",
                    main.display()
                );
                ServerError::NoSettings { server, why }
            })?,
        };
        let ip = match ip {
            IpAddr::V6(all) if all.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            ip => ip,
        };
        Ok(SocketAddr::from((ip, self.port)))
    }
}

/// The door that a plan means: the one of its port, or the first without TLS, or the first.
fn chosen(doors: &[Door], port: Option<u16>) -> Option<usize> {
    let first = |wanted: &dyn Fn(&Door) -> bool| doors.iter().position(|door| door.listed && wanted(door));
    match port {
        Some(port) => {
            first(&|door| door.port == port && door.address.is_none()).or_else(|| first(&|door| door.port == port))
        }
        None => first(&|door| !door.tls).or_else(|| first(&|_| true)),
    }
}

/// The same; an error that names the plan's key when there is none.
pub(crate) fn pick(doors: &[Door], port: Option<u16>, main: &Path, at: PlanKey) -> Result<usize, ServerError> {
    chosen(doors, port).ok_or_else(|| {
        let ports: Vec<String> = doors.iter().filter(|door| door.listed).map(|door| door.port.to_string()).collect();
        let why = format!("{} listens on no such port; there is {}", main.display(), ports.join(", "));
        ServerError::Machine { at, why }
    })
}
