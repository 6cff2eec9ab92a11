//! What a run says of the choices that its plan offers: settings that met the same load, of which one can be taken.
//!
//! A cell with another load is no such setting: one visitor at a time is served sooner than ten, and nobody can choose his visitors. So
//! a choice is between the baseline and cells with its load, or between the sides of contrasts whose loads are the same. It is
//! made by the first number that decides: good answers per second, and where they are as many, what they cost those who
//! wait and the machine. What the plan expects goes before all of them, of whichever load that its variants met, those beside
//! included: a setting that starves the files is no choice for the programs.

use crate::expected::{self, Expected};
use crate::standing::LATENCIES;
use crate::{Compared, Metric, Verdicts};
use model::load::LoadResult;
use model::plan::{Cell, Contrast, Plan, Role};
use model::run::Run;
use stats::{Better, Comparison, Interval, Verdict};
use std::collections::BTreeSet;

/// By what one of several settings is chosen, one after the other.
const ORDER: [Metric; 5] = [Metric::Goodput, Metric::P99, Metric::Median, Metric::CpuPerAnswer, Metric::MemoryPeak];

/// Settings that met the same load, and which of them to take.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// The one that the others are compared with.
    pub stays: Setting,
    /// The others, in the plan's order.
    pub others: Vec<Setting>,
    /// Which of them to take.
    pub advice: Advice,
}

/// One of the settings of a choice.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// Its cells.
    pub cells: Vec<String>,
    /// The factor and the level that it is, if it is one.
    pub level: Option<(String, String)>,
    /// Trials of it that count, those of the baseline's second copy included.
    pub trials: usize,
    /// Whether every trial of its variants did all that the plan expects, of each load; what was not measured did not.
    pub meets: bool,
    /// What most trials of one of its variants missed. A single trial may have been an accident.
    pub misses: Vec<Missed>,
    /// Whether in every trial more requests failed than were answered well, and more than one was made: one may have been an accident.
    pub fails: bool,
    /// Whether a timetable asks for so many answers: then only latency can tell settings that keep up from each other.
    pub paced: bool,
    /// Good answers per second, the mean over these.
    pub good_per_s: f64,
    /// How it compares with the one that stays, by each metric that says anything of the two.
    pub compared: Vec<(Metric, Comparison)>,
    /// The metrics by which it was shown to be no worse than the one that stays, or of which neither has a number.
    no_worse: Vec<Metric>,
}

/// An expectation that was missed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missed {
    /// The load of which it is expected.
    pub load: String,
    /// It, as it was written.
    pub threshold: String,
}

/// Which setting to take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advice {
    /// One of the others, by its place.
    Take(usize, Reason),
    /// The one that the others were compared with: none of them is better.
    Stay,
    /// It is not decided.
    Open,
}

/// What speaks for a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// It does what the plan expects, and most trials of the one that would stay do not.
    Expected,
    /// It gives good answers, and the one that would stay gave none in any trial, so that there is no ratio of the two.
    Answers,
    /// It is better by this metric, and no worse by good answers per second.
    Metric(Metric),
}

/// The choices of a run, each by the verdicts on all metrics; none in a plan that changes nothing but the load.
#[must_use]
pub fn choices(run: &Run, verdicts: &[(Metric, &Verdicts)]) -> Vec<Choice> {
    let plan = &run.head.plan;
    let mut choices: Vec<Choice> = Vec::new();
    for offer in offers(plan) {
        let setting = |cells: &[&Cell], level: Option<(&str, &str)>| {
            let loads: Vec<&LoadResult> =
                cells.iter().flat_map(|cell| expected::measured(run, cell)).map(|(_, load)| load).collect();
            let goodputs: Vec<f64> = loads.iter().map(|load| load.goodput()).collect();
            let variants: Vec<&str> = cells.iter().map(|cell| cell.variant.as_str()).collect();
            let expected = Expected::of_variants(run, &variants);
            let mut misses: Vec<Missed> = Vec::new();
            for missed in expected.iter().filter_map(missed) {
                if !misses.contains(&missed) {
                    misses.push(missed);
                }
            }
            Setting {
                cells: cells.iter().map(|cell| cell.name.clone()).collect(),
                level: level.map(|(factor, level)| (factor.to_owned(), level.to_owned())),
                trials: goodputs.len(),
                meets: !goodputs.is_empty() && expected.iter().all(Expected::is_met),
                misses,
                fails: loads.len() > 1 && loads.iter().all(|load| load.counts.failures() > load.counts.good),
                paced: cells.iter().any(|cell| plan.load(cell).is_open()),
                good_per_s: stats::summarize(&goodputs).map_or(0.0, |summary| summary.mean),
                no_worse: Vec::new(),
                compared: Vec::new(),
            }
        };
        let compared = verdicts.iter().filter(|(metric, _)| offer.is_comparable(plan, *metric));
        let compared = compared.filter_map(|(metric, verdicts)| Some((*metric, offer.compared(verdicts)?)));
        let compared: Vec<(Metric, &Compared)> = compared.collect();
        let no_worse = ORDER.into_iter().filter(|metric| offer.is_no_worse(run, *metric, &compared));
        let other = Setting {
            no_worse: no_worse.collect(),
            compared: compared.iter().map(|(metric, compared)| (*metric, compared.comparison.clone())).collect(),
            ..setting(&offer.of, offer.level(|part| &part.to))
        };
        let stays = setting(&offer.against, offer.level(|part| &part.from));
        match choices.iter_mut().find(|choice| choice.stays == stays) {
            Some(choice) => choice.others.push(other),
            None => choices.push(Choice { stays, others: vec![other], advice: Advice::Open }),
        }
    }
    choices.iter_mut().for_each(|choice| choice.advice = choice.advised());
    choices
}

