//! A server whose answers the kernel times: what it stamped on each request that came and on each answer that went.
//!
//! One connection after another, one request at a time, on a thread that never sleeps; give it a CPU of its own. The stamps are
//! those of `SO_TIMESTAMPING` (the kernel's `Documentation/networking/timestamping.rst`): software, on the way into the socket
//! and on the way out of the network stack. On loopback a packet leaves one socket and reaches the other at the same instant.

use std::io::{Error, ErrorKind, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A running server.
pub struct Stamped {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    stamped: Arc<AtomicUsize>,
    serving: JoinHandle<Vec<Duration>>,
}

impl Stamped {
    /// Starts a server on a free port of 127.0.0.1 that takes as long for its requests as `service` says, in turn; `prepare` runs
    /// on its thread first, to choose a CPU for instance.
    ///
    /// # Panics
    /// When loopback has no free port, or the kernel no time stamps.
    pub fn start(
        mut service: impl FnMut() -> Duration + Send + 'static,
        prepare: impl FnOnce() + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback has a free port");
        listener.set_nonblocking(true).expect("a socket can be made not to wait");
        ask_for_stamps(&listener).expect("the kernel stamps");
        let address = listener.local_addr().expect("a bound socket has an address");
        let (stop, stamped) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let serving = std::thread::spawn({
            let (stop, stamped) = (Arc::clone(&stop), Arc::clone(&stamped));
            move || {
                prepare();
                let mut taken = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    if let Ok((stream, _)) = listener.accept() {
                        serve(&stream, &mut service, &stop, &stamped, &mut taken)
                            .expect("stamps of a loopback connection");
                    }
                }
                taken
            }
        });
        Stamped { address, stop, stamped, serving }
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many requests have both stamps so far: the kernel begins to stamp a little after it was asked to.
    #[must_use]
    pub fn stamped(&self) -> usize {
        self.stamped.load(Ordering::Relaxed)
    }

    /// Ends it: from each request's stamp to its answer's, in order.
    ///
    /// # Panics
    /// When the server could not go on.
    #[must_use]
    pub fn finish(self) -> Vec<Duration> {
        self.stop.store(true, Ordering::Relaxed);
        self.serving.join().expect("the server holds")
    }
}

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc";

fn serve(
    mut stream: &TcpStream,
    service: &mut impl FnMut() -> Duration,
    stop: &AtomicBool,
    stamped: &AtomicUsize,
    taken: &mut Vec<Duration>,
) -> Result<(), Error> {
    stream.set_nonblocking(true)?;
    stream.set_nodelay(true)?;
    let mut buffer = [0; 4096];
    while !stop.load(Ordering::Relaxed) {
        let (length, came) = match receive(stream, &mut buffer, 0) {
            Ok((0, _)) => return Ok(()),
            Ok(received) => received,
            Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
            // A client that leaves in the middle of an answer leaves nothing to time.
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(()),
            Err(error) => return Err(error),
        };
        assert!(buffer[..length].ends_with(b"\r\n\r\n"), "a request in one piece");
        let due = Instant::now() + service();
        while Instant::now() < due {}
        stream.write_all(ANSWER)?;
        let went = loop {
            match receive(stream, &mut buffer, libc::MSG_ERRQUEUE) {
                Ok((_, stamp)) => break stamp,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        };
        taken.extend(came.zip(went).map(|(came, went)| went.saturating_sub(came)));
        stamped.store(taken.len(), Ordering::Relaxed);
    }
    Ok(())
}

/// For all connections that it accepts from now on.
fn ask_for_stamps(listener: &TcpListener) -> Result<(), Error> {
    let flags = libc::SOF_TIMESTAMPING_SOFTWARE
        | libc::SOF_TIMESTAMPING_RX_SOFTWARE
        | libc::SOF_TIMESTAMPING_TX_SOFTWARE
        | libc::SOF_TIMESTAMPING_OPT_TSONLY;
    let length = size_of_val(&flags) as libc::socklen_t;
    // SAFETY: the option's value is an integer of that size, and outlives the call.
    let done = unsafe {
        libc::setsockopt(
            listener.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_TIMESTAMPING,
            std::ptr::from_ref(&flags).cast(),
            length,
        )
    };
    if done == 0 { Ok(()) } else { Err(Error::last_os_error()) }
}

/// Receives bytes, or what the error queue has; with the kernel's stamp, since the epoch.
fn receive(stream: &TcpStream, buffer: &mut [u8], flags: libc::c_int) -> Result<(usize, Option<Duration>), Error> {
    // The kernel wants control messages aligned to words.
    let mut control = [0_u64; 64];
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: all zeros is a valid message header: no name, no parts.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control);
    // SAFETY: the header points to a buffer and control memory of the lengths it says, which outlive the call.
    let length = unsafe { libc::recvmsg(stream.as_raw_fd(), &raw mut message, flags) };
    let length = usize::try_from(length).map_err(|_| Error::last_os_error())?;
    let mut stamp = None;
    // SAFETY: the kernel filled in the header, and its control messages lie in `control`.
    let mut next = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
    while !next.is_null() {
        // SAFETY: not null, so it points to a whole control message within `control`.
        let head = unsafe { *next };
        if (head.cmsg_level, head.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING) {
            // SAFETY: the data of a message of this type begins with a `timespec`: the software stamp.
            let time = unsafe { libc::CMSG_DATA(next).cast::<libc::timespec>().read_unaligned() };
            stamp = Some(Duration::new(time.tv_sec as u64, time.tv_nsec as u32)).filter(|stamp| !stamp.is_zero());
        }
        // SAFETY: as for the first one.
        next = unsafe { libc::CMSG_NXTHDR(&raw const message, next) };
    }
    Ok((length, stamp))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn answers_are_stamped() {
        let server = Stamped::start(|| Duration::from_micros(300), || ());
        let mut client = TcpStream::connect(server.address()).unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        while server.stamped() < 5 {
            assert!(Instant::now() < deadline, "{} stamps", server.stamped());
            client.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
            let mut answer = [0; ANSWER.len()];
            client.read_exact(&mut answer).unwrap();
            assert_eq!(answer, ANSWER);
        }
        let taken = server.finish();
        assert!(taken.len() >= 5 && taken.iter().all(|taken| *taken >= Duration::from_micros(300)), "{taken:?}");
    }
}
