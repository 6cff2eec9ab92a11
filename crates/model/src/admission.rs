//! What `mod_admission` says of itself: its `status.json`, as `docs/admission/status.md` describes it.
//!
//! Two looks at the same server give rates, as two readings of a machine do. Members that this version does not know are skipped.

use serde::{Deserialize, Serialize};

/// The version of the format that this one understands.
pub const VERSION: u32 = 1;

/// A server's admission at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Admission {
    /// Of the format.
    pub version: u32,
    /// Name and version of the module.
    pub module: String,
    /// When it was written, seconds since 1970.
    pub written: f64,
    /// When counting began, seconds since 1970.
    pub started: Option<f64>,
    /// The controller's process.
    pub pid: Option<u32>,
    /// The server's first process.
    pub server_pid: Option<u32>,
    /// Where limits are changed, if the configuration names such a file.
    pub control_file: Option<String>,
    /// Why that file is refused.
    pub control_error: Option<String>,
    /// How many contents of it were put in force since `started`, by all controllers; a new one puts what it finds in force.
    pub control_generation: u64,
    /// `AdmissionEngine`: `on`, `observe`, `off`, or `mixed` where virtual hosts differ.
    #[serde(default)]
    pub engine: Option<String>,
    /// The memory budget: a group that counts bytes.
    pub budget: Group,
    /// The workers that may wait.
    pub queue_workers: Group,
    /// The groups of the configuration.
    pub groups: Vec<Group>,
    /// What the table as a whole could not do.
    pub troubles: Troubles,
}

/// A group: settings, what is held and waits now, and what was counted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// As `AdmissionGroup` names it.
    pub name: String,
    /// `off`, `observe` or `enforce`.
    pub mode: String,
    /// Permits at once, per entry, in force now; `None` is no limit.
    pub limit: Option<u64>,
    /// What the configuration or the control file asks for.
    pub configured_limit: Option<u64>,
    /// Requests that may wait, per entry.
    pub queue: u64,
    /// How long a request may wait, in milliseconds.
    pub timeout_ms: u64,
    /// `fifo`, `lifo` or `adaptive`.
    pub order: String,
    /// What a rejected client gets.
    pub status: u64,
    /// Bytes of the budget that a permit takes now.
    pub cost: u64,
    /// Bytes of the budget that a permit takes as configured.
    pub configured_cost: u64,
    /// The cost is learned.
    pub learn: bool,
    /// The limit moves with the pressure on memory.
    pub adaptive: bool,
    /// The lowest that an adaptive limit goes.
    pub min: Option<u64>,
    /// The highest that an adaptive limit goes.
    pub max: Option<u64>,
    /// Permits held, over all entries.
    pub held: u64,
    /// Permits held whose request is over and whose program still runs.
    pub lingering: u64,
    /// Requests that wait, over all entries.
    pub waiting: u64,
    /// Held in the entry that holds most: what the limit bounds.
    pub fullest: u64,
    /// How long the oldest permit is held.
    pub oldest_ms: u64,
    /// How long permits were held, in the mean.
    pub service_us: u64,
    /// What became of requests.
    pub counts: Counts,
    /// How long those waited that had to.
    pub wait: Histogram,
    /// How long permits were held.
    pub service: Histogram,
    /// The fullest entries.
    pub entries: Vec<Entry>,
    /// Busy ones that are not among them.
    pub entries_left_out: u64,
}

/// What became of requests since the server was started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Let in at once.
    pub admitted: u64,
    /// Let in after a wait.
    pub queued: u64,
    /// Turned away at once.
    pub rejected: u64,
    /// Turned away after a wait.
    pub timeout: u64,
    /// The client left while it waited.
    pub gone: u64,
    /// Let in because the full group only observes: it would have been turned away.
    pub would_reject: u64,
    /// The same where it would have waited for its permit.
    #[serde(default)]
    pub would_queue: u64,
    /// Let in because the table could not say.
    pub open: u64,
    /// Error pages and requests inside requests, let through.
    pub bypass: u64,
    /// Permits of dead processes taken back.
    pub reaped: u64,
    /// Permits held longer than `AdmissionMaxHold`.
    pub long_hold: u64,
}

