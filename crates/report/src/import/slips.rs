//! Every slip in words.

use super::{GroupView, ReportView, SlipView, number};
use crate::language::{Catalogue, Sentence};
use abtext::{Document, Field, Formula, Report, Slip, Weight, What};
use fluent_bundle::FluentValue;
use model::import::Import;

/// Stands for the id of a sentence that nobody wrote.
const WORDLESS: &str = "wordless";

/// What does not add up and what must be known, the worst first, else in the order of the texts.
pub(super) fn of(
    import: &Import,
    documents: &[Document],
    groups: &[GroupView],
    lost: Vec<SlipView>,
    words: &Catalogue,
) -> Vec<SlipView> {
    let mut found = lost;
    let views = || groups.iter().flat_map(|group| &group.reports);
    for view in views() {
        let told = |slip: Slip| slip_view(&view.source, &slip, words);
        found.extend(view.report.slips().into_iter().map(told));
        if let Some(line) = view.report.first_skipped {
            let sentence = words.say("slip-skipped", &[("n", view.report.skipped.into())]);
            found.push(SlipView { source: view.source.clone(), line, weight: Weight::Note, sentence });
        }
    }
    let reports: Vec<&Report> = views().map(|view| &view.report).collect();
    let views: Vec<&ReportView> = views().collect();
    found.extend(abtext::headers(&reports).iter().filter_map(|slip| heads(slip, &views, words)));
    for (source, document) in import.sources.iter().zip(documents) {
        found.extend(document.claims.iter().map(|slip| slip_view(&source.name, slip, words)));
        let fragment = |line: &usize| {
            let sentence = words.say("slip-fragment", &[]);
            SlipView { source: source.name.clone(), line: *line, weight: Weight::Note, sentence }
        };
        found.extend(document.fragments.iter().map(fragment));
    }
    let place = |view: &SlipView| import.sources.iter().position(|source| source.name == view.source);
    found.sort_by_key(|view| (std::cmp::Reverse(view.weight), place(view), view.line));
    found
}

/// A slip of one report, or of a text.
fn slip_view(source: &str, slip: &Slip, words: &Catalogue) -> SlipView {
    let sentence = sentence(&slip.what, words);
    SlipView { source: source.to_owned(), line: slip.line, weight: slip.weight(), sentence }
}

fn sentence(what: &What, words: &Catalogue) -> Sentence {
    let worded = about_rates(what, words).or_else(|| about_counts(what, words)).or_else(|| about_times(what, words));
    // A slip without words is one all the same; a test holds that there is none.
    worded.unwrap_or_else(|| Sentence { id: WORDLESS.to_owned(), text: format!("{what:?}") })
}

fn text(value: f64, decimals: usize) -> FluentValue<'static> {
    number(value, decimals).into()
}

fn about_rates(what: &What, words: &Catalogue) -> Option<Sentence> {
    Some(match what {
        What::UnpaddedSeconds { written, seconds } => words.say(
            "slip-unpadded-seconds",
            &[("written", written.as_str().into()), ("seconds", format!("{seconds:.6}").into())],
        ),
        What::Differs { field, printed, formula, expected, follows } => {
            let decimals = printed.decimals as usize;
            let mut arguments = vec![
                ("label", field.label().into()),
                ("printed", format!("{:.decimals$}", printed.value).into()),
                ("expected", format!("{:.decimals$}", expected.middle()).into()),
                ("formula", formula.text().into()),
            ];
            arguments.extend(follows.map(|other| ("follows", follows_text(other).into())));
            words.say(if follows.is_some() { "slip-differs-follows" } else { "slip-differs" }, &arguments)
        }
        What::WholeKilobytes { printed, exact } => words
            .say("slip-whole-kilobytes", &[("printed", text(*printed, 2)), ("exact", format!("{exact:.2}").into())]),
        What::FailuresInRate { printed, good_rate, good, complete } => words.say(
            "slip-failures-in-rate",
            &[
                ("printed", format!("{printed:.2}").into()),
                ("rate", text(*good_rate, 3)),
                ("good", text(*good, 0)),
                ("complete", text(*complete, 0)),
            ],
        ),
        What::TableDiffers { rate, time, gives } => {
            let arguments =
                [("rate", text(*rate, 3)), ("time", text(*time, 3)), ("gives", format!("{gives:.2}").into())];
            words.say("slip-table-differs", &arguments)
        }
        What::Claim { written, nearest, line, base } => words.say(
            "slip-claim",
            &[
                ("written", written.as_str().into()),
                ("nearest", format!("{nearest:+.2}").into()),
                ("line", line.to_string().into()),
                ("base", base.to_string().into()),
            ],
        ),
        _ => return None,
    })
}

/// The other formula, with the label of the line that it belongs to.
fn follows_text(formula: Formula) -> String {
    let field = match formula {
        Formula::Rate => Field::Rate,
        Formula::Mean => Field::Mean,
        Formula::Across => Field::Across,
        Formula::Transfer | Formula::WholeTransfer => Field::TransferRate,
    };
    format!("{} ({})", formula.text(), field.label())
}

