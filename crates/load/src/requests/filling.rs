//! Requests that differ from one another: templates, cookies, targets of a log, bodies that wait.
//!
//! Each is put together in the buffer it is sent from. Whatever chance decides follows from the seed, the request's serial
//! number and the place in the template, so the same request comes out the same however often it is asked for.

use super::{Rest, scramble};
use crate::jar::Jar;
use model::plan::{Piece, TemplateError, pieces};

/// A request as pieces.
pub(crate) struct Filling {
    head: Vec<Part>,
    body: Vec<Part>,
    /// What is sent only when the server asks for it.
    pub(crate) waits: Rest,
}

enum Part {
    Plain(Vec<u8>),
    Counter,
    Random { from: u64, to: u64, place: u64 },
    Hex { digits: u32, place: u64 },
    Logged,
    BodyLength,
    Cookies(Vec<(String, Vec<Part>)>),
}

/// Which request it is.
#[derive(Clone, Copy)]
pub(crate) struct Which<'a> {
    /// The load's seed.
    pub(crate) seed: u64,
    /// The request's number, from 0.
    pub(crate) serial: u64,
    /// Its target, if a log says.
    pub(crate) logged: Option<&'a str>,
    /// The cookies of its connection, if it keeps any.
    pub(crate) jar: Option<&'a Jar>,
}

impl Filling {
    /// A request whose head and body may hold templates. `cookies` are those that go out beside the connection's own, if it
    /// keeps any.
    pub(crate) fn new(
        head: &str,
        body: &[u8],
        waits: Rest,
        cookies: Option<Vec<(String, String)>>,
    ) -> Result<Filling, TemplateError> {
        let mut places = 0;
        // What is no text is sent as it is.
        let body = match std::str::from_utf8(body) {
            Ok(text) => parts(text, &mut places)?,
            Err(_) => vec![Part::Plain(body.to_owned())],
        };
        // Without a body there may be no such field.
        let (before, after) = head.split_at(length_value(head));
        let mut all = parts(before, &mut places)?;
        if !before.is_empty() {
            all.push(match body.as_slice() {
                [] => Part::Plain(b"0".to_vec()),
                [Part::Plain(bytes)] => Part::Plain(bytes.len().to_string().into_bytes()),
                _ => Part::BodyLength,
            });
        }
        let after = if before.is_empty() { after } else { after.trim_start_matches(|c: char| c.is_ascii_digit()) };
        match cookies {
            None => all.extend(parts(after, &mut places)?),
            Some(cookies) => {
                let fields = after.strip_suffix("\r\n").unwrap_or(after);
                all.extend(parts(fields, &mut places)?);
                let filled = cookies.into_iter().map(|(name, value)| Ok((name, parts(&value, &mut places)?)));
                all.extend([Part::Cookies(filled.collect::<Result<_, _>>()?), Part::Plain(b"\r\n".to_vec())]);
            }
        }
        Ok(Filling { head: all, body, waits })
    }

    /// The whole request, when all are the same.
    pub(crate) fn fixed(&self) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        for part in self.head.iter().chain(&self.body) {
            let Part::Plain(plain) = part else { return None };
            bytes.extend_from_slice(plain);
        }
        (self.waits == Rest::Nothing).then_some(bytes)
    }

    /// Puts the head behind `out`.
    pub(crate) fn head(&self, which: Which<'_>, out: &mut Vec<u8>) {
        for part in &self.head {
            match part {
                Part::BodyLength => decimal(self.body.iter().map(|part| part.length(which)).sum(), out),
                part => part.fill_in(which, out),
            }
        }
    }

    /// Puts the body behind `out`.
    pub(crate) fn body(&self, which: Which<'_>, out: &mut Vec<u8>) {
        self.body.iter().for_each(|part| part.fill_in(which, out));
    }
}

/// Where the number of `Content-Length` begins. No value of a field holds a line break, so there is only one.
fn length_value(head: &str) -> usize {
    const FIELD: &str = "\r\nContent-Length: ";
    head.find(FIELD).map_or(0, |at| at + FIELD.len())
}

fn parts(text: &str, places: &mut u64) -> Result<Vec<Part>, TemplateError> {
    let mut part = |piece| {
        *places += 1;
        match piece {
            Piece::Plain(bytes) => Part::Plain(bytes),
            Piece::Counter => Part::Counter,
            Piece::Random { from, to } => Part::Random { from, to, place: *places },
            Piece::Hex { digits } => Part::Hex { digits, place: *places },
            Piece::Logged => Part::Logged,
        }
    };
    Ok(pieces(text)?.into_iter().map(&mut part).collect())
}

