//! What cannot be judged: one sentence each. Few or noisy numbers are not errors; they are verdicts and warnings.

/// Why there is no result at all.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum StatsError {
    /// A number that is infinite or not a number.
    #[error("value {index} of {what} is {value}, not a finite number; leave that trial out")]
    NotFinite {
        /// Which of the inputs.
        what: &'static str,
        /// Position, from 0.
        index: usize,
        /// The number.
        value: f64,
    },
    /// Two samples that should be paired have different lengths.
    #[error("{baseline} baseline values cannot be paired with {other}; drop the blocks that lack one of the two")]
    Unpaired {
        /// Values of the baseline.
        baseline: usize,
        /// Values of the other cell.
        other: usize,
    },
    /// Nothing to judge.
    #[error("there are no values; at least one is needed, and two for an interval")]
    Empty,
    /// A confidence that is no confidence.
    #[error("confidence {0} does not lie between 0.5 and 1; 0.95 is usual")]
    Confidence(f64),
    /// A margin that is no margin.
    #[error("margin {0} is not a finite ratio minus 1 of at least 0; 0.02 is usual")]
    Margin(f64),
}

/// Fails on the first value that is not finite.
pub(crate) fn finite(what: &'static str, values: &[f64]) -> Result<(), StatsError> {
    match values.iter().position(|value| !value.is_finite()) {
        Some(index) => Err(StatsError::NotFinite { what, index, value: values[index] }),
        None => Ok(()),
    }
}
