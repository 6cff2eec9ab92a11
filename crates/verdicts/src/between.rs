//! Two runs compared: the cells that both have, widened by what machines drift from one run to the next, and what else differs.

mod differs;

pub use differs::{Difference, Differs};

use crate::{Metric, cell_residual};
use differs::differences;
use model::plan::{Cell, Role};
use model::run::{Run, RunHead};
use stats::{Comparison, Criteria, Drift, StatsError, compare_apart};
use std::collections::BTreeSet;

/// One side of the comparison: a run, or several of one plan taken together. Never empty.
#[derive(Debug, Clone, Copy)]
pub struct Side<'a>(pub &'a [Run]);

/// What two sides say about each other.
#[derive(Debug, Clone)]
pub struct Between {
    /// The cells that both have, as pairs of names.
    pub cells: Vec<Shared>,
    /// Cells that only one of them has.
    pub alone: Vec<String>,
    /// What is allowed for in throughput; other metrics have a walk of their own.
    pub drift: Drift,
    /// What else is not the same.
    pub differences: Vec<Difference>,
}

/// A cell that both sides have.
#[derive(Debug, Clone)]
pub struct Shared {
    /// Its name on the first side.
    pub first: String,
    /// Its name on the second.
    pub second: String,
    /// Each metric that both have a number for: geometric means of the trials, how many, and the comparison, second over first.
    pub metrics: Vec<Apart>,
}

/// A metric of a cell on both sides.
#[derive(Debug, Clone)]
pub struct Apart {
    /// Which.
    pub metric: Metric,
    /// Geometric means.
    pub means: (f64, f64),
    /// Trials with a number.
    pub trials: (usize, usize),
    /// The comparison.
    pub comparison: Comparison,
}

/// Compares two sides.
///
/// # Errors
/// When the plan's confidence or margin is none.
pub fn between(first: Side<'_>, second: Side<'_>) -> Result<Between, StatsError> {
    let (pairs, alone) = pairs(first.head(), second.head());
    let drift = |metric: Metric| {
        let walk = own_walk(first, metric).max(own_walk(second, metric));
        Drift::between(first.trials(), second.trials(), walk)
    };
    let drifts = Metric::ALL.map(|metric| (metric, drift(metric)));
    let mut cells: Vec<Shared> = Vec::new();
    for (a, b) in &pairs {
        let mut metrics = Vec::new();
        for (metric, drift) in &drifts {
            let metric = *metric;
            let (of_a, of_b) = (first.logarithms(a, metric), second.logarithms(b, metric));
            let (Ok(mean_a), Ok(mean_b)) = (stats::summarize(&of_a), stats::summarize(&of_b)) else { continue };
            let plan = &first.head().plan;
            let criteria = Criteria::new(metric.better(), plan.confidence, plan.margin)?;
            let mut comparison = compare_apart(&of_a, &of_b, drift, pairs.len(), &criteria)?;
            if of_a.len() < first.measured(a) || of_b.len() < second.measured(b) {
                // Trials without a number would be left out of their mean.
                comparison.verdict = stats::Verdict::Inconclusive { more_blocks: None };
                comparison.material = false;
            }
            let (means, trials) = ((mean_a.mean.exp(), mean_b.mean.exp()), (of_a.len(), of_b.len()));
            metrics.push(Apart { metric, means, trials, comparison });
        }
        cells.push(Shared { first: a.name.clone(), second: b.name.clone(), metrics });
    }
    let differences = differences(first, second, &pairs);
    Ok(Between { cells, alone, drift: drift(Metric::Goodput), differences })
}

impl Side<'_> {
    /// The head of its first run.
    fn head(&self) -> &RunHead {
        &self.0[0].head
    }

    fn trials(&self) -> usize {
        self.0.iter().map(|run| run.trials.len()).sum()
    }

    fn measured(&self, cell: &Cell) -> usize {
        self.0.iter().map(|run| run.measured(&cell.name).count()).sum()
    }

    fn logarithms(&self, cell: &Cell, metric: Metric) -> Vec<f64> {
        let of_run = |run: &Run| -> Vec<f64> {
            run.measured(&cell.name).filter_map(|(trial, load)| metric.of(trial, load)).map(f64::ln).collect()
        };
        self.0.iter().flat_map(of_run).collect()
    }

    fn software(&self) -> String {
        let servers: BTreeSet<&str> =
            self.0.iter().flat_map(|run| &run.trials).map(|trial| trial.settings.server.as_str()).collect();
        servers.into_iter().filter(|server| !server.is_empty()).collect::<Vec<_>>().join(", ")
    }
}

/// The random walk per trial that the blocks of a side show; 0 when they show none, or there are fewer than four.
///
/// The means of blocks of k trials that lie L blocks apart differ by the variance L k w^2, and by noise that is the same for every L.
/// So the walk is what the mean square of far steps has over that of near ones. On average blocks that are merely noisy do not walk; few of
/// them may seem to, which makes the intervals wider than they need be.
fn own_walk(side: Side<'_>, metric: Metric) -> f64 {
    let of_run = |run: &Run| {
        let (_, means) = cell_residual(run, metric)?;
        let far = means.len() / 2;
        let step = |lag: usize| {
            let squares: Vec<f64> = (lag..means.len()).map(|at| (means[at] - means[at - lag]).powi(2)).collect();
            stats::summarize(&squares).ok().map(|summary| summary.mean)
        };
        let trials = (far.checked_sub(1).filter(|it| *it > 0)? * run.head.plan.cells.len()) as f64;
        Some(((step(far)? - step(1)?) / trials).max(0.0).sqrt())
    };
    side.0.iter().filter_map(of_run).fold(0.0, f64::max)
}

/// The cells of the same name on both sides; of sides with one cell each that one, whatever its name. And those without a partner.
fn pairs<'a>(first: &'a RunHead, second: &'a RunHead) -> (Vec<(&'a Cell, &'a Cell)>, Vec<String>) {
    let own = |head: &'a RunHead| -> Vec<&'a Cell> {
        head.plan.cells.iter().filter(|cell| cell.role != Role::Again).collect()
    };
    let (a, b) = (own(first), own(second));
    if let ([one], [other]) = (a.as_slice(), b.as_slice()) {
        return (vec![(*one, *other)], vec![]);
    }
    let partner = |cell: &&'a Cell, others: &[&'a Cell]| others.iter().copied().find(|other| other.name == cell.name);
    let pairs = a.iter().filter_map(|cell| Some((*cell, partner(cell, &b)?))).collect();
    let alone = a.iter().filter(|cell| partner(cell, &b).is_none());
    let alone = alone.chain(b.iter().filter(|cell| partner(cell, &a).is_none())).map(|cell| cell.name.clone());
    (pairs, alone.collect())
}
