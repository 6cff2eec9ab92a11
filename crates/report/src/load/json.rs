//! A load for programs: stable names, times in microseconds (`_us`) or seconds (`_s`), counts and rates as numbers.
//!
//! `docs/schemas/load.schema.json` describes it; within one version fields are only added. A statistic is `null` where it is not
//! known: too few values, or, with a number under `more_than`, requests that had no answer. Header fields of requests are named
//! without their values, which may be secrets.

use super::{GeneratorView, LoadView, ProbeView, SecondView, ThresholdView, TimesView};
use crate::json::pretty;
use crate::language::Sentence;
use crate::view::{DiagnosisView, FailureView, HostView, TroubleView};
use model::Nanos;
use model::load::{Away, Failure, Sessions, TlsFacts};
use model::plan::{
    Arrivals, Body, HttpVersion, LoadSpec, Pace, RequestSpec, SessionSpec, TlsSpec, TlsVersion, Verify, Warmup,
};
use model::statistic::{Found, Part};
use model::threshold::{Met, Unit};
use serde::Serialize;
use std::collections::BTreeMap;

/// The schema's version.
pub const SCHEMA_VERSION: u32 = 1;

/// Draws a view as one JSON object, indented, with a line break at its end.
///
/// # Panics
/// Never: every key is text, and numbers that JSON cannot hold become `null`.
#[must_use]
pub fn render(view: &LoadView) -> String {
    pretty(&Document::of(view))
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    schema_version: u32,
    id: &'a str,
    target: &'a str,
    server: Option<&'a str>,
    began: &'a str,
    end: &'a Sentence,
    outcome: &'a Sentence,
    webdyno: &'a str,
    host: &'a HostView,
    load: Load<'a>,
    tls: Option<&'a TlsFacts>,
    counts: Counts<'a>,
    late: Counts<'a>,
    failures: &'a [FailureView],
    in_flight: u64,
    open: Option<Open>,
    window_s: f64,
    concurrency: f64,
    rate: Rate,
    latency_us: Times,
    service_us: Option<Times>,
    first_byte_us: Option<Times>,
    connect_us: Option<Times>,
    handshake_us: Option<Times>,
    page_us: Option<Times>,
    sessions: Option<&'a Sessions>,
    probe: Option<Probe<'a>>,
    histogram: &'a [(u64, u64)],
    intervals: Vec<Interval>,
    generator: GeneratorAccount<'a>,
    doubts: &'a [Sentence],
    diagnosis: Option<&'a DiagnosisView>,
    trouble: &'a [TroubleView],
    thresholds: Vec<Threshold<'a>>,
    met: bool,
}

#[derive(Serialize)]
struct Load<'a> {
    name: &'a str,
    sentence: &'a str,
    mix: Vec<Request<'a>>,
    pace: PaceOf,
    connections: u32,
    pipeline: u32,
    threads: Option<u32>,
    requests: Option<u64>,
    duration_s: Option<f64>,
    keep_alive: bool,
    http: HttpVersion,
    timeout_s: f64,
    same_length: bool,
    busy_poll: bool,
    seed: u64,
    users: Option<Users>,
    warm_up: Option<WarmUp>,
    checks: Vec<String>,
    cookies: bool,
    tls: Option<Tls<'a>>,
}

/// How users behave.
#[derive(Serialize)]
struct Users {
    connections: u32,
    think_s: f64,
    returns: f64,
    patience_s: Option<f64>,
    reload_after_s: Option<f64>,
    reloads: u32,
}

/// What was sent before the load.
#[derive(Serialize)]
struct WarmUp {
    requests: Option<u64>,
    duration_s: Option<f64>,
}

/// How TLS was asked for.
#[derive(Serialize)]
struct Tls<'a> {
    server_name: &'a str,
    verify: &'static str,
    version: Option<TlsVersion>,
    suites: &'a [String],
    client_certificate: bool,
    resume: bool,
}

