//! webdyno's rule beside those of others: on the very numbers that its plans drew, and on numbers drawn as their own tools have them drawn.

use super::plan::{Drift, Machine};
use super::rules::{Numbers, Outcome, webdyno};
use super::{Goal, Row, Table, percent, share_of, simulated};
use stats::Verdict;

/// Trials of each cell that the rules of others get in sequence: about as many as ours uses on average, and what their manuals show.
pub(super) const TRIALS: usize = 10;

/// A rule of others, and what it is called.
type Rule = (&'static str, fn(&Numbers) -> Verdict);

/// Those that are published.
const RULES: [Rule; 3] = [
    ("benchstat", Numbers::benchstat),
    ("hyperfine's line", Numbers::hyperfine),
    ("hyperfine's Welch", Numbers::welch),
];

/// One column: what machine the plans ran on, and how much better than the baseline the other cell really is, as a logarithm.
pub(super) struct Case {
    pub(super) head: &'static str,
    pub(super) drift: Drift,
    pub(super) sigma: f64,
    pub(super) truth: f64,
}

/// What the plans of one case drew, seed by seed.
struct Drawn {
    /// In blocks, and judged by webdyno.
    blocks: Vec<Outcome>,
    sequences: Vec<Numbers>,
    /// As `sequences`, of two trials.
    pairs: Vec<Numbers>,
}

impl Case {
    fn draw(&self, plans: u64) -> Drawn {
        let sequences = |trials: usize| {
            let run = |machine: &mut Machine| Numbers::in_sequence(machine, self.truth, trials);
            simulated(plans, self.drift, self.sigma, run)
        };
        Drawn {
            blocks: simulated(plans, self.drift, self.sigma, |machine| webdyno(machine, &[self.truth])),
            sequences: sequences(TRIALS),
            pairs: sequences(2),
        }
    }
}

/// How many of the plans of each case come to a verdict that `counts`, by every rule. `goal` is told webdyno's shares, and its average of
/// blocks.
pub(super) fn table(
    head: &'static str,
    plans: u64,
    cases: &[Case],
    counts: fn(&Verdict) -> bool,
    goal: impl Fn(&[f64], &[f64]) -> Goal,
) -> Table {
    let drawn: Vec<Drawn> = cases.iter().map(|case| case.draw(plans)).collect();
    let each = |value: &dyn Fn(&Drawn) -> f64| drawn.iter().map(value).collect::<Vec<f64>>();
    let row =
        |what: String, shares: &[f64]| Row { what, values: shares.iter().copied().map(percent).collect(), goal: None };

    let ours = each(&|drawn| share_of(&drawn.blocks, |outcome| outcome.any(counts)));
    let blocks = each(&|drawn| drawn.blocks.iter().map(Outcome::trials).sum::<usize>() as f64 / plans as f64);
    let same = RULES.map(|(name, rule)| {
        let shares = each(&|drawn| share_of(&drawn.blocks, |outcome| counts(&rule(&outcome.drawn))));
        row(format!("{name}, the same numbers"), &shares)
    });
    let sequential = RULES.map(|(name, rule)| {
        let shares = each(&|drawn| share_of(&drawn.sequences, |numbers| counts(&rule(numbers))));
        row(format!("{name}, in sequence"), &shares)
    });
    let by_eye = each(&|drawn| share_of(&drawn.pairs, |numbers| counts(&numbers.by_eye())));

    let mut rows = vec![Row { goal: Some(goal(&ours, &blocks)), ..row("webdyno".to_owned(), &ours) }];
    rows.extend(same);
    let values = blocks.iter().map(|blocks| format!("{blocks:.1}")).collect();
    rows.push(Row { what: "blocks of these, on average".to_owned(), values, goal: None });
    rows.extend(sequential);
    rows.push(row("by eye, in sequence, 2 trials each, above 3 %".to_owned(), &by_eye));
    (std::iter::once(head).chain(cases.iter().map(|case| case.head)).collect(), rows)
}
