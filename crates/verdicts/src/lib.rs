//! What the trials of a run say: one number per trial, cells compared with the baseline block by block, and judged together.
//!
//! The run that decides whether to go on and the report that is drawn years later ask the same question, so the answer lives here,
//! computed from the run alone. No words, no files; the arithmetic is `stats`.

mod between;
mod choice;
mod expected;
mod metric;
mod question;
mod spread;
mod standing;
mod steady;
mod sweep;

pub use between::{Apart, Between, Difference, Differs, Shared, Side, between};
pub use choice::{Advice, Choice, Missed, Reason, Setting, choices};
pub use expected::Expected;
pub use metric::Metric;
pub use spread::{Spread, spread};
pub use standing::{Standing, decisive, standing};
pub use steady::{Unsteady, unsteady};
pub use sweep::{Curve, CurvePoint, LeftOut, curve};

use model::plan::{Cell, Contrast, Plan, Role};
use model::run::Run;
use question::{Paired, Question};
use spread::cell_residual;
use standing::Known;
use stats::{Comparison, Criteria, LOOKS, StatsError, Verdict, Warning, against_noise_of};
use std::collections::{BTreeMap, BTreeSet};

/// What is known by one metric: the answers to the plan's questions, and the noise.
#[derive(Debug, Clone)]
pub struct Verdicts {
    /// The plan's questions, by the name of their contrast or cell.
    asked: BTreeMap<String, Compared>,
    /// The A/A cell against the baseline.
    again: Option<Compared>,
    refused: Vec<(String, StatsError)>,
    /// Questions that no further block can answer: a block of theirs lacks a number, which forbids a verdict for good.
    closed: BTreeSet<String>,
    by_contrasts: bool,
}

/// One question answered, and the blocks that no ratio can be made of.
#[derive(Debug, Clone, PartialEq)]
pub struct Compared {
    /// The judgement.
    pub comparison: Comparison,
    /// Blocks in which all its cells were measured and one of them gave no number at all, such as no good answer.
    pub unanswered: usize,
    /// Shown to be worse by no more than the question's margin ([`Comparison::is_no_worse`]). A block without a number may hide anything.
    pub no_worse: bool,
}

impl Verdicts {
    /// Answers the plan's questions: its contrasts, or else how every cell compares with the baseline. They are one family. The A/A cell
    /// is compared by itself: it is a measure of noise and no question that the plan asks.
    #[must_use]
    pub fn of(run: &Run, metric: Metric) -> Verdicts {
        let plan = &run.head.plan;
        let by_contrasts = !plan.contrasts.is_empty();
        let mut verdicts = Verdicts {
            asked: BTreeMap::new(),
            again: None,
            refused: Vec::new(),
            closed: BTreeSet::new(),
            by_contrasts,
        };
        let criteria = match criteria(plan, metric) {
            Ok(criteria) => criteria,
            Err(error) => {
                let questions = question::again(plan).into_iter().chain(question::asked(plan));
                verdicts.refused = questions.map(|question| (question.name.to_owned(), error)).collect();
                return verdicts;
            }
        };
        let again = question::again(plan).and_then(|question| question.paired(run, metric));
        if let Some(again) = again.filter(Paired::can_be_compared) {
            verdicts.again = verdicts.judged(&[again], &criteria).pop().map(|(_, compared)| compared);
        }
        let measured: Vec<Paired<'_>> =
            question::asked(plan).into_iter().filter_map(|question| question.paired(run, metric)).collect();
        let closed = measured.iter().filter(|paired| paired.lacks_numbers());
        verdicts.closed = closed.map(|paired| paired.question.name.to_owned()).collect();
        let family: Vec<Paired<'_>> = measured.into_iter().filter(Paired::can_be_compared).collect();
        for (name, compared) in verdicts.judged(&family, &criteria) {
            verdicts.asked.insert(name, compared);
        }
        let judged = family.iter().filter(|paired| !paired.is_silent()).count();
        verdicts.hold_against_noise(plan, judged, &criteria);
        verdicts
    }

    /// A cell against the baseline: one of the plan's questions, unless it asks others by name, and the A/A cell always.
    #[must_use]
    pub fn compared(&self, cell: &Cell) -> Option<&Compared> {
        match cell.role {
            Role::Again => self.again.as_ref(),
            Role::Candidate if !self.by_contrasts => self.asked.get(&cell.name),
            Role::Candidate | Role::Baseline => None,
        }
    }

    /// A contrast of the plan.
    #[must_use]
    pub fn contrast(&self, contrast: &Contrast) -> Option<&Compared> {
        self.asked.get(&contrast.name).filter(|_| self.by_contrasts)
    }

