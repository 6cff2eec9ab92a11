//! What one load came to, as `webdyno load` shows it: numbers in base units and sentences by id, ready to be drawn.
//!
//! [`LoadView::of`] judges a stored run anew each time. The renderers, one file each, arrange the view and compute nothing:
//! `text` for a terminal, `json` for programs, `csv` second by second, `openmetrics` for a monitoring system.
//!
//! # Layout
//! - `facts`: what was counted, as labelled lines.
//! - `times`: the distributions, their table and their histogram.
//! - `held`: the thresholds that the load was held to.
//! - `probe`: what a visitor saw beside it.

pub mod csv;
mod facts;
pub(crate) mod held;
pub mod json;
pub mod openmetrics;
mod probe;
pub mod text;
pub(crate) mod times;

use crate::language::{Catalogue, Language, Sentence};
use crate::view::{
    DiagnosisView, FailureView, HostView, Table, TroubleView, cells, doubts, run, sent, series, trouble,
};
use model::latency::Latency;
use model::load::{Counts, Generator, LoadResult, Sessions, TlsFacts};
use model::plan::{LoadSpec, Warmup};
use model::run::Run;
use model::statistic::{Found, Part, Statistic};
use model::threshold::{Judged, Threshold};
use model::trial::{Outcome, Trial};

/// A load, judged and worded.
#[derive(Debug, Clone)]
pub struct LoadView {
    /// The language of every sentence in it.
    pub language: Language,
    /// Identifier in the store.
    pub id: String,
    /// What was loaded: the plan's name, which for a lone load is its URL.
    pub target: String,
    /// The server's own name and version, if it said so itself.
    pub server: Option<String>,
    /// When it began, UTC, such as `2026-11-20T23:58:40Z`.
    pub began: String,
    /// How the run ended.
    pub end: Sentence,
    /// Version of webdyno that measured.
    pub version: String,
    /// The machine that the load was sent from.
    pub host: HostView,
    /// What was asked for.
    pub spec: LoadSpec,
    /// What was sent before it, and is in none of its numbers.
    pub warmup: Warmup,
    /// What TLS came to on the first connection that it came up on.
    pub tls: Option<TlsFacts>,
    /// The same in words.
    pub sent: Sentence,
    /// How the load ended.
    pub outcome: Sentence,
    /// What was counted.
    pub counts: Counts,
    /// Failures by cause.
    pub failures: Vec<FailureView>,
    /// Requests in flight when the load ended: neither answers nor failures.
    pub in_flight: u64,
    /// What became of users, in a load of such.
    pub sessions: Option<Sessions>,
    /// What of the counts ended after the window, and is in no rate.
    pub late: Counts,
    /// What only an open loop counts.
    pub open: Option<OpenView>,
    /// Length of the window.
    pub window_s: f64,
    /// Mean number of requests in flight.
    pub concurrency: f64,
    /// What happened per second of the window.
    pub rate: RateView,
    /// The distributions that have any value.
    pub times: Vec<TimesView>,
    /// Latencies of good answers by size.
    pub histogram: Vec<BarView>,
    /// What happened second by second.
    pub seconds: Vec<SecondView>,
    /// The generator's own account.
    pub generator: GeneratorView,
    /// What was counted, in words.
    pub facts: Vec<FactView>,
    /// The distributions side by side, printed, with what must be known to read them.
    pub table: Table,
    /// What an independent visitor saw beside it, if one came.
    pub probe: Option<ProbeView>,
    /// What must be known before the numbers are believed.
    pub doubts: Vec<Sentence>,
    /// What limited it; only where the host was watched.
    pub diagnosis: Option<DiagnosisView>,
    /// What did not go as planned, and what was noted.
    pub trouble: Vec<TroubleView>,
    /// What it was expected to come to.
    pub thresholds: Vec<ThresholdView>,
}

/// What a visitor saw who came by now and then, on a new connection each time.
#[derive(Debug, Clone)]
pub struct ProbeView {
    /// How often.
    pub visits: u64,
    /// Visits without an answer when the load ended.
    pub unanswered: u64,
    /// What was counted; none of it is in the load's counts.
    pub counts: Counts,
    /// Failures by cause.
    pub failures: Vec<FailureView>,
    /// Its latencies, which contain connecting.
    pub latency: TimesView,
    /// Times to connect, if it ever did.
    pub connect: Option<TimesView>,
    /// All that in words.
    pub sentences: Vec<Sentence>,
    /// Its latencies beside the load's, printed.
    pub table: Table,
}

