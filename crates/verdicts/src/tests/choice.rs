//! What follows from the numbers of a few cells.

use super::*;

fn all(run: &Run) -> Vec<Choice> {
    let verdicts: Vec<(Metric, Verdicts)> =
        Metric::ALL.into_iter().map(|metric| (metric, Verdicts::of(run, metric))).collect();
    let verdicts: Vec<(Metric, &Verdicts)> = verdicts.iter().map(|(metric, verdicts)| (*metric, verdicts)).collect();
    choices(run, &verdicts)
}

fn check(run: &Run, expected: &Expect) {
    let told = |choice: Choice| {
        let names = |settings: Vec<&Setting>| -> String {
            settings.iter().map(|setting| format!(" {}", setting.cells.join("+"))).collect()
        };
        let advice = match choice.advice {
            Advice::Take(place, reason) => format!("take {} by {reason:?}", choice.others[place].cells.join("+")),
            other => format!("{other:?}"),
        };
        let (alike, open) = (names(choice.alike()), names(choice.open().collect()));
        format!(
            "{} or{}: {advice}; alike{alike}; open{open} ({:?} blocks)\n",
            choice.stays.cells.join("+"),
            names(choice.others.iter().collect()),
            choice.more_blocks()
        )
    };
    expected.assert_eq(&all(run).into_iter().map(told).collect::<String>());
}

const WILD: [u64; 6] = [1030, 980, 1020, 1003, 969, 1019];
const LESS: [u64; 6] = [900, 909, 891, 905, 895, 899];

