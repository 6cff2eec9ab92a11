//! What the rules say about a run: comparisons of cells and diagnoses of trials. No words yet.

use crate::language::{Catalogue, Sentence};
use crate::view::table::{percent, ratio};
use diagnosis::Diagnosis;
use model::plan::{Cell, Contrast, Role};
use model::run::Run;
use model::trial::Trial;
use stats::{Comparison, LOOKS, StatsError};
use verdicts::{Compared, Metric, Verdicts};

/// A run's verdicts.
pub(crate) struct Judged {
    verdicts: Verdicts,
    /// By the position of the trial in the run; `None` for trials without a load.
    trials: Vec<Option<Diagnosis>>,
}

impl Judged {
    pub(crate) fn of(run: &Run) -> Judged {
        let diagnosed = |trial: &Trial| {
            let cell = run.head.plan.cell(&trial.cell)?;
            trial.load.as_ref()?;
            // Of a server elsewhere the readings say nothing.
            run.head.plan.server.is_here().then(|| diagnosis::diagnose(&run.head, cell, trial))
        };
        Judged { verdicts: Verdicts::of(run, Metric::Goodput), trials: run.trials.iter().map(diagnosed).collect() }
    }

    /// The comparisons alone, of a run in which nothing is known of the server.
    pub(crate) fn undiagnosed(run: &Run) -> Judged {
        Judged { verdicts: Verdicts::of(run, Metric::Goodput), trials: Vec::new() }
    }

    /// All verdicts on throughput.
    pub(crate) fn verdicts(&self) -> &Verdicts {
        &self.verdicts
    }

    /// A cell against the baseline.
    pub(crate) fn compared(&self, cell: &Cell) -> Option<&Compared> {
        self.verdicts.compared(cell)
    }

    /// A contrast of the plan.
    pub(crate) fn contrast(&self, contrast: &Contrast) -> Option<&Compared> {
        self.verdicts.contrast(contrast)
    }

    /// Every comparison made, by the name of its cell or contrast, in the plan's order.
    pub(crate) fn comparisons<'a>(&'a self, run: &'a Run) -> impl Iterator<Item = (&'a str, &'a Comparison)> {
        let plan = &run.head.plan;
        let of_cells = plan.cells.iter().map(|cell| (cell.name.as_str(), self.compared(cell)));
        let of_contrasts = plan.contrasts.iter().map(|contrast| (contrast.name.as_str(), self.contrast(contrast)));
        of_cells.chain(of_contrasts).filter_map(|(name, compared)| Some((name, &compared?.comparison)))
    }

    /// The comparisons that could not be made, by cell.
    pub(crate) fn refused(&self) -> &[(String, StatsError)] {
        self.verdicts.refused()
    }

    /// What limited the trial at this position in the run.
    pub(crate) fn trial(&self, index: usize) -> Option<&Diagnosis> {
        self.trials.get(index)?.as_ref()
    }

    /// What limited a cell, over its trials that count.
    pub(crate) fn cell(&self, run: &Run, cell: &Cell) -> Option<Diagnosis> {
        let counts = |trial: &Trial| trial.cell == cell.name && trial.measured().is_some();
        let of_cell = run.trials.iter().zip(&self.trials).filter(|(trial, _)| counts(trial));
        let found: Vec<Diagnosis> = of_cell.filter_map(|(_, diagnosis)| diagnosis.clone()).collect();
        (!found.is_empty()).then(|| diagnosis::over_trials(&found))
    }

    /// How the comparisons were judged: together, and at looks; and why a run ended that was to end when it was decided.
    pub(crate) fn judging(&self, run: &Run, words: &Catalogue) -> Vec<Sentence> {
        let plan = &run.head.plan;
        let candidates = plan.cells.iter().filter(|cell| cell.role == Role::Candidate);
        let asked = candidates.map(|cell| self.compared(cell));
        let asked = asked.chain(plan.contrasts.iter().map(|contrast| self.contrast(contrast)));
        let intervals = asked.flatten().filter(|compared| compared.comparison.interval.is_some());
        let (cells, confidence) = (intervals.count(), percent(plan.confidence));
        let mut sentences = Vec::new();
        if cells > 1 {
            sentences
                .push(words.say("judged-together", &[("n", cells.into()), ("confidence", confidence.clone().into())]));
        }
        if plan.until_decided {
            let (made, standing) = (run.whole_blocks(), verdicts::standing(run));
            let ended = match made < plan.blocks {
                _ if standing.decided => "judged-decided",
                true if standing.settled => "judged-settled",
                true => "judged-early",
                false => "judged-undecided",
            };
            let arguments = [("looks", LOOKS.len().into()), ("confidence", confidence.into())];
            sentences.push(words.say("judged-looks", &arguments));
            sentences.push(words.say(ended, &[("blocks", made.into())]));
        }
        sentences
    }

    /// What the A/A cell says about noise.
    pub(crate) fn noise_floor(&self, run: &Run, words: &Catalogue) -> Option<Sentence> {
        let cell = run.head.plan.again()?;
        let again = &self.compared(cell)?.comparison;
        let (interval, floor) = (again.interval?, stats::noise_floor(again)?);
        Some(words.say(
            "noise-floor",
            &[
                ("ratio", ratio(again.ratio).into()),
                ("low", ratio(interval.low).into()),
                ("high", ratio(interval.high).into()),
                ("floor", ratio(floor).into()),
            ],
        ))
    }
}
