//! Where a load is sent from: under guards, with the sampler beside it.

use crate::event::Event;
use crate::guard::Watchdog;
use load::{LoadError, Target, monotonic_ns};
use model::load::{LoadEnd, LoadInterval, LoadResult};
use model::plan::{Guards, LoadSpec, Pace, Plan, Warmup};
use model::reading::Reading;
use model::trial::Stop;
use model::{Nanos, SECOND};
use monitor::Sampler;
use std::sync::atomic::{AtomicBool, Ordering};

/// A reading every 200 ms: windows of a second or two need more than the two readings that one a second would give.
pub(crate) const READING_PERIOD_NS: Nanos = SECOND / 5;
/// Readings that are kept at most, of about 700 bytes of locked memory each: 11 hours.
const MOST_READINGS: u64 = 200_000;
/// Readings go on for no longer than this before and after the loads: while they start and end.
const READING_SLACK_NS: Nanos = 60 * SECOND;

/// What the loads of one trial have in common.
pub(crate) struct Post<'a> {
    pub(crate) target: &'a Target,
    pub(crate) cpus: &'a [u32],
    pub(crate) guards: Guards,
    pub(crate) sampler: &'a Sampler,
    pub(crate) interrupted: &'a AtomicBool,
}

impl Post<'_> {
    /// One load to its end, or to where a guard or the user stops it. Told every second: what happened in it, and the host's
    /// newest reading.
    pub(crate) fn load(
        &self,
        spec: &LoadSpec,
        on_second: &mut dyn FnMut(&LoadInterval, Option<&Reading>),
    ) -> Result<(LoadResult, Option<Stop>), LoadError> {
        let stop = AtomicBool::new(false);
        let mut why = None;
        let mut dog = Watchdog::new(self.guards, monotonic_ns());
        let mut watch = |interval: &LoadInterval| {
            let reading = self.sampler.latest();
            let tripped = dog.check(monotonic_ns(), &interval.counts, interval.length_ns, reading.as_ref());
            if why.is_none() && tripped.is_some() {
                why = tripped;
                stop.store(true, Ordering::Relaxed);
            }
            on_second(interval, reading.as_ref());
        };
        let mut control = load::Control { stop: &stop, on_interval: &mut watch };
        let result = load::run_until(spec, self.target, self.cpus, &mut control, self.interrupted)?;
        // A guard that tripped on the very last interval stopped nothing.
        let why = match result.end {
            LoadEnd::Stopped if self.interrupted.load(Ordering::Relaxed) => Some(Stop::Interrupted),
            LoadEnd::Stopped => why,
            LoadEnd::Requests | LoadEnd::Duration => None,
        };
        Ok((result, why))
    }
}

/// Hands a reading on, if there is one.
pub(crate) fn tell_reading(reading: Option<&Reading>, on_event: &mut dyn FnMut(Event<'_>)) {
    if let Some(reading) = reading {
        on_event(Event::Reading(reading));
    }
}

/// How many readings a trial takes at most: both of its loads end by themselves or by the guard of time.
pub(crate) fn room(plan: &Plan, spec: &LoadSpec) -> usize {
    let guard = plan.guards.time_ns;
    let longest = |load: &LoadSpec| load.length_ns().map_or(guard, |length| length.min(guard));
    let warm_up = warm_up(spec, plan.warmup).as_ref().map_or(0, longest);
    let whole = longest(spec).saturating_add(warm_up).saturating_add(READING_SLACK_NS);
    whole.div_ceil(READING_PERIOD_NS).min(MOST_READINGS) as usize
}

pub(crate) fn warm_up(spec: &LoadSpec, warmup: Warmup) -> Option<LoadSpec> {
    match warmup {
        Warmup::None => None,
        Warmup::Requests(n) => Some(one_at_a_time(spec, n)),
        Warmup::Duration(length) => Some(LoadSpec { requests: None, duration_ns: Some(length), ..spec.clone() }),
    }
}

/// The same requests, so many of them one after the other.
pub(crate) fn one_at_a_time(spec: &LoadSpec, requests: u64) -> LoadSpec {
    LoadSpec {
        pace: Pace::WhenFree,
        session: None,
        connections: 1,
        pipeline: 1,
        threads: Some(1),
        requests: Some(requests),
        duration_ns: None,
        ..spec.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::plan::{Options, parse};
    use std::path::Path;

    /// Seconds that the readings of a trial have room for, under a load, a warm-up and a guard of time.
    fn check(load: &str, warm_up: &str, guard: &str, expected: u64) {
        let text = format!(
            "[server]\nkind = \"embedded\"\n[warmup]\n{warm_up}\n[guards]\ntime = \"{guard}\"\n\
             [load.l]\npath = \"/\"\nconnections = 1\n{load}\n"
        );
        let plan = parse(&text, Path::new("t.toml"), &Options::default()).unwrap().0;
        let rows = room(&plan, &plan.loads[0]) as u64;
        assert_eq!(rows * READING_PERIOD_NS, (expected + if rows < MOST_READINGS { 60 } else { 0 }) * SECOND);
    }

    #[test]
    fn there_is_room_for_the_readings_of_the_longest_trial() {
        check("duration = \"10s\"", "", "600s", 10);
        check("duration = \"10s\"", "duration = \"3s\"", "600s", 13);
        // Requests may take as long as the guard lets them.
        check("requests = 5", "requests = 1", "600s", 1200);
        check("requests = 5\nduration = \"900s\"", "duration = \"900s\"", "100s", 200);
        check("requests = 5", "", "120min", 7200);
        check("requests = 5", "", "1000min", 40_000);
    }
}
