//! By what a comparison is judged: direction, confidence, margin. Checked once, here.

use crate::StatsError;

/// Which direction of the compared number is an improvement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// Throughput and the like.
    Higher,
    /// Latency and the like.
    Lower,
}

/// Direction, confidence and margin, each known to be usable.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Criteria {
    better: Better,
    confidence: f64,
    margin: f64,
    looks: usize,
    has_floor: bool,
}

impl Criteria {
    /// `confidence` is that of the interval, such as 0.95; `margin` is the smallest difference of interest as a ratio minus 1,
    /// such as 0.02.
    ///
    /// # Errors
    /// When the confidence is not above 0.5 and below 1 (equivalence needs an interval of 1 - 2 alpha), or the margin is
    /// negative or not finite.
    pub fn new(better: Better, confidence: f64, margin: f64) -> Result<Criteria, StatsError> {
        if !(confidence > 0.5 && confidence < 1.0) {
            return Err(StatsError::Confidence(confidence));
        }
        if !(margin.is_finite() && margin >= 0.0) {
            return Err(StatsError::Margin(margin));
        }
        Ok(Criteria { better, confidence, margin, looks: 1, has_floor: false })
    }

    /// The direction of an improvement.
    #[must_use]
    pub fn better(&self) -> Better {
        self.better
    }

    /// The same for data that are looked at up to so many times, each time to decide whether to go on: each look has its share of
    /// what may go wrong, alpha / looks, because whoever looks at every block finds a difference in a quarter of all pairs that have
    /// none.
    #[must_use]
    pub fn looked_at(self, looks: usize) -> Criteria {
        Criteria { looks: looks.max(1), ..self }
    }

    /// The same where a difference must also be larger than what an A/A cell allows for ([`crate::against_noise`]): that takes more blocks,
    /// and what is said of them allows for it.
    #[must_use]
    pub fn beside_an_again_cell(self) -> Criteria {
        Criteria { has_floor: true, ..self }
    }

    /// Whether differences are held against an A/A cell.
    #[must_use]
    pub fn has_floor(&self) -> bool {
        self.has_floor
    }

    /// The same with another margin.
    ///
    /// # Errors
    /// When it is negative or not finite.
    pub fn with_margin(self, margin: f64) -> Result<Criteria, StatsError> {
        Ok(Criteria {
            looks: self.looks,
            has_floor: self.has_floor,
            ..Criteria::new(self.better, self.confidence, margin)?
        })
    }

    /// The share of wrong intervals that is accepted at one look: 1 minus the confidence, over the looks.
    #[must_use]
    pub fn alpha(&self) -> f64 {
        (1.0 - self.confidence) / self.looks as f64
    }

    /// The margin on the scale of logarithms, ln(1 + margin).
    #[must_use]
    pub fn ln_margin(&self) -> f64 {
        self.margin.ln_1p()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(confidence: f64, margin: f64, usable: bool) {
        assert_eq!(Criteria::new(Better::Higher, confidence, margin).is_ok(), usable, "{confidence} {margin}");
    }

    #[test]
    fn unusable_criteria_have_no_value() {
        check(0.95, 0.02, true);
        check(0.95, 0.0, true);
        check(0.5, 0.02, false);
        check(1.0, 0.02, false);
        check(f64::NAN, 0.02, false);
        check(0.95, -0.01, false);
        check(0.95, f64::INFINITY, false);
        let message = Criteria::new(Better::Higher, 95.0, 0.02).unwrap_err().to_string();
        assert_eq!(message, "confidence 95 does not lie between 0.5 and 1; 0.95 is usual");
    }
}
