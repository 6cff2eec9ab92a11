//! What takes minutes: `cargo xtask test --long`. Each check writes what it saw, dated, for the documents.

mod tool;

use serde_json::Value;
use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, Instant};
use testkit::stalling::{Stalling, Stalls};
use testkit::stamped::Stamped;
use tool::{Tool, is_root, remains_of, shipped};

/// How long after a kill nothing may be left.
const GRACE: Duration = Duration::from_secs(5);

fn report(tool: &Tool, args: &[&str]) -> Value {
    let run = tool.run(args);
    serde_json::from_str(&run.out).unwrap_or_else(|error| panic!("{error}: {}{}", run.out, run.err))
}

fn cell<'a>(report: &'a Value, name: &str) -> &'a Value {
    let cells = report["cells"].as_array().expect("cells");
    cells.iter().find(|cell| cell["name"] == name).unwrap_or_else(|| panic!("no cell {name}"))
}

fn primary(cell: &Value) -> &str {
    cell["diagnosis"]["primary"]["title"]["id"].as_str().unwrap_or("none")
}

fn contributes(cell: &Value, id: &str) -> bool {
    let findings = cell["diagnosis"]["contributing"].as_array().expect("findings");
    findings.iter().any(|finding| finding["title"]["id"] == id)
}

fn can_confine() -> bool {
    let can = is_root() && host::hierarchies().is_ok() && Path::new("/usr/sbin/apache2").exists();
    if !can {
        testkit::skip::not_here("needs root, a memory control group and apache2");
    }
    can
}

#[test]
fn long_check_first_look_a_a() {
    let Some(results) = testkit::skip::long_results() else { return };
    let mut page = "# first-look, ten runs: is the baseline called different from itself?\n\n\
                    | run | A/A ratio | interval | verdict | 8 workers |\n|---|---|---|---|---|\n"
        .to_owned();
    let mut different = 0;
    for n in 1..=10 {
        let tool = Tool::new();
        let report = report(&tool, &["run", &shipped("first-look.toml"), "--json"]);
        let again = &cell(&report, "2 workers (A/A)")["comparison"];
        let verdict = again["verdict"]["id"].as_str().expect("a verdict").to_owned();
        different += u32::from(matches!(verdict.as_str(), "verdict-better" | "verdict-worse"));
        let number = |value: &Value| format!("{:.3}", value.as_f64().unwrap_or(f64::NAN));
        let eight = &cell(&report, "8 workers")["comparison"];
        let _ = writeln!(
            page,
            "| {n} | {} | {} to {} | {verdict} | {} |",
            number(&again["ratio"]),
            number(&again["low"]),
            number(&again["high"]),
            number(&eight["ratio"])
        );
        assert_eq!(eight["verdict"]["id"], "verdict-better");
    }
    let _ = writeln!(page, "\nCalled different: {different} of 10.");
    std::fs::write(results.join("first-look-aa.md"), &page).expect("the results");
    assert!(different <= 2, "{page}");
}

#[test]
fn long_check_memory_cliff_three_times() {
    let Some(results) = testkit::skip::long_results() else { return };
    if !can_confine() {
        return;
    }
    let mut page = "# memory-cliff, three runs\n".to_owned();
    let mut wrong = Vec::new();
    for n in 1..=3 {
        let tool = Tool::new();
        let report = report(&tool, &["run", &shipped("memory-cliff.toml"), "--make-swap", "2G", "--json"]);
        let shown = tool.run(&["report", "--markdown"]);
        let _ = writeln!(page, "\n## Run {n}\n\n{}", shown.out);
        let four = cell(&report, "10, MaxRequestWorkers 4");
        if four["comparison"]["ratio"].as_f64().is_none_or(|ratio| ratio < 3.0) {
            wrong.push(format!("run {n}: ratio {}", four["comparison"]["ratio"]));
        }
        let failed = report["cells"].as_array().expect("cells").iter().any(|c| c["failures"] != Value::Array(vec![]));
        if failed {
            wrong.push(format!("run {n}: requests failed"));
        }
        let rows = [
            ("1 at a time", "cause-offered-concurrency", "cause-one-core-busy"),
            ("10 at once", "cause-memory-thrash", "cause-worker-limit-too-high"),
            ("10, MaxRequestWorkers 4", "cause-worker-limit-right", "cause-cpu-bound"),
            ("10, with the lock", "cause-lock-serialised", ""),
        ];
        for (name, first, beside) in rows {
            let cell = cell(&report, name);
            if primary(cell) != first || !(beside.is_empty() || contributes(cell, beside)) {
                wrong.push(format!("run {n}: {name}: {} {}", primary(cell), cell["diagnosis"]["contributing"]));
            }
        }
    }
    std::fs::write(results.join("memory-cliff.md"), &page).expect("the results");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

fn random_moment(below_ms: u64) -> Duration {
    let mut bytes = [0; 8];
    rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty()).expect("randomness");
    Duration::from_millis(u64::from_ne_bytes(bytes) % below_ms)
}

