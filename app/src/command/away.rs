//! `webdyno @generator`: the far end of a load that another machine gives the orders for.

use remote::Place;
use std::net::IpAddr;

/// Carries out orders from standard input until there are no more; gives the exit code.
pub(crate) fn serve() -> u8 {
    let place = Place { host: host::facts(), sees: near_end(), prepare: &experiment::prepare_away };
    u8::from(remote::serve(std::io::stdin(), std::io::stdout(), &place).is_err())
}

/// The address by which sshd sees whoever started us: the first word of what it says about the connection.
fn near_end() -> Option<IpAddr> {
    let connection = std::env::var("SSH_CONNECTION").ok()?;
    let address = connection.split_whitespace().next()?;
    // One of a single link names the other end's device behind it, which means nothing here.
    address.split('%').next()?.parse().ok()
}
