//! nginx's language as words and marks, each with its place.

use std::ops::Range;

/// A word or a mark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) what: What,
    /// From 1.
    pub(crate) line: usize,
    /// Bytes of the text.
    pub(crate) span: Range<usize>,
}

/// What it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum What {
    Word(String),
    End,
    Open,
    Close,
}

/// Words and marks in order. Quotes and backslashes protect what marks would be; `${` is no block.
pub(crate) fn tokens(text: &str) -> Vec<Token> {
    let (mut found, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let (mut line, mut first) = (1, (1, 0));
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let here = line;
        line += usize::from(c == '\n');
        if word.is_none() {
            first = (here, at);
        }
        if c == '\\' {
            word.get_or_insert_default().extend(chars.next().map(|(_, c)| c));
            continue;
        }
        if let Some(end) = quote {
            if c == end {
                quote = None;
            } else {
                word.get_or_insert_default().push(c);
            }
            continue;
        }
        let mark = match c {
            ';' => Some(What::End),
            '{' if !word.as_deref().is_some_and(|word| word.ends_with('$')) => Some(What::Open),
            '}' if !word.as_deref().is_some_and(|word| word.contains("${")) => Some(What::Close),
            _ => None,
        };
        if mark.is_some() || c.is_whitespace() {
            found.extend(word.take().map(|word| Token { what: What::Word(word), line: first.0, span: first.1..at }));
            found.extend(mark.map(|what| Token { what, line: here, span: at..at + 1 }));
        } else if c == '#' && word.is_none() {
            while chars.next_if(|&(_, c)| c != '\n').is_some() {}
        } else if matches!(c, '"' | '\'') && word.is_none() {
            quote = Some(c);
            word = Some(String::new());
        } else {
            word.get_or_insert_default().push(c);
        }
    }
    found
}
