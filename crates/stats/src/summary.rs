//! One sample described: where it lies and how far it spreads. No judgement.

use crate::StatsError;
use crate::error::finite;
use serde::Serialize;

/// Where the values of a sample lie and how far they spread.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Summary {
    /// How many values.
    pub count: usize,
    /// Arithmetic mean.
    pub mean: f64,
    /// Middle value; the mean of the two middle ones for an even count.
    pub median: f64,
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
    /// Standard deviation with n - 1; `None` for a single value.
    pub sd: Option<f64>,
    /// Coefficient of variation, sd / |mean|; `None` for a single value or a mean of 0.
    pub cv: Option<f64>,
}

/// Describes `values`.
///
/// # Errors
/// When there are none or one is not finite.
pub fn summarize(values: &[f64]) -> Result<Summary, StatsError> {
    finite("the sample", values)?;
    if values.is_empty() {
        return Err(StatsError::Empty);
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len();
    let median = f64::midpoint(sorted[(count - 1) / 2], sorted[count / 2]);
    let mean = mean(values);
    let sd = standard_deviation(values);
    let cv = sd.filter(|_| mean != 0.0).map(|sd| sd / mean.abs());
    Ok(Summary { count, mean, median, min: sorted[0], max: sorted[count - 1], sd, cv })
}

/// Arithmetic mean; `values` is not empty.
pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Standard deviation with n - 1; `None` with fewer than two values.
pub(crate) fn standard_deviation(values: &[f64]) -> Option<f64> {
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (values.len() > 1).then(|| (squares / (values.len() - 1) as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn check(values: &[f64], expected: &Expect) {
        let shown = match summarize(values) {
            Ok(s) => format!(
                "n {} mean {:.3} median {:.3} {:.3}..{:.3} sd {} cv {}",
                s.count,
                s.mean,
                s.median,
                s.min,
                s.max,
                s.sd.map_or("-".into(), |sd| format!("{sd:.4}")),
                s.cv.map_or("-".into(), |cv| format!("{:.3} %", 100.0 * cv)),
            ),
            Err(error) => error.to_string(),
        };
        expected.assert_eq(&shown);
    }

    #[test]
    fn the_fifth_document() {
        // Requests per second of its three settings, two runs each; the CVs 1.514, 0.610 and 0.976 % are published.
        check(&[835.20, 817.51], &expect!["n 2 mean 826.355 median 826.355 817.510..835.200 sd 12.5087 cv 1.514 %"]);
        check(&[821.20, 828.31], &expect!["n 2 mean 824.755 median 824.755 821.200..828.310 sd 5.0275 cv 0.610 %"]);
        check(&[881.23, 869.15], &expect!["n 2 mean 875.190 median 875.190 869.150..881.230 sd 8.5418 cv 0.976 %"]);
    }

    #[test]
    fn few_and_strange_values() {
        check(&[3.0], &expect!["n 1 mean 3.000 median 3.000 3.000..3.000 sd - cv -"]);
        check(&[3.0, -1.0, 2.0], &expect!["n 3 mean 1.333 median 2.000 -1.000..3.000 sd 2.0817 cv 156.125 %"]);
        check(&[1.0, -1.0], &expect!["n 2 mean 0.000 median 0.000 -1.000..1.000 sd 1.4142 cv -"]);
        check(&[], &expect!["there are no values; at least one is needed, and two for an interval"]);
        check(&[1.0, f64::NAN], &expect!["value 1 of the sample is NaN, not a finite number; leave that trial out"]);
    }
}
