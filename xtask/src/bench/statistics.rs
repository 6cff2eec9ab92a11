//! Medians, and how sure of them one can be. Numbers in, numbers out.

/// How much of the time an interval should hold the true median.
const CONFIDENCE: f64 = 0.95;

/// A median with its interval, when there are enough values for one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Estimate {
    pub(super) median: f64,
    pub(super) interval: Option<Interval>,
}

/// Two of the values themselves, between which the true median lies at least 95 % of the time, whatever the distribution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Interval {
    pub(super) low: f64,
    pub(super) high: f64,
    /// Which values: the `rank`-th smallest and the `rank`-th largest.
    pub(super) rank: usize,
    /// The confidence it really has, at least 0.95.
    pub(super) confidence: f64,
}

/// The median of `values`; none of none.
pub(super) fn median(values: &[f64]) -> Option<f64> {
    let sorted = sorted(values);
    let upper = *sorted.get(sorted.len() / 2)?;
    let lower = sorted[(sorted.len() - 1) / 2];
    Some(f64::midpoint(lower, upper))
}

/// The median and the narrowest symmetric interval of order statistics; none of no values.
pub(super) fn estimate(values: &[f64]) -> Option<Estimate> {
    let sorted = sorted(values);
    let interval = rank(sorted.len()).map(|(rank, confidence)| Interval {
        low: sorted[rank - 1],
        high: sorted[sorted.len() - rank],
        rank,
        confidence,
    });
    Some(Estimate { median: median(values)?, interval })
}

/// The ratios of those pairs in which both numbers are there.
pub(super) fn ratios(numerators: &[Option<f64>], denominators: &[Option<f64>]) -> Vec<f64> {
    numerators.iter().zip(denominators).filter_map(|pair| Some((*pair.0)? / (*pair.1)?)).collect()
}

/// The largest k for which the k-th smallest and the k-th largest of `n` values enclose the median with 95 % confidence, and that
/// confidence: 1 - 2 P(at most k-1 of n fair coins show heads). Below 6 values there is none.
pub(super) fn rank(n: usize) -> Option<(usize, f64)> {
    let mut probability = 0.5_f64.powi(i32::try_from(n).ok()?);
    let mut outside = 0.0;
    let mut best = None;
    for k in 1..=n / 2 {
        outside += probability;
        let confidence = 1.0 - 2.0 * outside;
        if confidence < CONFIDENCE {
            break;
        }
        best = Some((k, confidence));
        probability *= (n - k + 1) as f64 / k as f64;
    }
    best
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(n: usize, expected: Option<(usize, f64)>) {
        let found = rank(n).map(|(k, confidence)| (k, (confidence * 1e4).round() / 1e4));
        assert_eq!(found, expected, "{n} values");
    }

    /// From the tables of the sign test.
    #[test]
    fn ranks() {
        check(0, None);
        check(1, None);
        check(5, None);
        check(6, Some((1, 0.9688)));
        check(7, Some((1, 0.9844)));
        check(8, Some((1, 0.9922)));
        check(9, Some((2, 0.9609)));
        check(12, Some((3, 0.9614)));
        check(20, Some((6, 0.9586)));
        check(100, Some((40, 0.9648)));
    }

    fn check_estimate(values: &[f64], expected: Option<(f64, Option<(f64, f64)>)>) {
        let found = estimate(values).map(|it| (it.median, it.interval.map(|interval| (interval.low, interval.high))));
        assert_eq!(found, expected, "{values:?}");
    }

    #[test]
    fn estimates() {
        check_estimate(&[], None);
        check_estimate(&[2.0], Some((2.0, None)));
        check_estimate(&[4.0, 1.0], Some((2.5, None)));
        check_estimate(&[3.0, 1.0, 2.0], Some((2.0, None)));
        check_estimate(&[7.0, 1.0, 6.0, 2.0, 5.0, 3.0, 4.0], Some((4.0, Some((1.0, 7.0)))));
        check_estimate(&[9.0, 8.0, 7.0, 1.0, 6.0, 2.0, 5.0, 3.0, 4.0], Some((5.0, Some((2.0, 8.0)))));
    }

    #[test]
    fn a_repetition_without_one_of_both_has_no_ratio() {
        assert_eq!(ratios(&[Some(2.0), None, Some(9.0)], &[Some(1.0), Some(1.0), None]), [2.0]);
    }
}
