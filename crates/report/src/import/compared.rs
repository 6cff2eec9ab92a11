//! Groups of reports against the first of them: one run is one sample, and nobody shuffled the runs.

use super::{GroupView, ReportView, number};
use crate::language::{Catalogue, Sentence};
use crate::view::table::ratio;
use abtext::{Field, Report};
use serde::Serialize;
use stats::{Unpaired, unpaired};

/// The sentence that is said once when it holds for all comparisons.
const ONE_RUN_EACH: &str = "import-one-run-each";

/// What the interval is asked for.
const CONFIDENCE: f64 = 0.95;

/// One group against the first.
#[derive(Debug, Clone, Serialize)]
pub struct ComparedView {
    /// The first group.
    pub baseline: String,
    /// The other.
    pub other: String,
    /// The numbers; `None` where a group has no run with a good request.
    pub numbers: Option<Unpaired>,
    /// How far they are apart.
    pub sentence: Sentence,
    /// What that is worth.
    pub worth: Vec<Sentence>,
}

pub(super) fn against_first(groups: &[GroupView], words: &Catalogue) -> Vec<ComparedView> {
    let Some((first, others)) = groups.split_first() else { return vec![] };
    let mut compared: Vec<ComparedView> = others.iter().map(|other| compare(first, other, words)).collect();
    if compared.iter().all(is_single) {
        compared.iter_mut().for_each(|compared| compared.worth.retain(|sentence| sentence.id != ONE_RUN_EACH));
    }
    compared
}

/// What is said once, below all comparisons.
pub(super) fn limits(compared: &[ComparedView], words: &Catalogue) -> Vec<Sentence> {
    if compared.iter().all(|compared| compared.numbers.is_none()) {
        return vec![];
    }
    let single = compared.iter().all(is_single).then(|| words.say(ONE_RUN_EACH, &[]));
    [words.say("import-order", &[]), words.say("import-sample", &[])].into_iter().chain(single).collect()
}

/// Whether a comparison is of one run with one run.
fn is_single(compared: &ComparedView) -> bool {
    compared.numbers.is_none_or(|numbers| (numbers.baseline, numbers.other) == (1, 1))
}

fn compare(first: &GroupView, other: &GroupView, words: &Catalogue) -> ComparedView {
    let names = [("baseline", first.name.as_str().into()), ("other", other.name.as_str().into())];
    let view = |numbers, sentence, worth| ComparedView {
        baseline: first.name.clone(),
        other: other.name.clone(),
        numbers,
        sentence,
        worth,
    };
    let Some(numbers) = samples(first).zip(samples(other)).and_then(|(a, b)| unpaired(&a, &b, CONFIDENCE).ok()) else {
        return view(None, words.say("import-not-compared", &names), vec![]);
    };
    let percent = (numbers.ratio - 1.0) * 100.0;
    let change = if percent < 100.0 { format!("{percent:+.2}") } else { format!("{percent:+.0}") };
    let apart = [("ratio", ratio(numbers.ratio).into()), ("change", change.into())];
    let sentence = words.say("import-compared", &names.into_iter().chain(apart).collect::<Vec<_>>());
    let worth = [Some(spread(&numbers, words)), other_load(first, other, words)];
    view(Some(numbers), sentence, worth.into_iter().flatten().collect())
}

/// The logarithm of every run's good requests per second; `None` when one has none.
fn samples(group: &GroupView) -> Option<Vec<f64>> {
    let sample = |view: &ReportView| view.report.good_per_second().filter(|rate| *rate > 0.0).map(f64::ln);
    let samples: Option<Vec<f64>> = group.reports.iter().map(sample).collect();
    samples.filter(|samples| !samples.is_empty())
}

fn spread(numbers: &Unpaired, words: &Catalogue) -> Sentence {
    let Some(spread) = numbers.spread else {
        return words.say(
            match (numbers.baseline, numbers.other) {
                (1, 1) => ONE_RUN_EACH,
                (1, _) | (_, 1) => "import-one-run",
                _ => "import-no-spread",
            },
            &[],
        );
    };
    words.say(
        "import-interval",
        &[
            ("confidence", number(CONFIDENCE * 100.0, 1).into()),
            ("low", ratio(spread.interval.low).into()),
            ("high", ratio(spread.interval.high).into()),
            ("baseline", numbers.baseline.to_string().into()),
            ("other", numbers.other.to_string().into()),
            ("p", number(spread.p, 3).into()),
        ],
    )
}

/// What the loads differ by, so that the settings are not alone to blame.
fn other_load(first: &GroupView, other: &GroupView, words: &Catalogue) -> Option<Sentence> {
    let lists = [
        ("import-load-connections", all(first, connections), all(other, connections)),
        ("import-load-path", all(first, subject), all(other, subject)),
        ("import-load-keep-alive", all(first, keep_alive), all(other, keep_alive)),
    ];
    let differ = lists.into_iter().filter(|(_, a, b)| a != b && !a.is_empty() && !b.is_empty());
    let told: Vec<String> = differ
        .map(|(id, a, b)| words.say(id, &[("a", a.join(", ").into()), ("b", b.join(", ").into())]).text)
        .collect();
    (!told.is_empty()).then(|| words.say("import-other-load", &[("what", told.join("; ").into())]))
}

/// The different values in a group, in order of appearance.
fn all(group: &GroupView, of: fn(&Report) -> Option<String>) -> Vec<String> {
    let mut values = Vec::new();
    for value in group.reports.iter().filter_map(|view| of(&view.report)) {
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values
}

fn connections(report: &Report) -> Option<String> {
    report.value(Field::Concurrency).map(|connections| number(connections, 0))
}

fn subject(report: &Report) -> Option<String> {
    report.subject().map(str::to_owned)
}

fn keep_alive(report: &Report) -> Option<String> {
    Some(if report.keep_alive() { "-k" } else { "–" }.to_owned())
}
