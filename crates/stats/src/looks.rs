//! When a run that goes on until it is decided is looked at, whether it is decided, and what its noise allows to be seen.
//!
//! Every look has its share of what may go wrong ([`Criteria::looked_at`]), so a run may end at any of them. With four looks and no true
//! difference one is found in 3.2 % of all runs; a t interval looked at after every block finds one in 24.6 %.

use crate::comparison::{Comparison, Verdict, needed_deviations};
use crate::criteria::Criteria;

/// After how many blocks a run is looked at.
pub const LOOKS: [usize; 4] = [6, 10, 16, 24];

/// After how many blocks the noise is known well enough to say what the rest can show.
pub const PILOT: usize = 4;

/// The look that follows so many blocks; `None` after the last one.
#[must_use]
pub fn next_look(blocks: usize) -> Option<usize> {
    LOOKS.into_iter().find(|&look| look > blocks)
}

/// Whether every comparison has come to a conclusion.
#[must_use]
pub fn is_decided(comparisons: &[Comparison]) -> bool {
    comparisons.iter().all(|comparison| !matches!(comparison.verdict, Verdict::Inconclusive { .. }))
}

/// The smallest difference that so many blocks show with 80 % chance, as a ratio above 1, by one of `family` questions; `sd` is the standard
/// deviation of the log-ratios within blocks, of a pilot for example. `None` for 2 blocks or fewer, whose intervals follow another formula.
///
/// It is the formula of the advised number of blocks, n = (sd / delta)^2 (z + z')^2 + 2, solved for delta.
#[must_use]
pub fn resolvable(sd: f64, blocks: usize, family: usize, criteria: &Criteria) -> Option<f64> {
    (blocks > 2).then(|| (sd * needed_deviations(family.max(1), criteria) / ((blocks - 2) as f64).sqrt()).exp())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::tests::{Noise, criteria};
    use crate::{Better, Pairs, against_noise, compare, compare_all};

    #[test]
    fn looks_follow_one_another() {
        assert_eq!(
            [0, 5, 6, 15, 16, 24, 99].map(next_look),
            [Some(6), Some(6), Some(10), Some(16), Some(24), None, None]
        );
    }

    #[test]
    fn what_can_be_seen_is_the_advice_turned_round() {
        // A run-to-run sigma of 1.5 % needs 38 blocks for 1 %, 11 for 2 %.
        let sd = 0.015 * 2.0_f64.sqrt();
        let check = |blocks, expected: f64| {
            let seen = resolvable(sd, blocks, 1, &criteria(Better::Higher, 0.02)).unwrap().ln();
            assert!((seen - expected).abs() < 3e-4, "{blocks}: {seen}");
        };
        check(38, 0.01);
        check(11, 0.02);
        assert_eq!(resolvable(sd, 2, 1, &criteria(Better::Higher, 0.02)), None);
    }

    /// How often so many blocks show a difference of the size that they are said to show with 80 % chance, held against an A/A cell.
    fn shown(blocks: usize, criteria: Criteria) -> f64 {
        const PLANS: usize = 1500;
        let mut noise = Noise::seeded(20_261_124);
        let truth = resolvable(0.015 * 2.0_f64.sqrt(), blocks, 1, &criteria).unwrap().ln();
        let plan = |_| {
            let mut cell = |truth: f64| (0..blocks).map(|_| truth + 0.015 * noise.normal()).collect::<Vec<f64>>();
            let (baseline, again, other) = (cell(0.0), cell(0.0), cell(truth));
            let compare = |other| compare(Pairs { baseline: &baseline, other }, &criteria).unwrap();
            against_noise(compare(&other), Some(&compare(&again)), &criteria).verdict == Verdict::Better
        };
        (0..PLANS).map(plan).filter(|shown| *shown).count() as f64 / PLANS as f64
    }

    #[test]
    fn what_is_promised_beside_an_again_cell_is_shown_as_often() {
        let criteria = criteria(Better::Higher, 0.001).beside_an_again_cell();
        for (blocks, criteria) in [(10, criteria), (16, criteria.looked_at(LOOKS.len()))] {
            let shown = shown(blocks, criteria);
            assert!((0.76..0.86).contains(&shown), "{blocks} blocks: {shown}");
        }
    }

    /// Of `plans` with `cells` cells beside the baseline, all of one true log-ratio, looked at until decided: blocks used on
    /// average, the share with a difference in any cell, and the share with all equivalent.
    fn simulate(truth: f64, sigma: f64, cells: usize, plans: usize) -> (f64, f64, f64) {
        let mut noise = Noise::seeded(20_261_122);
        let criteria = criteria(Better::Higher, 0.02).looked_at(LOOKS.len());
        let (mut blocks, mut different, mut equivalent) = (0, 0, 0);
        for _ in 0..plans {
            let mut numbers = vec![Vec::new(); cells + 1];
            let mut drift = 0.0;
            let mut look = next_look(0);
            while let Some(until) = look {
                while numbers[0].len() < until {
                    drift += 0.01 * noise.normal();
                    for (cell, numbers) in numbers.iter_mut().enumerate() {
                        numbers.push(drift + if cell > 0 { truth } else { 0.0 } + sigma * noise.normal());
                    }
                }
                let family: Vec<_> = numbers[1..].iter().map(|other| Pairs { baseline: &numbers[0], other }).collect();
                let comparisons = compare_all(&family, &criteria).into_iter().collect::<Result<Vec<_>, _>>().unwrap();
                look = next_look(until).filter(|_| !is_decided(&comparisons));
                if look.is_none() {
                    blocks += until;
                    let is = |verdict: fn(&Verdict) -> bool| comparisons.iter().map(move |c| verdict(&c.verdict));
                    different += usize::from(is(|v| matches!(v, Verdict::Better | Verdict::Worse)).any(|is| is));
                    equivalent += usize::from(is(|v| *v == Verdict::Equivalent).all(|is| is));
                }
            }
        }
        let share = |count: usize| count as f64 / plans as f64;
        (share(blocks), share(different), share(equivalent))
    }

    #[test]
    fn looking_four_times_at_several_cells_finds_nothing_that_is_not_there() {
        for (sigma, cells) in [(0.01, 1), (0.03, 1), (0.03, 4)] {
            let (_, different, _) = simulate(0.0, sigma, cells, 2000);
            assert!(different < 0.055, "{cells} cells at {sigma}: {different}");
        }
    }

    #[test]
    fn what_is_there_is_found_without_spending_all_blocks() {
        let (blocks, different, equivalent) = simulate(0.03, 0.01, 1, 1000);
        assert!(blocks < 18.0 && different > 0.95 && equivalent < 0.02, "{blocks} blocks, {different}, {equivalent}");
        let (blocks, _, equivalent) = simulate(0.0, 0.01, 1, 1000);
        assert!(blocks < 12.0 && equivalent > 0.98, "{blocks} blocks, {equivalent}");
    }
}
