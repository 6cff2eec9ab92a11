//! What an answer is held to: `status = 200`, `length >= 10`, `header content-type contains text/html`, `body contains OK`.

use regex::bytes::Regex;
use serde::{Deserialize, Serialize};
use std::fmt;

/// One thing that must hold of every answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Check {
    /// Its status. A load with such a check has no other rule about statuses; without one, a status must be 2xx.
    Status(Comparison, u64),
    /// Bytes of its body.
    Length(Comparison, u64),
    /// One of its header fields of that name.
    Header {
        /// The name, in lower case.
        name: String,
        /// What its value must be.
        test: Test,
    },
    /// Its body.
    Body(Test),
}

/// How two numbers compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// `=`
    Equal,
    /// `!=`
    Different,
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    More,
    /// `>=`
    AtLeast,
}

/// What bytes must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Test {
    /// Exactly that.
    Is(String),
    /// That is somewhere in them.
    Contains(String),
    /// A regular expression finds something in them.
    Matches(String),
}

/// Why a check could not be read; one sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    /// It begins with nothing known.
    #[error("`{0}` is no check: it begins with status, length, header or body, such as 'status = 200'")]
    Subject(String),
    /// A number is compared, and here none is.
    #[error("`{0}` must be a comparison with a whole number: one of = != < <= > >=, such as '{1} = 200'")]
    Number(String, &'static str),
    /// Neither `=`, `contains` nor `matches`, or nothing behind it.
    #[error("`{0}` does not say what to find: write {1} contains TEXT, {1} matches REGEX or {1} = TEXT")]
    Test(String, &'static str),
    /// A name that no field has.
    #[error("`{0}` names no header field; write header NAME contains TEXT")]
    Name(String),
    /// Not a regular expression.
    #[error("`{0}` is not a regular expression: {1}")]
    Regex(String, String),
}

impl Comparison {
    const ALL: [(Comparison, &'static str); 6] = [
        // What another one begins with comes behind it.
        (Comparison::Different, "!="),
        (Comparison::AtMost, "<="),
        (Comparison::AtLeast, ">="),
        (Comparison::Equal, "="),
        (Comparison::Less, "<"),
        (Comparison::More, ">"),
    ];

    /// Whether it holds between a value found and the one asked for.
    #[must_use]
    pub fn holds(self, found: u64, asked: u64) -> bool {
        match self {
            Comparison::Equal => found == asked,
            Comparison::Different => found != asked,
            Comparison::Less => found < asked,
            Comparison::AtMost => found <= asked,
            Comparison::More => found > asked,
            Comparison::AtLeast => found >= asked,
        }
    }
}

impl Check {
    /// Reads a check.
    ///
    /// # Errors
    /// When it makes no sense.
    pub fn parse(text: &str) -> Result<Check, CheckError> {
        let text = text.trim();
        let end = text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len());
        let rest = text[end..].trim_start();
        match &text[..end] {
            "status" => number(text, rest, "status").map(|(comparison, n)| Check::Status(comparison, n)),
            "length" => number(text, rest, "length").map(|(comparison, n)| Check::Length(comparison, n)),
            "body" => test(text, rest, "body").map(Check::Body),
            "header" => {
                let end = rest.find(|c: char| c.is_whitespace() || c == '=').unwrap_or(rest.len());
                let name = rest[..end].to_ascii_lowercase();
                let is_name =
                    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.~".contains(&b));
                if !is_name {
                    return Err(CheckError::Name(text.to_owned()));
                }
                Ok(Check::Header { name, test: test(text, rest[end..].trim_start(), "header NAME")? })
            }
            _ => Err(CheckError::Subject(text.to_owned())),
        }
    }
}

/// Whether these checks say which statuses are good.
#[must_use]
pub fn decides_status(checks: &[Check]) -> bool {
    checks.iter().any(|check| matches!(check, Check::Status(..)))
}

/// Whether an answer of that status can be good: as the checks have it, else any 2xx.
#[must_use]
pub fn accepts(checks: &[Check], status: u16) -> bool {
    let holds = |check: &Check| match check {
        Check::Status(comparison, asked) => comparison.holds(status.into(), *asked),
        _ => true,
    };
    if decides_status(checks) { checks.iter().all(holds) } else { (200..300).contains(&status) }
}

fn number(text: &str, rest: &str, subject: &'static str) -> Result<(Comparison, u64), CheckError> {
    let sign = Comparison::ALL.iter().find_map(|&(comparison, sign)| Some((comparison, rest.strip_prefix(sign)?)));
    let read = sign.and_then(|(comparison, number)| Some((comparison, number.trim().parse().ok()?)));
    read.ok_or_else(|| CheckError::Number(text.to_owned(), subject))
}

fn test(text: &str, rest: &str, subject: &'static str) -> Result<Test, CheckError> {
    // The operator ends with a blank, unless it is the sign.
    let word = |word: &str| rest.strip_prefix(word).filter(|rest| rest.starts_with(char::is_whitespace));
    let found = if let Some(rest) = word("contains") {
        Test::Contains(rest.trim().to_owned())
    } else if let Some(rest) = word("matches") {
        Test::Matches(rest.trim().to_owned())
    } else if let Some(rest) = rest.strip_prefix('=') {
        Test::Is(rest.trim().to_owned())
    } else {
        return Err(CheckError::Test(text.to_owned(), subject));
    };
    match &found {
        Test::Contains(part) | Test::Matches(part) if part.is_empty() => {
            Err(CheckError::Test(text.to_owned(), subject))
        }
        Test::Matches(pattern) => match Regex::new(pattern) {
            Ok(_) => Ok(found),
            Err(error) => Err(CheckError::Regex(pattern.clone(), last_line(&error.to_string()))),
        },
        _ => Ok(found),
    }
}

/// A regular expression's complaint ends with its reason; before it stand the pattern and a pointer into it.
fn last_line(text: &str) -> String {
    let last = text.lines().last().unwrap_or_default().trim();
    last.strip_prefix("error: ").unwrap_or(last).to_owned()
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Check::Status(comparison, number) => write!(f, "status {comparison} {number}"),
            Check::Length(comparison, number) => write!(f, "length {comparison} {number}"),
            Check::Header { name, test } => write!(f, "header {name} {test}"),
            Check::Body(test) => write!(f, "body {test}"),
        }
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = Comparison::ALL.iter().find(|(comparison, _)| comparison == self).map_or("", |(_, sign)| sign);
        f.write_str(sign)
    }
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Test::Is(text) => write!(f, "= {text}"),
            Test::Contains(text) => write!(f, "contains {text}"),
            Test::Matches(text) => write!(f, "matches {text}"),
        }
    }
}

