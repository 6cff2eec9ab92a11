//! A line as somebody copied it, made the line that ab wrote: wide letters and odd blanks become plain ones.

/// The line with full-width letters, digits and marks as ASCII, every kind of blank as a blank, and nothing invisible.
pub(crate) fn plain(line: &str) -> String {
    line.chars()
        .filter_map(|c| match c {
            '\u{ff01}'..='\u{ff5e}' => char::from_u32(c as u32 - 0xfee0),
            '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}' | '\u{ad}' | '\r' => None,
            '\u{2010}'..='\u{2012}' | '\u{2212}' => Some('-'),
            '\t' => Some(' '),
            c if c.is_whitespace() => Some(' '),
            c if c.is_control() => None,
            c => Some(c),
        })
        .collect()
}

/// The line from its first letter on, when only what pages put before lines stands there: numbers, bullets, quotation marks.
pub(crate) fn without_decoration(line: &str) -> &str {
    let Some(at) = line.find(|c: char| c.is_ascii_alphabetic()) else { return line.trim_start() };
    if is_decoration(&line[..at]) { &line[at..] } else { line.trim_start() }
}

/// Whether a text is no more than a line's number or bullet.
pub(crate) fn is_decoration(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_digit() || " .:)|>#*-•・$".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: &str) {
        assert_eq!(without_decoration(&plain(line)), expected, "{line:?}");
    }

    #[test]
    fn lines_become_what_ab_wrote() {
        check("　９. Ｔｉｍｅ　ｔａｋｅｎ：\u{a0}１２．７２\r", "Time taken: 12.72");
        check("  12 Server Port:\t80", "Server Port: 80");
        check("> > Complete requests:      10", "Complete requests:      10");
        check("\u{feff}• Total:  1", "Total:  1");
        check("約 ab", "約 ab");
        check("12", "12");
        check("", "");
    }
}
