//! Who sends the loads of a plan: this machine, or another one that is made ready for it.

use crate::ExperimentError;
use crate::run::World;
use model::plan::Plan;
use remote::Remote;
use std::net::{IpAddr, Ipv4Addr};

/// Who sends, and where the server has to listen for it.
pub(crate) struct Sender {
    pub(crate) remote: Option<Remote>,
    pub(crate) listen: IpAddr,
}

impl Sender {
    /// Brings the generator to where the plan wants it. Where a server of somebody else's listens is not ours to say.
    pub(crate) fn ready(plan: &Plan, world: &World<'_>) -> Result<Sender, ExperimentError> {
        let Some(origin) = &plan.origin else {
            return Ok(Sender { remote: None, listen: Ipv4Addr::LOCALHOST.into() });
        };
        if plan.derived().is_some() {
            return Err(ExperimentError::Missing(
                "a copy of the machine's own server listens on loopback only, where no other machine reaches it; leave [load] from \
                 out, or measure it in place"
                    .to_owned(),
            ));
        }
        let remote = Remote::open(origin, world.ssh, world.exe, world.interrupted)?;
        if plan.server.url().is_some() {
            return Ok(Sender { remote: Some(remote), listen: Ipv4Addr::LOCALHOST.into() });
        }
        let listen = remote.our_address()?;
        Ok(Sender { remote: Some(remote), listen })
    }
}
