//! Text to numbers: `200ms` to nanoseconds, `200M` to bytes. Never guesses a missing unit for a duration.

/// Why a quantity could not be read; one sentence that says what is wrong and what would be right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct ParseError {
    what: String,
}

const DURATION_UNITS: [(&str, u64); 9] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

const BYTE_UNITS: [(&str, u64); 5] = [("", 1), ("K", 1 << 10), ("M", 1 << 20), ("G", 1 << 30), ("T", 1 << 40)];

/// Nanoseconds of a duration such as `250us`, `1.5s` or `2min`. Zero is allowed.
///
/// # Errors
/// When the number or the unit is missing or unknown, or the value does not fit.
pub fn duration_ns(text: &str) -> Result<u64, ParseError> {
    let (number, unit) = split(text);
    let Some(&(_, factor)) = DURATION_UNITS.iter().find(|(name, _)| *name == unit) else {
        return Err(fail(format!(
            "`{text}` is not a duration: write a number and ns, us, ms, s, min, h or d, such as 500ms"
        )));
    };
    scaled(text, number, factor)
}

/// Bytes of a size such as `512`, `200M`, `1.5G` or `64KiB`; units are powers of 1024 (1 M is 1 MiB), as in the kernel's own files.
///
/// # Errors
/// When the number is missing, the unit is unknown, or the value does not fit.
pub fn bytes(text: &str) -> Result<u64, ParseError> {
    let (number, unit) = split(text);
    let unit = unit.to_ascii_uppercase();
    let unit = unit.strip_suffix("IB").or_else(|| unit.strip_suffix('B')).unwrap_or(&unit);
    let Some(&(_, factor)) = BYTE_UNITS.iter().find(|(name, _)| *name == unit) else {
        return Err(fail(format!("`{text}` is not a size: write a number and K, M, G or T, such as 200M")));
    };
    scaled(text, number, factor)
}

/// Events per second of a rate such as `500`, `500/s`, `2.5k/s` or `6000/min`.
///
/// # Errors
/// When the number is missing, the unit is unknown, or the value is not finite.
pub fn rate(text: &str) -> Result<f64, ParseError> {
    let (number, unit) = split(text);
    let thousand = unit.strip_prefix(['k', 'K']);
    let (unit, factor) = thousand.map_or((unit, 1.0), |rest| (rest, 1000.0));
    let per = match unit {
        "" | "/s" => 1.0,
        "/m" | "/min" => 60.0,
        _ => return Err(fail(format!("`{text}` is not a rate: write a number and /s or /min, such as 500/s"))),
    };
    let value: f64 = number.parse().map_err(|_| fail(format!("`{text}` does not start with a number")))?;
    let value = value * factor / per;
    if value.is_finite() { Ok(value) } else { Err(fail(format!("`{text}` is too large"))) }
}

fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    (&text[..end], text[end..].trim())
}

fn scaled(text: &str, number: &str, factor: u64) -> Result<u64, ParseError> {
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(factor).ok_or_else(|| fail(format!("`{text}` is too large")));
    }
    let value: f64 = number.parse().map_err(|_| fail(format!("`{text}` does not start with a number")))?;
    let product = (value * factor as f64).round();
    if product.is_finite() && product < u64::MAX as f64 {
        Ok(product as u64)
    } else {
        Err(fail(format!("`{text}` is too large")))
    }
}

fn fail(what: String) -> ParseError {
    ParseError { what }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(parse: fn(&str) -> Result<u64, ParseError>, input: &str, expected: Result<u64, &str>) {
        assert_eq!(parse(input).map_err(|e| e.to_string()), expected.map_err(str::to_owned), "{input}");
    }

    #[test]
    fn durations() {
        check(duration_ns, "250us", Ok(250_000));
        check(duration_ns, "1.5s", Ok(1_500_000_000));
        check(duration_ns, " 2 min ", Ok(120_000_000_000));
        check(duration_ns, "0s", Ok(0));
        check(
            duration_ns,
            "5",
            Err("`5` is not a duration: write a number and ns, us, ms, s, min, h or d, such as 500ms"),
        );
        check(duration_ns, "s", Err("`s` does not start with a number"));
        check(duration_ns, "99999999999min", Err("`99999999999min` is too large"));
    }

    #[test]
    fn sizes() {
        check(bytes, "512", Ok(512));
        check(bytes, "200M", Ok(200 << 20));
        check(bytes, "64KiB", Ok(64 << 10));
        check(bytes, "1.5g", Ok(3 << 29));
        check(bytes, "many", Err("`many` is not a size: write a number and K, M, G or T, such as 200M"));
    }

    fn check_rate(input: &str, expected: Result<f64, &str>) {
        assert_eq!(rate(input).map_err(|e| e.to_string()), expected.map_err(str::to_owned), "{input}");
    }

    #[test]
    fn rates() {
        check_rate("500", Ok(500.0));
        check_rate("2.5k/s", Ok(2500.0));
        check_rate("6000/min", Ok(100.0));
        check_rate("5/h", Err("`5/h` is not a rate: write a number and /s or /min, such as 500/s"));
        check_rate("/s", Err("`/s` does not start with a number"));
    }

    proptest! {
        #[test]
        fn any_text_is_answered(text in "\\PC*") {
            let _ = (duration_ns(&text), bytes(&text), rate(&text));
        }
    }
}
