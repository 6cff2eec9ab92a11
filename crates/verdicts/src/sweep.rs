//! A sweep over a number: throughput against it, the law that fits it, and a cliff that none does.

use crate::{Metric, criteria};
use model::plan::SweepPoint;
use model::reading::{Column, Reading};
use model::run::Run;
use model::trial::Trial;
use stats::{CLIFF, Criteria, Fit, Interval, Pairs, Point, compare, fit_usl, sure_cliff};
use std::collections::BTreeMap;

/// Failures beyond this share of the requests make a throughput no point of a curve.
const FAILED: f64 = 0.01;

/// What a sweep shows.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// Its points, by ascending value.
    pub points: Vec<CurvePoint>,
    /// The law, over the points that belong to it; `None` when these are too few.
    pub fit: Option<Fit>,
    /// The values before and behind a cliff, and the share of throughput that is left behind it.
    pub cliff: Option<(u64, u64, f64)>,
    /// Blocks that the law rests on.
    pub blocks: usize,
}

/// One value of a sweep.
#[derive(Debug, Clone, PartialEq)]
pub struct CurvePoint {
    /// The value.
    pub value: u64,
    /// Name of its cell.
    pub cell: String,
    /// Good answers per second: the geometric mean of the trials that had any.
    pub throughput: Option<f64>,
    /// Where that mean lies, of Student's t and by itself; what differs from block to block is in it.
    pub interval: Option<Interval>,
    /// Median latency, the geometric mean of the trials, microseconds.
    pub median_us: Option<f64>,
    /// Why the law is not fitted to it, if it is not.
    pub left_out: Option<LeftOut>,
}

/// Why a point is no part of the curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeftOut {
    /// A trial of it gave no good answer, or there is none.
    Silent,
    /// More than 1 % of its requests failed.
    Failed,
    /// Some of the server was in swap.
    Swapped,
    /// It lies behind the cliff.
    BehindCliff,
}

/// What the sweep of a run shows; `None` when its plan has none.
#[must_use]
pub fn curve(run: &Run) -> Option<Curve> {
    let sweep = run.head.plan.sweep.as_ref()?;
    let criteria = criteria(&run.head.plan, Metric::Goodput).ok()?;
    let confidence = 1.0 - criteria.alpha();
    let mut points: Vec<CurvePoint> = sweep.points.iter().map(|point| measured(run, point, confidence)).collect();
    let known = |point: &CurvePoint| {
        Some(Point { concurrency: point.value as f64, throughput: point.throughput.filter(|it| *it > 0.0)? })
    };
    let seen: Vec<Point> = points.iter().filter_map(known).collect();
    let found = sure_cliff(&seen, |before, behind| falls_surely(run, &points, &criteria, before, behind));
    if let Some((_, behind)) = found {
        let is_behind = |point: &&mut CurvePoint| point.left_out.is_none() && point.value as f64 >= behind.concurrency;
        points.iter_mut().filter(is_behind).for_each(|point| point.left_out = Some(LeftOut::BehindCliff));
    }
    let kept: Vec<&CurvePoint> = points.iter().filter(|point| point.left_out.is_none()).collect();
    let blocks = blocks(run, &kept);
    let fit = fit_usl(&blocks, confidence, run.head.seed);
    let cliff = found.map(|(before, behind)| {
        (before.concurrency as u64, behind.concurrency as u64, behind.throughput / before.throughput)
    });
    let cliff = cliff.or_else(|| falls_to_nothing(run, &points));
    Some(Curve { fit, cliff, blocks: blocks.len(), points })
}

