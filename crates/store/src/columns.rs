//! Rows of unsigned numbers as bytes: columns by name, each as differences, the whole compressed.
//!
//! A column that the reader does not know is skipped and one that the writer did not have comes back absent, so a table written
//! today stays readable when columns are added. Knows nothing of what the columns mean.
//!
//! Before zstd, all integers as LEB128: rows, columns, then per column its name's length and name, a tag, and the values. Tag 0:
//! absent throughout; 1: present throughout; 2: a bitmap of presence follows. Values present are zigzag differences to the
//! value before (wrapping, so every `u64` survives).

use std::collections::HashMap;
use std::io;

/// Fast, and within a few percent of the higher levels on differences of counters.
const COMPRESSION: i32 = 3;

const ALL_ABSENT: u64 = 0;
const ALL_PRESENT: u64 = 1;
const BITMAP: u64 = 2;

/// Columns by name, all of the same length.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Table {
    rows: usize,
    columns: Vec<(String, Vec<Option<u64>>)>,
}

impl Table {
    pub(crate) fn new(rows: usize) -> Self {
        Table { rows, columns: Vec::new() }
    }

    /// Adds a column; `values` must yield one value per row.
    pub(crate) fn push(&mut self, name: impl Into<String>, values: impl Iterator<Item = Option<u64>>) {
        let values: Vec<_> = values.collect();
        assert_eq!(values.len(), self.rows, "a column has one value per row");
        self.columns.push((name.into(), values));
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    pub(crate) fn by_name(&self) -> HashMap<&str, &[Option<u64>]> {
        self.columns.iter().map(|(name, values)| (name.as_str(), values.as_slice())).collect()
    }

    pub(crate) fn pack(&self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        write(&mut bytes, self.rows as u64);
        write(&mut bytes, self.columns.len() as u64);
        for (name, values) in &self.columns {
            write(&mut bytes, name.len() as u64);
            bytes.extend_from_slice(name.as_bytes());
            pack_column(&mut bytes, values);
        }
        compress(&bytes)
    }

    pub(crate) fn unpack(packed: &[u8]) -> Result<Table, String> {
        let bytes = decompress(packed)?;
        let mut rest = bytes.as_slice();
        let mut table = Table::new(read_len(&mut rest)?);
        for _ in 0..read_len(&mut rest)? {
            let length = read_len(&mut rest)?;
            let name = rest.split_off(..length).ok_or(CUT_SHORT)?;
            let name = String::from_utf8(name.to_vec()).map_err(|_| "a column's name is not text")?;
            table.columns.push((name, unpack_column(&mut rest, table.rows)?));
        }
        Ok(table)
    }
}

const CUT_SHORT: &str = "a packed stream is cut short";

/// zstd over anything.
pub(crate) fn compress(bytes: &[u8]) -> io::Result<Vec<u8>> {
    zstd::stream::encode_all(bytes, COMPRESSION)
}

/// The inverse of [`compress`].
pub(crate) fn decompress(packed: &[u8]) -> Result<Vec<u8>, String> {
    zstd::stream::decode_all(packed).map_err(|error| format!("a packed stream does not unpack: {error}"))
}

/// LEB128: seven bits per byte, the lowest first.
pub(crate) fn write(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// The inverse of [`write()`].
pub(crate) fn read(rest: &mut &[u8]) -> Result<u64, String> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = *rest.split_off_first().ok_or(CUT_SHORT)?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err("a packed number is too long".to_owned())
}

/// A length; one that cannot be true of any stream of ours is refused before memory is asked for.
pub(crate) fn read_len(rest: &mut &[u8]) -> Result<usize, String> {
    let value = read(rest)?;
    usize::try_from(value).ok().filter(|&n| n < 1 << 28).ok_or_else(|| format!("a packed length of {value} is absurd"))
}

fn pack_column(bytes: &mut Vec<u8>, values: &[Option<u64>]) {
    let present = values.iter().flatten().count();
    match present {
        0 => return write(bytes, ALL_ABSENT),
        n if n == values.len() => write(bytes, ALL_PRESENT),
        _ => {
            write(bytes, BITMAP);
            bytes.extend(values.chunks(8).map(|bits| {
                bits.iter().enumerate().fold(0_u8, |byte, (i, value)| byte | u8::from(value.is_some()) << i)
            }));
        }
    }
    let mut before = 0_u64;
    for &value in values.iter().flatten() {
        write(bytes, zigzag(value.wrapping_sub(before) as i64));
        before = value;
    }
}

fn unpack_column(rest: &mut &[u8], rows: usize) -> Result<Vec<Option<u64>>, String> {
    let bitmap = match read(rest)? {
        ALL_ABSENT => return Ok(vec![None; rows]),
        ALL_PRESENT => None,
        BITMAP => Some(rest.split_off(..rows.div_ceil(8)).ok_or(CUT_SHORT)?),
        tag => return Err(format!("a packed column has the unknown tag {tag}")),
    };
    let mut before = 0_u64;
    (0..rows)
        .map(|row| {
            if bitmap.is_some_and(|bits| bits[row / 8] >> (row % 8) & 1 == 0) {
                return Ok(None);
            }
            before = before.wrapping_add(unzigzag(read(rest)?) as u64);
            Ok(Some(before))
        })
        .collect()
}

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(table: &Table) {
        let packed = table.pack().unwrap();
        assert_eq!(Table::unpack(&packed).as_ref(), Ok(table));
    }

    fn tables() -> impl Strategy<Value = Table> {
        let value = prop_oneof![
            2 => Just(None),
            6 => (0..5_000_u64).prop_map(Some),
            1 => any::<u64>().prop_map(Some),
            1 => Just(Some(u64::MAX)),
        ];
        (0..40_usize, 0..12_usize).prop_flat_map(move |(rows, columns)| {
            prop::collection::vec(("\\PC{0,9}", prop::collection::vec(value.clone(), rows)), columns)
                .prop_map(move |columns| Table { rows, columns })
        })
    }

    proptest! {
        #[test]
        fn every_table_comes_back(table in tables()) {
            check(&table);
        }

        #[test]
        fn damage_is_an_error_not_a_panic(table in tables(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
            let mut bytes = decompress(&table.pack().unwrap()).unwrap();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            let _ = Table::unpack(&compress(&bytes).unwrap());
            let _ = Table::unpack(&compress(&bytes[..at]).unwrap());
            prop_assert!(Table::unpack(&bytes).is_err());
        }
    }

    #[test]
    fn a_minute_of_counters_is_small() {
        let mut table = Table::new(60);
        for column in 0..90_u64 {
            let name = format!("group.some_counter.{column}");
            table.push(name, (0..60).map(|t| Some(column * 1_000_003 + t * (column % 7) * 250)));
        }
        check(&table);
        let packed = table.pack().unwrap().len();
        assert!(packed < 60 * 90, "under a byte per value, was {packed}");
    }
}
