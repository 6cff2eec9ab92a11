//! What Debian's dstat printed beside the sampler: which seconds it lost, and what its rows add up to.

/// The rows of `dstat -Td`, redirected into a file: epoch, bytes read and written a second.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Rows {
    /// How many rows.
    pub(super) rows: usize,
    /// The sum of what it says of itself: ` missed N ticks`.
    pub(super) missed: u64,
    /// Seconds of its own clock, from its first row to its last, that have no row.
    pub(super) gaps: u64,
    /// MiB written, if each row is believed.
    pub(super) written_mib: f64,
}

/// Reads them; whatever is no row is passed over.
pub(super) fn parse(text: &str) -> Rows {
    let mut found = Rows::default();
    let mut last: Option<u64> = None;
    for line in text.lines() {
        let Some((epoch, rest)) = line.split_once('|') else { continue };
        let Some(epoch) = epoch.trim().split('.').next().and_then(|word| word.parse::<u64>().ok()) else { continue };
        let missed = rest.split_once(" missed ").and_then(|(_, text)| text.split(' ').next()?.parse::<u64>().ok());
        // The first row is since the boot.
        if let Some(last) = last {
            found.gaps += epoch.saturating_sub(last).saturating_sub(1);
            let written = rest.split('|').next().and_then(|cell| cell.split_whitespace().nth(1));
            found.written_mib += written.and_then(mib).unwrap_or(0.0);
        }
        last = Some(epoch);
        found.rows += 1;
        found.missed += missed.unwrap_or(0);
    }
    found
}

/// A number as dstat prints bytes: `128k`, `23M`, `0`.
fn mib(text: &str) -> Option<f64> {
    let unit = match text.chars().last()? {
        'B' => 1.0,
        'k' => 1024.0,
        'M' => 1024.0 * 1024.0,
        'G' => 1024.0 * 1024.0 * 1024.0,
        _ => 1.0,
    };
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic()).parse::<f64>().ok()?;
    Some(number * unit / 1024.0 / 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_were_lost_are_counted_both_ways() {
        let text = "--epoch--- -dsk/total-\n  epoch   | read  writ\n1700000000|  17k   64M\n1700000001|   0   512k\n\
                    1700000005|1024k  825M missed 4 ticks\n1700000006|   0     0 \n";
        let expected = Rows { rows: 4, missed: 4, gaps: 3, written_mib: 825.5 };
        assert_eq!(parse(text), expected);
        assert_eq!(parse("Terminated\n"), Rows::default());
    }
}