impl TryFrom<String> for Check {
    type Error = CheckError;

    fn try_from(text: String) -> Result<Check, CheckError> {
        Check::parse(&text)
    }
}

impl From<Check> for String {
    fn from(check: Check) -> String {
        check.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A check as it is written again, or what is wrong with it.
    #[track_caller]
    fn check(text: &str, expected: Result<&str, &str>) {
        let found = Check::parse(text);
        assert_eq!(
            found.as_ref().map(Check::to_string).map_err(CheckError::to_string),
            expected.map(str::to_owned).map_err(str::to_owned)
        );
        if let Ok(found) = found {
            assert_eq!(Check::parse(&found.to_string()), Ok(found));
        }
    }

    #[test]
    fn checks_are_a_subject_and_what_holds_of_it() {
        check("status = 200", Ok("status = 200"));
        check(" status<400 ", Ok("status < 400"));
        check("status!=500", Ok("status != 500"));
        check("length >= 10", Ok("length >= 10"));
        check("header Content-Type contains text/html", Ok("header content-type contains text/html"));
        check("header etag=\"a b\"", Ok("header etag = \"a b\""));
        check("body contains OK, all  well", Ok("body contains OK, all  well"));
        check("body matches ^a.*z$", Ok("body matches ^a.*z$"));
    }

    #[test]
    fn what_is_no_check_is_said() {
        let subject = "is no check: it begins with status, length, header or body, such as 'status = 200'";
        for text in ["", "state = 200", "= 5"] {
            check(text, Err(&format!("`{text}` {subject}")));
        }
        let number = "must be a comparison with a whole number: one of = != < <= > >=, such as";
        check("status 200", Err(&format!("`status 200` {number} 'status = 200'")));
        check("length = x", Err(&format!("`length = x` {number} 'length = 200'")));
        let words = "does not say what to find: write body contains TEXT, body matches REGEX or body = TEXT";
        for text in ["body", "body contains", "body has x", "body containsx"] {
            check(text, Err(&format!("`{text}` {words}")));
        }
        check("header", Err("`header` names no header field; write header NAME contains TEXT"));
        check("body matches (", Err("`(` is not a regular expression: unclosed group"));
    }
}
