//! What a plan asks, as weighted sums over cells on the scale of logarithms, and the numbers of a run that answer it.

use crate::Metric;
use model::plan::{Cell, Contrast, Plan, Role};
use model::run::Run;
use stats::{Comparison, Criteria, Pairs, StatsError, Verdict};
use std::collections::BTreeMap;

/// A question.
#[derive(Debug, Clone)]
pub(crate) struct Question<'a> {
    /// Name of the cell or of the contrast.
    pub(crate) name: &'a str,
    /// Cells with their weights.
    weights: Vec<(&'a str, f64)>,
    /// Differences smaller than this are of no interest.
    margin: f64,
    /// Whether it compares two sides, so that one that never answers is the worse one.
    has_sides: bool,
}

/// The questions that decide a plan: its contrasts, or how each cell compares with the baseline.
pub(crate) fn asked(plan: &Plan) -> Vec<Question<'_>> {
    if plan.contrasts.is_empty() {
        plan.cells
            .iter()
            .filter(|cell| cell.role == Role::Candidate)
            .map(|cell| Question::of_cell(plan, cell))
            .collect()
    } else {
        plan.contrasts.iter().map(Question::of_contrast).collect()
    }
}

/// What the baseline's second copy is there for.
pub(crate) fn again(plan: &Plan) -> Option<Question<'_>> {
    plan.again().map(|cell| Question::of_cell(plan, cell))
}

impl<'a> Question<'a> {
    fn of_cell(plan: &'a Plan, cell: &'a Cell) -> Question<'a> {
        let weights = vec![(cell.name.as_str(), 1.0), (plan.baseline().name.as_str(), -1.0)];
        Question { name: &cell.name, weights, margin: plan.margin, has_sides: true }
    }

    fn of_contrast(contrast: &'a Contrast) -> Question<'a> {
        let weights = contrast.weights.iter().map(|(cell, weight)| (cell.as_str(), *weight)).collect();
        Question { name: &contrast.name, weights, margin: contrast.margin, has_sides: contrast.has_sides() }
    }

    /// The standard deviation of its log-ratio as a multiple of that of two cells, when all cells are as noisy.
    pub(crate) fn reach(&self) -> f64 {
        (self.weights.iter().map(|(_, weight)| weight * weight).sum::<f64>() / 2.0).sqrt()
    }

    /// Whether it compares two sides that a timetable asks for so many answers.
    pub(crate) fn is_paced(&self, plan: &Plan) -> bool {
        let mut cells = plan.cells.iter().filter(|cell| self.weights.iter().any(|(name, _)| *name == cell.name));
        self.has_sides && cells.all(|cell| plan.load(cell).is_open())
    }

    /// By what it is judged.
    pub(crate) fn criteria(&self, plan: &Criteria) -> Result<Criteria, StatsError> {
        plan.with_margin(self.margin)
    }

    /// The numbers of the blocks in which all its cells were measured; `None` when there is no such block.
    pub(crate) fn paired(self, run: &Run, metric: Metric) -> Option<Paired<'a>> {
        let numbers = |cell: &str| -> BTreeMap<u32, Option<f64>> {
            run.measured(cell).map(|(trial, load)| (trial.block, metric.of(trial, load))).collect()
        };
        let cells: Vec<_> = self.weights.iter().map(|(cell, weight)| (numbers(cell), *weight)).collect();
        let (first, _) = cells.first()?;
        let in_block = |block: &u32| {
            let mut sides = Sides::default();
            for (numbers, weight) in &cells {
                sides.add(*numbers.get(block)?, *weight, metric);
            }
            Some(sides)
        };
        let blocks: Vec<Sides> = first.keys().filter_map(in_block).collect();
        (!blocks.is_empty()).then_some(Paired { question: self, metric, blocks })
    }
}

