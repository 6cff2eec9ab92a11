//! Addresses in a style sheet or a style attribute: `url(...)` and `@import`.
//!
//! No parser of styles: strings, comments, and where one declaration ends are enough. Whether a rule applies to anything on
//! the page is not looked at.

use crate::Kind;
use std::borrow::Cow;

/// What the style names, in order.
pub(crate) fn named(style: &str) -> Vec<(String, Kind)> {
    let mut found = Vec::new();
    let mut rest = style;
    let mut declaration = Declaration::default();
    while let Some(first) = rest.chars().next() {
        if rest.starts_with("/*") {
            rest = rest.split_once("*/").map_or("", |(_, behind)| behind);
        } else if matches!(first, '"' | '\'') {
            let (text, behind) = string(rest);
            if declaration.text == "@import" {
                found.push((text.into_owned(), Kind::Style));
                declaration.text.push('!');
            }
            rest = behind;
        } else if matches!(first, ';' | '{' | '}') {
            declaration = Declaration::default();
            rest = &rest[1..];
        } else if declaration.is_word_start() && starts_url(rest) {
            let (text, behind) = address(&rest[4..]);
            if let Some(kind) = declaration.kind(&text) {
                found.push((text.into_owned(), kind));
            }
            declaration.text.push('!');
            rest = behind;
        } else {
            declaration.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    found
}

/// The text of a declaration or rule so far, in lower case and without spaces at its ends.
#[derive(Default)]
struct Declaration {
    text: String,
    /// Whether the property in front of the first colon, once there is one, is where a font comes from. Said once and kept: every
    /// address asks for it, and a hostile page has as many as it likes.
    is_source: Option<bool>,
    /// Whether a usable font has been named; a browser fetches the first.
    has_font: bool,
}

/// The property that says where a font comes from.
const SOURCE: &str = "src";

impl Declaration {
    fn push(&mut self, letter: char) {
        if letter == ':' && self.is_source.is_none() {
            self.is_source = Some(self.text.trim_ascii() == SOURCE);
        }
        if !(letter.is_ascii_whitespace() && (self.text.is_empty() || self.text.starts_with('@'))) {
            self.text.push(letter.to_ascii_lowercase());
        }
    }

    fn is_word_start(&self) -> bool {
        !self.text.ends_with(|last: char| last.is_alphanumeric() || last == '-' || last == '_')
            || self.text == "@import"
    }

    /// What an address here is for; `None` when it is not fetched.
    fn kind(&mut self, address: &str) -> Option<Kind> {
        if self.text.starts_with('@') {
            return (self.text == "@import").then_some(Kind::Style);
        }
        if !self.is_source.unwrap_or_else(|| self.text.trim_ascii() == SOURCE) {
            return Some(Kind::Image);
        }
        let path = address.split(['?', '#']).next().unwrap_or_default().to_ascii_lowercase();
        if self.has_font || path.ends_with(".eot") {
            return None;
        }
        self.has_font = true;
        Some(Kind::Font)
    }
}

fn starts_url(text: &str) -> bool {
    text.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("url("))
}

/// The address behind `url(`, and what follows its closing bracket.
fn address(text: &str) -> (Cow<'_, str>, &str) {
    let text = text.trim_ascii_start();
    if text.starts_with(['"', '\'']) {
        let (inner, behind) = string(text);
        return (inner, behind.split_once(')').map_or("", |(_, behind)| behind));
    }
    let mut is_escaped = false;
    let end = text.find(|letter| {
        let ends = letter == ')' && !is_escaped;
        is_escaped = letter == '\\' && !is_escaped;
        ends
    });
    let (inner, behind) = end.map_or((text, ""), |end| (&text[..end], &text[end + 1..]));
    (unescaped(inner.trim_ascii_end()), behind)
}

/// The string that `text` begins with, and what follows it. One without an end takes all.
fn string(text: &str) -> (Cow<'_, str>, &str) {
    let mut letters = text.char_indices();
    let mark = letters.next().map_or('"', |(_, mark)| mark);
    let mut is_escaped = false;
    for (at, letter) in letters {
        if letter == mark && !is_escaped {
            return (unescaped(&text[1..at]), &text[at + 1..]);
        }
        is_escaped = letter == '\\' && !is_escaped;
    }
    (unescaped(&text[1..]), "")
}

/// Backslashes of CSS: up to six digits and a space are a letter, anything else is itself.
fn unescaped(text: &str) -> Cow<'_, str> {
    let Some((plain, mut rest)) = text.split_once('\\') else { return Cow::Borrowed(text) };
    let mut letters = plain.to_owned();
    loop {
        let digits = rest.bytes().take(6).take_while(u8::is_ascii_hexdigit).count();
        let behind = match u32::from_str_radix(&rest[..digits], 16) {
            Ok(number) => {
                letters.push(char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER));
                let behind = &rest[digits..];
                behind.strip_prefix([' ', '\t', '\n']).unwrap_or(behind)
            }
            // A backslash itself must not be taken for the next one.
            Err(_) => match rest.strip_prefix('\\') {
                Some(behind) => {
                    letters.push('\\');
                    behind
                }
                None => rest.strip_prefix('\n').unwrap_or(rest),
            },
        };
        match behind.split_once('\\') {
            Some((plain, more)) => {
                letters.push_str(plain);
                rest = more;
            }
            None => {
                letters.push_str(behind);
                return Cow::Owned(letters);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    fn check(style: &str, expected: &Expect) {
        let found: Vec<_> = named(style).into_iter().map(|(url, kind)| format!("{kind:?} {url}")).collect();
        expected.assert_eq(&found.join(", "));
    }

    #[test]
    fn rules_and_imports() {
        check(
            "@import 'a.css'; @import url(b.css) screen;@IMPORT\nurl( \"c.css\" );",
            &expect!["Style a.css, Style b.css, Style c.css"],
        );
        check("@import url('a') layer(url(b)); p{}", &expect!["Style a"]);
        check(
            "p { background: red url(a.png) no-repeat, URL('b.png') } q{content:url( c.svg )}",
            &expect!["Image a.png, Image b.png, Image c.svg"],
        );
        check("background:url(a.png)", &expect!["Image a.png"]);
        check("@media print { p { background: url(a.png) } }", &expect!["Image a.png"]);
        check("@namespace url(http://www.w3.org/1999/xhtml); p{}", &expect![""]);
        check("/* url(a) @import 'b'; */ p { x: 'url(c)'; y: curl(d); z: -url(e) }", &expect![""]);
    }

    #[test]
    fn a_font_is_fetched_in_one_form() {
        check(
            "@font-face { font-family: x; src: url(a.eot); src: local('x'), url('a.eot?#iefix') format('e'), url(a.woff2) format('woff2'), url(a.woff) }",
            &expect!["Font a.woff2"],
        );
    }

    #[test]
    fn escapes_and_missing_ends() {
        check(r"x:url(a\)b\28 c.png)", &expect!["Image a)b(c.png"]);
        check(r#"x:url("a\"b\\c")"#, &expect![[r#"Image a"b\c"#]]);
        check("x:url(a", &expect!["Image a"]);
        check("x:url('a", &expect!["Image a"]);
        check("x:url(", &expect!["Image "]);
        check("@import \"a", &expect!["Style a"]);
        check("/* x", &expect![""]);
        check(r"x:url(\", &expect!["Image "]);
    }

    /// Each of these took hours as long as an address read again all that stood before it in its declaration.
    #[test]
    fn long_declarations_are_read_once() {
        const LONG: usize = 8 << 20;
        let check = |begin: &str, expected: usize, kind: Kind| {
            let count = (LONG - begin.len()) / 6;
            let found = named(&(begin.to_owned() + &"url() ".repeat(count)));
            assert_eq!((found.len(), found[0].1), (if expected == 0 { count } else { expected }, kind));
        };
        check("", 0, Kind::Image);
        check(&("x".repeat(LONG / 2) + " "), 0, Kind::Image);
        check(&format!("x{}:", " ".repeat(LONG / 2)), 0, Kind::Image);
        check(&format!("src{}:", " ".repeat(LONG / 2)), 1, Kind::Font);
    }

    proptest! {
        #[test]
        fn any_text_is_answered(style in "[url(;{}'\"\\\\@importsc:/* ü)]{0,60}") {
            named(&style);
        }
    }
}
