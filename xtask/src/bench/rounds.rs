//! CPU per request of all tools, turn by turn, so that what drifts meets all of them alike.

use super::Extent;
use super::cases::{Case, Figure, Goal, Kind, Limit, Shape};
use super::report::{Judgement, Raw, Section, capitalised, cells, table};
use super::stand::{Run, Stand, Wrap};
use super::statistics::{Estimate, estimate, median, ratios};
use super::tools::{Tool, Until, Work};

/// A tool that failed as often as this, and never ran, is not tried again.
const TRIES: usize = 2;

/// How far a tool's own count may be from the server's before that is said.
const AGREE: f64 = 0.01;

/// How far below its rate a tool may stay before that is said.
const KEEPS_RATE: f64 = 0.98;

/// All repetitions of one tool.
struct Turns {
    tool: Tool,
    /// One per repetition.
    runs: Vec<Option<Run>>,
    failures: Vec<String>,
}

/// Measures a case whose tools go as fast as they can.
pub(super) fn closed(stand: &Stand, case: Case, shape: Shape, extent: Extent) -> anyhow::Result<Section> {
    compare(stand, case, shape.work(Until::Seconds(extent.seconds)), extent, Vec::new())
}

/// Finds out how fast the bare loop goes, and measures all at half of that.
pub(super) fn half_rate(stand: &Stand, case: Case, shape: Shape, extent: Extent) -> anyhow::Result<Section> {
    let full = shape.work(Until::Seconds(extent.seconds));
    let run = match stand.run(Tool::Bare, &full, &Wrap::default(), None)? {
        Ok(run) => run,
        Err(why) => return Ok(not_measured(case, &why)),
    };
    let most = run.tally.map_or(run.served, |tally| tally.done) as f64 / f64::from(extent.seconds);
    // A multiple of the connections, so that tools with a rate per connection have a whole one.
    let rate = (most / 2.0 / f64::from(full.connections)) as u32 * full.connections;
    let said = format!("The bare loop got through {most:.0} requests/s when free; the rate is {rate} requests/s.");
    compare(stand, case, Work { rate: Some(rate), ..full }, extent, vec![said])
}

/// Without the bare loop there is no rate to ask for.
fn not_measured(case: Case, why: &str) -> Section {
    let why = format!("not measured: the bare loop tells the rate, and was not run: {why}");
    eprintln!("{} {why}", case.name);
    let judgement = |goal| Judgement { found: Err(why.clone()), ..judge(goal, &[]) };
    let judgements = case.goals.iter().map(judgement).collect();
    Section {
        heading: case.heading(),
        body: vec![capitalised(&why)],
        judgements,
        commands: Vec::new(),
        raw: Vec::new(),
    }
}

fn compare(stand: &Stand, case: Case, work: Work, extent: Extent, mut body: Vec<String>) -> anyhow::Result<Section> {
    warm_up(stand, work)?;
    let tools: &[Tool] = if matches!(case.kind, Kind::DropIn(_)) { &Tool::DROP_INS } else { &Tool::GENERATORS };
    let mut all: Vec<Turns> =
        tools.iter().map(|&tool| Turns { tool, runs: Vec::new(), failures: Vec::new() }).collect();
    let mut raw = Vec::new();
    for repetition in 0..extent.repeats {
        let order: Vec<usize> =
            if repetition % 2 == 0 { (0..all.len()).collect() } else { (0..all.len()).rev().collect() };
        for (position, at) in order.into_iter().enumerate() {
            let run = all[at].turn(stand, &work)?;
            eprintln!("{} {}/{} {}", case.name, repetition + 1, extent.repeats, all[at].last_line());
            raw.extend(run.iter().flat_map(|run| raw_of(all[at].tool, repetition + 1, position + 1, run)));
        }
    }
    body.push(summary(&all, work));
    body.extend(remarks(&all, work));
    body.push(pairs(&all));
    let judgements = case.goals.iter().map(|goal| judge(goal, &all)).collect();
    let ran = all.iter().filter(|turns| turns.runs.iter().any(Option::is_some));
    let commands = ran.filter_map(|turns| stand.shown(turns.tool, &work, &Wrap::default())).collect();
    Ok(Section { heading: case.heading(), body, judgements, commands, raw })
}

