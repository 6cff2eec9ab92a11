//! A load for a terminal: whether it came to what was expected, what to doubt, what was counted, and how long answers took.

use super::{BarView, LoadView, ProbeView, SecondView};
use crate::text::page::Page;
use crate::text::paint::Tone;
use crate::text::{Look, layout};
use crate::view::FailureView;
use model::threshold::Met;

/// Draws a view for a terminal; every line ends with a line break.
#[must_use]
pub fn render(view: &LoadView, look: Look) -> String {
    let mut page = Page::new(view.language, look);
    head(&mut page, view);
    thresholds(&mut page, view);
    page.sentences("section-warnings", Tone::Warning, &view.doubts);
    facts(&mut page, view);
    times(&mut page, view);
    probe(&mut page, view.probe.as_ref());
    histogram(&mut page, &view.histogram);
    over_time(&mut page, &view.seconds);
    limit(&mut page, view);
    page.trouble(&view.trouble);
    footer(&mut page, view);
    page.out
}

fn head(page: &mut Page, view: &LoadView) {
    page.paragraph("", Tone::Strong, &format!("{}  {}", view.target, view.id));
    page.paragraph("", Tone::Plain, &view.sent.text);
    if let Some(server) = &view.server {
        page.paragraph("", Tone::Quiet, server);
    }
}

fn thresholds(page: &mut Page, view: &LoadView) {
    if view.thresholds.is_empty() {
        return;
    }
    page.section("section-thresholds");
    for threshold in &view.thresholds {
        let tone = match threshold.judged.met {
            Met::Yes => Tone::Good,
            Met::No => Tone::Bad,
            Met::Unknown(_) => Tone::Warning,
        };
        page.paragraph("  ", tone, &threshold.sentence.text);
    }
}

fn facts(page: &mut Page, view: &LoadView) {
    page.section("section-table");
    let widest = view.facts.iter().map(|fact| layout::width(&fact.label)).max().unwrap_or(0);
    for fact in &view.facts {
        let gap = " ".repeat(widest - layout::width(&fact.label) + 2);
        page.paragraph(&format!("  {}{gap}", fact.label), Tone::Plain, &fact.text);
    }
    failures(page, &view.failures);
}

fn failures(page: &mut Page, failures: &[FailureView]) {
    for failure in failures {
        let mut text = format!("{} × {}", failure.count, failure.cause.text);
        if let Some(example) = &failure.example {
            let arguments = [("text", text.into()), ("detail", example.as_str().into())];
            text = page.words.say("with-detail", &arguments).text;
        }
        page.paragraph("  ! ", Tone::Warning, &text);
    }
}

fn times(page: &mut Page, view: &LoadView) {
    if view.times.is_empty() {
        return;
    }
    page.section("section-times");
    let table = layout::table(&view.table, page.width, page.paint, &[]);
    page.out.push_str(&table);
    view.table.notes.iter().for_each(|note| page.paragraph("", Tone::Quiet, &note.text));
}

fn probe(page: &mut Page, probe: Option<&ProbeView>) {
    let Some(probe) = probe else { return };
    page.section("section-probe");
    failures(page, &probe.failures);
    if !probe.table.rows.is_empty() {
        let table = layout::table(&probe.table, page.width, page.paint, &[]);
        page.out.push_str(&table);
    }
    probe.sentences.iter().for_each(|sentence| page.paragraph("", Tone::Quiet, &sentence.text));
}

/// The longest bar, in columns.
const LONGEST_BAR: usize = 50;

/// Bars from the left, their counts behind them; what is more than nothing has a bar.
fn histogram(page: &mut Page, bars: &[BarView]) {
    if bars.is_empty() {
        return;
    }
    page.section("section-histogram");
    let label = bars.iter().map(|bar| layout::width(&bar.label)).max().unwrap_or(0);
    let count = bars.iter().map(|bar| bar.count.to_string().len()).max().unwrap_or(0);
    let longest = page.width.saturating_sub(label + count + 6).clamp(1, LONGEST_BAR);
    let most = bars.iter().map(|bar| bar.share).fold(f64::MIN_POSITIVE, f64::max);
    for bar in bars {
        let columns = (bar.share / most * longest as f64).round() as usize;
        let drawn = "#".repeat(columns.max(usize::from(bar.count > 0)));
        let indent = " ".repeat(label - layout::width(&bar.label) + 2);
        page.line(&format!("{indent}{}  {:>count$}  {drawn}", bar.label, bar.count));
    }
}

/// Nothing, then eighths of a line's height.
const HEIGHTS: [char; 9] = ['_', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Something counted in a second.
type Count = fn(&SecondView) -> u64;

/// Good answers as one mark for so many seconds, and failures below them if there were any.
fn over_time(page: &mut Page, seconds: &[SecondView]) {
    if seconds.len() < 3 {
        return;
    }
    page.section("section-over-time");
    spark(page, seconds, "spark-good", |second| second.good);
    if seconds.iter().any(|second| second.failed > 0) {
        spark(page, seconds, "spark-failed", |second| second.failed);
    }
}

/// A line of marks, and below it what the lowest and the highest of them stand for.
fn spark(page: &mut Page, seconds: &[SecondView], id: &str, count: Count) {
    let per_mark = seconds.len().div_ceil(page.width - 2);
    let rates = rates(seconds, per_mark, count);
    let most = rates.iter().copied().fold(0.0, f64::max);
    let least = rates.iter().copied().fold(most, f64::min);
    let marks: String = rates.iter().map(|rate| mark(*rate, most)).collect();
    page.line(&format!("  {marks}"));
    let printed = |rate: f64| units::si(most).print(rate);
    let arguments = [("least", printed(least).into()), ("most", printed(most).into()), ("seconds", per_mark.into())];
    let note = page.words.say(id, &arguments);
    page.paragraph("  ", Tone::Quiet, &note.text);
}

/// Per second, so many seconds to a mark; an end of less than half a second would only be noise.
fn rates(seconds: &[SecondView], per_mark: usize, count: Count) -> Vec<f64> {
    let rate = |part: &[SecondView]| {
        let length: f64 = part.iter().map(|second| second.length_s).sum();
        (length >= 0.5).then(|| part.iter().map(count).sum::<u64>() as f64 / length)
    };
    seconds.chunks(per_mark).filter_map(rate).collect()
}

fn mark(rate: f64, most: f64) -> char {
    if rate <= 0.0 {
        return HEIGHTS[0];
    }
    HEIGHTS[((rate / most * 8.0).ceil() as usize).clamp(1, 8)]
}

fn limit(page: &mut Page, view: &LoadView) {
    let Some(diagnosis) = &view.diagnosis else { return };
    page.section("section-limit");
    page.paragraph("  ", Tone::Plain, &diagnosis.headline.text);
    page.findings(diagnosis);
}

fn footer(page: &mut Page, view: &LoadView) {
    page.line("");
    page.host(&view.host);
    let arguments = [
        ("began", view.began.as_str().into()),
        ("version", view.version.as_str().into()),
        ("seed", view.spec.seed.to_string().into()),
        ("end", view.end.text.as_str().into()),
    ];
    let made = page.words.say("load-made-line", &arguments);
    page.paragraph("", Tone::Quiet, &made.text);
}
