//! A sweep in numbers and words: throughput against what grows, the law that fits it, its peak and knee, and the cliff apart.

use crate::language::{Catalogue, Sentence};
use crate::view::table::{NOTHING, Row, RowKind, Table, percent};
use model::plan::Over;
use model::run::Run;
use serde::Serialize;
use stats::Fit;
use verdicts::{Curve, CurvePoint, LeftOut};

/// A law that typically misses by more than this does not describe what was measured.
const MISS: f64 = 0.1;
/// Places at which the law is drawn.
const DRAWN: u32 = 60;

/// A sweep over a number.
#[derive(Debug, Clone, Serialize)]
pub struct SweepView {
    /// What grows: `connections`, or the setting's name.
    pub over: String,
    /// Its values.
    pub points: Vec<SweepPointView>,
    /// The law, when there are points enough for it.
    pub law: Option<LawView>,
    /// The cliff, when there is one.
    pub cliff: Option<CliffView>,
    /// What all of it means.
    pub sentences: Vec<Sentence>,
    /// The law as a line: values and good answers per second.
    #[serde(skip)]
    pub curve: Vec<(f64, Option<f64>)>,
    /// The points as a table, printed.
    #[serde(skip)]
    pub table: Table,
}

/// One value of a sweep.
#[derive(Debug, Clone, Serialize)]
pub struct SweepPointView {
    /// The value.
    pub value: u64,
    /// Name of its cell.
    pub cell: String,
    /// Good answers per second, the geometric mean of the trials.
    pub good_per_s: Option<f64>,
    /// Lower end of that mean's own interval.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Median latency, the geometric mean of the trials.
    pub median_us: Option<f64>,
    /// Good answers per second by the law.
    pub by_law_per_s: Option<f64>,
    /// Why the law is not fitted to it, if it is not.
    pub left_out: Option<Sentence>,
}

/// The Universal Scalability Law, fitted.
#[derive(Debug, Clone, Serialize)]
pub struct LawView {
    /// Throughput of one.
    pub lambda_per_s: f64,
    /// Contention.
    pub sigma: f64,
    /// Where it lies.
    pub sigma_interval: Option<(f64, f64)>,
    /// Coherence.
    pub kappa: f64,
    /// Where it lies.
    pub kappa_interval: Option<(f64, f64)>,
    /// The value of the largest throughput; `None` when it was not seen.
    pub peak: Option<f64>,
    /// Where it lies.
    pub peak_interval: Option<(f64, f64)>,
    /// Kleinrock's knee, of a sweep over connections.
    pub knee: Option<f64>,
    /// How far the measurements typically are from the law, as a share.
    pub miss: f64,
    /// Blocks it rests on.
    pub blocks: usize,
}

/// A fall that no such law has.
#[derive(Debug, Clone, Serialize)]
pub struct CliffView {
    /// The last value before it.
    pub before: u64,
    /// The first behind it.
    pub behind: u64,
    /// The share of throughput that is left.
    pub left: f64,
}

/// The sweep of a run, if its plan has one.
pub(crate) fn view(run: &Run, words: &Catalogue) -> Option<SweepView> {
    let curve = verdicts::curve(run)?;
    let over = &run.head.plan.sweep.as_ref()?.over;
    let is_load = *over == Over::Connections;
    let over = match over {
        Over::Connections => "connections".to_owned(),
        Over::Setting(name) => name.clone(),
    };
    let law = curve.fit.as_ref().map(|fit| law(fit, curve.blocks, is_load));
    let points: Vec<_> = curve.points.iter().map(|point| point_view(point, curve.fit.as_ref(), words)).collect();
    Some(SweepView {
        sentences: sentences(&curve, law.as_ref(), &over, words),
        cliff: curve.cliff.map(|(before, behind, left)| CliffView { before, behind, left }),
        curve: drawn(&curve),
        table: table(&points, &over, run.head.plan.confidence, words),
        law,
        points,
        over,
    })
}

fn law(fit: &Fit, blocks: usize, is_load: bool) -> LawView {
    LawView {
        lambda_per_s: fit.law.lambda,
        sigma: fit.law.sigma,
        sigma_interval: fit.sigma,
        kappa: fit.law.kappa,
        kappa_interval: fit.kappa,
        peak: fit.peak.map(|(peak, _)| peak),
        peak_interval: fit.peak.map(|(_, interval)| interval),
        // It weighs throughput against latency by Little's law, which knows connections and no settings.
        knee: is_load.then_some(fit.knee),
        miss: fit.miss,
        blocks,
    }
}

fn point_view(point: &CurvePoint, fit: Option<&Fit>, words: &Catalogue) -> SweepPointView {
    let left_out = point.left_out.map(|why| match why {
        LeftOut::Silent => words.say("sweep-left-silent", &[]),
        LeftOut::Failed => words.say("sweep-left-failed", &[]),
        LeftOut::Swapped => words.say("sweep-left-swapped", &[]),
        LeftOut::BehindCliff => words.say("sweep-left-behind", &[]),
    });
    SweepPointView {
        value: point.value,
        cell: point.cell.clone(),
        good_per_s: point.throughput,
        low: point.interval.map(|it| it.low),
        high: point.interval.map(|it| it.high),
        median_us: point.median_us,
        by_law_per_s: fit.filter(|_| left_out.is_none()).map(|fit| fit.law.throughput(point.value as f64)),
        left_out,
    }
}