/// Both sides of a question in one block: weighted sums of logarithms, or `None` where a cell gave no number.
#[derive(Debug, Clone, Copy)]
struct Sides {
    against: Option<f64>,
    of: Option<f64>,
    /// How far the last digits of all cells together leave their difference open.
    grain: f64,
}

impl Default for Sides {
    fn default() -> Sides {
        Sides { against: Some(0.0), of: Some(0.0), grain: 0.0 }
    }
}

impl Sides {
    /// A total failure has no logarithm; what its block means is for the judgement.
    fn add(&mut self, number: Option<f64>, weight: f64, metric: Metric) {
        self.grain += number.map_or(0.0, |number| weight.abs() * metric.grain(number));
        let side = if weight > 0.0 { &mut self.of } else { &mut self.against };
        *side = side.zip(number.filter(|number| *number > 0.0)).map(|(sum, number)| sum + weight.abs() * number.ln());
    }
}

/// A question with the numbers of its blocks.
pub(crate) struct Paired<'a> {
    pub(crate) question: Question<'a>,
    metric: Metric,
    blocks: Vec<Sides>,
}

impl Paired<'_> {
    /// How many blocks there are, with or without numbers.
    pub(crate) fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// Whether those that the others are compared with gave a number together in any block; else there is nothing to compare with.
    pub(crate) fn can_be_compared(&self) -> bool {
        self.blocks.iter().any(|sides| sides.against.is_some())
    }

    /// Whether there is a block without a number.
    pub(crate) fn lacks_numbers(&self) -> bool {
        self.blocks.iter().any(|sides| sides.against.is_none() || sides.of.is_none())
    }

    /// How far the last digits of its numbers leave the ratio open, on the scale of logarithms; of the block in which that is most.
    pub(crate) fn grain(&self) -> f64 {
        self.blocks.iter().map(|sides| sides.grain).fold(0.0, f64::max)
    }

    /// What is compared with always gave good answers, and the other side never did. Of numbers other than throughput none at all only
    /// says that it is not known.
    pub(crate) fn is_silent(&self) -> bool {
        self.metric == Metric::Goodput && self.blocks.iter().all(|sides| sides.against.is_some() && sides.of.is_none())
    }

    /// The logarithms of both sides, in the blocks that have both.
    pub(crate) fn logarithms(&self) -> (Vec<f64>, Vec<f64>) {
        self.blocks.iter().filter_map(|sides| sides.against.zip(sides.of)).unzip()
    }

    /// A side that failed totally in every block in which the other answered: worse, if there are at least two. Leaving its blocks out
    /// would judge it by those that it survived.
    pub(crate) fn never_answered(&self) -> Comparison {
        let worse = self.blocks() > 1 && self.question.has_sides;
        let verdict = if worse { Verdict::Worse } else { Verdict::Inconclusive { more_blocks: None } };
        Comparison { ratio: 0.0, interval: None, blocks: 0, verdict, material: worse, warnings: Vec::new() }
    }

    /// The variance of the log-ratios from block to block.
    pub(crate) fn variance(&self) -> Option<f64> {
        let (against, of) = self.logarithms();
        let differences: Vec<f64> = of.iter().zip(&against).map(|(of, against)| of - against).collect();
        stats::summarize(&differences).ok()?.sd.map(|sd| sd * sd)
    }
}

/// Judges questions together.
pub(crate) fn judge(family: &[&Paired<'_>], criteria: &Criteria) -> Vec<Result<Comparison, StatsError>> {
    let logarithms: Vec<_> = family.iter().map(|paired| paired.logarithms()).collect();
    let judged = family.iter().zip(&logarithms).map(|(paired, (against, of))| {
        Ok((Pairs { baseline: against, other: of }, paired.question.criteria(criteria)?))
    });
    match judged.collect::<Result<Vec<_>, StatsError>>() {
        Ok(family) => stats::compare_each(&family),
        Err(error) => family.iter().map(|_| Err(error)).collect(),
    }
}
