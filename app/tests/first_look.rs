//! The newcomer's plan on the real embedded server, and the commands around a stored run.

mod tool;

use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::{PoisonError, RwLock};
use tool::{Finished, Tool, remains, shipped};

static MACHINE: RwLock<()> = RwLock::new(());

/// For what a run comes to: nothing of ours runs beside it.
fn alone() -> impl Drop {
    MACHINE.write().unwrap_or_else(PoisonError::into_inner)
}

/// For how a run begins, ends and goes on: what it measures does not matter.
fn beside_others() -> impl Drop {
    MACHINE.read().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn first_look_ends_with_a_comparison_a_diagnosis_and_a_page() {
    let _alone = alone();
    let tool = Tool::new();
    let run = tool.run(&["run", &shipped("first-look.toml"), "--quick", "--seed", "1"]);
    // Three short blocks on a machine that may be busy: what they come to is not for this test to say.
    assert!([0, 3].contains(&run.code), "{}{}", run.out, run.err);
    let parts =
        ["2 workers (A/A)", "Compared with the baseline", "What limited each cell", "verdict", "Recommendation"];
    for expected in parts.into_iter().chain(["8 workers", "For this page mix (GET /sleep/4ms)"]) {
        assert!(run.out.contains(expected), "no `{expected}` in:\n{}", run.out);
    }
    let page = run.err.lines().last().and_then(|line| line.split_once(": ")).expect("the page's path").1;
    assert!(std::fs::read_to_string(page).expect("the page").contains("<svg"), "{page}");

    let listed = tool.run(&["runs"]);
    assert_eq!((listed.code, listed.out.matches("first-look").count()), (0, 1), "{}", listed.out);

    let again = tool.run(&["report", "latest"]);
    assert_eq!(again.out, run.out, "a report redrawn from the store is the same");

    let json = tool.run(&["report", "--json"]);
    assert!(json.out.trim_start().starts_with('{') && json.out.contains("\"8 workers\""), "{}", json.out);

    let japanese = tool.run(&["report", "--lang", "ja"]);
    assert!(japanese.out.chars().any(|c| ('\u{3040}'..='\u{30ff}').contains(&c)), "{}", japanese.out);

    assert_eq!(remains(&tool), Vec::<String>::new());
}

#[test]
fn a_dry_run_does_nothing() {
    let tool = Tool::new();
    let run = tool.run(&["run", &shipped("first-look.toml"), "--dry-run", "--seed", "7"]);
    assert_eq!(run.code, 0);
    assert!(run.out.contains("18 trials in 6 blocks, seed 7") && run.out.contains("block 6: "), "{}", run.out);
    assert!(!tool.path("store.sqlite").exists());
}

#[test]
fn an_interrupted_run_keeps_what_it_measured() {
    let _beside = beside_others();
    for signal in [rustix::process::Signal::INT, rustix::process::Signal::TERM] {
        let tool = Tool::new();
        let mut child = tool.spawn(&["run", &shipped("first-look.toml"), "--seed", "1"]);
        let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines().map_while(Result::ok);
        // The first finished trial is announced on a line of its own.
        assert!(lines.any(|line| line.contains("block 1")), "no trial ended");
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, signal).expect("our own child");
        for _ in lines {}
        let ended = Finished::of(&child.wait_with_output().expect("webdyno ends"));
        assert_eq!(ended.code, 130, "{}", ended.out);
        let report = tool.run(&["report"]);
        assert!(report.out.contains("2 workers"), "{}{}", report.out, report.err);
        assert_eq!(remains(&tool), Vec::<String>::new());
    }
}

/// A plan whose answer is plain on the busiest machine: one client that waits 100 ms for each answer, against eight that wait 1 ms each.
/// However long a busy machine holds them up, it holds up both.
const PLAIN: &str = r#"
baseline = "slow"
aa = false
[server]
kind = "embedded"
[variant.only]
[load.slow]
path = "/sleep/100ms"
connections = 1
duration = "1s"
[load.fast]
path = "/sleep/1ms"
connections = 8
duration = "1s"
[cooldown]
limit = "0s"
"#;

fn plan(tool: &Tool, head: &str) -> String {
    let file = tool.path("plain.toml");
    std::fs::write(&file, format!("{head}\n{PLAIN}")).expect("a plan");
    file.to_string_lossy().into_owned()
}

/// The same for whom it does not matter what is measured.
fn brief() -> String {
    PLAIN.replace("duration = \"1s\"", "duration = \"300ms\"")
}

fn brief_plan(tool: &Tool, head: &str) -> String {
    tool.plan(&format!("{head}\n{}", brief()))
}

