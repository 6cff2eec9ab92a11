//! Two runs side by side, as `webdyno compare` shows them: ratios with intervals that allow for drift, and what else is not the same.
//!
//! `text` draws it for a terminal, `json` for programs.

pub mod json;
pub mod text;

use crate::language::{Catalogue, Language, Sentence};
use crate::view::compared::{verdict_told, verdict_word};
use crate::view::run::began;
use crate::view::table::{NOTHING, percent, ratio};
use crate::view::{Row, RowKind, Table};
use model::run::Run;
use serde::Serialize;
use stats::{StatsError, TREND, Verdict, WALK};
use verdicts::{Between, Difference, Differs, Metric, Shared, Side};

/// Two sides, compared and worded.
#[derive(Debug, Clone, Serialize)]
pub struct BetweenView {
    /// The language of every sentence in it.
    pub language: Language,
    /// The runs of the first side.
    pub first: Vec<OneRun>,
    /// The runs of the second side, which is compared with the first.
    pub second: Vec<OneRun>,
    /// The cells that both have.
    pub cells: Vec<SharedView>,
    /// What must be known first: that nothing was interleaved, what else differs, which cells have no partner.
    pub warnings: Vec<Sentence>,
    /// Of these, what makes them measurements of different things.
    pub forbidding: Vec<Sentence>,
    /// Cells that only one of them has.
    pub alone: Vec<String>,
    /// By what rule the intervals are as wide as they are.
    pub rule: Vec<Sentence>,
    /// Standard deviation of the random walk that is allowed for, per trial.
    pub walk: f64,
    /// Trend that is allowed for, per trial.
    pub trend: f64,
    /// Trials that both are allowed for over.
    pub drift_trials: f64,
    /// Confidence of the intervals.
    pub confidence: f64,
    /// The cells as a table, printed.
    #[serde(skip)]
    pub table: Table,
}

/// A run of a side.
#[derive(Debug, Clone, Serialize)]
pub struct OneRun {
    /// Identifier in the store.
    pub id: String,
    /// Name of its plan.
    pub plan: String,
    /// When it began, UTC.
    pub began: String,
    /// Trials made.
    pub trials: usize,
    /// Version of webdyno that measured.
    pub version: String,
}

/// A cell on both sides.
#[derive(Debug, Clone, Serialize)]
pub struct SharedView {
    /// Its name on the first side.
    pub first: String,
    /// On the second.
    pub second: String,
    /// What came out, throughput first.
    pub metrics: Vec<ApartView>,
    /// How throughput compares.
    #[serde(skip)]
    pub judged: Verdict,
    /// The same in words.
    pub sentence: Sentence,
    /// One word for it.
    pub verdict: Sentence,
}

/// A metric on both sides.
#[derive(Debug, Clone, Serialize)]
pub struct ApartView {
    /// Which: `goodput`, `p50`, `p99`, `cpu-per-answer`, `memory-peak`.
    pub metric: &'static str,
    /// Geometric mean on the first side.
    pub first: f64,
    /// On the second.
    pub second: f64,
    /// Trials on the first side.
    pub first_trials: usize,
    /// On the second.
    pub second_trials: usize,
    /// Second over first.
    pub ratio: f64,
    /// Lower end of its interval; absent when a side has a single trial.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// One word.
    pub verdict: Sentence,
}

impl BetweenView {
    /// Compares two sides, each of at least one run, and words it.
    ///
    /// # Errors
    /// When nothing can be computed, because the first plan's confidence or margin is none.
    pub fn of(first: &[Run], second: &[Run], language: Language) -> Result<BetweenView, StatsError> {
        let words = Catalogue::of(language);
        let between = verdicts::between(Side(first), Side(second))?;
        let plan = &first[0].head.plan;
        let cells: Vec<_> =
            between.cells.iter().map(|cell| shared(cell, plan.confidence, plan.margin, &words)).collect();
        let forbids = between.differences.iter().filter(|difference| difference.what.forbids());
        Ok(BetweenView {
            language,
            warnings: warnings(first, second, &between, &words),
            forbidding: forbids.map(|difference| differs(difference, &words)).collect(),
            alone: between.alone.clone(),
            rule: rule(&between, plan.confidence, &words),
            walk: between.drift.walk,
            trend: between.drift.trend,
            drift_trials: between.drift.trials,
            confidence: plan.confidence,
            table: table(&cells, plan.confidence, &words),
            first: first.iter().map(one_run).collect(),
            second: second.iter().map(one_run).collect(),
            cells,
        })
    }
}

fn one_run(run: &Run) -> OneRun {
    OneRun {
        id: run.head.id.clone(),
        plan: run.head.plan.name.clone(),
        began: began(run.head.anchor.wall_ns),
        trials: run.trials.len(),
        version: run.head.version.clone(),
    }
}