/// Two settings that met the same loads, and the plan's question about them.
struct Offer<'a> {
    of: Vec<&'a Cell>,
    against: Vec<&'a Cell>,
    asked: Asked<'a>,
}

enum Asked<'a> {
    Cell(&'a Cell),
    Contrast(&'a Contrast),
}

fn offers(plan: &Plan) -> Vec<Offer<'_>> {
    let of_cells = plan.cells.iter().filter(|cell| plan.contrasts.is_empty() && cell.role == Role::Candidate);
    let of_cells =
        of_cells.map(|cell| Offer { of: vec![cell], against: vec![plan.baseline()], asked: Asked::Cell(cell) });
    let of_contrasts = plan.contrasts.iter().filter(|contrast| contrast.has_sides()).map(|contrast| {
        let (of, against) = contrast.sides(&plan.cells);
        let cells = |names: Vec<&str>| plan.cells.iter().filter(|cell| names.contains(&cell.name.as_str())).collect();
        Offer { of: cells(of), against: cells(against), asked: Asked::Contrast(contrast) }
    });
    of_cells.chain(of_contrasts).filter(|offer| offer.is_of_settings(plan)).collect()
}

impl<'a> Offer<'a> {
    /// Whether the two differ by what is set, and by nothing that visitors do. Several variants can be set at once only where they are
    /// the level of a factor that they have in common. What the kernel has of files is a state in which is measured, and nothing to set.
    fn is_of_settings(&self, plan: &Plan) -> bool {
        let loads = |cells: &[&'a Cell]| cells.iter().map(|cell| cell.load.as_str()).collect::<BTreeSet<_>>();
        let variants = |cells: &[&'a Cell]| cells.iter().map(|cell| cell.variant.as_str()).collect::<BTreeSet<_>>();
        let states =
            |cells: &[&'a Cell]| cells.iter().map(|cell| plan.page_cache(plan.variant(cell))).collect::<BTreeSet<_>>();
        let (of, against) = (variants(&self.of), variants(&self.against));
        let can_be_set = self.level(|part| &part.to).is_some() || of.len() == 1 && against.len() == 1;
        let met_the_same = loads(&self.of) == loads(&self.against) && states(&self.of) == states(&self.against);
        can_be_set && met_the_same && of.is_disjoint(&against)
    }

    /// CPU time and memory are those of the server that clients meet: with another one in its place they are of two different things.
    fn is_comparable(&self, plan: &Plan, metric: Metric) -> bool {
        let server = |cell: &&Cell| plan.variant(cell).servers.server.as_deref();
        let met: BTreeSet<_> = self.of.iter().chain(&self.against).map(server).collect();
        met.len() <= 1 || !matches!(metric, Metric::CpuPerAnswer | Metric::MemoryPeak)
    }

    fn compared<'v>(&self, verdicts: &'v Verdicts) -> Option<&'v Compared> {
        match self.asked {
            Asked::Cell(cell) => verdicts.compared(cell),
            Asked::Contrast(contrast) => verdicts.contrast(contrast),
        }
    }

    /// Whether it is known to be no worse by a metric, or neither side has a number of it: too few answers for a p99 are no question that
    /// more blocks answer. Where only one side has, the other may be anything.
    fn is_no_worse(&self, run: &Run, metric: Metric, compared: &[(Metric, &Compared)]) -> bool {
        if let Some((_, compared)) = compared.iter().find(|(by, _)| *by == metric) {
            return compared.no_worse;
        }
        let has_numbers = |cells: &[&Cell]| {
            let mut measured = cells.iter().flat_map(|cell| run.measured(&cell.name));
            measured.any(|(trial, load)| metric.of(trial, load).is_some())
        };
        metric != Metric::Goodput && !has_numbers(&self.of) && !has_numbers(&self.against)
    }

    fn level(&self, of: fn(&model::plan::Part) -> &String) -> Option<(&'a str, &'a str)> {
        let Asked::Contrast(Contrast { effect: Some(effect), .. }) = self.asked else { return None };
        effect.parts.first().map(|part| (part.factor.as_str(), of(part).as_str()))
    }
}

/// An expectation, if most trials missed it, and more than one was made.
fn missed(expected: &Expected<'_>) -> Option<Missed> {
    let trials = expected.judged.len();
    let misses = trials > 1 && 2 * expected.met() < trials;
    misses.then(|| Missed { load: expected.load.name.clone(), threshold: expected.threshold.text.clone() })
}

/// What is looked at before a metric.
fn before(metric: Metric) -> impl Iterator<Item = Metric> {
    ORDER.into_iter().take_while(move |earlier| *earlier != metric)
}

impl Setting {
    /// How it compares by a metric.
    #[must_use]
    pub fn by(&self, metric: Metric) -> Option<&Comparison> {
        self.compared.iter().find(|(by, _)| *by == metric).map(|(_, comparison)| comparison)
    }

