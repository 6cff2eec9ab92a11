//! The questions that a plan asks by name, or by its factors: their answers, and which effects cannot be told apart.

use crate::language::{Catalogue, Sentence};
use crate::view::ComparisonView;
use crate::view::compared::{missing, missing_shown, of_contrast, verdict_of_contrast};
use crate::view::judged::Judged;
use crate::view::metrics::Others;
use crate::view::table::{NOTHING, Row, RowKind, Table, percent, ratio};
use model::plan::{Alias, Contrast, Design, Plan};
use model::run::Run;
use serde::Serialize;
use verdicts::Metric;

/// The answer to a question of the plan.
#[derive(Debug, Clone, Serialize)]
pub struct ContrastView {
    /// Its name.
    pub name: String,
    /// Whether it is what several factors do together, of which no side is better.
    pub is_interaction: bool,
    /// What is compared with what.
    pub sides: Option<Sentence>,
    /// The cells on the one side.
    pub of: Vec<String>,
    /// The cells on the other.
    pub against: Vec<String>,
    /// Differences smaller than this are of no interest.
    pub margin: f64,
    /// The effects that cannot be told from it.
    pub aliases: Option<Sentence>,
    /// Throughput as a ratio; `None` when no block has all of its cells.
    pub comparison: Option<ComparisonView>,
    /// The other metrics as ratios.
    pub metrics: Vec<RatioView>,
}

/// A metric of a contrast as a ratio.
#[derive(Debug, Clone, Serialize)]
pub struct RatioView {
    /// Which: `p50`, `p99`, `cpu-per-answer`, `memory-peak`.
    pub metric: &'static str,
    /// The ratio.
    pub ratio: f64,
    /// Lower end of its interval.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Blocks compared.
    pub blocks: usize,
    /// One word; less is better.
    pub verdict: Sentence,
    /// About so many blocks more would decide it; absent where it is decided or that cannot be told.
    pub more_blocks: Option<u32>,
}

/// How factors are combined.
#[derive(Debug, Clone, Serialize)]
pub struct DesignView {
    /// The factors, the generators, the resolution.
    #[serde(flatten)]
    pub design: Design,
    /// The same in words, with what cannot be told apart.
    pub sentences: Vec<Sentence>,
}

pub(crate) fn views(run: &Run, judged: &Judged, others: &Others, words: &Catalogue) -> Vec<ContrastView> {
    run.head.plan.contrasts.iter().map(|contrast| view(run, contrast, judged, others, words)).collect()
}

fn view(run: &Run, contrast: &Contrast, judged: &Judged, others: &Others, words: &Catalogue) -> ContrastView {
    let plan = &run.head.plan;
    let (of, against) = contrast.sides(&plan.cells);
    let (of, against): (Vec<String>, Vec<String>) =
        (of.into_iter().map(str::to_owned).collect(), against.into_iter().map(str::to_owned).collect());
    let metrics = others.each().filter_map(|(metric, verdicts)| {
        let comparison = &verdicts.contrast(contrast)?.comparison;
        Some(RatioView {
            metric: metric.name(),
            ratio: comparison.ratio,
            low: comparison.interval.map(|it| it.low),
            high: comparison.interval.map(|it| it.high),
            blocks: comparison.blocks,
            verdict: verdict_of_contrast(comparison, contrast, words),
            more_blocks: missing(comparison),
        })
    });
    ContrastView {
        name: contrast.name.clone(),
        is_interaction: !contrast.has_sides(),
        sides: sides(contrast, &of, &against, words),
        of,
        against,
        margin: contrast.margin,
        aliases: contrast.effect.as_ref().and_then(|effect| aliases(&effect.aliases, words)),
        comparison: judged.contrast(contrast).map(|compared| of_contrast(compared, contrast, plan, words)),
        metrics: metrics.collect(),
    }
}

/// What is compared with what; what several factors do together is said by its name.
fn sides(contrast: &Contrast, of: &[String], against: &[String], words: &Catalogue) -> Option<Sentence> {
    match &contrast.effect {
        None => {
            let sides = [("of", words.list(of).into()), ("against", words.list(against).into())];
            Some(words.say("contrast-sides", &sides))
        }
        Some(effect) => match effect.parts.as_slice() {
            [part] => {
                let levels = [("from", part.from.as_str().into()), ("to", part.to.as_str().into())];
                Some(words.say("effect-levels", &levels))
            }
            _ => None,
        },
    }
}