/// Times by powers of two: bucket `b` counts those below 2^b microseconds that the one before does not, the last all others.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Histogram {
    /// All times together.
    pub sum_us: u64,
    /// How many in each.
    pub buckets: Vec<u64>,
}

/// One thing that a group counts: a file, a host, a client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// What it is; long ones without their beginning.
    pub label: String,
    /// Permits held.
    pub held: u64,
    /// Of these, those of programs whose request is over.
    pub lingering: u64,
    /// Requests that wait.
    pub waiting: u64,
    /// How long the oldest permit is held.
    pub oldest_ms: u64,
}

/// Times that the table as a whole could not do its work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Troubles {
    /// No place for one more entry.
    pub table_full: u64,
    /// An entry below its limit had no free cell.
    pub cells_full: u64,
    /// No place for one more process.
    pub owners_full: u64,
    /// Waiters that found their permit by looking, not by being woken.
    pub late_wakes: u64,
    /// No shared memory for a table: a server that has one now had none for a while.
    #[serde(default)]
    pub no_memory: u64,
}

/// What is known of a percentile of a [`Histogram`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// It lies below so many microseconds.
    Below(u64),
    /// It is so many microseconds or more.
    AtLeast(u64),
}

impl Admission {
    /// Seconds since it was written.
    #[must_use]
    pub fn age_s(&self, now: f64) -> f64 {
        now - self.written
    }

    /// The group of a name, the module's own two included.
    #[must_use]
    pub fn group(&self, name: &str) -> Option<&Group> {
        [&self.budget, &self.queue_workers].into_iter().chain(&self.groups).find(|group| group.name == name)
    }

    /// How often a second something was counted in a group since an earlier look; `None` when the server was started anew between
    /// them, or no time passed.
    #[must_use]
    pub fn rate(&self, before: &Admission, name: &str, count: fn(&Counts) -> u64) -> Option<f64> {
        let seconds = self.written - before.written;
        let (now, then) = (self.group(name)?, before.group(name)?);
        let grown = count(&now.counts).checked_sub(count(&then.counts))?;
        (seconds > 0.0 && self.started == before.started).then_some(grown as f64 / seconds)
    }

    /// The same since counting began.
    #[must_use]
    pub fn mean_rate(&self, group: &Group, count: fn(&Counts) -> u64) -> Option<f64> {
        let seconds = self.written - self.started?;
        (seconds > 0.0).then(|| count(&group.counts) as f64 / seconds)
    }
}

impl Counts {
    /// Requests that ran.
    #[must_use]
    pub fn let_in(&self) -> u64 {
        [self.queued, self.would_reject, self.would_queue, self.open]
            .into_iter()
            .fold(self.admitted, u64::saturating_add)
    }

    /// Requests that were turned away, at once or after a wait.
    #[must_use]
    pub fn turned_away(&self) -> u64 {
        self.rejected.saturating_add(self.timeout)
    }
}

impl Group {
    /// How full its fullest entry is, from 0; 0 without a limit.
    #[must_use]
    pub fn fullness(&self) -> f64 {
        self.limit.map_or(0.0, |limit| self.fullest as f64 / (limit as f64).max(1.0))
    }
}

