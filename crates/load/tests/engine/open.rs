//! Open loops: requests come by a timetable, and every one of them is accounted for.

use crate::{check, check_until, friendly, spec, target};
use load::{Ending, Record};
use model::load::{Failure, LoadEnd, Quantile};
use model::plan::{Arrivals, LoadSpec, Pace, Timetable};
use model::{Nanos, SECOND};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use testkit::scripted::{Scripted, Step, answer};

const MS: Nanos = 1_000_000;

/// So many requests a second, for so long.
fn rate(rate: f64, duration_ns: Nanos) -> LoadSpec {
    let pace = Pace::Timetable(Timetable::constant(rate, Arrivals::Even));
    LoadSpec { pace, requests: None, duration_ns: Some(duration_ns), ..spec() }
}

fn records(server: &Scripted, spec: &LoadSpec) -> Vec<Record> {
    load::records(spec, &target(server.address()), &[], &AtomicBool::new(false)).expect("the load starts")
}

#[test]
fn every_arrival_is_sent_when_the_server_keeps_up() {
    let server = friendly();
    for (connections, threads) in [(1, 1), (4, 2), (8, 3)] {
        let load = LoadSpec { connections, threads: Some(threads), ..rate(500.0, 400 * MS) };
        let result = check(server.address(), &load);
        let open = result.open.as_ref().unwrap();
        // On a busy machine the last one may find its connection not free in time.
        assert_eq!((open.arrived, result.counts.good + open.unsent), (200, 200));
        assert!(open.unsent < 100, "{}", open.unsent);
        assert_eq!((open.service.len(), result.unanswered.latency.len()), (result.counts.good, open.unsent));
        assert_eq!(result.end, LoadEnd::Duration);
        assert!(result.ended_ns - result.started_ns >= 400 * MS, "the window is as long as it was asked for");
    }
}

#[test]
fn a_number_of_requests_ends_an_open_loop_too() {
    let server = friendly();
    let load = LoadSpec { requests: Some(37), connections: 3, threads: Some(2), ..rate(1000.0, 60 * SECOND) };
    let result = check(server.address(), &load);
    assert_eq!((result.counts.good, result.end.clone()), (37, LoadEnd::Requests));
    assert_eq!(server.requests(), 37);
}

#[test]
fn latency_counts_from_when_a_request_was_due() {
    // One connection; the 20th answer takes 300 ms, in which 60 more requests fall due.
    let server = Scripted::start(|turn| {
        let delay = Duration::from_millis(if turn.total == 19 { 300 } else { 0 });
        vec![Step::Wait(delay), Step::Send(answer(200, "abc"))]
    });
    let records = records(&server, &rate(200.0, 700 * MS));
    assert_eq!(records.len(), 140);
    assert!(records.windows(2).all(|pair| pair[1].due_ns - pair[0].due_ns == 5 * MS), "in order, every 5 ms");
    assert!(records.iter().all(|record| record.due_ns <= record.start_ns && record.ending == Ending::Good));
    let slow = records[19];
    assert!(slow.end_ns - slow.start_ns >= 300 * MS);
    // Whoever was due meanwhile began only then, however fast its own answer was.
    let waited = records.iter().filter(|record| record.due_ns > slow.start_ns && record.due_ns < slow.end_ns);
    let waited: Vec<_> = waited.collect();
    assert!(waited.len() >= 59, "{}", waited.len());
    assert!(waited.iter().all(|record| record.start_ns >= slow.end_ns));
    let result = check(server.address(), &rate(200.0, 100 * MS));
    assert_eq!(result.percentile(50.0), result.total.percentile_us(50.0).map(Quantile::Exactly));
}

#[test]
fn what_is_never_answered_is_more_than() {
    let silent = Scripted::always(vec![Step::Hang]);
    let load = LoadSpec { connections: 2, timeout_ns: 100 * MS, ..rate(100.0, 250 * MS) };
    let result = check(silent.address(), &load);
    let open = result.open.as_ref().unwrap();
    let timeouts = result.counts.failed[&Failure::Timeout];
    assert_eq!((open.arrived, result.counts.good, result.in_flight), (25, 0, 0));
    assert_eq!(timeouts + open.unsent, 25);
    assert!(open.unsent > 10, "two connections time out every 100 ms: {}", open.unsent);
    let unanswered = &result.unanswered;
    assert_eq!((unanswered.latency.len(), unanswered.first_byte.len(), unanswered.service.len()), (25, 25, timeouts));
    let Some(Quantile::MoreThan(us)) = result.percentile(50.0) else { panic!("{:?}", result.percentile(50.0)) };
    assert!(us > 10_000, "{us}");
}

#[test]
fn answers_after_the_window_are_no_throughput_of_it() {
    // Whatever comes takes longer than the window.
    let slow = |ms| Scripted::always(vec![Step::Wait(Duration::from_millis(ms)), Step::Send(answer(200, "abc"))]);
    let server = slow(300);
    let result = check(server.address(), &LoadSpec { connections: 30, ..rate(200.0, 100 * MS) });
    assert!(result.counts.good > 0);
    assert_eq!((result.late.clone(), result.goodput()), (result.counts.clone(), 0.0));
    assert_eq!(result.ended_ns - result.started_ns, 100 * MS);
    // In a closed loop nothing does: it waits for nobody. Two answers can never come within the window; one has half a second to spare.
    let server = slow(600);
    let result = check(server.address(), &LoadSpec { pace: Pace::WhenFree, ..rate(200.0, 1100 * MS) });
    assert_eq!((result.late, result.counts.good), (Default::default(), 1));
}

#[test]
fn stopping_the_wait_for_the_last_answers_makes_no_window_longer() {
    let server = Scripted::always(vec![Step::Hang]);
    let stop = AtomicBool::new(false);
    let load = LoadSpec { connections: 9, ..rate(20.0, 200 * MS) };
    let result = std::thread::scope(|scope| {
        scope.spawn(|| {
            while server.requests() == 0 {
                std::thread::yield_now();
            }
            // From the first request on the window takes no longer than that.
            std::thread::sleep(Duration::from_millis(250));
            stop.store(true, Ordering::Relaxed);
        });
        check_until(server.address(), &load, &stop)
    });
    assert_eq!((result.end, result.ended_ns - result.started_ns), (LoadEnd::Stopped, 200 * MS));
}

#[test]
fn stopping_counts_what_was_due_until_then() {
    let server = Scripted::always(vec![Step::Hang]);
    let stop = AtomicBool::new(false);
    let load = rate(200.0, 60 * SECOND);
    let result = std::thread::scope(|scope| {
        scope.spawn(|| {
            while server.requests() == 0 {
                std::thread::yield_now();
            }
            stop.store(true, Ordering::Relaxed);
        });
        check_until(server.address(), &load, &stop)
    });
    assert_eq!((result.end.clone(), result.in_flight), (LoadEnd::Stopped, 1));
    let open = result.open.as_ref().unwrap();
    let window = result.ended_ns - result.started_ns;
    assert!(open.arrived <= window / (5 * MS) + 1, "{} within {window} ns", open.arrived);
    assert_eq!(open.arrived, 1 + open.unsent);
}

#[test]
fn a_connection_closed_while_idle_costs_nothing() {
    // Each connection is closed after its answer, but the answer does not say so; arrivals are far apart.
    let server = Scripted::always(vec![Step::Send(answer(200, "abc")), Step::Close]);
    let result = check(server.address(), &rate(50.0, 200 * MS));
    assert_eq!((result.counts.good, result.counts.connects, result.counts.retries), (10, 10, 0));
}
