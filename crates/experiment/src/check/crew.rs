//! What workers hold while they work, how many they are, and the time they use: afterwards much of it is given back.

use crate::door::{self, Pace};
use model::check::{Door, PoolQueue, Running, WorkerMemory};
use monitor::Queues;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Memory is looked at in one part of so many of the time: it holds up the page faults of those who are looked at.
const SPARING: u32 = 20;
/// Looks at a queue while nothing is sent.
const LOOKS: usize = 6;

/// Workers of one pool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Crew {
    /// The most bytes that one of them held.
    pub(super) largest: u64,
    /// The most that there were at once.
    pub(super) most: u64,
    /// Clock ticks that they used; of pools only.
    pub(super) ticks: u64,
}

/// By pool; the server's own stand under no name.
pub(super) type Crews = BTreeMap<String, Crew>;

/// What waited for each pool, by its name.
pub(super) type Waiting = BTreeMap<String, PoolQueue>;

/// What was seen beside a load.
#[derive(Debug, Default)]
pub(super) struct Beside {
    /// Who was at the door.
    pub(super) door: Option<Door>,
    /// The workers.
    pub(super) crews: Crews,
    /// Who waited for them.
    pub(super) queues: Waiting,
}

/// Takes over what is more.
pub(super) fn grow(crews: &mut Crews, more: impl IntoIterator<Item = (String, Crew)>) {
    for (pool, more) in more {
        let known = crews.entry(pool).or_default();
        known.largest = known.largest.max(more.largest);
        known.most = known.most.max(more.most);
        known.ticks += more.ticks;
    }
}

/// Takes over the window in which they were full more often.
pub(super) fn fuller(queues: &mut Waiting, more: Waiting) {
    for (pool, queue) in more {
        let known = queues.entry(pool).or_default();
        *known = known.fuller(queue);
    }
}

/// A look at the queue before each pool. A server that would add to one that is full waits in there and answers nothing, so answers
/// do not tell of it.
fn look(kernel: &mut Queues, running: &Running, queues: &mut Waiting) {
    for pool in &running.pools {
        if let Some(queue) = kernel.at(&pool.listen) {
            queues.entry(pool.name.clone()).or_default().saw(queue.waiting, queue.limit);
        }
    }
}

/// Some looks while nothing is sent, where a server did not answer.
pub(super) fn waiting(running: &Running) -> Waiting {
    let mut queues = Waiting::new();
    let kernel = Queues::open().ok().filter(|_| !running.pools.is_empty());
    if let Some(mut kernel) = kernel {
        for _ in 0..LOOKS {
            look(&mut kernel, running, &mut queues);
            std::thread::sleep(Pace::CLOSE.pause);
        }
    }
    queues
}

/// Who works now, and what they hold. What is measured otherwise than before the load is not compared with it: the larger one of two measures
/// would win.
fn working(running: &Running) -> impl Iterator<Item = (String, Crew)> {
    server::memory_of(running).into_iter().map(|(pool, held)| {
        let alike = before(running, &pool).is_none_or(|before| before.measure == held.measure);
        let largest = if alike { held.largest } else { 0 };
        (pool, Crew { largest, most: held.workers, ticks: 0 })
    })
}

fn before<'a>(running: &'a Running, pool: &str) -> Option<&'a WorkerMemory> {
    if pool.is_empty() {
        return running.workers.as_ref();
    }
    running.pools.iter().find(|known| known.name == pool)?.workers.as_ref()
}

/// What pools used since `before`: workers that ended take what they used with them.
fn used(running: &Running, before: &[(String, u64)]) -> impl Iterator<Item = (String, Crew)> {
    server::pool_ticks(running).into_iter().map(|(pool, now)| {
        let then = before.iter().find(|(known, _)| *known == pool).map_or(0, |(_, ticks)| *ticks);
        (pool, Crew { ticks: now.saturating_sub(then), ..Crew::default() })
    })
}

/// Does `work` with somebody at the door, who looks at the workers as well.
pub(super) fn beside<T>(port: Option<u16>, running: &Running, work: impl FnOnce() -> T) -> (T, Beside) {
    let (before, of_pools) = (server::ticks(running), server::pool_ticks(running));
    let (mut crews, mut last) = (Crews::new(), None::<(Instant, Duration)>);
    let mut kernel = Queues::open().ok().filter(|_| !running.pools.is_empty());
    let mut queues = Waiting::new();
    let mut workers = || {
        if let Some(kernel) = &mut kernel {
            look(kernel, running, &mut queues);
        }
        let began = Instant::now();
        if last.is_none_or(|(ended, took)| began.duration_since(ended) >= took * SPARING) {
            grow(&mut crews, working(running));
            last = Some((Instant::now(), began.elapsed()));
        }
    };
    let (done, door) = door::beside(port, Pace::CLOSE, &mut workers, work);
    grow(&mut crews, used(running, &of_pools));
    let ticks = server::ticks(running).zip(before).map(|(after, before)| after.saturating_sub(before));
    (done, Beside { door: door.map(|door| Door { ticks, ..door }), crews, queues })
}