#[derive(Serialize)]
struct Request<'a> {
    weight: u32,
    method: &'a str,
    path: &'a str,
    headers: Vec<&'a str>,
    body_bytes: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
enum PaceOf {
    WhenFree,
    Timetable { arrivals: Arrivals, stages: Vec<StageOf> },
    Logged { file: String, format: String, speed: f64, requests: u64, span_s: f64 },
}

#[derive(Serialize)]
struct StageOf {
    length_s: Option<f64>,
    from_per_s: f64,
    to_per_s: f64,
}

#[derive(Serialize)]
struct Counts<'a> {
    good: u64,
    failed: &'a BTreeMap<Failure, u64>,
    statuses: &'a BTreeMap<u16, u64>,
    bytes_in: u64,
    bytes_out: u64,
    connects: u64,
    retries: u64,
}

/// What a visitor saw, whose requests are in none of the load's numbers.
#[derive(Serialize)]
struct Probe<'a> {
    visits: u64,
    good: u64,
    failed: &'a BTreeMap<Failure, u64>,
    statuses: &'a BTreeMap<u16, u64>,
    unanswered: u64,
    failures: &'a [FailureView],
    latency_us: Times,
    connect_us: Option<Times>,
}

#[derive(Serialize)]
struct Open {
    arrived: u64,
    unsent: u64,
}

#[derive(Serialize)]
struct Rate {
    good_per_s: f64,
    sent_per_s: f64,
    asked_per_s: Option<f64>,
    bytes_in_per_s: f64,
    bytes_out_per_s: f64,
}

/// Statistics by name, and those of which only a lower bound is known once more with that bound.
#[derive(Serialize)]
struct Times {
    count: u64,
    unanswered: u64,
    #[serde(flatten)]
    known: BTreeMap<String, Option<f64>>,
    more_than: BTreeMap<String, f64>,
}

#[derive(Serialize)]
struct Interval {
    start_s: f64,
    length_s: f64,
    good: u64,
    failed: u64,
    bytes_in: u64,
    mean_us: Option<f64>,
    p50_us: Option<u64>,
    p90_us: Option<u64>,
    p99_us: Option<u64>,
    max_us: Option<u64>,
}

#[derive(Serialize)]
struct GeneratorAccount<'a> {
    threads: u32,
    cpu_s: f64,
    cpus: &'a [u32],
    share: f64,
    lateness_us: Option<Lateness>,
    #[serde(skip_serializing_if = "Option::is_none")]
    away: Option<&'a Away>,
}

#[derive(Serialize)]
struct Lateness {
    p50: Option<u64>,
    p99: Option<u64>,
    max: Option<u64>,
}

/// An expectation and what became of it.
#[derive(Serialize)]
pub(crate) struct Threshold<'a> {
    text: &'a str,
    met: &'static str,
    found: Option<f64>,
    more_than: Option<f64>,
    limit: f64,
    unit: Unit,
    sentence: &'a Sentence,
}

