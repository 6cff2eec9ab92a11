//! Loads that run in every trial beside the cell's own: each in a thread of its own, with connections of its own, at its own rate.
//!
//! They begin just before the measured window and end with it. What is on its way then is waited for a little: cut off, it would be
//! slow answers that are missing, and those are what such a load is there to show.

use load::{Control, LoadError, Target, run_until_closed};
use model::plan::LoadSpec;
use model::trial::Beside;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

/// The longest wait for the last answers.
const LAST_ANSWERS: Duration = Duration::from_secs(5);

/// Whom they ask, and from where.
pub(crate) struct Lane<'a> {
    pub(crate) target: &'a Target,
    pub(crate) cpus: &'a [u32],
    pub(crate) interrupted: &'a AtomicBool,
}

impl Lane<'_> {
    /// Does `work` with those loads beside it.
    pub(crate) fn beside<T>(
        &self,
        loads: &[LoadSpec],
        work: impl FnOnce() -> T,
    ) -> (T, Result<Vec<Beside>, LoadError>) {
        self.waiting(LAST_ANSWERS, loads, work)
    }

    fn waiting<T>(
        &self,
        patience: Duration,
        loads: &[LoadSpec],
        work: impl FnOnce() -> T,
    ) -> (T, Result<Vec<Beside>, LoadError>) {
        let (closed, stop) = (AtomicBool::new(false), AtomicBool::new(false));
        let (over, overs) = channel();
        thread::scope(|scope| {
            let (closed, stop) = (&closed, &stop);
            let mut running = Vec::new();
            // Also when a thread cannot be had, or the work panics, the others end.
            let leave = Leave(stop);
            for spec in loads {
                let over = over.clone();
                let send = move || {
                    let mut control = Control { stop, on_interval: &mut |_| () };
                    let Lane { target, cpus, interrupted } = self;
                    let sent = run_until_closed(spec, target, cpus, &mut control, interrupted, closed);
                    let _ = over.send(());
                    sent.map(|load| Beside { name: spec.name.clone(), load })
                };
                running.push(thread::Builder::new().name("beside".to_owned()).spawn_scoped(scope, send));
            }
            drop(over);
            let done = work();
            closed.store(true, Ordering::Relaxed);
            let end = Instant::now() + patience;
            // Until the last of them hangs up.
            while overs.recv_timeout(end.saturating_duration_since(Instant::now())).is_ok() {}
            drop(leave);
            let sent = running.into_iter().map(|started| match started {
                Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
                Err(source) => Err(LoadError::Kernel { what: "further thread", source }),
            });
            (done, sent.collect())
        })
    }
}

/// Ends the loads.
struct Leave<'a>(&'a AtomicBool);

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::load::{LoadEnd, LoadResult};
    use model::plan::{Arrivals, Pace, Timetable};
    use testkit::scripted::{Scripted, Step, answer};

    /// Loads at so many requests a second each, until the server was asked so often.
    fn check(rates: &[f64], steps: Vec<Step>, until: u64, patience: Duration) -> Vec<LoadResult> {
        let server = Scripted::always(steps);
        let spec = |rate: &f64| LoadSpec {
            pace: Pace::Timetable(Timetable::constant(*rate, Arrivals::Even)),
            connections: 8,
            ..LoadSpec::of(&format!("at {rate}"), "/")
        };
        let loads: Vec<LoadSpec> = rates.iter().map(spec).collect();
        let target = Target::new(server.address(), "h");
        let lane = Lane { target: &target, cpus: &[], interrupted: &AtomicBool::new(false) };
        let work = || {
            while server.requests() < until {
                thread::yield_now();
            }
            until
        };
        let (done, sent) = lane.waiting(patience, &loads, work);
        let sent = sent.unwrap();
        assert!(sent.iter().zip(&loads).all(|(beside, load)| beside.name == load.name), "in the order of the plan");
        assert_eq!(done, until);
        sent.into_iter().map(|beside| beside.load).collect()
    }

    #[test]
    fn each_is_counted_by_itself_and_ends_with_the_work() {
        let sent = check(&[200.0, 20.0], vec![Step::Send(answer(200, "abc"))], 60, Duration::from_secs(60));
        for load in &sent {
            let open = load.open.as_ref().unwrap();
            assert_eq!((load.end.clone(), load.in_flight, load.counts.failures()), (LoadEnd::Duration, 0, 0));
            assert_eq!((open.arrived, load.connections), (load.counts.good + open.unsent, 8));
        }
        let arrived = |load: &LoadResult| load.open.as_ref().map_or(0, |open| open.arrived);
        assert!(arrived(&sent[0]) > arrived(&sent[1]), "{} {}", arrived(&sent[0]), arrived(&sent[1]));
    }

    #[test]
    fn answers_that_never_come_are_not_waited_for_for_ever() {
        let sent = check(&[200.0], vec![Step::Hang], 3, Duration::ZERO);
        assert_eq!((sent[0].end.clone(), sent[0].counts.good), (LoadEnd::Stopped, 0));
        assert!(sent[0].in_flight >= 3);
    }

    #[test]
    fn without_such_loads_there_is_only_the_work() {
        assert!(check(&[], vec![Step::Hang], 0, Duration::from_secs(60)).is_empty());
    }
}
