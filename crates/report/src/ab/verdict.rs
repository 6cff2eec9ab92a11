//! Our own view below ab's report: what `webdyno load` says of a load, and what ab's "Time per request" means.

use super::AbView;
use crate::load::{LoadView, text};
use crate::text::Look;
use crate::text::page::Page;
use crate::text::paint::Tone;
use model::statistic::Part;

/// Draws both.
#[must_use]
pub fn render(load: &LoadView, ab: &AbView, look: Look) -> String {
    let mut page = Page::new(load.language, look);
    if let Some(rates) = &ab.rates {
        page.section("section-ab-time");
        let ms = |ms: f64| format!("{ms:.3} ms").into();
        let arguments = [
            ("each", ms(rates.ms_each)),
            ("across", ms(rates.ms_across)),
            ("connections", i64::from(ab.concurrency).into()),
            ("seconds", format!("{:.3} s", ab.seconds).into()),
            ("requests", i64::try_from(ab.counts.complete).unwrap_or(i64::MAX).into()),
        ];
        let told = page.words.say("ab-time-per-request", &arguments);
        page.paragraph("  ", Tone::Plain, &told.text);
        if let Some(mean_us) = mean_us(load) {
            let told = page.words.say("ab-time-measured", &[("mean", ms(mean_us / 1000.0))]);
            page.paragraph("  ", Tone::Plain, &told.text);
        }
    }
    text::render(load, look) + &page.out
}

/// The mean latency of good answers.
fn mean_us(load: &LoadView) -> Option<f64> {
    let total = load.times.iter().find(|times| times.part == Part::Latency)?;
    (total.count > 0 && total.cut_off == 0).then(|| total.sum_us / total.count as f64)
}
