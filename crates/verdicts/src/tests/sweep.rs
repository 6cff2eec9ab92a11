//! Throughput against a number.

use super::*;

const SWEEP: &str = "aa = false\n[sweep]\nover = \"connections\"\nvalues = [1, 2, 4, 8, 16, 32, 64, 128]\n";

/// A sweep whose cells gave so many good answers in each of six blocks, with a little noise.
fn swept(head: &str, goods: [u64; 8]) -> Run {
    let text = format!(
        "{head}\n{SWEEP}[server]\nkind = \"embedded\"\n[load.l]\npath = \"/\"\nconnections = 1\nduration = \"1s\"\n"
    );
    let plan = parse(&text, Path::new("t.toml"), &Options::default()).unwrap().0;
    let mut run = run("aa = false", &[]);
    run.head.plan = plan;
    for (point, good) in run.head.plan.sweep.clone().unwrap().points.iter().zip(goods) {
        let noisy = |block: u32| (good as f64 * (1.0 + 0.02 * noise(&point.cell, block, point.value))).round() as u64;
        run.trials.extend((0..6).map(|block| trial(&point.cell, block, noisy(block))));
    }
    run
}

const GROWS: [u64; 8] = [1000, 1900, 3500, 6000, 9000, 11_000, 12_000, 12_500];

#[test]
fn intervals_of_a_run_that_is_looked_at_are_wider() {
    let width = |head| {
        let curve = curve(&swept(head, GROWS)).unwrap();
        let (low, high) = curve.fit.unwrap().sigma.unwrap();
        let point = curve.points[0].interval.unwrap();
        (high - low, point.high - point.low)
    };
    let (alone, looked) = (width(""), width("until_decided = true"));
    assert!(looked.0 > 1.02 * alone.0 && looked.1 > 1.2 * alone.1, "{alone:?} {looked:?}");
}

#[test]
fn a_fall_to_nothing_is_a_cliff() {
    let [a, b, c, d, e, f, _, _] = GROWS;
    let found = curve(&swept("", [a, b, c, d, e, f, 0, 0])).unwrap();
    assert_eq!(found.cliff, Some((32, 64, 0.0)));
    let behind = |point: &CurvePoint| point.left_out == Some(LeftOut::Silent);
    assert_eq!(
        found.points.iter().filter(|point| behind(point)).map(|point| point.value).collect::<Vec<_>>(),
        [64, 128]
    );
    // A hole is none, nor is a sweep that never answered.
    assert_eq!(curve(&swept("", [a, b, c, 0, e, f, 12_000, 12_500])).unwrap().cliff, None);
    assert_eq!(curve(&swept("", [0; 8])).unwrap().cliff, None);
}
