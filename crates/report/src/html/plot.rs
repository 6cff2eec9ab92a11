//! A plot that reads well at any width: lines in a stretched SVG, every letter as HTML beside it, so that text is never scaled.

use crate::escape::Html;
use std::fmt::Write as _;

/// Side of the SVG's own square; it is stretched to the page.
const SIDE: f64 = 1000.0;

/// How values of one direction are placed.
#[derive(Debug, Clone, Copy)]
pub(super) enum Scale {
    /// Evenly.
    Linear,
    /// By their logarithm.
    Log,
}

/// One direction of a plot.
#[derive(Debug, Clone)]
pub(super) struct Axis {
    pub(super) scale: Scale,
    pub(super) low: f64,
    pub(super) high: f64,
    /// Where to draw a grid line, and what to write beside it.
    pub(super) ticks: Vec<(f64, String)>,
}

/// A line of a plot.
pub(super) struct Line<'a> {
    pub(super) label: &'a str,
    /// Which colour and dash, by number.
    pub(super) style: usize,
    pub(super) points: Vec<(f64, Option<f64>)>,
}

impl Axis {
    /// From 0 to a round number at or above `high`; to 1 when there is nothing but zeros.
    pub(super) fn from_zero(high: f64) -> Axis {
        let step = if high > 0.0 { round_step(high / 3.0) } else { 1.0 };
        let steps = (high / step).ceil().max(1.0) as u32;
        let ticks = (0..=steps).map(|i| f64::from(i) * step).map(|value| (value, number(value))).collect();
        Axis { scale: Scale::Linear, low: 0.0, high: f64::from(steps) * step, ticks }
    }

    /// Logarithmic from at or below `low` to at or above `high`, with ticks at 1, 2 and 5 times powers of ten, or fewer when
    /// these would crowd.
    pub(super) fn logarithmic(low: f64, high: f64, label: impl Fn(f64) -> String) -> Axis {
        let decades = (high / low).log10();
        let marks: &[f64] = match decades {
            d if d > 3.0 => &[1.0],
            d if d > 1.5 => &[1.0, 3.0],
            _ => &[1.0, 2.0, 5.0],
        };
        let powers = low.log10().floor() as i32 - 1..=high.log10().ceil() as i32;
        let all: Vec<f64> = powers.flat_map(|power| marks.iter().map(move |mark| mark * 10_f64.powi(power))).collect();
        let from = all.iter().rposition(|&tick| tick <= low * 1.000_001).unwrap_or(0);
        let to = all.iter().position(|&tick| tick >= high * 0.999_999).unwrap_or(all.len() - 1).max(from + 1);
        let ticks: Vec<f64> = all[from..=to.min(all.len() - 1)].to_vec();
        Axis {
            scale: Scale::Log,
            low: ticks[0],
            high: ticks[ticks.len() - 1],
            ticks: ticks.into_iter().map(|tick| (tick, label(tick))).collect(),
        }
    }

    /// Where a value lies, 0 to 1.
    pub(super) fn place(&self, value: f64) -> f64 {
        let share = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Log => (value / self.low).ln() / (self.high / self.low).ln(),
        };
        if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }
    }
}

/// 1, 2 or 5 times a power of ten, at or above `rough`.
fn round_step(rough: f64) -> f64 {
    let power = 10_f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|factor| factor * power >= rough * 0.999_999).unwrap_or(10.0);
    factor * power
}

/// A tick's number without needless digits.
pub(super) fn number(value: f64) -> String {
    let rounded = (value * 1e4).round() / 1e4;
    format!("{rounded}")
}