/// One second of whatever runs, not counted: the first client of a case meets cold caches and new connections.
fn warm_up(stand: &Stand, work: Work) -> anyhow::Result<()> {
    let short = Work { until: Until::Seconds(1), ..work };
    for tool in [Tool::Bare, Tool::Wrk, Tool::Ab] {
        if stand.run(tool, &short, &Wrap::default(), None)?.is_ok() {
            break;
        }
    }
    Ok(())
}

impl Turns {
    fn turn(&mut self, stand: &Stand, work: &Work) -> anyhow::Result<Option<Run>> {
        let gave_up = self.failures.len() >= TRIES && self.runs.iter().all(Option::is_none);
        let run = if gave_up {
            None
        } else {
            match stand.run(self.tool, work, &Wrap::default(), None)? {
                Ok(run) => Some(run),
                Err(why) => {
                    self.failures.push(why);
                    None
                }
            }
        };
        self.runs.push(run);
        Ok(run)
    }

    fn last_line(&self) -> String {
        match (self.runs.last(), self.failures.last()) {
            (Some(Some(run)), _) => format!("{:8} {:7.2} us/request", self.tool, microseconds(run)),
            (_, Some(why)) => format!("{:8} not run: {why}", self.tool),
            _ => format!("{:8} not run", self.tool),
        }
    }

    fn costs(&self) -> Vec<Option<f64>> {
        self.runs.iter().map(|run| run.as_ref().map(microseconds)).collect()
    }

    /// The median over the repetitions that there were.
    fn typical(&self, of: impl Fn(&Run) -> Option<f64>) -> Option<f64> {
        median(&self.runs.iter().flatten().filter_map(of).collect::<Vec<_>>())
    }

    fn why_not(&self) -> String {
        self.failures.first().cloned().unwrap_or_else(|| "no repetition was asked for".to_owned())
    }
}

/// CPU time per request by the server's count.
fn microseconds(run: &Run) -> f64 {
    (run.user + run.system).as_secs_f64() * 1e6 / run.served as f64
}

fn per_second(run: &Run) -> f64 {
    run.served as f64 / run.wall.as_secs_f64()
}

/// What the tool says it got through, as a part of what the server counted.
fn agreement(run: &Run) -> Option<f64> {
    run.tally.map(|tally| tally.done as f64 / run.served as f64)
}

fn raw_of(tool: Tool, repetition: usize, position: usize, run: &Run) -> Vec<Raw> {
    let micros = |time: std::time::Duration| time.as_micros() as f64;
    let mut values = vec![
        ("user_us", micros(run.user)),
        ("system_us", micros(run.system)),
        ("wall_us", micros(run.wall)),
        ("served", run.served as f64),
    ];
    values.extend(run.server_cpu.map(|cpu| ("server_cpu_us", micros(cpu))));
    if let Some(tally) = run.tally {
        values.extend([("own_done", tally.done as f64), ("own_failed", tally.failed as f64)]);
    }
    let raw = |(measure, value)| Raw { tool: tool.name().to_owned(), repetition, position, measure, value };
    values.into_iter().map(raw).collect()
}

fn ratio(of: Tool, to: Tool, all: &[Turns]) -> Option<Estimate> {
    let costs = |tool| all.iter().find(|turns| turns.tool == tool).map(Turns::costs);
    estimate(&ratios(&costs(of)?, &costs(to)?))
}

fn summary(all: &[Turns], work: Work) -> String {
    let head = [
        "tool",
        "us CPU/request",
        "user + system",
        "ratio to bare",
        "95 %",
        "requests/s",
        "client busy",
        "server busy",
    ];
    let rows = all.iter().map(|turns| {
        let Some(cost) = turns.typical(|run| Some(microseconds(run))) else {
            return vec![turns.tool.to_string(), format!("not run: {}", turns.why_not())];
        };
        let part = |of: fn(&Run) -> std::time::Duration| {
            turns.typical(|run| Some(of(run).as_secs_f64() * 1e6 / run.served as f64)).unwrap_or_default()
        };
        let busy = |of: fn(&Run) -> Option<std::time::Duration>| {
            let busy = turns.typical(|run| Some(of(run)?.as_secs_f64() / run.wall.as_secs_f64()));
            busy.map(|busy| format!("{busy:.2}")).unwrap_or_default()
        };
        // A rate in excess of what was asked would be a fault, so it is shown by the tool's own seconds.
        let speed = turns.typical(|run| Some(work.rate.map_or(per_second(run), |_| in_time(run, work))));
        let [middle, interval] = cells(ratio(turns.tool, Tool::Bare, all).as_ref());
        vec![
            turns.tool.to_string(),
            format!("{cost:.2}"),
            format!("{:.2} + {:.2}", part(|run| run.user), part(|run| run.system)),
            middle,
            interval,
            speed.map(|speed| format!("{speed:.0}")).unwrap_or_default(),
            busy(|run| Some(run.user + run.system)),
            busy(|run| run.server_cpu),
        ]
    });
    table(&head, &rows.collect::<Vec<_>>())
}

