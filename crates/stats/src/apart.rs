//! Two runs compared that were made one after the other: Welch's interval, widened by what machines drift meanwhile.
//!
//! Without interleaving the drift of the machine is in the difference. Simulated with a random walk of 1 % per trial and with a trend of
//! 0.2 % per trial, ten trials of each of two equal cells, Welch's interval alone called half and three quarters of the pairs
//! different (`docs/statistics/simulation.md`). So both are allowed for, over the D trials from the middle of one run to the middle of the
//! other as if one had followed the other at once: the walk puts the variance 2 D w^2 / 3 into the difference of the two means, the trend
//! moves it by D s.
//!
//! ```text
//! half width = sqrt((t se)^2 + (z w)^2 2 D / 3) + D s
//! ```
//!
//! With this the same simulations call at most 1 % of equal cells different. Drift over a longer time between the runs is not in it.

use crate::comparison::{Comparison, Interval, Verdict};
use crate::criteria::{Better, Criteria};
use crate::error::StatsError;
use crate::quantile::{normal_quantile, t_quantile_between};
use crate::unpaired::unpaired;
use serde::Serialize;

/// The random walk that is allowed for at least, per trial, on the scale of logarithms.
pub const WALK: f64 = 0.01;
/// The trend that is allowed for, per trial.
pub const TREND: f64 = 0.002;

/// How much a machine may have drifted between two runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Drift {
    /// Standard deviation of the step from trial to trial.
    pub walk: f64,
    /// Steady change from trial to trial.
    pub trend: f64,
    /// Trials from the middle of one run to the middle of the other.
    pub trials: f64,
}

impl Drift {
    /// What is allowed for between two runs of so many trials; `walk` is what the runs themselves showed, 0 if they did not.
    #[must_use]
    pub fn between(first: usize, second: usize, walk: f64) -> Drift {
        let trials = (first + second) as f64 / 2.0;
        Drift { walk: walk.max(WALK), trend: TREND, trials }
    }

    /// How far it may move the difference of logarithms either way, at this confidence, by itself.
    #[must_use]
    pub fn allowance(&self, confidence: f64) -> f64 {
        self.half_width(0.0, f64::midpoint(1.0, confidence))
    }

    /// With so much half a width from the trials themselves.
    fn half_width(&self, own: f64, quantile: f64) -> f64 {
        let walk = normal_quantile(quantile) * self.walk * (2.0 * self.trials / 3.0).sqrt();
        own.hypot(walk) + self.trend * self.trials
    }
}

/// Compares natural logarithms of one number per trial of two runs; one of `family` such comparisons, whose intervals hold together.
///
/// # Errors
/// When a value is not finite, or a side is empty.
pub fn compare_apart(
    first: &[f64],
    second: &[f64],
    drift: &Drift,
    family: usize,
    criteria: &Criteria,
) -> Result<Comparison, StatsError> {
    let alpha = criteria.alpha() / family.max(1) as f64;
    let welch = unpaired(first, second, 1.0 - alpha)?;
    let center = welch.ratio.ln();
    let blocks = first.len().min(second.len());
    let undecided = Verdict::Inconclusive { more_blocks: None };
    let spread = welch.spread.filter(|_| blocks > 1);
    let Some(spread) = spread else {
        return Ok(Comparison {
            ratio: welch.ratio,
            interval: None,
            blocks,
            verdict: undecided,
            material: false,
            warnings: vec![],
        });
    };
    let error = (spread.interval.high.ln() - center) / t_quantile_between(1.0 - alpha / 2.0, spread.freedom);
    let half = |tail: f64| drift.half_width(t_quantile_between(1.0 - tail, spread.freedom) * error, 1.0 - tail);
    let (low, high) = (center - half(alpha / 2.0), center + half(alpha / 2.0));
    let verdict = match () {
        () if center.abs() + half(alpha) < criteria.ln_margin() => Verdict::Equivalent,
        () if low > 0.0 || high < 0.0 => {
            if (center > 0.0) == (criteria.better() == Better::Higher) {
                Verdict::Better
            } else {
                Verdict::Worse
            }
        }
        () => undecided,
    };
    Ok(Comparison {
        ratio: welch.ratio,
        interval: Some(Interval { low: low.exp(), high: high.exp() }),
        blocks,
        verdict,
        material: low > criteria.ln_margin() || high < -criteria.ln_margin(),
        warnings: vec![],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::tests::{Noise, criteria};

    /// Of plans of two equal cells in each of two runs, one after the other, the share in which the cells differ from run to run.
    fn called_different(walk: f64, trend: f64, blocks: usize, plans: usize) -> f64 {
        let mut noise = Noise::seeded(23);
        let criteria = criteria(Better::Higher, 0.02);
        let mut called = 0;
        for _ in 0..plans {
            let mut at = 0.0;
            let mut run = || -> Vec<f64> {
                let trials = (0..2 * blocks).map(|_| {
                    at += trend + walk * noise.normal();
                    at + 0.015 * noise.normal()
                });
                let trials: Vec<f64> = trials.collect();
                // Each block has both cells; one of them is compared.
                trials.chunks(2).map(|block| block[0]).collect()
            };
            let (first, second) = (run(), run());
            let drift = Drift::between(2 * blocks, 2 * blocks, 0.0);
            let compared = compare_apart(&first, &second, &drift, 1, &criteria).unwrap();
            called += usize::from(matches!(compared.verdict, Verdict::Better | Verdict::Worse));
        }
        called as f64 / plans as f64
    }

    #[test]
    fn drift_between_runs_is_no_difference() {
        for (walk, trend) in [(0.0, 0.0), (WALK, 0.0), (0.0, -TREND)] {
            for blocks in [2, 6, 24] {
                let called = called_different(walk, trend, blocks, 1000);
                assert!(called <= 0.055, "{walk} {trend} {blocks}: {called}");
            }
        }
    }

    #[test]
    fn large_differences_are_still_shown() {
        let drift = Drift::between(12, 12, 0.0);
        let first = [0.0, 0.01, -0.01, 0.005, -0.005, 0.0];
        let compared = |by: f64| {
            let second = first.map(|value| value + by);
            compare_apart(&first, &second, &drift, 1, &criteria(Better::Higher, 0.02)).unwrap()
        };
        assert_eq!(compared(0.2).verdict, Verdict::Better);
        assert_eq!(compared(-0.2).verdict, Verdict::Worse);
        // No two runs are alike within 2 %: the machine may have drifted by more.
        assert_eq!(compared(0.0).verdict, Verdict::Inconclusive { more_blocks: None });
        assert!((drift.allowance(0.95) - 0.0794).abs() < 1e-3, "{}", drift.allowance(0.95));
        let once = compare_apart(&[0.0], &[1.0], &drift, 1, &criteria(Better::Higher, 0.02)).unwrap();
        assert_eq!((once.interval, once.verdict), (None, Verdict::Inconclusive { more_blocks: None }));
    }
}
