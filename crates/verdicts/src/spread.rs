//! Where the noise comes from: starting the server anew, the seconds of a window, single requests.
//!
//! The variance of ln throughput from trial to trial of a cell, what the blocks share taken out, is that of the two-way table of cells and
//! blocks (without interaction). Within a window of T seconds whose throughputs have the relative variance v, seconds make v / T of it.
//! Of that, requests alone make cv^2 / N: in a closed loop each connection is a renewal process, and the relative variance of N renewals
//! is that of the time between two, cv^2, over N (Cox, *Renewal Theory*, 1962). Where connections wait for each other they are not
//! independent and make less; never more than the seconds that contain them. What neither makes is left to starting anew. Seconds
//! are taken as independent; slow waves within windows are therefore counted there, too.

use crate::Metric;
use crate::steady::per_second;
use model::latency::Latency;
use model::load::LoadResult;
use model::plan::Pace;
use model::run::Run;
use std::collections::BTreeMap;

/// From fewer seconds than this no variance within a window is taken.
const ENOUGH_SECONDS: usize = 5;

/// The noise of a run and what makes it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Standard deviation of ln throughput from trial to trial.
    pub sd: f64,
    /// The share of the variance that each start of the server makes, and all that differs between trials; with the seconds' when
    /// [`Spread::window`] is not known.
    pub restart: f64,
    /// The share of the seconds within a window; `None` when windows are too short to tell.
    pub window: Option<f64>,
    /// The share of single requests; with [`Spread::window`] not known, the most that it can be.
    pub request: f64,
}

/// Splits the noise of a run; `None` unless two blocks have all their cells, all of closed loops.
#[must_use]
pub fn spread(run: &Run) -> Option<Spread> {
    let plan = &run.head.plan;
    if !plan.loads.iter().all(|load| load.pace == Pace::WhenFree && load.session.is_none()) {
        return None;
    }
    let (total, _) = cell_residual(run, Metric::Goodput)?;
    let loads: Vec<&LoadResult> = run.trials.iter().filter_map(|trial| trial.measured()).collect();
    let mean = |values: Vec<f64>| stats::summarize(&values).ok().map(|summary| summary.mean);
    let request = mean(loads.iter().filter_map(|load| of_requests(load)).collect())?;
    let window = mean(loads.iter().filter_map(|load| of_seconds(load)).collect());
    // Connections that wait for each other are no independent renewals; what requests make is in the seconds in any case.
    let request = window.map_or(request, |window| request.min(window));
    let seconds = window.map(|window| window - request);
    let restart = (total - request - seconds.unwrap_or(0.0)).max(0.0);
    let sum = restart + seconds.unwrap_or(0.0) + request;
    (sum > 0.0).then(|| Spread {
        sd: total.sqrt(),
        restart: restart / sum,
        window: seconds.map(|seconds| seconds / sum),
        request: request / sum,
    })
}

/// The variance of the two-way table and the mean of each block, over the blocks that have a number for every cell.
pub(crate) fn cell_residual(run: &Run, metric: Metric) -> Option<(f64, Vec<f64>)> {
    let cells = &run.head.plan.cells;
    let mut blocks: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for cell in cells {
        for (trial, load) in run.measured(&cell.name) {
            blocks.entry(trial.block).or_default().extend(metric.of(trial, load).map(f64::ln));
        }
    }
    let rows: Vec<Vec<f64>> = blocks.into_values().filter(|row| row.len() == cells.len()).collect();
    let (k, n) = (cells.len() as f64, rows.len() as f64);
    if rows.len() < 2 {
        return None;
    }
    let all = rows.iter().flatten().sum::<f64>() / (k * n);
    let of_cell = |cell: usize| rows.iter().map(|row| row[cell]).sum::<f64>() / n;
    let means: Vec<f64> = (0..cells.len()).map(of_cell).collect();
    // A single cell has nothing to share with in a block.
    let shared = |row: &[f64]| if k > 1.0 { row.iter().sum::<f64>() / k - all } else { 0.0 };
    let left = rows.iter().flat_map(|row| {
        let shared = shared(row);
        row.iter().zip(&means).map(move |(value, mean)| (value - mean - shared).powi(2))
    });
    let variance = left.sum::<f64>() / ((k - 1.0).max(1.0) * (n - 1.0));
    Some((variance, rows.iter().map(|row| row.iter().sum::<f64>() / k).collect()))
}

/// The relative variance that seconds give the throughput of a window.
fn of_seconds(load: &LoadResult) -> Option<f64> {
    let seconds = per_second(load);
    if seconds.len() < ENOUGH_SECONDS {
        return None;
    }
    let summary = stats::summarize(&seconds).ok()?;
    Some(summary.cv?.powi(2) / summary.count as f64)
}

/// The relative variance that single requests give it.
fn of_requests(load: &LoadResult) -> Option<f64> {
    let mean = load.total.mean_us().filter(|mean| *mean > 0.0)?;
    let count = load.total.len() as f64;
    Some(variance(&load.total, mean) / (mean * mean) / count)
}

fn variance(latency: &Latency, mean: f64) -> f64 {
    let squares = latency.buckets().map(|(us, count)| count as f64 * (us as f64 - mean).powi(2));
    squares.sum::<f64>() / latency.len() as f64
}
