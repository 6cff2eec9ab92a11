//! Resident memory: whether it grows with the requests, and with the connections.

use super::Extent;
use super::cases::{Case, Limit, MEMORY, MEMORY_PER_CONNECTION, MEMORY_PER_TLS_CONNECTION, Shape};
use super::report::{Judgement, Raw, Section, table};
use super::stand::{Run, Stand, Wrap};
use super::tools::{Tool, Until, Work};
use rustix::process::Pid;
use std::fs;

const FEW: u32 = 100;
const MANY: u32 = 10_000;

/// Handshakes of ten thousand connections take a while.
const SECONDS_PLAIN: u32 = 5;
const SECONDS_TLS: u32 = 15;

/// So many connections must have been open at once for a figure per connection. A server with one worker that goes on answering those
/// it has takes in new ones slowly, so it may not come to all of them.
const OPEN: u64 = 1000;

/// What was seen of one run.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Seen {
    /// Largest resident memory in KiB.
    kib: u64,
    /// Most connections to the server at once.
    connections: u64,
}

/// The four runs of every tool.
fn runs(extent: Extent) -> [(&'static str, Work); 6] {
    let small = if extent.quick { 20_000 } else { 100_000 };
    let count = |requests| Shape::keep_alive(FEW).work(Until::Requests(requests));
    let open = |connections, tls, seconds| Work { tls, ..Shape::keep_alive(connections).work(Until::Seconds(seconds)) };
    [
        ("n_small_kib", count(small)),
        ("n_large_kib", count(small * 20)),
        ("c_100_kib", open(FEW, false, SECONDS_PLAIN)),
        ("c_10000_kib", open(MANY, false, SECONDS_PLAIN)),
        ("tls_c_100_kib", open(FEW, true, SECONDS_PLAIN)),
        ("tls_c_10000_kib", open(MANY, true, SECONDS_TLS)),
    ]
}

pub(super) fn measure(stand: &Stand, case: Case, extent: Extent) -> anyhow::Result<Section> {
    let mut section = Section {
        heading: case.heading(),
        body: Vec::new(),
        judgements: Vec::new(),
        commands: Vec::new(),
        raw: Vec::new(),
    };
    let runs = runs(extent);
    let mut rows = Vec::new();
    let mut remarks = Vec::new();
    for tool in Tool::GENERATORS {
        let mut seen: Vec<Result<Seen, String>> = Vec::new();
        for (position, (measure, work)) in runs.iter().enumerate() {
            let found = look_at(stand, tool, work)?;
            section.commands.extend(found.as_ref().ok().and_then(|_| stand.shown(tool, work, &Wrap::default())));
            match &found {
                Ok(Seen { kib, connections }) => {
                    eprintln!("{} {tool:8} {measure} {kib}, {connections} connections", case.name);
                    let (tool, value) = (tool.to_string(), *kib as f64);
                    section.raw.push(Raw { tool, repetition: 1, position: position + 1, measure, value });
                }
                Err(why) => {
                    eprintln!("{} {tool:8} {measure} not run: {why}", case.name);
                    remarks.push(format!("- {tool}, {measure}, not run: {why}"));
                }
            }
            seen.push(found);
        }
        rows.push(row(tool, &seen));
        if tool == Tool::Webdyno {
            section.judgements = judge(&seen);
        }
    }
    let counts = format!("Small and large n are {} and {} requests.", requests(&runs[0].1), requests(&runs[1].1));
    let way = "One run each, in KiB: VmHWM, read every 20 ms. Per connection: the difference between 10,000 and 100 \
               connections, divided by how many more were open at once.";
    section.body.push(format!("{way} {counts}"));
    let head = [
        "tool",
        "small n",
        "large n",
        "c=100",
        "c=10,000",
        "per connection",
        "TLS c=100",
        "TLS c=10,000",
        "per TLS connection",
    ];
    section.body.push(table(&head, &rows));
    if !remarks.is_empty() {
        section.body.push(remarks.join("\n"));
    }
    Ok(section)
}

fn requests(work: &Work) -> u64 {
    match work.until {
        Until::Requests(requests) => requests,
        Until::Seconds(_) => 0,
    }
}

fn look_at(stand: &Stand, tool: Tool, work: &Work) -> anyhow::Result<Result<Seen, String>> {
    let mut seen = Seen { kib: 0, connections: 0 };
    let before = own_largest_kib();
    let mut look = |pid: Pid| {
        let status = fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero())).unwrap_or_default();
        seen.kib = seen.kib.max(parse_largest(&status).unwrap_or(0));
        // Without ourselves.
        seen.connections = seen.connections.max(stand.connected().unwrap_or(0).saturating_sub(1));
    };
    let run = stand.run(tool, work, &Wrap::default(), Some(&mut look))?;
    Ok(run.map(|run| with_end(seen, &run, before)))
}

