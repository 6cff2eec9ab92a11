//! Doubts about loads, in words: those that a load raises about itself, requests that are neither answers nor failures, and others'
//! traffic beside it.

use crate::language::{Catalogue, Sentence};
use crate::view::table::{NOTHING, percent};
use model::foreign::Foreign;
use model::load::{LoadDoubt, LoadResult};
use model::others::Crowd;
use model::plan::LoadSpec;
use model::statistic::Statistic;
use model::trial::Trial;
use std::collections::BTreeMap;
use verdicts::{Unsteady, unsteady};

/// Requests in flight at the end that weigh more than this share of the good answers.
const IN_FLIGHT_SHARE: f64 = 0.05;
/// Requests sent again that weigh more than this share of the good answers.
const RETRIES_SHARE: f64 = 0.01;

/// Of trials with their loads, which were the same: a doubt of the same kind in several of them is said once, with its worst number.
pub(crate) fn of_trials(spec: &LoadSpec, measured: &[(&Trial, &LoadResult)], words: &Catalogue) -> Vec<Sentence> {
    let (trials, loads): (Vec<&Trial>, Vec<&LoadResult>) = measured.iter().copied().unzip();
    let said = said(spec, &loads, loads.len(), words).into_iter();
    said.chain(crowded(&trials, trials.len(), words)).chain(foreign_in(&trials, words)).collect()
}

/// Others' traffic in windows: those that the server counted requests in, and those whose connections the kernel told of.
fn foreign_in(trials: &[&Trial], words: &Catalogue) -> Vec<Sentence> {
    let mut worst: BTreeMap<&'static str, (usize, Foreign)> = BTreeMap::new();
    for found in trials.iter().filter_map(|trial| trial.foreign()) {
        let id = match found {
            Foreign::Requests { .. } => "doubt-foreign-requests",
            Foreign::Connections { .. } => "doubt-foreign-connections",
        };
        let entry = worst.entry(id).or_insert((0, found));
        entry.0 += 1;
        if found.weight() > entry.1.weight() {
            entry.1 = found;
        }
    }
    let sentence = |(id, (n, found)): (&str, (usize, Foreign))| {
        let mut arguments = vec![("n", n.into()), ("trials", trials.len().into())];
        match found {
            Foreign::Requests { served, ours, others } => {
                arguments.extend([("served", served.into()), ("ours", ours.into()), ("others", others.into())]);
            }
            Foreign::Connections { others, ours } => {
                let others = units::si(others).print(others);
                arguments.extend([("others", others.into()), ("ours", u64::from(ours).into())]);
            }
        }
        words.say(id, &arguments)
    };
    worst.into_iter().map(sentence).collect()
}

/// Trials beside which other programs used the CPUs: how many, and the worst. `among` is how many to count among: with none, the sentence
/// speaks of one load.
fn crowded(trials: &[&Trial], among: usize, words: &Catalogue) -> Option<Sentence> {
    let crowds: Vec<Crowd> = trials.iter().filter_map(|trial| trial.others.as_ref()?.crowd()).collect();
    let worst = crowds.iter().max_by(|a, b| a.share.total_cmp(&b.share))?;
    let names = words.list(&worst.names);
    let percent = format!("{:.0}", worst.share * 100.0);
    let counted = [("n", crowds.len().into()), ("trials", among.into())];
    Some(words.say("doubt-others", &[counted, [("percent", percent.into()), ("names", names.into())]].concat()))
}

/// Of a load that is no trial among others.
pub(crate) fn of_load(spec: &LoadSpec, trial: &Trial, load: &LoadResult, words: &Catalogue) -> Vec<Sentence> {
    said(spec, &[load], 0, words).into_iter().chain(crowded(&[trial], 0, words)).collect()
}

/// `trials` is how many to count among: with none, the sentences speak of this load.
fn said(spec: &LoadSpec, loads: &[&LoadResult], trials: usize, words: &Catalogue) -> Vec<Sentence> {
    let mut worst: BTreeMap<&'static str, (f64, usize, LoadDoubt)> = BTreeMap::new();
    for doubt in loads.iter().flat_map(|load| load.doubts(spec)) {
        let (id, badness) = kind(&doubt);
        let entry = worst.entry(id).or_insert_with(|| (badness, 0, doubt.clone()));
        entry.1 += 1;
        if badness > entry.0 {
            (entry.0, entry.2) = (badness, doubt);
        }
    }
    let sentence = |(id, (_, n, doubt)): (&str, (f64, usize, LoadDoubt))| {
        let mut arguments = vec![("n", n.into()), ("trials", trials.into())];
        arguments.extend(numbers(&doubt).into_iter().map(|(name, number)| (name, number.into())));
        words.say(id, &arguments)
    };
    let steady = unsteady_in(spec, loads, trials, words);
    worst.into_iter().map(sentence).chain(steady).chain(uncounted(loads, words)).collect()
}