/// Requests per second of the time that was asked for.
fn in_time(run: &Run, work: Work) -> f64 {
    match work.until {
        Until::Seconds(seconds) => run.served as f64 / f64::from(seconds),
        Until::Requests(_) => per_second(run),
    }
}

/// What a reader must know beside the table.
fn remarks(all: &[Turns], work: Work) -> Vec<String> {
    let mut found = Vec::new();
    for turns in all {
        let tool = turns.tool;
        let there = turns.runs.iter().flatten().count();
        if there > 0 && !turns.failures.is_empty() {
            found.push(format!("- {tool} failed {} times: {}", turns.failures.len(), turns.failures.join("; ")));
        }
        if let Some(part) = turns.typical(agreement).filter(|part| (part - 1.0).abs() > AGREE) {
            found.push(format!("- {tool} counts {:.1} % of the requests that nginx served.", part * 100.0));
        }
        if there > 0 && turns.typical(agreement).is_none() {
            found.push(format!("- {tool} does not say how many requests it got through."));
        }
        if let Some(failed) = turns.typical(|run| Some(run.tally?.failed as f64)).filter(|failed| *failed > 0.0) {
            found.push(format!("- {tool} reports {failed:.0} failures per run."));
        }
        if let Some(rate) = work.rate
            && let Some(speed) = turns.typical(|run| Some(in_time(run, work) / f64::from(rate)))
            && speed < KEEPS_RATE
        {
            found.push(format!("- {tool} sends only {:.0} % of what was asked for.", speed * 100.0));
        }
    }
    if found.is_empty() { Vec::new() } else { vec![found.join("\n")] }
}

/// Whom it is about: `webdyno load`, or `webdyno ab` where that takes part.
fn subject(all: &[Turns]) -> Tool {
    if all.iter().any(|turns| turns.tool == Tool::WebdynoAb) { Tool::WebdynoAb } else { Tool::Webdyno }
}

/// It against every peer.
fn pairs(all: &[Turns]) -> String {
    let subject = subject(all);
    let peers = all.iter().map(|turns| turns.tool).filter(|&tool| tool != Tool::Bare && tool != subject);
    let rows: Vec<Vec<String>> = peers
        .filter_map(|peer| {
            let found = ratio(subject, peer, all)?;
            Some([vec![format!("{subject}/{peer}")], cells(Some(&found)).to_vec()].concat())
        })
        .collect();
    if rows.is_empty() {
        return "No ratio of webdyno to another tool: they did not both run.".to_owned();
    }
    table(&["CPU per request", "ratio", "95 %"], &rows)
}

fn judge(goal: &Goal, all: &[Turns]) -> Judgement {
    let Goal { against, figure, limit } = *goal;
    let what = match (figure, limit) {
        (Figure::Median, _) => "median",
        (Figure::Upper, Limit::AtMost(_)) => "upper end of the interval",
        (Figure::Upper, Limit::Below(_)) => "whole interval",
        (Figure::Upper, Limit::AtLeast(_)) => "interval",
    };
    let subject = subject(all);
    let what = format!("{subject}/{against}, {what}");
    let absent = || {
        let of = |tool| all.iter().find(|turns| turns.tool == tool && turns.runs.iter().all(Option::is_none));
        let missing = of(subject).or_else(|| of(against));
        missing.map_or_else(
            || "they did not both run in any repetition".to_owned(),
            |turns| format!("{} was not run: {}", turns.tool, turns.why_not()),
        )
    };
    let found = match (ratio(subject, against, all), figure) {
        (None, _) => Err(absent()),
        (Some(estimate), Figure::Median) => Ok(estimate.median),
        (Some(Estimate { interval: Some(interval), .. }), Figure::Upper) => Ok(interval.high),
        (Some(_), Figure::Upper) => Err("too few repetitions for an interval; it takes 6".to_owned()),
    };
    Judgement { what, found, limit }
}

#[cfg(test)]
mod tests {
    use super::super::tools::Tally;
    use super::*;
    use expect_test::{Expect, expect};
    use std::time::Duration;

