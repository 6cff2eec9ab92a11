//! Watches the host for some seconds and then prints every reading: `record PROGRAM SECONDS`, where PROGRAM is webdyno.
//!
//! The long checks in the virtual machine compare these raw counters with the kernel's own. Nothing is derived here, and nothing is
//! printed while it watches but one word when the first reading exists.

use model::SECOND;
use model::reading::{Column, Readings};
use monitor::{Sampler, Watch};
use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let seconds = args.get(1).and_then(|text| text.parse().ok());
    let (Some(program), Some(seconds)) = (args.first(), seconds) else {
        let _ = writeln!(std::io::stderr(), "usage: record PROGRAM SECONDS");
        return ExitCode::from(2);
    };
    match record(Path::new(program), seconds) {
        Ok(readings) => match std::io::stdout().write_all(table(&readings).as_bytes()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        },
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn record(program: &Path, seconds: u64) -> Result<Readings, monitor::MonitorError> {
    let sampler = Sampler::start(program, &Watch::default())?;
    let _ = writeln!(std::io::stderr(), "ready");
    std::thread::sleep(Duration::from_secs(seconds));
    let readings = sampler.finish()?;
    for note in &readings.notes {
        let _ = writeln!(std::io::stderr(), "note: {note}");
    }
    Ok(readings)
}

/// One line per reading: its time in milliseconds from the first one, and every column; empty where the kernel had nothing.
fn table(readings: &Readings) -> String {
    let mut out = String::from("at_ms");
    for column in Column::ALL {
        let _ = write!(out, ",{}", column.name());
    }
    out.push('\n');
    let first = readings.rows.first().map_or(0, |row| row.at_ns);
    for row in &readings.rows {
        let _ = write!(out, "{}", (row.at_ns - first) * 1000 / SECOND);
        for column in Column::ALL {
            out.push(',');
            let _ = row.get(*column).map(|value| write!(out, "{value}"));
        }
        out.push('\n');
    }
    out
}
