//! Is a server called different from itself? Whole plans in which nothing differs, made one after the other: `cargo xtask test --long`.
//!
//! The A/A cell of each is judged by a plain interval of 95 %, so about one plan in twenty calls it different by chance alone. The limits
//! leave room for that chance, and for no more.

mod tool;

use serde_json::Value;
use std::fmt::Write;
use std::path::Path;
use tool::Tool;

/// Of how many plans a check is made: `WEBDYNO_LONG_PLANS`, if part of it shall do, else all of them.
fn plans(all: usize) -> usize {
    let asked = std::env::var("WEBDYNO_LONG_PLANS").ok().and_then(|text| text.parse().ok());
    asked.map_or(all, |asked: usize| asked.clamp(1, all))
}

/// One server, and how often it may be called different from itself.
struct Check {
    file: &'static str,
    title: &'static str,
    plan: &'static str,
    all: usize,
    may_differ: usize,
}

impl Check {
    fn run(&self, results: &Path) {
        let plans = plans(self.all);
        let mut rows = String::new();
        let (mut different, mut missing) = (0, 0);
        let mut ratios = Vec::new();
        for n in 1..=plans {
            let tool = Tool::new();
            let seed = n.to_string();
            let ran = tool.run(&["run", &tool.plan(self.plan), "--seed", &seed, "--json"]);
            let Ok(report) = serde_json::from_str::<Value>(&ran.out) else {
                // What could not be made is told, and the others count.
                let why = ran.err.lines().last().unwrap_or_default().to_owned();
                let _ = writeln!(rows, "| {n} | - | - | not made: {why} |");
                missing += 1;
                continue;
            };
            let cells = report["cells"].as_array().expect("cells");
            let again = &cells.iter().find(|cell| cell["role"] == "again").expect("an A/A cell")["comparison"];
            let verdict = again["verdict"]["text"].as_str().expect("a verdict");
            different += usize::from(matches!(verdict, "better" | "worse"));
            let number = |name: &str| again[name].as_f64().unwrap_or(f64::NAN);
            ratios.push(number("ratio"));
            let (ratio, low, high) = (number("ratio"), number("low"), number("high"));
            let _ = writeln!(rows, "| {n} | {ratio:.4} | {low:.4} to {high:.4} | {verdict} |");
        }
        let allowed = if plans == self.all { self.may_differ } else { part_allowed(plans) };
        ratios.sort_by(f64::total_cmp);
        let page = format!(
            "# {}\n\nPlans made: {} of {}. Called different from itself: {different}; at most {allowed} may be.\n\
             The ratios lie between {:.4} and {:.4}.\n\nThe plan:\n\n```toml\n{}```\n\n\
             | plan and seed | A/A ratio | 95 % interval | verdict |\n|---|---|---|---|\n{rows}",
            self.title,
            plans - missing,
            self.all,
            ratios.first().copied().unwrap_or(f64::NAN),
            ratios.last().copied().unwrap_or(f64::NAN),
            self.plan
        );
        std::fs::write(results.join(self.file), &page).expect("the results");
        assert!(different <= allowed && missing <= plans / 10, "{page}");
    }
}

/// What chance alone exceeds in less than 1 % of such checks of so many plans, each wrong by 5 %: the tail of the binomial.
fn part_allowed(plans: usize) -> usize {
    let mut probability = 0.95_f64.powf(plans as f64);
    let mut within = probability;
    let mut allowed = 0;
    while within < 0.99 && allowed < plans {
        probability *= (plans - allowed) as f64 / (allowed + 1) as f64 * (0.05 / 0.95);
        within += probability;
        allowed += 1;
    }
    allowed
}

#[test]
fn chance_is_given_its_room_and_no_more() {
    assert_eq!([1, 10, 40].map(part_allowed), [1, 3, 6]);
}

#[test]
fn long_check_a_a_embedded() {
    let Some(results) = testkit::skip::long_results() else { return };
    let plan = "about = \"Is the embedded server different from itself?\"\nblocks = 6\n\n[server]\nkind = \"embedded\"\n\n\
                [load.l]\npath = \"/static/1K\"\nconnections = 4\nduration = \"300ms\"\n\n[warmup]\nduration = \"100ms\"\n\n\
                [cooldown]\nlimit = \"100ms\"\n";
    let title = "The embedded server against itself";
    Check { file: "a-a-embedded.md", title, plan, all: 200, may_differ: 16 }.run(&results);
}

#[test]
fn long_check_a_a_apache() {
    let Some(results) = testkit::skip::long_results() else { return };
    if !Path::new("/usr/sbin/apache2").exists() {
        testkit::skip::skipped("needs apache2");
        return;
    }
    let plan = "about = \"Is Apache different from itself?\"\nblocks = 6\n\n[server]\nkind = \"apache\"\nmpm = \"event\"\n\n\
                [load.l]\npath = \"/\"\nconnections = 8\nduration = \"3s\"\n\n[warmup]\nduration = \"1s\"\n\n\
                [cooldown]\nlimit = \"2s\"\n";
    Check { file: "a-a-apache.md", title: "Apache against itself", plan, all: 40, may_differ: 5 }.run(&results);
}
