//! Two cells compared: the ratio of their numbers, its interval, a verdict, and what is doubtful about it.
//!
//! Per block the difference of the two logarithms, d = ln(other) - ln(baseline); the ratio is exp(mean d), its interval
//! exp(mean d -+ t * s / sqrt(n)) with Student's t of n - 1 degrees of freedom. Randomised blocks with this interval keep their
//! nominal error under drift; the interval is exact for normal d and was found at 95 to 97 % for heavy tails.
//!
//! Several cells compared with one baseline are a family ([`compare_all`]): who asks five questions finds something by chance
//! five times as often. Whether there is a difference is decided by Holm's step-down procedure (1979) over the family, and the
//! intervals hold together: each is Bonferroni's, of confidence 1 - alpha / m for m cells, and one of a difference that only Holm's
//! procedure shows ends at 1 (Guilbaud 2008, Strassburger and Bretz 2008).

use crate::criteria::{Better, Criteria};
use crate::error::{StatsError, finite};
use crate::quantile::{normal_below, normal_quantile, t_quantile, t_two_sided};
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
    /// The whole interval lies beyond the margin, on either side: the difference is at least as large as what is of interest.
    pub material: bool,
    /// What is doubtful about it, in the order found.
    pub warnings: Vec<Warning>,
}

impl Comparison {
    /// Whether it was shown to be worse by no more than the margin, be it the same or better: the whole interval lies on that side of the
    /// margin (non-inferiority; Piaggio et al., JAMA 308 (2012) 2594). Nothing is shown by an estimate without an interval, nor by an
    /// interval that is a point. As equivalence, it is not held against the A/A cell: noise makes nothing look less bad.
    #[must_use]
    pub fn is_no_worse(&self, criteria: &Criteria) -> bool {
        let within = |interval: Interval| match criteria.better() {
            Better::Higher => -interval.low.ln() < criteria.ln_margin(),
            Better::Lower => interval.high.ln() < criteria.ln_margin(),
        };
        match self.verdict {
            Verdict::Better | Verdict::Equivalent => true,
            Verdict::Worse => false,
            Verdict::Inconclusive { .. } => {
                !self.warnings.contains(&Warning::ZeroVariance) && self.interval.is_some_and(within)
            }
        }
    }
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
    /// A difference was shown, on the side of an improvement: the interval lies above 1, or begins there.
    Better,
    /// A difference was shown, on the other side.
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

/// Compares two cells by paired blocks: a family of one.
///
/// With n = 2 and 3 the t quantiles are 12.7 and 4.3: intervals are wide, and only large differences are conclusive.
///
/// # Errors
/// When a value is not finite, the two lengths differ, or there is no pair.
pub fn compare(pairs: Pairs<'_>, criteria: &Criteria) -> Result<Comparison, StatsError> {
    compare_all(&[pairs], criteria).remove(0)
}

/// Compares cells with their baselines, all of them together: in the order given, each by its own blocks. One that cannot be judged, for
/// the reasons of [`compare`], is no member of the family.
#[must_use]
pub fn compare_all(family: &[Pairs<'_>], criteria: &Criteria) -> Vec<Result<Comparison, StatsError>> {
    compare_each(&family.iter().map(|pairs| (*pairs, *criteria)).collect::<Vec<_>>())
}

/// As [`compare_all`], each by its own margin. The confidence and the looks are meant to be those of the whole family.
#[must_use]
pub fn compare_each(family: &[(Pairs<'_>, Criteria)]) -> Vec<Result<Comparison, StatsError>> {
    let differences: Vec<_> = family.iter().map(|(pairs, _)| differences(*pairs)).collect();
    let Some((_, first)) = family.first() else { return Vec::new() };
    let alpha = first.alpha();
    let samples: Vec<_> = differences.iter().map(|differences| differences.as_deref().map(Sample::of)).collect();
    let mut by_p: Vec<_> = samples.iter().flatten().map(|sample| sample.p).collect();
    by_p.sort_by(f64::total_cmp);
    let members = by_p.len();
    // Holm: the smallest p is held against alpha / m, the next against alpha / (m - 1), up to the first that is too large.
    let passes = |(step, p): &(usize, &f64)| **p <= alpha / (members - step) as f64;
    let largest_shown = by_p.iter().enumerate().take_while(passes).last().map(|(_, p)| *p);
    let judged = |(sample, (_, criteria)): (Result<Sample<'_>, &StatsError>, &(Pairs<'_>, Criteria))| {
        let sample = sample.map_err(|error| *error)?;
        let shown = largest_shown.is_some_and(|largest| sample.p <= largest);
        Ok(judge(&sample, shown, members, criteria))
    };
    samples.into_iter().zip(family).map(judged).collect()
}

fn differences(pairs: Pairs<'_>) -> Result<Vec<f64>, StatsError> {
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
    Ok(differences)
}

/// The log-ratios of one comparison, described.
struct Sample<'a> {
    differences: &'a [f64],
    center: f64,
    /// `None` with a single block.
    sd: Option<f64>,
    /// Two-sided p of Student's t that there is no difference; 1 with a single block.
    p: f64,
}

impl<'a> Sample<'a> {
    fn of(differences: &'a [f64]) -> Self {
        let (center, sd) = (mean(differences), standard_deviation(differences));
        let p = match sd {
            None => 1.0,
            // Every block said the same: no noise was seen that a difference could come from.
            Some(sd) if sd < ROUNDING => f64::from(center.abs() < ROUNDING),
            Some(sd) => {
                let blocks = differences.len() as f64;
                t_two_sided(center / (sd / blocks.sqrt()), blocks - 1.0)
            }
        };
        Sample { differences, center, sd, p }
    }
}

/// Judges one of a family of so many; `different` is what the family's procedure says of it.
fn judge(sample: &Sample<'_>, different: bool, family: usize, criteria: &Criteria) -> Comparison {
    let Sample { differences, center, sd, .. } = *sample;
    let blocks = differences.len();
    let alpha = criteria.alpha() / family as f64;
    let mut warnings = Vec::new();
    if blocks < ENOUGH_BLOCKS {
        warnings.push(Warning::FewBlocks { blocks });
    }
    let Some(sd) = sd else {
        let verdict = Verdict::Inconclusive { more_blocks: None };
        return Comparison { ratio: center.exp(), interval: None, blocks, verdict, material: false, warnings };
    };
    if sd < ROUNDING {
        warnings.push(Warning::ZeroVariance);
    }
    let (mut low, mut high) =
        (center - half_width(sd, blocks, alpha / 2.0), center + half_width(sd, blocks, alpha / 2.0));
    if different {
        (low, high) = if center > 0.0 { (low.max(0.0), high) } else { (low, high.min(0.0)) };
    }
    let equivalent = center.abs() + half_width(sd, blocks, alpha) < criteria.ln_margin();
    let verdict = match (different, equivalent) {
        (_, true) => Verdict::Equivalent,
        (true, false) if (center > 0.0) == (criteria.better() == Better::Higher) => Verdict::Better,
        (true, false) => Verdict::Worse,
        (false, false) => Verdict::Inconclusive { more_blocks: more_blocks(center, sd, blocks, family, criteria) },
    };
    if different && equivalent {
        warnings.push(Warning::RealButBelowMargin);
    }
    warnings.extend(ranks_disagree(differences, different, alpha));
    Comparison {
        ratio: center.exp(),
        interval: Some(Interval { low: low.exp(), high: high.exp() }),
        blocks,
        verdict,
        material: low > criteria.ln_margin() || high < -criteria.ln_margin(),
        warnings,
    }
}

/// Half the width of the interval of the mean that leaves `tail` outside on each side.
pub(crate) fn half_width(sd: f64, blocks: usize, tail: f64) -> f64 {
    let freedom = u32::try_from(blocks - 1).unwrap_or(u32::MAX);
    t_quantile(1.0 - tail, freedom) * sd / (blocks as f64).sqrt()
}

/// The blocks still missing for a conclusion, from n = 2 (sigma / delta)^2 (z + z')^2 + 2, where 2 sigma^2 is the variance of
/// the paired difference.
///
/// There are two conclusions, and what takes fewer blocks is said. A difference has the estimate for delta and
/// [`needed_deviations`]: without an A/A cell that is z at alpha/2 and z' at the power, 15.7 (sigma/delta)^2 + 2 for 95 % and 80 %.
/// Equivalence has what the estimate leaves of the margin for delta, z at alpha, z' at (1 + power) / 2 because both sides must hold:
/// 17.1 (sigma/margin)^2 + 2 for an estimate of 0.
fn more_blocks(center: f64, sd: f64, blocks: usize, family: usize, criteria: &Criteria) -> Option<u32> {
    let needed = |delta: f64, deviations: f64| (delta > 0.0).then(|| (sd / delta * deviations).powi(2) + 2.0);
    let both_sides =
        normal_quantile(1.0 - criteria.alpha() / family as f64) + normal_quantile(f64::midpoint(1.0, POWER));
    let different = needed(center.abs(), needed_deviations(family, criteria));
    let equivalent = needed(criteria.ln_margin() - center.abs(), both_sides);
    let needed = different.into_iter().chain(equivalent).min_by(f64::total_cmp)?.ceil().max(PILOT_BLOCKS);
    // The formula knows the noise; these blocks only estimated it. At least one more when they were not enough.
    Some((needed - blocks as f64).max(1.0) as u32)
}

/// How many standard deviations of its estimate a difference must be from 0 to be shown with the usual chance, as one of a family.
///
/// The estimate X must be beyond z of alpha / m. Beside an A/A cell with the estimate Y it must also be beyond |Y| and z of alpha. Both have
/// the same standard deviation, and the correlation 1/2 by their common baseline, so given Y the estimate has the mean Y / 2 and the
/// variance 3/4; the chance is the integral over Y.
pub(crate) fn needed_deviations(family: usize, criteria: &Criteria) -> f64 {
    let shown = normal_quantile(1.0 - criteria.alpha() / (2 * family) as f64);
    if !criteria.has_floor() {
        return shown + normal_quantile(POWER);
    }
    let floor = normal_quantile(1.0 - criteria.alpha() / 2.0);
    let chance = |at: f64| {
        let given = |y: f64| normal_below((at - shown.max(y.abs() + floor) + y / 2.0) / 0.75_f64.sqrt());
        let density = |y: f64| (-y * y / 2.0).exp() / std::f64::consts::TAU.sqrt();
        (-60..=60).map(|tenth| f64::from(tenth) / 10.0).map(|y| 0.1 * density(y) * given(y)).sum::<f64>()
    };
    let (mut low, mut high) = (shown, shown + 4.0);
    while high - low > 1e-4 {
        let middle = f64::midpoint(low, high);
        if chance(middle) < POWER { low = middle } else { high = middle }
    }
    high
}

/// The signed-rank test against the interval, where it has enough blocks to speak.
fn ranks_disagree(differences: &[f64], different: bool, alpha: f64) -> Option<Warning> {
    let able = differences.len() >= ENOUGH_BLOCKS && smallest_p(differences.len()) <= alpha;
    let p = able.then(|| signed_rank_p(differences)).flatten()?;
    ((p <= alpha) != different).then_some(Warning::RanksDisagree { p })
}

#[cfg(test)]
pub(crate) mod tests;
