//! Runs that are one load, made of fixed numbers and a fixed seed: a closed loop with a few failures, an open one whose server
//! stalls, and one that nobody answered.

use crate::fixture::{Seeded, head};
use model::SECOND;
use model::latency::Latency;
use model::load::{Counts, Failure, Generator, LoadInterval, LoadResult, OpenLoop};
use model::plan::{Arrivals, LoadSpec, Pace, RequestSpec, Stage, Timetable};
use model::reading::Readings;
use model::run::Run;
use model::search::RateSearch;
use model::trial::{EffectiveSettings, Outcome, Trial};

const PLAN: &str = "[server]\nkind = \"embedded\"\n[load.l]\npath = \"/\"\nconnections = 1\nrequests = 1\n";

/// A run of one load, as the store gives it back.
pub(crate) fn run(spec: LoadSpec, load: LoadResult) -> Run {
    let mut head = head(PLAN);
    "http://127.0.0.1:8080/".clone_into(&mut head.plan.name);
    head.plan.cells.truncate(1);
    head.plan.blocks = 1;
    head.plan.loads = vec![LoadSpec { name: head.plan.loads[0].name.clone(), ..spec }];
    let trial = Trial {
        block: 0,
        position: 0,
        cell: head.plan.cells[0].name.clone(),
        outcome: Outcome::Complete,
        began_ns: SECOND,
        settings: EffectiveSettings::default(),
        share: None,
        preflight: None,
        load: Some(load),
        rate: None,
        probe: None,
        beside: Vec::new(),
        door: None,
        workers: None,
        others: None,
        readings: Readings::default(),
        notes: vec![],
        status: Vec::new(),
        around: None,
        accounts: None,
        log_tail: String::new(),
        logged: None,
    };
    Run { head, trials: vec![trial] }
}

/// Nothing yet, over ten connections and one thread.
fn empty(seconds: u64) -> LoadResult {
    LoadResult {
        connections: 10,
        started_ns: 2 * SECOND,
        ended_ns: (2 + seconds) * SECOND,
        generator: Generator { threads: 1, cpu_ns: seconds * SECOND / 10, cpus: vec![], away: None },
        ..LoadResult::empty()
    }
}

fn of_second(good: u64, failed: &[(Failure, u64)], statuses: &[(u16, u64)]) -> Counts {
    Counts {
        good,
        failed: failed.iter().copied().collect(),
        statuses: statuses.iter().copied().collect(),
        bytes_in: good * 12_345,
        bytes_out: good * 80,
        connects: 0,
        retries: 0,
    }
}

/// A visit a second of which one failed and the last has no answer; its seconds begin a moment before the load's.
fn visits(seconds: u64) -> LoadResult {
    let (mut seeded, mut seen) = (Seeded(3), empty(seconds));
    seen.started_ns -= 300_000;
    for second in 0..seconds {
        let mut latency = Latency::new();
        let counts = match second {
            4 => of_second(0, &[(Failure::Reset, 1)], &[]),
            _ if second + 1 == seconds => of_second(0, &[], &[]),
            _ => {
                latency.record((31_000.0 * seeded.near_one(0.5)) as u64);
                of_second(1, &[], &[(200, 1)])
            }
        };
        add(&mut seen, counts, &latency);
    }
    (0..seen.counts.good).for_each(|_| seen.connect.record((180.0 * seeded.near_one(0.5)) as u64));
    seen.unanswered.latency.record(700_000);
    seen.unanswered.first_byte.record(700_000);
    seen.examples = [(Failure::Reset, "Connection reset by peer".to_owned())].into();
    (seen.in_flight, seen.open) = (1, Some(OpenLoop { arrived: seconds, ..OpenLoop::default() }));
    seen
}

fn add(load: &mut LoadResult, counts: Counts, total: &Latency) {
    let start_ns = load.started_ns + load.intervals.len() as u64 * SECOND;
    load.counts.merge(&counts);
    load.total.merge(total);
    load.intervals.push(LoadInterval { start_ns, length_ns: SECOND, counts, total: total.pack() });
}

/// Ten connections for 20 s; a second of 503s, one timeout, and an end with requests in flight.
pub(crate) fn closed() -> Run {
    let (mut seeded, mut load) = (Seeded(1), empty(20));
    for second in 0..20 {
        let good = (400.0 * seeded.near_one(0.1)).round() as u64;
        let mut latency = Latency::new();
        (0..good).for_each(|_| latency.record((24_000.0 * seeded.near_one(0.6).powi(2)) as u64));
        let refused = if second == 7 { 35 } else { 0 };
        let failed: &[_] = match second {
            7 => &[(Failure::Status, 35)],
            12 => &[(Failure::Timeout, 1)],
            _ => &[],
        };
        let statuses: &[_] = if refused > 0 { &[(200, good), (503, refused)] } else { &[(200, good)] };
        add(&mut load, of_second(good, failed, statuses), &latency);
    }
    (0..load.counts.good).for_each(|_| load.first_byte.record((20_000.0 * seeded.near_one(0.5)) as u64));
    (0..12).for_each(|_| load.connect.record((120.0 * seeded.near_one(0.5)) as u64));
    load.unanswered.latency.record(30_000_000);
    load.unanswered.first_byte.record(30_000_000);
    (load.counts.connects, load.counts.retries, load.in_flight) = (12, 1, 9);
    load.in_flight_ns = 199 * SECOND;
    load.examples = [
        (Failure::Status, "HTTP/1.1 503 Service Unavailable".to_owned()),
        (Failure::Timeout, "no answer within 30 s".to_owned()),
    ]
    .into();
    let spec =
        LoadSpec { connections: 10, duration_ns: Some(20 * SECOND), seed: 3_203_334_613, ..LoadSpec::of("l", "/") };
    let mut run = run(spec, load);
    run.trials[0].probe = Some(visits(20));
    run
}

