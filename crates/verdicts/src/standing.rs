//! How far a run is with what its plan asks.

use crate::question::{self, Question};
use crate::{Metric, Verdicts};
use model::run::Run;
use stats::Verdict;

/// By what settings are told from each other that give as many answers because a timetable asks for so many.
pub(crate) const LATENCIES: [Metric; 2] = [Metric::P99, Metric::Median];

/// Whether a run would gain by further blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// Whether every question of the plan has an answer. The A/A cell asks none.
    pub decided: bool,
    /// Whether no further block can change anything: every question has an answer, or can have none any more.
    pub settled: bool,
}

/// What is known of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    /// Its answer.
    Answer(Verdict),
    /// Not enough; further blocks may tell.
    NotYet,
    /// Nothing, however many blocks there will be.
    Never,
}

/// How far a run is: each question is answered by good answers per second; where a timetable asks for as many of all, by p99, and only where
/// that is equivalent by the median.
#[must_use]
pub fn standing(run: &Run) -> Standing {
    let plan = &run.head.plan;
    let asked = question::asked(plan);
    let goodput = Verdicts::of(run, Metric::Goodput);
    let is_paced = asked.iter().any(|question| question.is_paced(plan));
    let latencies = LATENCIES.iter().filter(|_| is_paced).map(|metric| Verdicts::of(run, *metric)).collect::<Vec<_>>();
    let known = |question: &Question<'_>| {
        let by_goodput = goodput.known(question);
        if by_goodput != Known::Answer(Verdict::Equivalent) || !question.is_paced(plan) {
            return by_goodput;
        }
        // A latency that has no number tells nothing either way.
        let decides = |known: &Known| !matches!(known, Known::Answer(Verdict::Equivalent) | Known::Never);
        latencies.iter().map(|verdicts| verdicts.known(question)).find(decides).unwrap_or(by_goodput)
    };
    let answers: Vec<Known> = asked.iter().map(known).collect();
    Standing {
        decided: answers.iter().all(|answer| matches!(answer, Known::Answer(_))),
        settled: !answers.contains(&Known::NotYet),
    }
}

/// By which metric a run is decided, for a word on what its noise allows: good answers per second, unless a timetable asks for as many in all
/// its questions; then the first latency that there is of all its trials. [`standing`] goes by each question for itself.
#[must_use]
pub fn decisive(run: &Run) -> Metric {
    let plan = &run.head.plan;
    let asked = question::asked(plan);
    let has_numbers = |metric: &&Metric| {
        let questions = asked.iter().filter_map(|question| question.clone().paired(run, **metric));
        questions.into_iter().all(|paired| !paired.lacks_numbers())
    };
    let is_paced = !asked.is_empty() && asked.iter().all(|question| question.is_paced(plan));
    LATENCIES.iter().filter(|_| is_paced).find(has_numbers).copied().unwrap_or(Metric::Goodput)
}
