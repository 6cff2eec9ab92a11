//! OpenMetrics text: the heads of families, samples, and what must be escaped. Knows nothing of what is measured.

use std::fmt::Write as _;

/// How an answer of such text is typed in HTTP.
pub const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Kinds of families, by the name the format gives them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Info,
    Counter,
    Gauge,
    Histogram,
}

/// A page of families.
#[derive(Debug, Default)]
pub(crate) struct Page {
    out: String,
}

impl Page {
    /// The head of a family; `unit` is empty or the end of its name.
    pub(crate) fn family(&mut self, name: &str, kind: Kind, unit: &str, help: &str) {
        let kind = match kind {
            Kind::Info => "info",
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        // Writing to memory does not fail, here and below.
        let _ = writeln!(self.out, "# TYPE {name} {kind}");
        if !unit.is_empty() {
            let _ = writeln!(self.out, "# UNIT {name} {unit}");
        }
        let _ = writeln!(self.out, "# HELP {name} {}", escaped(help));
    }

    /// One sample.
    pub(crate) fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: &str) {
        let labels: Vec<String> = labels.iter().map(|(key, value)| format!("{key}=\"{}\"", escaped(value))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.out, "{name}{labels} {value}");
    }

    /// A family of one sample without labels.
    pub(crate) fn lone(&mut self, name: &str, kind: Kind, unit: &str, help: &str, value: &str) {
        let end = if kind == Kind::Counter { "_total" } else { "" };
        self.family(name, kind, unit, help);
        self.sample(&format!("{name}{end}"), &[], value);
    }

    /// The whole text.
    pub(crate) fn end(mut self) -> String {
        self.out.push_str("# EOF\n");
        self.out
    }
}

/// A number with a point, as the format writes those that are not counts.
pub(crate) fn number(value: f64) -> String {
    format!("{value:?}")
}

/// A label's value: backslash, quote and line break are the only characters that mean something in it.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
