//! The second opinion: what the A/A cell, a copy of the baseline, says about every other comparison.
//!
//! The two copies differ by nothing, so whatever their interval allows is noise of this machine in this run.

use crate::comparison::{Comparison, Verdict, Warning, half_width, needed_deviations};
use crate::criteria::Criteria;

/// The noise of the run as a ratio above 1: the end of the A/A interval that is farther from 1. `None` without an interval.
#[must_use]
pub fn noise_floor(again: &Comparison) -> Option<f64> {
    again.interval.map(|interval| distance(interval.low).max(distance(interval.high)).exp())
}

/// The comparison in the light of the A/A cell; `None` when there is to be one, but no block has both it and the baseline.
///
/// A difference no larger than the noise floor becomes inconclusive, with the warning that says so. An A/A cell that was itself called
/// different is a warning on every comparison. Equivalence stands: noise does not make two cells look more alike. A difference that
/// cannot be held against the noise, because there is no floor, keeps its verdict with a warning. `criteria` are those by which both were
/// judged.
#[must_use]
pub fn against_noise(comparison: Comparison, again: Option<&Comparison>, criteria: &Criteria) -> Comparison {
    against_noise_of(comparison, again, 1.0, 1, criteria)
}

/// As [`against_noise`], for one of a `family` of comparisons, and one that has another share of the noise than that of two cells: `reach`
/// is the standard deviation of its log-ratio as a multiple of theirs. Weights w of cells with equal noise make it the root of half the sum
/// of their squares.
#[must_use]
pub fn against_noise_of(
    mut comparison: Comparison,
    again: Option<&Comparison>,
    reach: f64,
    family: usize,
    criteria: &Criteria,
) -> Comparison {
    if let Some(Comparison { verdict: Verdict::Better | Verdict::Worse, ratio, .. }) = again {
        comparison.warnings.push(Warning::AgainDiffers { ratio: *ratio });
    }
    if !matches!(comparison.verdict, Verdict::Better | Verdict::Worse) {
        return comparison;
    }
    match again.and_then(noise_floor).map(|floor| floor.powf(reach)) {
        None => {
            // A comparison without an interval in spite of its blocks is one of a cell that never answered: that is said above.
            let blocks = again.map_or(0, |again| again.blocks);
            comparison.warnings.extend((blocks < 2).then_some(Warning::NoiseUnknown { blocks }));
        }
        Some(floor) if distance(comparison.ratio) <= floor.ln() => {
            let more_blocks = again.and_then(|again| missing(&comparison, again, reach, family, criteria));
            comparison.verdict = Verdict::Inconclusive { more_blocks };
            comparison.material = false;
            comparison.warnings.push(Warning::WithinNoise { floor });
        }
        Some(_) => {}
    }
    comparison
}

/// No floor is followed over more blocks: nobody makes them.
const FAR: usize = 1000;

/// The blocks that a difference lacks to stand out of the noise, if the estimates hold: as many as show it with the usual chance where the
/// log-ratios differ from block to block as those of the A/A cell do, and no fewer than make its floor as small as the difference. What the
/// A/A cell is away from 1 counts as noise, too, and falls with the root of the blocks.
fn missing(comparison: &Comparison, again: &Comparison, reach: f64, family: usize, criteria: &Criteria) -> Option<u32> {
    let (spread, delta) = (spread_of(again, criteria)?, distance(comparison.ratio));
    let shown = (reach * spread / delta * needed_deviations(family, criteria)).powi(2) + 2.0;
    let away = |blocks: usize| distance(again.ratio) * (again.blocks as f64 / blocks as f64).sqrt();
    let floor = |blocks: usize| reach * (away(blocks) + half_width(spread, blocks, criteria.alpha() / 2.0));
    let quiet = (comparison.blocks + 1..FAR).find(|blocks| floor(*blocks) <= delta).unwrap_or(FAR);
    Some((shown.ceil().max(quiet as f64) - comparison.blocks as f64).max(1.0) as u32)
}

/// The standard deviation of the log-ratios of the A/A cell from block to block, from the width of its interval.
fn spread_of(again: &Comparison, criteria: &Criteria) -> Option<f64> {
    let interval = again.interval?;
    Some((interval.high / interval.low).ln() / 2.0 / half_width(1.0, again.blocks, criteria.alpha() / 2.0))
}

