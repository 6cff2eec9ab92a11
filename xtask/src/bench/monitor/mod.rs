//! `cargo xtask bench monitor`: what a second of watching costs `webdyno watch`, dstat, dool, vmstat, sar and atop.
//!
//! A tick costs the CPU time that a program, its threads and its children have had at a late moment less what they had at an early
//! one, by the ticks between them; both moments lie in the middle between two ticks. Starting up is not in it: that takes a Python
//! program a hundred times as long as a tick, and varies by more than all ticks. In a repetition all programs watch the same
//! seconds, each at another moment of them, so that no two work at the same time.

mod tools;

use super::child::Child;
use super::machine::{self, Moment};
use super::report::{Judgement, Raw, Section, cells, table};
use super::server::Folder;
use super::statistics::{Estimate, estimate, median, ratios};
use super::{Extent, Files, PUBLISHED, Shared};
use crate::signals::HeldSignals;
use anyhow::bail;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tools::{Case, Cpu, Watcher, Watchers};

/// When a program is looked at first: its first ticks are dearer than the others.
const EARLY: Duration = Duration::from_millis(2500);
/// Between the starts of two programs.
const STAGGER: Duration = Duration::from_millis(70);
/// Ticks that a program is asked for beyond those that are measured, so that it still runs when it is looked at last.
const BEYOND: u32 = 5;
/// How long a tree of processes may take to be there.
const PATIENCE: Duration = Duration::from_secs(10);

/// What was typed after `bench monitor`.
#[derive(clap::Args)]
pub(super) struct Flags {
    /// Cases to measure; all when none is named
    #[arg(value_parser = tools::case_by_name, value_name = "CASE")]
    cases: Vec<Case>,
    /// Repetitions, at least 7 for a published result [default: 7, with --quick 2]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    repeats: Option<u64>,
    /// Ticks in a repetition, a second each [default: 12, with --quick 4]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    ticks: Option<u32>,
    #[command(flatten)]
    shared: Shared,
}

/// Measures what was asked for.
pub(super) fn run(flags: &Flags) -> anyhow::Result<()> {
    let extent = extent(flags);
    let cases = if flags.cases.is_empty() { tools::CASES.to_vec() } else { flags.cases.clone() };
    let files = Files::choose("monitor", "`webdyno watch` and its peers", flags.shared.out.as_deref())?;
    let webdyno = flags.shared.webdyno()?;
    let stand =
        Stand { watchers: Watchers::find(webdyno.as_deref()), folder: Folder::make()?, signals: HeldSignals::begin()? };
    let before = Moment::now();
    let mut sections = Vec::new();
    for case in cases {
        sections.push(measure(&stand, case, extent)?);
        let mut facts = machine::facts("wherever the kernel puts them", &before, &Moment::now());
        facts.extend(method(extent));
        facts.extend(stand.watchers.versions());
        files.write(&facts, &super::warnings(extent), &sections)?;
    }
    println!("{}\n{}", files.markdown.display(), files.csv.display());
    Ok(())
}

fn extent(flags: &Flags) -> Extent {
    let (repeats, ticks) = if flags.shared.quick { (2, 4) } else { (PUBLISHED, 12) };
    let repeats = flags.repeats.map_or(repeats, |repeats| repeats as usize);
    Extent { repeats, seconds: flags.ticks.unwrap_or(ticks), quick: flags.shared.quick }
}

/// How the numbers came about.
fn method(extent: Extent) -> Vec<(String, String)> {
    let Extent { repeats, seconds, .. } = extent;
    let facts = [
        (
            "repetitions",
            format!("{repeats}; in each all programs run at once, started {} ms apart", STAGGER.as_millis()),
        ),
        (
            "CPU per tick",
            format!(
                "by the scheduler's count (schedstat), threads and children included, over {seconds} ticks from {:.1} s after the start on",
                EARLY.as_secs_f64()
            ),
        ),
        ("ratio", "median of the ratios within each repetition".to_owned()),
        ("95 % interval", super::interval(repeats)),
    ];
    facts.map(|(name, value)| (name.to_owned(), value)).to_vec()
}

