//! What is derived from loads made by hand.

use super::derived::LATE_US;
use super::*;
use crate::SECOND;
use crate::plan::Timetable;
use crate::plan::{Arrivals, LoadSpec, Log, Pace};
use std::sync::Arc;

/// A load of `good` answers of `latency_us` over ten seconds with that mean number in flight, with no doubts of its own.
fn load(connections: u32, in_flight: f64, good: u64, latency_us: u64) -> LoadResult {
    let mut total = Latency::new();
    (0..good).for_each(|_| total.record(latency_us));
    LoadResult {
        connections,
        started_ns: SECOND,
        ended_ns: 11 * SECOND,
        counts: Counts { good, ..Counts::default() },
        first_byte: total.clone(),
        total,
        in_flight_ns: (in_flight * 10.0 * SECOND as f64) as Nanos,
        generator: Generator { threads: 2, cpu_ns: SECOND, cpus: vec![1], away: None },
        ..LoadResult::empty()
    }
}

#[track_caller]
fn check(load: &LoadResult, expected: &[&str]) {
    check_of(load, &LoadSpec::of("l", "/"), expected);
}

#[track_caller]
fn check_of(load: &LoadResult, spec: &LoadSpec, expected: &[&str]) {
    let kinds: Vec<_> = load
        .doubts(spec)
        .iter()
        .map(|doubt| match doubt {
            LoadDoubt::LittleOff { .. } => "little",
            LoadDoubt::ConcurrencyMissed { .. } => "concurrency",
            LoadDoubt::GeneratorSaturated { .. } => "generator",
            LoadDoubt::FewWaves { .. } => "waves",
            LoadDoubt::RateMissed { .. } => "rate",
            LoadDoubt::LateGenerator { .. } => "late",
            LoadDoubt::TurnedAway { .. } => "turned away",
        })
        .collect();
    assert_eq!(kinds, expected);
}

/// Ten seconds of an open loop in which requests of 10 ms were sent and so many were not, and the pace it was meant to have.
fn open(sent: u64, unsent: u64, rate: f64, arrivals: Arrivals) -> (LoadResult, LoadSpec) {
    let mut load = load(1000, sent as f64 / 1000.0, sent, 10_000);
    load.open = Some(OpenLoop { arrived: sent + unsent, unsent, service: load.total.clone(), ..OpenLoop::default() });
    (load, LoadSpec { pace: Pace::Timetable(Timetable::constant(rate, arrivals)), ..LoadSpec::of("l", "/") })
}

#[test]
fn an_open_loop_is_held_to_its_rate() {
    let check = |sent, unsent, expected: &[&str]| {
        let (load, spec) = open(sent, unsent, 1000.0, Arrivals::Even);
        check_of(&load, &spec, expected);
    };
    check(10_000, 0, &[]);
    check(9_950, 50, &[]);
    check(9_850, 150, &["rate"]);
    check(0, 0, &[]);
    let (mut load, spec) = open(10_000, 0, 1000.0, Arrivals::Even);
    let open = load.open.as_mut().unwrap();
    (0..9_899).for_each(|_| open.lateness.record(100));
    (0..101).for_each(|_| open.lateness.record(5_000));
    check_of(&load, &spec, &["late"]);
}

#[test]
fn a_generator_is_late_by_what_its_requests_can_tell() {
    // So many requests in time, so many 5 ms late.
    let check = |in_time, late, expected: Option<(f64, bool)>| {
        let (mut load, spec) = open(1000, 0, 100.0, Arrivals::Even);
        let lateness = &mut load.open.as_mut().unwrap().lateness;
        (0..in_time).for_each(|_| lateness.record(100));
        (0..late).for_each(|_| lateness.record(5_000));
        let found = load.late_percentile().map(|(percent, late_us)| (percent, late_us > LATE_US));
        assert_eq!(found, expected);
        check_of(&load, &spec, if expected.is_some_and(|(_, late)| late) { &["late"] } else { &[] });
    };
    // One of a hundred is no 99th percentile; one of twenty of sixty is a 95th.
    check(98, 2, Some((95.0, false)));
    check(57, 3, Some((95.0, false)));
    check(56, 4, Some((95.0, true)));
    check(295, 4, Some((99.0, true)));
    check(10, 18, Some((50.0, true)));
    check(0, 4, None);
}

#[test]
fn a_number_of_requests_that_took_too_long_missed_its_rate() {
    let check = |rate, arrivals, expected: &[&str]| {
        let (load, spec) = open(10_000, 0, rate, arrivals);
        check_of(&LoadResult { end: LoadEnd::Requests, ..load }, &spec, expected);
    };
    // All were sent, but ten seconds are twice as long as 10 000 requests should have taken.
    check(2000.0, Arrivals::Even, &["rate"]);
    check(2000.0, Arrivals::Poisson, &["rate"]);
    check(1000.0, Arrivals::Even, &[]);
    check(1020.0, Arrivals::Even, &["rate"]);
    check(1020.0, Arrivals::Poisson, &[]);
    // Half of the ten seconds went by until the last of them timed out.
    let (load, spec) = open(10_000, 0, 2000.0, Arrivals::Even);
    let mut load = LoadResult { end: LoadEnd::Requests, ..load };
    load.unanswered.latency.record(5_000_000);
    load.counts.failed.insert(Failure::Timeout, 1);
    check_of(&load, &spec, &[]);
}

