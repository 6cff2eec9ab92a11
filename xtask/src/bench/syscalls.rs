//! System calls per request, counted by strace. It slows the client down, and so changes how much one wait returns.

use super::Extent;
use super::cases::{Case, Limit, SYSCALLS, Shape};
use super::programs::need;
use super::report::{Judgement, Raw, Section, table};
use super::stand::{Stand, Wrap};
use super::statistics::median;
use super::tools::{Tool, Until};
use std::fs;

/// Counting varies little.
const REPETITIONS: usize = 3;

/// How many of the most frequent calls are named.
const NAMED: usize = 5;

/// The calls of one run.
#[derive(Debug, PartialEq)]
struct Calls {
    total: u64,
    /// Most frequent first.
    by_name: Vec<(String, u64)>,
}

pub(super) fn measure(stand: &Stand, case: Case, extent: Extent) -> anyhow::Result<Section> {
    let work = Shape::keep_alive(100).work(Until::Seconds(extent.seconds));
    let file = stand.scratch("strace.txt");
    let strace = need("strace", "cargo xtask setup --bench");
    let words = ["strace", "-f", "-c", "-o"].map(str::to_owned).into_iter().chain([file.display().to_string()]);
    let wrap = Wrap { words: words.collect() };
    let mut section = Section {
        heading: case.heading(),
        body: Vec::new(),
        judgements: Vec::new(),
        commands: Vec::new(),
        raw: Vec::new(),
    };
    let mut rows = Vec::new();
    let mut ours = Err("webdyno was not run".to_owned());
    for tool in Tool::GENERATORS {
        let mut found = Vec::new();
        let mut made_of = String::new();
        let mut why = None;
        for repetition in 1..=REPETITIONS.min(extent.repeats) {
            let run = match &strace {
                Ok(_) => stand.run(tool, &work, &wrap, None)?,
                Err(why) => Err(why.clone()),
            };
            let counted = run.and_then(|run| {
                let text = fs::read_to_string(&file).map_err(|error| format!("strace wrote nothing: {error}"))?;
                let calls = parse(&text).ok_or("strace wrote something else than expected")?;
                Ok((calls.total as f64 / run.served as f64, names(&calls, run.served)))
            });
            match counted {
                Err(said) => {
                    why = Some(said);
                    break;
                }
                Ok((per_request, names)) => {
                    found.push(per_request);
                    made_of = names;
                    let raw =
                        Raw { tool: tool.to_string(), repetition, position: 1, measure: "calls", value: per_request };
                    section.raw.push(raw);
                }
            }
        }
        eprintln!("{} {tool:8} {}", case.name, why.clone().unwrap_or_else(|| made_of.clone()));
        let typical = median(&found);
        rows.push(match (typical, &why) {
            (Some(typical), _) => vec![tool.to_string(), format!("{typical:.3}"), made_of],
            (None, why) => vec![tool.to_string(), format!("not run: {}", why.as_deref().unwrap_or("no repetition"))],
        });
        section.commands.extend(typical.and_then(|_| stand.shown(tool, &work, &wrap)));
        if tool == Tool::Webdyno {
            ours = typical.ok_or_else(|| format!("webdyno was not run: {}", why.unwrap_or_default()));
        }
    }
    section.body.push("Start and end of the process are counted too.".to_owned());
    section.body.push(table(&["tool", "calls/request", "made of"], &rows));
    let what = "system calls per request".to_owned();
    section.judgements.push(Judgement { what, found: ours, limit: Limit::AtMost(SYSCALLS) });
    Ok(section)
}

fn names(calls: &Calls, served: u64) -> String {
    let each = calls.by_name.iter().take(NAMED).map(|(name, n)| format!("{name} {:.2}", *n as f64 / served as f64));
    each.collect::<Vec<_>>().join(", ")
}

/// The summary of `strace -c`: the fourth column are calls, the last is the name.
fn parse(text: &str) -> Option<Calls> {
    let mut by_name = Vec::new();
    let mut total = None;
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (Some(Ok(_)), Some(Ok(calls)), Some(name)) =
            (words.first().map(|word| word.parse::<f64>()), words.get(3).map(|word| word.parse()), words.last())
        else {
            continue;
        };
        if *name == "total" {
            total = Some(calls);
        } else {
            by_name.push(((*name).to_owned(), calls));
        }
    }
    by_name.sort_by_key(|(_, calls)| std::cmp::Reverse(*calls));
    Some(Calls { total: total?, by_name })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<(u64, &str)>) {
        let found = parse(text).map(|calls| (calls.total, names(&calls, 100)));
        assert_eq!(found.as_ref().map(|(total, names)| (*total, names.as_str())), expected);
    }

    #[test]
    fn what_strace_writes() {
        let text = "\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 73.30    0.110000           2       101           sendto
 20.00    0.030000           2       100         1 recvfrom
  6.70    0.010000           3        12           epoll_wait
------ ----------- ----------- --------- --------- ----------------
100.00    0.150000           2       213         1 total
";
        check(text, Some((213, "sendto 1.01, recvfrom 1.00, epoll_wait 0.12")));
        check("strace: attach failed\n", None);
    }
}
