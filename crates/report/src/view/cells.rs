//! The cells: what was set, what came out, how it compares, what limited it.

use crate::language::{Catalogue, Sentence};
use crate::view::compared::of_cell;
use crate::view::judged::Judged;
use crate::view::metrics::Others;
use crate::view::{
    CellView, ConfidenceView, DiagnosisView, EvidenceView, FailureView, FindingView, LatencyView, PercentileView,
    doubts, expected, latency_budget, logged, sent, told, workers,
};
use diagnosis::{Diagnosis, Finding, Limit, Numbers, Quantity, Unit};
use model::latency::Latency;
use model::load::{Counts, Failure, LoadResult, Quantile, Unanswered, percentile_of};
use model::plan::{Cell, Role};
use model::run::Run;
use model::statistic::Statistic;
use std::collections::{BTreeMap, BTreeSet};

pub(crate) fn views(run: &Run, judged: &Judged, others: &Others, words: &Catalogue) -> Vec<CellView> {
    run.head.plan.cells.iter().map(|cell| view(run, cell, judged, others, words)).collect()
}

fn view(run: &Run, cell: &Cell, judged: &Judged, others: &Others, words: &Catalogue) -> CellView {
    let plan = &run.head.plan;
    let variant = plan.variant(cell);
    let measured: Vec<_> = run.measured(&cell.name).collect();
    let loads: Vec<&LoadResult> = measured.iter().map(|(_, load)| *load).collect();
    let goodputs: Vec<f64> = loads.iter().map(|load| load.goodput()).collect();
    let (mut latency, mut first_byte, mut connect) = (Latency::new(), Latency::new(), Latency::new());
    let (mut unanswered, mut counts) = (Unanswered::default(), Counts::default());
    let mut examples: BTreeMap<Failure, String> = BTreeMap::new();
    for load in &loads {
        latency.merge(&load.total);
        unanswered.merge(&load.unanswered);
        first_byte.merge(&load.first_byte);
        connect.merge(&load.connect);
        counts.merge(&load.counts);
        for (&cause, text) in &load.examples {
            examples.entry(cause).or_insert_with(|| text.clone());
        }
    }
    CellView {
        name: cell.name.clone(),
        role: cell.role,
        variant: variant.name.clone(),
        directives: variant.directives.iter().map(|directive| directive.text.clone()).collect(),
        load: sent::sentence(plan.load(cell), words),
        trials_used: loads.len(),
        trials_made: run.trials.iter().filter(|trial| trial.cell == cell.name).count(),
        window_s: median(&loads.iter().map(|load| load.seconds()).collect::<Vec<_>>()),
        good_per_s: geometric_mean(&goodputs),
        good_per_s_of_trials: goodputs,
        latency: latency_view(&latency, &unanswered.latency),
        first_byte_median_us: known_percentile(&first_byte, &unanswered.first_byte, 50.0),
        connect_median_us: known_percentile(&connect, &Latency::new(), 50.0),
        good: counts.good,
        failures: failures(&counts, &examples, words),
        in_flight: loads.iter().map(|load| load.in_flight).sum(),
        retries: counts.retries,
        abandoned: loads.iter().filter_map(|load| load.sessions.as_ref()).map(|sessions| sessions.abandoned).sum(),
        comparison: judged.compared(cell).map(|compared| of_cell(compared, cell, plan, words)),
        metrics: others.views(run, cell, words),
        same_as_baseline: same_as_baseline(run, cell, judged, words),
        diagnosis: judged.cell(run, cell).map(|diagnosis| diagnosis_view(&diagnosis, words)),
        told: told::of_cell(run, cell, words),
        logged: logged::of_cell(run, cell),
        workers: workers::of_cell(run, cell, words),
        expected: expected::of_cell(run, cell, words),
        latency_budget: latency_budget::view(run, cell, words),
        doubts: doubts::of_trials(plan.load(cell), &measured, words),
    }
}

/// The middle value; the mean of the two middle ones for an even count.
fn median(values: &[f64]) -> Option<f64> {
    stats::summarize(values).ok().map(|summary| summary.median)
}

/// exp of the mean logarithm: the mean whose quotients are the compared ratios. As there, a 0 has no part in it; only zeros are 0.
fn geometric_mean(values: &[f64]) -> Option<f64> {
    let logarithms: Vec<f64> = values.iter().filter(|value| **value > 0.0).map(|value| value.ln()).collect();
    match stats::summarize(&logarithms) {
        Ok(summary) => Some(summary.mean.exp()),
        Err(_) => (!values.is_empty()).then_some(0.0),
    }
}