impl<'a> Document<'a> {
    fn of(view: &'a LoadView) -> Document<'a> {
        let of_part = |part: Part| view.times.iter().find(|times| times.part == part);
        let times = |part| of_part(part).map(Times::of);
        Document {
            schema: "webdyno-load",
            schema_version: SCHEMA_VERSION,
            id: &view.id,
            target: &view.target,
            server: view.server.as_deref(),
            began: &view.began,
            end: &view.end,
            outcome: &view.outcome,
            webdyno: &view.version,
            host: &view.host,
            load: Load::of(view),
            tls: view.tls.as_ref(),
            counts: Counts::of(&view.counts),
            late: Counts::of(&view.late),
            failures: &view.failures,
            in_flight: view.in_flight,
            open: view.open.map(|open| Open { arrived: open.arrived, unsent: open.unsent }),
            window_s: view.window_s,
            concurrency: view.concurrency,
            rate: Rate::of(view),
            latency_us: times(Part::Latency).unwrap_or_else(Times::nothing),
            service_us: times(Part::Service),
            first_byte_us: times(Part::FirstByte),
            connect_us: times(Part::Connect),
            handshake_us: times(Part::Handshake),
            page_us: times(Part::Page),
            sessions: view.sessions.as_ref(),
            probe: view.probe.as_ref().map(Probe::of),
            histogram: of_part(Part::Latency).map_or(&[], |times| &times.buckets),
            intervals: view.seconds.iter().map(Interval::of).collect(),
            generator: GeneratorAccount::of(&view.generator),
            doubts: &view.doubts,
            diagnosis: view.diagnosis.as_ref(),
            trouble: &view.trouble,
            thresholds: view.thresholds.iter().map(Threshold::of).collect(),
            met: view.met(),
        }
    }
}

impl<'a> Probe<'a> {
    fn of(view: &'a ProbeView) -> Probe<'a> {
        Probe {
            visits: view.visits,
            good: view.counts.good,
            failed: &view.counts.failed,
            statuses: &view.counts.statuses,
            unanswered: view.unanswered,
            failures: &view.failures,
            latency_us: Times::of(&view.latency),
            connect_us: view.connect.as_ref().map(Times::of),
        }
    }
}

impl<'a> Load<'a> {
    fn of(view: &'a LoadView) -> Load<'a> {
        let spec: &LoadSpec = &view.spec;
        let request = |request: &'a RequestSpec| Request {
            weight: request.weight,
            method: &request.method,
            path: &request.path,
            headers: request.headers.iter().map(|(name, _)| name.as_str()).collect(),
            body_bytes: request.body.as_ref().map_or(0, Body::length),
        };
        Load {
            name: &spec.name,
            sentence: &view.sent.text,
            mix: spec.mix.iter().map(request).collect(),
            pace: PaceOf::of(spec),
            connections: spec.connections,
            pipeline: spec.pipeline,
            threads: spec.threads,
            requests: spec.requests,
            duration_s: spec.duration_ns.map(seconds),
            keep_alive: spec.keep_alive,
            http: spec.http,
            timeout_s: seconds(spec.timeout_ns),
            same_length: spec.same_length,
            busy_poll: spec.busy_poll,
            seed: spec.seed,
            users: spec.session.as_ref().map(Users::of),
            warm_up: WarmUp::of(view.warmup),
            checks: spec.checks.iter().map(ToString::to_string).collect(),
            cookies: spec.cookies,
            tls: spec.tls.as_ref().map(Tls::of),
        }
    }
}

impl Users {
    fn of(session: &SessionSpec) -> Users {
        Users {
            connections: session.connections,
            think_s: seconds(session.think_ns),
            returns: session.returns,
            patience_s: session.patience_ns.map(seconds),
            reload_after_s: session.reload_after_ns.map(seconds),
            reloads: session.reloads,
        }
    }
}

impl WarmUp {
    fn of(warmup: Warmup) -> Option<WarmUp> {
        match warmup {
            Warmup::None => None,
            Warmup::Requests(n) => Some(WarmUp { requests: Some(n), duration_s: None }),
            Warmup::Duration(ns) => Some(WarmUp { requests: None, duration_s: Some(seconds(ns)) }),
        }
    }
}

impl<'a> Tls<'a> {
    fn of(spec: &'a TlsSpec) -> Tls<'a> {
        Tls {
            server_name: &spec.server_name,
            verify: match spec.verify {
                Verify::System => "system",
                Verify::File(_) => "file",
                Verify::Nothing => "nothing",
            },
            version: spec.version,
            suites: &spec.suites,
            client_certificate: spec.client.is_some(),
            resume: spec.resume,
        }
    }
}

impl PaceOf {
    fn of(spec: &LoadSpec) -> PaceOf {
        let table = match (&spec.pace, &spec.log) {
            (Pace::Timetable(table), _) => table,
            (Pace::Logged, Some(log)) => {
                return PaceOf::Logged {
                    file: log.file.to_string_lossy().into_owned(),
                    format: log.format.clone(),
                    speed: log.speed,
                    requests: log.used,
                    span_s: seconds(log.span_ns),
                };
            }
            (Pace::WhenFree | Pace::Logged, _) => return PaceOf::WhenFree,
        };
        let stages = table.stages.iter().map(|stage| StageOf {
            length_s: (stage.length_ns < Nanos::MAX).then(|| seconds(stage.length_ns)),
            from_per_s: stage.from,
            to_per_s: stage.to,
        });
        PaceOf::Timetable { arrivals: table.arrivals, stages: stages.collect() }
    }
}

impl<'a> Counts<'a> {
    fn of(counts: &'a model::load::Counts) -> Counts<'a> {
        Counts {
            good: counts.good,
            failed: &counts.failed,
            statuses: &counts.statuses,
            bytes_in: counts.bytes_in,
            bytes_out: counts.bytes_out,
            connects: counts.connects,
            retries: counts.retries,
        }
    }
}

impl Rate {
    fn of(view: &LoadView) -> Rate {
        let rate = &view.rate;
        Rate {
            good_per_s: rate.good,
            sent_per_s: rate.sent,
            asked_per_s: rate.asked,
            bytes_in_per_s: rate.bytes_in,
            bytes_out_per_s: rate.bytes_out,
        }
    }
}

impl Times {
    fn of(times: &TimesView) -> Times {
        let (mut known, mut more_than) = (BTreeMap::new(), BTreeMap::new());
        for (statistic, found) in &times.statistics {
            let name = statistic.name();
            if let Some(Found::MoreThan(us)) = found {
                more_than.insert(name.clone(), *us);
            }
            known.insert(name, found.and_then(exactly));
        }
        Times { count: times.count, unanswered: times.cut_off, known, more_than }
    }