#[test]
fn a_run_ends_when_it_is_decided() {
    let _alone = alone();
    let tool = Tool::new();
    let run = tool.run(&["run", &plan(&tool, "until_decided = true"), "--seed", "1"]);
    assert_eq!(run.code, 0, "{}{}", run.out, run.err);
    for told in ["pilot: after 4 blocks, 24 would show a difference of", "after 6 blocks everything is decided"] {
        assert!(run.err.contains(told), "{}", run.err);
    }
    assert!(run.out.contains("Everything was decided after 6 blocks"), "{}", run.out);
    let again = tool.run(&["run", "--resume", "latest"]);
    assert_eq!(again.code, 2);
    assert!(again.err.contains("has all its blocks, or is decided: nothing is left to do"), "{}", again.err);
}

#[test]
fn a_run_whose_time_is_spent_can_go_on() {
    let _alone = alone();
    let tool = Tool::new();
    let run = tool.run(&["run", &plan(&tool, ""), "--budget", "1ms", "--seed", "1"]);
    assert!(run.err.contains("the time is spent: blocks made: 1 (one takes "), "{}", run.err);
    assert!(run.err.contains(", longer than the budget, and is made whole)"), "{}", run.err);
    assert!(run.out.contains("After 1 block there was no time for more, and not everything is decided"), "{}", run.out);
    let run = tool.run(&["run", "--resume", "latest", "--budget", "10m"]);
    assert_eq!(run.code, 0, "{}{}", run.out, run.err);
    assert!(run.out.contains("Everything was decided after 6 blocks"), "{}", run.out);
    assert_eq!(tool.run(&["runs"]).out.matches("plain").count(), 1);
}

/// Two servers that four wait in at once, but for every other start of the second, where it is eight: nothing is decided for a while.
fn uneven(tool: &Tool) -> String {
    let script = format!(
        "w=4; if [ $WHICH = uneven ]; then if [ -e '{0}' ]; then rm '{0}'; else : > '{0}'; w=8; fi; fi; \
         exec {1} serve --listen 127.0.0.1:$PORT --workers $w",
        tool.path("odd").display(),
        env!("CARGO_BIN_EXE_webdyno")
    );
    tool.plan(&format!(
        "aa = false\n[server]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", \"\"\"{script}\"\"\"]\n[variant.even]\ndirectives = \"WHICH=even\"\n\
         [variant.uneven]\ndirectives = \"WHICH=uneven\"\n[load.a]\npath = \"/sleep/20ms\"\nconnections = 8\nkeep_alive = false\n\
         duration = \"300ms\"\n[cooldown]\nlimit = \"0s\"\n"
    ))
}

/// By what docs/statistics.md says of it, from the blocks themselves: how many more would show the difference, each of four looks at a quarter of 5 %.
fn still_needed(baseline: &[f64], candidate: &[f64]) -> f64 {
    let blocks = baseline.len() as f64;
    let differences: Vec<f64> = baseline.iter().zip(candidate).map(|(before, after)| (after / before).ln()).collect();
    let mean = differences.iter().sum::<f64>() / blocks;
    let variance = differences.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / (blocks - 1.0);
    // z at 1 - 0.0125 / 2, and at 0.8.
    let deviations = 2.4977 + 0.8416;
    (variance / mean.powi(2) * f64::powi(deviations, 2) + 2.0).ceil() - blocks
}

#[test]
fn a_run_whose_time_is_spent_says_how_many_blocks_it_still_needs() {
    let _beside = beside_others();
    let tool = Tool::new();
    let plan = uneven(&tool);
    // One block says nothing; how many fit into a time is the machine's to say.
    let made = [4, 8, 16, 32].into_iter().find_map(|seconds| {
        let run = tool.run(&["run", &plan, "--budget", &format!("{seconds}s"), "--seed", "1", "--json"]);
        let report: Value = serde_json::from_str(&run.out).unwrap_or_else(|error| panic!("{error}: {run:?}"));
        let rates = |cell: usize| -> Vec<f64> {
            let rates = report["cells"][cell]["good_per_s_of_trials"].as_array().into_iter().flatten();
            rates.filter_map(Value::as_f64).collect()
        };
        let (even, uneven) = (rates(0), rates(1));
        (even.len() > 1).then_some((even, uneven, report, run))
    });
    let (even, uneven, report, run) = made.expect("two blocks within half a minute");
    assert_eq!(run.code, 3, "{run:?}");
    assert!(run.err.contains(&format!("the time is spent: blocks made: {}", even.len())), "{}", run.err);
    let said = report["cells"][1]["comparison"]["sentence"]["text"].as_str().unwrap_or_default();
    let told = said
        .split("blocks still needed: about ")
        .nth(1)
        .and_then(|rest| rest.split(|c: char| !c.is_ascii_digit()).next());
    let told: f64 = told.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("no number: {said}"));
    let expected = still_needed(&even, &uneven);
    assert!(told >= 1.0 && (told - expected).abs() <= 1.0, "{told} for {expected} of {even:?} {uneven:?}: {said}");
}

