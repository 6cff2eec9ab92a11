//! ab's table of percentiles for a spreadsheet (`-e`), letter for letter.

use super::Times;
use std::fmt::Write as _;

/// Draws the file. Where ab would read behind the last value, and so print what happens to lie there, it says `0.000`.
#[must_use]
pub fn render(times: &Times) -> String {
    let mut out = "Percentage served,Time in ms\n".to_owned();
    for (percent, us) in times.served_us.iter().enumerate() {
        // Writing to memory does not fail.
        let _ = writeln!(out, "{percent},{:.3}", f64::from(us.unwrap_or(0)) / 1000.0);
    }
    out
}
