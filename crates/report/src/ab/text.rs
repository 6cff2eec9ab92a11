//! ab's report as plain text, letter for letter.

use super::{AbView, Part, Rates, Row, Times, Unsteady};
use std::fmt::Write as _;

/// What of the report is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Show {
    /// The table of percentiles (`-d` leaves it out).
    pub percentiles: bool,
    /// Standard deviation, median and doubts (`-S` leaves them out).
    pub confidence: bool,
}

impl Default for Show {
    fn default() -> Self {
        Show { percentiles: true, confidence: true }
    }
}

/// Draws the report; it begins with the two empty lines between it and what was printed on the way.
#[must_use]
pub fn render(view: &AbView, show: Show) -> String {
    let mut out = "\n\n".to_owned();
    head(view, &mut out);
    counters(view, &mut out);
    if let Some(rates) = view.rates.as_ref().filter(|_| view.counts.complete > 0) {
        speed(rates, &mut out);
    }
    if let Some(times) = &view.times {
        connection_times(times, show, &mut out);
        if show.percentiles && !times.percentiles.is_empty() {
            percentiles(times, &mut out);
        }
    }
    out
}

/// A label, blanks up to column 24, a value. Writing to memory does not fail.
fn line(out: &mut String, label: &str, value: impl std::fmt::Display) {
    let _ = writeln!(out, "{label:<24}{value}");
}

fn head(view: &AbView, out: &mut String) {
    let whom = &view.whom;
    line(out, "Server Software:", &whom.software);
    line(out, "Server Hostname:", &whom.host);
    line(out, "Server Port:", whom.port);
    if let Some(tls) = &whom.tls {
        let lines = [
            ("SSL/TLS Protocol:", &tls.protocol),
            ("Server Temp Key:", &tls.temp_key),
            ("TLS Server Name:", &tls.server_name),
        ];
        for (label, value) in lines {
            value.iter().for_each(|value| line(out, label, value));
        }
    }
    out.push('\n');
    line(out, "Document Path:", &whom.path);
    match view.document_bytes {
        None => line(out, "Document Length:", "Variable"),
        Some(bytes) => line(out, "Document Length:", format_args!("{bytes} bytes")),
    }
    out.push('\n');
}

fn counters(view: &AbView, out: &mut String) {
    let counts = &view.counts;
    line(out, "Concurrency Level:", view.concurrency);
    line(out, "Time taken for tests:", format_args!("{:.3} seconds", view.seconds));
    line(out, "Complete requests:", counts.complete);
    line(out, "Failed requests:", counts.failed);
    if counts.failed > 0 {
        let (connect, receive) = (counts.connect, counts.receive);
        let (length, exceptions) = (counts.length, counts.exceptions);
        let _ =
            writeln!(out, "   (Connect: {connect}, Receive: {receive}, Length: {length}, Exceptions: {exceptions})");
    }
    if counts.write_errors > 0 {
        line(out, "Write errors:", counts.write_errors);
    }
    if counts.non_2xx > 0 {
        line(out, "Non-2xx responses:", counts.non_2xx);
    }
    if let Some(kept) = counts.kept_alive {
        line(out, "Keep-Alive requests:", kept);
    }
    line(out, "Total transferred:", format_args!("{} bytes", counts.received_bytes));
    if let Some(sent) = counts.sent_bytes {
        line(out, "Total body sent:", sent);
    }
    line(out, "HTML transferred:", format_args!("{} bytes", counts.body_bytes));
}

fn speed(rates: &Rates, out: &mut String) {
    line(out, "Requests per second:", format_args!("{:.2} [#/sec] (mean)", rates.per_second));
    line(out, "Time per request:", format_args!("{:.3} [ms] (mean)", rates.ms_each));
    let across = format_args!("{:.3} [ms] (mean, across all concurrent requests)", rates.ms_across);
    line(out, "Time per request:", across);
    line(out, "Transfer rate:", format_args!("{:.2} [Kbytes/sec] received", rates.received_kib));
    if let Some((sent, total)) = rates.sent_kib {
        line(out, "", format_args!("{sent:.2} kb/s sent"));
        line(out, "", format_args!("{total:.2} kb/s total"));
    }
}

fn connection_times(times: &Times, show: Show, out: &mut String) {
    out.push_str("\nConnection Times (ms)\n");
    out.push_str(if show.confidence {
        "              min  mean[+/-sd] median   max\n"
    } else {
        "              min   avg   max\n"
    });
    for (label, row) in ["Connect:", "Processing:", "Waiting:", "Total:"].into_iter().zip(&times.rows) {
        let Row { min, mean, sd, median, max } = row;
        let _ = if show.confidence {
            writeln!(out, "{label:<12}{min:5} {mean:4} {sd:5.1} {median:6} {max:7}")
        } else {
            // Without a blank before the last column: so does ab.
            writeln!(out, "{label:<12}{min:5} {mean:5}{max:5}")
        };
    }
    if show.confidence {
        times.doubts.iter().for_each(|(part, unsteady)| doubt(*part, *unsteady, out));
    }
}

fn doubt(part: Part, unsteady: Unsteady, out: &mut String) {
    let what = match part {
        Part::Connect => "the initial connection time",
        Part::Processing => "the processing time",
        Part::Waiting => "the waiting time",
        Part::Total => "the total time",
    };
    let _ = match unsteady {
        Unsteady::FarBeyond => writeln!(
            out,
            "ERROR: The median and mean for {what} are more than twice the standard\n       \
             deviation apart. These results are NOT reliable."
        ),
        Unsteady::Beyond => writeln!(
            out,
            "WARNING: The median and mean for {what} are not within a normal deviation\n        \
             These results are probably not that reliable."
        ),
    };
}

fn percentiles(times: &Times, out: &mut String) {
    out.push_str("\nPercentage of the requests served within a certain time (ms)\n");
    for (percent, ms) in &times.percentiles {
        let _ = match percent {
            100 => writeln!(out, " 100%  {ms:5} (longest request)"),
            _ => writeln!(out, "  {percent}%  {ms:5}"),
        };
    }
}
