//! Loads that last until somebody says that they are over: what was sent by then is waited for.

use crate::{spec, target};
use load::{Control, run_until_closed};
use model::SECOND;
use model::load::{LoadEnd, LoadResult};
use model::plan::{Arrivals, LoadSpec, Pace, Timetable};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use testkit::scripted::{Scripted, Step, answer};

/// Two hundred requests a second over 300 connections, without an end.
fn paced() -> LoadSpec {
    let pace = Pace::Timetable(Timetable::constant(200.0, Arrivals::Even));
    LoadSpec { pace, requests: None, connections: 300, ..spec() }
}

/// The load until the server was asked for something; `then` is done when it is closed.
fn check(server: &Scripted, closed: &AtomicBool, then: impl FnOnce(&AtomicBool) + Send) -> LoadResult {
    let stop = AtomicBool::new(false);
    let before = server.requests();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while server.requests() == before {
                std::thread::sleep(Duration::from_millis(1));
            }
            closed.store(true, Ordering::Relaxed);
            then(&stop);
        });
        let mut control = Control { stop: &stop, on_interval: &mut |_| () };
        let no = AtomicBool::new(false);
        run_until_closed(&paced(), &target(server.address()), &[], &mut control, &no, closed).expect("it starts")
    })
}

#[test]
fn what_was_sent_before_the_end_is_waited_for() {
    let closed = Arc::new(AtomicBool::new(false));
    let over = Arc::clone(&closed);
    // No answer comes before the load is over.
    let server = Scripted::start(move |_| {
        while !over.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(1));
        }
        vec![Step::Send(answer(200, "abc"))]
    });
    let result = check(&server, &closed, |_| ());
    let open = result.open.as_ref().unwrap();
    assert_eq!((result.end, result.in_flight, result.counts.failures()), (LoadEnd::Duration, 0, 0));
    assert!(result.counts.good > 0);
    assert_eq!(open.arrived, result.counts.good + open.unsent);
    // Nothing is due behind the end, and the window ends there.
    let window = result.ended_ns - result.started_ns;
    assert!(open.arrived <= window / (SECOND / 200) + 1, "{} within {window} ns", open.arrived);
}

/// A request that is due when the end is noticed is sent, and its time known: one that is not would leave every percentile open.
#[test]
fn what_is_due_at_the_end_is_sent() {
    let server = Scripted::always(vec![Step::Send(answer(200, "abc"))]);
    for _ in 0..20 {
        let result = check(&server, &AtomicBool::new(false), |_| ());
        let open = result.open.as_ref().unwrap();
        assert_eq!((open.unsent, result.counts.good), (0, open.arrived));
    }
}

#[test]
fn the_wait_can_be_ended() {
    let server = Scripted::always(vec![Step::Hang]);
    let result = check(&server, &AtomicBool::new(false), |stop| stop.store(true, Ordering::Relaxed));
    let open = result.open.as_ref().unwrap();
    assert_eq!((result.end, result.counts.good), (LoadEnd::Stopped, 0));
    assert_eq!((open.arrived, open.arrived > 0), (result.in_flight + open.unsent, true));
}
