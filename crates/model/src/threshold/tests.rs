//! Expectations as they are written, and what becomes of them.

use super::*;
use crate::SECOND;
use crate::load::{Counts, Failure, OpenLoop};

/// How a threshold is understood: metric, operator and limit; or why not.
#[track_caller]
fn check_parse(text: &str, expected: Result<(Metric, Operator, f64), &str>) {
    let found = Threshold::parse(text).map(|threshold| {
        assert_eq!(threshold.text, text.trim());
        (threshold.metric, threshold.operator, threshold.limit)
    });
    assert_eq!(found.map_err(|error| error.to_string()), expected.map_err(str::to_owned), "{text}");
}

#[test]
fn what_is_written_is_understood() {
    use Statistic::{Max, Mean, Percentile};
    let time = |part, statistic| Metric::Time(part, statistic);
    check_parse("p99 < 200ms", Ok((time(Part::Latency, Percentile(99.0)), Operator::Below, 200_000.0)));
    check_parse("p99.9<=1.5s", Ok((time(Part::Latency, Percentile(99.9)), Operator::AtMost, 1_500_000.0)));
    check_parse(" mean <500us ", Ok((time(Part::Latency, Mean), Operator::Below, 500.0)));
    check_parse("latency.max < 1min", Ok((time(Part::Latency, Max), Operator::Below, 6e7)));
    check_parse("service.p99 < 20 ms", Ok((time(Part::Service, Percentile(99.0)), Operator::Below, 20_000.0)));
    check_parse("first_byte.p50 < 5ms", Ok((time(Part::FirstByte, Percentile(50.0)), Operator::Below, 5000.0)));
    check_parse("connect.p99 < 1ms", Ok((time(Part::Connect, Percentile(99.0)), Operator::Below, 1000.0)));
    check_parse("rate >= 500/s", Ok((Metric::PerSecond(Flow::Good), Operator::AtLeast, 500.0)));
    check_parse("rate > 1500.5", Ok((Metric::PerSecond(Flow::Good), Operator::Above, 1500.5)));
    check_parse("sent/s >= 990", Ok((Metric::PerSecond(Flow::Sent), Operator::AtLeast, 990.0)));
    check_parse("bytes/s > 10M/s", Ok((Metric::PerSecond(Flow::Bytes), Operator::Above, f64::from(10 << 20))));
    check_parse("failed = 0", Ok((Metric::Count(Fate::Failed), Operator::Equal, 0.0)));
    check_parse("failed < 0.5 %", Ok((Metric::Percent(Fate::Failed), Operator::Below, 0.5)));
    check_parse("unsent == 0", Ok((Metric::Count(Fate::Unsent), Operator::Equal, 0.0)));
    check_parse("status.503 = 0", Ok((Metric::Count(Fate::Status { from: 503, to: 503 }), Operator::Equal, 0.0)));
    check_parse("status.2xx>=99%", Ok((Metric::Percent(Fate::Status { from: 200, to: 299 }), Operator::AtLeast, 99.0)));
    check_parse("retries != 0", Ok((Metric::Count(Fate::Retried), Operator::Not, 0.0)));
}