fn about_counts(what: &What, words: &Catalogue) -> Option<Sentence> {
    Some(match what {
        What::FailureSum { failed, causes } => {
            words.say("slip-failure-sum", &[("failed", text(*failed, 0)), ("causes", text(*causes, 0))])
        }
        What::Missing { fields } => {
            let labels: Vec<String> =
                fields.iter().map(|field| field.label().trim_end_matches(':').to_owned()).collect();
            words.say("slip-missing", &[("labels", words.list(&labels).into())])
        }
        What::KeepAliveUnused { complete } => words.say("slip-keep-alive-unused", &[("complete", text(*complete, 0))]),
        What::BodyBytes { answers, complete, in_flight } => {
            let id = if *in_flight { "slip-body-bytes-in-flight" } else { "slip-body-bytes" };
            words.say(id, &[("answers", text(*answers, 2)), ("complete", text(*complete, 0))])
        }
        What::BodiesExceedTotal { html, total } => {
            words.say("slip-bodies-exceed-total", &[("html", text(*html, 0)), ("total", text(*total, 0))])
        }
        What::Capped => words.say("slip-capped", &[]),
        What::OneWave { complete } => words.say("slip-one-wave", &[("complete", text(*complete, 0))]),
        What::FewWaves { waves } => words.say("slip-few-waves", &[("waves", text(*waves, 1))]),
        _ => return None,
    })
}

/// The slip that is about several reports: it names them.
fn heads(slip: &Slip, views: &[&ReportView], words: &Catalogue) -> Option<SlipView> {
    let What::HeaderBytes { per_answer, in_flight } = &slip.what else { return None };
    let id = if *in_flight { "slip-header-bytes-in-flight" } else { "slip-header-bytes" };
    let mut lengths: Vec<(String, Vec<&str>)> = Vec::new();
    for (index, bytes) in per_answer {
        let (shown, name) = (format!("{bytes:.2}"), views.get(*index)?.name.as_str());
        match lengths.iter_mut().find(|(other, _)| *other == shown) {
            Some((_, names)) => names.push(name),
            None => lengths.push((shown, vec![name])),
        }
    }
    let lists: Vec<String> = lengths.iter().map(|(bytes, names)| format!("{bytes} ({})", words.list(names))).collect();
    let sentence = words.say(id, &[("list", words.list(&lists).into())]);
    let source = views.get(per_answer.first()?.0)?.source.clone();
    Some(SlipView { source, line: slip.line, weight: slip.weight(), sentence })
}

fn about_times(what: &What, words: &Catalogue) -> Option<Sentence> {
    Some(match what {
        What::Little { in_flight, asked } => {
            words.say("slip-little", &[("in_flight", text(*in_flight, 1)), ("asked", text(*asked, 0))])
        }
        What::RowOrder { row } => words.say("slip-row-order", &[("row", row.name().into())]),
        What::PartsDiffer { parts, total } => {
            words.say("slip-parts-differ", &[("parts", text(*parts, 1)), ("total", text(*total, 1))])
        }
        What::PercentileFalls { percent } => {
            words.say("slip-percentile-falls", &[("percent", percent.to_string().into())])
        }
        What::PercentileDiffers { percent, listed, table, odd } => {
            let id = if *odd { "slip-percentile-odd" } else { "slip-percentile-differs" };
            let percent = ("percent", percent.to_string().into());
            words.say(id, &[percent, ("listed", text(*listed, 0)), ("table", text(*table, 0))])
        }
        What::Skewed { median, mean, max } => {
            words.say("slip-skewed", &[("median", text(*median, 0)), ("mean", text(*mean, 0)), ("max", text(*max, 0))])
        }
        What::Glued { written, value } => {
            words.say("slip-glued", &[("written", written.as_str().into()), ("value", text(*value, 0))])
        }
        // Slips about several reports are worded with the names of these.
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::Language;
    use abtext::{Number, Range, Row};

    fn every_one_but_those_about_several() -> Vec<What> {
        let printed = Number { value: 1.0, decimals: 1 };
        let differs = |follows| What::Differs {
            field: Field::Mean,
            printed,
            formula: Formula::Mean,
            expected: Range { low: 2.0, high: 2.0 },
            follows,
        };
        let bytes = |in_flight| What::BodyBytes { answers: 2.0, complete: 1.0, in_flight };
        let median = |odd| What::PercentileDiffers { percent: 50, listed: 1.0, table: 2.0, odd };
        vec![
            What::UnpaddedSeconds { written: "1.234".into(), seconds: 1.000_234 },
            differs(None),
            differs(Some(Formula::WholeTransfer)),
            What::WholeKilobytes { printed: 1.0, exact: 1.01 },
            What::FailureSum { failed: 1.0, causes: 2.0 },
            What::Missing { fields: vec![Field::Html, Field::Times(Row::Total, abtext::Stat::Max)] },
            What::FailuresInRate { printed: 2.0, good_rate: 1.0, good: 1.0, complete: 2.0 },
            What::KeepAliveUnused { complete: 1.0 },
            bytes(true),
            bytes(false),
            What::BodiesExceedTotal { html: 2.0, total: 1.0 },
            What::Capped,
            What::OneWave { complete: 1.0 },
            What::FewWaves { waves: 2.5 },
            What::Little { in_flight: 1.0, asked: 2.0 },
            What::RowOrder { row: Row::Waiting },
            What::PartsDiffer { parts: 1.0, total: 9.0 },
            What::PercentileFalls { percent: 66 },
            median(true),
            median(false),
            What::Skewed { median: 1.0, mean: 2.0, max: 300.0 },
            What::Glued { written: "10012".into(), value: 12.0 },
            What::TableDiffers { rate: 1.0, time: 2.0, gives: 500.0 },
            What::Claim { written: "1".into(), nearest: 3.0, line: 2, base: 1 },
        ]
    }

    #[test]
    fn every_slip_has_words_in_every_language() {
        for language in Language::ALL {
            let words = Catalogue::of(language);
            for what in every_one_but_those_about_several() {
                let sentence = sentence(&what, &words);
                assert_ne!(sentence.id, WORDLESS, "{what:?}");
                assert_ne!(sentence.id, sentence.text, "{what:?}");
            }
        }
    }
}
