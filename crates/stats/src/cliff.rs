//! A cliff: a fall of throughput from one concurrency to the next that no law of scalability describes, as when a server begins to swap.

use crate::usl::{Point, Usl, fit};

/// Neighbours that lose this share more than they should lie on two sides of a cliff.
pub const CLIFF: f64 = 0.4;

/// The first pair of neighbouring concurrencies between which throughput falls by more than 40 %, and to less than 60 % of where the law
/// that fits the points before them goes: past its peak the law itself may halve throughput when concurrency doubles. Fewer than 4
/// points have no law, and the fall alone counts. `points` ascend, one for each concurrency.
#[must_use]
pub fn cliff(points: &[Point]) -> Option<(Point, Point)> {
    sure_cliff(points, |_, _| true)
}

/// As [`cliff()`], of the falls that are `sure`, whatever noise may be in them.
pub fn sure_cliff(points: &[Point], sure: impl Fn(&Point, &Point) -> bool) -> Option<(Point, Point)> {
    let falls = |place: &usize| {
        let (before, after) = (points[place - 1], points[*place]);
        let left = after.throughput / before.throughput;
        let expected = |law: Usl| law.throughput(after.concurrency) / law.throughput(before.concurrency);
        left < 1.0 - CLIFF
            && sure(&before, &after)
            && left < (1.0 - CLIFF) * fit(&points[..*place]).map_or(1.0, expected).min(1.0)
    };
    (1..points.len()).find(falls).map(|place| (points[place - 1], points[place]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(points: &[(f64, f64)], expected: Option<(f64, f64)>) {
        let points: Vec<Point> =
            points.iter().map(|&(concurrency, throughput)| Point { concurrency, throughput }).collect();
        let found = cliff(&points).map(|(before, after)| (before.concurrency, after.concurrency));
        assert_eq!(found, expected, "{points:?}");
    }

    #[test]
    fn a_cliff_is_no_curve() {
        // The first document's server: one request more at once, and it swaps.
        let measured = [(1.0, 11.4), (4.0, 44.0), (8.0, 43.0), (10.0, 6.0), (20.0, 1.0)];
        check(&measured, Some((8.0, 10.0)));
        check(&measured[..3], None);
        check(&[(1.0, 10.0), (2.0, 5.0)], Some((1.0, 2.0)));
        check(&[], None);
    }

    #[test]
    fn a_curve_is_no_cliff_however_steep() {
        let law = Usl { lambda: 100.0, sigma: 0.05, kappa: 0.01 };
        let points: Vec<(f64, f64)> =
            [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0].map(|n| (n, law.throughput(n))).into();
        assert!(points[7].1 < 0.55 * points[6].1, "{points:?}");
        check(&points, None);
        // The same with the last one in the swap.
        let mut beyond = points.clone();
        beyond[7].1 /= 3.0;
        check(&beyond, Some((64.0, 128.0)));
    }
}