/// 500 requests a second at random, of two kinds over TLS; for three seconds the server answers nothing.
pub(crate) fn open() -> Run {
    let (mut seeded, mut load) = (Seeded(2), empty(30));
    let mut open = OpenLoop::default();
    for second in 0..30 {
        let stalled = (12..15).contains(&second);
        let good = if stalled { 0 } else { (500.0 * seeded.near_one(0.05)).round() as u64 };
        let mut latency = Latency::new();
        for _ in 0..good {
            let service = (8_000.0 * seeded.near_one(0.5)) as u64;
            let waited = if second == 15 { (1_500_000.0 * seeded.near_one(0.9)) as u64 } else { 0 };
            latency.record(waited + service);
            open.service.record(service);
            open.lateness.record((700.0 * seeded.near_one(0.9)) as u64);
            load.first_byte.record(waited + service * 3 / 4);
        }
        add(&mut load, of_second(good, &[], &[(200, good)]), &latency);
    }
    (0..40).for_each(|_| open.lateness.record(2_500));
    for waited in (0..700).map(|_| (2_000_000.0 * seeded.near_one(0.5)) as u64).collect::<Vec<_>>() {
        load.unanswered.latency.record(waited);
        load.unanswered.first_byte.record(waited);
    }
    (0..200).for_each(|_| load.unanswered.service.record(2_000_000));
    (0..200).for_each(|_| {
        load.connect.record((300.0 * seeded.near_one(0.5)) as u64);
        load.handshake.record((2_100.0 * seeded.near_one(0.3)) as u64);
    });
    (load.connections, load.counts.connects, load.in_flight) = (200, 200, 200);
    load.in_flight_ns = 30 * 24 * SECOND;
    open.unsent = 500;
    open.arrived = load.counts.good + 700;
    load.open = Some(open);
    // Of the last second the end saw only a part.
    load.late = of_second(60, &[], &[(200, 60)]);
    let post = RequestSpec {
        weight: 1,
        method: "POST".into(),
        headers: vec![("Authorization".into(), "Bearer secret".into())],
        body: Some(model::plan::Body::written(*b"q=1")),
        ..RequestSpec::get("/search")
    };
    let spec = LoadSpec {
        connections: 200,
        mix: vec![RequestSpec { weight: 9, ..RequestSpec::get("/") }, post],
        pace: Pace::Timetable(Timetable::constant(500.0, Arrivals::Poisson)),
        duration_ns: Some(30 * SECOND),
        ..LoadSpec::of("l", "/")
    };
    run(spec, load)
}

/// A ramp against a port that nobody listens on.
pub(crate) fn refused() -> Run {
    let mut load = empty(2);
    for _ in 0..2 {
        add(&mut load, of_second(0, &[(Failure::Refused, 75)], &[]), &Latency::new());
    }
    load.open = Some(OpenLoop { arrived: 150, ..OpenLoop::default() });
    load.examples = [(Failure::Refused, "Connection refused (os error 111)".to_owned())].into();
    let stages = vec![Stage { length_ns: 2 * SECOND, from: 50.0, to: 100.0 }];
    let pace = Pace::Timetable(Timetable { stages, arrivals: Arrivals::Even });
    run(LoadSpec { connections: 10, pace, ..LoadSpec::of("l", "/") }, load)
}

/// A search that found 800 a second: what held had its answers, what missed had many late.
pub(crate) fn search() -> Run {
    let mut run = open();
    let goals = vec!["p99 < 50ms".to_owned().try_into().unwrap()];
    run.head.plan.search = Some(RateSearch { goals, precision: 0.05, start: None, arrivals: Arrivals::Even });
    let tried = [(None, 0), (Some(900.0), 40_000), (Some(800.0), 0), (Some(830.0), 300), (Some(800.0), 0)];
    let trial = |(block, (rate, late)): (u32, (Option<f64>, u64))| {
        let mut load = empty(10);
        let arrived = rate.map_or(8_500, |rate: f64| (rate * 10.0) as u64);
        let mut latency = Latency::new();
        (0..arrived).for_each(|i| latency.record(if i < late { 90_000 } else { 9_000 }));
        for _ in 0..10 {
            add(&mut load, of_second(arrived / 10, &[], &[(200, arrived / 10)]), &Latency::new());
        }
        load.total = latency;
        // Where requests were left unsent some of the others were late.
        load.late = of_second(late.min(1_000), &[], &[]);
        load.open = rate.map(|_| OpenLoop { arrived, unsent: late / 1000, ..OpenLoop::default() });
        Trial { block, rate, load: Some(load), ..run.trials[0].clone() }
    };
    let trials = (0..).zip(tried).map(trial).collect();
    Run { trials, head: run.head.clone() }
}