/// How far a ratio is from 1, on the scale of logarithms.
fn distance(ratio: f64) -> f64 {
    ratio.ln().abs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Better, Criteria, Pairs, compare};
    use expect_test::{Expect, expect};

    fn criteria() -> Criteria {
        Criteria::new(Better::Higher, 0.95, 0.02).unwrap().beside_an_again_cell()
    }

    fn compared(differences: &[f64]) -> Comparison {
        let zeros = vec![0.0; differences.len()];
        compare(Pairs { baseline: &zeros, other: differences }, &criteria()).unwrap()
    }

    fn check(differences: &[f64], again: &[f64], expected: &Expect) {
        let seen = against_noise(compared(differences), Some(&compared(again)), &criteria());
        expected.assert_eq(&format!("{:?} {:.3?}", seen.verdict, seen.warnings));
    }

    const QUIET: [f64; 6] = [0.01, -0.01, 0.005, -0.005, 0.0, 0.001];
    const LOUD: [f64; 6] = [0.2, -0.2, 0.1, -0.1, 0.05, -0.04];
    const GAIN: [f64; 6] = [0.10, 0.11, 0.09, 0.10, 0.12, 0.10];

    #[test]
    fn a_difference_must_stand_out_of_the_noise() {
        check(&GAIN, &QUIET, &expect!["Better []"]);
        check(&GAIN, &LOUD, &expect!["Inconclusive { more_blocks: Some(23) } [WithinNoise { floor: 1.165 }]"]);
        check(
            &GAIN.map(|d| -d),
            &LOUD,
            &expect!["Inconclusive { more_blocks: Some(23) } [WithinNoise { floor: 1.165 }]"],
        );
        check(&QUIET, &LOUD, &expect!["Equivalent []"]);
    }

    #[test]
    fn an_again_cell_that_differs_is_said() {
        check(&GAIN.map(|d| 5.0 * d), &GAIN, &expect!["Better [AgainDiffers { ratio: 1.109 }]"]);
        check(
            &GAIN,
            &GAIN,
            &expect![
                "Inconclusive { more_blocks: Some(2) } [AgainDiffers { ratio: 1.109 }, WithinNoise { floor: 1.121 }]"
            ],
        );
    }

    /// The way back: the blocks that are said to be missing are those of the advice for the spread of the A/A cell.
    #[test]
    fn what_is_missing_is_what_the_noise_of_the_again_cell_takes() {
        let again = compared(&LOUD);
        let spread = spread_of(&again, &criteria()).unwrap();
        assert!((spread - crate::summarize(&LOUD).unwrap().sd.unwrap()).abs() < 1e-9, "{spread}");
        let lost = against_noise_of(compared(&GAIN), Some(&again), 1.0, 3, &criteria());
        let Verdict::Inconclusive { more_blocks: Some(more) } = lost.verdict else { panic!("{lost:?}") };
        let enough = |blocks| crate::resolvable(spread, blocks, 3, &criteria()).unwrap() <= lost.ratio;
        assert!(enough(6 + more as usize) && !enough(5 + more as usize), "{more}");
        // A share of the noise that is twice as large takes four times the blocks.
        let twice = against_noise_of(compared(&GAIN), Some(&again), 2.0, 3, &criteria());
        let Verdict::Inconclusive { more_blocks: Some(four) } = twice.verdict else { panic!("{twice:?}") };
        assert!(four.abs_diff(4 * (6 + more - 2) + 2 - 6) <= 4, "{four} {more}");
    }

    #[test]
    fn a_single_block_has_no_floor() {
        assert_eq!(noise_floor(&compared(&[0.1])), None);
        check(&GAIN, &[0.5], &expect!["Better [NoiseUnknown { blocks: 1 }]"]);
        let alone = against_noise(compared(&GAIN), None, &criteria());
        assert_eq!(alone.warnings, [Warning::NoiseUnknown { blocks: 0 }]);
        // An A/A cell that never answered says so itself.
        let silent = Comparison { ratio: 0.0, interval: None, verdict: Verdict::Worse, ..compared(&[-0.5, -0.6]) };
        assert_eq!(
            against_noise(compared(&GAIN), Some(&silent), &criteria()).warnings,
            [Warning::AgainDiffers { ratio: 0.0 }]
        );
        // Nothing to be withdrawn, nothing to be warned of.
        check(&QUIET, &[0.5], &expect!["Equivalent []"]);
    }
}
