//! The real ab: run, and what it printed taken apart into a view, so that our renderings can be held against it.

use report::ab::text::Show;
use report::ab::{AbCounts, AbTls, AbView, HtmlRow, Part, Rates, Row, Times, Unsteady, Whom};
use std::process::{Command, ExitStatus};

/// What a run of ab left behind.
pub(crate) struct Ran {
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) status: ExitStatus,
    /// What `-e` wrote.
    pub(crate) csv: String,
    /// What `-g` wrote.
    pub(crate) gnuplot: String,
}

/// Runs `ab OPTIONS URL`, with both files besides, nine hours east of Greenwich; `None` where there is no ab.
pub(crate) fn run(options: &[&str], url: &str) -> Option<Ran> {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let mut command = Command::new("ab");
    command.arg("-e").arg(file("e")).arg("-g").arg(file("g")).args(options).arg(url);
    let Ok(output) = command.env("TZ", "JST-9").env("LC_ALL", "C").output() else {
        testkit::skip::skipped("ab is not installed (apache2-utils)");
        return None;
    };
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    Some(Ran {
        out: text(&output.stdout),
        err: text(&output.stderr),
        status: output.status,
        csv: std::fs::read_to_string(file("e")).unwrap_or_default(),
        gnuplot: std::fs::read_to_string(file("g")).unwrap_or_default(),
    })
}

/// The text report as the view that would be drawn so.
pub(crate) fn view(out: &str, show: Show) -> AbView {
    let seconds = number(line(out, "Time taken for tests:").unwrap());
    AbView {
        whom: whom(out),
        document_bytes: match line(out, "Document Length:").unwrap() {
            "Variable" => None,
            bytes => Some(number(bytes)),
        },
        concurrency: number(line(out, "Concurrency Level:").unwrap()),
        seconds,
        counts: counts(out),
        rates: line(out, "Requests per second:").map(|per_second| rates(out, per_second)),
        times: out.contains("\nConnection Times (ms)\n").then(|| times(out, show)),
    }
}

fn whom(out: &str) -> Whom {
    let text = |label: &str| line(out, label).map(str::to_owned);
    let tls = AbTls {
        protocol: text("SSL/TLS Protocol:"),
        temp_key: text("Server Temp Key:"),
        server_name: text("TLS Server Name:"),
    };
    Whom {
        software: text("Server Software:").unwrap(),
        host: text("Server Hostname:").unwrap(),
        port: number(line(out, "Server Port:").unwrap()),
        tls: tls.protocol.is_some().then_some(tls),
        path: text("Document Path:").unwrap(),
    }
}

fn counts(out: &str) -> AbCounts {
    let count = |label: &str| line(out, label).map(number::<u64>);
    let causes = out.lines().find(|line| line.starts_with("   (Connect:")).unwrap_or_default();
    let cause = |name: &str| causes.split_once(name).map_or(0, |(_, rest)| number(rest.trim_start()));
    AbCounts {
        complete: count("Complete requests:").unwrap(),
        failed: count("Failed requests:").unwrap(),
        connect: cause("Connect:"),
        receive: cause("Receive:"),
        length: cause("Length:"),
        exceptions: cause("Exceptions:"),
        write_errors: count("Write errors:").unwrap_or(0),
        non_2xx: count("Non-2xx responses:").unwrap_or(0),
        kept_alive: count("Keep-Alive requests:"),
        received_bytes: count("Total transferred:").unwrap(),
        sent_bytes: count("Total body sent:"),
        body_bytes: count("HTML transferred:").unwrap(),
    }
}

fn rates(out: &str, per_second: &str) -> Rates {
    let all: Vec<&str> = out.lines().collect();
    let at = all.iter().position(|line| line.starts_with("Time per request:")).unwrap();
    let value = |at: usize| number::<f64>(all[at][24..].trim());
    Rates {
        per_second: number(per_second),
        ms_each: value(at),
        ms_across: value(at + 1),
        received_kib: value(at + 2),
        sent_kib: all[at + 3].ends_with("kb/s sent").then(|| (value(at + 3), value(at + 4))),
    }
}

fn times(out: &str, show: Show) -> Times {
    let rows = ["Connect:", "Processing:", "Waiting:", "Total:"].map(|label| {
        let row = out.lines().rfind(|line| line.starts_with(label)).unwrap();
        if show.confidence { confident(&row[12..]) } else { plain(row) }
    });
    let percentiles = out.lines().skip_while(|line| !line.starts_with("Percentage of the requests")).skip(1);
    let percentiles = percentiles.map(|line| {
        let (percent, ms) = line.split_once('%').unwrap();
        (number(percent.trim()), number(ms.trim()))
    });
    Times {
        rows,
        doubts: doubts(out),
        percentiles: percentiles.collect(),
        served_us: Vec::new(),
        html: [HtmlRow { min: 0, mean: 0, max: 0 }; 3],
    }
}