#[test]
fn chance_may_exceed_a_table() {
    let stages = vec![crate::plan::Stage { length_ns: 10 * SECOND, from: 990.0, to: 990.0 }];
    let (load, spec) = open(10_000, 0, 1000.0, Arrivals::Poisson);
    let pace = Pace::Timetable(Timetable { stages, arrivals: Arrivals::Poisson });
    let asked = LoadResult { end: LoadEnd::Requests, ..load }.asked_rate(&LoadSpec { pace, ..spec });
    assert_eq!(asked, Some(1000.0));
}

#[test]
fn a_replay_is_held_to_its_log() {
    // 1001 requests from the first to the last of so many seconds, replayed in ten.
    let of_log = |span_s: u64| {
        let (load, spec) = open(1001, 0, 1.0, Arrivals::Even);
        let log = Log {
            file: "access.log".into(),
            format: "common".to_owned(),
            speed: 1.0,
            lines: 1001,
            used: 1001,
            span_ns: span_s * SECOND,
            left_out: vec![],
            recording: Arc::default(),
        };
        let load = LoadResult { end: LoadEnd::Requests, ..load };
        (load, LoadSpec { pace: Pace::Logged, log: Some(log), ..spec })
    };
    let check = |(load, spec): (LoadResult, LoadSpec), asked: Option<f64>, expected: &[&str]| {
        assert_eq!(load.asked_rate(&spec).map(f64::round), asked);
        check_of(&load, &spec, expected);
    };
    check(of_log(10), Some(100.0), &[]);
    check(of_log(8), Some(125.0), &["rate"]);
    check(of_log(0), None, &[]);
    // Half of the ten seconds were the last one's own time.
    let (mut slow, spec) = of_log(5);
    slow.unanswered.latency.record(5_000_000);
    slow.counts.failed.insert(Failure::Timeout, 1);
    check((slow, spec), Some(200.0), &[]);
    // Of a part of a log nobody knows when it was due, unless time cut it.
    let (mut part, spec) = of_log(8);
    part.open.as_mut().unwrap().arrived = 1000;
    check((part.clone(), spec.clone()), None, &[]);
    check((LoadResult { end: LoadEnd::Duration, ..part }, spec), Some(100.0), &[]);
}

#[test]
fn what_came_after_the_window_is_in_no_rate() {
    let (mut load, spec) = open(10_000, 0, 1000.0, Arrivals::Even);
    load.counts.bytes_in = 50_000;
    load.late = Counts { good: 4_000, bytes_in: 20_000, ..Counts::default() };
    assert_eq!((load.good_in_time(), load.goodput(), load.bytes_in_rate()), (6_000, 600.0, 3_000.0));
    // All of them were sent in time.
    assert_eq!(load.sent_rate(), 1000.0);
    // Twice the latency for such a number in flight: where requests pile up Little's law says nothing.
    load.connections = 100;
    (0..10_000).for_each(|_| load.open.as_mut().unwrap().service.record(200_000));
    check_of(&load, &spec, &[]);
    load.late.good = 100;
    check_of(&load, &spec, &["little"]);
}

#[test]
fn a_sound_load_raises_no_doubt() {
    // 10 in flight, 1000 answers a second of 10 ms each: N = X R.
    check(&load(10, 10.0, 10_000, 10_000), &[]);
    assert!((load(10, 10.0, 10_000, 10_000).goodput() - 1000.0).abs() < 1e-9);
}

#[test]
fn each_doubt_has_its_reason() {
    check(&load(10, 10.0, 10_000, 5_000), &["little"]);
    check(&load(20, 10.0, 10_000, 10_000), &["concurrency"]);
    check(&load(10, 10.0, 40, 2_500_000), &["waves"]);
    let mut busy = load(10, 10.0, 10_000, 10_000);
    busy.generator.cpu_ns = 10 * SECOND;
    check(&busy, &["generator"]);
    check_of(&busy, &LoadSpec { busy_poll: true, ..LoadSpec::of("l", "/") }, &[]);
    busy.generator.cpus = vec![0, 1];
    check(&busy, &[]);
    let mut timed_out = load(10, 10.0, 10_000, 5_000);
    timed_out.counts.failed.insert(Failure::Timeout, 1);
    check(&timed_out, &[]);
}

/// Percentiles of good answers of 1 to 1000 ms, one each, beside requests that had waited so long (in ms) without one.
#[track_caller]
fn check_percentiles(at_least_ms: &[u64], expected: &[(f64, Quantile)]) {
    let mut load = load(1, 1.0, 0, 0);
    (1..=1000).for_each(|ms| load.total.record(ms * 1000));
    at_least_ms.iter().for_each(|ms| load.unanswered.latency.record(ms * 1000));
    for &(percent, expected) in expected {
        let found = load.percentile(percent).unwrap();
        let us = |quantile| match quantile {
            Quantile::Exactly(us) | Quantile::MoreThan(us) => us,
        };
        let close = us(found).abs_diff(us(expected)) <= us(expected) / 500;
        let same_kind = std::mem::discriminant(&found) == std::mem::discriminant(&expected);
        assert!(close && same_kind, "p{percent}: {found:?}, not {expected:?}");
    }
}

