//! Who else is connected to the server while something is sent: looked at again and again beside the load.

use model::check::{Door, Running};
use monitor::Connections;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A connection on which nothing moved for so long is idle.
const QUIET_MS: u32 = 200;
/// The kernel is asked no more often.
const PAUSE: Duration = Duration::from_millis(40);

/// One look.
#[derive(Debug, Default)]
struct Look {
    accepted: BTreeSet<SocketAddr>,
    idle: u64,
}

/// Memory is looked at in one part of so many of the time.
const SPARING: u32 = 20;
/// Looks before anything is sent.
const LOOKS: usize = 6;

/// Who is there before anything is sent.
pub(super) fn before(port: u16) -> Option<Door> {
    let mut kernel = Connections::open().ok()?;
    let one = |_| {
        let look = look(&mut kernel, port);
        thread::sleep(PAUSE);
        look
    };
    summary(&(0..LOOKS).filter_map(one).collect::<Vec<_>>())
}

fn look(kernel: &mut Connections, port: u16) -> Option<Look> {
    let mut found = Look::default();
    for other in kernel.of_others(port).ok()?.into_iter().filter(|other| other.accepted) {
        found.accepted.insert(other.peer);
        found.idle += u64::from(other.quiet_ms.is_some_and(|quiet| quiet >= QUIET_MS));
    }
    Some(found)
}

/// What was seen beside a load.
#[derive(Debug, Default)]
pub(super) struct Beside {
    /// Who was at the door.
    pub(super) door: Option<Door>,
    /// The most bytes that a worker held, by pool.
    pub(super) largest: Largest,
}

/// The most bytes of a worker, by pool; the server's own stand under no name.
pub(super) type Largest = BTreeMap<String, u64>;

/// Takes over what is larger.
pub(super) fn grow(largest: &mut Largest, more: impl IntoIterator<Item = (String, u64)>) {
    for (pool, bytes) in more {
        let known = largest.entry(pool).or_default();
        *known = bytes.max(*known);
    }
}

/// What workers hold while they work: afterwards much of it is given back.
fn held(running: &Running) -> impl Iterator<Item = (String, u64)> {
    server::memory_of(running).into_iter().map(|(pool, held)| (pool, held.largest))
}

/// Does `work` with somebody at the door, whom the kernel tells who comes and what workers hold.
pub(super) fn beside<T>(port: Option<u16>, running: &Running, work: impl FnOnce() -> T) -> (T, Beside) {
    let kernel = port.and_then(|port| Some((port, Connections::open().ok()?)));
    let Some((port, mut kernel)) = kernel else { return (work(), Beside::default()) };
    let before = server::ticks(running);
    let leave = AtomicBool::new(false);
    let (done, (looks, largest)) = thread::scope(|scope| {
        let watching = scope.spawn(|| {
            let (mut looks, mut largest, mut rest) = (Vec::new(), Largest::new(), Duration::ZERO);
            while !leave.load(Ordering::Relaxed) {
                looks.extend(look(&mut kernel, port));
                let began = Instant::now();
                if rest.is_zero() {
                    grow(&mut largest, held(running));
                    // It holds up the page faults of those it looks at.
                    rest = began.elapsed() * SPARING;
                }
                thread::sleep(PAUSE);
                rest = rest.saturating_sub(began.elapsed());
            }
            (looks, largest)
        });
        let done = Ending(&leave).after(work);
        // A look that went wrong is none; the load counts without it.
        (done, watching.join().unwrap_or_default())
    });
    let ticks = server::ticks(running).zip(before).map(|(after, before)| after.saturating_sub(before));
    (done, Beside { door: summary(&looks).map(|door| Door { ticks, ..door }), largest })
}

/// Sends the watcher home, also when the work panics.
struct Ending<'a>(&'a AtomicBool);

impl Ending<'_> {
    fn after<T>(self, work: impl FnOnce() -> T) -> T {
        work()
    }
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The lower one of the two in the middle of an even number.
fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or(0)
}

/// A connection counts that was there twice: what comes and goes between two questions may be ours.
fn summary(looks: &[Look]) -> Option<Door> {
    let mut seen: BTreeMap<SocketAddr, u64> = BTreeMap::new();
    looks.iter().flat_map(|look| &look.accepted).for_each(|&peer| *seen.entry(peer).or_default() += 1);
    let stayed = |peer: &&SocketAddr| seen.get(*peer).is_some_and(|&times| times > 1);
    let counts = looks.iter().map(|look| look.accepted.iter().filter(stayed).count() as u64);
    let first = looks.first()?;
    let new = seen.iter().filter(|&(peer, &times)| times > 1 && !first.accepted.contains(peer)).count();
    Some(Door {
        others: counts.max()?,
        idle: median(looks.iter().map(|look| look.idle).collect()),
        others_opened: new as u64,
        ticks: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_there_only_once_may_have_been_ours() {
        let peer = |port: u16| SocketAddr::from(([127, 0, 0, 1], port));
        let look = |ports: &[u16], idle: u64| Look { accepted: ports.iter().map(|&port| peer(port)).collect(), idle };
        let looks = [look(&[1, 2], 2), look(&[1, 3], 1), look(&[1, 2, 4, 5], 2), look(&[1, 4], 1)];
        let expected = Door { others: 3, idle: 1, others_opened: 1, ticks: None };
        assert_eq!(summary(&looks), Some(expected));
        assert_eq!(summary(&[]), None);
    }
}