/// What the kernel noted at the end counts too, unless that may be from before the program was loaded.
fn with_end(seen: Seen, run: &Run, before: u64) -> Seen {
    if run.largest_kib > before { Seen { kib: seen.kib.max(run.largest_kib), ..seen } } else { seen }
}

/// The largest resident memory of this program, which a child's `ru_maxrss` may be from.
fn own_largest_kib() -> u64 {
    fs::read_to_string("/proc/self/status").ok().and_then(|text| parse_largest(&text)).unwrap_or(u64::MAX)
}

fn parse_largest(status: &str) -> Option<u64> {
    status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.split_whitespace().next()?.parse().ok()
}

/// KiB per connection that was open. Those on their way take memory too, so the true figure is no larger.
fn per_connection(few: &Result<Seen, String>, many: &Result<Seen, String>) -> Result<f64, String> {
    let (few, many) = (few.as_ref().map_err(Clone::clone)?, many.as_ref().map_err(Clone::clone)?);
    if many.connections < OPEN {
        return Err(format!("only {} connections were open at once", many.connections));
    }
    Ok((many.kib as f64 - few.kib as f64) / (many.connections - few.connections) as f64)
}

fn row(tool: Tool, seen: &[Result<Seen, String>]) -> Vec<String> {
    let kib = |at: usize| seen[at].as_ref().map_or_else(|_| "not run".to_owned(), |seen| seen.kib.to_string());
    let per = |few: usize, many: usize| {
        per_connection(&seen[few], &seen[many]).map_or_else(|_| "none".to_owned(), |per| format!("{per:.2}"))
    };
    vec![tool.to_string(), kib(0), kib(1), kib(2), kib(3), per(2, 3), kib(4), kib(5), per(4, 5)]
}

fn judge(seen: &[Result<Seen, String>]) -> Vec<Judgement> {
    let kib = |at: usize| seen[at].as_ref().map(|seen| seen.kib as f64).map_err(Clone::clone);
    let judgement =
        |what: &str, found, limit| Judgement { what: format!("KiB {what}"), found, limit: Limit::AtMost(limit) };
    vec![
        judgement("at c=100 with small n", kib(0), MEMORY),
        judgement("at c=100 with large n", kib(1), MEMORY),
        judgement("per connection", per_connection(&seen[2], &seen[3]), MEMORY_PER_CONNECTION),
        judgement("per TLS connection", per_connection(&seen[4], &seen[5]), MEMORY_PER_TLS_CONNECTION),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(few: u64, many: u64, connections: u64, expected: Result<f64, &str>) {
        let seen = |kib, connections| Ok(Seen { kib, connections });
        let found = per_connection(&seen(few, 100), &seen(many, connections));
        assert_eq!(found.as_ref().map_err(String::as_str), expected.as_ref().map_err(|why| *why));
    }

    #[test]
    fn per_connection_that_was_open() {
        check(5_000, 5_000 + 9_900 * 4, 10_000, Ok(4.0));
        check(5_000, 5_000, 9_900, Ok(0.0));
        check(5_000, 5_000 + 3_900 * 20, 4_000, Ok(20.0));
        check(5_000, 90_000, 900, Err("only 900 connections were open at once"));
    }

    #[test]
    fn what_the_kernel_says() {
        assert_eq!(parse_largest("Name:\twrk\nVmHWM:\t    4900 kB\nVmRSS:\t 100 kB\n"), Some(4900));
        assert_eq!(parse_largest("Name:\twrk\n"), None);
    }
}
