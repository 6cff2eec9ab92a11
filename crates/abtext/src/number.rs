//! A printed number and how exact it is: its last digit says.

/// A number as it was printed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Number {
    /// Its value.
    pub value: f64,
    /// Digits behind the point.
    pub decimals: u32,
}

/// Two numbers, the lower first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// What arithmetic on a few printed numbers may be off by, beyond their last digits.
const ROUNDING: f64 = 1e-9;

/// No figure of ab has more digits; what has is no figure.
const MOST_DIGITS: usize = 20;

impl Number {
    /// Reads digits, with or without a point in them.
    pub(crate) fn parse(text: &str) -> Option<Number> {
        let digits = text.strip_prefix('-').unwrap_or(text);
        let (whole, rest) = digits.split_once('.').unwrap_or((digits, ""));
        let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let is_number = !whole.is_empty() && is_digits(whole) && is_digits(rest) && digits.len() <= MOST_DIGITS;
        let ends_with_point = digits.ends_with('.');
        (is_number && !ends_with_point)
            .then(|| Some(Number { value: text.parse().ok()?, decimals: u32::try_from(rest.len()).ok()? }))?
    }

    /// Every value that is printed like this.
    #[must_use]
    pub fn range(self) -> Range {
        let half = 0.5 * 10_f64.powi(-i32::try_from(self.decimals).unwrap_or(i32::MAX));
        Range { low: self.value - half, high: self.value + half }
    }
}

impl Range {
    /// One value.
    pub(crate) fn exactly(value: f64) -> Range {
        Range { low: value, high: value }
    }

    /// The range times a factor that is not negative.
    pub(crate) fn times(self, factor: f64) -> Range {
        Range { low: self.low * factor, high: self.high * factor }
    }

    /// What of it is not below 0; `None` when nothing is above.
    pub(crate) fn positive(self) -> Option<Range> {
        (self.high > 0.0).then_some(Range { low: self.low.max(0.0), high: self.high })
    }

    /// A number that is not negative over the range, which must be above 0 at its upper end.
    pub(crate) fn under(self, number: f64) -> Range {
        let over = |part: f64| if part > 0.0 { number / part } else { f64::INFINITY };
        Range { low: over(self.high), high: over(self.low) }
    }

    /// Whether the two have a value in common, as far as arithmetic can tell.
    #[must_use]
    pub fn meets(self, other: Range) -> bool {
        let at_most = |low: f64, high: f64| low <= high || low - high <= ROUNDING * high.abs();
        at_most(self.low, other.high) && at_most(other.low, self.high)
    }

    /// The value in the middle.
    #[must_use]
    pub fn middle(self) -> f64 {
        f64::midpoint(self.low, self.high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<(f64, u32)>) {
        let found = Number::parse(text).map(|number| (number.value, number.decimals));
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn numbers_have_digits_and_at_most_one_point() {
        check("12.72722", Some((12.727_22, 5)));
        check("0", Some((0.0, 0)));
        check("-3", Some((-3.0, 0)));
        check("1e5", None);
        check("1.", None);
        check(".5", None);
        check("1.2.3", None);
        check("nan", None);
        check("", None);
        check("123456789012345678901", None);
    }

    #[test]
    fn ranges_meet_where_the_last_digits_allow_it() {
        let range = |text: &str| Number::parse(text).unwrap().range();
        assert!(range("11.40").meets(range("87.709").under(1000.0)));
        let endless = Range { low: 5.0, high: f64::INFINITY };
        assert!(endless.meets(range("5")) && !endless.meets(range("4")) && !range("4").meets(endless));
        assert!(!range("11.41").meets(range("87.709").under(1000.0)));
    }
}
