//! Two cells compared: the ratio of their numbers, its interval, a verdict, and what is doubtful about it.
//!
//! Per block the difference of the two logarithms, d = ln(other) - ln(baseline); the ratio is exp(mean d), its interval
//! exp(mean d -+ t * s / sqrt(n)) with Student's t of n - 1 degrees of freedom. Randomised blocks with this interval keep their
//! nominal error under drift; the interval is exact for normal d and was found at 95 to 97 % for heavy tails.

use crate::criteria::{Better, Criteria};
use crate::error::{StatsError, finite};
use crate::quantile::{normal_quantile, t_quantile};
use crate::signed_rank::{signed_rank_p, smallest_p};
use crate::summary::{mean, standard_deviation};
use serde::Serialize;

/// Below so many blocks neither the interval's assumption can be doubted nor the signed-rank test can speak.
const ENOUGH_BLOCKS: usize = 6;

/// No plan for fewer blocks than this: a standard deviation from less is a guess.
const PILOT_BLOCKS: f64 = 4.0;

/// Chance of reaching a conclusion that the advised number of blocks shall give.
const POWER: f64 = 0.8;

/// Spreads of log-ratios below this are rounding, not measurement.
const ROUNDING: f64 = 1e-12;

/// Natural logarithms of one number per trial, paired: index j of both comes from block j.
#[derive(Debug, Clone, Copy)]
pub struct Pairs<'a> {
    /// The cell the other is compared with.
    pub baseline: &'a [f64],
    /// The cell in question.
    pub other: &'a [f64],
}

/// Other over baseline, and what to think of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// Estimated ratio, other over baseline: the geometric mean over the blocks.
    pub ratio: f64,
    /// Where the true ratio lies with the confidence asked for; `None` with a single block.
    pub interval: Option<Interval>,
    /// Blocks compared.
    pub blocks: usize,
    /// The judgement.
    pub verdict: Verdict,
    /// What is doubtful about it, in the order found.
    pub warnings: Vec<Warning>,
}

/// Two ratios, the lower first.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// What a comparison says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The interval excludes 1, on the side of an improvement.
    Better,
    /// The interval excludes 1, on the other side.
    Worse,
    /// Shown to differ by less than the margin: the interval of confidence 1 - 2 alpha lies inside it (two one-sided tests).
    Equivalent,
    /// Neither a difference nor equivalence was shown.
    Inconclusive {
        /// How many more blocks would show one of the two with 80 % chance if the estimates hold; `None` when nothing can be
        /// told.
        more_blocks: Option<u32>,
    },
}

/// What is doubtful about a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Warning {
    /// So few blocks that the interval rests on the assumption of normal noise alone.
    FewBlocks {
        /// How many there are.
        blocks: usize,
    },
    /// Every block gave the same ratio: the interval is a point, and no noise was seen that it could allow for.
    ZeroVariance,
    /// There is a difference, and it was shown to be smaller than the margin.
    RealButBelowMargin,
    /// The exact signed-rank test says otherwise than the t interval: one block may decide alone.
    RanksDisagree {
        /// Its two-sided p.
        p: f64,
    },
    /// The difference is no larger than what the A/A cell may differ by from itself; the verdict was withdrawn.
    WithinNoise {
        /// The noise as a ratio above 1.
        floor: f64,
    },
    /// There is a difference, but too few blocks have the A/A cell and the baseline to tell how large the noise of this run is.
    NoiseUnknown {
        /// How many have both: none or one.
        blocks: usize,
    },
    /// The A/A cell was called different from its own copy: something changes between trials that is not the setting.
    AgainDiffers {
        /// Ratio of the A/A cell to the baseline.
        ratio: f64,
    },
}

/// Compares two cells by paired blocks.
///
/// With n = 2 and 3 the t quantiles are 12.7 and 4.3: intervals are wide, and only large differences are conclusive.
///
/// # Errors
/// When a value is not finite, the two lengths differ, or there is no pair.
pub fn compare(pairs: Pairs<'_>, criteria: &Criteria) -> Result<Comparison, StatsError> {
    finite("the baseline", pairs.baseline)?;
    finite("the other cell", pairs.other)?;
    if pairs.baseline.len() != pairs.other.len() {
        return Err(StatsError::Unpaired { baseline: pairs.baseline.len(), other: pairs.other.len() });
    }
    if pairs.baseline.is_empty() {
        return Err(StatsError::Empty);
    }
    let differences: Vec<f64> = pairs.other.iter().zip(pairs.baseline).map(|(other, base)| other - base).collect();
    finite("the log-ratios", &differences)?;
    Ok(judge(&differences, criteria))
}