#[test]
fn long_check_kill_storm() {
    let Some(results) = testkit::skip::long_results() else { return };
    if !can_confine() {
        return;
    }
    let mut page = "# memory-cliff killed with -9 at twenty moments\n\n\
                    | after | gone within | left 5 s later |\n|---|---|---|\n"
        .to_owned();
    let mut left = 0;
    for n in 0..20 {
        // Half of the kills fall into the first seconds, where most is set up.
        let after = random_moment(if n % 2 == 0 { 3_000 } else { 60_000 });
        let tool = Tool::new();
        let mut child = tool.spawn(&["run", &shipped("memory-cliff.toml"), "--make-swap", "2G", "--plain"]);
        // The moment itself is what is tested, so here time is waited for and not an event.
        std::thread::sleep(after);
        let ended = child.try_wait().expect("our own child");
        assert_eq!(ended, None, "after {after:?} the run had ended by itself");
        child.kill().expect("our own child");
        child.wait().expect("our own child");
        let killed = Instant::now();
        // A run that was killed early is in no store; all ids begin with the year, and no other run is under way here.
        let any = ["20".to_owned()];
        let mut found = remains_of(&tool, &any);
        while !found.is_empty() && killed.elapsed() < GRACE {
            std::thread::sleep(Duration::from_millis(50));
            found = remains_of(&tool, &any);
        }
        left += usize::from(!found.is_empty());
        let gone = if found.is_empty() { format!("{:.2} s", killed.elapsed().as_secs_f64()) } else { "not".to_owned() };
        let _ = writeln!(page, "| {:.2} s | {gone} | {} |", after.as_secs_f64(), found.join("; "));
        let restored = tool.run(&["restore"]);
        let _ = write!(page, "{}", if restored.out.contains("Nothing") { "" } else { &restored.out });
    }
    std::fs::write(results.join("kill-storm.md"), &page).expect("the results");
    assert_eq!(left, 0, "{page}");
}

/// What a load must report of a server that stalls by a timetable, within half a percent or 0.3 ms.
#[test]
fn long_check_stall_truth() {
    let Some(results) = testkit::skip::long_results() else { return };
    let stalls =
        Stalls { service: Duration::from_millis(20), period: Duration::from_secs(5), stall: Duration::from_secs(1) };
    let server = Stalling::start(stalls, || on_cpu(0));
    let url = format!("http://{}/", server.address());
    let tool = Tool::new();
    let args = ["load", "-c", "4000", "-r", "2000/s", "-d", "60s", "--cpus", "1", "--preflight", "0", "--json", &url];
    let found = report(&tool, &args);
    let mut page = "# Latencies of a server that stalls for 1 s in every 5 s, at 2000 requests a second for 60 s\n\n\
                    The truth follows from the server's timetable: 20 ms of service, and whoever would be answered in a\n\
                    stall is answered at its end.\n\n\
                    | | truth (ms) | reported (ms) | difference | \n|---|---|---|---|\n"
        .to_owned();
    let mut wrong = Vec::new();
    for (name, percent) in [("p50", 50.0), ("p90", 90.0), ("p99", 99.0), ("p99.9", 99.9), ("max", 100.0)] {
        let truth = stalls.truth(percent).as_secs_f64() * 1e3;
        let reported = found["latency_us"][name].as_f64().unwrap_or(f64::NAN) / 1e3;
        let _ = writeln!(page, "| {name} | {truth:.3} | {reported:.3} | {:+.3} |", reported - truth);
        // The tenth of the requests that wait half a stall come out when a thousand are answered at once.
        if name != "p90" && (reported - truth).abs() > (0.005 * truth).max(0.3) {
            wrong.push(name);
        }
    }
    let _ = writeln!(page, "\ngood: {}, unsent: {}", found["counts"]["good"], found["open"]["unsent"]);
    std::fs::write(results.join("stall-truth.md"), &page).expect("the results");
    assert!(wrong.is_empty(), "{wrong:?}: {page}");
}

