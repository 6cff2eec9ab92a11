//! Two groups of runs that nobody paired or shuffled: the ratio of their numbers and its interval by Welch, and no verdict.
//!
//! Runs one after the other, A A B B, carry the drift of their machine in their difference; with mild drift and no true
//! difference this interval excluded 1 in half of all simulations of ten runs each. So it says how far the groups are apart
//! compared with their own spread, and nothing about why.

use crate::comparison::Interval;
use crate::error::{StatsError, finite};
use crate::quantile::{t_quantile_between, t_two_sided};
use crate::summary::{mean, standard_deviation};
use serde::Serialize;

/// Spreads below this are rounding, not measurement.
const ROUNDING: f64 = 1e-12;

/// Other over baseline, from runs in no particular order.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Unpaired {
    /// Estimated ratio: of the geometric means.
    pub ratio: f64,
    /// What the runs say about it beyond that; `None` when a group has a single run or no run differs from another.
    pub spread: Option<Spread>,
    /// Runs of the baseline.
    pub baseline: usize,
    /// Runs of the other group.
    pub other: usize,
}

/// How the ratio stands against the spread of the runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// Where the true ratio lies with the confidence asked for, were the runs drawn at random.
    pub interval: Interval,
    /// How often runs of equal groups would be as far apart.
    pub p: f64,
    /// Welch's degrees of freedom.
    pub freedom: f64,
}

/// Compares natural logarithms of one number per run. Which group varies more does not matter.
///
/// # Errors
/// When a value is not finite, a group is empty, or the confidence is none.
pub fn unpaired(baseline: &[f64], other: &[f64], confidence: f64) -> Result<Unpaired, StatsError> {
    finite("the baseline", baseline)?;
    finite("the other group", other)?;
    if !(confidence > 0.5 && confidence < 1.0) {
        return Err(StatsError::Confidence(confidence));
    }
    if baseline.is_empty() || other.is_empty() {
        return Err(StatsError::Empty);
    }
    let difference = mean(other) - mean(baseline);
    Ok(Unpaired {
        ratio: difference.exp(),
        spread: spread(difference, baseline, other, confidence),
        baseline: baseline.len(),
        other: other.len(),
    })
}

fn spread(difference: f64, baseline: &[f64], other: &[f64], confidence: f64) -> Option<Spread> {
    let variance_of_mean = |values: &[f64]| Some(standard_deviation(values)?.powi(2) / values.len() as f64);
    let (a, b) = (variance_of_mean(baseline)?, variance_of_mean(other)?);
    let error = (a + b).sqrt();
    if error < ROUNDING {
        return None;
    }
    let freedom = (a + b).powi(2) / (a * a / (baseline.len() - 1) as f64 + b * b / (other.len() - 1) as f64);
    let half_width = t_quantile_between(f64::midpoint(1.0, confidence), freedom) * error;
    Some(Spread {
        interval: Interval { low: (difference - half_width).exp(), high: (difference + half_width).exp() },
        p: t_two_sided(difference / error, freedom),
        freedom,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn check(baseline: &[f64], other: &[f64], expected: &Expect) {
        let ln = |values: &[f64]| values.iter().map(|value| value.ln()).collect::<Vec<f64>>();
        let shown = match unpaired(&ln(baseline), &ln(other), 0.95) {
            Err(error) => error.to_string(),
            Ok(Unpaired { ratio, spread: None, baseline, other }) => format!("{ratio:.5} of {other} to {baseline}"),
            Ok(Unpaired { ratio, spread: Some(s), .. }) => {
                format!("{ratio:.5} [{:.4}, {:.4}] p {:.4} df {:.3}", s.interval.low, s.interval.high, s.p, s.freedom)
            }
        };
        expected.assert_eq(&shown);
    }

    /// Two runs of each of three settings of an article, and what was computed of them elsewhere: 1.05913 [0.9927, 1.1300]
    /// p 0.0608 df 1.709; 1.06114 [1.0172, 1.1070] p 0.0289 df 1.677; 0.99811 [0.9170, 1.0864] p 0.891.
    #[test]
    fn the_fifth_document() {
        let (first, second, third) = ([835.20, 817.51], [821.20, 828.31], [881.23, 869.15]);
        check(&first, &third, &expect!["1.05913 [0.9927, 1.1300] p 0.0608 df 1.709"]);
        check(&second, &third, &expect!["1.06114 [1.0172, 1.1070] p 0.0289 df 1.677"]);
        check(&first, &second, &expect!["0.99811 [0.9170, 1.0864] p 0.8914 df 1.316"]);
    }

    #[test]
    fn groups_of_other_sizes() {
        // By hand: means 2 and 5 of logarithms, variances of the means 1/3 and 1, df = (4/3)^2 / (1/18 + 1) = 1.684.
        let e = |power: f64| power.exp();
        check(&[e(1.0), e(2.0), e(3.0)], &[e(4.0), e(6.0)], &expect!["20.08554 [0.0509, 7918.8197] p 0.1444 df 1.684"]);
    }

    #[test]
    fn what_supports_no_interval() {
        check(&[357.82], &[347.53], &expect!["0.97124 of 1 to 1"]);
        check(&[357.82], &[347.53, 350.0], &expect!["0.97469 of 2 to 1"]);
        check(&[2.0, 2.0], &[3.0, 3.0], &expect!["1.50000 of 2 to 2"]);
        check(&[], &[3.0], &expect!["there are no values; at least one is needed, and two for an interval"]);
        check(&[0.0], &[3.0], &expect!["value 0 of the baseline is -inf, not a finite number; leave that trial out"]);
        assert_eq!(unpaired(&[1.0], &[1.0], 1.0), Err(StatsError::Confidence(1.0)));
    }
}
