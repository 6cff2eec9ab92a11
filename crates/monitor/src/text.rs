//! The kernel's text files as fields and numbers, without allocating.
//!
//! Bytes in, numbers out. A field that is not a plain unsigned decimal number is `None`; nothing is guessed.

use model::reading::{Column, Reading};

/// A line `name number` and the column it fills.
pub(crate) struct Key {
    /// The first field of the line, without a colon at its end.
    pub(crate) name: &'static str,
    /// What it fills.
    pub(crate) column: Column,
    /// What the number is multiplied by to have the column's unit.
    pub(crate) times: u64,
}

/// A key whose number already has the column's unit.
pub(crate) const fn key(name: &'static str, column: Column) -> Key {
    Key { name, column, times: 1 }
}

/// Fills a column for every line `name number ...` or `name: number ...` that the table knows.
pub(crate) fn key_numbers(text: &[u8], keys: &[Key], row: &mut Reading) {
    for line in lines(text) {
        let mut fields = fields(line);
        let Some(name) = fields.next() else { continue };
        let name = name.strip_suffix(b":").unwrap_or(name);
        if let Some(key) = keys.iter().find(|key| key.name.as_bytes() == name)
            && let Some(value) = fields.next().and_then(number)
        {
            row.set(key.column, value.saturating_mul(key.times));
        }
    }
}

/// Lines without their line ends.
pub(crate) fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty())
}

/// Fields between blanks.
pub(crate) fn fields(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|byte| byte.is_ascii_whitespace()).filter(|field| !field.is_empty())
}

/// The name in a process's `stat`, which is `pid (name) state parent ...`, and the fields behind it: the state first. The name may hold
/// blanks, parentheses, and a letter cut in two.
pub(crate) fn stat(text: &[u8]) -> Option<(&[u8], impl Iterator<Item = &[u8]>)> {
    let begin = text.iter().position(|&byte| byte == b'(')? + 1;
    let end = text.iter().rposition(|&byte| byte == b')')?;
    Some((text.get(begin..end)?, fields(&text[end + 1..])))
}

/// An unsigned decimal number with nothing around it.
pub(crate) fn number(field: &[u8]) -> Option<u64> {
    if field.is_empty() {
        return None;
    }
    field.iter().try_fold(0u64, |sum, &byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        sum.checked_mul(10)?.checked_add(digit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(field: &str, expected: Option<u64>) {
        assert_eq!(number(field.as_bytes()), expected, "{field:?}");
    }

    #[test]
    fn only_plain_numbers_are_numbers() {
        check("0", Some(0));
        check("18446744073709551615", Some(u64::MAX));
        check("18446744073709551616", None);
        check("", None);
        check("-1", None);
        check("max", None);
        check("12kB", None);
    }

    #[test]
    fn a_name_does_not_end_at_its_own_parentheses() {
        let (name, fields) = stat(b"7 (a) b\xe3\x82) S 1 2\n").unwrap();
        assert_eq!((name, fields.collect::<Vec<_>>()), (&b"a) b\xe3\x82"[..], vec![&b"S"[..], b"1", b"2"]));
        for broken in ["", "7 (a", "7 a) S", ") ("] {
            assert!(stat(broken.as_bytes()).is_none(), "{broken:?}");
        }
    }

    #[test]
    fn a_key_is_the_whole_first_field() {
        let mut row = Reading::empty(0);
        let text = b"pgscan_direct_throttle 7\npgscan_direct 5\nMemFree:  3 kB\nbroken\nusage_usec 2\n";
        let keys = [
            key("pgscan_direct", Column::ScanDirect),
            key("MemFree", Column::MemFree),
            Key { name: "usage_usec", column: Column::GroupCpuNs, times: 1000 },
        ];
        key_numbers(text, &keys, &mut row);
        assert_eq!(row.get(Column::ScanDirect), Some(5));
        assert_eq!(row.get(Column::MemFree), Some(3));
        assert_eq!(row.get(Column::GroupCpuNs), Some(2000));
    }
}
