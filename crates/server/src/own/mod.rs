//! What servers of the machine's own have in common, whichever they are: where they listen, waiting until they have begun anew, and whether
//! somebody else changes their configuration meanwhile.

mod door;
mod port;
mod wait;
mod watch;

pub(crate) use door::{Door, pick};
pub(crate) use port::free_port;
pub(crate) use wait::Wait;
pub(crate) use watch::{Reads, Watch};
