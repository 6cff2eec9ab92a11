//! Times as logs write them. Several fields of a line may be parts of one time, such as a date and its milliseconds.

use crate::entry::{Moment, Resolution, Timestamp};
use jiff::civil::DateTime;
use jiff::fmt::strtime::BrokenDownTime;
use jiff::tz::Offset;

/// How a field writes a time or a part of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fragment {
    /// `21/Nov/2026:03:20:40 +0000`.
    Clf,
    /// `2026-11-21T03:20:40+00:00`.
    Iso8601,
    /// A number of seconds, milliseconds or microseconds since 1970.
    Epoch(Resolution),
    /// Seconds with three decimals since 1970.
    EpochMillis,
    /// Digits of the second, as many as the resolution has.
    Fraction(Resolution),
    /// As the pattern says; it may lack the date or the time of day.
    Strftime(String),
}

/// What strftime abbreviates, in the C locale; jiff parses only the parts.
const ABBREVIATIONS: [(char, &str); 5] =
    [('c', "%a %b %e %H:%M:%S %Y"), ('r', "%I:%M:%S %p"), ('X', "%H:%M:%S"), ('x', "%m/%d/%y"), ('h', "%b")];

/// What can be parsed by itself.
const LETTERS: &str = "%aAbBCdDeFHIjklmMnpPRsStTuwyYz";

impl Fragment {
    /// A pattern of strftime.
    ///
    /// # Errors
    /// The conversion that cannot be read back.
    pub(crate) fn strftime(pattern: &str) -> Result<Fragment, char> {
        let mut known = String::new();
        let mut letters = pattern.chars();
        while let Some(letter) = letters.next() {
            if letter != '%' {
                known.push(letter);
                continue;
            }
            let conversion = letters.next().unwrap_or('%');
            match ABBREVIATIONS.iter().find(|(letter, _)| *letter == conversion) {
                Some((_, parts)) => known.push_str(parts),
                None if LETTERS.contains(conversion) => known.extend(['%', conversion]),
                None => return Err(conversion),
            }
        }
        Ok(Fragment::Strftime(known))
    }

    /// Whether `written` can be this.
    pub(crate) fn accepts(&self, written: &[u8]) -> bool {
        match self {
            Fragment::Strftime(pattern) => BrokenDownTime::parse(pattern, written).is_ok(),
            Fragment::Fraction(_) => self.fraction(written).is_some(),
            Fragment::Clf | Fragment::Iso8601 | Fragment::Epoch(_) | Fragment::EpochMillis => {
                self.whole(written).is_some()
            }
        }
    }

    /// Nanoseconds since 1970, when this fragment alone is a time.
    fn whole(&self, written: &[u8]) -> Option<i64> {
        match self {
            Fragment::Clf => clf(written),
            Fragment::Iso8601 => {
                let time: jiff::Timestamp = std::str::from_utf8(written).ok()?.parse().ok()?;
                i64::try_from(time.as_nanosecond()).ok()
            }
            Fragment::Epoch(resolution) => digits(written)?.checked_mul(resolution.ns() as i64),
            Fragment::EpochMillis => {
                let dot = written.iter().position(|byte| *byte == b'.')?;
                let seconds = digits(&written[..dot])?.checked_mul(1_000_000_000)?;
                seconds.checked_add(Fragment::Fraction(Resolution::Milli).fraction(&written[dot + 1..])?)
            }
            Fragment::Fraction(_) | Fragment::Strftime(_) => None,
        }
    }

    /// The nanoseconds of a second's digits.
    fn fraction(&self, written: &[u8]) -> Option<i64> {
        match (self, written.len()) {
            (Fragment::Fraction(Resolution::Milli), 3) | (Fragment::Fraction(Resolution::Micro), 6) => {
                Some(digits(written)? * self.resolution().ns() as i64)
            }
            _ => None,
        }
    }

    fn resolution(&self) -> Resolution {
        match self {
            Fragment::Epoch(resolution) | Fragment::Fraction(resolution) => *resolution,
            Fragment::EpochMillis => Resolution::Milli,
            Fragment::Clf | Fragment::Iso8601 | Fragment::Strftime(_) => Resolution::Second,
        }
    }
}

/// The time that the fragments of one line make together. The start is preferred to the end, and the finest to the rest.
pub(crate) fn assemble(fragments: &[(&Fragment, Moment, &[u8])]) -> Option<Timestamp> {
    [Moment::Start, Moment::End].into_iter().find_map(|of| {
        let written =
            || fragments.iter().filter(move |(_, moment, _)| *moment == of).map(|(part, _, text)| (*part, *text));
        let (ns, resolution) = written()
            .filter_map(|(fragment, text)| Some((fragment.whole(text)?, fragment.resolution())))
            .max_by_key(|(_, resolution)| *resolution)
            .or_else(|| Some((broken_down(written())?, Resolution::Second)))?;
        let fraction = written()
            .filter_map(|(fragment, text)| Some((fragment.fraction(text)?, fragment.resolution())))
            .filter(|_| resolution == Resolution::Second)
            .max_by_key(|(_, resolution)| *resolution);
        Some(match fraction {
            Some((more, finer)) => Timestamp { ns: ns.checked_add(more)?, resolution: finer, of },
            None => Timestamp { ns, resolution, of },
        })
    })
}

