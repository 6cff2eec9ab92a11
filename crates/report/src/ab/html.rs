//! ab's report as an HTML table (`-w`), letter for letter: nothing is escaped, and several of its lines lack a counter that the
//! text has.

use super::{AbView, HtmlRow};
use std::fmt::Write as _;

/// Text that goes into the tags as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attributes {
    /// Of the table (`-x`).
    pub table: String,
    /// Of its rows (`-y`).
    pub row: String,
    /// Of its cells (`-z`).
    pub cell: String,
}

impl Default for Attributes {
    fn default() -> Self {
        Attributes { table: String::new(), row: String::new(), cell: "bgcolor=white".to_owned() }
    }
}

/// Draws the report; it begins with the two empty lines between it and what was printed on the way.
#[must_use]
pub fn render(view: &AbView, attributes: &Attributes) -> String {
    let mut table = Table { attributes, out: format!("\n\n<table {}>\n", attributes.table) };
    counters(view, &mut table);
    speed(view, &mut table);
    if let Some(times) = &view.times {
        table.times(&times.html);
    }
    table.out.push_str("</table>\n");
    table.out
}

fn counters(view: &AbView, table: &mut Table<'_>) {
    let (whom, counts) = (&view.whom, &view.counts);
    table.line("Server Software:", &whom.software);
    table.line("Server Hostname:", &whom.host);
    table.line("Server Port:", whom.port);
    table.line("Document Path:", &whom.path);
    match view.document_bytes {
        None => table.line("Document Length:", "Variable"),
        Some(bytes) => table.line("Document Length:", format_args!("{bytes} bytes")),
    }
    table.line("Concurrency Level:", view.concurrency);
    table.line("Time taken for tests:", format_args!("{:.3} seconds", view.seconds));
    table.line("Complete requests:", counts.complete);
    table.line("Failed requests:", counts.failed);
    if counts.failed > 0 {
        let (connect, length, exceptions) = (counts.connect, counts.length, counts.exceptions);
        table.note(format_args!("   (Connect: {connect}, Length: {length}, Exceptions: {exceptions})"));
    }
    if counts.non_2xx > 0 {
        table.line("Non-2xx responses:", counts.non_2xx);
    }
    if let Some(kept) = counts.kept_alive {
        table.line("Keep-Alive requests:", kept);
    }
    table.line("Total transferred:", format_args!("{} bytes", counts.received_bytes));
    if let Some(sent) = counts.sent_bytes {
        table.line("Total body sent:", sent);
    }
    table.line("HTML transferred:", format_args!("{} bytes", counts.body_bytes));
}

fn speed(view: &AbView, table: &mut Table<'_>) {
    let Some(rates) = &view.rates else { return };
    table.line("Requests per second:", format_args!("{:.2}", rates.per_second));
    table.line("Transfer rate:", format_args!("{:.2} kb/s received", rates.received_kib));
    if let Some((sent, total)) = rates.sent_kib {
        table.more(format_args!("{sent:.2} kb/s sent"));
        table.more(format_args!("{total:.2} kb/s total"));
    }
}

/// The table as it grows. Writing to memory does not fail.
struct Table<'a> {
    attributes: &'a Attributes,
    out: String,
}

impl Table<'_> {
    fn line(&mut self, label: &str, value: impl std::fmt::Display) {
        let (row, cell) = (&self.attributes.row, &self.attributes.cell);
        let _ = writeln!(self.out, "<tr {row}><th colspan=2 {cell}>{label}</th><td colspan=2 {cell}>{value}</td></tr>");
    }

    /// A line that goes on with what the one above is about.
    fn more(&mut self, value: impl std::fmt::Display) {
        let (row, cell) = (&self.attributes.row, &self.attributes.cell);
        let _ = writeln!(self.out, "<tr {row}><td colspan=2 {cell}>&nbsp;</td><td colspan=2 {cell}>{value}</td></tr>");
    }

    fn note(&mut self, value: impl std::fmt::Display) {
        let (row, cell) = (&self.attributes.row, &self.attributes.cell);
        let _ = writeln!(self.out, "<tr {row}><td colspan=4 {cell} >{value}</td></tr>");
    }

    fn times(&mut self, rows: &[HtmlRow; 3]) {
        let (tr, cell) = (&self.attributes.row, &self.attributes.cell);
        let _ = writeln!(self.out, "<tr {tr}><th {cell} colspan=4>Connection Times (ms)</th></tr>");
        let _ = writeln!(
            self.out,
            "<tr {tr}><th {cell}>&nbsp;</th> <th {cell}>min</th>   <th {cell}>avg</th>   <th {cell}>max</th></tr>"
        );
        for (label, HtmlRow { min, mean, max }) in ["Connect:", "Processing:", "Total:"].into_iter().zip(rows) {
            let _ = writeln!(
                self.out,
                "<tr {tr}><th {cell}>{label}</th><td {cell}>{min:5}</td><td {cell}>{mean:5}</td><td {cell}>{max:5}</td></tr>"
            );
        }
    }
}