impl Part {
    fn fill_in(&self, which: Which<'_>, out: &mut Vec<u8>) {
        match *self {
            Part::Plain(ref bytes) => out.extend_from_slice(bytes),
            Part::Counter => decimal(which.serial.saturating_add(1), out),
            Part::Random { from, to, place } => decimal(which.between(from, to, place), out),
            Part::Hex { digits, place } => {
                let nibbles = (0..).flat_map(|word| {
                    let drawn = which.draw(place, word);
                    (0..16).map(move |nibble| ((drawn >> (60 - 4 * nibble)) & 15) as usize)
                });
                out.extend(nibbles.take(digits as usize).map(|nibble| b"0123456789abcdef"[nibble]));
            }
            Part::Logged => out.extend_from_slice(which.logged.unwrap_or("/").as_bytes().get(1..).unwrap_or_default()),
            Part::Cookies(ref own) => {
                let fill_in =
                    |value: &Vec<Part>, out: &mut Vec<u8>| value.iter().for_each(|part| part.fill_in(which, out));
                match which.jar {
                    Some(jar) => jar.write(own, fill_in, out),
                    None => Jar::default().write(own, fill_in, out),
                }
            }
            // Only a head holds it, which knows its body.
            Part::BodyLength => {}
        }
    }

    /// How many bytes [`Part::fill_in`] writes; of a body's part.
    fn length(&self, which: Which<'_>) -> u64 {
        let digits = |number: u64| u64::from(number.checked_ilog10().map_or(1, |log| log + 1));
        match *self {
            Part::Plain(ref bytes) => bytes.len() as u64,
            Part::Counter => digits(which.serial.saturating_add(1)),
            Part::Random { from, to, place } => digits(which.between(from, to, place)),
            Part::Hex { digits, .. } => u64::from(digits),
            Part::Logged | Part::BodyLength | Part::Cookies(_) => 0,
        }
    }
}

impl Which<'_> {
    /// 64 bits of chance for a place in the template.
    fn draw(self, place: u64, word: u64) -> u64 {
        scramble(scramble(scramble(self.seed ^ scramble(self.serial)).wrapping_add(place)).wrapping_add(word))
    }

    fn between(self, from: u64, to: u64, place: u64) -> u64 {
        // The high half of a product spreads the bits over the range; the bias is below its width / 2^64.
        let width = u128::from(to - from) + 1;
        from + ((u128::from(self.draw(place, 0)) * width) >> 64) as u64
    }
}

fn decimal(mut number: u64, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The request of a serial number, of a head and a body.
    fn filled(head: &str, body: &str, serial: u64) -> String {
        let filling = Filling::new(head, body.as_bytes(), Rest::Nothing, None).unwrap();
        let which = Which { seed: 7, serial, logged: Some("/x?y"), jar: None };
        let mut out = Vec::new();
        filling.head(which, &mut out);
        filling.body(which, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[track_caller]
    fn check(head: &str, body: &str, serial: u64, expected: &str) {
        assert_eq!(filled(head, body, serial), expected);
    }

    #[test]
    fn places_are_filled_in() {
        check("GET /${counter} HTTP/1.1\r\n\r\n", "", 0, "GET /1 HTTP/1.1\r\n\r\n");
        check("GET /${logged} HTTP/1.1\r\n\r\n", "", 8, "GET /x?y HTTP/1.1\r\n\r\n");
        check("P /\r\nContent-Length: 16\r\n\r\n", "n=${counter}", 99, "P /\r\nContent-Length: 5\r\n\r\nn=100");
        check("P /\r\nContent-Length: 3\r\n\r\n", "a=b", 99, "P /\r\nContent-Length: 3\r\n\r\na=b");
        check("P /\r\nContent-Length: 5\r\n\r\n", "a$${b", 0, "P /\r\nContent-Length: 4\r\n\r\na${b");
    }

    #[test]
    fn a_request_comes_out_the_same_again_and_differs_from_the_next() {
        let head = "GET /${hex:33}/${random:0-18446744073709551615}/${random:0-18446744073709551615} HTTP/1.1\r\n\r\n";
        assert_eq!(filled(head, "", 5), filled(head, "", 5));
        let [five, six] = [5, 6].map(|serial| filled(head, "", serial));
        assert_ne!(five, six);
        let words: Vec<&str> = five.split([' ', '/']).collect();
        assert!(words[2].len() == 33 && words[2].bytes().all(|b| b.is_ascii_hexdigit()), "{five}");
        assert_ne!(words[3], words[4]);
    }

    #[test]
    fn random_numbers_reach_both_ends_and_no_further() {
        let drawn: std::collections::BTreeSet<String> =
            (0..1000).map(|serial| filled("${random:9-12}", "", serial)).collect();
        assert!(drawn.iter().eq(["10", "11", "12", "9"]), "{drawn:?}");
    }

    #[test]
    fn the_length_is_that_of_each_body() {
        for serial in 0..1000 {
            let text = filled("P\r\nContent-Length: 0\r\n\r\n", "${random:0-100000}${hex:3}${counter}", serial);
            let (head, body) = text.split_once("\r\n\r\n").unwrap();
            assert!(head.ends_with(&format!(": {}", body.len())), "{text}");
        }
    }
}
