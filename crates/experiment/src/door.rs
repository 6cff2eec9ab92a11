//! Who else is connected to the server while something is sent: looked at again and again beside the load.

use model::check::Door;
use monitor::Connections;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// A connection of which the server has owed nothing for so long is idle.
const IDLE_MS: u32 = 200;
/// Looks before anything is sent.
const LOOKS: usize = 6;

/// How often somebody looks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    /// Between two looks, at least.
    pub(crate) pause: Duration,
    /// One part of so many of the time is spent with looking, at most. It is the CPU time of a look that counts: on a busy machine
    /// one takes long, and would be taken too seldom to see anybody.
    pub(crate) sparing: u32,
}

impl Pace {
    /// For windows of a second or so, of which nobody compares one with the other.
    pub(crate) const CLOSE: Pace = Pace { pause: Duration::from_millis(40), sparing: 1 };
    /// For windows that are compared: looking costs CPU time in the middle of them.
    pub(crate) const SPARING: Pace = Pace { pause: Duration::from_millis(200), sparing: 100 };
}

/// One look.
#[derive(Debug, Default)]
struct Look {
    accepted: BTreeSet<SocketAddr>,
    idle: u64,
}

/// Who is there before anything is sent.
pub(crate) fn before(port: u16) -> Option<Door> {
    let mut kernel = Connections::open().ok()?;
    let one = |_| {
        let look = look(&mut kernel, port);
        thread::sleep(Pace::CLOSE.pause);
        look
    };
    summary(&(0..LOOKS).filter_map(one).collect::<Vec<_>>())
}

fn look(kernel: &mut Connections, port: u16) -> Option<Look> {
    let mut found = Look::default();
    let mut others = kernel.of_others(port).ok()?;
    others.retain(|other| other.accepted);
    if !others.is_empty() {
        // One of ours that came and went between two questions to the kernel is gone by now.
        let there: BTreeSet<SocketAddr> = kernel.of_others(port).ok()?.iter().map(|other| other.peer).collect();
        others.retain(|other| there.contains(&other.peer));
    }
    for other in others {
        found.accepted.insert(other.peer);
        found.idle += u64::from(other.idle_ms.is_some_and(|idle| idle >= IDLE_MS));
    }
    Some(found)
}

/// Does `work` with somebody at the door, whom the kernel tells who comes; he does `also` after each look. No one is there without a
/// port, or when the kernel does not tell.
pub(crate) fn beside<T>(
    port: Option<u16>,
    pace: Pace,
    also: &mut (dyn FnMut() + Send),
    work: impl FnOnce() -> T,
) -> (T, Option<Door>) {
    let kernel = port.and_then(|port| Some((port, Connections::open().ok()?)));
    let Some((port, mut kernel)) = kernel else { return (work(), None) };
    let leave = AtomicBool::new(false);
    thread::scope(|scope| {
        let watching = scope.spawn(|| {
            let mut looks = Vec::new();
            while !leave.load(Ordering::Relaxed) {
                let began_ns = load::thread_cpu();
                looks.extend(look(&mut kernel, port));
                let took = Duration::from_nanos(load::thread_cpu().saturating_sub(began_ns));
                also();
                thread::park_timeout(pace.pause.max(took * (pace.sparing - 1)));
            }
            looks
        });
        let done = Ending(&leave, watching.thread()).after(work);
        // A look that went wrong is none; the load counts without it.
        (done, summary(&watching.join().unwrap_or_default()))
    })
}

/// Sends the watcher home, also when the work panics.
struct Ending<'a>(&'a AtomicBool, &'a thread::Thread);

impl Ending<'_> {
    fn after<T>(self, work: impl FnOnce() -> T) -> T {
        work()
    }
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        self.1.unpark();
    }
}

/// The lower one of the two in the middle of an even number.
fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or(0)
}

/// A connection counts as there, or as new, that was seen twice.
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
        looks: looks.len() as u64,
        active: looks.iter().map(|look| (look.accepted.len() as u64).saturating_sub(look.idle)).sum(),
        ticks: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_there_only_once_did_not_stay() {
        let peer = |port: u16| SocketAddr::from(([127, 0, 0, 1], port));
        let look = |ports: &[u16], idle: u64| Look { accepted: ports.iter().map(|&port| peer(port)).collect(), idle };
        let looks = [look(&[1, 2], 2), look(&[1, 3], 1), look(&[1, 2, 4, 5], 2), look(&[1, 4], 1)];
        let expected = Door { others: 3, idle: 1, others_opened: 1, looks: 4, active: 4, ticks: None };
        assert_eq!(summary(&looks), Some(expected));
        assert_eq!(summary(&[]), None);
    }
}
