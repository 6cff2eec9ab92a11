//! How ab reads its command line: apr_getopt, rule for rule. Short options, bundled or not, values attached or not, nothing after
//! the first word that is no option; and our long options, which ab cannot have.

/// Words being read.
pub(super) struct Getopt<'a> {
    words: &'a [String],
    next: usize,
    /// What is left of a word of bundled options.
    rest: &'a str,
}

/// What comes next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next<'a> {
    /// An option, and its value if it takes one.
    Option(char, &'a str),
    /// A long option, without its dashes.
    Long(&'a str),
    /// An option that ab does not have; ab reads no further.
    Illegal(char),
    /// An option without its value; ab reads no further.
    Missing(char),
    /// No more options.
    End,
}

/// The options of httpd 2.4's ab; a colon follows those that take a value.
const OPTIONS: &str = "n:c:t:s:b:T:p:u:v:lrkVhwiIx:y:z:C:H:P:A:g:X:de:SqB:m:Z:f:E:";

impl<'a> Getopt<'a> {
    /// Reads words, without the program's name.
    pub(super) fn new(words: &'a [String]) -> Self {
        Getopt { words, next: 0, rest: "" }
    }

    /// Words that have not been read. After an illegal option within a bundle, that bundle is one of them, as in ab.
    pub(super) fn left(&self) -> &'a [String] {
        self.words.get(self.next..).unwrap_or_default()
    }

    /// The next word as it is: the value of a long option.
    pub(super) fn word(&mut self) -> Option<&'a str> {
        let word = self.words.get(self.next)?;
        self.next += 1;
        Some(word)
    }

    /// The next option.
    pub(super) fn next(&mut self) -> Next<'a> {
        if self.rest.is_empty() {
            let Some(bundle) = self.words.get(self.next).and_then(|word| word.strip_prefix('-')) else {
                return Next::End;
            };
            if let Some(name) = bundle.strip_prefix('-') {
                self.next += 1;
                return if name.is_empty() { Next::End } else { Next::Long(name) };
            }
            self.rest = bundle;
        }
        let mut letters = self.rest.chars();
        // A dash alone, or within a bundle, ends the options and stays a word.
        let Some(letter) = letters.next().filter(|letter| *letter != '-') else { return Next::End };
        self.rest = letters.as_str();
        match takes_value(letter) {
            None => {
                self.leave_bundle();
                Next::Illegal(letter)
            }
            Some(false) => {
                self.leave_bundle();
                Next::Option(letter, "")
            }
            Some(true) => self.value(letter),
        }
    }

    fn leave_bundle(&mut self) {
        if self.rest.is_empty() {
            self.next += 1;
        }
    }

    fn value(&mut self, letter: char) -> Next<'a> {
        self.next += 1;
        let attached = std::mem::take(&mut self.rest);
        if !attached.is_empty() {
            return Next::Option(letter, attached);
        }
        self.word().map_or(Next::Missing(letter), |value| Next::Option(letter, value))
    }
}

/// Whether an option takes a value; `None` if there is no such option.
fn takes_value(letter: char) -> Option<bool> {
    let at = OPTIONS.find(letter).filter(|_| letter != ':')?;
    Some(OPTIONS[at..].chars().nth(1) == Some(':'))
}

/// A number as C's atoi reads it here: what can be read of it, garbage as 0, and too much as what fits into its 32 lower bits.
pub(super) fn atoi(text: &str) -> i32 {
    let text = text.trim_start_matches([' ', '\t', '\n', '\u{b}', '\u{c}', '\r']);
    let (negative, digits) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let digits = digits.bytes().take_while(u8::is_ascii_digit).map(|digit| i64::from(digit - b'0'));
    let sign = if negative { -1 } else { 1 };
    let read = digits.fold(0_i64, |number, digit| number.saturating_mul(10).saturating_add(sign * digit));
    read as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(typed: &str, expected: &[Next<'_>], left: &[&str]) {
        let words: Vec<String> = typed.split_whitespace().map(str::to_owned).collect();
        let mut getopt = Getopt::new(&words);
        for expected in expected {
            assert_eq!(getopt.next(), *expected, "{typed}");
        }
        assert_eq!(getopt.left(), left, "{typed}");
    }

    #[test]
    fn options_are_read_as_apr_reads_them() {
        use Next::{End, Illegal, Long, Missing, Option};
        check("-kn2 -c 1 u", &[Option('k', ""), Option('n', "2"), Option('c', "1"), End], &["u"]);
        check("-n -c u", &[Option('n', "-c"), End], &["u"]);
        check("u -k", &[End], &["u", "-k"]);
        check("-k -- -q u", &[Option('k', ""), End], &["-q", "u"]);
        check("--rate 5 u", &[Long("rate"), End], &["5", "u"]);
        check("-", &[End], &["-"]);
        check("-k- u", &[Option('k', ""), End], &["-k-", "u"]);
        check("-Q u", &[Illegal('Q')], &["u"]);
        check("-Qk u", &[Illegal('Q')], &["-Qk", "u"]);
        check("-: u", &[Illegal(':')], &["u"]);
        check("-kz", &[Option('k', ""), Missing('z')], &[]);
        check("-é u", &[Illegal('é')], &["u"]);
    }

    #[test]
    fn numbers_are_read_as_c_reads_them() {
        let check = |text: &str, expected: i32| assert_eq!(atoi(text), expected, "{text}");
        check("12", 12);
        check(" \t+12x", 12);
        check("-3", -3);
        check("1e3", 1);
        check("x", 0);
        check("", 0);
        check("--1", 0);
        check("2147483648", i32::MIN);
        check("4294967297", 1);
        check("99999999999999999999", -1);
        check("-99999999999999999999", 0);
    }
}
