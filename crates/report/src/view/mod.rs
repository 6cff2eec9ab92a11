//! The view: everything a report shows, as numbers in base units and sentences by id. Renderers arrange it and compute nothing.
//!
//! Field names carry their unit, since [`crate::json`] shows a view as it is.

mod beside;
pub(crate) mod cells;
pub(crate) mod compared;
mod contrasts;
pub(crate) mod doubts;
mod expected;
mod judged;
mod latency_budget;
mod limits;
mod lines;
mod logged;
mod metrics;
mod noise;
mod recommendation;
pub(crate) mod run;
mod scope;
pub(crate) mod sent;
pub(crate) mod series;
mod sweep;
pub(crate) mod table;
mod told;
pub(crate) mod trouble;
mod workers;

pub use beside::BesideView;
pub use contrasts::{ContrastView, DesignView, RatioView};
pub use expected::ExpectedView;
pub use latency_budget::{LatencyBudgetView, PartView, SplitView};
pub use limits::LimitView;
pub use noise::NoiseView;
pub use recommendation::{ChoiceView, RecommendationView, TakeView};
pub use scope::ScopeView;
pub use sweep::{CliffView, LawView, SweepPointView, SweepView};
pub use table::{Row, RowKind, Table};
pub use workers::{FitView, SpreadView, WorkersView};

use crate::language::{Catalogue, Language, Sentence};
use model::plan::Role;
use model::run::Run;
use serde::Serialize;
use stats::Verdict;

/// A run, judged and worded.
#[derive(Debug, Clone, Serialize)]
pub struct View {
    /// The language of every sentence in it.
    pub language: Language,
    /// The run as a whole.
    pub run: RunView,
    /// The cells in the plan's order.
    pub cells: Vec<CellView>,
    /// The loads that ran beside the cells' own, each by itself.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<BesideView>,
    /// The answers to the plan's questions, when these are others than how each cell compares with the baseline.
    pub contrasts: Vec<ContrastView>,
    /// The factors that the cells are combinations of, if they are.
    pub design: Option<DesignView>,
    /// Throughput against a number that grows from cell to cell, if one does.
    pub sweep: Option<SweepView>,
    /// How much trials of a cell differ, and what makes them; `None` when it cannot be told.
    pub noise: Option<NoiseView>,
    /// What the second copy of the baseline says about noise; `None` without such a cell.
    pub noise_floor: Option<Sentence>,
    /// How the comparisons were judged, where that is more than one interval each.
    pub judging: Vec<Sentence>,
    /// What the reader must know before believing the numbers.
    pub warnings: Vec<Sentence>,
    /// What follows: which setting to take, and for what that holds.
    pub recommendation: RecommendationView,
    /// Effective settings that differ between cells.
    pub settings: Vec<SettingView>,
    /// What did not go as planned, and what webdyno noted: each once, the failures first.
    pub trouble: Vec<TroubleView>,
    /// Every trial, in the order they were made.
    pub trials: Vec<TrialView>,
    /// The cells as a table, printed: one scale per row.
    #[serde(skip)]
    pub table: Table,
    /// The metrics beside throughput, cell by cell, printed.
    #[serde(skip)]
    pub metrics: Table,
    /// What access logs hold against what clients were answered, cell by cell, printed; empty where none was counted.
    #[serde(skip)]
    pub logged: Table,
    /// Where the time of a request goes, cell by cell, printed.
    #[serde(skip)]
    pub phases: Table,
    /// What the mean latency went to, cell by cell, printed; without rows when the plan did not ask.
    #[serde(skip)]
    pub budget: Table,
    /// The same of the slowest requests.
    #[serde(skip)]
    pub budget_of_slowest: Table,
    /// What limited each cell, as it is told in lines.
    #[serde(skip)]
    pub limits: Vec<LimitView>,
    /// The contrasts as a table, printed.
    #[serde(skip)]
    pub answers: Table,
}

/// Something that did not go as planned, or that webdyno noted.
#[derive(Debug, Clone, Serialize)]
pub struct TroubleView {
    /// What happened, where, and how often.
    pub text: String,
    /// Whether it touches the result; a note does not.
    pub serious: bool,
}