fn confident(row: &str) -> Row {
    let [min, mean, sd, median, max] = row.split_whitespace().collect::<Vec<_>>()[..] else { panic!("{row}") };
    Row { min: number(min), mean: number(mean), sd: number(sd), median: number(median), max: number(max) }
}

/// Columns of five, two of them without a blank between them.
fn plain(row: &str) -> Row {
    let column = |at: std::ops::Range<usize>| number(row[at].trim());
    Row { min: column(12..17), mean: column(18..23), sd: 0.0, median: 0, max: column(23..28) }
}

fn doubts(out: &str) -> Vec<(Part, Unsteady)> {
    const PARTS: [(&str, Part); 4] = [
        ("the initial connection time", Part::Connect),
        ("the processing time", Part::Processing),
        ("the waiting time", Part::Waiting),
        ("the total time", Part::Total),
    ];
    let lines = out.lines().filter(|line| line.contains(": The median and mean for "));
    lines
        .map(|line| {
            let (_, part) = PARTS.iter().find(|(name, _)| line.contains(name)).unwrap();
            (*part, if line.starts_with("ERROR") { Unsteady::FarBeyond } else { Unsteady::Beyond })
        })
        .collect()
}

/// The HTML report as the view that would be drawn so.
pub(crate) fn html_view(out: &str) -> AbView {
    let cells = |label: &str| {
        let row = out.lines().find(|line| line.contains(&format!(">{label}</th>")))?;
        Some(row.split("</td>").filter_map(|cell| Some(cell.rsplit_once('>')?.1)).collect::<Vec<_>>())
    };
    let text = |label: &str| Some(cells(label)?[0]);
    let count = |label: &str| text(label).map(number::<u64>);
    let causes = out.lines().find(|line| line.contains("   (Connect:")).unwrap_or_default();
    let cause = |name: &str| causes.split_once(name).map_or(0, |(_, rest)| number(rest.trim_start()));
    let speeds: Vec<f64> = out
        .lines()
        .filter(|line| line.contains(" kb/s "))
        .map(|line| number(line.split(" kb/s ").next().unwrap().rsplit_once('>').unwrap().1))
        .collect();
    let row = |label: &str| {
        let cells = cells(label)?;
        let ms = |at: usize| number(cells[at].trim());
        Some(HtmlRow { min: ms(0), mean: ms(1), max: ms(2) })
    };
    let nothing = Row { min: 0, mean: 0, sd: 0.0, median: 0, max: 0 };
    AbView {
        whom: Whom {
            software: text("Server Software:").unwrap().to_owned(),
            host: text("Server Hostname:").unwrap().to_owned(),
            port: number(text("Server Port:").unwrap()),
            tls: None,
            path: text("Document Path:").unwrap().to_owned(),
        },
        document_bytes: text("Document Length:").filter(|text| *text != "Variable").map(number),
        concurrency: number(text("Concurrency Level:").unwrap()),
        seconds: number(text("Time taken for tests:").unwrap()),
        counts: AbCounts {
            complete: count("Complete requests:").unwrap(),
            failed: count("Failed requests:").unwrap(),
            connect: cause("Connect:"),
            receive: 0,
            length: cause("Length:"),
            exceptions: cause("Exceptions:"),
            write_errors: 0,
            non_2xx: count("Non-2xx responses:").unwrap_or(0),
            kept_alive: count("Keep-Alive requests:"),
            received_bytes: count("Total transferred:").unwrap(),
            sent_bytes: count("Total body sent:"),
            body_bytes: count("HTML transferred:").unwrap(),
        },
        rates: text("Requests per second:").map(|per_second| Rates {
            per_second: number(per_second),
            ms_each: 0.0,
            ms_across: 0.0,
            received_kib: speeds[0],
            sent_kib: (speeds.len() == 3).then(|| (speeds[1], speeds[2])),
        }),
        times: row("Connect:").map(|connect| Times {
            rows: [nothing; 4],
            doubts: Vec::new(),
            percentiles: Vec::new(),
            served_us: Vec::new(),
            html: [connect, row("Processing:").unwrap(), row("Total:").unwrap()],
        }),
    }
}

/// The value of a line of the report.
fn line<'a>(out: &'a str, label: &str) -> Option<&'a str> {
    Some(&out.lines().find(|line| line.starts_with(label))?[24..])
}

/// The number that a text begins with.
pub(crate) fn number<T: std::str::FromStr>(text: &str) -> T {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-')).unwrap_or(text.len());
    text[..end].parse().unwrap_or_else(|_| panic!("no number: {text}"))
}