impl Histogram {
    /// How many times there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().copied().fold(0, u64::saturating_add)
    }

    /// The mean, in microseconds.
    #[must_use]
    pub fn mean_us(&self) -> Option<f64> {
        let count = self.count();
        (count > 0).then(|| self.sum_us as f64 / count as f64)
    }

    /// Where the `percent`th of 100 times lies.
    #[must_use]
    pub fn percentile(&self, percent: u64) -> Option<Bound> {
        let wanted = (self.count().checked_mul(percent)?.div_ceil(100)).max(1);
        let last = self.buckets.len().checked_sub(1)?;
        let mut seen: u64 = 0;
        let bucket = self.buckets.iter().position(|count| {
            seen = seen.saturating_add(*count);
            seen >= wanted
        })?;
        Some(match bucket {
            // One bucket says nothing about times.
            0 if last == 0 => Bound::AtLeast(0),
            _ if bucket == last => Bound::AtLeast(1 << (last - 1).min(62)),
            _ => Bound::Below(1 << bucket.min(62)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the module's own tests render: one file says what both sides mean.
    const GOLDEN: &str = include_str!("../../../modules/mod_admission/tests/golden/status.json");

    fn golden() -> Admission {
        serde_json::from_str(GOLDEN).expect("the module's format")
    }

    #[test]
    fn what_the_module_writes_is_read() {
        let status = golden();
        assert_eq!((status.version, status.module.as_str()), (VERSION, "mod_admission/0.1.0"));
        assert_eq!((status.server_pid, status.pid, status.control_generation), (Some(4242), Some(4243), 3));
        assert_eq!(status.control_error.as_deref(), Some("line 2: no group is called \"pph\""));
        assert_eq!((status.budget.limit, status.budget.held), (Some(800 << 20), 375 << 20));
        assert_eq!((status.queue_workers.limit, status.queue_workers.held), (Some(38), 2));
        let php = status.group("php").expect("a group");
        assert_eq!((php.limit, php.held, php.fullest, php.waiting), (Some(4), 5, 4, 2));
        assert_eq!((php.counts.let_in(), php.counts.turned_away()), (12345 + 678 + 1, 90 + 12));
        assert_eq!(php.entries[1].label, "/var/www/html/日本/\"<b>\".php");
        assert!((php.fullness() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn percentiles_are_ends_of_buckets() {
        let php = &golden().groups[0];
        assert_eq!(php.service.percentile(50), Some(Bound::Below(1 << 17)));
        assert_eq!(php.service.percentile(99), Some(Bound::Below(1 << 20)));
        assert_eq!(php.wait.percentile(99), Some(Bound::AtLeast(1 << 26)));
        assert_eq!(php.service.mean_us(), Some(96_000.0));
        assert_eq!(Histogram::default().percentile(50), None);
        assert_eq!(Histogram { sum_us: 0, buckets: vec![0; 28] }.percentile(50), None);
    }

    #[test]
    fn odd_numbers_are_no_panic() {
        let one = Histogram { sum_us: 5, buckets: vec![3] };
        assert_eq!(one.percentile(50), Some(Bound::AtLeast(0)));
        let full = Histogram { sum_us: u64::MAX, buckets: vec![u64::MAX, 2] };
        assert_eq!((full.count(), full.percentile(50), full.percentile(1)), (u64::MAX, None, Some(Bound::Below(1))));
        let counts = Counts { admitted: u64::MAX, queued: 1, rejected: u64::MAX, timeout: 1, ..Counts::default() };
        assert_eq!((counts.let_in(), counts.turned_away()), (u64::MAX, u64::MAX));
    }

    #[test]
    fn rates_are_of_two_looks_at_one_start_of_the_server() {
        let before = golden();
        let mut now = golden();
        now.written += 2.0;
        now.groups[0].counts.rejected += 7;
        let rate = |now: &Admission| now.rate(&before, "php", |counts| counts.rejected);
        assert_eq!(rate(&now), Some(3.5));
        now.started = now.started.map(|started| started + 1.0);
        assert_eq!(rate(&now), None);
        assert_eq!(rate(&golden()), None);
        let php = &before.groups[0];
        assert_eq!(before.mean_rate(php, Counts::turned_away).map(|rate| (rate * 1e6).round()), Some(28331.0));
    }
}
