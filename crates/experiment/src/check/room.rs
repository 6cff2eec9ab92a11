//! Whether memory holds what the next step could bring about.

use super::Checker;
use model::check::{Kind, Running, WorkerMemory};
use model::reading::{Column, Reading};

/// Part of the memory that a climb leaves alone.
const SPARE: f64 = 0.1;
/// Short programs take at once no more than so many times what was seen of them in a dozen looks.
const UNSEEN: f64 = 3.0;
/// Idle processes that prefork keeps by default.
const SPARE_SERVERS: u64 = 10;

/// What was left of the memory, in bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Memory {
    before: Option<f64>,
    /// With how many connections, and the least that was left meanwhile.
    last: Option<(u32, f64)>,
    /// The largest program that was started for a request; `None` where programs run without any.
    program: Option<f64>,
}

impl Memory {
    /// Before anything is sent.
    pub(super) fn begin(&mut self, running: &Running, latest: Option<&Reading>) {
        self.before = latest.and_then(|reading| room(running, reading)).map(|(free, _)| free);
        self.program =
            latest.and_then(|reading| reading.get(Column::TreeProgramLargest)).filter(|&bytes| bytes == 0).map(|_| 0.0);
    }

    /// While so many connections were served.
    pub(super) fn saw(&mut self, connections: u32, running: &Running, rows: &[Reading]) {
        let free = rows.iter().filter_map(|row| room(running, row)).map(|(free, _)| free);
        self.last = free.min_by(f64::total_cmp).map(|least| (connections, least));
        let programs = rows.iter().filter_map(|row| row.get(Column::TreeProgramLargest));
        self.program = self.program.map(|known| programs.map(|bytes| bytes as f64).fold(known, f64::max));
    }

    /// Bytes of programs at so many requests. Short ones are rarely seen all at their largest, and sooner or later are; but what all
    /// connections took so far tells whether each has one to itself.
    fn programs(&self, requests: f64) -> f64 {
        let Some(largest) = self.program else { return 0.0 };
        let seen = self.before.zip(self.last).filter(|(_, (served, _))| *served > 1);
        let each =
            seen.map_or(largest, |(before, (served, least))| (before - least).max(0.0) / f64::from(served) * UNSEEN);
        requests * largest.min(each)
    }

    /// Bytes beyond those, if each connection takes as much as the last ones did, wherever it takes it: in workers, in programs that they
    /// start, in a server behind them.
    fn more(&self, connections: u32) -> f64 {
        let Some((before, (served, least))) = self.before.zip(self.last) else { return 0.0 };
        (before - least).max(0.0) * (f64::from(connections) / f64::from(served) - 1.0).max(0.0)
    }
}

impl Checker<'_, '_> {
    /// Whether memory holds what so many connections could bring about, with some to spare; yes when nothing is known.
    pub(super) fn fits(&self, connections: u32, latest: Option<&Reading>) -> bool {
        let Some((free, whole)) = latest.and_then(|reading| room(self.running, reading)) else { return true };
        let workers: u64 = self.held().iter().map(|(pool, held)| self.more(pool, held, connections)).sum();
        // Programs that are started for a request have given back by now what the next ones take again.
        let left = self.memory.last.map_or(free, |(_, least)| free.min(least)) - self.memory.more(connections);
        left.min(free - workers as f64).min(free - self.memory.programs(self.at_once(connections))) >= whole * SPARE
    }

    /// How many of so many connections the server works on at once, as far as its limit is known.
    fn at_once(&self, connections: u32) -> f64 {
        let limit = self.running.limit(u64::from(self.orders.head.host.cpus)).filter(|_| self.running.kind.is_apache());
        f64::from(connections).min(limit.map_or(f64::INFINITY, |limit| limit.value as f64))
    }

    /// What workers hold now, and the most that one of them held at work.
    pub(super) fn held(&self) -> Vec<(String, WorkerMemory)> {
        let mut held = server::memory_of(self.running);
        for (pool, held) in &mut held {
            held.largest = held.largest.max(self.crews.get(pool).map_or(0, |crew| crew.largest));
        }
        held
    }

    /// Bytes that workers could take beyond what they have when so many connections are served.
    fn more(&self, pool: &str, held: &WorkerMemory, connections: u32) -> u64 {
        let cpus = u64::from(self.orders.head.host.cpus);
        let of_pool = self.running.pools.iter().find(|known| known.name == pool && !pool.is_empty());
        let limit = match of_pool {
            Some(pool) => pool.limit(),
            None => self.running.limit(cpus),
        };
        let limit = limit.map_or(u64::MAX, |limit| limit.value);
        let workers = match (of_pool, self.running.kind) {
            (Some(_), _) => u64::from(connections).min(limit),
            (None, Kind::ApachePrefork) => (u64::from(connections) + SPARE_SERVERS).min(limit),
            (None, Kind::ApacheEvent | Kind::ApacheWorker) => {
                u64::from(connections).min(limit).div_ceil(self.running.threads_per_child()) + 1
            }
            // Their number is fixed.
            (None, Kind::Apache | Kind::Nginx | Kind::Other) => held.workers,
        };
        (workers * held.largest).saturating_sub(held.total)
    }
}

/// Bytes that are left, and of how many: the group's, else the host's.
fn room(running: &Running, reading: &Reading) -> Option<(f64, f64)> {
    if let Some(group) = &running.group {
        let used = reading.get(Column::GroupAnon).or(group.used)? + reading.get(Column::GroupSwap).unwrap_or(0);
        return Some((group.limit.saturating_sub(used) as f64, group.limit as f64));
    }
    let kib = |column| Some(reading.get(column)? as f64 * 1024.0);
    Some((kib(Column::MemAvailable)?, kib(Column::MemTotal)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twice_as_many_take_twice_as_much() {
        let row = |available: u64| {
            let mut row = Reading::empty(0);
            row.set(Column::MemTotal, 4000);
            row.set(Column::MemAvailable, available);
            row
        };
        let (running, mut memory) = (Running::default(), Memory::default());
        assert_eq!(memory.more(8), 0.0);
        memory.begin(&running, Some(&row(3000)));
        memory.saw(32, &running, &[row(2900), row(1400), row(2000)]);
        assert_eq!([memory.more(32), memory.more(64)], [0.0, 1600.0 * 1024.0]);
        let mut with_program = row(2000);
        with_program.set(Column::TreeProgramLargest, 7000);
        memory.saw(64, &running, &[with_program.clone(), row(2000)]);
        assert_eq!(memory.program, None, "nobody looked before");
        let mut none_yet = row(2000);
        none_yet.set(Column::TreeProgramLargest, 0);
        memory.begin(&running, Some(&none_yet));
        memory.saw(64, &running, &[row(2000), with_program]);
        memory.saw(64, &running, &[row(2000)]);
        assert_eq!(memory.program, Some(7000.0));
        // 64 that took nothing have none to themselves.
        assert_eq!([memory.programs(10.0), Memory { last: None, ..memory }.programs(10.0)], [0.0, 70_000.0]);
        memory.begin(&running, Some(&row(3000)));
        // Memory that others gave back says nothing.
        memory.saw(64, &running, &[row(3500)]);
        assert_eq!(memory.more(128), 0.0);
    }
}
