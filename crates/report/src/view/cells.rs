//! The cells: what was set, what came out, how it compares, what limited it.

use crate::language::{Catalogue, Sentence};
use crate::view::judged::Judged;
use crate::view::run::comparison_warning;
use crate::view::table::{percent, ratio};
use crate::view::{
    CellView, ComparisonView, DiagnosisView, EvidenceView, FailureView, FindingView, LatencyView, PercentileView,
};
use diagnosis::{Diagnosis, Finding, Quantity, Unit};
use model::latency::Latency;
use model::load::{Counts, Failure, LoadDoubt, LoadResult};
use model::plan::{Cell, LoadSpec, Plan, Role};
use model::run::Run;
use stats::{Comparison, Verdict, Warning};
use std::collections::BTreeMap;

pub(crate) fn views(run: &Run, judged: &Judged, words: &Catalogue) -> Vec<CellView> {
    run.head.plan.cells.iter().map(|cell| view(run, cell, judged, words)).collect()
}

fn view(run: &Run, cell: &Cell, judged: &Judged, words: &Catalogue) -> CellView {
    let plan = &run.head.plan;
    let variant = plan.variant(cell);
    let loads: Vec<&LoadResult> = run.usable(&cell.name).filter_map(|trial| trial.load.as_ref()).collect();
    let goodputs: Vec<f64> = loads.iter().map(|load| load.goodput()).collect();
    let mut latency = Latency::new();
    let mut counts = Counts::default();
    let mut examples: BTreeMap<Failure, String> = BTreeMap::new();
    for load in &loads {
        latency.merge(&load.total);
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
        load: load_sentence(plan.load(cell), words),
        trials_used: loads.len(),
        trials_made: run.trials.iter().filter(|trial| trial.cell == cell.name).count(),
        window_s: median(&loads.iter().map(|load| load.seconds()).collect::<Vec<_>>()),
        good_per_s: geometric_mean(&goodputs),
        good_per_s_of_trials: goodputs,
        latency: latency_view(&latency),
        good: counts.good,
        failures: counts
            .failed
            .iter()
            .map(|(&cause, &count)| FailureView {
                cause: words.say(failure_id(cause), &[("statuses", statuses(&counts))]),
                count,
                example: examples.get(&cause).cloned(),
            })
            .collect(),
        comparison: judged.comparison(cell).map(|comparison| comparison_view(comparison, plan, words)),
        same_as_baseline: same_as_baseline(run, cell, judged, words),
        diagnosis: judged.cell(run, cell).map(|diagnosis| diagnosis_view(&diagnosis, words)),
        doubts: doubts(&loads, words),
    }
}

fn load_sentence(load: &LoadSpec, words: &Catalogue) -> Sentence {
    let duration = |ns: u64| units::short_duration(ns as f64);
    let amount = match (load.requests, load.duration_ns) {
        (Some(n), None) => words.say("amount-requests", &[("requests", n.to_string())]),
        (None, Some(ns)) => words.say("amount-duration", &[("duration", duration(ns))]),
        (Some(n), Some(ns)) => words.say("amount-either", &[("requests", n.to_string()), ("duration", duration(ns))]),
        (None, None) => words.say("amount-open", &[]),
    };
    words.say(
        if load.keep_alive { "load-keep-alive" } else { "load-close" },
        &[("path", load.path.clone()), ("connections", load.connections.to_string()), ("amount", amount.text)],
    )
}

/// The middle value; the mean of the two middle ones for an even count.
fn median(values: &[f64]) -> Option<f64> {
    stats::summarize(values).ok().map(|summary| summary.median)
}

/// exp of the mean logarithm: the mean whose quotients are the compared ratios.
fn geometric_mean(values: &[f64]) -> Option<f64> {
    let logarithms: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    stats::summarize(&logarithms).ok().map(|summary| summary.mean.exp())
}

/// Percentiles shown of every distribution; closer together where answers are slow and few.
const PERCENTS: [f64; 17] =
    [0.0, 1.0, 5.0, 10.0, 25.0, 50.0, 75.0, 80.0, 90.0, 95.0, 97.5, 99.0, 99.5, 99.9, 99.95, 99.99, 100.0];

fn latency_view(latency: &Latency) -> Option<LatencyView> {
    let (min_us, max_us) = latency.range_us()?;
    let at = |percent: f64| latency.percentile_us(percent);
    // A percentile that no single answer stands for would only repeat the maximum.
    let resolved = |percent: f64| percent >= 100.0 || (100.0 - percent) / 100.0 * latency.len() as f64 >= 1.0;
    Some(LatencyView {
        min_us,
        mean_us: latency.mean_us()?,
        median_us: at(50.0)?,
        p99_us: at(99.0)?,
        max_us,
        count: latency.len(),
        percentiles: PERCENTS
            .into_iter()
            .filter(|&percent| resolved(percent))
            .filter_map(|percent| Some(PercentileView { percent, at_most_us: at(percent)? }))
            .collect(),
    })
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
        Failure::Local => "failure-local",
    }
}

/// Statuses other than 2xx with their counts, such as `503: 12`.
fn statuses(counts: &Counts) -> String {
    let others = counts.statuses.iter().filter(|(status, _)| !(200..300).contains(*status));
    others.map(|(status, n)| format!("{status}: {n}")).collect::<Vec<_>>().join(", ")
}

