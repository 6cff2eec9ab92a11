//! Guards: small state machines fed once a second with what the load did and what the host says; the first that trips ends
//! the trial. They protect the host and the user's time, never the result: what was measured until then counts.

use model::load::Counts;
use model::plan::Guards;
use model::reading::{Column, Reading, Span};
use model::trial::Stop;
use model::{Nanos, SECOND};

/// Failures are judged over this long.
const FAILURE_WINDOW_NS: Nanos = 3 * SECOND;
/// The share of memory-full time above which an interval counts as thrashing; the kernel documentation calls full "thrashing".
const THRASH_SHARE: f64 = 0.10;
/// Pages per second the host may swap in beyond what the server's own group reads back.
const HOST_SWAP_IN_PAGES: f64 = 256.0;
/// The host's swap-in must last this long: other processes are paged in singly all the time.
const HOST_SWAP_IN_NS: Nanos = 3 * SECOND;

/// Without a reading for this long nobody sees the host in trouble; the sampler is late by milliseconds even in a storm.
const SILENCE_NS: Nanos = 3 * SECOND;

/// The guards of one trial, or of all the short loads of one look at a server: what they have seen they remember from one load to the next.
pub(crate) struct Watchdog {
    guards: Guards,
    began_ns: Nanos,
    last: Option<Reading>,
    tripped: Option<Stop>,
    thrashed_ns: Nanos,
    swapped_in_ns: Nanos,
    failing_ns: Nanos,
}

impl Watchdog {
    pub(crate) fn new(guards: Guards, began_ns: Nanos) -> Watchdog {
        Watchdog { guards, began_ns, last: None, tripped: None, thrashed_ns: 0, swapped_in_ns: 0, failing_ns: 0 }
    }

    /// Another load begins.
    pub(crate) fn begin(&mut self, now_ns: Nanos) {
        self.began_ns = now_ns;
    }

    /// What tripped, also where the load ended before it could be stopped.
    pub(crate) fn tripped(&self) -> Option<Stop> {
        self.tripped
    }

    /// One more interval: what ended in it, how long it was, and the newest reading. Says whether the trial must end.
    pub(crate) fn check(
        &mut self,
        now_ns: Nanos,
        counts: &Counts,
        length_ns: Nanos,
        reading: Option<&Reading>,
    ) -> Option<Stop> {
        let seen_ns = reading.map_or(0, |reading| reading.at_ns).max(self.began_ns);
        let tripped = self
            .failures(counts, length_ns)
            .or_else(|| self.host(reading))
            .or_else(|| self.unwatched(now_ns.saturating_sub(seen_ns)))
            .or_else(|| (now_ns.saturating_sub(self.began_ns) >= self.guards.time_ns).then_some(Stop::TimeLimit));
        self.tripped = self.tripped.or(tripped);
        tripped
    }

    fn failures(&mut self, counts: &Counts, length_ns: Nanos) -> Option<Stop> {
        let failed = counts.failures();
        let ended = counts.good + failed;
        if ended > 0 {
            let failing = failed as f64 >= self.guards.failures * ended as f64;
            self.failing_ns = if failing { self.failing_ns + length_ns } else { 0 };
        }
        (self.failing_ns >= FAILURE_WINDOW_NS).then_some(Stop::Failures)
    }

    fn unwatched(&self, unseen_ns: Nanos) -> Option<Stop> {
        (self.guards.host && unseen_ns >= SILENCE_NS).then_some(Stop::Unwatched)
    }

