//! A search for the highest rate that a server sustains, as `webdyno load --find-rate` shows it: the answer, and every step.
//!
//! [`SearchView::of`] judges the stored trials anew each time. `text` draws it for a terminal, `json` for programs.

pub mod json;
pub mod text;

use crate::language::{Catalogue, Language, Sentence};
use crate::load::ThresholdView;
use crate::load::held;
use crate::view::table::NOTHING;
use crate::view::{HostView, Row, RowKind, Table, run, sent};
use model::load::{LoadDoubt, LoadResult};
use model::run::{Run, RunEnd};
use model::search::{Answer, Held, Miss, RateSearch, Step, contradictions};

/// A search, judged and worded.
#[derive(Debug, Clone)]
pub struct SearchView {
    /// The language of every sentence in it.
    pub language: Language,
    /// Identifier in the store.
    pub id: String,
    /// What was loaded.
    pub target: String,
    /// When it began, UTC.
    pub began: String,
    /// How the run ended.
    pub end: Sentence,
    /// Version of webdyno that measured.
    pub version: String,
    /// The machine that the load was sent from.
    pub host: HostView,
    /// What was sent, in words.
    pub sent: Sentence,
    /// What decided what chance decides.
    pub seed: u64,
    /// What was searched for.
    pub search: RateSearch,
    /// Good answers per second of the closed loop before it, if there was one.
    pub closed: Option<f64>,
    /// Every step, in order.
    pub steps: Vec<StepView>,
    /// What they amount to.
    pub answer: Answer,
    /// The answer in words.
    pub sentences: Vec<Sentence>,
    /// What must be known before it is believed.
    pub doubts: Vec<Sentence>,
    /// Rates that held once and missed once, or missed below one that held.
    pub contradictions: Vec<f64>,
    /// The steps, printed.
    pub table: Table,
}

/// One step.
#[derive(Debug, Clone)]
pub struct StepView {
    /// What became of it.
    pub step: Step,
    /// Its goals in words.
    pub goals: Vec<ThresholdView>,
    /// Why it missed, in words.
    pub misses: Vec<Sentence>,
}

impl SearchView {
    /// Judges a run that is a search, and words it. `None` when it is none.
    #[must_use]
    pub fn of(run: &Run, language: Language) -> Option<SearchView> {
        let search = run.head.plan.search.clone()?;
        let spec = run.head.plan.load(run.head.plan.cells.first()?);
        let words = Catalogue::of(language);
        let steps: Vec<Step> = run.trials.iter().filter_map(|trial| search.judge(trial, spec)).collect();
        let answer = search.answer(&steps, RateSearch::step_ns(spec));
        let contradictions = contradictions(&steps);
        let closed = run.trials.iter().find(|trial| trial.rate.is_none());
        let views: Vec<StepView> = steps.iter().map(|step| step_view(step, &words)).collect();
        let plan = &run.head.plan;
        let target = plan.server.url().map_or(&plan.name, |url| &url.url);
        Some(SearchView {
            language,
            id: run.head.id.clone(),
            target: target.clone(),
            began: run::began(run.head.anchor.wall_ns),
            end: run::end(&run.head.end, &words),
            version: run.head.version.clone(),
            host: run::host(&run.head.host),
            sent: sent::sentence(spec, &words),
            seed: spec.seed,
            closed: closed.and_then(|trial| trial.load.as_ref()).map(LoadResult::goodput),
            sentences: sentences(&search, answer, &views, &words),
            doubts: doubts(&contradictions, &run.head.end, &words),
            table: table(&search, &views, &words),
            steps: views,
            search,
            answer,
            contradictions,
        })
    }
}

fn step_view(step: &Step, words: &Catalogue) -> StepView {
    StepView {
        goals: step.goals.iter().cloned().map(|judged| held::view(judged, words)).collect(),
        misses: step.misses.iter().map(|miss| missed(miss, words)).collect(),
        step: step.clone(),
    }
}