    const WORK: Work = Work {
        connections: 100,
        page: super::super::tools::Page::Small,
        tls: false,
        close: false,
        rate: None,
        until: Until::Seconds(2),
        threads: 1,
    };

    /// A run of two seconds with 100 000 requests at that many microseconds, of which the tool counts `done`.
    fn run(cost: u64, done: u64) -> Run {
        Run {
            user: Duration::from_millis(cost * 10),
            system: Duration::from_millis(cost * 90),
            wall: Duration::from_secs(2),
            largest_kib: 0,
            served: 100_000,
            tally: Some(Tally { done, failed: 0 }),
            server_cpu: Some(Duration::from_millis(1500)),
        }
    }

    fn turns(tool: Tool, costs: &[u64]) -> Turns {
        let runs = costs.iter().map(|cost| (*cost > 0).then(|| run(*cost, 100_000))).collect();
        let failures = costs.iter().filter(|cost| **cost == 0).map(|_| "exit status: 2".to_owned()).collect();
        Turns { tool, runs, failures }
    }

    fn all() -> Vec<Turns> {
        vec![
            turns(Tool::Bare, &[5, 6, 5, 6, 5, 6, 5]),
            turns(Tool::Webdyno, &[5, 6, 6, 6, 5, 6, 5]),
            turns(Tool::Wrk, &[10, 12, 10, 12, 10, 12, 0]),
            turns(Tool::Ab, &[0, 0, 0, 0, 0, 0, 0]),
        ]
    }

    fn check(all: &[Turns], work: Work, expected: &Expect) {
        let text = [vec![summary(all, work)], remarks(all, work), vec![pairs(all)]].concat().join("\n\n") + "\n";
        expected.assert_eq(&text);
    }

    #[test]
    fn tables() {
        check(
            &all(),
            WORK,
            &expect![[r#"
                | tool | us CPU/request | user + system | ratio to bare | 95 % | requests/s | client busy | server busy |
                |---|---:|---:|---:|---:|---:|---:|---:|
                | bare | 5.00 | 0.50 + 4.50 | 1.000 | [1.000, 1.000] | 50000 | 0.25 | 0.75 |
                | webdyno | 6.00 | 0.60 + 5.40 | 1.000 | [1.000, 1.200] | 50000 | 0.30 | 0.75 |
                | wrk | 11.00 | 1.10 + 9.90 | 2.000 | [2.000, 2.000] | 50000 | 0.55 | 0.75 |
                | ab | not run: exit status: 2 |  |  |  |  |  |  |

                - wrk failed 1 times: exit status: 2

                | CPU per request | ratio | 95 % |
                |---|---:|---:|
                | webdyno/wrk | 0.500 | [0.500, 0.600] |
            "#]],
        );
        let few = [Turns { tool: Tool::Hey, runs: vec![Some(run(5, 80_000))], failures: Vec::new() }];
        check(
            &few,
            Work { rate: Some(60_000), ..WORK },
            &expect![[r#"
                | tool | us CPU/request | user + system | ratio to bare | 95 % | requests/s | client busy | server busy |
                |---|---:|---:|---:|---:|---:|---:|---:|
                | hey | 5.00 | 0.50 + 4.50 |  |  | 50000 | 0.25 | 0.75 |

                - hey counts 80.0 % of the requests that nginx served.
                - hey sends only 83 % of what was asked for.

                No ratio of webdyno to another tool: they did not both run.
            "#]],
        );
    }

    fn check_goal(against: Tool, figure: Figure, repetitions: usize, expected: Result<f64, &str>) {
        let mut all = all();
        all.iter_mut().for_each(|turns| turns.runs.truncate(repetitions));
        let found = judge(&Goal { against, figure, limit: Limit::AtMost(1.0) }, &all).found;
        assert_eq!(found.as_ref().map_err(String::as_str), expected.as_ref().map_err(|why| *why));
    }

    #[test]
    fn goals() {
        check_goal(Tool::Bare, Figure::Median, 7, Ok(1.0));
        check_goal(Tool::Bare, Figure::Upper, 7, Ok(1.2));
        check_goal(Tool::Wrk, Figure::Upper, 7, Ok(0.6));
        check_goal(Tool::Wrk, Figure::Median, 2, Ok(0.5));
        check_goal(Tool::Wrk, Figure::Upper, 2, Err("too few repetitions for an interval; it takes 6"));
        check_goal(Tool::Ab, Figure::Median, 7, Err("ab was not run: exit status: 2"));
    }
}