/// Draws a plot. `summary` says in words what it shows, for those who do not see it.
pub(super) fn plot(class: &str, summary: &str, x: &Axis, y: &Axis, lines: &[Line<'_>]) -> String {
    let mut out = String::new();
    let _ = write!(
        out,
        "<div class=\"plot {class}\" role=\"img\" aria-label=\"{}\" data-x0=\"{}\" data-x1=\"{}\" data-y0=\"{}\" data-y1=\"{}\">",
        Html(summary),
        x.low,
        x.high,
        y.low,
        y.high
    );
    out.push_str("<div class=\"y\" aria-hidden=\"true\">");
    for (value, label) in &y.ticks {
        let _ = write!(out, "<span style=\"bottom:{:.2}%\">{}</span>", y.place(*value) * 100.0, Html(label));
    }
    let _ = write!(out, "</div><svg viewBox=\"0 0 {SIDE} {SIDE}\" preserveAspectRatio=\"none\" aria-hidden=\"true\">");
    for (value, _) in &y.ticks {
        let at = (1.0 - y.place(*value)) * SIDE;
        let _ = write!(out, "<path class=\"grid\" d=\"M0 {at:.1}H{SIDE}\"/>");
    }
    for (value, _) in &x.ticks {
        let _ = write!(out, "<path class=\"grid\" d=\"M{:.1} 0V{SIDE}\"/>", x.place(*value) * SIDE);
    }
    for line in lines {
        let _ = write!(
            out,
            "<path class=\"line s{}\" data-label=\"{}\" d=\"{}\"/>",
            line.style % 6,
            Html(line.label),
            path(x, y, &line.points)
        );
    }
    out.push_str("</svg><div class=\"x\" aria-hidden=\"true\">");
    for (value, label) in &x.ticks {
        let _ = write!(out, "<span style=\"left:{:.2}%\">{}</span>", x.place(*value) * 100.0, Html(label));
    }
    out.push_str("</div></div>");
    out
}

/// A path through the points; a missing value interrupts it, and a value alone becomes a short dash.
fn path(x: &Axis, y: &Axis, points: &[(f64, Option<f64>)]) -> String {
    let mut path = String::new();
    let mut drawing = false;
    for (at, value) in points {
        let Some(value) = value else {
            drawing = false;
            continue;
        };
        let (px, py) = (x.place(*at) * SIDE, (1.0 - y.place(*value)) * SIDE);
        let _ = write!(path, "{}{px:.1} {py:.1}", if drawing { "L" } else { "M" });
        if !drawing {
            path.push_str("h1");
        }
        drawing = true;
    }
    path
}

/// The names of lines with a sample of each.
pub(super) fn legend<'a>(lines: impl Iterator<Item = (usize, &'a str)>) -> String {
    let mut out = String::from("<ul class=\"legend\">");
    for (style, label) in lines {
        let _ = write!(
            out,
            "<li><svg viewBox=\"0 0 28 8\" aria-hidden=\"true\"><path class=\"line s{}\" d=\"M0 4H28\"/></svg>{}</li>",
            style % 6,
            Html(label)
        );
    }
    out.push_str("</ul>");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(axis: &Axis, expected: &str) {
        let labels: Vec<_> = axis.ticks.iter().map(|(_, label)| label.as_str()).collect();
        assert_eq!(labels.join(" "), expected);
        assert_eq!((axis.place(axis.low), axis.place(axis.high)), (0.0, 1.0));
    }

    #[test]
    fn ticks_are_round_and_enclose() {
        check(&Axis::from_zero(11.4), "0 5 10 15");
        check(&Axis::from_zero(0.07), "0 0.05 0.1");
        check(&Axis::from_zero(0.0), "0 1");
        check(&Axis::logarithmic(0.9, 7.3, number), "0.5 1 2 5 10");
        check(&Axis::logarithmic(0.99, 1.02, number), "0.5 1 2");
        check(&Axis::logarithmic(73.0, 10_654.0, number), "30 100 300 1000 3000 10000 30000");
        check(&Axis::logarithmic(1.0, 1.0, number), "1 2");
    }

    #[test]
    fn gaps_stay_gaps() {
        let axis = Axis::from_zero(10.0);
        let points = [(0.0, Some(0.0)), (5.0, Some(5.0)), (6.0, None), (10.0, Some(10.0))];
        assert_eq!(path(&axis, &axis, &points), "M0.0 1000.0h1L500.0 500.0M1000.0 0.0h1");
    }
}