/// Windows that were not steady, when at least a third of them were not: of many steady ones chance calls one or two unsteady.
fn unsteady_in(spec: &LoadSpec, loads: &[&LoadResult], trials: usize, words: &Catalogue) -> Option<Sentence> {
    let found: Vec<Unsteady> = loads.iter().filter_map(|load| unsteady(spec, load)).collect();
    if found.is_empty() || 3 * found.len() < loads.len() {
        return None;
    }
    let percent_of = |share: f64| format!("{:+.1}", share * 100.0);
    let longest = |so_far: Option<(f64, f64)>, it: &Unsteady| match (*it, so_far) {
        (Unsteady::WarmUp { seconds, .. }, Some((longest, _))) if longest >= seconds => so_far,
        (Unsteady::WarmUp { seconds, pull }, _) => Some((seconds, pull)),
        (Unsteady::Drift { .. }, _) => so_far,
    };
    let counted = [("n", found.len().into()), ("trials", trials.into())];
    if let Some((seconds, pull)) = found.iter().fold(None, longest) {
        let rest = [("seconds", format!("{seconds}").into()), ("pull", percent_of(pull).into())];
        return Some(words.say("doubt-warm-up", &[counted, rest].concat()));
    }
    let shares = found.iter().map(|it| match it {
        Unsteady::Drift { share } => *share,
        Unsteady::WarmUp { pull, .. } => *pull,
    });
    let most = shares.fold(0.0_f64, |most, share| if share.abs() > most.abs() { share } else { most });
    Some(words.say("doubt-drift", &[counted.as_slice(), &[("drift", percent_of(most).into())]].concat()))
}

/// The sentence for a doubt, and how bad it is: the larger, the worse.
fn kind(doubt: &LoadDoubt) -> (&'static str, f64) {
    match doubt {
        LoadDoubt::LittleOff { achieved, computed } => ("doubt-little", (computed / achieved).ln().abs()),
        LoadDoubt::ConcurrencyMissed { asked, achieved } => ("doubt-concurrency", asked - achieved),
        LoadDoubt::GeneratorSaturated { share } => ("doubt-generator", *share),
        LoadDoubt::FewWaves { waves } => ("doubt-few-waves", -waves),
        LoadDoubt::RateMissed { asked, achieved } => ("doubt-rate", asked / achieved),
        LoadDoubt::LateGenerator { late_us, .. } => ("doubt-late", *late_us as f64),
        LoadDoubt::TurnedAway { share, .. } => ("doubt-turned-away", *share),
    }
}

fn numbers(doubt: &LoadDoubt) -> Vec<(&'static str, String)> {
    let number = |value: f64| units::si(value).print(value);
    match *doubt {
        LoadDoubt::LittleOff { achieved, computed } => {
            let deviation = format!("{:+.1}", (computed / achieved - 1.0) * 100.0);
            vec![("achieved", number(achieved)), ("computed", number(computed)), ("deviation", deviation)]
        }
        LoadDoubt::ConcurrencyMissed { asked, achieved } | LoadDoubt::RateMissed { asked, achieved } => {
            vec![("asked", number(asked)), ("achieved", number(achieved))]
        }
        LoadDoubt::GeneratorSaturated { share } => vec![("share", percent((share * 100.0).round() / 100.0))],
        LoadDoubt::FewWaves { waves } => vec![("waves", number(waves))],
        LoadDoubt::LateGenerator { percent, late_us } => vec![
            ("late", units::short_duration(late_us as f64 * 1e3)),
            ("percentile", Statistic::Percentile(percent).name()),
            ("others", format!("{}", 100.0 - percent)),
        ],
        LoadDoubt::TurnedAway { answers, share } => {
            vec![("answers", answers.to_string()), ("share", percent((share * 100.0).round() / 100.0))]
        }
    }
}

/// Requests that were cut off or sent again, when they are many.
fn uncounted(loads: &[&LoadResult], words: &Catalogue) -> Vec<Sentence> {
    let sum = |number: fn(&LoadResult) -> u64| loads.iter().map(|load| number(load)).sum::<u64>();
    let good = sum(|load| load.counts.good);
    let example = loads.iter().find_map(|load| load.retry_example.clone());
    let kinds = [
        ("doubt-in-flight", sum(|load| load.in_flight), IN_FLIGHT_SHARE),
        ("doubt-late-answers", sum(|load| load.late.good), IN_FLIGHT_SHARE),
        ("doubt-retries", sum(|load| load.counts.retries), RETRIES_SHARE),
    ];
    let many = kinds.into_iter().filter(|(_, n, share)| *n as f64 > share * good as f64);
    many.map(|(id, n, _)| {
        let example = example.clone().unwrap_or_else(|| NOTHING.to_owned());
        words.say(id, &[("n", n.into()), ("good", good.into()), ("example", example.into())])
    })
    .collect()
}
