//! A comparison in words: of a cell with the baseline, of two sides that a plan names, of what factors do together.

use crate::language::{Catalogue, Sentence};
use crate::view::ComparisonView;
use crate::view::run::comparison_warning;
use crate::view::table::{percent, ratio};
use model::plan::{Cell, Contrast, Plan, Role};
use stats::{Comparison, PILOT, Verdict, Warning};
use verdicts::Compared;

/// More missing blocks than this are not counted: nobody makes them, and an estimate that far ahead is a guess.
pub(crate) const MOST_MISSING: u32 = 100;

/// About how many blocks more would decide it, where that is not decided and can be told.
pub(crate) fn missing(comparison: &Comparison) -> Option<u32> {
    match comparison.verdict {
        Verdict::Inconclusive { more_blocks } => more_blocks,
        Verdict::Better | Verdict::Worse | Verdict::Equivalent => None,
    }
}

/// The same in a table.
pub(crate) fn missing_shown(blocks: u32) -> String {
    if blocks > MOST_MISSING { format!("> {MOST_MISSING}") } else { blocks.to_string() }
}

/// The sentences of one kind of question.
struct Wording {
    compared: &'static str,
    once: &'static str,
    unanswered: &'static str,
    /// Whether one side is the better one.
    judges: bool,
    /// One word for better, worse, equivalent, inconclusive.
    verdicts: [&'static str; 4],
    /// The end of the whole sentence for them.
    long: [&'static str; 4],
}

const VERDICTS: [&str; 4] = ["verdict-better", "verdict-worse", "verdict-equivalent", "verdict-inconclusive"];
const LONG: [&str; 4] =
    ["verdict-better-long", "verdict-worse-long", "verdict-equivalent-long", "verdict-inconclusive-long"];

const OF_CELL: Wording = Wording {
    compared: "compared",
    once: "compared-once",
    unanswered: "compared-unanswered",
    judges: true,
    verdicts: VERDICTS,
    long: LONG,
};

const OF_SIDES: Wording = Wording {
    compared: "contrast-compared",
    once: "contrast-once",
    unanswered: "contrast-unanswered",
    judges: true,
    verdicts: VERDICTS,
    long: LONG,
};

const TOGETHER: Wording = Wording {
    compared: "interaction-compared",
    once: "interaction-once",
    unanswered: "interaction-unanswered",
    judges: false,
    verdicts: ["interaction-more", "interaction-less", "interaction-independent", "verdict-inconclusive"],
    long: ["interaction-more", "interaction-less", "interaction-independent-long", "verdict-inconclusive-long"],
};

/// A cell against the baseline.
pub(crate) fn of_cell(compared: &Compared, cell: &Cell, plan: &Plan, words: &Catalogue) -> ComparisonView {
    // The A/A cell is there to measure the noise; nobody waits for it to be conclusive.
    view(compared, &OF_CELL, plan.margin, cell.role != Role::Again, plan, words)
}

/// A contrast of the plan.
pub(crate) fn of_contrast(compared: &Compared, contrast: &Contrast, plan: &Plan, words: &Catalogue) -> ComparisonView {
    view(compared, wording(contrast), contrast.margin, true, plan, words)
}

/// The one word for what a contrast came to.
pub(crate) fn verdict_of_contrast(comparison: &Comparison, contrast: &Contrast, words: &Catalogue) -> Sentence {
    let wording = wording(contrast);
    words.say(wording.verdicts[wording.place(comparison)], &[])
}

/// The one word for a verdict.
pub(crate) fn verdict_word(verdict: Verdict, words: &Catalogue) -> Sentence {
    words.say(VERDICTS[place(verdict)], &[])
}

/// The end of a sentence that says it.
pub(crate) fn verdict_told(verdict: Verdict, margin: f64, words: &Catalogue) -> Sentence {
    words.say(LONG[place(verdict)], &[("margin", percent(margin).into())])
}

/// Where a verdict stands in the tables.
fn place(verdict: Verdict) -> usize {
    match verdict {
        Verdict::Better => 0,
        Verdict::Worse => 1,
        Verdict::Equivalent => 2,
        Verdict::Inconclusive { .. } => 3,
    }
}

fn wording(contrast: &Contrast) -> &'static Wording {
    if contrast.has_sides() { &OF_SIDES } else { &TOGETHER }
}

impl Wording {
    /// Which of the four it is.
    fn place(&self, comparison: &Comparison) -> usize {
        match comparison.verdict {
            // Of what factors do together it is said whether it is more or less, not whether that is good.
            Verdict::Better | Verdict::Worse if !self.judges => usize::from(comparison.ratio < 1.0),
            verdict => place(verdict),
        }
    }
}

fn view(
    compared: &Compared,
    wording: &Wording,
    margin: f64,
    waits: bool,
    plan: &Plan,
    words: &Catalogue,
) -> ComparisonView {
    let Compared { comparison, unanswered, .. } = compared;
    let mut arguments = vec![("ratio", ratio(comparison.ratio).into()), ("blocks", comparison.blocks.into())];
    let result = match comparison.interval {
        Some(interval) => {
            arguments.push(("low", ratio(interval.low).into()));
            arguments.push(("high", ratio(interval.high).into()));
            arguments.push(("confidence", percent(plan.confidence).into()));
            words.say(wording.compared, &arguments)
        }
        None if comparison.ratio > 0.0 => words.say(wording.once, &arguments),
        None => {
            let arguments = [("ratio", ratio(comparison.ratio).into()), ("blocks", unanswered.into())];
            words.say(wording.unanswered, &arguments)
        }
    };
    let judgement = match comparison.verdict {
        Verdict::Inconclusive { more_blocks: Some(n) } if waits => {
            let id = if n > MOST_MISSING { "verdict-inconclusive-many" } else { "verdict-inconclusive-more" };
            words.say(id, &[("blocks", n.min(MOST_MISSING).into())])
        }
        Verdict::Inconclusive { more_blocks: None } if waits && comparison.blocks == 1 && *unanswered == 0 => {
            words.say("verdict-inconclusive-once", &[("blocks", (PILOT - 1).into())])
        }
        _ => words.say(wording.long[wording.place(comparison)], &[("margin", percent(margin).into())]),
    };
    let dropped = (comparison.ratio > 0.0 && *unanswered > 0).then(|| {
        let of = unanswered + comparison.blocks;
        words.say("warn-unanswered", &[("blocks", unanswered.into()), ("of", of.into())])
    });
    let own = |warning: &&Warning| !matches!(warning, Warning::AgainDiffers { .. });
    let doubtful = comparison.warnings.iter().filter(own).filter_map(|warning| comparison_warning(warning, words));
    ComparisonView {
        ratio: comparison.ratio,
        low: comparison.interval.map(|interval| interval.low),
        high: comparison.interval.map(|interval| interval.high),
        blocks: comparison.blocks,
        blocks_unanswered: *unanswered,
        judged: wording.judges.then_some(comparison.verdict),
        verdict: words.say(wording.verdicts[wording.place(comparison)], &[]),
        sentence: words
            .say("compared-and-judged", &[("compared", result.text.into()), ("judgement", judgement.text.into())]),
        warnings: dropped.into_iter().chain(doubtful).collect(),
    }
}
