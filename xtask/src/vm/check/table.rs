//! The readings as `record` prints them, and the kernel's own counters as /proc has them: numbers by name.

use anyhow::{Context, bail};

/// Readings in order of time.
pub(super) struct Table {
    names: Vec<String>,
    rows: Vec<Vec<Option<u64>>>,
}

impl Table {
    /// Comma-separated: names, then rows; empty is absent.
    pub(super) fn parse(text: &str) -> anyhow::Result<Table> {
        let mut lines = text.lines();
        let names: Vec<String> = lines.next().context("no readings")?.split(',').map(str::to_owned).collect();
        let rows: Vec<Vec<Option<u64>>> =
            lines.map(|line| line.split(',').map(|value| value.parse().ok()).collect()).collect();
        if rows.is_empty() || rows.iter().any(|row| row.len() != names.len()) {
            bail!("the readings are not whole");
        }
        Ok(Table { names, rows })
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// One column, where it was present.
    pub(super) fn column(&self, name: &str) -> Vec<u64> {
        let Some(at) = self.names.iter().position(|it| it == name) else { return Vec::new() };
        self.rows.iter().filter_map(|row| row[at]).collect()
    }

    /// What a counter grew by from the first reading to the last.
    pub(super) fn growth(&self, name: &str) -> Option<u64> {
        let values = self.column(name);
        values.last()?.checked_sub(*values.first()?)
    }

    /// What a counter grew by within some rows; none where one of them has nothing.
    pub(super) fn growth_within(&self, name: &str, rows: std::ops::Range<usize>) -> Option<u64> {
        let at = self.names.iter().position(|it| it == name)?;
        let value = |row: usize| self.rows.get(row)?[at];
        value(rows.end.checked_sub(1)?)?.checked_sub(value(rows.start)?)
    }

    /// The rows from the last one before an instant to the first one after another, in milliseconds from the first row.
    pub(super) fn rows_around(&self, from: u64, to: u64) -> std::ops::Range<usize> {
        let at = self.column("at_ms");
        let first = at.iter().rposition(|at| *at <= from).unwrap_or(0);
        let last = at.iter().position(|at| *at >= to).unwrap_or(at.len().saturating_sub(1));
        first..last + 1
    }

    /// Seconds of the grid, from the first reading to the last, that have none: lateness is taken off, so that a reading counts for the
    /// second it was due in.
    pub(super) fn missing(&self) -> u64 {
        let due: Vec<u64> = self
            .column("at_ms")
            .into_iter()
            .zip(self.column("sampler.late_ns"))
            .map(|(at, late)| (at.saturating_sub(late / 1_000_000) + 500) / 1000)
            .collect();
        due.windows(2).map(|pair| pair[1].saturating_sub(pair[0]).saturating_sub(1)).sum()
    }
}

/// A counter of /proc/vmstat.
pub(super) fn vmstat(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

/// Reads, sectors read, writes, sectors written of all disks of the guest, from /proc/diskstats.
pub(super) fn diskstats(text: &str) -> [u64; 4] {
    let of = |words: &[&str], at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
    let disks = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let disks = disks.filter(|words| words.get(2).is_some_and(|name| name.starts_with("vd")));
    disks.fold([0; 4], |sum, words| {
        let mut sum = sum;
        for (value, at) in sum.iter_mut().zip([3, 5, 7, 9]) {
            *value += of(&words, at);
        }
        sum
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_reading_is_not_a_missing_one() {
        let check = |rows: &str, expected| {
            let table = Table::parse(&format!("at_ms,sampler.late_ns\n{rows}")).unwrap();
            assert_eq!(table.missing(), expected, "{rows}");
        };
        check("0,0\n1001,1000000\n2000,0\n", 0);
        check("0,0\n1900,900000000\n2000,0\n", 0);
        check("0,0\n1000,0\n3500,500000000\n4000,0\n", 1);
        // One reading for the earliest of three appointments, then the grid goes on.
        check("0,0\n3900,2900000000\n4000,0\n", 2);
    }

    #[test]
    fn counters_by_name() {
        let table = Table::parse("at_ms,a,b\n0,5,\n1000,9,3\n").unwrap();
        assert_eq!((table.len(), table.growth("a"), table.growth("c")), (2, Some(4), None));
        assert_eq!((table.growth_within("a", 0..2), table.growth_within("a", 1..3)), (Some(4), None));
        let table = Table::parse("at_ms,a\n0,1\n1000,2\n2000,3\n3000,4\n").unwrap();
        assert_eq!((table.rows_around(1500, 1600), table.rows_around(1000, 9000)), (1..3, 1..4));
        assert!(Table::parse("at_ms,a\n0\n").is_err() && Table::parse("at_ms\n").is_err());
        assert_eq!(vmstat("pswpin 3\npswpinx 4\n", "pswpin"), Some(3));
        let disks = " 254 0 vda 1 2 3 4 5 6 7 8 9\n 254 16 vdb 10 0 30 0 50 0 70 0 0\n 7 0 loop0 1 1 1 1 1 1 1 1 1\n";
        assert_eq!(diskstats(disks), [11, 33, 55, 77]);
    }
}