/// Whether the blocks agree on the fall: the whole interval of the ratio lies below what a cliff leaves. A single block has no interval, and
/// is believed.
fn falls_surely(run: &Run, points: &[CurvePoint], criteria: &Criteria, before: &Point, behind: &Point) -> bool {
    let numbers = |at: &Point| -> BTreeMap<u32, f64> {
        let cell = points.iter().find(|point| point.value as f64 == at.concurrency).map(|point| point.cell.as_str());
        let measured = cell.into_iter().flat_map(|cell| run.measured(cell));
        measured.filter_map(|(trial, load)| Some((trial.block, Metric::Goodput.of(trial, load)?.ln()))).collect()
    };
    let (before, behind) = (numbers(before), numbers(behind));
    let both = before.iter().filter_map(|(block, number)| Some((*number, *behind.get(block)?)));
    let (baseline, other): (Vec<f64>, Vec<f64>) = both.unzip();
    let compared = compare(Pairs { baseline: &baseline, other: &other }, criteria);
    compared.is_ok_and(|it| it.interval.is_none_or(|interval| interval.high < 1.0 - CLIFF))
}

/// The last value with good answers and the one behind it, from which on there was none in any trial: the steepest fall, though nothing has a
/// logarithm.
fn falls_to_nothing(run: &Run, points: &[CurvePoint]) -> Option<(u64, u64, f64)> {
    let last = points.iter().rposition(|point| point.throughput.is_some())?;
    let behind = points.get(last + 1).filter(|point| run.measured(&point.cell).next().is_some())?;
    Some((points[last].value, behind.value, 0.0))
}

fn measured(run: &Run, point: &SweepPoint, confidence: f64) -> CurvePoint {
    let trials: Vec<_> = run.measured(&point.cell).collect();
    let logarithms = |metric: Metric| -> Vec<f64> {
        trials.iter().filter_map(|(trial, load)| metric.of(trial, load)).map(f64::ln).collect()
    };
    let goodputs = logarithms(Metric::Goodput);
    let mean = |values: &[f64]| stats::summarize(values).ok().map(|summary| summary.mean.exp());
    let failed = trials
        .iter()
        .any(|(_, load)| load.counts.failures() as f64 > FAILED * (load.counts.good + load.counts.failures()) as f64);
    let left_out = if trials.is_empty() || goodputs.len() < trials.len() {
        Some(LeftOut::Silent)
    } else if trials.iter().any(|(trial, _)| swapped(trial)) {
        Some(LeftOut::Swapped)
    } else {
        failed.then_some(LeftOut::Failed)
    };
    CurvePoint {
        value: point.value,
        cell: point.cell.clone(),
        throughput: mean(&goodputs),
        interval: interval(&goodputs, confidence),
        median_us: mean(&logarithms(Metric::Median)),
        left_out,
    }
}

fn interval(logarithms: &[f64], confidence: f64) -> Option<Interval> {
    let summary = stats::summarize(logarithms).ok()?;
    let freedom = u32::try_from(summary.count - 1).ok()?;
    let half =
        stats::t_quantile(f64::midpoint(1.0, confidence), freedom.max(1)) * summary.sd? / (summary.count as f64).sqrt();
    Some(Interval { low: (summary.mean - half).exp(), high: (summary.mean + half).exp() })
}

/// Whether anything of the server was in swap at any reading.
fn swapped(trial: &Trial) -> bool {
    let in_swap = |row: &Reading| row.get(Column::GroupSwap).or_else(|| row.get(Column::TreeSwap)).unwrap_or(0);
    trial.readings.rows.iter().any(|row| in_swap(row) > 0)
}

/// The blocks in which every point of the curve was measured.
fn blocks(run: &Run, kept: &[&CurvePoint]) -> Vec<Vec<Point>> {
    let mut blocks: BTreeMap<u32, Vec<Point>> = BTreeMap::new();
    for point in kept {
        for (trial, load) in run.measured(&point.cell) {
            if let Some(throughput) = Metric::Goodput.of(trial, load) {
                let point = Point { concurrency: point.value as f64, throughput };
                blocks.entry(trial.block).or_default().push(point);
            }
        }
    }
    blocks.into_values().filter(|block| block.len() == kept.len()).collect()
}
