//! The monitor where it matters, for minutes: `cargo xtask test --long`. Each check writes what it saw, dated, for the documents.

mod tool;

use host::{Group, Host};
use model::plan::Confinement;
use model::reading::{Column, Reading, Span};
use model::{Nanos, SECOND};
use monitor::{Awaited, GroupDirs, Sampler, Watch};
use std::fmt::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tool::{Tool, is_root};

/// Readings of the storm, ten a second.
const READINGS: u64 = 600;
const PERIOD: Nanos = SECOND / 10;
/// The group's memory, and what ten CGIs at once ask of it.
const MEMORY: u64 = 200 << 20;
const SWAP: u64 = 1 << 30;
const CGIS: usize = 10;
/// How long the storm may take to begin.
const PATIENCE: Duration = Duration::from_secs(60);

fn exe() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_webdyno"))
}

/// The storm of `memory-cliff`, with those who watch it inside the very group that thrashes.
#[test]
fn long_check_storm_inside_the_group() {
    let Some(results) = testkit::skip::long_results() else { return };
    if !is_root() || host::hierarchies().is_err() {
        return testkit::skip::not_here("needs root and a memory control group");
    }
    let tool = Tool::new();
    let run = format!("storm-{}", std::process::id());
    let host = Host::open(exe(), &tool.path("state"), &run).expect("a guardian");
    host.make_swap(SWAP).expect("a swap file");
    let group = host
        .group("storm", &Confinement { memory: Some(MEMORY), swap: SWAP, ..Confinement::default() })
        .expect("a group");
    let seen = watch_the_storm(&tool, &group);
    group.remove().expect("the group goes");
    host.close().expect("everything is given back");
    let (page, wrong) = seen.judge();
    std::fs::write(results.join("monitor-storm.md"), &page).expect("the results");
    assert!(wrong.is_empty(), "{wrong:?}\n{page}");
}

/// What came of it.
struct Storm {
    rows: Vec<Reading>,
    notes: Vec<String>,
    /// Readings of a sampler outside that reads once a second unless there is a storm.
    outside: Vec<Reading>,
    dstat: Option<Dstat>,
}

/// The peer.
struct Dstat {
    /// Seconds that it watched, and rows that it printed for them.
    seconds: f64,
    rows: usize,
    missed: String,
    major_faults: u64,
}

fn watch_the_storm(tool: &Tool, group: &Group) -> Storm {
    let dir = group.paths().memory.clone().expect("a memory group");
    let inside = tool.path("inside");
    enter(&inside, &dir);
    let paths = group.paths().clone();
    let dirs = GroupDirs { memory: paths.memory, cpuacct: paths.cpuacct, cpu: paths.cpu, unified: paths.unified };
    let watch = Watch { period_ns: PERIOD, capacity: 2000, group: dirs, ..Watch::default() };
    let sampler = Sampler::start(&inside, &watch).expect("a sampler in the group");
    let outside = Watch { period_ns: SECOND, storm_period_ns: Some(PERIOD), capacity: 2000, ..Watch::default() };
    let outside = Sampler::start(exe(), &outside).expect("a sampler outside");
    let dstat = Cast(start_dstat(tool, &dir).into_iter().collect());
    let cgis = Cast(start_cgis(tool, &dir));
    let begun = until_it_thrashes(&sampler);
    let first = printed(tool).lines().count();
    let mut next = begun;
    while next < begun + READINGS {
        assert_eq!(sampler.wait(next, Duration::from_secs(60)), Awaited::Look, "the sampler lives");
        next = sampler.looks_from(next).next;
    }
    let rows: Vec<Reading> = sampler.looks_from(begun).looks.into_iter().map(|look| look.reading).collect();
    let text = printed(tool);
    let seconds = (rows[rows.len() - 1].at_ns - rows[0].at_ns) as f64 / 1e9;
    let dstat_seen = dstat.0.first().map(|child| Dstat {
        seconds,
        rows: text.lines().count() - first,
        missed: text
            .lines()
            .filter_map(|line| line.split_once("missed").map(|(_, rest)| rest.trim()))
            .collect::<Vec<_>>()
            .join(", "),
        major_faults: major_faults(child.id()),
    });
    drop((cgis, dstat));
    let outside = outside.finish().expect("readings").rows;
    Storm { rows, notes: sampler.finish().expect("readings").notes, outside, dstat: dstat_seen }
}

/// Children that end with the test, however that ends.
struct Cast(Vec<Child>);

