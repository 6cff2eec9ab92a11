//! Numbers to text. A [`Scale`] belongs to a column, the `short_*` functions to a lone figure in a sentence.

/// How one column prints its numbers: a divisor, a unit and the decimals that keep three significant digits of the largest value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    /// What a raw value is divided by.
    pub divisor: f64,
    /// The unit to print in the column's head.
    pub unit: &'static str,
    /// Digits after the point, the same for every row.
    pub decimals: usize,
}

impl Scale {
    /// The value in this scale, without its unit.
    #[must_use]
    pub fn print(&self, raw: f64) -> String {
        let text = format!("{:.*}", self.decimals, raw / self.divisor);
        // Nothing at all, or what is rounded to it, has no sign.
        match text.strip_prefix('-') {
            Some(digits) if digits.bytes().all(|byte| matches!(byte, b'0' | b'.')) => digits.to_owned(),
            _ => text,
        }
    }
}

/// The scale for a column of nanoseconds whose largest value is `largest_ns`.
#[must_use]
pub fn duration_scale(largest_ns: f64) -> Scale {
    let (divisor, unit) = match largest_ns {
        x if x >= 1e10 => (1e9, "s"),
        x if x >= 1e6 => (1e6, "ms"),
        x if x >= 1e3 => (1e3, "us"),
        _ => (1.0, "ns"),
    };
    Scale { divisor, unit, decimals: decimals(largest_ns / divisor) }
}

/// The scale for a column of bytes whose largest value is `largest`; powers of 1024.
#[must_use]
pub fn bytes_scale(largest: f64) -> Scale {
    let (power, unit) = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")]
        .into_iter()
        .find(|(power, _)| largest >= (1_u64 << power) as f64)
        .unwrap_or((0, "B"));
    let divisor = (1_u64 << power) as f64;
    Scale { divisor, unit, decimals: if power == 0 { 0 } else { decimals(largest / divisor) } }
}

/// The scale for a column of plain numbers (rates, counts) whose largest value is `largest`; no unit.
#[must_use]
pub fn si(largest: f64) -> Scale {
    Scale { divisor: 1.0, unit: "", decimals: decimals(largest) }
}

/// A lone duration in a sentence: `913 ms`, `1.02 s`, `87.3 us`.
#[must_use]
pub fn short_duration(ns: f64) -> String {
    let (divisor, unit) = match ns.abs() {
        x if x >= 999_500_000.0 => (1e9, "s"),
        x if x >= 999_500.0 => (1e6, "ms"),
        x if x >= 999.5 => (1e3, "us"),
        _ => (1.0, "ns"),
    };
    let value = ns / divisor;
    format!("{value:.*} {unit}", decimals(value))
}

/// A lone size in a sentence: `200 MiB`, `1.50 GiB`.
#[must_use]
pub fn short_bytes(value: u64) -> String {
    let scale = bytes_scale(value as f64);
    format!("{} {}", scale.print(value as f64), scale.unit)
}

/// Decimals that leave three significant digits of `value`.
fn decimals(value: f64) -> usize {
    match value.abs() {
        x if x >= 99.95 || x == 0.0 => 0,
        x if x >= 9.995 => 1,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_keeps_one_scale() {
        let scale = duration_scale(6_721_000_000.0);
        assert_eq!((scale.print(87e6), scale.print(6_721e6), scale.unit), ("87".into(), "6721".into(), "ms"));
        assert_eq!([-0.0, -0.001, -0.6].map(|value| si(value).print(value)), ["0", "0.00", "-0.60"]);
        let scale = si(11.4);
        assert_eq!((scale.print(1.49), scale.print(11.4)), ("1.5".into(), "11.4".into()));
    }

    #[test]
    fn lone_figures() {
        assert_eq!(short_duration(913_000_000.0), "913 ms");
        assert_eq!(short_duration(1_020_000_000.0), "1.02 s");
        assert_eq!(short_duration(87_300.0), "87.3 us");
        assert_eq!(short_bytes(200 << 20), "200 MiB");
        assert_eq!(short_bytes(3 << 29), "1.50 GiB");
        assert_eq!(short_bytes(0), "0 B");
    }
}