#[test]
fn what_answers_more_is_taken() {
    check(
        &run("aa = false", &[("a", &BASE), ("b", &SAME), ("c", &MORE)]),
        &expect![[r#"
        a or b c: take c by Metric(Goodput); alike; open (None blocks)
    "#]],
    );
    // What the kernel has of files is nothing that anybody sets.
    let mut of_cold_files = run("aa = false", &[("a", &BASE), ("b", &SAME), ("c", &MORE)]);
    let cold = of_cold_files.head.plan.variants.iter_mut().find(|variant| variant.name == "c").unwrap();
    cold.page_cache = Some(model::plan::PageCache::Cold);
    check(
        &of_cold_files,
        &expect![[r#"
        a or b: Stay; alike; open (None blocks)
    "#]],
    );
    // Two that are better, as far as one can see, alike: the first of them, and the other is named.
    let nearly = MORE.map(|good| good + 1);
    check(
        &run("aa = false", &[("a", &BASE), ("b", &nearly), ("c", &MORE)]),
        &expect![[r#"
        a or b c: take b by Metric(Goodput); alike c; open (None blocks)
    "#]],
    );
    check(
        &run("aa = false", &[("a", &BASE), ("b", &SAME), ("c", &LESS)]),
        &expect![[r#"
        a or b c: Stay; alike; open (None blocks)
    "#]],
    );
    check(
        &run("aa = false", &[("a", &BASE), ("b", &WILD), ("c", &LESS)]),
        &expect![[r#"
        a or b c: Open; alike; open b (Some(25) blocks)
    "#]],
    );
    check(
        &run("aa = false", &[("a", &BASE), ("b", &WILD), ("c", &MORE)]),
        &expect![[r#"
        a or b c: take c by Metric(Goodput); alike; open b (Some(25) blocks)
    "#]],
    );
    // Nothing measured, or once.
    check(
        &run("aa = false", &[]),
        &expect![[r#"
        a or b c: Open; alike; open b c (None blocks)
    "#]],
    );
    check(
        &run("aa = false", &[("a", &[1000]), ("b", &[1100])]),
        &expect![[r#"
            a or b c: Open; alike; open b c (None blocks)
        "#]],
    );
}

#[test]
fn where_nobody_answers_whoever_answers_is_taken() {
    check(
        &run("aa = false", &[("a", &[0; 6]), ("b", &SAME), ("c", &MORE)]),
        &expect![[r#"
        a or b c: take c by Answers; alike; open (None blocks)
    "#]],
    );
    check(
        &run("aa = false", &[("a", &[0]), ("b", &[1000])]),
        &expect![[r#"
            a or b c: Open; alike; open b c (None blocks)
        "#]],
    );
}

/// Of settings that answer as much, the one whose visitors wait less; but not for what costs more where it is looked first.
#[test]
fn of_equals_the_quicker_is_taken() {
    let mut run = run("aa = false", &[("a", &BASE), ("b", &SAME), ("c", &SAME)]);
    for trial in &mut run.trials {
        let load = trial.load.as_mut().unwrap();
        let (each, slowest) = match trial.cell.as_str() {
            "b" => (1000, 5000),
            "c" => (500, 9000),
            _ => (1000, 8000),
        };
        load.total = Latency::new();
        for place in 0..load.counts.good {
            let noise = u64::from(trial.block) * 3;
            load.total.record(noise + if place % 50 == 0 { slowest } else { each });
        }
    }
    check(
        &run,
        &expect![[r#"
        a or b c: take b by Metric(P99); alike; open (None blocks)
    "#]],
    );
}

#[test]
fn what_is_expected_goes_before_what_is_quick() {
    let expecting = |failing: &str, blocks: std::ops::Range<u32>| {
        let mut run = run("aa = false", &[("a", &BASE), ("b", &LESS), ("c", &MORE)]);
        run.head.plan.loads[0].expect = vec!["failed = 0".to_owned().try_into().unwrap()];
        for trial in run.trials.iter_mut().filter(|it| failing.contains(&it.cell) && blocks.contains(&it.block)) {
            trial.load.as_mut().unwrap().counts.failed = [(model::load::Failure::Status, 1)].into();
        }
        run
    };
    check(
        &expecting("c", 3..4),
        &expect![[r#"
        a or b c: Stay; alike; open (None blocks)
    "#]],
    );
    check(
        &expecting("ac", 0..4),
        &expect![[r#"
        a or b c: take b by Expected; alike; open (None blocks)
    "#]],
    );
    // Now and then is not most of the time.
    check(
        &expecting("ac", 0..3),
        &expect![[r#"
        a or b c: Stay; alike; open (None blocks)
    "#]],
    );
    check(
        &expecting("abc", 0..6),
        &expect![[r#"
        a or b c: take c by Metric(Goodput); alike; open (None blocks)
    "#]],
    );
    // It decides: nothing is left open of the one that is taken.
    let mut wild = run("aa = false", &[("a", &BASE), ("b", &WILD), ("c", &LESS)]);
    wild.head.plan.loads[0].expect = vec!["failed = 0".to_owned().try_into().unwrap()];
    for trial in wild.trials.iter_mut().filter(|trial| trial.cell == "a") {
        trial.load.as_mut().unwrap().counts.failed = [(model::load::Failure::Status, 1)].into();
    }
    check(
        &wild,
        &expect![[r#"
        a or b c: take b by Expected; alike; open (None blocks)
    "#]],
    );
    // Nor is a single trial.
    let mut once = expecting("ac", 0..1);
    once.trials.retain(|trial| trial.block == 0);
    check(
        &once,
        &expect![[r#"
        a or b c: Open; alike; open b (None blocks)
    "#]],
    );
}

/// The baseline was measured twice as often as the others.
#[test]
fn the_second_copy_of_the_baseline_is_heard() {
    let mut run = run("", &[("a", &BASE), ("a (A/A)", &SAME), ("b", &LESS)]);
    run.head.plan.loads[0].expect = vec!["failed = 0".to_owned().try_into().unwrap()];
    for trial in run.trials.iter_mut().filter(|trial| trial.cell == "a") {
        trial.load.as_mut().unwrap().counts.failed = [(model::load::Failure::Status, 1)].into();
    }
    check(
        &run,
        &expect![[r#"
            a or b c: Open; alike; open c (None blocks)
        "#]],
    );
}

/// Variants a and b, of which b answers twice as much, under two loads.
fn of_two_loads(cells: &str) -> Run {
    let text = format!(
        "aa = false\nbaseline = \"few, a\"\n[server]\nkind = \"embedded\"\n[variant.a]\n[variant.b]\n\
         [load.few]\npath = \"/\"\nconnections = 1\nduration = \"1s\"\n\
         [load.many]\npath = \"/\"\nconnections = 9\nduration = \"1s\"\n{cells}"
    );
    let mut run = run("aa = false", &[]);
    run.head.plan = parse(&text, Path::new("t.toml"), &Options::default()).unwrap().0;
    for cell in run.head.plan.cells.clone() {
        let good = |block: u32| BASE[block as usize] * if cell.variant == "b" { 2 } else { 1 };
        run.trials.extend((0..6).map(|block| trial(&cell.name, block, good(block))));
    }
    run
}

fn cell(load: &str, variant: &str) -> String {
    format!("[[cell]]\nname = \"{load}, {variant}\"\nvariant = \"{variant}\"\nload = \"{load}\"\n")
}

/// The number of clients is nobody's to choose.
#[test]
fn another_load_is_no_setting() {
    let both = cell("few", "a") + &cell("many", "a");
    check(&of_two_loads(&both), &expect![[r#""#]]);
    check(
        &of_two_loads(&(both.clone() + &cell("few", "b"))),
        &expect![[r#"
        few, a or few, b: take few, b by Metric(Goodput); alike; open (None blocks)
    "#]],
    );
    let asked = "[[contrast]]\nname = \"b\"\nof = \"many, b\"\nagainst = \"many, a\"\n\
                 [[contrast]]\nname = \"many\"\nof = \"many, a\"\nagainst = \"few, a\"\n";
    check(
        &of_two_loads(&(both + &cell("many", "b") + asked)),
        &expect![[r#"
        many, a or many, b: take many, b by Metric(Goodput); alike; open (None blocks)
    "#]],
    );
}

const ALL_FOUR: [(&str, &str); 4] = [("few", "a"), ("many", "a"), ("few", "b"), ("many", "b")];

/// A contrast of a variant under both loads: each load has its own expectations, and is not judged by those of the other.
#[test]
fn each_load_is_judged_by_what_is_expected_of_it() {
    let asked = "[[contrast]]\nname = \"b\"\nof = [\"few, b\", \"many, b\"]\nagainst = [\"few, a\", \"many, a\"]\n";
    let mut run = of_two_loads(&(ALL_FOUR.map(|(load, variant)| cell(load, variant)).concat() + asked));
    run.head.plan.loads[0].expect = vec!["failed = 0".to_owned().try_into().unwrap()];
    run.head.plan.loads[1].expect = vec!["failed < 5".to_owned().try_into().unwrap()];
    for trial in run.trials.iter_mut().filter(|trial| trial.cell != "few, a") {
        let failed = if trial.cell == "few, b" { 0 } else { 4 };
        trial.load.as_mut().unwrap().counts.failed = [(model::load::Failure::Status, failed)].into();
    }
    check(
        &run,
        &expect![[r#"
        few, a+many, a or few, b+many, b: take few, b+many, b by Metric(Goodput); alike; open (None blocks)
    "#]],
    );
    let choice = all(&run).remove(0);
    assert!(choice.stays.meets && choice.others[0].meets);
}

/// A setting that misses what is expected of another load, or of one beside, is no choice for this one.
#[test]
fn what_is_expected_of_other_loads_is_heard() {
    let mut run = of_two_loads(&ALL_FOUR.map(|(load, variant)| cell(load, variant)).concat());
    run.head.plan.loads[1].expect = vec!["failed = 0".to_owned().try_into().unwrap()];
    let mut other = run.clone();
    for trial in other.trials.iter_mut().filter(|trial| trial.cell == "many, b") {
        trial.load.as_mut().unwrap().counts.failed = [(model::load::Failure::Status, 9)].into();
    }
    check(
        &other,
        &expect![[r#"
        few, a or few, b: Stay; alike; open (None blocks)
    "#]],
    );
    let mut beside = run.head.plan.loads.pop().unwrap();
    run.head.plan.cells.retain(|cell| cell.load == "few");
    run.trials.retain(|trial| trial.cell.starts_with("few"));
    beside.name = "files".to_owned();
    run.head.plan.beside = vec![beside];
    for trial in &mut run.trials {
        let mut load = LoadResult::empty();
        if trial.cell == "few, b" {
            load.counts.failed = [(model::load::Failure::Status, 9)].into();
        }
        trial.beside = vec![model::trial::Beside { name: "files".to_owned(), load }];
    }
    check(
        &run,
        &expect![[r#"
        few, a or few, b: Stay; alike; open (None blocks)
    "#]],
    );
    let of_b = run.trials.iter_mut().filter(|trial| trial.cell == "few, b");
    of_b.for_each(|trial| trial.beside[0].load = LoadResult::empty());
    check(
        &run,
        &expect![[r#"
        few, a or few, b: take few, b by Metric(Goodput); alike; open (None blocks)
    "#]],
    );
    // Of a load that is not there nobody knows whether it was well.
    run.trials.iter_mut().find(|trial| trial.cell == "few, b").unwrap().beside.clear();
    check(
        &run,
        &expect![[r#"
        few, a or few, b: Stay; alike; open (None blocks)
    "#]],
    );
}

/// Nobody can set two variants at once.
#[test]
fn several_variants_are_no_setting() {
    let asked = "[[contrast]]\nname = \"others\"\nof = [\"b\", \"c\"]\nagainst = \"a\"\n";
    let mut run = run("aa = false", &[("a", &BASE), ("b", &MORE), ("c", &MORE)]);
    let text = format!("aa = false\n{PLAN}{asked}");
    run.head.plan = parse(&text, Path::new("t.toml"), &Options::default()).unwrap().0;
    assert_eq!(all(&run), []);
}

/// A timetable asks for so many.
fn pace(run: &mut Run) {
    let timetable = model::plan::Timetable::constant(1000.0, model::plan::Arrivals::Even);
    run.head.plan.loads[0].pace = model::plan::Pace::Timetable(timetable);
}

/// Latencies of a trial: one for most requests, and one for the slowest.
fn take(trial: &mut Trial, us: u64, slowest_us: f64) {
    let load = trial.load.as_mut().unwrap();
    load.total = Latency::new();
    (0..load.counts.good).for_each(|place| load.total.record(if place % 50 == 0 { slowest_us as u64 } else { us }));
}

/// A timetable makes as many answers of all that keep up: then it is open until latency is known.
#[test]
fn at_a_given_rate_latency_is_asked() {
    let mut run = run("aa = false", &[("a", &BASE), ("b", &SAME)]);
    let quick = [700, 2000, 900, 1500, 800, 1300];
    for trial in &mut run.trials {
        let us = if trial.cell == "b" { quick[trial.block as usize] } else { 1000 };
        take(trial, us, us as f64);
    }
    check(
        &run,
        &expect![[r#"
        a or b c: Open; alike; open c (None blocks)
    "#]],
    );
    pace(&mut run);
    check(
        &run,
        &expect![[r#"
        a or b c: Open; alike; open b c (Some(99) blocks)
    "#]],
    );
    // As many answers, each of them later.
    run.trials.iter_mut().filter(|trial| trial.cell == "b").for_each(|trial| take(trial, 1500, 1500.0));
    let overall = |run: &Run| all(run)[0].others[0].overall();
    assert_eq!(overall(&run), Some(Verdict::Worse));
    run.head.plan.loads[0].pace = model::plan::Pace::default();
    assert_eq!(overall(&run), Some(Verdict::Equivalent));
}

/// Ratios whose interval ends between 1 and the margin.
const NO_WORSE: [f64; 6] = [0.827, 1.03, 0.844, 1.01, 0.887, 0.961];

/// What must be known is known enough when it is no worse: then what comes after it speaks.
#[test]
fn what_is_no_worse_is_taken_for_what_comes_after() {
    let mut run = run("aa = false", &[("a", &BASE), ("b", &SAME)]);
    pace(&mut run);
    let with = |run: &mut Run, worst: f64| {
        for trial in &mut run.trials {
            let noise = 3 * u64::from(trial.block);
            match trial.cell.as_str() {
                "b" => take(trial, 900 + noise, 9000.0 * worst * NO_WORSE[trial.block as usize]),
                _ => take(trial, 1000 + noise, 9000.0),
            }
        }
    };
    with(&mut run, 1.0);
    check(
        &run,
        &expect![[r#"
        a or b c: take b by Metric(Median); alike; open c (None blocks)
    "#]],
    );
    let b = &all(&run)[0].others[0];
    assert_eq!(b.no_worse_before(Metric::Median).collect::<Vec<_>>(), [Metric::P99]);
    assert_eq!(b.no_worse_before(Metric::P99).count(), 0);
    // Its interval ends beyond the margin.
    let mut worse = run.clone();
    with(&mut worse, 1.01);
    check(
        &worse,
        &expect![[r#"
        a or b c: Open; alike; open b c (Some(10) blocks)
    "#]],
    );
    // A block in which the slowest are not known may have been any.
    let unknown = run.trials.iter_mut().find(|trial| trial.cell == "b").and_then(|trial| trial.load.as_mut());
    let load = unknown.unwrap();
    (0..load.counts.good / 20).for_each(|_| load.unanswered.latency.record(5));
    check(
        &run,
        &expect![[r#"
        a or b c: Open; alike; open b c (None blocks)
    "#]],
    );
}

/// The same of good answers where nothing is at a rate.
#[test]
fn no_fewer_answers_that_come_sooner_are_taken() {
    let more = NO_WORSE.map(|ratio| (1000.0 / ratio) as u64);
    let mut run = run("aa = false", &[("a", &[1000; 6]), ("b", &more)]);
    for trial in &mut run.trials {
        let us = if trial.cell == "b" { 900 } else { 1000 } + 3 * u64::from(trial.block);
        take(trial, us, 9000.0);
    }
    check(
        &run,
        &expect![[r#"
        a or b c: take b by Metric(Median); alike; open c (None blocks)
    "#]],
    );
}

/// Of a latency that one of the two never has, nobody knows whether it is worse; of one that neither has, nobody will.
#[test]
fn a_latency_that_only_one_has_speaks_against_it() {
    let mut run = run("aa = false", &[("a", &BASE), ("b", &BASE)]);
    pace(&mut run);
    for trial in &mut run.trials {
        let us = if trial.cell == "b" { 900 } else { 1000 };
        take(trial, us + 3 * u64::from(trial.block), 9000.0);
    }
    let unknown = |run: &mut Run, cells: &str| {
        for trial in run.trials.iter_mut().filter(|trial| cells.contains(&trial.cell)) {
            let load = trial.load.as_mut().unwrap();
            (0..30).for_each(|_| load.unanswered.latency.record(5));
        }
    };
    let mut one = run.clone();
    unknown(&mut one, "b");
    check(
        &one,
        &expect![[r#"
            a or b c: Open; alike; open b c (None blocks)
        "#]],
    );
    unknown(&mut run, "ab");
    check(
        &run,
        &expect![[r#"
        a or b c: take b by Metric(Median); alike; open c (None blocks)
    "#]],
    );
}
