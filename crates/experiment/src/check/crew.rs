//! What workers hold while they work, and the time they use: afterwards much of it is given back.

use crate::door::{self, Pace};
use model::check::{Door, Running};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Memory is looked at in one part of so many of the time: it holds up the page faults of those who are looked at.
const SPARING: u32 = 20;

/// The most bytes of a worker, by pool; the server's own stand under no name.
pub(super) type Largest = BTreeMap<String, u64>;

/// What was seen beside a load.
#[derive(Debug, Default)]
pub(super) struct Beside {
    /// Who was at the door.
    pub(super) door: Option<Door>,
    /// The most bytes that a worker held, by pool.
    pub(super) largest: Largest,
}

/// Takes over what is larger.
pub(super) fn grow(largest: &mut Largest, more: impl IntoIterator<Item = (String, u64)>) {
    for (pool, bytes) in more {
        let known = largest.entry(pool).or_default();
        *known = bytes.max(*known);
    }
}

/// Does `work` with somebody at the door, who looks at the workers as well.
pub(super) fn beside<T>(port: Option<u16>, running: &Running, work: impl FnOnce() -> T) -> (T, Beside) {
    let before = server::ticks(running);
    let (mut largest, mut last) = (Largest::new(), None::<(Instant, Duration)>);
    let mut workers = || {
        let began = Instant::now();
        if last.is_none_or(|(ended, took)| began.duration_since(ended) >= took * SPARING) {
            grow(&mut largest, server::memory_of(running).into_iter().map(|(pool, held)| (pool, held.largest)));
            last = Some((Instant::now(), began.elapsed()));
        }
    };
    let (done, door) = door::beside(port, Pace::CLOSE, &mut workers, work);
    let ticks = server::ticks(running).zip(before).map(|(after, before)| after.saturating_sub(before));
    (done, Beside { door: door.map(|door| Door { ticks, ..door }), largest })
}
