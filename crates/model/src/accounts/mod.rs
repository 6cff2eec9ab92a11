//! Where the time of a trial's requests went, as three told it: the client's clock, the server's log, the kernel's accounts.
//!
//! Here are the sums as they were observed; `budget` splits a mean latency by them.

mod budget;

use crate::Nanos;
pub use budget::{Budget, Part};
use serde::{Deserialize, Serialize};
use std::ops::{Add, AddAssign};

/// The accounts of one trial's window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Accounts {
    /// Of all requests with a good answer.
    pub all: Told,
    /// Of the slowest 1 % of these, at least one.
    pub slowest: Told,
    /// Lines of the server's log that belong to no request of ours.
    pub lines_left: u64,
    /// Whether the kernel could not keep the ends of all processes for us.
    pub lost_ends: bool,
}

/// What was told of some requests: sums, each over as many requests as are named beside it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Told {
    /// How many they are.
    pub requests: u64,
    /// By the client, from when they were due to their last byte.
    pub total_ns: Nanos,
    /// Of that, until they were sent: an open loop without a free connection.
    pub unsent_ns: Nanos,
    /// Of that, connecting, TLS included.
    pub connect_ns: Nanos,
    /// What the server's log says of them; `None` where it says nothing.
    pub server: Option<ServerTold>,
    /// How long connections waited to be accepted, added up, by looks at the queue: only of all requests together.
    pub queued_ns: Option<Nanos>,
    /// Whether the kernel turned connections away at that queue.
    #[serde(default)]
    pub turned_away: u64,
    /// Processes that were started for them and ended: CGI programs.
    pub ended: EndedTold,
    /// Processes that go from request to request; `None` where nobody told of them.
    pub workers: Option<WorkersTold>,
}

/// What the server's log says of requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerTold {
    /// Lines of the log.
    pub requests: u64,
    /// From the client's connection, or its sending on a kept one, to the beginning of the server's own clock.
    pub before_ns: i64,
    /// Of that, on kept connections, which no accept queue had.
    #[serde(default)]
    pub before_kept_ns: i64,
    /// The server's own clock (`%D`, `$request_time`).
    pub own_ns: Nanos,
    /// From its end to the client's last byte.
    pub after_ns: i64,
}

/// Processes that ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedTold {
    /// How many.
    pub processes: u64,
    /// From their starts to their ends.
    pub elapsed_ns: Nanos,
    /// What that went to.
    pub delays: Delays,
    /// What they were seen doing.
    pub looks: Looks,
    /// Their CPU time as their parents were told, which has what giving back their memory took; in clock ticks.
    pub cpu_by_parents_ns: Option<Nanos>,
}

/// Processes that stay.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkersTold {
    /// What their time went to. Where they worked on nothing of ours they waited, which is in none of these.
    pub delays: Delays,
    /// What they were seen doing while they were blocked; only what cannot be idleness.
    pub blocked: Looks,
    /// Those of them who take requests first, not PHP-FPM's; `None` where that was not told apart, and they are all.
    #[serde(default)]
    pub front: Option<Front>,
    /// What one look stands for.
    pub look_ns: Nanos,
    /// What each was seen doing during its own requests, once for each that it had; `None` where that was not looked at.
    #[serde(default)]
    pub in_requests: Option<Looks>,
    /// For how long requests were in the server, and nobody is known to have had them.
    #[serde(default)]
    pub unheld_ns: Nanos,
}

/// Processes that take requests first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Front {
    /// On a CPU.
    pub on_cpu_ns: Nanos,
    /// Waiting for one, between requests too.
    pub cpu_wait_ns: Nanos,
    /// How often they were seen on a CPU or waiting for one in their requests.
    pub runnable: u64,
}

/// What processes were seen doing, look by look: how often.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Looks {
    /// On a CPU, or waiting for one.
    #[serde(default)]
    pub runnable: u64,
    /// Blocked while making room in memory.
    pub reclaim: u64,
    /// Having a page read back from swap.
    pub swap: u64,
    /// Waiting for a disk.
    pub disk: u64,
    /// Waiting for anything else: a lock, a socket, another process.
    pub other: u64,
}

/// What the time of processes went to, by the kernel's delay accounting. On a CPU, waiting for one, and the rest of a life exclude each
/// other; the causes overlap with all three.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delays {
    /// On a CPU.
    pub on_cpu_ns: Nanos,
    /// Runnable, and not on a CPU.
    pub cpu_wait_ns: Nanos,
    /// Waiting for a block device.
    pub disk_ns: Nanos,
    /// Reading a page from swap, as far as its reader does that himself.
    pub swap_in_ns: Nanos,
    /// Making room in memory.
    pub reclaim_ns: Nanos,
    /// Waiting for a page that had been there shortly before.
    pub thrashing_ns: Nanos,
    /// Making room for a large page.
    pub compaction_ns: Nanos,
}

