//! What is made of the numbers: webdyno's rule, and those that benchstat and hyperfine publish.

use super::plan::Machine;
use stats::{
    Better, Comparison, Criteria, LOOKS, Pairs, Verdict, against_noise, compare, compare_all, is_decided, next_look,
    unpaired,
};

/// What webdyno came to, of each cell, and from what.
pub(super) struct Outcome {
    pub(super) verdicts: Vec<Verdict>,
    /// All that the baseline and the first of the cells measured until webdyno was done.
    pub(super) drawn: Numbers,
}

impl Outcome {
    pub(super) fn any(&self, is: impl Fn(&Verdict) -> bool) -> bool {
        self.verdicts.iter().any(is)
    }

    /// Trials of each cell.
    pub(super) fn trials(&self) -> usize {
        self.drawn.baseline.len()
    }
}

/// 95 %, higher is better, a margin of 2 %.
pub(super) fn criteria() -> Criteria {
    Criteria::new(Better::Higher, 0.95, 0.02).expect("usable")
}

/// webdyno: randomised blocks with an A/A cell, looked at until all is decided.
pub(super) fn webdyno(machine: &mut Machine, truths: &[f64]) -> Outcome {
    let criteria = criteria().looked_at(LOOKS.len());
    let mut numbers = cells(truths);
    let mut look = next_look(0);
    let mut comparisons: Vec<Comparison> = Vec::new();
    while let Some(until) = look {
        measure(machine, truths, until, &mut numbers);
        comparisons = compared(&numbers, &criteria);
        look = next_look(until).filter(|_| !is_decided(&comparisons));
    }
    let verdicts = comparisons.iter().map(|comparison| comparison.verdict).collect();
    Outcome { verdicts, drawn: Numbers { other: numbers.swap_remove(2), baseline: numbers.swap_remove(0) } }
}

/// The same after so many blocks.
pub(super) fn judged(machine: &mut Machine, truths: &[f64], blocks: usize, criteria: &Criteria) -> Vec<Comparison> {
    let mut numbers = cells(truths);
    measure(machine, truths, blocks, &mut numbers);
    compared(&numbers, criteria)
}

/// Room for the numbers of the baseline, its copy, and the cells in question.
fn cells(truths: &[f64]) -> Vec<Vec<f64>> {
    vec![Vec::new(); truths.len() + 2]
}

fn measure(machine: &mut Machine, truths: &[f64], until: usize, numbers: &mut [Vec<f64>]) {
    let all: Vec<f64> = [0.0, 0.0].iter().chain(truths).copied().collect();
    while numbers[0].len() < until {
        for (numbers, measured) in numbers.iter_mut().zip(machine.block(&all)) {
            numbers.push(measured);
        }
    }
}

fn compared(numbers: &[Vec<f64>], criteria: &Criteria) -> Vec<Comparison> {
    let pairs = |other| Pairs { baseline: &numbers[0], other };
    let again = compare(pairs(&numbers[1]), criteria).expect("finite");
    let family: Vec<_> = numbers[2..].iter().map(|other| pairs(other)).collect();
    let judged = compare_all(&family, criteria).into_iter();
    judged.map(|comparison| against_noise(comparison.expect("finite"), Some(&again), criteria)).collect()
}

/// What the trials of two cells measured, whoever ordered them.
pub(super) struct Numbers {
    baseline: Vec<f64>,
    other: Vec<f64>,
}

impl Numbers {
    /// A fixed number of trials of one cell, then as many of the other, as scripts around a load generator do it.
    pub(super) fn in_sequence(machine: &mut Machine, truth: f64, trials: usize) -> Numbers {
        let mut cell = |truth| (0..trials).map(|_| machine.trial(truth)).collect();
        Numbers { baseline: cell(0.0), other: cell(truth) }
    }

    fn verdict(&self, different: bool) -> Verdict {
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        match (different, mean(&self.other) > mean(&self.baseline)) {
            (false, _) => Verdict::Inconclusive { more_blocks: None },
            (true, true) => Verdict::Better,
            (true, false) => Verdict::Worse,
        }
    }

    /// benchstat: Mann and Whitney's U test, exact, p < 0.05.
    pub(super) fn benchstat(&self) -> Verdict {
        self.verdict(mann_whitney_p(&self.baseline, &self.other) < 0.05)
    }

