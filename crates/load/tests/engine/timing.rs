//! When things happen: windows, intervals, latencies and timeouts. Nothing here fails because the machine is slow.

use crate::{check, friendly, spec, target};
use load::{Ending, Record};
use model::load::{Failure, LoadDoubt, LoadEnd};
use model::plan::LoadSpec;
use model::statistic::Part;
use model::threshold::{Met, Threshold, Why};
use model::{Nanos, SECOND};
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use testkit::scripted::{Scripted, Step, answer};

const MS: Nanos = 1_000_000;

fn records(server: &Scripted, spec: &LoadSpec) -> Vec<Record> {
    load::records(spec, &target(server.address()), &[], &AtomicBool::new(false)).expect("the load starts")
}

fn after(delay: Duration) -> Vec<Step> {
    vec![Step::Wait(delay), Step::Send(answer(200, "abc"))]
}

#[test]
fn a_duration_is_the_window_and_the_cut_off_are_in_flight() {
    let server = friendly();
    let load = LoadSpec { requests: None, duration_ns: Some(300 * MS), connections: 6, threads: Some(2), ..spec() };
    let result = check(server.address(), &load);
    assert_eq!((result.end.clone(), result.counts.failures()), (LoadEnd::Duration, 0));
    assert_eq!(result.in_flight, 6, "a closed loop has every connection in flight when it is cut off");
    assert!(result.ended_ns - result.started_ns <= 300 * MS);
    assert!(result.counts.good > 0);
}

#[test]
fn what_drains_leaves_nothing_behind() {
    for keep_alive in [true, false] {
        let slow = Scripted::always(after(Duration::from_secs(1)));
        let load =
            LoadSpec { requests: None, duration_ns: Some(SECOND / 2), connections: 6, threads: Some(2), ..spec() };
        let result = check(slow.address(), &LoadSpec { drains: true, keep_alive, ..load.clone() });
        // Each connection asked once, and its answer came long after the end.
        assert_eq!((result.counts.good, result.in_flight, result.counts.failures()), (6, 0, 0));
        assert_eq!(check(slow.address(), &LoadSpec { keep_alive, ..load }).in_flight, 6, "cut off");
    }
}

/// Whoever never gets an answer has its own time, and no more.
#[test]
fn what_drains_waits_no_longer_than_a_request_may_take() {
    let silent = Scripted::always(vec![Step::Hang]);
    let load = LoadSpec { requests: None, duration_ns: Some(SECOND / 2), connections: 3, drains: true, ..spec() };
    let result = check(silent.address(), &LoadSpec { timeout_ns: SECOND, ..load });
    assert_eq!((result.counts.failed.get(&Failure::Timeout), result.in_flight), (Some(&3), 0));
}

#[test]
fn a_server_that_never_answers_is_in_flight_to_the_end() {
    let silent = Scripted::always(vec![Step::Hang]);
    let load = LoadSpec { requests: None, duration_ns: Some(100 * MS), connections: 3, ..spec() };
    let result = check(silent.address(), &load);
    assert_eq!((result.in_flight, result.counts.good, result.counts.failures()), (3, 0, 0));
    // All three were in flight from the start on.
    assert!(result.concurrency() > 2.0, "{}", result.concurrency());
    assert!(
        result.unanswered.latency.is_empty(),
        "they are cut off by the load's end alone, which says nothing of the server"
    );
}

#[test]
fn a_timeout_is_the_requests_own() {
    // The fourth request gets no answer; the other connections are never idle meanwhile.
    let server =
        Scripted::start(|turn| if turn.total == 3 { vec![Step::Hang] } else { vec![Step::Send(answer(200, "abc"))] });
    let load =
        LoadSpec { requests: None, duration_ns: Some(1600 * MS), connections: 4, timeout_ns: 600 * MS, ..spec() };
    let records = records(&server, &load);
    let late: Vec<_> = records.iter().filter(|r| r.ending == Ending::Failed(Failure::Timeout)).collect();
    assert_eq!(late.len(), 1, "{late:?}");
    assert!(late[0].end_ns - late[0].start_ns >= 600 * MS);
    let meanwhile = |r: &&Record| r.ending == Ending::Good && r.end_ns > late[0].start_ns && r.end_ns < late[0].end_ns;
    assert!(records.iter().filter(meanwhile).count() > 10);
}