    fn verdict(&self, metric: Metric) -> Option<Verdict> {
        self.by(metric).map(|comparison| comparison.verdict)
    }

    /// Whether it is better by this metric and nothing before it speaks against it: shown to be no worse by what must be known, and
    /// not shown to be worse by the rest.
    fn is_better(&self, metric: Metric) -> bool {
        let stands = |earlier: Metric| match self.is_asked(earlier) {
            true => self.no_worse.contains(&earlier),
            false => self.verdict(earlier) != Some(Verdict::Worse),
        };
        self.verdict(metric) == Some(Verdict::Better) && before(metric).all(stands)
    }

    /// What must be known before this metric speaks, and was shown to be no worse, though not to be the same.
    pub fn no_worse_before(&self, metric: Metric) -> impl Iterator<Item = Metric> {
        let is_open = |earlier: &Metric| matches!(self.verdict(*earlier), Some(Verdict::Inconclusive { .. }));
        let is_no_worse = move |earlier: &Metric| self.is_asked(*earlier) && self.no_worse.contains(earlier);
        before(metric).filter(move |earlier| is_no_worse(earlier) && is_open(earlier))
    }

    /// Whether it must be known before anything that comes later can speak for it.
    fn is_asked(&self, metric: Metric) -> bool {
        metric == Metric::Goodput || self.paced && LATENCIES.contains(&metric)
    }

    /// The first metric that must be known and does not show the two to be the same.
    fn decided_by(&self) -> Option<Metric> {
        let mut asked = ORDER.into_iter().filter(|metric| self.is_asked(*metric));
        asked.find(|metric| match self.verdict(*metric) {
            Some(verdict) => verdict != Verdict::Equivalent,
            // What neither has is no question that more blocks answer; what only one has is.
            None => !self.no_worse.contains(metric),
        })
    }

    /// By what it is open whether it is better than the one that stays: the first that must be known and is not.
    #[must_use]
    pub fn open_by(&self) -> Option<Metric> {
        let first = self.decided_by()?;
        matches!(self.verdict(first), None | Some(Verdict::Inconclusive { .. })).then_some(first)
    }

    /// How it stands to the one that stays, by all that must be known: as many answers per second at a slower latency are worse where
    /// a timetable asks for so many. `None` where they were not compared, or the latency of either is not known that would tell.
    #[must_use]
    pub fn overall(&self) -> Option<Verdict> {
        if let Some(metric) = self.decided_by() {
            return self.verdict(metric);
        }
        let is_known = |metric: &Metric| self.verdict(*metric).is_some();
        ORDER.iter().filter(|metric| self.is_asked(**metric)).all(is_known).then_some(Verdict::Equivalent)
    }

    /// What it gains, as a ratio on which more is better; nothing where it was not compared.
    fn gain(&self, metric: Metric) -> f64 {
        let ratio = self.by(metric).map_or(0.0, |comparison| comparison.ratio);
        if ratio > 0.0 && metric.better() == Better::Lower { 1.0 / ratio } else { ratio }
    }

