//! What a stretch of readings shows of a machine, or a server on it, that is only watched: nobody knows what was asked of it.

use super::window::Window;
use super::{Disks, Evidence, Machine, Memory, Network, Observed, Offered, Processors, Workers};
use model::reading::{Column, Readings};

impl Evidence {
    /// What the readings show from their first to their last. What was asked for is what is seen at the door: requests in work, and
    /// connections that wait to be accepted.
    #[must_use]
    pub fn watched(machine: &Machine, readings: &Readings) -> Evidence {
        let at = |row: Option<&model::reading::Reading>| row.map_or(0, |row| row.at_ns);
        let window = Window::of(readings, at(readings.rows.first()), at(readings.rows.last()));
        let workers = Workers::watched(&window);
        let seen = workers.busy.unwrap_or(0.0) + workers.queue.unwrap_or(0.0);
        let offered = Offered {
            ours: false,
            connections: seen,
            own_connections: seen,
            own_concurrency: seen,
            concurrency: seen,
            goodput: 0.0,
            good: 0,
            failed: 0,
            local_failures: 0,
            alone: None,
            longer: None,
            generator_share: 0.0,
        };
        let memory = Memory::of(machine, &window, &offered, &workers, None);
        Evidence {
            observed: Observed::of(&window),
            grouped: machine.grouped,
            bounded: Some(false),
            behind: false,
            stopped: None,
            cpu: Processors::of(machine, &window, 0.0),
            disk: Disks::of(&window, &memory),
            network: Network::of(&window),
            foreign: None,
            offered,
            memory,
            workers,
        }
    }
}

impl Workers {
    /// Of processes that are watched from outside. How many there may be is known when all are busy and somebody waits: those there are.
    fn watched(window: &Window<'_>) -> Workers {
        let (queue, limit) = match window.median(Column::AcceptQueue) {
            Some(queue) => (Some(queue), window.median(Column::AcceptLimit)),
            None => (window.median(Column::ListenQueue), None),
        };
        let (there, busy) = (window.median(Column::TreeWorkers), window.median(Column::TreeBusyWorkers));
        let full = there.zip(busy).is_some_and(|(there, busy)| there >= 1.0 && busy >= there);
        Workers {
            limit: there.filter(|_| full && queue.is_some_and(|queue| queue >= 1.0)),
            most: window.most(Column::TreeWorkers),
            busy,
            ready: None,
            queue,
            queue_most: window.most(Column::AcceptQueue),
            queue_limit: limit,
            overflows: window.delta(Column::TcpListenOverflows),
            // Of how many that is nobody knows.
            turned_away: None,
            each_counts: true,
            lock_waiters: window.median(Column::TreeLockWaiters),
            held: None,
            shut: None,
            queued: None,
            unread: None,
            queue_elsewhere: None,
            behind: None,
            ending: None,
            pool: None,
        }
    }
}