/// The head of a run.
#[derive(Debug, Clone, Serialize)]
pub struct RunView {
    /// Identifier in the store.
    pub id: String,
    /// Name of the plan.
    pub plan: String,
    /// What the plan finds out.
    pub about: String,
    /// When it began, UTC, such as `2026-11-20T23:58:40Z`.
    pub began: String,
    /// How it ended.
    pub end: Sentence,
    /// Whether it ended as planned.
    pub complete: bool,
    /// Version of webdyno that measured.
    pub version: String,
    /// The server's own name and version, as it said itself.
    pub server: Option<String>,
    /// Seed of the order of trials.
    pub seed: u64,
    /// Blocks planned; those that were made, when the run was to end as soon as it was decided.
    pub blocks: u32,
    /// Confidence of the intervals, such as 0.95.
    pub confidence: f64,
    /// Differences smaller than this are of no interest.
    pub margin: f64,
    /// The machine.
    pub host: HostView,
    /// Who ran on which CPUs.
    pub placement: Sentence,
    /// The limits the server lived in.
    pub confinement: Option<Sentence>,
    /// The plan, parameters filled in.
    pub plan_text: String,
}

/// The machine of a run.
#[derive(Debug, Clone, Serialize)]
pub struct HostView {
    /// Host name.
    pub name: String,
    /// Kernel release.
    pub kernel: String,
    /// CPUs online.
    pub cpus: u32,
    /// Model of the CPUs.
    pub cpu_model: String,
    /// Memory.
    pub memory_bytes: u64,
    /// Swap.
    pub swap_bytes: u64,
}

/// One cell: what was set, what came out, how it compares, what limited it.
#[derive(Debug, Clone, Serialize)]
pub struct CellView {
    /// Its name.
    pub name: String,
    /// Its part in the comparison.
    pub role: Role,
    /// Name of its variant.
    pub variant: String,
    /// What the variant adds to the server's configuration.
    pub directives: Vec<String>,
    /// What is sent.
    pub load: Sentence,
    /// Trials that count.
    pub trials_used: usize,
    /// Trials made.
    pub trials_made: usize,
    /// Length of the window, median over trials.
    pub window_s: Option<f64>,
    /// Good answers per second: geometric mean over the trials that had any, 0 when none had.
    pub good_per_s: Option<f64>,
    /// Good answers per second of each trial that counts.
    pub good_per_s_of_trials: Vec<f64>,
    /// Latencies of all trials that count, merged.
    pub latency: Option<LatencyView>,
    /// Median time of good answers to their first byte, all trials that count merged.
    pub first_byte_median_us: Option<u64>,
    /// Median time to connect of every connection opened, all trials that count merged.
    pub connect_median_us: Option<u64>,
    /// Good answers over all trials that count.
    pub good: u64,
    /// Failures over all trials that count, by cause.
    pub failures: Vec<FailureView>,
    /// Requests still in flight when a load ended: neither answers nor failures.
    pub in_flight: u64,
    /// Requests sent again because the server closed a kept-alive connection without an answer: no failures.
    pub retries: u64,
    /// Requests abandoned by users who gave up or asked again: neither answers nor failures.
    pub abandoned: u64,
    /// Its throughput against the baseline's; `None` for the baseline and without a common block.
    pub comparison: Option<ComparisonView>,
    /// What else it was measured by, against the baseline.
    pub metrics: Vec<MetricView>,
    /// What limited it.
    pub diagnosis: Option<DiagnosisView>,
    /// Said instead of the diagnosis of an A/A cell that is the baseline's over again.
    pub same_as_baseline: Option<Sentence>,
    /// What the server told of itself meanwhile.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub told: Vec<Sentence>,
    /// What became of its access logs, where they were counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logged: Option<LoggedView>,
    /// What its workers held meanwhile.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<WorkersView>,
    /// What the plan expects of its load, and what became of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub expected: Vec<ExpectedView>,
    /// What its latency went to, when the plan asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_budget: Option<LatencyBudgetView>,
    /// Doubts about the load itself.
    pub doubts: Vec<Sentence>,
}

