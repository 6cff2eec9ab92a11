//! Numbers in a few characters, as dstat's `dchg` and `fchg` write them: the last digit included.
//!
//! They know widths and bases, not units or colours. A number that does not fit is divided by the base until it does, and how
//! often that was needed tells the unit. What is not finite fits nowhere.

/// A number written, and how often it was divided by the base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) text: String,
    pub(super) divided: usize,
}

/// How a half becomes a whole number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Halves {
    /// To the even neighbour: Python 3, under dstat 0.8 and dool.
    Even,
    /// Away from zero: Python 2, under dstat 0.7.2.
    Away,
}

impl Halves {
    pub(super) fn round(self, value: f64) -> f64 {
        match self {
            Halves::Even => value.round_ties_even(),
            Halves::Away => value.round(),
        }
    }
}

/// A whole number in at most `digits` characters.
pub(super) fn whole(value: f64, digits: usize, base: f64, halves: Halves) -> Option<Written> {
    let limit = 10f64.powi(digits as i32);
    let fits = |rounded: f64| rounded < limit && (rounded >= 0.0 || integer(rounded).len() <= digits);
    divide_until(value, base, |value| Some(halves.round(value)).filter(|&rounded| fits(rounded)).map(integer))
}

/// A number in at most `digits` characters, with as many decimals as fit; zero has none.
pub(super) fn decimal(value: f64, digits: usize, base: f64, halves: Halves) -> Option<Written> {
    divide_until(value, base, |value| {
        if value == 0.0 {
            return Some("0".to_owned());
        }
        if value >= 10f64.powi(digits as i32) {
            return None;
        }
        // The whole part of the number rounded to so many decimals, not the rounded number: 99.97 is tried as 99 first.
        let rounded = fixed(value, digits);
        let length = rounded.find('.').unwrap_or(rounded.len());
        (length <= digits).then(|| {
            let decimals = (1..digits.saturating_sub(length)).rev();
            let fits = decimals.map(|count| fixed(value, count)).find(|text| text.len() <= digits);
            fits.unwrap_or_else(|| integer(halves.round(value)))
        })
    })
}

fn divide_until(value: f64, base: f64, fits: impl Fn(f64) -> Option<String>) -> Option<Written> {
    let mut value = Some(value).filter(|value| value.is_finite())?;
    let mut divided = 0;
    loop {
        if let Some(text) = fits(value) {
            return Some(Written { text, divided });
        }
        // Below one it does not get shorter any more.
        if value.abs() < 1.0 {
            return None;
        }
        value /= base;
        divided += 1;
    }
}

/// A whole number as text.
fn integer(rounded: f64) -> String {
    // The exact writing of floating-point numbers takes far more code, which a second of watching finds in no cache.
    if rounded.abs() < EXACT { (rounded as i64).to_string() } else { format!("{rounded:.0}") }
}

/// Below this every whole number is a floating-point number, and fits into an integer.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// A number with so many decimals, as `format!` writes it, which takes far more code: see `integer`.
fn fixed(value: f64, decimals: usize) -> String {
    match u32::try_from(decimals).ok().and_then(|decimals| 10u64.checked_pow(decimals)) {
        // What is scaled is off by less than a millionth here, so only what lies that near to a half could be rounded wrongly.
        Some(scale) if value >= 0.0 && value * (scale as f64) < NEARLY_EXACT && !is_near_half(value * scale as f64) => {
            let scaled = (value * scale as f64).round() as u64;
            let (whole, rest) = (scaled / scale, scaled % scale);
            if decimals == 0 { whole.to_string() } else { format!("{whole}.{rest:0decimals$}") }
        }
        _ => format!("{value:.decimals$}"),
    }
}

/// Below this a product of two numbers is off by less than a millionth.
const NEARLY_EXACT: f64 = 1e9;

fn is_near_half(scaled: f64) -> bool {
    (scaled.fract() - 0.5).abs() < 1e-6
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(written: Option<Written>, expected: &str) {
        let written = written.map(|Written { text, divided }| format!("{text}/{divided}"));
        assert_eq!(written.as_deref().unwrap_or("none"), expected);
    }

    #[test]
    fn whole_numbers_use_every_character_before_they_are_divided() {
        let check = |value: f64, expected| check(whole(value, 4, 1024.0, Halves::Even), expected);
        check(0.0, "0/0");
        check(9999.0, "9999/0");
        check(9999.4, "9999/0");
        check(9999.5, "10/1");
        check(10_000.0, "10/1");
        check(4096.0 * 1024.0 * 1024.0, "4096/2");
        check(f64::MAX, "16/102");
        check(f64::NAN, "none");
        check(f64::INFINITY, "none");
    }

    #[test]
    fn halves_as_the_two_pythons_round_them() {
        check(whole(2.5, 3, 1000.0, Halves::Even), "2/0");
        check(whole(2.5, 3, 1000.0, Halves::Away), "3/0");
        check(decimal(12_500_000.0, 4, 1000.0, Halves::Even), "12.5/2");
        check(decimal(100.5, 4, 1000.0, Halves::Even), "100/0");
        check(decimal(100.5, 4, 1000.0, Halves::Away), "101/0");
    }

    #[test]
    fn decimals_are_what_is_left_of_the_width() {
        let check = |value: f64, expected| check(decimal(value, 4, 1024.0, Halves::Even), expected);
        check(0.0, "0/0");
        check(0.324, "0.32/0");
        check(13.0, "13.0/0");
        check(118.0, "118/0");
        check(9.9999, "10.0/0");
        check(99.97, "100/0");
        check(34.8 * 1024.0 * 1024.0, "34.8/2");
        check(0.001, "0.00/0");
        check(0.125, "0.12/0");
        // dstat's own slip: five characters, because only what stands before the point was tried.
        check(9999.99, "10000/0");
        check(9_999.999_97, "9.77/1");
    }

    proptest::proptest! {
        #[test]
        fn fixed_is_what_the_library_writes(value in 0.0..1e7f64, hundredths in 0u64..1_000_000, decimals in 0usize..7) {
            for value in [value, value / 1e4, hundredths as f64 / 100.0, hundredths as f64 / 8.0] {
                assert_eq!(fixed(value, decimals), format!("{value:.decimals$}"));
            }
        }
    }
}
