//! What the processes of a server held at one instant of a trial, and how many workers like these memory has room for.

use crate::Nanos;
use serde::{Deserialize, Serialize};

/// One look at the memory of a server's processes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkersHeld {
    /// When it began.
    pub at_ns: Nanos,
    /// How long it took: what it cost, since somebody's CPU time went into it.
    pub took_ns: Nanos,
    /// The server's own processes first, then those of each program beside it, such as PHP-FPM.
    pub crews: Vec<Crew>,
    /// Processes whose memory this user may not see.
    pub unread: u64,
}

/// A root process and those below it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Crew {
    /// What the kernel calls the root: `apache2`, `php-fpm8.2`.
    pub name: String,
    /// The most threads that a worker had.
    pub threads: u64,
    /// Its workers: the root's children of the same name, or the root alone where it has none.
    pub workers: Vec<Held>,
    /// All else below the root, it included: loggers, programs that were started for a request.
    pub others: Vec<Held>,
}

/// What one process held, in bytes, as /proc/PID/smaps_rollup tells it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// Resident, what others have as well included (RSS).
    pub resident: u64,
    /// Resident, each page divided by the number of processes that have it (PSS).
    pub proportional: u64,
    /// Resident, and nobody else's (USS): `Private_Clean` and `Private_Dirty`.
    pub own: u64,
    /// Its part of what was moved to swap (`SwapPss`).
    pub swapped: u64,
}

/// How many workers like those of a crew have room, and what follows for the number of them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Room {
    /// Bytes that the server may have.
    pub memory: f64,
    /// Bytes that it takes whatever the number of workers: what they share, and what everybody else of it holds.
    pub shared: f64,
    /// Bytes that a worker adds: what the largest held of its own.
    pub each: f64,
}

impl Held {
    /// What nobody else has of it, wherever it is: what would be free again without it.
    #[must_use]
    pub fn alone(self) -> u64 {
        self.own + self.swapped
    }
}

impl WorkersHeld {
    /// Bytes that all processes of the server take together: each page counts once.
    #[must_use]
    pub fn total(&self) -> u64 {
        let everybody = self.crews.iter().flat_map(|crew| crew.workers.iter().chain(&crew.others));
        everybody.map(|held| held.proportional + held.swapped).sum()
    }

    /// The process that has the most resident, and whose it is.
    #[must_use]
    pub fn largest(&self) -> Option<(&Crew, Held)> {
        let of_crew = |crew: &Crew| crew.workers.iter().chain(&crew.others).copied().max_by_key(|held| held.resident);
        let largest = self.crews.iter().filter_map(|crew| Some((crew, of_crew(crew)?)));
        largest.max_by_key(|(_, held)| held.resident)
    }

    /// Bytes that are taken whatever the number of a crew's workers is.
    #[must_use]
    pub fn without(&self, crew: &Crew) -> u64 {
        self.total().saturating_sub(crew.workers.iter().map(|held| held.alone()).sum())
    }
}

impl Room {
    /// How many fit, `each` taking so much.
    #[must_use]
    pub fn workers(self, each: f64) -> Option<u64> {
        (each > 0.0).then(|| ((self.memory - self.shared).max(0.0) / each).floor() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Forty workers and their root as they were measured with a page of 8 MB (KiB), and how many of them 1 GiB has room for.
    #[test]
    fn forty_workers_with_pages_of_eight_megabytes() {
        let held = |resident: u64, proportional: u64, own: u64| Held {
            resident: resident << 10,
            proportional: proportional << 10,
            own: own << 10,
            swapped: 0,
        };
        let crew = Crew {
            name: "apache2".into(),
            threads: 1,
            workers: vec![held(23_131, 10_607, 10_298); 40],
            others: vec![held(20_000, 6_468, 5_000)],
        };
        let look = WorkersHeld { crews: vec![crew], ..WorkersHeld::default() };
        assert_eq!(look.total(), (40 * 10_607 + 6_468) << 10);
        // 40 times 309 KiB that are shared, and the root's.
        assert_eq!(look.without(&look.crews[0]), (40 * 309 + 6_468) << 10);
        let room = Room { memory: f64::from(1 << 30), shared: f64::from(18_828 << 10), each: f64::from(10_298 << 10) };
        assert_eq!(room.workers(room.each), Some(99));
        assert_eq!(room.workers(f64::from(64 << 20)), Some(15));
        assert_eq!(room.workers(0.0), None);
        assert_eq!(Room { memory: 0.0, ..room }.workers(room.each), Some(0));
    }

    #[test]
    fn what_was_moved_to_swap_is_still_held() {
        let held = Held { resident: 3, proportional: 2, own: 1, swapped: 10 };
        let crew = Crew { workers: vec![held, held], ..Crew::default() };
        let look = WorkersHeld { crews: vec![crew], ..WorkersHeld::default() };
        assert_eq!((held.alone(), look.total(), look.without(&look.crews[0])), (11, 24, 2));
    }
}
