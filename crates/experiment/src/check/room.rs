//! Whether memory holds what the next step could bring about.

use super::Checker;
use model::check::{Kind, Running, WorkerMemory};
use model::reading::{Column, Reading};

/// Part of the memory that a climb leaves alone.
const SPARE: f64 = 0.1;
/// Idle processes that prefork keeps by default.
const SPARE_SERVERS: u64 = 10;

impl Checker<'_, '_> {
    /// Whether memory holds what so many connections could bring about, with some to spare; yes when nothing is known.
    pub(super) fn fits(&self, connections: u32, latest: Option<&Reading>) -> bool {
        let Some((free, whole)) = latest.and_then(|reading| room(self.running, reading)) else { return true };
        let more: u64 = self.held().iter().map(|(pool, held)| self.more(pool, held, connections)).sum();
        more as f64 <= free - whole * SPARE
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
        let used = reading.get(Column::GroupAnon).or(group.used)?;
        return Some((group.limit.saturating_sub(used) as f64, group.limit as f64));
    }
    let kib = |column| Some(reading.get(column)? as f64 * 1024.0);
    Some((kib(Column::MemAvailable)?, kib(Column::MemTotal)?))
}
