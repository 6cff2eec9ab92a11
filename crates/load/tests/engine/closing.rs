//! Loads that last until somebody says that they are over: what was sent by then is waited for.

use crate::{spec, target};
use load::{Control, run_until_closed};
use model::SECOND;
use model::load::{LoadEnd, LoadResult};
use model::plan::{Arrivals, LoadSpec, Pace, Timetable};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use testkit::scripted::{Scripted, Step, answer};

/// Two hundred requests a second over 30 connections, without an end.
fn paced() -> LoadSpec {
    let pace = Pace::Timetable(Timetable::constant(200.0, Arrivals::Even));
    LoadSpec { pace, requests: None, connections: 30, ..spec() }
}

/// The load until the server was asked for something; `then` is done when it is closed.
fn check(server: &Scripted, closed: &AtomicBool, then: impl FnOnce(&AtomicBool) + Send) -> LoadResult {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while server.requests() == 0 {
                std::thread::yield_now();
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
            std::thread::yield_now();
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

#[test]
fn the_wait_can_be_ended() {
    let server = Scripted::always(vec![Step::Hang]);
    let result = check(&server, &AtomicBool::new(false), |stop| stop.store(true, Ordering::Relaxed));
    let open = result.open.as_ref().unwrap();
    assert_eq!((result.end, result.counts.good), (LoadEnd::Stopped, 0));
    assert_eq!((open.arrived, open.arrived > 0), (result.in_flight + open.unsent, true));
}