#[test]
fn a_percentile_among_requests_without_an_answer_is_more_than() {
    use Quantile::{Exactly, MoreThan};
    check_percentiles(&[], &[(50.0, Exactly(500_000)), (100.0, Exactly(1_000_000))]);
    // One request that had waited longer than all others changes nothing below it.
    check_percentiles(&[2000], &[(50.0, Exactly(501_000)), (99.0, Exactly(991_000)), (100.0, MoreThan(2_000_000))]);
    // As many cut off early as answered: the middle may be anywhere above what it would be if they had ended at once.
    check_percentiles(&[1; 1000], &[(40.0, MoreThan(1000)), (75.0, MoreThan(500_000))]);
}

#[test]
fn a_pipeline_is_kept_full_too() {
    let spec = |pipeline| LoadSpec { pipeline, ..LoadSpec::of("test", "/") };
    // Ten connections with 9.5 requests in flight are full; with room for four on each they are not.
    assert_eq!(load(10, 9.5, 10_000, 9_500).doubts(&spec(1)), []);
    let doubts = load(10, 9.5, 10_000, 9_500).doubts(&spec(4));
    assert!(matches!(doubts[..], [LoadDoubt::ConcurrencyMissed { asked: 40.0, .. }]), "{doubts:?}");
}

/// A load of seconds in each of which so many requests were answered by `status`, which `cause` makes a failure, and others well.
fn answered_by(status: u16, cause: Option<Failure>, seconds: &[(u64, u64)]) -> LoadResult {
    let mut load = LoadResult::empty();
    for &(refused, good) in seconds {
        let mut counts = Counts { good, statuses: [(200, good), (status, refused)].into(), ..Counts::default() };
        counts.failed.extend(cause.map(|cause| (cause, refused)));
        load.counts.merge(&counts);
        load.intervals.push(LoadInterval { start_ns: 0, length_ns: SECOND, counts, total: Latency::new().pack() });
    }
    load
}

#[test]
fn a_burst_of_refusals_is_a_firewall() {
    let found = |status, cause, seconds: &[(u64, u64)]| {
        let load = answered_by(status, cause, seconds);
        load.doubts(&LoadSpec::of("l", "/")).into_iter().find(|doubt| matches!(doubt, LoadDoubt::TurnedAway { .. }))
    };
    let told = Some(LoadDoubt::TurnedAway { answers: 20, share: 0.25 });
    let failed = Some(Failure::Status);
    // One that begins to refuse after a while: over the whole load they are few. Also where a check is what finds it.
    for (status, cause) in [(403, failed), (429, failed), (403, Some(Failure::Check))] {
        assert_eq!(found(status, cause, &[(0, 9000), (20, 60)]), told, "{status} {cause:?}");
    }
    assert_eq!(found(429, failed, &[(20, 60)]), told, "from the beginning");
    assert_eq!(found(403, failed, &[(20, 60), (21, 60)]), None, "forbidden to everybody");
    // Too small a share, too few of them, a busy server, and a page of which 403 is what is asked.
    assert_eq!(found(403, failed, &[(0, 100), (20, 100)]), None);
    assert_eq!(found(429, failed, &[(9, 1)]), None);
    assert_eq!(found(503, failed, &[(0, 90), (90, 10)]), None);
    assert_eq!(found(403, None, &[(0, 60), (20, 60)]), None);
}

#[test]
fn littles_doubt_tells_the_two_numbers_it_compared() {
    // 10 asked for, 9.5 in flight, and good answers for 5 of them: the others hung until they were cut off.
    let doubts = load(10, 9.5, 10_000, 5_000).self_check(&LoadSpec::of("l", "/"));
    let [LoadDoubt::LittleOff { achieved, computed }] = doubts[..] else { panic!("{doubts:?}") };
    assert!((achieved - 9.5).abs() < 0.01 && (computed - 5.0).abs() < 0.01, "{achieved} {computed}");
}

#[test]
fn retries_are_merged_and_absent_from_old_runs() {
    let mut counts: Counts = serde_json::from_str(
        r#"{"good":1,"failed":{"reset":2},"statuses":{"200":1},"bytes_in":3,"bytes_out":4,"connects":5}"#,
    )
    .unwrap();
    assert_eq!(counts.retries, 0);
    counts.merge(&Counts { retries: 2, ..counts.clone() });
    assert_eq!((counts.good, counts.retries), (2, 2));
    let mut stored = serde_json::to_value(load(1, 1.0, 1, 1)).unwrap();
    for field in ["retry_example", "late"] {
        stored.as_object_mut().unwrap().remove(field);
    }
    let old = serde_json::from_value::<LoadResult>(stored).unwrap();
    assert_eq!((old.retry_example, old.late), (None, Counts::default()));
}