struct Stand {
    watchers: Watchers,
    /// For what they write.
    folder: Folder,
    signals: HeldSignals,
}

/// What was seen of one program in one repetition.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Seen {
    /// Microseconds of CPU time per tick.
    tick: f64,
    /// Milliseconds of CPU time until it is looked at first.
    start: f64,
    /// Milliseconds of CPU time for PSS and USS since the start, which are not in the ticks.
    shares: Option<f64>,
    /// Largest resident memory in KiB: of the sampler for webdyno.
    kib: Option<u64>,
}

/// All repetitions of one program.
struct Turns {
    watcher: Watcher,
    seen: Vec<Option<Seen>>,
    failure: Option<String>,
}

fn measure(stand: &Stand, case: Case, extent: Extent) -> anyhow::Result<Section> {
    let tree = (case.processes > 0).then(|| Tree::start(case.processes, &stand.signals)).transpose()?;
    let mut all: Vec<Turns> =
        case.watchers.iter().map(|&watcher| Turns { watcher, seen: Vec::new(), failure: None }).collect();
    let words = |watcher, ticks| tools::arguments(watcher, &case, tree.as_ref().map(Tree::root), ticks);
    let mut raw = Vec::new();
    for repetition in 1..=extent.repeats {
        let found = one_repetition(stand, &all, extent.seconds, repetition % 2 == 0, &words)?;
        for (position, (turns, seen)) in all.iter_mut().zip(found).enumerate() {
            eprintln!("{} {repetition}/{} {}", case.heading.name, extent.repeats, line(turns.watcher, seen.as_ref()));
            raw.extend(seen.iter().flat_map(|seen| raw_of(turns.watcher, repetition, position + 1, seen)));
            match seen {
                Ok(seen) => turns.seen.push(Some(seen)),
                Err(why) => {
                    turns.seen.push(None);
                    turns.failure = Some(why);
                }
            }
        }
    }
    let commands = all.iter().filter(|turns| turns.seen.iter().any(Option::is_some));
    let commands = commands.map(|turns| tools::shown(turns.watcher, &words(turns.watcher, extent.seconds))).collect();
    let judgements = case.goals.iter().map(|goal| judge(goal, &all)).collect();
    let shares = all.iter().find_map(|turns| typical(turns, |seen| seen.shares));
    let shares = shares.map(|ms| {
        format!("PSS and USS apart: {ms:.2} ms of CPU time since the start; they are looked at every ten seconds.")
    });
    let body = [Some(summary(&all)), shares].into_iter().flatten().collect();
    Ok(Section { heading: case.heading, body, judgements, commands, raw })
}

/// Lets every program run, all in the same seconds.
fn one_repetition(
    stand: &Stand,
    all: &[Turns],
    ticks: u32,
    backwards: bool,
    words: &dyn Fn(Watcher, u32) -> Vec<String>,
) -> anyhow::Result<Vec<Result<Seen, String>>> {
    let mut order: Vec<usize> = (0..all.len()).collect();
    if backwards {
        order.reverse();
    }
    let begun = Instant::now();
    let mut running: Vec<Result<Running, String>> = all.iter().map(|_| Err("not run".to_owned())).collect();
    for (turn, &at) in order.iter().enumerate() {
        sleep_until(begun + STAGGER * turn as u32, &stand.signals)?;
        running[at] = Running::start(stand, all[at].watcher, &words(all[at].watcher, ticks + BEYOND));
    }
    for &at in &order {
        if let Ok(running) = &mut running[at] {
            sleep_until(running.started + EARLY, &stand.signals)?;
            running.early = tools::cpu(running.pid());
        }
    }
    let mut seen: Vec<Result<Seen, String>> = Vec::new();
    seen.resize(all.len(), Err(String::new()));
    for &at in &order {
        seen[at] = match &running[at] {
            Err(why) => Err(why.clone()),
            Ok(running) => {
                sleep_until(running.started + EARLY + Duration::from_secs(ticks.into()), &stand.signals)?;
                running.seen(ticks).ok_or_else(|| "it ended too early".to_owned())
            }
        };
    }
    Ok(seen)
}

