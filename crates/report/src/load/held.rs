//! Thresholds in words: each met or missed, by what was found, and when it is not known, why.

use super::ThresholdView;
use crate::language::Catalogue;
use model::statistic::Found;
use model::threshold::{Judged, Met, Unit, Why};

pub(crate) fn view(judged: Judged, words: &Catalogue) -> ThresholdView {
    let unit = judged.threshold.metric.unit();
    let found = judged.found.map(|found| told(found, unit, words)).unwrap_or_default();
    let mut arguments = vec![("threshold", judged.threshold.text.as_str().into())];
    let id = match judged.met {
        Met::Yes => "threshold-met",
        Met::No => "threshold-missed",
        Met::Unknown(Why::CutOff) => "threshold-cut-off",
        Met::Unknown(Why::TooFew { have, needed }) => {
            arguments.extend([("have", have.into()), ("needed", needed.into())]);
            "threshold-too-few"
        }
        Met::Unknown(Why::NothingMeasured) => "threshold-nothing",
        Met::Unknown(Why::ClosedLoop) => "threshold-closed",
        Met::Unknown(Why::Users) => "threshold-users",
        Met::Unknown(Why::NoUsers) => "threshold-no-users",
    };
    let nothing = Why::NothingMeasured;
    if !matches!(judged.met, Met::Unknown(why) if [nothing, Why::ClosedLoop, Why::Users, Why::NoUsers].contains(&why)) {
        arguments.push(("found", found.into()));
    }
    let sentence = words.say(id, &arguments);
    ThresholdView { judged, sentence }
}

pub(crate) fn told(found: Found, unit: Unit, words: &Catalogue) -> String {
    let value = printed(found.value(), unit);
    match found {
        Found::Exactly(_) => value,
        Found::MoreThan(_) => words.say("more-than", &[("value", value.into())]).text,
    }
}

/// A number with its unit, as thresholds are written.
fn printed(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Us => units::short_duration(value * 1e3),
        Unit::PerSecond => format!("{}/s", units::si(value).print(value)),
        Unit::BytesPerSecond => format!("{}/s", units::short_bytes(value.round() as u64)),
        Unit::Count => format!("{value}"),
        Unit::Percent => percent(value),
    }
}

/// Three significant digits, two of what is small, and never 0 or 100 for what is only close to it.
pub(super) fn percent(value: f64) -> String {
    let digits = match value.min(100.0 - value) {
        // Nobody sends as many requests as it takes to be so close.
        x if x < 1e-12 => 0,
        x if x < 0.1 => (1.0 - x.log10().floor()) as usize,
        x if x < 10.0 => 2,
        _ => 1,
    };
    format!("{value:.digits$} %")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(value: f64, unit: Unit, expected: &str) {
        assert_eq!(printed(value, unit), expected);
    }

    #[test]
    fn numbers_are_printed_as_thresholds_are_written() {
        check(12_340.0, Unit::Us, "12.3 ms");
        check(998.24, Unit::PerSecond, "998/s");
        check(1_500_000.0, Unit::BytesPerSecond, "1.43 MiB/s");
        check(12.0, Unit::Count, "12");
        check(0.0, Unit::Percent, "0 %");
        check(100.0, Unit::Percent, "100 %");
        check(0.0042, Unit::Percent, "0.0042 %");
        check(1.0 / 30_000.0, Unit::Percent, "0.000033 %");
        check(100.0 - 1.0 / 30_000.0, Unit::Percent, "99.999967 %");
        check(100.0 / 1e12, Unit::Percent, "0.00000000010 %");
        check(0.042, Unit::Percent, "0.042 %");
        check(99.96, Unit::Percent, "99.960 %");
        check(4.2, Unit::Percent, "4.20 %");
        check(42.0, Unit::Percent, "42.0 %");
    }
}
