//! Where a load is sent from: under guards, with the sampler beside it.

use crate::ExperimentError;
use crate::event::Event;
use crate::guard::Watchdog;
use load::{Target, Witness, monotonic_ns};
use model::load::{LoadEnd, LoadInterval, LoadResult};
use model::plan::{Guards, LoadSpec, Pace, Warmup};
use model::reading::Reading;
use model::trial::Stop;
use model::{Nanos, SECOND};
use monitor::Sampler;
use remote::Remote;
use std::sync::atomic::{AtomicBool, Ordering};

/// A reading every 200 ms: windows of a second or two need more than the two readings that one a second would give.
pub(crate) const READING_PERIOD_NS: Nanos = SECOND / 5;
/// Readings that the sampler's memory holds, of about 700 bytes of locked memory each: 10 minutes of them, which are collected
/// with every interval of a load, once a second.
pub(crate) const ROOM: usize = 3000;

/// What the loads of one trial have in common.
pub(crate) struct Post<'a> {
    pub(crate) target: &'a Target,
    /// The machine that sends them, if it is another one.
    pub(crate) remote: Option<&'a Remote>,
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
    ) -> Result<(LoadResult, Option<Stop>), ExperimentError> {
        self.witnessed(spec, &|| (), on_second).map(|(result, stop, _)| (result, stop))
    }

    /// The same, with a witness beside each worker of this machine.
    pub(crate) fn witnessed<W: Witness>(
        &self,
        spec: &LoadSpec,
        witness: &(dyn Fn() -> W + Sync),
        on_second: &mut dyn FnMut(&LoadInterval, Option<&Reading>),
    ) -> Result<(LoadResult, Option<Stop>, Vec<W>), ExperimentError> {
        self.guarded(&mut Watchdog::new(self.guards, 0), spec, witness, on_second)
    }

    /// The same under guards that have seen what was before.
    pub(crate) fn guarded<W: Witness>(
        &self,
        dog: &mut Watchdog,
        spec: &LoadSpec,
        witness: &(dyn Fn() -> W + Sync),
        on_second: &mut dyn FnMut(&LoadInterval, Option<&Reading>),
    ) -> Result<(LoadResult, Option<Stop>, Vec<W>), ExperimentError> {
        let stop = AtomicBool::new(false);
        let mut why = None;
        dog.begin(monotonic_ns());
        let mut watch = |interval: &LoadInterval| {
            self.sampler.collect();
            let reading = self.sampler.latest();
            let tripped = dog.check(monotonic_ns(), &interval.counts, interval.length_ns, reading.as_ref());
            if why.is_none() && tripped.is_some() {
                why = tripped;
                stop.store(true, Ordering::Relaxed);
            }
            on_second(interval, reading.as_ref());
        };
        let mut control = load::Control { stop: &stop, on_interval: &mut watch };
        let (result, witnesses) = match self.remote {
            Some(remote) => (remote.run(spec, self.target, self.cpus, &mut control, self.interrupted)?, Vec::new()),
            None => load::run_witnessed(spec, self.target, self.cpus, &mut control, self.interrupted, witness)?,
        };
        // A guard that tripped on the very last interval stopped nothing.
        let why = match result.end {
            LoadEnd::Stopped if self.interrupted.load(Ordering::Relaxed) => Some(Stop::Interrupted),
            // Neither the user nor a guard: the witness had enough.
            LoadEnd::Stopped => why.or(Some(Stop::Failures)),
            LoadEnd::Requests | LoadEnd::Duration => None,
        };
        Ok((result, why, witnesses))
    }
}

/// Hands a reading on, if there is one.
pub(crate) fn tell_reading(reading: Option<&Reading>, on_event: &mut dyn FnMut(Event<'_>)) {
    if let Some(reading) = reading {
        on_event(Event::Reading(reading));
    }
}

pub(crate) fn warm_up(spec: &LoadSpec, warmup: Warmup) -> Option<LoadSpec> {
    match warmup {
        Warmup::None => None,
        Warmup::Requests(n) => Some(one_at_a_time(spec, n)),
        Warmup::Duration(length) => {
            Some(LoadSpec { requests: None, duration_ns: Some(length), drains: true, ..spec.clone() })
        }
    }
}

/// What is to be said of a warm-up that a guard or the user ended before its last answers.
pub(crate) fn cut_off(warmup: &LoadResult) -> Option<String> {
    let cut = warmup.in_flight;
    let what = "the server may have worked them off in the measured window";
    (cut > 0).then(|| format!("the warm-up was ended with {cut} requests under way: {what}"))
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