/// How late the generator begins requests at 20,000 a second.
#[test]
fn long_check_schedule() {
    let Some(results) = testkit::skip::long_results() else { return };
    let stalls =
        Stalls { service: Duration::ZERO, period: Duration::from_secs(86_400), stall: Duration::from_millis(1) };
    let server = Stalling::start(stalls, || on_cpu(0));
    let url = format!("http://{}/", server.address());
    let mut page = "# How late requests begin at 20,000 a second\n\n\
                    | arrivals | p50 (us) | p99 (us) | largest (us) | good | unsent |\n|---|---|---|---|---|---|\n"
        .to_owned();
    let mut late = Vec::new();
    for arrivals in [None, Some("--poisson"), Some("--busy-poll")] {
        let tool = Tool::new();
        let mut args =
            vec!["load", "-c", "100", "-r", "20000/s", "-d", "10s", "--cpus", "1", "-t", "1", "--json", &url];
        args.extend(arrivals);
        let found = report(&tool, &args);
        let lateness = &found["generator"]["lateness_us"];
        let name = arrivals.unwrap_or("even").trim_start_matches("--");
        let _ = writeln!(
            page,
            "| {name} | {} | {} | {} | {} | {} |",
            lateness["p50"], lateness["p99"], lateness["max"], found["counts"]["good"], found["open"]["unsent"]
        );
        if lateness["p99"].as_u64().is_none_or(|us| us >= 50) {
            late.push(name);
        }
    }
    std::fs::write(results.join("schedule.md"), &page).expect("the results");
    assert!(late.is_empty(), "{late:?}: {page}");
}

/// Short answers against what the kernel's own time stamps say, within 5 us and a hundredth.
#[test]
fn long_check_short_truth() {
    let Some(results) = testkit::skip::long_results() else { return };
    let mut page = "# Answers of 50 to 500 us against the kernel's time stamps\n\n\
                    The truth is from the stamp on the request that came to the stamp on the answer that went (SO_TIMESTAMPING, at the\n\
                    server). One connection. A client that sleeps is woken late, and that is part of what it measures; one that polls\n\
                    (`--busy-poll`) is what is judged.\n\n\
                    | client | | truth (us) | reported (us) | difference | allowed |\n|---|---|---|---|---|---|\n"
        .to_owned();
    let mut wrong = Vec::new();
    for (client, option, judged) in [("sleeps", None, false), ("polls", Some("--busy-poll"), true)] {
        let mut turn = 0_u64;
        // Every length in turn, in an order without a trend: 191 and 451 have no common factor.
        let service = move || {
            turn = (turn + 191) % 451;
            Duration::from_micros(50 + turn)
        };
        let server = Stamped::start(service, || on_cpu(0));
        let url = format!("http://{}/", server.address());
        let mut args =
            vec!["load", "-c", "1", "-d", "10s", "--cpus", "1", "--preflight", "0", "--no-probe", "--json", &url];
        args.extend(option);
        let found = report(&Tool::new(), &args);
        let mut truth = server.finish();
        truth.sort_unstable();
        for (name, percent) in [("p50", 50.0), ("p90", 90.0), ("p99", 99.0)] {
            let rank = (percent / 100.0 * truth.len() as f64).ceil() as usize;
            let true_us = truth[rank.clamp(1, truth.len()) - 1].as_secs_f64() * 1e6;
            let reported = found["latency_us"][name].as_f64().unwrap_or(f64::NAN);
            let (off, allowed) = (reported - true_us, 5.0 + 0.01 * true_us);
            let _ = writeln!(page, "| {client} | {name} | {true_us:.1} | {reported:.1} | {off:+.1} | {allowed:.1} |");
            if judged && off.abs() > allowed {
                wrong.push(name);
            }
        }
        let _ = writeln!(page, "| {client} | answers | {} | {} | | |", truth.len(), found["counts"]["good"]);
    }
    std::fs::write(results.join("short-truth.md"), &page).expect("the results");
    assert!(wrong.is_empty(), "{wrong:?}: {page}");
}

