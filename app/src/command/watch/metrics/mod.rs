//! The newest look for whoever collects metrics: a port that answers `GET /metrics`, served by a thread of its own.
//!
//! One thread, one poll: a collector that sends slowly, reads slowly or does neither costs a descriptor until its deadline, and
//! many of them push out each other, the oldest first. Nothing else of the watch waits for this thread.

mod exchange;

use super::feed::Feed;
use exchange::{Exchange, Wants};
use model::device::Roster;
use model::run::HostFacts;
use report::watch::openmetrics::{self, About};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// So many collectors at a time.
const AT_ONCE: usize = 32;
/// How long one may take from its connection to the end of its answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// After an error of accepting, such as no descriptor to spare.
const PAUSE: Duration = Duration::from_millis(100);

/// Why nothing is served.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    /// The port cannot be had.
    #[error("cannot serve metrics on {address}: {why}")]
    Port {
        /// What was asked for.
        address: SocketAddr,
        /// What the kernel said, and what to do.
        why: String,
    },
    /// No thread or descriptor.
    #[error("cannot start the thread that serves metrics: {0}")]
    Thread(std::io::Error),
}

/// What the text is made of.
pub(super) struct Source {
    feed: Arc<Feed>,
    host: HostFacts,
    roster: Roster,
    page_bytes: u64,
}

impl Source {
    /// The looks of a feed, of these devices.
    pub(super) fn new(feed: Arc<Feed>, roster: Roster) -> Source {
        Source { feed, host: host::facts(), roster, page_bytes: rustix::param::page_size() as u64 }
    }

    /// The newest look as text.
    pub(super) fn text(&self) -> String {
        let Some(look) = self.feed.latest() else { return "# EOF\n".to_owned() };
        let about = About {
            host: &self.host,
            version: env!("CARGO_PKG_VERSION"),
            roster: &self.roster,
            page_bytes: self.page_bytes,
            epoch: super::place::epoch_of(&look),
        };
        openmetrics::render(&look, about)
    }
}

/// A port that is served.
pub(crate) struct Served {
    address: SocketAddr,
    wake: Arc<OwnedFd>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// A port that is open, and not served yet.
pub(crate) struct Port(TcpListener);

/// Serves the text that `text` makes of each request.
pub(crate) fn serve(Port(listener): Port, text: impl FnMut() -> String + Send + 'static) -> Result<Served, Refusal> {
    let address = listener.local_addr().map_err(Refusal::Thread)?;
    let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC).map_err(|error| Refusal::Thread(error.into()))?);
    let over = Arc::new(AtomicBool::new(false));
    let mut server = Server { listener, wake: Arc::clone(&wake), over: Arc::clone(&over), exchanges: Vec::new(), text };
    let thread = std::thread::Builder::new().name("metrics".to_owned()).spawn(move || server.run());
    Ok(Served { address, wake, over, thread: Some(thread.map_err(Refusal::Thread)?) })
}

/// Opens the port, which may be 0 for a free one.
pub(crate) fn listen(address: SocketAddr) -> Result<Port, Refusal> {
    let bound = TcpListener::bind(address).and_then(|listener| listener.set_nonblocking(true).map(|()| listener));
    bound.map(Port).map_err(|error| {
        let why = match error.kind() {
            std::io::ErrorKind::AddrInUse => "the port is in use; choose another, or 0 for a free one".to_owned(),
            std::io::ErrorKind::PermissionDenied => "not permitted; ports below 1024 need root".to_owned(),
            std::io::ErrorKind::AddrNotAvailable => "that is no address of this machine".to_owned(),
            _ => error.to_string(),
        };
        Refusal::Port { address, why }
    })
}

impl Served {
    /// Where it is served; the port that was found when 0 was asked for.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
        // The thread never waits for anything but its poll.
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Server<T> {
    listener: TcpListener,
    wake: Arc<OwnedFd>,
    over: Arc<AtomicBool>,
    /// The oldest first.
    exchanges: Vec<Exchange>,
    text: T,
}

impl<T: FnMut() -> String> Server<T> {
    fn run(&mut self) {
        while !self.over.load(Ordering::Relaxed) {
            let ready = self.wait();
            let mut states = ready.into_iter().skip(2);
            let text = &mut self.text;
            let now = Instant::now();
            self.exchanges.retain_mut(|exchange| {
                let is_ready = states.next().unwrap_or(false);
                (!is_ready || exchange.go_on(text)) && exchange.deadline() > now
            });
            self.accept();
        }
    }

    /// Sleeps until something can be done; whether each of listener, wake and exchanges is ready.
    fn wait(&self) -> Vec<bool> {
        let mut fds = vec![PollFd::new(&self.listener, PollFlags::IN), PollFd::new(&*self.wake, PollFlags::IN)];
        fds.extend(self.exchanges.iter().map(|exchange| {
            let wanted = match exchange.wants() {
                Wants::Read => PollFlags::IN,
                Wants::Write => PollFlags::OUT,
            };
            PollFd::new(exchange.stream(), wanted)
        }));
        let first = self.exchanges.iter().map(Exchange::deadline).min();
        let left = first.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let timeout = left.map(|left| Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() });
        let ready = poll(&mut fds, timeout.as_ref()).is_ok();
        fds.iter().map(|fd| ready && !fd.revents().is_empty()).collect()
    }

    fn accept(&mut self) {
        loop {
            match self.listener.accept() {
                Ok((stream, _)) => {
                    if let Ok(exchange) = Exchange::new(stream, Instant::now() + PATIENCE) {
                        if self.exchanges.len() >= AT_ONCE {
                            self.exchanges.remove(0);
                        }
                        self.exchanges.push(exchange);
                    }
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionAborted => {}
                Err(_) => {
                    // The connection stays in the queue, so that poll would return at once.
                    self.exchanges.clear();
                    std::thread::sleep(PAUSE);
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
