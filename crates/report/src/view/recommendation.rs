//! What follows from a run: which of its settings to take, what that brings and costs, and for what it holds. It is drawn from the
//! verdicts, the expectations and the diagnoses; where they do not suffice it says what is missing.

mod price;

use crate::language::{Catalogue, Sentence};
use crate::view::beside::{self, Seen};
use crate::view::compared::MOST_MISSING;
use crate::view::judged::Judged;
use crate::view::metrics::Others;
use crate::view::scope::{self, ScopeView};
use crate::view::table::{percent, ratio};
use crate::view::{CellView, expected, lines};
use model::plan::{Role, Variant};
use model::run::Run;
use serde::Serialize;
use stats::{Comparison, PILOT, Verdict};
use verdicts::{Advice, Choice, Metric, Missed, Reason, Setting, Verdicts, choices};

/// Findings from which nothing follows for the server.
const SAYS_NOTHING: [&str; 3] = ["cause-monitor-unfit", "cause-unexplained", "cause-not-measured"];

/// What follows from a run.
#[derive(Debug, Clone, Default, Serialize)]
pub struct RecommendationView {
    /// What the plan lets choose from, each with its advice.
    pub choices: Vec<ChoiceView>,
    /// Which settings do what the plan expects, or that there is nothing to choose from.
    pub notes: Vec<Sentence>,
    /// Which cells lose lines of the access log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub losing: Option<Sentence>,
    /// For what it holds.
    pub scope: Option<ScopeView>,
}

/// Settings that met the same load, and what to do about them.
#[derive(Debug, Clone, Serialize)]
pub struct ChoiceView {
    /// `take`, `stay` or `open`.
    pub advice: &'static str,
    /// The setting that the others were compared with.
    pub stays: String,
    /// The others.
    pub others: Vec<String>,
    /// The one to take.
    pub take: Option<TakeView>,
    /// Those that it is open of.
    pub open: Vec<String>,
    /// Those with which most requests fail, which are no choice.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failing: Vec<String>,
    /// About so many blocks more would tell; absent when nothing is open or it cannot be told.
    pub more_blocks: Option<u32>,
    /// The advice.
    pub sentence: Sentence,
    /// What it means in full, what else it changes, and what limits the server then.
    pub details: Vec<Sentence>,
}

/// A setting to take.
#[derive(Debug, Clone, Serialize)]
pub struct TakeView {
    /// Its name.
    pub setting: String,
    /// Its cells.
    pub cells: Vec<String>,
    /// What it sets otherwise than the one that stays, by the names of the server's own configuration.
    pub lines: Vec<String>,
    /// What the one that stays sets there.
    pub instead_of: Vec<String>,
    /// What decided: `expected`, `answers`, or a metric.
    pub by: &'static str,
    /// By that metric, or by good answers: as a multiple of the one that stays.
    pub ratio: Option<f64>,
    /// Lower end of its interval.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Others that this speaks for as well and whose intervals overlap with its own.
    pub alike: Vec<String>,
}

impl RecommendationView {
    /// All of it in the order it is read: the notes, each advice with what belongs to it, which lines are lost, and for what it holds. With
    /// each, whether it belongs to an advice above it.
    pub fn told(&self) -> impl Iterator<Item = (bool, &Sentence)> {
        let choices = self.choices.iter().flat_map(|choice| {
            std::iter::once((false, &choice.sentence)).chain(choice.details.iter().map(|detail| (true, detail)))
        });
        let notes = self.notes.iter().map(|note| (false, note));
        let last = self.losing.iter().chain(self.scope.iter().map(|scope| &scope.sentence));
        notes.chain(choices).chain(last.map(|sentence| (false, sentence)))
    }
}

