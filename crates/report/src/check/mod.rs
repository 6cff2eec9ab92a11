//! A check of a running server: who answers and how it is set, what it takes, what limits it, and the one next step.
//!
//! [`CheckView::of`] judges the stored windows anew each time. `text` draws it for a terminal, `json` for programs.

mod answer;
pub mod json;
mod server;
pub mod text;

use crate::language::{Catalogue, Language, Sentence};
use crate::view::{DiagnosisView, EvidenceView, HostView, Row, RowKind, Table, cells, run};
use answer::Answer;
use diagnosis::Cause;
use diagnosis::check::{Advice, Checked};
use model::check::{Check, Summit};
use model::load::{LoadResult, Quantile};
use model::reading::{Column, Span};
use model::run::Run;
use model::trial::Trial;
use serde::Serialize;

/// A window's generator takes so much of the machine that the server could have done clearly more alone.
const GENERATOR_SHARE: f64 = 0.2;
/// Other programs take so much of the machine that the server could have done clearly more without them.
const OTHERS_SHARE: f64 = 0.2;
/// Connections that came in and were not ours, of ours, from which they count.
const FOREIGN: f64 = 0.05;
/// An interval wider than this part of its middle is wide.
const WIDE: f64 = 0.2;

/// Steps that say that something else was in the way of the answer.
const OPEN: [&str; 6] =
    ["step-others", "step-beyond", "step-host-disturbed", "step-generator", "step-time", "step-files"];

/// A check, judged and worded.
#[derive(Debug, Clone)]
pub struct CheckView {
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
    /// Facts about the server, as they were stored.
    pub facts: Check,
    /// Who answers, how it is set, what it holds.
    pub server: Vec<Sentence>,
    /// What could not be seen.
    pub unseen: Vec<Sentence>,
    /// The page, in words.
    pub page: Vec<Sentence>,
    /// What it takes.
    pub answer: Option<Answer>,
    /// The answer in words, and why the climb ended.
    pub takes: Vec<Sentence>,
    /// What limits it where most is asked of it.
    pub limit: Option<DiagnosisView>,
    /// What to do next.
    pub step: StepView,
    /// What else is wrong.
    pub others: Vec<StepView>,
    /// What must be known before it is believed.
    pub doubts: Vec<Sentence>,
    /// Windows by connections.
    pub windows: Vec<WindowView>,
    /// The climb, printed.
    pub table: Table,
}

/// Something to do.
#[derive(Debug, Clone, Serialize)]
pub struct StepView {
    /// What to do, in words.
    pub sentence: Sentence,
    /// Whether something is wrong; otherwise it is as it should be, or not the server's doing.
    pub is_fault: bool,
    /// The directive, as the administrator's own file calls it.
    pub directive: Option<String>,
    /// Where it stands.
    pub place: Option<String>,
    /// Its value.
    pub from: Option<String>,
    /// The value to try.
    pub to: Option<String>,
    /// The numbers that show it.
    pub evidence: Vec<EvidenceView>,
}

/// One window.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct WindowView {
    /// Requests at once.
    pub connections: u32,
    /// Good answers per second.
    pub good_per_s: f64,
    /// Half of the answers took no longer.
    pub p50_us: Option<u64>,
    /// 99 of 100 took no longer.
    pub p99_us: Option<u64>,
    /// Failed requests.
    pub failed: u64,
}

impl CheckView {
    /// Judges a run that is a check, and words it. `None` when it is none.
    #[must_use]
    pub fn of(run: &Run, language: Language) -> Option<CheckView> {
        let facts = run.head.check.as_deref()?;
        let words = Catalogue::of(language);
        let checked = diagnosis::check::check(run)?;
        let answer = Answer::of(run);
        let windows: Vec<WindowView> = run.trials.iter().filter_map(window).collect();
        let url = run.head.plan.server.url()?;
        let cpus = u64::from(run.head.host.cpus.max(1));
        Some(CheckView {
            language,
            id: run.head.id.clone(),
            target: url.url.clone(),
            began: run::began(run.head.anchor.wall_ns),
            end: run::end(&run.head.end, &words),
            version: run.head.version.clone(),
            host: run::host(&run.head.host),
            server: server::sentences(&facts.running, &checked.fits, backlog(run), cpus, &words),
            unseen: server::unseen(&facts.running, &words),
            page: server::page(facts.page.as_ref(), &words),
            takes: takes(answer.as_ref(), facts.summit, &words),
            limit: checked.diagnosis.as_ref().map(|diagnosis| cells::diagnosis_view(diagnosis, &words)),
            step: step(&checked.step, &words),
            others: checked.others.iter().map(|other| step(other, &words)).collect(),
            doubts: doubts(run, answer.as_ref(), &checked, &words),
            table: table(run, &words),
            windows,
            answer,
            facts: facts.clone(),
        })
    }