/// All strftime fragments, read as one.
fn broken_down<'a>(written: impl Iterator<Item = (&'a Fragment, &'a [u8])>) -> Option<i64> {
    let (mut pattern, mut text) = (String::new(), Vec::new());
    for (fragment, written) in written {
        if let Fragment::Strftime(part) = fragment {
            pattern.push_str(part);
            pattern.push(' ');
            text.extend(written);
            text.push(b' ');
        }
    }
    let parsed = BrokenDownTime::parse(&pattern, &text).ok()?;
    let time = parsed.to_timestamp().ok().or_else(|| {
        let local = parsed.to_datetime().ok()?;
        Offset::UTC.to_timestamp(local).ok()
    })?;
    i64::try_from(time.as_nanosecond()).ok()
}

/// The common log format's own time, without jiff's general parser: it is in nearly every line of nearly every log.
fn clf(written: &[u8]) -> Option<i64> {
    const MONTHS: [&[u8]; 12] =
        [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];
    let marks = [(2, b'/'), (6, b'/'), (11, b':'), (14, b':'), (17, b':'), (20, b' ')];
    if written.len() != 26 || marks.iter().any(|(at, mark)| written[*at] != *mark) {
        return None;
    }
    let number = |from: usize, to: usize| digits(&written[from..to]).and_then(|number| i16::try_from(number).ok());
    let small = |from: usize| number(from, from + 2).and_then(|number| i8::try_from(number).ok());
    let month = MONTHS.iter().position(|name| *name == &written[3..6])?;
    // A leap second has no place on this scale; it is the one before it, twice.
    let second = small(18)?.min(59);
    let local =
        DateTime::new(number(7, 11)?, i8::try_from(month + 1).ok()?, small(0)?, small(12)?, small(15)?, second, 0)
            .ok()?;
    let distance = i32::from(small(22)?) * 3600 + i32::from(small(24)?) * 60;
    let offset = match written[21] {
        b'+' => distance,
        b'-' => -distance,
        _ => return None,
    };
    let time = Offset::from_seconds(offset).ok()?.to_timestamp(local).ok()?;
    time.as_second().checked_mul(1_000_000_000)
}

fn digits(written: &[u8]) -> Option<i64> {
    let is_number = !written.is_empty() && written.len() <= 18 && written.iter().all(u8::is_ascii_digit);
    is_number.then(|| written.iter().fold(0, |value, digit| value * 10 + i64::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: i64 = 1_795_231_240_000_000_000;

    fn check(fragments: &[(Fragment, &str)], expected: Option<(i64, Resolution)>) {
        let fragments: Vec<_> =
            fragments.iter().map(|(fragment, text)| (fragment, Moment::End, text.as_bytes())).collect();
        let whole = assemble(&fragments).filter(|_| fragments.iter().all(|(part, _, text)| part.accepts(text)));
        assert_eq!(whole.map(|time| (time.ns, time.resolution)), expected, "{fragments:?}");
    }

    fn strftime(pattern: &str) -> Fragment {
        Fragment::strftime(pattern).unwrap()
    }

    #[test]
    fn one_field_is_a_time() {
        let second = |ns| Some((ns, Resolution::Second));
        check(&[(Fragment::Clf, "21/Nov/2026:03:20:40 +0000")], second(AT));
        check(&[(Fragment::Clf, "20/Nov/2026:22:50:40 -0430")], second(AT));
        check(&[(Fragment::Clf, "21/Nov/2026:03:20:60 +0000")], second(AT + 19_000_000_000));
        check(&[(Fragment::Iso8601, "2026-11-21T12:20:40+09:00")], second(AT));
        check(&[(Fragment::Epoch(Resolution::Second), "1795231240")], second(AT));
        check(&[(Fragment::Epoch(Resolution::Micro), "1795231240000001")], Some((AT + 1_000, Resolution::Micro)));
        check(&[(Fragment::EpochMillis, "1795231240.007")], Some((AT + 7_000_000, Resolution::Milli)));
        check(&[(strftime("%Y-%m-%dT%T%z"), "2026-11-21T04:20:40+0100")], second(AT));
        check(&[(strftime("%c"), "Sat Nov 21 03:20:40 2026")], second(AT));
        check(&[(strftime("%s"), "1795231240")], second(AT));
    }

    #[test]
    fn several_fields_are_one_time() {
        check(
            &[
                (strftime("%d/%b/%Y %T"), "21/Nov/2026 05:20:40"),
                (Fragment::Fraction(Resolution::Micro), "000042"),
                (strftime("%z"), "+0200"),
            ],
            Some((AT + 42_000, Resolution::Micro)),
        );
        check(
            &[(Fragment::Epoch(Resolution::Second), "1795231240"), (Fragment::Fraction(Resolution::Milli), "500")],
            Some((AT + 500_000_000, Resolution::Milli)),
        );
        check(
            &[(Fragment::Clf, "21/Nov/2026:03:20:40 +0000"), (Fragment::EpochMillis, "1795231240.250")],
            Some((AT + 250_000_000, Resolution::Milli)),
        );
    }

    #[test]
    fn what_is_no_time() {
        for text in [
            "",
            "-",
            "21/Nov/2026:03:20:40",
            "31/Feb/2026:03:20:40 +0000",
            "21/Nov/2026:25:20:40 +0000",
            "21/nov/2026:03:20:40 +0000",
            "21/Nov/2026:03:20:40 *0000",
        ] {
            check(&[(Fragment::Clf, text)], None);
        }
        check(&[(Fragment::Epoch(Resolution::Second), "99999999999999999999")], None);
        check(&[(Fragment::Epoch(Resolution::Second), "999999999999999999")], None);
        check(&[(Fragment::EpochMillis, "1795231240.25")], None);
        check(&[(strftime("%H:%M"), "03:20")], None);
        assert_eq!(Fragment::strftime("%H %Z"), Err('Z'));
        assert_eq!(Fragment::strftime("%Q"), Err('Q'));
    }
}