/// The access logs of a cell's trials, counted when each server had ended.
#[derive(Debug, Clone, Serialize)]
pub struct LoggedView {
    /// How the servers were ended: `stop`, `graceful-stop`, `graceful`, `restart` or `kill`.
    pub ending: &'static str,
    /// Whether there was a file of the log's name.
    pub writes: bool,
    /// Complete answers that the clients of the loads and of their warm-ups got.
    pub answers: u64,
    /// Lines about their requests.
    pub lines: u64,
    /// Answers without a line: at least so many.
    pub lost_least: u64,
    /// And at most so many, where some requests may have been logged or not.
    pub lost_most: u64,
    /// Lines that could not be read.
    pub unread: u64,
    /// Trial by trial.
    pub trials: Vec<LoggedTrialView>,
}

/// The access log of one trial.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct LoggedTrialView {
    /// Block, from 1.
    pub block: u32,
    /// Complete answers.
    pub answers: u64,
    /// Lines.
    pub lines: u64,
    /// Answers whose line was not written yet when the load was over.
    pub unwritten: u64,
    /// Answers without a line, at least.
    pub lost_least: u64,
    /// And at most.
    pub lost_most: u64,
}

impl CellView {
    /// What is known beside what limited it: what became of expectations, what the server told, and what its workers held.
    pub fn beside_limit(&self) -> impl Iterator<Item = &Sentence> {
        let expected = self.expected.iter().map(|expected| &expected.sentence);
        expected.chain(&self.told).chain(self.workers.iter().flat_map(|workers| &workers.sentences))
    }

    /// Requests that failed, for whatever cause.
    pub(crate) fn failed(&self) -> u64 {
        self.failures.iter().map(|failure| failure.count).sum()
    }
}

/// Merged latencies, in microseconds.
#[derive(Debug, Clone, Serialize)]
pub struct LatencyView {
    /// Smallest; this and what follows is `None` where requests without an answer leave it unknown.
    pub min_us: Option<u64>,
    /// Arithmetic mean.
    pub mean_us: Option<f64>,
    /// Half are at or below; `None` too when there are fewer requests than it needs, as with every percentile.
    pub median_us: Option<u64>,
    /// 99 % are at or below.
    pub p99_us: Option<u64>,
    /// Largest.
    pub max_us: Option<u64>,
    /// Requests in it.
    pub count: u64,
    /// Those of them without an answer, of which only a lower bound is known: an open loop leaves none out.
    pub unanswered: u64,
    /// The whole distribution, ascending.
    pub percentiles: Vec<PercentileView>,
}

/// One point of a latency distribution.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct PercentileView {
    /// Share of answers, in percent.
    pub percent: f64,
    /// The latency at or below which they are.
    pub at_most_us: u64,
}

/// Failures of one cause.
#[derive(Debug, Clone, Serialize)]
pub struct FailureView {
    /// The cause.
    pub cause: Sentence,
    /// How many.
    pub count: u64,
    /// What was received or what the kernel said, once.
    pub example: Option<String>,
}

/// A cell's throughput as a ratio to the baseline's.
#[derive(Debug, Clone, Serialize)]
pub struct ComparisonView {
    /// Good answers per second, as a multiple of the baseline's; 0 when the cell gave none in any block.
    pub ratio: f64,
    /// Lower end of the interval; absent when there are too few blocks for one.
    pub low: Option<f64>,
    /// Upper end of the interval.
    pub high: Option<f64>,
    /// Blocks compared: both cells gave good answers in them.
    pub blocks: usize,
    /// Blocks in which one of the two gave no good answer at all; with any of them no ratio counts as better or equivalent.
    pub blocks_unanswered: usize,
    /// What it comes to; `None` of what factors do together, of which neither side is the better one.
    #[serde(skip)]
    pub judged: Option<Verdict>,
    /// One word for it.
    pub verdict: Sentence,
    /// The whole sentence.
    pub sentence: Sentence,
    /// What makes it doubtful.
    pub warnings: Vec<Sentence>,
}