/// The law between the smallest and the largest value that it is fitted to.
fn drawn(curve: &Curve) -> Vec<(f64, Option<f64>)> {
    let Some(fit) = &curve.fit else { return Vec::new() };
    let kept = curve.points.iter().filter(|point| point.left_out.is_none()).map(|point| point.value as f64);
    let (low, high) = kept.fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
    let at = |step: u32| low * (high / low).powf(f64::from(step) / f64::from(DRAWN));
    (0..=DRAWN).map(at).map(|value| (value, Some(fit.law.throughput(value)))).collect()
}

fn sentences(curve: &Curve, law: Option<&LawView>, over: &str, words: &Catalogue) -> Vec<Sentence> {
    let mut sentences = Vec::new();
    if let Some((before, behind, left)) = curve.cliff {
        let left = percent((left * 100.0).round() / 100.0);
        let arguments = [("before", before.to_string().into()), ("behind", behind.to_string().into())];
        let rest = [("left", left.into()), ("over", over.into())];
        sentences.push(words.say("sweep-cliff", &[arguments, rest].concat()));
    }
    let Some(law) = law else {
        sentences.push(words.say("sweep-no-law", &[]));
        return sentences;
    };
    sentences.push(told(law, curve, words));
    let most = curve.points.iter().filter(|point| point.left_out.is_none()).map(|point| point.value).max();
    let most = most.unwrap_or_default();
    let peak = curve.fit.map_or(f64::INFINITY, |fit| fit.law.peak());
    sentences.push(match (law.peak, law.peak_interval) {
        (Some(peak), Some((low, high))) => {
            let rate = curve.fit.map_or(0.0, |fit| fit.law.throughput(peak));
            let values = [("peak", number(peak).into()), ("low", number(low).into()), ("high", number(high).into())];
            let rest = [("rate", number(rate).into()), ("over", over.into())];
            words.say("sweep-peak", &[values.as_slice(), &rest].concat())
        }
        _ if law.sigma_interval.is_none() => words.say("sweep-few-blocks", &[("blocks", law.blocks.into())]),
        _ if peak < most as f64 => {
            let arguments = [("peak", number(peak).into()), ("most", most.to_string().into()), ("over", over.into())];
            words.say("sweep-peak-unsure", &arguments)
        }
        _ => words.say("sweep-no-peak", &[("most", most.to_string().into()), ("over", over.into())]),
    });
    sentences.extend(law.knee.map(|knee| words.say("sweep-knee", &[("knee", format!("{knee}").into())])));
    sentences.extend((law.miss > MISS).then(|| words.say("sweep-miss", &[("miss", share(law.miss).into())])));
    sentences
}

/// The law with its intervals, when it has them.
fn told(law: &LawView, curve: &Curve, words: &Catalogue) -> Sentence {
    let points = curve.points.iter().filter(|point| point.left_out.is_none()).count();
    let mut arguments = vec![
        ("points", points.into()),
        ("blocks", law.blocks.into()),
        ("lambda", number(law.lambda_per_s).into()),
        ("sigma", share(law.sigma).into()),
        ("kappa", share(law.kappa).into()),
    ];
    let (Some(sigma), Some(kappa)) = (law.sigma_interval, law.kappa_interval) else {
        return words.say("sweep-law-alone", &arguments);
    };
    arguments.extend([
        ("slow", share(sigma.0).into()),
        ("shigh", share(sigma.1).into()),
        ("klow", share(kappa.0).into()),
        ("khigh", share(kappa.1).into()),
    ]);
    words.say("sweep-law", &arguments)
}

fn number(value: f64) -> String {
    units::si(value).print(value)
}

/// A share in percent with two significant digits; what is less than a millionth is nothing.
fn share(value: f64) -> String {
    let percent = value * 100.0;
    if percent < 1e-4 {
        return "0".to_owned();
    }
    let decimals = (1 - percent.log10().floor() as i32).clamp(0, 6);
    format!("{percent:.*}", decimals as usize)
}

fn table(points: &[SweepPointView], over: &str, confidence: f64, words: &Catalogue) -> Table {
    let largest = points.iter().filter_map(|point| point.good_per_s).fold(0.0, f64::max);
    let rate = units::si(largest);
    let slowest = points.iter().filter_map(|point| point.median_us).fold(0.0, f64::max);
    let time = units::duration_scale(slowest * 1e3);
    let row = |kind, label: String, figure: &dyn Fn(&SweepPointView) -> Option<String>| Row {
        kind,
        label,
        figures: points.iter().map(|point| figure(point).unwrap_or_else(|| NOTHING.to_owned())).collect(),
    };
    let interval = words.say("row-interval", &[("confidence", percent(confidence).into())]).text;
    let mut rows = vec![
        row(RowKind::Rate, words.word("row-rate"), &|point| Some(rate.print(point.good_per_s?))),
        row(RowKind::Interval, interval, &|point| {
            Some(format!("{}–{}", rate.print(point.low?), rate.print(point.high?)))
        }),
        row(RowKind::Latency, words.say("row-median", &[("unit", time.unit.into())]).text, &|point| {
            Some(time.print(point.median_us? * 1e3))
        }),
    ];
    if points.iter().any(|point| point.by_law_per_s.is_some()) {
        rows.push(row(RowKind::Rate, words.word("row-law"), &|point| Some(rate.print(point.by_law_per_s?))));
    }
    if points.iter().any(|point| point.left_out.is_some()) {
        rows.push(row(RowKind::Uncounted, words.word("row-left-out"), &|point| {
            Some(point.left_out.as_ref()?.text.clone())
        }));
    }
    let heads = points.iter().map(|point| format!("{over} {}", point.value)).collect();
    Table { heads, rows, notes: vec![words.say("sweep-note", &[])] }
}
