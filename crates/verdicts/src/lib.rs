//! What the trials of a run say: one number per trial, cells compared with the baseline block by block, and judged together.
//!
//! The run that decides whether to go on and the report that is drawn years later ask the same question, so the answer lives here,
//! computed from the run alone. No words, no files; the arithmetic is `stats`.

mod metric;

pub use metric::Metric;

use model::plan::{Cell, Plan, Role};
use model::run::Run;
use stats::{Comparison, Criteria, LOOKS, Pairs, StatsError, Verdict, against_noise, compare_all};
use std::collections::BTreeMap;

/// What is known of every cell but the baseline, by one metric.
#[derive(Debug, Clone)]
pub struct Verdicts {
    compared: BTreeMap<String, Compared>,
    refused: Vec<(String, StatsError)>,
}

/// A cell against the baseline, and the blocks that no ratio can be made of.
#[derive(Debug, Clone, PartialEq)]
pub struct Compared {
    /// The judgement.
    pub comparison: Comparison,
    /// Blocks in which both were measured and one of them gave no number at all, such as no good answer.
    pub unanswered: usize,
}

/// The numbers of a cell and of the baseline in the blocks that have both.
struct Paired<'a> {
    cell: &'a Cell,
    pairs: Vec<(f64, f64)>,
}

impl Verdicts {
    /// Compares every cell with the baseline. The A/A cell is compared by itself: it is a measure of noise and no question that
    /// the plan asks; all others are one family.
    #[must_use]
    pub fn of(run: &Run, metric: Metric) -> Verdicts {
        let plan = &run.head.plan;
        let mut verdicts = Verdicts { compared: BTreeMap::new(), refused: Vec::new() };
        let criteria = match criteria(plan, metric) {
            Ok(criteria) => criteria,
            Err(error) => {
                let cells = plan.cells.iter().filter(|cell| cell.role != Role::Baseline);
                verdicts.refused = cells.map(|cell| (cell.name.clone(), error)).collect();
                return verdicts;
            }
        };
        for roles in [Role::Again, Role::Candidate] {
            let cells = plan.cells.iter().filter(|cell| cell.role == roles);
            let family = cells.filter_map(|cell| paired(run, cell, metric)).collect();
            verdicts.judge(family, &criteria);
        }
        verdicts.hold_against_noise(plan);
        verdicts
    }

    /// A cell against the baseline.
    #[must_use]
    pub fn compared(&self, cell: &Cell) -> Option<&Compared> {
        self.compared.get(&cell.name)
    }

    /// The comparisons that could not be made, by cell.
    #[must_use]
    pub fn refused(&self) -> &[(String, StatsError)] {
        &self.refused
    }

    /// Whether every question of the plan has an answer. The A/A cell asks none.
    #[must_use]
    pub fn is_decided(&self, plan: &Plan) -> bool {
        let candidates = plan.cells.iter().filter(|cell| cell.role == Role::Candidate);
        let verdict = |cell| self.compared(cell).map(|compared| compared.comparison.verdict);
        candidates.map(verdict).all(|verdict| verdict.is_some_and(|it| !matches!(it, Verdict::Inconclusive { .. })))
    }

    /// The smallest difference that so many blocks will show with 80 % chance, as a ratio above 1, by the noise seen so far. `None`
    /// before there is any.
    #[must_use]
    pub fn resolvable(run: &Run, metric: Metric, blocks: usize) -> Option<f64> {
        let criteria = criteria(&run.head.plan, metric).ok()?;
        let cells = run.head.plan.cells.iter().filter(|cell| cell.role != Role::Baseline);
        let paired = cells.filter_map(|cell| paired(run, cell, metric));
        let variances: Vec<f64> = paired
            .filter_map(|paired| {
                let (baseline, other) = paired.logarithms();
                let differences: Vec<f64> = other.iter().zip(&baseline).map(|(other, base)| other - base).collect();
                stats::summarize(&differences).ok()?.sd.map(|sd| sd * sd)
            })
            .collect();
        // The cells' variances are alike unless one of them is near a cliff, which the mean of all then says.
        let pooled = stats::summarize(&variances).ok()?.mean.sqrt();
        stats::resolvable(pooled, blocks, &criteria)
    }

