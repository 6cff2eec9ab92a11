//! A load second by second, as a table for a spreadsheet: one row per second, a head, a comma between columns.
//!
//! Times are microseconds. A figure that is not known (no good answer, too few for the percentile, no visitor) is an empty column.

use super::{LoadView, SecondView};
use std::fmt::Write as _;

/// The columns, in order.
pub const HEAD: &str = "start_s,length_s,good,good_per_s,failed,failed_per_s,bytes_in,mean_us,p50_us,p90_us,p99_us,max_us,visitor_good,visitor_failed,visitor_mean_us,visitor_max_us";

/// Draws the seconds of a view as CSV; every line ends with a line break.
#[must_use]
pub fn render(view: &LoadView) -> String {
    let mut out = format!("{HEAD}\n");
    view.seconds.iter().for_each(|second| row(second, &mut out));
    out
}

fn row(second: &SecondView, out: &mut String) {
    let rate =
        |n: u64| if second.length_s > 0.0 { format!("{:.3}", n as f64 / second.length_s) } else { String::new() };
    let whole = |us: Option<u64>| us.map_or_else(String::new, |us| us.to_string());
    let fine = |us: Option<f64>| us.map_or_else(String::new, |us| format!("{us:.1}"));
    let mean = fine(second.mean_us);
    let [p50, p90, p99] = second.percentiles_us.map(whole);
    let SecondView { start_s, length_s, good, failed, bytes_in, .. } = second;
    let (good_rate, failed_rate, max) = (rate(*good), rate(*failed), whole(second.max_us));
    let visitor = second.visitor.map_or_else(
        || ",,,".to_owned(),
        |seen| format!("{},{},{},{}", seen.good, seen.failed, fine(seen.mean_us), whole(seen.max_us)),
    );
    // Writing to memory does not fail.
    let _ = writeln!(
        out,
        "{start_s:.3},{length_s:.3},{good},{good_rate},{failed},{failed_rate},{bytes_in},{mean},{p50},{p90},{p99},{max},{visitor}"
    );
}