fn aliases(aliases: &[Alias], words: &Catalogue) -> Option<Sentence> {
    let name = |alias: &Alias| {
        let product = alias.factors.join(" × ");
        if alias.negative { words.say("alias-reversed", &[("effect", product.into())]).text } else { product }
    };
    let names: Vec<String> = aliases.iter().map(name).collect();
    (!names.is_empty()).then(|| words.say("effect-aliases", &[("effects", words.list(&names).into())]))
}

/// What the design is, and what it cannot tell apart.
pub(crate) fn design(plan: &Plan, words: &Catalogue) -> Option<DesignView> {
    let design = plan.design.as_ref()?;
    let cells = plan.cells.iter().filter(|cell| cell.role != model::plan::Role::Again).count();
    Some(DesignView { sentences: sentences(design, cells, words), design: design.clone() })
}

fn sentences(design: &Design, cells: usize, words: &Catalogue) -> Vec<Sentence> {
    let factor = |factor: &model::plan::Factor| {
        words
            .say("with-detail", &[("text", factor.name.as_str().into()), ("detail", factor.levels.join(", ").into())])
            .text
    };
    let factors = words.list(&design.factors.iter().map(factor).collect::<Vec<_>>());
    let all: usize = design.factors.iter().map(|factor| factor.levels.len()).product();
    let mut sentences = vec![match design.resolution {
        None => words.say("design-full", &[("factors", factors.into()), ("cells", cells.into())]),
        Some(_) => {
            let made = words.list(&design.generators);
            let arguments =
                [("factors", factors.into()), ("cells", cells.into()), ("all", all.into()), ("made", made.into())];
            words.say("design-fraction", &arguments)
        }
    }];
    sentences.extend(design.resolution.map(|resolution| match resolution {
        ..=3 => words.say("design-resolution-3", &[]),
        4 => words.say("design-resolution-4", &[]),
        _ => words.say("design-resolution-5", &[("resolution", resolution.to_string().into())]),
    }));
    sentences.push(words.say("design-effects", &[]));
    sentences
}

/// The answers side by side: throughput first, then the other metrics.
pub(crate) fn table(contrasts: &[ContrastView], confidence: f64, words: &Catalogue) -> Table {
    if contrasts.iter().all(|contrast| contrast.comparison.is_none()) {
        return Table::default();
    }
    let interval = words.say("row-interval", &[("confidence", percent(confidence).into())]).text;
    let row = |kind, label: String, figure: &dyn Fn(&ContrastView) -> Option<String>| Row {
        kind,
        label,
        figures: contrasts.iter().map(|it| figure(it).unwrap_or_else(|| NOTHING.to_owned())).collect(),
    };
    let mut rows = vec![
        row(RowKind::Ratio, words.word("row-ratio"), &|it| Some(format!("×{}", ratio(it.comparison.as_ref()?.ratio)))),
        row(RowKind::Interval, interval.clone(), &|it| {
            let comparison = it.comparison.as_ref()?;
            Some(format!("{}–{}", ratio(comparison.low?), ratio(comparison.high?)))
        }),
        row(RowKind::Verdict, words.word("row-verdict"), &|it| Some(it.comparison.as_ref()?.verdict.text.clone())),
    ];
    for metric in Metric::ALL.into_iter().filter(|metric| *metric != Metric::Goodput) {
        let of = |it: &ContrastView| it.metrics.iter().find(|view| view.metric == metric.name()).cloned();
        if contrasts.iter().all(|it| of(it).is_none()) {
            continue;
        }
        let label = words.word(&format!("ratio-{}", metric.name()));
        rows.push(row(RowKind::Failed, label, &|it| Some(format!("×{}", ratio(of(it)?.ratio)))));
        rows.push(row(RowKind::Interval, format!("  {interval}"), &|it| {
            let view = of(it)?;
            Some(format!("{}–{}", ratio(view.low?), ratio(view.high?)))
        }));
        rows.push(row(RowKind::Interval, format!("  {}", words.word("row-verdict")), &|it| Some(of(it)?.verdict.text)));
        if contrasts.iter().any(|it| of(it).is_some_and(|view| view.more_blocks.is_some())) {
            let label = format!("  {}", words.word("row-missing"));
            rows.push(row(RowKind::Interval, label, &|it| of(it)?.more_blocks.map(missing_shown)));
        }
    }
    let heads = contrasts.iter().map(|contrast| contrast.name.clone()).collect();
    let is_open = contrasts.iter().flat_map(|contrast| &contrast.metrics).any(|view| view.more_blocks.is_some());
    let notes = ["contrasts-note"].into_iter().chain(is_open.then_some("missing-note"));
    Table { heads, rows, notes: notes.map(|note| words.say(note, &[])).collect() }
}
