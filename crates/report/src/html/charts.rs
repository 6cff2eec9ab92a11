//! The three pictures of the page: ratios with their intervals, latency distributions, and what happened over time.

use super::class_of;
use super::plot::{Axis, Line, legend, number, plot};
use crate::escape::Html;
use crate::language::Catalogue;
use crate::view::table::{percent, ratio};
use crate::view::{CellView, ComparisonView, LatencyView, PanelView, SweepView, TrialView, View};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// A ratio to be drawn: its name, what came out, and the margin it is judged by.
pub(super) type Compared<'a> = (&'a str, &'a ComparisonView, f64);

/// Ratios by name on one logarithmic axis; empty when nothing was compared.
pub(super) fn forest(view: &View, compared: &[Compared<'_>], words: &Catalogue) -> String {
    if compared.is_empty() {
        return String::new();
    }
    let ends = compared.iter().flat_map(|(_, c, _)| [c.ratio, c.low.unwrap_or(c.ratio), c.high.unwrap_or(c.ratio)]);
    // An interval from two blocks may be absurdly wide; beyond a factor of 100 it is cut at the edge of the plot.
    // A ratio of 0 has no place on the axis at all.
    let ends = ends.filter(|end| *end > 0.0).map(|end| end.clamp(0.01, 100.0));
    let widest = compared.iter().map(|(_, _, margin)| *margin).fold(0.0, f64::max);
    let ends: Vec<f64> = ends.chain([1.0, 1.0 + widest]).collect();
    let low = ends.iter().copied().fold(f64::INFINITY, f64::min);
    let high = ends.iter().copied().fold(0.0, f64::max);
    let axis = forest_axis(low, high);
    let at = |value: f64| axis.place(value) * 100.0;
    let mut out = String::from("<div class=\"forest\">");
    for (name, comparison, margin) in compared {
        let (band_low, band_high) = (at(1.0 / (1.0 + margin)), at(1.0 + margin));
        let verdict = comparison.judged.map(|verdict| format!(" {}", class_of(verdict))).unwrap_or_default();
        let range = match (comparison.low, comparison.high) {
            (Some(low), Some(high)) => format!("{}–{}", ratio(low), ratio(high)),
            _ => "–".to_owned(),
        };
        let _ = write!(
            out,
            "<div class=\"row{verdict}\"><div class=\"name\">{}</div><div class=\"strip\" aria-hidden=\"true\">\
             <i class=\"band\" style=\"left:{band_low:.2}%;width:{:.2}%\"></i><i class=\"one\" style=\"left:{:.2}%\"></i>",
            Html(name),
            band_high - band_low,
            at(1.0)
        );
        if let (Some(low), Some(high)) = (comparison.low, comparison.high) {
            let _ = write!(
                out,
                "<i class=\"interval\" style=\"left:{:.2}%;width:{:.2}%\"></i>",
                at(low),
                at(high) - at(low)
            );
        }
        if comparison.ratio > 0.0 {
            let _ = write!(out, "<i class=\"point\" style=\"left:{:.2}%\"></i>", at(comparison.ratio));
        }
        let _ = write!(
            out,
            "</div><div class=\"figure\"><b>×{}</b> <span>{}</span> <em>{}</em></div></div>",
            Html(&ratio(comparison.ratio)),
            Html(&range),
            Html(&comparison.verdict.text)
        );
    }
    out.push_str("<div class=\"row axis\" aria-hidden=\"true\"><div class=\"name\"></div><div class=\"strip\">");
    for (value, label) in &axis.ticks {
        let _ = write!(out, "<span style=\"left:{:.2}%\">{}</span>", at(*value), Html(label));
    }
    out.push_str("</div><div class=\"figure\"></div></div></div>");
    out.push_str(&forest_legend(view, compared, words));
    let _ = write!(
        out,
        "<p class=\"caption\">{}</p>",
        Html(&words.word(if view.contrasts.is_empty() { "forest-caption" } else { "contrasts-caption" }))
    );
    out
}

/// What the marks of the forest stand for, each beside a sample of it.
fn forest_legend(view: &View, compared: &[Compared<'_>], words: &Catalogue) -> String {
    let band = if compared.iter().all(|(_, _, margin)| *margin == view.run.margin) {
        words.say("legend-margin", &[("margin", percent(view.run.margin).into())])
    } else {
        words.say("legend-margins", &[])
    };
    let names = [
        ("point", words.say("legend-ratio", &[])),
        ("interval", words.say("legend-interval", &[("confidence", percent(view.run.confidence).into())])),
        ("band", band),
    ];
    let items = names.map(|(mark, name)| {
        format!(
            "<li><span class=\"sample\" aria-hidden=\"true\"><i class=\"{mark}\"></i></span>{}</li>",
            Html(&name.text)
        )
    });
    format!("<ul class=\"forest legend\">{}</ul>", items.concat())
}

/// Small differences get an axis of their own: percent around 1 instead of powers of ten.
fn forest_axis(low: f64, high: f64) -> Axis {
    let reach = (high.ln()).abs().max(low.ln().abs()) * 1.08;
    let (step, steps) = match reach {
        r if r < 0.045 => (0.01, 5),
        r if r < 0.11 => (0.02, 6),
        r if r < 0.26 => (0.05, 6),
        r if r < 0.55 => (0.1, 7),
        _ => {
            let label = |tick: f64| format!("×{}", number(tick));
            return Axis::logarithmic(low * 0.95, high * 1.05, label);
        }
    };
    let within = |tick: &f64| (tick - 1.0).abs() <= reach.exp_m1().max(step) + 1e-9;
    let ticks: Vec<f64> = (-steps..=steps).map(|i| 1.0 + f64::from(i) * step).filter(within).collect();
    Axis {
        scale: super::plot::Scale::Log,
        low: (-reach).exp().min(ticks[0]),
        high: reach.exp().max(ticks[ticks.len() - 1]),
        ticks: ticks.into_iter().map(|tick| (tick, format!("×{}", number(tick)))).collect(),
    }
}

/// Throughput against what grows, measured and by the law.
pub(super) fn sweep(sweep: &SweepView, words: &Catalogue) -> String {
    let measured: Vec<(f64, Option<f64>)> =
        sweep.points.iter().map(|point| (point.value as f64, point.good_per_s)).collect();
    let values = || sweep.points.iter().map(|point| point.value as f64);
    let (low, high) = (values().fold(f64::INFINITY, f64::min), values().fold(1.0, f64::max));
    let most = measured.iter().chain(&sweep.curve).filter_map(|(_, rate)| *rate).fold(0.0, f64::max);
    let y = Axis::from_zero(most);
    let x = if high / low >= 8.0 { Axis::logarithmic(low, high, number) } else { Axis::from_zero(high) };
    let (by_trials, by_law) = (words.word("sweep-measured"), words.word("sweep-by-law"));
    let mut lines = vec![Line { label: &by_trials, style: 0, points: measured }];
    if !sweep.curve.is_empty() {
        lines.push(Line { label: &by_law, style: 1, points: sweep.curve.clone() });
    }
    let title = words.say("sweep-axes", &[("over", sweep.over.as_str().into())]).text;
    format!(
        "<figure><figcaption>{}{}</figcaption>{}</figure>",
        Html(&title),
        legend(lines.iter().map(|line| (line.style, line.label))),
        plot("tall", &title, &x, &y, &lines)
    )
}

/// The percentiles that the latency plot names on its axis.
const NAMED: [f64; 5] = [50.0, 90.0, 99.0, 99.9, 99.99];

/// Latency against the share of answers, with the slow end drawn out: each nine takes the same room.
pub(super) fn latency(cells: &[CellView], words: &Catalogue) -> String {
    let known: Vec<_> =
        cells.iter().enumerate().filter_map(|(style, cell)| Some((style, cell, cell.latency.as_ref()?))).collect();
    let points = known.iter().flat_map(|(_, _, l)| &l.percentiles).map(|point| point.at_most_us);
    let (Some(low), Some(high)) = (points.clone().min(), points.max()) else { return String::new() };
    let low = low.max(1) as f64;
    let most = known.iter().map(|(_, _, l)| l.count).max().unwrap_or(1).max(20) as f64;
    let y = Axis::logarithmic(low, (high as f64).max(low), duration);
    let named = NAMED.into_iter().filter(|&percent| rarity(percent, most) < most);
    let x = Axis {
        scale: super::plot::Scale::Log,
        low: 1.0,
        high: most,
        ticks: named.map(|percent| (rarity(percent, most), format!("{} %", number(percent)))).collect(),
    };
    let lines: Vec<Line<'_>> = known
        .iter()
        .map(|(style, cell, latency)| Line { label: &cell.name, style: *style, points: curve(latency) })
        .collect();
    let summary = words.word("section-latency");
    let mut out = legend(lines.iter().map(|line| (line.style, line.label)));
    out.push_str(&plot("tall", &summary, &x, &y, &lines));
    let _ = write!(out, "<p class=\"caption\">{}</p>", Html(&words.word("latency-caption")));
    out.push_str(&percentiles(cells, words));
    out
}

/// One in how many answers is slower, on an axis that ends at `most`.
fn rarity(percent: f64, most: f64) -> f64 {
    (100.0 / (100.0 - percent).max(1e-9)).min(most)
}

/// A distribution; its largest is one in as many as the cell itself has, not one in as many as the fullest cell.
fn curve(latency: &LatencyView) -> Vec<(f64, Option<f64>)> {
    let own = latency.count as f64;
    latency.percentiles.iter().map(|p| (rarity(p.percent, own), Some(p.at_most_us as f64))).collect()
}

/// A tick of a latency axis, in microseconds, without needless digits.
fn duration(us: f64) -> String {
    match us {
        us if us >= 1e6 => format!("{} s", number(us / 1e6)),
        us if us >= 1e3 => format!("{} ms", number(us / 1e3)),
        us => format!("{} us", number(us)),
    }
}

/// The same distributions as a table, for those who want numbers or do not see the plot.
fn percentiles(cells: &[CellView], words: &Catalogue) -> String {
    let known: Vec<_> = cells.iter().filter_map(|cell| Some((cell, cell.latency.as_ref()?))).collect();
    let title = Html(&words.word("label-percentile")).to_string();
    let mut out = format!(
        "<details><summary>{}</summary><div class=\"wide\"><table><thead><tr><th>{title}</th>",
        Html(&words.word("label-as-table"))
    );
    for (cell, _) in &known {
        let _ = write!(out, "<th scope=\"col\">{}</th>", Html(&cell.name));
    }
    out.push_str("</tr></thead><tbody>");
    let percents: BTreeSet<u64> = known
        .iter()
        .flat_map(|(_, latency)| &latency.percentiles)
        .map(|p| (p.percent * 100.0).round() as u64)
        .collect();
    for hundredths in percents {
        let percent = hundredths as f64 / 100.0;
        let _ = write!(out, "<tr><th scope=\"row\">{}</th>", number(percent));
        for (_, latency) in &known {
            let found = latency.percentiles.iter().find(|p| (p.percent - percent).abs() < 1e-9);
            let shown = found.map_or_else(|| "–".to_owned(), |p| units::short_duration(p.at_most_us as f64 * 1e3));
            let _ = write!(out, "<td>{}</td>", Html(&shown));
        }
        out.push_str("</tr>");
    }
    out.push_str("</tbody></table></div></details>");
    out
}

/// One plot per panel of a trial, on one time axis.
pub(super) fn panels(trial: &TrialView, words: &Catalogue) -> String {
    let times = || trial.panels.iter().flat_map(|panel| &panel.series).flat_map(|s| &s.points).map(|(at, _)| *at);
    let begin = times().fold(0.0, f64::min);
    let end = times().fold(trial.window_s.unwrap_or(1.0), f64::max);
    let mut out = String::from("<div class=\"panels\">");
    for panel in &trial.panels {
        out.push_str(&self::panel(panel, begin, end, words));
    }
    out.push_str("</div>");
    out
}

fn panel(panel: &PanelView, begin: f64, end: f64, words: &Catalogue) -> String {
    let values = panel.series.iter().flat_map(|series| &series.points).filter_map(|(_, value)| *value);
    let most = values.fold(0.0, f64::max);
    let y = if panel.unit == "%" { Axis::from_zero(most.clamp(30.0, 100.0)) } else { Axis::from_zero(most) };
    let mut x = Axis::from_zero(end);
    x.ticks.retain(|(value, _)| *value <= end);
    x.ticks.iter_mut().for_each(|(_, label)| label.push_str(" s"));
    (x.low, x.high) = (begin, end);
    let lines: Vec<Line<'_>> = panel
        .series
        .iter()
        .enumerate()
        .map(|(style, series)| Line { label: &series.label.text, style, points: series.points.clone() })
        .collect();
    let title = if panel.unit.is_empty() {
        panel.title.text.clone()
    } else {
        words.say("with-detail", &[("text", panel.title.text.as_str().into()), ("detail", panel.unit.into())]).text
    };
    let summary = format!("{title}; {}", words.word("label-seconds"));
    format!(
        "<figure><figcaption>{}{}</figcaption>{}</figure>",
        Html(&title),
        legend(lines.iter().map(|line| (line.style, line.label))),
        plot("", &summary, &x, &y, &lines)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(low: f64, high: f64, expected: &str) {
        let axis = forest_axis(low, high);
        let labels: Vec<_> = axis.ticks.iter().map(|(_, label)| label.as_str()).collect();
        assert_eq!(labels.join(" "), expected);
        assert!(axis.low <= low && high <= axis.high, "{low} to {high} on {} to {}", axis.low, axis.high);
        assert!(axis.ticks.iter().any(|(value, _)| (value - 1.0).abs() < 1e-9), "the baseline is on the axis");
    }

    #[test]
    fn a_curve_ends_at_its_own_count() {
        let point = |percent, at_most_us| crate::view::PercentileView { percent, at_most_us };
        let latency = LatencyView {
            min_us: Some(1),
            mean_us: Some(2.0),
            median_us: Some(2),
            p99_us: None,
            max_us: Some(9),
            count: 50,
            unanswered: 0,
            percentiles: vec![point(50.0, 2), point(90.0, 5), point(100.0, 9)],
        };
        let rounded: Vec<_> = curve(&latency).into_iter().map(|(at, us)| (at.round(), us)).collect();
        assert_eq!(rounded, [(2.0, Some(2.0)), (10.0, Some(5.0)), (50.0, Some(9.0))]);
    }

    #[test]
    fn small_differences_are_seen_too() {
        check(0.995, 1.004, "×0.99 ×1 ×1.01");
        check(0.99, 1.03, "×0.97 ×0.98 ×0.99 ×1 ×1.01 ×1.02 ×1.03");
        check(0.9, 1.05, "×0.9 ×0.95 ×1 ×1.05 ×1.1");
        check(0.7, 1.02, "×0.6 ×0.7 ×0.8 ×0.9 ×1 ×1.1 ×1.2 ×1.3 ×1.4");
        check(0.942, 7.02, "×0.5 ×1 ×2 ×5 ×10");
        check(0.01, 100.0, "×0.001 ×0.01 ×0.1 ×1 ×10 ×100 ×1000");
    }
}