    /// Whether a setting, or what is behind it, holds the server back.
    #[must_use]
    pub fn has_fault(&self) -> bool {
        self.step.is_fault
    }

    /// Whether it can be told at all what limits it.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.answer.is_none()
            || OPEN.contains(&self.step.sentence.id.as_str())
            || (self.step.sentence.id == "step-not-found" && self.facts.summit == Summit::Memory)
            || matches!(self.facts.summit, Summit::Guard | Summit::Interrupted)
    }
}

fn window(trial: &Trial) -> Option<WindowView> {
    let load = trial.measured()?;
    let known = |percent: f64| match load.percentile(percent)? {
        Quantile::Exactly(us) => Some(us),
        Quantile::MoreThan(_) => None,
    };
    Some(WindowView {
        connections: load.connections,
        good_per_s: load.goodput(),
        p50_us: known(50.0),
        p99_us: known(99.0),
        failed: load.counts.failures(),
    })
}

/// How many connections may wait to be accepted, as the kernel has it.
fn backlog(run: &Run) -> Option<u64> {
    let rows = run.trials.iter().flat_map(|trial| &trial.readings.rows);
    rows.filter_map(|row| row.get(Column::AcceptLimit)).max()
}

fn takes(answer: Option<&Answer>, summit: Summit, words: &Catalogue) -> Vec<Sentence> {
    let mut told = Vec::new();
    if let Some(answer) = answer {
        let arguments = [
            ("rate", number(answer.good_per_s).into()),
            ("low", answer.low.map_or_else(nothing, number).into()),
            ("high", answer.high.map_or_else(nothing, number).into()),
            ("connections", answer.connections.into()),
            ("silent", answer.silent.into()),
            ("windows", answer.windows.into()),
        ];
        let id = match (answer.silent, answer.low) {
            (0, Some(_)) => "check-takes",
            (0, None) => "check-takes-once",
            _ => "check-takes-silent",
        };
        told.push(words.say(id, &arguments));
        let time = |us: Option<u64>| us.map_or_else(nothing, |us| units::short_duration(us as f64 * 1e3));
        let id = if answer.p99_us.is_some() { "check-latency" } else { "check-latency-few" };
        told.push(words.say(id, &[("p50", time(answer.p50_us).into()), ("p99", time(answer.p99_us).into())]));
    }
    let id = match summit {
        Summit::Plateau => "check-summit-plateau",
        Summit::Cliff => "check-summit-cliff",
        Summit::Failures => "check-summit-failures",
        Summit::Memory => "check-summit-memory",
        Summit::Guard => "check-summit-guard",
        Summit::Ceiling => "check-summit-ceiling",
        Summit::Files => "check-summit-files",
        Summit::Time => "check-summit-time",
        Summit::NoAnswer => "check-summit-no-answer",
        Summit::Refused => "check-summit-refused",
        Summit::Interrupted => "load-interrupted",
    };
    told.push(words.say(id, &[]));
    told
}

fn step(advice: &Advice, words: &Catalogue) -> StepView {
    let change = &advice.change;
    let text = |part: &Option<String>| part.clone().unwrap_or_else(nothing);
    let place = change.place.clone().unwrap_or_else(|| words.word("check-default"));
    let arguments = [
        ("name", text(&change.name).into()),
        ("place", place.into()),
        ("from", text(&change.from).into()),
        ("to", text(&change.to).into()),
    ];
    StepView {
        sentence: words.say(advice.id, &arguments),
        is_fault: advice.is_fault,
        directive: change.name.clone(),
        place: change.place.clone(),
        from: change.from.clone(),
        to: change.to.clone(),
        evidence: cells::evidence(&change.numbers, words),
    }
}

