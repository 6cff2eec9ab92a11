//! What is filled in anew for each request: `${counter}`, `${random:1-1000}`, `${hex:16}`.
//!
//! Here is what may be written and what it consists of; the engine fills it in.

/// A stretch of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Bytes as they are.
    Plain(Vec<u8>),
    /// The request's number, from 1.
    Counter,
    /// A whole number between these two, both included.
    Random {
        /// The least.
        from: u64,
        /// The most.
        to: u64,
    },
    /// So many hexadecimal digits.
    Hex {
        /// How many.
        digits: u32,
    },
    /// The target of the next request of a log that is replayed, without its leading slash. Users cannot write it: see
    /// [`check_template`].
    Logged,
}

/// A template that cannot be filled in; one sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// Nothing of that name.
    #[error(
        "`${{{0}}}` is not known: there is ${{counter}}, ${{random:1-1000}} and ${{hex:16}}; write $${{ where ${{ stands for itself"
    )]
    Unknown(String),
    /// An open end.
    #[error("`${{` has no `}}` behind it; write $${{ where ${{ stands for itself")]
    Open,
    /// Not two numbers, or in the wrong order.
    #[error("`${{random:{0}}}` names no numbers to draw from: write ${{random:FROM-TO}}, such as ${{random:1-1000}}")]
    Random(String),
    /// Not a number of digits.
    #[error("`${{hex:{0}}}` must say how many digits, from 1 to {MOST_DIGITS}, such as ${{hex:16}}")]
    Hex(String),
}

/// More digits than anybody needs in one place.
const MOST_DIGITS: u32 = 65_536;

/// How the path of a log's requests is written in [`super::RequestSpec::path`].
pub const LOGGED_PATH: &str = "/${logged}";

/// Whether that is a template, or plain text, that a user may write.
///
/// # Errors
/// When a `${...}` in it is not known.
pub fn check_template(text: &str) -> Result<(), TemplateError> {
    if pieces(text)?.contains(&Piece::Logged) {
        return Err(TemplateError::Unknown("logged".to_owned()));
    }
    Ok(())
}

/// The pieces of a text. Neighbouring plain ones are one, and `$${` is a plain `${`.
///
/// # Errors
/// When a `${...}` in it is not known.
pub fn pieces(text: &str) -> Result<Vec<Piece>, TemplateError> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        if rest[..at].ends_with('$') {
            plain(&mut pieces, &rest[..at - 1]);
            plain(&mut pieces, "${");
            rest = &rest[at + 2..];
            continue;
        }
        plain(&mut pieces, &rest[..at]);
        let (name, behind) = rest[at + 2..].split_once('}').ok_or(TemplateError::Open)?;
        pieces.push(variable(name)?);
        rest = behind;
    }
    plain(&mut pieces, rest);
    Ok(pieces)
}

fn plain(pieces: &mut Vec<Piece>, text: &str) {
    match pieces.last_mut() {
        _ if text.is_empty() => {}
        Some(Piece::Plain(before)) => before.extend_from_slice(text.as_bytes()),
        _ => pieces.push(Piece::Plain(text.into())),
    }
}

fn variable(name: &str) -> Result<Piece, TemplateError> {
    match name.split_once(':') {
        None if name == "counter" => Ok(Piece::Counter),
        None if name == "logged" => Ok(Piece::Logged),
        Some(("random", range)) => {
            let bounds = range.split_once('-').and_then(|(from, to)| Some((number(from)?, number(to)?)));
            let (from, to) =
                bounds.filter(|(from, to)| from <= to).ok_or_else(|| TemplateError::Random(range.to_owned()))?;
            Ok(Piece::Random { from, to })
        }
        Some(("hex", count)) => {
            let digits = number(count).and_then(|n| u32::try_from(n).ok()).filter(|n| (1..=MOST_DIGITS).contains(n));
            Ok(Piece::Hex { digits: digits.ok_or_else(|| TemplateError::Hex(count.to_owned()))? })
        }
        _ => Err(TemplateError::Unknown(name.to_owned())),
    }
}

fn number(text: &str) -> Option<u64> {
    // `parse` would also take a sign.
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Result<&[Piece], &str>) {
        let found = pieces(text).map_err(|error| error.to_string());
        assert_eq!(found, expected.map(<[Piece]>::to_vec).map_err(str::to_owned));
    }

    fn text(text: &str) -> Piece {
        Piece::Plain(text.into())
    }

    #[test]
    fn templates_are_text_and_variables() {
        check("", Ok(&[]));
        check("a $5 {b} $", Ok(&[text("a $5 {b} $")]));
        check("a${counter}b", Ok(&[text("a"), Piece::Counter, text("b")]));
        check("${random:1-6}${random:0-0}", Ok(&[Piece::Random { from: 1, to: 6 }, Piece::Random { from: 0, to: 0 }]));
        check("${hex:16}", Ok(&[Piece::Hex { digits: 16 }]));
        check("$${counter}, $$${x}", Ok(&[text("${counter}, $${x}")]));
        check(LOGGED_PATH, Ok(&[text("/"), Piece::Logged]));
    }

    #[test]
    fn what_is_not_known_is_said_with_what_there_is() {
        let known = "there is ${counter}, ${random:1-1000} and ${hex:16}; write $${ where ${ stands for itself";
        check("${count}", Err(&format!("`${{count}}` is not known: {known}")));
        check("${}", Err(&format!("`${{}}` is not known: {known}")));
        assert_eq!(
            check_template("${logged}").unwrap_err().to_string(),
            format!("`${{logged}}` is not known: {known}")
        );
        check("${counter", Err("`${` has no `}` behind it; write $${ where ${ stands for itself"));
        let numbers = "names no numbers to draw from: write ${random:FROM-TO}, such as ${random:1-1000}";
        for range in ["", "5", "5-1", "1-x", "-1-5", "1-99999999999999999999"] {
            check(&format!("${{random:{range}}}"), Err(&format!("`${{random:{range}}}` {numbers}")));
        }
        for count in ["", "0", "65537", "x"] {
            let sentence = "must say how many digits, from 1 to 65536, such as ${hex:16}";
            check(&format!("${{hex:{count}}}"), Err(&format!("`${{hex:{count}}}` {sentence}")));
        }
    }
}
