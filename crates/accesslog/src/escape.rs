//! How servers write bytes that would break a line, and back.
//!
//! Apache writes `\"`, `\\`, `\n` and `\xhh`; nginx writes `\xHH`, or the escapes of JSON. None of them writes a backslash
//! in another meaning than the others, so one reading serves all. Only nginx with `escape=none` must be told apart.

use std::borrow::Cow;

/// Whether the server escaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Escapes {
    /// By any of the ways above.
    Written,
    /// A backslash is a backslash, and a quote may end a field or not.
    None,
}

/// The bytes that the server was given.
pub(crate) fn undo(written: &[u8], escapes: Escapes) -> Cow<'_, [u8]> {
    let Some(first) = written.iter().position(|byte| *byte == b'\\').filter(|_| escapes == Escapes::Written) else {
        return Cow::Borrowed(written);
    };
    let mut bytes = written[..first].to_vec();
    let mut rest = &written[first..];
    while let Some((&byte, behind)) = rest.split_first() {
        rest = if byte == b'\\' { undo_one(behind, &mut bytes) } else { push(&mut bytes, byte, behind) };
    }
    Cow::Owned(bytes)
}

/// Text for people: bytes that are not UTF-8 are replaced. `-` and nothing are absence.
pub(crate) fn text(written: &[u8], escapes: Escapes) -> Option<Cow<'_, str>> {
    if is_absent(written) {
        return None;
    }
    Some(match undo(written, escapes) {
        Cow::Borrowed(bytes) => String::from_utf8_lossy(bytes),
        Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
    })
}

/// How a server says that there is nothing.
pub(crate) fn is_absent(written: &[u8]) -> bool {
    matches!(written, b"" | b"-")
}

/// Undoes the escape whose backslash stands before `behind`; an unknown one stays as it is.
fn undo_one<'a>(behind: &'a [u8], bytes: &mut Vec<u8>) -> &'a [u8] {
    let Some((&kind, rest)) = behind.split_first() else {
        return push(bytes, b'\\', behind);
    };
    match kind {
        b'"' | b'\\' | b'/' => push(bytes, kind, rest),
        b'n' => push(bytes, b'\n', rest),
        b't' => push(bytes, b'\t', rest),
        b'r' => push(bytes, b'\r', rest),
        b'b' => push(bytes, 0x08, rest),
        b'f' => push(bytes, 0x0c, rest),
        b'v' => push(bytes, 0x0b, rest),
        b'x' => match hex(rest, 2).and_then(|value| u8::try_from(value).ok()) {
            Some(byte) => push(bytes, byte, &rest[2..]),
            None => push(bytes, b'\\', behind),
        },
        b'u' => match hex(rest, 4).and_then(char::from_u32) {
            Some(letter) => {
                bytes.extend(letter.encode_utf8(&mut [0; 4]).as_bytes());
                &rest[4..]
            }
            None => push(bytes, b'\\', behind),
        },
        _ => push(bytes, b'\\', behind),
    }
}

fn push<'a>(bytes: &mut Vec<u8>, byte: u8, rest: &'a [u8]) -> &'a [u8] {
    bytes.push(byte);
    rest
}

fn hex(bytes: &[u8], digits: usize) -> Option<u32> {
    bytes.get(..digits)?.iter().try_fold(0, |value, byte| Some(value * 16 + char::from(*byte).to_digit(16)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(written: &str, expected: &[u8]) {
        assert_eq!(undo(written.as_bytes(), Escapes::Written), expected, "{written}");
        assert_eq!(undo(written.as_bytes(), Escapes::None), written.as_bytes());
    }

    #[test]
    fn each_server_is_understood() {
        check(r#"a\"b\\c\n\t\r\v\b\xc3\xbc"#, b"a\"b\\c\n\t\r\x0b\x08\xc3\xbc");
        check(r"\x22\x5Cn\xFF", b"\"\\n\xff");
        check(r#"\u0016\"\\\/\f\u00e9"#, b"\x16\"\\/\x0c\xc3\xa9");
        check("plain", b"plain");
    }

    #[test]
    fn what_is_no_escape_stays() {
        for written in [r"\", r"\q", r"\x", r"\x4", r"\xg1", r"\u12", r"\ud800", r"a\ b", r"\x+1", r"\xü"] {
            check(written, written.as_bytes());
        }
    }

    #[test]
    fn absence() {
        let texts = ["", "-", "--", r"\x2d"].map(|written| text(written.as_bytes(), Escapes::Written));
        assert_eq!(texts, [None, None, Some("--".into()), Some("-".into())]);
        assert_eq!(text(b"\xff!", Escapes::None), Some("\u{fffd}!".into()));
    }
}
