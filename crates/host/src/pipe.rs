//! What a child process says over a pipe, with a deadline.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::time::Instant;

/// Reads until `enough` of what came so far, or the end. Fails with [`io::ErrorKind::TimedOut`] after `deadline`.
pub(crate) fn receive<P: AsFd + Read>(
    pipe: &mut P,
    deadline: Instant,
    enough: impl Fn(&[u8]) -> bool,
) -> io::Result<Vec<u8>> {
    let mut received = Vec::new();
    let mut buffer = [0; 4096];
    while !enough(&received) {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
        match poll(&mut [PollFd::new(pipe, PollFlags::IN)], Some(&timeout)) {
            Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
            Ok(_) => match pipe.read(&mut buffer)? {
                0 => break,
                n => received.extend_from_slice(&buffer[..n]),
            },
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(received)
}