fn doubts(run: &Run, answer: Option<&Answer>, checked: &Checked, words: &Catalogue) -> Vec<Sentence> {
    let mut doubts = Vec::new();
    let loads = || run.trials.iter().filter_map(|trial| trial.load.as_ref());
    let cpus = f64::from(run.head.host.cpus.max(1));
    let share = |load: &LoadResult| load.generator.cpu_ns as f64 / 1e9 / load.seconds().max(1e-9) / cpus;
    let most = loads().map(share).fold(0.0, f64::max);
    if most >= GENERATOR_SHARE {
        doubts.push(words.say("check-generator", &[("percent", format!("{:.0}", most * 100.0).into())]));
    }
    if let Some(crowd) = run.head.check.as_ref().and_then(|check| check.others.as_ref()?.crowd()) {
        let names = words.list(&crowd.names);
        let percent = format!("{:.0}", crowd.share * 100.0);
        doubts.push(words.say("check-others-named", &[("percent", percent.into()), ("names", names.into())]));
    } else if let Some(share) = checked.other_cores.map(|cores| cores / cpus).filter(|&share| share >= OTHERS_SHARE) {
        doubts.push(words.say("check-others", &[("percent", format!("{:.0}", share * 100.0).into())]));
    }
    let door =
        |of: fn(&model::check::Door) -> u64| run.trials.iter().filter_map(|trial| trial.door.as_ref().map(of)).max();
    let active = door(|door| door.others.saturating_sub(door.idle))
        .unwrap_or(0)
        .max(door(|door| door.others_opened).unwrap_or(0));
    if active > 0 {
        doubts.push(words.say("check-foreign", &[("n", active.into())]));
    } else if let Some(strangers) = foreign(run) {
        doubts.push(words.say("check-foreign-opened", &[("n", strangers.into())]));
    }
    let wide = answer.is_some_and(|answer| {
        answer.low.zip(answer.high).is_some_and(|(low, high)| high - low > WIDE * answer.good_per_s)
    });
    if wide {
        doubts.push(words.say("check-wide", &[]));
    }
    if checked.diagnosis.as_ref().is_some_and(|diagnosis| diagnosis.causes().any(|cause| cause == Cause::MonitorUnfit))
    {
        doubts.push(words.say("cause-monitor-unfit", &[]));
    }
    let notes = run.trials.iter().flat_map(|trial| &trial.notes);
    doubts.extend(notes.map(|note| words.say("check-note", &[("note", note.as_str().into())])));
    doubts
}

/// Connections that came in on this host and were not ours, if they are many enough to count. Of all windows together: readings reach beyond
/// their window, into those beside it, and where a connection is closed after some requests each window opens many.
fn foreign(run: &Run) -> Option<u64> {
    let mut rows = run.trials.iter().filter(|trial| trial.load.is_some()).flat_map(|trial| &trial.readings.rows);
    let from = rows.next()?;
    let opened = Span { from, to: rows.last()? }.delta(Column::TcpPassiveOpens)?;
    // Before each window one request is sent alone, and of those that its end cut off some may not be counted.
    let of = |load: &LoadResult| load.counts.connects + u64::from(load.connections) + 1;
    let ours: u64 = run.trials.iter().filter_map(|trial| trial.load.as_ref()).map(of).sum();
    let others = opened.saturating_sub(ours);
    (others as f64 > FOREIGN * ours as f64 && others > 5).then_some(others)
}

fn table(run: &Run, words: &Catalogue) -> Table {
    let heads = ["check-good", "check-p50", "check-p99", "check-failed"];
    let row = |trial: &Trial| {
        let seen = window(trial)?;
        let time = |us: Option<u64>| us.map_or_else(nothing, |us| units::short_duration(us as f64 * 1e3));
        Some(Row {
            kind: RowKind::Rate,
            label: format!("{} {}", words.word("check-at-once"), seen.connections),
            figures: vec![number(seen.good_per_s), time(seen.p50_us), time(seen.p99_us), seen.failed.to_string()],
        })
    };
    Table {
        heads: heads.iter().map(|id| words.word(id)).collect(),
        rows: run.trials.iter().filter_map(row).collect(),
        notes: Vec::new(),
    }
}

fn nothing() -> String {
    crate::view::table::NOTHING.to_owned()
}

/// Three digits, whole from a hundred on.
fn number(value: f64) -> String {
    units::si(value).print(value)
}
