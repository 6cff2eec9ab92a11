//! Designs whose effects stand in every textbook.

use super::*;
use expect_test::{Expect, expect};

fn factors(levels: &[usize]) -> Vec<Factor> {
    let name = |place: usize| char::from(b'A' + place as u8).to_string();
    let factor =
        |(place, &n): (usize, &usize)| Factor { name: name(place), levels: (0..n).map(|l| l.to_string()).collect() };
    levels.iter().enumerate().map(factor).collect()
}

fn generator(made: usize, of: &[usize], negative: bool) -> Generator {
    Generator { made, of: of.to_vec(), negative }
}

/// The cells, the resolution, and each contrast with its aliases.
fn check(levels: &[usize], generators: &[Generator], interactions: u32, expected: &Expect) {
    let factors = factors(levels);
    let runs = Runs::of(&factors, generators);
    let cells: Vec<String> =
        runs.levels.iter().map(|run| run.iter().map(usize::to_string).collect::<String>()).collect();
    let names: Vec<&str> = cells.iter().map(String::as_str).collect();
    let mut shown = format!("{} {:?}\n", cells.join(" "), runs.resolution());
    for contrast in runs.contrasts(&factors, &names, interactions, 0.02) {
        let sum: f64 = contrast.weights.values().sum();
        assert!(sum.abs() < 1e-12, "{contrast:?}");
        let weights = cells.iter().filter_map(|cell| contrast.weights.get(cell));
        let weights: Vec<String> = weights.map(|weight| format!("{weight:+}")).collect();
        let aliases = contrast.effect.unwrap().aliases;
        let aliases: Vec<String> = aliases
            .iter()
            .map(|alias| format!("{}{}", if alias.negative { "-" } else { "" }, alias.factors.concat()))
            .collect();
        shown += &format!("{}: {} = {}\n", contrast.name, weights.join(" "), aliases.join(" "));
    }
    expected.assert_eq(&shown);
}

#[test]
fn a_full_design_tells_everything() {
    check(
        &[2, 2],
        &[],
        2,
        &expect![[r#"
        00 01 10 11 None
        A: -0.5 -0.5 +0.5 +0.5 = 
        B: -0.5 +0.5 -0.5 +0.5 = 
        A × B: +1 -1 -1 +1 = 
    "#]],
    );
    check(
        &[2, 3],
        &[],
        2,
        &expect![[r#"
        00 01 02 10 11 12 None
        A: -0.3333333333333333 -0.3333333333333333 -0.3333333333333333 +0.3333333333333333 +0.3333333333333333 +0.3333333333333333 = 
        B 1: -0.5 +0.5 -0.5 +0.5 = 
        B 2: -0.5 +0.5 -0.5 +0.5 = 
        A × B 1: +1 -1 -1 +1 = 
        A × B 2: +1 -1 -1 +1 = 
    "#]],
    );
}

#[test]
fn a_fraction_mixes_up() {
    // Half of three factors, resolution III; half of four, IV; its other half.
    check(
        &[2, 2, 2],
        &[generator(2, &[0, 1], false)],
        2,
        &expect![[r#"
        001 010 100 111 Some(3)
        A: -0.5 -0.5 +0.5 +0.5 = BC
        B: -0.5 +0.5 -0.5 +0.5 = AC
        C: +0.5 -0.5 -0.5 +0.5 = AB
    "#]],
    );
    check(
        &[2, 2, 2, 2],
        &[generator(3, &[0, 1, 2], false)],
        2,
        &expect![[r#"
        0000 0011 0101 0110 1001 1010 1100 1111 Some(4)
        A: -0.25 -0.25 -0.25 -0.25 +0.25 +0.25 +0.25 +0.25 = BCD
        B: -0.25 -0.25 +0.25 +0.25 -0.25 -0.25 +0.25 +0.25 = ACD
        C: -0.25 +0.25 -0.25 +0.25 -0.25 +0.25 -0.25 +0.25 = ABD
        D: -0.25 +0.25 +0.25 -0.25 +0.25 -0.25 -0.25 +0.25 = ABC
        A × B: +0.5 +0.5 -0.5 -0.5 -0.5 -0.5 +0.5 +0.5 = CD
        A × C: +0.5 -0.5 +0.5 -0.5 -0.5 +0.5 -0.5 +0.5 = BD
        A × D: +0.5 -0.5 -0.5 +0.5 +0.5 -0.5 -0.5 +0.5 = BC
    "#]],
    );
    check(
        &[2, 2, 2, 2],
        &[generator(3, &[0, 1, 2], true)],
        1,
        &expect![[r#"
        0001 0010 0100 0111 1000 1011 1101 1110 Some(4)
        A: -0.25 -0.25 -0.25 -0.25 +0.25 +0.25 +0.25 +0.25 = -BCD
        B: -0.25 -0.25 +0.25 +0.25 -0.25 -0.25 +0.25 +0.25 = -ACD
        C: -0.25 +0.25 -0.25 +0.25 -0.25 +0.25 -0.25 +0.25 = -ABD
        D: +0.25 -0.25 -0.25 +0.25 -0.25 +0.25 +0.25 -0.25 = -ABC
    "#]],
    );
}

/// What is put into the cells comes out of the contrasts: effects add up on the scale of logarithms.
#[test]
fn effects_are_found_again() {
    let factors = factors(&[2, 3, 2]);
    let runs = Runs::of(&factors, &[]);
    let cells: Vec<String> = runs.levels.iter().map(|run| format!("{run:?}")).collect();
    let names: Vec<&str> = cells.iter().map(String::as_str).collect();
    let truth = |run: &[usize]| 0.3 * run[0] as f64 - 0.2 * run[1] as f64 + 0.1 * (run[0] * run[1]) as f64;
    for contrast in runs.contrasts(&factors, &names, 3, 0.02) {
        let found: f64 = runs
            .levels
            .iter()
            .zip(&cells)
            .filter_map(|(run, cell)| Some(contrast.weights.get(cell)? * truth(run)))
            .sum();
        let expected = match contrast.name.as_str() {
            // At the mean of the other factor's levels, which is 1.
            "A" => 0.3 + 0.1,
            "B 1" => -0.2 + 0.05,
            "B 2" => -0.4 + 0.1,
            "A × B 1" => 0.1,
            "A × B 2" => 0.2,
            _ => 0.0,
        };
        assert!((found - expected).abs() < 1e-12, "{}: {found} for {expected}", contrast.name);
    }
}