/// A number beside throughput: of latency, of the server's CPU time or of its memory.
#[derive(Debug, Clone, Serialize)]
pub struct MetricView {
    /// Which: `p50`, `p99`, `cpu-per-answer`, `memory-peak`.
    pub metric: &'static str,
    /// Its unit: `us`, `bytes`.
    pub unit: &'static str,
    /// Geometric mean over the trials.
    pub value: f64,
    /// As a multiple of the baseline's; absent for the baseline, and when no block has both.
    pub ratio: Option<f64>,
    /// Lower end of its interval.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Blocks compared.
    pub blocks: usize,
    /// One word; less is better.
    pub verdict: Option<Sentence>,
    /// About so many blocks more would decide it; absent where it is decided or that cannot be told, and for the A/A cell, which waits
    /// for nothing.
    pub more_blocks: Option<u32>,
}

/// What limited a cell.
#[derive(Debug, Clone, Serialize)]
pub struct DiagnosisView {
    /// The limit in a few words; when not all trials agree on it, with how many do.
    pub headline: Sentence,
    /// The limit.
    pub primary: FindingView,
    /// What else contributed, or caused it.
    pub contributing: Vec<FindingView>,
    /// What it was not.
    pub ruled_out: Vec<FindingView>,
    /// Trials that came to the same primary finding.
    pub trials_agreeing: u32,
    /// Trials that were judged.
    pub trials_judged: u32,
}

/// One finding with its evidence.
#[derive(Debug, Clone, Serialize)]
pub struct FindingView {
    /// What was found, in a few words.
    pub title: Sentence,
    /// The title as it follows on the earlier findings of the diagnosis, such as `what caused it: ...`.
    pub told: Sentence,
    /// What it brought about.
    pub leads_to: Option<Sentence>,
    /// Whether another finding of the diagnosis is what it brought about; the later one of the two then says so.
    pub effect_told: bool,
    /// What that means and what to do next; what is ruled out has none.
    pub advice: Option<Sentence>,
    /// How sure it is, and why not more.
    pub confidence: ConfidenceView,
    /// What would confirm it.
    pub confirm: Option<Sentence>,
    /// Where its rule is from.
    pub source: Option<&'static str>,
    /// The numbers it rests on.
    pub evidence: Vec<EvidenceView>,
}

/// How sure a finding is.
#[derive(Debug, Clone, Serialize)]
pub struct ConfidenceView {
    /// `confidence-sure`, `confidence-likely` or `confidence-possible`.
    pub level: diagnosis::Confidence,
    /// The same in words, with what speaks against it.
    pub sentence: Sentence,
    /// What speaks against it.
    pub doubts: Vec<Sentence>,
}

/// One number a finding rests on.
#[derive(Debug, Clone, Serialize)]
pub struct EvidenceView {
    /// Its name in the rules.
    pub name: &'static str,
    /// Its unit.
    pub unit: diagnosis::Unit,
    /// The number as the rules saw it.
    pub value: f64,
    /// What it is.
    pub label: String,
    /// The number with its unit, printed, and the threshold that it crossed.
    pub text: String,
    /// The threshold that it crossed, where it is one of those that decide.
    pub limit: Option<diagnosis::Limit>,
    /// Whether an earlier finding of the same diagnosis rests on it too, and says it.
    pub repeated: bool,
}

impl FindingView {
    /// The evidence that no earlier finding of the diagnosis has given.
    pub fn new_evidence(&self) -> impl Iterator<Item = &EvidenceView> {
        self.evidence.iter().filter(|evidence| !evidence.repeated)
    }

    /// How sure it is and what would confirm it; nothing where there is nothing to be sure of.
    pub fn how_sure(&self) -> impl Iterator<Item = &Sentence> {
        let sure = self.source.map(|_| &self.confidence.sentence);
        sure.into_iter().chain(&self.confirm)
    }

    /// What it brought about, when no other finding of the diagnosis says so.
    pub fn new_effect(&self) -> Option<&Sentence> {
        self.leads_to.as_ref().filter(|_| !self.effect_told)
    }
}

/// An effective setting that is not the same in every cell.
#[derive(Debug, Clone, Serialize)]
pub struct SettingView {
    /// The directive.
    pub name: String,
    /// Its value per cell, in the cells' order; `None` where the server did not say.
    pub values: Vec<Option<String>>,
    /// Per cell, whether its kind of server has the directive in any cell.
    #[serde(skip)]
    pub known: Vec<bool>,
}

