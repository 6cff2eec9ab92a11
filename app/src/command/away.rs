//! `webdyno @generator`: the far end of a load that another machine gives the orders for.

use remote::Place;
use std::fs::File;
use std::net::IpAddr;
use std::os::fd::AsFd;

/// Carries out orders from standard input until there are no more; gives the exit code.
pub(crate) fn serve() -> u8 {
    let place = Place { host: host::facts(), sees: near_end(), prepare: &experiment::prepare_away };
    // Their own buffers would hide from whoever waits for input that it is there.
    let streams = (raw(std::io::stdin()), raw(std::io::stdout()));
    let (Ok(orders), Ok(answers)) = streams else { return 1 };
    u8::from(remote::serve(orders, answers, &place).is_err())
}

fn raw(stream: impl AsFd) -> std::io::Result<File> {
    stream.as_fd().try_clone_to_owned().map(File::from)
}

/// The address by which sshd sees whoever started us: the first word of what it says about the connection.
fn near_end() -> Option<IpAddr> {
    let connection = std::env::var("SSH_CONNECTION").ok()?;
    let address = connection.split_whitespace().next()?;
    // One of a single link names the other end's device behind it, which means nothing here.
    address.split('%').next()?.parse().ok()
}