fn comparison_view(comparison: &Comparison, plan: &Plan, words: &Catalogue) -> ComparisonView {
    let verdict = match comparison.verdict {
        Verdict::Better => "better",
        Verdict::Worse => "worse",
        Verdict::Equivalent => "equivalent",
        Verdict::Inconclusive { .. } => "inconclusive",
    };
    let mut arguments = vec![("ratio", ratio(comparison.ratio)), ("blocks", comparison.blocks.to_string())];
    let interval = match comparison.interval {
        Some(interval) => {
            arguments.push(("low", ratio(interval.low)));
            arguments.push(("high", ratio(interval.high)));
            arguments.push(("confidence", percent(plan.confidence)));
            words.say("compared", &arguments)
        }
        None => words.say("compared-once", &arguments),
    };
    let judgement = match comparison.verdict {
        Verdict::Inconclusive { more_blocks: Some(n) } => {
            words.say("verdict-inconclusive-more", &[("blocks", n.to_string())])
        }
        _ => words.say(&format!("verdict-{verdict}-long"), &[("margin", percent(plan.margin))]),
    };
    let own = |warning: &&Warning| !matches!(warning, Warning::FewBlocks { .. } | Warning::AgainDiffers { .. });
    ComparisonView {
        ratio: comparison.ratio,
        low: comparison.interval.map(|interval| interval.low),
        high: comparison.interval.map(|interval| interval.high),
        blocks: comparison.blocks,
        verdict: words.say(&format!("verdict-{verdict}"), &[]),
        sentence: words.say("compared-and-judged", &[("compared", interval.text), ("judgement", judgement.text)]),
        warnings: comparison.warnings.iter().filter(own).map(|warning| comparison_warning(warning, words)).collect(),
    }
}

fn same_as_baseline(run: &Run, cell: &Cell, judged: &Judged, words: &Catalogue) -> Option<Sentence> {
    let baseline = run.head.plan.baseline();
    let (own, other) = (judged.cell(run, cell)?, judged.cell(run, baseline)?);
    let same = cell.role == Role::Again && own.causes().eq(other.causes());
    let limit = title(&own.primary, words).text;
    same.then(|| words.say("same-as-baseline", &[("cell", baseline.name.clone()), ("limit", limit)]))
}

/// What a finding says, in a few words.
pub(crate) fn title(finding: &Finding, words: &Catalogue) -> Sentence {
    words.say(finding.id, &[])
}

fn diagnosis_view(diagnosis: &Diagnosis, words: &Catalogue) -> DiagnosisView {
    let all = |findings: &[Finding]| findings.iter().map(|finding| finding_view(finding, words)).collect();
    DiagnosisView {
        primary: finding_view(&diagnosis.primary, words),
        contributing: all(&diagnosis.contributing),
        ruled_out: all(&diagnosis.ruled_out),
        trials_agreeing: diagnosis.agreement.agree,
        trials_judged: diagnosis.agreement.of,
    }
}

fn finding_view(finding: &Finding, words: &Catalogue) -> FindingView {
    let advice = format!("{}-advice", finding.id);
    let evidence = |&quantity: &Quantity| {
        let value = finding.numbers.get(quantity)?;
        Some(EvidenceView {
            name: quantity.name(),
            unit: quantity.unit(),
            value,
            label: words.word(&format!("number-{}", quantity.name())),
            text: printed(value, quantity.unit()),
        })
    };
    FindingView {
        title: title(finding, words),
        leads_to: finding.leads_to.map(|effect| {
            let effect = words.word(effect.id());
            words.say("leads-to", &[("effect", effect)])
        }),
        advice: words.has(&advice).then(|| words.say(&advice, &[])),
        evidence: Quantity::ALL.iter().filter_map(evidence).collect(),
    }
}

fn printed(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Share => format!("{} %", units::si(value * 100.0).print(value * 100.0)),
        Unit::Bytes => units::short_bytes(value.max(0.0).round() as u64),
        Unit::Count if value.fract() == 0.0 => format!("{value}"),
        Unit::Count => units::si(value).print(value),
        Unit::Seconds => units::short_duration(value * 1e9),
    }
}

/// A doubt of the same kind in several trials is said once, with its worst number.
fn doubts(loads: &[&LoadResult], words: &Catalogue) -> Vec<Sentence> {
    let mut worst: BTreeMap<&'static str, (f64, usize, LoadDoubt)> = BTreeMap::new();
    for doubt in loads.iter().flat_map(|load| load.self_check()) {
        // The larger, the worse.
        let (id, badness) = match &doubt {
            LoadDoubt::LittleOff { asked, computed } => ("doubt-little", (computed / asked).ln().abs()),
            LoadDoubt::ConcurrencyMissed { asked, achieved } => ("doubt-concurrency", asked - achieved),
            LoadDoubt::GeneratorSaturated { share } => ("doubt-generator", *share),
            LoadDoubt::FewWaves { waves } => ("doubt-few-waves", -waves),
        };
        let entry = worst.entry(id).or_insert_with(|| (badness, 0, doubt.clone()));
        entry.1 += 1;
        if badness > entry.0 {
            (entry.0, entry.2) = (badness, doubt);
        }
    }
    let sentence = |(id, (_, trials, doubt)): (&str, (f64, usize, LoadDoubt))| {
        let number = |value: f64| units::si(value).print(value);
        let mut arguments = vec![("n", trials.to_string()), ("trials", loads.len().to_string())];
        arguments.extend(match doubt {
            LoadDoubt::LittleOff { asked, computed } => {
                vec![("asked", number(asked)), ("computed", number(computed))]
            }
            LoadDoubt::ConcurrencyMissed { asked, achieved } => {
                vec![("asked", number(asked)), ("achieved", number(achieved))]
            }
            LoadDoubt::GeneratorSaturated { share } => vec![("share", percent((share * 100.0).round() / 100.0))],
            LoadDoubt::FewWaves { waves } => vec![("waves", number(waves))],
        });
        words.say(id, &arguments)
    };
    worst.into_iter().map(sentence).collect()
}
