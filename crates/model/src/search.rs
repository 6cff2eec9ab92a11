//! The highest rate that a server sustains: what is searched for, what became of each step, and what the steps amount to.
//!
//! A rate is sustained when everything that is asked of it holds, at least 99 % of what was due was answered well, and nothing
//! that was due remained unsent. All of this is derived from the trials, so that an old search can be judged anew.
//!
//! Answered well means within the step. At any rate some requests are under way when a step ends, and are answered after it. At a
//! rate that the server sustains they are about as many as were in flight on average; where they pile up evenly from nothing they
//! are twice as many. So up to one and a half times as many count, and the others do not.

use crate::load::{LoadDoubt, LoadResult};
use crate::plan::{Arrivals, LoadSpec, Pace, Timetable};
use crate::statistic::Statistic;
use crate::threshold::{Judged, Metric, Threshold};
use crate::trial::{Outcome, Stop, Trial};
use crate::{Nanos, SECOND};
use serde::{Deserialize, Serialize};

/// What is searched for, and how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RateSearch {
    /// What must hold at a rate.
    pub goals: Vec<Threshold>,
    /// The search ends when the lowest rate that missed is so close above the highest that held: 0.05 is 5 %.
    pub precision: f64,
    /// Where to begin; found by a closed loop when absent.
    pub start: Option<f64>,
    /// How the arrivals of every step lie in time.
    pub arrivals: Arrivals,
}

/// Whether a rate was sustained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Held {
    /// It was.
    Yes,
    /// It was not.
    No,
    /// It was not, and the load generator may be why.
    Generator,
}

/// Why a rate was not sustained.
#[derive(Debug, Clone, PartialEq)]
pub enum Miss {
    /// Something that was asked of it does not hold, or is not known.
    Goal(Judged),
    /// Of what was due, too little was answered well.
    Behind {
        /// Requests that were due.
        due: u64,
        /// Good answers to them within the step.
        good: u64,
        /// Good answers to them after it.
        late: u64,
    },
    /// No connection was free for so many requests.
    Unsent(u64),
    /// A guard ended it.
    Stopped(Stop),
    /// The generator itself was at its limit.
    Generator(LoadDoubt),
}

/// One trial of a search, judged.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// Its number.
    pub number: u32,
    /// The rate that was asked for.
    pub rate: f64,
    /// Good answers per second.
    pub good: f64,
    /// Whether it was sustained.
    pub held: Held,
    /// Every goal, judged.
    pub goals: Vec<Judged>,
    /// Why it was not sustained; empty when it was.
    pub misses: Vec<Miss>,
}

/// What the steps amount to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Answer {
    /// This rate held twice, and the one just above it missed.
    Found {
        /// The highest that held.
        rate: f64,
        /// The lowest above it that did not.
        missed: f64,
    },
    /// This rate held twice, and above it the generator was the limit, not the server.
    AtLeast {
        /// The highest that held.
        rate: f64,
        /// Where the generator was at its limit.
        generator: f64,
    },
    /// Not even the lowest rate that can be judged held.
    Nothing {
        /// The lowest that was tried.
        lowest: f64,
    },
    /// The search ended before it knew.
    Open {
        /// The highest that held so far.
        held: Option<f64>,
        /// The lowest that missed so far.
        missed: Option<f64>,
    },
}

/// Less than this share of what was due is not what was asked for.
const ACHIEVED: f64 = 0.99;
/// So many times the mean number of requests in flight may be under way when a step ends: half way between what stays the same
/// and what grows evenly.
const UNDER_WAY: f64 = 1.5;
/// How long a step takes when nothing says so.
const STEP_NS: Nanos = 10 * SECOND;
/// So much more than the values that a percentile takes at least, as a few may be missing at the end.
const SPARE: f64 = 1.05;

impl RateSearch {
    /// The load of one step.
    #[must_use]
    pub fn spec(&self, spec: &LoadSpec, rate: f64) -> LoadSpec {
        let pace = Pace::Timetable(Timetable::constant(rate, self.arrivals));
        let duration_ns = Some(RateSearch::step_ns(spec));
        LoadSpec { pace, requests: None, duration_ns, expect: self.goals.clone(), ..spec.clone() }
    }