/// Pins the calling thread.
fn on_cpu(cpu: usize) {
    let mut set = rustix::thread::CpuSet::new();
    set.set(cpu);
    // On a machine with one CPU the numbers will tell.
    let _ = rustix::thread::sched_setaffinity(None, &set);
}

/// A plan of ours with a latency budget, to lie in another folder.
fn with_budget(plan: &str) -> String {
    let text = std::fs::read_to_string(plan).expect("the plan");
    let folder = Path::new(plan).parent().expect("a folder").display();
    format!("latency_budget = true\n{}", text.replace("\"../", &format!("\"{folder}/../")))
}

/// The parts of a split and what none of them has, in milliseconds, on one line.
fn parts(split: &Value) -> String {
    let part = |part: &Value| {
        let us = part["us"].as_f64().unwrap_or(0.0);
        format!("{} {:.2}", part["part"].as_str().unwrap_or_default(), us / 1e3)
    };
    let parts: Vec<String> = split["parts"].as_array().into_iter().flatten().map(part).collect();
    format!("{}, remainder {:.2}", parts.join(", "), split["remainder_us"].as_f64().unwrap_or(0.0) / 1e3)
}

/// What of the mean latency no part has, or was counted twice, on the plans that the goal names; and what the slowest hundredth was spent on.
#[test]
fn long_check_latency_budget() {
    let Some(results) = testkit::skip::long_results() else { return };
    if !can_confine() {
        return;
    }
    let mut page = "# Latency budgets: what the mean went to, and the slowest hundredth\n\n".to_owned();
    let mut worst: f64 = 0.0;
    for name in ["memory-cliff", "php/prefork", "latency-budget/php", "latency-budget/backend", "latency-budget/fpm"] {
        let tool = Tool::new();
        let shipped = shipped(&format!("{name}.toml"));
        let plan = if name.starts_with("latency-budget/") { shipped } else { tool.plan(&with_budget(&shipped)) };
        let report = report(&tool, &["run", &plan, "--make-swap", "2G", "--json"]);
        let mut budgets = 0;
        for cell in report["cells"].as_array().expect("cells") {
            let split = &cell["latency_budget"]["mean"];
            if split.is_null() {
                // Where nothing was answered in time there is no mean.
                let _ = writeln!(page, "## {name}: {}\n\nNo good answer, no budget.\n", cell["name"]);
                continue;
            }
            budgets += 1;
            let number = |name: &str| split[name].as_f64().unwrap_or_else(|| panic!("no {name}: {cell}"));
            let unknown = (number("remainder_us") + number("left_out_us")) / number("mean_us");
            worst = worst.max(unknown);
            let _ = writeln!(page, "## {name}: {}\n", cell["name"]);
            let _ =
                writeln!(page, "{} Unknown: {:.1} %.\n", cell["latency_budget"]["sentence"]["text"], unknown * 100.0);
            let _ = writeln!(page, "- mean (ms): {}", parts(split));
            let slowest = &cell["latency_budget"]["slowest"];
            if !slowest.is_null() {
                let ms = slowest["mean_us"].as_f64().unwrap_or(0.0) / 1e3;
                let _ = writeln!(page, "- the slowest hundredth, {ms:.2} in the mean (ms): {}", parts(slowest));
            }
            page.push('\n');
        }
        assert!(budgets > 0, "{name}: no cell has a budget");
        std::fs::write(results.join("latency-budget.md"), &page).expect("the results");
    }
    assert!(worst <= 0.05, "{page}");
}