/// What follows from a run; nothing when nothing was measured.
pub(crate) fn view(
    run: &Run,
    judged: &Judged,
    others: &Others,
    beside: &[Seen<'_>],
    cells: &[CellView],
    words: &Catalogue,
) -> RecommendationView {
    if cells.iter().all(|cell| cell.trials_used == 0) {
        return RecommendationView::default();
    }
    let found = offered(run, judged, others);
    let of_load = |seen: &Seen<'_>| offered(&seen.run, &seen.judged, &seen.others);
    let beside: Vec<(&str, Vec<Choice>)> = beside.iter().map(|seen| (seen.load.name.as_str(), of_load(seen))).collect();
    let teller = Teller { run, cells, beside: &beside, words };
    let mut notes = expected::by_setting(run, words);
    let mut is_limited = false;
    if found.is_empty() {
        notes.insert(0, words.say("recommend-nothing", &[]));
        let limits = teller.limits();
        is_limited = !limits.is_empty();
        notes.extend(limits);
    }
    RecommendationView {
        choices: found.iter().map(|choice| teller.choice(choice, judged)).collect(),
        notes,
        losing: teller.losing(),
        scope: (!found.is_empty() || is_limited).then(|| scope::of(run, &found, words)),
    }
}

fn offered(run: &Run, judged: &Judged, others: &Others) -> Vec<Choice> {
    let others = others.each().map(|(metric, verdicts)| (*metric, verdicts));
    let verdicts: Vec<(Metric, &Verdicts)> = [(Metric::Goodput, judged.verdicts())].into_iter().chain(others).collect();
    choices(run, &verdicts)
}

/// What limits a cell, and the advice about its cause, where one was found.
fn limited(cell: &CellView) -> Option<(&str, &str)> {
    let diagnosis = cell.diagnosis.as_ref()?;
    if SAYS_NOTHING.contains(&diagnosis.primary.title.id.as_str()) {
        return None;
    }
    let cause = diagnosis.contributing.iter().find(|finding| finding.told.id == "told-as-cause");
    let advice = cause.unwrap_or(&diagnosis.primary).advice.as_ref()?;
    Some((&diagnosis.headline.text, &advice.text))
}

/// Whoever puts it into words.
struct Teller<'a> {
    run: &'a Run,
    cells: &'a [CellView],
    /// The choices as each load beside the cells' own saw them.
    beside: &'a [(&'a str, Vec<Choice>)],
    words: &'a Catalogue,
}