    fn interval(&self, metric: Metric) -> Option<Interval> {
        self.by(metric)?.interval
    }
}

impl Choice {
    /// The others that are as eligible as the one that is taken and whose intervals have a part in common with its own. That does not
    /// show that they are alike: both intervals have the noise of the one that stays.
    #[must_use]
    pub fn alike(&self) -> Vec<&Setting> {
        let Advice::Take(taken, reason) = self.advice else { return Vec::new() };
        let metric = reason.metric();
        let overlaps = |other: &&Setting| {
            let both = self.others[taken].interval(metric).zip(other.interval(metric));
            both.is_some_and(|(one, other)| one.low <= other.high && other.low <= one.high)
        };
        self.eligible(reason).filter(|(place, _)| *place != taken).map(|(_, other)| other).filter(overlaps).collect()
    }

    /// Whether most requests fail with a setting, and with the one that stays they do not. It is no choice, however many good answers it
    /// gives, unless that one gives none.
    #[must_use]
    pub fn is_failing(&self, other: &Setting) -> bool {
        other.fails && self.stays.trials > 1 && !self.stays.fails && self.stays.good_per_s > 0.0
    }

    /// Those that it is open of, the one that is taken not among them. Where only some give any answers, or do what is expected, they have
    /// decided it.
    pub fn open(&self) -> impl Iterator<Item = &Setting> {
        let answered = self.others.iter().any(|other| self.answers_where_none_was(other));
        let decided = answered || matches!(self.advice, Advice::Take(_, Reason::Expected));
        let is_taken = |place: usize| matches!(self.advice, Advice::Take(taken, _) if taken == place);
        let is_open =
            move |(place, other): &(usize, &Setting)| other.open_by().is_some() && !decided && !is_taken(*place);
        self.fit().filter(is_open).map(|(_, other)| other)
    }

    /// Whether it gives good answers and the one that stays never gave any. A single trial without one may have been an accident.
    fn answers_where_none_was(&self, other: &Setting) -> bool {
        self.stays.trials > 1 && self.stays.good_per_s == 0.0 && other.good_per_s > 0.0
    }

    /// How many more blocks would show what is open, with the usual chance; `None` when that cannot be told of one that was measured.
    #[must_use]
    pub fn more_blocks(&self) -> Option<u32> {
        let more = |other: &Setting| match other.open_by().and_then(|metric| other.verdict(metric)) {
            Some(Verdict::Inconclusive { more_blocks }) => more_blocks,
            _ => None,
        };
        let measured = self.open().filter(|other| other.trials > 0);
        measured.map(more).collect::<Option<Vec<_>>>()?.into_iter().max()
    }

    /// Those that can be taken, with their places: where any setting meets what is expected, none that misses it, and none that is
    /// [failing](Choice::is_failing). Of what was not measured nobody knows.
    fn fit(&self) -> impl Iterator<Item = (usize, &Setting)> {
        let some_meet = self.stays.meets || self.others.iter().any(|other| other.meets && !self.is_failing(other));
        let is_fit = move |other: &Setting| (other.meets || !some_meet || other.trials == 0) && !self.is_failing(other);
        self.others.iter().enumerate().filter(move |(_, other)| is_fit(other))
    }

    /// Those of them that this speaks for.
    fn eligible(&self, reason: Reason) -> impl Iterator<Item = (usize, &Setting)> {
        self.fit().filter(move |(_, other)| match reason {
            Reason::Expected => other.meets && other.trials > 1 && !self.stays.misses.is_empty(),
            Reason::Answers => self.answers_where_none_was(other),
            Reason::Metric(metric) => other.is_better(metric),
        })
    }

    fn advised(&self) -> Advice {
        let reasons = [Reason::Expected, Reason::Answers].into_iter().chain(ORDER.map(Reason::Metric));
        for reason in reasons {
            let gain = |setting: &Setting| match reason {
                Reason::Metric(metric) => setting.gain(metric),
                Reason::Expected | Reason::Answers => setting.good_per_s,
            };
            // Of equals the first in the plan.
            let best = self.eligible(reason).reduce(|best, next| if gain(next.1) > gain(best.1) { next } else { best });
            if let Some((place, _)) = best {
                return Advice::Take(place, reason);
            }
        }
        if self.open().next().is_some() { Advice::Open } else { Advice::Stay }
    }
}

impl Reason {
    /// The metric that settings are held against each other by.
    #[must_use]
    pub fn metric(self) -> Metric {
        match self {
            Reason::Expected | Reason::Answers => Metric::Goodput,
            Reason::Metric(metric) => metric,
        }
    }
}
