//! When a load is over, and how its requests are shared out among workers so that their number comes out exactly.
//!
//! Workers take requests in leases, so that the shared counter is touched seldom; leases shrink towards the end, so that no
//! worker sits on requests that another one could send.

use crate::machine::monotonic_ns;
use model::Nanos;
use model::plan::LoadSpec;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// When to stop: whichever comes first. Absent means never.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StopRule {
    /// After so many requests.
    pub(crate) requests: Option<u64>,
    /// After so long.
    pub(crate) duration_ns: Option<Nanos>,
}

impl StopRule {
    /// The rule a load asks for.
    pub(crate) fn of(spec: &LoadSpec) -> StopRule {
        StopRule { requests: spec.requests, duration_ns: spec.length_ns() }
    }

    /// Whether the load ever ends by itself.
    pub(crate) fn ends(&self) -> bool {
        self.requests.is_some() || self.duration_ns.is_some()
    }

    /// The moment after which nothing counts, for a load that began at `origin`.
    pub(crate) fn deadline(&self, origin: Nanos) -> Nanos {
        self.duration_ns.map_or(Nanos::MAX, |duration| origin.saturating_add(duration))
    }
}

/// The requests nobody has taken yet.
pub(crate) struct Budget {
    // `None` is without limit.
    left: Option<AtomicU64>,
    workers: u64,
}

impl Budget {
    /// All requests of a rule, for so many workers.
    pub(crate) fn new(rule: StopRule, workers: u32) -> Budget {
        Budget { left: rule.requests.map(AtomicU64::new), workers: u64::from(workers.max(1)) }
    }

    fn lease(&self) -> u64 {
        let Some(left) = &self.left else { return u64::MAX };
        let size = |left: u64| (left / (self.workers * 8)).clamp(1, LARGEST_LEASE).min(left);
        // Nothing else is ordered by this counter.
        left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| Some(left - size(left))).map_or(0, size)
    }
}

/// One worker's share.
pub(crate) struct Allowance<'a> {
    budget: &'a Budget,
    leased: u64,
}

impl<'a> Allowance<'a> {
    /// An empty share; the first request leases.
    pub(crate) fn of(budget: &'a Budget) -> Allowance<'a> {
        Allowance { budget, leased: 0 }
    }

    /// Whether another request may begin; if so, it is taken.
    pub(crate) fn take(&mut self) -> bool {
        if self.leased == 0 {
            self.leased = self.budget.lease();
        }
        let granted = self.leased > 0;
        self.leased -= u64::from(granted);
        granted
    }
}

/// Somebody wants the load to end now.
pub(crate) struct Halt<'a> {
    /// The caller.
    pub(crate) asked: &'a AtomicBool,
    /// Whoever else may end it: the user, where the caller is a guard.
    pub(crate) also: Option<&'a AtomicBool>,
    /// The engine itself, when it cannot start all its threads or a worker's witness has seen enough.
    pub(crate) broken: AtomicBool,
    /// Nothing further is due: whoever knows better than the load itself when it is over.
    pub(crate) closed: Option<&'a AtomicBool>,
}

impl Halt<'_> {
    /// Looked at once per wake-up.
    pub(crate) fn is_set(&self) -> bool {
        let is_set = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        is_set(self.asked) || is_set(&self.broken) || self.also.is_some_and(is_set)
    }

    /// Whether nothing is due any more, though the last answers may be waited for.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.is_some_and(|flag| flag.load(Ordering::Relaxed))
    }
}

/// What the other workers wait behind while a load's first request goes alone.
#[derive(Default)]
pub(crate) struct Gate {
    open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    /// Whether nobody has to wait any more.
    pub(crate) fn is_open(&self) -> bool {
        *self.lock()
    }

    /// Lets everybody go.
    pub(crate) fn open(&self) {
        *self.lock() = true;
        self.opened.notify_all();
    }

    /// Waits until it is open, somebody wants the load to end, or its end has come.
    pub(crate) fn wait(&self, halt: &Halt<'_>, deadline: Nanos) {
        let mut open = self.lock();
        while !*open && !halt.is_set() && monotonic_ns() < deadline {
            let left = Duration::from_nanos(deadline.saturating_sub(monotonic_ns()).min(LOOK_FOR_HALT));
            (open, _) = self.opened.wait_timeout(open, left).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How late a wish to stop may be seen.
pub(crate) const LOOK_FOR_HALT: Nanos = 20_000_000;

const LARGEST_LEASE: u64 = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    /// How many requests each of `workers` gets when they ask in turn until nobody gets any.
    fn check(requests: u64, workers: u32) -> Vec<u64> {
        let budget = Budget::new(StopRule { requests: Some(requests), duration_ns: None }, workers);
        let mut shares: Vec<_> = (0..workers).map(|_| (Allowance::of(&budget), 0)).collect();
        while shares.iter_mut().any(|(allowance, taken)| {
            let granted = allowance.take();
            *taken += u64::from(granted);
            granted
        }) {
            shares.rotate_left(1);
        }
        shares.into_iter().map(|(_, taken)| taken).collect()
    }

    #[test]
    fn the_number_of_requests_is_exact() {
        for requests in [0, 1, 2, 7, 40, 1000, 123_457] {
            for workers in [1, 2, 3, 16] {
                assert_eq!(check(requests, workers).iter().sum::<u64>(), requests, "{requests} over {workers}");
            }
        }
    }

    #[test]
    fn workers_that_ask_equally_often_get_about_equally_much() {
        let shares = check(100_000, 4);
        assert!(shares.iter().all(|&share| (24_000..26_000).contains(&share)), "{shares:?}");
    }

    #[test]
    fn without_a_number_there_is_no_end() {
        let rule = StopRule { requests: None, duration_ns: Some(5) };
        let budget = Budget::new(rule, 1);
        let mut allowance = Allowance::of(&budget);
        assert!((0..10_000).all(|_| allowance.take()));
        assert_eq!((rule.deadline(10), rule.deadline(Nanos::MAX)), (15, Nanos::MAX));
    }
}