impl Drop for Cast {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Writes a program that enters the group and then becomes webdyno: whatever it touches is the group's.
fn enter(program: &Path, group: &Path) {
    let text =
        format!("#!/bin/sh\necho $$ > {}/cgroup.procs || exit\nexec {} \"$@\"\n", group.display(), exe().display());
    std::fs::write(program, text).expect("a script");
    std::fs::set_permissions(program, std::fs::Permissions::from_mode(0o755)).expect("our own file");
}

fn start_dstat(tool: &Tool, group: &Path) -> Option<Child> {
    let dstat = Path::new("/usr/bin/dstat");
    if !dstat.exists() {
        testkit::skip::not_here("no dstat beside it");
        return None;
    }
    let script = format!("echo $$ > {}/cgroup.procs && exec dstat -cmsdlnr --noheaders 1", group.display());
    let output = std::fs::File::create(tool.path("dstat.txt")).expect("a file");
    let child =
        Command::new("sh").args(["-c", &script]).stdin(Stdio::null()).stdout(output).stderr(Stdio::null()).spawn();
    Some(child.expect("sh starts"))
}

fn printed(tool: &Tool) -> String {
    std::fs::read_to_string(tool.path("dstat.txt")).unwrap_or_default()
}

/// Ten clients, each of which asks for a CGI as soon as the one before has ended.
fn start_cgis(tool: &Tool, group: &Path) -> Vec<Child> {
    let (source, scripts) = (Path::new(env!("CARGO_MANIFEST_DIR")).join("../sites/memhog"), tool.path("scripts"));
    let made = Command::new("make").arg("-s").arg("-C").arg(source).arg(format!("BIN={}", scripts.display())).status();
    assert!(made.is_ok_and(|status| status.success()), "memhog is built");
    // The shell stays outside: only what it starts enters, and nothing hungry runs unless it did.
    let one = format!("echo $$ > {}/cgroup.procs && exec {}/memhog", group.display(), scripts.display());
    let client = format!("while :; do sh -c '{one}' > /dev/null; done");
    let start = |_| {
        let mut command = Command::new("sh");
        command.args(["-c", &client]).env("MEMHOG_BYTES", "40M").env("MEMHOG_PASSES", "2").env("REQUEST_METHOD", "GET");
        command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().expect("sh starts")
    };
    (0..CGIS).map(start).collect()
}

/// The number of the first reading of a group that reads back from swap what it has just written there.
fn until_it_thrashes(sampler: &Sampler) -> u64 {
    let deadline = Instant::now() + PATIENCE;
    let mut next = sampler.looks_from(0).next;
    let mut before: Option<Reading> = None;
    loop {
        assert!(Instant::now() < deadline, "no storm within {} s", PATIENCE.as_secs());
        assert_eq!(sampler.wait(next, PATIENCE), Awaited::Look, "the sampler lives");
        let news = sampler.looks_from(next);
        next = news.next;
        for look in news.looks {
            let swapped = |from: &Reading| Span { from, to: &look.reading }.delta(Column::SwapIn);
            if before.as_ref().and_then(swapped).is_some_and(|pages| pages > 20) {
                return next;
            }
            before = Some(look.reading);
        }
    }
}

fn major_faults(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let rest = stat.rsplit_once(") ").map(|(_, rest)| rest.to_owned()).unwrap_or_default();
    rest.split(' ').nth(9).and_then(|faults| faults.parse().ok()).unwrap_or(0)
}

/// The part of the values that is not above it.
fn percentile(values: &[u64], percent: f64) -> u64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let rank = (percent / 100.0 * sorted.len() as f64).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1]
}

