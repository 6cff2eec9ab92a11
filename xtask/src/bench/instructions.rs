//! User instructions per request, counted by callgrind: exact where CPU time is noisy, but blind to the kernel.
//!
//! Two runs of different length are subtracted, so that start and end of the process do not count.

use super::Extent;
use super::cases::{Case, Shape};
use super::programs::need;
use super::report::{Raw, Section, table};
use super::stand::{Stand, Wrap};
use super::tools::{Tool, Until, Work};
use std::fs;

/// Whom to count: runtimes with a scheduler of their own do badly under valgrind.
const WHOM: [(Tool, u32); 7] = [
    (Tool::Bare, 1),
    (Tool::Webdyno, 1),
    (Tool::Webdyno, 2),
    (Tool::Webdyno, 4),
    (Tool::Wrk, 1),
    (Tool::Ab, 1),
    (Tool::H2load, 1),
];

/// How much longer the long run is than the short one.
const LONGER: u32 = 3;

pub(super) fn measure(stand: &Stand, case: Case, extent: Extent) -> anyhow::Result<Section> {
    let file = stand.scratch("callgrind.out");
    let valgrind = need("valgrind", "cargo xtask setup --bench");
    let option = format!("--callgrind-out-file={}", file.display());
    let wrap = Wrap { words: vec!["valgrind".to_owned(), "-q".to_owned(), "--tool=callgrind".to_owned(), option] };
    let mut section = Section {
        heading: case.heading(),
        body: Vec::new(),
        judgements: Vec::new(),
        commands: Vec::new(),
        raw: Vec::new(),
    };
    let mut rows = Vec::new();
    for (tool, threads) in WHOM {
        let name = if tool == Tool::Webdyno { format!("{tool} -t {threads}") } else { tool.to_string() };
        let mut counted = Vec::new();
        let mut why = valgrind.as_ref().err().cloned();
        for seconds in [extent.seconds, extent.seconds * LONGER] {
            let work = Work { threads, ..Shape::keep_alive(100).work(Until::Seconds(seconds)) };
            if why.is_some() {
                break;
            }
            let run = stand.run(tool, &work, &wrap, None)?.and_then(|run| {
                let text = fs::read_to_string(&file).map_err(|error| format!("callgrind wrote nothing: {error}"))?;
                let _ = fs::remove_file(&file);
                Ok((run.served, parse(&text).ok_or("callgrind wrote something else than expected")?))
            });
            match run {
                Err(said) => why = Some(said),
                Ok((served, instructions)) => {
                    section.commands.extend(stand.shown(tool, &work, &wrap));
                    counted.push((served, instructions));
                    let raw = |(measure, value)| Raw {
                        tool: name.clone(),
                        repetition: counted.len(),
                        position: 1,
                        measure,
                        value,
                    };
                    section.raw.extend([("served", served as f64), ("instructions", instructions as f64)].map(raw));
                }
            }
        }
        let row = match (per_request(&counted), why) {
            (Some(per_request), None) => vec![name, format!("{per_request:.0}")],
            (_, why) => vec![name, format!("not run: {}", why.as_deref().unwrap_or("both runs served as much"))],
        };
        eprintln!("{} {}", case.name, row.join(" "));
        rows.push(row);
    }
    section.body.push("Two runs subtracted: start and end of the process do not count. No goal is set.".to_owned());
    section.body.push(table(&["tool", "instructions/request"], &rows));
    Ok(section)
}

fn per_request(counted: &[(u64, u64)]) -> Option<f64> {
    let [(short_served, short), (long_served, long)] = counted else { return None };
    let served = long_served.checked_sub(*short_served).filter(|served| *served > 0)?;
    Some(long.checked_sub(*short)? as f64 / served as f64)
}

/// The sum of all instructions in a callgrind file.
pub(super) fn parse(text: &str) -> Option<u64> {
    let value = |label| text.lines().rev().find_map(|line| line.strip_prefix(label))?.trim().parse().ok();
    value("totals:").or_else(|| value("summary:"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<u64>) {
        assert_eq!(parse(text), expected, "{text}");
    }

    #[test]
    fn what_callgrind_writes() {
        check("events: Ir\nsummary: 12\nfn=(1) main\n5 3\ntotals: 15\n", Some(15));
        check("events: Ir\nsummary: 12\n", Some(12));
        check("events: Ir\n", None);
    }

    #[test]
    fn start_and_end_do_not_count() {
        assert_eq!(per_request(&[(10, 1100), (30, 1300)]), Some(10.0));
        assert_eq!(per_request(&[(10, 1100)]), None);
        assert_eq!(per_request(&[(10, 1100), (10, 1100)]), None);
    }
}
