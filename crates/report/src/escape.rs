//! Text of a plan or a server put into HTML or Markdown so that it cannot be anything but text.

use std::fmt;

/// Shows a text with everything that means something in HTML, attributes included, replaced.
pub(crate) struct Html<'a>(pub(crate) &'a str);

impl fmt::Display for Html<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                // Control characters are not allowed in HTML at all.
                c if c.is_control() && c != '\n' && c != '\t' => f.write_str("\u{fffd}")?,
                c => write!(f, "{c}")?,
            }
        }
        Ok(())
    }
}

/// Shows a text on one line with everything that means something in Markdown escaped.
pub(crate) struct Markdown<'a>(pub(crate) &'a str);

impl fmt::Display for Markdown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '#' | '~' | '&' | '!' => write!(f, "\\{c}")?,
                c if c.is_control() => f.write_str(" ")?,
                c => write!(f, "{c}")?,
            }
        }
        Ok(())
    }
}

/// A text without control characters, so that it cannot move a terminal's cursor or colour its letters.
pub(crate) fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\n' { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(input: &str, html: &str, markdown: &str, terminal: &str) {
        assert_eq!(Html(input).to_string(), html);
        assert_eq!(Markdown(input).to_string(), markdown);
        assert_eq!(plain(input), terminal);
    }

    #[test]
    fn nothing_keeps_a_meaning() {
        check("plain 並列度 10", "plain 並列度 10", "plain 並列度 10", "plain 並列度 10");
        check(
            "<script>alert('x')</script> & \"y\"",
            "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt; &amp; &quot;y&quot;",
            "\\<script\\>alert('x')\\</script\\> \\& \"y\"",
            "<script>alert('x')</script> & \"y\"",
        );
        check("a|b\n*c*", "a|b\n*c*", "a\\|b \\*c\\*", "a|b\n*c*");
        check("\x1b[31mred", "\u{fffd}[31mred", " \\[31mred", "\u{fffd}[31mred");
    }
}
