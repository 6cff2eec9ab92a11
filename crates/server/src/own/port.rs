//! A port of this machine for what a server of the machine's tells of itself.

use crate::ServerError;
use crate::port::with_free_port;
use crate::selinux::selinux_enforces;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;

/// Ports that SELinux lets a web server listen on, as `semanage port -l` has http_port_t.
const OF_SELINUX: [u16; 6] = [8008, 8009, 8443, 81, 488, 9000];

/// A port for the pages that tell what is in force.
pub(crate) fn free_port() -> Result<u16, ServerError> {
    let enforced = selinux_enforces(Path::new("/"));
    let free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
    match OF_SELINUX.into_iter().find(free).filter(|_| enforced) {
        Some(port) => Ok(port),
        None => with_free_port(Ok),
    }
}
