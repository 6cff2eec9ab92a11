//! Two ways to reckon: as ab does it, mistakes included, and rightly. Everything in which they differ stands here.

/// Which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arithmetic {
    /// As ab does it: the median of an odd number is the mean of the middle value and the next greater one, that of an even number
    /// the upper of the two in the middle; a percentile is the next greater value (99 % of 100 is the longest); `-e` looks for
    /// percentiles behind the last value; doubts compare rounded numbers with one that is not; HTML subtracts where it could
    /// measure.
    Strict,
    /// The median is the middle value or the mean of the two middle ones; a percentile is the smallest value that so many percent
    /// do not exceed (nearest rank); every number is rounded once, when it is shown.
    Right,
}

impl Arithmetic {
    /// The two ranks, from 0, whose values make the median of `n` values.
    pub(super) fn median(self, n: u64) -> [u64; 2] {
        let (odd, middle) = (n % 2 == 1, n / 2);
        match self {
            Arithmetic::Strict if n > 1 && odd => [middle, middle + 1],
            Arithmetic::Right if !odd => [middle - 1, middle],
            Arithmetic::Strict | Arithmetic::Right => [middle, middle],
        }
    }

    /// The rank, from 0, of a percentile of the table.
    pub(super) fn percentile(self, percent: u64, n: u64) -> u64 {
        match self {
            Arithmetic::Strict if percent < 100 => n * percent / 100,
            Arithmetic::Strict => n - 1,
            Arithmetic::Right => (n * percent).div_ceil(100).max(1) - 1,
        }
    }

    /// The rank, from 0, of a row of the CSV file; `None` is behind the last value, where ab reads whatever lies there.
    pub(super) fn csv(self, percent: u64, n: u64) -> Option<u64> {
        let rank = match (self, percent) {
            (Arithmetic::Right, _) => self.percentile(percent, n),
            (Arithmetic::Strict, 0) => 0,
            (Arithmetic::Strict, 100) => n - 1,
            (Arithmetic::Strict, _) => (0.5 + n as f64 * percent as f64 / 100.0) as u64,
        };
        (rank < n).then_some(rank)
    }

    /// The median in milliseconds, from its two values.
    pub(super) fn median_ms(self, [a, b]: [u32; 2]) -> u64 {
        let sum = u64::from(a) + u64::from(b);
        match self {
            Arithmetic::Strict => round_ms(sum / 2),
            Arithmetic::Right => (sum + 1000) / 2000,
        }
    }

    /// The mean in milliseconds.
    pub(super) fn mean_ms(self, sum: u64, n: u64) -> u64 {
        match self {
            Arithmetic::Strict => round_ms(sum / n),
            Arithmetic::Right => (sum + 500 * n) / (1000 * n),
        }
    }

    /// The point from which the standard deviation measures.
    pub(super) fn centre_us(self, sum: u64, n: u64) -> f64 {
        match self {
            Arithmetic::Strict => (sum / n) as f64,
            Arithmetic::Right => sum as f64 / n as f64,
        }
    }
}

/// Microseconds as milliseconds, halves upwards.
pub(super) fn round_ms(us: u64) -> u64 {
    (us + 500) / 1000
}

#[cfg(test)]
mod tests {
    use super::Arithmetic::{Right, Strict};
    use super::*;

    #[test]
    fn medians() {
        let check = |arithmetic: Arithmetic, sorted: &[u32], expected: u64| {
            let ranks = arithmetic.median(sorted.len() as u64);
            let ms: Vec<u32> = sorted.iter().map(|ms| ms * 1000).collect();
            assert_eq!(
                arithmetic.median_ms(ranks.map(|rank| ms[rank as usize])),
                expected,
                "{arithmetic:?} {sorted:?}"
            );
        };
        // What ab printed for three requests of 0, 0 and 16 ms: median 8, and 0 as the 50 % line of the same report.
        check(Strict, &[0, 0, 16], 8);
        check(Right, &[0, 0, 16], 0);
        check(Strict, &[2, 4], 4);
        check(Right, &[2, 4], 3);
        check(Strict, &[7], 7);
        check(Right, &[7], 7);
        check(Strict, &[1, 2, 3, 4, 10], 4);
        check(Right, &[1, 2, 3, 4, 10], 3);
    }

    #[test]
    fn percentiles() {
        let check = |arithmetic: Arithmetic, percent: u64, n: u64, expected: u64| {
            assert_eq!(arithmetic.percentile(percent, n) + 1, expected, "{arithmetic:?} {percent} % of {n}");
        };
        // The 99th of a hundred values is not the longest.
        check(Strict, 99, 100, 100);
        check(Right, 99, 100, 99);
        check(Strict, 50, 100, 51);
        check(Right, 50, 100, 50);
        check(Strict, 100, 100, 100);
        check(Right, 100, 100, 100);
        // Of few values the highest percentiles are the longest one in any case.
        check(Strict, 99, 10, 10);
        check(Right, 99, 10, 10);
        check(Right, 90, 10, 9);
        check(Right, 66, 3, 2);
        check(Right, 50, 1, 1);
    }

    #[test]
    fn rows_of_the_csv_file() {
        let check = |arithmetic: Arithmetic, percent: u64, n: u64, expected: Option<u64>| {
            assert_eq!(arithmetic.csv(percent, n), expected, "{arithmetic:?} {percent} % of {n}");
        };
        check(Strict, 0, 10, Some(0));
        check(Strict, 94, 10, Some(9));
        for percent in 95..100 {
            // Behind the tenth value; the same row is the longest request when reckoned rightly.
            check(Strict, percent, 10, None);
            check(Right, percent, 10, Some(9));
        }
        check(Strict, 100, 10, Some(9));
        check(Strict, 99, 100, Some(99));
        check(Right, 99, 100, Some(98));
        check(Right, 0, 10, Some(0));
        check(Right, 1, 10, Some(0));
        check(Right, 11, 10, Some(1));
    }

    #[test]
    fn means() {
        let check = |arithmetic: Arithmetic, sum: u64, n: u64, expected: u64| {
            assert_eq!(arithmetic.mean_ms(sum, n), expected, "{arithmetic:?} {sum}/{n}");
        };
        // 499.67 us is cut to 499 and then rounded, or rounded once; the same, except close to a half.
        check(Strict, 1499, 3, 0);
        check(Right, 1499, 3, 0);
        check(Strict, 1500, 3, 1);
        check(Right, 1500, 3, 1);
        check(Right, 2_999_999, 2, 1500);
    }
}
