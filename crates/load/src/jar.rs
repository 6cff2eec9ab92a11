//! The cookies of one connection, or of one user's: what the server last set, until it takes it back.
//!
//! It keeps names and values and sends them with every request, as for `Path=/`. Of the attributes it knows only those that
//! delete: `Max-Age` of 0 or less, and `Expires` in the past. A load asks one server, so domains and paths would only make
//! it slower.

use rustix::time::{ClockId, clock_gettime};

/// Cookies by name, in the order in which they were first set.
#[derive(Debug, Default)]
pub(crate) struct Jar {
    cookies: Vec<Cookie>,
}

#[derive(Debug)]
struct Cookie {
    name: Vec<u8>,
    value: Vec<u8>,
    // Taken back: kept so that one that goes along with every request is held back.
    deleted: bool,
}

/// More cookies than a browser keeps for a host, and longer ones, are not kept.
const MOST: usize = 180;
const LONGEST: usize = 4096;

impl Jar {
    /// Takes the value of a `Set-Cookie` field.
    pub(crate) fn set(&mut self, field: &[u8]) {
        let mut parts = field.split(|&b| b == b';').map(<[u8]>::trim_ascii);
        let Some((name, value)) = parts.next().and_then(pair) else { return };
        if name.is_empty() || name.len() + value.len() > LONGEST {
            return;
        }
        let deleted = is_over(parts);
        if let Some(cookie) = self.cookies.iter_mut().find(|cookie| cookie.name == name) {
            cookie.value.clear();
            cookie.value.extend_from_slice(value);
            cookie.deleted = deleted;
        } else if self.cookies.len() < MOST {
            self.cookies.push(Cookie { name: name.to_owned(), value: value.to_owned(), deleted });
        }
    }

    /// Writes the `Cookie` field behind `out`, if there are any: those of `own` that the server has not set or taken back,
    /// then its own. `fill_in` writes the value of one of `own`.
    pub(crate) fn write<V>(&self, own: &[(String, V)], fill_in: impl Fn(&V, &mut Vec<u8>), out: &mut Vec<u8>) {
        let begun = out.len();
        let name = |name: &[u8], out: &mut Vec<u8>| {
            for part in [if out.len() == begun { b"Cookie: ".as_slice() } else { b"; " }, name, b"="] {
                out.extend_from_slice(part);
            }
        };
        let is_own = |name: &str| !self.cookies.iter().any(|cookie| cookie.name == name.as_bytes());
        for (own, value) in own.iter().filter(|(name, _)| is_own(name)) {
            name(own.as_bytes(), out);
            fill_in(value, out);
        }
        for cookie in self.cookies.iter().filter(|cookie| !cookie.deleted) {
            name(&cookie.name, out);
            out.extend_from_slice(&cookie.value);
        }
        if out.len() > begun {
            out.extend_from_slice(b"\r\n");
        }
    }
}

/// The cookies of a `Cookie` field.
pub(crate) fn pairs(field: &str) -> Vec<(String, String)> {
    let pair = |part: &str| part.trim().split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
    field.split(';').filter_map(pair).collect()
}

fn pair(part: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = part.iter().position(|&b| b == b'=')?;
    Some((part[..at].trim_ascii(), part[at + 1..].trim_ascii()))
}

/// Whether attributes say that the cookie ends at once; `Max-Age` goes before `Expires`: RFC 6265 section 5.3.
fn is_over<'a>(attributes: impl Iterator<Item = &'a [u8]>) -> bool {
    let (mut age, mut expires) = (None, None);
    for (name, value) in attributes.filter_map(pair) {
        if name.eq_ignore_ascii_case(b"max-age") {
            let digits = value.strip_prefix(b"-").unwrap_or(value);
            if !digits.is_empty() && digits.iter().all(u8::is_ascii_digit) {
                age = Some(value[0] == b'-' || digits.iter().all(|&digit| digit == b'0'));
            }
        } else if name.eq_ignore_ascii_case(b"expires") {
            expires = seconds_of(value).map(|end| end <= now());
        }
    }
    age.or(expires).unwrap_or(false)
}

/// Seconds since 1970 by the wall clock.
fn now() -> i64 {
    clock_gettime(ClockId::Realtime).tv_sec
}