fn shared(cell: &Shared, confidence: f64, margin: f64, words: &Catalogue) -> SharedView {
    let metrics = cell.metrics.iter().map(|apart| ApartView {
        metric: apart.metric.name(),
        first: apart.means.0,
        second: apart.means.1,
        first_trials: apart.trials.0,
        second_trials: apart.trials.1,
        ratio: apart.comparison.ratio,
        low: apart.comparison.interval.map(|it| it.low),
        high: apart.comparison.interval.map(|it| it.high),
        verdict: verdict_word(apart.comparison.verdict, words),
    });
    let throughput = cell.metrics.iter().find(|apart| apart.metric == Metric::Goodput);
    let Some(apart) = throughput else {
        let judged = Verdict::Inconclusive { more_blocks: None };
        return SharedView {
            first: cell.first.clone(),
            second: cell.second.clone(),
            metrics: metrics.collect(),
            judged,
            sentence: words.say("between-nothing", &[]),
            verdict: verdict_word(judged, words),
        };
    };
    let mut arguments = vec![
        ("ratio", ratio(apart.comparison.ratio).into()),
        ("first", apart.trials.0.into()),
        ("second", apart.trials.1.into()),
    ];
    let told = match apart.comparison.interval {
        None => words.say("between-alone", &arguments),
        Some(interval) => {
            arguments.extend([
                ("low", ratio(interval.low).into()),
                ("high", ratio(interval.high).into()),
                ("confidence", percent(confidence).into()),
            ]);
            words.say("between-compared", &arguments)
        }
    };
    let long = verdict_told(apart.comparison.verdict, margin, words);
    let sentence = [("compared", told.text.into()), ("judgement", long.text.into())];
    SharedView {
        first: cell.first.clone(),
        second: cell.second.clone(),
        metrics: metrics.collect(),
        judged: apart.comparison.verdict,
        sentence: words.say("compared-and-judged", &sentence),
        verdict: verdict_word(apart.comparison.verdict, words),
    }
}

fn warnings(first: &[Run], second: &[Run], between: &Between, words: &Catalogue) -> Vec<Sentence> {
    let gap = (second[0].head.anchor.wall_ns - first[0].head.anchor.wall_ns).unsigned_abs() as f64;
    let mut warnings = vec![words.say("between-not-interleaved", &[("gap", apart(gap).into())])];
    warnings.extend(between.differences.iter().map(|difference| differs(difference, words)));
    if !between.alone.is_empty() {
        let cells = words.list(&between.alone);
        warnings.push(words.say("between-only", &[("cells", cells.into())]));
    }
    warnings
}

/// A time between two runs, which may be days.
fn apart(ns: f64) -> String {
    match ns / 60e9 {
        minutes if minutes < 2.0 => units::short_duration(ns),
        minutes if minutes < 120.0 => format!("{minutes:.0} min"),
        minutes => format!("{:.1} h", minutes / 60.0),
    }
}

/// What is not the same, and how it is on both sides.
fn differs(difference: &Difference, words: &Catalogue) -> Sentence {
    let (id, cell) = match &difference.what {
        Differs::Machine => ("between-machine", None),
        Differs::Load(cell) => ("between-load", Some(cell)),
        Differs::Host => ("between-host", None),
        Differs::Kernel => ("between-kernel", None),
        Differs::Version => ("between-version", None),
        Differs::Server => ("between-server", None),
        Differs::Placement => ("between-placement", None),
        Differs::Confinement => ("between-confinement", None),
        Differs::Warmup => ("between-warmup", None),
        Differs::Configuration => ("between-configuration", None),
        Differs::Settings(cell) => ("between-settings", Some(cell)),
    };
    let shown = |text: &str| if text.is_empty() { NOTHING.to_owned() } else { text.to_owned() };
    let mut arguments = vec![("first", shown(&difference.first).into()), ("second", shown(&difference.second).into())];
    arguments.extend(cell.map(|cell| ("cell", cell.as_str().into())));
    words.say(id, &arguments)
}

/// By what the intervals are widened.
fn rule(between: &Between, confidence: f64, words: &Catalogue) -> Vec<Sentence> {
    let drift = &between.drift;
    let allowance = drift.allowance(confidence).exp_m1();
    let arguments = [
        ("walk", percent(drift.walk).into()),
        ("trend", percent(TREND).into()),
        ("trials", format!("{:.0}", drift.trials).into()),
        ("allowance", percent((allowance * 1000.0).round() / 1000.0).into()),
    ];
    let mut rule = vec![words.say("between-rule", &arguments)];
    if drift.walk > WALK {
        rule.push(words.say("between-own-walk", &[("usual", percent(WALK).into())]));
    }
    rule.push(words.say("between-better", &[]));
    rule
}

fn table(cells: &[SharedView], confidence: f64, words: &Catalogue) -> Table {
    let known: Vec<Metric> = Metric::ALL
        .into_iter()
        .filter(|metric| cells.iter().any(|cell| cell.metrics.iter().any(|it| it.metric == metric.name())))
        .collect();
    let interval = words.say("row-interval", &[("confidence", percent(confidence).into())]).text;
    let mut rows = Vec::new();
    for metric in known {
        let of = |cell: &SharedView| cell.metrics.iter().find(|it| it.metric == metric.name()).cloned();
        let row = |kind, label: String, figure: &dyn Fn(&ApartView) -> Option<String>| Row {
            kind,
            label,
            figures: cells
                .iter()
                .map(|cell| of(cell).as_ref().and_then(figure).unwrap_or_else(|| NOTHING.to_owned()))
                .collect(),
        };
        let label = match metric {
            Metric::Goodput => words.word("row-ratio"),
            other => words.word(&format!("ratio-{}", other.name())),
        };
        rows.push(row(RowKind::Ratio, label, &|it| Some(format!("×{}", ratio(it.ratio)))));
        rows.push(row(RowKind::Interval, format!("  {interval}"), &|it| {
            Some(format!("{}–{}", ratio(it.low?), ratio(it.high?)))
        }));
        let kind = if metric == Metric::Goodput { RowKind::Verdict } else { RowKind::Interval };
        rows.push(row(kind, format!("  {}", words.word("row-verdict")), &|it| Some(it.verdict.text.clone())));
    }
    let heads = cells.iter().map(|cell| match cell.first == cell.second {
        true => cell.first.clone(),
        false => format!("{} / {}", cell.second, cell.first),
    });
    Table { heads: heads.collect(), rows, notes: vec![words.say("between-note", &[])] }
}