    /// How long each step takes.
    #[must_use]
    pub fn step_ns(spec: &LoadSpec) -> Nanos {
        spec.duration_ns.unwrap_or(STEP_NS)
    }

    /// The lowest rate that can be judged in steps of this length: below it the rarest percentile asked for is not known.
    #[must_use]
    pub fn floor(&self, length_ns: Nanos) -> f64 {
        let needs = |goal: &Threshold| match goal.metric {
            Metric::Time(_, statistic @ Statistic::Percentile(_)) => statistic.needs(),
            _ => 1,
        };
        let values = self.goals.iter().map(needs).max().unwrap_or(1) as f64;
        values * SPARE * SECOND as f64 / length_ns.max(1) as f64
    }

    /// Judges a trial of the search, whose load but for its rate is `spec`; `None` for the closed loop before it, and for one that the user interrupted.
    #[must_use]
    pub fn judge(&self, trial: &Trial, spec: &LoadSpec) -> Option<Step> {
        let (rate, load) = (trial.rate?, trial.measured()?);
        let goals: Vec<Judged> = self.goals.iter().map(|goal| goal.judge(load)).collect();
        let mut misses: Vec<Miss> = goals.iter().filter(|goal| !goal.is_met()).cloned().map(Miss::Goal).collect();
        let (due, unsent) = load.open.as_ref().map_or((0, 0), |open| (open.arrived, open.unsent));
        let (good, late) = (load.good_in_time(), load.late.good);
        if ((good + late.min(under_way(load))) as f64) < ACHIEVED * due as f64 || due == 0 {
            misses.push(Miss::Behind { due, good, late });
        }
        if unsent > 0 {
            misses.push(Miss::Unsent(unsent));
        }
        if let Outcome::EndedEarly(stop) = trial.outcome {
            misses.push(Miss::Stopped(stop));
        }
        let ours =
            |doubt: &LoadDoubt| matches!(doubt, LoadDoubt::LateGenerator { .. } | LoadDoubt::GeneratorSaturated { .. });
        // What the server itself refused or spoilt is no lateness of ours.
        let spoilt = load.counts.failures() as f64 > (1.0 - ACHIEVED) * due as f64;
        let doubts = if spoilt { Vec::new() } else { load.self_check(spec) };
        let ours: Vec<Miss> = doubts.into_iter().filter(ours).map(Miss::Generator).collect();
        let held = match (misses.is_empty(), ours.is_empty()) {
            (true, _) => Held::Yes,
            (false, true) => Held::No,
            (false, false) => Held::Generator,
        };
        if held == Held::Generator {
            misses.extend(ours);
        }
        Some(Step { number: trial.block, rate, good: load.goodput(), held, goals, misses })
    }

    /// What the steps amount to; `length_ns` is that of each.
    #[must_use]
    pub fn answer(&self, steps: &[Step], length_ns: Nanos) -> Answer {
        let tried = Tried::new(steps.iter().map(|step| (step.rate, step.held)));
        let close =
            tried.bracket().is_some_and(|(held, missed)| missed <= held * (1.0 + self.precision) * (1.0 + 1e-9));
        match (tried.best(), tried.lowest_missed()) {
            (Some(rate), Some((missed, held))) if close && tried.times(rate) > 1 => match held {
                Held::Generator => Answer::AtLeast { rate, generator: missed },
                _ => Answer::Found { rate, missed },
            },
            (None, Some((lowest, Held::No))) if lowest <= self.floor(length_ns) * (1.0 + 1e-9) => {
                Answer::Nothing { lowest }
            }
            (held, missed) => Answer::Open { held, missed: missed.map(|(rate, _)| rate) },
        }
    }
}

/// How many requests may be under way at the end of a step that the server keeps up with.
fn under_way(load: &LoadResult) -> u64 {
    (UNDER_WAY * load.concurrency()).ceil() as u64
}

