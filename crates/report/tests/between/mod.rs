//! Two runs that nobody interleaved.

use super::asked::run;
use super::check;
use expect_test::{expect, expect_file};
use model::plan::{End, Ending};
use model::run::Run;
use report::Language;
use report::between::{BetweenView, json, text};
use report::text::{Colour, Look};

const PLAN: &str = "[variant.a]\n[variant.b]\ndirectives = \"Workers 8\"\n";

/// A run with its identifier, its hour, and the rate of its cells; the same noise each time.
fn measured(id: &str, hour: i64, rate: f64) -> Run {
    let mut run = run(PLAN, |_| rate);
    run.head.id = id.to_owned();
    run.head.anchor.wall_ns += hour * 3_600_000_000_000;
    run
}

fn words(first: &[Run], second: &[Run]) -> String {
    let view = BetweenView::of(first, second, Language::English).unwrap();
    view.cells.iter().map(|cell| format!("{} {}\n", cell.first, cell.verdict.id)).collect()
}

#[test]
fn drift_is_allowed_for() {
    let first = [measured("20261120-1000", 0, 1000.0)];
    let same = [measured("20261120-1200", 2, 1050.0)];
    let more = [measured("20261120-1200", 2, 1400.0)];
    // Within a run 5 % would be shown a hundred times over.
    assert_eq!(words(&first, &same), "a verdict-inconclusive\nb verdict-inconclusive\n");
    assert_eq!(words(&first, &more), "a verdict-better\nb verdict-better\n");
    let view = BetweenView::of(&first, &more, Language::English).unwrap();
    let drawn = text::render(&view, Look { width: 80, colour: Colour::None });
    check(&drawn, &expect_file!["../golden/between-en-80.txt"]);
    let view = BetweenView::of(&first, &more, Language::Japanese).unwrap();
    let drawn = text::render(&view, Look { width: 80, colour: Colour::None });
    check(&drawn, &expect_file!["../golden/between-ja-80.txt"]);
    let document: serde_json::Value = serde_json::from_str(&json::render(&view)).unwrap();
    assert_eq!(document["schema"], "webdyno-compare");
    assert_eq!(document["cells"][0]["metrics"][0]["metric"], "goodput");
}

#[test]
fn several_runs_make_a_side() {
    let before = [measured("1", 0, 1000.0), measured("2", 1, 1010.0)];
    let after = [measured("3", 2, 2000.0), measured("4", 3, 1990.0)];
    assert_eq!(words(&before, &after), "a verdict-better\nb verdict-better\n");
    let view = BetweenView::of(&before, &after, Language::English).unwrap();
    assert_eq!((view.drift_trials, view.cells[0].metrics[0].first_trials), (36.0, 12));
}

#[test]
fn servers_that_were_ended_in_another_way_had_other_settings() {
    let (first, mut second) = (measured("1", 0, 1000.0), measured("2", 1, 1000.0));
    second.head.plan.variants[1].end = Some(End { how: Ending::Kill, after_ns: None });
    for (language, expected) in [
        (Language::English, "“b” had other settings: – / ending = kill."),
        (Language::Japanese, "「b」の設定が違います: – / ending = kill。"),
    ] {
        let view = BetweenView::of(std::slice::from_ref(&first), std::slice::from_ref(&second), language).unwrap();
        let told: Vec<&str> = view.warnings[1..].iter().map(|warning| warning.text.as_str()).collect();
        assert_eq!(told, [expected]);
    }
}

#[test]
fn what_else_is_not_the_same_is_said() {
    let (first, mut second) = (measured("1", 0, 1000.0), measured("2", 1, 1000.0));
    second.head.host.kernel = "7.0".into();
    second.head.version = "9.9.9".into();
    second.head.plan.variants[1].directives[0].text = "Workers 16".into();
    second.head.plan.cells.retain(|cell| cell.name != "a");
    second.head.plan.cells[0].role = model::plan::Role::Baseline;
    let ids = |second: &Run| {
        let view =
            BetweenView::of(std::slice::from_ref(&first), std::slice::from_ref(second), Language::English).unwrap();
        let ids =
            |sentences: &[report::Sentence]| sentences.iter().map(|it| it.id.clone()).collect::<Vec<_>>().join(" ");
        format!("{} | {}", ids(&view.warnings), ids(&view.forbidding))
    };
    expect!["between-not-interleaved between-kernel between-version between-settings between-only | "]
        .assert_eq(&ids(&second));
    second.head.host.cpus = 64;
    second.head.plan.loads[0].connections = 1;
    expect!["between-not-interleaved between-machine between-load between-kernel between-version between-settings between-only | between-machine between-load"].assert_eq(&ids(&second));
}
