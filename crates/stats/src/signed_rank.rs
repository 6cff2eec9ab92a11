//! Wilcoxon's signed-rank test, exact: the cross-check that needs no normal distribution.
//!
//! It only ever warns. With fewer than 6 blocks it cannot reach 5 %, so it never decides.

/// Exact two-sided p of Wilcoxon's signed-rank test that `differences` are symmetric around 0.
///
/// Differences of 0 are left out, equal sizes share their mean rank (the distribution is then that of these ranks, so it stays
/// exact). `None` when nothing is left or a difference is not a number.
#[must_use]
pub fn signed_rank_p(differences: &[f64]) -> Option<f64> {
    if differences.iter().any(|d| d.is_nan()) {
        return None;
    }
    let mut by_size: Vec<f64> = differences.iter().copied().filter(|d| *d != 0.0).collect();
    if by_size.is_empty() {
        return None;
    }
    by_size.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
    let ranks = doubled_ranks(&by_size);
    let positive: usize = by_size.iter().zip(&ranks).filter(|(d, _)| **d > 0.0).map(|(_, rank)| rank).sum();
    let chances = rank_sum_chances(&ranks);
    let at_most: f64 = chances[..=positive].iter().sum();
    let at_least: f64 = chances[positive..].iter().sum();
    Some((2.0 * at_most.min(at_least)).min(1.0))
}

/// The smallest p that `count` differences can give: all of one sign.
pub(crate) fn smallest_p(count: usize) -> f64 {
    2.0 * 0.5_f64.powi(i32::try_from(count).unwrap_or(i32::MAX))
}

/// Twice the rank of every value, so that the mean rank of ties is a whole number. `sorted` ascends in absolute value.
fn doubled_ranks(sorted: &[f64]) -> Vec<usize> {
    let mut ranks = Vec::with_capacity(sorted.len());
    for ties in sorted.chunk_by(|a, b| a.abs() == b.abs()) {
        let before = ranks.len();
        // Ranks before+1 ..= before+ties; their mean, doubled.
        ranks.extend(std::iter::repeat_n(2 * before + ties.len() + 1, ties.len()));
    }
    ranks
}

/// Probability of every sum of the ranks that are positive, when each sign is a fair coin.
fn rank_sum_chances(ranks: &[usize]) -> Vec<f64> {
    let mut chances = vec![0.0; ranks.iter().sum::<usize>() + 1];
    chances[0] = 1.0;
    for &rank in ranks {
        for sum in (0..chances.len()).rev() {
            let with = if sum >= rank { chances[sum - rank] } else { 0.0 };
            chances[sum] = 0.5 * (chances[sum] + with);
        }
    }
    chances
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(differences: &[f64], p: Option<f64>) {
        match (signed_rank_p(differences), p) {
            (Some(found), Some(p)) => assert!((found - p).abs() < 1e-12, "{differences:?}: {found} is not {p}"),
            (found, p) => assert_eq!(found, p, "{differences:?}"),
        }
    }

    #[test]
    fn published_values() {
        check(&[1.0, 2.0, 3.0, 4.0, 5.0], Some(0.0625));
        check(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], Some(0.03125));
        check(&[-1.0, 2.0, 3.0, 4.0, 5.0, 6.0], Some(0.0625));
        // Tables: n = 10, W = 8 is the largest with two-sided p below 5 %: 50 of 2^10 arrangements.
        check(&[-3.0, -5.0, 1.0, 2.0, 4.0, 6.0, 7.0, 8.0, 9.0, 10.0], Some(50.0 / 1024.0));
        assert_eq!(smallest_p(6), 0.03125);
    }

    #[test]
    fn ties_zeros_and_nothing() {
        // Two ties of mean rank 1.5: sums 0, 1.5, 1.5, 3, each sign pattern equally likely.
        check(&[1.0, 1.0], Some(0.5));
        check(&[1.0, -1.0], Some(1.0));
        check(&[0.0, 1.0, 0.0], Some(1.0));
        check(&[0.0, 0.0], None);
        check(&[], None);
        check(&[1.0, f64::NAN], None);
    }

    proptest! {
        #[test]
        fn turning_every_sign_changes_nothing(differences in prop::collection::vec(-3i8..=3, 1..12)) {
            let differences: Vec<f64> = differences.iter().map(|&d| f64::from(d)).collect();
            let turned: Vec<f64> = differences.iter().map(|d| -d).collect();
            let (p, q) = (signed_rank_p(&differences), signed_rank_p(&turned));
            prop_assert_eq!(p.is_some(), q.is_some());
            if let (Some(p), Some(q)) = (p, q) {
                prop_assert!((p - q).abs() < 1e-12 && p > 0.0 && p <= 1.0);
            }
        }
    }
}