#[test]
fn a_run_goes_on_only_with_what_it_sent_before() {
    let _beside = beside_others();
    let tool = Tool::new();
    let secret = brief().replace("path = \"/sleep/1ms\"", "path = \"/sleep/1ms\"\nheaders = { Cookie = \"s3cret\" }");
    let file = tool.path("secret.toml");
    std::fs::write(&file, secret).expect("a plan");
    let run = tool.run(&["run", &file.to_string_lossy(), "--budget", "1ms", "--seed", "1"]);
    assert!(run.err.contains("the time is spent"), "{}", run.err);
    let run = tool.run(&["run", "--resume", "latest"]);
    assert_eq!(run.code, 2);
    assert!(run.err.contains("sends what no store keeps (a cookie,"), "{}", run.err);
    assert!(!run.err.contains("block"), "nothing was measured: {}", run.err);
}

/// A server that starts once, for the rehearsal, and then not before something is put right.
#[test]
fn a_run_that_failed_can_go_on_when_the_cause_is_gone() {
    let _beside = beside_others();
    let tool = Tool::new();
    let (started, right) = (tool.path("started"), tool.path("right"));
    let script = format!(
        "[ -e '{0}' ] && [ ! -e '{1}' ] && exit 1; touch '{0}'; exec {2} serve --listen 127.0.0.1:$PORT",
        started.display(),
        right.display(),
        env!("CARGO_BIN_EXE_webdyno")
    );
    let server = format!("kind = \"command\"\ncommand = [\"sh\", \"-c\", \"\"\"{script}\"\"\"]");
    let file = tool.path("failing.toml");
    let text = format!("blocks = 4\n{}", brief().replace("kind = \"embedded\"", &server));
    std::fs::write(&file, text).expect("a plan");
    let run = tool.run(&["run", &file.to_string_lossy(), "--seed", "1"]);
    assert_eq!(run.code, 4, "{}{}", run.out, run.err);
    assert!(run.err.contains("failed 3 times, last: "), "{}", run.err);
    std::fs::write(right, "").expect("put right");
    let run = tool.run(&["run", "--resume", "latest", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&run.out).expect("JSON");
    assert_eq!(report["run"]["complete"], true, "{}", run.err);
}

#[test]
fn an_interrupted_run_can_go_on() {
    let _beside = beside_others();
    let tool = Tool::new();
    let mut child = tool.spawn(&["run", &brief_plan(&tool, "blocks = 6"), "--seed", "1"]);
    let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("block 1")), "no trial ended");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("our own child");
    for _ in lines {}
    assert_eq!(Finished::of(&child.wait_with_output().expect("webdyno ends")).code, 130);
    let run = tool.run(&["run", "--resume", "latest", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&run.out).expect("JSON");
    assert_eq!(report["run"]["complete"], true, "{}", run.err);
    // Six whole blocks, beside the one that was interrupted.
    let compared = report["cells"]
        .as_array()
        .and_then(|cells| cells.iter().find_map(|cell| cell["comparison"]["blocks"].as_u64()));
    assert!(compared.is_some_and(|blocks| blocks >= 3), "{}", run.out);
    assert_eq!(remains(&tool), Vec::<String>::new());
}

/// Whether the last run of a tool made all its blocks: what it found is another matter.
fn is_complete(tool: &Tool) -> bool {
    let report = tool.run(&["report", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&report.out).expect("JSON");
    report["run"]["complete"] == true
}

#[test]
fn a_terminal_that_is_gone_does_not_end_a_run() {
    let _beside = beside_others();
    let tool = Tool::new();
    let mut child = tool.spawn(&["run", &brief_plan(&tool, "blocks = 2"), "--seed", "1"]);
    // Nobody reads what it says from now on.
    drop(child.stderr.take());
    child.wait().expect("webdyno ends");
    assert!(is_complete(&tool));
}

#[test]
fn what_was_started_to_outlive_its_terminal_does() {
    let _beside = beside_others();
    let tool = Tool::new();
    // As nohup does: the signal is ignored before the program begins.
    let script = r#"trap '' HUP; exec "$@""#;
    let webdyno = tool.command(&["run", &brief_plan(&tool, "blocks = 2"), "--seed", "1"]);
    let mut command = std::process::Command::new("sh");
    command.args(["-c", script, "sh"]).arg(webdyno.get_program()).args(webdyno.get_args());
    command.envs(webdyno.get_envs().filter_map(|(key, value)| Some((key, value?)))).stdin(Stdio::null());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("sh starts");
    let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.starts_with("run ")), "the run did not begin");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::HUP).expect("our own child");
    for _ in lines {}
    child.wait().expect("webdyno ends");
    assert!(is_complete(&tool));
}