impl Storm {
    /// The page, and what is not as it should be.
    fn judge(&self) -> (String, Vec<String>) {
        let rows = &self.rows;
        let of = |row: &Reading, column| row.get(column).expect("the sampler's own columns");
        let late: Vec<u64> = rows.iter().map(|row| of(row, Column::SamplerLateNs)).collect();
        let cost: Vec<u64> = rows.iter().map(|row| of(row, Column::SamplerCostNs)).collect();
        let due: Vec<u64> = rows.iter().zip(&late).map(|(row, late)| row.at_ns - late).collect();
        let missing: u64 = due.windows(2).map(|pair| (pair[1] - pair[0]) / PERIOD - 1).sum();
        let storm = Span { from: &rows[0], to: &rows[rows.len() - 1] };
        let delta = |column| storm.delta(column).unwrap_or(0);
        let faults = delta(Column::SamplerFaults);
        let (swap_ins, refaults) = (delta(Column::SwapIn), delta(Column::GroupRefaultAnon));
        let agreement = swap_ins as f64 / refaults as f64;
        let hurried = self.outside.iter().filter(|row| row.get(Column::SamplerExtra) == Some(1)).count();
        let ms = |ns: u64| ns as f64 / 1e6;
        let mut page = format!(
            "# A storm of {:.0} s, watched from inside the thrashing memory group\n\n\
             {CGIS} CGIs of 40 MB at once in a group of {} MiB. The group read {swap_ins} pages back from swap and wrote {}.\n\n\
             | what | goal | seen |\n|---|---|---|\n",
            storm.seconds(),
            MEMORY >> 20,
            delta(Column::SwapOut),
        );
        let p99 = percentile(&late, 99.0);
        let lines = [
            (format!("readings missing of {}", rows.len()), "none", missing.to_string(), missing == 0),
            ("lateness, 99 of 100 below".to_owned(), "20 ms", format!("{:.2} ms", ms(p99)), p99 < 20_000_000),
            ("major faults of the sampler".to_owned(), "at most 5", faults.to_string(), faults <= 5),
            (
                "pages swapped in, by the group's own count of refaults".to_owned(),
                "0.98 to 1.02",
                format!("{swap_ins} / {refaults} = {agreement:.4}"),
                (agreement - 1.0).abs() <= 0.02,
            ),
            (
                "readings between the seconds, of a sampler outside that hurries in storms".to_owned(),
                "more than half of all",
                format!("{hurried} of {}", self.outside.len()),
                hurried * 2 > self.outside.len(),
            ),
        ];
        let mut wrong = Vec::new();
        for (what, goal, seen, good) in lines {
            let _ = writeln!(page, "| {what} | {goal} | {seen}{} |", if good { "" } else { ", **not met**" });
            if !good {
                wrong.push(format!("{what}: {seen}"));
            }
        }
        let _ = writeln!(
            page,
            "\nLateness: median {:.2} ms, largest {:.2} ms. A reading took {:.2} ms in the median, {:.2} ms at most.",
            ms(percentile(&late, 50.0)),
            ms(percentile(&late, 100.0)),
            ms(percentile(&cost, 50.0)),
            ms(percentile(&cost, 100.0)),
        );
        match &self.dstat {
            Some(Dstat { seconds, rows, missed, major_faults }) => {
                let missed = if missed.is_empty() { "none" } else { missed };
                let _ = writeln!(
                    page,
                    "\nDebian's dstat in the same group: {rows} rows in {seconds:.0} s; ticks it says it missed: {missed}; {major_faults} major faults."
                );
            }
            None => page.push_str("\nNo dstat was here.\n"),
        }
        let _ = writeln!(page, "\nNotes of the sampler: {}", self.notes.join("; "));
        (page, wrong)
    }
}

/// Bytes on the loopback and connections taken, against what the load generator counted itself.
#[test]
fn long_check_rates_of_the_loopback() {
    let Some(results) = testkit::skip::long_results() else { return };
    let tool = Tool::new();
    let (server, url) = serve(&tool);
    let sampler = Sampler::start(exe(), &Watch { period_ns: SECOND / 5, ..Watch::default() }).expect("a sampler");
    let before = sampler.latest().expect("a reading");
    let args = ["load", "-c", "4", "-d", "20s", "--close", "--preflight", "0", "--no-probe", "--json", "--no-store"];
    let run = tool.run(&[&args[..], &[&format!("{url}/static/256K")]].concat());
    let rows = sampler.finish().expect("readings").rows;
    drop(server);
    let found: serde_json::Value =
        serde_json::from_str(&run.out).unwrap_or_else(|error| panic!("{error}: {}", run.err));
    let count = |name: &str| found["counts"][name].as_u64().unwrap_or(0) as f64;
    let span = Span { from: &before, to: &rows[rows.len() - 1] };
    let delta = |column| span.delta(column).unwrap_or(0) as f64;
    let lines = [
        ("bytes on lo", delta(Column::LoopbackBytes), count("bytes_in") + count("bytes_out")),
        ("connections taken, one for each request", delta(Column::TcpPassiveOpens), count("good")),
    ];
    let mut page = "# The monitor's rates against the load generator's own count\n\n\
                    256 KiB answers for 20 s, a connection for each. Headers of packets are bytes on lo, too.\n\n\
                    | what | monitor | load | ratio |\n|---|---|---|---|\n"
        .to_owned();
    let mut wrong = Vec::new();
    for (what, ours, theirs) in lines {
        let ratio = ours / theirs;
        let _ = writeln!(page, "| {what} | {ours} | {theirs} | {ratio:.4} |");
        if !(0.98..=1.02).contains(&ratio) {
            wrong.push(what);
        }
    }
    std::fs::write(results.join("monitor-rates.md"), &page).expect("the results");
    assert!(wrong.is_empty(), "{wrong:?}: {page}");
}

/// The embedded server, and where it listens.
fn serve(tool: &Tool) -> (Cast, String) {
    use std::io::BufRead;
    let mut child = tool.spawn(&["serve"]);
    let mut line = String::new();
    std::io::BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
    let address = line.trim().strip_prefix("listening on ").expect("where it listens").to_owned();
    (Cast(vec![child]), format!("http://{address}"))
}

#[test]
fn percentiles_are_ranks() {
    let values: Vec<u64> = (1..=200).rev().collect();
    assert_eq!([50.0, 99.0, 100.0].map(|percent| percentile(&values, percent)), [100, 198, 200]);
}