    /// Of a load without a single request.
    fn nothing() -> Times {
        let known = super::times::STATISTICS.map(|statistic| (statistic.name(), None)).into();
        Times { count: 0, unanswered: 0, known, more_than: BTreeMap::new() }
    }
}

fn exactly(found: Found) -> Option<f64> {
    match found {
        Found::Exactly(value) => Some(value),
        Found::MoreThan(_) => None,
    }
}

impl Interval {
    fn of(second: &SecondView) -> Interval {
        let [p50_us, p90_us, p99_us] = second.percentiles_us;
        Interval {
            start_s: second.start_s,
            length_s: second.length_s,
            good: second.good,
            failed: second.failed,
            bytes_in: second.bytes_in,
            mean_us: second.mean_us,
            p50_us,
            p90_us,
            p99_us,
            max_us: second.max_us,
        }
    }
}

impl<'a> GeneratorAccount<'a> {
    fn of(view: &'a GeneratorView) -> GeneratorAccount<'a> {
        GeneratorAccount {
            threads: view.account.threads,
            cpu_s: seconds(view.account.cpu_ns),
            cpus: &view.account.cpus,
            share: view.share,
            lateness_us: view.lateness_us.map(|[p50, p99, max]| Lateness { p50, p99, max }),
            away: view.account.away.as_ref(),
        }
    }
}

impl<'a> Threshold<'a> {
    pub(crate) fn of(view: &'a ThresholdView) -> Threshold<'a> {
        let judged = &view.judged;
        Threshold {
            text: &judged.threshold.text,
            met: match judged.met {
                Met::Yes => "yes",
                Met::No => "no",
                Met::Unknown(_) => "unknown",
            },
            found: judged.found.and_then(exactly),
            more_than: judged.found.filter(|found| exactly(*found).is_none()).map(Found::value),
            limit: judged.threshold.limit,
            unit: judged.threshold.metric.unit(),
            sentence: &view.sentence,
        }
    }
}

fn seconds(ns: Nanos) -> f64 {
    ns as f64 / 1e9
}
