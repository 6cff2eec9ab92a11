//! A server that another run has in place is let alone: whoever loads, checks or copies it would measure what that run does to it.

use crate::ExperimentError;
use host::Host;
use load::Address;
use model::plan::ServerSpec;

/// An error when another run than `own` has the machine's own server in place that a plan copies, changes or only loads.
pub(crate) fn server_not_taken(server: &ServerSpec, own: &Host) -> Result<(), ExperimentError> {
    // What cannot be found or read is told by who reads it.
    if let Ok(Some(main)) = server::main_file(server) {
        host::not_taken(&main, Some(own))?;
    }
    if let Some(Ok(at)) = server.url().map(|url| url.address.parse()) {
        server::not_taken(at, Some(own))?;
    }
    Ok(())
}

/// An error when a run has a server in place that takes connections to such an address.
pub(crate) fn address_not_taken(address: &Address) -> Result<(), ExperimentError> {
    Ok(address.all().iter().try_for_each(|&at| server::not_taken(at, None))?)
}