    fn judge(&mut self, family: Vec<Paired<'_>>, criteria: &Criteria) {
        let (silent, family): (Vec<_>, Vec<_>) = family.into_iter().partition(Paired::is_silent);
        for paired in silent {
            let compared = Compared { comparison: never_answered(paired.pairs.len()), unanswered: paired.pairs.len() };
            self.compared.insert(paired.cell.name.clone(), compared);
        }
        let logarithms: Vec<_> = family.iter().map(Paired::logarithms).collect();
        let pairs: Vec<_> = logarithms.iter().map(|(baseline, other)| Pairs { baseline, other }).collect();
        for (paired, comparison) in family.iter().zip(compare_all(&pairs, criteria)) {
            let name = paired.cell.name.clone();
            match comparison {
                Err(error) => self.refused.push((name, error)),
                Ok(mut comparison) => {
                    let unanswered = paired.pairs.len() - comparison.blocks;
                    if unanswered > 0 {
                        comparison.verdict = Verdict::Inconclusive { more_blocks: None };
                        comparison.material = false;
                    }
                    self.compared.insert(name, Compared { comparison, unanswered });
                }
            }
        }
    }

    fn hold_against_noise(&mut self, plan: &Plan) {
        let Some(again) = plan.cells.iter().find(|cell| cell.role == Role::Again) else { return };
        let again = self.compared(again).map(|again| again.comparison.clone());
        for cell in plan.cells.iter().filter(|cell| cell.role == Role::Candidate) {
            if let Some(compared) = self.compared.get_mut(&cell.name) {
                compared.comparison = against_noise(compared.comparison.clone(), again.as_ref());
            }
        }
    }
}

/// By what a plan's comparisons are judged.
fn criteria(plan: &Plan, metric: Metric) -> Result<Criteria, StatsError> {
    let criteria = Criteria::new(metric.better(), plan.confidence, plan.margin)?;
    Ok(if plan.until_decided { criteria.looked_at(LOOKS.len()) } else { criteria })
}

/// The numbers of the blocks in which both cells were measured; `None` when there is no such block, or the baseline never gave a number:
/// then there is nothing to compare with.
fn paired<'a>(run: &Run, cell: &'a Cell, metric: Metric) -> Option<Paired<'a>> {
    let numbers = |name| run.measured(name).map(|(trial, load)| (trial.block, metric.of(trial, load))).collect();
    let (of_baseline, of_cell): (BTreeMap<u32, Option<f64>>, BTreeMap<u32, Option<f64>>) =
        (numbers(&run.head.plan.baseline().name), numbers(&cell.name));
    let pair = |(block, base): (&u32, &Option<f64>)| Some((base.unwrap_or(0.0), of_cell.get(block)?.unwrap_or(0.0)));
    let pairs: Vec<(f64, f64)> = of_baseline.iter().filter_map(pair).collect();
    pairs.iter().any(|(base, _)| *base > 0.0).then_some(Paired { cell, pairs })
}

impl Paired<'_> {
    /// The baseline always gave a number and the cell never did.
    fn is_silent(&self) -> bool {
        self.pairs.iter().all(|(base, own)| *base > 0.0 && *own <= 0.0)
    }

    /// Baseline and cell. A total failure has no logarithm; what its block means is for the judgement.
    fn logarithms(&self) -> (Vec<f64>, Vec<f64>) {
        let answered = self.pairs.iter().filter(|(base, own)| *base > 0.0 && *own > 0.0);
        answered.map(|(base, own)| (base.ln(), own.ln())).unzip()
    }
}

/// A cell that failed totally in every block in which the baseline answered: worse, if there are at least two. Leaving its blocks out
/// would judge it by those that it survived.
fn never_answered(blocks: usize) -> Comparison {
    let verdict = if blocks > 1 { Verdict::Worse } else { Verdict::Inconclusive { more_blocks: None } };
    Comparison { ratio: 0.0, interval: None, blocks: 0, verdict, material: blocks > 1, warnings: Vec::new() }
}

#[cfg(test)]
mod tests;