    fn host(&mut self, reading: Option<&Reading>) -> Option<Stop> {
        let reading = reading?;
        let available =
            reading.get(Column::MemAvailable).zip(reading.get(Column::MemTotal)).filter(|_| self.guards.host);
        if available.is_some_and(|(free, total)| (free as f64) < self.guards.host_memory * total as f64) {
            return Some(Stop::HostMemory);
        }
        // The same again says nothing, not even that nothing happened.
        if self.last.as_ref().is_some_and(|last| last.at_ns == reading.at_ns) {
            return None;
        }
        let last = self.last.replace(reading.clone())?;
        let span = Span { from: &last, to: reading };
        let length_ns = reading.at_ns.saturating_sub(last.at_ns);
        if span.share_of_time(Column::GroupPsiMemFull).is_some_and(|share| share >= THRASH_SHARE) {
            self.thrashed_ns += length_ns;
        }
        let own = span.rate(Column::GroupRefaultAnon).unwrap_or(0.0);
        let all = span.rate(Column::SwapIn).unwrap_or(0.0);
        let foreign = all - own;
        // Read-ahead makes the host's count exceed the group's, so only a clear surplus is the host's own.
        let swapping = self.guards.host && foreign > HOST_SWAP_IN_PAGES && foreign > all / 2.0;
        self.swapped_in_ns = if swapping { self.swapped_in_ns + length_ns } else { 0 };
        if self.swapped_in_ns >= HOST_SWAP_IN_NS {
            Some(Stop::HostSwapIn)
        } else if self.thrashed_ns >= self.guards.thrash_ns {
            Some(Stop::Thrash)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::load::Failure;

    const GUARDS: Guards =
        Guards { thrash_ns: 5 * SECOND, time_ns: 60 * SECOND, failures: 0.2, host_memory: 0.05, host: true };

    /// Feeds one interval a second; each is (good, failed, columns). Says at which second which guard trips.
    fn check(seconds: impl IntoIterator<Item = (u64, u64, Vec<(Column, u64)>)>) -> Option<(u64, Stop)> {
        check_with(GUARDS, seconds)
    }

    fn check_with(
        guards: Guards,
        seconds: impl IntoIterator<Item = (u64, u64, Vec<(Column, u64)>)>,
    ) -> Option<(u64, Stop)> {
        let mut dog = Watchdog::new(guards, 0);
        for (second, (good, failed, columns)) in (1..).zip(seconds) {
            let mut reading = Reading::empty(second * SECOND);
            columns.into_iter().for_each(|(column, value)| reading.set(column, value));
            let counts = Counts { good, failed: [(Failure::Status, failed)].into(), ..Counts::default() };
            if let Some(stop) = dog.check(second * SECOND, &counts, SECOND, Some(&reading)) {
                return Some((second, stop));
            }
        }
        None
    }

    #[test]
    fn three_bad_seconds_end_a_trial_and_two_do_not() {
        assert_eq!(check((0..9).map(|_| (80, 20, vec![]))), Some((3, Stop::Failures)));
        assert_eq!(check((0..9).map(|s| (80, if s % 3 == 2 { 0 } else { 20 }, vec![]))), None);
    }

    /// Loads of two seconds each: none of them is long enough for three bad seconds.
    #[test]
    fn what_lasts_over_several_loads_is_noticed() {
        let counts = Counts { good: 1, failed: [(Failure::Status, 1)].into(), ..Counts::default() };
        let mut dog = Watchdog::new(GUARDS, 0);
        let mut second = |second: u64| {
            if second % 3 == 1 {
                dog.begin(second * SECOND);
            }
            let stop = dog.check(second * SECOND, &counts, SECOND, Some(&Reading::empty(second * SECOND)));
            (stop, dog.tripped())
        };
        assert_eq!([second(1), second(2)], [(None, None), (None, None)]);
        assert_eq!(second(4), (Some(Stop::Failures), Some(Stop::Failures)));
        // What ends with the last interval of a load is not forgotten.
        let mut dog = Watchdog::new(GUARDS, 0);
        let mut low = Reading::empty(SECOND);
        low.set(Column::MemTotal, 1000);
        low.set(Column::MemAvailable, 49);
        let calm = Counts { good: 1, ..Counts::default() };
        assert_eq!(dog.check(SECOND, &calm, SECOND, Some(&low)), Some(Stop::HostMemory));
        assert_eq!(dog.tripped(), Some(Stop::HostMemory));
    }

    #[test]
    fn a_silent_sampler_ends_a_trial() {
        let mut dog = Watchdog::new(GUARDS, SECOND);
        let counts = Counts { good: 1, ..Counts::default() };
        let mut check = |now: u64, read: Option<u64>| {
            let reading = read.map(|at| Reading::empty(at * SECOND));
            dog.check(now * SECOND, &counts, SECOND, reading.as_ref())
        };
        assert_eq!([check(2, None), check(3, Some(3)), check(5, Some(3))], [None; 3]);
        assert_eq!(check(6, Some(3)), Some(Stop::Unwatched));
    }

    #[test]
    fn thrash_is_the_groups_own() {
        let second = |s: u64| (1, 0, vec![(Column::GroupPsiMemFull, s * 500_000), (Column::PsiMemFull, s * 500_000)]);
        assert_eq!(check((0..9).map(second)), Some((6, Stop::Thrash)));
        assert_eq!(check((0..9).map(|s| (1, 0, vec![(Column::PsiMemFull, s * 500_000)]))), None);
    }

    #[test]
    fn the_servers_own_swapping_is_not_the_hosts() {
        let pages =
            |own: u64| move |s: u64| (1, 0, vec![(Column::SwapIn, s * 1000), (Column::GroupRefaultAnon, s * own)]);
        assert_eq!(check((0..9).map(pages(990))), None);
        assert_eq!(check((0..9).map(pages(10))), Some((4, Stop::HostSwapIn)));
    }

    /// As ab goes on beside a host that swaps, is full, and answers with nothing but failures.
    #[test]
    fn without_guards_nothing_ends_a_trial() {
        let worst =
            |s: u64| (0, 9, vec![(Column::SwapIn, s * 1000), (Column::MemTotal, 1000), (Column::MemAvailable, 1)]);
        assert_eq!(check_with(Guards::NONE, (0..900).map(worst)), None);
        let mut dog = Watchdog::new(Guards::NONE, 0);
        assert_eq!(dog.check(900 * SECOND, &Counts::default(), SECOND, None), None);
    }

    #[test]
    fn a_full_host_and_a_long_trial_end() {
        let low = |_| (1, 0, vec![(Column::MemTotal, 1000), (Column::MemAvailable, 49)]);
        assert_eq!(check((0..3).map(low)), Some((1, Stop::HostMemory)));
        assert_eq!(check((0..90).map(|_| (1, 0, vec![]))), Some((60, Stop::TimeLimit)));
    }
}