#[test]
fn what_is_wrong_is_said_in_one_line() {
    let no_operator = "compares nothing: write a metric, one of < <= > >= = != and a value, such as p99 < 200ms";
    check_parse("p99", Err(&format!("`p99` {no_operator}")));
    check_parse("", Err(&format!("`` {no_operator}")));
    check_parse("p99 ! 5ms", Err(&format!("`p99 ! 5ms` {no_operator}")));
    let percentile = "is no percentile: it lies between 0 and 100, as p99 and p99.9 do; beyond it there is max";
    check_parse("p100 < 5ms", Err(&format!("`p100` {percentile}")));
    check_parse("p0 < 5ms", Err(&format!("`p0` {percentile}")));
    check_parse("service.p9.9.9 < 5ms", Err(&format!("`p9.9.9` {percentile}")));
    check_parse("p1e1 < 5ms", Err(&format!("`p1e1` {percentile}")));
    let status = "is no status: write one from 100 to 599, as in status.503, or a class, as in status.5xx";
    for wrong in ["5", "700", "9xx", "0xx", "5x", "éx", "+1x"] {
        check_parse(&format!("status.{wrong} = 0"), Err(&format!("`{wrong}` {status}")));
    }
    let time = "write a time with its unit: us, ms, s or min, such as 200ms";
    check_parse("p99 < 200", Err(&format!("`200` is nothing to compare `p99` with: {time}")));
    check_parse("p99 < -1ms", Err(&format!("`-1ms` is nothing to compare `p99` with: {time}")));
    check_parse("p99 <", Err(&format!("`` is nothing to compare `p99` with: {time}")));
    check_parse(
        "rate > fast",
        Err("`fast` is nothing to compare `rate` with: write a number per second, such as 500/s"),
    );
    check_parse("failed < 101%", Err("`101%` is nothing to compare `failed` with: write a share from 0% to 100%"));
    let count = "write a whole number of requests, such as 0, or a share of them, such as 1%";
    check_parse("failed < 1.5", Err(&format!("`1.5` is nothing to compare `failed` with: {count}")));
    let bytes = "write bytes per second, such as 500K/s or 10M/s";
    check_parse("bytes/s > 10q", Err(&format!("`10q` is nothing to compare `bytes/s` with: {bytes}")));
    for unknown in ["error rate", "latency", "p", "service", "total.p99", "service.rate"] {
        let error = Threshold::parse(&format!("{unknown} < 1")).unwrap_err().to_string();
        assert!(error.starts_with(&format!("`{unknown}` is no metric: use p50, ")) && !error.contains('\n'), "{error}");
        // Every part is named but the one that needs no name.
        let named = |part: &Part| error.contains(&format!("{}.", part.name()));
        assert!(Part::ALL.iter().filter(|part| **part != Part::Latency).all(named), "{error}");
    }
}

/// Ten seconds: good answers of 1 ms, 2 ms and so on, and one failure in four hundred; 200 and 503.
fn load(good: u64) -> LoadResult {
    let mut total = crate::latency::Latency::new();
    (1..=good).for_each(|ms| total.record(ms * 1000));
    let failed = good / 400;
    LoadResult {
        connections: 4,
        started_ns: SECOND,
        ended_ns: 11 * SECOND,
        counts: Counts {
            good,
            failed: [(Failure::Status, failed)].into(),
            statuses: [(200, good), (503, failed)].into(),
            bytes_in: good * 1000,
            bytes_out: good * 100,
            connects: 4,
            retries: 2,
        },
        first_byte: total.clone(),
        connect: crate::latency::Latency::new(),
        total,
        in_flight: 3,
        handshake: crate::latency::Latency::new(),
        ..LoadResult::empty()
    }
}

/// The load as an open loop in which so many requests had waited for `at_least_ms` without an answer; half of them unsent.
fn open(good: u64, cut_off: u64, at_least_ms: u64) -> LoadResult {
    let mut load = load(good);
    let mut open = OpenLoop { service: load.total.clone(), ..OpenLoop::default() };
    (0..cut_off).for_each(|_| load.unanswered.latency.record(at_least_ms * 1000));
    open.unsent = cut_off / 2;
    load.in_flight = cut_off - open.unsent;
    open.arrived = good + load.counts.failures() + cut_off;
    load.open = Some(open);
    load
}

/// What a threshold comes to, in short: `yes`, `no`, or why it is not known; then what was found.
#[track_caller]
fn check(load: &LoadResult, threshold: &str, expected: &str) {
    let judged = Threshold::parse(threshold).unwrap().judge(load);
    let met = match judged.met {
        Met::Yes => "yes".to_owned(),
        Met::No => "no".to_owned(),
        Met::Unknown(Why::NothingMeasured) => "nothing".to_owned(),
        Met::Unknown(Why::TooFew { have, needed }) => format!("{have} of {needed}"),
        Met::Unknown(Why::CutOff) => "cut off".to_owned(),
        Met::Unknown(Why::ClosedLoop) => "closed".to_owned(),
        Met::Unknown(Why::Users) => "users".to_owned(),
        Met::Unknown(Why::NoUsers) => "no users".to_owned(),
    };
    let found = match judged.found {
        None => String::new(),
        Some(Found::Exactly(value)) => format!(" {value:.0}"),
        Some(Found::MoreThan(value)) => format!(" >{value:.0}"),
    };
    assert_eq!(format!("{met}{found}"), expected, "{threshold}");
    assert_eq!(judged.is_met(), met == "yes");
}