    /// The answers that could not be given, by the name of the cell or contrast.
    #[must_use]
    pub fn refused(&self) -> &[(String, StatsError)] {
        &self.refused
    }

    /// What is known of a question.
    fn known(&self, question: &Question<'_>) -> Known {
        match self.asked.get(question.name).map(|it| it.comparison.verdict) {
            Some(Verdict::Inconclusive { .. }) | None if self.closed.contains(question.name) => Known::Never,
            Some(Verdict::Inconclusive { .. }) | None => Known::NotYet,
            Some(verdict) => Known::Answer(verdict),
        }
    }

    /// The smallest difference that so many blocks will show with 80 % chance, as a ratio above 1, by the noise seen so far; of questions that
    /// have not the same share of the noise, by the noisiest. `None` before there is any.
    #[must_use]
    pub fn resolvable(run: &Run, metric: Metric, blocks: usize) -> Option<f64> {
        let plan = &run.head.plan;
        let criteria = criteria(plan, metric).ok()?;
        let asked = question::asked(plan);
        let reach = asked.iter().map(Question::reach).fold(0.0, f64::max);
        let members = asked.len();
        let of_two_cells = |question: Question<'_>| {
            let reach = question.reach();
            Some(question.paired(run, metric)?.variance()? / reach.powi(2))
        };
        let variances: Vec<f64> = question::again(plan).into_iter().chain(asked).filter_map(of_two_cells).collect();
        // The variances are alike unless a cell is near a cliff, which the mean of all then says.
        let pooled = reach * stats::summarize(&variances).ok()?.mean.sqrt();
        stats::resolvable(pooled, blocks, members, &criteria)
    }

    fn judged(&mut self, family: &[Paired<'_>], criteria: &Criteria) -> Vec<(String, Compared)> {
        let (silent, family): (Vec<_>, Vec<_>) = family.iter().partition(|paired| paired.is_silent());
        let never = |paired: &&Paired<'_>| {
            let compared =
                Compared { comparison: paired.never_answered(), unanswered: paired.blocks(), no_worse: false };
            (paired.question.name.to_owned(), compared)
        };
        let mut judged: Vec<(String, Compared)> = silent.iter().map(never).collect();
        for (paired, comparison) in family.iter().zip(question::judge(&family, criteria)) {
            let name = paired.question.name.to_owned();
            match comparison {
                Err(error) => self.refused.push((name, error)),
                Ok(mut comparison) => {
                    let unanswered = paired.blocks() - comparison.blocks;
                    if unanswered > 0 {
                        comparison.verdict = Verdict::Inconclusive { more_blocks: None };
                        comparison.material = false;
                    }
                    let criteria = paired.question.criteria(criteria).unwrap_or(*criteria);
                    hold_against_grain(&mut comparison, paired.grain(), criteria.ln_margin());
                    let no_worse = unanswered == 0 && comparison.is_no_worse(&criteria);
                    judged.push((name, Compared { comparison, unanswered, no_worse }));
                }
            }
        }
        judged
    }

    fn hold_against_noise(&mut self, plan: &Plan, family: usize, criteria: &Criteria) {
        if question::again(plan).is_none() {
            return;
        }
        let again = self.again.as_ref().map(|again| again.comparison.clone());
        for question in question::asked(plan) {
            if let Some(compared) = self.asked.get_mut(question.name) {
                let comparison = compared.comparison.clone();
                compared.comparison = against_noise_of(comparison, again.as_ref(), question.reach(), family, criteria);
            }
        }
    }
}

/// Blocks that all say the same show no noise, and what their numbers differ by may lie behind their last digit: `grain`, on the scale of
/// logarithms.
fn hold_against_grain(comparison: &mut Comparison, grain: f64, margin: f64) {
    let distance = comparison.ratio.ln().abs();
    let is_sure = if comparison.verdict == Verdict::Equivalent { distance + grain < margin } else { distance > grain };
    if comparison.warnings.contains(&Warning::ZeroVariance) && !is_sure {
        comparison.verdict = Verdict::Inconclusive { more_blocks: None };
        comparison.material = false;
    }
}

/// By what a plan's comparisons are judged.
fn criteria(plan: &Plan, metric: Metric) -> Result<Criteria, StatsError> {
    let criteria = Criteria::new(metric.better(), plan.confidence, plan.margin)?;
    let criteria = if question::again(plan).is_some() { criteria.beside_an_again_cell() } else { criteria };
    Ok(if plan.until_decided { criteria.looked_at(LOOKS.len()) } else { criteria })
}

#[cfg(test)]
mod tests;
