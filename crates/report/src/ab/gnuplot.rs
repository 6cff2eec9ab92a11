//! Every request for gnuplot (`-g`): one line each, shortest first, letter for letter as ab writes it.
//!
//! Requests that took equally long stand in the order in which they ended. Ten millions are sorted in pieces that fit into
//! memory: ranges of lengths of time, one pass over the records for each.

use super::Records;
use super::arithmetic::round_ms;
use super::ranks;
use super::records::{Part, Record};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::collections::HashMap;
use std::io::{self, Write};
use std::ops::RangeInclusive;

/// The first line.
pub const HEAD: &str = "starttime\tseconds\tctime\tdtime\tttime\twait\n";

/// Records that are sorted at a time: 16 MB.
const AT_A_TIME: u64 = 1_000_000;

/// Writes the file. `began` is when the load began, and `zone` where its reader lives.
///
/// # Errors
/// When the records cannot be read, or the file not written.
pub fn write(records: &dyn Records, began: Timestamp, zone: &TimeZone, out: &mut dyn Write) -> io::Result<()> {
    write_by(AT_A_TIME, records, began, zone, out)
}

fn write_by(
    at_a_time: u64,
    records: &dyn Records,
    began: Timestamp,
    zone: &TimeZone,
    out: &mut dyn Write,
) -> io::Result<()> {
    out.write_all(HEAD.as_bytes())?;
    let mut clock = Clock { began_us: began.as_microsecond(), zone, told: HashMap::new() };
    for range in ranges(records, at_a_time)? {
        let mut chosen = Vec::new();
        records.visit(&mut |piece| chosen.extend(piece.iter().filter(|record| range.contains(&record.total_us))))?;
        chosen.sort_by_key(|record: &Record| record.total_us);
        chosen.iter().try_for_each(|record| line(record, &mut clock, out))?;
    }
    Ok(())
}

fn line(record: &Record, clock: &mut Clock<'_>, out: &mut dyn Write) -> io::Result<()> {
    let ms = |us: u32| round_ms(u64::from(us));
    let second = (clock.began_us + i64::from(record.start_ms) * 1000).div_euclid(1_000_000);
    let (connect, rest) = (ms(record.connect_us), ms(record.processing_us()));
    let (total, wait) = (ms(record.total_us), ms(record.wait_us));
    writeln!(out, "{}\t{second}\t{connect}\t{rest}\t{total}\t{wait}", clock.tell(second))
}

/// Ranges of whole lengths, shortest first, that hold so many records each; a single bucket of 65 ms is never parted unless it
/// alone holds more.
fn ranges(records: &dyn Records, at_a_time: u64) -> io::Result<Vec<RangeInclusive<u32>>> {
    if records.count() <= at_a_time {
        return Ok(vec![0..=u32::MAX]);
    }
    let [.., total] = ranks::count(records)?;
    let mut ranges = Vec::new();
    let (mut from, mut held) = (0_u32, 0);
    for upper in 0..=u16::MAX {
        let n = total.in_bucket(upper);
        let first = u32::from(upper) << 16;
        if held > 0 && held + n > at_a_time {
            ranges.push(from..=first - 1);
            (from, held) = (first, 0);
        }
        if n > at_a_time {
            ranges.extend(parted(records, upper, at_a_time)?);
            (from, held) = (first.saturating_add(1 << 16), 0);
        } else {
            held += n;
        }
    }
    if held > 0 {
        ranges.push(from..=u32::MAX);
    }
    Ok(ranges)
}

/// The same within one bucket. A single length may still hold more: equal ones need no sorting, but are held all the same.
fn parted(records: &dyn Records, upper: u16, at_a_time: u64) -> io::Result<Vec<RangeInclusive<u32>>> {
    let mut counts = vec![0_u64; 1 << 16];
    records.visit(&mut |piece| {
        let here = piece.iter().map(|record| Part::Total.of(record)).filter(|us| us >> 16 == u32::from(upper));
        here.for_each(|us| counts[(us & 0xffff) as usize] += 1);
    })?;
    let (first, mut held, mut ranges) = (u32::from(upper) << 16, 0, Vec::new());
    let mut from = first;
    for (lower, n) in (0_u32..).zip(counts) {
        if held > 0 && held + n > at_a_time {
            ranges.push(from..=first + lower - 1);
            (from, held) = (first + lower, 0);
        }
        held += n;
    }
    ranges.push(from..=first + 0xffff);
    Ok(ranges)
}

/// Wall time, told once per second.
struct Clock<'a> {
    began_us: i64,
    zone: &'a TimeZone,
    told: HashMap<i64, String>,
}

impl Clock<'_> {
    /// As apr_ctime does: `Sat Nov 01 08:22:53 2026`.
    fn tell(&mut self, second: i64) -> &str {
        self.told.entry(second).or_insert_with(|| {
            let moment = Timestamp::from_second(second).unwrap_or_default();
            moment.to_zoned(self.zone.clone()).strftime("%a %b %d %H:%M:%S %Y").to_string()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGAN: i64 = 1_793_521_372_900_000;

    fn written(at_a_time: u64, records: &[Record]) -> String {
        let began = Timestamp::from_microsecond(BEGAN).unwrap();
        let mut out = Vec::new();
        write_by(at_a_time, &records, began, &TimeZone::UTC, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn lines_are_sorted_by_length_and_say_when_they_began() {
        let record = |start_ms, connect_us, total_us, wait_us| Record { start_ms, connect_us, total_us, wait_us };
        let records = vec![record(0, 1_499, 12_000, 9_500), record(99, 0, 2_000, 1_000), record(100, 0, 2_000, 0)];
        expect_test::expect![[r"
            starttime	seconds	ctime	dtime	ttime	wait
            Sun Nov 01 08:22:52 2026	1793521372	0	2	2	1
            Sun Nov 01 08:22:53 2026	1793521373	0	2	2	0
            Sun Nov 01 08:22:52 2026	1793521372	1	11	12	10
        "]]
        .assert_eq(&written(AT_A_TIME, &records));
    }

    #[test]
    fn pieces_make_the_same_file() {
        let mut records: Vec<Record> = (0..500_u32)
            .map(|i| Record { start_ms: i, total_us: i.wrapping_mul(2_654_435_761) >> (i % 32), ..Record::default() })
            .collect();
        records.extend([Record { total_us: 70_000, ..Record::default() }; 20]);
        records.push(Record { total_us: u32::MAX, ..Record::default() });
        let whole = written(AT_A_TIME, &records);
        assert_eq!(whole.lines().count(), 1 + records.len());
        for at_a_time in [1, 7, 100, 520] {
            assert!(written(at_a_time, &records) == whole, "{at_a_time} at a time");
        }
    }
}
