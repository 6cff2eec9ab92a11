//! Whether a window was steady: how much of its beginning is still warm-up, and whether the rest drifts.
//!
//! Never assumed: at most 43.5 % of the virtual machines and benchmarks of Barrett et al. (OOPSLA 2017) reach a steady peak in every
//! run. What comes in are numbers of equal stretches of time, such as answers per second.

use crate::error::{StatsError, finite};
use crate::quantile::normal_below;
use crate::summary::{mean, summarize};
use serde::Serialize;

/// Fewer stretches than this say nothing.
const ENOUGH: usize = 10;

/// Stretches that are averaged before MSER looks at them: White's MSER-5, which single bursts do not mislead.
const BATCH: usize = 5;

/// A trend that chance alone shows more often than this is none.
const CHANCE: f64 = 0.01;

/// How far a steady window may drift from its beginning to its end, as a share of its median.
const TOLERANCE: f64 = 0.02;

/// What a window looks like.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Steadiness {
    /// Stretches at the beginning that MSER-5 takes for warm-up; what follows is about the rest. At most half of them.
    pub warm_up: usize,
    /// How much the warm-up pulls the mean of the whole window from that of the rest: -0.05 when it costs 5 %.
    pub pull: f64,
    /// Growth over the rest by Theil and Sen's slope, as a share of its median: 0.03 for one that gained 3 %.
    pub drift: f64,
    /// Median of the second half of the rest over that of the first, minus 1.
    pub step: f64,
    /// How often chance alone would make the whole window rise or fall as clearly: two-sided p of Mann and Kendall's test.
    pub chance: f64,
}

impl Steadiness {
    /// Neither the warm-up nor drift nor step is beyond 2 %; a drift or step that chance would show in more than 1 % of all windows
    /// is none, because ten noisy seconds seldom lie level.
    #[must_use]
    pub fn is_steady(&self) -> bool {
        let moves = self.drift.abs() >= TOLERANCE || self.step.abs() >= TOLERANCE;
        !(self.is_warming_up() || moves && self.chance < CHANCE)
    }

    /// What MSER-5 takes for warm-up moves the mean of the window by 2 % or more.
    #[must_use]
    pub fn is_warming_up(&self) -> bool {
        self.pull.abs() >= TOLERANCE
    }
}

/// Looks at a window; `None` when it has fewer than 10 stretches, or a median of 0.
///
/// # Errors
/// When a value is not finite.
pub fn steadiness(values: &[f64]) -> Result<Option<Steadiness>, StatsError> {
    finite("the window", values)?;
    if values.len() < ENOUGH {
        return Ok(None);
    }
    let warm_up = warm_up(values);
    let rest = &values[warm_up..];
    let (first, second) = rest.split_at(rest.len() / 2);
    let [all, first, second] = [rest, first, second].map(median);
    let shown = all > 0.0 && first > 0.0;
    Ok(shown.then(|| Steadiness {
        warm_up,
        pull: mean(values) / mean(rest) - 1.0,
        drift: slope(rest) * (rest.len() - 1) as f64 / all,
        step: second / first - 1.0,
        chance: chance(values),
    }))
}

/// MSER-5: the cut that minimises the squared standard error of the mean of what is left, over batches of 5. A window that is
/// too short for as many as 4 batches keeps all of it.
fn warm_up(values: &[f64]) -> usize {
    let batches: Vec<f64> = values.chunks_exact(BATCH).map(mean).collect();
    if batches.len() < 4 {
        return 0;
    }
    let error = |cut: usize| {
        let left = &batches[cut..];
        let center = mean(left);
        left.iter().map(|value| (value - center).powi(2)).sum::<f64>() / (left.len() as f64).powi(2)
    };
    let best = (0..=batches.len() / 2).min_by(|&a, &b| error(a).total_cmp(&error(b)));
    best.unwrap_or(0) * BATCH
}