/// An open loop's requests.
#[derive(Debug, Clone, Copy)]
pub struct OpenView {
    /// Requests that became due.
    pub arrived: u64,
    /// Requests of these that no connection was free for.
    pub unsent: u64,
}

/// Per second of the window.
#[derive(Debug, Clone, Copy)]
pub struct RateView {
    /// Good answers.
    pub good: f64,
    /// Requests sent.
    pub sent: f64,
    /// Requests that the timetable had; `None` in a closed loop.
    pub asked: Option<f64>,
    /// Bytes received.
    pub bytes_in: f64,
    /// Bytes sent.
    pub bytes_out: f64,
}

/// A distribution of times.
#[derive(Debug, Clone)]
pub struct TimesView {
    /// What of a request was timed.
    pub part: Part,
    /// Values that are known.
    pub count: u64,
    /// Values that are known only to be more than something.
    pub cut_off: u64,
    /// Sum of the known values, in microseconds.
    pub sum_us: f64,
    /// Every statistic that is ever shown, in order; `None` where too few values support it.
    pub statistics: Vec<(Statistic, Option<Found>)>,
    /// The known values: the largest of each bucket in microseconds, and how many are in it.
    pub buckets: Vec<(u64, u64)>,
}

/// A bar of the histogram.
#[derive(Debug, Clone)]
pub struct BarView {
    /// What is in it, such as `<= 1.20 ms`.
    pub label: String,
    /// How many.
    pub count: u64,
    /// The same as a share of all bars, from 0 to 1.
    pub share: f64,
}

/// What happened in about one second.
#[derive(Debug, Clone)]
pub struct SecondView {
    /// Since the load began.
    pub start_s: f64,
    /// How long it was; the first is a little shorter than a second in a closed loop, the last may be much shorter.
    pub length_s: f64,
    /// Good answers.
    pub good: u64,
    /// Failures.
    pub failed: u64,
    /// Bytes received.
    pub bytes_in: u64,
    /// Mean latency of the good answers that ended in it.
    pub mean_us: Option<f64>,
    /// Percentiles of these latencies, those of [`SecondView::PERCENTS`]; `None` where too few support them.
    pub percentiles_us: [Option<u64>; 3],
    /// The largest.
    pub max_us: Option<u64>,
    /// What an independent visitor saw in it, if one came by beside the load.
    pub visitor: Option<VisitorSecond>,
}

/// What a visitor saw in about one second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VisitorSecond {
    /// Visits answered well that ended in it.
    pub good: u64,
    /// Visits that failed.
    pub failed: u64,
    /// Mean latency of the good ones.
    pub mean_us: Option<f64>,
    /// The largest.
    pub max_us: Option<u64>,
}

/// The generator's own account.
#[derive(Debug, Clone)]
pub struct GeneratorView {
    /// Threads, CPU time, CPUs.
    pub account: Generator,
    /// Share of the CPU time that its threads could have had, from 0 to 1.
    pub share: f64,
    /// How late it began requests that a connection was free for: median, 99th percentile and largest, in microseconds; `None`
    /// where too few support them.
    pub lateness_us: Option<[Option<u64>; 3]>,
}

/// Something that was counted, in words.
#[derive(Debug, Clone)]
pub struct FactView {
    /// What.
    pub label: String,
    /// What it came to.
    pub text: String,
}

/// An expectation and what became of it.
#[derive(Debug, Clone)]
pub struct ThresholdView {
    /// The judgement.
    pub judged: Judged,
    /// The same in words.
    pub sentence: Sentence,
}

impl SecondView {
    /// The percentiles of a second that are kept.
    pub const PERCENTS: [f64; 3] = [50.0, 90.0, 99.0];
}

/// What there is to say of a load that [`LoadView::of`] has no view of, because it ended before it began.
#[must_use]
pub fn nothing_measured(language: Language) -> String {
    Catalogue::of(language).word("load-nothing-measured")
}

