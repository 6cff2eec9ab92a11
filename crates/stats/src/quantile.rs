//! Quantiles of Student's t and of the normal distribution.
//!
//! The distributions are statrs'; here they only get the two names and the argument checks that the rest of the crate needs.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// The value that Student's t with `freedom` degrees of freedom stays at or below with probability `p`.
///
/// # Panics
/// When `p` does not lie strictly between 0 and 1, or `freedom` is 0.
#[must_use]
pub fn t_quantile(p: f64, freedom: u32) -> f64 {
    assert!(p > 0.0 && p < 1.0, "probability {p}");
    t(f64::from(freedom)).inverse_cdf(p)
}

/// The same for degrees of freedom that are not whole.
pub(crate) fn t_quantile_between(p: f64, freedom: f64) -> f64 {
    t(freedom).inverse_cdf(p)
}

/// How often Student's t is at least as far from 0 as `value`, on either side.
pub(crate) fn t_two_sided(value: f64, freedom: f64) -> f64 {
    2.0 * t(freedom).sf(value.abs())
}

fn t(freedom: f64) -> StudentsT {
    StudentsT::new(0.0, 1.0, freedom).expect("more than no degree of freedom")
}

/// The value that a standard normal variable stays at or below with probability `p`.
///
/// # Panics
/// When `p` does not lie strictly between 0 and 1.
#[must_use]
pub fn normal_quantile(p: f64) -> f64 {
    assert!(p > 0.0 && p < 1.0, "probability {p}");
    Normal::standard().inverse_cdf(p)
}

/// How much of the standard normal distribution lies below a value.
pub(crate) fn normal_below(value: f64) -> f64 {
    Normal::standard().cdf(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(found: f64, table: f64) {
        assert!((found - table).abs() < 5.1e-4 * table.max(1.0), "{found} is not {table}");
    }

    #[test]
    fn t_agrees_with_printed_tables() {
        // Two-sided 95 %, 99 % and 90 %, as every textbook prints them.
        for (freedom, t95, t99, t90) in [
            (1, 12.706, 63.657, 6.314),
            (2, 4.303, 9.925, 2.920),
            (3, 3.182, 5.841, 2.353),
            (4, 2.776, 4.604, 2.132),
            (5, 2.571, 4.032, 2.015),
            (9, 2.262, 3.250, 1.833),
            (19, 2.093, 2.861, 1.729),
            (30, 2.042, 2.750, 1.697),
            (120, 1.980, 2.617, 1.658),
        ] {
            check(t_quantile(0.975, freedom), t95);
            check(t_quantile(0.995, freedom), t99);
            check(t_quantile(0.95, freedom), t90);
            check(-t_quantile(0.05, freedom), t90);
        }
    }

    #[test]
    fn normal_agrees_with_printed_tables() {
        check(normal_quantile(0.975), 1.960);
        check(normal_quantile(0.95), 1.645);
        check(normal_quantile(0.9), 1.282);
        check(normal_quantile(0.8), 0.842);
    }
}