/// A program under way; it is ended when this is dropped.
struct Running {
    watcher: Watcher,
    child: Child,
    started: Instant,
    early: Option<Cpu>,
}

impl Running {
    fn start(stand: &Stand, watcher: Watcher, words: &[String]) -> Result<Running, String> {
        let mut command = stand.watchers.command(watcher, words)?;
        command.current_dir(stand.folder.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let started = Instant::now();
        let child = Child::start(&mut command, None).map_err(|error| format!("{error:#}"))?;
        Ok(Running { watcher, child, started, early: None })
    }

    fn pid(&self) -> i32 {
        self.child.pid().as_raw_nonzero().get()
    }

    fn seen(&self, ticks: u32) -> Option<Seen> {
        let (early, late) = (self.early?, tools::cpu(self.pid())?);
        let kib = tools::resident_kib(self.watcher, self.pid());
        // A look at PSS every ten seconds is one or none within a repetition: all since the start are counted.
        let shares = (late.shares > 0.0).then_some(late.shares * 1e3);
        Some(Seen { tick: (late.ticks - early.ticks) * 1e6 / f64::from(ticks), start: early.ticks * 1e3, shares, kib })
    }
}

fn sleep_until(moment: Instant, signals: &HeldSignals) -> anyhow::Result<()> {
    loop {
        if signals.came() {
            bail!("interrupted");
        }
        let left = moment.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        sleep(left.min(Duration::from_millis(250)));
    }
}

fn line(watcher: Watcher, seen: Result<&Seen, &String>) -> String {
    match seen {
        Ok(seen) => format!("{:8} {:7.0} us/tick", watcher.name(), seen.tick),
        Err(why) => format!("{:8} not run: {why}", watcher.name()),
    }
}

fn raw_of(watcher: Watcher, repetition: usize, position: usize, seen: &Seen) -> Vec<Raw> {
    let mut values = vec![("tick_us", seen.tick), ("start_ms", seen.start)];
    values.extend(seen.shares.map(|shares| ("pss_ms", shares)));
    values.extend(seen.kib.map(|kib| ("resident_kib", kib as f64)));
    let raw = |(measure, value)| Raw { tool: watcher.name().to_owned(), repetition, position, measure, value };
    values.into_iter().map(raw).collect()
}

fn typical(turns: &Turns, of: impl Fn(&Seen) -> Option<f64>) -> Option<f64> {
    median(&turns.seen.iter().flatten().filter_map(of).collect::<Vec<_>>())
}

fn ticks_of(watcher: Watcher, all: &[Turns]) -> Option<Vec<Option<f64>>> {
    let turns = all.iter().find(|turns| turns.watcher == watcher)?;
    Some(turns.seen.iter().map(|seen| seen.map(|seen| seen.tick)).collect())
}

fn ratio(to: Watcher, all: &[Turns]) -> Option<Estimate> {
    estimate(&ratios(&ticks_of(Watcher::Webdyno, all)?, &ticks_of(to, all)?))
}

fn summary(all: &[Turns]) -> String {
    let head = ["program", "us CPU/tick", "95 %", "webdyno/it", "95 %", "ms to start", "resident MB"];
    let rows = all.iter().map(|turns| {
        let name = turns.watcher.name().to_owned();
        let ticks: Vec<f64> = turns.seen.iter().flatten().map(|seen| seen.tick).collect();
        let Some(tick) = estimate(&ticks) else {
            return vec![name, format!("not run: {}", turns.failure.as_deref().unwrap_or("no repetition"))];
        };
        let span = tick.interval.map_or("none".to_owned(), |it| format!("[{:.0}, {:.0}]", it.low, it.high));
        let [middle, interval] = cells(ratio(turns.watcher, all).as_ref());
        vec![
            name,
            format!("{:.0}", tick.median),
            span,
            middle,
            interval,
            typical(turns, |seen| Some(seen.start)).map_or(String::new(), |start| format!("{start:.0}")),
            typical(turns, |seen| Some(seen.kib? as f64)).map_or(String::new(), |kib| format!("{:.1}", kib / 1024.0)),
        ]
    });
    table(&head, &rows.collect::<Vec<_>>())
}

fn judge(goal: &tools::Goal, all: &[Turns]) -> Judgement {
    use tools::What;
    let ours = all.iter().find(|turns| turns.watcher == Watcher::Webdyno);
    let (what, found) = match goal.what {
        What::Tick => {
            ("us CPU per tick of webdyno, median".to_owned(), ours.and_then(|it| typical(it, |seen| Some(seen.tick))))
        }
        What::Resident => {
            let mib = ours.and_then(|it| typical(it, |seen| Some(seen.kib? as f64 / 1024.0)));
            ("resident MB of the sampler".to_owned(), mib)
        }
        What::RatioTo(peer) => {
            (format!("webdyno/{}, median", peer.name()), ratio(peer, all).map(|estimate| estimate.median))
        }
    };
    let why = || all.iter().find_map(|turns| Some(format!("{}: {}", turns.watcher.name(), turns.failure.as_ref()?)));
    let found = found.ok_or_else(|| why().unwrap_or_else(|| "not measured".to_owned()));
    Judgement { what, found, limit: goal.limit }
}

/// Processes that sleep, under one root.
struct Tree {
    root: Child,
}

impl Tree {
    fn start(processes: u32, signals: &HeldSignals) -> anyhow::Result<Tree> {
        let script = "i=1; while [ $i -lt \"$0\" ]; do sleep 100000 & i=$((i+1)); done; wait";
        let mut command = Command::new("sh");
        command.args(["-c", script, &processes.to_string()]).stdin(Stdio::null());
        let tree = Tree { root: Child::start(&mut command, None)? };
        let begun = Instant::now();
        while tools::children(tree.root()).len() + 1 < processes as usize {
            if begun.elapsed() > PATIENCE || signals.came() {
                bail!("a tree of {processes} processes is not there within {} s", PATIENCE.as_secs());
            }
            sleep(Duration::from_millis(20));
        }
        Ok(tree)
    }