impl Teller<'_> {
    fn choice(&self, choice: &Choice, judged: &Judged) -> ChoiceView {
        let stays = self.name(&choice.stays);
        let open: Vec<String> = choice.open().map(|setting| self.name(setting)).collect();
        let take = match choice.advice {
            Advice::Take(place, reason) => Some((&choice.others[place], reason)),
            Advice::Stay | Advice::Open => None,
        };
        let (advice, sentence, mut details) = match (choice.advice, take) {
            (_, Some((taken, reason))) => {
                ("take", self.take(choice, taken, reason), self.about(choice, taken, reason, judged))
            }
            (Advice::Open, _) => ("open", self.open(&stays, &open), Vec::new()),
            _ => {
                let kept = [("stays", self.words.quoted(&stays).into())];
                ("stay", self.words.say("recommend-stay", &kept), Vec::new())
            }
        };
        details.extend(self.rest(choice, take.is_some(), &open));
        details.extend(self.failing(choice));
        let (limited, id) = match take {
            Some((taken, _)) => (taken, "recommend-limit-then"),
            None => (&choice.stays, "recommend-limit-of"),
        };
        details.extend(self.single(limited).and_then(|cell| self.limit(cell, id)));
        ChoiceView {
            advice,
            stays,
            others: choice.others.iter().map(|other| self.name(other)).collect(),
            take: take.map(|(taken, reason)| self.taken(choice, taken, reason)),
            more_blocks: choice.more_blocks(),
            failing: choice
                .others
                .iter()
                .filter(|other| choice.is_failing(other))
                .map(|other| self.name(other))
                .collect(),
            open,
            sentence,
            details,
        }
    }

    fn taken(&self, choice: &Choice, taken: &Setting, reason: Reason) -> TakeView {
        let compared = taken.by(reason.metric());
        let interval = compared.and_then(|compared| compared.interval);
        TakeView {
            setting: self.name(taken),
            cells: taken.cells.clone(),
            lines: self.lines(taken, &choice.stays),
            instead_of: self.lines(&choice.stays, taken),
            by: match reason {
                Reason::Expected => "expected",
                Reason::Answers => "answers",
                Reason::Metric(metric) => metric.name(),
            },
            ratio: compared.map(|compared| compared.ratio),
            low: interval.map(|interval| interval.low),
            high: interval.map(|interval| interval.high),
            alike: choice.alike().into_iter().map(|alike| self.name(alike)).collect(),
        }
    }

    fn take(&self, choice: &Choice, taken: &Setting, reason: Reason) -> Sentence {
        let (setting, stays) = (self.words.quoted(&self.name(taken)), self.words.quoted(&self.name(&choice.stays)));
        let of_metric = taken.by(reason.metric()).map(|compared| self.ratio(compared)).unwrap_or_default();
        let why = match reason {
            Reason::Expected => {
                let missed = self.list(choice.stays.misses.iter().map(|missed| self.missed(&choice.stays, missed)));
                self.words.say("recommend-why-expected", &[("stays", stays.clone().into()), ("missed", missed.into())])
            }
            Reason::Answers => {
                let rate = units::si(taken.good_per_s).print(taken.good_per_s);
                let arguments = [("rate", rate.into()), ("stays", stays.clone().into())];
                self.words.say("recommend-why-answers", &arguments)
            }
            Reason::Metric(Metric::Goodput) => self.words.say("recommend-why-goodput", &[("ratio", of_metric.into())]),
            Reason::Metric(metric) => {
                let as_many = taken.no_worse_before(metric).all(|earlier| earlier != Metric::Goodput);
                let id = if as_many { "recommend-why-metric" } else { "recommend-why-metric-no-fewer" };
                let metric = self.words.word(&format!("ratio-{}", metric.name()));
                self.words.say(id, &[("metric", metric.into()), ("ratio", of_metric.into())])
            }
        };
        let arguments = [("setting", setting.into()), ("stays", stays.into()), ("why", why.text.into())];
        self.words.say("recommend-take", &arguments)
    }

    /// What a setting sets, brings and costs.
    fn about(&self, choice: &Choice, taken: &Setting, reason: Reason, judged: &Judged) -> Vec<Sentence> {
        let listed = |id: &str, items: Vec<String>| {
            (!items.is_empty()).then(|| self.words.say(id, &[("list", self.list(items).into())]))
        };
        let stays = self.words.quoted(&self.name(&choice.stays));
        let lines = |id: &str, lines: Vec<String>| {
            let arguments = [("stays", stays.as_str().into()), ("lines", lines.join("; ").into())];
            (!lines.is_empty()).then(|| self.words.say(id, &arguments))
        };
        let alike = choice.alike().into_iter().map(|setting| self.words.quoted(&self.name(setting))).collect();
        let (gains, mut costs) = self.changes(choice, taken, Some(reason));
        costs.extend(self.losses(choice, taken));
        let sentences = [
            lines("recommend-lines", self.lines(taken, &choice.stays)),
            lines("recommend-lines-instead", self.lines(&choice.stays, taken)),
            listed("recommend-no-worse", self.no_worse(taken, reason)),
            listed("recommend-gains", gains),
            listed("recommend-costs", costs),
            self.depends(choice, judged),
            listed("recommend-alike", alike),
        ];
        sentences.into_iter().flatten().collect()
    }

    /// The factors that decide how much a level does.
    fn depends(&self, choice: &Choice, judged: &Judged) -> Option<Sentence> {
        let (factor, _) = choice.stays.level.as_ref()?;
        let together = self.run.head.plan.contrasts.iter().filter(|contrast| {
            let shown = judged.contrast(contrast).map(|compared| compared.comparison.verdict);
            let of_both = contrast.effect.as_ref().is_some_and(|effect| effect.factors().contains(&factor.as_str()));
            of_both && !contrast.has_sides() && matches!(shown, Some(Verdict::Better | Verdict::Worse))
        });
        let effects: Vec<String> = together.map(|contrast| self.words.quoted(&contrast.name)).collect();
        (!effects.is_empty()).then(|| self.words.say("recommend-depends", &[("list", self.list(effects).into())]))
    }

    fn open(&self, stays: &str, open: &[String]) -> Sentence {
        let others = self.list(open.iter().map(|name| self.words.quoted(name)));
        self.words.say("recommend-open", &[("stays", self.words.quoted(stays).into()), ("others", others.into())])
    }

    /// What became of the other settings, and what it takes to decide what is open.
    fn rest(&self, choice: &Choice, is_taken: bool, open: &[String]) -> Vec<Sentence> {
        let with = |verdict: Verdict| {
            let of = |setting: &&Setting| setting.overall() == Some(verdict) && !choice.is_failing(setting);
            self.list(choice.others.iter().filter(of).map(|setting| self.words.quoted(&self.name(setting))))
        };
        let mut told = Vec::new();
        if !is_taken {
            for (id, verdict) in [("recommend-equivalent", Verdict::Equivalent), ("recommend-worse", Verdict::Worse)] {
                let list = with(verdict);
                if !list.is_empty() {
                    told.push(self.words.say(id, &[("list", list.into())]));
                }
            }
        } else if !open.is_empty() {
            told.push(self.open(&self.name(&choice.stays), open));
        }
        told.extend(choice.open().flat_map(|open| self.known(choice, open)));
        if choice.open().any(|setting| setting.open_by().is_some_and(|metric| metric != Metric::Goodput)) {
            told.push(self.words.say("recommend-open-latency", &[]));
        }
        if !open.is_empty() {
            told.push(self.missing(choice.more_blocks()));
        }
        told
    }

    /// How much more it takes.
    fn missing(&self, blocks: Option<u32>) -> Sentence {
        let Some(blocks) = blocks else {
            return match self.run.whole_blocks() {
                1 => self.words.say("recommend-more-once", &[("blocks", (PILOT - 1).into())]),
                _ => self.words.say("recommend-more-unknown", &[]),
            };
        };
        if blocks > MOST_MISSING {
            return self.words.say("recommend-more-many", &[("blocks", MOST_MISSING.into())]);
        }
        let mut arguments = vec![("blocks", blocks.into())];
        let Some(each) = self.run.block_ns() else { return self.words.say("recommend-more", &arguments) };
        let seconds = each * f64::from(blocks) / 1e9;
        let time = match seconds {
            ..120.0 => units::short_duration(seconds * 1e9),
            _ => self.words.say("recommend-minutes", &[("n", (seconds / 60.0).ceil().into())]).text,
        };
        arguments.push(("time", time.into()));
        self.words.say("recommend-more-time", &arguments)
    }

    /// What limits a cell, and what to do about it: about its cause, where one was found.
    fn limit(&self, cell: &CellView, id: &str) -> Option<Sentence> {
        let (limit, advice) = limited(cell)?;
        let mut arguments = vec![("limit", limit.into()), ("advice", advice.into())];
        if id == "recommend-limit-of" {
            arguments.push(("cell", self.words.quoted(&cell.name).into()));
        }
        Some(self.words.say(id, &arguments))
    }

    /// The same of all cells, of those together that are limited alike; the second copy of the baseline aside.
    fn limits(&self) -> Vec<Sentence> {
        let mut told: Vec<(&str, &str, Vec<String>)> = Vec::new();
        for cell in self.cells.iter().filter(|cell| cell.role != Role::Again) {
            let Some((limit, advice)) = limited(cell) else { continue };
            let name = self.words.quoted(&cell.name);
            match told.iter_mut().find(|(other, what, _)| (*other, *what) == (limit, advice)) {
                Some((_, _, names)) => names.push(name),
                None => told.push((limit, advice, vec![name])),
            }
        }
        let say = |(limit, advice, names): (&str, &str, Vec<String>)| {
            let arguments =
                [("cell", self.words.list(&names).into()), ("limit", limit.into()), ("advice", advice.into())];
            self.words.say("recommend-limit-of", &arguments)
        };
        told.into_iter().map(say).collect()
    }

    /// What a setting sets otherwise than another.
    fn lines(&self, setting: &Setting, than: &Setting) -> Vec<String> {
        let both = self.variant(setting).zip(self.variant(than));
        both.map(|(variant, than)| lines::otherwise(variant, than)).unwrap_or_default()
    }

    /// The variant that a setting is, if it is one cell.
    fn variant(&self, setting: &Setting) -> Option<&Variant> {
        let plan = &self.run.head.plan;
        Some(plan.variant(plan.cell(&self.single(setting)?.name)?))
    }

    /// What a setting missed, with its load where that is another one than its own.
    fn missed(&self, setting: &Setting, missed: &Missed) -> String {
        let plan = &self.run.head.plan;
        let cells = setting.cells.iter().filter_map(|name| plan.cell(name));
        if cells.map(|cell| &cell.load).any(|load| *load == missed.load) {
            return missed.threshold.clone();
        }
        beside::of_load(&missed.threshold, &missed.load, self.words)
    }

    /// The cell that a setting is, if it is one cell and no level of a factor.
    fn single(&self, setting: &Setting) -> Option<&CellView> {
        let [only] = setting.cells.as_slice() else { return None };
        self.cells.iter().find(|cell| cell.name == *only)
    }

    fn name(&self, setting: &Setting) -> String {
        match &setting.level {
            Some((factor, level)) => format!("{factor}: {level}"),
            None => self.words.list(&setting.cells),
        }
    }

    fn list(&self, items: impl IntoIterator<Item = String>) -> String {
        self.words.list(&items.into_iter().collect::<Vec<_>>())
    }

    /// A ratio with its interval.
    fn ratio(&self, compared: &Comparison) -> String {
        self.told_ratio(compared, "recommend-ratio-interval")
    }

    /// The same where the confidence was told before.
    fn short(&self, compared: &Comparison) -> String {
        self.told_ratio(compared, "recommend-ratio-short")
    }

    fn told_ratio(&self, compared: &Comparison, id: &'static str) -> String {
        let mut arguments = vec![("ratio", ratio(compared.ratio).into())];
        let Some(interval) = compared.interval else { return self.words.say("recommend-ratio", &arguments).text };
        let confidence = percent(self.run.head.plan.confidence);
        arguments.extend([("low", ratio(interval.low).into()), ("high", ratio(interval.high).into())]);
        arguments.push(("confidence", confidence.into()));
        self.words.say(id, &arguments).text
    }
}
