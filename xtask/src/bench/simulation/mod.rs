//! `cargo xtask bench statistics`: the rules by which webdyno calls a difference, on thousands of simulated plans of known truth, beside
//! the rules that benchstat and hyperfine publish. Seeded: the same numbers at any time and on any machine.

mod beside;
mod plan;
mod rules;

use super::machine;
use anyhow::Context;
use beside::{Case, TRIALS};
use plan::{Drift, Machine};
use rules::{criteria, judged, webdyno};
use stats::{Pairs, Verdict, compare, compare_all, compare_apart, resolvable};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// What was typed after `bench statistics`.
#[derive(clap::Args)]
pub(super) struct Flags {
    /// Simulated plans of each kind; a published result has 10000
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    plans: u64,
    /// Folder for the result [default: bench in cargo's target folder]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Noise of one trial where nothing else is said.
const SIGMA: f64 = 0.015;

/// One line of the result.
struct Row {
    what: String,
    values: Vec<String>,
    goal: Option<Goal>,
}

/// A goal and what was seen.
struct Goal {
    text: String,
    met: bool,
}

/// Simulates everything and writes the page.
pub(super) fn run(flags: &Flags, target: &Path) -> anyhow::Result<()> {
    let plans = flags.plans;
    let mut page = format!(
        "# Verdicts on plans of known truth\n\n{day}, commit {commit}: {plans} simulated plans behind each figure, those of the seeds 0 to {last}.\n\n\
         Trials have a noise of 1.5 % unless another is named. webdyno: randomised blocks with an A/A cell, looked at after 6, 10, 16 and 24 \
         blocks, 95 %, a margin of 2 %.\n\nThe rules of others work twice. *The same numbers*: all that webdyno's plan drew of the baseline and \
         of the compared cell until it was done, looked at once, then. *In sequence*: as with the tool itself, {TRIALS} trials of one cell, \
         then {TRIALS} of the other, drawn anew with the same noise and drift.\n\n",
        day = machine::today(),
        commit = machine::commit(),
        last = plans - 1,
    );
    let tables = [
        ("Differences that are not there", false_differences(plans)),
        ("Intervals that hold the truth", coverage(plans)),
        ("Differences that are there", power(plans)),
        ("What blocks are said to show", promises(plans)),
        ("Equivalence that is not there", false_equivalence(plans)),
        ("Several cells at once", families(plans)),
        ("Runs compared afterwards", apart(plans)),
    ];
    for (title, (heads, rows)) in &tables {
        write_table(&mut page, title, heads, rows)?;
    }
    let folder = flags.out.clone().unwrap_or_else(|| target.join("bench"));
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let file = folder.join("simulation.md");
    fs::write(&file, &page).with_context(|| format!("cannot write {}", file.display()))?;
    println!("{page}{}", file.display());
    Ok(())
}

fn write_table(page: &mut String, title: &str, heads: &[&str], rows: &[Row]) -> std::fmt::Result {
    writeln!(page, "## {title}\n\n| {} | goal |\n|{}", heads.join(" | "), "---|".repeat(heads.len() + 1))?;
    for Row { what, values, goal } in rows {
        let goal = goal
            .as_ref()
            .map_or(String::new(), |goal| format!("{}: {}", goal.text, if goal.met { "met" } else { "**not met**" }));
        writeln!(page, "| {what} | {} | {goal} |", values.join(" | "))?;
    }
    writeln!(page)
}

type Table = (Vec<&'static str>, Vec<Row>);

fn is_difference(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Better | Verdict::Worse)
}

/// What so many plans come to, each with a machine of its own.
fn simulated<T>(plans: u64, drift: Drift, sigma: f64, mut run: impl FnMut(&mut Machine) -> T) -> Vec<T> {
    (0..plans).map(|seed| run(&mut Machine::new(seed, drift, sigma))).collect()
}

fn share_of<T>(all: &[T], holds: impl Fn(&T) -> bool) -> f64 {
    all.iter().filter(|it| holds(it)).count() as f64 / all.len() as f64
}

/// Of so many plans, each with a machine of its own.
fn share(plans: u64, drift: Drift, sigma: f64, holds: impl FnMut(&mut Machine) -> bool) -> f64 {
    share_of(&simulated(plans, drift, sigma, holds), |held| *held)
}

fn percent(share: f64) -> String {
    format!("{:.2} %", 100.0 * share)
}

fn at_most(limit: f64, share: f64) -> Option<Goal> {
    Some(Goal { text: format!("webdyno at most {} %", 100.0 * limit), met: share <= limit })
}

fn false_differences(plans: u64) -> Table {
    let cases = Drift::ALL.map(|drift| Case { head: drift.name(), drift, sigma: SIGMA, truth: 0.0 });
    let goal = |ours: &[f64], _: &[f64]| Goal {
        text: "webdyno at most 5.5 %".to_owned(),
        met: ours.iter().all(|share| *share <= 0.055),
    };
    beside::table("called different, by drift", plans, &cases, is_difference, goal)
}

fn coverage(plans: u64) -> Table {
    let row = |blocks: usize| {
        let covered = Drift::ALL.map(|drift| {
            share(plans, drift, SIGMA, |machine| {
                let numbers: Vec<_> = (0..blocks).map(|_| machine.block(&[0.0, 0.03])).collect();
                let cell = |cell: usize| numbers.iter().map(|block| block[cell]).collect::<Vec<f64>>();
                let compared = compare(Pairs { baseline: &cell(0), other: &cell(1) }, &criteria());
                let interval = compared.ok().and_then(|compared| compared.interval);
                interval.is_some_and(|interval| interval.low <= 0.03_f64.exp() && 0.03_f64.exp() <= interval.high)
            })
        });
        let met = covered.iter().all(|share| (0.94..=0.965).contains(share));
        let goal = Goal { text: "94 to 96.5 %".to_owned(), met };
        Row { what: format!("{blocks} blocks"), values: covered.map(percent).to_vec(), goal: Some(goal) }
    };
    (vec!["nominal 95 %", "no drift", "random walk", "linear"], [4, 6, 10, 16, 24].into_iter().map(row).collect())
}

fn power(plans: u64) -> Table {
    let case = |head, truth, sigma, drift| Case { head, drift, sigma, truth };
    let cases = [
        case("+3 %, noise 1.0 %", 0.03, 0.01, Drift::None),
        case("+3 %, noise 1.5 %", 0.03, 0.015, Drift::None),
        case("+5 %, noise 1.5 %", 0.05, 0.015, Drift::None),
        case("+10 %, noise 3.0 %", 0.1, 0.03, Drift::None),
        // Numbers in blocks are safe from drift by any rule; what drift costs a rule that does not pair them shows here.
        case("+3 %, noise 1.0 %, random walk", 0.03, 0.01, Drift::Walk),
        case("+3 %, noise 1.0 %, linear", 0.03, 0.01, Drift::Linear),
    ];
    let goal = |ours: &[f64], blocks: &[f64]| Goal {
        text: "the first at least 95 %, in at most 18 blocks".to_owned(),
        met: ours[0] >= 0.95 && blocks[0] <= 18.0,
    };
    beside::table("called better, by truth", plans, &cases, |verdict| *verdict == Verdict::Better, goal)
}

/// How often blocks show the difference that a run says they show with 80 % chance, held against an A/A cell and judged with the cells beside it.
fn promises(plans: u64) -> Table {
    let row = |(blocks, cells): (usize, usize)| {
        // Without a margin, so that none of them is called equivalent.
        let criteria = criteria().with_margin(0.0).expect("usable").beside_an_again_cell();
        let promised = resolvable(SIGMA * 2.0_f64.sqrt(), blocks, cells, &criteria).map_or(0.0, f64::ln);
        let mut truths = vec![0.0; cells];
        truths[0] = promised;
        let found = share(plans, Drift::None, SIGMA, |machine| {
            judged(machine, &truths, blocks, &criteria).first().is_some_and(|it| it.verdict == Verdict::Better)
        });
        Row {
            what: format!("{cells}, {blocks} blocks"),
            values: vec![format!("+{}", percent(promised.exp_m1())), percent(found)],
            goal: None,
        }
    };
    let heads = vec!["cells beside the baseline", "said to show with 80 % chance", "shown"];
    (heads, [(10, 1), (24, 1), (10, 5), (24, 5)].into_iter().map(row).collect())
}

fn false_equivalence(plans: u64) -> Table {
    let row = |sigma: f64| {
        let called = share(plans, Drift::None, sigma, |machine| {
            // Twice the margin, on the scale on which the margin is meant.
            webdyno(machine, &[2.0 * 0.02_f64.ln_1p()]).any(|verdict| *verdict == Verdict::Equivalent)
        });
        Row {
            what: format!("twice the margin, noise {:.1} %", 100.0 * sigma),
            values: vec![percent(called)],
            goal: at_most(0.01, called),
        }
    };
    (vec!["truth", "called equivalent"], [0.005, 0.01, 0.015, 0.03].into_iter().map(row).collect())
}

fn families(plans: u64) -> Table {
    let truths = [0.0, 0.0, 0.0, 0.05];
    let row = |drift: Drift| {
        let wrong =
            share(plans, drift, SIGMA, |machine| webdyno(machine, &truths).verdicts[..3].iter().any(is_difference));
        let held = share(plans, drift, SIGMA, |machine| {
            let numbers: Vec<_> = (0..10).map(|_| machine.block(&[0.0, 0.0, 0.0, 0.0, 0.05])).collect();
            let cell = |cell: usize| numbers.iter().map(|block| block[cell]).collect::<Vec<f64>>();
            let (baseline, others) = (cell(0), [1, 2, 3, 4].map(cell));
            let family = others.each_ref().map(|other| Pairs { baseline: &baseline, other });
            let compared: Vec<_> = compare_all(&family, &criteria()).into_iter().flatten().collect();
            let holds = |(it, truth): (&stats::Comparison, &f64)| {
                it.interval.is_some_and(|interval| interval.low <= truth.exp() && truth.exp() <= interval.high)
            };
            compared.len() == truths.len() && compared.iter().zip(&truths).all(holds)
        });
        let goal = Goal { text: "at most 5.5 %; at least 94 %".to_owned(), met: wrong <= 0.055 && held >= 0.94 };
        Row { what: drift.name().to_owned(), values: vec![percent(wrong), percent(held)], goal: Some(goal) }
    };
    let heads = vec!["3 cells of no difference beside one of +5 %", "any false difference", "all four intervals hold"];
    (heads, Drift::ALL.into_iter().map(row).collect())
}

/// Two runs, one after the other, of the same plan and the same server: `webdyno compare` and Welch's interval as it is.
fn apart(plans: u64) -> Table {
    let row = |(drift, blocks): (Drift, usize)| {
        let runs = |machine: &mut Machine| {
            let mut run = || (0..blocks).map(|_| machine.block(&[0.0, 0.0])[0]).collect::<Vec<f64>>();
            (run(), run())
        };
        let allowed = stats::Drift::between(2 * blocks, 2 * blocks, 0.0);
        let ours = share(plans, drift, SIGMA, |machine| {
            let (first, second) = runs(machine);
            compare_apart(&first, &second, &allowed, 1, &criteria()).is_ok_and(|it| is_difference(&it.verdict))
        });
        let welch = share(plans, drift, SIGMA, |machine| {
            let (first, second) = runs(machine);
            let spread = stats::unpaired(&first, &second, 0.95).ok().and_then(|it| it.spread);
            spread.is_some_and(|it| it.interval.low > 1.0 || it.interval.high < 1.0)
        });
        let values = vec![percent(ours), percent(welch), percent(allowed.allowance(0.95).exp_m1())];
        Row { what: format!("{}, {blocks} blocks of 2 cells", drift.name()), values, goal: at_most(0.055, ours) }
    };
    let heads = vec!["drift, plan", "webdyno compare", "Welch", "differences that drift may make"];
    (heads, Drift::ALL.into_iter().flat_map(|drift| [6, 24].map(|blocks| (drift, blocks))).map(row).collect())
}
