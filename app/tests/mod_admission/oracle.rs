//! What the pages wrote down themselves (probe/probe.h): how many ran at once, by a clock that knows nothing of the module.

use std::collections::{HashMap, VecDeque};
use std::path::Path;

#[derive(Debug, Clone)]
pub(crate) struct Event {
    /// `start`, `stop` or `crash`.
    pub(crate) word: String,
    pub(crate) id: String,
    pub(crate) ns: u64,
    /// The process of the server that worked for the page.
    pub(crate) child: i32,
    pub(crate) pid: i32,
}

pub(crate) fn read(path: &Path) -> Vec<Event> {
    let text = std::fs::read_to_string(path).expect("the oracle");
    text.lines().filter_map(event).collect()
}

fn event(line: &str) -> Option<Event> {
    let mut words = line.split(' ');
    let mut next = || words.next();
    let (word, id) = (next()?.to_owned(), next()?.to_owned());
    Some(Event { word, id, ns: next()?.parse().ok()?, child: next()?.parse().ok()?, pid: next()?.parse().ok()? })
}

/// When processes were killed, in nanoseconds of the oracle's clock; a number may be given again.
pub(crate) type Killed = HashMap<i32, Vec<u64>>;

/// The moment now, by the oracle's clock.
pub(crate) fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// For how long after it was killed, or crashed, a process may still be dying; its number is not given again so soon.
const DYING_NS: u64 = 1_000_000_000;

/// The most pages that ran at once. A page that did not end was over when its process was killed, or runs still; but one that began
/// after that, in a thread of a process that was dying already, is over as it begins, whatever becomes of a later process of that number.
pub(crate) fn most_at_once(events: &[Event], killed: &Killed) -> usize {
    let unknown = |begin: &Event| if killed.contains_key(&begin.pid) { begin.ns } else { u64::MAX };
    let mut ends: HashMap<(&str, i32), VecDeque<u64>> = HashMap::new();
    for event in events.iter().filter(|event| event.word != "start") {
        ends.entry((&event.id, event.pid)).or_default().push_back(event.ns);
    }
    let deaths = |pid| killed.get(&pid).into_iter().flatten().copied();
    let killed_after = |pid, ns| {
        let dying = deaths(pid).any(|time| time < ns && ns - time < DYING_NS);
        if dying { Some(ns) } else { deaths(pid).find(|&time| time >= ns) }
    };
    let mut edges: Vec<(u64, i32)> = Vec::new();
    for begin in events.iter().filter(|event| event.word == "start") {
        let end = ends.get_mut(&(begin.id.as_str(), begin.pid)).and_then(VecDeque::pop_front);
        let end = end.or_else(|| killed_after(begin.pid, begin.ns)).unwrap_or(unknown(begin));
        edges.push((begin.ns, 1));
        edges.push((end, -1));
    }
    // What ends at a moment ends before what begins at it.
    edges.sort_unstable();
    let mut running = 0;
    let sums = edges.iter().map(|(_, change)| {
        running += change;
        running
    });
    sums.max().unwrap_or(0) as usize
}

/// Names in the order in which they began.
pub(crate) fn order(events: &[Event]) -> Vec<String> {
    let mut begun: Vec<&Event> = events.iter().filter(|event| event.word == "start").collect();
    begun.sort_by_key(|event| event.ns);
    begun.into_iter().map(|event| event.id.clone()).collect()
}