impl SettingView {
    /// As it is shown, per cell: `None` in those of a server to which it means nothing.
    pub(crate) fn shown(&self) -> impl Iterator<Item = Option<&str>> {
        self.values.iter().zip(&self.known).map(|(value, known)| known.then(|| value.as_deref().unwrap_or("–")))
    }
}

/// One trial.
#[derive(Debug, Clone, Serialize)]
pub struct TrialView {
    /// Block, from 1.
    pub block: u32,
    /// Position in its block, from 1.
    pub position: u32,
    /// Its cell.
    pub cell: String,
    /// How it ended.
    pub outcome: Sentence,
    /// Whether it ended as planned.
    pub complete: bool,
    /// Whether it counts.
    pub used: bool,
    /// Whether it is the one that stands for its cell: its throughput is the median.
    pub typical: bool,
    /// Length of its window.
    pub window_s: Option<f64>,
    /// Good answers per second.
    pub good_per_s: Option<f64>,
    /// Median latency.
    pub median_us: Option<u64>,
    /// What limited it, in a few words.
    pub limit: Option<Sentence>,
    /// What webdyno and its sampler had to say while running it, also where it did no harm.
    pub notes: Vec<String>,
    /// The end of the server's error log, when the trial is not complete.
    pub log_tail: Option<String>,
    /// What happened over time, a panel per kind of measure.
    pub panels: Vec<PanelView>,
}

/// Series that share an axis.
#[derive(Debug, Clone, Serialize)]
pub struct PanelView {
    /// What is shown.
    pub title: Sentence,
    /// The unit of every value.
    pub unit: &'static str,
    /// The lines.
    pub series: Vec<SeriesView>,
}

/// One line over time.
#[derive(Debug, Clone, Serialize)]
pub struct SeriesView {
    /// What it is.
    pub label: Sentence,
    /// Seconds since the load began, and the value; `null` where there was none.
    pub points: Vec<(f64, Option<f64>)>,
}

impl View {
    /// What is said below the comparisons: the noise, how they were judged, and where the noise comes from.
    pub fn about_comparisons(&self) -> impl Iterator<Item = &Sentence> {
        let noise = self.noise.iter().flat_map(|noise| &noise.sentences);
        self.noise_floor.iter().chain(&self.judging).chain(noise)
    }

    /// What the plan expects of a cell: of its own load, then of those beside it.
    pub fn expected(&self, cell: &CellView) -> impl Iterator<Item = &ExpectedView> {
        let seen = self.cells.iter().chain(self.beside.iter().flat_map(|beside| &beside.cells));
        seen.filter(move |seen| seen.name == cell.name).flat_map(|seen| &seen.expected)
    }

    /// Judges a run and words it.
    #[must_use]
    pub fn of(run: &Run, language: Language) -> View {
        let words = Catalogue::of(language);
        let judged = judged::Judged::of(run);
        let others = metrics::Others::of(run);
        let beside = beside::seen(run);
        let cells = cells::views(run, &judged, &others, &words);
        let contrasts = contrasts::views(run, &judged, &others, &words);
        View {
            language,
            run: run::view(run, &words),
            noise_floor: judged.noise_floor(run, &words),
            judging: judged.judging(run, &words),
            warnings: run::warnings(run, &judged, &words),
            recommendation: recommendation::view(run, &judged, &others, &beside, &cells, &words),
            settings: run::settings(run),
            trouble: trouble::trouble(run, &judged, &cells, &words),
            trials: series::trials(run, &judged, &words),
            noise: noise::view(run, &words),
            sweep: sweep::view(run, &words),
            design: contrasts::design(&run.head.plan, &words),
            answers: contrasts::table(&contrasts, run.head.plan.confidence, &words),
            table: table::of(&cells, contrasts.is_empty(), run.head.plan.confidence, &words),
            metrics: metrics::table(run, &cells, contrasts.is_empty(), &words),
            logged: logged::table(&cells, &words),
            phases: table::phases(&cells, &words),
            beside: beside::views(&beside, &words),
            budget: latency_budget::means(&cells, &words),
            budget_of_slowest: latency_budget::slowest(&cells, &words),
            limits: limits::views(&cells, &words),
            cells,
            contrasts,
        }
    }
}
