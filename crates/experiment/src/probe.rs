//! An independent visitor beside a load: a request now and then, each on a new connection, and what came of it.
//!
//! The load's own connections are kept open and its requests stand in line with each other; whoever comes by meets neither.
//! What the visitor sees is counted apart and never enters the load's numbers.

use load::{Control, LoadError, Target};
use model::load::{LoadInterval, LoadResult};
use model::plan::{Arrivals, LoadSpec, Pace, Stage, Timetable};
use model::{Nanos, SECOND};
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::thread;

/// A visit waits for no other: there may be so many at once.
const AT_ONCE: u64 = 64;
/// As long as anything lasts.
const EVER: Nanos = 365 * 86_400 * SECOND;

/// What a visitor does who comes by `every` so often while `spec` goes on: the same request in the same way, on a new connection
/// each time.
pub(crate) fn spec(spec: &LoadSpec, every: Nanos) -> LoadSpec {
    let rate = SECOND as f64 / every.max(1) as f64;
    // The first visit is not in the crowd that a load begins with, and a load that is over at once has none.
    let pause = Stage { length_ns: every / 2, from: 0.0, to: 0.0 };
    let visits = Stage { length_ns: Nanos::MAX, from: rate, to: rate };
    // Of users it is the page that is asked for.
    let mix = if spec.session.is_some() { spec.mix[..1].to_vec() } else { spec.mix.clone() };
    let at_once = (spec.timeout_ns / every.max(1) + 1).min(AT_ONCE);
    LoadSpec {
        name: "probe".to_owned(),
        mix,
        session: None,
        pace: Pace::Timetable(Timetable { stages: vec![pause, visits], arrivals: Arrivals::Even }),
        connections: u32::try_from(at_once).unwrap_or(1),
        pipeline: 1,
        threads: Some(1),
        requests: None,
        duration_ns: Some(spec.length_ns().unwrap_or(EVER)),
        keep_alive: false,
        expect: Vec::new(),
        cookies: false,
        busy_poll: false,
        ..spec.clone()
    }
}

/// Does `work` with a visitor beside it, who leaves when it is done. Visits still on their way then are in flight. What the
/// visitor saw is also told second by second to `visits`, should anybody listen there.
pub(crate) fn beside<T>(
    visitor: Option<&LoadSpec>,
    target: &Target,
    visits: Sender<LoadInterval>,
    work: impl FnOnce() -> T,
) -> (T, Option<Result<LoadResult, LoadError>>) {
    let Some(visitor) = visitor else { return (work(), None) };
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let stop = &stop;
        let visit = move || {
            let mut tell = |interval: &LoadInterval| drop(visits.send(interval.clone()));
            let mut control = Control { stop, on_interval: &mut tell };
            load::run(visitor, target, &[], &mut control)
        };
        let started = thread::Builder::new().name("probe".to_owned()).spawn_scoped(scope, visit);
        let leave = Leave(stop);
        let done = work();
        drop(leave);
        let seen = match started {
            Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
            Err(source) => Err(LoadError::Kernel { what: "further thread", source }),
        };
        (done, Some(seen))
    })
}

/// Ends the visits, also when the work beside them panics: its panic would wait for them.
struct Leave<'a>(&'a AtomicBool);

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::load::Failure;
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;
    use std::sync::mpsc::channel;
    use testkit::scripted::{Refusing, Scripted, Step, answer};

    const EVERY: Nanos = SECOND / 1000;

    /// Visits one millisecond apart until the server was asked so often; what the visitor saw.
    fn check(steps: Vec<Step>, until: u64) -> (LoadResult, Scripted) {
        let asked = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&asked);
        let server = Scripted::start(move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
            steps.clone()
        });
        let target = Target::new(server.address(), "h");
        let visitor = spec(&LoadSpec { pipeline: 4, ..LoadSpec::of("l", "/") }, EVERY);
        let work = || {
            while asked.load(Ordering::Relaxed) < until {
                thread::yield_now();
            }
        };
        let ((), seen) = beside(Some(&visitor), &target, channel().0, work);
        (seen.unwrap().unwrap(), server)
    }

    #[test]
    fn every_visit_has_a_connection_of_its_own() {
        let (seen, server) = check(vec![Step::Send(answer(200, "abc"))], 20);
        assert!(seen.counts.good >= 10 && seen.counts.failures() == 0, "{:?}", seen.counts);
        assert_eq!(server.accepted(), server.requests());
        assert_eq!(seen.connect.len(), seen.counts.connects);
    }

    #[test]
    fn a_visit_that_fails_is_counted_and_one_that_hangs_holds_up_no_other() {
        let (seen, _) = check(vec![Step::Send(answer(503, "no"))], 2 * AT_ONCE);
        assert!(seen.counts.failed[&Failure::Status] >= AT_ONCE - 1 && seen.counts.good == 0, "{:?}", seen.counts);
        let (seen, _) = check(vec![Step::Hang], 30);
        assert_eq!((seen.counts.good, seen.counts.failures()), (0, 0));
        // Those of which the server has not read a word by then may be more.
        assert!(seen.in_flight >= 30, "{}", seen.in_flight);
    }

    #[test]
    fn without_a_visitor_there_is_only_the_work() {
        let refusing = Refusing::start();
        let (done, seen) = beside(None, &Target::new(refusing.address(), "h"), channel().0, || 5);
        assert_eq!((done, seen.is_none()), (5, true));
        let visitor = LoadSpec { mix: vec![], ..spec(&LoadSpec::of("l", "/"), SECOND) };
        let (_, seen) = beside(Some(&visitor), &Target::new(refusing.address(), "h"), channel().0, || ());
        assert!(seen.unwrap().unwrap_err().to_string().contains("nothing to ask for"));
    }

    #[test]
    fn a_load_that_is_over_at_once_has_no_visitor() {
        let server = Scripted::always(vec![Step::Send(answer(200, "abc"))]);
        let visitor = spec(&LoadSpec::of("l", "/"), 3600 * SECOND);
        let (_, seen) = beside(Some(&visitor), &Target::new(server.address(), "h"), channel().0, || ());
        assert_eq!((seen.unwrap().unwrap().sent(), server.accepted()), (0, 0));
    }
}