#[test]
fn a_load_is_held_to_them() {
    let load = load(1000);
    check(&load, "p50 < 501ms", "yes 500223");
    check(&load, "p50 >= 501ms", "no 500223");
    check(&load, "min <= 1ms", "yes 1000");
    check(&load, "max > 1s", "yes 1000447");
    check(&load, "mean < 400ms", "no 500505");
    check(&load, "rate >= 100/s", "yes 100");
    check(&load, "rate > 100/s", "no 100");
    // 1000 good, 2 failed, 3 in flight.
    let late = Counts { good: 400, bytes_in: 900_000, ..Counts::default() };
    let drained = LoadResult { late, ..load.clone() };
    check(&drained, "rate >= 100", "no 60");
    check(&drained, "bytes/s > 10k", "no 10000");
    check(&load, "sent/s > 100/s", "yes 100");
    check(&load, "bytes/s >= 100000", "yes 100000");
    check(&load, "failed < 1%", "yes 0");
    check(&load, "failed = 0", "no 2");
    check(&load, "status.5xx = 0", "no 2");
    check(&load, "status.500 = 0", "yes 0");
    check(&load, "status.2xx > 99%", "yes 100");
    check(&load, "retries <= 2", "yes 2");
    check(&load, "in_flight != 3", "no 3");
}

#[test]
fn too_few_requests_support_no_percentile() {
    check(&load(298), "p99 < 10s", "298 of 299 296191");
    check(&load(299), "p99 < 10s", "yes 297215");
    check(&load(1000), "p99.9 < 10s", "1000 of 2995 1000447");
    check(&load(4), "p50 < 10s", "4 of 5 2000");
    check(&load(1), "max < 10s", "yes 1000");
}

#[test]
fn what_was_not_measured_is_not_met() {
    check(&load(0), "p99 < 10s", "nothing");
    check(&load(0), "failed < 1%", "nothing");
    check(&load(0), "failed = 0", "yes 0");
    // Nothing but requests that timed out.
    let mut silent = load(0);
    silent.unanswered.latency.record(500_000);
    check(&silent, "max < 200ms", "no >500223");
    check(&silent, "max < 2s", "cut off >500223");
    check(&load(1000), "connect.p50 < 10s", "nothing");
    check(&load(1000), "handshake.max < 10s", "nothing");
    check(&load(1000), "service.p50 < 10s", "closed");
    check(&load(1000), "unsent = 0", "closed");
    check(&load(1000), "unsent < 1%", "closed");
    check(&load(1000), "page.p50 < 10s", "no users");
    check(&open(1000, 0, 0), "page.p50 < 10s", "no users");
    // Users come at a rate of their own, or do not; either way their requests have none.
    let users = LoadResult { sessions: Some(crate::load::Sessions::default()), ..load(1000) };
    check(&users, "service.p50 < 10s", "users");
    check(&users, "unsent = 0", "users");
    check(&users, "page.p50 < 10s", "nothing");
}

#[test]
fn more_than_something_is_missed_or_not_known() {
    // A tenth had waited for 5 s: the 99th percentile is more than that.
    let load = open(1000, 100, 5000);
    check(&load, "p99 < 4s", "no >5001215");
    check(&load, "p99 <= 5s", "no >5001215");
    check(&load, "p99 < 6s", "cut off >5001215");
    check(&load, "p99 > 5s", "yes >5001215");
    check(&load, "p99 > 6s", "cut off >5001215");
    check(&load, "p99 = 6s", "cut off >5001215");
    check(&load, "p99 != 5s", "yes >5001215");
    check(&load, "max < 60s", "cut off >5001215");
    check(&load, "mean < 100ms", "no >909474");
    check(&load, "min <= 1ms", "yes 1000");
    check(&open(1000, 1, 0), "min < 1ms", "cut off >0");
    check(&open(0, 300, 5000), "p99 < 4s", "no >5001215");
    check(&load, "p50 < 600ms", "yes 550399");
    check(&load, "service.p50 < 600ms", "yes 500223");
    check(&load, "unsent = 0", "no 50");
    check(&load, "unsent < 10%", "yes 5");
    check(&load, "in_flight < 10%", "yes 5");
}

#[test]
fn it_is_stored_as_it_was_written() {
    let threshold = Threshold::parse("p99.9 <= 1.5s").unwrap();
    let stored = serde_json::to_string(&threshold).unwrap();
    assert_eq!(stored, "\"p99.9 <= 1.5s\"");
    assert_eq!(serde_json::from_str::<Threshold>(&stored).unwrap(), threshold);
}