/// The median of the slopes between all pairs, per stretch: an outlier moves it little.
fn slope(values: &[f64]) -> f64 {
    let pairs = (0..values.len()).flat_map(|from| (from + 1..values.len()).map(move |to| (from, to)));
    median(&pairs.map(|(from, to)| (values[to] - values[from]) / (to - from) as f64).collect::<Vec<_>>())
}

/// Mann and Kendall: the pairs that rise less those that fall, with the normal approximation, which ten values are enough for.
fn chance(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let pairs = (0..values.len()).flat_map(|from| (from + 1..values.len()).map(move |to| (from, to)));
    let rises = |(from, to): (usize, usize)| match values[to].total_cmp(&values[from]) {
        _ if values[to] == values[from] => 0.0,
        order => f64::from(order as i8),
    };
    let score: f64 = pairs.map(rises).sum();
    let deviation = (n * (n - 1.0) * (2.0 * n + 5.0) / 18.0).sqrt();
    (2.0 * normal_below(-(score.abs() - 1.0).max(0.0) / deviation)).min(1.0)
}

fn median(values: &[f64]) -> f64 {
    summarize(values).map_or(0.0, |summary| summary.median)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::tests::Noise;
    use expect_test::{Expect, expect};

    /// Shown: warm-up, its pull, drift and step in percent, and the judgement.
    fn check(values: &[f64], expected: &Expect) {
        let shown = match steadiness(values) {
            Err(error) => error.to_string(),
            Ok(None) => "too little".to_owned(),
            Ok(Some(s)) => {
                let judged = if s.is_steady() { "steady" } else { "not steady" };
                format!("{} {:.1} {:.1} {:.1} {judged}", s.warm_up, 100.0 * s.pull, 100.0 * s.drift, 100.0 * s.step)
            }
        };
        expected.assert_eq(&shown);
    }

    fn noisy(level: impl Fn(usize) -> f64, length: usize) -> Vec<f64> {
        let mut noise = Noise::seeded(5);
        (0..length).map(|at| level(at) * (1.0 + 0.01 * noise.normal())).collect()
    }

    #[test]
    fn level_drift_step_and_warm_up() {
        check(&[100.0; 10], &expect!["0 0.0 0.0 0.0 steady"]);
        check(&noisy(|_| 100.0, 60), &expect!["0 0.0 0.3 0.1 steady"]);
        // 5 % more at the end than at the beginning.
        check(&noisy(|at| 100.0 + 5.0 * at as f64 / 59.0, 60), &expect!["30 -1.3 2.0 -0.4 not steady"]);
        check(&noisy(|at| if at < 30 { 100.0 } else { 110.0 }, 60), &expect!["30 -4.7 -0.4 -2.0 not steady"]);
        // Ten seconds of 3 % noise lie level or not; hardly one window in a hundred is called so.
        let mut noise = Noise::seeded(11);
        let mut window = || (0..10).map(|_| 100.0 * (1.0 + 0.03 * noise.normal())).collect::<Vec<_>>();
        let called = (0..1000).filter(|_| !steadiness(&window()).unwrap().unwrap().is_steady()).count();
        assert!(called <= 20, "{called} of 1000");
        // The rest is steady, but ten cold seconds pull the mean down by 8 %.
        check(&noisy(|at| if at < 10 { 50.0 } else { 100.0 }, 60), &expect!["10 -8.4 -0.3 0.0 not steady"]);
        // Breakdowns of single seconds are no drift.
        check(&noisy(|at| if at % 17 == 16 { 10.0 } else { 100.0 }, 60), &expect!["0 0.0 0.2 0.1 steady"]);
    }

    #[test]
    fn what_cannot_be_judged() {
        check(&[100.0; 9], &expect!["too little"]);
        check(&[0.0; 20], &expect!["too little"]);
        check(&[1.0, f64::NAN], &expect!["value 1 of the window is NaN, not a finite number; leave that trial out"]);
    }
}