/// The rates that held in one trial and missed in another, each once, ascending.
#[must_use]
pub fn contradictions(steps: &[Step]) -> Vec<f64> {
    let missed = |rate: f64| steps.iter().any(|step| step.rate.total_cmp(&rate).is_eq() && step.held != Held::Yes);
    let held_above = |rate: f64| steps.iter().any(|step| step.rate > rate && step.held == Held::Yes);
    let odd = |step: &&Step| match step.held {
        Held::Yes => missed(step.rate),
        // It missed, and a higher one held.
        Held::No | Held::Generator => held_above(step.rate),
    };
    let mut rates: Vec<f64> = steps.iter().filter(odd).map(|step| step.rate).collect();
    rates.sort_by(f64::total_cmp);
    rates.dedup();
    rates
}

/// The rates that were tried and what became of them.
#[derive(Debug, Clone, Default)]
pub struct Tried(Vec<(f64, Held)>);

impl Tried {
    /// These.
    #[must_use]
    pub fn new(steps: impl IntoIterator<Item = (f64, Held)>) -> Tried {
        Tried(steps.into_iter().collect())
    }

    /// One more.
    pub fn push(&mut self, rate: f64, held: Held) {
        self.0.push((rate, held));
    }

    /// How many.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How often a rate was tried.
    #[must_use]
    pub fn times(&self, rate: f64) -> usize {
        self.0.iter().filter(|(tried, _)| tried.total_cmp(&rate).is_eq()).count()
    }

    /// The lowest rate that ever missed; where the server and the generator share it, the server's.
    #[must_use]
    pub fn lowest_missed(&self) -> Option<(f64, Held)> {
        let rank = |held: Held| u8::from(held == Held::Generator);
        let missed = self.0.iter().copied().filter(|(_, held)| *held != Held::Yes);
        missed.min_by(|a, b| a.0.total_cmp(&b.0).then(rank(a.1).cmp(&rank(b.1))))
    }

    /// The highest rate that held below every rate that missed.
    #[must_use]
    pub fn best(&self) -> Option<f64> {
        let missed = self.lowest_missed().map_or(f64::INFINITY, |(rate, _)| rate);
        let held = self.0.iter().filter(|(rate, held)| *held == Held::Yes && *rate < missed);
        held.map(|(rate, _)| *rate).max_by(f64::total_cmp)
    }