impl LoadView {
    /// Judges the load of a run that is one load, and words it. `None` when it has more than one cell or trial, or no load.
    #[must_use]
    pub fn of(run: &Run, thresholds: &[Threshold], language: Language) -> Option<LoadView> {
        let ([cell], [trial]) = (run.head.plan.cells.as_slice(), run.trials.as_slice()) else { return None };
        let (load, spec) = (trial.load.as_ref()?, run.head.plan.load(cell));
        let words = Catalogue::of(language);
        let plan = &run.head.plan;
        let target = plan.server.url().map_or(&plan.name, |url| &url.url);
        // Of a server elsewhere the readings say nothing.
        let watched = plan.server.is_here() && !trial.readings.rows.is_empty();
        let diagnosis = watched.then(|| diagnosis::diagnose(&run.head, cell, trial));
        let times = times::views(load);
        let judged = thresholds.iter().map(|threshold| threshold.judge(load));
        Some(LoadView {
            language,
            id: run.head.id.clone(),
            target: target.clone(),
            server: Some(trial.settings.server.clone())
                .filter(|server| !server.is_empty())
                .or_else(|| load.software.clone()),
            began: run::began(run.head.anchor.wall_ns),
            end: run::end(&run.head.end, &words),
            version: run.head.version.clone(),
            host: run::host(&run.head.host),
            spec: spec.clone(),
            warmup: run.head.plan.warmup,
            tls: load.tls.clone(),
            sent: sent::sentence(spec, &words),
            outcome: series::load_outcome(trial, &words),
            counts: load.counts.clone(),
            failures: cells::failures(&load.counts, &load.examples, &words),
            in_flight: load.in_flight,
            sessions: load.sessions.clone(),
            late: load.late.clone(),
            open: load.open.as_ref().map(|open| OpenView { arrived: open.arrived, unsent: open.unsent }),
            window_s: load.seconds(),
            concurrency: load.concurrency(),
            rate: rate(load, spec),
            histogram: times::histogram(load, &words),
            seconds: seconds(load, trial.probe.as_ref()),
            generator: generator(load),
            facts: facts::facts(load, spec, &words),
            table: times::table(load, &times, &words),
            times,
            probe: probe::view(trial.probe.as_ref(), load, &words),
            doubts: doubts::of_load(spec, trial, load, &words),
            diagnosis: diagnosis.as_ref().map(|diagnosis| cells::diagnosis_view(diagnosis, &words)),
            trouble: unplanned(trial, diagnosis.as_ref(), &words),
            thresholds: judged.map(|judged| held::view(judged, &words)).collect(),
        })
    }

    /// Whether everything that was expected is known to be so.
    #[must_use]
    pub fn met(&self) -> bool {
        self.thresholds.iter().all(|threshold| threshold.judged.is_met())
    }
}

fn rate(load: &LoadResult, spec: &LoadSpec) -> RateView {
    RateView {
        good: load.goodput(),
        sent: load.sent_rate(),
        asked: load.asked_rate(spec),
        bytes_in: load.bytes_in_rate(),
        bytes_out: load.bytes_out_rate(),
    }
}

fn seconds(load: &LoadResult, seen: Option<&LoadResult>) -> Vec<SecondView> {
    let view = |interval: &model::load::LoadInterval| {
        let latency = interval.total.unpack();
        // A closed loop's window begins with its first request, a moment after the threads that count its seconds.
        let start_ns = interval.start_ns.max(load.started_ns);
        let end_ns = interval.start_ns + interval.length_ns;
        let supported = |percent: f64| latency.len() >= Statistic::Percentile(percent).needs();
        SecondView {
            start_s: (start_ns - load.started_ns) as f64 / 1e9,
            length_s: end_ns.saturating_sub(start_ns) as f64 / 1e9,
            good: interval.counts.good,
            failed: interval.counts.failures(),
            bytes_in: interval.counts.bytes_in,
            mean_us: latency.mean_us(),
            percentiles_us: SecondView::PERCENTS
                .map(|percent| latency.percentile_us(percent).filter(|_| supported(percent))),
            max_us: latency.range_us().map(|(_, max)| max),
            visitor: seen.map(|seen| probe::second(seen, load, interval)),
        }
    };
    load.intervals.iter().map(view).collect()
}

fn generator(load: &LoadResult) -> GeneratorView {
    let statistic = |late: &Latency, percent: f64| {
        late.percentile_us(percent).filter(|_| late.len() >= Statistic::Percentile(percent).needs())
    };
    GeneratorView {
        account: load.generator.clone(),
        share: load.generator_share(),
        lateness_us: load.lateness().map(|late| [50.0, 99.0, 100.0].map(|percent| statistic(late, percent))),
    }
}

fn unplanned(trial: &Trial, diagnosis: Option<&diagnosis::Diagnosis>, words: &Catalogue) -> Vec<TroubleView> {
    let mut trouble = trouble::of_load(trial, diagnosis, words);
    let log = trial.log_tail.trim();
    if trial.outcome != Outcome::Complete && !log.is_empty() {
        let text = format!("{}:\n{log}", words.word("label-log"));
        trouble.push(TroubleView { text, serious: false });
    }
    trouble
}
