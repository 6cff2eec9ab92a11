//! A server with a timetable: it answers each request a fixed time after it came, but stands still for a while in every period.
//!
//! What any client must measure follows from that timetable alone ([`Stalls::truth`]). It has one thread that never sleeps, so
//! that it is never late by a wake-up; give it a CPU of its own.

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, EventData, EventFlags};
use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// When the server answers and when it stands still.
#[derive(Debug, Clone, Copy)]
pub struct Stalls {
    /// From a request to its answer, outside of stalls.
    pub service: Duration,
    /// The last part of each period is a stall.
    pub period: Duration,
    /// How long that part is.
    pub stall: Duration,
}

/// A running server; it ends when it is dropped.
pub struct Stalling {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    serving: Option<JoinHandle<()>>,
}

impl Stalls {
    /// The latency that `percent` of the requests do not exceed, when they come evenly over whole periods.
    #[must_use]
    pub fn truth(&self, percent: f64) -> Duration {
        const STEPS: u32 = 1_000_000;
        let mut all: Vec<Duration> = (0..STEPS)
            .map(|step| {
                let at = self.period.mul_f64(f64::from(step) / f64::from(STEPS));
                self.answered(at) - at
            })
            .collect();
        all.sort_unstable();
        let rank = (percent / 100.0 * all.len() as f64).ceil() as usize;
        all[rank.clamp(1, all.len()) - 1]
    }

    /// When a request of that time is answered, both counted from the beginning of the first period.
    fn answered(&self, at: Duration) -> Duration {
        let done = at + self.service;
        let into = Duration::from_nanos((done.as_nanos() % self.period.as_nanos()) as u64);
        if into >= self.period - self.stall { done + (self.period - into) } else { done }
    }
}

impl Stalling {
    /// Starts a server on a free port of 127.0.0.1; `prepare` runs on its thread first, to choose a CPU for instance.
    ///
    /// # Panics
    /// When loopback has no free port.
    pub fn start(stalls: Stalls, prepare: impl FnOnce() + Send + 'static) -> Stalling {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback has a free port");
        listener.set_nonblocking(true).expect("a socket can be made not to wait");
        let address = listener.local_addr().expect("a bound socket has an address");
        let stop = Arc::new(AtomicBool::new(false));
        let serving = std::thread::spawn({
            let stop = Arc::clone(&stop);
            move || {
                prepare();
                serve(&listener, stalls, &stop);
            }
        });
        Stalling { address, stop, serving: Some(serving) }
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Stalling {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(serving) = self.serving.take() {
            let _ = serving.join();
        }
    }
}

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc";
const LISTENER: u64 = u64::MAX;

fn serve(listener: &TcpListener, stalls: Stalls, stop: &AtomicBool) {
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).expect("an epoll instance");
    epoll::add(&epoll, listener, EventData::new_u64(LISTENER), EventFlags::IN).expect("a listener to wait for");
    let began = Instant::now();
    let mut connections: Vec<Option<TcpStream>> = Vec::new();
    // All requests take equally long, so they are answered in the order they came.
    let mut waiting: VecDeque<(Duration, usize)> = VecDeque::new();
    let mut events = Vec::with_capacity(1024);
    let mut buffer = [0; 4096];
    while !stop.load(Ordering::Relaxed) {
        events.clear();
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let _ = epoll::wait(&epoll, spare_capacity(&mut events), Some(&at_once));
        for event in &events {
            if event.data.u64() == LISTENER {
                accept(listener, &epoll, &mut connections);
                continue;
            }
            let i = event.data.u64() as usize;
            match connections[i].as_mut().and_then(|stream| requests(stream, &mut buffer)) {
                None => connections[i] = None,
                Some(requests) => {
                    let due = stalls.answered(began.elapsed());
                    (0..requests).for_each(|_| waiting.push_back((due, i)));
                }
            }
        }
        while let Some(&(due, i)) = waiting.front() {
            if due > began.elapsed() {
                break;
            }
            waiting.pop_front();
            if let Some(stream) = &mut connections[i] {
                // A client that has left is not waited for.
                let _ = stream.write_all(ANSWER);
            }
        }
    }
}

fn accept(listener: &TcpListener, epoll: &rustix::fd::OwnedFd, connections: &mut Vec<Option<TcpStream>>) {
    while let Ok((stream, _)) = listener.accept() {
        let token = EventData::new_u64(connections.len() as u64);
        let ready = stream
            .set_nonblocking(true)
            .and_then(|()| stream.set_nodelay(true))
            .and_then(|()| Ok(epoll::add(epoll, &stream, token, EventFlags::IN)?));
        connections.push(ready.is_ok().then_some(stream));
    }
}

/// How many requests have come, each in one piece; `None` when the client has left.
fn requests(stream: &mut TcpStream, buffer: &mut [u8]) -> Option<usize> {
    match stream.read(buffer) {
        Ok(0) => None,
        Ok(length) => Some(buffer[..length].windows(4).filter(|window| *window == b"\r\n\r\n").count()),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Some(0),
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(percent: f64, expected_ms: u64) {
        let stalls = Stalls {
            service: Duration::from_millis(20),
            period: Duration::from_secs(5),
            stall: Duration::from_secs(1),
        };
        let found = stalls.truth(percent).as_millis() as u64;
        assert_eq!(found, expected_ms, "p{percent}");
    }

    #[test]
    fn a_fifth_of_all_waits_for_the_end_of_a_stall() {
        check(50.0, 20);
        check(80.0, 20);
        check(90.0, 520);
        check(99.0, 970);
        check(100.0, 1020);
    }

    #[test]
    fn it_answers_on_kept_connections() {
        let stalls =
            Stalls { service: Duration::ZERO, period: Duration::from_secs(3600), stall: Duration::from_millis(1) };
        let server = Stalling::start(stalls, || ());
        let mut client = TcpStream::connect(server.address()).unwrap();
        for _ in 0..3 {
            client.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
            let mut answer = [0; ANSWER.len()];
            client.read_exact(&mut answer).unwrap();
            assert_eq!(answer, ANSWER);
        }
    }
}
