//! The load's first request goes alone if that is asked for: nothing else begins before a byte of an answer to it, or its end.

use crate::{check, check_until, spec};
use model::SECOND;
use model::load::{Failure, LoadResult};
use model::plan::LoadSpec;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use testkit::scripted::{Refusing, Scripted, Step, answer};

/// Counts what came before the first request was answered.
#[derive(Default)]
struct Watched {
    asked: AtomicU64,
    early: AtomicU64,
}

/// A server that does `first` with the first request and answers all others; what comes early has time to come.
fn watching(first: Vec<Step>) -> (Scripted, Arc<Watched>) {
    let watched = Arc::new(Watched::default());
    let server = Scripted::start({
        let watched = Arc::clone(&watched);
        move |_| {
            if watched.asked.fetch_add(1, Ordering::SeqCst) > 0 {
                return vec![Step::Send(answer(200, "abc"))];
            }
            std::thread::sleep(Duration::from_millis(100));
            watched.early.store(watched.asked.load(Ordering::SeqCst) - 1, Ordering::SeqCst);
            first.clone()
        }
    });
    (server, watched)
}

fn alone(threads: u32) -> LoadSpec {
    LoadSpec { first_alone: true, connections: 4, threads: Some(threads), requests: Some(40), ..spec() }
}

/// Such a load of a server that does `first` with the first request.
#[track_caller]
fn after(first: Vec<Step>, threads: u32) -> LoadResult {
    let (server, watched) = watching(first);
    let result = check(server.address(), &alone(threads));
    assert_eq!(watched.early.load(Ordering::SeqCst), 0, "with {threads} threads");
    assert_eq!(result.counts.good + result.counts.failures(), 40);
    result
}

#[test]
fn nothing_begins_before_the_first_answer() {
    let answered = after(vec![Step::Send(answer(200, "abc"))], 1);
    assert_eq!((answered.counts.good, answered.counts.connects), (40, 4));
    assert_eq!(after(vec![Step::Send(answer(200, "abc"))], 2).counts.good, 40);
}

#[test]
fn a_first_request_that_fails_holds_nobody_back() {
    for threads in [1, 2] {
        let closed = after(vec![Step::Close], threads);
        assert_eq!((closed.counts.good, closed.counts.failed.get(&Failure::ClosedEarly)), (39, Some(&1)));
        let reset = after(vec![Step::Reset], threads);
        assert_eq!((reset.counts.good, reset.counts.failed.get(&Failure::Reset)), (39, Some(&1)));
        let refused = check(Refusing::start().address(), &LoadSpec { requests: Some(8), ..alone(threads) });
        assert_eq!(refused.counts.failed.get(&Failure::Refused), Some(&8));
    }
}

#[test]
fn one_byte_of_the_first_answer_is_enough() {
    for threads in [1, 2] {
        let stop = Arc::new(AtomicBool::new(false));
        // The first answer is never complete; the others end the load.
        let server = Scripted::start({
            let stop = Arc::clone(&stop);
            move |turn| match turn.total {
                0 => vec![Step::Send(b"H".to_vec()), Step::Hang],
                total => {
                    stop.store(total >= 10, Ordering::SeqCst);
                    vec![Step::Send(answer(200, "abc"))]
                }
            }
        });
        let load = LoadSpec { requests: None, duration_ns: Some(3600 * SECOND), ..alone(threads) };
        let load = LoadSpec { timeout_ns: 3600 * SECOND, ..load };
        let result = check_until(server.address(), &load, &stop);
        assert!(result.counts.good >= 5 && result.in_flight >= 1, "{:?}", result.counts);
        assert_eq!(result.counts.failures(), 0);
    }
}