fn missed(miss: &Miss, words: &Catalogue) -> Sentence {
    match miss {
        Miss::Goal(judged) => held::view(judged.clone(), words).sentence,
        Miss::Behind { due, good, late } => {
            let id = if *late > 0 { "search-behind-late" } else { "search-behind" };
            words.say(id, &[("due", (*due).into()), ("good", (*good).into()), ("late", (*late).into())])
        }
        Miss::Unsent(n) => words.say("search-unsent", &[("n", (*n).into())]),
        Miss::Stopped(_) => words.say("search-stopped", &[]),
        Miss::Generator(LoadDoubt::LateGenerator { percent, late_us }) => {
            let late = units::short_duration(*late_us as f64 * 1e3);
            words.say("search-late", &[("late", late.into()), ("others", (100.0 - percent).into())])
        }
        Miss::Generator(_) => words.say("search-saturated", &[]),
    }
}

fn sentences(search: &RateSearch, answer: Answer, steps: &[StepView], words: &Catalogue) -> Vec<Sentence> {
    let goals: Vec<&str> = search.goals.iter().map(|goal| goal.text.as_str()).collect();
    let goals = words.list(&goals);
    let tried = steps.len();
    let mut told = match answer {
        Answer::Found { rate, missed } => vec![
            words.say("search-found", &[("rate", number(rate).into()), ("goals", goals.into())]),
            words.say("search-missed", &[("rate", number(missed).into())]),
        ],
        Answer::AtLeast { rate, generator } => vec![
            words.say("search-at-least", &[("rate", number(rate).into()), ("goals", goals.into())]),
            words.say("search-generator", &[("rate", number(generator).into())]),
        ],
        Answer::Nothing { lowest } => {
            vec![words.say("search-nothing", &[("rate", number(lowest).into()), ("goals", goals.into())])]
        }
        Answer::Open { held, missed } => {
            let none = || words.word("search-none");
            let printed = |rate: Option<f64>| rate.map_or_else(none, |rate| format!("{}/s", number(rate)));
            vec![words.say("search-open", &[("held", printed(held).into()), ("missed", printed(missed).into())])]
        }
    };
    let above = match answer {
        Answer::Found { missed, .. } | Answer::AtLeast { generator: missed, .. } => Some(missed),
        Answer::Nothing { lowest } => Some(lowest),
        Answer::Open { missed, .. } => missed,
    };
    let why = |view: &&StepView| {
        view.step.held != Held::Yes && above.is_some_and(|rate| rate.total_cmp(&view.step.rate).is_eq())
    };
    if let Some(step) = steps.iter().find(why) {
        told.extend(step.misses.iter().cloned());
    }
    told.push(words.say("search-steps", &[("n", tried.into())]));
    told
}

fn doubts(contradictions: &[f64], end: &RunEnd, words: &Catalogue) -> Vec<Sentence> {
    let mut doubts = Vec::new();
    if !contradictions.is_empty() {
        let rates: Vec<String> = contradictions.iter().map(|rate| format!("{}/s", number(*rate))).collect();
        let rates = words.list(&rates);
        doubts.push(words.say("search-contradiction", &[("rates", rates.into())]));
    }
    if *end == RunEnd::Interrupted {
        doubts.push(words.say("load-interrupted", &[]));
    }
    doubts
}

fn table(search: &RateSearch, steps: &[StepView], words: &Catalogue) -> Table {
    let goals = search.goals.iter().map(|goal| goal.text.clone());
    let heads = [words.word("search-rate"), words.word("search-good")].into_iter().chain(goals);
    let heads: Vec<String> = heads.chain([words.word("search-outcome")]).collect();
    let row = |view: &StepView| {
        let step = &view.step;
        let goals = step.goals.iter().map(|judged| {
            let unit = judged.threshold.metric.unit();
            judged.found.map_or_else(|| NOTHING.to_owned(), |found| held::told(found, unit, words))
        });
        let outcome = words.word(match step.held {
            Held::Yes => "search-held",
            Held::No => "search-not-held",
            Held::Generator => "search-not-held-generator",
        });
        let figures = [number(step.rate), number(step.good)].into_iter().chain(goals).chain([outcome]);
        Row { kind: RowKind::Rate, label: step.number.to_string(), figures: figures.collect() }
    };
    Table { heads, rows: steps.iter().map(row).collect(), notes: Vec::new() }
}

/// Four digits, as the steps have them.
fn number(rate: f64) -> String {
    if rate >= 1000.0 { format!("{rate:.0}") } else { format!("{}", (rate * 1e3).round() / 1e3) }
}