    /// hyperfine's line "1.05 ± 0.03 times faster": the ratio of the means is farther from 1 than the spread printed behind it.
    pub(super) fn hyperfine(&self) -> Verdict {
        let describe = |values: &[f64]| {
            let values: Vec<f64> = values.iter().map(|value| value.exp()).collect();
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
            (mean, (squares / (values.len() - 1) as f64).sqrt())
        };
        let ((a, a_sd), (b, b_sd)) = (describe(&self.baseline), describe(&self.other));
        let ratio = (a / b).max(b / a);
        let spread = ratio * ((a_sd / a).powi(2) + (b_sd / b).powi(2)).sqrt();
        self.verdict(ratio - spread > 1.0)
    }

    /// hyperfine's script `welch_ttest.py`, p < 0.05.
    pub(super) fn welch(&self) -> Verdict {
        let p = unpaired(&self.baseline, &self.other, 0.95)
            .ok()
            .and_then(|found| found.spread)
            .map_or(1.0, |spread| spread.p);
        self.verdict(p < 0.05)
    }

    /// What the five documents do: one number each, and a difference of 3 % is one.
    pub(super) fn by_eye(&self) -> Verdict {
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        self.verdict((mean(&self.other) - mean(&self.baseline)).abs() > 0.03_f64.ln_1p())
    }
}

/// Two-sided p of Mann and Whitney's U test, exact, for samples without ties.
fn mann_whitney_p(a: &[f64], b: &[f64]) -> f64 {
    let u: usize = a.iter().map(|x| b.iter().filter(|y| *y < x).count()).sum();
    let ways = arrangements(a.len(), b.len());
    let all: f64 = ways.iter().sum();
    let at_most: f64 = ways[..=u].iter().sum();
    let at_least: f64 = ways[u..].iter().sum();
    (2.0 * at_most.min(at_least) / all).min(1.0)
}

/// How many arrangements of m and n values have each U: the coefficients of the Gaussian binomial, built factor by factor.
fn arrangements(m: usize, n: usize) -> Vec<f64> {
    let mut ways = vec![0.0; m * n + 1];
    ways[0] = 1.0;
    for i in 1..=m {
        // Times (1 - q^(n+i)), then divided by (1 - q^i).
        for at in (n + i..ways.len()).rev() {
            ways[at] -= ways[at - n - i];
        }
        for at in i..ways.len() {
            ways[at] += ways[at - i];
        }
    }
    ways
}

#[cfg(test)]
mod tests {
    use super::super::plan::Drift;
    use super::*;

    #[test]
    fn exact_p_as_in_printed_tables() {
        let check = |a: &[f64], b: &[f64], expected: f64| {
            let p = mann_whitney_p(a, b);
            assert!((p - expected).abs() < 5e-4, "{p} is not {expected}");
        };
        // The smallest p of n and n values: 2 of C(2n, n).
        check(&[1.0, 2.0], &[3.0, 4.0], 0.333);
        check(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0], 0.1);
        check(&[1.0, 2.0, 3.0, 4.0], &[5.0, 6.0, 7.0, 8.0], 0.0286);
        check(&[1.0, 2.0, 3.0, 4.0, 5.0], &[6.0, 7.0, 8.0, 9.0, 10.0], 0.0079);
        check(&[1.0, 3.0, 5.0], &[2.0, 4.0, 6.0], 0.7);
    }

    /// As many arrangements as there are ways to choose, at the most blocks that a plan has.
    #[test]
    fn all_arrangements_are_counted() {
        assert_eq!(arrangements(24, 24).iter().sum::<f64>(), 32_247_603_683_100.0);
    }

    #[test]
    fn others_get_the_numbers_that_the_plan_drew() {
        let machine = || Machine::new(1, Drift::Walk, 0.015);
        let outcome = webdyno(&mut machine(), &[0.03]);
        let mut again = machine();
        let blocks: Vec<_> = (0..outcome.trials()).map(|_| again.block(&[0.0, 0.0, 0.03])).collect();
        let cell = |cell: usize| blocks.iter().map(|block| block[cell]).collect::<Vec<f64>>();
        assert_eq!((outcome.drawn.baseline, outcome.drawn.other), (cell(0), cell(2)));
    }

    #[test]
    fn rules_of_others_on_numbers_of_ours() {
        let apart = Numbers { baseline: vec![0.0, 0.001, 0.002, 0.003], other: vec![0.1, 0.101, 0.102, 0.103] };
        for verdict in [apart.benchstat(), apart.hyperfine(), apart.welch(), apart.by_eye()] {
            assert_eq!(verdict, Verdict::Better);
        }
        let alike = Numbers { baseline: vec![0.0, 0.012, 0.002, 0.013], other: vec![0.011, 0.001, 0.014, 0.003] };
        for verdict in [alike.benchstat(), alike.hyperfine(), alike.welch(), alike.by_eye()] {
            assert_eq!(verdict, Verdict::Inconclusive { more_blocks: None });
        }
    }
}