/// A date as servers write it, in seconds since 1970: the words of RFC 6265 section 5.1.1 in any order.
fn seconds_of(date: &[u8]) -> Option<i64> {
    let (mut time, mut day, mut month, mut year) = (None, None, None, None);
    let is_word = |b: u8| b.is_ascii_alphanumeric() || b == b':';
    for word in date.split(|&b| !is_word(b)).filter(|word| !word.is_empty()) {
        let number = || std::str::from_utf8(word).ok()?.parse::<i64>().ok();
        if time.is_none() && word.contains(&b':') {
            time = clock(word);
        } else if day.is_none() && word.len() <= 2 && number().is_some() {
            day = number();
        } else if month.is_none() && month_of(word).is_some() {
            month = month_of(word);
        } else if year.is_none() && word.len() >= 2 && number().is_some() {
            year = number().map(|year| match year {
                0..=69 => year + 2000,
                70..=99 => year + 1900,
                year => year,
            });
        }
    }
    let (day, year) = (day.filter(|day| (1..=31).contains(day))?, year.filter(|year| (1601..=9999).contains(year))?);
    Some(days(year, month?, day) * 86_400 + time?)
}

fn clock(word: &[u8]) -> Option<i64> {
    let mut parts = std::str::from_utf8(word).ok()?.split(':').map(|part| part.parse::<i64>().ok());
    let mut part = |most| parts.next()?.filter(|part| (0..=most).contains(part));
    let [hours, minutes, seconds] = [part(23)?, part(59)?, part(59)?];
    Some(hours * 3600 + minutes * 60 + seconds)
}

fn month_of(word: &[u8]) -> Option<i64> {
    const MONTHS: &[u8; 36] = b"janfebmaraprmayjunjulaugsepoctnovdec";
    let name = word.get(..3)?;
    let at = MONTHS.chunks(3).position(|month| month.eq_ignore_ascii_case(name))?;
    i64::try_from(at).ok()
}

/// Days from 1970 to a day of the Gregorian calendar; months from 0.
fn days(year: i64, month: i64, day: i64) -> i64 {
    // Years that begin in March end with the leap day.
    let (year, month) = if month < 2 { (year - 1, month + 10) } else { (year, month - 2) };
    let leap_days = year / 4 - year / 100 + year / 400;
    year * 365 + leap_days + (month * 153 + 2) / 5 + day - 719_469
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is sent after these fields, beside cookies of the load's own.
    #[track_caller]
    fn check(own: &str, set: &[&str], expected: &str) {
        let mut jar = Jar::default();
        set.iter().for_each(|field| jar.set(field.as_bytes()));
        let mut out = Vec::new();
        jar.write(&pairs(own), |value, out| out.extend_from_slice(value.as_bytes()), &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn what_is_set_is_sent() {
        check("", &[], "");
        check("", &["a=1; Path=/; HttpOnly", "b=2"], "Cookie: a=1; b=2\r\n");
        check("", &["a=1", "b=2", "a=x=y"], "Cookie: a=x=y; b=2\r\n");
        check("s=0; t=1", &["t=2"], "Cookie: s=0; t=2\r\n");
        check("", &["", "x", "=1", ";a=1"], "");
    }

    #[test]
    fn what_is_taken_back_is_not() {
        for end in [
            "Max-Age=0",
            "max-age=-1",
            "Expires=Thu, 01 Jan 1970 00:00:00 GMT",
            "expires=Wed, 21-Oct-15 07:28:00 GMT",
            "Expires=Sun Nov  6 08:49:37 1994",
            "Expires=Fri, 31 Dec 9999 23:59:59 GMT; Max-Age=0",
        ] {
            check("a=0; b=0", &["a=1", &format!("a=; {end}")], "Cookie: b=0\r\n");
        }
        for on in [
            "Max-Age=1",
            "Max-Age=x",
            "Expires=Fri, 31 Dec 9999 23:59:59 GMT",
            "Expires=soon",
            "Expires=Mon, 1 Jan 1990 00:00:00 GMT; Max-Age=5",
        ] {
            check("", &[&format!("a=1; {on}")], "Cookie: a=1\r\n");
        }
        check("", &["a=1", "a=; Max-Age=0", "a=2"], "Cookie: a=2\r\n");
    }

    #[test]
    fn dates_are_seconds() {
        let check = |text: &str, expected| assert_eq!(seconds_of(text.as_bytes()), expected, "{text}");
        check("Thu, 01 Jan 1970 00:00:00 GMT", Some(0));
        check("Sun, 06 Nov 1994 08:49:37 GMT", Some(784_111_777));
        check("Tue, 29 Feb 2028 12:00:00 GMT", Some(1_835_438_400));
        check("Sun, 06 Nov 1994", None);
        check("8:49:37 32 Nov 1994", None);
        for time in ["24:00:00", "23:60:00", "23:59:60", "9999999999999999:0:0", "0:9999999999999999999:0"] {
            check(&format!("Thu, 01 Jan 2030 {time} GMT"), None);
        }
    }
}