fn judge(differences: &[f64], criteria: &Criteria) -> Comparison {
    let blocks = differences.len();
    let center = mean(differences);
    let mut warnings = Vec::new();
    if blocks < ENOUGH_BLOCKS {
        warnings.push(Warning::FewBlocks { blocks });
    }
    let Some(sd) = standard_deviation(differences) else {
        let verdict = Verdict::Inconclusive { more_blocks: None };
        return Comparison { ratio: center.exp(), interval: None, blocks, verdict, warnings };
    };
    if sd < ROUNDING {
        warnings.push(Warning::ZeroVariance);
    }
    let half_width = |tail: f64| half_width(sd, blocks, tail);
    let wide = half_width(criteria.alpha() / 2.0);
    let different = center.abs() > wide;
    let equivalent = center.abs() + half_width(criteria.alpha()) < criteria.ln_margin();
    let verdict = match (different, equivalent) {
        (_, true) => Verdict::Equivalent,
        (true, false) if (center > 0.0) == (criteria.better() == Better::Higher) => Verdict::Better,
        (true, false) => Verdict::Worse,
        (false, false) => Verdict::Inconclusive { more_blocks: more_blocks(center, sd, blocks, criteria) },
    };
    if different && equivalent {
        warnings.push(Warning::RealButBelowMargin);
    }
    warnings.extend(ranks_disagree(differences, different, criteria));
    let interval = Some(Interval { low: (center - wide).exp(), high: (center + wide).exp() });
    Comparison { ratio: center.exp(), interval, blocks, verdict, warnings }
}

/// Half the width of the interval of the mean that leaves `tail` outside on each side.
fn half_width(sd: f64, blocks: usize, tail: f64) -> f64 {
    let freedom = u32::try_from(blocks - 1).unwrap_or(u32::MAX);
    t_quantile(1.0 - tail, freedom) * sd / (blocks as f64).sqrt()
}

/// The blocks still missing for a conclusion, from n = 2 (sigma / delta)^2 (z + z')^2 + 2, where 2 sigma^2 is the variance of
/// the paired difference.
///
/// Which conclusion is within reach depends on the estimate. At or beyond the margin it is a difference of that size: z at
/// alpha/2, z' at the power, which is 15.7 (sigma/delta)^2 + 2 for 95 % and 80 %. Inside the margin it is equivalence: delta is
/// the margin, z at alpha, z' at (1 + power) / 2 because both sides must hold, which is 17.1 (sigma/margin)^2 + 2.
fn more_blocks(center: f64, sd: f64, blocks: usize, criteria: &Criteria) -> Option<u32> {
    let margin = criteria.ln_margin();
    let alpha = criteria.alpha();
    let (delta, z) = if center.abs() >= margin {
        (center.abs(), normal_quantile(1.0 - alpha / 2.0) + normal_quantile(POWER))
    } else {
        (margin, normal_quantile(1.0 - alpha) + normal_quantile(f64::midpoint(1.0, POWER)))
    };
    if delta <= 0.0 {
        return None;
    }
    let needed = ((sd / delta * z).powi(2) + 2.0).ceil().max(PILOT_BLOCKS);
    // The formula knows the noise; these blocks only estimated it. At least one more when they were not enough.
    Some((needed - blocks as f64).max(1.0) as u32)
}

/// The signed-rank test against the interval, where it has enough blocks to speak.
fn ranks_disagree(differences: &[f64], different: bool, criteria: &Criteria) -> Option<Warning> {
    let able = differences.len() >= ENOUGH_BLOCKS && smallest_p(differences.len()) <= criteria.alpha();
    let p = able.then(|| signed_rank_p(differences)).flatten()?;
    ((p <= criteria.alpha()) != different).then_some(Warning::RanksDisagree { p })
}

#[cfg(test)]
mod tests;