impl Delays {
    /// The same of a life so long. Linux since 6.12 credits some waits for a disk to another process, and some begin with the machine:
    /// no delay is longer than the life, and no wait for a disk than what of it was spent neither on a CPU nor waiting for one.
    #[must_use]
    pub fn within(self, elapsed_ns: Nanos) -> Delays {
        let blocked = elapsed_ns.saturating_sub(self.on_cpu_ns).saturating_sub(self.cpu_wait_ns);
        let cut = |delay: Nanos| delay.min(elapsed_ns);
        Delays {
            on_cpu_ns: self.on_cpu_ns,
            cpu_wait_ns: self.cpu_wait_ns,
            disk_ns: self.disk_ns.min(blocked),
            swap_in_ns: cut(self.swap_in_ns),
            reclaim_ns: cut(self.reclaim_ns),
            thrashing_ns: cut(self.thrashing_ns),
            compaction_ns: cut(self.compaction_ns),
        }
    }

    /// What was added since.
    #[must_use]
    pub fn since(self, before: Delays) -> Delays {
        self.with(before, u64::saturating_sub)
    }

    /// So much of it.
    #[must_use]
    pub fn times(self, share: f64) -> Delays {
        self.with(Delays::default(), |of, _| (of as f64 * share).round() as u64)
    }

    fn with(self, other: Delays, f: impl Fn(u64, u64) -> u64) -> Delays {
        Delays {
            on_cpu_ns: f(self.on_cpu_ns, other.on_cpu_ns),
            cpu_wait_ns: f(self.cpu_wait_ns, other.cpu_wait_ns),
            disk_ns: f(self.disk_ns, other.disk_ns),
            swap_in_ns: f(self.swap_in_ns, other.swap_in_ns),
            reclaim_ns: f(self.reclaim_ns, other.reclaim_ns),
            thrashing_ns: f(self.thrashing_ns, other.thrashing_ns),
            compaction_ns: f(self.compaction_ns, other.compaction_ns),
        }
    }
}

impl Add for Delays {
    type Output = Delays;

    fn add(self, other: Delays) -> Delays {
        self.with(other, u64::saturating_add)
    }
}

impl AddAssign for Delays {
    fn add_assign(&mut self, other: Delays) {
        *self = *self + other;
    }
}

impl Looks {
    /// Looks at which they were blocked.
    #[must_use]
    pub fn blocked(self) -> u64 {
        self.reclaim + self.swap + self.disk + self.other
    }
}

impl AddAssign for Looks {
    fn add_assign(&mut self, other: Looks) {
        self.runnable += other.runnable;
        self.reclaim += other.reclaim;
        self.swap += other.swap;
        self.disk += other.disk;
        self.other += other.other;
    }
}

impl Told {
    /// Adds what was told of others, of another trial say. What was not told of one of the two is not told of both.
    pub fn merge(&mut self, other: &Told) {
        if self.requests == 0 {
            *self = other.clone();
            return;
        }
        self.requests += other.requests;
        self.total_ns += other.total_ns;
        self.unsent_ns += other.unsent_ns;
        self.connect_ns += other.connect_ns;
        self.server = self.server.zip(other.server).map(|(one, two)| ServerTold {
            requests: one.requests + two.requests,
            before_ns: one.before_ns + two.before_ns,
            before_kept_ns: one.before_kept_ns + two.before_kept_ns,
            own_ns: one.own_ns + two.own_ns,
            after_ns: one.after_ns + two.after_ns,
        });
        self.queued_ns = self.queued_ns.zip(other.queued_ns).map(|(one, two)| one + two);
        self.turned_away += other.turned_away;
        let (ended, others) = (&mut self.ended, other.ended);
        ended.processes += others.processes;
        ended.elapsed_ns += others.elapsed_ns;
        ended.delays += others.delays;
        ended.looks += others.looks;
        ended.cpu_by_parents_ns = ended.cpu_by_parents_ns.zip(others.cpu_by_parents_ns).map(|(one, two)| one + two);
        self.workers = self.workers.zip(other.workers).map(|(one, two)| {
            // Each look stands for the time since the one before, which differs between trials.
            let timed = |of: &WorkersTold| of.blocked.reclaim + of.blocked.swap + of.blocked.disk;
            let (n, m) = (timed(&one), timed(&two));
            let look_ns = match n + m {
                0 => one.look_ns.max(two.look_ns),
                looks => (one.look_ns * n + two.look_ns * m) / looks,
            };
            let mut blocked = one.blocked;
            blocked += two.blocked;
            let in_requests = one.in_requests.zip(two.in_requests).map(|(mut looks, others)| {
                looks += others;
                looks
            });
            let front = one.front.zip(two.front).map(|(one, two)| Front {
                on_cpu_ns: one.on_cpu_ns + two.on_cpu_ns,
                cpu_wait_ns: one.cpu_wait_ns + two.cpu_wait_ns,
                runnable: one.runnable + two.runnable,
            });
            let unheld_ns = one.unheld_ns + two.unheld_ns;
            let delays = one.delays + two.delays;
            WorkersTold { delays, front, blocked, look_ns, in_requests, unheld_ns }
        });
    }
}