#[test]
fn what_timed_out_is_among_the_latencies_of_every_load() {
    // Every fourth request gets no answer.
    let hangs = |n: u64| n % 4 == 3;
    let server = Scripted::start(move |turn| match hangs(turn.total) {
        true => vec![Step::Hang],
        false => vec![Step::Send(answer(200, "abc"))],
    });
    let result = check(server.address(), &LoadSpec { requests: Some(20), timeout_ns: 200 * MS, ..spec() });
    let timeouts = result.counts.failed[&Failure::Timeout];
    assert!(timeouts >= 5 && result.counts.good + timeouts == 20, "{:?}", result.counts);
    assert_eq!(result.values_of(Part::Latency), 20);
    for (threshold, expected) in [
        ("max < 150ms", Met::No),
        ("p95 < 150ms", Met::Unknown(Why::TooFew { have: 20, needed: 59 })),
        ("p50 < 10min", Met::Yes),
        ("max < 10min", Met::Unknown(Why::CutOff)),
        ("first_byte.max < 150ms", Met::No),
        ("first_byte.mean < 10min", Met::Unknown(Why::CutOff)),
    ] {
        assert_eq!(Threshold::parse(threshold).expect("it can be read").judge(&result).met, expected, "{threshold}");
    }
}

#[test]
fn a_trickle_of_bytes_does_not_put_a_timeout_off() {
    let mut steps = vec![Step::Send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n".to_vec())];
    steps.extend((0..1000).flat_map(|_| [Step::Wait(Duration::from_millis(5)), Step::Send(b"x".to_vec())]));
    let server = Scripted::always(steps);
    let result = check(server.address(), &LoadSpec { timeout_ns: 100 * MS, ..spec() });
    assert_eq!(result.counts.failed.into_iter().collect::<Vec<_>>(), [(Failure::Timeout, 1)]);
    assert!(result.counts.bytes_in > 0);
}

#[test]
fn intervals_are_seconds_and_a_stall_shows_as_zeros() {
    // One answer, then nothing until the load is over.
    let server =
        Scripted::start(|turn| if turn.total == 1 { vec![Step::Hang] } else { vec![Step::Send(answer(200, "abc"))] });
    let load = LoadSpec { requests: None, duration_ns: Some(2300 * MS), ..spec() };
    let result = check(server.address(), &load);
    let goods: Vec<_> = result.intervals.iter().map(|interval| interval.counts.good).collect();
    let lengths: Vec<_> = result.intervals.iter().map(|interval| interval.length_ns).collect();
    assert_eq!((goods, lengths), (vec![1, 0, 0], vec![SECOND, SECOND, 300 * MS]));
}

#[test]
fn a_request_is_timed_from_its_start_to_its_last_byte() {
    let server = Scripted::always(vec![
        Step::Wait(Duration::from_millis(10)),
        Step::Send(answer(200, "abc")[..10].to_vec()),
        Step::Wait(Duration::from_millis(20)),
        Step::Send(answer(200, "abc")[10..].to_vec()),
    ]);
    let records = records(&server, &LoadSpec { requests: Some(5), ..spec() });
    assert_eq!(records.len(), 5);
    for record in &records {
        let first_byte = record.first_byte_ns.unwrap();
        assert!(first_byte - record.start_ns >= 10 * MS && record.end_ns - record.start_ns >= 30 * MS, "{record:?}");
    }
    // One slow wake-up may find both pieces at once, but hardly five.
    assert!(records.iter().any(|record| record.first_byte_ns < Some(record.end_ns)), "{records:?}");
    assert!(records[0].connect_ns.is_some() && records[1..].iter().all(|record| record.connect_ns.is_none()));
    for pair in records.windows(2) {
        assert_eq!(pair[0].end_ns, pair[1].start_ns, "the next request begins when the answer is complete");
    }
}

#[test]
fn littles_law_holds() {
    let server = Scripted::always(after(Duration::from_millis(5)));
    let spec = LoadSpec { requests: Some(800), connections: 8, ..spec() };
    let result = check(server.address(), &spec);
    let computed = result.goodput() * result.total.mean_us().unwrap() / 1e6;
    assert!((computed / result.concurrency() - 1.0).abs() < 0.05, "{computed} and {}", result.concurrency());
    assert!(result.total.range_us().unwrap().0 >= 5000);
    let about_the_law = |doubt: &LoadDoubt| matches!(doubt, LoadDoubt::LittleOff { .. } | LoadDoubt::FewWaves { .. });
    let doubts = result.self_check(&spec);
    assert!(!doubts.iter().any(about_the_law), "{doubts:?}");
}

#[test]
fn the_generators_own_time_is_told() {
    let cpus = rustix::thread::sched_getaffinity(None).unwrap();
    let cpu = (0..1024).find(|&cpu| cpus.is_set(cpu)).unwrap();
    let server = friendly();
    let (stop, mut ignore) = (AtomicBool::new(false), |_: &_| {});
    let mut control = load::Control { stop: &stop, on_interval: &mut ignore };
    let cpus = [u32::try_from(cpu).unwrap()];
    let result =
        load::run(&LoadSpec { requests: Some(500), ..spec() }, &target(server.address()), &cpus, &mut control).unwrap();
    assert_eq!((result.generator.threads, &result.generator.cpus[..]), (1, &cpus[..]));
    assert!(result.generator.cpu_ns > 0 && result.generator_share() <= 1.0, "{:?}", result.generator);
}