    /// Both, where there are both.
    #[must_use]
    pub fn bracket(&self) -> Option<(f64, f64)> {
        self.best().zip(self.lowest_missed().map(|(rate, _)| rate))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Counts;
    use Held::{Generator, No, Yes};

    fn search(goal: &str) -> RateSearch {
        let goals = vec![Threshold::parse(goal).unwrap()];
        RateSearch { goals, precision: 0.05, start: None, arrivals: Arrivals::Even }
    }

    fn check(tried: &[(f64, Held)], expected: Answer, odd: &[f64]) {
        let step =
            |&(rate, held): &(f64, Held)| Step { number: 0, rate, good: rate, held, goals: vec![], misses: vec![] };
        let steps: Vec<Step> = tried.iter().map(step).collect();
        assert_eq!(search("max < 1s").answer(&steps, SECOND), expected, "{tried:?}");
        assert_eq!(contradictions(&steps), odd, "{tried:?}");
    }

    /// A step of 10 s in which so many requests were due and answered in time and after it, and so many in flight on average.
    fn step_of(due: u64, (in_time, late): (u64, u64), in_flight: f64, cpu_ns: Nanos) -> Trial {
        let counts = |good| Counts { good, ..Counts::default() };
        let stored = serde_json::json!({
            "connections": 10_000, "started_ns": 0, "ended_ns": 10 * SECOND, "end": "duration", "counts": counts(in_time + late),
            "late": counts(late), "in_flight": 0, "in_flight_ns": (in_flight * 10.0 * SECOND as f64) as u64, "body_bytes": null,
            "examples": {}, "open": {"arrived": due, "unsent": 0}, "generator": {"threads": 1, "cpu_ns": cpu_ns, "cpus": []},
        });
        let trial = serde_json::json!({
            "block": 1, "position": 0, "cell": "c", "rate": due as f64 / 10.0, "outcome": {"kind": "complete"}, "began_ns": 0,
            "settings": {"server": "", "values": {}, "worker_limit": null}, "load": stored, "notes": [], "log_tail": "",
        });
        serde_json::from_value(trial).unwrap()
    }

    #[track_caller]
    fn check_step(due: u64, (in_time, late): (u64, u64), in_flight: f64, expected: Held) {
        let trial = step_of(due, (in_time, late), in_flight, 0);
        let step = search("failed < 1%").judge(&trial, &LoadSpec::of("l", "/")).unwrap();
        assert_eq!(step.held, expected, "{:?}", step.misses);
        let behind = Miss::Behind { due, good: in_time, late };
        assert_eq!(step.misses.first(), (expected != Yes).then_some(&behind));
    }

    #[test]
    fn what_is_under_way_when_a_step_ends_counts_and_what_has_piled_up_does_not() {
        check_step(1000, (1000, 0), 10.0, Yes);
        check_step(1000, (990, 0), 10.0, Yes);
        check_step(1000, (989, 0), 10.0, No);
        // 1000 a second of 1 s each: the last thousand are under way.
        check_step(10_000, (9_000, 1_000), 950.0, Yes);
        // 4000 a second for a server of 1850, and 1060 for one of 1000.
        check_step(40_000, (18_500, 21_500), 10_750.0, No);
        check_step(10_600, (10_000, 600), 300.0, No);
        // One of two, of which each took a moment.
        check_step(2, (1, 1), 0.01, Yes);
        check_step(2, (0, 2), 0.01, No);
    }

    #[test]
    fn a_generator_that_never_sleeps_is_not_at_its_limit() {
        let check = |busy_poll, expected| {
            let trial = step_of(1000, (500, 500), 100.0, 10 * SECOND);
            let step = search("failed < 1%").judge(&trial, &LoadSpec { busy_poll, ..LoadSpec::of("l", "/") });
            assert_eq!(step.unwrap().held, expected, "{busy_poll}");
        };
        check(false, Generator);
        check(true, No);
    }

    #[test]
    fn steps_amount_to_an_answer() {
        check(&[(104.0, No), (100.0, Yes), (100.0, Yes)], Answer::Found { rate: 100.0, missed: 104.0 }, &[]);
        // Not confirmed, and not close enough.
        check(&[(104.0, No), (100.0, Yes)], Answer::Open { held: Some(100.0), missed: Some(104.0) }, &[]);
        let wide = Answer::Open { held: Some(100.0), missed: Some(110.0) };
        check(&[(110.0, No), (100.0, Yes), (100.0, Yes)], wide, &[]);
        let at_least = Answer::AtLeast { rate: 100.0, generator: 104.0 };
        check(&[(104.0, Generator), (100.0, Yes), (100.0, Yes)], at_least, &[]);
        check(&[(4.0, No), (1.05, No)], Answer::Nothing { lowest: 1.05 }, &[]);
        check(&[(4.0, No)], Answer::Open { held: None, missed: Some(4.0) }, &[]);
        check(&[(1.05, Generator)], Answer::Open { held: None, missed: Some(1.05) }, &[]);
        check(&[], Answer::Open { held: None, missed: None }, &[]);
    }

    #[test]
    fn what_held_once_and_missed_once_is_not_hidden() {
        let noisy = [(100.0, Yes), (104.0, No), (100.0, No), (96.0, Yes), (96.0, Yes)];
        check(&noisy, Answer::Found { rate: 96.0, missed: 100.0 }, &[100.0]);
        let above = [(100.0, Yes), (100.0, Yes), (104.0, No), (200.0, Yes)];
        check(&above, Answer::Found { rate: 100.0, missed: 104.0 }, &[104.0]);
    }

    #[test]
    fn the_lowest_rate_has_the_values_that_its_percentile_takes() {
        assert!((search("p99 < 1s").floor(10 * SECOND) - 299.0 * 1.05 / 10.0).abs() < 1e-9);
        assert!((search("failed = 0").floor(10 * SECOND) - 0.105).abs() < 1e-9);
    }
}
