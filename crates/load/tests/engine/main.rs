//! The loops, closed and open, against a server that follows a script.
//!
//! Every run goes through [`check`], which asks the server's own counts and whatever must hold for any load.

mod alone;
mod asking;
mod checking;
mod closing;
mod counting;
mod early;
mod failing;
mod open;
mod timing;
mod tls;
mod users;
mod ways;
mod witness;

use load::{Control, Target};
use model::SECOND;
use model::load::{Counts, LoadInterval, LoadResult};
use model::plan::LoadSpec;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use testkit::scripted::{Scripted, Step, answer};

/// One keep-alive connection that sends one request.
fn spec() -> LoadSpec {
    LoadSpec { requests: Some(1), timeout_ns: 20 * SECOND, ..LoadSpec::of("test", "/") }
}

fn target(address: SocketAddr) -> Target {
    Target::new(address, &address.to_string())
}

/// The one door: runs a load and checks what must hold whatever happened.
fn check(address: SocketAddr, spec: &LoadSpec) -> LoadResult {
    check_until(address, spec, &AtomicBool::new(false))
}

fn check_until(address: SocketAddr, spec: &LoadSpec, stop: &AtomicBool) -> LoadResult {
    let mut live: Vec<LoadInterval> = Vec::new();
    let mut on_interval = |interval: &LoadInterval| live.push(interval.clone());
    let result = load::run(spec, &target(address), &[], &mut Control { stop, on_interval: &mut on_interval })
        .expect("the load starts");

    let mut sum = Counts::default();
    result.intervals.iter().for_each(|interval| sum.merge(&interval.counts));
    assert_eq!(sum, result.counts, "intervals add up");
    let told = |intervals: &[LoadInterval]| -> Vec<_> {
        intervals.iter().map(|interval| (interval.start_ns, interval.length_ns, interval.counts.clone())).collect()
    };
    assert_eq!(told(&live), told(&result.intervals), "told live what is kept");
    for pair in result.intervals.windows(2) {
        assert_eq!(pair[0].start_ns + pair[0].length_ns, pair[1].start_ns, "no gap between intervals");
    }
    assert_eq!(result.total.len(), result.counts.good, "failures have no latency");
    assert_eq!(result.first_byte.len(), result.counts.good);
    assert_eq!(result.connect.len(), result.counts.connects);
    assert!(
        result.examples.keys().eq(result.counts.failed.keys()),
        "each cause has its example: {:?}",
        result.examples
    );
    assert!(result.started_ns <= result.ended_ns);
    assert!(result.concurrency() <= f64::from(result.connections * spec.pipeline) + 1e-9);
    if let (Some(requests), None) = (spec.requests, &spec.session) {
        let begun = result.counts.good + result.counts.failures() + result.in_flight;
        assert!(begun <= requests, "{begun} of {requests}");
    }
    result
}

/// A server that answers every request with 200 and three bytes.
fn friendly() -> Scripted {
    Scripted::always(vec![Step::Send(answer(200, "abc"))])
}
