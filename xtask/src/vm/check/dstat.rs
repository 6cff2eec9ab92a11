//! What Debian's dstat printed, or `webdyno watch` in its layout: which seconds have no row, and what the rows add up to.

/// The rows of `-T -d ...`, redirected into a file: epoch, bytes read and written a second.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Rows {
    /// How many rows.
    pub(super) rows: usize,
    /// The sum of what dstat says of itself: ` missed N ticks`.
    pub(super) missed: u64,
    /// Rows of which webdyno says that they came late.
    pub(super) late: usize,
    /// How many rows are too few for the seconds from the first to the last.
    pub(super) gaps: u64,
    /// MiB written, if each row is believed to be of one second.
    pub(super) written_mib: f64,
    /// MiB a second written, in the row that says most.
    pub(super) peak_mib: f64,
}

/// Reads them; whatever is no row is passed over.
pub(super) fn parse(text: &str) -> Rows {
    let mut found = Rows::default();
    let mut span: Option<(u64, u64)> = None;
    for line in text.lines() {
        let Some((epoch, rest)) = line.split_once('|') else { continue };
        let Some(epoch) = epoch.trim().split('.').next().and_then(|word| word.parse::<u64>().ok()) else { continue };
        let missed = rest.split_once(" missed ").and_then(|(_, text)| text.split(' ').next()?.parse::<u64>().ok());
        // The first row is since the boot.
        if span.is_some() {
            let written = rest.split('|').next().and_then(|cell| cell.split_whitespace().nth(1));
            let written = written.and_then(mib).unwrap_or(0.0);
            found.written_mib += written;
            found.peak_mib = found.peak_mib.max(written);
        }
        span = Some((span.map_or(epoch, |(first, _)| first), epoch));
        found.rows += 1;
        found.missed += missed.unwrap_or(0);
        found.late += usize::from(rest.contains(" late "));
    }
    // Not second by second: a row that comes a little late may bear the next one's number.
    let seconds = span.map_or(0, |(first, last)| last - first + 1);
    found.gaps = seconds.saturating_sub(found.rows as u64);
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
        let expected = Rows { rows: 4, missed: 4, gaps: 3, written_mib: 825.5, peak_mib: 825.0, ..Rows::default() };
        assert_eq!(parse(text), expected);
        let text = "--epoch---|-dsk/total-\n1700000000|   0     0 \n1700000002|   0    64M late 1.0s\n1700000002|   0     0 \n";
        let expected = Rows { rows: 3, late: 1, written_mib: 64.0, peak_mib: 64.0, ..Rows::default() };
        assert_eq!(parse(text), expected);
        assert_eq!(parse("Terminated\n"), Rows::default());
    }
}