/// Percentiles shown of every distribution; closer together where answers are slow and few.
const PERCENTS: [f64; 17] =
    [0.0, 1.0, 5.0, 10.0, 25.0, 50.0, 75.0, 80.0, 90.0, 95.0, 97.5, 99.0, 99.5, 99.9, 99.95, 99.99, 100.0];

/// A percentile, unless there are fewer values than it needs, or those that are known only to be more than something leave it
/// unknown.
fn known_percentile(known: &Latency, at_least: &Latency, percent: f64) -> Option<u64> {
    let supported = known.len() + at_least.len() >= Statistic::Percentile(percent).needs();
    match percentile_of(known, at_least, percent).filter(|_| supported)? {
        Quantile::Exactly(us) => Some(us),
        Quantile::MoreThan(_) => None,
    }
}

fn latency_view(latency: &Latency, unanswered: &Latency) -> Option<LatencyView> {
    let (min_us, _) = latency.range_us()?;
    let lowest_unanswered = unanswered.range_us().map(|(lowest, _)| lowest);
    let at = |percent: f64| known_percentile(latency, unanswered, percent);
    Some(LatencyView {
        min_us: Some(min_us).filter(|&min_us| lowest_unanswered.is_none_or(|lowest| min_us <= lowest)),
        mean_us: latency.mean_us().filter(|_| unanswered.is_empty()),
        median_us: at(50.0),
        p99_us: at(99.0),
        max_us: at(100.0),
        count: latency.len() + unanswered.len(),
        unanswered: unanswered.len(),
        percentiles: PERCENTS
            .into_iter()
            .filter_map(|percent| Some(PercentileView { percent, at_most_us: at(percent)? }))
            .collect(),
    })
}

pub(crate) fn failures(counts: &Counts, examples: &BTreeMap<Failure, String>, words: &Catalogue) -> Vec<FailureView> {
    let view = |(&cause, &count): (&Failure, &u64)| FailureView {
        cause: words.say(failure_id(cause), &[("statuses", statuses(counts).into())]),
        count,
        example: examples.get(&cause).cloned(),
    };
    counts.failed.iter().map(view).collect()
}

fn failure_id(cause: Failure) -> &'static str {
    match cause {
        Failure::Refused => "failure-refused",
        Failure::Reset => "failure-reset",
        Failure::Timeout => "failure-timeout",
        Failure::ClosedEarly => "failure-closed-early",
        Failure::BadResponse => "failure-bad-response",
        Failure::LengthDiffers => "failure-length-differs",
        Failure::Status => "failure-status",
        Failure::Proxy => "failure-proxy",
        Failure::Tls => "failure-tls",
        Failure::Check => "failure-check",
        Failure::Local => "failure-local",
    }
}

/// Statuses other than 2xx with their counts, such as `503: 12`.
fn statuses(counts: &Counts) -> String {
    let others = counts.statuses.iter().filter(|(status, _)| !(200..300).contains(*status));
    others.map(|(status, n)| format!("{status}: {n}")).collect::<Vec<_>>().join(", ")
}

fn same_as_baseline(run: &Run, cell: &Cell, judged: &Judged, words: &Catalogue) -> Option<Sentence> {
    let baseline = run.head.plan.baseline();
    let (own, other) = (judged.cell(run, cell)?, judged.cell(run, baseline)?);
    let same = cell.role == Role::Again && own.causes().eq(other.causes());
    let limit = headline(&own, words).text;
    same.then(|| words.say("same-as-baseline", &[("cell", baseline.name.as_str().into()), ("limit", limit.into())]))
}

/// What a finding says, in a few words.
pub(crate) fn title(finding: &Finding, words: &Catalogue) -> Sentence {
    words.say(finding.id, &[])
}

/// The primary finding in a few words; when not all trials agree on it, with how many do.
fn headline(diagnosis: &Diagnosis, words: &Catalogue) -> Sentence {
    let title = title(&diagnosis.primary, words);
    let diagnosis::Agreement { agree, of } = diagnosis.agreement;
    if agree == of {
        return title;
    }
    words.say("in-some-trials", &[("limit", title.text.into()), ("n", agree.into()), ("trials", of.into())])
}

pub(crate) fn diagnosis_view(diagnosis: &Diagnosis, words: &Catalogue) -> DiagnosisView {
    let found: Vec<&Finding> = std::iter::once(&diagnosis.primary).chain(&diagnosis.contributing).collect();
    let mut said = BTreeSet::new();
    let mut view = |finding: &Finding| finding_view(finding, &found, &mut said, words);
    DiagnosisView {
        headline: headline(diagnosis, words),
        primary: view(&diagnosis.primary),
        contributing: diagnosis.contributing.iter().map(&mut view).collect(),
        ruled_out: diagnosis.ruled_out.iter().map(&mut view).collect(),
        trials_agreeing: diagnosis.agreement.agree,
        trials_judged: diagnosis.agreement.of,
    }
}