    fn root(&self) -> i32 {
        self.root.pid().as_raw_nonzero().get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn turns(watcher: Watcher, ticks: &[f64]) -> Turns {
        let seen = |&tick: &f64| (tick > 0.0).then_some(Seen { tick, start: 58.0, shares: None, kib: Some(6144) });
        Turns { watcher, seen: ticks.iter().map(seen).collect(), failure: Some("exit status: 2".to_owned()) }
    }

    #[test]
    fn tables_and_goals() {
        let all = [
            turns(Watcher::Webdyno, &[200.0, 220.0, 210.0, 200.0, 190.0, 200.0, 200.0]),
            turns(Watcher::Dstat, &[800.0, 880.0, 840.0, 800.0, 760.0, 800.0, 400.0]),
            turns(Watcher::Atop, &[0.0]),
        ];
        let goals = tools::CASES[0].goals.iter().map(|goal| judge(goal, &all));
        let lines: Vec<_> = goals.map(|it| format!("{}: {:?} {:?}", it.what, it.met(), it.found)).collect();
        expect![[r#"
            | program | us CPU/tick | 95 % | webdyno/it | 95 % | ms to start | resident MB |
            |---|---:|---:|---:|---:|---:|---:|
            | webdyno | 200 | [190, 220] | 1.000 | [1.000, 1.000] | 58 | 6.0 |
            | dstat | 800 | [400, 880] | 0.250 | [0.250, 0.500] | 58 | 6.0 |
            | atop | not run: exit status: 2 |  |  |  |  |  |
            us CPU per tick of webdyno, median: Some(true) Ok(200.0)
            webdyno/dstat, median: Some(true) Ok(0.25)
            webdyno/dool, median: None Err("webdyno: exit status: 2")
            resident MB of the sampler: Some(true) Ok(6.0)
        "#]]
        .assert_eq(&format!("{}\n{}\n", summary(&all), lines.join("\n")));
    }

    #[test]
    fn a_tree_has_so_many_processes() {
        let signals = HeldSignals::begin().unwrap();
        let tree = Tree::start(12, &signals).unwrap();
        assert_eq!(tools::children(tree.root()).len(), 11);
    }
}