/// A finding's title as it follows on those before it in `found`: as what one of them brought about, or as what brought one of them
/// about. So an effect is named once, by the later of the two.
fn told(finding: &Finding, found: &[&Finding], words: &Catalogue) -> Sentence {
    // What was ruled out follows on nothing.
    let place = found.iter().position(|other| other.id == finding.id).unwrap_or(0);
    let before = &found[..place];
    let id = if before.iter().any(|cause| cause.leads_to == Some(finding.cause)) {
        "told-as-effect"
    } else if before.iter().any(|effect| finding.leads_to == Some(effect.cause)) {
        "told-as-cause"
    } else {
        return title(finding, words);
    };
    words.say(id, &[("finding", title(finding, words).text.into())])
}

/// `found` are all findings of the diagnosis, `said` the quantities that earlier ones rest on.
fn finding_view(
    finding: &Finding,
    found: &[&Finding],
    said: &mut BTreeSet<&'static str>,
    words: &Catalogue,
) -> FindingView {
    let (advice, confirm) = (format!("{}-advice", finding.id), format!("{}-confirm", finding.id));
    let evidence = |&quantity: &Quantity| {
        let value = finding.numbers.get(quantity)?;
        Some(EvidenceView {
            name: quantity.name(),
            unit: quantity.unit(),
            value,
            label: words.word(&format!("number-{}", quantity.name())),
            text: limited(printed(value, quantity.unit()), finding.limit(quantity), quantity.unit(), words),
            limit: finding.limit(quantity),
            repeated: !said.insert(quantity.name()),
        })
    };
    FindingView {
        title: title(finding, words),
        told: told(finding, found, words),
        leads_to: finding.leads_to.map(|effect| {
            let effect = words.word(effect.id());
            words.say("leads-to", &[("effect", effect.into())])
        }),
        effect_told: found.iter().any(|other| finding.leads_to == Some(other.cause)),
        advice: words.has(&advice).then(|| words.say(&advice, &[])),
        confidence: confidence(finding, words),
        confirm: words.has(&confirm).then(|| words.say("to-confirm", &[("what", words.word(&confirm).into())])),
        source: finding.source(),
        evidence: Quantity::ALL.iter().filter_map(evidence).collect(),
    }
}

/// How sure a finding is, and what speaks against it.
fn confidence(finding: &Finding, words: &Catalogue) -> ConfidenceView {
    let level = finding.confidence();
    let doubts: Vec<Sentence> = finding.doubts.iter().map(|doubt| words.say(doubt, &[])).collect();
    let listed: Vec<&str> = doubts.iter().map(|doubt| doubt.text.as_str()).collect();
    let (listed, said) = (words.list(&listed), words.word(level.id()));
    let sentence = match doubts.len() {
        0 => words.say("how-sure", &[("confidence", said.into())]),
        _ => words.say("how-sure-but", &[("confidence", said.into()), ("doubts", listed.into())]),
    };
    ConfidenceView { level, sentence, doubts }
}

/// A printed number, and the threshold that it crossed, if it did.
pub(crate) fn limited(value: String, limit: Option<Limit>, unit: Unit, words: &Catalogue) -> String {
    let Some(limit) = limit else { return value };
    let id = match limit {
        Limit::AtLeast(_) => "limit-at-least",
        Limit::Above(_) => "limit-above",
        Limit::Below(_) => "limit-below",
    };
    let limit = printed(limit.value(), unit);
    words.say(id, &[("value", value.into()), ("limit", limit.into())]).text
}

/// Numbers that stand alone, each with its label.
pub(crate) fn evidence(numbers: &Numbers, words: &Catalogue) -> Vec<EvidenceView> {
    let view = |(quantity, value): (Quantity, f64)| EvidenceView {
        name: quantity.name(),
        unit: quantity.unit(),
        value,
        label: words.word(&format!("number-{}", quantity.name())),
        text: printed(value, quantity.unit()),
        limit: None,
        repeated: false,
    };
    numbers.values().map(view).collect()
}

pub(crate) fn printed(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Share => format!("{} %", units::si(value * 100.0).print(value * 100.0)),
        Unit::Bytes => units::short_bytes(value.max(0.0).round() as u64),
        Unit::Count if value.fract() == 0.0 => format!("{value}"),
        Unit::Count => units::si(value).print(value),
        Unit::Seconds => units::short_duration(value * 1e9),
    }
}
